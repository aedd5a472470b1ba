// Blocked layouts: runs of elements in registers, then lanes, then warps; and the one a tile gets by default.
#pragma once

#include "kiln/layout/shape.hpp"

#include <algorithm>

namespace kiln {

/// Sizes of a rank-2 blocked layout, all log2, indexed by axis. `order` lists the axes from the fastest.
struct blocked_spec {
  std::array<int, 2> elems, lanes, warps, order{1, 0};
};
/// Elements, then lanes, then warps along each axis in turn; repeated in registers or wrapped to copies to fit `tile`.
constexpr linear_layout blocked_layout(const blocked_spec& b, const bit_space& tile) {
  using enum layout_dim;
  linear_layout l = zero_map({{reg, 0}, {lane, 0}, {warp, 0}}, {{d1, 0}, {d0, 0}});
  for (int o : b.order) l = l * identity_layout(reg, axis_dim(o), b.elems[o]);
  for (int o : b.order) l = l * identity_layout(lane, axis_dim(o), b.lanes[o]);
  for (int o : b.order) l = l * identity_layout(warp, axis_dim(o), b.warps[o]);
  return fit(l, tile);
}

/// How `default_blocked_layout` places a tile.
struct blocked_request {
  int element_bits = 32;           // storage bits; below 8 counts as one byte
  int num_warps = 4;               // a power of two
  int warp_size = 32;              // 32 or 64
  std::span<const int> order = {}; // axes from the fastest; empty: row-major, the last axis first
  int max_vector_bytes = 16;       // a power of two; the widest run of registers along the fastest axis
};

/// The layout a tile has where nothing else decides: registers contiguous along the fastest axis (at most 16 bytes, and
/// no more than keeps every thread busy), then lanes along the axes in order, then warps, then the remaining registers.
/// Where the tile is smaller than the CTA the left-over lane and warp bits get zero columns, which means copies.
///
/// Shapes: any extents >= 1, up to 8 axes; the layout covers the tile rounded up to powers of two. The input fields are
/// reg, lane, warp in this order, all present; the output space is `tile_space(extents)`.
/// Errors: a number of warps, warp size or vector size that is not a power of two; an order that is no permutation.
constexpr linear_layout default_blocked_layout(std::span<const std::int64_t> extents, const blocked_request& q) {
  std::optional<int> warp_bits = log2_exact(q.num_warps), lane_bits = log2_exact(q.warp_size);
  std::optional<int> vector_bytes = log2_exact(q.max_vector_bytes);
  detail::layout_require(warp_bits.has_value(), "a layout needs a power of two of warps");
  detail::layout_require(lane_bits.has_value(), "a layout needs a warp size that is a power of two");
  detail::layout_require(vector_bytes.has_value(), "a vector has a power of two of bytes");
  const int rank = int(extents.size());
  detail::layout_require(q.order.empty() || int(q.order.size()) == rank, "an axis order names every axis once");
  std::array<int, 8> order{};
  unsigned named = 0;
  for (int i = 0; i < rank; ++i) {
    order[i] = q.order.empty() ? rank - 1 - i : q.order[std::size_t(i)];
    detail::layout_require(order[i] >= 0 && order[i] < rank && !(named >> order[i] & 1),
                           "an axis order names every axis once");
    named |= 1u << order[i];
  }

  using enum layout_dim;
  bit_space tile = tile_space(extents);
  const int total = tile.total(), threads = *lane_bits + *warp_bits;
  const int elem = log2_ceil(std::max(8, q.element_bits)) - 3;
  const int fastest = rank ? tile.bits(axis_dim(order[0])) : 0;
  const int vector = std::max(0, std::min({*vector_bytes - elem, fastest, total - threads}));
  const int lanes = std::min(*lane_bits, total - vector), warps = std::min(*warp_bits, total - vector - lanes);

  std::array<f2_word, 60> bit{}; // the tile's bits in the order in which they are given away
  int n = 0;
  for (int i = 0; i < rank; ++i)
    for (int b = 0; b < tile.bits(axis_dim(order[i])); ++b) bit[n++] = tile.put(axis_dim(order[i]), f2_unit(b));
  linear_layout r = zero_map(
      {{reg, std::uint8_t(total - lanes - warps)}, {lane, std::uint8_t(*lane_bits)}, {warp, std::uint8_t(*warp_bits)}},
      tile);
  n = 0;
  for (int i = 0; i < vector; ++i) r.col[i] = bit[n++];
  for (int i = 0; i < lanes; ++i) r.col[r.in.shift(lane) + i] = bit[n++];
  for (int i = 0; i < warps; ++i) r.col[r.in.shift(warp) + i] = bit[n++];
  for (int i = vector; i < r.in.bits(reg); ++i) r.col[i] = bit[n++];
  return r;
}
constexpr linear_layout default_blocked_layout(std::initializer_list<std::int64_t> extents, const blocked_request& q) {
  return default_blocked_layout(std::span<const std::int64_t>(extents.begin(), extents.size()), q);
}

} // namespace kiln
