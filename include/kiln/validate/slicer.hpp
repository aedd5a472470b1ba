// What makes the program of the hazard simulation from a graph, and all that it knows of a node. Its functions are written down by
// subject: sim_nodes.hpp, sim_boxes.hpp, program.hpp. They are one class without bases, because g++ needs three times as long
// for a member of a distant base as for one of its own.
#pragma once
#include <kiln/validate/sim_program.hpp>

namespace kiln::detail {

/// What a node is to the simulation.
enum class node_class : std::uint8_t { plain, opens, closes, middle, assigns, promise, product, memory, barriers, event };
struct node_classes {
  node_class of[op_count]{};
  bool evaluated[op_count]{}; ///< by `evaluate`, on scalars of integers and b1: the types up to u64
};
inline constexpr node_classes classes_of_nodes = [] {
  node_classes t;
  auto set = [&](op o, node_class c) { t.of[static_cast<int>(o)] = c; };
  set(op::for_begin, node_class::opens);
  set(op::if_begin, node_class::opens);
  set(op::while_begin, node_class::opens);
  set(op::combine_begin, node_class::opens);
  set(op::task_begin, node_class::opens);
  set(op::tasks_begin, node_class::opens);
  set(op::for_end, node_class::closes);
  set(op::if_end, node_class::closes);
  set(op::while_end, node_class::closes);
  set(op::combine_end, node_class::closes);
  set(op::task_end, node_class::closes);
  set(op::tasks_end, node_class::closes);
  set(op::if_else, node_class::middle);
  set(op::while_test, node_class::middle);
  set(op::var_set, node_class::assigns);
  set(op::assume, node_class::promise);
  set(op::dot, node_class::product); // an event where an operand is a view
  set(op::alloc, node_class::memory);
  set(op::alloc_barriers, node_class::barriers);
  set(op::local_load, node_class::event);
  set(op::local_store, node_class::event);
  set(op::local_gather, node_class::event);
  set(op::local_scatter, node_class::event);
  set(op::async_load, node_class::event);
  set(op::async_commit, node_class::event);
  set(op::async_wait, node_class::event);
  set(op::barrier_wait, node_class::event);
  set(op::barrier_arrive, node_class::event);
  set(op::barrier_expect_bytes, node_class::event);
  set(op::named_barrier_wait, node_class::event);
  set(op::named_barrier_arrive, node_class::event);
  set(op::fence, node_class::event);
  set(op::async_arrive, node_class::event);
  set(op::async_load_bulk, node_class::event);
  set(op::async_store_bulk, node_class::event);
  set(op::async_store_wait, node_class::event);
  set(op::remote_store, node_class::event);
  set(op::async_remote_store, node_class::event);
  set(op::async_remote_copy, node_class::event);
  set(op::cluster_barrier, node_class::event);
  set(op::fence_barrier_init, node_class::event);
  for (int i = 0; i < op_count; ++i) t.evaluated[i] = evaluates(static_cast<op>(i));
  return t;
}();

/// All that is known of a node. All zeros is what nothing is known of, which costs a compiler nothing to make; so whatever names
/// something is one more than its number, and registers begin with 1.
struct sliced_node {
  std::int32_t parent;   ///< the region around it
  std::int32_t number;   ///< value number: a node that has the same value
  std::int32_t reg;      ///< register
  std::int32_t symbol;   ///< of its value number
  std::int32_t place;    ///< in the program: of a region its first instruction, of a view its box, of a barrier its reference, of an allocation its first slot
  std::int32_t patch;    ///< of a region: a jump whose target is not known yet; not one more
  std::int32_t next_set, first_set; ///< assignments to a var
  std::int32_t chain;    ///< of the hash table
  std::int64_t folded;   ///< value ^ unknown, where it is constant
  bool live;             ///< anything to the simulation
  bool needed;           ///< a scalar whose value is wanted
  bool kept;             ///< an operation or region that is executed
  bool root;             ///< needed, and from outside the program: a parameter, memory, floating arithmetic
  bool rank;             ///< needed, and where the CTA is in its cluster
  bool varies;           ///< depends on a loop or a var
  node_class kind;
};

/// Makes the program of a verified graph. O(nodes).
class slicer {
public:
  constexpr slicer(graph_view const& g, sim_program& p)
      : nodes_(g.nodes.items), pool_(g.operand_pool.items), attributes_(g.attribute_pool.items), p_(p), g_(g), clusters_(g.attrs.cluster != dims{}) {}
  slicer(slicer const&) = delete;
  constexpr ~slicer() {
    delete[] at_;
    delete[] live_;
    delete[] work_;
    delete[] events_;
    delete[] loops_;
  }

  /// False when the kernel has nothing to simulate.
  constexpr bool run();

  // For the simulation's use after `run`.
  constexpr int parent(int i) const { return at_[i].parent - 1; }
  /// 0: none.
  constexpr int register_of(int i) const { return at_[i].reg; }
  constexpr std::int64_t constant(int i) const { return at_[i].folded ^ unknown; }
  constexpr int value_number(int i);
  constexpr affine affine_of(int i) const;
  constexpr std::int64_t value_of(int i, std::int64_t const* symbols) const;
  constexpr int open_symbol(int i, std::int64_t const* symbols, std::int64_t& divisor) const;
  /// Computed from scalars that do not change while the kernel runs.
  constexpr bool made_of_symbols(int i) const { return at_[i].needed && !at_[i].varies && nodes_[i].code != op::constant && !at_[i].root; }
  /// Index of the symbol that stands for node i, or -1.
  constexpr int symbol_of(int i) const { return at_[i].number == 0 ? -1 : at_[at_[i].number - 1].symbol - 1; }

private:
  // -- what matters of the graph: sim_nodes.hpp
  constexpr std::int32_t const* operands(int i) const { return pool_ + nodes_[i].operands; }
  constexpr bool scan();
  constexpr void mark();
  constexpr void keep_regions(int r);
  constexpr void need_view(int v);
  constexpr void need(int i);
  constexpr void drain();
  constexpr bool is_root(node const& n) const;
  constexpr int cluster_axis(int i) const;
  /// Different at each execution, so that two mentions are two values.
  static constexpr bool fresh(op o) { return !has(o, trait::pure) || o == op::combine_arg || o == op::dot; }
  static constexpr bool is_state(node const& n);
  constexpr void fold();
  constexpr void number();
  constexpr int operand_number(int o) const { return o >= 0 && at_[o].needed ? at_[o].number - 1 : o; }
  constexpr bool equal(int a, int b, int attributes) const;
  // -- views and atoms: sim_boxes.hpp
  constexpr int box_of(int v);
  constexpr void narrow(box& b, int d, int offset, int extent, int from);
  constexpr void cut();
  constexpr int count_cells(int k);
  // -- the program: program.hpp
  constexpr void choose_symbols();
  constexpr void scalars_of(int i, vec<std::int32_t>& out) const;
  constexpr void add_symbol(int i);
  constexpr int new_register(std::int64_t content);
  constexpr instruction& put(sim_op code, int node);
  constexpr void emit();
  constexpr void add_agent(int task, int replica);
  /// The next instruction, as one that something jumps to: it is not fused with those before it.
  constexpr int here() { return landing_ = p_.code.size(); }
  constexpr void new_loop_registers(int i);
  constexpr int constant_register(int i, std::int64_t content);
  constexpr void scalar(int i);
  static constexpr bool is_quick(op o, dtype t);
  constexpr bool makes_ring(int i, int r);
  constexpr void event(int i);
  constexpr void remote_write(int i);
  constexpr void repeat();
  constexpr int guard(int i, int j);
  constexpr void land(int skip);
  constexpr void meet(sim_op code, int i, int b);
  constexpr int barrier(int i);
  constexpr bool access(sim_op code, int i, int view);
  static constexpr int most_atoms = 256;
  static constexpr int small = 64;

  // The most used first: compilers look for a member from the front.
  sliced_node* at_ = nullptr;
  node const* nodes_;
  std::int32_t const* pool_;
  std::int64_t const* attributes_;
  sim_program& p_;
  graph_view const& g_;
  std::int32_t *live_ = nullptr, *work_ = nullptr, *events_ = nullptr, *loops_ = nullptr; ///< lists, with room for all nodes
  int lives_ = 0, works_ = 0, happen_ = 0, repeat_ = 0;
  int landing_ = 0; ///< the last instruction that something jumps to
  int present_ = 0; ///< the agent whose program is written
  bool numbered_ = false;
  bool const clusters_;
  vec<std::int32_t> promises_;
  int small_[small]{};       ///< of a small number: 1 + a node of that value
  vec<std::int32_t> large_;  ///< nodes of other numbers, one for each
};

} // namespace kiln::detail

#include <kiln/validate/program.hpp> // and all other parts
