// Layouts of shape:stride on named axes: which lanes, warps, registers or bytes hold an element. Constant-expression values.
//
//   layout::S<32, 8>({1, layout::axis::lane}, 1)        element (i, j) of a 32 x 8 tile: lane i, register j
//   layout::S<8, 2, 4, 2>({4, lane}, {1, warp}, {1, lane}, 1) + layout::R<2>({4, warp}) + layout::O{warp, 5}
//
// The row-major number of an element is taken apart into digits of the extents, the last one fastest; digit times stride is added
// to the digit's axis. Replicas (R) say that the element is in several places, offsets (O) add a constant. Worked example, the
// second line for an 8 x 16 tile: (i, j) is in lane 4i + (j / 2) % 4, warps j / 8 + 5 and j / 8 + 9, register j % 2.
#pragma once
#include <cstdint>

namespace kiln {

namespace layout {

/// What a stride moves along: memory or registers (m), threads by their several numbers, tensor memory, CTAs of a cluster.
enum class axis : std::uint8_t { m, lane, warp, tid, tid_in_wg, tlane, tcol, cta };

/// A stride; a number alone is along m.
struct step {
  std::int32_t stride;
  axis on;
  constexpr step(std::int32_t s, axis a = axis::m) : stride(s), on(a) {}
};

} // namespace layout

struct axis_layout {
  static constexpr int most_modes = 8, most_replicas = 3, axes = 8;
  struct mode {
    std::int32_t extent = 1, stride = 0;
    layout::axis on = layout::axis::m;
  };
  /// One place of an element: a coordinate on every axis.
  struct place {
    std::int64_t of[axes]{};
    constexpr std::int64_t operator[](layout::axis a) const { return of[static_cast<int>(a)]; }
    friend constexpr bool operator==(place const&, place const&) = default;
  };

  mode shard[most_modes]{}, replica[most_replicas]{};
  int modes = 0, replicas = 0;
  std::int32_t offset[axes]{};

  constexpr std::int64_t size() const {
    std::int64_t n = 1;
    for (int i = 0; i < modes; ++i) n *= shard[i].extent;
    return n;
  }
  /// Places of each element.
  constexpr std::int64_t copies() const {
    std::int64_t n = 1;
    for (int i = 0; i < replicas; ++i) n *= replica[i].extent;
    return n;
  }
  /// Place number `copy` of the element with this row-major number.
  constexpr place apply(std::int64_t number, std::int64_t copy = 0) const {
    place p;
    for (int a = 0; a < axes; ++a) p.of[a] = offset[a];
    for (int i = modes - 1; i >= 0; --i) {
      p.of[static_cast<int>(shard[i].on)] += number % shard[i].extent * shard[i].stride;
      number /= shard[i].extent;
    }
    for (int i = replicas - 1; i >= 0; --i) {
      p.of[static_cast<int>(replica[i].on)] += copy % replica[i].extent * replica[i].stride;
      copy /= replica[i].extent;
    }
    return p;
  }
  /// One past the last place on an axis.
  constexpr std::int64_t span(layout::axis a) const {
    std::int64_t last = offset[static_cast<int>(a)];
    for (int i = 0; i < modes; ++i)
      if (shard[i].on == a) last += static_cast<std::int64_t>(shard[i].extent - 1) * shard[i].stride;
    for (int i = 0; i < replicas; ++i)
      if (replica[i].on == a) last += static_cast<std::int64_t>(replica[i].extent - 1) * replica[i].stride;
    return last + 1;
  }
  /// Elements of memory that it takes.
  constexpr std::int64_t cosize() const { return span(layout::axis::m); }
  /// Modes in another order: mode d of the result is mode `order[d]`. Of a layout with one mode for each axis of a shape this permutes
  /// the shape's axes.
  template <int... Order>
  constexpr axis_layout permute() const {
    axis_layout r = *this;
    int d = 0;
    ((r.shard[d++] = shard[Order]), ...);
    return r;
  }
  /// The same map, whatever its spelling: every element in the same set of places.
  friend constexpr bool operator==(axis_layout const& x, axis_layout const& y) {
    if (x.size() != y.size() || x.copies() != y.copies()) return false;
    for (std::int64_t e = 0; e < x.size(); ++e)
      for (std::int64_t c = 0; c < x.copies(); ++c) {
        bool found = false;
        for (std::int64_t d = 0; d < y.copies() && !found; ++d) found = x.apply(e, c) == y.apply(e, d);
        if (!found) return false;
      }
    return true;
  }
};

namespace layout {

template <int>
using step_of_mode = step;

/// Digits of these extents, with one stride each.
template <int... E>
constexpr axis_layout S(step_of_mode<E>... steps) {
  static_assert(sizeof...(E) <= axis_layout::most_modes, "kiln[R-LY01] a layout has at most 8 modes");
  static_assert(((E >= 1) && ...), "kiln[R-LY01] extents of a layout are at least 1");
  axis_layout l;
  ((l.shard[l.modes++] = {E, steps.stride, steps.on}), ...);
  return l;
}
struct replica_list {
  axis_layout::mode of[axis_layout::most_replicas]{};
  int count = 0;
};
/// Copies: `R<2>({4, axis::warp})` is at +0 and +4 along the warps.
template <int... E>
constexpr replica_list R(step_of_mode<E>... steps) {
  static_assert(sizeof...(E) <= axis_layout::most_replicas, "kiln[R-LY01] a layout has at most 3 replicas");
  replica_list r;
  ((r.of[r.count++] = {E, steps.stride, steps.on}), ...);
  return r;
}
/// A constant along an axis.
struct O {
  axis on;
  std::int32_t value;
};
constexpr axis_layout operator+(axis_layout l, replica_list const& r) {
  for (int i = 0; i < r.count && l.replicas < axis_layout::most_replicas; ++i) l.replica[l.replicas++] = r.of[i];
  return l;
}
constexpr axis_layout operator+(axis_layout l, O const& o) {
  l.offset[static_cast<int>(o.on)] += o.value;
  return l;
}

} // namespace layout
} // namespace kiln
