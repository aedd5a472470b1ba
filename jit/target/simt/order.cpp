// Histograms: one table of counters in shared memory, counted by atomic additions of 1. NVIDIA's hardware merges those of a warp
// to one address, so that equal elements cost no more than different ones and neither warps nor lanes need tables of their own.
#include "lowerings.hpp"

#include "jit/emit/loop.hpp"

#include <algorithm>
#include <kiln/layout/ownership.hpp>

namespace kiln::jit::simt {

using enum layout_dim;

// Elements outside the bins, without their mask, or of the padding are counted in one bin more, which nobody reads.
registers lowering<op::histogram>::emit(lowerer& k, int node) {
  auto& b = k.b;
  int const from = k.g.operand(node, 0), mask = k.g.operand(node, 1);
  dtype const t = k.type(from);
  shape const& s = k.g.shape_of(from);
  std::int64_t const bins = k.g.shape_of(node).extent[0];
  linear_layout const l = k.layout_of_use(from);
  registers const x = k.get(from, l), given = mask >= 0 ? k.get(mask, l) : registers{};

  // Every thread clears as many words as any other.
  std::int64_t const threads = k.cta.threads(), rounds = (bins + threads) / threads, bytes = 4 * rounds * threads;
  std::int64_t const base = k.scratch(bytes, "a histogram");
  Value* table = k.arena(base);
  llvm::Type* i32 = b.getInt32Ty();
  k.touch(local_event::kind::write, base, bytes);
  auto clear = [&](Value* word) { b.CreateStore(k.i32(0), b.CreateInBoundsGEP(i32, table, b.CreateAdd(word, k.thread))); };
  if (rounds <= 16)
    for (std::int64_t i = 0; i < rounds; ++i) clear(k.i32(i * threads));
  else
    emit::loop(b, k.i32(0), k.i32(rounds * threads), k.i32(threads), clear, {.at_least_once = true});

  k.touch(local_event::kind::write, base, bytes);
  f2_word const copies = owners(l).reg;
  Value* owner = k.is_owner(l);
  llvm::SyncScope::ID const scope = k.context.getOrInsertSyncScopeID(k.hw->scope_name(memory_scope::cta));
  for (std::size_t r = 0; r < x.r.size(); ++r) {
    if (r & copies) continue;
    Value* v = x.r[r];
    if (bits_of(t) < 32) v = is_signed_int(t) ? b.CreateSExt(v, i32) : b.CreateZExt(v, i32);
    v = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, v, llvm::ConstantInt::get(v->getType(), static_cast<std::uint64_t>(bins)));
    v = b.CreateZExtOrTrunc(v, i32);
    Value* counts = k.all_of(mask >= 0 ? given.r[r] : nullptr, k.inside(l, s, static_cast<int>(r)));
    if (Value* valid = k.all_of(counts, owner)) v = b.CreateSelect(valid, v, k.i32(bins));
    b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, b.CreateInBoundsGEP(i32, table, v), k.i32(1), llvm::Align(4),
                      llvm::AtomicOrdering::Monotonic, scope);
  }

  k.touch(local_event::kind::read, base, bytes);
  view_value counts;
  counts.pointer = table;
  counts.type = dtype::i32;
  counts.extents = k.g.shape_of(node);
  counts.stride[0] = 1;
  counts.align = 16;
  counts.offset = base;
  return {k.read_view(counts, k.plan.of(node))};
}

} // namespace kiln::jit::simt
