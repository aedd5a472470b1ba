// Register layouts that matrix units read and write, for `k.require_layout`, and layouts on named axes as layouts of registers.
//
//   k.require_layout(x, layout::registers(layout::S<32, 4>({1, layout::axis::lane}, 1) ...));
//   k.require_layout(acc, layout::wgmma_acc<128>());                    // 64 x 128, the sums of one warpgroup
//   k.require_layout(a, layout::dot_operand<0, layout::unit::mma, 2, 16, 16>());
//
// Rows, columns and repetitions are powers of two. `warps` lie along the rows; what is left over repeats in registers, first along
// the columns, then along the rows. Layouts of AMD units have 64 lanes (mfma) or 32 (wmma): they are refused where a wave has others.
#pragma once
#include <kiln/dsl/layout_tools.hpp>
#include <kiln/layout/axis_layout.hpp>

namespace kiln {

namespace detail {

/// A layout of a rows x columns tile while its bits are collected.
struct matrix_bits {
  layout::register_map l;
  int n; ///< log2 of the columns
  constexpr explicit matrix_bits(int columns) : n(log2_of_power(columns)) {}
  constexpr void lane_row(int r) { add(l.threads, r == 0 ? -1 : n + log2_of_power(r)); }
  constexpr void lane_column(int c) { add(l.threads, c == 0 ? -1 : log2_of_power(c)); }
  constexpr void row(int r) { add(l.values, n + log2_of_power(r)); }
  constexpr void column(int c) { add(l.values, log2_of_power(c)); }
  /// Lanes, then registers, along one axis: 1, 2, .. below `end`, times `step`.
  constexpr void lanes_along(bool rows, int count, int step) {
    for (int i = 1; i < count; i *= 2) rows ? lane_row(i * step) : lane_column(i * step);
  }
  constexpr void registers_along(bool rows, int count, int step) {
    for (int i = 1; i < count; i *= 2) rows ? row(i * step) : column(i * step);
  }
  /// Warps along the rows from `m` on, then repetitions to rows x columns.
  constexpr layout::register_map fill(int m, int n_of_unit, int rows, int columns, int warps, bool copies = false) {
    int r = m;
    for (int w = 1; w < warps; w *= 2, r *= copies ? 1 : 2) lane_row(!copies && r < rows ? r : 0);
    for (int c = n_of_unit; c < columns; c *= 2) column(c);
    for (; r < rows; r *= 2) row(r);
    return l;
  }
  static constexpr void add(register_modes& m, int bit) {
    if (register_layout::count(m.list) == register_layout::most)
      m.too_many = true;
    else
      m.list = register_layout::with_bit(m.list, bit);
  }
};
constexpr bool powers_of_two(int a, int b) { return a > 0 && b > 0 && (a & (a - 1)) == 0 && (b & (b - 1)) == 0; }

} // namespace detail

namespace layout {

/// A layout on the axes lane, warp (or tid, which counts through both) and m: a thread's registers. Errors where it is required: R-LY05
/// extents and strides that are no powers of two; R-LY07 a lane, warp or register without an element, an offset, another axis.
constexpr register_map registers(axis_layout const& l) {
  register_map r;
  constexpr int most = 12, nobody = -2;
  int bits[3][most]{}; // lanes, warps, registers
  for (auto& list : bits)
    for (int& b : list) b = nobody;
  auto put = [&](axis on, int at, int element) {
    if (on == axis::tid) {
      on = at < 5 ? axis::lane : axis::warp;
      at -= on == axis::warp ? 5 : 0;
    }
    int const list = on == axis::lane ? 0 : on == axis::warp ? 1 : on == axis::m ? 2 : -1;
    if (list < 0 || at >= most || bits[list][at] != nobody)
      r.threads.incomplete = true;
    else
      bits[list][at] = element;
  };
  auto mode = [&](axis_layout::mode const& m, int element) { // element: log2 of what its digit moves by; -1 for copies
    if ((m.extent & (m.extent - 1)) != 0) {
      r.threads.bad_extent = m.extent;
    } else if (m.extent > 1 && (m.stride < 1 || (m.stride & (m.stride - 1)) != 0)) {
      r.threads.bad_stride = m.stride;
    } else {
      for (int b = 0; (1 << b) < m.extent; ++b) put(m.on, detail::log2_of_power(m.stride) + b, element < 0 ? -1 : element + b);
    }
  };
  std::int64_t inner = 1;
  for (int i = l.modes - 1; i >= 0; --i) {
    mode(l.shard[i], detail::log2_of_power(inner));
    inner *= l.shard[i].extent;
  }
  for (int i = 0; i < l.replicas; ++i) mode(l.replica[i], -1);
  for (std::int32_t o : l.offset) r.threads.incomplete = r.threads.incomplete || o != 0;
  int const lanes = bits[0][5] == nobody ? 5 : 6;
  auto move = [&](int const* list, int least, detail::register_modes& to) {
    int count = most;
    while (count > least && list[count - 1] == nobody) --count;
    for (int i = 0; i < count; ++i) {
      r.threads.incomplete = r.threads.incomplete || list[i] == nobody;
      detail::matrix_bits::add(to, list[i] == nobody ? -1 : list[i]);
    }
  };
  move(bits[0], lanes, r.threads);
  move(bits[1], 0, r.threads);
  move(bits[2], 0, r.values);
  return r;
}

/// Coordinates that one bit of the offset moves along: `{0, 4}`.
template <int Rank>
struct basis_vector {
  std::int32_t of[Rank];
};
/// A buffer of the extents D..., whose offset is a linear map over GF(2): bit i of the offset (in elements) moves by the coordinates
/// `bases[i]`. Extents are powers of two. Errors where it is used: R-LY01 bases that do not reach every element once.
template <int... D, std::size_t N>
constexpr buffer_layout shared_linear(basis_vector<sizeof...(D)> const (&bases)[N]) {
  static_assert(sizeof...(D) >= 1 && ((D >= 1 && (D & (D - 1)) == 0) && ...), "kiln[R-LY01] linear layouts are of extents that are powers of two");
  static_assert(N <= slot_layout::most_bases, "kiln[R-LY01] a linear layout has at most 16 bases");
  constexpr int extents[]{D...};
  constexpr int rank = sizeof...(D), bits = detail::log2_of_power((std::int64_t{1} * ... * D));
  buffer_layout l{buffer_layout::kind::given};
  // Bits of the offset -> bits of the number; beside it what becomes the inverse.
  std::int32_t column[slot_layout::most_bases]{}, inverse[slot_layout::most_bases]{};
  bool good = static_cast<int>(N) == bits;
  for (std::size_t i = 0; i < N; ++i) {
    for (int d = 0; d < rank; ++d) {
      good = good && bases[i].of[d] >= 0 && bases[i].of[d] < extents[d];
      column[i] = column[i] * extents[d] + bases[i].of[d];
    }
    inverse[i] = 1 << i;
  }
  for (int bit = 0; bit < bits && good; ++bit) { // column `bit` is made the unit vector
    int pivot = bit;
    while (pivot < bits && !(column[pivot] >> bit & 1)) ++pivot;
    if (pivot == bits) {
      good = false;
      break;
    }
    std::int32_t const c = column[pivot], v = inverse[pivot];
    column[pivot] = column[bit], inverse[pivot] = inverse[bit];
    column[bit] = c, inverse[bit] = v;
    for (int i = 0; i < bits; ++i)
      if (i != bit && (column[i] >> bit & 1)) column[i] ^= c, inverse[i] ^= v;
  }
  l.slot.bases = good ? bits : -1;
  for (int i = 0; i < bits && good; ++i) l.slot.basis[i] = inverse[i];
  if (bits == 0 && good) l.slot.bases = 0;
  return l;
}

/// The sums of mma.sync: blocks of 16 x 8. Another name of mma_accumulator.
template <int M, int N>
constexpr register_map mma_acc(int warps) {
  return mma_accumulator<M, N>(warps);
}
/// The sums of wgmma: 64 x N for each warpgroup of four warps.
template <int N>
constexpr register_map wgmma_acc(int warpgroups = 1) {
  static_assert(N >= 8 && N <= 256 && (N & (N - 1)) == 0, "kiln[R-LY01] the sums of wgmma have 8 to 256 columns, a power of two here");
  detail::matrix_bits b(N);
  b.lanes_along(false, 4, 2);
  b.lanes_along(true, 8, 1);
  b.lanes_along(true, 4 * warpgroups, 16);
  b.column(1);
  b.row(8);
  b.registers_along(false, N / 8, 8);
  return b.l;
}
/// The sums of an AMD mfma instruction M x N x K: 32 x 32, 16 x 16, 4 x 64 or 64 x 4, for a Rows x Columns tile. 64 lanes.
template <int M, int N, int K, int Rows = M, int Columns = N>
constexpr register_map mfma_acc(int warps = 1) {
  static_assert((M == 32 && N == 32) || (M == 16 && N == 16) || (M == 4 && N == 64) || (M == 64 && N == 4), "kiln[R-LY01] mfma instructions are 32x32, 16x16, 4x64 and 64x4");
  static_assert(K >= 1 && Rows % M == 0 && Columns % N == 0 && detail::powers_of_two(Rows, Columns), "kiln[R-LY01] the tile holds whole instructions, a power of two each way");
  detail::matrix_bits b(Columns);
  if (N == 4) { // turned: a lane has a row
    b.lanes_along(true, 64, 1);
    b.registers_along(false, 4, 1);
  } else {
    b.lanes_along(false, N, 1);
    b.lanes_along(true, 64 / N, 4);
    b.registers_along(true, 4, 1);
    b.registers_along(true, M * N / 256, 256 / N);
  }
  return b.fill(M, N, Rows, Columns, warps);
}
/// The sums of an AMD wmma instruction, 16 x 16: version 1 (gfx11), 2 (gfx12) or 3 (gfx1250). `Transposed`: lanes along the rows. 32 lanes.
template <int Version, int Rows = 16, int Columns = 16, bool Transposed = false>
constexpr register_map wmma_acc(int warps = 1) {
  static_assert(Version >= 1 && Version <= 3, "kiln[R-LY01] wmma layouts have the versions 1 to 3");
  static_assert(Rows % 16 == 0 && Columns % 16 == 0 && detail::powers_of_two(Rows, Columns), "kiln[R-LY01] the tile holds whole instructions, a power of two each way");
  detail::matrix_bits b(Columns);
  b.lanes_along(Transposed, 16, 1);
  b.lanes_along(!Transposed, 2, Version == 1 ? 1 : 8);
  b.registers_along(!Transposed, 8, Version == 1 ? 2 : 1);
  return b.fill(16, 16, Rows, Columns, warps);
}
/// Basis vectors of rows and columns, in whole instructions: `{{0, 2}, {2, 0}}`.
struct basis_list {
  int count = 0;
  basis_vector<2> of[register_layout::most]{};
  constexpr basis_list() = default;
  constexpr basis_list(std::initializer_list<basis_vector<2>> bases) {
    for (basis_vector<2> const& x : bases)
      if (count < register_layout::most) of[count++] = x;
  }
};
struct amd_wmma_options {
  int version = 3;         ///< 1 gfx11, 2 gfx12, 3 gfx1250
  bool transposed = true;  ///< lanes along the rows
  basis_list warp_bases{}; ///< what each bit of the warp's number moves by
  basis_list reg_bases{};  ///< and each bit of the instructions that a warp has one after the other
  int rows = 16;           ///< of an instruction's result: 16 x 16, or 32 x 16
};
/// The sums of AMD wmma instructions with their warps and repetitions given one by one. What they do not reach repeats in registers.
/// Errors where it is required: R-LY05 a basis that moves along both axes, or by no power of two; R-LY07.
template <int Rows, int Columns>
constexpr register_map amd_wmma(amd_wmma_options const& o = {}) {
  static_assert(Rows % 16 == 0 && Columns % 16 == 0 && detail::powers_of_two(Rows, Columns), "kiln[R-LY01] the tile holds whole instructions, a power of two each way");
  detail::matrix_bits b(Columns);
  bool used[40]{};
  auto take = [&](detail::register_modes& list, int r, int c) {
    if ((r != 0 && c != 0) || (r & (r - 1)) != 0 || (c & (c - 1)) != 0 || r < 0 || c < 0) {
      b.l.threads.bad_stride = r != 0 ? r : c;
      return;
    }
    int const bit = r != 0 ? b.n + detail::log2_of_power(r) : c != 0 ? detail::log2_of_power(c) : -1;
    if (bit >= 0 && bit < 40) used[bit] = true;
    detail::matrix_bits::add(list, bit);
  };
  auto along = [&](detail::register_modes& list, bool rows, int x) { rows ? take(list, x, 0) : take(list, 0, x); };
  bool const lanes = o.transposed;
  for (int i = 1; i < 16; i *= 2) along(b.l.threads, lanes, i);
  along(b.l.threads, !lanes, o.version == 1 ? 1 : 8);
  for (int i = 1; i < 8; i *= 2) along(b.l.values, !lanes, o.version == 1 ? 2 * i : i);
  if (o.rows == 32) along(b.l.values, !lanes, 16);
  for (int i = 0; i < o.warp_bases.count; ++i) take(b.l.threads, o.warp_bases.of[i].of[0] * o.rows, o.warp_bases.of[i].of[1] * 16);
  for (int i = 0; i < o.reg_bases.count; ++i) take(b.l.values, o.reg_bases.of[i].of[0] * o.rows, o.reg_bases.of[i].of[1] * 16);
  for (int bit = 0; (std::int64_t{1} << bit) < std::int64_t{Rows} * Columns; ++bit)
    if (!used[bit]) detail::matrix_bits::add(b.l.values, bit);
  return b.l;
}
/// Matrix units whose operands have layouts.
enum class unit : std::uint8_t { mma, mfma32, mfma16, wmma2 };
/// Operand 0 (Rows x Columns = M x K) or 1 (K x N) of a product; a thread has `KWidth` neighbours along K at a time. Operand 1 is the
/// same in all warps.
template <int Index, unit Parent, int KWidth, int Rows, int Columns>
constexpr register_map dot_operand(int warps = 1) {
  static_assert(Index == 0 || Index == 1, "kiln[R-LY01] a product has operands 0 and 1");
  static_assert(detail::powers_of_two(Rows, Columns) && detail::powers_of_two(KWidth, 1), "kiln[R-LY01] rows, columns and the width along K are powers of two");
  constexpr bool mma = Parent == unit::mma;
  constexpr int other = mma ? (Index == 0 ? 16 : 8) : Parent == unit::mfma32 ? 32 : 16; // along M or N, of one instruction
  constexpr int groups = mma ? 4 : Parent == unit::wmma2 ? 2 : 64 / other;               // lanes along K
  constexpr int k = KWidth * groups * (mma ? 2 : 1);
  constexpr bool k_rows = Index == 1;
  static_assert((k_rows ? Rows : Columns) % k == 0 && (k_rows ? Columns : Rows) % other == 0, "kiln[R-LY01] the tile holds whole instructions");
  detail::matrix_bits b(Columns);
  if (mma) b.lanes_along(k_rows, groups, KWidth);
  b.lanes_along(!k_rows, mma ? 8 : other, 1);
  if (!mma) b.lanes_along(k_rows, groups, KWidth);
  b.registers_along(k_rows, KWidth, 1);
  if (mma && Index == 0) b.registers_along(!k_rows, 2, 8);
  if (mma) b.registers_along(k_rows, 2, KWidth * groups);
  return b.fill(k_rows ? k : other, k_rows ? other : k, Rows, Columns, warps, k_rows);
}

} // namespace layout

/// Pins a matrix to the layout of AMD wmma instructions. On GPUs without them, or with those of another version, the kernel is refused
/// where it is compiled for them; the host takes it. Errors: R-LY05, R-LY07, R-TG01.
template <int Rows, int Columns, class T>
constexpr auto require_amd_wmma_layout(context& k, tile<T, Rows, Columns> const& x, layout::amd_wmma_options const& o, site at = {}) {
  auto y = k.require_layout(x, layout::amd_wmma<Rows, Columns>(o), {}, at);
  recorder& r = detail::recorder_of(y, y);
  if (r.nodes[y.node_].code != op::require_layout) return y;
  if (o.version < 1 || o.version > 3)
    r.fail(at) << "kiln[R-LY01] wmma layouts have the versions 1 to 3 (got " << o.version << ")";
  else
    r.attribute_pool[r.nodes[y.node_].attributes] = 1 + o.version;
  return y;
}

} // namespace kiln
