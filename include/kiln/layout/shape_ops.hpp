// What shape operations do to a layout. None of them moves data: each is a renaming of output bits, or more registers.
#pragma once

#include "kiln/layout/linear_layout.hpp"

#include <span>

namespace kiln {

/// Axis i of the result is axis `order[i]` of the argument.
/// Shapes: `order` is a permutation of all axes.
constexpr linear_layout permute_layout(const linear_layout& l, std::span<const int> order) {
  detail::layout_require(int(order.size()) == l.out.rank, "a permutation names every axis once");
  linear_layout named = l;
  bit_space target;
  for (int i = int(order.size()) - 1; i >= 0; --i)
    target = target.with(axis_dim(i), l.out.bits(axis_dim(order[std::size_t(i)])));
  detail::layout_require(target.total() == l.out.total(), "a permutation names every axis once");
  for (int k = 0; k < l.out.rank; ++k)
    for (std::size_t i = 0; i < order.size(); ++i)
      if (l.out.fields[k].name == axis_dim(order[i])) named.out.fields[k].name = axis_dim(int(i));
  return reorder_out(named, target);
}
constexpr linear_layout permute_layout(const linear_layout& l, std::initializer_list<int> order) {
  return permute_layout(l, std::span<const int>(order.begin(), order.size()));
}
/// Exchanges the axes of a rank-2 layout.
constexpr linear_layout transpose_layout(const linear_layout& l) { return permute_layout(l, {1, 0}); }

/// Row-major reshape: the packed word is the row-major index, so only the list of fields changes.
/// Shapes: both padded tiles have the same number of elements, and `l.out` lists its last axis first.
constexpr linear_layout reshape_layout(linear_layout l, const bit_space& tile) {
  detail::layout_require(l.out.total() == tile.total(), "a reshape keeps the number of elements");
  for (int k = 1; k < l.out.rank; ++k)
    detail::layout_require(l.out.fields[k].name < l.out.fields[k - 1].name, "a reshape needs a row-major packed tile");
  l.out = tile;
  return l;
}

/// A new axis of extent 1 at position `axis`; later axes move up by one.
constexpr linear_layout expand_layout(const linear_layout& l, int axis) {
  linear_layout r = l;
  bit_space order;
  for (int k = 0; k < l.out.rank; ++k)
    if (int i = axis_index(l.out.fields[k].name); i >= axis) r.out.fields[k].name = axis_dim(i + 1);
  for (int i = l.out.rank; i >= 0; --i) order = order.with(axis_dim(i), r.out.bits(axis_dim(i)));
  return reorder_out(r, order);
}

/// The layout in which a broadcast's source can serve a consumer without moving: the consumer's layout with the bits of
/// `axis` zeroed (extent 1). Convert the source to it, then read registers again for each copy.
constexpr linear_layout zero_axis(const linear_layout& consumer, layout_dim axis) {
  return reorder_out(consumer, consumer.out.with(axis, 0));
}

/// Repeats an axis of extent 1 in new registers: `2^bits` copies side by side.
constexpr linear_layout repeat_in_registers(const linear_layout& l, layout_dim axis, int bits) {
  return l * identity_layout(layout_dim::reg, axis, bits);
}

/// The layout of a reduction's result: `axis` is dropped and later axes keep their names (see `remove_axis`). The lanes
/// that held the axis now hold copies.
constexpr linear_layout slice_layout(const linear_layout& l, layout_dim axis) {
  bit_space order;
  for (int k = 0; k < l.out.rank; ++k)
    if (l.out.fields[k].name != axis) order = order.with(l.out.fields[k].name, l.out.fields[k].bits);
  return reorder_out(l, order);
}
/// `slice_layout`, and the axes after the dropped one are renamed so that they are numbered from 0 without a gap.
constexpr linear_layout remove_axis(const linear_layout& l, int axis) {
  linear_layout r = slice_layout(l, axis_dim(axis));
  for (int k = 0; k < r.out.rank; ++k)
    if (int i = axis_index(r.out.fields[k].name); i > axis) r.out.fields[k].name = axis_dim(i - 1);
  return r;
}

/// A new minor axis of extent 2, held by a new lowest register bit.
constexpr linear_layout join_layout(const linear_layout& l, layout_dim axis) {
  return identity_layout(layout_dim::reg, axis, 1) * l;
}
/// The register bit that alone holds `axis` (of extent 2), so that a split needs no data movement; -1: convert first.
constexpr int split_register(const linear_layout& l, layout_dim axis) {
  int found = -1;
  f2_word m = l.out.mask(axis);
  for (int i = 0; i < l.in.total(); ++i) {
    if (!(l.col[i] & m)) continue;
    int r = i - l.in.shift(layout_dim::reg);
    if (l.col[i] != m || r < 0 || r >= l.in.bits(layout_dim::reg) || found >= 0) return -1;
    found = r;
  }
  return found;
}

} // namespace kiln
