// Element-wise functions of values: conversion, mathematics, selection, shape.
#pragma once
#include <kiln/dsl/value.hpp>

namespace kiln {

/// The rounding-free infinity, for `.other = -inf`.
inline constexpr float inf = __builtin_huge_valf();

namespace detail {
template <class X>
constexpr extents dims_of() {
  return read_t<std::remove_cvref_t<X>>::dims;
}
template <class X>
inline constexpr bool computes = is_float(dtype_of<element_of<X>>) && !is_f8(dtype_of<element_of<X>>);
} // namespace detail

/// Options of functions that have a faster, less exact form on some targets (docs/numerics.md).
struct math_options {
  bool fast = false;
};

#define KILN_DETAIL_FUNCTION(name, summary)                                                                            \
  template <tile_like X>                                                                                               \
  constexpr auto name(X const& x, math_options o = {}, site at = {})                                                   \
    KILN_DETAIL_REFUSE("kiln[T-06] " #name " needs f16, bf16, f32 or f64 elements; cast<f32>(...) the operand first", detail::computes<X>) { \
    KILN_DETAIL_CHECK("kiln[T-06] " #name " needs f16, bf16, f32 or f64 elements; cast<f32>(...) the operand first", detail::computes<X>) \
    auto v = detail::read(x, at);                                                                                      \
    recorder& r = *v.recorder_;                                                                                        \
    node const n = r.nodes[v.node_];                                                                                   \
    return decltype(v){&r, r.push(op::name, {n.type, n.kind, n.shape}, {v.node_}, {o.fast}, at)};                      \
  }

/// Shapes: any, kept. Types: f16, bf16 (computed in f32), f32, f64. Accuracy: docs/numerics.md.
KILN_DETAIL_FUNCTION(exp, "e^x")
KILN_DETAIL_FUNCTION(exp2, "2^x")
KILN_DETAIL_FUNCTION(log, "natural logarithm")
KILN_DETAIL_FUNCTION(log2, "logarithm to base 2")
KILN_DETAIL_FUNCTION(sqrt, "square root")
KILN_DETAIL_FUNCTION(rsqrt, "1/sqrt(x)")
KILN_DETAIL_FUNCTION(sin, "sine of radians")
KILN_DETAIL_FUNCTION(cos, "cosine of radians")
KILN_DETAIL_FUNCTION(tanh, "hyperbolic tangent")
KILN_DETAIL_FUNCTION(erf, "error function")
#undef KILN_DETAIL_FUNCTION

/// |x|. Integers and floats; the most negative integer stays what it is.
template <tile_like X>
constexpr auto abs(X const& x, site at = {}) {
  static_assert(is_arithmetic(dtype_of<detail::element_of<X>>), "kiln[T-06] abs needs an integer or floating type; cast<T>(...) first");
  return detail::unary<op::abs>(x, at);
}
/// Largest integer value not above x.
template <tile_like X>
constexpr auto floor(X const& x, site at = {}) {
  static_assert(detail::computes<X>, "kiln[T-06] floor needs a floating type; integers are whole already");
  return detail::unary<op::floor>(x, at);
}
/// Smallest integer value not below x.
template <tile_like X>
constexpr auto ceil(X const& x, site at = {}) {
  static_assert(detail::computes<X>, "kiln[T-06] ceil needs a floating type; integers are whole already");
  return detail::unary<op::ceil>(x, at);
}
/// Nearest integer value; halves away from zero.
template <tile_like X>
constexpr auto round(X const& x, site at = {}) {
  static_assert(detail::computes<X>, "kiln[T-06] round needs a floating type; integers are whole already");
  return detail::unary<op::round>(x, at);
}
/// b1: x is not a number. Types: f16, bf16, f32, f64.
template <tile_like X>
constexpr auto isnan(X const& x, site at = {}) {
  static_assert(detail::computes<X>, "kiln[T-06] isnan needs f16, bf16, f32 or f64 elements; cast<f32>(...) the operand first");
  auto v = detail::read(x, at);
  recorder& r = *v.recorder_;
  using R = typename detail::tile_from<bool, detail::dims_of<X>()>::type;
  return R{&r, r.push(op::isnan, {dtype::b1, node_kind::value, r.nodes[v.node_].shape}, {v.node_}, {}, at)};
}

/// The same values as another element type, converted by docs/numerics.md (floats round to nearest even, float to integer
/// truncates and saturates, NaN becomes 0, integers wrap). A cast to the own type records nothing.
template <element T, tile_like X>
constexpr auto cast(X const& x, site at = {}) {
  auto v = detail::read(x, at);
  recorder& r = *v.recorder_;
  using R = typename detail::tile_from<T, detail::dims_of<X>()>::type;
  if constexpr (std::same_as<T, detail::element_of<X>>)
    return v;
  else
    return R{&r, r.push(op::cast, {dtype_of<T>, node_kind::value, r.nodes[v.node_].shape}, {v.node_}, {}, at)};
}

/// The same bits as another element type of the same width.
template <element T, tile_like X>
constexpr auto bitcast(X const& x, site at = {}) {
  static_assert(bits_of(dtype_of<T>) == bits_of(dtype_of<detail::element_of<X>>) && !std::same_as<T, bool>,
                "kiln[T-08] bitcast needs two types of the same width, neither of them b1; cast<T>(...) converts values");
  auto v = detail::read(x, at);
  recorder& r = *v.recorder_;
  using R = typename detail::tile_from<T, detail::dims_of<X>()>::type;
  return R{&r, r.push(op::bitcast, {dtype_of<T>, node_kind::value, r.nodes[v.node_].shape}, {v.node_}, {}, at)};
}

/// Element-wise choice: `a` where `condition`, else `b`. Shapes broadcast, types promote.
template <tile_like C, operand A, operand B>
constexpr auto where(C const& condition, A const& a, B const& b, site at = {}) {
  static_assert(std::same_as<detail::element_of<C>, bool>, "kiln[T-03] where needs a b1 condition; compare first");
  constexpr bool has_tile = !(literal<A> && literal<B>);
  static_assert(has_tile, "kiln[T-04] where needs a tile among its values; use k.full<T>(...) for one of them");
  if constexpr (has_tile) {
    constexpr bool types = detail::types_combine<A, B>();
    static_assert(types, "kiln[T-04] the values' element types do not combine; cast<T>(...) one of them");
    constexpr detail::extents values = detail::common_extents<A, B>(), all = detail::broadcast(detail::dims_of<C>(), values);
    constexpr bool shapes = values.rank >= 0 && all.rank >= 0;
    static_assert(shapes, "kiln[T-05] the shapes of where do not broadcast: aligned at the last axis, extents must be equal or 1");
    if constexpr (types && shapes) {
      using T = detail::common_t<A, B>;
      auto c = detail::read(condition, at);
      recorder& r = *c.recorder_;
      int x = detail::conform<T, all>(r, a, at).node_, y = detail::conform<T, all>(r, b, at).node_;
      int m = detail::conform<bool, all>(r, c, at).node_;
      return typename detail::tile_from<T, all>::type{&r, r.push(op::where, {dtype_of<T>, node_kind::value, r.nodes[x].shape}, {m, x, y}, {}, at)};
    }
  }
}

/// x * y + z with one rounding. Floating types; shapes broadcast, types promote.
template <operand X, operand Y, operand Z>
  requires(tile_like<X> || tile_like<Y> || tile_like<Z>)
constexpr auto fma(X const& x, Y const& y, Z const& z, site at = {}) {
  static_assert(tile_like<X>, "kiln[T-04] the first operand of fma must be a tile; use k.full<T>(...)");
  static_assert(detail::types_combine<X, Y>() && detail::types_combine<X, Z>(), "kiln[T-04] the operands' element types do not combine; cast<T>(...) one of them");
  using T = promote_t<detail::common_t<X, Y>, detail::common_t<X, Z>>;
  static_assert(is_float(dtype_of<T>) && !is_f8(dtype_of<T>), "kiln[T-06] fma needs floating operands; write x * y + z for integers");
  constexpr detail::extents all = detail::broadcast(detail::common_extents<X, Y>(), detail::common_extents<X, Z>());
  static_assert(all.rank >= 0, "kiln[T-05] the operands' shapes do not broadcast: aligned at the last axis, extents must be equal or 1");
  recorder& r = *detail::read(x, at).recorder_;
  int a = detail::conform<T, all>(r, x, at).node_, b = detail::conform<T, all>(r, y, at).node_;
  int c = detail::conform<T, all>(r, z, at).node_;
  return typename detail::tile_from<T, all>::type{&r, r.push(op::fma, {dtype_of<T>, node_kind::value, r.nodes[a].shape}, {a, b, c}, {}, at)};
}

struct minmax_options {
  nan_mode nan = nan_mode::ignore; ///< ignore: a number wins over NaN; propagate: NaN wins
};

namespace detail {
template <op O, reduce_op R>
struct minmax_function {
  static constexpr reduce_op combine = R;
  template <operand A, operand B>
    requires(tile_like<A> || tile_like<B>)
  constexpr auto operator()(A const& a, B const& b, minmax_options o = {}, site at = {}) const {
    static_assert(types_combine<A, B>(), "kiln[T-04] the operands' element types do not combine; cast<T>(...) one of them");
    static_assert(shapes_combine<A, B>(), "kiln[T-05] the operands' shapes do not broadcast: aligned at the last axis, extents must be equal or 1");
    static_assert(operation_accepts<O, A, B>(), "kiln[T-06] max and min need integer or floating operands; cast<T>(...) first");
    using T = common_t<A, B>;
    constexpr extents E = common_extents<A, B>();
    recorder& r = recorder_of(a, b);
    int x = conform<T, E>(r, a, at).node_, y = conform<T, E>(r, b, at).node_;
    return typename tile_from<T, E>::type{&r, r.push(O, {dtype_of<T>, node_kind::value, r.nodes[x].shape}, {x, y}, {static_cast<int>(o.nan)}, at)};
  }
};
template <reduce_op R>
struct combine_function {
  static constexpr reduce_op combine = R;
};
} // namespace detail

// Function objects, so that they also name the combine of a reduction: reduce<max>(x).
inline constexpr detail::minmax_function<op::max, reduce_op::max> max{};
inline constexpr detail::minmax_function<op::min, reduce_op::min> min{};
inline constexpr detail::combine_function<reduce_op::sum> sum{};
inline constexpr detail::combine_function<reduce_op::prod> prod{};
inline constexpr detail::combine_function<reduce_op::any> any{};
inline constexpr detail::combine_function<reduce_op::all> all{};
inline constexpr detail::combine_function<reduce_op::bit_xor> bit_xor{};

/// ceil(a / b) for a value and a positive divisor: (a + b - 1) / b without overflow for a >= 0.
template <tile_like A, operand B>
constexpr auto ceil_div(A const& a, B const& b, site at = {}) {
  static_assert(detail::types_combine<A, B>(), "kiln[T-04] the operands' element types do not combine; cast<T>(...) one of them");
  static_assert(is_int(dtype_of<detail::common_t<A, B>>), "kiln[T-06] ceil_div needs integers");
  auto x = detail::read(a, at);
  auto q = detail::binary<op::div>(x, b, at);
  auto r = detail::binary<op::rem>(x, b, at);
  using T = typename decltype(q)::element_type;
  // C++ division truncates: up when the remainder has the divisor's sign.
  if constexpr (is_signed_int(dtype_of<T>)) {
    auto same_sign = detail::binary<op::ge>(detail::binary<op::bit_xor>(r, b, at), 0, at);
    auto up = detail::binary<op::bit_and>(detail::binary<op::ne>(r, 0, at), same_sign, at);
    return detail::binary<op::add>(q, cast<T>(up, at), at);
  } else {
    return detail::binary<op::add>(q, cast<T>(detail::binary<op::ne>(r, 0, at), at), at);
  }
}
/// floor(a / b).
template <tile_like A, operand B>
constexpr auto floor_div(A const& a, B const& b, site at = {}) {
  static_assert(detail::types_combine<A, B>(), "kiln[T-04] the operands' element types do not combine; cast<T>(...) one of them");
  static_assert(is_int(dtype_of<detail::common_t<A, B>>), "kiln[T-06] floor_div needs integers");
  auto x = detail::read(a, at);
  auto q = detail::binary<op::div>(x, b, at);
  using T = typename decltype(q)::element_type;
  if constexpr (is_signed_int(dtype_of<T>)) {
    auto r = detail::binary<op::rem>(x, b, at);
    auto other_sign = detail::binary<op::lt>(detail::binary<op::bit_xor>(r, b, at), 0, at);
    auto down = detail::binary<op::bit_and>(detail::binary<op::ne>(r, 0, at), other_sign, at);
    return detail::binary<op::sub>(q, cast<T>(down, at), at);
  } else {
    return q;
  }
}

/// A promise that every element is a multiple of N (bytes, for pointers): wider accesses may follow from it.
template <int N, class X>
  requires(tile_like<X> || pointer_like<X>)
constexpr auto multiple_of(X const& x, site at = {}) {
  static_assert(N >= 1 && (N & (N - 1)) == 0, "kiln[T-09] multiple_of needs a power of two");
  auto v = detail::read(x, at);
  recorder& r = *v.recorder_;
  node const n = r.nodes[v.node_];
  return decltype(v){&r, r.push(op::multiple_of, {n.type, n.kind, n.shape}, {v.node_}, {N}, at)};
}
/// A promise that along the last axis, aligned runs of N elements hold consecutive values.
template <int N, class X>
  requires(tile_like<X> || pointer_like<X>)
constexpr auto max_contiguous(X const& x, site at = {}) {
  static_assert(N >= 1 && (N & (N - 1)) == 0, "kiln[T-09] max_contiguous needs a power of two");
  auto v = detail::read(x, at);
  recorder& r = *v.recorder_;
  node const n = r.nodes[v.node_];
  return decltype(v){&r, r.push(op::max_contiguous, {n.type, n.kind, n.shape}, {v.node_}, {N}, at)};
}

} // namespace kiln
