// Histograms, sorting and the best k along an axis.
#include <kiln/dtype/scalar_ops.hpp>

#include "src/interpreter/bodies.hpp"

#include <algorithm>
#include <numeric>

namespace kiln::interpreter {

void body<op::histogram>::run(agent& a, int i) {
  data const& x = a.in(i, 0);
  data const* mask = a.at(i).operand_count > 1 ? &a.in(i, 1) : nullptr;
  data& d = a.fresh(i);
  std::fill(d.bits.begin(), d.bits.end(), u64{0});
  for (std::size_t e = 0; e < x.bits.size(); ++e) {
    if (mask && !mask->bits[e]) continue;
    scalar const s = x.at(e);
    bool const negative = is_signed_int(s.type) && int_of(s) < 0;
    if (!negative && s.bits < d.bits.size()) ++d.bits[s.bits];
  }
}

namespace {

/// -0 is +0, and there is one NaN.
scalar plain(scalar s) {
  if (is_nan(s)) return nan_of(s.type);
  return is_float(s.type) && !is_true(s) ? scalar{s.type, 0} : s;
}

/// Whether x comes before y; NaN comes last.
bool before(scalar x, scalar y, bool descending) {
  if (is_nan(x)) return false;
  return is_nan(y) || kiln::detail::compare(x, y) == (descending ? 1 : -1);
}

/// Positions along the axis in order, the first of equals first.
std::vector<i64> order_of(data const& x, axis_split const& split, i64 outer, i64 inner, bool descending) {
  std::vector<i64> places(static_cast<std::size_t>(split.length));
  std::iota(places.begin(), places.end(), i64{0});
  std::sort(places.begin(), places.end(), [&](i64 p, i64 q) {
    scalar const s = x.at(split.index(outer, p, inner)), t = x.at(split.index(outer, q, inner));
    return before(s, t, descending) || (!before(t, s, descending) && p < q);
  });
  return places;
}

} // namespace

void body<op::sort>::run(agent& a, int i) {
  data const& x = a.in(i, 0);
  data& d = a.fresh(i);
  axis_split const split(a.shape_of(i), a.graph.attribute(i, 0));
  bool const descending = a.graph.attribute(i, 1) != 0;
  for (i64 outer = 0; outer < split.outer; ++outer)
    for (i64 inner = 0; inner < split.inner; ++inner) {
      std::vector<i64> const places = order_of(x, split, outer, inner, descending);
      for (i64 k = 0; k < split.length; ++k)
        d.bits[split.index(outer, k, inner)] = plain(x.at(split.index(outer, places[static_cast<std::size_t>(k)], inner))).bits;
    }
}

void body<op::topk>::run(agent& a, int i) {
  data const& x = a.in(i, 0);
  data& d = a.fresh(i);
  d.more.resize(1);
  d.more[0].type = dtype::i32;
  d.more[0].bits.resize(d.bits.size());
  axis_split const from(a.shape_of(a.graph.operand(i, 0)), a.graph.attribute(i, 0)), to(a.shape_of(i), a.graph.attribute(i, 0));
  bool const largest = a.graph.attribute(i, 1) != 0;
  for (i64 outer = 0; outer < from.outer; ++outer)
    for (i64 inner = 0; inner < from.inner; ++inner) {
      std::vector<i64> const places = order_of(x, from, outer, inner, largest);
      for (i64 k = 0; k < to.length; ++k) {
        i64 const place = places[static_cast<std::size_t>(k)];
        std::size_t const e = to.index(outer, k, inner);
        d.bits[e] = plain(x.at(from.index(outer, place, inner))).bits;
        d.more[0].bits[e] = scalar_of(static_cast<i32>(place)).bits;
      }
    }
}

} // namespace kiln::interpreter
