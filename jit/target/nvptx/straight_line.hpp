// Arithmetic of one element, a block of IR, as the text of one PTX statement.
#pragma once

#include <string>

namespace llvm {
class Function;
}

namespace kiln::jit::simt {

/// The body of a function of one block, f32 or f64 arguments and such a result, in PTX, for inline assembly: `$0` is the result, `$1` the first
/// argument. Registers of its own lie in a scope of its own. Empty where the body holds something else than arithmetic on f32, f64, i32, i64
/// and truth values, or leaves the compiler a choice (fast-math flags).
std::string straight_line_ptx(llvm::Function const& f);

} // namespace kiln::jit::simt
