// Our part of the middle end: check what the lowering wrote, give functions their attributes, run the pass pipeline.
#pragma once

#include "engine.hpp"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>
#include <string>

namespace kiln::jit {

/// What prepares and optimises a module. The functions throw `compile_error`-ready text as `std::runtime_error`.
struct module_passes {
  const request& wanted;
  const llvm::TargetMachine& machine;

  /// Makes everything but the entry internal, puts CPU and features on every function, and checks the module.
  void prepare(llvm::Module& m) const;
  /// Runs the request's pipeline.
  void run(llvm::Module& m) const;
};

/// The functions of the C library that optimisation and code generation may assume: memory functions on the host, none
/// on a GPU, and never a vector library.
llvm::TargetLibraryInfoImpl library_info(const llvm::Triple& triple);

std::string text_of(const llvm::Module& m);

} // namespace kiln::jit
