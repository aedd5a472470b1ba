// Launches whose arguments are not what the parameters take, and launches without a grid.
#include <kiln/kiln.hpp>
using namespace kiln;

inline constexpr auto fill = kernel<"fill">([](context& k, ptr<f32> p, val<i32> n, array<const f32, 2> a) {
  store(p + k.arange<64>(), cast<f32>(n) + reduce<sum>(load(a.region(at(0, 0), extent<1, 1>))));
});
inline constexpr auto whole = kernel<"whole", attributes{.persistent = true}>([](context& k, ptr<f32> p) { store(p + k.program_id(0), 1.f); });

// case: number
// expect-error: kiln[K-15] a val<T> parameter takes a number of T's kind; convert it: an integer parameter takes no floating number
#if defined(TWIN) || defined(CASE_number)
void use_number([[maybe_unused]] stream const& s, [[maybe_unused]] float* p, [[maybe_unused]] array_view<const f32, 2> v) {
#ifdef TWIN
  fill.launch(s, grid(1), p, 1, v);
#else
  fill.launch(s, grid(1), p, 1.5f, v); // expect-line
#endif
}
#endif

// case: not_a_pointer
// expect-error: kiln[K-15] a ptr<T> parameter takes a buffer<T>, a device_ptr<T> or a T*; const ones need ptr<const T>
#if defined(TWIN) || defined(CASE_not_a_pointer)
void use_not_a_pointer([[maybe_unused]] stream const& s, [[maybe_unused]] float* p, [[maybe_unused]] array_view<const f32, 2> v) {
#ifdef TWIN
  fill.launch(s, grid(1), p, 1, v);
#else
  fill.launch(s, grid(1), 1, 1, v); // expect-line
#endif
}
#endif

// case: pointer_type
// expect-error: kiln[K-15] a ptr<T> parameter takes a buffer<T>, a device_ptr<T> or a T*; const ones need ptr<const T>
#if defined(TWIN) || defined(CASE_pointer_type)
void use_pointer_type([[maybe_unused]] stream const& s, [[maybe_unused]] float* p, [[maybe_unused]] array_view<const f32, 2> v, double* q) {
  (void)p, (void)q;
#ifdef TWIN
  fill.launch(s, grid(1), p, 1, v);
#else
  fill.launch(s, grid(1), q, 1, v); // expect-line
#endif
}
#endif

// case: device_pointer_type
// expect-error: kiln[K-15] a ptr<T> parameter takes a buffer<T>, a device_ptr<T> or a T*; const ones need ptr<const T>
#if defined(TWIN) || defined(CASE_device_pointer_type)
void use_device_pointer_type([[maybe_unused]] stream const& s, [[maybe_unused]] float* p, [[maybe_unused]] array_view<const f32, 2> v) {
#ifdef TWIN
  fill.launch(s, grid(1), device_ptr(p), 1, v);
#else
  fill.launch(s, grid(1), device_ptr<const float>(p), 1, v); // expect-line
#endif
}
#endif

// case: buffer_type
// expect-error: kiln[K-15] a ptr<T> parameter takes a buffer<T>, a device_ptr<T> or a T*; const ones need ptr<const T>
#if defined(TWIN) || defined(CASE_buffer_type)
void use_buffer_type(stream const& s, [[maybe_unused]] array_view<const f32, 2> v, buffer<f32>& b, buffer<f64>& c) {
  (void)b, (void)c;
#ifdef TWIN
  fill.launch(s, grid(1), b, 1, v);
#else
  fill.launch(s, grid(1), c, 1, v); // expect-line
#endif
}
#endif

// case: not_a_view
// expect-error: kiln[K-15] an array<T, Rank> parameter takes x.view(...) of Rank extents of a buffer<T>, or strided(...); const ones need array<const T, Rank>
#if defined(TWIN) || defined(CASE_not_a_view)
void use_not_a_view([[maybe_unused]] stream const& s, [[maybe_unused]] float* p, [[maybe_unused]] array_view<const f32, 2> v) {
#ifdef TWIN
  fill.launch(s, grid(1), p, 1, v);
#else
  fill.launch(s, grid(1), p, 1, p); // expect-line
#endif
}
#endif

// case: view_rank
// expect-error: kiln[K-15] an array<T, Rank> parameter takes x.view(...) of Rank extents of a buffer<T>, or strided(...); const ones need array<const T, Rank>
#if defined(TWIN) || defined(CASE_view_rank)
void use_view_rank([[maybe_unused]] stream const& s, [[maybe_unused]] float* p, [[maybe_unused]] array_view<const f32, 2> v, array_view<f32, 3> w) {
  (void)v, (void)w;
#ifdef TWIN
  fill.launch(s, grid(1), p, 1, v);
#else
  fill.launch(s, grid(1), p, 1, w); // expect-line
#endif
}
#endif

// case: view_type
// expect-error: kiln[K-15] an array<T, Rank> parameter takes x.view(...) of Rank extents of a buffer<T>, or strided(...); const ones need array<const T, Rank>
#if defined(TWIN) || defined(CASE_view_type)
void use_view_type([[maybe_unused]] stream const& s, [[maybe_unused]] float* p, [[maybe_unused]] array_view<const f32, 2> v, array_view<f64, 2> w) {
  (void)v, (void)w;
#ifdef TWIN
  fill.launch(s, grid(1), p, 1, v);
#else
  fill.launch(s, grid(1), p, 1, w); // expect-line
#endif
}
#endif

// case: info_arguments
// expect-error: kiln[K-11] info takes one argument per kernel parameter, or none
#if defined(TWIN) || defined(CASE_info_arguments)
void use_info_arguments([[maybe_unused]] stream const& s, [[maybe_unused]] float* p, [[maybe_unused]] array_view<const f32, 2> v) {
#ifdef TWIN
  fill.info(s, p, 1, v);
#else
  fill.info(s, p); // expect-line
#endif
}
#endif

// case: no_grid
// expect-error: kiln[K-12] a launch needs a grid: launch(device, grid(n), ...); only attributes{.persistent = true} takes the device's size
#if defined(TWIN) || defined(CASE_no_grid)
void use_no_grid([[maybe_unused]] stream const& s, [[maybe_unused]] float* p, [[maybe_unused]] array_view<const f32, 2> v) {
#ifdef TWIN
  fill.launch(s, grid(1), p, 1, v);
#else
  fill.launch(s, p, 1, v); // expect-line
#endif
}
#endif

// case: persistent_arguments
// expect-error: kiln[K-11] a launch needs one argument per kernel parameter (the context is not one)
#if defined(TWIN) || defined(CASE_persistent_arguments)
void use_persistent_arguments([[maybe_unused]] stream const& s, [[maybe_unused]] float* p) {
#ifdef TWIN
  whole.launch(s, p);
#else
  whole.launch(s, p, 1); // expect-line
#endif
}
#endif
