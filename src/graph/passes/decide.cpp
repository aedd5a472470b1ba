// Constants from ranges.
#include "src/graph/passes/decide.hpp"

#include "src/graph/axis_facts.hpp"
#include "src/graph/rewrite.hpp"

namespace kiln {

graph decide(graph_view const& g, pass_options const& options) {
  graph_facts const facts(g, options);
  std::vector<bool> promise(g.nodes.size()); // is, or is part of, the condition of an assume
  for (int i = g.size() - 1; i >= 0; --i) {
    bool const part = promise[static_cast<std::size_t>(i)] && g[i].code == op::bit_and;
    if (g[i].code == op::assume || part)
      for (int x : g.operands(i)) promise[static_cast<std::size_t>(x)] = true;
  }
  detail::rewriter r(g);
  for (int i = 0; i < g.size(); ++i) {
    node const& n = g[i];
    node_facts const& f = facts[i];
    bool const computed = n.kind == node_kind::value && (has(n.code, trait::pure) || n.code == op::var_get) && n.code != op::constant && n.code != op::param;
    if (!computed || !f.has_range || f.range.lo != f.range.hi || promise[static_cast<std::size_t>(i)]) {
      r.copy(i);
      continue;
    }
    r.replace(i, r.add_constant(scalar_from_bits(n.type, static_cast<u64>(f.range.lo)), g.shape_of(i), i));
  }
  return r.finish();
}

} // namespace kiln
