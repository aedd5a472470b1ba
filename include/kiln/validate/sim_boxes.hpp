// The views of local memory that a simulated program accesses, as boxes in coordinates of their buffers, and how the buffers are
// cut into atoms along the borders of those boxes.
#pragma once
#include <kiln/validate/sim_nodes.hpp>

namespace kiln::detail {

/// The box of a view, from the box of what it is a view of.
constexpr int slicer::box_of(int v) {
  if (at_[v].place > 0) return at_[v].place - 1;
  node const& x = nodes_[v];
  std::int32_t const* const of = operands(v);
  int const from = of[0];
  if (x.code == op::view_index && nodes_[from].kind == node_kind::buffers) {
    box& b = p_.boxes.add();
    b.buffer = static_cast<std::int32_t>(g_.attribute(from, 0));
    b.slot = at_[of[1]].reg;
    b.index = of[1];
    b.node = v;
    b.whole = b.exact = true;
    return (at_[v].place = p_.boxes.size()) - 1;
  }
  box b = p_.boxes[box_of(from)];
  if (b.whole && b.axes == 0) { // a slot, which nobody has taken parts of so far
    shape const& s = g_.shapes.items[g_.buffer(b.buffer).shape];
    b.axes = s.rank;
    for (int d = 0; d < s.rank; ++d) {
      b.axis[d] = d;
      b.extent[d] = s.extent[d];
      b.moving[d] = -1;
    }
  }
  shape const& s = g_.shape_of(v);
  int const before[max_rank]{b.axis[0], b.axis[1], b.axis[2], b.axis[3], b.axis[4], b.axis[5]};
  switch (x.code) {
  case op::view_trans:
    if (!b.reshaped)
      for (int d = 0; d < s.rank; ++d) b.axis[d] = before[g_.attribute(v, d)];
    break;
  case op::view_reshape: b.reshaped = true; break;
  case op::view_slice:
    for (int d = 0; d < s.rank; ++d) narrow(b, d, of[d + 1], s.extent[d], g_.shape_of(from).extent[d]);
    break;
  default: // view_index: the outermost axis
    narrow(b, 0, of[1], 1, g_.shape_of(from).extent[0]);
    if (!b.reshaped && g_.shape_of(from).rank > 1) {
      --b.axes;
      for (int d = 0; d < b.axes; ++d) b.axis[d] = b.axis[d + 1];
    }
  }
  b.node = v;
  b.used = false;
  p_.boxes.add() = b;
  return (at_[v].place = p_.boxes.size()) - 1;
}

constexpr void slicer::narrow(box& b, int d, int offset, int extent, int from) {
  if (extent == from) return; // the offset is 0
  b.whole = false;
  if (b.reshaped) {
    b.exact = false;
    return;
  }
  int const axis = b.axis[d];
  b.extent[axis] = extent;
  if (at_[offset].folded != 0)
    b.start[axis] += static_cast<int>(at_[offset].folded ^ unknown);
  else if (b.moving[axis] < 0)
    b.moving[axis] = at_[offset].reg;
  else
    b.exact = false; // two moving offsets on one axis
}

/// Cuts every buffer into atoms along the borders of its boxes.
constexpr void slicer::cut() {
  int const buffers = static_cast<int>(g_.buffers.size()), views = p_.boxes.size();
  box* const boxes = p_.boxes.data();
  atom_grid* const grids = p_.grids.add_some(buffers);
  buffer_info const* const infos = g_.buffers.items;
  for (int k = 0; k < buffers; ++k) {
    shape const& s = g_.shapes.items[infos[k].shape];
    atom_grid& a = grids[k];
    a.per_slot = 1;
    a.rank = s.rank;
    for (int d = 0; d < a.rank; ++d) {
      a.size[d] = s.extent[d];
      a.count[d] = 1;
    }
  }
  auto gcd = [](int x, int y) {
    while (y) {
      int const t = x % y;
      x = y;
      y = t;
    }
    return x;
  };
  for (int k = 0; k < views; ++k) {
    box const& b = boxes[k];
    if (b.whole || !b.exact) continue;
    atom_grid& a = grids[b.buffer];
    a.per_slot = 0; // to be counted
    for (int d = 0; d < a.rank; ++d) a.size[d] = gcd(gcd(a.size[d], b.extent[d]), b.start[d] < 0 ? -b.start[d] : b.start[d]);
  }
  for (int k = 0; k < buffers; ++k) {
    if (grids[k].per_slot == 0) grids[k].per_slot = count_cells(k);
    grids[k].first = p_.atoms;
    p_.atoms += grids[k].per_slot * infos[k].slots;
  }
  for (int k = 0; k < views; ++k) {
    box& b = boxes[k];
    atom_grid const& a = grids[b.buffer];
    b.first = a.first;
    b.per_slot = a.per_slot;
    b.slots = infos[b.buffer].slots;
    b.quick = a.per_slot == 1 && b.slot >= 0;
    if (b.used && b.slots > p_.ring) p_.ring = b.slots;
  }
}

/// Cells of a slot of buffer k, whose sizes are known.
constexpr int slicer::count_cells(int k) {
  atom_grid& a = p_.grids[k];
  std::int64_t per_slot = 1;
  for (int d = 0; d < a.rank; ++d) {
    a.count[d] = g_.shapes.items[g_.buffer(k).shape].extent[d] / a.size[d];
    per_slot *= a.count[d];
  }
  if (per_slot <= most_atoms) return static_cast<int>(per_slot);
  for (int d = 0; d < a.rank; ++d) { // cut too finely: parts are left out, whole slots stay
    a.size[d] *= a.count[d];
    a.count[d] = 1;
  }
  for (int c = 0; c < p_.code.size(); ++c) {
    instruction& x = p_.code[c];
    auto finely = [&](int b) { return p_.boxes[b].buffer == k && !p_.boxes[b].whole; };
    if (touches_box(x.code) && (finely(x.a) || (x.code == sim_op::remote_copy && finely(x.target)))) {
      if (p_.left_out < 0) p_.left_out = x.node;
      x.code = sim_op::jump;
      x.target = c + 1;
    }
  }
  return 1;
}

} // namespace kiln::detail
