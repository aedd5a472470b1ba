// The warning about 32-bit products in addresses that the sizes of a launch make overflow.
#pragma once

#include <span>
#include <string>

#include "kiln/graph/graph.hpp"
#include "kiln/runtime/argument.hpp"
#include "kiln/runtime/grid.hpp"

namespace kiln::detail {

/// One line per product that leaves its type with these sizes; empty when none does. Values that come from memory or from a
/// var are taken to be small: nobody knows them before the launch.
std::string narrow_address_warning(graph_view const& g, grid const& ctas, std::span<argument const> arguments);

} // namespace kiln::detail
