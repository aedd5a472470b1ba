// one recorded kernel, several machine codes: facts, constant(n), generic(n)
#include "support/lesson.hpp"

#include <cstdlib>

using namespace kiln;

// y[r, c] = x[r, c] * scale for the first `columns` columns. An `array` parameter brings pointer, extents and strides in one argument; a region is a box of
// it that starts anywhere and never leaves the array: what lies outside is not read or written, so there is no mask to
// forget.
inline constexpr auto scale_rows = kernel<"scale_rows">([](context& k, array<const f32, 2> x, array<f32, 2> y, val<i32> columns, val<f32> scale) {
  auto row = k.program_id(0);
  for (auto c : k.range(0, columns, 256)) // recorded once; a loop in the machine code
    store(y.region(at(row, c), extent<1, 256>), load(x.region(at(row, c), extent<1, 256>)) * scale,
          {.mask = c + k.iota<1, 1, 256>() < columns});
});

int main(int argc, char** argv) {
  return lesson::guarded([&] {
    lesson::program p(argc, argv, "shapes", {{"size", "N", "rows and columns of the largest matrix"}});
    i64 const n = p.number("size", 1024, 64) / 64 * 64;
    device dev = p.device();

    // A launch looks at its arguments and tells the compiler facts of them: which pointers are 16-byte aligned, which
    // integers are 1 or divisible by 16. New facts mean new code; other values with the same facts do not. kiln logs it:
    if (!p.brief()) setenv("KILN_LOG", "compile", 0);
    auto const a = lesson::random_values<f32>(n * n, 1);
    buffer<f32> x(dev, a), y(dev, n * n);
    // Scales the first `used` columns; `width` is that number as the kernel gets it.
    auto run = [&](i64 rows, i64 columns, i64 used, auto width) {
      y.fill(0);
      double seconds = p.time([&] {
        scale_rows.launch(dev, grid(rows), x.view(rows, columns), y.view(rows, columns), width, 2.f);
        dev.synchronize();
      });
      std::vector<f32> const got = y.to_vector();
      double error = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        i64 const row = static_cast<i64>(i) / columns, column = static_cast<i64>(i) % columns;
        double const want = row < rows && column < used ? 2.0 * static_cast<double>(a[i]) : 0.0;
        error = std::max(error, lesson::difference(static_cast<double>(got[i]), want));
      }
      double const bytes = 2.0 * 4 * static_cast<double>(rows * used);
      p.report(lesson::size_text({rows, used}, dtype::f32), seconds, bytes, "GB/s", error, 0);
    };

    p.say("The first launch compiles:");
    run(n, n, n, n);
    p.say("Another size, also divisible by 16: the same code, nothing is compiled.");
    run(n / 2, n / 2, n / 2, n / 2);
    p.say("An odd size: rows are no longer aligned, so there is a second variant.");
    run(n - 1, n - 1, n - 1, n - 1);
    p.say("constant(n): this width gets code of its own, in which the loop's bound is a number.");
    run(n, n, n, constant(n));
    p.say("generic(n): one code for whatever comes; two widths, one compile.");
    for (i64 width : {n - 2, n - 16}) run(n, n, width, generic(width));
    return p.finish();
  });
}
