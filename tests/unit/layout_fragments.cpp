// Matrix-unit fragments and shared tiles against closed index formulas, for every register of every thread.
#include "kiln/layout/conversion.hpp"
#include "kiln/layout/fragment.hpp"
#include "kiln/layout/ownership.hpp"
#include "kiln/layout/swizzle.hpp"

#include <gtest/gtest.h>

namespace kiln {
namespace {

using enum layout_dim;
using rc = std::array<int, 2>;

/// f(register, lane, warp) -> {row, column}
template <class F> constexpr bool agrees(const linear_layout& l, F f) {
  for (int w = 0; w < 1 << l.in.bits(warp); ++w)
    for (int t = 0; t < 1 << l.in.bits(lane); ++t)
      for (int r = 0; r < 1 << l.in.bits(reg); ++r) {
        f2_word x = l(l.in.put(reg, f2_word(r)) | l.in.put(lane, f2_word(t)) | l.in.put(warp, f2_word(w)));
        rc e = f(r, t, w);
        if (int(l.out.get(x, d0)) != e[0] || int(l.out.get(x, d1)) != e[1]) return false;
      }
  return true;
}

// NVIDIA. The PTX ISA writes them with groupID = lane / 4 and threadID_in_group = lane % 4.
static_assert(agrees(mma_accumulator_layout(), [](int i, int l, int) {
  return rc{l / 4 + 8 * (i >= 2), l % 4 * 2 + (i & 1)};
}));
static_assert(agrees(mma_a_layout(1), [](int i, int l, int) {
  return rc{l / 4 + ((i >= 2 && i < 4) || i >= 6 ? 8 : 0), l % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}));
static_assert(agrees(mma_b_layout(1), [](int i, int l, int) {
  return rc{l % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), l / 4};
}));
static_assert(agrees(mma_a_layout(2), [](int i, int l, int) {
  return rc{l / 4 + (i % 2 ? 8 : 0), l % 4 + (i >= 2 ? 4 : 0)};
}));
static_assert(agrees(mma_b_layout(2), [](int i, int l, int) { return rc{l % 4 + (i ? 4 : 0), l / 4}; }));
static_assert(agrees(mma_a_layout(0), [](int i, int l, int) {
  return rc{l / 4 + ((i >= 4 && i < 8) || i >= 12 ? 8 : 0), l % 4 * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
}));
static_assert(agrees(mma_b_layout(0), [](int i, int l, int) {
  return rc{l % 4 * 4 + (i & 3) + (i >= 4 ? 16 : 0), l / 4};
}));
static_assert(agrees(wgmma_accumulator_layout(4), [](int i, int l, int w) {
  return rc{16 * w + l / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + l % 4 * 2 + (i & 1)};
}));
static_assert(agrees(wgmma_a_layout(1), [](int i, int l, int w) {
  return rc{16 * w + l / 4 + 8 * (i / 2 % 2), l % 4 * 2 + (i & 1) + 8 * (i / 4)};
}));
static_assert(agrees(ldmatrix_layout(1), [](int i, int l, int) { return rc{l / 4, l % 4 * 2 + i}; }));
static_assert(agrees(ldmatrix_layout(0), [](int i, int l, int) { return rc{l / 4, l % 4 * 4 + i}; }));
static_assert(agrees(ldmatrix_trans_layout(), [](int i, int l, int) { return rc{l % 4 * 2 + i, l / 4}; }));

// AMD, after the matrix instruction calculator.
static_assert(agrees(mfma_accumulator_layout(4), [](int i, int l, int) { return rc{4 * (l / 16) + i, l % 16}; }));
static_assert(agrees(mfma_accumulator_layout(5), [](int i, int l, int) {
  return rc{8 * (i / 4) + 4 * (l / 32) + i % 4, l % 32};
}));
static_assert(agrees(mfma_a_layout(4), [](int i, int l, int) { return rc{l % 16, 4 * (l / 16) + i}; }));
static_assert(agrees(mfma_a_layout(5), [](int i, int l, int) { return rc{l % 32, 4 * (l / 32) + i}; }));
static_assert(agrees(mfma_b_layout(4), [](int i, int l, int) { return rc{4 * (l / 16) + i, l % 16}; }));
static_assert(agrees(wmma11_accumulator_layout(), [](int i, int l, int) { return rc{2 * i + l / 16, l % 16}; }));
static_assert(agrees(wmma11_a_layout(), [](int i, int l, int) { return rc{l % 16, i}; }));
static_assert(agrees(wmma11_b_layout(), [](int i, int l, int) { return rc{i, l % 16}; }));
static_assert(agrees(wmma12_accumulator_layout(), [](int i, int l, int) { return rc{i + 8 * (l / 16), l % 16}; }));

// The comparison itself notices a wrong formula and a wrong table.
static_assert(!agrees(mma_a_layout(1), [](int i, int l, int) { return rc{l / 4 + 8 * (i / 4), l % 4 * 2 + i % 4}; }));
static_assert(!agrees(wmma12_accumulator_layout(), [](int i, int l, int) { return rc{2 * i + l / 16, l % 16}; }));

static_assert(owners(wmma11_a_layout()).lane == 16 && owners(wmma11_a_layout()).reg == 0);
static_assert(owners(mma_a_layout(1)).unique() && owners(wgmma_accumulator_layout(6)).unique());
// Two m16n8 accumulators side by side are an m16k16 A operand: no data moves between the two products of attention.
static_assert(plan_conversion(fit(mma_accumulator_layout(), tile_space(4, 4)), mma_a_layout(1), 1)->kind ==
              conversion_kind::none);
static_assert(plan_conversion(fit(wgmma_accumulator_layout(3), tile_space(6, 4)), wgmma_a_layout(1), 1)->kind ==
              conversion_kind::none);

constexpr bool swizzle_formula(int b, int m, int s, int bits) {
  linear_layout l = swizzle_layout(b, m, s, bits);
  for (f2_word x = 0; x < f2_unit(bits); ++x) {
    f2_word y = x >> m;
    y ^= (y >> s) & f2_low_mask(b);
    if (l(x) != ((y << m) | (x & f2_low_mask(m))) || l(l(x)) != x) return false;
  }
  return true;
}
static_assert(swizzle_formula(3, 3, 3, 10) && swizzle_formula(2, 4, 3, 10) && swizzle_formula(1, 2, 3, 9));
static_assert(swizzle_formula(0, 0, 0, 6));

/// Panel p starts at p * rows * W, row r of a panel at r * W, and the 16-byte chunk is XORed with a function of r.
constexpr bool tile_formula(int width, int elem, int rows, int cols) {
  linear_layout l = swizzled_tile(width, elem, rows, cols);
  int w = 1 << width, e = 1 << elem;
  for (int r = 0; r < 1 << rows; ++r)
    for (int c = 0; c < 1 << cols; ++c) {
      int panel = c * e / w, byte = c * e % w;
      int turn = width == 7 ? r % 8 : width == 6 ? r / 2 % 4 : width == 5 ? r / 4 % 2 : 0;
      int at = panel * (1 << rows) * w + r * w + (((byte / 16) ^ turn) * 16) + byte % 16;
      f2_word x = l(f2_word(at / e));
      if (int(l.out.get(x, d0)) != r || int(l.out.get(x, d1)) != c) return false;
    }
  return true;
}
static_assert(tile_formula(7, 1, 3, 6) && tile_formula(6, 1, 3, 5) && tile_formula(5, 1, 3, 4) &&
              tile_formula(7, 0, 3, 7) && tile_formula(4, 1, 3, 5));

TEST(layout_swizzle, tiles_of_all_widths_and_elements) {
  for (int width : {4, 5, 6, 7})
    for (int elem : {0, 1, 2, 3})
      for (int rows : {3, 5, 7})
        for (int panels : {0, 1, 2})
          EXPECT_TRUE(tile_formula(width, elem, rows, width - elem + panels)) << width << elem << rows << panels;
}

TEST(layout_swizzle, the_tile_is_the_atom_after_row_major_panels) {
  // f16, 128 bytes: offset -> swizzle<3,3,3> -> row-major 8x64.
  EXPECT_TRUE(
      same_map(swizzled_tile(7, 1, 3, 6), compose(swizzle_layout(3, 3, 3, 9), row_major_tile(tile_space(3, 6)))));
}

TEST(layout_swizzle, refuses_what_is_no_swizzle) {
  EXPECT_THROW(swizzle_layout(3, 0, 2, 10), layout_error);
  EXPECT_THROW(swizzled_tile(7, 1, 3, 5), layout_error);
  EXPECT_THROW(swizzled_tile(8, 1, 3, 7), layout_error);
  EXPECT_THROW(mma_a_layout(3), layout_error);
  EXPECT_THROW(mfma_accumulator_layout(3), layout_error);
  EXPECT_THROW(wgmma_accumulator_layout(2), layout_error);
}

TEST(layout_padding, follows_the_formula) {
  offset_padding p{5, 1}; // one element after every 32
  EXPECT_EQ(p(31), 31);
  EXPECT_EQ(p(32), 33);
  EXPECT_EQ(p.cosize(1024), 1023 + 31 + 1);
  EXPECT_EQ(p.cosize(0), 0);
  EXPECT_EQ(p.width_limit(), 0);
  EXPECT_EQ((offset_padding{5, 8}.width_limit()), 3);
  EXPECT_EQ((offset_padding{1, 8}.width_limit()), 1);
  for (int x = 0; x < 64; ++x)
    for (int y = 0; y < 64; ++y)
      if (!(x & y)) { EXPECT_EQ(p(x + y), p(x) + p(y)); }
}

} // namespace
} // namespace kiln
