// For gpu_lines.py: a kernel whose lines the tools are to name. `fault` makes it write where no memory is.
#include <kiln/kiln.hpp>

#include <cstdio>
#include <string_view>
#include <vector>

using namespace kiln;

namespace {

inline constexpr auto scale = kernel<"scale_rows">([](context& k, ptr<const f32> x, ptr<f32> y, val<i64> away) {
  auto i = k.program_id<i64>(0) * 1024 + k.arange<1024>();
  auto v = load(x + i);
  auto root = sqrt(v * v + 1.f);
  store(y + (i + away), v / root); // the line of the store
});

} // namespace

int main(int argc, char** argv) {
  bool const fault = argc > 1 && std::string_view(argv[1]) == "fault";
  for (device const& d : device::all()) {
    if (d.kind() != device_kind::cuda) continue;
    try {
      stream const s = stream::create(d);
      buffer<f32> x(s, 1 << 20), y(s, 1 << 20);
      x.fill(3);
      scale.launch(s, grid(1024), x, y, fault ? i64{1} << 42 : i64{0});
      s.synchronize();
      std::puts("ran to its end");
    } catch (error const& e) { std::printf("error: %s\n", e.what()); }
    return 0;
  }
  std::puts("no CUDA device here");
  return 77;
}
