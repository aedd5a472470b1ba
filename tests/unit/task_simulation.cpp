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
           "R-HZ01", "R-BR03", "R-BR03", "R-HZ04", "R-BR02", "R-BR04", "R-HZ03", "R-HZ05", "R-HZ13", "R-HZ06", "R-HZ04"},
          600);
}
TEST(task_simulation, ping_pong) {
  mutants(kiln_test::ping_pong,
          {"R-BR02", "R-BR03", "R-BR01", "R-HZ01", "R-BR02", "R-BR02", "R-HZ01", "R-BR02", "R-BR04", "R-BR08", "R-BR02", "R-BR13", "R-HZ04", "R-HZ05", "R-BR08"}, 4300);
}
TEST(task_simulation, attention) {
  mutants(kiln_test::attention, {"R-BR03", "R-BR01", "R-BR03", "R-BR02", "R-BR01", "R-HZ01", "R-HZ01", "R-BR02", "R-BR03", "R-HZ13", "R-HZ1", "R-BR02"}, 600);
}

// Twenty correct kernels that look wrong pass while the compiler runs, without a note.
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

} // namespace
