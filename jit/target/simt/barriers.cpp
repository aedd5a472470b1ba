// Memory barriers, named barriers, fences, and the copies that a copy engine makes: the whole agent waits, one thread of it
// arrives, expects and issues. What the others did before is brought in front of that by the barrier that insert_barriers
// places before a `release`, and before a copy that conflicts.
#include "lowerings.hpp"

#include <kiln/layout/blocked.hpp>

namespace kiln::jit::simt {

namespace {

/// Runs `body` where predicate operand `j` (if there is one) holds; it is the same for all threads.
void where(lowerer& k, int node, int j, std::function<void()> const& body) {
  int const p = k.g.operand(node, j);
  if (p < 0) return body();
  llvm::BasicBlock *yes = k.block("if"), *after = k.block("endif");
  k.b.CreateCondBr(k.scalar(p), yes, after);
  k.b.SetInsertPoint(yes);
  k.structure({.what = local_event::kind::branch_begin});
  body();
  k.b.CreateBr(after);
  k.b.SetInsertPoint(after);
  k.structure({.what = local_event::kind::branch_end});
}

void elected(lowerer& k, std::function<void()> const& body) { k.when(k.b.CreateICmpEQ(k.thread, k.i32(0)), body); }

bool each_thread_arrives(lowerer& k, int index) { return k.g.attribute(k.g.operand(index, 0), 2) != 0; }

std::int64_t bytes_of_row(lowerer& k, int view) { return bytes_of(k.type(view), k.g.shape_of(view).elements()); }

} // namespace

Value* barrier_address(lowerer& k, int node) {
  if (k.g[node].code == op::remote_barrier) node = k.g.operand(node, 0);
  int const all = k.g.operand(node, 0), index = k.g.operand(node, 1);
  std::int64_t const first = k.barrier_offset.at(all), count = k.g.attribute(all, 0);
  if (auto const c = constant_of(k.facts, index)) {
    if (*c < 0 || *c >= count)
      k.fail(node, "kiln[R-BD05] barrier index " + std::to_string(*c) + ", valid 0.." + std::to_string(count - 1));
    return k.arena(first + 8 * *c);
  }
  Value* i = k.b.CreateSExtOrTrunc(k.scalar(index), k.b.getInt32Ty());
  return k.b.CreateInBoundsGEP(k.b.getInt8Ty(), k.arena(first), k.b.CreateShl(i, 3));
}
void lowerer::make_barriers() {
  bool any = false;
  for (int i = 0; i < g.size(); ++i) any |= g[i].code == op::alloc_barriers;
  if (!any) return;
  elected(*this, [&] {
    for (auto const& [node, at] : barrier_offset)
      for (std::int64_t j = 0; j < g.attribute(node, 0); ++j) hw->barrier_init(arena(at + 8 * j), static_cast<int>(g.attribute(node, 1)));
    hw->barriers_made();
  });
  agent_barrier(false); // the warps of tasks meet these later
}

registers lowering<op::alloc_barriers>::emit(lowerer&, int) { return {}; } // made at the start, see make_barriers
registers lowering<op::barrier_index>::emit(lowerer&, int) { return {}; }  // arithmetic, done where it is used

registers lowering<op::barrier_wait>::emit(lowerer& k, int node) {
  where(k, node, 2, [&] {
    Value* parity = k.b.CreateAnd(k.scalar(k.g.operand(node, 1)), k.i32(1));
    k.hw->barrier_wait(barrier_address(k, k.g.operand(node, 0)), parity);
    k.structure({.what = local_event::kind::other});
  });
  return {};
}

registers lowering<op::barrier_arrive>::emit(lowerer& k, int node) {
  where(k, node, 1, [&] {
    int const barrier = k.g.operand(node, 0), count = static_cast<int>(k.g.attribute(node, 0));
    bool const elsewhere = k.g[barrier].code == op::remote_barrier, away = elsewhere && k.cluster_ctas() > 1;
    Value* at = barrier_address(k, barrier);
    if (away) at = k.hw->remote(at, k.scalar(k.g.operand(barrier, 1)));
    auto arrive = [&] { away ? k.hw->remote_arrive(at, count) : k.hw->barrier_arrive(at, count); };
    if (each_thread_arrives(k, elsewhere ? k.g.operand(barrier, 0) : barrier)) return arrive();
    k.touch(local_event::kind::release, {});
    elected(k, arrive);
  });
  return {};
}

registers lowering<op::barrier_expect_bytes>::emit(lowerer& k, int node) {
  if (!k.hw->has_bulk_copies())
    k.fail(node, "kiln[R-TG01] barrier_expect_bytes is not available on " + std::string(k.target.name()) +
                     " (no engine there signals bytes on a barrier); use async_load with async_load_arrive, or wait and arrive");
  where(k, node, 1, [&] {
    Value* const at = barrier_address(k, k.g.operand(node, 0));
    k.touch(local_event::kind::release, {});
    elected(k, [&] { k.hw->barrier_expect(at, k.g.attribute(node, 0)); });
  });
  return {};
}

registers lowering<op::named_barrier_wait>::emit(lowerer& k, int node) {
  k.hw->named_barrier(k.i32(k.g.attribute(node, 0)), static_cast<int>(k.g.attribute(node, 1)), true);
  k.structure({.what = local_event::kind::barrier});
  return {};
}
registers lowering<op::named_barrier_arrive>::emit(lowerer& k, int node) {
  k.hw->named_barrier(k.i32(k.g.attribute(node, 0)), static_cast<int>(k.g.attribute(node, 1)), false);
  return {};
}
registers lowering<op::agent_sync>::emit(lowerer& k, int) {
  k.agent_barrier(true);
  k.structure({.what = local_event::kind::barrier});
  return {};
}

registers lowering<op::fence>::emit(lowerer& k, int node) {
  switch (static_cast<fence>(k.g.attribute(node, 0))) {
  case fence::async_shared:
    k.hw->fence_async_shared();
    k.structure({.what = local_event::kind::fence});
    break;
  case fence::gpu:
  case fence::sys: {
    auto const scope = static_cast<fence>(k.g.attribute(node, 0)) == fence::gpu ? memory_scope::gpu : memory_scope::system;
    k.b.CreateFence(llvm::AtomicOrdering::AcquireRelease, k.context.getOrInsertSyncScopeID(k.hw->scope_name(scope)));
    k.structure({.what = local_event::kind::other});
    break;
  }
  }
  return {};
}

registers lowering<op::async_arrive>::emit(lowerer& k, int node) {
  k.hw->copies_arrive(barrier_address(k, k.g.operand(node, 0)), k.copies_by_store);
  k.structure({.what = local_event::kind::other});
  return {};
}

// -- bulk copies -------------------------------------------------------------------------------------------------------------

registers lowering<op::async_load_bulk>::emit(lowerer& k, int node) {
  if (!k.hw->has_bulk_copies())
    k.fail(node, "kiln[R-TG01] async_load_bulk is not available on " + std::string(k.target.name()) +
                     " (no bulk copies); use async_load with async_load_arrive");
  where(k, node, 3, [&] {
    int const view = k.g.operand(node, 1);
    view_value const v = k.view(view);
    Value *const from = k.scalar(k.g.operand(node, 0)), *const at = barrier_address(k, k.g.operand(node, 2));
    local_event e{.what = local_event::kind::async_write, .bytes = k.bytes_of_view(v), .slot = v.slot, .bulk = true};
    k.touch(std::move(e));
    elected(k, [&] { k.hw->bulk_load(v.pointer, from, bytes_of_row(k, view), at, static_cast<evict>(k.g.attribute(node, 0))); });
  });
  return {};
}

registers lowering<op::async_store_bulk>::emit(lowerer& k, int node) {
  int const view = k.g.operand(node, 1);
  view_value const v = k.view(view);
  Value* const to = k.scalar(k.g.operand(node, 0));
  if (k.hw->has_bulk_copies()) {
    k.touch({.what = local_event::kind::async_read, .bytes = k.bytes_of_view(v), .slot = v.slot, .bulk = true});
    elected(k, [&] { k.hw->bulk_store(to, v.pointer, bytes_of_row(k, view)); });
    return {};
  }
  // At once, by all threads: 16 bytes where the row is long enough.
  std::vector<std::int64_t> const extents{k.g.shape_of(view).extent[0]};
  linear_layout const l = normal_form(default_blocked_layout(extents, {.element_bits = storage_bits_of(v.type),
                                                                       .num_warps = k.cta.num_warps,
                                                                       .warp_size = k.cta.warp_size,
                                                                       .max_vector_bytes = 16}),
                                      k.cta);
  auto const x = k.read_view(v, l);
  llvm::Type* const element = k.memory_type(v.type);
  k.when(k.is_owner(l), [&] {
    f2_word const copies = owners(l).reg;
    for (std::size_t r = 0; r < x.size(); ++r) {
      if (r & copies) continue;
      k.when(k.inside(l, v.extents, static_cast<int>(r)), [&] {
        Value* p = k.b.CreateGEP(element, to, k.coordinate(l, 0, static_cast<int>(r)));
        k.b.CreateAlignedStore(k.to_memory(x[r], v.type), p, llvm::Align(static_cast<std::uint64_t>(bytes_of(v.type))));
      });
    }
  });
  k.structure({.what = local_event::kind::other});
  return {};
}

registers lowering<op::async_store_wait>::emit(lowerer& k, int node) {
  if (!k.hw->has_bulk_copies()) return {};
  auto const pending = static_cast<int>(k.g.attribute(node, 0));
  elected(k, [&] { k.hw->bulk_wait(pending, k.g.attribute(node, 1) != 0); });
  k.structure({.what = local_event::kind::store_wait, .drains = pending == 0});
  return {};
}

} // namespace kiln::jit::simt
