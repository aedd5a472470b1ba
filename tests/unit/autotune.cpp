// Choosing configurations: the product, what drops out and when, what is remembered and for whom.
#include <kiln/autotune.hpp>
#include <kiln/kiln.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "temporary_directory.hpp"

using namespace kiln;

namespace {

// The tests' own processes start with nothing remembered.
[[maybe_unused]] int const no_cache = setenv("KILN_CACHE", "off", 0);

// `Slow` configurations do the same 64 times over.
template <int Block, int Slow>
inline constexpr auto scale = kernel<"scale", Block, Slow>(
    [](context& k, ptr<const f32> x, ptr<f32> y, val<i64> n) {
      auto i = k.program_id<i64>(0) * Block + k.arange<Block>();
      for ([[maybe_unused]] auto again : k.range(0, Slow)) {
        auto v = k.var(load(x + i, {.mask = i < n, .other = 0}));
        for ([[maybe_unused]] auto step : k.range(0, Slow)) v = sin(v) * 2.f;
        store(y + i, v * 2.f, {.mask = i < n});
      }
    },
    [](i64 n) { return grid(ceil_div(n, i64{Block})); });

// Not ok with a block that is no power of two: the local buffer would be read before it is written.
template <int Block>
inline constexpr auto careless = kernel<"careless", Block>([](context& k, ptr<f32> x) {
  auto b = k.local_alloc<f32, 64>();
  if constexpr (Block != 100) k.local_store(b[0], k.full<f32, 64>(Block));
  store(x + k.arange<64>(), k.local_load(b[0]));
});

using space = configurations<values<1024, 256>, values<1, 24>>;
static_assert(boost::mp11::mp_size<space::points>::value == 4);
static_assert(!careless<100>.ok && careless<64>.ok);

constexpr auto make_scale = []<auto... V>() -> auto& { return scale<V...>; };

} // namespace

TEST(autotune, finds_the_fast_one_and_remembers_it) {
  device dev = device::host();
  buffer<f32> x(dev, 1 << 16), y(dev, 1 << 16);
  x.fill(1);
  std::atomic<int> runs{0};
  auto launch = [&](auto const& kern) {
    ++runs;
    kern.launch(dev, kern.grid(x.size()), x, y, x.size());
  };
  auto best = autotune(space{}, dev, key(x.size(), "f32", dtype::f32, true), make_scale, launch);
  EXPECT_TRUE(best.text() == "<1024, 1>" || best.text() == "<256, 1>") << best.text();
  EXPECT_FALSE(best.remembered());
  EXPECT_GT(best.seconds(), 0);
  EXPECT_GE(runs, 4 * 2);
  int const before = runs;
  auto again = autotune(space{}, dev, key(x.size(), "f32", dtype::f32, true), make_scale, launch);
  EXPECT_TRUE(again.remembered());
  EXPECT_EQ(again.text(), best.text());
  EXPECT_EQ(runs, before);
  y.fill(0);
  again(launch);
  EXPECT_EQ(runs, before + 1);
  EXPECT_NE(y.to_vector()[77], 0.f);
  autotune(space{}, dev, key(1), make_scale, launch); // another key
  EXPECT_GT(runs, before + 1);
}

TEST(autotune, what_breaks_a_rule_never_runs) {
  device dev = device::host();
  buffer<f32> x(dev, 64);
  bool broken = false;
  auto best = autotune(configurations<values<100, 1, 2>>{}, dev, key(), []<auto... V>() -> auto& { return careless<V...>; }, [&](auto const& kern) {
    broken |= !kern.ok;
    kern.launch(dev, grid(1), x);
  });
  EXPECT_FALSE(broken);
  EXPECT_NE(best.text(), "<100>");
}

TEST(autotune, points_that_fail_drop_out_and_the_last_reason_is_told) {
  device dev = device::host();
  buffer<f32> x(dev, 64), y(dev, 64);
  auto best = autotune(space{}, dev, key("fails"), make_scale, [&](auto const& kern) {
    if (kern.grid(1024) == grid(1)) throw error("not this one");
    kern.launch(dev, grid(1), x, y, 64);
  });
  EXPECT_EQ(best.text().substr(0, 5), "<256,"); // which of the two is faster is not the point here
  try {
    autotune(space{}, dev, key("all fail"), make_scale, [&](auto const&) { throw error("never"); });
    FAIL();
  } catch (error const& e) { EXPECT_STREQ(e.what(), "autotune: no configuration of 'scale' runs on host: never"); }
}

TEST(autotune, many_threads_share_one_tuning) {
  device dev = device::host();
  std::atomic<int> measured{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 24; ++t)
    threads.emplace_back([&] {
      buffer<f32> x(dev, 1024), y(dev, 1024);
      auto best = autotune(space{}, dev, key("threads"), make_scale, [&](auto const& kern) { kern.launch(dev, grid(1), x, y, 64); });
      measured += !best.remembered();
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(measured, 1);
}

TEST(autotune, the_choice_is_kept_for_the_next_process) {
  test::temporary_directory folder;
  auto child = [&](char const* expected) {
    pid_t id = fork();
    if (id == 0) {
      setenv("KILN_CACHE_DIR", folder.path().c_str(), 1);
      setenv("KILN_CACHE", "on", 1);
      setenv("KILN_TEST_EXPECT", expected, 1);
      execl("/proc/self/exe", "test_autotune", "--gtest_also_run_disabled_tests", "--gtest_filter=autotune.DISABLED_child", nullptr);
      _exit(100);
    }
    int status = 0;
    waitpid(id, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(child("new"), 0);
  EXPECT_EQ(child("remembered"), 0);
  EXPECT_EQ(child("new"), 1) << "the child can fail";
}

// What the test above runs in a process of its own.
TEST(autotune, DISABLED_child) {
  device dev = device::host();
  buffer<f32> x(dev, 1024), y(dev, 1024);
  auto best = autotune(space{}, dev, key("process"), make_scale, [&](auto const& kern) { kern.launch(dev, grid(1), x, y, 64); });
  char const* expected = std::getenv("KILN_TEST_EXPECT");
  ASSERT_NE(expected, nullptr);
  EXPECT_EQ(best.remembered(), std::string(expected) == "remembered");
}
