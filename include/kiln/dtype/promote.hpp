// Which type two operands of different types meet in. One table, read by the DSL at compile time and by tools at run
// time.
#pragma once

#include <boost/mp11/list.hpp>
#include <kiln/dtype/float8.hpp>

namespace kiln {

namespace detail {

template <class Wider, class... Narrower> using promotion_row = boost::mp11::mp_list<Wider, Narrower...>;
template <class Row, class... More> using row_with = boost::mp11::mp_push_back<Row, More...>;
template <class Wider, class Row> using row_over = boost::mp11::mp_push_front<Row, Wider>;

// The promotion table. Each row names a type and, after it, the types that it takes in; the operands of a mixed
// operation become the type of the *first* row that contains both. Read downwards:
//   - a type meets itself in itself: nothing promotes to int, i8 + i8 is i8;
//   - b1 becomes the other operand's type;
//   - integers: the wider wins, and at equal width the unsigned one (as in C), so u8 with i16 is i16, i32 with u32 is
//   u32;
//   - an integer of any width becomes the float's type;
//   - f16 and bf16 hold neither one the other, they meet in f32; then f64.
// The f8 types meet only themselves (to be moved about); to compute, cast first.
using row_b1 = promotion_row<bool>;
using row_i8 = row_over<i8, row_b1>;
using row_u8 = row_over<u8, row_i8>;
using row_i16 = row_over<i16, row_u8>;
using row_u16 = row_over<u16, row_i16>;
using row_i32 = row_over<i32, row_u16>;
using row_u32 = row_over<u32, row_i32>;
using row_i64 = row_over<i64, row_u32>;
using row_u64 = row_over<u64, row_i64>;
using row_f16 = row_over<f16, row_u64>;
using row_bf16 = row_over<bf16, row_u64>;
using row_f32 = row_over<f32, row_with<row_f16, bf16>>;
using row_f64 = row_over<f64, row_f32>;
using promotion_table =
    boost::mp11::mp_list<row_b1, row_i8, row_u8, row_i16, row_u16, row_i32, row_u32, row_i64, row_u64, row_f16,
                         row_bf16, row_f32, row_f64, promotion_row<f8e4m3>, promotion_row<f8e5m2>>;

struct promotion_entry {
  dtype result;
  u16 members; // one bit per dtype
};

template <class Row> struct promotion_entry_of;
template <class Wider, class... Narrower> struct promotion_entry_of<boost::mp11::mp_list<Wider, Narrower...>> {
  static constexpr promotion_entry value = {
      dtype_of<Wider>, static_cast<u16>(((1u << dtype_index<Wider>) | ... | (1u << dtype_index<Narrower>)))};
};

// The same table as values, so that looking a pair up costs no template instantiation.
template <class Table> struct promotion_values;
template <class... Rows> struct promotion_values<boost::mp11::mp_list<Rows...>> {
  static constexpr promotion_entry rows[] = {promotion_entry_of<Rows>::value...};
};

} // namespace detail

/// The type in which values of types a and b meet.
/// Errors: returns false, and leaves `out` alone, where the table has no common type (an f8 type with another type).
constexpr bool promote(dtype a, dtype b, dtype& out) {
  const unsigned both = 1u << static_cast<int>(a) | 1u << static_cast<int>(b);
  for (const detail::promotion_entry& row : detail::promotion_values<detail::promotion_table>::rows)
    if ((row.members & both) == both) {
      out = row.result;
      return true;
    }
  return false;
}

namespace detail {

constexpr dtype promoted_or_b1(dtype a, dtype b) {
  dtype result = dtype::b1;
  promote(a, b, result);
  return result;
}

constexpr bool has_common_type(dtype a, dtype b) {
  dtype ignored = dtype::b1;
  return promote(a, b, ignored);
}

// b1 < integers < floating types; a C++ literal is of one of these three categories.
constexpr int category_of(dtype t) { return is_bool(t) ? 0 : is_int(t) ? 1 : 2; }

template <class L> inline constexpr int literal_category = std::is_same_v<L, bool> ? 0 : std::is_integral_v<L> ? 1 : 2;

} // namespace detail

/// A and B (element types) have a common type.
template <class A, class B>
concept promotable = element<A> && element<B> && detail::has_common_type(dtype_of<A>, dtype_of<B>);

/// A and B meet in a type that has arithmetic: not b1, not f8.
template <class A, class B>
concept arithmetic_promotable = promotable<A, B> && is_arithmetic(detail::promoted_or_b1(dtype_of<A>, dtype_of<B>));

namespace detail {
template <class A, class B> struct promoted {
  static_assert(
      has_common_type(dtype_of<A>, dtype_of<B>), // checks that A and B are element types, too
      "kiln: these two element types have no common type: f8e4m3 and f8e5m2 are for storage, cast<f32>(x) first");
  using type = host_type<promoted_or_b1(dtype_of<A>, dtype_of<B>)>;
};
template <class T> struct promoted<T, T> { using type = T; };
} // namespace detail

/// The type in which operands of element types A and B meet.
template <class A, class B> using promote_t = typename detail::promoted<A, B>::type;

/// A C++ scalar that takes the type of the tile it meets: bool, any integer type, float or double.
template <class L>
concept weak_literal = std::is_integral_v<L> || std::is_same_v<L, f32> || std::is_same_v<L, f64>;

/// A literal of C++ type L can take the element type T: T's category (b1 < integer < float) is not below the literal's.
template <class T, class L>
concept weak_promotable = element<T> && weak_literal<L> && !is_f8(dtype_of<T>) &&
                          detail::literal_category<L> <= detail::category_of(dtype_of<T>);

namespace detail {
template <class T, class L> struct weak_promoted {
  static_assert(element<T> && weak_literal<L>,
                "kiln: a literal operand must be a bool, an integer, a float or a double");
  static_assert(!is_f8(dtype_of<T>), "kiln: f8e4m3 and f8e5m2 are for storage, cast<f32>(x) first");
  static_assert(
      literal_category<L> <= category_of(dtype_of<T>),
      "kiln: a floating literal with an integer operand, or a number with a b1 operand: cast the operand first, "
      "as in cast<f32>(x) * 0.5f");
  using type = T;
};
} // namespace detail

/// The type of an operation between a T and a C++ literal of type L: always T, where it is allowed.
template <class T, class L> using weak_promote_t = typename detail::weak_promoted<T, L>::type;

/// Whether the literal means the same number, up to rounding, after it has become type t: an integer type must hold it
/// exactly, and a finite literal must not overflow to infinity. (Inexact is fine: 0.1 as f16, 16777217 as f32.)
/// Requires a literal of a category that t accepts.
template <weak_literal L> constexpr bool literal_fits(dtype t, L x) {
  if constexpr (std::is_integral_v<L>) {
    if (!is_float(t)) {
      const u64 wide = static_cast<u64>(x);
      const u64 largest = (u64{1} << (bits_of(t) - 1) << !is_signed_int(t)) - 1; // 2^64 wraps to 0, as it should
      return x < L{0} ? is_signed_int(t) && ~wide <= largest : wide <= largest;
    }
  } else if (!is_float(t)) {
    return false;
  }
  detail::float_format f = detail::format_of(t);
  if constexpr (!std::is_integral_v<L>) {
    const u64 as_f64 = detail::encode(detail::format_of(dtype::f64), x);
    if (detail::format_of(dtype::f64).is_nan(as_f64)) return true;
    if (detail::format_of(dtype::f64).is_infinity(as_f64)) return !f.saturating;
  }
  f.saturating = false;
  return (detail::encode(f, x) & (f.sign_bit() - 1)) <= f.max_finite();
}

} // namespace kiln
