// Interval analysis of a graph's addresses with the numbers of one launch.
#include "src/runtime/address_warning.hpp"

#include <vector>

#include "kiln/validate/bounds.hpp"

namespace kiln::detail {

std::string narrow_address_warning(graph_view const& g, grid const& ctas, std::span<argument const> arguments) {
  std::vector<std::int64_t> slots;
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    argument const& a = arguments[i];
    slots.push_back(static_cast<std::int64_t>(a.bits));
    if (g.params[i].kind != node_kind::array) continue;
    slots.insert(slots.end(), a.shape, a.shape + g.params[i].rank);
    slots.insert(slots.end(), a.strides, a.strides + g.params[i].rank);
  }
  known_sizes const known{slots, {ctas.x, ctas.y, ctas.z}};
  std::string text;
  narrow_addresses(
      g,
      [&](narrow_address const& a) {
        node const& n = g[a.node];
        std::int64_t const far = a.value.hi > -(a.value.lo + 1) ? a.value.hi : a.value.lo;
        if (!text.empty()) text += '\n';
        text += "kiln: warning: kernel '" + std::string(g.name) + "' (" + g.file(a.node) + ":" + std::to_string(n.line) + "): a product in an address reaches " +
                std::to_string(far) + " in this launch, which " + name_of(n.type) + " does not hold; cast<i64>(...) one of its operands";
      },
      &known);
  return text;
}

} // namespace kiln::detail
