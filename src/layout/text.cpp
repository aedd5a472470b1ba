// Prints layouts.
#include "kiln/layout/text.hpp"

#include <algorithm>
#include <vector>

namespace kiln {

std::string to_string(layout_dim d) {
  switch (d) {
  case layout_dim::none: return "none";
  case layout_dim::reg: return "reg";
  case layout_dim::lane: return "lane";
  case layout_dim::warp: return "warp";
  case layout_dim::cta: return "cta";
  case layout_dim::offset: return "offset";
  default: return "d" + std::to_string(axis_index(d));
  }
}

std::string to_string(const linear_layout& layout) {
  std::vector<layout_field> outputs(layout.out.fields.begin(), layout.out.fields.begin() + layout.out.rank);
  std::sort(outputs.begin(), outputs.end(), [](layout_field a, layout_field b) { return a.name < b.name; });

  std::string text;
  for (int k = 0; k < layout.in.rank; ++k) {
    layout_field from = layout.in.fields[std::size_t(k)];
    if (!text.empty()) text += ' ';
    text += to_string(from.name) + ' ';
    for (int i = 0; i < from.bits; ++i) {
      std::string coordinate;
      for (layout_field to : outputs) {
        if (!coordinate.empty()) coordinate += ',';
        coordinate += std::to_string(layout.out.get(layout.basis(from.name, i), to.name));
      }
      text += '(' + coordinate + ')';
    }
    if (from.bits == 0) text += '-';
  }
  text += text.empty() ? "->" : " ->";
  for (std::size_t i = 0; i < outputs.size(); ++i)
    text += (i ? ", " : " ") + to_string(outputs[i].name) + ' ' + std::to_string(f2_unit(outputs[i].bits));
  return text;
}

} // namespace kiln
