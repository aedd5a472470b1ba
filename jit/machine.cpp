// Target start-up, host CPU detection, and the choice of triple, CPU and features for a request.
#include "machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <llvm/ADT/StringMap.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>
#include <shared_mutex>
#include <stdexcept>

namespace kiln::jit {

namespace {

// LLVM's list of targets has no lock of its own.
std::shared_mutex& registry() {
  static std::shared_mutex mutex;
  return mutex;
}

void start_host() {
  static std::once_flag once;
  std::call_once(once, [] {
    const std::unique_lock lock(registry());
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

void start_nvptx() {
  static std::once_flag once;
  std::call_once(once, [] {
    const std::unique_lock lock(registry());
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

void start_amdgpu() {
  static std::once_flag once;
  std::call_once(once, [] {
    const std::unique_lock lock(registry());
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    LLVMInitializeAMDGPUAsmParser(); // inline assembler
  });
}

std::string host_triple() { return llvm::sys::getProcessTriple(); }

const llvm::Target& llvm_target(const std::string& triple) {
  std::string error;
  const std::shared_lock lock(registry());
  const llvm::Target* t = llvm::TargetRegistry::lookupTarget(llvm::Triple(triple), error);
  if (t == nullptr) throw std::invalid_argument("this LLVM has no target for '" + triple + "': " + error);
  return *t;
}

std::unique_ptr<llvm::MCSubtargetInfo> subtarget(const std::string& triple, const std::string& cpu,
                                                 const std::string& features) {
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      llvm_target(triple).createMCSubtargetInfo(llvm::Triple(triple), cpu, features));
}

// LLVM warns about an unknown CPU on stderr and goes on without it; we want an error instead.
void require_known_cpu(const std::string& triple, const std::string& cpu) {
  if (!subtarget(triple, "", "")->isCPUStringValid(cpu))
    throw std::invalid_argument("LLVM does not know the CPU '" + cpu + "' of " + triple);
}

int vector_bits_of(const host_cpu& cpu) {
  const llvm::Triple triple(host_triple());
  if (!triple.isX86()) return 128;
  return cpu.has("avx512f") ? 512 : cpu.has("avx") ? 256 : 128;
}

// Fills `features` (what differs from the CPU's name, sorted) and `enabled` (all that is on).
void set_features(host_cpu& cpu, const std::string& triple, const std::string& wanted) {
  const auto base = subtarget(triple, cpu.name, ""), real = subtarget(triple, cpu.name, wanted);
  for (const llvm::SubtargetFeatureKV& f : real->getAllProcessorFeatures()) { // sorted by name
    const bool on = real->getFeatureBits().test(f.Value);
    if (on) cpu.enabled.emplace_back(f.Key);
    if (on == base->getFeatureBits().test(f.Value)) continue;
    cpu.features += (cpu.features.empty() ? "" : ",") + std::string(on ? "+" : "-") + f.Key;
  }
}

// 7.1 has waits for the parity of a barrier, 8.1 additions of vectors to memory.
int lowest_ptx_version(unsigned arch) { return arch >= 100 ? 86 : arch >= 90 ? 81 : 71; }

} // namespace

bool host_cpu::has(std::string_view feature) const {
  return std::binary_search(enabled.begin(), enabled.end(), feature, std::less<>{});
}

host_cpu detect_host_cpu() {
  start_host();
  const std::string triple = host_triple();
  const char* name = std::getenv("KILN_HOST_CPU");
  const char* extra = std::getenv("KILN_HOST_FEATURES");
  host_cpu cpu;
  if (name != nullptr && *name != 0 && std::string_view(name) != "native") {
    cpu.name = name;
    require_known_cpu(triple, cpu.name);
    set_features(cpu, triple, extra != nullptr ? extra : "");
  } else {
    cpu.name = llvm::sys::getHostCPUName().str();
    // What the operating system and a hypervisor left on, which the CPU's name does not tell.
    llvm::SubtargetFeatures detected;
    for (const auto& f : llvm::sys::getHostCPUFeatures()) detected.AddFeature(f.first(), f.second);
    std::string text = detected.getString();
    if (extra != nullptr && *extra != 0) text += (text.empty() ? "" : ",") + std::string(extra);
    set_features(cpu, triple, text);
  }
  cpu.vector_bits = vector_bits_of(cpu);
  return cpu;
}

machine_spec spec_of(const request& r, const host_cpu& cpu) {
  const codegen_options& o = r.codegen;
  machine_spec s;
  s.level = o.level >= 0 ? o.level : r.target.is_host() ? 1 : 2;
  if (s.level > 3) throw std::invalid_argument("code generation level " + std::to_string(s.level) + ": use 0 to 3");
  if (o.ptx_version != 0 && !r.target.is_nvptx())
    throw std::invalid_argument("ptx_version is for NVPTX targets, not for " + std::string(r.target.name()));
  switch (r.target.family) {
  case target_family::host:
    start_host();
    s.triple = host_triple();
    if (o.cpu.empty()) {
      s.cpu = cpu.name;
      s.features = cpu.features;
      if (!o.features.empty()) s.features += (s.features.empty() ? "" : ",") + o.features;
    } else {
      require_known_cpu(s.triple, o.cpu);
      s.cpu = o.cpu;
      s.features = o.features;
    }
    return s;
  case target_family::nvptx:
    start_nvptx();
    s.triple = "nvptx64-nvidia-cuda";
    s.features = "+ptx" + std::to_string(o.ptx_version != 0 ? o.ptx_version : lowest_ptx_version(r.target.arch));
    break;
  case target_family::amdgpu:
    start_amdgpu();
    s.triple = "amdgcn-amd-amdhsa";
    break;
  }
  s.cpu = o.cpu.empty() ? std::string(r.target.name()) : o.cpu;
  if (!o.cpu.empty()) require_known_cpu(s.triple, o.cpu);
  if (!o.features.empty()) s.features += (s.features.empty() ? "" : ",") + o.features;
  return s;
}

std::unique_ptr<llvm::TargetMachine> machine_pool::take(const machine_spec& spec) {
  {
    const std::lock_guard lock(mutex_);
    if (auto at = idle_.find(spec); at != idle_.end() && !at->second.empty()) {
      auto machine = std::move(at->second.back());
      at->second.pop_back();
      return machine;
    }
  }
  // Contraction only where an operation asks for it; no other relaxed arithmetic. Position-independent small code is
  // what JITLink places anywhere, with stubs for far calls.
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  std::unique_ptr<llvm::TargetMachine> machine(
      llvm_target(spec.triple)
          .createTargetMachine(llvm::Triple(spec.triple), spec.cpu, spec.features, options, llvm::Reloc::PIC_,
                               llvm::CodeModel::Small, static_cast<llvm::CodeGenOptLevel>(spec.level)));
  if (machine == nullptr) throw std::invalid_argument("LLVM made no machine for " + spec.triple + " " + spec.cpu);
  return machine;
}

void machine_pool::give(const machine_spec& spec, std::unique_ptr<llvm::TargetMachine> machine) {
  const std::lock_guard lock(mutex_);
  idle_[spec].push_back(std::move(machine));
}

void start_all_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    const std::unique_lock lock(registry());
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    llvm::InitializeAllAsmParsers();
  });
}

std::string_view llvm_version() { return LLVM_VERSION_STRING; }

} // namespace kiln::jit
