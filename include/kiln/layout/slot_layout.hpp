// Where the elements of one slot of a local buffer lie, as a number of elements from its start: strides, XOR swizzles, padding.
//
// The row-major number of an element is taken apart into the digits of `modes` (outermost first), whose digits times strides are
// added up; then swizzle<bits, base, shift>; then padding. Nothing set: row-major. Worked example, 8 x 64 elements of 2 bytes with
// swizzle<3, 3, 3>: element (i, j) lies at 64 i + 8 ((j / 8) ^ i) + j % 8.
#pragma once

#include <cstdint>

namespace kiln {

struct layout_mode {
  std::int32_t extent = 1, stride = 0;
  friend constexpr bool operator==(layout_mode const&, layout_mode const&) = default;
};
/// After every `interval` elements, `pad` unused ones.
struct layout_padding {
  std::int32_t interval = 0, pad = 0;
  friend constexpr bool operator==(layout_padding const&, layout_padding const&) = default;
};

struct slot_layout {
  static constexpr int most_modes = 6, most_paddings = 2, most_bases = 16;
  std::int32_t modes = 0, paddings = 0;
  layout_mode mode[most_modes]{};
  std::int32_t bits = 0, base = 0, shift = 0; ///< swizzle<bits, base, shift>, in elements
  std::int32_t offset = 0;                    ///< added to all places; only in tensor memory, with modes
  layout_padding padding[most_paddings]{};
  std::int32_t bases = 0; ///< instead of modes: bit i of the number moves by an XOR with basis[i]
  std::int32_t basis[most_bases]{};

  constexpr bool plain() const { return modes == 0 && bits == 0 && paddings == 0 && bases == 0; }
  constexpr bool padded() const { return paddings > 0; }
  /// Whether every bit of the place is an XOR of bits of the number: the algebra of bit matrices applies.
  constexpr bool linear() const {
    auto power = [](std::int32_t x) { return x > 0 && (x & (x - 1)) == 0; };
    for (int i = 0; i < modes; ++i)
      if (!power(mode[i].extent) || (mode[i].extent > 1 && !power(mode[i].stride))) return false;
    return paddings == 0;
  }
  constexpr std::int64_t strided(std::int64_t x) const {
    if (bases > 0) {
      std::int64_t y = 0;
      for (int i = 0; i < bases; ++i)
        if (x >> i & 1) y ^= basis[i];
      return y;
    }
    if (modes == 0) return x;
    std::int64_t y = offset;
    for (int i = modes - 1; i >= 0; --i) {
      y += x % mode[i].extent * mode[i].stride;
      x /= mode[i].extent;
    }
    return y;
  }
  constexpr std::int64_t swizzled(std::int64_t x) const { return x ^ (((x >> (base + shift)) & ((std::int64_t{1} << bits) - 1)) << base); }
  constexpr std::int64_t pad(std::int64_t x) const {
    std::int64_t y = x;
    for (int i = 0; i < paddings; ++i) y += x / padding[i].interval * padding[i].pad;
    return y;
  }
  /// The place of the element with this row-major number.
  constexpr std::int64_t operator()(std::int64_t number) const {
    std::int64_t x = strided(number);
    if (bits > 0) x = swizzled(x);
    return pad(x);
  }
  /// Elements that a slot of `elements` takes: one past the last place. A swizzle takes whole rounds of its pattern.
  constexpr std::int64_t cosize(std::int64_t elements) const {
    std::int64_t last = elements - 1;
    if (modes > 0) {
      last = offset;
      for (int i = 0; i < modes; ++i) last += static_cast<std::int64_t>(mode[i].extent - 1) * mode[i].stride;
    }
    for (int i = 0; i < bases; ++i) last |= basis[i];
    if (bits > 0) last |= (std::int64_t{1} << (base + shift + bits)) - 1;
    return pad(last) + 1;
  }
  /// log2 of the most neighbouring elements that stay neighbours, and start at a multiple of their number.
  constexpr int run_log2() const {
    auto zeros = [](std::int64_t x) {
      int n = 0;
      while (n < 30 && !(x >> n & 1)) ++n;
      return n;
    };
    int r = 30;
    if (bases > 0) {
      r = 0;
      while (r < bases && basis[r] == std::int32_t{1} << r) ++r;
      for (int i = r; i < bases; ++i)
        if (zeros(basis[i]) < r) r = zeros(basis[i]);
    }
    if (modes > 0) {
      if (mode[modes - 1].extent > 1 && mode[modes - 1].stride != 1) return 0;
      r = zeros(mode[modes - 1].extent);
      for (int i = 0; i + 1 < modes; ++i)
        if (mode[i].extent > 1 && zeros(mode[i].stride) < r) r = zeros(mode[i].stride);
    }
    if (bits > 0 && base < r) r = base;
    for (int i = 0; i < paddings; ++i) {
      int const a = zeros(padding[i].interval), b = zeros(padding[i].pad);
      if (a < r) r = a;
      if (b < r) r = b;
    }
    return r;
  }
  friend constexpr bool operator==(slot_layout const&, slot_layout const&) = default;
};

} // namespace kiln
