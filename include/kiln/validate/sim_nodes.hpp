// What the hazard simulation needs of a graph: the accesses to local memory and the barriers, the regions around them, and the
// scalars that decide when and where they happen. Everything else is sliced away here.
//
// This runs for every kernel while a compiler runs, mostly over nodes that turn out not to matter: it looks at each node once,
// and from then on at lists of those that do. One array holds all that is known of a node, which compilers fill at once.
#pragma once
#include <kiln/validate/slicer.hpp>

namespace kiln::detail {

/// Equal expressions have equal numbers; -1 for what is not needed.
constexpr int slicer::value_number(int i) {
  if (!at_[i].needed) return -1;
  number();
  return at_[i].number - 1;
}

/// `scale * root + offset`, where root is no longer of that form.
constexpr affine slicer::affine_of(int i) const {
  affine f{i, 1, 0};
  for (;;) {
    if (std::int64_t const x = at_[f.root].folded; x != 0) return {-1, 0, f.scale * (x ^ unknown) + f.offset};
    node const& n = nodes_[f.root];
    int const a = n.operand_count > 0 ? pool_[n.operands] : -1, b = n.operand_count > 1 ? pool_[n.operands + 1] : -1;
    std::int64_t const ca = a >= 0 && at_[a].needed ? at_[a].folded ^ unknown : unknown, cb = b >= 0 && at_[b].needed ? at_[b].folded ^ unknown : unknown;
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
      if (!is_int(nodes_[a].type)) return f;
      f.root = a;
      continue;
    case op::multiple_of: case op::max_contiguous: f.root = a; continue;
    default: return f;
    }
  }
}

/// Regions, assignments of each var, what is not plain. False when there is nothing to simulate.
constexpr bool slicer::scan() {
  int const n = g_.size();
  at_ = new sliced_node[static_cast<unsigned>(n) + 1]{};
  events_ = new std::int32_t[static_cast<unsigned>(n) + 1];
  loops_ = new std::int32_t[static_cast<unsigned>(n) + 1];
  int open = 0;
  node const* const nodes = nodes_;
  for (int i = 0; i < n; ++i) {
    if (classes_of_nodes.of[static_cast<int>(nodes[i].code)] == node_class::plain) continue;
    node_class const c = classes_of_nodes.of[static_cast<int>(nodes[i].code)];
    sliced_node& s = at_[i];
    s.live = true;
    s.kind = c;
    s.parent = open;
    if (c == node_class::closes) {
      open = at_[open - 1].parent;
    } else if (c == node_class::opens) {
      open = i + 1;
      if (nodes[i].code == op::for_begin || nodes[i].code == op::while_begin) loops_[repeat_++] = i;
    } else if (c == node_class::assigns) {
      sliced_node& cell = at_[*operands(i)];
      s.next_set = cell.first_set;
      cell.first_set = i + 1;
    } else if (c == node_class::promise) {
      promises_.add() = i;
    } else if (c == node_class::event || (c == node_class::product && (nodes_[operands(i)[0]].kind == node_kind::view || nodes_[operands(i)[1]].kind == node_kind::view))) {
      events_[happen_++] = i;
    }
  }
  return happen_ > 0;
}

/// What the events need: regions around them, slots, conditions, bounds, and so on backwards.
constexpr void slicer::mark() {
  work_ = new std::int32_t[static_cast<unsigned>(g_.size()) + 1];
  for (int e = 0; e < happen_; ++e) {
    int const i = events_[e];
    op const o = nodes_[i].code;
    std::int32_t const* const of = operands(i);
    at_[i].kept = true;
    if (int const r = at_[i].parent; r > 0 && !at_[r - 1].kept) keep_regions(r - 1);
    if (o == op::local_load || o == op::local_store || o == op::local_gather || o == op::local_scatter) {
      need_view(of[0]);
    } else if (o == op::async_load) {
      need_view(of[1]);
    } else if (o == op::dot) {
      for (int j = 0; j < 2; ++j)
        if (nodes_[of[j]].kind == node_kind::view) need_view(of[j]);
    } else if (o == op::async_wait) {
      for (int j = 0; j < nodes_[i].operand_count; ++j)
        if (of[j] >= 0) need(of[j]);
    } else if (o != op::async_commit) {
      for (int j = 0; j < nodes_[i].operand_count; ++j) {
        if (of[j] < 0) continue;
        node_kind const k = nodes_[of[j]].kind;
        if (k == node_kind::barrier) {
          need(operands(of[j])[1]);
          if (nodes_[of[j]].code == op::remote_barrier) need(operands(operands(of[j])[0])[1]);
        } else if (k == node_kind::view) {
          need_view(of[j]);
        } else if (k == node_kind::value && nodes_[of[j]].shape == 0) {
          need(of[j]); // parity, predicate, rank
        }
      }
    }
  }
  drain();
  if (promises_.empty()) return;
  for (int p = 0; p < promises_.size(); ++p) { // about launches; one must not bring in anything new but its operands
    int const i = promises_[p];
    need(*operands(i));
    at_[i].kept = true;
    keep_regions(at_[i].parent - 1);
  }
  drain();
}

constexpr void slicer::keep_regions(int r) {
  while (r >= 0 && !at_[r].kept) {
    at_[r].kept = true;
    node const& n = nodes_[r];
    if (n.code == op::while_begin)
      need(g_.operand(static_cast<int>(g_.attribute(r, 0)), 0));
    else
      for (int j = 0; j < n.operand_count; ++j) need(pool_[n.operands + j]);
    r = at_[r].parent - 1;
  }
}

constexpr void slicer::need_view(int v) {
  while (nodes_[v].code != op::alloc) {
    std::int32_t const* const of = operands(v);
    for (int j = 1; j < nodes_[v].operand_count; ++j)
      if (!at_[of[j]].needed) need(of[j]);
    v = of[0];
  }
}

constexpr void slicer::need(int i) {
  sliced_node& s = at_[i];
  if (s.needed) return;
  s.needed = true;
  node const& x = nodes_[i];
  if (x.code != op::constant) {
    s.live = true;
    work_[works_++] = i;
    return;
  }
  // All that will be known of it is known now.
  std::int64_t const bits = attributes_[x.attributes], v = bits >= 0 && bits < 128 && x.type != dtype::b1 ? bits : wrap(x.type, bits);
  s.folded = v ^ unknown;
  s.reg = constant_register(i, v);
}

constexpr void slicer::drain() {
  while (works_ > 0) {
    int const i = work_[--works_];
    node const& n = nodes_[i];
    std::int32_t const* const of = pool_ + n.operands;
    if (n.kind == node_kind::token && n.code != op::var_get && n.code != op::var) continue;
    if (n.code == op::for_begin) {
      keep_regions(i);
    } else if (n.code == op::var_get) {
      need(of[0]);
    } else if (n.code == op::var) {
      need(of[0]);
      for (int s = at_[i].first_set - 1; s >= 0; s = at_[s].next_set - 1) {
        at_[s].kept = true;
        need(operands(s)[1]);
        keep_regions(at_[s].parent - 1);
      }
    } else if (n.code == op::replica_id) {
      continue;
    } else if (n.code == op::cluster_rank || (clusters_ && cluster_axis(i) >= 0)) {
      at_[i].rank = true;
    } else if (is_root(n)) {
      at_[i].root = true;
    } else {
      for (int j = 0; j < n.operand_count; ++j)
        if (!at_[of[j]].needed) need(of[j]);
    }
  }
}

constexpr bool slicer::is_root(node const& n) const {
  if (n.kind != node_kind::value || n.shape != 0 || n.type > dtype::u64 || !classes_of_nodes.evaluated[static_cast<int>(n.code)]) return true;
  for (int j = 0; j < n.operand_count; ++j)
    if (nodes_[pool_[n.operands + j]].shape != 0 || nodes_[pool_[n.operands + j]].type > dtype::u64) return true;
  return false;
}

/// The axis of the cluster along which node i, `program_id(axis) % extent`, says where the CTA is; -1: it is something else.
constexpr int slicer::cluster_axis(int i) const {
  node const& n = nodes_[i];
  if (!clusters_ || (n.code != op::rem && n.code != op::bit_and)) return -1;
  node const &a = nodes_[operands(i)[0]], &b = nodes_[operands(i)[1]];
  if (a.code != op::program_id || b.code != op::constant) return -1;
  int const axis = static_cast<int>(g_.attribute(operands(i)[0], 0));
  std::int64_t const extent = axis == 0 ? g_.attrs.cluster.x : axis == 1 ? g_.attrs.cluster.y : g_.attrs.cluster.z;
  std::int64_t const by = g_.attribute(operands(i)[1], 0) + (n.code == op::bit_and);
  return by == extent && (n.code == op::rem || (extent & (extent - 1)) == 0) ? axis : -1;
}

/// What neither is computed here nor comes from outside.
constexpr bool slicer::is_state(node const& n) {
  return n.code == op::for_begin || n.code == op::var || n.code == op::var_get || n.kind == node_kind::token || n.code == op::replica_id;
}

/// What is constant, what depends on a loop or a var, the numbers of roots, and the list of what is live, in order.
constexpr void slicer::fold() {
  vec<std::int32_t> roots;
  int const n = g_.size();
  live_ = new std::int32_t[static_cast<unsigned>(n) + 1];
  sliced_node* const at = at_;
  int lives = 0, open = 0, known = 0;
  std::int64_t v[3]{};
  for (int i = 0; i < n; ++i) {
    if (!at[i].live) continue;
    live_[lives++] = i;
    sliced_node& s = at[i];
    if (s.kind == node_class::opens)
      open = i + 1;
    else if (s.kind == node_class::closes)
      open = s.parent == 0 ? 0 : at[s.parent - 1].parent;
    if (!s.needed) continue;
    node const& x = nodes_[i];
    if (s.root) {
      s.varies = fresh(x.code);
      for (int j = 0; j < x.operand_count && !s.varies; ++j) // a root of roots, a reduction say: equal only when it is the same node
        if (int const o = pool_[x.operands + j]; o >= 0 && nodes_[o].kind != node_kind::array) s.varies = true;
      s.number = i + 1;
      if (s.varies) {
        s.varies = open > 0;
        continue;
      }
      int k = 0;
      while (k < roots.size() && !equal(i, roots[k], attribute_count(x.code))) ++k;
      if (k < roots.size())
        s.number = roots[k] + 1;
      else
        roots.add() = i;
    } else if (s.rank || is_state(x)) {
      s.varies = true;
    } else {
      v[0] = v[1] = v[2] = 0;
      known = 0;
      for (int j = 0; j < x.operand_count && j < 3; ++j) {
        sliced_node const& o = at[pool_[x.operands + j]];
        v[j] = o.folded ^ unknown;
        known += v[j] != unknown;
        if (o.varies) s.varies = true;
      }
      if (known == 0 || (x.code == op::where && v[0] == unknown)) continue;
      // `evaluate` makes something of one operand alone only where that is 0 or 1.
      if (known < x.operand_count && x.code != op::where && v[0] != 0 && v[1] != 0 && v[0] != 1 && v[1] != 1) continue;
      s.folded = evaluate(x.code, nodes_[pool_[x.operands]].type, x.type, v[0], v[1], v[2]) ^ unknown;
    }
  }
  lives_ = lives;
}

/// Value numbers of everything needed. Few kernels ask for them.
constexpr void slicer::number() {
  if (numbered_) return;
  numbered_ = true;
  int const buckets = lives_ + 16;
  table<int> bucket;
  bucket.resize(buckets, -1);
  for (int k = 0; k < lives_; ++k) {
    int const i = live_[k];
    sliced_node& s = at_[i];
    if (!s.needed || s.root) continue;
    node const& x = nodes_[i];
    s.number = i + 1;
    if (s.rank || is_state(x)) continue;
    std::uint32_t h = static_cast<std::uint32_t>(x.code) * 31u + static_cast<std::uint32_t>(x.type);
    int const attributes = attribute_count(x.code);
    for (int j = 0; j < attributes; ++j) h = h * 31u + static_cast<std::uint32_t>(g_.attribute(i, j));
    for (int j = 0; j < x.operand_count; ++j) h = h * 31u + static_cast<std::uint32_t>(operand_number(pool_[x.operands + j]));
    int& head = bucket[static_cast<int>(h % static_cast<std::uint32_t>(buckets))];
    int same = head;
    while (same >= 0 && !equal(i, same, attributes)) same = at_[same].chain - 1;
    if (same >= 0) {
      s.number = same + 1;
    } else {
      s.chain = head + 1;
      head = i;
    }
  }
}

constexpr bool slicer::equal(int a, int b, int attributes) const {
  node const &x = nodes_[a], &y = nodes_[b];
  if (x.code != y.code || x.type != y.type || x.operand_count != y.operand_count) return false;
  for (int j = 0; j < attributes; ++j)
    if (g_.attribute(a, j) != g_.attribute(b, j)) return false;
  for (int j = 0; j < x.operand_count; ++j)
    if (operand_number(pool_[x.operands + j]) != operand_number(pool_[y.operands + j])) return false;
  return true;
}

} // namespace kiln::detail
