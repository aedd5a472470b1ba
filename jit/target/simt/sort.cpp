// Sorting and the best k along an axis.
//
// Rows are sorted as unsigned keys (jit/emit/sort_key.hpp) by a bitonic network: comparisons of elements at a distance of 2^i
// happen in registers or by shuffles, wherever the layout has bit i of the axis. A bit that the warps own is exchanged with one
// that registers own first, the one that is needed last: one conversion of the layout. For topk the element's index
// stands in the key's low bits, which makes equal elements different and their order the wanted one.
#include "sorter.hpp"

#include "lowerings.hpp"

#include "jit/emit/sort_key.hpp"

#include <algorithm>
#include <kiln/layout/index_terms.hpp>
#include <limits>

namespace kiln::jit::simt {

using enum layout_dim;

// ---- the network
// ------------------------------------------------------------------------------------------------------------------

row_sorter::column row_sorter::column_of(int bit) const {
  f2_word const unit = l.out.put(axis, f2_unit(bit));
  for (layout_dim d : {reg, lane, warp})
    for (int i = 0; i < l.in.bits(d); ++i)
      if (l.basis(d, i) == unit) return {d, i};
  k.fail(-1, "internal: a row that is not whole is to be sorted");
}

// In stage s, runs of 2^(s+1) elements become sorted, those with bit s+1 of the coordinate set in descending order: they are held
// inverted meanwhile, so that all comparisons ascend. This is the change from bit `before` to bit `after` deciding.
void row_sorter::invert_between(int before, int after) {
  int const bits = l.out.bits(axis);
  auto const reach = reachable_bits(l, {lane, warp}, axis);
  f2_word watched = 0;
  for (int i : {before, after})
    if (i >= 0 && i < bits) watched ^= f2_unit(i);
  llvm::Type* type = x[0]->getType();
  Value *mask = nullptr, *other = nullptr; // all ones where a thread of an uninverted register inverts, and the complement
  if (watched & reach) {
    mask = k.b.CreateSExt(k.bit_parity(k.thread_part(l, axis), watched & reach), type);
    other = k.b.CreateNot(mask);
  }
  for (std::size_t r = 0; r < x.size(); ++r) {
    f2_word const own = l.out.get(l(l.in.put(reg, static_cast<f2_word>(r))), axis);
    bool const inverts = std::popcount(own & watched) % 2 != 0;
    if (mask) x[r] = k.b.CreateXor(x[r], inverts ? other : mask);
    else if (inverts) x[r] = k.b.CreateNot(x[r]);
  }
}

// Moves a bit that warps own, and those that the next comparisons need, to registers (to lanes, where there are no registers).
void row_sorter::bring(int stage, int bit) {
  int const bits = l.out.bits(axis);
  constexpr int never = std::numeric_limits<int>::max();
  auto next_use = [&](f2_word column) { // in steps from now
    f2_word const c = l.out.get(column, axis);
    if (c == 0) return never;
    int const i = std::countr_zero(c);
    if (i <= bit) return bit - i;
    if (stage + 1 >= bits) return never;
    if (i <= stage + 1) return bit + 1 + (stage + 1 - i);
    return 1000 + i; // in its own stage
  };
  layout_dim const place = l.in.bits(reg) ? reg : lane;
  linear_layout to = l;
  auto at = [&](layout_dim d, int i) -> f2_word& { return to.col[static_cast<std::size_t>(to.in.shift(d) + i)]; };
  for (int wanted = bit; wanted >= 0; --wanted) {
    column const have = column_of(wanted);
    if (have.where != warp) continue;
    int best = 0;
    for (int i = 1; i < to.in.bits(place); ++i)
      if (next_use(at(place, i)) > next_use(at(place, best))) best = i;
    if (next_use(at(place, best)) <= bit - wanted) break;
    std::swap(at(place, best), at(warp, have.index));
  }
  x = k.convert(std::move(x), l, to);
  l = std::move(to);
}

void row_sorter::step(int stage, int bit) {
  auto& b = k.b;
  if (column_of(bit).where == warp) bring(stage, bit);
  column const c = column_of(bit);
  auto lesser = [&](Value* p, Value* q) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, p, q); };
  auto greater = [&](Value* p, Value* q) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, p, q); };
  if (c.where == reg) {
    std::size_t const delta = std::size_t{1} << c.index;
    for (std::size_t r = 0; r < x.size(); ++r) {
      if (r & delta) continue;
      Value *p = x[r], *q = x[r | delta];
      x[r] = lesser(p, q), x[r | delta] = greater(p, q);
    }
    return;
  }
  auto const delta = static_cast<unsigned>(f2_unit(c.index));
  Value* upper = k.bit_parity(k.lane, delta);
  for (Value*& v : x) {
    Value* other = k.shuffle(v, delta);
    v = b.CreateSelect(upper, greater(v, other), lesser(v, other));
  }
}

void row_sorter::run() {
  int const bits = l.out.bits(axis);
  for (int stage = 0; stage < bits; ++stage) {
    invert_between(stage == 0 ? -1 : stage, stage + 1);
    for (int bit = stage; bit >= 0; --bit) step(stage, bit);
  }
}

// ---- operations
// -------------------------------------------------------------------------------------------------------------------------

registers lowering<op::sort>::emit(lowerer& k, int node) {
  auto& b = k.b;
  int const axis = static_cast<int>(k.g.attribute(node, 0));
  bool const descending = k.g.attribute(node, 1) != 0;
  dtype const t = k.type(node);
  shape const& s = k.g.shape_of(node);
  linear_layout const& l = k.plan.of(node);
  registers const given = k.get(k.g.operand(node, 0), l);
  // The padding is sorted to the end. What has the same key there is the same number.
  llvm::Type* type = b.getIntNTy(static_cast<unsigned>(std::max<std::int64_t>(32, bits_of(t))));
  emit::emitter e = k.emitter();
  std::vector<Value*> x;
  for (std::size_t r = 0; r < given.r.size(); ++r) {
    Value* key = b.CreateZExt(emit::sort_key(e, given.r[r], t, descending), type);
    if (Value* in = k.inside(l, s, static_cast<int>(r))) key = b.CreateSelect(in, key, llvm::Constant::getAllOnesValue(type));
    x.push_back(key);
  }
  row_sorter sorter(k, l, axis, std::move(x));
  sorter.run();
  registers out;
  for (Value* key : k.convert(sorter.values(), sorter.layout(), l)) {
    key = b.CreateTrunc(key, b.getIntNTy(static_cast<unsigned>(bits_of(t))));
    out.r.push_back(emit::number_of_key(e, key, t, descending, k.carrier(t)));
  }
  return out;
}

// Sorts whole rows and takes their beginning, but for the few best of a long row.
registers lowering<op::topk>::emit(lowerer& k, int node) {
  auto& b = k.b;
  int const from = k.g.operand(node, 0), axis = static_cast<int>(k.g.attribute(node, 0));
  shape const &s = k.g.shape_of(from), &to = k.g.shape_of(node);
  packed_form const form(k.type(node), k.g.attribute(node, 1) != 0, s.extent[axis]);
  if (best_of_long_row(k, node, form)) return k.result_of(node, 0);
  linear_layout const l = scan_layout(s, axis, k.cta);
  registers const given = k.get(from, l);
  std::vector<Value*> x;
  for (std::size_t r = 0; r < given.r.size(); ++r) {
    Value* packed = form.pack(k, form.key(k, given.r[r]), k.coordinate(l, axis, static_cast<int>(r)));
    if (Value* in = k.inside(l, s, static_cast<int>(r)))
      packed = b.CreateSelect(in, packed, llvm::Constant::getAllOnesValue(packed->getType()));
    x.push_back(packed);
  }
  row_sorter sorter(k, l, axis, std::move(x));
  sorter.run();
  std::vector<Value*> values, indices;
  for (Value* packed : sorter.values()) values.push_back(form.value(k, packed)), indices.push_back(form.index(k, packed));
  linear_layout const& out = k.plan.of(node);
  auto first = [&](std::vector<Value*> const& all, dtype t) -> registers {
    if (to == s) return {k.convert(all, sorter.layout(), out)};
    view_value v = k.stage({all}, t, s, sorter.layout(), "topk");
    v.extents = to;
    return {k.read_view(v, out)};
  };
  k.define(node, first(indices, dtype::i32), 1);
  return first(values, form.type);
}

} // namespace kiln::jit::simt
