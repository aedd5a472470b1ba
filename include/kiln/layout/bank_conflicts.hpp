// Bank conflicts of shared memory: by rank for linear addresses, by counting for any.
#pragma once

#include "kiln/layout/linear_layout.hpp"

#include <algorithm>

namespace kiln {

/// Lanes that are served together, as a subspace of lane bits, by log2 of the bytes per lane (0..4).
/// Units: `banks` is log2 of the number of 4-byte banks: 5, or 6 on gfx950 and gfx1250.
struct bank_model {
  int banks = 5;
  std::array<f2_vectors, 5> store{}, load{};
};

/// Phases of consecutive lanes: as many as fill one row of banks. Some AMD parts serve wide reads in other groups; they
/// are subspaces too, so replace the entry of `load`. `lanes` is log2 of the warp size.
constexpr bank_model consecutive_phases(int lanes = 5, int banks = 5) {
  bank_model m;
  m.banks = banks;
  for (int w = 0; w < 5; ++w)
    for (int i = 0; i < std::min(lanes, banks - std::max(0, w - 2)); ++i) {
      m.store[w].push(f2_unit(i));
      m.load[w].push(f2_unit(i));
    }
  return m;
}

/// log2 of the ways of conflict. Two addresses clash when they differ as words and agree as banks; by linearity that is
/// rank(words) - rank(banks) over the offsets (in elements) that one phase touches. Lanes that read the same word do
/// not clash.
constexpr int conflict_ways(const f2_vectors& offsets, int elem, int banks) {
  f2_vectors words, in_bank;
  for (int i = 2; i < elem; ++i) words.push(f2_unit(i - 2)), in_bank.push(f2_unit(i - 2)); // words inside an element
  for (f2_word o : offsets) {
    f2_word x = elem < 2 ? o >> (2 - elem) : o << (elem - 2);
    words.push(x), in_bank.push(x & f2_low_mask(banks));
  }
  return f2_rank(words) - f2_rank(in_bank);
}

/// The offsets that a phase of `lanes` touches with vectors of 2^width elements.
constexpr f2_vectors phase_offsets(const linear_layout& to_offset, int width, const f2_vectors& lanes) {
  f2_vectors v;
  for (int i = 0; i < width; ++i) v.push(f2_unit(i));
  for (f2_word l : lanes) v.push(to_offset(to_offset.in.put(layout_dim::lane, l)));
  return v;
}

/// Brute force for any address function, linear or not (padding): the most words of one bank that a phase asks for; 1
/// means no conflict. `byte_of_lane(lane)` is the byte address of a lane's access of `bytes` bytes.
/// Units: `lanes` and `banks` log2.
template <class Address>
constexpr int count_conflicts(Address byte_of_lane, int bytes, const f2_vectors& phase, int lanes, int banks) {
  int worst = 0;
  for (int base = 0; base < 1 << lanes; ++base) {
    std::array<std::uint32_t, 512> words{};
    int n = 0;
    for (f2_word pick = 0; pick < f2_unit(phase.n); ++pick) {
      f2_word lane = f2_word(base);
      for (int i = 0; i < phase.n; ++i)
        if (pick >> i & 1) lane ^= phase[i];
      for (int b = 0; b < bytes; b += std::min(bytes, 4)) {
        std::uint32_t a = std::uint32_t(byte_of_lane(int(lane)) + b) / 4;
        if (std::find(words.begin(), words.begin() + n, a) == words.begin() + n) words[std::size_t(n++)] = a;
      }
    }
    for (int i = 0; i < n; ++i) {
      int same_bank = 0;
      for (int j = 0; j < n; ++j)
        same_bank += words[std::size_t(i)] % (1u << banks) == words[std::size_t(j)] % (1u << banks);
      worst = std::max(worst, same_bank);
    }
  }
  return worst;
}

} // namespace kiln
