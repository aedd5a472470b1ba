// Conversions between constants of all pairs of dtypes: every pattern of the 8- and 16-bit types, the corners and
// random patterns of the wide ones, against a model in long double and 128-bit integers.
#include <kiln/dtype/convert.hpp>

#include "float_reference.hpp"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace {

using namespace kiln;
__extension__ typedef __int128 wide_int;

// What a pattern means, in a type that holds all of them exactly (64 mantissa bits, 15 exponent bits).
long double meaning(scalar s) {
  switch (s.type) {
  case dtype::f16: return kiln_test::reference_f16().decode(static_cast<unsigned>(s.bits));
  case dtype::bf16: return kiln_test::reference_bf16().decode(static_cast<unsigned>(s.bits));
  case dtype::f8e4m3: return kiln_test::reference_f8e4m3().decode(static_cast<unsigned>(s.bits));
  case dtype::f8e5m2: return kiln_test::reference_f8e5m2().decode(static_cast<unsigned>(s.bits));
  case dtype::f32: return std::bit_cast<f32>(static_cast<u32>(s.bits));
  case dtype::f64: return std::bit_cast<f64>(s.bits);
  case dtype::i8: return static_cast<std::int8_t>(s.bits);
  case dtype::i16: return static_cast<std::int16_t>(s.bits);
  case dtype::i32: return static_cast<std::int32_t>(s.bits);
  case dtype::i64: return static_cast<std::int64_t>(s.bits);
  default: return s.bits;
  }
}

// Bits of x in a floating type; x is no NaN. The processor rounds to f32 and f64, the tables to the rest.
u64 float_bits(dtype t, long double x) {
  switch (t) {
  case dtype::f16: return kiln_test::reference_f16().encode(x);
  case dtype::bf16: return kiln_test::reference_bf16().encode(x);
  case dtype::f8e4m3: return kiln_test::reference_f8e4m3().encode(x);
  case dtype::f8e5m2: return kiln_test::reference_f8e5m2().encode(x);
  case dtype::f32: return std::bit_cast<u32>(static_cast<f32>(x));
  default: return std::bit_cast<u64>(static_cast<f64>(x));
  }
}

scalar model(scalar s, dtype to) {
  const long double x = meaning(s);
  if (is_bool(to)) return {to, !(x == 0)};
  if (is_float(to)) return std::isnan(x) ? nan_of(to) : scalar{to, float_bits(to, x)};
  if (is_float(s.type)) {
    const int bits = bits_of(to);
    const long double high = std::ldexp(1.0L, is_signed_int(to) ? bits - 1 : bits), low = is_signed_int(to) ? -high : 0;
    if (std::isnan(x)) return {to, 0};
    const long double whole = std::trunc(x);
    const wide_int value = whole >= high  ? static_cast<wide_int>(high) - 1
                           : whole <= low ? static_cast<wide_int>(low)
                                          : static_cast<wide_int>(whole);
    return scalar_from_bits(to, static_cast<u64>(value));
  }
  return scalar_from_bits(to, static_cast<u64>(static_cast<wide_int>(x)));
}

// All patterns of the narrow types; for the wide ones the corners with their neighbours, and random patterns.
std::vector<u64> patterns_of(dtype t, int random_count) {
  std::vector<u64> all;
  if (bits_of(t) <= 16) {
    for (u64 i = 0; i <= mask_of(t); ++i) all.push_back(i);
    return all;
  }
  std::mt19937_64 random(20 + static_cast<int>(t));
  const auto around = [&](u64 x) {
    for (u64 nudge : {u64{0}, u64{1}, ~u64{0}}) all.push_back((x + nudge) & mask_of(t));
  };
  if (is_float(t)) {
    for (int power = -160; power < 130; ++power)
      for (const long double factor : {1.0L, 1.5L, 1.25L, -1.0L, -1.5L})
        around(float_bits(t, std::ldexp(factor, power)));
    for (const long double x :
         {65504.0L, 65520.0L, 448.0L, 464.0L, 57344.0L, 61440.0L, 3e9L, 255.5L, 0.5L, -0.5L, 1e300L})
      around(float_bits(t, x));
    around(highest_of(t).bits);
    around(lowest_of(t).bits);
    around(nan_of(t).bits);
  } else {
    for (int power = 0; power < bits_of(t); ++power)
      for (u64 x : {u64{1} << power, u64{3} << power, ~(u64{1} << power)}) around(x & mask_of(t));
  }
  for (int i = 0; i < random_count; ++i) {
    // Shifted right by a random amount, so that integers of all sizes occur; every exponent occurs in a float anyway.
    const u64 x = random();
    all.push_back((is_float(t) ? x : x >> (random() % 64)) & mask_of(t));
  }
  return all;
}

TEST(Convert, AllPairsOfTypes) {
  for (int i = 0; i < dtype_count; ++i) {
    const dtype from = static_cast<dtype>(i);
    const std::vector<u64> patterns = patterns_of(from, 20000);
    for (int j = 0; j < dtype_count; ++j) {
      const dtype to = static_cast<dtype>(j);
      if (from == to) continue;
      int faults = 0;
      for (const u64 bits : patterns) {
        const scalar s = {from, bits}, got = convert(s, to), want = model(s, to);
        const bool same = is_nan(want) ? is_nan(got) && got.type == to : got == want;
        ASSERT_EQ(got.bits & ~mask_of(to), 0u) << "bits beyond the type";
        if (!same && faults++ < 3)
          ADD_FAILURE() << name_of(from) << " 0x" << std::hex << bits << " to " << name_of(to) << ": got 0x" << got.bits
                        << ", want 0x" << want.bits;
      }
      EXPECT_EQ(faults, 0) << name_of(from) << " to " << name_of(to);
    }
  }
}

TEST(Convert, ToTheSameTypeChangesNothing) {
  for (int i = 0; i < dtype_count; ++i)
    for (const u64 bits : patterns_of(static_cast<dtype>(i), 100)) {
      const scalar s = {static_cast<dtype>(i), bits};
      ASSERT_EQ(convert(s, s.type), s); // a signalling NaN included: nothing is computed
    }
}

// The numbers that other systems got wrong, in constant evaluation.
template <class To, class From> constexpr To cast(From x) { return value_of<To>(scalar_of(x)); }
constexpr f32 f32_nan = std::numeric_limits<f32>::quiet_NaN(), f32_inf = std::numeric_limits<f32>::infinity();
static_assert(cast<i32>(3e9f) == 2147483647 && cast<i32>(-3e9f) == -2147483647 - 1 && cast<i32>(f32_nan) == 0);
static_assert(cast<i32>(f32_inf) == 2147483647 && cast<u32>(-f32_inf) == 0 && cast<u64>(f32_inf) == ~u64{0});
static_assert(cast<i8>(f16(510)) == 127 && cast<i8>(f16(-200)) == -128 && cast<u8>(-1.0f) == 0 &&
              cast<u8>(300.0f) == 255);
static_assert(cast<i32>(2147483520.0f) == 2147483520 && cast<i32>(2147483648.0f) == 2147483647 &&
              cast<i64>(-0x1p63) == std::numeric_limits<i64>::min());
static_assert(cast<i32>(-1.99) == -1 && cast<u8>(-0.99) == 0 && cast<i8>(1e-300) == 0 && cast<i8>(-0.0) == 0);
static_assert(cast<i8>(300) == 44 && cast<u8>(-1) == 255 && cast<i64>(u32{0x80000000}) == 0x80000000ll &&
              cast<u64>(i8{-1}) == ~u64{0});
static_assert(cast<f32>(16777217) == 16777216.0f && cast<f32>(16777219) == 16777220.0f &&
              cast<f32>(~u64{0}) == 0x1p64f);
static_assert(cast<f64>(i64{9007199254740993}) == 9007199254740992.0 && cast<f16>(i32{65520}).bits == 0x7c00);
static_assert(cast<bool>(-0.0f) == false && cast<bool>(f32_nan) && cast<bool>(f16::from_bits(1)) &&
              cast<f16>(true) == f16(1) && cast<i8>(true) == 1);
static_assert(cast<f8e5m2>(f16(1.125f)) == f8e5m2(1.0f) && cast<f8e5m2>(f16(1.375f)) == f8e5m2(1.5f) &&
              cast<f8e4m3>(f8e5m2(57344)).bits == 0x7e);
static_assert(cast<f8e5m2>(f16::from_bits(0x7c00)).bits == 0x7b && cast<f16>(f8e5m2::from_bits(0x7c)).bits == 0x7c00);
static_assert(is_nan(convert(scalar_of(f8e4m3::from_bits(0xff)), dtype::f64)) &&
              is_nan(convert(scalar_of(f32_nan), dtype::f8e4m3)));
static_assert(make_scalar(dtype::f16, 0x1.0000000001p-25).bits == 1 &&
              make_scalar(dtype::i8, 'A') == scalar_of(i8{65}));

static_assert(bitcast(scalar_of(1.0f), dtype::u32) == scalar_of(u32{0x3f800000}) &&
              bitcastable(dtype::f16, dtype::bf16));
static_assert(!bitcastable(dtype::b1, dtype::i8) && !bitcastable(dtype::f32, dtype::f64));

static_assert(lowest_of(dtype::i8) == scalar_of(i8{-128}) && highest_of(dtype::u16) == scalar_of(u16{65535}) &&
              lowest_of(dtype::u64).bits == 0);
static_assert(lowest_of(dtype::f32) == scalar_of(-f32_inf) && highest_of(dtype::f8e4m3).bits == 0x7e &&
              lowest_of(dtype::f8e4m3).bits == 0xfe);
static_assert(lowest_of(dtype::b1).bits == 0 && highest_of(dtype::b1).bits == 1 && int_of(scalar_of(i16{-5})) == -5);

} // namespace
