// Rules about where local buffers lie that need no simulation: that each lies inside its storage, and that tensor memory is large
// enough and takes the shape. The recorder places buffers so that they hold; graphs from text need them.
//
// Rules: R-AL03 and R-AL14 storage of another kind, or storage that lies in storage itself; R-AL19 rows in tensor memory;
// R-BD07 a buffer that leaves its storage; R-CP03 columns of tensor memory.
#pragma once
#include <kiln/graph/local_layout.hpp>

namespace kiln {

/// Columns of tensor memory on every target that has it.
inline constexpr int tensor_memory_columns = 512;

namespace detail {

/// Tensor memory is reached by whole rows: of a buffer in it, a slot can be taken, and columns at constant offsets.
constexpr diagnostic check_tensor_views(graph_view const& g) {
  diagnostic d;
  for (int i = 0; i < g.size(); ++i) {
    op const o = g[i].code;
    int from = -1; // what the node reaches in tensor memory
    for (std::int32_t v : g.operands(i))
      if (from < 0 && v >= 0 && g[v].kind == node_kind::view && g.buffer(g.buffer_of(v)).where == storage::tmem) from = v;
    if (from < 0) continue;
    bool refused = o != op::local_load && o != op::local_store && o != op::view_slice;
    std::int64_t rows = -1;
    buffer_info const& f = g.buffer(g.buffer_of(from));
    bool whole = false; // its columns do not follow each other
    if (o == op::view_slice) {
      shape const &s = g.shape_of(from), &e = g.shape_of(i);
      whole = refused = !f.layout.plain() && f.layout.mode[f.layout.modes - 1].extent != s.extent[s.rank - 1];
      for (int axis = 0; axis < s.rank; ++axis) {
        int const offset = g.operand(i, axis + 1);
        bool const constant = g[offset].code == op::constant;
        if (e.extent[axis] == s.extent[axis] && constant && g.attribute(offset, 0) == 0) continue;
        std::int64_t const bits = constant ? g.attribute(offset, 0) * bits_of(g[i].type) : 1;
        if (axis == s.rank - 1 && bits % 32 == 0) continue;
        refused = true;
        rows = axis == s.rank - 2 && constant ? g.attribute(offset, 0) : -1;
      }
    }
    if (!refused) continue;
    d.node = i;
    message m(d);
    m << "kiln[R-BD04] ";
    put_buffer_name(m, g, g.buffer_of(from));
    if (whole)
      m << ": its datapath does not lay columns one after the other; load and store it whole";
    else if (o == op::view_slice)
      m << ": tensor memory can only be sliced in columns, at constant offsets of whole 4-byte columns";
    else
      m << ": " << name_of(o) << " does not reach tensor memory; local_load it first";
    if (rows >= 0) m << " (row offset " << rows << ")";
    return d;
  }
  return d;
}

} // namespace detail

/// The first broken rule of a verified graph.
constexpr diagnostic check_storage(graph_view const& g) {
  diagnostic d;
  auto at = [&](int node) {
    d.node = node;
    return detail::message(d);
  };
  std::int64_t columns = 0;
  int const count = static_cast<int>(g.buffers.size());
  for (int b = 0; b < count; ++b) {
    buffer_info const& f = g.buffer(b);
    if (f.where == storage::smem_cluster) {
      auto m = at(f.node);
      m << "kiln[R-AL01] ";
      detail::put_buffer_name(m, g, b);
      m << ": storage smem_cluster is another CTA's memory and cannot be allocated; use smem or tmem";
      return d;
    }
    if (f.where == storage::tmem && detail::tensor_columns(f, g.shapes[static_cast<std::size_t>(f.shape)]) == 0) {
      auto m = at(f.node);
      m << "kiln[R-AL19] ";
      detail::put_buffer_name(m, g, b);
      m << ": a buffer in tensor memory has 64 or 128 rows before its last axis";
      return d;
    }
    int const s = g.storage_of(b);
    if (s == b) {
      if (f.where == storage::tmem) columns += detail::storage_bytes(g, b) / 4;
      continue;
    }
    buffer_info const& owner = g.buffer(s);
    if (owner.where != f.where || g.storage_of(s) != s) {
      auto m = at(f.node);
      m << (owner.where != f.where ? "kiln[R-AL03] " : "kiln[R-AL14] ");
      detail::put_buffer_name(m, g, b);
      m << " lies in ";
      detail::put_buffer_name(m, g, s);
      m << (owner.where != f.where ? ", which is memory of another kind" : ", which itself lies in another buffer's storage");
      return d;
    }
    std::int64_t const end = detail::slots_end(g, f), size = detail::storage_bytes(g, s);
    if (end > size) {
      auto m = at(f.node);
      m << "kiln[R-BD07] ";
      detail::put_buffer_name(m, g, b);
      m << " ends at byte " << end << " of its storage ";
      detail::put_buffer_name(m, g, s);
      m << ", which has " << size;
      return d;
    }
  }
  if (columns > 0)
    if (diagnostic const t = detail::check_tensor_views(g); !t.ok()) return t;
  if (columns > tensor_memory_columns) {
    int last = 0;
    for (int b = 0; b < count; ++b)
      if (g.buffer(b).where == storage::tmem && detail::storage_bytes(g, b) > 0) last = b;
    auto m = at(g.buffer(last).node);
    m << "kiln[R-CP03] tensor memory " << columns << " columns > " << tensor_memory_columns << ": ";
    bool first = true;
    for (int b = 0; b < count; ++b) {
      std::int64_t const bytes = g.buffer(b).where == storage::tmem ? detail::storage_bytes(g, b) : 0;
      if (bytes == 0) continue;
      m << (first ? "" : ", ");
      detail::put_buffer_name(m, g, b);
      m << " " << bytes / 4;
      first = false;
    }
  }
  return d;
}

} // namespace kiln
