// From a graph to LLVM IR for GPUs whose threads run in warps: NVPTX and AMDGPU share this lowering and differ in a few
// hooks (hardware.hpp). Tiles become registers of each thread under the layouts of passes/assign_layouts.hpp; what
// moves between threads does so by shuffles and shared memory; barriers are placed last, over the bytes that were
// accessed.
#pragma once

#include "jit/engine.hpp"

#include <kiln/graph/specialisation.hpp>
#include <string>
#include <vector>

namespace kiln::jit {

/// What a launch needs to know of the code.
struct simt_code {
  int num_threads = 0;            ///< of a CTA, along x
  std::uint32_t shared_bytes = 0; ///< dynamic shared memory (NVPTX); part of the code object elsewhere
  std::uint32_t static_shared_bytes = 0;
  int barriers = 0; ///< that were inserted
  /// Name of a global variable of four i32, or empty: where a failed device_assert leaves {1, text index + 1, line,
  /// linear index of the CTA}; zero it before a launch, read it after. The first failure of a launch stays.
  std::string fault;
  std::vector<std::string> notes; ///< what a user may want to know: conversions through memory, fallbacks
};

/// Fills the module with the kernel `builder.symbol`: one 64-bit parameter per slot
/// (graph/specialisation.hpp).
///
/// Errors: `compile_error` for what the target cannot do (R-TG01, with an alternative), for too much shared memory
/// (R-CP01, naming the buffers), and for numbers of warps that do not exist.
simt_code lower_simt(graph_view const& g, specialisation const& s, kiln::target const& t, module_builder& builder);

} // namespace kiln::jit
