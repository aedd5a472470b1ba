// Layouts as one line of shape:stride, as CuTe writes them: `_N` is a static integer. What `k.dump_layout` shows and messages say.
//
// A slot: `(_8,_64):(_64,_1)`, swizzled `Swizzle<3,3,3> o (_8,_64):(_64,_1)`, padded `(_8,_64):(_64,_1) + 8 after every 64`. Registers:
// `((thread modes),(value modes)):(their strides)`, strides in elements of the row-major tile, `_0` for copies.
#pragma once
#include <kiln/layout/slot_layout.hpp>

namespace kiln::detail {

/// One list of modes, innermost first or as they stand; a list of one is written without brackets.
template <class Out>
constexpr void put_modes(Out& out, std::int64_t const* numbers, int count) {
  if (count != 1) out << "(";
  for (int i = 0; i < count; ++i) out << (i ? ",_" : "_") << numbers[i];
  if (count != 1) out << ")";
}

/// The layout of a slot of `s`, whose type has rank, extent[] and elements().
template <class Out, class Shape>
constexpr void put_slot_layout(Out& out, slot_layout const& l, Shape const& s) {
  if (l.bases > 0) { // no shape and stride: what each bit of the number moves by
    out << "bits:(";
    for (int i = 0; i < l.bases; ++i) out << (i ? "," : "") << "_" << l.basis[i];
    out << ")";
    return;
  }
  std::int64_t extent[8]{}, stride[8]{};
  int n = 0;
  if (l.modes > 0) {
    for (; n < l.modes; ++n) {
      extent[n] = l.mode[n].extent;
      stride[n] = l.mode[n].stride;
    }
  } else {
    n = s.rank;
    std::int64_t step = 1;
    for (int d = n - 1; d >= 0; --d) {
      extent[d] = s.extent[d];
      stride[d] = step;
      step *= s.extent[d];
    }
  }
  if (l.bits > 0) out << "Swizzle<" << l.bits << "," << l.base << "," << l.shift << "> o ";
  put_modes(out, extent, n);
  out << ":";
  put_modes(out, stride, n);
  for (int i = 0; i < l.paddings; ++i) out << (i ? " and " : " + ") << l.padding[i].pad << " after every " << l.padding[i].interval;
}

/// Bits that move by 2^bit[i] elements each (-1: copies), as modes: neighbours that continue each other are one.
template <class Out>
constexpr void put_bits(Out& extents, Out& strides, int const* bit, int count) {
  std::int64_t extent[64]{}, stride[64]{};
  int n = 0;
  for (int i = 0; i < count; ++i) {
    bool const joins = i > 0 && ((bit[i] < 0 && bit[i - 1] < 0) || (bit[i] >= 0 && bit[i] == bit[i - 1] + 1 && bit[i - 1] >= 0));
    if (joins) {
      extent[n - 1] *= 2;
      continue;
    }
    extent[n] = 2;
    stride[n++] = bit[i] < 0 ? 0 : std::int64_t{1} << bit[i];
  }
  if (n == 0) {
    extent[0] = 1;
    n = 1;
  }
  put_modes(extents, extent, n);
  put_modes(strides, stride, n);
}

} // namespace kiln::detail
