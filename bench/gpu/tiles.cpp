// Transposition and matrix products.
#include "harness.hpp"

namespace kiln_bench {

void tile_jobs(session& s) {
  constexpr i64 side = 16384;
  if (!s.wants("transpose", "f32 16384x16384")) return;
  auto x = random_buffer<f32>(s, side * side, 1);
  buffer<f32> y(s.on, side * side);
  s.job({"transpose", "f32 16384x16384", 0, 8.0 * side * side, "TB/s", 4.08},
        [&] { transpose<f32, 64, 8>.launch(s.on, grid(side / 64, side / 64), x.view(side, side), y.view(side, side)); },
        [&] {
          double wrong = 0;
          for (i64 r : {i64{0}, side / 3, side - 1}) {
            auto const row = window(s, y, r * side, side);
            for (i64 c = 0; c < side; c += 257)
              wrong += row[static_cast<std::size_t>(c)] != window(s, x, c * side + r, 1)[0];
          }
          return wrong * 2;
        });
}

namespace {

/// A kernel and its tile.
template <auto const& Kernel, int BM, int BN> struct way {
  char const* name;
  template <class A, class C> void launch(session& s, A& a, A& b, C& c, i64 m, i64 n, i64 k) const {
    Kernel.launch(s.on, grid(ceil_div(m, BM) * ceil_div(n, BN)), a.view(m, k), b.view(n, k), c.view(m, n));
  }
};

template <class T, class... Ways>
void product(session& s, char const* job, i64 m, i64 n, i64 k, double reach, Ways const&... ways) {
  std::string const shape = std::string(name_of(dtype_of<T>)) + " " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  if (!s.wants(job, shape)) return;
  auto a = random_buffer<T>(s, m * k, 1), b = random_buffer<T>(s, n * k, 2);
  buffer<T> c(s.on, m * n);
  s.best_of({job, shape, 0, 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k), "TFLOP/s", reach},
        {{ways.name, [&] { ways.launch(s, a, b, c, m, n, k); }}...},
        [&] {
          double worst = 0;
          for (i64 i = 0; i < 40; ++i) {
            i64 const r = (i * 997 + 5) % m, j = (i * 1913 + 3) % n;
            auto const x = window(s, a, r * k, k), y = window(s, b, j * k, k);
            double sum = 0, size = 0;
            for (std::size_t q = 0; q < x.size(); ++q) sum += x[q] * y[q], size += std::fabs(x[q] * y[q]);
            double const got = window(s, c, r * n + j, 1)[0];
            double const allowed = 2.0 * static_cast<double>(k) * 0x1p-24 * size + std::fabs(sum) / (sizeof(T) == 2 ? 256 : 1e7) + 1e-6;
            double const e = std::fabs(got - sum) / allowed;
            worst = e <= worst ? worst : e;
          }
          return worst;
        });
}

/// 8-bit and tf32 operands, with b's rows along k and across it.
template <class T, class Sum, int BK> void product_of_types(session& s, i64 n) {
  auto const rounding = std::is_same_v<T, f32> ? 0x1p-10 : 0; // to tf32
  std::string const shape = std::string(name_of(dtype_of<T>)) + " " + std::to_string(n) + "^3";
  if (!s.wants("product, b along k", shape) && !s.wants("product, b across k", shape)) return;
  auto a = random_buffer<T>(s, n * n, 1), b = random_buffer<T>(s, n * n, 2);
  buffer<Sum> c(s.on, n * n);
  std::vector<T> const all = b.to_vector();
  auto const one = [&]<bool Across>(char const* job) {
    s.best_of({job, shape, 0, 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n), "TFLOP/s", 0},
              {{"128x128 w4", [&] { matmul_of_types<T, Sum, 128, 128, BK, 4, Across>.launch(s.on, grid(n / 128 * (n / 128)), a.view(n, n), b.view(n, n), c.view(n, n)); }},
               {"128x256 w8", [&] { matmul_of_types<T, Sum, 128, 256, BK, 8, Across>.launch(s.on, grid(n / 128 * (n / 256)), a.view(n, n), b.view(n, n), c.view(n, n)); }}},
              [&] {
                double worst = 0;
                for (i64 i = 0; i < 10; ++i) {
                  i64 const r = (i * 997 + 5) % n, j = (i * 1913 + 3) % n;
                  auto const x = window(s, a, r * n, n);
                  double sum = 0, size = 0;
                  for (i64 q = 0; q < n; ++q) {
                    double const v = x[static_cast<std::size_t>(q)] * static_cast<double>(all[static_cast<std::size_t>(Across ? q * n + j : j * n + q)]);
                    sum += v, size += std::fabs(v);
                  }
                  double const got = window(s, c, r * n + j, 1)[0];
                  double const e = std::fabs(got - sum) / (rounding * size + 1e-3);
                  worst = e <= worst ? worst : e;
                }
                return worst;
              });
  };
  if (s.wants("product, b along k", shape)) one.template operator()<false>("product, b along k");
  if (s.wants("product, b across k", shape)) one.template operator()<true>("product, b across k");
}

} // namespace

void product_jobs(session& s) {
  product_of_types<i8, i32, 64>(s, 4096);
  product_of_types<f32, f32, 32>(s, 4096);
  for (i64 n : {i64{4096}, i64{8192}}) {
    double const reach = n == 8192 ? 350 : 0;
    product<bf16>(s, "product, plain dot", n, n, n, reach, way<matmul<bf16, bf16, 128, 128, 32, 8>, 128, 128>{"128x128x32 w8"},
                  way<matmul<bf16, bf16, 128, 128, 64, 8>, 128, 128>{"128x128x64 w8"},
                  way<matmul<bf16, bf16, 128, 128, 32, 4>, 128, 128>{"128x128x32 w4"},
                  way<matmul<bf16, bf16, 128, 256, 32, 8>, 128, 256>{"128x256x32 w8"},
                  way<matmul<bf16, bf16, 256, 128, 32, 8>, 256, 128>{"256x128x32 w8"},
                  way<matmul<bf16, bf16, 128, 256, 64, 8>, 128, 256>{"128x256x64 w8"});
    product<bf16>(s, "product, ring", n, n, n, 0, way<matmul_ring<bf16, bf16, 128, 128, 32, 4, 8>, 128, 128>{"128x128x32 w8"},
                  way<matmul_ring<bf16, bf16, 128, 256, 32, 3, 8>, 128, 256>{"128x256x32 w8"});
  }
}

} // namespace kiln_bench
