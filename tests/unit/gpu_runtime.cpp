// The runtime on real GPUs: memory, streams, events, modules from PTX, launches, and what the drivers refuse. Skipped
// where there is no GPU.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "kiln/runtime/buffer.hpp"
#include "kiln/runtime/error.hpp"
#include "src/runtime/gpu_backend.hpp"

using namespace kiln;
using namespace kiln::detail;

namespace {

std::string message_of(auto&& action) {
  try {
    action();
  } catch (error const& e) { return e.what(); }
  return "no error";
}

class gpu : public testing::Test {
protected:
  std::vector<device> devices;

  void SetUp() override {
    for (auto const& d : device::all())
      if (!d.is_host()) devices.push_back(d);
    if (devices.empty()) GTEST_SKIP() << "no GPU here";
  }
};

class cuda_gpu : public gpu {
protected:
  void SetUp() override {
    gpu::SetUp();
    std::erase_if(devices, [](device const& d) { return d.kind() != device_kind::cuda; });
    if (devices.empty() && !IsSkipped()) GTEST_SKIP() << "no CUDA device here";
  }
};

gpu_backend& backend_of(device const& d) { return dynamic_cast<gpu_backend&>(d.get_backend()); }

// y[i] = x[i] + value for i < n, 128 threads a CTA.
constexpr char const* add_ptx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry add_value(.param .u64 x, .param .u64 y, .param .u64 n, .param .u64 value) {
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .b64 %d<8>;
  ld.param.u64 %d0, [x];
  ld.param.u64 %d1, [y];
  ld.param.u64 %d2, [n];
  ld.param.u64 %d3, [value];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %tid.x;
  mad.lo.u32 %r2, %r0, 128, %r1;
  cvt.u64.u32 %d4, %r2;
  setp.ge.u64 %p, %d4, %d2;
  @%p ret;
  shl.b64 %d4, %d4, 3;
  add.u64 %d0, %d0, %d4;
  add.u64 %d1, %d1, %d4;
  ld.global.u64 %d5, [%d0];
  add.u64 %d5, %d5, %d3;
  st.global.u64 [%d1], %d5;
  ret;
}
.visible .entry trap_always() {
  trap;
  ret;
}
)";

struct block {
  std::uint64_t slots[4];
};

} // namespace

TEST_F(gpu, buffers_copy_both_ways_and_fill) {
  for (auto const& d : devices)
    for (i64 n : {i64{1}, i64{1000}, i64{5'000'000}}) {
      std::vector<i64> values(static_cast<std::size_t>(n));
      std::iota(values.begin(), values.end(), i64{-3});
      buffer<i64> x(d, values), y(d, n);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data()) % 256, 0u);
      y.copy_from(x);
      EXPECT_EQ(y.to_vector(), values);
      x.fill(0x0123456789abcdef); // no driver sets 64 bits
      EXPECT_EQ(x.to_vector(), std::vector<i64>(values.size(), 0x0123456789abcdef));
      x.fill(-1);
      EXPECT_EQ(x.to_vector(), std::vector<i64>(values.size(), -1));
      buffer<u8> bytes(d, n);
      bytes.fill(7);
      EXPECT_EQ(bytes.to_vector(), std::vector<u8>(values.size(), 7));
      buffer<u16> shorts(d, n);
      shorts.fill(0x1234);
      EXPECT_EQ(shorts.to_vector(), std::vector<u16>(values.size(), 0x1234));
      buffer<f32> floats(d, n);
      floats.fill(1.5f);
      EXPECT_EQ(floats.to_vector(), std::vector<f32>(values.size(), 1.5f));
    }
}

TEST_F(gpu, buffers_copy_between_devices_and_streams) {
  for (auto const& d : devices) {
    std::vector<i32> values(100000);
    std::iota(values.begin(), values.end(), 5);
    buffer<i32> host(device::host(), values), far(d, 100000), back(device::host(), 100000);
    far.copy_from(host);
    back.copy_from(far);
    EXPECT_EQ(back.to_vector(), values);
    auto s = stream::create(d), t = stream::create(d);
    buffer<i32> on_s(s, values), on_t(t, 100000);
    on_t.copy_from(on_s);
    EXPECT_EQ(on_t.to_vector(), values);
    for (auto const& e : devices) {
      buffer<i32> other(e, 100000);
      other.copy_from(far);
      EXPECT_EQ(other.to_vector(), values) << d.id() << " to " << e.id();
    }
  }
}

TEST_F(gpu, out_of_memory_is_an_error_with_the_size) {
  for (auto const& d : devices) {
    i64 too_much = 2 * d.memory_bytes();
    EXPECT_EQ(message_of([&] { buffer<u8> b(d, too_much); }),
              "buffer: out of memory on " + d.id() + " for " + std::to_string(too_much) + " bytes");
    buffer<u8> fine(d, 10); // and the device is as good as before
    fine.fill(1);
    EXPECT_EQ(fine.to_vector(), std::vector<u8>(10, 1));
  }
}

TEST_F(gpu, events_measure_time) {
  for (auto const& d : devices) {
    auto s = stream::create(d);
    event begin(d), end(d);
    buffer<u32> x(s, 50'000'000);
    x.fill(1);
    begin.record(s);
    for (u32 i = 0; i < 20; ++i) x.fill(i);
    end.record(s);
    double seconds = seconds_between(begin, end);
    EXPECT_TRUE(end.done());
    EXPECT_GT(seconds, 20 * 2e8 / 1e14) << "faster than any memory";
    EXPECT_LT(seconds, 10.0);
  }
}

TEST_F(gpu, places_of_pointers_are_known) {
  for (auto const& d : devices) {
    buffer<u8> x(d, 1000);
    auto place = backend_of(d).place_of(x.data() + 10);
    EXPECT_TRUE(place.known);
    EXPECT_TRUE(place.on_device);
    EXPECT_EQ(place.device, d.index());
    std::vector<int> local(10);
    EXPECT_FALSE(backend_of(d).place_of(local.data()).on_device);
  }
}

TEST_F(cuda_gpu, ptx_is_linked_loaded_and_launched) {
  for (auto const& d : devices) {
    auto& b = backend_of(d);
    auto linked = b.link_ptx(add_ptx, true);
    EXPECT_GT(linked.image.size(), 100u);
    for (bool from_text : {false, true}) {
      std::string text = add_ptx;
      std::span<std::byte const> image = linked.image;
      if (from_text) image = std::as_bytes(std::span(text.data(), text.size() + 1));
      void* module = b.load_module(image);
      void* function = b.find_function(module, "add_value");
      EXPECT_GT(b.describe(function).registers, 0);
      EXPECT_GE(b.occupancy(function, 128, 0), 1);
      b.allow_shared(function, 100 * 1024);
      auto s = stream::create(d);
      std::vector<u64> values(100001);
      std::iota(values.begin(), values.end(), u64{7});
      buffer<u64> x(s, values), y(s, 100001);
      y.fill(0);
      block arguments{{reinterpret_cast<u64>(x.data()), reinterpret_cast<u64>(y.data()), 100000, 5}};
      gpu_launch shape;
      shape.grid[0] = 782;
      shape.shared_bytes = 100 * 1024;
      b.launch(function, shape, &arguments, sizeof arguments, s.native());
      auto result = y.to_vector();
      for (std::size_t i = 0; i < 100000; ++i) ASSERT_EQ(result[i], values[i] + 5);
      EXPECT_EQ(result[100000], 0u) << "a sentinel behind the last element";
      EXPECT_FALSE(b.is_capturing(s.native()));
      EXPECT_NE(message_of([&] { b.find_function(module, "absent"); }).find("cuModuleGetFunction(absent)"),
                std::string::npos);
      if (d.target().has_clusters()) {
        shape.cluster[0] = 2;
        y.fill(0);
        b.launch(function, shape, &arguments, sizeof arguments, s.native());
        EXPECT_EQ(y.to_vector()[99999], values[99999] + 5);
      }
      b.unload_module(module);
    }
  }
}

TEST_F(cuda_gpu, the_assemblers_words_reach_the_user) {
  for (auto const& d : devices) {
    auto& b = backend_of(d);
    std::string wrong = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { bogus.u32 %r0; }\n";
    EXPECT_NE(message_of([&] { b.link_ptx(wrong, false); }).find("bogus"), std::string::npos);
    EXPECT_NE(
        message_of([&] { b.load_module(std::as_bytes(std::span(wrong.data(), wrong.size() + 1))); }).find("bogus"),
        std::string::npos);
  }
}

TEST_F(cuda_gpu, launching_more_than_the_device_has_is_the_drivers_error) {
  for (auto const& d : devices) {
    auto& b = backend_of(d);
    auto linked = b.link_ptx(add_ptx, false);
    void* module = b.load_module(linked.image);
    void* function = b.find_function(module, "add_value");
    block arguments{};
    gpu_launch shape;
    shape.threads = 5000;
    EXPECT_NE(message_of([&] {
                b.launch(function, shape, &arguments, sizeof arguments, nullptr);
              }).find("cuLaunchKernel: CUDA_ERROR_INVALID_VALUE"),
              std::string::npos);
    b.unload_module(module);
  }
}

TEST_F(cuda_gpu, a_borrowed_stream_belongs_to_its_context) {
  for (auto const& d : devices) {
    auto mine = stream::create(d);
    auto borrowed = stream::borrow(static_cast<CUstream_st*>(mine.native()));
    EXPECT_EQ(borrowed.get_device(), d) << "made in the primary context";
    EXPECT_EQ(borrowed.native(), mine.native());
    buffer<i32> x(borrowed, std::vector<i32>{1, 2, 3});
    EXPECT_EQ(x.to_vector(), (std::vector<i32>{1, 2, 3}));
    borrowed.synchronize();
  }
}

// Kills the context, so it comes last, in a process of its own (CTest runs each test apart).
TEST_F(cuda_gpu, zz_a_trap_is_reported_where_somebody_waits) {
  auto const& d = devices.front();
  auto& b = backend_of(d);
  auto linked = b.link_ptx(add_ptx, false);
  void* module = b.load_module(linked.image);
  void* function = b.find_function(module, "trap_always");
  auto s = stream::create(d);
  b.launch(function, gpu_launch{}, nullptr, 0, s.native());
  auto message = message_of([&] { s.synchronize(); });
  EXPECT_NE(message.find("cuStreamSynchronize: CUDA_ERROR_"), std::string::npos) << message;
}
