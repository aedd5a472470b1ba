// What a kernel has of its blocked product beside micro-kernels and packing: the function that says where operands lie,
// the table for the driver, and the entry, which calls the driver with it.
#include "dot_kernel.hpp"

#include "dot_drive.hpp"

#include "jit/emit/convert.hpp"

#include <llvm/IR/Constants.h>

#include <bit>
#include <map>

namespace kiln::jit::host {

using llvm::Type;
using llvm::Value;

namespace {

class dot_emitter {
public:
  dot_emitter(graph_view const& graph, specialisation const& facts, dot_loop const& loop, dot_recipe const& recipe,
              dot_cpu const& cpu, emit::emitter& emitter, llvm::Module& module)
      : g(graph), facts_(facts), d(loop), r(recipe), cpu_(cpu), e(emitter), b(emitter.b), module_(module) {}

  void run(llvm::Function* entry, llvm::Function* rest, std::int64_t scratch) {
    numbers_.scratch = scratch;
    numbers();
    auto* place = this->place();
    const std::int64_t a_stride = r.a_stride(d);
    const dot_pack pa{&d.a, d.m, r.a_by_k, a_stride, r.a_by_k ? r.k_block * a_stride : a_stride, r.a_unit_k, dense(d.a, r.a_unit_k)};
    const dot_pack pb{&d.b, d.n, true, r.nr(), std::int64_t{r.k_block} * r.nr(), !r.b_unit_n, dense(d.b, !r.b_unit_n)};
    auto* none = llvm::ConstantPointerNull::get(b.getPtrTy());
    std::vector<llvm::Constant*> functions{place, emit_dot_pack(pa, r, module_, e.caps, "pack_a"), emit_dot_pack(pb, r, module_, e.caps, "pack_b")};
    // The last strip has kernels of its own where it has fewer vectors or an incomplete one.
    const int vectors = r.vectors(d.n);
    for (int rows : {r.mr, d.m % r.mr})
      for (bool last : {false, true}) {
        const bool wanted = rows != 0 && (last ? numbers_.last_strip != 0 : numbers_.strips != 0);
        const int wide = last ? vectors - static_cast<int>(numbers_.strips) * r.nv : r.nv;
        functions.push_back(wanted ? static_cast<llvm::Constant*>(emit_micro_kernel(r, cpu_, module_, e.caps, a_stride, d.n, rows, wide, last ? d.n % r.lanes : 0)) : none);
      }
    functions.push_back(rest);
    call(entry, functions);
  }

private:
  void numbers() {
    auto& n = numbers_;
    n.m = d.m, n.n = d.n, n.k = d.k;
    n.element_bytes = r.element_bytes, n.is_float = !is_int(r.compute);
    n.table_bytes = r.table_bytes(d), n.accumulator_bytes = r.accumulator_bytes(d);
    n.group = r.group, n.band = r.band;
    n.numbered = d.columns != -2, n.columns_known = d.columns >= 0, n.rows_known = d.rows >= 0, n.walked = d.walked;
    n.is_signed = is_signed(g[d.loop].type);
    n.steps = r.steps, n.k_tile = r.k_tile;
    n.mr = r.mr, n.whole = d.m / r.mr * r.mr;
    const int vectors = r.vectors(d.n);
    n.strips = vectors / r.nv - (vectors % r.nv == 0 && d.n % r.lanes != 0 ? 1 : 0);
    n.last_strip = n.strips * r.nv < vectors;
    n.strip_bytes = std::int64_t{r.k_block} * r.nr() * r.element_bytes;
    n.strip_columns = r.nr() * r.element_bytes;
    n.a_row_bytes = (r.a_by_k ? 1 : r.a_stride(d)) * r.element_bytes;
    n.row_bytes = std::int64_t{d.n} * r.element_bytes;
    n.numbers = first_dot_key;
    for (dot_source const* s : {&d.a, &d.b}) {
      auto& x = side(*s);
      x.keys = static_cast<std::int64_t>(s->keys.size());
      x.first_key = n.numbers;
      n.numbers += x.keys;
    }
    for (dot_source const* s : {&d.a, &d.b}) {
      auto& x = side(*s);
      const bool pointers = s->pointers.base >= 0;
      const int param = param_of(*s);
      x.starts = n.numbers;
      x.pointers = pointers;
      x.slot = first_slot(g, param);
      x.rank = pointers ? 0 : g[s->address].operand_count - 1;
      x.row_axis = s->row_axis, x.k_axis = s->k_axis;
      x.row_limits = static_cast<std::int64_t>(s->pointers.limits[s->row_axis].size());
      x.k_limits = static_cast<std::int64_t>(s->pointers.limits[s->k_axis].size());
      x.lead = s->lead;
      x.adjacent = adjacent(*s);
      x.rows = s == &d.a ? d.m : d.n;
      x.element_bytes = bytes_of(s->types.front());
      x.panel_bytes = s == &d.a ? r.a_bytes(d) : r.b_bytes(d);
      x.k_bytes = (s == &d.b ? r.nr() : r.a_by_k ? r.a_stride(d) : 1) * r.element_bytes;
      n.numbers += pointers ? 3 + x.row_limits + x.k_limits : x.rank;
    }
  }
  dot_side_plan& side(dot_source const& s) { return &s == &d.a ? numbers_.a : numbers_.b; }
  int param_of(dot_source const& s) const {
    return static_cast<int>(g.attribute(s.pointers.base >= 0 ? s.pointers.base : g.operand(s.address, 0), 0));
  }

  // Whether memory is known to be dense along k (or along rows).
  bool dense(dot_source const& s, bool along_k) {
    const int axis = along_k ? s.k_axis : s.row_axis;
    if (s.pointers.base >= 0) return s.unit_step(axis);
    const auto& f = facts_.params[static_cast<std::size_t>(param_of(s))].stride[axis];
    return f.constant && f.value == 1;
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

  // The dot_place_function.
  llvm::Function* place() {
    Type *ptr = b.getPtrTy(), *i64 = b.getInt64Ty();
    auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {ptr, ptr, i64, i64, ptr}, false),
                                     llvm::Function::InternalLinkage, "place", module_);
    f->addFnAttr(module_builder::quick);
    b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "", f));
    std::array<Value*, 3> grid{};
    for (std::uint64_t i = 0; i < 3; ++i)
      grid[i] = b.CreateZExt(b.CreateLoad(b.getInt32Ty(), b.CreateConstInBoundsGEP1_64(b.getInt32Ty(), f->getArg(1), i)), i64);
    scalar_code scalars(g, facts_, e, f->getArg(0), grid);
    scalar_code::point p;
    Value *cta = f->getArg(2), *rest = b.CreateUDiv(cta, grid[0]);
    p.program = {b.CreateURem(cta, grid[0]), b.CreateURem(rest, grid[1]), b.CreateUDiv(rest, grid[1])};
    p.index = b.CreateTrunc(f->getArg(3), emit::carrier(b.getContext(), g[d.loop].type));

    std::vector<Value*> all;
    const auto node = [&](int n) { all.push_back(n >= 0 ? scalars.wide(n, p) : b.getInt64(0)); };
    const auto sum = [&](dot_sum const& terms) {
      Value* total = b.getInt64(0);
      for (dot_product_of const& x : terms) {
        Value* one = b.getInt64(static_cast<std::uint64_t>(x.factor));
        for (int n : x.scalars) one = b.CreateMul(one, scalars.wide(n, p));
        total = b.CreateAdd(total, one);
      }
      all.push_back(total);
    };
    // How many rows or columns of the tile are in bounds of an output; not more than there are.
    const auto count = [&](bool rows, int size) {
      auto* whole = b.getInt64(static_cast<std::uint64_t>(size));
      if (d.outputs.empty()) return all.push_back(whole);
      Value* most = b.getInt64(0);
      for (dot_output const& o : d.outputs) {
        const int axis = rows ? o.row_axis : o.column_axis, param = static_cast<int>(g.attribute(g.operand(o.address, 0), 0));
        auto* left = b.CreateSub(scalars.extent(param, axis), scalars.wide(g.operand(o.address, axis + 1), p));
        most = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, most, left);
      }
      all.push_back(b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, most, whole));
    };
    node(d.columns);
    node(d.rows);
    for (int i = 0; i < 3; ++i) node(g.operand(d.loop, i));
    count(true, d.m);
    count(false, d.n);
    for (dot_source const* s : {&d.a, &d.b})
      for (int key : s->keys) node(key);
    for (dot_source const* s : {&d.a, &d.b}) {
      if (s->pointers.base < 0) {
        for (int i = 1; i < g[s->address].operand_count; ++i) node(g.operand(s->address, i));
        continue;
      }
      sum(s->pointers.origin);
      for (int axis : {s->row_axis, s->k_axis})
        for (dot_sum const& l : s->pointers.limits[axis]) sum(l);
      for (int axis : {s->row_axis, s->k_axis}) sum(s->pointers.step[axis]);
    }
    for (std::size_t i = 0; i < all.size(); ++i) b.CreateStore(all[i], b.CreateConstInBoundsGEP1_64(i64, f->getArg(4), i));
    b.CreateRetVoid();
    return f;
  }

  // The table, and the call. The builder is left behind it.
  void call(llvm::Function* entry, std::vector<llvm::Constant*> const& functions) {
    constexpr std::size_t words = sizeof(dot_numbers) / 8;
    static_assert(sizeof(dot_plan) == 8 * (words + 8), "eight functions, then numbers of eight bytes");
    const auto as_words = std::bit_cast<std::array<std::uint64_t, words>>(numbers_);
    auto* table = llvm::ConstantStruct::getAnon({llvm::ConstantArray::get(llvm::ArrayType::get(b.getPtrTy(), functions.size()), functions),
                                                 llvm::ConstantDataArray::get(b.getContext(), as_words)});
    auto* plan = new llvm::GlobalVariable(module_, table->getType(), true, llvm::GlobalValue::InternalLinkage, table, "plan");
    Type *ptr = b.getPtrTy(), *i64 = b.getInt64Ty();
    const auto drive = module_.getOrInsertFunction(dot_driver, llvm::FunctionType::get(b.getVoidTy(), {ptr, ptr, ptr, i64, i64, ptr, ptr}, false));
    b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "", entry));
    b.CreateCall(drive, {plan, entry->getArg(0), entry->getArg(1), entry->getArg(2), entry->getArg(3), entry->getArg(4), entry->getArg(5)});
  }

  graph_view const& g;
  specialisation const& facts_;
  dot_loop const& d;
  dot_recipe const& r;
  dot_cpu const& cpu_;
  emit::emitter& e;
  llvm::IRBuilderBase& b;
  llvm::Module& module_;
  dot_numbers numbers_;
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
                     emit::emitter& e, llvm::Module& module, llvm::Function* entry, llvm::Function* rest, std::int64_t scratch) {
  dot_emitter(g, facts, d, r, cpu, e, module).run(entry, rest, scratch);
}

} // namespace kiln::jit::host
