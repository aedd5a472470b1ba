// The verifier's part for barriers, bulk copies and tasks: operands, results, attributes. verify.hpp calls it.
#pragma once
#include <kiln/validate/verify_cluster.hpp>

namespace kiln::detail {

/// Checks node i, of alloc_barriers .. replica_id, whose counts and operand order are right. Fills `d` and returns false when it
/// is not what ops.def says.
constexpr bool verify_task_operation(graph_view const& g, int i, diagnostic& d) {
  node const& n = g[i];
  operation_check const c{g, i, d};
  auto within = [&](int a, std::int64_t lo, std::int64_t hi) {
    std::int64_t const x = g.attribute(i, a);
    if (x >= lo && x <= hi) return true;
    c.bad("G-06") << "attribute " << a << " is " << x << ", valid " << lo << ".." << hi;
    return false;
  };
  auto own = [&](int j) { // a barrier of this CTA
    if (g[g.operand(i, j)].code != op::remote_barrier) return true;
    c.bad("R-BR06") << "its barrier is in another CTA (remote_view of line " << g[g.operand(i, j)].line << "); arrive remotely, wait on the local one";
    return false;
  };
  auto is = [&](int j, node_kind kind) { return c.in(j).kind == kind; };
  auto scalar = [&](int j) { return is(j, node_kind::value) && c.in(j).shape == 0; };
  auto predicate = [&](int j) {
    return g.operand(i, j) < 0 || (scalar(j) && c.in(j).type == dtype::b1) || c.needs(j, "a b1 scalar");
  };
  auto text = [&](int a) { return within(a, 0, static_cast<std::int64_t>(g.strings.size()) - 1); };
  // One axis of elements that fill a multiple of 16 bytes, and a pointer to such.
  auto bulk = [&] {
    if (!is(0, node_kind::pointer) || c.in(0).shape != 0) return c.needs(0, "a pointer");
    shape const& s = g.shape_of(g.operand(i, 1));
    if (!is(1, node_kind::view) || s.rank != 1 || c.in(1).type != c.in(0).type) return c.needs(1, "a one-axis view of the pointer's elements");
    int v = g.operand(i, 1);
    bool packed = true;
    for (; g[v].code != op::alloc; v = g.operand(v, 0))
      if (int const last = g.shape_of(v).rank - 1; g[v].code == op::view_trans && g.attribute(v, last) != last) packed = false;
    if (!packed || g.buffer(static_cast<int>(g.attribute(v, 0))).place.offset % 16 != 0) {
      c.bad("R-BD06") << (packed ? "its view starts at no multiple of 16 bytes; allocate or declare it with .align = 16" : "its view is a column, not a row of consecutive elements");
      return false;
    }
    if (!g.buffer(static_cast<int>(g.attribute(v, 0))).layout.plain()) {
      c.bad("R-BD06") << "its buffer has a layout in which elements do not follow each other; use layout::row_major";
      return false;
    }
    if (bytes_of(c.in(1).type, s.elements()) % 16 == 0) return true;
    c.bad("R-BD06") << "moves " << bytes_of(c.in(1).type, s.elements()) << " B, not a multiple of 16";
    return false;
  };
  switch (n.code) {
  case op::alloc_barriers:
    return within(0, 1, 1 << 20) && within(1, 1, (1 << 20) - 1) && within(2, 0, 1) && text(3) && c.gives(node_kind::barriers, dtype::b1, "barriers");
  case op::barrier_index:
    if (!is(0, node_kind::barriers)) return c.needs(0, "barriers");
    if (!scalar(1) || !is_int(c.in(1).type)) return c.needs(1, "an integer scalar");
    return c.gives(node_kind::barrier, dtype::b1, "a barrier");
  case op::barrier_wait:
    if (!is(0, node_kind::barrier)) return c.needs(0, "a barrier");
    if (!scalar(1) || c.in(1).type != dtype::i32) return c.needs(1, "an i32 scalar");
    return own(0) && predicate(2) && c.nothing();
  case op::barrier_arrive:
  case op::barrier_expect_bytes:
    if (!is(0, node_kind::barrier)) return c.needs(0, "a barrier");
    return (n.code == op::barrier_arrive || own(0)) && predicate(1) && within(0, n.code == op::barrier_arrive, (1 << 20) - 1) && c.nothing();
  case op::async_arrive: return (is(0, node_kind::barrier) || c.needs(0, "a barrier")) && own(0) && c.nothing();
  case op::named_barrier_wait:
  case op::named_barrier_arrive:
  case op::agent_sync: return c.nothing();
  case op::fence: return within(0, 0, static_cast<int>(fence::async_shared)) && c.nothing();
  case op::async_load_bulk:
    return bulk() && (is(2, node_kind::barrier) || c.needs(2, "a barrier")) && own(2) && predicate(3) && within(0, 0, static_cast<int>(evict::last)) && c.nothing();
  case op::async_store_bulk: {
    if (!bulk()) return false;
    int p = g.operand(i, 0); // written memory is not const
    while (g[p].operand_count > 0) p = g.operand(p, 0);
    if (g[p].code == op::param && g.params[static_cast<std::size_t>(g.attribute(p, 0))].is_const) {
      c.bad("T-14") << "writes through a pointer or array of const";
      return false;
    }
    return c.nothing();
  }
  case op::async_store_wait: return within(0, 0, 0x7fffffff) && within(1, 0, 1) && c.nothing();
  case op::tasks_begin: return within(0, 0, 1) && within(1, 0, 1) && within(2, -1, 0x7fffffff) && c.nothing();
  case op::task_begin: return within(0, 0, 64) && within(1, 0, 256) && within(2, 1, 16) && within(3, -1, 64) && text(4) && c.nothing();
  case op::replica_id: return c.gives(node_kind::value, dtype::i32, "an i32 scalar");
  case op::cluster_rank: case op::remote_barrier: case op::remote_store: case op::async_remote_store: case op::async_remote_copy:
  case op::cluster_barrier: case op::fence_barrier_init: return verify_cluster_operation(g, i, d);
  default: return c.nothing();
  }
}

} // namespace kiln::detail
