// The GPU runtime against a driver that only pretends (support/fake_cuda.hpp): what kiln asks of it, what it refuses
// before the driver sees it, and what it makes of the driver's answers.
#include <kiln/autotune.hpp>
#include <kiln/kiln.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <thread>

#include "fake_cuda.hpp"
#include "fake_hip.hpp"
#include "src/runtime/gpu_backend.hpp"

using namespace kiln;

// Devices, loaded code and what belongs to them live as long as the process: at its end the driver may be gone already.
extern "C" char const* __asan_default_options();
extern "C" char const* __asan_default_options() { return "detect_leaks=0"; }

namespace {

// Before the first compile: nothing of this may reach the disk, where a real driver would find it.
[[maybe_unused]] int const no_cache = setenv("KILN_CACHE", "off", 1);

inline constexpr auto add = kernel<"add">([](context& k, ptr<const f32> x, ptr<f32> y, val<i64> n) {
  auto i = k.program_id<i64>(0) * 128 + k.arange<128>();
  store(y + i, load(x + i, {.mask = i < n}) + load(y + i, {.mask = i < n}), {.mask = i < n});
});
inline constexpr auto wide = kernel<"wide", attributes{.num_warps = 16}>([](context& k, array<f32, 2> x) {
  store(x.region(at(k.program_id(0), 0), extent<1, 512>), k.full<f32, 1, 512>(1));
});
constexpr u32 assert_line = __LINE__ + 2;
inline constexpr auto positive = kernel<"positive">([](context& k, ptr<const i32> x) {
  k.device_assert(load(x + k.arange<128>()) > 0, "all must be positive");
});
inline constexpr auto in_pairs = kernel<"in_pairs", attributes{.cluster = {2, 1, 1}}>([](context& k, ptr<i32> x) {
  store(x + k.program_id(0), k.full<i32>(1));
});
inline constexpr auto resident_pairs = kernel<"resident_pairs", attributes{.cluster = {2, 1, 1}, .persistent = true}>([](context& k, ptr<i32> x) {
  auto b = k.local_alloc<i32, 64>(2);
  k.cluster_barrier();
  k.remote_shmem_store(b[0], load(x + k.arange<64>()), (k.cluster_cta_rank() + 1) % 2);
  k.cluster_barrier();
  store(x + k.program_id(0) * 64 + k.arange<64>(), k.local_load(b[0]));
});
inline constexpr auto large_pairs = kernel<"large_pairs", attributes{.cluster = {2, 1, 1}}>([](context& k, ptr<f32> x) {
  auto b = k.local_alloc<f32, 8192>(7);
  for (int i : k.unrolled(7)) k.local_store(b[i], load(x + i * 8192 + k.arange<8192>()));
  for (int i : k.unrolled(7)) store(x + i * 8192 + k.arange<8192>(), k.local_load(b[6 - i]));
});
inline constexpr auto staged = kernel<"staged">([](context& k, ptr<f32> x) {
  auto b = k.local_alloc<f32, 8192>();
  k.local_store(b[0], load(x + k.arange<8192>()));
  store(x + k.arange<8192>(), k.local_load(b[0]));
});

template <int V> inline constexpr auto filled = kernel<"filled", V>([](context& k, ptr<f32> x) { store(x + k.arange<128>(), k.full<f32, 128>(V)); });

// One for each test: streams that are gone may have lent their handles, and so their memory, to new ones.
template <int Test> inline constexpr auto with_workspace = kernel<"with_workspace", Test>([](context& k, ptr<i32> x) {
  auto each = k.alloc_global<i32, 64>({.per = per::cta});
  auto all = k.alloc_global<f64, 8>({.zero = true});
  store(each + k.arange<64>(), load(x + k.arange<64>()));
  store(all + k.arange<8>(), k.full<f64, 8>(1));
});

template <class F> std::string message_of(F&& f) {
  try {
    f();
  } catch (error const& e) { return e.what(); }
  return "no error";
}

// y[i] += x[i], as the kernel would.
void play_add(fake_cuda::launch const& l) {
  if (l.function != "kiln_add") return;
  auto const* x = reinterpret_cast<f32 const*>(l.arguments[0]);
  auto* y = reinterpret_cast<f32*>(l.arguments[1]);
  for (u64 i = 0; i < l.arguments[2] && i < 128u * l.grid[0]; ++i) y[i] += x[i];
}

void fail_assert(fake_cuda::launch const& l, u32 line) {
  auto* words = static_cast<u32*>(l.global("kiln_positive_fault"));
  ASSERT_NE(words, nullptr);
  if (words[0] != 0) return; // the first stays
  words[0] = 1, words[1] = 1, words[2] = line, words[3] = 7;
}

class fake_gpu : public testing::Test {
protected:
  device gpu = device::parse("cuda:0");
  int errors_before = fake_cuda::errors();
  void SetUp() override { fake_cuda::on_launch(play_add); }
  void TearDown() override {
    fake_cuda::on_launch({});
    fake_cuda::answer() = {};
    EXPECT_EQ(fake_cuda::current_context(), nullptr) << "the caller's context must be left as it was";
  }
  int driver_errors() const { return fake_cuda::errors() - errors_before; }
};

} // namespace

TEST_F(fake_gpu, launches_pack_their_arguments) {
  std::vector<f32> a(1000), b(1000);
  std::iota(a.begin(), a.end(), 1.f);
  std::iota(b.begin(), b.end(), 5.f);
  buffer<f32> x(gpu, a), y(gpu, b);
  add.launch(gpu, grid(8), x, y, 1000);
  auto c = y.to_vector();
  for (std::size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], a[i] + b[i]);
  add.launch(gpu, grid(8), y, y, 1000); // in place
  EXPECT_EQ(y.to_vector()[9], 2 * c[9]);
  EXPECT_EQ(fake_cuda::launches().back().threads, 128u);
  EXPECT_EQ(driver_errors(), 0) << "no call of kiln's is answered with an error";
}

TEST_F(fake_gpu, uploads_ask_about_pointers_without_an_error) {
  std::vector<f32> a(100, 1.f);
  buffer<f32> x(gpu, a);
  x.copy_from(a);
  pinned<f32> p(gpu, 100);
  x.copy_from(p);
  EXPECT_EQ(driver_errors(), 0);
}

TEST_F(fake_gpu, pinned_memory_copies_both_ways) {
  pinned<i32> in(gpu, 1000), out(gpu, 1000);
  std::iota(in.begin(), in.end(), 3);
  stream s = stream::create(gpu);
  buffer<i32> x(s, 1000);
  x.start_copy_from(in);
  x.start_copy_to(out);
  s.synchronize();
  EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin()));
  EXPECT_EQ(message_of([&] { pinned<i32> p(gpu, -1); }), "pinned: -1 elements of 4 bytes cannot be had");
  EXPECT_EQ(message_of([&] { pinned<u8> p(gpu, i64{1} << 40); }), "pinned: out of memory for 1099511627776 bytes");
  pinned<i32> few(gpu, 10);
  EXPECT_EQ(message_of([&] { x.start_copy_to(few); }),
            "buffer::start_copy_to: the other side has 10 elements, the buffer 1000");
  pinned<i32> moved = std::move(in);
  EXPECT_EQ(moved[999], 1002);
}

TEST_F(fake_gpu, memory_is_given_back) {
  std::size_t before = fake_cuda::live_bytes();
  {
    buffer<f32> x(gpu, 1000), y = std::move(x);
    pinned<f32> p(gpu, 1000);
    EXPECT_EQ(fake_cuda::live_bytes(), before + 8000);
    EXPECT_EQ(gpu.free_bytes(), gpu.memory_bytes() - static_cast<i64>(before) - 8000);
  }
  EXPECT_EQ(fake_cuda::live_bytes(), before);
}

TEST_F(fake_gpu, wrong_memory_is_refused_with_kernel_and_argument) {
  buffer<f32> x(gpu, 1000), other(device::parse("cuda:1"), 1000), host(device::host(), 1000);
  std::size_t launched = fake_cuda::launches().size();
  EXPECT_EQ(message_of([&] { add.launch(gpu, grid(8), x, other, 1000); }),
            "kernel 'add', argument 1 (ptr<f32>): the memory is on cuda:1, the launch on cuda:0, which has no access to it; copy it there");
  EXPECT_EQ(message_of([&] { add.launch(gpu, grid(8), host, x, 1000); }),
            "kernel 'add', argument 0 (ptr<const f32>): the address is not memory of this device (host memory, or freed); pass a buffer of cuda:0");
  EXPECT_EQ(message_of([&] { add.launch(gpu, grid(8), static_cast<f32 const*>(nullptr), x, 1000); }),
            "kernel 'add', argument 0 (ptr<const f32>): null pointer");
  auto* odd = reinterpret_cast<f32*>(reinterpret_cast<char*>(x.data()) + 1);
  EXPECT_EQ(message_of([&] { add.launch(gpu, grid(8), x, odd, 1000); }),
            "kernel 'add', argument 1 (ptr<f32>): the address is not a multiple of the element's 4 bytes");
  EXPECT_EQ(fake_cuda::launches().size(), launched) << "the driver saw none of it";
  pinned<f32> p(gpu, 1000);
  add.launch(gpu, grid(8), p.data(), x, 1000); // kernels may read pinned memory
  add.launch(gpu, grid(8), x.data() + 100, device_ptr(x.data()), 900);
  EXPECT_EQ(fake_cuda::launches().size(), launched + 2);
  void* address = x.data();
  x = {};
  EXPECT_NE(message_of([&] { add.launch(gpu, grid(8), static_cast<f32 const*>(address), p.data(), 1000); }).find("or freed"), std::string::npos);
  EXPECT_EQ(driver_errors(), 0);
}

TEST_F(fake_gpu, what_was_looked_at_is_not_asked_again) {
  buffer<f32> x(gpu, 1000), y(gpu, 1000);
  add.launch(gpu, grid(8), x, y, 1000);
  int asked = fake_cuda::calls("cuPointerGetAttributes"), loaded = fake_cuda::calls("cuModuleLoadDataEx"),
      capturing = fake_cuda::calls("cuStreamIsCapturing");
  for (int i = 0; i < 100; ++i) add.launch(gpu, grid(8), x, y, 1000);
  EXPECT_EQ(fake_cuda::calls("cuPointerGetAttributes"), asked);
  EXPECT_EQ(fake_cuda::calls("cuModuleLoadDataEx"), loaded);
  EXPECT_EQ(fake_cuda::calls("cuStreamIsCapturing"), capturing);
}

TEST_F(fake_gpu, grids_are_checked_before_the_driver_sees_them) {
  buffer<f32> x(gpu, 1000);
  buffer<i32> n(gpu, 10);
  std::size_t launched = fake_cuda::launches().size();
  EXPECT_EQ(message_of([&] { add.launch(gpu, grid(1, 65536), x, x, 1); }),
            "kernel 'add': grid axis y is 65536; valid are 0..65535");
  EXPECT_EQ(message_of([&] { add.launch(gpu, grid(1, 1, 65536), x, x, 1); }),
            "kernel 'add': grid axis z is 65536; valid are 0..65535");
  EXPECT_EQ(message_of([&] { add.launch(gpu, grid(i64{1} << 31), x, x, 1); }),
            "kernel 'add': grid axis x is 2147483648; valid are 0..2147483647");
  EXPECT_EQ(message_of([&] { in_pairs.launch(gpu, grid(5), n); }),
            "kernel 'in_pairs': grid axis x is 5 CTAs, not a multiple of the cluster's 2; grids count CTAs, not clusters");
  add.launch(gpu, grid(0), x, x, 1);
  add.launch(gpu, grid(1, 0), x, x, 1);
  add.launch(gpu, grid(1, 1, 0), x, x, 1);
  EXPECT_EQ(fake_cuda::launches().size(), launched) << "empty grids are launches of nothing";
  add.launch(gpu, grid(1, 65535), x, x, 1);
}

TEST_F(fake_gpu, clusters_reach_the_driver) {
  buffer<i32> n(gpu, 1000);
  in_pairs.launch(gpu, grid(6), n);
  fake_cuda::launch const l = fake_cuda::launches().back();
  EXPECT_EQ(l.function, "kiln_in_pairs");
  EXPECT_EQ(l.grid[0], 6u);
  EXPECT_EQ(l.cluster[0], 2u);
  EXPECT_EQ(l.cluster[1] * l.cluster[2], 1u);
  resident_pairs.launch(gpu, n); // as many clusters as the driver says are resident: five
  EXPECT_EQ(fake_cuda::launches().back().grid[0], 10u);
  EXPECT_EQ(fake_cuda::launches().back().cluster[0], 2u);
  buffer<f32> x(gpu, 7 * 8192);
  EXPECT_EQ(message_of([&] { large_pairs.launch(gpu, grid(2), x); }),
            "kernel 'large_pairs': no cluster of 2 CTAs of 128 threads and 229376 bytes of shared memory fits cuda:0 (Fake 0); use smaller clusters "
            "(attributes{.cluster}) or smaller CTAs");
}

TEST_F(fake_gpu, what_the_device_cannot_run_is_refused_when_it_is_loaded) {
  buffer<f32> x(gpu, 8192);
  fake_cuda::answer().max_threads = 256;
  fake_cuda::answer().registers = 168;
  EXPECT_EQ(message_of([&] { wide.launch(gpu, grid(1), x.view(1, 512)); }),
            "kernel 'wide': a CTA has 512 threads, cuda:0 (Fake 0) can run 256 of this code, which takes 168 registers a thread; use fewer "
            "warps (attributes{.num_warps = n}) or smaller tiles");
  fake_cuda::answer() = {};
  fake_cuda::answer().static_shared_bytes = 0;
  // A device of compute capability 8.6 runs sm_80 code but has less shared memory.
  device small = device::parse("cuda:1");
  buffer<f32> y(small, 8192);
  fake_cuda::answer().static_shared_bytes = 240 * 1024;
  EXPECT_NE(message_of([&] { staged.launch(small, grid(1), y); }).find("bytes of shared memory, cuda:1 (Fake 1) has 232448; use smaller tiles"),
            std::string::npos);
  fake_cuda::answer() = {};
  staged.launch(small, grid(1), y); // and a failed load spoils nothing
  wide.launch(gpu, grid(1), x.view(1, 512));
}

TEST_F(fake_gpu, the_drivers_refusal_names_the_kernel) {
  buffer<f32> x(gpu, 1000);
  add.launch(gpu, grid(8), x, x, 1000);
  fake_cuda::fail_next("cuLaunchKernel", 1);
  EXPECT_EQ(message_of([&] { add.launch(gpu, grid(8), x, x, 1000); }),
            "kernel 'add': cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1): the fake driver says no");
}

TEST_F(fake_gpu, a_failed_assert_is_thrown_where_its_stream_is_waited_for) {
  std::string const text = std::string("kernel 'positive': device_assert failed: all must be positive (") + __FILE__ + ":" + std::to_string(assert_line) + ") in CTA 7";
  buffer<i32> x(gpu, std::vector<i32>(128, 1));
  bool bad = false;
  fake_cuda::on_launch([&](fake_cuda::launch const& l) {
    if (bad) fail_assert(l, assert_line);
  });
  positive.launch(gpu, grid(1), x);
  gpu.synchronize();
  bad = true;
  positive.launch(gpu, grid(1), x);
  positive.launch(gpu, grid(1), x);
  EXPECT_EQ(message_of([&] { gpu.synchronize(); }), text);
  gpu.synchronize(); // once
  positive.launch(gpu, grid(1), x);
  EXPECT_EQ(message_of([&] { x.to_vector(); }), text) << "a copy to the host waits, too";
  bad = false;
  positive.launch(gpu, grid(1), x);
  gpu.synchronize(); // the record was cleared

  // Another stream does not report it, its own does, through any handle.
  bad = true;
  stream s = stream::create(gpu), t = stream::create(gpu);
  positive.launch(s, grid(1), x);
  bad = false;
  t.synchronize();
  gpu.synchronize();
  EXPECT_EQ(message_of([&] { stream::borrow(static_cast<CUstream_st*>(s.native())).synchronize(); }), text);

  // A stream that is gone leaves it to the next that waits.
  bad = true;
  positive.launch(t, grid(1), x);
  t = s;
  EXPECT_EQ(message_of([&] { gpu.synchronize(); }), text);
  EXPECT_EQ(driver_errors(), 0);
}

TEST_F(fake_gpu, kernels_without_asserts_pay_nothing_for_them) {
  buffer<f32> x(gpu, 1000);
  gpu.synchronize();
  add.launch(gpu, grid(8), x, x, 1000);
  int copies = fake_cuda::calls("cuMemcpyDtoHAsync_v2"), waits = fake_cuda::calls("cuStreamSynchronize");
  gpu.synchronize();
  EXPECT_EQ(fake_cuda::calls("cuMemcpyDtoHAsync_v2"), copies);
  EXPECT_EQ(fake_cuda::calls("cuStreamSynchronize"), waits + 1);
}

TEST_F(fake_gpu, a_first_launch_inside_a_capture_compiles_and_the_graph_replays) {
  static constexpr auto captured = kernel<"captured">([](context& k, ptr<f32> x) { store(x + k.arange<128>(), k.full<f32, 128>(1)); });
  void* native = fake_cuda::make_stream(nullptr, 0);
  stream s = stream::borrow(static_cast<CUstream_st*>(native));
  buffer<f32> x(gpu, 1000), y(gpu, 1000);
  x.fill(1), y.fill(2);
  std::size_t launched = fake_cuda::launches().size();
  fake_cuda::begin_capture(native);
  captured.launch(s, grid(1), x);
  add.launch(s, grid(8), x, y, 1000);
  add.launch(s, grid(0), x, y, 1000);
  void* graph = fake_cuda::end_capture(native);
  ASSERT_NE(graph, nullptr) << "compiling must not end the capture";
  EXPECT_EQ(fake_cuda::launches().size(), launched);
  fake_cuda::replay(graph, native);
  fake_cuda::replay(graph, native);
  EXPECT_EQ(y.to_vector()[0], 4.f);
  EXPECT_EQ(driver_errors(), 0);
}

TEST_F(fake_gpu, what_would_end_a_capture_is_refused_and_the_capture_goes_on) {
  void* native = fake_cuda::make_stream(nullptr, 0);
  stream s = stream::borrow(static_cast<CUstream_st*>(native));
  std::vector<f32> values(1000, 1.f);
  buffer<f32> x(s, values), y(s, values);
  pinned<f32> p(gpu, 1000);
  auto freed = std::make_unique<buffer<f32>>(s, 1000);
  std::size_t live = fake_cuda::live_allocations();
  fake_cuda::begin_capture(native);
  EXPECT_EQ(message_of([&] { s.synchronize(); }), "stream::synchronize: the stream is being captured into a graph; nothing runs before the "
                                                   "graph does; wait after it was launched");
  EXPECT_NE(message_of([&] { x.copy_from(values); }).find("copy from host memory: the stream is being captured"), std::string::npos);
  EXPECT_NE(message_of([&] { x.to_vector(); }).find("copy to host memory: the stream is being captured"), std::string::npos);
  EXPECT_NE(message_of([&] { buffer<f32> b(s, 10); }).find("allocate before the capture begins"), std::string::npos);
  EXPECT_NE(message_of([&] { gpu.synchronize(); }).find("the default stream cannot be used while a capture runs"), std::string::npos);
  freed.reset(); // kept until the capture is over
  EXPECT_EQ(fake_cuda::live_allocations(), live);
  x.start_copy_from(p);
  y.copy_from(x);
  add.launch(s, grid(8), x, y, 1000);
  EXPECT_NE(fake_cuda::end_capture(native), nullptr);
  buffer<f32> next(s, 10);
  EXPECT_EQ(fake_cuda::live_allocations(), live) << "one freed, one new";
  fake_cuda::begin_capture(native); // the next capture is as good
  add.launch(s, grid(8), x, y, 1000);
  EXPECT_NE(fake_cuda::end_capture(native), nullptr);
}

TEST_F(fake_gpu, asserts_in_a_captured_kernel_are_seen_after_every_replay) {
  void* native = fake_cuda::make_stream(nullptr, 0);
  stream s = stream::borrow(static_cast<CUstream_st*>(native));
  buffer<i32> x(gpu, std::vector<i32>(128, 1));
  positive.prepare(s, x);
  fake_cuda::begin_capture(native);
  positive.launch(s, grid(1), x);
  void* graph = fake_cuda::end_capture(native);
  ASSERT_NE(graph, nullptr);
  fake_cuda::on_launch([&](fake_cuda::launch const& l) { fail_assert(l, assert_line); });
  for (int i = 0; i < 3; ++i) {
    fake_cuda::replay(graph, native);
    EXPECT_NE(message_of([&] { (i % 2 ? stream(gpu) : s).synchronize(); }).find("device_assert failed"), std::string::npos);
    s.synchronize();
  }
}

TEST_F(fake_gpu, each_context_has_its_own_code) {
  void* theirs = fake_cuda::make_context(0);
  stream s = stream::borrow(static_cast<CUstream_st*>(fake_cuda::make_stream(theirs, 0)));
  buffer<f32> x(s, 1000), y(gpu, 1000), z(device::parse("cuda:1"), 1000);
  add.launch(s, grid(8), x, x, 1000);
  add.launch(gpu, grid(8), y, y, 1000);
  device second = device::parse("cuda:1");
  add.launch(second, grid(8), z, z, 1000);
  EXPECT_EQ(fake_cuda::launches().back().device, 1);
  s.synchronize();
  std::thread([&] { // a thread that never had a context
    add.launch(second, grid(8), z, z, 1000);
    second.synchronize();
  }).join();
  EXPECT_EQ(driver_errors(), 0) << "handles were used in their own contexts only";
  EXPECT_FALSE(s.get_device() == gpu);
  event e(gpu);
  EXPECT_NE(message_of([&] { e.record(second); }).find("the event is of cuda:0, the stream of cuda:1"), std::string::npos);
}

TEST_F(fake_gpu, info_tells_what_driver_and_assembler_say) {
  static constexpr auto told = kernel<"told">([](context& k, ptr<f32> x) { store(x + k.arange<128>(), k.full<f32, 128>(1)); });
  buffer<f32> x(gpu, 1000);
  EXPECT_EQ(message_of([&] { told.info(gpu); }),
            "kernel 'told' has no code for cuda:0 yet: launch or prepare it first, or ask info(device, arguments...)");
  fake_cuda::answer().registers = 255;
  fake_cuda::answer().local_bytes = 48;
  fake_cuda::answer().assembler_log = "ptxas info    : 0 bytes gmem\n"
                                      "ptxas info    : Function properties for kiln_told\n"
                                      "    48 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads\n"
                                      "ptxas info    : Used 255 registers, used 1 barriers\n"
                                      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized";
  kernel_info i = told.info(gpu, x);
  EXPECT_EQ(i.registers, 255);
  EXPECT_EQ(i.stack_bytes, 48);
  EXPECT_EQ(i.spill_bytes, 84);
  EXPECT_EQ(i.threads, 128);
  EXPECT_EQ(i.ctas_per_multiprocessor, 3);
  EXPECT_DOUBLE_EQ(i.occupancy, 3 * 128 / 2048.0);
  EXPECT_EQ(i.variants, 1);
  EXPECT_NE(i.notes.find("registers spill: 40 bytes stored and 44 loaded"), std::string::npos) << i.notes;
  EXPECT_NE(i.notes.find("C7510"), std::string::npos);
  EXPECT_EQ(told.info(gpu).registers, 255);
}

TEST_F(fake_gpu, nothing_is_tuned_inside_a_capture) {
  void* native = fake_cuda::make_stream(nullptr, 0);
  stream s = stream::borrow(static_cast<CUstream_st*>(native));
  buffer<f32> x(s, 4096);
  auto run = [&](auto const& kern) { kern.launch(s, grid(1), x); };
  auto tune = [&] { return autotune(configurations<values<1, 2>>{}, s, key(7), []<auto... V>() -> auto& { return filled<V...>; }, run); };
  fake_cuda::begin_capture(native);
  EXPECT_EQ(message_of(tune), "autotune: 'filled' has not been tuned for (7) on cuda:0, and the stream is being captured into a graph, where nothing "
                              "can be measured; call autotune before the capture begins");
  run(filled<1>); // and the capture goes on
  EXPECT_NE(fake_cuda::end_capture(native), nullptr);
  EXPECT_FALSE(tune().remembered());
  fake_cuda::begin_capture(native);
  auto best = tune();
  EXPECT_TRUE(best.remembered());
  best(run);
  EXPECT_NE(fake_cuda::end_capture(native), nullptr);
  EXPECT_EQ(driver_errors(), 0);
}

TEST_F(fake_gpu, kernels_that_spill_are_chosen_only_among_themselves) {
  stream s = stream::create(gpu);
  buffer<f32> x(s, 4096);
  std::string const plain = fake_cuda::answer().assembler_log, spilling = "ptxas info : Used 255 registers\n 8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads";
  int measured[5] = {};
  auto tune = [&](int spilling_from, int k) {
    return autotune(configurations<values<3, 4>>{}, s, key(k, spilling_from), []<auto... V>() -> auto& { return filled<V...>; }, [&](auto const& kern) {
      int const which = kern.name == "filled" && &kern == static_cast<void const*>(&filled<3>) ? 3 : 4;
      fake_cuda::answer().assembler_log = which >= spilling_from ? spilling : plain;
      ++measured[which];
      kern.launch(s, grid(1), x);
    });
  };
  EXPECT_EQ(tune(4, 1).text(), "<3>");
  EXPECT_GT(measured[3], 3);
  EXPECT_EQ(measured[4], 1) << "compiled, found to spill, left out";
}

TEST_F(fake_gpu, workspaces_belong_to_a_stream_and_stay) {
  stream s = stream::create(gpu), t = stream::create(gpu);
  buffer<i32> x(gpu, 64);
  auto addresses = [&](stream const& where, i64 ctas) {
    with_workspace<0>.launch(where, grid(ctas), x);
    auto const& l = fake_cuda::launches().back();
    EXPECT_EQ(l.arguments.size(), 3u);
    EXPECT_EQ(reinterpret_cast<f64*>(l.arguments[2])[7], 0) << "zeros";
    reinterpret_cast<f64*>(l.arguments[2])[7] = 3; // what the kernel leaves there
    std::fill_n(reinterpret_cast<i32*>(l.arguments[1]), 64 * ctas, 1);
    return std::pair(l.arguments[1], l.arguments[2]);
  };
  auto const first = addresses(s, 10);
  EXPECT_EQ(addresses(s, 10), first);
  EXPECT_EQ(first.second - first.first, 10u * 64 * 4);
  std::size_t const live = fake_cuda::live_allocations();
  EXPECT_EQ(addresses(s, 3).first, first.first) << "less fits where more was";
  EXPECT_EQ(fake_cuda::live_allocations(), live);
  EXPECT_NE(addresses(t, 10).first, first.first) << "another stream, other memory";
  auto const grown = addresses(s, 1000);
  EXPECT_NE(grown.first, first.first);
  EXPECT_EQ(addresses(s, 1000), grown);
  EXPECT_EQ(addresses(s, 10).first, grown.first);
  EXPECT_EQ(driver_errors(), 0);
}

TEST_F(fake_gpu, workspaces_are_not_made_inside_a_capture) {
  void* native = fake_cuda::make_stream(nullptr, 0);
  stream s = stream::borrow(static_cast<CUstream_st*>(native));
  buffer<i32> x(gpu, 64);
  fake_cuda::begin_capture(native);
  EXPECT_EQ(message_of([&] { with_workspace<1>.launch(s, grid(4), x); }),
            "kernel 'with_workspace': its workspace of 1280 bytes is not there yet, and the stream is being captured into a graph; launch it once "
            "before the capture begins");
  EXPECT_NE(fake_cuda::end_capture(native), nullptr);
  with_workspace<1>.launch(s, grid(4), x);
  fake_cuda::begin_capture(native);
  with_workspace<1>.launch(s, grid(4), x);
  EXPECT_NE(fake_cuda::end_capture(native), nullptr);
  EXPECT_EQ(driver_errors(), 0);
}

// The same launches on HIP, whose runtime knows less about pointers.
class fake_hip_gpu : public testing::Test {
protected:
  device gpu = device::parse("hip:0"), second = device::parse("hip:1");
  void TearDown() override {
    fake_hip::set_peers(false);
    EXPECT_EQ(fake_hip::current_device(), 0) << "the caller's device must be left as it was";
    EXPECT_EQ(fake_hip::errors(), 0);
  }
};

TEST_F(fake_hip_gpu, launches_pack_their_arguments) {
  buffer<f32> x(gpu, std::vector<f32>(1000, 1.f)), y(gpu, 1000), far(second, 1000);
  add.launch(gpu, grid(8), x, y, 1000);
  auto const& first = fake_hip::launches().back();
  EXPECT_EQ(first.function, "kiln_add");
  EXPECT_EQ(first.grid[0], 8u);
  EXPECT_EQ(first.threads, 256u); // 4 warps of 64
  EXPECT_EQ(first.arguments, (std::vector<std::uint64_t>{reinterpret_cast<std::uintptr_t>(x.data()), reinterpret_cast<std::uintptr_t>(y.data()), 1000}));
  add.launch(second, grid(8), far, far, 1000);
  EXPECT_EQ(fake_hip::launches().back().device, 1);
  EXPECT_EQ(x.to_vector(), std::vector<f32>(1000, 1.f));
}

TEST_F(fake_hip_gpu, wrong_memory_is_refused_with_kernel_and_argument) {
  buffer<f32> x(gpu, 1000), far(second, 1000), reachable(second, 1000), host(device::host(), 1000);
  std::size_t const launched = fake_hip::launches().size();
  EXPECT_EQ(message_of([&] { add.launch(gpu, grid(8), x, far, 1000); }),
            "kernel 'add', argument 1 (ptr<f32>): the memory is on hip:1, the launch on hip:0, which has no access to it; copy it there");
  EXPECT_EQ(message_of([&] { add.launch(gpu, grid(8), host, x, 1000); }),
            "kernel 'add', argument 0 (ptr<const f32>): the address is not memory of this device (host memory, or freed); pass a buffer of hip:0");
  EXPECT_EQ(message_of([&] { add.launch(gpu, grid(8), static_cast<f32 const*>(nullptr), x, 1000); }),
            "kernel 'add', argument 0 (ptr<const f32>): null pointer");
  EXPECT_EQ(fake_hip::launches().size(), launched) << "the driver saw none of it";
  pinned<f32> p(gpu, 1000);
  auto* everywhere = static_cast<f32*>(fake_hip::managed_memory(4000));
  add.launch(gpu, grid(8), p.data(), x, 1000);
  add.launch(second, grid(8), device_ptr<f32 const>(everywhere), far, 1000);
  add.launch(gpu, grid(8), device_ptr<f32 const>(everywhere), x.data() + 100, 900);
  fake_hip::set_peers(true); // then only the program knows
  add.launch(gpu, grid(8), x, reachable, 1000);
  EXPECT_EQ(fake_hip::launches().size(), launched + 4);
  int const asked = fake_hip::calls("hipDrvPointerGetAttributes");
  for (int i = 0; i < 10; ++i) add.launch(gpu, grid(8), x, reachable, 1000);
  EXPECT_EQ(fake_hip::calls("hipDrvPointerGetAttributes"), asked) << "what was looked at is not asked again";
  void* address = x.data();
  x = {};
  EXPECT_NE(message_of([&] { add.launch(gpu, grid(8), static_cast<f32 const*>(address), p.data(), 1000); }).find("or freed"), std::string::npos);
}
