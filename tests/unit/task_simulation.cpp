// The hazard simulation of several tasks: the pipelines of the design's race study, every way of breaking them, and each
// rule's message.
#include <kiln/kernel.hpp>

#include "pipelines.hpp"

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

} // namespace
