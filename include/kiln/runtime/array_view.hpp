// What an `array` parameter of a kernel takes on the host: a pointer with extents and strides, checked against the
// buffer where there is one.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "kiln/dtype/dtype.hpp"
#include "kiln/runtime/error.hpp"
#include "kiln/runtime/grid.hpp"

namespace kiln {

template <class T> class buffer;

/// A window of device memory: element (i0, i1, ...) lies at data + i0 * strides[0] + i1 * strides[1] + ...
/// Units: elements. Strides may be 0 (repeat) or negative. `T` may be const.
template <class T, int Rank> struct array_view {
  using element_type = T;
  static constexpr int rank = Rank;

  T* data = nullptr;
  std::array<i64, Rank> shape{};
  std::array<i64, Rank> strides{};

  constexpr i64 extent(int axis) const { return shape[static_cast<std::size_t>(axis)]; }
  constexpr i64 stride(int axis) const { return strides[static_cast<std::size_t>(axis)]; }

  constexpr operator array_view<T const, Rank>() const requires(!std::is_const_v<T>) { return {data, shape, strides}; }
};

namespace detail {

// The smallest and largest element offset that a view touches; nothing for an empty view.
struct offset_range {
  i64 lowest = 0;
  i64 highest = 0;
  bool empty = false;
  bool overflow = false;
};

KILN_API offset_range touched_offsets(i64 const* shape, i64 const* strides, int rank) noexcept;

// Throws unless the view lies inside [0, elements); `elements` < 0 means that the size is not known.
KILN_API void check_view(i64 const* shape, i64 const* strides, int rank, i64 elements, char const* what);

template <class T, std::size_t Rank>
array_view<T, static_cast<int>(Rank)> strided_view(T* data, i64 elements, i64 const (&shape)[Rank],
                                                   i64 const (&strides)[Rank]) {
  check_view(shape, strides, static_cast<int>(Rank), elements, "strided");
  return {data, std::to_array(shape), std::to_array(strides)};
}

} // namespace detail

/// A view with explicit strides: `strided(x, {rows, cols}, {cols, 1})`.
/// Units: elements. Errors: kiln::error for a negative extent, for offsets beyond 64 bits, and, where `x` is a buffer,
/// if the view leaves it.
template <class T, std::size_t Rank>
array_view<T, static_cast<int>(Rank)> strided(buffer<T>& x, i64 const (&shape)[Rank], i64 const (&strides)[Rank]) {
  return detail::strided_view(x.data(), x.size(), shape, strides);
}
template <class T, std::size_t Rank>
array_view<T const, static_cast<int>(Rank)> strided(buffer<T> const& x, i64 const (&shape)[Rank],
                                                    i64 const (&strides)[Rank]) {
  return detail::strided_view(x.data(), x.size(), shape, strides);
}
template <class T, std::size_t Rank>
array_view<T, static_cast<int>(Rank)> strided(device_ptr<T> x, i64 const (&shape)[Rank], i64 const (&strides)[Rank]) {
  return detail::strided_view(x.pointer, -1, shape, strides);
}
template <class T, std::size_t Rank>
array_view<T, static_cast<int>(Rank)> strided(T* x, i64 const (&shape)[Rank], i64 const (&strides)[Rank]) {
  return detail::strided_view(x, -1, shape, strides);
}

} // namespace kiln
