// The planner: scans the graph in program order, gathering roots into nests. A scan that finds a tile that must (or had
// better) be stored marks it and starts anew; each scan marks at least one more, so this ends.
#include "plan.hpp"

#include <algorithm>
#include <cassert>

namespace kiln::jit::host {

namespace {

bool is_reduction(op o) { return o == op::reduce || o == op::arg_reduce; }

bool always_stored(graph_view const& g, int n) { return brings_own_loops(g, n) || is_reduction(g[n].code); }

bool reads_memory(op o) { return o == op::load || o == op::var_get || o == op::local_load || o == op::local_gather; }

class planner {
public:
  explicit planner(graph_view const& view) : g(view), n_(g.size()) {
    loop_.assign(size(), -1);
    combine_.assign(size(), 0);
    uses_.assign(size(), 0);
    last_use_.assign(size(), -1);
    std::vector<int> open;
    bool inside = false;
    for (int i = 0; i < n_; ++i) {
      const op o = g[i].code;
      if (o == op::for_end || o == op::while_end) open.pop_back();
      loop_[at(i)] = open.empty() ? -1 : open.back();
      if (o == op::for_begin || o == op::while_begin) open.push_back(i);
      if (o == op::combine_begin) inside = true;
      combine_[at(i)] = inside;
      if (o == op::combine_end) inside = false;
      for (int x : g.operands(i))
        if (x >= 0) {
          ++uses_[at(x)];
          last_use_[at(x)] = i;
        }
    }
    forced_.assign(size(), 0);
    result_.in_place.assign(size(), -1);
    result_.var_of_set.assign(size(), -1);
    find_accumulators();
  }

  plan run() {
    int attempts = 0;
    do assert(++attempts <= n_ + 2 && "each scan stores one more node");
    while (!scan());
    (void)attempts;
    result_.kept.assign(size(), 0);
    for (int i = 0; i < n_; ++i) result_.kept[at(i)] = !combine_[at(i)] && is_tile(g, i) && kept(i) && result_.in_place[at(i)] < 0;
    lay_out_arena(g, result_, used_slices());
    return std::move(result_);
  }

private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  std::size_t size() const { return at(n_); }

  struct write {
    int position; // node
    enum space : std::uint8_t { global, local, cell } where;
    int object;  // parameter (-1: any), buffer, var node
    int address; // node of the address or view; -1: matches nothing
  };
  struct seen {
    int node;
    bool same; // at the coordinates of the nest
  };
  struct reads {
    std::vector<seen> lazy;   // recomputed here
    std::vector<seen> stored; // read from the arena
    std::vector<int> scalars;
    std::vector<char> mark; // 1: visited at other coordinates, 2: at the same
  };

  bool kept(int n) const { return forced_[at(n)] != 0 || always_stored(g, n); }

  // Tiles that cost nothing to evaluate anywhere.
  bool is_free(int n) const {
    for (;;) {
      if (g.shape_of(n).rank == 0) return true;
      switch (g[n].code) {
      case op::constant:
      case op::unset:
      case op::iota: return true;
      case op::broadcast: n = g.operand(n, 0); break;
      default: return false;
      }
    }
  }

  // Cost of evaluating one element of a tile where it is used.
  int cost(int n) {
    if (n < 0 || g.shape_of(n).rank == 0) return 0;
    if (kept(n)) return 1;
    int& memo = cost_[at(n)];
    if (memo >= 0) return memo;
    int sum = 0;
    switch (g[n].code) {
    case op::constant:
    case op::unset:
    case op::iota: break;
    case op::result: sum = 1; break;
    case op::broadcast:
    case op::multiple_of:
    case op::require_layout:
    case op::release_layout:
    case op::max_contiguous: sum = cost(g.operand(n, 0)); break;
    case op::gather:
    case op::local_gather: sum = 4 + cost(g.operand(n, 1)); break;
    case op::var_get:
    case op::local_load: sum = 1; break;
    case op::load:
      sum = 1;
      for (int x : g.operands(n))
        if (x >= 0 && is_tile(g, x)) sum += cost(x);
      break;
    case op::ptr_add:
      for (int x : g.operands(n)) sum += cost(x);
      break;
    default:
      sum = cost_of(g[n].code, g[n].type);
      if (g[n].code == op::cast || (bits_of(g[n].type) < 32 && is_float(g[n].type))) sum += 1;
      for (int x : g.operands(n)) sum += cost(x);
    }
    return memo = std::min(sum, 100000);
  }

  // A dot whose accumulator is a var that is set to its result and to nothing else meanwhile works in the var's slice.
  void find_accumulators() {
    for (int d = 0; d < n_; ++d) {
      if (g[d].code != op::dot || uses_[at(d)] != 1) continue;
      const int set = last_use_[at(d)], get = g.operand(d, 2);
      if (g[set].code != op::var_set || get < 0 || g[get].code != op::var_get) continue;
      const int v = g.operand(set, 0);
      if (g.operand(get, 0) != v || loop_[at(d)] != loop_[at(set)] || loop_[at(get)] != loop_[at(d)]) continue;
      bool quiet = true;
      for (int i = get + 1; i < set; ++i) {
        const op o = g[i].code;
        if (has(o, trait::opens) || has(o, trait::closes) || has(o, trait::middle)) quiet = false;
        if (o == op::var_set && g.operand(i, 0) == v) quiet = false;
        if (o == op::var_get && g.operand(i, 0) == v) quiet = false;
      }
      if (!quiet || uses_[at(get)] != 1) continue;
      result_.in_place[at(d)] = v;
      result_.var_of_set[at(set)] = v;
    }
  }

  bool force(int n) {
    if (kept(n)) return false;
    forced_[at(n)] = 1;
    again_ = true;
    return true;
  }

  // Shapes of access that want their operand in the arena, whatever the nests are.
  void force_by_shape() {
    for (int i = 0; i < n_; ++i) {
      if (combine_[at(i)]) continue;
      const node& x = g[i];
      const int s = x.operand_count > 0 ? g.operand(i, 0) : -1;
      if (s < 0 || !is_tile(g, s) || g[s].kind != node_kind::value) {
        if (x.code == op::device_print)
          for (int v : g.operands(i))
            if (is_tile(g, v) && g[v].code != op::result) forced_[at(v)] = 1;
        continue;
      }
      const bool direct = kept(s) || g[s].code == op::var_get || g[s].code == op::result || is_free(s);
      switch (x.code) {
      case op::gather:
      case op::split:
        if (!direct) forced_[at(s)] = 1;
        break;
      case op::reshape:
        if (!direct && !is_squeeze(g.shape_of(s), g.shape_of(i))) forced_[at(s)] = 1;
        if (!kept(s) && g[s].code == op::iota && !is_squeeze(g.shape_of(s), g.shape_of(i))) forced_[at(s)] = 1;
        break;
      case op::trans: {
        const shape& from = g.shape_of(s);
        const int lane = lane_axis_of(g.shape_of(i));
        const int source = static_cast<int>(g.attribute(i, lane));
        if (source != lane_axis_of(from) && !direct && g[s].code != op::local_load) forced_[at(s)] = 1;
        break;
      }
      case op::broadcast: {
        if (direct) break;
        const shape &from = g.shape_of(s), &to = g.shape_of(i);
        const int lane = lane_axis_of(to), source = lane - (to.rank - from.rank);
        const bool varies = source >= 0 && from.extent[source] > 1;
        const bool repeated = [&] {
          for (int d = 0; d < to.rank; ++d) {
            const int e = d - (to.rank - from.rank);
            if (to.extent[d] > 1 && (e < 0 || from.extent[e] == 1)) return true;
          }
          return false;
        }();
        if (repeated && cost(s) > (varies ? 4 : 8)) forced_[at(s)] = 1;
        break;
      }
      case op::device_print:
        for (int v : g.operands(i))
          if (is_tile(g, v) && g[v].code != op::result) forced_[at(v)] = 1;
        break;
      default: break;
      }
      if (x.code == op::load && g.attribute(i, 2) != 0) forced_[at(i)] = 1; // volatile: exactly once
    }
    // Long chains are cut: pulling is recursive, and a strip of hundreds of operations spills anyway.
    std::vector<int> depth(size(), 0);
    for (int i = 0; i < n_; ++i) {
      if (g[i].code == op::load && is_tile(g, i) && g.attribute(i, 2) != 0) forced_[at(i)] = 1;
      if (combine_[at(i)] || !is_tile(g, i) || kept(i)) continue;
      for (int x : g.operands(i))
        if (x >= 0) depth[at(i)] = std::max(depth[at(i)], depth[at(x)] + 1);
      if (depth[at(i)] <= 100 || g[i].kind != node_kind::value) continue;
      forced_[at(i)] = 1;
      depth[at(i)] = 0;
    }
  }

  // -- what a root reads
  // -----------------------------------------------------------------------------------------------

  void visit(int n, bool same, reads& r) {
    if (n < 0) return;
    const node& x = g[n];
    const char level = same ? 2 : 1;
    if (r.mark.empty()) r.mark.assign(size() * 1, 0);
    if (r.mark[at(n)] & level) return;
    r.mark[at(n)] = static_cast<char>(r.mark[at(n)] | level);
    if (x.kind == node_kind::region || x.kind == node_kind::view) {
      for (int o : g.operands(n)) visit(o, false, r);
      return;
    }
    if (x.kind == node_kind::array || x.kind == node_kind::buffers || x.kind == node_kind::cell) return;
    if (g.shape_of(n).rank == 0) {
      r.scalars.push_back(n);
      return;
    }
    if (kept(n)) {
      r.stored.push_back({n, same});
      return;
    }
    if (x.code == op::result) {
      r.stored.push_back({g.operand(n, 0), same});
      return;
    }
    r.lazy.push_back({n, same});
    switch (x.code) {
    case op::broadcast: visit(g.operand(n, 0), same && g.shape_of(g.operand(n, 0)) == g.shape_of(n), r); break;
    case op::reshape:
    case op::trans:
    case op::split: visit(g.operand(n, 0), false, r); break;
    case op::gather:
      visit(g.operand(n, 0), false, r);
      visit(g.operand(n, 1), same, r);
      break;
    case op::var_get: break;
    default:
      for (int o : g.operands(n)) visit(o, same, r);
    }
  }

  reads reads_of(root const& t) {
    reads r;
    const int n = t.node;
    if (t.what == role::keep) {
      // Its own value: as if it were not stored.
      const char was = forced_[at(n)];
      forced_[at(n)] = 0;
      visit(n, true, r);
      forced_[at(n)] = was;
    } else if (g[n].code == op::trans || g[n].code == op::join || g[n].code == op::scan || g[n].code == op::dot ||
               g[n].code == op::histogram || g[n].code == op::sort || g[n].code == op::topk ||
               (g[n].code == op::reduce && brings_own_loops(g, n))) {
      const bool in_place = g[n].code == op::dot && result_.in_place[at(n)] >= 0;
      for (int j = 0; j < g[n].operand_count; ++j)
        if (!(in_place && j == 2)) visit(g.operand(n, j), false, r);
    } else {
      for (int o : g.operands(n)) visit(o, true, r);
    }
    return r;
  }

  // -- hazards
  // ---------------------------------------------------------------------------------------------------------

  struct memory {
    write::space where;
    int object, address;
  };
  memory read_by(int n) const {
    switch (g[n].code) {
    case op::load: return {write::global, memory_root(g, g.operand(n, 0)), g.operand(n, 0)};
    case op::var_get: return {write::cell, g.operand(n, 0), -1};
    default: return {write::local, storage_of_view(g.operand(n, 0)), g.operand(n, 0)};
    }
  }
  // Buffers that share storage are one object.
  int storage_of_view(int view) const { return g.storage_of(g.buffer_of(view)); }
  bool may_touch(memory const& m, write const& w) const {
    if (m.where != w.where) return false;
    if (m.where != write::global) return m.object == w.object;
    if (m.object < 0 || w.object < 0 || m.object == w.object) return true;
    return !g.attrs.no_alias && !g.params[at(m.object)].is_const;
  }
  // Whether a read at the nest's coordinates and a later write of the same nest cannot meet at different coordinates.
  bool in_step(memory const& m, write const& w, bool same) const {
    if (m.where == write::cell) return same;
    if (m.where == write::global && m.object != w.object && m.object >= 0 && w.object >= 0) return true;
    return same && w.address >= 0 && same_expression(g, m.address, w.address);
  }

  static bool writes_something(role r) { return r == role::store || r == role::local_store || r == role::var_set; }

  void writes_of(root const& t, std::vector<write>& out) const {
    const int n = t.node;
    switch (g[n].code) {
    case op::store:
    case op::atomic_rmw:
    case op::atomic_cas:
      out.push_back({n, write::global, memory_root(g, g.operand(n, 0)), g[n].code == op::store ? g.operand(n, 0) : -1});
      break;
    case op::local_store: out.push_back({n, write::local, storage_of_view(g.operand(n, 0)), g.operand(n, 0)}); break;
    case op::local_scatter: out.push_back({n, write::local, storage_of_view(g.operand(n, 0)), -1}); break;
    case op::async_load: out.push_back({n, write::local, storage_of_view(g.operand(n, 1)), g.operand(n, 1)}); break;
    case op::var_set: out.push_back({n, write::cell, g.operand(n, 0), -1}); break;
    case op::var: out.push_back({n, write::cell, n, -1}); break;
    case op::dot:
      if (const int v = result_.in_place[at(n)]; v >= 0) out.push_back({n, write::cell, v, -1});
      break;
    default: break;
    }
  }

  // -- the scan
  // --------------------------------------------------------------------------------------------------------

  // The nest that is being gathered.
  struct pending {
    nest it;
    std::vector<seen> lazy;
    std::vector<write> writes;
    bool any = false, fixed_across = false;
  } open_;

  void flush() {
    if (!open_.any) return;
    for (const write& w : open_.writes) done_.push_back(w);
    const int id = static_cast<int>(result_.nests.size());
    for (const seen& s : open_.lazy) {
      note_pull(s.node, id);
      open_.it.cost = std::max(open_.it.cost, 0);
    }
    for (const root& t : open_.it.roots) open_.it.cost += cost_of_root(t);
    result_.nests.push_back(std::move(open_.it));
    result_.steps.push_back({step::nest, id});
    open_ = {};
  }

  int cost_of_root(root const& t) {
    int sum = 1;
    if (t.what == role::keep) {
      const char was = forced_[at(t.node)];
      forced_[at(t.node)] = 0;
      cost_[at(t.node)] = -1;
      sum += cost(t.node);
      cost_[at(t.node)] = -1;
      forced_[at(t.node)] = was;
      return sum;
    }
    for (int o : g.operands(t.node))
      if (o >= 0 && is_tile(g, o)) sum += cost(o);
    return sum;
  }

  void note_pull(int n, int nest_id) {
    if (last_nest_[at(n)] == nest_id) return;
    last_nest_[at(n)] = nest_id;
    ++pulls_[at(n)];
  }

  // Reads that have come too late (something may have written since), or cross into a loop: store them at their place.
  void check_reads(root const& t, reads const& r) {
    for (const seen& s : r.lazy) {
      if (s.node == t.node) continue;
      const op o = g[s.node].code;
      if (loop_[at(s.node)] != loop_[at(t.node)] && !is_free(s.node) && g[s.node].kind == node_kind::value &&
          (reads_memory(o) || cost(s.node) > 4))
        force(s.node);
      if (!reads_memory(o)) continue;
      const memory m = read_by(s.node);
      for (const write& w : done_)
        if (w.position > s.node && may_touch(m, w)) force(s.node);
      if (loop_[at(s.node)] != loop_[at(t.node)]) force(s.node);
    }
  }

  static shape space_of(graph_view const& g, root const& t) {
    switch (t.what) {
    case role::keep: return g.shape_of(t.node);
    case role::var_set: return g.shape_of(g[t.node].code == op::var ? g.operand(t.node, 0) : g.operand(t.node, 1));
    case role::local_store:
      return g.shape_of(g[t.node].code == op::async_load ? g.operand(t.node, 1) : g.operand(t.node, 0));
    default: return g.shape_of(g.operand(t.node, 0));
    }
  }

  // The axis that a reduction wants innermost although it is not the lanes'; -1: none.
  int across_of(root const& t, shape const& space) const {
    if (t.what != role::reduce) return -1;
    const int axis = static_cast<int>(g.attribute(t.node, 1));
    return axis >= 0 && axis != lane_axis_of(space) ? axis : -1;
  }
  bool needs_natural_order(root const& t, shape const& space) const {
    return t.what == role::reduce && g.attribute(t.node, 1) == lane_axis_of(space);
  }

  int bits_of_root(root const& t, reads const& r) const {
    int bits = 8;
    auto widen = [&](dtype d) { bits = std::max(bits, compute_bits(d)); };
    for (const seen& s : r.lazy) {
      const node& x = g[s.node];
      if (x.kind != node_kind::value) continue;
      if (reads_memory(x.code) || is_float(x.type)) widen(x.type);
    }
    for (int o : g.operands(t.node))
      if (o >= 0 && g[o].kind == node_kind::value && g.shape_of(o).rank > 0 && !is_bool(g[o].type)) widen(g[o].type);
    if (t.what == role::keep && g[t.node].kind == node_kind::value) widen(g[t.node].type);
    if (t.what == role::keep && g[t.node].kind == node_kind::pointer) bits = 64;
    if (g[t.node].code == op::async_load) widen(g[g.operand(t.node, 1)].type);
    return bits;
  }

  bool can_join(root const& t, reads const& r, shape const& space, std::vector<write> const& writes) {
    pending& p = open_;
    if (!(p.it.space == space) || p.it.roots.size() >= 8) return false;
    const int across = across_of(t, space);
    if (across >= 0 && p.fixed_across && p.it.across != across) return false;
    if (across < 0 && needs_natural_order(t, space) && p.fixed_across && p.it.across >= 0) return false;
    if (across >= 0 && p.fixed_across && p.it.across < 0) return false;
    auto in_open = [&](int n) { return std::ranges::any_of(p.it.roots, [&](root const& o) { return o.node == n; }); };
    for (int s : r.scalars)
      if (depends_on_open(s)) return false;
    for (const seen& s : r.stored)
      if (in_open(s.node) && !(s.same && !is_reduction(g[s.node].code))) return false;
    // Reads of the newcomer after writes of the nest.
    for (const seen& s : r.lazy)
      if (reads_memory(g[s.node].code))
        for (const write& w : p.writes) {
          const memory m = read_by(s.node);
          if (!may_touch(m, w)) continue;
          if (w.position < s.node || !in_step(m, w, s.same)) return false;
        }
    // Writes of the newcomer after reads and writes of the nest.
    for (const write& w : writes) {
      for (const seen& s : p.lazy)
        if (reads_memory(g[s.node].code) && may_touch(read_by(s.node), w) && !in_step(read_by(s.node), w, s.same))
          return false;
      for (const write& v : p.writes) {
        if (v.where != w.where || v.where == write::cell) {
          if (v.where == w.where && v.object == w.object) return false;
          continue;
        }
        const memory m{v.where, v.object, v.address};
        if (may_touch(m, w) && v.object == w.object && !(v.address >= 0 && same_expression(g, v.address, w.address)))
          return false;
        if (may_touch(m, w) && v.object != w.object && w.where == write::global) return false;
      }
    }
    return true;
  }

  bool depends_on_open(int scalar) const {
    if (!open_.any) return false;
    auto in_open = [&](int n) {
      return std::ranges::any_of(open_.it.roots, [&](root const& o) { return o.node == n; });
    };
    if (in_open(scalar)) return true;
    return g[scalar].code == op::result && in_open(g.operand(scalar, 0));
  }

  void add_root(root t) {
    const reads r = reads_of(t);
    std::vector<write> writes;
    writes_of(t, writes);
    // A read of the root itself that its own write would overtake.
    for (const seen& s : r.lazy)
      if (reads_memory(g[s.node].code))
        for (const write& w : writes)
          if (may_touch(read_by(s.node), w) && !in_step(read_by(s.node), w, s.same)) force(s.node);
    const bool own = t.what != role::keep && brings_own_loops(g, t.node);
    if (own) {
      flush();
      check_reads(t, r);
      const int id = static_cast<int>(result_.nests.size());
      for (const seen& s : r.lazy) note_pull(s.node, id);
      nest it;
      it.own = true;
      it.bits = bits_of_root(t, r);
      for (int o : g.operands(t.node))
        if (o >= 0 && is_tile(g, o)) it.cost += cost(o);
      it.roots.push_back(t);
      result_.nests.push_back(std::move(it));
      result_.steps.push_back({step::nest, id});
      for (const write& w : writes) done_.push_back(w);
      return;
    }
    const shape space = space_of(g, t);
    if (open_.any && !can_join(t, r, space, writes)) flush();
    check_reads(t, r); // against what is written before this nest, which a flush has just decided
    pending& p = open_;
    if (!p.any) {
      p.any = true;
      p.it.space = space;
      p.it.lane_axis = lane_axis_of(space);
      p.it.bits = 8;
    }
    if (const int across = across_of(t, space); across >= 0) {
      p.it.across = across;
      p.fixed_across = true;
    } else if (needs_natural_order(t, space)) {
      p.fixed_across = true;
    }
    p.it.bits = std::max(p.it.bits, bits_of_root(t, r));
    p.it.roots.push_back(t);
    p.lazy.insert(p.lazy.end(), r.lazy.begin(), r.lazy.end());
    p.writes.insert(p.writes.end(), writes.begin(), writes.end());
  }

  void scalar_step(int n) {
    const op o = g[n].code;
    bool must = false;
    for (int x : g.operands(n)) {
      if (x < 0) continue;
      if (depends_on_open(x)) must = true;
      if (is_tile(g, x)) { // one element of a tile: read from the arena
        must = true;
        if (g[x].code != op::result) force(x);
      }
    }
    if (open_.any) {
      if (o == op::load || o == op::store || o == op::atomic_rmw || o == op::atomic_cas || o == op::device_assert ||
          o == op::device_print || o == op::sync || has(o, trait::async))
        must = true;
    }
    if (must) flush();
    result_.steps.push_back({step::scalar, n});
    if (o == op::store || o == op::atomic_rmw || o == op::atomic_cas)
      done_.push_back({n, write::global, memory_root(g, g.operand(n, 0)), -1});
  }

  void relieve(int n, int by, std::vector<char>& seen) {
    for (int x : g.operands(n)) {
      if (x < 0 || g.shape_of(x).rank == 0 || kept(x) || seen[at(x)]) continue;
      seen[at(x)] = 1;
      pulls_[at(x)] -= by;
      relieve(x, by, seen);
    }
  }

  bool scan() {
    again_ = false;
    result_.steps.clear();
    result_.nests.clear();
    done_.clear();
    open_ = {};
    cost_.assign(size(), -1);
    pulls_.assign(size(), 0);
    last_nest_.assign(size(), -1);
    force_by_shape();
    cost_.assign(size(), -1);
    for (int i = 0; i < n_; ++i) {
      const node& x = g[i];
      if (combine_[at(i)]) continue;
      if (has(x.code, trait::opens) || has(x.code, trait::middle) || has(x.code, trait::closes)) {
        flush();
        result_.steps.push_back({step::structure, i});
        continue;
      }
      switch (x.code) {
      case op::fence: // nothing moves across it
        flush();
        result_.steps.push_back({step::structure, i});
        continue;
      case op::region:
      case op::alloc:
      case op::view_index:
      case op::view_trans:
      case op::view_slice:
      case op::view_reshape: continue;
      case op::async_load: add_root({i, role::local_store}); continue;
      case op::async_commit:
      case op::async_wait:
      case op::sync:
      case op::assert_layout:
      case op::dump_layout:
      case op::tensor_alloc:
      case op::tensor_dealloc:
      case op::assume:
      case op::prefetch: continue;
      case op::store:
        if (g.shape_of(g.operand(i, 0)).rank == 0) scalar_step(i);
        else add_root({i, role::store});
        continue;
      case op::local_store: add_root({i, role::local_store}); continue;
      case op::local_scatter: add_root({i, role::store}); continue;
      case op::device_print: add_root({i, role::store}); continue;
      case op::device_assert:
        if (g.shape_of(g.operand(i, 0)).rank == 0) scalar_step(i);
        else add_root({i, role::check});
        continue;
      case op::var:
      case op::var_set: {
        if (result_.var_of_set[at(i)] >= 0) continue;
        const int v = g.operand(i, x.code == op::var ? 0 : 1);
        if (g[v].kind == node_kind::token) continue;
        if (is_tile(g, v)) add_root({i, role::var_set});
        else scalar_step(i);
        continue;
      }
      default: break;
      }
      if (x.kind == node_kind::token || x.kind == node_kind::array || x.kind == node_kind::none) {
        if (x.code == op::param) scalar_step(i);
        continue;
      }
      if (is_reduction(x.code) && !brings_own_loops(g, i)) {
        add_root({i, role::reduce});
        continue;
      }
      if (brings_own_loops(g, i) && !(x.code == op::atomic_rmw || x.code == op::atomic_cas)) {
        add_root({i, role::reduce});
        continue;
      }
      if ((x.code == op::atomic_rmw || x.code == op::atomic_cas) && g.shape_of(i).rank > 0) {
        add_root({i, role::store});
        continue;
      }
      if (g.shape_of(i).rank == 0) {
        scalar_step(i);
        continue;
      }
      if (forced_[at(i)] && !always_stored(g, i) && x.code != op::result) add_root({i, role::keep});
    }
    flush();
    if (again_) return false;
    // Recompute or store: the last one first, since storing it may leave nothing to recompute of those before. What it is
    // made from is then pulled once for it instead of once for each of its uses; the next scan counts exactly.
    bool settled = true;
    for (int i = n_ - 1; i >= 0; --i) {
      if (pulls_[at(i)] < 2 || g[i].kind != node_kind::value || kept(i) || is_free(i)) continue;
      const int extra = pulls_[at(i)] - 1;
      if (extra * cost(i) <= 4 + extra) continue;
      std::vector<char> seen(size());
      relieve(i, extra, seen);
      forced_[at(i)] = 1;
      settled = false;
    }
    if (!settled) return false;
    return true;
  }

  // The nodes whose slices each nest uses: tiles, vars, buffers.
  std::vector<std::vector<int>> used_slices() {
    std::vector<std::vector<int>> used(result_.nests.size());
    for (std::size_t i = 0; i < used.size(); ++i)
      for (const root& t : result_.nests[i].roots) {
        auto use = [&](int node) { used[i].push_back(node); };
        auto use_buffer = [&](int view) { use(g.buffers[at(storage_of_view(view))].node); };
        const reads r = reads_of(t);
        use(t.node);
        for (const seen& x : r.stored) use(x.node);
        for (const seen& x : r.lazy) {
          const op o = g[x.node].code;
          if (o == op::var_get) use(g.operand(x.node, 0));
          if (o == op::local_load || o == op::local_gather) use_buffer(g.operand(x.node, 0));
        }
        const op o = g[t.node].code;
        if (o == op::var_set) use(g.operand(t.node, 0));
        if (o == op::local_store || o == op::local_scatter) use_buffer(g.operand(t.node, 0));
        if (o == op::async_load) use_buffer(g.operand(t.node, 1));
        if (o == op::dot) {
          if (result_.in_place[at(t.node)] >= 0) use(result_.in_place[at(t.node)]);
          for (int j = 0; j < 2; ++j)
            if (g[g.operand(t.node, j)].kind == node_kind::view) use_buffer(g.operand(t.node, j));
        }
      }
    return used;
  }

  graph_view const& g;
  int n_;
  plan result_;
  std::vector<int> loop_, uses_, last_use_, cost_, pulls_, last_nest_;
  std::vector<char> combine_, forced_;
  std::vector<write> done_;
  bool again_ = false;
};

} // namespace

plan make_plan(graph_view const& g) { return planner(g).run(); }

} // namespace kiln::jit::host
