// Vector clocks of the agents of a CTA, or of all CTAs of a cluster where those meet. A lane counts the progress of one thing: an agent's own events, the phases of a
// barrier, an agent's completed asynchronous copies. What happened is known by a stamp (lane, value); an agent has it behind it
// when its clock has reached that value in that lane.
//
// Worked example: an agent issues copy 3, which writes stamp (copies of agent 0, 3) into the bytes. A wait that covers the copy
// raises that lane of the agent's clock to 3; its arrival at a barrier then hands the clock on to whoever waits there.
#pragma once
#include <kiln/graph/cluster.hpp>

#include <algorithm>
#include <vector>

namespace kiln::interpreter {

/// The lanes of a kernel. Agents, slots and named barriers of a cluster are numbered through: those of CTA 0, then of CTA 1, ..
struct lanes {
  explicit lanes(graph_view const& g) {
    bool meet = false, copies = false;
    for (node const& n : g.nodes) {
      meet = meet || is_of_clusters(n.code);
      copies = copies || n.code == op::async_remote_copy;
    }
    if (meet) ctas = cluster_size(g.attrs);
    first_slot.assign(g.nodes.size(), -1);
    for (int i = 0; i < g.size(); ++i) {
      op const o = g[i].code;
      if (o == op::task_begin) each += static_cast<int>(g.attribute(i, 2));
      if (o == op::alloc_barriers) {
        first_slot[static_cast<std::size_t>(i)] = slots_each;
        slots_each += static_cast<int>(g.attribute(i, 0));
      }
      bulk = bulk || o == op::async_load_bulk || o == op::async_store_bulk || o == op::async_remote_copy;
    }
    agents = ctas * each;
    slots = ctas * slots_each;
    readers = agents == 1 && !bulk ? 0 : each + (bulk ? each : 0) + (copies ? each * ctas : 0);
    count = agents + slots + ctas * named_barriers + 4 * agents;
  }
  static constexpr int named_barriers = 16; ///< of a CTA
  int ctas = 1;       ///< that run together
  int each = 1;       ///< agents of a CTA: the kernel's own, then every replica of every task
  int slots_each = 0; ///< memory barriers of a CTA
  int agents = 1, slots = 0; ///< of all CTAs
  bool bulk = false;
  /// Kinds of reads that a byte remembers: of its CTA's agents, of their bulk stores, and of their copies to each CTA of the
  /// cluster; 0: program order is enough.
  int readers = 0;
  int count = 0;
  std::vector<int> first_slot; ///< by alloc_barriers node

  int barrier(int slot) const { return agents + slot; }
  int named(int id) const { return agents + slots + id; }
  int copies(int agent) const { return agents + slots + ctas * named_barriers + agent; }
  int fences(int agent) const { return copies(agents) + agent; }
  int stores(int agent) const { return fences(agents) + agent; }
  int globals(int agent) const { return stores(agents) + agent; } ///< bulk stores whose writes are complete
  bool is_agent(int lane) const { return lane < agents; }
  bool is_barrier(int lane) const { return lane >= agents && lane < agents + slots; }
};

class clock {
public:
  explicit clock(int count = 0) : at_(static_cast<std::size_t>(count)) {}
  u32 operator[](int lane) const { return at_[static_cast<std::size_t>(lane)]; }
  u32& operator[](int lane) { return at_[static_cast<std::size_t>(lane)]; }
  void join(clock const& o) {
    for (std::size_t i = 0; i < at_.size(); ++i) at_[i] = std::max(at_[i], o.at_[i]);
  }
  void raise(int lane, u32 value) { at_[static_cast<std::size_t>(lane)] = std::max(at_[static_cast<std::size_t>(lane)], value); }

private:
  std::vector<u32> at_;
};

} // namespace kiln::interpreter
