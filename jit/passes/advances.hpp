// Loops that advance pointers or integers by the same amount in every pass, as authors who come from Triton write them.
#pragma once

#include <kiln/export.hpp>
#include <kiln/graph/owned.hpp>
#include <optional>
#include <src/graph/axis_facts.hpp>

namespace kiln::jit {

/// The graph with what such cells hold inside the loop written as a function of the loop's index, which is what pipelining
/// asks of addresses; nothing where there is none. A cell qualifies when
///   - it holds a pointer or an integer and is set once, by adding what does not change in the loop to what it held;
///   - the loop holds a product and no other loop or branch, and its step is a constant; the cell was made beside it.
KILN_INTERNAL_API std::optional<graph> count_advances(graph_view const& g, graph_facts const& facts);

} // namespace kiln::jit
