// Levels and lanes: loops that are open, values that know where they vary, and pulling a node's value at coordinates.
#include "writer.hpp"

#include <limits>

#include <llvm/Support/MathExtras.h>

namespace kiln::jit::host {

namespace {

// Lanes are sums modulo 2^64: a graph's own integers may be any, and wrap there as they do here.
std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

std::int64_t wrapping_mul(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

}  // namespace

// -- levels
// ------------------------------------------------------------------------------------------------------------

void writer::begin_levels() {
  levels_.clear();
  levels_.emplace_back();
  levels_.back().tail = b.GetInsertBlock();
  here_ = 0;
}

void writer::end_levels() {
  levels_.clear();
  levels_.emplace_back();
  levels_.back().tail = b.GetInsertBlock();
  here_ = 0;
}

// The block in front of a loop stays open until the loop is closed, so that invariant code can still be put there.
lanes writer::open_loop(std::int64_t trip, std::int64_t step) {
  levels_.back().tail = b.GetInsertBlock();
  level l;
  l.head = l.tail = llvm::BasicBlock::Create(c, "loop", function_);
  l.trip = trip;
  l.step = step;
  b.SetInsertPoint(l.head);
  l.counter = b.CreatePHI(b.getInt64Ty(), 2, "i");
  levels_.push_back(std::move(l));
  here_ = deepest();
  lanes r;
  r.terms.push_back({levels_.back().counter, here_, 1});
  return r;
}

void writer::close_loop() {
  level l = std::move(levels_.back());
  levels_.pop_back();
  here_ = deepest();
  auto* exit = llvm::BasicBlock::Create(c, "after", function_);
  Value* next = b.CreateAdd(l.counter, b.getInt64(static_cast<std::uint64_t>(l.step)), "", true, true);
  b.CreateCondBr(b.CreateICmpULT(next, b.getInt64(static_cast<std::uint64_t>(l.trip))), l.head, exit);
  l.counter->addIncoming(next, b.GetInsertBlock());
  llvm::BasicBlock* before = levels_.back().tail;
  b.SetInsertPoint(before);
  b.CreateBr(l.head);
  l.counter->addIncoming(b.getInt64(0), before);
  levels_.back().tail = exit;
  b.SetInsertPoint(exit);
}

// -- lanes
// -------------------------------------------------------------------------------------------------------------

Value* writer::scalar_of(lanes const& l, Type* t) {
  assert(l.uniform());
  if (l.terms.empty() && l.add == 0 && l.v) return l.v;
  llvm::SmallVector<term, 3> terms = l.terms;
  std::sort(terms.begin(), terms.end(), [](term const& p, term const& q) { return p.level < q.level; });
  Value* sum = l.v;
  int at = l.v ? l.level : 0;
  for (const term& x : terms) {
    at = std::max(at, x.level);
    sum = on(at, [&] {
      Value* i = b.CreateIntCast(x.index, t, false);
      if (x.scale != 1) i = b.CreateMul(i, e.integer(t, static_cast<std::uint64_t>(x.scale)));
      return sum ? b.CreateAdd(sum, i) : i;
    });
  }
  if (l.add != 0 || !sum) {
    Value* k = llvm::ConstantInt::get(
        t, llvm::APInt(t->getScalarSizeInBits(), static_cast<std::uint64_t>(l.add), false, true));
    sum = sum ? on(at, [&] { return b.CreateAdd(sum, k); }) : k;
  }
  return sum;
}

Value* writer::vector_of(lanes const& l, Type* t) {
  if (l.vector) return l.v;
  if (width_ == 1) return scalar_of(l, t);
  if (l.step == 0) {
    Value* s = scalar_of(l, t);
    return on(l.deepest(), [&] { return b.CreateVectorSplat(width_, s); });
  }
  lanes base = l;
  base.step = 0;
  llvm::SmallVector<llvm::Constant*, 64> steps;
  for (unsigned i = 0; i < width_; ++i)
    steps.push_back(llvm::ConstantInt::get(
        t, llvm::APInt(t->getScalarSizeInBits(), static_cast<std::uint64_t>(l.step) * i, false, true)));
  Value* count = llvm::ConstantVector::get(steps);
  if (!base.affine()) return on(l.level, [&] { return b.CreateAdd(b.CreateVectorSplat(width_, l.v), count); });
  Value* s = scalar_of(base, t);
  return on(l.deepest(), [&] { return b.CreateAdd(b.CreateVectorSplat(width_, s), count); });
}

lanes writer::sum(lanes const& x, lanes const& y, Type* t, bool negative) {
  if (x.vector || y.vector) {
    Value *p = vector_of(x, t), *q = vector_of(y, t);
    const int level = std::max(x.deepest(), y.deepest());
    return of(on(level, [&] { return negative ? b.CreateSub(p, q) : b.CreateAdd(p, q); }), level, true);
  }
  lanes r = x;
  const std::int64_t sign = negative ? -1 : 1;
  if (y.v) {
    r.level = std::max(x.v ? x.level : 0, y.level);
    Value* left = x.v ? x.v : negative ? llvm::ConstantInt::get(t, 0) : nullptr;
    r.v = !left ? y.v : on(r.level, [&] { return negative ? b.CreateSub(left, y.v) : b.CreateAdd(left, y.v); });
    if (auto* k = llvm::dyn_cast<llvm::ConstantInt>(r.v); k && k->isZero()) {
      r.v = nullptr;
      r.level = 0;
    }
  }
  for (const term& u : y.terms) {
    bool merged = false;
    for (term& w : r.terms)
      if (w.index == u.index) {
        w.scale = wrapping_add(w.scale, wrapping_mul(sign, u.scale));
        merged = true;
      }
    if (!merged) r.terms.push_back({u.index, u.level, wrapping_mul(sign, u.scale)});
  }
  llvm::erase_if(r.terms, [](term const& w) { return w.scale == 0; });
  r.add = wrapping_add(r.add, wrapping_mul(sign, y.add));
  r.step = wrapping_add(r.step, wrapping_mul(sign, y.step));
  return r;
}

lanes writer::scaled(lanes const& a, std::int64_t factor, Type* t) {
  if (factor == 1) return a;
  lanes r = a;
  if (a.v) {
    Value* k = llvm::ConstantInt::get(
        t, llvm::APInt(t->getScalarSizeInBits(), static_cast<std::uint64_t>(factor), false, true));
    r.v = on(a.level, [&] { return b.CreateMul(a.v, a.vector && width_ > 1 ? b.CreateVectorSplat(width_, k) : k); });
  }
  for (term& u : r.terms) u.scale = wrapping_mul(u.scale, factor);
  r.add = wrapping_mul(r.add, factor);
  r.step = wrapping_mul(r.step, factor);
  if (factor == 0) r = number(0);
  return r;
}

// To i64. Without `assume_no_wrap` the sum must be known to stay inside its type, or it is computed there first.
lanes writer::widened(lanes const& a, dtype from, bool assume_no_wrap) {
  Type* i64 = b.getInt64Ty();
  const int bits = bits_of(from);
  if (bits == 64) return a;
  const bool is_signed_from = is_signed_int(from);
  auto extend = [&](Value* v) {
    Type* to = emit::emitter::shaped(i64, v->getType());
    return is_signed_from ? b.CreateSExt(v, to) : b.CreateZExt(v, to);
  };
  lanes r = a;
  if (a.vector) {
    r.v = on(a.level, [&] { return extend(a.v); });
    return r;
  }
  bool fits = assume_no_wrap && bits >= 32;
  if (!a.v && !fits) {
    std::int64_t low = a.add, high = a.add;
    bool exact = true;
    auto grow = [&](std::int64_t scale, std::int64_t trip) {
      std::int64_t x = 0;
      exact = exact && !llvm::MulOverflow(scale, trip - 1, x);
      std::int64_t& end = x < 0 ? low : high;
      exact = exact && !llvm::AddOverflow(end, x, end);
    };
    grow(a.step, static_cast<std::int64_t>(width_));
    for (const term& u : a.terms) grow(u.scale, levels_[static_cast<std::size_t>(u.level)].trip);
    const std::int64_t least = is_signed_from ? -(std::int64_t{1} << (bits - 1)) : 0;
    const std::int64_t most = (std::int64_t{1} << (is_signed_from ? bits - 1 : bits)) - 1;
    fits = exact && low >= least && high <= most;
  }
  if (fits || (a.terms.empty() && a.add == 0 && a.step == 0)) {
    if (a.v) r.v = on(a.level, [&] { return extend(a.v); });
    return r;
  }
  Type* t = carrier(from);
  const int level = a.deepest();
  if (a.step == 0 || width_ == 1) {
    Value* s = scalar_of(a, t);
    return of(on(level, [&] { return extend(s); }), level, false);
  }
  Value* v = vector_of(a, t);
  return of(on(level, [&] { return extend(v); }), level, true);
}

// -- coordinates
// -------------------------------------------------------------------------------------------------------

coordinates writer::through_broadcast(shape const& from, shape const& to, coordinates const& x) {
  coordinates r;
  for (int d = 0; d < from.rank; ++d) {
    const int at = d + (to.rank - from.rank);
    r.push_back(from.extent[d] == 1 ? number(0) : x[static_cast<std::size_t>(at)]);
  }
  return r;
}

coordinates writer::through_squeeze(shape const& from, shape const& to, coordinates const& x) {
  coordinates r;
  int j = 0;
  for (int d = 0; d < from.rank; ++d) {
    if (from.extent[d] == 1) {
      r.push_back(number(0));
      continue;
    }
    while (to.extent[j] == 1) ++j;
    r.push_back(x[static_cast<std::size_t>(j++)]);
  }
  return r;
}

// x are coordinates in `to`; the same element's in `from`.
coordinates writer::through_reshape(shape const& from, shape const& to, coordinates const& x) {
  if (is_squeeze(from, to)) return through_squeeze(from, to, x);
  Type* i64 = b.getInt64Ty();
  lanes flat = number(0);
  std::int64_t stride = 1;
  for (int d = to.rank - 1; d >= 0; --d) {
    flat = sum(flat, scaled(x[static_cast<std::size_t>(d)], stride, i64), i64);
    stride *= to.extent[d];
  }
  coordinates r(static_cast<std::size_t>(from.rank));
  if (from.rank == 1) {
    r[0] = flat;
    return r;
  }
  const bool uniform = flat.uniform();
  const int level = flat.deepest();
  Value* rest = uniform ? scalar_of(flat, i64) : vector_of(flat, i64);
  for (int d = from.rank - 1; d >= 0; --d) {
    auto* k = llvm::ConstantInt::get(rest->getType(), static_cast<std::uint64_t>(from.extent[d]));
    Value* low = d == 0 ? rest : on(level, [&] { return b.CreateURem(rest, k); });
    r[static_cast<std::size_t>(d)] = from.extent[d] == 1 ? number(0) : of(low, level, !uniform && width_ > 1);
    if (d > 0) rest = on(level, [&] { return b.CreateUDiv(rest, k); });
  }
  return r;
}

// -- pulling
// -----------------------------------------------------------------------------------------------------------

namespace {

void put(std::string& key, std::uint64_t x) { key.append(reinterpret_cast<char const*>(&x), sizeof x); }

std::string key_of(int n, unsigned width, bool index, coordinates const& x) {
  std::string key;
  put(key, static_cast<std::uint64_t>(n) << 16 | width << 1 | index);
  for (const lanes& l : x) {
    put(key, reinterpret_cast<std::uintptr_t>(l.v) + l.vector);
    put(key, static_cast<std::uint64_t>(l.add));
    put(key, static_cast<std::uint64_t>(l.step));
    put(key, l.terms.size());
    for (const term& t : l.terms) {
      put(key, reinterpret_cast<std::uintptr_t>(t.index));
      put(key, static_cast<std::uint64_t>(t.scale));
    }
  }
  return key;
}

} // namespace

lanes writer::pull(int n, coordinates const& x, bool index) {
  const node& d = g[n];
  if (d.code == op::constant && d.kind == node_kind::value) return of(constant_of(d.type, g.attribute(n, 0)), 0, false);
  if (d.code == op::unset) return of(constant_of(d.type, 0), 0, false);
  if (g.shape_of(n).rank == 0) return of(scalar_value(n), 0, false);
  if (!is_int(d.type)) index = false;
  const std::string key = key_of(n, width_, index, x);
  for (int l = deepest(); l >= 0; --l) {
    auto& memo = levels_[static_cast<std::size_t>(l)].memo;
    if (auto found = memo.find(key); found != memo.end()) return found->second;
  }
  lanes r;
  if (plan_.kept[static_cast<std::size_t>(n)])
    r = read_slice(plan_.slice_of[static_cast<std::size_t>(n)], g.shape_of(n), x);
  else r = pull_fresh(n, x, index);
  levels_[static_cast<std::size_t>(r.deepest())].memo[key] = r;
  return r;
}

// Makes `value` what pulling n at x gives while the strip lasts.
void writer::remember(int n, coordinates const& x, lanes const& value) {
  auto& memo = levels_[static_cast<std::size_t>(value.deepest())].memo;
  memo[key_of(n, width_, false, x)] = value;
  memo[key_of(n, width_, true, x)] = value;
}

lanes writer::pull_fresh(int n, coordinates const& x, bool index) {
  const node& d = g[n];
  const int s = d.operand_count > 0 ? g.operand(n, 0) : -1;
  switch (d.code) {
  case op::iota: {
    lanes r = x[static_cast<std::size_t>(g.attribute(n, 0))];
    if (r.vector) {
      Type* t = carrier(d.type, width_);
      r.v = on(r.level, [&] {
        Value* v = b.CreateIntCast(r.v, t, false);
        return b.CreateAdd(v, e.integer(t, static_cast<std::uint64_t>(g.attribute(n, 1))));
      });
      return r;
    }
    if (r.v) r.v = on(r.level, [&] { return b.CreateIntCast(r.v, carrier(d.type), false); });
    r.add = wrapping_add(r.add, g.attribute(n, 1));
    return r;
  }
  case op::broadcast: return pull(s, through_broadcast(g.shape_of(s), g.shape_of(n), x), index);
  case op::reshape: {
    const shape &from = g.shape_of(s), &to = g.shape_of(n);
    if (from.rank == 0) return pull(s, {}, index);
    const bool stored = plan_.kept[static_cast<std::size_t>(s)] || g[s].code == op::var_get || g[s].code == op::result;
    if (!is_squeeze(from, to) && stored) { // flat in the arena
      int sl = plan_.slice_of[static_cast<std::size_t>(s)];
      if (g[s].code == op::result)
        sl = plan_.slice_of[static_cast<std::size_t>(g.operand(s, 0))] + static_cast<int>(g.attribute(s, 0));
      else if (!plan_.kept[static_cast<std::size_t>(s)]) sl = plan_.slice_of[static_cast<std::size_t>(g.operand(s, 0))];
      return read_slice(sl, to, x);
    }
    return pull(s, through_reshape(from, to, x), index);
  }
  case op::trans: {
    coordinates y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[static_cast<std::size_t>(g.attribute(n, static_cast<int>(i)))] = x[i];
    return pull(s, y, index);
  }
  case op::split: {
    coordinates y = x;
    y.push_back(number(g.attribute(n, 0)));
    return pull(s, y, index);
  }
  case op::gather: {
    const int i = g.operand(n, 1);
    coordinates y = x;
    y[static_cast<std::size_t>(g.attribute(n, 0))] = widened(pull(i, x, true), g[i].type, true);
    return pull(s, y);
  }
  case op::result:
    return read_slice(plan_.slice_of[static_cast<std::size_t>(s)] + static_cast<int>(g.attribute(n, 0)), g.shape_of(n),
                      x);
  case op::var_get: return read_slice(plan_.slice_of[static_cast<std::size_t>(s)], g.shape_of(n), x);
  case op::load: {
    const guarded a = pull_access(s, g.operand(n, 1), x);
    if (const int o = g.operand(n, 2); o >= 0) {
      const lanes other = pull(o, x);
      return read_guarded(a, d.type, &other, g.attribute(n, 2) != 0);
    }
    return read_guarded(a, d.type, nullptr, g.attribute(n, 2) != 0);
  }
  case op::local_load: return read(view_address(s, x), d.type, false, true);
  case op::local_gather: {
    const int i = g.operand(n, 1);
    coordinates y = x;
    y[static_cast<std::size_t>(g.attribute(n, 0))] = widened(pull(i, x, true), g[i].type, true);
    return read(view_address(s, y), d.type, false, true);
  }
  default: break;
  }
  if (has(d.code, trait::elementwise)) return pull_elementwise(n, x, index);
  refuse(n, "has no value at a coordinate");
}

lanes writer::pull_elementwise(int n, coordinates const& x, bool index) {
  const node& d = g[n];
  const int count = d.operand_count;
  // Integers that count along lanes stay symbolic through additions, multiplication by a constant, and conversions.
  const bool integer = is_int(d.type) && is_int(g[g.operand(n, 0)].type);
  const bool linear = integer && (d.code == op::add || d.code == op::sub || d.code == op::mul || d.code == op::neg ||
                                  d.code == op::cast || d.code == op::multiple_of || d.code == op::max_contiguous || d.code == op::require_layout ||
                                  d.code == op::release_layout);
  llvm::SmallVector<lanes, 3> in;
  for (int i = 0; i < count; ++i) in.push_back(pull(g.operand(n, i), x, linear && index));
  if (linear) {
    Type* t = carrier(d.type);
    auto symbolic = [](lanes const& l) { return !l.vector && l.affine(); };
    if ((d.code == op::add || d.code == op::sub) && !in[0].vector && !in[1].vector &&
        (symbolic(in[0]) || symbolic(in[1])))
      return sum(in[0], in[1], t, d.code == op::sub);
    if (d.code == op::mul)
      for (int i = 0; i < 2; ++i) {
        const lanes &a = in[static_cast<std::size_t>(i)], &k = in[static_cast<std::size_t>(1 - i)];
        auto* constant = k.affine() || k.vector ? nullptr : llvm::dyn_cast<llvm::ConstantInt>(k.v);
        if (symbolic(a) && constant) return scaled(a, constant->getSExtValue(), t);
      }
    if (d.code == op::neg && symbolic(in[0])) return scaled(in[0], -1, t);
    if (d.code == op::multiple_of || d.code == op::max_contiguous || d.code == op::require_layout || d.code == op::release_layout) return in[0];
    if (d.code == op::cast && symbolic(in[0])) {
      const dtype from = g[g.operand(n, 0)].type;
      if (bits_of(d.type) <= bits_of(from)) {
        lanes r = in[0];
        if (r.v) r.v = on(r.level, [&] { return b.CreateIntCast(r.v, t, false); });
        return r;
      }
      lanes wide = widened(in[0], from, index);
      if (bits_of(d.type) == 64) return wide;
      if (!wide.vector) { // i8 or i16 to i16 or i32: the sum is known to fit, or was made a value
        if (wide.v) wide.v = on(wide.level, [&] { return b.CreateTrunc(wide.v, t); });
        return wide;
      }
      wide.v = on(wide.level, [&] { return b.CreateTrunc(wide.v, vector_type(t, width_)); });
      return wide;
    }
  }
  bool uniform = true;
  int level = 0;
  for (const lanes& l : in) {
    uniform = uniform && l.uniform();
    level = std::max(level, l.deepest());
  }
  llvm::SmallVector<Value*, 3> values;
  for (int i = 0; i < count; ++i) {
    Type* t = carrier(g[g.operand(n, i)].type);
    const lanes& l = in[static_cast<std::size_t>(i)];
    values.push_back(uniform ? scalar_of(l, t) : vector_of(l, t));
  }
  locate(n);
  return of(on(level, [&] { return apply(n, values); }), level, !uniform && width_ > 1);
}

unsigned writer::lanes_for(int bits, std::int64_t extent) const {
  unsigned w = std::max(1u, static_cast<unsigned>(cpu_.vector_bits / std::max(bits, 8)));
  w = std::min(w, 64u);
  while (static_cast<std::int64_t>(w) > extent) w /= 2;
  return w;
}

} // namespace kiln::jit::host
