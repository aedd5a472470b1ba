// Spreads the CTAs of a host launch over the worker threads: how many at a time, on whom, with which scratch memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "kiln/export.hpp"

namespace kiln::detail {

/// What compiled host code looks like; compiler_interface.hpp has it as host_entry.
using host_function = void(std::uint64_t const* slots, std::uint32_t const* grid, std::int64_t first, std::int64_t last,
                           void* arena, void* runtime);

/// One launch. Everything that is pointed to stays alive until `run_on_host` returns.
struct host_work {
  host_function* entry = nullptr;
  std::uint64_t const* slots = nullptr;
  std::uint32_t grid[3] = {1, 1, 1};
  std::int64_t arena_bytes = 0; ///< of one worker
  /// CTAs that are best run in one call: pieces of the grid are multiples of it, unless two of them a thread would be more
  /// than the grid has.
  std::int64_t group = 1;
  bool flush_denormals = false; ///< the kernel asked for it
  void* runtime = nullptr;      ///< for the hooks
  std::atomic<bool> const* stop = nullptr; ///< once true, pieces that have not begun are left out
};

/// What is known of a kernel's speed on the host; one per compiled kernel, shared by its launches.
class host_speed {
public:
  /// Picoseconds of one thread for one CTA, a running average; 0 before the first launch.
  std::uint64_t picoseconds_per_cta() const { return average_.load(std::memory_order_relaxed); }
  void add(std::uint64_t picoseconds_per_cta) {
    std::uint64_t old = this->picoseconds_per_cta();
    average_.store(old == 0 ? picoseconds_per_cta : (3 * old + picoseconds_per_cta) / 4, std::memory_order_relaxed);
  }

private:
  std::atomic<std::uint64_t> average_{0};
};

/// Runs the launch and returns when it is done. A launch of less than about 20 us, as far as `speed` knows, runs on the
/// caller; longer ones in pieces of about that size. Takes no lock on the first path; launches that are spread wait for
/// each other. Allocates only where a worker's arena has to grow. Errors: std::bad_alloc for an arena that cannot be
/// had.
KILN_INTERNAL_API void run_on_host(host_work const& work, host_speed& speed);

} // namespace kiln::detail
