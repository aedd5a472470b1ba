// Conversion of one constant between any two dtypes, by the rules of docs/numerics.md. This is the only implementation:
// folding, the interpreter and the host types all end up in the same few functions.
#pragma once

#include <kiln/dtype/scalar.hpp>

namespace kiln {

/// Converts s to type `to`.
///  - float to float: one rounding to nearest, ties to even; f16 bf16 f32 f64 overflow to infinity, the f8 types
///  saturate
///    to their largest finite number (from infinity too); NaN stays NaN.
///  - float to integer: truncates toward zero, saturates at both ends; NaN gives 0.
///  - integer to float: one rounding to nearest, ties to even; overflow as above.
///  - integer to integer: the low bits; widening extends by the sign of the *source* type.
///  - to b1: not equal to zero (NaN is true). From b1: 0 or 1.
constexpr scalar convert(scalar s, dtype to) {
  if (s.type == to) return s;
  if (is_bool(to)) return {to, is_true(s)};
  if (is_float(s.type)) {
    const detail::float_format from = detail::format_of(s.type);
    if (is_float(to)) return {to, detail::convert_bits(from, detail::format_of(to), s.bits)};
    return {to, detail::float_bits_to_int(from, s.bits, bits_of(to), is_signed_int(to))};
  }
  const i64 value = int_of(s);
  if (!is_float(to)) return scalar_from_bits(to, static_cast<u64>(value));
  const detail::float_format f = detail::format_of(to);
  return {to, is_signed_int(s.type) ? detail::encode(f, value) : detail::encode(f, s.bits)};
}

/// Whether `bitcast` from one type to the other makes sense: equal widths.
constexpr bool bitcastable(dtype from, dtype to) { return bits_of(from) == bits_of(to); }

/// Same bits, other type. Requires `bitcastable`.
constexpr scalar bitcast(scalar s, dtype to) { return {to, s.bits}; }

/// The host value that s converts to.
template <element T> constexpr T value_of(scalar s) {
  const u64 bits = convert(s, dtype_of<T>).bits;
  if constexpr (detail::is_storage_float<T>) return T::from_bits(static_cast<decltype(T{}.bits)>(bits));
  else if constexpr (dtype_of<T> == dtype::f32) return __builtin_bit_cast(f32, static_cast<u32>(bits));
  else if constexpr (dtype_of<T> == dtype::f64) return __builtin_bit_cast(f64, bits);
  else return static_cast<T>(bits);
}

/// The scalar of type `to` that a host number converts to, rounded once.
template <class T>
requires detail::is_host_number<T>
constexpr scalar make_scalar(dtype to, T x) {
  if constexpr (element<T>) return convert(scalar_of(x), to);
  else if constexpr (std::is_signed_v<T>) // char, long long, ...
    return convert(scalar_of(static_cast<i64>(x)), to);
  else return convert(scalar_of(static_cast<u64>(x)), to);
}

} // namespace kiln
