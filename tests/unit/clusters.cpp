// Clusters: values of kernels whose CTAs reach each other's memory, and what the compiler and the checker say of broken ones.
#include "cluster_kernels.hpp"
#include "interpret.hpp"

#include <cstdlib>
#include <kiln/graph/text.hpp>
#include <kiln/validate/validate.hpp>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

using recorder_function = void (*)(context&, ptr<const f32>, ptr<f32>, kiln::val<i32>, int);

struct recording : run_time_recording {
  recording(recorder_function make, int mutant, dims cluster) {
    r.attrs.cluster = cluster;
    auto x = pointer<const f32>();
    auto y = pointer<f32>();
    make(k, x, y, value<i32>(), mutant);
    EXPECT_TRUE(r.error.ok()) << r.error.text;
  }
};

std::string verdict(graph_view const& g) {
  diagnostic const d = check_static_rules(g);
  if (!d.ok()) return std::string(d.view());
  simulation const s = simulate(g);
  if (s.error.ok() && !s.complete) return std::string("not followed: ") + std::string(s.notes.items[0].view());
  return std::string(s.error.view());
}

/// Runs over a grid of `grid` under every policy and some seeds; `wanted` fills the expected y from x.
template <class Want>
void computes(recorder_function make, dims cluster, dims grid, int steps, Want wanted) {
  recording const t(make, 0, cluster);
  std::string const said = verdict(t.graph());
  EXPECT_EQ(said, "");
  std::size_t const n = static_cast<std::size_t>(grid.x * grid.y * grid.z) * 64;
  guarded<f32> x(n), y(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 4;
  std::vector<f32> want(n);
  wanted(x, want);
  for (ip::precision precision : {ip::precision::typed, ip::precision::doubled})
    for (ip::completion policy : all_policies)
      for (u64 seed = 1; seed <= 6; ++seed) {
        for (std::size_t i = 0; i < n; ++i) y[i] = -1;
        ip::report const r = ip::run(t.graph(), grid, {x, y, kiln_test::val(steps)}, {.precision = precision, .policy = policy, .seed = seed});
        ASSERT_TRUE(r.clean()) << r.text();
        for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], want[i]) << i;
      }
}
int cluster_of(dims const& c) { return static_cast<int>(c.x * c.y * c.z); }
/// The first element of CTA `rank` of the cluster that begins at `from`, in a grid of width gx, gy.
std::size_t place(dims from, int rank, dims cluster, dims grid) {
  i64 const x = from.x + rank % cluster.x, y = from.y + rank / cluster.x % cluster.y, z = from.z + rank / (cluster.x * cluster.y);
  return static_cast<std::size_t>(x + grid.x * (y + grid.y * z)) * 64;
}

/// Every mutant is refused by the compiler, with this rule, and found by the checker under every policy. KILN_SHOW=1 prints both.
void mutants(recorder_function make, dims cluster, int steps, std::initializer_list<char const*> rules) {
  int m = 0;
  for (char const* rule : rules) {
    ++m;
    recording const t(make, m, cluster);
    std::string const said = verdict(t.graph());
    EXPECT_EQ(said.rfind("kiln[" + std::string(rule), 0), 0u) << "mutant " << m << ": " << said;
    guarded<f32> x(64 * 64), y(64 * 64);
    for (ip::completion policy : all_policies) {
      ip::report const r = ip::run(t.graph(), {cluster.x * 2, cluster.y, cluster.z}, {x, y, kiln_test::val(steps)}, {.policy = policy});
      EXPECT_FALSE(r.clean()) << "mutant " << m << " under policy " << static_cast<int>(policy);
      EXPECT_TRUE(x.intact() && y.intact());
      if (std::getenv("KILN_SHOW")) std::printf("%d: %s\n   %s", m, said.c_str(), r.text().c_str());
    }
  }
}

TEST(clusters, sum) {
  for (dims const c : {dims{2, 1, 1}, dims{1, 2, 1}, dims{2, 2, 1}, dims{1, 1, 3}, dims{2, 2, 2}}) {
    dims const grid{c.x * 2, c.y, c.z};
    computes(kiln_test::clusters::sum, c, grid, 0, [&](guarded<f32> const& x, std::vector<f32>& want) {
      for (i64 b = 0; b < 2; ++b)
        for (int r = 0; r < cluster_of(c); ++r)
          for (std::size_t e = 0; e < 64; ++e)
            for (int from = 0; from < cluster_of(c); ++from) want[place({b * c.x, 0, 0}, r, c, grid) + e] += x[place({b * c.x, 0, 0}, from, c, grid) + e];
    });
  }
}

TEST(clusters, ring) {
  for (dims const c : {dims{2, 1, 1}, dims{3, 1, 1}, dims{2, 2, 1}})
    for (int steps : {0, 1, 2, 5, 9}) {
      dims const grid{c.x * 2, c.y, c.z};
      int const n = cluster_of(c);
      computes(kiln_test::clusters::ring, c, grid, steps, [&](guarded<f32> const& x, std::vector<f32>& want) {
        for (i64 b = 0; b < 2; ++b)
          for (int r = 0; r < n; ++r)
            for (std::size_t e = 0; e < 64; ++e)
              want[place({b * c.x, 0, 0}, r, c, grid) + e] = x[place({b * c.x, 0, 0}, ((r - steps) % n + n) % n, c, grid) + e] + static_cast<float>(steps);
      });
    }
}

TEST(clusters, broadcast_by_tasks) {
  for (dims const c : {dims{2, 1, 1}, dims{2, 2, 1}})
    for (int steps : {0, 1, 3, 4}) { // no more than there are elements of x
      dims const grid{c.x * 2, c.y, c.z};
      computes(kiln_test::clusters::broadcast, c, grid, steps, [&](guarded<f32> const& x, std::vector<f32>& want) {
        for (std::size_t i = 0; i < want.size(); ++i)
          for (int t = 0; t < steps; ++t) want[i] += x[static_cast<std::size_t>(t) * 64 + i % 64];
      });
    }
}

TEST(clusters, mutants_of_sum) {
  mutants(kiln_test::clusters::sum, {2, 1, 1}, 3, {"R-HZ11", "R-HZ13", "R-HZ15", "R-HZ15", "R-HZ13", "R-BR09"});
}
TEST(clusters, mutants_of_ring) {
  mutants(kiln_test::clusters::ring, {3, 1, 1}, 5,
          {"R-BR02", "R-BR07", "R-BR07", "R-BR03", "R-BR02", "R-BR02", "R-BR01", "R-BR01", "R-HZ15", "R-BR02", "R-BR0", "R-HZ11"});
}
TEST(clusters, mutants_of_broadcast) {
  mutants(kiln_test::clusters::broadcast, {2, 1, 1}, 5,
          {"R-BR07", "R-HZ15", "R-BR01", "R-BR01", "R-HZ04", "R-HZ05", "R-BR01", "R-HZ15", "R-HZ04", "R-HZ11"});
}

} // namespace
