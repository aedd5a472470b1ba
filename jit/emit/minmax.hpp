// Minimum and maximum with the two NaN rules of kiln. The sign of a zero result of zeros of both signs is unspecified.
#pragma once

#include "emitter.hpp"

#include <kiln/dtype/dtype.hpp>

namespace kiln::emit {

enum class extremum { minimum, maximum };

/// f32 and f64; the narrow floats go through f32, where order is the same. Ignoring NaN, the result is NaN only if both
/// operands are; propagating, if either is.
inline llvm::Value* float_extremum(emitter& e, extremum which, nan_mode mode, llvm::Value* x, llvm::Value* y) {
  auto& b = e.b;
  const detail::strict_math strict(e);
  // The first select is one instruction on x86 and gives y when either operand is NaN; the second repairs the one case
  // that is wrong. llvm.maximumnum and llvm.maximum order zeros too, which costs twice as much.
  auto* better = which == extremum::maximum ? b.CreateFCmpOGT(x, y) : b.CreateFCmpOLT(x, y);
  auto* chosen = b.CreateSelect(better, x, y);
  auto* other = mode == nan_mode::ignore ? y : x;
  return b.CreateSelect(b.CreateFCmpUNO(other, other), x, chosen);
}

/// One step of a reduction that ignores NaN: `accumulator` starts at the identity and is never NaN, so one instruction
/// does. An all-NaN input leaves the identity: the caller replaces it by NaN.
inline llvm::Value* accumulate_extremum(emitter& e, extremum which, llvm::Value* x, llvm::Value* accumulator) {
  const detail::strict_math strict(e);
  auto* better = which == extremum::maximum ? e.b.CreateFCmpOGT(x, accumulator) : e.b.CreateFCmpOLT(x, accumulator);
  return e.b.CreateSelect(better, x, accumulator);
}

inline llvm::Value* int_extremum(emitter& e, extremum which, bool is_signed, llvm::Value* x, llvm::Value* y) {
  const auto id = which == extremum::maximum ? (is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax)
                                             : (is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin);
  return e.b.CreateBinaryIntrinsic(id, x, y);
}

} // namespace kiln::emit
