// Tasks that are no tasks.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: no_default
// expect-error: kiln[R-TK01] async_tasks needs exactly one default task, found 0; use k.task_default for the one of the main warps
#if defined(TWIN) || defined(CASE_no_default)
inline constexpr auto no_default = kernel<"no_default">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto body = [&] { store(q + n, load(p)); };
#ifdef TWIN
  k.async_tasks(k.task_default({}, body), k.task({.num_warps = 4}, body));
#else
  k.async_tasks(k.task({.num_warps = 4}, body)); // expect-line
#endif
});
void use_no_default() { no_default.check(); }
#endif

// case: warps_overlap
// expect-error: kiln[R-TK02] task 1 uses warps 2..5, overlapping the default task, warps 0..3
#if defined(TWIN) || defined(CASE_warps_overlap)
inline constexpr auto warps_overlap = kernel<"warps_overlap">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto body = [&] { store(q + n, load(p)); };
#ifdef TWIN
  k.async_tasks(k.task_default({}, body), k.task({.num_warps = 4, .warp_group_start_id = 4}, body));
#else
  k.async_tasks(k.task_default({}, body), k.task({.num_warps = 4, .warp_group_start_id = 2}, body)); // expect-line
#endif
});
void use_warps_overlap() { warps_overlap.check(); }
#endif

// case: no_warps
// expect-error: kiln[R-TK02] task 1 has .num_warps = 3; it must be 1, 2, 4, 8 or 16
#if defined(TWIN) || defined(CASE_no_warps)
inline constexpr auto no_warps = kernel<"no_warps">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto body = [&] { store(q + n, load(p)); };
#ifdef TWIN
  k.async_tasks(k.task_default({}, body), k.task({.num_warps = 2}, body));
#else
  k.async_tasks(k.task_default({}, body), k.task({.num_warps = 3}, body)); // expect-line
#endif
});
void use_no_warps() { no_warps.check(); }
#endif

// case: start_on_one
// expect-error: kiln[R-TK03] warp_group_start_id is set on task 1 but not on task 2; set it on all or on none
#if defined(TWIN) || defined(CASE_start_on_one)
inline constexpr auto start_on_one = kernel<"start_on_one">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto body = [&] { store(q + n, load(p)); };
  k.async_tasks(k.task_default({}, body), // expect-line
                k.task({.num_warps = 4, .warp_group_start_id = 4}, body),
#ifdef TWIN
                k.task({.num_warps = 4, .warp_group_start_id = 8}, body));
#else
                k.task({.num_warps = 4}, body));
#endif
});
void use_start_on_one() { start_on_one.check(); }
#endif

// case: odd_registers
// expect-error: kiln[R-TK04] num_regs 100 of task 1: it must be a multiple of 8 in 24..256
#if defined(TWIN) || defined(CASE_odd_registers)
inline constexpr auto odd_registers = kernel<"odd_registers">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto body = [&] { store(q + n, load(p)); };
#ifdef TWIN
  k.async_tasks(k.task_default({}, body), k.task({.num_warps = 4, .num_regs = 104}, body));
#else
  k.async_tasks(k.task_default({}, body), k.task({.num_warps = 4, .num_regs = 100}, body)); // expect-line
#endif
});
void use_odd_registers() { odd_registers.check(); }
#endif

// case: registers_on_one
// expect-error: kiln[R-TK05] num_regs must be on all tasks but the default one, or on none (task 2 has none)
#if defined(TWIN) || defined(CASE_registers_on_one)
inline constexpr auto registers_on_one = kernel<"registers_on_one">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto body = [&] { store(q + n, load(p)); };
  k.async_tasks(k.task_default({}, body), // expect-line
                k.task({.num_warps = 4, .num_regs = 104}, body),
#ifdef TWIN
                k.task({.num_warps = 4, .num_regs = 40}, body));
#else
                k.task({.num_warps = 4}, body));
#endif
});
void use_registers_on_one() { registers_on_one.check(); }
#endif

// case: too_many_registers
// expect-error: kiln[R-CP09] the tasks ask for 92160 registers (num_regs of each thread, four warps at a time), a CTA has 65536; lower .num_regs
#if defined(TWIN) || defined(CASE_too_many_registers)
inline constexpr auto too_many_registers = kernel<"too_many_registers">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto body = [&] { store(q + n, load(p)); };
#ifdef TWIN
  k.async_tasks(k.task_default({.num_regs = 32}, body), k.task({.num_warps = 4, .num_regs = 240, .replicate = 2}, body));
#else
  k.async_tasks(k.task_default({.num_regs = 240}, body), k.task({.num_warps = 4, .num_regs = 240, .replicate = 2}, body)); // expect-line
#endif
});
void use_too_many_registers() { too_many_registers.check(); }
#endif

// case: something_else_inside
// expect-error: kiln[R-TK06] only k.task(...) and k.task_default(...) are allowed inside async_tasks; record the rest before, after or in a task
#if defined(TWIN) || defined(CASE_something_else_inside)
inline constexpr auto something_else_inside = kernel<"something_else_inside">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto body = [&] { store(q + n, load(p)); };
#ifdef TWIN
  k.async_tasks(k.task_default({}, body));
  k.sync();
#else
  k.async_tasks(k.task_default({}, body), k.sync()); // expect-line
#endif
});
void use_something_else_inside() { something_else_inside.check(); }
#endif

// case: sync_inside
// expect-error: kiln[R-TK07] CTA-wide sync inside a task would wait for the other tasks; use k.agent_sync()
#if defined(TWIN) || defined(CASE_sync_inside)
inline constexpr auto sync_inside = kernel<"sync_inside">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto body = [&] { store(q + n, load(p)); };
  k.async_tasks(k.task_default({}, body), k.task({.num_warps = 4}, [&] {
#ifdef TWIN
    k.agent_sync();
#else
    k.sync(); // expect-line
#endif
  }));
});
void use_sync_inside() { sync_inside.check(); }
#endif

// case: outer_var
// expect-error: kiln[R-TK08] the var of line {line-6} lives in registers of the main warps and cannot be changed in task count; make a var inside the task, or hand the value over in local memory
#if defined(TWIN) || defined(CASE_outer_var)
inline constexpr auto outer_var = kernel<"outer_var">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto s = k.var(n);
  k.async_tasks(k.task_default({}, [&] { s += 1; }), k.task({.num_warps = 4, .name = "count"}, [&] {
#ifdef TWIN
    auto own = k.var(n);
    own += 1;
#else
    s += 1; // expect-line
#endif
  }));
  store(q + s, load(p));
});
void use_outer_var() { outer_var.check(); }
#endif

// case: nested
// expect-error: kiln[R-TK09] async_tasks inside a task: they cannot be nested
#if defined(TWIN) || defined(CASE_nested)
inline constexpr auto nested = kernel<"nested">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto body = [&] { store(q + n, load(p)); };
#ifdef TWIN
  k.async_tasks(k.task_default({}, body));
  k.async_tasks(k.task_default({}, body));
#else
  k.async_tasks(k.task_default({}, [&] {
    k.async_tasks(k.task_default({}, body)); // expect-line
  }));
#endif
});
void use_nested() { nested.check(); }
#endif

// case: not_exclusive
// expect-error: kiln[R-TK10] an exclusive async_tasks, and another on line {line-4}; drop .exclusive or merge them
#if defined(TWIN) || defined(CASE_not_exclusive)
inline constexpr auto not_exclusive = kernel<"not_exclusive">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto body = [&] { store(q + n, load(p)); };
  k.async_tasks(k.task_default({}, body));
#ifdef TWIN
  k.async_tasks(k.task_default({}, body));
#else
  k.async_tasks({.exclusive = true}, k.task_default({}, body)); // expect-line
#endif
});
void use_not_exclusive() { not_exclusive.check(); }
#endif

// case: no_replica
// expect-error: kiln[R-TK11] replica_id() outside a task; call it in the body of k.task or k.task_default
#if defined(TWIN) || defined(CASE_no_replica)
inline constexpr auto no_replica = kernel<"no_replica">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
#ifdef TWIN
  k.async_tasks(k.task_default({}, [&] { store(q + n + k.replica_id(), load(p)); }));
#else
  store(q + n + k.replica_id(), load(p)); // expect-line
#endif
});
void use_no_replica() { no_replica.check(); }
#endif
