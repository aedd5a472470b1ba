// Rows by index: gather and scatter-add.
#include "harness.hpp"

#include <bit>
#include <type_traits>

namespace kiln_bench {

namespace {

template <class Index> buffer<Index> index_buffer(session& s, std::vector<i64> const& values) {
  std::vector<Index> v(values.begin(), values.end());
  return buffer<Index>(s.on, v);
}

constexpr i64 table_bytes = i64{1} << 30;

/// A CTA moves 16 KiB: two vectors of 16 bytes of each of 512 bytes' threads.
template <int Columns, class Index> void gather(session& s, double reach) {
  std::string const shape = "bf16 C=" + std::to_string(Columns) + (sizeof(Index) == 8 ? " i64" : " i32");
  if (!s.wants("gather", shape)) return;
  i64 const n = table_bytes / 2, rows = n / Columns;
  constexpr int warps = Columns >= 4096 ? 2 : 8;
  constexpr int piece = std::min(Columns, warps * 512), per_cta = warps * 512 / piece;
  auto const order = shuffled(std::countr_zero(static_cast<u64>(rows)));
  auto table = random_buffer<bf16>(s, n, 1);
  auto index = index_buffer<Index>(s, order);
  buffer<bf16> out(s.on, n);
  s.job({"gather", shape, 0, 2.0 * table_bytes, "TB/s", reach},
        [&] { gather_rows<bf16, Index, Columns, per_cta, piece, warps>.launch(s.on, grid(Columns / piece * (rows / per_cta)), table, index, out); },
        [&] {
          double wrong = 0;
          for (i64 r = 0; r < rows; r += rows / 50 + 1) {
            auto const got = window(s, out, r * Columns, Columns),
                       want = window(s, table, order[static_cast<std::size_t>(r)] * Columns, Columns);
            for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != want[i];
          }
          return wrong * 2;
        });
}

/// How many warps a CTA has, and how many vectors of 16 bytes each of its threads moves.
template <int Warps, int Vectors> struct cta_of {};

/// `target_rows` 0: as many as the source has, each hit once; bytes are those of the source, and of the target read and
/// written. Otherwise a small target that stays in L2, and source bytes alone.
template <class T, int Columns> void scatter(session& s, i64 target_rows, double reach) {
  std::string const shape = std::string(name_of(dtype_of<T>)) + " C=" + std::to_string(Columns) + (target_rows ? " 16 MiB target" : "");
  if (!s.wants("scatter-add", shape)) return;
  constexpr i64 size = sizeof(T);
  i64 const n = table_bytes / size, rows = n / Columns, targets = target_rows ? target_rows : rows;
  auto order = shuffled(std::countr_zero(static_cast<u64>(rows)));
  for (i64& i : order) i %= targets;
  auto source = random_buffer<T>(s, n, 1);
  auto index = index_buffer<i64>(s, order);
  buffer<T> target(s.on, targets * Columns);
  target.fill(T{});
  double const bytes = static_cast<double>(table_bytes) * (target_rows ? 1 : 3);
  std::function<void()> last; // what is checked
  auto const way = [&]<int Warps, int Vectors, bool Cold>(cta_of<Warps, Vectors>, std::bool_constant<Cold>) -> std::function<void()> {
    constexpr int elements = Warps * 32 * (16 / static_cast<int>(size)) * Vectors, piece = std::min(Columns, elements), per_cta = elements / piece;
    std::function<void()> const run = [&, ctas = grid(Columns / piece * (rows / per_cta))] {
      scatter_add_rows<T, i64, Columns, per_cta, piece, Warps, Cold>.launch(s.on, ctas, source, index, target);
    };
    return [&last, run] { (last = run)(); };
  };
  std::vector<candidate> all{{"plain", way(cta_of<8, 2>{}, std::false_type{})}};
  if (target_rows == 0) all.push_back({"prefetch", way(cta_of<8, 2>{}, std::true_type{})});
  if constexpr (Columns * size == 128) { // short rows care
    all.push_back({"4 warps", way(cta_of<4, 2>{}, std::true_type{})}), all.push_back({"16 warps", way(cta_of<16, 2>{}, std::true_type{})});
    all.push_back({"1 vector", way(cta_of<8, 1>{}, std::true_type{})}), all.push_back({"4 vectors", way(cta_of<8, 4>{}, std::true_type{})});
    all.push_back({"4 warps of 4", way(cta_of<4, 4>{}, std::true_type{})}), all.push_back({"2 warps of 4", way(cta_of<2, 4>{}, std::true_type{})});
    all.push_back({"2 warps of 8", way(cta_of<2, 8>{}, std::true_type{})}), all.push_back({"4 warps of 8", way(cta_of<4, 8>{}, std::true_type{})});
  }
  s.best_of({"scatter-add", shape, 0, bytes, "TB/s", reach}, all, [&] {
    target.fill(T{});
    last();
    if (target_rows) { // every target row gets as many source rows: compare one column of some rows by their sums
      std::vector<double> want(static_cast<std::size_t>(Columns)), size_of_sum(want.size());
      i64 const probe = 7;
      for (i64 r = 0; r < rows; ++r)
        if (order[static_cast<std::size_t>(r)] == probe) {
          auto const in = window(s, source, r * Columns, Columns);
          for (std::size_t c = 0; c < in.size(); ++c) want[c] += in[c], size_of_sum[c] += std::fabs(in[c]);
        }
      auto const got = window(s, target, probe * Columns, Columns);
      double worst = 0; // each addition rounds to the element type
      for (std::size_t c = 0; c < got.size(); ++c)
        worst = std::max(worst, std::fabs(got[c] - want[c]) / (size_of_sum[c] * (sizeof(T) == 2 ? 0.3 : 1e-4) + 1e-3));
      return worst;
    }
    double wrong = 0;
    for (i64 r = 0; r < rows; r += rows / 50 + 1) {
      auto const in = window(s, source, r * Columns, Columns), got = window(s, target, order[static_cast<std::size_t>(r)] * Columns, Columns);
      for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != in[i];
    }
    return wrong * 2;
  });
}

} // namespace

void index_jobs(session& s) {
  gather<64, i64>(s, 3.80), gather<64, i32>(s, 3.80);
  gather<128, i64>(s, 4.01), gather<128, i32>(s, 4.01);
  gather<512, i64>(s, 4.06), gather<512, i32>(s, 4.06);
  gather<4096, i64>(s, 4.05), gather<4096, i32>(s, 4.05);
  scatter<bf16, 64>(s, 0, 3.60), scatter<bf16, 128>(s, 0, 3.93), scatter<bf16, 512>(s, 0, 3.93);
  scatter<f32, 64>(s, 0, 3.60), scatter<f32, 128>(s, 0, 3.93), scatter<f32, 512>(s, 0, 3.93);
  constexpr i64 small = i64{16} << 20;
  scatter<bf16, 128>(s, small / 256, 2.10), scatter<f32, 128>(s, small / 512, 2.10);
}

} // namespace kiln_bench
