// c = a b in five lines, for your own matrices of f16, bf16 and f32 in C or Fortran order
// tour: --size 1024
#include "support/lesson.hpp"

using namespace kiln;

// Tiles of a and b are loaded where k.dot needs them; how they travel through registers, shared memory or the caches of a
// CPU is the compiler's business. Sums are f32. Strides are run-time numbers, so a Fortran-order file needs no copy.
template <class T, int BM, int BN, int BK>
inline constexpr auto matmul = kernel<"matmul", attributes{.num_warps = 8}, BM, BN, BK>([](context& k, array<const T, 2> a, array<const T, 2> b, array<T, 2> c) {
  auto [m, n] = k.program_tile(c.shape(), tile_size<BM, BN>, {.group = 8});
  auto acc = k.var(k.zeros<f32, BM, BN>());
  for (auto i : k.range(0, a.extent(1), BK))
    acc = k.dot(load(a.region(at(m, i), extent<BM, BK>)), load(b.region(at(i, n), extent<BK, BN>)), acc);
  store(c.region(at(m, n), extent<BM, BN>), cast<T>(acc));
});

// Whether infinity or NaN may stand at (r, j): the sum is no finite T, or what is added up on the way is no finite f32.
template <class T>
bool leaves_range(npy_array const& a, npy_array const& b, i64 r, i64 j, double want) {
  double size = 0;
  for (i64 q = 0; q < a.shape()[1]; ++q) size += std::abs(lesson::at<T>(a, r, q) * lesson::at<T>(b, q, j));
  return std::abs(want) >= lesson::largest_finite<T>() * (1 - lesson::rounding<T>()) || size >= lesson::largest_finite<f32>();
}

// The largest error over rows of the result that are spread evenly: all of them while that is cheap.
template <class T>
double largest_error(npy_array const& a, npy_array const& b, std::vector<T> const& c, double& largest) {
  i64 const rows = a.shape()[0], inner = a.shape()[1], columns = b.shape()[1];
  i64 const affordable = std::max<i64>(1, 200'000'000 / std::max<i64>(1, inner * columns));
  i64 const step = std::max<i64>(1, rows / affordable);
  double error = 0;
  std::vector<double> row(static_cast<std::size_t>(columns));
  for (i64 r = 0; r < rows; r += step) {
    std::ranges::fill(row, 0.0);
    for (i64 q = 0; q < inner; ++q) {
      double const x = lesson::at<T>(a, r, q);
      for (i64 j = 0; j < columns; ++j) row[static_cast<std::size_t>(j)] += x * lesson::at<T>(b, q, j);
    }
    for (i64 j = 0; j < columns; ++j) {
      double const want = row[static_cast<std::size_t>(j)], got = static_cast<double>(c[static_cast<std::size_t>(r * columns + j)]);
      if (!std::isfinite(got) && std::isfinite(want) && leaves_range<T>(a, b, r, j, want)) continue;
      error = std::max(error, lesson::difference(got, want));
      if (std::abs(want) <= lesson::largest_finite<T>()) largest = std::max(largest, std::abs(want));
    }
  }
  return error;
}

template <class T>
void run(lesson::program& p, npy_array const& a, npy_array const& b) {
  i64 const rows = a.shape()[0], inner = a.shape()[1], columns = b.shape()[1];
  device dev = p.device();
  buffer<T> x = lesson::upload<T>(a, dev), y = lesson::upload<T>(b, dev), z(dev, rows * columns);
  constexpr int tile = 64;
  double seconds = p.time([&] {
    matmul<T, tile, tile, 32>.launch(dev, grid(ceil_div(rows, tile) * ceil_div(columns, tile)), lesson::matrix(x, a),
                                     lesson::matrix(y, b), z.view(rows, columns));
    dev.synchronize();
  });
  std::vector<T> const got = z.to_vector();

  double largest = 0;
  double const error = largest_error(a, b, got, largest);
  // One rounding of the result, and of each f32 addition on the way.
  double const bound = largest * lesson::rounding<T>() + 6e-8 * static_cast<double>(inner) * std::max(1.0, largest);
  double const flops = 2.0 * static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(columns);
  if (auto out = p.text("out"); out && error <= bound) {
    write_npy(*out, got, {rows, columns});
    p.say("wrote " + *out);
  }
  p.report(lesson::size_text({rows, inner, columns}, dtype_of<T>), seconds, flops, "GFLOP/s", error, bound);
}

int main(int argc, char** argv) {
  return lesson::guarded([&] {
    lesson::program p(argc, argv, "matmul",
                      {{"a", "A.npy", "a matrix of f16, bf16 (saved as u16) or f32"},
                       {"b", "B.npy", "a matrix of the same type with as many rows as a has columns"},
                       {"out", "C.npy", "where the product goes"},
                       {"size", "N", "without a and b: two random N x N matrices of f32"}});
    if (p.has("a") || p.has("b")) {
      p.only_without_files({"size"});
      std::string const a_file = p.need("a"), b_file = p.need("b");
      npy_array const a = lesson::read(a_file, 2), b = lesson::read(b_file, 2);
      if (a.type() != b.type())
        throw lesson::usage_error(b_file + ": holds " + name_of(b.type()) + ", but " + a_file + " holds " + name_of(a.type()));
      if (a.shape()[1] != b.shape()[0])
        throw lesson::usage_error(b_file + ": has " + std::to_string(b.shape()[0]) + " rows, but " + a_file + " has " +
                                  std::to_string(a.shape()[1]) + " columns");
      lesson::by_float(a_file, a.type(), [&]<class T>(T) { run<T>(p, a, b); });
      return p.finish();
    }
    i64 const n = p.number("size", 512, 1);
    npy_array a(dtype::f32, {n, n}, false), b(dtype::f32, {n, n}, false);
    std::ranges::copy(lesson::random_values<f32>(n * n, 1), a.as<f32>().begin());
    std::ranges::copy(lesson::random_values<f32>(n * n, 2), b.as<f32>().begin());
    run<f32>(p, a, b);
    return p.finish();
  });
}
