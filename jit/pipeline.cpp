// LLVM's code generation pipeline has more than a hundred passes, and the time of a small kernel goes to walking over
// its code again and again. What is left out here either looks for what our lowering never writes (exceptions, garbage
// collection, AMX tiles, stack protectors, x87) or polishes what is already in its final form: loops are written with
// the addresses that they should have, and constants and tails where they belong.
#include "pipeline.hpp"

#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace kiln::jit {

namespace {

constexpr std::array left_out = std::to_array<std::string_view>({
    // Optimisations of IR. Strength reduction alone costs an eighth of a matrix product's compile: it wants scalar
    // evolution, and leaves our inner loops as they were.
    "Canonicalize Freeze Instructions in Loops",
    "Loop Strength Reduction",
    "Merge contiguous icmps into a memcmp",
    "Expand memcmp() to load/stores",
    "Constant Hoisting",
    "Replace intrinsics with calls to vector library",
    "Partially inline calls to library functions",
    "Interleaved Access Pass",
    "X86 Partial Reduction",
    // Optimisations of machine code that find nothing, or nothing that can be measured, in it.
    "X86 Domain Reassignment Pass",
    "Early Tail Duplication",
    "Merge disjoint stack slots",
    "Early If-Conversion",
    "Machine InstCombiner",
    "X86 cmov Conversion",
    "Live Range Shrink",
    "X86 LEA Optimize",
    "X86 Optimize Call Frame",
    "X86 Avoid Store Forwarding Blocks",
    "Stack Slot Coloring",
    "Machine Loop Invariant Code Motion", // the one after register allocation; the early one stays
    "PostRA Machine Sink",
    "Shrink Wrapping analysis",
    "Tail Duplication",
    "Post RA top-down list latency scheduler",
    "X86 Atom pad short functions",
    "Register Allocation Pass Scoring",
    // Languages and features that kernels do not have.
    "Lower AMX intrinsics",
    "Lower AMX type for load/store",
    "Tile Register Configure",
    "X86 Lower Tile Copy",
    "Lower Garbage Collection Instructions",
    "Shadow Stack GC Lowering",
    "Analyze Machine Code For Garbage Collection",
    "Fixup Statepoint Caller Saved",
    "StackMap Liveness Analysis",
    "ObjC ARC contraction",
    "Exception handling preparation",
    "Contiguously Lay Out Funclets",
    "Prepare callbr",
    "Expand indirectbr instructions",
    "Safe Stack instrumentation pass",
    "Instrument function entry/exit with calls to e.g. mcount() (post inlining)",
    "Insert fentry calls",
    "Insert XRay ops",
    "Implement the 'patchable-function' attribute",
    "Insert KCFI indirect call checks",
    "Pseudo Probe Inserter",
    "Machine Sanitizer Binary Metadata",
    "Remove Loads Into Fake Uses",
    "Stack Frame Layout Analysis",
    "Local Dynamic TLS Access Clean-up",
    "X86 FP Stackifier", // of the x87 registers
    "X86 insert wait instruction",
    "X86 Suppress APX features for relocation",
    "X86 speculative load hardening",
    "X86 Load Value Injection (LVI) Load Hardening",
    "X86 Load Value Injection (LVI) Ret-Hardening",
    "X86 Speculative Execution Side Effect Suppression",
    "X86 Indirect Branch Tracking",
    "X86 Indirect Thunks",
    "X86 Return Thunks",
    // There are line tables, but no variables.
    "Remove Redundant DEBUG_VALUE analysis",
    "Live DEBUG_VALUE analysis",
});

// Of NVPTX: what finds nothing in our code. Strength reduction of straight lines does find something in products.
constexpr std::array left_out_of_nvptx = std::to_array<std::string_view>({
    "Nary reassociation", // wants scalar evolution of every address: a tenth of a small kernel's compile
    "Merge contiguous icmps into a memcmp",
    "Expand memcmp() to load/stores",
    "Constant Hoisting",
    "Replace intrinsics with calls to vector library",
    "Partially inline calls to library functions",
    "Lower Garbage Collection Instructions",
    "Shadow Stack GC Lowering",
    "Remove Redundant DEBUG_VALUE analysis",
    "Live DEBUG_VALUE analysis",
    "Stack Slot Coloring",
    "Merge disjoint stack slots",
});

// Passes what is wanted on, and owns what is not.
class sieve : public llvm::legacy::PassManagerBase {
public:
  sieve(llvm::legacy::PassManager& to, std::span<std::string_view const> unwanted) : to_(to), unwanted_(unwanted) {}
  void add(llvm::Pass* p) override {
    const llvm::StringRef name = p->getPassName();
    // Where there are AMX tiles, a register allocator of their own runs in front of the others'.
    const bool for_tiles = tiles_ && name == "Greedy Register Allocator";
    if (for_tiles) tiles_ = false;
    const bool tiles = name == "Tile Register Pre-configure";
    if (tiles) tiles_ = true;
    if (for_tiles || tiles || std::ranges::find(unwanted_, std::string_view(name)) != unwanted_.end()) delete p;
    else to_.add(p);
  }

private:
  llvm::legacy::PassManager& to_;
  std::span<std::string_view const> unwanted_;
  bool tiles_ = false;
};

} // namespace

// What addPassesToEmitFile does, through the sieve.
bool add_codegen(llvm::legacy::PassManager& passes, llvm::TargetMachine& machine, llvm::raw_pwrite_stream& out,
                 llvm::CodeGenFileType type) {
  const llvm::Triple& triple = machine.getTargetTriple();
  if (triple.isAMDGPU()) return !machine.addPassesToEmitFile(passes, out, nullptr, type);
  sieve sieved(passes, triple.isNVPTX() ? std::span<std::string_view const>(left_out_of_nvptx) : left_out);
  auto* config = machine.createPassConfig(sieved);
  auto* info = new llvm::MachineModuleInfoWrapperPass(&machine);
  config->setDisableVerify(true);
  passes.add(config);
  passes.add(info);
  if (config->addISelPasses()) return false;
  config->addMachinePasses();
  config->setInitialized();
  if (machine.addAsmPrinter(sieved, out, nullptr, type, info->getMMI().getContext())) return false;
  passes.add(llvm::createFreeMachineFunctionPass());
  return true;
}

} // namespace kiln::jit
