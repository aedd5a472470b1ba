// Plans over random layouts, checked by running them register by register; and damaged plans, which must be noticed.
#include "kiln/layout/blocked.hpp"
#include "kiln/layout/fragment.hpp"
#include "kiln/layout/swizzle.hpp"
#include "layout_simulation.hpp"
#include "random_layout.hpp"

namespace kiln_test {
namespace {

using namespace kiln;
using enum layout_dim;

struct conversion_case {
  linear_layout src, dst;
  int elem;
  conversion plan;
};
conversion_case random_conversion(layout_random& random) {
  conversion_case c;
  int copies = random.pick(0, 3) == 0 ? random.pick(1, 2) : 0, level = random.pick(0, 3);
  c.elem = random.pick(0, 3);
  int r = random.pick(0, 4), t = random.pick(3, 6), w = random.pick(0, 2), b = random.pick(0, 1);
  bool bits_only = random.coin();
  c.src = random.layout({r, t, w, b, copies, bits_only});
  c.dst = random.mixed(c.src, level);
  std::optional<conversion> plan = plan_conversion(c.src, c.dst, c.elem);
  EXPECT_TRUE(plan.has_value());
  c.plan = plan.value_or(conversion{});
  return c;
}

/// Some element has no copy in src nearer than the plan's kind says.
bool kind_is_minimal(const conversion_case& c) {
  if (c.plan.kind <= conversion_kind::registers) return true;
  for (f2_word x = 0; x < f2_unit(c.dst.in.total()); ++x) {
    bool near = false;
    for (f2_word y = 0; y < f2_unit(c.src.in.total()) && !near; ++y) {
      if (c.src(y) != c.dst(x)) continue;
      auto same = [&](layout_dim d) { return c.src.in.get(y, d) == c.dst.in.get(x, d); };
      near = same(cta) && (c.plan.kind == conversion_kind::cluster || same(warp)) &&
             (c.plan.kind >= conversion_kind::shared || same(lane));
    }
    if (!near) return true;
  }
  return false;
}

TEST(layout_plans, conversions) {
  int kinds[5] = {}, by_rounds = 0;
  for_random(1500, 20, [&](layout_random& random) {
    conversion_case c = random_conversion(random);
    ++kinds[int(c.plan.kind)];
    ASSERT_EQ(run_conversion(c.src, c.dst, c.plan), "");
    if (c.src.in.total() <= 9) { // quadratic
      ASSERT_TRUE(kind_is_minimal(c));
    }
    if (!c.plan.by_rounds) return;
    ++by_rounds;
    ASSERT_EQ(run_rounds(c.src, c.dst, c.plan, c.elem), "");
  });
  for (int n : kinds) EXPECT_GT(n, 10); // the generator reaches every kind
  EXPECT_GT(by_rounds, 50);
}

TEST(layout_plans, conversions_between_wave_sizes_and_packings) {
  // Fields in another order, other field counts, and a destination with fewer warps (the rest of the CTA idles).
  linear_layout a = default_blocked_layout({32, 64}, {.num_warps = 4});
  linear_layout b =
      reorder_out(transpose_layout(default_blocked_layout({64, 32}, {.num_warps = 4})), {{d0, 5}, {d1, 6}});
  std::optional<conversion> c = plan_conversion(a, b, 2);
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(run_conversion(a, b, *c), "");
  linear_layout one = default_blocked_layout({32, 64}, {.num_warps = 1});
  ASSERT_TRUE((c = plan_conversion(a, one, 2)).has_value());
  EXPECT_EQ(c->kind, conversion_kind::shared);
  EXPECT_EQ(run_conversion(a, one, *c), "");
}

TEST(layout_plans, damaged_conversions_are_noticed) {
  int noticed[4] = {};
  for_random(400, 21, [&](layout_random& random) {
    linear_layout src = random.layout({.reg = 3, .lane = 5});
    linear_layout dst = random.mixed(src, 1);
    conversion good = plan_conversion(src, dst, 2).value();
    conversion bad = good;
    int column = random.pick(0, 7);
    bad.from.col[std::size_t(column)] ^= f2_unit(random.pick(0, 7));
    ASSERT_NE(run_conversion(src, dst, bad), "");
    ++noticed[0];
    if (!good.by_rounds || good.rounds.bits == 0) return;
    int which = random.pick(1, 3);
    bad = good;
    linear_layout& map = which == 1 ? bad.rounds.publish : which == 2 ? bad.rounds.fetch : bad.rounds.place;
    int bit = random.pick(0, map.in.total() - 1);
    map.col[std::size_t(bit)] ^= f2_unit(random.pick(0, map.out.total() - 1));
    ASSERT_NE(run_rounds(src, dst, bad, 2), "") << which;
    ++noticed[which];
  });
  for (int n : noticed) EXPECT_GT(n, 20);
}

TEST(layout_plans, matrix_loads) {
  for (int width : {5, 6, 7}) { // tiles as TMA leaves them, to fragments
    linear_layout smem = swizzled_tile(width, 1, 6, 6);
    linear_layout warps = copies_layout(warp, 0, d0);
    EXPECT_EQ(run_ldmatrix(fit(mma_a_layout(1) * identity_layout(warp, d0, 2), tile_space(6, 6)), smem, 1, false), "");
    EXPECT_EQ(run_ldmatrix(fit(transpose_layout(mma_b_layout(1)) * warps, tile_space(6, 6)), smem, 1, false), "");
    EXPECT_EQ(run_ldmatrix(fit(mma_b_layout(1), tile_space(6, 6)), smem, 1, true), "");
    EXPECT_EQ(run_ldmatrix(fit(wgmma_accumulator_layout(6), tile_space(6, 6)), smem, 1, false), ""); // stmatrix
    EXPECT_EQ(run_ldmatrix(fit(mma_a_layout(0), tile_space(5, 7)), swizzled_tile(width, 0, 5, 7), 0, false), "");
    EXPECT_EQ(run_ldmatrix(fit(mma_a_layout(2), tile_space(5, 5)), swizzled_tile(width, 2, 5, 5), 2, false), "");
  }
  // Without a swizzle the rows conflict, and the check says so.
  EXPECT_EQ(run_ldmatrix(fit(mma_a_layout(1), tile_space(6, 6)), row_major_tile(tile_space(6, 6)), 1, false),
            "rows conflict");
}

/// Plans and runs; returns the plan.
shared_plan stage(const linear_layout& src, const linear_layout& dst, int elem, const bank_model& m, bool matrix,
                  std::mt19937_64& engine) {
  shared_plan p = plan_shared(src, dst, elem, m, matrix);
  EXPECT_LT(p.cost, 1 << 30);
  EXPECT_EQ(run_staging(src, dst, elem, m, p, engine), "");
  if (!matrix) { // a common vector could not be wider than the plan's narrower side
    f2_vectors both = f2_intersect(src.columns({reg}), dst.columns({reg}));
    f2_vectors fixed = src.columns({lane, warp}) + dst.columns({lane, warp});
    EXPECT_GE(std::min(p.store_width, p.load_width), std::min(4 - elem, both.n - f2_intersect(both, fixed).n));
  }
  return p;
}

TEST(layout_plans, staging_of_named_layouts) {
  std::mt19937_64 engine(seed());
  bank_model nv = consecutive_phases();
  auto rows_of = [](int e, int m, int n, int w) {
    return blocked_layout({{0, e}, {std::max(0, 5 - (n - e)), std::min(5, n - e)}, {w, 0}}, tile_space(m, n));
  };
  for (int elem = 0; elem < 4; ++elem) {
    linear_layout a = rows_of(4 - elem, 6, 6, 2), t = transpose_layout(a);
    linear_layout operand = fit(mma_a_layout(std::min(elem, 2)) * identity_layout(warp, d0, 2), tile_space(6, 6));
    for (bool matrix : {false, true}) {
      stage(a, t, elem, nv, matrix, engine);
      stage(t, a, elem, nv, matrix, engine);
      stage(a, a, elem, nv, matrix, engine);
      stage(fit(wgmma_accumulator_layout(6), tile_space(6, 6)), a, elem, nv, matrix, engine);
      stage(a, operand, elem, nv, matrix, engine);
    }
  }
  bank_model gfx942 = consecutive_phases(6); // wave64, and a wide read serves lanes out of order
  gfx942.load[4] = f2_vectors{1, 2, 20};
  linear_layout amd = blocked_layout({{0, 3}, {3, 3}, {2, 0}}, tile_space(7, 6));
  stage(amd, fit(mfma_a_layout(5) * identity_layout(warp, d0, 2), tile_space(7, 6)), 1, gfx942, false, engine);
  stage(fit(mfma_accumulator_layout(5) * identity_layout(warp, d0, 2), tile_space(7, 6)), amd, 1, gfx942, false,
        engine);
  stage(fit(mfma_accumulator_layout(4) * identity_layout(warp, d0, 2), tile_space(7, 6)), amd, 2,
        consecutive_phases(6, 6), false, engine);
}

TEST(layout_plans, staging_of_default_layouts) {
  // What lowering asks for: the default layouts of a tile under both axis orders, tiny tiles with copies included.
  std::mt19937_64 engine(seed());
  const int down[] = {0, 1};
  for (int m : {1, 8, 33, 64})
    for (int n : {1, 4, 50, 128})
      for (int elem : {0, 1, 2, 3})
        for (int warps : {1, 4})
          for (int warp_size : {32, 64}) {
            blocked_request q{.element_bits = 8 << elem, .num_warps = warps, .warp_size = warp_size}, turned = q;
            turned.order = down;
            linear_layout a = default_blocked_layout({m, n}, q), b = default_blocked_layout({m, n}, turned);
            SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + " elem " + std::to_string(elem));
            stage(a, b, elem, consecutive_phases(warp_size == 64 ? 6 : 5), false, engine);
          }
}

TEST(layout_plans, staging) {
  std::array<int, 5> load_bytes{};
  int matrix_sides = 0;
  for_random(400, 22, [&](layout_random& random) {
    int elem = random.pick(0, 3), lanes = random.pick(0, 3) ? 5 : 6, r = random.pick(0, 5), w = random.pick(0, 2);
    int copies = random.pick(0, 3) == 0;
    bool bits_only = random.pick(0, 2) > 0, wide_banks = random.coin(), out_of_order = random.coin();
    linear_layout src = random.layout({r, lanes, w, 0, copies, bits_only}), dst = random.mixed(src, 2);
    bank_model m = consecutive_phases(lanes, lanes == 6 && wide_banks ? 6 : 5);
    if (lanes == 6 && out_of_order) m.load[4] = m.banks == 6 ? f2_vectors{1, 2, 12, 20} : f2_vectors{1, 2, 20};
    shared_plan p = stage(src, dst, elem, m, false, random.engine);
    ++load_bytes[std::size_t(std::min(4, p.load_width + elem))];
    if (lanes != 5) return;
    p = stage(src, dst, elem, consecutive_phases(), true, random.engine);
    matrix_sides += (p.store != shared_access::plain) + (p.load != shared_access::plain);
  });
  for (int n : load_bytes) EXPECT_GT(n, 0); // every width from 1 to 16 bytes was planned
  EXPECT_GT(matrix_sides, 0);
}

TEST(layout_plans, damaged_staging_is_noticed) {
  std::mt19937_64 engine(seed());
  linear_layout a = default_blocked_layout({64, 64}, {.num_warps = 4}), t = transpose_layout(a);
  bank_model m = consecutive_phases();
  shared_plan good = plan_shared(a, t, 2, m);
  ASSERT_EQ(run_staging(a, t, 2, m, good, engine), "");
  shared_plan bad = good;
  bad.smem = row_major_tile(tile_space(6, 6)); // right elements, and 8 or more ways of conflict on one side
  bad.store_width = vectorize(compose(a, invert(bad.smem)), offset, 2).width;
  bad.load_width = vectorize(compose(t, invert(bad.smem)), offset, 2).width;
  EXPECT_EQ(run_staging(a, t, 2, m, bad, engine), "banks conflict");
  bad = good;
  ++bad.load_width;
  EXPECT_EQ(run_staging(a, t, 2, m, bad, engine), "another width than planned");
  int conflicts = 0;
  for (int i = 0; i < good.smem.in.total(); ++i) // undo the swizzle, one segment bit at a time
    for (int j = 0; j < i; ++j) {
      bad = good;
      bad.smem.col[std::size_t(i)] ^= good.smem.col[std::size_t(j)];
      conflicts += run_staging(a, t, 2, m, bad, engine) != "";
    }
  EXPECT_GT(conflicts, 5);
}

TEST(layout_plans, conflict_formula_equals_counting) {
  int ways_seen[6] = {};
  for_random(1500, 23, [&](layout_random& random) {
    int elem = random.pick(0, 3), width = random.pick(0, 4 - elem), bits = random.pick(8, 12),
        banks = random.pick(5, 6);
    linear_layout to = zero_map({{lane, 5}}, {{offset, std::uint8_t(bits)}});
    for (int i = 0; i < 5; ++i) {
      bool dense = random.coin();
      f2_word column = dense ? random.bits(bits) : f2_unit(random.pick(0, bits - 1));
      to.col[std::size_t(i)] = column & ~f2_low_mask(width);
    }
    f2_vectors phase;
    for (int i = random.pick(0, 5); i > 0; --i) phase.push(f2_unit(i - 1));
    int ways = conflict_ways(phase_offsets(to, width, phase), elem, banks);
    auto byte = [&](int l) { return int(to(f2_word(l)) << elem); };
    ASSERT_EQ(count_conflicts(byte, 1 << (width + elem), phase, 5, banks), 1 << ways);
    ++ways_seen[ways];
  });
  for (int w = 0; w < 4; ++w) EXPECT_GT(ways_seen[w], 0) << w;
}

/// Sums by the butterfly; "" when every point holds the sum of its row.
std::string run_reduction(const linear_layout& l, layout_dim axis, const reduction_plan& p, layout_random& random) {
  std::vector<long> value(std::size_t{1} << l.out.total()), want(value.size()), point(std::size_t{1} << l.in.total());
  for (long& v : value) v = random.pick(0, 1000000);
  for (std::size_t e = 0; e < value.size(); ++e) want[e & ~l.out.mask(axis)] += value[e];
  for (std::size_t x = 0; x < point.size(); ++x) point[x] = value[l(x)];
  constexpr layout_dim levels[] = {reg, lane, warp, cta};
  for (const reduction_step& s : p) {
    for (int k = 3; k >= 0 && levels[k] != s.level; --k)
      if (s.delta & l.in.mask(levels[k])) return "a step reaches farther than its level";
    std::vector<long> old = point;
    for (std::size_t x = 0; x < point.size(); ++x) point[x] += old[x ^ s.delta];
  }
  for (std::size_t x = 0; x < point.size(); ++x) {
    if (point[x] != want[l(x) & ~l.out.mask(axis)]) return at_point("another sum", x);
    if (l.out.repack(p.result(x), p.result.out) != (l(x) & ~l.out.mask(axis))) return at_point("another layout", x);
  }
  return "";
}

linear_layout random_reducible(layout_random& random) {
  int r = random.pick(0, 3), t = random.pick(2, 5), w = random.pick(0, 2), b = random.pick(0, 1);
  int copies = random.pick(0, 2);
  bool bits_only = random.coin();
  return random.layout({r, t, w, b, copies, bits_only});
}

TEST(layout_plans, reductions) {
  for_random(300, 24, [](layout_random& random) {
    linear_layout l = random_reducible(random);
    layout_dim axis = random.coin() ? d0 : d1;
    bool ordered = random.coin();
    reduction_plan p = plan_reduction(l, axis, ordered);
    ASSERT_EQ(p.steps, l.out.bits(axis));
    ASSERT_EQ(run_reduction(l, axis, p, random), "");
    if (p.steps == 0) return;
    reduction_plan bad = p; // a step forgotten, then a step done twice
    --bad.steps;
    ASSERT_NE(run_reduction(l, axis, bad, random), "");
    bad = p;
    if (p.steps > 1) {
      bad.step[0] = bad.step[1];
      ASSERT_NE(run_reduction(l, axis, bad, random), "");
    }
  });
}

TEST(layout_plans, partial_results_have_a_layout) {
  for_random(300, 26, [](layout_random& random) {
    linear_layout l = random_reducible(random);
    layout_dim axis = random.coin() ? d0 : d1;
    bool ordered = random.coin();
    reduction_plan p = plan_reduction(l, axis, ordered);
    int done = random.pick(0, p.steps);
    linear_layout partials = partials_layout(l, axis, p, done);
    ASSERT_EQ(partials.out.bits(axis), p.steps - done);
    std::vector<long> value(std::size_t{1} << l.out.total()), want(std::size_t{1} << partials.out.total());
    std::vector<long> point(std::size_t{1} << l.in.total());
    for (long& v : value) v = random.pick(0, 1000000);
    std::set<f2_word> counted;
    for (f2_word x = 0; x < point.size(); ++x) {
      point[x] = value[l(x)];
      if (counted.insert(l(x)).second) want[partials(x)] += value[l(x)];
      if (ordered) { ASSERT_EQ(partials.out.get(partials(x), axis), l.out.get(l(x), axis) >> done); }
    }
    for (int i = 0; i < done; ++i) {
      std::vector<long> old = point;
      for (f2_word x = 0; x < point.size(); ++x) point[x] += old[x ^ p.step[std::size_t(i)].delta];
    }
    for (f2_word x = 0; x < point.size(); ++x) ASSERT_EQ(point[x], want[partials(x)]);
    ASSERT_TRUE(same_map(slice_layout(partials, axis), p.result));
  });
}

TEST(layout_plans, reduction_across_warps_through_shared_memory) {
  // 128x64 f32 along the rows' axis on 4 warps: the two warp steps become one conversion and two register steps.
  std::mt19937_64 engine(seed());
  linear_layout l = default_blocked_layout({128, 64}, {.num_warps = 4});
  reduction_plan p = plan_reduction(l, d0);
  ASSERT_EQ(p.count(warp), 2);
  linear_layout partials = partials_layout(l, d0, p, p.steps - 2);
  linear_layout finish = repeat_in_registers(zero_axis(partials, d0), d0, 2);
  std::optional<conversion> c = plan_conversion(partials, finish, 2);
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(c->kind, conversion_kind::shared);
  EXPECT_EQ(run_conversion(partials, finish, *c), "");
  reduction_plan rest = plan_reduction(finish, d0);
  EXPECT_EQ(rest.count(reg), 2);
  EXPECT_EQ(rest.steps, 2);
  EXPECT_TRUE(same_map(rest.result, slice_layout(finish, d0)));
  stage(partials, finish, 2, consecutive_phases(), false, engine);
}

TEST(layout_plans, ordered_reductions_and_scans_keep_the_order) {
  // Strings under concatenation: associative, far from commutative.
  for_random(100, 25, [](layout_random& random) {
    int r = random.pick(0, 2), w = random.pick(0, 1), copies = random.pick(0, 2);
    linear_layout l = random.layout({.reg = r, .lane = 4, .warp = w, .copies = copies});
    layout_dim axis = random.coin() ? d0 : d1;
    reduction_plan p = plan_reduction(l, axis, true);
    auto letter = [&](f2_word coordinate) { return std::string(1, char('a' + l.out.get(coordinate, axis))); };
    std::size_t n = std::size_t{1} << l.in.total();
    std::vector<std::string> total(n), prefix(n); // prefix: exclusive
    for (std::size_t x = 0; x < n; ++x) total[x] = letter(l(x));
    for (const reduction_step& s : p) {
      std::vector<std::string> old = total;
      for (std::size_t x = 0; x < n; ++x) {
        bool second = (l(x) & s.direction & -s.direction) != 0;
        total[x] = second ? old[x ^ s.delta] + old[x] : old[x] + old[x ^ s.delta];
        if (second) prefix[x] = old[x ^ s.delta] + prefix[x];
      }
    }
    for (std::size_t x = 0; x < n; ++x) {
      std::string want;
      for (f2_word i = 0; i < f2_unit(l.out.bits(axis)); ++i) want += char('a' + i);
      ASSERT_EQ(total[x], want);
      ASSERT_EQ(prefix[x], want.substr(0, l.out.get(l(x), axis)));
    }
  });
}

} // namespace
} // namespace kiln_test
