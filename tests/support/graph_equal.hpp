// Whether two graphs are the same in every part, tables compared by content and not by index.
#pragma once
#include <kiln/graph/attribute_kind.hpp>
#include <kiln/graph/graph.hpp>

#include <string>
#include <string_view>

namespace kiln_test {

/// Empty when the graphs are equal, else the first difference.
inline std::string difference(kiln::graph_view const& a, kiln::graph_view const& b) {
  using namespace kiln;
  auto at = [](char const* what, int i) { return std::string(what) + " " + std::to_string(i) + " differs"; };
  if (a.name != b.name) return "names differ";
  if (a.attrs != b.attrs) return "attributes differ";
  if (a.params.size() != b.params.size() || a.buffers.size() != b.buffers.size() || a.size() != b.size()) return "sizes differ";
  for (int i = 0; i < static_cast<int>(a.params.size()); ++i) {
    param_info const &x = a.params[static_cast<std::size_t>(i)], &y = b.params[static_cast<std::size_t>(i)];
    if (x.kind != y.kind || x.type != y.type || x.is_const != y.is_const || x.rank != y.rank || x.node != y.node || x.workspace != y.workspace ||
        x.per_cta != y.per_cta || x.zero != y.zero)
      return at("parameter", i);
  }
  for (int i = 0; i < static_cast<int>(a.buffers.size()); ++i) {
    buffer_info const &x = a.buffer(i), &y = b.buffer(i);
    if (x.type != y.type || x.where != y.where || x.placement != y.placement || x.has_slots != y.has_slots || x.slots != y.slots || x.role != y.role || x.pun != y.pun || x.phase != y.phase || x.base != y.base || x.place != y.place || x.layout != y.layout ||
        x.alignment != y.alignment || x.node != y.node || (x.name < 0) != (y.name < 0) || x.name != y.name ||
        std::string_view(a.string(x.name)) != b.string(y.name) ||
        !(a.shapes[static_cast<std::size_t>(x.shape)] == b.shapes[static_cast<std::size_t>(y.shape)]))
      return at("buffer", i);
  }
  for (int i = 0; i < a.size(); ++i) {
    node const &x = a[i], &y = b[i];
    if (x.code != y.code || x.type != y.type || x.kind != y.kind || x.line != y.line || x.operand_count != y.operand_count ||
        !(a.shape_of(i) == b.shape_of(i)) || std::string_view(a.file(i)) != b.file(i))
      return at("node", i);
    for (int j = 0; j < x.operand_count; ++j)
      if (a.operand(i, j) != b.operand(i, j)) return at("an operand of node", i);
    for (int j = 0; j < attribute_count(x.code); ++j) {
      if (a.attribute(i, j) != b.attribute(i, j)) return at("an attribute of node", i);
      if (kind_of_attribute(x.code, j) == attribute_kind::text &&
          std::string_view(a.string(static_cast<int>(a.attribute(i, j)))) != b.string(static_cast<int>(b.attribute(i, j))))
        return at("the text of node", i);
    }
  }
  return {};
}

} // namespace kiln_test
