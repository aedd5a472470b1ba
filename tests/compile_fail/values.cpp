// Values and vars: what C++ would let pass and a recorded program must not.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: reassigned
// expect-error: kiln[K-01] a value cannot be reassigned; make it k.var(...)
#if defined(TWIN) || defined(CASE_reassigned)
inline constexpr auto reassigned = kernel<"reassigned">([](context& k, ptr<f32> p) {
  auto i = k.arange<64>();
#ifdef TWIN
  auto x = k.var(load(p + i));
#else
  auto x = load(p + i);
#endif
  x = x + 1.f; // expect-line
  store(p + i, x);
});
#endif

// case: added_to
// expect-error: kiln[K-01] a value cannot be reassigned; make it k.var(...)
#if defined(TWIN) || defined(CASE_added_to)
inline constexpr auto added_to = kernel<"added_to">([](context& k, ptr<f32> p) {
  auto i = k.arange<64>();
#ifdef TWIN
  auto x = k.var(load(p + i));
#else
  auto x = load(p + i);
#endif
  x += 1.f; // expect-line
  store(p + i, x);
});
#endif

// case: pointer_reassigned
// expect-error: kiln[K-01] a pointer cannot be reassigned; make it k.var(...)
#if defined(TWIN) || defined(CASE_pointer_reassigned)
inline constexpr auto pointer_reassigned = kernel<"pointer_reassigned">([](context& k, ptr<f32> p) {
#ifdef TWIN
  auto q = k.var(p + k.arange<64>());
#else
  auto q = p + k.arange<64>();
#endif
  q = p + k.arange<64>(64); // expect-line
  store(q, 1.f);
});
#endif

// case: condition
// expect-error: kiln[K-02] a recorded value has no C++ truth value; use k.when(condition, [&] {...}), where(condition, a, b), or && || !
#if defined(TWIN) || defined(CASE_condition)
inline constexpr auto condition = kernel<"condition">([](context& k, ptr<f32> p, val<i32> n) {
#ifdef TWIN
  k.when(n > 3, [&] { store(p, 1.f); });
#else
  if (n > 3) store(p, 1.f); // expect-line
  (void)k;
#endif
});
#endif

// case: var_copied
// expect-error: kiln[K-03] a var cannot be copied; read its value with k.let(v), or take it by reference
#if defined(TWIN) || defined(CASE_var_copied)
inline constexpr auto var_copied = kernel<"var_copied">([](context& k, ptr<f32> p) {
  auto v = k.var(load(p));
#ifdef TWIN
  auto old = k.let(v);
#else
  auto old = v; // expect-line
#endif
  v = 2.f * v;
  store(p, old + v);
});
#endif

// case: var_of_another_type
// expect-error: kiln[K-04] the var holds another element type or shape; cast<T>(...) or broadcast the new value
#if defined(TWIN) || defined(CASE_var_of_another_type)
inline constexpr auto var_of_another_type = kernel<"var_of_another_type">([](context& k, ptr<f32> p, val<f64> x) {
  auto v = k.var(load(p));
#ifdef TWIN
  v = cast<f32>(x);
#else
  v = x; // expect-line
#endif
  store(p, v);
});
#endif

// case: var_compound
// expect-error: kiln[K-04] the var holds another element type or shape than the result; cast<T>(...) or reduce it
#if defined(TWIN) || defined(CASE_var_compound)
inline constexpr auto var_compound = kernel<"var_compound">([](context& k, ptr<f32> p) {
  auto v = k.var(load(p));
  auto t = load(p + k.arange<64>());
#ifdef TWIN
  v += reduce<sum>(t);
#else
  v += t; // expect-line
#endif
  store(p, v);
});
#endif

// case: plain_variable
// expect-error: kiln[K-01] a C++ variable cannot take a recorded value; make it k.var(...)
#if defined(TWIN) || defined(CASE_plain_variable)
inline constexpr auto plain_variable = kernel<"plain_variable">([](context& k, ptr<f32> p, val<i32> n) {
#ifdef TWIN
  auto s = k.var(0.f);
#else
  float s = 0;
#endif
  for (auto i : k.range(0, n)) {
    s += load(p + i); // expect-line
  }
  store(p, k.let(s));
});
#endif

// case: equal_eight_bit_floats
// expect-error: {line}: kiln[T-06] this operation does not accept the element type; cast<T>(...) the operands first
#if defined(TWIN) || defined(CASE_equal_eight_bit_floats)
inline constexpr auto equal_eight_bit_floats = kernel<"equal_eight_bit_floats">([](context& k, ptr<const f8e4m3> p, ptr<bool> q) {
  auto x = load(p + k.arange<64>());
#ifdef TWIN
  store(q + k.arange<64>(), cast<f16>(x) == cast<f16>(x));
#else
  store(q + k.arange<64>(), x == x); // expect-line
#endif
});
void use_equal_eight_bit_floats() { equal_eight_bit_floats.check(); }
#endif
