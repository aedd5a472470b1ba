// What the comparison of implementations notices, and what it rightly overlooks.
#include "compare.hpp"
#include "interpret.hpp"

#include <cmath>

namespace {

using namespace kiln;
using namespace kiln_test;

/// The interpreter, then some damage.
template <class Damage>
runner damaged(Damage damage) {
  return [=](graph_view g, dims grid, arguments_image& a) {
    interpreter_runner()(g, grid, a);
    damage(a);
  };
}

/// The number of the first output of a type, or -1.
int output_of(generated const& g, dtype t) {
  for (std::size_t i = 0; i < g.arguments.size(); ++i)
    if (g.arguments[i].is_output && g.arguments[i].type == t && !g.arguments[i].approximate) return static_cast<int>(i);
  return -1;
}

TEST(Compare, EqualRunsAgree) {
  for (std::uint64_t seed = 1; seed < 30; ++seed) EXPECT_EQ(compare(random_graph(seed), interpreter_runner()), "");
}

TEST(Compare, OneBitInOneElementIsSeen) {
  int tried = 0;
  for (std::uint64_t seed = 1; seed < 60; ++seed) {
    generated const g = random_graph(seed);
    for (std::size_t i = 0; i < g.arguments.size(); ++i) {
      if (!g.arguments[i].is_output || !is_int(g.arguments[i].type) || g.arguments[i].elements == 0) continue;
      ++tried;
      std::string const text = compare(g, damaged([=](arguments_image& a) { a.memory[i].elements().back() ^= std::byte{0x40}; }));
      EXPECT_NE(text.find("argument " + std::to_string(i)), std::string::npos) << text;
      EXPECT_NE(text.find("seed"), std::string::npos) << text;
      break;
    }
  }
  EXPECT_GT(tried, 10);
}

TEST(Compare, StrayWritesAreSeen) {
  generated const g = random_graph(1);
  for (int where : {-1, 0}) {
    std::string const text = compare(g, damaged([=](arguments_image& a) {
      for (memory_image& m : a.memory)
        if (!m.storage.empty()) {
          (where < 0 ? m.data()[-1] : m.data()[m.size]) = std::byte{1};
          break;
        }
    }));
    EXPECT_NE(text.find("was written"), std::string::npos) << text;
  }
  std::string const text = compare(g, damaged([&](arguments_image& a) {
    for (std::size_t i = 0; i < a.memory.size(); ++i)
      if (!g.arguments[i].is_output && a.memory[i].size != 0) {
        a.memory[i].elements()[0] ^= std::byte{1};
        break;
      }
  }));
  EXPECT_NE(text.find("wrote to an input"), std::string::npos) << text;
}

TEST(Compare, FailuresAreText) {
  std::string const text = compare(random_graph(1), [](graph_view, dims, arguments_image&) { throw std::runtime_error("no such device"); });
  EXPECT_NE(text.find("tested: no such device"), std::string::npos) << text;
}

TEST(Compare, NanPayloadsAndSignsOfZeroAreOverlooked) {
  for (std::uint64_t seed = 1; seed < 200; ++seed) {
    generated const g = random_graph(seed);
    int const i = output_of(g, dtype::f32);
    if (i < 0) continue;
    EXPECT_EQ(compare(g, damaged([=](arguments_image& a) {
      for (i64 e = 0; e < a.kinds[static_cast<std::size_t>(i)].elements; ++e) {
        f32 x;
        std::byte* const at = a.memory[static_cast<std::size_t>(i)].data() + 4 * e;
        std::memcpy(&x, at, 4);
        if (x == 0 || x != x) at[3] ^= std::byte{0x80};
        if (x != x) at[0] ^= std::byte{1};
      }
    })), "");
  }
}

// -- closeness ---------------------------------------------------------------------------------------------------------------------

std::vector<argument> product_arguments() {
  std::vector<argument> a(3);
  for (argument& x : a) x.kind = node_kind::pointer, x.type = dtype::f32, x.elements = 16 * 16, x.holds = contents::moderate;
  a[2].is_output = true;
  a[2].holds = contents::zeros;
  return a;
}

TEST(CompareClose, AnotherOrderOfSummationIsFineALostTermIsNot) {
  auto product = []<bool Lose>(std::bool_constant<Lose>) {
    return record([](context& k, ptr<const f32> a, ptr<const f32> b, ptr<f32> c) {
      auto i = k.iota<0, 16, 16>() * 16 + k.iota<1, 16, 16>();
      // The lossy one drops the last term of every sum.
      auto y = load(b + i, {.mask = k.iota<0, 16, 16>() < (Lose ? 15 : 16)});
      store(c + i, k.dot(load(a + i), y));
    });
  };
  // The same product, last terms first.
  auto reversed = record([](context& k, ptr<const f32> a, ptr<const f32> b, ptr<f32> c) {
    auto i = k.iota<0, 16, 16>() * 16 + k.iota<1, 16, 16>();
    auto x = load(a + (k.iota<0, 16, 16>() * 16 + 15 - k.iota<1, 16, 16>())), y = load(b + ((15 - k.iota<0, 16, 16>()) * 16 + k.iota<1, 16, 16>()));
    store(c + i, k.dot(x, y));
  });
  auto run_other = [](graph const& other) {
    return [&other](graph_view, dims grid, arguments_image& a) { interpreter_runner()(other, grid, a); };
  };
  graph const good = product(std::false_type{}), lossy = product(std::true_type{});
  for (std::uint64_t seed = 1; seed < 10; ++seed) {
    EXPECT_EQ(compare_close(good, {1}, product_arguments(), run_other(reversed), {}, seed), "");
    EXPECT_NE(compare_close(good, {1}, product_arguments(), run_other(lossy), {}, seed), "");
  }
}

TEST(CompareClose, PoisonThatStaysIsSeen) {
  auto g = record([](context& k, ptr<f32> y) { store(y + k.arange<64>(), exp(cast<f32>(k.arange<64>()) * 0.01f)); });
  std::vector<argument> a(1);
  a[0].kind = node_kind::pointer, a[0].type = dtype::f32, a[0].elements = 64, a[0].is_output = true;
  EXPECT_EQ(compare_close(g, {1}, a, interpreter_runner()), "");
  EXPECT_NE(compare_close(g, {1}, a, [](graph_view, dims, arguments_image&) {}), "");
}

} // namespace
