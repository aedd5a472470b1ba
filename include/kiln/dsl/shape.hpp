// Operations that change a tile's shape, and reductions, scans and gathers over its axes.
#pragma once
#include <kiln/dsl/math.hpp>

namespace kiln {

namespace detail {
template <int... D>
inline constexpr std::int64_t elements_of = (std::int64_t{1} * ... * D);
constexpr int normal_axis(int axis, int rank) { return axis < 0 ? axis + rank : axis; }
constexpr extents without_axis(extents const& e, int axis, bool keep) {
  extents r = e;
  if (keep) {
    r.extent[axis] = 1;
    return r;
  }
  for (int i = axis; i + 1 < e.rank; ++i) r.extent[i] = e.extent[i + 1];
  r.extent[--r.rank] = 0;
  return r;
}
constexpr extents all_ones(int rank) {
  extents r;
  r.rank = rank;
  for (int i = 0; i < rank; ++i) r.extent[i] = 1;
  return r;
}
constexpr bool is_permutation(extents const& p) {
  bool seen[max_rank]{};
  for (int i = 0; i < p.rank; ++i) {
    if (p.extent[i] < 0 || p.extent[i] >= p.rank || seen[p.extent[i]]) return false;
    seen[p.extent[i]] = true;
  }
  return true;
}
/// `e` with its axes permuted by p; the last two exchanged when p is empty.
constexpr extents permuted(extents const& e, extents const& p) {
  extents r;
  r.rank = e.rank;
  for (int i = 0; i < e.rank; ++i) r.extent[i] = e.extent[p.extent[i]];
  return r;
}
constexpr extents default_permutation(int rank) {
  extents p;
  p.rank = rank;
  for (int i = 0; i < rank; ++i) p.extent[i] = i;
  if (rank >= 2) {
    p.extent[rank - 1] = rank - 2;
    p.extent[rank - 2] = rank - 1;
  }
  return p;
}
template <int... P>
constexpr extents permutation_or_default(int rank) {
  if constexpr (sizeof...(P) == 0)
    return default_permutation(rank);
  else
    return extents_of<P...>;
}
/// Records one operand and an attribute list, with a computed result type.
template <class R, class V>
constexpr R shape_op(op code, V const& v, std::initializer_list<std::int64_t> attributes, site at) {
  recorder& r = *v.recorder_;
  return R{&r, r.push(code, type_of<R>(r), {v.node_}, attributes, at)};
}
} // namespace detail

/// Says that a reduction keeps the reduced axis with extent 1: reduce<sum, 1, keep>(x).
inline constexpr bool keep = true;

/// The same elements in row-major order, in another shape.
template <int... D, tile_like X>
constexpr auto reshape(X const& x, site at = {}) {
  static_assert(detail::elements_of<D...> == detail::to_shape(detail::dims_of<X>()).elements(),
                "kiln[T-10] reshape must keep the number of elements");
  return detail::shape_op<tile<detail::element_of<X>, D...>>(op::reshape, detail::read(x, at), {}, at);
}
/// A new axis of extent 1 before axis `Axis` of the result.
template <int Axis, tile_like X>
constexpr auto expand_dims(X const& x, site at = {}) {
  constexpr detail::extents from = detail::dims_of<X>();
  constexpr int axis = detail::normal_axis(Axis, from.rank + 1);
  static_assert(axis >= 0 && axis <= from.rank, "kiln[T-11] expand_dims: no such axis");
  constexpr detail::extents to = [&] {
    detail::extents e;
    e.rank = from.rank + 1;
    for (int i = 0; i < e.rank; ++i) e.extent[i] = i == axis ? 1 : from.extent[i < axis ? i : i - 1];
    return e;
  }();
  return detail::shape_op<typename detail::tile_from<detail::element_of<X>, to>::type>(op::reshape, detail::read(x, at), {}, at);
}
/// Repeated to the extents `D...`: aligned at the last axis, every extent of x is 1 or equal.
template <int... D, tile_like X>
constexpr auto broadcast(X const& x, site at = {}) {
  static_assert(detail::broadcast(detail::dims_of<X>(), detail::extents_of<D...>) == detail::extents_of<D...>,
                "kiln[T-05] the tile does not broadcast to these extents: aligned at the last axis, its extents must be equal or 1");
  return detail::conform<detail::element_of<X>, detail::extents_of<D...>>(*detail::read(x, at).recorder_, x, at);
}
/// Axes permuted: axis d of the result is axis P[d] of x. Without P the last two axes are exchanged.
template <int... P, tile_like X>
constexpr auto trans(X const& x, site at = {}) {
  constexpr detail::extents from = detail::dims_of<X>();
  static_assert(from.rank >= 2, "kiln[T-11] trans needs at least two axes");
  constexpr detail::extents p = detail::permutation_or_default<P...>(from.rank);
  static_assert(p.rank == from.rank && detail::is_permutation(p), "kiln[T-11] trans needs each axis exactly once");
  return detail::shape_op<typename detail::tile_from<detail::element_of<X>, detail::permuted(from, p)>::type>(
      op::trans, detail::read(x, at), {p.extent[0], p.extent[1], p.extent[2], p.extent[3], p.extent[4], p.extent[5]}, at);
}
/// Two tiles of one type and shape side by side on a new last axis of extent 2.
template <tile_like A, tile_like B>
constexpr auto join(A const& a, B const& b, site at = {}) {
  static_assert(std::same_as<detail::read_t<A>, detail::read_t<B>>, "kiln[T-05] join needs two tiles of one element type and shape");
  auto x = detail::read(a, at);
  auto y = detail::read(b, at);
  recorder& r = *x.recorder_;
  constexpr detail::extents to = [] {
    detail::extents e = detail::dims_of<A>();
    e.extent[e.rank++] = 2;
    return e;
  }();
  static_assert(to.rank <= max_rank, "kiln[T-02] a tile has at most 6 axes");
  using R = typename detail::tile_from<detail::element_of<A>, to>::type;
  return R{&r, r.push(op::join, detail::type_of<R>(r), {x.node_, y.node_}, {}, at)};
}
/// The two halves of a last axis of extent 2: `auto [re, im] = split(x);`
template <tile_like X>
constexpr auto split(X const& x, site at = {}) {
  constexpr detail::extents from = detail::dims_of<X>();
  static_assert(from.rank >= 1 && from.extent[from.rank - 1] == 2, "kiln[T-10] split needs a last axis of extent 2; reshape first");
  using R = typename detail::tile_from<detail::element_of<X>, detail::without_axis(from, from.rank - 1, false)>::type;
  struct halves {
    R first, second;
  };
  auto v = detail::read(x, at);
  return halves{detail::shape_op<R>(op::split, v, {0}, at), detail::shape_op<R>(op::split, v, {1}, at)};
}

/// Stands for "all axes" in reduce.
inline constexpr int all_axes = -1000;

namespace detail {
template <extents E, int Axis, bool Keep>
constexpr extents reduced() {
  if constexpr (Axis == all_axes)
    return Keep ? all_ones(E.rank) : extents{};
  else
    return without_axis(E, normal_axis(Axis, E.rank), Keep);
}
constexpr bool reduction_accepts(reduce_op o, dtype t) {
  if (o == reduce_op::any || o == reduce_op::all) return is_bool(t);
  if (o == reduce_op::bit_xor) return is_int(t) || is_bool(t);
  return is_arithmetic(t);
}
} // namespace detail

/// Combines all elements (to a scalar), or those along `Axis` (dropped, or kept with extent 1).
///
/// `reduce<sum>(x)`, `reduce<max, 1>(x)`, `reduce<max, -1, keep>(x, {.nan = nan_mode::propagate})`. Op: sum, prod, max,
/// min, any, all, bit_xor. The axis is a template argument because the result's shape, a type, depends on it. Small
/// integers are summed in their own type and wrap; f16 and bf16 are summed in f32 and rounded once. The order of
/// summation is unspecified. For a combine of your own see the overload that takes a lambda.
template <auto Op, int Axis = all_axes, bool Keep = false, tile_like X>
constexpr auto reduce(X const& x, minmax_options o = {}, site at = {}) {
  constexpr detail::extents from = detail::dims_of<X>();
  constexpr bool axis_ok = Axis == all_axes || (Axis < from.rank && Axis >= -from.rank);
  static_assert(axis_ok, "kiln[T-11] reduce: no such axis");
  static_assert(detail::reduction_accepts(Op.combine, dtype_of<detail::element_of<X>>),
                "kiln[T-06] this reduction does not accept the element type: any and all take b1, bit_xor integers, the others numbers");
  if constexpr (axis_ok) {
    auto v = detail::read(x, at);
    using R = typename detail::tile_from<detail::element_of<X>, detail::reduced<from, Axis, Keep>()>::type;
    return detail::shape_op<R>(op::reduce, v, {static_cast<int>(Op.combine), Axis == all_axes ? -1 : detail::normal_axis(Axis, from.rank), Keep, static_cast<int>(o.nan), -1}, at);
  } else {
    return detail::read(x, at);
  }
}

namespace detail {
/// Records the body of a combine: a function of two scalars. Returns the combine_begin node.
template <class T, class F>
constexpr int record_combine(recorder& r, F const& f, site at) {
  result_type scalar{dtype_of<T>, node_kind::value, 0};
  int begin = r.push(op::combine_begin, {}, {}, {-1}, at);
  r.open(begin);
  tile<T> a{&r, r.push(op::combine_arg, scalar, {begin}, {0}, at)};
  tile<T> b{&r, r.push(op::combine_arg, scalar, {begin}, {1}, at)};
  auto c = f(a, b);
  int end = r.push(op::combine_end, {}, {c.node_}, {begin}, at);
  r.close();
  r.attribute(begin, 0) = end;
  return begin;
}
/// The same over pairs: f((a0, a1), (b0, b1)) as f(a0, a1, b0, b1), returning something with two members.
template <class T, class U, class F>
constexpr int record_combine2(recorder& r, F const& f, site at) {
  result_type t{dtype_of<T>, node_kind::value, 0}, u{dtype_of<U>, node_kind::value, 0};
  int begin = r.push(op::combine_begin, {}, {}, {-1}, at);
  r.open(begin);
  tile<T> a0{&r, r.push(op::combine_arg, t, {begin}, {0}, at)};
  tile<U> a1{&r, r.push(op::combine_arg, u, {begin}, {1}, at)};
  tile<T> b0{&r, r.push(op::combine_arg, t, {begin}, {2}, at)};
  tile<U> b1{&r, r.push(op::combine_arg, u, {begin}, {3}, at)};
  auto [c0, c1] = f(a0, a1, b0, b1);
  int end = r.push(op::combine_end, {}, {c0.node_, c1.node_}, {begin}, at);
  r.close();
  r.attribute(begin, 0) = end;
  return begin;
}
} // namespace detail

/// Two values returned by a combine of pairs, or by a reduction or scan over pairs.
template <class A, class B>
struct pair_of {
  A first;
  B second;
};
template <class A, class B>
pair_of(A, B) -> pair_of<A, B>;
namespace detail {
template <class A, class B, class F>
constexpr bool combines_pairs() {
  return std::same_as<decltype(std::declval<F const&>()(std::declval<A>(), std::declval<B>(), std::declval<A>(), std::declval<B>())), pair_of<A, B>>;
}
} // namespace detail

/// Combines along `Axis` with a lambda of two scalars, which must be associative: the grouping is unspecified, the order
/// of the operands is kept. `reduce<0>(x, [](auto a, auto b) { return a * b; })`.
template <int Axis, bool Keep = false, tile_like X, class F>
  requires(!tile_like<F> && !std::same_as<F, minmax_options>)
constexpr auto reduce(X const& x, F const& combine, site at = {}) {
  constexpr detail::extents from = detail::dims_of<X>();
  static_assert(Axis < from.rank && Axis >= -from.rank, "kiln[T-11] reduce: no such axis");
  using Element = tile<detail::element_of<X>>;
  constexpr bool returns = std::same_as<decltype(combine(std::declval<Element>(), std::declval<Element>())), Element>;
  static_assert(returns, "kiln[T-12] a combine must return a scalar of the tile's element type; cast<T>(...) the result");
  if constexpr (returns) {
    auto v = detail::read(x, at);
    int body = detail::record_combine<detail::element_of<X>>(*v.recorder_, combine, at);
    using R = typename detail::tile_from<detail::element_of<X>, detail::reduced<from, Axis, Keep>()>::type;
    return detail::shape_op<R>(op::reduce, v, {static_cast<int>(reduce_op::custom), detail::normal_axis(Axis, from.rank), Keep, 0, body}, at);
  }
}
/// The same over two tiles of one shape, for pairs such as (value, index): the lambda takes (a0, a1, b0, b1) and returns
/// `pair_of(c0, c1)`.
template <int Axis, bool Keep = false, tile_like X, tile_like Y, class F>
constexpr auto reduce(X const& x, Y const& y, F const& combine, site at = {}) {
  constexpr detail::extents from = detail::dims_of<X>();
  static_assert(from == detail::dims_of<Y>(), "kiln[T-05] a reduction over two tiles needs equal shapes");
  static_assert(Axis < from.rank && Axis >= -from.rank, "kiln[T-11] reduce: no such axis");
  constexpr bool returns = detail::combines_pairs<tile<detail::element_of<X>>, tile<detail::element_of<Y>>, F>();
  static_assert(returns, "kiln[T-12] a combine of pairs must return pair_of(first, second) with the tiles' element types");
  if constexpr (returns) {
    auto v = detail::read(x, at);
    auto w = detail::read(y, at);
    recorder& r = *v.recorder_;
    int body = detail::record_combine2<detail::element_of<X>, detail::element_of<Y>>(r, combine, at);
    using A = typename detail::tile_from<detail::element_of<X>, detail::reduced<from, Axis, Keep>()>::type;
    using B = typename detail::tile_from<detail::element_of<Y>, detail::reduced<from, Axis, Keep>()>::type;
    int n = r.push(op::reduce, detail::type_of<A>(r), {v.node_, w.node_}, {static_cast<int>(reduce_op::custom), detail::normal_axis(Axis, from.rank), Keep, 0, body}, at);
    return pair_of<A, B>{{&r, r.push(op::result, detail::type_of<A>(r), {n}, {0}, at)}, {&r, r.push(op::result, detail::type_of<B>(r), {n}, {1}, at)}};
  }
}

namespace detail {
template <reduce_op O, int Axis, bool Keep, class X>
constexpr auto arg_reduce(X const& x, site at) {
  constexpr extents from = dims_of<X>();
  auto v = read(x, at);
  return shape_op<typename tile_from<i32, without_axis(from, normal_axis(Axis, from.rank), Keep)>::type>(
      op::arg_reduce, v, {static_cast<int>(O), normal_axis(Axis, from.rank), Keep}, at);
}
} // namespace detail
/// i32 index of the largest element along `Axis`; the first among equals. A NaN never wins; all NaN gives 0.
template <int Axis = -1, bool Keep = false, tile_like X>
constexpr auto argmax(X const& x, site at = {}) {
  static_assert(detail::dims_of<X>().rank >= 1 && Axis < detail::dims_of<X>().rank && Axis >= -detail::dims_of<X>().rank, "kiln[T-11] argmax: no such axis");
  static_assert(is_arithmetic(dtype_of<detail::element_of<X>>), "kiln[T-06] argmax needs integer or floating elements");
  return detail::arg_reduce<reduce_op::max, Axis, Keep>(x, at);
}
/// i32 index of the smallest element along `Axis`; the first among equals. A NaN never wins; all NaN gives 0.
template <int Axis = -1, bool Keep = false, tile_like X>
constexpr auto argmin(X const& x, site at = {}) {
  static_assert(detail::dims_of<X>().rank >= 1 && Axis < detail::dims_of<X>().rank && Axis >= -detail::dims_of<X>().rank, "kiln[T-11] argmin: no such axis");
  static_assert(is_arithmetic(dtype_of<detail::element_of<X>>), "kiln[T-06] argmin needs integer or floating elements");
  return detail::arg_reduce<reduce_op::min, Axis, Keep>(x, at);
}

struct scan_options {
  bool reverse = false; ///< from the last element to the first
};
/// Inclusive scan along `Axis`: element i combines elements 0..i. `scan<max, 1>(x)`; Op as in reduce.
template <auto Op, int Axis = -1, tile_like X>
constexpr auto scan(X const& x, scan_options o = {}, site at = {}) {
  constexpr detail::extents from = detail::dims_of<X>();
  static_assert(from.rank >= 1 && Axis < from.rank && Axis >= -from.rank, "kiln[T-11] scan: no such axis");
  static_assert(detail::reduction_accepts(Op.combine, dtype_of<detail::element_of<X>>),
                "kiln[T-06] this scan does not accept the element type: any and all take b1, bit_xor integers, the others numbers");
  auto v = detail::read(x, at);
  return detail::shape_op<decltype(v)>(op::scan, v, {static_cast<int>(Op.combine), detail::normal_axis(Axis, from.rank), o.reverse, -1}, at);
}
/// Inclusive scan with a lambda of two scalars, which must be associative but need not commute: the left operand is what
/// comes earlier in the scan. `scan<1>(x, [](auto a, auto b) { return a * b; }, {.reverse = true})`.
template <int Axis, tile_like X, class F>
  requires(!tile_like<F> && !std::same_as<F, scan_options>)
constexpr auto scan(X const& x, F const& combine, scan_options o = {}, site at = {}) {
  constexpr detail::extents from = detail::dims_of<X>();
  static_assert(Axis < from.rank && Axis >= -from.rank, "kiln[T-11] scan: no such axis");
  using Element = tile<detail::element_of<X>>;
  constexpr bool returns = std::same_as<decltype(combine(std::declval<Element>(), std::declval<Element>())), Element>;
  static_assert(returns, "kiln[T-12] a combine must return a scalar of the tile's element type; cast<T>(...) the result");
  if constexpr (returns) {
    auto v = detail::read(x, at);
    int body = detail::record_combine<detail::element_of<X>>(*v.recorder_, combine, at);
    return detail::shape_op<decltype(v)>(op::scan, v, {static_cast<int>(reduce_op::custom), detail::normal_axis(Axis, from.rank), o.reverse, body}, at);
  }
}
/// The same over two tiles of one shape: the lambda takes (a0, a1, b0, b1) and returns `pair_of(c0, c1)`.
template <int Axis, tile_like X, tile_like Y, class F>
constexpr auto scan(X const& x, Y const& y, F const& combine, scan_options o = {}, site at = {}) {
  constexpr detail::extents from = detail::dims_of<X>();
  static_assert(from == detail::dims_of<Y>(), "kiln[T-05] a scan over two tiles needs equal shapes");
  static_assert(Axis < from.rank && Axis >= -from.rank, "kiln[T-11] scan: no such axis");
  constexpr bool returns = detail::combines_pairs<tile<detail::element_of<X>>, tile<detail::element_of<Y>>, F>();
  static_assert(returns, "kiln[T-12] a combine of pairs must return pair_of(first, second) with the tiles' element types");
  if constexpr (returns) {
    auto v = detail::read(x, at);
    auto w = detail::read(y, at);
    using A = decltype(v);
    using B = decltype(w);
    recorder& r = *v.recorder_;
    int body = detail::record_combine2<detail::element_of<X>, detail::element_of<Y>>(r, combine, at);
    int n = r.push(op::scan, detail::type_of<A>(r), {v.node_, w.node_}, {static_cast<int>(reduce_op::custom), detail::normal_axis(Axis, from.rank), o.reverse, body}, at);
    return pair_of<A, B>{{&r, r.push(op::result, detail::type_of<A>(r), {n}, {0}, at)}, {&r, r.push(op::result, detail::type_of<B>(r), {n}, {1}, at)}};
  }
}
/// Cumulative sum along `Axis`.
template <int Axis = -1, tile_like X>
constexpr auto cumsum(X const& x, scan_options o = {}, site at = {}) {
  static_assert(detail::dims_of<X>().rank >= 1 && Axis < detail::dims_of<X>().rank && Axis >= -detail::dims_of<X>().rank, "kiln[T-11] cumsum: no such axis");
  static_assert(is_arithmetic(dtype_of<detail::element_of<X>>), "kiln[T-06] cumsum needs integer or floating elements");
  return scan<sum, Axis>(x, o, at);
}

/// Picks along `Axis`: out[c] = src[c with c[Axis] := idx[c]]. idx: integer tile of src's rank; its other extents are at
/// most src's. An index out of range is undefined on a device and an error in the checker.
template <int Axis, tile_like S, tile_like I>
constexpr auto gather(S const& src, I const& idx, site at = {}) {
  constexpr detail::extents s = detail::dims_of<S>(), i = detail::dims_of<I>();
  static_assert(is_int(dtype_of<detail::element_of<I>>), "kiln[T-07] gather needs integer indices; cast<i32>(...) them");
  static_assert(s.rank == i.rank && s.rank >= 1, "kiln[T-05] gather needs source and indices of one rank");
  static_assert(Axis < s.rank && Axis >= -s.rank, "kiln[T-11] gather: no such axis");
  constexpr bool beside = [&] {
    for (int d = 0; d < s.rank && d < i.rank; ++d)
      if (d != detail::normal_axis(Axis, s.rank) && i.extent[d] > s.extent[d]) return false;
    return true;
  }();
  static_assert(beside, "kiln[T-05] gather: beside the gathered axis the indices' extents must not exceed the source's");
  auto v = detail::read(src, at);
  auto x = detail::read(idx, at);
  recorder& r = *v.recorder_;
  using R = typename detail::tile_from<detail::element_of<S>, i>::type;
  return R{&r, r.push(op::gather, detail::type_of<R>(r), {v.node_, x.node_}, {detail::normal_axis(Axis, s.rank)}, at)};
}

} // namespace kiln
