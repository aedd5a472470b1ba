// One typed constant: what folding computes with, what literals in a graph are, what the interpreter keeps per element.
#pragma once

#include <kiln/dtype/float8.hpp>

namespace kiln {

/// A value of any dtype. `bits` holds the element's pattern in its low `bits_of(type)` bits (two's complement for
/// signed integers, 0 or 1 for b1) and zeros above, so two scalars are the same representation exactly when they
/// compare equal.
struct scalar {
  dtype type = dtype::b1;
  u64 bits = 0;

  friend constexpr bool operator==(const scalar&, const scalar&) = default;
};

/// The low `bits_of(t)` bits set.
constexpr u64 mask_of(dtype t) { return bits_of(t) == 64 ? ~u64{0} : (u64{1} << bits_of(t)) - 1; }

constexpr scalar scalar_from_bits(dtype t, u64 bits) { return {t, bits & mask_of(t)}; }

/// The scalar that holds x, of x's own element type.
template <element T> constexpr scalar scalar_of(T x) {
  constexpr dtype t = dtype_of<T>;
  if constexpr (detail::is_storage_float<T>) return {t, x.bits};
  else if constexpr (t == dtype::f32) return {t, __builtin_bit_cast(u32, x)};
  else if constexpr (t == dtype::f64) return {t, __builtin_bit_cast(u64, x)};
  else return scalar_from_bits(t, static_cast<u64>(x));
}

/// The integer that s holds, sign-extended by its type (a u64 comes back as the i64 of the same bits); b1 gives 0 or 1.
constexpr i64 int_of(scalar s) {
  if (!is_signed_int(s.type)) return static_cast<i64>(s.bits);
  const int unused = 64 - bits_of(s.type);
  return static_cast<i64>(s.bits << unused) >> unused;
}

constexpr bool is_nan(scalar s) { return is_float(s.type) && detail::format_of(s.type).is_nan(s.bits); }

/// Not zero; NaN counts as true, -0 as false. This is the cast to b1.
constexpr bool is_true(scalar s) {
  return is_float(s.type) ? (s.bits & (detail::format_of(s.type).sign_bit() - 1)) != 0 : s.bits != 0;
}

/// The one NaN that arithmetic produces: quiet, positive, no payload.
constexpr scalar nan_of(dtype t) { return {t, detail::format_of(t).quiet_nan()}; }

/// Smallest value of the type: -infinity, the most negative finite number where there is no infinity, or the least
/// integer.
constexpr scalar lowest_of(dtype t) {
  if (is_float(t)) {
    const detail::float_format f = detail::format_of(t);
    return {t, f.sign_bit() | (f.infinity ? f.top_binade() : f.max_finite())};
  }
  return {t, is_signed_int(t) ? u64{1} << (bits_of(t) - 1) : 0};
}

/// Largest value of the type: +infinity, the largest finite number where there is no infinity, or the largest integer.
constexpr scalar highest_of(dtype t) {
  if (is_float(t)) {
    const detail::float_format f = detail::format_of(t);
    return {t, f.infinity ? f.top_binade() : f.max_finite()};
  }
  return {t, is_signed_int(t) ? mask_of(t) >> 1 : mask_of(t)};
}

} // namespace kiln
