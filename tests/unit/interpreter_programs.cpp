// Whole kernels on the interpreter against plain C++ loops: the first kernel, the row softmax, a pipelined matrix product.
#include "interpret.hpp"

#include <cmath>
#include <ctime>
#include <random>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

template <int Block>
inline constexpr auto add = kernel<"add", Block>([](context& k, ptr<const f32> x, ptr<const f32> y, ptr<f32> z, kiln::val<i64> n) {
  auto i = k.program_id<i64>(0) * Block + k.arange<Block>();
  auto in = i < n;
  store(z + i, load(x + i, {.mask = in}) + load(y + i, {.mask = in}), {.mask = in});
});

TEST(InterpreterPrograms, VectorAdd) {
  for (i64 n : {0, 1, 63, 64, 65, 250, 256}) {
    guarded<f32> x(static_cast<std::size_t>(n)), y(x.size()), z(x.size(), -1.f);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.25f * static_cast<f32>(i), y[i] = 3.f - static_cast<f32>(i);
    run_clean(add<64>.graph(), {(n + 63) / 64}, {x, y, z, kiln_test::val(n)});
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(z[i], x[i] + y[i]);
    EXPECT_TRUE(x.intact() && y.intact() && z.intact());
  }
}

template <int Block>
inline constexpr auto softmax_long = kernel<"softmax_long", attributes{.num_warps = 8}, Block>([](context& k, array<const bf16, 2> x, array<bf16, 2> y) {
  auto row = k.program_id(0);
  auto top = k.var(k.full<f32>(-inf)), sum_e = k.var(k.full<f32>(0));
  for (auto c : k.range(0, x.extent(1), Block)) {
    auto v = cast<f32>(load(x.region(at(row, c), extent<1, Block>), {.other = -inf}));
    auto m = max(top, reduce<max>(v));
    sum_e = sum_e * exp(top - m) + reduce<sum>(exp(v - m));
    top = m;
  }
  for (auto c : k.range(0, x.extent(1), Block)) {
    auto v = cast<f32>(load(x.region(at(row, c), extent<1, Block>)));
    store(y.region(at(row, c), extent<1, Block>), cast<bf16>(exp(v - top) / sum_e));
  }
});

TEST(InterpreterPrograms, RowSoftmax) {
  std::mt19937 random(3);
  std::normal_distribution<f32> normal(0, 3);
  for (i64 columns : {1, 63, 64, 65, 200}) {
    std::size_t const rows = 3, n = static_cast<std::size_t>(columns);
    guarded<bf16> x(rows * n), y(rows * n, bf16(-1));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = bf16(normal(random));
    for (auto precision : {ip::precision::typed, ip::precision::doubled}) {
      run_clean(softmax_long<64>.graph(), {3}, {x.array({3, columns}), y.array({3, columns})}, {.precision = precision});
      for (std::size_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (std::size_t c = 0; c < n; ++c) sum += std::exp(static_cast<double>(f32(x[r * n + c])));
        for (std::size_t c = 0; c < n; ++c) {
          double const expected = std::exp(static_cast<double>(f32(x[r * n + c]))) / sum;
          EXPECT_NEAR(f32(y[r * n + c]), expected, expected / 256) << r << "," << c;
        }
      }
      EXPECT_TRUE(x.intact() && y.intact());
    }
  }
}

template <int BM, int BN, int BK, int S>
inline constexpr auto gemm_ring = kernel<"gemm_ring", attributes{.num_warps = 8}, BM, BN, BK, S>([](context& k, array<const f16, 2> a, array<const f16, 2> b, array<f16, 2> c) {
  auto [m, n] = k.program_tile(c.shape(), tile_size<BM, BN>, {.group = 8});
  auto as = k.local_alloc<f16, BM, BK>(S, {.name = "as"});
  auto bs = k.local_alloc<f16, BK, BN>(S, {.name = "bs"});
  auto acc = k.var(k.zeros<f32, BM, BN>());
  auto steps = ceil_div(a.extent(1), BK);
  auto fetch = [&](auto i) {
    k.when(i < steps, [&] {
      k.async_load(a.region(at(m, i * BK), extent<BM, BK>), as[i % S], {.other = 0});
      k.async_load(b.region(at(i * BK, n), extent<BK, BN>), bs[i % S], {.other = 0});
    });
    k.async_load_commit_group();
  };
  for (int i = 0; i < S - 1; ++i) fetch(k.let(i));
  for (auto i : k.range(0, steps)) {
    k.async_load_wait_group(S - 2);
    acc = k.dot(as[i % S], bs[i % S], acc);
    fetch(i + (S - 1));
  }
  store(c.region(at(m, n), extent<BM, BN>), cast<f16>(acc));
});

/// C = A B with small whole numbers, so that every order of summation gives one result.
template <class Kernel>
void multiply_and_compare(Kernel const& kernel, i64 m, i64 n, i64 k, i64 ctas, ip::run_options const& options) {
  SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k));
  std::mt19937 random(static_cast<unsigned>(m * 7 + n * 3 + k));
  auto size = [](i64 x, i64 y) { return static_cast<std::size_t>(x * y); };
  guarded<f16> a(size(m, k)), b(size(k, n)), c(size(m, n), f16(-99));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = f16(static_cast<int>(random() % 5) - 2);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = f16(static_cast<int>(random() % 5) - 2);
  run_clean(kernel.graph(), {ctas}, {a.array({m, k}), b.array({k, n}), c.array({m, n})}, options);
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j) {
      f32 sum = 0;
      for (i64 p = 0; p < k; ++p) sum += f32(a[size(i, k) + static_cast<std::size_t>(p)]) * f32(b[size(p, n) + static_cast<std::size_t>(j)]);
      ASSERT_EQ(f32(c[size(i, n) + static_cast<std::size_t>(j)]), sum) << i << "," << j;
    }
  EXPECT_TRUE(a.intact() && b.intact() && c.intact());
}

TEST(InterpreterPrograms, RingPipelineUnderAllPolicies) {
  for (auto policy : all_policies)
    for (u64 seed : {1, 2})
      for (i64 k : {1, 8, 40, 100}) {
        multiply_and_compare(gemm_ring<16, 16, 16, 3>, 40, 20, k, 6, {.policy = policy, .seed = seed});
        multiply_and_compare(gemm_ring<16, 16, 16, 2>, 16, 33, k, 3, {.policy = policy, .seed = seed});
      }
}

TEST(InterpreterPrograms, OrderOfCtasDoesNotMatter) {
  for (u64 seed : {1, 2, 3})
    multiply_and_compare(gemm_ring<16, 16, 16, 3>, 70, 50, 20, 20, {.order = ip::order::seeded, .seed = seed, .resident_ctas = 3});
}

// A checked product of a usual size must not try anybody's patience: four stages, 64 passes, all three policies.
TEST(InterpreterPrograms, LargeTileIsQuick) {
  multiply_and_compare(gemm_ring<128, 128, 64, 3>, 128, 128, 64 * 64, 1, {});
  guarded<f16> a(128 * 4096, f16(1)), b(4096 * 128, f16(2)), c(128 * 128, f16(-99));
  std::clock_t const start = std::clock(); // of this process: other tests run beside this one
  ip::report const r = ip::run_all_policies(gemm_ring<128, 128, 64, 4>.graph(), {1}, std::vector<ip::host_argument>{a.array({128, 4096}), b.array({4096, 128}), c.array({128, 128})});
  double const seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_TRUE(r.clean()) << r.text();
  EXPECT_EQ(r.runs, 3);
  EXPECT_EQ(f32(c[77]), 8192.f);
  RecordProperty("seconds", std::to_string(seconds));
  EXPECT_LT(seconds, full_speed ? 2.0 : 60.0); // about 0.3 s
}

} // namespace
