// The numbers of a blocked matrix product: sizes of registers, panels and groups. No LLVM here.
//
// Worked example, f32 on AVX-512, guest tiles of 128 x 128 x 32: vectors of 16 lanes, micro-kernel 6 x 64 (24
// accumulators, 4 vectors of b, 1 broadcast: 29 of 32 registers), K in blocks of 256 = 8 guest iterations, groups of 16
// CTAs, 4 x 4 tiles where the numbering allows it: about 512 x 512 outputs that share 0.5 MB of packed a and b.
#pragma once
#include "dot_match.hpp"

#include <string_view>

namespace kiln::jit::host {

/// What of the CPU matters here.
struct dot_cpu {
  int vector_bits = 128;
  int registers = 16;
  bool fma = false;
  bool pairs = false;         ///< x86's sums of two products of i16, in vectors of that width
  bool vnni = false;          ///< vpdpwssd on the widest vectors
  bool memory_operands = false; ///< fma broadcasts a from memory (AVX-512)
};

struct KILN_INTERNAL_API dot_recipe {
  dtype compute = dtype::f32; ///< of panels and accumulators
  bool pairs = false;         ///< a panel element is two neighbouring k of i16 (i8 products)
  int element_bytes = 4;      ///< of a panel element and an accumulator
  int lanes = 16;             ///< of a vector
  int mr = 6, nv = 4;         ///< micro-kernel: rows, vectors of columns
  int unroll = 2;             ///< panel elements along k in one round of its loop
  int k_tile = 0;             ///< panel elements along k of one guest iteration
  int k_block = 0;            ///< ... of one panel: a multiple of k_tile
  int steps = 1;              ///< guest iterations of one panel
  bool a_by_k = false;        ///< a's panel is [k][m] instead of [m][k]
  bool a_unit_k = true, b_unit_n = true; ///< the axis along which memory is expected to be dense
  int group = 1;              ///< CTAs of one group
  int band = 1;               ///< rows of tiles in it, where the numbering of tiles is known

  int nr() const { return nv * lanes; }
  int vectors(int columns) const { return (columns + lanes - 1) / lanes; }
  int strips(int n) const { return (n + nr() - 1) / nr(); }
  /// Elements between neighbours of a's panel along m (a_by_k: along k).
  std::int64_t a_stride(dot_loop const& d) const;
  std::int64_t a_bytes(dot_loop const& d) const;
  std::int64_t b_bytes(dot_loop const& d) const;
  std::int64_t accumulator_bytes(dot_loop const& d) const;
  /// Scratch of one worker: tables, panels, accumulators.
  std::int64_t table_bytes(dot_loop const& d) const;
  std::int64_t arena_bytes(dot_loop const& d) const;
};

/// Chooses for a loop. Any loop that match_dot_loop accepts has a recipe.
KILN_INTERNAL_API dot_recipe choose_dot_recipe(graph_view const& g, dot_loop const& d, specialisation const& facts, dot_cpu const& cpu);

} // namespace kiln::jit::host
