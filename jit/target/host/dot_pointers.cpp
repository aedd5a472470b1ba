// Tiles of pointers and their masks, written as sums: base + (m0 + i) * stride + (k0 + j), where m0 + i < m and k0 + j < k.
//
// Sums are taken as whole numbers. Where a kernel's own 32-bit offsets would wrap, its addresses would be out of bounds.
#include "dot_match.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace kiln::jit::host {

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

struct linear {
  dot_sum origin, along[2];
};
// By axis of a node: the axis of the tile that it is, or -1 where it has extent 1.
using axes = std::array<int, max_rank>;

class reader {
public:
  reader(graph_view const& view, int loop) : g(view), loop_(loop) {}

  bool pointers(int n, axes const& x, dot_pointers& p, linear& out) const {
    switch (g[n].code) {
    case op::param: p.base = n; return g[n].kind == node_kind::pointer;
    case op::broadcast: return pointers(g.operand(n, 0), before_broadcast(n, x), p, out);
    case op::multiple_of:
    case op::max_contiguous: return pointers(g.operand(n, 0), x, p, out);
    case op::ptr_add: {
      linear offset;
      if (!pointers(g.operand(n, 0), x, p, out) || !integer(g.operand(n, 1), x, offset)) return false;
      add(out, offset, 1);
      return true;
    }
    default: return false;
    }
  }

  bool mask(int n, axes const& x, dot_pointers& p) const {
    switch (g[n].code) {
    case op::constant: return g.attribute(n, 0) != 0;
    case op::broadcast: return mask(g.operand(n, 0), before_broadcast(n, x), p);
    case op::reshape: {
      axes y{};
      return before_squeeze(n, x, y) && mask(g.operand(n, 0), y, p);
    }
    case op::bit_and: return mask(g.operand(n, 0), x, p) && mask(g.operand(n, 1), x, p);
    case op::lt:
    case op::le:
    case op::gt:
    case op::ge: {
      const bool swapped = g[n].code == op::gt || g[n].code == op::ge;
      linear index, bound;
      if (!is_signed_int(g[g.operand(n, 0)].type) || !integer(g.operand(n, swapped), x, index) ||
          !integer(g.operand(n, !swapped), x, bound))
        return false;
      if (!bound.along[0].empty() || !bound.along[1].empty()) return false;
      const int axis = index.along[0].empty();
      if (!index.along[1 - axis].empty() || !is_one(index.along[axis])) return false;
      add(bound.origin, index.origin, -1);
      if (g[n].code == op::le || g[n].code == op::ge) bound.origin.push_back({1, {}});
      p.limits[axis].push_back(std::move(bound.origin));
      return true;
    }
    default: return false;
    }
  }

private:
  static bool is_one(dot_sum const& s) { return s.size() == 1 && s[0].factor == 1 && s[0].scalars.empty(); }
  static void add(dot_sum& to, dot_sum const& from, std::int64_t sign) {
    for (dot_product_of p : from) {
      p.factor *= sign;
      to.push_back(std::move(p));
    }
  }
  static void add(linear& to, linear const& from, std::int64_t sign) {
    add(to.origin, from.origin, sign);
    for (int i = 0; i < 2; ++i) add(to.along[i], from.along[i], sign);
  }
  static bool multiply(dot_sum& s, dot_sum const& by) {
    dot_sum r;
    for (dot_product_of const& x : s)
      for (dot_product_of const& y : by) {
        dot_product_of z = x;
        if (__builtin_mul_overflow(x.factor, y.factor, &z.factor) || z.factor == INT64_MIN) return false;
        z.scalars.insert(z.scalars.end(), y.scalars.begin(), y.scalars.end());
        r.push_back(std::move(z));
      }
    s = std::move(r);
    return s.size() <= 16;
  }

  axes before_broadcast(int n, axes const& x) const {
    const shape &from = g.shape_of(g.operand(n, 0)), &to = g.shape_of(n);
    axes y{};
    for (int i = 0; i < from.rank; ++i) y[at(i)] = from.extent[i] == 1 ? -1 : x[at(i + to.rank - from.rank)];
    return y;
  }
  bool before_squeeze(int n, axes const& x, axes& y) const {
    const shape &from = g.shape_of(g.operand(n, 0)), &to = g.shape_of(n);
    int j = 0;
    for (int i = 0; i < from.rank; ++i) {
      y[at(i)] = -1;
      if (from.extent[i] == 1) continue;
      while (j < to.rank && to.extent[j] == 1) ++j;
      if (j == to.rank || to.extent[j] != from.extent[i]) return false;
      y[at(i)] = x[at(j++)];
    }
    return true;
  }

  bool integer(int n, axes const& x, linear& out) const {
    node const& d = g[n];
    if (!is_signed_int(d.type)) return false;
    auto operand = [&](int i, linear& to) { return integer(g.operand(n, i), x, to); };
    if (d.code == op::constant) {
      const std::int64_t k = g.attribute(n, 0);
      if (k > INT32_MAX || k < INT32_MIN) return false;
      if (k != 0) out.origin.push_back({k, {}});
      return true;
    }
    if (g.shape_of(n).rank == 0) {
      if (!is_index_arithmetic(g, n, loop_)) return false;
      out.origin.push_back({1, {n}});
      return true;
    }
    switch (d.code) {
    case op::iota: {
      const int axis = x[at(static_cast<int>(g.attribute(n, 0)))];
      if (axis >= 0) out.along[axis].push_back({1, {}});
      const std::int64_t first = g.attribute(n, 1);
      if (first > INT32_MAX || first < INT32_MIN) return false;
      if (first != 0) out.origin.push_back({first, {}});
      return true;
    }
    case op::broadcast: return integer(g.operand(n, 0), before_broadcast(n, x), out);
    case op::reshape: {
      axes y{};
      return before_squeeze(n, x, y) && integer(g.operand(n, 0), y, out);
    }
    case op::cast:
      return is_signed_int(g[g.operand(n, 0)].type) && bits_of(d.type) >= bits_of(g[g.operand(n, 0)].type) && operand(0, out);
    case op::multiple_of:
    case op::max_contiguous: return operand(0, out);
    case op::neg: {
      linear v;
      if (!operand(0, v)) return false;
      add(out, v, -1);
      return true;
    }
    case op::add:
    case op::sub: {
      linear v, w;
      if (!operand(0, v) || !operand(1, w)) return false;
      add(out, v, 1);
      add(out, w, d.code == op::add ? 1 : -1);
      return true;
    }
    case op::mul: {
      linear v, w;
      if (!operand(0, v) || !operand(1, w)) return false;
      if (!w.along[0].empty() || !w.along[1].empty()) std::swap(v, w);
      if (!w.along[0].empty() || !w.along[1].empty()) return false;
      if (!multiply(v.origin, w.origin) || !multiply(v.along[0], w.origin) || !multiply(v.along[1], w.origin)) return false;
      add(out, v, 1);
      return true;
    }
    default: return false;
    }
  }

  graph_view const& g;
  int loop_;
};

} // namespace

bool match_dot_pointers(graph_view const& g, int address, int mask, int loop, dot_pointers& out) {
  if (g.shape_of(address).rank != 2) return false;
  const reader r(g, loop);
  const axes x{0, 1};
  linear where;
  if (!r.pointers(address, x, out, where)) return false;
  out.origin = std::move(where.origin);
  for (int i = 0; i < 2; ++i) {
    out.step[i] = std::move(where.along[i]);
    for (dot_product_of const& p : out.step[i])
      for (int n : p.scalars)
        if (loop >= 0 && depends_on(g, n, loop)) return false;
  }
  return mask < 0 || r.mask(mask, x, out);
}

} // namespace kiln::jit::host
