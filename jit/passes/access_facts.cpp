// The transfer functions of access_facts.hpp, one walk in program order. What a loop carries starts from the loop's own
// bounds or from nothing, so no iteration is needed.
#include "access_facts.hpp"

#include <algorithm>
#include <bit>

namespace kiln::jit {

namespace {

constexpr int endless = 30;

int power_in(std::int64_t v) {
  return v == 0 ? endless : std::min(endless, std::countr_zero(static_cast<std::uint64_t>(v)));
}
int log2_bytes(dtype t) { return std::countr_zero(static_cast<std::uint64_t>(bytes_of(t))); }

struct walk {
  graph_view const& g;
  specialisation const& s;
  std::vector<node_facts> out;

  int axes(int i) const { return std::max(1, g.shape_of(i).rank); }

  void scalar(int i, int divisor, std::optional<std::int64_t> constant = {}) {
    for (axis_fact& a : out[std::size_t(i)].axis) a = {0, endless, constant ? power_in(*constant) : divisor};
    out[std::size_t(i)].constant = constant;
  }
  void scalar(int i, integer_fact const& f) {
    scalar(i, power_in(f.divisor), f.constant ? std::optional(f.value) : std::nullopt);
  }
  std::int64_t sign_extended(std::int64_t bits, dtype t) const {
    int const w = bits_of(t);
    if (w == 64 || !is_int(t)) return bits;
    std::int64_t const low = bits & ((std::int64_t{1} << w) - 1);
    return is_signed_int(t) && (low >> (w - 1)) ? low - (std::int64_t{1} << w) : low;
  }

  void param(int i) {
    auto const index = static_cast<std::size_t>(g.attribute(i, 0));
    param_info const& p = g.params[index];
    param_facts const& f = s.params[index];
    if (p.kind == node_kind::value) {
      integer_fact v = f.scalar;
      if (is_float(p.type) || is_bool(p.type)) v = {};
      v.value = sign_extended(v.value, p.type);
      scalar(i, v);
    } else {
      scalar(i, power_in(f.alignment));
    }
  }

  std::optional<std::int64_t> folded(op code, std::int64_t a, std::int64_t b) const {
    auto const x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    switch (code) {
    case op::add: return static_cast<std::int64_t>(x + y);
    case op::sub: return static_cast<std::int64_t>(x - y);
    case op::mul: return static_cast<std::int64_t>(x * y);
    default: return {};
    }
  }

  void binary(int i, op code) {
    node_facts const &a = out[std::size_t(g.operand(i, 0))], &b = out[std::size_t(g.operand(i, 1))];
    node_facts& r = out[std::size_t(i)];
    if (!is_int(g[g.operand(i, 0)].type) && !is_bool(g[g.operand(i, 0)].type)) return constancies(i);
    for (int d = 0; d < axes(i); ++d) {
      axis_fact const &x = a.axis[std::size_t(d)], &y = b.axis[std::size_t(d)];
      axis_fact& z = r.axis[std::size_t(d)];
      z.constancy = std::min(x.constancy, y.constancy);
      switch (code) {
      case op::add:
        z.contiguity = std::max(std::min(x.contiguity, y.constancy), std::min(y.contiguity, x.constancy));
        z.divisor = std::min(x.divisor_at(z.contiguity), y.divisor_at(z.contiguity));
        break;
      case op::sub:
        z.contiguity = std::min(x.contiguity, y.constancy);
        z.divisor = std::min(x.divisor_at(z.contiguity), y.divisor_at(z.contiguity));
        break;
      case op::mul:
        if (b.constant == 1) z = x;
        else if (a.constant == 1) z = y;
        else z.divisor = std::min(endless, x.divisor_at(0) + y.divisor_at(0));
        break;
      case op::shl:
        if (b.constant && *b.constant >= 0 && *b.constant < 30)
          z.divisor = std::min(endless, x.divisor_at(0) + static_cast<int>(*b.constant));
        break;
      case op::bit_and: z.divisor = std::max(x.divisor_at(0), y.divisor_at(0)); break;
      case op::bit_or:
      case op::bit_xor:
      case op::min:
      case op::max: z.divisor = std::min(x.divisor_at(0), y.divisor_at(0)); break;
      case op::rem: // runs survive a modulus that their starts and lengths divide
        if (int const k = std::min({x.contiguity, y.divisor_at(0), x.divisor}); y.constancy >= k) {
          z.contiguity = k;
          z.divisor = std::min(x.divisor_at(k), y.divisor_at(0));
        }
        break;
      case op::lt: // i < n and i >= n change only at a multiple of what divides both
      case op::ge:
        z.constancy = std::max(z.constancy, std::min({x.contiguity, x.divisor, y.divisor_at(0), y.constancy}));
        break;
      case op::gt:
      case op::le:
        z.constancy = std::max(z.constancy, std::min({y.contiguity, y.divisor, x.divisor_at(0), x.constancy}));
        break;
      default: break;
      }
    }
    if (a.constant && b.constant)
      if (auto v = folded(code, *a.constant, *b.constant)) {
        r.constant = sign_extended(*v, g[i].type);
        for (axis_fact& x : r.axis) x.divisor = power_in(*r.constant);
      }
  }

  /// An element-wise operation of which nothing more is known keeps runs of equal values.
  void constancies(int i) {
    for (int d = 0; d < axes(i); ++d) {
      int c = endless;
      for (int o : g.operands(i))
        if (o >= 0) c = std::min(c, out[std::size_t(o)].axis[std::size_t(d)].constancy);
      out[std::size_t(i)].axis[std::size_t(d)].constancy = c;
    }
  }

  void cast(int i) {
    int const from = g.operand(i, 0);
    if (!is_int(g[from].type) || !is_int(g[i].type)) return constancies(i);
    node_facts const& x = out[std::size_t(from)];
    node_facts& r = out[std::size_t(i)];
    r = x;
    if (x.constant) r.constant = sign_extended(*x.constant, g[i].type);
    // A run may cross the source's wrap only where its start is not aligned to its length.
    for (axis_fact& a : r.axis)
      if (int const k = std::min(a.contiguity, a.divisor); k < a.contiguity) a.contiguity = k;
  }

  void ptr_add(int i) {
    node_facts const &p = out[std::size_t(g.operand(i, 0))], &o = out[std::size_t(g.operand(i, 1))];
    int const elem = log2_bytes(g[i].type);
    for (int d = 0; d < axes(i); ++d) {
      axis_fact const &x = p.axis[std::size_t(d)], &y = o.axis[std::size_t(d)];
      axis_fact& z = out[std::size_t(i)].axis[std::size_t(d)];
      z.constancy = std::min(x.constancy, y.constancy);
      z.contiguity = std::max(std::min(y.contiguity, x.constancy), std::min(x.contiguity, y.constancy));
      z.divisor = std::min(x.divisor_at(z.contiguity), std::min(endless, y.divisor_at(z.contiguity) + elem));
    }
  }

  void broadcast(int i) {
    int const from = g.operand(i, 0);
    shape const &a = g.shape_of(from), &b = g.shape_of(i);
    node_facts const x = out[std::size_t(from)];
    node_facts& r = out[std::size_t(i)];
    r.constant = x.constant;
    int least = endless; // divides every element, when no axis of the source has runs
    for (int d = 0; d < std::max(1, a.rank); ++d) least = std::min(least, x.axis[std::size_t(d)].divisor_at(0));
    for (int d = 0; d < b.rank; ++d) {
      int const e = d - (b.rank - a.rank);
      bool const repeated = e < 0 || (a.extent[e] == 1 && b.extent[d] > 1);
      r.axis[std::size_t(d)] = repeated ? axis_fact{0, endless, least} : x.axis[std::size_t(e)];
    }
  }

  /// Only axes of extent 1 come or go: the others keep their facts.
  void reshape(int i) {
    int const from = g.operand(i, 0);
    shape const &a = g.shape_of(from), &b = g.shape_of(i);
    node_facts const x = out[std::size_t(from)];
    int d = 0, e = 0;
    std::array<axis_fact, max_rank> axis{};
    int least = endless;
    for (int k = 0; k < std::max(1, a.rank); ++k) least = std::min(least, x.axis[std::size_t(k)].divisor_at(0));
    while (d < a.rank || e < b.rank) {
      if (d < a.rank && a.extent[d] == 1) ++d;
      else if (e < b.rank && b.extent[e] == 1) axis[std::size_t(e++)] = {0, endless, least};
      else if (d < a.rank && e < b.rank && a.extent[d] == b.extent[e])
        axis[std::size_t(e++)] = x.axis[std::size_t(d++)];
      else return;
    }
    out[std::size_t(i)].axis = axis;
    out[std::size_t(i)].constant = x.constant;
  }

  void node(int i) {
    node_facts& r = out[std::size_t(i)];
    if (g[i].kind == node_kind::value && g[i].shape == 0) scalar(i, 0);
    switch (op const code = g[i].code) {
    case op::param: return param(i);
    case op::constant:
      if (is_int(g[i].type)) scalar(i, 0, sign_extended(g.attribute(i, 0), g[i].type));
      else
        for (axis_fact& a : r.axis) a.constancy = endless;
      return;
    case op::iota:
      for (int d = 0; d < axes(i); ++d) r.axis[std::size_t(d)] = {0, endless, 0};
      r.axis[std::size_t(g.attribute(i, 0))] = {power_in(0), 0, power_in(g.attribute(i, 1))};
      return;
    case op::for_begin: {
      auto div = [&](int k) { return out[std::size_t(g.operand(i, k))].axis[0].divisor_at(0); };
      return scalar(i, std::min(div(0), div(2)));
    }
    case op::extent:
    case op::stride: {
      auto const p = static_cast<std::size_t>(g.attribute(g.operand(i, 0), 0));
      auto const d = static_cast<std::size_t>(g.attribute(i, 0));
      return scalar(i, code == op::extent ? s.params[p].extent[d] : s.params[p].stride[d]);
    }
    case op::array_data: return scalar(i, out[std::size_t(g.operand(i, 0))].axis[0].divisor);
    case op::cast: return cast(i);
    case op::ptr_add: return ptr_add(i);
    case op::broadcast: return broadcast(i);
    case op::reshape: return reshape(i);
    case op::trans: {
      node_facts const x = out[std::size_t(g.operand(i, 0))];
      for (int d = 0; d < axes(i); ++d) r.axis[std::size_t(d)] = x.axis[std::size_t(g.attribute(i, d))];
      r.constant = x.constant;
      return;
    }
    case op::multiple_of:
      r = out[std::size_t(g.operand(i, 0))];
      for (axis_fact& a : r.axis) a.divisor = std::max(a.divisor, power_in(g.attribute(i, 0)));
      return;
    case op::max_contiguous: {
      r = out[std::size_t(g.operand(i, 0))];
      axis_fact& a = r.axis[std::size_t(axes(i) - 1)];
      a.contiguity = std::max(a.contiguity, power_in(g.attribute(i, 0)));
      return;
    }
    case op::add:
    case op::sub:
    case op::mul:
    case op::shl:
    case op::bit_and:
    case op::bit_or:
    case op::bit_xor:
    case op::min:
    case op::max:
    case op::rem:
    case op::lt:
    case op::le:
    case op::gt:
    case op::ge: return binary(i, code);
    default:
      if (has(code, trait::elementwise)) constancies(i);
    }
  }
};

} // namespace

std::vector<node_facts> analyse_accesses(graph_view const& g, specialisation const& s) {
  walk w{g, s, std::vector<node_facts>(static_cast<std::size_t>(g.size()))};
  for (int i = 0; i < g.size(); ++i) w.node(i);
  return std::move(w.out);
}

int access_shape::vector(int elem) const {
  return std::max(0, std::min({4 - elem, contiguity, align_bytes - elem, mask_run}));
}

access_shape shape_of_access(graph_view const& g, specialisation const& s, std::vector<node_facts> const& facts,
                             int i) {
  int const address = g.operand(i, 0);
  kiln::shape const& shape = g.shape_of(address);
  access_shape r;
  r.axis = std::max(0, shape.rank - 1);
  if (shape.rank == 0) return {0, 0, facts[std::size_t(address)].axis[0].divisor, 30};
  if (g[address].kind == node_kind::region) {
    auto const p = static_cast<std::size_t>(g.attribute(g.operand(address, 0), 0));
    int const elem = log2_bytes(g[address].type);
    auto start = [&](int d) { return facts[std::size_t(g.operand(address, 1 + d))].axis[0].divisor_at(0); };
    r.align_bytes = power_in(s.params[p].alignment);
    for (int d = shape.rank - 1; d >= 0; --d)
      if (integer_fact const& f = s.params[p].stride[d]; f.constant && f.value == 1 && shape.extent[d] > 1) {
        r.axis = d, r.contiguity = endless;
        r.mask_run = std::min(start(d), power_in(s.params[p].extent[d].constant ? s.params[p].extent[d].value
                                                                                : s.params[p].extent[d].divisor));
        break;
      }
    for (int d = 0; d < shape.rank; ++d) {
      integer_fact const& f = s.params[p].stride[d];
      int const stride = power_in(f.constant ? f.value : f.divisor);
      r.align_bytes = std::min(r.align_bytes, elem + (r.contiguity && d == r.axis ? start(d) : stride));
    }
  } else {
    for (int d = shape.rank - 1; d >= 0; --d)
      if (int const c = facts[std::size_t(address)].axis[std::size_t(d)].contiguity;
          c > r.contiguity && shape.extent[d] > 1)
        r.contiguity = c, r.axis = d;
    r.align_bytes = facts[std::size_t(address)].axis[std::size_t(r.axis)].divisor;
  }
  int const mask = g[i].code == op::load ? 1 : g[i].code == op::atomic_cas ? 3 : 2;
  if (int const m = g.operand(i, mask); m >= 0)
    r.mask_run = std::min(r.mask_run, facts[std::size_t(m)].axis[std::size_t(r.axis)].constancy);
  r.mask_run = std::min(
      r.mask_run, std::countr_zero(static_cast<unsigned>(std::bit_ceil(static_cast<unsigned>(shape.extent[r.axis])) ==
                                                                 static_cast<unsigned>(shape.extent[r.axis])
                                                             ? 1u << 30
                                                             : static_cast<unsigned>(shape.extent[r.axis]))));
  return r;
}

} // namespace kiln::jit
