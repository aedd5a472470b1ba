// softmax over long rows: a var, a loop that is a C++ loop, and your own .npy file
// tour: --rows 1024 --columns 4096
#include "support/lesson.hpp"

using namespace kiln;

// One CTA per row; the row is read in pieces of Block elements, so its length is a run-time number. `top` and `sum_e` are
// vars: cells that live across iterations. (A value cannot be reassigned; the compile error says so.)
//
// Pass 1 keeps the largest element so far, and the sum of exp(v - top) rescaled whenever a larger one appears. Pass 2 writes.
// Source: Milakov, Gimelshein, "Online normalizer calculation for softmax", 2018.
template <class T, int Block>
inline constexpr auto softmax_long = kernel<"softmax_long", attributes{.num_warps = 8}, Block>([](context& k, array<const T, 2> x, array<T, 2> y) {
  auto row = k.program_id(0);
  auto top = k.var(k.full<f32>(-inf)), sum_e = k.var(k.full<f32>(0));
  for (auto c : k.range(0, x.extent(1), Block)) {                 // the body is recorded once
    auto v = cast<f32>(load(x.region(at(row, c), extent<1, Block>), {.other = -inf}));
    auto m = max(top, reduce<max>(v));
    sum_e = sum_e * exp(top - m) + reduce<sum>(exp(v - m));
    top = m;
  }
  for (auto c : k.range(0, x.extent(1), Block)) {
    auto v = cast<f32>(load(x.region(at(row, c), extent<1, Block>)));
    store(y.region(at(row, c), extent<1, Block>), cast<T>(exp(v - top) / sum_e));
  }
});

template <class T>
void run(lesson::program& p, npy_array const& in) {
  device dev = p.device();
  i64 const rows = in.shape()[0], columns = in.shape()[1];
  buffer<T> x = lesson::upload<T>(in, dev), y(dev, rows * columns);
  double seconds = p.time([&] {
    softmax_long<T, 1024>.launch(dev, grid(rows), lesson::matrix(x, in), y.view(rows, columns));
    dev.synchronize();
  });
  std::vector<T> const got = y.to_vector();

  double error = 0;
  for (i64 r = 0; r < rows; ++r) {
    double top = -INFINITY, sum_e = 0;
    for (i64 c = 0; c < columns; ++c) top = std::fmax(top, lesson::at<T>(in, r, c));
    for (i64 c = 0; c < columns; ++c) sum_e += std::exp(lesson::at<T>(in, r, c) - top);
    for (i64 c = 0; c < columns; ++c)
      error = std::max(error, lesson::difference(static_cast<double>(got[static_cast<std::size_t>(r * columns + c)]),
                                                 std::exp(lesson::at<T>(in, r, c) - top) / sum_e));
  }
  double const bytes = 2.0 * sizeof(T) * static_cast<double>(rows * columns);
  double const bound = lesson::rounding<T>() + 4e-6;
  if (auto out = p.text("out"); out && error <= bound) {
    write_npy(*out, got, {rows, columns});
    p.say("wrote " + *out);
  }
  p.report(lesson::size_text({rows, columns}, dtype_of<T>), seconds, bytes, "GB/s", error, bound);
}

int main(int argc, char** argv) {
  return lesson::guarded([&] {
    lesson::program p(argc, argv, "softmax",
                      {{"in", "X.npy", "a matrix of f16, bf16 (saved as u16) or f32; without it, random numbers"},
                       {"out", "Y.npy", "where the softmax of each row goes"},
                       {"rows", "N", "of the random matrix"},
                       {"columns", "N", "of the random matrix"}});
    if (p.has("in")) {
      p.only_without_files({"rows", "columns"});
      std::string const file = p.need("in");
      npy_array const x = lesson::read(file, 2);
      lesson::by_float(file, x.type(), [&]<class T>(T) { run<T>(p, x); });
      return p.finish();
    }
    npy_array x(dtype::u16, {p.number("rows", 256), p.number("columns", 5000)}, false);
    auto const values = lesson::random_values<bf16>(x.size(), 3);
    std::copy(values.begin(), values.end(), reinterpret_cast<bf16*>(x.data()));
    run<bf16>(p, x);
    return p.finish();
  });
}
