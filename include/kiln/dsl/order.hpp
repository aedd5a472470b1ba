// Counting and ordering: histograms of tiles, sorting and the best k along an axis.
#pragma once
#include <kiln/dsl/shape.hpp>

namespace kiln {

namespace detail {
constexpr extents with_extent(extents e, int axis, int n) {
  e.extent[axis] = n;
  return e;
}
template <class X, int Axis>
constexpr bool has_axis() {
  return Axis < dims_of<X>().rank && Axis >= -dims_of<X>().rank;
}
} // namespace detail

/// How many elements of an integer tile are 0, 1, .. Bins-1: an i32 tile of Bins counts. Others are not counted.
///
/// The counts of the whole launch: `atomic_add(out + k.arange<256>(), histogram<256>(x))`. Counting is local to the CTA and
/// costs the same whatever the values are.
template <int Bins, tile_like X>
constexpr auto histogram(X const& x, site at = {}) {
  static_assert(Bins >= 1, "kiln[T-02] histogram needs at least one bin");
  static_assert(is_int(dtype_of<detail::element_of<X>>), "kiln[T-07] histogram counts integers; cast<i32>(...) first");
  static_assert(detail::dims_of<X>().rank >= 1, "kiln[T-11] histogram needs a tile");
  return detail::shape_op<tile<i32, Bins>>(op::histogram, detail::read(x, at), {}, at);
}
/// The same of the elements where `mask` (b1, of x's shape) is true.
template <int Bins, tile_like X, tile_like M>
constexpr auto histogram(X const& x, M const& mask, site at = {}) {
  static_assert(Bins >= 1, "kiln[T-02] histogram needs at least one bin");
  static_assert(is_int(dtype_of<detail::element_of<X>>), "kiln[T-07] histogram counts integers; cast<i32>(...) first");
  static_assert(detail::dims_of<X>().rank >= 1, "kiln[T-11] histogram needs a tile");
  static_assert(std::same_as<detail::element_of<M>, bool>, "kiln[T-03] histogram needs a b1 mask; compare first");
  static_assert(detail::dims_of<M>() == detail::dims_of<X>(), "kiln[T-05] histogram needs a mask of the values' shape");
  auto v = detail::read(x, at);
  auto m = detail::read(mask, at);
  recorder& r = *v.recorder_;
  using R = tile<i32, Bins>;
  return R{&r, r.push(op::histogram, detail::type_of<R>(r), {v.node_, m.node_}, {}, at)};
}

struct sort_options {
  bool descending = false;
};
/// The elements along `Axis` in ascending (descending) order. NaN is last either way; -0 counts as +0 and becomes it.
template <int Axis = -1, tile_like X>
constexpr auto sort(X const& x, sort_options o = {}, site at = {}) {
  static_assert(detail::has_axis<X, Axis>(), "kiln[T-11] sort: no such axis");
  static_assert(is_arithmetic(dtype_of<detail::element_of<X>>), "kiln[T-06] sort needs integer or floating elements; cast<T>(...) first");
  auto v = detail::read(x, at);
  return detail::shape_op<decltype(v)>(op::sort, v, {detail::normal_axis(Axis, detail::dims_of<X>().rank), o.descending}, at);
}

struct topk_options {
  bool largest = true;
};
/// The K largest (least) elements along `Axis`, the best first, and their indices: `auto [best, where] = topk<8>(x)`, tiles with
/// K elements along the axis, the indices i32. Of equal elements the one with the smaller index comes first, NaN last. All of
/// them (K the axis' extent) in order: a stable sort with indices.
template <int K, int Axis = -1, tile_like X>
constexpr auto topk(X const& x, topk_options o = {}, site at = {}) {
  constexpr detail::extents from = detail::dims_of<X>();
  constexpr bool axis_ok = detail::has_axis<X, Axis>();
  static_assert(axis_ok, "kiln[T-11] topk: no such axis");
  static_assert(is_arithmetic(dtype_of<detail::element_of<X>>), "kiln[T-06] topk needs integer or floating elements; cast<T>(...) first");
  constexpr int axis = axis_ok ? detail::normal_axis(Axis, from.rank) : 0;
  constexpr bool count_ok = axis_ok && K >= 1 && K <= from.extent[axis];
  static_assert(!axis_ok || count_ok, "kiln[T-10] topk: more elements than the axis has, or none");
  constexpr detail::extents to = detail::with_extent(from, axis, count_ok ? K : 1);
  auto v = detail::read(x, at);
  recorder& r = *v.recorder_;
  using A = typename detail::tile_from<detail::element_of<X>, to>::type;
  using B = typename detail::tile_from<i32, to>::type;
  int n = r.push(op::topk, detail::type_of<A>(r), {v.node_}, {axis, o.largest}, at);
  return pair_of<A, B>{{&r, r.push(op::result, detail::type_of<A>(r), {n}, {0}, at)}, {&r, r.push(op::result, detail::type_of<B>(r), {n}, {1}, at)}};
}

} // namespace kiln
