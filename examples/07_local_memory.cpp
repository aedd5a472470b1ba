// transpose and permutation through local memory: buffers of a CTA, views, slices, scatter
// tour: --size 4096
#include "support/lesson.hpp"

using namespace kiln;

// y = x^T. A CTA stores one B x B tile to local memory and loads it back through a view with its axes exchanged: rows are read
// from x and rows are written to y, so both sides of the global memory see long runs. Nobody writes barriers here: kiln knows
// which bytes each local access touches, and puts a barrier where one thread reads what another wrote.
template <class T, int B>
inline constexpr auto transpose = kernel<"transpose", B>([](context& k, array<const T, 2> x, array<T, 2> y) {
  auto [m, n] = k.program_tile(x.shape(), tile_size<B, B>);
  auto t = k.alloc_shared<T, B, B>({.name = "t"});
  k.local_store(t, load(x.region(at(m, n), extent<B, B>)));
  store(y.region(at(n, m), extent<B, B>), k.local_load(k.local_trans(t)));
});

// Every row's N elements in bit-reversed order, as a fast Fourier transform wants them: element c goes to the place whose
// binary digits are those of c backwards. local_scatter writes each element to its own index along an axis. Loading the two
// halves as slices shows that a slice is a view of the same bytes.
template <int N>
inline constexpr auto bit_reverse = kernel<"bit_reverse", N>([](context& k, ptr<const f32> x, ptr<f32> y) {
  auto c = k.arange<N>();
  auto row = k.program_id<i64>(0) * N;
  auto reversed = k.var(c & 0);
  for (int bit = 1; bit < N; bit *= 2) reversed = reversed * 2 + where((c & bit) != 0, 1, c & 0); // unrolled while recording
  auto t = k.alloc_shared<f32, N>({.name = "t"});
  k.local_scatter(t, load(x + row + c), reversed);
  auto half = k.arange<N / 2>();
  store(y + row + half, k.local_load(k.local_slice<N / 2>(t, {0})));
  store(y + row + N / 2 + half, k.local_load(k.local_slice<N / 2>(t, {N / 2})));
});

int main(int argc, char** argv) {
  return lesson::guarded([&] {
    lesson::program p(argc, argv, "transpose", {{"size", "N", "columns of the matrix; it has 9 rows less"}});
    i64 const columns = p.number("size", 500, 10), rows = columns - 9; // not square, and no multiple of the tile
    device dev = p.device();
    auto const a = lesson::random_values<f32>(rows * columns, 1);
    buffer<f32> x(dev, a), y(dev, rows * columns);
    double seconds = p.time([&] {
      transpose<f32, 64>.launch(dev, grid(ceil_div(rows, 64) * ceil_div(columns, 64)), x.view(rows, columns), y.view(columns, rows));
      dev.synchronize();
    });
    auto got = y.to_vector();
    double wrong = 0;
    for (i64 r = 0; r < rows; ++r)
      for (i64 c = 0; c < columns; ++c) wrong += got[static_cast<std::size_t>(c * rows + r)] != a[static_cast<std::size_t>(r * columns + c)];
    double const bytes = 2.0 * 4 * static_cast<double>(rows * columns);
    p.report(lesson::size_text({rows, columns}, dtype::f32), seconds, bytes, "GB/s", wrong, 0);

    constexpr int n = 256;
    i64 const lines = rows * columns / n;
    y.fill(0);
    seconds = p.time([&] {
      bit_reverse<n>.launch(dev, grid(lines), x, y);
      dev.synchronize();
    });
    got = y.to_vector();
    wrong = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(lines * n); ++i) {
      std::size_t reversed = 0;
      for (std::size_t bit = 1; bit < n; bit *= 2) reversed = 2 * reversed + ((i & bit) != 0);
      wrong += got[i / n * n + reversed] != a[i];
    }
    p.say("bit reversal of each row of 256:");
    p.report(lesson::size_text({lines, n}, dtype::f32), seconds, 2.0 * 4 * static_cast<double>(lines * n), "GB/s", wrong, 0);
    return p.finish();
  });
}
