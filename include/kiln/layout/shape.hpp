// From extents to bit spaces: tiles of any size are rounded up to powers of two, axis by axis.
#pragma once

#include "kiln/layout/linear_layout.hpp"

#include <span>

namespace kiln {

/// Smallest k with 2^k >= n.
/// Errors: n < 1.
constexpr int log2_ceil(std::int64_t n) {
  detail::layout_require(n >= 1, "an extent is at least 1");
  return std::bit_width(std::uint64_t(n) - 1);
}
/// k with 2^k == n, or nothing.
constexpr std::optional<int> log2_exact(std::int64_t n) {
  if (n < 1 || !std::has_single_bit(std::uint64_t(n))) return {};
  return std::countr_zero(std::uint64_t(n));
}

/// The padded space of a tile, the last axis in the lowest bits.
/// Shapes: up to 8 axes, any extents >= 1; rank 0 is the space of a scalar, with no bits.
constexpr bit_space tile_space(std::span<const std::int64_t> extents) {
  detail::layout_require(extents.size() <= 8, "a tile has at most 8 axes");
  bit_space s;
  for (int i = int(extents.size()) - 1; i >= 0; --i) s = s.with(axis_dim(i), log2_ceil(extents[std::size_t(i)]));
  return s;
}
constexpr bit_space tile_space(std::initializer_list<std::int64_t> extents) {
  return tile_space(std::span<const std::int64_t>(extents.begin(), extents.size()));
}

/// The packed coordinate of `index` (one entry per axis) in `s`.
constexpr f2_word pack_coordinate(const bit_space& s, std::span<const std::int64_t> index) {
  f2_word r = 0;
  for (std::size_t i = 0; i < index.size(); ++i) r |= s.put(axis_dim(int(i)), f2_word(index[i]));
  return r;
}

/// True where a layout of this space also covers coordinates outside the tile, so that accesses need a mask.
constexpr bool is_padded(std::span<const std::int64_t> extents) {
  for (std::int64_t e : extents)
    if (!log2_exact(e)) return true;
  return false;
}

} // namespace kiln
