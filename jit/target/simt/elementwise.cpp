// What each element-wise operation does to one element, by docs/numerics.md. f16 and bf16 compute in f32 and round
// once.
#include "lowerings.hpp"

#include "jit/emit/integer.hpp"
#include "jit/emit/math.hpp"
#include "jit/emit/philox.hpp"

namespace kiln::jit::simt {

namespace {

/// Functions that are a score of instructions without a branch.
constexpr bool is_long(op o) {
  return o == op::exp || o == op::exp2 || o == op::log || o == op::log2 || o == op::tanh || o == op::erf;
}

/// One element of one operation: its types and what may be assumed of its arithmetic.
struct element_context {
  lowerer& k;
  int node;
  emit::emitter e;
  dtype type; ///< of the first operand (of the values, for where)
  bool fast;

  llvm::IRBuilder<>& b() const { return k.b; }
  bool is_float() const { return kiln::is_float(type); }
  bool is_signed() const { return is_signed_int(type); }
  dtype wide() const { return emit::compute_type(type); }
  Value* widen(Value* x) const { return k.convert_type(x, type, wide()); }
  Value* narrow(Value* x) const { return k.convert_type(x, wide(), type); }
  nan_mode nan() const { return static_cast<nan_mode>(k.g.attribute(node, 0)); }

  /// A floating operation in the compute type, rounded to the element type.
  template <class F, class... X> Value* floating(F f, X... x) const {
    llvm::IRBuilderBase::FastMathFlagGuard guard(b());
    llvm::FastMathFlags flags;
    if (k.g.attrs.contract) flags.setAllowContract();
    b().setFastMathFlags(flags);
    return narrow(f(widen(x)...));
  }
  /// A function with a fast form: the target's instruction where that was asked for and is in f32.
  template <class F> Value* function(op code, F f, Value* x) const {
    return floating(
        [&](Value* v) {
          if (fast && wide() == dtype::f32)
            if (Value* r = k.hw->fast(code, v, nullptr)) return r;
          auto const arithmetic = [&](Value* a) {
            emit::emitter em = e;
            return f(em, a);
          };
          if (is_long(code))
            if (Value* r = k.hw->statement(code, v, arithmetic)) return r;
          return arithmetic(v);
        },
        x);
  }
  Value* compare(llvm::CmpInst::Predicate f, llvm::CmpInst::Predicate s, llvm::CmpInst::Predicate u, Value* x,
                 Value* y) const {
    if (is_float()) return b().CreateFCmp(f, widen(x), widen(y));
    return b().CreateICmp(is_signed() ? s : u, x, y);
  }
  Value* extremum(bool maximum, Value* x, Value* y) const {
    using namespace llvm;
    if (!is_float())
      return b().CreateBinaryIntrinsic(maximum ? (is_signed() ? Intrinsic::smax : Intrinsic::umax)
                                               : (is_signed() ? Intrinsic::smin : Intrinsic::umin),
                                       x, y);
    bool const ignore = nan() == nan_mode::ignore;
    return floating(
        [&](Value* p, Value* q) {
          return b().CreateBinaryIntrinsic(maximum ? (ignore ? Intrinsic::maximumnum : Intrinsic::maximum)
                                                   : (ignore ? Intrinsic::minimumnum : Intrinsic::minimum),
                                           p, q);
        },
        x, y);
  }
};

template <op O> struct element; // a hole is incomplete

#define KILN_ELEMENT(name, body)                                                                                       \
  template <> struct element<op::name> {                                                                               \
    static Value* emit(element_context& c, [[maybe_unused]] Value* const* x) {                                         \
      [[maybe_unused]] auto& b = c.b();                                                                                \
      body                                                                                                             \
    }                                                                                                                  \
  };
#define KILN_FUNCTION(name)                                                                                            \
  KILN_ELEMENT(name, return c.function(                                                                                \
                         op::name, [](emit::emitter& e, Value* v) { return emit::name(e, v); }, x[0]);)

KILN_ELEMENT(neg, {
  if (!c.is_float()) return b.CreateNeg(x[0]);
  if (!x[0]->getType()->isFloatingPointTy()) // 16-bit formats are carried as bits
    return b.CreateXor(x[0], llvm::ConstantInt::get(x[0]->getType(), std::uint64_t{1} << (bits_of(c.type) - 1)));
  return b.CreateFNeg(x[0]);
})
KILN_ELEMENT(bit_not, return b.CreateNot(x[0]);)
KILN_ELEMENT(abs, {
  if (is_unsigned_int(c.type)) return x[0];
  if (!c.is_float()) return emit::absolute(c.e, x[0]);
  if (!x[0]->getType()->isFloatingPointTy())
    return b.CreateAnd(x[0], llvm::ConstantInt::get(x[0]->getType(), (std::uint64_t{1} << (bits_of(c.type) - 1)) - 1));
  return c.e.magnitude(x[0]);
})
KILN_FUNCTION(exp)
KILN_FUNCTION(exp2)
KILN_FUNCTION(log)
KILN_FUNCTION(log2)
KILN_FUNCTION(sqrt)
KILN_FUNCTION(rsqrt)
KILN_FUNCTION(sin)
KILN_FUNCTION(cos)
KILN_FUNCTION(tanh)
KILN_FUNCTION(erf)
KILN_ELEMENT(floor, return c.floating([&](Value* v) { return emit::floor(c.e, v); }, x[0]);)
KILN_ELEMENT(ceil, return c.floating([&](Value* v) { return emit::ceil(c.e, v); }, x[0]);)
KILN_ELEMENT(round, return c.floating([&](Value* v) { return emit::round(c.e, v); }, x[0]);)
KILN_ELEMENT(isnan, {
  Value* v = c.k.convert_type(x[0], c.type, emit::compute_type(c.type));
  return b.CreateFCmpUNO(v, v);
})
KILN_ELEMENT(cast, return c.k.convert_type(x[0], c.type, c.k.type(c.node));)
KILN_ELEMENT(bitcast, return b.CreateBitCast(x[0], c.k.carrier(c.k.type(c.node)));)
KILN_ELEMENT(add, {
  if (!c.is_float()) return b.CreateAdd(x[0], x[1]);
  return c.floating([&](Value* p, Value* q) { return b.CreateFAdd(p, q); }, x[0], x[1]);
})
KILN_ELEMENT(sub, {
  if (!c.is_float()) return b.CreateSub(x[0], x[1]);
  return c.floating([&](Value* p, Value* q) { return b.CreateFSub(p, q); }, x[0], x[1]);
})
KILN_ELEMENT(mul, {
  if (!c.is_float()) return b.CreateMul(x[0], x[1]);
  return c.floating([&](Value* p, Value* q) { return b.CreateFMul(p, q); }, x[0], x[1]);
})
KILN_ELEMENT(div, {
  if (!c.is_float()) return emit::divide(c.e, x[0], x[1], c.is_signed());
  return c.floating(
      [&](Value* p, Value* q) {
        if (c.fast && c.wide() == dtype::f32)
          if (Value* r = c.k.hw->fast(op::div, p, q)) return r;
        return b.CreateFDiv(p, q);
      },
      x[0], x[1]);
})
KILN_ELEMENT(rem, return emit::remainder(c.e, x[0], x[1], c.is_signed());)
KILN_ELEMENT(bit_and, return b.CreateAnd(x[0], x[1]);)
KILN_ELEMENT(bit_or, return b.CreateOr(x[0], x[1]);)
KILN_ELEMENT(bit_xor, return b.CreateXor(x[0], x[1]);)
KILN_ELEMENT(shl, return emit::shift_left(c.e, x[0], x[1]);)
KILN_ELEMENT(shr, return emit::shift_right(c.e, x[0], x[1], c.is_signed());)
KILN_ELEMENT(min, return c.extremum(false, x[0], x[1]);)
KILN_ELEMENT(max, return c.extremum(true, x[0], x[1]);)
KILN_ELEMENT(eq, return c.compare(llvm::CmpInst::FCMP_OEQ, llvm::CmpInst::ICMP_EQ, llvm::CmpInst::ICMP_EQ, x[0], x[1]);)
KILN_ELEMENT(ne, return c.compare(llvm::CmpInst::FCMP_UNE, llvm::CmpInst::ICMP_NE, llvm::CmpInst::ICMP_NE, x[0], x[1]);)
KILN_ELEMENT(lt,
             return c.compare(llvm::CmpInst::FCMP_OLT, llvm::CmpInst::ICMP_SLT, llvm::CmpInst::ICMP_ULT, x[0], x[1]);)
KILN_ELEMENT(le,
             return c.compare(llvm::CmpInst::FCMP_OLE, llvm::CmpInst::ICMP_SLE, llvm::CmpInst::ICMP_ULE, x[0], x[1]);)
KILN_ELEMENT(gt,
             return c.compare(llvm::CmpInst::FCMP_OGT, llvm::CmpInst::ICMP_SGT, llvm::CmpInst::ICMP_UGT, x[0], x[1]);)
KILN_ELEMENT(ge,
             return c.compare(llvm::CmpInst::FCMP_OGE, llvm::CmpInst::ICMP_SGE, llvm::CmpInst::ICMP_UGE, x[0], x[1]);)
KILN_ELEMENT(fma, {
  if (!c.is_float()) return b.CreateAdd(b.CreateMul(x[0], x[1]), x[2]);
  return c.floating([&](Value* p, Value* q, Value* r) { return emit::fma(c.e, p, q, r); }, x[0], x[1], x[2]);
})
KILN_ELEMENT(where, return b.CreateSelect(x[0], x[1], x[2]);)
KILN_ELEMENT(philox, return emit::philox(c.e, x[0], x[1], x[2], static_cast<int>(c.k.g.attribute(c.node, 0)));)
KILN_ELEMENT(multiple_of, return x[0];)
KILN_ELEMENT(max_contiguous, return x[0];)
KILN_ELEMENT(require_layout, return x[0];)
KILN_ELEMENT(release_layout, return x[0];)
KILN_ELEMENT(ptr_add, c.k.fail(c.node, "internal: pointers are added in element_wise");)
#undef KILN_FUNCTION
#undef KILN_ELEMENT

using element_function = Value* (*)(element_context&, Value* const*);
template <op O> consteval element_function entry() {
  if constexpr (has(O, trait::elementwise)) return &element<O>::emit;
  else return nullptr;
}
constexpr element_function table[] = {
#define KILN_OP(name, least, most, traits, attributes, summary) entry<op::name>(),
#include <kiln/graph/ops.def>
};

bool has_fast_form(op o) {
  return o == op::exp || o == op::exp2 || o == op::log || o == op::log2 || o == op::sqrt || o == op::rsqrt ||
         o == op::sin || o == op::cos || o == op::tanh || o == op::erf || o == op::div;
}

} // namespace

Value* lowerer::element(int node, llvm::ArrayRef<Value*> x) {
  op const code = g[node].code;
  bool const fast = has_fast_form(code) && (g.attrs.fast_math || g.attribute(node, 0) != 0);
  int const typed = code == op::where ? 1 : 0;
  element_context c{*this, node, emitter(), type(g.operand(node, typed)), fast};
  return table[static_cast<int>(code)](c, x.data());
}

Value* lowerer::convert_type(Value* x, dtype from, dtype to) {
  if (from == to) return x;
  if (Value* r = hw->convert(x, from, to)) return r;
  if (from == dtype::bf16 && to == dtype::f32)
    if (half const h = half_of(x); h.word) // without taking the word apart first
      return b.CreateBitCast(h.high ? b.CreateAnd(h.word, i32(0xffff0000)) : b.CreateShl(h.word, 16), b.getFloatTy());
  emit::emitter e = emitter();
  return emit::convert(e, x, from, to);
}

} // namespace kiln::jit::simt
