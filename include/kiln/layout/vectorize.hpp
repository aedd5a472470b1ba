// How many consecutive elements one access of a thread may take.
#pragma once

#include "kiln/layout/linear_layout.hpp"

#include <algorithm>

namespace kiln {

/// What is known about the addresses and the mask of an access, all log2; the default means "no limit".
struct access_facts {
  int contiguity = 30;  // elements of the runs of consecutive addresses
  int align_bytes = 30; // alignment of the start of each run
  int mask_run = 30;    // elements of the aligned runs in which the mask has one value (`col < n`: the 2-power in n)
};

struct vector_access {
  int width = 0;      // log2 elements of one access
  linear_layout regs; // new register index -> old: a static renumbering
};

/// The widest access along `axis`. Let e_i be the i-th unit vector of the axis. The width is the largest k with, for
/// all i < k: e_i in the span of the register columns, and no lane, warp or cta column with bit i of the axis. The
/// result renumbers registers so that bits 0..k-1 step through the vector and no other bit touches the position inside
/// it: the vector v is the (new) registers [v * 2^k, (v + 1) * 2^k).
///
/// The same function on `compose(layout, invert(smem))` and the offset axis gives shared-memory widths.
/// Units: `elem` is log2 of the element's bytes, `max_bytes` log2 of the widest access.
constexpr vector_access vectorize(const linear_layout& l, layout_dim axis, int elem, access_facts f = {},
                                  int max_bytes = 4) {
  using enum layout_dim;
  int nr = l.in.bits(reg), k = 0;
  int limit = std::min({max_bytes - elem, f.contiguity, f.align_bytes - elem, f.mask_run, l.out.bits(axis)});
  f2_solver registers;
  for (int i = 0; i < nr; ++i) registers.add(l.basis(reg, i), f2_unit(i));
  f2_word others = 0;
  for (f2_word c : l.columns({lane, warp, cta})) others |= l.out.get(c, axis);
  while (k < limit && !(others >> k & 1) && registers.contains(l.out.put(axis, f2_unit(k)))) ++k;

  vector_access r{k, zero_map({{reg, std::uint8_t(nr)}}, {{reg, std::uint8_t(nr)}})};
  f2_solver used;
  int n = 0;
  for (; n < k; ++n) used.add(r.regs.col[n] = *registers.solve(l.out.put(axis, f2_unit(n))));
  for (int i = 0; i < nr && n < nr; ++i) { // complete the basis, with the position bits cleared by the vector's own
    f2_word index = f2_unit(i), low = l.out.get(l.basis(reg, i), axis) & f2_low_mask(k);
    if (!used.add(index)) continue;
    for (int b = 0; b < k; ++b)
      if (low >> b & 1) index ^= r.regs.col[b];
    r.regs.col[n++] = index;
  }
  return r;
}

/// The layout seen through a register renumbering (new index -> old).
constexpr linear_layout renumber_registers(const linear_layout& l, const linear_layout& regs) {
  linear_layout r = l;
  for (int i = 0; i < l.in.bits(layout_dim::reg); ++i)
    r.col[l.in.shift(layout_dim::reg) + i] = l(l.in.put(layout_dim::reg, regs.col[i]));
  return r;
}

} // namespace kiln
