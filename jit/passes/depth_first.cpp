// Depth-first order of the instructions of a block, from its effects.
#include "depth_first.hpp"

#include <llvm/ADT/DenseSet.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <vector>

namespace kiln::jit {

namespace {

/// May be computed anywhere between its operands and its users.
bool floats(llvm::Instruction const& i) {
  if (i.isTerminator() || llvm::isa<llvm::PHINode>(i) || llvm::isa<llvm::AllocaInst>(i)) return false;
  if (auto const* load = llvm::dyn_cast<llvm::LoadInst>(&i))
    return load->isSimple() && load->hasMetadata(llvm::LLVMContext::MD_invariant_load);
  if (auto const* call = llvm::dyn_cast<llvm::CallBase>(&i); call && call->isConvergent()) return false;
  return !i.mayReadOrWriteMemory() && !i.mayHaveSideEffects();
}

/// Words that may be in work together.
constexpr int together = 4;

void order(llvm::BasicBlock& block) {
  llvm::Instruction *last = nullptr, *after = nullptr; // the last value that was placed, and the one that words wait for
  int words = 0;
  auto const placed = [&](llvm::Instruction* i) {
    if (i->hasMetadata(hidden_word)) {
      if (words++ % together == 0) after = last;
      if (after) {
        llvm::Value* v = after;
        if (!v->getType()->isIntegerTy(32))
          v = new llvm::BitCastInst(after, llvm::Type::getInt32Ty(block.getContext()), "", i->getIterator());
        i->setOperand(0, v);
      }
      return;
    }
    if (i->getType()->isFloatTy() || i->getType()->isIntegerTy(32)) last = i;
  };
  std::vector<llvm::Instruction*> fixed;
  llvm::DenseSet<llvm::Instruction*> open; // floating ones that have no place yet
  for (llvm::Instruction& i : block)
    if (floats(i)) open.insert(&i);
    else fixed.push_back(&i);
  std::vector<std::pair<llvm::Instruction*, unsigned>> stack; // instruction, its next operand
  auto const place = [&](llvm::Instruction* root, llvm::Instruction* before) {
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [i, next] = stack.back();
      if (next == i->getNumOperands()) {
        if (i != before) i->moveBefore(before->getIterator());
        placed(i);
        stack.pop_back();
        continue;
      }
      auto* operand = llvm::dyn_cast<llvm::Instruction>(i->getOperand(next++));
      if (operand && open.erase(operand)) stack.emplace_back(operand, 0);
    }
  };
  for (llvm::Instruction* f : fixed) {
    if (llvm::isa<llvm::PHINode>(f)) continue;
    if (f->isTerminator()) { // what other blocks use, in its old order
      std::vector<llvm::Instruction*> rest;
      for (llvm::Instruction& i : block)
        if (open.contains(&i)) rest.push_back(&i);
      for (llvm::Instruction* i : rest)
        if (open.erase(i)) place(i, f);
    }
    place(f, f);
  }
}

} // namespace

void order_depth_first(llvm::Function& f) {
  if (!f.hasFnAttribute(depth_first_attribute)) return;
  f.removeFnAttr(depth_first_attribute);
  for (llvm::BasicBlock& block : f) order(block);
}

} // namespace kiln::jit
