// What the planner asks about nodes, and where the slices of the arena lie.
#include "plan.hpp"

#include <algorithm>

namespace kiln::jit::host {

int lane_axis_of(shape const& s) {
  for (int i = s.rank - 1; i >= 0; --i)
    if (s.extent[i] > 1) return i;
  return s.rank - 1;
}

bool is_squeeze(shape const& from, shape const& to) {
  int i = 0, j = 0;
  for (;;) {
    while (i < from.rank && from.extent[i] == 1) ++i;
    while (j < to.rank && to.extent[j] == 1) ++j;
    if (i == from.rank || j == to.rank) return i == from.rank && j == to.rank;
    if (from.extent[i++] != to.extent[j++]) return false;
  }
}

int compute_bits(dtype t) { return is_bool(t) ? 8 : is_float(t) ? std::max(32, bits_of(t)) : bits_of(t); }

bool same_expression(graph_view const& g, int a, int b) {
  if (a == b) return true;
  if (a < 0 || b < 0) return false;
  node const &x = g[a], &y = g[b];
  if (x.code != y.code || x.type != y.type || x.kind != y.kind || x.operand_count != y.operand_count) return false;
  if (!has(x.code, trait::pure) || x.code == op::result || x.code == op::combine_arg) return false;
  if (!(g.shape_of(a) == g.shape_of(b))) return false;
  if (!std::ranges::equal(g.attributes_of(a), g.attributes_of(b))) return false;
  for (int i = 0; i < x.operand_count; ++i)
    if (!same_expression(g, g.operand(a, i), g.operand(b, i))) return false;
  return true;
}

std::int64_t dot_scratch_bytes(graph_view const& g, int n) {
  const shape &a = g.shape_of(g.operand(n, 0)), &b = g.shape_of(g.operand(n, 1));
  const std::int64_t size = bytes_of(g[n].type);
  return (a.extent[0] * a_panel_stride(a.extent[1]) * size + 63) / 64 * 64 +
         std::int64_t{b.extent[0]} * b.extent[1] * size;
}

std::int64_t plan::shared_scratch(std::int64_t bytes) {
  arena_bytes = std::max(arena_bytes, scratch_at + (bytes + 127) / 64 * 64);
  return scratch_at;
}

// Their results are always stored.
bool brings_own_loops(graph_view const& g, int n) {
  switch (g[n].code) {
  case op::scan:
  case op::join:
  case op::dot:
  case op::histogram:
  case op::sort:
  case op::topk:
  case op::atomic_rmw:
  case op::atomic_cas:
  case op::local_scatter:
  case op::device_print: return true;
  case op::reduce: return g.attribute(n, 0) == static_cast<int>(reduce_op::custom);
  default: return false;
  }
}

int cost_of(op o, dtype t) {
  switch (o) {
  case op::exp:
  case op::exp2:
  case op::log:
  case op::log2: return 14;
  case op::sin:
  case op::cos:
  case op::tanh:
  case op::erf: return 25;
  case op::philox: return 60;
  case op::rsqrt: return 8;
  case op::sqrt: return 5;
  case op::div:
  case op::rem: return is_int(t) ? 30 : 4;
  case op::fma: return 1;
  case op::cast: return 2;
  default: return 1;
  }
}

// First fit, the largest first. 64 bytes behind each slice may be read (never used) by wide loads.
void place_slices(graph_view const& g, plan& p) {
  std::vector<int> order(p.slices.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::ranges::sort(order, std::less<>{}, [&](int i) { return std::pair(-p.slices[static_cast<std::size_t>(i)].bytes, i); });
  std::vector<int> placed;
  for (int i : order) {
    slice& s = p.slices[static_cast<std::size_t>(i)];
    const std::int64_t align =
        g[s.node].code == op::alloc
            ? kiln::detail::buffer_alignment(g.buffer(static_cast<int>(g.attribute(s.node, 0))))
            : 64;
    const std::int64_t need = s.bytes + 64;
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (int j : placed) {
      const slice& o = p.slices[static_cast<std::size_t>(j)];
      if (o.last < s.first || s.last < o.first) continue;
      taken.emplace_back(o.offset, o.offset + o.bytes + 64);
    }
    std::ranges::sort(taken);
    std::int64_t where = 0;
    for (const auto& [from, to] : taken) {
      if (where + need <= from) break;
      where = std::max(where, (to + align - 1) / align * align);
    }
    s.offset = where;
    p.arena_bytes = std::max(p.arena_bytes, (where + need + 63) / 64 * 64);
    placed.push_back(i);
  }
}

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

void add_slice(plan& p, int node, int index, dtype t, bool pointers, std::int64_t elements, std::int64_t bytes) {
  if (index == 0) p.slice_of[at(node)] = static_cast<int>(p.slices.size());
  slice s;
  s.node = node;
  s.index = index;
  s.type = t;
  s.pointers = pointers;
  s.elements = elements;
  s.bytes = bytes;
  p.slices.push_back(s);
}

// One for each buffer, var of a tile, and result of a kept node.
void make_slices(graph_view const& g, plan& p) {
  p.slice_of.assign(g.nodes.size(), -1);
  bool combine = false;
  for (int i = 0; i < g.size(); ++i) {
    const node& x = g[i];
    if (x.code == op::combine_begin) combine = true;
    if (x.code == op::combine_end) combine = false;
    if (combine || x.code == op::combine_end) continue;
    if (x.code == op::alloc) {
      const int number = static_cast<int>(g.attribute(i, 0));
      if (g.storage_of(number) != number) continue; // lies in another's slice
      const buffer_info& b = g.buffer(number);
      const std::int64_t lanes = b.where == storage::tmem ? kiln::detail::tensor_lanes : 1;
      add_slice(p, i, 0, b.type, false, g.shapes[at(b.shape)].elements(),
                kiln::detail::storage_bytes(g, number) * lanes + kiln::detail::buffer_alignment(b));
      continue;
    }
    auto add = [&](int index, dtype t, int like) {
      const bool pointers = g[like].kind == node_kind::pointer;
      const std::int64_t e = g.shape_of(index == 0 && x.code == op::var ? like : i).elements();
      add_slice(p, i, index, t, pointers, e, pointers ? e * 8 : bytes_of(t, e));
    };
    if (x.code == op::var) {
      const int v = g.operand(i, 0);
      if (g[v].kind != node_kind::token && is_tile(g, v)) add(0, x.type, v);
    } else if (p.kept[at(i)]) {
      const bool several = (x.code == op::reduce || x.code == op::scan) && x.operand_count > 1;
      if (x.code == op::topk) {
        add(0, x.type, i);
        add(1, dtype::i32, i);
        continue;
      }
      for (int k = 0; k < (several ? x.operand_count : 1); ++k) add(k, several ? g[g.operand(i, k)].type : x.type, i);
    }
  }
}

void touch(plan& p, int node, int step) {
  const int s = p.slice_of[at(node)];
  if (s < 0) return;
  for (std::size_t k = at(s); k < p.slices.size() && p.slices[k].node == node; ++k) {
    slice& x = p.slices[k];
    if (x.first < 0) x.first = step;
    x.first = std::min(x.first, step);
    x.last = std::max(x.last, step);
  }
}

// From the first step that touches a slice to the last; if the two are not in the same loop body, to the end of the
// outermost loop that only one of them is in.
void set_lifetimes(graph_view const& g, plan& p, std::vector<std::vector<int>> const& used) {
  for (slice& s : p.slices) s.first = s.last = -1;
  std::vector<std::pair<int, int>> loops; // begin, end step
  std::vector<int> open;
  for (int k = 0; k < static_cast<int>(p.steps.size()); ++k) {
    const step& s = p.steps[at(k)];
    if (s.what == step::structure) {
      const op o = g[s.index].code;
      if (o == op::for_begin || o == op::while_begin) open.push_back(k);
      if (o == op::for_end || o == op::while_end) {
        loops.emplace_back(open.back(), k);
        open.pop_back();
      }
    }
    if (s.what == step::nest)
      for (int node : used[at(s.index)]) touch(p, node, k);
  }
  for (slice& s : p.slices) {
    if (s.first < 0) s.first = s.last = 0;
    bool grown = true;
    while (grown) {
      grown = false;
      for (const auto& [begin, end] : loops) {
        const bool from_outside = s.first < begin && s.last > begin && s.last < end;
        // A buffer keeps what an earlier pass left in it.
        const bool carried = g[s.node].code == op::alloc && s.first > begin && s.first < end;
        if (from_outside) {
          s.last = end;
          grown = true;
        }
        if (carried && (s.first != begin || s.last < end)) {
          s.first = begin;
          s.last = std::max(s.last, end);
          grown = true;
        }
      }
    }
  }
}

} // namespace

void lay_out_arena(graph_view const& g, plan& p, std::vector<std::vector<int>> const& used) {
  make_slices(g, p);
  set_lifetimes(g, p, used);
  place_slices(g, p);
  // Panels of products, counters of atomics.
  p.scratch_at = p.arena_bytes;
  for (int i = 0; i < g.size(); ++i) {
    if (g[i].code == op::dot) p.shared_scratch(dot_scratch_bytes(g, i));
    if (const std::int64_t few = private_counters_of(g, i).count) p.shared_scratch(bytes_of(g[g.operand(i, 0)].type, few));
    if (const std::int64_t some = order_scratch_bytes(g, i)) p.shared_scratch(some);
  }
}

} // namespace kiln::jit::host
