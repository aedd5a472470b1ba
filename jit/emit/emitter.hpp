// What every helper of jit/emit works on: an IRBuilder, what the target's instruction set offers, and small
// shape-generic building blocks. All helpers take scalars or fixed vectors of any width and return the same shape.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace llvm {
class TargetMachine;
}

namespace kiln::emit {

/// What the target can do in instructions. Where a member is false the helpers emit arithmetic instead; no helper ever
/// leaves a call to a library function behind.
struct capabilities {
  bool fma = false;          // llvm.fma is an instruction for f32 and f64
  bool rounding = false;     // floor, ceil, trunc, roundeven are instructions
  bool half_convert = false; // f16 <-> f32 are instructions, exact with denormals
  bool scale512 = false;     // x86 vscalefps/pd on 512-bit vectors
  bool scale_any = false;    // ... and on 128 and 256 bits

  /// Reads the subtarget of a host target machine (x86-64 or AArch64). Other architectures get the emulations.
  static capabilities host(const llvm::TargetMachine& machine);
  /// NVPTX and AMDGPU: fma, rounding and half conversions are there on every supported generation.
  static constexpr capabilities gpu() { return {.fma = true, .rounding = true, .half_convert = true}; }
};

/// The context of one emission. Fast-math flags of the builder are ignored by the helpers: splitting constants and
/// error terms must not be reassociated.
struct emitter {
  llvm::IRBuilderBase& b;
  capabilities caps;

  /// `element` in the shape of `like`: itself for a scalar, a vector of as many elements otherwise.
  static llvm::Type* shaped(llvm::Type* element, const llvm::Type* like) {
    if (auto* v = llvm::dyn_cast<llvm::VectorType>(like)) return llvm::VectorType::get(element, v->getElementCount());
    return element;
  }
  /// An integer type as wide as the elements of `like`, in its shape.
  llvm::Type* bits_type(const llvm::Type* like) const { return shaped(b.getIntNTy(like->getScalarSizeInBits()), like); }
  llvm::Type* int_type(unsigned width, const llvm::Type* like) const { return shaped(b.getIntNTy(width), like); }

  llvm::Value* number(const llvm::Type* type, double value) const {
    return llvm::ConstantFP::get(const_cast<llvm::Type*>(type), value);
  }
  llvm::Value* integer(const llvm::Type* type, uint64_t value) const {
    auto* t = const_cast<llvm::Type*>(type);
    return llvm::ConstantInt::get(t, llvm::APInt(t->getScalarSizeInBits(), value, false, true));
  }

  llvm::Value* to_bits(llvm::Value* x) const { return b.CreateBitCast(x, bits_type(x->getType())); }
  llvm::Value* from_bits(llvm::Value* x, llvm::Type* element) const {
    return b.CreateBitCast(x, shaped(element, x->getType()));
  }

  /// x * y + z: one rounding where the target has fma, two otherwise. For error terms that allow either.
  llvm::Value* mad(llvm::Value* x, llvm::Value* y, llvm::Value* z) const {
    if (caps.fma) return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
    return b.CreateFAdd(b.CreateFMul(x, y), z);
  }
  /// coefficients[0] + coefficients[1] x + ...
  llvm::Value* polynomial(llvm::Value* x, llvm::ArrayRef<double> coefficients) const {
    llvm::Value* sum = number(x->getType(), coefficients.back());
    for (size_t i = coefficients.size() - 1; i-- > 0;) sum = mad(sum, x, number(x->getType(), coefficients[i]));
    return sum;
  }
  llvm::Value* magnitude(llvm::Value* x) const { return b.CreateIntrinsic(llvm::Intrinsic::fabs, {x->getType()}, {x}); }
  llvm::Value* with_sign_of(llvm::Value* value, llvm::Value* sign) const {
    return b.CreateIntrinsic(llvm::Intrinsic::copysign, {value->getType()}, {value, sign});
  }
  /// min and max against a constant, one instruction each on x86; NaN stays NaN.
  llvm::Value* at_least(llvm::Value* x, double low) const {
    auto* k = number(x->getType(), low);
    return b.CreateSelect(b.CreateFCmpOLT(x, k), k, x);
  }
  llvm::Value* at_most(llvm::Value* x, double high) const {
    auto* k = number(x->getType(), high);
    return b.CreateSelect(b.CreateFCmpOGT(x, k), k, x);
  }
};

namespace detail {

/// Clears the builder's fast-math flags for the life of a helper.
struct strict_math {
  explicit strict_math(emitter& e) : guard(e.b) { e.b.clearFastMathFlags(); }
  llvm::IRBuilderBase::FastMathFlagGuard guard;
};

} // namespace detail
} // namespace kiln::emit
