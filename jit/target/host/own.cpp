// Operations that bring their own loops: scans, custom reductions, join, scatter, print.
#include "writer.hpp"

#include "jit/emit/minmax.hpp"

namespace kiln::jit::host {

void writer::emit_own(int n, nest const&) {
  width_ = 1;
  switch (g[n].code) {
  case op::scan: emit_scan(n); break;
  case op::reduce: emit_custom_reduce(n); break;
  case op::join: emit_join(n); break;
  case op::local_scatter: emit_scatter(n); break;
  case op::device_print: emit_print(n); break;
  case op::atomic_rmw:
  case op::atomic_cas: emit_atomic(n); break;
  case op::dot: emit_dot(n); break;
  case op::histogram: emit_histogram(n); break;
  case op::sort:
  case op::topk: emit_sort(n); break;
  default: refuse(n, "has no loops of its own");
  }
}

// Opens loops over all axes that are not in `skip`, sets x, runs the body inside, closes them.
void writer::for_each_outer(shape const& s, llvm::ArrayRef<int> skip, coordinates& x, llvm::function_ref<void()> body) {
  int opened = 0;
  for (int d = 0; d < s.rank; ++d) {
    if (llvm::is_contained(skip, d)) continue;
    x[static_cast<std::size_t>(d)] = number(0);
    if (s.extent[d] == 1) continue;
    x[static_cast<std::size_t>(d)] = open_loop(s.extent[d]);
    ++opened;
  }
  body();
  for (; opened > 0; --opened) close_loop();
}

// -- combines
// ----------------------------------------------------------------------------------------------------------

// The body on scalars or on vectors. It sees its arguments, constants, and scalars from outside.
std::vector<Value*> writer::run_combine(int begin, llvm::ArrayRef<Value*> left, llvm::ArrayRef<Value*> right) {
  const int end = static_cast<int>(g.attribute(begin, 0));
  std::unordered_map<int, Value*> values;
  auto value = [&](int n) -> Value* {
    if (auto f = values.find(n); f != values.end()) return f->second;
    return splat(scalar_value(n));
  };
  std::vector<Value*> results;
  for (int i = begin + 1; i <= end; ++i) {
    const node& d = g[i];
    if (d.code == op::combine_arg) {
      const auto k = static_cast<std::size_t>(g.attribute(i, 0));
      values[i] = k < left.size() ? left[k] : right[k - left.size()];
    } else if (d.code == op::constant) {
      values[i] = splat(constant_of(d.type, g.attribute(i, 0)));
    } else if (d.code == op::combine_end) {
      for (int o : g.operands(i)) results.push_back(value(o));
    } else if (has(d.code, trait::elementwise)) {
      llvm::SmallVector<Value*, 3> in;
      for (int o : g.operands(i)) in.push_back(value(o));
      values[i] = apply(i, in);
    } else if (d.code == op::broadcast) {
      values[i] = value(g.operand(i, 0));
    } else {
      refuse(i, "cannot stand inside a combine: compute it before the reduction, or write the combine with "
                "element-wise operations");
    }
  }
  return results;
}

// Axis `axis` is walked in order; lanes run along another axis, where there is one. Where there is none, each lane walks
// a part of the axis of its own, and the parts are combined in order at last.
void writer::emit_custom_reduce(int n) {
  const shape& s = g.shape_of(g.operand(n, 0));
  const int axis = static_cast<int>(g.attribute(n, 1)), body = static_cast<int>(g.attribute(n, 4));
  const bool keep = g.attribute(n, 2) != 0;
  const auto count = static_cast<std::size_t>(g[n].operand_count);
  const bool scalar = g.shape_of(n).rank == 0;
  if (scalar)
    for (std::size_t k = 0; k < count; ++k) {
      auto* at = cell(carrier(g[g.operand(n, static_cast<int>(k))].type));
      if (k == 0) cells_[static_cast<std::size_t>(n)] = at;
      else more_cells_[n * 8 + static_cast<int>(k)] = at;
    }
  int bits = 8;
  for (int o : g.operands(n)) bits = std::max(bits, compute_bits(g[o].type));
  // All axes in row-major order are one long axis: walk them all, without lanes.
  std::vector<int> walked;
  for (int d = 0; d < s.rank; ++d)
    if (axis < 0 || d == axis) walked.push_back(d);
  int lane = -1;
  for (int d = 0; d < s.rank; ++d)
    if (axis >= 0 && d != axis && s.extent[d] > 1) lane = d;
  coordinates x(static_cast<std::size_t>(s.rank), number(0));
  llvm::SmallVector<int, 6> skip(walked.begin(), walked.end());
  if (lane >= 0) skip.push_back(lane);
  int long_axis = -1, long_axes = 0;
  for (int d : walked)
    if (s.extent[d] > 1) long_axis = d, ++long_axes;
  unsigned parts = 1;
  if (lane < 0 && long_axes == 1) {
    parts = lanes_for(bits, s.extent[long_axis] / 2);
    while (s.extent[long_axis] % parts != 0) parts /= 2;
    // Narrow floating types round at each step: taken in another order, a sum that cancels is another sum.
    for (int i = 0; i < g[n].operand_count; ++i) {
      const dtype t = g[g.operand(n, i)].type;
      if (is_float(t) && bits_of(t) < 32) parts = 1;
    }
  }
  auto columns = [&] {
    std::vector<llvm::AllocaInst*> held;
    for (int o : g.operands(n)) held.push_back(cell(vector_type(carrier(g[o].type), width_)));
    auto* started = cell(b.getInt1Ty());
    b.CreateStore(b.getFalse(), started);
    auto step = [&] {
      std::vector<Value*> in, old;
      for (int o : g.operands(n)) in.push_back(vector_of(pull(o, x), carrier(g[o].type)));
      for (auto* h : held) old.push_back(b.CreateLoad(h->getAllocatedType(), h));
      // The first element is taken as it is; a combine need not have an identity.
      Value* first = b.CreateNot(b.CreateLoad(b.getInt1Ty(), started));
      const std::vector<Value*> made = run_combine(body, old, in);
      for (std::size_t k = 0; k < count; ++k) b.CreateStore(b.CreateSelect(first, in[k], made[k]), held[k]);
      b.CreateStore(b.getTrue(), started);
    };
    for (std::size_t k = 0; k < count; ++k)
      b.CreateStore(llvm::Constant::getNullValue(held[k]->getAllocatedType()), held[k]);
    llvm::SmallVector<int, 6> others;
    for (int d = 0; d < s.rank; ++d)
      if (!llvm::is_contained(walked, d)) others.push_back(d);
    if (parts > 1) {
      const std::int64_t part = s.extent[long_axis] / parts;
      lanes& at = x[static_cast<std::size_t>(long_axis)];
      at = open_loop(part);
      at.step = part;
      step();
      close_loop();
    } else {
      for_each_outer(s, others, x, step);
    }
    std::vector<Value*> result;
    for (auto* h : held) result.push_back(b.CreateLoad(h->getAllocatedType(), h));
    for (unsigned w = parts; w > 1; w /= 2) { // neighbours
      std::vector<Value*> left, right;
      llvm::SmallVector<int, 32> even, odd;
      for (int i = 0; i < static_cast<int>(w); i += 2) even.push_back(i), odd.push_back(i + 1);
      for (Value* v : result) {
        left.push_back(w == 2 ? b.CreateExtractElement(v, std::uint64_t{0}) : b.CreateShuffleVector(v, even));
        right.push_back(w == 2 ? b.CreateExtractElement(v, std::uint64_t{1}) : b.CreateShuffleVector(v, odd));
      }
      width_ = w / 2;
      result = run_combine(body, left, right);
    }
    for (int d : walked) x[static_cast<std::size_t>(d)] = number(0);
    coordinates r;
    for (int d = 0; d < s.rank; ++d) {
      const bool gone = axis < 0 || d == axis;
      if (!gone) r.push_back(x[static_cast<std::size_t>(d)]);
      else if (keep) r.push_back(number(0));
    }
    for (std::size_t k = 0; k < count; ++k) {
      Value* v = result[k];
      if (scalar)
        b.CreateStore(v, k == 0 ? cells_[static_cast<std::size_t>(n)] : more_cells_.at(n * 8 + static_cast<int>(k)));
      else
        write_slice(plan_.slice_of[static_cast<std::size_t>(n)] + static_cast<int>(k), g.shape_of(n), r,
                    of(v, here_, width_ > 1));
    }
  };
  for_each_outer(s, skip, x, [&] {
    if (lane < 0) {
      width_ = parts;
      columns();
      width_ = 1;
      return;
    }
    for_strips(s.extent[lane], lanes_for(bits, s.extent[lane]), 1, [&](llvm::ArrayRef<strip> strips) {
      width_ = strips[0].width;
      x[static_cast<std::size_t>(lane)] = strips[0].at;
      columns();
    });
    width_ = 1;
  });
}

// -- scan
// --------------------------------------------------------------------------------------------------------------

// Lanes run along another axis, where there is one; otherwise each strip is scanned within itself, in steps of 1, 2, 4..
// lanes, and then joined to what came before it.
void writer::emit_scan(int n) {
  const int source = g.operand(n, 0);
  const shape& s = g.shape_of(source);
  const auto o = static_cast<reduce_op>(g.attribute(n, 0));
  const int axis = static_cast<int>(g.attribute(n, 1)), body = static_cast<int>(g.attribute(n, 3));
  const bool reverse = g.attribute(n, 2) != 0, custom = o == reduce_op::custom;
  const auto count = static_cast<std::size_t>(g[n].operand_count);
  int lane = -1, bits = 8;
  for (int d = 0; d < s.rank; ++d)
    if (d != axis && s.extent[d] > 1) lane = d;
  for (int v : g.operands(n)) bits = std::max(bits, compute_bits(g[v].type));
  coordinates x(static_cast<std::size_t>(s.rank), number(0));
  llvm::SmallVector<int, 6> skip{axis};
  if (lane >= 0) skip.push_back(lane);
  const dtype type = g[source].type, t = emit::compute_type(type);
  const bool narrow = !custom && is_float(type) && bits_of(type) < 32;

  std::vector<llvm::AllocaInst*> held; // what the elements before amount to, and whether there were any
  llvm::AllocaInst* started = nullptr;
  auto open = [&] {
    held.clear();
    for (std::size_t k = 0; k < count; ++k) {
      const dtype h = custom ? g[g.operand(n, static_cast<int>(k))].type : t;
      held.push_back(cell(vector_type(carrier(h), width_)));
      b.CreateStore(llvm::Constant::getNullValue(held.back()->getAllocatedType()), held.back());
    }
    started = cell(b.getInt1Ty());
    b.CreateStore(b.getFalse(), started);
  };
  auto combined = [&](std::vector<Value*> const& before, std::vector<Value*> const& after) -> std::vector<Value*> {
    if (custom) return run_combine(body, before, after);
    if ((o == reduce_op::max || o == reduce_op::min) && is_float(type))
      return {emit::float_extremum(e, o == reduce_op::max ? emit::extremum::maximum : emit::extremum::minimum,
                                   nan_mode::ignore, before[0], after[0])};
    return {combine(o, nan_mode::ignore, t, after[0], before[0])};
  };
  auto elements = [&] {
    std::vector<Value*> in;
    for (int v : g.operands(n)) in.push_back(vector_of(pull(v, x), carrier(g[v].type)));
    if (narrow) in[0] = widen_float(in[0], type);
    return in;
  };
  // `in` after what is held; `splat_held`: one value for all lanes.
  auto joined = [&](std::vector<Value*> const& in, bool splat_held) {
    std::vector<Value*> before;
    for (auto* h : held) {
      Value* v = b.CreateLoad(h->getAllocatedType(), h);
      before.push_back(splat_held ? splat(v) : v);
    }
    Value* first = b.CreateNot(b.CreateLoad(b.getInt1Ty(), started));
    std::vector<Value*> made = combined(before, in);
    for (std::size_t k = 0; k < count; ++k) made[k] = b.CreateSelect(first, in[k], made[k]);
    b.CreateStore(b.getTrue(), started);
    return made;
  };
  auto deliver = [&](std::vector<Value*> const& made) {
    for (std::size_t k = 0; k < count; ++k) {
      Value* v = narrow ? narrow_float(made[k], type) : made[k];
      write_slice(plan_.slice_of[static_cast<std::size_t>(n)] + static_cast<int>(k), s, x, of(v, here_, width_ > 1));
    }
  };
  auto columns = [&] {
    open();
    lanes i = s.extent[axis] > 1 ? open_loop(s.extent[axis]) : number(0);
    if (reverse) i = sum(number(s.extent[axis] - 1), i, b.getInt64Ty(), true);
    x[static_cast<std::size_t>(axis)] = i;
    const std::vector<Value*> made = joined(elements(), false);
    for (std::size_t k = 0; k < count; ++k) b.CreateStore(made[k], held[k]);
    deliver(made);
    if (s.extent[axis] > 1) close_loop();
  };
  auto along = [&] {
    width_ = 1;
    open();
    for_strips(s.extent[axis], lanes_for(bits, s.extent[axis]), 1, [&](llvm::ArrayRef<strip> strips) {
      const unsigned w = width_ = strips[0].width;
      lanes at = strips[0].at;
      if (reverse) { // strips from the end on, their lanes in the order of memory
        at.step = 0;
        at = sum(number(s.extent[axis] - w), at, b.getInt64Ty(), true);
        at.step = w > 1 ? 1 : 0;
      }
      x[static_cast<std::size_t>(axis)] = at;
      std::vector<Value*> v = elements();
      for (unsigned d = 1; d < w; d *= 2) {
        llvm::SmallVector<int, 64> pick;
        llvm::SmallVector<llvm::Constant*, 64> has;
        for (unsigned l = 0; l < w; ++l) {
          const bool there = reverse ? l + d < w : l >= d;
          pick.push_back(static_cast<int>(!there ? l : reverse ? l + d : l - d));
          has.push_back(b.getInt1(there));
        }
        std::vector<Value*> before;
        for (Value* p : v) before.push_back(b.CreateShuffleVector(p, pick));
        const std::vector<Value*> made = combined(before, v);
        for (std::size_t k = 0; k < count; ++k) v[k] = b.CreateSelect(llvm::ConstantVector::get(has), made[k], v[k]);
      }
      v = joined(v, true);
      for (std::size_t k = 0; k < count; ++k)
        b.CreateStore(w > 1 ? b.CreateExtractElement(v[k], std::uint64_t{reverse ? 0 : w - 1}) : v[k], held[k]);
      deliver(v);
    });
    width_ = 1;
  };
  for_each_outer(s, skip, x, [&] {
    if (lane < 0) return along();
    for_strips(s.extent[lane], lanes_for(bits, s.extent[lane]), 1, [&](llvm::ArrayRef<strip> strips) {
      width_ = strips[0].width;
      x[static_cast<std::size_t>(lane)] = strips[0].at;
      columns();
    });
    width_ = 1;
  });
}

// -- join, scatter, print
// ----------------------------------------------------------------------------------------------

void writer::emit_join(int n) {
  const int p = g.operand(n, 0), q = g.operand(n, 1);
  const shape& s = g.shape_of(p);
  const int sl = plan_.slice_of[static_cast<std::size_t>(n)];
  const dtype type = g[p].type;
  auto put = [&](coordinates const& x) {
    Value *v = vector_of(pull(p, x), carrier(type)), *w = vector_of(pull(q, x), carrier(type));
    coordinates y = x;
    y.push_back(number(0));
    if (width_ == 1) {
      write_slice(sl, g.shape_of(n), y, of(v, here_, false));
      y.back() = number(1);
      write_slice(sl, g.shape_of(n), y, of(w, here_, false));
      return;
    }
    llvm::SmallVector<int, 128> zip;
    for (unsigned i = 0; i < width_; ++i) {
      zip.push_back(static_cast<int>(i));
      zip.push_back(static_cast<int>(i + width_));
    }
    Value* both = to_memory(b.CreateShuffleVector(v, w, zip), type);
    address a = slice_address(sl, g.shape_of(n), y);
    a.offset.step = 0;
    b.CreateAlignedStore(both, pointer_of(a), llvm::Align(static_cast<std::uint64_t>(a.align)));
  };
  if (s.rank == 0) {
    put({});
    return;
  }
  const int lane = lane_axis_of(s);
  coordinates x(static_cast<std::size_t>(s.rank), number(0));
  for_each_outer(s, {lane}, x, [&] {
    for_strips(s.extent[lane], lanes_for(compute_bits(type), s.extent[lane]), 1, [&](llvm::ArrayRef<strip> strips) {
      width_ = strips[0].width;
      x[static_cast<std::size_t>(lane)] = strips[0].at;
      put(x);
    });
    width_ = 1;
  });
}

// Lanes are stored in order, so that of several values for one element the last stays.
void writer::emit_scatter(int n) {
  const int view = g.operand(n, 0), value = g.operand(n, 1), index = g.operand(n, 2);
  const shape& s = g.shape_of(value);
  const int lane = lane_axis_of(s);
  const int bits = std::max(compute_bits(g[value].type), bits_of(g[index].type));
  coordinates x(static_cast<std::size_t>(s.rank), number(0));
  for_each_outer(s, {lane}, x, [&] {
    for_strips(s.extent[lane], lanes_for(bits, s.extent[lane]), 1, [&](llvm::ArrayRef<strip> strips) {
      width_ = strips[0].width;
      x[static_cast<std::size_t>(lane)] = strips[0].at;
      const lanes v = pull(value, x);
      coordinates y = x;
      y[static_cast<std::size_t>(g.attribute(n, 0))] = widened(pull(index, x, true), g[index].type, true);
      guarded a;
      a.where = view_address(view, y);
      write(a, g[view].type, v);
    });
    width_ = 1;
  });
}

// Scalars are stored beside the tiles, and the hook gets pointers to all of it.
void writer::emit_print(int n) {
  Type *ptr = b.getPtrTy(), *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty(), *i8 = b.getInt8Ty();
  auto* item = llvm::StructType::get(c, {i8, i8, i32, ptr});
  const auto count = static_cast<unsigned>(g[n].operand_count);
  auto* items = cell(llvm::ArrayType::get(item, std::max(count, 1u)));
  for (unsigned k = 0; k < count; ++k) {
    const int v = g.operand(n, static_cast<int>(k));
    const shape& s = g.shape_of(v);
    Value* data;
    if (s.rank == 0) {
      auto* at = cell(memory_type(g[v].type));
      b.CreateStore(to_memory(scalar_value(v), g[v].type), at);
      data = at;
    } else {
      int sl = g[v].code == op::result
                   ? plan_.slice_of[static_cast<std::size_t>(g.operand(v, 0))] + static_cast<int>(g.attribute(v, 0))
                   : plan_.slice_of[static_cast<std::size_t>(v)];
      data = b.CreateConstGEP1_64(i8, arena_,
                                  static_cast<std::uint64_t>(plan_.slices[static_cast<std::size_t>(sl)].offset));
    }
    auto field = [&](unsigned f) {
      return b.CreateInBoundsGEP(items->getAllocatedType(), items, {b.getInt32(0), b.getInt32(k), b.getInt32(f)});
    };
    b.CreateStore(b.getInt8(static_cast<std::uint8_t>(g[v].type)), field(0));
    b.CreateStore(b.getInt8(static_cast<std::uint8_t>(s.rank)), field(1));
    b.CreateStore(b.getInt32(static_cast<std::uint32_t>(s.elements())), field(2));
    b.CreateStore(data, field(3));
  }
  auto* where = cell(llvm::ArrayType::get(i64, 3));
  for (unsigned i = 0; i < 3; ++i)
    b.CreateStore(program_[i], b.CreateInBoundsGEP(where->getAllocatedType(), where, {b.getInt32(0), b.getInt32(i)}));
  auto hook = out_.module.getOrInsertFunction(print_hook,
                                              llvm::FunctionType::get(b.getVoidTy(), {ptr, i32, ptr, i32, ptr}, false));
  b.CreateCall(hook,
               {runtime_, b.getInt32(static_cast<std::uint32_t>(g.attribute(n, 0))), where, b.getInt32(count), items});
}

} // namespace kiln::jit::host
