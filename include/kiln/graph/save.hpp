// Writing graphs to files, declared apart from text.hpp so that every kernel can include it at no cost.
#pragma once
#include <kiln/export.hpp>
#include <kiln/graph/graph.hpp>

#include <string_view>

namespace kiln {

/// Writes the text form of a graph (.kg) to `path`, replacing what is there; the file appears whole or not at all.
/// Errors: std::runtime_error with the path and the reason.
KILN_API void save_graph(graph_view const& g, std::string_view path);

/// Where KILN_DUMP_GRAPHS names a directory: writes the graph there as NAME-HASH.kg, once per graph and process.
/// Called where kernels are compiled. Errors: those of save_graph.
KILN_API void dump_graph(graph_view const& g);

} // namespace kiln
