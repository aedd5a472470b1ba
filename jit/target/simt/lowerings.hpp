// One lowering per operation. `lowering<O>::emit` gives the registers of the result in the layout that was assigned; a
// missing specialisation does not build (lower.cpp). What a target refuses is said in `unsupported`.
#pragma once

#include "lowerer.hpp"

namespace kiln::jit::simt {

template <op O> struct lowering; // a hole is incomplete

#define KILN_SIMT_LOWERING(name)                                                                                       \
  template <> struct lowering<op::name> { static registers emit(lowerer& k, int node); };
// structure.cpp
KILN_SIMT_LOWERING(param)
KILN_SIMT_LOWERING(for_begin)
KILN_SIMT_LOWERING(for_end)
KILN_SIMT_LOWERING(if_begin)
KILN_SIMT_LOWERING(if_else)
KILN_SIMT_LOWERING(if_end)
KILN_SIMT_LOWERING(while_begin)
KILN_SIMT_LOWERING(while_test)
KILN_SIMT_LOWERING(while_end)
KILN_SIMT_LOWERING(var)
KILN_SIMT_LOWERING(var_get)
KILN_SIMT_LOWERING(var_set)
KILN_SIMT_LOWERING(combine_begin)
KILN_SIMT_LOWERING(combine_arg)
KILN_SIMT_LOWERING(combine_end)
KILN_SIMT_LOWERING(result)
KILN_SIMT_LOWERING(constant)
KILN_SIMT_LOWERING(iota)
KILN_SIMT_LOWERING(unset)
KILN_SIMT_LOWERING(program_id)
KILN_SIMT_LOWERING(num_programs)
KILN_SIMT_LOWERING(extent)
KILN_SIMT_LOWERING(stride)
KILN_SIMT_LOWERING(array_data)
KILN_SIMT_LOWERING(assume)
KILN_SIMT_LOWERING(device_assert)
KILN_SIMT_LOWERING(device_print)
// move.cpp
KILN_SIMT_LOWERING(broadcast)
KILN_SIMT_LOWERING(reshape)
KILN_SIMT_LOWERING(trans)
KILN_SIMT_LOWERING(join)
KILN_SIMT_LOWERING(split)
KILN_SIMT_LOWERING(gather)
// reduce.cpp
KILN_SIMT_LOWERING(reduce)
KILN_SIMT_LOWERING(arg_reduce)
KILN_SIMT_LOWERING(scan)
// order.cpp
KILN_SIMT_LOWERING(histogram)
// sort.cpp
KILN_SIMT_LOWERING(sort)
KILN_SIMT_LOWERING(topk)
// global.cpp
KILN_SIMT_LOWERING(region)
KILN_SIMT_LOWERING(load)
KILN_SIMT_LOWERING(store)
KILN_SIMT_LOWERING(atomic_rmw)
KILN_SIMT_LOWERING(atomic_cas)
KILN_SIMT_LOWERING(prefetch)
// local.cpp
KILN_SIMT_LOWERING(dot)
KILN_SIMT_LOWERING(alloc)
KILN_SIMT_LOWERING(view_index)
KILN_SIMT_LOWERING(view_trans)
KILN_SIMT_LOWERING(view_slice)
KILN_SIMT_LOWERING(view_reshape)
KILN_SIMT_LOWERING(local_load)
KILN_SIMT_LOWERING(local_store)
KILN_SIMT_LOWERING(local_gather)
KILN_SIMT_LOWERING(local_scatter)
KILN_SIMT_LOWERING(async_load)
KILN_SIMT_LOWERING(async_commit)
KILN_SIMT_LOWERING(async_wait)
KILN_SIMT_LOWERING(sync)
// barriers.cpp
KILN_SIMT_LOWERING(alloc_barriers)
KILN_SIMT_LOWERING(barrier_index)
KILN_SIMT_LOWERING(barrier_wait)
KILN_SIMT_LOWERING(barrier_arrive)
KILN_SIMT_LOWERING(barrier_expect_bytes)
KILN_SIMT_LOWERING(named_barrier_wait)
KILN_SIMT_LOWERING(named_barrier_arrive)
KILN_SIMT_LOWERING(agent_sync)
KILN_SIMT_LOWERING(fence)
KILN_SIMT_LOWERING(async_arrive)
KILN_SIMT_LOWERING(async_load_bulk)
KILN_SIMT_LOWERING(async_store_bulk)
KILN_SIMT_LOWERING(async_store_wait)
// cluster.cpp
KILN_SIMT_LOWERING(cluster_rank)
KILN_SIMT_LOWERING(remote_barrier)
KILN_SIMT_LOWERING(remote_store)
KILN_SIMT_LOWERING(async_remote_store)
KILN_SIMT_LOWERING(async_remote_copy)
KILN_SIMT_LOWERING(cluster_barrier)
KILN_SIMT_LOWERING(fence_barrier_init)
// tasks.cpp
KILN_SIMT_LOWERING(tasks_begin)
KILN_SIMT_LOWERING(tasks_end)
KILN_SIMT_LOWERING(task_begin)
KILN_SIMT_LOWERING(task_end)
KILN_SIMT_LOWERING(replica_id)
KILN_SIMT_LOWERING(require_layout)
KILN_SIMT_LOWERING(assert_layout)
KILN_SIMT_LOWERING(dump_layout)
KILN_SIMT_LOWERING(tensor_alloc)
KILN_SIMT_LOWERING(tensor_dealloc)
#undef KILN_SIMT_LOWERING

/// Where one of several barriers lies in this CTA; of a remote one, where its counterpart does (barriers.cpp).
Value* barrier_address(lowerer& k, int barrier);
/// A product on the matrix unit (matrix.cpp).
registers matrix_dot(lowerer& k, int node, matrix_product const& p);

/// Element-wise operations share one body; what they do to an element is in elementwise.cpp.
template <op O>
requires(has(O, trait::elementwise)) struct lowering<O> {
  static registers emit(lowerer& k, int node) { return k.element_wise(node, k.plan.of(node)); }
};

/// An operation that a target refuses, with what the user reads.
struct refusal {
  op code;
  target_family family;
  char const* reason; ///< "missing feature; alternative"
};
#define KILN_NO_MEMORY_BARRIERS "AMD GPUs have no memory barriers that kiln uses yet; use async_load_wait_group and sync, or run the kernel on the host"
#define KILN_NO_NAMED_BARRIERS "AMD GPUs have no barrier for a part of a CTA that kiln uses yet; use sync, or run the kernel on the host"
inline constexpr refusal unsupported[] = {
    {op::device_print, target_family::amdgpu,
     "AMD GPUs print through a service of the HIP runtime that kiln does not link; store the values to a buffer, or "
     "run "
     "the kernel on the host"},
    {op::alloc_barriers, target_family::amdgpu, KILN_NO_MEMORY_BARRIERS},
    {op::async_arrive, target_family::amdgpu, KILN_NO_MEMORY_BARRIERS},
    {op::async_load_bulk, target_family::amdgpu, KILN_NO_MEMORY_BARRIERS},
    {op::named_barrier_wait, target_family::amdgpu, KILN_NO_NAMED_BARRIERS},
    {op::named_barrier_arrive, target_family::amdgpu, KILN_NO_NAMED_BARRIERS},
};
#undef KILN_NO_MEMORY_BARRIERS
#undef KILN_NO_NAMED_BARRIERS

} // namespace kiln::jit::simt
