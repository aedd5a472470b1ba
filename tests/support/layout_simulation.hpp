// Runs layout plans as the hardware would, register by register, and says what went wrong; "" means nothing did.
// The checks return text and assert nothing, so that tests can also show that a damaged plan is noticed.
#pragma once

#include "kiln/layout/bank_conflicts.hpp"
#include "kiln/layout/conversion.hpp"
#include "kiln/layout/matrix_plan.hpp"
#include "kiln/layout/reduction_plan.hpp"
#include "kiln/layout/shared_plan.hpp"

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace kiln_test {

using namespace kiln;

inline std::string at_point(const char* what, f2_word point) {
  return std::string(what) + " at " + std::to_string(point);
}

/// The hardware point of a layout; fields that it does not have must be 0.
inline f2_word point_of(const linear_layout& l, f2_word r, f2_word t, f2_word w, f2_word block) {
  using enum layout_dim;
  f2_word x = l.in.put(reg, r) | l.in.put(lane, t) | l.in.put(warp, w);
  return block ? x | l.in.put(cta, block) : x;
}

/// The plain answer: every destination point names a source point that holds its element, and no farther than the kind.
inline std::string run_conversion(const linear_layout& src, const linear_layout& dst, const conversion& c) {
  using enum layout_dim;
  for (f2_word x = 0; x < f2_unit(dst.in.total()); ++x) {
    f2_word y = c.from(x);
    if (src(y) != src.out.repack(dst(x), dst.out)) return at_point("another element", x);
    if (c.kind == conversion_kind::none && dst.in == src.in && x != y)
      return at_point("moved although nothing moves", x);
    if (c.kind <= conversion_kind::registers && src.in.get(y, lane) != dst.in.get(x, lane)) return at_point("lane", x);
    if (c.kind <= conversion_kind::shuffle && src.in.get(y, warp) != dst.in.get(x, warp)) return at_point("warp", x);
    if (c.kind <= conversion_kind::shared && src.in.get(y, cta) != dst.in.get(x, cta)) return at_point("cta", x);
  }
  return "";
}

/// The rounds: every lane publishes one register, every lane reads one lane; then every destination register that is no
/// copy holds its element, and the number of shuffles is what the plan says.
inline std::string run_rounds(const linear_layout& src, const linear_layout& dst_, const conversion& c, int elem) {
  using enum layout_dim;
  const linear_layout dst = reorder_out(dst_, src.out);
  const shuffle_rounds& r = c.rounds;
  const f2_word lanes = f2_unit(r.fetch.in.bits(lane)), rounds = f2_unit(r.bits);
  for (f2_word team = 0; team < f2_unit(r.fetch.in.bits(warp) + r.fetch.in.bits(cta)); ++team) {
    f2_word w = team & f2_low_mask(r.fetch.in.bits(warp)), block = team >> r.fetch.in.bits(warp);
    std::map<f2_word, f2_word> received; // destination point -> element
    std::map<std::vector<f2_word>, int> lane_maps;
    for (f2_word n = 0; n < rounds; ++n) {
      std::vector<f2_word> wire(lanes), map(lanes);
      for (f2_word l = 0; l < lanes; ++l) {
        f2_word in = point_of(r.publish, 0, l, w, block) | r.publish.in.put(offset, n);
        wire[l] = src(point_of(src, r.publish(in), l, w, block));
      }
      for (f2_word l = 0; l < lanes; ++l) {
        f2_word in = point_of(r.fetch, 0, l, w, block) | r.fetch.in.put(offset, n);
        map[l] = r.fetch(in);
        received[point_of(dst, r.place(in), l, w, block)] = wire[map[l]];
      }
      ++lane_maps[map];
    }
    std::set<std::pair<f2_word, f2_word>> elements; // (thread, element) that arrived
    for (auto [where, element] : received) {
      if (dst(where) != element) return at_point("a round delivers another element", where);
      elements.insert({where & ~dst.in.mask(reg), element});
    }
    for (f2_word l = 0; l < lanes; ++l)
      for (f2_word x = 0; x < f2_unit(dst.in.bits(reg)); ++x) {
        f2_word where = point_of(dst, x, l, w, block);
        if (!elements.contains({where & ~dst.in.mask(reg), dst(where)}))
          return at_point("an element never arrives", where);
      }
    int shuffles = 0, pack = elem < 2 ? 4 >> elem : 1, split = elem > 2 ? 1 << (elem - 2) : 1;
    for (auto& [map, n] : lane_maps) {
      bool still = true;
      for (f2_word l = 0; l < lanes; ++l) still &= map[l] == l;
      if (!still) shuffles += (n + pack - 1) / pack * split;
    }
    if (shuffles > c.shuffles) return "more shuffles than planned";
    if (r.fetch.in.bits(warp) + r.fetch.in.bits(cta) == 0 && shuffles != c.shuffles)
      return "fewer shuffles than planned";
  }
  return "";
}

/// ldmatrix as the manual describes it: lane 8j+i gives the address of row i of matrix j; without .trans lane t
/// receives the 4 bytes t % 4 of row t / 4, with .trans elements 2 (t % 4) and 2 (t % 4) + 1 of column t / 4.
inline std::string run_ldmatrix(const linear_layout& fragment, const linear_layout& smem, int elem, bool trans) {
  using enum layout_dim;
  linear_layout to = compose(fragment, invert(smem));
  std::optional<matrix_access> p = plan_matrix(to, elem, trans);
  if (!p) return "no plan";
  linear_layout f = renumber_registers(fragment, p->regs);
  const int per_row = 1 << (4 - elem), per_lane = 1 << (2 - elem);
  const int registers = 1 << f.in.bits(reg), warps = 1 << f.in.bits(warp);
  for (int w = 0; w < warps; ++w) {
    auto row_address = [&](int matrix, int row) {
      return (matrix_row(*p, trans, matrix, row) ^ p->rows(p->rows.in.put(warp, f2_word(w)))) * f2_word(per_row);
    };
    for (int matrix = 0; matrix < registers / per_lane; ++matrix)
      for (int t = 0; t < 32; ++t)
        for (int i = 0; i < per_lane; ++i) {
          int row = trans ? t % 4 * 2 + i : t / 4, column = trans ? t / 4 : t % 4 * per_lane + i;
          f2_word want = f(f.in.put(reg, f2_word(matrix * per_lane + i)) | f.in.put(lane, f2_word(t)) |
                           f.in.put(warp, f2_word(w)));
          if (smem(row_address(matrix, row) ^ f2_word(column)) != want) return at_point("another element", f2_word(t));
        }
    f2_vectors touched; // of one 8x8 matrix
    for (int i = 0; i < 4 - elem; ++i) touched.push(f2_unit(i));
    for (int i = 0; i < 3; ++i) touched.push(row_address(0, 1 << i) ^ row_address(0, 0));
    if (conflict_ways(touched, elem, 5)) return "rows conflict";
  }
  return "";
}

/// A staging plan: stores every element, loads it, and counts the conflicts of a few accesses by brute force; linearity
/// covers the others.
inline std::string run_staging(const linear_layout& src, const linear_layout& dst, int elem, const bank_model& m,
                               const shared_plan& p, std::mt19937_64& engine) {
  using enum layout_dim;
  linear_layout back = invert(p.smem);
  std::vector<f2_word> memory(std::size_t{1} << p.smem.in.total(), ~f2_word{0});
  for (bool load : {false, true}) {
    const linear_layout l = reorder_out(load ? dst : src, src.out), to = compose(l, back);
    if (shared_access how = load ? p.load : p.store; how != shared_access::plain) {
      if (std::string e = run_ldmatrix(l, p.smem, elem, how == shared_access::matrix_trans); !e.empty()) return e;
      for (f2_word x = 0; x < f2_unit(l.in.total()) && !load; ++x) memory[to(x)] = l(x);
      continue;
    }
    vector_access v = vectorize(to, offset, elem);
    if (v.width != (load ? p.load_width : p.store_width)) return "another width than planned";
    linear_layout r = renumber_registers(to, v.regs), values = renumber_registers(l, v.regs);
    std::set<f2_word> permutation;
    for (f2_word x = 0; x < f2_unit(v.regs.in.total()); ++x) permutation.insert(v.regs(x));
    if (permutation.size() != std::size_t{1} << v.regs.in.total()) return "registers are not permuted";
    for (f2_word x = 0; x < f2_unit(r.in.total()); ++x) {
      f2_word at = r(x);
      if ((at ^ x) & f2_low_mask(v.width)) return at_point("position in the vector is not the register", x);
      if (!load) memory[at] = values(x);
      else if (memory[at] != values(x)) return at_point("loads another element", x);
    }
    const f2_vectors& phase = (load ? m.load : m.store)[std::size_t(std::min(4, v.width + elem))];
    for (int i = 0; i < 4; ++i) {
      f2_word x = engine() & f2_low_mask(r.in.total()) & ~r.in.mask(lane) & ~f2_low_mask(v.width);
      auto byte = [&](int t) { return int(r(x | r.in.put(lane, f2_word(t))) << elem); };
      if (count_conflicts(byte, 1 << (v.width + elem), phase, r.in.bits(lane), m.banks) != 1) return "banks conflict";
    }
  }
  return "";
}

} // namespace kiln_test
