// Pipelined kernels of several tasks, recorded by the C++ compiler or at run time: correct for mutant 0, and wrong in one point for
// each other number. The kernels of the design's race study.
#pragma once
#include "run_time_recording.hpp"

#include <utility>

namespace kiln_test {

namespace pipelines {

/// A producer that fills rings by bulk copies, and two consumers, each with half the rows; results leave by bulk stores.
/// Parameters: x, y, steps. Mutants 1..23.
constexpr void matrix_product(kiln::context& k, kiln::ptr<const kiln::f16> x, kiln::ptr<kiln::f16> y, kiln::val<kiln::i32> steps, int m = 0) {
  using namespace kiln;
  constexpr int S = 4;
  auto a0 = k.local_alloc<f16, 64>(S, {.name = "A0"}), a1 = k.local_alloc<f16, 64>(S, {.name = "A1"});
  auto b = k.local_alloc<f16, 128>(S, {.name = "B"});
  auto c = k.local_alloc<f16, 64>(2, {.name = "C"});
  auto full = k.alloc_barriers(S, {.name = "full"});
  auto empty = k.alloc_barriers(S, {.arrive_count = m == 1 ? 1 : m == 2 ? 3 : 2, .name = "empty"});
  k.async_tasks(
      k.task_default({.name = "load"},
                     [&] {
                       for (auto i : k.range(0, steps)) {
                         auto [s, right] = k.buf_phase(i, m == 3 ? S - 1 : S);
                         auto phase = m == 4 ? k.buf_phase(i, S + 1).phase : right;
                         if (m != 6) k.barrier_wait(empty[s], m == 5 ? k.let(phase) : k.let(phase ^ 1));
                         k.barrier_expect_bytes(full[s], m == 7 ? 384 : m == 8 ? 640 : 512);
                         k.async_load_bulk(x + i * 256, a0[s], full[s]);
                         if (m != 9) k.async_load_bulk(x + i * 256 + 64, a1[s], full[s]);
                         k.async_load_bulk(x + i * 256 + 128, b[m == 10 ? k.let((i + 1) % S) : k.let(s)], full[s]);
                       }
                     }),
      k.task({.num_warps = 4, .replicate = 2, .name = "mma"}, [&] {
        auto r = k.replica_id();
        auto sum = k.var(k.zeros<f16, 64>());
        for (auto i : k.range(0, steps)) {
          auto [s, phase] = k.buf_phase(i, S);
          if (m == 11)
            k.barrier_wait(full[s], phase ^ 1);
          else if (m == 12)
            k.when(r == 0, [&] { k.barrier_wait(full[s], phase); });
          else if (m != 13)
            k.barrier_wait(full[s], m == 14 ? k.let(0) : k.let(phase));
          auto v = k.local_load(b[s]);
          k.when(r == 0, [&] { sum = sum + k.local_load(a0[s]); }, [&] { sum = sum + k.local_load(a1[s]); });
          sum = sum + reduce<kiln::max>(v);
          if (m != 17) k.barrier_arrive(empty[m == 18 ? k.let((i + 1) % S) : k.let(s)], {.count = m == 15 ? 2 : 1});
          if (m == 19) sum = sum + reduce<kiln::max>(k.local_load(b[s]));
        }
        k.local_store(c[r], sum);
        if (m != 20) k.fence(fence::async_shared);
        if (m == 21)
          k.async_store_bulk(y, c[0]);
        else
          k.async_store_bulk(y + r * 64, c[r]);
        if (m == 16 || m == 23) k.local_store(c[r], k.zeros<f16, 64>());
        if (m != 22) k.async_store_wait(m == 23 ? 1 : 0);
      }));
}

/// Two consumers that take turns at the tensor cores, handing over through named barriers; a ring of seven. Mutants 1..15.
constexpr void ping_pong(kiln::context& k, kiln::ptr<const kiln::f16> x, kiln::ptr<kiln::f16> y, kiln::val<kiln::i32> tiles, int m = 0) {
  using namespace kiln;
  constexpr int S = 7, K = 8;
  auto a = k.local_alloc<f16, 64>(S, {.name = "A"}), b = k.local_alloc<f16, 64>(S, {.name = "B"});
  auto c = k.local_alloc<f16, 64>(1, {.name = "C"});
  auto full = k.alloc_barriers(S, {.name = "full"}), empty = k.alloc_barriers(S, {.name = "empty"});
  auto consumer = [&](int w) {
    auto n = k.var(k.let(w * K));
    if (w && m != 6) {
      k.named_barrier_arrive(1, 256);
      k.named_barrier_arrive(3, 256);
    }
    for (auto tile : k.range(0, tiles)) {
      auto sum = k.var(k.zeros<f16, 64>());
      k.named_barrier_wait(1 + w, 256);
      for ([[maybe_unused]] auto j : k.range(0, K)) {
        auto [s, phase] = k.buf_phase(n, S);
        if (!(m == 7 && w)) k.barrier_wait(full[s], phase);
        sum = sum + k.local_load(a[s]) * k.local_load(b[s]);
        if (!(m == 8 && w)) k.barrier_arrive(empty[m == 9 ? k.let((n + 1) % S) : k.let(s)]);
        n += 1;
      }
      if (m != 10) k.named_barrier_arrive(2 - w, 256);
      if (m != 11) n += K;
      if (m != 12) k.named_barrier_wait(3 + w, 256);
      k.local_store(c[0], sum);
      if (m != 14) k.fence(fence::async_shared);
      k.async_store_bulk(y + (tile * 2 + w) * 64, c[0]);
      if (m != 13) k.async_store_wait(0);
      if (m != 12) k.named_barrier_arrive(4 - w, m == 15 ? 128 : 256);
    }
  };
  k.async_tasks(k.task_default({.name = "load"},
                               [&] {
                                 auto n = k.var(k.let(0));
                                 for ([[maybe_unused]] auto tile : k.range(0, tiles))
                                   for (int w = 0; w < 2; ++w) {
                                     for ([[maybe_unused]] auto j : k.range(0, K)) {
                                       auto [s, phase] = k.buf_phase(n, S);
                                       if (m != 2) k.barrier_wait(empty[s], m == 1 ? k.let(phase) : k.let(phase ^ 1));
                                       k.barrier_expect_bytes(full[s], m == 3 ? 128 : 256);
                                       k.async_load_bulk(x + n * 128, a[s], full[s]);
                                       k.async_load_bulk(x + n * 128 + 64, b[m == 4 ? k.let((n + 1) % S) : k.let(s)], full[s]);
                                       n += 1;
                                     }
                                     if (m == 5 && w) n += 1;
                                   }
                               }),
                k.task({.num_warps = 4, .name = "mma0"}, [&] { consumer(0); }), k.task({.num_warps = 4, .name = "mma1"}, [&] { consumer(1); }));
}

/// Attention: one load of Q, rings of K and V with barriers of their own, a scratch buffer that two consumers share in turns
/// through it. Mutants 1..12.
constexpr void attention(kiln::context& k, kiln::ptr<const kiln::f16> x, kiln::ptr<kiln::f16> y, kiln::val<kiln::i32> steps, int m = 0) {
  using namespace kiln;
  constexpr int S = 2;
  auto q = k.local_alloc<f16, 64>(2, {.name = "Q"}), p = k.local_alloc<f16, 64>(2, {.name = "P"});
  auto ks = k.local_alloc<f16, 64>(S, {.name = "K"}), vs = k.local_alloc<f16, 64>(S, {.name = "V"});
  auto q_full = k.alloc_barriers(1, {.name = "q_full"});
  auto k_full = k.alloc_barriers(S, {.name = "k_full"}), k_empty = k.alloc_barriers(S, {.arrive_count = 2, .name = "k_empty"});
  auto v_full = k.alloc_barriers(S, {.name = "v_full"}), v_empty = k.alloc_barriers(S, {.arrive_count = m == 1 ? 1 : 2, .name = "v_empty"});
  k.async_tasks(k.task_default({.name = "load"},
                               [&] {
                                 k.barrier_expect_bytes(q_full[0], m == 2 ? 128 : 256);
                                 k.async_load_bulk(x, q[0], q_full[0]);
                                 k.async_load_bulk(x + 64, q[1], q_full[0]);
                                 for (auto i : k.range(0, steps)) {
                                   auto [s, phase] = k.buf_phase(i, S);
                                   k.barrier_wait(k_empty[s], phase ^ 1);
                                   k.barrier_expect_bytes(k_full[s], 128);
                                   k.async_load_bulk(x + i * 64, ks[s], k_full[s]);
                                   if (m != 3) k.barrier_wait(v_empty[s], m == 4 ? k.let(phase) : k.let(phase ^ 1));
                                   k.barrier_expect_bytes(v_full[s], 128);
                                   if (m == 5)
                                     k.async_load_bulk(x + i * 64, vs[s], k_full[s]);
                                   else
                                     k.async_load_bulk(x + i * 64, vs[s], v_full[s]);
                                 }
                               }),
                k.task({.num_warps = 4, .replicate = 2, .name = "mma"}, [&] {
                  auto r = k.replica_id();
                  auto acc = k.var(k.zeros<f16, 64>());
                  if (m == 6)
                    k.when(r == 0, [&] { k.barrier_wait(q_full[0], 0); });
                  else
                    k.barrier_wait(q_full[0], 0);
                  for (auto i : k.range(0, steps)) {
                    auto [s, phase] = k.buf_phase(i, S);
                    if (m != 7) k.barrier_wait(k_full[s], phase);
                    auto scores = k.local_load(q[r]) * k.local_load(ks[s]);
                    if (m == 9)
                      k.barrier_arrive(v_empty[s]);
                    else if (m != 8)
                      k.barrier_arrive(k_empty[s]);
                    k.local_store(p[m == 10 ? k.let(0) : k.let(r)], scores);
                    k.barrier_wait(v_full[s], phase);
                    acc = acc + k.local_load(p[m == 11 ? k.let(1 - r) : k.let(r)]) * k.local_load(vs[s]);
                    if (m == 12)
                      k.when(r == 0, [&] { k.barrier_arrive(v_empty[s]); });
                    else
                      k.barrier_arrive(v_empty[s]);
                  }
                  store(y + r * 64 + k.arange<64>(), acc);
                }));
}

/// One agent with two rings of cp.async loads, three groups ahead, and an epilogue over the bytes of the first ring. Mutants 1..11.
constexpr void cp_async(kiln::context& k, kiln::ptr<const kiln::f16> x, kiln::ptr<kiln::f16> y, kiln::val<kiln::i32> steps, int m = 0) {
  using namespace kiln;
  constexpr int S = 4;
  auto storage = k.storage_alias_spec({.name = "storage"});
  auto a = k.local_alloc<f16, 64>(S, {.reuse = &storage, .name = "A"});
  auto c = k.local_alloc<f16, 256>(1, {.reuse = &storage, .name = "C"});
  auto b = k.local_alloc<f16, 64>(S, {.name = "B"});
  auto lanes = k.arange<64>();
  for (int s = 0; s < S - (m == 1 ? 2 : 1); ++s) {
    k.async_load(x + s * 128 + lanes, a[s]);
    k.async_load(x + s * 128 + 64 + lanes, b[s]);
    if (m != 2) k.async_load_commit_group();
  }
  auto sum = k.var(k.zeros<f16, 64>());
  for (auto i : k.range(0, steps)) {
    auto s = i % S, next = (i + (m == 3 ? S : m == 4 ? S - 2 : S - 1)) % S;
    if (m != 5) k.async_load_wait_group(m == 6 ? S - 1 : S - 2);
    sum = sum + k.local_load(a[m == 7 ? (i + 1) % S : s]);
    sum = sum + k.local_load(b[s]);
    auto from = x + (i + (S - 1)) * 128 + lanes;
    k.async_load(from, a[next]);
    k.async_load(from + 64, b[m == 8 ? s : next]);
    if (m != 9) k.async_load_commit_group();
  }
  if (m != 10) k.async_load_wait_group(0);
  store(y + lanes, sum);
  k.local_store(c[0], k.zeros<f16, 256>());
  if (m == 11)
    store(y + 64 + lanes, k.local_load(a[0]));
  else
    store(y + 64 + k.arange<256>(), k.local_load(c[0]));
}

/// A ring of four that one task fills by `Buffers` copies a round and seven others read: about 50 nodes for each buffer.
template <int Buffers>
constexpr void many_readers(kiln::context& k, kiln::ptr<const kiln::f16> x, kiln::ptr<kiln::f16> y, kiln::val<kiln::i32> steps) {
  using namespace kiln;
  constexpr int S = 4;
  auto full = k.alloc_barriers(S, {.name = "full"}), empty = k.alloc_barriers(S, {.arrive_count = 7, .name = "empty"});
  auto make = [&]<int... B, int... R>(std::integer_sequence<int, B...>, std::integer_sequence<int, R...>) {
    bufs<f16, 64> const rings[] = {((void)B, k.local_alloc<f16, 64>(S))...};
    auto reader = [&](int r) {
      auto sum = k.var(k.zeros<f16, 64>());
      for (auto i : k.range(0, steps)) {
        auto [s, phase] = k.buf_phase(i, S);
        k.barrier_wait(full[s], phase);
        for (bufs<f16, 64> const& b : rings) sum = sum + k.local_load(b[s]);
        k.barrier_arrive(empty[s]);
      }
      store(y + r * 64 + k.arange<64>(), sum);
    };
    k.async_tasks(k.task_default({.name = "load"},
                                 [&] {
                                   for (auto i : k.range(0, steps)) {
                                     auto [s, phase] = k.buf_phase(i, S);
                                     k.barrier_wait(empty[s], phase ^ 1);
                                     k.barrier_expect_bytes(full[s], 128 * Buffers);
                                     for (bufs<f16, 64> const& b : rings) k.async_load_bulk(x + i * 64, b[s], full[s]);
                                   }
                                 }),
                  k.task({.num_warps = 4}, [&] { reader(R); })...);
  };
  make(std::make_integer_sequence<int, Buffers>{}, std::make_integer_sequence<int, 7>{});
}

} // namespace pipelines

#define KILN_RECORDED_PIPELINE(name)                                                                                   \
  inline void name(run_time_recording& t, int m) {                                                                     \
    auto x = t.pointer<const kiln::f16>();                                                                             \
    auto y = t.pointer<kiln::f16>();                                                                                   \
    pipelines::name(t.k, x, y, t.value<kiln::i32>(), m);                                                               \
  }
KILN_RECORDED_PIPELINE(matrix_product)
KILN_RECORDED_PIPELINE(ping_pong)
KILN_RECORDED_PIPELINE(attention)
KILN_RECORDED_PIPELINE(cp_async)
#undef KILN_RECORDED_PIPELINE

} // namespace kiln_test
