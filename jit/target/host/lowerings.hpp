// Which part of the host lowering is responsible for each operation. A row of ops.def that is missing here does not
// build: every operation has a lowering, or a reason that the user will read.
#pragma once
#include <kiln/graph/op.hpp>

#include <cstdint>
#include <string_view>

namespace kiln::jit::host {

enum class part : std::uint8_t {
  missing,
  argument,    ///< read once at the entry, lower.cpp
  structure,   ///< basic blocks, writer::emit_structure
  scalar_only, ///< CTA-uniform, writer::emit_scalar
  cell,        ///< vars: an alloca or a slice of the arena
  combine,     ///< inside the body of a custom combine, own.cpp
  elementwise, ///< writer::apply
  coordinates, ///< a change of coordinates, writer::pull_fresh
  load,        ///< writer::pull_access and read_guarded
  store,       ///< a root of a nest, nest.cpp
  reduction,   ///< accumulators of a nest, nest.cpp
  own,         ///< brings its own loops: own.cpp, order.cpp, atomic.cpp, dot.cpp
  address,     ///< writer::pull_address, pull_region, view_address
  refused,     ///< not compiled for the host; lower() says so
  nothing,     ///< has no code: one task runs the CTA, copies are eager, promises are not needed
};

constexpr part part_of(op o) {
  switch (o) {
  case op::param: return part::argument;
  case op::for_begin:
  case op::for_end:
  case op::fence:
  case op::if_begin:
  case op::if_else:
  case op::if_end:
  case op::while_begin:
  case op::while_test:
  case op::while_end: return part::structure;
  case op::var:
  case op::var_get:
  case op::var_set: return part::cell;
  case op::combine_begin:
  case op::combine_arg:
  case op::combine_end: return part::combine;
  case op::constant:
  case op::unset:
  case op::iota:
  case op::broadcast:
  case op::reshape:
  case op::trans:
  case op::split:
  case op::gather:
  case op::result: return part::coordinates;
  case op::program_id:
  case op::num_programs:
  case op::extent:
  case op::stride:
  case op::array_data: return part::scalar_only;
  case op::neg:
  case op::bit_not:
  case op::abs:
  case op::exp:
  case op::exp2:
  case op::log:
  case op::log2:
  case op::sqrt:
  case op::rsqrt:
  case op::sin:
  case op::cos:
  case op::tanh:
  case op::erf:
  case op::floor:
  case op::ceil:
  case op::round:
  case op::isnan:
  case op::cast:
  case op::bitcast:
  case op::add:
  case op::sub:
  case op::mul:
  case op::div:
  case op::rem:
  case op::bit_and:
  case op::bit_or:
  case op::bit_xor:
  case op::shl:
  case op::shr:
  case op::min:
  case op::max:
  case op::eq:
  case op::ne:
  case op::lt:
  case op::le:
  case op::gt:
  case op::ge:
  case op::fma:
  case op::where:
  case op::philox:
  case op::multiple_of:
  case op::require_layout:
  case op::release_layout:
  case op::max_contiguous: return part::elementwise;
  case op::ptr_add:
  case op::region:
  case op::alloc:
  case op::view_index:
  case op::view_trans:
  case op::view_slice:
  case op::view_reshape: return part::address;
  case op::load:
  case op::local_load:
  case op::local_gather: return part::load;
  case op::store:
  case op::local_store:
  case op::async_load:
  case op::device_assert: return part::store;
  case op::reduce:
  case op::arg_reduce: return part::reduction;
  case op::join:
  case op::scan:
  case op::dot:
  case op::histogram:
  case op::sort:
  case op::topk:
  case op::atomic_rmw:
  case op::atomic_cas:
  case op::local_scatter:
  case op::device_print: return part::own;
  case op::async_commit:
  case op::async_wait:
  case op::sync:
  case op::assume:
  case op::prefetch: // the hardware looks ahead by itself
  case op::assert_layout:
  case op::dump_layout:
  case op::tensor_alloc:
  case op::tensor_dealloc: return part::nothing;
  case op::alloc_barriers:
  case op::barrier_index:
  case op::barrier_wait:
  case op::barrier_arrive:
  case op::barrier_expect_bytes:
  case op::named_barrier_wait:
  case op::named_barrier_arrive:
  case op::agent_sync:
  case op::async_arrive:
  case op::async_load_bulk:
  case op::async_store_bulk:
  case op::async_store_wait:
  case op::tasks_begin:
  case op::tasks_end:
  case op::task_begin:
  case op::task_end:
  case op::replica_id:
  case op::cluster_rank:
  case op::remote_barrier:
  case op::remote_store:
  case op::async_remote_store:
  case op::async_remote_copy:
  case op::cluster_barrier:
  case op::fence_barrier_init: return part::refused;
  }
  return part::missing;
}

static_assert(
    [] {
      for (int i = 0; i < op_count; ++i)
        if (part_of(static_cast<op>(i)) == part::missing) return false;
      return true;
    }(),
    "an operation of ops.def has no lowering for the host");

// apply() covers what ops.def calls element-wise, and address arithmetic covers views: a new row of these kinds that is
// filed elsewhere by mistake does not build either.
static_assert(
    [] {
      for (int i = 0; i < op_count; ++i) {
        const op o = static_cast<op>(i);
        if (has(o, trait::elementwise) && part_of(o) != part::elementwise && o != op::ptr_add) return false;
        if (has(o, trait::view) && part_of(o) != part::address) return false;
      }
      return true;
    }(),
    "an element-wise or view operation is filed under another part of the host lowering");

} // namespace kiln::jit::host
