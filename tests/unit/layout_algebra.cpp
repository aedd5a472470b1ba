// The map and its algebra on small facts: the tutorial's example, products and quotients, and what is refused.
#include "kiln/layout/fragment.hpp"
#include "kiln/layout/linear_layout.hpp"
#include "kiln/layout/vectorize.hpp"

#include <gtest/gtest.h>

namespace kiln {
namespace {

using enum layout_dim;

constexpr auto toy = layout_from_bases(tile_space(2, 2), {{reg, {{0, 1}}}, {lane, {{1, 1}, {0, 2}}}, {warp, {{2, 0}}}});
static_assert(toy(0b1'11'1) == 0b11'10 && toy.injective() && toy.surjective());
static_assert(invert(toy)(0b01'00) == 0b0'01'1); // element (1,0): lane 1, register 1
static_assert(compose(toy, invert(toy)).col[3] == 8 && same_map(invert(invert(toy)), toy));
static_assert(vectorize(toy, d1, 2).width == 0); // lane bit 0 reverses the pair in odd lanes
constexpr auto straight =
    layout_from_bases(tile_space(2, 2), {{reg, {{0, 1}}}, {lane, {{1, 0}, {0, 2}}}, {warp, {{2, 0}}}});
static_assert(vectorize(straight, d1, 2).width == 1);

template <linear_layout> struct usable_as_template_argument {};
using check_structural = usable_as_template_argument<toy>;

// The picture in the header, element by element.
TEST(layout_toy, equals_the_picture) {
  constexpr int lanes[2][4] = {{0, 0, 2, 2}, {1, 1, 3, 3}};
  constexpr int registers[2][4] = {{0, 1, 0, 1}, {1, 0, 1, 0}};
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 4; ++column) {
      f2_word at = invert(toy)(f2_word(row * 4 + column));
      EXPECT_EQ(toy.in.get(at, warp), f2_word(row / 2));
      EXPECT_EQ(toy.in.get(at, lane), f2_word(lanes[row % 2][column])) << row << "," << column;
      EXPECT_EQ(toy.in.get(at, reg), f2_word(registers[row % 2][column])) << row << "," << column;
    }
}

static_assert(same_map(*divide_left(wgmma_accumulator_layout(5), mma_accumulator_layout()),
                       zero_map({{lane, 0}}, {}) * identity_layout(reg, d1, 2) * identity_layout(warp, d0, 2)));
static_assert(!divide_left(mma_accumulator_layout(), identity_layout(reg, d1, 2)));
static_assert(same_map(sublayout(wgmma_accumulator_layout(5), {{reg, 2}, {lane, 5}}, {{d1, 3}, {d0, 4}}),
                       mma_accumulator_layout()));
static_assert(!same_map(mma_accumulator_layout(), wgmma_accumulator_layout(3)));
static_assert(same_map(toy, reorder_out(toy, {{d0, 2}, {d1, 2}})) && toy != reorder_out(toy, {{d0, 2}, {d1, 2}}));
static_assert(same_map(identity_layout(reg, d1, 4) * identity_layout(lane, d0, 4) * copies_layout(lane, 1, d0),
                       wmma11_a_layout()));
static_assert(strided_layout(offset, 2, d0, 3, 6)(0b11) == 0b11'000);

// fit: smaller tiles repeat in registers; larger wrap, and register copies vanish while lane copies stay.
static_assert(fit(toy, tile_space(3, 3)).in.bits(reg) == 3 && fit(toy, tile_space(3, 3)).injective());
static_assert(fit(toy, tile_space(2, 0)).in.bits(reg) == 0 && fit(toy, tile_space(2, 0)).in.bits(lane) == 2);
static_assert(fit(toy, tile_space(2, 0)).basis(lane, 1) == 0 && fit(toy, tile_space(2, 0)).surjective());

// Elimination: rank, solutions that use the earliest vectors, intersections, the common complement.
static_assert(f2_rank({1, 2, 3}) == 2 && f2_span({5, 6}).contains(3) && !f2_span({5, 6}).contains(1));
static_assert(f2_intersect({1, 2}, {3, 4}).n == 1 && f2_intersect({1, 2}, {3, 4})[0] == 3);
constexpr f2_vectors xor_swizzle = common_complement({4, 8}, {1, 2}, {1, 2, 4, 8});
static_assert(xor_swizzle.n == 2 && xor_swizzle[0] == 5 && xor_swizzle[1] == 10);

TEST(layout_inverse, prefers_early_columns) {
  // Column 4 is held by register bit 0 and by lane bit 1: the inverse answers with the register.
  linear_layout l = zero_map({{reg, 1}, {lane, 2}}, {{d0, 2}});
  l.col = {2, 1, 2};
  EXPECT_EQ(invert(l)(2), l.in.put(reg, 1));
  EXPECT_EQ(invert(l)(1), l.in.put(lane, 1));
  EXPECT_FALSE(l.injective());
  EXPECT_TRUE(l.surjective());
  l.col = {2, 0, 2};
  EXPECT_FALSE(l.surjective());
  EXPECT_EQ(invert(l)(1), 0u);
}

TEST(layout_errors, are_said_and_not_wrapped) {
  EXPECT_THROW(zero_map({{offset, 33}}, {}), layout_error);
  EXPECT_THROW((bit_space{{d0, 1}, {d0, 1}}), layout_error);
  EXPECT_THROW((bit_space{{d0, 40}, {d1, 40}}), layout_error);
  EXPECT_THROW(tile_space(2, 2).with(d1, 61), layout_error);
  EXPECT_THROW(axis_dim(8), layout_error);
  EXPECT_THROW(identity_layout(reg, d0, 20) * identity_layout(lane, d0, 13), layout_error);
  EXPECT_THROW((bit_space{{d0, 1}, {d1, 1}, {d2, 1}, {d3, 1}, {d4, 1}, {d5, 1}, {d6, 1}, {d7, 1}, {reg, 1}}),
               layout_error);
  f2_vectors full;
  for (int i = 0; i < 64; ++i) full.push(1);
  EXPECT_THROW(full.push(1), layout_error);
  EXPECT_STREQ(layout_error("text").what(), "text");
}

} // namespace
} // namespace kiln
