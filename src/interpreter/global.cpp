// Bodies of pointer arithmetic, arrays, regions, loads, stores and atomics.
#include <kiln/dtype/scalar_ops.hpp>

#include "src/interpreter/access.hpp"
#include "src/interpreter/elementwise.hpp"

#include <cstring>

namespace kiln::interpreter {

// -- access ------------------------------------------------------------------------------------------------------------------

access::access(agent& a, int i, int j, int mask, char const* what)
    : agent_(a), node_(i), width_(static_cast<int>(bytes_of(a.at(a.graph.operand(i, j)).type))), origin_(a.in(i, j).origin),
      what_(what), shape_(a.shape_of(a.graph.operand(i, j))) {
  data const& target = a.in(i, j);
  auto const n = static_cast<std::size_t>(shape_.elements());
  enabled_.assign(n, 1);
  if (a.at(a.graph.operand(i, j)).kind == node_kind::pointer) {
    addresses_ = target.bits;
    wrapped_ = target.wrapped;
  } else { // a region
    host_argument const& x = a.run.arguments[static_cast<std::size_t>(origin_)];
    addresses_.resize(n);
    if (!target.wrapped.empty()) wrapped_.assign(n, target.wrapped[0]);
    odometer c(shape_);
    for (std::size_t e = 0; e < n; ++e, c.next()) {
      // Unsigned: starts may be anything, and what lies out of bounds is not touched.
      u64 offset = 0;
      for (int d = 0; d < shape_.rank; ++d) {
        u64 const at = static_cast<u64>(target.start[d]) + static_cast<u64>(c[d]);
        if (static_cast<i64>(at) < 0 || static_cast<i64>(at) >= x.extent[d]) enabled_[e] = 0;
        offset += at * static_cast<u64>(x.stride[d]);
      }
      addresses_[e] = target.bits[0] + offset * static_cast<u64>(width_);
    }
  }
  if (data const* m = a.optional(i, mask))
    for (std::size_t e = 0; e < n; ++e) enabled_[e] = enabled_[e] && m->bits[e] != 0;
}

access::access(agent& a, int i, int j, shape const& row, char const* what)
    : agent_(a), node_(i), width_(static_cast<int>(bytes_of(a.at(a.graph.operand(i, j)).type))), origin_(a.in(i, j).origin),
      what_(what), shape_(row) {
  data const& target = a.in(i, j);
  auto const n = static_cast<std::size_t>(row.elements());
  enabled_.assign(n, 1);
  addresses_.resize(n);
  for (std::size_t e = 0; e < n; ++e) addresses_[e] = target.bits[0] + e * static_cast<u64>(width_);
  if (!target.wrapped.empty()) wrapped_.assign(n, target.wrapped[0]);
}

bool access::allowed(std::size_t e) {
  host_argument const& x = agent_.run.arguments[static_cast<std::size_t>(origin_)];
  u64 const first = reinterpret_cast<std::uintptr_t>(x.allocation), at = addresses_[e];
  u64 const bytes = static_cast<u64>(x.bytes), width = static_cast<u64>(width_);
  bool const wrapped = !wrapped_.empty() && wrapped_[e] >= 0;
  if (wrapped && agent_.news(node_, "R-BD10"))
    agent_.fault(node_, "R-BD10", what_, " through ", agent_.parameter(origin_), ": the offset of element ",
                 agent::coordinates(shape_, e), " comes from a ", name_of(agent_.at(wrapped_[e]).type), " ",
                 name_of(agent_.at(wrapped_[e]).code), " at ", agent_.line_of(wrapped_[e]),
                 " that overflowed; compute it in i64");
  if (at < first || bytes < width || at - first > bytes - width) {
    if (!wrapped && agent_.news(node_, "R-BD10"))
      agent_.fault(node_, "R-BD10", what_, " through ", agent_.parameter(origin_), ": element ",
                   agent::coordinates(shape_, e), " of ", width, " B at byte ", static_cast<i64>(at - first),
                   " lies outside the argument's ", bytes, " B");
    return false;
  }
  if (at % width != 0 && agent_.news(node_, "R-BD10"))
    agent_.fault(node_, "R-BD10", what_, " through ", agent_.parameter(origin_), ": element ",
                 agent::coordinates(shape_, e), " of ", width, " B is at address ..", at % 64,
                 " (mod 64), which is misaligned");
  return true;
}

u64 access::read(std::size_t e) const {
  u64 bits = 0;
  std::memcpy(&bits, reinterpret_cast<void const*>(static_cast<std::uintptr_t>(addresses_[e])), static_cast<std::size_t>(width_));
  return bits;
}

void access::write(std::size_t e, u64 bits) const {
  std::memcpy(reinterpret_cast<void*>(static_cast<std::uintptr_t>(addresses_[e])), &bits, static_cast<std::size_t>(width_));
}

// Nothing is fetched, but what is asked for must be there.
void body<op::prefetch>::run(agent& a, int i) {
  access x(a, i, 0, 1, "prefetch");
  for (std::size_t e = 0; a.checking() && e < x.size(); ++e)
    if (x.enabled(e)) x.allowed(e);
}

void access::unordered(std::size_t e, global_event const& before, char const* was) {
  if (!agent_.news(node_, "R-HZ14")) return;
  host_argument const& x = agent_.run.arguments[static_cast<std::size_t>(origin_)];
  u64 const byte = addresses_[e] - reinterpret_cast<std::uintptr_t>(x.allocation);
  lanes const& l = agent_.run.clocks;
  bool const bulk = !l.is_agent(before.lane);
  std::string who, cure;
  if (before.cta != agent_.block.group.number) {
    dims const g = agent_.run.grid;
    who = l.ctas > 1 ? " in cluster " + std::to_string(before.cta)
                     : " in cta " + std::to_string(before.cta % g.x) + "," + std::to_string(before.cta / g.x % g.y) + "," + std::to_string(before.cta / (g.x * g.y));
    cure = "CTAs run in any order: use a launch of its own, or an atomic after the one and before the other";
  } else {
    int const other = bulk ? before.lane - l.globals(0) : before.lane;
    if (other != agent_.id) who = " in " + agent_.block.name_of(other);
    if (bulk) cure = "async_store_wait(0, {.read_only = false}) waits for its writes";
    if (other != agent_.id) cure += std::string(bulk ? "; then" : "") + (bulk ? " arrive" : "arrive") + " at a barrier after it, and wait for that here";
  }
  agent_.fault(node_, "R-HZ14", what_, " through ", agent_.parameter(origin_), ": nothing orders element ", agent::coordinates(shape_, e), " (bytes ", byte, "..",
               byte + static_cast<u64>(width_) - 1, ") after the ", name_of(agent_.at(before.node).code), " of ", agent_.line_of(before.node), who, ", which ", was, " it; ", cure);
}

void access::note_read(std::size_t e) {
  global_shadow& s = agent_.run.global;
  global_shadow::element* const x = s.find(origin_, addresses_[e]);
  if (!x) return;
  if (!s.ordered(agent_, x->write)) unordered(e, x->write, "writes");
  if (s.ordered(agent_, x->read)) x->read = s.stamp(agent_, node_, false);
}

void access::note_write(std::size_t e, u64 bits, bool bulk) {
  global_shadow& s = agent_.run.global;
  global_shadow::element* const x = s.find(origin_, addresses_[e]);
  if (!x) return;
  if (bits != read(e)) { // equal values from several do no harm
    if (!s.ordered(agent_, x->write)) unordered(e, x->write, "writes");
    else if (!s.ordered(agent_, x->read)) unordered(e, x->read, "reads");
  }
  *x = {s.stamp(agent_, node_, bulk), {}};
}

void access::meets(std::size_t e) {
  global_shadow& s = agent_.run.global;
  if (global_shadow::element* const x = s.find(origin_, addresses_[e]); x && !s.ordered(agent_, x->write)) unordered(e, x->write, "writes");
}

// -- addresses ---------------------------------------------------------------------------------------------------------------

void body<op::ptr_add>::run(agent& a, int i) {
  data const &base = a.in(i, 0), &offset = a.in(i, 1);
  data& d = a.fresh(i);
  d.type = base.type;
  d.origin = base.origin;
  auto const width = static_cast<u64>(bytes_of(a.at(i).type));
  for (std::size_t e = 0; e < d.bits.size(); ++e)
    d.bits[e] = base.bits[e] + static_cast<u64>(int_of(offset.at(e))) * width;
  pass_wrapped(d, base);
  pass_wrapped(d, offset);
}

namespace {

host_argument const& array_argument(agent& a, int i) {
  return a.run.arguments[static_cast<std::size_t>(a.in(i, 0).origin)];
}

} // namespace

void body<op::extent>::run(agent& a, int i) {
  a.fresh(i).bits[0] = static_cast<u64>(array_argument(a, i).extent[a.graph.attribute(i, 0)]);
}
void body<op::stride>::run(agent& a, int i) {
  a.fresh(i).bits[0] = static_cast<u64>(array_argument(a, i).stride[a.graph.attribute(i, 0)]);
}
void body<op::array_data>::run(agent& a, int i) { a.out(i) = a.in(i, 0); }

void body<op::region>::run(agent& a, int i) {
  data& d = a.out(i);
  d = a.in(i, 0);
  d.wrapped.clear();
  for (int j = 1; j < a.at(i).operand_count; ++j) {
    data const& start = a.in(i, j);
    d.start[j - 1] = int_of(start.at(0));
    if (!start.wrapped.empty() && start.wrapped[0] >= 0) d.wrapped.assign(1, start.wrapped[0]);
  }
}

// -- load and store ------------------------------------------------------------------------------------------------------------

void body<op::load>::run(agent& a, int i) {
  access x(a, i, 0, 1, "load");
  data const* const other = a.optional(i, 2);
  data& d = a.fresh(i);
  dtype const t = a.at(i).type;
  bool const is_volatile = a.graph.attribute(i, 2) != 0; // may meet a write, and sees what was behind it
  for (std::size_t e = 0; e < d.bits.size(); ++e) {
    d.bits[e] = other && !x.enabled(e) ? other->bits[e] : 0;
    if (!x.enabled(e) || !x.allowed(e)) continue;
    if (!is_volatile) x.note_read(e);
    d.bits[e] = convert(scalar{t, x.read(e)}, d.type).bits;
  }
  if (is_volatile) a.run.global.acquire(a);
}

void body<op::store>::run(agent& a, int i) {
  access x(a, i, 0, 2, "store");
  data const& v = a.in(i, 1);
  dtype const t = a.at(a.graph.operand(i, 0)).type;
  for (std::size_t e = 0; e < x.size(); ++e) {
    if (!x.enabled(e) || !x.allowed(e)) continue;
    u64 const bits = convert(v.at(e), t).bits;
    x.note_write(e, bits);
    x.write(e, bits);
  }
}

// -- atomics ---------------------------------------------------------------------------------------------------------------------

namespace {

/// Replaces every enabled element by update(old, e) and gives the old values.
template <class Update>
void atomic(agent& a, int i, int mask, Update update) {
  access x(a, i, 0, mask, "atomic");
  dtype const t = a.at(i).type;
  data& d = a.fresh(i);
  a.run.global.release(a);
  a.run.global.acquire(a);
  for (std::size_t e = 0; e < d.bits.size(); ++e) {
    d.bits[e] = 0;
    if (!x.enabled(e) || !x.allowed(e)) continue;
    x.meets(e);
    scalar const old{t, x.read(e)};
    x.write(e, update(old, e).bits);
    d.bits[e] = convert(old, d.type).bits;
  }
  a.yield();
}

} // namespace

void body<op::atomic_rmw>::run(agent& a, int i) {
  auto const o = static_cast<atomic_op>(a.graph.attribute(i, 0));
  data const& v = a.in(i, 1);
  atomic(a, i, 2, [&](scalar old, std::size_t e) -> scalar {
    scalar const x = convert(v.at(e), old.type);
    switch (o) {
    case atomic_op::add: return scalar_ops::add(old, x);
    case atomic_op::min: return scalar_ops::min(old, x);
    case atomic_op::max: return scalar_ops::max(old, x);
    case atomic_op::bit_and: return scalar_ops::bit_and(old, x);
    case atomic_op::bit_or: return scalar_ops::bit_or(old, x);
    case atomic_op::bit_xor: return scalar_ops::bit_xor(old, x);
    case atomic_op::xchg: return x;
    }
    return old;
  });
}

void body<op::atomic_cas>::run(agent& a, int i) {
  data const &expected = a.in(i, 1), &desired = a.in(i, 2);
  atomic(a, i, 3, [&](scalar old, std::size_t e) {
    return old == convert(expected.at(e), old.type) ? convert(desired.at(e), old.type) : old;
  });
}

} // namespace kiln::interpreter
