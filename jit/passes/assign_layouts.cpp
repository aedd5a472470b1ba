// The layout choices of assign_layouts.hpp.
#include "assign_layouts.hpp"

#include "matrix_unit.hpp"

#include <algorithm>
#include <bit>
#include <kiln/layout/blocked.hpp>
#include <kiln/layout/cute_text.hpp>
#include <kiln/layout/text.hpp>
#include <kiln/layout/ownership.hpp>
#include <kiln/layout/shape_ops.hpp>
#include <map>
#include <optional>
#include <string>

namespace kiln::jit {

namespace {

using enum layout_dim;

int log2_of(int n) { return std::countr_zero(static_cast<unsigned>(n)); }
int log2_bytes(dtype t) { return std::countr_zero(static_cast<std::uint64_t>(bytes_of(t))); }

std::vector<std::int64_t> extents_of(shape const& s) { return {s.extent, s.extent + s.rank}; }

/// Cheap enough to be done again in another layout.
bool is_cheap(graph_view const& g, int i) {
  switch (g[i].code) {
  case op::constant:
  case op::unset:
  case op::iota:
  case op::broadcast:
  case op::neg:
  case op::bit_not:
  case op::abs:
  case op::floor:
  case op::ceil:
  case op::round:
  case op::isnan:
  case op::bitcast:
  case op::add:
  case op::sub:
  case op::mul:
  case op::bit_and:
  case op::bit_or:
  case op::bit_xor:
  case op::shl:
  case op::shr:
  case op::min:
  case op::max:
  case op::eq:
  case op::ne:
  case op::lt:
  case op::le:
  case op::gt:
  case op::ge:
  case op::fma:
  case op::where:
  case op::ptr_add:
  case op::multiple_of:
  case op::max_contiguous: return true;
  case op::cast: return !is_f8(g[i].type) && !is_f8(g[g.operand(i, 0)].type);
  case op::reshape: return reshape_is_free(g.shape_of(g.operand(i, 0)), g.shape_of(i));
  case op::trans: return true;
  case op::div:
  case op::rem: { // by a constant it is a multiplication
    int y = g.operand(i, 1);
    while (g[y].code == op::broadcast) y = g.operand(y, 0);
    return is_int(g[i].type) && g[y].code == op::constant;
  }
  default: return false;
  }
}

bool is_tile(graph_view const& g, int i) {
  return g[i].shape != 0 && (g[i].kind == node_kind::value || g[i].kind == node_kind::pointer);
}

bool is_access(op o) {
  return o == op::load || o == op::store || o == op::atomic_rmw || o == op::atomic_cas || o == op::async_load ||
         o == op::prefetch;
}

struct chooser {
  graph_view const& g;
  graph_facts const& facts;
  cta_shape cta;
  layout_plan plan{};
  std::vector<std::optional<linear_layout>> known{};
  std::vector<access_shape> access{};
  std::vector<std::vector<int>> users{};
  std::map<std::pair<int, int>, int>
      vector_of{};              // (shape, fastest axis) -> log2 elements, the most that an access can use
  std::map<int, int> axis_of{}; // shape -> fastest axis of its first access with runs

  linear_layout blocked(int shape_index, int fastest, int vector) {
    kiln::shape const& sh = g.shapes[static_cast<std::size_t>(shape_index)];
    std::vector<int> order;
    if (sh.rank) order.push_back(fastest);
    for (int d = sh.rank - 1; d >= 0; --d)
      if (d != fastest) order.push_back(d);
    auto const e = extents_of(sh);
    return normal_form(default_blocked_layout(e, {.element_bits = 8,
                                                  .num_warps = cta.num_warps,
                                                  .warp_size = cta.warp_size,
                                                  .order = order,
                                                  .max_vector_bytes = 1 << vector}),
                       cta);
  }
  /// Where nothing decides: as the accesses of tiles of this shape like it.
  linear_layout preferred(int shape_index) {
    kiln::shape const& sh = g.shapes[static_cast<std::size_t>(shape_index)];
    auto const at = axis_of.find(shape_index);
    int const fastest = at != axis_of.end() ? at->second : std::max(0, sh.rank - 1);
    auto const v = vector_of.find({shape_index, fastest});
    return blocked(shape_index, fastest, v != vector_of.end() ? v->second : 2);
  }

  void study_accesses() {
    access.resize(static_cast<std::size_t>(g.size()));
    for (int i = 0; i < g.size(); ++i) {
      if (!is_access(g[i].code)) continue;
      access_shape const a = access[static_cast<std::size_t>(i)] = shape_of_access(g, facts, i);
      int const address = g.operand(i, 0), shape_index = g[address].shape;
      bool const element_wise = one_by_one(i);
      int const v = element_wise ? 0 : a.vector(log2_bytes(g[address].type));
      int& most = vector_of[{shape_index, a.axis}];
      most = std::max(most, v);
      if (a.contiguity > 0) axis_of.try_emplace(shape_index, a.axis);
    }
  }
  linear_layout for_access(int i) {
    int const shape_index = g[g.operand(i, 0)].shape;
    if (shape_index == 0) return scalar_layout(cta);
    access_shape const& a = access[static_cast<std::size_t>(i)];
    return blocked(shape_index, a.axis, one_by_one(i) ? 0 : vector_of[{shape_index, a.axis}]);
  }
  bool one_by_one(int i) const {
    return g[i].code == op::atomic_cas || (g[i].code == op::atomic_rmw && !adds_in_vectors(g, i, cta));
  }

  // -- what a load's value is for
  // -------------------------------------------------------------------------------------------

  /// A layout of `i`'s value that its users would read without moving data; the nearest user that cares decides.
  std::optional<linear_layout> wish(int i, int depth = 0) {
    if (depth > 12) return {};
    for (int u : users[static_cast<std::size_t>(i)]) {
      op const code = g[u].code;
      if (code == op::require_layout) {
        std::string why;
        return named_layout(register_layout_of(g, u), g.shape_of(u), cta, why);
      }
      if (code == op::scan) return scan_layout(g.shape_of(i), static_cast<int>(g.attribute(u, 1)), cta);
      if (code == op::sort) return scan_layout(g.shape_of(i), static_cast<int>(g.attribute(u, 0)), cta);
      if (is_access(code)) {
        if (g.operand(u, 0) != i && code != op::store) continue;
        return for_access(u);
      }
      if (!is_tile(g, u)) continue;
      bool const moves = code == op::trans || code == op::broadcast ||
                         (code == op::reshape && reshape_is_free(g.shape_of(i), g.shape_of(u)));
      if (!moves && !(has(code, trait::elementwise) && g[u].shape == g[i].shape)) continue;
      auto const l = wish(u, depth + 1);
      if (l) return moves ? operand_layout(g, u, *l, cta) : *l;
    }
    return {};
  }
  /// The store of a value's transposition: the axis of `i` along which it writes, and the elements that it can take.
  std::optional<std::pair<int, int>> transposed_store(int i, int depth = 0) {
    if (depth > 12 || g.shape_of(i).rank != 2) return {};
    for (int u : users[static_cast<std::size_t>(i)]) {
      std::optional<std::pair<int, int>> r;
      if (g[u].code == op::store && g.operand(u, 1) == i) {
        access_shape const& a = access[static_cast<std::size_t>(u)];
        r = {a.axis, a.vector(log2_bytes(g[g.operand(u, 0)].type))};
      } else if (!is_tile(g, u)) {
        continue;
      } else if (g[u].code == op::trans) {
        r = transposed_store(u, depth + 1);
        if (r) r->first = 1 - r->first;
      } else if (has(g[u].code, trait::elementwise) && g[u].shape == g[i].shape) {
        r = transposed_store(u, depth + 1);
      }
      if (r) return r;
    }
    return {};
  }
  /// The same seen from a store: the load behind its value.
  std::optional<std::pair<int, int>> transposed_load(int i, int depth = 0) {
    if (depth > 12 || i < 0 || g.shape_of(i).rank != 2) return {};
    if (g[i].code == op::load) {
      access_shape const& a = access[static_cast<std::size_t>(i)];
      return std::pair{a.axis, a.vector(log2_bytes(g[i].type))};
    }
    if (g[i].code == op::trans) {
      auto r = transposed_load(g.operand(i, 0), depth + 1);
      if (r) r->first = 1 - r->first;
      return r;
    }
    if (has(g[i].code, trait::elementwise))
      for (int o : g.operands(i))
        if (o >= 0 && is_tile(g, o) && g[o].shape == g[i].shape)
          if (auto r = transposed_load(o, depth + 1)) return r;
    return {};
  }
  /// Both sides of a transposition move vectors when each thread has a square of elements.
  std::optional<linear_layout> square(int i, std::optional<std::pair<int, int>> other) {
    access_shape const& a = access[static_cast<std::size_t>(i)];
    shape const& s = g.shape_of(g.operand(i, 0));
    int const v = a.vector(log2_bytes(g[g.operand(i, 0)].type));
    if (!other || other->first == a.axis || v == 0 || other->second == 0) return {};
    int const spare = space_of(s).total() - log2_of(cta.threads());
    if (spare < v + other->second) return {};
    return square_layout(s, a.axis, v, other->first, other->second, cta);
  }

  /// A const argument may be the memory that another one writes (calls in place), unless the kernel is no_alias; but not
  /// through elements of another type.
  bool reads_constant(int i) const {
    int const root = memory_root(g, g.operand(i, 0));
    if (root < 0 || !g.params[static_cast<std::size_t>(root)].is_const) return false;
    if (g.attrs.no_alias) return true;
    for (node const& n : g.nodes) {
      bool const writes = n.code == op::store || n.code == op::atomic_rmw || n.code == op::atomic_cas || n.code == op::async_store_bulk;
      if (writes && g[g.operand(static_cast<int>(&n - g.nodes.data()), 0)].type == g[i].type) return false;
    }
    return true;
  }
  linear_layout for_load(int i) {
    linear_layout const best = for_access(i);
    if (g[i].code != op::load || g[i].shape == 0) return best;
    if (auto const l = square(i, transposed_store(i))) return *l;
    auto const l = wish(i);
    if (!l || *l == best || g.attribute(i, 2) != 0) return best;
    // Copies are read at different times: only of what this kernel does not write.
    if (!owners(*l).unique() && !reads_constant(i)) return best;
    // Few elements are read by all that want them; many only if that is as good for memory.
    if (g.shape_of(i).elements() <= cta.threads()) return *l;
    int const elem = log2_bytes(g[i].type);
    auto const [own, all] = reach(*l, access[static_cast<std::size_t>(i)], elem);
    auto const [own_best, all_best] = reach(best, access[static_cast<std::size_t>(i)], elem);
    return own >= own_best && all >= all_best && l->in.bits(reg) <= best.in.bits(reg) ? *l : best;
  }

  /// Consecutive bytes that one warp touches together, and by one thread: how good a layout is for an access.
  std::pair<int, int> reach(linear_layout const& l, access_shape const& a, int elem) {
    f2_solver thread, warp;
    for (f2_word c : l.columns({reg})) thread.add(c), warp.add(c);
    for (f2_word c : l.columns({lane})) warp.add(c);
    int own = 0, all = 0;
    int const limit = std::min({l.out.bits(axis_dim(a.axis)), a.contiguity, 5});
    while (own < limit && thread.contains(l.out.put(axis_dim(a.axis), f2_unit(own)))) ++own;
    while (all < limit && warp.contains(l.out.put(axis_dim(a.axis), f2_unit(all)))) ++all;
    return {std::min(own + elem, 4), std::min(all + elem, 6)};
  }
  /// A value is stored from where it is unless that would waste bandwidth.
  linear_layout for_store(int i) {
    linear_layout const best = for_access(i);
    if (g[i].code == op::store && g[g.operand(i, 0)].shape != 0)
      if (auto const l = square(i, transposed_load(g.operand(i, 1)))) return *l;
    int const v = g.operand(i, 1);
    if (g[i].code != op::store || placeless(v) || !known[static_cast<std::size_t>(v)]) return best;
    linear_layout const& have = *known[static_cast<std::size_t>(v)];
    int const elem = log2_bytes(g[g.operand(i, 0)].type);
    access_shape const& a = access[static_cast<std::size_t>(i)];
    auto const [own, all] = reach(have, a, elem);
    auto const [own_best, all_best] = reach(best, a, elem);
    return all >= std::min(all_best, 5) && own + 1 >= own_best ? have : best;
  }

  bool placeless(int i) const { return plan.placeless[static_cast<std::size_t>(i)]; }

  void find_placeless() {
    plan.placeless.assign(static_cast<std::size_t>(g.size()), false);
    for (int i = 0; i < g.size(); ++i) {
      if (!is_tile(g, i) || !is_cheap(g, i)) continue;
      bool all = true;
      for (int o : g.operands(i)) all &= o < 0 || !is_tile(g, o) || placeless(o);
      // A broadcast is placeless whatever it repeats: its source is smaller than what would have to move otherwise.
      plan.placeless[static_cast<std::size_t>(i)] = all || g[i].code == op::broadcast;
    }
  }

  std::optional<linear_layout> of_operand(int i) {
    if (i < 0 || !is_tile(g, i) || placeless(i)) return {};
    return known[static_cast<std::size_t>(i)];
  }
  bool waits_for_operand(int i) {
    for (int o : g.operands(i))
      if (o >= 0 && is_tile(g, o) && !placeless(o) && known[static_cast<std::size_t>(o)]) return false;
    for (int o : g.operands(i))
      if (o >= 0 && is_tile(g, o) && !placeless(o)) return true;
    return false;
  }

  std::optional<linear_layout> choose(int i, bool force) {
    op const code = g[i].code;
    shape const& sh = g.shape_of(i);
    if (code == op::store || code == op::atomic_rmw || code == op::atomic_cas || code == op::load ||
        code == op::async_load || code == op::prefetch)
      return code == op::store ? for_store(i) : for_load(i);
    int const first = g.operand(i, 0);
    switch (code) {
    case op::var: return known[static_cast<std::size_t>(i)];
    case op::var_get: return known[static_cast<std::size_t>(first)];
    case op::reshape:
      if (auto l = of_operand(first); l && reshape_is_free(g.shape_of(first), sh)) return result_layout(g, i, *l, cta);
      else if (l || force) return preferred(g[i].shape);
      return {};
    case op::trans:
      if (auto l = of_operand(first)) return result_layout(g, i, *l, cta);
      break;
    case op::join: {
      auto l = of_operand(first);
      if (!l) l = of_operand(g.operand(i, 1));
      if (!l && !force) return {};
      return normal_form(join_layout(l ? *l : preferred(g[first].shape), axis_dim(sh.rank - 1)), cta);
    }
    case op::split: {
      auto const l = of_operand(first);
      if (!l && !force && !placeless(first)) return {};
      layout_dim const last = axis_dim(sh.rank);
      if (l && split_register(*l, last) >= 0) return without_register_copies(normal_form(slice_layout(*l, last), cta));
      return preferred(g[i].shape);
    }
    case op::reduce:
    case op::arg_reduce: {
      int const axis = static_cast<int>(g.attribute(i, 1));
      auto l = of_operand(first);
      for (int k = 1; !l && k < g[i].operand_count; ++k) l = of_operand(g.operand(i, k));
      if (!l && !force && !placeless(first)) return {};
      return reduced_layout(l ? *l : preferred(g[first].shape), g.shape_of(first), axis, sh, cta);
    }
    case op::scan: return scan_layout(sh, static_cast<int>(g.attribute(i, 1)), cta);
    case op::sort: return scan_layout(sh, static_cast<int>(g.attribute(i, 0)), cta);
    case op::histogram:
    case op::topk: return preferred(g[i].shape);
    case op::result: return known[static_cast<std::size_t>(first)];
    case op::gather:
    case op::local_gather: { // the indices decide: the source may have another shape
      int const index = g.operand(i, 1);
      if (auto l = of_operand(index)) return l;
      if (is_tile(g, index) && !placeless(index) && !force) return {};
      return preferred(g[i].shape);
    }
    case op::dot:
      if (auto const p = matrix_product_of(g, facts, i, cta)) return matrix_sums(*p, cta);
      return product_layout(sh, cta);
    case op::local_load: return preferred(g[i].shape);
    case op::local_store:
    case op::local_scatter:
    case op::remote_store:
    case op::async_remote_store:
      if (auto l = of_operand(g.operand(i, 1))) return l;
      if (!force && !placeless(g.operand(i, 1))) return {};
      return preferred(g[g.operand(i, 1)].shape);
    case op::device_assert:
    case op::device_print: return {};
    default: break;
    }
    // Element-wise, and what is left: the first operand that has a place.
    for (int o : g.operands(i))
      if (auto l = of_operand(o)) return l;
    if (waits_for_operand(i) && !force) return {};
    return preferred(g[i].shape);
  }

  bool needs(int i) const {
    node const& n = g[i];
    if (n.code == op::local_store || n.code == op::local_scatter || n.code == op::remote_store || n.code == op::async_remote_store || is_access(n.code)) return true;
    if (n.code == op::var) return n.shape != 0;
    return is_tile(g, i) && !placeless(i);
  }

  layout_plan run() {
    users.resize(static_cast<std::size_t>(g.size()));
    for (int i = 0; i < g.size(); ++i)
      for (int o : g.operands(i))
        if (o >= 0) users[static_cast<std::size_t>(o)].push_back(i);
    study_accesses();
    find_placeless();
    known.resize(static_cast<std::size_t>(g.size()));
    for (int i = 0; i < g.size(); ++i) {
      if (g[i].code != op::require_layout) continue;
      std::string why;
      auto const l = named_layout(register_layout_of(g, i), g.shape_of(i), cta, why);
      if (!l || g.attribute(i, 0) == 0) continue; // of other threads: refused where it is lowered; a wish: see `wish`
      known[static_cast<std::size_t>(i)] = l;
      // What is only read for it is read in it.
      int const from = g.operand(i, 0);
      if ((g[from].code == op::local_load || g[from].code == op::load) && users[static_cast<std::size_t>(from)].size() == 1) known[static_cast<std::size_t>(from)] = l;
    }
    // Layouts flow forwards; a var gets that of the first placed value it is given, wherever that stands. When nothing
    // moves any more, the first open value is decided.
    for (;;) {
      bool changed = false;
      int open = -1;
      for (int i = 0; i < g.size(); ++i) {
        if (g[i].code == op::var || g[i].code == op::var_set) {
          int const cell = g[i].code == op::var ? i : g.operand(i, 0),
                    value = g.operand(i, g[i].code == op::var ? 0 : 1);
          if (auto& c = known[static_cast<std::size_t>(cell)]; !c && needs(cell))
            if (auto l = of_operand(value)) c = l, changed = true;
        }
        if (!needs(i) || known[static_cast<std::size_t>(i)]) continue;
        if (auto l = choose(i, false)) known[static_cast<std::size_t>(i)] = l, changed = true;
        else if (open < 0) open = i;
      }
      if (open < 0) break;
      if (changed) continue;
      if (g[open].code == op::var || g[open].code == op::var_get) {
        int const cell = g[open].code == op::var ? open : g.operand(open, 0);
        known[static_cast<std::size_t>(cell)] = preferred(g[cell].shape);
      } else {
        known[static_cast<std::size_t>(open)] = choose(open, true);
      }
    }
    // Stores are decided once their values are: a value may have got its place after the first look.
    for (int i = 0; i < g.size(); ++i)
      if (g[i].code == op::store) known[static_cast<std::size_t>(i)] = for_store(i);
    plan.layout.assign(static_cast<std::size_t>(g.size()), scalar_layout(cta));
    for (int i = 0; i < g.size(); ++i)
      if (auto const& l = known[static_cast<std::size_t>(i)]) plan.layout[static_cast<std::size_t>(i)] = *l;
    return std::move(plan);
  }
};

} // namespace

std::string layout_text(linear_layout const& l, shape const& s) {
  bool units = !is_padded(std::span<std::int64_t const>(extents_of(s)));
  for (f2_word c : l.columns()) units &= (c & (c - 1)) == 0;
  if (!units) return kiln::to_string(l);
  auto bits_of_field = [&](std::initializer_list<layout_dim> fields) {
    std::vector<int> r;
    for (layout_dim d : fields)
      for (int i = 0; i < l.in.bits(d); ++i) r.push_back(l.basis(d, i) ? std::countr_zero(l.basis(d, i)) : -1);
    return r;
  };
  // Lanes and warps are modes of their own even where they continue each other, as an author writes them.
  layout_writer shape_part, stride_part, value_shape, value_stride;
  auto const lanes = bits_of_field({lane}), warps = bits_of_field({warp}), values = bits_of_field({reg});
  shape_part << "((";
  stride_part << "((";
  kiln::detail::put_bits(shape_part, stride_part, lanes.data(), static_cast<int>(lanes.size()));
  if (!warps.empty()) {
    shape_part << ",";
    stride_part << ",";
    kiln::detail::put_bits(shape_part, stride_part, warps.data(), static_cast<int>(warps.size()));
  }
  shape_part << "),";
  stride_part << "),";
  kiln::detail::put_bits(shape_part, stride_part, values.data(), static_cast<int>(values.size()));
  return shape_part.text + "):" + stride_part.text + ")";
}

register_layout register_layout_of(graph_view const& g, int node) {
  int const first = g[node].code == op::require_layout ? 1 : 0;
  return {g.attribute(node, first), g.attribute(node, first + 1)};
}

std::optional<linear_layout> named_layout(register_layout const& r, shape const& s, cta_shape cta, std::string& why) {
  bit_space const tile = space_of(s);
  if (1 << r.thread_bits() != cta.threads()) {
    why = "kiln[R-LY07] layout addresses " + std::to_string(1 << r.thread_bits()) + " threads, the CTA has " + std::to_string(cta.threads()) + " (" +
          std::to_string(cta.num_warps) + " warps of " + std::to_string(cta.warp_size) + ")";
    return {};
  }
  int const lanes = log2_of(cta.warp_size);
  linear_layout l = zero_map({{reg, static_cast<std::uint8_t>(r.value_bits())},
                              {lane, static_cast<std::uint8_t>(lanes)},
                              {warp, static_cast<std::uint8_t>(r.thread_bits() - lanes)}},
                             tile);
  auto column = [&](std::int64_t list, int i) -> f2_word {
    int const b = register_layout::bit(list, i);
    return b < 0 ? 0 : f2_unit(b); // packed words are row-major numbers where extents are powers of two
  };
  for (int i = 0; i < r.value_bits(); ++i) l.col[static_cast<std::size_t>(i)] = column(r.values, i);
  for (int i = 0; i < r.thread_bits(); ++i) l.col[static_cast<std::size_t>(r.value_bits() + i)] = column(r.threads, i);
  if (!l.surjective() || is_padded(std::span<std::int64_t const>(extents_of(s)))) {
    why = "kiln[R-LY07] layout does not reach all " + std::to_string(s.elements()) + " elements of the tile";
    return {};
  }
  return normal_form(l, cta);
}

bit_space space_of(shape const& s) {
  auto const e = extents_of(s);
  return tile_space(std::span<std::int64_t const>(e));
}

linear_layout normal_form(linear_layout const& l, cta_shape cta) {
  bit_space out;
  for (int i = 7; i >= 0; --i)
    if (l.out.has(axis_dim(i))) out = out.with(axis_dim(i), l.out.bits(axis_dim(i)));
  bit_space const in{{reg, static_cast<std::uint8_t>(l.in.bits(reg))},
                     {lane, static_cast<std::uint8_t>(log2_of(cta.warp_size))},
                     {warp, static_cast<std::uint8_t>(log2_of(cta.num_warps))}};
  return sublayout(l, in, out);
}

linear_layout without_register_copies(linear_layout const& l, std::vector<int>* kept) {
  // Only what repeats a register is dropped; what a lane holds too stays, since reading it there would be a shuffle.
  f2_solver seen;
  std::vector<int> bits;
  for (int i = 0; i < l.in.bits(reg); ++i)
    if (seen.add(l.basis(reg, i))) bits.push_back(i);
  linear_layout r = zero_map(l.in.with(reg, static_cast<int>(bits.size())), l.out);
  for (std::size_t i = 0; i < bits.size(); ++i) r.col[i] = l.basis(reg, bits[i]);
  for (layout_dim d : {lane, warp})
    for (int i = 0; i < l.in.bits(d); ++i) r.col[static_cast<std::size_t>(r.in.shift(d) + i)] = l.basis(d, i);
  if (kept) {
    kept->clear();
    for (int n = 0; n < 1 << bits.size(); ++n) {
      int old = 0;
      for (std::size_t i = 0; i < bits.size(); ++i)
        if (n >> i & 1) old |= 1 << bits[i];
      kept->push_back(old);
    }
  }
  return r;
}

bool reshape_is_free(shape const& from, shape const& to) {
  auto strip = [](shape const& s) {
    std::vector<int> e;
    for (int i = 0; i < s.rank; ++i)
      if (s.extent[i] != 1) e.push_back(s.extent[i]);
    return e;
  };
  auto const a = strip(from), b = strip(to);
  if (a == b) return true;
  for (auto const* e : {&a, &b})
    for (std::size_t i = 1; i < e->size(); ++i)
      if (!std::has_single_bit(static_cast<unsigned>((*e)[i]))) return false;
  return true;
}

linear_layout result_layout(graph_view const& g, int node, linear_layout const& operand, cta_shape cta) {
  shape const& to = g.shape_of(node);
  if (g[node].code == op::trans) {
    std::vector<int> order;
    for (int d = 0; d < to.rank; ++d) order.push_back(static_cast<int>(g.attribute(node, d)));
    return normal_form(permute_layout(operand, order), cta);
  }
  return reshape_layout(operand, space_of(to));
}

linear_layout operand_layout(graph_view const& g, int node, linear_layout const& result, cta_shape cta) {
  shape const &from = g.shape_of(g.operand(node, 0)), &to = g.shape_of(node);
  bit_space const space = space_of(from);
  switch (g[node].code) {
  case op::trans: {
    std::vector<int> order(static_cast<std::size_t>(to.rank));
    for (int d = 0; d < to.rank; ++d) order[static_cast<std::size_t>(g.attribute(node, d))] = d;
    return normal_form(permute_layout(result, order), cta);
  }
  case op::broadcast: { // the axes of extent 1 lose their bits, the others keep them under their own names
    linear_layout r = zero_map(result.in, space);
    for (int i = 0; i < result.in.total(); ++i)
      for (int d = 0; d < from.rank; ++d)
        if (from.extent[d] != 1)
          r.col[static_cast<std::size_t>(i)] |= space.put(
              axis_dim(d), result.out.get(result.col[static_cast<std::size_t>(i)], axis_dim(d + to.rank - from.rank)));
    return without_register_copies(r);
  }
  default: return reshape_layout(result, space);
  }
}

linear_layout reduced_layout(linear_layout const& l, shape const& from, int axis, shape const& to, cta_shape cta) {
  if (axis < 0) {
    linear_layout r = scalar_layout(cta);
    r.out = space_of(to);
    return r;
  }
  linear_layout r = to.rank == from.rank ? zero_axis(l, axis_dim(axis)) : remove_axis(l, axis);
  return without_register_copies(normal_form(r, cta));
}

linear_layout scalar_layout(cta_shape cta) {
  return zero_map({{reg, 0},
                   {lane, static_cast<std::uint8_t>(log2_of(cta.warp_size))},
                   {warp, static_cast<std::uint8_t>(log2_of(cta.num_warps))}},
                  {});
}

linear_layout scan_layout(shape const& s, int axis, cta_shape cta) {
  bit_space const tile = space_of(s);
  std::vector<f2_word> own, other; // bits of the axis and of the others, low to high
  for (int i = 0; i < tile.bits(axis_dim(axis)); ++i) own.push_back(tile.put(axis_dim(axis), f2_unit(i)));
  for (int d = s.rank - 1; d >= 0; --d)
    for (int i = 0; d != axis && i < tile.bits(axis_dim(d)); ++i) other.push_back(tile.put(axis_dim(d), f2_unit(i)));
  int const lanes = log2_of(cta.warp_size), warps = log2_of(cta.num_warps), total = tile.total();
  auto take = [](std::vector<f2_word>& from, bool low) {
    f2_word const w = low ? from.front() : from.back();
    from.erase(low ? from.begin() : from.end() - 1);
    return w;
  };
  std::vector<f2_word> in_lanes, in_warps, regs;
  int const vector = std::max(0, std::min({2, static_cast<int>(own.size()), total - lanes - warps}));
  for (int i = 0; i < vector; ++i) regs.push_back(take(own, true));
  while (static_cast<int>(in_lanes.size()) < lanes && !own.empty()) in_lanes.push_back(take(own, true));
  while (static_cast<int>(in_lanes.size()) < lanes && !other.empty()) in_lanes.push_back(take(other, true));
  while (static_cast<int>(in_warps.size()) < warps && !other.empty()) in_warps.push_back(take(other, true));
  std::vector<f2_word> top;
  while (static_cast<int>(in_warps.size() + top.size()) < warps && !own.empty()) top.push_back(take(own, false));
  in_warps.insert(in_warps.end(), top.rbegin(), top.rend());
  regs.insert(regs.end(), own.begin(), own.end());
  regs.insert(regs.end(), other.begin(), other.end());
  linear_layout r = zero_map({{reg, static_cast<std::uint8_t>(regs.size())},
                              {lane, static_cast<std::uint8_t>(lanes)},
                              {warp, static_cast<std::uint8_t>(warps)}},
                             tile);
  for (std::size_t i = 0; i < regs.size(); ++i) r.col[i] = regs[i];
  for (std::size_t i = 0; i < in_lanes.size(); ++i) r.col[static_cast<std::size_t>(r.in.shift(lane)) + i] = in_lanes[i];
  for (std::size_t i = 0; i < in_warps.size(); ++i) r.col[static_cast<std::size_t>(r.in.shift(warp)) + i] = in_warps[i];
  return r;
}

linear_layout square_layout(shape const& s, int fastest, int v, int second, int w, cta_shape cta) {
  bit_space const tile = space_of(s);
  int const lanes = log2_of(cta.warp_size), warps = log2_of(cta.num_warps), total = tile.total();
  std::vector<f2_word> regs, rest;
  auto const give = [&](int axis, int low) {
    for (int i = 0; i < tile.bits(axis_dim(axis)); ++i)
      (i < low ? regs : rest).push_back(tile.put(axis_dim(axis), f2_unit(i)));
  };
  give(fastest, v), give(second, w);
  for (int d = s.rank - 1; d >= 0; --d)
    if (d != fastest && d != second) give(d, 0);
  linear_layout r = zero_map({{reg, static_cast<std::uint8_t>(std::max(static_cast<int>(regs.size()), total - lanes - warps))},
                              {lane, static_cast<std::uint8_t>(lanes)},
                              {warp, static_cast<std::uint8_t>(warps)}},
                             tile);
  for (std::size_t i = 0; i < regs.size(); ++i) r.col[i] = regs[i];
  std::size_t n = 0, more = regs.size();
  for (int i = 0; i < lanes + warps && n < rest.size(); ++i) r.col[static_cast<std::size_t>(r.in.bits(reg) + i)] = rest[n++];
  while (n < rest.size()) r.col[more++] = rest[n++];
  return r;
}

bool adds_in_vectors(graph_view const& g, int node, cta_shape cta) {
  if (!cta.vector_adds || g[node].code != op::atomic_rmw || g[node].shape == 0) return false;
  dtype const t = g[node].type;
  if (static_cast<atomic_op>(g.attribute(node, 0)) != atomic_op::add ||
      static_cast<memory_order>(g.attribute(node, 1)) != memory_order::relaxed ||
      (t != dtype::f32 && t != dtype::f16 && t != dtype::bf16))
    return false;
  for (int i = node + 1; i < g.size(); ++i)
    for (int o : g.operands(i))
      if (o == node) return false;
  return true;
}

linear_layout product_layout(shape const& s, cta_shape cta) {
  bit_space const tile = space_of(s);
  int const m = tile.bits(d0), n = tile.bits(d1), lanes = log2_of(cta.warp_size), warps = log2_of(cta.num_warps);
  int const spare = std::max(0, m + n - lanes - warps);
  int const rn = std::min({2, n, spare}), rm = std::min({2, m, spare - rn});
  int const ln = std::min(n - rn, (lanes + 1) / 2), lm = std::min(m - rm, lanes - ln);
  int const more = std::min(n - rn - ln, lanes - ln - lm); // where rows are few, columns fill the warp
  int const wm = std::min(m - rm - lm, warps), wn = std::min(n - rn - ln - more, warps - wm);
  blocked_spec const b{.elems = {rm, rn}, .lanes = {lm, ln + more}, .warps = {wm, wn}};
  return normal_form(blocked_layout(b, tile), cta);
}

layout_plan assign_layouts(graph_view const& g, graph_facts const& facts, cta_shape cta) {
  if (cta.num_warps < 1 || !std::has_single_bit(static_cast<unsigned>(cta.num_warps)))
    throw std::invalid_argument("num_warps = " + std::to_string(cta.num_warps) +
                                " is not a power of two; use 1, 2, 4, 8, 16 or 32");
  if (cta.threads() > 1024)
    throw std::invalid_argument(std::to_string(cta.num_warps) + " warps of " + std::to_string(cta.warp_size) +
                                " lanes are more than the 1024 threads of a CTA; use num_warps = " +
                                std::to_string(1024 / cta.warp_size) + " or less");
  return chooser{g, facts, cta}.run();
}

} // namespace kiln::jit
