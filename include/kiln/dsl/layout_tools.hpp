// Layouts of registers as an author writes them, and what can be asked of layouts.
//
//   auto L = layout::registers(layout::threads<32, 4>({0, 8}), layout::values<8>({1}));
//   auto y = k.require_layout(x, L);          // 128 threads: all lanes of warp w hold elements 8w .. 8w+7
//   k.assert_same_layout(y + 1.f, L);
//   k.dump_layout(y, "y");
#pragma once
#include <kiln/dsl/context.hpp>
#include <kiln/dsl/layout.hpp>
#include <kiln/layout/cute_text.hpp>

namespace kiln {

namespace detail {
template <class>
struct layout_header {};

/// Modes of a register layout. The first mistake is kept until there is a kernel to report it in.
struct register_modes {
  std::int64_t list = 0;
  std::int32_t bad_extent = 0, bad_stride = -1;
  bool too_many = false;
  bool incomplete = false; ///< of axes that leave something without an element (dsl/matrix_layouts.hpp)
};
constexpr register_modes make_modes(std::int32_t const* extents, std::int32_t const* strides, int count) {
  register_modes m;
  for (int i = 0; i < count; ++i) {
    std::int32_t const e = extents[i], s = strides[i];
    if (e < 1 || (e & (e - 1)) != 0) {
      m.bad_extent = e;
      return m;
    }
    if (s < 0 || (s & (s - 1)) != 0) {
      m.bad_stride = s;
      return m;
    }
    for (int b = 0; (std::int32_t{1} << b) < e; ++b) {
      if (register_layout::count(m.list) == register_layout::most) {
        m.too_many = true;
        return m;
      }
      m.list = register_layout::with_bit(m.list, s == 0 ? -1 : log2_of_power(s) + b);
    }
  }
  return m;
}
} // namespace detail

namespace layout {
/// Modes of the threads, the fastest first: lanes, then warps. Strides are elements of the row-major tile; 0 means copies.
template <int... E>
struct thread_modes {
  detail::register_modes modes;
};
template <int... E>
struct value_modes {
  detail::register_modes modes;
};
template <int... E>
constexpr thread_modes<E...> threads(std::int32_t const (&strides)[sizeof...(E)]) {
  std::int32_t const extents[]{E...};
  return {detail::make_modes(extents, strides, sizeof...(E))};
}
/// Modes of a thread's registers, the fastest first.
template <int... E>
constexpr value_modes<E...> values(std::int32_t const (&strides)[sizeof...(E)]) {
  std::int32_t const extents[]{E...};
  return {detail::make_modes(extents, strides, sizeof...(E))};
}
/// A layout of a tile in registers.
struct register_map {
  detail::register_modes threads, values;
  /// As `.layout` of local_load and alloc_fragment.
  constexpr operator detail::register_pin() const;
};
template <int... T, int... V>
constexpr register_map registers(thread_modes<T...> const& t, value_modes<V...> const& v) {
  return {t.modes, v.modes};
}
/// The sums of mma.sync: blocks of 16 x 8 of an M x N tile, `warps` of them along M (what is left over repeats).
template <int M, int N>
constexpr register_map mma_accumulator(int warps) {
  static_assert(M % 16 == 0 && N % 8 == 0 && (M & (M - 1)) == 0 && (N & (N - 1)) == 0, "kiln[R-LY01] an accumulator of mma.sync has powers of two, at least 16 rows and 8 columns");
  register_map l;
  int const n = detail::log2_of_power(N);
  auto add = [](detail::register_modes& m, int bit) { m.list = register_layout::with_bit(m.list, bit); };
  for (int bit : {1, 2, n, n + 1, n + 2}) add(l.threads, bit);
  int row = 16;
  for (int w = 1; w < warps; w *= 2, row *= 2) add(l.threads, row < M ? n + detail::log2_of_power(row) : -1);
  add(l.values, 0);
  add(l.values, n + 3);
  for (int c = 8; c < N; c *= 2) add(l.values, detail::log2_of_power(c));
  for (; row < M; row *= 2) add(l.values, n + detail::log2_of_power(row));
  return l;
}
} // namespace layout

namespace detail {

template <class Out>
constexpr void put_register_layout(Out& out, register_layout const& l, int lanes = 5) {
  int threads[16]{}, values[16]{};
  int const t = l.thread_bits(), v = l.value_bits();
  for (int i = 0; i < t; ++i) threads[i] = register_layout::bit(l.threads, i);
  for (int i = 0; i < v; ++i) values[i] = register_layout::bit(l.values, i);
  diagnostic strides_text;
  message strides(strides_text);
  int const first = t < lanes ? t : lanes;
  out << "((";
  put_bits(out, strides, threads, first);
  if (t > first) {
    out << ",";
    strides << ",";
    put_bits(out, strides, threads + first, t - first);
  }
  strides << "),";
  out << "),";
  put_bits(out, strides, values, v);
  out << "):((" << strides_text.view() << ")";
}

/// A register layout for a tile of shape s, checked as far as it can be without a target.
constexpr register_layout check_registers(recorder& r, layout::register_map const& l, kiln::shape const& s, site at) {
  register_layout const result{l.threads.list, l.values.list};
  for (register_modes const* m : {&l.threads, &l.values}) {
    if (m->bad_extent != 0) {
      r.fail(at) << "kiln[R-LY05] layout extent " << m->bad_extent << " is not a power of two";
      return result;
    }
    if (m->bad_stride >= 0 || m->bad_stride < -1) {
      r.fail(at) << "kiln[R-LY05] layout stride " << m->bad_stride << " is not 0 or a power of two";
      return result;
    }
    if (m->incomplete) {
      r.fail(at) << "kiln[R-LY07] a layout of axes that does not say which element every lane, warp and register has; give copies a replica, and leave offsets and other axes out";
      return result;
    }
    if (m->too_many) {
      r.fail(at) << "kiln[R-LY05] a layout has at most 2^" << register_layout::most << " threads, and as many registers of each";
      return result;
    }
  }
  int warps = r.attrs.num_warps;
  if (r.task == 1)
    for (int i = r.nodes.size() - 1; i >= 0; --i)
      if (r.nodes[i].code == op::task_begin) {
        warps = static_cast<int>(r.attribute(i, 0));
        break;
      }
  std::int64_t const threads = std::int64_t{1} << result.thread_bits(), has = 32 * static_cast<std::int64_t>(warps);
  if (threads != has && threads != 2 * has) {
    r.fail(at) << "kiln[R-LY07] layout addresses " << threads << " threads, the " << (r.task == 1 ? "task" : "kernel") << " has " << has << " (" << warps << " warps of 32)";
    return result;
  }
  std::int64_t const elements = s.elements();
  std::int64_t reached = 0;
  for (int i = 0; i < result.thread_bits(); ++i)
    if (int const b = register_layout::bit(result.threads, i); b >= 0) reached |= std::int64_t{1} << b;
  for (int i = 0; i < result.value_bits(); ++i)
    if (int const b = register_layout::bit(result.values, i); b >= 0) reached |= std::int64_t{1} << b;
  bool powers = true;
  for (int d = 0; d < s.rank; ++d) powers = powers && (s.extent[d] & (s.extent[d] - 1)) == 0;
  if (!powers || reached + 1 != elements) {
    message m = r.fail(at);
    m << "kiln[R-LY07] layout ";
    put_register_layout(m, result);
    if (!powers)
      m << " of a tile whose extents are not powers of two";
    else if (reached >= elements)
      m << " goes beyond the " << elements << " elements of the tile";
    else
      m << " does not reach all " << elements << " elements of the tile";
  }
  return result;
}

constexpr int pin_registers(recorder& r, int tile, layout::register_map const& l, site at) {
  node const n = r.nodes[tile];
  register_layout const m = check_registers(r, l, r.shapes[n.shape], at);
  return r.push(op::require_layout, {n.type, n.kind, n.shape}, {tile}, {1, m.threads, m.values}, at);
}
/// The layout that was required of a tile, seen through element-wise operations and variables that were given such a tile.
struct known_layout {
  bool known = false;
  register_layout layout{};
};
constexpr known_layout required_layout(recorder const& r, int node, int depth = 0) {
  graph_view const g = r.view();
  if (g[node].code == op::require_layout) return {g.attribute(node, 0) != 0, {g.attribute(node, 1), g.attribute(node, 2)}};
  if (g[node].code == op::release_layout || !has(g[node].code, trait::elementwise) || depth > 16) return {};
  for (int o : g.operands(node))
    if (o >= 0 && g[o].kind == node_kind::value && g[o].shape == g[node].shape)
      if (known_layout const l = required_layout(r, o, depth + 1); l.known) return l;
  return {};
}

constexpr void layouts_differ(recorder& r, register_layout const& x, register_layout const& y, site at) {
  if (x == y) return;
  message m = r.fail(at);
  m << "kiln[R-LY04] layouts differ: the tile is ";
  put_register_layout(m, x);
  m << ", expected ";
  put_register_layout(m, y);
}
/// Two layouts of slots of one shape, as maps.
constexpr bool same_places(slot_layout const& x, slot_layout const& y, std::int64_t elements) {
  if (x == y) return true;
  if (x.linear() && y.linear() && (elements & (elements - 1)) == 0) {
    for (std::int64_t e = 1; e < elements; e *= 2)
      if (x(e) != y(e)) return false;
    return true;
  }
  if (elements > 4096) return false;
  for (std::int64_t e = 1; e < elements; ++e)
    if (x(e) != y(e)) return false;
  return true;
}
constexpr void places_differ(recorder& r, int buffer, slot_layout const& y, site at) {
  buffer_info const& f = r.buffers[buffer];
  kiln::shape const s = r.shapes[f.shape];
  if (same_places(f.layout, y, s.elements())) return;
  message m = r.fail(at);
  m << "kiln[R-LY04] layouts differ: ";
  put_buffer_name(m, r, buffer);
  m << " is ";
  put_slot_layout(m, f.layout, s);
  m << ", expected ";
  put_slot_layout(m, y, s);
}
template <class X>
inline constexpr bool is_local = is_view<X>;
template <class T, int... D>
inline constexpr bool is_local<bufs<T, D...>> = true;

} // namespace detail

constexpr layout::register_map::operator detail::register_pin() const { return {this, &detail::pin_registers}; }

template <class X, class L>
constexpr auto context::record_requirement(X const& x, L const& l, require_layout_options const& o, site at) {
  static_assert(std::same_as<L, layout::register_map>, "kiln[R-LY03] a tile takes a layout of registers: layout::registers(...) or layout::mma_accumulator<M, N>(warps)");
  auto v = detail::read(x, at);
  static_assert(decltype(v)::dims.rank >= 1, "kiln[R-LY03] a scalar lives in every thread; only tiles have a layout");
  recorder& r = *r_;
  node const n = r.nodes[v.node_];
  register_layout const m = detail::check_registers(r, l, r.shapes[n.shape], at);
  return decltype(v){r_, r.push(op::require_layout, {n.type, n.kind, n.shape}, {v.node_}, {o.pin, m.threads, m.values}, at)};
}
template <class X>
constexpr auto context::record_release(X const& x, site at) {
  auto v = detail::read(x, at);
  recorder& r = *r_;
  node const n = r.nodes[v.node_];
  if (!detail::required_layout(r, v.node_).known && n.code != op::require_layout) r.fail(at) << "kiln[R-LY03] release_layout of a tile of which no layout was required; drop it";
  return decltype(v){r_, r.push(op::release_layout, {n.type, n.kind, n.shape}, {v.node_}, {}, at)};
}
template <class X, class Y>
constexpr auto context::record_equality(X const& x, Y const& y, site at) {
  recorder& r = *r_;
  if constexpr (detail::is_local<X>) {
    int const a = r.view().buffer_of(x.node_);
    if constexpr (detail::is_local<Y>) {
      int const b = r.view().buffer_of(y.node_);
      if (r.buffers[a].shape != r.buffers[b].shape)
        r.fail(at) << "kiln[R-LY04] layouts of buffers of different shapes";
      else
        detail::places_differ(r, a, r.buffers[b].layout, at);
    } else {
      static_assert(std::same_as<Y, buffer_layout>, "kiln[R-LY03] a buffer is compared with another one or with a layout of buffers");
      buffer_info const kept = r.buffers[a];
      r.buffers[a].layout = {};
      detail::lay_out(r, a, y, at);
      slot_layout const expected = r.buffers[a].layout;
      r.buffers[a] = kept;
      if (r.error.ok()) detail::places_differ(r, a, expected, at);
    }
  } else {
    int const a = detail::read(x, at).node_;
    detail::known_layout const known = detail::required_layout(r, a);
    if constexpr (std::same_as<Y, layout::register_map>) {
      register_layout const l = detail::check_registers(r, y, r.shapes[r.nodes[a].shape], at);
      if (known.known) detail::layouts_differ(r, known.layout, l, at);
      r.push(op::assert_layout, {}, {a}, {l.threads, l.values}, at);
    } else {
      static_assert(detail::read_t<X>::dims == detail::read_t<Y>::dims, "kiln[T-05] layouts of tiles of different shapes");
      int const b = detail::read(y, at).node_;
      if (detail::known_layout const other = detail::required_layout(r, b); known.known && other.known) detail::layouts_differ(r, known.layout, other.layout, at);
      r.push(op::assert_layout, {}, {a, b}, {0, 0}, at);
    }
  }
}
template <class X>
constexpr auto context::record_dump(X const& x, char const* name, site at) {
  int node = -1;
  if constexpr (detail::is_local<X>)
    node = x.node_;
  else
    node = detail::read(x, at).node_;
  r_->push(op::dump_layout, {}, {node}, {r_->add_string(name)}, at);
}
template <class X>
constexpr auto context::annotate(X const& x, buffer_layout const& l, site at) {
  static_assert(detail::is_local<X>, "kiln[R-LY03] annotate_layout takes a local buffer; require_layout is for tiles");
  recorder& r = *r_;
  int const b = r.view().buffer_of(x.node_);
  buffer_info const& f = r.buffers[b];
  auto refuse = [&] {
    auto m = r.fail(at);
    m << "kiln[R-LY03] annotate_layout of ";
    detail::put_buffer_name(m, r, b);
    return m;
  };
  if (!f.layout.plain()) {
    refuse() << ", which has a layout already";
    return;
  }
  if (f.role != buffer_role::own) {
    refuse() << ", which lies in storage that others share; give it .layout where it is allocated";
    return;
  }
  for (int i = f.node + 1; i < r.nodes.size(); ++i)
    for (int j = 0; j < r.nodes[i].operand_count; ++j) {
      int const o = r.operand(i, j);
      if (o < 0 || r.nodes[o].kind != node_kind::view || r.view().buffer_of(o) != b || r.nodes[i].code == op::dump_layout) continue;
      refuse() << " after its first use at line " << r.nodes[i].line << "; say it before";
      return;
    }
  detail::lay_out(r, b, l, at);
}

/// The layout of a local buffer as `k.dump_layout` shows it; empty when no buffer has that name. `layout_of(kernel.graph(), "as")`.
constexpr diagnostic layout_of(graph_view const& g, std::string_view name) {
  diagnostic d;
  for (int b = 0; b < static_cast<int>(g.buffers.size()); ++b) {
    if (std::string_view(g.string(g.buffer(b).name)) != name || g.buffer(b).name < 0) continue;
    detail::message m(d);
    detail::put_slot_layout(m, g.buffer(b).layout, g.shapes.items[g.buffer(b).shape]);
  }
  return d;
}

} // namespace kiln
