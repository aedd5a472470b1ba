// Histograms, sorting and the best k along an axis, each with loops of its own over scratch memory.
//
// Rows are sorted as unsigned keys (jit/emit/sort_key.hpp) by a bitonic network whose comparisons run along vectors; for topk
// the element's index stands in the low bits, which makes equal elements different and their order the wanted one.
#include "writer.hpp"

#include "jit/emit/sort_key.hpp"

#include <bit>

namespace kiln::jit::host {

namespace {

constexpr std::int64_t tables = 4; ///< of a histogram: equal neighbours do not wait for each other

/// How the rows of a sort or topk lie in scratch memory.
struct row_keys {
  unsigned bits;         ///< of an element: the key, and below it `index_bits`
  unsigned index_bits;
  std::int64_t room;     ///< elements of the row, or of the running best and of a block; a power of two
  bool whole;            ///< the whole row is sorted; otherwise the best so far is merged with block after block
  std::int64_t bytes() const { return (whole ? room : 2 * room) * (bits / 8); }
};
row_keys keys_of(graph_view const& g, int n) {
  const shape& s = g.shape_of(g.operand(n, 0));
  const int axis = static_cast<int>(g.attribute(n, 0));
  const std::int64_t extent = s.extent[axis];
  const auto key = static_cast<unsigned>(bits_of(g[n].type));
  row_keys r{};
  const auto whole = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(extent)));
  if (g[n].code == op::sort) {
    r.bits = std::max(32u, key);
    r.room = whole;
    r.whole = true;
    return r;
  }
  r.bits = key <= 16 && extent <= 65536 ? 32 : key <= 32 ? 64 : 128;
  r.index_bits = r.bits == 32 ? 16 : 32;
  const auto count = static_cast<std::uint64_t>(g.shape_of(n).extent[axis]);
  r.room = std::max<std::int64_t>(16, static_cast<std::int64_t>(std::bit_ceil(count)));
  r.whole = 4 * r.room > whole;
  if (r.whole) r.room = whole;
  return r;
}

/// A bitonic network over an array of unsigned integers whose length is a power of two. All comparisons ascend: the first of
/// a stage reverses the upper half of each run, the others do not look at direction.
class network {
public:
  network(llvm::IRBuilder<>& builder, Type* element, unsigned lanes, std::int64_t length)
      : b(builder), type(element), n(length),
        w(static_cast<unsigned>(std::min<std::int64_t>(lanes, length))) {}

  Type* vector() const { return w == 1 ? type : llvm::FixedVectorType::get(type, w); }
  Value* load(Value* base, Value* at) { return b.CreateAlignedLoad(vector(), pointer(base, at), align()); }
  void store(Value* v, Value* base, Value* at) { b.CreateAlignedStore(v, pointer(base, at), align()); }
  Value* i64(std::int64_t v) { return b.getInt64(static_cast<std::uint64_t>(v)); }
  unsigned width() const { return w; }

  void sort(Value* base) {
    // Runs of up to one vector, each in a register.
    for_each(i64(0), i64(n), i64(w), [&](Value* at) {
      Value* v = load(base, at);
      for (unsigned run = 2; run <= w; run *= 2) {
        v = exchange(v, run - 1, run / 2);
        v = merge_in_vector(v, run / 4);
      }
      store(v, base, at);
    });
    if (n == w) return;
    emit::loop_while(
        b, {i64(2 * static_cast<std::int64_t>(w))}, [&](emit::values const& run) { return b.CreateICmpULE(run[0], i64(n)); },
        [&](emit::values const& run) {
          Value* half = b.CreateLShr(run[0], 1);
          for_each(i64(0), i64(n), run[0], [&](Value* block) {
            for_each(i64(0), half, i64(w), [&](Value* t) {
              Value* low = b.CreateAdd(block, t);
              Value* high = b.CreateSub(b.CreateAdd(block, run[0]), b.CreateAdd(t, i64(w)));
              Value *x = load(base, low), *y = reversed(load(base, high));
              store(lesser(x, y), base, low);
              store(reversed(greater(x, y)), base, high);
            });
          });
          merge_from(base, b.CreateLShr(run[0], 2));
          return emit::values{b.CreateShl(run[0], 1)};
        });
  }
  /// Sorts a bitonic sequence.
  void merge(Value* base) { merge_from(base, i64(n / 2)); }
  /// kept[i] = the lesser of kept[i] and other[n - 1 - i]: of two sorted arrays, the n least, a bitonic sequence.
  void keep_least(Value* kept, Value* other) {
    for_each(i64(0), i64(n), i64(w), [&](Value* t) {
      store(lesser(load(kept, t), reversed(load(other, b.CreateSub(i64(n - w), t)))), kept, t);
    });
  }
  Value* lesser(Value* x, Value* y) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, x, y); }
  Value* greater(Value* x, Value* y) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, x, y); }
  void for_each(Value* from, Value* to, Value* by, llvm::function_ref<void(Value*)> body) {
    emit::loop(b, from, to, by, body, {.at_least_once = true, .is_signed = false});
  }

private:
  llvm::IRBuilder<>& b;
  Type* type;
  std::int64_t n;
  unsigned w;

  llvm::Align align() const { return llvm::Align(type->getIntegerBitWidth() / 8); }
  Value* pointer(Value* base, Value* at) { return b.CreateGEP(type, base, at); }
  Value* reversed(Value* v) {
    if (w == 1) return v;
    llvm::SmallVector<int, 64> order;
    for (unsigned i = w; i-- > 0;) order.push_back(static_cast<int>(i));
    return b.CreateShuffleVector(v, order);
  }
  /// Lane i with lane i ^ delta; the lanes that have `upper` set get the greater one.
  Value* exchange(Value* v, unsigned delta, unsigned upper) {
    llvm::SmallVector<int, 64> partner;
    llvm::SmallVector<llvm::Constant*, 64> is_upper;
    for (unsigned i = 0; i < w; ++i) {
      partner.push_back(static_cast<int>(i ^ delta));
      is_upper.push_back(b.getInt1((i & upper) != 0));
    }
    Value* other = b.CreateShuffleVector(v, partner);
    return b.CreateSelect(llvm::ConstantVector::get(is_upper), greater(v, other), lesser(v, other));
  }
  Value* merge_in_vector(Value* v, unsigned from) {
    for (unsigned j = from; j >= 1; j /= 2) v = exchange(v, j, j);
    return v;
  }
  /// Comparisons at the distances `from` (i64), half of it, .. 1.
  void merge_from(Value* base, Value* from) {
    emit::loop_while(
        b, {from}, [&](emit::values const& j) { return b.CreateICmpUGE(j[0], i64(w)); },
        [&](emit::values const& j) {
          for_each(i64(0), i64(n), b.CreateShl(j[0], 1), [&](Value* block) {
            for_each(i64(0), j[0], i64(w), [&](Value* t) {
              Value *low = b.CreateAdd(block, t), *high = b.CreateAdd(low, j[0]);
              Value *x = load(base, low), *y = load(base, high);
              store(lesser(x, y), base, low);
              store(greater(x, y), base, high);
            });
          });
          return emit::values{b.CreateLShr(j[0], 1)};
        });
    if (w > 1)
      for_each(i64(0), i64(n), i64(w), [&](Value* at) { store(merge_in_vector(load(base, at), w / 2), base, at); });
  }
};

} // namespace

std::int64_t order_scratch_bytes(graph_view const& g, int n) {
  switch (g[n].code) {
  case op::histogram: return tables * 4 * (g.shape_of(n).extent[0] + 1);
  case op::sort:
  case op::topk: return keys_of(g, n).bytes();
  default: return 0;
  }
}

// Elements outside the bins, or without their mask, are counted in one bin more, which nobody reads.
void writer::emit_histogram(int n) {
  const int source = g.operand(n, 0), mask = g.operand(n, 1);
  const shape& s = g.shape_of(source);
  const dtype t = g[source].type;
  const std::int64_t bins = g.shape_of(n).extent[0], table = bins + 1;
  Type *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty();
  const std::int64_t at = plan_.shared_scratch(tables * table * 4);
  Value* counts = on(0, [&] { return b.CreateConstGEP1_64(b.getInt8Ty(), arena_, static_cast<std::uint64_t>(at)); });
  b.CreateMemSet(counts, b.getInt8(0), static_cast<std::uint64_t>(tables * table * 4), llvm::MaybeAlign(64));
  const int lane = lane_axis_of(s);
  coordinates x(static_cast<std::size_t>(s.rank), number(0));
  for_each_outer(s, {lane}, x, [&] {
    for_strips(s.extent[lane], lanes_for(std::max(32, bits_of(t)), s.extent[lane]), 1, [&](llvm::ArrayRef<strip> strips) {
      width_ = strips[0].width;
      x[static_cast<std::size_t>(lane)] = strips[0].at;
      Value* v = vector_of(pull(source, x), carrier(t));
      if (bits_of(t) < 32) {
        Type* wide = emit::emitter::shaped(i32, v->getType());
        v = is_signed_int(t) ? b.CreateSExt(v, wide) : b.CreateZExt(v, wide);
      }
      v = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, v, e.integer(v->getType(), static_cast<std::uint64_t>(bins)));
      if (mask >= 0)
        v = b.CreateSelect(vector_of(pull(mask, x), b.getInt1Ty()), v, e.integer(v->getType(), static_cast<std::uint64_t>(bins)));
      for (unsigned l = 0; l < width_; ++l) {
        Value* bin = b.CreateZExtOrTrunc(width_ == 1 ? v : b.CreateExtractElement(v, std::uint64_t{l}), i64);
        Value* p = b.CreateGEP(i32, counts, b.CreateAdd(bin, b.getInt64(static_cast<std::uint64_t>(l % tables * table))));
        b.CreateAlignedStore(b.CreateAdd(b.CreateAlignedLoad(i32, p, llvm::Align(4)), b.getInt32(1)), p, llvm::Align(4));
      }
    });
    width_ = 1;
  });
  for_strips(bins, lanes_for(32, bins), 1, [&](llvm::ArrayRef<strip> strips) {
    width_ = strips[0].width;
    lanes first = strips[0].at;
    first.step = 0;
    Value *bin = scalar_of(first, i64), *sum = nullptr;
    for (std::int64_t k = 0; k < tables; ++k) {
      Value* p = b.CreateGEP(i32, counts, b.CreateAdd(bin, b.getInt64(static_cast<std::uint64_t>(k * table))));
      Value* part = b.CreateAlignedLoad(vector_type(i32, width_), p, llvm::Align(4));
      sum = sum ? b.CreateAdd(sum, part) : part;
    }
    write_slice(plan_.slice_of[static_cast<std::size_t>(n)], g.shape_of(n), {strips[0].at}, of(sum, here_, width_ > 1));
  });
  width_ = 1;
}

// sort and topk, row by row.
void writer::emit_sort(int n) {
  const int source = g.operand(n, 0), axis = static_cast<int>(g.attribute(n, 0));
  const bool with_index = g[n].code == op::topk, descending = g.attribute(n, 1) != 0;
  const shape &s = g.shape_of(source), &to = g.shape_of(n);
  const dtype t = g[source].type;
  const row_keys k = keys_of(g, n);
  Type *i64 = b.getInt64Ty(), *type = b.getIntNTy(k.bits);
  const unsigned widest = k.bits == 128 ? 1 : lanes_for(static_cast<int>(k.bits), k.room);
  const std::int64_t extent = s.extent[axis], at = plan_.shared_scratch(k.bytes());
  Value* first = on(0, [&] { return b.CreateConstGEP1_64(b.getInt8Ty(), arena_, static_cast<std::uint64_t>(at)); });
  network net(b, type, widest, k.room);
  coordinates x(static_cast<std::size_t>(s.rank), number(0));
  auto index_of = [&](lanes l) {
    l.step = 0;
    return scalar_of(l, i64);
  };
  // Keys of the elements x[axis] = from + 0 .. count-1, to `base`.
  auto fill = [&](Value* base, lanes const& from, std::int64_t count) {
    for_strips(count, widest, 1, [&](llvm::ArrayRef<strip> strips) {
      width_ = strips[0].width;
      const lanes place = sum(from, strips[0].at, i64);
      x[static_cast<std::size_t>(axis)] = place;
      Value* key = emit::sort_key(e, vector_of(pull(source, x), carrier(t)), t, descending);
      key = b.CreateZExt(key, emit::emitter::shaped(type, key->getType()));
      if (with_index) {
        Value* index = vector_of(place, i64);
        index = b.CreateZExtOrTrunc(index, key->getType());
        key = b.CreateOr(b.CreateShl(key, k.index_bits), index);
      }
      b.CreateAlignedStore(key, b.CreateGEP(type, base, index_of(strips[0].at)), llvm::Align(k.bits / 8));
    });
    width_ = 1;
  };
  auto fill_last = [&](Value* base, std::int64_t from, std::int64_t count) { // with what comes behind everything
    if (count == 0) return;
    b.CreateMemSet(b.CreateConstGEP1_64(type, base, static_cast<std::uint64_t>(from)), b.getInt8(0xff),
                   static_cast<std::uint64_t>(count) * (k.bits / 8), llvm::MaybeAlign(k.bits / 8));
  };
  auto merge_block = [&](Value* block) {
    Value* bound = b.CreateAlignedLoad(type, b.CreateConstGEP1_64(type, first, static_cast<std::uint64_t>(to.extent[axis] - 1)),
                                       llvm::Align(k.bits / 8));
    Value* least = net.load(block, net.i64(0));
    for (std::int64_t i = net.width(); i < k.room; i += net.width()) least = net.lesser(least, net.load(block, net.i64(i)));
    if (net.width() > 1) least = b.CreateIntMinReduce(least, false);
    emit::when(b, b.CreateICmpULT(least, bound), [&] {
      net.sort(block);
      net.keep_least(first, block);
      net.merge(first);
    });
  };
  for_each_outer(s, {axis}, x, [&] {
    if (k.whole) {
      fill_last(first, extent, k.room - extent);
      fill(first, number(0), extent);
      net.sort(first);
    } else {
      Value* block = b.CreateConstGEP1_64(type, first, static_cast<std::uint64_t>(k.room));
      fill_last(first, 0, k.room);
      const std::int64_t full = extent / k.room * k.room;
      const lanes from = open_loop(full, k.room);
      fill(block, from, k.room);
      merge_block(block);
      close_loop();
      if (full < extent) {
        fill_last(block, extent - full, k.room - (extent - full));
        fill(block, number(full), extent - full);
        merge_block(block);
      }
    }
    for_strips(to.extent[axis], widest, 1, [&](llvm::ArrayRef<strip> strips) {
      width_ = strips[0].width;
      x[static_cast<std::size_t>(axis)] = strips[0].at;
      Value* key = b.CreateAlignedLoad(vector_type(type, width_), b.CreateGEP(type, first, index_of(strips[0].at)),
                                       llvm::Align(k.bits / 8));
      Type* narrow = emit::emitter::shaped(b.getIntNTy(static_cast<unsigned>(bits_of(t))), key->getType());
      Value* number = b.CreateTrunc(with_index ? b.CreateLShr(key, k.index_bits) : key, narrow);
      const int slice = plan_.slice_of[static_cast<std::size_t>(n)];
      write_slice(slice, to, x, of(emit::number_of_key(e, number, t, descending, carrier(t)), here_, width_ > 1));
      if (!with_index) return;
      Value* index = key;
      if (k.index_bits < 32) index = b.CreateAnd(index, e.integer(index->getType(), 0xffff));
      index = b.CreateTrunc(index, emit::emitter::shaped(b.getInt32Ty(), index->getType()));
      write_slice(slice + 1, to, x, of(index, here_, width_ > 1));
    });
    width_ = 1;
  });
}

} // namespace kiln::jit::host
