// Integer scalars by docs/numerics.md, through the helpers of jit/emit.
#include "dot_scalar.hpp"

#include "jit/emit/convert.hpp"
#include "jit/emit/integer.hpp"
#include "jit/emit/minmax.hpp"

#include <llvm/IR/Function.h>

namespace kiln::jit::host {

using llvm::Value;

scalar_code::scalar_code(graph_view const& graph, specialisation const& f, emit::emitter& emitter, Value* slots,
                         std::array<Value*, 3> grid)
    : g(graph), facts_(f), e(emitter), slots_(slots), grid_(grid) {
  // Every slot is read here once: later reads could not be merged across stores.
  for (std::size_t i = 0; i < g.params.size(); ++i)
    for (int s = 0; s < slot_count(g.params[i]); ++s) {
      const int number = first_slot(g, static_cast<int>(i)) + s;
      auto* p = e.b.CreateConstInBoundsGEP1_64(e.b.getInt64Ty(), slots_, static_cast<std::uint64_t>(number));
      read_[number] = e.b.CreateLoad(e.b.getInt64Ty(), p);
    }
}

Value* scalar_code::slot(int number) { return read_.at(number); }

Value* scalar_code::known(integer_fact const& f, int number, llvm::Type* t) {
  if (f.constant) return e.b.getIntN(t->getIntegerBitWidth(), static_cast<std::uint64_t>(f.value));
  return e.b.CreateTrunc(slot(number), t);
}

Value* scalar_code::extent(int param, int axis) {
  return known(facts_.params[static_cast<std::size_t>(param)].extent[axis], first_slot(g, param) + 1 + axis, e.b.getInt64Ty());
}
Value* scalar_code::stride(int param, int axis) {
  const int rank = g.params[static_cast<std::size_t>(param)].rank;
  return known(facts_.params[static_cast<std::size_t>(param)].stride[axis], first_slot(g, param) + 1 + rank + axis,
               e.b.getInt64Ty());
}
Value* scalar_code::wide(int node, point& p) {
  Value* v = at(node, p);
  return is_signed(g[node].type) ? e.b.CreateSExt(v, e.b.getInt64Ty()) : e.b.CreateZExt(v, e.b.getInt64Ty());
}

Value* scalar_code::at(int n, point& p) {
  if (auto found = p.known.find(n); found != p.known.end()) return found->second;
  auto& b = e.b;
  const auto& x = g[n];
  auto* type = emit::carrier(b.getContext(), x.type);
  const bool sign = is_signed(x.type);
  const auto operand = [&](int i) { return at(g.operand(n, i), p); };
  const auto compared = [&](llvm::CmpInst::Predicate s, llvm::CmpInst::Predicate u) -> Value* {
    return b.CreateICmp(is_signed(g[g.operand(n, 0)].type) ? s : u, operand(0), operand(1));
  };
  Value* v = nullptr;
  switch (x.code) {
  case op::for_begin: v = p.index; break;
  case op::constant: v = llvm::ConstantInt::get(type, llvm::APInt(type->getIntegerBitWidth(), static_cast<std::uint64_t>(g.attribute(n, 0)), false, true)); break;
  case op::param: {
    const int index = static_cast<int>(g.attribute(n, 0));
    v = is_bool(x.type) ? b.CreateICmpNE(b.CreateTrunc(slot(first_slot(g, index)), b.getInt8Ty()), b.getInt8(0))
                        : known(facts_.params[static_cast<std::size_t>(index)].scalar, first_slot(g, index), type);
    break;
  }
  case op::program_id: v = b.CreateZExtOrTrunc(p.program[static_cast<std::size_t>(g.attribute(n, 0))], type); break;
  case op::num_programs: v = b.CreateZExtOrTrunc(grid_[static_cast<std::size_t>(g.attribute(n, 0))], type); break;
  case op::extent: v = extent(static_cast<int>(g.attribute(g.operand(n, 0), 0)), static_cast<int>(g.attribute(n, 0))); break;
  case op::stride: v = stride(static_cast<int>(g.attribute(g.operand(n, 0), 0)), static_cast<int>(g.attribute(n, 0))); break;
  case op::neg: v = b.CreateNeg(operand(0)); break;
  case op::bit_not: v = b.CreateNot(operand(0)); break;
  case op::abs: v = sign ? emit::absolute(e, operand(0)) : operand(0); break;
  case op::cast: v = emit::convert(e, operand(0), g[g.operand(n, 0)].type, x.type); break;
  case op::multiple_of:
  case op::require_layout:
  case op::release_layout:
  case op::max_contiguous: v = operand(0); break;
  case op::add: v = b.CreateAdd(operand(0), operand(1)); break;
  case op::sub: v = b.CreateSub(operand(0), operand(1)); break;
  case op::mul: v = b.CreateMul(operand(0), operand(1)); break;
  case op::div: v = emit::divide(e, operand(0), operand(1), sign); break;
  case op::rem: v = emit::remainder(e, operand(0), operand(1), sign); break;
  case op::bit_and: v = b.CreateAnd(operand(0), operand(1)); break;
  case op::bit_or: v = b.CreateOr(operand(0), operand(1)); break;
  case op::bit_xor: v = b.CreateXor(operand(0), operand(1)); break;
  case op::shl: v = emit::shift_left(e, operand(0), operand(1)); break;
  case op::shr: v = emit::shift_right(e, operand(0), operand(1), sign); break;
  case op::min: v = emit::int_extremum(e, emit::extremum::minimum, sign, operand(0), operand(1)); break;
  case op::max: v = emit::int_extremum(e, emit::extremum::maximum, sign, operand(0), operand(1)); break;
  case op::eq: v = b.CreateICmpEQ(operand(0), operand(1)); break;
  case op::ne: v = b.CreateICmpNE(operand(0), operand(1)); break;
  case op::lt: v = compared(llvm::CmpInst::ICMP_SLT, llvm::CmpInst::ICMP_ULT); break;
  case op::le: v = compared(llvm::CmpInst::ICMP_SLE, llvm::CmpInst::ICMP_ULE); break;
  case op::gt: v = compared(llvm::CmpInst::ICMP_SGT, llvm::CmpInst::ICMP_UGT); break;
  case op::ge: v = compared(llvm::CmpInst::ICMP_SGE, llvm::CmpInst::ICMP_UGE); break;
  case op::where: v = b.CreateSelect(operand(0), operand(1), operand(2)); break;
  default: llvm_unreachable("is_index_arithmetic admits no other operation");
  }
  p.known[n] = v;
  return v;
}

} // namespace kiln::jit::host
