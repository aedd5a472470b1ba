// Kernels that use every form of what CTAs of a cluster do with each other: element types, layouts of tiles and of buffers, kinds of
// barriers, tasks. For clusters of any shape; each CTA reads 256 elements of x and writes 256 of y, by its linear index in the grid.
#pragma once
#include "run_time_recording.hpp"

namespace kiln_test::cluster_forms {

using namespace kiln;

constexpr int row = 256;
constexpr auto cta(context& k) { return (k.program_id(2) * k.num_programs(1) + k.program_id(1)) * k.num_programs(0) + k.program_id(0); }

/// Ordinary remote stores: columns, narrow types, a padded and a swizzled buffer, sums that no power of two divides.
constexpr void stores(context& k, ptr<f32 const> x, ptr<f32> y, val<i32> n) {
  int const ctas = k.cluster_size();
  auto turned = k.local_alloc<f16, 16, 16>(1, {.name = "turned"});
  auto bytes = k.local_alloc<i8, 48>(1, {.name = "bytes"});
  auto wide = k.local_alloc<i64, 64>(1, {.name = "wide"});
  auto odd = k.local_alloc<f32, 3, 20>(2, {.name = "odd"});
  k.cluster_barrier();
  auto r = k.cluster_cta_rank();
  auto to = (r + 1) % ctas;
  auto c = k.arange<row>();
  auto mine = load(x + cta(k) * row + c);
  k.remote_shmem_store(k.local_trans(turned[0]), cast<f16>(reshape<16, 16>(mine)), to);
  k.remote_shmem_store(bytes[0], cast<i8>(k.arange<48>() + r), to);
  k.remote_shmem_store(wide[0], cast<i64>(k.arange<64>()) * 1000 + cast<i64>(r), to);
  for (auto i : k.range(0, 2)) k.remote_shmem_store(odd[i], cast<f32>(k.iota<0, 3, 20>() * 20 + k.iota<1, 3, 20>() + i * 60 + r), to);
  k.cluster_barrier();
  auto sum = reduce<kiln::sum, 0>(cast<i32>(k.local_load(bytes[0]))) + cast<i32>(reduce<kiln::sum, 0>(k.local_load(wide[0])));
  auto rest = reduce<kiln::sum, 0>(reduce<kiln::sum, 0>(k.local_load(odd[0]) + k.local_load(odd[1]) * 2.f));
  store(y + cta(k) * row + c, reshape<row>(cast<f32>(k.local_load(turned[0]))) + cast<f32>(sum) + rest + cast<f32>(n));
}

/// Asynchronous ones and copies, of every size that the hardware moves, all counted on one barrier.
constexpr void sent(context& k, ptr<f32 const> x, ptr<f32> y, val<i32> n) {
  int const ctas = k.cluster_size();
  auto words = k.local_alloc<f32, row>(1, {.name = "words"});
  auto halves = k.local_alloc<f16, 128>(1, {.name = "halves"});
  auto bytes = k.local_alloc<i8, 4, 4>(1, {.name = "bytes"});
  auto wide = k.local_alloc<i64, 32>(1, {.name = "wide"});
  auto odd = k.local_alloc<f32, 3, 5>(1, {.name = "odd"});
  auto from = k.local_alloc<f32, 4, 16>(2, {.name = "from"});
  auto full = k.alloc_barriers(1, {.name = "full"}), free = k.alloc_barriers(1, {.name = "free"});
  k.fence_mbarrier_init_cluster();
  k.cluster_barrier();
  auto r = k.cluster_cta_rank();
  auto next = (r + 1) % ctas, last = (r + (ctas - 1)) % ctas;
  auto c = k.arange<row>();
  auto v = k.var(load(x + cta(k) * row + c));
  for (auto i : k.range(0, n)) {
    k.barrier_expect_bytes(full[0], 1024 + 256 + 16 + 256 + 60 + 256);
    k.barrier_wait(free[0], (i + 1) & 1);
    auto e = k.iota<0, 4, 16>() * 16 + k.iota<1, 4, 16>();
    k.local_store(from[0], cast<f32>(e * (r + 1) + i));
    k.fence(fence::async_shared);
    k.async_remote_shmem_store(words[0], v, next, full[0]);
    k.async_remote_shmem_store(halves[0], cast<f16>(k.arange<128>() + i), next, full[0]);
    k.async_remote_shmem_store(bytes[0], cast<i8>(k.iota<0, 4, 4>() * 4 + k.iota<1, 4, 4>() + r), next, full[0]);
    k.async_remote_shmem_store(wide[0], cast<i64>(k.arange<32>()) * 3 + cast<i64>(r), next, full[0]);
    k.async_remote_shmem_store(odd[0], cast<f32>(k.iota<0, 3, 5>() * 5 + k.iota<1, 3, 5>() + r), next, full[0]);
    k.async_remote_shmem_copy(from[1], from[0], next, full[0]);
    k.barrier_wait(full[0], i & 1);
    auto sum = reduce<kiln::sum, 0>(reduce<kiln::sum, 0>(cast<i32>(k.local_load(bytes[0])))) + cast<i32>(reduce<kiln::sum, 0>(k.local_load(wide[0])));
    auto rest = reduce<kiln::sum, 0>(cast<f32>(k.local_load(halves[0]))) + reduce<kiln::sum, 0>(reduce<kiln::sum, 0>(k.local_load(odd[0])));
    auto copied = reduce<kiln::sum, 0>(reduce<kiln::sum, 0>(k.local_load(from[1])));
    v = k.local_load(words[0]) + cast<f32>(sum) + rest + copied;
    k.barrier_arrive(free[0], {.remote = last}); // what came from there has been read, and so its source has, too
  }
  store(y + cta(k) * row + c, v);
  k.cluster_barrier();
}

/// Barriers at which every thread arrives, there by many and with counts; predicates; a barrier of the cluster in a loop and a branch.
constexpr void arrivals(context& k, ptr<f32 const> x, ptr<f32> y, val<i32> n) {
  int const ctas = k.cluster_size();
  auto a = k.local_alloc<f32, row>(2, {.name = "a"});
  auto threads = k.alloc_warp_barrier(1, {.num_warps = 4, .num_arrivals = ctas, .name = "threads"});
  auto many = k.alloc_barriers(1, {.arrive_count = 3, .name = "many"});
  k.fence_mbarrier_init_cluster();
  k.cluster_barrier();
  auto r = k.cluster_cta_rank();
  auto next = (r + 1) % ctas;
  auto c = k.arange<row>();
  auto v = k.var(load(x + cta(k) * row + c));
  for (auto i : k.range(0, n)) {
    k.remote_shmem_store(a[i % 2], v, next);
    for (int to : k.unrolled(ctas)) k.barrier_arrive(threads[0], {.remote = to});
    k.barrier_arrive(many[0], {.count = 2, .remote = next});
    k.barrier_arrive(many[0], {.remote = next, .pred = i >= 0});
    k.barrier_wait(threads[0], i & 1);
    k.barrier_wait(many[0], i & 1);
    v = k.local_load(a[i % 2]) + 1.f;
    k.when(n > 2, [&] { k.cluster_barrier(); }, [&] {
      k.cluster_barrier();
      v = v * 2.f;
    });
  }
  store(y + cta(k) * row + c, v);
  k.cluster_barrier();
}

/// Tasks in a loop, with barriers of the cluster between them: the warps of the tasks meet the others, too.
constexpr void tasks(context& k, ptr<f32 const> x, ptr<f32> y, val<i32> n) {
  int const ctas = k.cluster_size();
  auto a = k.local_alloc<f32, row>(1, {.name = "a"}), b = k.local_alloc<f32, row>(1, {.name = "b"});
  auto full = k.alloc_barriers(1, {.name = "full"});
  k.fence_mbarrier_init_cluster();
  k.cluster_barrier();
  auto r = k.cluster_cta_rank();
  auto next = (r + 1) % ctas;
  auto c = k.arange<row>();
  auto v = k.var(load(x + cta(k) * row + c));
  for (auto i : k.range(0, n)) {
    k.async_tasks(k.task_default({.name = "use"},
                                 [&] {
                                   k.barrier_wait(full[0], i & 1);
                                   v = v + k.local_load(a[0]);
                                 }),
                  k.task({.num_warps = 2, .name = "send"}, [&] {
                    k.remote_shmem_store(a[0], load(x + cta(k) * row + c) + cast<f32>(i), next);
                    k.barrier_arrive(full[0], {.remote = next});
                  }));
    k.remote_shmem_store(b[0], v, next);
    k.cluster_barrier();
    v = v + k.local_load(b[0]);
    k.cluster_barrier();
  }
  store(y + cta(k) * row + c, v);
}

#define KILN_CLUSTER_FORMS(X) X(stores) X(sent) X(arrivals) X(tasks)

} // namespace kiln_test::cluster_forms
