// Launches on real GPUs: asserts, refused arguments, captured graphs, what the code takes. Skipped where there is no GPU.
#include <kiln/kiln.hpp>

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <memory>
#include <numeric>
#include <string>
#include <thread>

using namespace kiln;

namespace {

inline constexpr auto add = kernel<"add">([](context& k, ptr<const f32> x, ptr<f32> y, val<i64> n) {
  auto i = k.program_id<i64>(0) * 128 + k.arange<128>();
  store(y + i, load(x + i, {.mask = i < n}) + load(y + i, {.mask = i < n}), {.mask = i < n});
});
constexpr int assert_line = __LINE__ + 3;
inline constexpr auto positive = kernel<"positive">([](context& k, ptr<const i32> x, ptr<i32> y) {
  auto v = load(x + k.program_id(0) * 128 + k.arange<128>());
  k.device_assert(v > 0, "all must be positive");
  store(y + k.program_id(0) * 128 + k.arange<128>(), v);
});

inline constexpr auto reverse_each = kernel<"reverse_each">([](context& k, ptr<i32> x, ptr<i32> counted) {
  auto w = k.alloc_global<i32, 128>({.per = per::cta});
  auto counter = k.alloc_global<i32, 1>({.zero = true});
  auto first = x + k.program_id<i64>(0) * 128;
  store(w + k.arange<128>(), load(first + k.arange<128>()));
  k.sync();
  store(first + k.arange<128>(), load(w + (127 - k.arange<128>())));
  atomic_max(counted, atomic_add(counter, 1) + 1);
});

template <class F> std::string message_of(F&& f) {
  try {
    f();
  } catch (error const& e) { return e.what(); }
  return "no error";
}

class gpu_launches : public testing::Test {
protected:
  std::vector<device> devices;
  void SetUp() override {
    for (auto const& d : device::all())
      if (!d.is_host()) devices.push_back(d);
    if (devices.empty()) GTEST_SKIP() << "no GPU here";
  }
};

// The driver's own calls for graphs, which kiln does not need.
struct graph_calls {
  template <class F> static F* find(char const* name) {
    static void* library = dlopen("libcuda.so.1", RTLD_NOW);
    return library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
  }
  int (*begin)(void*, int) = find<int(void*, int)>("cuStreamBeginCapture_v2");
  int (*end)(void*, void**) = find<int(void*, void**)>("cuStreamEndCapture");
  int (*instantiate)(void**, void*, unsigned long long) = find<int(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags");
  int (*launch)(void*, void*) = find<int(void*, void*)>("cuGraphLaunch");
  int (*context_of)(void*, void**) = find<int(void*, void**)>("cuStreamGetCtx");
  int (*make_current)(void*) = find<int(void*)>("cuCtxSetCurrent");
};

} // namespace

TEST_F(gpu_launches, a_failed_assert_is_thrown_with_kernel_and_line) {
  for (device const& d : devices) {
    std::vector<i32> values(128 * 64, 1);
    buffer<i32> x(d, values), y(d, std::ssize(values));
    positive.launch(d, grid(64), x, y);
    d.synchronize();
    values[128 * 40 + 5] = 0;
    x.copy_from(values);
    for (int round = 0; round < 3; ++round) {
      positive.launch(d, grid(64), x, y);
      std::string const text = message_of([&] { round % 2 ? (void)y.to_vector() : d.synchronize(); });
      EXPECT_EQ(text, std::string("kernel 'positive': device_assert failed: all must be positive (") + __FILE__ + ":" +
                          std::to_string(assert_line) + ") in CTA 40");
      d.synchronize();
    }
    auto other = stream::create(d);
    positive.launch(other, grid(40), x, y); // the good ones
    other.synchronize();
  }
}

TEST_F(gpu_launches, wrong_memory_is_refused) {
  for (device const& d : devices) {
    if (d.kind() != device_kind::cuda) continue;
    buffer<f32> x(d, 1000), host(device::host(), 1000);
    EXPECT_NE(message_of([&] { add.launch(d, grid(8), host, x, 1000); }).find("kernel 'add', argument 0 (ptr<const f32>): the address is not memory"),
              std::string::npos);
    for (device const& e : devices)
      if (!(e == d)) {
        buffer<f32> far(e, 1000);
        EXPECT_NE(message_of([&] { add.launch(d, grid(8), x, far, 1000); }).find("argument 1 (ptr<f32>): the memory is on " + e.id()),
                  std::string::npos);
      }
    pinned<f32> p(d, 1000);
    std::fill(p.begin(), p.end(), 1.f);
    x.fill(2);
    add.launch(d, grid(8), p.data(), x, 1000);
    EXPECT_EQ(x.to_vector(), std::vector<f32>(1000, 3.f));
  }
}

TEST_F(gpu_launches, two_devices_have_their_own_code_memory_and_streams) {
  static constexpr auto on_both = kernel<"on_both">([](context& k, ptr<const f32> x, ptr<f32> y, val<i64> n) {
    auto i = k.program_id<i64>(0) * 256 + k.arange<256>();
    store(y + i, load(x + i, {.mask = i < n}) * 2.f + load(y + i, {.mask = i < n}), {.mask = i < n});
  });
  if (devices.size() < 2) GTEST_SKIP() << "one GPU here, this takes two";
  device const &first = devices[0], &second = devices[1];
  constexpr i64 n = 100'000;
  buffer<f32> x(first, n), y(first, n), v(second, n), w(second, n);
  x.fill(1), y.fill(0), v.fill(10), w.fill(0);
  auto const blocks = grid(ceil_div(n, 256));
  on_both.launch(first, blocks, x, y, n);
  EXPECT_NE(message_of([&] { on_both.info(second); }).find("has no code for " + second.id() + " yet"), std::string::npos)
      << "code of one device is not the other's";
  on_both.launch(second, blocks, v, w, n);
  EXPECT_GT(on_both.info(first).registers, 0);
  EXPECT_GT(on_both.info(second).registers, 0);
  if (first.kind() == device_kind::cuda)
    for (bool turned : {false, true}) { // each device's memory is refused by the other
      device const &d = turned ? second : first, &e = turned ? first : second;
      std::string const told = message_of([&] { on_both.launch(d, blocks, turned ? v : x, turned ? y : w, n); });
      EXPECT_NE(told.find("kernel 'on_both', argument 1 (ptr<f32>): the memory is on " + e.id() + ", the launch on " + d.id()), std::string::npos) << told;
    }
  // In turns from one thread, then from a thread for each device at once, streams of their own.
  for (int i = 0; i < 4; ++i) {
    on_both.launch(first, blocks, x, y, n);
    on_both.launch(second, blocks, v, w, n);
  }
  first.synchronize(), second.synchronize(); // the threads' streams wait for nothing
  std::thread threads[2];
  for (int t = 0; t < 2; ++t)
    threads[t] = std::thread([&, t] {
      auto s = stream::create(t ? second : first);
      for (int i = 0; i < 500; ++i) on_both.launch(s, blocks, t ? v : x, t ? w : y, n);
      s.synchronize();
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(y.to_vector(), std::vector<f32>(n, 2.f * 505));
  EXPECT_EQ(w.to_vector(), std::vector<f32>(n, 20.f * 505));
  // What one device's kernel found wrong is told by that device alone.
  buffer<i32> good(first, std::vector<i32>(128, 1)), bad(second, std::vector<i32>(128, 0)), out(first, 128), far(second, 128);
  positive.launch(first, grid(1), good, out);
  positive.launch(second, grid(1), bad, far);
  first.synchronize();
  EXPECT_NE(message_of([&] { second.synchronize(); }).find("device_assert failed"), std::string::npos);
  second.synchronize();
}

TEST_F(gpu_launches, in_place_and_overlapping_calls_run_in_order) {
  for (device const& d : devices) {
    buffer<f32> x(d, 1 << 20);
    x.fill(1);
    for (int i = 0; i < 10; ++i) add.launch(d, grid(1 << 13), x, x, 1 << 20);
    EXPECT_EQ(x.to_vector(), std::vector<f32>(1 << 20, 1024.f));
  }
}

TEST_F(gpu_launches, pinned_copies) {
  for (device const& d : devices) {
    auto s = stream::create(d);
    pinned<i32> in(d, 1 << 20), out(d, 1 << 20);
    std::iota(in.begin(), in.end(), 0);
    buffer<i32> x(s, 1 << 20);
    x.start_copy_from(in);
    x.start_copy_to(out);
    s.synchronize();
    EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin()));
  }
}

TEST_F(gpu_launches, a_first_launch_inside_a_capture_is_part_of_the_graph) {
  static constexpr auto first = kernel<"first_in_capture">([](context& k, ptr<f32> x) {
    auto i = k.program_id(0) * 128 + k.arange<128>();
    store(x + i, load(x + i) + 1.f);
  });
  graph_calls const calls;
  for (device const& d : devices) {
    if (d.kind() != device_kind::cuda || calls.instantiate == nullptr) continue;
    auto s = stream::create(d);
    buffer<f32> x(s, 1024);
    auto freed = std::make_unique<buffer<f32>>(s, 1024);
    x.fill(0);
    s.synchronize();
    ASSERT_EQ(calls.begin(s.native(), 0), 0); // the strictest mode
    first.launch(s, grid(8), x);
    EXPECT_NE(message_of([&] { s.synchronize(); }).find("stream::synchronize: the stream is being captured"), std::string::npos);
    EXPECT_NE(message_of([&] { x.to_vector(); }).find("copy to host memory"), std::string::npos);
    freed.reset();
    first.launch(s, grid(8), x);
    void *graph = nullptr, *ready = nullptr, *context = nullptr;
    ASSERT_EQ(calls.end(s.native(), &graph), 0);
    // kiln leaves the thread's current context as it found it, and instantiation needs one.
    ASSERT_EQ(calls.context_of(s.native(), &context), 0);
    ASSERT_EQ(calls.make_current(context), 0);
    ASSERT_EQ(calls.instantiate(&ready, graph, 0), 0);
    for (int i = 0; i < 5; ++i) ASSERT_EQ(calls.launch(ready, s.native()), 0);
    EXPECT_EQ(x.to_vector(), std::vector<f32>(1024, 10.f));
  }
}

TEST_F(gpu_launches, info_tells_registers_and_occupancy) {
  for (device const& d : devices) {
    buffer<f32> x(d, 1000);
    kernel_info const i = add.info(d, x, x, 1000);
    EXPECT_GT(i.registers, 0);
    EXPECT_EQ(i.threads, 128);
    EXPECT_GE(i.ctas_per_multiprocessor, 1);
    EXPECT_GE(i.variants, 1);
    if (d.kind() != device_kind::cuda) continue;
    EXPECT_LE(i.spill_bytes, 0); // -1 under tools that put another assembler in
    EXPECT_GT(i.occupancy, 0.25);
    EXPECT_LE(i.occupancy, 1.0);
  }
}

TEST_F(gpu_launches, threads_without_a_context_launch) {
  for (device const& d : devices) {
    buffer<f32> x(d, 1024);
    x.fill(1);
    for (int t = 0; t < 4; ++t)
      std::thread([&] {
        add.launch(d, grid(8), x, x, 1024);
        d.synchronize();
      }).join();
    EXPECT_EQ(x.to_vector(), std::vector<f32>(1024, 16.f));
  }
}

TEST_F(gpu_launches, workspaces_are_each_streams_own) {
  for (device const& d : devices) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        auto s = stream::create(d);
        for (int i = 0; i < 50; ++i) {
          i64 const ctas = 1 + (i * 37 + t) % 300;
          std::vector<i32> v(static_cast<std::size_t>(ctas * 128));
          std::iota(v.begin(), v.end(), 0);
          buffer<i32> x(s, v), counted(s, 1);
          counted.fill(0);
          reverse_each.launch(s, grid(ctas), x, counted);
          auto r = x.to_vector();
          for (std::size_t j = 0; j < r.size(); ++j) ASSERT_EQ(r[j], static_cast<i32>(j / 128 * 128 + 127 - j % 128));
          ASSERT_EQ(counted.to_vector()[0], static_cast<i32>(ctas));
        }
      });
    for (auto& t : threads) t.join();
  }
}
