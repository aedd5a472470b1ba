// Asynchronous hazards in local memory.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: read_too_early
// expect-error: kiln[R-HZ01] a[0] (256 B) is read (hazards.cpp:{line}) before the async_load of line {line-6} is known complete; add async_load_wait_group(0) before it
#if defined(TWIN) || defined(CASE_read_too_early)
inline constexpr auto read_too_early = kernel<"read_too_early">([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto i = k.arange<64>();
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.async_load(p + i, a[0]);
  k.async_load_commit_group();
#ifdef TWIN
  k.async_load_wait_group(0);
  store(q + i, k.local_load(a[0]));
#else
  store(q + i, k.local_load(a[0])); // expect-line
#endif
});
void use_read_too_early() { read_too_early.check(); }
#endif

// case: written_too_early
// expect-error: kiln[R-HZ02] a[0] (256 B): the local_store (hazards.cpp:{line}) overlaps the async_load of line {line-6}, which may be in flight; add async_load_wait_group(0) before it
#if defined(TWIN) || defined(CASE_written_too_early)
inline constexpr auto written_too_early = kernel<"written_too_early">([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto i = k.arange<64>();
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto x = k.zeros<f32, 64>();
  k.async_load(p + i, a[0]);
  k.async_load_commit_group();
#ifdef TWIN
  k.async_load_wait_group(0);
  k.local_store(a[0], x + k.local_load(a[0]));
#else
  k.local_store(a[0], x); // expect-line
  k.async_load_wait_group(0);
#endif
  store(q + i, k.local_load(a[0]));
});
void use_written_too_early() { written_too_early.check(); }
#endif

// case: not_committed
// expect-error: kiln[R-HZ06] the async_load (hazards.cpp:{line}) into a[0] (256 B) is not committed when line {line+3} reads it; call async_load_commit_group() after it, then wait
#if defined(TWIN) || defined(CASE_not_committed)
inline constexpr auto not_committed = kernel<"not_committed">([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto i = k.arange<64>();
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
#ifdef TWIN
  k.async_load(p + i, a[0]);
  k.async_load_commit_group();
#else
  k.async_load(p + i, a[0]); // expect-line
#endif
  k.async_load_wait_group(0);
  store(q + i, k.local_load(a[0]));
});
void use_not_committed() { not_committed.check(); }
#endif

// case: never_waited
// expect-error: kiln[R-HZ06] the async_load (hazards.cpp:{line}) into a[1] (256 B) is never waited for before the kernel ends; add async_load_wait_group(0)
#if defined(TWIN) || defined(CASE_never_waited)
inline constexpr auto never_waited = kernel<"never_waited">([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto i = k.arange<64>();
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
  k.async_load(p + i, a[0]);
  k.async_load_commit_group();
  k.async_load(p + i + 64, a[1]); // expect-line
  k.async_load_commit_group();
  k.async_load_wait_group(1);
  store(q + i, k.local_load(a[0]));
#ifdef TWIN
  k.async_load_wait_group(0);
#endif
});
void use_never_waited() { never_waited.check(); }
#endif

// case: token_misuse
// expect-error: kiln[R-HZ07] async_wait: the token of async_load (line {line-5}) is given where that of an async_load_commit_group is needed
#if defined(TWIN) || defined(CASE_token_misuse)
inline constexpr auto token_misuse = kernel<"token_misuse">([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto i = k.arange<64>();
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto loaded = k.async_load(p + i, a[0]);
  auto group = k.async_load_commit_group({loaded});
#ifdef TWIN
  k.async_load_wait_group(0, {group});
#else
  k.async_load_wait_group(0, {loaded}); // expect-line
  (void)group;
#endif
  store(q + i, k.local_load(a[0]));
});
void use_token_misuse() { token_misuse.check(); }
#endif

// case: committed_twice
// expect-error: kiln[R-HZ07] async_commit: the async_load of line {line-5} is in the group of line {line-2} already; commit it once
#if defined(TWIN) || defined(CASE_committed_twice)
inline constexpr auto committed_twice = kernel<"committed_twice">([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto i = k.arange<64>();
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
  auto first = k.async_load(p + i, a[0]);
  auto second = k.async_load(p + i + 64, a[1]);
#ifndef TWIN
  k.async_load_commit_group();
#endif
  k.async_load_commit_group({first}); // expect-line
  k.async_load_commit_group();        // empty groups are legal
  k.async_load_wait_group(0);
  (void)second;
  store(q + i, k.local_load(a[0]) + k.local_load(a[1]));
});
void use_committed_twice() { committed_twice.check(); }
#endif

// case: never_written
// expect-error: kiln[R-HZ15] a[1] (256 B) is read (hazards.cpp:{line}) before anything is written to it
#if defined(TWIN) || defined(CASE_never_written)
inline constexpr auto never_written = kernel<"never_written">([](context& k, ptr<f32> q) {
  auto i = k.arange<64>();
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64>());
#ifdef TWIN
  store(q + i, k.local_load(a[0]));
#else
  store(q + i, k.local_load(a[1])); // expect-line
#endif
});
void use_never_written() { never_written.check(); }
#endif

// case: slot_out_of_range
// expect-error: kiln[R-BD01] a: index i0 % 3 becomes 2, valid 0..1
#if defined(TWIN) || defined(CASE_slot_out_of_range)
inline constexpr auto slot_out_of_range = kernel<"slot_out_of_range">([](context& k, ptr<f32> q, val<i32> n) {
  auto i = k.arange<64>();
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
  for (auto j : k.range(0, n)) {
#ifdef TWIN
    auto slot = a[j % 2];
#else
    auto slot = a[j % 3]; // expect-line
#endif
    k.local_store(slot, k.zeros<f32, 64>());
    store(q + i, k.local_load(slot));
  }
});
void use_slot_out_of_range() { slot_out_of_range.check(); }
#endif

// case: known_mask
// expect-error: kiln[R-HZ12] a[0] (256 B) is read
#if defined(TWIN) || defined(CASE_known_mask)
inline constexpr auto known_mask = kernel<"known_mask">([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto i = k.arange<64>();
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
#ifdef TWIN
  k.async_load(p + i, a[0], {.mask = i < 48, .other = 0});
#else
  k.async_load(p + i, a[0], {.mask = i < 48}); // expect-line
#endif
  k.async_load_commit_group();
  k.async_load_wait_group(0);
  store(q + i, k.local_load(a[0]));
});
void use_known_mask() { known_mask.check(); }
#endif
