// The order of instructions that keeps few values alive. A lowering writes an operation for all registers of a tile before
// the next one; a long row then lives several times over. Where a kernel asks for it, each computation moves down to its
// first use, so that a reduction folds element by element and a store follows what it needs.
#pragma once

#include <llvm/IR/Function.h>

namespace kiln::jit {

/// Metadata of a call `f(after, zero, word)` that hides a word: its first operand is free to be chosen.
inline constexpr char const* hidden_word = "kiln.hidden";

/// Attribute of a function that wants `order_depth_first`.
inline constexpr char const* depth_first_attribute = "kiln-depth-first";

/// Reorders inside each block, if the function asks for it. Hidden words wait for what was computed before them, a few at a
/// time: an assembler that prefers early starts to few registers cannot undo the order.
/// What has effects, reads memory that may be written, or needs the threads of a warp together stays in its order; so do loads,
/// up to the last one that the program has before such a meeting and uses behind it.
void order_depth_first(llvm::Function& f);

} // namespace kiln::jit
