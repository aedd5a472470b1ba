// Matches the ends of regions by nesting.
#include <kiln/graph/structure.hpp>

#include <kiln/graph/attribute_kind.hpp>

namespace kiln {

namespace {

// for_begin and for_end belong together, and so on: the part before the underscore.
std::string_view family(op o) { return name_of(o).substr(0, name_of(o).find('_')); }

int attribute_called(op o, std::string_view name) {
  for (int i = 0; i < attribute_count(o); ++i)
    if (attribute_name(o, i) == name) return i;
  return -1;
}

} // namespace

region_fault link_regions(graph& g) {
  std::vector<int> open;
  auto attribute = [&](int n, std::string_view name) -> std::int64_t& {
    node const& x = g.nodes[static_cast<std::size_t>(n)];
    return g.attribute_pool[static_cast<std::size_t>(x.attributes + attribute_called(x.code, name))];
  };
  auto code = [&](int n) { return g.nodes[static_cast<std::size_t>(n)].code; };
  for (int i = 0; i < static_cast<int>(g.nodes.size()); ++i) {
    op const o = code(i);
    if (has(o, trait::opens)) {
      for (int a = 0; a < attribute_count(o); ++a)
        if (kind_of_attribute(o, a) == attribute_kind::structure) attribute(i, attribute_name(o, a)) = -1;
      open.push_back(i);
      continue;
    }
    if (!has(o, trait::middle) && !has(o, trait::closes)) continue;
    std::string const name(name_of(o));
    if (open.empty()) return {i, name + " without " + std::string(family(o)) + "_begin"};
    int const begin = open.back();
    if (family(code(begin)) != family(o))
      return {i, name + " inside the region of " + std::string(name_of(code(begin))) + ", which is not closed yet"};
    attribute(i, "begin") = begin;
    if (has(o, trait::middle)) {
      std::string_view const part = name_of(o).substr(name_of(o).find('_') + 1); // else, test
      std::int64_t& slot = attribute(begin, part);
      if (slot >= 0) return {i, "a second " + name + " in one region"};
      slot = i;
    } else {
      if (attribute_called(code(begin), "test") >= 0 && attribute(begin, "test") < 0)
        return {i, name + ": the loop has no while_test"};
      attribute(begin, "end") = i;
      open.pop_back();
    }
  }
  if (!open.empty())
    return {open.back(), std::string(name_of(code(open.back()))) + " is not closed by " +
                             std::string(family(code(open.back()))) + "_end"};
  return {};
}

std::int32_t intern_shape(graph& g, shape const& s) {
  for (std::size_t i = 0; i < g.shapes.size(); ++i)
    if (g.shapes[i] == s) return static_cast<std::int32_t>(i);
  g.shapes.push_back(s);
  return static_cast<std::int32_t>(g.shapes.size()) - 1;
}

} // namespace kiln
