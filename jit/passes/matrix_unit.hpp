// Products on a matrix unit with the forms of mma.sync: which of them it takes, and where operands and sums live. A warp
// owns a block of the result; its fragments are the hardware's, repeated in registers. Operands come from local memory,
// whose 16-byte pieces are spread over the banks so that eight rows of a fragment, and eight lanes that write, never meet.
#pragma once

#include "assign_layouts.hpp"

#include <kiln/export.hpp>
#include <kiln/layout/fragment.hpp>
#include <kiln/layout/swizzle.hpp>
#include <optional>

namespace kiln::jit {

/// How the unit multiplies one product.
struct matrix_product {
  dtype operand{};      ///< f16, bf16, f32 (as tf32), i8, f8 (widened to f16)
  int elem = 0;         ///< log2 of the bytes of an element in memory
  int m = 0, n = 0, k = 0;        ///< log2 of the extents
  int warps_m = 0, warps_n = 0;   ///< log2 of the warps along m and n; further warps repeat
  /// log2 of how many neighbouring rows (columns) of the result belong to as many fragments instead of one. Operands of 1 and 4 bytes
  /// that lie with m (n) along their rows are read in pairs or vectors of neighbours, which then are those fragments' words.
  int spread_m = 0, spread_n = 0;
  /// log2 of the elements of k in the fragments of one step.
  int step() const { return 5 - elem; }
};

/// The way of a dot node; nothing where it is left to multiply-adds: element types without a unit, f32 without `.fast`,
/// extents that are no powers of two or smaller than one fragment.
KILN_INTERNAL_API std::optional<matrix_product> matrix_product_of(graph_view const& g, graph_facts const& facts, int dot, cta_shape cta);

/// The sums: coordinates {m, n}. Registers count the 4 of a fragment, then fragments along n, then along m.
KILN_INTERNAL_API linear_layout matrix_sums(matrix_product const& p, cta_shape cta);
/// The left operand, {m, k}: the words of a fragment, then fragments along m, then steps along k.
KILN_INTERNAL_API linear_layout matrix_left(matrix_product const& p, cta_shape cta);
/// The right operand, {k, n}: the words of a fragment, then fragments along n, then steps along k.
KILN_INTERNAL_API linear_layout matrix_right(matrix_product const& p, cta_shape cta);

/// Bits [base, base + bits) of a byte offset are XORed with those `shift` higher: swizzle<bits, base, shift>.
struct chunk_swizzle {
  int bits = 0, shift = 0, base = 4;
  friend bool operator==(chunk_swizzle const&, chunk_swizzle const&) = default;
};
/// The swizzle of rows of 2^row bytes, under which 8 rows of one 16-byte column, and 8 consecutive columns, lie in
/// different banks.
constexpr chunk_swizzle swizzle_of_rows(int row) {
  return row <= 4 ? chunk_swizzle{} : chunk_swizzle{std::min(3, row - 4), std::max(3, row - 4)};
}
/// The same for rows that are read along their neighbours in other rows (matrix_product::spread_m): every second row of eight
/// pairs of bytes, or vectors of four rows of words. 16-bit elements need nothing else than above.
constexpr chunk_swizzle swizzle_of_rows_across(int row, int elem) {
  if (elem == 0) return {3, std::max(3, row - 3)};
  if (elem == 2) return {std::max(0, std::min(row - 5, 2)), std::max(2, row - 5), 5};
  return swizzle_of_rows(row);
}
/// The same as a layout of elements of 2^elem bytes.
constexpr slot_layout layout_of(chunk_swizzle s, int elem) {
  slot_layout l;
  if (s.bits == 0) return l;
  l.bits = s.bits;
  l.base = s.base - elem;
  l.shift = s.shift;
  return l;
}
constexpr slot_layout layout_of_rows(int row, int elem, bool across = false) {
  return layout_of(across ? swizzle_of_rows_across(row, elem) : swizzle_of_rows(row), elem);
}
/// Coordinates of a tile -> offset in elements, for the given strides (elements, powers of two as the extents) and a linear layout.
KILN_INTERNAL_API linear_layout memory_map(bit_space const& tile, std::int64_t const* stride, slot_layout const& l);

/// A fragment of bytes whose words lie across rows. ldmatrix.trans takes pairs of neighbours for its elements, so that two of its words,
/// from rows 0 and 2, and 1 and 3, of each four, hold two words of the fragment; they are woven by two byte permutations.
struct byte_pairs {
  int column = 0;      ///< the register bit that tells the columns of a pair apart
  linear_layout pairs; ///< (reg, lane, warp) -> offset in pairs; register bit 0 counts the halves of a word, bit 1 the two words
};
/// Selectors of the permutations: word 0 and 1.
inline constexpr unsigned weave[] = {0x6240, 0x7351};
/// `to_offset`: registers of the fragment -> offset in bytes. Nothing where no register bit is the lowest of the offset.
KILN_INTERNAL_API std::optional<byte_pairs> byte_pairs_of(linear_layout const& to_offset);

} // namespace kiln::jit
