// Laws of the algebra over random layouts: inverses, products, quotients, subspaces, owners, shape operations.
#include "kiln/layout/index_terms.hpp"
#include "kiln/layout/ownership.hpp"
#include "kiln/layout/shape_ops.hpp"
#include "random_layout.hpp"

#include <map>

namespace kiln_test {
namespace {

using namespace kiln;
using enum layout_dim;

TEST(layout_laws, inverse) {
  for_random(400, 1, [](layout_random& random) {
    int reg_bits = random.pick(0, 3), lane_bits = random.pick(0, 5), warp_bits = random.pick(0, 2);
    linear_layout a = random.layout({.reg = reg_bits, .lane = lane_bits, .warp = warp_bits});
    linear_layout i = invert(a), id = compose(a, i);
    for (int k = 0; k < a.in.total(); ++k) ASSERT_EQ(id.col[std::size_t(k)], f2_unit(k));
    ASSERT_EQ(invert(i), a);
    linear_layout s = random.layout({.reg = 2, .lane = lane_bits, .warp = warp_bits, .cta = 1, .copies = 2});
    linear_layout right = compose(invert(s), s); // copies: a right inverse
    for (int k = 0; k < s.out.total(); ++k) ASSERT_EQ(right.col[std::size_t(k)], f2_unit(k));
  });
}

TEST(layout_laws, product_and_quotient) {
  for_random(400, 2, [](layout_random& random) {
    int n[8];
    for (int& x : n) x = random.pick(0, 2);
    linear_layout a = random.layout({.reg = n[0], .lane = n[1], .warp = n[2]});
    linear_layout b = random.layout({.reg = n[3], .lane = n[4]}), c = random.layout({.reg = n[5], .warp = n[6]});
    ASSERT_TRUE(same_map((a * b) * c, a * (b * c)));
    ASSERT_TRUE(same_map(*divide_left(a * b, a), b));
    linear_layout p = a * b; // splits each dimension into low and high bits
    for (f2_word x = 0; x < f2_unit(p.in.total()); ++x) {
      f2_word low = 0, high = 0;
      for (layout_dim d : {reg, lane, warp, cta}) {
        f2_word v = p.in.get(x, d);
        low |= a.in.put(d, v & f2_low_mask(a.in.bits(d)));
        high |= b.in.put(d, v >> a.in.bits(d));
      }
      for (layout_dim e : {d0, d1})
        ASSERT_EQ(p.out.get(p(x), e), a.out.get(a(low), e) | b.out.get(b(high), e) << a.out.bits(e));
    }
  });
}

TEST(layout_laws, quotient_of_no_multiple_is_nothing) {
  for_random(200, 3, [](layout_random& random) {
    linear_layout a = random.layout({.reg = 2, .lane = 3}), b = random.layout({.reg = 1, .lane = 2});
    linear_layout p = a * b;
    // Flip one bit of one column: the product stays a multiple of `a` iff both bits lie in b's part of their field.
    int column = random.pick(0, p.in.total() - 1), bit = random.pick(0, p.out.total() - 1);
    bool in_b = false, out_b = false;
    for (layout_dim d : {reg, lane}) in_b |= column >= p.in.shift(d) + a.in.bits(d) && (f2_unit(column) & p.in.mask(d));
    for (layout_dim e : {d0, d1}) out_b |= bit >= p.out.shift(e) + a.out.bits(e) && (f2_unit(bit) & p.out.mask(e));
    p.col[std::size_t(column)] ^= f2_unit(bit);
    layout_opt q = divide_left(p, a);
    ASSERT_EQ(q.has_value(), in_b && out_b);
    if (q) { ASSERT_TRUE(same_map(a * *q, p)); }
  });
}

TEST(layout_laws, subspaces) {
  for_random(1000, 4, [](layout_random& random) {
    f2_vectors x, y, all;
    int n = random.pick(2, 8), nx = random.pick(0, n), ny = random.pick(0, n);
    for (int k = 0; k < n; ++k) all.push(f2_unit(k));
    for (int k = 0; k < nx; ++k) x.push(random.bits(n));
    for (int k = 0; k < ny; ++k) y.push(random.bits(n));
    f2_vectors complement = common_complement(x, y, all), both = f2_intersect(x, y);
    int count = 0;
    for (f2_word v = 0; v < f2_unit(n); ++v) count += f2_span(x).contains(v) && f2_span(y).contains(v);
    ASSERT_EQ(count, 1 << both.n);
    ASSERT_EQ(f2_rank(complement), complement.n);
    ASSERT_EQ(complement.n, n - std::max(f2_rank(x), f2_rank(y)));
    ASSERT_EQ(f2_intersect(complement, x).n, 0);
    ASSERT_EQ(f2_intersect(complement, y).n, 0);
  });
}

TEST(layout_laws, owners_hold_each_element_once) {
  for_random(300, 5, [](layout_random& random) {
    int r = random.pick(0, 2), w = random.pick(0, 2), c = random.pick(0, 1), copies = random.pick(0, 3);
    bool bits_only = random.coin();
    linear_layout l = random.layout({r, 5, w, c, copies, bits_only});
    f2_word free = free_bits(l);
    std::map<f2_word, int> seen;
    for (f2_word x = 0; x < f2_unit(l.in.total()); ++x)
      if (!(x & free)) ++seen[l(x)];
    ASSERT_EQ(seen.size(), std::size_t{1} << l.out.total());
    for (auto [element, n] : seen) ASSERT_EQ(n, 1) << element;
  });
}

TEST(layout_laws, shape_operations_move_nothing) {
  for_random(200, 6, [](layout_random& random) {
    int r = random.pick(1, 3), w = random.pick(0, 2);
    bool bits_only = random.coin();
    linear_layout l = random.layout({.reg = r, .lane = 5, .warp = w, .bits_only = bits_only});
    linear_layout t = transpose_layout(l), flat = reshape_layout(l, {{d0, std::uint8_t(l.out.total())}});
    linear_layout joined = join_layout(l, d2), repeated = repeat_in_registers(l, d3, 2), wide = expand_layout(l, 1);
    int n = l.out.bits(d1);
    ASSERT_EQ(split_register(joined, d2), 0);
    ASSERT_TRUE(same_map(transpose_layout(t), l));
    ASSERT_TRUE(same_map(remove_axis(wide, 1), l));
    for (f2_word x = 0; x < f2_unit(l.in.total()); ++x) {
      f2_word row = l.out.get(l(x), d0), column = l.out.get(l(x), d1);
      ASSERT_EQ(t.out.get(t(x), d0), column);
      ASSERT_EQ(t.out.get(t(x), d1), row);
      ASSERT_EQ(flat(x), row << n | column);
      ASSERT_EQ(wide.out.get(wide(x), d0), row);
      ASSERT_EQ(wide.out.get(wide(x), d2), column);
      ASSERT_EQ(remove_axis(l, 0)(x), column);
      ASSERT_EQ(remove_axis(l, 1)(x), row);
      ASSERT_EQ(zero_axis(l, d1).out.get(zero_axis(l, d1)(x), d0), row);
      f2_word thread = joined.in.put(lane, l.in.get(x, lane)) | joined.in.put(warp, l.in.get(x, warp));
      for (f2_word half : {0, 1}) {
        f2_word hardware = joined.in.put(reg, l.in.get(x, reg) << 1 | half) | thread;
        ASSERT_EQ(joined.out.get(joined(hardware), d2), half);
        ASSERT_EQ(l.out.repack(joined(hardware), joined.out), l(x));
      }
      thread = repeated.in.put(lane, l.in.get(x, lane)) | repeated.in.put(warp, l.in.get(x, warp));
      for (f2_word k = 0; k < 4; ++k) {
        f2_word hardware = repeated.in.put(reg, l.in.get(x, reg) | k << l.in.bits(reg)) | thread;
        ASSERT_EQ(repeated.out.get(repeated(hardware), d3), k);
        ASSERT_EQ(l.out.repack(repeated(hardware), repeated.out), l(x));
      }
    }
  });
}

TEST(layout_laws, permutations_compose) {
  for_random(200, 7, [](layout_random& random) {
    linear_layout l = random.layout({.reg = 4, .lane = 5, .warp = 1});
    int m = random.pick(0, 5);
    l = reshape_layout(l, {{d2, std::uint8_t(10 - m)}, {d1, std::uint8_t(m / 2)}, {d0, std::uint8_t(m - m / 2)}});
    int order[] = {0, 1, 2}, inverse[3];
    random.shuffle(order, order + 3);
    for (int i = 0; i < 3; ++i) inverse[order[i]] = i;
    linear_layout p = permute_layout(l, order);
    ASSERT_EQ(permute_layout(p, inverse), l);
    for (f2_word x = 0; x < f2_unit(l.in.total()); ++x)
      for (int i = 0; i < 3; ++i) ASSERT_EQ(p.out.get(p(x), axis_dim(i)), l.out.get(l(x), axis_dim(order[i])));
  });
}

TEST(layout_laws, index_terms_evaluate_the_map) {
  for_random(300, 8, [](layout_random& random) {
    bool bits_only = random.coin();
    linear_layout l = random.layout({.reg = 2, .lane = 5, .warp = 2, .bits_only = bits_only});
    f2_word reached = reachable_bits(l, {lane, warp}, d0);
    for (layout_dim to : {d0, d1}) {
      index_terms of_lane = terms_of(l, lane, to), of_warp = terms_of(l, warp, to);
      for (f2_word t = 0; t < 32; ++t)
        for (f2_word w = 0; w < 4; ++w) {
          f2_word want = l.out.get(l(l.in.put(lane, t) | l.in.put(warp, w)), to);
          ASSERT_EQ(of_lane(t) ^ of_warp(w), want);
          if (to == d0) { ASSERT_EQ(want & ~reached, 0u); }
          f2_word sum = 0;
          for (const index_term& term : of_lane) sum += index_terms{{term}, 1}(t);
          if (of_lane.disjoint) { ASSERT_EQ(sum, of_lane(t)); }
        }
    }
  });
}

} // namespace
} // namespace kiln_test
