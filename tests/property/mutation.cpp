// Proof that the rules work: correct pipelined kernels, and every single change of the kind that people make by mistake: a wait,
// arrival, fence, commit or expectation left out, a parity flipped, an index or a barrier's index off by one, a ring or a count
// one smaller or larger. Each mutant is rejected while the compiler would run, rejected by the checker, or equal: the checker
// then finds every conflicting pair ordered and the outputs bit-equal under all schedules tried. What is left is listed.
//
// KILN_MUTATION_SEEDS (default 12) schedules under each policy must agree before a mutant counts as equal; the published
// numbers are from 1000.
#include "cluster_kernels.hpp"
#include "interpret.hpp"
#include "pipelines.hpp"
#include "suspicious_kernels.hpp"

#include <kiln/validate/validate.hpp>
#include <src/graph/rewrite.hpp>

#include <cstdlib>
#include <map>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

struct mutant {
  std::string what;
  graph g;
};

/// Makes all mutants of a graph.
class mutator {
public:
  explicit mutator(graph_view const& g) : g_(g) {}

  std::vector<mutant> run() {
    for (at_ = 0; at_ < g_.size(); ++at_) {
      switch (g_[at_].code) {
      case op::barrier_wait:
        leave_out();
        other_operand(1, "parity flipped", [&](detail::rewriter& r, int p) {
          detail::node_type const t{dtype::i32, node_kind::value, {}};
          return r.add(op::bit_xor, t, {p, r.add_constant(make_scalar(dtype::i32, 1), {}, at_)}, {}, at_);
        });
        break;
      case op::barrier_arrive:
        leave_out();
        attribute(0, 1, "count + 1");
        break;
      case op::barrier_expect_bytes:
        leave_out();
        attribute(0, 16, "16 B more");
        attribute(0, -16, "16 B less");
        break;
      case op::named_barrier_wait: case op::named_barrier_arrive:
        leave_out();
        attribute(0, 1, "id + 1");
        attribute(1, 32, "32 threads more");
        break;
      case op::fence: case op::async_commit: case op::async_arrive: case op::async_load: case op::async_load_bulk:
      case op::cluster_barrier: case op::fence_barrier_init: case op::remote_store: case op::async_remote_store: case op::async_remote_copy: leave_out(); break;
      case op::remote_barrier: off_by_one(cluster_size(g_.attrs), "rank + 1"); break;
      case op::async_wait: case op::async_store_wait:
        leave_out();
        attribute(0, 1, "one more pending");
        break;
      case op::alloc_barriers:
        attribute(1, 1, "arrive_count + 1");
        if (g_.attribute(at_, 1) > 1) attribute(1, -1, "arrive_count - 1");
        break;
      case op::view_index:
        if (g_[g_.operand(at_, 0)].kind == node_kind::buffers) off_by_one(g_.buffer(g_.buffer_of(at_)).slots, "slot + 1");
        break;
      case op::barrier_index: off_by_one(static_cast<int>(g_.attribute(g_.operand(at_, 0), 0)), "barrier + 1"); break;
      case op::rem: case op::div: smaller_ring(); break;
      case op::var_set:
        if (g_[g_.operand(at_, 0)].shape == 0 && is_int(g_[g_.operand(at_, 0)].type)) leave_out(); // a ring's position
        break;
      default: break;
      }
    }
    return std::move(all_);
  }

private:
  template <class F>
  void make(std::string const& what, F change) {
    detail::rewriter r(g_);
    for (int i = 0; i < g_.size(); ++i)
      if (i == at_) change(r);
      else r.copy(i);
    add(what, r.finish());
  }
  void add(std::string const& what, graph g) {
    graph_view const v = g;
    if (!verify(v).ok()) return; // no kernel at all
    std::string where = std::string(name_of(g_[at_].code)) + " of line " + std::to_string(g_[at_].line) + " (%" + std::to_string(at_) + "): " + what;
    all_.push_back({std::move(where), std::move(g)});
  }
  void leave_out() {
    for (int i = at_ + 1; i < g_.size(); ++i)
      for (int o : g_.operands(i))
        if (o == at_) return; // a token that somebody names
    make("left out", [](detail::rewriter&) {});
  }
  void attribute(int a, i64 by, char const* what) {
    graph g(g_);
    g.attribute_pool[static_cast<std::size_t>(g_[at_].attributes + a)] += by;
    add(what, std::move(g));
  }
  template <class F>
  void other_operand(int j, char const* what, F other) {
    make(what, [&](detail::rewriter& r) {
      int const made = other(r, r.operand(at_, j));
      std::vector<std::int32_t> operands;
      for (int k = 0; k < g_[at_].operand_count; ++k) operands.push_back(k == j ? made : r.operand(at_, k));
      auto const attributes = g_.attributes_of(at_);
      r.replace(at_, r.add(g_[at_].code, {g_[at_].type, g_[at_].kind, g_.shape_of(at_)}, operands,
                           std::vector<std::int64_t>(attributes.begin(), attributes.end()), at_));
    });
  }
  void off_by_one(int n, char const* what) {
    if (n < 2) return;
    other_operand(1, what, [&](detail::rewriter& r, int x) {
      dtype const t = r.made(x).type;
      detail::node_type const scalar{t, node_kind::value, {}};
      int const next = r.add(op::add, scalar, {x, r.add_constant(make_scalar(t, 1), {}, at_)}, {}, at_);
      return r.add(op::rem, scalar, {next, r.add_constant(make_scalar(t, n), {}, at_)}, {}, at_);
    });
  }
  void smaller_ring() {
    node const& c = g_[g_.operand(at_, 1)];
    if (g_[at_].shape != 0 || c.code != op::constant) return;
    i64 const n = g_.attribute(g_.operand(at_, 1), 0);
    if (n < 2 || n > 16) return;
    other_operand(1, "a ring one smaller", [&](detail::rewriter& r, int x) { return r.add_constant(make_scalar(r.made(x).type, n - 1), {}, at_); });
    other_operand(1, "a ring one larger", [&](detail::rewriter& r, int x) { return r.add_constant(make_scalar(r.made(x).type, n + 1), {}, at_); });
  }

  graph_view g_;
  int at_ = 0;
  std::vector<mutant> all_;
};

struct score {
  int generated = 0, compile_time = 0, checker = 0, equal = 0;
  int both = 0; ///< rejected at compile time, and the checker would have found them, too
  std::vector<std::string> survivors;
  std::map<std::string, int> rules;
};

/// Two numbers of steps: one below, one above the length of any ring.
constexpr int step_counts[] = {2, 9};

class suite {
public:
  suite() {
    if (char const* const s = std::getenv("KILN_MUTATION_SEEDS")) seeds_ = std::max(1, std::atoi(s));
  }
  template <class T>
  void kernel(std::string const& name, graph_view const& g) {
    score s;
    outputs<T> const expected(g, {.seeds = 3});
    ASSERT_TRUE(validate(g).ok()) << name << ": " << validate(g).text;
    ASSERT_TRUE(expected.faults.empty()) << name << ": " << expected.faults;
    for (mutant& m : mutator(g).run()) {
      ++s.generated;
      graph_view const changed = m.g;
      if (diagnostic const d = validate(changed); !d.ok()) {
        ++s.compile_time;
        s.both += !outputs<T>(changed, {.seeds = 2}).faults.empty();
        ++s.rules[std::string(d.view()).substr(5, std::string(d.view()).find(']') - 5)];
        continue;
      }
      outputs<T> const quick(changed, {.seeds = 4});
      if (!quick.faults.empty()) {
        ++s.checker;
        continue;
      }
      outputs<T> const long_run(changed, {.seed = 100, .seeds = seeds_});
      if (!long_run.faults.empty()) ++s.checker;
      else if (quick.bytes == expected.bytes && long_run.bytes == expected.bytes && long_run.stable) ++s.equal;
      else s.survivors.push_back(name + ": " + m.what);
    }
    std::printf("%-24s %4d generated, %4d at compile time (%4d also by the checker), %3d by the checker, %3d equal, %2zu survive\n", name.c_str(),
                s.generated, s.compile_time, s.both, s.checker, s.equal, s.survivors.size());
    total_.both += s.both;
    total_.generated += s.generated;
    total_.compile_time += s.compile_time;
    total_.checker += s.checker;
    total_.equal += s.equal;
    for (auto const& [rule, n] : s.rules) total_.rules[rule] += n;
    total_.survivors.insert(total_.survivors.end(), s.survivors.begin(), s.survivors.end());
    ++kernels_;
  }
  void finish() {
    std::printf("%d kernels, %d seeds: %d generated, %d rejected at compile time (%d of them by the checker, too), %d by the checker, %d proven equal, %zu survive (%.1f %%)\n", kernels_, seeds_,
                total_.generated, total_.compile_time, total_.both, total_.checker, total_.equal, total_.survivors.size(),
                100.0 * static_cast<double>(total_.survivors.size()) / total_.generated);
    int const rejected = total_.compile_time + total_.checker;
    std::printf("score: %d of %d rejected (%.1f %%), %d of the %d that are not proven equal (%.1f %%)\n", rejected, total_.generated, 100.0 * rejected / total_.generated,
                rejected, total_.generated - total_.equal, 100.0 * rejected / (total_.generated - total_.equal));
    for (auto const& [rule, n] : total_.rules) std::printf("  %-8s %4d\n", rule.c_str(), n);
    for (std::string const& s : total_.survivors) std::printf("  survivor: %s\n", s.c_str());
    EXPECT_GE(kernels_, 15);
    EXPECT_GT(total_.generated, 300);
    EXPECT_LE(static_cast<double>(total_.survivors.size()), 0.02 * total_.generated);
  }

private:
  /// What a kernel writes, over all policies and seeds and both numbers of steps.
  template <class T>
  struct outputs {
    std::vector<unsigned char> bytes;
    std::string faults;
    bool stable = true;
    outputs(graph_view const& g, ip::run_options options) {
      for (int steps : step_counts) {
        std::vector<unsigned char> first;
        int const seeds = options.seeds;
        for (ip::completion policy : all_policies)
          for (int k = 0; k < seeds && faults.empty(); ++k) {
            guarded<T> x(1 << 15), y(1 << 12);
            for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(static_cast<float>(static_cast<int>(i * 7 % 509) - 254) / 4);
            ip::report const r = ip::run(g, g.attrs.cluster, {x, y, kiln_test::val(steps)},
                                         {.policy = policy, .seed = options.seed + static_cast<u64>(k), .step_limit = 1 << 20});
            if (!r.clean()) faults = r.text();
            auto const* const b = reinterpret_cast<unsigned char const*>(y.data());
            std::vector<unsigned char> now(b, b + y.bytes());
            if (first.empty()) first = now;
            stable = stable && now == first;
          }
        bytes.insert(bytes.end(), first.begin(), first.end());
      }
    }
  };
  int seeds_ = 12, kernels_ = 0;
  score total_;
};

TEST(mutation, every_mutant_that_changes_behaviour_is_rejected) {
  suite all;
  auto recorded = [&](std::string const& name, auto record) {
    run_time_recording t;
    record(t, 0);
    all.kernel<f16>(name, t.graph());
  };
  recorded("matrix_product", matrix_product);
  recorded("ping_pong", ping_pong);
  recorded("attention", attention);
#define KILN_MUTATE(name)                                                                                              \
  {                                                                                                                    \
    run_time_recording t;                                                                                              \
    auto x = t.pointer<f32 const>();                                                                                   \
    auto y = t.pointer<f32>();                                                                                         \
    auto n = t.value<i32>();                                                                                           \
    suspicious::name(t.k, x, y, n);                                                                                    \
    all.kernel<f32>(#name, t.graph());                                                                                 \
  }
  KILN_SUSPICIOUS(KILN_MUTATE)
  auto cluster = [&](std::string const& name, auto record) {
    run_time_recording t;
    t.r.attrs.cluster = {2, 1, 1};
    auto x = t.pointer<f32 const>();
    auto y = t.pointer<f32>();
    auto n = t.value<i32>();
    record(t.k, x, y, n, 0);
    all.kernel<f32>(name, t.graph());
  };
  cluster("cluster: sum", clusters::sum);
  cluster("cluster: ring", clusters::ring);
  cluster("cluster: broadcast", clusters::broadcast);
  all.finish();
}

} // namespace
