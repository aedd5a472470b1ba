// Host launches over the thread pool.
#include "src/runtime/host_launch.hpp"

#include <algorithm>
#include <chrono>

#include "src/runtime/float_environment.hpp"
#include "src/runtime/huge_pages.hpp"
#include "src/runtime/thread_pool.hpp"

namespace kiln::detail {

namespace {

// Waking a sleeping worker costs some microseconds, and handing out a piece some tens of nanoseconds: pieces of this
// size hide both.
constexpr std::uint64_t piece_picoseconds = 20'000'000;
constexpr std::int64_t unknown_speed_piece = 64;
constexpr std::int64_t pieces_per_thread = 4; // at least, so that threads finish together

std::uint64_t picoseconds_since(std::chrono::steady_clock::time_point start) {
  std::chrono::nanoseconds passed = std::chrono::steady_clock::now() - start;
  return static_cast<std::uint64_t>(passed.count()) * 1000;
}

} // namespace

void run_on_host(host_work const& work, host_speed& speed) {
  auto ctas = std::int64_t{work.grid[0]} * work.grid[1] * work.grid[2];
  if (ctas == 0) return;
  auto& pool = thread_pool::shared();
  std::int64_t group = std::max<std::int64_t>(work.group, 1);
  std::uint64_t cost = speed.picoseconds_per_cta();
  bool small = cost != 0 && static_cast<std::uint64_t>(ctas) < piece_picoseconds / cost;
  // Groups share work, so they are worth more than even pieces; but not more than a second thread.
  while (group > 1 && pool.size() > 1 && ctas < 2 * pool.size() * group) group = (group + 1) / 2;
  std::int64_t piece = ctas;
  if (!small && pool.size() > 1) {
    piece = cost != 0 ? static_cast<std::int64_t>(piece_picoseconds / cost) : unknown_speed_piece;
    piece = std::clamp<std::int64_t>(piece, 1, std::max<std::int64_t>(ctas / (pieces_per_thread * pool.size()), 1));
    piece = (piece + group - 1) / group * group;
  }

  auto run = [&](int, std::int64_t first, std::int64_t last) {
    if (work.stop != nullptr && work.stop->load(std::memory_order_relaxed)) return;
    void* arena = host_arena::of_this_thread().reserve(static_cast<std::size_t>(work.arena_bytes));
    if (work.flush_denormals) {
      float_environment modes(true);
      work.entry(work.slots, work.grid, first, last, arena, work.runtime);
    } else {
      work.entry(work.slots, work.grid, first, last, arena, work.runtime);
    }
  };
  auto start = std::chrono::steady_clock::now();
  pool.run(ctas, piece, run);
  if (work.stop != nullptr && work.stop->load(std::memory_order_relaxed)) return; // says nothing about speed
  auto threads = static_cast<std::uint64_t>(std::min<std::int64_t>(pool.size(), (ctas + piece - 1) / piece));
  speed.add(std::max<std::uint64_t>(picoseconds_since(start) * threads / static_cast<std::uint64_t>(ctas), 1));
}

} // namespace kiln::detail
