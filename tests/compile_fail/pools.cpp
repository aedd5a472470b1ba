// Pools, buffers declared over bytes that something else owns, and reinterpreted views.
#include <kiln/dsl/buffer.hpp>
#include <kiln/kernel.hpp>
using namespace kiln;

// case: alloc_after_commit
// expect-error: kiln[R-PA12] pool: alloc of b after commit; allocate before it
#if defined(TWIN) || defined(CASE_alloc_after_commit)
inline constexpr auto alloc_after_commit = kernel<"alloc_after_commit">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
  auto a = pool.alloc<f32, 64>({.name = "a"});
#ifdef TWIN
  auto b = pool.alloc<f32, 64>({.name = "b"});
  pool.commit();
#else
  pool.commit();
  auto b = pool.alloc<f32, 64>({.name = "b"}); // expect-line
#endif
  k.local_store(b, k.zeros<f32, 64>());
  k.local_store(a, k.zeros<f32, 64>());
});
void use_alloc_after_commit() { alloc_after_commit.check(); }
#endif

// case: never_committed
// expect-error: kiln[R-PA12] pool was never committed; commit it after its last allocation
#if defined(TWIN) || defined(CASE_never_committed)
inline constexpr auto never_committed = kernel<"never_committed">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"}); // expect-line
  auto a = pool.alloc<f32, 64>({.name = "a"});
#ifdef TWIN
  pool.commit();
#endif
  k.local_store(a, k.zeros<f32, 64>());
});
void use_never_committed() { never_committed.check(); }
#endif

// case: committed_twice
// expect-error: kiln[R-PA12] pool: commit twice
#if defined(TWIN) || defined(CASE_committed_twice)
inline constexpr auto committed_twice = kernel<"committed_twice">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
  auto a = pool.alloc<f32, 64>({.name = "a"});
  pool.commit();
#ifndef TWIN
  pool.commit(); // expect-line
#endif
  k.local_store(a, k.zeros<f32, 64>());
});
void use_committed_twice() { committed_twice.check(); }
#endif

// case: commit_too_small
// expect-error: kiln[R-PA13] pool: commit size 128 < high-water mark 256
#if defined(TWIN) || defined(CASE_commit_too_small)
inline constexpr auto commit_too_small = kernel<"commit_too_small">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
  auto a = pool.alloc<f32, 64>({.name = "a"});
#ifdef TWIN
  pool.commit({.size = 256});
#else
  pool.commit({.size = 128}); // expect-line
#endif
  k.local_store(a, k.zeros<f32, 64>());
});
void use_commit_too_small() { commit_too_small.check(); }
#endif

// case: cursor_beyond
// expect-error: kiln[R-PA14] pool: cursor 1024 beyond high-water 256; pass .gap to leave a hole
#if defined(TWIN) || defined(CASE_cursor_beyond)
inline constexpr auto cursor_beyond = kernel<"cursor_beyond">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
  auto a = pool.alloc<f32, 64>({.name = "a"});
#ifdef TWIN
  pool.move_base_to(1024, {.gap = true});
#else
  pool.move_base_to(1024); // expect-line
#endif
  pool.commit();
  k.local_store(a, k.zeros<f32, 64>());
});
void use_cursor_beyond() { cursor_beyond.check(); }
#endif

// case: handed_out_again
// expect-error: kiln[R-PA15] a (256 B) is read (pools.cpp:{line}), but bytes 0..127 were last written through b (128 B) on line {line-4}; write a first
#if defined(TWIN) || defined(CASE_handed_out_again)
inline constexpr auto handed_out_again = kernel<"handed_out_again">([](context& k, ptr<f32> p) {
  auto pool = k.smem_pool({.name = "pool"});
  auto a = pool.alloc<f32, 64>({.name = "a"});
  pool.move_base_to(0);
  auto b = pool.alloc<f32, 32>({.name = "b"});
  pool.commit();
  k.local_store(a, k.zeros<f32, 64>());
  k.local_store(b, k.zeros<f32, 32>());
#ifdef TWIN
  k.local_store(a, k.zeros<f32, 64>());
#endif
  store(p + k.arange<64>(), k.local_load(a)); // expect-line
});
void use_handed_out_again() { handed_out_again.check(); }
#endif

// case: second_pool
// expect-error: kiln[R-CP06] second dynamic arena at line {line}; one exists since line {line-3}, allocate from it
#if defined(TWIN) || defined(CASE_second_pool)
inline constexpr auto second_pool = kernel<"second_pool">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
  auto a = pool.alloc<f32, 64>({.name = "a"});
#ifndef TWIN
  auto second = k.smem_pool({.name = "second"}); // expect-line
#endif
#ifndef TWIN
  second.commit();
#endif
  pool.commit();
  k.local_store(a, k.zeros<f32, 64>());
});
void use_second_pool() { second_pool.check(); }
#endif

// case: view_too_large
// expect-error: kiln[R-BD07] a view of 16384 B at byte 0 exceeds its storage A, which has 8192 B from there
#if defined(TWIN) || defined(CASE_view_too_large)
inline constexpr auto view_too_large = kernel<"view_too_large">([](context& k, ptr<f32> p) {
  auto a = k.alloc_shared<f16, 64, 64>({.name = "A"});
  k.local_store(a, k.zeros<f16, 64, 64>());
#ifdef TWIN
  auto v = k.decl_buffer<f16, 32, 128>({.data = a});
#else
  auto v = k.decl_buffer<f16, 64, 128>({.data = a}); // expect-line
#endif
  store(p, cast<f32>(reduce<max>(k.local_load(v))));
});
void use_view_too_large() { view_too_large.check(); }
#endif

// case: view_misaligned
// expect-error: kiln[R-BD08] a view of f32 at byte 2 of A: not aligned for its elements of 4 B
#if defined(TWIN) || defined(CASE_view_misaligned)
inline constexpr auto view_misaligned = kernel<"view_misaligned">([](context& k, ptr<f32> p) {
  auto a = k.alloc_shared<f16, 64, 64>({.name = "A"});
  k.local_store(a, k.zeros<f16, 64, 64>());
#ifdef TWIN
  auto v = k.decl_buffer<f32, 16>({.data = a, .byte_offset = 4});
#else
  auto v = k.decl_buffer<f32, 16>({.data = a, .byte_offset = 2}); // expect-line
#endif
  store(p, reduce<max>(k.local_load(v)));
});
void use_view_misaligned() { view_misaligned.check(); }
#endif

// case: two_offsets
// expect-error: kiln[R-BD08] decl_buffer takes .elem_offset or .byte_offset, not both
#if defined(TWIN) || defined(CASE_two_offsets)
inline constexpr auto two_offsets = kernel<"two_offsets">([](context& k, ptr<f32> p) {
  auto a = k.alloc_shared<f16, 64, 64>({.name = "A"});
  k.local_store(a, k.zeros<f16, 64, 64>());
#ifdef TWIN
  auto v = k.decl_buffer<f32, 16>({.data = a, .byte_offset = 4});
#else
  auto v = k.decl_buffer<f32, 16>({.data = a, .elem_offset = 1, .byte_offset = 4}); // expect-line
#endif
  store(p, reduce<max>(k.local_load(v)));
});
void use_two_offsets() { two_offsets.check(); }
#endif

// case: reinterpreted
// expect-error: kiln[R-BD08] local_reinterpret of A: 8192 B as 16384 B
#if defined(TWIN) || defined(CASE_reinterpreted)
inline constexpr auto reinterpreted = kernel<"reinterpreted">([](context& k, ptr<f32> p) {
  auto a = k.alloc_shared<f16, 64, 64>({.name = "A"});
  k.local_store(a, k.zeros<f16, 64, 64>());
#ifdef TWIN
  auto v = k.local_reinterpret<f32, 64, 32>(a);
#else
  auto v = k.local_reinterpret<f32, 64, 64>(a); // expect-line
#endif
  store(p, reduce<max>(k.local_load(v)));
});
void use_reinterpreted() { reinterpreted.check(); }
#endif

// case: reinterpreted_with_padding
// expect-error: kiln[R-BD08] local_reinterpret of A: the layout takes 9200 B, a slot has 8192
#if defined(TWIN) || defined(CASE_reinterpreted_with_padding)
inline constexpr auto reinterpreted_with_padding = kernel<"reinterpreted_with_padding">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f16, 64, 64>(2, {.name = "A"});
  k.local_store(a[1], k.zeros<f16, 64, 64>());
#ifdef TWIN
  auto v = k.local_reinterpret<f16, 64, 64>(a[1], {.layout = layout::strided<64, 64>({1, 64})});
#else
  auto v = k.local_reinterpret<f16, 64, 64>(a[1], {.layout = layout::padded<64>({8})}); // expect-line
#endif
  store(p, reduce<max>(cast<f32>(k.local_load(v))));
});
void use_reinterpreted_with_padding() { reinterpreted_with_padding.check(); }
#endif

// case: runtime_place
// expect-error: kiln[R-BD08] decl_buffer over a part of ring at a runtime offset: #include <kiln/dsl/buffer.hpp>, and it must be known to be a multiple of its size; or declare it over the whole and slice or index the result
#if defined(TWIN) || defined(CASE_runtime_place)
inline constexpr auto runtime_place = kernel<"runtime_place">([](context& k, ptr<f32> p) {
  auto ring = k.local_alloc<f32, 8, 24>(2, {.name = "ring"});
  for (auto i : k.range(0, 2)) k.local_store(ring[i], k.zeros<f32, 8, 24>());
  auto row = ring[k.program_id(0) & 1][k.program_id(1) & 7];
#ifdef TWIN
  auto v = k.decl_buffer<i32, 8>({.data = row, .elem_offset = 16});
#else
  auto v = k.decl_buffer<i32, 16>({.data = row}); // expect-line
#endif
  store(p, cast<f32>(reduce<max>(k.local_load(v))));
});
void use_runtime_place() { runtime_place.check(); }
#endif

// case: arena_beside_memory
// expect-error: kiln[R-CP06] s has shared memory of its own beside the arena of line {line-4}; declare it over the arena, or allocate it from a pool with .backing
#if defined(TWIN) || defined(CASE_arena_beside_memory)
inline constexpr auto arena_beside_memory = kernel<"arena_beside_memory">([](context& k, ptr<f32> p) {
  auto arena = k.alloc_buffer<f32, scope::shared_dyn, 128>({.name = "arena"});
#ifdef TWIN
  auto s = k.decl_buffer<f32, 64>({.data = arena, .name = "s"});
#else
  auto s = k.alloc_shared<f32, 64>({.name = "s"}); // expect-line
#endif
  k.local_store(s, k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(s));
});
void use_arena_beside_memory() { arena_beside_memory.check(); }
#endif

// case: second_arena
// expect-error: kiln[R-CP06] second dynamic arena at line {line}; one exists since line {line-4}, declare a view of it
#if defined(TWIN) || defined(CASE_second_arena)
inline constexpr auto second_arena = kernel<"second_arena">([](context& k, ptr<f32> p) {
  auto a = k.alloc_buffer<f32, scope::shared_dyn, 128>({.name = "a"});
#ifdef TWIN
  auto b = k.alloc_buffer<f32, scope::shared_static, 64>({.name = "b"});
#else
  auto b = k.alloc_buffer<f32, scope::shared_dyn, 64>({.name = "b"}); // expect-line
#endif
  k.local_store(a, k.zeros<f32, 128>());
  k.local_store(b, k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(b));
});
void use_second_arena() { second_arena.check(); }
#endif

// case: backing_is_full
// expect-error: kiln[R-BD07] b ends at byte 640 of its pool, whose .backing has 512
#if defined(TWIN) || defined(CASE_backing_is_full)
inline constexpr auto backing_is_full = kernel<"backing_is_full">([](context& k, ptr<f32> p) {
  auto arena = k.alloc_buffer<f32, scope::shared_dyn, 128>({.name = "arena"});
  auto pool = k.smem_pool({.backing = arena, .name = "pool"});
  auto a = pool.alloc<f32, 64>({.name = "a"});
#ifdef TWIN
  auto b = pool.alloc<f32, 64>({.name = "b"});
#else
  auto b = pool.alloc<f32, 96>({.name = "b"}); // expect-line
#endif
  k.local_store(a, k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(a));
});
void use_backing_is_full() { backing_is_full.check(); }
#endif
