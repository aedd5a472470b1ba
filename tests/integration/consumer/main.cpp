// Uses the installed headers and library: version, a recorded kernel, launches, device memory, files, errors across the
// library's border.
#include <cstdio>
#include <string>
#include <vector>

#include <kiln/graph/text.hpp>
#include <kiln/io/npy.hpp>
#include <kiln/version.hpp>

#include "kernels.hpp"

std::string text_of_the_other_unit();
void launch_in_the_other_unit(kiln::buffer<kiln::f32>& x, kiln::buffer<kiln::f32>& z);

int main() {
  auto fail = [](char const* what) {
    std::printf("failed: %s\n", what);
    return 1;
  };
  if (std::string(kiln::version()) != "0.1.0") return fail("version");
  if (kiln::print(consumer::add<64>.graph()) != text_of_the_other_unit())
    return fail("the two units recorded different graphs");

  std::vector<kiln::f32> values{1, 2, 3};
  kiln::buffer<kiln::f32> x(kiln::device::host(), values);
  if (x.to_vector() != values) return fail("buffer");

  // One kernel, launched from units that may come from different compilers.
  kiln::buffer<kiln::f32> z(kiln::device::host(), 3);
  consumer::add<64>.launch(kiln::device::host(), kiln::grid(1), x, x, z, 3);
  if (z.to_vector() != std::vector<kiln::f32>{2, 4, 6}) return fail("launch");
  launch_in_the_other_unit(z, x);
  if (x.to_vector() != std::vector<kiln::f32>{4, 8, 12}) return fail("launch in the other unit");

  kiln::write_npy("x.npy", x.to_vector(), {3});
  if (kiln::read_npy("x.npy", kiln::dtype::f32).size() != 3) return fail("npy");

  try {
    kiln::device::parse("abacus");
    return fail("no error");
  } catch (kiln::error const&) {}
  consumer::add<64>.save("add.kg"); // for the tools
  std::puts("ok");
}
