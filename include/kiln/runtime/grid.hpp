// How much is launched, and the small types that a launch takes beside buffers.
#pragma once

#include "kiln/dtype/dtype.hpp"
#include "kiln/dtype/integer_math.hpp"

namespace kiln {

/// The number of CTAs of a launch along each axis. Zero on any axis is a launch of nothing.
/// Errors: none here; a negative number, or one over the limit of its axis (`largest_grid`), is refused by the launch.
struct grid {
  i64 x = 1;
  i64 y = 1;
  i64 z = 1;

  constexpr grid() = default;
  constexpr explicit grid(i64 x_ctas, i64 y_ctas = 1, i64 z_ctas = 1) : x(x_ctas), y(y_ctas), z(z_ctas) {}

  friend constexpr bool operator==(grid const&, grid const&) = default;
};

/// The limits of CUDA, which hold on every device, so that a launch that works on one works on all.
inline constexpr grid largest_grid{(i64{1} << 31) - 1, 65535, 65535};

/// A pointer into device memory that somebody else allocated, to be passed to a kernel. `T` may be const.
template <class T> struct device_ptr {
  using element_type = T;
  T* pointer = nullptr;

  constexpr device_ptr() = default;
  constexpr explicit device_ptr(T* p) : pointer(p) {}
  /// From a driver's integer address (CUdeviceptr).
  static device_ptr from_address(u64 address) { return device_ptr(reinterpret_cast<T*>(address)); }
};
template <class T> device_ptr(T*) -> device_ptr<T>;

} // namespace kiln
