// Host types of the two 16-bit floating formats. They store, convert and compare; arithmetic is done in float and
// rounded back once, which for + - * / and sqrt gives the correctly rounded 16-bit result (docs/numerics.md says why).
#pragma once

#include <kiln/dtype/float_bits.hpp>

namespace kiln {

/// IEEE binary16: 1 sign, 5 exponent, 10 mantissa bits; largest 65504, smallest normal 2^-14, smallest 2^-24.
/// Trivially copyable and structural, so a value may be a template argument.
struct f16 {
  u16 bits;

  constexpr f16() = default;
  /// Nearest value, ties to even, one rounding from any float, double or integer; beyond the range: infinity.
  template <class T>
  requires detail::is_host_number<T>
  explicit constexpr f16(T x) : bits(static_cast<u16>(detail::encode(detail::format_of(dtype::f16), x))) {}
  static constexpr f16 from_bits(u16 pattern) {
    f16 r{};
    r.bits = pattern;
    return r;
  }

  /// Exact.
  explicit constexpr operator f32() const { return detail::decode_f32(detail::format_of(dtype::f16), bits); }
  explicit constexpr operator f64() const { return static_cast<f64>(static_cast<f32>(*this)); }
};

/// bfloat16, the upper half of a float: 1 sign, 8 exponent, 7 mantissa bits. Denormals are kept.
/// Trivially copyable and structural, so a value may be a template argument.
struct bf16 {
  u16 bits;

  constexpr bf16() = default;
  /// Nearest value, ties to even, one rounding from any float, double or integer; beyond the range: infinity.
  template <class T>
  requires detail::is_host_number<T>
  explicit constexpr bf16(T x) : bits(static_cast<u16>(detail::encode(detail::format_of(dtype::bf16), x))) {}
  static constexpr bf16 from_bits(u16 pattern) {
    bf16 r{};
    r.bits = pattern;
    return r;
  }

  /// Exact; the bits of a NaN are kept as they are.
  explicit constexpr operator f32() const { return __builtin_bit_cast(f32, static_cast<u32>(bits) << 16); }
  explicit constexpr operator f64() const { return static_cast<f64>(static_cast<f32>(*this)); }
};

namespace detail {
// Defined for the storage types alone: overload resolution for other operands never gets as far as converting.
template <class T> inline constexpr bool is_storage_float = false;
template <> inline constexpr bool is_storage_float<f16> = true;
template <> inline constexpr bool is_storage_float<bf16> = true;
template <class T>
concept storage_float = is_storage_float<T>;
} // namespace detail

// Comparisons are those of the numbers: NaN equals nothing, -0 equals +0. Compare `bits` to compare representations.
template <detail::storage_float T> constexpr bool operator==(T a, T b) { return f32(a) == f32(b); }
template <detail::storage_float T> constexpr bool operator<(T a, T b) { return f32(a) < f32(b); }
template <detail::storage_float T> constexpr bool operator>(T a, T b) { return f32(a) > f32(b); }
template <detail::storage_float T> constexpr bool operator<=(T a, T b) { return f32(a) <= f32(b); }
template <detail::storage_float T> constexpr bool operator>=(T a, T b) { return f32(a) >= f32(b); }

static_assert(sizeof(f16) == 2 && sizeof(bf16) == 2);
static_assert(std::is_trivially_copyable_v<f16> && std::is_trivially_copyable_v<bf16>);

} // namespace kiln
