// Launches: from a kernel's graph and its arguments to running code.
#pragma once

#include <span>

#include "kiln/export.hpp"
#include "kiln/graph/graph.hpp"
#include "kiln/runtime/argument.hpp"
#include "kiln/runtime/grid.hpp"
#include "kiln/runtime/stream.hpp"

namespace kiln::detail {

struct kernel_state;

/// One per kernel, with static storage: the graph, and what the runtime knows of it so far.
struct kernel_entry {
  graph_view graph;
  kernel_state* state = nullptr; ///< the runtime reads and writes it as an atomic (<atomic> is dear to include)
};

/// Starts a kernel on a stream; returns when it is issued (GPU) or done (host). Compiles at the first launch with new
/// facts about the arguments. Errors: kiln::error naming kernel and argument for a wrong grid or pointer; compile_error.
KILN_API void launch(kernel_entry& kernel, stream const& where, grid const& ctas, std::span<argument const> arguments);

/// Compiles (or finds) the code for such a launch without starting it.
KILN_API void prepare(kernel_entry& kernel, stream const& where, std::span<argument const> arguments);

/// Reports a C++ number that does not fit a value parameter.
[[noreturn]] KILN_API void fail_argument(kernel_entry const& kernel, int parameter, char const* reason);

} // namespace kiln::detail
