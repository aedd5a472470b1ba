// What the elementary functions share: constants of f32 and f64, rounding to integers, helper functions of the module.
#pragma once

#include "emitter.hpp"

namespace kiln::emit::detail {

/// One of the two formats, with the integers that correspond to it.
struct float_shape {
  llvm::Type* type; // of the values, scalar or vector
  llvm::Type* bits; // integers of the same width and shape
  bool wide;        // f64
  int mantissa;     // stored bits of the significand
  int bias;

  float_shape(const emitter& e, const llvm::Value* x)
      : type(x->getType()), bits(e.bits_type(type)), wide(type->getScalarType()->isDoubleTy()),
        mantissa(wide ? 52 : 23), bias(wide ? 1023 : 127) {
    assert((wide || type->getScalarType()->isFloatTy()) && "elementary functions take f32 or f64");
  }

  uint64_t mantissa_mask() const { return (uint64_t{1} << mantissa) - 1; }
  /// Adding it to |x| < 2^(mantissa-2) leaves round-to-nearest-even(x) in the low bits of the sum.
  double magic() const { return wide ? 0x1.8p52 : 0x1.8p23; }
  uint64_t magic_bits() const { return wide ? 0x4338000000000000u : 0x4b400000u; }
};

/// The integer nearest to x * scale, as a number and as the bits of number + magic.
struct nearest {
  llvm::Value* number;
  llvm::Value* bits;
};

inline nearest round_to_integer(emitter& e, const float_shape& s, llvm::Value* x, double scale) {
  auto* magic = e.number(s.type, s.magic());
  auto* sum = e.mad(x, e.number(s.type, scale), magic);
  return {e.b.CreateFSub(sum, magic), e.to_bits(sum)};
}

/// Gives a helper function the target attributes of its caller; it neither unwinds nor touches memory.
void inherit_target(llvm::Function& function, const llvm::Function& caller);

/// e^x for x whose result is a normal number, in math.cpp.
llvm::Value* exp_normal(emitter& e, llvm::Value* x);

} // namespace kiln::emit::detail
