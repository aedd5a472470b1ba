// Writes what is known of a launch's arguments into the graph: constants for values, extents and strides that are fixed,
// multiple_of for what is divisible and for aligned pointers, the grid's extents where it is known. Parameters stay, so
// that the kernel is called as before. Runs first; decide, fold and dce then use it.
//
//   %0 = param {index=0} : i32               %0 = param {index=0} : i32       (index 0 is always 64)
//   %1 = add %0, %0 : i32                    %1 = constant {bits=64} : i32
//                                            %2 = add %1, %1 : i32
#pragma once
#include "src/graph/passes/passes.hpp"

namespace kiln {

/// Without facts the graph stays as it is. Errors: std::invalid_argument when the facts are not for this graph.
KILN_INTERNAL_API graph specialise(graph_view const& g, pass_options const& options);

} // namespace kiln
