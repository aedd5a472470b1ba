// Fragments of products on a matrix unit, and the swizzle of their operands.
#include "matrix_unit.hpp"

#include <bit>

namespace kiln::jit {

namespace {

using enum layout_dim;

/// Warp bits along one axis of an operand; those along the other axis of the product see copies.
linear_layout warps_of(matrix_product const& p, layout_dim m, layout_dim n) {
  linear_layout const rows = m == none ? copies_layout(warp, p.warps_m, n) : identity_layout(warp, m, p.warps_m);
  linear_layout const columns = n == none ? copies_layout(warp, p.warps_n, m) : identity_layout(warp, n, p.warps_n);
  return rows * columns;
}

/// Fragments are addressed by XORs of bits, so each stride of a view has to be one bit: strides are products of the extents of what
/// it was cut from. 64 x 32 of a buffer of 64 x 96 has rows 96 elements apart.
bool strides_are_bits(graph_view const& g, int view) {
  for (int v = view; g[v].kind == node_kind::view || g[v].kind == node_kind::buffers; v = g.operand(v, 0)) {
    if (g[v].code != op::alloc && g[v].code != op::view_reshape) continue;
    shape const& s = g.shape_of(v);
    for (int d = 1; d < s.rank; ++d)
      if (!std::has_single_bit(static_cast<unsigned>(s.extent[d]))) return false;
    if (g[v].code == op::alloc) break;
  }
  return true;
}

/// The axis along which a product's operand lies in memory: a view's own, a tile's where it was read; -1: nobody knows. Only speed
/// depends on it.
int minor_axis_of(graph_view const& g, graph_facts const& facts, int n) {
  for (int turned = 0;;) {
    switch (g[n].code) {
    case op::trans:
    case op::view_trans: turned ^= 1; break;
    case op::load: {
      if (g.shape_of(n).rank != 2) return -1;
      access_shape const a = shape_of_access(g, facts, n);
      return a.contiguity == 0 ? -1 : a.axis ^ turned;
    }
    case op::local_load:
    case op::view_index:
    case op::view_slice:
    case op::cast: break;
    case op::alloc: {
      buffer_info const& b = g.buffers[static_cast<std::size_t>(g.attribute(n, 0))];
      return b.layout.plain() && g.shapes[static_cast<std::size_t>(b.shape)].rank == 2 ? 1 ^ turned : -1;
    }
    default: return -1;
    }
    n = g.operand(n, 0);
    if (n < 0) return -1;
  }
}

/// The first 2^(3 + q) rows of a layout's axis, taken in turns by 2^q fragments.
linear_layout spread(linear_layout l, layout_dim axis, int q) {
  if (q == 0) return l;
  for (int i = 0; i < l.in.total(); ++i) {
    f2_word& c = l.col[static_cast<std::size_t>(i)];
    f2_word const v = l.out.get(c, axis), low = v & f2_low_mask(3 + q);
    c ^= l.out.put(axis, low ^ ((low & 7) << q | low >> 3));
  }
  return l;
}

} // namespace

std::optional<matrix_product> matrix_product_of(graph_view const& g, graph_facts const& facts, int dot, cta_shape cta) {
  if (!cta.matrix_unit || g[dot].code != op::dot) return {};
  shape const &a = g.shape_of(g.operand(dot, 0)), &c = g.shape_of(dot);
  matrix_product p;
  p.operand = g[g.operand(dot, 0)].type;
  switch (p.operand) {
  case dtype::f16:
  case dtype::bf16:
  case dtype::i8:
  case dtype::f8e4m3:
  case dtype::f8e5m2: break;
  case dtype::f32:
    if (!g.attribute(dot, 0)) return {};
    break;
  default: return {};
  }
  if (g[dot].type != (p.operand == dtype::i8 ? dtype::i32 : dtype::f32)) return {};
  p.elem = std::countr_zero(static_cast<unsigned>(bytes_of(p.operand)));
  if (c.rank != 2 || a.rank != 2) return {};
  for (int e : {c.extent[0], c.extent[1], a.extent[1]})
    if (!std::has_single_bit(static_cast<unsigned>(e))) return {};
  if (!strides_are_bits(g, g.operand(dot, 0)) || !strides_are_bits(g, g.operand(dot, 1))) return {};
  p.m = std::countr_zero(static_cast<unsigned>(c.extent[0]));
  p.n = std::countr_zero(static_cast<unsigned>(c.extent[1]));
  p.k = std::countr_zero(static_cast<unsigned>(a.extent[1]));
  if (p.m < 4 || p.n < 3 || p.k < p.step()) return {};
  // Bytes come in pairs of columns, which takes 16 of them.
  bool const across_m = p.elem != 1 && minor_axis_of(g, facts, g.operand(dot, 0)) == 0,
             across_n = p.elem != 1 && minor_axis_of(g, facts, g.operand(dot, 1)) == 1 && (p.elem == 2 || p.n >= 4);
  // Each warp reads its rows of one operand and its columns of the other: the squarer its block, the less.
  int const warps = std::countr_zero(static_cast<unsigned>(cta.num_warps)), most_m = p.m - 4, most_n = p.n - 3 - (across_n && p.elem == 0);
  int best = 1 << 30;
  for (int wm = 0; wm <= std::min(warps, most_m); ++wm) {
    int const wn = std::min(warps - wm, most_n);
    int const reads = ((1 << (p.m - wm)) + (1 << (p.n - wn))) << (warps - wm - wn);
    if (reads < best) best = reads, p.warps_m = wm, p.warps_n = wn;
  }
  int const most = p.elem == 0 ? 1 : 2; // pairs of bytes, or vectors of four words
  if (across_m) p.spread_m = std::min(most, p.m - p.warps_m - 3);
  if (across_n) p.spread_n = std::min(most, p.n - p.warps_n - 3);
  return p;
}

linear_layout matrix_sums(matrix_product const& p, cta_shape cta) {
  linear_layout const l = mma_accumulator_layout() * identity_layout(reg, d1, p.n - 3 - p.warps_n) *
                          identity_layout(reg, d0, p.m - 4 - p.warps_m) * warps_of(p, d0, d1);
  return normal_form(spread(spread(l, d0, p.spread_m), d1, p.spread_n), cta);
}
linear_layout matrix_left(matrix_product const& p, cta_shape cta) {
  linear_layout const l = mma_a_layout(p.elem) * identity_layout(reg, d0, p.m - 4 - p.warps_m) *
                          identity_layout(reg, d1, p.k - p.step()) * warps_of(p, d0, none);
  return normal_form(spread(l, d0, p.spread_m), cta);
}
linear_layout matrix_right(matrix_product const& p, cta_shape cta) {
  linear_layout const l = mma_b_layout(p.elem) * identity_layout(reg, d1, p.n - 3 - p.warps_n) *
                          identity_layout(reg, d0, p.k - p.step()) * warps_of(p, none, d1);
  return normal_form(spread(l, d1, p.spread_n), cta);
}

linear_layout memory_map(bit_space const& tile, std::int64_t const* stride, slot_layout const& l) {
  // Every bit of a coordinate moves by one bit of the number, which the layout maps by itself.
  std::vector<f2_word> column(static_cast<std::size_t>(tile.total()));
  f2_word all = 0;
  for (int i = 0; i < tile.rank; ++i) {
    layout_field const f = tile.fields[static_cast<std::size_t>(i)];
    for (int b = 0; b < f.bits; ++b)
      all |= column[static_cast<std::size_t>(tile.shift(f.name) + b)] = static_cast<f2_word>(l(stride[axis_index(f.name)] << b));
  }
  linear_layout r = zero_map(tile, {{offset, static_cast<std::uint8_t>(std::bit_width(all))}});
  for (std::size_t i = 0; i < column.size(); ++i) r.col[i] = column[i];
  return r;
}

std::optional<byte_pairs> byte_pairs_of(linear_layout const& to_offset) {
  int const registers = to_offset.in.bits(reg);
  byte_pairs r{-1, {}};
  for (int i = 2; i < registers; ++i)
    if (to_offset.basis(reg, i) == f2_unit(0)) r.column = i;
  if (r.column < 0 || to_offset.out.total() < 1) return {};
  for (int i = 0; i < to_offset.in.total(); ++i)
    if (i != to_offset.in.shift(reg) + r.column && to_offset.col[static_cast<std::size_t>(i)] & 1) return {};
  auto const bits = [&](layout_dim d) { return static_cast<std::uint8_t>(to_offset.in.bits(d)); };
  r.pairs = zero_map({{reg, static_cast<std::uint8_t>(registers - 1)}, {lane, bits(lane)}, {warp, bits(warp)}},
                     {{offset, static_cast<std::uint8_t>(to_offset.out.total() - 1)}});
  auto const put = [&](layout_dim d, int to, int from) { r.pairs.col[static_cast<std::size_t>(r.pairs.in.shift(d) + to)] = to_offset.basis(d, from) >> 1; };
  put(reg, 0, 1), put(reg, 1, 0);
  for (int i = 2, to = 2; i < registers; ++i)
    if (i != r.column) put(reg, to++, i);
  for (layout_dim d : {lane, warp})
    for (int i = 0; i < bits(d); ++i) put(d, i, i);
  return r;
}

} // namespace kiln::jit
