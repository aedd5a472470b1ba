// main() of every GoogleTest program: a skip is visible to CTest (exit 77) and prints its reason as "SKIP: reason"; the
// seed of random tests comes from KILN_TEST_SEED and is printed by gtest.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

class skip_reporter : public testing::EmptyTestEventListener {
public:
  bool any_skipped = false;

  void OnTestPartResult(testing::TestPartResult const& result) override {
    if (!result.skipped()) return;
    any_skipped = true;
    std::printf("SKIP: %s\n", result.message());
  }
};

} // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  auto* reporter = new skip_reporter; // owned by gtest
  testing::UnitTest::GetInstance()->listeners().Append(reporter);
  int status = RUN_ALL_TESTS();
  if (status != 0) return status;
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::puts("no test matched the filter");
    return 1;
  }
  return reporter->any_skipped ? 77 : 0;
}
