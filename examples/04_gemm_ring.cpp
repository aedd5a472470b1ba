// c = a b with local memory by hand: a ring of buffers that asynchronous copies fill ahead of their use
// tour: --size 512
#include "support/lesson.hpp"

using namespace kiln;

// Every CTA makes one BM x BN tile of c. The operands' tiles pass through S slots of local memory: while the product reads
// slot i, the copies into the next S - 1 slots are under way.
//
// The wait is the heart of it. Before round i there have been i + S - 1 commits; with at most S - 2 pending, those of round i
// are complete. With S - 1 they need not be. Then kiln, which simulates the accesses while the compiler runs, refuses the file:
//   kiln[R-HZ01] as[i0 % 3] (4096 B) is read (04_gemm_ring.cpp:32) before the async_load of line 24 is known complete; wait
//   for at most 1 pending groups
// Try it: change the 2 in the wait below to a 1.
template <int BM, int BN, int BK, int S>
inline constexpr auto gemm_ring = kernel<"gemm_ring", attributes{.num_warps = 8}, BM, BN, BK, S>([](context& k, array<const f16, 2> a, array<const f16, 2> b, array<f16, 2> c) {
  auto [m, n] = k.program_tile(c.shape(), tile_size<BM, BN>, {.group = 8});
  auto as = k.local_alloc<f16, BM, BK>(S, {.name = "as"});
  auto bs = k.local_alloc<f16, BK, BN>(S, {.name = "bs"});
  auto acc = k.var(k.zeros<f32, BM, BN>());
  auto steps = ceil_div(a.extent(1), BK);
  auto fetch = [&](auto i) {                                       // a plain C++ lambda is a device function
    k.when(i < steps, [&] {
      k.async_load(a.region(at(m, i * BK), extent<BM, BK>), as[i % S], {.other = 0});
      k.async_load(b.region(at(i * BK, n), extent<BK, BN>), bs[i % S], {.other = 0});
    });
    k.async_load_commit_group();
  };
  for (int i = 0; i < S - 1; ++i) fetch(k.let(i));                 // an ordinary loop: unrolled while recording
  for (auto i : k.range(0, steps)) {
    k.async_load_wait_group(S - 2);
    acc = k.dot(as[i % S], bs[i % S], acc);
    fetch(i + (S - 1));
  }
  store(c.region(at(m, n), extent<BM, BN>), cast<f16>(acc));
});

int main(int argc, char** argv) {
  return lesson::guarded([&] {
    lesson::program p(argc, argv, "gemm ring", {{"size", "N", "rows and columns of the three matrices"}});
    i64 const n = p.number("size", 300, 1);
    auto const av = lesson::random_values<f16>(n * n, 1), bv = lesson::random_values<f16>(n * n, 2);

    device dev = p.device();
    buffer<f16> a(dev, av), b(dev, bv), c(dev, n * n);
    constexpr int tile = 64;
    double seconds = p.time([&] {
      gemm_ring<tile, tile, 32, 3>.launch(dev, grid(ceil_div(n, tile) * ceil_div(n, tile)), a.view(n, n), b.view(n, n), c.view(n, n));
      dev.synchronize();
    });
    auto const got = lesson::to_double(c.to_vector()), x = lesson::to_double(av), y = lesson::to_double(bv);

    // The reference in double, row by row.
    double error = 0, largest = 0;
    std::vector<double> row(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::ranges::fill(row, 0.0);
      for (std::size_t q = 0; q < row.size(); ++q)
        for (std::size_t j = 0; j < row.size(); ++j) row[j] += x[i * row.size() + q] * y[q * row.size() + j];
      for (std::size_t j = 0; j < row.size(); ++j) {
        error = std::max(error, lesson::difference(got[i * row.size() + j], row[j]));
        largest = std::max(largest, std::abs(row[j]));
      }
    }
    double const flops = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    p.report(lesson::size_text({n, n, n}, dtype::f16), seconds, flops, "GFLOP/s", error, largest * lesson::rounding<f16>() + 1e-4);
    return p.finish();
  });
}
