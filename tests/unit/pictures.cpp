// The memory map and the timeline: well-formed, complete, and true to the kernels that they show.
#include "barrier_kernels.hpp"
#include "cluster_kernels.hpp"
#include "interpret.hpp"
#include "run_time_recording.hpp"
#include "tools/memory_map.hpp"
#include "tools/timeline.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

template <class Record>
graph recorded(Record record, dims cluster = {}) {
  run_time_recording t;
  t.r.attrs.cluster = cluster;
  auto x = t.pointer<f32 const>();
  auto y = t.pointer<f32>();
  auto n = t.value<i32>();
  record(t.k, x, y, n);
  t.k.finish();
  EXPECT_TRUE(t.r.error.ok()) << t.r.error.text;
  return graph(t.graph());
}

/// Why a text is no well-formed XML of elements and texts; empty: it is.
std::string fault_of_xml(std::string const& s) {
  std::vector<std::string> open;
  for (std::size_t i = 0; i < s.size();) {
    if (s[i] == '&' && s.compare(i, 5, "&amp;") != 0 && s.compare(i, 4, "&lt;") != 0 && s.compare(i, 4, "&gt;") != 0 && s.compare(i, 6, "&quot;") != 0)
      return "a bare & at " + s.substr(i, 20);
    if (s[i] != '<') {
      ++i;
      continue;
    }
    std::size_t const end = s.find('>', i);
    if (end == s.npos) return "an open tag at the end";
    std::string tag = s.substr(i + 1, end - i - 1);
    i = end + 1;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "</" + tag.substr(1) + "> closes nothing";
      open.pop_back();
      continue;
    }
    std::size_t quotes = 0;
    for (char c : tag) quotes += c == '"';
    if (quotes % 2 != 0) return "unbalanced quotes in " + tag;
    if (tag.back() != '/') open.push_back(tag.substr(0, tag.find(' ')));
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}
bool has(std::string const& text, std::string const& part) { return text.find(part) != text.npos; }

TEST(MemoryMap, EveryKernelIsDrawn) {
  int drawn = 0;
  auto look = [&](graph const& g, char const* name) {
    std::string const svg = tool::memory_map(g);
    EXPECT_EQ(fault_of_xml(svg), "") << name;
    EXPECT_TRUE(svg.starts_with("<svg ")) << name;
    auto names = [&](std::string const& part) { EXPECT_TRUE(has(svg, part)) << name << " lacks " << part; };
    graph_view const v = g;
    for (buffer_info const& b : v.buffers)
      if (b.name >= 0) {
        std::string const n = v.string(b.name);
        EXPECT_TRUE(has(svg, ">" + n + "</t") || has(svg, ">" + n + "[")) << name << " lacks " << n;
      }
    ++drawn;
    if (v.buffers.empty() && !has(svg, " barrier")) return; // nothing to draw but that
    for (int i = 0; i < v.size(); ++i) switch (v[i].code) {
      case op::alloc_barriers: names(">" + std::string(v.string(static_cast<int>(v.attribute(i, 3)))) + ": " + std::to_string(v.attribute(i, 0)) + " barrier"); break;
      case op::barrier_wait: names(">wait "); break;
      case op::barrier_arrive: names(">arrive "); break;
      case op::task_begin: names(">task " + std::string(v.string(static_cast<int>(v.attribute(i, 4))))); break;
      default: break;
      }
  };
#define KILN_DRAW(name) look(recorded([](auto&... a) { suspicious::name(a...); }), #name);
  KILN_SUSPICIOUS(KILN_DRAW)
#undef KILN_DRAW
#define KILN_DRAW(name) look(recorded([](auto&... a) { meeting::name(a...); }), #name);
  KILN_MEETING(KILN_DRAW)
#undef KILN_DRAW
#define KILN_DRAW(name) look(recorded([](auto&... a) { clusters::name(a...); }, {2, 1, 1}), #name);
  KILN_DRAW(sum) KILN_DRAW(ring) KILN_DRAW(broadcast)
  EXPECT_EQ(drawn, 42);
  std::string const svg = tool::memory_map(recorded([](auto&... a) { clusters::ring(a...); }, {2, 1, 1}));
  for (char const* part : {">cluster_barrier ", ">barriers ready ", "write tile[i%2] of CTA ", "arrive empty[i%2] of CTA "}) EXPECT_TRUE(has(svg, part)) << part;
}

// qk takes turns with p and l, which are in use together: they need more than qk (growth), and the author gave more (slack).
TEST(MemoryMap, GrowthSlackAndLives) {
  graph const g = recorded([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32>) {
    auto sp = k.storage_alias_spec({.buffer_size_bytes = 8192, .name = "scratch"});
    auto qk = k.local_alloc<f32, 512>(2, {.reuse = &sp, .name = "qk"});
    auto p = k.local_alloc<f32, 256>(2, {.reuse = &sp, .name = "p"});
    auto l = k.local_alloc<f32, 320>(2, {.reuse = &sp, .name = "l<1>"});
    sp.set_buffer_overlap(shared_group(qk, distinct_group(p, l)));
    auto at = k.arange<512>();
    k.local_store(qk[1], load(x + at));
    auto v = k.local_load(qk[1]);
    k.local_store(p[1], load(x + k.arange<256>()));
    k.local_store(l[1], load(x + k.arange<320>()));
    store(y + at, v);
    store(y + k.arange<256>(), k.local_load(p[1]));
    store(y + k.arange<320>(), k.local_load(l[1]));
  });
  std::string const svg = tool::memory_map(g);
  EXPECT_EQ(fault_of_xml(svg), "");
  EXPECT_TRUE(has(svg, "fill=\"#495057\">slack  3,584 B</text>")) << svg;
  EXPECT_TRUE(has(svg, ">scratch</text>"));
  EXPECT_TRUE(has(svg, ">8,192 B, shared by</text>"));
  EXPECT_TRUE(has(svg, ">qk, p and l&lt;1&gt;</text>"));
  EXPECT_TRUE(has(svg, ">apart they would need 8,704</text>"));
  EXPECT_TRUE(has(svg, ">l&lt;1&gt;[1]</tspan> 1,280 B</text>"));
  EXPECT_TRUE(has(svg, ">write qk[1]")); // one slot, known
  std::size_t growths = 0;
  for (std::size_t at = svg.find("fill=\"#495057\">growth  256 B</text>"); at != svg.npos; at = svg.find("fill=\"#495057\">growth  256 B</text>", at + 1)) ++growths;
  EXPECT_EQ(growths, 2u); // of both slots of qk, and of nothing else
}

// A copy out of memory reads it until the wait that knows it done: here the first of two, by a wait that leaves one pending.
TEST(MemoryMap, LivesGoOnUntilCopiesAreDone) {
  graph const g = recorded([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32>) {
    auto a = k.alloc_shared<f32, 64>({.name = "a"}), b = k.alloc_shared<f32, 64>({.name = "b"});
    auto at = k.arange<64>();
    k.local_store(a, load(x + at));
    k.fence(fence::async_shared);
    k.async_store_bulk(y, a);
    k.local_store(b, load(x + 64 + at));
    k.fence(fence::async_shared);
    k.async_store_bulk(y + 64, b);
    k.async_store_wait(1);
    store(y + 128 + at, load(x + at));
    k.async_store_wait(0);
  });
  std::string const svg = tool::memory_map(g);
  EXPECT_EQ(fault_of_xml(svg), "");
  auto life = [&](std::string const& name) {
    std::size_t const from = svg.find("<title>" + name + ": in use from write " + name);
    return from == svg.npos ? "" : svg.substr(from, svg.find("</title>", from) - from);
  };
  EXPECT_TRUE(has(life("a"), " to store_wait(1)")) << life("a");
  EXPECT_TRUE(has(life("b"), " to store_wait(0)")) << life("b");

  graph const ring = recorded([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32>) {
    auto a = k.alloc_shared<f32, 64>({.name = "a"}), b = k.alloc_shared<f32, 64>({.name = "b"});
    auto at = k.arange<64>();
    k.async_load(x + at, a);
    k.async_load_commit_group();
    k.async_load(x + 64 + at, b);
    k.async_load_commit_group();
    k.async_load_wait_group(1);
    store(y + at, load(x + at));
    k.async_load_wait_group(0);
  });
  std::string const copies = tool::memory_map(ring);
  EXPECT_TRUE(has(copies, "<title>a: in use from copy into a")) << copies;
  EXPECT_TRUE(has(copies.substr(copies.find("<title>a: in use")).substr(0, 80), " to wait_group(1)"));
  EXPECT_TRUE(has(copies.substr(copies.find("<title>b: in use")).substr(0, 80), " to wait_group(0)"));
}

/// What the tooltip of a bar says of it.
std::vector<std::string> lives_of(std::string const& svg, std::string const& name) {
  std::vector<std::string> all;
  std::string const head = "<title>" + name + ": in use from ";
  for (std::size_t at = svg.find(head); at != svg.npos; at = svg.find(head, at + 1)) all.push_back(svg.substr(at + head.size(), svg.find("</title>", at) - at - head.size()));
  return all;
}

// What is written before the tasks and read in every pass of a task's loop is needed all the way; what the tasks hand to each other is
// drawn where each uses it; an index that can only be some of the slots marks those.
TEST(MemoryMap, LivesReachAcrossTasksAndLoops) {
  graph const g = recorded([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    auto q = k.alloc_shared<f32, 64>({.name = "q"});
    auto p = k.local_alloc<f32, 64>(4, {.name = "p"});
    auto full = k.alloc_barriers(2, {.name = "full"}), empty = k.alloc_barriers(2, {.name = "empty"});
    auto at = k.arange<64>();
    k.local_store(q, load(x + at));
    k.sync();
    k.async_tasks(k.task_default({.name = "make"},
                                 [&] {
                                   for (auto i : k.range(0, n)) {
                                     auto [s, phase] = k.buf_phase(i, 2);
                                     k.barrier_wait(empty[s], phase ^ 1);
                                     k.local_store(p[s * 2 + 1], load(x + i * 64 + at));
                                     k.barrier_arrive(full[s]);
                                   }
                                 }),
                  k.task({.num_warps = 2, .replicate = 1, .name = "use"}, [&] {
                    for (auto i : k.range(0, n)) {
                      auto [s, phase] = k.buf_phase(i, 2);
                      k.barrier_wait(full[s], phase);
                      store(y + i * 64 + at, k.local_load(p[s * 2 + 1]) + k.local_load(q));
                      k.barrier_arrive(empty[s]);
                    }
                  }));
    store(y + at, k.local_load(q));
  });
  std::string const svg = tool::memory_map(g);
  EXPECT_EQ(fault_of_xml(svg), "");
  std::vector<std::string> const q = lives_of(svg, "q");
  ASSERT_EQ(q.size(), 4u) << svg; // before the tasks, in both tasks (nobody may take its bytes), and after them
  EXPECT_TRUE(q[0].starts_with("write q") && has(q[0], " to sync")) << q[0];
  EXPECT_TRUE(q[1].starts_with("wait empty[i%2] \u2190 use") && has(q[1], " to arrive full[i%2] \u2192 use")) << q[1];
  EXPECT_TRUE(q[2].starts_with("wait full[i%2] \u2190 make") && has(q[2], " to arrive empty[i%2] \u2192 make")) << q[2];
  EXPECT_TRUE(q[3].starts_with("read q")) << q[3];
  EXPECT_TRUE(lives_of(svg, "p[0]").empty() && lives_of(svg, "p[2]").empty());
  for (char const* slot : {"p[1]", "p[3]"}) {
    std::vector<std::string> const p = lives_of(svg, slot);
    ASSERT_EQ(p.size(), 2u) << slot;
    EXPECT_TRUE(p[0].starts_with("write p[i%2*2+1]") && p[1].starts_with("read p[i%2*2+1]")) << p[0] << p[1];
  }
  EXPECT_TRUE(has(svg, ">task use, 2 warps</text>"));
}

// Phases of an allocator: the smaller one has bytes that only the larger needs.
TEST(MemoryMap, GrowthOfPhasesAndPadding) {
  graph const g = recorded([](auto&... a) { suspicious::phased_staging(a...); });
  std::string const svg = tool::memory_map(g);
  EXPECT_TRUE(has(svg, ">growth  256 B</text>")) << svg;
  EXPECT_TRUE(has(svg, ">allocator, line "));
  EXPECT_TRUE(has(svg, "fits every target"));
  std::string const small = tool::memory_map(recorded([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32>) {
    auto a = k.local_alloc<f32, 4>(2, {.name = "a"});
    auto b = k.alloc_shared<f32, 24576>({.name = "b"});
    k.local_store(a[1], load(x + k.arange<4>()));
    k.local_store(b, k.zeros<f32, 24576>());
    k.sync();
    store(y + k.arange<4>(), k.local_load(a[1]) + reduce<sum>(k.local_load(b)));
  }));
  EXPECT_TRUE(has(small, ">padding  112 B</text>")) << small;
  EXPECT_TRUE(has(small, "shared memory 98,560 B for each CTA; too much for gfx90a, gfx942, gfx1100, gfx1201"));
}

TEST(MemoryMap, AKernelWithoutLocalMemory) {
  graph const g = recorded([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32>) { store(y + k.arange<32>(), load(x + k.arange<32>())); });
  std::string const svg = tool::memory_map(g);
  EXPECT_EQ(fault_of_xml(svg), "");
  EXPECT_TRUE(has(svg, "has no local memory"));
}

/// The members of one line of a trace that are plain: `"name":"x"` or `"ts":5`.
std::map<std::string, std::string> members(std::string const& line) {
  std::map<std::string, std::string> m;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] != '"') {
      ++i;
      continue;
    }
    auto text = [&] {
      std::string s;
      for (++i; line[i] != '"'; ++i) {
        if (line[i] == '\\') ++i;
        s += line[i];
      }
      ++i;
      return s;
    };
    std::string const key = text();
    if (line[i] != ':') return {{"fault", key}};
    ++i;
    if (line[i] == '"') {
      m.try_emplace(key, text());
    } else if (line[i] == '{') {
      ++i;
    } else {
      std::size_t const end = line.find_first_of(",}", i);
      m.try_emplace(key, line.substr(i, end - i));
      i = end;
    }
  }
  return m;
}

struct trace_facts {
  int spans = 0, waits = 0, copies = 0, threads = 0, unfinished = 0, arrows = 0;
  std::string fault;
};
/// Spans of a thread nest, time does not go back, every copy that starts lands, every arrow leads from a span to a wait that ends.
trace_facts facts_of(std::string const& json) {
  trace_facts f;
  int braces = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (in_text && json[i] == '\\') ++i;
    else if (json[i] == '"') in_text = !in_text;
    else if (!in_text) braces += (json[i] == '{' || json[i] == '[') - (json[i] == '}' || json[i] == ']');
    if (braces < 0) f.fault = "a bracket closes nothing";
  }
  if (braces != 0 || in_text) f.fault = "brackets or quotes are not closed";
  std::map<std::string, std::vector<std::string>> open;
  std::map<std::string, std::string> flying, arrow;
  std::map<std::string, std::vector<std::pair<long, long>>> done; // spans by thread
  std::map<std::string, std::vector<long>> since;
  long last = 0;
  for (std::size_t at = json.find('\n') + 1; at < json.size();) {
    std::size_t const end = json.find('\n', at);
    std::string const line = json.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line[0] != '{') break;
    auto m = members(line);
    if (m.contains("fault")) f.fault = "no member: " + line;
    if (m["ph"] == "M") {
      f.threads += m["name"] == "thread_name";
      continue;
    }
    f.unfinished += has(line, "\"unfinished\":true");
    std::string const thread = m["pid"] + "/" + m["tid"];
    long const ts = std::stol(m["ts"]);
    if (m["ph"] == "s") { // told late, when it is known
      bool in_span = false;
      for (auto const& [from, to] : done[thread]) in_span = in_span || (from <= ts && ts <= to);
      for (long from : since[thread]) in_span = in_span || from <= ts;
      if (!in_span || ts > last) f.fault = "an arrow from nowhere: " + line;
      arrow[m["id"]] = thread;
      continue;
    }
    if (ts < last) f.fault = "time goes back: " + line;
    else last = ts;
    if (m["ph"] == "f") {
      if (!arrow.contains(m["id"]) || m["bp"] != "e" || open[thread].empty() || !(has(open[thread].back(), "wait ") || open[thread].back() == "cluster_barrier")) f.fault = "an arrow to nowhere: " + line;
      arrow.erase(m["id"]);
      ++f.arrows;
      continue;
    }
    if (m["ph"] == "B") {
      since[thread].push_back(ts);
      open[thread].push_back(m["name"]);
      ++f.spans;
      f.waits += m["cat"] == "wait";
    } else if (m["ph"] == "E") {
      if (open[thread].empty() || open[thread].back() != m["name"]) f.fault = "this end has no beginning: " + line;
      else open[thread].pop_back(), done[thread].push_back({since[thread].back(), ts}), since[thread].pop_back();
    } else if (m["ph"] == "b") {
      if (!has(line, "\"bytes\":") || !has(m["name"], " B")) f.fault = "a copy without its size: " + line;
      flying[m["id"]] = m["name"];
      ++f.copies;
    } else if (m["ph"] == "e") {
      if (flying[m["id"]] != m["name"]) f.fault = "a copy lands that has not started: " + line;
      flying.erase(m["id"]);
    } else {
      f.fault = "an unknown phase: " + line;
    }
  }
  for (auto const& [thread, names] : open)
    if (!names.empty()) f.fault = names.back() + " does not end";
  if (!flying.empty()) f.fault = flying.begin()->second + " does not land";
  return f;
}
std::string traced(graph const& g, ip::completion policy, u64 seed, int n = 5) {
  std::vector<f32> x(1 << 14), y(1 << 12);
  tool::timeline t(g);
  ip::run_options o{.policy = policy, .seed = seed};
  o.trace = [&](ip::trace_event const& e) { t.add(e); };
  ip::run(g, g.attrs.cluster, {ip::pointer(x.data(), static_cast<i64>(x.size() * 4)), ip::pointer(y.data(), static_cast<i64>(y.size() * 4)), kiln_test::val(n)}, o);
  return t.json();
}

TEST(Timeline, SpansNestAndCopiesLand) {
  auto look = [&](graph const& g, char const* name) {
    for (auto policy : all_policies) {
      trace_facts const f = facts_of(traced(g, policy, 7));
      EXPECT_EQ(f.fault, "") << name;
      EXPECT_EQ(f.unfinished, 0) << name;
      int agents = 1, copies = 0;
      bool otherwise = false; // the branch that does not run has as many tasks as the one that does
      for (int i = 0; i < graph_view(g).size(); ++i) {
        op const at = g.nodes[static_cast<std::size_t>(i)].code;
        otherwise = (otherwise || at == op::if_else) && at != op::if_end;
        if (!otherwise && g.nodes[static_cast<std::size_t>(i)].code == op::task_begin) agents += static_cast<int>(graph_view(g).attribute(i, 2));
        op const o = g.nodes[static_cast<std::size_t>(i)].code;
        copies += o == op::async_load || o == op::async_load_bulk || o == op::async_store_bulk || o == op::async_remote_store || o == op::async_remote_copy;
      }
      agents *= cluster_size(g.attrs);
      EXPECT_EQ(f.threads, agents) << name;
      EXPECT_EQ(f.copies > 0, copies > 0) << name;
      EXPECT_TRUE(f.arrows > 0 || f.waits == 0 || copies == 0) << name; // somebody waited for something
      EXPECT_GT(f.spans, agents - 1) << name;
    }
  };
#define KILN_TRACE(name) look(recorded([](auto&... a) { suspicious::name(a...); }), #name);
  KILN_SUSPICIOUS(KILN_TRACE)
#undef KILN_TRACE
#define KILN_TRACE(name) look(recorded([](auto&... a) { meeting::name(a...); }), #name);
  KILN_MEETING(KILN_TRACE)
#undef KILN_TRACE
#define KILN_TRACE(name) look(recorded([](auto&... a) { clusters::name(a...); }, {2, 1, 1}), #name);
  KILN_TRACE(sum) KILN_TRACE(ring) KILN_TRACE(broadcast)
}

TEST(Timeline, NamesWhatHappens) {
  std::string const json = traced(recorded([](auto&... a) { suspicious::ring(a...); }), ip::completion::random, 3);
  for (char const* part : {"\"task load\"", "\"task use\"", "\"wait full[0]\"", "\"arrive empty[2]\"", "\"read a[1]\"", "\"copy into a[2], 256 B\"", "\"expect 256 B at full[1]\"", "\"issued by\":\"task load\"",
                           "\"name\":\"wait empty[0]\",\"args\":{\"released by\":\"nothing yet: this parity passes before the first phase is complete\"}",
                           "\"name\":\"wait empty[0]\",\"args\":{\"released by\":\"arrive empty[0], task use\",\"phase\":0}", "\"name\":\"wait full[1]\",\"args\":{\"released by\":\"start copy into a[1], task load\",\"phase\":0}", "suspicious_kernels.hpp:"})
    EXPECT_TRUE(has(json, part)) << part;
  EXPECT_EQ(json, traced(recorded([](auto&... a) { suspicious::ring(a...); }), ip::completion::random, 3)); // the seed decides all
  EXPECT_NE(json, traced(recorded([](auto&... a) { suspicious::ring(a...); }), ip::completion::random, 4));
}

// What happens at once takes one step, whoever runs in between; only waits and copies take longer. Other CTAs are named.
TEST(Timeline, OnlyWaitsLastAndOtherCtasAreNamed) {
  std::string const json = traced(recorded([](auto&... a) { clusters::broadcast(a...); }, {2, 1, 1}), ip::completion::random, 5);
  std::map<std::string, std::vector<std::pair<std::string, long>>> open;
  int instants = 0;
  for (std::size_t at = json.find('\n') + 1; at < json.size();) {
    std::size_t const end = json.find('\n', at);
    std::string const line = json.substr(at, end - at);
    at = end + 1;
    auto m = members(line);
    std::string const thread = m["pid"] + "/" + m["tid"];
    if (m["ph"] == "B") open[thread].push_back({m["cat"], std::stol(m["ts"])});
    if (m["ph"] != "E") continue;
    auto const [cat, from] = open[thread].back();
    open[thread].pop_back();
    if (cat != "access" && cat != "arrive") continue;
    EXPECT_EQ(std::stol(m["ts"]), from + 1) << line;
    ++instants;
  }
  EXPECT_GT(instants, 20);
  for (char const* part : {"\"start copy from from[0] to to[0] of CTA 1\"", "\"copy into to[1] of CTA 0, 256 B\"", "\"arrive taken[0] of CTA 0\"", "\"released by\":\"arrive taken[0] of CTA 0, task use of CTA 1\""})
    EXPECT_TRUE(has(json, part)) << part;
}

TEST(Timeline, ADeadlockLeavesSpansThatAreCalledUnfinished) {
  graph const g = recorded([](context& k, ptr<const f32>, ptr<f32>, kiln::val<i32>) {
    auto never = k.alloc_barriers(1, {.name = "never"});
    k.async_tasks(k.task_default({.name = "a"}, [&] { k.barrier_wait(never[0], 0); }), k.task({.num_warps = 1, .name = "b"}, [&] { k.barrier_wait(never[0], 0); }));
  });
  trace_facts const f = facts_of(traced(g, ip::completion::late, 1));
  EXPECT_EQ(f.fault, "");
  EXPECT_EQ(f.unfinished, 5); // two waits, two tasks, the kernel
}

} // namespace
