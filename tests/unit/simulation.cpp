// The hazard simulation: pipelines with cp.async groups, every way of breaking them, and idioms that must not be refused.
#include <kiln/kernel.hpp>

#include "run_time_recording.hpp"

#include <gtest/gtest.h>

#include <string>

using namespace kiln;
using kiln_test::run_time_recording;

namespace {

std::string message(simulation const& s) { return {s.error.text, static_cast<std::size_t>(s.error.length)}; }
bool mentions(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }
bool has_note(simulation const& s, char const* rule) {
  for (note const& n : s.notes.view())
    if (mentions(std::string(n.view()), rule)) return true;
  return false;
}
simulation checked(run_time_recording const& t) {
  EXPECT_TRUE(t.r.error.ok()) << t.r.error.text;
  diagnostic d = verify(t.graph());
  EXPECT_TRUE(d.ok()) << d.text;
  return simulate(t.graph());
}

// The cp.async pipeline of the design's race study, good for m = 0 and wrong in eleven ways.
constexpr int stages = 4;
simulation pipeline(int m) {
  run_time_recording t;
  auto& k = t.k;
  auto x = t.array<const f16, 2>(), y = t.array<const f16, 2>();
  auto out = t.pointer<f32>();
  auto steps = t.value<i32>();
  auto a = k.local_alloc<f16, 64, 32>(stages, {.name = "A"});
  auto b = k.local_alloc<f16, 32, 64>(stages, {.name = "B"});
  auto c = k.local_alloc<f32, 64, 64>(1, {.name = "C"});
  auto load_into = [&](auto i, auto slot_a, auto slot_b) {
    k.async_load(x.region(at(0, i * 32), extent<64, 32>), a[slot_a], {.other = 0});
    k.async_load(y.region(at(i * 32, 0), extent<32, 64>), b[slot_b], {.other = 0});
  };
  for (int s = 0; s < stages - (m == 1 ? 2 : 1); ++s) {
    load_into(k.let(s), s, s);
    if (m != 2) k.async_load_commit_group();
  }
  auto acc = k.var(k.zeros<f32, 64, 64>());
  for (auto i : k.range(0, steps)) {
    auto s = i % stages;
    auto next = (i + (m == 3 ? stages : m == 4 ? stages - 2 : stages - 1)) % stages;
    if (m != 5) k.async_load_wait_group(m == 6 ? stages - 1 : stages - 2);
    acc = k.dot(a[m == 7 ? (i + 1) % stages : s], b[s], acc);
    load_into(i + (stages - 1), next, m == 8 ? s : next);
    if (m != 9) k.async_load_commit_group();
  }
  if (m != 10) k.async_load_wait_group(0);
  k.local_store(c[0], acc);
  if (m == 11)
    store(out + k.iota<0, 64, 32>() * 32 + k.iota<1, 64, 32>(), cast<f32>(k.local_load(a[k.let(2)])));
  else
    store(out + k.iota<0, 64, 64>() * 64 + k.iota<1, 64, 64>(), k.local_load(c[0]));
  return checked(t);
}

TEST(simulation, a_correct_pipeline_passes) {
  simulation s = pipeline(0);
  EXPECT_TRUE(s.error.ok()) << s.error.text;
  EXPECT_TRUE(s.complete);
  EXPECT_EQ(s.passes, 2 * stages + 1);
  EXPECT_LT(s.events, 1000);
}

TEST(simulation, every_mutant_of_the_pipeline_is_refused) {
  char const* rule[] = {"", "R-HZ", "R-HZ06", "R-HZ15", "R-HZ02", "R-HZ01", "R-HZ01", "R-HZ01", "R-HZ", "R-HZ0", "R-HZ06"};
  for (int m = 1; m <= 10; ++m) {
    simulation s = pipeline(m);
    EXPECT_FALSE(s.error.ok()) << "mutant " << m;
    EXPECT_TRUE(mentions(message(s), rule[m])) << "mutant " << m << ": " << message(s);
  }
}

// Reading the wrong buffer at the right time is a wrong result, not a race: the checker compares values, this does not.
TEST(simulation, a_stale_but_ordered_read_is_not_a_race) { EXPECT_TRUE(pipeline(11).error.ok()); }

template <int Stages, int Pending>
inline constexpr auto gemm_ring = kernel<"gemm_ring", attributes{.num_warps = 8}, Stages, Pending>([](context& k, array<const f16, 2> a, array<const f16, 2> b, array<f16, 2> c) {
  auto [m, n] = k.program_tile(c.shape(), tile_size<64, 64>, {.group = 8});
  auto as = k.local_alloc<f16, 64, 32>(Stages, {.name = "as"});
  auto bs = k.local_alloc<f16, 32, 64>(Stages, {.name = "bs"});
  auto acc = k.var(k.zeros<f32, 64, 64>());
  auto steps = ceil_div(a.extent(1), 32);
  auto fetch = [&](auto i) {
    k.when(i < steps, [&] {
      k.async_load(a.region(at(m, i * 32), extent<64, 32>), as[i % Stages], {.other = 0});
      k.async_load(b.region(at(i * 32, n), extent<32, 64>), bs[i % Stages], {.other = 0});
    });
    k.async_load_commit_group();
  };
  for (int i = 0; i < Stages - 1; ++i) fetch(k.let(i));
  for (auto i : k.range(0, steps)) {
    k.async_load_wait_group(Pending);
    acc = k.dot(as[i % Stages], bs[i % Stages], acc);
    fetch(i + (Stages - 1));
  }
  store(c.region(at(m, n), extent<64, 64>), cast<f16>(acc));
});
constexpr int wait_line = __LINE__ - 5, load_line = wait_line - 8;

static_assert(gemm_ring<2, 0>.ok && gemm_ring<3, 1>.ok && gemm_ring<4, 2>.ok && gemm_ring<7, 5>.ok && gemm_ring<4, 2>.verified);
static_assert(gemm_ring<4, 0>.ok && gemm_ring<4, 1>.ok);
static_assert(!gemm_ring<2, 1>.ok && !gemm_ring<3, 2>.ok && !gemm_ring<4, 3>.ok && !gemm_ring<7, 6>.ok);

TEST(simulation, the_message_names_buffer_lines_and_cure) {
  std::string expected = "kiln[R-HZ01] as[i0 % 4] (4096 B) is read (simulation.cpp:" + std::to_string(wait_line) + ") before the async_load of line " +
                         std::to_string(load_line) + " is known complete; wait for at most 2 pending groups";
  EXPECT_EQ(std::string(gemm_ring<4, 3>.message()), expected);
}

TEST(simulation, a_read_before_any_wait) {
  run_time_recording t;
  auto& k = t.k;
  auto p = t.pointer<f32>();
  auto a = k.local_alloc<f32, 64>(2);
  int const line = __LINE__ - 1;
  k.async_load(p + k.arange<64>(), a[1]);
  k.async_load_commit_group();
  store(p + k.arange<64>(), k.local_load(a[1]));
  simulation s = checked(t);
  EXPECT_TRUE(mentions(message(s), ("kiln[R-HZ01] local_alloc@" + std::to_string(line) + "[1] (256 B) is read").c_str())) << message(s);
  EXPECT_TRUE(mentions(message(s), "add async_load_wait_group(0) before it")) << message(s);
}

TEST(simulation, a_store_over_a_pending_load) {
  run_time_recording t;
  auto& k = t.k;
  auto p = t.pointer<f32>();
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.async_load(p + k.arange<64>(), a[0]);
  k.async_load_commit_group();
  k.local_store(a[0], k.zeros<f32, 64>());
  k.async_load_wait_group(0);
  simulation s = checked(t);
  EXPECT_TRUE(mentions(message(s), "kiln[R-HZ02] a[0] (256 B): the local_store (simulation.cpp:")) << message(s);
}

TEST(simulation, two_loads_into_one_slot) {
  run_time_recording t;
  auto& k = t.k;
  auto p = t.pointer<f32>();
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  for (int i = 0; i < 2; ++i) {
    k.async_load(p + k.arange<64>(), a[0]);
    k.async_load_commit_group();
  }
  k.async_load_wait_group(0);
  EXPECT_TRUE(mentions(message(checked(t)), "kiln[R-HZ02] a[0] (256 B): the async_load"));
}

TEST(simulation, a_group_that_is_never_waited_for) {
  run_time_recording t;
  auto& k = t.k;
  auto p = t.pointer<f32>();
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.async_load(p + k.arange<64>(), a[0]);
  k.async_load_commit_group();
  EXPECT_TRUE(mentions(message(checked(t)), "is never waited for before the kernel ends; add async_load_wait_group(0)"));
}

TEST(simulation, a_load_that_is_never_committed) {
  for (bool reads : {false, true}) {
    run_time_recording t;
    auto& k = t.k;
    auto p = t.pointer<f32>();
    auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
    k.async_load(p + k.arange<64>(), a[0]);
    k.async_load_wait_group(0);
    if (reads) store(p + k.arange<64>(), k.local_load(a[0]));
    EXPECT_TRUE(mentions(message(checked(t)), reads ? "kiln[R-HZ06] the async_load (simulation.cpp:" : "is never committed before the kernel ends"));
    EXPECT_TRUE(!reads || mentions(message(checked(t)), "is not committed when line"));
  }
}

TEST(simulation, a_wait_named_by_its_group_token) {
  for (bool named : {true, false}) {
    run_time_recording t;
    auto& k = t.k;
    auto p = t.pointer<f32>();
    auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
    k.async_load(p + k.arange<64>(), a[0]);
    auto first = k.async_load_commit_group();
    k.async_load(p + k.arange<64>(), a[1]);
    k.async_load_commit_group();
    if (named)
      k.async_load_wait_group(2, {first});
    else
      k.async_load_wait_group(2);
    store(p + k.arange<64>(), k.local_load(a[0]));
    k.async_load_wait_group(0);
    EXPECT_EQ(checked(t).error.ok(), named);
  }
}

TEST(simulation, a_token_carried_in_a_var) {
  for (bool right : {true, false}) {
    run_time_recording t;
    auto& k = t.k;
    auto p = t.pointer<f32>();
    auto n = t.value<i32>();
    auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
    k.async_load(p + k.arange<64>(), a[0]);
    auto pending = k.var(k.async_load_commit_group());
    for (auto i : k.range(0, n)) {
      k.async_load(p + (i + 1) * 64 + k.arange<64>(), a[(i + 1) % 2]);
      auto next = k.async_load_commit_group();
      if (right) k.async_load_wait_group(1000, {pending.read()});
      store(p + i * 64 + k.arange<64>(), k.local_load(a[i % 2]));
      pending = next;
    }
    k.async_load_wait_group(0);
    EXPECT_EQ(checked(t).error.ok(), right) << message(checked(t));
  }
}

TEST(simulation, memory_that_nobody_wrote) {
  run_time_recording t;
  auto& k = t.k;
  auto p = t.pointer<f32>();
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
  k.local_store(a[0], k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(a[1]));
  EXPECT_TRUE(mentions(message(checked(t)), "kiln[R-HZ15] a[1] (256 B) is read (simulation.cpp:")) << message(checked(t));
}

TEST(simulation, memory_written_on_one_branch_only_is_a_warning) {
  run_time_recording t;
  auto& k = t.k;
  auto p = t.pointer<f32>();
  auto n = t.value<i32>();
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.when(n > 3, [&] { k.local_store(a[0], k.zeros<f32, 64>()); });
  store(p + k.arange<64>(), k.local_load(a[0]));
  simulation s = checked(t);
  EXPECT_TRUE(s.error.ok());
  EXPECT_TRUE(has_note(s, "R-HZ15"));
}

TEST(simulation, equal_conditions_are_decided_alike) {
  run_time_recording t;
  auto& k = t.k;
  auto p = t.pointer<f32>();
  auto n = t.value<i32>();
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.when(n > 3, [&] {
    k.async_load(p + k.arange<64>(), a[0]);
    k.async_load_commit_group();
  });
  k.when(3 < n, [&] {
    k.async_load_wait_group(0);
    store(p + k.arange<64>(), k.local_load(a[0]));
  });
  k.when(n <= 3, [&] { store(p + k.arange<64>(), 0.f); });
  simulation s = checked(t);
  EXPECT_TRUE(s.error.ok()) << s.error.text;
  EXPECT_EQ(s.notes.count, 0) << s.notes.items[0].text;
  EXPECT_EQ(s.runs, 2);
}

TEST(simulation, a_wait_on_one_branch_only) {
  run_time_recording t;
  auto& k = t.k;
  auto p = t.pointer<f32>();
  auto n = t.value<i32>();
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.async_load(p + k.arange<64>(), a[0]);
  k.async_load_commit_group();
  k.when(n > 3, [&] { k.async_load_wait_group(0); });
  store(p + k.arange<64>(), k.local_load(a[0]));
  std::string text = message(checked(t));
  EXPECT_TRUE(mentions(text, "R-HZ01") && mentions(text, "when the condition of line")) << text;
}

TEST(simulation, halves_of_one_slot_do_not_disturb_each_other) {
  for (bool same : {false, true}) {
    run_time_recording t;
    auto& k = t.k;
    auto p = t.pointer<f32>();
    auto a = k.local_alloc<f32, 64, 8>(1, {.name = "a"});
    auto rows = k.iota<0, 32, 8>() * 8 + k.iota<1, 32, 8>();
    auto upper = k.local_slice<32, 8>(a[0], {0, 0}), lower = k.local_slice<32, 8>(a[0], {32, 0});
    k.local_store(upper, k.zeros<f32, 32, 8>());
    k.async_load(p + rows, lower);
    k.async_load_commit_group();
    store(p + rows, k.local_load(same ? lower : upper));
    k.async_load_wait_group(0);
    EXPECT_EQ(checked(t).error.ok(), !same);
  }
}

TEST(simulation, a_slice_by_loop_index_of_a_transposed_view) {
  for (bool whole : {true, false}) {
    run_time_recording t;
    auto& k = t.k;
    auto p = t.pointer<f32>();
    auto a = k.local_alloc<f32, 8, 64>(1, {.name = "a"});
    auto rows = k.iota<0, 16, 8>() * 8 + k.iota<1, 16, 8>();
    auto b = k.local_trans(a[0]);
    for (auto i : k.range(0, whole ? 4 : 3)) k.local_store(k.local_slice<16, 8>(b, {i * 16, 0}), k.zeros<f32, 16, 8>());
    store(p + rows, k.local_load(k.local_slice<16, 8>(b, {48, 0})));
    EXPECT_EQ(checked(t).error.ok(), whole);
  }
}

TEST(simulation, a_slice_whose_offset_leaves_its_grid) {
  run_time_recording t;
  auto& k = t.k;
  auto a = k.local_alloc<f32, 64, 8>(1, {.name = "a"});
  for (auto i : k.range(0, 4)) k.local_store(k.local_slice<16, 8>(a[0], {i * 8, 0}), k.zeros<f32, 16, 8>());
  EXPECT_TRUE(mentions(message(checked(t)), "kiln[R-BD03] a slice of a: its offset becomes 8")) << message(checked(t));
}

TEST(simulation, a_slot_index_that_grows_too_large) {
  run_time_recording t;
  auto& k = t.k;
  auto n = t.value<i32>();
  auto a = k.local_alloc<f32, 64>(4, {.name = "a"});
  for (auto i : k.range(0, n)) k.local_store(a[i % 5], k.zeros<f32, 64>());
  EXPECT_EQ(message(checked(t)), "kiln[R-BD01] a: index i0 % 5 becomes 4, valid 0..3");
}

TEST(simulation, nested_loops_with_a_counter) {
  for (bool right : {true, false}) {
    run_time_recording t;
    auto& k = t.k;
    auto p = t.pointer<const f16>();
    auto out = t.pointer<f16>();
    auto tiles = t.value<i32>(), steps = t.value<i32>();
    auto a = k.local_alloc<f16, 64>(3, {.name = "a"});
    auto it = k.var(k.let(0));
    for (int s = 0; s < 2; ++s) {
      k.async_load(p + s * 64 + k.arange<64>(), a[s]);
      k.async_load_commit_group();
    }
    for (auto i : k.range(0, tiles))
      for (auto j : k.range(0, steps)) {
        (void)j;
        k.async_load_wait_group(right ? 1 : 2);
        store(out + i * 64 + k.arange<64>(), k.local_load(a[it % 3]));
        k.async_load(p + it * 64 + k.arange<64>(), a[(it + 2) % 3]);
        k.async_load_commit_group();
        it += 1;
      }
    k.async_load_wait_group(0);
    simulation s = checked(t);
    EXPECT_EQ(s.error.ok(), right) << message(s);
    EXPECT_TRUE(s.complete);
  }
}

TEST(simulation, a_range_that_starts_anywhere_and_one_that_counts_down) {
  for (bool down : {false, true}) {
    run_time_recording t;
    auto& k = t.k;
    auto p = t.pointer<const f16>();
    auto out = t.pointer<f16>();
    auto total = t.value<i32>();
    auto a = k.local_alloc<f16, 64>(2, {.name = "a"});
    auto lo = k.program_id(0) * 7, hi = min(lo + 7, total);
    auto fetch = [&](auto i) {
      k.when(down ? i >= lo : i < hi, [&] { k.async_load(p + i * 64 + k.arange<64>(), a[i % 2]); });
      k.async_load_commit_group();
    };
    auto first = down ? hi - 1 : lo + 0;
    fetch(first);
    auto body = [&](auto i) {
      fetch(down ? i - 1 : i + 1);
      k.async_load_wait_group(1);
      store(out + i * 64 + k.arange<64>(), k.local_load(a[i % 2]));
    };
    if (down)
      for (auto i : k.range(hi - 1, lo - 1, -1)) body(i);
    else
      for (auto i : k.range(lo, hi)) body(i);
    simulation s = checked(t);
    EXPECT_TRUE(s.error.ok()) << message(s);
    EXPECT_TRUE(s.complete);
  }
}

// An epilogue written for at least three passes is wrong for one, unless the kernel says so.
TEST(simulation, a_promise_excludes_short_loops) {
  for (bool promised : {true, false}) {
    run_time_recording t;
    auto& k = t.k;
    auto p = t.pointer<const f16>();
    auto out = t.pointer<f16>();
    auto steps = t.value<i32>();
    if (promised) k.assume(steps >= 3);
    auto a = k.local_alloc<f16, 64>(3, {.name = "a"});
    for (auto i : k.range(0, steps)) k.local_store(a[i % 3], load(p + i * 64 + k.arange<64>()));
    for (int s = 0; s < 3; ++s) store(out + s * 64 + k.arange<64>(), k.local_load(a[s]));
    simulation s = checked(t);
    EXPECT_EQ(s.error.ok(), promised) << message(s);
    EXPECT_NE(mentions(message(s), "runs once"), promised) << message(s);
  }
}

TEST(simulation, unknown_loops_and_conditions_from_memory) {
  run_time_recording t;
  auto& k = t.k;
  auto flags = t.pointer<const i32>();
  auto p = t.pointer<f32>();
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
  auto i = k.var(k.let(0));
  k.local_store(a[0], k.zeros<f32, 64>());
  k.local_store(a[1], k.zeros<f32, 64>());
  k.loop_while([&] { return load(flags + i) != 0; }, [&] {
    k.async_load(p + k.arange<64>(), a[i % 2]);
    k.async_load_commit_group();
    k.async_load_wait_group(0);
    store(p + k.arange<64>(), k.local_load(a[i % 2]));
    i += 1;
  });
  simulation s = checked(t);
  EXPECT_TRUE(s.error.ok()) << s.error.text;
  EXPECT_TRUE(s.complete);
}

TEST(simulation, a_slot_chosen_by_data_is_left_to_the_checker) {
  run_time_recording t;
  auto& k = t.k;
  auto table = t.pointer<const i32>();
  auto p = t.pointer<f32>();
  auto a = k.local_alloc<f32, 64>(4, {.name = "a"});
  for (int s = 0; s < 4; ++s) k.local_store(a[s], k.zeros<f32, 64>());
  store(p + k.arange<64>(), k.local_load(a[load(table) % 4]));
  simulation s = checked(t);
  EXPECT_TRUE(s.error.ok()) << s.error.text;
  EXPECT_FALSE(s.complete);
  EXPECT_TRUE(has_note(s, "R-VF01"));
}

TEST(simulation, masked_elements_without_other_are_a_warning) {
  for (bool other : {false, true}) {
    run_time_recording t;
    auto& k = t.k;
    auto p = t.pointer<f32>();
    auto n = t.value<i32>();
    auto i = k.arange<64>();
    auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
    if (other)
      k.async_load(p + i, a[0], {.mask = i < n, .other = 0});
    else
      k.async_load(p + i, a[0], {.mask = i < n});
    k.async_load_commit_group();
    k.async_load_wait_group(0);
    store(p + i, k.local_load(a[0]));
    simulation s = checked(t);
    EXPECT_TRUE(s.error.ok());
    EXPECT_EQ(has_note(s, "R-HZ12"), !other);
  }
}

// A mask that no launch decides leaves elements unspecified for certain.
TEST(simulation, elements_that_a_known_mask_leaves_out_are_an_error) {
  for (int most : {48, 64}) {
    run_time_recording t;
    auto& k = t.k;
    auto p = t.pointer<f32>();
    auto a = k.local_alloc<f32, 8, 64>(1, {.name = "a"});
    auto i = k.iota<0, 8, 64>() * 64 + k.iota<1, 8, 64>();
    k.async_load(p + i, a[0], {.mask = expand_dims<0>(k.arange<64>() < most)});
    k.async_load_commit_group();
    k.async_load_wait_group(0);
    store(p + i, k.local_load(a[0]));
    simulation s = checked(t);
    EXPECT_EQ(s.error.ok(), most == 64);
    if (most == 48) {
      EXPECT_TRUE(mentions(message(s), "kiln[R-HZ12] a[0] (2048 B) is read")) << message(s);
    }
  }
  // Read in parts, or gathered, the unspecified ones may be left alone.
  run_time_recording t;
  auto& k = t.k;
  auto p = t.pointer<f32>();
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  auto i = k.arange<64>();
  k.async_load(p + i, a[0], {.mask = i < 48});
  k.async_load_commit_group();
  k.async_load_wait_group(0);
  store(p + i, k.local_gather(a[0], i % 48));
  EXPECT_TRUE(checked(t).error.ok());
  EXPECT_TRUE(has_note(checked(t), "R-HZ12"));
}

// A token that a loop carries in a var orders what it names.
TEST(simulation, a_token_in_a_var_is_waited_for) {
  for (bool right : {true, false}) {
    run_time_recording t;
    auto& k = t.k;
    auto p = t.pointer<f32>();
    auto n = t.value<i32>();
    auto i = k.arange<64>();
    auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
    k.async_load(p + i, a[0]);
    auto before = k.var(k.async_load_commit_group());
    for (auto j : k.range(0, n)) {
      k.async_load(p + i, a[(j + 1) % 2]);
      auto next = k.async_load_commit_group();
      token const t0 = right ? k.let(before) : next;
      k.async_load_wait_group(1, {right ? t0 : token{}});
      store(p + i, k.local_load(a[right ? j % 2 : (j + 1) % 2]));
      before = next;
    }
    k.async_load_wait_group(0, {before});
    EXPECT_EQ(checked(t).error.ok(), right) << message(checked(t));
  }
}

TEST(simulation, a_wait_for_nothing_is_a_warning) {
  run_time_recording t;
  auto& k = t.k;
  auto p = t.pointer<f32>();
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  k.async_load(p + k.arange<64>(), a[0]);
  k.async_load_commit_group();
  k.async_load_wait_group(0);
  store(p + k.arange<64>(), k.local_load(a[0]));
  k.async_load_wait_group(0);
  simulation s = checked(t);
  EXPECT_TRUE(s.error.ok());
  ASSERT_EQ(s.notes.count, 1);
  EXPECT_TRUE(mentions(std::string(s.notes.items[0].view()), "kiln[R-HZ16] warning: async_load_wait_group(0) (simulation.cpp:"));
}

TEST(simulation, the_budget_ends_in_a_note) {
  run_time_recording t;
  auto& k = t.k;
  auto a = k.local_alloc<f32, 64>(2, {.name = "a"});
  for (auto i : k.range(0, 100000)) k.local_store(a[i % 2], k.zeros<f32, 64>());
  simulation s = checked(t);
  EXPECT_TRUE(s.error.ok());
  EXPECT_FALSE(s.complete);
  EXPECT_TRUE(has_note(s, "R-VF01"));
  EXPECT_LE(s.events, simulation_budget + 64);
}

TEST(simulation, more_than_64_combinations_end_in_a_note) {
  run_time_recording t;
  auto& k = t.k;
  auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
  for (int i = 0; i < 8; ++i) {
    auto n = t.value<i32>();
    k.when(n > 0, [&] { k.local_store(a[0], k.zeros<f32, 64>()); });
  }
  simulation s = simulate(t.graph());
  EXPECT_TRUE(s.error.ok());
  EXPECT_FALSE(s.complete);
  EXPECT_EQ(s.runs, 64);
}

TEST(simulation, kernels_without_local_memory_cost_nothing) {
  run_time_recording t;
  auto& k = t.k;
  auto p = t.pointer<f32>();
  for (auto i : k.range(0, 10)) store(p + i, 1.f);
  simulation s = checked(t);
  EXPECT_EQ(s.events, 0);
  EXPECT_EQ(s.runs, 0);
}

TEST(simulation, a_spec_that_nobody_names_is_told) { // R-AL05
  for (bool named : {false, true}) {
    run_time_recording t;
    auto& k = t.k;
    auto p = t.pointer<f32>();
    auto sp = k.storage_alias_spec({.name = "sp"});
    auto a = named ? k.local_alloc<f32, 64>(1, {.reuse = &sp, .name = "a"}) : k.local_alloc<f32, 64>(1, {.name = "a"});
    k.local_store(a[0], k.zeros<f32, 64>());
    store(p + k.arange<64>(), k.local_load(a[0]));
    EXPECT_EQ(has_note(checked(t), "R-AL05"), !named);
  }
}

} // namespace
