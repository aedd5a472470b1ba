// Folding: one pass over the nodes, each seen with operands that are folded already.
#include "src/graph/passes/fold.hpp"

#include "src/graph/rewrite.hpp"

#include <kiln/dtype/scalar_ops.hpp>

namespace kiln {

std::optional<scalar> fold_scalar(op o, dtype to, scalar const* x, std::int64_t attribute) {
  namespace ops = scalar_ops;
  auto const nan = static_cast<nan_mode>(attribute);
  switch (o) {
  case op::neg: return ops::neg(x[0]);
  case op::bit_not: return ops::bit_not(x[0]);
  case op::abs: return ops::abs(x[0]);
  case op::floor: return ops::floor(x[0]);
  case op::ceil: return ops::ceil(x[0]);
  case op::round: return ops::round(x[0]);
  case op::isnan: return scalar_of(is_nan(x[0]));
  case op::cast: return convert(x[0], to);
  case op::bitcast: return bitcast(x[0], to);
  case op::add: return ops::add(x[0], x[1]);
  case op::sub: return ops::sub(x[0], x[1]);
  case op::mul: return ops::mul(x[0], x[1]);
  case op::rem: return ops::rem(x[0], x[1]);
  case op::bit_and: return ops::bit_and(x[0], x[1]);
  case op::bit_or: return ops::bit_or(x[0], x[1]);
  case op::bit_xor: return ops::bit_xor(x[0], x[1]);
  case op::shl: return ops::shl(x[0], x[1]);
  case op::shr: return ops::shr(x[0], x[1]);
  case op::min: return ops::min(x[0], x[1], nan);
  case op::max: return ops::max(x[0], x[1], nan);
  case op::lt: return ops::lt(x[0], x[1]);
  case op::le: return ops::le(x[0], x[1]);
  case op::gt: return ops::gt(x[0], x[1]);
  case op::ge: return ops::ge(x[0], x[1]);
  case op::where: return ops::where(x[0], x[1], x[2]);
  case op::fma: return ops::fma(x[0], x[1], x[2]);
  case op::sqrt: return attribute ? std::nullopt : std::optional(ops::sqrt(x[0]));
  case op::div: return attribute && is_float(to) ? std::nullopt : std::optional(ops::div(x[0], x[1]));
  // Equality of f8 is not defined by the number page; leave it.
  case op::eq: return is_f8(x[0].type) ? std::nullopt : std::optional(ops::eq(x[0], x[1]));
  case op::ne: return is_f8(x[0].type) ? std::nullopt : std::optional(ops::ne(x[0], x[1]));
  case op::multiple_of: case op::max_contiguous: case op::release_layout: return x[0];
  case op::require_layout: return attribute ? std::nullopt : std::optional(x[0]); // a pinned one decides where what it is given to lies
  default: return std::nullopt;
  }
}

namespace {

class folder {
public:
  explicit folder(graph_view const& g) : g_(g), r_(g) {}

  graph run() {
    for (int i = 0; i < g_.size(); ++i) {
      op const o = g_[i].code;
      if (has(o, trait::opens)) {
        i = open(i);
        continue;
      }
      if (has(o, trait::middle) || has(o, trait::closes)) {
        i = divide_or_close(i);
        continue;
      }
      if (!visit(i)) r_.copy(i);
    }
    return r_.finish();
  }

private:
  // -- what is known about nodes of the new graph --------------------------------------------------------------------------

  std::optional<scalar> constant(int made) const {
    if (made < 0 || r_.made(made).code != op::constant) return std::nullopt;
    return scalar_from_bits(r_.made(made).type, static_cast<u64>(r_.attribute_of_made(made, 0)));
  }
  bool is_number(int made, i64 x) const {
    auto const c = constant(made);
    return c && !is_float(c->type) && *c == make_scalar(c->type, x);
  }
  bool all_bits(int made) const {
    auto const c = constant(made);
    return c && !is_float(c->type) && c->bits == mask_of(c->type);
  }
  op code(int made) const { return made < 0 ? op::param : r_.made(made).code; }
  int source(int made) const { return r_.operand_of_made(made, 0); }
  detail::node_type type_of(int i) const { return {g_[i].type, g_[i].kind, g_.shape_of(i)}; }
  bool same_type(int i, int made) const {
    return r_.made(made).type == g_[i].type && r_.made(made).kind == g_[i].kind && r_.shape_of_made(made) == g_.shape_of(i);
  }

  bool becomes(int i, int made) {
    if (!same_type(i, made)) return false;
    r_.replace(i, made);
    return true;
  }
  bool becomes_constant(int i, scalar v) {
    r_.replace(i, r_.add_constant(v, g_.shape_of(i), i));
    return true;
  }
  bool becomes_number(int i, i64 x) { return becomes_constant(i, make_scalar(g_[i].type, x)); }
  bool becomes_node(int i, op o, std::initializer_list<std::int32_t> operands, std::initializer_list<std::int64_t> attributes = {}) {
    r_.replace(i, r_.add(o, type_of(i), operands, attributes, i));
    return true;
  }

  // -- regions -------------------------------------------------------------------------------------------------------------

  struct region {
    bool inlined = false; ///< its content stays, its opening and closing nodes do not
    int end = -1;         ///< of an inlined conditional
  };

  /// Returns the last node that is dealt with.
  int open(int i) {
    op const o = g_[i].code;
    region r;
    if (o == op::if_begin) {
      int const middle = static_cast<int>(g_.attribute(i, 0)), end = static_cast<int>(g_.attribute(i, 1));
      if (auto const c = constant(r_.operand(i, 0))) {
        if (!is_true(*c) && middle < 0) return end;
        r.inlined = true;
        r.end = end;
        open_.push_back(r);
        return is_true(*c) ? i : middle; // the else branch starts behind if_else
      }
    } else if (o == op::for_begin) {
      int const end = static_cast<int>(g_.attribute(i, 0));
      if (auto const trips = trip_count(i)) {
        if (*trips == 0) return end;
        if (*trips == 1) {
          r_.replace(i, r_.operand(i, 0));
          r.inlined = true;
          open_.push_back(r);
          return i;
        }
      }
    }
    open_.push_back(r);
    r_.copy(i);
    return i;
  }

  int divide_or_close(int i) {
    region const r = open_.back();
    if (has(g_[i].code, trait::closes)) open_.pop_back();
    if (!r.inlined) {
      r_.copy(i);
      return i;
    }
    if (g_[i].code == op::if_else) { // the branch that is taken was the first: skip the other
      open_.pop_back();
      return r.end;
    }
    return i;
  }

  /// 0, 1 or 2 (several) trips of a loop with constant bounds.
  std::optional<int> trip_count(int i) const {
    auto const lo = constant(r_.operand(i, 0)), hi = constant(r_.operand(i, 1)), step = constant(r_.operand(i, 2));
    if (lo && hi && *lo == *hi) return 0;
    if (!lo || !hi || !step || step->bits == 0) return std::nullopt;
    bool const down = is_signed_int(step->type) && int_of(*step) < 0;
    if (down ? !is_true(scalar_ops::gt(*lo, *hi)) : !is_true(scalar_ops::lt(*lo, *hi))) return 0;
    scalar const next = scalar_ops::add(*lo, *step);
    bool const wraps = down ? is_true(scalar_ops::gt(next, *lo)) : is_true(scalar_ops::lt(next, *lo));
    if (wraps) return std::nullopt;
    return (down ? !is_true(scalar_ops::gt(next, *hi)) : !is_true(scalar_ops::lt(next, *hi))) ? 1 : 2;
  }

  // -- nodes ---------------------------------------------------------------------------------------------------------------

  /// True when node i has been dealt with.
  bool visit(int i) {
    node const& n = g_[i];
    if (n.kind == node_kind::value && has(n.code, trait::elementwise)) return constants(i) || identities(i) || order(i);
    if (n.code == op::multiple_of || n.code == op::max_contiguous) return identities(i); // of pointers
    switch (n.code) {
    case op::unset: return becomes_number(i, 0);
    case op::broadcast: case op::reshape: case op::trans: case op::split: case op::join: return moves(i);
    case op::ptr_add:
      if (is_number(r_.operand(i, 1), 0)) return becomes(i, r_.operand(i, 0));
      return false;
    case op::reduce: return reduction(i);
    case op::load: return load(i);
    case op::store: return masked_write(i, 2);
    case op::prefetch: return masked_write(i, 1);
    case op::atomic_rmw: return masked_write(i, 2);
    case op::atomic_cas: return masked_write(i, 3);
    case op::device_assert: case op::assume: {
      auto const c = constant(r_.operand(i, 0));
      return c && is_true(*c); // dropped
    }
    default: return false;
    }
  }

  bool constants(int i) {
    node const& n = g_[i];
    scalar x[3];
    if (n.operand_count > 3) return false;
    for (int j = 0; j < n.operand_count; ++j) {
      auto const c = constant(r_.operand(i, j));
      if (!c) return false;
      x[j] = *c;
    }
    auto const v = fold_scalar(n.code, n.type, x, attribute_count(n.code) ? g_.attribute(i, 0) : 0);
    return v && becomes_constant(i, *v);
  }

  bool identities(int i) {
    node const& n = g_[i];
    int const a = r_.operand(i, 0), b = r_.operand(i, 1), c = r_.operand(i, 2);
    bool const whole = !is_float(r_.made(a).type); // integers and b1
    switch (n.code) {
    case op::neg: case op::bit_not: // bits only: for floats, too
      return code(a) == n.code && becomes(i, source(a));
    case op::multiple_of: case op::max_contiguous: // the stronger promise includes the weaker one
      return code(a) == n.code && r_.attribute_of_made(a, 0) >= g_.attribute(i, 0) && becomes(i, a);
    case op::abs:
      return is_unsigned_int(n.type) && becomes(i, a);
    case op::cast: return cast(i, a);
    case op::bitcast:
      if (same_type(i, a)) return becomes(i, a);
      if (code(a) != op::bitcast) return false;
      return same_type(i, source(a)) ? becomes(i, source(a)) : becomes_node(i, op::bitcast, {source(a)});
    case op::where:
      if (b == c) return becomes(i, b);
      if (auto const condition = constant(a)) return becomes(i, is_true(*condition) ? b : c);
      if (code(a) == op::bit_not) return becomes_node(i, op::where, {source(a), c, b});
      return false;
    default: break;
    }
    if (!whole || n.operand_count != 2) return false;
    bool const same = a == b;
    // A constant on the left of a commutative operation counts, too.
    int const x = has(n.code, trait::commutative) && constant(a) ? b : a, k = x == a ? b : a;
    switch (n.code) {
    case op::add:
      if (is_number(k, 0)) return becomes(i, x);
      return reassociate(i, x, k);
    case op::sub:
      if (is_number(b, 0)) return becomes(i, a);
      if (same) return becomes_number(i, 0);
      return false;
    case op::mul:
      if (is_number(k, 1)) return becomes(i, x);
      if (is_number(k, 0)) return becomes(i, k);
      return reassociate(i, x, k);
    case op::div:
      return is_number(b, 1) ? becomes(i, a) : by_power_of_two(i, a, b, op::shr);
    case op::rem:
      return is_number(b, 1) ? becomes_number(i, 0) : by_power_of_two(i, a, b, op::bit_and);
    case op::bit_and:
      if (same || all_bits(k)) return becomes(i, x);
      if (is_number(k, 0)) return becomes(i, k);
      return reassociate(i, x, k);
    case op::bit_or:
      if (same || is_number(k, 0)) return becomes(i, x);
      if (all_bits(k)) return becomes(i, k);
      return reassociate(i, x, k);
    case op::bit_xor:
      if (is_number(k, 0)) return becomes(i, x);
      if (same) return becomes_number(i, 0);
      if (all_bits(k)) return becomes_node(i, op::bit_not, {x});
      return reassociate(i, x, k);
    case op::shl: case op::shr:
      return is_number(b, 0) && becomes(i, a);
    case op::min: case op::max:
      return same && becomes(i, a);
    case op::eq: case op::le: case op::ge:
      if (n.code == op::eq && is_bool(r_.made(a).type) && all_bits(k)) return becomes(i, x);
      return same && becomes_number(i, 1);
    case op::ne: case op::lt: case op::gt:
      if (n.code == op::ne && is_bool(r_.made(a).type) && is_number(k, 0)) return becomes(i, x);
      return same && becomes_number(i, 0);
    default: return false;
    }
  }

  /// (x . c1) . c2 is x . (c1 . c2) for integers: they wrap.
  bool reassociate(int i, int x, int k) {
    op const o = g_[i].code;
    auto const outer = constant(k);
    if (!outer || code(x) != o) return false;
    auto const inner = constant(r_.operand_of_made(x, 1));
    if (!inner) return false;
    scalar const both[2] = {*inner, *outer};
    int const c = r_.add_constant(*fold_scalar(o, g_[i].type, both, 0), g_.shape_of(i), i);
    return becomes_node(i, o, {source(x), c});
  }

  /// Unsigned division and remainder.
  bool by_power_of_two(int i, int a, int b, op o) {
    auto const c = constant(b);
    if (!c || !is_unsigned_int(c->type) || c->bits == 0 || (c->bits & (c->bits - 1)) != 0) return false;
    int log = 0;
    while (c->bits >> log != 1) ++log;
    u64 const k = o == op::shr ? static_cast<u64>(log) : c->bits - 1;
    return becomes_node(i, o, {a, r_.add_constant({c->type, k}, g_.shape_of(i), i)});
  }

  bool cast(int i, int a) {
    if (same_type(i, a)) return becomes(i, a);
    if (code(a) != op::cast) return false;
    int const inner = source(a);
    dtype const from = r_.made(inner).type, via = r_.made(a).type, to = g_[i].type;
    // Through a wider integer, or one that holds b1: the middle adds nothing, unless it changes how signs extend.
    bool const lossless = (is_int(from) && is_int(via) && bits_of(via) >= bits_of(from) && is_int(to) &&
                           (bits_of(to) <= bits_of(from) || is_signed(from) == is_signed(via) || (!is_signed(from) && bits_of(via) > bits_of(from)))) ||
                          (is_bool(from) && is_int(via) && (is_int(to) || is_bool(to)) && !(is_signed_int(via) && bits_of(via) == 1));
    if (!lossless) return false;
    return from == to ? becomes(i, inner) : becomes_node(i, op::cast, {inner});
  }

  /// Constants go to the right.
  bool order(int i) {
    node const& n = g_[i];
    if (!has(n.code, trait::commutative) || n.operand_count != 2) return false;
    if ((n.code == op::min || n.code == op::max) && is_float(n.type)) return false; // which zero wins
    int const a = r_.operand(i, 0), b = r_.operand(i, 1);
    if (!constant(a) || constant(b)) return false;
    std::int32_t const swapped[2] = {b, a};
    r_.replace(i, r_.add(n.code, type_of(i), swapped, g_.attributes_of(i), i));
    return true;
  }

  bool moves(int i) {
    node const& n = g_[i];
    int const a = r_.operand(i, 0);
    if (n.code == op::join) {
      int const b = r_.operand(i, 1);
      auto const x = constant(a), y = constant(b);
      return x && y && *x == *y && becomes_constant(i, *x);
    }
    if (auto const c = constant(a); c && n.kind == node_kind::value) return becomes_constant(i, *c);
    if (n.code == op::split) return code(a) == op::join && becomes(i, r_.operand_of_made(a, static_cast<int>(g_.attribute(i, 0))));
    if (n.code == op::trans) {
      int const rank = g_.shape_of(i).rank;
      bool identity = true;
      for (int d = 0; d < rank; ++d) identity &= g_.attribute(i, d) == d;
      if (identity) return becomes(i, a);
      if (code(a) != op::trans) return false;
      std::int64_t dims[max_rank]{};
      for (int d = 0; d < rank; ++d) dims[d] = r_.attribute_of_made(a, static_cast<int>(g_.attribute(i, d)));
      identity = true;
      for (int d = 0; d < rank; ++d) identity &= dims[d] == d;
      if (identity) return becomes(i, source(a));
      return becomes_node(i, op::trans, {source(a)}, {dims[0], dims[1], dims[2], dims[3], dims[4], dims[5]});
    }
    if (same_type(i, a)) return becomes(i, a);
    // A broadcast of a broadcast, a reshape of a reshape: only the last shape counts.
    return code(a) == n.code && becomes_node(i, n.code, {source(a)});
  }

  bool reduction(int i) {
    auto const c = constant(r_.operand(i, 0));
    auto const o = static_cast<reduce_op>(g_.attribute(i, 0));
    if (!c || is_float(c->type) || o == reduce_op::custom) return false;
    std::int64_t const n = g_.shape_of(g_.operand(i, 0)).elements() / g_.shape_of(i).elements();
    switch (o) {
    case reduce_op::max: case reduce_op::min: case reduce_op::any: case reduce_op::all: return becomes_constant(i, *c);
    case reduce_op::bit_xor: return becomes_constant(i, n % 2 ? *c : scalar{c->type, 0});
    case reduce_op::sum: return becomes_constant(i, scalar_ops::mul(*c, make_scalar(c->type, n)));
    default: return false;
    }
  }

  // -- masks -----------------------------------------------------------------------------------------------------------------

  bool load(int i) {
    int const mask = r_.operand(i, 1);
    auto const c = constant(mask);
    if (!c || g_.attribute(i, 2) != 0) return false;
    if (!is_true(*c)) { // nothing is read
      int const other = r_.operand(i, 2);
      return other >= 0 ? becomes(i, other) : becomes_constant(i, {g_[i].type, 0});
    }
    bool const region = r_.made(r_.operand(i, 0)).kind == node_kind::region; // masks by itself, and `other` stays
    std::int32_t const operands[3] = {r_.operand(i, 0), -1, region ? r_.operand(i, 2) : -1};
    r_.replace(i, r_.add(op::load, type_of(i), operands, g_.attributes_of(i), i));
    return true;
  }
  bool masked_write(int i, int mask_operand) {
    auto const c = constant(r_.operand(i, mask_operand));
    if (!c) return false;
    if (!is_true(*c)) return g_[i].kind == node_kind::none || becomes_constant(i, {g_[i].type, 0}); // nothing is written
    std::vector<std::int32_t> operands;
    for (int j = 0; j < g_[i].operand_count; ++j) operands.push_back(j == mask_operand ? -1 : r_.operand(i, j));
    r_.replace(i, r_.add(g_[i].code, type_of(i), operands, g_.attributes_of(i), i));
    return true;
  }

  graph_view const& g_;
  detail::rewriter r_;
  std::vector<region> open_;
};

} // namespace

graph fold(graph_view const& g) { return folder(g).run(); }

} // namespace kiln
