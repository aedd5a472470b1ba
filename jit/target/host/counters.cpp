// Recognises atomic additions to a few counters: idx in a known small range, nobody asks for old values.
#include "plan.hpp"

#include <algorithm>
#include <optional>

namespace kiln::jit::host {

namespace {

struct range {
  std::int64_t low, high;
};

range of_type(dtype t) {
  const int bits = bits_of(t);
  if (bits >= 64) return {INT64_MIN, INT64_MAX};
  if (is_signed_int(t)) return {-(std::int64_t{1} << (bits - 1)), (std::int64_t{1} << (bits - 1)) - 1};
  return {0, (std::int64_t{1} << bits) - 1};
}

// The values that an integer node can have, as far as min, max, masks, remainders and types tell. u64 values count
// as any.
range range_of(graph_view const& g, int n, int depth = 8) {
  const node& d = g[n];
  if (!is_int(d.type)) return is_bool(d.type) ? range{0, 1} : range{INT64_MIN, INT64_MAX};
  const range all = of_type(d.type);
  if (depth == 0 || (bits_of(d.type) == 64 && !is_signed_int(d.type))) return all;
  auto operand = [&](int i) { return range_of(g, g.operand(n, i), depth - 1); };
  auto within = [](range x, range y) { return x.low >= y.low && x.high <= y.high; };
  switch (d.code) {
  case op::constant: {
    const std::int64_t k = g.attribute(n, 0);
    return within({k, k}, all) ? range{k, k} : all;
  }
  case op::broadcast:
  case op::reshape:
  case op::trans: return operand(0);
  case op::cast: {
    const dtype from = g[g.operand(n, 0)].type;
    const range x = operand(0);
    return (is_int(from) || is_bool(from)) && within(x, all) ? x : all;
  }
  case op::min: {
    const range x = operand(0), y = operand(1);
    return {std::min(x.low, y.low), std::min(x.high, y.high)};
  }
  case op::max: {
    const range x = operand(0), y = operand(1);
    return {std::max(x.low, y.low), std::max(x.high, y.high)};
  }
  case op::bit_and:
    for (int i = 0; i < 2; ++i)
      if (const range x = operand(i); x.low >= 0) return {0, x.high};
    return all;
  case op::rem: {
    const range x = operand(0), y = operand(1);
    if (y.low <= 0 || y.low != y.high) return all; // by zero it is the dividend
    return {x.low >= 0 ? 0 : 1 - y.high, y.high - 1};
  }
  case op::where: {
    const range x = range_of(g, g.operand(n, 1), depth - 1), y = range_of(g, g.operand(n, 2), depth - 1);
    return {std::min(x.low, y.low), std::max(x.high, y.high)};
  }
  default: return all;
  }
}

} // namespace

private_counters private_counters_of(graph_view const& g, int n) {
  const node& d = g[n];
  if (d.code != op::atomic_rmw || static_cast<atomic_op>(g.attribute(n, 0)) != atomic_op::add) return {};
  const int address = g.operand(n, 0);
  if (!is_int(g[address].type) || g.shape_of(address).rank == 0 || g[address].code != op::ptr_add) return {};
  for (int i = n + 1; i < g.size(); ++i)
    if (std::ranges::any_of(g.operands(i), [&](int x) { return x == n; })) return {};
  private_counters c;
  c.base = g.operand(address, 0);
  while (g[c.base].code == op::broadcast) c.base = g.operand(c.base, 0);
  c.index = g.operand(address, 1);
  if (g.shape_of(c.base).rank != 0 || !(g.shape_of(c.index) == g.shape_of(address))) return {};
  const range r = range_of(g, c.index);
  std::int64_t last = 0;
  if (__builtin_sub_overflow(r.high, r.low, &last) || last < 0) return {};
  // Fewer than elements: setting them up and adding them must not cost more than it spares.
  if (last >= std::min<std::int64_t>(g.shape_of(address).elements() / 2, 4096)) return {};
  c.low = r.low;
  c.count = last + 1;
  return c;
}

} // namespace kiln::jit::host
