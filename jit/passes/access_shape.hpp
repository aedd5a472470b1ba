// How a memory operation reaches memory: along which axis addresses are consecutive, how far, how aligned, and how many
// neighbours its masks treat alike. Layouts and vector widths follow from it.
#pragma once

#include "src/graph/axis_facts.hpp"

#include <optional>

namespace kiln::jit {

/// All log2; 30 stands for "without end".
struct access_shape {
  int axis = 0;        ///< the axis along which addresses are consecutive; the last one where none is
  int contiguity = 0;  ///< elements of the aligned runs along it
  int align_bytes = 0; ///< of the start of each run
  int mask_run = 30;   ///< elements of the aligned runs along it that the masks (bounds too) treat alike

  /// Elements that one access of at most 16 bytes may take; `elem` is log2 of the element's bytes.
  int vector(int elem) const;
};

/// Of the memory operation `node`; its first operand is the address.
access_shape shape_of_access(graph_view const& g, graph_facts const& facts, int node);

/// The parameter whose memory an address (pointer or region) lies in; -1 where it cannot be told, as behind a choice.
int memory_root(graph_view const& g, int address);

/// The value of a node that has only one.
std::optional<std::int64_t> constant_of(graph_facts const& facts, int node);

} // namespace kiln::jit
