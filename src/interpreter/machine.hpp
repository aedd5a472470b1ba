// The machine that runs a graph: a launch has CTAs, a CTA has local memory and an agent, an agent has a program counter and
// the content of every node. Bodies of operations (bodies.hpp) see it through `agent`.
#pragma once
#include <kiln/interpreter/interpreter.hpp>

#include "src/interpreter/data.hpp"
#include "src/interpreter/fiber.hpp"
#include "src/interpreter/local_memory.hpp"

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
  arena_layout arena;

  bool doubled() const { return options.precision == precision::doubled; }
  /// The type in which values of `t` are kept between operations.
  dtype carrier(dtype t) const { return doubled() && is_float(t) && !is_f8(t) ? dtype::f64 : t; }

  /// Adds a fault at a node, or counts it when that node broke that rule before.
  void add_fault(int node, char const* rule, std::string const& what, dims cta);
  /// Whether a fault of this node and rule would be news; saves writing the text.
  bool knows(int node, char const* rule);

private:
  void check_arguments() const;
  std::map<std::pair<int, std::string>, std::size_t> known_;
};

class agent;

/// One CTA: its local memory, and its agent on a fiber.
class cta {
public:
  cta(launch& l, dims id);
  ~cta();
  launch& run;
  dims const id;
  local_memory local;
  std::unique_ptr<agent> worker;
  fiber thread;
};

/// What executes: a set of warps with one program order. Here the whole CTA.
class agent {
public:
  agent(cta& c);

  cta& block;
  launch& run;
  graph_view const& graph;

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
  /// Lets other CTAs run.
  void yield() {
    if (run.options.resident_ctas > 1) block.thread.yield();
  }

  bool news(int node, char const* rule) { return run.knows(node, rule) ? (run.add_fault(node, rule, {}, block.id), false) : true; }
  /// Reports a fault: `fault(node, "R-BD10", "what ", x, " is wrong")`.
  template <class... Parts>
  void fault(int node, char const* rule, Parts const&... parts) {
    if (!news(node, rule)) return;
    std::ostringstream s;
    ((s << parts), ...);
    run.add_fault(node, rule, s.str(), block.id);
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
