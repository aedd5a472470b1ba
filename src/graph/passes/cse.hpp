// Lets equal pure nodes be one node: the first in a region that encloses both. Nodes that read memory or vars, and
// reductions with a combine body, are left alone; operands of commutative operations are compared without order, except
// min and max of floats, which may give either zero.
// After: no pure node repeats one that is visible from it. Errs by missing: it does not look for equal loads.
//
//   %3 = iota {axis=0} : i32[64]        %3 = iota {axis=0} : i32[64]
//   %4 = iota {axis=0} : i32[64]        %5 = add %3, %3 : i32[64]
//   %5 = add %3, %4 : i32[64]
#pragma once
#include <kiln/export.hpp>
#include <kiln/graph/owned.hpp>

namespace kiln {

KILN_INTERNAL_API graph merge_equal_nodes(graph_view const& g);

} // namespace kiln
