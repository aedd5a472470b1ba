// Who acts where several threads hold the same element.
#pragma once

#include "kiln/layout/linear_layout.hpp"

namespace kiln {

/// Input bits that add nothing to the image, packed by `l.in`. A hardware point is an *owner* iff all of them are 0;
/// the owners hold every element exactly once. Stores, atomics, scans, reductions to memory and printing run under
/// `(lane & free_lane) == 0 && (warp & free_warp) == 0` and skip registers with free bits.
///
/// The bits are eliminated in the order lanes, warps, ctas, registers, so that a duplicate between a lane and a
/// register drops the register (fewer instructions) and not the lane. Dependent means more than zero: lane bits (0,1)
/// (0,2) and warp bit (0,3) make the warp bit free.
constexpr f2_word free_bits(const linear_layout& l) {
  f2_solver s;
  f2_word r = 0;
  for (layout_dim d : {layout_dim::lane, layout_dim::warp, layout_dim::cta, layout_dim::reg})
    for (int i = 0; i < l.in.bits(d); ++i)
      if (!s.add(l.basis(d, i))) r |= l.in.put(d, f2_unit(i));
  return r;
}

/// The owner's conditions by field: a thread acts iff none of its index bits is in the mask of its field.
struct owner_masks {
  f2_word reg = 0, lane = 0, warp = 0, cta = 0;
  constexpr bool unique() const { return !(reg | lane | warp | cta); }
  bool operator==(const owner_masks&) const = default;
};
constexpr owner_masks owners(const linear_layout& l) {
  f2_word f = free_bits(l);
  return {l.in.get(f, layout_dim::reg), l.in.get(f, layout_dim::lane), l.in.get(f, layout_dim::warp),
          l.in.get(f, layout_dim::cta)};
}

} // namespace kiln
