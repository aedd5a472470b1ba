// What the hazard simulation executes: a kernel graph with everything sliced away that neither touches local memory nor
// decides when and where local memory is touched. Scalar nodes become instructions on a register file, regions become
// jumps, views become boxes of atoms.
//
// An atom is the unit of memory that the simulation tracks: a whole slot of a buffer, or, where views cut a slot into parts, a
// cell of the grid that all cuts together make.
//
// Values that only a launch knows (parameters, extents, program_id) are symbols. Those that bound loops receive numbers, so
// that the loop runs as often as the simulation wants and a guard such as `i + 3 < steps` is decided exactly; conditions on
// the others are explored both ways.
#pragma once
#include <kiln/graph/local_layout.hpp>
#include <kiln/validate/sim_program.hpp>
#include <kiln/graph/cluster.hpp>
#include <kiln/validate/static_mask.hpp>

namespace kiln::detail {

/// Makes the program of a verified graph. O(nodes).
class slicer {
public:
  constexpr slicer(graph_view const& g, sim_program& p) : g_(g), p_(p) {}

  /// False when the kernel has nothing to simulate.
  constexpr bool run() {
    if (!scan()) return false;
    mark();
    number();
    choose_symbols();
    emit();
    cut();
    repeat();
    return true;
  }

  // For the simulation's use after `run`.
  constexpr int parent(int i) const { return parent_[i]; }
  constexpr int value_number(int i) const { return number_[i]; }
  constexpr int register_of(int i) const { return register_[i]; }
  constexpr std::int64_t constant(int i) const { return folded_[i]; }
  constexpr bool varies(int i) const { return varies_[i]; }
  /// `scale * root + offset`, where root is no longer of that form.
  constexpr affine affine_of(int i) const {
    affine f{i, 1, 0};
    for (;;) {
      if (folded_[f.root] != unknown) return {-1, 0, f.scale * folded_[f.root] + f.offset};
      node const& n = g_[f.root];
      int const a = n.operand_count > 0 ? g_.operand(f.root, 0) : -1, b = n.operand_count > 1 ? g_.operand(f.root, 1) : -1;
      std::int64_t const ca = a >= 0 && needed_[a] ? folded_[a] : unknown, cb = b >= 0 && needed_[b] ? folded_[b] : unknown;
      switch (n.code) {
      case op::add:
        if (cb != unknown) {
          f.offset += f.scale * cb;
          f.root = a;
          continue;
        }
        if (ca != unknown) {
          f.offset += f.scale * ca;
          f.root = b;
          continue;
        }
        return f;
      case op::sub:
        if (cb != unknown) {
          f.offset -= f.scale * cb;
          f.root = a;
          continue;
        }
        if (ca != unknown) {
          f.offset += f.scale * ca;
          f.scale = -f.scale;
          f.root = b;
          continue;
        }
        return f;
      case op::mul:
        if (cb != unknown && cb != 0 && cb < 0x10000 && cb > -0x10000) {
          f.scale *= cb;
          f.root = a;
          continue;
        }
        if (ca != unknown && ca != 0 && ca < 0x10000 && ca > -0x10000) {
          f.scale *= ca;
          f.root = b;
          continue;
        }
        return f;
      case op::neg: f.scale = -f.scale; f.root = a; continue;
      case op::cast:
        if (!is_int(g_[a].type)) return f;
        f.root = a;
        continue;
      case op::multiple_of: case op::max_contiguous: f.root = a; continue;
      default: return f;
      }
    }
  }

private:
  static constexpr bool touches(op o) {
    return o == op::local_load || o == op::local_store || o == op::local_gather || o == op::local_scatter || o == op::async_load ||
           o == op::async_commit || o == op::async_wait || (o >= op::barrier_wait && o <= op::async_store_wait && o != op::agent_sync) || (o >= op::remote_store && o <= op::fence_barrier_init);
  }
  constexpr bool is_event(int i) const {
    if (touches(g_[i].code)) return true;
    return g_[i].code == op::dot && (g_[g_.operand(i, 0)].kind == node_kind::view || g_[g_.operand(i, 1)].kind == node_kind::view);
  }

  /// Regions, assignments of each var, and whether there is anything to do.
  constexpr bool scan() {
    int const n = g_.size();
    parent_.resize(n, -1);
    next_set_.resize(n, -1);
    first_set_.resize(n, -1);
    needed_.resize(n, false);
    kept_.resize(n, false);
    int open = -1;
    bool any = false;
    for (int i = 0; i < n; ++i) {
      op const o = g_[i].code;
      if (o == op::for_end || o == op::if_end || o == op::while_end || o == op::combine_end || o == op::task_end || o == op::tasks_end) {
        parent_[i] = open;
        open = parent_[open];
        continue;
      }
      parent_[i] = open;
      if (o == op::for_begin || o == op::if_begin || o == op::while_begin || o == op::combine_begin || o == op::task_begin || o == op::tasks_begin)
        open = i;
      else if (o == op::var_set) {
        int const cell = g_.operand(i, 0);
        next_set_[i] = first_set_[cell];
        first_set_[cell] = i;
      } else if (is_event(i)) {
        any = true;
      }
    }
    return any;
  }

  /// What the accesses need: regions around them, slots, conditions, bounds, and so on backwards.
  constexpr void mark() {
    for (int i = 0; i < g_.size(); ++i) {
      op const o = g_[i].code;
      if (o == op::assume) { // a promise about launches; it must not bring in anything new but its operands
        assumes_.add() = i;
        continue;
      }
      if (!is_event(i)) continue;
      kept_[i] = true;
      keep_regions(parent_[i]);
      if (o == op::async_commit || o == op::async_wait) {
        if (o == op::async_wait)
          for (std::int32_t t : g_.operands(i))
            if (t >= 0) need(t);
        continue;
      }
      if ((o >= op::barrier_wait && o <= op::async_store_wait) || o >= op::remote_store) {
        need_meeting(i);
        continue;
      }
      if (o == op::dot) {
        for (int j = 0; j < 2; ++j)
          if (g_[g_.operand(i, j)].kind == node_kind::view) need_view(g_.operand(i, j));
      } else {
        need_view(g_.operand(i, o == op::async_load ? 1 : 0));
      }
    }
    drain();
    for (int i = 0; i < assumes_.size(); ++i) {
      need(g_.operand(assumes_[i], 0));
      kept_[assumes_[i]] = true;
      keep_regions(parent_[assumes_[i]]);
    }
    drain();
  }
  constexpr void keep_regions(int r) {
    while (r >= 0 && !kept_[r]) {
      kept_[r] = true;
      node const& n = g_[r];
      if (n.code == op::while_begin)
        need(g_.operand(static_cast<int>(g_.attribute(r, 0)), 0));
      else
        for (std::int32_t o : g_.operands(r)) need(o);
      r = parent_[r];
    }
  }
  constexpr void need_meeting(int i) {
    for (std::int32_t o : g_.operands(i)) {
      if (o < 0) continue;
      node const& n = g_[o];
      if (n.kind == node_kind::view)
        need_view(o);
      else if (n.kind == node_kind::barrier) {
        need(g_.operand(o, 1));
        if (n.code == op::remote_barrier) need(g_.operand(g_.operand(o, 0), 1));
      } else if (n.kind == node_kind::value && n.shape == 0)
        need(o); // parity, predicate, rank
    }
  }
  constexpr void need_view(int v) {
    while (g_[v].code != op::alloc) {
      for (int j = 1; j < g_[v].operand_count; ++j) need(g_.operand(v, j));
      v = g_.operand(v, 0);
    }
  }
  constexpr void need(int i) {
    if (needed_[i]) return;
    needed_[i] = true;
    work_.add() = i;
  }
  constexpr void drain() {
    while (!work_.empty()) {
      int const i = work_[work_.size() - 1];
      work_.pop();
      node const& n = g_[i];
      if (n.code == op::var_get || n.code == op::var) {
        int const cell = n.code == op::var ? i : g_.operand(i, 0);
        need(cell);
        if (n.code == op::var) {
          need(g_.operand(i, 0));
          for (int s = first_set_[cell]; s >= 0; s = next_set_[s]) {
            kept_[s] = true;
            need(g_.operand(s, 1));
            keep_regions(parent_[s]);
          }
        }
      } else if (is_root(i)) {
        continue;
      } else if (n.code == op::for_begin) {
        keep_regions(i);
      } else if (n.kind != node_kind::token) {
        for (std::int32_t o : g_.operands(i)) need(o);
      }
    }
  }
  /// A scalar that comes from outside the program: a parameter, memory, floating arithmetic.
  constexpr bool is_root(int i) const {
    node const& n = g_[i];
    if (n.kind == node_kind::token || n.code == op::constant || n.code == op::for_begin || n.code == op::var || n.code == op::var_get ||
        n.code == op::replica_id || n.code == op::cluster_rank || cluster_axis(i) >= 0)
      return false;
    if (n.kind != node_kind::value || n.shape != 0 || !(is_int(n.type) || is_bool(n.type)) || !evaluates(n.code)) return true;
    for (std::int32_t o : g_.operands(i))
      if (g_[o].shape != 0 || !(is_int(g_[o].type) || is_bool(g_[o].type))) return true;
    return false;
  }
  /// The axis of the cluster along which node i, `program_id(axis) % extent`, says where the CTA is; -1: it is something else.
  constexpr int cluster_axis(int i) const {
    node const& n = g_[i];
    if (g_.attrs.cluster == dims{} || (n.code != op::rem && n.code != op::bit_and)) return -1;
    node const &a = g_[g_.operand(i, 0)], &b = g_[g_.operand(i, 1)];
    if (a.code != op::program_id || b.code != op::constant) return -1;
    int const axis = static_cast<int>(g_.attribute(g_.operand(i, 0), 0));
    std::int64_t const extent = axis == 0 ? g_.attrs.cluster.x : axis == 1 ? g_.attrs.cluster.y : g_.attrs.cluster.z;
    std::int64_t const by = g_.attribute(g_.operand(i, 1), 0) + (n.code == op::bit_and);
    return by == extent && (n.code == op::rem || (extent & (extent - 1)) == 0) ? axis : -1;
  }
  /// Different at each execution, so that two mentions are two values.
  static constexpr bool fresh(op o) { return !has(o, trait::pure) || o == op::combine_arg || o == op::dot; }

  /// Value numbers (equal expressions have equal ones), constants, and what depends on a loop or a var.
  constexpr void number() {
    int const n = g_.size();
    number_.resize(n, -1);
    folded_.resize(n, unknown);
    varies_.resize(n, false);
    int buckets = 16;
    for (int i = 0; i < n; ++i)
      if (needed_[i]) ++buckets;
    bucket_.resize(buckets, -1);
    chain_.resize(n, -1);
    for (int i = 0; i < n; ++i) {
      if (!needed_[i]) continue;
      node const& x = g_[i];
      number_[i] = i;
      if (x.code == op::constant) {
        folded_[i] = wrap(x.type, g_.attribute(i, 0));
      } else if (x.code == op::for_begin || x.code == op::var || x.code == op::var_get || x.kind == node_kind::token || x.code == op::replica_id || x.code == op::cluster_rank || cluster_axis(i) >= 0) {
        varies_[i] = true;
        continue;
      } else if (is_root(i)) {
        if (fresh(x.code)) {
          varies_[i] = parent_[i] >= 0;
          continue;
        }
        for (std::int32_t o : g_.operands(i)) // a root of roots, a reduction say: equal only when it is the same node
          if (o >= 0 && g_[o].kind != node_kind::array) varies_[i] = true;
        if (varies_[i]) {
          varies_[i] = parent_[i] >= 0;
          continue;
        }
      } else {
        std::int64_t v[3]{0, 0, 0};
        for (int j = 0; j < x.operand_count && j < 3; ++j) {
          v[j] = folded_[g_.operand(i, j)];
          if (varies_[g_.operand(i, j)]) varies_[i] = true;
        }
        folded_[i] = evaluate(x.code, g_[g_.operand(i, 0)].type, x.type, v[0], v[1], v[2]);
        if (x.code == op::where && v[0] == unknown) folded_[i] = unknown;
      }
      std::uint32_t h = static_cast<std::uint32_t>(x.code) * 31u + static_cast<std::uint32_t>(x.type);
      int const attributes = attribute_count(x.code);
      for (int j = 0; j < attributes; ++j) h = h * 31u + static_cast<std::uint32_t>(g_.attribute(i, j));
      for (std::int32_t o : g_.operands(i)) h = h * 31u + static_cast<std::uint32_t>(operand_number(o));
      int& head = bucket_[static_cast<int>(h % static_cast<std::uint32_t>(buckets))];
      int same = head;
      while (same >= 0 && !equal(i, same, attributes)) same = chain_[same];
      if (same >= 0) {
        number_[i] = same;
      } else {
        chain_[i] = head;
        head = i;
      }
    }
  }
  constexpr int operand_number(int o) const { return o >= 0 && needed_[o] ? number_[o] : o; }
  constexpr bool equal(int a, int b, int attributes) const {
    node const &x = g_[a], &y = g_[b];
    if (x.code != y.code || x.type != y.type || x.operand_count != y.operand_count) return false;
    for (int j = 0; j < attributes; ++j)
      if (g_.attribute(a, j) != g_.attribute(b, j)) return false;
    for (int j = 0; j < x.operand_count; ++j)
      if (operand_number(g_.operand(a, j)) != operand_number(g_.operand(b, j))) return false;
    return true;
  }

  /// Loops with runtime bounds, and the symbols that decide them: the roots of the bounds. Roots that are made of a common
  /// scalar, `n` and `n / 2` say, are no symbols of their own; that scalar is.
  constexpr void choose_symbols() {
    symbol_.resize(g_.size(), -1);
    vec<std::int32_t> roots;
    for (int i = 0; i < g_.size(); ++i) {
      if (!kept_[i] || g_[i].code != op::for_begin) continue;
      bool fixed = true;
      for (int j = 0; j < 3; ++j) {
        affine const f = affine_of(g_.operand(i, j));
        if (f.root < 0) continue;
        fixed = false;
        bool known = varies_[f.root];
        for (int k = 0; k < roots.size() && !known; ++k) known = roots[k] == number_[f.root];
        if (!known) roots.add() = number_[f.root];
      }
      if (fixed) continue;
      free_loop& l = p_.loops.add();
      l.node = i;
      l.outer = false;
      if (!needed_[i])
        for (int e = i + 1, end = static_cast<int>(g_.attribute(i, 0)); e < end && !l.outer; ++e)
          l.outer = kept_[e] && (g_[e].code == op::for_begin || g_[e].code == op::while_begin);
    }
    for (int k = 0; k < roots.size(); ++k) {
      vec<std::int32_t> mine;
      scalars_of(roots[k], mine);
      bool related = false;
      for (int j = 0; j < roots.size() && !related; ++j) {
        if (j == k) continue;
        vec<std::int32_t> its;
        scalars_of(roots[j], its);
        for (int x = 0; x < mine.size(); ++x)
          for (int y = 0; y < its.size(); ++y) related = related || mine[x] == its[y];
      }
      if (!related) {
        add_symbol(roots[k]);
        continue;
      }
      for (int x = 0; x < mine.size(); ++x) add_symbol(mine[x]);
    }
  }
  /// The scalars from outside the program that an expression is made of, each once.
  constexpr void scalars_of(int i, vec<std::int32_t>& out) const {
    if (out.size() >= 16 || folded_[i] != unknown) return;
    if (is_root(i)) {
      for (int k = 0; k < out.size(); ++k)
        if (out[k] == number_[i]) return;
      out.add() = number_[i];
      return;
    }
    for (std::int32_t o : g_.operands(i)) scalars_of(o, out);
  }
  constexpr void add_symbol(int i) {
    int const v = number_[i];
    if (symbol_[v] >= 0) return;
    symbol_[v] = p_.symbol_nodes.size();
    p_.symbol_nodes.add() = v;
  }

public:
  /// The value of a bound that is made of symbols; unknown while one of them is, or where it depends on more.
  constexpr std::int64_t value_of(int i, std::int64_t const* symbols) const {
    if (folded_[i] != unknown) return folded_[i];
    if (int const s = symbol_of(i); s >= 0) return symbols[s];
    if (!made_of_symbols(i)) return unknown;
    std::int64_t v[3]{0, 0, 0};
    for (int j = 0; j < g_[i].operand_count && j < 3; ++j) v[j] = value_of(g_.operand(i, j), symbols);
    return evaluate(g_[i].code, g_[g_.operand(i, 0)].type, g_[i].type, v[0], v[1], v[2]);
  }
  /// The first symbol of an expression that has no number yet, or -1; `divisor` becomes a common multiple of what the expression divides by.
  constexpr int open_symbol(int i, std::int64_t const* symbols, std::int64_t& divisor) const {
    if (folded_[i] != unknown) return -1;
    if (int const s = symbol_of(i); s >= 0) return symbols[s] == unknown ? s : -1;
    if (!made_of_symbols(i)) return -1;
    node const& n = g_[i];
    if (n.code == op::div || n.code == op::rem || n.code == op::shr) {
      std::int64_t const c = folded_[g_.operand(i, 1)], by = n.code == op::shr && c >= 0 && c < 20 ? std::int64_t{1} << c : c;
      if (by > 1 && by < 1 << 20) {
        std::int64_t x = divisor, y = by;
        while (y) {
          std::int64_t const t = x % y;
          x = y;
          y = t;
        }
        if (divisor / x * by < 1 << 20) divisor = divisor / x * by;
      }
    }
    int found = -1;
    for (std::int32_t o : g_.operands(i))
      if (int const s = open_symbol(o, symbols, divisor); found < 0) found = s;
    return found;
  }
  /// Computed from scalars that do not change while the kernel runs.
  constexpr bool made_of_symbols(int i) const { return number_[i] >= 0 && !varies_[i] && g_[i].code != op::constant && !is_root(i); }

  /// Index of the symbol that stands for node i, or -1.
  constexpr int symbol_of(int i) const { return number_[i] < 0 ? -1 : symbol_[number_[i]]; }

private:
  constexpr int new_register(std::int64_t content) {
    p_.constants.add() = content;
    return p_.constants.size() - 1;
  }
  constexpr instruction& put(sim_op code, int node) {
    instruction& x = p_.code.add();
    x.code = code;
    x.node = node;
    return x;
  }

  constexpr void emit() {
    int const n = g_.size();
    register_.resize(n, -1);
    box_.resize(n, -1);
    start_.resize(n, -1);
    patch_.resize(n, -1);
    add_agent(-1, 0);
    barrier_.resize(n, -1);
    int task = -1, task_agents = 0; // the agents that run the present task
    for (int i = 0; i < n; ++i) {
      node const& x = g_[i];
      if (needed_[i]) scalar(i);
      switch (x.code) {
      case op::for_begin:
        if (!kept_[i]) break;
        if (register_[i] < 0) register_[i] = new_register(unknown);
        start_[i] = p_.code.size();
        {
          instruction& c = put(sim_op::loop, i);
          c.a = register_[i];
          c.b = register_[g_.operand(i, 0)];
          c.c = register_[g_.operand(i, 1)];
          c.d = register_[g_.operand(i, 2)];
        }
        break;
      case op::for_end: close(i, sim_op::next, true); break;
      case op::while_begin: start_[i] = p_.code.size(); break;
      case op::while_test: {
        int const begin = static_cast<int>(g_.attribute(i, 0));
        if (!kept_[begin]) break;
        patch_[begin] = p_.code.size();
        put(sim_op::exit, i).a = register_[g_.operand(i, 0)];
        break;
      }
      case op::while_end: {
        int const begin = static_cast<int>(g_.attribute(i, 0));
        if (!kept_[begin]) break;
        put(sim_op::again, i).target = start_[begin];
        p_.code[patch_[begin]].target = p_.code.size();
        break;
      }
      case op::if_begin:
        if (!kept_[i]) break;
        patch_[i] = p_.code.size();
        put(sim_op::branch, i).a = register_[g_.operand(i, 0)];
        break;
      case op::if_else: {
        int const begin = static_cast<int>(g_.attribute(i, 0));
        if (!kept_[begin]) break;
        int const jump = p_.code.size();
        put(sim_op::jump, i);
        p_.code[patch_[begin]].target = p_.code.size();
        patch_[begin] = jump;
        break;
      }
      case op::if_end: {
        int const begin = static_cast<int>(g_.attribute(i, 0));
        if (kept_[begin]) p_.code[patch_[begin]].target = p_.code.size();
        break;
      }
      case op::var_set:
        if (!kept_[i]) break;
        {
          instruction& c = put(sim_op::move, i);
          c.a = register_[g_.operand(i, 0)];
          c.b = register_[g_.operand(i, 1)];
        }
        break;
      case op::assume:
        if (kept_[i]) put(sim_op::assume, i).a = register_[g_.operand(i, 0)];
        break;
      case op::alloc_barriers:
        barrier_[i] = p_.slot_alloc.size();
        for (int k = 0; k < g_.attribute(i, 0); ++k) p_.slot_alloc.add() = i;
        break;
      case op::tasks_begin:
        if (!kept_[i]) break;
        start_[i] = p_.code.size();
        put(sim_op::fork, i).a = p_.agents.size();
        break;
      case op::tasks_end: {
        int const begin = static_cast<int>(g_.attribute(i, 0));
        if (!kept_[begin]) break;
        p_.code[start_[begin]].b = p_.agents.size();
        p_.code[start_[begin]].target = p_.code.size();
        if (joins_cluster(g_, begin)) put(sim_op::cluster, begin);
        break;
      }
      case op::task_begin:
        if (!kept_[i]) break;
        task = p_.agents.size();
        task_agents = static_cast<int>(g_.attribute(i, 2));
        for (int r = 0; r < task_agents; ++r) add_agent(i, r);
        break;
      case op::task_end:
        if (!kept_[static_cast<int>(g_.attribute(i, 0))]) break;
        put(sim_op::done, i);
        for (int r = 1; r < task_agents; ++r) {
          p_.agents[task + r].loads = p_.agents[task].loads;
          p_.agents[task + r].stores = p_.agents[task].stores;
          p_.agents[task + r].writes = p_.agents[task].writes;
        }
        task = -1;
        break;
      default:
        present_ = task < 0 ? 0 : task;
        if (kept_[i]) event(i);
      }
    }
    put(sim_op::done, -1);
  }
  constexpr void add_agent(int task, int replica) {
    agent_range& a = p_.agents.add();
    a.begin = p_.code.size();
    a.task = task;
    a.replica = replica;
    int const warps = task < 0 ? 0 : static_cast<int>(g_.attribute(task, 0));
    a.threads = 32 * (warps == 0 ? g_.attrs.num_warps : warps);
  }
  constexpr void close(int i, sim_op code, bool) {
    int const begin = static_cast<int>(g_.attribute(i, 0));
    if (!kept_[begin]) return;
    put(code, i).target = start_[begin];
    p_.code[start_[begin]].target = p_.code.size();
  }
  constexpr void scalar(int i) {
    node const& x = g_[i];
    if (x.kind == node_kind::token && x.code != op::var_get) { // a commit's register holds its group
      register_[i] = new_register(unknown);
      return;
    }
    if (x.code == op::for_begin) {
      register_[i] = new_register(unknown);
      return;
    }
    if (x.code == op::replica_id) {
      register_[i] = new_register(unknown);
      put(sim_op::replica, i).a = register_[i];
      return;
    }
    if (int const axis = x.code == op::cluster_rank ? -1 : cluster_axis(i); x.code == op::cluster_rank || axis >= 0) {
      register_[i] = new_register(unknown);
      instruction& c = put(sim_op::rank, i);
      c.a = register_[i];
      c.b = axis;
      return;
    }
    if (folded_[i] != unknown) {
      register_[i] = new_register(folded_[i]);
      return;
    }
    int const r = register_[i] = new_register(unknown);
    if (int const s = symbol_of(i); s >= 0) {
      instruction& c = put(sim_op::symbol, i);
      c.a = r;
      c.b = s;
    } else if (x.code == op::var || x.code == op::var_get) {
      instruction& c = put(sim_op::move, i);
      c.a = r;
      c.b = register_[g_.operand(i, 0)];
    } else if (!is_root(i)) {
      instruction& c = put(sim_op::scalar, i);
      c.a = r;
      c.b = register_[g_.operand(i, 0)];
      if (x.operand_count > 1) c.c = register_[g_.operand(i, 1)];
      if (x.operand_count > 2) c.d = register_[g_.operand(i, 2)];
      if (x.code == op::rem && folded_[g_.operand(i, 1)] > p_.ring && folded_[g_.operand(i, 1)] <= 16)
        p_.ring = static_cast<int>(folded_[g_.operand(i, 1)]);
    }
  }

  constexpr void event(int i) {
    node const& x = g_[i];
    switch (x.code) {
    case op::async_commit:
      if (register_[i] < 0) register_[i] = new_register(unknown);
      put(sim_op::commit, i).a = register_[i];
      return;
    case op::async_wait: {
      instruction& c = put(sim_op::wait, i);
      c.b = static_cast<std::int32_t>(g_.attribute(i, 0));
      c.c = p_.token_registers.size();
      for (std::int32_t t : g_.operands(i))
        if (t >= 0) p_.token_registers.add() = register_[t];
      c.d = p_.token_registers.size() - c.c;
      return;
    }
    case op::local_load: case op::local_gather: access(sim_op::read, i, g_.operand(i, 0)); return;
    case op::local_store: case op::local_scatter:
      p_.agents[present_].writes = true;
      access(sim_op::write, i, g_.operand(i, 0));
      return;
    case op::dot:
      for (int j = 0; j < 2; ++j)
        if (g_[g_.operand(i, j)].kind == node_kind::view) access(sim_op::read, i, g_.operand(i, j));
      return;
    case op::async_load: {
      p_.agents[present_].loads = true;
      bool const masked = g_.operand(i, 2) >= 0 || g_[g_.operand(i, 0)].kind == node_kind::region;
      if (access(sim_op::async, i, g_.operand(i, 1)))
        p_.code.back().b = !masked || g_.operand(i, 3) >= 0 ? 0 : g_.operand(i, 2) >= 0 && surely_masks(g_, g_.operand(i, 2)) ? 2 : 1;
      return;
    }
    case op::async_load_bulk: {
      p_.bulk = true;
      int const skip = guard(i, 3);
      if (access(sim_op::bulk_load, i, g_.operand(i, 1))) {
        p_.code.back().b = barrier(g_.operand(i, 2));
        p_.code.back().d = g_.operand(i, 3);
      }
      return land(skip);
    }
    case op::async_store_bulk:
      p_.bulk = true;
      p_.agents[present_].stores = true;
      access(sim_op::bulk_store, i, g_.operand(i, 1));
      return;
    case op::async_store_wait: put(sim_op::store_wait, i).b = static_cast<std::int32_t>(g_.attribute(i, 0)); return;
    case op::async_arrive:
      p_.agents[present_].loads = true;
      p_.arrives = true;
      meet(sim_op::load_arrive, i, 0);
      return;
    case op::barrier_wait: {
      int const skip = guard(i, 2);
      meet(sim_op::barrier_wait, i, register_[g_.operand(i, 1)]);
      return land(skip);
    }
    case op::barrier_arrive: {
      int const skip = guard(i, 1);
      meet(sim_op::barrier_arrive, i, static_cast<int>(g_.attribute(i, 0)));
      return land(skip);
    }
    case op::barrier_expect_bytes: {
      int const skip = guard(i, 1);
      meet(sim_op::barrier_expect, i, static_cast<int>(g_.attribute(i, 0)));
      p_.code.back().d = g_.operand(i, 1);
      return land(skip);
    }
    case op::named_barrier_wait: case op::named_barrier_arrive: {
      instruction& c = put(sim_op::named, i);
      c.a = static_cast<std::int32_t>(g_.attribute(i, 0));
      c.b = static_cast<std::int32_t>(g_.attribute(i, 1));
      c.c = x.code == op::named_barrier_wait;
      p_.named |= 1u << (c.a & 15);
      return;
    }
    case op::remote_store:
      p_.agents[present_].writes = true;
      if (access(sim_op::remote_store, i, g_.operand(i, 0))) p_.code.back().c = register_[g_.operand(i, 2)];
      return;
    case op::async_remote_store: case op::async_remote_copy: remote_write(i); return;
    case op::cluster_barrier: put(sim_op::cluster, i); return;
    case op::fence_barrier_init: put(sim_op::ready, i); return;
    case op::fence:
      if (static_cast<fence>(g_.attribute(i, 0)) == fence::async_shared) put(sim_op::fence, i);
      return;
    default: return;
    }
  }
  constexpr void remote_write(int i) {
    bool const copies = g_[i].code == op::async_remote_copy;
    p_.bulk = p_.bulk || copies;
    int const from = copies ? box_of(g_.operand(i, 1)) : -1;
    if (copies && !p_.boxes[from].exact) {
      if (p_.left_out < 0) p_.left_out = i;
      return;
    }
    if (!access(copies ? sim_op::remote_copy : sim_op::remote_async, i, g_.operand(i, 0))) return;
    instruction& c = p_.code.back();
    c.b = barrier(g_.operand(i, 3));
    c.c = register_[g_.operand(i, 2)];
    c.target = from;
    if (copies)
      if (int const slots = g_.buffer(p_.boxes[from].buffer).slots; slots > p_.ring) p_.ring = slots;
  }
  /// Agents, barriers and atoms of the other CTAs of a cluster: like those of the first.
  constexpr void repeat() {
    p_.cta_agents = p_.agents.size();
    p_.cta_slots = p_.slot_alloc.size();
    p_.cta_atoms = p_.atoms;
    bool meet = false;
    for (int i = 0; i < g_.size() && !meet && g_.attrs.cluster != dims{}; ++i) meet = is_of_clusters(g_[i].code);
    if (!meet) return;
    p_.ctas = cluster_size(g_.attrs);
    for (int cta = 1; cta < p_.ctas; ++cta) {
      for (int i = 0; i < p_.cta_agents; ++i) {
        agent_range const a = p_.agents[i];
        agent_range& to = p_.agents.add();
        to = a;
        to.cta = cta;
      }
      for (int i = 0; i < p_.cta_slots; ++i) {
        std::int32_t const alloc = p_.slot_alloc[i];
        p_.slot_alloc.add() = alloc;
      }
    }
    p_.atoms *= p_.ctas;
  }
  /// A jump around node i when its predicate, operand j, is known to be false; -1 without one.
  constexpr int guard(int i, int j) {
    int const p = g_.operand(i, j);
    if (p < 0) return -1;
    put(sim_op::skip, i).b = p;
    return p_.code.size() - 1;
  }
  constexpr void land(int skip) {
    if (skip >= 0) p_.code[skip].target = p_.code.size();
  }
  constexpr void meet(sim_op code, int i, int b) {
    int const reference = barrier(g_.operand(i, 0));
    instruction& c = put(code, i);
    c.a = reference;
    c.b = b;
    if (int const n = p_.barriers[reference].count; n > p_.ring) p_.ring = n;
  }
  constexpr int barrier(int i) {
    if (barrier_[i] >= 0) return barrier_[i];
    if (g_[i].code == op::remote_barrier) {
      barrier_reference there = p_.barriers[barrier(g_.operand(i, 0))];
      there.rank = register_[g_.operand(i, 1)];
      p_.barriers.add() = there;
      return barrier_[i] = p_.barriers.size() - 1;
    }
    barrier_reference r;
    r.node = g_.operand(i, 0);
    r.first = barrier_[r.node];
    r.count = static_cast<std::int32_t>(g_.attribute(r.node, 0));
    r.index = g_.operand(i, 1);
    r.slot = register_[r.index];
    r.at = i;
    p_.barriers.add() = r;
    return barrier_[i] = p_.barriers.size() - 1;
  }
  constexpr bool access(sim_op code, int i, int view) {
    int const b = box_of(view);
    if (!p_.boxes[b].exact) {
      if (p_.left_out < 0) p_.left_out = i;
      return false;
    }
    put(code, i).a = b;
    int const slots = g_.buffer(p_.boxes[b].buffer).slots;
    if (slots > p_.ring) p_.ring = slots;
    return true;
  }

  /// The box of a view, from the box of what it is a view of.
  constexpr int box_of(int v) {
    if (box_[v] >= 0) return box_[v];
    node const& x = g_[v];
    int const from = g_.operand(v, 0);
    box b;
    if (x.code == op::view_index && g_[from].kind == node_kind::buffers) {
      b.buffer = static_cast<std::int32_t>(g_.attribute(from, 0));
      buffer_info const& f = g_.buffer(b.buffer);
      shape const& s = g_.shapes[static_cast<std::size_t>(f.shape)];
      b.slot = register_[g_.operand(v, 1)];
      b.index = g_.operand(v, 1);
      b.axes = s.rank;
      for (int d = 0; d < s.rank; ++d) {
        b.axis[d] = d;
        b.extent[d] = s.extent[d];
        b.moving[d] = -1;
      }
    } else {
      int const base = box_of(from);
      box const& o = p_.boxes[base];
      b = o;
      shape const& s = g_.shape_of(v);
      switch (x.code) {
      case op::view_trans:
        if (!b.reshaped)
          for (int d = 0; d < s.rank; ++d) b.axis[d] = o.axis[g_.attribute(v, d)];
        break;
      case op::view_reshape: b.reshaped = true; break;
      case op::view_slice:
        for (int d = 0; d < s.rank; ++d) narrow(b, d, g_.operand(v, d + 1), s.extent[d], g_.shape_of(from).extent[d]);
        break;
      default: // view_index: the outermost axis
        narrow(b, 0, g_.operand(v, 1), 1, g_.shape_of(from).extent[0]);
        if (!b.reshaped && g_.shape_of(from).rank > 1) {
          --b.axes;
          for (int d = 0; d < b.axes; ++d) b.axis[d] = b.axis[d + 1];
        }
      }
    }
    b.node = v;
    p_.boxes.add() = b;
    return box_[v] = p_.boxes.size() - 1;
  }
  constexpr void narrow(box& b, int d, int offset, int extent, int from) {
    if (extent == from) return; // the offset is 0
    b.whole = false;
    if (b.reshaped) {
      b.exact = false;
      return;
    }
    int const axis = b.axis[d];
    b.extent[axis] = extent;
    if (folded_[offset] != unknown)
      b.start[axis] += static_cast<int>(folded_[offset]);
    else if (b.moving[axis] < 0)
      b.moving[axis] = register_[offset];
    else
      b.exact = false; // two moving offsets on one axis
  }

  /// Cuts every buffer into atoms along the borders of its boxes.
  constexpr void cut() {
    for (int k = 0; k < static_cast<int>(g_.buffers.size()); ++k) {
      shape const& s = g_.shapes[static_cast<std::size_t>(g_.buffer(k).shape)];
      atom_grid& a = p_.grids.add();
      a.rank = s.rank;
      for (int d = 0; d < s.rank; ++d) a.size[d] = s.extent[d];
    }
    auto gcd = [](int x, int y) {
      while (y) {
        int const t = x % y;
        x = y;
        y = t;
      }
      return x;
    };
    for (int k = 0; k < p_.boxes.size(); ++k) {
      box const& b = p_.boxes[k];
      if (b.whole || !b.exact) continue;
      atom_grid& a = p_.grids[b.buffer];
      for (int d = 0; d < a.rank; ++d) a.size[d] = gcd(gcd(a.size[d], b.extent[d]), b.start[d] < 0 ? -b.start[d] : b.start[d]);
    }
    for (int k = 0; k < p_.grids.size(); ++k) {
      atom_grid& a = p_.grids[k];
      std::int64_t per_slot = 1;
      for (int d = 0; d < a.rank; ++d) {
        a.count[d] = g_.shapes[static_cast<std::size_t>(g_.buffer(k).shape)].extent[d] / a.size[d];
        per_slot *= a.count[d];
      }
      if (per_slot > most_atoms) { // cut too finely: parts are left out, whole slots stay
        for (int d = 0; d < a.rank; ++d) {
          a.size[d] *= a.count[d];
          a.count[d] = 1;
        }
        per_slot = 1;
        for (int c = 0; c < p_.code.size(); ++c) {
          instruction& x = p_.code[c];
          auto finely = [&](int b) { return p_.boxes[b].buffer == k && !p_.boxes[b].whole; };
          if (touches_box(x.code) && (finely(x.a) || (x.code == sim_op::remote_copy && finely(x.target)))) {
            if (p_.left_out < 0) p_.left_out = x.node;
            x.code = sim_op::jump;
            x.target = c + 1;
          }
        }
      }
      a.per_slot = static_cast<std::int32_t>(per_slot);
      a.first = p_.atoms;
      p_.atoms += a.per_slot * g_.buffer(k).slots;
    }
  }
  static constexpr int most_atoms = 256;

  graph_view const& g_;
  sim_program& p_;
  int present_ = 0; ///< the agent whose program is written
  table<std::int32_t> parent_, next_set_, first_set_, number_, symbol_, register_, box_, start_, patch_, barrier_;
  table<int> bucket_, chain_;
  table<std::int64_t> folded_;
  table<bool> needed_, kept_, varies_;
  vec<std::int32_t> work_, assumes_;
};

} // namespace kiln::detail
