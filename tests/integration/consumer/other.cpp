// The second translation unit: the same kernel, recorded here.
#include <string>

#include <kiln/graph/text.hpp>

#include "kernels.hpp"

void launch_in_the_other_unit(kiln::buffer<kiln::f32>& x, kiln::buffer<kiln::f32>& z) {
  consumer::add<64>.launch(x.get_stream(), kiln::grid(1), x, x, z, x.size());
}

std::string text_of_the_other_unit() { return kiln::print(consumer::add<64>.graph()); }
