// From a graph to code: the ordered passes over the graph, the lowering of the target's family, and the engine, with the
// disk cache in front. Everything a command line tool or the runtime needs of the compiler is here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jit/engine.hpp"
#include "kiln/graph/owned.hpp"
#include "kiln/graph/specialisation.hpp"

namespace kiln::jit {

/// What a lowering says about the code it wrote, beside the code.
struct code_info {
  std::int64_t arena_bytes = 0;   ///< host: scratch of one worker
  std::int64_t chunk = 0;         ///< host: CTAs that are best run together; 0: no preference
  std::uint32_t shared_bytes = 0; ///< GPU: dynamic shared memory
  std::uint32_t threads = 0;      ///< GPU: of a CTA
  std::string fault;              ///< GPU: see device_code
  std::string assembler_log;      ///< NVIDIA: see device_code
  std::string notes;              ///< one remark a line
};

/// The graph after all passes that do not depend on LLVM: arguments' facts applied, constants folded, dead nodes gone.
KILN_INTERNAL_API graph prepare_graph(graph_view const& g, specialisation const& facts);

/// One stage of a compile, for tools: IR before or after LLVM's passes, assembly, or the object.
/// Errors: compile_error.
KILN_INTERNAL_API std::string emit(graph_view const& g, specialisation const& facts, target const& t, emit_kind kind,
                                   code_info* info = nullptr);

} // namespace kiln::jit
