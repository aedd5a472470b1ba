// What is known about global memory while a launch is checked: who wrote and who read each element last, and whether an access
// is ordered after that. Rule: R-HZ14.
//
// Within a CTA clocks decide (clocks.hpp): an ordinary access has the stamp of its agent, a bulk store one in its agent's lane of
// stores, which only a wait for complete stores raises. CTAs know of each other through atomics, volatile loads and fences of
// gpu or sys scope: each is taken to see what was behind all earlier ones. That is more than hardware promises, so what is
// reported is wrong whatever the schedule.
//
// Worked example: CTA 0 stores y[0], CTA 1 loads it: no release of CTA 0 lies before an acquisition of CTA 1, and the load is
// reported although CTA 0 did run first. With an atomic after the store and one before the load it is not.
#pragma once
#include <kiln/interpreter/interpreter.hpp>

#include "src/interpreter/clocks.hpp"

#include <memory>
#include <unordered_map>
#include <vector>

namespace kiln::interpreter {

class agent;

/// One access to an element, as later ones remember it.
struct global_event {
  i32 node = -1; ///< -1: none
  i32 cta = -1;  ///< linear; of a cluster whose CTAs meet: the cluster's number
  i32 lane = -1; ///< stamp
  u32 value = 0;
};

class global_shadow {
public:
  global_shadow(graph_view const& g, std::span<host_argument const> arguments, lanes const& l, bool several_ctas, bool check);

  /// The last access to an element, or null where its parameter's memory is never written.
  struct element {
    global_event write{}, read{};
  };
  element* find(int parameter, u64 address);

  /// Whether the agent has the event behind it.
  bool ordered(agent const& a, global_event const& e) const;
  /// The stamp of an access by the agent: an ordinary one, or its next bulk store.
  global_event stamp(agent& a, int node, bool bulk_store) const;
  /// Shows others what is behind the agent, and the agent what others have shown.
  void release(agent& a);
  void acquire(agent& a) const;

private:
  struct region {
    u64 first = 0, end = 0;
    u64 granule = 1; ///< bytes of an element
    std::vector<std::unique_ptr<element[]>> pages;
  };
  struct published {
    u64 sequence;
    clock behind;
  };
  static constexpr u64 page = 1024; ///< elements
  std::vector<region> regions_;
  std::vector<int> region_of_; ///< by parameter, or -1
  lanes const& lanes_;
  std::unordered_map<i32, std::vector<published>> published_; ///< by CTA
  u64 sequence_ = 0;
};

} // namespace kiln::interpreter
