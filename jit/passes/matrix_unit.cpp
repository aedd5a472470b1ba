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

} // namespace

std::optional<matrix_product> matrix_product_of(graph_view const& g, int dot, cta_shape cta) {
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
  // Each warp reads its rows of one operand and its columns of the other: the squarer its block, the less.
  int const warps = std::countr_zero(static_cast<unsigned>(cta.num_warps)), most_m = p.m - 4, most_n = p.n - 3;
  int best = 1 << 30;
  for (int wm = 0; wm <= std::min(warps, most_m); ++wm) {
    int const wn = std::min(warps - wm, most_n);
    int const reads = ((1 << (p.m - wm)) + (1 << (p.n - wn))) << (warps - wm - wn);
    if (reads < best) best = reads, p.warps_m = wm, p.warps_n = wn;
  }
  return p;
}

linear_layout matrix_sums(matrix_product const& p, cta_shape cta) {
  return normal_form(mma_accumulator_layout() * identity_layout(reg, d1, p.n - 3 - p.warps_n) *
                         identity_layout(reg, d0, p.m - 4 - p.warps_m) * warps_of(p, d0, d1),
                     cta);
}
linear_layout matrix_left(matrix_product const& p, cta_shape cta) {
  return normal_form(mma_a_layout(p.elem) * identity_layout(reg, d0, p.m - 4 - p.warps_m) *
                         identity_layout(reg, d1, p.k - p.step()) * warps_of(p, d0, none),
                     cta);
}
linear_layout matrix_right(matrix_product const& p, cta_shape cta) {
  return normal_form(mma_b_layout(p.elem) * identity_layout(reg, d1, p.n - 3 - p.warps_n) *
                         identity_layout(reg, d0, p.k - p.step()) * warps_of(p, none, d1),
                     cta);
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

} // namespace kiln::jit
