// Hazards and barriers between tasks.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: no_wait_for_the_copy
// expect-error: kiln[R-HZ01] a[i0 % 4] (256 B) is read (barriers.cpp:{line}) in task use before the async_load_bulk of line {line-9} in task load is known complete; wait for full[0] phase 0 first
#if defined(TWIN) || defined(CASE_no_wait_for_the_copy)
inline constexpr auto no_wait_for_the_copy = kernel<"no_wait_for_the_copy">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto a = k.local_alloc<f32, 64>(4, {.name = "a"});
  auto full = k.alloc_barriers(4, {.name = "full"}), empty = k.alloc_barriers(4, {.arrive_count = 1, .name = "empty"});
  k.async_tasks(k.task_default({.name = "load"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(empty[s], phase ^ 1);
      k.barrier_expect_bytes(full[s], bytes_of(a[s]));
      k.async_load_bulk(p + i * 64, a[s], full[s]);
    }
  }), k.task({.num_warps = 4, .name = "use"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
#ifdef TWIN
      k.barrier_wait(full[s], phase);
      store(q + i * 64 + k.arange<64>(), k.local_load(a[s]));
#else
      store(q + i * 64 + k.arange<64>(), k.local_load(a[s])); // expect-line
#endif
      k.barrier_arrive(empty[s]);
    }
  }));
});
void use_no_wait_for_the_copy() { no_wait_for_the_copy.check(); }
#endif

// case: released_too_early
// expect-error: kiln[R-HZ03] a[i0 % 4] (256 B): the async_load_bulk (barriers.cpp:{line}) in task load may overwrite data that is still read on line {line+11} in task use; wait for a barrier that it signals after that read
#if defined(TWIN) || defined(CASE_released_too_early)
inline constexpr auto released_too_early = kernel<"released_too_early">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto a = k.local_alloc<f32, 64>(4, {.name = "a"});
  auto full = k.alloc_barriers(4, {.name = "full"}), empty = k.alloc_barriers(4, {.arrive_count = 1, .name = "empty"});
  k.async_tasks(k.task_default({.name = "load"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(empty[s], phase ^ 1);
      k.barrier_expect_bytes(full[s], bytes_of(a[s]));
      k.async_load_bulk(p + i * 64, a[s], full[s]); // expect-line
    }
  }), k.task({.num_warps = 4, .name = "use"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(full[s], phase);
#ifdef TWIN
      store(q + i * 64 + k.arange<64>(), k.local_load(a[s]));
      k.barrier_arrive(empty[s]);
#else
      k.barrier_arrive(empty[s]);
      store(q + i * 64 + k.arange<64>(), k.local_load(a[s]));
#endif
    }
  }));
});
void use_released_too_early() { released_too_early.check(); }
#endif

// case: tasks_race
// expect-error: kiln[R-HZ13] a[0] (256 B): the read (barriers.cpp:{line}) in task use is not ordered after the write of line {line-7} in task make; arrive at a barrier after the write and wait for it here
#if defined(TWIN) || defined(CASE_tasks_race)
inline constexpr auto tasks_race = kernel<"tasks_race">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto made = k.alloc_barriers(1, {.name = "made"});
  k.async_tasks(k.task_default({.name = "make"}, [&] {
    k.local_store(a[0], k.zeros<f32, 64>() + load(p + n));
    k.barrier_arrive(made[0]);
  }), k.task({.num_warps = 4, .name = "use"}, [&] {
#ifdef TWIN
    k.barrier_wait(made[0], 0);
    store(q + k.arange<64>(), k.local_load(a[0]));
#else
    store(q + k.arange<64>(), k.local_load(a[0])); // expect-line
#endif
  }));
});
void use_tasks_race() { tasks_race.check(); }
#endif

// case: source_reused
// expect-error: kiln[R-HZ04] a[0] (256 B): the local_store (barriers.cpp:{line}) overwrites the source of the async_store_bulk of line {line-5}, which may still read it; async_store_wait(0) before it
#if defined(TWIN) || defined(CASE_source_reused)
inline constexpr auto source_reused = kernel<"source_reused">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64>() + load(p + n));
  k.fence(fence::async_shared);
  k.async_store_bulk(q, a[0]);
#ifdef TWIN
  k.async_store_wait(0);
  k.local_store(a[0], k.zeros<f32, 64>());
#else
  k.local_store(a[0], k.zeros<f32, 64>()); // expect-line
  k.async_store_wait(0);
#endif
});
void use_source_reused() { source_reused.check(); }
#endif

// case: no_fence
// expect-error: kiln[R-HZ05] a[0] (256 B): the ordinary write of line {line-4} reaches the async_store_bulk (barriers.cpp:{line}) without a fence; k.fence(fence::async_shared) after the write
#if defined(TWIN) || defined(CASE_no_fence)
inline constexpr auto no_fence = kernel<"no_fence">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64>() + load(p + n));
#ifdef TWIN
  k.fence(fence::async_shared);
#endif
  k.async_store_bulk(q, a[0]); // expect-line
  k.async_store_wait(0);
});
void use_no_fence() { no_fence.check(); }
#endif

// case: store_never_waited
// expect-error: kiln[R-HZ06] the async_store_bulk (barriers.cpp:{line}) from a[0] (256 B) is never waited for before the kernel ends; add async_store_wait(0)
#if defined(TWIN) || defined(CASE_store_never_waited)
inline constexpr auto store_never_waited = kernel<"store_never_waited">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64>() + load(p + n));
  k.fence(fence::async_shared);
  k.async_store_bulk(q, a[0]); // expect-line
#ifdef TWIN
  k.async_store_wait(0);
#endif
});
void use_store_never_waited() { store_never_waited.check(); }
#endif

// case: token_of_another_agent
// expect-error: kiln[R-HZ07] async_wait: the token of line {line-6} belongs to another agent; wait for it before async_tasks
#if defined(TWIN) || defined(CASE_token_of_another_agent)
inline constexpr auto token_of_another_agent = kernel<"token_of_another_agent">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.async_load(p + n + k.arange<64>(), a[0]);
  auto group = k.async_load_commit_group();
  k.async_tasks(k.task_default({}, [&] {
    auto own = k.async_load_commit_group();
#ifdef TWIN
    k.async_load_wait_group(0, {own});
#else
    k.async_load_wait_group(0, {group}); // expect-line
#endif
  }));
  k.async_load_wait_group(0, {group});
  store(q + k.arange<64>(), k.local_load(a[0]));
});
void use_token_of_another_agent() { token_of_another_agent.check(); }
#endif

// case: too_few_bytes
// expect-error: kiln[R-BR01] full[0] phase 0: 128 B expected, 256 B signalled (barriers.cpp:{line}); waits would pass early
#if defined(TWIN) || defined(CASE_too_few_bytes)
inline constexpr auto too_few_bytes = kernel<"too_few_bytes">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto a = k.local_alloc<f32, 64>(4, {.name = "a"});
  auto full = k.alloc_barriers(4, {.name = "full"}), empty = k.alloc_barriers(4, {.arrive_count = 1, .name = "empty"});
  k.async_tasks(k.task_default({.name = "load"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(empty[s], phase ^ 1);
#ifdef TWIN
      k.barrier_expect_bytes(full[s], bytes_of(a[s]));
#else
      k.barrier_expect_bytes(full[s], 128);
#endif
      k.async_load_bulk(p + i * 64, a[s], full[s]); // expect-line
    }
  }), k.task({.num_warps = 4, .name = "use"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(full[s], phase);
      store(q + i * 64 + k.arange<64>(), k.local_load(a[s]));
      k.barrier_arrive(empty[s]);
    }
  }));
});
void use_too_few_bytes() { too_few_bytes.check(); }
#endif

// case: too_many_bytes
// expect-error: kiln[R-BR01] full[0] phase 0: 512 B expected, 256 B signalled (barriers.cpp:{line}); the wait would hang
#if defined(TWIN) || defined(CASE_too_many_bytes)
inline constexpr auto too_many_bytes = kernel<"too_many_bytes">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto a = k.local_alloc<f32, 64>(4, {.name = "a"});
  auto full = k.alloc_barriers(4, {.name = "full"}), empty = k.alloc_barriers(4, {.arrive_count = 1, .name = "empty"});
  k.async_tasks(k.task_default({.name = "load"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(empty[s], phase ^ 1);
#ifdef TWIN
      k.barrier_expect_bytes(full[s], bytes_of(a[s]));
#else
      k.barrier_expect_bytes(full[s], 512);
#endif
      k.async_load_bulk(p + i * 64, a[s], full[s]);
    }
  }), k.task({.num_warps = 4, .name = "use"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(full[s], phase); // expect-line
      store(q + i * 64 + k.arange<64>(), k.local_load(a[s]));
      k.barrier_arrive(empty[s]);
    }
  }));
});
void use_too_many_bytes() { too_many_bytes.check(); }
#endif

// case: nobody_arrives
// expect-error: kiln[R-BR02] deadlock: task load waits (barriers.cpp:{line}) for empty[0] phase 0: 0 of 1 arrivals; task use waits (barriers.cpp:{line+7}) for full[0] phase 1: 0 of 1 arrivals
#if defined(TWIN) || defined(CASE_nobody_arrives)
inline constexpr auto nobody_arrives = kernel<"nobody_arrives">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto a = k.local_alloc<f32, 64>(4, {.name = "a"});
  auto full = k.alloc_barriers(4, {.name = "full"}), empty = k.alloc_barriers(4, {.arrive_count = 1, .name = "empty"});
  k.async_tasks(k.task_default({.name = "load"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(empty[s], phase ^ 1); // expect-line
      k.barrier_expect_bytes(full[s], bytes_of(a[s]));
      k.async_load_bulk(p + i * 64, a[s], full[s]);
    }
  }), k.task({.num_warps = 4, .name = "use"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(full[s], phase);
      store(q + i * 64 + k.arange<64>(), k.local_load(a[s]));
#ifdef TWIN
      k.barrier_arrive(empty[s]);
#endif
    }
  }));
});
void use_nobody_arrives() { nobody_arrives.check(); }
#endif

// case: too_many_arrivals
// expect-error: kiln[R-BR03] empty[0]: the barrier_arrive (barriers.cpp:{line}) in task use may count for phase 0 or 1: nothing orders it after phase 0 is complete (last arrival: line {line-2} in task use); arrivals beyond the count of 1?
#if defined(TWIN) || defined(CASE_too_many_arrivals)
inline constexpr auto too_many_arrivals = kernel<"too_many_arrivals">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto a = k.local_alloc<f32, 64>(4, {.name = "a"});
  auto full = k.alloc_barriers(4, {.name = "full"}), empty = k.alloc_barriers(4, {.arrive_count = 1, .name = "empty"});
  k.async_tasks(k.task_default({.name = "load"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(empty[s], phase ^ 1);
      k.barrier_expect_bytes(full[s], bytes_of(a[s]));
      k.async_load_bulk(p + i * 64, a[s], full[s]);
    }
  }), k.task({.num_warps = 4, .name = "use"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(full[s], phase);
      store(q + i * 64 + k.arange<64>(), k.local_load(a[s]));
      k.barrier_arrive(empty[s]);
#ifndef TWIN
      k.barrier_arrive(empty[s]); // expect-line
#endif
    }
  }));
});
void use_too_many_arrivals() { too_many_arrivals.check(); }
#endif

// case: no_wait_for_the_slot
// expect-error: kiln[R-BR03] full[0]: the barrier_expect_bytes (barriers.cpp:{line}) in task load may count for phase 0 or 1: nothing orders it after phase 0 is complete (last arrival: line {line+1} in task load); wait first for the barrier that releases what it fills, and expect all bytes of a phase at once
#if defined(TWIN) || defined(CASE_no_wait_for_the_slot)
inline constexpr auto no_wait_for_the_slot = kernel<"no_wait_for_the_slot">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto a = k.local_alloc<f32, 64>(4, {.name = "a"});
  auto full = k.alloc_barriers(4, {.name = "full"}), empty = k.alloc_barriers(4, {.arrive_count = 1, .name = "empty"});
  k.async_tasks(k.task_default({.name = "load"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
#ifdef TWIN
      k.barrier_wait(empty[s], phase ^ 1);
#endif
      k.barrier_expect_bytes(full[s], bytes_of(a[s])); // expect-line
      k.async_load_bulk(p + i * 64, a[s], full[s]);
    }
  }), k.task({.num_warps = 4, .name = "use"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(full[s], phase);
      store(q + i * 64 + k.arange<64>(), k.local_load(a[s]));
      k.barrier_arrive(empty[s]);
    }
  }));
});
void use_no_wait_for_the_slot() { no_wait_for_the_slot.check(); }
#endif

// case: wrong_slot_released
// expect-error: kiln[R-BR04] empty[1]: phase 0 completes (barriers.cpp:{line}) in task use, but an earlier wait on it in task load may still be under way, and would then miss that; order the wait before this arrival
#if defined(TWIN) || defined(CASE_wrong_slot_released)
inline constexpr auto wrong_slot_released = kernel<"wrong_slot_released">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto a = k.local_alloc<f32, 64>(4, {.name = "a"});
  auto full = k.alloc_barriers(4, {.name = "full"}), empty = k.alloc_barriers(4, {.arrive_count = 1, .name = "empty"});
  k.async_tasks(k.task_default({.name = "load"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(empty[s], phase ^ 1);
      k.barrier_expect_bytes(full[s], bytes_of(a[s]));
      k.async_load_bulk(p + i * 64, a[s], full[s]);
    }
  }), k.task({.num_warps = 4, .name = "use"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(full[s], phase);
      store(q + i * 64 + k.arange<64>(), k.local_load(a[s]));
#ifdef TWIN
      k.barrier_arrive(empty[s]);
#else
      k.barrier_arrive(empty[(i + 1) % 4]); // expect-line
#endif
    }
  }));
});
void use_wrong_slot_released() { wrong_slot_released.check(); }
#endif

// case: no_such_parity
// expect-error: kiln[R-BR04] b: barrier_wait with parity 2; valid are 0 and 1
#if defined(TWIN) || defined(CASE_no_such_parity)
inline constexpr auto no_such_parity = kernel<"no_such_parity">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto b = k.alloc_barriers(1, {.name = "b"});
  k.barrier_arrive(b[0]);
#ifdef TWIN
  k.barrier_wait(b[0], 0);
#else
  k.barrier_wait(b[0], 2); // expect-line
#endif
  store(q + n, load(p));
});
void use_no_such_parity() { no_such_parity.check(); }
#endif

// case: only_one_predicate
// expect-error: kiln[R-BR10] full[0] phase 0: the async_load_bulk (barriers.cpp:{line}) in task load has a predicate, but its bytes are expected without it; give both the same .pred
#if defined(TWIN) || defined(CASE_only_one_predicate)
inline constexpr auto only_one_predicate = kernel<"only_one_predicate">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto some = load(p) > 0.f;
  auto a = k.local_alloc<f32, 64>(4, {.name = "a"});
  auto full = k.alloc_barriers(4, {.name = "full"}), empty = k.alloc_barriers(4, {.arrive_count = 1, .name = "empty"});
  k.async_tasks(k.task_default({.name = "load"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(empty[s], phase ^ 1, {.pred = some});
#ifdef TWIN
      k.barrier_expect_bytes(full[s], bytes_of(a[s]), {.pred = some});
#else
      k.barrier_expect_bytes(full[s], bytes_of(a[s]));
#endif
      k.async_load_bulk(p + i * 64, a[s], full[s], {.pred = some}); // expect-line
    }
  }), k.task({.num_warps = 4, .name = "use"}, [&] {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 4);
      k.barrier_wait(full[s], phase, {.pred = some});
      k.when(some, [&] { store(q + i * 64 + k.arange<64>(), k.local_load(a[s])); });
      k.barrier_arrive(empty[s], {.pred = some});
    }
  }));
});
void use_only_one_predicate() { only_one_predicate.check(); }
#endif

// case: no_such_barrier
// expect-error: kiln[R-BD05] full: index i0 % 3 becomes 2, valid 0..1
#if defined(TWIN) || defined(CASE_no_such_barrier)
inline constexpr auto no_such_barrier = kernel<"no_such_barrier">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto full = k.alloc_barriers(2, {.name = "full"});
  for (auto i : k.range(0, n)) {
#ifdef TWIN
    auto b = full[i % 2];
#else
    auto b = full[i % 3]; // expect-line
#endif
    k.barrier_arrive(b);
    k.barrier_wait(b, i / 2 & 1);
    store(q + i, load(p + i));
  }
});
void use_no_such_barrier() { no_such_barrier.check(); }
#endif

// case: never_such_a_barrier
// expect-error: kiln[R-BD05] full: index 2, valid 0..1
#if defined(TWIN) || defined(CASE_never_such_a_barrier)
inline constexpr auto never_such_a_barrier = kernel<"never_such_a_barrier">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto full = k.alloc_barriers(2, {.name = "full"});
#ifdef TWIN
  k.barrier_arrive(full[1]);
#else
  k.barrier_arrive(full[2]); // expect-line
#endif
  store(q + n, load(p));
});
void use_never_such_a_barrier() { never_such_a_barrier.check(); }
#endif

// case: named_counts_differ
// expect-error: kiln[R-BR08] named barrier 9: counts 256 (line {line-6}) and 128 differ
#if defined(TWIN) || defined(CASE_named_counts_differ)
inline constexpr auto named_counts_differ = kernel<"named_counts_differ">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  k.async_tasks(k.task_default({}, [&] {
    k.named_barrier_wait(9, 256);
    store(q, load(p + n));
  }), k.task({.num_warps = 4}, [&] {
#ifdef TWIN
    k.named_barrier_arrive(9, 256);
#else
    k.named_barrier_arrive(9, 128); // expect-line
#endif
    store(q + 1, load(p));
  }));
});
void use_named_counts_differ() { named_counts_differ.check(); }
#endif

// case: named_zero
// expect-error: kiln[R-BR08] named barrier 0: ids are 1..15 (0 is sync)
#if defined(TWIN) || defined(CASE_named_zero)
inline constexpr auto named_zero = kernel<"named_zero">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  k.async_tasks(k.task_default({}, [&] {
#ifdef TWIN
    k.named_barrier_wait(1, 128);
#else
    k.named_barrier_wait(0, 128); // expect-line
#endif
    store(q, load(p + n));
  }), k.task({.num_warps = 4}, [&] {
    store(q + 1, load(p));
  }));
});
void use_named_zero() { named_zero.check(); }
#endif

// case: named_never_full
// expect-error: kiln[R-BR08] named barrier 1 needs 256 threads, but the agents that use it have 128
#if defined(TWIN) || defined(CASE_named_never_full)
inline constexpr auto named_never_full = kernel<"named_never_full">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  k.async_tasks(k.task_default({}, [&] {
    k.named_barrier_wait(1, 256); // expect-line
    store(q, load(p + n));
  }), k.task({.num_warps = 4}, [&] {
#ifdef TWIN
    k.named_barrier_arrive(1, 256);
#endif
    store(q + 1, load(p));
  }));
});
void use_named_never_full() { named_never_full.check(); }
#endif

// case: lonely_arrival
// expect-error: kiln[R-BR13] named barrier 1: arrivals without any wait leave it half full at the end; add named_barrier_wait(1, 256)
#if defined(TWIN) || defined(CASE_lonely_arrival)
inline constexpr auto lonely_arrival = kernel<"lonely_arrival">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  k.async_tasks(k.task_default({}, [&] {
#ifdef TWIN
    k.named_barrier_wait(1, 256);
#else
    k.named_barrier_arrive(1, 256);
#endif
    store(q, load(p + n));
  }), k.task({.num_warps = 4}, [&] {
    k.named_barrier_arrive(1, 256); // expect-line
    store(q + 1, load(p));
  }));
});
void use_lonely_arrival() { lonely_arrival.check(); }
#endif

// case: barriers_in_a_task
// expect-error: kiln[R-BR14] alloc_barriers inside a task: every agent must know them; make them before async_tasks
#if defined(TWIN) || defined(CASE_barriers_in_a_task)
inline constexpr auto barriers_in_a_task = kernel<"barriers_in_a_task">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
#ifdef TWIN
  auto b = k.alloc_barriers(1);
#endif
  k.async_tasks(k.task_default({}, [&] {
#ifndef TWIN
    auto b = k.alloc_barriers(1); // expect-line
#endif
    k.barrier_arrive(b[0]);
    k.barrier_wait(b[0], 0);
    store(q + n, load(p));
  }));
});
void use_barriers_in_a_task() { barriers_in_a_task.check(); }
#endif

// case: too_high_a_count
// expect-error: kiln[R-CP10] alloc_barriers: arrive_count 0, valid 1..1048575
#if defined(TWIN) || defined(CASE_too_high_a_count)
inline constexpr auto too_high_a_count = kernel<"too_high_a_count">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
#ifdef TWIN
  auto b = k.alloc_barriers(1, {.arrive_count = 1});
#else
  auto b = k.alloc_barriers(1, {.arrive_count = 0}); // expect-line
#endif
  k.barrier_arrive(b[0]);
  store(q + n, load(p));
});
void use_too_high_a_count() { too_high_a_count.check(); }
#endif

// case: odd_bytes
// expect-error: kiln[R-BD06] async_load_bulk into a: 28 B; it moves a multiple of 16
#if defined(TWIN) || defined(CASE_odd_bytes)
inline constexpr auto odd_bytes = kernel<"odd_bytes">([](context& k, ptr<const f32> p, ptr<f32> q, val<i32> n) {
  auto b = k.alloc_barriers(1);
#ifdef TWIN
  auto a = k.local_alloc<f32, 8>(1, {.name = "a"});
#else
  auto a = k.local_alloc<f32, 7>(1, {.name = "a"});
#endif
  k.barrier_expect_bytes(b[0], bytes_of(a[0]));
  k.async_load_bulk(p, a[0], b[0]); // expect-line
  k.barrier_wait(b[0], 0);
  store(q + n, reduce<sum>(k.local_load(a[0])));
});
void use_odd_bytes() { odd_bytes.check(); }
#endif

// case: bytes_of_barriers
// expect-error: kiln[R-BR12] memory barriers are opaque: their bytes are no buffer's, to be shared, viewed or copied; make a buffer of its own
#if defined(TWIN) || defined(CASE_bytes_of_barriers)
inline constexpr auto bytes_of_barriers = kernel<"bytes_of_barriers">([](context& k, ptr<u8> q) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto b = k.alloc_barriers(2, {.name = "b"});
  k.local_store(a[0], k.zeros<f32, 64>());
  k.barrier_arrive(b[0]);
#ifdef TWIN
  store(q + k.arange<256>(), k.local_load(k.local_reinterpret<u8, 256>(a[0])));
#else
  k.local_reinterpret<u8, 8>(b[0]); // expect-line
#endif
});
void use_bytes_of_barriers() { bytes_of_barriers.check(); }
#endif

// case: buffer_over_barriers
// expect-error: kiln[R-BR12] memory barriers are opaque: their bytes are no buffer's, to be shared, viewed or copied; make a buffer of its own
#if defined(TWIN) || defined(CASE_buffer_over_barriers)
inline constexpr auto buffer_over_barriers = kernel<"buffer_over_barriers">([](context& k, ptr<u64> q) {
  auto old = k.local_alloc<u64, 2>(1, {.name = "old"});
  auto b = k.alloc_barriers(2, {.name = "b"});
  k.barrier_arrive(b[0]);
#ifdef TWIN
  auto a = k.local_alloc<u64, 2>(1, {.reuse = &old});
#else
  auto a = k.local_alloc<u64, 2>(1, {.reuse = &b}); // expect-line
#endif
  k.local_store(old[0], k.zeros<u64, 2>());
  k.local_store(a[0], k.zeros<u64, 2>());
  store(q + k.arange<2>(), k.local_load(a[0]));
});
void use_buffer_over_barriers() { buffer_over_barriers.check(); }
#endif

// case: group_of_barriers
// expect-error: kiln[R-BR12] memory barriers are opaque: their bytes are no buffer's, to be shared, viewed or copied; make a buffer of its own
#if defined(TWIN) || defined(CASE_group_of_barriers)
inline constexpr auto group_of_barriers = kernel<"group_of_barriers">([](context& k, ptr<f32> q) {
  auto sp = k.storage_alias_spec({.name = "sp"});
  auto a = k.local_alloc<f32, 64>(2, {.reuse = &sp, .name = "a"});
  auto c = k.local_alloc<f32, 32>(2, {.reuse = &sp, .name = "c"});
  auto b = k.alloc_barriers(2, {.name = "b"});
  k.barrier_arrive(b[0]);
#ifdef TWIN
  sp.set_buffer_overlap(shared_group(a, c));
#else
  sp.set_buffer_overlap(shared_group(a, b)); // expect-line
#endif
  k.local_store(c[0], k.zeros<f32, 32>());
  store(q + k.arange<32>(), k.local_load(c[0]));
});
void use_group_of_barriers() { group_of_barriers.check(); }
#endif
