// Every pass keeps the meaning of every graph: the interpreter gives the same before and after. And what axis facts claim
// about values is what the interpreter computes.
#include "compare.hpp"
#include "test_seed.hpp"

#include <kiln/graph/text.hpp>
#include <kiln/validate/verify.hpp>
#include <src/graph/axis_facts.hpp>
#include <src/graph/passes/passes.hpp>

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln_test;

namespace {

std::int64_t power_in(std::int64_t x) { return x == 0 ? 16 : x & -x; }

/// Some of what is true of the arguments.
pass_options truths(generated const& x, std::mt19937_64& random) {
  pass_options o;
  o.facts = specialisation::generic(x.graph);
  auto tell = [&](integer_fact& f, std::int64_t value) {
    if (random() % 3 == 0)
      f = {true, value, 1};
    else if (random() % 2 == 0)
      f.divisor = static_cast<std::int32_t>(std::min<std::int64_t>(power_in(value), 64));
  };
  for (std::size_t i = 0; i < x.arguments.size(); ++i) {
    argument const& a = x.arguments[i];
    param_facts& f = o.facts->params[i];
    if (a.kind == node_kind::value) {
      if (is_float(a.type) || is_bool(a.type)) {
        if (random() % 2) f.scalar = {true, static_cast<std::int64_t>(a.bits), 1};
      } else {
        scalar const s{a.type, a.bits};
        tell(f.scalar, int_of(s));
        if (f.scalar.constant) f.scalar.value = static_cast<std::int64_t>(a.bits);
      }
    }
    for (int d = 0; d < a.rank; ++d) {
      tell(f.extent[d], a.extent[d]);
      tell(f.stride[d], a.stride[d]);
    }
  }
  if (random() % 2) o.grid = x.grid;
  return o;
}

/// Runs the passed graph instead of the one it is given.
std::string differences(generated const& x, graph const& after) {
  runner const reference = interpreter_runner();
  return compare(x, reference, [&](graph_view, dims grid, arguments_image& arguments) { reference(after, grid, arguments); }, {.seed = x.seed});
}

void check(generated const& x, std::vector<std::string_view> const& names, pass_options const& options) {
  graph after;
  ASSERT_NO_THROW(after = run_passes(x.graph, names, options));
  diagnostic const d = verify(after);
  ASSERT_TRUE(d.ok()) << d.text << "\nbefore:\n" << print(x.graph) << "\nafter:\n" << print(after);
  ASSERT_EQ(differences(x, after), "") << "seed " << x.seed << "\nbefore:\n" << print(x.graph, {.positions = false}) << "\nafter:\n" << print(after, {.positions = false});
}

TEST(passes_keep_meaning, alone_and_together_on_random_graphs) {
  std::mt19937_64 random(seed());
  for (int i = 0; i < 300; ++i) {
    generator_options g;
    g.steps = 5 + i % 30;
    generated const x = random_graph(seed() + static_cast<std::uint64_t>(i), g);
    pass_options const o = truths(x, random);
    check(x, {graph_passes()[static_cast<std::size_t>(i) % graph_passes().size()].name}, o);
    check(x, {standard_passes().begin(), standard_passes().end()}, o);
    if (HasFatalFailure()) FAIL();
  }
}

TEST(passes_keep_meaning, on_every_operation_and_type) {
  std::mt19937_64 random(seed());
  for (int o = 0; o < op_count; ++o)
    for (int t = 0; t < dtype_count; ++t) {
      if (!accepts(static_cast<op>(o), static_cast<dtype>(t))) continue;
      generated const x = single(static_cast<op>(o), static_cast<dtype>(t), random(), {.prints = true});
      check(x, {standard_passes().begin(), standard_passes().end()}, truths(x, random));
      if (HasFatalFailure()) FAIL() << name_of(static_cast<op>(o)) << " on " << name_of(static_cast<dtype>(t));
    }
}

/// One CTA's part of an output, as the facts of the stored node see it.
void check_values(graph_facts const& facts, graph_view const& g, int node, std::vector<scalar> const& values) {
  node_facts const& f = facts[node];
  shape const& s = g.shape_of(node);
  auto number = [](scalar v) { return is_signed_int(v.type) ? wide_integer{int_of(v)} : static_cast<wide_integer>(v.bits); };
  auto fail = [&](char const* what) { ADD_FAILURE() << what << " of node " << node << ": " << facts.text(node) << "\n" << print(g, {.positions = false, .comment = [&](int i) { return facts.text(i); }}); };
  for (scalar v : values) {
    wide_integer const x = number(v);
    if (x < f.range.lo || x > f.range.hi) return fail("range");
    if (x % f.divisor != 0) return fail("divisor");
  }
  // Along each axis, from every row's first element.
  std::int64_t stride = 1;
  for (int d = s.rank - 1; d >= 0; stride *= s.extent[d--]) {
    axis_fact const& a = f.axis[d];
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto const c = static_cast<std::int64_t>(i) / stride % s.extent[d];
      if (c > 0) {
        scalar const before = values[i - static_cast<std::size_t>(stride)];
        scalar const next = scalar_from_bits(before.type, before.bits + 1);
        if (c % a.contiguity != 0 && !(values[i] == next)) return fail("contiguity");
        if (c % a.constancy != 0 && !(values[i] == before)) return fail("constancy");
      }
      if (c % a.contiguity == 0 && number(values[i]) % a.divisibility != 0) return fail("divisibility");
    }
  }
}

TEST(axis_facts, hold_for_the_values_that_are_computed) {
  std::mt19937_64 random(seed());
  int checked = 0, known = 0;
  for (int i = 0; i < 500 && !testing::Test::HasFailure(); ++i) {
    generator_options options;
    options.arrays = false;
    options.atomics = false;
    options.allow = [](op, dtype t) { return !is_float(t); };
    generated const x = random_graph(seed() + static_cast<std::uint64_t>(i), options);
    graph_view const g = x.graph;
    graph_facts const facts(g, truths(x, random));
    arguments_image memory(x.arguments, x.seed);
    interpreter_runner()(g, x.grid, memory);
    int depth = 0;
    for (int n = 0; n < g.size(); ++n) {
      depth += has(g[n].code, trait::opens) - has(g[n].code, trait::closes);
      if (g[n].code != op::store || depth > 0 || g.operand(n, 2) >= 0) continue;
      int const value = g.operand(n, 1);
      if (is_float(g[value].type)) continue;
      int base = g.operand(g.operand(n, 0), 0);
      if (g[base].code == op::broadcast) base = g.operand(base, 0);
      ASSERT_EQ(g[base].code, op::param);
      auto const& image = memory.memory[static_cast<std::size_t>(g.attribute(base, 0))];
      std::vector<std::byte> const bytes = image.copy();
      std::int64_t const elements = g.shape_of(value).elements();
      for (std::int64_t cta = 0; cta < x.grid.x; ++cta) {
        std::vector<scalar> values;
        for (std::int64_t e = 0; e < elements; ++e) values.push_back(element_at(bytes, g[value].type, cta * elements + e));
        check_values(facts, g, value, values);
        ++checked;
        known += !facts.text(value).empty();
      }
    }
  }
  EXPECT_GT(checked, 1000);
  EXPECT_GT(known, checked / 4);
}

} // namespace
