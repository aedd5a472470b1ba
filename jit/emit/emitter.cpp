// Capabilities of host processors, read from the subtarget that will select the instructions.
#include "emitter.hpp"

#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>

namespace kiln::emit {

capabilities capabilities::host(const llvm::TargetMachine& machine) {
  const llvm::Triple& triple = machine.getTargetTriple();
  capabilities c;
  if (triple.isAArch64()) {
    c.fma = c.rounding = c.half_convert = true;
  } else if (triple.getArch() == llvm::Triple::x86_64) {
    const auto has = [&](const char* feature) { return machine.getMCSubtargetInfo()->checkFeatures(feature); };
    c.fma = has("+fma") || has("+avx512f");
    c.rounding = has("+sse4.1");
    c.half_convert = has("+f16c") || has("+avx512f");
    c.scale512 = has("+avx512f");
    c.scale_any = has("+avx512f,+avx512vl");
  }
  return c;
}

} // namespace kiln::emit
