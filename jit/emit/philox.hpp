// Philox4x32-10 on scalars and vectors.
#pragma once

#include "emitter.hpp"

namespace kiln::emit {

/// Word 0..3 of the generator: `key`, `low` and `high` half of the counter are i64, the result i32, in their shape.
inline llvm::Value* philox(emitter& e, llvm::Value* key, llvm::Value* low, llvm::Value* high, int word) {
  auto& b = e.b;
  llvm::Type *wide = key->getType(), *half = emitter::shaped(b.getInt32Ty(), wide);
  // Vectors keep each word in a 64-bit lane, as their multiplication wants it; scalars have 32-bit registers.
  bool const lanes = wide->isVectorTy();
  auto lower = [&](llvm::Value* x) { return lanes ? b.CreateAnd(x, e.integer(wide, 0xffffffff)) : b.CreateTrunc(x, half); };
  auto upper = [&](llvm::Value* x) {
    llvm::Value* y = b.CreateLShr(x, e.integer(wide, 32));
    return lanes ? y : b.CreateTrunc(y, half);
  };
  llvm::Value* c[] = {lower(low), upper(low), lower(high), upper(high)};
  llvm::Value *k0 = lower(key), *k1 = upper(key);
  llvm::Type* type = k0->getType();
  auto product = [&](llvm::Value* x, std::uint64_t factor) {
    return b.CreateMul(lanes ? x : b.CreateZExt(x, wide), e.integer(wide, factor));
  };
  auto bumped = [&](llvm::Value* k, std::uint64_t by) {
    k = b.CreateAdd(k, e.integer(type, by));
    return lanes ? lower(k) : k;
  };
  for (int round = 0; round < 10; ++round) {
    if (round) k0 = bumped(k0, 0x9E3779B9), k1 = bumped(k1, 0xBB67AE85);
    llvm::Value *p = product(c[0], 0xD2511F53), *q = product(c[2], 0xCD9E8D57);
    llvm::Value *first = b.CreateXor(b.CreateXor(upper(q), c[1]), k0), *third = b.CreateXor(b.CreateXor(upper(p), c[3]), k1);
    c[1] = lower(q), c[3] = lower(p);
    c[0] = first, c[2] = third;
  }
  return lanes ? b.CreateTrunc(c[word], half) : c[word];
}

} // namespace kiln::emit
