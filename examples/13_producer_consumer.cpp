// c = a b by three agents that run at the same time: one brings the operands, two multiply, each half of the rows.
// tour: --size 256
#include "support/lesson.hpp"

using namespace kiln;

// The ring of lesson 4, taken apart. `full[s]` completes a phase when slot s has been filled, `empty[s]` when both consumers
// are done with it. A barrier's phases count 0, 1, 2, ..; a wait names the parity of the phase it is for, and the phase
// "before 0" counts as complete: so the producer's first round passes at once (phase ^ 1), and the consumers' does not.
//
// While the C++ compiler runs, kiln runs all three agents with clocks, and refuses the file when anything that they do to a
// slot is not ordered. Try it:
//   leave out the wait for empty[s]:  kiln[R-BR03] full[0]: the barrier_arrive (..) in task load may count for phase 0 or 1: nothing orders it ..
//   leave out barrier_arrive(empty):  kiln[R-BR02] deadlock: task load waits (..) for empty[0] phase 0: 0 of 2 arrivals; ..
//   drop the `^ 1`:                   kiln[R-BR02], at once
// See it: `kiln memory-map producer_consumer --svg -o map.svg` draws the slots and who waits for whom; `kiln timeline producer_consumer -o
// trace.json`, opened in ui.perfetto.dev, shows one run of it.
// And what depends on a launch's numbers, the checker finds without a device:  kiln check 13_producer_consumer --seeds 1000
template <int BM, int BN, int BK, int S>
inline constexpr auto gemm_tasks = kernel<"gemm_tasks", attributes{.num_warps = 4}, BM, BN, BK, S>([](context& k, array<const f16, 2> a, array<const f16, 2> b, array<f32, 2> c) {
  auto [m, n] = k.program_tile(c.shape(), tile_size<BM, BN>, {.group = 8});
  auto as = k.local_alloc<f16, BM, BK>(S, {.name = "as"});
  auto bs = k.local_alloc<f16, BK, BN>(S, {.name = "bs"});
  auto full = k.alloc_barriers(S, {.name = "full"}), empty = k.alloc_barriers(S, {.arrive_count = 2, .name = "empty"});
  auto steps = ceil_div(a.extent(1), BK);
  k.async_tasks(k.task_default({.name = "load"},
                               [&] {
                                 for (auto i : k.range(0, steps)) {
                                   auto [s, phase] = k.buf_phase(i, S);
                                   k.barrier_wait(empty[s], phase ^ 1);
                                   k.async_load(a.region(at(m, i * BK), extent<BM, BK>), as[s], {.other = 0});
                                   k.async_load(b.region(at(i * BK, n), extent<BK, BN>), bs[s], {.other = 0});
                                   k.async_load_commit_group();
                                   k.async_load_wait_group(0);
                                   k.barrier_arrive(full[s]);
                                 }
                               }),
                k.task({.num_warps = 4, .replicate = 2, .name = "multiply"}, [&] {
                  auto half = k.replica_id() * (BM / 2); // 0 in one replica, BM / 2 in the other
                  auto acc = k.var(k.zeros<f32, BM / 2, BN>());
                  for (auto i : k.range(0, steps)) {
                    auto [s, phase] = k.buf_phase(i, S);
                    k.barrier_wait(full[s], phase);
                    acc = k.dot(k.local_slice<BM / 2, BK>(as[s], {half, 0}), bs[s], acc);
                    k.barrier_arrive(empty[s]);
                  }
                  store(c.region(at(m + half, n), extent<BM / 2, BN>), acc);
                }));
});

int main(int argc, char** argv) {
  return lesson::guarded([&] {
    lesson::program p(argc, argv, "gemm tasks", {{"size", "N", "rows and columns of the three matrices"}});
    i64 const n = p.number("size", 200, 1);
    auto const av = lesson::random_values<f16>(n * n, 1), bv = lesson::random_values<f16>(n * n, 2);

    if (p.device().target().is_amdgpu()) {
      p.say("tasks are not compiled for AMD GPUs yet: the lesson runs on the host");
      p.move_to(device::host());
    }
    device dev = p.device();
    buffer<f16> a(dev, av), b(dev, bv);
    buffer<f32> c(dev, n * n);
    constexpr int tile = 64;
    double seconds = p.time([&] {
      gemm_tasks<tile, tile, 32, 3>.launch(dev, grid(ceil_div(n, tile) * ceil_div(n, tile)), a.view(n, n), b.view(n, n), c.view(n, n));
      dev.synchronize();
    });
    auto const got = lesson::to_double(c.to_vector()), x = lesson::to_double(av), y = lesson::to_double(bv);

    double error = 0, largest = 0;
    std::vector<double> row(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < row.size(); ++i) { // the reference in double, row by row
      std::ranges::fill(row, 0.0);
      for (std::size_t q = 0; q < row.size(); ++q)
        for (std::size_t j = 0; j < row.size(); ++j) row[j] += x[i * row.size() + q] * y[q * row.size() + j];
      for (std::size_t j = 0; j < row.size(); ++j) {
        error = std::max(error, lesson::difference(got[i * row.size() + j], row[j]));
        largest = std::max(largest, std::abs(row[j]));
      }
    }
    double const flops = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    p.report(lesson::size_text({n, n, n}, dtype::f16), seconds, flops, "GFLOP/s", error, largest * lesson::rounding<f32>() * static_cast<double>(n) + 1e-4);
    return p.finish();
  });
}
