// Numbers and types outside of what an operation takes.
#include <kiln/kernel.hpp>

#include <array>
using namespace kiln;

// case: fragment_without_extents
// expect-error: kiln[T-02] a fragment has extents; alloc_var is one element
#if defined(TWIN) || defined(CASE_fragment_without_extents)
inline constexpr auto fragment_without_extents = kernel<"fragment_without_extents">([](context& k, ptr<f32> p) {
#ifdef TWIN
  auto x = k.alloc_fragment<f32, 64>();
  x = k.zeros<f32, 64>();
  store(p + k.arange<64>(), x);
#else
  auto x = k.alloc_fragment<f32>(); // expect-line
#endif
});
void use_fragment_without_extents() { fragment_without_extents.check(); }
#endif

// case: workspace_of_nothing
// expect-error: kiln[T-02] alloc_global takes extents of at least 1
#if defined(TWIN) || defined(CASE_workspace_of_nothing)
inline constexpr auto workspace_of_nothing = kernel<"workspace_of_nothing">([](context& k, ptr<f32> p) {
#ifdef TWIN
  auto w = k.alloc_global<f32, 64>();
  store(w, 1.f);
#else
  auto w = k.alloc_global<f32, 0>(); // expect-line
#endif
  store(p, 1.f);
});
void use_workspace_of_nothing() { workspace_of_nothing.check(); }
#endif

// case: warp_barrier_of_no_warps
// expect-error: kiln[R-CP10] alloc_warp_barrier: 0 warps and 1 arrivals; valid are 1..32 and 1..1024
#if defined(TWIN) || defined(CASE_warp_barrier_of_no_warps)
inline constexpr auto warp_barrier_of_no_warps = kernel<"warp_barrier_of_no_warps">([](context& k, ptr<f32> p) {
#ifdef TWIN
  k.alloc_warp_barrier(1, {.num_warps = 4});
#else
  k.alloc_warp_barrier(1, {.num_warps = 0}); // expect-line
#endif
  store(p, 1.f);
});
void use_warp_barrier_of_no_warps() { warp_barrier_of_no_warps.check(); }
#endif

// case: no_barriers
// expect-error: kiln[R-CP10] alloc_barriers: 0 barriers; at least 1 is needed
#if defined(TWIN) || defined(CASE_no_barriers)
inline constexpr auto no_barriers = kernel<"no_barriers">([](context& k, ptr<f32> p) {
#ifdef TWIN
  k.alloc_barriers(1);
#else
  k.alloc_barriers(0); // expect-line
#endif
  store(p, 1.f);
});
void use_no_barriers() { no_barriers.check(); }
#endif

// case: too_many_arrivals
// expect-error: kiln[R-CP10] alloc_barriers: arrive_count 1048576, valid 1..1048575
#if defined(TWIN) || defined(CASE_too_many_arrivals)
inline constexpr auto too_many_arrivals = kernel<"too_many_arrivals">([](context& k, ptr<f32> p) {
#ifdef TWIN
  k.alloc_barriers(1, {.arrive_count = 1048575});
#else
  k.alloc_barriers(1, {.arrive_count = 1 << 20}); // expect-line
#endif
  store(p, 1.f);
});
void use_too_many_arrivals() { too_many_arrivals.check(); }
#endif

// case: arrival_of_none
// expect-error: kiln[R-CP10] b: barrier_arrive with .count = 0; at least 1 is needed
#if defined(TWIN) || defined(CASE_arrival_of_none)
inline constexpr auto arrival_of_none = kernel<"arrival_of_none">([](context& k, ptr<f32> p) {
  auto b = k.alloc_barriers(1, {.name = "b"});
#ifdef TWIN
  k.barrier_arrive(b[0], {.count = 1});
#else
  k.barrier_arrive(b[0], {.count = 0}); // expect-line
#endif
  k.barrier_wait(b[0], 0);
  store(p, 1.f);
});
void use_arrival_of_none() { arrival_of_none.check(); }
#endif

// case: too_many_bytes
// expect-error: kiln[R-CP10] b: barrier_expect_bytes of 1048576 B, valid 0..1048575
#if defined(TWIN) || defined(CASE_too_many_bytes)
inline constexpr auto too_many_bytes = kernel<"too_many_bytes">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto b = k.alloc_barriers(1, {.name = "b"});
#ifdef TWIN
  k.barrier_expect_bytes(b[0], 256);
#else
  k.barrier_expect_bytes(b[0], 1 << 20); // expect-line
#endif
  k.async_load_bulk(p + 64, a[0], b[0]);
  k.barrier_wait(b[0], 0);
  store(p + k.arange<64>(), k.local_load(a[0]));
});
void use_too_many_bytes() { too_many_bytes.check(); }
#endif

// case: parity_of_a_tile
// expect-error: kiln[T-07] the parity of barrier_wait must be an integer scalar
#if defined(TWIN) || defined(CASE_parity_of_a_tile)
inline constexpr auto parity_of_a_tile = kernel<"parity_of_a_tile">([](context& k, ptr<f32> p, val<i32> n) {
  auto b = k.alloc_barriers(1, {.name = "b"});
  k.barrier_arrive(b[0]);
#ifdef TWIN
  k.barrier_wait(b[0], n & 0);
#else
  k.barrier_wait(b[0], k.arange<64>()); // expect-line
#endif
  store(p + n, 1.f);
});
void use_parity_of_a_tile() { parity_of_a_tile.check(); }
#endif

// case: copy_of_another_type
// expect-error: kiln[T-04] async_load_bulk: source and view have different element types
#if defined(TWIN) || defined(CASE_copy_of_another_type)
inline constexpr auto copy_of_another_type = kernel<"copy_of_another_type">([](context& k, ptr<f32> p, ptr<const i32> x) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto b = k.alloc_barriers(1, {.name = "b"});
  k.barrier_expect_bytes(b[0], bytes_of(a[0]));
#ifdef TWIN
  k.async_load_bulk(p + 64, a[0], b[0]);
  (void)x;
#else
  k.async_load_bulk(x, a[0], b[0]); // expect-line
#endif
  k.barrier_wait(b[0], 0);
  store(p + k.arange<64>(), k.local_load(a[0]));
});
void use_copy_of_another_type() { copy_of_another_type.check(); }
#endif

// case: copy_from_many
// expect-error: kiln[T-05] async_load_bulk takes one pointer: the first element of a contiguous row
#if defined(TWIN) || defined(CASE_copy_from_many)
inline constexpr auto copy_from_many = kernel<"copy_from_many">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto b = k.alloc_barriers(1, {.name = "b"});
  k.barrier_expect_bytes(b[0], bytes_of(a[0]));
#ifdef TWIN
  k.async_load_bulk(p + 64, a[0], b[0]);
#else
  k.async_load_bulk(p + 64 + k.arange<64>(), a[0], b[0]); // expect-line
#endif
  k.barrier_wait(b[0], 0);
  store(p + k.arange<64>(), k.local_load(a[0]));
});
void use_copy_from_many() { copy_from_many.check(); }
#endif

// case: store_through_const
// expect-error: kiln[T-14] async_store_bulk through a pointer to const; declare the parameter ptr<T>
#if defined(TWIN) || defined(CASE_store_through_const)
inline constexpr auto store_through_const = kernel<"store_through_const">([](context& k, ptr<f32> p, ptr<const f32> q) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64>());
  k.fence(fence::async_shared);
#ifdef TWIN
  k.async_store_bulk(p, a[0]);
  (void)q;
#else
  k.async_store_bulk(q, a[0]); // expect-line
  (void)p;
#endif
  k.async_store_wait(0);
});
void use_store_through_const() { store_through_const.check(); }
#endif

// case: store_of_another_type
// expect-error: kiln[T-04] async_store_bulk: destination and view have different element types
#if defined(TWIN) || defined(CASE_store_of_another_type)
inline constexpr auto store_of_another_type = kernel<"store_of_another_type">([](context& k, ptr<f32> p, ptr<i32> q) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64>());
  k.fence(fence::async_shared);
#ifdef TWIN
  k.async_store_bulk(p, a[0]);
  (void)q;
#else
  k.async_store_bulk(q, a[0]); // expect-line
  (void)p;
#endif
  k.async_store_wait(0);
});
void use_store_of_another_type() { store_of_another_type.check(); }
#endif

// case: store_to_many
// expect-error: kiln[T-05] async_store_bulk takes one pointer: the first element of a contiguous row
#if defined(TWIN) || defined(CASE_store_to_many)
inline constexpr auto store_to_many = kernel<"store_to_many">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64>());
  k.fence(fence::async_shared);
#ifdef TWIN
  k.async_store_bulk(p, a[0]);
#else
  k.async_store_bulk(p + k.arange<64>(), a[0]); // expect-line
#endif
  k.async_store_wait(0);
});
void use_store_to_many() { store_to_many.check(); }
#endif

// case: store_of_odd_bytes
// expect-error: kiln[R-BD06] async_store_bulk from odd: 12 B; it moves a multiple of 16
#if defined(TWIN) || defined(CASE_store_of_odd_bytes)
inline constexpr auto store_of_odd_bytes = kernel<"store_of_odd_bytes">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto odd = k.local_alloc<f32, 3>(1, {.name = "odd"});
  k.local_store(a[0], k.zeros<f32, 64>());
  k.fence(fence::async_shared);
#ifdef TWIN
  k.async_store_bulk(p, a[0]);
  (void)odd;
#else
  k.async_store_bulk(p, odd[0]); // expect-line
#endif
  k.async_store_wait(0);
});
void use_store_of_odd_bytes() { store_of_odd_bytes.check(); }
#endif

// case: fewer_than_no_stores
// expect-error: kiln[T-15] async_store_wait(-1): the number of stores that may be pending is 0 or more
#if defined(TWIN) || defined(CASE_fewer_than_no_stores)
inline constexpr auto fewer_than_no_stores = kernel<"fewer_than_no_stores">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64>());
  k.fence(fence::async_shared);
  k.async_store_bulk(p, a[0]);
#ifdef TWIN
  k.async_store_wait(0);
#else
  k.async_store_wait(-1); // expect-line
#endif
});
void use_fewer_than_no_stores() { fewer_than_no_stores.check(); }
#endif

// case: ring_of_a_tile
// expect-error: kiln[T-07] buf_phase needs an integer scalar
#if defined(TWIN) || defined(CASE_ring_of_a_tile)
inline constexpr auto ring_of_a_tile = kernel<"ring_of_a_tile">([](context& k, ptr<f32> p, val<i32> n) {
#ifdef TWIN
  auto [s, phase] = k.buf_phase(n, 4);
  store(p + s, cast<f32>(phase));
#else
  auto [s, phase] = k.buf_phase(k.arange<64>(), 4); // expect-line
#endif
});
void use_ring_of_a_tile() { ring_of_a_tile.check(); }
#endif

// case: ring_of_none
// expect-error: kiln[T-15] buf_phase of a ring of 0; at least 1 is needed
#if defined(TWIN) || defined(CASE_ring_of_none)
inline constexpr auto ring_of_none = kernel<"ring_of_none">([](context& k, ptr<f32> p, val<i32> n) {
#ifdef TWIN
  auto [s, phase] = k.buf_phase(n, 4);
#else
  auto [s, phase] = k.buf_phase(n, 0); // expect-line
#endif
  store(p + s, cast<f32>(phase));
});
void use_ring_of_none() { ring_of_none.check(); }
#endif

// case: subslice_of_nothing
// expect-error: kiln[R-BD02] subslice needs a size of at least 1
#if defined(TWIN) || defined(CASE_subslice_of_nothing)
inline constexpr auto subslice_of_nothing = kernel<"subslice_of_nothing">([](context& k, ptr<f32> p) {
  auto t = k.local_alloc<f32, 128, 64>(1, {.storage = storage::tmem, .name = "t"});
#ifdef TWIN
  k.local_store(k.subslice<32>(t[0], 0), k.zeros<f32, 128, 32>());
#else
  k.local_store(k.subslice<0>(t[0], 0), k.zeros<f32, 128, 32>()); // expect-line
#endif
  store(p, 1.f);
});
void use_subslice_of_nothing() { subslice_of_nothing.check(); }
#endif

// case: subslice_too_wide
// expect-error: kiln[R-BD02] subslice of t: 128 columns of 64
#if defined(TWIN) || defined(CASE_subslice_too_wide)
inline constexpr auto subslice_too_wide = kernel<"subslice_too_wide">([](context& k, ptr<f32> p) {
  auto t = k.local_alloc<f32, 128, 64>(1, {.storage = storage::tmem, .name = "t"});
#ifdef TWIN
  k.local_store(k.subslice<32>(t[0], 0), k.zeros<f32, 128, 32>());
#else
  k.local_store(k.subslice<128>(t[0], 0), k.zeros<f32, 128, 128>()); // expect-line
#endif
  store(p, 1.f);
});
void use_subslice_too_wide() { subslice_too_wide.check(); }
#endif

// case: not_an_element
// expect-error: kiln[T-01] a pointer needs an element type: bool, i8..i64, u8..u64, f16, bf16, f32, f64, f8e4m3 or f8e5m2
#if defined(TWIN) || defined(CASE_not_an_element)
inline constexpr auto not_an_element = kernel<"not_an_element">([](context& k, ptr<f32> p) {
#ifdef TWIN
  static_assert(ptr<f32>::rank == 0);
#else
  static_assert(ptr<char*>::rank == 0); // expect-line
#endif
  store(p, k.let(1.f));
});
void use_not_an_element() { not_an_element.check(); }
#endif

// case: array_without_axes
// expect-error: kiln[T-02] an array has 1 to 6 axes
#if defined(TWIN) || defined(CASE_array_without_axes)
inline constexpr auto array_without_axes = kernel<"array_without_axes">([](context& k, ptr<f32> p) {
#ifdef TWIN
  static_assert(array<f32, 6>::rank == 6);
#else
  static_assert(array<f32, 7>::rank == 7); // expect-line
#endif
  store(p, k.let(1.f));
});
void use_array_without_axes() { array_without_axes.check(); }
#endif

// case: extent_of_none
// expect-error: kiln[T-02] extents of a tile are at least 1
#if defined(TWIN) || defined(CASE_extent_of_none)
inline constexpr auto extent_of_none = kernel<"extent_of_none">([](context& k, ptr<f32> p) {
#ifdef TWIN
  static_assert(tile<f32, 1>::rank == 1);
#else
  static_assert(tile<f32, 0>::rank == 1); // expect-line
#endif
  store(p, k.let(1.f));
});
void use_extent_of_none() { extent_of_none.check(); }
#endif

// case: declared_with_a_wide_layout
// expect-error: kiln[R-BD07] a view of 2108 B, with its layout, at byte 0 exceeds its storage a, which ends at byte 2048
#if defined(TWIN) || defined(CASE_declared_with_a_wide_layout)
inline constexpr auto declared_with_a_wide_layout = kernel<"declared_with_a_wide_layout">([](context& k, ptr<f32> p) {
  auto a = k.alloc_shared<u8, 2048>({.name = "a"});
#ifdef TWIN
  auto w = k.decl_buffer<f32, 16, 32>({.data = a, .layout = layout::row_major});
#else
  auto w = k.decl_buffer<f32, 16, 32>({.data = a, .layout = layout::padded<32>({1})}); // expect-line
#endif
  k.local_store(w, k.zeros<f32, 16, 32>());
  store(p, reduce<sum>(k.local_load(w)));
});
void use_declared_with_a_wide_layout() { declared_with_a_wide_layout.check(); }
#endif

// case: too_many_parameters
// expect-error: kiln[K-13] 65 parameters; a kernel has room for 64: pass a ptr to a table of the rest
#if defined(TWIN) || defined(CASE_too_many_parameters)
#define EIGHT val<i32>, val<i32>, val<i32>, val<i32>, val<i32>, val<i32>, val<i32>, val<i32>
#ifdef TWIN
inline constexpr auto too_many_parameters = kernel<"too_many_parameters">([](context&, ptr<f32> p, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, val<i32>, val<i32>, val<i32>, val<i32>, val<i32>, val<i32>, val<i32>) {
#else
inline constexpr auto too_many_parameters = kernel<"too_many_parameters">([](context&, ptr<f32> p, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT) {
#endif
  store(p, 1.f);
});
void use_too_many_parameters() { too_many_parameters.check(); } // expect-line
#endif

// case: no_suspension
// expect-error: kiln[T-15] .try_wait_suspend_ns = -2; 0 or more
#if defined(TWIN) || defined(CASE_no_suspension)
inline constexpr auto no_suspension = kernel<"no_suspension">([](context& k, ptr<f32> p) {
  auto body = [&] { store(p + k.replica_id(), 1.f); };
#ifdef TWIN
  k.async_tasks({.try_wait_suspend_ns = 100}, k.task_default({}, body));
#else
  k.async_tasks({.try_wait_suspend_ns = -2}, k.task_default({}, body)); // expect-line
#endif
});
void use_no_suspension() { no_suspension.check(); }
#endif

// Allocators: each case is a kernel that takes one array of 64 numbers from its allocator.
struct ring_of_stages { // a resource as users write them
  smem_allocation<f32, 64> data{.name = "data"};
  pipeline_config p;
  pipeline_group* g = nullptr;
  constexpr std::array<allocation_ref, 1> smem_requirements() { return {{&data}}; }
  constexpr pipeline_config& pipeline() { return p; }
  constexpr pipeline_group* group() { return g; }
};
constexpr void use(context& k, smem_allocator& al, smem_allocation<f32, 64>& a, ptr<f32> p) {
  k.local_store(al.get(k, a), k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(al.get(k, a)));
}

// case: grouped_late
// expect-error: kiln[R-PA03] add_alias_group after compute_layout
#if defined(TWIN) || defined(CASE_grouped_late)
inline constexpr auto grouped_late = kernel<"grouped_late">([](context& k, ptr<f32> p) {
  smem_allocation<f32, 64> a{.name = "a"}, b{.name = "b"};
  smem_allocator al(k);
  al.add(a), al.add(b);
#ifdef TWIN
  al.add_alias_group({{&a}, {&b}});
  al.compute_layout();
#else
  al.compute_layout();
  al.add_alias_group({{&a}, {&b}}); // expect-line
#endif
  al.allocate(k);
  use(k, al, a, p);
});
void use_grouped_late() { grouped_late.check(); }
#endif

// case: no_phases
// expect-error: kiln[R-PA11] alias group 0 has no phases
#if defined(TWIN) || defined(CASE_no_phases)
inline constexpr auto no_phases = kernel<"no_phases">([](context& k, ptr<f32> p) {
  smem_allocation<f32, 64> a{.name = "a"}, b{.name = "b"};
  smem_allocator al(k);
  al.add(a), al.add(b);
#ifdef TWIN
  al.add_alias_group({{&a}, {&b}});
#else
  al.add_alias_group({}); // expect-line
#endif
  al.compute_layout();
  al.allocate(k);
  use(k, al, a, p);
});
void use_no_phases() { no_phases.check(); }
#endif

// case: empty_phase
// expect-error: kiln[R-PA11] phase 1 of alias group 0 is empty
#if defined(TWIN) || defined(CASE_empty_phase)
inline constexpr auto empty_phase = kernel<"empty_phase">([](context& k, ptr<f32> p) {
  smem_allocation<f32, 64> a{.name = "a"}, b{.name = "b"};
  smem_allocator al(k);
  al.add(a), al.add(b);
#ifdef TWIN
  al.add_alias_group({{&a}, {&b}});
#else
  al.add_alias_group({{&a}, {}}); // expect-line
#endif
  al.compute_layout();
  al.allocate(k);
  use(k, al, a, p);
});
void use_empty_phase() { empty_phase.check(); }
#endif

// case: no_stages
// expect-error: kiln[R-PA08] a pipeline of 0 stages; at least 1 is needed
#if defined(TWIN) || defined(CASE_no_stages)
inline constexpr auto no_stages = kernel<"no_stages">([](context& k, ptr<f32> p) {
  ring_of_stages ring;
  smem_allocator al(k);
#ifdef TWIN
  ring.p.num_stages = 2;
  al.add_resource(ring);
#else
  ring.p.num_stages = 0;
  al.add_resource(ring); // expect-line
#endif
  al.compute_layout();
  al.allocate(k);
  use(k, al, ring.data, p);
});
void use_no_stages() { no_stages.check(); }
#endif

// case: unknown_group
// expect-error: kiln[R-PA09] a resource belongs to pipeline group pair, which is not registered; its barriers have no storage; add_pipeline_group(pair
#if defined(TWIN) || defined(CASE_unknown_group)
inline constexpr auto unknown_group = kernel<"unknown_group">([](context& k, ptr<f32> p) {
  pipeline_group pair{.name = "pair"};
  ring_of_stages ring;
  pair.add(ring.p, "ring");
  ring.g = &pair;
  smem_allocator al(k);
  al.add_resource(ring);
#ifdef TWIN
  al.add_pipeline_group(pair);
  al.compute_layout();
#else
  al.compute_layout(); // expect-line
#endif
  al.allocate(k);
  use(k, al, ring.data, p);
});
void use_unknown_group() { unknown_group.check(); }
#endif

// case: empty_group
// expect-error: kiln[R-PA08] pipeline group pair has 0 members, valid 1..16
#if defined(TWIN) || defined(CASE_empty_group)
inline constexpr auto empty_group = kernel<"empty_group">([](context& k, ptr<f32> p) {
  pipeline_group pair{.name = "pair"};
  ring_of_stages ring;
  smem_allocator al(k);
  al.add_resource(ring);
#ifdef TWIN
  pair.add(ring.p, "ring");
  al.add_pipeline_group(pair);
#else
  al.add_pipeline_group(pair); // expect-line
#endif
  al.compute_layout();
  al.allocate(k);
  use(k, al, ring.data, p);
});
void use_empty_group() { empty_group.check(); }
#endif

// case: size_too_early
// expect-error: kiln[R-PA04] total_smem_bytes before compute_layout
#if defined(TWIN) || defined(CASE_size_too_early)
inline constexpr auto size_too_early = kernel<"size_too_early">([](context& k, ptr<f32> p) {
  smem_allocation<f32, 64> a{.name = "a"}, b{.name = "b"};
  smem_allocator al(k);
  al.add(a), al.add(b);
#ifdef TWIN
  al.compute_layout();
  (void)al.total_smem_bytes();
#else
  (void)al.total_smem_bytes(); // expect-line
  al.compute_layout();
#endif
  al.allocate(k);
  use(k, al, a, p);
});
void use_size_too_early() { size_too_early.check(); }
#endif

// case: allocated_twice
// expect-error: kiln[R-PA03] allocate twice; the block exists already
#if defined(TWIN) || defined(CASE_allocated_twice)
inline constexpr auto allocated_twice = kernel<"allocated_twice">([](context& k, ptr<f32> p) {
  smem_allocation<f32, 64> a{.name = "a"}, b{.name = "b"};
  smem_allocator al(k);
  al.add(a), al.add(b);
  al.compute_layout();
  al.allocate(k);
#ifdef TWIN
  (void)b;
#else
  al.allocate(k); // expect-line
#endif
  use(k, al, a, p);
});
void use_allocated_twice() { allocated_twice.check(); }
#endif

// case: barriers_too_early
// expect-error: kiln[R-PA10] assign_barrier_ptrs before allocate
#if defined(TWIN) || defined(CASE_barriers_too_early)
inline constexpr auto barriers_too_early = kernel<"barriers_too_early">([](context& k, ptr<f32> p) {
  smem_allocation<f32, 64> a{.name = "a"}, b{.name = "b"};
  smem_allocator al(k);
  al.add(a), al.add(b);
  al.compute_layout();
#ifdef TWIN
  al.allocate(k);
  al.assign_barrier_ptrs();
#else
  al.assign_barrier_ptrs(); // expect-line
  al.allocate(k);
#endif
  use(k, al, a, p);
});
void use_barriers_too_early() { barriers_too_early.check(); }
#endif

// case: no_extents
// expect-error: kiln[R-PA05] a view needs extents: get_as_type<f32, 64>(k, a)
#if defined(TWIN) || defined(CASE_no_extents)
inline constexpr auto no_extents = kernel<"no_extents">([](context& k, ptr<f32> p) {
  smem_allocation<f32, 64> a{.name = "a"}, b{.name = "b"};
  smem_allocator al(k);
  al.add(a), al.add(b);
  al.compute_layout();
  al.allocate(k);
  use(k, al, a, p);
#ifdef TWIN
  (void)al.get_as_type<i32, 64>(k, a);
#else
  (void)al.get_as_type<i32>(k, a); // expect-line
#endif
});
void use_no_extents() { no_extents.check(); }
#endif
