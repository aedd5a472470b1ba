// Removes what no effect depends on: pure nodes without uses, vars that are never read, local buffers that are never
// read with the stores and copies into them, and regions in which nothing is left. Kept: parameters, writes to global
// memory, atomics, volatile loads, asserts and prints, assumptions, barriers.
// After: every node has a use or an effect. Groups of asynchronous copies keep their number.
// Errs by keeping: a var or buffer that is read anywhere keeps all that is written to it.
//
//   %4 = exp %3 : f32[64]          (nothing: %4 was never used)
//   store %5, %3, _                store %5, %3, _
#pragma once
#include <kiln/export.hpp>
#include <kiln/graph/owned.hpp>

namespace kiln {

KILN_INTERNAL_API graph remove_dead_code(graph_view const& g);

} // namespace kiln
