// Variables that are read before anything was assigned to them. Rule: R-HZ15.
//
// A read is refused when no assignment stands before it in the program and nothing skips it: then every run that comes so far is
// wrong. A read under a condition of its own may be one that never happens; the checker sees those that do.
#pragma once
#include <kiln/graph/recorder.hpp>

namespace kiln {

constexpr diagnostic check_cells(graph_view const& g) {
  diagnostic d;
  int const n = g.size();
  node const* const nodes = g.nodes.items;
  int first = 0;
  while (first < n && nodes[first].code != op::unset) ++first;
  if (first == n) return d;
  bool* const assigned = new bool[static_cast<unsigned>(n)]{};
  int* const depth = new int[static_cast<unsigned>(n)]{}; // conditions around a cell
  int conditions = 0;
  for (int i = 0; i < n && d.ok(); ++i) {
    switch (nodes[i].code) {
    case op::if_begin: case op::while_test: case op::task_begin: ++conditions; break;
    case op::if_end: case op::while_end: case op::task_end: --conditions; break;
    case op::var:
      assigned[i] = g[g.operand(i, 0)].code != op::unset &&
                    (g[g.operand(i, 0)].code != op::require_layout || g[g.operand(g.operand(i, 0), 0)].code != op::unset); // a fragment's layout
      depth[i] = conditions;
      break;
    case op::var_set: assigned[g.operand(i, 0)] = true; break;
    case op::var_get:
      if (int const cell = g.operand(i, 0); !assigned[cell] && depth[cell] == conditions) {
        d.node = i;
        detail::message m(d);
        m << "kiln[R-HZ15] the variable of line " << nodes[cell].line << " is read before its first assignment; give it a value where it is made";
      }
      break;
    default: break;
    }
  }
  delete[] assigned;
  delete[] depth;
  return d;
}

} // namespace kiln
