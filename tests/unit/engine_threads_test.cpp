// The compile engine under many threads: one compile per key, different keys at once, failures reach every waiter.
#include "jit/engine.hpp"

#include <atomic>
#include <barrier>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace kiln::jit;
namespace targets = kiln::targets;

request make(const kiln::target& t, int value, std::atomic<int>* builds = nullptr) {
  request r;
  r.target = t;
  r.symbol = "f";
  r.key = std::to_string(value);
  const std::string v = std::to_string(value);
  r.build = [t, v, builds](module_builder& b) {
    if (builds != nullptr) ++*builds;
    std::this_thread::sleep_for(std::chrono::milliseconds(5)); // so that the others come while it runs
    from_ir_text(t.is_host()    ? "define i32 @f() { ret i32 " + v + " }"
                 : t.is_nvptx() ? "define ptx_kernel void @f(ptr addrspace(1) %p) { store i32 " + v +
                                      ", ptr addrspace(1) %p ret void }"
                                : "define amdgpu_kernel void @f(ptr addrspace(1) %p) { store i32 " + v +
                                      ", ptr addrspace(1) %p ret void }")(b);
  };
  return r;
}

template <typename F> void in_threads(int n, F f) {
  std::barrier start(n);
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      f(i);
    });
  for (auto& t : threads) t.join();
}

TEST(engine_threads, one_key_is_compiled_once) {
  for (const auto& t : {targets::host, targets::sm_90a, targets::gfx942}) {
    SCOPED_TRACE(t.name());
    engine e;
    std::atomic<int> builds = 0, stores = 0;
    request r = make(t, 17, &builds);
    r.store = [&](const compiled&) { ++stores; };
    std::vector<std::string> images(8);
    in_threads(8, [&](int i) {
      const compiled c = e.compile(r);
      if (t.is_host()) { EXPECT_EQ(c.as<int()>()(), 17); }
      images[static_cast<std::size_t>(i)] = c.image();
    });
    EXPECT_EQ(builds, 1);
    EXPECT_EQ(stores, 1);
    EXPECT_EQ(e.stats().compiles, 1u);
    for (const std::string& image : images) {
      EXPECT_FALSE(image.empty());
      EXPECT_EQ(image, images[0]);
    }
  }
}

TEST(engine_threads, many_keys_and_targets_at_once) {
  engine e;
  const std::vector<kiln::target> all = {targets::host, targets::sm_80, targets::sm_90a, targets::gfx942,
                                         targets::gfx1100};
  in_threads(8, [&](int thread) {
    for (int i = 0; i < 20; ++i) {
      const int key = (i + thread * 3) % 20;
      const kiln::target t = all[static_cast<std::size_t>(key) % all.size()];
      const compiled c = e.compile(make(t, key));
      EXPECT_FALSE(c.image().empty());
      if (t.is_host()) { EXPECT_EQ(c.as<int()>()(), key); }
    }
  });
  EXPECT_EQ(e.stats().compiles, 20u);
  EXPECT_EQ(e.stats().live, 20u);
}

TEST(engine_threads, a_failure_reaches_every_waiter_and_the_key_recovers) {
  engine e;
  request r = make(targets::host, 1);
  std::atomic<int> failures = 0;
  r.build = [](module_builder&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    throw std::runtime_error("lowering: no");
  };
  in_threads(8, [&](int) {
    try {
      (void)e.compile(r);
    } catch (const std::runtime_error& x) {
      if (std::string(x.what()) == "lowering: no") ++failures;
    }
  });
  EXPECT_EQ(failures, 8);
  EXPECT_EQ(e.stats().live, 0u);
  EXPECT_EQ(e.compile(make(targets::host, 1)).as<int()>()(), 1);
}

TEST(engine_threads, compiling_and_removing_at_once) {
  engine e;
  in_threads(4, [&](int thread) {
    for (int i = 0; i < 25; ++i) {
      const compiled c = e.compile(make(targets::host, 1000 * thread + i % 3));
      EXPECT_EQ(c.as<int()>()(), 1000 * thread + i % 3);
      e.remove(c);
    }
  });
  EXPECT_EQ(e.stats().live, 0u);
}

TEST(engine_threads, two_engines_in_two_threads) {
  in_threads(2, [&](int thread) {
    engine e;
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(e.compile(make(targets::host, 10 * thread + i)).as<int()>()(), 10 * thread + i);
    EXPECT_FALSE(e.compile(make(targets::gfx942, thread)).image().empty());
  });
}

} // namespace
