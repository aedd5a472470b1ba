// Division without traps, shifts without poison. Vectors have no division instruction, and code generators expand one
// into a scalar division per lane: up to 32 bits the quotient of floating division truncates to the right integer.
#include "integer.hpp"

#include <llvm/IR/Constants.h>

namespace kiln::emit {

using llvm::Value;

namespace {

// True for constants that are safe to divide by in every lane: code generation turns them into multiplications.
bool is_plain_divisor(const Value* y, bool is_signed) {
  const auto plain = [&](const llvm::Constant* c) {
    auto* i = llvm::dyn_cast_or_null<llvm::ConstantInt>(c);
    return i && !i->isZero() && !(is_signed && i->isMinusOne());
  };
  auto* c = llvm::dyn_cast<llvm::Constant>(y);
  if (!c) return false;
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(c->getType());
  if (!vector) return plain(c);
  for (unsigned i = 0; i < vector->getNumElements(); ++i)
    if (!plain(c->getAggregateElement(i))) return false;
  return true;
}

// x / y for y != 0 and no overflow. If x = q y + r with 0 < r < y, then x / y lies at least 1/y below q + 1, a relative
// distance of more than 1/x: with x below 2^23 (f32) or 2^52 (f64), rounding the quotient cannot reach q + 1.
Value* quotient(emitter& e, Value* x, Value* y, bool is_signed) {
  auto& b = e.b;
  auto* type = x->getType();
  const unsigned width = type->getScalarSizeInBits();
  if (!type->isVectorTy() || width > 32) return is_signed ? b.CreateSDiv(x, y) : b.CreateUDiv(x, y);
  const detail::strict_math strict(e);
  if (width == 32) {
    auto* wide = e.shaped(b.getDoubleTy(), type);
    if (is_signed) return b.CreateFPToSI(b.CreateFDiv(b.CreateSIToFP(x, wide), b.CreateSIToFP(y, wide)), type);
    return b.CreateFPToUI(b.CreateFDiv(b.CreateUIToFP(x, wide), b.CreateUIToFP(y, wide)), type);
  }
  auto* lane = e.int_type(32, type);
  auto* wide = e.shaped(b.getFloatTy(), type);
  auto to_float = [&](Value* v) {
    return b.CreateSIToFP(is_signed ? b.CreateSExt(v, lane) : b.CreateZExt(v, lane), wide);
  };
  return b.CreateTrunc(b.CreateFPToSI(b.CreateFDiv(to_float(x), to_float(y)), lane), type);
}

struct guarded {
  Value* zero;      // lanes with y = 0
  Value* minus_one; // lanes with y = -1, null if unsigned
  Value* divisor;   // y, or 1 in those lanes
};

guarded guard(emitter& e, Value* y, bool is_signed) {
  auto& b = e.b;
  auto* type = y->getType();
  guarded g{b.CreateICmpEQ(y, e.integer(type, 0)), nullptr, nullptr};
  Value* bad = g.zero;
  if (is_signed) {
    g.minus_one = b.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(type));
    bad = b.CreateOr(bad, g.minus_one);
  }
  g.divisor = b.CreateSelect(bad, e.integer(type, 1), y);
  return g;
}

} // namespace

Value* divide(emitter& e, Value* x, Value* y, bool is_signed) {
  auto& b = e.b;
  if (is_plain_divisor(y, is_signed)) return is_signed ? b.CreateSDiv(x, y) : b.CreateUDiv(x, y);
  const guarded g = guard(e, y, is_signed);
  Value* q = quotient(e, x, g.divisor, is_signed);
  if (is_signed) q = b.CreateSelect(g.minus_one, b.CreateNeg(x), q);
  return b.CreateSelect(g.zero, llvm::Constant::getAllOnesValue(x->getType()), q);
}

Value* remainder(emitter& e, Value* x, Value* y, bool is_signed) {
  auto& b = e.b;
  if (is_plain_divisor(y, is_signed)) return is_signed ? b.CreateSRem(x, y) : b.CreateURem(x, y);
  const guarded g = guard(e, y, is_signed);
  Value* r = nullptr;
  if (x->getType()->isVectorTy() && x->getType()->getScalarSizeInBits() <= 32)
    r = b.CreateSub(x, b.CreateMul(quotient(e, x, g.divisor, is_signed), g.divisor));
  else r = is_signed ? b.CreateSRem(x, g.divisor) : b.CreateURem(x, g.divisor);
  return b.CreateSelect(g.zero, x, r); // for y = -1 the divisor is 1 and the remainder 0
}

namespace {

struct division {
  Value* quotient;
  Value* inexact;   // lanes with a remainder
  Value* same_sign; // of remainder and divisor; null if unsigned
};

division divide_with_remainder(emitter& e, Value* x, Value* y, bool is_signed) {
  auto& b = e.b;
  auto* zero = e.integer(x->getType(), 0);
  auto* q = divide(e, x, y, is_signed);
  auto* r = b.CreateSub(x, b.CreateMul(q, y)); // also for y = 0 (x) and the smallest integer / -1 (0)
  auto* same_sign = is_signed ? b.CreateICmpSGE(b.CreateXor(r, y), zero) : nullptr;
  return {q, b.CreateICmpNE(r, zero), same_sign};
}

} // namespace

Value* floor_divide(emitter& e, Value* x, Value* y, bool is_signed) {
  if (!is_signed) return divide(e, x, y, false);
  const division d = divide_with_remainder(e, x, y, true);
  auto* down = e.b.CreateAnd(d.inexact, e.b.CreateNot(d.same_sign));
  return e.b.CreateAdd(d.quotient, e.b.CreateSExt(down, x->getType()));
}

Value* ceil_divide(emitter& e, Value* x, Value* y, bool is_signed) {
  const division d = divide_with_remainder(e, x, y, is_signed);
  auto* up = is_signed ? e.b.CreateAnd(d.inexact, d.same_sign) : d.inexact;
  return e.b.CreateAdd(d.quotient, e.b.CreateZExt(up, x->getType()));
}

Value* shift_left(emitter& e, Value* x, Value* count) {
  auto* type = x->getType();
  auto* inside = e.b.CreateICmpULT(count, e.integer(type, type->getScalarSizeInBits()));
  return e.b.CreateSelect(inside, e.b.CreateShl(x, count), e.integer(type, 0));
}

Value* shift_right(emitter& e, Value* x, Value* count, bool is_signed) {
  auto* type = x->getType();
  const unsigned width = type->getScalarSizeInBits();
  if (is_signed)
    return e.b.CreateAShr(x, e.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, count, e.integer(type, width - 1)));
  auto* inside = e.b.CreateICmpULT(count, e.integer(type, width));
  return e.b.CreateSelect(inside, e.b.CreateLShr(x, count), e.integer(type, 0));
}

Value* absolute(emitter& e, Value* x) {
  return e.b.CreateIntrinsic(llvm::Intrinsic::abs, {x->getType()}, {x, e.b.getFalse()});
}

} // namespace kiln::emit
