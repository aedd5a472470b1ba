// The trace of timeline.hpp. A CTA is a process, an agent a thread; asynchronous copies are spans beside the threads.
#include "timeline.hpp"

#include <cstdio>
#include <map>
#include <tuple>

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
  std::string out = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"kernel\":" + quoted(g_.name) +
                    ",\"unit\":\"1 us is one step: one thing that this trace shows begins or ends. It is no time that a device would take\"},\"traceEvents\":[\n";
  struct place {
    int pid = 0, tid = 0;
    std::int64_t step = 0;
    std::string what{};
  };
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, int> ctas;
  std::map<std::pair<int, int>, std::string> agents;
  std::map<std::pair<int, int>, std::vector<place>> open;
  std::map<std::uint64_t, std::pair<int, std::string>> flying;
  std::map<std::int64_t, place> begun;    // by time
  std::map<std::uint64_t, place> started; // copies
  std::int64_t step = 0;
  int flows = 0;
  bool first = true;
  auto line = [&](std::string const& text) {
    out += (first ? "" : ",\n") + text;
    first = false;
  };
  auto head = [&](char const* phase, int pid, int tid, std::int64_t ts) {
    return "{\"ph\":\"" + std::string(phase) + "\",\"pid\":" + std::to_string(pid) + ",\"tid\":" + std::to_string(tid) + ",\"ts\":" + std::to_string(ts);
  };
  auto name_thread = [&](char const* what, int pid, int tid, std::string const& args) {
    line("{\"ph\":\"M\",\"name\":\"" + std::string(what) + "\",\"pid\":" + std::to_string(pid) + ",\"tid\":" + std::to_string(tid) + ",\"args\":{" + args + "}}");
  };
  for (interpreter::trace_event const& e : events_) {
    ++step;
    auto const [at, fresh] = ctas.try_emplace({e.cta.x, e.cta.y, e.cta.z}, static_cast<int>(ctas.size()) + 1);
    int const pid = at->second, tid = e.agent + 1;
    if (fresh)
      name_thread("process_name", pid, 0, "\"name\":" + quoted("CTA " + std::to_string(e.cta.x) + "," + std::to_string(e.cta.y) + "," + std::to_string(e.cta.z) + " of " + std::string(g_.name)));
    if (e.what == kind::agent_begins && agents.try_emplace({pid, tid}, e.text).second) {
      name_thread("thread_name", pid, tid, "\"name\":" + quoted(e.text));
      name_thread("thread_sort_index", pid, tid, "\"sort_index\":" + std::to_string(tid));
    }
    std::string const source = e.node >= 0 && g_[e.node].line > 0 ? std::string(g_.file(e.node)) + ":" + std::to_string(g_[e.node].line) : std::string();
    std::string args;
    auto arg = [&](char const* name, std::string const& value) { args += (args.empty() ? ",\"args\":{\"" : ",\"") + std::string(name) + "\":" + value; };
    auto closed = [&] { return args.empty() ? std::string("}") : args + "}}"; };
    if (!source.empty() && e.what != kind::ends && e.what != kind::agent_ends) arg("line", quoted(source));
    switch (e.what) {
    case kind::agent_begins:
    case kind::begins: {
      bool const agent = e.what == kind::agent_begins;
      open[{pid, tid}].push_back({pid, tid, step, e.text});
      if (!agent) begun[e.time] = open[{pid, tid}].back();
      line(head("B", pid, tid, step) + ",\"name\":" + quoted(e.text) + ",\"cat\":\"" + (agent ? "task" : category_of(g_[e.node].code)) + "\"" + closed());
      break;
    }
    case kind::agent_ends:
    case kind::ends: {
      std::vector<place>& mine = open[{pid, tid}];
      if (mine.empty()) break;
      // A wait that ends: an arrow from what completed it, and its name.
      place const* from = nullptr;
      if (auto const f = begun.find(e.cause); e.cause > 0 && f != begun.end()) from = &f->second;
      if (auto const f = started.find(e.copy); e.copy > 0 && f != started.end()) from = &f->second;
      if (from) {
        arg("released by", quoted(from->what + ", " + agents[{from->pid, from->tid}])); // names of agents in clusters tell their CTA
        if (from->step != mine.back().step) { // the last to meet waits for nobody
          std::string const flow = ",\"name\":\"releases\",\"cat\":\"releases\",\"id\":" + std::to_string(++flows);
          line(head("s", from->pid, from->tid, from->step) + flow + "}");
          line(head("f", pid, tid, step) + ",\"bp\":\"e\"" + flow + "}");
        }
      } else if (e.node >= 0 && g_[e.node].code == op::barrier_wait && e.phase < 0) {
        arg("released by", quoted("nothing yet: this parity passes before the first phase is complete"));
      }
      if (e.phase >= 0) arg("phase", std::to_string(e.phase));
      line(head("E", pid, tid, step) + ",\"name\":" + quoted(mine.back().what) + closed());
      mine.pop_back();
      break;
    }
    case kind::copy_starts: {
      std::string const name = e.text + ", " + std::to_string(e.bytes) + " B";
      flying[e.copy] = {pid, name};
      started[e.copy] = {pid, tid, step, e.text};
      arg("bytes", std::to_string(e.bytes));
      arg("issued by", quoted(agents[{pid, tid}]));
      line(head("b", pid, tid, step) + ",\"name\":" + quoted(name) + ",\"cat\":\"copy in flight\",\"id\":" + std::to_string(e.copy) + closed());
      break;
    }
    case kind::copy_lands:
      if (auto const f = flying.find(e.copy); f != flying.end()) {
        line(head("e", f->second.first, tid, step) + ",\"name\":" + quoted(f->second.second) + ",\"cat\":\"copy in flight\",\"id\":" + std::to_string(e.copy) + "}");
        flying.erase(f);
      }
      break;
    }
  }
  // What was under way when the run ended early.
  for (auto& [where, names] : open)
    for (; !names.empty(); names.pop_back())
      line(head("E", where.first, where.second, step + 1) + ",\"name\":" + quoted(names.back().what) + ",\"args\":{\"unfinished\":true}}");
  for (auto const& [id, f] : flying)
    line(head("e", f.first, 0, step + 1) + ",\"name\":" + quoted(f.second) + ",\"cat\":\"copy in flight\",\"id\":" + std::to_string(id) + ",\"args\":{\"unfinished\":true}}");
  return out + "\n]}\n";
}

} // namespace kiln::tool
