// The interpreter against itself: whatever is left to chance (when copies arrive, the order of CTAs) and whatever is only
// quicker (loops over one element type) must not change a result.
#include "compare.hpp"
#include "interpret.hpp"
#include "test_seed.hpp"

#include <gtest/gtest.h>

namespace {

using namespace kiln_test;
namespace ip = kiln::interpreter;

void agree(ip::run_options const& a, ip::run_options const& b, int graphs, generator_options const& options = {}) {
  if (!full_speed) graphs /= 5;
  for (int i = 0; i < graphs; ++i) {
    generated const g = random_graph(seed() + static_cast<std::uint64_t>(i), options);
    std::string const differences = compare(g, interpreter_runner(a), interpreter_runner(b), {.seed = g.seed});
    ASSERT_EQ(differences, "");
  }
}

TEST(InterpreterSelf, TypedLoopsAgreeWithScalarOps) { agree({}, {.typed_loops = false}, 1000); }
TEST(InterpreterSelf, CompletionDoesNotMatter) {
  agree({.policy = ip::completion::early}, {.policy = ip::completion::late}, 500);
  agree({.policy = ip::completion::random, .seed = seed()}, {.policy = ip::completion::late}, 500);
}
TEST(InterpreterSelf, OrderOfCtasDoesNotMatter) {
  agree({}, {.order = ip::order::seeded, .seed = seed(), .resident_ctas = 3}, 500);
}
TEST(InterpreterSelf, ChecksDoNotMatter) { agree({}, {.check = false}, 200); }

TEST(InterpreterSelf, EveryOperationOnEveryType) {
  int pairs = 0;
  for (int o = 0; o < kiln::op_count; ++o)
    for (int t = 0; t < kiln::dtype_count; ++t) {
      auto const code = static_cast<kiln::op>(o);
      auto const type = static_cast<kiln::dtype>(t);
      if (!accepts(code, type)) continue;
      ++pairs;
      generated const g = single(code, type, seed(), {.prints = true});
      std::string const differences = compare(g, interpreter_runner({.policy = ip::completion::early}), interpreter_runner({.typed_loops = false}), {.seed = seed()});
      ASSERT_EQ(differences, "") << kiln::name_of(code) << " of " << kiln::name_of(type);
    }
  EXPECT_GT(pairs, 500);
}

} // namespace
