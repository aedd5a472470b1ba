// Lowers a kernel graph to host code: one function that runs a range of CTAs. See plan.hpp for how tiles become loops
// and writer.hpp for how code is written.
#pragma once
#include "hooks.hpp"

#include "jit/engine.hpp"

#include <kiln/graph/graph.hpp>
#include <kiln/graph/specialisation.hpp>

namespace kiln::jit::host {

/// Fills `out.module` with the entry `out.symbol` of type `entry_function`. The graph must be valid (validate.hpp) and
/// may have been specialised and folded before; `facts` are those that the folding used.
/// Errors: `compile_error` naming the operation and the user's line for what the host cannot do.
KILN_INTERNAL_API host_code lower_host(graph_view g, specialisation const& facts, host_cpu const& cpu,
                                       module_builder& out);

} // namespace kiln::jit::host
