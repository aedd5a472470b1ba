// Binary floating formats as bits: take a number apart exactly, round it once into another format, put it together.
// Constexpr integer code throughout, so a constant expression, the interpreter and host data agree on every bit.
#pragma once

#include <kiln/dtype/dtype.hpp>

namespace kiln::detail {

/// A sign bit, `exponent_bits`, `mantissa_bits`; bias 2^(exponent_bits-1)-1.
struct float_format {
  int exponent_bits;
  int mantissa_bits;
  bool infinity;   // false: the top exponent holds numbers, and only the all-ones pattern is NaN (OCP "fn")
  bool saturating; // conversions beyond the largest finite number, infinity included, give that number

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr int min_exponent() const { return 1 - bias(); }
  constexpr u64 sign_bit() const { return u64{1} << (exponent_bits + mantissa_bits); }
  constexpr u64 mantissa_mask() const { return (u64{1} << mantissa_bits) - 1; }
  // Exponent field all ones, mantissa zero: infinity, or for "fn" formats the first number of the top binade.
  constexpr u64 top_binade() const { return ((u64{1} << exponent_bits) - 1) << mantissa_bits; }
  constexpr u64 max_finite() const { return infinity ? top_binade() - 1 : sign_bit() - 2; }
  constexpr u64 quiet_nan() const { return infinity ? top_binade() | u64{1} << (mantissa_bits - 1) : sign_bit() - 1; }
  constexpr u64 overflow() const { return saturating ? max_finite() : infinity ? top_binade() : quiet_nan(); }
  constexpr bool is_nan(u64 bits) const {
    const u64 magnitude = bits & (sign_bit() - 1);
    return infinity ? magnitude > top_binade() : magnitude == sign_bit() - 1;
  }
  constexpr bool is_infinity(u64 bits) const { return infinity && (bits & (sign_bit() - 1)) == top_binade(); }
};

constexpr float_format format_of(dtype t) {
  return {exponent_bits_of(t), mantissa_bits_of(t), has_infinity(t), is_f8(t)};
}

constexpr int bit_width(u64 x) { return x == 0 ? 0 : 64 - __builtin_clzll(x); }

/// A finite number, exactly: (-1)^negative * significand * 2^exponent. Zero has significand 0.
struct exact {
  bool negative;
  int exponent;
  u64 significand;
};

/// Takes a finite pattern apart; NaN and infinity must have been handled.
constexpr exact unpack(float_format f, u64 bits) {
  const u64 mantissa = bits & f.mantissa_mask();
  const int field = static_cast<int>((bits & (f.sign_bit() - 1)) >> f.mantissa_bits);
  const bool negative = (bits & f.sign_bit()) != 0;
  if (field == 0) return {negative, f.min_exponent() - f.mantissa_bits, mantissa};
  return {negative, field - f.bias() - f.mantissa_bits, mantissa | u64{1} << f.mantissa_bits};
}

/// Rounds x to the nearest number of format f, ties to even, with denormals, once. A caller that has dropped nonzero
/// bits below the significand must have set its lowest bit and must leave at least two bits more than f keeps.
constexpr u64 round_pack(float_format f, exact x) {
  const u64 sign = x.negative ? f.sign_bit() : 0;
  if (x.significand == 0) return sign;
  const int top = x.exponent + bit_width(x.significand) - 1;
  if (top > f.bias() + 1) return sign | f.overflow(); // beyond even the top binade of an "fn" format
  // The last place of the result is worth 2^last; below the normal range it stops shrinking: denormals.
  const int last = (top > f.min_exponent() ? top : f.min_exponent()) - f.mantissa_bits;
  const int shift = last - x.exponent;
  u64 kept = 0;
  if (shift <= 0) {
    kept = x.significand << -shift;
  } else if (shift <= 64) {
    kept = shift == 64 ? 0 : x.significand >> shift;
    const u64 dropped = shift == 64 ? x.significand : x.significand & ((u64{1} << shift) - 1);
    const u64 half = u64{1} << (shift - 1);
    if (dropped > half || (dropped == half && (kept & 1) != 0)) ++kept;
  }
  // `kept` carries the implicit one, so it adds one to an exponent field that is written one too small. A denormal
  // has no implicit one and a field of zero; a carry out of the rounding moves into the exponent by itself.
  const int field = last + f.mantissa_bits + f.bias() - 1;
  const u64 bits = (static_cast<u64>(field) << f.mantissa_bits) + kept;
  return sign | (bits > f.max_finite() ? f.overflow() : bits);
}

/// Converts between formats with one rounding. NaN stays NaN (quiet, sign and leading payload kept).
constexpr u64 convert_bits(float_format from, float_format to, u64 bits) {
  const u64 sign = (bits & from.sign_bit()) != 0 ? to.sign_bit() : 0;
  if (from.is_nan(bits)) {
    if (!to.infinity || !from.infinity) return sign | to.quiet_nan();
    const u64 payload = bits & from.mantissa_mask();
    const int shift = from.mantissa_bits - to.mantissa_bits;
    return sign | to.quiet_nan() | (shift >= 0 ? payload >> shift : payload << -shift);
  }
  if (from.is_infinity(bits)) return sign | to.overflow();
  return round_pack(to, unpack(from, bits));
}

/// The integer nearest to zero from `bits`, clamped to `width` bits; NaN gives 0. The result is cut to `width` bits.
constexpr u64 float_bits_to_int(float_format f, u64 bits, int width, bool is_signed) {
  if (f.is_nan(bits)) return 0;
  const bool negative = (bits & f.sign_bit()) != 0;
  const u64 ones = width == 64 ? ~u64{0} : (u64{1} << width) - 1;
  const u64 largest = is_signed ? ones >> 1 : ones;
  const u64 limit = negative ? (is_signed ? largest + 1 : 0) : largest; // of the magnitude
  u64 magnitude = limit;
  if (!f.is_infinity(bits)) {
    const exact x = unpack(f, bits);
    if (x.exponent <= 0) magnitude = x.exponent <= -64 ? 0 : x.significand >> -x.exponent;
    else if (x.significand == 0 || bit_width(x.significand) + x.exponent <= 64)
      magnitude = x.significand == 0 ? 0 : x.significand << x.exponent;
    if (magnitude > limit) magnitude = limit;
  }
  return (negative ? ~magnitude + 1 : magnitude) & ones;
}

template <class T>
inline constexpr bool is_host_number = std::is_integral_v<T> || std::is_same_v<T, f32> || std::is_same_v<T, f64>;

/// Rounds a host number into format f, once: a double or a 64-bit integer does not pass through float.
template <class T> constexpr u64 encode(float_format f, T x) {
  if constexpr (std::is_same_v<T, f32>) {
    return convert_bits(format_of(dtype::f32), f, __builtin_bit_cast(u32, x));
  } else if constexpr (std::is_same_v<T, f64>) {
    return convert_bits(format_of(dtype::f64), f, __builtin_bit_cast(u64, x));
  } else {
    const bool negative = x < T{0};
    const u64 wide = static_cast<u64>(x);
    return round_pack(f, {negative, 0, negative ? ~wide + 1 : wide});
  }
}

constexpr f32 decode_f32(float_format f, u64 bits) {
  return __builtin_bit_cast(f32, static_cast<u32>(convert_bits(f, format_of(dtype::f32), bits)));
}

constexpr f64 decode_f64(float_format f, u64 bits) {
  return __builtin_bit_cast(f64, convert_bits(f, format_of(dtype::f64), bits));
}

} // namespace kiln::detail
