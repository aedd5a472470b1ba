// Fragments of products: every warp has what it multiplies, and operands in swizzled local memory are read by ldmatrix, and
// written by 16 bytes a lane, without bank conflicts. All of it follows from the layouts; nothing runs on a GPU here.
#include "jit/passes/matrix_unit.hpp"

#include <kiln/layout/bank_conflicts.hpp>
#include <kiln/layout/matrix_plan.hpp>

#include <gtest/gtest.h>

#include <bit>

using namespace kiln;
using namespace kiln::jit;
using enum layout_dim;

namespace {

matrix_product product(dtype t, int m, int n, int k, int warps_m, int warps_n) {
  matrix_product p;
  p.operand = t;
  p.elem = std::countr_zero(static_cast<unsigned>(bytes_of(t)));
  p.m = m, p.n = n, p.k = k, p.warps_m = warps_m, p.warps_n = warps_n;
  return p;
}

/// The lanes of a warp write (or read) 16 bytes each, one after the other along the rows: eight lanes are served at once.
void expect_free_rows(bit_space const& tile, std::int64_t const* stride, int elem, chunk_swizzle s, int minor) {
  linear_layout const to = memory_map(tile, stride, layout_of(s, elem));
  f2_vectors touched;
  for (int i = 0; i < 4 - elem; ++i) touched.push(to(tile.put(axis_dim(minor), f2_unit(i))));
  std::vector<f2_word> lanes; // chunks of a row, then rows
  for (int i = 4 - elem; i < tile.bits(axis_dim(minor)); ++i) lanes.push_back(tile.put(axis_dim(minor), f2_unit(i)));
  for (int i = 0; i < tile.bits(axis_dim(1 - minor)); ++i) lanes.push_back(tile.put(axis_dim(1 - minor), f2_unit(i)));
  for (std::size_t i = 0; i < 3; ++i) touched.push(to(lanes.at(i)));
  EXPECT_EQ(conflict_ways(touched, elem, 5), 0);
}

/// The eight rows of each matrix of an ldmatrix lie in different banks.
void expect_free_matrices(linear_layout const& fragment, std::int64_t const* stride, int elem, chunk_swizzle s, bool trans) {
  linear_layout const to = compose(fragment, memory_map(fragment.out, stride, layout_of(s, elem)));
  auto const plan = plan_matrix(to, elem, trans);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->matrices, std::min(2, fragment.in.bits(reg) - (2 - elem)));
  f2_vectors touched;
  for (int i = 0; i < 4 - elem; ++i) touched.push(f2_unit(i));
  for (int i = 0; i < 3; ++i) touched.push(matrix_row(*plan, trans, 0, 1 << i) << (4 - elem));
  EXPECT_EQ(conflict_ways(touched, elem, 5), 0);
}

TEST(MatrixUnit, WarpsShareOutTheProduct) {
  cta_shape const cta{.warp_size = 32, .num_warps = 8, .matrix_unit = true};
  for (dtype t : {dtype::f16, dtype::i8, dtype::f32})
    for (int wm = 0; wm <= 3; ++wm) {
      matrix_product const p = product(t, 7, 7, 6, wm, 3 - wm);
      linear_layout const sums = matrix_sums(p, cta), left = matrix_left(p, cta), right = matrix_right(p, cta);
      EXPECT_TRUE(sums.surjective() && sums.injective());
      EXPECT_TRUE(left.surjective() && right.surjective());
      // The rows of a warp's sums are the rows of its left operand, the columns those of its right one.
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(sums.out.get(sums.basis(warp, i), d0), left.out.get(left.basis(warp, i), d0));
        EXPECT_EQ(sums.out.get(sums.basis(warp, i), d1), right.out.get(right.basis(warp, i), d1));
        EXPECT_EQ(left.out.get(left.basis(warp, i), d1), 0u);
        EXPECT_EQ(right.out.get(right.basis(warp, i), d0), 0u);
      }
    }
}

// Operands with k along the rows: ldmatrix as it is, for every type; rows of 32 bytes to 2 KiB.
TEST(MatrixUnit, RowsAlongKAreConflictFree) {
  cta_shape const cta{.warp_size = 32, .num_warps = 4, .matrix_unit = true};
  for (dtype t : {dtype::f16, dtype::i8, dtype::f32})
    for (int k = product(t, 0, 0, 0, 0, 0).step(); k <= 9; ++k) {
      matrix_product const p = product(t, 6, 6, k, 1, 1);
      chunk_swizzle const s = swizzle_of_rows(k + p.elem);
      std::int64_t const left[] = {std::int64_t{1} << k, 1}, right[] = {1, std::int64_t{1} << k};
      expect_free_matrices(matrix_left(p, cta), left, p.elem, s, false);
      expect_free_matrices(matrix_right(p, cta), right, p.elem, s, false);
      expect_free_rows(matrix_left(p, cta).out, left, p.elem, s, 1);
      expect_free_rows(matrix_right(p, cta).out, right, p.elem, s, 0);
    }
}

// 16-bit operands with m or n along the rows: ldmatrix.trans.
TEST(MatrixUnit, RowsAcrossKAreConflictFree) {
  cta_shape const cta{.warp_size = 32, .num_warps = 4, .matrix_unit = true};
  for (int m = 4; m <= 9; ++m)
    for (int n = 4; n <= 9; ++n) {
      matrix_product const p = product(dtype::bf16, m, n, 5, std::min(1, m - 4), 1);
      std::int64_t const left[] = {1, std::int64_t{1} << m}, right[] = {std::int64_t{1} << n, 1};
      expect_free_matrices(matrix_left(p, cta), left, 1, swizzle_of_rows(m + 1), true);
      expect_free_matrices(matrix_right(p, cta), right, 1, swizzle_of_rows(n + 1), true);
      expect_free_rows(matrix_left(p, cta).out, left, 1, swizzle_of_rows(m + 1), 0);
      expect_free_rows(matrix_right(p, cta).out, right, 1, swizzle_of_rows(n + 1), 1);
    }
}

// Bytes with m or n along the rows: what ldmatrix.trans reads of pairs, woven, is the fragment, element for element.
TEST(MatrixUnit, BytesAcrossRowsAreWoven) {
  cta_shape const cta{.warp_size = 32, .num_warps = 4, .matrix_unit = true};
  for (int m = 5; m <= 9; ++m)
    for (int n = 5; n <= 9; ++n) {
      matrix_product p = product(dtype::i8, m, n, 6, 1, 1);
      p.spread_m = p.spread_n = 1;
      EXPECT_TRUE(matrix_sums(p, cta).surjective() && matrix_sums(p, cta).injective());
      std::int64_t const left[] = {1, std::int64_t{1} << m}, right[] = {std::int64_t{1} << n, 1};
      for (bool is_left : {true, false}) {
        linear_layout const fragment = is_left ? matrix_left(p, cta) : matrix_right(p, cta);
        chunk_swizzle const s = swizzle_of_rows_across(is_left ? m : n, 0);
        expect_free_rows(fragment.out, is_left ? left : right, 0, s, is_left ? 0 : 1);
        linear_layout const to = compose(fragment, memory_map(fragment.out, is_left ? left : right, layout_of(s, 0)));
        auto const pairs = byte_pairs_of(to);
        ASSERT_TRUE(pairs.has_value());
        auto const plan = plan_matrix(pairs->pairs, 1, true);
        ASSERT_TRUE(plan.has_value());
        EXPECT_EQ(plan->matrices, 2);
        f2_vectors touched;
        for (int i = 0; i < 3; ++i) touched.push(f2_unit(i));
        for (int i = 0; i < 3; ++i) touched.push(matrix_row(*plan, true, 0, 1 << i) << 3);
        EXPECT_EQ(conflict_ways(touched, 1, 5), 0);
        // A byte of the woven word: the permutation's, of a pair's half.
        auto const& in = to.in;
        for (int w = 0; w < 1 << (in.bits(reg) - 2); ++w)
          for (int l = 0; l < 32; ++l)
            for (int byte = 0; byte < 4; ++byte) {
              int const bit = 1 << (pairs->column - 2), others = (w & (bit - 1)) | (w >> 1 & ~(bit - 1));
              int const from = static_cast<int>(weave[(w & bit) != 0] >> (4 * byte) & 7); // of eight bytes
              f2_word const half = pairs->pairs.in.put(reg, static_cast<f2_word>(others << 2 | (from >> 2) << 1 | (from >> 1 & 1)));
              f2_word const got = pairs->pairs(half | pairs->pairs.in.put(lane, static_cast<f2_word>(l))) << 1 | static_cast<f2_word>(from & 1);
              ASSERT_EQ(got, to(in.put(reg, static_cast<f2_word>(w << 2 | byte)) | in.put(lane, static_cast<f2_word>(l))));
            }
      }
    }
}

// Words of 4 bytes with m or n along the rows: vectors of neighbours, which are words of as many fragments. What is served at once, 8
// lanes of 16 bytes, 16 of 8 or 32 of 4, lies in different banks.
TEST(MatrixUnit, WordsAcrossRowsAreConflictFree) {
  cta_shape const cta{.warp_size = 32, .num_warps = 4, .matrix_unit = true};
  for (int n = 4; n <= 9; ++n) {
    matrix_product p = product(dtype::f32, 6, n, 4, 1, 1);
    p.spread_m = 2, p.spread_n = std::min(2, n - 1 - 3);
    for (bool is_left : {true, false}) {
      linear_layout const fragment = is_left ? matrix_left(p, cta) : matrix_right(p, cta);
      int const row = (is_left ? p.m : n) + 2, vector = is_left ? 2 : p.spread_n;
      std::int64_t const left[] = {1, 64}, right[] = {std::int64_t{1} << n, 1};
      linear_layout const to = compose(fragment, memory_map(fragment.out, is_left ? left : right, layout_of(swizzle_of_rows_across(row, 2), 2)));
      f2_vectors touched;
      for (int i = 0; i < vector; ++i) touched.push(f2_unit(i));
      for (int i = 0; i < 5 - vector; ++i) touched.push(to.basis(lane, i));
      EXPECT_EQ(conflict_ways(touched, 2, 5), 0) << n << " " << is_left;
      int neighbours = 0;
      for (int i = 0; i < to.in.bits(reg); ++i)
        for (int j = 0; j < vector; ++j) neighbours += to.basis(reg, i) == f2_unit(j);
      EXPECT_EQ(neighbours, vector);
      expect_free_rows(fragment.out, is_left ? left : right, 2, swizzle_of_rows_across(row, 2), is_left ? 0 : 1);
    }
  }
}

// The same rows without the swizzle do conflict: the test can fail.
TEST(MatrixUnit, PlainRowsConflict) {
  matrix_product const p = product(dtype::f16, 6, 6, 6, 1, 1);
  std::int64_t const rows[] = {64, 1};
  linear_layout const left = matrix_left(p, {.warp_size = 32, .num_warps = 4, .matrix_unit = true});
  linear_layout const to = compose(left, memory_map(left.out, rows, {}));
  auto const plan = plan_matrix(to, 1, false);
  ASSERT_TRUE(plan.has_value());
  f2_vectors touched;
  for (int i = 0; i < 3; ++i) touched.push(f2_unit(i));
  for (int i = 0; i < 3; ++i) touched.push(matrix_row(*plan, false, 0, 1 << i) << 3);
  EXPECT_EQ(conflict_ways(touched, 1, 5), 3);
}

} // namespace
