// Barriers, fences, bulk copies and tasks on a GPU against the interpreter: kernels that use each of them, and correct pipelines
// that look wrong. What a target refuses with R-TG01 is counted, not compared.
#include "barrier_kernels.hpp"
#include "cluster_runs.hpp"
#include "run_time_recording.hpp"

#include <kiln/target/compile_error.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace {

using namespace kiln_test;

class GpuTasks : public testing::Test {
protected:
  void SetUp() override {
    dev = kiln::device::best();
    if (dev.is_host()) GTEST_SKIP() << "no GPU here";
    setenv("KILN_CACHE", "off", 1);
  }
  template <class Record>
  void agree(Record record, char const* name) {
    if (dev.is_host()) return;
    run_time_recording t;
    auto x = t.pointer<kiln::f32 const>();
    auto y = t.pointer<kiln::f32>();
    auto n = t.value<kiln::i32>();
    record(t.k, x, y, n);
    t.k.finish();
    ASSERT_TRUE(t.r.error.ok()) << t.r.error.text;
    for (int count : {2, 5, 9})
      for (int ctas : {1, 7}) { // all of them write the same
        generated g;
        g.graph = kiln::graph(t.graph());
        g.graph.name = name;
        g.grid = {ctas, 1, 1};
        g.arguments.resize(3);
        g.arguments[0] = {.kind = kiln::node_kind::pointer, .type = kiln::dtype::f32, .elements = 1 << 14, .holds = contents::small};
        g.arguments[1] = {.kind = kiln::node_kind::pointer, .type = kiln::dtype::f32, .elements = 1 << 12, .is_output = true};
        g.arguments[2] = {.kind = kiln::node_kind::value, .type = kiln::dtype::i32, .bits = static_cast<std::uint64_t>(count)};
        try {
          EXPECT_EQ(compare(g, device_runner(dev, count == 5), {.seed = 1}), "") << name << ", n " << count << ", " << ctas << " CTAs";
        } catch (kiln::compile_error const& e) {
          ASSERT_NE(std::string(e.what()).find("R-TG01"), std::string::npos) << e.what();
          GTEST_SKIP() << e.what();
        }
      }
  }
  kiln::device dev;
};

#define KILN_RUNS(name) \
  TEST_F(GpuTasks, name) { agree([](auto&... a) { meeting::name(a...); }, #name); }
KILN_MEETING(KILN_RUNS)
#undef KILN_RUNS
#define KILN_RUNS(name) \
  TEST_F(GpuTasks, name) { agree([](auto&... a) { suspicious::name(a...); }, #name); }
KILN_SUSPICIOUS(KILN_RUNS)

TEST(GpuClusters, AgreeWithTheInterpreter) {
  kiln::device const dev = kiln::device::best();
  if (dev.is_host()) GTEST_SKIP() << "no GPU here";
  if (!dev.target().has_clusters() || !dev.target().is_nvptx()) GTEST_SKIP() << "no clusters here";
  setenv("KILN_CACHE", "off", 1);
#define KILN_AGREES(kernel, x, y, z) EXPECT_EQ(differs_in_clusters(dev, [](auto&... a) { kernel(a...); }, #kernel, {x, y, z}), "");
  KILN_EVERY_CLUSTER(KILN_AGREES)
  KILN_AGREES(cluster_forms::stores, 16, 1, 1)
#undef KILN_AGREES
}

} // namespace
