// Where the elements of local buffers lie: the one rule that capacity, interpreter and every lowering follow. Units: bytes, from
// the start of the storage in which the buffer lies.
//
// Plain buffers: slots one after the other, each at a multiple of the largest of 128, the element's size and `.align`; rows one
// after the other. Buffers that share storage have their place from storage_alias.hpp or from the allocator that placed them.
// Inside a slot, elements lie row by row unless the buffer has a layout (layout/slot_layout.hpp).
// Tensor memory is a block of 128 lanes by 4-byte columns: a row of a buffer is a lane, unless it has a layout (layout/datapath.hpp),
// and slots count columns.
#pragma once
#include <kiln/graph/recorder.hpp>
#include <kiln/layout/datapath.hpp>

namespace kiln {

namespace detail {

/// Lanes of tensor memory.
inline constexpr int tensor_lanes = 128;

/// Columns that one slot of `rows` x `columns` (times the leading extents) takes; 0 when no buffer can have that shape.
constexpr std::int64_t tensor_columns(dtype t, shape const& s) {
  if (s.rank < 2) return 0;
  std::int64_t lead = 1;
  for (int d = 0; d + 2 < s.rank; ++d) lead *= s.extent[d];
  int const rows = s.extent[s.rank - 2];
  if (rows != 64 && rows != 128) return 0;
  return lead * ((static_cast<std::int64_t>(s.extent[s.rank - 1]) * bits_of(t) + 31) / 32);
}
/// The same for a buffer, which may have a layout.
constexpr std::int64_t tensor_columns(buffer_info const& b, shape const& s) {
  return b.layout.plain() ? tensor_columns(b.type, s) : (columns_reached(b.layout) * bits_of(b.type) + 31) / 32;
}

} // namespace detail

/// How a buffer is addressed.
struct local_form {
  int storage = -1;                  ///< the buffer that owns the bytes
  std::int64_t alignment = 128;
  std::int64_t bytes = 0;            ///< of one slot
  slot_map slots{};                  ///< in bytes; the stride is never 0
  std::int64_t stride[max_rank]{};   ///< of each axis, in bytes; with a layout, of the row-major number: see `place_in_slot`
  slot_layout layout{};              ///< of a slot, in elements of memory: lanes of tensor memory are as long as the storage is
  std::int64_t end = 0;              ///< one past the last slot, in bytes; in tensor memory of one lane
};

namespace detail {

constexpr std::int64_t buffer_alignment(buffer_info const& b) {
  std::int64_t a = 128;
  if (b.alignment > a) a = b.alignment;
  if (bytes_of(b.type) > a) a = bytes_of(b.type);
  return a;
}
/// Bytes of one slot; in tensor memory of one lane of it.
constexpr std::int64_t slot_bytes(graph_view const& g, buffer_info const& b) {
  shape const& s = g.shapes[static_cast<std::size_t>(b.shape)];
  return b.where == storage::tmem ? 4 * tensor_columns(b, s) : bytes_of(b.type, b.layout.plain() ? s.elements() : b.layout.cosize(s.elements()));
}
/// From one slot (or logical group of slots) to the next.
constexpr std::int64_t slot_stride(graph_view const& g, buffer_info const& b) {
  std::int64_t const unit = b.where == storage::tmem ? 4 : 1;
  if (b.place.stride > 0) return b.place.stride * unit;
  return unit == 4 ? slot_bytes(g, b) : round_up(slot_bytes(g, b), buffer_alignment(b));
}
/// One past the last slot of a buffer, from the start of its storage.
constexpr std::int64_t slots_end(graph_view const& g, buffer_info const& b) {
  std::int64_t const unit = b.where == storage::tmem ? 4 : 1;
  std::int64_t end = b.place.offset * unit + slot_bytes(g, b);
  std::int64_t groups = b.slots;
  for (int j = 0; j < b.place.levels; ++j) {
    groups /= b.place.radix[j].count;
    end += static_cast<std::int64_t>(b.place.radix[j].count - 1) * b.place.radix[j].pitch * unit;
  }
  return end + (groups - 1) * slot_stride(g, b);
}
/// Storage that a spec names and no buffer uses.
constexpr bool unused_spec(graph_view const& g, int b) {
  if (g.buffer(b).role != buffer_role::spec) return false;
  for (int i = 0; i < static_cast<int>(g.buffers.size()); ++i)
    if (i != b && g.storage_of(i) == b) return false;
  return true;
}
/// Bytes (in tensor memory of one lane) that buffer b takes from its memory; 0 when it lies in another's storage. A buffer's last
/// slot is counted whole, as if another followed.
constexpr std::int64_t storage_bytes(graph_view const& g, int b) {
  if (g.storage_of(b) != b || unused_spec(g, b)) return 0;
  return g.buffer(b).slots * slot_stride(g, g.buffer(b));
}

/// The buffer's name, or where it was allocated.
constexpr void put_buffer_name(message& m, buffer_info const& b, char const* name, int line) {
  if (b.name >= 0) {
    m << name;
    return;
  }
  m << (b.role == buffer_role::spec ? "storage_alias_spec@" : b.has_slots ? "local_alloc@" : "alloc_shared@") << line;
}
constexpr void put_buffer_name(message& m, graph_view const& g, int b) {
  buffer_info const& f = g.buffer(b);
  put_buffer_name(m, f, g.string(f.name), g[f.node].line);
}

} // namespace detail

/// Bytes from the start of a slot to the element that would lie at `bytes` if its rows followed each other.
constexpr std::int64_t place_in_slot(local_form const& f, dtype t, std::int64_t bytes) {
  if (f.layout.plain()) return bytes;
  std::int64_t const size = bytes_of(t);
  return f.layout(bytes / size) * size;
}

constexpr local_form local_form_of(graph_view const& g, int b) {
  buffer_info const& f = g.buffer(b);
  shape const& s = g.shapes[static_cast<std::size_t>(f.shape)];
  local_form r;
  r.storage = g.storage_of(b);
  r.alignment = detail::buffer_alignment(f);
  r.bytes = detail::slot_bytes(g, f);
  r.slots = f.place;
  r.slots.stride = static_cast<std::int32_t>(detail::slot_stride(g, f));
  r.end = detail::slots_end(g, f);
  std::int64_t step = bytes_of(f.type);
  r.layout = f.layout;
  if (f.where == storage::tmem) {
    r.slots.offset *= 4;
    for (int j = 0; j < r.slots.levels; ++j) r.slots.radix[j].pitch *= 4;
    if (s.rank < 2) return r;
    if (!f.layout.plain()) {
      std::int64_t const lane = detail::storage_bytes(g, r.storage) / step;
      auto in_memory = [&](std::int32_t x) { return static_cast<std::int32_t>(x / detail::lane_step * lane + x % detail::lane_step); };
      for (int j = 0; j < r.layout.modes; ++j) r.layout.mode[j].stride = in_memory(r.layout.mode[j].stride);
      r.layout.offset = in_memory(r.layout.offset);
    }
  }
  if (f.where == storage::tmem && f.layout.plain()) {
    r.stride[s.rank - 1] = step;
    r.stride[s.rank - 2] = detail::storage_bytes(g, r.storage);
    step = 4 * ((static_cast<std::int64_t>(s.extent[s.rank - 1]) * bits_of(f.type) + 31) / 32);
    for (int d = s.rank - 3; d >= 0; --d) {
      r.stride[d] = step;
      step *= s.extent[d];
    }
    return r;
  }
  for (int d = s.rank - 1; d >= 0; --d) {
    r.stride[d] = step;
    step *= s.extent[d];
  }
  return r;
}

} // namespace kiln
