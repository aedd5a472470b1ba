// The threads that run a host launch. One launch at a time is spread: its chunks are handed out from one shared
// counter, and the caller is worker 0. Idle workers spin for about 0.1 ms, then sleep; a launch never waits for a
// worker that is still asleep.
//
// The state word holds the protocol: bit 31 says that the current job takes workers, the bits below count those at work
// on it. A worker joins by incrementing the count while the bit is set; the caller clears the bit when the counter has
// run out and waits until the count is 0. The job's fields are therefore constant while anybody may read them.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "kiln/export.hpp"

namespace kiln::detail {

class KILN_INTERNAL_API thread_pool {
public:
  /// What runs on a worker: indices [first, last) of the job. May throw; the first exception ends the job early.
  using chunk_function = void (*)(void* context, int worker, std::int64_t first, std::int64_t last);

  /// A pool of `threads` workers, the caller of `run` among them. Threads start with the first job that needs them.
  explicit thread_pool(int threads);
  thread_pool(thread_pool const&) = delete;
  thread_pool& operator=(thread_pool const&) = delete;
  ~thread_pool();

  /// The pool of this process, with `configured_threads()` workers. Errors: as that function's.
  static thread_pool& shared();

  int size() const { return threads_; }

  /// Runs `run` over [0, count) in pieces of `chunk`, each piece starting at a multiple of `chunk`, and returns when
  /// all are done. With one piece, with one worker, or from inside a job it runs on the caller alone. Errors: rethrows
  /// the first exception of a piece; pieces not yet begun are then left out.
  void run(std::int64_t count, std::int64_t chunk, chunk_function run, void* context);

  /// For a running piece to call: pieces of its job that have not begun are left out.
  void cancel() noexcept;

  template <class Function> void run(std::int64_t count, std::int64_t chunk, Function&& function) {
    run(
        count, chunk,
        [](void* context, int worker, std::int64_t first, std::int64_t last) {
          (*static_cast<std::remove_reference_t<Function>*>(context))(worker, first, last);
        },
        &function);
  }

private:
  struct job {
    chunk_function run = nullptr;
    void* context = nullptr;
    std::int64_t count = 0;
    std::int64_t chunk = 1;
  };

  // Where a worker sleeps. The mask is what it may run on when it is woken with less, see `spread_sleepers`.
  struct bed {
    enum state : int { awake, asleep, changing, narrowed };
    std::atomic<state> now{awake};
    int thread = 0; // of the system
    int cpu = 0;
    cpu_set_t mask{};
  };

  void run_alone(job const& work, int worker);
  void start_threads();
  void worker_loop(int worker);
  void take_chunks(int worker) noexcept;
  void spread_sleepers() noexcept;
  void sleep(int worker, std::uint32_t seen) noexcept;
  void forget_threads(); // in the child of a fork

  int const threads_;
  bool started_ = false;
  std::vector<std::thread> workers_;
  std::vector<bed> beds_; // one for each thread, the caller's unused
  std::mutex callers_; // one spread job at a time

  job job_;
  std::exception_ptr failure_;
  alignas(64) std::atomic<std::int64_t> next_{0};
  alignas(64) std::atomic<std::uint32_t> state_{0};    // open bit and number of workers at work
  alignas(64) std::atomic<std::uint32_t> wake_{0};     // counts jobs; workers sleep on it
  alignas(64) std::atomic<std::uint32_t> finished_{0}; // the caller sleeps on it
  std::atomic<int> sleepers_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> stopping_{false};
};

/// Number of CPUs in this process's affinity mask.
KILN_INTERNAL_API int available_cpus();

/// KILN_NUM_THREADS, or where it is unset or empty `available_cpus()`. Errors: kiln::error if it is no number of
/// threads.
KILN_INTERNAL_API int configured_threads();

} // namespace kiln::detail
