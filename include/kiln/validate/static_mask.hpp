// Masks that no launch decides: whether a b1 tile made of constants and coordinates alone is false somewhere.
#pragma once
#include <kiln/validate/sim_program.hpp>

namespace kiln::detail {

/// Element `at` of node i where constants and coordinates alone give it; `unknown` otherwise. `depth` bounds the work.
constexpr std::int64_t static_element(graph_view const& g, int i, shape const& at, int& left) {
  node const& n = g[i];
  if (n.kind != node_kind::value || !(is_int(n.type) || is_bool(n.type)) || --left < 0) return unknown;
  switch (n.code) {
  case op::constant: return wrap(n.type, g.attribute(i, 0));
  case op::iota: return wrap(n.type, g.attribute(i, 1) + at.extent[g.attribute(i, 0)]);
  case op::broadcast: {
    shape const& from = g.shape_of(g.operand(i, 0));
    shape p;
    p.rank = from.rank;
    for (int d = 0; d < from.rank; ++d) p.extent[d] = from.extent[d] == 1 ? 0 : at.extent[at.rank - from.rank + d];
    return static_element(g, g.operand(i, 0), p, left);
  }
  case op::reshape: {
    shape const &from = g.shape_of(g.operand(i, 0)), &to = g.shape_of(i);
    std::int64_t place = 0;
    for (int d = 0; d < to.rank; ++d) place = place * to.extent[d] + at.extent[d];
    shape p;
    p.rank = from.rank;
    for (int d = from.rank - 1; d >= 0; --d) {
      p.extent[d] = static_cast<int>(place % from.extent[d]);
      place /= from.extent[d];
    }
    return static_element(g, g.operand(i, 0), p, left);
  }
  default: break;
  }
  if (!evaluates(n.code) || n.operand_count > 3) return unknown;
  std::int64_t v[3]{0, 0, 0};
  for (int j = 0; j < n.operand_count; ++j) v[j] = static_element(g, g.operand(i, j), at, left);
  return evaluate(n.code, g[g.operand(i, 0)].type, n.type, v[0], v[1], v[2]);
}

/// Whether a mask is false at a corner of its tile for every launch. Bounds such as `i < 48` are false at one; a mask with
/// holes in the middle only is not found.
constexpr bool surely_masks(graph_view const& g, int mask) {
  shape const& s = g.shape_of(mask);
  for (int corner = 0; corner < 1 << s.rank; ++corner) {
    shape at;
    at.rank = s.rank;
    for (int d = 0; d < s.rank; ++d) at.extent[d] = corner >> d & 1 ? s.extent[d] - 1 : 0;
    int left = 500; // nodes to look at: a value that is used twice is looked at twice
    if (static_element(g, mask, at, left) == 0) return true;
  }
  return false;
}

} // namespace kiln::detail
