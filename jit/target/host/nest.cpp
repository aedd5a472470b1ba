// Loop nests: versions, loops, strips, and what happens to the roots' values in each strip.
#include "writer.hpp"

#include "jit/emit/minmax.hpp"

#include <bit>

namespace kiln::jit::host {

// Iterates over an axis in strips: loops of `unroll` strips at once, then what is left in ever narrower ones.
void writer::for_strips(std::int64_t extent, unsigned width, unsigned unroll,
                        llvm::function_ref<void(llvm::ArrayRef<strip>)> body) {
  const std::int64_t strips = extent / width;
  while (unroll > 1 && (strips % unroll != 0 || strips < unroll)) --unroll;
  const std::int64_t many = static_cast<std::int64_t>(width) * unroll;
  auto run = [&](lanes const& start, unsigned count, unsigned w) {
    llvm::SmallVector<strip, 4> all;
    for (unsigned i = 0; i < count; ++i) {
      strip s{start, w};
      s.at.add += static_cast<std::int64_t>(i) * w;
      s.at.step = w > 1 ? 1 : 0;
      all.push_back(s);
    }
    body(all);
  };
  std::int64_t done = strips / unroll * many;
  if (done > many) {
    const lanes i = open_loop(done, many);
    run(i, unroll, width);
    close_loop();
  } else if (done == many) {
    run(number(0), unroll, width);
  }
  while (done < extent) { // fewer than `width` are left
    const auto w = static_cast<unsigned>(std::bit_floor(static_cast<std::uint64_t>(extent - done)));
    run(number(done), 1, std::min(w, width));
    done += std::min(w, width);
  }
}

void writer::emit_nest(nest const& it) {
  locate(it.roots.front().node);
  for (const root& t : it.roots)
    if (t.what == role::reduce && g.shape_of(t.node).rank == 0)
      cells_[static_cast<std::size_t>(t.node)] = cell(carrier(g[t.node].type));
  if (it.own) {
    begin_levels();
    emit_own(it.roots.front().node, it);
    end_levels();
  } else {
    std::vector<std::pair<int, int>> accesses;
    collect_accesses(it, accesses);
    assumed_.clear();
    std::vector<Value*> conditions;
    begin_levels();
    for (const auto& [where, mask] : accesses) conditions_of(where, mask, conditions);
    Value* fast = conjunction(conditions);
    Value* stream = streaming_condition(it);
    any_streaming_ = any_streaming_ || stream;
    const bool always = llvm::isa<llvm::ConstantInt>(fast) && llvm::cast<llvm::ConstantInt>(fast)->isOne();
    const bool never = llvm::isa<llvm::ConstantInt>(fast) && !always;
    auto* join = llvm::BasicBlock::Create(c, "join");
    auto version = [&](llvm::BasicBlock* at, bool is_fast) {
      if (at) b.SetInsertPoint(at);
      begin_levels();
      stream_ = is_fast ? stream : nullptr;
      emit_loops(it, is_fast);
      stream_ = nullptr;
      b.CreateBr(join);
    };
    llvm::BasicBlock *plain = nullptr, *masked = nullptr;
    if (!always && !never) {
      plain = llvm::BasicBlock::Create(c, "fast", function_);
      masked = llvm::BasicBlock::Create(c, "masked", function_);
      b.CreateCondBr(fast, plain, masked);
    }
    if (!never) version(plain, true);
    if (!always) {
      assumed_.clear();
      version(masked, false);
    }
    join->insertInto(function_);
    b.SetInsertPoint(join);
    assumed_.clear();
    end_levels();
  }
  for (const root& t : it.roots) {
    if (t.what != role::reduce || g.shape_of(t.node).rank != 0) continue;
    auto* cell = cells_[static_cast<std::size_t>(t.node)];
    scalar_[static_cast<std::size_t>(t.node)] = b.CreateLoad(cell->getAllocatedType(), cell);
  }
}

void writer::emit_loops(nest const& it, bool fast) {
  const shape& s = it.space;
  const int lane = it.lane_axis;
  natural_width_ = lanes_for(it.bits, s.extent[lane]);
  // Several strips at once hide latencies; a long body has parallelism of its own, and code size is compile time.
  const unsigned unroll = !fast ? 1 : it.cost <= 8 ? 4 : it.cost <= 40 ? 2 : 1;
  accumulators_.clear();
  failed_.clear();
  for (const root& t : it.roots) {
    if (t.what == role::reduce) {
      accumulator a;
      a.node = t.node;
      a.axis = static_cast<int>(g.attribute(t.node, 1));
      accumulators_.push_back(a);
    } else if (t.what == role::check) {
      auto* flag = cell(b.getInt1Ty());
      b.CreateStore(b.getFalse(), flag);
      failed_.push_back(flag);
    }
  }
  width_ = natural_width_;
  for (accumulator& a : accumulators_)
    if (a.axis < 0) reset(a, unroll, natural_width_);
  coordinates x(static_cast<std::size_t>(s.rank), number(0));
  int opened = 0;
  for (int d = 0; d < s.rank; ++d) {
    if (d == lane || d == it.across || s.extent[d] == 1) continue;
    x[static_cast<std::size_t>(d)] = open_loop(s.extent[d]);
    ++opened;
  }
  for (accumulator& a : accumulators_)
    if (a.axis == lane) reset(a, unroll, natural_width_);
  for_strips(s.extent[lane], natural_width_, unroll, [&](llvm::ArrayRef<strip> strips) {
    if (it.across < 0) {
      for (std::size_t i = 0; i < strips.size(); ++i) {
        width_ = strips[i].width;
        x[static_cast<std::size_t>(lane)] = strips[i].at;
        emit_strip(it, x, static_cast<unsigned>(i));
      }
      write_held();
      return;
    }
    width_ = strips[0].width;
    for (accumulator& a : accumulators_)
      if (a.axis == it.across) reset(a, static_cast<unsigned>(strips.size()), strips[0].width);
    const bool many = s.extent[it.across] > 1;
    x[static_cast<std::size_t>(it.across)] = many ? open_loop(s.extent[it.across]) : number(0);
    for (std::size_t i = 0; i < strips.size(); ++i) {
      x[static_cast<std::size_t>(lane)] = strips[i].at;
      emit_strip(it, x, static_cast<unsigned>(i));
    }
    if (many) close_loop();
    for (accumulator& a : accumulators_)
      if (a.axis == it.across)
        for (std::size_t i = 0; i < strips.size(); ++i) {
          x[static_cast<std::size_t>(lane)] = strips[i].at;
          finish_column(a, x, static_cast<unsigned>(i));
        }
  });
  width_ = 1;
  for (accumulator& a : accumulators_)
    if (a.axis == lane) finish_lanes(a, x);
  for (; opened > 0; --opened) close_loop();
  for (accumulator& a : accumulators_)
    if (a.axis < 0) finish_lanes(a, x);
  std::size_t flag = 0;
  for (const root& t : it.roots) {
    if (t.what != role::check) continue;
    Value* bad = b.CreateLoad(b.getInt1Ty(), failed_[flag++]);
    emit::when(b, bad, [&] { call_assert(t.node); });
  }
}

lanes writer::pull_pointer_value(int n, coordinates const& x) {
  const address a = pull_address(n, x);
  const int level = std::max(a.level, a.offset.deepest());
  if (!a.base) return a.offset;
  if (!a.offset.vector && (a.offset.step == 0 || width_ == 1)) {
    Value* p = pointer_of(a);
    return of(on(level, [&] { return b.CreatePtrToInt(p, b.getInt64Ty()); }), level, false);
  }
  Value* p = pointers_of(a);
  return of(on(level, [&] { return b.CreatePtrToInt(p, vector_type(b.getInt64Ty(), width_)); }), level, true);
}

// All operands of the strip are read before anything of it is written.
void writer::emit_strip(nest const& it, coordinates const& x, unsigned strip_index) {
  struct pulled {
    guarded where;
    lanes value;
  };
  std::vector<pulled> all;
  for (const root& t : it.roots) {
    const int n = t.node;
    locate(n);
    pulled p;
    auto value_of = [&](int v) { return g[v].kind == node_kind::pointer ? pull_pointer_value(v, x) : pull(v, x); };
    switch (t.what) {
    case role::keep:
      if (g[n].kind == node_kind::pointer) {
        plan_.kept[static_cast<std::size_t>(n)] = 0;
        p.value = pull_pointer_value(n, x);
        plan_.kept[static_cast<std::size_t>(n)] = 1;
      } else {
        p.value = pull_fresh(n, x, false);
      }
      remember(n, x, p.value);
      break;
    case role::store:
      p.where = pull_access(g.operand(n, 0), g.operand(n, 2), x);
      p.value = pull(g.operand(n, 1), x);
      break;
    case role::local_store:
      if (g[n].code == op::async_load) {
        const guarded from = pull_access(g.operand(n, 0), g.operand(n, 2), x);
        const dtype type = g[g.operand(n, 1)].type;
        if (const int o = g.operand(n, 3); o >= 0) {
          const lanes other = pull(o, x);
          p.value = read_guarded(from, type, &other, g.attribute(n, 2) != 0);
        } else {
          p.value = read_guarded(from, type, nullptr, g.attribute(n, 2) != 0);
        }
        p.where.where = view_address(g.operand(n, 1), x);
      } else {
        p.value = pull(g.operand(n, 1), x);
        p.where.where = view_address(g.operand(n, 0), x);
      }
      break;
    case role::var_set: p.value = value_of(g.operand(n, g[n].code == op::var ? 0 : 1)); break;
    case role::reduce:
    case role::check: p.value = pull(g.operand(n, 0), x); break;
    }
    all.push_back(std::move(p));
  }
  std::size_t reduction = 0, flag = 0;
  for (std::size_t i = 0; i < it.roots.size(); ++i) {
    const int n = it.roots[i].node;
    locate(n);
    pulled& p = all[i];
    switch (it.roots[i].what) {
    case role::keep: write_slice(plan_.slice_of[static_cast<std::size_t>(n)], g.shape_of(n), x, p.value); break;
    case role::store: write(p.where, g[g.operand(n, 0)].type, p.value, true); break;
    case role::local_store: write(p.where, g[g.operand(n, g[n].code == op::async_load ? 1 : 0)].type, p.value); break;
    case role::var_set: {
      const int v = g[n].code == op::var ? n : g.operand(n, 0);
      write_slice(plan_.slice_of[static_cast<std::size_t>(v)], it.space, x, p.value);
      break;
    }
    case role::reduce: accumulate(accumulators_[reduction++], p.value, x, strip_index); break;
    case role::check: {
      Value* ok = vector_of(p.value, b.getInt1Ty());
      Value* bad = b.CreateNot(ok);
      if (width_ > 1) bad = b.CreateOrReduce(bad);
      auto* f = failed_[flag++];
      b.CreateStore(b.CreateOr(b.CreateLoad(b.getInt1Ty(), f), bad), f);
      break;
    }
    }
  }
}

// -- reductions
// --------------------------------------------------------------------------------------------------------

namespace {

bool ignores_nan(graph_view const& g, int n) {
  const auto o = static_cast<reduce_op>(g.attribute(n, 0));
  return g[n].code == op::reduce && (o == reduce_op::max || o == reduce_op::min) && is_float(g[n].type) &&
         static_cast<nan_mode>(g.attribute(n, 3)) == nan_mode::ignore;
}
nan_mode mode_of(graph_view const& g, int n) {
  return g[n].code == op::reduce ? static_cast<nan_mode>(g.attribute(n, 3)) : nan_mode::ignore;
}
constexpr std::uint64_t no_index = 0x7fffffff;

} // namespace

Value* writer::identity(reduce_op o, dtype t) {
  Type* type = carrier(t);
  const unsigned bits = type->getScalarSizeInBits();
  const bool s = is_signed_int(t);
  switch (o) {
  case reduce_op::sum:
    // -0 + x is x for every x, +0 + -0 would be +0.
    return is_float(t) ? llvm::ConstantFP::getNegativeZero(type) : llvm::Constant::getNullValue(type);
  case reduce_op::prod: return is_float(t) ? llvm::ConstantFP::get(type, 1.0) : llvm::ConstantInt::get(type, 1);
  case reduce_op::max:
    if (is_float(t)) return llvm::ConstantFP::getInfinity(type, true);
    return llvm::ConstantInt::get(type, s ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getMinValue(bits));
  case reduce_op::min:
    if (is_float(t)) return llvm::ConstantFP::getInfinity(type, false);
    return llvm::ConstantInt::get(type, s ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits));
  case reduce_op::all: return b.getTrue();
  default: return llvm::Constant::getNullValue(type);
  }
}

// x into the accumulator y, both of the type that is computed in.
Value* writer::combine(reduce_op o, nan_mode mode, dtype t, Value* x, Value* y) {
  switch (o) {
  case reduce_op::sum: return is_float(t) ? b.CreateFAdd(y, x) : b.CreateAdd(y, x);
  case reduce_op::prod: return is_float(t) ? b.CreateFMul(y, x) : b.CreateMul(y, x);
  case reduce_op::max:
  case reduce_op::min: {
    const auto which = o == reduce_op::max ? emit::extremum::maximum : emit::extremum::minimum;
    if (!is_float(t)) return emit::int_extremum(e, which, is_signed_int(t), x, y);
    return mode == nan_mode::ignore ? emit::accumulate_extremum(e, which, x, y)
                                    : emit::float_extremum(e, which, mode, x, y);
  }
  case reduce_op::any: return b.CreateOr(y, x);
  case reduce_op::all: return b.CreateAnd(y, x);
  case reduce_op::bit_xor: return b.CreateXor(y, x);
  default: assert(false && "a custom combine brings its own loops"); return y;
  }
}

void writer::reset(accumulator& a, unsigned strips, unsigned width) {
  const auto o = static_cast<reduce_op>(g.attribute(a.node, 0));
  const dtype t = emit::compute_type(g[g.operand(a.node, 0)].type);
  const bool is_arg = g[a.node].code == op::arg_reduce, flags = ignores_nan(g, a.node);
  const unsigned was = std::exchange(width_, width);
  a.cells.clear();
  a.more.clear();
  for (unsigned i = 0; i < strips; ++i) {
    a.cells.push_back(cell(vector_type(carrier(t), width)));
    b.CreateStore(splat(identity(o, t)), a.cells.back());
    if (is_arg) {
      a.more.push_back(cell(vector_type(b.getInt32Ty(), width)));
      b.CreateStore(splat(b.getInt32(no_index)), a.more.back());
    } else if (flags) {
      a.more.push_back(cell(vector_type(b.getInt1Ty(), width)));
      b.CreateStore(splat(b.getFalse()), a.more.back());
    }
  }
  width_ = was;
}

// A narrower strip's vector in the width of the accumulator; the lanes behind hold `fill`.
Value* writer::pad(Value* v, unsigned width, Value* fill) {
  if (width_ >= width) return v;
  if (width_ == 1) return b.CreateInsertElement(b.CreateVectorSplat(width, fill), v, std::uint64_t{0});
  llvm::SmallVector<int, 64> pick;
  for (unsigned i = 0; i < width; ++i) pick.push_back(static_cast<int>(i < width_ ? i : width_));
  return b.CreateShuffleVector(v, b.CreateVectorSplat(width_, fill), pick);
}

void writer::accumulate(accumulator& a, lanes const& value, coordinates const& x, unsigned i) {
  const int n = a.node;
  const dtype type = g[g.operand(n, 0)].type, t = emit::compute_type(type);
  const auto o = static_cast<reduce_op>(g.attribute(n, 0));
  auto* target = a.cells[i];
  Type* held = target->getAllocatedType();
  const unsigned width = held->isVectorTy() ? llvm::cast<llvm::FixedVectorType>(held)->getNumElements() : 1;
  Value* v = vector_of(value, carrier(type));
  if (is_float(type) && bits_of(type) < 32) v = widen_float(v, type);
  Value* old = b.CreateLoad(held, target);
  if (g[n].code == op::arg_reduce) {
    Value* at = vector_of(x[static_cast<std::size_t>(a.axis)], b.getInt32Ty());
    v = pad(v, width, identity(o, t));
    at = pad(at, width, b.getInt32(no_index));
    auto* where = a.more[i];
    Value* old_at = b.CreateLoad(where->getAllocatedType(), where);
    const auto [best, best_at] = better(o, t, v, at, old, old_at);
    b.CreateStore(best, target);
    b.CreateStore(best_at, where);
    return;
  }
  if (!a.more.empty()) {
    auto* seen = a.more[i];
    Value* number = pad(b.CreateFCmpORD(v, v), width, b.getFalse());
    b.CreateStore(b.CreateOr(b.CreateLoad(seen->getAllocatedType(), seen), number), seen);
  }
  v = pad(v, width, identity(o, t));
  b.CreateStore(combine(o, mode_of(g, n), t, v, old), target);
}

// Of two candidates: the better value, of equal ones the smaller index. NaN is never better.
std::pair<Value*, Value*> writer::better(reduce_op o, dtype t, Value* x, Value* x_at, Value* y, Value* y_at) {
  Value *wins, *equal;
  const bool most = o == reduce_op::max;
  if (is_float(t)) {
    wins = most ? b.CreateFCmpOGT(x, y) : b.CreateFCmpOLT(x, y);
    equal = b.CreateFCmpOEQ(x, y);
  } else {
    const bool s = is_signed_int(t);
    wins = most ? (s ? b.CreateICmpSGT(x, y) : b.CreateICmpUGT(x, y))
                : (s ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y));
    equal = b.CreateICmpEQ(x, y);
  }
  Value* first = b.CreateAnd(equal, b.CreateICmpSLT(x_at, y_at));
  Value* take = b.CreateOr(wins, first);
  return {b.CreateSelect(take, x, y), b.CreateSelect(take, x_at, y_at)};
}

// Halves a vector with `combine` until one lane is left.
Value* writer::fold(Value* v, llvm::function_ref<Value*(Value*, Value*)> both) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  if (!type) return v;
  for (unsigned w = type->getNumElements(); w > 1; w /= 2) {
    llvm::SmallVector<int, 32> low, high;
    for (unsigned i = 0; i < w / 2; ++i) {
      low.push_back(static_cast<int>(i));
      high.push_back(static_cast<int>(i + w / 2));
    }
    v = both(b.CreateShuffleVector(v, high), b.CreateShuffleVector(v, low));
  }
  return b.CreateExtractElement(v, std::uint64_t{0});
}

coordinates writer::reduced_coordinates(int n, coordinates const& x) {
  const int axis = static_cast<int>(g.attribute(n, 1));
  const bool keep = g.attribute(n, 2) != 0;
  coordinates r;
  for (std::size_t d = 0; d < x.size(); ++d) {
    const bool gone = axis < 0 || static_cast<int>(d) == axis;
    if (!gone) r.push_back(x[d]);
    else if (keep) r.push_back(number(0));
  }
  return r;
}

void writer::deliver(int n, lanes const& value, coordinates const& x) {
  if (g.shape_of(n).rank == 0) b.CreateStore(value.v, cells_[static_cast<std::size_t>(n)]);
  else write_slice(plan_.slice_of[static_cast<std::size_t>(n)], g.shape_of(n), x, value);
}

// Finished values of one strip of accumulators, from the type computed in to the result's.
Value* writer::finished(int n, Value* v, Value* more) {
  const dtype type = g[n].type, t = emit::compute_type(type);
  if (g[n].code == op::arg_reduce) { // all NaN gives 0
    Value* none = b.CreateICmpEQ(more, e.integer(more->getType(), no_index));
    return b.CreateSelect(none, llvm::Constant::getNullValue(more->getType()), more);
  }
  if (more) v = b.CreateSelect(more, v, llvm::ConstantFP::getQNaN(v->getType()));
  return type == t ? v : narrow_float(v, type);
}

void writer::finish_lanes(accumulator& a, coordinates const& x) {
  const int n = a.node;
  locate(n);
  const auto o = static_cast<reduce_op>(g.attribute(n, 0));
  const dtype t = emit::compute_type(g[g.operand(n, 0)].type);
  const bool is_arg = g[n].code == op::arg_reduce;
  auto load = [&](llvm::AllocaInst* p) { return b.CreateLoad(p->getAllocatedType(), p); };
  Value *v = load(a.cells[0]), *more = a.more.empty() ? nullptr : load(a.more[0]);
  for (std::size_t i = 1; i < a.cells.size(); ++i) {
    Value* w = load(a.cells[i]);
    if (is_arg) std::tie(v, more) = better(o, t, w, load(a.more[i]), v, more);
    else {
      v = combine(o, mode_of(g, n), t, w, v);
      if (more) more = b.CreateOr(more, load(a.more[i]));
    }
  }
  if (is_arg) {
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
    for (unsigned w = type ? type->getNumElements() : 1; w > 1; w /= 2) {
      llvm::SmallVector<int, 32> low, high;
      for (unsigned i = 0; i < w / 2; ++i) {
        low.push_back(static_cast<int>(i));
        high.push_back(static_cast<int>(i + w / 2));
      }
      std::tie(v, more) = better(o, t, b.CreateShuffleVector(v, high), b.CreateShuffleVector(more, high),
                                 b.CreateShuffleVector(v, low), b.CreateShuffleVector(more, low));
    }
    if (type) {
      v = b.CreateExtractElement(v, std::uint64_t{0});
      more = b.CreateExtractElement(more, std::uint64_t{0});
    }
  } else {
    v = fold(v, [&](Value* p, Value* q) { return combine(o, mode_of(g, n), t, p, q); });
    if (more && more->getType()->isVectorTy()) more = b.CreateOrReduce(more);
  }
  deliver(n, of(finished(n, v, more), here_, false), reduced_coordinates(n, x));
}

void writer::finish_column(accumulator& a, coordinates const& x, unsigned i) {
  locate(a.node);
  auto load = [&](llvm::AllocaInst* p) { return b.CreateLoad(p->getAllocatedType(), p); };
  Value *v = load(a.cells[i]), *more = a.more.empty() ? nullptr : load(a.more[i]);
  deliver(a.node, of(finished(a.node, v, more), here_, width_ > 1), reduced_coordinates(a.node, x));
}

} // namespace kiln::jit::host
