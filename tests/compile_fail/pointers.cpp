// Pointers: what they are made of, how they move, and that they are values.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: condition
// expect-error: kiln[K-02] a recorded pointer has no C++ truth value; pass a flag as val<bool> instead
#if defined(TWIN) || defined(CASE_condition)
inline constexpr auto condition = kernel<"condition">([](context& k, ptr<f32> p, val<bool> flag) {
#ifdef TWIN
  k.when(flag, [&] { store(p, 1.f); });
#else
  if (p) store(p, 1.f); // expect-line
  (void)flag;
#endif
  (void)k;
});
#endif

// case: floating_offset
// expect-error: kiln[T-07] a pointer moves by integers; cast<i32> or cast<i64> the offset
#if defined(TWIN) || defined(CASE_floating_offset)
inline constexpr auto floating_offset = kernel<"floating_offset">([](context& k, ptr<f32> p) {
  auto q = k.var(p);
#ifdef TWIN
  store(q + 1, 1.f);
#else
  store(q + 1.f, 1.f); // expect-line
#endif
  (void)k;
});
#endif

// case: var_shape
// expect-error: kiln[K-04] the var holds a pointer of another shape than the result; make the var hold the tile of pointers
#if defined(TWIN) || defined(CASE_var_shape)
inline constexpr auto var_shape = kernel<"var_shape">([](context& k, ptr<f32> p) {
  auto i = k.arange<64>();
#ifdef TWIN
  auto q = k.var(p + i);
  q += i;
  store(q, 1.f);
#else
  auto q = k.var(p);
  q += i; // expect-line
  store(q, 1.f);
#endif
  (void)k;
});
#endif

// case: offset_shapes
// expect-error: kiln[T-05] the shapes of pointer and offset do not broadcast: aligned at the last axis, extents must be equal or 1
#if defined(TWIN) || defined(CASE_offset_shapes)
inline constexpr auto offset_shapes = kernel<"offset_shapes">([](context& k, ptr<f32> p) {
  auto q = k.var(p + k.arange<64>());
#ifdef TWIN
  store(q + k.arange<64>(), 1.f);
#else
  store(q + k.arange<32>(), 1.f); // expect-line
#endif
  (void)k;
});
#endif

// case: cas_to_const
// expect-error: kiln[T-14] atomic_cas through a pointer to const; declare the parameter ptr<T>
#if defined(TWIN) || defined(CASE_cas_to_const)
inline constexpr auto cas_to_const = kernel<"cas_to_const">([](context& k, ptr<i32> p, ptr<const i32> q) {
  (void)p, (void)q;
#ifdef TWIN
  atomic_cas(p, 0, 1);
#else
  atomic_cas(q, 0, 1); // expect-line
#endif
  (void)k;
});
#endif

// case: cas_value
// expect-error: kiln[T-04] an operand's element type or shape differs from the pointer's; cast<T>(...) or broadcast it
#if defined(TWIN) || defined(CASE_cas_value)
inline constexpr auto cas_value = kernel<"cas_value">([](context& k, ptr<i32> p, val<i64> x) {
#ifdef TWIN
  atomic_cas(p, 0, cast<i32>(x));
#else
  atomic_cas(p, 0, x); // expect-line
#endif
  (void)k;
});
#endif

// case: literal_in_other
// expect-error: kiln[T-04] .other = 300 does not fit the element type i8
#if defined(TWIN) || defined(CASE_literal_in_other)
inline constexpr auto literal_in_other = kernel<"literal_in_other">([](context& k, ptr<i8> p, val<i32> n) {
  auto i = k.arange<64>();
#ifdef TWIN
  store(p + i, load(p + i, {.mask = i < n, .other = 100}));
#else
  store(p + i, load(p + i, {.mask = i < n, .other = 300})); // expect-line
#endif
  (void)k;
});
void use_literal_in_other() { literal_in_other.check(); }
#endif

// case: literal_in_var
// expect-error: kiln[T-04] a number does not fit the element type u8 of the var; make it a var of a wider type
#if defined(TWIN) || defined(CASE_literal_in_var)
inline constexpr auto literal_in_var = kernel<"literal_in_var">([](context& k, ptr<u8> p) {
  auto v = k.var(load(p));
#ifdef TWIN
  v = 255;
#else
  v = 256; // expect-line
#endif
  store(p, v);
});
void use_literal_in_var() { literal_in_var.check(); }
#endif

// case: literal_in_full
// expect-error: kiln[T-04] the number 40000 does not fit the element type i16; cast the other operand to a wider type
#if defined(TWIN) || defined(CASE_literal_in_full)
inline constexpr auto literal_in_full = kernel<"literal_in_full">([](context& k, ptr<i16> p) {
#ifdef TWIN
  store(p + k.arange<64>(), k.full<i16, 64>(30000));
#else
  store(p + k.arange<64>(), k.full<i16, 64>(40000)); // expect-line
#endif
  (void)k;
});
void use_literal_in_full() { literal_in_full.check(); }
#endif

// case: literal_in_let
// expect-error: kiln[T-04] the number -1 does not fit the element type u32; cast the other operand to a wider type
#if defined(TWIN) || defined(CASE_literal_in_let)
inline constexpr auto literal_in_let = kernel<"literal_in_let">([](context& k, ptr<u32> p) {
#ifdef TWIN
  store(p, k.let<u32>(1));
#else
  store(p, k.let<u32>(-1)); // expect-line
#endif
  (void)k;
});
void use_literal_in_let() { literal_in_let.check(); }
#endif

// case: pointer_index
// expect-error: kiln[T-17] a recorded pointer has no []; load(p + i) reads, store(p + i, x) writes
#if defined(TWIN) || defined(CASE_pointer_index)
inline constexpr auto pointer_index = kernel<"pointer_index">([](context& k, ptr<const f32> p, ptr<f32> q) {
  auto i = k.arange<64>();
#ifdef TWIN
  store(q + i, load(p + i));
#else
  store(q + i, p[i]); // expect-line
#endif
});
#endif

// case: pointer_star
// expect-error: kiln[T-17] a recorded pointer has no *; load(p) reads, store(p, x) writes
#if defined(TWIN) || defined(CASE_pointer_star)
inline constexpr auto pointer_star = kernel<"pointer_star">([](context& k, ptr<f32> p) {
#ifdef TWIN
  store(p + 1, 1.f);
#else
  *(p + 1) = 1.f; // expect-line
#endif
  (void)k;
});
#endif

// case: array_loaded
// expect-error: kiln[T-17] load takes a part of an array, a.region(at(...), extent<...>), or pointers, a.data() + i
#if defined(TWIN) || defined(CASE_array_loaded)
inline constexpr auto array_loaded = kernel<"array_loaded">([](context& k, array<const f32, 1> a, ptr<f32> p) {
#ifdef TWIN
  store(p + k.arange<64>(), load(a.region(at(0), extent<64>)));
#else
  store(p + k.arange<64>(), load(a)); // expect-line
#endif
});
#endif

// case: array_stored
// expect-error: kiln[T-17] store takes a part of an array, a.region(at(...), extent<...>), or pointers, a.data() + i
#if defined(TWIN) || defined(CASE_array_stored)
inline constexpr auto array_stored = kernel<"array_stored">([](context& k, array<f32, 1> a) {
#ifdef TWIN
  store(a.data() + k.arange<64>(), 1.f);
#else
  store(a, k.full<f32, 64>(1)); // expect-line
#endif
});
#endif

// case: region_size
// expect-error: kiln[T-05] a region needs one start and one extent per axis of the array
#if defined(TWIN) || defined(CASE_region_size)
inline constexpr auto region_size = kernel<"region_size">([](context& k, array<f32, 2> a) {
#ifdef TWIN
  store(a.region(at(0, 0), extent<1, 64>), 1.f);
#else
  store(a.region(at(0, 0), extent<64>), 1.f); // expect-line
#endif
  (void)k;
});
#endif
