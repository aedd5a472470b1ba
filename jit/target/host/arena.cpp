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

int memory_root(graph_view const& g, int n) {
  for (;;) {
    switch (g[n].code) {
    case op::param: return static_cast<int>(g.attribute(n, 0));
    case op::ptr_add:
    case op::broadcast:
    case op::array_data:
    case op::region:
    case op::multiple_of:
    case op::max_contiguous: n = g.operand(n, 0); break;
    default: return -1;
    }
  }
}

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

} // namespace kiln::jit::host
