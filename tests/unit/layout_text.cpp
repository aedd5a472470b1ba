// Layouts as text.
#include "kiln/layout/fragment.hpp"
#include "kiln/layout/swizzle.hpp"
#include "kiln/layout/text.hpp"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(layout_text, writes_columns_in_axis_order) {
  EXPECT_EQ(to_string(mma_accumulator_layout()), "reg (0,1)(8,0) lane (0,2)(0,4)(1,0)(2,0)(4,0) -> d0 16, d1 8");
  EXPECT_EQ(to_string(reorder_out(mma_accumulator_layout(), {{layout_dim::d0, 4}, {layout_dim::d1, 3}})),
            to_string(mma_accumulator_layout()));
  EXPECT_EQ(to_string(row_major_tile(tile_space(1, 2))), "offset (0,1)(0,2)(1,0) -> d0 2, d1 4");
  EXPECT_EQ(to_string(invert(row_major_tile(tile_space(1, 1)))), "d1 (1) d0 (2) -> offset 4");
}

TEST(layout_text, empty_fields_and_scalars) {
  EXPECT_EQ(to_string(zero_map({{layout_dim::reg, 0}, {layout_dim::lane, 1}}, {{layout_dim::d0, 0}})),
            "reg - lane (0) -> d0 1");
  EXPECT_EQ(to_string(linear_layout{}), "->");
  EXPECT_EQ(to_string(zero_map({{layout_dim::warp, 1}}, {})), "warp () ->");
  for (int i = 0; i < 8; ++i) EXPECT_EQ(to_string(axis_dim(i)), "d" + std::to_string(i));
  EXPECT_EQ(to_string(layout_dim::cta), "cta");
}

} // namespace
} // namespace kiln
