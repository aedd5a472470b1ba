// Random numbers: Philox4x32-10, a function of a seed and a counter, the same bits on every target.
#pragma once
#include <kiln/dsl/math.hpp>

namespace kiln {

namespace detail {
template <class X>
constexpr bool is_integer_operand() {
  using V = std::remove_cvref_t<X>;
  if constexpr (literal<V>)
    return std::is_integral_v<V>;
  else
    return is_int(dtype_of<element_of<V>>);
}
} // namespace detail

/// Four u32 tiles of random bits: `auto [a, b, c, d] = philox(seed, offset)`.
template <class W>
struct philox_words {
  W first, second, third, fourth;
};

/// Philox4x32-10 (Salmon et al., 2011) of the key `seed` and the 128-bit counter `offset + 2^64 * high`.
///
/// All are integers, scalars or tiles, that broadcast; they are cast to u64 (so signed ones keep their sign). Words 0 and 1 of
/// the counter are the low and high half of `offset`, words 2 and 3 those of `high`. Different (seed, offset, high) give
/// independent bits: give each element of the launch an offset of its own.
template <operand S, tile_like O, operand H = int>
constexpr auto philox(S const& seed, O const& offset, H const& high = 0, site at = {}) {
  constexpr bool integers = detail::is_integer_operand<S>() && detail::is_integer_operand<O>() && detail::is_integer_operand<H>();
  static_assert(integers, "kiln[T-07] philox needs an integer seed and integer offsets; cast<u64>(...) them");
  constexpr detail::extents all = detail::broadcast(detail::common_extents<S, O>(), detail::common_extents<H, O>());
  static_assert(all.rank >= 0, "kiln[T-05] the shapes of philox do not broadcast: aligned at the last axis, extents must be equal or 1");
  recorder& r = *detail::read(offset, at).recorder_;
  using W = typename detail::tile_from<u32, all>::type;
  int const k = detail::conform<u64, all>(r, seed, at).node_, low = detail::conform<u64, all>(r, offset, at).node_;
  int const top = detail::conform<u64, all>(r, high, at).node_;
  result_type const t = detail::type_of<W>(r);
  auto word = [&](int i) { return W{&r, r.push(op::philox, t, {k, low, top}, {i}, at)}; };
  return philox_words<W>{word(0), word(1), word(2), word(3)};
}

/// A u32 as an f32 in [0, 1): its upper 24 bits times 2^-24, exactly. All 2^24 multiples of 2^-24 are equally likely.
template <tile_like W>
constexpr auto unit_interval(W const& word, site at = {}) {
  static_assert(std::same_as<detail::element_of<W>, u32>, "kiln[T-06] unit_interval needs u32 elements, such as philox gives");
  return detail::binary<op::mul>(cast<f32>(detail::binary<op::shr>(word, 8u, at), at), 0x1p-24f, at);
}
/// Uniform f32 in [0, 1): `unit_interval` of the first word of philox(seed, offset).
template <operand S, tile_like O>
constexpr auto uniform(S const& seed, O const& offset, site at = {}) {
  return unit_interval(philox(seed, offset, 0, at).first, at);
}

} // namespace kiln
