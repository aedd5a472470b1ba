// Kernels whose CTAs reach each other's local memory, recorded by the C++ compiler or at run time: correct for mutant 0, and wrong
// in one point for each other number. Clusters are {2, 1, 1} where nothing else is said; every CTA has 64 elements of x and of y.
#pragma once
#include "run_time_recording.hpp"

namespace kiln_test {

namespace clusters {

using kiln::context;
using kiln::f32;
using kiln::i32;
using kiln::ptr;
using kiln::val;

/// Says that barriers are ready, and that everybody is there.
constexpr void begin(context& k, bool fence = true, bool barrier = true) {
  if (fence) k.fence_mbarrier_init_cluster();
  if (barrier) k.cluster_barrier();
}

/// The first of the elements of this CTA.
constexpr val<i32> place(context& k) { return (k.program_id(0) + k.num_programs(0) * (k.program_id(1) + k.num_programs(1) * k.program_id(2))) * 64; }

/// A sum over the cluster through ordinary remote stores: every CTA writes its part into a slot of every other, they meet, and each
/// adds up what it has. Mutants 1..6.
constexpr void sum(context& k, ptr<const f32> x, ptr<f32> y, val<i32>, int m = 0) {
  using namespace kiln;
  int const n = k.cluster_size();
  auto parts = k.local_alloc<f32, 64>(8, {.name = "parts"});
  auto r = k.cluster_cta_rank();
  auto i = place(k) + k.arange<64>();
  if (m != 1) k.cluster_barrier();
  auto mine = load(x + i);
  for (int to : k.unrolled(n)) k.remote_shmem_store(parts[m == 2 ? k.let(0) : k.let(r)], mine, to);
  if (m != 3) k.cluster_barrier();
  auto total = k.var(k.zeros<f32, 64>());
  for (int from : k.unrolled(m == 4 ? n + 1 : n)) total = total + k.local_load(parts[from]);
  store(y + i, total);
  if (m == 5) k.remote_shmem_store(parts[r], mine, (r + 1) % n);
  if (m == 6) k.when(r == 0, [&] { k.cluster_barrier(); });
}

/// A ring: every CTA passes its tile on to the next, `steps` times, through two slots; a CTA releases a slot of its own by arriving at
/// the barrier of the CTA that fills it. Mutants 1..12.
constexpr void ring(context& k, ptr<const f32> x, ptr<f32> y, val<i32> steps, int m = 0) {
  using namespace kiln;
  constexpr int S = 2;
  int const n = k.cluster_size();
  auto tile = k.local_alloc<f32, 64>(S, {.name = "tile"});
  auto full = k.alloc_barriers(S, {.name = "full"}), empty = k.alloc_barriers(S, {.arrive_count = m == 1 ? 2 : 1, .name = "empty"});
  begin(k, m != 2, m != 3);
  auto r = k.cluster_cta_rank();
  auto next = (r + 1) % n, last = (r + (n - 1)) % n;
  auto i = place(k) + k.arange<64>();
  auto v = k.var(load(x + i));
  for (auto t : k.range(0, steps)) {
    auto [s, phase] = k.buf_phase(t, S);
    if (m != 4) k.barrier_wait(empty[s], m == 5 ? k.let(phase) : k.let(phase ^ 1));
    if (m != 6) k.barrier_expect_bytes(full[s], m == 7 ? 128 : 256);
    k.async_remote_shmem_store(tile[s], v, next, full[m == 8 ? k.let((t + 1) % S) : k.let(s)]);
    if (m != 9) k.barrier_wait(full[s], phase);
    v = k.local_load(tile[s]) + 1.f;
    if (m != 10) k.barrier_arrive(empty[s], {.remote = m == 11 ? k.let(next) : k.let(last)});
  }
  store(y + i, v);
  if (m != 12) k.cluster_barrier();
}

/// CTA 0 loads tiles and copies each to every CTA of the cluster, itself too. In tasks: one expects, one sends, one uses. Mutants 1..10; 11 is right
/// again: the region does not end with a cluster barrier, one follows.
constexpr void broadcast(context& k, ptr<const f32> x, ptr<f32> y, val<i32> steps, int m = 0) {
  using namespace kiln;
  constexpr int S = 2;
  int const n = k.cluster_size();
  auto from = k.local_alloc<f32, 64>(S, {.name = "from"}), to = k.local_alloc<f32, 64>(S, {.name = "to"});
  auto loaded = k.alloc_barriers(S, {.name = "loaded"});                     // the tile is in `from` of CTA 0
  auto sent = k.alloc_barriers(S, {.name = "sent"});                         // and in `to` of this CTA
  auto taken = k.alloc_barriers(S, {.arrive_count = n, .name = "taken"});    // everybody has read `to`; only that of CTA 0 is used
  begin(k, m != 1);
  auto r = k.cluster_cta_rank();
  auto c = k.arange<64>();
  k.async_tasks(
      {.no_ending_cluster_sync = m == 10 || m == 11},
      k.task_default({.name = "use"},
                     [&] {
                       auto total = k.var(k.zeros<f32, 64>());
                       for (auto t : k.range(0, steps)) {
                         auto [s, phase] = k.buf_phase(t, S);
                         if (m != 2) k.barrier_wait(sent[s], phase);
                         total = total + k.local_load(to[s]);
                         k.barrier_arrive(taken[s], {.remote = m == 3 ? k.let(r) : k.let(0)});
                       }
                       store(y + place(k) + c, total);
                     }),
      k.task({.num_warps = 1, .name = "expect"},
             [&] {
               for (auto t : k.range(0, steps)) {
                 auto [s, phase] = k.buf_phase(t, S);
                 k.when(t >= S, [&] { k.barrier_wait(sent[s], phase ^ 1); });
                 k.barrier_expect_bytes(sent[s], m == 4 ? 512 : 256);
               }
             }),
      k.task({.num_warps = 1, .name = "send"}, [&] {
        k.when(r == 0, [&] {
          for (auto t : k.range(0, steps)) {
            auto [s, phase] = k.buf_phase(t, S);
            if (m != 5) k.barrier_wait(taken[s], phase ^ 1); // the copies from `from` are complete, and `to` is free everywhere
            k.local_store(from[s], load(x + t * 64 + c));
            if (m != 6) k.fence(fence::async_shared);
            for (int cta : k.unrolled(m == 7 ? n - 1 : n)) k.async_remote_shmem_copy(to[s], from[m == 8 ? k.let((t + 1) % S) : k.let(s)], cta, sent[s]);
            if (m == 9) k.local_store(from[s], k.zeros<f32, 64>());
          }
        });
      }));
  if (m == 11) k.cluster_barrier(); // instead of the one that the region would end with
}

/// CTA 0 writes to CTA 1 and never hears of it again: nothing is left to wait for at its end, and CTA 1 ends after the last arrival. The
/// rank is `program_id(0) % 2`.
constexpr void one_way(context& k, ptr<const f32> x, ptr<f32> y, val<i32> steps, int = 0) {
  using namespace kiln;
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto there = k.alloc_barriers(1, {.name = "there"}), free = k.alloc_barriers(1, {.name = "free"});
  begin(k);
  auto r = k.program_id(0) % 2;
  auto c = k.arange<64>();
  k.when(
      r == 0,
      [&] {
        auto v = load(x + place(k) + c);
        for (auto t : k.range(0, steps)) {
          k.when(t > 0, [&] { k.barrier_wait(free[0], (t + 1) & 1); });
          k.remote_shmem_store(a[0], v, 1);
          k.barrier_arrive(there[0], {.remote = 1});
        }
        k.when(steps > 0, [&] { k.barrier_wait(free[0], (steps + 1) & 1); });
        store(y + place(k) + c, v);
      },
      [&] {
        auto sum = k.var(k.zeros<f32, 64>());
        for (auto t : k.range(0, steps)) {
          k.barrier_wait(there[0], t & 1);
          sum = sum + k.local_load(a[0]);
          k.barrier_arrive(free[0], {.remote = 0});
        }
        store(y + place(k) + c, sum);
      });
}

/// Both CTAs add what the other has, again and again, with one barrier a round: what the other writes
/// into is not what is read.
constexpr void halves(context& k, ptr<const f32> x, ptr<f32> y, val<i32> steps, int = 0) {
  using namespace kiln;
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
  auto other = 1 - k.cluster_cta_rank();
  auto c = place(k) + k.arange<64>();
  auto v = k.var(load(x + c));
  k.cluster_barrier();
  for (auto t : k.range(0, steps)) {
    k.remote_shmem_store(a[t % 2], v, other);
    k.cluster_barrier(); // also says that the slot of the round before is free
    v = v + k.local_load(a[t % 2]);
  }
  store(y + c, v);
}

} // namespace clusters

} // namespace kiln_test
