// The warning about 32-bit products in addresses that the sizes of a launch make overflow: interval analysis of the graph
// with the numbers of that launch.
#include "kiln/validate/bounds.hpp"
#include "src/runtime/compiler_interface.hpp"

namespace kiln::detail {

std::string narrow_address_warning(graph_view const& g, dims const& ctas, std::span<std::int64_t const> slots) {
  known_sizes const known{slots, ctas};
  std::string text;
  narrow_addresses(
      g,
      [&](narrow_address const& a) {
        node const& n = g[a.node];
        std::int64_t const far = a.value.hi > -(a.value.lo + 1) ? a.value.hi : a.value.lo;
        if (!text.empty()) text += '\n';
        text += "kiln: warning: kernel '" + std::string(g.name) + "' (" + g.file(a.node) + ":" + std::to_string(n.line) +
                "): a product in an address reaches " + std::to_string(far) + " in this launch, which " + name_of(n.type) +
                " does not hold; cast<i64>(...) one of its operands";
      },
      &known);
  return text;
}

} // namespace kiln::detail
