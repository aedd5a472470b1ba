// Uses the installed headers and library: version, a recorded kernel, device memory, files, errors across the library's
// border.
#include <cstdio>
#include <string>
#include <vector>

#include <kiln/graph/text.hpp>
#include <kiln/io/npy.hpp>
#include <kiln/runtime/buffer.hpp>
#include <kiln/runtime/error.hpp>
#include <kiln/version.hpp>

#include "kernels.hpp"

std::string text_of_the_other_unit();

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
  kiln::write_npy("x.npy", x.to_vector(), {3});
  if (kiln::read_npy("x.npy", kiln::dtype::f32).size() != 3) return fail("npy");

  try {
    kiln::device::parse("abacus");
    return fail("no error");
  } catch (kiln::error const&) {}
  consumer::add<64>.save("add.kg"); // for the tools
  std::puts("ok");
}
