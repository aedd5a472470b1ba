// The register-blocked kernel of matrix products, and the panels that it works on.
//
// A panel: rows side by side, each row's elements along k next to one another, rows `stride` elements apart. The kernel
// reads A one element at a time and repeats it over the lanes.
// B panel: for each k the panel's columns next to one another.
// C: rows `stride` elements apart; the kernel adds to it.
//
// Worked example, AVX-512 and f32: 6 rows by 4 vectors of 16 columns are 24 accumulators; with 4 vectors of B and one
// of A that is 29 of 32 registers.
#pragma once
#include "jit/emit/emitter.hpp"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::jit::host {

/// The block that one call of the micro-kernel makes.
struct micro_block {
  unsigned rows = 1;
  std::vector<unsigned> vectors; ///< lanes of each vector of columns
  unsigned columns() const {
    unsigned sum = 0;
    for (unsigned w : vectors) sum += w;
    return sum;
  }
};

/// The best block for a machine whose vectors hold `lanes` elements: rows, and vectors of `lanes` columns.
inline micro_block full_block(int vector_bits, unsigned lanes) {
  if (vector_bits >= 512) return {6, {lanes, lanes, lanes, lanes}};
  if (vector_bits >= 256) return {6, {lanes, lanes}};
  return {4, {lanes, lanes}};
}

/// void f(ptr a, i64 a_stride, ptr b, ptr c, i64 c_stride, i64 k): C += A B for one block, k >= 1, strides in elements.
/// Internal and never inlined; one per shape and module. `element` is float, double or i32.
llvm::Function* micro_kernel(llvm::Module& m, emit::capabilities caps, llvm::Type* element, micro_block const& block);

} // namespace kiln::jit::host
