// The trace of timeline.hpp. A CTA is a process, an agent a thread; asynchronous copies are spans beside the threads.
#include "timeline.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

namespace kiln::tool {

namespace {

using kind = interpreter::trace_event::kind;

std::string quoted(std::string_view s) {
  std::string r = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') r += '\\';
    if (static_cast<unsigned char>(c) < 32) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      r += code;
    } else {
      r += c;
    }
  }
  return r + "\"";
}

char const* category_of(op o) {
  switch (o) {
  case op::barrier_wait: case op::named_barrier_wait: case op::async_wait: case op::async_store_wait: case op::sync: case op::agent_sync: case op::cluster_barrier: return "wait";
  case op::barrier_arrive: case op::barrier_expect_bytes: case op::named_barrier_arrive: case op::async_arrive: case op::async_commit: return "arrive";
  case op::async_load: case op::async_load_bulk: case op::async_store_bulk: case op::async_remote_store: case op::async_remote_copy: return "copy";
  default: return "access";
  }
}

} // namespace

void timeline::add(interpreter::trace_event const& e) { events_.push_back(e); }

std::string timeline::json() const {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"kernel\":" + quoted(g_.name) + ",\"unit\":\"one operation of the interpreter is 1 us\"},\"traceEvents\":[\n";
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, int> ctas;
  std::set<std::pair<int, int>> agents;
  std::map<std::pair<int, int>, std::vector<std::string>> open;
  std::map<std::uint64_t, std::pair<int, std::string>> flying;
  std::int64_t last = 0;
  bool first = true;
  auto line = [&](std::string const& text) {
    out += (first ? "" : ",\n") + text;
    first = false;
  };
  auto head = [&](char const* phase, int pid, int tid, std::int64_t ts) {
    return "{\"ph\":\"" + std::string(phase) + "\",\"pid\":" + std::to_string(pid) + ",\"tid\":" + std::to_string(tid) + ",\"ts\":" + std::to_string(ts);
  };
  for (interpreter::trace_event const& e : events_) {
    last = std::max(last, e.time);
    auto const [at, fresh] = ctas.try_emplace({e.cta.x, e.cta.y, e.cta.z}, static_cast<int>(ctas.size()) + 1);
    int const pid = at->second, tid = e.agent + 1;
    if (fresh)
      line("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + std::to_string(pid) + ",\"tid\":0,\"args\":{\"name\":\"CTA " + std::to_string(e.cta.x) + "," +
           std::to_string(e.cta.y) + "," + std::to_string(e.cta.z) + "\"}}");
    if (e.what == kind::agent_begins && agents.insert({pid, tid}).second) {
      line("{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":" + std::to_string(pid) + ",\"tid\":" + std::to_string(tid) + ",\"args\":{\"name\":" + quoted(e.text) + "}}");
      line("{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":" + std::to_string(pid) + ",\"tid\":" + std::to_string(tid) + ",\"args\":{\"sort_index\":" + std::to_string(tid) + "}}");
    }
    std::string const place = e.node >= 0 && g_[e.node].line > 0 ? std::string(g_.file(e.node)) + ":" + std::to_string(g_[e.node].line) : std::string();
    std::string const args = place.empty() ? std::string() : ",\"args\":{\"line\":" + quoted(place) + "}";
    switch (e.what) {
    case kind::agent_begins:
    case kind::begins: {
      bool const agent = e.what == kind::agent_begins;
      open[{pid, tid}].push_back(e.text);
      line(head("B", pid, tid, e.time) + ",\"name\":" + quoted(e.text) + ",\"cat\":\"" + (agent ? "task" : category_of(g_[e.node].code)) + "\"" + args + "}");
      break;
    }
    case kind::agent_ends:
    case kind::ends: {
      std::vector<std::string>& mine = open[{pid, tid}];
      if (mine.empty()) break;
      line(head("E", pid, tid, e.time) + ",\"name\":" + quoted(mine.back()) + "}");
      mine.pop_back();
      break;
    }
    case kind::copy_starts:
      flying[e.copy] = {pid, e.text};
      line(head("b", pid, tid, e.time) + ",\"name\":" + quoted(e.text) + ",\"cat\":\"copy in flight\",\"id\":" + std::to_string(e.copy) + args + "}");
      break;
    case kind::copy_lands:
      if (auto const f = flying.find(e.copy); f != flying.end()) {
        line(head("e", f->second.first, tid, e.time) + ",\"name\":" + quoted(f->second.second) + ",\"cat\":\"copy in flight\",\"id\":" + std::to_string(e.copy) + "}");
        flying.erase(f);
      }
      break;
    }
  }
  // What was under way when the run ended early.
  for (auto& [where, names] : open)
    for (; !names.empty(); names.pop_back())
      line(head("E", where.first, where.second, last + 1) + ",\"name\":" + quoted(names.back()) + ",\"args\":{\"unfinished\":true}}");
  for (auto const& [id, f] : flying)
    line(head("e", f.first, 0, last + 1) + ",\"name\":" + quoted(f.second) + ",\"cat\":\"copy in flight\",\"id\":" + std::to_string(id) + ",\"args\":{\"unfinished\":true}}");
  return out + "\n]}\n";
}

} // namespace kiln::tool
