// One instruction of IR is one of PTX here: what LLVM's own instruction selection writes for them, without its passes.
#include "straight_line.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>
#include <cstdio>

namespace kiln::jit::simt {

namespace {

/// Thrown at what has no translation.
struct no_translation {};

char const* suffix(llvm::Type const* t) { // of arithmetic
  if (t->isFloatTy()) return "f32";
  if (t->isDoubleTy()) return "f64";
  throw no_translation();
}
unsigned width(llvm::Type const* t) {
  if (t->isFloatTy() || t->isIntegerTy(32)) return 32;
  if (t->isDoubleTy() || t->isIntegerTy(64)) return 64;
  if (t->isIntegerTy(1)) return 1;
  throw no_translation();
}

class translation {
public:
  std::string run(llvm::Function const& f) {
    if (f.size() != 1) throw no_translation();
    for (unsigned i = 0; llvm::Argument const& a : f.args()) {
      suffix(a.getType());
      names_[&a] = "$" + std::to_string(++i);
    }
    llvm::BasicBlock const& block = f.front();
    auto const* end = llvm::dyn_cast<llvm::ReturnInst>(block.getTerminator());
    if (!end || !end->getReturnValue()) throw no_translation();
    for (llvm::Instruction const& i : block)
      if (&i != end) instruction(i);
    unsigned const w = width(end->getReturnValue()->getType());
    line("mov.b" + std::to_string(w) + " $0, " + name(end->getReturnValue()));
    std::string registers;
    if (predicates_) registers += "\t.reg .pred p<" + std::to_string(predicates_) + ">;\n";
    if (words_) registers += "\t.reg .b32 r<" + std::to_string(words_) + ">;\n";
    if (doubles_) registers += "\t.reg .b64 d<" + std::to_string(doubles_) + ">;\n";
    return "{\n" + registers + text_ + "\t}";
  }

private:
  void line(std::string const& s) { text_ += "\t" + s + ";\n"; }

  std::string name(llvm::Value const* v) const {
    char buffer[24];
    if (auto const* c = llvm::dyn_cast<llvm::ConstantFP>(v)) {
      auto const bits = static_cast<unsigned long long>(c->getValueAPF().bitcastToAPInt().getZExtValue());
      if (std::string_view(suffix(v->getType())) == "f32") std::snprintf(buffer, sizeof buffer, "0f%08llX", bits);
      else std::snprintf(buffer, sizeof buffer, "0d%016llX", bits);
      return buffer;
    }
    if (auto const* c = llvm::dyn_cast<llvm::ConstantInt>(v); c && width(v->getType()) > 1) return std::to_string(c->getSExtValue());
    auto const at = names_.find(v);
    if (at == names_.end()) throw no_translation(); // undef, poison, a truth value that is known
    return at->second;
  }
  std::string fresh(llvm::Value const* v) {
    unsigned const w = width(v->getType());
    return names_[v] = w == 1 ? "p" + std::to_string(predicates_++) : w == 32 ? "r" + std::to_string(words_++) : "d" + std::to_string(doubles_++);
  }
  /// `operation` result, operands.
  void emit(llvm::Instruction const& i, std::string const& operation, std::initializer_list<llvm::Value const*> operands) {
    std::string list;
    for (llvm::Value const* v : operands) list += ", " + name(v);
    line(operation + " " + fresh(&i) + list);
  }

  void instruction(llvm::Instruction const& i) {
    if (llvm::isa<llvm::FPMathOperator>(i) && i.getFastMathFlags().any()) throw no_translation();
    llvm::Value const *x = i.getOperand(0), *y = i.getNumOperands() > 1 ? i.getOperand(1) : nullptr;
    std::string const bits = std::to_string(width(i.getType()));
    bool const truth = width(i.getType()) == 1;
    switch (i.getOpcode()) {
    case llvm::Instruction::FAdd: return emit(i, std::string("add.rn.") + suffix(i.getType()), {x, y});
    case llvm::Instruction::FSub: return emit(i, std::string("sub.rn.") + suffix(i.getType()), {x, y});
    case llvm::Instruction::FMul: return emit(i, std::string("mul.rn.") + suffix(i.getType()), {x, y});
    case llvm::Instruction::FDiv: return emit(i, std::string("div.rn.") + suffix(i.getType()), {x, y});
    case llvm::Instruction::FNeg: return emit(i, std::string("neg.") + suffix(i.getType()), {x});
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
      if (truth) throw no_translation();
      return emit(i, (i.getOpcode() == llvm::Instruction::Add ? "add.s" : "sub.s") + bits, {x, y});
    case llvm::Instruction::And: return emit(i, "and." + (truth ? "pred" : "b" + bits), {x, y});
    case llvm::Instruction::Or: return emit(i, "or." + (truth ? "pred" : "b" + bits), {x, y});
    case llvm::Instruction::Xor: return emit(i, "xor." + (truth ? "pred" : "b" + bits), {x, y});
    case llvm::Instruction::Shl:
    case llvm::Instruction::LShr:
    case llvm::Instruction::AShr: // the number of places is 32 bits wide in PTX
      if (truth || !llvm::isa<llvm::ConstantInt>(y)) throw no_translation();
      return emit(i, (i.getOpcode() == llvm::Instruction::Shl ? "shl.b" : i.getOpcode() == llvm::Instruction::LShr ? "shr.u" : "shr.s") + bits, {x, y});
    case llvm::Instruction::BitCast:
      if (width(x->getType()) != width(i.getType())) throw no_translation();
      if (auto const at = names_.find(x); at != names_.end()) {
        std::string const same = at->second;
        names_[&i] = same;
        return;
      }
      throw no_translation();
    case llvm::Instruction::Select:
      if (truth) throw no_translation();
      return emit(i, "selp." + (i.getType()->isFloatingPointTy() ? suffix(i.getType()) : "b" + bits), {y, i.getOperand(2), x});
    case llvm::Instruction::FCmp: return emit(i, std::string("setp.") + relation(llvm::cast<llvm::FCmpInst>(i).getPredicate()) + "." + suffix(x->getType()), {x, y});
    case llvm::Instruction::ICmp: {
      auto const p = llvm::cast<llvm::ICmpInst>(i).getPredicate();
      unsigned const w = width(x->getType());
      if (w == 1) throw no_translation();
      return emit(i, std::string("setp.") + relation(p) + (llvm::CmpInst::isUnsigned(p) ? ".u" : ".s") + std::to_string(w), {x, y});
    }
    case llvm::Instruction::Call: return intrinsic(i);
    default: throw no_translation();
    }
  }

  void intrinsic(llvm::Instruction const& i) {
    auto const* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
    if (!call) throw no_translation();
    llvm::Value const* x = call->getArgOperand(0);
    std::string const type = suffix(i.getType());
    switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::fma: return emit(i, "fma.rn." + type, {x, call->getArgOperand(1), call->getArgOperand(2)});
    case llvm::Intrinsic::fabs: return emit(i, "abs." + type, {x});
    case llvm::Intrinsic::sqrt: return emit(i, "sqrt.rn." + type, {x});
    case llvm::Intrinsic::copysign: return emit(i, "copysign." + type, {call->getArgOperand(1), x}); // PTX: the sign comes first
    case llvm::Intrinsic::floor: return emit(i, "cvt.rmi." + type + "." + type, {x});
    case llvm::Intrinsic::ceil: return emit(i, "cvt.rpi." + type + "." + type, {x});
    case llvm::Intrinsic::trunc: return emit(i, "cvt.rzi." + type + "." + type, {x});
    case llvm::Intrinsic::roundeven: return emit(i, "cvt.rni." + type + "." + type, {x});
    default: throw no_translation();
    }
  }

  static char const* relation(llvm::CmpInst::Predicate p) {
    using c = llvm::CmpInst;
    switch (p) {
    case c::FCMP_OEQ: case c::ICMP_EQ: return "eq";
    case c::FCMP_ONE: case c::ICMP_NE: return "ne";
    case c::FCMP_OLT: case c::ICMP_SLT: case c::ICMP_ULT: return "lt";
    case c::FCMP_OLE: case c::ICMP_SLE: case c::ICMP_ULE: return "le";
    case c::FCMP_OGT: case c::ICMP_SGT: case c::ICMP_UGT: return "gt";
    case c::FCMP_OGE: case c::ICMP_SGE: case c::ICMP_UGE: return "ge";
    case c::FCMP_UEQ: return "equ";
    case c::FCMP_UNE: return "neu";
    case c::FCMP_ULT: return "ltu";
    case c::FCMP_ULE: return "leu";
    case c::FCMP_UGT: return "gtu";
    case c::FCMP_UGE: return "geu";
    case c::FCMP_ORD: return "num";
    case c::FCMP_UNO: return "nan";
    default: throw no_translation();
    }
  }

  llvm::DenseMap<llvm::Value const*, std::string> names_;
  std::string text_;
  unsigned predicates_ = 0, words_ = 0, doubles_ = 0;
};

} // namespace

std::string straight_line_ptx(llvm::Function const& f) {
  try {
    return translation().run(f);
  } catch (no_translation const&) { return {}; }
}

} // namespace kiln::jit::simt
