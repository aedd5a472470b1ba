// Moving a tile from one distributed layout to another: how far the data has to travel, and the shuffles that do it.
#pragma once

#include "kiln/layout/linear_layout.hpp"

#include <algorithm>

namespace kiln {

/// How far a conversion reaches. `shared` goes through the shared memory of one CTA (see shared_plan.hpp), `cluster`
/// through another CTA's shared memory or through global memory.
enum class conversion_kind : std::uint8_t { none, registers, shuffle, shared, cluster };

/// A conversion inside a warp as rounds: in each, a lane publishes one register and reads one lane. All three maps take
/// (offset = round number, lane, warp, cta).
struct shuffle_rounds {
  linear_layout publish;       // -> reg: the source register a lane puts on the wire (independent of warp and cta)
  linear_layout fetch;         // -> lane: the lane it reads
  linear_layout place;         // -> reg: the destination register it has read
  int bits = 0;                // log2 of the number of rounds
  bool first_still = false;    // in the rounds with `fetch` == that of round 0 every lane reads itself: no shuffle
  int distinct_fetch_log2 = 0; // log2 of the number of different lane maps among the rounds
};

struct conversion {
  conversion_kind kind = conversion_kind::none;
  linear_layout from;     // destination hardware -> source hardware: the plain answer, right for every kind
  int shuffles = 0;       // 32-bit shuffles of a warp
  int select_levels = 0;  // a register index that depends on the lane: 2^levels - 1 selects per register and side
  bool by_rounds = false; // `rounds` is valid and is what `shuffles` counts; else one shuffle per (wanted, held) pair
  shuffle_rounds rounds;
};

/// Plans src -> dst. For each bit of the destination, keep its own lane, warp and cta bit, and solve for the rest with
/// src's columns in the order registers, lanes, warps, ctas: elimination then uses a far column only where no nearer
/// ones suffice. The kind is the farthest level in any correction.
///
/// Rounds of a shuffle: K = common_complement(registers of src, registers of dst). A coset of K holds exactly one
/// element per source lane and one per destination lane, so it is one round; the number of rounds is 2^registers. The
/// lane map of a round is a constant of the round XOR a map of the lane: rounds with equal constants share a shuffle,
/// 4 / bytes of them packed into 32 bits by byte permutes before and after; 8-byte elements take two shuffles. Where
/// the register ranks differ (copies), the fallback is one shuffle per (register wanted, register held).
///
/// Units: `elem` is log2 of the element's bytes. Returns nothing where the tiles differ or src does not hold an element
/// that dst wants: an error of the caller.
constexpr std::optional<conversion> plan_conversion(const linear_layout& src, const linear_layout& dst, int elem);

// ---- implementation -------------------------------------------------------------------------------------------------

namespace detail {
inline constexpr layout_dim conversion_levels[] = {layout_dim::reg, layout_dim::lane, layout_dim::warp,
                                                   layout_dim::cta};

/// Rank of the register part of `from` over the destination's bits of field `d`.
constexpr int register_rank(const conversion& c, layout_dim d) {
  f2_vectors v;
  for (f2_word column : c.from.columns({d})) v.push(c.from.out.get(column, layout_dim::reg));
  return f2_rank(v);
}

/// `dst` is packed like `src` here.
constexpr shuffle_rounds make_rounds(const linear_layout& src, const linear_layout& dst, const linear_layout& from) {
  using enum layout_dim;
  f2_vectors held = src.columns({reg}), wanted = dst.columns({reg});
  f2_vectors coset = common_complement(held, wanted, src.columns({reg, lane}));
  f2_solver publish, place, modulo = f2_span(coset);
  for (int i = 0; i < held.n; ++i) publish.add(held[i], f2_unit(i));
  for (int i = 0; i < wanted.n; ++i) place.add(wanted[i], f2_unit(i));
  for (f2_word k : coset) publish.add(k, 0), place.add(k, 0);
  f2_vectors rounds; // one representative per bit of the round number
  for (f2_word w : wanted)
    if (modulo.add(w)) rounds.push(w);

  shuffle_rounds r;
  r.bits = rounds.n;
  bit_space in{{offset, std::uint8_t(rounds.n)}};
  for (layout_dim d : {lane, warp, cta}) in = in.with(d, std::max(src.in.bits(d), dst.in.bits(d)));
  r.publish = zero_map(in, {{reg, std::uint8_t(held.n)}});
  r.fetch = zero_map(in, {{lane, std::uint8_t(src.in.bits(lane))}});
  r.place = zero_map(in, {{reg, std::uint8_t(wanted.n)}});
  auto set = [&](int bit, f2_word published, f2_word home, f2_word hardware) {
    // The coset of a round is counted from the element of (register 0, lane 0) of the own warp, called home.
    r.publish.col[bit] = publish.solve(published).value_or(0);
    f2_word placed = place.solve(home).value_or(0);
    r.place.col[bit] = placed;
    r.fetch.col[bit] = src.in.get(from(hardware | dst.in.put(reg, placed)), lane);
  };
  for (int i = 0; i < rounds.n; ++i) set(i, rounds[i], rounds[i], 0);
  for (layout_dim d : {lane, warp, cta})
    for (int i = 0; i < in.bits(d); ++i) {
      f2_word there = i < src.in.bits(d) ? src.basis(d, i) : 0, here = i < dst.in.bits(d) ? dst.basis(d, i) : 0;
      set(in.shift(d) + i, d == lane ? there : 0, d == lane ? here : here ^ there,
          i < dst.in.bits(d) ? dst.in.put(d, f2_unit(i)) : 0);
    }

  f2_vectors moves;
  for (int i = 0; i < rounds.n; ++i) moves.push(r.fetch.col[i]);
  r.distinct_fetch_log2 = f2_rank(moves);
  r.first_still = true;
  for (layout_dim d : {lane, warp, cta})
    for (int i = 0; i < in.bits(d); ++i) r.first_still &= r.fetch.basis(d, i) == (d == lane ? f2_unit(i) : 0);
  return r;
}
} // namespace detail

constexpr std::optional<conversion> plan_conversion(const linear_layout& src, const linear_layout& dst_, int elem) {
  using enum layout_dim;
  if (!same_fields(src.out, dst_.out)) return {};
  linear_layout dst = reorder_out(dst_, src.out);
  f2_solver nearest;
  for (layout_dim d : detail::conversion_levels)
    for (int i = 0; i < src.in.bits(d); ++i) nearest.add(src.basis(d, i), src.in.put(d, f2_unit(i)));

  conversion r;
  r.from = zero_map(dst.in, src.in);
  for (int k = 0; k < 4; ++k) {
    layout_dim d = detail::conversion_levels[k];
    for (int i = 0; i < dst.in.bits(d); ++i) {
      f2_word same = i < src.in.bits(d) ? src.in.put(d, f2_unit(i)) : 0;
      f2_word own = d == reg ? 0 : same; // stay where you are, then correct
      std::optional<f2_word> fix = nearest.solve(dst.basis(d, i) ^ src(own));
      if (!fix) return {};
      r.from.col[dst.in.shift(d) + i] = own ^ *fix;
      for (int j = 1; j < 4; ++j)
        if (*fix & src.in.mask(detail::conversion_levels[j])) r.kind = std::max(r.kind, conversion_kind(j + 1));
      if ((own ^ *fix) != same) r.kind = std::max(r.kind, conversion_kind::registers);
    }
  }
  if (r.kind == conversion_kind::registers)
    r.select_levels = detail::register_rank(r, lane) + detail::register_rank(r, warp);
  if (r.kind != conversion_kind::shuffle) return r;

  const int pack = std::max(0, 2 - elem), split = std::max(0, elem - 2);
  const int registers = f2_rank(dst.columns({reg})); // copies in registers are made afterwards
  r.select_levels = detail::register_rank(r, lane);
  r.shuffles = 1 << (registers + r.select_levels + split); // one per (register wanted, register held)
  if (f2_rank(src.columns({reg})) != registers) return r;
  r.rounds = detail::make_rounds(src, dst, r.from);
  int sharing = registers - r.rounds.distinct_fetch_log2, per_map = (1 << std::max(0, sharing - pack)) << split;
  int shuffles = ((1 << r.rounds.distinct_fetch_log2) - r.rounds.first_still) * per_map;
  if (shuffles <= r.shuffles) r.shuffles = shuffles, r.by_rounds = true;
  return r;
}

} // namespace kiln
