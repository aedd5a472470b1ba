// The generator itself, and what holds for every graph: it verifies, and its text form is exact.
#include "graph_equal.hpp"
#include "random_graph.hpp"
#include "test_seed.hpp"

#include <kiln/graph/hash.hpp>
#include <kiln/graph/text.hpp>
#include <kiln/validate/verify.hpp>

#include <gtest/gtest.h>

#include <set>

using namespace kiln;

namespace {

void check(kiln_test::generated const& x) {
  graph_view const g = x.graph;
  diagnostic const d = verify(g);
  ASSERT_TRUE(d.ok()) << std::string(d.text, static_cast<std::size_t>(d.length)) << " at node " << d.node << "\n" << print(g);
  ASSERT_EQ(x.arguments.size(), g.params.size());
  std::string const text = print(g);
  auto const back = parse_graphs(text);
  ASSERT_EQ(back.size(), 1u);
  ASSERT_EQ(kiln_test::difference(g, back[0]), "") << text;
  ASSERT_EQ(print(back[0]), text);
  ASSERT_EQ(semantic_hash(back[0]), semantic_hash(g));
  ASSERT_EQ(debug_hash(back[0]), debug_hash(g));
}

TEST(random_graphs, are_valid_and_their_text_is_exact) {
  std::uint64_t const seed = kiln_test::seed();
  for (std::uint64_t i = 0; i < 400; ++i) {
    kiln_test::generator_options o;
    o.steps = 5 + static_cast<int>(i % 40);
    o.prints = i % 3 == 0;
    o.powers_of_two = i % 5 == 0;
    check(kiln_test::random_graph(seed + i, o));
    if (HasFatalFailure()) FAIL() << "graph seed " << seed + i;
  }
}

TEST(random_graphs, one_seed_gives_one_graph) {
  for (std::uint64_t i = 1; i < 20; ++i)
    EXPECT_EQ(print(kiln_test::random_graph(i).graph), print(kiln_test::random_graph(i).graph));
  EXPECT_NE(semantic_hash(kiln_test::random_graph(1).graph), semantic_hash(kiln_test::random_graph(2).graph));
}

TEST(random_graphs, every_operation_has_a_graph_for_every_type_that_it_accepts) {
  kiln_test::generator_options all;
  all.prints = true;
  int count = 0;
  for (int o = 0; o < op_count; ++o) {
    bool any = false;
    for (int t = 0; t < dtype_count; ++t) {
      auto const code = static_cast<op>(o);
      auto const type = static_cast<dtype>(t);
      if (!kiln_test::accepts(code, type)) continue;
      any = true;
      ++count;
      auto const x = kiln_test::single(code, type, kiln_test::seed(), all);
      bool found = false;
      for (node const& n : x.graph.nodes) found |= n.code == code;
      EXPECT_TRUE(found) << print(x.graph);
      check(x);
      if (HasFatalFailure()) FAIL() << name_of(code) << " on " << name_of(type);
    }
    EXPECT_NE(any, kiln_test::not_random(static_cast<op>(o))) << name_of(static_cast<op>(o)) << " accepts no type";
  }
  EXPECT_GT(count, 600);
}

TEST(random_graphs, the_options_keep_out_what_they_say) {
  kiln_test::generator_options o;
  o.control = o.local = o.atomics = o.arrays = o.checks = false;
  o.allow = [](op code, dtype t) { return code != op::exp && code != op::reduce && t != dtype::f64; };
  o.steps = 40;
  std::set<op> seen;
  for (std::uint64_t i = 0; i < 60; ++i)
    for (node const& n : kiln_test::random_graph(i, o).graph.nodes) {
      seen.insert(n.code);
      EXPECT_FALSE(has(n.code, trait::opens) && n.code != op::combine_begin);
      EXPECT_FALSE(n.code == op::var || n.code == op::alloc || n.code == op::atomic_rmw || n.code == op::region || n.code == op::exp ||
                   (n.code == op::sub && n.type == dtype::f64)) << name_of(n.code);
    }
  EXPECT_GT(seen.size(), 40u);
}

TEST(random_graphs, buffers_hold_what_they_promise) {
  for (int t = 0; t < dtype_count; ++t)
    for (auto c : {kiln_test::contents::values, kiln_test::contents::special, kiln_test::contents::moderate, kiln_test::contents::small}) {
      kiln_test::argument a{.kind = node_kind::pointer, .type = static_cast<dtype>(t), .elements = 4000, .holds = c};
      auto const bytes = kiln_test::fill(a, kiln_test::seed());
      int nans = 0;
      for (std::int64_t i = 0; i < a.elements; ++i) {
        scalar const s = kiln_test::element_at(bytes, a.type, i);
        nans += is_nan(s);
        if (c == kiln_test::contents::small || c == kiln_test::contents::moderate) {
          double const x = value_of<f64>(s);
          EXPECT_LE(std::abs(x), c == kiln_test::contents::small ? 4 : is_float(a.type) ? 16 : 100);
        }
      }
      EXPECT_EQ(nans > 0, c == kiln_test::contents::special && is_float(a.type)) << name_of(a.type);
    }
}

} // namespace
