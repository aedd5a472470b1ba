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
// global.cpp
KILN_SIMT_LOWERING(region)
KILN_SIMT_LOWERING(load)
KILN_SIMT_LOWERING(store)
KILN_SIMT_LOWERING(atomic_rmw)
KILN_SIMT_LOWERING(atomic_cas)
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
#undef KILN_SIMT_LOWERING

/// A product on the matrix unit (matrix.cpp).
registers matrix_dot(lowerer& k, int node, matrix_product const& p);

/// Element-wise operations share one body; what they do to an element is in elementwise.cpp.
template <op O>
requires(has(O, trait::elementwise)) struct lowering<O> {
  static registers emit(lowerer& k, int node) { return k.element_wise(node, k.plan.of(node)); }
};

/// Tasks and what they meet at: see `unsupported`.
template <op O>
requires(is_of_tasks(O)) struct lowering<O> {
  static registers emit(lowerer& k, int node) {
    k.fail(node, "kiln[R-TG01] " + std::string(name_of(O)) +
                     ": tasks, memory barriers and bulk copies are not compiled for GPUs yet; kiln::check runs them on the host");
  }
};

/// An operation that a target refuses, with what the user reads.
struct refusal {
  op code;
  target_family family;
  char const* reason; ///< "missing feature; alternative"
};
inline constexpr refusal unsupported[] = {
    {op::device_print, target_family::amdgpu,
     "AMD GPUs print through a service of the HIP runtime that kiln does not link; store the values to a buffer, or "
     "run "
     "the kernel on the host"},
};

} // namespace kiln::jit::simt
