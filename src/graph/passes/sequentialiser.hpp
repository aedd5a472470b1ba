// How programs that wait are taken apart at their waits: shared by the tasks of one CTA (sequentialise.cpp) and the CTAs of a
// cluster (sequentialise_cluster.cpp).
#pragma once
#include "src/graph/passes/sequentialise.hpp"

#include <kiln/dtype/convert.hpp>

#include "src/graph/rewrite.hpp"

#include <map>
#include <set>
#include <string>

namespace kiln {
graph sequentialise_cluster(graph_view const& g);
}

namespace kiln::detail {

/// Whether a program can stand still at a node: at barriers, and in a cluster where it meets the other CTAs or runs tasks.
constexpr bool waits(op o, bool cluster) {
  return o == op::barrier_wait || o == op::named_barrier_wait || (cluster && (o == op::cluster_barrier || o == op::tasks_begin));
}

class sequentialiser {
public:
  /// `cells`: values that live in vars; a first, dry run finds them. `cluster`: the whole program is taken apart, not only tasks.
  sequentialiser(graph_view const& g, std::set<std::pair<int, int>>& cells, bool dry, bool cluster = false)
      : g_(g), r_(g), cells_(cells), dry_(dry), whole_(cluster), home_(g.nodes.size(), outside), barriers_(g.nodes.size()), end_of_(g.nodes.size(), -1), holds_wait_(g.nodes.size(), false) {
    std::vector<int> open;
    for (int i = 0; i < g.size(); ++i) {
      op const o = g[i].code;
      if (waits(o, whole_))
        for (int b : open) holds_wait_[at(b)] = true;
      if (has(o, trait::opens)) open.push_back(i);
      if (has(o, trait::closes)) {
        end_of_[at(open.back())] = i;
        open.pop_back();
      }
    }
  }
  virtual ~sequentialiser() = default;

  virtual graph run() {
    scopes_.emplace_back();
    for (int i = 0; i < g_.size(); ++i) {
      if (g_[i].code == op::tasks_begin) {
        tasks(i);
        i = end_of_[at(i)];
      } else {
        node_of_program(i);
      }
    }
    return r_.finish();
  }

protected:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  static constexpr int outside = -1;

  // -- small code ------------------------------------------------------------------------------------------------------------
  using type = detail::node_type;
  static type i32_type() { return {dtype::i32, node_kind::value, {}}; }
  static type b1_type() { return {dtype::b1, node_kind::value, {}}; }
  type type_of(int i) const { return {g_[i].type, g_[i].kind, g_.shape_of(i)}; }
  int number(i64 x) { return r_.add_constant(make_scalar(dtype::i32, x), {}, line_); }
  int truth(bool x) { return r_.add_constant(make_scalar(dtype::b1, x ? 1 : 0), {}, line_); }
  int compute(op o, int a, int b) { return r_.add(o, i32_type(), {a, b}, {}, line_); }
  int compare(op o, int a, int b) { return r_.add(o, b1_type(), {a, b}, {}, line_); }
  int both(int a, int b) { return r_.add(op::bit_and, b1_type(), {a, b}, {}, line_); }
  int either(int a, int b) { return r_.add(op::bit_or, b1_type(), {a, b}, {}, line_); }
  int negated(int a) { return r_.add(op::bit_not, b1_type(), {a}, {}, line_); }
  int select(int c, int a, int b) { return r_.add(op::where, i32_type(), {c, a, b}, {}, line_); }
  int new_cell(int first) {
    node const n = r_.made(first);
    return r_.add(op::var, {n.type, node_kind::cell, r_.shape_of_made(first)}, {first}, {}, line_);
  }
  int get(int cell) {
    node const c = r_.made(cell);
    node_kind const kind = r_.made(r_.operand_of_made(cell, 0)).kind;
    return r_.add(op::var_get, {c.type, kind, r_.shape_of_made(cell)}, {cell}, {}, line_);
  }
  void set(int cell, int v) { r_.add(op::var_set, {}, {cell, v}, {}, line_); }
  std::int64_t deadlock() {
    if (deadlock_ < 0) deadlock_ = r_.add_string(deadlock_text);
    return deadlock_;
  }
  void open_if(int condition) {
    r_.add(op::if_begin, {}, {condition}, {-1, -1}, line_);
    scopes_.emplace_back();
  }
  void close_if() {
    r_.add(op::if_end, {}, {}, {-1}, line_);
    leave_scope();
  }
  void leave_scope() {
    for (int o : scopes_.back()) home_[at(o)] = lost;
    scopes_.pop_back();
  }

  // -- values across states ----------------------------------------------------------------------------------------------------
  static constexpr int lost = -2;

  virtual bool in_tasks(int o) const { return region_ >= 0 && o > region_ && o < end_of_[at(region_)]; }
  /// The agent that computes node o, of those that the present one sees.
  virtual int agent_of(int) const { return agent_; }
  /// Whether node o is computed anew in every state that uses it.
  virtual bool made_again(int) const { return false; }
  /// What a var of node o's type starts with: 0, or the argument that its pointers come from. -1: there is none.
  int initial(int o) {
    node const& n = g_[o];
    if (n.kind == node_kind::value) return r_.add_constant({n.type, 0}, g_.shape_of(o), line_);
    int p = o;
    while (p >= 0 && g_[p].code != op::param && g_[p].code != op::array_data) p = g_[p].code == op::var_get ? g_.operand(g_.operand(p, 0), 0) : g_.operand(p, 0);
    if (p < 0 || g_[p].type != n.type || n.kind != node_kind::pointer) return -1;
    int base = r_.mapped(p);
    if (g_[p].code == op::array_data) base = r_.add(op::array_data, {n.type, node_kind::pointer, {}}, {r_.mapped(g_.operand(p, 0))}, {}, line_);
    return n.shape == 0 ? base : r_.add(op::broadcast, {n.type, node_kind::pointer, g_.shape_of(o)}, {base}, {}, line_);
  }
  void known_here(int o) {
    home_[at(o)] = state_;
    scopes_.back().push_back(o);
  }
  /// Brings old node o into the present state, so that `mapped(o)` may be used.
  void use(int o) {
    if (o < 0 || !in_tasks(o)) return;
    node const& n = g_[o];
    if (n.code == op::alloc || n.kind == node_kind::cell || n.kind == node_kind::token || n.kind == node_kind::barrier) return;
    if (home_[at(o)] == state_) return;
    line_ = o;
    if (auto const index = index_cells_.find(o); index != index_cells_.end()) {
      r_.replace(o, get(index->second));
    } else if (n.code == op::constant || n.code == op::replica_id) {
      if (n.code == op::constant) r_.copy(o);
      else r_.replace(o, number(replica_));
    } else if (made_again(o)) {
      for (int x : g_.operands(o)) use(x);
      again(o);
    } else if (n.kind == node_kind::value || (n.code == op::var_get && n.kind == node_kind::pointer)) {
      cells_.insert({agent_of(o), o});
      if (dry_) r_.replace(o, initial(o));
      else r_.replace(o, get(value_cells_.at(o)));
    } else if (has(n.code, trait::pure)) { // addresses: made again
      for (int x : g_.operands(o)) use(x);
      r_.copy(o);
    } else {
      throw std::invalid_argument("line " + std::to_string(n.line) + ": " + std::string(name_of(n.code)) +
                                  " gives a pointer that is used after a wait; make it after the wait");
    }
    known_here(o);
  }
  virtual void again(int o) { r_.copy(o); }
  /// A node in a state, or outside tasks: everything that is no barrier and no structure to be taken apart.
  void plain(int i) {
    op const o = g_[i].code;
    line_ = i;
    if (in_tasks(i)) {
      if (o == op::alloc) return; // made before the region
      if (o == op::var) {
        if (g_[g_.operand(i, 0)].kind == node_kind::token) return;
        use(g_.operand(i, 0));
        set(r_.mapped(i), r_.mapped(g_.operand(i, 0)));
        return;
      }
      if (o == op::var_get && snapshots_.count(g_.operand(i, 0))) {
        int const s = snapshots_.at(g_.operand(i, 0));
        r_.replace(i, whole_ ? get(s) : s);
        known_here(i);
        keep(i);
        return;
      }
    }
    if (g_[i].kind == node_kind::token && o == op::var_get) return;
    if (o == op::var && g_[g_.operand(i, 0)].kind == node_kind::token) return;
    if (o == op::var_set && g_[g_.operand(i, 1)].kind == node_kind::token) return;
    if (o == op::async_commit || o == op::async_wait) return; // copies are there at once
    for (int x : g_.operands(i)) use(x);
    if (own(i)) {
      if (g_[i].kind != node_kind::none) known_here(i);
      return;
    }
    if (o == op::async_load) {
      int const from = g_.operand(i, 0);
      int const tile = r_.add(op::load, {g_[from].type, node_kind::value, g_.shape_of(from)}, {r_.mapped(from), r_.operand(i, 2), r_.operand(i, 3)},
                              {g_.attribute(i, 0), g_.attribute(i, 1), g_.attribute(i, 2)}, i);
      r_.add(op::local_store, {}, {r_.operand(i, 1), tile}, {}, i);
      return;
    }
    if (o == op::local_load || o == op::local_gather) { // without its token
      std::vector<std::int32_t> operands;
      for (int x : g_.operands(i)) operands.push_back(x >= 0 && g_[x].kind == node_kind::token ? -1 : r_.mapped(x));
      auto const a = g_.attributes_of(i);
      r_.replace(i, r_.add(o, type_of(i), operands, std::vector<std::int64_t>(a.begin(), a.end()), i));
    } else {
      r_.copy(i);
    }
    if (has(o, trait::opens)) scopes_.emplace_back();
    if (has(o, trait::middle) && o == op::if_else) {
      leave_scope();
      scopes_.emplace_back();
    }
    if (has(o, trait::closes)) leave_scope();
    if (g_[i].kind != node_kind::none && in_tasks(i)) {
      known_here(i);
      keep(i);
    }
  }
  /// Emits node i in its own way; false where it is copied.
  virtual bool own(int) { return false; }
  /// Stores what other states use.
  void keep(int i) {
    if (!dry_ && value_cells_.count(i)) set(value_cells_.at(i), r_.mapped(i));
  }

  // -- barriers ----------------------------------------------------------------------------------------------------------------
  struct slot {
    int pending, bytes, phase; ///< cells
  };
  struct named_state {
    int present = -1, generation = -1;
  };

  void alloc_barriers(int i) {
    line_ = i;
    for (int k = 0; k < g_.attribute(i, 0); ++k)
      barriers_[at(i)].push_back({new_cell(number(g_.attribute(i, 1))), new_cell(number(0)), new_cell(number(0))});
  }
  /// For every slot that barrier b can be: body(slot, whether it is the one; -1: it is).
  template <class F>
  void each_slot(int b, F body) {
    auto const& slots = barriers_[at(g_.operand(b, 0))];
    int const index = g_.operand(b, 1);
    use(index);
    if (g_[index].code == op::constant) {
      body(slots[at(static_cast<int>(g_.attribute(index, 0)))], -1);
      return;
    }
    dtype const t = g_[index].type;
    for (std::size_t k = 0; k < slots.size(); ++k)
      body(slots[k], slots.size() == 1 ? -1 : compare(op::eq, r_.mapped(index), r_.add_constant(make_scalar(t, static_cast<i64>(k)), {}, line_)));
  }
  /// `arrivals` come, `expected` bytes are to come, `come` have come (i32 nodes, or -1 for none); only where `when` holds.
  void arrive(int b, i64 arrivals, i64 expected, i64 come, int when) {
    int const alloc = g_.operand(b, 0);
    each_slot(b, [&](slot const& s, int chosen) {
      int here = chosen < 0 ? when : when < 0 ? chosen : both(chosen, when);
      int pending = compute(op::sub, get(s.pending), number(arrivals));
      int bytes = compute(op::add, get(s.bytes), number(expected - come));
      int const done = both(compare(op::eq, pending, number(0)), compare(op::eq, bytes, number(0)));
      int phase = get(s.phase);
      int flipped = select(done, compute(op::bit_xor, phase, number(1)), phase);
      pending = select(done, number(g_.attribute(alloc, 1)), pending);
      if (here >= 0) {
        pending = select(here, pending, get(s.pending));
        bytes = select(here, bytes, get(s.bytes));
        flipped = select(here, flipped, phase);
      }
      set(s.pending, pending);
      set(s.bytes, bytes);
      set(s.phase, flipped);
    });
  }
  int ready(int i) {
    int const b = g_.operand(i, 0);
    int phase = -1;
    each_slot(b, [&](slot const& s, int chosen) { phase = chosen < 0 || phase < 0 ? get(s.phase) : select(chosen, get(s.phase), phase); });
    use(g_.operand(i, 1));
    int can = compare(op::ne, phase, compute(op::bit_and, r_.mapped(g_.operand(i, 1)), number(1)));
    if (g_.operand(i, 2) >= 0) {
      use(g_.operand(i, 2));
      can = either(can, negated(r_.mapped(g_.operand(i, 2))));
    }
    return can;
  }
  int threads() const {
    int const warps = task_ < 0 ? 0 : static_cast<int>(g_.attribute(task_, 0));
    return 32 * (warps == 0 ? g_.attrs.num_warps : warps);
  }
  int predicate(int i, int j) {
    use(g_.operand(i, j));
    return r_.mapped(g_.operand(i, j));
  }
  void named_arrive(int i) { arrive(named_.at(static_cast<int>(g_.attribute(i, 0))), threads(), g_.attribute(i, 1)); }
  void arrive(named_state const& s, i64 count, i64 total) {
    int const present = compute(op::add, get(s.present), number(count));
    int const done = compare(op::ge, present, number(total));
    set(s.generation, select(done, compute(op::add, get(s.generation), number(1)), get(s.generation)));
    set(s.present, select(done, number(0), present));
  }
  /// Pointers to the `n` elements from the pointer that is operand 0 of node i on.
  int row_of(int i) {
    shape const& s = g_.shape_of(g_.operand(i, 1));
    dtype const t = g_[g_.operand(i, 0)].type;
    int const first = r_.add(op::broadcast, {t, node_kind::pointer, s}, {r_.mapped(g_.operand(i, 0))}, {}, i);
    int const lanes = r_.add(op::iota, {dtype::i32, node_kind::value, s}, {}, {0, 0}, i);
    return r_.add(op::ptr_add, {t, node_kind::pointer, s}, {first, lanes}, {}, i);
  }
  /// Everything of barriers and bulk copies but waits.
  virtual void barrier_operation(int i) {
    line_ = i;
    switch (g_[i].code) {
    case op::alloc_barriers: alloc_barriers(i); return;
    case op::barrier_arrive: {
      bool const each = g_.attribute(g_.operand(g_.operand(i, 0), 0), 2) != 0;
      arrive(g_.operand(i, 0), g_.attribute(i, 0) * (each ? threads() : 1), 0, 0, predicate(i, 1));
      return;
    }
    case op::barrier_expect_bytes: arrive(g_.operand(i, 0), 1, g_.attribute(i, 0), 0, predicate(i, 1)); return;
    case op::async_arrive: arrive(g_.operand(i, 0), threads(), 0, 0, -1); return;
    case op::named_barrier_arrive: named_arrive(i); return;
    case op::async_load_bulk: {
      int const when = predicate(i, 3);
      use(g_.operand(i, 0));
      use(g_.operand(i, 1));
      if (when >= 0) open_if(when);
      type const t{g_[g_.operand(i, 1)].type, node_kind::value, g_.shape_of(g_.operand(i, 1))};
      int const row = r_.add(op::load, t, {row_of(i), -1, -1}, {0, 0, 0}, i);
      r_.add(op::local_store, {}, {r_.mapped(g_.operand(i, 1)), row}, {}, i);
      if (when >= 0) close_if();
      arrive(g_.operand(i, 2), 0, 0, bytes_of(t.type, t.extents.elements()), when);
      return;
    }
    case op::async_store_bulk: {
      use(g_.operand(i, 0));
      use(g_.operand(i, 1));
      type const t{g_[g_.operand(i, 1)].type, node_kind::value, g_.shape_of(g_.operand(i, 1))};
      int const row = r_.add(op::local_load, t, {r_.mapped(g_.operand(i, 1)), -1}, {0}, i);
      r_.add(op::store, {}, {row_of(i), row, -1}, {0, 0}, i);
      return;
    }
    case op::fence:
      if (static_cast<fence>(g_.attribute(i, 0)) != fence::async_shared) r_.copy(i);
      return;
    default: return; // barrier_index, agent_sync, waits for stores: nothing is left of them
    }
  }
  /// Outside tasks: a wait that is not over is never over.
  void node_of_program(int i) {
    line_ = i;
    op const o = g_[i].code;
    if (!is_of_tasks(o)) return plain(i);
    if (o == op::barrier_wait) {
      r_.add(op::device_assert, {}, {ready(i)}, {deadlock()}, i);
    } else if (o == op::named_barrier_wait) {
      make_named();
      named_arrive(i);
    } else {
      if (o == op::named_barrier_arrive) make_named();
      barrier_operation(i);
    }
  }
  void make_named() {
    for (int i = 0; i < g_.size(); ++i)
      if (g_[i].code == op::named_barrier_wait || g_[i].code == op::named_barrier_arrive)
        if (named_state& s = named_[static_cast<int>(g_.attribute(i, 0))]; s.present < 0) s = {new_cell(number(0)), new_cell(number(0))};
  }

  // -- agents ------------------------------------------------------------------------------------------------------------------
  int new_state() { return last_state_++; }
  /// Opens the code of a state.
  void open_state(int s) {
    state_ = first_state_ + s;
    open_if(compare(op::eq, get(pc_), number(s)));
  }
  void go_to(int next) { set(pc_, next); }
  /// Ends the present state; next: an i32 node.
  void close_state(int next) {
    go_to(next);
    for (; blocks_ > 0; --blocks_) close_if();
    close_if();
  }
  void made_progress() { set(progress_, truth(true)); }

  virtual void body(int from, int to) {
    for (int i = from; i < to; ++i) {
      op const o = g_[i].code;
      line_ = i;
      if (has(o, trait::opens) && holds_wait_[at(i)]) {
        take_apart(i);
        i = end_of_[at(i)];
      } else if (has(o, trait::opens)) { // a region that never waits
        int const end = end_of_[at(i)];
        for (int k = i; k <= end; ++k)
          if (is_of_tasks(g_[k].code)) simple(k);
          else plain(k);
        i = end;
      } else if (waits(o, whole_)) {
        wait(i);
      } else if (is_of_tasks(o)) {
        simple(i);
      } else {
        plain(i);
      }
    }
  }
  virtual void simple(int i) {
    if (g_[i].code != op::replica_id) return barrier_operation(i);
    line_ = i;
    r_.replace(i, number(replica_));
    known_here(i);
  }
  /// The next state starts here, and goes on where the condition of the `open_if` between these two holds.
  void begin_wait(int i) {
    int const here = new_state();
    close_state(number(here));
    open_state(here);
    line_ = i;
  }
  void end_wait(int i) {
    blocks_ = 1;
    line_ = i;
    made_progress();
  }
  /// Arrives, and waits until `total` have.
  void meet(named_state const& s, i64 count, i64 total, int i) {
    set(generation_, get(s.generation));
    arrive(s, count, total);
    begin_wait(i);
    open_if(compare(op::ne, get(s.generation), get(generation_)));
    end_wait(i);
  }
  virtual void wait(int i) {
    line_ = i;
    if (g_[i].code == op::named_barrier_wait) return meet(named_.at(static_cast<int>(g_.attribute(i, 0))), threads(), g_.attribute(i, 1), i);
    begin_wait(i);
    open_if(ready(i));
    end_wait(i);
  }
  void take_apart(int i) {
    int const end = end_of_[at(i)];
    switch (g_[i].code) {
    case op::for_begin: {
      for (int j = 0; j < 3; ++j) use(g_.operand(i, j));
      line_ = i;
      int const index = index_cells_.at(i), hi = bound_cells_.at(i).first, step = bound_cells_.at(i).second;
      set(index, r_.mapped(g_.operand(i, 0)));
      set(hi, r_.mapped(g_.operand(i, 1)));
      set(step, r_.mapped(g_.operand(i, 2)));
      int const head = new_state(), inside = new_state(), behind = new_state();
      close_state(number(head));
      open_state(head);
      line_ = i;
      dtype const t = g_[i].type;
      int const zero = r_.add_constant(make_scalar(t, 0), {}, i);
      int const up = both(compare(op::gt, get(step), zero), compare(op::lt, get(index), get(hi)));
      int more = up;
      if (is_signed_int(t)) more = either(up, both(compare(op::lt, get(step), zero), compare(op::gt, get(index), get(hi))));
      made_progress();
      close_state(select(more, number(inside), number(behind)));
      open_state(inside);
      body(i + 1, end);
      line_ = end;
      set(index, r_.add(op::add, {t, node_kind::value, {}}, {get(index), get(step)}, {}, end));
      made_progress();
      close_state(number(head));
      open_state(behind);
      made_progress();
      return;
    }
    case op::while_begin: {
      auto const test = static_cast<int>(g_.attribute(i, 0));
      int const head = new_state(), inside = new_state(), behind = new_state();
      close_state(number(head));
      open_state(head);
      body(i + 1, test);
      use(g_.operand(test, 0));
      line_ = test;
      made_progress();
      close_state(select(r_.mapped(g_.operand(test, 0)), number(inside), number(behind)));
      open_state(inside);
      made_progress();
      body(test + 1, end);
      line_ = end;
      close_state(number(head));
      open_state(behind);
      made_progress();
      return;
    }
    default: { // if_begin
      auto const middle = static_cast<int>(g_.attribute(i, 0));
      use(g_.operand(i, 0));
      line_ = i;
      int const then = new_state(), otherwise = new_state(), behind = new_state();
      close_state(select(r_.mapped(g_.operand(i, 0)), number(then), number(middle < 0 ? behind : otherwise)));
      open_state(then);
      made_progress();
      body(i + 1, middle < 0 ? end : middle);
      line_ = end;
      close_state(number(behind));
      if (middle >= 0) {
        open_state(otherwise);
        made_progress();
        body(middle + 1, end);
        line_ = end;
        close_state(number(behind));
      }
      open_state(behind);
      made_progress();
    }
    }
  }

  /// Vars for the loops that are taken apart, and for what the task's states share.
  void agent_cells(int task) {
    index_cells_.clear();
    bound_cells_.clear();
    value_cells_.clear();
    snapshots_.clear();
    bool const trunk = g_.attribute(task, 0) == 0 && g_.attribute(task, 2) == 1;
    for (int i = task + 1; i < end_of_[at(task)]; ++i) node_cells(i, region_, !trunk);
  }
  /// Those that node i needs; where `copies`, a var from before node `outside` is read as it was when the task began.
  void node_cells(int i, int outside, bool copies) {
    {
      line_ = i;
      op const o = g_[i].code;
      home_[at(i)] = lost;
      auto zero = [&](int n) { return initial(n); };
      if (o == op::for_begin && holds_wait_[at(i)]) {
        index_cells_[i] = new_cell(zero(i));
        bound_cells_[i] = {new_cell(zero(i)), new_cell(zero(i))};
      }
      if (o == op::var) {
        int const first = g_.operand(i, 0);
        if (int const z = g_[first].kind == node_kind::token ? -1 : initial(first); z >= 0) r_.replace(i, new_cell(z));
        else if (g_[first].kind != node_kind::token)
          throw std::invalid_argument("line " + std::to_string(g_[i].line) + ": a var of pointers into no argument; keep an offset in it instead");
      }
      if (o == op::var_get && g_.operand(i, 0) < outside && copies && g_[i].kind != node_kind::token && !snapshots_.count(g_.operand(i, 0)))
        snapshots_[g_.operand(i, 0)] = whole_ ? new_cell(zero(i)) : get(r_.mapped(g_.operand(i, 0)));
      if (!dry_ && cells_.count({agent_, i})) value_cells_[i] = new_cell(zero(i));
    }
  }

  struct agent_state {
    int number, task, replica, pc, done, generation;
    std::map<int, int> index, value, snapshots;
    std::map<int, std::pair<int, int>> bounds;
    std::map<int, int> vars;
  };

  void tasks(int begin) {
    region_ = begin;
    line_ = begin;
    int const end = end_of_[at(begin)];
    make_named();
    for (int i = begin; i < end; ++i)
      if (g_[i].code == op::alloc) r_.copy(i);
    std::vector<agent_state> agents;
    for (int t = begin + 1; t < end; t = end_of_[at(t)] + 1)
      for (int k = 0; k < g_.attribute(t, 2); ++k) {
        line_ = t;
        agent_state a{agent_ = next_agent_++, t, k, new_cell(number(0)), 0, new_cell(number(0)), {}, {}, {}, {}, {}};
        agent_cells(t);
        a.index = index_cells_;
        a.bounds = bound_cells_;
        a.value = value_cells_;
        a.snapshots = snapshots_;
        for (int i = t + 1; i < end_of_[at(t)]; ++i)
          if (g_[i].code == op::var && g_[g_.operand(i, 0)].kind != node_kind::token) a.vars[i] = r_.mapped(i);
        agents.push_back(std::move(a));
      }
    line_ = begin;
    progress_ = new_cell(truth(true));
    int const live = new_cell(number(static_cast<i64>(agents.size())));
    r_.add(op::while_begin, {}, {}, {-1, -1}, begin);
    scopes_.emplace_back();
    int const go_on = both(compare(op::gt, get(live), number(0)), get(progress_));
    r_.add(op::while_test, {}, {go_on}, {-1}, begin);
    set(progress_, truth(false));
    for (agent_state& a : agents) {
      agent_ = a.number;
      task_ = a.task;
      replica_ = a.replica;
      pc_ = a.pc;
      generation_ = a.generation;
      index_cells_ = a.index;
      bound_cells_ = a.bounds;
      value_cells_ = a.value;
      snapshots_ = a.snapshots;
      for (auto const& [i, cell] : a.vars) r_.replace(i, cell);
      first_state_ += 1 << 16;
      last_state_ = 1;
      line_ = a.task;
      for (int i = a.task + 1; i < end_of_[at(a.task)]; ++i) home_[at(i)] = lost;
      open_state(0);
      made_progress();
      body(a.task + 1, end_of_[at(a.task)]);
      line_ = end_of_[at(a.task)];
      made_progress();
      set(live, compute(op::sub, get(live), number(1)));
      close_state(number(-1));
    }
    line_ = begin;
    r_.add(op::device_assert, {}, {either(get(progress_), compare(op::le, get(live), number(0)))},
           {deadlock()}, begin);
    r_.add(op::while_end, {}, {}, {-1}, begin);
    leave_scope();
    task_ = region_ = agent_ = -1;
    state_ = outside;
  }

  graph_view g_;
  detail::rewriter r_;
  std::set<std::pair<int, int>>& cells_; ///< agent, node
  bool dry_;
  bool whole_;
  std::vector<int> home_;                ///< of an old node: the state where `mapped` is good
  std::vector<std::vector<slot>> barriers_;
  std::vector<int> end_of_;
  std::vector<bool> holds_wait_;
  std::vector<std::vector<int>> scopes_; ///< nodes that became known in the open regions
  std::map<int, named_state> named_;
  std::map<int, int> index_cells_, value_cells_, snapshots_;
  std::map<int, std::pair<int, int>> bound_cells_;
  std::int64_t deadlock_ = -1; ///< index of its text
  int line_ = 0; ///< whose position new nodes have
  int region_ = -1, task_ = -1, agent_ = -1, replica_ = 0, next_agent_ = 0;
  int state_ = outside, first_state_ = 0, last_state_ = 0, blocks_ = 0;
  int pc_ = -1, generation_ = -1, progress_ = -1;
};

/// The program that S makes of g. What must live in vars shows while code is made: more of it each time, until nothing is new.
template <class S>
graph sequentialised(graph_view const& g) {
  std::set<std::pair<int, int>> cells;
  for (std::size_t before = 1; before != cells.size();) {
    before = cells.size();
    S(g, cells, true).run();
  }
  return S(g, cells, false).run();
}

} // namespace kiln::detail
