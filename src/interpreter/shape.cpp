// Bodies of operations that move elements between shapes.
#include "src/interpreter/bodies.hpp"

namespace kiln::interpreter {

namespace {

/// out[e] = x[from(e, coordinates of e)].
template <class From>
void pick(agent& a, int i, From from) {
  data const& x = a.in(i, 0);
  data& d = a.fresh(i);
  if (a.at(i).kind == node_kind::pointer) {
    d.type = x.type;
    d.origin = x.origin;
  }
  if (!x.wrapped.empty()) d.wrapped.resize(d.bits.size());
  odometer c(a.shape_of(i));
  for (std::size_t e = 0; e < d.bits.size(); ++e, c.next()) {
    std::size_t const source = from(e, c);
    d.bits[e] = x.bits[source];
    if (!x.wrapped.empty()) d.wrapped[e] = x.wrapped[source];
  }
}

} // namespace

void body<op::broadcast>::run(agent& a, int i) {
  shape const& from = a.shape_of(a.graph.operand(i, 0));
  shape const& to = a.shape_of(i);
  strides const step(from);
  pick(a, i, [&](std::size_t, odometer const& c) {
    i64 source = 0;
    for (int d = 0; d < from.rank; ++d)
      if (from.extent[d] != 1) source += c[to.rank - from.rank + d] * step.of[d];
    return static_cast<std::size_t>(source);
  });
}

void body<op::reshape>::run(agent& a, int i) {
  pick(a, i, [](std::size_t e, odometer const&) { return e; });
}

void body<op::trans>::run(agent& a, int i) {
  shape const& from = a.shape_of(a.graph.operand(i, 0));
  strides const step(from);
  auto const axes = a.graph.attributes_of(i);
  pick(a, i, [&](std::size_t, odometer const& c) {
    i64 source = 0;
    for (int d = 0; d < from.rank; ++d) source += c[d] * step.of[axes[static_cast<std::size_t>(d)]];
    return static_cast<std::size_t>(source);
  });
}

void body<op::join>::run(agent& a, int i) {
  data const &x = a.in(i, 0), &y = a.in(i, 1);
  data& d = a.fresh(i);
  for (std::size_t e = 0; e < d.bits.size(); ++e) d.bits[e] = (e % 2 == 0 ? x : y).bits[e / 2];
}

void body<op::split>::run(agent& a, int i) {
  auto const half = static_cast<std::size_t>(a.graph.attribute(i, 0));
  pick(a, i, [=](std::size_t e, odometer const&) { return 2 * e + half; });
}

void body<op::gather>::run(agent& a, int i) {
  shape const& from = a.shape_of(a.graph.operand(i, 0));
  auto const axis = static_cast<int>(a.graph.attribute(i, 0));
  data const& index = a.in(i, 1);
  strides const step(from);
  pick(a, i, [&](std::size_t e, odometer const& c) {
    i64 k = int_of(index.at(e));
    bool const huge = index.type == dtype::u64 && k < 0;
    if (k < 0 || k >= from.extent[axis]) {
      if (a.news(i, "R-BD11"))
        a.fault(i, "R-BD11", "gather: index ", huge ? "beyond 2^63" : std::to_string(k), " at ",
                agent::coordinates(a.shape_of(i), e), ", valid 0..", from.extent[axis] - 1);
      k = 0;
    }
    i64 source = k * step.of[axis];
    for (int d = 0; d < from.rank; ++d)
      if (d != axis) source += c[d] * step.of[d];
    return static_cast<std::size_t>(source);
  });
}

} // namespace kiln::interpreter
