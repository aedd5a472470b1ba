// Random graphs: arguments, values and the choice of steps. The recipe of each operation is in random_recipes.cpp.
#include "random_generator.hpp"

#include <kiln/graph/attribute_kind.hpp>
#include <kiln/graph/structure.hpp>

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace kiln_test {

bool not_random(op o) {
  switch (o) {
  case op::unset: case op::require_layout: case op::release_layout: case op::assert_layout: case op::dump_layout:
  case op::tensor_alloc: case op::tensor_dealloc: return true;
  default: return o >= op::alloc_barriers && o <= op::fence_barrier_init;
  }
}

bool accepts(op o, dtype t) {
  bool const computes = is_float(t) && !is_f8(t), word = bits_of(t) == 32 || bits_of(t) == 64;
  if (not_random(o)) return false;
  if (o == op::unset || o >= op::require_layout) return false; // tests/differential/storage_graphs.hpp
  switch (o) {
  case op::for_begin: case op::for_end: case op::iota: case op::program_id: case op::num_programs:
  case op::rem: case op::shl: case op::shr: case op::multiple_of: case op::max_contiguous:
    return is_int(t);
  case op::if_begin: case op::if_else: case op::if_end: case op::while_begin: case op::while_test: case op::while_end:
  case op::device_assert: case op::assume: case op::sync: // on conditions, or on nothing
    return is_bool(t);
  case op::histogram: return is_int(t);
  case op::philox: return t == dtype::u64;
  case op::combine_begin: case op::combine_arg: case op::combine_end: case op::result: case op::arg_reduce: case op::sort: case op::topk:
  case op::neg: case op::abs: case op::add: case op::sub: case op::mul: case op::div: case op::min: case op::max:
  case op::lt: case op::le: case op::gt: case op::ge:
    return is_arithmetic(t);
  case op::exp: case op::exp2: case op::log: case op::log2: case op::sqrt: case op::rsqrt: case op::sin: case op::cos:
  case op::tanh: case op::erf: case op::floor: case op::ceil: case op::round: case op::isnan: case op::fma:
    return computes;
  case op::bit_not: case op::bit_and: case op::bit_or: case op::bit_xor: return is_int(t) || is_bool(t);
  case op::bitcast: return !is_bool(t);
  case op::eq: case op::ne: return !is_f8(t);
  case op::reduce: case op::scan: return is_arithmetic(t) || is_bool(t);
  case op::dot: return is_float(t) || t == dtype::i8;
  case op::atomic_rmw: return (is_int(t) && word) || computes;
  case op::atomic_cas: return is_int(t) && word;
  default: return true; // moves elements
  }
}

generator::generator(std::uint64_t seed, generator_options const& options) : options_(options), random_(seed), seed_(seed) {
  grid_.x = between(1, 3);
  pid_ = node(op::program_id, dtype::i32, 0, {}, {0});
  for (int i = 0; i < 3; ++i) shapes_.push_back(r_.intern(random_shape(between(1, i == 0 ? 1 : 4))));
  shapes_.push_back(r_.intern(random_shape(2)));
}

int generator::extent() {
  if (options_.powers_of_two) return 1 << below(7);
  return one_of({1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 31, 32, 33, 48, 64, 100, 128});
}

shape generator::random_shape(int rank) {
  shape s;
  std::int64_t total = 1;
  for (int i = 0; i < rank; ++i) {
    int e = extent();
    while (total * e > options_.max_elements) e = e > 1 ? (options_.powers_of_two ? e / 2 : below(e) + 1) : 1;
    s.extent[s.rank++] = e;
    total *= e;
  }
  return s;
}

std::int32_t generator::tile_shape(int least_rank) {
  std::vector<std::int32_t> fitting;
  for (std::int32_t s : shapes_)
    if (shape_at(s).rank >= least_rank) fitting.push_back(s);
  if (!fitting.empty()) return fitting[static_cast<std::size_t>(below(static_cast<int>(fitting.size())))];
  return r_.intern(random_shape(least_rank));
}

int generator::push(op o, dtype t, node_kind k, std::int32_t s, std::initializer_list<std::int32_t> operands, std::initializer_list<std::int64_t> attributes) {
  return r_.push(o, {t, k, s}, operands, attributes, site(++line_, "random"));
}

int generator::constant_bits(dtype t, std::int32_t s, scalar v) {
  return node(op::constant, t, s, {}, {is_signed_int(t) ? int_of(v) : static_cast<std::int64_t>(v.bits)});
}
int generator::constant(dtype t, std::int32_t s, std::int64_t number) { return constant_bits(t, s, make_scalar(t, number)); }

int generator::spread(int scalar_node, dtype t, std::int32_t s) { return s == 0 ? scalar_node : node(op::broadcast, t, s, {scalar_node}); }

int generator::linear(std::int32_t s) {
  shape const form = shape_at(s);
  if (form.rank == 0) return constant(dtype::i32, 0, 0);
  int sum = -1;
  std::int64_t stride = 1;
  for (int axis = form.rank - 1; axis >= 0; stride *= form.extent[axis--]) {
    if (form.extent[axis] == 1 && sum >= 0) continue;
    int x = node(op::iota, dtype::i32, s, {}, {axis, 0});
    if (stride != 1) x = node(op::mul, dtype::i32, s, {x, constant(dtype::i32, s, stride)});
    sum = sum < 0 ? x : node(op::add, dtype::i32, s, {x, sum});
  }
  return sum;
}

value generator::keep(value v) {
  if (is_bool(v.type) || is_int(v.type)) v.maybe_nan = v.loose_zero = false;
  values_.push_back(v);
  return v;
}

int generator::parameter(argument a) {
  params_.push_back({.kind = a.kind, .type = a.type, .is_const = a.kind != node_kind::value && !a.is_output, .rank = static_cast<std::uint8_t>(a.rank)});
  arguments_.push_back(a);
  return -1 - static_cast<int>(arguments_.size());
}
int generator::integer_argument(int number, dtype t) {
  argument a;
  a.kind = node_kind::value;
  a.type = t;
  a.bits = make_scalar(t, static_cast<std::int64_t>(number)).bits;
  return parameter(a);
}

generator::place generator::buffer(argument a, std::int32_t s, bool masked) {
  std::int64_t const n = part(s);
  int const limit = masked ? between(0, static_cast<int>(n)) : static_cast<int>(n);
  a.kind = node_kind::pointer;
  a.elements = (grid_.x - 1) * n + limit; // nothing behind the last element that may be touched
  int const base = parameter(a);
  int const index = linear(s);
  int const start = node(op::mul, dtype::i32, 0, {pid(), constant(dtype::i32, 0, n)});
  int const offset = s == 0 ? start : node(op::add, dtype::i32, s, {index, spread(start, dtype::i32, s)});
  int const bases = s == 0 ? base : push(op::broadcast, a.type, node_kind::pointer, s, {base});
  place p{push(op::ptr_add, a.type, node_kind::pointer, s, {bases, offset})};
  if (masked) {
    int const bound = chance(50) ? integer_argument(limit) : constant(dtype::i32, 0, limit);
    p.mask = node(op::lt, dtype::b1, s, {index, spread(bound, dtype::i32, s)});
  }
  return p;
}

generator::place generator::array(dtype t, std::int32_t s, contents c, bool output, bool approximate) {
  shape const form = shape_at(s);
  argument a;
  a.kind = node_kind::array;
  a.type = t;
  a.holds = c;
  a.is_output = output;
  a.approximate = approximate;
  a.rank = form.rank;
  std::int64_t starts[max_rank]{};
  for (int d = 0; d < form.rank; ++d) {
    std::int64_t const all = d == 0 ? grid_.x * form.extent[0] : form.extent[d];
    a.extent[d] = std::max<std::int64_t>(1, all + between(-2, 3));
    // Starts before 0 and boxes past the end are fine: the array's bounds mask them. Along axis 0 CTAs stay apart.
    if (d > 0 && chance(40)) starts[d] = between(-2, 2);
  }
  // Row-major or the reverse, with or without padding; an input may repeat itself along an axis.
  std::int64_t stride = 1;
  bool const reversed = chance(30);
  for (int i = 0; i < form.rank; ++i) {
    int const d = reversed ? i : form.rank - 1 - i;
    a.stride[d] = stride;
    stride *= a.extent[d];
    if (chance(40)) stride += between(1, 5);
    if (!output && chance(10)) a.stride[d] = 0;
  }
  a.elements = 1;
  for (int d = 0; d < form.rank; ++d) a.elements += (a.extent[d] - 1) * a.stride[d];
  int const base = parameter(a);
  std::vector<std::int32_t> operands{base};
  for (int d = 0; d < form.rank; ++d) {
    int x = constant(dtype::i64, 0, starts[d]);
    if (d == 0) {
      int const rows = node(op::mul, dtype::i32, 0, {pid(), constant(dtype::i32, 0, form.extent[0])});
      x = node(op::cast, dtype::i64, 0, {rows});
    }
    operands.push_back(x);
  }
  int const box = r_.begin_node(op::region, {t, node_kind::region, s}, site(++line_, "random"));
  for (std::int32_t o : operands) r_.add_operand(o);
  return {box};
}

contents generator::random_contents(dtype t, unsigned needs) {
  if (needs & small_numbers) return contents::small;
  if (needs & moderate_numbers) return contents::moderate;
  if (chance(25)) return one_of({contents::small, contents::moderate});
  return options_.special && is_float(t) && !(needs & no_nan) && chance(40) ? contents::special : contents::values;
}

value generator::described(int node, dtype t, std::int32_t s, contents c) {
  value v{.node = node, .type = t, .shape = s};
  v.small = c == contents::small;
  v.moderate = c == contents::small || c == contents::moderate;
  v.maybe_nan = c == contents::special;
  return v;
}

bool generator::fits(value const& v, unsigned needs) {
  return (!v.approximate || (needs & may_approximate)) && (!v.maybe_nan || !(needs & no_nan)) && (!v.loose_zero || !(needs & signed_zero)) &&
         (v.small || !(needs & small_numbers)) && (v.moderate || !(needs & moderate_numbers));
}

value generator::want(dtype t, std::int32_t s, unsigned needs) {
  std::vector<value*> fitting;
  for (value& v : values_)
    if (v.type == t && shape_of(v) == shape_at(s) && fits(v, needs)) fitting.push_back(&v);
  if (fitting.empty() || chance(20)) return fresh(t, s, needs);
  value& v = *fitting[static_cast<std::size_t>(below(static_cast<int>(fitting.size())))];
  v.used = true;
  return v;
}

value generator::fresh(dtype t, std::int32_t s, unsigned needs) {
  int const kind = below(10);
  if (kind < 2) return random_constant(t, s, needs);
  if (kind == 2 && is_int(t) && s != 0 && !(needs & (small_numbers | moderate_numbers))) {
    int const axis = below(shape_at(s).rank);
    value v{.node = node(op::iota, t, s, {}, {axis, chance(50) ? 0 : between(0, 40)}), .type = t, .shape = s};
    v.used = true;
    return keep(v);
  }
  if (kind == 3 && s != 0) {
    value v = loaded(t, 0, needs);
    v.node = spread(v.node, t, s);
    v.shape = s;
    return keep(v);
  }
  if (kind == 4) {
    argument a;
    a.kind = node_kind::value;
    a.type = t;
    contents const c = random_contents(t, needs);
    a.holds = c;
    a.elements = 1;
    a.bits = element_at(fill(a, bits()), t, 0).bits;
    a.elements = 0;
    a.holds = contents::zeros;
    value v = described(spread(parameter(a), t, s), t, s, c);
    v.used = true;
    if (v.node >= 0) values_.push_back(v); // a bare parameter is no node of this recorder
    return v;
  }
  return loaded(t, s, needs);
}

value generator::loaded(dtype t, std::int32_t s, unsigned needs) {
  contents const c = random_contents(t, needs);
  bool const plain = (needs & (small_numbers | moderate_numbers)) != 0;
  int node_index = -1;
  if (options_.arrays && s != 0 && may(op::region, t) && chance(25)) {
    place const p = array(t, s, c, false, false);
    int const other = !plain && chance(50) ? random_constant(t, s, needs).node : -1;
    node_index = node(op::load, t, s, {p.address, -1, other}, {0, 0, 0});
  } else {
    argument a;
    a.type = t;
    a.holds = c;
    place const p = buffer(a, s, chance(30));
    int other = -1;
    if (p.mask >= 0 && !plain && chance(50)) other = random_constant(t, s, needs).node;
    std::int64_t const cache_hint = chance(20) ? between(0, 4) : 0, evict_hint = chance(20) ? between(0, 2) : 0;
    node_index = node(op::load, t, s, {p.address, p.mask, other}, {cache_hint, evict_hint, 0});
  }
  value v = described(node_index, t, s, c);
  if (is_float(t) && !(needs & no_nan)) v.maybe_nan = v.maybe_nan || !plain; // `other` may be NaN
  if (!plain) v.small = v.moderate = false;
  v.used = true;
  return keep(v);
}

value generator::random_constant(dtype t, std::int32_t s, unsigned needs) {
  argument a;
  a.type = t;
  a.elements = 1;
  a.holds = random_contents(t, needs);
  value v = described(constant_bits(t, s, element_at(fill(a, bits()), t, 0)), t, s, a.holds);
  v.used = true;
  return keep(v);
}

void generator::store(value const& v) {
  argument a;
  a.type = v.type;
  a.is_output = true;
  a.approximate = v.approximate;
  if (options_.arrays && v.shape != 0 && chance(20) && may(op::region, v.type)) {
    place const p = array(v.type, v.shape, contents::zeros, true, v.approximate);
    push(op::store, {}, node_kind::none, 0, {p.address, v.node, -1}, {0, 0});
    return;
  }
  place const p = buffer(a, v.shape, chance(20));
  push(op::store, {}, node_kind::none, 0, {p.address, v.node, p.mask}, {chance(10) ? 5 : 0, 0});
}

int generator::index_into(int extent, std::int32_t s) {
  // A random but in-range index: (a * coordinates + b) mod extent, on i32.
  int x = linear(s);
  int const factor = one_of({1, 1, 3, 5, 7});
  if (factor != 1) x = node(op::mul, dtype::i32, s, {x, constant(dtype::i32, s, factor)});
  x = node(op::add, dtype::i32, s, {x, constant(dtype::i32, s, below(extent))});
  return node(op::rem, dtype::i32, s, {x, constant(dtype::i32, s, extent)});
}

value generator::clamped(value v) {
  if (!is_float(v.type)) return v;
  int const low = node(op::max, v.type, v.shape, {v.node, constant(v.type, v.shape, -1)}, {0});
  v.node = node(op::min, v.type, v.shape, {low, constant(v.type, v.shape, 1)}, {0});
  return v;
}

int generator::uniform_condition() {
  int const a = chance(50) ? pid() : constant(dtype::i32, 0, between(-1, 2));
  int const b = chance(50) ? integer_argument(between(-1, 3)) : constant(dtype::i32, 0, between(-1, 2));
  op const o = one_of({op::lt, op::le, op::gt, op::ge, op::eq, op::ne});
  return node(may(o, dtype::i32) ? o : op::lt, dtype::b1, 0, {a, b});
}

void generator::body(int steps) {
  std::size_t const mark = values_.size();
  ++depth_;
  for (int i = 0; i < steps; ++i) step();
  change_cells();
  // What was made in here is not seen outside, but for what it stores.
  for (std::size_t i = mark; i < values_.size(); ++i)
    if (!values_[i].used && chance(70)) store(value(values_[i]));
  --depth_;
}

void generator::step() {
  for (int attempt = 0; attempt < 50; ++attempt) {
    op const o = static_cast<op>(below(op_count));
    dtype const t = static_cast<dtype>(below(dtype_count));
    if (emit(o, t, below(variants(o)))) return;
  }
}

generated generator::finish(std::string name) {
  std::vector<value> const all = values_;
  for (value const& v : all)
    if (!v.used) store(v);
  for (cell_info const& c : cells_) {
    value v = c.holds;
    v.node = node(op::var_get, v.type, v.shape, {c.node});
    store(v);
  }

  // Parameters first, then what was recorded.
  generated out;
  graph& g = out.graph;
  g.name = std::move(name);
  g.attrs.num_warps = one_of({1, 2, 4, 8});
  auto const shift = static_cast<std::int32_t>(params_.size());
  graph_view const body = r_.view();
  g.shapes.assign(body.shapes.begin(), body.shapes.end());
  g.attribute_pool.reserve(body.attribute_pool.size() + params_.size());
  g.add_file("");
  for (std::size_t i = 1; i <= body.files.size(); ++i) g.add_file(body.files[i - 1]);
  for (char const* s : body.strings) g.add_string(s);
  for (std::int32_t i = 0; i < shift; ++i) {
    param_info p = params_[static_cast<std::size_t>(i)];
    p.node = i;
    g.params.push_back(p);
    kiln::node n;
    n.code = op::param;
    n.type = p.type;
    n.kind = p.kind;
    n.attributes = static_cast<std::int32_t>(g.attribute_pool.size());
    g.attribute_pool.push_back(i);
    g.nodes.push_back(n);
  }
  for (int i = 0; i < body.size(); ++i) {
    kiln::node n = body[i];
    n.file = static_cast<std::uint8_t>(n.file + 1);
    n.operands = static_cast<std::int32_t>(g.operand_pool.size());
    n.attributes = static_cast<std::int32_t>(g.attribute_pool.size());
    for (std::int32_t o : body.operands(i)) g.operand_pool.push_back(o >= 0 ? o + shift : o == -1 ? -1 : -2 - o);
    auto const attributes = body.attributes_of(i);
    for (int a = 0; a < static_cast<int>(attributes.size()); ++a) {
      std::int64_t const x = attributes[static_cast<std::size_t>(a)];
      bool const is_node = kind_of_attribute(n.code, a) == attribute_kind::combine && x >= 0;
      g.attribute_pool.push_back(is_node ? x + shift : x);
    }
    g.nodes.push_back(n);
  }
  for (buffer_info b : body.buffers) {
    b.node += shift;
    g.buffers.push_back(b);
  }
  if (region_fault const f = link_regions(g); !f.ok()) throw std::logic_error("the generator made a graph whose regions do not nest: " + f.text);
  out.arguments = arguments_;
  out.grid = grid_;
  out.seed = seed_;
  return out;
}

generated random_graph(std::uint64_t seed, generator_options const& options) {
  generator g(seed, options);
  for (int i = 0; i < options.steps; ++i) g.step();
  return g.finish("random_" + std::to_string(seed));
}

generated single(op o, dtype t, std::uint64_t seed, generator_options const& options) {
  generator_options all = options;
  all.allow = nullptr;
  generator g(seed, all);
  bool made = false;
  for (int variant = 0; variant < generator::variants(o); ++variant) made |= g.emit(o, t, variant);
  if (!made) throw std::logic_error("the generator has no recipe for " + std::string(name_of(o)) + " on " + name_of(t));
  return g.finish(std::string(name_of(o)) + "_" + name_of(t));
}

std::vector<std::byte> fill(argument const& a, std::uint64_t seed) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15u + 12345);
  auto below = [&](std::uint64_t n) { return random() % n; };
  auto const size = static_cast<std::size_t>(bytes_of(a.type));
  std::vector<std::byte> bytes(static_cast<std::size_t>(a.elements) * size);
  if (a.holds == contents::zeros) return bytes;
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.elements); ++i) {
    scalar s{a.type, 0};
    if (is_bool(a.type)) {
      s.bits = below(2);
    } else if (a.holds == contents::small) {
      s = is_unsigned_int(a.type) ? make_scalar(a.type, static_cast<i64>(below(5))) : make_scalar(a.type, static_cast<i64>(below(9)) - 4);
    } else if (a.holds == contents::moderate) {
      if (is_int(a.type))
        s = make_scalar(a.type, static_cast<i64>(below(is_unsigned_int(a.type) ? 101 : 201)) - (is_unsigned_int(a.type) ? 0 : 100));
      else
        s = make_scalar(a.type, static_cast<double>(static_cast<i64>(below(1 << 20)) - (1 << 19)) / (1 << 15));
    } else if (is_int(a.type)) {
      s = scalar_from_bits(a.type, random());
      if (below(3) == 0) s = make_scalar(a.type, static_cast<i64>(below(7)) - 3);
    } else {
      u64 const kind = below(8);
      if (kind < 4) // around 1
        s = make_scalar(a.type, std::ldexp(static_cast<double>(static_cast<i64>(below(1 << 24)) - (1 << 23)), -20 - static_cast<int>(below(6))));
      else if (kind == 4)
        s = make_scalar(a.type, static_cast<i64>(below(9)) - 4);
      else // any pattern, subnormals and zeros of both signs among them
        s = scalar_from_bits(a.type, below(4) == 0 ? random() & (detail::format_of(a.type).sign_bit() | 7) : random());
      bool const finite = (s.bits & (detail::format_of(a.type).sign_bit() - 1)) <= detail::format_of(a.type).max_finite();
      if (a.holds == contents::special) {
        if (below(12) == 0) s = nan_of(a.type);
        else if (below(12) == 0) s = below(2) ? lowest_of(a.type) : highest_of(a.type);
        else if (is_nan(s)) s = nan_of(a.type);
      } else if (!finite) {
        s = make_scalar(a.type, 1);
      }
    }
    std::memcpy(bytes.data() + i * size, &s.bits, size);
  }
  return bytes;
}

scalar element_at(std::vector<std::byte> const& bytes, dtype t, std::int64_t i) {
  u64 b = 0;
  auto const size = static_cast<std::size_t>(bytes_of(t));
  std::memcpy(&b, bytes.data() + static_cast<std::size_t>(i) * size, size);
  return {t, b};
}

bool same_element(scalar a, scalar b, std::int64_t ulps) {
  if (a == b) return true;
  if (a.type != b.type || !is_float(a.type)) return false;
  if (is_nan(a) || is_nan(b)) return is_nan(a) && is_nan(b);
  u64 const sign = detail::format_of(a.type).sign_bit();
  auto order = [&](scalar s) {
    auto const magnitude = static_cast<i64>(s.bits & (sign - 1));
    return s.bits & sign ? -magnitude : magnitude;
  };
  i64 const x = order(a), y = order(b);
  return x == y || (ulps > 0 && (x > y ? x - y : y - x) <= ulps);
}

} // namespace kiln_test
