// sixteen mistakes, what the compiler says to each, and what to write instead
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
// expect-error: kiln[R-HZ01] t[0] (256 B) is read (10_mistakes.cpp:{line}) before the async_load of line {line-5} is known complete; add async_load_wait_group(0) before it
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

// A load has a token, and a group of loads has another one; a wait is for groups. The same kind of mistake in other words: a group
// that is committed twice, or waited for by a task that did not make it.
//
// case: token
// expect-error: kiln[R-HZ07] async_wait: the token of async_load (line {line-3}) is given where that of an async_load_commit_group is needed
inline constexpr auto waits_by_token = kernel<"waits_by_token">([](context& k, ptr<const f32> x, ptr<f32> y) {
  auto t = k.local_alloc<f32, 64>(1, {.name = "t"});
  auto i = k.arange<64>();
  auto load_of_t = k.async_load(x + i, t[0]);
  auto group = k.async_load_commit_group({load_of_t});
#ifdef CASE_token
  k.async_load_wait_group(0, {load_of_t}); // expect-line
#else
  k.async_load_wait_group(0, {group});
#endif
  store(y + i, k.local_load(t[0]));
});
#ifdef CASE_token
void use() { waits_by_token.check(); }
#endif

// Buffers that take turns in one storage: nothing may be read through one of them after another has taken its bytes. (More of
// this: lessons 12 and 14.)
//
// case: alias
// expect-error: kiln[R-AL16] half[0] (128 B) is read (10_mistakes.cpp:{line}), but bytes 0..127 were last written through wide[0] (256 B) on line {line-1}; write half[0] first, or declare the pun with .allow_pun
inline constexpr auto takes_turns = kernel<"takes_turns">([](context& k, ptr<const f32> x, ptr<f32> y) {
  auto scratch = k.storage_alias_spec({.name = "scratch"});
  auto half = k.local_alloc<f16, 64>(1, {.reuse = &scratch, .name = "half"});
  auto wide = k.local_alloc<f32, 64>(1, {.reuse = &scratch, .name = "wide"});
  auto i = k.arange<64>();
  k.local_store(half[0], cast<f16>(load(x + i)));
#ifdef CASE_alias
  k.local_store(wide[0], load(x + i));
  auto rounded = cast<f32>(k.local_load(half[0])); // expect-line
#else
  auto rounded = cast<f32>(k.local_load(half[0]));
  k.local_store(wide[0], load(x + i));
#endif
  store(y + i, k.local_load(wide[0]) - rounded);
});
#ifdef CASE_alias
void use() { takes_turns.check(); }
#endif

// The same with an allocator: what is in one phase of a group gives way to the next phase.
//
// case: allocator_phase
// expect-error: kiln[R-PA07] first (256 B) is read (10_mistakes.cpp:{line}), but bytes 0..255 were last written through second (256 B) on line {line-1}; write first first
inline constexpr auto two_phases = kernel<"two_phases">([](context& k, ptr<const f32> x, ptr<f32> y) {
  smem_allocation<f32, 64> first{.name = "first"}, second{.name = "second"};
  smem_allocator memory(k);
  memory.add(first), memory.add(second);
  memory.add_alias_group({{&first}, {&second}}); // two phases of one member each
  memory.compute_layout();
  memory.allocate(k);
  auto a = memory.get(k, first), b = memory.get(k, second);
  auto i = k.arange<64>();
  k.local_store(a, load(x + i));
#ifdef CASE_allocator_phase
  k.local_store(b, load(x + i) * 2.f);
  auto once = k.local_load(a); // expect-line
#else
  auto once = k.local_load(a);
  k.local_store(b, load(x + i) * 2.f);
#endif
  store(y + i, k.local_load(b) - once);
});
#ifdef CASE_allocator_phase
void use() { two_phases.check(); }
#endif

// Two tasks and a ring of two slots. Four lines hold it together, and each of them can be forgotten. (More of this: lesson 13.)
inline constexpr auto hand_over = kernel<"hand_over">([](context& k, ptr<const f32> x, ptr<f32> y, val<i32> n) {
  auto t = k.local_alloc<f32, 64>(2, {.name = "t"});
  auto full = k.alloc_barriers(2, {.name = "full"}), empty = k.alloc_barriers(2, {.name = "empty"});
  auto c = k.arange<64>();
  k.async_tasks(k.task_default({.name = "make"},
                               [&] {
                                 for (auto i : k.range(0, n)) {
                                   auto [s, phase] = k.buf_phase(i, 2);
                                   // The first round finds every slot empty; later ones wait until it is given back. If it never is:
                                   //
                                   // case: deadlock
                                   // expect-error: kiln[R-BR02] deadlock: task make waits (10_mistakes.cpp:{line}) for empty[0] phase 0: 0 of 1 arrivals; task use waits (10_mistakes.cpp:{line+22}) for full[0] phase 1: 0 of 1 arrivals
                                   k.barrier_wait(empty[s], phase ^ 1); // expect-line
                                   k.local_store(t[s], load(x + i * 64 + c));
                                   k.barrier_arrive(full[s]);
                                 }
                               }),
                k.task({.num_warps = 4, .name = "use"}, [&] {
                  for (auto i : k.range(0, n)) {
                    auto [s, phase] = k.buf_phase(i, 2);
                    // Nothing says that the slot is filled:
                    //
                    // case: race
                    // expect-error: kiln[R-HZ13] t[i0 % 2] (256 B): the read (10_mistakes.cpp:{line}) in task use is not ordered after the write of line {line-12} in task make; arrive at a barrier after the write and wait for it here
#ifdef CASE_race
                    store(y + i * 64 + c, k.local_load(t[s])); // expect-line
#else
                    // The parity of the wait must change from round to round of the ring. One that stays cannot tell them apart:
                    //
                    // case: parity
                    // expect-error: kiln[R-BR04] wait on full[0] (10_mistakes.cpp:{line}) in task use: parity 0 sees phase 0 once more, and the barrier_arrive of line {line+7} comes a round too early; flip the parity each round
#ifdef CASE_parity
                    k.barrier_wait(full[s], 0); // expect-line
#else
                    k.barrier_wait(full[s], phase);
#endif
                    store(y + i * 64 + c, k.local_load(t[s]));
#endif
#ifndef CASE_deadlock
                    k.barrier_arrive(empty[s]);
#endif
                  }
                }));
});
#if defined(CASE_race) || defined(CASE_parity) || defined(CASE_deadlock)
void use() { hand_over.check(); }
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
    if (dev.target().is_amdgpu()) {
      p.say("tasks are not compiled for AMD GPUs yet: the lesson runs on the host");
      p.move_to(device::host());
      dev = p.device();
    }
    buffer<f32> sums(dev, 4), rounding(dev, 64), halves(dev, 64), rows(dev, lesson::random_values<f32>(5 * 64, 3)), copies(dev, 5 * 64), matrix(dev, lesson::random_values<f32>(4 * 200, 2)), table(dev, 32 * 64);
    buffer<i32> steps(dev, 1);
    double seconds = p.time([&] {
      row_sum.launch(dev, grid(4), matrix.view(4, 200), sums);
      clamp.launch(dev, grid(1), x, y, 64);
      outer.launch(dev, grid(1), table);
      count_down.launch(dev, grid(1), steps, 1000);
      takes_turns.launch(dev, grid(1), x, rounding);
      two_phases.launch(dev, grid(1), x, halves);
      hand_over.launch(dev, grid(1), rows, copies, 5);
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
    auto const lost = rounding.to_vector(), same = halves.to_vector(), made = rows.to_vector(), used = copies.to_vector();
    for (std::size_t i = 0; i < 64; ++i) {
      error = std::max(error, lesson::difference(static_cast<double>(lost[i]), static_cast<double>(in[i]) - static_cast<double>(static_cast<f32>(f16(in[i])))));
      error = std::max(error, lesson::difference(static_cast<double>(same[i]), static_cast<double>(in[i])));
    }
    for (std::size_t i = 0; i < made.size(); ++i) error = std::max(error, lesson::difference(static_cast<double>(used[i]), static_cast<double>(made[i])));
    p.report("seven kernels", seconds, 0, "", error, 1e-4);
    return p.finish();
  });
}
