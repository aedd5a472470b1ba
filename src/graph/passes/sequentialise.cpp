// Takes tasks apart at their waits and runs the pieces in turn.
#include "src/graph/passes/sequentialiser.hpp"

#include <kiln/graph/cluster.hpp>

namespace kiln {

graph sequentialise_tasks(graph_view const& g) {
  bool any = false, cluster = cluster_size(g.attrs) > 1;
  for (node const& n : g.nodes) any = any || is_of_tasks(n.code), cluster = cluster || is_of_clusters(n.code);
  if (cluster) return sequentialise_cluster(g);
  if (!any) return graph(g);
  return detail::sequentialised<detail::sequentialiser>(g);
}

} // namespace kiln
