// The second translation unit: the same kernel, recorded here.
#include <string>

#include <kiln/graph/text.hpp>

#include "kernels.hpp"

std::string text_of_the_other_unit() { return kiln::print(consumer::add<64>.graph()); }
