// layernorm of rows in one pass over memory: the row stays in registers
// tour: --rows 4096 --columns 4096
#include "support/lesson.hpp"

using namespace kiln;

// y = (x - mean) / sqrt(variance + eps) * weight + bias, per row. Columns is a template argument: the row is a tile, and a
// tile's extents are part of its type. A row may be shorter than the tile: the region masks what lies outside, and
// `inside` keeps those zeros out of the variance.
template <class T, int Columns>
inline constexpr auto layernorm = kernel<"layernorm", attributes{.num_warps = 8}, Columns>(
    [](context& k, array<const T, 2> x, array<const f32, 1> weight, array<const f32, 1> bias, array<T, 2> y, val<f32> eps) {
  auto row = k.program_id(0);
  auto columns = x.extent(1);
  auto inside = k.iota<1, 1, Columns>() < columns;
  auto v = cast<f32>(load(x.region(at(row, 0), extent<1, Columns>)));
  auto n = cast<f32>(columns);
  auto mean = reduce<sum>(v) / n;
  auto off = where(inside, v - mean, 0.f);
  auto scale = rsqrt(reduce<sum>(off * off) / n + eps);
  auto w = load(weight.region(at(0), extent<Columns>)), b = load(bias.region(at(0), extent<Columns>));
  store(y.region(at(row, 0), extent<1, Columns>), cast<T>(off * scale * w + b));
});

template <class T>
void run(lesson::program& p, i64 rows, i64 columns) {
  constexpr int most = 8192;
  if (columns > most) throw lesson::usage_error("--columns is at most " + std::to_string(most) + " here: a row is one tile");
  device dev = p.device();
  auto const a = lesson::random_values<T>(rows * columns, 1);
  auto const w = lesson::random_values<f32>(columns, 2), b = lesson::random_values<f32>(columns, 3);
  buffer<T> x(dev, a), y(dev, rows * columns);
  buffer<f32> weight(dev, w), bias(dev, b);
  auto launch = [&](auto const& kernel) {
    kernel.launch(dev, grid(rows), x.view(rows, columns), weight, bias, y.view(rows, columns), 1e-5f);
    dev.synchronize();
  };
  // The narrowest tile that holds a row.
  double seconds = p.time([&] { columns <= 1024 ? launch(layernorm<T, 1024>) : columns <= 4096 ? launch(layernorm<T, 4096>) : launch(layernorm<T, most>); });
  auto const got = y.to_vector();

  double error = 0;
  for (i64 r = 0; r < rows; ++r) {
    auto v = [&](i64 c) { return static_cast<double>(a[static_cast<std::size_t>(r * columns + c)]); };
    double mean = 0, variance = 0;
    for (i64 c = 0; c < columns; ++c) mean += v(c) / static_cast<double>(columns);
    for (i64 c = 0; c < columns; ++c) variance += (v(c) - mean) * (v(c) - mean) / static_cast<double>(columns);
    for (i64 c = 0; c < columns; ++c) {
      auto const i = static_cast<std::size_t>(c);
      double const want = (v(c) - mean) / std::sqrt(variance + 1e-5) * static_cast<double>(w[i]) + static_cast<double>(b[i]);
      error = std::max(error, lesson::difference(static_cast<double>(got[static_cast<std::size_t>(r * columns + c)]), want));
    }
  }
  double const bytes = 2.0 * sizeof(T) * static_cast<double>(rows * columns);
  p.report(lesson::size_text({rows, columns}, dtype_of<T>), seconds, bytes, "GB/s", error, 4 * lesson::rounding<T>() + 1e-5);
}

int main(int argc, char** argv) {
  return lesson::guarded([&] {
    lesson::program p(argc, argv, "layernorm", {{"rows", "N", "of the matrix"}, {"columns", "N", "of the matrix, at most 8192"}});
    i64 const rows = p.number("rows", 100, 1), columns = p.number("columns", 1000, 1);
    run<f32>(p, rows, columns);
    run<bf16>(p, rows, columns);
    return p.finish();
  });
}
