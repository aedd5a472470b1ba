// Layouts of tiles in registers as an author writes them: which element each register of each thread holds.
//
// A layout has a list of thread bits (lanes first, then warps) and a list of value bits (registers). Each bit moves by one power of
// two in the row-major number of the tile's elements, or by nothing: then both of its settings hold the same element. Worked example:
// 32 elements, 4 warps of 32 lanes, layout((32,4):(0,8), (8):(1)) has the thread bits - - - - - 8 16 and the value bits 1 2 4: all
// lanes of warp w hold elements 8w .. 8w+7.
#pragma once
#include <cstdint>

namespace kiln {

/// As recorded: one number for the threads and one for the values. The lowest 4 bits count the bits of the list; each has 5 bits
/// behind them, lowest first: 0 for a copy, else 1 + log2 of how far it moves.
struct register_layout {
  std::int64_t threads = 0, values = 0;

  static constexpr int most = 11; ///< bits of a list
  static constexpr int count(std::int64_t list) { return static_cast<int>(list & 15); }
  /// log2 of how far bit `i` moves; -1: a copy.
  static constexpr int bit(std::int64_t list, int i) { return static_cast<int>(list >> (4 + 5 * i) & 31) - 1; }
  static constexpr std::int64_t with_bit(std::int64_t list, int log2) {
    return (list + 1) | static_cast<std::int64_t>(log2 + 1) << (4 + 5 * count(list));
  }
  constexpr int thread_bits() const { return count(threads); }
  constexpr int value_bits() const { return count(values); }
  friend constexpr bool operator==(register_layout const&, register_layout const&) = default;
};

} // namespace kiln
