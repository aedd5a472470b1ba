// Sorting, the best k, histograms and random numbers: axes, counts and element types that they do not take.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: sort_axis
// expect-error: kiln[T-11] sort: no such axis
#if defined(TWIN) || defined(CASE_sort_axis)
inline constexpr auto sort_axis = kernel<"sort_axis">([](context& k, ptr<f32> p) {
  auto i = k.arange<64>();
#ifdef TWIN
  store(p + i, sort<-1>(load(p + i), {.descending = true}));
#else
  store(p + i, sort<1>(load(p + i))); // expect-line
#endif
  (void)k;
});
#endif

// case: sort_type
// expect-error: kiln[T-06] sort needs integer or floating elements; cast<T>(...) first
#if defined(TWIN) || defined(CASE_sort_type)
inline constexpr auto sort_type = kernel<"sort_type">([](context& k, ptr<f32> p) {
  auto i = k.arange<64>();
#ifdef TWIN
  store(p + i, sort(load(p + i)));
#else
  store(p + i, cast<f32>(sort(load(p + i) > 0))); // expect-line
#endif
  (void)k;
});
#endif

// case: topk_count
// expect-error: kiln[T-10] topk: more elements than the axis has, or none
#if defined(TWIN) || defined(CASE_topk_count)
inline constexpr auto topk_count = kernel<"topk_count">([](context& k, ptr<f32> p, ptr<i32> q) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  auto [best, where_best] = topk<64>(x);
  store(q + k.arange<64>(), where_best);
  store(p + k.arange<64>(), best);
#else
  topk<65>(x); // expect-line
  (void)q;
#endif
  (void)k;
});
#endif

// case: topk_axis
// expect-error: kiln[T-11] topk: no such axis
#if defined(TWIN) || defined(CASE_topk_axis)
inline constexpr auto topk_axis = kernel<"topk_axis">([](context& k, ptr<f32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p + k.arange<4>(), topk<4, 0>(x).first);
#else
  topk<4, 1>(x); // expect-line
#endif
  (void)k;
});
#endif

// case: topk_type
// expect-error: kiln[T-06] topk needs integer or floating elements; cast<T>(...) first
#if defined(TWIN) || defined(CASE_topk_type)
inline constexpr auto topk_type = kernel<"topk_type">([](context& k, ptr<f32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p + k.arange<4>(), topk<4>(x).first);
#else
  topk<4>(x > 0); // expect-line
#endif
  (void)k;
});
#endif

// case: histogram_type
// expect-error: kiln[T-07] histogram counts integers; cast<i32>(...) first
#if defined(TWIN) || defined(CASE_histogram_type)
inline constexpr auto histogram_type = kernel<"histogram_type">([](context& k, ptr<f32> p, ptr<i32> q) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(q + k.arange<16>(), histogram<16>(cast<i32>(x)));
#else
  store(q + k.arange<16>(), histogram<16>(x)); // expect-line
#endif
  (void)k;
});
#endif

// case: histogram_mask
// expect-error: kiln[T-05] histogram needs a mask of the values' shape
#if defined(TWIN) || defined(CASE_histogram_mask)
inline constexpr auto histogram_mask = kernel<"histogram_mask">([](context& k, ptr<i32> q) {
  auto x = load(q + k.arange<64>());
#ifdef TWIN
  store(q + k.arange<16>(), histogram<16>(x, x > 2));
#else
  store(q + k.arange<16>(), histogram<16>(x, k.arange<32>() > 2)); // expect-line
#endif
  (void)k;
});
#endif

// case: philox_offset
// expect-error: kiln[T-07] philox needs an integer seed and integer offsets; cast<u64>(...) them
#if defined(TWIN) || defined(CASE_philox_offset)
inline constexpr auto philox_offset = kernel<"philox_offset">([](context& k, ptr<f32> p, val<f32> seed) {
  auto i = k.arange<64>();
#ifdef TWIN
  store(p + i, uniform(cast<i32>(seed), i));
#else
  store(p + i, unit_interval(philox(seed, i).first)); // expect-line
#endif
  (void)k;
});
#endif
