// z = x + y: a kernel is a C++ lambda, a launch is a function call
// tour: --size 16777216
#include "support/lesson.hpp"

using namespace kiln;

// The lambda below is never called at run time. While the C++ compiler reads this file, kiln runs it once with symbolic
// values in place of x, y, z and n, and records each operation into a graph, which becomes a constant of the program. A
// kernel that breaks a rule does not compile. At the first launch LLVM turns the graph into machine code for the device.
//
// Every CTA of the launch executes the whole lambda for its own program_id, on tiles: `i` is Block numbers at once.
template <int Block>
inline constexpr auto add = kernel<"add", Block>([](context& k, ptr<const f32> x, ptr<const f32> y, ptr<f32> z, val<i64> n) {
  auto i  = k.program_id<i64>(0) * Block + k.arange<Block>();    // program_id and arange are i32 unless asked; i32 op i64 is i64
  auto in = i < n;                                               // the last CTA may reach beyond the end
  store(z + i, load(x + i, {.mask = in}) + load(y + i, {.mask = in}), {.mask = in});
});

int main(int argc, char** argv) {
  return lesson::guarded([&] {
    lesson::program p(argc, argv, "vector add", {{"size", "N", "elements"}});
    i64 const n = p.number("size", 1 << 22);
    auto const a = lesson::random_values<f32>(n, 1), b = lesson::random_values<f32>(n, 2);

    device dev = p.device();                 // device::best() is CUDA, else HIP, else this CPU
    buffer<f32> x(dev, a), y(dev, b);        // device memory, filled from any contiguous range
    buffer<f32> z(dev, n);
    double seconds = p.time([&] {
      add<1024>.launch(dev, grid(ceil_div(n, 1024)), x, y, z, n);
      dev.synchronize();
    });
    std::vector<f32> const sum = z.to_vector(); // waits

    double error = 0;
    for (std::size_t i = 0; i < sum.size(); ++i)
      error = std::max(error, lesson::difference(static_cast<double>(sum[i]), static_cast<double>(a[i] + b[i])));
    double const bytes = 3.0 * 4 * static_cast<double>(n);
    p.report(lesson::size_text({n}, dtype::f32), seconds, bytes, "GB/s", error, 0); // the same addition: not one bit may differ
    return p.finish();
  });
}
