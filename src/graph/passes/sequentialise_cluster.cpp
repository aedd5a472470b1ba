// The CTAs of a cluster as one program: every CTA is an agent, its whole program taken apart at its waits, with local memory and
// barriers of its own; its tasks are agents that run while it waits for them.
#include "src/graph/passes/sequentialiser.hpp"

#include <kiln/graph/cluster.hpp>

#include <array>
#include <utility>

namespace kiln {

namespace detail {
namespace {

class cluster_sequentialiser final : public sequentialiser {
public:
  cluster_sequentialiser(graph_view const& g, std::set<std::pair<int, int>>& cells, bool dry)
      : sequentialiser(g, cells, dry, true), ctas_(static_cast<int>(cluster_size(g.attrs))), owner_(g.nodes.size(), kernel), again_(g.nodes.size(), false) {
    for (int i = 0; i < g.size(); ++i) {
      op const o = g[i].code;
      if (o == op::task_begin && !in_place(i))
        for (int k = i; k <= end_of_[at(i)]; ++k) owner_[at(k)] = i;
      again_[at(i)] = cheap(i);
    }
  }

  graph run() override {
    scopes_.emplace_back();
    // As many strings again for each CTA: what one prints says where.
    for (int rank = 0; rank < ctas_; ++rank)
      for (char const* text : g_.strings) r_.add_string(text);
    for (int i = 0; i < g_.size(); ++i)
      if (g_[i].code == op::param) r_.copy(i);
    ctas_state_.resize(static_cast<std::size_t>(ctas_));
    for (rank_ = 0; rank_ < ctas_; ++rank_) make_cta();
    line_ = 0;
    meeting_ = {new_cell(number(0)), new_cell(number(0))};
    progress_ = new_cell(truth(true));
    int const live = new_cell(number(ctas_));
    r_.add(op::while_begin, {}, {}, {-1, -1}, 0);
    scopes_.emplace_back();
    r_.add(op::while_test, {}, {both(compare(op::gt, get(live), number(0)), get(progress_))}, {-1}, 0);
    set(progress_, truth(false));
    for (rank_ = 0; rank_ < ctas_; ++rank_)
      for (agent_state const& a : cta().agents) {
        begin(a);
        int const from = a.task < 0 ? 0 : a.task + 1, to = a.task < 0 ? g_.size() : end_of_[at(a.task)];
        body(from, to);
        line_ = to - 1;
        made_progress();
        int const left = a.task < 0 ? live : cta().left.at(region_of(a.task));
        set(left, compute(op::sub, get(left), number(1)));
        close_state(number(-1));
      }
    line_ = 0;
    r_.add(op::device_assert, {}, {either(get(progress_), compare(op::le, get(live), number(0)))}, {deadlock()}, 0);
    r_.add(op::while_end, {}, {}, {-1}, 0);
    leave_scope();
    graph one = r_.finish();
    one.attrs.cluster = {};
    one.attrs.cluster_nonportable = false;
    return one;
  }

private:
  static constexpr int kernel = -1;

  struct cta_state {
    std::map<int, int> allocs;            ///< alloc node: what it has become
    std::vector<std::vector<slot>> barriers;
    std::map<int, named_state> named;
    std::vector<agent_state> agents;      ///< the kernel's own comes first
    std::map<int, int> left;              ///< of each region: tasks that have not ended
  };
  cta_state& cta() { return ctas_state_[at(rank_)]; }

  /// The default task, when there is one of it, is run by the kernel's own warps.
  bool in_place(int task) const { return g_.attribute(task, 0) == 0 && g_.attribute(task, 2) == 1; }
  int region_of(int task) const {
    int i = task - 1;
    while (g_[i].code != op::tasks_begin) i = static_cast<int>(g_.attribute(i, 0)) - (g_[i].code == op::task_end ? 1 : 0);
    return i;
  }
  bool in_tasks(int o) const override { return g_[o].code != op::param; }
  int agent_of(int o) const override { return owner_[at(o)] == task_ ? agent_ : ctas_state_[at(rank_)].agents.front().number; }

  /// Numbers that follow from constants and from which CTA this is, and tiles of equal or counted elements made of them.
  bool cheap(int i) const {
    node const& n = g_[i];
    if (n.kind != node_kind::value) return false;
    op const o = n.code;
    if (o == op::constant || o == op::replica_id) return false; // the rule for all kernels
    if (o == op::iota || o == op::cluster_rank || o == op::program_id || o == op::num_programs || o == op::extent || o == op::stride) return true;
    if (o != op::broadcast && o != op::reshape && !(has(o, trait::elementwise) && n.shape == 0 && !is_float(n.type))) return false;
    for (int x : g_.operands(i))
      if (x >= 0 && !again_[at(x)] && g_[x].code != op::constant && g_[x].code != op::replica_id) return false;
    return true;
  }
  bool made_again(int o) const override { return again_[at(o)]; }
  void again(int o) override {
    if (!own(o)) r_.copy(o);
  }

  // -- one CTA ---------------------------------------------------------------------------------------------------------------
  void make_cta() {
    cta_state& c = cta();
    for (int i = 0; i < g_.size(); ++i) {
      line_ = i;
      if (g_[i].code == op::alloc) c.allocs[i] = r_.copy(i);
    }
    barriers_.assign(g_.nodes.size(), {});
    for (int i = 0; i < g_.size(); ++i)
      if (g_[i].code == op::alloc_barriers) alloc_barriers(i);
    c.barriers = barriers_;
    named_.clear();
    make_named();
    c.named = named_;
    add_agent(kernel, 0);
    for (int i = 0; i < g_.size(); ++i) {
      line_ = i;
      if (g_[i].code == op::tasks_begin) c.left[i] = new_cell(number(0));
      if (g_[i].code == op::task_begin && owner_[at(i)] == i)
        for (int k = in_place(i); k < g_.attribute(i, 2); ++k) add_agent(i, k);
    }
  }
  void add_agent(int task, int replica) {
    bool const is_kernel = task == kernel;
    line_ = is_kernel ? 0 : task;
    agent_state a{agent_ = next_agent_++, task, replica, new_cell(number(is_kernel ? 0 : -1)), 0, new_cell(number(0)), {}, {}, {}, {}, {}};
    index_cells_.clear();
    bound_cells_.clear();
    value_cells_.clear();
    snapshots_.clear();
    int const from = is_kernel ? 0 : task + 1, to = is_kernel ? g_.size() : end_of_[at(task)];
    for (int i = from; i < to; ++i)
      if (owner_[at(i)] == task) node_cells(i, task, !is_kernel);
    a.index = index_cells_;
    a.bounds = bound_cells_;
    a.value = value_cells_;
    a.snapshots = snapshots_;
    for (int i = from; i < to; ++i)
      if (owner_[at(i)] == task && g_[i].code == op::var && g_[g_.operand(i, 0)].kind != node_kind::token) a.vars[i] = r_.mapped(i);
    cta().agents.push_back(std::move(a));
  }
  /// Its code is made now.
  void begin(agent_state const& a) {
    cta_state& c = cta();
    agent_state const& own = c.agents.front();
    agent_ = a.number, task_ = a.task, replica_ = a.replica, pc_ = a.pc, generation_ = a.generation;
    index_cells_ = a.index, bound_cells_ = a.bounds, value_cells_ = a.value, snapshots_ = a.snapshots;
    if (a.task != kernel) { // it sees what the kernel's warps have computed
      index_cells_.insert(own.index.begin(), own.index.end());
      value_cells_.insert(own.value.begin(), own.value.end());
      for (auto const& [i, cell] : own.vars) r_.replace(i, cell);
    }
    for (auto const& [i, cell] : a.vars) r_.replace(i, cell);
    for (auto const& [i, made] : c.allocs) r_.replace(i, made);
    barriers_ = c.barriers;
    named_ = c.named;
    for (int& h : home_) h = lost;
    first_state_ += 1 << 16;
    last_state_ = 1;
    line_ = a.task < 0 ? 0 : a.task;
    open_state(0);
    made_progress();
  }

  // -- what only clusters have -------------------------------------------------------------------------------------------------
  void body(int from, int to) override {
    for (int i = from; i < to; ++i) {
      op const o = g_[i].code;
      if (o == op::param || o == op::alloc || o == op::alloc_barriers) continue;
      if (o == op::tasks_begin) {
        run_tasks(i);
        i = end_of_[at(i)];
      } else if (has(o, trait::opens)) {
        sequentialiser::body(i, end_of_[at(i)] + 1);
        i = end_of_[at(i)];
      } else {
        sequentialiser::body(i, i + 1);
      }
    }
  }
  void run_tasks(int region) {
    line_ = region;
    cta_state& c = cta();
    int count = 0, own = -1;
    for (agent_state const& a : c.agents) {
      if (a.task < 0 || region_of(a.task) != region) continue;
      for (auto const& [var, copy] : a.snapshots) set(copy, get(r_.mapped(var)));
      set(a.pc, number(0));
      ++count;
    }
    set(c.left.at(region), number(count));
    for (int t = region + 1; g_[t].code == op::task_begin; t = end_of_[at(t)] + 1)
      if (in_place(t)) own = t;
    if (own >= 0) body(own + 1, end_of_[at(own)]);
    begin_wait(region);
    open_if(compare(op::le, get(c.left.at(region)), number(0)));
    end_wait(region);
    if (joins_cluster(g_, region)) meet(meeting_, 1, ctas_, end_of_[at(region)]);
  }
  void wait(int i) override {
    line_ = i;
    if (g_[i].code == op::cluster_barrier) return meet(meeting_, 1, ctas_, i);
    sequentialiser::wait(i);
  }
  void simple(int i) override {
    if (g_[i].code != op::cluster_rank) return sequentialiser::simple(i);
    again(i);
    known_here(i);
  }
  bool own(int i) override {
    node const& n = g_[i];
    line_ = i;
    switch (n.code) {
    case op::cluster_rank: r_.replace(i, number(rank_)); return true;
    case op::program_id:
    case op::num_programs: {
      auto const axis = static_cast<int>(g_.attribute(i, 0));
      dims const c = g_.attrs.cluster;
      std::array<std::int64_t, 3> const extent{c.x, c.y, c.z}, mine{rank_ % c.x, rank_ / c.x % c.y, rank_ / (c.x * c.y)};
      type const t = type_of(i);
      auto constant = [&](std::int64_t x) { return r_.add_constant(make_scalar(n.type, x), {}, i); };
      int x = r_.add(op::mul, t, {r_.copy(i), constant(extent[at(axis)])}, {}, i);
      if (n.code == op::program_id) x = r_.add(op::add, t, {x, constant(mine[at(axis)])}, {}, i);
      r_.replace(i, x);
      return true;
    }
    case op::device_print: {
      std::vector<std::int32_t> operands;
      for (int x : g_.operands(i)) operands.push_back(r_.mapped(x));
      std::int64_t const text = g_.attribute(i, 0) + static_cast<std::int64_t>(g_.strings.size()) * (rank_ + 1);
      r_.add(op::device_print, {}, operands, std::array{text}, i);
      return true;
    }
    default: return false;
    }
  }

  /// For every CTA that operand j of node i can name: body(its rank, whether it is the one; -1: it is).
  template <class F>
  void each_rank(int i, int j, F body) {
    int const rank = g_.operand(i, j);
    use(rank);
    for (int to = 0; to < ctas_; ++to) {
      bool const constant = g_[rank].code == op::constant;
      if (constant && g_.attribute(rank, 0) != to) continue;
      body(to, constant ? -1 : compare(op::eq, r_.mapped(rank), number(to)));
    }
  }
  /// View v of this CTA's memory, in that of another.
  int view_of(int to, int v) {
    if (g_[v].code == op::alloc) return ctas_state_[at(to)].allocs.at(v);
    std::vector<std::int32_t> operands;
    for (int x : g_.operands(v)) {
      if (!operands.empty()) use(x);
      operands.push_back(operands.empty() ? view_of(to, x) : r_.mapped(x));
    }
    auto const a = g_.attributes_of(v);
    return r_.add(g_[v].code, type_of(v), operands, std::vector<std::int64_t>(a.begin(), a.end()), v);
  }
  void barrier_of(int to, int barrier, i64 arrivals, i64 come, int when) {
    auto const mine = std::exchange(barriers_, ctas_state_[at(to)].barriers);
    arrive(barrier, arrivals, 0, come, when);
    barriers_ = mine;
  }

  void barrier_operation(int i) override {
    line_ = i;
    node const& n = g_[i];
    switch (n.code) {
    case op::alloc_barriers: // made for every CTA before
    case op::remote_barrier:
    case op::fence_barrier_init: return;
    case op::barrier_arrive: {
      int const b = g_.operand(i, 0);
      if (g_[b].code != op::remote_barrier) break;
      int const when = predicate(i, 1), local = g_.operand(b, 0);
      bool const each = g_.attribute(g_.operand(local, 0), 2) != 0;
      each_rank(b, 1, [&](int to, int chosen) {
        barrier_of(to, local, g_.attribute(i, 0) * (each ? threads() : 1), 0, chosen < 0 ? when : when < 0 ? chosen : both(chosen, when));
      });
      return;
    }
    case op::remote_store:
    case op::async_remote_store:
    case op::async_remote_copy: {
      int const v = g_.operand(i, 0);
      type const t{g_[v].type, node_kind::value, g_.shape_of(v)};
      use(v);
      use(g_.operand(i, 1));
      int tile = r_.mapped(g_.operand(i, 1));
      if (n.code == op::async_remote_copy) tile = r_.add(op::local_load, t, {tile, -1}, {0}, i);
      each_rank(i, 2, [&](int to, int chosen) {
        if (chosen >= 0) open_if(chosen);
        r_.add(op::local_store, {}, {view_of(to, v), tile}, {}, i);
        if (chosen >= 0) close_if();
        if (n.code != op::remote_store) barrier_of(to, g_.operand(i, 3), 0, bytes_of(t.type, t.extents.elements()), chosen);
      });
      return;
    }
    default: break;
    }
    sequentialiser::barrier_operation(i);
  }

  int ctas_, rank_ = 0;
  named_state meeting_; ///< of all CTAs
  std::vector<int> owner_;      ///< of a node: the task that runs it, or the kernel
  std::vector<bool> again_;
  std::vector<cta_state> ctas_state_;
};

} // namespace
} // namespace detail

graph sequentialise_cluster(graph_view const& g) { return detail::sequentialised<detail::cluster_sequentialiser>(g); }

} // namespace kiln
