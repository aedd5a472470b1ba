// The driver of the blocked product. For each group of CTAs: which operands they have (CTAs with equal keys share a
// panel), then K block by K block pack every panel once and run the micro-kernel over all pairs of panels that a CTA
// asks for, at last the rest of each CTA.
//
// Nothing but speed depends on how CTAs are grouped: what a panel holds is evaluated from the program id of the first
// CTA that needs it, and another CTA takes it only if all scalars that decide its contents are equal.
#include "dot_kernel.hpp"

#include "jit/emit/convert.hpp"
#include "jit/emit/loop.hpp"

#include <map>

namespace kiln::jit::host {

using llvm::Type;
using llvm::Value;

namespace {

// One side of the product: its panels, and the table that says what each of them is.
struct side {
  dot_source const* source;
  llvm::Function* pack = nullptr;
  std::int64_t panel_bytes = 0;
  std::int64_t k_bytes = 0;       // from one element along k to the next
  Value* panels = nullptr;
  Value* owners = nullptr;        // by panel: a CTA that has it
  Value* chosen = nullptr;        // by CTA of the group: its panel
  std::vector<Value*> keys;       // by key: a column of the table, by panel
  Value* count = nullptr;         // alloca
};

class dot_emitter {
public:
  dot_emitter(graph_view const& graph, specialisation const& facts, dot_loop const& loop, dot_recipe const& recipe,
              dot_cpu const& cpu, emit::emitter& emitter, llvm::Module& module, dot_entry const& entry)
      : g(graph), facts_(facts), d(loop), r(recipe), cpu_(cpu), e(emitter), b(emitter.b), module_(module), entry_(entry),
        scalars_(graph, facts, emitter, entry.slots, entry.grid) {}

  void run(llvm::function_ref<void(Value*, Value*)> cta) {
    prepare();
    emit::loop_while(
        b, {entry_.first}, [&](const emit::values& v) { return b.CreateICmpSLT(v[0], entry_.last); },
        [&](const emit::values& v) {
          Value* count = gather(v[0]);
          product(count);
          repeat(count, [&](Value* i) { cta(cta_of(i), accumulators(i)); });
          return emit::values{b.CreateAdd(v[0], count)};
        });
  }

private:
  Value* number(std::int64_t n) { return b.getInt64(static_cast<std::uint64_t>(n)); }
  Value* bytes(Value* p, Value* offset) { return b.CreateInBoundsGEP(b.getInt8Ty(), p, offset); }
  Value* bytes(Value* p, std::int64_t offset) { return bytes(p, number(offset)); }
  Value* item(Value* column, Value* i) { return b.CreateInBoundsGEP(b.getInt64Ty(), column, i); }
  Value* read(Value* p) { return b.CreateLoad(b.getInt64Ty(), p); }
  void repeat(Value* count, llvm::function_ref<void(Value*)> body) { emit::loop(b, number(0), count, number(1), body); }
  Value* minimum(Value* x, Value* y) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y); }
  Value* maximum(Value* x, Value* y) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, y); }
  Value* cta_of(Value* i) { return read(item(ctas_, i)); }
  Value* accumulators(Value* i) { return bytes(accumulators_, b.CreateMul(i, number(r.accumulator_bytes(d)))); }

  llvm::AllocaInst* cell() {
    auto& top = b.GetInsertBlock()->getParent()->getEntryBlock();
    llvm::IRBuilder<> at(&top, top.begin());
    return at.CreateAlloca(b.getInt64Ty());
  }

  void prepare() {
    std::int64_t offset = 0;
    const auto column = [&] {
      Value* p = bytes(entry_.arena, offset);
      offset += 8 * r.group;
      return p;
    };
    ctas_ = column();
    rows_that_count_ = column(), columns_that_count_ = column();
    a_.source = &d.a, b_.source = &d.b;
    for (side* s : {&a_, &b_}) {
      s->owners = column();
      s->chosen = column();
      for (std::size_t i = 0; i < s->source->keys.size(); ++i) s->keys.push_back(column());
      s->count = cell();
    }
    offset = r.table_bytes(d);
    a_.panel_bytes = r.a_bytes(d), b_.panel_bytes = r.b_bytes(d);
    for (side* s : {&a_, &b_}) {
      s->panels = bytes(entry_.arena, offset);
      offset += r.group * s->panel_bytes;
    }
    accumulators_ = bytes(entry_.arena, offset);

    const std::int64_t a_stride = r.a_stride(d);
    a_.k_bytes = (r.a_by_k ? a_stride : 1) * r.element_bytes;
    b_.k_bytes = r.nr() * r.element_bytes;
    const dot_pack pa{&d.a, d.m, r.a_by_k, a_stride, r.a_by_k ? r.k_block * a_stride : a_stride, r.a_unit_k, dense(d.a, r.a_unit_k)};
    const dot_pack pb{&d.b, d.n, true, r.nr(), std::int64_t{r.k_block} * r.nr(), !r.b_unit_n, dense(d.b, !r.b_unit_n)};
    a_.pack = emit_dot_pack(pa, r, module_, e.caps, "pack_a");
    b_.pack = emit_dot_pack(pb, r, module_, e.caps, "pack_b");

    if (d.columns == -2) return;
    auto* total = b.CreateMul(b.CreateMul(entry_.grid[0], entry_.grid[1]), entry_.grid[2]);
    columns_ = d.columns >= 0 ? scalars_.wide(d.columns, {}) : entry_.grid[0];
    if (d.walked > 1) columns_ = b.CreateSDiv(columns_, number(d.walked));
    Value* usable = b.CreateICmpSGT(columns_, number(0));
    columns_ = b.CreateSelect(usable, columns_, number(1));
    rows_ = d.rows >= 0 ? scalars_.wide(d.rows, {}) : b.CreateUDiv(total, columns_);
    usable = b.CreateAnd(usable, b.CreateAnd(b.CreateICmpSGE(rows_, number(0)), b.CreateICmpSLE(rows_, b.CreateUDiv(total, columns_))));
    rows_ = b.CreateSelect(usable, rows_, number(0));
  }

  // Whether memory is known to be dense along k (or along rows).
  bool dense(dot_source const& s, bool along_k) {
    const int axis = along_k ? s.k_axis : s.row_axis;
    if (s.pointers.base >= 0) return s.unit_step(axis);
    const auto& f = facts_.params[static_cast<std::size_t>(g.attribute(g.operand(s.address, 0), 0))].stride[axis];
    return f.constant && f.value == 1;
  }

  // The CTA that number i of the launch stands for. Tiles are taken in bands of rows, column by column, and within whole
  // blocks of `group` tiles quarter by quarter, so that any aligned part of a block is about square too. This is a
  // permutation of the tiles whatever rows_ and columns_ are, as long as there are that many CTAs; the rest stay.
  Value* renumbered(Value* i) {
    if (!columns_ || r.group == 1) return i;
    const int band = r.band, wide = std::max(1, r.group / band);
    auto* inside = b.CreateICmpSLT(i, b.CreateMul(rows_, columns_));
    auto* in_band = b.CreateMul(columns_, number(band));
    auto* first = b.CreateMul(b.CreateUDiv(i, in_band), number(band));
    auto* height = maximum(minimum(b.CreateSub(rows_, first), number(band)), number(1));
    auto* within = b.CreateURem(i, in_band);
    Value *row = b.CreateURem(within, height), *column = b.CreateUDiv(within, height);
    const auto power = [](int x) { return (x & (x - 1)) == 0; };
    if (power(band) && power(wide) && band * wide > 2) {
      auto* block = b.CreateUDiv(within, number(band * wide));
      auto* left = b.CreateMul(block, number(wide));
      auto* whole = b.CreateAnd(b.CreateICmpEQ(height, number(band)), b.CreateICmpSLE(b.CreateAdd(left, number(wide)), columns_));
      Value *z_row = number(0), *z_column = number(0);
      int bit = 0;
      for (int x = 1; x < std::max(band, wide); x *= 2)
        for (Value** to : {&z_row, &z_column}) {
          if (x >= (to == &z_row ? band : wide)) continue;
          auto* one = b.CreateAnd(b.CreateLShr(within, static_cast<std::uint64_t>(bit++)), number(1));
          *to = b.CreateOr(*to, b.CreateMul(one, number(x)));
        }
      row = b.CreateSelect(whole, z_row, row);
      column = b.CreateSelect(whole, b.CreateAdd(left, z_column), column);
    }
    row = b.CreateAdd(first, row);
    Value* id;
    if (d.walked == 1) {
      id = b.CreateAdd(b.CreateMul(row, columns_), column);
    } else {
      auto *walk = number(d.walked), *top = b.CreateMul(b.CreateUDiv(row, walk), walk);
      auto* rows = maximum(minimum(b.CreateSub(rows_, top), walk), number(1));
      id = b.CreateAdd(b.CreateMul(top, columns_), b.CreateAdd(b.CreateMul(column, rows), b.CreateSub(row, top)));
    }
    return b.CreateSelect(inside, id, i);
  }

  std::array<Value*, 3> program(Value* cta) {
    auto *x = b.CreateURem(cta, entry_.grid[0]), *rest = b.CreateUDiv(cta, entry_.grid[0]);
    return {x, b.CreateURem(rest, entry_.grid[1]), b.CreateUDiv(rest, entry_.grid[1])};
  }
  scalar_code::point at(Value* cta) { return {program(cta), d.loop, nullptr, {}}; }

  // Fills the tables for the CTAs from number `base` on; returns how many there are: all with the same loop bounds.
  Value* gather(Value* base) {
    Value* limit = minimum(b.CreateSub(entry_.last, base), number(r.group));
    if (columns_ && r.group > 1) { // not into the next band: its rows are others
      auto* in_band = b.CreateMul(columns_, number(r.band));
      limit = minimum(limit, b.CreateSub(in_band, b.CreateURem(base, in_band)));
    }
    for (side* s : {&a_, &b_}) b.CreateStore(number(0), s->count);
    std::vector<Value*> first_bounds;
    for (int k : d.bound_keys) first_bounds.push_back(scalars_.wide(k, at(renumbered(base))));
    auto* count = emit::loop_while(
        b, {number(0), b.getTrue()},
        [&](const emit::values& v) { return b.CreateAnd(b.CreateICmpSLT(v[0], limit), v[1]); },
        [&](const emit::values& v) {
          auto* cta = renumbered(b.CreateAdd(base, v[0]));
          const auto p = at(cta);
          Value* alike = b.getTrue();
          for (std::size_t i = 0; i < first_bounds.size(); ++i)
            alike = b.CreateAnd(alike, b.CreateICmpEQ(scalars_.wide(d.bound_keys[i], p), first_bounds[i]));
          emit::when(b, alike, [&] {
            b.CreateStore(cta, item(ctas_, v[0]));
            for (side* s : {&a_, &b_}) choose(*s, v[0], cta, p);
            if (d.outputs.empty()) return;
            b.CreateStore(counting(p, true, d.m), item(rows_that_count_, v[0]));
            b.CreateStore(b.CreateMul(counting(p, false, d.n), number(r.element_bytes)), item(columns_that_count_, v[0]));
          });
          return emit::values{b.CreateAdd(v[0], b.CreateZExt(alike, b.getInt64Ty())), alike};
        })[0];
    return count;
  }

  // How many rows or columns of a CTA's tile are in bounds of an output; not more than there are.
  Value* counting(scalar_code::point const& p, bool rows, int size) {
    Value* most = number(0);
    for (dot_output const& o : d.outputs) {
      const int axis = rows ? o.row_axis : o.column_axis, param = static_cast<int>(g.attribute(g.operand(o.address, 0), 0));
      most = maximum(most, b.CreateSub(scalars_.extent(param, axis), scalars_.wide(g.operand(o.address, axis + 1), p)));
    }
    return minimum(most, number(size));
  }

  // The panel with these keys, a new one if there is none.
  void choose(side& s, Value* i, Value* cta, scalar_code::point const& p) {
    std::vector<Value*> keys;
    for (int k : s.source->keys) keys.push_back(scalars_.wide(k, p));
    auto* count = read(s.count);
    const auto differs = [&](Value* panel) {
      Value* any = b.getFalse();
      for (std::size_t k = 0; k < keys.size(); ++k) any = b.CreateOr(any, b.CreateICmpNE(read(item(s.keys[k], panel)), keys[k]));
      return any;
    };
    // The last entry asked for is read before the bound is checked: the column has room for one more than `count`.
    auto* found = emit::loop_while(
        b, {number(0)},
        [&](const emit::values& v) {
          auto* there = b.CreateICmpSLT(v[0], count);
          return b.CreateAnd(there, differs(minimum(v[0], number(r.group - 1))));
        },
        [&](const emit::values& v) { return emit::values{b.CreateAdd(v[0], number(1))}; })[0];
    b.CreateStore(found, item(s.chosen, i));
    emit::when(b, b.CreateICmpEQ(found, count), [&] {
      b.CreateStore(cta, item(s.owners, found));
      for (std::size_t k = 0; k < keys.size(); ++k) b.CreateStore(keys[k], item(s.keys[k], found));
      b.CreateStore(b.CreateAdd(count, number(1)), s.count);
    });
  }

  // How often the loop runs, and its first index and step.
  void bounds() {
    const auto p = at(cta_of(number(0)));
    Value* v[3];
    for (int i = 0; i < 3; ++i) v[i] = scalars_.wide(g.operand(d.loop, i), p);
    const bool sign = is_signed(g[d.loop].type);
    const auto before = sign ? llvm::CmpInst::ICMP_SLT : llvm::CmpInst::ICMP_ULT;
    // ceil((hi - lo) / step) of non-negative numbers.
    const auto steps = [&](Value* low, Value* high, Value* step) {
      return b.CreateUDiv(b.CreateAdd(b.CreateSub(high, low), b.CreateSub(step, number(1))), step);
    };
    auto* up = b.CreateICmpSGT(v[2], number(0));
    auto* forwards = b.CreateSelect(b.CreateAnd(b.CreateICmp(before, v[0], v[1]), up), steps(v[0], v[1], b.CreateSelect(up, v[2], number(1))), number(0));
    Value* trips = forwards;
    if (sign) {
      auto* down = b.CreateICmpSLT(v[2], number(0));
      auto* backwards = steps(v[1], v[0], b.CreateSelect(down, b.CreateNeg(v[2]), number(1)));
      trips = b.CreateSelect(b.CreateAnd(b.CreateICmpSGT(v[0], v[1]), down), backwards, forwards);
    }
    trips_ = trips, low_ = v[0], step_ = v[2];
  }
  // The loop's index in iteration t, less the source's lead.
  Value* index(Value* t, dot_source const& s) {
    auto* wide = b.CreateAdd(low_, b.CreateMul(b.CreateSub(t, number(s.lead)), step_));
    return b.CreateTrunc(wide, emit::carrier(b.getContext(), g[d.loop].type));
  }

  Value* value(dot_sum const& sum, scalar_code::point const& p) {
    Value* all = number(0);
    for (dot_product_of const& x : sum) {
      Value* one = number(x.factor);
      for (int n : x.scalars) one = b.CreateMul(one, scalars_.wide(n, p));
      all = b.CreateAdd(all, one);
    }
    return all;
  }

  // What says where the box of iteration t lies: the starts of a region; or of pointers the origin, then the limits of rows,
  // then those of k.
  std::vector<Value*> starts(dot_source const& s, scalar_code::point p, Value* t) {
    p.index = index(t, s);
    std::vector<Value*> v;
    if (s.pointers.base >= 0) {
      v.push_back(value(s.pointers.origin, p));
      for (int axis : {s.row_axis, s.k_axis})
        for (dot_sum const& l : s.pointers.limits[axis]) v.push_back(value(l, p));
      return v;
    }
    for (int i = 1; i < g[s.address].operand_count; ++i) v.push_back(scalars_.wide(g.operand(s.address, i), p));
    return v;
  }

  // Whether all boxes of a panel are known to lie side by side along k, first to last.
  bool adjacent(dot_source const& s) const {
    const int step = g.operand(d.loop, 2);
    if (s.pointers.base >= 0 || s.lead != 0 || g[step].code != op::constant || g.attribute(step, 0) != d.k) return false;
    for (int i = 1; i < g[s.address].operand_count; ++i) {
      int start = g.operand(s.address, i);
      if (i - 1 != s.k_axis) {
        if (depends_on(g, start, d.loop)) return false;
        continue;
      }
      while (g[start].code == op::cast && is_int(g[start].type) && bits_of(g[start].type) >= bits_of(g[g.operand(start, 0)].type) &&
             is_signed(g[start].type) == is_signed(g[g.operand(start, 0)].type))
        start = g.operand(start, 0);
      if (start != d.loop) return false;
    }
    return true;
  }

  // Packs iterations [t0, t1) of one panel. Iterations whose boxes lie side by side along k are one box.
  void pack(side& s, Value* panel, Value* t0, Value* t1) {
    dot_source const& src = *s.source;
    const bool pointers = src.pointers.base >= 0;
    const int param = static_cast<int>(g.attribute(pointers ? src.pointers.base : g.operand(src.address, 0), 0));
    auto p = at(read(item(s.owners, panel)));
    for (std::size_t i = 0; i < s.keys.size(); ++i) {
      const int key = src.keys[i];
      p.known.emplace_back(key, b.CreateTrunc(read(item(s.keys[i], panel)), emit::carrier(b.getContext(), g[key].type)));
    }
    auto* to = bytes(s.panels, b.CreateMul(panel, number(s.panel_bytes)));
    const int rows = &src == &d.a ? d.m : d.n;
    Value* row_stride = pointers ? value(src.pointers.step[src.row_axis], p) : scalars_.stride(param, src.row_axis);
    Value* k_stride = pointers ? value(src.pointers.step[src.k_axis], p) : scalars_.stride(param, src.k_axis);
    const std::size_t row_limits = src.pointers.limits[src.row_axis].size();
    // What starts(t + n)[i] is if the boxes lie side by side.
    const auto expected = [&](std::vector<Value*> const& box, std::size_t i, Value* n) {
      auto* k = b.CreateMul(n, number(d.k));
      if (!pointers) return static_cast<int>(i) == src.k_axis ? b.CreateAdd(box[i], k) : box[i];
      if (i == 0) return b.CreateAdd(box[i], b.CreateMul(k, k_stride));
      return i <= row_limits ? box[i] : b.CreateSub(box[i], k);
    };
    const auto one_box = [&](std::vector<Value*> const& box, Value* t, Value* length) {
      auto* k = b.CreateMul(length, number(d.k));
      // What of the box is in bounds: [low, high) on both axes, nothing if another axis is out of bounds.
      Value* inside = b.getTrue();
      Value* address = scalars_.data(param);
      Value *low[2], *high[2], *offset = number(0);
      for (std::size_t i = 0; i < box.size() && !pointers; ++i) {
        const int axis = static_cast<int>(i);
        auto *extent = scalars_.extent(param, axis), *start = box[i];
        offset = b.CreateAdd(offset, b.CreateMul(start, scalars_.stride(param, axis)));
        if (axis == src.row_axis || axis == src.k_axis) {
          const int side_of = axis == src.k_axis;
          auto* size = side_of ? k : number(rows);
          low[side_of] = minimum(maximum(b.CreateNeg(start), number(0)), size);
          high[side_of] = maximum(minimum(b.CreateSub(extent, start), size), low[side_of]);
        } else {
          inside = b.CreateAnd(inside, b.CreateAnd(b.CreateICmpSGE(start, number(0)), b.CreateICmpSLT(start, extent)));
        }
      }
      if (pointers) {
        offset = box[0];
        for (int side_of : {0, 1}) {
          auto* size = side_of ? k : number(rows);
          low[side_of] = number(0);
          high[side_of] = size;
          const std::size_t first = side_of ? 1 + row_limits : 1, last = side_of ? box.size() : 1 + row_limits;
          for (std::size_t i = first; i < last; ++i) high[side_of] = minimum(high[side_of], maximum(box[i], number(0)));
        }
      }
      high[0] = b.CreateSelect(inside, high[0], low[0]);
      address = b.CreateGEP(b.getInt8Ty(), address, b.CreateMul(offset, number(bytes_of(src.types.front()))));
      auto* done = b.CreateMul(b.CreateSub(t, t0), number(r.k_tile * s.k_bytes));
      b.CreateCall(s.pack, {bytes(to, done), address, row_stride, k_stride,
                            low[0], high[0], low[1], high[1], k});
    };
    if (adjacent(src)) return one_box(starts(src, p, t0), t0, b.CreateSub(t1, t0));
    emit::loop_while(
        b, {t0}, [&](const emit::values& v) { return b.CreateICmpSLT(v[0], t1); },
        [&](const emit::values& v) {
          Value* t = v[0];
          const auto box = starts(src, p, t);
          auto* length = emit::loop_while(
              b, {number(1)},
              [&](const emit::values& n) {
                auto* there = b.CreateAdd(t, n[0]);
                Value* go = b.CreateICmpSLT(there, t1);
                const auto next = starts(src, p, there);
                for (std::size_t i = 0; i < box.size(); ++i)
                  go = b.CreateAnd(go, b.CreateICmpEQ(next[i], expected(box, i, n[0])));
                return go;
              },
              [&](const emit::values& n) { return emit::values{b.CreateAdd(n[0], number(1))}; })[0];
          one_box(box, t, length);
          return emit::values{b.CreateAdd(t, length)};
        });
  }

  void product(Value* count) {
    bounds();
    emit::when(b, b.CreateICmpEQ(trips_, number(0)), [&] {
      b.CreateMemSet(accumulators_, b.getInt8(0), b.CreateMul(count, number(r.accumulator_bytes(d))), llvm::MaybeAlign(64));
    });
    emit::loop(b, number(0), trips_, number(r.steps), [&](Value* t0) {
      auto* t1 = minimum(b.CreateAdd(t0, number(r.steps)), trips_);
      for (side* s : {&a_, &b_})
        repeat(read(s->count), [&](Value* i) { pack(*s, i, t0, t1); });
      auto* units = b.CreateMul(b.CreateSub(t1, t0), number(r.k_tile));
      auto* first = b.CreateICmpEQ(t0, number(0));
      repeat(read(b_.count), [&](Value* panel) {
        auto* from = bytes(b_.panels, b.CreateMul(panel, number(b_.panel_bytes)));
        const int vectors = (d.n + r.lanes - 1) / r.lanes, full = vectors / r.nv, rest = vectors % r.nv;
        const int tail = d.n % r.lanes;
        // The last strip is a call of its own where it has fewer vectors or an incomplete one.
        const int plain = full - (rest == 0 && tail != 0 ? 1 : 0);
        const std::int64_t strip_bytes = std::int64_t{r.k_block} * r.nr() * r.element_bytes;
        if (plain > 0)
          repeat(number(plain), [&](Value* strip) {
            strip_of_b(count, panel, bytes(from, b.CreateMul(strip, number(strip_bytes))),
                       b.CreateMul(strip, number(r.nr() * r.element_bytes)), units, first, r.nv, 0);
          });
        if (plain * r.nv < vectors)
          strip_of_b(count, panel, bytes(from, plain * strip_bytes), number(std::int64_t{plain} * r.nr() * r.element_bytes), units, first,
                     vectors - plain * r.nv, tail);
      });
    });
  }

  // One strip of b's columns against every a that a CTA multiplies it with. `column`: where it starts, in bytes.
  void strip_of_b(Value* count, Value* panel, Value* from, Value* column, Value* units, Value* first, int vectors, int tail) {
    repeat(count, [&](Value* i) {
      Value* wanted = b.CreateICmpEQ(read(item(b_.chosen, i)), panel);
      if (!d.outputs.empty()) wanted = b.CreateAnd(wanted, b.CreateICmpSLT(column, read(item(columns_that_count_, i))));
      emit::when(b, wanted, [&] {
        auto* a = bytes(a_.panels, b.CreateMul(read(item(a_.chosen, i)), number(a_.panel_bytes)));
        auto* acc = bytes(accumulators(i), column);
        const int whole = d.m / r.mr * r.mr, rest = d.m % r.mr;
        const std::int64_t a_row = (r.a_by_k ? 1 : r.a_stride(d)) * r.element_bytes, row = std::int64_t{d.n} * r.element_bytes;
        const auto call = [&](Value* at, int rows) {
          b.CreateCall(micro(rows, vectors, tail), {bytes(a, b.CreateMul(at, number(a_row))), from, bytes(acc, b.CreateMul(at, number(row))), units, first});
        };
        Value* counts = d.outputs.empty() ? nullptr : read(item(rows_that_count_, i));
        if (whole > 0) emit::loop(b, number(0), counts ? minimum(counts, number(whole)) : number(whole), number(r.mr), [&](Value* at) { call(at, r.mr); });
        if (rest == 0) return;
        if (counts) emit::when(b, b.CreateICmpSGT(counts, number(whole)), [&] { call(number(whole), rest); });
        else call(number(whole), rest);
      });
    });
  }

  llvm::Function* micro(int rows, int vectors, int tail) {
    auto& f = micros_[{rows, vectors, tail}];
    if (!f) f = emit_micro_kernel(r, cpu_, module_, e.caps, r.a_stride(d), d.n, rows, vectors, tail);
    return f;
  }

  graph_view const& g;
  specialisation const& facts_;
  dot_loop const& d;
  dot_recipe const& r;
  dot_cpu const& cpu_;
  emit::emitter& e;
  llvm::IRBuilderBase& b;
  llvm::Module& module_;
  dot_entry const& entry_;
  scalar_code scalars_;
  side a_, b_;
  Value *ctas_ = nullptr, *rows_that_count_ = nullptr, *columns_that_count_ = nullptr, *accumulators_ = nullptr, *columns_ = nullptr, *rows_ = nullptr;
  Value *trips_ = nullptr, *low_ = nullptr, *step_ = nullptr;
  std::map<std::array<int, 3>, llvm::Function*> micros_;
};

} // namespace

dot_cpu dot_cpu_of(host_cpu const& cpu, emit::capabilities caps) {
  const bool wide = cpu.has("avx512f");
  return {.vector_bits = cpu.vector_bits,
          .registers = wide || cpu.has("neon") ? 32 : 16,
          .fma = caps.fma,
          .pairs = wide ? cpu.has("avx512bw") : cpu.vector_bits == 256 ? cpu.has("avx2") : cpu.has("sse2"),
          .vnni = wide && cpu.has("avx512vnni"),
          .memory_operands = wide};
}

void emit_dot_kernel(graph_view const& g, specialisation const& facts, dot_loop const& d, dot_recipe const& r, dot_cpu const& cpu,
                     emit::emitter& e, llvm::Module& module, dot_entry const& entry,
                     llvm::function_ref<void(Value*, Value*)> cta) {
  dot_emitter(g, facts, d, r, cpu, e, module, entry).run(cta);
}

} // namespace kiln::jit::host
