// The body of every operation. A row of ops.def without one does not build.
#pragma once
#include "src/interpreter/machine.hpp"

namespace kiln::interpreter {

/// What an operation does: `body<op::add>::run(agent, node)`. Families of bodies share a source file.
template <op O>
struct body {
  static constexpr bool missing = true;
};

#define KILN_BODY(name)                                                                                                \
  template <>                                                                                                          \
  struct body<op::name> {                                                                                              \
    static constexpr bool missing = false;                                                                             \
    static void run(agent& a, int i);                                                                                  \
  };

// structure.cpp
KILN_BODY(param) KILN_BODY(for_begin) KILN_BODY(for_end) KILN_BODY(if_begin) KILN_BODY(if_else) KILN_BODY(if_end)
KILN_BODY(while_begin) KILN_BODY(while_test) KILN_BODY(while_end) KILN_BODY(var) KILN_BODY(var_get) KILN_BODY(var_set)
KILN_BODY(combine_begin) KILN_BODY(combine_arg) KILN_BODY(combine_end) KILN_BODY(result) KILN_BODY(constant)
KILN_BODY(iota) KILN_BODY(unset) KILN_BODY(program_id) KILN_BODY(num_programs) KILN_BODY(sync)

// unary.cpp
KILN_BODY(neg) KILN_BODY(bit_not) KILN_BODY(abs) KILN_BODY(exp) KILN_BODY(exp2) KILN_BODY(log) KILN_BODY(log2)
KILN_BODY(sqrt) KILN_BODY(rsqrt) KILN_BODY(sin) KILN_BODY(cos) KILN_BODY(tanh) KILN_BODY(erf) KILN_BODY(floor)
KILN_BODY(ceil) KILN_BODY(round) KILN_BODY(isnan) KILN_BODY(cast) KILN_BODY(bitcast)

// binary.cpp
KILN_BODY(add) KILN_BODY(sub) KILN_BODY(mul) KILN_BODY(div) KILN_BODY(rem) KILN_BODY(bit_and) KILN_BODY(bit_or)
KILN_BODY(bit_xor) KILN_BODY(shl) KILN_BODY(shr) KILN_BODY(min) KILN_BODY(max) KILN_BODY(eq) KILN_BODY(ne) KILN_BODY(lt)
KILN_BODY(le) KILN_BODY(gt) KILN_BODY(ge) KILN_BODY(fma) KILN_BODY(where)

// shape.cpp
KILN_BODY(broadcast) KILN_BODY(reshape) KILN_BODY(trans) KILN_BODY(join) KILN_BODY(split) KILN_BODY(gather)

// reduction.cpp
KILN_BODY(reduce) KILN_BODY(arg_reduce) KILN_BODY(scan)

// order.cpp
KILN_BODY(histogram) KILN_BODY(sort) KILN_BODY(topk)

// random.cpp
KILN_BODY(philox)

// dot.cpp
KILN_BODY(dot)

// global.cpp
KILN_BODY(ptr_add) KILN_BODY(extent) KILN_BODY(stride) KILN_BODY(array_data) KILN_BODY(region) KILN_BODY(load)
KILN_BODY(store) KILN_BODY(atomic_rmw) KILN_BODY(atomic_cas)

// local.cpp
KILN_BODY(alloc) KILN_BODY(view_index) KILN_BODY(view_trans) KILN_BODY(view_slice) KILN_BODY(view_reshape)
KILN_BODY(local_load) KILN_BODY(local_store) KILN_BODY(local_gather) KILN_BODY(local_scatter) KILN_BODY(async_load)
KILN_BODY(async_commit) KILN_BODY(async_wait)

// rendezvous.cpp
KILN_BODY(alloc_barriers) KILN_BODY(barrier_index) KILN_BODY(barrier_wait) KILN_BODY(barrier_arrive)
KILN_BODY(barrier_expect_bytes) KILN_BODY(named_barrier_wait) KILN_BODY(named_barrier_arrive) KILN_BODY(agent_sync)
KILN_BODY(fence) KILN_BODY(async_arrive) KILN_BODY(async_load_bulk) KILN_BODY(async_store_bulk) KILN_BODY(async_store_wait)

// tasks.cpp
KILN_BODY(tasks_begin) KILN_BODY(tasks_end) KILN_BODY(task_begin) KILN_BODY(task_end) KILN_BODY(replica_id)

// cluster.cpp
KILN_BODY(cluster_rank) KILN_BODY(remote_barrier) KILN_BODY(remote_store) KILN_BODY(async_remote_store) KILN_BODY(async_remote_copy)
KILN_BODY(cluster_barrier) KILN_BODY(fence_barrier_init)

// checks.cpp
KILN_BODY(device_assert) KILN_BODY(device_print) KILN_BODY(assume) KILN_BODY(prefetch) KILN_BODY(multiple_of) KILN_BODY(max_contiguous)
KILN_BODY(require_layout) KILN_BODY(release_layout) KILN_BODY(assert_layout) KILN_BODY(dump_layout)

// local.cpp
KILN_BODY(tensor_alloc) KILN_BODY(tensor_dealloc)

#undef KILN_BODY

#define KILN_OP(name, least, most, traits, attributes, summary)                                                        \
  static_assert(!body<op::name>::missing, "operation " #name " has no body in the interpreter");
#include <kiln/graph/ops.def>

/// Reports copies that nobody has waited for when the kernel ends.
void check_exit(agent& a);
/// Copies to other CTAs that may still read the memory of a CTA that ends.
void check_copies_out(agent& a);
/// When all CTAs of a cluster have ended: whether each knew of all that others did to it.
void check_reached(agent& a);
/// An agent reaches a barrier of another CTA.
void check_remote_barrier(agent& a, int node, int slot);

/// The bits of a view's elements, checked as a read by node i. In carrier type.
void read_view(agent& a, int i, data const& view, std::vector<u64>& bits);

} // namespace kiln::interpreter
