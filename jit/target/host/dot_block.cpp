// The micro-kernel: a block of accumulators in registers, one row of b and one broadcast of a at a time.
#include "dot_kernel.hpp"

#include "jit/emit/loop.hpp"

#include <llvm/IR/IntrinsicsX86.h>

namespace kiln::jit::host {

using llvm::Type;
using llvm::Value;

namespace {

// Products of pairs of i16, summed in i32 with `sum`.
Value* add_pairs(llvm::IRBuilderBase& b, dot_cpu const& cpu, Value* x, Value* y, Value* sum) {
  auto* type = llvm::cast<llvm::FixedVectorType>(sum->getType());
  auto* halves = llvm::FixedVectorType::get(b.getInt16Ty(), type->getNumElements() * 2);
  x = b.CreateBitCast(x, halves);
  y = b.CreateBitCast(y, halves);
  if (cpu.vnni && type->getNumElements() == 16) return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpdpwssd_512, {sum, x, y});
  const auto id = type->getNumElements() == 16  ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                  : type->getNumElements() == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                                : llvm::Intrinsic::x86_sse2_pmadd_wd;
  return b.CreateAdd(sum, b.CreateIntrinsic(id, {x, y}));
}

} // namespace

llvm::Function* emit_micro_kernel(dot_recipe const& r, dot_cpu const& cpu, llvm::Module& module, emit::capabilities caps,
                                  std::int64_t a_stride, std::int64_t row_elements, int rows, int vectors, int tail) {
  auto& c = module.getContext();
  llvm::IRBuilder<> b(c);
  Type *ptr = b.getPtrTy(), *i64 = b.getInt64Ty();
  Type* element = is_int(r.compute) ? static_cast<Type*>(b.getInt32Ty())
                                    : r.compute == dtype::f64 ? b.getDoubleTy() : b.getFloatTy();
  auto* vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(r.lanes));
  const std::int64_t bytes = r.element_bytes;
  auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {ptr, ptr, ptr, i64, ptr, i64}, false),
                                   llvm::Function::InternalLinkage, "micro", module);
  f->addFnAttr(llvm::Attribute::NoInline);
  for (unsigned i = 0; i < 2; ++i) f->addParamAttr(i, llvm::Attribute::NoAlias); // old sums are mostly where the new ones go
  b.SetInsertPoint(llvm::BasicBlock::Create(c, "", f));
  Value *a0 = f->getArg(0), *b0 = f->getArg(1), *acc = f->getArg(2), *count = f->getArg(3), *old_row = f->getArg(4), *old_stride = f->getArg(5);
  const auto offset = [&](Value* p, std::int64_t by) { return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), p, static_cast<std::uint64_t>(by)); };
  const std::int64_t to_row = (r.a_by_k ? 1 : a_stride) * bytes, to_k = (r.a_by_k ? a_stride : 1) * bytes;
  const std::int64_t b_row = r.nr() * bytes; // strips are nr wide even where fewer vectors of them are used

  emit::values carried{a0, b0};
  for (int i = 0; i < rows * vectors; ++i) carried.push_back(llvm::Constant::getNullValue(vector));
  carried = emit::loop(
      b, b.getInt64(0), count, b.getInt64(static_cast<std::uint64_t>(r.unroll)), carried,
      [&](Value*, const emit::values& in) {
        emit::values x = in;
        for (int u = 0; u < r.unroll; ++u) {
          std::vector<Value*> row;
          for (int v = 0; v < vectors; ++v)
            row.push_back(b.CreateAlignedLoad(vector, offset(in[1], u * b_row + v * r.lanes * bytes),
                                              llvm::Align(static_cast<std::uint64_t>(r.lanes * bytes))));
          for (int i = 0; i < rows; ++i) {
            auto* one = b.CreateAlignedLoad(element, offset(in[0], u * to_k + i * to_row), llvm::Align(static_cast<std::uint64_t>(bytes)));
            auto* all = b.CreateVectorSplat(static_cast<unsigned>(r.lanes), one);
            for (int v = 0; v < vectors; ++v) {
              Value*& sum = x[static_cast<std::size_t>(2 + i * vectors + v)];
              if (r.pairs) sum = add_pairs(b, cpu, all, row[static_cast<std::size_t>(v)], sum);
              else if (is_int(r.compute)) sum = b.CreateAdd(sum, b.CreateMul(all, row[static_cast<std::size_t>(v)]));
              else if (caps.fma) sum = b.CreateIntrinsic(llvm::Intrinsic::fma, {vector}, {all, row[static_cast<std::size_t>(v)], sum});
              else sum = b.CreateFAdd(sum, b.CreateFMul(all, row[static_cast<std::size_t>(v)]));
            }
          }
        }
        x[0] = offset(in[0], r.unroll * to_k);
        x[1] = offset(in[1], r.unroll * b_row);
        return x;
      },
      {.at_least_once = true});

  const auto align = llvm::Align(static_cast<std::uint64_t>(std::min<std::int64_t>(
      r.lanes * bytes, (row_elements * bytes) & -(row_elements * bytes))));
  std::vector<llvm::Constant*> bits;
  for (int l = 0; l < r.lanes; ++l) bits.push_back(b.getInt1(l < tail));
  auto* mask = llvm::ConstantVector::get(bits);
  for (int i = 0; i < rows; ++i) {
    if (i > 0) old_row = b.CreateInBoundsGEP(b.getInt8Ty(), old_row, old_stride);
    for (int v = 0; v < vectors; ++v) {
      Value *to = offset(acc, (i * row_elements + v * r.lanes) * bytes), *from = offset(old_row, v * r.lanes * bytes);
      Value* x = carried[static_cast<std::size_t>(2 + i * vectors + v)];
      const bool part = tail != 0 && v + 1 == vectors;
      Value* old = part ? static_cast<Value*>(b.CreateMaskedLoad(vector, from, align, mask, llvm::Constant::getNullValue(vector)))
                        : b.CreateAlignedLoad(vector, from, align);
      x = is_int(r.compute) ? b.CreateAdd(x, old) : b.CreateFAdd(x, old);
      if (part) b.CreateMaskedStore(x, to, align, mask);
      else b.CreateAlignedStore(x, to, align);
    }
  }
  b.CreateRetVoid();
  return f;
}

} // namespace kiln::jit::host
