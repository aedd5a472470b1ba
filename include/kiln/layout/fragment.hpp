// The register fragments of the matrix units, as layouts.
//
// Coordinates are {row, column} = {d0, d1} of the named operand; a B operand is written {k, n}. One register = one
// element. Read as formulas: mma operands are "4 bytes of k in registers, 4 lanes along k, 8 lanes along m or n, then
// the halves"; MFMA operands are "a group of k in registers, lanes along m or n, the rest of the lanes along k".
// Exchanging the operands of a product transposes its accumulator: do it where the consumer wants runs along n. Any
// permutation of k applied to both operands is legal: use it to make operand loads wider.
#pragma once

#include "kiln/layout/shape_ops.hpp"

namespace kiln {

// ---- NVIDIA ---------------------------------------------------------------------------------------------------------

/// A operand of mma.sync: m16 k32 (1-byte elements), k16 (2), k8 (4).
/// Units: `elem` is log2 of the element's bytes.
/// Source: PTX ISA, warp-level matrix instructions, fragment figures of mma.
constexpr linear_layout mma_a_layout(int elem) {
  detail::layout_require(elem >= 0 && elem <= 2, "mma operands have elements of 1, 2 or 4 bytes");
  using enum layout_dim;
  int e = 2 - elem;
  return reorder_out(identity_layout(reg, d1, e) * identity_layout(lane, d1, 2) * identity_layout(lane, d0, 3) *
                         identity_layout(reg, d0, 1) * identity_layout(reg, d1, 1),
                     tile_space(4, 3 + e));
}
/// B operand of mma.sync: k32, k16 or k8 by n8, as `mma_a_layout`.
constexpr linear_layout mma_b_layout(int elem) {
  detail::layout_require(elem >= 0 && elem <= 2, "mma operands have elements of 1, 2 or 4 bytes");
  using enum layout_dim;
  int e = 2 - elem;
  return reorder_out(identity_layout(reg, d0, e) * identity_layout(lane, d0, 2) * identity_layout(lane, d1, 3) *
                         identity_layout(reg, d0, 1),
                     tile_space(3 + e, 3));
}
/// m16n8 accumulator of mma.sync, f32 or s32; f16 accumulators are pairs of the same map.
constexpr linear_layout mma_accumulator_layout() {
  return layout_from_bases(tile_space(4, 3), {{layout_dim::reg, {{0, 1}, {8, 0}}},
                                              {layout_dim::lane, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}}});
}
/// m64 by 2^n accumulator of wgmma: the mma accumulator repeated along n in registers, four warps along m.
/// Units: `n` is log2; an N that is not a power of two (24) is a row of power-of-two panels.
constexpr linear_layout wgmma_accumulator_layout(int n) {
  detail::layout_require(n >= 3 && n <= 8, "a wgmma accumulator has 8 to 256 columns");
  return mma_accumulator_layout() * identity_layout(layout_dim::reg, layout_dim::d1, n - 3) *
         identity_layout(layout_dim::warp, layout_dim::d0, 2);
}
/// A operand of wgmma in registers.
constexpr linear_layout wgmma_a_layout(int elem) {
  return mma_a_layout(elem) * identity_layout(layout_dim::warp, layout_dim::d0, 2);
}
/// What one 8x8 b16 matrix of ldmatrix leaves in a warp, d0 = row, d1 = element of the 16-byte row.
constexpr linear_layout ldmatrix_layout(int elem) {
  detail::layout_require(elem >= 0 && elem <= 2, "ldmatrix moves elements of 1, 2 or 4 bytes");
  using enum layout_dim;
  return reorder_out(identity_layout(reg, d1, 2 - elem) * identity_layout(lane, d1, 2) * identity_layout(lane, d0, 3),
                     tile_space(3, 4 - elem));
}
/// The same with .trans; 2-byte elements only.
constexpr linear_layout ldmatrix_trans_layout() {
  return layout_from_bases(tile_space(3, 3),
                           {{layout_dim::reg, {{1, 0}}}, {layout_dim::lane, {{2, 0}, {4, 0}, {0, 1}, {0, 2}, {0, 4}}}});
}

// ---- AMD: MFMA on wave64, WMMA on wave32 ----------------------------------------------------------------------------

/// MFMA accumulator.
/// Units: `mn` is log2 of both extents, 4 (16x16) or 5 (32x32).
/// Source: AMD's matrix instruction calculator.
constexpr linear_layout mfma_accumulator_layout(int mn) {
  detail::layout_require(mn == 4 || mn == 5, "an MFMA accumulator is 16x16 or 32x32");
  using enum layout_dim;
  return reorder_out(identity_layout(reg, d0, 2) * identity_layout(lane, d1, mn) * identity_layout(lane, d0, 6 - mn) *
                         identity_layout(reg, d0, mn == 5 ? 2 : 0),
                     tile_space(mn, mn));
}
/// MFMA A operand with 2^k_width consecutive k elements per lane: 16x16x16 and 32x32x8 for k_width 2.
constexpr linear_layout mfma_a_layout(int mn, int k_width = 2) {
  detail::layout_require(mn == 4 || mn == 5, "an MFMA operand has 16 or 32 rows");
  using enum layout_dim;
  return reorder_out(identity_layout(reg, d1, k_width) * identity_layout(lane, d0, mn) *
                         identity_layout(lane, d1, 6 - mn),
                     tile_space(mn, k_width + 6 - mn));
}
constexpr linear_layout mfma_b_layout(int mn, int k_width = 2) { return transpose_layout(mfma_a_layout(mn, k_width)); }

/// gfx11 WMMA accumulator, f32: row = 2 * register + lane / 16.
constexpr linear_layout wmma11_accumulator_layout() {
  return layout_from_bases(tile_space(4, 4), {{layout_dim::reg, {{2, 0}, {4, 0}, {8, 0}}},
                                              {layout_dim::lane, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {1, 0}}}});
}
/// gfx11 WMMA A operand: lanes 16..31 hold copies of lanes 0..15.
constexpr linear_layout wmma11_a_layout() {
  return layout_from_bases(tile_space(4, 4), {{layout_dim::reg, {{0, 1}, {0, 2}, {0, 4}, {0, 8}}},
                                              {layout_dim::lane, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 0}}}});
}
constexpr linear_layout wmma11_b_layout() { return transpose_layout(wmma11_a_layout()); }
/// gfx12 WMMA accumulator: row = register + 8 * (lane / 16).
constexpr linear_layout wmma12_accumulator_layout() {
  return layout_from_bases(tile_space(4, 4), {{layout_dim::reg, {{1, 0}, {2, 0}, {4, 0}}},
                                              {layout_dim::lane, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {8, 0}}}});
}

} // namespace kiln
