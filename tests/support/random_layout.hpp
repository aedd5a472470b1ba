// Random layouts for property tests: bijective maps, maps with copies, and pairs that differ up to a given level.
#pragma once

#include "kiln/layout/linear_layout.hpp"
#include "test_seed.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace kiln_test {

using kiln::f2_vectors;
using kiln::f2_word;
using kiln::layout_dim;
using kiln::linear_layout;

/// A source of random layouts. Draws are made in statements of their own, so a seed replays on every compiler.
struct layout_random {
  std::mt19937_64 engine;

  explicit layout_random(std::uint64_t stream) : engine(seed() + stream) {}

  int pick(int lo, int hi) { return lo + int(engine() % std::uint64_t(hi - lo + 1)); }
  bool coin() { return pick(0, 1) == 1; }
  f2_word bits(int n) { return engine() & kiln::f2_low_mask(n); }
  template <class Range> void shuffle(Range first, Range last) { // std::shuffle differs between libraries
    for (auto n = last - first; n > 1; --n) std::swap(first[n - 1], first[pick(0, int(n) - 1)]);
  }

  f2_vectors basis(int n) {
    for (f2_vectors v;; v.n = 0) {
      for (int i = 0; i < n; ++i) v.push(bits(n));
      if (kiln::f2_rank(v) == n) return v;
    }
  }

  struct sizes {
    int reg = 0, lane = 0, warp = 0, cta = 0;
    int copies = 0;         // extra zero or dependent columns at random places; the registers grow by as many
    bool bits_only = false; // columns are single bits
  };
  /// A rank-2 layout whose columns span the tile.
  linear_layout layout(sizes q) {
    int n = q.reg + q.lane + q.warp + q.cta, rows = pick(0, n);
    f2_vectors b = basis(n);
    if (q.bits_only) {
      for (int i = 0; i < n; ++i) b.v[std::size_t(i)] = kiln::f2_unit(i);
      shuffle(b.v.data(), b.v.data() + n);
    }
    std::vector<f2_word> c(b.begin(), b.end());
    for (int i = 0; i < q.copies; ++i) {
      int at = pick(0, int(c.size()));
      f2_word column = coin() || n == 0 ? 0 : b[pick(0, n - 1)];
      c.insert(c.begin() + at, column);
    }
    linear_layout l = kiln::zero_map({{layout_dim::reg, std::uint8_t(q.reg + q.copies)},
                                      {layout_dim::lane, std::uint8_t(q.lane)},
                                      {layout_dim::warp, std::uint8_t(q.warp)},
                                      {layout_dim::cta, std::uint8_t(q.cta)}},
                                     kiln::tile_space(rows, n - rows));
    std::copy(c.begin(), c.end(), l.col.begin());
    return l;
  }

  /// `src` after mixing its hardware bits up to a level: 0 registers, 1 and lanes, 2 and warps, 3 and CTAs.
  linear_layout mixed(const linear_layout& src, int level) {
    int n = 0;
    for (int k = 0; k <= level; ++k) n += src.in.fields[std::size_t(k)].bits;
    linear_layout p = kiln::zero_map(src.in, src.in);
    for (int i = 0; i < src.in.total(); ++i) p.col[std::size_t(i)] = kiln::f2_unit(i);
    if (pick(0, 2) == 0) {
      f2_vectors b = basis(n);
      std::copy(b.begin(), b.end(), p.col.begin());
    } else {
      shuffle(p.col.data(), p.col.data() + n);
    }
    return kiln::compose(p, src);
  }
};

/// Calls body(random) `rounds` times; on a failure says which round of which seed it was.
template <class Body> void for_random(int rounds, std::uint64_t stream, Body body) {
  layout_random random(stream);
  for (int i = 0; i < rounds && !::testing::Test::HasFatalFailure(); ++i) {
    SCOPED_TRACE("round " + std::to_string(i) + ", KILN_TEST_SEED=" + std::to_string(seed()));
    body(random);
  }
}

} // namespace kiln_test
