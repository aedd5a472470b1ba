// The machine that runs a graph: a launch has CTAs, a CTA has local memory, barriers and agents, an agent has a program
// counter and the content of every node. Bodies of operations (bodies.hpp) see it through `agent`.
//
// CTAs of a cluster whose CTAs reach each other run together (class cluster); any other CTA is a cluster of its own.
//
// A CTA runs on a fiber. Where tasks begin, that fiber becomes their scheduler: every replica of every task is an agent on a
// fiber of its own, chosen by the seed among those that are not blocked. When all are blocked, the engines deliver one more
// copy; when they have none, that is a deadlock.
#pragma once
#include <kiln/interpreter/interpreter.hpp>

#include "src/interpreter/data.hpp"
#include "src/interpreter/fiber.hpp"
#include "src/interpreter/global_shadow.hpp"
#include "src/interpreter/local_memory.hpp"
#include "src/interpreter/rendezvous.hpp"

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <sstream>

namespace kiln::interpreter {

/// Thrown through an agent when the whole run is over: a device_assert failed, or the step limit is reached.
struct stop_run {};

/// One run over a grid.
class launch {
public:
  launch(graph_view g, dims grid, std::span<host_argument const> arguments, run_options const& options);
  report run();

  graph_view const graph;
  dims const grid;
  std::span<host_argument const> const arguments;
  run_options const& options;
  std::mt19937_64 random;
  report result;
  i64 steps = 0;
  i64 time = 0;         ///< of traces
  u64 traced_copies = 0;
  arena_layout arena;
  lanes clocks;
  global_shadow global;

  bool doubled() const { return options.precision == precision::doubled; }
  /// The type in which values of `t` are kept between operations.
  dtype carrier(dtype t) const { return doubled() && is_float(t) && !is_f8(t) ? dtype::f64 : t; }

  /// Adds a fault at a node, or counts it when that node broke that rule before. `who`: the agent, empty for the kernel's own.
  void add_fault(int node, char const* rule, std::string const& what, dims cta, std::string const& who = {});
  /// Whether a fault of this node and rule would be news; saves writing the text.
  bool knows(int node, char const* rule);

private:
  void check_arguments() const;
  std::map<std::pair<int, std::string>, std::size_t> known_;
};

class agent;
class cta;

/// CTAs that run together: their barriers, and the names of their agents.
class cluster {
public:
  /// `id`: of its first CTA.
  cluster(launch& l, i32 number, dims id);
  ~cluster();
  launch& run;
  i32 const number; ///< linear
  rendezvous meeting;
  std::vector<agent*> agents;     ///< of all CTAs; null before and after their tasks
  std::vector<std::string> names; ///< of agents, for messages
  std::vector<std::unique_ptr<cta>> ctas; ///< by rank

  /// Runs one of them until it blocks, or takes turns.
  void resume();
  bool done() const;
  bool alone() const { return ctas.size() == 1; }

private:
  void agent_names();
  std::size_t turn_ = 0;
};

/// The last access from another CTA, by lane.
struct remote_touch {
  u32 value = 0;
  int node = -1, agent = -1;
};

/// One CTA: its local memory, and its agents on fibers.
class cta {
public:
  cta(cluster& c, int rank, dims id);
  ~cta();
  launch& run;
  cluster& group;
  dims const id;
  int const rank;        ///< in the cluster
  int const first_agent, first_slot; ///< numbers of its agents and barriers begin here
  u64 accesses = 0;    ///< to global memory that is followed
  u64 acquired = 0;    ///< releases of all CTAs that this one has seen
  local_memory local;
  rendezvous& meeting;
  std::vector<agent*>& agents;
  std::vector<std::string> const& names;
  std::vector<remote_touch> touched; ///< by lane; empty: no other CTA has reached it
  bool ended = false;
  clock at_end;        ///< what was behind it then
  std::unique_ptr<agent> worker; ///< the kernel's own
  fiber thread;

  std::string const& name_of(int agent) const { return names[static_cast<std::size_t>(agent)]; }
  std::string barrier_name(int slot) const;
  /// Runs the tasks of a region, from its scheduler, the kernel's own agent.
  void run_tasks(int begin);
  /// Nobody can go on, and no engine has anything left: reports who waits for what, and ends the run.
  [[noreturn]] void deadlock();
  /// Another CTA reaches this one's memory or barriers: an access of its agent, or (lane >= 0) a copy that completes later.
  void touch(agent& by, int node, int lane = -1, u32 value = 0);
};

/// What executes: a set of warps with one program order. The whole CTA, or a replica of a task.
class agent {
public:
  agent(cta& c, int id);

  cta& block;
  launch& run;
  graph_view const& graph;
  int const id;     ///< in the cluster
  int const number; ///< in the CTA: 0 is the kernel's own
  int replica = 0;
  int threads = 0;
  clock now;           ///< what is behind this agent
  copy_engine copies;
  u64 published = 0;    ///< the CTA's accesses when this agent last showed others what it knows
  fiber* own = nullptr; ///< of a task

  /// Blocks until ready() is true.
  void wait_until(int node, std::function<bool()> ready);
  /// A point where another agent may run, and copies may land.
  void pause();
  std::function<bool()> ready; ///< of a blocked agent
  int waits_at = -1;           ///< the node where it is blocked

  /// Runs the whole graph.
  void run_kernel();
  /// Runs nodes [from, to): a kernel, or the body of a combine.
  void execute(int from, int to);
  /// The node that runs after the present one; bodies of loops and branches change it.
  int next = 0;

  std::vector<data> contents; ///< by node

  // -- for bodies --------------------------------------------------------------------------------------------------------
  bool checking() const { return run.options.check; }
  node const& at(int i) const { return graph[i]; }
  shape const& shape_of(int i) const { return graph.shape_of(i); }
  data& out(int i) { return contents[static_cast<std::size_t>(i)]; }
  /// Operand j of node i, which is present.
  data const& in(int i, int j) const { return contents[static_cast<std::size_t>(graph.operand(i, j))]; }
  /// Operand j, or null.
  data const* optional(int i, int j) const {
    int const o = graph.operand(i, j);
    return o < 0 ? nullptr : &contents[static_cast<std::size_t>(o)];
  }
  /// The result of node i, ready to be filled: its carrier type, its number of elements.
  data& fresh(int i);
  /// Lets other agents and CTAs run.
  void yield() {
    if (own) own->yield();
    else if (run.options.resident_ctas > 1 || !block.group.alone()) block.thread.yield();
  }

  // -- traces ------------------------------------------------------------------------------------------------------------
  bool tracing() const { return static_cast<bool>(run.options.trace); }
  void trace(trace_event e) {
    e.time = ++run.time;
    e.cta = block.id;
    e.agent = number;
    run.options.trace(e);
  }
  /// A number for a copy that starts now, in traces; 0 without. `after`: follows the view's name.
  u64 trace_copy(int node, int view, i64 bytes, char const* what, std::string const& after = {}) {
    if (!tracing()) return 0;
    begun();
    trace({.what = trace_event::kind::copy_starts, .node = node, .copy = ++run.traced_copies, .text = std::string(what) + " " + view_text(view) + after, .bytes = bytes});
    return run.traced_copies;
  }
  /// The operation under way happens now: its `begins`, if it has not been told.
  void begun() {
    if (to_tell.empty()) return;
    trace({.what = trace_event::kind::begins, .node = telling, .text = std::move(to_tell)});
    to_tell.clear();
    began = run.time;
  }
  void run_traced(int node, std::string name);
  std::string to_tell; ///< of the operation under way, when that is traced
  int telling = -1;
  i64 began = 0;            ///< time of the last `begins`
  trace_event released{};   ///< cause, phase and copy of the wait that is about to end
  /// "a[2]" of a view, "full[1]" of a barrier.
  std::string view_text(int view) const;
  /// What an operation is called in a trace; empty: it is not shown.
  std::string trace_text(int node) const;

  bool news(int node, char const* rule) { return run.knows(node, rule) ? (run.add_fault(node, rule, {}, block.id), false) : true; }
  /// Reports a fault: `fault(node, "R-BD10", "what ", x, " is wrong")`.
  template <class... Parts>
  void fault(int node, char const* rule, Parts const&... parts) {
    if (!news(node, rule)) return;
    std::ostringstream s;
    ((s << parts), ...);
    run.add_fault(node, rule, s.str(), block.id, number == 0 ? std::string() : block.name_of(id));
  }
  /// "parameter 2", for messages.
  std::string parameter(int origin) const { return "parameter " + std::to_string(origin); }
  /// "[3,0]", the coordinates of element i of a shape.
  static std::string coordinates(shape const& s, std::size_t i);
  /// The source line of a node, for messages about two places.
  std::string line_of(int node) const;

  struct loop {
    int begin;
    i64 remaining; ///< passes after the present one
    i64 step;
  };
  std::vector<loop> loops;
};

} // namespace kiln::interpreter
