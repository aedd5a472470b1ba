// Local memory: types, shapes and options.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: store_type
// expect-error: kiln[T-04] local_store: the value's element type differs from the view's; cast<T>(...) it
#if defined(TWIN) || defined(CASE_store_type)
inline constexpr auto store_type = kernel<"store_type">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
#ifdef TWIN
  k.local_store(a[0], k.zeros<f32, 64>());
#else
  k.local_store(a[0], k.zeros<f16, 64>()); // expect-line
#endif
  store(p + k.arange<64>(), k.local_load(a[0]));
});
#endif

// case: store_shape
// expect-error: kiln[T-05] local_store: the value's shape differs from the view's
#if defined(TWIN) || defined(CASE_store_shape)
inline constexpr auto store_shape = kernel<"store_shape">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
#ifdef TWIN
  k.local_store(a[0], k.zeros<f32, 64>());
#else
  k.local_store(a[0], k.zeros<f32, 32>()); // expect-line
#endif
  store(p + k.arange<64>(), k.local_load(a[0]));
});
#endif

// case: no_slots
// expect-error: kiln[T-02] local_alloc of 0 buffers; at least 1 is needed
#if defined(TWIN) || defined(CASE_no_slots)
inline constexpr auto no_slots = kernel<"no_slots">([](context& k, ptr<f32> p) {
#ifdef TWIN
  auto b = k.local_alloc<f32, 64>(1);
#else
  auto b = k.local_alloc<f32, 64>(0); // expect-line
#endif
  k.local_store(b[0], k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(b[0]));
});
void use_no_slots() { no_slots.check(); }
#endif

// case: no_axes
// expect-error: kiln[T-02] a local buffer has 1 to 5 axes
#if defined(TWIN) || defined(CASE_no_axes)
inline constexpr auto no_axes = kernel<"no_axes">([](context& k, ptr<f32> p) {
#ifdef TWIN
  auto b = k.local_alloc<f32, 1>();
#else
  auto b = k.local_alloc<f32>(); // expect-line
#endif
  (void)b;
  store(p, 1.f);
});
#endif

// case: shared_scope
// expect-error: kiln[T-15] alloc_shared takes scope::shared_dyn or scope::shared_static
#if defined(TWIN) || defined(CASE_shared_scope)
inline constexpr auto shared_scope = kernel<"shared_scope">([](context& k, ptr<f32> p) {
#ifdef TWIN
  auto b = k.alloc_shared<f32, 64>({.scope = scope::shared_static});
#else
  auto b = k.alloc_shared<f32, 64>({.scope = scope::global}); // expect-line
#endif
  k.local_store(b, k.zeros<f32, 64>());
  store(p, 1.f);
});
void use_shared_scope() { shared_scope.check(); }
#endif

// case: gather_axis
// expect-error: kiln[T-11] local_gather along axis 1 of 1
#if defined(TWIN) || defined(CASE_gather_axis)
inline constexpr auto gather_axis = kernel<"gather_axis">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64>());
#ifdef TWIN
  auto x = k.local_gather(a[0], k.arange<8>(), {.axis = 0});
#else
  auto x = k.local_gather(a[0], k.arange<8>(), {.axis = 1}); // expect-line
#endif
  store(p + k.arange<8>(), x);
});
void use_gather_axis() { gather_axis.check(); }
#endif

// case: gather_rank
// expect-error: kiln[T-05] local_gather needs indices of the view's rank
#if defined(TWIN) || defined(CASE_gather_rank)
inline constexpr auto gather_rank = kernel<"gather_rank">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64>());
#ifdef TWIN
  auto x = k.local_gather(a[0], k.arange<8>());
#else
  auto x = k.local_gather(a[0], k.iota<0, 8, 1>()); // expect-line
#endif
  store(p, reduce<sum>(x));
});
#endif

// case: gather_extent
// expect-error: kiln[T-05] local_gather: extent 16 of the indices exceeds 8 of the view on axis 1
#if defined(TWIN) || defined(CASE_gather_extent)
inline constexpr auto gather_extent = kernel<"gather_extent">([](context& k, ptr<f32> p) {
  auto b = k.local_alloc<f32, 8, 8>();
  k.local_store(b[0], k.zeros<f32, 8, 8>());
#ifdef TWIN
  auto x = k.local_gather(b[0], k.iota<0, 4, 8>());
#else
  auto x = k.local_gather(b[0], k.iota<0, 4, 16>()); // expect-line
#endif
  store(p, reduce<sum>(x));
});
void use_gather_extent() { gather_extent.check(); }
#endif

// case: scatter_shapes
// expect-error: kiln[T-05] local_scatter needs indices and values of one shape
#if defined(TWIN) || defined(CASE_scatter_shapes)
inline constexpr auto scatter_shapes = kernel<"scatter_shapes">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
#ifdef TWIN
  k.local_scatter(a[0], k.zeros<f32, 8>(), k.arange<8>());
#else
  k.local_scatter(a[0], k.zeros<f32, 8>(), k.arange<16>()); // expect-line
#endif
  store(p, 1.f);
});
#endif

// case: copy_type
// expect-error: kiln[T-04] async_load: source and view have different element types
#if defined(TWIN) || defined(CASE_copy_type)
inline constexpr auto copy_type = kernel<"copy_type">([](context& k, ptr<f32> p, ptr<f16> q) {
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
#ifdef TWIN
  k.async_load(p + k.arange<64>(), a[0]);
#else
  k.async_load(q + k.arange<64>(), a[0]); // expect-line
#endif
  k.async_load_commit_group();
  k.async_load_wait_group(0);
  store(p + k.arange<64>(), k.local_load(a[0]));
  store(q, load(q));
});
#endif

// case: copy_shape
// expect-error: kiln[T-05] async_load: source and view have different shapes
#if defined(TWIN) || defined(CASE_copy_shape)
inline constexpr auto copy_shape = kernel<"copy_shape">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
#ifdef TWIN
  k.async_load(p + k.arange<64>(), a[0]);
#else
  k.async_load(p + k.arange<32>(), a[0]); // expect-line
#endif
  k.async_load_commit_group();
  k.async_load_wait_group(0);
  store(p + k.arange<64>(), k.local_load(a[0]));
});
#endif

// case: copy_cache
// expect-error: kiln[T-15] async_load takes cache::none, cache::ca or cache::cg
#if defined(TWIN) || defined(CASE_copy_cache)
inline constexpr auto copy_cache = kernel<"copy_cache">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
#ifdef TWIN
  k.async_load(p + k.arange<64>(), a[0], {.cache = cache::cg});
#else
  k.async_load(p + k.arange<64>(), a[0], {.cache = cache::cs}); // expect-line
#endif
  k.async_load_commit_group();
  k.async_load_wait_group(0);
  store(p + k.arange<64>(), k.local_load(a[0]));
});
void use_copy_cache() { copy_cache.check(); }
#endif

// case: copy_other
// expect-error: kiln[T-13] .other without .mask: nothing would be masked off; give .mask, or access a region of an array
#if defined(TWIN) || defined(CASE_copy_other)
inline constexpr auto copy_other = kernel<"copy_other">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
#ifdef TWIN
  k.async_load(p + k.arange<64>(), a[0], {.mask = k.arange<64>() < 5, .other = 0});
#else
  k.async_load(p + k.arange<64>(), a[0], {.other = 0}); // expect-line
#endif
  k.async_load_commit_group();
  k.async_load_wait_group(0);
  store(p + k.arange<64>(), k.local_load(a[0]));
});
void use_copy_other() { copy_other.check(); }
#endif

// case: negative_pending
// expect-error: kiln[T-15] async_load_wait_group(-1): the number of groups that may be pending is 0 or more
#if defined(TWIN) || defined(CASE_negative_pending)
inline constexpr auto negative_pending = kernel<"negative_pending">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
  k.async_load(p + k.arange<64>(), a[0]);
  k.async_load_commit_group();
#ifdef TWIN
  k.async_load_wait_group(0);
#else
  k.async_load_wait_group(-1); // expect-line
#endif
  store(p + k.arange<64>(), k.local_load(a[0]));
});
void use_negative_pending() { negative_pending.check(); }
#endif

// What is in a header of its own says which.
// case: needs_buffer_header
// expect-error: kiln: k.match_buffer is in a header of its own; #include <kiln/dsl/buffer.hpp>
#if defined(TWIN) || defined(CASE_needs_buffer_header)
inline constexpr auto needs_buffer_header = kernel<"needs_buffer_header">([](context& k, ptr<f32> y) {
#ifdef TWIN
  store(y, k.full<f32>(1));
#else
  auto A = k.match_buffer(y, {4}); // expect-line
#endif
});
void use_needs_buffer_header() { needs_buffer_header.check(); }
#endif

// case: element_needs_header
// expect-error: kiln: this is in a header of its own; #include <kiln/dsl/buffer.hpp>
#if defined(TWIN) || defined(CASE_element_needs_header)
inline constexpr auto element_needs_header = kernel<"element_needs_header">([](context& k, ptr<f32> y) {
  auto s = k.alloc_shared<f32, 4>();
  k.local_store(s, k.zeros<f32, 4>());
#ifdef TWIN
  store(y + k.arange<1>(), k.local_load(s[1]));
#else
  s(1); // expect-line
#endif
});
void use_element_needs_header() { element_needs_header.check(); }
#endif

// case: needs_layout_header
// expect-error: kiln: k.dump_layout is in a header of its own; #include <kiln/dsl/layout_tools.hpp>
#if defined(TWIN) || defined(CASE_needs_layout_header)
inline constexpr auto needs_layout_header = kernel<"needs_layout_header">([](context& k, ptr<f32> y) {
  auto x = k.zeros<f32, 64>();
#ifndef TWIN
  k.dump_layout(x); // expect-line
#endif
  store(y + k.arange<64>(), x);
});
void use_needs_layout_header() { needs_layout_header.check(); }
#endif

// case: no_slot_stored
// expect-error: kiln[T-17] local_store takes one slot, b[i]; b is all of them
#if defined(TWIN) || defined(CASE_no_slot_stored)
inline constexpr auto no_slot_stored = kernel<"no_slot_stored">([](context& k, ptr<f32> p) {
  auto b = k.local_alloc<f32, 64>(2);
#ifdef TWIN
  k.local_store(b[0], k.zeros<f32, 64>());
#else
  k.local_store(b, k.zeros<f32, 64>()); // expect-line
#endif
  store(p + k.arange<64>(), k.local_load(b[0]));
});
#endif

// case: no_slot_loaded
// expect-error: kiln[T-17] local_load takes one slot, b[i]; b is all of them
#if defined(TWIN) || defined(CASE_no_slot_loaded)
inline constexpr auto no_slot_loaded = kernel<"no_slot_loaded">([](context& k, ptr<f32> p) {
  auto b = k.local_alloc<f32, 64>(2);
  k.local_store(b[0], k.zeros<f32, 64>());
#ifdef TWIN
  store(p + k.arange<64>(), k.local_load(b[0]));
#else
  store(p + k.arange<64>(), k.local_load(b)); // expect-line
#endif
});
#endif

// case: no_slot_copied
// expect-error: kiln[T-17] async_load takes one slot, b[i]; b is all of them
#if defined(TWIN) || defined(CASE_no_slot_copied)
inline constexpr auto no_slot_copied = kernel<"no_slot_copied">([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto b = k.local_alloc<f32, 64>(2);
#ifdef TWIN
  k.async_load(p + k.arange<64>(), b[0]);
#else
  k.async_load(p + k.arange<64>(), b); // expect-line
#endif
  k.async_load_commit_group();
  k.async_load_wait_group(0);
  store(q + k.arange<64>(), k.local_load(b[0]));
});
#endif
