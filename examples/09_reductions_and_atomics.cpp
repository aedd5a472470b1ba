// a histogram by atomic adds, argmax of rows, and a combine of your own
// tour: --size 4194304
#include "support/lesson.hpp"

using namespace kiln;

// How many numbers fall into each of 64 equal parts of [-1, 1]. Several elements of a tile may hit one counter, and so may
// several CTAs: atomic_add makes each addition whole. Integer sums do not depend on their order.
template <int Block>
inline constexpr auto counts_of_bins = kernel<"histogram", Block>([](context& k, ptr<const f32> x, ptr<i32> counts, val<i64> n) {
  auto i = k.program_id<i64>(0) * Block + k.arange<Block>();
  auto in = i < n;
  auto part = cast<i32>((load(x + i, {.mask = in}) + 1.f) * 32.f);
  atomic_add(counts + min(max(part, 0), 63), 1, {.mask = in});
});

// The index of each row's largest element: the first one, where several are equal.
template <int Columns>
inline constexpr auto largest_of_rows = kernel<"largest_of_rows", Columns>([](context& k, array<const f32, 2> x, ptr<i32> index) {
  auto row = k.program_id(0);
  auto v = load(x.region(at(row, 0), extent<1, Columns>), {.other = -inf});
  store(index + row + k.arange<1>(), argmax<1>(v));
});

// log(sum(exp(x))) of each row. The combine merges two partial results (m, s), which stand for s * exp(m): an associative
// lambda of two pairs. kiln runs it over registers, lanes and warps.
template <int Columns>
inline constexpr auto log_sum_exp = kernel<"log_sum_exp", Columns>([](context& k, array<const f32, 2> x, ptr<f32> out) {
  auto row = k.program_id(0);
  auto v = load(x.region(at(row, 0), extent<1, Columns>), {.other = -1e30f});
  auto [m, s] = reduce<1>(v, exp(v - v), [](auto m0, auto s0, auto m1, auto s1) {
    auto top = max(m0, m1);
    return pair_of(top, s0 * exp(m0 - top) + s1 * exp(m1 - top));
  });
  store(out + row + k.arange<1>(), m + log(s));
});

int main(int argc, char** argv) {
  return lesson::guarded([&] {
    lesson::program p(argc, argv, "histogram", {{"size", "N", "numbers"}});
    i64 const n = p.number("size", 100'000, 1000);
    device dev = p.device();
    auto const a = lesson::random_values<f32>(n, 1);
    buffer<f32> x(dev, a);
    buffer<i32> counts(dev, 64);
    i64 runs = 0;
    counts.fill(0);
    double seconds = p.time([&] {
      counts_of_bins<1024>.launch(dev, grid(ceil_div(n, 1024)), x, counts, n);
      dev.synchronize();
      ++runs;
    });
    std::vector<i64> want(64);
    for (f32 v : a) ++want[std::min<std::size_t>(static_cast<std::size_t>((v + 1.f) * 32.f), 63)]; // 1 itself counts as the last part
    std::vector<i32> const got = counts.to_vector();
    double wrong = 0;
    for (std::size_t i = 0; i < 64; ++i) wrong += got[i] != static_cast<i32>(want[i] * runs);
    p.report(lesson::size_text({n}, dtype::f32), seconds, 4.0 * static_cast<double>(n), "GB/s", wrong, 0);

    i64 const columns = 200, rows = n / columns;
    buffer<i32> index(dev, rows);
    seconds = p.time([&] {
      largest_of_rows<256>.launch(dev, grid(rows), x.view(rows, columns), index);
      dev.synchronize();
    });
    std::vector<i32> const first = index.to_vector();
    wrong = 0;
    for (i64 r = 0; r < rows; ++r) {
      auto const* row = a.data() + r * columns;
      wrong += first[static_cast<std::size_t>(r)] != std::max_element(row, row + columns) - row;
    }
    p.say("argmax of rows of 200:");
    p.report(lesson::size_text({rows, columns}, dtype::f32), seconds, 4.0 * static_cast<double>(rows * columns), "GB/s", wrong, 0);

    buffer<f32> logs(dev, rows);
    seconds = p.time([&] {
      log_sum_exp<256>.launch(dev, grid(rows), x.view(rows, columns), logs);
      dev.synchronize();
    });
    std::vector<f32> const sums = logs.to_vector();
    double error = 0;
    for (i64 r = 0; r < rows; ++r) {
      double s = 0;
      for (i64 c = 0; c < columns; ++c) s += std::exp(static_cast<double>(a[static_cast<std::size_t>(r * columns + c)]));
      error = std::max(error, lesson::difference(static_cast<double>(sums[static_cast<std::size_t>(r)]), std::log(s)));
    }
    p.say("log(sum(exp)) of the same rows, by a combine of pairs:");
    p.report(lesson::size_text({rows, columns}, dtype::f32), seconds, 4.0 * static_cast<double>(rows * columns), "GB/s", error, 1e-5);
    return p.finish();
  });
}
