// The 16- and 8-bit floating host types, against a second implementation: every pattern both ways, ties and boundaries
// of every pair of neighbours from float and from double, a dense sweep of all floats, integers, NaN, comparison.
#include <kiln/dtype/float8.hpp>

#include "float_reference.hpp"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace {

using namespace kiln;
using kiln_test::float_reference;

template <class T> const float_reference& reference_of();
template <> const float_reference& reference_of<f16>() { return kiln_test::reference_f16(); }
template <> const float_reference& reference_of<bf16>() { return kiln_test::reference_bf16(); }
template <> const float_reference& reference_of<f8e4m3>() { return kiln_test::reference_f8e4m3(); }
template <> const float_reference& reference_of<f8e5m2>() { return kiln_test::reference_f8e5m2(); }

template <class T> class StorageFloat : public testing::Test {};
using StorageTypes = testing::Types<f16, bf16, f8e4m3, f8e5m2>;
class StorageTypeName {
public:
  template <class T> static std::string GetName(int) { return name_of(dtype_of<T>); }
};
TYPED_TEST_SUITE(StorageFloat, StorageTypes, StorageTypeName);

template <class T> constexpr unsigned pattern_count = 1u << bits_of(dtype_of<T>);

template <class T> T pattern(unsigned i) { return T::from_bits(static_cast<decltype(T{}.bits)>(i)); }

// Counts differences and prints the first few, so that a broken conversion does not print four billion lines.
class comparison {
public:
  template <class From> void expect(From x, unsigned got, unsigned want) {
    if (got == want) return;
    if (faults_++ < 5)
      ADD_FAILURE() << "from " << std::hexfloat << static_cast<long double>(x) << std::hex << ": got 0x" << got
                    << ", want 0x" << want;
  }
  ~comparison() { EXPECT_EQ(faults_, 0); }

private:
  long faults_ = 0;
};

TYPED_TEST(StorageFloat, DecodesEveryPattern) {
  const float_reference& reference = reference_of<TypeParam>();
  for (unsigned i = 0; i < pattern_count<TypeParam>; ++i) {
    const TypeParam x = pattern<TypeParam>(i);
    const f32 narrow = static_cast<f32>(x);
    const f64 wide = static_cast<f64>(x);
    if (reference.is_nan(i)) {
      ASSERT_TRUE(std::isnan(narrow) && std::isnan(wide)) << i;
      continue;
    }
    const long double want = reference.decode(i);
    ASSERT_TRUE(narrow == want && wide == want) << i;
    ASSERT_TRUE(std::signbit(narrow) == std::signbit(want) && std::signbit(wide) == std::signbit(want)) << i;
  }
}

TYPED_TEST(StorageFloat, EveryPatternSurvivesTheRoundTrip) {
  for (unsigned i = 0; i < pattern_count<TypeParam>; ++i) {
    const TypeParam x = pattern<TypeParam>(i);
    const TypeParam from_f32(static_cast<f32>(x)), from_f64(static_cast<f64>(x));
    if (reference_of<TypeParam>().is_nan(i)) {
      ASSERT_TRUE(reference_of<TypeParam>().is_nan(from_f32.bits) && reference_of<TypeParam>().is_nan(from_f64.bits))
          << i;
      continue;
    }
    unsigned want = i;
    // The one thing that does not come back: an infinity of f8e5m2 saturates.
    if (std::isinf(static_cast<f32>(x)) && is_f8(dtype_of<TypeParam>)) --want;
    ASSERT_EQ(from_f32.bits, want);
    ASSERT_EQ(from_f64.bits, want);
  }
}

TYPED_TEST(StorageFloat, RoundsFloatsAtAndAroundEveryTie) {
  const float_reference& reference = reference_of<TypeParam>();
  const auto& values = reference.values();
  comparison results;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const f32 tie = static_cast<f32>((values[i] + values[i + 1]) / 2), value = static_cast<f32>(values[i]);
    ASSERT_EQ(static_cast<long double>(tie), (values[i] + values[i + 1]) / 2);
    for (const f32 x :
         {tie, std::nextafterf(tie, 0), std::nextafterf(tie, INFINITY), value, std::nextafterf(value, INFINITY)}) {
      results.expect(x, TypeParam(x).bits, reference.encode(x));
      results.expect(-x, TypeParam(-x).bits, reference.encode(-x));
    }
  }
}

// A double a hair off a tie would be pulled onto the tie by a stop in float, and then go the wrong way.
TYPED_TEST(StorageFloat, RoundsDoublesOnce) {
  const float_reference& reference = reference_of<TypeParam>();
  const auto& values = reference.values();
  comparison results;
  long double_rounding_cases = 0;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const f64 tie = static_cast<f64>((values[i] + values[i + 1]) / 2), value = static_cast<f64>(values[i]);
    for (const f64 x : {tie, std::nextafter(tie, 0), std::nextafter(tie, INFINITY), std::nextafter(value, INFINITY)}) {
      results.expect(x, TypeParam(x).bits, reference.encode(x));
      results.expect(-x, TypeParam(-x).bits, reference.encode(-x));
      double_rounding_cases += TypeParam(static_cast<f32>(x)).bits != TypeParam(x).bits;
    }
  }
  EXPECT_GT(double_rounding_cases, static_cast<long>(values.size()) / 4); // the test does exercise what it is for
}

TYPED_TEST(StorageFloat, RoundsADenseSweepOfAllFloats) {
  const float_reference& reference = reference_of<TypeParam>();
  comparison results;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << 32; i += 521) { // a prime: all low bits occur in all binades
    const f32 x = std::bit_cast<f32>(static_cast<u32>(i));
    if (std::isnan(x)) ASSERT_TRUE(reference.is_nan(TypeParam(x).bits)) << i;
    else results.expect(x, TypeParam(x).bits, reference.encode(x));
  }
}

TYPED_TEST(StorageFloat, HandlesTheEndsOfTheRange) {
  const float_reference& reference = reference_of<TypeParam>();
  const f32 largest = static_cast<f32>(reference.values().back());
  const bool saturates = is_f8(dtype_of<TypeParam>);
  comparison results;
  for (const f32 x : {largest, std::nextafterf(largest, INFINITY), largest * 1.01f, largest * 1.03f, largest * 1.07f,
                      largest * 1.5f, std::numeric_limits<f32>::max(), std::numeric_limits<f32>::denorm_min()}) {
    if (std::isinf(x)) continue; // bf16's largest times something
    results.expect(x, TypeParam(x).bits, reference.encode(x));
    results.expect(-x, TypeParam(-x).bits, reference.encode(-x));
  }
  for (const f64 x : {1e300, std::numeric_limits<f64>::max(), std::numeric_limits<f64>::denorm_min()}) {
    results.expect(x, TypeParam(x).bits, reference.encode(x));
    results.expect(-x, TypeParam(-x).bits, reference.encode(-x));
  }
  const unsigned top = saturates ? static_cast<unsigned>(reference.values().size()) - 1 : reference.infinity();
  EXPECT_EQ(TypeParam(std::numeric_limits<f32>::infinity()).bits, top);
  EXPECT_EQ(TypeParam(-std::numeric_limits<f64>::infinity()).bits, top | reference.sign());
  EXPECT_EQ(TypeParam(0.0f).bits, 0u);
  EXPECT_EQ(TypeParam(-0.0f).bits, reference.sign());
  EXPECT_EQ(TypeParam(-0.0).bits, reference.sign());
}

TYPED_TEST(StorageFloat, RoundsIntegersOnce) {
  const float_reference& reference = reference_of<TypeParam>();
  comparison results;
  for (int i = -70000; i <= 70000; ++i) results.expect(i, TypeParam(i).bits, reference.encode(i));
  // Around ties of large magnitude: one unit off a tie is lost by a stop in float or double.
  for (int power = 20; power < 63; ++power)
    for (std::int64_t eighth = 0; eighth < 4096; ++eighth)
      for (std::int64_t nudge = -1; nudge <= 1; ++nudge) {
        const std::int64_t x = (std::int64_t{1} << power) + (eighth << (power - 12)) + nudge;
        results.expect(x, TypeParam(x).bits, reference.encode(x));
        results.expect(-x, TypeParam(-x).bits, reference.encode(-x));
        const std::uint64_t u = static_cast<std::uint64_t>(x) * 2 + 1;
        results.expect(u, TypeParam(u).bits, reference.encode(u));
      }
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  results.expect(least, TypeParam(least).bits, reference.encode(static_cast<long double>(least)));
  EXPECT_EQ(TypeParam(true).bits, TypeParam(1).bits);
  EXPECT_EQ(TypeParam(std::numeric_limits<std::uint64_t>::max()).bits, reference.encode(18446744073709551615.0L));
}

TYPED_TEST(StorageFloat, ComparesAsNumbers) {
  const float_reference& reference = reference_of<TypeParam>();
  const unsigned step = pattern_count<TypeParam> > 256 ? 251 : 1;
  for (unsigned i = 0; i < pattern_count<TypeParam>; i += step)
    for (unsigned j = 0; j < pattern_count<TypeParam>; j += step) {
      const TypeParam a = pattern<TypeParam>(i), b = pattern<TypeParam>(j);
      const long double x = reference.decode(i), y = reference.decode(j);
      ASSERT_TRUE((a == b) == (x == y) && (a != b) == (x != y) && (a < b) == (x < y) && (a <= b) == (x <= y) &&
                  (a > b) == (x > y) && (a >= b) == (x >= y))
          << i << ' ' << j;
    }
  EXPECT_TRUE(TypeParam(0.0f) == TypeParam(-0.0f));
}

// The compiler's own binary16 where there is one: a third opinion.
#ifdef __FLT16_MAX__
TEST(Float16, AgreesWithTheCompiler) {
  comparison results;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << 32; i += 1021) {
    const f32 x = std::bit_cast<f32>(static_cast<u32>(i));
    if (!std::isnan(x)) results.expect(x, f16(x).bits, std::bit_cast<u16>(static_cast<_Float16>(x)));
  }
  for (unsigned i = 0; i < 65536; ++i) {
    const f32 want = static_cast<f32>(std::bit_cast<_Float16>(static_cast<u16>(i))),
              got = static_cast<f32>(pattern<f16>(i));
    ASSERT_TRUE(std::bit_cast<u32>(want) == std::bit_cast<u32>(got) || (std::isnan(want) && std::isnan(got))) << i;
  }
}
#endif

TEST(Float8, KnownConversions) { // what other systems got wrong
  EXPECT_EQ(f32(f8e4m3(1.0625f)), 1.0f);
  EXPECT_EQ(f32(f8e4m3(1.0625001f)), 1.125f);
  EXPECT_EQ(f32(f8e4m3(126.24f)), 128.0f);
  EXPECT_EQ(f32(f8e4m3(449.0f)), 448.0f);
  EXPECT_EQ(f32(f8e4m3(1000.0f)), 448.0f);
  EXPECT_EQ(f32(f8e4m3(-1000.0f)), -448.0f);
  EXPECT_EQ(f8e4m3(0x1p-10f).bits, 0x00);
  EXPECT_EQ(f32(f8e4m3(0x1p-9f)), 0x1p-9f);
  EXPECT_EQ(f8e4m3(-0.0f).bits, 0x80);
  EXPECT_TRUE(std::isnan(f32(f8e4m3(std::numeric_limits<f32>::quiet_NaN()))));
  EXPECT_EQ(f32(f8e5m2(f32(f16(1.125f)))), 1.0f);
  EXPECT_EQ(f32(f8e5m2(f32(f16(1.375f)))), 1.5f);
}

// All of it in constant expressions, and as template arguments.
template <auto X> constexpr f32 value = static_cast<f32>(X);
static_assert(value<f16(65519.0)> == 65504.0f && f16(65520.0).bits == 0x7c00 && f16(0x1p-25).bits == 0 &&
              f16(0x1.0000000001p-25).bits == 1);
static_assert(value<bf16(3.0)> == 3.0f && bf16(0x1p-133).bits == 1 && bf16(0x1.ffp127).bits == 0x7f80);
static_assert(value<f8e4m3(448)> == 448.0f && value<f8e5m2(57344)> == 57344.0f && f8e5m2(1e9).bits == 0x7b);
static_assert(std::is_trivially_default_constructible_v<f16> && std::is_trivially_copyable_v<f8e5m2> &&
              sizeof(f8e4m3[3]) == 3);
static_assert(!std::is_convertible_v<f32, f16> && !std::is_convertible_v<f16, f32> &&
              !std::is_constructible_v<bool, f16>);

} // namespace
