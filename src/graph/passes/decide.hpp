// Replaces comparisons whose outcome is certain, and integers that can have only one value, by constants: masks that are
// always true are what this is for. What is certain is what axis_facts.hpp proves from types, grid, arguments and promises.
// Runs after specialise; fold then drops the masks. Errs by missing. Conditions of assume stay, or the promise were lost.
//
//   %2 = iota {axis=0} : i32[64]             %2 = iota {axis=0} : i32[64]
//   %3 = constant {bits=64} : i32[64]        %3 = constant {bits=64} : i32[64]
//   %4 = lt %2, %3 : b1[64]                  %4 = constant {bits=true} : b1[64]
#pragma once
#include "src/graph/passes/passes.hpp"

namespace kiln {

KILN_INTERNAL_API graph decide(graph_view const& g, pass_options const& options = {});

} // namespace kiln
