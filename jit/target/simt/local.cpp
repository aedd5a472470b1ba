// Local memory: views, synchronous and asynchronous access, gather and scatter, and products without a matrix unit.
#include "lowerings.hpp"

#include <algorithm>
#include <kiln/layout/index_terms.hpp>
#include <kiln/layout/vectorize.hpp>

namespace kiln::jit::simt {

using enum layout_dim;

namespace {

int log2_bytes(dtype t) { return std::countr_zero(static_cast<std::uint64_t>(bytes_of(t))); }
int power_in(std::int64_t v) {
  return v == 0 ? 1 << 10 : 1 << std::min(10, std::countr_zero(static_cast<std::uint64_t>(v)));
}

/// `i` as (loop index + offset) mod modulus, when it has that form.
bool ring_index(lowerer& k, int i, int& symbol, int& offset, int& modulus) {
  auto const& g = k.g;
  auto through_casts = [&](int n) {
    while (g[n].code == op::cast && is_int(g[n].type)) n = g.operand(n, 0);
    return n;
  };
  i = through_casts(i);
  if (g[i].code != op::rem) return false;
  auto const m = constant_of(k.facts, g.operand(i, 1));
  if (!m || *m < 1 || *m > 1024) return false;
  modulus = static_cast<int>(*m);
  i = through_casts(g.operand(i, 0));
  offset = 0;
  while (g[i].code == op::add) {
    auto const x = constant_of(k.facts, g.operand(i, 0)), y = constant_of(k.facts, g.operand(i, 1));
    if (!x && !y) return false;
    std::int64_t const c = x ? *x : *y;
    if (c < 0 || c > 1 << 20) return false; // the remainder of a negative index is not a residue
    offset += static_cast<int>(c);
    i = through_casts(g.operand(i, x ? 1 : 0));
  }
  if (g[i].code != op::for_begin) return false;
  auto const lo = constant_of(k.facts, g.operand(i, 0));
  auto const step = constant_of(k.facts, g.operand(i, 2));
  if (!lo || *lo < 0 || !step || *step <= 0) return false;
  symbol = i;
  offset %= modulus;
  return true;
}

/// Moves the start of a view that lies in a slot with a layout.
void move_start(lowerer& k, view_value& v, Value* elements, std::int64_t step) {
  v.start = v.start ? k.b.CreateAdd(v.start, elements) : elements;
  v.align = std::min(v.align, power_in(step * bytes_of(v.type)));
}

void index_by(lowerer& k, view_value& v, int index_node, std::int64_t stride_bytes, int count, bool slot = false) {
  auto const c = constant_of(k.facts, index_node);
  if (c && (*c < 0 || *c >= count))
    k.fail(index_node, "kiln[R-BD01] index " + std::to_string(*c) + ", valid 0.." + std::to_string(count - 1));
  if (!slot && !v.layout.plain()) {
    std::int64_t const step = stride_bytes / bytes_of(v.type);
    if (!c) move_start(k, v, k.b.CreateMul(k.b.CreateSExtOrTrunc(k.scalar(index_node), k.b.getInt32Ty()), k.i32(step)), step);
    else if (*c) move_start(k, v, k.i32(*c * step), *c * step);
    return;
  }
  if (c) {
    v.offset += *c * stride_bytes;
    v.pointer = k.b.CreateInBoundsGEP(k.b.getInt8Ty(), v.pointer, k.i32(*c * stride_bytes));
    v.align = std::min(v.align, power_in(*c * stride_bytes));
    return;
  }
  Value* i = k.b.CreateSExtOrTrunc(k.scalar(index_node), k.b.getInt32Ty());
  v.pointer = k.b.CreateInBoundsGEP(k.b.getInt8Ty(), v.pointer, k.b.CreateMul(i, k.i32(stride_bytes)));
  v.align = std::min(v.align, power_in(stride_bytes));
  v.reach.push_back({count, stride_bytes});
}

} // namespace

slot_layout lowerer::buffer_layout(int buffer) const {
  buffer_info const& info = g.buffer(buffer);
  spreading const way = buffer_swizzled[static_cast<std::size_t>(buffer)];
  if (way == spreading::none) return info.layout;
  std::int64_t const row = g.shapes[static_cast<std::size_t>(info.shape)].extent[1] * bytes_of(info.type);
  return layout_of_rows(std::countr_zero(static_cast<std::uint64_t>(row)), log2_bytes(info.type), way == spreading::across);
}

view_value lowerer::view(int node) {
  op const code = g[node].code;
  shape const& s = g.shape_of(node);
  if (code == op::alloc) fail(node, "internal: an allocation is no view");
  int const from = g.operand(node, 0);
  view_value v;
  if (code == op::view_index && g[from].code == op::alloc) {
    auto const buffer = static_cast<std::size_t>(g.attribute(from, 0));
    buffer_info const& info = g.buffers[buffer];
    local_form const form = local_form_of(g, static_cast<int>(buffer));
    v.type = info.type;
    v.extents = s;
    for (int d = 0; d < s.rank; ++d) v.stride[d] = form.stride[d] / bytes_of(info.type);
    v.align = static_cast<int>(std::min<std::int64_t>(kiln::detail::buffer_alignment(g.buffer(form.storage)), 1024));
    v.align = std::min(v.align, power_in(form.slots.offset));
    v.layout = buffer_layout(static_cast<int>(buffer));
    v.slot_bytes = form.bytes;
    v.offset = buffer_offset[buffer];
    if (auto const at = static_arrays.find(form.storage); at != static_arrays.end())
      v.pointer = form.slots.offset ? b.CreateInBoundsGEP(b.getInt8Ty(), at->second, i32(form.slots.offset)) : at->second;
    else v.pointer = arena(v.offset);
    int const index = g.operand(node, 1);
    if (!constant_of(facts, index))
      if (ring_slot r; ring_index(*this, index, r.symbol, r.offset, r.modulus))
        r.ring = static_cast<int>(buffer), v.slot = r;
    if (form.slots.levels == 0) {
      index_by(*this, v, index, form.slots.stride, info.slots, true);
      return v;
    }
    if (auto const c = constant_of(facts, index); c && *c >= 0 && *c < info.slots) {
      std::int64_t const at = form.slots.at(*c) - form.slots.offset;
      v.offset += at;
      v.pointer = b.CreateInBoundsGEP(b.getInt8Ty(), v.pointer, i32(at));
      v.align = std::min(v.align, power_in(at));
      return v;
    }
    // A runtime index in mixed radix, see slot_map.
    Value *rest = b.CreateSExtOrTrunc(scalar(index), b.getInt32Ty()), *at = nullptr;
    int groups = info.slots;
    auto digit = [&](Value* i, int count, std::int64_t pitch) {
      Value* x = b.CreateMul(i, i32(pitch));
      at = at ? b.CreateAdd(at, x) : x;
      v.align = std::min(v.align, power_in(pitch));
      v.reach.push_back({count, pitch});
    };
    for (int j = form.slots.levels - 1; j >= 0; --j) {
      slot_radix const r = form.slots.radix[j];
      digit(b.CreateURem(rest, i32(r.count)), r.count, r.pitch);
      rest = b.CreateUDiv(rest, i32(r.count));
      groups /= r.count;
    }
    digit(rest, groups, form.slots.stride);
    v.pointer = b.CreateInBoundsGEP(b.getInt8Ty(), v.pointer, at);
    return v;
  }
  v = view(from);
  view_value const old = v;
  v.extents = s;
  std::int64_t const elem = bytes_of(v.type);
  switch (code) {
  case op::view_index:
    if (old.extents.rank == 1) {
      v.stride[0] = 1;
    } else {
      for (int d = 0; d + 1 < old.extents.rank; ++d) v.stride[d] = old.stride[d + 1];
    }
    index_by(*this, v, g.operand(node, 1), old.stride[0] * elem, old.extents.extent[0]);
    break;
  case op::view_trans:
    for (int d = 0; d < s.rank; ++d) v.stride[d] = old.stride[g.attribute(node, d)];
    break;
  case op::view_slice:
    for (int d = 0; d < s.rank; ++d) {
      if (old.extents.extent[d] == s.extent[d]) continue;
      // Offsets are multiples of the slice's extent, so that a runtime one picks a block.
      int const offset = g.operand(node, 1 + d), e = s.extent[d];
      if (!v.layout.plain()) {
        auto const c = constant_of(facts, offset);
        if (c && *c == 0) continue;
        Value* i = c ? i32(*c * old.stride[d]) : b.CreateMul(b.CreateSExtOrTrunc(scalar(offset), b.getInt32Ty()), i32(old.stride[d]));
        move_start(*this, v, i, e * old.stride[d]);
        continue;
      }
      if (auto const c = constant_of(facts, offset)) {
        v.offset += *c * old.stride[d] * elem;
        v.pointer = b.CreateInBoundsGEP(b.getInt8Ty(), v.pointer, i32(*c * old.stride[d] * elem));
      } else {
        Value* i = b.CreateSExtOrTrunc(scalar(offset), b.getInt32Ty());
        v.pointer = b.CreateInBoundsGEP(b.getInt8Ty(), v.pointer, b.CreateMul(i, i32(old.stride[d] * elem)));
        v.reach.push_back({old.extents.extent[d] / e, e * old.stride[d] * elem});
      }
      v.align = std::min(v.align, power_in(e * old.stride[d] * elem));
    }
    break;
  case op::view_reshape: {
    // Axes that lie without gaps are one; each axis of the result is taken from one of those, innermost first.
    std::vector<byte_axis> runs; // extents and strides in elements, innermost first
    for (int d = old.extents.rank - 1; d >= 0; --d) {
      if (old.extents.extent[d] == 1) continue;
      byte_axis const a{old.extents.extent[d], old.stride[d]};
      if (!runs.empty() && a.stride == runs.back().extent * runs.back().stride) runs.back().extent *= a.extent;
      else runs.push_back(a);
    }
    std::size_t at = 0;
    std::int64_t taken = 1; // of runs[at]
    for (int d = s.rank - 1; d >= 0; --d) {
      v.stride[d] = 1;
      if (s.extent[d] == 1) continue;
      if (at < runs.size() && taken == runs[at].extent) ++at, taken = 1;
      if (at >= runs.size() || (runs[at].extent / taken) % s.extent[d] != 0)
        fail(node, "kiln[R-BD08] local_reshape: axis " + std::to_string(d) + " of " + std::to_string(s.extent[d]) +
                       " would cross a gap between the view's rows; reshape the whole buffer before slicing or "
                       "transposing it");
      v.stride[d] = runs[at].stride * taken;
      taken *= s.extent[d];
    }
    break;
  }
  default: fail(node, "internal: not a view");
  }
  return v;
}

std::vector<byte_range> lowerer::bytes_of_view(view_value const& v) {
  std::vector<byte_axis> axes = v.reach;
  std::int64_t const elem = bytes_of(v.type);
  if (!v.layout.plain() && v.slot_bytes) // a part of a slot may lie anywhere in it
    return bytes_of_box(v.offset, v.slot_bytes, axes);
  for (int d = 0; d < v.extents.rank; ++d) axes.push_back({v.extents.extent[d], v.stride[d] * elem});
  return bytes_of_box(v.offset, elem, axes);
}

Value* lowerer::place(Value* x, slot_layout const& l) {
  auto log2_of = [](std::int64_t n) { return static_cast<std::uint64_t>(std::countr_zero(static_cast<std::uint64_t>(n))); };
  auto times = [&](Value* y, std::int64_t n) { return n == 1 ? y : b.CreateMul(y, i32(n)); };
  if (l.bases > 0) {
    Value* y = nullptr;
    for (int i = 0; i < l.bases;) { // neighbours that stay neighbours are moved together
      int n = 1;
      while (i + n < l.bases && l.basis[i + n] == l.basis[i] << n && std::has_single_bit(static_cast<unsigned>(l.basis[i]))) ++n;
      Value* part = b.CreateAnd(i ? b.CreateLShr(x, static_cast<std::uint64_t>(i)) : x, i32((std::int64_t{1} << n) - 1));
      part = times(part, l.basis[i]);
      y = y ? b.CreateXor(y, part) : part;
      i += n;
    }
    return y;
  }
  if (l.modes > 0) {
    Value *sum = nullptr, *rest = x;
    for (int i = l.modes - 1; i >= 0; --i) {
      layout_mode const m = l.mode[i];
      bool const power = std::has_single_bit(static_cast<unsigned>(m.extent));
      if (m.extent > 1) {
        Value* digit = i == 0 ? rest : power ? b.CreateAnd(rest, i32(m.extent - 1)) : b.CreateURem(rest, i32(m.extent));
        if (m.stride) sum = sum ? b.CreateAdd(sum, times(digit, m.stride)) : times(digit, m.stride);
      }
      if (i > 0) rest = power ? b.CreateLShr(rest, log2_of(m.extent)) : b.CreateUDiv(rest, i32(m.extent));
    }
    x = sum ? sum : i32(0);
  }
  if (l.bits > 0) {
    Value* high = b.CreateLShr(x, static_cast<std::uint64_t>(l.shift));
    x = b.CreateXor(x, b.CreateAnd(high, i32(((std::int64_t{1} << l.bits) - 1) << l.base)));
  }
  Value* padded = x;
  for (int i = 0; i < l.paddings; ++i)
    padded = b.CreateAdd(padded, times(b.CreateLShr(x, log2_of(l.padding[i].interval)), l.padding[i].pad));
  return padded;
}

Value* lowerer::element_address(view_value const& v, llvm::ArrayRef<Value*> c) {
  Value* o = nullptr;
  for (int d = 0; d < v.extents.rank; ++d) {
    Value* x = b.CreateMul(c[static_cast<std::size_t>(d)], i32(v.stride[d]));
    o = o ? b.CreateAdd(o, x) : x;
  }
  if (!v.layout.plain()) {
    if (v.start) o = o ? b.CreateAdd(o, v.start) : v.start;
    return o ? b.CreateInBoundsGEP(memory_type(v.type), v.pointer, place(o, v.layout)) : v.pointer;
  }
  return o ? b.CreateInBoundsGEP(memory_type(v.type), v.pointer, o) : v.pointer;
}

namespace {

/// Registers of a layout as vector accesses of a view: addresses with a part of the thread computed once.
struct view_access {
  lowerer& k;
  view_value const& v;
  linear_layout const& l;
  vector_access access;
  Value* thread_pointer = nullptr;
  Value* thread_number = nullptr; ///< with a layout: the thread's part of the element's number
  Value* thread_place = nullptr;  ///< and where that lies, when the register's part can be put on top of it
  bool sums = true;

  view_access(lowerer& lowering, view_value const& view, linear_layout const& layout, f2_word skip)
      : k(lowering), v(view), l(layout) {
    int const rank = v.extents.rank, elem = log2_bytes(v.type);
    int fast = -1, align = v.align;
    for (int d = 0; d < rank; ++d)
      if (v.stride[d] == 1 && v.extents.extent[d] > 1) fast = d;
    access_facts_of(fast, align, elem, skip);
    Value* o = nullptr;
    for (int d = 0; d < rank; ++d) {
      sums &= lowerer::additive(l, axis_dim(d));
      Value* x = k.b.CreateMul(k.thread_part(l, axis_dim(d)), k.i32(v.stride[d]));
      o = o ? k.b.CreateAdd(o, x) : x;
    }
    if (!v.layout.plain()) {
      if (v.start) o = o ? k.b.CreateAdd(o, v.start) : v.start;
      thread_number = o ? o : k.i32(0);
      if (separable()) thread_place = k.place(thread_number, v.layout);
      return;
    }
    thread_pointer = o ? k.b.CreateInBoundsGEP(k.memory_type(v.type), v.pointer, o) : v.pointer;
  }
  /// Whether no bit of an element's number comes from both the thread and the register, and the layout treats bits one by one: by
  /// XOR where it is linear, else by addition.
  bool separable() const {
    for (int d = 0; d < v.extents.rank; ++d)
      if (!std::has_single_bit(static_cast<unsigned>(v.extents.extent[d])) || (v.extents.extent[d] > 1 && !std::has_single_bit(static_cast<std::uint64_t>(v.stride[d])))) return false;
    if (v.layout.linear()) return true;
    bool powers = true;
    for (int i = 0; i < v.layout.modes; ++i) powers &= std::has_single_bit(static_cast<unsigned>(v.layout.mode[i].extent));
    return v.layout.bits == 0 && powers && (v.layout.modes == 0 || v.layout.paddings == 0);
  }
  void access_facts_of(int fast, int align, int elem, f2_word skip) {
    access_facts f{};
    if (fast < 0) {
      f.contiguity = 0;
      fast = 0;
    } else {
      for (int d = 0; d < v.extents.rank; ++d)
        if (d != fast && v.extents.extent[d] > 1) align = std::min(align, power_in(v.stride[d] * bytes_of(v.type)));
      f.align_bytes = std::countr_zero(static_cast<unsigned>(align));
      f.mask_run = std::countr_zero(static_cast<unsigned>(v.extents.extent[fast])); // padding
      if (std::has_single_bit(static_cast<unsigned>(v.extents.extent[fast]))) f.mask_run = 30;
      if (int const run = v.layout.run_log2(); !v.layout.plain()) { // runs that stay together
        f.contiguity = run;
        f.align_bytes = std::min(f.align_bytes, elem + run);
      }
    }
    if (v.extents.rank == 0) f.contiguity = 0;
    access = vectorize(l, axis_dim(fast), elem, f);
    for (int i = 0; i < access.width; ++i)
      if (access.regs.col[static_cast<std::size_t>(i)] & skip) {
        access = vectorize(l, axis_dim(fast), elem, {.contiguity = 0});
        break;
      }
  }
  int vectors() const { return 1 << (l.in.bits(reg) - access.width); }
  std::vector<int> registers_of(int n) const {
    std::vector<int> r;
    for (int j = 0; j < 1 << access.width; ++j)
      r.push_back(static_cast<int>(access.regs((static_cast<f2_word>(n) << access.width) | static_cast<f2_word>(j))));
    return r;
  }
  Value* pointer(int r) {
    if (sums) {
      std::int64_t o = 0;
      for (int d = 0; d < v.extents.rank; ++d)
        o += static_cast<std::int64_t>(l.out.get(l(l.in.put(reg, static_cast<f2_word>(r))), axis_dim(d))) * v.stride[d];
      if (thread_place) {
        std::int64_t const own = v.layout(o);
        bool const adds = !v.layout.linear();
        return k.b.CreateInBoundsGEP(k.memory_type(v.type), v.pointer, adds ? k.b.CreateAdd(thread_place, k.i32(own)) : k.b.CreateXor(thread_place, k.i32(own)));
      }
      if (thread_number) return k.b.CreateInBoundsGEP(k.memory_type(v.type), v.pointer, k.place(k.b.CreateAdd(thread_number, k.i32(o)), v.layout));
      return o ? k.b.CreateInBoundsGEP(k.memory_type(v.type), thread_pointer, k.i32(o)) : thread_pointer;
    }
    std::vector<Value*> c;
    for (int d = 0; d < v.extents.rank; ++d) c.push_back(k.coordinate(l, d, r));
    return k.element_address(v, c);
  }
  llvm::Type* word() const { return k.word_type(v.type, 1 << access.width); }
  int words() const {
    return std::max(1, (storage_bits_of(v.type) << access.width) / static_cast<int>(word()->getIntegerBitWidth()));
  }
  llvm::Align align() const { return llvm::Align(static_cast<std::uint64_t>(bytes_of(v.type)) << access.width); }
};

} // namespace

std::vector<Value*> lowerer::read_view(view_value const& v, linear_layout const& l) {
  touch(local_event::kind::read, bytes_of_view(v), v.slot);
  view_access a(*this, v, l, 0);
  std::vector<Value*> y(std::size_t{1} << l.in.bits(reg));
  int const words = a.words();
  for (int n = 0; n < a.vectors(); ++n) {
    auto const group = a.registers_of(n);
    Value* in = inside(l, v.extents, group[0]);
    // Padding reads element 0 instead: an address inside the buffer.
    Value* p = a.pointer(group[0]);
    if (in) p = b.CreateSelect(in, p, v.pointer);
    llvm::Type* t = words > 1
                        ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(a.word(), static_cast<unsigned>(words)))
                        : a.word();
    Value* whole = b.CreateAlignedLoad(t, p, a.align());
    std::vector<Value*> w, elements(group.size());
    for (int i = 0; i < words; ++i)
      w.push_back(words > 1 ? b.CreateExtractElement(whole, static_cast<std::uint64_t>(i)) : whole);
    unpack(w, v.type, elements);
    for (std::size_t j = 0; j < group.size(); ++j) y[static_cast<std::size_t>(group[j])] = elements[j];
  }
  return y;
}

void lowerer::write_view(view_value const& v, linear_layout const& l, llvm::ArrayRef<Value*> x, Value* mask) {
  touch(local_event::kind::write, bytes_of_view(v), v.slot);
  each_vector(v, l, x, mask, [&](Value* pointer, llvm::ArrayRef<Value*> words, llvm::Align align) { store_words(pointer, words, align); });
}

void lowerer::store_words(Value* pointer, llvm::ArrayRef<Value*> words, llvm::Align align) {
  Value* whole = words[0];
  if (words.size() > 1) {
    whole = llvm::PoisonValue::get(llvm::FixedVectorType::get(words[0]->getType(), static_cast<unsigned>(words.size())));
    for (std::size_t i = 0; i < words.size(); ++i) whole = b.CreateInsertElement(whole, words[i], i);
  }
  b.CreateAlignedStore(whole, pointer, align);
}

int lowerer::vector_bytes(view_value const& v, linear_layout const& l) {
  return static_cast<int>(bytes_of(v.type)) << view_access(*this, v, l, owners(l).reg).access.width;
}

void lowerer::each_vector(view_value const& v, linear_layout const& l, llvm::ArrayRef<Value*> x, Value* mask, store_function const& store) {
  f2_word const copies = owners(l).reg;
  view_access a(*this, v, l, copies);
  auto const per = static_cast<std::size_t>(static_cast<int>(a.word()->getIntegerBitWidth()) / storage_bits_of(v.type));
  when(all_of(mask, is_owner(l)), [&] {
    for (int n = 0; n < a.vectors(); ++n) {
      auto const group = a.registers_of(n);
      if (static_cast<f2_word>(group[0]) & copies) continue;
      Value* in = inside(l, v.extents, group[0]);
      if (auto* c = llvm::dyn_cast_or_null<llvm::ConstantInt>(in); c && c->isZero()) continue;
      std::vector<Value*> elements, words;
      for (int r : group) elements.push_back(x[x.size() == 1 ? 0 : static_cast<std::size_t>(r)]);
      for (std::size_t i = 0; i < elements.size(); i += per)
        words.push_back(pack(llvm::ArrayRef(elements).slice(i, std::min(per, elements.size() - i)), v.type, a.word()));
      when(in, [&] { store(a.pointer(group[0]), words, a.align()); });
    }
  });
}

view_value lowerer::stage(registers const& x, dtype t, shape const& s, linear_layout const& l, char const* what) {
  view_value v;
  v.type = t;
  v.extents = s;
  std::int64_t stride = 1;
  for (int d = s.rank - 1; d >= 0; --d) v.stride[d] = stride, stride *= s.extent[d];
  v.align = 16;
  v.offset = scratch(bytes_of(t, s.elements()), what);
  v.pointer = arena(v.offset);
  write_view(v, l, x.r);
  return v;
}

std::vector<Value*> lowerer::gather_view(view_value const& v, std::vector<Value*> const& index, dtype index_type,
                                         shape const& s, linear_layout const& l, int axis) {
  touch(local_event::kind::read, bytes_of_view(v), v.slot);
  std::vector<Value*> y;
  for (std::size_t r = 0; r < std::size_t{1} << l.in.bits(reg); ++r) {
    std::vector<Value*> c;
    Value* i = index[index.size() == 1 ? 0 : r];
    i = is_signed_int(index_type) ? b.CreateSExtOrTrunc(i, b.getInt32Ty()) : b.CreateZExtOrTrunc(i, b.getInt32Ty());
    for (int d = 0; d < s.rank; ++d) c.push_back(d == axis ? i : coordinate(l, d, static_cast<int>(r)));
    Value* p = element_address(v, c);
    if (Value* in = inside(l, s, static_cast<int>(r))) p = b.CreateSelect(in, p, v.pointer);
    y.push_back(from_memory(
        b.CreateAlignedLoad(memory_type(v.type), p, llvm::Align(static_cast<std::uint64_t>(bytes_of(v.type)))),
        v.type));
  }
  return y;
}

registers lowering<op::alloc>::emit(lowerer&, int) { return {}; }
// Views are address arithmetic, done where they are used.
registers lowering<op::view_index>::emit(lowerer&, int) { return {}; }
registers lowering<op::view_trans>::emit(lowerer&, int) { return {}; }
registers lowering<op::view_slice>::emit(lowerer&, int) { return {}; }
registers lowering<op::view_reshape>::emit(lowerer&, int) { return {}; }

registers lowering<op::local_load>::emit(lowerer& k, int node) {
  return {k.read_view(k.view(k.g.operand(node, 0)), k.plan.of(node))};
}
registers lowering<op::local_store>::emit(lowerer& k, int node) {
  linear_layout const& l = k.plan.of(node);
  registers const x = k.get(k.g.operand(node, 1), l);
  k.write_view(k.view(k.g.operand(node, 0)), l, x.r);
  return {};
}
registers lowering<op::local_gather>::emit(lowerer& k, int node) {
  linear_layout const& l = k.plan.of(node);
  int const index = k.g.operand(node, 1);
  registers const i = k.get(index, l);
  return {k.gather_view(k.view(k.g.operand(node, 0)), i.r, k.type(index), k.g.shape_of(node), l,
                        static_cast<int>(k.g.attribute(node, 0)))};
}
registers lowering<op::local_scatter>::emit(lowerer& k, int node) {
  auto& b = k.b;
  linear_layout const& l = k.plan.of(node);
  int const value = k.g.operand(node, 1), index = k.g.operand(node, 2), axis = static_cast<int>(k.g.attribute(node, 0));
  shape const& s = k.g.shape_of(value);
  registers const x = k.get(value, l), i = k.get(index, l);
  view_value const v = k.view(k.g.operand(node, 0));
  k.touch(local_event::kind::write, k.bytes_of_view(v), v.slot);
  f2_word const copies = owners(l).reg;
  k.when(k.is_owner(l), [&] {
    for (std::size_t r = 0; r < std::size_t{1} << l.in.bits(reg); ++r) {
      if (r & copies) continue;
      std::vector<Value*> c;
      Value* at = i.r[i.r.size() == 1 ? 0 : r];
      at = is_signed_int(k.type(index)) ? b.CreateSExtOrTrunc(at, b.getInt32Ty())
                                        : b.CreateZExtOrTrunc(at, b.getInt32Ty());
      for (int d = 0; d < s.rank; ++d) c.push_back(d == axis ? at : k.coordinate(l, d, static_cast<int>(r)));
      k.when(k.inside(l, s, static_cast<int>(r)), [&] {
        b.CreateAlignedStore(k.to_memory(x.r[x.r.size() == 1 ? 0 : r], v.type), k.element_address(v, c),
                             llvm::Align(static_cast<std::uint64_t>(bytes_of(v.type))));
      });
    }
  });
  return {};
}

// ---- asynchronous copies
// ----------------------------------------------------------------------------------------------------

registers lowering<op::async_load>::emit(lowerer& k, int node) {
  auto& b = k.b;
  int const other = k.g.operand(node, 3);
  linear_layout const& l = k.plan.of(node);
  view_value const v = k.view(k.g.operand(node, 1));
  cache_hint hint;
  hint.cache = static_cast<cache>(k.g.attribute(node, 0));
  hint.evict = static_cast<evict>(k.g.attribute(node, 1));
  hint.is_volatile = k.g.attribute(node, 2) != 0;
  bool const require = k.g.attribute(node, 3) != 0;
  f2_word const copies = owners(l).reg;

  // A copy moves 4, 8 or 16 bytes that are consecutive and aligned on both sides.
  access_shape const shape = shape_of_access(k.g, k.facts, node);
  view_access a(k, v, l, copies);
  int const elem = log2_bytes(v.type);
  int fast = -1;
  for (int d = 0; d < v.extents.rank; ++d)
    if (v.stride[d] == 1 && v.extents.extent[d] > 1) fast = d;
  bool const same_axis = fast == shape.axis || v.extents.elements() == 1;
  int const width = same_axis ? std::min(a.access.width, shape.vector(elem)) : 0;
  int const bytes = 1 << (width + elem);
  if (!k.hw->can_copy(bytes) || (hint.is_volatile)) {
    diagnostic into;
    if (kiln::detail::message m(into); require) kiln::detail::put_buffer_name(m, k.g, k.g.buffer_of(k.g.operand(node, 1)));
    if (require)
      k.fail(
          node,
          "kiln[R-TG02] async_load into " + std::string(into.view()) + " with .require_async: hardware copies 4, 8 or 16 consecutive aligned bytes, only " +
              std::to_string(bytes) + " are proven here" +
              (k.target.is_amdgpu() ? " and this target copies through registers" : "") +
              "; align the pointer and strides, use a wider type, or drop .require_async");
    k.result.notes.push_back("async_load at line " + std::to_string(k.g[node].line) + " copies through registers, " +
                             std::to_string(bytes) + " bytes at a time");
    auto const access = k.address_of(node, 2, l, false);
    auto const x = k.load_global(node, access, other, hint);
    k.write_view(v, l, x);
    k.copies_by_store = true;
    return {};
  }
  a.access = vectorize(l, axis_dim(fast < 0 ? 0 : fast), elem, {.contiguity = width});
  auto const access = k.address_of(node, 2, l, false);
  k.touch(local_event::kind::async_write, k.bytes_of_view(v), v.slot);
  k.copies_in_flight = true;
  registers instead;
  bool zero_fill = true;
  if (other >= 0) {
    int o = other;
    while (k.g[o].code == op::broadcast) o = k.g.operand(o, 0);
    zero_fill = k.g[o].code == op::constant && k.g.attribute(o, 0) == 0;
    if (!zero_fill) instead = k.get(other, l), k.copies_by_store = true;
  }
  k.when(k.is_owner(l), [&] {
    for (int n = 0; n < a.vectors(); ++n) {
      auto const group = a.registers_of(n);
      auto const r = static_cast<std::size_t>(group[0]);
      if (r & copies) continue;
      Value* in = k.inside(l, v.extents, group[0]); // padding has no place in the buffer
      if (auto* c = llvm::dyn_cast_or_null<llvm::ConstantInt>(in); c && c->isZero()) continue;
      k.when(in, [&] {
        Value *mask = access.mask[r], *to = a.pointer(group[0]);
        if (mask && !zero_fill) {
          llvm::BasicBlock *copy = k.block("copy"), *fill = k.block("fill"), *after = k.block("copied");
          b.CreateCondBr(mask, copy, fill);
          b.SetInsertPoint(copy);
          k.hw->copy(to, access.address[r], bytes, nullptr, hint);
          b.CreateBr(after);
          b.SetInsertPoint(fill);
          for (std::size_t j = 0; j < group.size(); ++j) {
            Value* x = instead.r[k.is_scalar(other) ? 0 : static_cast<std::size_t>(group[j])];
            b.CreateAlignedStore(k.to_memory(x, v.type),
                                 b.CreateInBoundsGEP(k.memory_type(v.type), to, k.i32(static_cast<std::int64_t>(j))),
                                 llvm::Align(static_cast<std::uint64_t>(bytes_of(v.type))));
          }
          b.CreateBr(after);
          b.SetInsertPoint(after);
        } else {
          k.hw->copy(to, access.address[r], bytes, mask, hint);
        }
      });
    }
  });
  return {};
}

registers lowering<op::async_commit>::emit(lowerer& k, int) {
  k.hw->commit_copies();
  return {};
}

registers lowering<op::async_wait>::emit(lowerer& k, int node) {
  // Named groups: as many as were committed after them may stay pending. Across loops that number is not known.
  auto pending = static_cast<int>(k.g.attribute(node, 0));
  for (int o : k.g.operands(node)) {
    if (o < 0 || k.g[o].code != op::async_commit) {
      pending = 0;
      continue;
    }
    bool straight = true;
    for (int i = o; i < node; ++i)
      straight &=
          !has(k.g[i].code, trait::opens) && !has(k.g[i].code, trait::closes) && !has(k.g[i].code, trait::middle);
    pending = std::min(pending, straight ? k.commits.at(node) - k.commits.at(o) - 1 : 0);
  }
  k.hw->wait_copies(pending);
  local_event e;
  e.what = local_event::kind::async_wait;
  e.drains = pending == 0;
  k.structure(e);
  return {};
}

registers lowering<op::sync>::emit(lowerer& k, int) {
  k.agent_barrier(true); // never inside a task: the warps of the other tasks are not here
  k.structure({.what = local_event::kind::barrier});
  return {};
}

// ---- products
// ---------------------------------------------------------------------------------------------------------------

// Both operands lie in local memory; without a matrix unit each thread walks along k and keeps its part of the result in
// registers.
registers lowering<op::dot>::emit(lowerer& k, int node) {
  if (auto const p = matrix_product_of(k.g, k.facts, node, k.cta)) return matrix_dot(k, node, *p);
  auto& b = k.b;
  linear_layout const& l = k.plan.of(node);
  int const acc = k.g.operand(node, 2);
  dtype const t = k.type(k.g.operand(node, 0)), sum = k.type(node);
  auto operand = [&](int i, char const* what) {
    int const o = k.g.operand(node, i);
    if (k.g[o].kind == node_kind::view) {
      view_value const v = k.view(o);
      if (v.layout.plain()) return v;
      // Rows that do not follow each other: copied once, so that the loop along k moves by strides.
      linear_layout const l = scan_layout(v.extents, 1, k.cta);
      return k.stage({k.read_view(v, l)}, v.type, v.extents, l, what);
    }
    linear_layout const have = k.layout_of_use(o);
    return k.stage(k.get(o, have), k.type(o), k.g.shape_of(o), have, what);
  };
  // First, since its conversion can take barriers of its own: none may stand between the events of the reads and the reads.
  std::size_t const n = std::size_t{1} << l.in.bits(reg);
  std::vector<Value*> start;
  if (acc >= 0) start = k.get(acc, l).r;
  else start.assign(n, llvm::Constant::getNullValue(k.carrier(sum)));
  lowerer::hold_scratch const both(k);
  view_value const x = operand(0, "the left operand of dot"), y = operand(1, "the right operand of dot");
  k.touch(local_event::kind::read, k.bytes_of_view(x), x.slot);
  k.touch(local_event::kind::read, k.bytes_of_view(y), y.slot);

  // Rows and columns of this thread; those of the padding read the last one inside.
  auto clamped = [&](int axis, int r, std::int64_t extent) {
    Value* c = k.coordinate(l, axis, r);
    if (k.inside(l, k.g.shape_of(node), r)) c = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, c, k.i32(extent - 1));
    return c;
  };
  std::map<f2_word, std::pair<Value*, std::size_t>> rows, columns; // register part -> address of k = 0, number
  std::vector<std::size_t> row(n), column(n);
  for (std::size_t r = 0; r < n; ++r) {
    f2_word const c = l(l.in.put(reg, r));
    auto place = [&](auto& all, view_value const& v, int axis, std::size_t& number) {
      auto const [at, fresh] = all.try_emplace(l.out.get(c, axis_dim(axis)), nullptr, all.size());
      if (fresh) {
        Value* i = clamped(axis, static_cast<int>(r), v.extents.extent[axis]);
        Value* const coordinates[] = {axis == 0 ? i : k.i32(0), axis == 0 ? k.i32(0) : i};
        at->second.first = k.element_address(v, coordinates);
      }
      number = at->second.second;
    };
    place(rows, x, 0, row[r]);
    place(columns, y, 1, column[r]);
  }
  std::int64_t const depth = x.extents.extent[1];
  llvm::BasicBlock *from = b.GetInsertBlock(), *body = k.block("dot"), *after = k.block("dot.end");
  b.CreateBr(body);
  b.SetInsertPoint(body);
  llvm::PHINode* step = b.CreatePHI(b.getInt32Ty(), 2, "k");
  step->addIncoming(k.i32(0), from);
  std::vector<llvm::PHINode*> sums;
  for (std::size_t r = 0; r < n; ++r) {
    sums.push_back(b.CreatePHI(start[0]->getType(), 2));
    sums.back()->addIncoming(start[start.size() == 1 ? 0 : r], from);
  }
  // A few steps of k at once: their loads overlap.
  std::int64_t const unroll = depth % 8 == 0 ? 8 : depth % 4 == 0 ? 4 : 1;
  dtype const wide = is_float(t) ? emit::compute_type(t) : sum;
  std::vector<Value*> values(sums.begin(), sums.end());
  for (std::int64_t u = 0; u < unroll; ++u) {
    auto fetch = [&](auto const& all, view_value const& v, std::int64_t stride) {
      std::vector<Value*> e(all.size());
      for (auto const& [c, place] : all) {
        Value* p =
            b.CreateInBoundsGEP(k.memory_type(t), place.first, b.CreateMul(b.CreateAdd(step, k.i32(u)), k.i32(stride)));
        Value* raw = b.CreateAlignedLoad(k.memory_type(t), p, llvm::Align(static_cast<std::uint64_t>(bytes_of(t))));
        e[place.second] = k.convert_type(k.from_memory(raw, v.type), t, wide);
      }
      return e;
    };
    auto const p = fetch(rows, x, x.stride[1]), q = fetch(columns, y, y.stride[0]);
    for (std::size_t r = 0; r < n; ++r) {
      Value *i = p[row[r]], *j = q[column[r]];
      if (is_float(t)) values[r] = b.CreateIntrinsic(llvm::Intrinsic::fma, {i->getType()}, {i, j, values[r]});
      else values[r] = b.CreateAdd(values[r], b.CreateMul(i, j));
    }
  }
  Value* next = b.CreateAdd(step, k.i32(unroll));
  step->addIncoming(next, b.GetInsertBlock());
  for (std::size_t r = 0; r < n; ++r) sums[r]->addIncoming(values[r], b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpULT(next, k.i32(depth)), body, after);
  b.SetInsertPoint(after);
  return {std::move(values)};
}

} // namespace kiln::jit::simt
