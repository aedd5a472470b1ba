// Atomics: one element after the other; additions to few counters are summed up by each CTA first. What the processor has no instruction for is a compare-and-swap loop.
#include "writer.hpp"

#include "jit/emit/minmax.hpp"

namespace kiln::jit::host {

namespace {

llvm::AtomicOrdering ordering(memory_order o) {
  switch (o) {
  case memory_order::acquire: return llvm::AtomicOrdering::Acquire;
  case memory_order::release: return llvm::AtomicOrdering::Release;
  case memory_order::acq_rel: return llvm::AtomicOrdering::AcquireRelease;
  default: return llvm::AtomicOrdering::Monotonic;
  }
}
llvm::AtomicOrdering on_failure(llvm::AtomicOrdering o) {
  return o == llvm::AtomicOrdering::Acquire || o == llvm::AtomicOrdering::AcquireRelease
             ? llvm::AtomicOrdering::Acquire
             : llvm::AtomicOrdering::Monotonic;
}

} // namespace

// The old value, as the carrier of the pointer's type.
Value* writer::atomic(int n, Value* p, llvm::ArrayRef<Value*> x) {
  const dtype t = g[g.operand(n, 0)].type;
  const llvm::Align align(static_cast<std::uint64_t>(bytes_of(t)));
  Type *type = carrier(t), *word = b.getIntNTy(static_cast<unsigned>(bits_of(t)));
  if (g[n].code == op::atomic_cas) {
    const auto order = ordering(static_cast<memory_order>(g.attribute(n, 0)));
    Value* r = b.CreateAtomicCmpXchg(p, b.CreateBitCast(x[0], word), b.CreateBitCast(x[1], word), align, order,
                                     on_failure(order));
    return b.CreateBitCast(b.CreateExtractValue(r, 0), type);
  }
  const auto o = static_cast<atomic_op>(g.attribute(n, 0));
  const auto order = ordering(static_cast<memory_order>(g.attribute(n, 1)));
  using rmw = llvm::AtomicRMWInst;
  if (o == atomic_op::xchg)
    return b.CreateBitCast(b.CreateAtomicRMW(rmw::Xchg, p, b.CreateBitCast(x[0], word), align, order), type);
  if (is_int(t)) {
    const bool s = is_signed_int(t);
    const rmw::BinOp code = o == atomic_op::add       ? rmw::Add
                            : o == atomic_op::min     ? (s ? rmw::Min : rmw::UMin)
                            : o == atomic_op::max     ? (s ? rmw::Max : rmw::UMax)
                            : o == atomic_op::bit_and ? rmw::And
                            : o == atomic_op::bit_or  ? rmw::Or
                                                      : rmw::Xor;
    return b.CreateAtomicRMW(code, p, x[0], align, order);
  }
  // Floating: compute and swap until nobody came between.
  auto* first = b.CreateAlignedLoad(word, p, align);
  first->setAtomic(llvm::AtomicOrdering::Monotonic);
  auto* before = b.GetInsertBlock();
  auto* again = llvm::BasicBlock::Create(c, "swap", function_);
  auto* done = llvm::BasicBlock::Create(c, "swapped", function_);
  b.CreateBr(again);
  b.SetInsertPoint(again);
  auto* old = b.CreatePHI(word, 2);
  old->addIncoming(first, before);
  Value* value = b.CreateBitCast(old, type);
  Value *lhs = value, *rhs = x[0];
  const bool narrow = bits_of(t) < 32;
  if (narrow) {
    lhs = widen_float(lhs, t);
    rhs = widen_float(rhs, t);
  }
  Value* made = o == atomic_op::add
                    ? b.CreateFAdd(lhs, rhs)
                    : emit::float_extremum(e, o == atomic_op::max ? emit::extremum::maximum : emit::extremum::minimum,
                                           nan_mode::ignore, lhs, rhs);
  if (narrow) made = narrow_float(made, t);
  Value* r = b.CreateAtomicCmpXchg(p, old, b.CreateBitCast(made, word), align, order, on_failure(order));
  old->addIncoming(b.CreateExtractValue(r, 0), b.GetInsertBlock());
  b.CreateCondBr(b.CreateExtractValue(r, 1), done, again);
  b.SetInsertPoint(done);
  return b.CreateBitCast(old, type);
}

void writer::emit_private_counters(int n, private_counters const& few) {
  const int value_node = g.operand(n, 1), mask_node = g.operand(n, 2);
  const dtype t = g[g.operand(n, 0)].type, index_type = g[few.index].type;
  const shape& s = g.shape_of(few.index);
  const std::int64_t bytes = bytes_of(t, few.count), size = bytes_of(t);
  Type *type = carrier(t), *i64 = b.getInt64Ty();
  const llvm::Align align(static_cast<std::uint64_t>(size));
  const std::int64_t at = plan_.shared_scratch(bytes);
  Value* counters = on(0, [&] { return b.CreateConstGEP1_64(b.getInt8Ty(), arena_, static_cast<std::uint64_t>(at)); });
  b.CreateMemSet(counters, b.getInt8(0), static_cast<std::uint64_t>(bytes), llvm::MaybeAlign(64));
  const int lane = lane_axis_of(s);
  const unsigned widest = lanes_for(std::max({32, bits_of(t), bits_of(index_type)}), s.extent[lane]);
  auto add = [&](Value* offset, Value* amount) {
    offset = is_signed_int(index_type) ? b.CreateSExt(offset, i64) : b.CreateZExt(offset, i64);
    offset = b.CreateSub(offset, b.getInt64(static_cast<std::uint64_t>(few.low)));
    Value* p = b.CreateGEP(type, counters, offset);
    b.CreateAlignedStore(b.CreateAdd(b.CreateAlignedLoad(type, p, align), amount), p, align);
  };
  coordinates x(static_cast<std::size_t>(s.rank), number(0));
  for_each_outer(s, {lane}, x, [&] {
    for_strips(s.extent[lane], widest, 1, [&](llvm::ArrayRef<strip> strips) {
      width_ = strips[0].width;
      x[static_cast<std::size_t>(lane)] = strips[0].at;
      Value* offset = vector_of(pull(few.index, x), carrier(index_type));
      const lanes all = pull(value_node, x);
      Value* amount = mask_node < 0 && all.uniform() ? scalar_of(all, type) : vector_of(all, type);
      if (mask_node >= 0) {
        Value* m = vector_of(pull(mask_node, x), b.getInt1Ty());
        amount = b.CreateSelect(m, amount, llvm::Constant::getNullValue(amount->getType()));
      }
      if (width_ == 1) {
        add(offset, amount);
        return;
      }
      for (std::uint64_t l = 0; l < width_; ++l)
        add(b.CreateExtractElement(offset, l), amount->getType()->isVectorTy() ? b.CreateExtractElement(amount, l) : amount);
    });
    width_ = 1;
  });
  Value* base = scalar_value(few.base);
  emit::loop(
      b, b.getInt64(0), b.getInt64(static_cast<std::uint64_t>(few.count)), b.getInt64(1),
      [&](Value* i) {
        Value* sum = b.CreateAlignedLoad(type, b.CreateGEP(type, counters, i), align);
        emit::when(b, b.CreateICmpNE(sum, llvm::Constant::getNullValue(type)), [&] {
          atomic(n, b.CreateGEP(type, base, b.CreateAdd(i, b.getInt64(static_cast<std::uint64_t>(few.low)))), {sum});
        });
      },
      {.at_least_once = true});
}

void writer::emit_atomic(int n) {
  if (const private_counters few = private_counters_of(g, n); few.count > 0) return emit_private_counters(n, few);
  const int where = g.operand(n, 0);
  const int values = g[n].code == op::atomic_cas ? 2 : 1;
  const int mask_node = g.operand(n, 1 + values);
  const dtype t = g[where].type;
  const shape& s = g.shape_of(where);
  Type* type = carrier(t);
  width_ = 1;
  auto one = [&](coordinates const& x) {
    Value* p = pointer_of(pull_address(where, x));
    llvm::SmallVector<Value*, 2> in;
    for (int k = 0; k < values; ++k) in.push_back(scalar_of(pull(g.operand(n, 1 + k), x), type));
    if (mask_node < 0) return atomic(n, p, in);
    Value* m = scalar_of(pull(mask_node, x), b.getInt1Ty());
    return emit::branch(
        b, m, [&] { return emit::values{atomic(n, p, in)}; },
        [&] { return emit::values{llvm::Constant::getNullValue(type)}; })[0];
  };
  if (s.rank == 0) {
    scalar_[static_cast<std::size_t>(n)] = one({});
    return;
  }
  coordinates x(static_cast<std::size_t>(s.rank), number(0));
  for_each_outer(s, {}, x, [&] {
    Value* old = one(x);
    write_slice(plan_.slice_of[static_cast<std::size_t>(n)], s, x, of(old, here_, false));
  });
}

} // namespace kiln::jit::host
