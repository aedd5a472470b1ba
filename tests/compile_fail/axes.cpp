// Scans, argmax and argmin, gathers, scatters and combines: axes and element types that they do not take.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: cumsum_axis
// expect-error: kiln[T-11] cumsum: no such axis
#if defined(TWIN) || defined(CASE_cumsum_axis)
inline constexpr auto cumsum_axis = kernel<"cumsum_axis">([](context& k, ptr<f32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p + k.arange<64>(), cumsum<0>(x));
#else
  store(p + k.arange<64>(), cumsum<1>(x)); // expect-line
#endif
  (void)k;
});
#endif

// case: cumsum_type
// expect-error: kiln[T-06] cumsum needs integer or floating elements
#if defined(TWIN) || defined(CASE_cumsum_type)
inline constexpr auto cumsum_type = kernel<"cumsum_type">([](context& k, ptr<f32> p) {
  auto i = k.arange<64>();
  auto x = load(p + i) > 0;
#ifdef TWIN
  store(p + i, cast<f32>(cumsum(cast<i32>(x))));
#else
  store(p + i, cast<f32>(cumsum(x))); // expect-line
#endif
  (void)k;
});
#endif

// case: scan_type
// expect-error: kiln[T-06] this scan does not accept the element type: any and all take b1, bit_xor integers, the others numbers
#if defined(TWIN) || defined(CASE_scan_type)
inline constexpr auto scan_type = kernel<"scan_type">([](context& k, ptr<f32> p) {
  auto i = k.arange<64>();
  auto x = load(p + i);
#ifdef TWIN
  store(p + i, cast<f32>(scan<any>(x > 0)));
#else
  store(p + i, cast<f32>(scan<any>(x))); // expect-line
#endif
  (void)k;
});
#endif

// case: scan_combine_type
// expect-error: kiln[T-12] a combine must return a scalar of the tile's element type; cast<T>(...) the result
#if defined(TWIN) || defined(CASE_scan_combine_type)
inline constexpr auto scan_combine_type = kernel<"scan_combine_type">([](context& k, ptr<f32> p) {
  auto i = k.arange<64>();
  auto x = load(p + i);
#ifdef TWIN
  store(p + i, scan<0>(x, [](auto a, auto b) { return a * b; }));
#else
  store(p + i, scan<0>(x, [](auto a, auto b) { return cast<f64>(a * b); })); // expect-line
#endif
  (void)k;
});
#endif

// case: scan_pair_type
// expect-error: kiln[T-12] a combine of pairs must return pair_of(first, second) with the tiles' element types
#if defined(TWIN) || defined(CASE_scan_pair_type)
inline constexpr auto scan_pair_type = kernel<"scan_pair_type">([](context& k, ptr<f32> p, ptr<i32> q) {
  auto i = k.arange<64>();
#ifdef TWIN
  auto both = scan<0>(load(p + i), i, [](auto a, auto, auto, auto j) { return pair_of{a, j}; }, {.reverse = true});
  store(p + i, both.first);
  store(q + i, both.second);
#else
  scan<0>(load(p + i), i, [](auto a, auto, auto, auto j) { return pair_of{j, a}; }); // expect-line
  (void)q;
#endif
  (void)k;
});
#endif

// case: argmax_type
// expect-error: kiln[T-06] argmax needs integer or floating elements
#if defined(TWIN) || defined(CASE_argmax_type)
inline constexpr auto argmax_type = kernel<"argmax_type">([](context& k, ptr<i32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p, argmax(x));
#else
  store(p, argmax(x > 0)); // expect-line
#endif
  (void)k;
});
#endif

// case: argmin_type
// expect-error: kiln[T-06] argmin needs integer or floating elements
#if defined(TWIN) || defined(CASE_argmin_type)
inline constexpr auto argmin_type = kernel<"argmin_type">([](context& k, ptr<i32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p, argmin(x));
#else
  store(p, argmin(x > 0)); // expect-line
#endif
  (void)k;
});
#endif

// case: argmin_axis
// expect-error: kiln[T-11] argmin: no such axis
#if defined(TWIN) || defined(CASE_argmin_axis)
inline constexpr auto argmin_axis = kernel<"argmin_axis">([](context& k, ptr<i32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p, argmin<-1>(x));
#else
  store(p, argmin<-2>(x)); // expect-line
#endif
  (void)k;
});
#endif

// case: iota_axis
// expect-error: kiln[T-11] iota: no such axis
#if defined(TWIN) || defined(CASE_iota_axis)
inline constexpr auto iota_axis = kernel<"iota_axis">([](context& k, ptr<i32> p) {
#ifdef TWIN
  auto i = k.iota<1, 8, 8>();
  store(p + i, i);
#else
  auto i = k.iota<2, 8, 8>(); // expect-line
  store(p + i, i);
#endif
  (void)k;
});
#endif

// case: trans_of_a_row
// expect-error: kiln[T-11] trans needs at least two axes
#if defined(TWIN) || defined(CASE_trans_of_a_row)
inline constexpr auto trans_of_a_row = kernel<"trans_of_a_row">([](context& k, ptr<i32> p) {
  auto i = k.iota<1, 8, 8>();
#ifdef TWIN
  store(p + i, trans(i));
#else
  store(p + i, trans(k.arange<8>())); // expect-line
#endif
  (void)k;
});
#endif

// case: gather_beside
// expect-error: kiln[T-05] gather: beside the gathered axis the indices' extents must not exceed the source's
#if defined(TWIN) || defined(CASE_gather_beside)
inline constexpr auto gather_beside = kernel<"gather_beside">([](context& k, ptr<i32> p) {
  auto s = k.iota<0, 8, 8>();
#ifdef TWIN
  store(p + s, gather<0>(s, k.zeros<i32, 8, 8>()));
#else
  store(p + k.iota<0, 8, 16>(), gather<0>(s, k.zeros<i32, 8, 16>())); // expect-line
#endif
  (void)k;
});
#endif

// case: round_of_integers
// expect-error: kiln[T-06] round needs a floating type; integers are whole already
#if defined(TWIN) || defined(CASE_round_of_integers)
inline constexpr auto round_of_integers = kernel<"round_of_integers">([](context& k, ptr<i32> p) {
  auto x = load(p);
#ifdef TWIN
  store(p, x);
#else
  store(p, round(x)); // expect-line
#endif
  (void)k;
});
#endif

// case: ceil_of_integers
// expect-error: kiln[T-06] ceil needs a floating type; integers are whole already
#if defined(TWIN) || defined(CASE_ceil_of_integers)
inline constexpr auto ceil_of_integers = kernel<"ceil_of_integers">([](context& k, ptr<i32> p) {
  auto x = load(p);
#ifdef TWIN
  store(p, x);
#else
  store(p, ceil(x)); // expect-line
#endif
  (void)k;
});
#endif

// case: floor_div_of_floats
// expect-error: kiln[T-06] floor_div needs integers
#if defined(TWIN) || defined(CASE_floor_div_of_floats)
inline constexpr auto floor_div_of_floats = kernel<"floor_div_of_floats">([](context& k, ptr<f32> p) {
  auto x = load(p);
#ifdef TWIN
  store(p, floor(x / 2));
#else
  store(p, floor_div(x, 2)); // expect-line
#endif
  (void)k;
});
#endif

// case: isnan_of_eight_bits
// expect-error: kiln[T-06] isnan needs f16, bf16, f32 or f64 elements; cast<f32>(...) the operand first
#if defined(TWIN) || defined(CASE_isnan_of_eight_bits)
inline constexpr auto isnan_of_eight_bits = kernel<"isnan_of_eight_bits">([](context& k, ptr<f8e4m3> p, ptr<i32> q) {
  auto x = load(p);
#ifdef TWIN
  store(q, cast<i32>(isnan(cast<f32>(x))));
#else
  store(q, cast<i32>(isnan(x))); // expect-line
#endif
  (void)k;
});
#endif

// case: fma_of_numbers
// expect-error: kiln[T-04] the first operand of fma must be a tile; use k.full<T>(...)
#if defined(TWIN) || defined(CASE_fma_of_numbers)
inline constexpr auto fma_of_numbers = kernel<"fma_of_numbers">([](context& k, ptr<f32> p) {
  auto x = load(p);
#ifdef TWIN
  store(p, fma(k.full<f32>(2), x, x));
#else
  store(p, fma(2.f, x, x)); // expect-line
#endif
  (void)k;
});
#endif

// case: where_types
// expect-error: kiln[T-04] the values' element types do not combine; cast<T>(...) one of them
#if defined(TWIN) || defined(CASE_where_types)
inline constexpr auto where_types = kernel<"where_types">([](context& k, ptr<f32> p, val<f8e4m3> n) {
  auto x = load(p);
#ifdef TWIN
  store(p, where(x > 0, x, cast<f32>(n)));
#else
  store(p, where(x > 0, x, n)); // expect-line
#endif
  (void)k;
});
#endif

// case: contiguous_three
// expect-error: kiln[T-09] max_contiguous needs a power of two
#if defined(TWIN) || defined(CASE_contiguous_three)
inline constexpr auto contiguous_three = kernel<"contiguous_three">([](context& k, ptr<i32> p) {
  auto i = k.arange<64>();
#ifdef TWIN
  store(p + max_contiguous<4>(i), i);
#else
  store(p + max_contiguous<3>(i), i); // expect-line
#endif
  (void)k;
});
#endif

// case: pair_shapes
// expect-error: kiln[T-05] a reduction over two tiles needs equal shapes
#if defined(TWIN) || defined(CASE_pair_shapes)
inline constexpr auto pair_shapes = kernel<"pair_shapes">([](context& k, ptr<f32> p) {
  auto x = load(p + k.arange<64>());
  auto f = [](auto a, auto i, auto b, auto j) { return pair_of(max(a, b), max(i, j)); };
#ifdef TWIN
  store(p, reduce<0>(x, k.arange<64>(), f).first);
#else
  store(p, reduce<0>(x, k.arange<32>(), f).first); // expect-line
#endif
  (void)k;
});
#endif

// case: pair_result
// expect-error: kiln[T-12] a combine of pairs must return pair_of(first, second) with the tiles' element types
#if defined(TWIN) || defined(CASE_pair_result)
inline constexpr auto pair_result = kernel<"pair_result">([](context& k, ptr<f32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p, reduce<0>(x, x, [](auto a, auto i, auto b, auto j) { return pair_of(a + b, i + j); }).first);
#else
  store(p, reduce<0>(x, x, [](auto a, auto i, auto b, auto j) { return pair_of(a + b, cast<i32>(i + j)); }).first); // expect-line
#endif
  (void)k;
});
#endif

// case: scatter_type
// expect-error: kiln[T-04] local_scatter: the value's element type differs from the view's; cast<T>(...) it
#if defined(TWIN) || defined(CASE_scatter_type)
inline constexpr auto scatter_type = kernel<"scatter_type">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>();
#ifdef TWIN
  k.local_scatter(a[0], k.zeros<f32, 8>(), k.arange<8>());
#else
  k.local_scatter(a[0], k.zeros<f16, 8>(), k.arange<8>()); // expect-line
#endif
  store(p, 1.f);
});
#endif

// case: scatter_indices
// expect-error: kiln[T-07] local_scatter needs integer indices; cast<i32>(...) them
#if defined(TWIN) || defined(CASE_scatter_indices)
inline constexpr auto scatter_indices = kernel<"scatter_indices">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 64>();
#ifdef TWIN
  k.local_scatter(a[0], k.zeros<f32, 8>(), k.arange<8>());
#else
  k.local_scatter(a[0], k.zeros<f32, 8>(), k.zeros<f32, 8>()); // expect-line
#endif
  store(p, 1.f);
});
#endif

// case: scatter_rank
// expect-error: kiln[T-05] local_scatter needs indices of the view's rank
#if defined(TWIN) || defined(CASE_scatter_rank)
inline constexpr auto scatter_rank = kernel<"scatter_rank">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 8, 8>();
#ifdef TWIN
  k.local_scatter(a[0], k.zeros<f32, 8, 8>(), k.iota<0, 8, 8>());
#else
  k.local_scatter(a[0], k.zeros<f32, 8>(), k.arange<8>()); // expect-line
#endif
  store(p, 1.f);
});
#endif

// case: local_gather_indices
// expect-error: kiln[T-07] local_gather needs integer indices; cast<i32>(...) them
#if defined(TWIN) || defined(CASE_local_gather_indices)
inline constexpr auto local_gather_indices = kernel<"local_gather_indices">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 8>();
  k.local_store(a[0], k.zeros<f32, 8>());
#ifdef TWIN
  store(p + k.arange<8>(), k.local_gather(a[0], k.arange<8>()));
#else
  store(p + k.arange<8>(), k.local_gather(a[0], k.zeros<f32, 8>())); // expect-line
#endif
  (void)k;
});
#endif

// case: slot_of_floats
// expect-error: kiln[T-07] an index must be an integer scalar or a C++ integer
#if defined(TWIN) || defined(CASE_slot_of_floats)
inline constexpr auto slot_of_floats = kernel<"slot_of_floats">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 8>();
#ifdef TWIN
  k.local_store(a[0], k.zeros<f32, 8>());
#else
  k.local_store(a[0.5], k.zeros<f32, 8>()); // expect-line
#endif
  store(p, 1.f);
});
#endif

// case: slot_by_a_tile
// expect-error: kiln[T-07] an index must be an integer scalar or a C++ integer
#if defined(TWIN) || defined(CASE_slot_by_a_tile)
inline constexpr auto slot_by_a_tile = kernel<"slot_by_a_tile">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 8>(2);
#ifdef TWIN
  k.local_store(a[k.program_id(0) % 2], k.zeros<f32, 8>());
#else
  k.local_store(a[k.arange<8>()], k.zeros<f32, 8>()); // expect-line
#endif
  store(p, 1.f);
});
#endif

// case: slice_rank
// expect-error: kiln[R-BD02] local_slice needs one extent per axis of the view
#if defined(TWIN) || defined(CASE_slice_rank)
inline constexpr auto slice_rank = kernel<"slice_rank">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 8, 8>();
#ifdef TWIN
  k.local_store(k.local_slice<8, 4>(a[0], {0, 4}), k.zeros<f32, 8, 4>());
#else
  k.local_store(k.local_slice<4>(a[0], {0, 4}), k.zeros<f32, 4>()); // expect-line
#endif
  store(p, 1.f);
});
#endif

// case: trans_of_a_row_view
// expect-error: kiln[R-BD09] local_trans needs at least two axes
#if defined(TWIN) || defined(CASE_trans_of_a_row_view)
inline constexpr auto trans_of_a_row_view = kernel<"trans_of_a_row_view">([](context& k, ptr<f32> p) {
  auto a = k.local_alloc<f32, 8>();
  auto b = k.local_alloc<f32, 8, 4>();
#ifdef TWIN
  k.local_store(k.local_trans(b[0]), k.zeros<f32, 4, 8>());
#else
  k.local_store(k.local_trans(a[0]), k.zeros<f32, 8>()); // expect-line
#endif
  (void)a, (void)b, store(p, 1.f);
});
#endif

// case: seven_axes
// expect-error: kiln[T-02] a tile has at most 6 axes
#if defined(TWIN) || defined(CASE_seven_axes)
inline constexpr auto seven_axes = kernel<"seven_axes">([](context& k, ptr<f32> p) {
#ifdef TWIN
  store(p, reduce<sum>(k.zeros<f32, 2, 2, 2, 2, 2, 2>()));
#else
  store(p, reduce<sum>(k.zeros<f32, 2, 2, 2, 2, 2, 2, 2>())); // expect-line
#endif
  (void)k;
});
#endif
