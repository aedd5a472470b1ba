// What both drawings say about a node: its colour group and its text with constants and parameters written in place.
#pragma once
#include <kiln/graph/attribute_kind.hpp>
#include <kiln/graph/text.hpp>

#include <string>
#include <vector>

namespace kiln::detail {

/// Fill colours, light enough for black text; buffers first.
inline constexpr char const* buffer_colours[] = {"#ffe0a3", "#c9e7c1", "#d9ccf0", "#ffd0cc", "#bfe4ec", "#efe6a0", "#f3cce3", "#cfd8b8"};
inline char const* buffer_colour(int b) { return buffer_colours[static_cast<std::size_t>(b) % std::size(buffer_colours)]; }

/// The local buffer that a node touches, or -1.
inline int touched_buffer(graph_view const& g, int i) {
  op const o = g[i].code;
  if (o == op::alloc) return static_cast<int>(g.attribute(i, 0));
  if (g[i].kind == node_kind::view) return g.buffer_of(i);
  for (int x : g.operands(i))
    if (x >= 0 && g[x].kind == node_kind::view) return g.buffer_of(x);
  return -1;
}

inline char const* colour_of(graph_view const& g, int i) {
  if (int const b = touched_buffer(g, i); b >= 0) return buffer_colour(b);
  op const o = g[i].code;
  if (has(o, trait::opens) || has(o, trait::middle) || has(o, trait::closes)) return "#e4e7eb";
  if (has(o, trait::effect) || o == op::assume) return "#ffc9c9";
  if (o == op::load || o == op::store || o == op::atomic_rmw || o == op::atomic_cas || o == op::async_commit || o == op::async_wait || o == op::sync) return "#cfe2ff";
  if (o == op::reduce || o == op::arg_reduce || o == op::scan || (o >= op::gather && o <= op::topk)) return "#e8d5f5";
  if (o == op::var || o == op::var_get || o == op::var_set) return "#fff3bf";
  return "#ffffff";
}

/// Constants and parameters are written where they are used, and have no row of their own.
inline bool written_in_place(graph_view const& g, int i) { return g[i].code == op::constant || g[i].code == op::param; }

inline std::string operand_text(graph_view const& g, int x) {
  if (x < 0) return "_";
  if (g[x].code == op::constant) return constant_text(g[x].type, g.attribute(x, 0));
  if (g[x].code == op::param) return "arg" + std::to_string(g.attribute(x, 0));
  return "%" + std::to_string(x);
}

/// "axis=0, cache=cg": what is not left to its default.
inline std::string attributes_text(graph_view const& g, int i) {
  op const o = g[i].code;
  std::string s;
  for (int a = 0; a < attribute_count(o); ++a) {
    attribute_kind const k = kind_of_attribute(o, a);
    attribute_default const d = default_of_attribute(o, a);
    bool const dimension = attribute_name(o, a).starts_with("dim");
    if (k == attribute_kind::structure || k == attribute_kind::bits || (d.has_default && g.attribute(i, a) == d.value)) continue;
    if (dimension && attribute_name(o, a).substr(3) >= std::to_string(g.shape_of(i).rank)) continue;
    if (!s.empty()) s += dimension && !attribute_name(o, a).ends_with("0") ? "," : ", ";
    if (!dimension)
      s += std::string(attribute_name(o, a)) + "=";
    else if (attribute_name(o, a) == "dim0")
      s += "axes ";
    s += o == op::alloc ? quote_text(g.string(g.buffer(static_cast<int>(g.attribute(i, a))).name)) : attribute_text(g, i, a);
  }
  return s;
}

} // namespace kiln::detail
