// Where the agents of a CTA meet: memory barriers with phases and bytes, named barriers, and the engine events that complete
// on them.
#pragma once
#include "src/interpreter/local_memory.hpp"

#include <deque>
#include <string>

namespace kiln::interpreter {

class agent;

struct barrier_state {
  int node = -1;        ///< alloc_barriers
  int index = 0;        ///< within the allocation
  i64 arrivals = 1;     ///< of a phase
  bool per_thread = false;
  i64 pending = 1;      ///< arrivals still to come
  i64 expected = 0, signalled = 0, issued = 0; ///< bytes of the present phase
  u32 phase = 0;        ///< phases completed
  u32 ready = 0;        ///< when its CTA made it ready for others; 0: not yet
  int ready_by = 0;     ///< agent
  u32 engine_phase = 0; ///< one more than the phase of the last copy or arrival by an engine
  int last = -1;        ///< node of the last arrival or copy
  int last_agent = -1;
  clock arrived;        ///< joined by every arrival
  clock completed;      ///< as of the last completed phase
  std::vector<u32> waited; ///< by agent: when it last waited here
  i64 cause = 0, completed_by = 0; ///< traces: time of the last arrival or copy, and of that which completed the last phase
};

struct named_state {
  i64 present = 0, threads = 0; ///< of the present generation
  u32 generation = 0;
  int last = -1;
  std::vector<bool> here;       ///< by agent: arrived in this generation
  clock arrived, completed;
  i64 completed_by = 0;         ///< traces: time of the arrival that ended the last generation
};

/// A bulk copy or an arrival that completes on a barrier by itself.
struct engine_event {
  int slot = -1;
  int by = -1;            ///< agent
  int node = -1;
  i64 bytes = 0;          ///< of a bulk copy
  int cta = -1;           ///< rank of the CTA whose memory it goes to
  async_copy copy{};
  i64 arrivals = 0;       ///< of async_arrive
  u32 copies = 0;         ///< which lets that many copies of its agent land first
  i64 cause = 0;          ///< traces: time of its operation
  clock known{};
};

/// The barrier of a cluster.
struct cluster_meeting {
  int present = 0;
  u32 generation = 0;
  int last = -1; ///< node of the last arrival
  clock arrived, completed;
  i64 completed_by = 0; ///< traces: time of the arrival that ended the last generation
};

class rendezvous {
public:
  rendezvous(graph_view const& g, lanes const& l);
  std::vector<barrier_state> barriers; ///< by slot
  std::vector<named_state> named;
  cluster_meeting all; ///< CTAs
  std::deque<engine_event> events;     ///< that the engines have not delivered

  void arrive(agent& a, int node, int slot, i64 count);
  void expect(agent& a, int node, int slot, i64 bytes);
  void wait(agent& a, int node, int slot, bool parity);
  void meet(agent& a, int node, int id, i64 threads, bool wait);
  /// The cluster barrier.
  void meet_cluster(agent& a, int node);
  void issue(agent& a, engine_event e);
  /// One more event lands: any, by the seed. False when there is none.
  bool deliver_one(agent& a);
  /// With policy random, some land now.
  void advance(agent& a);

private:
  /// An arrival must know which phase it belongs to.
  void member(agent& a, int node, int slot);
  void complete(agent& a, int node, int slot);
  void land(agent& a, engine_event e);
};

} // namespace kiln::interpreter
