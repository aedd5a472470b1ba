// What is known about the integers and addresses in a graph, axis by axis: runs of consecutive values, runs of equal
// values, and powers of two that divide them. Vector widths, layouts and mask runs follow from it.
#pragma once

#include <array>
#include <kiln/graph/specialisation.hpp>
#include <optional>
#include <vector>

namespace kiln::jit {

/// Facts along one axis, all log2; every run is aligned to its own length. 30 stands for "without end".
struct axis_fact {
  int contiguity = 0; ///< runs of values that go up by one (elements, for pointers)
  int constancy = 0;  ///< runs of equal values
  int divisor = 0;    ///< divides the first value of each run of `contiguity` (bytes, for pointers)

  /// Divides the first value of each aligned run of 2^k values.
  int divisor_at(int k) const { return k >= contiguity ? divisor : divisor < k ? divisor : k; }
};

struct node_facts {
  std::array<axis_fact, max_rank> axis{}; ///< of a scalar, axis 0 counts, with endless constancy
  std::optional<std::int64_t> constant;   ///< every element has this value
};

/// Facts of every node under a specialisation.
std::vector<node_facts> analyse_accesses(graph_view const& g, specialisation const& s);

/// How a load, store, atomic or async_load reaches memory.
struct access_shape {
  int axis = 0;        ///< the axis along which addresses are consecutive; the last one where none is
  int contiguity = 0;  ///< log2 elements of the runs along it
  int align_bytes = 0; ///< log2
  int mask_run = 30;   ///< log2 elements of the aligned runs along it that the masks (bounds too) treat alike

  /// log2 of the elements one access may take; `elem` is log2 of the element's bytes.
  int vector(int elem) const;
};
/// Of the memory operation `i`; its first operand is the address.
access_shape shape_of_access(graph_view const& g, specialisation const& s, std::vector<node_facts> const& facts, int i);

} // namespace kiln::jit
