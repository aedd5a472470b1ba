// Host types of the two 8-bit floating formats (OCP 8-bit floating point). They store, convert and compare; there is no
// arithmetic on them in host code or in kernels: convert to a wider type first.
#pragma once

#include <kiln/dtype/float16.hpp>

namespace kiln {

/// OCP E4M3 ("fn"): 1 sign, 4 exponent, 3 mantissa bits, bias 7. No infinity; NaN is 0x7f and 0xff; largest 448,
/// smallest 2^-9. Trivially copyable and structural.
struct f8e4m3 {
  u8 bits;

  constexpr f8e4m3() = default;
  /// Nearest value, ties to even, one rounding; beyond the range, infinity included: +-448. NaN stays NaN.
  template <class T>
  requires detail::is_host_number<T>
  explicit constexpr f8e4m3(T x) : bits(static_cast<u8>(detail::encode(detail::format_of(dtype::f8e4m3), x))) {}
  static constexpr f8e4m3 from_bits(u8 pattern) {
    f8e4m3 r{};
    r.bits = pattern;
    return r;
  }

  /// Exact.
  explicit constexpr operator f32() const { return detail::decode_f32(detail::format_of(dtype::f8e4m3), bits); }
  explicit constexpr operator f64() const { return static_cast<f64>(static_cast<f32>(*this)); }
};

/// OCP E5M2: 1 sign, 5 exponent, 2 mantissa bits, bias 15: the upper half of an f16. It has infinities, but no
/// conversion makes one; largest 57344, smallest 2^-16. Trivially copyable and structural.
struct f8e5m2 {
  u8 bits;

  constexpr f8e5m2() = default;
  /// Nearest value, ties to even, one rounding; beyond the range, infinity included: +-57344. NaN stays NaN.
  template <class T>
  requires detail::is_host_number<T>
  explicit constexpr f8e5m2(T x) : bits(static_cast<u8>(detail::encode(detail::format_of(dtype::f8e5m2), x))) {}
  static constexpr f8e5m2 from_bits(u8 pattern) {
    f8e5m2 r{};
    r.bits = pattern;
    return r;
  }

  /// Exact.
  explicit constexpr operator f32() const { return detail::decode_f32(detail::format_of(dtype::f8e5m2), bits); }
  explicit constexpr operator f64() const { return static_cast<f64>(static_cast<f32>(*this)); }
};

template <> inline constexpr bool detail::is_storage_float<f8e4m3> = true;
template <> inline constexpr bool detail::is_storage_float<f8e5m2> = true;

static_assert(sizeof(f8e4m3) == 1 && sizeof(f8e5m2) == 1);
static_assert(std::is_trivially_copyable_v<f8e4m3> && std::is_trivially_copyable_v<f8e5m2>);

} // namespace kiln
