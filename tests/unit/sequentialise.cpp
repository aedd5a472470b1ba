// Tasks as one program: what comes out has no tasks, is a valid graph, and computes the same.
#include "cluster_kernels.hpp"
#include "interpret.hpp"
#include "pipelines.hpp"
#include "suspicious_kernels.hpp"

#include <kiln/graph/text.hpp>
#include <kiln/validate/verify.hpp>
#include <src/graph/passes/sequentialise.hpp>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

template <class T>
std::vector<unsigned char> outputs(graph_view const& g, int steps, bool check) {
  guarded<T> x(1 << 15), y(1 << 12);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(static_cast<float>(static_cast<int>(i * 7 % 509) - 254) / 4);
  ip::report const r = ip::run(g, {1}, {x, y, kiln_test::val(steps)}, {.check = check, .step_limit = 1 << 22});
  EXPECT_TRUE(r.clean()) << r.text();
  EXPECT_TRUE(y.intact());
  auto const* const b = reinterpret_cast<unsigned char const*>(y.data());
  return {b, b + y.bytes()};
}

template <class T>
void same(char const* name, graph_view const& g) {
  graph const one = sequentialise_tasks(g);
  diagnostic const d = verify(one);
  ASSERT_TRUE(d.ok()) << name << ": " << d.text << "\n" << print(one);
  for (node const& n : one.nodes) EXPECT_FALSE(is_of_tasks(n.code)) << name << ": " << name_of(n.code);
  for (int steps : {0, 1, 2, 5, 9}) {
    if (steps < 2 && std::string(name) == "peeled") continue; // it promises more
    EXPECT_EQ(outputs<T>(g, steps, true), outputs<T>(one, steps, true)) << name << ", " << steps << " steps\n" << print(one);
  }
}

#define KILN_SAME(name)                                                                                                \
  TEST(Sequentialise, name) {                                                                                          \
    run_time_recording t;                                                                                              \
    auto x = t.pointer<f32 const>();                                                                                   \
    auto y = t.pointer<f32>();                                                                                         \
    auto n = t.value<i32>();                                                                                           \
    suspicious::name(t.k, x, y, n);                                                                                    \
    same<f32>(#name, t.graph());                                                                                       \
  }
KILN_SUSPICIOUS(KILN_SAME)

TEST(Sequentialise, TheDesignsPipelines) {
  for (auto record : {matrix_product, ping_pong, attention}) {
    run_time_recording t;
    record(t, 0);
    same<f16>("a pipeline", t.graph());
  }
}

TEST(Sequentialise, PointersInVarsOutliveWaits) {
  run_time_recording t;
  auto x = t.pointer<f32 const>();
  auto y = t.pointer<f32>();
  auto n = t.value<i32>();
  auto& k = t.k;
  auto a = k.local_alloc<f32, 64>(1);
  auto full = k.alloc_barriers(1), empty = k.alloc_barriers(1);
  auto c = k.arange<64>();
  k.async_tasks(k.task_default({},
                               [&] {
                                 auto to = k.var(y + c);
                                 for (auto i : k.range(0, n)) {
                                   auto now = k.let(to);
                                   k.barrier_wait(full[0], i & 1);
                                   store(now, k.local_load(a[0]));
                                   k.barrier_arrive(empty[0]);
                                   to = to + 64;
                                 }
                               }),
                k.task({.num_warps = 1}, [&] {
                  auto from = k.var(x);
                  for (auto i : k.range(0, n)) {
                    k.barrier_wait(empty[0], (i & 1) ^ 1);
                    k.local_store(a[0], load(from + c));
                    from = from + 32;
                    k.barrier_arrive(full[0]);
                  }
                }));
  k.finish();
  ASSERT_TRUE(t.r.error.ok()) << t.r.error.text;
  same<f32>("pointers", t.graph());
}

TEST(Sequentialise, ADeadlockIsAFailedAssertion) {
  run_time_recording t;
  matrix_product(t, 17);
  graph const one = sequentialise_tasks(t.graph());
  guarded<f16> x(1 << 15), y(1 << 12);
  ip::report const r = ip::run(one, {1}, {x, y, kiln_test::val(9)});
  ASSERT_TRUE(r.has("R-VF03")) << r.text();
  EXPECT_NE(r.text().find("deadlock: every task waits for a barrier"), std::string::npos) << r.text();
}

TEST(Sequentialise, Clusters) {
  using recorder_function = void (*)(context&, ptr<const f32>, ptr<f32>, kiln::val<i32>, int);
  for (recorder_function make : {clusters::sum, clusters::ring, clusters::broadcast, clusters::one_way, clusters::halves}) {
    run_time_recording t;
    t.r.attrs.cluster = {2, 1, 1};
    auto x = t.pointer<f32 const>();
    auto y = t.pointer<f32>();
    make(t.k, x, y, t.value<i32>(), 0);
    graph const one = sequentialise_tasks(t.graph());
    ASSERT_TRUE(verify(one).ok()) << verify(one).text;
    EXPECT_TRUE(one.attrs.cluster == dims{});
    for (node const& n : one.nodes) EXPECT_FALSE(is_of_tasks(n.code)) << name_of(n.code);
    for (int steps : {0, 1, 2, 5}) {
      guarded<f32> in(1024), expected(256), out(256);
      for (std::size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(k * 7 % 509) / 4;
      run_clean(t.graph(), {4}, {in, expected, kiln_test::val(steps)});
      run_clean(one, {2}, {in, out, kiln_test::val(steps)});
      for (std::size_t k = 0; k < out.size(); ++k) ASSERT_EQ(out[k], expected[k]) << k << ", " << steps << " steps";
    }
  }
}
TEST(Sequentialise, OtherKernelsStayAsTheyAre) {
  auto g = record([](context& k, ptr<f32> y) { store(y + k.arange<64>(), 1.f); });
  EXPECT_EQ(print(sequentialise_tasks(g)), print(g));
}

} // namespace
