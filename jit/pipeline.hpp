// From IR to an object or assembly: which of LLVM's code generation passes run.
#pragma once

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Support/CodeGen.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

namespace kiln::jit {

/// Adds code generation to `passes`: LLVM's own pipeline, for the host and NVPTX less what cannot matter to our code (see
/// pipeline.cpp). Returns false if the machine does not emit this kind of file.
bool add_codegen(llvm::legacy::PassManager& passes, llvm::TargetMachine& machine, llvm::raw_pwrite_stream& out,
                 llvm::CodeGenFileType type);

} // namespace kiln::jit
