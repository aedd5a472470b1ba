// Common subexpressions: a table of the pure nodes that are in scope.
#include "src/graph/passes/cse.hpp"

#include "src/graph/rewrite.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace kiln {

namespace {

bool may_merge(graph_view const& g, int i) {
  op const o = g[i].code;
  if (!has(o, trait::pure) || o == op::param || o == op::combine_arg) return false;
  if (o == op::dot) // pure on values; on views it reads local memory
    return g[g.operand(i, 0)].kind == node_kind::value && g[g.operand(i, 1)].kind == node_kind::value;
  if (has(o, trait::reads)) return false;
  for (int a = 0; a < attribute_count(o); ++a)
    if (kind_of_attribute(o, a) == attribute_kind::combine && g.attribute(i, a) >= 0) return false;
  return true;
}

std::vector<std::int64_t> key_of(detail::rewriter const& r, int i) {
  graph_view const& g = r.from();
  node const& n = g[i];
  std::vector<std::int64_t> key{static_cast<int>(n.code), static_cast<int>(n.type), static_cast<int>(n.kind), n.operand_count};
  shape const& s = g.shape_of(i);
  key.push_back(s.rank);
  key.insert(key.end(), s.extent, s.extent + s.rank);
  std::size_t const first = key.size();
  for (int j = 0; j < n.operand_count; ++j) key.push_back(r.operand(i, j));
  bool const either_zero = (n.code == op::min || n.code == op::max) && is_float(n.type);
  if (has(n.code, trait::commutative) && !either_zero && key[first] > key[first + 1]) std::swap(key[first], key[first + 1]);
  auto const attributes = g.attributes_of(i);
  key.insert(key.end(), attributes.begin(), attributes.end());
  return key;
}

} // namespace

graph merge_equal_nodes(graph_view const& g) {
  detail::rewriter r(g);
  std::map<std::vector<std::int64_t>, int> seen;
  std::vector<std::map<std::vector<std::int64_t>, int>::iterator> order; // in the order they were put in
  std::vector<std::size_t> scopes;
  auto leave = [&] {
    for (std::size_t const n = scopes.back(); order.size() > n; order.pop_back()) seen.erase(order.back());
  };
  for (int i = 0; i < g.size(); ++i) {
    op const o = g[i].code;
    if (has(o, trait::opens)) scopes.push_back(order.size());
    if (o == op::if_else) leave(); // the branches do not see each other; a loop's body sees its condition
    if (has(o, trait::closes)) {
      leave();
      scopes.pop_back();
    }
    if (!may_merge(g, i)) {
      r.copy(i);
      continue;
    }
    auto const [it, fresh] = seen.emplace(key_of(r, i), -1);
    if (!fresh) {
      r.replace(i, it->second);
      continue;
    }
    it->second = r.copy(i);
    order.push_back(it);
  }
  return r.finish();
}

} // namespace kiln
