// Tasks, barriers and bulk copies in the interpreter: values, and what the checker says of every broken pipeline.
#include "interpret.hpp"
#include "pipelines.hpp"

#include <kiln/validate/validate.hpp>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

/// Arguments of the pipelines: x, y and a number of steps.
struct pipeline_run {
  guarded<f16> x{1 << 14}, y{1 << 12};
  ip::report report;

  template <class F>
  pipeline_run(F record, int m, int steps, ip::run_options const& options) {
    run_time_recording t;
    record(t, m);
    EXPECT_TRUE(t.r.error.ok()) << t.r.error.text;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = f16(static_cast<float>(static_cast<int>(i * 7 % 23) - 11) / 8);
    report = ip::run(t.graph(), {1}, {x, y, kiln_test::val(steps)}, options);
  }
};

template <class F>
void good_one_is_clean(F record) {
  std::vector<float> first;
  for (ip::completion policy : all_policies)
    for (u64 seed = 1; seed <= 20; ++seed) {
      pipeline_run r(record, 0, 5, {.policy = policy, .seed = seed});
      ASSERT_TRUE(r.report.clean()) << r.report.text();
      std::vector<float> y;
      for (std::size_t i = 0; i < r.y.size(); ++i) y.push_back(static_cast<float>(r.y[i]));
      if (first.empty()) first = y;
      ASSERT_EQ(y, first) << "seed " << seed;
    }
  bool any = false;
  for (float v : first) any = any || v != 0;
  EXPECT_TRUE(any);
}
/// Every mutant is found under every policy, and by the first seed.
template <class F>
void mutants_are_found(F record, int count, std::initializer_list<int> only_by_barriers = {}) {
  (void)only_by_barriers;
  for (int m = 1; m <= count; ++m)
    for (ip::completion policy : all_policies) {
      pipeline_run r(record, m, 9, {.policy = policy});
      EXPECT_FALSE(r.report.clean()) << "mutant " << m << " under policy " << static_cast<int>(policy);
      EXPECT_TRUE(r.x.intact() && r.y.intact());
    }
}

TEST(InterpreterTasks, MatrixProduct) { good_one_is_clean(matrix_product); }
TEST(InterpreterTasks, PingPong) { good_one_is_clean(ping_pong); }
TEST(InterpreterTasks, Attention) { good_one_is_clean(attention); }
TEST(InterpreterTasks, MutantsOfMatrixProduct) { mutants_are_found(matrix_product, 23); }
TEST(InterpreterTasks, MutantsOfPingPong) { mutants_are_found(ping_pong, 15); }
TEST(InterpreterTasks, MutantsOfAttention) { mutants_are_found(attention, 12); }

} // namespace
