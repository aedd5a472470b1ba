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
#include <kiln/graph/cluster.hpp>
#include <kiln/validate/sim_boxes.hpp>
#include <kiln/validate/static_mask.hpp>

namespace kiln::detail {

/// False when the kernel has nothing to simulate.
constexpr bool slicer::run() {
  if (!scan()) return false;
  new_register(unknown); // 0: none
  mark();
  fold();
  choose_symbols();
  emit();
  cut();
  repeat();
  return true;
}

/// Loops with runtime bounds, and the symbols that decide them: the roots of the bounds. Roots that are made of a common
/// scalar, `n` and `n / 2` say, are no symbols of their own; that scalar is.
constexpr void slicer::choose_symbols() {
  p_.loops.reserve(4);
  vec<std::int32_t> roots;
  for (int k = 0; k < repeat_; ++k) {
    int const i = loops_[k];
    if (!at_[i].kept || nodes_[i].code != op::for_begin) continue;
    bool fixed = true;
    affine bound[3];
    for (int j = 0; j < 3; ++j) {
      affine const f = bound[j] = affine_of(operands(i)[j]);
      if (f.root < 0) continue;
      fixed = false;
      if (!at_[f.root].root) number();
      bool known = at_[f.root].varies;
      for (int k = 0; k < roots.size() && !known; ++k) known = roots[k] == at_[f.root].number - 1;
      if (!known) roots.add() = at_[f.root].number - 1;
    }
    if (fixed) continue;
    free_loop& l = p_.loops.add();
    l.node = i;
    l.outer = false;
    l.lo = bound[0];
    l.hi = bound[1];
    l.by = bound[2];
    if (!at_[i].needed)
      for (int e = k + 1; e < repeat_ && loops_[e] < g_.attribute(i, 0) && !l.outer; ++e) l.outer = at_[loops_[e]].kept;
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
constexpr void slicer::scalars_of(int i, vec<std::int32_t>& out) const {
  if (out.size() >= 16 || at_[i].folded != 0) return;
  if (at_[i].root) {
    for (int k = 0; k < out.size(); ++k)
      if (out[k] == at_[i].number - 1) return;
    out.add() = at_[i].number - 1;
    return;
  }
  for (int j = 0; j < nodes_[i].operand_count; ++j) scalars_of(operands(i)[j], out);
}

constexpr void slicer::add_symbol(int i) {
  int const v = at_[i].number - 1;
  if (at_[v].symbol > 0) return;
  p_.symbol_nodes.add() = v;
  at_[v].symbol = p_.symbol_nodes.size();
}

/// The value of a bound that is made of symbols; unknown while one of them is, or where it depends on more.
constexpr std::int64_t slicer::value_of(int i, std::int64_t const* symbols) const {
  if (at_[i].folded != 0) return at_[i].folded ^ unknown;
  if (int const s = symbol_of(i); s >= 0) return symbols[s];
  if (!made_of_symbols(i)) return unknown;
  std::int64_t v[3]{0, 0, 0};
  for (int j = 0; j < g_[i].operand_count && j < 3; ++j) v[j] = value_of(g_.operand(i, j), symbols);
  return evaluate(g_[i].code, g_[g_.operand(i, 0)].type, g_[i].type, v[0], v[1], v[2]);
}

/// The first symbol of an expression that has no number yet, or -1; `divisor` becomes a common multiple of what the expression divides by.
constexpr int slicer::open_symbol(int i, std::int64_t const* symbols, std::int64_t& divisor) const {
  if (at_[i].folded != 0) return -1;
  if (int const s = symbol_of(i); s >= 0) return symbols[s] == unknown ? s : -1;
  if (!made_of_symbols(i)) return -1;
  node const& n = g_[i];
  if (n.code == op::div || n.code == op::rem || n.code == op::shr) {
    std::int64_t const c = at_[g_.operand(i, 1)].folded ^ unknown, by = n.code == op::shr && c >= 0 && c < 20 ? std::int64_t{1} << c : c;
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
  for (int j = 0; j < nodes_[i].operand_count; ++j)
    if (int const s = open_symbol(operands(i)[j], symbols, divisor); found < 0) found = s;
  return found;
}

constexpr int slicer::new_register(std::int64_t content) {
  p_.constants.add() = content;
  return p_.constants.size() - 1;
}

constexpr instruction& slicer::put(sim_op code, int node) {
  instruction& x = p_.code.add();
  x.code = code;
  x.node = node;
  return x;
}

constexpr void slicer::emit() {
  p_.code.reserve(lives_ + 8); // elements of classes are made one by one: no more of them than usual kernels have
  p_.agents.reserve(4);
  p_.boxes.reserve(8);
  p_.barriers.reserve(8);
  p_.grids.reserve(static_cast<int>(g_.buffers.size()));
  add_agent(-1, 0);
  int task = -1, task_agents = 0; // the agents that run the present task
  int tasks = -1;                 // around it
  bool apart = false;             // they assign vars from outside, which are each task's own
  for (int k = 0, live = lives_; k < live; ++k) {
    int const i = live_[k];
    sliced_node const& s = at_[i];
    node const& x = nodes_[i];
    if (s.needed) scalar(i);
    node_class const c = s.kind;
    if (c == node_class::plain || c == node_class::memory) continue;
    if (c == node_class::event || c == node_class::product) {
      present_ = task < 0 ? 0 : task;
      if (s.kept) event(i);
      continue;
    }
    switch (x.code) {
    case op::for_begin:
      if (!at_[i].kept) break;
      if (at_[i].reg == 0) new_loop_registers(i);
      at_[i].place = here() + 1;
      {
        instruction& c = put(sim_op::loop, i);
        c.a = at_[i].reg;
        c.b = at_[pool_[x.operands]].reg;
        c.c = at_[pool_[x.operands + 1]].reg;
        c.d = at_[pool_[x.operands + 2]].reg;
      }
      break;
    case op::for_end: {
      int const begin = static_cast<int>(attributes_[x.attributes]);
      if (!at_[begin].kept) break;
      instruction& c = put(sim_op::next, i);
      c.a = at_[begin].reg;
      c.target = at_[begin].place - 1;
      p_.code[c.target].target = here();
      break;
    }
    case op::while_begin: at_[i].place = here() + 1; break;
    case op::while_test: {
      int const begin = static_cast<int>(attributes_[x.attributes]);
      if (!at_[begin].kept) break;
      at_[begin].patch = p_.code.size();
      {
        int const passes = new_register(0);
        instruction& c = put(sim_op::exit, i);
        c.a = at_[pool_[x.operands]].reg;
        c.b = passes;
      }
      break;
    }
    case op::while_end: {
      int const begin = static_cast<int>(attributes_[x.attributes]);
      if (!at_[begin].kept) break;
      put(sim_op::jump, i).target = at_[begin].place - 1;
      p_.code[at_[begin].patch].target = here();
      break;
    }
    case op::if_begin:
      if (!at_[i].kept) break;
      at_[i].patch = p_.code.size();
      put(sim_op::branch, i).a = at_[pool_[x.operands]].reg;
      break;
    case op::if_else: {
      int const begin = static_cast<int>(attributes_[x.attributes]);
      if (!at_[begin].kept) break;
      int const jump = p_.code.size();
      put(sim_op::jump, i);
      p_.code[at_[begin].patch].target = here();
      at_[begin].patch = jump;
      break;
    }
    case op::if_end: {
      int const begin = static_cast<int>(attributes_[x.attributes]);
      if (at_[begin].kept) p_.code[at_[begin].patch].target = here();
      break;
    }
    case op::var_set:
      if (!at_[i].kept) break;
      {
        instruction& c = put(sim_op::move, i);
        c.a = at_[pool_[x.operands]].reg;
        c.b = at_[pool_[x.operands + 1]].reg;
        if (pool_[x.operands] < tasks) apart = true;
      }
      break;
    case op::assume:
      if (at_[i].kept) put(sim_op::assume, i).a = at_[pool_[x.operands]].reg;
      break;
    case op::alloc_barriers:
      at_[i].place = p_.slot_alloc.size() + 1;
      for (int k = 0; k < attributes_[x.attributes]; ++k) p_.slot_alloc.add() = i;
      break;
    case op::tasks_begin:
      if (!at_[i].kept) break;
      at_[i].place = p_.code.size() + 1;
      put(sim_op::fork, i).a = p_.agents.size();
      tasks = i;
      apart = false;
      break;
    case op::tasks_end: {
      int const begin = static_cast<int>(attributes_[x.attributes]);
      if (!at_[begin].kept) break;
      instruction& f = p_.code[at_[begin].place - 1];
      f.b = p_.agents.size();
      f.target = here();
      for (int a = f.a; a < p_.agents.size(); ++a) p_.agents[a].own_registers = apart || p_.agents[a].replica > 0;
      tasks = -1;
      if (joins_cluster(g_, begin)) put(sim_op::cluster, begin);
      break;
    }
    case op::task_begin:
      if (!at_[i].kept) break;
      task = p_.agents.size();
      task_agents = static_cast<int>(attributes_[x.attributes + 2]);
      for (int r = 0; r < task_agents; ++r) add_agent(i, r);
      break;
    case op::task_end:
      if (!at_[static_cast<int>(attributes_[x.attributes])].kept) break;
      put(sim_op::done, i);
      for (int r = 1; r < task_agents; ++r) {
        p_.agents[task + r].loads = p_.agents[task].loads;
        p_.agents[task + r].stores = p_.agents[task].stores;
        p_.agents[task + r].writes = p_.agents[task].writes;
      }
      task = -1;
      break;
    default: break;
    }
  }
  put(sim_op::done, -1);
}

constexpr void slicer::add_agent(int task, int replica) {
  agent_range& a = p_.agents.add();
  a.begin = p_.code.size();
  a.task = task;
  a.replica = replica;
  int const warps = task < 0 ? 0 : static_cast<int>(g_.attribute(task, 0));
  a.threads = 32 * (warps == 0 ? g_.attrs.num_warps : warps);
}

/// Index, passes left, step.
constexpr void slicer::new_loop_registers(int i) {
  at_[i].reg = new_register(unknown);
  new_register(0);
  new_register(0);
}

/// A register that never changes. Small numbers, which are most, have one each.
constexpr int slicer::constant_register(int i, std::int64_t content) {
  sliced_node& s = at_[i];
  int same = 0; // 1 + a node of that value
  if (content >= 0 && content < small) {
    same = small_[content];
    if (same == 0) small_[content] = i + 1;
  } else {
    for (int k = 0; k < large_.size() && same == 0; ++k)
      if (at_[large_[k]].folded == (content ^ unknown)) same = large_[k] + 1;
    if (same == 0) large_.add() = i;
  }
  if (s.number == 0) s.number = same == 0 ? i + 1 : same;
  return same == 0 ? new_register(content) : at_[same - 1].reg;
}

constexpr void slicer::scalar(int i) {
  node const& x = nodes_[i];
  sliced_node& s = at_[i];
  if (s.folded != 0) {
    s.reg = constant_register(i, s.folded ^ unknown);
    return;
  }
  if (x.code == op::for_begin) return new_loop_registers(i);
  int const r = s.reg = new_register(unknown);
  std::int32_t const* const of = pool_ + x.operands;
  if (x.code == op::var || x.code == op::var_get) {
    instruction& c = put(sim_op::move, i);
    c.a = r;
    c.b = at_[of[0]].reg;
  } else if (x.kind == node_kind::token) { // a commit's register holds its group
    return;
  } else if (x.code == op::replica_id) {
    put(sim_op::replica, i).a = r;
  } else if (s.rank) {
    instruction& c = put(sim_op::rank, i);
    c.a = r;
    c.b = x.code == op::cluster_rank ? -1 : cluster_axis(i);
  } else if (int const symbol = symbol_of(i); symbol >= 0) {
    instruction& c = put(sim_op::symbol, i);
    c.a = r;
    c.b = symbol;
  } else if (!s.root) {
    if (x.code == op::bit_and && makes_ring(i, r)) return;
    instruction& c = put(sim_op::scalar, i);
    c.a = r;
    c.b = at_[of[0]].reg;
    if (x.operand_count == 2) {
      c.c = at_[of[1]].reg;
      if (is_quick(x.code, x.type)) {
        c.code = sim_op::quick;
        c.d = static_cast<std::int32_t>(x.code);
      }
    } else if (x.operand_count > 2) {
      c.c = at_[of[1]].reg;
      c.d = at_[of[2]].reg;
    }
    if (x.code == op::rem)
      if (std::int64_t const by = at_[of[1]].folded ^ unknown; by > p_.ring && by <= 16) p_.ring = static_cast<int>(by);
  }
}

/// Operations that need no wrapping where their operands are not negative (and a sum is small).
constexpr bool slicer::is_quick(op o, dtype t) {
  return o == op::rem || o == op::div || o == op::bit_and || o == op::bit_xor || o == op::eq || o == op::lt ||
         (o == op::add && (t == dtype::i32 || t == dtype::i64 || t == dtype::u32 || t == dtype::u64));
}

/// `slot = count % n, phase = count / n & 1` is one instruction. i: the last node of the three, r: its register.
constexpr bool slicer::makes_ring(int i, int r) {
  int const n = p_.code.size(), q = pool_[nodes_[i].operands];
  if (n - landing_ < 2 || at_[pool_[nodes_[i].operands + 1]].folded != (1 ^ unknown)) return false;
  instruction &rem = p_.code[n - 2], &div = p_.code[n - 1];
  if (rem.code != sim_op::quick || rem.d != static_cast<std::int32_t>(op::rem) || div.code != sim_op::quick || div.node != q || div.d != static_cast<std::int32_t>(op::div) ||
      rem.b != div.b || at_[g_.operand(rem.node, 1)].folded == 0 || at_[g_.operand(rem.node, 1)].folded != at_[g_.operand(q, 1)].folded)
    return false;
  rem.code = sim_op::ring;
  rem.d = div.a;
  rem.target = r;
  rem.node = i;
  div = {}; // what is added next begins with zeros, too
  p_.code.pop();
  return true;
}

constexpr void slicer::event(int i) {
  node const& x = nodes_[i];
  op const o = x.code;
  if (o == op::local_load || o == op::local_gather) {
    access(sim_op::read, i, pool_[x.operands]);
    return;
  }
  if (o == op::local_store || o == op::local_scatter) {
    p_.agents[present_].writes = true;
    access(sim_op::write, i, pool_[x.operands]);
    return;
  }
  switch (o) {
  case op::async_commit:
    if (at_[i].reg == 0) at_[i].reg = new_register(unknown);
    put(sim_op::commit, i).a = at_[i].reg;
    return;
  case op::async_wait: {
    instruction& c = put(sim_op::wait, i);
    c.b = static_cast<std::int32_t>(attributes_[x.attributes]);
    c.c = p_.token_registers.size();
    for (std::int32_t t : g_.operands(i))
      if (t >= 0) p_.token_registers.add() = at_[t].reg;
    c.d = p_.token_registers.size() - c.c;
    return;
  }
  case op::dot:
    for (int j = 0; j < 2; ++j)
      if (g_[g_.operand(i, j)].kind == node_kind::view) access(sim_op::read, i, g_.operand(i, j));
    return;
  case op::async_load: {
    p_.agents[present_].loads = true;
    bool const masked = g_.operand(i, 2) >= 0 || g_[g_.operand(i, 0)].kind == node_kind::region;
    if (access(sim_op::async, i, pool_[x.operands + 1]))
      p_.code.back().b = !masked || g_.operand(i, 3) >= 0 ? 0 : g_.operand(i, 2) >= 0 && surely_masks(g_, g_.operand(i, 2)) ? 2 : 1;
    return;
  }
  case op::async_load_bulk: {
    p_.bulk = true;
    int const skip = guard(i, 3);
    if (access(sim_op::bulk_load, i, pool_[x.operands + 1])) {
      int const b = barrier(pool_[x.operands + 2]);
      instruction& c = p_.code.back();
      c.b = b;
      c.c = static_cast<std::int32_t>(bytes_of(g_[g_.operand(i, 1)].type, g_.shape_of(g_.operand(i, 1)).elements()));
      c.d = g_.operand(i, 3);
      p_.conditional = p_.conditional || c.d >= 0;
    p_.conditional = p_.conditional || c.d >= 0;
    }
    return land(skip);
  }
  case op::async_store_bulk:
    p_.bulk = true;
    p_.agents[present_].stores = true;
    access(sim_op::bulk_store, i, pool_[x.operands + 1]);
    return;
  case op::async_store_wait: put(sim_op::store_wait, i).b = static_cast<std::int32_t>(attributes_[x.attributes]); return;
  case op::async_arrive:
    p_.agents[present_].loads = true;
    p_.arrives = true;
    meet(sim_op::load_arrive, i, 0);
    return;
  case op::barrier_wait: {
    int const skip = guard(i, 2);
    meet(sim_op::barrier_wait, i, at_[pool_[x.operands + 1]].reg);
    return land(skip);
  }
  case op::barrier_arrive: {
    int const skip = guard(i, 1);
    barrier_reference const& b = p_.barriers[barrier(pool_[x.operands])];
    bool const per_thread = g_.attribute(b.node, 2) != 0;
    meet(b.rank < 0 ? sim_op::barrier_arrive : sim_op::remote_arrive, i, static_cast<int>(attributes_[x.attributes]) * (per_thread ? p_.agents[present_].threads : 1));
    return land(skip);
  }
  case op::barrier_expect_bytes: {
    int const skip = guard(i, 1);
    meet(sim_op::barrier_expect, i, static_cast<int>(attributes_[x.attributes]));
    p_.code.back().d = g_.operand(i, 1);
    p_.conditional = p_.conditional || g_.operand(i, 1) >= 0;
    return land(skip);
  }
  case op::named_barrier_wait: case op::named_barrier_arrive: {
    instruction& c = put(sim_op::named, i);
    c.a = static_cast<std::int32_t>(attributes_[x.attributes]);
    c.b = static_cast<std::int32_t>(g_.attribute(i, 1));
    c.c = x.code == op::named_barrier_wait;
    p_.named |= 1u << (c.a & 15);
    return;
  }
  case op::remote_store:
    p_.agents[present_].writes = true;
    if (access(sim_op::remote_store, i, g_.operand(i, 0))) p_.code.back().c = at_[g_.operand(i, 2)].reg;
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

constexpr void slicer::remote_write(int i) {
  bool const copies = g_[i].code == op::async_remote_copy;
  p_.bulk = p_.bulk || copies;
  int const from = copies ? box_of(g_.operand(i, 1)) : -1;
  if (copies && !p_.boxes[from].exact) {
    if (p_.left_out < 0) p_.left_out = i;
    return;
  }
  if (!access(copies ? sim_op::remote_copy : sim_op::remote_async, i, g_.operand(i, 0))) return;
  int const to = barrier(g_.operand(i, 3));
  instruction& c = p_.code.back();
  c.b = to;
  c.c = at_[g_.operand(i, 2)].reg;
  c.d = -1;
  c.target = from;
  if (copies) p_.boxes[from].used = true;
}

/// Agents, barriers and atoms of the other CTAs of a cluster: like those of the first.
constexpr void slicer::repeat() {
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
constexpr int slicer::guard(int i, int j) {
  int const p = g_.operand(i, j);
  if (p < 0) return -1;
  put(sim_op::skip, i).b = p;
  return p_.code.size() - 1;
}
constexpr void slicer::land(int skip) {
  if (skip >= 0) p_.code[skip].target = here();
}

constexpr void slicer::meet(sim_op code, int i, int b) {
  int const reference = barrier(g_.operand(i, 0));
  instruction& c = put(code, i);
  c.a = reference;
  c.b = b;
  if (int const n = p_.barriers[reference].count; n > p_.ring) p_.ring = n;
}

constexpr int slicer::barrier(int i) {
  if (at_[i].place > 0) return at_[i].place - 1;
  if (nodes_[i].code == op::remote_barrier) {
    barrier_reference there = p_.barriers[barrier(pool_[nodes_[i].operands])];
    there.rank = at_[pool_[nodes_[i].operands + 1]].reg;
    p_.barriers.add() = there;
    return (at_[i].place = p_.barriers.size()) - 1;
  }
  barrier_reference r;
  r.node = g_.operand(i, 0);
  r.first = at_[r.node].place - 1;
  r.count = static_cast<std::int32_t>(g_.attribute(r.node, 0));
  r.index = g_.operand(i, 1);
  r.slot = at_[r.index].reg;
  r.at = i;
  r.rank = -1;
  p_.barriers.add() = r;
  return (at_[i].place = p_.barriers.size()) - 1;
}

constexpr bool slicer::access(sim_op code, int i, int view) {
  int const b = box_of(view);
  box& v = p_.boxes[b];
  if (!v.exact) {
    if (p_.left_out < 0) p_.left_out = i;
    return false;
  }
  v.used = true;
  put(code, i).a = b;
  return true;
}

} // namespace kiln::detail
