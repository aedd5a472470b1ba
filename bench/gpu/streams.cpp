// Copies, fills, sums: nothing but memory.
#include "harness.hpp"

namespace kiln_bench {

void stream_jobs(session& s) {
  constexpr i64 big = i64{1} << 30, n = i64{1} << 28;
  if (s.wants("copy", "f32 4 GiB") || s.wants("fill", "f32 4 GiB")) {
    auto x = random_buffer<f32>(s, big, 1);
    buffer<f32> y(s.on, big);
    if (s.wants("copy", "f32 4 GiB"))
      s.job({"copy", "f32 4 GiB", 0, 8.0 * big, "TB/s", 4.24},
            [&] { copy<f32, 512, 4>.launch(s.on, grid(big / 512), x, y, big); },
            [&] {
              double wrong = 0;
              for (i64 at : {i64{0}, big / 3, big - 65536}) {
                auto const a = window(s, x, at, 65536), b = window(s, y, at, 65536);
                for (std::size_t i = 0; i < a.size(); ++i) wrong += a[i] != b[i];
              }
              return wrong * 2;
            });
    if (s.wants("fill", "f32 4 GiB"))
      s.job({"fill", "f32 4 GiB", 0, 4.0 * big, "TB/s", 4.65},
            [&] { fill<f32, 1024, 8>.launch(s.on, grid(big / 1024), y, 1.5f, big); },
            [&] {
              double wrong = 0;
              for (i64 at : {i64{0}, big / 3, big - 65536})
                for (double v : window(s, y, at, 65536)) wrong += v != 1.5;
              return wrong * 2;
            });
  }
  if (s.wants("vector add", "f32 2^28")) {
    auto x = random_buffer<f32>(s, n, 1), y = random_buffer<f32>(s, n, 2);
    buffer<f32> z(s.on, n);
    s.job({"vector add", "f32 2^28", 0, 12.0 * n, "TB/s", 4.30},
          [&] { vector_add<f32, 512, 4>.launch(s.on, grid(n / 512), x, y, z, n); },
          [&] {
            double wrong = 0;
            for (i64 at : {i64{0}, n / 3, n - 65536}) {
              auto const a = window(s, x, at, 65536), b = window(s, y, at, 65536), c = window(s, z, at, 65536);
              for (std::size_t i = 0; i < a.size(); ++i)
                wrong += static_cast<float>(c[i]) != static_cast<float>(a[i]) + static_cast<float>(b[i]);
            }
            return wrong * 2;
          });
  }
  if (s.wants("sum", "f32 2^28")) {
    auto x = random_buffer<f32>(s, n, 1);
    buffer<f32> out(s.on, 1);
    i64 const ctas = 2 * s.dev.multiprocessors();
    // The sum is added to what is there: the check clears it, the measured runs need not.
    std::function<void()> run;
    auto const named = [&](char const* name, std::function<void()> f) {
      return candidate{name, [&run, f] { (run = f)(); }};
    };
    s.best_of({"sum", "f32 2^28", 0, 4.0 * n, "TB/s", 4.34},
              {named("w16", [&] { sum_all<f32, 16384, 16>.launch(s.on, grid(ctas), x, out, n); }),
               named("w16 twice as many", [&] { sum_all<f32, 16384, 16>.launch(s.on, grid(2 * ctas), x, out, n); }),
               named("w8", [&] { sum_all<f32, 8192, 8>.launch(s.on, grid(2 * ctas), x, out, n); })}, [&] {
      out.fill(0);
      run();
      double const got = static_cast<double>(out.to_vector()[0]);
      std::vector<f32> const all = x.to_vector();
      double want = 0, size = 0;
      for (f32 v : all) want += static_cast<double>(v), size += std::fabs(static_cast<double>(v));
      return std::fabs(got - want) / (size * 1e-6);
    });
  }
}

} // namespace kiln_bench
