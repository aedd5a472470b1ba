// Shapes: reshape, axes, reductions, gathers, matrix products.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: element_type
// expect-error: kiln[T-01] not an element type: use bool, i8..i64, u8..u64, f16, bf16, f32, f64, f8e4m3 or f8e5m2
#if defined(TWIN) || defined(CASE_element_type)
inline constexpr auto element_type = kernel<"element_type">([](context& k, ptr<f32> p) {
#ifdef TWIN
  using scalar = val<f32>;
  store(p, scalar(k.let(1.f)));
#else
  using scalar = val<long double>;
  store(p, scalar(k.let(1.f))); // expect-line
#endif
});
#endif

// case: empty_tile
// expect-error: kiln[T-02] extents are at least 1
#if defined(TWIN) || defined(CASE_empty_tile)
inline constexpr auto empty_tile = kernel<"empty_tile">([](context& k, ptr<f32> p) {
#ifdef TWIN
  store(p, reduce<sum>(k.zeros<f32, 4, 1>()));
#else
  store(p, reduce<sum>(k.zeros<f32, 4, 0>())); // expect-line
#endif
});
#endif

// case: reshape_elements
// expect-error: kiln[T-10] reshape must keep the number of elements
#if defined(TWIN) || defined(CASE_reshape_elements)
inline constexpr auto reshape_elements = kernel<"reshape_elements">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p + k.arange<128>(), reshape<128>(x));
#else
  store(p + k.arange<64>(), reshape<64>(x)); // expect-line
#endif
});
#endif

// case: split_axis
// expect-error: kiln[T-10] split needs a last axis of extent 2; reshape first
#if defined(TWIN) || defined(CASE_split_axis)
inline constexpr auto split_axis = kernel<"split_axis">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  auto [a, b] = split(reshape<64, 2>(x));
  store(p + k.arange<64>(), a + b);
#else
  auto [a, b] = split(x); // expect-line
#endif
});
#endif

// case: expand_axis
// expect-error: kiln[T-11] expand_dims: no such axis
#if defined(TWIN) || defined(CASE_expand_axis)
inline constexpr auto expand_axis = kernel<"expand_axis">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p, reduce<sum>(expand_dims<2>(x)));
#else
  store(p, reduce<sum>(expand_dims<3>(x))); // expect-line
#endif
});
#endif

// case: trans_axes
// expect-error: kiln[T-11] trans needs each axis exactly once
#if defined(TWIN) || defined(CASE_trans_axes)
inline constexpr auto trans_axes = kernel<"trans_axes">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p, reduce<sum>(trans<1, 0>(x)));
#else
  store(p, reduce<sum>(trans<1, 1>(x))); // expect-line
#endif
});
#endif

// case: broadcast_shape
// expect-error: kiln[T-05] the tile does not broadcast to these extents: aligned at the last axis, its extents must be equal or 1
#if defined(TWIN) || defined(CASE_broadcast_shape)
inline constexpr auto broadcast_shape = kernel<"broadcast_shape">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p, reduce<sum>(broadcast<4, 8, 16>(x)));
#else
  store(p, reduce<sum>(broadcast<8, 4, 16>(x))); // expect-line
#endif
});
#endif

// case: join_shapes
// expect-error: kiln[T-05] join needs two tiles of one element type and shape
#if defined(TWIN) || defined(CASE_join_shapes)
inline constexpr auto join_shapes = kernel<"join_shapes">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p, reduce<sum>(join(x, x)));
#else
  store(p, reduce<sum>(join(x, trans(x)))); // expect-line
#endif
});
#endif

// case: reduce_axis
// expect-error: kiln[T-11] reduce: no such axis
#if defined(TWIN) || defined(CASE_reduce_axis)
inline constexpr auto reduce_axis = kernel<"reduce_axis">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p + k.arange<8>(), reduce<max, 1>(x));
#else
  store(p + k.arange<8>(), reduce<max, 2>(x)); // expect-line
#endif
});
#endif

// case: reduce_type
// expect-error: kiln[T-06] this reduction does not accept the element type: any and all take b1, bit_xor integers, the others numbers
#if defined(TWIN) || defined(CASE_reduce_type)
inline constexpr auto reduce_type = kernel<"reduce_type">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p, cast<f32>(reduce<any>(x > 0.f)));
#else
  store(p, cast<f32>(reduce<any>(x))); // expect-line
#endif
});
#endif

// case: combine_result
// expect-error: kiln[T-12] a combine must return a scalar of the tile's element type; cast<T>(...) the result
#if defined(TWIN) || defined(CASE_combine_result)
inline constexpr auto combine_result = kernel<"combine_result">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p + k.arange<16>(), reduce<0>(x, [](auto a, auto b) { return a * b; }));
#else
  store(p + k.arange<16>(), reduce<0>(x, [](auto a, auto b) { return a < b; })); // expect-line
#endif
});
#endif

// case: combine_memory
// expect-error: kiln[K-14] load: a combine body may only compute with scalars; read vars and memory before it
#if defined(TWIN) || defined(CASE_combine_memory)
inline constexpr auto combine_memory = kernel<"combine_memory">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  auto y = load(p);
  store(p + k.arange<16>(), reduce<0>(x, [&](auto a, auto b) { return a + b + y; }));
#else
  store(p + k.arange<16>(), reduce<0>(x, [&](auto a, auto b) { return a + b + load(p); })); // expect-line
#endif
});
void use_combine_memory() { combine_memory.check(); }
#endif

// case: combine_across
// expect-error: kiln[K-14] reduce: a combine body may only compute with scalars, one by one; do this before the reduction
#if defined(TWIN) || defined(CASE_combine_across)
inline constexpr auto combine_across = kernel<"combine_across">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  auto top = reduce<max>(x);
  store(p + k.arange<16>(), reduce<0>(x, [&](auto a, auto b) { return max(a + b, top); }));
#else
  store(p + k.arange<16>(), reduce<0>(x, [&](auto a, auto b) { return max(a + b, reduce<max>(x)); })); // expect-line
#endif
});
void use_combine_across() { combine_across.check(); }
#endif

// case: scan_axis
// expect-error: kiln[T-11] scan: no such axis
#if defined(TWIN) || defined(CASE_scan_axis)
inline constexpr auto scan_axis = kernel<"scan_axis">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p, reduce<sum>(scan<max, 1>(x)));
#else
  store(p, reduce<sum>(scan<max, 2>(x))); // expect-line
#endif
});
#endif

// case: argmax_axis
// expect-error: kiln[T-11] argmax: no such axis
#if defined(TWIN) || defined(CASE_argmax_axis)
inline constexpr auto argmax_axis = kernel<"argmax_axis">([](context& k, ptr<i32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p + k.arange<8>(), argmax<1>(x));
#else
  store(p + k.arange<8>(), argmax<2>(x)); // expect-line
#endif
});
#endif

// case: gather_axis
// expect-error: kiln[T-11] gather: no such axis
#if defined(TWIN) || defined(CASE_gather_axis)
inline constexpr auto gather_axis = kernel<"gather_axis">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p, reduce<sum>(gather<1>(x, k.iota<1, 8, 4>())));
#else
  store(p, reduce<sum>(gather<2>(x, k.iota<1, 8, 4>()))); // expect-line
#endif
});
#endif

// case: gather_rank
// expect-error: kiln[T-05] gather needs source and indices of one rank
#if defined(TWIN) || defined(CASE_gather_rank)
inline constexpr auto gather_rank = kernel<"gather_rank">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p, reduce<sum>(gather<1>(x, k.iota<1, 8, 4>())));
#else
  store(p, reduce<sum>(gather<1>(x, k.arange<4>()))); // expect-line
#endif
});
#endif

// case: gather_indices
// expect-error: kiln[T-07] gather needs integer indices; cast<i32>(...) them
#if defined(TWIN) || defined(CASE_gather_indices)
inline constexpr auto gather_indices = kernel<"gather_indices">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p, reduce<sum>(gather<1>(x, cast<i32>(x))));
#else
  store(p, reduce<sum>(gather<1>(x, x))); // expect-line
#endif
});
#endif

// case: dot_shapes
// expect-error: kiln[T-16] dot needs a of [m,k] and b of [k,n] with one k; trans or reshape an operand
#if defined(TWIN) || defined(CASE_dot_shapes)
inline constexpr auto dot_shapes = kernel<"dot_shapes">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p, reduce<sum>(k.dot(x, trans(x))));
#else
  store(p, reduce<sum>(k.dot(x, x))); // expect-line
#endif
});
#endif

// case: dot_types
// expect-error: kiln[T-04] dot needs two operands of one type: f16, bf16, f32, f64, f8e4m3, f8e5m2 or i8
#if defined(TWIN) || defined(CASE_dot_types)
inline constexpr auto dot_types = kernel<"dot_types">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p, reduce<sum>(k.dot(cast<f16>(x), trans(cast<f16>(x)))));
#else
  store(p, reduce<sum>(k.dot(cast<f16>(x), trans(x)))); // expect-line
#endif
});
#endif

// case: dot_accumulator
// expect-error: kiln[T-16] dot needs an accumulator of a's rows by b's columns
#if defined(TWIN) || defined(CASE_dot_accumulator)
inline constexpr auto dot_accumulator = kernel<"dot_accumulator">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p, reduce<sum>(k.dot(x, trans(x), k.zeros<f32, 8, 8>())));
#else
  store(p, reduce<sum>(k.dot(x, trans(x), k.zeros<f32, 8, 16>()))); // expect-line
#endif
});
#endif

// case: dot_accumulator_type
// expect-error: kiln[T-04] the accumulator of dot must be f32 (f64 for f64 operands, i32 for i8); cast<f32>(...) it
#if defined(TWIN) || defined(CASE_dot_accumulator_type)
inline constexpr auto dot_accumulator_type = kernel<"dot_accumulator_type">([](context& k, ptr<f32> p) {
  auto x = load(p + k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>());
#ifdef TWIN
  store(p, reduce<sum>(k.dot(x, trans(x), k.zeros<f32, 8, 8>())));
#else
  store(p, cast<f32>(reduce<sum>(k.dot(x, trans(x), k.zeros<f64, 8, 8>())))); // expect-line
#endif
});
#endif
