// Facts about integers and addresses, by abstract interpretation: nodes in order, vars until nothing changes.
#include "src/graph/axis_facts.hpp"

#include <kiln/graph/attribute_kind.hpp>

#include <algorithm>
#include <map>
#include <numeric>

namespace kiln {

namespace {

constexpr std::int64_t most_divisor = std::int64_t{1} << 40; // of zero
constexpr std::int64_t most_extent = std::int64_t{1} << 48;  // no array has more elements along an axis
constexpr std::int64_t most_grid = INT32_MAX;

std::int64_t power_in(wide_integer x) {
  if (x == 0) return most_divisor;
  std::int64_t p = 1;
  while (p < most_divisor && x % (2 * wide_integer{p}) == 0) p *= 2;
  return p;
}
std::int64_t product(std::int64_t a, std::int64_t b) {
  wide_integer const p = wide_integer{a} * b;
  return p > most_divisor ? most_divisor : static_cast<std::int64_t>(p);
}
std::int64_t gcd(std::int64_t a, std::int64_t b) { return std::gcd(a, b); }

integer_range all_of(dtype t) {
  if (is_bool(t)) return {0, 1};
  if (!is_int(t)) return {0, 0};
  if (is_signed_int(t)) return {int_of(lowest_of(t)), int_of(highest_of(t))};
  return {0, static_cast<wide_integer>(highest_of(t).bits)};
}
/// The range itself, or everything when arithmetic may have wrapped.
integer_range or_all(integer_range r, dtype t) {
  integer_range const all = all_of(t);
  return r.lo >= all.lo && r.hi <= all.hi ? r : all;
}
integer_range join(integer_range a, integer_range b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

/// Smaller groups of the same values: the first of each is then divisible by less.
axis_fact shrunk(axis_fact f, std::int64_t contiguity) {
  if (contiguity == f.contiguity) return f;
  return {contiguity, std::min(f.divisibility, power_in(contiguity)), f.constancy};
}
/// A power of two that divides every value, not only the first of each group.
std::int64_t every(axis_fact f) { return f.contiguity == 1 ? f.divisibility : 1; }

} // namespace

class facts_analysis {
public:
  explicit facts_analysis(graph_facts& out) : out_(out), g_(out.g_), options_(out.options_) {}

  void run() {
    out_.facts_.resize(g_.nodes.size());
    for (int round = 0;; ++round) {
      widen_ = round >= 4;
      changed_ = false;
      promised_.clear();
      depth_ = 0;
      for (int i = 0; i < g_.size(); ++i) {
        depth_ -= has(g_[i].code, trait::closes);
        visit(i);
        depth_ += has(g_[i].code, trait::opens);
      }
      // Promises speak of earlier nodes, too, and hold from the next round on. They are not worth more than a few rounds.
      if (round > 16) promised_.clear();
      changed_ |= promised_ != assumed_;
      assumed_ = promised_;
      if (!changed_) return;
    }
  }

private:
  using facts = node_facts;

  facts& at(int i) { return out_.facts_[static_cast<std::size_t>(i)]; }
  facts const& in(int i, int j) const { return out_.facts_[static_cast<std::size_t>(g_.operand(i, j))]; }
  shape const& form(int i) const { return g_.shape_of(i); }

  facts unknown(int i) const {
    facts f;
    f.has_range = g_[i].kind == node_kind::value && !is_float(g_[i].type);
    if (f.has_range) f.range = all_of(g_[i].type);
    if (g_[i].kind == node_kind::pointer) f.divisor = bytes_of(g_[i].type);
    for (int d = 0; d < form(i).rank; ++d) f.axis[d] = {1, f.divisor, 1};
    return f;
  }
  /// The same value everywhere.
  facts uniform(int i, integer_range r, std::int64_t divisor) const {
    facts f = unknown(i);
    if (f.has_range) f.range = or_all(r, g_[i].type);
    if (f.has_range && f.range.lo == f.range.hi) divisor = std::max(divisor, power_in(f.range.lo));
    f.divisor = divisor;
    for (int d = 0; d < form(i).rank; ++d) f.axis[d] = {1, divisor, form(i).extent[d]};
    return f;
  }
  facts of_argument(int i, integer_fact const& known, integer_range otherwise) const {
    if (known.constant) return uniform(i, {known.value, known.value}, 1);
    return uniform(i, otherwise, known.divisor);
  }
  param_facts const* told(int param) const {
    std::int64_t const p = g_.attribute(param, 0);
    if (!options_.facts || p >= static_cast<std::int64_t>(options_.facts->params.size())) return nullptr;
    return &options_.facts->params[static_cast<std::size_t>(p)];
  }

  void visit(int i) {
    op const o = g_[i].code;
    if (o == op::var_set) return cell(g_.operand(i, 0), in(i, 1));
    if (o == op::var) return cell(i, in(i, 0));
    if (o == op::assume) {
      if (depth_ == 0) assume(g_.operand(i, 0)); // inside a branch it holds only there
      return;
    }
    if (g_[i].kind == node_kind::none) return;
    facts f = result(i);
    if (auto const& a = assumed(i); a.lo <= a.hi && f.has_range) {
      integer_range const r{std::max(f.range.lo, a.lo), std::min(f.range.hi, a.hi)};
      if (r.lo <= r.hi) f.range = r; // else the promise is broken
    }
    if (!(at(i) == f)) {
      at(i) = f;
      changed_ = true;
    }
  }

  /// A var is anything that is ever written to it.
  void cell(int c, facts const& f) {
    auto const [it, fresh] = cells_.emplace(c, f);
    if (fresh) {
      at(c) = f;
      changed_ = true;
      return;
    }
    facts& old = it->second;
    facts now = old;
    now.range = join(old.range, f.range);
    if (widen_ && !(now.range == old.range)) now.range = all_of(g_[c].type);
    now.divisor = std::min(old.divisor, f.divisor);
    for (int d = 0; d < form(c).rank; ++d) {
      std::int64_t const run = gcd(old.axis[d].contiguity, f.axis[d].contiguity);
      now.axis[d] = shrunk(old.axis[d], run);
      now.axis[d].divisibility = std::min(now.axis[d].divisibility, shrunk(f.axis[d], run).divisibility);
      now.axis[d].constancy = gcd(old.axis[d].constancy, f.axis[d].constancy);
    }
    if (now == old) return;
    old = now;
    at(c) = now;
    changed_ = true;
  }

  // -- assumptions -----------------------------------------------------------------------------------------------------------

  /// A promise about a scalar holds wherever the scalar exists, since values do not change.
  void assume(int condition) {
    op const o = g_[condition].code;
    if (o == op::bit_and) {
      assume(g_.operand(condition, 0));
      assume(g_.operand(condition, 1));
      return;
    }
    if (o < op::eq || o > op::ge || o == op::ne) return;
    int const a = g_.operand(condition, 0), b = g_.operand(condition, 1);
    if (!is_int(g_[a].type)) return;
    bound(a, o, at(b).range);
    bound(b, o == op::lt ? op::gt : o == op::le ? op::ge : o == op::gt ? op::lt : o == op::ge ? op::le : o, at(a).range);
  }
  void bound(int x, op o, integer_range other) {
    integer_range r = all_of(g_[x].type);
    if (o == op::lt) r.hi = other.hi - 1;
    if (o == op::le || o == op::eq) r.hi = other.hi;
    if (o == op::gt) r.lo = other.lo + 1;
    if (o == op::ge || o == op::eq) r.lo = other.lo;
    auto const [it, fresh] = promised_.emplace(x, r);
    if (!fresh) it->second = {std::max(it->second.lo, r.lo), std::min(it->second.hi, r.hi)};
  }
  integer_range assumed(int x) const {
    auto const it = assumed_.find(x);
    return it == assumed_.end() ? integer_range{1, 0} : it->second;
  }

  // -- operations --------------------------------------------------------------------------------------------------------------

  facts result(int i) {
    node const& n = g_[i];
    switch (n.code) {
    case op::param: return param(i);
    case op::constant: {
      scalar const c = scalar_from_bits(n.type, static_cast<u64>(g_.attribute(i, 0)));
      wide_integer const x = is_signed_int(n.type) ? wide_integer{int_of(c)} : static_cast<wide_integer>(c.bits);
      return is_float(n.type) ? uniform(i, {}, 1) : uniform(i, {x, x}, 1);
    }
    case op::iota: return iota(i);
    case op::program_id: case op::num_programs: {
      std::int64_t const axis = g_.attribute(i, 0);
      wide_integer most = most_grid;
      bool const known = options_.grid.has_value();
      if (known) most = axis == 0 ? options_.grid->x : axis == 1 ? options_.grid->y : options_.grid->z;
      if (n.code == op::program_id) return uniform(i, {0, std::max<wide_integer>(most - 1, 0)}, 1);
      return uniform(i, {known ? most : 1, most}, 1);
    }
    case op::extent: return out_.extent_of(g_.operand(i, 0), static_cast<int>(g_.attribute(i, 0)));
    case op::stride: return out_.stride_of(g_.operand(i, 0), static_cast<int>(g_.attribute(i, 0)));
    case op::array_data: {
      param_facts const* t = told(g_.operand(i, 0));
      return uniform(i, {}, std::max<std::int64_t>(bytes_of(n.type), t ? t->alignment : 1));
    }
    case op::for_begin: return index(i);
    case op::var_get: return at(g_.operand(i, 0));
    case op::broadcast: return broadcast(i);
    case op::reshape: return reshape(i);
    case op::trans: {
      facts f = in(i, 0);
      for (int d = 0; d < form(i).rank; ++d) f.axis[d] = in(i, 0).axis[g_.attribute(i, d)];
      return f;
    }
    case op::join: return joined(i);
    case op::split: {
      facts f = in(i, 0);
      f.axis[form(i).rank] = {}; // the axis that is gone
      return f;
    }
    case op::reduce: {
      facts f = unknown(i);
      auto const o = static_cast<reduce_op>(g_.attribute(i, 0));
      if (f.has_range && (o == reduce_op::min || o == reduce_op::max || o == reduce_op::any || o == reduce_op::all)) {
        f.range = in(i, 0).range;
        f.divisor = in(i, 0).divisor;
        for (int d = 0; d < form(i).rank; ++d) f.axis[d].divisibility = f.divisor;
      }
      return f;
    }
    case op::arg_reduce: {
      facts f = unknown(i);
      f.range = {0, form(g_.operand(i, 0)).extent[g_.attribute(i, 1)] - 1};
      return f;
    }
    case op::gather: {
      facts f = unknown(i);
      f.range = in(i, 0).range;
      f.divisor = in(i, 0).divisor;
      for (int d = 0; d < form(i).rank; ++d) f.axis[d].divisibility = f.divisor;
      return f;
    }
    case op::load: {
      facts f = unknown(i);
      for (int d = 0; d < form(i).rank; ++d) {
        f.axis[d].constancy = in(i, 0).axis[d].constancy;
        for (int j = 1; j < 3; ++j)
          if (g_.operand(i, j) >= 0) f.axis[d].constancy = gcd(f.axis[d].constancy, in(i, j).axis[d].constancy);
        // A region masks by itself, which may cut a run of equal elements anywhere.
        if (g_[g_.operand(i, 0)].kind == node_kind::region && !out_.inside(g_.operand(i, 0), d)) f.axis[d].constancy = 1;
      }
      return f;
    }
    case op::region: return region(i);
    case op::ptr_add: return address(i);
    case op::multiple_of: {
      facts f = in(i, 0);
      std::int64_t const m = g_.attribute(i, 0);
      f.divisor = std::max(f.divisor, m);
      for (int d = 0; d < form(i).rank; ++d) f.axis[d].divisibility = std::max(f.axis[d].divisibility, m);
      return f;
    }
    case op::max_contiguous: {
      facts f = in(i, 0);
      if (int const d = form(i).rank - 1; d >= 0 && g_.attribute(i, 0) > f.axis[d].contiguity)
        f.axis[d] = {g_.attribute(i, 0), f.axis[d].divisibility, f.axis[d].constancy};
      return f;
    }
    default:
      if (n.kind == node_kind::value && has(n.code, trait::elementwise)) return elementwise(i);
      return unknown(i);
    }
  }

  facts param(int i) const {
    param_facts const* t = told(i);
    if (g_[i].kind == node_kind::pointer) return uniform(i, {}, std::max<std::int64_t>(bytes_of(g_[i].type), t ? t->alignment : 1));
    if (g_[i].kind != node_kind::value || is_float(g_[i].type)) return unknown(i);
    if (!t) return uniform(i, all_of(g_[i].type), 1);
    integer_fact known = t->scalar;
    if (known.constant) { // bits
      scalar const c = scalar_from_bits(g_[i].type, static_cast<u64>(known.value));
      wide_integer const x = is_signed_int(c.type) ? wide_integer{int_of(c)} : static_cast<wide_integer>(c.bits);
      return uniform(i, {x, x}, 1);
    }
    return uniform(i, all_of(g_[i].type), known.divisor);
  }

  facts iota(int i) const {
    facts f = unknown(i);
    std::int64_t const axis = g_.attribute(i, 0), start = g_.attribute(i, 1);
    int const e = form(i).extent[axis];
    f.range = or_all({start, wide_integer{start} + e - 1}, g_[i].type);
    for (int d = 0; d < form(i).rank; ++d)
      f.axis[d] = d == axis ? axis_fact{e, power_in(start), 1} : axis_fact{1, e == 1 ? power_in(start) : 1, form(i).extent[d]};
    f.divisor = e == 1 ? power_in(start) : 1;
    return f;
  }

  facts index(int i) const {
    integer_range const lo = in(i, 0).range, hi = in(i, 1).range, step = in(i, 2).range;
    integer_range r;
    if (step.lo > 0)
      r = {lo.lo, std::max(lo.lo, hi.hi - 1)};
    else if (step.hi < 0)
      r = {std::min(lo.hi, hi.lo + 1), lo.hi};
    else
      r = {std::min(lo.lo, hi.lo + 1), std::max(lo.hi, hi.hi - 1)};
    return uniform(i, r, std::min(in(i, 0).divisor, in(i, 2).divisor));
  }

  facts broadcast(int i) const {
    int const from = g_.operand(i, 0);
    facts const& x = in(i, 0);
    facts f = x;
    int const missing = form(i).rank - form(from).rank;
    for (int d = 0; d < form(i).rank; ++d) {
      bool const kept = d >= missing && form(from).extent[d - missing] == form(i).extent[d];
      f.axis[d] = kept ? x.axis[d - missing] : axis_fact{1, x.divisor, form(i).extent[d]};
    }
    return f;
  }

  facts reshape(int i) const {
    int const from = g_.operand(i, 0);
    shape const &a = form(from), &b = form(i);
    facts const& x = in(i, 0);
    facts f = x;
    bool everywhere = true; // one value
    for (int d = 0; d < a.rank; ++d) everywhere &= x.axis[d].constancy % a.extent[d] == 0;
    for (int d = 0; d < b.rank; ++d) f.axis[d] = {1, x.divisor, everywhere ? b.extent[d] : 1};
    if (everywhere) return f;
    // Axes match as long as their extents do, from the front and from the back; extents of 1 match nothing.
    auto match = [&](bool back) {
      int p = 0, q = 0;
      while (true) {
        auto real = [&](shape const& s, int k) { return back ? s.rank - 1 - k : k; };
        while (p < a.rank && a.extent[real(a, p)] == 1) ++p;
        while (q < b.rank && b.extent[real(b, q)] == 1) ++q;
        if (p == a.rank || q == b.rank) return;
        axis_fact const& source = x.axis[real(a, p)];
        int const ea = a.extent[real(a, p)], eb = b.extent[real(b, q)];
        if (ea != eb) {
          // The last axis divided: runs go on within its parts.
          if (back && ea % eb == 0) {
            axis_fact part = shrunk(source, gcd(source.contiguity, eb));
            part.constancy = gcd(source.constancy, eb);
            f.axis[real(b, q)] = part;
          }
          return;
        }
        f.axis[real(b, q)] = source;
        ++p;
        ++q;
      }
    };
    match(false);
    match(true);
    return f;
  }

  facts joined(int i) const {
    facts const &x = in(i, 0), &y = in(i, 1);
    facts f = x;
    f.range = join(x.range, y.range);
    f.divisor = std::min(x.divisor, y.divisor);
    int const last = form(i).rank - 1;
    for (int d = 0; d < last; ++d) {
      std::int64_t const run = gcd(x.axis[d].contiguity, y.axis[d].contiguity);
      f.axis[d] = shrunk(x.axis[d], run);
      f.axis[d].divisibility = std::min(f.axis[d].divisibility, shrunk(y.axis[d], run).divisibility);
      f.axis[d].constancy = gcd(x.axis[d].constancy, y.axis[d].constancy);
    }
    f.axis[last] = {1, f.divisor, 1};
    return f;
  }

  // -- element-wise ----------------------------------------------------------------------------------------------------------

  facts elementwise(int i) const {
    node const& n = g_[i];
    facts f = unknown(i);
    for (int d = 0; d < form(i).rank; ++d) {
      std::int64_t k = 0;
      for (int j = 0; j < n.operand_count; ++j) k = gcd(k, in(i, j).axis[d].constancy);
      f.axis[d].constancy = k;
    }
    if (!f.has_range) return f;
    if (n.code == op::cast) return cast(i, f);
    if (n.code == op::where) return chosen(i, f);
    if (n.code >= op::eq && n.code <= op::ge) return comparison(i, f);
    if (is_bool(n.type) || n.code == op::bitcast || n.code == op::isnan) return f;
    facts const& x = in(i, 0);
    if (n.operand_count == 1) return one_operand(n.code, i, x, f);
    facts const& y = in(i, 1);
    f.range = range_of(n.code, n.type, x.range, y.range);
    if (std::int64_t const k = modulus(i, y); k != 0 && x.divisor >= k) f.range = {0, 0};
    if (f.range.lo == f.range.hi) return uniform(i, f.range, 1);
    switch (n.code) {
    case op::add: case op::sub: sum(i, x, y, f); break;
    case op::mul: case op::shl: {
      std::int64_t const factor = n.code == op::mul ? y.divisor : y.range.lo == y.range.hi && y.range.within(0, 39) ? std::int64_t{1} << static_cast<int>(y.range.lo) : 1;
      f.divisor = product(x.divisor, factor);
      for (int d = 0; d < form(i).rank; ++d) {
        if (n.code == op::mul ? y.range.is(1) : y.range.is(0))
          f.axis[d] = {x.axis[d].contiguity, x.axis[d].divisibility, f.axis[d].constancy};
        else if (n.code == op::mul && x.range.is(1))
          f.axis[d] = {y.axis[d].contiguity, y.axis[d].divisibility, f.axis[d].constancy};
        else
          f.axis[d].divisibility = f.divisor;
      }
      break;
    }
    case op::div: case op::shr: quotient(i, x, y, f); break;
    case op::rem: case op::bit_and: remainder(i, x, y, f); break;
    case op::bit_or: case op::bit_xor: case op::min: case op::max:
      f.divisor = std::min(x.divisor, y.divisor);
      for (int d = 0; d < form(i).rank; ++d) f.axis[d].divisibility = f.divisor;
      break;
    default: break;
    }
    limit(n.type, f);
    return f;
  }

  /// Divisibility beyond the type's width says nothing: the value is 0 modulo 2^width.
  static void limit(dtype t, facts& f) {
    std::int64_t const most = bits_of(t) >= 40 ? most_divisor : std::int64_t{1} << bits_of(t);
    f.divisor = std::min(f.divisor, most);
    for (axis_fact& a : f.axis) a.divisibility = std::min(a.divisibility, most);
  }

  facts one_operand(op o, int i, facts const& x, facts f) const {
    if (o == op::neg || o == op::abs) {
      integer_range r{-x.range.hi, -x.range.lo};
      if (o == op::abs && !is_signed_int(g_[i].type)) return x;
      if (o == op::abs) r = x.range.lo >= 0 ? x.range : x.range.hi <= 0 ? r : integer_range{0, std::max(-x.range.lo, x.range.hi)};
      f.range = or_all(r, g_[i].type);
      f.divisor = x.divisor;
      for (int d = 0; d < form(i).rank; ++d) f.axis[d].divisibility = f.divisor;
    }
    if (o == op::bit_not && is_signed_int(g_[i].type)) f.range = {-x.range.hi - 1, -x.range.lo - 1};
    return f;
  }

  static integer_range range_of(op o, dtype t, integer_range x, integer_range y) {
    auto corners = [&](auto f) {
      wide_integer const v[4] = {f(x.lo, y.lo), f(x.lo, y.hi), f(x.hi, y.lo), f(x.hi, y.hi)};
      return integer_range{*std::min_element(v, v + 4), *std::max_element(v, v + 4)};
    };
    integer_range const all = all_of(t);
    switch (o) {
    case op::add: return or_all({x.lo + y.lo, x.hi + y.hi}, t);
    case op::sub: return or_all({x.lo - y.hi, x.hi - y.lo}, t);
    case op::mul:
      if (x.hi > INT64_MAX && y.hi > INT64_MAX) return all; // the product could need more than 127 bits
      return or_all(corners([](wide_integer a, wide_integer b) { return a * b; }), t);
    case op::div:
      if (y.lo <= 0) return all; // by zero, or a sign that is not known
      return or_all(corners([](wide_integer a, wide_integer b) { return a / b; }), t);
    case op::rem:
      if (y.lo <= 0) return all;
      return {x.lo >= 0 ? wide_integer{0} : std::max(-(y.hi - 1), x.lo), x.hi <= 0 ? wide_integer{0} : std::min(y.hi - 1, x.hi)};
    case op::shl:
      if (y.lo < 0 || y.hi >= bits_of(t)) return all;
      return or_all(corners([](wide_integer a, wide_integer b) { return a * (wide_integer{1} << static_cast<int>(b)); }), t);
    case op::shr:
      if (y.lo < 0 || y.hi >= bits_of(t)) return all;
      return or_all(corners([](wide_integer a, wide_integer b) { return a >> static_cast<int>(b); }), t);
    case op::bit_and:
      if (x.lo >= 0 && y.lo >= 0) return {0, std::min(x.hi, y.hi)};
      if (x.lo >= 0) return {0, x.hi};
      if (y.lo >= 0) return {0, y.hi};
      return all;
    case op::bit_or: case op::bit_xor: {
      if (x.lo < 0 || y.lo < 0) return all;
      wide_integer top = 1; // the smallest power of two above both
      while (top <= std::max(x.hi, y.hi)) top *= 2;
      return {o == op::bit_or ? std::max(x.lo, y.lo) : wide_integer{0}, top - 1};
    }
    case op::min: return {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
    case op::max: return {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
    default: return all;
    }
  }

  void sum(int i, facts const& x, facts const& y, facts& f) const {
    f.divisor = std::min(x.divisor, y.divisor);
    for (int d = 0; d < form(i).rank; ++d) {
      axis_fact const &a = x.axis[d], &b = y.axis[d];
      // One side goes up, the other stays.
      std::int64_t const left = gcd(a.contiguity, b.constancy), right = g_[i].code == op::sub ? 1 : gcd(a.constancy, b.contiguity);
      if (left >= right && left > 1)
        f.axis[d] = {left, std::min(shrunk(a, left).divisibility, every(b)), f.axis[d].constancy};
      else if (right > 1)
        f.axis[d] = {right, std::min(shrunk(b, right).divisibility, every(a)), f.axis[d].constancy};
      else
        f.axis[d].divisibility = f.divisor;
    }
  }

  void quotient(int i, facts const& x, facts const& y, facts& f) const {
    std::int64_t k = 0; // the divisor, a power of two
    if (y.range.lo == y.range.hi) {
      if (g_[i].code == op::shr && y.range.within(0, 39)) k = std::int64_t{1} << static_cast<int>(y.range.lo);
      if (g_[i].code == op::div && y.range.within(1, most_divisor) && power_in(y.range.lo) == y.range.lo) k = static_cast<std::int64_t>(y.range.lo);
    }
    if (k == 0) return;
    f.divisor = std::max<std::int64_t>(1, x.divisor / k);
    for (int d = 0; d < form(i).rank; ++d) {
      f.axis[d].divisibility = f.divisor;
      // Division by 2^n truncates: below zero the groups are not the aligned ones. A shift has no such seam.
      if (g_[i].code == op::div && x.range.lo < 0) continue;
      std::int64_t const group = std::min({gcd(x.axis[d].contiguity, k), power_in(x.axis[d].contiguity), x.axis[d].divisibility});
      f.axis[d].constancy = std::max(f.axis[d].constancy, group);
    }
  }

  /// 2^n where node i is x % 2^n or x & (2^n - 1), else 0.
  std::int64_t modulus(int i, facts const& y) const {
    op const o = g_[i].code;
    if ((o != op::rem && o != op::bit_and) || y.range.lo != y.range.hi) return 0;
    wide_integer const v = o == op::rem ? y.range.lo : y.range.lo + 1;
    return v >= 1 && v <= most_divisor && power_in(v) == v ? static_cast<std::int64_t>(v) : 0;
  }

  void remainder(int i, facts const& x, facts const& y, facts& f) const {
    std::int64_t const k = modulus(i, y);
    if (k == 0) {
      // x & y is divisible by what divides either; x % y by what divides both.
      f.divisor = g_[i].code == op::bit_and ? std::max(x.divisor, y.divisor) : std::min(x.divisor, y.divisor);
      for (int d = 0; d < form(i).rank; ++d) f.axis[d].divisibility = f.divisor;
      return;
    }
    f.divisor = x.divisor; // less than k, or the result were 0
    for (int d = 0; d < form(i).rank; ++d) {
      f.axis[d].divisibility = f.divisor;
      if (g_[i].code == op::rem && x.range.lo < 0) continue; // the sign turns the order around
      axis_fact const& a = x.axis[d];
      std::int64_t const run = std::min({gcd(a.contiguity, k), power_in(a.contiguity), a.divisibility});
      if (run > 1) f.axis[d] = {run, run == a.contiguity ? std::min(a.divisibility, k) : run, f.axis[d].constancy};
    }
  }

  facts chosen(int i, facts f) const {
    facts const &c = in(i, 0), &x = in(i, 1), &y = in(i, 2);
    f.range = c.range.is(1) ? x.range : c.range.is(0) ? y.range : join(x.range, y.range);
    f.divisor = std::min(x.divisor, y.divisor);
    for (int d = 0; d < form(i).rank; ++d) {
      std::int64_t const run = gcd(c.axis[d].constancy, gcd(x.axis[d].contiguity, y.axis[d].contiguity));
      f.axis[d] = {run, std::min(shrunk(x.axis[d], run).divisibility, shrunk(y.axis[d], run).divisibility), f.axis[d].constancy};
    }
    return f;
  }

  facts comparison(int i, facts f) const {
    facts const &x = in(i, 0), &y = in(i, 1);
    op const o = g_[i].code;
    f.range = {0, 1};
    if (!x.has_range || !y.has_range) return f;
    bool const less = x.range.hi < y.range.lo, less_equal = x.range.hi <= y.range.lo, more = x.range.lo > y.range.hi, more_equal = x.range.lo >= y.range.hi;
    bool const one = x.range.lo == x.range.hi && x.range == y.range;
    int verdict = -1;
    switch (o) {
    case op::lt: verdict = less ? 1 : more_equal ? 0 : -1; break;
    case op::le: verdict = less_equal ? 1 : more ? 0 : -1; break;
    case op::gt: verdict = more ? 1 : less_equal ? 0 : -1; break;
    case op::ge: verdict = more_equal ? 1 : less ? 0 : -1; break;
    case op::eq: verdict = one ? 1 : less || more ? 0 : -1; break;
    default: verdict = less || more ? 1 : one ? 0 : -1; break;
    }
    if (verdict >= 0) return uniform(i, {verdict, verdict}, 1);
    // An aligned run x against a bound y that is aligned, too: x < y and x >= y change between runs only.
    auto steps = [&](facts const& run, facts const& stay, int d) {
      axis_fact const& a = run.axis[d];
      return std::min({power_in(a.contiguity), a.divisibility, stay.axis[d].contiguity == 1 ? stay.axis[d].divisibility : 1, power_in(stay.axis[d].constancy)});
    };
    for (int d = 0; d < form(i).rank; ++d) {
      if (o == op::lt || o == op::ge) f.axis[d].constancy = std::max(f.axis[d].constancy, steps(x, y, d));
      if (o == op::gt || o == op::le) f.axis[d].constancy = std::max(f.axis[d].constancy, steps(y, x, d));
    }
    return f;
  }

  facts cast(int i, facts f) const {
    int const from = g_.operand(i, 0);
    dtype const a = g_[from].type, b = g_[i].type;
    facts const& x = in(i, 0);
    if (is_bool(b) || !x.has_range) return f;
    f.range = or_all(x.range, b);
    f.divisor = x.divisor;
    for (int d = 0; d < form(i).rank; ++d) {
      f.axis[d] = {x.axis[d].contiguity, x.axis[d].divisibility, f.axis[d].constancy};
      if (bits_of(b) > bits_of(a)) f.axis[d] = widened(a, x, f.axis[d]);
    }
    limit(b, f);
    return f;
  }
  /// A run of a type that may wrap: only an aligned run cannot contain the seam.
  static axis_fact widened(dtype t, facts const& x, axis_fact f) {
    bool const may_wrap = !is_signed_int(t) || bits_of(t) < 32;
    if (!may_wrap || f.contiguity == 1) return f;
    integer_range const all = all_of(t);
    if (x.range.lo > all.lo && x.range.hi < all.hi) return f; // away from both ends
    return shrunk(f, std::min(power_in(f.contiguity), f.divisibility));
  }

  // -- addresses ---------------------------------------------------------------------------------------------------------------

  facts address(int i) const {
    facts const& base = in(i, 0);
    facts const& offset = in(i, 1);
    std::int64_t const size = bytes_of(g_[i].type);
    facts f = unknown(i);
    f.divisor = std::min(base.divisor, product(offset.divisor, size));
    for (int d = 0; d < form(i).rank; ++d) {
      axis_fact a = base.axis[d], b = widened(g_[g_.operand(i, 1)].type, offset, offset.axis[d]);
      b.divisibility = product(b.divisibility, size);
      std::int64_t const k = gcd(a.constancy, b.constancy);
      std::int64_t const left = gcd(a.contiguity, b.constancy), right = gcd(a.constancy, b.contiguity);
      // Divisors are in bytes: a shorter run starts at multiples of its own size.
      auto shorter = [&](axis_fact const& x, std::int64_t run) { return run == x.contiguity ? x.divisibility : std::min(x.divisibility, product(power_in(run), size)); };
      auto each = [&](axis_fact const& x) { return x.contiguity == 1 ? x.divisibility : std::min(x.divisibility, size); };
      if (right >= left && right > 1)
        f.axis[d] = {right, std::min(shorter(b, right), each(a)), k};
      else if (left > 1)
        f.axis[d] = {left, std::min(shorter(a, left), each(b)), k};
      else
        f.axis[d] = {1, f.divisor, k};
    }
    return f;
  }

  facts region(int i) const {
    int const array = g_.operand(i, 0);
    std::int64_t const size = bytes_of(g_[i].type);
    param_facts const* t = told(array);
    facts f = unknown(i);
    int const rank = form(i).rank;
    std::int64_t const base = std::max<std::int64_t>(size, t ? t->alignment : 1);
    for (int d = 0; d < rank; ++d) {
      facts const s = out_.stride_of(array, d);
      std::int64_t align = base;
      // Of the first element of each run along d: every index of the other axes, the start of this one.
      for (int k = 0; k < rank; ++k) {
        std::int64_t const step = product(out_.stride_of(array, k).divisor, size);
        align = std::min(align, k == d && s.range.is(1) ? product(in(i, 1 + k).divisor, size) : step);
      }
      f.axis[d] = {1, align, 1};
      if (s.range.is(1)) f.axis[d].contiguity = form(i).extent[d];
      if (s.range.is(0)) f.axis[d].constancy = form(i).extent[d];
    }
    f.divisor = size;
    return f;
  }

  graph_facts& out_;
  graph_view const& g_;
  pass_options const& options_;
  std::map<int, facts> cells_;
  std::map<int, integer_range> assumed_, promised_; // of the round before, of this round
  int depth_ = 0;
  bool changed_ = false, widen_ = false;
};

graph_facts::graph_facts(graph_view const& g, pass_options const& options) : g_(g), options_(options) { facts_analysis(*this).run(); }

int graph_facts::vector_elements(int address, int axis, int most_bytes) const {
  axis_fact const& f = (*this)[address].axis[axis];
  std::int64_t const size = bytes_of(g_[address].type);
  std::int64_t const bytes = std::min({product(power_in(f.contiguity), size), f.divisibility, std::int64_t{most_bytes}});
  return static_cast<int>(std::max<std::int64_t>(1, bytes / size));
}

std::int64_t graph_facts::mask_constancy(int mask, int axis, std::int64_t extent) const {
  return mask < 0 ? extent : (*this)[mask].axis[axis].constancy;
}

namespace {
node_facts argument_facts(integer_fact const* known, integer_range otherwise) {
  node_facts f;
  f.has_range = true;
  f.range = otherwise;
  if (known && known->constant) f.range = {known->value, known->value};
  f.divisor = known ? std::max<std::int64_t>(1, known->divisor) : 1;
  if (f.range.lo == f.range.hi) f.divisor = power_in(f.range.lo);
  return f;
}
} // namespace

node_facts graph_facts::extent_of(int array, int axis) const {
  std::int64_t const p = g_.attribute(array, 0);
  bool const known = options_.facts && p < static_cast<std::int64_t>(options_.facts->params.size());
  return argument_facts(known ? &options_.facts->params[static_cast<std::size_t>(p)].extent[axis] : nullptr, {0, most_extent});
}
node_facts graph_facts::stride_of(int array, int axis) const {
  std::int64_t const p = g_.attribute(array, 0);
  bool const known = options_.facts && p < static_cast<std::int64_t>(options_.facts->params.size());
  return argument_facts(known ? &options_.facts->params[static_cast<std::size_t>(p)].stride[axis] : nullptr, {-most_extent, most_extent});
}

bool graph_facts::inside(int region, int axis) const {
  int const array = g_.operand(region, 0);
  int start = g_.operand(region, 1 + axis);
  std::int64_t const box = g_.shape_of(region).extent[axis];
  node_facts const extent = extent_of(array, axis);
  integer_range const at = (*this)[start].range;
  if (at.lo < 0) return false;
  if (at.hi + box <= extent.range.lo) return true;
  // What a value is, seen through hints and casts that keep it.
  auto bare = [&](int x) {
    while (true) {
      op const o = g_[x].code;
      if (o != op::multiple_of && o != op::cast) return x;
      int const y = g_.operand(x, 0);
      if (o == op::cast && (!is_int(g_[y].type) || !(*this)[y].range.within(INT64_MIN, INT64_MAX) || !((*this)[x].range == (*this)[y].range))) return x;
      x = y;
    }
  };
  auto is_extent = [&](int x) {
    x = bare(x);
    if (g_[x].code == op::extent) return g_.operand(x, 0) == array && g_.attribute(x, 0) == axis;
    return extent.range.lo == extent.range.hi && (*this)[x].range == extent.range;
  };
  auto is_constant = [&](int x, std::int64_t v) { return (*this)[x].range.is(v); };
  start = bare(start);
  // An index below the extent, both multiples of the box.
  if (g_[start].code == op::for_begin && (*this)[g_.operand(start, 2)].range.lo > 0 && is_extent(g_.operand(start, 1)))
    return box == 1 || ((*this)[start].divisor % box == 0 && extent.divisor % box == 0);
  // i * box with i below extent / box.
  if (g_[start].code == op::mul || g_[start].code == op::shl) {
    int const a = bare(g_.operand(start, 0));
    int const k = g_.operand(start, 1);
    bool const scaled = g_[start].code == op::mul ? is_constant(k, box) : power_in(box) == box && (*this)[k].range.lo == (*this)[k].range.hi && (*this)[k].range.within(0, 30) && (std::int64_t{1} << static_cast<int>((*this)[k].range.lo)) == box;
    if (!scaled || g_[a].code != op::for_begin || (*this)[g_.operand(a, 2)].range.lo <= 0) return false;
    int const trips = bare(g_.operand(a, 1));
    return g_[trips].code == op::div && is_extent(g_.operand(trips, 0)) && is_constant(g_.operand(trips, 1), box);
  }
  return false;
}

std::string graph_facts::text(int i) const {
  node_facts const& f = (*this)[i];
  node const& n = g_[i];
  std::string s;
  auto add = [&](std::string const& part) { s += (s.empty() ? "" : ", ") + part; };
  auto number = [](wide_integer x) {
    if (x > INT64_MAX) return std::to_string(static_cast<std::uint64_t>(x));
    return std::to_string(static_cast<std::int64_t>(x));
  };
  if (f.has_range && !(f.range == all_of(n.type))) add(f.range.lo == f.range.hi ? number(f.range.lo) : number(f.range.lo) + ".." + number(f.range.hi));
  bool const address = n.kind == node_kind::pointer || n.kind == node_kind::region;
  if (f.divisor > 1 && f.divisor < most_divisor && !(f.has_range && f.range.lo == f.range.hi) && !(address && f.divisor <= bytes_of(n.type)))
    add((address ? "bytes divisible by " : "divisible by ") + std::to_string(f.divisor));
  for (int d = 0; d < g_.shape_of(i).rank; ++d) {
    axis_fact const& a = f.axis[d];
    std::string part;
    if (a.contiguity > 1) part += " contiguous " + std::to_string(a.contiguity) + " from multiples of " + (a.divisibility >= most_divisor ? "2^40" : std::to_string(a.divisibility)) + (address ? " bytes" : "");
    if (a.constancy > 1) part += " constant " + std::to_string(a.constancy);
    if (!part.empty()) add("axis " + std::to_string(d) + part);
  }
  return s;
}

} // namespace kiln
