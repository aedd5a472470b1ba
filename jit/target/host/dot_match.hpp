// Recognises the K loop of a matrix product in a kernel graph, so that the host can run it as one blocked product over
// many CTAs instead of tile by tile. No LLVM here.
//
// What is recognised, at the top level of a kernel (acc starts as zeros):
//
//   for (auto i : k.range(lo, hi, step)) {
//     acc = k.dot(A(i), B(i), acc);       // or acc = acc + k.dot(A(i), B(i))
//   }
//
// where A and B are loads of array regions, or through tiles of pointers that are linear in their coordinates, with masks
// that compare coordinates with bounds; transposed, squeezed or cast on the way; or ring buffers that a cp.async
// pipeline fills: slot i % S then holds what iteration i - lead loaded, and that load is what A or B is. Region starts
// may be any index arithmetic on parameters, program ids and the loop index: code for the product evaluates it per
// iteration, so nothing is assumed of how starts advance. CTAs whose operands depend on equal numbers ("keys") share them.
//
// The loop has no effect but on acc (and on the ring, which nothing else reads), so that it may run for all CTAs of a
// group at once, before the rest of any of them.
#pragma once
#include <kiln/export.hpp>
#include <kiln/graph/owned.hpp>
#include <kiln/graph/specialisation.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::jit::host {

/// A sum of products of scalars, for instance pid * 128 + stride * k.
struct dot_product_of {
  std::int64_t factor = 1;
  std::vector<int> scalars; ///< nodes that is_index_arithmetic admits
};
using dot_sum = std::vector<dot_product_of>;

/// An operand that is loaded through a tile of pointers: element [i, j] lies `origin + i * step[0] + j * step[1]` elements
/// behind the pointer parameter `base`, and is `other` where an index reaches one of its axis' limits.
struct dot_pointers {
  int base = -1; ///< -1: a region
  dot_sum origin, step[2];
  std::vector<dot_sum> limits[2];
};

/// Where one operand of the product comes from. Its axes are called row (m of a, n of b) and k.
struct dot_source {
  int load = -1;              ///< the load or async_load
  int address = -1;           ///< the region, or the tile of pointers, that it reads
  dot_pointers pointers;
  int row_axis = 0, k_axis = 1; ///< axes of the region
  std::int64_t lead = 0;      ///< the address of iteration i is `address` with i - lead for the loop index
  std::vector<dtype> types;   ///< as loaded, after each cast, as multiplied
  std::uint64_t other = 0;    ///< bits, of the loaded type, of elements out of bounds
  std::vector<int> keys;      ///< scalars that differ between CTAs and decide the operand
  /// Whether the pointers of neighbours along an axis are known to be neighbours.
  bool unit_step(int axis) const {
    dot_sum const& s = pointers.step[axis];
    return s.size() == 1 && s[0].factor == 1 && s[0].scalars.empty();
  }
};

/// A region that sums are stored to, element by element: rows and columns of the product lie along these axes.
struct dot_output {
  int address = -1;
  int row_axis = 0, column_axis = 1;
};

/// A recognised loop.
struct dot_loop {
  int loop = -1, dot = -1, cell = -1; ///< for_begin, dot, the accumulator's var
  int m = 0, n = 0, k = 0;            ///< extents of one dot
  dtype type{}, accumulator{};        ///< of the dot
  dot_source a, b;
  std::vector<int> bound_keys; ///< scalars that differ between CTAs and decide lo, hi or step
  /// How program ids number the tiles of the output, as far as it is known; only speed depends on it. `walked`:
  /// rows that are numbered together, column by column (program_tile's group). `columns`: a node, the number of tiles in
  /// that many rows (-1: the extent of the grid's x axis; -2: nothing is known). `rows`: a node, their number (-1: the
  /// grid's size by `columns`).
  int columns = -2, rows = -1;
  std::int64_t walked = 1;
  /// If not empty: a sum that none of these regions has in bounds is of no consequence, and may be left out.
  std::vector<dot_output> outputs;
  std::vector<std::uint8_t> drop; ///< by node: belongs to the loop or only to what fills its buffers
};

/// The loop, or why there is none (`why` is empty on success).
struct dot_match {
  dot_loop found;
  std::string why;
  explicit operator bool() const { return why.empty(); }
};

/// Writes a tile of pointers of rank 2 and its mask (-1: none) as sums. The index of `loop` may be in origin and limits.
/// Fails (false) for what is not linear in the tile's coordinates, or not made of index arithmetic.
bool match_dot_pointers(graph_view const& g, int address, int mask, int loop, dot_pointers& out);

/// Looks for the loop. Requires a valid graph.
KILN_INTERNAL_API dot_match match_dot_loop(graph_view const& g);

/// The kernel without the loop: the accumulators come from a local buffer that someone else has filled.
struct dot_rest {
  graph rest;
  int buffer = -1; ///< in the table of `rest`: [m, n], row-major, one slot
};
KILN_INTERNAL_API dot_rest without_dot_loop(graph_view const& g, dot_loop const& d);

/// Whether a scalar node can be evaluated by `scalar_code` (dot_scalar.hpp): integers, and what is made of parameters,
/// program ids and the index of `loop`.
bool is_index_arithmetic(graph_view const& g, int node, int loop);
/// Whether a scalar depends on the program id, on the index of `loop`.
bool depends_on_program(graph_view const& g, int node);
bool depends_on(graph_view const& g, int node, int other);

} // namespace kiln::jit::host
