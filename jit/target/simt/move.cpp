// Data between threads: conversions of layouts by registers, shuffles or shared memory, and the operations that need
// one.
#include "lowerings.hpp"

#include <algorithm>
#include <kiln/layout/conversion.hpp>
#include <kiln/layout/index_terms.hpp>
#include <kiln/layout/shape_ops.hpp>
#include <kiln/layout/shared_plan.hpp>
#include <kiln/layout/text.hpp>
#include <kiln/layout/vectorize.hpp>

namespace kiln::jit::simt {

using enum layout_dim;

namespace {

unsigned bytes_of_type(lowerer& k, llvm::Type* t) {
  return static_cast<unsigned>(k.mb.module.getDataLayout().getTypeStoreSize(t).getFixedValue());
}

/// Any first-class value as an integer of its size in memory, and back.
Value* to_bits(lowerer& k, Value* x) {
  llvm::Type* t = x->getType();
  if (t->isIntegerTy(1)) return k.b.CreateZExt(x, k.b.getInt8Ty());
  if (t->isIntegerTy()) return x;
  if (t->isPointerTy()) return k.b.CreatePtrToInt(x, k.b.getInt64Ty());
  return k.b.CreateBitCast(x, k.b.getIntNTy(8 * bytes_of_type(k, t)));
}
Value* from_bits(lowerer& k, Value* x, llvm::Type* t) {
  if (t->isIntegerTy(1)) return k.b.CreateTrunc(x, t);
  if (t->isIntegerTy()) return x;
  if (t->isPointerTy()) return k.b.CreateIntToPtr(x, t);
  return k.b.CreateBitCast(x, t);
}

/// x'[i] = x[i ^ c(thread)], where `map` gives c from lane and warp: one select a value and direction.
std::vector<Value*> permute_by_thread(lowerer& k, std::vector<Value*> x, linear_layout const& map, layout_dim to) {
  std::map<f2_word, std::pair<f2_word, f2_word>> by_shift; // c -> lane bits, warp bits
  for (int i = 0; i < map.in.bits(lane); ++i)
    if (f2_word const c = map.out.get(map.basis(lane, i), to)) by_shift[c].first |= f2_unit(i);
  for (int i = 0; i < map.in.bits(warp); ++i)
    if (f2_word const c = map.out.get(map.basis(warp, i), to)) by_shift[c].second |= f2_unit(i);
  for (auto const& [c, bits] : by_shift) {
    Value* swap = nullptr;
    if (bits.first) swap = k.bit_parity(k.lane, bits.first);
    if (bits.second) {
      Value* w = k.bit_parity(k.warp, bits.second);
      swap = swap ? k.b.CreateXor(swap, w) : w;
    }
    std::vector<Value*> y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      Value *same = x[i], *other = x[i ^ static_cast<std::size_t>(c)];
      y[i] = !same ? other : !other ? same : k.b.CreateSelect(swap, other, same);
    }
    x = std::move(y);
  }
  return x;
}

/// The lane map is lane ^ constant: an xor shuffle does.
bool moves_by_xor(linear_layout const& map) {
  for (layout_dim d : {lane, warp, cta})
    for (int i = 0; i < map.in.bits(d); ++i)
      if (map.out.get(map.basis(d, i), lane) != (d == lane ? f2_unit(i) : 0)) return false;
  return true;
}

std::vector<Value*> by_shuffle_rounds(lowerer& k, std::vector<Value*> const& x, linear_layout const& to,
                                      conversion const& p) {
  auto& b = k.b;
  shuffle_rounds const& r = p.rounds;
  llvm::Type* type = x[0]->getType();
  unsigned const bits = type->getIntegerBitWidth(), per = bits < 32 ? 32 / bits : 1;
  std::vector<Value*> const published = permute_by_thread(k, x, r.publish, reg);
  bool const by_xor = moves_by_xor(r.fetch);
  std::map<f2_word, std::vector<int>> same_lanes; // constant of the lane map -> rounds
  auto at = [&](linear_layout const& m, int n, layout_dim d) {
    return m.out.get(m(m.in.put(offset, static_cast<f2_word>(n))), d);
  };
  for (int n = 0; n < 1 << r.bits; ++n) same_lanes[at(r.fetch, n, lane)].push_back(n);
  std::vector<Value*> placed(std::size_t{1} << to.in.bits(reg));
  for (auto const& [constant, rounds] : same_lanes)
    for (std::size_t first = 0; first < rounds.size(); first += per) {
      std::size_t const count = std::min<std::size_t>(per, rounds.size() - first);
      Value* wire = nullptr;
      auto held = [&](std::size_t i) {
        return published[static_cast<std::size_t>(at(r.publish, rounds[first + i], reg))];
      };
      if (by_xor && constant == 0) { // every lane reads itself
        for (std::size_t i = 0; i < count; ++i)
          placed[static_cast<std::size_t>(at(r.place, rounds[first + i], reg))] = held(i);
        continue;
      }
      for (std::size_t i = 0; i < count; ++i) {
        Value* v = bits < 32 ? b.CreateZExt(held(i), b.getInt32Ty()) : held(i);
        if (i) v = b.CreateShl(v, i * bits);
        wire = wire ? b.CreateOr(wire, v) : v;
      }
      if (by_xor) wire = k.shuffle(wire, static_cast<unsigned>(constant));
      else
        wire =
            k.shuffle_from(wire, b.CreateXor(k.thread_part(r.fetch, lane), k.i32(static_cast<std::int64_t>(constant))));
      for (std::size_t i = 0; i < count; ++i) {
        Value* v = i ? b.CreateLShr(wire, i * bits) : wire;
        placed[static_cast<std::size_t>(at(r.place, rounds[first + i], reg))] = b.CreateTrunc(v, type);
      }
    }
  placed = permute_by_thread(k, placed, r.place, reg);
  std::vector<Value*> y;
  for (int q : lowerer::register_map(to, to)) y.push_back(placed[static_cast<std::size_t>(q)]);
  return y;
}

/// One shuffle per (register wanted, register held).
std::vector<Value*> by_pairs(lowerer& k, std::vector<Value*> const& x, linear_layout const& to, conversion const& p) {
  f2_vectors shifts;
  for (layout_dim d : {lane, warp})
    for (int i = 0; i < p.from.in.bits(d); ++i) shifts.push(p.from.out.get(p.from.basis(d, i), reg));
  std::vector<f2_word> reachable{0};
  f2_solver seen;
  for (f2_word c : shifts)
    if (seen.add(c))
      for (std::size_t i = reachable.size(); i-- > 0;) reachable.push_back(reachable[i] ^ c);
  bool const by_xor = moves_by_xor(p.from);
  Value* own = reachable.size() > 1 ? k.thread_part(p.from, reg) : nullptr;
  std::map<std::pair<f2_word, f2_word>, Value*> done;
  std::vector<Value*> y;
  for (int q : lowerer::register_map(to, to)) {
    f2_word const source = p.from(p.from.in.put(reg, static_cast<f2_word>(q)));
    f2_word const held = p.from.out.get(source, reg), from = p.from.out.get(source, lane);
    Value* v = nullptr;
    for (f2_word s : reachable) {
      Value*& w = done[{held ^ s, from}];
      if (!w) {
        Value* send = x[static_cast<std::size_t>(held ^ s)];
        w = by_xor ? (from ? k.shuffle(send, static_cast<unsigned>(from)) : send)
                   : k.shuffle_from(send,
                                    k.b.CreateXor(k.thread_part(p.from, lane), k.i32(static_cast<std::int64_t>(from))));
      }
      v = v ? k.b.CreateSelect(k.b.CreateICmpEQ(own, k.i32(static_cast<std::int64_t>(s))), w, v) : w;
    }
    y.push_back(v);
  }
  return y;
}

/// Offsets of registers in a staging buffer, as pointers: one per vector.
struct staged_side {
  vector_access access;
  std::vector<Value*> pointer;
  std::vector<bool> skip; ///< vectors of copies
};
staged_side side_of(lowerer& k, linear_layout const& l, linear_layout const& smem, std::int64_t base, int elem) {
  linear_layout const to_offset = compose(l, invert(smem));
  staged_side s{vectorize(to_offset, offset, elem), {}, {}};
  f2_word const copies = owners(l).reg;
  for (int i = 0; i < s.access.width; ++i)
    if (s.access.regs.col[static_cast<std::size_t>(i)] & copies)
      s.access = vectorize(to_offset, offset, elem, {.contiguity = 0});
  f2_word const reach = reachable_bits(to_offset, {lane, warp}, offset);
  Value* thread = k.thread_part(to_offset, offset);
  Value* pointer =
      k.b.CreateInBoundsGEP(k.b.getInt8Ty(), k.arena(base), k.b.CreateShl(thread, static_cast<std::uint64_t>(elem)));
  for (int v = 0; v < 1 << (l.in.bits(reg) - s.access.width); ++v) {
    f2_word const r = s.access.regs(static_cast<f2_word>(v) << s.access.width);
    f2_word const constant = to_offset.out.get(to_offset(to_offset.in.put(reg, r)), offset);
    s.skip.push_back((r & copies) != 0);
    if (constant & reach) {
      Value* o = k.b.CreateShl(k.b.CreateXor(thread, k.i32(static_cast<std::int64_t>(constant))),
                               static_cast<std::uint64_t>(elem));
      s.pointer.push_back(k.b.CreateInBoundsGEP(k.b.getInt8Ty(), k.arena(base), o));
    } else {
      s.pointer.push_back(
          k.b.CreateInBoundsGEP(k.b.getInt8Ty(), pointer, k.i32(static_cast<std::int64_t>(constant << elem))));
    }
  }
  return s;
}

/// x, integers of 2^elem bytes, through a staging buffer.
std::vector<Value*> by_memory(lowerer& k, std::vector<Value*> const& x, linear_layout const& from,
                              linear_layout const& to, int elem) {
  auto& b = k.b;
  int const lanes = from.in.bits(lane);
  bank_model const banks = consecutive_phases(lanes, k.target.arch == 0x950 || k.target.arch == 0x1250 ? 6 : 5);
  shared_plan const p = plan_shared(from, to, elem, banks);
  std::int64_t const bytes = std::int64_t{1} << (p.smem.in.bits(offset) + elem);
  std::int64_t const base = k.scratch(bytes, "a layout conversion");
  unsigned const bits = 8u << elem;
  auto vector_type = [&](int width) -> llvm::Type* {
    int const words = std::max(1, (1 << (width + elem)) / std::max(4, 1 << elem));
    llvm::Type* word = b.getIntNTy(std::max(bits, std::min(32u, bits << width)));
    return words == 1 ? word : llvm::FixedVectorType::get(word, static_cast<unsigned>(words));
  };
  staged_side const store = side_of(k, from, p.smem, base, elem), load = side_of(k, to, p.smem, base, elem);
  auto registers_of = [](staged_side const& s, std::size_t v, int j) {
    return static_cast<std::size_t>(
        s.access.regs((static_cast<f2_word>(v) << s.access.width) | static_cast<f2_word>(j)));
  };

  k.touch(local_event::kind::write, base, bytes);
  for (std::size_t v = 0; v < store.pointer.size(); ++v) {
    if (store.skip[v]) continue;
    llvm::Type* t = vector_type(store.access.width);
    unsigned const word_bits = t->getScalarSizeInBits(), per = word_bits / bits;
    std::vector<Value*> words;
    for (int j = 0; j < 1 << store.access.width; ++j) {
      Value* e = x[registers_of(store, v, j)];
      if (static_cast<unsigned>(j) % per == 0) words.push_back(b.CreateZExt(e, b.getIntNTy(word_bits)));
      else
        words.back() = b.CreateOr(words.back(), b.CreateShl(b.CreateZExt(e, b.getIntNTy(word_bits)),
                                                            (static_cast<unsigned>(j) % per) * bits));
    }
    Value* whole = words[0];
    if (words.size() > 1) {
      whole = llvm::PoisonValue::get(t);
      for (std::size_t i = 0; i < words.size(); ++i) whole = b.CreateInsertElement(whole, words[i], i);
    }
    b.CreateAlignedStore(whole, store.pointer[v], llvm::Align(std::uint64_t{1} << (store.access.width + elem)));
  }
  k.touch(local_event::kind::read, base, bytes);
  std::vector<Value*> y(std::size_t{1} << to.in.bits(reg));
  for (std::size_t v = 0; v < load.pointer.size(); ++v) {
    llvm::Type* t = vector_type(load.access.width);
    unsigned const word_bits = t->getScalarSizeInBits(), per = word_bits / bits;
    Value* whole = b.CreateAlignedLoad(t, load.pointer[v], llvm::Align(std::uint64_t{1} << (load.access.width + elem)));
    for (int j = 0; j < 1 << load.access.width; ++j) {
      Value* w = t->isVectorTy() ? b.CreateExtractElement(whole, static_cast<std::uint64_t>(j) / per) : whole;
      if (unsigned const s = (static_cast<unsigned>(j) % per) * bits) w = b.CreateLShr(w, s);
      y[registers_of(load, v, j)] = b.CreateTrunc(w, b.getIntNTy(bits));
    }
  }
  return y;
}

} // namespace

std::vector<int> lowerer::register_map(linear_layout const& to, linear_layout const& from) {
  f2_solver s;
  for (int i = 0; i < from.in.bits(reg); ++i) s.add(from.basis(reg, i), f2_unit(i));
  std::vector<int> r;
  for (int i = 0; i < 1 << to.in.bits(reg); ++i)
    r.push_back(static_cast<int>(s.solve(to(to.in.put(reg, static_cast<f2_word>(i)))).value()));
  return r;
}

std::vector<Value*> lowerer::convert(std::vector<Value*> x, linear_layout const& from, linear_layout const& to) {
  if (from == to || from.out.total() == 0) {
    if (from.out.total() == 0) x.assign(std::size_t{1} << to.in.bits(reg), x[0]);
    return x;
  }
  llvm::Type* type = x[0]->getType();
  for (Value*& v : x) v = to_bits(*this, v);
  int const elem = std::countr_zero(x[0]->getType()->getIntegerBitWidth()) - 3;
  auto const p = plan_conversion(from, to, elem);
  if (!p)
    fail(-1, "internal: a layout does not hold what a conversion wants: " + to_string(from) + " to " + to_string(to));
  std::vector<Value*> y;
  bool const in_registers = p->kind == conversion_kind::none || p->kind == conversion_kind::registers;
  if (in_registers) {
    std::vector<Value*> const held = permute_by_thread(*this, x, p->from, reg);
    for (int r = 0; r < 1 << to.in.bits(reg); ++r)
      y.push_back(held[static_cast<std::size_t>(from.in.get(p->from(to.in.put(reg, static_cast<f2_word>(r))), reg))]);
  } else {
    // A shuffle costs about as much as one access of a warp to shared memory; staging pays two barriers besides.
    int const registers = 1 << std::max(from.in.bits(reg), to.in.bits(reg));
    bool const shuffles =
        p->kind == conversion_kind::shuffle && p->shuffles + p->select_levels * registers / 2 <= 3 * registers + 16;
    if (shuffles) y = p->by_rounds ? by_shuffle_rounds(*this, x, to, *p) : by_pairs(*this, x, to, *p);
    else y = by_memory(*this, x, from, to, elem);
  }
  for (Value*& v : y) v = from_bits(*this, v, type);
  return y;
}

namespace {
/// A value of any width moved word by word.
Value* by_words(lowerer& k, Value* x, llvm::function_ref<Value*(Value*)> move) {
  auto& b = k.b;
  llvm::Type *t = x->getType(), *i32 = b.getInt32Ty();
  Value *bits = to_bits(k, x), *moved = nullptr;
  llvm::Type* whole = bits->getType();
  unsigned const w = whole->getIntegerBitWidth();
  if (w <= 32) return from_bits(k, b.CreateTrunc(move(b.CreateZExt(bits, i32)), whole), t);
  for (unsigned at = 0; at < w; at += 32) {
    Value* word = b.CreateZExt(move(b.CreateTrunc(at ? b.CreateLShr(bits, at) : bits, i32)), whole);
    moved = at ? b.CreateOr(moved, b.CreateShl(word, at)) : word;
  }
  return from_bits(k, moved, t);
}
} // namespace

Value* lowerer::shuffle(Value* x, unsigned delta) {
  if (delta == 0) return x;
  return by_words(*this, x, [&](Value* word) { return hw->shuffle_xor(word, lane, delta); });
}
Value* lowerer::shuffle_from(Value* x, Value* from) {
  return by_words(*this, x, [&](Value* word) { return hw->shuffle_index(word, from); });
}

std::vector<Value*> lowerer::replicate(std::vector<Value*> x, linear_layout const& l) {
  owner_masks const m = owners(l);
  if (m.unique()) return x;
  // Owners write, everybody reads; one element of scratch memory each, in packed coordinates.
  llvm::Type* type = x[0]->getType();
  for (Value*& v : x) v = to_bits(*this, v);
  int const elem = std::countr_zero(x[0]->getType()->getIntegerBitWidth()) - 3;
  std::int64_t const bytes = std::int64_t{1} << (l.out.total() + elem);
  std::int64_t const base = scratch(bytes, "the result of an atomic operation");
  // All axes as one: the packed coordinate is the index.
  linear_layout flat = l;
  flat.out = {{offset, static_cast<std::uint8_t>(l.out.total())}};
  auto pointer = [&](std::size_t r) {
    auto const own = static_cast<std::int64_t>(flat(flat.in.put(reg, r)));
    return b.CreateInBoundsGEP(x[0]->getType(), arena(base), b.CreateXor(thread_part(flat, offset), i32(own)));
  };
  touch(local_event::kind::write, base, bytes);
  when(is_owner(l), [&] {
    for (std::size_t r = 0; r < x.size(); ++r)
      if (!(r & m.reg)) b.CreateStore(x[r], pointer(r));
  });
  touch(local_event::kind::read, base, bytes);
  std::vector<Value*> y;
  for (std::size_t r = 0; r < x.size(); ++r)
    y.push_back(from_bits(*this, b.CreateLoad(x[r]->getType(), pointer(r)), type));
  return y;
}

// ---- operations on shapes
// -------------------------------------------------------------------------------------------------

registers lowering<op::broadcast>::emit(lowerer& k, int node) { return k.compute(node, k.plan.of(node)); }

registers lowering<op::reshape>::emit(lowerer& k, int node) {
  int const from = k.g.operand(node, 0);
  if (k.is_scalar(node)) { // one element: every thread holds it in some register of a layout without bits
    registers x = k.get(from, k.is_scalar(from) ? k.plan.of(from) : k.layout_of_use(from));
    x.r.resize(1);
    return x;
  }
  shape const &a = k.g.shape_of(from), &c = k.g.shape_of(node);
  if (reshape_is_free(a, c)) {
    if (k.is_scalar(from)) return k.compute(node, k.plan.of(node));
    return k.get(from, operand_layout(k.g, node, k.plan.of(node), k.cta));
  }
  // Padding lies between the rows of one of them: through memory, where rows are packed.
  linear_layout const l = k.layout_of_use(from);
  view_value v = k.stage(k.get(from, l), k.type(node), a, l, "reshape");
  v.extents = c;
  std::int64_t stride = 1;
  for (int d = c.rank - 1; d >= 0; --d) v.stride[d] = stride, stride *= c.extent[d];
  return {k.read_view(v, k.plan.of(node))};
}

registers lowering<op::trans>::emit(lowerer& k, int node) {
  return k.get(k.g.operand(node, 0), operand_layout(k.g, node, k.plan.of(node), k.cta));
}

registers lowering<op::join>::emit(lowerer& k, int node) {
  linear_layout const& l = k.plan.of(node);
  layout_dim const last = axis_dim(k.g.shape_of(node).rank - 1);
  // The lowest register bit is the new axis; without it the layout is that of the operands.
  linear_layout half = zero_map(l.in.with(reg, l.in.bits(reg) - 1), l.out);
  for (int i = 1; i < l.in.total(); ++i) half.col[static_cast<std::size_t>(i - 1)] = l.col[static_cast<std::size_t>(i)];
  half = normal_form(slice_layout(half, last), k.cta);
  registers const x = k.get(k.g.operand(node, 0), half), y = k.get(k.g.operand(node, 1), half);
  registers r;
  for (std::size_t i = 0; i < std::size_t{1} << half.in.bits(reg); ++i) {
    r.r.push_back(k.is_scalar(k.g.operand(node, 0)) ? x.scalar() : x.r[i]);
    r.r.push_back(k.is_scalar(k.g.operand(node, 1)) ? y.scalar() : y.r[i]);
  }
  return r;
}

registers lowering<op::split>::emit(lowerer& k, int node) {
  int const from = k.g.operand(node, 0);
  linear_layout const& l = k.plan.of(node);
  linear_layout const joined = normal_form(join_layout(l, axis_dim(k.g.shape_of(from).rank - 1)), k.cta);
  registers const x = k.get(from, joined);
  registers r;
  for (std::size_t i = static_cast<std::size_t>(k.g.attribute(node, 0)); i < x.r.size(); i += 2) r.r.push_back(x.r[i]);
  return r;
}

registers lowering<op::gather>::emit(lowerer& k, int node) {
  int const from = k.g.operand(node, 0), index = k.g.operand(node, 1), axis = static_cast<int>(k.g.attribute(node, 0));
  linear_layout const have = k.layout_of_use(from), &l = k.plan.of(node);
  view_value const v = k.stage(k.get(from, have), k.type(node), k.g.shape_of(from), have, "gather");
  return {k.gather_view(v, k.get(index, l).r, k.type(index), k.g.shape_of(node), l, axis)};
}

} // namespace kiln::jit::simt
