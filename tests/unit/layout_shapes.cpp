// From shapes to layouts: padded spaces, shape:stride modes, blocked layouts, and the default layout of a tile.
#include "kiln/layout/blocked.hpp"
#include "kiln/layout/ownership.hpp"
#include "kiln/layout/shape.hpp"
#include "kiln/layout/shape_ops.hpp"
#include "kiln/layout/shape_stride.hpp"
#include "kiln/layout/vectorize.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace kiln {
namespace {

using enum layout_dim;

static_assert(log2_ceil(1) == 0 && log2_ceil(2) == 1 && log2_ceil(3) == 2 && log2_ceil(1024) == 10 &&
              log2_ceil(1025) == 11);
static_assert(log2_exact(64) == 6 && !log2_exact(48) && !log2_exact(0) && !log2_exact(-8));
static_assert(tile_space({48, 1, 5}) == bit_space{{d2, 3}, {d1, 0}, {d0, 6}});
static_assert(tile_space(std::span<const std::int64_t>{}).total() == 0);
static_assert(tile_space({4, 8}) == tile_space(2, 3));

static_assert(*shape_stride(offset, d0, {{2, 1}, {3, 16}}, 7) ==
              linear_layout{{{offset, 5}}, {{d0, 7}}, {1, 2, 16, 32, 64}});
static_assert(!shape_stride(offset, d0, {{2, 3}}, 5));         // 3 + 6 carries
static_assert(!shape_stride(offset, d0, {{1, 3}, {1, 2}}, 5)); // 3 and 2 share a bit
static_assert(shape_stride(offset, d0, {{1, 3}, {1, 4}}, 5));  // 3 + 4 does not carry
static_assert(!shape_stride(offset, d0, {{2, 16}}, 5));        // 32 does not fit
static_assert(!shape_stride(offset, d0, {{1, -1}}, 5));
static_assert(shape_stride(lane, d0, {{5, 0}, {2, 8}}, 5)->columns().n == 7); // stride 0: copies

TEST(layout_shape, packs_row_major) {
  std::vector<std::int64_t> extents{4, 8, 2};
  bit_space s = tile_space(extents);
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 8; ++j)
      for (std::int64_t k = 0; k < 2; ++k) {
        std::vector<std::int64_t> at{i, j, k};
        EXPECT_EQ(pack_coordinate(s, at), f2_word((i * 8 + j) * 2 + k));
      }
  EXPECT_FALSE(is_padded(extents));
  EXPECT_TRUE(is_padded(std::vector<std::int64_t>{4, 6}));
  EXPECT_THROW(tile_space({4, 0}), layout_error);
  EXPECT_THROW(tile_space({1, 1, 1, 1, 1, 1, 1, 1, 1}), layout_error);
}

// The default layout. f32, 128 x 64 on 4 warps of 32: four columns in registers, 16 lanes along the row.
constexpr auto wide = default_blocked_layout({128, 64}, {.element_bits = 32, .num_warps = 4});
static_assert(same_map(wide, blocked_layout({{0, 2}, {1, 4}, {2, 0}}, tile_space(7, 6))));
static_assert(vectorize(wide, d1, 2).width == 2 && wide.injective() && wide.surjective());
// A column-major order turns it around.
constexpr int column_major[] = {0, 1};
static_assert(same_map(default_blocked_layout({64, 128}, {.num_warps = 4, .order = column_major}),
                       transpose_layout(wide)));
// 16 bytes at most, whatever the element; one element where it is that large already.
static_assert(vectorize(default_blocked_layout({4096}, {.element_bits = 8}), d0, 0).width == 4);
static_assert(vectorize(default_blocked_layout({4096}, {.element_bits = 16}), d0, 1).width == 3);
static_assert(vectorize(default_blocked_layout({4096}, {.element_bits = 64}), d0, 3).width == 1);
static_assert(vectorize(default_blocked_layout({4096}, {.element_bits = 1}), d0, 0).width == 4);
static_assert(vectorize(default_blocked_layout({4096}, {.element_bits = 16, .max_vector_bytes = 4}), d0, 1).width == 1);
// Threads before vectors: 256 elements on 128 threads leave two for each.
static_assert(default_blocked_layout({256}, {.element_bits = 16}).in.bits(reg) == 1);
// Smaller than the CTA: copies.
constexpr auto small = default_blocked_layout({40}, {.num_warps = 4});
static_assert(small.in == bit_space{{reg, 0}, {lane, 5}, {warp, 2}} && small.surjective());
static_assert(owners(small) == owner_masks{0, 0, 2, 0});
constexpr auto scalar = default_blocked_layout(std::span<const std::int64_t>{}, {.num_warps = 2});
static_assert(owners(scalar) == owner_masks{0, 31, 1, 0} && scalar.out.total() == 0);

TEST(layout_blocked, default_covers_every_tile_and_wastes_no_thread) {
  const std::int64_t sizes[] = {1, 2, 3, 16, 48, 100, 512};
  for (std::int64_t a : sizes)
    for (std::int64_t b : sizes)
      for (std::int64_t c : {1, 5, 8})
        for (int bits : {1, 8, 16, 32, 64})
          for (int warps : {1, 4, 16})
            for (int warp_size : {32, 64})
              for (bool reversed : {false, true}) {
                const std::vector<std::int64_t> extents{a, b, c};
                const int order[] = {0, 2, 1};
                blocked_request q{.element_bits = bits, .num_warps = warps, .warp_size = warp_size};
                if (reversed) q.order = order;
                linear_layout l = default_blocked_layout(extents, q);
                ASSERT_EQ(l.out, tile_space(extents));
                ASSERT_TRUE(l.surjective());
                ASSERT_EQ(f2_unit(l.in.bits(lane)), f2_word(warp_size));
                ASSERT_EQ(f2_unit(l.in.bits(warp)), f2_word(warps));
                int threads = l.in.bits(lane) + l.in.bits(warp), owning = 0;
                owner_masks free = owners(l);
                ASSERT_EQ(free.reg, 0u); // never two registers for one element
                owning = threads - std::popcount(free.lane) - std::popcount(free.warp);
                ASSERT_EQ(owning, std::min(threads, l.out.total()));
                if (free.warp != f2_low_mask(l.in.bits(warp))) { ASSERT_EQ(free.lane, 0u) << "lanes before warps"; }
              }
}

TEST(layout_blocked, refuses_what_has_no_bits) {
  EXPECT_THROW(default_blocked_layout({64}, {.num_warps = 3}), layout_error);
  EXPECT_THROW(default_blocked_layout({64}, {.warp_size = 48}), layout_error);
  EXPECT_THROW(default_blocked_layout({64}, {.max_vector_bytes = 12}), layout_error);
  const int twice[] = {0, 0}, outside[] = {0, 2}, one[] = {0};
  EXPECT_THROW(default_blocked_layout({64, 64}, {.order = twice}), layout_error);
  EXPECT_THROW(default_blocked_layout({64, 64}, {.order = outside}), layout_error);
  EXPECT_THROW(default_blocked_layout({64, 64}, {.order = one}), layout_error);
}

TEST(layout_shape_ops, refuse_what_does_not_fit) {
  linear_layout l = default_blocked_layout({16, 32}, {});
  EXPECT_THROW(reshape_layout(l, tile_space({16, 16})), layout_error);
  EXPECT_THROW(reshape_layout(reorder_out(l, {{d0, 4}, {d1, 5}}), tile_space({512})), layout_error);
  EXPECT_THROW(permute_layout(l, {0}), layout_error);
  EXPECT_THROW(permute_layout(l, {0, 0}), layout_error);
}

TEST(layout_shape_ops, split_needs_one_register_bit_for_the_axis) {
  EXPECT_EQ(split_register(layout_from_bases(tile_space(2, 1), {{reg, {{1, 0}, {0, 1}}}, {lane, {{2, 0}}}}), d1), 1);
  EXPECT_EQ(split_register(layout_from_bases(tile_space(2, 1), {{reg, {{1, 0}}}, {lane, {{0, 1}, {2, 0}}}}), d1), -1);
  EXPECT_EQ(split_register(layout_from_bases(tile_space(2, 1), {{reg, {{1, 1}}}, {lane, {{1, 0}, {2, 0}}}}), d1), -1);
  EXPECT_EQ(split_register(layout_from_bases(tile_space(1, 1), {{reg, {{0, 1}}}, {lane, {{1, 1}}}}), d1), -1);
}

} // namespace
} // namespace kiln
