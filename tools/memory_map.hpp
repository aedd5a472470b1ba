// `kiln memory-map`: a drawing of a kernel's local memory, bytes up and program order to the right.
#pragma once
#include <kiln/graph/graph.hpp>

#include <string>

namespace kiln::tool {

/// The drawing, as SVG. Left: which bytes each buffer has, side by side where they are the same bytes, with growth, slack and padding.
/// Right: one column for every statement that touches local memory or waits, in program order; a bar while a buffer is in use; a
/// letter where it is written, read or copied; a line at each barrier, with who waits for whom. Tasks stand side by side.
/// The graph must be valid.
std::string memory_map(graph_view const& g);

} // namespace kiln::tool
