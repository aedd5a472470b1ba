// ldmatrix and stmatrix: when a fragment can be moved by whole 16-byte rows, and which lane supplies which row.
#pragma once

#include "kiln/layout/vectorize.hpp"

namespace kiln {

struct matrix_access {
  int matrices = 0;   // log2 of the 8x8 matrices per instruction: x1, x2, x4
  linear_layout regs; // register renumbering, new -> old
  linear_layout rows; // (reg, lane, warp, ..) -> offset in 16-byte chunks; see `matrix_row`
};

/// `to_offset` = compose(fragment, invert(smem)): registers -> shared offset in elements.
///
/// Without .trans: once the registers are renumbered so that 4 bytes are one run, the map must start with
/// registers (4 bytes) * 2 lane bits, which are the 16 bytes of a row. With .trans (2-byte elements): the lane bits are
/// rotated so that bits 2, 3, 4 come first, and the map must start with those three. The quotient is the address of a
/// row. stmatrix is the same plan; where lanes are copies, make owners first.
/// Units: `elem` is log2 of the element's bytes. Returns nothing where the instruction does not apply.
constexpr std::optional<matrix_access> plan_matrix(const linear_layout& to_offset, int elem, bool trans) {
  using enum layout_dim;
  linear_layout l = to_offset;
  const int run = 2 - elem, registers = l.in.bits(reg);
  if (l.in.bits(lane) != 5) return {};
  if (trans ? elem != 1 || registers < 1 : elem > 2) return {};
  vector_access v = vectorize(l, offset, elem, {}, trans ? elem : 2);
  if (!trans && v.width < run) return {};
  matrix_access r;
  r.regs = v.regs;
  l = renumber_registers(l, v.regs);
  if (trans)
    for (int i = 0; i < 5; ++i) l.col[l.in.shift(lane) + i] = to_offset.basis(lane, (i + 2) % 5);
  linear_layout row =
      trans ? identity_layout(lane, offset, 3) : identity_layout(reg, offset, run) * identity_layout(lane, offset, 2);
  layout_opt quotient = divide_left(l, row);
  if (!quotient) return {};
  r.rows = *quotient;
  r.matrices = std::min(2, registers - (trans ? 1 : run));
  return r;
}

/// The 16-byte chunk of row `row` (0..7) of matrix `matrix`, without the warp's part: lane 8j+i of an instruction
/// supplies matrix_row(plan, first + j, i). Matrices are counted through all registers of the fragment.
constexpr f2_word matrix_row(const matrix_access& p, bool trans, int matrix, int row) {
  const bit_space& q = p.rows.in;
  using enum layout_dim;
  return p.rows(trans ? q.put(reg, f2_word(matrix) << 1 | f2_word(row & 1)) | q.put(lane, f2_word(row >> 1))
                      : q.put(reg, f2_word(matrix)) | q.put(lane, f2_word(row)));
}

} // namespace kiln
