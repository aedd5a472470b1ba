// Kernels that use every barrier, fence and bulk copy, alone and in tasks, and what tasks take over from the program around
// them. All have the parameters of suspicious_kernels.hpp: x has at least 16384 elements, y 4096; n is 2 to 9.
#pragma once
#include "suspicious_kernels.hpp"

#include <kiln/dsl/pipeline.hpp>

#include <array>

namespace kiln_test::meeting {

using namespace kiln;
using suspicious::count;
using suspicious::lanes;
using suspicious::row;
using suspicious::source;
using suspicious::target;

// One agent keeps two bulk copies in flight.
constexpr void bulk_alone(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(3, {.name = "a"});
  auto full = k.alloc_barriers(3, {.name = "full"});
  auto fetch = [&](auto i) {
    k.when(i < n, [&] {
      k.barrier_expect_bytes(full[i % 3], bytes_of(a[i % 3]));
      k.async_load_bulk(x + i * row, a[i % 3], full[i % 3]);
    });
  };
  for (int i = 0; i < 2; ++i) fetch(k.let(i));
  for (auto i : k.range(0, n)) {
    auto [s, phase] = k.buf_phase(i, 3);
    k.barrier_wait(full[s], phase);
    store(y + i * row + lanes(k), k.local_load(a[s]) + 1.f);
    fetch(i + 2);
  }
}

// Results leave by bulk stores, two at a time, with the hint that they are not read again.
constexpr void bulk_out(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(2, {.name = "a"});
  for (auto i : k.range(0, n)) {
    k.async_store_wait(1);
    k.local_store(a[i % 2], load(x + i * row + lanes(k)) * 2.f);
    k.fence(fence::async_shared);
    k.async_store_bulk(y + i * row, a[i % 2]);
  }
  k.async_store_wait(0, {.read_only = false});
}

// Copies by threads that arrive by themselves, some of whose elements are masked off.
constexpr void loads_arrive(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, 256>(2, {.name = "a"});
  auto full = k.alloc_barriers(2, {.arrive_count = 128, .name = "full"});
  auto c = k.arange<256>();
  for (auto i : k.range(0, n)) {
    auto [s, phase] = k.buf_phase(i, 2);
    k.async_load(x + i * 256 + c, a[s], {.mask = c < 200 + i, .other = -1});
    k.async_load_arrive(full[s]);
    k.barrier_wait(full[s], phase);
    store(y + i * 256 + c, k.local_load(a[s]));
  }
}

// Arrivals of every kind in one agent.
constexpr void arrivals_alone(context& k, source x, target y, count n) {
  auto twice = k.alloc_barriers(1, {.arrive_count = 3, .name = "twice"});
  auto threads = k.alloc_warp_barrier(1, {.num_warps = 4, .num_arrivals = 2, .name = "threads"});
  auto c = k.arange<row>();
  for (auto i : k.range(0, n)) {
    k.barrier_arrive(twice[0], {.count = 2});
    k.barrier_arrive(twice[0], {.pred = i >= 0});
    k.barrier_wait(twice[0], i & 1);
    k.barrier_arrive(threads[0], {.count = 2});
    k.barrier_wait(threads[0], i & 1, {.pred = i < n});
    k.named_barrier_wait(3, 128);
    k.agent_sync();
    store(y + i * row + c, load(x + i * row + c));
  }
}

// Fences between a store and a load of the same elements by other threads.
constexpr void fences(context& k, source x, target y, count n) {
  auto c = k.arange<512>();
  store(y + c, load(x + c));
  k.fence(fence::gpu);
  k.sync();
  auto back = load(y + 511 - c);
  k.fence(fence::sys);
  k.sync();
  store(y + 512 + c, back + cast<f32>(n));
}

// What tasks take over: computed scalars, loaded ones, a reduction, the content of a var, pointers and simple tiles.
constexpr void taken_over(context& k, source x, target y, count n) {
  auto c = k.arange<row>();
  auto scale = load(x + 5);
  auto total = reduce<sum>(load(x + c));
  auto turns = k.var(k.let(1));
  for (auto i : k.range(0, n)) turns += i;
  auto from = x + n * row;
  auto where = from + c * 2;
  auto even = c % 2 == 0;
  k.async_tasks(k.task_default({.name = "first"}, [&] { store(y + c, load(where) * scale + total); }),
                k.task({.num_warps = 2, .name = "second"}, [&] { store(y + row + c, load(where, {.mask = even, .other = 0}) + total + cast<f32>(turns)); }),
                k.task({.num_warps = 1, .replicate = 3, .name = "third"}, [&] {
                  auto r = k.replica_id();
                  store(y + (r + 2) * row + c, load(from + r * row + c) * scale + cast<f32>(turns + r));
                }));
  store(y + 5 * row + c, load(x + c) + total);
}

// Every task moves values between its threads, with local memory of its own for that.
constexpr void scratch_in_tasks(context& k, source x, target y, count n) {
  auto work = [&](auto r) {
    auto tiles = k.var(k.zeros<f32, 16, 16>());
    auto columns = k.var(k.zeros<f32, 16>());
    for (auto i : k.range(0, n)) {
      auto v = load(x + (r + i) * 256 + k.iota<0, 16, 16>() * 16 + k.iota<1, 16, 16>());
      tiles = trans(v) + reduce<max>(v) - tiles;
      columns = reduce<sum, 0>(v) + cast<f32>(i) - columns;
    }
    store(y + r * 512 + k.iota<0, 16, 16>() * 16 + k.iota<1, 16, 16>(), tiles);
    store(y + r * 512 + 256 + k.arange<16>(), columns);
  };
  k.async_tasks(k.task_default({.name = "a"}, [&] { work(k.let(0)); }), k.task({.num_warps = 4, .replicate = 2, .name = "b"}, [&] { work(k.replica_id() + 1); }),
                k.task({.num_warps = 1, .name = "c"}, [&] { work(k.let(3)); }));
}

// Two regions of tasks, with the kernel's own work before, between and after.
constexpr void two_regions(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(2, {.name = "a"});
  auto c = k.arange<row>();
  k.local_store(a[0], load(x + c));
  k.async_tasks(k.task_default({.name = "one"}, [&] { store(y + c, k.local_load(a[0]) * 2.f); }),
                k.task({.num_warps = 2, .name = "two"}, [&] { k.local_store(a[1], load(x + row + c)); }));
  k.local_store(a[0], k.local_load(a[0]) + k.local_load(a[1]));
  k.async_tasks(k.task_default({.name = "three"}, [&] { store(y + row + c, k.local_load(a[1])); }),
                k.task({.num_warps = 4, .name = "four"}, [&] { store(y + 2 * row + c, k.local_load(a[0]) + cast<f32>(n)); }),
                k.task({.num_warps = 1, .name = "five"}, [&] { store(y + 3 * row + c, k.local_load(a[0])); }));
  store(y + 4 * row + c, k.local_load(a[0]));
}

// The default task, too, may have replicas.
constexpr void replicated_default(context& k, source x, target y, count n) {
  auto c = k.arange<row>();
  k.async_tasks(k.task_default({.replicate = 2, .name = "both"},
                               [&] {
                                 for (auto i : k.range(k.replica_id(), n, 2)) store(y + i * row + c, load(x + i * row + c) + cast<f32>(k.replica_id()));
                               }),
                k.task({.num_warps = 2, .name = "beside"}, [&] { store(y + 9 * row + c, load(x + c)); }));
}

// Two tiles of a product on the matrix unit, by two consumers that share the right operand.
constexpr void products(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f16, 32, 32>(2, {.name = "a"});
  auto b = k.local_alloc<f16, 32, 32>(2, {.name = "b"});
  auto full = k.alloc_barriers(2, {.name = "full"}), empty = k.alloc_barriers(2, {.arrive_count = 2, .name = "empty"});
  auto at = k.iota<0, 32, 32>() * 32 + k.iota<1, 32, 32>();
  k.async_tasks(k.task_default({.name = "load"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 2);
                                   k.barrier_wait(empty[s], phase ^ 1);
                                   k.local_store(a[s], cast<f16>(load(x + i * 1024 + at)));
                                   k.local_store(b[s], cast<f16>(load(x + i * 512 + at)));
                                   k.barrier_arrive(full[s]);
                                 }
                               }),
                k.task({.num_warps = 4, .replicate = 2, .name = "multiply"}, [&] {
                  auto half = k.replica_id() * 16;
                  auto acc = k.var(k.zeros<f32, 16, 32>());
                  for (auto i : k.range(0, n)) {
                    auto [s, phase] = k.buf_phase(i, 2);
                    k.barrier_wait(full[s], phase);
                    acc = k.dot(k.local_load(k.local_slice<16, 32>(a[s], {half, 0})), k.local_load(b[s]), acc);
                    k.barrier_arrive(empty[s]);
                  }
                  store(y + half * 32 + k.iota<0, 16, 32>() * 32 + k.iota<1, 16, 32>(), acc);
                }));
}

// A producer that gives registers to two consumers, and one warp beside them.
constexpr void budgets(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, 256>(2, {.name = "a"});
  auto full = k.alloc_barriers(2, {.name = "full"}), empty = k.alloc_barriers(2, {.arrive_count = 3, .name = "empty"});
  auto c = k.arange<256>();
  auto use = [&](auto r) {
    auto total = k.var(k.zeros<f32, 256>());
    for (auto i : k.range(0, n)) {
      auto [s, phase] = k.buf_phase(i, 2);
      k.barrier_wait(full[s], phase);
      total = total + k.local_load(a[s]) * cast<f32>(r + 1);
      k.barrier_arrive(empty[s]);
    }
    store(y + r * 256 + c, total);
  };
  k.async_tasks(k.task_default({.num_regs = 40, .name = "load"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 2);
                                   k.barrier_wait(empty[s], phase ^ 1);
                                   k.local_store(a[s], load(x + i * 256 + c));
                                   k.barrier_arrive(full[s]);
                                 }
                               }),
                k.task({.num_warps = 4, .num_regs = 184, .replicate = 2, .name = "use"}, [&] { use(k.replica_id()); }),
                k.task({.num_warps = 1, .num_regs = 56, .name = "beside"}, [&] { use(k.let(2)); }));
}

/// Stages of a ring and their pipeline, as a phase allocator takes them.
struct staged_ring {
  smem_allocation<f32, 3, row> data;
  pipeline_config p;
  pipeline_group* g = nullptr;
  constexpr std::array<allocation_ref, 1> smem_requirements() { return {{&data}}; }
  constexpr pipeline_config& pipeline() { return p; }
  constexpr pipeline_group* group() { return g; }
};

// A pipeline of bulk copies, and two whose producers arrive thread by thread and whose consumer waits for both.
constexpr void pipelines(context& k, source x, target y, count n) {
  pipeline_group both{.name = "both"};
  staged_ring copies{.data = {.name = "copies"}, .p = {.kind = pipe::tma_async, .num_stages = 3, .num_bytes = row * 4}};
  staged_ring low{.data = {.name = "low"}, .p = {.num_stages = 3, .producer_threads = 64}, .g = &both};
  staged_ring high{.data = {.name = "high"}, .p = {.num_stages = 3, .producer_threads = 64}, .g = &both};
  both.add(low.p, "low"), both.add(high.p, "high");
  smem_allocator al(k);
  al.add_resource(copies), al.add_resource(low), al.add_resource(high);
  al.add_pipeline_group(both);
  al.compute_layout();
  al.allocate(k);
  al.assign_barrier_ptrs();
  auto fill = [&](staged_ring& r, int from) {
    return [&k, &al, &r, x, n, from] {
      pipeline_producer out(k, r);
      for (auto i : k.range(0, n)) {
        auto s = out.acquire();
        k.local_store(al.get(k, r.data)[s], load(x + i * row + from + lanes(k)));
        out.commit();
      }
    };
  };
  k.async_tasks(k.task_default({.name = "use"},
                               [&] {
                                 pipeline_consumer in(k, copies), pair(k, both);
                                 for (auto i : k.range(0, n)) {
                                   auto s = in.wait();
                                   auto t = k.local_load(al.get(k, copies.data)[s]);
                                   in.release();
                                   auto q = pair.wait();
                                   store(y + i * row + lanes(k), t + k.local_load(al.get(k, low.data)[q]) - k.local_load(al.get(k, high.data)[q]));
                                   pair.release();
                                 }
                               }),
                k.task({.num_warps = 1, .name = "copy"},
                       [&] {
                         pipeline_producer out(k, copies);
                         for (auto i : k.range(0, n)) {
                           auto s = out.acquire();
                           k.async_load_bulk(x + i * row, al.get(k, copies.data)[s], out.full());
                           out.commit();
                         }
                       }),
                k.task({.num_warps = 2, .name = "low"}, fill(low, 1)), k.task({.num_warps = 2, .name = "high"}, fill(high, 2)));
}

// A region of tasks in every pass of a loop, with tiles that other warps hold, and barriers whose phases run on.
constexpr void tasks_in_a_loop(context& k, source x, target y, count n) {
  auto a = k.local_alloc<f32, row>(2, {.name = "a"});
  auto ready = k.alloc_barriers(1, {.name = "ready"});
  auto c = lanes(k);
  auto total = k.var(k.zeros<f32, row>());
  for (auto i : k.range(0, n)) {
    auto tile = load(x + i * row + c);
    auto most = reduce<max>(tile);
    total = total + tile;
    k.async_tasks(k.task_default({.name = "left"},
                                 [&] {
                                   k.local_store(a[0], tile * 2.f + k.let(total));
                                   k.barrier_arrive(ready[0]);
                                 }),
                  k.task({.num_warps = 2, .name = "right"}, [&] {
                    k.barrier_wait(ready[0], i & 1);
                    k.local_store(a[1], tile + k.local_load(a[0]) + most + cast<f32>(i));
                  }),
                  k.task({.num_warps = 1, .replicate = 2, .name = "beside"}, [&] {
                    k.barrier_wait(ready[0], i & 1);
                    store(y + (i * 3 + k.replica_id()) * row + c, k.let(total) - tile + k.local_load(a[0]));
                  }));
    total = total + k.local_load(a[0]) - k.local_load(a[1]);
    store(y + (i * 3 + 2) * row + c, total);
  }
}

// One of two regions runs, by a condition; what its tasks take over has changed since an earlier region.
constexpr void tasks_in_a_branch(context& k, source x, target y, count n) {
  auto c = lanes(k);
  auto turns = k.var(k.let(1));
  auto kept = k.var(load(x + c));
  k.async_tasks(k.task_default({.name = "one"}, [&] { store(y + c, kept + cast<f32>(turns)); }),
                k.task({.num_warps = 2, .name = "two"}, [&] { store(y + row + c, k.let(kept) * cast<f32>(turns)); }));
  turns += n;
  kept = kept + load(x + row + c);
  k.when(n % 2 == 1,
         [&] {
           auto here = load(x + n * row + c);
           k.async_tasks(k.task_default({.name = "odd"}, [&] { store(y + 2 * row + c, here + cast<f32>(turns)); }),
                         k.task({.num_warps = 4, .name = "odd_too"}, [&] { store(y + 3 * row + c, here * 2.f + k.let(kept) - cast<f32>(turns)); }));
         },
         [&] {
           k.async_tasks(k.task_default({.name = "even"}, [&] { store(y + 2 * row + c, kept); }),
                         k.task({.num_warps = 1, .name = "even_too"}, [&] { store(y + 3 * row + c, k.let(kept) + cast<f32>(turns * 2)); }));
         });
  store(y + 4 * row + c, kept);
}

/// KILN_MEETING(X): X(name) for each.
#define KILN_MEETING(X)                                                                                                \
  X(bulk_alone) X(bulk_out) X(loads_arrive) X(arrivals_alone) X(fences) X(taken_over) X(scratch_in_tasks) X(two_regions) \
  X(replicated_default) X(products) X(budgets) X(pipelines) X(tasks_in_a_loop) X(tasks_in_a_branch)

} // namespace kiln_test::meeting
