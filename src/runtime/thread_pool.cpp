// The host's worker threads; the header explains the protocol.
#include "src/runtime/thread_pool.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "kiln/runtime/error.hpp"
#include "src/runtime/float_environment.hpp"

namespace kiln::detail {

namespace {

constexpr std::uint32_t open_bit = std::uint32_t{1} << 31;
constexpr auto spin_time = std::chrono::microseconds(100);
constexpr int most_threads = 4096;
constexpr int few_threads = 4;

// What this thread runs pieces of. A job inside a piece runs on the thread alone, whoever else is in the pool.
struct position {
  int worker = -1;
  bool alone = false;
  bool cancelled = false; // of a job that runs alone
};
thread_local position current;

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word, int count) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// Spins until `ready` or until the time is up; says whether it is ready.
template <class Ready> bool spin_until(Ready ready) {
  auto deadline = std::chrono::steady_clock::time_point::min();
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      if (ready()) return true;
      spin_pause();
    }
    auto now = std::chrono::steady_clock::now();
    if (deadline == std::chrono::steady_clock::time_point::min()) deadline = now + spin_time;
    if (now >= deadline) return ready();
  }
}

struct position_mark {
  position outer;
  explicit position_mark(position now) : outer(std::exchange(current, now)) {}
  position_mark(position_mark const&) = delete;
  position_mark& operator=(position_mark const&) = delete;
  ~position_mark() { current = outer; }
};

} // namespace

int available_cpus() {
  // The kernel's mask may be larger than cpu_set_t; ask again with more room until it fits.
  for (int cpus = CPU_SETSIZE; cpus <= 1 << 20; cpus *= 2) {
    auto bytes = CPU_ALLOC_SIZE(cpus);
    std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(cpus), [](cpu_set_t* s) { CPU_FREE(s); });
    if (!set) break;
    if (::sched_getaffinity(0, bytes, set.get()) == 0) return std::max(1, CPU_COUNT_S(bytes, set.get()));
    if (errno != EINVAL) break;
  }
  return 1;
}

int configured_threads() {
  char const* text = std::getenv("KILN_NUM_THREADS");
  if (text == nullptr || *text == '\0') return available_cpus();
  int threads = 0;
  auto [end, code] = std::from_chars(text, text + std::strlen(text), threads);
  if (code != std::errc() || *end != '\0' || threads < 1 || threads > most_threads)
    throw error("KILN_NUM_THREADS=" + std::string(text) + ": expected a number of threads between 1 and " +
                std::to_string(most_threads));
  return threads;
}

thread_pool::thread_pool(int threads) : threads_(std::clamp(threads, 1, most_threads)), beds_(static_cast<std::size_t>(threads_)) {}

thread_pool::~thread_pool() {
  stopping_.store(true);
  wake_.fetch_add(1);
  futex_wake(wake_, INT_MAX);
  for (auto& worker : workers_) worker.join();
}

thread_pool& thread_pool::shared() {
  // Never destroyed: a launch may come from another static object's destructor, and workers end with the process.
  static thread_pool* pool = [] {
    static thread_pool* made = new thread_pool(configured_threads());
    ::pthread_atfork(nullptr, nullptr, [] { made->forget_threads(); });
    return made;
  }();
  return *pool;
}

void thread_pool::forget_threads() {
  // A fork copies only the thread that called it. The handles of the others must be neither joined nor destroyed.
  static_cast<void>(new std::vector<std::thread>(std::move(workers_)));
  workers_.clear();
  started_ = false;
  state_.store(0);
  sleepers_.store(0);
  std::construct_at(&callers_);
}

void thread_pool::start_threads() {
  if (started_) return;
  // Signals are the business of the program's own threads.
  sigset_t all, old;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &old);
  try {
    for (auto worker = static_cast<int>(workers_.size()) + 1; worker < threads_; ++worker) {
      workers_.emplace_back([this, worker] { worker_loop(worker); });
      ::pthread_setname_np(workers_.back().native_handle(), ("kiln-" + std::to_string(worker)).substr(0, 15).c_str());
    }
  } catch (std::system_error const&) {
    // Too many threads for this system: go on with those that there are.
  }
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  started_ = true;
}

void thread_pool::run(std::int64_t count, std::int64_t chunk, chunk_function run, void* context) {
  if (count <= 0) return;
  job work{run, context, count, std::max<std::int64_t>(chunk, 1)};
  if (threads_ == 1 || count <= work.chunk || current.worker >= 0) return run_alone(work, std::max(current.worker, 0));

  std::lock_guard one_at_a_time(callers_);
  start_threads();
  job_ = work;
  failure_ = nullptr;
  failed_.store(false, std::memory_order_relaxed);
  next_.store(0, std::memory_order_relaxed);
  state_.store(open_bit, std::memory_order_release);
  wake_.fetch_add(1); // sequentially consistent, as is the sleeper's count: one of the two sides sees the other
  if (int asleep = sleepers_.load(); asleep > 0) {
    spread_sleepers();
    std::int64_t pieces = (count - 1) / work.chunk; // beyond the caller's own
    futex_wake(wake_, static_cast<int>(std::min<std::int64_t>(asleep, pieces)));
  }

  take_chunks(0);

  std::uint32_t finished = finished_.load();
  state_.fetch_and(~open_bit);
  while (!spin_until([&] { return state_.load(std::memory_order_acquire) == 0; })) {
    futex_wait(finished_, finished);
    finished = finished_.load();
  }
  if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void thread_pool::cancel() noexcept {
  if (current.alone) current.cancelled = true;
  else if (current.worker >= 0) next_.store(INT64_MAX / 2, std::memory_order_relaxed);
}

void thread_pool::run_alone(job const& work, int worker) {
  float_environment modes;
  position_mark mark({.worker = worker, .alone = true});
  // In pieces too, so that what a piece is does not depend on the number of threads.
  for (std::int64_t first = 0; first < work.count && !current.cancelled; first += work.chunk)
    work.run(work.context, worker, first, std::min(first + work.chunk, work.count));
  fence_streaming_stores();
}

void thread_pool::take_chunks(int worker) noexcept {
  float_environment modes;
  position_mark mark({.worker = worker});
  try {
    for (;;) {
      std::int64_t first = next_.fetch_add(job_.chunk, std::memory_order_relaxed);
      if (first >= job_.count) break;
      job_.run(job_.context, worker, first, std::min(first + job_.chunk, job_.count));
    }
  } catch (...) {
    if (!failed_.exchange(true)) failure_ = std::current_exception();
    cancel();
  }
  fence_streaming_stores();
}

// A thread is woken on the CPU where it went to sleep, even if the caller is about to compute there and the CPU beside it
// is idle, or on the CPU of the one who wakes it. It then waits for its turn, some milliseconds, longer than a short launch
// lasts. So sleepers that would meet on one CPU are woken with that CPU taken out of their masks, and put it back as soon as
// they are awake. In a small pool this is done for all of them: there is no third CPU that the system could choose by itself.
void thread_pool::spread_sleepers() noexcept {
  const int here = ::sched_getcpu();
  if (here < 0 || here >= CPU_SETSIZE) return;
  cpu_set_t taken;
  CPU_ZERO(&taken);
  CPU_SET(static_cast<std::size_t>(here), &taken);
  for (std::size_t i = 1; i < beds_.size(); ++i) {
    bed& b = beds_[i];
    auto state = bed::asleep;
    if (!b.now.compare_exchange_strong(state, bed::changing, std::memory_order_acquire)) continue;
    state = bed::asleep;
    cpu_set_t overlap, rest;
    if (b.cpu >= 0 && b.cpu < CPU_SETSIZE && ::sched_getaffinity(b.thread, sizeof(b.mask), &b.mask) == 0) {
      CPU_AND(&overlap, &b.mask, &taken);
      CPU_XOR(&rest, &b.mask, &overlap);
      const bool meets = threads_ <= few_threads || CPU_ISSET(static_cast<std::size_t>(b.cpu), &taken);
      if (!meets) CPU_SET(static_cast<std::size_t>(b.cpu), &taken);
      else if (CPU_COUNT(&rest) != 0 && ::sched_setaffinity(b.thread, sizeof(rest), &rest) == 0) state = bed::narrowed;
    }
    b.now.store(state, std::memory_order_release);
  }
}

void thread_pool::sleep(int worker, std::uint32_t seen) noexcept {
  bed& b = beds_[static_cast<std::size_t>(worker)];
  b.thread = static_cast<int>(::syscall(SYS_gettid));
  b.cpu = ::sched_getcpu();
  b.now.store(bed::asleep, std::memory_order_release);
  sleepers_.fetch_add(1);
  while (wake_.load() == seen) futex_wait(wake_, seen);
  sleepers_.fetch_sub(1);
  for (auto state = bed::asleep; !b.now.compare_exchange_weak(state, bed::awake, std::memory_order_acquire);) {
    if (state == bed::narrowed) static_cast<void>(::sched_setaffinity(0, sizeof(b.mask), &b.mask));
    else state = bed::asleep, spin_pause();
  }
}

void thread_pool::worker_loop(int worker) {
  std::uint32_t seen = 0;
  for (;;) {
    if (!spin_until([&] { return wake_.load(std::memory_order_acquire) != seen; })) {
      sleep(worker, seen);
    }
    seen = wake_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;

    std::uint32_t state = state_.load(std::memory_order_acquire);
    while ((state & open_bit) != 0) {
      if (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) continue;
      take_chunks(worker);
      if (state_.fetch_sub(1, std::memory_order_acq_rel) == 1) { // the last one, and the job takes no more
        finished_.fetch_add(1);
        futex_wake(finished_, 1);
      }
      break;
    }
  }
}

} // namespace kiln::detail
