// Tasks as compiled code on the host: the same numbers as the interpreter, any number of CTAs, deadlocks end the launch.
#include "barrier_kernels.hpp"
#include "interpret.hpp"

#include <kiln/kiln.hpp>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

std::vector<f32> some_numbers() {
  std::vector<f32> x(1 << 14);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<f32>(static_cast<int>(i * 7 % 509) - 254) / 4;
  return x;
}

template <class Kernel>
void agrees(Kernel const& k, char const* name) {
  device const host = device::host();
  std::vector<f32> const x = some_numbers();
  for (int n : {2, 5, 9})
    for (int ctas : {1, 3}) { // all of them write the same
      guarded<f32> from(x), to(1 << 12);
      ip::report const r = ip::run(Kernel::graph(), {ctas}, {from, to, kiln_test::val(n)});
      ASSERT_TRUE(r.clean()) << r.text();
      buffer<f32> a(host, static_cast<i64>(x.size())), b(host, 1 << 12);
      a.copy_from(x);
      b.copy_from(std::vector<f32>(1 << 12));
      k.launch(host, grid(ctas), a, b, n);
      std::vector<f32> const out = b.to_vector();
      for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], to[i]) << name << ", n " << n << ", element " << i;
    }
}

#define KILN_AGREES(name)                                                                                              \
  inline constexpr auto name##_kernel = kernel<#name>([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) { suspicious::name(k, x, y, n); }); \
  TEST(HostTasks, name) { agrees(name##_kernel, #name); }
KILN_SUSPICIOUS(KILN_AGREES)
#undef KILN_AGREES
#define KILN_AGREES(name)                                                                                              \
  inline constexpr auto name##_meeting = kernel<#name>([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) { meeting::name(k, x, y, n); }); \
  static_assert(name##_meeting.ok && name##_meeting.verified);                                                         \
  TEST(HostMeeting, name) { agrees(name##_meeting, #name); }
KILN_MEETING(KILN_AGREES)

constexpr int tile_rows = 64, depth = 32, stages = 4;
/// A producer and two consumers, each with half of the rows.
inline constexpr auto matmul = kernel<"matmul">([](context& k, array<const f16, 2> a, array<const f16, 2> b, array<f32, 2> c) {
  auto [m, n] = k.program_tile(c.shape(), tile_size<tile_rows, tile_rows>);
  auto as = k.local_alloc<f16, tile_rows, depth>(stages, {.name = "as"});
  auto bs = k.local_alloc<f16, depth, tile_rows>(stages, {.name = "bs"});
  auto full = k.alloc_barriers(stages, {.name = "full"}), empty = k.alloc_barriers(stages, {.arrive_count = 2, .name = "empty"});
  auto steps = ceil_div(a.extent(1), depth);
  k.async_tasks(k.task_default({.name = "load"},
                               [&] {
                                 for (auto i : k.range(0, steps)) {
                                   auto [s, phase] = k.buf_phase(i, stages);
                                   k.barrier_wait(empty[s], phase ^ 1);
                                   k.async_load(a.region(at(m, i * depth), extent<tile_rows, depth>), as[s], {.other = 0});
                                   k.async_load(b.region(at(i * depth, n), extent<depth, tile_rows>), bs[s], {.other = 0});
                                   k.async_load_commit_group();
                                   k.async_load_wait_group(0);
                                   k.barrier_arrive(full[s]);
                                 }
                               }),
                k.task({.num_warps = 4, .replicate = 2, .name = "multiply"}, [&] {
                  auto half = k.replica_id() * (tile_rows / 2);
                  auto acc = k.var(k.zeros<f32, tile_rows / 2, tile_rows>());
                  for (auto i : k.range(0, steps)) {
                    auto [s, phase] = k.buf_phase(i, stages);
                    k.barrier_wait(full[s], phase);
                    acc = k.dot(k.local_slice<tile_rows / 2, depth>(as[s], {half, 0}), bs[s], acc);
                    k.barrier_arrive(empty[s]);
                  }
                  store(c.region(at(m + half, n), extent<tile_rows / 2, tile_rows>), acc);
                }));
});
static_assert(matmul.ok && matmul.verified);

TEST(HostTasks, AMatmulOfThreeAgents) {
  device const host = device::host();
  constexpr i64 M = 100, N = 72, K = 150;
  std::vector<f16> a(M * K), b(K * N);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = f16(static_cast<float>(static_cast<int>(i % 7) - 3));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = f16(static_cast<float>(static_cast<int>(i % 5) - 2));
  buffer<f16> x(host, M * K), y(host, K * N);
  buffer<f32> z(host, M * N);
  x.copy_from(a);
  y.copy_from(b);
  matmul.launch(host, grid(4), x.view(M, K), y.view(K, N), z.view(M, N));
  std::vector<f32> const out = z.to_vector();
  for (i64 i = 0; i < M; ++i)
    for (i64 j = 0; j < N; ++j) {
      float expected = 0;
      for (i64 n = 0; n < K; ++n) expected += static_cast<float>(a[static_cast<std::size_t>(i * K + n)]) * static_cast<float>(b[static_cast<std::size_t>(n * N + j)]);
      ASSERT_EQ(out[static_cast<std::size_t>(i * N + j)], expected) << i << "," << j;
    }
}

/// Right for as many rounds as the compiler looks at, and then an arrival is missing.
inline constexpr auto stuck = kernel<"stuck">([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto full = k.alloc_barriers(1, {.name = "full"}), empty = k.alloc_barriers(1, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "make"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   k.barrier_wait(empty[0], (i & 1) ^ 1);
                                   k.local_store(a[0], load(x + i + k.arange<64>()));
                                   k.when(i < 50, [&] { k.barrier_arrive(full[0]); });
                                 }
                               }),
                k.task({.num_warps = 4, .name = "use"}, [&] {
                  for (auto i : k.range(0, n)) {
                    k.barrier_wait(full[0], i & 1);
                    store(y + i * 64 + k.arange<64>(), k.local_load(a[0]));
                    k.barrier_arrive(empty[0]);
                  }
                }));
});

TEST(HostTasks, ADeadlockEndsTheLaunch) {
  device const host = device::host();
  buffer<f32> x(host, 1 << 14), y(host, 1 << 14);
  x.copy_from(std::vector<f32>(1 << 14, 1.f));
  stuck.launch(host, grid(1), x, y, 40);
  host.synchronize();
  try {
    stuck.launch(host, grid(1), x, y, 60);
    host.synchronize();
    FAIL() << "it ended";
  } catch (error const& e) {
    EXPECT_NE(std::string(e.what()).find("kernel 'stuck': deadlock: every task waits for a barrier; kiln::check says for which"), std::string::npos) << e.what();
  }
}

} // namespace
