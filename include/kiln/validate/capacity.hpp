// Whether a kernel fits a target: local memory by the placement rule, threads, clusters. Part of no other rule: a kernel is right
// or wrong whatever the target, and a configuration that does not fit one may fit another.
#pragma once
#include <kiln/graph/local_layout.hpp>
#include <kiln/target/target.hpp>

namespace kiln {

/// Where local buffers lie. Units: bytes.
///
/// Buffers are placed in the order of their allocation; each starts at a multiple of the largest of 128, its element's size
/// and its `.align`, and so does every slot. Source: the rule for plain row-major buffers; a layout that a matrix unit asks for
/// may need larger alignments, which the lowering adds.
struct local_placement {
  std::int64_t dynamic_bytes = 0; ///< scope::shared_dyn
  std::int64_t static_bytes = 0;  ///< scope::shared_static
  constexpr std::int64_t total() const { return dynamic_bytes + static_bytes; }
};

constexpr local_placement place_local(graph_view const& g) {
  local_placement p;
  for (int i = 0; i < static_cast<int>(g.buffers.size()); ++i) {
    buffer_info const& b = g.buffer(i);
    if (b.where != storage::smem || g.storage_of(i) != i || detail::unused_spec(g, i)) continue;
    std::int64_t& end = b.placement == scope::shared_static ? p.static_bytes : p.dynamic_bytes;
    end = detail::round_up(end, detail::buffer_alignment(b)) + detail::storage_bytes(g, i);
  }
  // Behind the data: 8 bytes a memory barrier.
  std::int64_t barriers = 0;
  for (node const& n : g.nodes)
    if (n.code == op::alloc_barriers) barriers += g.attribute_pool.items[n.attributes];
  if (barriers > 0) p.dynamic_bytes = detail::round_up(p.dynamic_bytes, 8) + 8 * barriers;
  return p;
}

namespace detail {
/// Warps of a CTA: the kernel's own, and the most that the tasks of one region add.
constexpr int warps_of(graph_view const& g) {
  int most = g.attrs.num_warps;
  for (int i = 0, region = 0; i < g.size(); ++i) {
    if (g[i].code == op::tasks_begin) region = 0;
    if (g[i].code != op::task_begin) continue;
    int const w = static_cast<int>(g.attribute(i, 0)), replicas = static_cast<int>(g.attribute(i, 2));
    region += replicas * (w == 0 ? g.attrs.num_warps : w);
    if (region > most) most = region;
  }
  return most;
}
} // namespace detail

/// Why a kernel does not fit `t`; `ok()` when it does.
///
/// Rules: R-CP01 shared memory, R-CP02 static shared memory, R-CP05 tensor memory, R-CP08 threads, R-CP11 clusters.
constexpr diagnostic check_capacity(graph_view const& g, target const& t) {
  diagnostic d;
  auto at = [&](int node) {
    d.node = node < 0 ? 0 : node;
    return detail::message(d);
  };
  auto name = [&](detail::message& m, buffer_info const& b) {
    detail::put_buffer_name(m, b, g.string(b.name), g[b.node].line);
  };
  for (buffer_info const& b : g.buffers)
    if (b.where == storage::tmem && !t.has_tensor_memory() && !t.is_host()) {
      auto m = at(b.node);
      m << "kiln[R-CP05] ";
      name(m, b);
      m << ": " << t.name() << " has no tensor memory; use storage::smem";
      return d;
    }
  local_placement const p = place_local(g);
  bool const too_static = p.static_bytes > t.static_shared_bytes;
  if (too_static || p.total() > t.shared_bytes) {
    // Largest first.
    std::int32_t order[64]{};
    int n = 0;
    auto bytes = [&](int b) { return detail::storage_bytes(g, b); };
    for (int b = 0; b < static_cast<int>(g.buffers.size()); ++b) {
      if (g.buffer(b).where != storage::smem || (too_static && g.buffer(b).placement != scope::shared_static) || n == 64 || bytes(b) == 0) continue;
      int i = n++;
      for (; i > 0 && bytes(order[i - 1]) < bytes(b); --i) order[i] = order[i - 1];
      order[i] = b;
    }
    auto m = at(g.buffer(order[0]).node);
    if (too_static)
      m << "kiln[R-CP02] " << t.name() << ": static shared memory " << p.static_bytes << " B > " << static_cast<std::int64_t>(t.static_shared_bytes) << " B; use scope::shared_dyn: ";
    else
      m << "kiln[R-CP01] " << t.name() << ": shared memory " << p.total() << " B > " << static_cast<std::int64_t>(t.shared_bytes) << " B: ";
    for (int i = 0; i < n && i < 6; ++i) {
      buffer_info const& b = g.buffer(order[i]);
      m << (i ? ", " : "");
      name(m, b);
      m << " " << b.slots << " x " << detail::slot_stride(g, b);
    }
    if (n > 6) m << ", " << n - 6 << " more";
    return d;
  }
  if (t.is_host()) return d;
  int const warps = detail::warps_of(g), threads = warps * t.warp_size;
  if (g.attrs.num_warps < 1 || threads > t.max_threads) {
    at(0) << "kiln[R-CP08] " << t.name() << ": " << warps << " warps = " << threads << " threads, valid 1.." << t.max_threads << "; change attributes{.num_warps}"
          << (warps == g.attrs.num_warps ? "" : ", or the tasks' .num_warps and .replicate");
    return d;
  }
  std::int64_t const ctas = g.attrs.cluster.x * g.attrs.cluster.y * g.attrs.cluster.z;
  std::int64_t const most = t.cluster_max_opt_in > t.cluster_max ? t.cluster_max_opt_in : t.cluster_max;
  if (ctas != 1 && ctas > most) {
    auto m = at(0);
    m << "kiln[R-CP11] " << t.name() << ": a cluster of " << ctas << " CTAs; ";
    if (most)
      m << "at most " << most;
    else
      m << "this target has no clusters";
    return d;
  }
  return d;
}

} // namespace kiln
