// Reductions and scans along an axis: which steps happen in registers, by shuffles, across warps and across CTAs.
#pragma once

#include "kiln/layout/shape_ops.hpp"

namespace kiln {

/// One butterfly step: hardware point x combines with x ^ delta. Among the two, the first operand of a combine that
/// does not commute is the one whose coordinate has a 0 in the lowest set bit of `direction`.
struct reduction_step {
  layout_dim level = layout_dim::none; // the farthest level the delta touches: reg, lane, warp or cta
  f2_word delta = 0;                   // packed by the layout's `in`
  f2_word direction = 0;               // what the delta adds to the coordinate, packed by the layout's `out`
  bool operator==(const reduction_step&) const = default;
};

struct reduction_plan {
  std::array<reduction_step, 32> step{};
  int steps = 0;
  linear_layout result; // `slice_layout`: the axis is dropped, the lanes that held it hold copies

  constexpr const reduction_step* begin() const { return step.data(); }
  constexpr const reduction_step* end() const { return step.data() + steps; }
  constexpr int count(layout_dim level) const {
    int n = 0;
    for (const reduction_step& s : *this) n += s.level == level;
    return n;
  }
};

/// A reduction along `axis`. Each level does what it can reach: first the directions within a thread's registers, then
/// lanes, warps and CTAs. Copies are not directions of the axis, so nothing is counted twice (reducing over all lane
/// bits would). A delta with register *and* lane bits reads another register of the other lane: still static.
/// The order of the steps fixes the summation tree of floating point.
///
/// `ordered` keeps the axis' order, as scans and combines that are associative but do not commute need: step i joins
/// aligned runs of 2^i elements, so after it every point holds the combine of its run of 2^(i+1). A scan keeps the pair
/// (prefix, total of the run): points with axis bit i set put the other's total in front of their prefix.
///
/// Errors: the layout does not hold the whole axis. Apply `free_bits` to the result before storing it.
constexpr reduction_plan plan_reduction(const linear_layout& l, layout_dim axis, bool ordered = false) {
  constexpr layout_dim levels[] = {layout_dim::reg, layout_dim::lane, layout_dim::warp, layout_dim::cta};
  f2_vectors units, reach;
  for (int i = 0; i < l.out.bits(axis); ++i) units.push(l.out.put(axis, f2_unit(i)));
  reduction_plan r;
  f2_solver hardware, done;
  for (layout_dim level : levels) {
    for (int i = 0; i < l.in.bits(level); ++i) hardware.add(l.basis(level, i), l.in.put(level, f2_unit(i)));
    if (ordered) continue;
    reach = reach + l.columns({level});
    for (f2_word x : f2_intersect(reach, units))
      if (done.add(x)) r.step[r.steps++] = {level, *hardware.solve(x), x};
  }
  if (ordered)
    for (f2_word x : units) {
      std::optional<f2_word> delta = hardware.solve(x);
      if (!delta) break;
      reduction_step s{layout_dim::none, *delta, x};
      for (layout_dim level : levels)
        if (*delta & l.in.mask(level)) s.level = level;
      r.step[r.steps++] = s;
    }
  detail::layout_require(r.steps == units.n, "a reduction needs a layout that holds the whole axis");
  r.result = slice_layout(l, axis);
  return r;
}

/// The tile of partial results after the first `done` steps: `axis` has shrunk to 2^(steps - done) and every element of
/// it is the combine of one class. To finish across warps, convert it (through shared memory) to a layout that holds
/// the rest of the axis in registers, `repeat_in_registers(zero_axis(partials, axis), axis, steps - done)` or any
/// other, and combine there. After an ordered plan, partial i is the combine of the run that starts at i * 2^done.
constexpr linear_layout partials_layout(const linear_layout& l, layout_dim axis, const reduction_plan& p, int done) {
  f2_solver classes;
  for (int i = 0; i < p.steps; ++i) {
    const reduction_step& s = p.step[std::size_t(i)];
    classes.add(l.out.get(s.direction, axis), i < done ? 0 : f2_unit(i - done));
  }
  linear_layout r = reorder_out(l, l.out.with(axis, p.steps - done));
  for (int i = 0; i < l.in.total(); ++i) {
    f2_word rest = r.col[std::size_t(i)] & ~r.out.mask(axis);
    r.col[std::size_t(i)] = rest | r.out.put(axis, classes.solve(l.out.get(l.col[std::size_t(i)], axis)).value_or(0));
  }
  return r;
}

} // namespace kiln
