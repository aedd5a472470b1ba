// The host's worker threads: every index once, whatever the sizes; exceptions, nesting, callers in parallel,
// floating-point modes, fork.
#include "src/runtime/thread_pool.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

#include "kiln/runtime/error.hpp"
#include "src/runtime/float_environment.hpp"
#include "src/runtime/huge_pages.hpp"

using namespace kiln::detail;

namespace {

// Counts how often each index is visited, and checks the shape of the pieces.
void expect_each_once(thread_pool& pool, std::int64_t count, std::int64_t chunk) {
  std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
  std::atomic<bool> shape_ok{true};
  pool.run(count, chunk, [&](int worker, std::int64_t first, std::int64_t last) {
    if (worker < 0 || worker >= pool.size() || first % chunk != 0 || first >= last || last > count ||
        (last - first != chunk && last != count))
      shape_ok = false;
    for (auto i = first; i < last; ++i) visits[static_cast<std::size_t>(i)]++;
  });
  EXPECT_TRUE(shape_ok);
  for (auto const& v : visits) ASSERT_EQ(v.load(), 1) << "count " << count << " chunk " << chunk;
}

} // namespace

TEST(thread_pool, visits_every_index_once) {
  for (int threads : {1, 2, 3, 8}) {
    thread_pool pool(threads);
    for (std::int64_t count : {0, 1, 2, 7, 64, 1000})
      for (std::int64_t chunk : {1, 2, 5, 64, 5000}) expect_each_once(pool, count, chunk);
  }
}

TEST(thread_pool, many_small_jobs_in_a_row) {
  thread_pool pool(4);
  for (int i = 0; i < 5000; ++i) {
    std::atomic<std::int64_t> sum{0};
    pool.run(5, 1, [&](int, std::int64_t first, std::int64_t) { sum += first; });
    ASSERT_EQ(sum.load(), 10);
  }
}

// A worker is woken away from the caller's CPU, but what it may run on stays what the program has set.
TEST(thread_pool, workers_keep_their_affinity) {
  cpu_set_t mine;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(mine), &mine), 0);
  for (int threads : {2, 3, 6}) {
    thread_pool pool(threads);
    std::atomic<int> wrong{0}, others{0};
    for (int i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      pool.run(8 * threads, 1, [&](int worker, std::int64_t, std::int64_t) {
        cpu_set_t now;
        if (::sched_getaffinity(0, sizeof(now), &now) != 0 || !CPU_EQUAL(&now, &mine)) wrong++;
        if (worker > 0) others++;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      });
    }
    EXPECT_EQ(wrong.load(), 0) << threads << " threads";
    EXPECT_GT(others.load(), 0) << threads << " threads";
  }
}

TEST(thread_pool, sleeping_workers_wake_up) {
  thread_pool pool(3);
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1)); // longer than the spin time
    std::atomic<int> arrived{0};
    // Each piece waits for the others: with a worker that does not wake this never ends.
    pool.run(3, 1, [&](int, std::int64_t, std::int64_t) {
      ++arrived;
      while (arrived < 3) std::this_thread::yield();
    });
    ASSERT_EQ(arrived.load(), 3);
  }
}

TEST(thread_pool, the_caller_is_worker_0_and_workers_are_distinct_threads) {
  thread_pool pool(3);
  std::array<std::thread::id, 3> ids{};
  std::atomic<int> arrived{0};
  pool.run(3, 1, [&](int worker, std::int64_t, std::int64_t) {
    ids[static_cast<std::size_t>(worker)] = std::this_thread::get_id();
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_EQ((std::set<std::thread::id>(ids.begin(), ids.end()).size()), 3u);
}

TEST(thread_pool, the_first_exception_is_rethrown_and_the_rest_left_out) {
  thread_pool pool(4);
  int least = 100000; // where the thread that throws is not itself held up, the others stop early
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> ran{0};
    EXPECT_THROW(pool.run(100000, 1,
                          [&](int, std::int64_t first, std::int64_t) {
                            ++ran;
                            if (first == 17) throw std::out_of_range("17");
                          }),
                 std::out_of_range);
    least = std::min(least, ran.load());
    expect_each_once(pool, 50, 3); // the pool is as good as before
  }
  EXPECT_LT(least, 100000);
}

TEST(thread_pool, cancel_stops_handing_out) {
  for (int threads : {1, 2}) {
    thread_pool pool(threads);
    std::atomic<std::int64_t> ran{0};
    pool.run(1000000, 1, [&](int, std::int64_t first, std::int64_t) {
      ++ran;
      if (first == 100) pool.cancel();
    });
    EXPECT_GT(ran.load(), 100);
    EXPECT_LT(ran.load(), 1000000);
    expect_each_once(pool, 50, 3);
  }
}

TEST(thread_pool, cancel_stops_only_its_own_job) {
  thread_pool pool(2);
  std::atomic<int> outer{0};
  pool.run(50, 1, [&](int, std::int64_t, std::int64_t) {
    std::int64_t inner = 0;
    pool.run(10, 1, [&](int, std::int64_t first, std::int64_t) {
      ++inner;
      if (first == 4) pool.cancel();
    });
    EXPECT_EQ(inner, 5);
    ++outer;
  });
  EXPECT_EQ(outer.load(), 50);
  // A job of one piece, on another thread while the pool is busy.
  std::atomic<bool> cancelled{false};
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) pool.run(1, 1, [&](int, std::int64_t, std::int64_t) { pool.cancel(); });
    cancelled = true;
  });
  int rounds = 0;
  do expect_each_once(pool, 200, 1), ++rounds;
  while (!cancelled);
  other.join();
  EXPECT_GT(rounds, 0);
}

TEST(thread_pool, a_nested_job_runs_on_its_worker) {
  thread_pool pool(3);
  std::atomic<int> inner{0};
  pool.run(6, 1, [&](int worker, std::int64_t, std::int64_t) {
    auto self = std::this_thread::get_id();
    pool.run(10, 1, [&](int nested_worker, std::int64_t, std::int64_t) {
      EXPECT_EQ(nested_worker, worker);
      EXPECT_EQ(std::this_thread::get_id(), self);
      ++inner;
    });
  });
  EXPECT_EQ(inner.load(), 60);
}

TEST(thread_pool, callers_in_parallel) {
  thread_pool pool(3);
  std::atomic<std::int64_t> total{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 6; ++c)
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        pool.run(20, 3, [&](int, std::int64_t first, std::int64_t last) { total += last - first; });
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 6 * 200 * 20);
}

TEST(thread_pool, floating_point_modes_are_set_and_restored) {
  thread_pool pool(2);
  volatile double tiny = std::numeric_limits<double>::denorm_min();
  {
    float_environment flushing(true); // as a program that flushes denormals would have it
    EXPECT_EQ(tiny * 1.0, 0.0);
    std::atomic<int> kept{0}, arrived{0};
    pool.run(2, 1, [&](int, std::int64_t, std::int64_t) {
      if (tiny * 1.0 != 0.0) ++kept;
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
    EXPECT_EQ(kept.load(), 2);
    EXPECT_EQ(tiny * 1.0, 0.0);
  }
  EXPECT_NE(tiny * 1.0, 0.0);
}

TEST(thread_pool, works_in_the_child_of_a_fork) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer cannot start threads after a fork";
#endif
#endif
  auto& pool = thread_pool::shared();
  expect_each_once(pool, 100, 3);
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::atomic<std::int64_t> sum{0};
    thread_pool::shared().run(100, 3, [&](int, std::int64_t first, std::int64_t last) { sum += last - first; });
    ::_exit(sum.load() == 100 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  expect_each_once(pool, 100, 3);
}

TEST(thread_pool, size_comes_from_the_affinity_mask_or_the_environment) {
  EXPECT_GE(available_cpus(), 1);
  char const* old = std::getenv("KILN_NUM_THREADS");
  std::string saved = old != nullptr ? old : "";
  ::setenv("KILN_NUM_THREADS", "3", 1);
  EXPECT_EQ(configured_threads(), 3);
  for (std::string bad : {"0", "-2", "four", "2x", "99999999999", "5000"}) {
    ::setenv("KILN_NUM_THREADS", bad.c_str(), 1);
    try {
      configured_threads();
      FAIL() << bad;
    } catch (kiln::error const& e) {
      EXPECT_EQ(e.what(), "KILN_NUM_THREADS=" + bad + ": expected a number of threads between 1 and 4096");
    }
  }
  ::setenv("KILN_NUM_THREADS", "", 1);
  EXPECT_EQ(configured_threads(), available_cpus());
  if (old != nullptr) ::setenv("KILN_NUM_THREADS", saved.c_str(), 1);
}

TEST(host_arena, is_aligned_grows_and_is_kept) {
  host_arena arena;
  EXPECT_EQ(arena.reserve(0), nullptr);
  auto* first = static_cast<char*>(arena.reserve(1000));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % huge_page_bytes, 0u);
  first[999] = 42;
  EXPECT_EQ(arena.reserve(huge_page_bytes), first) << "the first step is 2 MiB";
  EXPECT_EQ(first[999], 42);
  auto* grown = static_cast<char*>(arena.reserve(huge_page_bytes + 1));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(grown) % huge_page_bytes, 0u);
  grown[2 * huge_page_bytes - 1] = 1;
  EXPECT_THROW(arena.reserve(std::numeric_limits<std::size_t>::max()), std::bad_alloc);
  EXPECT_EQ(arena.reserve(1), grown) << "a failed reservation keeps the old memory";
}
