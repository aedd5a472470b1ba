// Runs every rule over a graph. Ordinary constexpr code that returns a diagnostic: unit-tested at run time, a soft answer
// for filtering configurations, a compile error where a kernel is launched.
#pragma once
#include <kiln/validate/bounds.hpp>
#include <kiln/validate/cells.hpp>
#include <kiln/validate/simulate.hpp>
#include <kiln/validate/storage.hpp>
#include <kiln/validate/tasks.hpp>
#include <kiln/validate/verify.hpp>

namespace kiln {

/// The rules that need no simulation. `recorded`: as in `verify`.
constexpr diagnostic check_static_rules(graph_view const& g, bool recorded = false) {
  diagnostic d = verify(g, recorded);
  if (d.ok()) d = check_tasks(g);
  if (d.ok()) d = check_cells(g);
  if (d.ok()) d = check_storage(g);
  return d.ok() ? check_bounds(g) : d;
}

/// The first broken rule of a graph; `ok()` when there is none.
constexpr diagnostic validate(graph_view const& g) {
  diagnostic d = check_static_rules(g);
  return d.ok() ? simulate(g).error : d;
}

} // namespace kiln
