// Dead code: marks from the effects backwards, then copies what is marked.
#include "src/graph/passes/dce.hpp"

#include "src/graph/rewrite.hpp"

#include <vector>

namespace kiln {

namespace {

class marker {
public:
  explicit marker(graph_view const& g) : g_(g), live_(g.nodes.size()), opener_(g.nodes.size(), -1), written_(g.buffers.size()), set_(g.nodes.size()) {
    std::vector<int> open;
    for (int i = 0; i < g.size(); ++i) {
      op const o = g[i].code;
      if (has(o, trait::closes)) open.pop_back();
      opener_[at(i)] = open.empty() ? -1 : open.back();
      if (has(o, trait::opens)) open.push_back(i);
      // What fills a cell or buffer lives as long as something reads it, or reads other buffers in the same storage.
      if (o == op::var_set) set_[at(g.operand(i, 0))].push_back(i);
      if (has(o, trait::writes_local)) written_[at(g.storage_of(g.buffer_of(g.operand(i, 0))))].push_back(i);
      if (o == op::async_load || o == op::async_load_bulk) written_[at(g.storage_of(g.buffer_of(g.operand(i, 1))))].push_back(i);
      if (o == op::async_commit || o == op::async_wait) groups_.push_back(i);
    }
  }

  std::vector<bool> run() {
    for (int i = 0; i < g_.size(); ++i)
      if (is_root(i)) mark(i);
    while (!work_.empty()) {
      int const i = work_.back();
      work_.pop_back();
      visit(i);
    }
    return live_;
  }

private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  bool is_root(int i) const {
    op const o = g_[i].code;
    if (o == op::param || o == op::assume || o == op::prefetch) return true;
    if (o == op::load) return g_.attribute(i, 2) != 0; // volatile
    return has(o, trait::writes) || has(o, trait::effect) || has(o, trait::barrier);
  }

  void mark(int i) {
    if (i < 0 || live_[at(i)]) return;
    live_[at(i)] = true;
    work_.push_back(i);
  }

  void visit(int i) {
    op const o = g_[i].code;
    for (int x : g_.operands(i)) mark(x);
    mark(opener_[at(i)]);
    for (int a = 0; a < attribute_count(o); ++a) {
      attribute_kind const k = kind_of_attribute(o, a);
      // A region stays with all its ends.
      if (k == attribute_kind::structure || k == attribute_kind::combine) mark(static_cast<int>(g_.attribute(i, a)));
    }
    if (o == op::tasks_begin) // every task stays, an idle default task too
      for (int t = i + 1; t < g_.attribute(i, 3); t = static_cast<int>(g_.attribute(t, 5)) + 1) mark(t);
    if (o == op::combine_begin)
      for (int b = i + 1; b < g_.attribute(i, 0); ++b)
        if (g_[b].code == op::combine_arg) mark(b);
    if (o == op::var)
      for (int x : set_[at(i)]) mark(x);
    if (o == op::alloc)
      for (int x : written_[at(g_.storage_of(static_cast<int>(g_.attribute(i, 0))))]) mark(x);
    if (o == op::async_load)
      for (int x : groups_) mark(x);
  }

  graph_view const& g_;
  std::vector<bool> live_;
  std::vector<int> work_, opener_, groups_;
  std::vector<std::vector<int>> written_, set_;
};

} // namespace

graph remove_dead_code(graph_view const& g) {
  std::vector<bool> const live = marker(g).run();
  detail::rewriter r(g);
  for (int i = 0; i < g.size(); ++i)
    if (live[static_cast<std::size_t>(i)]) r.copy(i);
  return r.finish();
}

} // namespace kiln
