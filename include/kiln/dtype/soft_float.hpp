// Correctly rounded + - * /, fma and square root on bit patterns of any format, in constexpr integer code.
// Constant evaluation needs it: there the compilers refuse built-in arithmetic that overflows or makes a NaN, and clang
// has no constexpr sqrt or fma. At run time scalar_ops.hpp uses the hardware, and the tests hold the two together.
#pragma once

#include <kiln/dtype/float_bits.hpp>

namespace kiln::detail::soft {

__extension__ typedef unsigned __int128 u128;

constexpr int bit_width(u128 x) {
  const u64 high = static_cast<u64>(x >> 64);
  return high != 0 ? 64 + detail::bit_width(high) : detail::bit_width(static_cast<u64>(x));
}

/// A number with more bits than any format keeps: (-1)^negative * significand * 2^exponent.
struct wide {
  bool negative;
  int exponent;
  u128 significand;
};

/// x >> n, with the lowest bit set if any bit was lost: enough for the one rounding that follows.
constexpr u128 shift_right_jam(u128 x, int n) {
  if (n <= 0) return x;
  if (n >= 128) return x != 0;
  return x >> n | ((x & ((u128{1} << n) - 1)) != 0);
}

constexpr u64 round_pack(float_format f, wide x) {
  const int excess = bit_width(x.significand) - 64;
  if (excess > 0)
    return detail::round_pack(
        f, {x.negative, x.exponent + excess, static_cast<u64>(shift_right_jam(x.significand, excess))});
  return detail::round_pack(f, {x.negative, x.exponent, static_cast<u64>(x.significand)});
}

constexpr bool sign_of(float_format f, u64 bits) { return (bits & f.sign_bit()) != 0; }
constexpr u64 magnitude_of(float_format f, u64 bits) { return bits & (f.sign_bit() - 1); }
constexpr u64 signed_zero(float_format f, bool negative) { return negative ? f.sign_bit() : 0; }
constexpr u64 signed_infinity(float_format f, bool negative) { return signed_zero(f, negative) | f.top_binade(); }

/// a + b, neither of them zero by necessity; the sign of an exact zero sum is the caller's business.
constexpr wide add_wide(wide a, wide b) {
  if (a.significand == 0) return b;
  if (b.significand == 0) return a;
  // Leading bit of each at bit 125: the sum has room, and what the smaller one loses in being aligned lies so far
  // below the place of rounding that one sticky bit stands for it. (Operands have at most 106 bits, so nothing is lost
  // before they are 20 binades apart, and a subtraction can then cancel one leading bit only.)
  const int left_a = 126 - bit_width(a.significand), left_b = 126 - bit_width(b.significand);
  a = {a.negative, a.exponent - left_a, a.significand << left_a};
  b = {b.negative, b.exponent - left_b, b.significand << left_b};
  if (a.exponent < b.exponent) {
    const wide t = a;
    a = b;
    b = t;
  }
  const u128 low = shift_right_jam(b.significand, a.exponent - b.exponent);
  if (a.negative == b.negative) return {a.negative, a.exponent, a.significand + low};
  if (a.significand >= low) return {a.negative, a.exponent, a.significand - low};
  return {b.negative, a.exponent, low - a.significand};
}

constexpr wide unpack_wide(float_format f, u64 bits) {
  const exact x = unpack(f, bits);
  return {x.negative, x.exponent, x.significand};
}

/// a * b + c with one rounding.
constexpr u64 fma(float_format f, u64 a, u64 b, u64 c) {
  if (f.is_nan(a) || f.is_nan(b) || f.is_nan(c)) return f.quiet_nan();
  const bool negative = sign_of(f, a) != sign_of(f, b);
  if (f.is_infinity(a) || f.is_infinity(b)) {
    if (magnitude_of(f, a) == 0 || magnitude_of(f, b) == 0) return f.quiet_nan();
    if (f.is_infinity(c) && sign_of(f, c) != negative) return f.quiet_nan();
    return signed_infinity(f, negative);
  }
  if (f.is_infinity(c)) return c;
  const exact x = unpack(f, a), y = unpack(f, b);
  const wide product = {negative, x.exponent + y.exponent, u128{x.significand} * y.significand};
  const wide sum = add_wide(product, unpack_wide(f, c));
  // An exact zero is positive, unless product and addend were both negative zeros.
  if (sum.significand == 0) return signed_zero(f, negative && sign_of(f, c));
  return round_pack(f, sum);
}

constexpr u64 one(float_format f) { return static_cast<u64>(f.bias()) << f.mantissa_bits; }

constexpr u64 add(float_format f, u64 a, u64 b) { return fma(f, a, one(f), b); }

constexpr u64 sub(float_format f, u64 a, u64 b) { return fma(f, a, one(f), b ^ f.sign_bit()); }

// Adding -0 changes nothing, not even the sign of a zero product.
constexpr u64 mul(float_format f, u64 a, u64 b) { return fma(f, a, b, f.sign_bit()); }

constexpr u64 div(float_format f, u64 a, u64 b) {
  if (f.is_nan(a) || f.is_nan(b)) return f.quiet_nan();
  const bool negative = sign_of(f, a) != sign_of(f, b);
  const bool zero_a = magnitude_of(f, a) == 0, zero_b = magnitude_of(f, b) == 0;
  if (f.is_infinity(a)) return f.is_infinity(b) ? f.quiet_nan() : signed_infinity(f, negative);
  if (f.is_infinity(b)) return signed_zero(f, negative);
  if (zero_b) return zero_a ? f.quiet_nan() : signed_infinity(f, negative);
  if (zero_a) return signed_zero(f, negative);
  const exact x = unpack(f, a), y = unpack(f, b);
  // Both significands with their leading bit at bit 63: the quotient then has 63 or 64 bits.
  const int left_x = 64 - detail::bit_width(x.significand), left_y = 64 - detail::bit_width(y.significand);
  const u128 numerator = u128{x.significand << left_x} << 63;
  const u64 denominator = y.significand << left_y;
  const u128 quotient = numerator / denominator;
  const bool inexact = numerator % denominator != 0;
  return round_pack(f, wide{negative, x.exponent - left_x - (y.exponent - left_y) - 63, quotient | inexact});
}

constexpr u64 sqrt(float_format f, u64 a) {
  if (f.is_nan(a)) return f.quiet_nan();
  if (magnitude_of(f, a) == 0) return a;
  if (sign_of(f, a)) return f.quiet_nan();
  if (f.is_infinity(a)) return a;
  const exact x = unpack(f, a);
  // An even exponent and a radicand of 125 or 126 bits: the root has 63.
  int left = 126 - detail::bit_width(x.significand);
  if (((x.exponent - left) & 1) != 0) --left;
  u128 rest = u128{x.significand} << left;
  u128 root = 0;
  for (u128 bit = u128{1} << 124; bit != 0; bit >>= 2) {
    if (rest >= root + bit) {
      rest -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  return round_pack(f, wide{false, (x.exponent - left) / 2, root | (rest != 0)});
}

} // namespace kiln::detail::soft
