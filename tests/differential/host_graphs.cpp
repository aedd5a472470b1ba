// Random graphs on the host lowering against the interpreter, and one small graph for every operation on every type.
#include "cluster_runs.hpp"
#include "host_runner.hpp"
#include "order_graphs.hpp"
#include "product_graphs.hpp"
#include "storage_graphs.hpp"
#include "test_seed.hpp"

#include <kiln/graph/text.hpp>
#include <kiln/validate/verify.hpp>

#include <gtest/gtest.h>

namespace {

using namespace kiln_test;
using kiln::dtype;
using kiln::op;

// exp, sin and their kin differ within their tolerance; 16-bit results by one place.
constexpr std::int64_t ulps = 8;

void agree(int graphs, std::uint64_t salt, generator_options const& options, std::int64_t chunk, bool with_facts) {
  for (int i = 0; i < graphs; ++i) {
    const generated g = random_graph(seed() * 1000003 + salt + static_cast<std::uint64_t>(i), options);
    const std::string differences = compare(g, host_runner(chunk, with_facts), {.seed = g.seed, .ulps = ulps});
    ASSERT_EQ(differences, "") << kiln::print(g.graph);
  }
}

TEST(HostGraphs, EveryOperationOnEveryType) {
  int ran = 0;
  for (int o = 0; o < kiln::op_count; ++o)
    for (int t = 0; t < kiln::dtype_count; ++t) {
      if (!accepts(static_cast<op>(o), static_cast<dtype>(t))) continue;
      if (static_cast<op>(o) == op::device_print) continue; // prints write no output: host_effects.cpp
      for (std::uint64_t k = 1; k <= 3; ++k) {
        const generated g = single(static_cast<op>(o), static_cast<dtype>(t), seed() + k);
        const std::string differences = compare(g, host_runner(k == 3 ? 1 : 3, k == 2), {.seed = g.seed, .ulps = ulps});
        EXPECT_EQ(differences, "") << name_of(static_cast<op>(o)) << " " << name_of(static_cast<dtype>(t)) << "\n" << kiln::print(g.graph);
        ++ran;
      }
    }
  EXPECT_GT(ran, 1000);
}

TEST(HostGraphs, Products) {
  const auto forms = product_forms();
  for (std::size_t i = seed() % 5; i < forms.size(); i += 5) // compiling all of them takes a minute
    EXPECT_EQ(compare(product_graph(forms[i], seed()), host_runner(1, i % 2), {.seed = seed()}), "") << forms[i].text();
}
TEST(HostGraphs, Order) {
  const auto forms = order_forms();
  for (std::size_t i = 0; i < forms.size(); ++i) {
    ASSERT_EQ(kiln::verify(order_graph(forms[i], 1).graph).view(), "") << forms[i].text();
    EXPECT_EQ(compare(order_graph(forms[i], seed() + i), host_runner(1, i % 2), {.seed = seed() + i}), "") << forms[i].text();
  }
}
TEST(HostGraphs, Storage) {
  for (storage_case const& c : storage_cases()) EXPECT_EQ(compare(c.g, host_runner(1, false), {.seed = seed()}), "") << c.name;
}
TEST(HostGraphs, Clusters) {
#define KILN_AGREES(kernel, x, y, z) EXPECT_EQ(differs_in_clusters(kiln::device::host(), [](auto&... a) { kernel(a...); }, #kernel, {x, y, z}), "");
  KILN_EVERY_CLUSTER(KILN_AGREES)
#undef KILN_AGREES
}
TEST(HostGraphs, Any) { agree(400, 0, {}, 3, false); }
TEST(HostGraphs, AnyWithFacts) { agree(200, 500000, {}, 2, true); }
TEST(HostGraphs, PowersOfTwo) { agree(200, 600000, {.powers_of_two = true}, 4, false); }
TEST(HostGraphs, Short) { agree(400, 700000, {.steps = 6, .max_elements = 4096}, 5, false); }
TEST(HostGraphs, Long) { agree(40, 800000, {.steps = 80}, 3, false); }
TEST(HostGraphs, StraightLine) { agree(200, 900000, {.control = false, .local = false, .atomics = false}, 3, false); }

} // namespace
