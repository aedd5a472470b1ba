// Global memory: addresses and masks, vectors of up to 16 bytes, atomics.
#include "lowerings.hpp"

#include <kiln/layout/index_terms.hpp>
#include <kiln/layout/vectorize.hpp>
#include <llvm/IR/MDBuilder.h>

namespace kiln::jit::simt {

using enum layout_dim;

namespace {

int log2_bytes(dtype t) { return std::countr_zero(static_cast<std::uint64_t>(bytes_of(t))); }

cache_hint hint_of(lowerer& k, int node) {
  cache_hint h;
  h.cache = static_cast<cache>(k.g.attribute(node, 0));
  h.evict = static_cast<evict>(k.g.attribute(node, 1));
  if (k.g[node].code != op::store) h.is_volatile = k.g.attribute(node, 2) != 0;
  return h;
}

/// The elements start + c of an array's box: i64 offsets from its data, and bounds.
///
/// offset = sum (start_d + thread_d) * stride_d, once, + sum register_d * stride_d, where the coordinate is the sum of
/// what the thread and the register add; where a layout XORs, the whole is computed for each register.
struct region_elements {
  lowerer& k;
  int node;
  linear_layout const& l;
  int rank;
  Value *data, *extent[max_rank]{}, *stride[max_rank]{}, *start[max_rank]{};
  Value* thread_offset = nullptr;
  bool sums = true;
  std::map<std::pair<int, f2_word>, Value*> index_cache, bound_cache, offset_cache;

  region_elements(lowerer& lowering, int region, linear_layout const& layout)
      : k(lowering), node(region), l(layout), rank(k.g.shape_of(region).rank) {
    int const array = k.g.operand(node, 0);
    auto const p = static_cast<int>(k.g.attribute(array, 0));
    auto const first = static_cast<std::size_t>(k.first_slot_of(p));
    param_facts const& f = k.spec.params[static_cast<std::size_t>(p)];
    data = k.slots[first];
    for (int d = 0; d < rank; ++d) {
      auto const e = static_cast<std::size_t>(d);
      extent[d] = f.extent[d].constant ? k.i64(f.extent[d].value) : k.slots[first + 1 + e];
      stride[d] =
          f.stride[d].constant ? k.i64(f.stride[d].value) : k.slots[first + 1 + static_cast<std::size_t>(rank) + e];
      Value* s = k.scalar(k.g.operand(node, 1 + d));
      start[d] = is_unsigned_int(k.type(k.g.operand(node, 1 + d))) ? k.b.CreateZExt(s, k.b.getInt64Ty())
                                                                   : k.b.CreateSExt(s, k.b.getInt64Ty());
      sums &= lowerer::additive(l, axis_dim(d));
    }
    if (!sums) return;
    for (int d = 0; d < rank; ++d) {
      Value* i = k.b.CreateAdd(start[d], k.b.CreateZExt(k.thread_part(l, axis_dim(d)), k.b.getInt64Ty()));
      index_cache[{d, 0}] = i;
      Value* o = k.b.CreateMul(i, stride[d]);
      thread_offset = thread_offset ? k.b.CreateAdd(thread_offset, o) : o;
    }
  }
  f2_word own(int d, int r) const { return l.out.get(l(l.in.put(reg, static_cast<f2_word>(r))), axis_dim(d)); }
  Value* index(int d, int r) {
    Value*& v = index_cache[{d, own(d, r)}];
    if (!v) {
      if (sums) v = k.b.CreateAdd(index_cache[{d, 0}], k.i64(static_cast<std::int64_t>(own(d, r))));
      else v = k.b.CreateAdd(start[d], k.b.CreateZExt(k.coordinate(l, d, r), k.b.getInt64Ty()));
    }
    return v;
  }
  Value* offset(int r) {
    Value* sum = sums ? thread_offset : nullptr;
    for (int d = 0; d < rank; ++d) {
      if (sums && own(d, r) == 0) continue;
      Value*& part = offset_cache[{d, own(d, r)}];
      if (!part) part = k.b.CreateMul(sums ? k.i64(static_cast<std::int64_t>(own(d, r))) : index(d, r), stride[d]);
      sum = sum ? k.b.CreateAdd(sum, part) : part;
    }
    return sum;
  }
  /// 0 <= start + c < extent, as one unsigned comparison: extents are not negative.
  Value* in_bounds(int r) {
    Value* all = nullptr;
    for (int d = 0; d < rank; ++d) {
      if (k.facts.inside(node, d)) continue;
      Value*& v = bound_cache[{d, own(d, r)}];
      if (!v) v = k.b.CreateICmpULT(index(d, r), extent[d]);
      all = k.all_of(all, v);
    }
    return all;
  }
};

/// A vector access: registers of one thread that go together.
struct vector_groups {
  int width = 0; ///< log2 elements
  std::vector<std::vector<int>> registers;
};
vector_groups vectors_of(lowerer& k, int node, linear_layout const& l, f2_word skip) {
  vector_groups v;
  int const address = k.g.operand(node, 0);
  int const elem = log2_bytes(k.type(address));
  if (k.is_scalar(address)) return {0, {{0}}};
  access_shape const a = shape_of_access(k.g, k.facts, node);
  vector_access access = vectorize(l, axis_dim(a.axis), elem, {a.contiguity, a.align_bytes, a.mask_run});
  for (int i = 0; i < access.width; ++i)
    if (access.regs.col[static_cast<std::size_t>(i)] & skip) {
      access = vectorize(l, axis_dim(a.axis), elem, {.contiguity = 0});
      break;
    }
  v.width = access.width;
  for (int n = 0; n < 1 << (l.in.bits(reg) - v.width); ++n) {
    std::vector<int> group;
    for (int j = 0; j < 1 << v.width; ++j)
      group.push_back(static_cast<int>(access.regs((static_cast<f2_word>(n) << v.width) | static_cast<f2_word>(j))));
    if (!(static_cast<f2_word>(group[0]) & skip)) v.registers.push_back(std::move(group));
  }
  return v;
}

} // namespace

Value* lowerer::pointer_of(registers const& p, dtype t, int r) {
  if (!p.base) return p.r[static_cast<std::size_t>(r)];
  return b.CreateGEP(memory_type(t), p.base, p.r[static_cast<std::size_t>(r)]);
}

lowerer::global_access lowerer::address_of(int node, int mask_operand, linear_layout const& l, bool owners_only) {
  global_access a{l, {}, {}};
  int const address = g.operand(node, 0), mask = g.operand(node, mask_operand);
  dtype const t = type(address);
  int const n = 1 << l.in.bits(reg);
  std::optional<region_elements> region;
  registers pointer, given;
  if (g[address].kind == node_kind::region) region.emplace(*this, address, l);
  else pointer = get(address, l);
  if (mask >= 0) given = get(mask, l);
  Value* owner = owners_only ? is_owner(l) : nullptr;
  for (int r = 0; r < n; ++r) {
    a.address.push_back(region ? b.CreateGEP(memory_type(t), region->data, region->offset(r))
                               : pointer_of(pointer, t, r));
    Value* m = mask >= 0 ? given.r[static_cast<std::size_t>(is_scalar(mask) ? 0 : r)] : nullptr;
    m = all_of(m, inside(l, g.shape_of(address), r));
    if (region) m = all_of(m, region->in_bounds(r));
    m = all_of(m, owner);
    if (auto* c = llvm::dyn_cast_or_null<llvm::ConstantInt>(m); c && c->isOne()) m = nullptr;
    a.mask.push_back(m);
  }
  return a;
}

std::vector<Value*> lowerer::load_global(int node, global_access const& a, int other, cache_hint hint) {
  dtype const t = type(g.operand(node, 0));
  vector_groups const v = vectors_of(*this, node, a.layout, 0);
  registers instead;
  if (other >= 0) instead = get(other, a.layout);
  llvm::Type* word = word_type(t, 1 << v.width);
  int const words = std::max(1, (storage_bits_of(t) << v.width) / static_cast<int>(word->getIntegerBitWidth()));
  int const align = static_cast<int>(bytes_of(t)) << v.width;
  std::vector<Value*> y(a.address.size());
  // Vectors under one mask are loaded together: one branch where the target branches.
  for (std::size_t first = 0; first < v.registers.size();) {
    Value* mask = a.mask[static_cast<std::size_t>(v.registers[first][0])];
    std::size_t last = first;
    std::vector<Value*> addresses;
    while (last < v.registers.size() && a.mask[static_cast<std::size_t>(v.registers[last][0])] == mask)
      addresses.push_back(a.address[static_cast<std::size_t>(v.registers[last++][0])]);
    auto const loaded = hw->load(addresses, word, words, align, mask, hint);
    for (std::size_t i = first; i < last; ++i) {
      std::vector<Value*> elements(v.registers[i].size());
      unpack(loaded[i - first], t, elements);
      for (std::size_t j = 0; j < elements.size(); ++j) {
        auto const r = static_cast<std::size_t>(v.registers[i][j]);
        y[r] =
            mask && other >= 0 ? b.CreateSelect(mask, elements[j], instead.r[is_scalar(other) ? 0 : r]) : elements[j];
      }
    }
    first = last;
  }
  return y;
}

registers lowering<op::region>::emit(lowerer&, int) { return {}; }

registers lowering<op::load>::emit(lowerer& k, int node) {
  int const address = k.g.operand(node, 0);
  cache_hint hint = hint_of(k, node);
  // Read-only for the kernel: only what no other argument can write.
  if (k.g.attrs.no_alias) {
    int const root = memory_root(k.g, address);
    hint.read_only = root >= 0 && k.g.params[static_cast<std::size_t>(root)].is_const;
  }
  return {k.load_global(node, k.address_of(node, 1, k.plan.of(node), false), k.g.operand(node, 2), hint)};
}

registers lowering<op::store>::emit(lowerer& k, int node) {
  linear_layout const& l = k.plan.of(node);
  dtype const t = k.type(k.g.operand(node, 0));
  registers const value = k.get(k.g.operand(node, 1), l);
  auto const a = k.address_of(node, 2, l, true);
  vector_groups const v = vectors_of(k, node, l, owners(l).reg);
  llvm::Type* word = k.word_type(t, 1 << v.width);
  int const align = static_cast<int>(bytes_of(t)) << v.width;
  auto const per = static_cast<std::size_t>(static_cast<int>(word->getIntegerBitWidth()) / storage_bits_of(t));
  bool const uniform_value = k.is_scalar(k.g.operand(node, 1));
  for (std::size_t first = 0; first < v.registers.size();) {
    Value* mask = a.mask[static_cast<std::size_t>(v.registers[first][0])];
    std::size_t last = first;
    std::vector<Value*> addresses;
    std::vector<std::vector<Value*>> values;
    for (; last < v.registers.size() && a.mask[static_cast<std::size_t>(v.registers[last][0])] == mask; ++last) {
      addresses.push_back(a.address[static_cast<std::size_t>(v.registers[last][0])]);
      std::vector<Value*> elements, words;
      for (int r : v.registers[last]) elements.push_back(value.r[uniform_value ? 0 : static_cast<std::size_t>(r)]);
      for (std::size_t i = 0; i < elements.size(); i += per)
        words.push_back(k.pack(llvm::ArrayRef(elements).slice(i, std::min(per, elements.size() - i)), t, word));
      values.push_back(std::move(words));
    }
    k.hw->store(addresses, values, align, mask, hint_of(k, node));
    first = last;
  }
  return {};
}

// One request for each run of memory that the lanes of a warp touch together.
registers lowering<op::prefetch>::emit(lowerer& k, int node) {
  linear_layout const& l = k.plan.of(node);
  access_shape const s = shape_of_access(k.g, k.facts, node);
  auto const level = static_cast<cache_level>(k.g.attribute(node, 0));
  int const most = k.hw->prefetch_bytes(level, 1 << s.align_bytes);
  if (most == 0) return {};
  auto const a = k.address_of(node, 1, l, true);
  vector_groups const v = vectors_of(k, node, l, owners(l).reg);
  int const elem = log2_bytes(k.type(k.g.operand(node, 0)));
  int run = v.width;
  std::int64_t followers = 0; // lane bits inside a run
  if (!k.is_scalar(k.g.operand(node, 0)))
    for (int i = 0; i < l.in.bits(lane); ++i)
      if (run < std::min(s.contiguity, s.mask_run) && elem + run < std::countr_zero(static_cast<unsigned>(most)) &&
          run < l.out.bits(axis_dim(s.axis)) && l.basis(lane, i) == l.out.put(axis_dim(s.axis), f2_unit(run)))
        ++run, followers |= std::int64_t{1} << i;
  Value* leads = followers ? k.b.CreateICmpEQ(k.b.CreateAnd(k.lane, k.i32(followers)), k.i32(0)) : nullptr;
  for (std::vector<int> const& group : v.registers) {
    auto const first = static_cast<std::size_t>(group[0]);
    k.hw->prefetch(a.address[first], 1 << (elem + run), level, k.all_of(a.mask[first], leads));
  }
  return {};
}

// ---- atomics: each element once, by its owner; the old value goes to every thread that holds the element
// -------------------

namespace {

llvm::AtomicOrdering ordering(memory_order o) {
  switch (o) {
  case memory_order::relaxed: return llvm::AtomicOrdering::Monotonic;
  case memory_order::acquire: return llvm::AtomicOrdering::Acquire;
  case memory_order::release: return llvm::AtomicOrdering::Release;
  case memory_order::acq_rel: return llvm::AtomicOrdering::AcquireRelease;
  }
  return llvm::AtomicOrdering::SequentiallyConsistent;
}

/// Floats as numbers for arithmetic, everything else as bits.
Value* as_number(lowerer& k, Value* x, dtype t) {
  if (t == dtype::f16) return k.b.CreateBitCast(x, k.b.getHalfTy());
  if (t == dtype::bf16) return k.b.CreateBitCast(x, k.b.getBFloatTy());
  return x;
}

bool result_is_used(lowerer& k, int node) {
  for (int i = node + 1; i < k.g.size(); ++i)
    for (int o : k.g.operands(i))
      if (o == node) return true;
  return false;
}

template <class F> registers atomic(lowerer& k, int node, int mask_operand, F one) {
  linear_layout const& l = k.plan.of(node);
  auto const a = k.address_of(node, mask_operand, l, true);
  dtype const t = k.type(node);
  bool const used = result_is_used(k, node);
  f2_word const copies = owners(l).reg;
  registers r;
  r.r.resize(a.address.size());
  Value* zero = llvm::Constant::getNullValue(k.carrier(t));
  for (std::size_t i = 0; i < a.address.size(); ++i) {
    r.r[i] = zero;
    if (i & copies) continue;
    llvm::BasicBlock* before = k.b.GetInsertBlock();
    Value* old = nullptr;
    llvm::BasicBlock* acted = before;
    k.when(a.mask[i], [&] {
      old = one(a.address[i], i);
      acted = k.b.GetInsertBlock();
    });
    if (!used) continue;
    if (a.mask[i]) {
      llvm::PHINode* phi = k.b.CreatePHI(old->getType(), 2);
      phi->addIncoming(zero, before);
      phi->addIncoming(old, acted);
      old = phi;
    }
    r.r[i] = old;
  }
  if (used) r.r = k.replicate(std::move(r.r), l);
  return r;
}

} // namespace

namespace {

/// Additions of whole words, where an access covers them and nobody wants the old values.
bool add_vectors(lowerer& k, int node, registers const& value) {
  if (!adds_in_vectors(k.g, node, k.cta)) return false;
  dtype const t = k.type(node);
  linear_layout const& l = k.plan.of(node);
  f2_word const copies = owners(l).reg;
  vector_groups const v = vectors_of(k, node, l, copies);
  if (static_cast<int>(bytes_of(t)) << v.width < 4) return false; // halves of words would need a loop
  auto const a = k.address_of(node, 2, l, true);
  bool const uniform_value = k.is_scalar(k.g.operand(node, 1));
  auto const per = static_cast<std::size_t>(4 / bytes_of(t));
  for (std::vector<int> const& group : v.registers) {
    auto const first = static_cast<std::size_t>(group[0]);
    std::vector<Value*> elements, words;
    for (int r : group) elements.push_back(value.r[uniform_value ? 0 : static_cast<std::size_t>(r)]);
    for (std::size_t i = 0; i < elements.size(); i += per)
      words.push_back(k.pack(llvm::ArrayRef(elements).slice(i, per), t, k.b.getInt32Ty()));
    k.hw->add(a.address[first], words, t, static_cast<memory_scope>(k.g.attribute(node, 2)), a.mask[first]);
  }
  return true;
}

} // namespace

registers lowering<op::atomic_rmw>::emit(lowerer& k, int node) {
  dtype const t = k.type(node);
  bool const fp = is_float(t);
  linear_layout const& l = k.plan.of(node);
  registers const value = k.get(k.g.operand(node, 1), l);
  if (add_vectors(k, node, value)) return {};
  auto const code = static_cast<atomic_op>(k.g.attribute(node, 0));
  auto const order = ordering(static_cast<memory_order>(k.g.attribute(node, 1)));
  llvm::SyncScope::ID const scope =
      k.context.getOrInsertSyncScopeID(k.hw->scope_name(static_cast<memory_scope>(k.g.attribute(node, 2))));
  using rmw = llvm::AtomicRMWInst;
  auto const operation = [&] {
    switch (code) {
    case atomic_op::add: return fp ? rmw::FAdd : rmw::Add;
    case atomic_op::min: return fp ? rmw::FMin : is_signed_int(t) ? rmw::Min : rmw::UMin;
    case atomic_op::max: return fp ? rmw::FMax : is_signed_int(t) ? rmw::Max : rmw::UMax;
    case atomic_op::bit_and: return rmw::And;
    case atomic_op::bit_or: return rmw::Or;
    case atomic_op::bit_xor: return rmw::Xor;
    case atomic_op::xchg: return rmw::Xchg;
    }
    return rmw::BAD_BINOP;
  }();
  bool const scalar_value = k.is_scalar(k.g.operand(node, 1));
  return atomic(k, node, 2, [&](Value* address, std::size_t r) -> Value* {
    Value* v = as_number(k, value.r[scalar_value ? 0 : r], t);
    Value* old =
        k.b.CreateAtomicRMW(operation, address, v, llvm::Align(static_cast<std::uint64_t>(bytes_of(t))), order, scope);
    return k.b.CreateBitCast(old, k.carrier(t));
  });
}

registers lowering<op::atomic_cas>::emit(lowerer& k, int node) {
  dtype const t = k.type(node);
  linear_layout const& l = k.plan.of(node);
  registers const expected = k.get(k.g.operand(node, 1), l), desired = k.get(k.g.operand(node, 2), l);
  auto const order = ordering(static_cast<memory_order>(k.g.attribute(node, 0)));
  auto const failure = llvm::AtomicCmpXchgInst::getStrongestFailureOrdering(order);
  llvm::SyncScope::ID const scope =
      k.context.getOrInsertSyncScopeID(k.hw->scope_name(static_cast<memory_scope>(k.g.attribute(node, 1))));
  auto pick = [&](registers const& x, int operand, std::size_t r) {
    return x.r[k.is_scalar(k.g.operand(node, operand)) ? 0 : r];
  };
  return atomic(k, node, 3, [&](Value* address, std::size_t r) -> Value* {
    Value* swap = k.b.CreateAtomicCmpXchg(address, pick(expected, 1, r), pick(desired, 2, r),
                                          llvm::Align(static_cast<std::uint64_t>(bytes_of(t))), order, failure, scope);
    return k.b.CreateExtractValue(swap, 0);
  });
}

} // namespace kiln::jit::simt
