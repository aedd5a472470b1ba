// The largest or least of a thread's elements, NaN last: private to jit/target/simt.
#pragma once

#include "lowerer.hpp"

#include "jit/emit/math.hpp"

namespace kiln::jit::simt {

/// Elements of f16 and bf16 are compared in pairs, as they lie in words, where the target can and the caller has whole words.
class extremum {
public:
  extremum(lowerer& lowering, dtype type, bool maximum, bool whole_words)
      : k(lowering), t(type), max(maximum),
        pairs(whole_words && (t == dtype::f16 || t == dtype::bf16) && k.hw->has_pair_extremum()) {}

  /// Of elements, at least one: a word of two candidates, or one in the compute type.
  Value* of(llvm::ArrayRef<Value*> x) const {
    std::vector<Value*> level;
    if (in_words(x.size()))
      for (std::size_t i = 0; i < x.size(); i += 2) level.push_back(k.pack(x.slice(i, 2), t, k.b.getInt32Ty()));
    else
      for (Value* v : x) level.push_back(widened(v));
    return of_candidates(std::move(level));
  }
  /// Of several results of `of`, all of as many elements.
  Value* of_candidates(std::vector<Value*> level) const {
    while (level.size() > 1) {
      std::vector<Value*> next;
      for (std::size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(step(level[i], level[i + 1]));
      if (level.size() % 2) next.push_back(level.back());
      level = std::move(next);
    }
    return level[0];
  }
  /// A candidate as one number in the compute type.
  Value* number(Value* candidate) const {
    if (!is_word(candidate)) return candidate;
    Value* x[2];
    k.unpack({candidate}, t, x);
    return better(widened(x[0]), widened(x[1]));
  }
  /// In the compute type; an element that is not there is a NaN, or the last of the integers.
  Value* better(Value* x, Value* y) const {
    using namespace llvm;
    Intrinsic::ID const id = is_float(t) ? (max ? Intrinsic::maximumnum : Intrinsic::minimumnum)
                             : is_signed_int(t) ? (max ? Intrinsic::smax : Intrinsic::smin)
                                                : (max ? Intrinsic::umax : Intrinsic::umin);
    return k.b.CreateBinaryIntrinsic(id, x, y);
  }
  Value* widened(Value* x) const { return k.convert_type(x, t, wide()); }
  Value* narrowed(Value* x) const { return k.convert_type(x, wide(), t); }
  /// Whether x, not a NaN, comes before y or is equal to it, in the compute type.
  Value* not_worse(Value* x, Value* y) const {
    using llvm::CmpInst;
    if (is_float(t)) return k.b.CreateFCmp(max ? CmpInst::FCMP_OGE : CmpInst::FCMP_OLE, x, y);
    bool const is_signed = is_signed_int(t);
    return k.b.CreateICmp(max ? (is_signed ? CmpInst::ICMP_SGE : CmpInst::ICMP_UGE) : (is_signed ? CmpInst::ICMP_SLE : CmpInst::ICMP_ULE), x, y);
  }
  Value* equal(Value* x, Value* y) const { return is_float(t) ? k.b.CreateFCmpOEQ(x, y) : k.b.CreateICmpEQ(x, y); }
  /// An element, or what every other comes before; `inside` null: always there.
  Value* inside_or_last(Value* x, Value* inside) const {
    if (!inside) return x;
    auto const bits = static_cast<unsigned>(bits_of(t));
    llvm::APInt last = is_signed_int(t) ? (max ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getSignedMaxValue(bits))
                       : max            ? llvm::APInt::getZero(bits)
                                        : llvm::APInt::getMaxValue(bits);
    if (is_float(t)) last = llvm::APInt::getSignedMaxValue(bits); // a quiet NaN
    return k.b.CreateSelect(inside, x, k.b.CreateBitCast(llvm::ConstantInt::get(k.context, last), x->getType()));
  }

private:
  lowerer& k;
  dtype t;
  bool max, pairs;

  dtype wide() const { return emit::compute_type(t); }
  bool in_words(std::size_t elements) const { return pairs && elements % 2 == 0; }
  bool is_word(Value* x) const { return pairs && x->getType()->isIntegerTy(32); }
  Value* step(Value* x, Value* y) const { return is_word(x) ? k.hw->pair_extremum(max, x, y, t) : better(x, y); }
};

} // namespace kiln::jit::simt
