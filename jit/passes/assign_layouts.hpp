// Chooses where every tile lives: one distributed layout (register, lane, warp -> coordinate) per value that has a
// place of its own. Memory accesses come first, since they have a preference that can be proved (coalesced, up to 16
// bytes a thread); from them layouts follow the data through element-wise and shape operations by the algebra; where
// two of them meet in one operation, a conversion is due.
//
// Values that are cheap to compute anywhere (constants, iotas, broadcasts, and arithmetic on such) get no place: they
// are *placeless* and computed in whatever layout their user has. So address arithmetic never moves between threads,
// and the row maximum of a softmax is broadcast by reading its registers again.
#pragma once

#include "access_shape.hpp"

#include <kiln/graph/register_layout.hpp>
#include <kiln/layout/linear_layout.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::jit {

struct cta_shape {
  int warp_size = 32, num_warps = 4;
  bool vector_adds = false; ///< memory adds several neighbouring floats at once when nobody asks for the old ones
  bool matrix_unit = false; ///< mma.sync and its kin (matrix_unit.hpp)
  int threads() const { return warp_size * num_warps; }
};

/// The input spaces of all layouts here are (reg, lane, warp) in this order, lane and warp as wide as the CTA; the
/// output is `tile_space` of the shape. A scalar has no output bits and lives in register 0 of every thread.
struct layout_plan {
  std::vector<linear_layout> layout; ///< of a node's value, or of the access of a node without a value
  std::vector<bool> placeless;
  linear_layout const& of(int node) const { return layout[static_cast<std::size_t>(node)]; }
};

/// A load takes the layout of what its value is for, where memory is read as well by it: that of a scan, of the rows that
/// a gather's indices are for; where its value is transposed and stored, square blocks of registers serve both sides.
///
/// Errors: a number of warps that is no power of two, or more threads than a CTA may have (std::invalid_argument).
layout_plan assign_layouts(graph_view const& g, graph_facts const& facts, cta_shape cta);

// -- what the algebra gives for one operation; used by the lowering too
// ------------------------------------------------

bit_space space_of(shape const& s);
/// The layout that a require_layout or assert_layout node names, for a tile of shape `s`; why it is none there (R-LY07) is written to
/// `why`.
std::optional<linear_layout> named_layout(register_layout const& r, shape const& s, cta_shape cta, std::string& why);
/// As shape:stride (layout/cute_text.hpp) where every bit moves by a power of two, else as its columns. The warp bits of the worked
/// example: 128 elements on 4 warps of 32 are `((_32,_4),_1):((_1,_32),_0)`.
std::string layout_text(linear_layout const& l, shape const& s);
struct layout_writer {
  std::string text;
  layout_writer& operator<<(char const* s) { return text += s, *this; }
  layout_writer& operator<<(std::int64_t n) { return text += std::to_string(n), *this; }
};
/// Of a require_layout or assert_layout node.
register_layout register_layout_of(graph_view const& g, int node);
/// Any layout, packed as described above; missing lane and warp bits become copies.
linear_layout normal_form(linear_layout const& l, cta_shape cta);
/// Without register bits that hold copies; `kept` gives the old register of each new one.
linear_layout without_register_copies(linear_layout const& l, std::vector<int>* kept = nullptr);
/// The layout in which the operand of a broadcast, reshape or transposition serves a user of its result.
linear_layout operand_layout(graph_view const& g, int node, linear_layout const& result, cta_shape cta);
/// The result's layout of a reshape or transposition that moves nothing.
linear_layout result_layout(graph_view const& g, int node, linear_layout const& operand, cta_shape cta);
/// The result's layout of a reduction of `l` along an axis (-1: all), extent 1 kept or not.
linear_layout reduced_layout(linear_layout const& l, shape const& from, int axis, shape const& to, cta_shape cta);
/// Whether a reshape renames packed coordinates. Otherwise (3x5 as 15: padding lies between the rows) data must move.
bool reshape_is_free(shape const& from, shape const& to);
/// A layout for scans along `axis`: one thread, then one warp, owns a contiguous piece wherever the tile allows it.
linear_layout scan_layout(shape const& s, int axis, cta_shape cta);
/// Blocks of 2^v by 2^w registers (along `fastest` and `second`), then lanes and warps along `fastest` and the others.
linear_layout square_layout(shape const& s, int fastest, int v, int second, int w, cta_shape cta);
/// An atomic that one instruction can do for several neighbouring elements, if the target has it.
bool adds_in_vectors(graph_view const& g, int node, cta_shape cta);
/// Register tiles of 4 x 4 for products without a matrix unit.
linear_layout product_layout(shape const& s, cta_shape cta);
linear_layout scalar_layout(cta_shape cta);

} // namespace kiln::jit
