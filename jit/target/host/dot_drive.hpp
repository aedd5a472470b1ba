// The driver of the blocked product, and the table through which a kernel tells it what to drive. It is the same for all
// products, so it is compiled with the library; generated code is only what a kernel's addresses, types and sizes decide.
// No LLVM here.
#pragma once
#include <cstdint>

namespace kiln::jit::host {

/// One operand of a product. All numbers are 64 bits wide, so that generated code writes the table as an array.
struct dot_side_plan {
  std::int64_t keys = 0, first_key = 0;       ///< among a CTA's numbers: those that name what the operand holds
  std::int64_t starts = 0;                    ///< likewise, where its box lies: see dot_place_function
  std::int64_t pointers = 0;                  ///< through a tile of pointers instead of a region
  std::int64_t slot = 0, rank = 0;            ///< of the parameter: its argument slots; a region's axes
  std::int64_t row_axis = 0, k_axis = 1;      ///< of a region
  std::int64_t row_limits = 0, k_limits = 0;  ///< of pointers
  std::int64_t lead = 0;                      ///< iteration i reads what the loop asks for in i - lead
  std::int64_t adjacent = 0;                  ///< the boxes of iterations lie side by side along k, whatever the numbers are
  std::int64_t rows = 0;                      ///< of a box
  std::int64_t element_bytes = 0;             ///< in memory
  std::int64_t panel_bytes = 0, k_bytes = 0;  ///< of a panel; from one of its elements along k to the next
};

/// The numbers of one product.
struct dot_numbers {
  std::int64_t numbers = 0;                             ///< how many `place` writes
  std::int64_t m = 0, n = 0, k = 0;                     ///< extents of a guest's tile
  std::int64_t element_bytes = 0, is_float = 1;         ///< of accumulators
  std::int64_t scratch = 0;                             ///< where ours begins in the arena
  std::int64_t table_bytes = 0, accumulator_bytes = 0;
  std::int64_t group = 1, band = 1;                     ///< CTAs; rows of tiles
  std::int64_t numbered = 0, columns_known = 0, rows_known = 0, walked = 1; ///< how program ids number tiles
  std::int64_t is_signed = 1;                           ///< the loop's index
  std::int64_t steps = 1, k_tile = 0;                   ///< guest iterations of a panel; panel elements along k of one
  std::int64_t mr = 0, whole = 0;                       ///< rows of a micro-kernel; of all whole ones
  std::int64_t strips = 0;                              ///< whole strips of columns
  std::int64_t last_strip = 0;                          ///< whether another follows them
  std::int64_t strip_bytes = 0, strip_columns = 0;      ///< of a strip of a panel; bytes of its row of accumulators
  std::int64_t a_row_bytes = 0, row_bytes = 0;          ///< from row to row of a's panel and of the accumulators
  dot_side_plan a, b;
};

/// Writes the numbers of one CTA at one value of the loop's index (truncated to its type): columns and rows of tiles, the
/// loop's low, high and step; rows and columns of the tile that are in bounds of an output, at most m and n; keys of
/// a, keys of b; starts of a, starts of b. Starts: a region's; of pointers the origin, the limits of rows, those of k, the
/// steps along rows and along k.
using dot_place_function = void(std::uint64_t const* slots, std::uint32_t const* grid, std::int64_t cta, std::int64_t index, std::int64_t* numbers);
enum dot_number : int { columns_of_tiles, rows_of_tiles, loop_low, loop_high, loop_step, rows_that_count, columns_that_count, first_dot_key };

/// Vectors of a strip of columns, at most, and their bytes in all.
inline constexpr int most_strip_vectors = 4, widest_strip = most_strip_vectors * 64;

/// Copies a box of memory into a panel: see dot_pack in dot_kernel.hpp.
using dot_pack_function = void(void* panel, void const* source, std::int64_t row_stride, std::int64_t k_stride, std::int64_t row_low,
                               std::int64_t row_high, std::int64_t k_low, std::int64_t k_high, std::int64_t k);
/// accumulators = old + a panel x b panel: see emit_micro_kernel.
using dot_micro_function = void(void const* a, void const* b, void* accumulators, std::int64_t units, void const* old, std::int64_t old_row_bytes);
/// What a CTA does with its accumulators.
using dot_rest_function = void(std::uint64_t const* slots, std::uint32_t const* grid, std::int64_t cta, void* accumulators, void* arena, void* runtime);

/// What generated code hands over: pointers, then numbers.
struct dot_plan {
  dot_place_function* place;
  dot_pack_function *pack_a, *pack_b;
  dot_micro_function* micro[2][2]; ///< [the rows behind the last whole ones][the last strip]; null where there are none
  dot_rest_function* rest;
  dot_numbers numbers;
};

/// Runs the CTAs that the numbers [first, last) stand for: for each group which CTAs, their panels, the product, the rest.
/// Numbers stand for CTAs in an order that suits the panels; over the whole grid each CTA is run once.
void drive_dot(dot_plan const* plan, std::uint64_t const* slots, std::uint32_t const* grid, std::int64_t first, std::int64_t last, void* arena,
               void* runtime);
inline constexpr char dot_driver[] = "kiln_host_drive_dot";

} // namespace kiln::jit::host
