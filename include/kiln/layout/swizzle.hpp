// Shared-memory layouts that spread rows over banks: XOR swizzles, the tiles that TMA and wgmma read, and padding.
#pragma once

#include "kiln/layout/linear_layout.hpp"

namespace kiln {

/// swizzle<B, M, S> on an offset of `bits` bits: bits [M, M+B) ^= bits [M+S, M+S+B). An involution.
/// Errors: S < B.
constexpr linear_layout swizzle_layout(int b, int m, int s, int bits) {
  detail::layout_require(b >= 0 && m >= 0 && s >= b, "a swizzle<B, M, S> needs S >= B, so that it is its own inverse");
  linear_layout r = identity_layout(layout_dim::offset, layout_dim::offset, bits);
  for (int i = m + s; i < m + s + b && i < bits; ++i) r.col[i] |= f2_unit(i - s);
  return r;
}

/// Rows one after the other: offset -> coordinate is the identity on packed words.
constexpr linear_layout row_major_tile(const bit_space& tile) {
  linear_layout r = zero_map({{layout_dim::offset, std::uint8_t(tile.total())}}, tile);
  for (int i = 0; i < tile.total(); ++i) r.col[i] = f2_unit(i);
  return r;
}

/// The shared tile of TMA and wgmma: column panels of W bytes, the rows of a panel one after the other, and 16-byte
/// chunks XORed with address bits 7 and up. Offset (in elements) -> coordinate.
/// Units: everything log2: `width` of W in bytes (5, 6, 7; 4 is not swizzled), `elem` of the element's bytes, `rows`
/// and `cols` in elements.
/// Errors: a row shorter than one panel.
constexpr linear_layout swizzled_tile(int width, int elem, int rows, int cols) {
  int w = width - elem;
  detail::layout_require(width >= 4 && width <= 7, "a swizzle width is 16 (none), 32, 64 or 128 bytes");
  detail::layout_require(w >= 0 && cols >= w, "a row of a swizzled tile holds at least one panel");
  using enum layout_dim;
  linear_layout l =
      identity_layout(offset, d1, w) * identity_layout(offset, d0, rows) * identity_layout(offset, d1, cols - w);
  l = reorder_out(l, tile_space(rows, cols));
  for (int i = 7 - elem; i < 7 - elem + width - 4 && i < w + rows; ++i) l.col[i] |= l.out.put(d1, f2_unit(i - 3));
  return l;
}

/// Padding is not linear: it is applied to the finished offset. x becomes x + (x / interval) * pad, in elements, and
/// vectors are capped by both numbers. `pad(x + y) == pad(x) + pad(y)` where x and y share no bits.
struct offset_padding {
  int interval_log2 = 0, pad = 0;

  constexpr std::int64_t operator()(std::int64_t x) const { return x + (x >> interval_log2) * pad; }
  /// Elements that a buffer of `elements` needs: one past the image of the last one.
  constexpr std::int64_t cosize(std::int64_t elements) const { return elements < 1 ? 0 : (*this)(elements - 1) + 1; }
  /// log2 of the widest vector, in elements, that padding neither cuts nor misaligns.
  constexpr int width_limit() const {
    if (pad == 0) return 30;
    int align = std::countr_zero(unsigned(pad));
    return align < interval_log2 ? align : interval_log2;
  }
  bool operator==(const offset_padding&) const = default;
};

} // namespace kiln
