// How the random generator makes each operation, by the sections of ops.def. A recipe records the operation with operands
// that it is defined on, and puts the result into the pool; it returns false where the options or the type rule it out.
#include "random_generator.hpp"

#include <algorithm>

namespace kiln_test {

namespace {

constexpr dtype type_number(int i) { return static_cast<dtype>(i); }

/// A result of arithmetic: nothing is known about it.
value computed(int node, dtype t, std::int32_t s) { return {.node = node, .type = t, .shape = s, .maybe_nan = is_float(t)}; }
/// The same elements elsewhere.
value moved(value v, int node, std::int32_t s) {
  v.node = node;
  v.shape = s;
  v.used = false;
  return v;
}

} // namespace

int generator::variants(op o) {
  switch (o) {
  case op::cast: case op::bitcast: return dtype_count;
  case op::reduce: case op::scan: case op::atomic_rmw: return 8;
  case op::min: case op::max: case op::iota: case op::var: case op::var_get: case op::var_set: case op::view_index: case op::local_scatter:
  case op::load: case op::store: case op::async_load: case op::async_commit: case op::async_wait: case op::for_begin: case op::for_end:
  case op::if_begin: case op::dot: case op::local_load: case op::region:
  case op::philox: case op::histogram: case op::sort: case op::topk:
    return 4;
  case op::combine_begin: case op::combine_arg: case op::combine_end: return 5;
  default: return 2;
  }
}

bool generator::emit(op o, dtype t, int variant) {
  if (!may(o, t) || not_random(o)) return false;
  if (o <= op::result) return structure(o, t, variant);
  if (o == op::constant) {
    value v = random_constant(t, variant % 2 ? any_shape() : tile_shape(), anything);
    values_.back().used = v.used = false;
    return true;
  }
  if (o == op::iota) {
    std::int32_t const s = tile_shape();
    keep(computed(node(o, t, s, {}, {below(shape_at(s).rank), variant % 2 ? between(-3, 90) * (is_unsigned_int(t) ? 0 : 1) + 3 : 0}), t, s));
    return true;
  }
  if (o == op::program_id || o == op::num_programs) {
    keep(computed(node(o, t, 0, {}, {variant == 0 ? 0 : below(3)}), t, 0));
    return true;
  }
  if (o == op::multiple_of || o == op::max_contiguous || o == op::device_assert || o == op::device_print || o == op::assume || o == op::prefetch) return checks(o, t, variant);
  if (o == op::ptr_add || (o >= op::extent && o <= op::store)) return global(o, t, variant);
  if (o == op::atomic_rmw || o == op::atomic_cas) return atomic(o, t, variant);
  if (has(o, trait::elementwise)) return elementwise(o, t, variant);
  if (o <= op::split) return reshaping(o, t, variant);
  if (o <= op::topk) return across(o, t, variant);
  if (o == op::async_load || o == op::async_commit || o == op::async_wait) return asynchronous(o, t, variant);
  return local(o, t, variant);
}

// -- structure -----------------------------------------------------------------------------------------------------------

bool generator::structure(op o, dtype t, int variant) {
  switch (o) {
  case op::param: {
    argument a;
    a.kind = node_kind::value;
    a.type = t;
    a.bits = element_at(fill({.type = t, .elements = 1, .holds = contents::values}, bits()), t, 0).bits;
    store(described(parameter(a), t, 0, contents::values));
    return true;
  }
  case op::for_begin: case op::for_end: return options_.control && depth_ < 2 && loop(t, variant);
  case op::if_begin: case op::if_else: case op::if_end: return options_.control && depth_ < 2 && conditional(variant);
  case op::while_begin: case op::while_test: case op::while_end: return options_.control && depth_ < 2 && repeat(variant);
  case op::var: case op::var_get: case op::var_set: return options_.control && cell(t, variant);
  default: return custom_combine(t, o == op::result ? 3 : variant);
  }
}

bool generator::loop(dtype t, int variant) {
  // Zero trips, one, several; negative steps for signed types; bounds known or not.
  int lo = between(0, 3), hi = lo + between(0, 4), step = between(1, 2);
  if (is_signed_int(t) && variant % 4 >= 2) {
    std::swap(lo, hi);
    hi -= 2;
    step = -step;
  }
  auto bound = [&](int x) { return chance(40) ? integer_argument(x, t) : constant(t, 0, x); };
  std::int32_t const s = any_shape();
  value const first = want(t, s);
  int const sum = push(op::var, t, node_kind::cell, s, {first.node});
  int const begin = node(op::for_begin, t, 0, {bound(lo), bound(hi), bound(step)}, {-1});
  scope_mark const mark = enter();
  if (may(op::add, t)) {
    int const old = node(op::var_get, t, s, {sum});
    push(op::var_set, {}, node_kind::none, 0, {sum, node(op::add, t, s, {old, spread(begin, t, s)})});
  }
  keep(computed(begin, t, 0));
  values_.back().used = true;
  if (!options_.allow || variant % 2) body(between(0, 3));
  leave(mark);
  push(op::for_end, {}, node_kind::none, 0, {}, {begin});
  keep(computed(node(op::var_get, t, s, {sum}), t, s));
  return true;
}

bool generator::conditional(int variant) {
  int const condition = uniform_condition();
  std::int32_t const s = any_shape();
  dtype const t = one_of({dtype::i32, dtype::f32, dtype::u8, dtype::f16});
  int const c = push(op::var, t, node_kind::cell, s, {want(t, s).node});
  int const begin = push(op::if_begin, {}, node_kind::none, 0, {condition}, {-1, -1});
  scope_mark mark = enter();
  push(op::var_set, {}, node_kind::none, 0, {c, want(t, s).node});
  body(between(0, 2));
  leave(mark);
  if (variant % 2) {
    push(op::if_else, {}, node_kind::none, 0, {}, {begin});
    mark = enter();
    push(op::var_set, {}, node_kind::none, 0, {c, want(t, s).node});
    body(between(0, 2));
    leave(mark);
  }
  push(op::if_end, {}, node_kind::none, 0, {}, {begin});
  keep(computed(node(op::var_get, t, s, {c}), t, s));
  values_.back().loose_zero = is_float(t);
  return true;
}

bool generator::repeat(int) {
  int const count = push(op::var, dtype::i32, node_kind::cell, 0, {constant(dtype::i32, 0, 0)});
  int const bound = chance(50) ? integer_argument(between(0, 3)) : constant(dtype::i32, 0, between(0, 3));
  int const begin = push(op::while_begin, {}, node_kind::none, 0, {}, {-1, -1});
  scope_mark const mark = enter();
  int const more = node(op::lt, dtype::b1, 0, {node(op::var_get, dtype::i32, 0, {count}), bound});
  push(op::while_test, {}, node_kind::none, 0, {more}, {begin});
  int const next = node(op::add, dtype::i32, 0, {node(op::var_get, dtype::i32, 0, {count}), constant(dtype::i32, 0, 1)});
  push(op::var_set, {}, node_kind::none, 0, {count, next});
  body(between(0, 2));
  leave(mark);
  push(op::while_end, {}, node_kind::none, 0, {}, {begin});
  keep(computed(node(op::var_get, dtype::i32, 0, {count}), dtype::i32, 0));
  return true;
}

bool generator::cell(dtype t, int variant) {
  if (variant == 3) { // of a pointer: the second of two parts
    std::int64_t const n = grid_.x;
    argument a;
    a.kind = node_kind::pointer;
    a.type = t;
    a.elements = 2 * n;
    a.holds = contents::values;
    int const base = parameter(a);
    int const p = push(op::var, t, node_kind::cell, 0, {push(op::ptr_add, t, node_kind::pointer, 0, {base, pid()})});
    int const now = push(op::var_get, t, node_kind::pointer, 0, {p});
    push(op::var_set, {}, node_kind::none, 0, {p, push(op::ptr_add, t, node_kind::pointer, 0, {now, constant(dtype::i32, 0, n)})});
    int const x = node(op::load, t, 0, {push(op::var_get, t, node_kind::pointer, 0, {p}), -1, -1}, {0, 0, 0});
    keep(described(x, t, 0, contents::values));
    return true;
  }
  std::int32_t const s = any_shape();
  value const first = want(t, s), second = want(t, s);
  int const c = push(op::var, t, node_kind::cell, s, {first.node});
  keep(moved(first, node(op::var_get, t, s, {c}), s));
  push(op::var_set, {}, node_kind::none, 0, {c, second.node});
  keep(moved(second, node(op::var_get, t, s, {c}), s));
  // From now on loops and branches may change it.
  value holds = computed(-1, t, s);
  holds.loose_zero = is_float(t);
  cells_.push_back({c, holds});
  return true;
}

void generator::change_cells() {
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (!chance(40)) continue;
    cell_info const c = cells_[i];
    value const v = want(c.holds.type, c.holds.shape);
    push(op::var_set, {}, node_kind::none, 0, {c.node, v.node});
    value now = c.holds;
    now.node = node(op::var_get, now.type, now.shape, {c.node});
    keep(now);
    values_.back().used = true;
  }
}

bool generator::custom_combine(dtype t, int variant) {
  std::int32_t const s = tile_shape();
  int const axis = below(shape_at(s).rank);
  bool const keeps = chance(50);
  shape to = shape_at(s);
  if (keeps) {
    to.extent[axis] = 1;
  } else {
    for (int d = axis; d + 1 < to.rank; ++d) to.extent[d] = to.extent[d + 1];
    to.extent[--to.rank] = 0;
  }
  std::int32_t const result = r_.intern(to);
  auto open = [&](int operands) {
    int const begin = push(op::combine_begin, {}, node_kind::none, 0, {}, {-1});
    std::vector<int> arguments;
    for (int i = 0; i < 2 * operands; ++i) arguments.push_back(node(op::combine_arg, i % operands == 1 ? dtype::i32 : t, 0, {begin}, {i}));
    return std::pair(begin, arguments);
  };
  auto const sum = static_cast<std::int64_t>(reduce_op::custom);
  if (variant < 3 || !is_int(t)) { // associative: sum, max, product
    // A sum of f16 or bf16 that is rounded at every step must stay exact in any grouping.
    bool const exact = !is_float(t) || mantissa_bits_of(t) >= 12 || shape_at(s).extent[axis] <= (t == dtype::f16 ? 256 : 32);
    op const o = variant % 3 == 1 || !exact ? op::max : variant % 3 == 0 ? op::add : op::mul;
    if (!may(o, t)) return false;
    value v = want(t, s, is_float(t) ? small_numbers : anything);
    if (o == op::mul) v = clamped(v);
    auto const [begin, x] = open(1);
    int const y = o == op::max ? node(o, t, 0, {x[0], x[1]}, {0}) : node(o, t, 0, {x[0], x[1]});
    push(op::combine_end, {}, node_kind::none, 0, {y}, {begin});
    bool const scans = chance(40) && may(op::scan, t);
    int const n = scans ? node(op::scan, t, s, {v.node}, {sum, axis, chance(50), begin})
                        : node(op::reduce, t, result, {v.node}, {sum, axis, keeps, 0, begin});
    value r = computed(n, t, scans ? s : result);
    r.loose_zero = is_float(t);
    keep(r);
    if (variant < 3) return true;
  }
  // Pairs (x, i). 3: the last pair, associative but not commutative. 4: x -> a x + b on integers, likewise.
  value const a = want(t, s), b = want(dtype::i32, s);
  auto const [begin, x] = open(2);
  int first = x[2], second = x[3];
  if (variant == 4 && t == dtype::i32) {
    first = node(op::mul, t, 0, {x[0], x[2]});
    second = node(op::add, t, 0, {node(op::mul, t, 0, {x[2], x[1]}), x[3]});
  }
  push(op::combine_end, {}, node_kind::none, 0, {first, second}, {begin});
  bool const scans = chance(50) && may(op::scan, t);
  std::int32_t const to_shape = scans ? s : result;
  int const both = scans ? node(op::scan, t, s, {a.node, b.node}, {sum, axis, chance(50), begin})
                         : node(op::reduce, t, result, {a.node, b.node}, {sum, axis, keeps, 0, begin});
  keep(moved(a, node(op::result, t, to_shape, {both}, {0}), to_shape));
  keep(computed(node(op::result, dtype::i32, to_shape, {both}, {1}), dtype::i32, to_shape));
  return true;
}

// -- element-wise --------------------------------------------------------------------------------------------------------

bool generator::elementwise(op o, dtype t, int variant) {
  std::int32_t const s = any_shape();
  switch (o) {
  case op::cast: {
    dtype const to = type_number(variant);
    if (to == t || !may(op::cast, to)) return false;
    value const x = want(t, s);
    value r = computed(node(o, to, s, {x.node}), to, s);
    r.loose_zero = x.loose_zero;
    r.maybe_nan = is_float(to) && is_float(t) && x.maybe_nan;
    r.small = x.small && is_float(to);
    r.moderate = x.small && is_float(to);
    keep(r);
    return true;
  }
  case op::bitcast: {
    dtype const to = type_number(variant);
    if (bits_of(to) != bits_of(t) || is_bool(to) || to == t || !may(o, to)) return false;
    value const x = want(t, s, is_float(t) ? no_nan | signed_zero : anything);
    keep(computed(node(o, to, s, {x.node}), to, s));
    return true;
  }
  case op::where: {
    value const c = want(dtype::b1, s), a = want(t, s, may_approximate), b = want(t, s, may_approximate);
    value r = moved(a, node(o, t, s, {c.node, a.node, b.node}), s);
    r.approximate |= b.approximate;
    r.maybe_nan |= b.maybe_nan;
    r.loose_zero |= b.loose_zero;
    r.small &= b.small;
    r.moderate &= b.moderate;
    keep(r);
    return true;
  }
  case op::neg: case op::abs: {
    value const x = want(t, s, is_float(t) ? may_approximate : anything);
    value r = moved(x, node(o, t, s, {x.node}), s);
    r.small = r.moderate = false;
    keep(r);
    return true;
  }
  case op::isnan: {
    value const x = want(t, s);
    keep(computed(node(o, dtype::b1, s, {x.node}), dtype::b1, s));
    return true;
  }
  case op::sin: case op::cos: case op::exp: case op::exp2: case op::log: case op::log2: case op::rsqrt: case op::tanh: case op::erf: {
    bool const trigonometric = o == op::sin || o == op::cos;
    value const x = want(t, s, trigonometric ? moderate_numbers : o == op::rsqrt ? signed_zero : anything);
    value r = computed(node(o, t, s, {x.node}, {0}), t, s);
    r.approximate = true;
    r.loose_zero = true;
    keep(r);
    return true;
  }
  case op::sqrt: {
    value const x = want(t, s);
    value r = computed(node(o, t, s, {x.node}, {0}), t, s);
    r.loose_zero = x.loose_zero;
    keep(r);
    return true;
  }
  case op::philox: { // of any seed and counter
    value const key = want(t, s), low = want(t, s), high = want(t, s);
    keep(computed(node(o, dtype::u32, s, {key.node, low.node, high.node}, {variant % 4}), dtype::u32, s));
    return true;
  }
  case op::fma: {
    value const x = want(t, s), y = want(t, s), z = want(t, s);
    value r = computed(node(o, t, s, {x.node, y.node, z.node}), t, s);
    r.loose_zero = x.loose_zero || y.loose_zero || z.loose_zero;
    keep(r);
    return true;
  }
  default: break;
  }
  if (info(o).least == 1) { // floor, ceil, round, bit_not
    value const x = want(t, s);
    value r = computed(node(o, t, s, {x.node}), t, s);
    r.loose_zero = x.loose_zero;
    keep(r);
    return true;
  }
  value const x = want(t, s);
  value y = want(t, s, o == op::div && is_float(t) ? signed_zero : anything);
  if ((o == op::shl || o == op::shr) && chance(70)) { // counts that say something; others give 0 or the sign
    y.node = constant(t, s, between(0, bits_of(t)));
  }
  bool const compares = o >= op::eq && o <= op::ge;
  dtype const to = compares ? dtype::b1 : t;
  int const n = o == op::div ? node(o, to, s, {x.node, y.node}, {0})
                : o == op::min || o == op::max ? node(o, to, s, {x.node, y.node}, {variant % 2})
                                               : node(o, to, s, {x.node, y.node});
  value r = computed(n, to, s);
  r.loose_zero = is_float(to) && (x.loose_zero || y.loose_zero || o == op::min || o == op::max);
  keep(r);
  return true;
}

// -- shape ---------------------------------------------------------------------------------------------------------------

bool generator::reshaping(op o, dtype t, int variant) {
  std::int32_t const s = o == op::split ? 0 : tile_shape(o == op::trans ? 2 : 1);
  shape const form = shape_at(s);
  switch (o) {
  case op::broadcast: {
    shape from = form;
    for (int d = 0; d < from.rank; ++d)
      if (chance(50)) from.extent[d] = 1;
    if (int const drop = variant == 0 ? 0 : below(from.rank)) { // missing leading axes
      for (int d = 0; d + drop < from.rank; ++d) from.extent[d] = from.extent[d + drop];
      for (int d = from.rank - drop; d < from.rank; ++d) from.extent[d] = 0;
      from.rank -= drop;
    }
    value const x = want(t, r_.intern(from), may_approximate);
    keep(moved(x, node(o, t, s, {x.node}), s));
    return true;
  }
  case op::reshape: {
    value const x = want(t, s, may_approximate);
    shape to;
    std::int64_t left = form.elements();
    while (left > 1 && to.rank < 3) { // split off a factor
      int factor = between(2, 9);
      while (left % factor != 0) factor = factor == 2 ? static_cast<int>(left) : factor - 1;
      to.extent[to.rank++] = factor;
      left /= factor;
    }
    if (left > 1 || to.rank == 0 || (chance(30) && to.rank < max_rank)) to.extent[to.rank++] = static_cast<int>(left);
    std::int32_t const r = r_.intern(to);
    keep(moved(x, node(o, t, r, {x.node}), r));
    return true;
  }
  case op::trans: {
    value const x = want(t, s, may_approximate);
    int p[max_rank]{};
    for (int d = 0; d < form.rank; ++d) p[d] = d;
    for (int d = form.rank - 1; d > 0; --d) std::swap(p[d], p[below(d + 1)]);
    if (variant == 1) std::reverse(p, p + form.rank);
    shape to = form;
    for (int d = 0; d < form.rank; ++d) to.extent[d] = form.extent[p[d]];
    std::int32_t const r = r_.intern(to);
    keep(moved(x, node(o, t, r, {x.node}, {p[0], p[1], p[2], p[3], p[4], p[5]}), r));
    return true;
  }
  default: { // join and split go together
    std::int32_t const half = any_shape();
    shape to = shape_at(half);
    if (to.rank == max_rank) return false;
    to.extent[to.rank++] = 2;
    std::int32_t const both = r_.intern(to);
    value x = want(t, half, may_approximate);
    value const y = want(t, half, may_approximate);
    int const joined = node(op::join, t, both, {x.node, y.node});
    if (!may(op::split, t) || (o == op::join && variant == 0)) {
      x.approximate |= y.approximate;
      x.maybe_nan |= y.maybe_nan;
      x.loose_zero |= y.loose_zero;
      x.small &= y.small;
      x.moderate &= y.moderate;
      keep(moved(x, joined, both));
      return true;
    }
    keep(moved(x, node(op::split, t, half, {joined}, {0}), half));
    keep(moved(y, node(op::split, t, half, {joined}, {1}), half));
    return true;
  }
  }
}

// -- across elements -----------------------------------------------------------------------------------------------------

bool generator::across(op o, dtype t, int variant) {
  if (o == op::dot) {
    int const m = extent(), n = extent(), k = std::min(extent(), 64);
    auto two = [&](int rows, int columns) { return r_.intern(shape{2, {rows, columns}}); };
    dtype const to = t == dtype::f64 ? dtype::f64 : t == dtype::i8 ? dtype::i32 : dtype::f32;
    if (m * n > options_.max_elements || m * k > options_.max_elements || n * k > options_.max_elements) return dot_fallback(t, variant);
    return product(t, to, two(m, k), two(k, n), two(m, n), variant);
  }
  std::int32_t const s = tile_shape();
  shape const form = shape_at(s);
  int const axis = below(form.rank);
  bool const keeps = chance(50);
  auto reduced = [&](bool all) {
    shape to = form;
    if (all) {
      to = shape{};
      if (keeps)
        for (to.rank = 0; to.rank < form.rank; ++to.rank) to.extent[to.rank] = 1;
    } else if (keeps) {
      to.extent[axis] = 1;
    } else {
      for (int d = axis; d + 1 < to.rank; ++d) to.extent[d] = to.extent[d + 1];
      to.extent[--to.rank] = 0;
    }
    return r_.intern(to);
  };
  switch (o) {
  case op::reduce: case op::scan: {
    auto const r = static_cast<reduce_op>(variant);
    if (r == reduce_op::custom) return is_arithmetic(t) && custom_combine(t, below(5));
    bool const fits = r == reduce_op::any || r == reduce_op::all ? is_bool(t) : r == reduce_op::bit_xor ? is_int(t) || is_bool(t) : is_arithmetic(t);
    if (!fits) return false;
    bool const adds = r == reduce_op::sum || r == reduce_op::prod;
    value x = want(t, s, is_float(t) && adds ? small_numbers : anything);
    if (r == reduce_op::prod) x = clamped(x);
    if (o == op::scan) {
      // A sum of f16 or bf16 that is rounded at every step must stay exact, too.
      if (r == reduce_op::sum && is_float(t) && mantissa_bits_of(t) < 12 && form.extent[axis] > (t == dtype::f16 ? 256 : 32)) return false;
      value v = computed(node(o, t, s, {x.node}, {variant, axis, chance(40), -1}), t, s);
      v.loose_zero = is_float(t);
      keep(v);
      return true;
    }
    bool const all = chance(40);
    std::int32_t const to = reduced(all);
    bool const minmax = r == reduce_op::min || r == reduce_op::max;
    value v = computed(node(o, t, to, {x.node}, {variant, all ? -1 : axis, keeps, minmax ? below(2) : 0, -1}), t, to);
    v.loose_zero = is_float(t);
    keep(v);
    return true;
  }
  case op::histogram: {
    // Mostly inside the bins; the rest is not counted.
    value x = want(t, s);
    int const bins = variant % 2 ? extent() : between(1, 300);
    if (may(op::rem, t) && bins + 3 < (std::int64_t{1} << std::min(bits_of(t) - 1, 30)) && chance(70)) x.node = node(op::rem, t, s, {x.node, constant(t, s, bins + 3)});
    std::int32_t const to = r_.intern(shape{1, {bins}});
    int const n = variant >= 2 ? node(o, dtype::i32, to, {x.node, want(dtype::b1, s).node}) : node(o, dtype::i32, to, {x.node});
    keep(computed(n, dtype::i32, to));
    return true;
  }
  case op::sort: {
    value const x = want(t, s);
    value r = moved(x, node(o, t, s, {x.node}, {axis, variant % 2}), s);
    keep(r);
    return true;
  }
  case op::topk: {
    value x = want(t, s);
    if (is_int(t) && may(op::rem, t) && chance(50)) x.node = node(op::rem, t, s, {x.node, constant(t, s, 5)}); // many equal ones
    shape to = form;
    to.extent[axis] = variant == 3 ? form.extent[axis] : between(1, form.extent[axis]);
    std::int32_t const r = r_.intern(to);
    int const both = node(o, t, r, {x.node}, {axis, variant % 2});
    keep(moved(x, node(op::result, t, r, {both}, {0}), r));
    keep(computed(node(op::result, dtype::i32, r, {both}, {1}), dtype::i32, r));
    return true;
  }
  case op::arg_reduce: {
    value const x = want(t, s);
    std::int32_t const to = reduced(false);
    keep(computed(node(o, dtype::i32, to, {x.node}, {static_cast<int>(variant % 2 ? reduce_op::min : reduce_op::max), axis, keeps}), dtype::i32, to));
    return true;
  }
  default: { // gather; the indices' extent along the axis is free
    if (!may(op::rem, dtype::i32)) return false;
    shape index = form;
    if (chance(50)) index.extent[axis] = std::max(1, std::min(extent(), static_cast<int>(options_.max_elements / std::max<std::int64_t>(1, form.elements() / form.extent[axis]))));
    for (int d = 0; d < form.rank; ++d)
      if (d != axis && chance(20)) index.extent[d] = between(1, form.extent[d]);
    std::int32_t const is = r_.intern(index);
    value const x = want(t, s, may_approximate);
    int i = index_into(form.extent[axis], is);
    if (chance(30) && may(op::cast, dtype::i32)) i = node(op::cast, dtype::i64, is, {i});
    keep(moved(x, node(o, t, is, {x.node, i}, {axis}), is));
    return true;
  }
  }
}

bool generator::dot_fallback(dtype t, int variant) {
  auto two = [&](int rows, int columns) { return r_.intern(shape{2, {rows, columns}}); };
  int const m = 1 << below(4), n = 1 << below(4), k = 1 << below(4);
  dtype const to = t == dtype::f64 ? dtype::f64 : t == dtype::i8 ? dtype::i32 : dtype::f32;
  return product(t, to, two(m, k), two(k, n), two(m, n), variant);
}

bool generator::product(dtype t, dtype to, std::int32_t a, std::int32_t b, std::int32_t c, int variant) {
  value const x = want(t, a, small_numbers), y = want(t, b, small_numbers);
  int left = x.node, right = y.node;
  // One operand, or both, from local memory.
  if (variant >= 2 && options_.local && may(op::local_store, t)) {
    right = filled_view(t, b, y.node);
    if (variant == 3) left = filled_view(t, a, x.node);
  }
  int const acc = variant % 2 ? want(to, c, is_float(to) ? small_numbers : anything).node : -1;
  value r = computed(node(op::dot, to, c, {left, right, acc}, {0}), to, c);
  r.loose_zero = is_float(to);
  r.maybe_nan = false;
  keep(r);
  return true;
}

// -- global memory -------------------------------------------------------------------------------------------------------

bool generator::global(op o, dtype t, int variant) {
  std::int32_t const s = any_shape();
  switch (o) {
  case op::ptr_add: case op::load: {
    argument a;
    a.type = t;
    a.holds = random_contents(t, anything);
    place const p = buffer(a, s, variant % 2 == 1);
    int const other = p.mask >= 0 && variant >= 2 ? want(t, s).node : -1;
    value v = described(node(op::load, t, s, {p.address, p.mask, other}, {variant == 2 ? 1 + below(4) : 0, below(3), variant == 0 && chance(30)}), t, s, a.holds);
    v.maybe_nan = is_float(t) && (v.maybe_nan || other >= 0);
    v.loose_zero = is_float(t) && other >= 0;
    v.small = v.small && other < 0;
    v.moderate = v.moderate && other < 0;
    keep(v);
    return true;
  }
  case op::store: {
    value const v = want(t, s, may_approximate);
    store(v);
    return true;
  }
  case op::extent: case op::stride: case op::array_data: {
    if (!options_.arrays) return false;
    argument a;
    a.kind = node_kind::array;
    a.type = t;
    a.holds = contents::values;
    a.rank = between(1, 3);
    std::int64_t n = 1;
    for (int d = a.rank - 1; d >= 0; --d) {
      a.extent[d] = between(1, 9);
      a.stride[d] = n;
      n *= a.extent[d];
    }
    a.elements = n;
    int const array = parameter(a);
    if (o == op::array_data) {
      int const p = push(o, t, node_kind::pointer, 0, {array});
      keep(described(node(op::load, t, 0, {p, -1, -1}, {0, 0, 0}), t, 0, a.holds));
    } else {
      keep(computed(node(o, dtype::i64, 0, {array}, {below(a.rank)}), dtype::i64, 0));
    }
    return true;
  }
  default: { // region
    if (!options_.arrays) return false;
    std::int32_t const box = tile_shape();
    if (variant % 2) {
      value const v = want(t, box, may_approximate);
      place const p = array(t, box, contents::zeros, true, v.approximate);
      int const mask = variant == 3 ? want(dtype::b1, box).node : -1;
      push(op::store, {}, node_kind::none, 0, {p.address, v.node, mask}, {0, 0});
      return true;
    }
    contents const c = random_contents(t, anything);
    place const p = array(t, box, c, false, false);
    int const mask = variant == 2 ? want(dtype::b1, box).node : -1, other = variant == 2 ? want(t, box).node : -1;
    value v = described(node(op::load, t, box, {p.address, mask, other}, {0, 0, 0}), t, box, c);
    if (other >= 0) {
      v.small = v.moderate = false;
      v.maybe_nan = v.loose_zero = is_float(t);
    }
    keep(v);
    return true;
  }
  }
}

bool generator::atomic(op o, dtype t, int variant) {
  if (!options_.atomics) return false;
  auto const r = static_cast<atomic_op>(variant % 7);
  bool const word = bits_of(t) >= 32, bitwise = r == atomic_op::bit_and || r == atomic_op::bit_or || r == atomic_op::bit_xor;
  if (o == op::atomic_rmw) {
    if (bitwise && !is_int(t)) return false;
    if ((r == atomic_op::min || r == atomic_op::max || r == atomic_op::xchg) && !word) return false;
  }
  std::int32_t const s = any_shape();
  argument a;
  a.type = t;
  a.is_output = true;
  // Small numbers: additions stay exact, and there are no subnormals that a target may flush.
  a.holds = is_float(t) || o == op::atomic_cas ? contents::small : contents::values;
  place const p = buffer(a, s, chance(30));
  int const order = below(4), scope = below(3);
  unsigned const needs = is_float(t) ? small_numbers : anything;
  int n = -1;
  if (o == op::atomic_cas) {
    value const expected = want(t, s, small_numbers), desired = want(t, s);
    n = node(o, t, s, {p.address, expected.node, desired.node, p.mask}, {order, scope});
  } else {
    value const v = want(t, s, needs);
    n = node(o, t, s, {p.address, v.node, p.mask}, {static_cast<int>(r), order, scope});
  }
  value old = described(n, t, s, a.holds);
  old.loose_zero = is_float(t);
  keep(old);
  // Many elements, all CTAs, one address: exact on integers whatever the order; what was there before is not.
  if (o == op::atomic_rmw && is_int(t) && r != atomic_op::xchg && chance(50)) {
    argument one = a;
    one.kind = node_kind::pointer;
    one.elements = 1;
    int const base = parameter(one);
    int const address = s == 0 ? base : push(op::broadcast, t, node_kind::pointer, s, {base});
    node(o, t, s, {address, want(t, s).node, -1}, {static_cast<int>(r), 0, 1});
  }
  return true;
}

// -- local memory --------------------------------------------------------------------------------------------------------

int generator::shared_storage() {
  buffer_info info;
  info.type = dtype::u8;
  info.shape = r_.intern({1, {storage_bytes}});
  info.role = buffer_role::spec;
  info.name = chance(50) ? r_.add_string("storage") : -1;
  info.node = push(op::alloc, dtype::u8, node_kind::buffers, info.shape, {}, {r_.buffers.size()});
  r_.buffers.add() = info;
  return info.node;
}
int generator::allocate(dtype t, std::int32_t s, int slots, bool shares) {
  // What is filled and read before the next one is made may lie over the others.
  if (shares && storage_ < 0 && depth_ == 0 && chance(30)) storage_ = shared_storage();
  shares = shares && storage_ >= 0 && chance(60);
  int const b = shares ? push(op::alloc, t, node_kind::buffers, s, {storage_}, {r_.buffers.size()})
                       : push(op::alloc, t, node_kind::buffers, s, {}, {r_.buffers.size()});
  buffer_info info;
  info.type = t;
  info.slots = slots;
  info.shape = s;
  info.alignment = chance(20) ? 256 : 0;
  if (shares) {
    info.role = buffer_role::peer;
    info.alignment = 0;
    info.place.offset = 128 * below(32);
    int const pitch = static_cast<int>((bytes_of(t, part(s)) + 127) / 128 + below(3)) * 128;
    if (chance(50)) { // the slots of one group, in mixed radix
      info.place.levels = 1;
      info.place.radix[0] = {slots > 1 ? slots : 2, pitch};
      info.slots = info.place.radix[0].count;
      info.place.stride = info.slots * pitch;
    } else if (chance(50)) {
      info.place.stride = pitch;
    }
  }
  if (!shares && chance(30)) info.layout = random_layout(shape_at(s));
  info.node = b;
  info.name = chance(50) ? r_.add_string("buffer") : -1;
  r_.buffers.add() = info;
  return b;
}
slot_layout generator::random_layout(shape const& s) {
  slot_layout l;
  switch (below(4)) {
  case 0: // columns first, rows a little apart
    for (int d = 0, step = 1; d < s.rank && s.rank <= slot_layout::most_modes; ++d) {
      l.mode[l.modes++] = {s.extent[d], step};
      step = step * s.extent[d] + below(3);
    }
    break;
  case 1:
    l.padding[l.paddings++] = {1 << below(7), 1 + below(9)};
    break;
  case 2:
    l.padding[l.paddings++] = {1 << below(4), 1};
    l.padding[l.paddings++] = {32 << below(3), 1 + below(4)};
    break;
  default: // a slice of rows must not cut an atom, and rank 1 has no rows
    if (s.rank != 1) break;
    l.bits = 1 + below(3);
    l.base = below(4);
    l.shift = l.bits + below(3);
  }
  return l;
}
int generator::slot(int b, dtype t, std::int32_t s, int index) { return push(op::view_index, t, node_kind::view, s, {b, index}); }

int generator::filled_view(dtype t, std::int32_t s, int content) {
  int const v = slot(allocate(t, s, 1), t, s, constant(dtype::i32, 0, 0));
  push(op::local_store, {}, node_kind::none, 0, {v, content});
  return v;
}

bool generator::local(op o, dtype t, int variant) {
  if (!options_.local) return false;
  if (o == op::sync) {
    if (depth_ > 0) return false;
    push(op::sync, {}, node_kind::none, 0, {});
    return true;
  }
  std::int32_t s = tile_shape(o == op::view_trans ? 2 : 1);
  if (shape_at(s).rank > 5 || bytes_of(t, part(s)) > 8192) s = r_.intern(random_shape(o == op::view_trans ? 2 : 1));
  if (bytes_of(t, part(s)) > 8192) return false;
  shape const form = shape_at(s);
  int const slots = o == op::view_index || o == op::alloc ? between(1, 3) : 1;
  int const b = allocate(t, s, slots, true);
  std::vector<value> held;
  for (int i = 0; i < slots; ++i) {
    held.push_back(want(t, s, may_approximate));
    push(op::local_store, {}, node_kind::none, 0, {slot(b, t, s, constant(dtype::i32, 0, i)), held.back().node});
  }
  int const which = below(slots);
  int index = constant(variant % 2 ? dtype::i32 : dtype::i64, 0, which);
  if (o == op::view_index && variant >= 2) index = integer_argument(which); // not known before the launch
  int const v = slot(b, t, s, index);
  value const x = held[static_cast<std::size_t>(which)];
  auto read = [&](int view, std::int32_t to) { keep(moved(x, node(op::local_load, t, to, {view, -1}, {variant == 3}), to)); };
  switch (o) {
  case op::view_index: {
    if (variant % 2 == 0 || !may(op::view_index, t)) {
      read(v, s);
      return true;
    }
    shape to; // the outermost axis of a view
    to.rank = std::max(1, form.rank - 1);
    to.extent[0] = 1;
    for (int d = 1; d < form.rank; ++d) to.extent[d - 1] = form.extent[d];
    std::int32_t const row = r_.intern(to);
    read(push(o, t, node_kind::view, row, {v, constant(dtype::i32, 0, below(form.extent[0]))}), row);
    return true;
  }
  case op::view_trans: {
    int p[max_rank]{};
    for (int d = 0; d < form.rank; ++d) p[d] = form.rank - 1 - d;
    if (variant == 1 && form.rank > 2) std::swap(p[0], p[1]);
    shape to = form;
    for (int d = 0; d < form.rank; ++d) to.extent[d] = form.extent[p[d]];
    std::int32_t const r = r_.intern(to);
    int const turned = push(o, t, node_kind::view, r, {v}, {p[0], p[1], p[2], p[3], p[4], p[5]});
    if (variant == 0) push(op::local_store, {}, node_kind::none, 0, {turned, want(t, r).node});
    value y = computed(node(op::local_load, t, r, {turned, -1}, {0}), t, r);
    y.approximate = variant != 0 && x.approximate;
    y.loose_zero = is_float(t);
    keep(y);
    return true;
  }
  case op::view_slice: {
    shape to = form;
    std::int32_t offsets[max_rank]{};
    for (int d = 0; d < form.rank; ++d) {
      int const lowest = form.extent[d] & -form.extent[d]; // powers of two that divide the extent
      if (lowest > 1 && chance(70)) to.extent[d] = std::max(1, lowest >> below(3));
      bool const narrowed = to.extent[d] != form.extent[d];
      int const offset = narrowed ? to.extent[d] * below(form.extent[d] / to.extent[d]) : 0;
      offsets[d] = narrowed && chance(30) ? integer_argument(offset) : constant(dtype::i32, 0, offset);
    }
    std::int32_t const r = r_.intern(to);
    int const n = r_.begin_node(o, {t, node_kind::view, r}, site(++line_, "random"));
    r_.add_operand(v);
    for (int d = 0; d < form.rank; ++d) r_.add_operand(offsets[d]);
    if (variant == 1) push(op::local_store, {}, node_kind::none, 0, {n, want(t, r).node});
    read(n, r);
    values_.back().loose_zero = is_float(t);
    values_.back().maybe_nan = is_float(t);
    values_.back().small = values_.back().moderate = false;
    return true;
  }
  case op::view_reshape: {
    shape to;
    to.extent[to.rank++] = static_cast<int>(form.elements());
    if (variant == 1 && form.elements() % 2 == 0) {
      to.extent[0] /= 2;
      to.extent[to.rank++] = 2;
    }
    std::int32_t const r = r_.intern(to);
    read(push(o, t, node_kind::view, r, {v}), r);
    return true;
  }
  case op::local_gather: {
    if (!may(op::rem, dtype::i32)) return false;
    int const axis = below(form.rank);
    shape index = form;
    if (variant == 1) index.extent[axis] = std::max(1, form.extent[axis] / 2);
    std::int32_t const is = r_.intern(index);
    keep(moved(x, node(o, t, is, {v, index_into(form.extent[axis], is), -1}, {axis}), is));
    return true;
  }
  case op::local_scatter: { // each place once: the axis backwards
    int const axis = below(form.rank);
    int const along = node(op::iota, dtype::i32, s, {}, {axis, 0});
    if (!may(op::sub, dtype::i32)) return false;
    int const back = node(op::sub, dtype::i32, s, {constant(dtype::i32, s, form.extent[axis] - 1), along});
    value const y = want(t, s, may_approximate);
    push(o, {}, node_kind::none, 0, {v, y.node, back}, {axis, variant % 2});
    keep(moved(y, node(op::local_load, t, s, {v, -1}, {0}), s));
    return true;
  }
  default: read(v, s); return true;
  }
}

bool generator::asynchronous(op, dtype t, int variant) {
  if (!options_.asynchronous || !options_.local || depth_ > 0) return false;
  std::int32_t const s = r_.intern(random_shape(between(1, 2)));
  if (bytes_of(t, part(s)) > 8192) return false;
  int const v = slot(allocate(t, s, 1), t, s, constant(dtype::i32, 0, 0));
  bool const region = options_.arrays && variant % 2 == 1;
  argument a;
  a.type = t;
  a.holds = random_contents(t, anything);
  place const p = region ? array(t, s, a.holds, false, false) : buffer(a, s, variant == 2);
  int const other = region || p.mask >= 0 ? want(t, s).node : -1; // without it those elements are unspecified
  int const token = push(op::async_load, dtype::b1, node_kind::token, 0, {p.address, v, p.mask, other}, {variant == 3 ? 1 : 0, 0, 0, 0});
  int const group = variant % 2 ? push(op::async_commit, dtype::b1, node_kind::token, 0, {token}) : push(op::async_commit, dtype::b1, node_kind::token, 0, {});
  int const wait = variant >= 2 ? push(op::async_wait, dtype::b1, node_kind::token, 0, {group}, {0}) : push(op::async_wait, dtype::b1, node_kind::token, 0, {}, {0});
  value r = described(node(op::local_load, t, s, {v, wait}, {0}), t, s, a.holds);
  if (other >= 0) {
    r.small = r.moderate = false;
    r.maybe_nan = r.loose_zero = is_float(t);
  }
  keep(r);
  return true;
}

// -- checks and hints ----------------------------------------------------------------------------------------------------

bool generator::checks(op o, dtype t, int variant) {
  switch (o) {
  case op::device_assert: {
    if (!options_.checks) return false;
    std::int32_t const s = any_shape();
    value const x = want(dtype::i32, s);
    int const same = node(op::eq, dtype::b1, s, {x.node, x.node});
    push(o, {}, node_kind::none, 0, {same}, {r_.add_string(variant ? "an integer differs from itself" : "")});
    return true;
  }
  case op::device_print: {
    if (!options_.prints) return false;
    push(o, {}, node_kind::none, 0, {want(t, any_shape()).node}, {r_.add_string("value")});
    return true;
  }
  case op::assume: {
    if (!options_.checks) return false;
    push(o, {}, node_kind::none, 0, {node(op::ge, dtype::b1, 0, {pid(), constant(dtype::i32, 0, 0)})});
    return true;
  }
  case op::prefetch: {
    std::int32_t const s = any_shape();
    argument a;
    a.type = t;
    a.holds = contents::zeros;
    place const p = buffer(a, s, chance(30));
    push(o, {}, node_kind::none, 0, {p.address, p.mask}, {below(2)});
    return true;
  }
  case op::multiple_of: {
    std::int32_t const s = any_shape();
    int const n = 1 << below(5);
    value const x = want(t, s);
    int const multiple = node(op::mul, t, s, {x.node, constant(t, s, n)});
    keep(computed(node(o, t, s, {multiple}, {n}), t, s));
    return true;
  }
  default: {
    // Consecutive in the type only as far as it does not wrap.
    auto const longest = [&](std::int32_t s) { return shape_at(s).extent[shape_at(s).rank - 1]; };
    std::int32_t s = tile_shape();
    for (int tries = 0; bits_of(t) == 8 && longest(s) > 127; s = tile_shape())
      if (++tries == 100) return false;
    int const last = shape_at(s).rank - 1, most = longest(s), start = bits_of(t) == 8 ? 0 : between(0, 7);
    int n = 1;
    while (2 * n <= most && chance(80)) n *= 2;
    keep(computed(node(o, t, s, {node(op::iota, t, s, {}, {last, start})}, {n}), t, s));
    return true;
  }
  }
}

} // namespace kiln_test
