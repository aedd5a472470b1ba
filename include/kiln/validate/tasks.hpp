// Rules about tasks and named barriers that need no simulation: what a task may touch of what was made outside it, and which
// barriers can complete at all.
//
// Rules: R-CP09, R-TK01, R-TK07, R-TK08, R-TK09, R-HZ07 across agents, R-BR08 and R-BR13 for named barriers.
#pragma once
#include <kiln/graph/recorder.hpp>

namespace kiln::detail {

class task_rules {
public:
  constexpr explicit task_rules(graph_view const& g) : g_(g) {}

  constexpr diagnostic run() {
    int first = 0;
    while (first < g_.size() && !is_of_tasks(g_[first].code)) ++first;
    if (first == g_.size()) return error_;
    for (i_ = first; i_ < g_.size() && error_.ok(); ++i_) {
      node const& n = g_[i_];
      switch (n.code) {
      case op::tasks_begin: tasks(); break;
      case op::task_begin: task_ = i_; break;
      case op::task_end: task_ = -1; break;
      case op::alloc_barriers:
        if (task_ >= 0) at(i_) << "kiln[R-BR14] alloc_barriers inside a task: every agent must know them; make them before async_tasks";
        break;
      case op::cluster_barrier:
        if (task_ >= 0) at(i_) << "kiln[R-TK07] cluster_barrier inside a task would wait for the other tasks; signal barriers with .remote, or meet outside async_tasks";
        break;
      case op::sync:
        if (task_ >= 0) at(i_) << "kiln[R-TK07] CTA-wide sync inside a task would wait for the other tasks; use k.agent_sync()";
        break;
      case op::var_set:
        if (task_ >= 0 && g_.operand(i_, 0) < task_ && !trunk()) outer_var();
        break;
      case op::async_commit: case op::async_wait:
        for (std::int32_t t : g_.operands(i_))
          if (t >= 0 && task_ >= 0 && t < task_ && error_.ok())
            at(i_) << "kiln[R-HZ07] " << name_of(n.code) << ": the token of line " << g_[t].line << " belongs to another agent; wait for it before async_tasks";
        break;
      case op::named_barrier_wait: case op::named_barrier_arrive: named(); break;
      default: break;
      }
    }
    if (error_.ok()) lonely();
    return error_;
  }

private:
  constexpr message at(int node) {
    error_.node = node;
    return message(error_);
  }
  /// The one agent whose vars are the kernel's: the default task, not replicated.
  constexpr bool trunk() const { return g_.attribute(task_, 0) == 0 && g_.attribute(task_, 2) == 1; }
  constexpr void outer_var() {
    int const cell = g_.operand(i_, 0);
    message m = at(i_);
    m << "kiln[R-TK08] the var of line " << g_[cell].line << " lives in registers of the main warps and cannot be changed in ";
    if (char const* const name = g_.string(static_cast<int>(g_.attribute(task_, 4))); *name)
      m << "task " << name;
    else
      m << "the task of line " << g_[task_].line;
    m << "; make a var inside the task, or hand the value over in local memory";
  }
  constexpr void tasks() {
    int defaults = 0, registers = 0;
    for (int t = i_ + 1; t < g_.attribute(i_, 3); t = static_cast<int>(g_.attribute(t, 5)) + 1) {
      int const warps = static_cast<int>(g_.attribute(t, 0)), replicas = static_cast<int>(g_.attribute(t, 2));
      defaults += warps == 0;
      agents_ += replicas;
      // Registers are handed out to groups of four warps.
      registers += static_cast<int>(g_.attribute(t, 1)) * 32 * (((warps == 0 ? g_.attrs.num_warps : warps) * replicas + 3) / 4 * 4);
    }
    if (task_ >= 0)
      at(i_) << "kiln[R-TK09] async_tasks inside a task: they cannot be nested";
    else if (defaults != 1)
      at(i_) << "kiln[R-TK01] async_tasks needs exactly one default task, found " << defaults;
    else if (registers > 65536)
      at(i_) << "kiln[R-CP09] the tasks ask for " << registers << " registers (num_regs of each thread, four warps at a time), a CTA has 65536; lower .num_regs";
    else if (agents_ > 30)
      at(i_) << "kiln[R-TK02] " << agents_ << " replicas of tasks in one kernel; at most 30";
  }
  constexpr int threads_here() const {
    int const warps = task_ < 0 ? 0 : static_cast<int>(g_.attribute(task_, 0));
    return 32 * (warps == 0 ? g_.attrs.num_warps : warps) * (task_ < 0 ? 1 : static_cast<int>(g_.attribute(task_, 2)));
  }
  constexpr void named() {
    std::int64_t const id = g_.attribute(i_, 0), threads = g_.attribute(i_, 1);
    if (id < 1 || id > 15) {
      at(i_) << "kiln[R-BR08] named barrier " << id << ": ids are 1..15 (0 is sync)";
    } else if (threads < 32 || threads % 32 != 0 || threads > 1024) {
      at(i_) << "kiln[R-BR08] named barrier " << id << ": " << threads << " threads; a multiple of 32 in 32..1024 is needed";
    } else {
      use& u = used_[id];
      if (u.threads != 0 && u.threads != threads) {
        at(i_) << "kiln[R-BR08] named barrier " << id << ": counts " << u.threads << " (line " << g_[u.node].line << ") and " << threads << " differ";
        return;
      }
      u.threads = static_cast<int>(threads);
      u.node = i_;
      u.waits = u.waits || g_[i_].code == op::named_barrier_wait;
      if (u.last_task != task_ || u.present == 0) u.present += threads_here(); // once an agent
      u.last_task = task_;
    }
  }
  /// Barriers that nobody waits for, or that can never be full; and kiln's own, one for each task of several warps.
  constexpr void lonely() {
    int taken = 1, own = 0;
    for (int id = 1; id < 16; ++id) {
      use const& u = used_[id];
      if (u.threads == 0) continue;
      ++taken;
      if (!u.waits) {
        at(u.node) << "kiln[R-BR13] named barrier " << id << ": arrivals without any wait leave it half full at the end; add named_barrier_wait(" << id << ", "
                   << u.threads << ")";
        return;
      }
      if (u.present < u.threads) {
        at(u.node) << "kiln[R-BR08] named barrier " << id << " needs " << u.threads << " threads, but the agents that use it have " << u.present;
        return;
      }
    }
    for (int i = 0; i < g_.size(); ++i)
      if (g_[i].code == op::task_begin && g_.attribute(i, 0) != 1) own += static_cast<int>(g_.attribute(i, 2));
    if (taken > 1 && taken + own > 16)
      at(g_.size() - 1) << "kiln[R-BR08] " << taken - 1 << " named barriers and one for each of " << own << " agents of several warps are more than the 15 there are";
  }

  struct use {
    int threads = 0, node = -1, present = 0, last_task = -2;
    bool waits = false;
  };
  graph_view const& g_;
  diagnostic error_;
  int i_ = 0, task_ = -1;
  int agents_ = 0; ///< of all regions so far
  use used_[16]{};
};

} // namespace kiln::detail

namespace kiln {

/// The first broken rule of tasks and named barriers.
constexpr diagnostic check_tasks(graph_view const& g) { return detail::task_rules(g).run(); }

} // namespace kiln
