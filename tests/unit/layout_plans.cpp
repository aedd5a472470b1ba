// Plans on named cases: the numbers that the documentation quotes, and where each plan is refused.
#include "kiln/layout/bank_conflicts.hpp"
#include "kiln/layout/blocked.hpp"
#include "kiln/layout/conversion.hpp"
#include "kiln/layout/fragment.hpp"
#include "kiln/layout/index_terms.hpp"
#include "kiln/layout/ownership.hpp"
#include "kiln/layout/reduction_plan.hpp"
#include "kiln/layout/shared_plan.hpp"
#include "kiln/layout/swizzle.hpp"

#include <gtest/gtest.h>

namespace kiln {
namespace {

using enum layout_dim;

// ---- conversion -----------------------------------------------------------------------------------------------------
static_assert(!plan_conversion(mma_accumulator_layout(), mma_a_layout(1), 1)); // another tile
constexpr auto warp_rows = blocked_layout({{0, 2}, {2, 3}, {0, 0}}, tile_space(5, 5));
constexpr auto warp_turn = *plan_conversion(warp_rows, transpose_layout(warp_rows), 2);
static_assert(warp_turn.kind == conversion_kind::shuffle && warp_turn.by_rounds);
static_assert(warp_turn.shuffles == 31 && warp_turn.select_levels == 5);
constexpr auto fp8 = *plan_conversion(fit(mma_accumulator_layout(), tile_space(4, 5)), mma_a_layout(0), 0);
static_assert(fp8.kind == conversion_kind::shuffle && fp8.shuffles == 4 && fp8.select_levels == 1);

// One register bit against one lane bit: one coset stays, the other is one xor-shuffle for two registers.
constexpr auto pair = layout_from_bases(tile_space(1, 1), {{reg, {{0, 1}}}, {lane, {{1, 0}}}});
constexpr auto exchange = *plan_conversion(pair, transpose_layout(pair), 2);
static_assert(exchange.kind == conversion_kind::shuffle && exchange.shuffles == 1 && exchange.select_levels == 1);
static_assert(exchange.rounds.bits == 1 && exchange.rounds.first_still && exchange.rounds.distinct_fetch_log2 == 1);

TEST(layout_conversion, kinds_by_what_must_move) {
  linear_layout l = fit(wgmma_accumulator_layout(4), tile_space(6, 4));
  EXPECT_EQ(plan_conversion(l, l, 2)->kind, conversion_kind::none);
  linear_layout swapped = l;
  std::swap(swapped.col[0], swapped.col[1]);
  EXPECT_EQ(plan_conversion(l, swapped, 2)->kind, conversion_kind::registers);
  EXPECT_EQ(plan_conversion(l, swapped, 2)->select_levels, 0);
  swapped = l;
  std::swap(swapped.col[std::size_t(l.in.shift(lane))], swapped.col[std::size_t(l.in.shift(lane)) + 1]);
  EXPECT_EQ(plan_conversion(l, swapped, 2)->kind, conversion_kind::shuffle);
  swapped = l;
  std::swap(swapped.col[std::size_t(l.in.shift(warp))], swapped.col[0]);
  EXPECT_EQ(plan_conversion(l, swapped, 2)->kind, conversion_kind::shared);
  linear_layout missing = l;
  missing.col[0] = 0;
  EXPECT_FALSE(plan_conversion(missing, l, 2));
  EXPECT_EQ(plan_conversion(l, missing, 2)->kind, conversion_kind::registers); // dropping copies is free
}

// ---- staging --------------------------------------------------------------------------------------------------------
// f16 64x64, rows in registers -> columns in registers: with stmatrix.trans both sides move 16 bytes per lane.
constexpr auto rows = blocked_layout({{0, 3}, {2, 3}, {2, 0}}, tile_space(6, 6));
constexpr auto turn = plan_shared(rows, transpose_layout(rows), 1, consecutive_phases(), true);
static_assert(turn.store == shared_access::matrix_trans && turn.load == shared_access::plain && turn.load_width == 3);
static_assert(plan_shared(rows, transpose_layout(rows), 1, consecutive_phases()).load_width == 0);
constexpr auto wide_rows = blocked_layout({{1, 3}, {2, 3}, {2, 0}}, tile_space(6, 6));
static_assert(plan_shared(wide_rows, transpose_layout(wide_rows), 1, consecutive_phases()).load_width == 2);

TEST(layout_staging, the_construction_yields_the_classic_xor_swizzle) {
  // 4x4 f32, 4 lanes, 4 banks; rows to columns. Bank bits from the source's lanes, Seg above: (r,c) is at 4c + (r ^ c).
  f2_vectors source_lanes{4, 8}, destination_lanes{1, 2};
  f2_vectors columns = source_lanes + common_complement(source_lanes, destination_lanes, {1, 2, 4, 8});
  linear_layout smem = zero_map({{offset, 4}}, tile_space(2, 2));
  for (int i = 0; i < 4; ++i) smem.col[std::size_t(i)] = columns[i];
  linear_layout to = invert(smem);
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 4; ++c) EXPECT_EQ(int(to(f2_word(r * 4 + c))), 4 * c + (r ^ c));
  EXPECT_EQ(conflict_ways({to(4), to(8)}, 2, 2), 0);
  EXPECT_EQ(conflict_ways({to(1), to(2)}, 2, 2), 0);
}

TEST(layout_staging, refuses_what_it_does_not_move) {
  linear_layout l = fit(wgmma_accumulator_layout(4), tile_space(6, 4)), other = l;
  EXPECT_THROW(plan_shared(l, mma_accumulator_layout(), 2, consecutive_phases()), layout_error);
  other.col[0] = 0;
  EXPECT_THROW(plan_shared(l, other, 2, consecutive_phases()), layout_error);
  linear_layout a = l * identity_layout(cta, d0, 1), b = l * identity_layout(reg, d0, 1) * copies_layout(cta, 1, d0);
  EXPECT_THROW(plan_shared(a, b, 2, consecutive_phases()), layout_error);
}

// ---- bank conflicts -------------------------------------------------------------------------------------------------
constexpr f2_vectors whole_warp{1, 2, 4, 8, 16};
static_assert(count_conflicts([](int l) { return l * 4; }, 4, whole_warp, 5, 5) == 1);
static_assert(count_conflicts([](int) { return 64; }, 4, whole_warp, 5, 5) == 1); // one word: broadcast
static_assert(count_conflicts([](int l) { return l * 8; }, 4, whole_warp, 5, 5) == 2);
static_assert(count_conflicts([](int l) { return l * 128; }, 4, whole_warp, 5, 5) == 32); // a column of 32x32 f32
static_assert(count_conflicts([](int l) { return l * 132; }, 4, whole_warp, 5, 5) == 1);  // one word of padding per row
static_assert(count_conflicts([](int l) { return l * 132; }, 4, whole_warp, 5, 6) == 1);
static_assert(conflict_ways({32, 64, 128, 256, 512}, 2, 5) == 5 && conflict_ways({33, 66, 132, 264, 528}, 2, 5) == 0);

// ---- matrix loads ---------------------------------------------------------------------------------------------------
constexpr auto a_to_smem = compose(fit(mma_a_layout(1), tile_space(6, 6)), invert(swizzled_tile(7, 1, 6, 6)));
static_assert(a_to_smem.basis(reg, 0) == 1 && a_to_smem.basis(reg, 1) == 512 && a_to_smem.basis(reg, 2) == 8);
static_assert(a_to_smem.basis(lane, 1) == 4 && a_to_smem.basis(lane, 2) == 72 && a_to_smem.basis(lane, 4) == 288);
static_assert(plan_matrix(a_to_smem, 1, false)->matrices == 2);

TEST(layout_matrix, refuses_rows_that_are_not_whole) {
  linear_layout smem = swizzled_tile(7, 1, 6, 6);
  EXPECT_FALSE(plan_matrix(compose(fit(mma_b_layout(1), tile_space(6, 6)), invert(smem)), 1, false));
  EXPECT_TRUE(plan_matrix(compose(fit(mma_b_layout(1), tile_space(6, 6)), invert(smem)), 1, true));
  EXPECT_FALSE(
      plan_matrix(compose(fit(mma_b_layout(2), tile_space(5, 5)), invert(swizzled_tile(7, 2, 5, 5))), 2, true));
  EXPECT_FALSE(plan_matrix(compose(fit(mfma_a_layout(5), tile_space(6, 6)), invert(smem)), 1, false)); // 64 lanes
}

// ---- reductions -----------------------------------------------------------------------------------------------------
constexpr auto along_n = plan_reduction(wgmma_accumulator_layout(7), d1);
static_assert(along_n.count(reg) == 5 && along_n.count(lane) == 2 && along_n.count(warp) == 0 && along_n.steps == 7);
constexpr auto along_m = plan_reduction(wgmma_accumulator_layout(7), d0);
static_assert(along_m.count(reg) == 1 && along_m.count(lane) == 3 && along_m.count(warp) == 2);
constexpr auto in_order = plan_reduction(wgmma_accumulator_layout(3), d1, true);
static_assert(in_order.steps == 3 && in_order.step[0].level == reg && in_order.step[1].level == lane);
static_assert(in_order.step[0].direction == 1 && in_order.step[1].direction == 2 && in_order.step[2].direction == 4);

TEST(layout_reduction, refuses_half_an_axis) {
  linear_layout l = mma_accumulator_layout();
  l.col[0] = 0;
  EXPECT_THROW(plan_reduction(l, d1), layout_error);
  EXPECT_THROW(plan_reduction(l, d1, true), layout_error);
}

// ---- owners, vectors, index terms -----------------------------------------------------------------------------------
static_assert(free_bits(layout_from_bases(tile_space(0, 2), {{lane, {{0, 1}, {0, 2}}}, {warp, {{0, 3}}}})) == 4);

TEST(layout_vectorize, facts_limit_the_width) {
  EXPECT_EQ(vectorize(rows, d1, 1).width, 3);
  EXPECT_EQ(vectorize(rows, d1, 1, {.align_bytes = 2}).width, 1);
  EXPECT_EQ(vectorize(rows, d1, 1, {.align_bytes = 0}).width, 0);
  EXPECT_EQ(vectorize(rows, d1, 1, {.contiguity = 2}).width, 2);
  EXPECT_EQ(vectorize(rows, d1, 1, {.mask_run = 0}).width, 0);
  EXPECT_EQ(vectorize(rows, d1, 2).width, 2);
  EXPECT_EQ(vectorize(rows, d1, 1, {}, 3).width, 2);
  EXPECT_EQ(vectorize(rows, d0, 1).width, 0);
}

TEST(layout_index_terms, one_shift_for_a_plain_run) {
  linear_layout l = default_blocked_layout({64, 64}, {.num_warps = 4});
  index_terms column = terms_of(l, lane, d1), row = terms_of(l, lane, d0);
  ASSERT_EQ(column.n, 1);
  EXPECT_EQ(column.term[0], (index_term{0b01111, 2}));
  ASSERT_EQ(row.n, 1);
  EXPECT_EQ(row.term[0], (index_term{0b10000, -4}));
  EXPECT_TRUE(column.disjoint);
  EXPECT_EQ(reachable_bits(l, {lane, warp}, d1), 0b111100u);
  linear_layout overlapping = swizzled_tile(7, 1, 3, 6);
  EXPECT_FALSE(terms_of(overlapping, offset, d1).disjoint);
}

} // namespace
} // namespace kiln
