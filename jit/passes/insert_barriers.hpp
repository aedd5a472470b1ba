// Where a CTA needs barriers: between two accesses of local memory by different threads that touch a common byte, at
// least one of them a write, on any path, loop back-edges included. The input is the list of accesses that a lowering
// made, with the control structure around them, so that what it stages for its own purposes (layout conversions,
// reductions) is covered by the same rule. This runs after all storage has been placed: accesses are bytes, not names.
#pragma once

#include <cstdint>
#include <kiln/export.hpp>
#include <span>
#include <vector>

namespace kiln::jit {

struct byte_range {
  std::uint32_t begin = 0, end = 0; ///< end exclusive
  friend bool operator==(byte_range const&, byte_range const&) = default;
};

/// A slot of a ring that is picked by (loop index + offset) mod modulus. Two accesses of one ring by the same symbol
/// are disjoint while their offsets differ; a pass of the loop moves the offsets of what came before.
struct ring_slot {
  int ring = -1;   ///< which allocation; -1: no such knowledge
  int symbol = -1; ///< which loop's index
  int modulus = 1;
  int offset = 0;
  friend bool operator==(ring_slot const&, ring_slot const&) = default;
};

struct local_event {
  enum class kind : std::uint8_t {
    read,
    write,
    async_write, ///< starts a copy: the bytes change at some time before the wait that covers it
    async_read,  ///< starts a copy out of local memory by one thread: the bytes are read before the wait for stores
    async_wait,  ///< copies that were started have landed for the threads that started them
    store_wait,  ///< the copies out of local memory have been read, for the thread that started them
    other,       ///< an access elsewhere, or a wait, that some thread may not have made yet
    fence,       ///< each thread's own writes become visible to bulk copies
    release,     ///< one thread tells others what all have done
    barrier,     ///< one the author wrote
    loop_begin,  ///< `symbol`, `step`: how the ring symbol of this loop moves in one pass
    loop_exit,   ///< control may leave the innermost loop here
    loop_end,
    branch_begin,
    branch_else,
    branch_end,
  };
  kind what = kind::read;
  std::vector<byte_range> bytes{}; ///< sorted, disjoint
  ring_slot slot{};
  int symbol = -1;
  int step = 0;
  bool drains = false; ///< of a wait: no copy is left flying
  bool bulk = false;   ///< of a copy: one thread starts it, for which all must have made their fences
  /// Of a write that may go to another CTA: when it comes again, each element is written by the thread that wrote it before.
  bool remote = false;
};

/// For every event, whether a barrier is to be inserted right before it.
///
/// The result is sufficient (no pair of conflicting accesses is left without a barrier between them on any path) and
/// no barrier of it can be left out. A wait for copies is followed by a barrier before the first access of their bytes.
KILN_INTERNAL_API std::vector<bool> insert_barriers(std::span<local_event const> events);

/// The bytes of a box: base + sum of i_d * stride_d for 0 <= i_d < extent_d, each `size` bytes; sorted and merged.
struct byte_axis {
  std::int64_t extent, stride;
};
KILN_INTERNAL_API std::vector<byte_range> bytes_of_box(std::int64_t base, std::int64_t size,
                                                       std::span<byte_axis const> axes);

KILN_INTERNAL_API bool overlap(std::span<byte_range const> a, std::span<byte_range const> b);

} // namespace kiln::jit
