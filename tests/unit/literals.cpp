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

namespace {
// The shortcuts for common numbers give what the general conversion gives.
template <class T, class S>
void expect_same(S s) {
  scalar const c = make_scalar(dtype_of<T>, s);
  EXPECT_EQ(kiln::detail::literal_bits<T>(s), is_int(c.type) ? int_of(c) : static_cast<std::int64_t>(c.bits)) << name_of(dtype_of<T>) << " of " << s;
  recorder r;
  kiln::detail::check_literal<T>(r, s);
  EXPECT_EQ(r.error.ok(), literal_fits(dtype_of<T>, s)) << name_of(dtype_of<T>) << " of " << s;
}
template <class S>
void expect_same_for_all_types(S s) {
  expect_same<i8>(s), expect_same<i16>(s), expect_same<i32>(s), expect_same<i64>(s);
  expect_same<u8>(s), expect_same<u16>(s), expect_same<u32>(s), expect_same<u64>(s);
  expect_same<f16>(s), expect_same<bf16>(s), expect_same<f32>(s), expect_same<f64>(s);
}
} // namespace

TEST(Literals, ShortcutsAgreeWithTheGeneralConversion) {
  for (std::int64_t v : {i64{0}, i64{1}, i64{-1}, i64{127}, i64{128}, i64{-128}, i64{-129}, i64{255}, i64{256}, i64{32767}, i64{65536}, i64{INT32_MAX},
                         i64{INT32_MAX} + 1, i64{INT32_MIN}, i64{UINT32_MAX}, i64{UINT32_MAX} + 1, INT64_MAX, INT64_MIN}) {
    expect_same_for_all_types(v);
    expect_same_for_all_types(static_cast<int>(v));
    expect_same_for_all_types(static_cast<unsigned>(v));
    expect_same_for_all_types(static_cast<std::uint64_t>(v));
    expect_same_for_all_types(static_cast<short>(v));
  }
  for (float v : {0.f, -0.f, 1.5f, 1e-45f, 3e38f, __builtin_huge_valf(), -__builtin_huge_valf(), __builtin_nanf("1")}) {
    expect_same<f16>(v), expect_same<bf16>(v), expect_same<f32>(v), expect_same<f64>(v);
    expect_same<f32>(static_cast<double>(v)), expect_same<f64>(static_cast<double>(v));
  }
}
