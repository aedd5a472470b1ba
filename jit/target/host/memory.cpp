// Addresses, masks, loads and stores: of global memory, of the arena's slices, and of views of local buffers.
#include "writer.hpp"

namespace kiln::jit::host {

// -- addresses
// ---------------------------------------------------------------------------------------------------------

address writer::pull_address(int n, coordinates const& x) {
  const node& d = g[n];
  const auto size = bytes_of(d.type);
  address a;
  a.align = static_cast<int>(size);
  if (g.shape_of(n).rank == 0) {
    a.base = scalar_value(n);
    return a;
  }
  auto absolute = [&](int slice) {
    a.offset = read_slice(slice, g.shape_of(n), x);
    return a;
  };
  if (plan_.kept[static_cast<std::size_t>(n)] && !levels_.empty()) {
    // Within the nest that keeps it the value is remembered under its key; pull finds it or reads the slice.
    a.offset = pull(n, x);
    return a;
  }
  const int s = g.operand(n, 0);
  switch (d.code) {
  case op::broadcast: return pull_address(s, through_broadcast(g.shape_of(s), g.shape_of(n), x));
  case op::ptr_add: {
    a = pull_address(s, x);
    const int o = g.operand(n, 1);
    const lanes elements = widened(pull(o, x, true), g[o].type, true);
    a.offset = sum(a.offset, scaled(elements, size, b.getInt64Ty()), b.getInt64Ty());
    return a;
  }
  case op::multiple_of:
  case op::max_contiguous: return pull_address(s, x);
  case op::var_get: return absolute(plan_.slice_of[static_cast<std::size_t>(s)]);
  default: refuse(n, "is not an address that the host lowering knows");
  }
}

Value* writer::pointer_of(address const& a) {
  const lanes& o = a.offset;
  assert(!o.vector);
  Type* i8 = b.getInt8Ty();
  Value* p = a.base;
  int at = a.level;
  auto step = [&](Value* bytes, int level) {
    at = std::max(at, level);
    p = on(at, [&]() -> Value* { return p ? b.CreateGEP(i8, p, bytes) : b.CreateIntToPtr(bytes, b.getPtrTy()); });
  };
  llvm::SmallVector<term, 3> terms = o.terms;
  std::sort(terms.begin(), terms.end(), [](term const& s, term const& t) { return s.level < t.level; });
  bool pending = o.v != nullptr;
  if (!p) { // an address from memory comes first
    step(o.v ? o.v : b.getInt64(0), o.v ? o.level : 0);
    pending = false;
  }
  for (const term& t : terms) {
    if (pending && o.level <= t.level) {
      step(o.v, o.level);
      pending = false;
    }
    at = std::max(at, t.level);
    Value* bytes = t.scale == 1
                       ? t.index
                       : on(at, [&] { return b.CreateMul(t.index, b.getInt64(static_cast<std::uint64_t>(t.scale))); });
    step(bytes, t.level);
  }
  if (pending) step(o.v, o.level);
  if (o.add != 0) step(b.getInt64(static_cast<std::uint64_t>(o.add)), at);
  return p;
}

Value* writer::pointers_of(address const& a) {
  const lanes& o = a.offset;
  const int level = std::max(a.level, o.deepest());
  if (o.vector)
    return on(level, [&]() -> Value* {
      if (!a.base) return b.CreateIntToPtr(o.v, vector_type(b.getPtrTy(), width_));
      return b.CreateGEP(b.getInt8Ty(), a.base, o.v);
    });
  Value* p = pointer_of(a);
  return on(level, [&]() -> Value* {
    if (o.step == 0) return b.CreateVectorSplat(width_, p);
    llvm::SmallVector<llvm::Constant*, 64> steps;
    for (unsigned i = 0; i < width_; ++i) steps.push_back(b.getInt64(static_cast<std::uint64_t>(o.step) * i));
    return b.CreateGEP(b.getInt8Ty(), p, llvm::ConstantVector::get(steps));
  });
}

// -- regions and masks
// -------------------------------------------------------------------------------------------------

guarded writer::pull_region(int n, coordinates const& x) {
  Type* i64 = b.getInt64Ty();
  const int array = g.operand(n, 0);
  const int index = static_cast<int>(g.attribute(array, 0));
  const int first = first_slot(g, index), rank = g.params[static_cast<std::size_t>(index)].rank;
  const shape& s = g.shape_of(n);
  const bool assumed = assumed_.contains(n);
  const int lane = lane_axis_of(s);
  guarded r;
  r.where.base = scalar_value(array);
  r.where.align = static_cast<int>(bytes_of(g[n].type));
  const auto size = bytes_of(g[n].type);
  for (int d = 0; d < rank; ++d) {
    const lanes& c_d = x[static_cast<std::size_t>(d)];
    const int start_node = g.operand(n, 1 + d);
    lanes start = of(scalar_value(start_node), 0, false);
    start = widened(start, g[start_node].type, true);
    if (auto* k = llvm::dyn_cast<llvm::ConstantInt>(start.v)) start = number(k->getSExtValue());
    const lanes at = sum(start, c_d, i64);
    Value *extent = slot(first + 1 + d), *stride = slot(first + 1 + rank + d);
    if (assumed && d == lane && s.extent[d] > 1 && !llvm::isa<llvm::ConstantInt>(stride)) stride = b.getInt64(1);
    if (auto* k = llvm::dyn_cast<llvm::ConstantInt>(stride)) {
      r.where.offset = sum(r.where.offset, scaled(scaled(at, k->getSExtValue(), i64), size, i64), i64);
    } else {
      Value* bytes = on(0, [&] { return b.CreateMul(stride, b.getInt64(static_cast<std::uint64_t>(size))); });
      // start * stride is invariant; only the rest moves with the loops.
      if (start.v || start.add) {
        Value* s0 = scalar_of(start, i64);
        r.where.offset = sum(r.where.offset, of(on(0, [&] { return b.CreateMul(s0, bytes); }), 0, false), i64);
      }
      if (!(c_d.v == nullptr && c_d.terms.empty() && c_d.add == 0 && c_d.step == 0)) {
        const int level = c_d.deepest();
        lanes moved;
        if (c_d.uniform() || width_ == 1) {
          Value* k2 = scalar_of(c_d, i64);
          moved = of(on(level, [&] { return b.CreateMul(k2, bytes); }), level, false);
        } else {
          Value* k2 = vector_of(c_d, i64);
          moved = of(on(level, [&] { return b.CreateMul(k2, b.CreateVectorSplat(width_, bytes)); }), level, true);
        }
        r.where.offset = sum(r.where.offset, moved, i64);
      }
    }
    if (assumed) continue;
    const int level = at.deepest();
    lanes inside;
    if (at.uniform() || width_ == 1) {
      Value* v = scalar_of(at, i64);
      inside = of(on(level, [&] { return b.CreateICmpULT(v, extent); }), level, false);
    } else if (!at.vector && at.step == 1) {
      // Lanes low..high-1 are inside, both clamped to 0..width.
      lanes base = at;
      base.step = 0;
      Value* v = scalar_of(base, i64);
      inside = of(on(level,
                     [&] {
                       auto clamp = [&](Value* k) {
                         k = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, k, b.getInt64(0));
                         k = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, k, b.getInt64(width_));
                         return b.CreateVectorSplat(width_, b.CreateTrunc(k, b.getInt32Ty()));
                       };
                       llvm::SmallVector<std::uint32_t, 64> count;
                       for (unsigned i = 0; i < width_; ++i) count.push_back(i);
                       Value* number_of_lane = llvm::ConstantDataVector::get(c, count);
                       Value* below = b.CreateICmpULT(number_of_lane, clamp(b.CreateSub(extent, v)));
                       return b.CreateAnd(below, b.CreateICmpUGE(number_of_lane, clamp(b.CreateNeg(v))));
                     }),
                  level, true);
    } else {
      Value* v = vector_of(at, i64);
      inside = of(on(level, [&] { return b.CreateICmpULT(v, b.CreateVectorSplat(width_, extent)); }), level, true);
    }
    r.mask = both(r, inside);
    r.has_mask = true;
  }
  return r;
}

lanes writer::both(guarded const& a, lanes const& more) {
  if (!a.has_mask) return more;
  Type* i1 = b.getInt1Ty();
  const int level = std::max(a.mask.deepest(), more.deepest());
  if (a.mask.uniform() && more.uniform()) {
    Value *p = scalar_of(a.mask, i1), *q = scalar_of(more, i1);
    return of(on(level, [&] { return b.CreateAnd(p, q); }), level, false);
  }
  Value *p = vector_of(a.mask, i1), *q = vector_of(more, i1);
  return of(on(level, [&] { return b.CreateAnd(p, q); }), level, true);
}

guarded writer::pull_access(int address_node, int mask_node, coordinates const& x) {
  guarded r;
  if (g[address_node].kind == node_kind::region) r = pull_region(address_node, x);
  else r.where = pull_address(address_node, x);
  if (mask_node < 0 || assumed_.contains(mask_node)) return r;
  const lanes m = pull(mask_node, x);
  if (!m.vector)
    if (auto* k = llvm::dyn_cast<llvm::ConstantInt>(m.v); k && k->isOne()) return r;
  r.mask = both(r, m);
  r.has_mask = true;
  return r;
}

// -- loads and stores
// --------------------------------------------------------------------------------------------------

lanes writer::from_memory(lanes const& raw, dtype t) {
  if (!is_bool(t)) return raw;
  return of(on(raw.level, [&] { return b.CreateICmpNE(raw.v, llvm::Constant::getNullValue(raw.v->getType())); }),
            raw.level, raw.vector);
}

// `padded`: bytes behind the last element may be read (the arena).
lanes writer::read(address const& a, dtype t, bool is_volatile, bool padded) {
  const int level = std::max(a.level, a.offset.deepest());
  Type* element = memory_type(t);
  const llvm::Align align(static_cast<std::uint64_t>(a.align));
  const auto size = bytes_of(t);
  if (!a.offset.vector && (a.offset.step == 0 || width_ == 1)) {
    Value* p = pointer_of(a);
    return from_memory(of(on(level, [&] { return b.CreateAlignedLoad(element, p, align, is_volatile); }), level, false),
                       t);
  }
  Type* type = vector_type(element, width_);
  if (!a.offset.vector && a.offset.step == size) {
    Value* p = pointer_of(a);
    return from_memory(of(on(level, [&] { return b.CreateAlignedLoad(type, p, align, is_volatile); }), level, true), t);
  }
  const std::int64_t apart = a.offset.vector ? 0 : a.offset.step / size;
  if (padded && apart >= 2 && apart <= 4 && apart * size <= 16) {
    Value* p = pointer_of(a);
    return from_memory(of(on(level,
                             [&]() -> Value* {
                               const auto many = static_cast<unsigned>(apart) * width_;
                               Value* wide = b.CreateAlignedLoad(vector_type(element, many), p, align);
                               llvm::SmallVector<int, 64> pick;
                               for (unsigned i = 0; i < width_; ++i)
                                 pick.push_back(static_cast<int>(i * static_cast<unsigned>(apart)));
                               return b.CreateShuffleVector(wide, pick);
                             }),
                          level, true),
                       t);
  }
  Value* p = pointers_of(a);
  return from_memory(of(on(level, [&]() -> Value* { return b.CreateMaskedGather(type, p, align); }), level, true), t);
}

lanes writer::read_guarded(guarded const& a, dtype t, lanes const* other, bool is_volatile) {
  if (!a.has_mask) return read(a.where, t, is_volatile);
  Type* element = memory_type(t);
  const llvm::Align align(static_cast<std::uint64_t>(a.where.align));
  int level = std::max({a.where.level, a.where.offset.deepest(), a.mask.deepest()});
  if (other) level = std::max(level, other->deepest());
  Type* value_type = carrier(t);
  const bool plain = !a.where.offset.vector && (a.where.offset.step == 0 || width_ == 1);
  if (plain && a.mask.uniform() && (!other || other->uniform())) {
    Value *p = pointer_of(a.where), *m = scalar_of(a.mask, b.getInt1Ty());
    Value* otherwise = other ? scalar_of(*other, value_type) : llvm::Constant::getNullValue(value_type);
    return from_memory(of(on(level,
                             [&] {
                               Value* no = to_memory(otherwise, t);
                               return emit::branch(
                                   b, m,
                                   [&] { return emit::values{b.CreateAlignedLoad(element, p, align, is_volatile)}; },
                                   [&] { return emit::values{no}; })[0];
                             }),
                          level, false),
                       t);
  }
  Type* type = vector_type(element, width_);
  Value* m = vector_of(a.mask, b.getInt1Ty());
  Value* otherwise =
      other ? vector_of(*other, value_type) : llvm::Constant::getNullValue(vector_type(value_type, width_));
  const bool contiguous = !a.where.offset.vector && a.where.offset.step == bytes_of(t);
  Value* p = contiguous ? pointer_of(a.where) : pointers_of(a.where);
  return from_memory(of(on(level,
                           [&]() -> Value* {
                             Value* no = to_memory(otherwise, t);
                             if (auto* known = llvm::dyn_cast<llvm::Constant>(m)) return load_known(type, p, contiguous, align, known, no);
                             if (contiguous) return b.CreateMaskedLoad(type, p, align, m, no);
                             return b.CreateMaskedGather(type, p, align, m, no);
                           }),
                        level, true),
                     t);
}

namespace {

// Lanes of a constant mask that are true; poison counts as false.
bool lane_is_on(llvm::Constant* mask, unsigned i) {
  auto* k = llvm::dyn_cast_or_null<llvm::ConstantInt>(mask->getAggregateElement(i));
  return k && k->isOne();
}

} // namespace

// Masks that are known are written out lane by lane. LLVM 22 turns a masked store of truncated lanes under a constant
// mask with one lane on into a store of the wide element, which writes behind it.
Value* writer::load_known(Type* type, Value* p, bool contiguous, llvm::Align align, llvm::Constant* mask, Value* otherwise) {
  Value* r = otherwise;
  Type* element = type->getScalarType();
  for (unsigned i = 0; i < width_; ++i) {
    if (!lane_is_on(mask, i)) continue;
    Value* from = contiguous ? b.CreateConstGEP1_64(element, p, i) : b.CreateExtractElement(p, i);
    r = b.CreateInsertElement(r, b.CreateAlignedLoad(element, from, align), i);
  }
  return r;
}

void writer::store_known(Value* v, Value* p, bool contiguous, llvm::Align align, llvm::Constant* mask) {
  Type* element = v->getType()->getScalarType();
  for (unsigned i = 0; i < width_; ++i) {
    if (!lane_is_on(mask, i)) continue;
    Value* to = contiguous ? b.CreateConstGEP1_64(element, p, i) : b.CreateExtractElement(p, i);
    b.CreateAlignedStore(b.CreateExtractElement(v, i), to, align);
  }
}

// Stores happen at the present place, never in front of a loop. `output`: a store of the kernel's, which may be held back.
void writer::write(guarded const& a, dtype t, lanes const& value, bool output) {
  const llvm::Align align(static_cast<std::uint64_t>(a.where.align));
  Type* value_type = carrier(t);
  if (width_ == 1) {
    Value *p = pointer_of(a.where), *v = to_memory(scalar_of(value, value_type), t);
    if (!a.has_mask) b.CreateAlignedStore(v, p, align);
    else emit::when(b, scalar_of(a.mask, b.getInt1Ty()), [&] { b.CreateAlignedStore(v, p, align); });
    return;
  }
  Value* v = to_memory(vector_of(value, value_type), t);
  const bool contiguous = !a.where.offset.vector && a.where.offset.step == bytes_of(t);
  if (!contiguous) {
    Value* p = pointers_of(a.where);
    Value* m = a.has_mask ? vector_of(a.mask, b.getInt1Ty()) : nullptr;
    if (auto* known = llvm::dyn_cast_or_null<llvm::Constant>(m)) store_known(v, p, false, align, known);
    else b.CreateMaskedScatter(v, p, align, m);
    return;
  }
  Value* p = pointer_of(a.where);
  if (a.has_mask) {
    Value* m = vector_of(a.mask, b.getInt1Ty());
    if (auto* known = llvm::dyn_cast<llvm::Constant>(m)) store_known(v, p, true, align, known);
    else b.CreateMaskedStore(v, p, align, m);
    return;
  }
  const auto bytes = static_cast<std::uint64_t>(bytes_of(t)) * width_;
  if (output && stream_ && bytes >= 16) held_.push_back({v, p, align, llvm::Align(bytes)});
  else b.CreateAlignedStore(v, p, align);
}

void writer::write_held() {
  if (held_.empty()) return;
  auto all = [&](bool around) {
    for (const held_store& h : held_) {
      auto* store = b.CreateAlignedStore(h.value, h.pointer, around ? h.around : h.plain);
      if (around)
        store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                           llvm::MDNode::get(c, llvm::ConstantAsMetadata::get(b.getInt32(1))));
    }
    return emit::values{};
  };
  emit::branch(b, stream_, [&] { return all(true); }, [&] { return all(false); });
  held_.clear();
}

// -- slices of the arena
// -----------------------------------------------------------------------------------------------

address writer::slice_address(int slice_index, shape const& s, coordinates const& x) {
  const slice& sl = plan_.slices[static_cast<std::size_t>(slice_index)];
  const std::int64_t size = sl.pointers ? 8 : bytes_of(sl.type);
  address a;
  a.base = arena_;
  a.align = static_cast<int>(size);
  std::int64_t stride = size;
  for (int d = s.rank - 1; d >= 0; --d) {
    if (s.extent[d] > 1)
      a.offset = sum(a.offset, scaled(x[static_cast<std::size_t>(d)], stride, b.getInt64Ty()), b.getInt64Ty());
    stride *= s.extent[d];
  }
  if (sl.offset != 0)
    a.base = on(0, [&] { return b.CreateConstGEP1_64(b.getInt8Ty(), arena_, static_cast<std::uint64_t>(sl.offset)); });
  return a;
}

lanes writer::read_slice(int slice_index, shape const& s, coordinates const& x) {
  const slice& sl = plan_.slices[static_cast<std::size_t>(slice_index)];
  return read(slice_address(slice_index, s, x), sl.pointers ? dtype::i64 : sl.type, false, true);
}

void writer::write_slice(int slice_index, shape const& s, coordinates const& x, lanes const& value) {
  const slice& sl = plan_.slices[static_cast<std::size_t>(slice_index)];
  guarded a;
  a.where = slice_address(slice_index, s, x);
  write(a, sl.pointers ? dtype::i64 : sl.type, value);
}

// -- local memory
// ------------------------------------------------------------------------------------------------------

Value* writer::buffer_base(int buffer) {
  if (buffer == filled_buffer_) return filled_;
  const int sl = plan_.slice_of[static_cast<std::size_t>(g.buffer(buffer).node)];
  const std::int64_t offset = plan_.slices[static_cast<std::size_t>(sl)].offset;
  return on(0, [&] { return b.CreateConstGEP1_64(b.getInt8Ty(), arena_, static_cast<std::uint64_t>(offset)); });
}

// The place of elements in a slot with a layout, from their row-major numbers.
lanes writer::placed(lanes const& number, slot_layout const& l) {
  Type* i64 = b.getInt64Ty();
  const bool scalar = number.uniform() || width_ == 1;
  const int level = number.deepest();
  Value* x = scalar ? scalar_of(number, i64) : vector_of(number, i64);
  auto k = [&](std::int64_t v) { return llvm::ConstantInt::get(x->getType(), static_cast<std::uint64_t>(v)); };
  Value* y = on(level, [&] {
    Value* p = x;
    if (l.bases > 0) {
      p = k(0);
      for (int i = 0; i < l.bases; ++i) p = b.CreateXor(p, b.CreateMul(b.CreateAnd(b.CreateLShr(x, k(i)), k(1)), k(l.basis[i])));
    }
    if (l.modes > 0) {
      Value* rest = x;
      p = k(l.offset);
      for (int i = l.modes - 1; i >= 0; --i) {
        p = b.CreateAdd(p, b.CreateMul(b.CreateURem(rest, k(l.mode[i].extent)), k(l.mode[i].stride)));
        rest = b.CreateUDiv(rest, k(l.mode[i].extent));
      }
    }
    if (l.bits > 0) p = b.CreateXor(p, b.CreateAnd(b.CreateLShr(p, k(l.shift)), k(((std::int64_t{1} << l.bits) - 1) << l.base)));
    Value* padded = p;
    for (int i = 0; i < l.paddings; ++i) padded = b.CreateAdd(padded, b.CreateMul(b.CreateUDiv(p, k(l.padding[i].interval)), k(l.padding[i].pad)));
    return padded;
  });
  return of(y, level, !scalar);
}

// x are coordinates in the view; they are mapped through the chain of views to the buffer.
address writer::view_address(int n, coordinates x) {
  Type* i64 = b.getInt64Ty();
  const auto size = bytes_of(g[n].type);
  auto index_value = [&](int i) {
    lanes l = widened(of(scalar_value(i), 0, false), g[i].type, true);
    if (auto* k = llvm::dyn_cast<llvm::ConstantInt>(l.v)) return number(k->getSExtValue());
    return l;
  };
  address a;
  a.align = static_cast<int>(size);
  for (;;) {
    const node& d = g[n];
    const int s = g.operand(n, 0);
    switch (d.code) {
    case op::view_trans: {
      coordinates y(x.size());
      for (std::size_t i = 0; i < x.size(); ++i)
        y[static_cast<std::size_t>(g.attribute(n, static_cast<int>(i)))] = x[i];
      x = y;
      break;
    }
    case op::view_slice:
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = sum(x[i], index_value(g.operand(n, 1 + static_cast<int>(i))), i64);
      break;
    case op::view_reshape: x = through_reshape(g.shape_of(s), g.shape_of(n), x); break;
    case op::view_index: {
      lanes i = index_value(g.operand(n, 1));
      if (g[s].kind != node_kind::buffers) {
        coordinates y;
        y.push_back(i);
        if (g.shape_of(s).rank > 1) y.append(x.begin(), x.end());
        x = y;
        break;
      }
      const int buffer = static_cast<int>(g.attribute(s, 0));
      const local_form form = local_form_of(g, buffer);
      a.base = buffer_base(form.storage);
      a.offset = number(form.slots.offset);
      for (int j = form.slots.levels - 1; j >= 0; --j) { // the index in mixed radix, see slot_map
        const slot_radix r = form.slots.radix[j];
        const int level = i.deepest();
        Value* index = scalar_of(i, i64);
        Value* count = llvm::ConstantInt::get(i64, static_cast<std::uint64_t>(r.count));
        Value* low = on(level, [&] { return b.CreateURem(index, count); });
        i = of(on(level, [&] { return b.CreateUDiv(index, count); }), level, false);
        a.offset = sum(a.offset, scaled(of(low, level, false), r.pitch, i64), i64);
      }
      a.offset = sum(a.offset, scaled(i, form.slots.stride, i64), i64);
      const buffer_info& info = g.buffer(buffer);
      lanes within;
      for (std::size_t k = x.size(); k-- > 0;) within = sum(within, scaled(x[k], info.layout.plain() ? form.stride[k] : form.stride[k] / size, i64), i64);
      if (!info.layout.plain()) within = scaled(placed(within, form.layout), size, i64);
      a.offset = sum(a.offset, within, i64);
      return a;
    }
    default: refuse(n, "is not a view");
    }
    n = s;
  }
}

} // namespace kiln::jit::host
