// Mistakes between the CTAs of a cluster.
#include <kiln/kernel.hpp>
using namespace kiln;

inline constexpr attributes pair{.cluster = {2, 1, 1}};

// case: rank_that_does_not_exist
// expect-error: kiln[R-BD01] remote_shmem_store: rank 2, valid 0..1
#if defined(TWIN) || defined(CASE_rank_that_does_not_exist)
inline constexpr auto rank_that_does_not_exist = kernel<"rank_that_does_not_exist", pair>([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
  auto x = load(p + k.arange<64>());
  k.cluster_barrier();
  k.remote_shmem_store(a[k.cluster_cta_rank()], x, 0);
#ifdef TWIN
  k.remote_shmem_store(a[k.cluster_cta_rank()], x, 1);
#else
  k.remote_shmem_store(a[k.cluster_cta_rank()], x, 2); // expect-line
#endif
  k.cluster_barrier();
  store(q + k.program_id(0) * 64 + k.arange<64>(), k.local_load(a[0]) + k.local_load(a[1]));
});
void use_rank_that_does_not_exist() { rank_that_does_not_exist.check(); }
#endif

// case: rank_of_the_next_of_the_last
// expect-error: kiln[R-BD01] remote_store (clusters.cpp:{line}): rank cluster_cta_rank() + 1 becomes 2, valid 0..1
#if defined(TWIN) || defined(CASE_rank_of_the_next_of_the_last)
inline constexpr auto rank_of_the_next_of_the_last = kernel<"rank_of_the_next_of_the_last", pair>([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto x = load(p + k.arange<64>());
  k.cluster_barrier();
#ifdef TWIN
  k.remote_shmem_store(a[0], x, (k.cluster_cta_rank() + 1) % k.cluster_size());
#else
  k.remote_shmem_store(a[0], x, k.cluster_cta_rank() + 1); // expect-line
#endif
  k.cluster_barrier();
  store(q + k.program_id(0) * 64 + k.arange<64>(), k.local_load(a[0]));
});
void use_rank_of_the_next_of_the_last() { rank_of_the_next_of_the_last.check(); }
#endif

// case: rank_by_thread
// expect-error: kiln[R-UN01] remote_shmem_store: the rank varies within the CTA; it must be one integer for all
#if defined(TWIN) || defined(CASE_rank_by_thread)
inline constexpr auto rank_by_thread = kernel<"rank_by_thread", pair>([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto x = load(p + k.arange<64>());
  k.cluster_barrier();
#ifdef TWIN
  k.remote_shmem_store(a[0], x, 1 - k.cluster_cta_rank());
#else
  k.remote_shmem_store(a[0], x, k.arange<64>() % 2); // expect-line
#endif
  k.cluster_barrier();
  store(q + k.program_id(0) * 64 + k.arange<64>(), k.local_load(a[0]));
});
void use_rank_by_thread() { rank_by_thread.check(); }
#endif

// case: wait_for_a_remote_barrier
// expect-error: kiln[R-BR06] cannot wait on a remote barrier (remote_view of line {line-5}); arrive remotely, wait on the local one
#if defined(TWIN) || defined(CASE_wait_for_a_remote_barrier)
inline constexpr auto wait_for_a_remote_barrier = kernel<"wait_for_a_remote_barrier", pair>([](context& k, ptr<f32> q) {
  auto go = k.alloc_barriers(1, {.name = "go"});
  k.fence_mbarrier_init_cluster();
  k.cluster_barrier();
  auto there = k.remote_view(go[0], 1 - k.cluster_cta_rank());
  k.barrier_arrive(there);
#ifdef TWIN
  k.barrier_wait(go[0], 0);
#else
  k.barrier_wait(there, 0); // expect-line
#endif
  store(q + k.program_id(0), 1.f);
});
void use_wait_for_a_remote_barrier() { wait_for_a_remote_barrier.check(); }
#endif

// case: barriers_that_are_not_ready
// expect-error: kiln[R-BR07] go[0] of CTA 0 is used across the cluster (clusters.cpp:{line}) in CTA 1 before fence_mbarrier_init_cluster() and a cluster_barrier() after it
#if defined(TWIN) || defined(CASE_barriers_that_are_not_ready)
inline constexpr auto barriers_that_are_not_ready = kernel<"barriers_that_are_not_ready", pair>([](context& k, ptr<f32> q) {
  auto go = k.alloc_barriers(1, {.name = "go"});
  k.cluster_barrier();
#ifdef TWIN
  k.fence_mbarrier_init_cluster();
  k.cluster_barrier();
  k.barrier_arrive(go[0], {.remote = 1 - k.cluster_cta_rank()});
#else
  k.fence_mbarrier_init_cluster();
  k.barrier_arrive(go[0], {.remote = 1 - k.cluster_cta_rank()}); // expect-line
#endif
  k.barrier_wait(go[0], 0);
  store(q + k.program_id(0), 1.f);
});
void use_barriers_that_are_not_ready() { barriers_that_are_not_ready.check(); }
#endif

// case: barrier_of_some
// expect-error: kiln[R-BR09] cluster_barrier (clusters.cpp:{line}) is reached by CTA 0 of the cluster, but CTA 1 ends without coming to it; put it where every CTA passes
#if defined(TWIN) || defined(CASE_barrier_of_some)
inline constexpr auto barrier_of_some = kernel<"barrier_of_some", pair>([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.cluster_barrier();
  k.remote_shmem_store(a[0], load(p + k.arange<64>()), k.cluster_cta_rank());
  store(q + k.program_id(0) * 64 + k.arange<64>(), k.local_load(a[0]));
#ifdef TWIN
  k.cluster_barrier();
#else
  k.when(k.cluster_cta_rank() == 0, [&] {
    k.cluster_barrier(); // expect-line
  });
#endif
});
void use_barrier_of_some() { barrier_of_some.check(); }
#endif

// case: peer_not_started
// expect-error: kiln[R-HZ11] remote_store (clusters.cpp:{line}) in CTA 0 to CTA 1: no cluster_barrier or remote arrive orders it after the start of CTA 1; call k.cluster_barrier() first
#if defined(TWIN) || defined(CASE_peer_not_started)
inline constexpr auto peer_not_started = kernel<"peer_not_started", pair>([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  k.cluster_barrier();
  k.remote_shmem_store(a[0], x, 1 - k.cluster_cta_rank());
#else
  k.remote_shmem_store(a[0], x, 1 - k.cluster_cta_rank()); // expect-line
#endif
  k.cluster_barrier();
  store(q + k.program_id(0) * 64 + k.arange<64>(), k.local_load(a[0]));
});
void use_peer_not_started() { peer_not_started.check(); }
#endif

// case: peer_gone
// expect-error: kiln[R-HZ11] barrier_arrive (clusters.cpp:{line}) in CTA 1 to CTA 0: no cluster_barrier or remote arrive orders it before the exit of CTA 0; call k.cluster_barrier() at the end
#if defined(TWIN) || defined(CASE_peer_gone)
inline constexpr auto peer_gone = kernel<"peer_gone", pair>([](context& k, ptr<f32> q) {
  auto go = k.alloc_barriers(1, {.name = "go"});
  k.fence_mbarrier_init_cluster();
  k.cluster_barrier();
#ifdef TWIN
  k.when(k.cluster_cta_rank() == 1, [&] { k.barrier_arrive(go[0], {.remote = 0}); });
  k.when(k.cluster_cta_rank() == 0, [&] {
    k.barrier_wait(go[0], 0);
    store(q, 1.f);
  });
#else
  k.when(k.cluster_cta_rank() == 1, [&] {
    k.barrier_arrive(go[0], {.remote = 0}); // expect-line
  });
  k.when(k.cluster_cta_rank() == 0, [&] { store(q, 1.f); });
#endif
});
void use_peer_gone() { peer_gone.check(); }
#endif

// case: bytes_of_the_destination
// expect-error: kiln[R-BR01] full[0] phase 0: 128 B expected, 256 B signalled (clusters.cpp:{line}); waits would pass early
#if defined(TWIN) || defined(CASE_bytes_of_the_destination)
inline constexpr auto bytes_of_the_destination = kernel<"bytes_of_the_destination", pair>([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto full = k.alloc_barriers(1, {.name = "full"});
  k.fence_mbarrier_init_cluster();
  k.cluster_barrier();
#ifdef TWIN
  k.barrier_expect_bytes(full[0], bytes_of(a[0]));
#else
  k.barrier_expect_bytes(full[0], bytes_of(a[0]) / 2); // expect-line
#endif
  k.async_remote_shmem_store(a[0], load(p + k.arange<64>()), 1 - k.cluster_cta_rank(), full[0]);
  k.barrier_wait(full[0], 0);
  store(q + k.program_id(0) * 64 + k.arange<64>(), k.local_load(a[0]));
});
void use_bytes_of_the_destination() { bytes_of_the_destination.check(); }
#endif

// case: read_before_the_peer_wrote
// expect-error: kiln[R-HZ01] a[0] (256 B) is read (clusters.cpp:{line}) in CTA 0 before the async_remote_store of line {line-6} in CTA 1 is known complete; wait for full[0] phase 0 first
#if defined(TWIN) || defined(CASE_read_before_the_peer_wrote)
inline constexpr auto read_before_the_peer_wrote = kernel<"read_before_the_peer_wrote", pair>([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto full = k.alloc_barriers(1, {.name = "full"});
  k.fence_mbarrier_init_cluster();
  k.cluster_barrier();
  k.barrier_expect_bytes(full[0], bytes_of(a[0]));
  k.async_remote_shmem_store(a[0], load(p + k.arange<64>()), 1 - k.cluster_cta_rank(), full[0]);
#ifdef TWIN
  k.barrier_wait(full[0], 0);
  auto x = k.local_load(a[0]);
#else
  k.cluster_barrier();
  auto x = k.local_load(a[0]); // expect-line
#endif
  store(q + k.program_id(0) * 64 + k.arange<64>(), x);
});
void use_read_before_the_peer_wrote() { read_before_the_peer_wrote.check(); }
#endif

// case: copy_of_what_no_fence_shows
// expect-error: kiln[R-HZ05] a[0] (256 B): the ordinary write of line {line-7} in CTA 1 reaches the async_remote_copy (clusters.cpp:{line}) in CTA 1 without a fence; k.fence(fence::async_shared) after the write
#if defined(TWIN) || defined(CASE_copy_of_what_no_fence_shows)
inline constexpr auto copy_of_what_no_fence_shows = kernel<"copy_of_what_no_fence_shows", pair>([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"}), b = k.local_alloc<f32, 64>(1, {.name = "b"});
  auto full = k.alloc_barriers(1, {.name = "full"});
  k.local_store(a[0], load(p + k.arange<64>()));
#ifdef TWIN
  k.fence(fence::async_shared);
#endif
  k.fence_mbarrier_init_cluster();
  k.cluster_barrier();
  k.barrier_expect_bytes(full[0], bytes_of(b[0]));
  k.async_remote_shmem_copy(b[0], a[0], 1 - k.cluster_cta_rank(), full[0]); // expect-line
  k.barrier_wait(full[0], 0);
  store(q + k.program_id(0) * 64 + k.arange<64>(), k.local_load(b[0]));
  k.cluster_barrier();
});
void use_copy_of_what_no_fence_shows() { copy_of_what_no_fence_shows.check(); }
#endif

// case: copy_of_a_column
// expect-error: kiln[R-BD06] async_remote_copy: b is taken in a view whose elements do not follow each other; copy whole rows, or use async_remote_shmem_store
#if defined(TWIN) || defined(CASE_copy_of_a_column)
inline constexpr auto copy_of_a_column = kernel<"copy_of_a_column", pair>([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto a = k.local_alloc<f32, 16, 64>(1, {.name = "a"}), b = k.local_alloc<f32, 16, 64>(1, {.name = "b"});
  auto full = k.alloc_barriers(1, {.name = "full"});
  k.local_store(a[0], k.full<f32, 16, 64>(1.f));
  k.fence(fence::async_shared);
  k.fence_mbarrier_init_cluster();
  k.cluster_barrier();
#ifdef TWIN
  auto from = k.local_slice<8, 64>(a[0], {8, 0}), to = k.local_slice<8, 64>(b[0], {8, 0});
#else
  auto from = k.local_slice<16, 32>(a[0], {0, 32}), to = k.local_slice<16, 32>(b[0], {0, 32});
#endif
  k.barrier_expect_bytes(full[0], bytes_of(to));
  k.async_remote_shmem_copy(to, from, 1 - k.cluster_cta_rank(), full[0]); // expect-line
  k.barrier_wait(full[0], 0);
  store(q + k.program_id(0), load(p) + reduce<kiln::max>(k.local_load(to)));
  k.cluster_barrier();
});
void use_copy_of_a_column() { copy_of_a_column.check(); }
#endif

// case: halves_of_a_word
// expect-error: kiln[R-BD06] async_remote_shmem_store moves groups of 4 bytes; the rows of the view must be a multiple of that
#if defined(TWIN) || defined(CASE_halves_of_a_word)
inline constexpr auto halves_of_a_word = kernel<"halves_of_a_word", pair>([](context& k, ptr<f16> q) {
#ifdef TWIN
  constexpr int n = 2;
#else
  constexpr int n = 1;
#endif
  auto a = k.local_alloc<f16, 8, n>(1, {.name = "a"});
  auto full = k.alloc_barriers(1, {.name = "full"});
  k.fence_mbarrier_init_cluster();
  k.cluster_barrier();
  k.barrier_expect_bytes(full[0], bytes_of(a[0]));
  k.async_remote_shmem_store(a[0], k.full<f16, 8, n>(1), 1 - k.cluster_cta_rank(), full[0]); // expect-line
  k.barrier_wait(full[0], 0);
  store(q + k.program_id(0), reduce<kiln::max>(k.local_load(a[0])));
});
void use_halves_of_a_word() { halves_of_a_word.check(); }
#endif

// case: memory_through_remote_view
// expect-error: kiln[T-17] remote_view takes one barrier, bars[i]; memory of another CTA is written with remote_shmem_store
#if defined(TWIN) || defined(CASE_memory_through_remote_view)
inline constexpr auto memory_through_remote_view = kernel<"memory_through_remote_view", pair>([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto x = load(p + k.arange<64>());
  k.cluster_barrier();
#ifdef TWIN
  k.remote_shmem_store(a[0], x, 1 - k.cluster_cta_rank());
#else
  k.local_store(k.remote_view(a[0], 1 - k.cluster_cta_rank()), x); // expect-line
#endif
  k.cluster_barrier();
  store(q + k.program_id(0) * 64 + k.arange<64>(), k.local_load(a[0]));
});
void use_memory_through_remote_view() { memory_through_remote_view.check(); }
#endif

// case: cluster_barrier_in_a_task
// expect-error: kiln[R-TK07] cluster_barrier inside a task would wait for the other tasks; signal barriers with .remote, or meet outside async_tasks
#if defined(TWIN) || defined(CASE_cluster_barrier_in_a_task)
inline constexpr auto cluster_barrier_in_a_task = kernel<"cluster_barrier_in_a_task", pair>([](context& k, ptr<f32> q) {
#ifdef TWIN
  k.cluster_barrier();
#endif
  k.async_tasks(k.task_default({}, [&] { store(q, 1.f); }), k.task({.num_warps = 1}, [&] {
#ifndef TWIN
    k.cluster_barrier(); // expect-line
#endif
    store(q + 1, 1.f);
  }));
});
void use_cluster_barrier_in_a_task() { cluster_barrier_in_a_task.check(); }
#endif

// case: sixteen_ctas
// expect-error: kiln[R-CP11] attributes{.cluster = {16, 1, 1}}: 16 CTAs; more than 8 need .cluster_nonportable = true
#if defined(TWIN) || defined(CASE_sixteen_ctas)
#ifdef TWIN
inline constexpr attributes sixteen{.cluster = {16, 1, 1}, .cluster_nonportable = true};
#else
inline constexpr attributes sixteen{.cluster = {16, 1, 1}};
#endif
inline constexpr auto sixteen_ctas = kernel<"sixteen_ctas", sixteen>([](context& k, ptr<f32> q) {
  store(q + k.program_id(0), 1.f); // expect-line
});
void use_sixteen_ctas() { sixteen_ctas.check(); }
#endif
