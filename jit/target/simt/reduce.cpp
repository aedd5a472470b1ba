// Reductions and scans: in registers, by shuffles inside a warp, through shared memory between warps.
//
// The plan of a reduction is a list of butterfly steps: point x combines with x ^ delta. Registers that hold the same
// run afterwards are dropped, so that a step in registers halves the work. Elements of the padding never take part: a
// built-in combine gets its identity there, a custom one is left out by a select.
#include "lowerings.hpp"

#include "extremum.hpp"

#include "jit/emit/math.hpp"

#include <algorithm>
#include <kiln/layout/index_terms.hpp>
#include <kiln/layout/reduction_plan.hpp>
#include <limits>
#include <map>

namespace kiln::jit::simt {

using enum layout_dim;

namespace {

using element_values = std::vector<Value*>;                                                   ///< one per operand
using combiner = std::function<element_values(element_values const&, element_values const&)>; ///< left, right

/// One value per operand and register.
using tuple_registers = std::vector<element_values>; // [register][operand]

/// `low` first? The direction's lowest bit says which of two points comes first; nullptr: constant answer in
/// `constant`.
struct order_bit {
  Value* other_first = nullptr;
  bool constant = false;
};

class reduction {
public:
  reduction(lowerer& lowering, linear_layout layout, int along, combiner f, bool order)
      : k(lowering), l(std::move(layout)), axis(axis_dim(along)), combine(std::move(f)), ordered(order),
        plan(plan_reduction(l, axis, order)) {}

  lowerer& k;
  linear_layout l;
  layout_dim axis;
  combiner combine;
  bool ordered;
  reduction_plan plan;
  /// x with x is x: nothing is done where both are the same value.
  bool idempotent = false;
  /// Extent of the axis where padding must be left out by selects (custom combines); 0: none, or identities do.
  std::int64_t extent = 0;

  /// Combines and leaves, in every register of a layout without the axis' bits, the result.
  std::pair<tuple_registers, linear_layout> run(tuple_registers x) {
    int done = 0;
    while (done < plan.steps && plan.step[static_cast<std::size_t>(done)].level <= lane) ++done;
    for (int i = 0; i < done; ++i) step(x, plan.step[static_cast<std::size_t>(i)], i);
    fill(x);
    if (done == plan.steps) return {x, l};
    // The rest lies in other warps: every thread gets all partial results into registers, or every lane one where they
    // would take too many.
    linear_layout const partial = partials_layout(l, axis, plan, done);
    int const rest = plan.steps - done;
    linear_layout const wide = wide_layout(without_register_copies(zero_axis(partial, axis)), rest);
    std::size_t const operands = x[0].size();
    tuple_registers y(std::size_t{1} << wide.in.bits(reg), element_values(operands));
    for (std::size_t o = 0; o < operands; ++o) {
      std::vector<Value*> column;
      for (element_values const& e : x) column.push_back(e[o]);
      std::vector<Value*> const moved = k.convert(column, partial, wide);
      for (std::size_t r = 0; r < moved.size(); ++r) y[r][o] = moved[r];
    }
    reduction in_registers(k, wide, axis_index(axis), combine, ordered);
    // An ordered partial i is the run that starts at i * 2^done.
    in_registers.extent = extent ? (extent + (std::int64_t{1} << done) - 1) >> done : 0;
    return in_registers.run(std::move(y));
  }

  /// Where partial results of 2^rest warps go.
  linear_layout wide_layout(linear_layout const& rows, int rest) const {
    constexpr int most = 4; // log2 registers
    std::vector<int> idle;  // lanes that hold what another one holds
    for (int i = 0; i < rows.in.bits(lane); ++i)
      if (rows.basis(lane, i) == 0) idle.push_back(i);
    linear_layout const in_registers = repeat_in_registers(rows, axis, rest);
    if (ordered || rest <= most || static_cast<int>(idle.size()) < rest) return normal_form(in_registers, k.cta);
    linear_layout r = zero_map(rows.in, in_registers.out);
    for (int i = 0; i < rows.in.total(); ++i) r.col[static_cast<std::size_t>(i)] = r.out.repack(rows.col[static_cast<std::size_t>(i)], rows.out);
    for (int i = 0; i < rest; ++i)
      r.col[static_cast<std::size_t>(rows.in.shift(lane) + idle[static_cast<std::size_t>(i)])] = r.out.put(axis, f2_unit(i));
    return normal_form(r, k.cta);
  }

  /// Joins x with its partner of a step, in the axis' order where that counts.
  element_values join(element_values const& mine, element_values const& other, order_bit which) {
    if (!ordered) return combine(mine, other);
    if (!which.other_first) return which.constant ? combine(other, mine) : combine(mine, other);
    element_values first, second;
    for (std::size_t o = 0; o < mine.size(); ++o) {
      first.push_back(k.b.CreateSelect(which.other_first, other[o], mine[o]));
      second.push_back(k.b.CreateSelect(which.other_first, mine[o], other[o]));
    }
    return combine(first, second);
  }
  order_bit order_of(reduction_step const& s, std::size_t r) {
    f2_word const direction = l.out.get(s.direction, axis), lowest = direction & (~direction + 1);
    order_bit o;
    o.constant = (l.out.get(l(l.in.put(reg, r)), axis) & lowest) != 0;
    if (reachable_bits(l, {lane, warp}, axis) & lowest) {
      Value* c = k.b.CreateAnd(k.coordinate(l, axis_index(axis), static_cast<int>(r)),
                               k.i32(static_cast<std::int64_t>(lowest)));
      o.other_first = k.b.CreateICmpNE(c, k.i32(0));
    }
    return o;
  }
  /// For custom combines on a padded axis: the later of the two runs begins inside the tile. nullptr: always.
  Value* later_exists(int step_index, std::size_t r) {
    if (!extent) return nullptr;
    std::int64_t const run = std::int64_t{1} << step_index;
    f2_word const own = l.out.get(l(l.in.put(reg, r)), axis), reach = reachable_bits(l, {lane, warp}, axis);
    auto const at_most = static_cast<std::int64_t>((own | reach) | static_cast<f2_word>(run)) & ~(run - 1);
    if (at_most < extent) return nullptr;
    Value* c = k.coordinate(l, axis_index(axis), static_cast<int>(r));
    Value* start = k.b.CreateAnd(k.b.CreateOr(c, k.i32(run)), k.i32(~(run - 1)));
    return k.b.CreateICmpULT(start, k.i32(extent));
  }
  element_values partner(tuple_registers const& x, reduction_step const& s, std::size_t r) {
    auto const other = static_cast<std::size_t>(canonical(r ^ static_cast<std::size_t>(l.in.get(s.delta, reg))));
    auto const lanes = static_cast<unsigned>(l.in.get(s.delta, lane));
    element_values e;
    for (Value* v : x[other]) e.push_back(k.shuffle(v, lanes));
    return e;
  }

private:
  /// The representative of a register among those that hold the same run.
  std::size_t canonical(std::size_t r) const {
    for (auto const& [pivot, delta] : dropped)
      if (r & pivot) r ^= delta;
    return r;
  }

  void step(tuple_registers& x, reduction_step const& s, int index) {
    auto delta = static_cast<std::size_t>(l.in.get(s.delta, reg));
    bool const crosses = l.in.get(s.delta, lane) != 0;
    std::size_t pivot = 0;
    if (!crosses) {
      delta = canonical(delta);
      pivot = delta & (~delta + 1);
    }
    tuple_registers y = x;
    for (std::size_t r = 0; r < x.size(); ++r) {
      if (canonical(r) != r || (pivot && (r & pivot))) continue;
      element_values const other = partner(x, s, r);
      if (idempotent && other == x[r]) continue;
      element_values const joined = join(x[r], other, order_of(s, r));
      y[r] = joined;
      if (Value* exists = later_exists(index, r)) { // keep the earlier run alone
        order_bit const which = order_of(s, r);
        for (std::size_t o = 0; o < joined.size(); ++o) {
          Value* first = which.other_first ? k.b.CreateSelect(which.other_first, other[o], x[r][o])
                         : which.constant  ? other[o]
                                           : x[r][o];
          y[r][o] = k.b.CreateSelect(exists, joined[o], first);
        }
      }
    }
    x = std::move(y);
    if (pivot) {
      for (auto& [p, d] : dropped)
        if (d & pivot) d ^= delta;
      dropped.emplace_back(pivot, delta);
    }
  }
  void fill(tuple_registers& x) const {
    for (std::size_t r = 0; r < x.size(); ++r) x[r] = x[canonical(r)];
  }

  std::vector<std::pair<std::size_t, std::size_t>> dropped; ///< (pivot bit, delta): registers r and r ^ delta are one
};

/// What a built-in combine is: its identity and its step, in the type it computes in.
struct builtin {
  lowerer& k;
  reduce_op code;
  dtype type; ///< of the elements
  nan_mode nan;

  /// f16 and bf16 sums and products accumulate in f32; their maxima compare there.
  dtype wide() const { return emit::compute_type(type); }
  llvm::Type* carrier() const { return k.carrier(wide()); }

  Value* identity() const {
    llvm::Type* t = carrier();
    bool const fp = is_float(type);
    unsigned const bits = t->getScalarSizeInBits();
    switch (code) {
    case reduce_op::sum: return fp ? llvm::ConstantFP::get(t, -0.0) : llvm::Constant::getNullValue(t);
    case reduce_op::prod: return fp ? llvm::ConstantFP::get(t, 1.0) : llvm::ConstantInt::get(t, 1);
    case reduce_op::max:
    case reduce_op::min: {
      bool const max = code == reduce_op::max;
      if (fp) return nan == nan_mode::ignore ? llvm::ConstantFP::getNaN(t) : llvm::ConstantFP::getInfinity(t, max);
      if (is_signed_int(type))
        return llvm::ConstantInt::get(t, max ? llvm::APInt::getSignedMinValue(bits)
                                             : llvm::APInt::getSignedMaxValue(bits));
      return llvm::ConstantInt::get(t, max ? llvm::APInt::getZero(bits) : llvm::APInt::getMaxValue(bits));
    }
    case reduce_op::all: return k.b.getTrue();
    case reduce_op::any:
    case reduce_op::bit_xor:
    case reduce_op::custom: break;
    }
    return llvm::Constant::getNullValue(t);
  }
  Value* apply(Value* x, Value* y) const {
    using namespace llvm;
    auto& b = k.b;
    bool const fp = is_float(type);
    switch (code) {
    case reduce_op::sum: return fp ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
    case reduce_op::prod: return fp ? b.CreateFMul(x, y) : b.CreateMul(x, y);
    case reduce_op::max:
      if (fp)
        return b.CreateBinaryIntrinsic(nan == nan_mode::ignore ? Intrinsic::maximumnum : Intrinsic::maximum, x, y);
      return b.CreateBinaryIntrinsic(is_signed_int(type) ? Intrinsic::smax : Intrinsic::umax, x, y);
    case reduce_op::min:
      if (fp)
        return b.CreateBinaryIntrinsic(nan == nan_mode::ignore ? Intrinsic::minimumnum : Intrinsic::minimum, x, y);
      return b.CreateBinaryIntrinsic(is_signed_int(type) ? Intrinsic::smin : Intrinsic::umin, x, y);
    case reduce_op::any: return b.CreateOr(x, y);
    case reduce_op::all: return b.CreateAnd(x, y);
    case reduce_op::bit_xor: return b.CreateXor(x, y);
    case reduce_op::custom: break;
    }
    return x;
  }
};

/// The layout in which a node's operands are reduced: that of the first which has a place.
linear_layout layout_of_operands(lowerer& k, int node) {
  for (int o : k.g.operands(node))
    if (o >= 0 && !k.plan.placeless[static_cast<std::size_t>(o)]) return k.plan.of(o);
  return k.layout_of_use(k.g.operand(node, 0));
}

/// All axes as one, the packed coordinate being the index.
linear_layout flattened(linear_layout l) {
  l.out = {{d0, static_cast<std::uint8_t>(l.out.total())}};
  return l;
}

/// Registers of a finished reduction in the layout that was assigned to its result.
std::vector<Value*> place_result(lowerer& k, int node, int axis, tuple_registers const& x, linear_layout const& l,
                                 std::size_t operand) {
  std::vector<Value*> values;
  for (element_values const& e : x) values.push_back(e[operand]);
  if (axis < 0) {
    values.resize(1);
    return values;
  }
  // Seen without the axis, many registers hold the same element.
  shape const& to = k.g.shape_of(node);
  linear_layout const all = normal_form(
      to.rank == k.g.shape_of(k.g.operand(node, 0)).rank ? zero_axis(l, axis_dim(axis)) : remove_axis(l, axis), k.cta);
  if (to.rank == 0 || k.is_scalar(node)) {
    values.resize(1);
    return values;
  }
  std::vector<int> kept;
  linear_layout const less = without_register_copies(all, &kept);
  std::vector<Value*> r;
  for (int i : kept) r.push_back(values[static_cast<std::size_t>(i)]);
  return k.convert(r, less, k.plan.of(node));
}

/// A finished reduction of `l`, given back to the registers of `l`: each gets the result of its row.
std::vector<Value*> spread(lowerer& k, linear_layout const& l, int axis, tuple_registers const& x,
                           linear_layout const& done) {
  auto const rows = [&](linear_layout const& any) { return normal_form(zero_axis(any, axis_dim(axis)), k.cta); };
  std::vector<int> kept;
  linear_layout const have = without_register_copies(rows(done), &kept), seen = rows(l), want = without_register_copies(seen);
  std::vector<Value*> values;
  for (int i : kept) values.push_back(x[static_cast<std::size_t>(i)][0]);
  values = k.convert(std::move(values), have, want);
  std::vector<Value*> r;
  for (int i : lowerer::register_map(seen, want)) r.push_back(values[static_cast<std::size_t>(i)]);
  return r;
}

/// The largest or smallest of a thread's own elements of 16 bits in each row, compared two at a time as they lie in words;
/// widened, for all registers of the row. Empty where that is not possible.
std::vector<Value*> extremum_in_pairs(lowerer& k, builtin const& f, dtype t, std::vector<Value*> const& x, linear_layout const& l,
                                      int axis, shape const& s) {
  if (f.nan != nan_mode::ignore || f.wide() != dtype::f32 || !k.hw->has_pair_extremum()) return {};
  std::map<f2_word, std::vector<std::size_t>> rows; // registers by what they have beside the axis
  for (std::size_t r = 0; r < x.size(); ++r) {
    if (k.inside(l, s, static_cast<int>(r))) return {};
    rows[l(l.in.put(reg, static_cast<f2_word>(r))) & ~l.out.mask(axis_dim(axis))].push_back(r);
  }
  extremum const best(k, t, f.code == reduce_op::max, true);
  std::vector<Value*> result(x.size());
  for (auto const& [row, registers] : rows) {
    if (registers.size() < 4) return {};
    std::vector<Value*> elements;
    for (std::size_t r : registers) elements.push_back(x[r]);
    Value* const v = best.number(best.of(elements));
    for (std::size_t r : registers) result[r] = v;
  }
  return result;
}

/// The 16-bit elements behind a tile that was widened from them; else the tile's own.
int narrow_source(lowerer& k, int node, linear_layout const& l) {
  if (k.g[node].code != op::cast || k.type(node) != dtype::f32) return node;
  int const from = k.g.operand(node, 0);
  bool const narrow = k.type(from) == dtype::f16 || k.type(from) == dtype::bf16;
  return narrow && !k.is_scalar(from) && !k.plan.placeless[static_cast<std::size_t>(from)] && k.plan.of(from) == l ? from : node;
}

combiner custom_combiner(lowerer& k, int begin) {
  return [&k, begin](element_values const& x, element_values const& y) {
    element_values all = x;
    all.insert(all.end(), y.begin(), y.end());
    return k.combine(begin, all);
  };
}

} // namespace

registers lowering<op::reduce>::emit(lowerer& k, int node) {
  auto const code = static_cast<reduce_op>(k.g.attribute(node, 0));
  int const axis = static_cast<int>(k.g.attribute(node, 1)), first = k.g.operand(node, 0);
  shape const& s = k.g.shape_of(first);
  if (k.is_scalar(first)) return k.get(first, k.plan.of(first));
  linear_layout l = layout_of_operands(k, node);
  bool const custom = code == reduce_op::custom;
  builtin const f{k, code, k.type(first), static_cast<nan_mode>(k.g.attribute(node, 3))};
  int along = axis;
  std::vector<Value*> in_pairs;
  if (code == reduce_op::max || code == reduce_op::min) {
    int const narrow = narrow_source(k, first, l);
    if (dtype const t = k.type(narrow); t == dtype::f16 || t == dtype::bf16)
      in_pairs = extremum_in_pairs(k, f, t, k.get(narrow, l).r, axis < 0 ? flattened(l) : l, std::max(axis, 0), s);
  }
  std::vector<registers> x;
  if (in_pairs.empty())
    for (int o : k.g.operands(node)) x.push_back(k.get(o, l));

  tuple_registers values;
  for (Value* v : in_pairs) values.push_back({v});
  for (std::size_t r = 0; in_pairs.empty() && r < x[0].r.size(); ++r) {
    element_values e;
    for (std::size_t o = 0; o < x.size(); ++o) {
      Value* v = x[o].r[r];
      if (!custom) {
        v = k.convert_type(v, f.type, f.wide());
        if (Value* in = k.inside(l, s, static_cast<int>(r))) v = k.b.CreateSelect(in, v, f.identity());
      }
      e.push_back(v);
    }
    values.push_back(std::move(e));
  }
  combiner const combine = custom ? custom_combiner(k, static_cast<int>(k.g.attribute(node, 4)))
                                  : combiner([f](element_values const& a, element_values const& c) {
                                      return element_values{f.apply(a[0], c[0])};
                                    });
  if (axis < 0) l = flattened(l), along = 0;
  reduction r(k, l, along, combine, custom);
  r.idempotent = !in_pairs.empty();
  if (custom && !std::has_single_bit(static_cast<unsigned>(s.extent[along]))) r.extent = s.extent[along];
  auto [done, layout] = r.run(std::move(values));
  ++k.phase;
  registers out;
  for (std::size_t o = done[0].size(); o-- > 0;) {
    out.r = place_result(k, node, axis, done, layout, o);
    if (!custom)
      for (Value*& v : out.r) v = k.convert_type(v, f.wide(), f.type);
    k.define(node, out, static_cast<int>(o));
  }
  return out;
}

registers lowering<op::arg_reduce>::emit(lowerer& k, int node) {
  auto& b = k.b;
  bool const max = static_cast<reduce_op>(k.g.attribute(node, 0)) == reduce_op::max;
  int const axis = static_cast<int>(k.g.attribute(node, 1)), from = k.g.operand(node, 0);
  shape const& s = k.g.shape_of(from);
  dtype const t = k.type(from);
  linear_layout const l = layout_of_operands(k, node);
  registers const x = k.get(from, l);
  bool const padded = !std::has_single_bit(static_cast<unsigned>(s.extent[axis]));
  extremum const f(k, t, max, !padded);

  // What a thread holds of each row comes first.
  reduction_plan const plan = plan_reduction(l, axis_dim(axis));
  linear_layout const partial = partials_layout(l, axis_dim(axis), plan, plan.count(reg)), rows = without_register_copies(partial);
  std::vector<std::vector<int>> parts(std::size_t{1} << rows.in.bits(reg));
  std::vector<int> const row_of = lowerer::register_map(partial, rows);
  for (std::size_t r = 0; r < x.r.size(); ++r) parts[static_cast<std::size_t>(row_of[r])].push_back(static_cast<int>(r));
  auto const elements = [&](std::vector<Value*> const& all, std::vector<int> const& part) {
    std::vector<Value*> v;
    for (int r : part) v.push_back(all[static_cast<std::size_t>(r)]);
    return v;
  };
  auto const reduced = [&](std::vector<Value*> const& from, std::function<Value*(Value*, Value*)> const& best) {
    tuple_registers values;
    for (Value* v : from) values.push_back({v});
    combiner const combine([&](element_values const& p, element_values const& q) { return element_values{best(p[0], q[0])}; });
    auto r = reduction(k, rows, axis, combine, false).run(std::move(values));
    ++k.phase;
    return r;
  };

  // First the best value of each row, where NaN loses to every number; then the least index that holds it. Only threads that
  // have it look for it, and ties need no thought.
  std::vector<Value*> own;
  for (std::vector<int> const& part : parts) {
    std::vector<Value*> v = elements(x.r, part);
    if (padded)
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = f.inside_or_last(v[i], k.inside(l, s, part[i]));
    own.push_back(f.number(f.of(v)));
  }
  auto const [best, best_layout] = reduced(own, [&](Value* p, Value* q) { return f.better(p, q); });
  std::vector<Value*> const top = spread(k, rows, axis, best, best_layout);
  Value* const none = k.i32(std::numeric_limits<std::int32_t>::max());
  auto const least = [&](Value* p, Value* q) -> Value* { return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, p, q); };
  std::vector<Value*> found;
  for (std::size_t j = 0; j < parts.size(); ++j) {
    std::vector<int> const& part = parts[j];
    auto const search = [&](std::vector<Value*> const& v) {
      Value* first = none;
      for (std::size_t i = 0; i < part.size(); ++i) {
        Value* is_best = f.equal(f.widened(v[i]), top[j]);
        if (Value* in = k.inside(l, s, part[i])) is_best = b.CreateAnd(is_best, in);
        first = least(first, b.CreateSelect(is_best, k.coordinate(l, axis, part[i]), none));
      }
      return first;
    };
    if (part.size() < 8 || parts.size() > 4) {
      found.push_back(search(elements(x.r, part)));
      continue;
    }
    llvm::BasicBlock* before = b.GetInsertBlock();
    Value* first = nullptr;
    llvm::BasicBlock* searched = nullptr;
    k.when(f.equal(own[j], top[j]), [&] {
      first = search(k.made_here(elements(x.r, part), t));
      searched = b.GetInsertBlock();
    });
    llvm::PHINode* phi = b.CreatePHI(b.getInt32Ty(), 2);
    phi->addIncoming(none, before);
    phi->addIncoming(first, searched);
    found.push_back(phi);
  }
  auto const [first, first_layout] = reduced(found, least);
  std::vector<Value*> index = place_result(k, node, axis, first, first_layout, 0);
  if (is_float(t)) // a row of NaN alone
    for (Value*& i : index) i = b.CreateSelect(b.CreateICmpEQ(i, none), k.i32(0), i);
  return {index};
}

// A scan keeps, beside the total of the aligned run that a point belongs to, the combine of the run's elements up to
// the point. Step i joins two runs: points in the later one put the earlier total in front. The first steps are inside a thread; from
// there on what other threads' elements add up to is kept apart, once for all registers of a run, and is put in front at the end.
registers lowering<op::scan>::emit(lowerer& k, int node) {
  auto& b = k.b;
  auto const code = static_cast<reduce_op>(k.g.attribute(node, 0));
  int const axis = static_cast<int>(k.g.attribute(node, 1)), first = k.g.operand(node, 0);
  bool const reverse = k.g.attribute(node, 2) != 0, custom = code == reduce_op::custom;
  shape const& s = k.g.shape_of(first);
  linear_layout const& l = k.plan.of(node);
  std::vector<registers> x;
  for (int o : k.g.operands(node)) x.push_back(k.get(o, l));
  builtin const f{k, code, k.type(first), nan_mode::ignore};
  combiner const combine = custom ? custom_combiner(k, static_cast<int>(k.g.attribute(node, 3)))
                                  : combiner([f](element_values const& a, element_values const& c) {
                                      return element_values{f.apply(a[0], c[0])};
                                    });
  std::int64_t const extent = s.extent[axis];
  bool const padded = !std::has_single_bit(static_cast<unsigned>(extent));
  std::size_t const operands = x.size();

  tuple_registers total;
  for (std::size_t r = 0; r < x[0].r.size(); ++r) {
    element_values e;
    for (registers const& v : x) e.push_back(custom ? v.r[r] : k.convert_type(v.r[r], f.type, f.wide()));
    if (!custom)
      if (Value* in = k.inside(l, s, static_cast<int>(r))) e[0] = b.CreateSelect(in, e[0], f.identity());
    total.push_back(std::move(e));
  }
  tuple_registers prefix = total;
  auto select = [&](Value* c, element_values const& p, element_values const& q) {
    element_values r;
    for (std::size_t o = 0; o < operands; ++o) r.push_back(b.CreateSelect(c, p[o], q[o]));
    return r;
  };

  // One joining of runs of 2^index elements, inside a warp.
  reduction helper(k, l, axis, combine, true);
  reduction_plan const& plan = helper.plan;
  auto const direction = [&](std::size_t r,
                             int index) -> Value* { // this point lies in the later run (seen in scan order)
    Value* c = b.CreateAnd(k.coordinate(l, axis, static_cast<int>(r)), k.i32(std::int64_t{1} << index));
    return b.CreateICmp(reverse ? llvm::CmpInst::ICMP_EQ : llvm::CmpInst::ICMP_NE, c, k.i32(0));
  };
  // Custom combines on a padded axis: whether the run at the larger coordinates begins inside the tile.
  auto const upper_exists = [&](std::size_t r, int index) -> Value* {
    if (!custom || !padded) return nullptr;
    std::int64_t const run = std::int64_t{1} << index;
    Value* start = b.CreateAnd(b.CreateOr(k.coordinate(l, axis, static_cast<int>(r)), k.i32(run)), k.i32(~(run - 1)));
    return b.CreateICmpULT(start, k.i32(extent));
  };
  // What comes before a register's own run of this thread, and whether anything does; a built-in combine always has its identity there.
  struct offset {
    element_values value;
    Value* some = nullptr; ///< nullptr: nothing yet
  };
  std::vector<offset> before(total.size());
  if (!custom)
    for (offset& o : before) o = {{f.identity()}, b.getTrue()};
  auto const known = [](Value* c) { return llvm::isa_and_present<llvm::ConstantInt>(c) && llvm::cast<llvm::ConstantInt>(c)->isOne(); };
  // `earlier` in front of `at` where `where` is true.
  auto const put_in_front = [&](offset& at, element_values const& earlier, Value* where) {
    element_values const joined = !at.some          ? earlier
                                  : known(at.some) ? combine(earlier, at.value)
                                                   : select(at.some, combine(earlier, at.value), earlier);
    at.value = at.some || !custom ? select(where, joined, at.value) : joined; // where nothing is, anything may stand
    at.some = at.some ? b.CreateOr(where, at.some) : where;
  };
  int done = 0;
  bool apart = false;
  while (done < plan.steps && plan.step[static_cast<std::size_t>(done)].level <= lane) {
    reduction_step const& step = plan.step[static_cast<std::size_t>(done)];
    apart |= step.level != reg;
    tuple_registers next_total(total.size()), next_prefix(total.size());
    for (std::size_t r = 0; r < total.size(); ++r) {
      element_values const other = helper.partner(total, step, r);
      Value *later = direction(r, done), *exists = upper_exists(r, done);
      element_values const left = select(later, other, total[r]), right = select(later, total[r], other);
      element_values both = combine(left, right);
      if (exists) // Forwards the later run may be missing, backwards the earlier one: what is left is the run that exists.
        both = select(exists, both, reverse ? right : left);
      next_total[r] = both;
      if (apart) {
        put_in_front(before[r], other, exists && reverse ? b.CreateAnd(later, exists) : later);
        continue;
      }
      element_values with = combine(other, prefix[r]);
      if (exists && reverse) with = select(exists, with, prefix[r]);
      next_prefix[r] = select(later, with, prefix[r]);
    }
    total = std::move(next_total);
    if (!apart) prefix = std::move(next_prefix);
    ++done;
  }

  if (int const rest = plan.steps - done) {
    // Warps own the top of the axis: each thread reads the totals of all runs and folds those that come before its own.
    linear_layout const partial = partials_layout(l, axis_dim(axis), plan, done);
    linear_layout const wide = normal_form(
        repeat_in_registers(without_register_copies(zero_axis(partial, axis_dim(axis))), axis_dim(axis), rest), k.cta);
    tuple_registers runs(std::size_t{1} << wide.in.bits(reg), element_values(operands));
    for (std::size_t o = 0; o < operands; ++o) {
      std::vector<Value*> column;
      for (element_values const& e : total) column.push_back(e[o]);
      std::vector<Value*> const moved = k.convert(column, partial, wide);
      for (std::size_t r = 0; r < moved.size(); ++r) runs[r][o] = moved[r];
    }
    f2_solver place;
    for (int i = 0; i < wide.in.bits(reg); ++i) place.add(wide.basis(reg, i), f2_unit(i));
    int const count = 1 << rest;
    for (std::size_t r = 0; r < prefix.size(); ++r) {
      Value* mine = b.CreateLShr(k.coordinate(l, axis, static_cast<int>(r)), static_cast<std::uint64_t>(done));
      // Beside the axis, this register's element decides which of the wide registers are its row.
      f2_word const row = partial(partial.in.put(reg, r)) & ~partial.out.mask(axis_dim(axis));
      element_values front;
      Value* any = nullptr; // whether `front` holds something
      for (int n = 0; n + 1 < count; ++n) {
        int const i = reverse ? count - 1 - n : n;
        if (custom && padded && (static_cast<std::int64_t>(i) << done) >= extent) continue;
        auto const at = static_cast<std::size_t>(
            place.solve(row ^ partial.out.put(axis_dim(axis), static_cast<f2_word>(i))).value());
        Value* precedes = reverse ? b.CreateICmpULT(mine, k.i32(i)) : b.CreateICmpUGT(mine, k.i32(i));
        if (front.empty()) front = runs[at], any = precedes;
        else front = select(precedes, combine(front, runs[at]), front);
        // In scan order the runs before mine are a prefix of this walk, so once one precedes, all earlier ones did.
      }
      if (!front.empty()) put_in_front(before[r], front, any), apart = true;
    }
  }
  if (apart)
    for (std::size_t r = 0; r < prefix.size(); ++r) {
      if (!before[r].some) continue;
      element_values const joined = combine(before[r].value, prefix[r]);
      prefix[r] = known(before[r].some) ? joined : select(before[r].some, joined, prefix[r]);
    }

  // Of long rows, two CTAs run together: one's loads while the other one meets. The assembler would take all registers there are.
  std::size_t const words = total.size() * operands;
  if (words >= 16 && !k.parent && (words + 32) * static_cast<std::size_t>(k.cta.threads()) * 2 <= 65536) k.hw->run_together(*k.function, 2);

  registers out;
  for (std::size_t o = operands; o-- > 0;) {
    out.r.clear();
    for (element_values const& e : prefix) out.r.push_back(custom ? e[o] : k.convert_type(e[o], f.wide(), f.type));
    k.define(node, out, static_cast<int>(o));
  }
  return out;
}

Value* lowerer::any_thread(Value* condition) {
  Value* x = b.CreateZExt(condition, b.getInt32Ty());
  for (unsigned d = 1; d < static_cast<unsigned>(cta.warp_size); d *= 2) x = b.CreateOr(x, shuffle(x, d));
  if (cta.num_warps == 1) return b.CreateICmpNE(x, i32(0));
  std::int64_t const base = scratch(4 * cta.num_warps, "device_assert");
  touch(local_event::kind::write, base, 4 * cta.num_warps);
  b.CreateStore(x, b.CreateInBoundsGEP(b.getInt32Ty(), arena(base), warp)); // all lanes write the same word
  touch(local_event::kind::read, base, 4 * cta.num_warps);
  x = i32(0);
  for (int w = 0; w < cta.num_warps; ++w)
    x = b.CreateOr(x, b.CreateLoad(b.getInt32Ty(), b.CreateInBoundsGEP(b.getInt32Ty(), arena(base), i32(w))));
  return b.CreateICmpNE(x, i32(0));
}

} // namespace kiln::jit::simt
