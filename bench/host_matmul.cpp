// Matrix products on the host against OpenBLAS: same sizes, same threads, interleaved, ratios of medians. f32, bf16, f16
// and i8 inputs are compared with sgemm, f64 with dgemm. Every result is checked against OpenBLAS's.
//
//   bench_host_matmul [--sizes 512,1024] [--types f32,bf16] [--rounds 9]
//   KILN_NUM_THREADS=1, 2, ..                              both sides
//   KILN_HOST_CPU=haswell OPENBLAS_CORETYPE=Haswell        AVX2 against AVX2
#include <kiln/kiln.hpp>

#include <cblas.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

extern "C" char* openblas_get_corename(void);
extern "C" void openblas_set_num_threads(int);

using namespace kiln;

namespace {

template <class T> using sum_of = std::conditional_t<std::same_as<T, f64>, f64, std::conditional_t<std::same_as<T, i8>, i32, f32>>;

template <class T, int BM, int BN, int BK>
inline constexpr auto matmul = kernel<"matmul", BM, BN, BK>([](context& k, array<const T, 2> a, array<const T, 2> b, array<sum_of<T>, 2> c) {
  auto [m, n] = k.program_tile(c.shape(), tile_size<BM, BN>, {.group = 8});
  auto acc = k.var(k.zeros<sum_of<T>, BM, BN>());
  for (auto kk : k.range(0, a.extent(1), BK))
    acc = k.dot(load(a.region(at(m, kk), extent<BM, BK>)), load(b.region(at(kk, n), extent<BK, BN>)), acc);
  store(c.region(at(m, n), extent<BM, BN>), acc);
});

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
/// Of all threads: what a busy machine takes from one side only does not count.
double processor() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
double median(std::vector<double> v) {
  std::ranges::sort(v);
  return v[v.size() / 2];
}
// Lets the other library's idle threads go to sleep.
void settle(int threads) { std::this_thread::sleep_for(std::chrono::milliseconds(threads > 1 ? 40 : 2)); }

template <class T> void compare(char const* name, i64 n, int threads, int rounds) {
  using blas = std::conditional_t<std::same_as<T, f64>, double, float>;
  const auto count = static_cast<std::size_t>(n * n);
  device dev = device::host();
  // Sixteenths below 8 (whole numbers for i8): exact in every type, and so are their sums in f32.
  std::vector<T> x(count), y(count);
  buffer<blas> p(dev, n * n), q(dev, n * n), r(dev, n * n);
  for (std::size_t i = 0; i < count; ++i) {
    const int s = static_cast<int>(i * 7919 % 129) - 64, t = static_cast<int>(i * 104729 % 129) - 64;
    const double scale = std::same_as<T, i8> ? 1 : 16;
    x[i] = static_cast<T>(static_cast<float>(s / scale)), y[i] = static_cast<T>(static_cast<float>(t / scale));
    p.data()[i] = static_cast<blas>(s / scale), q.data()[i] = static_cast<blas>(t / scale);
  }
  buffer<T> a(dev, x), b(dev, y);
  buffer<sum_of<T>> c(dev, n * n);
  const auto tiles = grid(ceil_div(n, 128) * ceil_div(n, 128));
  const auto ours = [&] { matmul<T, 128, 128, 32>.launch(dev, tiles, a.view(n, n), b.view(n, n), c.view(n, n)); dev.synchronize(); };
  const auto theirs = [&] {
    const int s = static_cast<int>(n);
    if constexpr (std::same_as<blas, double>)
      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, s, s, s, 1, p.data(), s, q.data(), s, 0, r.data(), s);
    else
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, s, s, s, 1, p.data(), s, q.data(), s, 0, r.data(), s);
  };
  std::vector<double> mine, other, my_processor, other_processor;
  for (int i = 0; i <= rounds; ++i) {
    settle(threads);
    double t = now(), used = processor();
    ours();
    const double first = now() - t, first_used = processor() - used;
    settle(threads);
    t = now(), used = processor();
    theirs();
    const double second = now() - t, second_used = processor() - used;
    if (i == 0) continue; // compiles, faults pages in
    mine.push_back(first), other.push_back(second);
    my_processor.push_back(first_used), other_processor.push_back(second_used);
  }
  double difference = 0;
  for (std::size_t i = 0; i < count; ++i)
    difference = std::max(difference, std::fabs(static_cast<double>(c.data()[i]) - static_cast<double>(r.data()[i])));
  const double flops = 2e-9 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  std::printf("%-5s %5lld  %d thread%s  kiln %7.1f  OpenBLAS %7.1f GFLOP/s  ratio %.3f  best/best %.3f  of processor time %.3f  difference %g\n", name,
              static_cast<long long>(n), threads, threads == 1 ? " " : "s", flops / median(mine), flops / median(other),
              median(other) / median(mine), std::ranges::min(other) / std::ranges::min(mine), median(other_processor) / median(my_processor), difference);
  std::fflush(stdout);
}

bool contains(std::string const& list, std::string const& word) { return ("," + list + ",").find("," + word + ",") != std::string::npos; }

} // namespace

int main(int argc, char** argv) {
  std::string sizes = "512,1024,2048,4096", types = "f32,bf16,f16,f64,i8";
  int rounds = 9;
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (i + 1 == argc || (option != "--sizes" && option != "--types" && option != "--rounds")) {
      std::fprintf(stderr, "usage: %s [--sizes N,N..] [--types f32,bf16,f16,f64,i8] [--rounds N]\n", argv[0]);
      return 2;
    }
    if (option == "--sizes") sizes = argv[i + 1];
    else if (option == "--types") types = argv[i + 1];
    else rounds = std::max(1, std::atoi(argv[i + 1]));
  }
  const int threads = device::host().multiprocessors();
  openblas_set_num_threads(threads);
  std::printf("OpenBLAS core: %s\n", openblas_get_corename());
  for (std::size_t from = 0; from < sizes.size();) {
    const auto to = std::min(sizes.find(',', from), sizes.size());
    const i64 n = std::atoll(sizes.substr(from, to - from).c_str());
    from = to + 1;
    if (n < 1) continue;
    const int some = n > 2048 ? std::min(rounds, 5) : rounds;
    if (contains(types, "f32")) compare<f32>("f32", n, threads, some);
    if (contains(types, "bf16")) compare<bf16>("bf16", n, threads, some);
    if (contains(types, "f16")) compare<f16>("f16", n, threads, some);
    if (contains(types, "f64")) compare<f64>("f64", n, threads, some);
    if (contains(types, "i8")) compare<i8>("i8", n, threads, some);
  }
  return 0;
}
