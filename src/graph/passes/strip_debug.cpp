// Drops names and lines.
#include "src/graph/passes/strip_debug.hpp"

namespace kiln {

graph strip_debug(graph_view const& g) {
  graph_view bare = g;
  bare.name = {};
  bare.files = {};
  bare.strings = {};
  graph out(bare);
  out.add_file("");
  for (std::size_t i = 0; i < g.strings.size(); ++i) out.add_string("");
  for (node& n : out.nodes) {
    n.line = 0;
    n.file = 0;
  }
  for (buffer_info& b : out.buffers) b.name = -1;
  return out;
}

} // namespace kiln
