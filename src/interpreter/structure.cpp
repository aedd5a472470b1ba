// Bodies of parameters, control flow, vars, combines, constants and indices.
#include "src/interpreter/bodies.hpp"

#include <algorithm>

namespace kiln::interpreter {

namespace {

void fill(agent& a, int i, scalar s) {
  data& d = a.fresh(i);
  std::fill(d.bits.begin(), d.bits.end(), convert(s, d.type).bits);
}

// In __int128: i64 bounds whose distance does not fit 64 bits are legal.
__extension__ typedef __int128 i128;
i128 wide(scalar s) { return is_signed_int(s.type) ? static_cast<i128>(int_of(s)) : static_cast<i128>(s.bits); }

} // namespace

void body<op::param>::run(agent& a, int i) {
  int const p = static_cast<int>(a.graph.attribute(i, 0));
  host_argument const& x = a.run.arguments[static_cast<std::size_t>(p)];
  if (x.kind == node_kind::value) {
    fill(a, i, x.bits);
    return;
  }
  data& d = a.out(i);
  d.type = a.at(i).type;
  d.bits.assign(1, reinterpret_cast<std::uintptr_t>(x.data));
  d.origin = p;
}

void body<op::constant>::run(agent& a, int i) {
  fill(a, i, scalar_from_bits(a.at(i).type, static_cast<u64>(a.graph.attribute(i, 0))));
}

void body<op::unset>::run(agent& a, int i) {
  fill(a, i, scalar_from_bits(a.at(i).type, 0));
  a.out(i).unset = true;
}

void body<op::iota>::run(agent& a, int i) {
  data& d = a.fresh(i);
  int const axis = static_cast<int>(a.graph.attribute(i, 0));
  auto const start = static_cast<u64>(a.graph.attribute(i, 1));
  odometer c(a.shape_of(i));
  for (std::size_t e = 0; e < d.bits.size(); ++e, c.next())
    d.bits[e] = scalar_from_bits(d.type, start + static_cast<u64>(c[axis])).bits;
}

void body<op::program_id>::run(agent& a, int i) {
  i64 const id[]{a.block.id.x, a.block.id.y, a.block.id.z};
  fill(a, i, scalar_of(id[a.graph.attribute(i, 0)]));
}

void body<op::num_programs>::run(agent& a, int i) {
  i64 const extent[]{a.run.grid.x, a.run.grid.y, a.run.grid.z};
  fill(a, i, scalar_of(extent[a.graph.attribute(i, 0)]));
}

// -- loops and branches ------------------------------------------------------------------------------------------------------

void body<op::for_begin>::run(agent& a, int i) {
  int const end = static_cast<int>(a.graph.attribute(i, 0));
  scalar const step_value = a.in(i, 2).at(0);
  i128 const lo = wide(a.in(i, 0).at(0)), hi = wide(a.in(i, 1).at(0)), step = wide(step_value);
  if (step == 0) a.fault(i, "K-06", "the step of this range is 0; the loop runs zero times");
  i128 trips = 0;
  if (step > 0 && lo < hi) trips = (hi - lo + step - 1) / step;
  if (step < 0 && lo > hi) trips = (lo - hi - step - 1) / -step;
  if (trips == 0) {
    a.next = end + 1;
    return;
  }
  data& index = a.fresh(i);
  index.bits[0] = a.in(i, 0).bits[0];
  // An unsigned 64-bit range can have more passes than i64 counts; nobody will see the difference.
  i64 const most = INT64_MAX;
  a.loops.push_back({i, trips > most ? most : static_cast<i64>(trips) - 1, int_of(step_value)});
}

void body<op::for_end>::run(agent& a, int i) {
  int const begin = static_cast<int>(a.graph.attribute(i, 0));
  agent::loop& l = a.loops.back();
  if (l.remaining == 0) {
    a.loops.pop_back();
    return;
  }
  --l.remaining;
  data& index = a.out(begin);
  index.bits[0] = scalar_from_bits(index.type, index.bits[0] + static_cast<u64>(l.step)).bits;
  a.next = begin + 1;
}

void body<op::if_begin>::run(agent& a, int i) {
  if (a.in(i, 0).bits[0] != 0) return;
  auto const otherwise = static_cast<int>(a.graph.attribute(i, 0)), end = static_cast<int>(a.graph.attribute(i, 1));
  a.next = (otherwise >= 0 ? otherwise : end) + 1;
}

void body<op::if_else>::run(agent& a, int i) { // reached from the first branch, which is over
  a.next = static_cast<int>(a.graph.attribute(static_cast<int>(a.graph.attribute(i, 0)), 1)) + 1;
}

void body<op::if_end>::run(agent&, int) {}
void body<op::while_begin>::run(agent&, int) {}

void body<op::while_test>::run(agent& a, int i) {
  if (a.in(i, 0).bits[0] == 0)
    a.next = static_cast<int>(a.graph.attribute(static_cast<int>(a.graph.attribute(i, 0)), 1)) + 1;
}

void body<op::while_end>::run(agent& a, int i) {
  a.next = static_cast<int>(a.graph.attribute(i, 0)) + 1;
  a.yield(); // the condition may be what another CTA makes true
}

void body<op::sync>::run(agent& a, int) { a.yield(); }

// -- vars --------------------------------------------------------------------------------------------------------------------

void body<op::var>::run(agent& a, int i) { a.out(i) = a.in(i, 0); }
void body<op::var_get>::run(agent& a, int i) {
  data const& cell = a.in(i, 0);
  if (cell.unset && a.checking() && a.news(i, "R-HZ15"))
    a.fault(i, "R-HZ15", "the variable of ", a.line_of(a.graph.operand(i, 0)), " is read before its first assignment; give it a value where it is made");
  a.out(i) = cell;
  a.out(i).unset = false;
}
void body<op::var_set>::run(agent& a, int i) { a.out(a.graph.operand(i, 0)) = a.in(i, 1); }

// -- combines: their bodies run inside reduce and scan -------------------------------------------------------------------------

void body<op::combine_begin>::run(agent& a, int i) { a.next = static_cast<int>(a.graph.attribute(i, 0)) + 1; }
void body<op::combine_arg>::run(agent&, int) {} // reduce and scan have put the argument there
void body<op::combine_end>::run(agent&, int) {}

void body<op::result>::run(agent& a, int i) {
  auto const k = static_cast<std::size_t>(a.graph.attribute(i, 0));
  data const& from = a.in(i, 0);
  data const& picked = k == 0 ? from : from.more[k - 1];
  data& d = a.out(i);
  d.type = picked.type;
  d.bits = picked.bits;
  d.wrapped.clear();
}

} // namespace kiln::interpreter
