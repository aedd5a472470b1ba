// Clusters: values of kernels whose CTAs reach each other's memory, and what the compiler and the checker say of broken ones.
#include "cluster_kernels.hpp"
#include "interpret.hpp"

#include <cstdlib>
#include <kiln/graph/hash.hpp>
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
  for (dims const c : {dims{1, 1, 1}, dims{2, 1, 1}, dims{1, 2, 1}, dims{2, 2, 1}, dims{1, 1, 3}, dims{2, 2, 2}}) {
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
  for (dims const c : {dims{1, 1, 1}, dims{2, 1, 1}, dims{3, 1, 1}, dims{2, 2, 1}})
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
  for (dims const c : {dims{1, 1, 1}, dims{2, 1, 1}, dims{2, 2, 1}})
    for (int steps : {0, 1, 2}) { // no more than there are elements of x
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

TEST(clusters, an_end_of_ones_own) {
  recording const t(kiln_test::clusters::broadcast, 11, {2, 1, 1});
  EXPECT_EQ(verdict(t.graph()), "");
  guarded<f32> x(64 * 4), y(64 * 2);
  ip::report const r = ip::run_all_policies(t.graph(), {2}, {{x, y, kiln_test::val(4)}}, {.seeds = 5});
  EXPECT_TRUE(r.clean()) << r.text();
}

TEST(clusters, a_deadlock_names_every_cta_and_what_it_waits_for) {
  recording const t(kiln_test::clusters::ring, 10, {2, 1, 1}); // nobody releases a slot
  std::string const said = verdict(t.graph());
  for (char const* part : {"kiln[R-BR02] deadlock: CTA 0 waits (cluster_kernels.hpp:", "for empty[0] phase 0: 0 of 1 arrivals; CTA 1 waits ("})
    EXPECT_NE(said.find(part), std::string::npos) << said;
  guarded<f32> x(128), y(128);
  ip::report const r = ip::run(t.graph(), {2}, {x, y, kiln_test::val(5)});
  EXPECT_TRUE(r.stopped);
  for (char const* part : {"kiln[R-BR02] deadlock: CTA 0 (cluster_kernels.hpp:", "waits for empty[0] phase 0, which has 0 of 1 arrivals; CTA 1 ("})
    EXPECT_NE(r.text().find(part), std::string::npos) << r.text();
}

TEST(clusters, too_much_to_follow_is_a_note) {
  recording const t([](context& k, ptr<const f32>, ptr<f32> y, kiln::val<i32> n, int) {
    auto a = k.local_alloc<f32, 64, 64>(8, {.name = "a"});
    auto ready = k.alloc_barriers(4, {.name = "ready"});
    kiln_test::clusters::begin(k);
    k.when(n > 0, [&] { k.barrier_arrive(ready[0], {.remote = 0}); });
    k.local_store(k.local_slice<8, 8>(a[0], {8, 16}), k.full<f32, 8, 8>(1.f));
    store(y, reduce<kiln::sum>(k.local_load(k.local_slice<8, 8>(a[0], {8, 16}))));
    k.cluster_barrier();
  }, 0, {8, 2, 1});
  simulation const s = simulate(t.graph());
  EXPECT_TRUE(s.error.ok());
  EXPECT_FALSE(s.complete);
  EXPECT_EQ(s.notes.items[0].view(), "kiln[R-VF01] note: in a cluster of 16 CTAs 8192 parts of buffers are too many to follow at compile time; kiln::check does");
}

// -- while this file is compiled ---------------------------------------------------------------------------------------------

// Correct kernels, some of which look wrong, pass without a note.
#define KILN_EXPECT_GOOD(name, ...)                                                                                    \
  inline constexpr auto name##_kernel =                                                                                \
      kernel<#name, attributes{.cluster = __VA_ARGS__}>([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) { kiln_test::clusters::name(k, x, y, n); }); \
  static_assert(name##_kernel.ok && name##_kernel.verified && name##_kernel.notes().empty());
KILN_EXPECT_GOOD(sum, {4, 1, 1})
KILN_EXPECT_GOOD(ring, {2, 1, 1})
KILN_EXPECT_GOOD(broadcast, {2, 1, 1})
KILN_EXPECT_GOOD(one_way, {2, 1, 1})
KILN_EXPECT_GOOD(halves, {2, 1, 1})
#undef KILN_EXPECT_GOOD

TEST(clusters, one_way_without_a_last_meeting) {
  computes(kiln_test::clusters::one_way, {2, 1, 1}, {4, 1, 1}, 3, [](guarded<f32> const& x, std::vector<f32>& want) {
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t e = 0; e < 64; ++e) {
        want[b * 128 + 64 + e] = x[b * 128 + e] * 3;
        want[b * 128 + e] = x[b * 128 + e];
      }
  });
}
TEST(clusters, halves_exchanged_in_place) {
  computes(kiln_test::clusters::halves, {2, 1, 1}, {4, 1, 1}, 4, [](guarded<f32> const& x, std::vector<f32>& want) {
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t e = 0; e < 64; ++e) want[b * 128 + e] = want[b * 128 + 64 + e] = 8 * (x[b * 128 + e] + x[b * 128 + 64 + e]);
  });
}

// -- graphs ------------------------------------------------------------------------------------------------------------------

TEST(clusters, text_reads_back) {
  for (recorder_function make : {kiln_test::clusters::sum, kiln_test::clusters::ring, kiln_test::clusters::broadcast}) {
    recording t(make, 0, {4, 4, 1});
    t.r.attrs.cluster_nonportable = true;
    graph const g("k", t.r);
    std::string const text = print(g);
    EXPECT_NE(text.find("cluster=[4,4,1] cluster_nonportable"), std::string::npos) << text;
    std::vector<graph> const back = parse_graphs(text);
    ASSERT_EQ(back.size(), 1u);
    EXPECT_EQ(print(back[0]), text);
    EXPECT_TRUE(semantic_hash(back[0]) == semantic_hash(g));
    graph other = g;
    other.attrs.cluster_nonportable = false;
    EXPECT_FALSE(semantic_hash(other) == semantic_hash(g));
  }
}

TEST(clusters, graphs_that_are_none) {
  struct wrong {
    char const *nodes, *what;
  };
  std::string const head = "kernel \"k\" num_warps=4 cluster=[2,1,1] {\n  param 0 : ptr<f32>\n  buffer 0 \"a\" : f32[64] slots=1\n"
                           "  buffer 1 \"t\" : f32[128,32] slots=1 storage=tmem\n"
                           "  %0 = param {index=0} : ptr<f32>\n  %1 = constant {bits=1} : i32\n  %2 = alloc_barriers {slots=1, arrive=1, text=\"b\"} : barriers\n"
                           "  %3 = constant {bits=0} : i32\n  %4 = barrier_index %2, %3 : barrier\n  %5 = remote_barrier %4, %1 : barrier\n"
                           "  %6 = alloc {buffer=0} : buffers<f32>[64]\n  %7 = view_index %6, %3 : view<f32>[64]\n  %8 = constant {bits=0} : f32[64]\n"
                           "  %9 = iota {axis=0, start=0} : i32[64]\n  %10 = alloc {buffer=1} : buffers<f32>[128,32]\n  %11 = view_index %10, %3 : view<f32>[128,32]\n  %12 = constant {bits=0} : f32[128,32]\n";
  for (wrong const& w : {
           wrong{"barrier_wait %5, %3", "kiln[R-BR06] barrier_wait: its barrier is in another CTA"},
           wrong{"barrier_expect_bytes %5 {bytes=16}", "kiln[R-BR06] barrier_expect_bytes"},
           wrong{"async_arrive %5", "kiln[R-BR06] async_arrive"},
           wrong{"async_remote_store %7, %8, %1, %5", "kiln[R-BR06] async_remote_store: its barrier is remote already"},
           wrong{"%13 = remote_barrier %5, %1 : barrier", "kiln[R-BR06] remote_barrier: its barrier is remote already"},
           wrong{"remote_store %7, %8, %9", "kiln[R-UN01] remote_store: the rank varies within the CTA"},
           wrong{"remote_store %7, %8, %8", "kiln[G-03] remote_store: operand 2 is not an i32 scalar"},
           wrong{"remote_store %7, %9, %1", "kiln[G-03] remote_store: operand 1 is not a value of the view's type and shape"},
           wrong{"remote_store %11, %12, %1", "kiln[R-CP05] remote_store: t is in tensor memory"},
           wrong{"async_remote_copy %7, %8, %1, %4", "kiln[G-03] async_remote_copy: operand 1 is not a view"},
           wrong{"%13 = cluster_rank : i64", "kiln[G-04] cluster_rank: the result is not an i32 scalar"},
       }) {
    std::vector<graph> const g = parse_graphs(head + "  " + w.nodes + "\n}\n");
    std::string const said(verify(g.at(0)).view());
    EXPECT_EQ(said.rfind(w.what, 0), 0u) << w.nodes << ": " << said;
  }
}

TEST(clusters, sizes) {
  auto says = [](dims cluster, bool nonportable) {
    recording t(kiln_test::clusters::sum, 1, {2, 1, 1});
    t.r.attrs.cluster = cluster;
    t.r.attrs.cluster_nonportable = nonportable;
    return std::string(verify(t.graph()).view());
  };
  EXPECT_EQ(says({4, 2, 1}, false), "");
  EXPECT_EQ(says({4, 4, 1}, true), "");
  EXPECT_NE(says({3, 3, 1}, false).find("R-CP11"), std::string::npos);
  EXPECT_NE(says({17, 1, 1}, true).find("at most 16 CTAs"), std::string::npos);
  EXPECT_NE(says({0, 1, 1}, true).find("at least 1"), std::string::npos);
}

// -- what only a run shows ------------------------------------------------------------------------------------------------------

TEST(clusters, rank_out_of_range_in_a_run) {
  recording const t([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n, int) {
    auto a = k.local_alloc<f32, 64>(1, {.name = "a"});
    k.local_store(a[0], load(x + k.arange<64>()));
    k.cluster_barrier();
    k.when(k.cluster_cta_rank() == 1, [&] { k.remote_shmem_store(a[0], k.full<f32, 64>(2.f), n); });
    k.cluster_barrier();
    store(y + k.program_id(0) * 64 + k.arange<64>(), k.local_load(a[0]));
  }, 0, {2, 1, 1});
  guarded<f32> x(64), y(128);
  ip::report const good = ip::run(t.graph(), {2}, {x, y, kiln_test::val(0)});
  EXPECT_TRUE(good.clean()) << good.text();
  EXPECT_EQ(y[0], 2.f);
  EXPECT_EQ(y[64], 0.f);
  for (int rank : {-1, 2}) {
    ip::report const r = ip::run(t.graph(), {2}, {x, y, kiln_test::val(rank)});
    EXPECT_TRUE(r.has("R-BD01")) << r.text();
    EXPECT_NE(r.text().find("remote_store: rank " + std::to_string(rank) + ", valid 0..1"), std::string::npos) << r.text();
  }
}

TEST(clusters, grid_must_be_whole_clusters) {
  recording const t(kiln_test::clusters::sum, 0, {2, 1, 1});
  guarded<f32> x(64 * 4), y(64 * 4);
  EXPECT_THROW(ip::run(t.graph(), {3}, {x, y, kiln_test::val(0)}), std::invalid_argument);
}

TEST(clusters, global_memory_is_ordered_by_what_orders_ctas) {
  auto exchange = [](bool meet) {
    recording const t(meet ? recorder_function([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32>, int) {
      store(y + k.program_id(0), load(x + k.program_id(0)));
      k.cluster_barrier();
      auto other = load(y + (k.program_id(0) ^ 1));
      k.cluster_barrier();
      store(y + k.program_id(0), other);
    })
                           : [](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32>, int) {
                               store(y + k.program_id(0), load(x + k.program_id(0)));
                               auto other = load(y + (k.program_id(0) ^ 1));
                               k.cluster_barrier();
                               store(y + k.program_id(0), other);
                             },
                      0, {2, 1, 1});
    guarded<f32> x(4), y(4);
    for (std::size_t i = 0; i < 4; ++i) x[i] = static_cast<float>(i);
    ip::report const r = ip::run(t.graph(), {4}, {x, y, kiln_test::val(0)});
    if (meet) {
      EXPECT_TRUE(r.clean()) << r.text();
      EXPECT_EQ(y[0], 1.f);
      EXPECT_EQ(y[3], 2.f);
    } else {
      EXPECT_TRUE(r.has("R-HZ14")) << r.text();
    }
  };
  exchange(true);
  exchange(false);
}

} // namespace
