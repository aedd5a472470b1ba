// Pictures of graphs: SVG that needs no other program, and Graphviz text.
#pragma once
#include <kiln/export.hpp>
#include <kiln/graph/graph.hpp>

#include <string>

namespace kiln {

/// A drawing in program order, top down: one row per operation, regions as nested boxes, values as lines in the margin from
/// where they are made to where they are used. Local buffers have a colour each, and so has what touches them.
KILN_API std::string to_svg(graph_view const& g);

/// The graph for Graphviz (`dot -Tsvg`): operations as nodes, values as edges, regions as clusters.
KILN_API std::string to_dot(graph_view const& g);

} // namespace kiln
