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
  /// The element at a place, for a layout that puts one element at each. The number of a place counts through the axes in the order
  /// of `layout::axis`, the first fastest: registers (m), then lanes, then warps. Worked example: S<4, 8>(1, 4) puts element 8i + j at
  /// i + 4j; its inverse is S<8, 4>(1, 8), element (p / 4) + 8 (p % 4) of place p.
  /// Errors: R-LY01 replicas, an offset, a place without an element or with two.
  constexpr axis_layout inverse() const {
    axis_layout r;
    if (replicas != 0) throw "kiln[R-LY01] a layout with replicas has no inverse: an element is in several places";
    for (std::int32_t o : offset)
      if (o != 0) throw "kiln[R-LY01] a layout with an offset has no inverse: the places below it hold nothing";
    bool used[most_modes]{};
    std::int32_t inside[most_modes]{}; // how many elements a digit counts
    std::int32_t inner = 1;
    for (int i = modes - 1; i >= 0; --i) {
      inside[i] = inner;
      inner *= shard[i].extent;
      used[i] = shard[i].extent == 1;
    }
    mode backwards[most_modes]{};
    for (int a = 0; a < axes; ++a)
      for (std::int32_t reach = 1;;) { // places of the axis that the digits so far fill
        int next = -1;
        bool more = false;
        for (int i = 0; i < modes; ++i) {
          if (used[i] || static_cast<int>(shard[i].on) != a) continue;
          more = true;
          if (shard[i].stride == reach) next = i;
        }
        if (!more) break;
        if (next < 0) throw "kiln[R-LY01] the layout has no inverse: its strides leave places without an element, or with two";
        used[next] = true;
        backwards[r.modes++] = {shard[next].extent, inside[next], layout::axis::m};
        reach *= shard[next].extent;
      }
    for (int i = 0; i < r.modes; ++i) r.shard[i] = backwards[r.modes - 1 - i];
    return r;
  }
  /// First `b`, a layout in memory, then this one: element x lies where this layout puts element b(x). Worked example: with
  /// b = S<4, 8>(1, 4), a column-major 4 x 8 tile, S<8, 4>({1, lane}, 1).compose(b) is S<4, 8>(1, {1, lane}): row i in register i.
  /// Errors: R-LY01 places of b that are no elements of this layout, or cut through its digits; replicas or offsets in b; over 8 digits.
  constexpr axis_layout compose(axis_layout const& b) const {
    if (b.replicas != 0) throw "kiln[R-LY01] compose takes a layout without replicas inside";
    for (int a = 0; a < axes; ++a)
      if (b.offset[a] != 0) throw "kiln[R-LY01] compose takes a layout without offsets inside; add them to the result";
    axis_layout r;
    r.replicas = replicas;
    for (int i = 0; i < replicas; ++i) r.replica[i] = replica[i];
    for (int a = 0; a < axes; ++a) r.offset[a] = offset[a];
    std::int64_t reached[most_modes]{}; // by each digit of this layout; beyond its extent it would carry into the next
    mode backwards[most_modes]{};
    auto put = [&](mode const& m) {
      if (r.modes == most_modes) throw "kiln[R-LY01] the composition has more than 8 digits";
      backwards[r.modes++] = m;
    };
    for (int i = b.modes - 1; i >= 0; --i) {
      if (b.shard[i].on != layout::axis::m) throw "kiln[R-LY01] compose takes a layout in memory (axis m) inside; its places are elements of the outer one";
      std::int64_t left = b.shard[i].extent, step = b.shard[i].stride, inside = 1;
      if (left == 1 || step == 0) {
        put({static_cast<std::int32_t>(left), 0, layout::axis::m});
        continue;
      }
      for (int d = modes - 1; d >= 0 && left > 1; --d) { // the digit counts through one or more of the outer layout's
        std::int64_t const e = shard[d].extent, within = step / inside;
        if (step % inside != 0 || within < e) {
          if (step % inside != 0 || e % within != 0 || (left > e / within && left % (e / within) != 0))
            throw "kiln[R-LY01] a digit of the inner layout cuts through digits of the outer one; split its extents";
          std::int64_t const take = left < e / within ? left : e / within;
          put({static_cast<std::int32_t>(take), static_cast<std::int32_t>(within) * shard[d].stride, shard[d].on});
          reached[d] += (take - 1) * within;
          if (reached[d] >= e) throw "kiln[R-LY01] two digits of the inner layout overlap in one of the outer one";
          left /= take;
          step *= take;
        }
        inside *= e;
      }
      if (left > 1) throw "kiln[R-LY01] the inner layout reaches beyond the elements of the outer one";
    }
    for (int i = 0; i < r.modes; ++i) r.shard[i] = backwards[r.modes - 1 - i];
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
