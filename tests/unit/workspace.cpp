// alloc_global: memory that a launch brings, on the host, in the interpreter and in text; what streams and captures make of
// it on a GPU is in fake_gpu.cpp.
#include <kiln/graph/hash.hpp>
#include <kiln/graph/text.hpp>
#include <kiln/interpreter/check.hpp>
#include <kiln/kiln.hpp>
#include <kiln/validate/validate.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "graph_equal.hpp"

using namespace kiln;

namespace {

// Reverses 128 numbers of each CTA by way of memory that nobody passes.
inline constexpr auto reverse_each = kernel<"reverse_each">([](context& k, ptr<i32> x) {
  auto w = k.alloc_global<i32, 2, 64>({.per = per::cta});
  auto first = x + k.program_id<i64>(0) * 128;
  store(w + k.arange<128>(), load(first + k.arange<128>()));
  store(first + k.arange<128>(), load(w + (127 - k.arange<128>())));
});
// Counts its launches' CTAs: right only if the counter is 0 before each.
inline constexpr auto count_ctas = kernel<"count_ctas">([](context& k, ptr<i32> highest) {
  auto w = k.alloc_global<i32, 1>({.zero = true});
  auto scratch = k.alloc_global<f64, 3>();
  store(scratch, k.full<f64>(1));
  auto before = atomic_add(w, 1);
  atomic_max(highest, before + 1);
});

std::vector<i32> counting(i64 n) {
  std::vector<i32> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<i32>(i);
  return v;
}
bool reversed(std::vector<i32> const& v) {
  for (std::size_t i = 0; i < v.size(); ++i)
    if (v[i] != static_cast<i32>(i / 128 * 128 + 127 - i % 128)) return false;
  return true;
}

static_assert(argument_count(reverse_each.graph().params) == 1 && argument_count(count_ctas.graph().params) == 1);
static_assert(reverse_each.ok && count_ctas.ok);

} // namespace

TEST(workspace, each_cta_has_its_own) {
  device dev = device::host();
  for (i64 ctas : {1, 3, 100, 7}) {
    buffer<i32> x(dev, counting(ctas * 128));
    reverse_each.launch(dev, grid(ctas), x);
    EXPECT_TRUE(reversed(x.to_vector())) << ctas;
  }
  buffer<i32> x(dev, counting(6 * 128));
  reverse_each.prepare(dev, x);
  reverse_each.launch(dev, grid(3, 1, 1), x);
  reverse_each.launch(dev, grid(0), x);
}

TEST(workspace, of_the_grid_is_zero_before_each_launch_where_asked) {
  device dev = device::host();
  for (i32 ctas : {5, 1, 64, 3}) {
    buffer<i32> highest(dev, 1);
    highest.fill(0);
    count_ctas.launch(dev, grid(ctas), highest);
    EXPECT_EQ(highest.to_vector()[0], ctas);
  }
}

TEST(workspace, launches_at_the_same_time_do_not_share) {
  device dev = device::host();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        i64 const ctas = 1 + (t * 7 + i) % 20;
        buffer<i32> x(dev, counting(ctas * 128)), highest(dev, 1);
        reverse_each.launch(dev, grid(ctas), x);
        highest.fill(0);
        count_ctas.launch(dev, grid(ctas), highest);
        wrong += !reversed(x.to_vector()) + (highest.to_vector()[0] != ctas);
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(workspace, the_checker_brings_it_and_sees_its_end) {
  auto v = counting(3 * 128);
  EXPECT_EQ(check(reverse_each, grid(3), v).text(), "");
  EXPECT_TRUE(reversed(v));
  static constexpr auto beyond = kernel<"beyond">([](context& k, ptr<i32> x) {
    auto w = k.alloc_global<i32, 100>();
    store(x + k.arange<128>(), load(w + k.arange<128>()));
  });
  EXPECT_FALSE(check(beyond, grid(1), v).clean()) << "28 elements behind the workspace";
}

TEST(workspace, is_part_of_the_text_and_of_what_identifies_a_kernel) {
  graph_view const g = count_ctas.graph();
  std::string const text = print(g);
  EXPECT_NE(text.find("param 1 : ptr<i32> workspace=1 zero=1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("param 2 : ptr<f64> workspace=3\n"), std::string::npos) << text;
  graph const again = parse_graphs(text, "text")[0];
  EXPECT_EQ(kiln_test::difference(again, g), "");
  EXPECT_TRUE(validate(again).ok());
  EXPECT_NE(print(reverse_each.graph()).find("workspace=128 per_cta=1\n"), std::string::npos);

  graph changed = again;
  changed.params[1].zero = false;
  EXPECT_FALSE(semantic_hash(changed) == semantic_hash(g));
  changed = again;
  changed.params[2].workspace = 4;
  EXPECT_FALSE(semantic_hash(changed) == semantic_hash(g));
  changed = again;
  changed.params[0].workspace = 4;
  changed.params[1].workspace = 0;
  EXPECT_FALSE(validate(changed).ok()) << "workspaces come last";
  changed = again;
  changed.params[1].workspace = -1;
  EXPECT_FALSE(validate(changed).ok());
}

TEST(workspace, wrong_properties_are_told_with_their_place) {
  auto refused = [](std::string const& parameter) {
    try {
      parse_graphs("kernel \"x\" num_warps=1 {\n  param 0 : " + parameter + "\n\n  %0 = param {index=0} : ptr<i32>\n}\n", "t");
    } catch (std::exception const& e) { return std::string(e.what()); }
    return std::string("accepted");
  };
  EXPECT_EQ(refused("ptr<i32> workspace=4 zero=1"), "accepted");
  EXPECT_NE(refused("ptr<i32> workspace=0").find("t:2:"), std::string::npos);
  EXPECT_NE(refused("ptr<i32> zeros=1").find("workspace, per_cta, zero or the end of the line"), std::string::npos);
  EXPECT_NE(refused("val<i32> workspace=4").find("t:2:"), std::string::npos);
}

TEST(workspace, stands_outside_of_loops) {
  static constexpr auto in_loop = kernel<"in_loop">([](context& k, ptr<i32> x) {
    for (auto i : k.range(0, 4)) {
      auto w = k.alloc_global<i32, 4>();
      store(w, load(x + i));
    }
  });
  EXPECT_FALSE(in_loop.ok);
  EXPECT_NE(in_loop.message().find("kiln[G-05] param: alloc_global stands outside loops, branches and tasks"), std::string_view::npos) << in_loop.message();
}
