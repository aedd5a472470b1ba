// Loops over k: loads that only feed products become asynchronous copies, several passes ahead, into a ring of slots in
// local memory. What the author would write by hand (examples/04_gemm_ring.cpp), from the plain loop.
#pragma once

#include "assign_layouts.hpp"

#include <kiln/graph/owned.hpp>
#include <optional>

namespace kiln::jit {

/// The graph with such loops rewritten; nothing where there is none. A loop qualifies when
///   - it has a constant positive step and holds no other loop or branch, no stores, no local memory of its own;
///   - a product on the matrix unit has an operand that is loaded in it (transposed or not, as it is or after a cast) and used
///     nowhere else, and whose addresses depend on nothing that is read from memory or carried from pass to pass;
///     `count_advances` frees those that only count;
///   - copies of at least 4 bytes are proven, and two slots or more fit `shared_bytes` beside what is there.
std::optional<graph> pipeline_products(graph_view const& g, graph_facts const& facts, cta_shape cta,
                                       std::int64_t shared_bytes);

} // namespace kiln::jit
