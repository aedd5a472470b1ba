// Regions of a graph are in the order of its nodes; this finds their ends.
#pragma once
#include <kiln/export.hpp>
#include <kiln/graph/owned.hpp>

#include <string>

namespace kiln {

/// What link_regions found wrong; node -1: nothing.
struct region_fault {
  int node = -1;
  std::string text;
  bool ok() const { return node < 0; }
};

/// Sets the attributes by which the nodes of a region know each other (`begin`, `else`, `test`, `end`), from nesting.
KILN_INTERNAL_API region_fault link_regions(graph& g);

/// Index of a shape in a graph's table; equal shapes share one entry.
KILN_INTERNAL_API std::int32_t intern_shape(graph& g, shape const& s);

} // namespace kiln
