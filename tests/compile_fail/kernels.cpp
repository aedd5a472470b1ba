// Kernel lambdas, loops, and what a kernel holds too much of.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: parameter_type
// expect-error: kiln[K-07] a kernel parameter must be ptr<T>, val<T> or array<T, Rank>
#if defined(TWIN) || defined(CASE_parameter_type)
#ifdef TWIN
inline constexpr auto parameter_type = kernel<"parameter_type">([](context&, ptr<f32> p, val<f32> x) { store(p, x); });
#else
inline constexpr auto parameter_type = kernel<"parameter_type">([](context&, ptr<f32> p, float x) { store(p, x); }); // expect-line
#endif
#endif

// case: capture
// expect-error: kiln[K-08] a kernel lambda cannot capture; pass values as parameters (val<T>) or template arguments
#if defined(TWIN) || defined(CASE_capture)
auto make(float scale) {
#ifdef TWIN
  (void)scale;
  return kernel<"capture">([](context&, ptr<f32> p, val<f32> x) { store(p, x); });
#else
  return kernel<"capture">([scale](context&, ptr<f32> p) { store(p, scale); }); // expect-line
#endif
}
#endif

// case: generic
// expect-error: kiln[K-09] a kernel lambda is void (context& k, ptr<T>, val<T>, array<T, Rank>...): concrete parameter types, no result, not mutable
#if defined(TWIN) || defined(CASE_generic)
#ifdef TWIN
inline constexpr auto generic_lambda = kernel<"generic">([](context&, ptr<f32> p) { store(p, 1.f); });
#else
inline constexpr auto generic_lambda = kernel<"generic">([](context&, auto p) { store(p, 1.f); }); // expect-line
#endif
#endif

// case: result
// expect-error: kiln[K-09] a kernel lambda is void (context& k, ptr<T>, val<T>, array<T, Rank>...): concrete parameter types, no result, not mutable
#if defined(TWIN) || defined(CASE_result)
#ifdef TWIN
inline constexpr auto with_result = kernel<"result">([](context&, ptr<f32> p) { store(p, load(p)); });
#else
inline constexpr auto with_result = kernel<"result">([](context&, ptr<f32> p) { return load(p); }); // expect-line
#endif
#endif

// case: zero_step
// expect-error: kiln[K-06] a range with step 0 never ends; give a step of 1 or more, or -1 or less
#if defined(TWIN) || defined(CASE_zero_step)
inline constexpr auto zero_step = kernel<"zero_step">([](context& k, ptr<f32> p, val<i32> n) {
#ifdef TWIN
  for (auto i : k.range(0, n, 2)) store(p + i, 1.f);
#else
  for (auto i : k.range(0, n, 0)) store(p + i, 1.f); // expect-line
#endif
});
void use() { zero_step.check(); }
#endif

// case: break_out
// expect-error: kiln[K-05] a recorded loop is left early (break, return or goto); use k.loop_while, or k.when around the rest of the body
#if defined(TWIN) || defined(CASE_break_out)
inline constexpr auto break_out = kernel<"break_out">([](context& k, ptr<f32> p, val<i32> n) {
  for (auto i : k.range(0, n)) { // expect-line
    store(p + i, 1.f);
#ifndef TWIN
    break;
#endif
  }
});
void use_break() { break_out.check(); }
#endif

// case: return_out
// expect-error: kiln[K-05] a recorded loop is left early (break, return or goto); use k.loop_while, or k.when around the rest of the body
#if defined(TWIN) || defined(CASE_return_out)
inline constexpr auto return_out = kernel<"return_out">([](context& k, ptr<f32> p, val<i32> n) {
  for (auto i : k.range(0, n)) { // expect-line
    store(p + i, 1.f);
#ifndef TWIN
    return;
#endif
  }
});
void use_return() { return_out.check(); }
#endif

// case: outside_loop
// expect-error: kiln[K-10] a value made on line {line-7} inside the loop of line {line-8} is used outside it; carry it in a k.var(...)
#if defined(TWIN) || defined(CASE_outside_loop)
inline constexpr auto outside_loop = kernel<"outside_loop">([](context& k, ptr<f32> p, val<i32> n) {
  auto last = k.var(k.let(0.f));
  val<f32> const* value = nullptr;
  for (auto i : k.range(0, n)) {
    auto x = load(p + i);
    last = x;
    value = new val<f32>(x);
  }
#ifdef TWIN
  store(p, last);
#else
  store(p, *value); // expect-line
#endif
  delete value;
});
void use_outside_loop() { outside_loop.check(); }
#endif

// case: outside_branch
// expect-error: inside the branch of line {line-8} is used outside it; carry it in a k.var(...)
#if defined(TWIN) || defined(CASE_outside_branch)
inline constexpr auto outside_branch = kernel<"outside_branch">([](context& k, ptr<f32> p, val<i32> n) {
  auto kept = k.var(k.let(0.f));
  val<f32> const* value = nullptr;
  k.when(n > 0, [&] {
    auto x = load(p) * 2.f;
    kept = x;
    value = new val<f32>(x);
  });
#ifdef TWIN
  store(p, kept);
#else
  store(p, *value); // expect-line
#endif
  delete value;
});
void use_outside_branch() { outside_branch.check(); }
#endif

// case: too_many_buffers
// expect-error: kiln[K-13] 65 local buffers; a kernel has room for 64: give one local_alloc several slots
#if defined(TWIN) || defined(CASE_too_many_buffers)
inline constexpr auto too_many_buffers = kernel<"too_many_buffers">([](context& k, ptr<f32> p) {
#ifdef TWIN
  constexpr int n = 64;
#else
  constexpr int n = 65;
#endif
  for (int i = 0; i < n; ++i) k.local_alloc<f32, 8>(); // expect-line
  store(p, 1.f);
});
void use_too_many_buffers() { too_many_buffers.check(); }
#endif

// case: too_many_texts
// expect-error: kiln[K-13] 129 names and texts; a kernel has room for 128: leave out some asserts, prints or buffer names
#if defined(TWIN) || defined(CASE_too_many_texts)
inline constexpr auto too_many_texts = kernel<"too_many_texts">([](context& k, ptr<f32> p, val<i32> n) {
#ifdef TWIN
  constexpr int times = 128;
#else
  constexpr int times = 129;
#endif
  auto fine = n > 0;
  for (int i = 0; i < times; ++i) k.device_assert(fine, "n is positive"); // expect-line
  store(p, 1.f);
});
void use_too_many_texts() { too_many_texts.check(); }
#endif

// case: reference_parameter
// expect-error: kiln[K-07] a kernel parameter must be ptr<T>, val<T> or array<T, Rank>
#ifdef TWIN
inline constexpr auto reference_parameter = kernel<"reference_parameter">([](context& k, ptr<f32> const& p) { store(p + k.arange<64>(), 1.f); });
#elif defined(CASE_reference_parameter)
inline constexpr auto reference_parameter = kernel<"reference_parameter">([](context& k, ptr<f32>& p) { store(p + k.arange<64>(), 1.f); }); // expect-line
#endif

// case: no_name
// expect-error: kiln[K-09] a kernel has a name: kernel<"add">([](context& k, ...) {...})
#ifdef TWIN
inline constexpr auto no_name = kernel<"no_name">([](context& k, ptr<f32> p) { store(p + k.arange<64>(), 1.f); });
#elif defined(CASE_no_name)
inline constexpr auto no_name = kernel([](context& k, ptr<f32> p) { store(p + k.arange<64>(), 1.f); }); // expect-line
#endif

// case: no_warps
// expect-error: {line}: kiln[R-CP08] attributes{.num_warps = 0}: valid 1..64
#if defined(TWIN) || defined(CASE_no_warps)
#ifdef TWIN
inline constexpr int warps = 1;
#else
inline constexpr int warps = 0;
#endif
inline constexpr auto no_warps = kernel<"no_warps", attributes{.num_warps = warps}>([](context& k, ptr<f32> p) {
  store(p + k.arange<64>(), 1.f); // expect-line
});
void use_no_warps() { no_warps.check(); }
#endif
