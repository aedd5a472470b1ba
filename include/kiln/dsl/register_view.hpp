// What each thread holds of a tile: the tile as threads x registers, and back.
//
//   constexpr auto L = layout::registers(layout::threads<32, 4>({8, 256}), layout::values<8>({1}));   // of 1024 elements
//   auto mine = local<L>(x);              // tile<T, 128, 8>: row t is what thread t holds, registers in order
//   auto pairs = local<L, 4, 2>(x);       // tile<T, 128, 4, 2>, row-major over the same registers
//   auto y = from_local<L, 1024>(mine);   // the tile again, in the layout L
//
// Worked example: with L above, thread t = 32 w + l holds elements 256 w + 8 l .. + 7, so local<L>(x) is reshape<128, 8>(x). On a GPU
// nothing moves: `x` is required to lie so, and a row of the view stays in its thread. A reduction along the registers is a thread's
// own loop.
#pragma once
#include <kiln/dsl/layout_tools.hpp>
#include <kiln/dsl/shape.hpp>

namespace kiln {

namespace detail {

/// The digits of an element's number, as a layout of registers deals them out.
struct register_digits {
  int count = 0;                    ///< digits that are no copies, in the order of (thread, register), the highest first
  int extent[max_rank]{};
  int order[max_rank]{};            ///< of the digit, among the digits of the row-major number
  int axes = 0;                     ///< with the copies
  int with_copies[max_rank]{};      ///< extents; a digit's, or 1 where copies are
  int copies[max_rank]{};           ///< extents; 1, or how many copies
  bool good = true;                 ///< every bit of the number once
  bool twice = false;               ///< some bit by two modes
  bool fits = true;                 ///< no more digits than a tile has axes
};
constexpr register_digits digits_of(layout::register_map const& m, std::int64_t elements) {
  register_digits d;
  if (m.threads.bad_extent != 0 || m.values.bad_extent != 0 || m.threads.bad_stride != -1 || m.values.bad_stride != -1 || m.threads.incomplete || m.values.incomplete ||
      m.threads.too_many || m.values.too_many) {
    d.good = false;
    return d;
  }
  int const values = register_layout::count(m.values.list), total = values + register_layout::count(m.threads.list);
  int lowest[max_rank]{}; // bit of each digit
  std::int64_t seen = 0;
  int last = -2;
  for (int i = total - 1; i >= 0; --i) {
    int const b = i < values ? register_layout::bit(m.values.list, i) : register_layout::bit(m.threads.list, i - values);
    bool const first_register = i == values - 1; // threads are an axis of their own
    if (b >= 0) {
      d.twice = d.twice || (seen >> b & 1) != 0;
      seen |= std::int64_t{1} << b;
    }
    if (d.axes > 0 && !first_register && (b < 0 ? last == -1 : b == last - 1)) {
      (b < 0 ? d.copies : d.with_copies)[d.axes - 1] *= 2;
      if (b >= 0) {
        d.extent[d.count - 1] *= 2;
        lowest[d.count - 1] = b;
      }
    } else if (d.axes == max_rank) {
      d.fits = false;
      return d;
    } else {
      d.with_copies[d.axes] = b < 0 ? 1 : 2;
      d.copies[d.axes++] = b < 0 ? 2 : 1;
      if (b >= 0) {
        d.extent[d.count] = 2;
        lowest[d.count++] = b;
      }
    }
    last = b;
  }
  d.good = !d.twice && seen + 1 == elements;
  for (int i = 0; i < d.count; ++i)
    for (int j = 0; j < d.count; ++j) d.order[i] += lowest[j] > lowest[i];
  return d;
}
constexpr bool has_copies(register_digits const& d) {
  for (int i = 0; i < d.axes; ++i)
    if (d.copies[i] != 1) return true;
  return false;
}
constexpr void refuse_twice(recorder& r, register_digits const& d, site at) {
  if (d.twice) r.fail(at) << "kiln[R-LY05] a layout with two registers for one element, by strides that are not 0, has no local view";
}
template <layout::register_map L>
inline constexpr int threads_of = 1 << register_layout::count(L.threads.list);
template <layout::register_map L>
inline constexpr int registers_of = 1 << register_layout::count(L.values.list);

constexpr int push_shape(recorder& r, op code, int node, int const* extents, int rank, std::initializer_list<std::int64_t> attributes, site at) {
  shape s;
  s.rank = rank;
  for (int i = 0; i < rank; ++i) s.extent[i] = extents[i];
  return r.push(code, {r.nodes[node].type, node_kind::value, r.intern(s)}, {node}, attributes, at);
}
constexpr int push_transposed(recorder& r, int node, int const* extents, int const* axes, int rank, site at) {
  int to[max_rank]{};
  std::int64_t p[max_rank]{};
  bool moved = false;
  for (int i = 0; i < rank; ++i) {
    to[i] = extents[axes[i]];
    p[i] = axes[i];
    moved = moved || axes[i] != i;
  }
  return moved ? push_shape(r, op::trans, node, to, rank, {p[0], p[1], p[2], p[3], p[4], p[5]}, at) : node;
}

} // namespace detail

/// What the threads hold of a tile in the layout `L`, which is required of it: axis 0 counts the threads, the others, `D...` or one, the
/// registers of a thread in their order. Errors: R-BD08 extents that do not multiply to those registers; R-LY05, R-LY07 as
/// `require_layout`; R-LY01 a layout that deals the elements out in more than 6 digits.
template <layout::register_map L, int... D, tile_like X>
constexpr auto local(X const& x, site at = {}) {
  constexpr int registers = detail::registers_of<L>;
  static_assert(sizeof...(D) == 0 || detail::elements_of<D...> == registers, "kiln[R-BD08] the extents of a local view multiply to the registers that the layout gives a thread");
  auto v = detail::read(x, at);
  using V = decltype(v);
  using T = typename V::element_type;
  using R = std::conditional_t<sizeof...(D) == 0, tile<T, detail::threads_of<L>, registers>, tile<T, detail::threads_of<L>, D...>>;
  constexpr detail::register_digits d = detail::digits_of(L, detail::to_shape(V::dims).elements());
  static_assert(d.fits, "kiln[R-LY01] a layout that deals elements out in more digits than a tile has axes (6) has no local view");
  recorder& r = *v.recorder_;
  node const n = r.nodes[v.node_];
  register_layout const m = detail::check_registers(r, L, r.shapes[n.shape], at);
  int node = r.push(op::require_layout, {n.type, n.kind, n.shape}, {v.node_}, {true, m.threads, m.values}, at);
  if constexpr (d.good && d.fits) {
    int extents[max_rank]{}, axes[max_rank]{};
    for (int i = 0; i < d.count; ++i) {
      extents[d.order[i]] = d.extent[i];
      axes[i] = d.order[i];
    }
    node = detail::push_shape(r, op::reshape, node, extents, d.count, {}, at);
    node = detail::push_transposed(r, node, extents, axes, d.count, at);
    if constexpr (detail::has_copies(d)) {
      int full[max_rank]{};
      for (int i = 0; i < d.axes; ++i) full[i] = d.with_copies[i] * d.copies[i];
      node = detail::push_shape(r, op::reshape, node, d.with_copies, d.axes, {}, at);
      node = detail::push_shape(r, op::broadcast, node, full, d.axes, {}, at);
    }
    return R{&r, r.push(op::reshape, detail::type_of<R>(r), {node}, {}, at)};
  } else {
    detail::refuse_twice(r, d, at);
    return R{&r, r.push(op::constant, detail::type_of<R>(r), {}, {0}, at)};
  }
}

/// The tile of extents `D...` whose threads hold `x`: the inverse of `local`, in the layout `L`. Errors: R-BD08 an x with other threads
/// or registers; R-LY07 a layout with copies (which of them counts?), or that does not fit the tile.
template <layout::register_map L, int... D, tile_like X>
constexpr auto from_local(X const& x, site at = {}) {
  auto v = detail::read(x, at);
  using V = decltype(v);
  using R = tile<typename V::element_type, D...>;
  constexpr detail::extents from = V::dims;
  static_assert(from.rank >= 2 && from.extent[0] == detail::threads_of<L> && detail::to_shape(from).elements() == std::int64_t{detail::threads_of<L>} * detail::registers_of<L>,
                "kiln[R-BD08] from_local takes threads x registers of the layout");
  constexpr detail::register_digits d = detail::digits_of(L, detail::elements_of<D...>);
  static_assert(!detail::has_copies(d), "kiln[R-LY07] from_local takes a layout without copies: of several registers with one element, none is the one");
  static_assert(d.fits, "kiln[R-LY01] a layout that deals elements out in more digits than a tile has axes (6) has no local view");
  recorder& r = *v.recorder_;
  int node = v.node_;
  if constexpr (d.good && d.fits) {
    int axes[max_rank]{};
    for (int i = 0; i < d.count; ++i) axes[d.order[i]] = i;
    node = detail::push_shape(r, op::reshape, node, d.extent, d.count, {}, at);
    node = detail::push_transposed(r, node, d.extent, axes, d.count, at);
    node = r.push(op::reshape, detail::type_of<R>(r), {node}, {}, at);
  } else {
    node = r.push(op::constant, detail::type_of<R>(r), {}, {0}, at);
  }
  result_type const t = detail::type_of<R>(r);
  register_layout const m = detail::check_registers(r, L, r.shapes[t.shape], at);
  detail::refuse_twice(r, d, at);
  return R{&r, r.push(op::require_layout, t, {node}, {true, m.threads, m.values}, at)};
}

} // namespace kiln
