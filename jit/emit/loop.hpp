// Structured control flow over IRBuilder with values carried in SSA: counted loops, general loops and conditionals.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>

#include <cassert>
#include <initializer_list>
#include <vector>

namespace kiln::emit {

using values = std::vector<llvm::Value*>;

namespace detail {

inline llvm::BasicBlock* new_block(llvm::IRBuilderBase& b, const char* name) {
  return llvm::BasicBlock::Create(b.getContext(), name, b.GetInsertBlock()->getParent());
}

inline values open_phis(llvm::IRBuilderBase& b, const values& initial, llvm::BasicBlock* from) {
  values phis;
  for (llvm::Value* v : initial) {
    auto* phi = b.CreatePHI(v->getType(), 2);
    phi->addIncoming(v, from);
    phis.push_back(phi);
  }
  return phis;
}

inline void close_phis(const values& phis, const values& next, llvm::BasicBlock* from) {
  assert(phis.size() == next.size() && "a loop body returns one value per carried value");
  for (size_t i = 0; i < phis.size(); ++i) llvm::cast<llvm::PHINode>(phis[i])->addIncoming(next[i], from);
}

} // namespace detail

/// What is known about a counted loop.
struct loop_options {
  bool at_least_once = false; // the caller proves that the first iteration runs: no guard is emitted
  bool is_signed = true;      // the comparison of counter and bound
  llvm::MDNode* metadata = nullptr;
};

/// for (i = low; i < high; i += step) carried = body(i, carried); returns the carried values after the loop.
/// `step` is positive and `high` plus `step` does not overflow the type of the counter. The builder continues behind
/// the loop. A loop that runs zero times returns `initial`.
inline values loop(llvm::IRBuilderBase& b, llvm::Value* low, llvm::Value* high, llvm::Value* step,
                   const values& initial, llvm::function_ref<values(llvm::Value*, const values&)> body,
                   loop_options options = {}) {
  const auto before = options.is_signed ? llvm::CmpInst::ICMP_SLT : llvm::CmpInst::ICMP_ULT;
  auto* entry = b.GetInsertBlock();
  auto* head = detail::new_block(b, "loop");
  auto* exit = llvm::BasicBlock::Create(b.getContext(), "after");
  if (options.at_least_once) b.CreateBr(head);
  else b.CreateCondBr(b.CreateICmp(before, low, high), head, exit);
  b.SetInsertPoint(head);
  auto* counter = b.CreatePHI(low->getType(), 2, "i");
  counter->addIncoming(low, entry);
  const values carried = detail::open_phis(b, initial, entry);
  const values next = body(counter, carried);
  auto* latch = b.GetInsertBlock();
  auto* following = b.CreateAdd(counter, step, "", !options.is_signed, options.is_signed);
  auto* branch = b.CreateCondBr(b.CreateICmp(before, following, high), head, exit);
  if (options.metadata) branch->setMetadata(llvm::LLVMContext::MD_loop, options.metadata);
  counter->addIncoming(following, latch);
  detail::close_phis(carried, next, latch);
  exit->insertInto(head->getParent());
  b.SetInsertPoint(exit);
  if (options.at_least_once) return next;
  values result;
  for (size_t i = 0; i < next.size(); ++i) {
    auto* phi = b.CreatePHI(next[i]->getType(), 2);
    phi->addIncoming(initial[i], entry);
    phi->addIncoming(next[i], latch);
    result.push_back(phi);
  }
  return result;
}

/// The same without carried values.
inline void loop(llvm::IRBuilderBase& b, llvm::Value* low, llvm::Value* high, llvm::Value* step,
                 llvm::function_ref<void(llvm::Value*)> body, loop_options options = {}) {
  loop(
      b, low, high, step, {},
      [&](llvm::Value* i, const values&) {
        body(i);
        return values{};
      },
      options);
}

/// while (condition(carried)) carried = body(carried); returns the carried values after the loop.
inline values loop_while(llvm::IRBuilderBase& b, const values& initial,
                         llvm::function_ref<llvm::Value*(const values&)> condition,
                         llvm::function_ref<values(const values&)> body) {
  auto* entry = b.GetInsertBlock();
  auto* head = detail::new_block(b, "while");
  b.CreateBr(head);
  b.SetInsertPoint(head);
  const values carried = detail::open_phis(b, initial, entry);
  auto* go = condition(carried);
  auto* inside = detail::new_block(b, "do");
  auto* exit = llvm::BasicBlock::Create(b.getContext(), "done");
  b.CreateCondBr(go, inside, exit);
  b.SetInsertPoint(inside);
  const values next = body(carried);
  detail::close_phis(carried, next, b.GetInsertBlock());
  b.CreateBr(head);
  exit->insertInto(head->getParent());
  b.SetInsertPoint(exit);
  return carried;
}

/// condition ? then() : otherwise(), both returning the same number of values; only one of them runs.
inline values branch(llvm::IRBuilderBase& b, llvm::Value* condition, llvm::function_ref<values()> then,
                     llvm::function_ref<values()> otherwise) {
  auto* yes = detail::new_block(b, "then");
  auto* no = llvm::BasicBlock::Create(b.getContext(), "else");
  auto* join = llvm::BasicBlock::Create(b.getContext(), "join");
  auto* function = b.GetInsertBlock()->getParent();
  b.CreateCondBr(condition, yes, no);
  b.SetInsertPoint(yes);
  const values first = then();
  auto* yes_end = b.GetInsertBlock();
  b.CreateBr(join);
  no->insertInto(function);
  b.SetInsertPoint(no);
  const values second = otherwise();
  auto* no_end = b.GetInsertBlock();
  b.CreateBr(join);
  assert(first.size() == second.size() && "both sides of a branch return the same number of values");
  join->insertInto(function);
  b.SetInsertPoint(join);
  values result;
  for (size_t i = 0; i < first.size(); ++i) {
    auto* phi = b.CreatePHI(first[i]->getType(), 2);
    phi->addIncoming(first[i], yes_end);
    phi->addIncoming(second[i], no_end);
    result.push_back(phi);
  }
  return result;
}

/// Runs `body` where `condition` holds.
inline void when(llvm::IRBuilderBase& b, llvm::Value* condition, llvm::function_ref<void()> body) {
  branch(
      b, condition,
      [&] {
        body();
        return values{};
      },
      [] { return values{}; });
}

} // namespace kiln::emit
