// C++ numbers that meet tiles: they take the tile's type, rounded once, or are refused where they would be another
// number.
#include <kiln/kernel.hpp>

#include <gtest/gtest.h>
#include <limits>

using namespace kiln;

namespace {

// A kernel that adds the number X to tiles of type T.
template <class T, auto X>
inline constexpr auto add_number = kernel<"add_number">([](context& k, ptr<T> y) {
  auto at = y + k.arange<64>();
  store(at, load(at) + X);
});

static_assert(add_number<i8, 127>.ok && add_number<i8, -128>.ok && !add_number<i8, 128>.ok && !add_number<i8, -129>.ok);
static_assert(add_number<u8, 255>.ok && !add_number<u8, -1>.ok && add_number<u32, 0xffffffffu>.ok &&
              !add_number<i32, 0xffffffffu>.ok);
static_assert(add_number<u64, ~0ull>.ok && !add_number<i64, ~0ull>.ok &&
              add_number<i64, std::numeric_limits<long long>::min()>.ok);
static_assert(add_number<f16, 65504>.ok && !add_number<f16, 65520>.ok && add_number<f16, 0.1>.ok &&
              !add_number<f16, 1e5f>.ok);
static_assert(add_number<f16, inf>.ok && add_number<bf16, 1e38>.ok && !add_number<f32, 1e39>.ok &&
              add_number<f32, 16777217>.ok);

static_assert(add_number<i8, 300>.message() ==
              "kiln[T-04] the number 300 does not fit the element type i8; cast the other operand to a wider type");
static_assert(add_number<f16, 1e5>.message() ==
              "kiln[T-04] a number does not fit the element type f16; cast the other operand to a wider type");

template <class T, auto X> scalar recorded_number() {
  const graph_view g = add_number<T, X>.graph();
  for (int i = 0; i < g.size(); ++i)
    if (g[i].code == op::constant && g[i].type == dtype_of<T>)
      return scalar_from_bits(g[i].type, static_cast<u64>(g.attribute(i, 0)));
  return {};
}

TEST(Literals, AreRoundedOnceIntoTheTilesType) {
  EXPECT_EQ((recorded_number<i8, -3>()), scalar_of(i8{-3}));
  EXPECT_EQ((recorded_number<u64, ~0ull>()), scalar_of(~u64{0}));
  EXPECT_EQ((recorded_number<f16, 0x1.0020000000001p0>()), scalar_of(f16::from_bits(0x3c01))); // by way of f32: 0x3c00
  EXPECT_EQ((recorded_number<bf16, 0x1.01p0f>()), scalar_of(bf16::from_bits(0x3f80)));         // a tie, to even
  EXPECT_EQ((recorded_number<f32, 0.1>()), scalar_of(0.1f));
  EXPECT_EQ((recorded_number<f64, 0.1f>()), scalar_of(static_cast<f64>(0.1f)));
  EXPECT_EQ((recorded_number<f32, 16777217>()), scalar_of(16777216.0f));
}

} // namespace
