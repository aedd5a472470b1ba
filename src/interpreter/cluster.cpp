// Clusters.
#include "src/interpreter/bodies.hpp"

#include <stdexcept>

namespace kiln::interpreter {

#define KILN_NOT_YET(name)                                                                                             \
  void body<op::name>::run(agent&, int) { throw std::invalid_argument("kiln: interpreter: " #name " is not interpreted yet"); }
KILN_NOT_YET(cluster_rank)
KILN_NOT_YET(remote_barrier)
KILN_NOT_YET(remote_store)
KILN_NOT_YET(async_remote_store)
KILN_NOT_YET(async_remote_copy)
KILN_NOT_YET(cluster_barrier)
KILN_NOT_YET(fence_barrier_init)
#undef KILN_NOT_YET

} // namespace kiln::interpreter
