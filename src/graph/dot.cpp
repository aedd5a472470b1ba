// Graphviz text.
#include <kiln/graph/draw.hpp>

#include "src/graph/drawing.hpp"

namespace kiln {

std::string to_dot(graph_view const& g) {
  std::string out = "digraph " + quote_text(g.name) + " {\n  node [shape=box, style=\"rounded,filled\", fontname=\"monospace\", fontsize=10];\n"
                    "  edge [fontname=\"monospace\", fontsize=9];\n";
  int depth = 1;
  auto line = [&](std::string const& s) { out += std::string(static_cast<std::size_t>(2 * depth), ' ') + s + "\n"; };
  for (std::size_t i = 0; i < g.params.size(); ++i)
    line("arg" + std::to_string(i) + " [label=" + quote_text("arg" + std::to_string(i) + "\n" + type_text(g, g.params[i].node)) + ", shape=ellipse, fillcolor=\"#f1f3f5\"];");
  for (int i = 0; i < g.size(); ++i) {
    op const o = g[i].code;
    if (detail::written_in_place(g, i)) continue;
    if (has(o, trait::closes)) {
      --depth;
      line("}");
      continue;
    }
    if (has(o, trait::opens)) {
      line("subgraph cluster_" + std::to_string(i) + " {");
      ++depth;
      line("label=" + quote_text(std::string(name_of(o))) + "; style=\"rounded,filled\"; color=\"#adb5bd\"; fillcolor=\"#f8f9fa\"; fontname=\"monospace\";");
    }
    std::string label(name_of(o));
    // Operands that have no edge of their own.
    for (int x : g.operands(i))
      if (x < 0 || g[x].code == op::constant) label += " " + detail::operand_text(g, x);
    if (std::string const a = detail::attributes_text(g, i); !a.empty()) label += "\n" + a;
    if (std::string const t = type_text(g, i); !t.empty()) label += "\n%" + std::to_string(i) + " : " + t;
    line("n" + std::to_string(i) + " [label=" + quote_text(label) + ", fillcolor=\"" + detail::colour_of(g, i) + "\"];");
    for (int x : g.operands(i)) {
      if (x < 0 || g[x].code == op::constant) continue;
      std::string const from = g[x].code == op::param ? "arg" + std::to_string(g.attribute(x, 0)) : "n" + std::to_string(x);
      line(from + " -> n" + std::to_string(i) + (g[x].kind == node_kind::cell || g[x].kind == node_kind::view ? " [style=dashed];" : ";"));
    }
  }
  return out + "}\n";
}

} // namespace kiln
