// Copies, fills, sums: nothing but memory.
#include "harness.hpp"

namespace kiln_bench {

namespace {

/// Numbers 0..255: all alike likely, nine of ten the same, or one alone.
template <int Kind>
inline constexpr auto fill_bins = kernel<"fill_bins", Kind>([](context& k, ptr<i32> x) {
  auto i = k.program_id<i64>(0) * 1024 + k.arange<1024>();
  auto [bits, choice, third, fourth] = philox(1, i);
  auto any = cast<i32>(bits >> 24u);
  if constexpr (Kind == 0) store(x + i, any);
  if constexpr (Kind == 1) store(x + i, where(choice % 10u == 0u, any, 7));
  if constexpr (Kind == 2) store(x + i, any * 0 + 7);
});
/// How many elements are `bin`, another way.
inline constexpr auto count_equal = kernel<"count_equal">([](context& k, ptr<const i32> x, ptr<i32> count, val<i32> bin) {
  auto i = k.program_id<i64>(0) * 4096 + k.arange<4096>();
  atomic_add(count + k.arange<1>(), reduce<sum>(cast<i32>(load(x + i) == bin)));
});

template <int Kind> void histogram_job(session& s, char const* shape) {
  if (!s.wants("histogram", shape)) return;
  constexpr i64 n = i64{1} << 28;
  buffer<i32> x(s.on, n), counts(s.on, 256), one(s.on, 1);
  fill_bins<Kind>.launch(s.on, grid(n / 1024), x);
  i64 const ctas = s.dev.multiprocessors();
  // Counts are added to what is there: the check clears them, the measured runs need not.
  std::function<void()> run;
  auto const named = [&](char const* name, std::function<void()> f) {
    return candidate{name, [&run, f] { (run = f)(); }};
  };
  s.best_of({"histogram", shape, 0, 4.0 * n, "TB/s", 4.30},
            {named("w16 16384", [&] { histogram_all<256, 16384, 16>.launch(s.on, grid(n / 16384), x, counts); }),
             named("loop w16 16384", [&] { histogram_loop<256, 16384, 16>.launch(s.on, grid(3 * ctas), x, counts, n); }),
             named("loop w16 8192", [&] { histogram_loop<256, 8192, 16>.launch(s.on, grid(4 * ctas), x, counts, n); }),
             named("loop w32 8192", [&] { histogram_loop<256, 8192, 32>.launch(s.on, grid(2 * ctas), x, counts, n); }),
             named("loop w32 16384", [&] { histogram_loop<256, 16384, 32>.launch(s.on, grid(2 * ctas), x, counts, n); })},
            [&] {
              counts.fill(0);
              run();
              auto const got = counts.to_vector();
              double wrong = 0;
              i64 all = 0;
              for (i32 c : got) all += c;
              for (i32 bin : {0, 7, 100, 255}) {
                one.fill(0);
                count_equal.launch(s.on, grid(n / 4096), x, one, bin);
                wrong += one.to_vector()[0] != got[static_cast<std::size_t>(bin)];
              }
              return 2 * (wrong + (all != n));
            });
}
void histograms(session& s) {
  histogram_job<0>(s, "256 bins i32 2^28 uniform");
  histogram_job<1>(s, "256 bins i32 2^28 90% in one");
  histogram_job<2>(s, "256 bins i32 2^28 constant");
}

} // namespace

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
               named("w16 8192", [&] { sum_all<f32, 8192, 16>.launch(s.on, grid(ctas * 3 / 2), x, out, n); }),
               named("w32", [&] { sum_all<f32, 16384, 32>.launch(s.on, grid(ctas), x, out, n); }),
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
  histograms(s);
}

} // namespace kiln_bench
