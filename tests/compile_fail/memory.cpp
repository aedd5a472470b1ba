// Global memory: loads, stores, atomics, regions.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: other_alone
// expect-error: kiln[T-13] .other without .mask: nothing would be masked off; give .mask, or access a region of an array
#if defined(TWIN) || defined(CASE_other_alone)
inline constexpr auto other_alone = kernel<"other_alone">([](context& k, ptr<f32> p, val<i32> n) {
  auto i = k.arange<64>();
#ifdef TWIN
  store(p + i, load(p + i, {.mask = i < n, .other = 1}));
#else
  (void)n, store(p + i, load(p + i, {.other = 1})); // expect-line
#endif
});
void use_other_alone() { other_alone.check(); }
#endif

// case: mask_type
// expect-error: kiln[T-04] .mask has element type i32 where b1 is needed; cast it
#if defined(TWIN) || defined(CASE_mask_type)
inline constexpr auto mask_type = kernel<"mask_type">([](context& k, ptr<f32> p, val<i32> n) {
  auto i = k.arange<64>();
#ifdef TWIN
  store(p + i, 1.f, {.mask = i < n});
#else
  store(p + i, 1.f, {.mask = i - n}); // expect-line
#endif
});
void use_mask_type() { mask_type.check(); }
#endif

// case: mask_shape
// expect-error: kiln[T-05] .mask of shape b1[32] does not broadcast to the accessed shape
#if defined(TWIN) || defined(CASE_mask_shape)
inline constexpr auto mask_shape = kernel<"mask_shape">([](context& k, ptr<f32> p, val<i32> n) {
  auto i = k.arange<64>();
#ifdef TWIN
  store(p + i, 1.f, {.mask = i < n});
#else
  store(p + i, 1.f, {.mask = k.arange<32>() < n}); // expect-line
#endif
});
void use_mask_shape() { mask_shape.check(); }
#endif

// case: other_type
// expect-error: kiln[T-04] .other has element type f64 where f32 is needed; cast it
#if defined(TWIN) || defined(CASE_other_type)
inline constexpr auto other_type = kernel<"other_type">([](context& k, ptr<f32> p, val<f64> x) {
  auto i = k.arange<64>();
#ifdef TWIN
  store(p + i, load(p + i, {.mask = i < 5, .other = cast<f32>(x)}));
#else
  store(p + i, load(p + i, {.mask = i < 5, .other = x})); // expect-line
#endif
});
void use_other_type() { other_type.check(); }
#endif

// case: store_to_const
// expect-error: kiln[T-14] store through a pointer to const; declare the parameter ptr<T> or array<T, Rank>
#if defined(TWIN) || defined(CASE_store_to_const)
inline constexpr auto store_to_const = kernel<"store_to_const">([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto i = k.arange<64>();
#ifdef TWIN
  store(q + i, load(p + i));
#else
  store(p + i, load(q + i)); // expect-line
#endif
});
#endif

// case: store_type
// expect-error: kiln[T-04] the stored element type differs from the pointer's; cast<T>(...) the value
#if defined(TWIN) || defined(CASE_store_type)
inline constexpr auto store_type = kernel<"store_type">([](context& k, ptr<f32> p, ptr<f16> q) {
  auto i = k.arange<64>();
#ifdef TWIN
  store(q + i, cast<f16>(load(p + i)));
#else
  store(q + i, load(p + i)); // expect-line
#endif
});
#endif

// case: store_shape
// expect-error: kiln[T-05] the stored shape does not broadcast to the address's shape
#if defined(TWIN) || defined(CASE_store_shape)
inline constexpr auto store_shape = kernel<"store_shape">([](context& k, ptr<f32> p) {
  auto i = k.arange<64>();
#ifdef TWIN
  store(p + i, load(p + i) + 1.f);
#else
  store(p, load(p + i) + 1.f); // expect-line
#endif
});
#endif

// case: atomic_to_const
// expect-error: kiln[T-14] atomic_add through a pointer to const; declare the parameter ptr<T>
#if defined(TWIN) || defined(CASE_atomic_to_const)
inline constexpr auto atomic_to_const = kernel<"atomic_to_const">([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto i = k.arange<64>();
#ifdef TWIN
  atomic_add(q + i, load(p + i));
#else
  atomic_add(p + i, load(q + i)); // expect-line
#endif
});
#endif

// case: atomic_type
// expect-error: kiln[T-06] atomic_max does not accept the element type; see the table of atomics in docs/operations.md
#if defined(TWIN) || defined(CASE_atomic_type)
inline constexpr auto atomic_type = kernel<"atomic_type">([](context& k, ptr<i8> p, ptr<i32> q) {
  auto i = k.arange<64>();
#ifdef TWIN
  atomic_max(q + i, 1);
  store(p, 1);
#else
  atomic_max(p + i, 1); // expect-line
#endif
  store(q, 1);
});
#endif

// case: atomic_value
// expect-error: kiln[T-04] the operand's element type or shape differs from the pointer's; cast<T>(...) or broadcast it
#if defined(TWIN) || defined(CASE_atomic_value)
inline constexpr auto atomic_value = kernel<"atomic_value">([](context&, ptr<f32> p, val<i32> n) {
#ifdef TWIN
  atomic_add(p, cast<f32>(n));
#else
  atomic_add(p, n); // expect-line
#endif
});
#endif

// case: cas_of_floats
// expect-error: kiln[T-06] atomic_cas needs 32- or 64-bit integers; bitcast floats
#if defined(TWIN) || defined(CASE_cas_of_floats)
inline constexpr auto cas_of_floats = kernel<"cas_of_floats">([](context&, ptr<f32> p, ptr<i32> q) {
#ifdef TWIN
  atomic_cas(q, 0, 1);
  store(p, 1.f);
#else
  atomic_cas(p, 0, 1); // expect-line
#endif
  store(q, 1);
});
#endif

// case: region_axes
// expect-error: kiln[T-05] a region needs one start and one extent per axis of the array
#if defined(TWIN) || defined(CASE_region_axes)
inline constexpr auto region_axes = kernel<"region_axes">([](context& k, array<f32, 2> a) {
#ifdef TWIN
  store(a.region(at(0, 0), extent<8, 8>), k.zeros<f32, 8, 8>());
#else
  store(a.region(at(0), extent<8>), k.zeros<f32, 8>()); // expect-line
#endif
});
#endif

// case: region_start
// expect-error: kiln[T-07] the start of a region must be an integer scalar, not i32[4]
#if defined(TWIN) || defined(CASE_region_start)
inline constexpr auto region_start = kernel<"region_start">([](context& k, array<f32, 1> a) {
#ifdef TWIN
  store(a.region(at(4), extent<8>), k.zeros<f32, 8>());
#else
  store(a.region(at(k.arange<4>()), extent<8>), k.zeros<f32, 8>()); // expect-line
#endif
});
void use_region_start() { region_start.check(); }
#endif

// case: tile_group
// expect-error: kiln[T-15] .group = 0; at least 1 is needed
#if defined(TWIN) || defined(CASE_tile_group)
inline constexpr auto tile_group = kernel<"tile_group">([](context& k, array<f32, 2> a) {
#ifdef TWIN
  auto [m, n] = k.program_tile(a.shape(), tile_size<8, 8>, {.group = 4});
#else
  auto [m, n] = k.program_tile(a.shape(), tile_size<8, 8>, {.group = 0}); // expect-line
#endif
  store(a.region(at(m, n), extent<8, 8>), k.zeros<f32, 8, 8>());
});
void use_tile_group() { tile_group.check(); }
#endif
