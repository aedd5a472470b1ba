// Whole kernels through the host lowering and the engine, against references written by hand.
#include "host_kernel.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace kiln;
using kiln_test::host_kernel;

namespace {

std::uint64_t word(void const* p) { return reinterpret_cast<std::uintptr_t>(p); }

template <int Block>
inline constexpr auto add = kernel<"add", Block>([](context& k, ptr<const f32> x, ptr<const f32> y, ptr<f32> z, val<i64> n) {
  auto i = k.program_id<i64>(0) * Block + k.arange<Block>();
  auto in = i < n;
  store(z + i, load(x + i, {.mask = in}) + load(y + i, {.mask = in}), {.mask = in});
});

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

TEST(host_programs, add) {
  const host_kernel f(add<1024>.graph());
  for (std::int64_t n : {1, 15, 1000, 1024, 1025, 5000}) {
    std::vector<float> x(static_cast<std::size_t>(n)), y(x.size()), z(x.size() + 16, -7.f);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.5f, y[i] = 3.f - static_cast<float>(i);
    f.run({word(x.data()), word(y.data()), word(z.data()), static_cast<std::uint64_t>(n)}, {(n + 1023) / 1024});
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(z[i], x[i] + y[i]) << i << " of " << n;
    for (std::size_t i = x.size(); i < z.size(); ++i) ASSERT_EQ(z[i], -7.f);
  }
}

TEST(host_programs, softmax_long) {
  const host_kernel f(softmax_long<256>.graph());
  const std::uint64_t rows = 5, stride = 1100;
  std::mt19937 random(7);
  for (std::uint64_t cols : {1u, 100u, 256u, 257u, 1024u, 1100u}) {
    std::vector<bf16> x(rows * stride), y(rows * stride, bf16(-3.f));
    for (auto& v : x) v = bf16(static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 100.f);
    f.run({word(x.data()), rows, cols, stride, 1, word(y.data()), rows, cols, stride, 1}, {static_cast<std::int64_t>(rows)});
    for (std::size_t r = 0; r < rows; ++r) {
      double top = -INFINITY, sum = 0;
      for (std::size_t i = 0; i < cols; ++i) top = std::max(top, static_cast<double>(static_cast<float>(x[r * stride + i])));
      for (std::size_t i = 0; i < cols; ++i) sum += std::exp(static_cast<float>(x[r * stride + i]) - top);
      for (std::size_t i = 0; i < cols; ++i) {
        const double want = std::exp(static_cast<float>(x[r * stride + i]) - top) / sum;
        ASSERT_NEAR(static_cast<float>(y[r * stride + i]), want, want * 0.005 + 1e-30) << r << ", " << i << " of " << cols;
      }
      for (std::size_t i = cols; i < stride; ++i) ASSERT_EQ(static_cast<float>(y[r * stride + i]), -3.f);
    }
  }
}

TEST(host_programs, gemm_ring) {
  const host_kernel f(gemm_ring<64, 96, 32, 3>.graph());
  for (auto [m, n, k] : {std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>{64, 96, 32}, {200, 150, 100}, {1, 1, 1}, {130, 97, 64}}) {
    std::vector<f16> a(m * k), b(k * n), c(m * n);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = f16(static_cast<float>(static_cast<int>(i * 7 % 9) - 4));
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = f16(static_cast<float>(static_cast<int>(i * 5 % 7) - 3));
    const auto tiles = static_cast<std::int64_t>((m + 63) / 64 * ((n + 95) / 96));
    f.run({word(a.data()), m, k, k, 1, word(b.data()), k, n, n, 1, word(c.data()), m, n, n, 1}, {tiles});
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        float sum = 0;
        for (std::size_t p = 0; p < k; ++p) sum += static_cast<float>(a[i * k + p]) * static_cast<float>(b[p * n + j]);
        ASSERT_EQ(static_cast<float>(c[i * n + j]), static_cast<float>(f16(sum))) << i << ", " << j;
      }
  }
}

} // namespace
