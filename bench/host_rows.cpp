// Row and elementwise kernels on one host thread, against glibc's memcpy of a 4096 x 4096 f32 matrix: `ratio` is bytes
// that must move per second over those of memcpy, medians of runs that alternate. `jit_ms` is a warm compile (not the
// first of the process), `jit_cpu_ms` the thread's own time in it: what it would take on an idle machine.
#include "bench/host_kernels.hpp"
#include "tests/support/host_kernel.hpp"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <sys/mman.h>

using namespace kiln;
using namespace kiln_bench;
using kiln_test::host_kernel;

namespace {

void* pages(std::size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(p, bytes, MADV_HUGEPAGE);
  std::memset(p, 0, bytes);
  return p;
}
constexpr std::size_t elements = std::size_t{n} * n;
struct data {
  float *x = static_cast<float*>(pages(elements * 4)), *y = static_cast<float*>(pages(elements * 4)),
        *z = static_cast<float*>(pages(elements * 4)), *copy = static_cast<float*>(pages(elements * 4));
  bf16* half = static_cast<bf16*>(pages(elements * 2));
  std::int64_t* index = static_cast<std::int64_t*>(pages(n * 8));
  data() {
    for (std::size_t i = 0; i < elements; ++i) {
      x[i] = y[i] = static_cast<float>(static_cast<int>(i * 7919 % 4001) - 2000) / 250.f;
      half[i] = bf16(x[i]);
    }
    for (int i = 0; i < n; ++i) index[i] = i * 1597L % n;
  }
};
data& memory() {
  static data d;
  return d;
}

std::uint64_t word(void const* p) { return reinterpret_cast<std::uintptr_t>(p); }
double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

void run(benchmark::State& state, graph_view g, std::vector<std::uint64_t> const& slots, dims grid, double bytes,
         double (*check)()) {
  { const host_kernel first(g, facts_of(g)); }
  auto cpu_time = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  };
  const double before = cpu_time();
  const host_kernel f(g, facts_of(g));
  const double compile = cpu_time() - before;
  data& d = memory();
  const double matrix = static_cast<double>(elements) * 4;
  std::vector<double> ours, theirs;
  f.run(slots, grid);
  if (const double error = check(); !(error < 1e-2)) {
    state.SkipWithError("wrong result");
    return;
  }
  for (auto _ : state) {
    double t = now();
    f.run(slots, grid);
    const double a = now() - t;
    t = now();
    std::memcpy(d.copy, d.x, elements * 4);
    benchmark::ClobberMemory();
    const double b = now() - t;
    state.SetIterationTime(a);
    ours.push_back(a);
    theirs.push_back(b);
  }
  state.counters["ratio"] = bytes / median(ours) / (2 * matrix / median(theirs));
  state.counters["ms"] = median(ours) * 1e3;
  state.counters["memcpy_ms"] = median(theirs) * 1e3;
  state.counters["jit_cpu_ms"] = compile * 1e3;
  state.counters["jit_ms"] = f.image().times().total();
  state.counters["emit_ms"] = f.image().times().emit;
  state.counters["passes_ms"] = f.image().times().passes;
  state.counters["codegen_ms"] = f.image().times().codegen;
}

// Worst errors over some rows.
template <class T> double softmax_error(T const* x, T const* y) {
  double worst = 0;
  for (std::size_t r : {0u, 77u, 4095u}) {
    double top = -INFINITY, sum = 0;
    for (int i = 0; i < n; ++i) top = std::max(top, static_cast<double>(static_cast<float>(x[r * n + static_cast<std::size_t>(i)])));
    for (int i = 0; i < n; ++i) sum += std::exp(static_cast<float>(x[r * n + static_cast<std::size_t>(i)]) - top);
    for (int i = 0; i < n; ++i) {
      const double want = std::exp(static_cast<float>(x[r * n + static_cast<std::size_t>(i)]) - top) / sum;
      worst = std::max(worst, std::abs(static_cast<float>(y[r * n + static_cast<std::size_t>(i)]) - want) / want);
    }
  }
  return worst;
}
template <class T> double layernorm_error(T const* x, T const* y) {
  double worst = 0;
  for (std::size_t r : {0u, 77u, 4095u}) {
    double mean = 0, sum = 0;
    for (std::size_t i = 0; i < n; ++i) mean += static_cast<float>(x[r * n + i]) / double{n};
    for (std::size_t i = 0; i < n; ++i) sum += std::pow(static_cast<float>(x[r * n + i]) - mean, 2) / n;
    for (std::size_t i = 0; i < n; ++i)
      worst = std::max(worst, std::abs(static_cast<float>(y[r * n + i]) - (static_cast<float>(x[r * n + i]) - mean) / std::sqrt(sum + 1e-5)));
  }
  return worst;
}

void bench_vadd(benchmark::State& s) {
  data& d = memory();
  run(s, vadd.graph(), {word(d.x), word(d.y), word(d.z), elements}, {n}, 3.0 * elements * 4, [] {
    double wrong = 0;
    for (std::size_t i = 0; i < elements; i += 97) wrong += memory().z[i] != memory().x[i] + memory().y[i];
    return wrong;
  });
}
template <class T> std::vector<std::uint64_t> two_matrices(T const* x) {
  return {word(x), n, n, n, 1, word(memory().z), n, n, n, 1};
}
void bench_softmax(benchmark::State& s) {
  run(s, softmax<f32>.graph(), two_matrices(memory().x), {n}, 2.0 * elements * 4, [] { return softmax_error(memory().x, memory().z); });
}
void bench_softmax_bf16(benchmark::State& s) {
  run(s, softmax<bf16>.graph(), two_matrices(memory().half), {n}, 2.0 * elements * 2,
      [] { return softmax_error(memory().half, reinterpret_cast<bf16*>(memory().z)); });
}
void bench_layernorm(benchmark::State& s) {
  run(s, layernorm<f32>.graph(), two_matrices(memory().x), {n}, 2.0 * elements * 4, [] { return layernorm_error(memory().x, memory().z); });
}
void bench_layernorm_bf16(benchmark::State& s) {
  run(s, layernorm<bf16>.graph(), two_matrices(memory().half), {n}, 2.0 * elements * 2,
      [] { return layernorm_error(memory().half, reinterpret_cast<bf16*>(memory().z)); });
}
void bench_gather(benchmark::State& s) {
  data& d = memory();
  run(s, gather_rows.graph(), {word(d.x), word(d.index), word(d.z), n}, {n}, 2.0 * elements * 4, [] {
    double wrong = 0;
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t i = 0; i < n; i += 61) wrong += memory().z[r * n + i] != memory().x[static_cast<std::size_t>(memory().index[r]) * n + i];
    return wrong;
  });
}
void bench_transpose(benchmark::State& s) {
  run(s, transpose.graph(), two_matrices(memory().x), {n / 64, n / 64}, 2.0 * elements * 4, [] {
    double wrong = 0;
    for (std::size_t r = 0; r < n; r += 3)
      for (std::size_t i = 0; i < n; ++i) wrong += memory().z[r * n + i] != memory().x[i * n + r];
    return wrong;
  });
}

BENCHMARK(bench_vadd)->UseManualTime()->Iterations(25)->Unit(benchmark::kMillisecond);
BENCHMARK(bench_layernorm)->UseManualTime()->Iterations(25)->Unit(benchmark::kMillisecond);
BENCHMARK(bench_gather)->UseManualTime()->Iterations(25)->Unit(benchmark::kMillisecond);
BENCHMARK(bench_softmax)->UseManualTime()->Iterations(25)->Unit(benchmark::kMillisecond);
BENCHMARK(bench_transpose)->UseManualTime()->Iterations(25)->Unit(benchmark::kMillisecond);
BENCHMARK(bench_softmax_bf16)->UseManualTime()->Iterations(25)->Unit(benchmark::kMillisecond);
BENCHMARK(bench_layernorm_bf16)->UseManualTime()->Iterations(25)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
