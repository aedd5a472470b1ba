// The verifier's part for clusters: operands, results and places of what CTAs do with each other, and the size of a cluster.
// verify_tasks.hpp calls it.
//
// Rules: R-BD06 what asynchronous remote writes can move, R-BR06 barriers of other CTAs, R-CP05, R-CP11.
#pragma once
#include <kiln/graph/cluster.hpp>
#include <kiln/graph/local_layout.hpp>
#include <kiln/graph/recorder.hpp>

namespace kiln::detail {

/// What a view shows of its slot: a run of bytes from some place on, or not.
struct view_run {
  bool whole = true;       ///< the slot, in its own order
  bool contiguous = true;  ///< its elements follow each other, where the slot's do
  bool rows = true;        ///< the last axis is the slot's
  int buffer = -1;
};
constexpr view_run run_of(graph_view const& g, int v) {
  view_run r;
  for (; g[v].code != op::alloc; v = g.operand(v, 0)) {
    int const from = g.operand(v, 0);
    shape const &s = g.shape_of(v), &f = g.shape_of(from);
    switch (g[v].code) {
    case op::view_index:
      if (g[from].kind != node_kind::buffers) r.whole = false; // a row of it
      break;
    case op::view_slice: {
      // One index of every axis before the first that is narrowed, all of every axis after it.
      int d = 0;
      while (d < s.rank && s.extent[d] == 1) ++d;
      for (++d; d < s.rank; ++d)
        if (s.extent[d] != f.extent[d]) r.contiguous = false;
      r.whole = r.whole && s == f;
      break;
    }
    case op::view_trans: {
      bool moved = false;
      for (int d = 0; d < s.rank; ++d) moved = moved || g.attribute(v, d) != d;
      if (moved) r.whole = r.contiguous = false;
      if (s.rank > 0 && g.attribute(v, s.rank - 1) != s.rank - 1) r.rows = false;
      break;
    }
    default: break; // the same elements in the same order
    }
  }
  r.buffer = static_cast<int>(g.attribute(v, 0));
  return r;
}

/// What the checks of one operation, node i, say of it.
struct operation_check {
  graph_view const& g;
  int i;
  diagnostic& d;

  constexpr message bad(char const* rule) const {
    d.node = i;
    message m(d);
    m << "kiln[" << rule << "] " << name_of(g[i].code) << ": ";
    return m;
  }
  constexpr bool needs(int j, char const* what) const {
    bad("G-03") << "operand " << j << " is not " << what;
    return false;
  }
  constexpr bool gives(node_kind kind, dtype t, char const* what) const {
    if (g[i].kind == kind && g[i].type == t && g[i].shape == 0) return true;
    bad("G-04") << "the result is not " << what;
    return false;
  }
  constexpr bool nothing() const { return gives(node_kind::none, g[i].type, "nothing"); }
  constexpr node const& in(int j) const { return g[g.operand(i, j)]; }
};

/// Checks node i, of cluster_rank .. fence_barrier_init. Fills `d` and returns false when it is not what ops.def says.
constexpr bool verify_cluster_operation(graph_view const& g, int i, diagnostic& d) {
  node const& n = g[i];
  operation_check const c{g, i, d};
  auto rank = [&](int j) {
    node const& r = c.in(j);
    if (r.kind == node_kind::value && r.type == dtype::i32 && r.shape != 0) {
      c.bad("R-UN01") << "the rank varies within the CTA; it must be one integer for all";
      return false;
    }
    return (r.kind == node_kind::value && r.type == dtype::i32) || c.needs(j, "an i32 scalar");
  };
  auto barrier = [&](int j) {
    if (c.in(j).kind != node_kind::barrier) return c.needs(j, "a barrier");
    if (c.in(j).code != op::remote_barrier) return true;
    c.bad("R-BR06") << "its barrier is remote already (line " << c.in(j).line << "); it takes this CTA's own name of it";
    return false;
  };
  auto shared = [&](int j) {
    if (c.in(j).kind != node_kind::view) return c.needs(j, "a view");
    int const b = g.buffer_of(g.operand(i, j));
    if (g.buffer(b).where == storage::smem) return true;
    auto m = c.bad("R-CP05");
    put_buffer_name(m, g, b);
    m << " is in tensor memory, which other CTAs cannot reach; use storage::smem";
    return false;
  };
  auto like_view = [&](int j, node_kind kind, char const* what) {
    return (c.in(j).kind == kind && c.in(j).type == c.in(0).type && g.shape_of(g.operand(i, j)) == g.shape_of(g.operand(i, 0))) || c.needs(j, what);
  };
  switch (n.code) {
  case op::cluster_rank: return c.gives(node_kind::value, dtype::i32, "an i32 scalar");
  case op::remote_barrier: return barrier(0) && rank(1) && c.gives(node_kind::barrier, dtype::b1, "a barrier");
  case op::remote_store: return shared(0) && like_view(1, node_kind::value, "a value of the view's type and shape") && rank(2) && c.nothing();
  case op::async_remote_store: {
    if (!shared(0) || !like_view(1, node_kind::value, "a value of the view's type and shape") || !rank(2) || !barrier(3)) return false;
    shape const& s = g.shape_of(g.operand(i, 0));
    std::int64_t const row = bytes_of(c.in(0).type, s.rank == 0 ? 1 : s.extent[s.rank - 1]);
    view_run const r = run_of(g, g.operand(i, 0));
    if (row % 4 != 0 || (!r.rows && bytes_of(c.in(0).type) < 4)) {
      c.bad("R-BD06") << "moves groups of 4 bytes, but ";
      message m(d);
      if (row % 4 != 0)
        m << "a row of its view has " << row;
      else
        m << "elements of " << bytes_of(c.in(0).type) << " B do not follow each other in its view";
      return false;
    }
    return c.nothing();
  }
  case op::async_remote_copy: {
    if (!shared(0) || !shared(1) || !like_view(1, node_kind::view, "a view of the same type and shape") || !rank(2) || !barrier(3)) return false;
    std::int64_t const bytes = bytes_of(c.in(0).type, g.shape_of(g.operand(i, 0)).elements());
    if (bytes % 16 != 0) {
      c.bad("R-BD06") << "moves " << bytes << " B, not a multiple of 16";
      return false;
    }
    view_run const to = run_of(g, g.operand(i, 0)), from = run_of(g, g.operand(i, 1));
    slot_layout const &lt = g.buffer(to.buffer).layout, &lf = g.buffer(from.buffer).layout;
    bool const plain = lt.plain() && lf.plain(), dense = lt == lf && lt.paddings == 0 && lt.cosize(g.shape_of(g.operand(i, 0)).elements()) == g.shape_of(g.operand(i, 0)).elements();
    for (int j = 0; j < 2; ++j) {
      view_run const& r = j == 0 ? to : from;
      if (plain ? r.contiguous : dense && r.whole) continue;
      auto m = c.bad("R-BD06");
      put_buffer_name(m, g, r.buffer);
      m << (plain ? " is taken in a view whose elements do not follow each other; copy whole rows, or use async_remote_shmem_store"
                  : " has a layout with which only whole slots, from the same layout without gaps, can be copied; use async_remote_shmem_store");
      return false;
    }
    for (int j = 0; j < 2; ++j) {
      int const b = j == 0 ? to.buffer : from.buffer;
      if (g.buffer(b).place.offset % 16 == 0) continue;
      auto m = c.bad("R-BD06");
      put_buffer_name(m, g, b);
      m << " starts at no multiple of 16 bytes; allocate or declare it with .align = 16";
      return false;
    }
    return c.nothing();
  }
  default: return c.nothing();
  }
}

/// R-CP08: how many warps a CTA can have anywhere; the target's own limit is in capacity.hpp.
constexpr bool verify_warps(graph_view const& g, diagnostic& d) {
  d.node = 0;
  while (d.node + 1 < g.size() && g[d.node].line == 0) ++d.node; // parameters have no line
  message(d) << "kiln[R-CP08] attributes{.num_warps = " << g.attrs.num_warps << "}: valid 1..64";
  return false;
}

/// R-CP11: how many CTAs a cluster can have anywhere.
constexpr bool verify_cluster_size(graph_view const& g, diagnostic& d) {
  dims const& c = g.attrs.cluster;
  std::int64_t const most = g.attrs.cluster_nonportable ? 16 : 8;
  bool const small = c.x >= 1 && c.y >= 1 && c.z >= 1 && c.x <= 16 && c.y <= 16 && c.z <= 16;
  if (small && c.x * c.y * c.z <= most) return true;
  d.node = 0;
  while (d.node + 1 < g.size() && g[d.node].line == 0) ++d.node; // parameters have no line
  message m(d);
  m << "kiln[R-CP11] attributes{.cluster = {" << c.x << ", " << c.y << ", " << c.z << "}}";
  if (c.x < 1 || c.y < 1 || c.z < 1)
    m << ": extents are at least 1";
  else if (!small || c.x * c.y * c.z > 16)
    m << ": a cluster has at most 16 CTAs";
  else
    m << ": " << c.x * c.y * c.z << " CTAs; more than 8 need .cluster_nonportable = true";
  return false;
}

} // namespace kiln::detail
