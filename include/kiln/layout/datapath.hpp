// Where the rows and columns of a matrix lie in tensor memory, which has 128 lanes of 32-bit columns.
//
//   D       128 rows: row r in lane r, the columns one after the other
//   F       64 rows: row r in lane 32 (r / 16) + r % 16 + 16 sub_slab. Two buffers of different sub-slabs may share columns
//   B       64 rows, of a pair of CTAs or weight-stationary: column c < N / 2 in lane r, the others in lane 64 + r, column c - N / 2
//   scale   8-bit factors of block-scaled operands: row r in lane r % 32; four factors to a column, 32 rows after the other. The
//           hardware has them in all four quarters of the lanes; here they are in the first
//
// The letters are those of the PTX ISA. A place is a slot_layout whose strides count lanes as `lane_step` elements.
#pragma once
#include <kiln/layout/slot_layout.hpp>

namespace kiln {

enum class datapath : std::uint8_t { automatic, D, F, B, scale };

/// A lane and an element of its columns.
struct tensor_place {
  std::int64_t lane = 0, column = 0;
  friend constexpr bool operator==(tensor_place const&, tensor_place const&) = default;
};

namespace detail {

/// In the layout of a buffer in tensor memory, a stride of so many elements is the next lane.
inline constexpr std::int32_t lane_step = 1 << 16;

constexpr void add_mode(slot_layout& l, std::int64_t extent, std::int64_t stride) {
  if (extent > 1 && l.modes < slot_layout::most_modes) l.mode[l.modes++] = {static_cast<std::int32_t>(extent), static_cast<std::int32_t>(stride)};
}
/// Elements of a lane that a slot reaches over.
constexpr std::int64_t columns_reached(slot_layout const& l) {
  std::int64_t last = l.offset % lane_step;
  for (int i = 0; i < l.modes; ++i) last += static_cast<std::int64_t>(l.mode[i].extent - 1) * (l.mode[i].stride % lane_step);
  return last + 1;
}
constexpr int last_lane(slot_layout const& l) {
  int last = l.offset / lane_step;
  for (int i = 0; i < l.modes; ++i) last += (l.mode[i].extent - 1) * (l.mode[i].stride / lane_step);
  return last;
}
/// Factors of `rows` (a multiple of 32) by `columns`, of which `per_mma` are read at a time and each is `reuse` logical columns.
constexpr slot_layout scale_layout(std::int64_t lead, std::int64_t rows, std::int64_t columns, int per_mma, int reuse) {
  std::int64_t const own = columns / reuse, chunks = rows / 32;
  std::int64_t pack = 4 / per_mma; // reads that share a column
  while (pack > 1 && own / per_mma % pack != 0) pack /= 2;
  std::int64_t const inner = pack * per_mma, outer = own / inner;
  slot_layout l;
  add_mode(l, lead, outer * chunks * 4);
  add_mode(l, chunks, 4);
  add_mode(l, 32, lane_step);
  add_mode(l, outer, chunks * 4);
  add_mode(l, inner, 1);
  add_mode(l, reuse, 0);
  return l;
}
/// The same where nothing is known of instructions: ceil(rows / 32) * ceil(columns / 4) columns.
constexpr slot_layout scale_layout(std::int64_t lead, std::int64_t rows, std::int64_t columns) {
  if (columns % 4 == 0) return scale_layout(lead, rows, columns, 4, 1);
  std::int64_t const chunk = (columns + 3) / 4 * 4;
  slot_layout l;
  add_mode(l, lead, rows / 32 * chunk);
  add_mode(l, rows / 32, chunk);
  add_mode(l, 32, lane_step);
  add_mode(l, columns, 1);
  return l;
}
constexpr slot_layout datapath_layout(datapath d, std::int64_t rows, std::int64_t columns, int sub_slab = 0) {
  slot_layout l;
  switch (d) {
  case datapath::F:
    add_mode(l, 4, 32 * lane_step);
    add_mode(l, 16, lane_step);
    add_mode(l, columns, 1);
    l.offset = 16 * sub_slab * lane_step;
    break;
  case datapath::B:
    add_mode(l, rows, lane_step);
    add_mode(l, 2, 64 * lane_step);
    add_mode(l, columns / 2, 1);
    break;
  case datapath::scale: return scale_layout(1, rows, columns);
  default:
    add_mode(l, rows, lane_step);
    add_mode(l, columns, 1);
  }
  return l;
}

} // namespace detail

/// Where element (r, c) of a `rows` by `columns` matrix lies. Units: elements of the lane's columns.
constexpr tensor_place place_in_tensor_memory(datapath d, int rows, int columns, int r, int c, int sub_slab = 0) {
  std::int64_t const x = detail::datapath_layout(d, rows, columns, sub_slab)(static_cast<std::int64_t>(r) * columns + c);
  return {x / detail::lane_step, x % detail::lane_step};
}

} // namespace kiln
