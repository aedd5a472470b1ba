// Softmax and normalisations of rows, scans and searches along them.
#include "harness.hpp"

#include <algorithm>

namespace kiln_bench {

namespace {

constexpr double one_rounding = 1.02 / 256; // of bf16, and something for f32

/// The largest difference of some rows from `want`, in parts of one rounding and `floor`, which covers what cancels.
template <class T, class Want>
double rows_error(session& s, buffer<T>& x, buffer<T>& y, i64 rows, i64 columns, double floor, Want want) {
  double worst = 0;
  for (i64 r : {i64{0}, rows / 3, rows - 1}) {
    auto const in = window(s, x, r * columns, columns), got = window(s, y, r * columns, columns);
    std::vector<double> const right = want(in);
    for (std::size_t i = 0; i < got.size(); ++i) {
      double const e = std::fabs(got[i] - right[i]) / (one_rounding * std::fabs(right[i]) + floor);
      worst = e <= worst ? worst : e; // NaN stays
    }
  }
  return worst;
}

std::vector<double> softmax_of(std::vector<double> const& x) {
  double const top = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double v : x) sum += std::exp(v - top);
  std::vector<double> r;
  for (double v : x) r.push_back(std::exp(v - top) / sum);
  return r;
}
std::vector<double> rmsnorm_of(std::vector<double> const& x, std::vector<double> const& w) {
  double sum = 0;
  for (double v : x) sum += v * v;
  std::vector<double> r;
  for (std::size_t i = 0; i < x.size(); ++i)
    r.push_back(x[i] / std::sqrt(sum / static_cast<double>(x.size()) + 1e-5) * w[i]);
  return r;
}
std::vector<double> layernorm_of(std::vector<double> const& x, std::vector<double> const& w, std::vector<double> const& b) {
  double mean = 0, variance = 0;
  for (double v : x) mean += v / static_cast<double>(x.size());
  for (double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
  std::vector<double> r;
  for (std::size_t i = 0; i < x.size(); ++i) r.push_back((x[i] - mean) / std::sqrt(variance + 1e-5) * w[i] + b[i]);
  return r;
}

template <class T, int Columns>
inline constexpr auto ascending = kernel<"ascending", Columns>([](context& k, ptr<T> x) {
  store(x + (k.program_id<i64>(0) * Columns + k.arange<Columns>()), cast<T>(cast<f32>(k.arange<Columns>())));
});

/// Several rows a CTA: how many, and by how many warps.
template <int Rows, int Warps> struct block {};

/// Like Triton's side, each with several numbers of warps, of which the best counts.
template <int Columns, int... Warps, int... Rows, int... RowWarps>
void one_width(session& s, i64 rows, double softmax_reach, double norm_reach, block<Rows, RowWarps>...) {
  std::string const shape = "bf16 " + std::to_string(rows) + "x" + std::to_string(Columns);
  if (!s.wants("softmax", shape) && !s.wants("rmsnorm", shape) && !s.wants("layernorm", shape)) return;
  i64 const n = rows * Columns;
  auto x = random_buffer<bf16>(s, n, 1), w = random_buffer<bf16>(s, Columns, 2), b = random_buffer<bf16>(s, Columns, 3);
  buffer<bf16> y(s.on, n);
  auto const weight = window(s, w, 0, Columns), bias = window(s, b, 0, Columns);
  double const bytes = 4.0 * static_cast<double>(n);
  auto const named = [](char const* what, int warps) { return what + std::to_string(warps); };
  [[maybe_unused]] auto const block_name = [](int r, int warps) { return std::to_string(r) + " rows w" + std::to_string(warps); };
  if (s.wants("softmax", shape))
    s.best_of({"softmax", shape, 0, bytes, "TB/s", softmax_reach},
              {{named("w", Warps), [&] { softmax<bf16, Columns, Warps>.launch(s.on, grid(rows), x, y); }}...,
               {named("twice w", Warps), [&] { softmax_twice<bf16, Columns, Warps>.launch(s.on, grid(rows), x, y); }}...,
               {block_name(Rows, RowWarps), [&] { softmax_rows<bf16, Columns, Rows, RowWarps>.launch(s.on, grid(rows / Rows), x, y); }}...},
              [&] { return rows_error(s, x, y, rows, Columns, 1e-9, softmax_of); });
  if (s.wants("rmsnorm", shape))
    s.best_of({"rmsnorm", shape, 0, bytes, "TB/s", norm_reach},
              {{named("w", Warps), [&] { rmsnorm<bf16, Columns, Warps>.launch(s.on, grid(rows), x, w, y, 1e-5f); }}...,
               {block_name(Rows, RowWarps), [&] { rmsnorm_rows<bf16, Columns, Rows, RowWarps>.launch(s.on, grid(rows / Rows), x, w, y, 1e-5f); }}...},
              [&] { return rows_error(s, x, y, rows, Columns, 1e-6, [&](auto const& v) { return rmsnorm_of(v, weight); }); });
  if (s.wants("layernorm", shape))
    s.best_of({"layernorm", shape, 0, bytes, "TB/s", norm_reach},
              {{named("w", Warps), [&] { layernorm<bf16, Columns, Warps>.launch(s.on, grid(rows), x, w, b, y, 1e-5f); }}...,
               {named("ahead w", Warps), [&] { layernorm_ahead<bf16, Columns, Warps>.launch(s.on, grid(rows), x, w, b, y, 1e-5f); }}...,
               {block_name(Rows, RowWarps), [&] { layernorm_rows<bf16, Columns, Rows, RowWarps>.launch(s.on, grid(rows / Rows), x, w, b, y, 1e-5f); }}...,
               {"ahead " + block_name(Rows, RowWarps), [&] { layernorm_rows_ahead<bf16, Columns, Rows, RowWarps>.launch(s.on, grid(rows / Rows), x, w, b, y, 1e-5f); }}...},
              [&] { return rows_error(s, x, y, rows, Columns, 1e-5, [&](auto const& v) { return layernorm_of(v, weight, bias); }); });
}

} // namespace

void row_jobs(session& s) {
  one_width<1024, 1, 2, 4>(s, 32768, 3.63, 3.62, block<2, 1>{}, block<2, 2>{}, block<2, 4>{}, block<4, 2>{}, block<4, 4>{});
  one_width<4096, 2, 4, 8>(s, 16384, 3.80, 3.82, block<2, 4>{}, block<2, 8>{}, block<2, 16>{});
  one_width<8192, 2, 4, 8>(s, 8192, 3.84, 3.80, block<2, 8>{}, block<2, 16>{});
  one_width<32768, 8, 16, 32>(s, 4096, 3.90, 3.90);

  constexpr i64 side = 16384;
  if (s.wants("row cumsum", "f32 16384x16384")) {
    auto x = random_buffer<f32>(s, side * side, 1);
    buffer<f32> y(s.on, side * side);
    s.best_of({"row cumsum", "f32 16384x16384", 0, 8.0 * side * side, "TB/s", 4.08},
          {{"w8", [&] { row_cumsum<f32, 16384, 8>.launch(s.on, grid(side), x, y); }},
           {"w16", [&] { row_cumsum<f32, 16384, 16>.launch(s.on, grid(side), x, y); }}},
          [&] {
            double worst = 0;
            for (i64 r : {i64{0}, side / 3, side - 1}) {
              auto const in = window(s, x, r * side, side), got = window(s, y, r * side, side);
              double sum = 0, size = 0;
              for (std::size_t i = 0; i < in.size(); ++i) {
                sum += in[i], size += std::fabs(in[i]);
                double const e = std::fabs(got[i] - sum) / (size * 1e-5 + 1e-6);
                worst = e <= worst ? worst : e;
              }
            }
            return worst;
          });
  }
  if (s.wants("argmax", "bf16 8192x32768")) {
    constexpr i64 rows = 8192, columns = 32768;
    auto x = random_buffer<bf16>(s, rows * columns, 1);
    buffer<i32> index(s.on, rows);
    s.best_of({"argmax", "bf16 8192x32768", 0, 2.0 * rows * columns, "TB/s", 4.15},
          {{"w16", [&] { argmax_rows<bf16, columns, 16>.launch(s.on, grid(rows), x, index); }},
           {"w32", [&] { argmax_rows<bf16, columns, 32>.launch(s.on, grid(rows), x, index); }}},
          [&] {
            auto const got = index.to_vector();
            double wrong = 0;
            for (i64 r : {i64{0}, rows / 3, rows - 1}) {
              auto const in = window(s, x, r * columns, columns);
              wrong += got[static_cast<std::size_t>(r)] != std::max_element(in.begin(), in.end()) - in.begin();
            }
            return wrong * 2;
          });
  }
  if (s.wants("top-8", "bf16 8192x32768")) {
    constexpr i64 rows = 8192, columns = 32768;
    auto x = random_buffer<bf16>(s, rows * columns, 1);
    buffer<bf16> best(s.on, rows * 8);
    buffer<i32> index(s.on, rows * 8);
    auto const measure = [&](std::string const& shape, double reach, std::vector<candidate> const& all) {
      s.best_of({"top-8", shape, 0, 2.0 * rows * columns, "TB/s", reach}, all,
          [&] {
            auto const got = index.to_vector();
            auto const values = best.to_vector();
            double wrong = 0;
            for (i64 r : {i64{0}, i64{1}, rows / 3, rows - 1}) {
              auto const in = window(s, x, r * columns, columns);
              std::vector<i32> order(in.size());
              for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<i32>(i);
              auto const at = [&](i32 i) { return in[static_cast<std::size_t>(i)]; };
              std::partial_sort(order.begin(), order.begin() + 8, order.end(),
                                [&](i32 a, i32 b) { return at(a) > at(b) || (at(a) == at(b) && a < b); });
              for (std::size_t i = 0; i < 8; ++i)
                wrong += got[static_cast<std::size_t>(r) * 8 + i] != order[i] ||
                         static_cast<double>(values[static_cast<std::size_t>(r) * 8 + i]) != at(order[i]);
            }
            return wrong * 2;
          });
    };
    candidate const w8{"w8", [&] { topk_rows<bf16, columns, 8, 8>.launch(s.on, grid(rows), x, best, index); }},
        w16{"w16", [&] { topk_rows<bf16, columns, 8, 16>.launch(s.on, grid(rows), x, best, index); }},
        w32{"w32", [&] { topk_rows<bf16, columns, 8, 32>.launch(s.on, grid(rows), x, best, index); }};
    measure("bf16 8192x32768", 4.05, {w8, w16, w32});
    // Rows of which too many elements are as good as the first bound.
    x.fill(bf16(1.f));
    measure("bf16 8192x32768 equal", 0, {w16});
    ascending<bf16, columns>.launch(s.on, grid(rows), x);
    measure("bf16 8192x32768 in order", 0, {w16});
  }
}

} // namespace kiln_bench
