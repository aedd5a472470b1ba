// Slots, slices and indices that no launch can make right.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: slot
// expect-error: kiln[R-BD01] a: index 2, valid 0..1
#if defined(TWIN) || defined(CASE_slot)
inline constexpr auto slot = kernel<"slot">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
#ifdef TWIN
  auto b = a[1];
#else
  auto b = a[2]; // expect-line
#endif
  k.local_store(b, k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(b));
});
void use_slot() { slot.check(); }
#endif

// case: slot_interval
// expect-error: kiln[R-BD01] a: index in 4..7, valid 0..3
#if defined(TWIN) || defined(CASE_slot_interval)
inline constexpr auto slot_interval = kernel<"slot_interval">([](context& k, ptr<f32> p, val<i32> n) {
  auto a = k.local_alloc<f32, 64>(4, {.name = "a"});
  auto i = (n & 3) + 4;
#ifdef TWIN
  auto b = a[i - 4];
#else
  auto b = a[i]; // expect-line
#endif
  k.local_store(b, k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(b));
});
void use_slot_interval() { slot_interval.check(); }
#endif

// case: row
// expect-error: kiln[R-BD01] a: index along axis 0 8, valid 0..7
#if defined(TWIN) || defined(CASE_row)
inline constexpr auto row = kernel<"row">([](context& k, ptr<f32> p) {
  auto a = k.alloc_shared<f32, 8, 64>({.name = "a"});
  k.local_store(a, k.zeros<f32, 8, 64>());
#ifdef TWIN
  store(p + k.arange<64>(), k.local_load(a[7]));
#else
  store(p + k.arange<64>(), k.local_load(a[8])); // expect-line
#endif
});
void use_row() { row.check(); }
#endif

// case: slice_end
// expect-error: kiln[R-BD02] a slice of a: elements 64..95 of 64 (axis 0)
#if defined(TWIN) || defined(CASE_slice_end)
inline constexpr auto slice_end = kernel<"slice_end">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64, 8>(1, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64, 8>());
#ifdef TWIN
  auto part = k.local_slice<32, 8>(a[0], {32, 0});
#else
  auto part = k.local_slice<32, 8>(a[0], {64, 0}); // expect-line
#endif
  store(p + k.iota<0, 32, 8>() * 8 + k.iota<1, 32, 8>(), k.local_load(part));
});
void use_slice_end() { slice_end.check(); }
#endif

// case: slice_offset
// expect-error: kiln[R-BD03] a slice of a: offset 16 is not a multiple of the extent of the slice, 32 (axis 0)
#if defined(TWIN) || defined(CASE_slice_offset)
inline constexpr auto slice_offset = kernel<"slice_offset">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64, 8>(1, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64, 8>());
#ifdef TWIN
  auto part = k.local_slice<32, 8>(a[0], {0, 0});
#else
  auto part = k.local_slice<32, 8>(a[0], {16, 0}); // expect-line
#endif
  store(p + k.iota<0, 32, 8>() * 8 + k.iota<1, 32, 8>(), k.local_load(part));
});
void use_slice_offset() { slice_offset.check(); }
#endif

// case: slice_runtime_offset
// expect-error: kiln[R-BD03] a slice of a: offset 4 + a multiple of 8 is not a multiple of the extent of the slice, 32 (axis 0)
#if defined(TWIN) || defined(CASE_slice_runtime_offset)
inline constexpr auto slice_runtime_offset = kernel<"slice_runtime_offset">([](context& k, ptr<f32> p, val<i32> n) {
  auto a = k.local_alloc<f32, 64, 8>(1, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64, 8>());
#ifdef TWIN
  auto part = k.local_slice<32, 8>(a[0], {n * 32, 0});
#else
  auto part = k.local_slice<32, 8>(a[0], {n * 8 + 4, 0}); // expect-line
#endif
  store(p + k.iota<0, 32, 8>() * 8 + k.iota<1, 32, 8>(), k.local_load(part));
});
void use_slice_runtime_offset() { slice_runtime_offset.check(); }
#endif

// case: slice_other_axis
// expect-error: kiln[R-BD02] a slice of a: offset 4 on axis 1, which is not narrowed; it must be 0
#if defined(TWIN) || defined(CASE_slice_other_axis)
inline constexpr auto slice_other_axis = kernel<"slice_other_axis">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64, 8>(1, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64, 8>());
#ifdef TWIN
  auto part = k.local_slice<32, 8>(a[0], {32, 0});
#else
  auto part = k.local_slice<32, 8>(a[0], {32, 4}); // expect-line
#endif
  store(p + k.iota<0, 32, 8>() * 8 + k.iota<1, 32, 8>(), k.local_load(part));
});
void use_slice_other_axis() { slice_other_axis.check(); }
#endif

// case: slice_extent
// expect-error: kiln[R-BD02] a slice of a: 128 elements of 64 (axis 0)
#if defined(TWIN) || defined(CASE_slice_extent)
inline constexpr auto slice_extent = kernel<"slice_extent">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64>());
#ifdef TWIN
  store(p + k.arange<32>(), k.local_load(k.local_slice<32>(a[0], {0})));
#else
  store(p + k.arange<128>(), k.local_load(k.local_slice<128>(a[0], {0}))); // expect-line
#endif
});
void use_slice_extent() { slice_extent.check(); }
#endif

// case: slice_width
// expect-error: kiln[R-BD03] a slice of a: extent 48 of 96 (axis 0); a narrowed axis needs a power of two that divides it
#if defined(TWIN) || defined(CASE_slice_width)
inline constexpr auto slice_width = kernel<"slice_width">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 96>(1, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 96>());
#ifdef TWIN
  store(p + k.arange<32>(), k.local_load(k.local_slice<32>(a[0], {64})));
#else
  store(p + k.arange<48>(), k.local_load(k.local_slice<48>(a[0], {48}))); // expect-line
#endif
});
void use_slice_width() { slice_width.check(); }
#endif

// case: view_reshape
// expect-error: kiln[R-BD08] local_reshape of a: 64 elements as 32
#if defined(TWIN) || defined(CASE_view_reshape)
inline constexpr auto view_reshape = kernel<"view_reshape">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 8, 8>(1, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 8, 8>());
#ifdef TWIN
  store(p + k.arange<64>(), k.local_load(k.local_reshape<64>(a[0])));
#else
  store(p + k.arange<32>(), k.local_load(k.local_reshape<32>(a[0]))); // expect-line
#endif
});
void use_view_reshape() { view_reshape.check(); }
#endif

// case: view_trans
// expect-error: kiln[R-BD09] local_trans of a: {0,0} is not a permutation of 0..1
#if defined(TWIN) || defined(CASE_view_trans)
inline constexpr auto view_trans = kernel<"view_trans">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 8, 8>(1, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 8, 8>());
#ifdef TWIN
  store(p + k.iota<0, 8, 8>() * 8 + k.iota<1, 8, 8>(), k.local_load(k.local_trans<1, 0>(a[0])));
#else
  store(p + k.iota<0, 8, 8>() * 8 + k.iota<1, 8, 8>(), k.local_load(k.local_trans<0, 0>(a[0]))); // expect-line
#endif
});
void use_view_trans() { view_trans.check(); }
#endif

// case: alignment
// expect-error: kiln[R-BD08] a: .align = 96 is not a power of two
#if defined(TWIN) || defined(CASE_alignment)
inline constexpr auto alignment = kernel<"alignment">([](context& k, ptr<f32> p) {
#ifdef TWIN
  auto a = k.local_alloc<f32, 64>(1, {.align = 256, .name = "a"});
#else
  auto a = k.local_alloc<f32, 64>(1, {.align = 96, .name = "a"}); // expect-line
#endif
  k.local_store(a[0], k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(a[0]));
});
void use_alignment() { alignment.check(); }
#endif

// case: gathered
// expect-error: kiln[R-BD11] gather: every index is in 64..71, valid 0..63 (axis 0)
#if defined(TWIN) || defined(CASE_gathered)
inline constexpr auto gathered = kernel<"gathered">([](context& k, ptr<f32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  auto y = gather<0>(x, k.arange<8>(56));
#else
  auto y = gather<0>(x, k.arange<8>(64)); // expect-line
#endif
  store(p + k.arange<8>(), y);
});
void use_gathered() { gathered.check(); }
#endif

// case: grid_axis
// expect-error: kiln[R-BD01] grid axis 3, valid 0..2
#if defined(TWIN) || defined(CASE_grid_axis)
inline constexpr auto grid_axis = kernel<"grid_axis">([](context& k, ptr<f32> p) {
#ifdef TWIN
  auto i = k.program_id(2);
#else
  auto i = k.program_id(3); // expect-line
#endif
  store(p + i, 1.f);
});
void use_grid_axis() { grid_axis.check(); }
#endif

// case: array_axis
// expect-error: kiln[R-BD01] axis 2 of an array of rank 2, valid 0..1
#if defined(TWIN) || defined(CASE_array_axis)
inline constexpr auto array_axis = kernel<"array_axis">([](context&, array<i64, 2> a) {
#ifdef TWIN
  auto n = a.extent(1);
#else
  auto n = a.extent(2); // expect-line
#endif
  store(a.data(), n);
});
void use_array_axis() { array_axis.check(); }
#endif

// case: folded_step
// expect-error: kiln[K-06] a range with step 0 never ends; give a step of 1 or more, or -1 or less
#if defined(TWIN) || defined(CASE_folded_step)
inline constexpr auto folded_step = kernel<"folded_step">([](context& k, ptr<f32> p, val<i32> n) {
#ifdef TWIN
  auto step = k.let(4) - 2;
#else
  auto step = k.let(4) - 4;
#endif
  for (auto i : k.range(0, n, step)) store(p + i, 1.f); // expect-line
});
void use_folded_step() { folded_step.check(); }
#endif
