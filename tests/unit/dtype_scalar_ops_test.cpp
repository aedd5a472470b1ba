// Scalar operations: integers against 128-bit arithmetic (all pairs for 8 bits), floats against the processor and
// against exact sums and products rounded by table search, constant evaluation against run time, and the list of known
// faults.
#include <kiln/dtype/scalar_ops.hpp>

#include "float_reference.hpp"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace kiln;
namespace ops = kiln::scalar_ops;
namespace soft = kiln::detail::soft;
__extension__ typedef __int128 wide_int;

constexpr dtype int_types[] = {dtype::i8, dtype::i16, dtype::i32, dtype::i64,
                               dtype::u8, dtype::u16, dtype::u32, dtype::u64};

wide_int wide(scalar s) { return is_signed_int(s.type) ? wide_int{int_of(s)} : wide_int{s.bits}; }
scalar wrap(dtype t, wide_int x) { return scalar_from_bits(t, static_cast<u64>(x)); }

// All values of the 8-bit types; corners and random values of the others.
std::vector<scalar> int_values(dtype t) {
  std::vector<scalar> values;
  if (bits_of(t) == 8) {
    for (u64 i = 0; i < 256; ++i) values.push_back({t, i});
    return values;
  }
  for (const int x : {0, 1, 2, 3, 5, 7, 10, 31, 32, 33, 63, 64, 65, 100, -1, -2, -3, -5, -7, -10})
    values.push_back(wrap(t, x));
  for (const scalar limit : {lowest_of(t), highest_of(t)})
    for (int nudge = -2; nudge <= 2; ++nudge) values.push_back(wrap(t, wide(limit) + nudge));
  std::mt19937_64 random(7 + static_cast<int>(t));
  for (int i = 0; i < 150; ++i) values.push_back(scalar_from_bits(t, random() >> (random() % 64)));
  return values;
}

wide_int floor_of(wide_int x, wide_int y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); }
wide_int ceil_of(wide_int x, wide_int y) { return x / y + (x % y != 0 && (x < 0) == (y < 0)); }

TEST(IntegerOps, AgreeWithWideArithmetic) {
  for (const dtype t : int_types) {
    const std::vector<scalar> values = int_values(t);
    for (const scalar a : values) {
      const wide_int x = wide(a);
      ASSERT_EQ(ops::neg(a), wrap(t, -x));
      ASSERT_EQ(ops::abs(a), wrap(t, x < 0 ? -x : x));
      ASSERT_EQ(ops::bit_not(a), wrap(t, ~x));
      for (const scalar b : values) {
        const wide_int y = wide(b);
        SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(static_cast<i64>(x)) + " " +
                     std::to_string(static_cast<i64>(y)));
        ASSERT_EQ(ops::add(a, b), wrap(t, x + y));
        ASSERT_EQ(ops::sub(a, b), wrap(t, x - y));
        ASSERT_EQ(ops::mul(a, b), scalar_from_bits(t, static_cast<u64>(x) * static_cast<u64>(y)));
        ASSERT_EQ(ops::fma(a, b, a), ops::add(ops::mul(a, b), a));
        ASSERT_EQ(ops::div(a, b), y == 0 ? wrap(t, -1) : wrap(t, x / y));
        ASSERT_EQ(ops::rem(a, b), y == 0 ? a : wrap(t, x % y));
        ASSERT_EQ(ops::floor_div(a, b), y == 0 ? wrap(t, x < 0 ? -2 : -1) : wrap(t, floor_of(x, y)));
        ASSERT_EQ(ops::ceil_div(a, b), y == 0 ? wrap(t, x > 0 ? 0 : -1) : wrap(t, ceil_of(x, y)));
        ASSERT_EQ(ops::min(a, b), x < y ? a : b);
        ASSERT_EQ(ops::max(a, b), x > y ? a : b);
        ASSERT_EQ(ops::bit_and(a, b), wrap(t, x & y));
        ASSERT_EQ(ops::bit_or(a, b), wrap(t, x | y));
        ASSERT_EQ(ops::bit_xor(a, b), wrap(t, x ^ y));
        ASSERT_TRUE(ops::eq(a, b) == scalar_of(x == y) && ops::ne(a, b) == scalar_of(x != y) &&
                    ops::lt(a, b) == scalar_of(x < y) && ops::le(a, b) == scalar_of(x <= y) &&
                    ops::gt(a, b) == scalar_of(x > y) && ops::ge(a, b) == scalar_of(x >= y));
      }
    }
  }
}

TEST(IntegerOps, ShiftsByAnyCountOfAnyType) {
  for (const dtype t : int_types)
    for (const dtype count_type : int_types)
      for (const scalar a : int_values(t))
        for (const scalar count :
             {wrap(count_type, 0), wrap(count_type, 1), wrap(count_type, bits_of(t) - 1), wrap(count_type, bits_of(t)),
              wrap(count_type, bits_of(t) + 1), wrap(count_type, 127), wrap(count_type, -1)}) {
          const bool out = count.bits >= static_cast<u64>(bits_of(t)); // -1 is a huge count, too
          ASSERT_EQ(ops::shl(a, count), out ? wrap(t, 0) : scalar_from_bits(t, a.bits << count.bits));
          ASSERT_EQ(ops::shr(a, count), out ? wrap(t, wide(a) < 0 ? -1 : 0) : wrap(t, wide(a) >> count.bits));
        }
}

// --- floating -------------------------------------------------------------------------------------------------------

template <class T> std::vector<T> float_values(int random_count) {
  using bits_type = std::conditional_t<sizeof(T) == 4, u32, u64>;
  std::vector<T> values;
  const T denormal = std::numeric_limits<T>::denorm_min(), normal = std::numeric_limits<T>::min(),
          largest = std::numeric_limits<T>::max();
  for (const T x : {T(0),
                    T(1),
                    T(2),
                    T(3),
                    T(0.5),
                    T(1.5),
                    T(0.1),
                    T(1) / 3,
                    T(10),
                    T(49),
                    T(1e10),
                    T(1e-10),
                    denormal,
                    3 * denormal,
                    normal,
                    std::nextafter(normal, T(0)),
                    std::nextafter(normal, T(1)),
                    largest,
                    std::nextafter(largest, T(0)),
                    largest / 2,
                    std::nextafter(T(1), T(0)),
                    std::nextafter(T(1), T(2)),
                    std::sqrt(largest),
                    std::sqrt(normal),
                    std::numeric_limits<T>::infinity(),
                    std::numeric_limits<T>::quiet_NaN()}) {
    values.push_back(x);
    values.push_back(-x);
  }
  std::mt19937_64 random(3);
  for (int i = 0; i < random_count; ++i) values.push_back(std::bit_cast<T>(static_cast<bits_type>(random())));
  // Near each other, for cancellation and for ties.
  for (int i = 0; i < random_count; ++i) {
    const T x = std::ldexp(T(1) + static_cast<T>(random() % 4096) / 4096, static_cast<int>(random() % 60) - 30);
    values.push_back(random() % 2 == 0 ? x : std::nextafter(-x, T(0)));
  }
  return values;
}

template <class T> void expect_same_number(const char* op, scalar got, T want, T x, T y, T z) {
  ASSERT_EQ(got.type, dtype_of<T>);
  if (std::isnan(want)) ASSERT_EQ(got, nan_of(got.type)) << op << ' ' << x << ' ' << y << ' ' << z; // the canonical one
  else
    ASSERT_EQ(got, scalar_of(want)) << op << std::hexfloat << ' ' << x << ' ' << y << ' ' << z << ": got "
                                    << value_of<T>(got) << ", want " << want;
}

// What constant evaluation computes, and what run time computes, is what the processor and the C library compute.
template <class T> void check_float_arithmetic() {
  const std::vector<T> values = float_values<T>(150);
  const detail::float_format f = detail::format_of(dtype_of<T>);
  const auto in_constants = [&](u64 bits) { return scalar{dtype_of<T>, bits}; };
  for (const T x : values) {
    const scalar a = scalar_of(x);
    expect_same_number("sqrt", ops::sqrt(a), std::sqrt(x), x, x, x);
    expect_same_number("soft sqrt", in_constants(soft::sqrt(f, a.bits)), std::sqrt(x), x, x, x);
    expect_same_number("floor", ops::floor(a), std::floor(x), x, x, x);
    expect_same_number("ceil", ops::ceil(a), std::ceil(x), x, x, x);
    expect_same_number("trunc", ops::trunc(a), std::trunc(x), x, x, x);
    expect_same_number("round", ops::round(a), std::round(x), x, x, x);
    for (const T y : values) {
      const scalar b = scalar_of(y);
      expect_same_number("add", ops::add(a, b), x + y, x, y, y);
      expect_same_number("sub", ops::sub(a, b), x - y, x, y, y);
      expect_same_number("mul", ops::mul(a, b), x * y, x, y, y);
      expect_same_number("div", ops::div(a, b), x / y, x, y, y);
      expect_same_number("soft add", in_constants(soft::add(f, a.bits, b.bits)), x + y, x, y, y);
      expect_same_number("soft sub", in_constants(soft::sub(f, a.bits, b.bits)), x - y, x, y, y);
      expect_same_number("soft mul", in_constants(soft::mul(f, a.bits, b.bits)), x * y, x, y, y);
      expect_same_number("soft div", in_constants(soft::div(f, a.bits, b.bits)), x / y, x, y, y);
      if (testing::Test::HasFatalFailure()) return;
      ASSERT_TRUE(ops::eq(a, b) == scalar_of(x == y) && ops::ne(a, b) == scalar_of(x != y) &&
                  ops::lt(a, b) == scalar_of(x < y) && ops::le(a, b) == scalar_of(x <= y) &&
                  ops::gt(a, b) == scalar_of(x > y) && ops::ge(a, b) == scalar_of(x >= y))
          << x << ' ' << y;
    }
  }
  // fma: addends of all sizes, and the ones that cancel most of the product.
  for (std::size_t i = 0; i < values.size(); i += 3)
    for (std::size_t j = 0; j < values.size(); j += 2) {
      const T x = values[i], y = values[j], product = x * y;
      for (const T z : {values[(i * 31 + j * 17) % values.size()], values[(i * 7 + j) % 50], -product,
                        std::nextafter(-product, T(0)), product}) {
        const scalar a = scalar_of(x), b = scalar_of(y), c = scalar_of(z);
        expect_same_number("fma", ops::fma(a, b, c), std::fma(x, y, z), x, y, z);
        expect_same_number("soft fma", in_constants(soft::fma(f, a.bits, b.bits, c.bits)), std::fma(x, y, z), x, y, z);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
}

TEST(FloatOps, F32AgreesWithTheProcessorInConstantsAndAtRunTime) { check_float_arithmetic<f32>(); }
TEST(FloatOps, F64AgreesWithTheProcessorInConstantsAndAtRunTime) { check_float_arithmetic<f64>(); }

// The 16-bit types go through f32; the result must be the correctly rounded one all the same. Long double holds sums
// and products of f16 exactly, and enough of everything else that rounding twice is harmless (64 >= 2 * 11 + 2).
void check_sixteen_bits(dtype t, const kiln_test::float_reference& reference) {
  std::mt19937 random(11);
  const detail::float_format f = detail::format_of(t);
  const auto expect = [&](const char* op, scalar got, u64 direct, long double want, unsigned a, unsigned b) {
    const scalar s = std::isnan(want) ? nan_of(t) : scalar{t, reference.encode(want)};
    ASSERT_EQ(got, s) << name_of(t) << ' ' << op << std::hex << " 0x" << a << " 0x" << b;
    ASSERT_EQ(direct, s.bits) << name_of(t) << " one rounding " << op << std::hex << " 0x" << a << " 0x" << b;
  };
  for (int i = 0; i < 600000; ++i) {
    unsigned a = random() & 0xffff, b = random() & 0xffff;
    if (i % 3 == 0) b = (a + random() % 4096) ^ (random() & 0x8000); // close in size: cancellation, ties
    if (i % 3 == 1) a &= 0x83ff;                                     // tiny: denormal results
    b &= 0xffff;
    const scalar x = {t, a}, y = {t, b};
    const long double p = reference.decode(a), q = reference.decode(b);
    expect("add", ops::add(x, y), soft::add(f, a, b), p + q, a, b);
    expect("sub", ops::sub(x, y), soft::sub(f, a, b), p - q, a, b);
    expect("mul", ops::mul(x, y), soft::mul(f, a, b), p * q, a, b);
    expect("div", ops::div(x, y), soft::div(f, a, b), p / q, a, b);
    if (testing::Test::HasFatalFailure()) return;
  }
  for (unsigned a = 0; a < 65536; ++a) {
    const scalar x = {t, a};
    const long double p = reference.decode(a);
    expect("sqrt", ops::sqrt(x), soft::sqrt(f, a), std::sqrt(p), a, a);
    expect("floor", ops::floor(x), ops::floor(x).bits, std::floor(p), a, a);
    expect("ceil", ops::ceil(x), ops::ceil(x).bits, std::ceil(p), a, a);
    expect("trunc", ops::trunc(x), ops::trunc(x).bits, std::trunc(p), a, a);
    expect("round", ops::round(x), ops::round(x).bits, std::round(p), a, a);
    ASSERT_EQ(ops::isnan(x), scalar_of(std::isnan(p)));
    ASSERT_EQ(ops::neg(x).bits, a ^ 0x8000u); // bits, NaN included
    ASSERT_EQ(ops::abs(x).bits, a & 0x7fffu);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(FloatOps, F16IsCorrectlyRounded) { check_sixteen_bits(dtype::f16, kiln_test::reference_f16()); }
TEST(FloatOps, BF16IsCorrectlyRounded) { check_sixteen_bits(dtype::bf16, kiln_test::reference_bf16()); }

// fma of the 16-bit types is defined as the f32 fma rounded once more.
TEST(FloatOps, SixteenBitFmaIsTheF32OneRoundedOnce) {
  std::mt19937 random(5);
  long differs = 0;
  for (int i = 0; i < 300000; ++i) {
    const bf16 a = bf16::from_bits(0x3f80 + random() % 128), b = bf16::from_bits(0x3f80 + random() % 128),
               c = bf16::from_bits(static_cast<u16>(random() % 0x3f80));
    const scalar got = ops::fma(scalar_of(a), scalar_of(b), scalar_of(c));
    ASSERT_EQ(got, scalar_of(bf16(std::fma(f32(a), f32(b), f32(c)))));
    differs += got.bits != soft::fma(detail::format_of(dtype::bf16), a.bits, b.bits, c.bits);
  }
  EXPECT_GT(differs, 0); // so the definition matters, and targets may not use a native 16-bit fma
}

// --- NaN, min, max --------------------------------------------------------------------------------------------------

template <class T> class NanRules : public testing::Test {};
using FloatTypes = testing::Types<f16, bf16, f32, f64>;
class FloatTypeName {
public:
  template <class T> static std::string GetName(int) { return name_of(dtype_of<T>); }
};
TYPED_TEST_SUITE(NanRules, FloatTypes, FloatTypeName);

TYPED_TEST(NanRules, MinMaxIgnoreOrPropagate) {
  constexpr dtype t = dtype_of<TypeParam>;
  const scalar one = make_scalar(t, 1), three = make_scalar(t, 3), minus_infinity = lowest_of(t);
  const float_element auto quiet = value_of<TypeParam>(nan_of(t));
  const scalar nans[] = {scalar_of(quiet), ops::neg(nan_of(t)), {t, nan_of(t).bits | 1}};
  for (const scalar n : nans) {
    for (const scalar x : {one, three, minus_infinity, highest_of(t)}) {
      EXPECT_TRUE(ops::max(n, x) == x && ops::max(x, n) == x && ops::min(n, x) == x && ops::min(x, n) == x);
      EXPECT_TRUE(is_nan(ops::max(n, x, nan_mode::propagate)) && is_nan(ops::max(x, n, nan_mode::propagate)));
      EXPECT_TRUE(is_nan(ops::min(n, x, nan_mode::propagate)) && is_nan(ops::min(x, n, nan_mode::propagate)));
    }
    EXPECT_TRUE(is_nan(ops::max(n, n)) && is_nan(ops::min(n, n)));
    // Comparisons are ordered, but for !=.
    for (const scalar x : {one, n}) {
      for (const auto compare : {ops::eq, ops::lt, ops::le, ops::gt, ops::ge})
        EXPECT_TRUE(compare(n, x) == scalar_of(false) && compare(x, n) == scalar_of(false));
      EXPECT_TRUE(ops::ne(n, x) == scalar_of(true) && ops::ne(x, n) == scalar_of(true));
    }
  }
  const auto reduce = [](auto op, scalar identity, nan_mode mode, std::initializer_list<scalar> values) {
    for (const scalar x : values) identity = op(identity, x, mode);
    return identity;
  };
  const scalar n = nan_of(t);
  for (const nan_mode mode : {nan_mode::ignore, nan_mode::propagate}) {
    EXPECT_EQ(reduce(ops::max, ops::max_identity(t, mode), mode, {minus_infinity, minus_infinity}), minus_infinity);
    EXPECT_EQ(reduce(ops::min, ops::min_identity(t, mode), mode, {highest_of(t)}), highest_of(t));
    EXPECT_TRUE(is_nan(reduce(ops::max, ops::max_identity(t, mode), mode, {n, n})));
    EXPECT_EQ(reduce(ops::max, ops::max_identity(t, mode), mode, {one, three}), three);
    EXPECT_EQ(reduce(ops::min, ops::min_identity(t, mode), mode, {three, one}), one);
  }
  EXPECT_EQ(reduce(ops::max, ops::max_identity(t), nan_mode::ignore, {one, n, three}), three);
  EXPECT_EQ(reduce(ops::min, ops::min_identity(t), nan_mode::ignore, {one, n, three}), one);
  EXPECT_TRUE(
      is_nan(reduce(ops::max, ops::max_identity(t, nan_mode::propagate), nan_mode::propagate, {one, n, three})));
  EXPECT_FALSE(is_true(ops::max(make_scalar(t, 0.0), make_scalar(t, -0.0)))); // either zero, but a zero
  EXPECT_FALSE(is_true(ops::min(make_scalar(t, 0.0), make_scalar(t, -0.0))));
}

TEST(IntegerOps, ReductionIdentitiesDoNotLeak) {
  for (const dtype t : int_types) {
    EXPECT_EQ(ops::max(ops::max_identity(t), lowest_of(t)), lowest_of(t));
    EXPECT_EQ(ops::min(ops::min_identity(t), highest_of(t)), highest_of(t));
  }
}

// --- refusals -------------------------------------------------------------------------------------------------------

TEST(ScalarOps, RefuseTypesThatTheyDoNotTake) {
  const scalar f8 = scalar_of(f8e4m3(1)), b = scalar_of(true), i = scalar_of(i32{1}), x = scalar_of(1.0f);
  for (const auto op : {ops::add, ops::sub, ops::mul, ops::div, ops::rem, ops::lt, ops::ge}) {
    EXPECT_THROW(op(f8, f8), unsupported_scalar_op);
    EXPECT_THROW(op(b, b), unsupported_scalar_op);
    EXPECT_THROW(op(i, x), unsupported_scalar_op);
  }
  for (const auto op :
       {ops::bit_and, ops::bit_or, ops::bit_xor, ops::shl, ops::shr, ops::rem, ops::floor_div, ops::ceil_div})
    EXPECT_THROW(op(x, x), unsupported_scalar_op);
  for (const auto op : {ops::floor, ops::ceil, ops::trunc, ops::round, ops::sqrt, ops::isnan}) {
    EXPECT_THROW(op(i), unsupported_scalar_op);
    EXPECT_THROW(op(f8), unsupported_scalar_op);
  }
  EXPECT_THROW(ops::neg(b), unsupported_scalar_op);
  EXPECT_THROW(ops::abs(f8), unsupported_scalar_op);
  EXPECT_THROW(ops::bit_not(x), unsupported_scalar_op);
  EXPECT_THROW(ops::eq(f8, f8), unsupported_scalar_op);
  EXPECT_THROW(ops::min(b, b, nan_mode::ignore), unsupported_scalar_op);
  EXPECT_THROW(ops::fma(x, x, i), unsupported_scalar_op);
  EXPECT_THROW(ops::where(i, x, x), unsupported_scalar_op);
  EXPECT_EQ(ops::where(b, f8, scalar_of(f8e4m3(2))), f8);
  EXPECT_EQ(ops::eq(b, b), b);
  EXPECT_EQ(ops::bit_not(b), scalar_of(false));
  try {
    ops::add(f8, f8);
    FAIL();
  } catch (const std::exception& e) { EXPECT_STREQ(e.what(), "kiln: add does not take f8e4m3: cast first"); }
}

// --- the same in constant evaluation: known faults, corners that built-in arithmetic refuses there
// ------------------------

template <class T> constexpr T call(scalar (*op)(scalar, scalar), T a, T b) {
  return value_of<T>(op(scalar_of(a), scalar_of(b)));
}
constexpr f64 inf64 = std::numeric_limits<f64>::infinity();

constexpr bool divides_by_sign(int x, int y, int quotient, int remainder, int down, int up) {
  return call(ops::div, x, y) == quotient && call(ops::rem, x, y) == remainder && call(ops::floor_div, x, y) == down &&
         call(ops::ceil_div, x, y) == up;
}
static_assert(divides_by_sign(36, 5, 7, 1, 7, 8) && divides_by_sign(-36, 5, -7, -1, -8, -7) &&
              divides_by_sign(36, -5, -7, 1, -8, -7) && divides_by_sign(-36, -5, 7, -1, 7, 8));
static_assert(divides_by_sign(7, 3, 2, 1, 2, 3) && divides_by_sign(-7, 3, -2, -1, -3, -2) &&
              divides_by_sign(1, -3, 0, 1, -1, 0) && divides_by_sign(-1, -3, 0, -1, 0, 1) &&
              divides_by_sign(0, -5, 0, 0, 0, 0));
static_assert(call(ops::ceil_div, 24, 10) == 3 && call(ops::ceil_div, 2147483647, 10) == 214748365);
static_assert(call(ops::div, i64{9007199254740993}, i64{1}) == 9007199254740993);
static_assert(call(ops::div, -2147483647 - 1, -1) == -2147483647 - 1 && call(ops::rem, -2147483647 - 1, -1) == 0);
static_assert(call(ops::div, std::numeric_limits<i64>::min(), i64{-1}) == std::numeric_limits<i64>::min());
static_assert(call(ops::div, 7, 0) == -1 && call(ops::rem, 7, 0) == 7 && call(ops::div, u8{7}, u8{0}) == 255 &&
              call(ops::ceil_div, -7, 0) == -1);
static_assert(call(ops::add, 2147483647, 1) == -2147483647 - 1 && call(ops::mul, i16{-32768}, i16{-1}) == -32768);

constexpr f32 c = 1e-6f, num = 3.7f;
static_assert(call(ops::add, call(ops::div, num, c), call(ops::div, -num, c)) == 0);
static_assert(call(ops::sub, call(ops::mul, 0.1f, 0.3f), call(ops::mul, 0.1f, 0.3f)) == 0);
static_assert(call(ops::div, 10.0f, 3.0f) == 10.0f / 3.0f && call(ops::div, f16(10), f16(3)) == f16(10.0 / 3));
static_assert(value_of<f32>(ops::fma(scalar_of(0.1f), scalar_of(10.0f), scalar_of(-1.0f))) ==
              0x1p-26f); // one rounding: not 0

static_assert(call(ops::div, 1.0, 0.0) == inf64 && call(ops::div, 1.0, -0.0) == -inf64 &&
              call(ops::mul, 1e300, 1e300) == inf64);
static_assert(is_nan(ops::sub(scalar_of(inf64), scalar_of(inf64))) && is_nan(ops::div(scalar_of(0.0), scalar_of(0.0))));
static_assert(is_nan(ops::sqrt(scalar_of(-1.0f))) && ops::sqrt(scalar_of(-0.0f)) == scalar_of(-0.0f));
static_assert(call(ops::mul, 0x1p-1074, 0.5) == 0 &&
              call(ops::add, 0x1p-1074, 0x1p-1074) == 0x1p-1073); // denormals kept
static_assert(ops::round(scalar_of(2.5f)) == scalar_of(3.0f) && ops::round(scalar_of(-0.5)) == scalar_of(-1.0) &&
              ops::round(scalar_of(0.49999997f)) == scalar_of(0.0f));
static_assert(ops::ceil(scalar_of(-0.5f)) == scalar_of(-0.0f) &&
              ops::floor(scalar_of(f16(-0.5))) == scalar_of(f16(-1)));
static_assert(ops::max(scalar_of(u32{1}), scalar_of(u32{0x80000000})) == scalar_of(u32{0x80000000}));

} // namespace
