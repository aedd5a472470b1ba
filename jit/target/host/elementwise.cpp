// One element-wise operation on scalars or vectors, exactly as docs/numerics.md says.
#include "writer.hpp"

#include "jit/emit/integer.hpp"
#include "jit/emit/math.hpp"
#include "jit/emit/minmax.hpp"
#include "jit/emit/philox.hpp"

namespace kiln::jit::host {

namespace {

using unary_function = Value* (*)(emit::emitter&, Value*);

unary_function function_of(op o) {
  switch (o) {
  case op::exp: return emit::exp;
  case op::exp2: return emit::exp2;
  case op::log: return emit::log;
  case op::log2: return emit::log2;
  case op::sqrt: return emit::sqrt;
  case op::rsqrt: return emit::rsqrt;
  case op::sin: return emit::sin;
  case op::cos: return emit::cos;
  case op::tanh: return emit::tanh;
  case op::erf: return emit::erf;
  case op::floor: return emit::floor;
  case op::ceil: return emit::ceil;
  case op::round: return emit::round;
  default: return nullptr;
  }
}

llvm::CmpInst::Predicate predicate(op o, dtype t) {
  using llvm::CmpInst;
  const bool u = !is_signed_int(t);
  if (is_float(t)) switch (o) {
    case op::eq: return CmpInst::FCMP_OEQ;
    case op::ne: return CmpInst::FCMP_UNE;
    case op::lt: return CmpInst::FCMP_OLT;
    case op::le: return CmpInst::FCMP_OLE;
    case op::gt: return CmpInst::FCMP_OGT;
    default: return CmpInst::FCMP_OGE;
    }
  switch (o) {
  case op::eq: return CmpInst::ICMP_EQ;
  case op::ne: return CmpInst::ICMP_NE;
  case op::lt: return u ? CmpInst::ICMP_ULT : CmpInst::ICMP_SLT;
  case op::le: return u ? CmpInst::ICMP_ULE : CmpInst::ICMP_SLE;
  case op::gt: return u ? CmpInst::ICMP_UGT : CmpInst::ICMP_SGT;
  default: return u ? CmpInst::ICMP_UGE : CmpInst::ICMP_SGE;
  }
}

} // namespace

Value* writer::apply(int n, llvm::ArrayRef<Value*> x) {
  const node& d = g[n];
  const dtype from = g[g.operand(n, 0)].type, t = d.type; // of the operands, of the result
  const bool real = is_float(from), narrow = real && bits_of(from) < 32;
  if (const unary_function f = function_of(d.code))
    return narrow ? narrow_float(f(e, widen_float(x[0], from)), t) : f(e, x[0]);
  auto arithmetic = [&](llvm::function_ref<Value*(Value*, Value*)> f) {
    return narrow ? narrow_float(f(widen_float(x[0], from), widen_float(x[1], from)), t) : f(x[0], x[1]);
  };
  switch (d.code) {
  case op::multiple_of:
  case op::require_layout:
  case op::release_layout:
  case op::max_contiguous: return x[0];
  case op::neg:
    if (!real) return b.CreateNeg(x[0]);
    if (narrow) return b.CreateXor(x[0], e.integer(x[0]->getType(), std::uint64_t{1} << (bits_of(t) - 1)));
    return b.CreateFNeg(x[0]);
  case op::bit_not: return b.CreateNot(x[0]);
  case op::abs:
    if (!real) return is_signed_int(t) ? emit::absolute(e, x[0]) : x[0];
    if (narrow) return b.CreateAnd(x[0], e.integer(x[0]->getType(), (std::uint64_t{1} << (bits_of(t) - 1)) - 1));
    return e.magnitude(x[0]);
  case op::isnan: {
    Value* v = narrow ? widen_float(x[0], from) : x[0];
    return b.CreateFCmpUNO(v, v);
  }
  case op::cast: return emit::convert(e, x[0], from, t);
  case op::bitcast: return b.CreateBitCast(x[0], emit::emitter::shaped(carrier(t), x[0]->getType()));
  case op::add: return arithmetic([&](Value* p, Value* q) { return real ? b.CreateFAdd(p, q) : b.CreateAdd(p, q); });
  case op::sub: return arithmetic([&](Value* p, Value* q) { return real ? b.CreateFSub(p, q) : b.CreateSub(p, q); });
  case op::mul: return arithmetic([&](Value* p, Value* q) { return real ? b.CreateFMul(p, q) : b.CreateMul(p, q); });
  case op::div:
    if (!real) return emit::divide(e, x[0], x[1], is_signed_int(t));
    return arithmetic([&](Value* p, Value* q) { return b.CreateFDiv(p, q); });
  case op::rem: return emit::remainder(e, x[0], x[1], is_signed_int(t));
  case op::bit_and: return b.CreateAnd(x[0], x[1]);
  case op::bit_or: return b.CreateOr(x[0], x[1]);
  case op::bit_xor: return b.CreateXor(x[0], x[1]);
  case op::shl: return emit::shift_left(e, x[0], x[1]);
  case op::shr: return emit::shift_right(e, x[0], x[1], is_signed_int(t));
  case op::min:
  case op::max: {
    const auto which = d.code == op::max ? emit::extremum::maximum : emit::extremum::minimum;
    if (!real) return emit::int_extremum(e, which, is_signed_int(t), x[0], x[1]);
    const auto mode = static_cast<nan_mode>(g.attribute(n, 0));
    return arithmetic([&](Value* p, Value* q) { return emit::float_extremum(e, which, mode, p, q); });
  }
  case op::eq:
  case op::ne:
  case op::lt:
  case op::le:
  case op::gt:
  case op::ge: {
    const auto p = predicate(d.code, from);
    if (narrow) return b.CreateFCmp(p, widen_float(x[0], from), widen_float(x[1], from));
    return real ? b.CreateFCmp(p, x[0], x[1]) : b.CreateICmp(p, x[0], x[1]);
  }
  case op::fma:
    if (narrow)
      return narrow_float(emit::fma(e, widen_float(x[0], from), widen_float(x[1], from), widen_float(x[2], from)), t);
    return emit::fma(e, x[0], x[1], x[2]);
  case op::where: return b.CreateSelect(x[0], x[1], x[2]);
  case op::philox: return emit::philox(e, x[0], x[1], x[2], static_cast<int>(g.attribute(n, 0)));
  default: refuse(n, "is not element-wise");
  }
}

} // namespace kiln::jit::host
