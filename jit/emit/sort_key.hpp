// Numbers as unsigned integers of the same order: what sorting compares. Scalars and vectors of any width.
#pragma once

#include "emitter.hpp"

#include <kiln/dtype/dtype.hpp>

namespace kiln::emit {

/// The key of x, an integer of the type's width (floats as their bits): ascending keys are the wanted order of the numbers, which
/// is ascending or descending. All NaN have the largest key, and both zeros have one.
inline llvm::Value* sort_key(emitter& e, llvm::Value* x, dtype t, bool descending) {
  auto& b = e.b;
  unsigned const bits = static_cast<unsigned>(bits_of(t));
  llvm::Type* type = emitter::shaped(b.getIntNTy(bits), x->getType());
  x = b.CreateBitCast(x, type);
  auto number = [&](llvm::APInt const& n) -> llvm::Value* { return llvm::ConstantInt::get(type, n); };
  llvm::Value* sign = number(llvm::APInt::getSignMask(bits));
  if (!is_float(t)) {
    if (is_signed_int(t)) x = b.CreateXor(x, sign);
    return descending ? b.CreateNot(x) : x;
  }
  // Sign and magnitude to two's complement, in which -0 is 0; then from the middle of the range.
  llvm::Value* magnitude = b.CreateAnd(x, number(llvm::APInt::getSignedMaxValue(bits)));
  llvm::Value* negative = b.CreateAShr(x, bits - 1);
  llvm::Value* value = b.CreateSub(b.CreateXor(magnitude, negative), negative);
  llvm::Value* key = descending ? b.CreateSub(sign, value) : b.CreateAdd(value, sign);
  unsigned const exponent = t == dtype::f16 ? 5 : t == dtype::f64 ? 11 : 8;
  llvm::APInt const infinity = llvm::APInt::getBitsSet(bits, bits - 1 - exponent, bits - 1);
  return b.CreateSelect(b.CreateICmpUGT(magnitude, number(infinity)), number(llvm::APInt::getAllOnes(bits)), key);
}

/// The number of a key, in `carrier`; the NaN is the quiet one of docs/numerics.md.
inline llvm::Value* number_of_key(emitter& e, llvm::Value* key, dtype t, bool descending, llvm::Type* carrier) {
  auto& b = e.b;
  unsigned const bits = static_cast<unsigned>(bits_of(t));
  llvm::Type* type = key->getType();
  auto number = [&](llvm::APInt const& n) -> llvm::Value* { return llvm::ConstantInt::get(type, n); };
  llvm::Value* sign = number(llvm::APInt::getSignMask(bits));
  if (!is_float(t)) {
    if (descending) key = b.CreateNot(key);
    return is_signed_int(t) ? b.CreateXor(key, sign) : key;
  }
  unsigned const exponent = t == dtype::f16 ? 5 : t == dtype::f64 ? 11 : 8;
  llvm::APInt const quiet = llvm::APInt::getBitsSet(bits, bits - 2 - exponent, bits - 1);
  llvm::Value* value = descending ? b.CreateSub(sign, key) : b.CreateSub(key, sign);
  llvm::Value* negative = b.CreateAShr(value, bits - 1);
  llvm::Value* magnitude = b.CreateSub(b.CreateXor(value, negative), negative);
  llvm::Value* x = b.CreateOr(magnitude, b.CreateAnd(negative, sign));
  x = b.CreateSelect(b.CreateICmpEQ(key, number(llvm::APInt::getAllOnes(bits))), number(quiet), x);
  return b.CreateBitCast(x, emitter::shaped(carrier, type));
}

} // namespace kiln::emit
