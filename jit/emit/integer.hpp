// Integer arithmetic with every result defined, for scalars and vectors of i8..i64: nothing traps, nothing is poison.
// Addition, subtraction, multiplication and negation wrap; plain IRBuilder calls (without nsw and nuw) do that.
#pragma once

#include "emitter.hpp"

namespace kiln::emit {

/// x / y truncated toward zero. y = 0 gives all ones (-1); the smallest integer / -1 gives itself.
llvm::Value* divide(emitter& e, llvm::Value* x, llvm::Value* y, bool is_signed);

/// x - (x / y) y: the sign of x. y = 0 gives x; the smallest integer % -1 gives 0.
llvm::Value* remainder(emitter& e, llvm::Value* x, llvm::Value* y, bool is_signed);

/// The quotient rounded down and up: divide(x, y), less one where the remainder is not zero and its sign is not y's, or
/// plus one where it is.
llvm::Value* floor_divide(emitter& e, llvm::Value* x, llvm::Value* y, bool is_signed);
llvm::Value* ceil_divide(emitter& e, llvm::Value* x, llvm::Value* y, bool is_signed);

/// Shifts by an unsigned count. A count of the width or more gives 0, from shift_right of a signed number its sign
/// everywhere.
llvm::Value* shift_left(emitter& e, llvm::Value* x, llvm::Value* count);
llvm::Value* shift_right(emitter& e, llvm::Value* x, llvm::Value* count, bool is_signed);

/// |x|; the smallest integer gives itself.
llvm::Value* absolute(emitter& e, llvm::Value* x);

} // namespace kiln::emit
