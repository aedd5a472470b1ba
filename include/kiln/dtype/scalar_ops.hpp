// The meaning of every scalar operation, by docs/numerics.md: one answer for folding, for the interpreter and for
// tests. All functions are constexpr and give the same bits in constant evaluation and at run time.
//
// Functions that take two operands of one type require equal types (promote and convert first) and return that type;
// comparisons return b1. An operand type that the operation does not take throws `unsupported_scalar_op`, which in
// constant evaluation is a compile error at that throw.
#pragma once

#include <exception>
#include <kiln/dtype/convert.hpp>
#include <kiln/dtype/soft_float.hpp>
#include <kiln/export.hpp>

namespace kiln {

/// A scalar operation was asked to work on a type that it does not take.
class KILN_API unsupported_scalar_op : public std::exception {
public:
  unsupported_scalar_op(const char* op, dtype a, dtype b) {
    append("kiln: ");
    append(op);
    append(" does not take ");
    append(name_of(a));
    if (a != b) {
      append(" with ");
      append(name_of(b));
    }
    append(": cast first");
  }
  const char* what() const noexcept override { return text_; }

private:
  void append(const char* part) {
    while (*part != '\0' && size_ < sizeof(text_) - 1) text_[size_++] = *part++;
  }

  char text_[96] = {};
  unsigned size_ = 0;
};

} // namespace kiln

namespace kiln::detail {

constexpr void require(bool ok, const char* op, scalar a, scalar b) {
  if (!ok) throw unsupported_scalar_op(op, a.type, b.type);
}

// Floating arithmetic happens in f32 or in f64; the 16-bit types borrow f32 and are rounded back once.
constexpr dtype compute_type(dtype t) { return t == dtype::f64 ? dtype::f64 : dtype::f32; }

constexpr scalar canonical(scalar s) { return is_nan(s) ? nan_of(s.type) : s; }

template <class T, class Hard> constexpr scalar hardware_arithmetic(scalar a, scalar b, scalar c, Hard hard) {
  using wide = std::conditional_t<std::is_same_v<T, f64>, f64, f32>;
  return canonical(scalar_of(static_cast<T>(
      hard(static_cast<wide>(value_of<T>(a)), static_cast<wide>(value_of<T>(b)), static_cast<wide>(value_of<T>(c))))));
}

/// Runs soft (constant evaluation) or hardware (run time) arithmetic in the compute type, then rounds to the type of a.
template <class Soft, class Hard>
constexpr scalar float_arithmetic(scalar a, scalar b, scalar c, Soft soft, Hard hard) {
  if (std::is_constant_evaluated()) {
    const dtype wide = compute_type(a.type);
    const u64 bits = soft(format_of(wide), convert(a, wide).bits, convert(b, wide).bits, convert(c, wide).bits);
    return canonical(convert({wide, bits}, a.type));
  }
  switch (a.type) {
  case dtype::f16: return hardware_arithmetic<f16>(a, b, c, hard);
  case dtype::bf16: return hardware_arithmetic<bf16>(a, b, c, hard);
  case dtype::f32: return hardware_arithmetic<f32>(a, b, c, hard);
  default: return hardware_arithmetic<f64>(a, b, c, hard); // the callers have refused every other type
  }
}

enum class to_integral { floor, ceil, trunc, half_away };

/// Rounds a floating value to an integer of the same type; exact, so no compute type is needed. Zeros keep their sign.
constexpr scalar round_to_integral(scalar s, to_integral how) {
  const float_format f = format_of(s.type);
  if (f.is_nan(s.bits)) return nan_of(s.type);
  if (f.is_infinity(s.bits)) return s;
  const exact x = unpack(f, s.bits);
  if (x.exponent >= 0 || x.significand == 0) return s;
  const int drop = -x.exponent; // fraction bits; the significand has at most 53
  u64 whole = drop >= 64 ? 0 : x.significand >> drop;
  const u64 fraction = drop >= 64 ? x.significand : x.significand & ((u64{1} << drop) - 1);
  if (fraction != 0) {
    if (how == to_integral::floor) whole += x.negative;
    else if (how == to_integral::ceil) whole += !x.negative;
    else if (how == to_integral::half_away) whole += drop < 64 && fraction >= u64{1} << (drop - 1);
  }
  return {s.type, round_pack(f, {x.negative, 0, whole})};
}

/// -1, 0 or 1 for less, equal, greater; 2 where a NaN makes the operands unordered.
constexpr int compare(scalar a, scalar b) {
  if (is_float(a.type)) {
    const float_format f = format_of(a.type);
    if (f.is_nan(a.bits) || f.is_nan(b.bits)) return 2;
    // Sign and magnitude read as an integer: +0 and -0 coincide, and the order is that of the numbers.
    const u64 magnitude = f.sign_bit() - 1;
    const i64 x = static_cast<i64>(a.bits & magnitude), y = static_cast<i64>(b.bits & magnitude);
    const i64 p = (a.bits & f.sign_bit()) != 0 ? -x : x, q = (b.bits & f.sign_bit()) != 0 ? -y : y;
    return p < q ? -1 : p > q;
  }
  if (is_signed_int(a.type)) return int_of(a) < int_of(b) ? -1 : int_of(a) > int_of(b);
  return a.bits < b.bits ? -1 : a.bits > b.bits;
}

struct quotient {
  scalar div, rem;
};

/// Truncating integer division; total: x / 0 is all ones, x % 0 is x, INT_MIN / -1 is INT_MIN with remainder 0.
constexpr quotient int_divide(scalar a, scalar b) {
  const dtype t = a.type;
  if (b.bits == 0) return {{t, mask_of(t)}, a};
  if (!is_signed_int(t)) return {{t, a.bits / b.bits}, {t, a.bits % b.bits}};
  const i64 x = int_of(a), y = int_of(b);
  if (y == -1) return {scalar_from_bits(t, ~a.bits + 1), {t, 0}}; // i64 INT_MIN / -1 would trap
  return {scalar_from_bits(t, static_cast<u64>(x / y)), scalar_from_bits(t, static_cast<u64>(x % y))};
}

} // namespace kiln::detail

namespace kiln::scalar_ops {

// Arithmetic: integers wrap; floating results are rounded once, and a NaN result is the canonical one.

constexpr scalar add(scalar a, scalar b) {
  detail::require(a.type == b.type && is_arithmetic(a.type), "add", a, b);
  if (is_int(a.type)) return scalar_from_bits(a.type, a.bits + b.bits);
  return detail::float_arithmetic(
      a, b, b, [](auto f, u64 x, u64 y, u64) { return detail::soft::add(f, x, y); },
      [](auto x, auto y, auto) { return x + y; });
}

constexpr scalar sub(scalar a, scalar b) {
  detail::require(a.type == b.type && is_arithmetic(a.type), "sub", a, b);
  if (is_int(a.type)) return scalar_from_bits(a.type, a.bits - b.bits);
  return detail::float_arithmetic(
      a, b, b, [](auto f, u64 x, u64 y, u64) { return detail::soft::sub(f, x, y); },
      [](auto x, auto y, auto) { return x - y; });
}

constexpr scalar mul(scalar a, scalar b) {
  detail::require(a.type == b.type && is_arithmetic(a.type), "mul", a, b);
  if (is_int(a.type)) return scalar_from_bits(a.type, a.bits * b.bits);
  return detail::float_arithmetic(
      a, b, b, [](auto f, u64 x, u64 y, u64) { return detail::soft::mul(f, x, y); },
      [](auto x, auto y, auto) { return x * y; });
}

/// Floating: correctly rounded, x / 0 is an infinity or NaN. Integers: truncates; x / 0 is all ones (-1, or the largest
/// unsigned value); INT_MIN / -1 is INT_MIN.
constexpr scalar div(scalar a, scalar b) {
  detail::require(a.type == b.type && is_arithmetic(a.type), "div", a, b);
  if (is_int(a.type)) return detail::int_divide(a, b).div;
  return detail::float_arithmetic(
      a, b, b, [](auto f, u64 x, u64 y, u64) { return detail::soft::div(f, x, y); },
      [](auto x, auto y, auto) { return x / y; });
}

/// Integers: what truncating division leaves, with the sign of a; x % 0 is x, INT_MIN % -1 is 0.
constexpr scalar rem(scalar a, scalar b) {
  detail::require(a.type == b.type && is_int(a.type), "rem", a, b);
  return detail::int_divide(a, b).rem;
}

/// Integer quotient rounded toward negative infinity: div(a, b), less one where rem(a, b) is not zero and its sign is
/// not b's. So it is for b = 0, too.
constexpr scalar floor_div(scalar a, scalar b) {
  detail::require(a.type == b.type && is_int(a.type), "floor_div", a, b);
  const detail::quotient q = detail::int_divide(a, b);
  const bool down = is_signed_int(a.type) && q.rem.bits != 0 && (int_of(q.rem) < 0) != (int_of(b) < 0);
  return scalar_from_bits(a.type, q.div.bits - down);
}

/// Integer quotient rounded toward positive infinity, without overflow on the way: div(a, b), plus one where rem(a, b)
/// is not zero and has b's sign. So it is for b = 0, too.
constexpr scalar ceil_div(scalar a, scalar b) {
  detail::require(a.type == b.type && is_int(a.type), "ceil_div", a, b);
  const detail::quotient q = detail::int_divide(a, b);
  const bool up = q.rem.bits != 0 && (!is_signed_int(a.type) || (int_of(q.rem) < 0) == (int_of(b) < 0));
  return scalar_from_bits(a.type, q.div.bits + up);
}

/// a * b + c. f32 and f64: one rounding. f16 and bf16: the f32 fma, then one rounding more. Integers wrap.
constexpr scalar fma(scalar a, scalar b, scalar c) {
  detail::require(a.type == b.type && a.type == c.type && is_arithmetic(a.type), "fma", a, c);
  if (is_int(a.type)) return scalar_from_bits(a.type, a.bits * b.bits + c.bits);
  return detail::float_arithmetic(
      a, b, c, [](auto f, u64 x, u64 y, u64 z) { return detail::soft::fma(f, x, y, z); },
      [](auto x, auto y, auto z) {
        if constexpr (sizeof(x) == sizeof(f64)) return __builtin_fma(x, y, z);
        else return __builtin_fmaf(x, y, z);
      });
}

/// Correctly rounded square root of a floating value; of a negative one NaN, of -0 it is -0.
constexpr scalar sqrt(scalar a) {
  detail::require(is_arithmetic(a.type) && is_float(a.type), "sqrt", a, a);
  return detail::float_arithmetic(
      a, a, a, [](auto f, u64 x, u64, u64) { return detail::soft::sqrt(f, x); },
      [](auto x, auto, auto) {
        if constexpr (sizeof(x) == sizeof(f64)) return __builtin_sqrt(x);
        else return __builtin_sqrtf(x);
      });
}

// Sign operations move bits: floating ones never round and keep a NaN's payload.

/// Floating: flips the sign bit. Integers, unsigned ones too: 0 - a, wrapping.
constexpr scalar neg(scalar a) {
  detail::require(is_arithmetic(a.type), "neg", a, a);
  if (is_float(a.type)) return {a.type, a.bits ^ detail::format_of(a.type).sign_bit()};
  return scalar_from_bits(a.type, ~a.bits + 1);
}

/// Floating: clears the sign bit. Integers: abs(INT_MIN) is INT_MIN; unsigned ones are unchanged.
constexpr scalar abs(scalar a) {
  detail::require(is_arithmetic(a.type), "abs", a, a);
  if (is_float(a.type)) return {a.type, a.bits & (detail::format_of(a.type).sign_bit() - 1)};
  return int_of(a) < 0 && is_signed_int(a.type) ? neg(a) : a;
}

// Rounding to an integer, for floating types. Infinities and zeros come back as they are; results keep the operand's
// sign.

constexpr scalar floor(scalar a) {
  detail::require(is_arithmetic(a.type) && is_float(a.type), "floor", a, a);
  return detail::round_to_integral(a, detail::to_integral::floor);
}

constexpr scalar ceil(scalar a) {
  detail::require(is_arithmetic(a.type) && is_float(a.type), "ceil", a, a);
  return detail::round_to_integral(a, detail::to_integral::ceil);
}

constexpr scalar trunc(scalar a) {
  detail::require(is_arithmetic(a.type) && is_float(a.type), "trunc", a, a);
  return detail::round_to_integral(a, detail::to_integral::trunc);
}

/// Nearest integer, halfway cases away from zero, like C's round.
constexpr scalar round(scalar a) {
  detail::require(is_arithmetic(a.type) && is_float(a.type), "round", a, a);
  return detail::round_to_integral(a, detail::to_integral::half_away);
}

// Comparisons: ordered, so false where an operand is NaN, except `ne`, which is true. eq and ne take b1, too.

constexpr scalar eq(scalar a, scalar b) {
  detail::require(a.type == b.type && !is_f8(a.type), "eq", a, b);
  return scalar_of(detail::compare(a, b) == 0);
}

constexpr scalar ne(scalar a, scalar b) {
  detail::require(a.type == b.type && !is_f8(a.type), "ne", a, b);
  return scalar_of(detail::compare(a, b) != 0);
}

constexpr scalar lt(scalar a, scalar b) {
  detail::require(a.type == b.type && is_arithmetic(a.type), "lt", a, b);
  return scalar_of(detail::compare(a, b) == -1);
}

constexpr scalar le(scalar a, scalar b) {
  detail::require(a.type == b.type && is_arithmetic(a.type), "le", a, b);
  return scalar_of(detail::compare(a, b) <= 0);
}

constexpr scalar gt(scalar a, scalar b) {
  detail::require(a.type == b.type && is_arithmetic(a.type), "gt", a, b);
  return scalar_of(detail::compare(a, b) == 1);
}

constexpr scalar ge(scalar a, scalar b) {
  detail::require(a.type == b.type && is_arithmetic(a.type), "ge", a, b);
  const int order = detail::compare(a, b);
  return scalar_of(order == 0 || order == 1);
}

/// b1: whether a is NaN.
constexpr scalar isnan(scalar a) {
  detail::require(is_arithmetic(a.type) && is_float(a.type), "isnan", a, a);
  return scalar_of(is_nan(a));
}

/// The smaller operand. NaN by `mode`; of two zeros of different sign, either.
constexpr scalar min(scalar a, scalar b, nan_mode mode = nan_mode::ignore) {
  detail::require(a.type == b.type && is_arithmetic(a.type), "min", a, b);
  if (is_nan(a) || is_nan(b)) {
    if (mode == nan_mode::propagate || (is_nan(a) && is_nan(b))) return nan_of(a.type);
    return is_nan(a) ? b : a;
  }
  return detail::compare(a, b) <= 0 ? a : b;
}

/// The larger operand. NaN by `mode`; of two zeros of different sign, either.
constexpr scalar max(scalar a, scalar b, nan_mode mode = nan_mode::ignore) {
  detail::require(a.type == b.type && is_arithmetic(a.type), "max", a, b);
  if (is_nan(a) || is_nan(b)) {
    if (mode == nan_mode::propagate || (is_nan(a) && is_nan(b))) return nan_of(a.type);
    return is_nan(a) ? b : a;
  }
  return detail::compare(a, b) >= 0 ? a : b;
}

/// What a reduction by `max` starts from and pads with: it never wins. Dropping NaN, that is NaN itself for floating
/// types, so that the maximum of nothing but NaN is NaN and of nothing but -infinity is -infinity.
constexpr scalar max_identity(dtype t, nan_mode mode = nan_mode::ignore) {
  return is_float(t) && mode == nan_mode::ignore ? nan_of(t) : lowest_of(t);
}

/// The same for `min`.
constexpr scalar min_identity(dtype t, nan_mode mode = nan_mode::ignore) {
  return is_float(t) && mode == nan_mode::ignore ? nan_of(t) : highest_of(t);
}

// Bits: integers and b1.

constexpr scalar bit_and(scalar a, scalar b) {
  detail::require(a.type == b.type && !is_float(a.type), "and", a, b);
  return {a.type, a.bits & b.bits};
}

constexpr scalar bit_or(scalar a, scalar b) {
  detail::require(a.type == b.type && !is_float(a.type), "or", a, b);
  return {a.type, a.bits | b.bits};
}

constexpr scalar bit_xor(scalar a, scalar b) {
  detail::require(a.type == b.type && !is_float(a.type), "xor", a, b);
  return {a.type, a.bits ^ b.bits};
}

/// Complement of all bits; logical not of a b1.
constexpr scalar bit_not(scalar a) {
  detail::require(!is_float(a.type), "not", a, a);
  return scalar_from_bits(a.type, ~a.bits);
}

/// a << count. The count may be of any integer type, is read as unsigned in that type, and `bits_of(a)` or more gives
/// 0.
constexpr scalar shl(scalar a, scalar count) {
  detail::require(is_int(a.type) && is_int(count.type), "shl", a, count);
  return scalar_from_bits(a.type, count.bits >= static_cast<u64>(bits_of(a.type)) ? 0 : a.bits << count.bits);
}

/// a >> count: arithmetic for signed types, logical for unsigned ones. The count is read as for `shl`; `bits_of(a)` or
/// more gives 0, or all ones for a negative a.
constexpr scalar shr(scalar a, scalar count) {
  detail::require(is_int(a.type) && is_int(count.type), "shr", a, count);
  const u64 last = static_cast<u64>(bits_of(a.type)) - 1;
  if (!is_signed_int(a.type)) return {a.type, count.bits > last ? 0 : a.bits >> count.bits};
  return scalar_from_bits(a.type, static_cast<u64>(int_of(a) >> (count.bits > last ? last : count.bits)));
}

/// a where the condition holds, else b; any type, bits unchanged.
constexpr scalar where(scalar condition, scalar a, scalar b) {
  detail::require(is_bool(condition.type) && a.type == b.type, "where", a, b);
  return condition.bits != 0 ? a : b;
}

} // namespace kiln::scalar_ops
