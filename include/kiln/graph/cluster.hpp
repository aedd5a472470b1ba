// What a graph says about clusters: their size, whether their CTAs touch each other's memory, and where kiln makes them meet.
#pragma once
#include <kiln/graph/graph.hpp>

namespace kiln {

/// CTAs of a cluster.
constexpr int cluster_size(attributes const& a) { return static_cast<int>(a.cluster.x * a.cluster.y * a.cluster.z); }

/// Whether a CTA reaches local memory or barriers of another.
constexpr bool has_remote_traffic(graph_view const& g) {
  if (cluster_size(g.attrs) == 1) return false;
  for (node const& n : g.nodes)
    if (n.code >= op::remote_barrier && n.code <= op::async_remote_copy) return true;
  return false;
}

/// Whether the end of this region of tasks is a cluster barrier too: where CTAs reach each other, unless the region says
/// `.no_ending_cluster_sync`.
constexpr bool joins_cluster(graph_view const& g, int tasks_begin) { return g.attribute(tasks_begin, 1) == 0 && has_remote_traffic(g); }

} // namespace kiln
