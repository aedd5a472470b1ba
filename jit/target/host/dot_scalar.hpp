// Code for index arithmetic (is_index_arithmetic) at a chosen program id and loop index: the matrix product evaluates
// where operands lie for CTAs and iterations that are not the present ones.
#pragma once
#include "jit/emit/emitter.hpp"

#include <kiln/graph/specialisation.hpp>

#include <array>
#include <unordered_map>

namespace kiln::jit::host {

class scalar_code {
public:
  /// `slots`: the kernel's argument slots. `grid`: its three extents, i64. What does not change is read where the builder
  /// stands now.
  scalar_code(graph_view const& graph, specialisation const& f, emit::emitter& emitter, llvm::Value* slots,
              std::array<llvm::Value*, 3> grid);

  struct point {
    std::array<llvm::Value*, 3> program{}; ///< i64
    llvm::Value* index = nullptr; ///< of the loop, in its type
    std::unordered_map<int, llvm::Value*> known = {}; ///< nodes whose values are there already, in their own types
  };
  /// The value of `node` at `p`, in its own type. It and what it is made of are known from then on, so the builder must
  /// not leave what this place dominates while `p` is in use.
  llvm::Value* at(int node, point& p);
  /// The same, extended to i64 by its signedness.
  llvm::Value* wide(int node, point& p);

  /// Extent and stride (i64) of an array parameter.
  llvm::Value* extent(int param, int axis);
  llvm::Value* stride(int param, int axis);

private:
  llvm::Value* slot(int number);
  llvm::Value* known(integer_fact const& f, int number, llvm::Type* t);

  graph_view const& g;
  specialisation const& facts_;
  emit::emitter& e;
  llvm::Value* slots_;
  std::array<llvm::Value*, 3> grid_;
  llvm::IRBuilderBase::InsertPoint top_;
  std::unordered_map<int, llvm::Value*> read_; // slots
};

} // namespace kiln::jit::host
