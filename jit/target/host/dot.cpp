// dot: operands are packed into panels of the accumulator's type (conversions happen there), then a register-blocked
// kernel runs over blocks of the result.
//
// A loop over k whose body is one dot may be replaced as a whole by a macro-kernel that packs larger panels: the place
// is writer::run, where the steps of a plan are walked; panels, block sizes and the kernel are in dot_micro.hpp.
#include "dot_micro.hpp"
#include "writer.hpp"

#include <bit>

namespace kiln::jit::host {

llvm::Function* micro_kernel(llvm::Module& m, emit::capabilities caps, llvm::Type* element, micro_block const& block) {
  std::string name = "micro." + std::to_string(block.rows);
  for (unsigned w : block.vectors) name += "x" + std::to_string(w);
  name += element->isFloatTy() ? ".f32" : element->isDoubleTy() ? ".f64" : ".i32";
  if (auto* f = m.getFunction(name)) return f;
  llvm::LLVMContext& c = m.getContext();
  llvm::IRBuilder<> b(c);
  emit::emitter e{b, caps};
  Type *ptr = b.getPtrTy(), *i64 = b.getInt64Ty();
  auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {ptr, i64, ptr, ptr, i64, i64}, false),
                                   llvm::Function::InternalLinkage, name, m);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  for (unsigned i : {0u, 2u, 3u}) f->addParamAttr(i, llvm::Attribute::NoAlias);
  Value *a = f->getArg(0), *a_stride = f->getArg(1), *panel = f->getArg(2), *out = f->getArg(3),
        *c_stride = f->getArg(4), *k = f->getArg(5);
  b.SetInsertPoint(llvm::BasicBlock::Create(c, "", f));
  const auto size = static_cast<std::uint64_t>(element->getScalarSizeInBits() / 8);
  auto vector = [&](unsigned w) -> Type* { return w == 1 ? element : llvm::FixedVectorType::get(element, w); };
  auto at = [&](Value* p, Value* i) { return b.CreateGEP(element, p, i); };
  auto plus = [&](Value* p, std::uint64_t i) { return i ? b.CreateConstGEP1_64(element, p, i) : p; };
  const llvm::Align align(size);
  std::vector<Value*> rows, c_rows;
  for (unsigned r = 0; r < block.rows; ++r) {
    rows.push_back(r == 0 ? a : at(rows.back(), a_stride));
    c_rows.push_back(r == 0 ? out : at(c_rows.back(), c_stride));
  }
  emit::values start;
  for (unsigned r = 0; r < block.rows; ++r) {
    unsigned column = 0;
    for (unsigned w : block.vectors) {
      start.push_back(b.CreateAlignedLoad(vector(w), plus(c_rows[r], column), align));
      column += w;
    }
  }
  const unsigned columns = block.columns();
  auto step = [&](Value* i, emit::values acc) { // one k
    std::vector<Value*> line;
    Value* from = at(panel, b.CreateMul(i, b.getInt64(columns)));
    unsigned column = 0;
    for (unsigned w : block.vectors) {
      line.push_back(b.CreateAlignedLoad(vector(w), plus(from, column), align));
      column += w;
    }
    std::size_t next = 0;
    for (unsigned r = 0; r < block.rows; ++r) {
      Value* x = b.CreateAlignedLoad(element, at(rows[r], i), align);
      for (std::size_t v = 0; v < line.size(); ++v, ++next) {
        const unsigned w = block.vectors[v];
        Value* many = w == 1 ? x : b.CreateVectorSplat(w, x);
        acc[next] = element->isIntegerTy() ? b.CreateAdd(acc[next], b.CreateMul(many, line[v]))
                                           : e.mad(many, line[v], acc[next]);
      }
    }
    return acc;
  };
  // Two at a time, and the odd one.
  Value* even = b.CreateAnd(k, b.getInt64(~std::uint64_t{1}));
  emit::values acc = emit::loop(b, b.getInt64(0), even, b.getInt64(2), start, [&](Value* i, emit::values const& in) {
    return step(b.CreateAdd(i, b.getInt64(1)), step(i, in));
  });
  acc = emit::branch(
      b, b.CreateICmpNE(even, k), [&] { return step(even, acc); }, [&] { return acc; });
  std::size_t next = 0;
  for (unsigned r = 0; r < block.rows; ++r) {
    unsigned column = 0;
    for (unsigned w : block.vectors) {
      b.CreateAlignedStore(acc[next++], plus(c_rows[r], column), align);
      column += w;
    }
  }
  b.CreateRetVoid();
  return f;
}

void writer::emit_dot(int n) {
  const int lhs = g.operand(n, 0), rhs = g.operand(n, 1), start = g.operand(n, 2);
  const std::int64_t m = g.shape_of(lhs).extent[0], k = g.shape_of(lhs).extent[1], columns = g.shape_of(rhs).extent[1];
  const dtype t = g[n].type;
  Type *element = carrier(t), *i64 = b.getInt64Ty();
  const std::int64_t size = bytes_of(t);
  const int in_place = plan_.in_place[static_cast<std::size_t>(n)];
  const int sl = plan_.slice_of[static_cast<std::size_t>(in_place >= 0 ? in_place : n)];
  const shape& s = g.shape_of(n);
  const unsigned vector_lanes = std::max(1u, static_cast<unsigned>(cpu_.vector_bits / bits_of(t)));

  if (in_place < 0) { // the result starts as the accumulator, or as zeros
    coordinates x(2, number(0));
    for_each_outer(s, {1}, x, [&] {
      for_strips(columns, lanes_for(bits_of(t), columns), 1, [&](llvm::ArrayRef<strip> strips) {
        width_ = strips[0].width;
        x[1] = strips[0].at;
        write_slice(sl, s, x, start >= 0 ? pull(start, x) : of(llvm::Constant::getNullValue(element), 0, false));
      });
      width_ = 1;
    });
  }

  // Panels.
  const micro_block block = full_block(cpu_.vector_bits, vector_lanes);
  const std::int64_t wide = block.columns(), panels = columns / wide, rest = columns % wide;
  std::vector<unsigned> tail;
  for (std::int64_t left = rest; left > 0;) {
    const auto w = std::min<std::int64_t>(vector_lanes,
                                          static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(left))));
    tail.push_back(static_cast<unsigned>(w));
    left -= w;
  }
  const std::int64_t a_stride = a_panel_stride(k);
  const std::int64_t a_bytes = (m * a_stride * size + 63) / 64 * 64;
  const std::int64_t at = plan_.shared_scratch(dot_scratch_bytes(g, n));
  auto scratch = [&](std::int64_t offset) {
    return on(0, [&] { return b.CreateConstGEP1_64(b.getInt8Ty(), arena_, static_cast<std::uint64_t>(at + offset)); });
  };
  Value *a_panel = scratch(0), *b_panel = scratch(a_bytes);
  auto element_of = [&](int operand, coordinates const& x) {
    const lanes v = g[operand].kind == node_kind::view ? read(view_address(operand, x), g[operand].type, false, true)
                                                       : pull(operand, x);
    const dtype from = g[operand].type;
    Value* w = vector_of(v, carrier(from));
    return from == t ? w : emit::convert(e, w, from, t);
  };
  auto put = [&](Value* panel, lanes offset, Value* v) { // offset in elements
    address a;
    a.base = panel;
    a.align = static_cast<int>(size);
    a.offset = scaled(offset, size, i64);
    a.offset.step = 0;
    b.CreateAlignedStore(v, pointer_of(a), llvm::Align(static_cast<std::uint64_t>(size)));
  };
  {
    coordinates x(2, number(0));
    for_each_outer(g.shape_of(lhs), {1}, x, [&] {
      for_strips(k, lanes_for(bits_of(t), k), 1, [&](llvm::ArrayRef<strip> strips) {
        width_ = strips[0].width;
        x[1] = strips[0].at;
        put(a_panel, sum(scaled(x[0], a_stride, i64), x[1], i64), element_of(lhs, x));
      });
      width_ = 1;
    });
  }
  auto pack_columns = [&](lanes const& first, lanes const& base, std::vector<unsigned> const& vectors,
                          std::int64_t line) {
    coordinates x(2, number(0));
    for_each_outer(g.shape_of(rhs), {1}, x, [&] {
      std::int64_t column = 0;
      for (unsigned w : vectors) {
        width_ = w;
        x[1] = sum(first, number(column), i64);
        x[1].step = w > 1 ? 1 : 0;
        put(b_panel, sum(sum(base, scaled(x[0], line, i64), i64), number(column), i64), element_of(rhs, x));
        column += w;
      }
      width_ = 1;
    });
  };
  auto each_panel = [&](llvm::function_ref<void(lanes const&)> body) {
    if (panels == 0) return;
    if (panels == 1) return body(number(0));
    const lanes p = open_loop(panels);
    body(p);
    close_loop();
  };
  each_panel(
      [&](lanes const& p) { pack_columns(scaled(p, wide, i64), scaled(p, wide * k, i64), block.vectors, wide); });
  if (rest > 0) pack_columns(number(panels * wide), number(panels * wide * k), tail, rest);

  // Blocks.
  auto product = [&](lanes const& row, lanes const& column, lanes const& panel, micro_block const& shape_of_block) {
    auto* f = micro_kernel(out_.module, e.caps, element, shape_of_block);
    auto pointer = [&](Value* base, lanes const& elements) {
      address a;
      a.base = base;
      a.offset = scaled(elements, size, i64);
      return pointer_of(a);
    };
    const std::int64_t offset = plan_.slices[static_cast<std::size_t>(sl)].offset;
    Value* out = on(0, [&] { return b.CreateConstGEP1_64(b.getInt8Ty(), arena_, static_cast<std::uint64_t>(offset)); });
    Value* a = pointer(a_panel, scaled(row, a_stride, i64));
    Value* bp = pointer(b_panel, panel);
    Value* cp = pointer(out, sum(scaled(row, columns, i64), column, i64));
    b.CreateCall(f, {a, b.getInt64(static_cast<std::uint64_t>(a_stride)), bp, cp,
                     b.getInt64(static_cast<std::uint64_t>(columns)), b.getInt64(static_cast<std::uint64_t>(k))});
  };
  auto down = [&](lanes const& column, lanes const& panel, std::vector<unsigned> const& vectors) {
    const std::int64_t full = m / block.rows;
    if (full > 0) {
      const lanes r = full > 1 ? open_loop(full) : number(0);
      product(scaled(r, block.rows, i64), column, panel, {block.rows, vectors});
      if (full > 1) close_loop();
    }
    if (const auto left = static_cast<unsigned>(m % block.rows))
      product(number(full * block.rows), column, panel, {left, vectors});
  };
  each_panel([&](lanes const& p) { down(scaled(p, wide, i64), scaled(p, wide * k, i64), block.vectors); });
  if (rest > 0) down(number(panels * wide), number(panels * wide * k), tail);
}

} // namespace kiln::jit::host
