// Host launches of hand-written "compiled" kernels: every CTA once in pieces of the wished group, arenas, small
// launches on the caller, launches that stop early.
#include "src/runtime/host_launch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <type_traits>
#include <vector>

#include "kiln/dtype/dtype.hpp"
#include "src/runtime/compiler_interface.hpp"
#include "src/runtime/huge_pages.hpp"
#include "src/runtime/thread_pool.hpp"

using namespace kiln;
using namespace kiln::detail;

static_assert(std::is_same_v<host_function, host_entry>, "the launcher and the compiler agree on what an entry is");

namespace {

// What the entry functions below write to: they are plain functions, as compiled code is.
struct recording {
  std::vector<std::atomic<int>> visits;
  std::mutex guard;
  std::set<std::thread::id> threads;
  std::set<void*> arenas;
  std::atomic<std::int64_t> pieces{0};
  std::int64_t group = 1;
  std::atomic<bool> stop{false};
  std::atomic<bool> pieces_ok{true};

  explicit recording(std::size_t ctas) : visits(ctas) {}

  void take(std::int64_t first, std::int64_t last, void* arena) {
    for (auto i = first; i < last; ++i) visits[static_cast<std::size_t>(i)]++;
    ++pieces;
    auto all = static_cast<std::int64_t>(visits.size());
    // A launch too short for two groups a thread is cut finer, so that no thread idles.
    bool whole_groups = thread_pool::shared().size() == 1 || all >= 2 * thread_pool::shared().size() * group;
    if (whole_groups && (first % group != 0 || (last % group != 0 && last != all))) pieces_ok = false;
    std::lock_guard lock(guard);
    threads.insert(std::this_thread::get_id());
    arenas.insert(arena);
  }

  void expect_each_once() const {
    for (auto const& v : visits) ASSERT_EQ(v.load(), 1);
    EXPECT_TRUE(pieces_ok);
  }
};

void record_entry(std::uint64_t const* slots, std::uint32_t const*, std::int64_t first, std::int64_t last, void* arena,
                  void* runtime) {
  EXPECT_EQ(slots[0], 42u);
  static_cast<recording*>(runtime)->take(first, last, arena);
}

constexpr std::uint64_t slots[] = {42};

host_work work_for(recording& r, std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1) {
  return {.entry = record_entry, .slots = slots, .grid = {x, y, z}, .group = r.group, .runtime = &r, .stop = &r.stop};
}

} // namespace

TEST(host_launch, runs_every_cta_once) {
  struct extents {
    std::uint32_t x, y, z;
  };
  for (std::int64_t group : {1, 4, 7})
    for (extents e :
         {extents{1, 1, 1}, {5, 1, 1}, {1000, 1, 1}, {100, 7, 1}, {3, 5, 11}, {1, 1, 65535}, {300000, 1, 1}}) {
      host_speed speed;
      for (int repeat = 0; repeat < 3; ++repeat) { // the speed becomes known on the way
        recording r(std::size_t{e.x} * e.y * e.z);
        r.group = group;
        run_on_host(work_for(r, e.x, e.y, e.z), speed);
        r.expect_each_once();
      }
      EXPECT_GT(speed.picoseconds_per_cta(), 0u);
    }
}

TEST(host_launch, an_empty_grid_runs_nothing) {
  host_speed speed;
  recording r(0);
  for (auto work : {work_for(r, 0), work_for(r, 3, 0), work_for(r, 3, 3, 0)}) run_on_host(work, speed);
  EXPECT_EQ(r.pieces, 0);
}

TEST(host_launch, small_launches_stay_on_the_caller) {
  host_speed speed;
  speed.add(1000); // a nanosecond
  recording r(8);
  run_on_host(work_for(r, 8), speed);
  r.expect_each_once();
  EXPECT_EQ(r.threads, std::set{std::this_thread::get_id()});
  EXPECT_EQ(r.pieces, 1);
}

TEST(host_launch, the_speed_is_learnt) {
  host_speed speed;
  auto busy = [](std::uint64_t const*, std::uint32_t const*, std::int64_t first, std::int64_t last, void*, void*) {
    for (auto i = first; i < last; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  for (int i = 0; i < 3; ++i) run_on_host({.entry = busy, .slots = slots, .grid = {4, 1, 1}}, speed);
  EXPECT_GT(speed.picoseconds_per_cta(), 500'000'000u);
  EXPECT_LT(speed.picoseconds_per_cta(), 500'000'000'000u);
}

TEST(host_launch, long_launches_use_every_thread) {
  auto& pool = thread_pool::shared();
  if (pool.size() == 1) GTEST_SKIP() << "one CPU here";
  auto slow = [](std::uint64_t const*, std::uint32_t const*, std::int64_t first, std::int64_t last, void* arena,
                 void* runtime) {
    for (auto i = first; i < last; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    static_cast<recording*>(runtime)->take(first, last, arena);
  };
  auto ctas = static_cast<std::uint32_t>(16 * pool.size());
  recording r(ctas);
  host_speed speed;
  run_on_host({.entry = slow, .slots = slots, .grid = {ctas, 1, 1}, .runtime = &r}, speed);
  r.expect_each_once();
  EXPECT_EQ(r.threads.size(), static_cast<std::size_t>(pool.size()));
}

TEST(host_launch, each_worker_has_an_aligned_arena_of_its_own) {
  auto touch = [](std::uint64_t const*, std::uint32_t const*, std::int64_t first, std::int64_t last, void* arena,
                  void* runtime) {
    auto* bytes = static_cast<unsigned char*>(arena);
    bytes[0] = 1;
    bytes[3 * huge_page_bytes - 1] = 2; // all of it is there
    static_cast<recording*>(runtime)->take(first, last, arena);
  };
  recording r(5000);
  host_speed speed;
  run_on_host({.entry = touch, .slots = slots, .grid = {5000, 1, 1}, .arena_bytes = 3 * huge_page_bytes, .runtime = &r},
              speed);
  r.expect_each_once();
  EXPECT_EQ(r.arenas.size(), r.threads.size());
  for (void* arena : r.arenas) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena) % huge_page_bytes, 0u);
}

TEST(host_launch, stopping_leaves_out_what_has_not_begun) {
  auto entry = [](std::uint64_t const*, std::uint32_t const*, std::int64_t first, std::int64_t last, void* arena,
                  void* runtime) {
    auto* r = static_cast<recording*>(runtime);
    r->take(first, last, arena);
    r->stop = true;
  };
  recording r(1000000);
  host_speed speed;
  auto work = work_for(r, 1000000);
  work.entry = entry;
  run_on_host(work, speed);
  EXPECT_GE(r.pieces, 1);
  EXPECT_LE(r.pieces, thread_pool::shared().size());
  EXPECT_EQ(speed.picoseconds_per_cta(), 0u) << "a launch that was stopped says nothing about speed";
}

TEST(host_launch, flushing_denormals_is_the_kernels_choice) {
  auto entry = [](std::uint64_t const*, std::uint32_t const*, std::int64_t, std::int64_t, void*, void* runtime) {
    volatile float tiny = 1e-40f;
    *static_cast<std::atomic<bool>*>(runtime) = tiny * 1.0f != 0.0f;
  };
  for (bool flush : {false, true}) {
    std::atomic<bool> kept{false};
    host_speed speed;
    run_on_host({.entry = entry, .slots = slots, .flush_denormals = flush, .runtime = &kept}, speed);
    EXPECT_EQ(kept.load(), !flush);
  }
}

TEST(host_launch, an_arena_that_cannot_be_had_is_an_error) {
  recording r(1000);
  host_speed speed;
  auto work = work_for(r, 1000);
  work.arena_bytes = std::int64_t{1} << 62;
  EXPECT_THROW(run_on_host(work, speed), std::bad_alloc);
  EXPECT_EQ(r.pieces, 0);
}

TEST(host_launch, many_threads_launch_at_once) {
  host_speed speed;
  std::vector<std::thread> callers;
  for (int c = 0; c < 8; ++c)
    callers.emplace_back([&] {
      for (std::uint32_t i = 0; i < 50; ++i) {
        recording r(1 + i * 20);
        run_on_host(work_for(r, 1 + i * 20), speed);
        r.expect_each_once();
      }
    });
  for (auto& caller : callers) caller.join();
}
