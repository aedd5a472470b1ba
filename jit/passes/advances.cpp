// The rewriting of advances.hpp: held = first + advance * ((index - lo) / step).
#include "advances.hpp"

#include "access_shape.hpp"

#include <algorithm>
#include <kiln/dtype/convert.hpp>
#include <src/graph/passes/dce.hpp>
#include <src/graph/rewrite.hpp>
#include <vector>

namespace kiln::jit {

namespace {

using detail::node_type;
using detail::rewriter;

struct advance {
  int cell, set, amount; ///< nodes: the var, its var_set, what is added
  int loop;              ///< for_begin
};

class finder {
public:
  finder(graph_view const& graph, graph_facts const& f) : g(graph), facts(f), region(static_cast<std::size_t>(g.size()), -1) {
    std::vector<int> open;
    for (int i = 0; i < g.size(); ++i) {
      if (has(g[i].code, trait::closes)) open.pop_back();
      region[static_cast<std::size_t>(i)] = open.empty() ? -1 : open.back();
      if (has(g[i].code, trait::opens)) open.push_back(i);
    }
  }

  std::vector<advance> run() const {
    std::vector<advance> r;
    for (int i = 0; i < g.size(); ++i)
      if (g[i].code == op::for_begin && plain(i))
        for (int n = i + 1; n < end_of(i); ++n)
          if (g[n].code == op::var_set)
            if (auto a = study(i, n)) r.push_back(*a);
    return r;
  }
  int end_of(int begin) const { return static_cast<int>(g.attribute(begin, 0)); }

  /// The same in every pass: made before the loop, or computed in it from nothing else.
  bool unchanging(int i, int begin) const {
    if (i < begin) return true;
    if (g[i].kind != node_kind::value || !(has(g[i].code, trait::elementwise) || has(g[i].code, trait::pure)) || has(g[i].code, trait::reads)) return false;
    return std::ranges::all_of(g.operands(i), [&](int o) { return o < 0 || unchanging(o, begin); });
  }

private:
  bool plain(int begin) const {
    if (g[begin].type != dtype::i32 && g[begin].type != dtype::i64) return false;
    auto const step = constant_of(facts, g.operand(begin, 2));
    if (!step || *step <= 0) return false;
    bool product = false;
    for (int i = begin + 1; i < end_of(begin); ++i) {
      if (has(g[i].code, trait::opens) || has(g[i].code, trait::middle)) return false;
      product |= g[i].code == op::dot;
    }
    return product;
  }
  std::optional<advance> study(int begin, int set) const {
    int const cell = g.operand(set, 0), sum = g.operand(set, 1);
    bool const pointer = g[cell].kind == node_kind::cell && g[sum].kind == node_kind::pointer;
    if (cell > begin || region[static_cast<std::size_t>(cell)] != region[static_cast<std::size_t>(begin)]) return {};
    if (sum <= begin || (pointer ? g[sum].code != op::ptr_add : g[sum].code != op::add || !is_int(g[sum].type))) return {};
    for (int i = 0; i < g.size(); ++i)
      if (g[i].code == op::var_set && g.operand(i, 0) == cell && i != set) return {};
    auto const held = [&](int i) { return g[i].code == op::var_get && g.operand(i, 0) == cell && i > begin && i < set; };
    int const x = g.operand(sum, 0), y = g.operand(sum, 1);
    int const amount = held(x) ? y : !pointer && held(y) ? x : -1;
    if (amount < 0 || !unchanging(amount, begin)) return {};
    return advance{cell, set, amount, begin};
  }

  graph_view const& g;
  graph_facts const& facts;
  std::vector<int> region;
};

class writer {
public:
  writer(graph_view const& graph, finder const& f, std::vector<advance> const& all) : g(graph), find(f), advances(all), w(graph) {}

  graph run() {
    for (int i = 0; i < g.size(); ++i) {
      auto const a = std::ranges::find_if(advances, [&](advance const& x) {
        return g[i].code == op::var_get && g.operand(i, 0) == x.cell && i > x.loop && i < find.end_of(x.loop);
      });
      if (a == advances.end()) w.copy(i);
      else w.replace(i, held(*a, i));
    }
    return w.finish();
  }

private:
  int value(op code, dtype t, shape const& s, std::initializer_list<std::int32_t> operands, int attributes = 0) {
    std::vector<std::int64_t> const none(static_cast<std::size_t>(attributes));
    return w.add(code, {t, node_kind::value, s}, std::span(operands.begin(), operands.size()), none, at);
  }
  /// Old node i once more at this place, if it stands inside the loop.
  int here(int i, int begin) {
    if (i < begin) return w.mapped(i);
    int const before = w.mapped(i);
    std::vector<std::pair<int, int>> old;
    for (int o : g.operands(i))
      if (o > begin) old.emplace_back(o, w.mapped(o)), w.replace(o, here(o, begin));
    int const copied = w.copy(i);
    while (!old.empty()) w.replace(old.back().first, old.back().second), old.pop_back();
    w.replace(i, before);
    return copied;
  }

  int held(advance const& a, int get) {
    at = get;
    dtype const index = g[a.loop].type;
    shape const none{};
    int passes = value(op::div, index, none, {value(op::sub, index, none, {w.mapped(a.loop), w.operand(a.loop, 0)}), w.operand(a.loop, 2)}, 1);
    if (get > a.set) passes = value(op::add, index, none, {passes, w.add_constant(make_scalar(index, 1), {}, at)});
    bool const pointer = g[get].kind == node_kind::pointer;
    dtype const t = pointer ? dtype::i64 : g[get].type;
    shape const& s = g.shape_of(a.amount);
    int amount = here(a.amount, a.loop);
    if (g[a.amount].type != t) amount = value(op::cast, t, s, {amount});
    if (index != t) passes = value(op::cast, t, none, {passes});
    if (s.rank != 0) passes = value(op::broadcast, t, s, {passes});
    int const distance = value(op::mul, t, s, {amount, passes}), first = w.operand(a.cell, 0);
    return w.add(pointer ? op::ptr_add : op::add, {g[get].type, g[get].kind, g.shape_of(get)}, {first, distance}, {}, at);
  }

  graph_view const& g;
  finder const& find;
  std::vector<advance> const& advances;
  rewriter w;
  int at = 0; ///< whose source position new nodes get
};

} // namespace

std::optional<graph> count_advances(graph_view const& g, graph_facts const& facts) {
  finder const f(g, facts);
  auto const all = f.run();
  if (all.empty()) return {};
  return remove_dead_code(writer(g, f, all).run());
}

} // namespace kiln::jit
