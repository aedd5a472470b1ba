// Fused multiply-add for targets without the instruction. The library's fmaf and fma are slow calls; f32 is exact in
// f64 arithmetic with a rounding to odd in between, f64 goes through 128-bit integers, one lane at a time.
#include "math.hpp"

#include "float_shape.hpp"
#include "loop.hpp"

#include <llvm/IR/Module.h>

namespace kiln::emit {

using llvm::Value;

namespace {

// The product of two f32 is exact in f64. The sum is rounded to odd, then once more to f32: 53 bits are more than 2 *
// 24 + 2.
Value* narrow_fma(emitter& e, Value* x, Value* y, Value* z) {
  auto& b = e.b;
  auto* wide = e.shaped(b.getDoubleTy(), x->getType());
  auto* product = b.CreateFMul(b.CreateFPExt(x, wide), b.CreateFPExt(y, wide));
  auto* addend = b.CreateFPExt(z, wide);
  auto* sum = b.CreateFAdd(product, addend);
  // The rounding error of the sum, exactly (Knuth's two-sum).
  auto* part = b.CreateFSub(sum, product);
  auto* error = b.CreateFAdd(b.CreateFSub(product, b.CreateFSub(sum, part)), b.CreateFSub(addend, part));
  auto* zero = e.number(wide, 0);
  auto* bits = e.to_bits(sum);
  auto k = [&](uint64_t v) { return e.integer(bits->getType(), v); };
  auto* even = b.CreateICmpEQ(b.CreateAnd(bits, k(1)), k(0));
  // Away from zero if error and sum have the same sign: one up in the bits, else one down. Infinite and NaN sums have a
  // NaN error, for which the ordered comparison is false.
  auto* same_sign = b.CreateICmpSGE(b.CreateXor(e.to_bits(error), bits), k(0));
  auto* other = b.CreateAdd(bits, b.CreateSelect(same_sign, k(1), k(~uint64_t{0})));
  auto* replace = b.CreateAnd(b.CreateFCmpONE(error, zero), even);
  return b.CreateFPTrunc(e.from_bits(b.CreateSelect(replace, other, bits), b.getDoubleTy()), x->getType());
}

// double kiln.fma(double, double, double) in integers; internal to the module, made when first needed.
llvm::Function* wide_fma_function(emitter& outer) {
  auto* caller = outer.b.GetInsertBlock()->getParent();
  llvm::Module& module = *caller->getParent();
  if (auto* known = module.getFunction("kiln.fma")) return known;
  auto& context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type *f64 = b.getDoubleTy(), *i64 = b.getInt64Ty(), *i128 = b.getIntNTy(128);
  auto* function = llvm::Function::Create(llvm::FunctionType::get(f64, {f64, f64, f64}, false),
                                          llvm::GlobalValue::InternalLinkage, "kiln.fma", module);
  detail::inherit_target(*function, *caller);
  auto* plain = llvm::BasicBlock::Create(context, "plain", function);
  auto* exact = llvm::BasicBlock::Create(context, "exact", function);
  Value* in[3] = {function->getArg(0), function->getArg(1), function->getArg(2)};
  auto i = [&](uint64_t v) { return static_cast<Value*>(b.getInt64(v)); };
  auto k = [&](uint64_t v) { return static_cast<Value*>(llvm::ConstantInt::get(i128, v)); };
  auto wide = [&](Value* v) { return b.CreateZExt(v, i128); };

  // Zeros, infinities and NaN: x y is then exact, or infinite, or NaN, and z = 0 leaves the one rounding of x y.
  b.SetInsertPoint(plain);
  Value* bits[3];
  Value* easy = b.getFalse();
  for (int n = 0; n < 3; ++n) {
    bits[n] = b.CreateBitCast(in[n], i64);
    auto* doubled = b.CreateShl(bits[n], 1); // without the sign
    auto* odd_one = b.CreateICmpUGE(b.CreateSub(doubled, i(1)), i((uint64_t{0x7ff} << 53) - 1));
    easy = b.CreateOr(easy, odd_one); // zero wraps around to the top
  }
  auto* simple = llvm::BasicBlock::Create(context, "simple", function);
  b.CreateCondBr(easy, simple, exact);
  b.SetInsertPoint(simple);
  auto* infinity = llvm::ConstantFP::getInfinity(f64);
  auto size_of = [&](Value* v) { return b.CreateIntrinsic(llvm::Intrinsic::fabs, {f64}, {v}); };
  auto is_zero = [&](Value* v) { return b.CreateFCmpOEQ(v, llvm::ConstantFP::get(f64, 0)); };
  auto* product_only = b.CreateFMul(in[0], in[1]);
  auto* no_addend = b.CreateAnd(is_zero(in[2]), b.CreateNot(b.CreateOr(is_zero(in[0]), is_zero(in[1]))));
  // Finite factors may overflow, which must not meet an infinite z of the other sign.
  auto* finite = b.CreateAnd(b.CreateFCmpOLT(size_of(in[0]), infinity), b.CreateFCmpOLT(size_of(in[1]), infinity));
  auto* only_addend = b.CreateAnd(finite, b.CreateFCmpUEQ(size_of(in[2]), infinity));
  auto* sum_of_both = b.CreateFAdd(b.CreateSelect(only_addend, in[2], product_only), in[2]);
  b.CreateRet(b.CreateSelect(no_addend, product_only, sum_of_both));

  // Significands of 53 bits, exponents of their leading bits.
  b.SetInsertPoint(exact);
  Value *significand[3], *exponent[3];
  for (int n = 0; n < 3; ++n) {
    auto* field = b.CreateAnd(b.CreateLShr(bits[n], 52), i(0x7ff));
    auto* stored = b.CreateAnd(bits[n], i((uint64_t{1} << 52) - 1));
    auto* denormal = b.CreateICmpEQ(field, i(0));
    auto* shift = b.CreateSub(b.CreateIntrinsic(llvm::Intrinsic::ctlz, {i64}, {stored, b.getFalse()}), i(11));
    auto* lifted = b.CreateShl(stored, b.CreateAnd(shift, i(63)));
    significand[n] = b.CreateSelect(denormal, lifted, b.CreateOr(stored, i(uint64_t{1} << 52)));
    exponent[n] = b.CreateSelect(denormal, b.CreateSub(i(-1022), shift), b.CreateSub(field, i(1023)));
  }
  // Both terms with the leading bit at 125. The smaller one moves right, bits that fall off are kept as one sticky bit:
  // bits fall off only if the difference of the exponents leaves the leading bit of the sum above 123.
  auto* product = b.CreateMul(wide(significand[0]), wide(significand[1]));
  auto* carried = b.CreateICmpNE(b.CreateLShr(product, 105), k(0));
  auto* p = b.CreateShl(product, b.CreateSelect(carried, k(20), k(21)));
  auto* p_exponent = b.CreateAdd(b.CreateAdd(exponent[0], exponent[1]), b.CreateZExt(carried, i64));
  auto* z = b.CreateShl(wide(significand[2]), 125 - 52);
  auto lowered = [&](Value* v, Value* by) {
    auto* count = b.CreateSelect(b.CreateICmpUGT(by, i(127)), i(127), by);
    auto* moved = b.CreateLShr(v, wide(count));
    auto* lost = b.CreateICmpNE(b.CreateShl(moved, wide(count)), v);
    return b.CreateOr(moved, wide(lost));
  };
  auto* distance = b.CreateSub(p_exponent, exponent[2]);
  auto* p_larger = b.CreateICmpSGE(distance, i(0));
  auto* p_term = b.CreateSelect(p_larger, p, lowered(p, b.CreateNeg(distance)));
  auto* z_term = b.CreateSelect(p_larger, lowered(z, distance), z);
  auto* scale = b.CreateSelect(p_larger, p_exponent, exponent[2]); // exponent of bit 125
  auto* p_sign = b.CreateXor(bits[0], bits[1]);
  auto* p_minus = b.CreateICmpSLT(p_sign, i(0));
  auto* z_minus = b.CreateICmpSLT(bits[2], i(0));
  auto* sum = b.CreateAdd(b.CreateSelect(p_minus, b.CreateNeg(p_term), p_term),
                          b.CreateSelect(z_minus, b.CreateNeg(z_term), z_term));
  auto* minus = b.CreateICmpSLT(sum, k(0));
  auto* size = b.CreateSelect(minus, b.CreateNeg(sum), sum);
  auto* zero = b.CreateICmpEQ(size, k(0));
  // The leading 64 bits, the rest sticky; a denormal result loses more of them; then to nearest even.
  auto* zeros = b.CreateIntrinsic(llvm::Intrinsic::ctlz, {i128}, {size, b.getFalse()});
  auto* aligned = b.CreateShl(size, b.CreateAnd(zeros, k(127)));
  auto* rest = b.CreateICmpNE(b.CreateTrunc(aligned, i64), i(0));
  auto* top = b.CreateOr(b.CreateTrunc(b.CreateLShr(aligned, 64), i64), b.CreateZExt(rest, i64));
  auto* lead = b.CreateAdd(scale, b.CreateSub(i(2), b.CreateTrunc(zeros, i64))); // exponent of the leading bit
  auto* below = b.CreateSub(i(-1022), lead);
  auto* is_denormal = b.CreateICmpSGT(below, i(0));
  auto* extra = b.CreateSelect(is_denormal, b.CreateSelect(b.CreateICmpUGT(below, i(63)), i(63), below), i(0));
  auto* shortened = b.CreateLShr(top, extra);
  auto* dropped = b.CreateICmpNE(b.CreateShl(shortened, extra), top);
  auto* digits = b.CreateOr(shortened, b.CreateZExt(dropped, i64));
  auto* kept = b.CreateLShr(digits, 11);
  auto* fraction = b.CreateAnd(digits, i(0x7ff));
  auto* up = b.CreateICmpUGT(b.CreateAdd(fraction, b.CreateAnd(kept, i(1))), i(0x400));
  auto* rounded = b.CreateAdd(kept, b.CreateZExt(up, i64));
  // `kept` of a normal number has its leading one in the exponent field already.
  auto* field = b.CreateSelect(is_denormal, i(0), b.CreateAdd(lead, i(1022)));
  auto* packed = b.CreateAdd(b.CreateShl(field, 52), rounded);
  packed = b.CreateSelect(b.CreateICmpSGT(lead, i(1023)), i(uint64_t{0x7ff} << 52), packed);
  packed = b.CreateOr(packed, b.CreateShl(b.CreateZExt(minus, i64), 63));
  // The only zero sum here is exact cancellation, which gives +0.
  b.CreateRet(b.CreateBitCast(b.CreateSelect(zero, i(0), packed), f64));
  return function;
}

} // namespace

void detail::inherit_target(llvm::Function& function, const llvm::Function& caller) {
  for (const char* name : {"target-cpu", "target-features", "tune-cpu", "denormal-fp-math", "denormal-fp-math-f32"})
    if (caller.hasFnAttribute(name)) function.addFnAttr(caller.getFnAttribute(name));
  function.addFnAttr(llvm::Attribute::NoUnwind);
  function.addFnAttr(llvm::Attribute::NoInline);
  function.addFnAttr(llvm::Attribute::WillReturn);
  function.setDoesNotAccessMemory(); // but for constant tables
}

Value* fma(emitter& e, Value* x, Value* y, Value* z) {
  const detail::strict_math strict(e);
  auto* type = x->getType();
  if (e.caps.fma) return e.b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, y, z});
  if (type->getScalarType()->isFloatTy()) return narrow_fma(e, x, y, z);
  auto* function = wide_fma_function(e);
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (!vector) return e.b.CreateCall(function, {x, y, z});
  Value* result = llvm::PoisonValue::get(type);
  for (unsigned i = 0; i < vector->getNumElements(); ++i) {
    Value* lane[3];
    for (int n = 0; n < 3; ++n) lane[n] = e.b.CreateExtractElement(n == 0 ? x : n == 1 ? y : z, uint64_t{i});
    result = e.b.CreateInsertElement(result, e.b.CreateCall(function, lane), uint64_t{i});
  }
  return result;
}

} // namespace kiln::emit
