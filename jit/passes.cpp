// Module preparation and the textual pass pipelines.
#include "passes.hpp"

#include "jit/passes/depth_first.hpp"

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Target/TargetMachine.h>
#include <stdexcept>

namespace kiln::jit {

std::string_view default_passes(target_family family) {
  // The lowering writes explicit vectors and tiles, so little is left to find. GPU code has more address arithmetic
  // that repeats between unrolled accesses.
  return family == target_family::host
             ? "function(sroa,early-cse,simplifycfg)"
             : "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,loop-mssa(licm),"
               "simplifycfg)";
}

llvm::TargetLibraryInfoImpl library_info(const llvm::Triple& triple) {
  llvm::TargetLibraryInfoImpl info(triple, llvm::VectorLibrary::NoLibrary);
  info.disableAllFunctions();
  if (!triple.isNVPTX() && !triple.isAMDGPU())
    for (llvm::LibFunc f : {llvm::LibFunc_memcpy, llvm::LibFunc_memmove, llvm::LibFunc_memset}) info.setAvailable(f);
  return info;
}

std::function<void(module_builder&)> from_ir_text(std::string text) {
  return [text = std::move(text)](module_builder& b) {
    llvm::SMDiagnostic error;
    if (llvm::parseAssemblyInto(llvm::MemoryBufferRef(text, "IR text"), &b.module, nullptr, error)) {
      std::string message;
      llvm::raw_string_ostream os(message);
      error.print(nullptr, os, /*ShowColors=*/false);
      throw std::invalid_argument(message);
    }
  };
}

std::string text_of(const llvm::Module& m) {
  std::string text;
  llvm::raw_string_ostream os(text);
  m.print(os, nullptr);
  return text;
}

void module_passes::prepare(llvm::Module& m) const {
  const llvm::Function* entry = m.getFunction(wanted.symbol);
  if (entry == nullptr || entry->isDeclaration())
    throw std::runtime_error("the lowering did not define the entry function '" + wanted.symbol + "'");
  if (entry->hasLocalLinkage()) throw std::runtime_error("the entry function '" + wanted.symbol + "' is not external");

  // One symbol per specialisation: helpers of two kernels never meet. Arrays such as llvm.used keep their linkage, and
  // so does shared memory, which GPUs want external or internal as the lowering chose.
  for (llvm::GlobalValue& g : m.global_values()) {
    if (&g == entry || g.isDeclaration() || g.hasLocalLinkage() || g.hasAppendingLinkage()) continue;
    if (const auto* v = llvm::dyn_cast<llvm::GlobalVariable>(&g); v != nullptr && v->getAddressSpace() != 0) continue;
    g.setLinkage(llvm::GlobalValue::InternalLinkage);
    g.setVisibility(llvm::GlobalValue::DefaultVisibility);
  }

  const std::string cpu = machine.getTargetCPU().str(), features = machine.getTargetFeatureString().str();
  const bool x86 = machine.getTargetTriple().isX86();
  const bool wide = x86 && machine.getMCSubtargetInfo()->checkFeatures("+avx512f");
  const int width = wanted.codegen.vector_width != 0 ? wanted.codegen.vector_width : wide ? 512 : 256;
  for (llvm::Function& f : m) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", cpu);
    if (!features.empty()) f.addFnAttr("target-features", features);
    f.addFnAttr(llvm::Attribute::NoUnwind);
    if (!wanted.target.is_host()) continue;
    f.setUWTableKind(llvm::UWTableKind::Async); // so that backtraces pass through kernels
    if (x86 && !f.hasFnAttribute("prefer-vector-width")) f.addFnAttr("prefer-vector-width", std::to_string(width));
  }

  std::string message;
  llvm::raw_string_ostream os(message);
  if (llvm::verifyModule(m, &os)) throw std::runtime_error(message);
}

void module_passes::run(llvm::Module& m) const {
  const std::string_view passes =
      wanted.codegen.passes.empty() ? default_passes(wanted.target.family) : std::string_view(wanted.codegen.passes);
  if (passes == "none") return;

  const llvm::TargetLibraryInfoImpl library = library_info(machine.getTargetTriple());
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  // PassBuilder asks for a non-const machine, and only to read it.
  llvm::PassBuilder builder(const_cast<llvm::TargetMachine*>(&machine));
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::ModulePassManager pipeline;
  if (llvm::Error e = builder.parsePassPipeline(pipeline, llvm::StringRef(passes.data(), passes.size())))
    throw std::runtime_error("pass pipeline '" + std::string(passes) + "': " + llvm::toString(std::move(e)));
  pipeline.run(m, modules);
  for (llvm::Function& f : m) order_depth_first(f);
}

} // namespace kiln::jit
