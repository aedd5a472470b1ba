// Facts about addresses and masks, brought together for one access.
#include "access_shape.hpp"

#include <algorithm>
#include <bit>

namespace kiln::jit {

namespace {

constexpr int endless = 30;

/// log2 of the largest power of two in v.
int power_in(std::int64_t v) {
  return v == 0 ? endless : std::min(endless, std::countr_zero(static_cast<std::uint64_t>(v)));
}
/// Runs that end with the tile do not end: what comes behind is padding, and masked.
int run_in(std::int64_t v, int extent) { return v >= extent ? endless : power_in(v); }

} // namespace

int access_shape::vector(int elem) const {
  return std::max(0, std::min({4 - elem, contiguity, align_bytes - elem, mask_run}));
}

std::optional<std::int64_t> constant_of(graph_facts const& facts, int node) {
  node_facts const& f = facts[node];
  if (!f.has_range || f.range.lo != f.range.hi || !f.range.within(INT64_MIN, INT64_MAX)) return {};
  return static_cast<std::int64_t>(f.range.lo);
}

access_shape shape_of_access(graph_view const& g, graph_facts const& facts, int node) {
  int const address = g.operand(node, 0);
  shape const& s = g.shape_of(address);
  access_shape r;
  if (s.rank == 0) return {0, 0, power_in(facts[address].divisor), endless};
  r.axis = s.rank - 1;
  int longest = 0;
  for (int d = s.rank - 1; d >= 0; --d)
    if (int const c = run_in(facts[address].axis[d].contiguity, s.extent[d]); c > longest && s.extent[d] > 1)
      longest = c, r.axis = d;
  axis_fact const& along = facts[address].axis[r.axis];
  r.contiguity = longest;
  r.align_bytes = power_in(along.divisibility);
  int const extent = s.extent[r.axis];
  if (!std::has_single_bit(static_cast<unsigned>(extent))) r.mask_run = power_in(extent); // padding is masked
  if (g[address].kind == node_kind::region && !facts.inside(address, r.axis)) {
    int const start = power_in(facts[g.operand(address, 1 + r.axis)].divisor);
    r.mask_run = std::min({r.mask_run, start, power_in(facts.extent_of(g.operand(address, 0), r.axis).divisor)});
  }
  int const mask = g.operand(node, g[node].code == op::load || g[node].code == op::prefetch ? 1 : g[node].code == op::atomic_cas ? 3 : 2);
  if (mask >= 0 && g[mask].shape != 0)
    r.mask_run = std::min(r.mask_run, run_in(facts[mask].axis[r.axis].constancy, extent));
  return r;
}

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

} // namespace kiln::jit
