// Phase allocators: what is declared, grouped, laid out and taken wrongly. A mistake before `allocate` is found there.
#include <kiln/dsl/pipeline.hpp>
#include <kiln/kernel.hpp>

#include <array>

using namespace kiln;

// case: not_added
// expect-error: kiln[R-PA01] b is in an alias group but was never added; add(b) first
#if defined(TWIN) || defined(CASE_not_added)
inline constexpr auto not_added = kernel<"not_added">([](context& k, ptr<f32> p) {
  smem_allocation<f32, 64> a{.name = "a"}, b{.name = "b"};
  smem_allocator al(k);
  al.add(a);
#ifdef TWIN
  al.add(b);
#endif
  al.add_alias_group({{&a}, {&b}}); // expect-line
  al.compute_layout();
  al.allocate(k);
  k.local_store(al.get(k, a), k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(al.get(k, a)));
});
void use_not_added() { not_added.check(); }
#endif

// case: twice
// expect-error: kiln[R-PA02] a is already in phase 0 of group 0
#if defined(TWIN) || defined(CASE_twice)
inline constexpr auto twice = kernel<"twice">([](context& k, ptr<f32> p) {
  smem_allocation<f32, 64> a{.name = "a"}, b{.name = "b"};
  smem_allocator al(k);
  al.add(a), al.add(b);
#ifdef TWIN
  al.add_alias_group({{&a}, {&b}});
#else
  al.add_alias_group({{&a}, {&a}}); // expect-line
#endif
  al.compute_layout();
  al.allocate(k);
  k.local_store(al.get(k, a), k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(al.get(k, a)));
});
void use_twice() { twice.check(); }
#endif

// case: added_twice
// expect-error: kiln[R-PA02] b is already added
#if defined(TWIN) || defined(CASE_added_twice)
inline constexpr auto added_twice = kernel<"added_twice">([](context& k, ptr<f32> p) {
  smem_allocation<f32, 64> a{.name = "a"}, b{.name = "b"};
  smem_allocator al(k);
  al.add(a), al.add(b);
#ifndef TWIN
  al.add(b); // expect-line
#endif
  al.compute_layout();
  al.allocate(k);
  k.local_store(al.get(k, a), k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(al.get(k, a)));
});
void use_added_twice() { added_twice.check(); }
#endif

// case: late_add
// expect-error: kiln[R-PA03] add(b) after compute_layout
#if defined(TWIN) || defined(CASE_late_add)
inline constexpr auto late_add = kernel<"late_add">([](context& k, ptr<f32> p) {
  smem_allocation<f32, 64> a{.name = "a"}, b{.name = "b"};
  smem_allocator al(k);
  al.add(a);
  (void)b;
  al.compute_layout();
#ifndef TWIN
  al.add(b); // expect-line
#endif
  al.allocate(k);
  k.local_store(al.get(k, a), k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(al.get(k, a)));
});
void use_late_add() { late_add.check(); }
#endif

// case: laid_out_twice
// expect-error: kiln[R-PA03] layout already computed
#if defined(TWIN) || defined(CASE_laid_out_twice)
inline constexpr auto laid_out_twice = kernel<"laid_out_twice">([](context& k, ptr<f32> p) {
  smem_allocation<f32, 64> a{.name = "a"}, b{.name = "b"};
  smem_allocator al(k);
  al.add(a), al.add(b);
  al.compute_layout();
#ifndef TWIN
  al.compute_layout(); // expect-line
#endif
  al.allocate(k);
  k.local_store(al.get(k, a), k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(al.get(k, a)));
});
void use_laid_out_twice() { laid_out_twice.check(); }
#endif

// case: too_early
// expect-error: kiln[R-PA03] allocate before compute_layout
#if defined(TWIN) || defined(CASE_too_early)
inline constexpr auto too_early = kernel<"too_early">([](context& k, ptr<f32> p) {
  smem_allocation<f32, 64> a{.name = "a"}, b{.name = "b"};
  smem_allocator al(k);
  al.add(a), al.add(b);
#ifdef TWIN
  al.compute_layout();
#endif
  al.allocate(k); // expect-line
  k.local_store(al.get(k, a), k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(al.get(k, a)));
});
void use_too_early() { too_early.check(); }
#endif

// case: get_before_allocate
// expect-error: kiln[R-PA04] get(a) before allocate
#if defined(TWIN) || defined(CASE_get_before_allocate)
inline constexpr auto get_before_allocate = kernel<"get_before_allocate">([](context& k) {
  smem_allocation<f32, 64> a{.name = "a"};
  smem_allocator al(k);
  al.add(a);
  al.compute_layout();
#ifdef TWIN
  al.allocate(k);
#endif
  auto v = al.get(k, a); // expect-line
  k.local_store(v, k.zeros<f32, 64>());
});
void use_get_before_allocate() { get_before_allocate.check(); }
#endif

// case: no_type
// expect-error: kiln[R-PA05] the allocation has no element type; use get_as_type
#if defined(TWIN) || defined(CASE_no_type)
inline constexpr auto no_type = kernel<"no_type">([](context& k) {
  smem_allocation<> c{.name = "c", .size_bytes = 64};
  smem_allocator al(k);
  al.add(c);
  al.compute_layout();
  al.allocate(k);
#ifdef TWIN
  auto v = al.get_as_type<f32, 16>(k, c);
#else
  auto v = al.get(k, c); // expect-line
#endif
  k.local_store(v, k.zeros<f32, 16>());
});
void use_no_type() { no_type.check(); }
#endif

// case: too_many
// expect-error: kiln[R-PA06] c: 32 x f32 = 128 B > 64 B
#if defined(TWIN) || defined(CASE_too_many)
inline constexpr auto too_many = kernel<"too_many">([](context& k) {
  smem_allocation<> c{.name = "c", .size_bytes = 64};
  smem_allocator al(k);
  al.add(c);
  al.compute_layout();
  al.allocate(k);
#ifdef TWIN
  auto v = al.get_as_type<f32, 16>(k, c);
#else
  auto v = al.get_as_type<f32, 32>(k, c); // expect-line
#endif
  (void)v;
});
void use_too_many() { too_many.check(); }
#endif

// case: phases_mixed
// expect-error: kiln[R-PA07] a (256 B) is read (allocators.cpp:{line}), but bytes 0..255 were last written through b (256 B) on line {line-4}; write a first
#if defined(TWIN) || defined(CASE_phases_mixed)
inline constexpr auto phases_mixed = kernel<"phases_mixed">([](context& k, ptr<f32> p) {
  smem_allocation<f32, 64> a{.name = "a"}, b{.name = "b"};
  smem_allocator al(k);
  al.add(a), al.add(b);
  al.add_alias_group({{&a}, {&b}});
  al.compute_layout();
  al.allocate(k);
  k.local_store(al.get(k, a), k.zeros<f32, 64>());
  k.local_store(al.get(k, b), k.zeros<f32, 64>());
#ifdef TWIN
  k.local_store(al.get(k, a), k.zeros<f32, 64>());
#endif
  store(p + k.arange<64>(), k.local_load(al.get(k, a))); // expect-line
});
void use_phases_mixed() { phases_mixed.check(); }
#endif

// case: no_size
// expect-error: kiln[R-PA11] c: size 0; give a size, or an element type and a count
#if defined(TWIN) || defined(CASE_no_size)
inline constexpr auto no_size = kernel<"no_size">([](context& k) {
  smem_allocator al(k);
#ifdef TWIN
  smem_allocation<> c{.name = "c", .size_bytes = 64};
#else
  smem_allocation<> c{.name = "c"};
#endif
  al.add(c); // expect-line
  al.compute_layout();
  al.allocate(k);
});
void use_no_size() { no_size.check(); }
#endif

// case: odd_alignment
// expect-error: kiln[R-PA11] c: alignment 96 is not a power of two
#if defined(TWIN) || defined(CASE_odd_alignment)
inline constexpr auto odd_alignment = kernel<"odd_alignment">([](context& k) {
  smem_allocator al(k);
#ifdef TWIN
  smem_allocation<f32, 16> c{.name = "c", .alignment = 64};
#else
  smem_allocation<f32, 16> c{.name = "c", .alignment = 96};
#endif
  al.add(c); // expect-line
  al.compute_layout();
  al.allocate(k);
});
void use_odd_alignment() { odd_alignment.check(); }
#endif

// case: small_size
// expect-error: kiln[R-PA11] c: 10 B given, its elements take 64 B
#if defined(TWIN) || defined(CASE_small_size)
inline constexpr auto small_size = kernel<"small_size">([](context& k) {
  smem_allocator al(k);
#ifdef TWIN
  smem_allocation<f32, 16> c{.name = "c", .size_bytes = 80};
#else
  smem_allocation<f32, 16> c{.name = "c", .size_bytes = 10};
#endif
  al.add(c); // expect-line
  al.compute_layout();
  al.allocate(k);
});
void use_small_size() { small_size.check(); }
#endif

// case: outside
// expect-error: kiln[R-PA08] pipeline group ab: member b has 4 stages, member a 3
#if defined(TWIN) || defined(CASE_outside)
constexpr auto outside = [] {
#ifdef TWIN
  pipeline_config one{.num_stages = 3}, two{.num_stages = 3};
#else
  pipeline_config one{.num_stages = 3}, two{.num_stages = 4};
#endif
  pipeline_group both{.name = "ab"};
  both.add(one, "a"), both.add(two, "b");
  smem_allocator al;
  al.add_pipeline_group(both);
  al.compute_layout();
  return al.verdict();
}();
inline constexpr auto pipelines = kernel<"pipelines">([](context& k) {
  pipeline_config one{.num_stages = 3}, two{.num_stages = outside.ok() ? 3 : 4};
  pipeline_group both{.name = "ab"};
  both.add(one, "a"), both.add(two, "b");
  smem_allocator al;
  al.add_pipeline_group(both);
  al.compute_layout();
  al.allocate(k); // expect-line
});
void use_pipelines() { pipelines.check(); }
#endif

// case: pipeline_without_barriers
// expect-error: kiln[R-PA10] a pipeline is used before assign_barrier_ptrs; its barriers do not exist
#if defined(TWIN) || defined(CASE_pipeline_without_barriers)
struct staged_data {
  smem_allocation<f32, 2, 64> data{.name = "data"};
  pipeline_config p{.num_stages = 2};
  constexpr std::array<allocation_ref, 1> smem_requirements() { return {{&data}}; }
  constexpr pipeline_config& pipeline() { return p; }
};
inline constexpr auto pipeline_without_barriers = kernel<"pipeline_without_barriers">([](context& k, ptr<f32> y) {
  staged_data r;
  smem_allocator al(k);
  al.add_resource(r);
  al.compute_layout();
  al.allocate(k);
#ifdef TWIN
  al.assign_barrier_ptrs();
#endif
  pipeline_producer out(k, r); // expect-line
  pipeline_consumer in(k, r);
  for (auto i : k.range(0, 4)) {
    k.local_store(al.get(k, r.data)[out.acquire()], k.full<f32, 64>(1));
    out.commit();
    store(y + i * 64 + k.arange<64>(), k.local_load(al.get(k, r.data)[in.wait()]));
    in.release();
  }
});
void use_pipeline_without_barriers() { pipeline_without_barriers.check(); }
#endif

// case: unregistered_group
// expect-error: kiln[R-PA09] a resource belongs to pipeline group ab, which is not registered; its barriers have no storage; add_pipeline_group(ab)
#if defined(TWIN) || defined(CASE_unregistered_group)
struct staged {
  smem_allocation<f16, 64> data{.name = "data"};
  pipeline_config p{.num_stages = 2};
  pipeline_group* g = nullptr;
  constexpr std::array<allocation_ref, 1> smem_requirements() { return {{&data}}; }
  constexpr pipeline_config& pipeline() { return p; }
  constexpr pipeline_group* group() { return g; }
};
inline constexpr auto unregistered_group = kernel<"unregistered_group">([](context& k) {
  pipeline_group both{.name = "ab"};
  staged a{.g = &both};
  smem_allocator al(k);
  both.add(a.p, "a");
  al.add_resource(a);
#ifdef TWIN
  al.add_pipeline_group(both);
#endif
  al.compute_layout(); // expect-line
  al.allocate(k);
});
void use_unregistered_group() { unregistered_group.check(); }
#endif

// case: barriers_too_early
// expect-error: kiln[R-PA10] assign_barrier_ptrs before allocate
#if defined(TWIN) || defined(CASE_barriers_too_early)
inline constexpr auto barriers_too_early = kernel<"barriers_too_early">([](context& k) {
  smem_allocation<f32, 16> c{.name = "c"};
  smem_allocator al(k);
  al.add(c);
  al.compute_layout();
#ifdef TWIN
  al.allocate(k);
  al.assign_barrier_ptrs();
#else
  al.assign_barrier_ptrs(); // expect-line
  al.allocate(k);
#endif
});
void use_barriers_too_early() { barriers_too_early.check(); }
#endif
