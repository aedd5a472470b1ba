// Twenty-five correct kernels that look wrong: every one does something that a too strict rule would refuse. All have the same
// parameters, and the same is recorded by the C++ compiler and at run time. x has at least 16384 elements, y 4096; n is small.
#pragma once
#include <kiln/kernel.hpp>

namespace kiln_test::suspicious {

using namespace kiln;
using source = ptr<const f32>;
using target = ptr<f32>;
using count = kiln::val<i32>; // kiln_test::val makes arguments

constexpr int row = 64; ///< elements of a slot

constexpr auto lanes(context& k) { return k.arange<row>(); }

// 1. Producer and consumer over a ring; the first round of waits passes at once.
constexpr void ring(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(3, {.name = "a"});
  auto full = k.alloc_barriers(3, {.name = "full"}), empty = k.alloc_barriers(3, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "load"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 3);
                                   k.barrier_wait(empty[s], phase ^ 1);
                                   k.barrier_expect_bytes(full[s], bytes_of(a[s]));
                                   k.async_load_bulk(x + i * row, a[s], full[s]);
                                 }
                               }),
                k.task({.num_warps = 4, .name = "use"}, [&] {
                  for (auto i : k.range(0, n)) {
                    auto [s, phase] = k.buf_phase(i, 3);
                    k.barrier_wait(full[s], phase);
                    store(y + i * row + lanes(k), k.local_load(a[s]));
                    k.barrier_arrive(empty[s]);
                  }
                }));
}

// 2. The consumer primes the ring with arrivals, and the producer starts with parity 0.
constexpr void primed(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(3, {.name = "a"});
  auto full = k.alloc_barriers(3, {.name = "full"}), empty = k.alloc_barriers(3, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "load"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 3);
                                   k.barrier_wait(empty[s], phase);
                                   k.barrier_expect_bytes(full[s], bytes_of(a[s]));
                                   k.async_load_bulk(x + i * row, a[s], full[s]);
                                 }
                               }),
                k.task({.num_warps = 4, .name = "use"}, [&] {
                  for (int s = 0; s < 3; ++s) k.barrier_arrive(empty[s]);
                  for (auto i : k.range(0, n)) {
                    auto [s, phase] = k.buf_phase(i, 3);
                    k.barrier_wait(full[s], phase);
                    store(y + i * row + lanes(k), k.local_load(a[s]));
                    k.barrier_arrive(empty[s]);
                  }
                }));
}

// 3. The copy is issued before its bytes are expected.
constexpr void copied_before_expected(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(2, {.name = "a"});
  auto full = k.alloc_barriers(2, {.name = "full"}), empty = k.alloc_barriers(2, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "load"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 2);
                                   k.barrier_wait(empty[s], phase ^ 1);
                                   k.async_load_bulk(x + i * row, a[s], full[s]);
                                   k.barrier_expect_bytes(full[s], bytes_of(a[s]));
                                 }
                               }),
                k.task({.num_warps = 4, .name = "use"}, [&] {
                  for (auto i : k.range(0, n)) {
                    auto [s, phase] = k.buf_phase(i, 2);
                    k.barrier_wait(full[s], phase);
                    store(y + i * row + lanes(k), k.local_load(a[s]));
                    k.barrier_arrive(empty[s]);
                  }
                }));
}

// 4. A relay: who waits for the copy is not who reads it.
constexpr void relay(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(2, {.name = "a"});
  auto full = k.alloc_barriers(2, {.name = "full"}), passed = k.alloc_barriers(2, {.name = "passed"}), empty = k.alloc_barriers(2, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "load"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 2);
                                   k.barrier_wait(empty[s], phase ^ 1);
                                   k.barrier_expect_bytes(full[s], bytes_of(a[s]));
                                   k.async_load_bulk(x + i * row, a[s], full[s]);
                                 }
                               }),
                k.task({.num_warps = 1, .name = "relay"},
                       [&] {
                         for (auto i : k.range(0, n)) {
                           auto [s, phase] = k.buf_phase(i, 2);
                           k.barrier_wait(full[s], phase);
                           k.barrier_arrive(passed[s]);
                         }
                       }),
                k.task({.num_warps = 4, .name = "use"}, [&] {
                  for (auto i : k.range(0, n)) {
                    auto [s, phase] = k.buf_phase(i, 2);
                    k.barrier_wait(passed[s], phase);
                    store(y + i * row + lanes(k), k.local_load(a[s]));
                    k.barrier_arrive(empty[s]);
                  }
                }));
}

// 5. Waiting twice for one phase.
constexpr void waited_twice(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(2, {.name = "a"});
  auto full = k.alloc_barriers(2, {.name = "full"}), empty = k.alloc_barriers(2, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "use"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 2);
                                   k.barrier_wait(full[s], phase);
                                   k.barrier_wait(full[s], phase);
                                   store(y + i * row + lanes(k), k.local_load(a[s]));
                                   k.barrier_arrive(empty[s]);
                                 }
                               }),
                k.task({.num_warps = 1, .name = "load"}, [&] {
                  for (auto i : k.range(0, n)) {
                    auto [s, phase] = k.buf_phase(i, 2);
                    k.barrier_wait(empty[s], phase ^ 1);
                    k.barrier_expect_bytes(full[s], bytes_of(a[s]));
                    k.async_load_bulk(x + i * row, a[s], full[s]);
                  }
                }));
}

// 6. Two producers on one barrier, each with half of the slot.
constexpr void two_producers(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(2, {.name = "a"}), b = k.local_alloc<f32, row>(2, {.name = "b"});
  auto full = k.alloc_barriers(2, {.arrive_count = 2, .name = "full"}), empty = k.alloc_barriers(2, {.name = "empty"});
  auto load_into = [&](auto& buffer, int offset) {
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 2);
      k.barrier_wait(empty[s], phase ^ 1);
      k.barrier_expect_bytes(full[s], bytes_of(buffer[s]));
      k.async_load_bulk(x + (i * 2 + offset) * row, buffer[s], full[s]);
    }
  };
  k.async_tasks(k.task_default({.name = "use"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 2);
                                   k.barrier_wait(full[s], phase);
                                   store(y + i * row + lanes(k), k.local_load(a[s]) - k.local_load(b[s]));
                                   k.barrier_arrive(empty[s]);
                                 }
                               }),
                k.task({.num_warps = 1, .name = "load_a"}, [&] { load_into(a, 0); }), k.task({.num_warps = 1, .name = "load_b"}, [&] { load_into(b, 1); }));
}

// 7. A consumer releases the slot of the round before, one round late.
constexpr void released_late(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(4, {.name = "a"});
  auto full = k.alloc_barriers(4, {.name = "full"}), empty = k.alloc_barriers(4, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "load"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 4);
                                   k.barrier_wait(empty[s], phase ^ 1);
                                   k.barrier_expect_bytes(full[s], bytes_of(a[s]));
                                   k.async_load_bulk(x + i * row, a[s], full[s]);
                                 }
                               }),
                k.task({.num_warps = 4, .name = "use"}, [&] {
                  for (auto i : k.range(0, n)) {
                    auto [s, phase] = k.buf_phase(i, 4);
                    k.barrier_wait(full[s], phase);
                    store(y + i * row + lanes(k), k.local_load(a[s]));
                    k.when(i > 0, [&] { k.barrier_arrive(empty[(i + 3) % 4]); });
                  }
                }));
}

// 8. One slot, two parities: each round hands it over and back.
constexpr void one_slot(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(1, {.name = "a"});
  auto full = k.alloc_barriers(1, {.name = "full"}), empty = k.alloc_barriers(1, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "make"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   k.barrier_wait(empty[0], (i & 1) ^ 1);
                                   k.local_store(a[0], load(x + i * row + lanes(k)));
                                   k.barrier_arrive(full[0]);
                                 }
                               }),
                k.task({.num_warps = 4, .name = "use"}, [&] {
                  for (auto i : k.range(0, n)) {
                    k.barrier_wait(full[0], i & 1);
                    store(y + i * row + lanes(k), k.local_load(a[0]));
                    k.barrier_arrive(empty[0]);
                  }
                }));
}

// 9. Ping-pong: two agents write one buffer in turns, ordered by named barriers only.
constexpr void turns(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(1, {.name = "a"});
  auto turn = [&](int w) {
    if (w == 1) k.named_barrier_arrive(1, 256);
    for (auto i : k.range(0, n)) {
      k.named_barrier_wait(1 + w, 256);
      k.local_store(a[0], load(x + (i * 2 + w) * row + lanes(k)));
      store(y + (i * 2 + w) * row + lanes(k), k.local_load(a[0]));
      if (w == 0)
        k.named_barrier_arrive(2, 256);
      else
        k.when(i + 1 < n, [&] { k.named_barrier_arrive(1, 256); });
    }
  };
  k.async_tasks(k.task_default({.name = "even"}, [&] { turn(0); }), k.task({.num_warps = 4, .name = "odd"}, [&] { turn(1); }));
}

// 10. A multi-stage ring of cp.async in one agent, wrapping around, with an empty group at the end of each round.
constexpr void cp_ring(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(4, {.name = "a"});
  auto fetch = [&](auto i) {
    k.when(i < n, [&] { k.async_load(x + i * row + lanes(k), a[i % 4]); });
    k.async_load_commit_group();
  };
  for (int i = 0; i < 3; ++i) fetch(k.let(i));
  for (auto i : k.range(0, n)) {
    k.async_load_wait_group(2);
    store(y + i * row + lanes(k), k.local_load(a[i % 4]));
    fetch(i + 3);
  }
}

// 11. cp.async by a producer, which hands over by an ordinary arrival after its own wait, one group behind.
constexpr void cp_producer(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(4, {.name = "a"});
  auto full = k.alloc_barriers(4, {.name = "full"}), empty = k.alloc_barriers(4, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "use"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 4);
                                   k.barrier_wait(full[s], phase);
                                   store(y + i * row + lanes(k), k.local_load(a[s]));
                                   k.barrier_arrive(empty[s]);
                                 }
                               }),
                k.task({.num_warps = 4, .name = "load"}, [&] {
                  for (auto i : k.range(0, n)) {
                    auto [s, phase] = k.buf_phase(i, 4);
                    k.barrier_wait(empty[s], phase ^ 1);
                    k.async_load(x + i * row + lanes(k), a[s]);
                    k.async_load_commit_group();
                    k.when(i > 0, [&] {
                      k.async_load_wait_group(1);
                      k.barrier_arrive(full[(i + 3) % 4]);
                    });
                  }
                  k.async_load_wait_group(0);
                  k.when(n > 0, [&] { k.barrier_arrive(full[(n + 3) % 4]); });
                }));
}

// 12. cp.async that arrives by itself: no wait and no commit anywhere.
constexpr void cp_arrives(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(3, {.name = "a"});
  auto full = k.alloc_barriers(3, {.arrive_count = 64, .name = "full"}), empty = k.alloc_barriers(3, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "use"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 3);
                                   k.barrier_wait(full[s], phase);
                                   store(y + i * row + lanes(k), k.local_load(a[s]));
                                   k.barrier_arrive(empty[s]);
                                 }
                               }),
                k.task({.num_warps = 2, .name = "load"}, [&] {
                  for (auto i : k.range(0, n)) {
                    auto [s, phase] = k.buf_phase(i, 3);
                    k.barrier_wait(empty[s], phase ^ 1);
                    k.async_load(x + i * row + lanes(k), a[s]);
                    k.async_load_arrive(full[s]);
                  }
                }));
}

// 13. Results leave through two buffers: a slot is written again while the store of the other is still in flight.
constexpr void store_ring(context& k, source x, target y, count n) {
  auto out = k.local_alloc<f32, row>(2, {.name = "out"});
  for (auto i : k.range(0, n)) {
    k.async_store_wait(1);
    k.local_store(out[i % 2], load(x + i * row + lanes(k)) * 2.f);
    k.fence(fence::async_shared);
    k.async_store_bulk(y + i * row, out[i % 2]);
  }
  k.async_store_wait(0);
}

// 14. Persistent: the ring's position runs on over tiles, in vars of each task.
constexpr void persistent(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(3, {.name = "a"});
  auto full = k.alloc_barriers(3, {.name = "full"}), empty = k.alloc_barriers(3, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "load"},
                               [&] {
                                 auto it = k.var(k.let(0));
                                 for (auto tile : k.range(0, n))
                                   for (auto i : k.range(0, 4)) {
                                     auto [s, phase] = k.buf_phase(it, 3);
                                     k.barrier_wait(empty[s], phase ^ 1);
                                     k.barrier_expect_bytes(full[s], bytes_of(a[s]));
                                     k.async_load_bulk(x + (tile * 4 + i) * row, a[s], full[s]);
                                     it += 1;
                                   }
                               }),
                k.task({.num_warps = 4, .name = "use"}, [&] {
                  auto it = k.var(k.let(0));
                  for (auto tile : k.range(0, n)) {
                    auto sum = k.var(k.zeros<f32, row>());
                    for ([[maybe_unused]] auto i : k.range(0, 4)) {
                      auto [s, phase] = k.buf_phase(it, 3);
                      k.barrier_wait(full[s], phase);
                      sum = sum + k.local_load(a[s]);
                      k.barrier_arrive(empty[s]);
                      it += 1;
                    }
                    store(y + tile * row + lanes(k), sum);
                  }
                }));
}

// 15. Replicas that take every other slot, each with arrivals of its own.
constexpr void replicas(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(4, {.name = "a"});
  auto full = k.alloc_barriers(4, {.name = "full"}), empty = k.alloc_barriers(4, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "load"},
                               [&] {
                                 for (auto i : k.range(0, n * 2)) {
                                   auto [s, phase] = k.buf_phase(i, 4);
                                   k.barrier_wait(empty[s], phase ^ 1);
                                   k.barrier_expect_bytes(full[s], bytes_of(a[s]));
                                   k.async_load_bulk(x + i * row, a[s], full[s]);
                                 }
                               }),
                k.task({.num_warps = 4, .replicate = 2, .name = "use"}, [&] {
                  for (auto i : k.range(k.replica_id(), n * 2, 2)) {
                    auto [s, phase] = k.buf_phase(i, 4);
                    k.barrier_wait(full[s], phase);
                    store(y + i * row + lanes(k), k.local_load(a[s]));
                    k.barrier_arrive(empty[s]);
                  }
                }));
}

// 16. A slot filled in halves by two agents, read whole.
constexpr void halves(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(2, {.name = "a"});
  auto full = k.alloc_barriers(2, {.arrive_count = 2, .name = "full"}), empty = k.alloc_barriers(2, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "use"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 2);
                                   k.barrier_wait(full[s], phase);
                                   store(y + i * row + lanes(k), k.local_load(a[s]));
                                   k.barrier_arrive(empty[s]);
                                 }
                               }),
                k.task({.num_warps = 4, .replicate = 2, .name = "make"}, [&] {
                  auto half = k.replica_id() * (row / 2);
                  for (auto i : k.range(0, n)) {
                    auto [s, phase] = k.buf_phase(i, 2);
                    k.barrier_wait(empty[s], phase ^ 1);
                    k.local_store(k.local_slice<row / 2>(a[s], {half}), load(x + i * row + half + k.arange<row / 2>()));
                    k.barrier_arrive(full[s]);
                  }
                }));
}

// 17. What the kernel's own agent wrote before, all tasks read; what they wrote, it reads after: no barrier at all.
constexpr void fork_and_join(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(1, {.name = "a"}), b = k.local_alloc<f32, row>(3, {.name = "b"});
  k.local_store(a[0], load(x + n * row + lanes(k)));
  k.async_tasks(k.task_default({.name = "zero"}, [&] { k.local_store(b[0], k.local_load(a[0])); }),
                k.task({.num_warps = 2, .replicate = 2, .name = "more"}, [&] { k.local_store(b[k.replica_id() + 1], k.local_load(a[0]) * 2.f); }));
  k.local_store(a[0], k.local_load(b[0]) + k.local_load(b[1]) + k.local_load(b[2]));
  store(y + lanes(k), k.local_load(a[0]));
}

// 18. A count of three: one agent arrives twice, another once.
constexpr void uneven_arrivals(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(2, {.name = "a"}), b = k.local_alloc<f32, row>(2, {.name = "b"});
  auto full = k.alloc_barriers(2, {.arrive_count = 3, .name = "full"}), empty = k.alloc_barriers(2, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "use"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 2);
                                   k.barrier_wait(full[s], phase);
                                   store(y + i * row + lanes(k), k.local_load(a[s]) + k.local_load(b[s]));
                                   k.barrier_arrive(empty[s]);
                                 }
                               }),
                k.task({.num_warps = 1, .name = "twice"},
                       [&] {
                         for (auto i : k.range(0, n)) {
                           auto [s, phase] = k.buf_phase(i, 2);
                           k.barrier_wait(empty[s], phase ^ 1);
                           k.barrier_expect_bytes(full[s], bytes_of(a[s]));
                           k.async_load_bulk(x + i * row, a[s], full[s]);
                           k.barrier_arrive(full[s]);
                         }
                       }),
                k.task({.num_warps = 4, .name = "once"}, [&] {
                  for (auto i : k.range(0, n)) {
                    auto [s, phase] = k.buf_phase(i, 2);
                    k.barrier_wait(empty[s], phase ^ 1);
                    k.local_store(b[s], load(x + i * row + lanes(k)));
                    k.barrier_arrive(full[s]);
                  }
                }));
}

// 19. In place: the consumer changes the slot and stores it out itself before releasing it to the producer's copies.
constexpr void in_place(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(3, {.name = "a"});
  auto full = k.alloc_barriers(3, {.name = "full"}), empty = k.alloc_barriers(3, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "change"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 3);
                                   k.barrier_wait(full[s], phase);
                                   k.local_store(a[s], k.local_load(a[s]) * 3.f);
                                   k.fence(fence::async_shared);
                                   k.async_store_bulk(y + i * row, a[s]);
                                   k.async_store_wait(0);
                                   k.barrier_arrive(empty[s]);
                                 }
                               }),
                k.task({.num_warps = 1, .name = "load"}, [&] {
                  for (auto i : k.range(0, n)) {
                    auto [s, phase] = k.buf_phase(i, 3);
                    k.barrier_wait(empty[s], phase ^ 1);
                    k.barrier_expect_bytes(full[s], bytes_of(a[s]));
                    k.async_load_bulk(x + i * row, a[s], full[s]);
                  }
                }));
}

// 20. The first round is peeled off and waits for nothing.
constexpr void peeled(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(2, {.name = "a"});
  auto full = k.alloc_barriers(2, {.name = "full"}), empty = k.alloc_barriers(2, {.name = "empty"});
  k.assume(n > 1);
  auto fetch = [&](auto i) {
    auto s = i % 2;
    k.barrier_expect_bytes(full[s], bytes_of(a[s]));
    k.async_load_bulk(x + i * row, a[s], full[s]);
  };
  k.async_tasks(k.task_default({.name = "load"},
                               [&] {
                                 for (int i = 0; i < 2; ++i) fetch(k.let(i));
                                 for (auto i : k.range(2, n)) {
                                   k.barrier_wait(empty[i % 2], ((i / 2) & 1) ^ 1);
                                   fetch(i);
                                 }
                               }),
                k.task({.num_warps = 4, .name = "use"}, [&] {
                  for (auto i : k.range(0, n)) {
                    auto [s, phase] = k.buf_phase(i, 2);
                    k.barrier_wait(full[s], phase);
                    store(y + i * row + lanes(k), k.local_load(a[s]));
                    k.barrier_arrive(empty[s]);
                  }
                }));
}

// 21. Aliased epilogue: the results lie over the slots of the ring, and leave by a bulk store while the producer has ended.
constexpr void aliased_epilogue(context& k, source x, target y, count n) {
  auto storage = k.storage_alias_spec({.name = "storage"});
  auto a = k.local_alloc<f32, row>(4, {.reuse = &storage, .name = "a"});
  auto out = k.local_alloc<f32, 2 * row>(2, {.reuse = &storage, .name = "out"});
  storage.set_buffer_overlap(shared_group(subtile(a, 2), out));
  auto full = k.alloc_barriers(4, {.name = "full"}), empty = k.alloc_barriers(4, {.name = "empty"});
  k.async_tasks(k.task_default({.name = "load"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 4);
                                   k.barrier_wait(empty[s], phase ^ 1);
                                   k.barrier_expect_bytes(full[s], bytes_of(a[s]));
                                   k.async_load_bulk(x + i * row, a[s], full[s]);
                                 }
                               }),
                k.task({.num_warps = 4, .name = "use"}, [&] {
                  auto sum = k.var(k.zeros<f32, row>());
                  for (auto i : k.range(0, n)) {
                    auto [s, phase] = k.buf_phase(i, 4);
                    k.barrier_wait(full[s], phase);
                    sum = sum + k.local_load(a[s]);
                    k.barrier_arrive(empty[s]);
                  }
                  for (int h = 0; h < 2; ++h) k.local_store(k.local_slice<row>(out[1], {h * row}), sum * static_cast<float>(h + 1));
                  k.fence(fence::async_shared);
                  k.async_store_bulk(y, out[1]);
                  k.async_store_wait(0);
                }));
}

// 22. Phases of an allocator: the staging buffer takes over the bytes of both inputs in each round, and gives them back.
constexpr void phased_staging(context& k, source x, target y, count n) {
  smem_allocation<f32, row> a{.name = "a"}, b{.name = "b"}, staging{.name = "staging"};
  smem_allocator memory(k);
  memory.add(a), memory.add(b), memory.add(staging);
  memory.add_alias_group({{&a, &b}, {&staging}});
  memory.compute_layout();
  memory.allocate(k);
  auto va = memory.get(k, a), vb = memory.get(k, b), out = memory.get(k, staging);
  for (auto i : k.range(0, n)) {
    k.async_load(x + i * row + lanes(k), va);
    k.async_load(x + i * 2 * row + lanes(k), vb);
    k.async_load_commit_group();
    k.async_load_wait_group(0);
    auto both = k.local_load(va) + k.local_load(vb);
    k.local_store(out, both);
    k.fence(fence::async_shared);
    k.async_store_bulk(y + i * row, out);
    k.async_store_wait(0);
  }
}

// 23. A pool that was rewound: the later buffer may be written as soon as the earlier one was read for the last time.
constexpr void rewound_pool(context& k, source x, target y, count n) {
  auto pool = k.smem_pool({.name = "pool"});
  auto early = pool.alloc<f32, 2 * row>();
  pool.move_base_to(0);
  auto late = pool.alloc<f32, row>();
  pool.commit();
  auto done = k.alloc_barriers(1, {.name = "done"});
  auto c = k.arange<2 * row>();
  k.local_store(early, load(x + n * row + c));
  k.async_tasks(k.task_default({.name = "early"},
                               [&] {
                                 store(y + c, k.local_load(early));
                                 k.barrier_arrive(done[0]);
                               }),
                k.task({.num_warps = 2, .name = "late"}, [&] {
                  k.barrier_wait(done[0], 0);
                  k.local_store(late, load(x + lanes(k)));
                  store(y + 2 * row + lanes(k), k.local_load(late));
                }));
}

// 24. Bytes are expected, copied and waited for under one condition, which only a launch knows; else others fill the slot.
constexpr void by_condition(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(2, {.name = "a"});
  auto full = k.alloc_barriers(2, {.name = "full"});
  auto bulk = n > 4;
  for (int s = 0; s < 2; ++s) {
    k.barrier_expect_bytes(full[s], bytes_of(a[s]), {.pred = bulk});
    k.async_load_bulk(x + s * row, a[s], full[s], {.pred = bulk});
    k.when(!bulk, [&] { k.local_store(a[s], load(x + s * row + lanes(k))); });
    k.barrier_wait(full[s], 0, {.pred = bulk});
    store(y + s * row + lanes(k), k.local_load(a[s]));
  }
}

// 25. A region of tasks in every pass of a loop: forks and joins order what no barrier does, and the barrier's phases run on.
constexpr void region_for_each(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(2, {.name = "a"});
  auto half = k.alloc_barriers(1, {.name = "half"});
  for (auto i : k.range(0, n)) {
    k.local_store(a[0], load(x + i * row + lanes(k)));
    k.async_tasks(k.task_default({.name = "first"},
                                 [&] {
                                   k.local_store(a[1], k.local_load(a[0]) * 2.f);
                                   k.barrier_arrive(half[0]);
                                 }),
                  k.task({.num_warps = 2, .name = "second"}, [&] {
                    k.barrier_wait(half[0], i & 1);
                    k.local_store(a[0], k.local_load(a[1]) + 1.f);
                  }));
    store(y + i * row + lanes(k), k.local_load(a[0]) - k.local_load(a[1]));
  }
}

/// KILN_SUSPICIOUS(X): X(name) for each.
#define KILN_SUSPICIOUS(X)                                                                                             \
  X(ring) X(primed) X(copied_before_expected) X(relay) X(waited_twice) X(two_producers) X(released_late) X(one_slot)    \
  X(turns) X(cp_ring) X(cp_producer) X(cp_arrives) X(store_ring) X(persistent) X(replicas) X(halves) X(fork_and_join)   \
  X(uneven_arrivals) X(in_place) X(peeled) X(aliased_epilogue) X(phased_staging) X(rewound_pool) X(by_condition)          \
  X(region_for_each)

} // namespace kiln_test::suspicious
