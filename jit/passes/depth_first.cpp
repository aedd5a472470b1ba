// Depth-first order of the instructions of a block, from its effects.
#include "depth_first.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <algorithm>
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

bool is_meeting(llvm::Instruction const& i) {
  auto const* call = llvm::dyn_cast<llvm::CallBase>(&i);
  return call && call->isConvergent();
}

/// How many of the block's instructions come before the end of what stays in the program's order: loads up to the last one that the
/// program has before a meeting of the warp (a shuffle, a barrier) and uses behind it. Memory answers them while the threads meet.
unsigned loads_ahead(llvm::BasicBlock& block) {
  std::vector<llvm::Instruction*> all;
  llvm::DenseMap<llvm::Instruction*, unsigned> at;
  std::vector<unsigned> meetings;
  for (llvm::Instruction& i : block) {
    if (is_meeting(i)) meetings.push_back(static_cast<unsigned>(all.size()));
    at[&i] = static_cast<unsigned>(all.size());
    all.push_back(&i);
  }
  // Where each has to be there at the latest: its own place, or that of its first user.
  std::vector<unsigned> wanted(all.size());
  for (auto n = static_cast<unsigned>(all.size()); n-- > 0;) {
    wanted[n] = n;
    if (!floats(*all[n])) continue;
    wanted[n] = static_cast<unsigned>(all.size());
    for (llvm::User* u : all[n]->users())
      if (auto const user = at.find(llvm::cast<llvm::Instruction>(u)); user != at.end() && user->second > n) wanted[n] = std::min(wanted[n], wanted[user->second]);
    if (!llvm::isa<llvm::LoadInst>(all[n])) continue;
    auto const next = std::upper_bound(meetings.begin(), meetings.end(), n);
    if (next != meetings.end() && *next < wanted[n]) return n + 1; // from the end: the last one
  }
  return 0;
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
  unsigned const ahead = loads_ahead(block);
  unsigned n = 0;
  for (llvm::Instruction& i : block)
    if (bool const stays = n++ < ahead && llvm::isa<llvm::LoadInst>(i); !stays && floats(i)) open.insert(&i);
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
