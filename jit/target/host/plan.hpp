// What the host lowering decides before it writes code: which tiles are recomputed where they are used and which are
// stored in the arena, which operations share one loop nest, and where in the arena everything lies. No LLVM here.
//
// Worked example: softmax of one row, v = load(x + i), m = reduce<max>(v), e = exp(v - m), s = reduce<sum>(e),
// store(y + i, e / s) becomes three nests over the row:
//   1. m: load, maximum                 (v is recomputed: a load is as cheap as reading the arena)
//   2. s: load, subtract, exp, sum;     e is stored beside: recomputing exp in nest 3 costs more than a store and a
//   load
//   3. the arena's e, divide, store
//
// Memory order. Tiles are values: a load happens at its place in the program. A load that is recomputed later than that
// is safe only if no write that may touch the same memory lies between; otherwise it is stored at its place. Within one
// nest all operands of a strip are read before anything of the strip is written. Two pointers that differ may overlap
// either completely (same elements at same coordinates: in-place calls) or not at all while one CTA runs, unless a
// barrier (`k.sync`) stands between: partial overlap is a race on every target.
#pragma once
#include <kiln/graph/graph.hpp>
#include <kiln/graph/local_layout.hpp>

#include "jit/passes/access_shape.hpp"

#include <cstdint>
#include <vector>

namespace kiln::jit::host {

/// What a node does in the nest it belongs to.
enum class role : std::uint8_t {
  keep,        ///< stores its own value in the arena
  store,       ///< writes global memory
  local_store, ///< writes local memory; also an async_load, which is an eager copy
  var_set,     ///< writes the slice of a var (var_set, or var itself for the first content)
  reduce,      ///< reduce or arg_reduce
  check,       ///< device_assert
};

struct root {
  int node;
  role what;
};

/// One loop nest.
struct nest {
  shape space;       ///< what it iterates over
  int lane_axis = 0; ///< the axis along vectors; axes behind it have extent 1
  int across = -1;   ///< a reduced axis that is not the lane axis and therefore runs innermost; -1: none
  int bits = 32;     ///< width of the widest element that sets the number of lanes
  int cost = 0;      ///< of one element, in simple operations
  bool own = false;  ///< not a nest of roots: the single node brings its own loops (scan, dot, atomics, ...)
  std::vector<root> roots;
};

/// A piece of the arena.
struct slice {
  int node = -1; ///< whose tile, var or buffer; -1: scratch of an operation
  int index = 0; ///< which result of the node
  dtype type{};
  bool pointers = false; ///< elements are addresses, 8 bytes each
  std::int64_t elements = 0, bytes = 0, offset = 0;
  int first = 0, last = 0; ///< steps in which it is alive
};

struct step {
  enum kind : std::uint8_t { scalar, nest, structure } what;
  int index; ///< a node, or a nest
};

struct plan {
  std::vector<step> steps;
  std::vector<nest> nests;
  std::vector<slice> slices;
  std::vector<int> slice_of;      ///< first slice of a node; -1: it has none
  std::vector<std::uint8_t> kept; ///< the node's tile is in its slice; otherwise it is recomputed at each use
  std::vector<int> in_place;      ///< of a dot: the var that it accumulates into; otherwise -1
  std::vector<int> var_of_set;    ///< of a var_set that a dot in place has made superfluous: the var; otherwise -1
  std::int64_t arena_bytes = 0;

  std::int64_t scratch_at = 0; ///< behind the slices: scratch of the operation that runs, shared by all

  /// Scratch that an operation needs while it runs, not longer: byte offset. The arena grows to hold it.
  std::int64_t shared_scratch(std::int64_t bytes);
};

/// Elements between the rows of an A panel of `k` elements: away from powers of two, whose rows would share cache sets.
constexpr std::int64_t a_panel_stride(std::int64_t k) { return k + 16; }
/// Scratch that the panels of a dot take.
std::int64_t dot_scratch_bytes(graph_view const& g, int n);
/// Scratch of a histogram, sort or topk; 0: n is none.
std::int64_t order_scratch_bytes(graph_view const& g, int n);

/// An atomic addition of a tile to a few counters, base[low .. low + count), whose old values nobody asks for. Each CTA may
/// add up its own first: integer sums do not show in what order they came about. count == 0: it is none.
struct private_counters {
  int base = -1, index = -1; ///< a scalar pointer; a tile of offsets
  std::int64_t low = 0, count = 0;
};
private_counters private_counters_of(graph_view const& g, int n);

/// Makes the slices of a plan whose steps, nests and kept tiles are decided, with their lifetimes and places. `used`, by
/// nest: the nodes whose slices it touches.
void lay_out_arena(graph_view const& g, plan& p, std::vector<std::vector<int>> const& used);

/// Gives every slice its offset: slices that are alive at the same step do not overlap.
void place_slices(graph_view const& g, plan& p);

/// Plans `g`. Requires a valid graph.
plan make_plan(graph_view const& g);

/// Whether a node's result is a tile (rank above 0) of values or pointers.
inline bool is_tile(graph_view const& g, int n) {
  return (g[n].kind == node_kind::value || g[n].kind == node_kind::pointer) && g.shape_of(n).rank > 0;
}
/// Whether two nodes are the same pure expression.
bool same_expression(graph_view const& g, int a, int b);
/// The last axis of extent above 1, or the last axis.
int lane_axis_of(shape const& s);
/// Whether a reshape only adds or removes axes of extent 1.
bool is_squeeze(shape const& from, shape const& to);
/// Whether an operation is written with loops of its own instead of being part of a nest.
bool brings_own_loops(graph_view const& g, int n);
/// Cost of one element of an operation, in simple operations.
int cost_of(op o, dtype t);
/// Bits of the carrier in which values of a type are computed on.
int compute_bits(dtype t);

} // namespace kiln::jit::host
