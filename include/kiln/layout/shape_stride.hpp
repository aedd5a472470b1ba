// Shape:stride layouts as linear maps, where they are linear.
#pragma once

#include "kiln/layout/linear_layout.hpp"

#include <span>

namespace kiln {

/// One mode of a shape:stride layout: 2^extent_log2 steps of `stride`.
struct stride_mode {
  int extent_log2, stride;
};

/// (2^e0, 2^e1, ..) : (s0, s1, ..), the first mode in the lowest input bits. A mode contributes the columns s, 2s, ..,
/// 2^(e-1)s; stride 0 contributes copies. Nothing where an addition could carry (4:3 has 3 + 6): such a map is affine
/// over the integers and not linear over F2. Nothing either where a column does not fit into `out_bits`.
constexpr layout_opt shape_stride(layout_dim in, layout_dim out, std::span<const stride_mode> modes, int out_bits) {
  int n = 0;
  f2_word seen = 0;
  for (stride_mode m : modes) n += m.extent_log2;
  linear_layout r = zero_map({{in, std::uint8_t(n)}}, {{out, std::uint8_t(out_bits)}});
  n = 0;
  for (stride_mode m : modes) {
    if (m.stride < 0) return {};
    for (int i = 0; i < m.extent_log2; ++i) {
      f2_word c = f2_word(m.stride) << i;
      if ((c & seen) || (c >> out_bits)) return {};
      seen |= c, r.col[n++] = c;
    }
  }
  return r;
}
constexpr layout_opt shape_stride(layout_dim in, layout_dim out, std::initializer_list<stride_mode> modes,
                                  int out_bits) {
  return shape_stride(in, out, std::span<const stride_mode>(modes.begin(), modes.size()), out_bits);
}

} // namespace kiln
