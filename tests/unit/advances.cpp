// Cells that loops advance, written as functions of the index: the same results in the interpreter, and no cell left; what
// does not qualify stays as it is.
#include "jit/passes/advances.hpp"

#include "interpret.hpp"

#include <algorithm>

namespace {

using namespace kiln;
using namespace kiln_test;

/// Rows and columns of small numbers, whose products are exact.
struct operands {
  guarded<f32> a{16 * 64}, b{64 * 16}, c{16 * 16};
  operands() {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<f32>(i % 7) - 3, b[i] = static_cast<f32>(i % 5) - 2;
  }
};

std::optional<graph> counted(graph_view const& g) { return jit::count_advances(g, graph_facts(g, {.facts = {}, .grid = {}})); }

bool has_cells_of(graph_view const& g, node_kind kind) {
  return std::ranges::any_of(g.nodes, [&](node const& n) { return n.code == op::var_get && n.kind == kind; });
}

void expect_same(graph_view const& g, i32 depth) {
  auto const r = counted(g);
  ASSERT_TRUE(r.has_value());
  graph_view const v = *r;
  EXPECT_FALSE(has_cells_of(v, node_kind::pointer));
  operands x, y;
  run_clean(g, {1}, {x.a, x.b, x.c, kiln_test::val(depth)}, {});
  run_clean(v, {1}, {y.a, y.b, y.c, kiln_test::val(depth)}, {});
  for (std::size_t i = 0; i < x.c.size(); ++i) ASSERT_EQ(x.c[i], y.c[i]) << i;
}

TEST(Advances, PointersAndIntegers) {
  // Read before and after they are advanced, by an amount that stands behind the first use; an integer counts too.
  expect_same(record([](context& k, ptr<const f32> a, ptr<const f32> b, ptr<f32> c, kiln::val<i32> depth) {
                auto r = expand_dims<1>(k.arange<16>());
                auto s = expand_dims<1>(k.arange<8>());
                auto i = expand_dims<0>(k.arange<8>());
                auto n = expand_dims<0>(k.arange<16>());
                auto pa = k.var(a + (r * 64 + i));
                auto pb = k.var(b + (s * 16 + n));
                auto at = k.var(k.let(i32{3}));
                auto acc = k.var(k.zeros<f32, 16, 16>());
                for (auto step : k.range(8, depth, 8)) {
                  (void)step;
                  auto x = load(pa);
                  pa = pa + 8;
                  auto more = load(pa, {.mask = (r + i) < at});
                  acc = k.dot(x + more, load(pb), acc);
                  at = 5 + at;
                  auto width = k.let(i32{2}) * 8;
                  pb = pb + width * 8;
                }
                store(c + (r * 16 + n), acc + cast<f32>(at));
              }),
              56);
}

TEST(Advances, NoPasses) {
  expect_same(record([](context& k, ptr<const f32> a, ptr<const f32> b, ptr<f32> c, kiln::val<i32> depth) {
                auto r = expand_dims<1>(k.arange<16>());
                auto n = expand_dims<0>(k.arange<16>());
                auto pa = k.var(a + (r * 64 + n));
                auto acc = k.var(k.zeros<f32, 16, 16>());
                for (auto step : k.range(0, depth, 16)) {
                  (void)step;
                  acc = k.dot(load(pa), load(b + (r * 16 + n)), acc);
                  pa = pa + 16;
                }
                store(c + (r * 16 + n), acc);
              }),
              0);
}

template <class Advance> bool left_alone(Advance) {
  return !counted(record([](context& k, ptr<const f32> a, ptr<const f32> b, ptr<f32> c, kiln::val<i32> depth) {
            auto r = expand_dims<1>(k.arange<16>());
            auto n = expand_dims<0>(k.arange<16>());
            auto p = k.var(a + (r * 64 + n));
            auto acc = k.var(k.zeros<f32, 16, 16>());
            for (auto step : k.range(0, depth, 16)) {
              acc = k.dot(load(p), load(b + (r * 16 + n)), acc);
              Advance{}(p, step, a + (r * 64 + n));
            }
            store(c + (r * 16 + n), acc);
          })).has_value();
}

TEST(Advances, WhatIsLeftAlone) {
  EXPECT_FALSE(left_alone([](auto& p, auto, auto) { p = p + 16; }));
  EXPECT_TRUE(left_alone([](auto& p, auto step, auto) { p = p + step; })) << "another amount in every pass";
  EXPECT_TRUE(left_alone([](auto& p, auto, auto) { p = p + 16, p = p + 16; })) << "set twice";
  EXPECT_TRUE(left_alone([](auto& p, auto, auto first) { p = first + 16; })) << "not what it held";
}

} // namespace
