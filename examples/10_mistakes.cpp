// ten mistakes, what the compiler says to each, and what to write instead
//
// Each mistake stands behind an #ifdef, with its message above it and the right program below it. The messages are kept true:
// the tests compile this file once per mistake, with g++ and with clang++, and compare. See one yourself:
//   g++ -std=c++20 -fsyntax-only -I include -I examples -DCASE_reassign examples/10_mistakes.cpp
#include <kiln/kiln.hpp>

#include "support/lesson.hpp"

using namespace kiln;

// A value is what an expression gave; it cannot become another one. What changes from pass to pass of a loop is a var.
//
// case: reassign
// expect-error: kiln[K-01] a value cannot be reassigned; make it k.var(...)
inline constexpr auto row_sum = kernel<"row_sum">([](context& k, array<const f32, 2> x, ptr<f32> out) {
  auto row = k.program_id(0);
#ifdef CASE_reassign
  auto total = k.full<f32>(0);
  for (auto c : k.range(0, x.extent(1), 128))
    total = total + reduce<sum>(load(x.region(at(row, c), extent<1, 128>))); // expect-line
#else
  auto total = k.var(k.full<f32>(0));
  for (auto c : k.range(0, x.extent(1), 128)) total = total + reduce<sum>(load(x.region(at(row, c), extent<1, 128>)));
#endif
  store(out + row, total);
});

// While the lambda is recorded there is no number to decide on: an `if` would choose once, for all elements and launches.
//
// case: truth
// expect-error: kiln[K-02] a recorded value has no C++ truth value; use k.when(condition, [&] {...}), where(condition, a, b), or && || !
inline constexpr auto clamp = kernel<"clamp">([](context& k, ptr<const f32> x, ptr<f32> out, val<i32> n) {
  auto i = k.program_id(0) * 64 + k.arange<64>();
  auto v = load(x + i, {.mask = i < n});
#ifdef CASE_truth
  if (n > 0) store(out + i, v, {.mask = i < n}); // expect-line
#else
  store(out + i, where(v > 0.f, v, 0.f), {.mask = i < n});
#endif
});

// case: capture
// expect-error: kiln[K-08] a kernel lambda cannot capture; pass values as parameters (val<T>) or template arguments
#ifdef CASE_capture
auto make(float factor) {
  return kernel<"scaled">([factor](context&, ptr<f32> p) { store(p, load(p) * factor); }); // expect-line
}
#else
inline constexpr auto scaled = kernel<"scaled">([](context&, ptr<f32> p, val<f32> factor) { store(p, load(p) * factor); });
#endif

// Shapes follow NumPy: aligned at the last axis, extents are equal or 1.
//
// case: shapes
// expect-error: kiln[T-05] the operands' shapes do not broadcast: aligned at the last axis, extents must be equal or 1
inline constexpr auto outer = kernel<"outer">([](context& k, ptr<f32> out) {
  auto a = cast<f32>(k.arange<32>());
  auto b = cast<f32>(k.arange<64>());
#ifdef CASE_shapes
  auto product = a * b; // expect-line
#else
  auto product = expand_dims<1>(a) * b; // [32,1] * [64] is [32,64]
  store(out + k.iota<0, 32, 64>() * 64 + k.arange<64>(), product);
#endif
});

// Nothing is converted silently where that would lose something: the stored type is the pointer's.
//
// case: stored_type
// expect-error: kiln[T-04] the stored element type differs from the pointer's; cast<T>(...) the value
inline constexpr auto narrow = kernel<"narrow">([](context& k, ptr<const f32> x, ptr<f16> out) {
  auto i = k.program_id(0) * 64 + k.arange<64>();
#ifdef CASE_stored_type
  store(out + i, load(x + i)); // expect-line
#else
  store(out + i, cast<f16>(load(x + i)));
#endif
});

// case: read_only
// expect-error: kiln[T-14] store through a pointer to const; declare the parameter ptr<T> or array<T, Rank>
#ifdef CASE_read_only
inline constexpr auto clear = kernel<"clear">([](context& k, ptr<const f32> x) {
  store(x + k.arange<64>(), 0.f); // expect-line
});
#else
inline constexpr auto clear = kernel<"clear">([](context& k, ptr<f32> x) { store(x + k.arange<64>(), 0.f); });
#endif

// A loop over k.range is recorded in one pass; leaving it early would record half of it.
//
// case: leave_loop
// expect-error: kiln[K-05] a recorded loop is left early (break, return or goto); use k.loop_while, or k.when around the rest of the body
inline constexpr auto count_down = kernel<"count_down">([](context& k, ptr<i32> steps, val<i32> n) {
#ifdef CASE_leave_loop
  for (auto i : k.range(0, n)) { // expect-line
    store(steps, i);
    break;
  }
#else
  auto left = k.var(n);
  auto done = k.var(k.let(0));
  k.loop_while([&] { return left > 0; }, [&] {
    left = left / 2;
    done = done + 1;
  });
  store(steps, done);
#endif
});
#ifdef CASE_leave_loop
void use() { count_down.check(); }
#endif

// An index that can be proved wrong is refused.
//
// case: slot
// expect-error: kiln[R-BD01] t: index 2, valid 0..1
inline constexpr auto two_slots = kernel<"two_slots">([](context& k, ptr<f32> x) {
  auto t = k.local_alloc<f32, 64>(2, {.name = "t"});
  k.local_store(t[1], load(x + k.arange<64>()));
#ifdef CASE_slot
  store(x + k.arange<64>(), k.local_load(t[2])); // expect-line
#else
  store(x + k.arange<64>(), k.local_load(t[1]) + 1.f);
#endif
});
#ifdef CASE_slot
void use() { two_slots.check(); }
#endif

// What an asynchronous load brings may be read when its group has been waited for. (More of this: lesson 04.)
//
// case: early_read
// expect-error: kiln[R-HZ01] t[0] is read (10_mistakes.cpp:{line}) before the async_load of line {line-5} is known complete; add async_load_wait_group(0) before it
inline constexpr auto early_read = kernel<"early_read">([](context& k, ptr<const f32> x, ptr<f32> y) {
  auto t = k.local_alloc<f32, 64>(1, {.name = "t"});
  auto i = k.arange<64>();
  k.async_load(x + i, t[0]);
  k.async_load_commit_group();
#ifndef CASE_early_read
  k.async_load_wait_group(0);
#endif
  store(y + i, k.local_load(t[0])); // expect-line
});
#ifdef CASE_early_read
void use() { early_read.check(); }
#endif

int main(int argc, char** argv) {
  return lesson::guarded([&] {
    lesson::program p(argc, argv, "mistakes", {});
    device dev = p.device();

    // A launch is checked like a call: number and types of its arguments.
    //
    // case: arguments
    // expect-error: kiln[K-11] a launch needs one argument per kernel parameter (the context is not one)
    buffer<f16> half(dev, 64);
    buffer<f32> x(dev, lesson::random_values<f32>(64, 1)), y(dev, 64);
#ifdef CASE_arguments
    narrow.launch(dev, grid(1), x); // expect-line
#else
    narrow.launch(dev, grid(1), x, half);
#endif

    // The right programs run:
    buffer<f32> sums(dev, 4), matrix(dev, lesson::random_values<f32>(4 * 200, 2)), table(dev, 32 * 64);
    buffer<i32> steps(dev, 1);
    double seconds = p.time([&] {
      row_sum.launch(dev, grid(4), matrix.view(4, 200), sums);
      clamp.launch(dev, grid(1), x, y, 64);
      outer.launch(dev, grid(1), table);
      count_down.launch(dev, grid(1), steps, 1000);
      dev.synchronize();
    });
    auto const values = matrix.to_vector(), row = sums.to_vector(), in = x.to_vector(), clamped = y.to_vector(), products = table.to_vector();
    double error = lesson::difference(static_cast<double>(steps.to_vector()[0]), 10);
    for (std::size_t r = 0; r < 4; ++r) {
      double want = 0;
      for (std::size_t c = 0; c < 200; ++c) want += static_cast<double>(values[r * 200 + c]);
      error = std::max(error, lesson::difference(static_cast<double>(row[r]), want));
    }
    for (std::size_t i = 0; i < 64; ++i) error = std::max(error, lesson::difference(static_cast<double>(clamped[i]), in[i] > 0 ? static_cast<double>(in[i]) : 0.0));
    for (std::size_t i = 0; i < 32 * 64; ++i) error = std::max(error, lesson::difference(static_cast<double>(products[i]), static_cast<double>(i / 64 * (i % 64))));
    p.report("four kernels", seconds, 0, "", error, 1e-4);
    return p.finish();
  });
}
