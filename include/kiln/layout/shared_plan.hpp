// Staging a conversion through shared memory: a layout in which the store and the load both run at full width without
// bank conflicts, derived and not searched.
//
// 1. V = the register directions common to both sides and independent of every lane and warp direction of either, at
//    most 16 bytes. They become the low offset bits: the common vector. A wider one would let a lane decide the order
//    inside it.
// 2. Everything else happens in a complement W of V that contains those lane and warp directions, so that no vector
//    depends on a lane.
// 3. One side may be widened by E, more of its own register directions next in the offset, preferably from the other
//    side's lanes. The rest of the 4 bytes of a bank is filled with directions common to both.
// 4. X = low bits and phase lanes of the source, Y = those of the destination. The offset bits above one row of banks
//    are Seg = common_complement(X, Y): it misses X and Y, hence neither side conflicts.
// 5. The bank bits complete the basis. Every candidate is checked with `vectorize` and the rank formula and priced; the
//    cheapest over all E and, where allowed, over the rows of ldmatrix and stmatrix wins. E empty always works.
//
// Example: 4x4 f32, 4 lanes, 4 banks, rows to columns. X = {(1,0),(2,0)}, Y = {(0,1),(0,2)}, Seg = {(1,1),(2,2)}:
// element (r,c) is at 4c + (r ^ c), the classic XOR swizzle.
//
// Addresses: the offset is the XOR of a register constant and a part of lane and warp that is computed once (see
// index_terms.hpp). Padding is not linear and is applied after all of this (swizzle.hpp).
#pragma once

#include "kiln/layout/bank_conflicts.hpp"
#include "kiln/layout/matrix_plan.hpp"

namespace kiln {

/// How one side of a staging moves: ld/st, ldmatrix/stmatrix, the same with .trans.
enum class shared_access : std::uint8_t { plain, matrix, matrix_trans };

struct shared_plan {
  linear_layout smem; // offset (elements) -> tile
  shared_access store = shared_access::plain, load = shared_access::plain;
  int store_width = 0, load_width = 0; // log2 elements of plain accesses
  int cost = 1 << 30;                  // of one warp, both sides: 4 * wavefronts + instructions
};

/// The staging of src -> dst in one CTA. `matrix` allows ldmatrix and stmatrix (sm_75, sm_90 and up); `m` is the
/// target's bank model. Every answer has passed `conflict_ways == 0` on both sides.
///
/// Shapes: both layouts hold the whole tile of one CTA, with the same cta columns (they are not moved).
/// Units: `elem` is log2 of the element's bytes.
/// Errors: different tiles or cta columns.
/// Cost: about 50 microseconds, with matrix instructions 100; a constant evaluation takes 0.1 to 0.4 s.
constexpr shared_plan plan_shared(const linear_layout& src, const linear_layout& dst, int elem, const bank_model& m,
                                  bool matrix = false);

// ---- implementation -------------------------------------------------------------------------------------------------

namespace detail {

/// The search behind `plan_shared`. `dst` is packed like `src`.
struct staging_search {
  const linear_layout &src, &dst;
  int elem;
  const bank_model& banks;
  f2_vectors src_regs = src.columns({layout_dim::reg}), dst_regs = dst.columns({layout_dim::reg});
  f2_vectors src_threads = src.columns({layout_dim::lane, layout_dim::warp});
  f2_vectors dst_threads = dst.columns({layout_dim::lane, layout_dim::warp});
  f2_vectors all = src_regs + src_threads;
  int bits = f2_rank(all);
  int widest = std::max(0, 4 - elem);   // log2 elements of 16 bytes
  int per_bank = std::max(0, 2 - elem); // log2 elements of 4 bytes
  shared_plan best{};

  /// Coordinates that the lanes of one phase span.
  static constexpr f2_vectors phase(const linear_layout& l, shared_access how, const f2_vectors& lanes) {
    using enum layout_dim;
    if (how == shared_access::matrix) return {l.basis(lane, 2), l.basis(lane, 3), l.basis(lane, 4)};
    if (how == shared_access::matrix_trans) return {l.basis(reg, 0), l.basis(lane, 0), l.basis(lane, 1)};
    f2_vectors r;
    for (f2_word x : lanes) r.push(l(l.in.put(lane, x)));
    return r;
  }

  /// Cost of one side under a finished layout; nothing if it conflicts or cannot be addressed as asked.
  constexpr std::optional<int> price(const linear_layout& to_offset, shared_access how,
                                     const std::array<f2_vectors, 5>& model, int at_least, int& width) const {
    const int registers = f2_rank(to_offset.columns({layout_dim::reg}));
    const bool plain = how == shared_access::plain;
    width = plain ? vectorize(to_offset, layout_dim::offset, elem).width : widest;
    if (width < at_least) return {};
    if (!plain && !plan_matrix(to_offset, elem, how == shared_access::matrix_trans)) return {};
    const f2_vectors& lanes = model[std::size_t(std::min(4, width + elem))];
    f2_vectors touched = phase(to_offset, how, lanes);
    for (int i = 0; i < width; ++i) touched.push(f2_unit(i));
    if (conflict_ways(touched, elem, banks.banks)) return {};
    if (!plain) {
      int matrices = std::max(0, registers - per_bank); // a copy may be the second register of a .trans pair
      return 4 * (1 << matrices) + (1 << std::max(0, matrices - 2));
    }
    return 4 * (1 << (registers - width + to_offset.in.bits(layout_dim::lane) - lanes.n)) + (1 << (registers - width));
  }

  /// Tries `low` as the low offset bits; the store needs the first `wa` of them in its vector or row, the load `wb`.
  constexpr void attempt(shared_access sa, shared_access sb, f2_vectors low, int wa, int wb) {
    f2_vectors safe = low.head(std::min(wa, wb)), w;
    f2_solver grow = f2_span(safe), coordinates;
    for (f2_word x : low + src_threads + dst_threads + all)
      if (grow.add(x)) w.push(x);
    for (f2_word x : safe) coordinates.add(x, x);
    for (f2_word x : w) coordinates.add(x, 0);
    auto in_w = [&](const f2_vectors& g) {
      f2_vectors r;
      for (f2_word x : g) r.push(x ^ coordinates.solve(x).value_or(0));
      return r;
    };
    f2_vectors la = in_w(phase(src, sa, banks.store[std::size_t(std::min(4, wa + elem))]));
    f2_vectors lb = in_w(phase(dst, sb, banks.load[std::size_t(std::min(4, wb + elem))]));
    f2_solver in_low = f2_span(low);
    for (f2_word x : f2_intersect(la, lb) + la + lb + w)
      if (low.n < per_bank && in_low.add(x)) low.push(x);
    f2_vectors segments =
        common_complement(low.head(std::max(wa, per_bank)) + la, low.head(std::max(wb, per_bank)) + lb, safe + w)
            .head(bits - (banks.banks + 2 - elem));
    f2_vectors columns = low;
    f2_solver taken = f2_span(low + segments);
    for (f2_word b : la + lb + w)
      if (columns.n < bits - segments.n && taken.add(b)) columns.push(b);
    columns = columns + segments;
    if (columns.n != bits || f2_rank(columns) != bits) return;

    shared_plan p;
    p.smem = zero_map({{layout_dim::offset, std::uint8_t(bits)}}, src.out);
    p.store = sa, p.load = sb;
    for (int i = 0; i < bits; ++i) p.smem.col[std::size_t(i)] = columns[i];
    linear_layout back = invert(p.smem);
    std::optional<int> a = price(compose(src, back), sa, banks.store, wa, p.store_width);
    std::optional<int> b = price(compose(dst, back), sb, banks.load, wb, p.load_width);
    if (a && b && *a + *b < best.cost) p.cost = *a + *b, best = p;
  }

  /// Ordinary accesses: the common vector V, and one side widened beyond it.
  constexpr void plain_accesses() {
    f2_vectors v, w;
    f2_solver independent = f2_span(src_threads + dst_threads);
    for (f2_word x : f2_intersect(src_regs, dst_regs))
      if (v.n < widest && independent.add(x)) v.push(x);
    f2_solver grow = f2_span(v), coordinates;
    for (f2_word x : src_threads + dst_threads + all)
      if (grow.add(x)) w.push(x);
    for (f2_word x : v) coordinates.add(x, x);
    for (f2_word x : w) coordinates.add(x, 0);
    for (bool load : {false, true})
      for (int extra = widest - v.n; extra >= 0; --extra) {
        const f2_vectors& own = load ? dst_regs : src_regs;
        f2_vectors other = phase(load ? src : dst, shared_access::plain, load ? banks.store[0] : banks.load[0]), e;
        f2_solver widened = f2_span(v + (load ? dst_threads : src_threads));
        for (f2_word x : f2_intersect(own, other) + own) {
          x ^= coordinates.solve(x).value_or(0);
          if (e.n < extra && widened.add(x)) e.push(x);
        }
        if (e.n == extra)
          attempt(shared_access::plain, shared_access::plain, v + e, v.n + (load ? 0 : extra),
                  v.n + (load ? extra : 0));
      }
  }

  /// One side's low bits are the 16-byte rows of a matrix instruction.
  constexpr void matrix_accesses() {
    using enum layout_dim;
    for (bool load : {false, true})
      for (shared_access how : {shared_access::matrix, shared_access::matrix_trans})
        for (shared_access other : {shared_access::plain, shared_access::matrix, shared_access::matrix_trans}) {
          const linear_layout &l = load ? dst : src, &o = load ? src : dst;
          f2_vectors low;
          if (how == shared_access::matrix) {
            f2_solver independent = f2_span(l.columns({lane, warp}));
            for (f2_word x : f2_intersect(src_regs, dst_regs) + l.columns({reg}))
              if (low.n < per_bank && independent.add(x)) low.push(x);
            low.push(l.basis(lane, 0)), low.push(l.basis(lane, 1));
          } else {
            for (int i = 2; i < 5; ++i) low.push(l.basis(lane, i));
          }
          if (low.n != widest || f2_rank(low) != widest) continue;
          f2_solver registers = f2_span(o.columns({reg}));
          int n = other == shared_access::plain ? 0 : widest;
          while (other == shared_access::plain && n < widest && registers.contains(low[n])) ++n;
          attempt(load ? other : how, load ? how : other, low, load ? n : widest, load ? widest : n);
        }
  }
};

} // namespace detail

constexpr shared_plan plan_shared(const linear_layout& src, const linear_layout& dst_, int elem, const bank_model& m,
                                  bool matrix) {
  using enum layout_dim;
  detail::layout_require(same_fields(src.out, dst_.out), "staging needs two layouts of one tile");
  linear_layout dst = reorder_out(dst_, src.out);
  for (int i = 0; i < std::max(src.in.bits(cta), dst.in.bits(cta)); ++i)
    detail::layout_require(src.basis(cta, i) == dst.basis(cta, i), "staging moves data inside one CTA only");
  detail::staging_search s{src, dst, elem, m};
  f2_solver held = f2_span(s.all), wanted = f2_span(s.dst_regs + s.dst_threads);
  detail::layout_require(held.n == wanted.n && f2_rank(s.all + s.dst_regs + s.dst_threads) == held.n,
                         "staging needs a source that holds what the destination wants");
  s.plain_accesses();
  if (matrix && elem <= 2 && src.in.bits(lane) == 5 && dst.in.bits(lane) == 5) s.matrix_accesses();
  return s.best;
}

} // namespace kiln
