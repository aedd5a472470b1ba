// What is known about integers and addresses without running the kernel: ranges, divisors, and how the elements of a tile
// follow each other along each axis. All lowerings choose vector widths, address widths and mask granularity from here.
//
// Worked example, with a pointer x aligned to 16 bytes and n divisible by 16:
//   %i = pid * 1024 + arange<1024>     axis 0: contiguity 1024, divisibility 1024
//   %p = x + %i  (f32)                 axis 0: contiguity 1024, divisibility 16 (bytes): 4 elements may be loaded at once
//   %m = %i < n                        axis 0: constancy 16: the mask is the same for 16 neighbours
//
// Assumption: signed integers of 32 bits and more do not wrap on their way into an address (the checker reports those that
// do). Unsigned and narrower ones may wrap anywhere, and are treated so. Everything else follows from docs/numerics.md.
#pragma once
#include "src/graph/passes/passes.hpp"

#include <kiln/dtype/scalar.hpp>

namespace kiln {

__extension__ typedef __int128 wide_integer;

/// All values of a node lie in lo..hi, both included. Holds any 64-bit integer, signed or not.
struct integer_range {
  wide_integer lo = 0, hi = 0;
  constexpr bool is(std::int64_t x) const { return lo == x && hi == x; }
  constexpr bool within(std::int64_t least, std::int64_t most) const { return lo >= least && hi <= most; }
  constexpr bool fits_i32() const { return within(INT32_MIN, INT32_MAX); }
  friend constexpr bool operator==(integer_range const&, integer_range const&) = default;
};

/// Along one axis. Each property is about aligned groups: positions [k n, (k + 1) n), for every k; the last may be cut
/// short by the extent. A property that holds for n holds for every divisor of n.
struct axis_fact {
  std::int64_t contiguity = 1;   ///< the values (addresses: elements) of a group are v, v + 1, v + 2, ...
  std::int64_t divisibility = 1; ///< a power of two that divides the first value (address: in bytes) of each group above
  std::int64_t constancy = 1;    ///< the values of a group are equal
  friend constexpr bool operator==(axis_fact const&, axis_fact const&) = default;
};

/// What is known about a node's result.
struct node_facts {
  bool has_range = false;   ///< integers and b1
  integer_range range;
  std::int64_t divisor = 1; ///< a power of two that divides every value (address: in bytes)
  axis_fact axis[max_rank]; ///< as many as the result has axes
  friend bool operator==(node_facts const&, node_facts const&) = default;
};

/// Facts of all nodes of a graph.
class KILN_INTERNAL_API graph_facts {
public:
  /// Uses what `options` tells of arguments and grid.
  graph_facts(graph_view const& g, pass_options const& options = {});

  node_facts const& operator[](int node) const { return facts_[static_cast<std::size_t>(node)]; }

  /// How many consecutive elements along `axis` one access at this address (pointers or region) may move: a power of two,
  /// aligned to its size, of at most `most_bytes`.
  int vector_elements(int address, int axis, int most_bytes = 16) const;
  /// Number of neighbours along `axis` for which a mask is the same; the extent where there is no mask (-1).
  std::int64_t mask_constancy(int mask, int axis, std::int64_t extent) const;
  /// Whether a region certainly lies within its array along `axis`, so that no bounds mask is needed there.
  bool inside(int region, int axis) const;
  /// What is known about an array's extent or stride.
  node_facts extent_of(int array, int axis) const;
  node_facts stride_of(int array, int axis) const;

  /// One line for people: "0..1023, divisible by 16; axis 0: contiguous 64, constant 1". Empty where nothing is known.
  std::string text(int node) const;

private:
  friend class facts_analysis;
  graph_view g_;
  pass_options options_;
  std::vector<node_facts> facts_;
};

} // namespace kiln
