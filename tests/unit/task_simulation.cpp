// The hazard simulation of several tasks: the pipelines of the design's race study, every way of breaking them, and each
// rule's message.
#include <kiln/kernel.hpp>

#include "pipelines.hpp"
#include "suspicious_kernels.hpp"

#include <gtest/gtest.h>

#include <string>

using namespace kiln;
using kiln_test::run_time_recording;

namespace {

simulation simulated(run_time_recording const& t) {
  EXPECT_TRUE(t.r.error.ok()) << t.r.error.text;
  simulation s;
  s.error = check_static_rules(t.graph());
  return s.error.ok() ? simulate(t.graph()) : s;
}
std::string text(simulation const& s) { return std::string(s.error.view()); }

template <class F>
void mutants(F record, std::initializer_list<char const*> rules, int most_events) {
  run_time_recording good;
  record(good, 0);
  simulation const s = simulated(good);
  EXPECT_TRUE(s.error.ok()) << s.error.text;
  EXPECT_TRUE(s.complete);
  EXPECT_LT(s.events, most_events);
  int m = 0;
  for (char const* rule : rules) {
    run_time_recording t;
    record(t, ++m);
    simulation const bad = simulated(t);
    EXPECT_EQ(text(bad).rfind("kiln[" + std::string(rule), 0), 0u) << "mutant " << m << ": " << text(bad);
  }
}

TEST(task_simulation, matrix_product) {
  mutants(kiln_test::matrix_product,
          {"R-BR03", "R-BR02", "R-BR02", "R-BR03", "R-BR02", "R-BR03", "R-BR01", "R-BR01", "R-BR01", "R-HZ01", "R-BR02", "R-HZ01",
           "R-HZ01", "R-BR04", "R-BR03", "R-HZ04", "R-BR02", "R-BR04", "R-HZ03", "R-HZ05", "R-HZ13", "R-HZ06", "R-HZ04"},
          600);
}
TEST(task_simulation, ping_pong) {
  mutants(kiln_test::ping_pong,
          {"R-BR02", "R-BR03", "R-BR01", "R-HZ01", "R-BR02", "R-BR02", "R-HZ01", "R-BR02", "R-BR04", "R-BR08", "R-BR02", "R-BR13", "R-HZ04", "R-HZ05", "R-BR08"}, 4300);
}
TEST(task_simulation, attention) {
  mutants(kiln_test::attention, {"R-BR03", "R-BR01", "R-BR03", "R-BR02", "R-BR01", "R-HZ01", "R-HZ01", "R-BR02", "R-BR03", "R-HZ13", "R-HZ1", "R-BR02"}, 600);
}

TEST(task_simulation, cp_async) {
  mutants(kiln_test::cp_async, {"R-HZ01", "R-HZ06", "R-HZ15", "R-HZ02", "R-HZ01", "R-HZ01", "R-HZ01", "R-HZ15", "R-HZ01", "R-AL17", "R-AL16"}, 300);
}

// Twenty-five correct kernels that look wrong pass while the compiler runs, without a note.
#define KILN_EXPECT_GOOD(name)                                                                                         \
  inline constexpr auto name##_kernel = kernel<#name>([](context& k, ptr<const f32> x, ptr<f32> y, val<i32> n) { kiln_test::suspicious::name(k, x, y, n); }); \
  static_assert(name##_kernel.ok && name##_kernel.verified && name##_kernel.notes().empty());
KILN_SUSPICIOUS(KILN_EXPECT_GOOD)

TEST(task_simulation, suspicious_kernels_stay_far_below_the_budget) {
#define KILN_COUNT(name)                                                                                               \
  {                                                                                                                    \
    simulation const s = simulate(name##_kernel.graph());                                                              \
    std::printf("%-24s %5d events, %d runs, %d passes\n", #name, s.events, s.runs, s.passes);                           \
    EXPECT_LT(s.events, simulation_budget / 4) << #name;                                                               \
  }
  KILN_SUSPICIOUS(KILN_COUNT)
}

/// A producer and a consumer of a ring of two, that make `out(n)` and `in(n)` rounds.
template <class Out, class In>
simulation ring_of(Out out, In in) {
  run_time_recording t;
  auto x = t.pointer<f32 const>();
  auto y = t.pointer<f32>();
  auto n = t.value<i32>();
  context& k = t.k;
  auto ring = k.local_alloc<f32, 64>(2, {.name = "ring"});
  auto full = k.alloc_barriers(2, {.name = "full"}), empty = k.alloc_barriers(2, {.name = "empty"});
  auto c = k.arange<64>();
  k.async_tasks(k.task_default({.name = "loads"}, [&] {
                  auto it = k.var(k.let(0));
                  out(k, x, n, [&](auto i) {
                    auto [s, phase] = k.buf_phase(it, 2);
                    k.barrier_wait(empty[s], phase ^ 1);
                    k.local_store(ring[s], load(x + i * 64 + c));
                    k.barrier_arrive(full[s]);
                    it += 1;
                  });
                }),
                k.task({.num_warps = 4, .name = "sums"}, [&] {
                  auto it = k.var(k.let(0));
                  in(k, x, n, [&](auto i) {
                    auto [s, phase] = k.buf_phase(it, 2);
                    k.barrier_wait(full[s], phase);
                    store(y + i * 64 + c, k.local_load(ring[s]));
                    k.barrier_arrive(empty[s]);
                    it += 1;
                  });
                }));
  return simulated(t);
}
auto plain = [](context& k, auto, auto n, auto round) {
  for (auto i : k.range(0, n)) round(i);
};
auto in_pairs = [](context& k, auto, auto n, auto round) { // n / 2 passes of two rounds
  for (auto i : k.range(0, n / 2)) {
    round(i * 2);
    round(i * 2 + 1);
  }
};

TEST(task_simulation, loops_whose_bounds_are_made_of_one_scalar) {
  simulation const good = ring_of(plain, in_pairs);
  EXPECT_TRUE(good.error.ok()) << good.error.text;
  EXPECT_TRUE(good.complete);
  EXPECT_GE(good.passes, 5);
  // The same by other means: blocks of elements, and a nested loop.
  auto of_blocks = [](context& k, auto, auto n, auto round) {
    for (auto i : k.range(0, ceil_div(n, 96))) round(i);
  };
  auto nested = [](context& k, auto, auto n, auto round) {
    for (auto j : k.range(0, n / 192))
      for (auto i : k.range(0, 2)) round(j * 2 + i);
  };
  simulation const blocks = ring_of(of_blocks, nested);
  EXPECT_TRUE(blocks.error.ok()) << blocks.error.text;
  EXPECT_TRUE(blocks.complete);
  // A real mistake in such a relation is still found.
  auto one_too_many = [](context& k, auto, auto n, auto round) {
    for (auto i : k.range(0, n / 2)) {
      round(i * 2);
      round(i * 2 + 1);
      k.when(i == 1, [&] { round(i); });
    }
  };
  simulation const bad = ring_of(plain, one_too_many);
  EXPECT_EQ(text(bad).rfind("kiln[R-BR02] deadlock", 0), 0u) << text(bad);
}

TEST(task_simulation, loops_whose_bounds_cannot_be_compared_raise_no_alarm) {
  // n1 = x[0] rounds against 2 * (x[1] / 2): only data can tell.
  auto loaded = [](context& k, auto x, auto, auto round) {
    for (auto i : k.range(0, cast<i32>(load(x)))) round(i);
  };
  auto half = [](context& k, auto x, auto, auto round) {
    for (auto j : k.range(0, cast<i32>(load(x + 1)) / 2)) {
      round(j * 2);
      round(j * 2 + 1);
    }
  };
  simulation const s = ring_of(loaded, half);
  EXPECT_TRUE(s.error.ok()) << s.error.text;
  EXPECT_FALSE(s.complete);
  ASSERT_GT(s.notes.count, 0);
  EXPECT_NE(s.notes.items[0].view().find("R-VF01"), std::string_view::npos) << s.notes.items[0].text;
  // n against n * n / n: no number fits all passes at once.
  auto squared = [](context& k, auto, auto n, auto round) {
    for (auto i : k.range(0, 1000 - 1000 / (n + 1))) round(i);
  };
  simulation const odd = ring_of(squared, in_pairs);
  EXPECT_TRUE(odd.error.ok() || odd.complete) << odd.error.text;
}

} // namespace
