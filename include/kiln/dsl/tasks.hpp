// Memory barriers, and tasks: parts of a kernel that run at the same time, each with warps of its own.
#pragma once
#include <kiln/dsl/local.hpp>

namespace kiln {

/// One memory barrier, from `barriers[i]`.
class mbar {
public:
  constexpr mbar(recorder* r, int node) : recorder_(r), node_(node) {}
  constexpr ~mbar() {}
  recorder* recorder_; ///< for the library
  int node_;           ///< for the library
};

/// Memory barriers, from `k.alloc_barriers(n)`. `b[i]` is one.
class mbars {
public:
  constexpr mbars(recorder* r, int node) : recorder_(r), node_(node) {}
  constexpr ~mbars() {}
  /// Barrier `i`: a constant, or an integer scalar. Errors: R-BD05 out of range.
  constexpr mbar operator[](detail::located_index i) const {
    recorder& r = *recorder_;
    int x = i.resolve(r);
    return {&r, r.push(op::barrier_index, {dtype::b1, node_kind::barrier, 0}, {node_, x}, {}, i.at)};
  }
  recorder* recorder_; ///< for the library
  int node_;           ///< for the library
};

struct alloc_barriers_options {
  int arrive_count = 1; ///< arrivals that complete a phase, 1 .. 2^20-1
  char const* name = nullptr;
};
struct alloc_warp_barrier_options {
  int num_warps = 1;    ///< warps whose threads arrive in a phase
  int num_arrivals = 1; ///< times that each of them does
  char const* name = nullptr;
};
struct barrier_wait_options {
  detail::any_value pred{}; ///< b1 scalar; false: no wait
};
struct barrier_arrive_options {
  int count = 1;
  detail::any_value remote{}; ///< the rank of a CTA of the cluster: at its barrier (dsl/cluster_calls.hpp)
  detail::any_value pred{}; ///< b1 scalar; false: no arrival
};
struct barrier_expect_options {
  detail::any_value pred{}; ///< b1 scalar; false: nothing is expected, and no arrival
};
struct async_load_bulk_options {
  kiln::evict evict = kiln::evict::none;
  detail::any_value pred{}; ///< b1 scalar; false: no copy
};
struct async_store_wait_options {
  bool read_only = true; ///< sources may be reused; false: the writes are complete
};

struct async_tasks_options {
  bool exclusive = false;              ///< promises that the kernel has no other async_tasks
  bool no_ending_cluster_sync = false; ///< promises that no traffic between CTAs is left at the end
  int try_wait_suspend_ns = -1;        ///< hint for waits, -1: the hardware's choice
};
struct task_default_options {
  int num_regs = 0;  ///< registers a thread: a multiple of 8 in 24..256; 0: what the other tasks leave
  int replicate = 1; ///< agents that run this body
  char const* name = nullptr;
};
struct task_options {
  int num_warps = 0; ///< of each replica: 1, 2, 4, 8 or 16
  int num_regs = 0;  ///< registers a thread: a multiple of 8 in 24..256; 0: not said
  int replicate = 1;
  int warp_group_start_id = -1; ///< first warp; -1: kiln's choice
  char const* name = nullptr;
};

namespace detail {

/// What `k.task` and `k.task_default` return, for `k.async_tasks`.
template <class F>
struct task_body {
  F body;
  task_options options;
  bool is_default;
  site at;
};
template <class X>
inline constexpr bool is_task = false;
template <class F>
inline constexpr bool is_task<task_body<F>> = true;

/// What operations without a result return, so that one of them among tasks gets its own message (R-TK06).
struct no_task {};

/// The slot and parity of round `count` in a ring.
struct ring_position {
  tile<i32> slot, phase;
};

/// Warp ranges, registers and numbers of the tasks of one region. Errors: R-TK01..05.
class task_check {
public:
  constexpr explicit task_check(recorder& r) : r_(r) {}
  constexpr void add(task_options const& o, bool is_default) {
    if (count_ < most) {
      options_[count_] = o;
      default_[count_] = is_default;
    }
    ++count_;
  }
  constexpr void run() {
    if (count_ > most) {
      r_.fail() << "kiln[R-TK01] async_tasks of " << count_ << " tasks; at most " << most << ": use .replicate for equal ones";
      return;
    }
    int defaults = 0, with_start = 0, with_regs = 0;
    bool donated = true;
    for (int i = 0; i < count_; ++i) {
      task_options const& o = options_[i];
      if (o.replicate < 1 || o.replicate > 16)
        r_.fail() << "kiln[R-TK02] task " << i << " has .replicate = " << o.replicate << ", valid 1..16";
      if (o.num_regs != 0 && (o.num_regs % 8 != 0 || o.num_regs < 24 || o.num_regs > 256))
        r_.fail() << "kiln[R-TK04] num_regs " << o.num_regs << " of task " << i << ": it must be a multiple of 8 in 24..256";
      if (default_[i]) {
        ++defaults;
        donated = o.num_regs == 0;
        continue;
      }
      with_start += o.warp_group_start_id >= 0;
      with_regs += o.num_regs != 0;
      int const w = o.num_warps;
      if (w != 1 && w != 2 && w != 4 && w != 8 && w != 16)
        r_.fail() << "kiln[R-TK02] task " << i << " has .num_warps = " << w << "; it must be 1, 2, 4, 8 or 16";
    }
    if (defaults != 1)
      r_.fail() << "kiln[R-TK01] async_tasks needs exactly one default task, found " << defaults << "; use k.task_default for the one of the main warps";
    for (int i = 0; i < count_; ++i) {
      if (default_[i]) continue;
      if (with_start != 0 && options_[i].warp_group_start_id < 0) {
        int set = 0;
        while (default_[set] || options_[set].warp_group_start_id < 0) ++set;
        r_.fail() << "kiln[R-TK03] warp_group_start_id is set on task " << set << " but not on task " << i << "; set it on all or on none";
      }
      if (donated && with_regs != 0 && options_[i].num_regs == 0)
        r_.fail() << "kiln[R-TK05] num_regs must be on all tasks but the default one, or on none (task " << i << " has none)";
    }
    ranges();
  }

private:
  constexpr void ranges() {
    for (int i = 0; i < count_; ++i) {
      task_options const& a = options_[i];
      if (default_[i] || a.warp_group_start_id < 0) continue;
      int const lo = a.warp_group_start_id, hi = lo + a.num_warps * a.replicate - 1;
      auto overlap = [&](char const* what, int number, int first, int last) {
        if (lo > last || first > hi) return;
        auto m = r_.fail();
        m << "kiln[R-TK02] task " << i << " uses warps " << lo << ".." << hi << ", overlapping " << what;
        if (number >= 0) m << number << ", warps ";
        m << first << ".." << last;
      };
      for (int j = 0; j < i; ++j) {
        task_options const& b = options_[j];
        if (!default_[j] && b.warp_group_start_id >= 0)
          overlap("task ", j, b.warp_group_start_id, b.warp_group_start_id + b.num_warps * b.replicate - 1);
      }
      for (int j = 0; j < count_; ++j)
        if (default_[j]) overlap("the default task, warps ", -1, 0, r_.attrs.num_warps * options_[j].replicate - 1);
    }
  }
  static constexpr int most = 16;
  recorder& r_;
  int count_ = 0;
  task_options options_[most]{};
  bool default_[most]{};
};

} // namespace detail
} // namespace kiln
