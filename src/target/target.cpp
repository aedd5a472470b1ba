// What a target's name that nobody knows is answered with.
#include "kiln/target/target.hpp"

#include <stdexcept>
#include <string>

namespace kiln::detail {

void unknown_target_use_one_of_host_sm_80_sm_90a_sm_100a_gfx90a_gfx942_gfx950_gfx1100_gfx1201_gfx1250(
    std::string_view name) {
  std::string text = "unknown target '" + std::string(name) + "'; kiln knows:";
  for (target const& t : targets::all) text.append(" ").append(t.name());
  throw std::invalid_argument(text);
}

} // namespace kiln::detail
