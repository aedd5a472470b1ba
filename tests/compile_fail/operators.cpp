// Operators: element types and shapes that do not combine.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: shapes
// expect-error: kiln[T-05] the operands' shapes do not broadcast: aligned at the last axis, extents must be equal or 1
#if defined(TWIN) || defined(CASE_shapes)
inline constexpr auto shapes = kernel<"shapes">([](context& k, ptr<f32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  auto y = x + load(p + k.arange<64>(64));
#else
  auto y = x + load(p + k.arange<32>()); // expect-line
#endif
  store(p + k.arange<64>(), y);
});
#endif

// case: types
// expect-error: kiln[T-04] the operands' element types do not combine; cast<T>(...) one of them
#if defined(TWIN) || defined(CASE_types)
inline constexpr auto types = kernel<"types">([](context&, ptr<f32> p, val<f32> x, val<f8e4m3> y) {
#ifdef TWIN
  store(p, x + cast<f32>(y));
#else
  store(p, x + y); // expect-line
#endif
});
#endif

// case: eight_bit_floats
// expect-error: kiln[T-06] this operation does not accept the element type; cast<T>(...) the operands first
#if defined(TWIN) || defined(CASE_eight_bit_floats)
inline constexpr auto eight_bit_floats = kernel<"eight_bit_floats">([](context& k, ptr<f8e4m3> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p + k.arange<64>(), cast<f8e4m3>(cast<f32>(x) * cast<f32>(x)));
#else
  store(p + k.arange<64>(), x * x); // expect-line
#endif
});
#endif

// case: remainder
// expect-error: kiln[T-06] this operation does not accept the element type; cast<T>(...) the operands first
#if defined(TWIN) || defined(CASE_remainder)
inline constexpr auto remainder_of = kernel<"remainder">([](context&, ptr<f32> p) {
  auto x = load(p);
#ifdef TWIN
  store(p, x - floor(x / 3.f) * 3.f);
#else
  store(p, x % 3.f); // expect-line
#endif
});
#endif

// case: logical
// expect-error: kiln[T-03] && and || need b1 operands; compare first, or use & and | for bits
#if defined(TWIN) || defined(CASE_logical)
inline constexpr auto logical = kernel<"logical">([](context& k, ptr<f32> p, val<i32> n, val<i32> m) {
#ifdef TWIN
  auto both = n != 0 && m != 0;
#else
  auto both = n && m; // expect-line
#endif
  k.when(both, [&] { store(p, 1.f); });
});
#endif

// case: logical_not
// expect-error: kiln[T-03] ! needs a b1 operand; compare with 0 instead
#if defined(TWIN) || defined(CASE_logical_not)
inline constexpr auto logical_not = kernel<"logical_not">([](context& k, ptr<f32> p, val<i32> n) {
#ifdef TWIN
  auto none = n == 0;
#else
  auto none = !n; // expect-line
#endif
  k.when(none, [&] { store(p, 1.f); });
});
#endif

// case: minus
// expect-error: kiln[T-06] unary - needs an integer or floating type; cast<T>(...) first
#if defined(TWIN) || defined(CASE_minus)
inline constexpr auto minus = kernel<"minus">([](context&, ptr<f32> p, val<bool> b) {
#ifdef TWIN
  store(p, cast<f32>(-cast<i32>(b)));
#else
  store(p, cast<f32>(-b)); // expect-line
#endif
});
#endif

// case: complement
// expect-error: kiln[T-06] ~ needs an integer or b1 type; bitcast<T>(...) first
#if defined(TWIN) || defined(CASE_complement)
inline constexpr auto complement = kernel<"complement">([](context&, ptr<u32> p, val<f32> x) {
#ifdef TWIN
  store(p, ~bitcast<u32>(x));
#else
  store(p, ~x); // expect-line
#endif
});
#endif

// case: offset_type
// expect-error: kiln[T-07] a pointer moves by integers; cast<i32> or cast<i64> the offset
#if defined(TWIN) || defined(CASE_offset_type)
inline constexpr auto offset_type = kernel<"offset_type">([](context&, ptr<f32> p, val<f32> x) {
#ifdef TWIN
  store(p + cast<i64>(x), 1.f);
#else
  store(p + x, 1.f); // expect-line
#endif
});
#endif

// case: offset_shape
// expect-error: kiln[T-05] the shapes of pointer and offset do not broadcast: aligned at the last axis, extents must be equal or 1
#if defined(TWIN) || defined(CASE_offset_shape)
inline constexpr auto offset_shape = kernel<"offset_shape">([](context& k, ptr<f32> p) {
  auto rows = p + k.arange<64>();
#ifdef TWIN
  store(rows + k.arange<64>(), 1.f);
#else
  store(rows + k.arange<32>(), 1.f); // expect-line
#endif
});
#endif
