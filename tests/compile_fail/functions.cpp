// Functions of values: element types that they do not take.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: exponential
// expect-error: kiln[T-06] exp needs f16, bf16, f32 or f64 elements; cast<f32>(...) the operand first
#if defined(TWIN) || defined(CASE_exponential)
inline constexpr auto exponential = kernel<"exponential">([](context& k, ptr<i32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p + k.arange<64>(), cast<i32>(exp(cast<f32>(x))));
#else
  store(p + k.arange<64>(), cast<i32>(exp(x))); // expect-line
#endif
});
#endif

// case: absolute
// expect-error: kiln[T-06] abs needs an integer or floating type; cast<T>(...) first
#if defined(TWIN) || defined(CASE_absolute)
inline constexpr auto absolute = kernel<"absolute">([](context& k, ptr<f8e4m3> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p + k.arange<64>(), cast<f8e4m3>(abs(cast<f32>(x))));
#else
  store(p + k.arange<64>(), abs(x)); // expect-line
#endif
});
#endif

// case: floor_of_integers
// expect-error: kiln[T-06] floor needs a floating type; integers are whole already
#if defined(TWIN) || defined(CASE_floor_of_integers)
inline constexpr auto floor_of_integers = kernel<"floor_of_integers">([](context& k, ptr<i32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p + k.arange<64>(), x);
#else
  store(p + k.arange<64>(), floor(x)); // expect-line
#endif
});
#endif

// case: isnan_of_integers
// expect-error: kiln[T-06] isnan needs f16, bf16, f32 or f64 elements; cast<f32>(...) the operand first
#if defined(TWIN) || defined(CASE_isnan_of_integers)
inline constexpr auto isnan_of_integers = kernel<"isnan_of_integers">([](context& k, ptr<i32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p + k.arange<64>(), cast<i32>(isnan(cast<f32>(x))));
#else
  store(p + k.arange<64>(), cast<i32>(isnan(x))); // expect-line
#endif
});
#endif

// case: bitcast_width
// expect-error: kiln[T-08] bitcast needs two types of the same width, neither of them b1; cast<T>(...) converts values
#if defined(TWIN) || defined(CASE_bitcast_width)
inline constexpr auto bitcast_width = kernel<"bitcast_width">([](context& k, ptr<f32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p + k.arange<64>(), bitcast<f32>(bitcast<i32>(x)));
#else
  store(p + k.arange<64>(), cast<f32>(bitcast<i16>(x))); // expect-line
#endif
});
#endif

// case: where_condition
// expect-error: kiln[T-03] where needs a b1 condition; compare first
#if defined(TWIN) || defined(CASE_where_condition)
inline constexpr auto where_condition = kernel<"where_condition">([](context& k, ptr<f32> p, val<i32> n) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p + k.arange<64>(), where(n != 0, x, 0.f));
#else
  store(p + k.arange<64>(), where(n, x, 0.f)); // expect-line
#endif
});
#endif

// case: where_numbers
// expect-error: kiln[T-04] where needs a tile among its values; use k.full<T>(...) for one of them
#if defined(TWIN) || defined(CASE_where_numbers)
inline constexpr auto where_numbers = kernel<"where_numbers">([](context& k, ptr<f32> p, val<bool> b) {
#ifdef TWIN
  store(p + k.arange<64>(), where(b, k.full<f32>(1), 0.f));
#else
  store(p + k.arange<64>(), where(b, 1.f, 0.f)); // expect-line
#endif
});
#endif

// case: where_shapes
// expect-error: kiln[T-05] the shapes of where do not broadcast: aligned at the last axis, extents must be equal or 1
#if defined(TWIN) || defined(CASE_where_shapes)
inline constexpr auto where_shapes = kernel<"where_shapes">([](context& k, ptr<f32> p, val<bool> b) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p + k.arange<64>(), where(b, x, load(p + k.arange<64>())));
#else
  store(p + k.arange<64>(), where(b, x, load(p + k.arange<32>()))); // expect-line
#endif
});
#endif

// case: fma_integers
// expect-error: kiln[T-06] fma needs floating operands; write x * y + z for integers
#if defined(TWIN) || defined(CASE_fma_integers)
inline constexpr auto fma_integers = kernel<"fma_integers">([](context& k, ptr<i32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p + k.arange<64>(), x * x + x);
#else
  store(p + k.arange<64>(), fma(x, x, x)); // expect-line
#endif
});
#endif

// case: max_of_bools
// expect-error: kiln[T-06] max and min need integer or floating operands; cast<T>(...) first
#if defined(TWIN) || defined(CASE_max_of_bools)
inline constexpr auto max_of_bools = kernel<"max_of_bools">([](context&, ptr<i32> p, val<bool> b) {
#ifdef TWIN
  store(p, max(cast<i32>(b), 1));
#else
  store(p, cast<i32>(max(b, b))); // expect-line
#endif
});
#endif

// case: arange_of_floats
// expect-error: kiln[T-06] arange needs an integer type; cast<f32>(k.arange<N>()) for numbers
#if defined(TWIN) || defined(CASE_arange_of_floats)
inline constexpr auto arange_of_floats = kernel<"arange_of_floats">([](context& k, ptr<f32> p) {
#ifdef TWIN
  store(p + k.arange<64>(), cast<f32>(k.arange<64>()));
#else
  store(p + k.arange<64>(), k.arange<64, f32>()); // expect-line
#endif
});
#endif

// case: full_of_integers
// expect-error: kiln[T-04] full: a floating number for an integer or b1 tile; write an integer
#if defined(TWIN) || defined(CASE_full_of_integers)
inline constexpr auto full_of_integers = kernel<"full_of_integers">([](context& k, ptr<i32> p) {
#ifdef TWIN
  store(p, k.full<i32>(1));
#else
  store(p, k.full<i32>(1.5)); // expect-line
#endif
});
#endif

// case: number_too_large
// expect-error: kiln[T-04] the number 300 does not fit the element type i8
#if defined(TWIN) || defined(CASE_number_too_large)
inline constexpr auto number_too_large = kernel<"number_too_large">([](context& k, ptr<i8> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p + k.arange<64>(), cast<i8>(cast<i32>(x) + 300));
#else
  store(p + k.arange<64>(), x + 300); // expect-line
#endif
});
void use_number_too_large() { number_too_large.check(); }
#endif

// case: ceil_of_floats
// expect-error: kiln[T-06] ceil_div needs integers
#if defined(TWIN) || defined(CASE_ceil_of_floats)
inline constexpr auto ceil_of_floats = kernel<"ceil_of_floats">([](context& k, ptr<f32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(p + k.arange<64>(), ceil(x / 3.f));
#else
  store(p + k.arange<64>(), ceil_div(x, 3.f)); // expect-line
#endif
});
#endif

// case: multiple_of_three
// expect-error: kiln[T-09] multiple_of needs a power of two
#if defined(TWIN) || defined(CASE_multiple_of_three)
inline constexpr auto multiple_of_three = kernel<"multiple_of_three">([](context&, ptr<f32> p, val<i32> n) {
#ifdef TWIN
  store(p + multiple_of<4>(n), 1.f);
#else
  store(p + multiple_of<3>(n), 1.f); // expect-line
#endif
});
#endif

// case: when_of_a_tile
// expect-error: kiln[T-03] when needs a b1 scalar; compare, or reduce<any>(...) a tile
#if defined(TWIN) || defined(CASE_when_of_a_tile)
inline constexpr auto when_of_a_tile = kernel<"when_of_a_tile">([](context& k, ptr<f32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  k.when(reduce<any>(x > 0.f), [&] { store(p, 1.f); });
#else
  k.when(x > 0.f, [&] { store(p, 1.f); }); // expect-line
#endif
});
#endif

// case: while_of_a_tile
// expect-error: kiln[T-03] the condition of loop_while must return a b1 scalar; compare, or reduce<any>(...)
#if defined(TWIN) || defined(CASE_while_of_a_tile)
inline constexpr auto while_of_a_tile = kernel<"while_of_a_tile">([](context& k, ptr<f32> p) {
  auto v = k.var(load(p + k.arange<64>()));
#ifdef TWIN
  k.loop_while([&] { return reduce<any>(v > 0.f); }, [&] { v = v - 1.f; });
#else
  k.loop_while([&] { return v > 0.f; }, [&] { v = v - 1.f; }); // expect-line
#endif
});
#endif

// case: range_of_floats
// expect-error: kiln[T-07] the bounds of a range must be integer scalars; reduce or cast<i32> them
#if defined(TWIN) || defined(CASE_range_of_floats)
inline constexpr auto range_of_floats = kernel<"range_of_floats">([](context& k, ptr<f32> p, val<f32> n) {
#ifdef TWIN
  for (auto i : k.range(0, cast<i32>(n))) store(p + i, 1.f);
#else
  for (auto i : k.range(0, n)) store(p + i, 1.f); // expect-line
#endif
});
#endif

// case: assert_of_integers
// expect-error: kiln[T-03] device_assert needs a b1 condition; compare first
#if defined(TWIN) || defined(CASE_assert_of_integers)
inline constexpr auto assert_of_integers = kernel<"assert_of_integers">([](context& k, ptr<f32> p, val<i32> n) {
#ifdef TWIN
  k.device_assert(n != 0, "n");
#else
  k.device_assert(n, "n"); // expect-line
#endif
  store(p, 1.f);
});
#endif

// case: assume_of_a_tile
// expect-error: kiln[T-03] assume needs a b1 scalar; reduce<all>(...) a tile
#if defined(TWIN) || defined(CASE_assume_of_a_tile)
inline constexpr auto assume_of_a_tile = kernel<"assume_of_a_tile">([](context& k, ptr<f32> p) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  k.assume(reduce<all>(x > 0.f));
#else
  k.assume(x > 0.f); // expect-line
#endif
  store(p, 1.f);
});
#endif

// case: when_of_a_number
// expect-error: kiln[T-03] when needs a recorded b1 scalar; a condition that C++ knows is an `if constexpr`
#if defined(TWIN) || defined(CASE_when_of_a_number)
inline constexpr auto when_of_a_number = kernel<"when_of_a_number">([](context& k, ptr<f32> p) {
  constexpr bool wide = true;
#ifdef TWIN
  if constexpr (wide) store(p + k.arange<64>(), 1.f);
#else
  k.when(wide, [&] { store(p + k.arange<64>(), 1.f); }); // expect-line
#endif
});
#endif

// case: arange_of_nothing
// expect-error: kiln[T-02] arange<N>: N is at least 1
#if defined(TWIN) || defined(CASE_arange_of_nothing)
inline constexpr auto arange_of_nothing = kernel<"arange_of_nothing">([](context& k, ptr<f32> p) {
#ifdef TWIN
  store(p + k.arange<1>(), 1.f);
#else
  store(p + k.arange<0>(), 1.f); // expect-line
#endif
});
#endif

// case: full_of_nothing
// expect-error: kiln[T-02] extents are at least 1
#if defined(TWIN) || defined(CASE_full_of_nothing)
inline constexpr auto full_of_nothing = kernel<"full_of_nothing">([](context& k, ptr<f32> p) {
#ifdef TWIN
  store(p + k.arange<4>(), k.full<f32, 4>(1));
#else
  store(p + k.arange<4>(), k.full<f32, 0>(1)); // expect-line
#endif
});
#endif
