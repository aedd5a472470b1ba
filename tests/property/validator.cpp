// The validator on random input: good graphs pass every rule, spoiled ones are refused without a crash, intervals hold what
// is computed, and pipelines are judged as a direct execution of their copies judges them.
#include "random_graph.hpp"
#include "run_time_recording.hpp"
#include "test_seed.hpp"

#include <kiln/graph/text.hpp>
#include <kiln/validate/bounds.hpp>
#include <kiln/validate/program.hpp>
#include <kiln/validate/validate.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

using namespace kiln;

namespace {

TEST(validator, random_graphs_pass_every_rule) {
  std::uint64_t const seed = kiln_test::seed();
  int simulated = 0;
  for (std::uint64_t i = 0; i < 600; ++i) {
    kiln_test::generator_options o;
    o.steps = 5 + static_cast<int>(i % 60);
    auto const x = kiln_test::random_graph(seed + i, o);
    diagnostic const d = check_static_rules(x.graph);
    ASSERT_TRUE(d.ok()) << d.text << "\nseed " << seed + i << "\n" << print(x.graph);
    simulation const s = simulate(x.graph);
    ASSERT_TRUE(s.error.ok()) << s.error.text << "\nseed " << seed + i << "\n" << print(x.graph);
    simulated += s.runs > 0;
  }
  EXPECT_GT(simulated, 50);
}

// Whatever a broken pass or file may hold: an answer, not a crash. (The sanitizer build is what makes this sharp.)
TEST(validator, spoiled_graphs_get_an_answer) {
  std::uint64_t const seed = kiln_test::seed();
  std::mt19937_64 random(seed);
  auto pick = [&](std::int64_t n) { return n <= 0 ? 0 : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); };
  int refused = 0, total = 0;
  for (std::uint64_t i = 0; i < 150; ++i) {
    kiln_test::generator_options o;
    o.steps = 5 + static_cast<int>(i % 30);
    auto const x = kiln_test::random_graph(seed + i, o);
    for (int m = 0; m < 40; ++m) {
      graph g = x.graph;
      std::size_t const at = static_cast<std::size_t>(pick(static_cast<std::int64_t>(g.nodes.size())));
      node& n = g.nodes[at];
      switch (pick(9)) {
      case 0: n.code = static_cast<op>(pick(op_count)); break;
      case 1: n.type = static_cast<dtype>(pick(dtype_count)); break;
      case 2: n.kind = static_cast<node_kind>(pick(9)); break;
      case 3: n.shape = static_cast<std::int32_t>(pick(static_cast<std::int64_t>(g.shapes.size()) + 2) - 1); break;
      case 4: n.operand_count += pick(2) ? 1 : -1; break;
      case 5: n.operands += static_cast<std::int32_t>(pick(9) - 4); break;
      case 6:
        if (!g.operand_pool.empty()) g.operand_pool[static_cast<std::size_t>(pick(static_cast<std::int64_t>(g.operand_pool.size())))] = static_cast<std::int32_t>(pick(static_cast<std::int64_t>(g.nodes.size()) + 3) - 2);
        break;
      case 7:
        if (!g.attribute_pool.empty()) g.attribute_pool[static_cast<std::size_t>(pick(static_cast<std::int64_t>(g.attribute_pool.size())))] = pick(40) - 8;
        break;
      default: g.nodes.erase(g.nodes.begin() + static_cast<std::ptrdiff_t>(at)); break;
      }
      ++total;
      diagnostic const d = verify(g);
      if (!d.ok()) {
        ++refused;
        EXPECT_EQ(std::string(d.text).substr(0, 5), "kiln[");
        continue;
      }
      // A change that still is a graph: the later stages must live with it too.
      if (check_bounds(g).ok()) simulate(g);
    }
  }
  EXPECT_GT(refused, total / 2);
}

TEST(validator, intervals_contain_every_value) {
  std::uint64_t const seed = kiln_test::seed();
  std::mt19937_64 random(seed);
  auto pick = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); };
  constexpr dtype types[] = {dtype::i8, dtype::i16, dtype::i32, dtype::i64, dtype::u8, dtype::u32};
  constexpr op ops[] = {op::add, op::sub, op::mul, op::div, op::rem, op::bit_and, op::bit_or, op::bit_xor, op::shl, op::shr, op::min, op::max, op::lt, op::ge, op::eq, op::where, op::neg, op::abs, op::bit_not, op::cast};
  auto small = [&](dtype t) {
    std::int64_t v = pick(4) ? pick(20) - (is_signed_int(t) ? 8 : 0) : static_cast<std::int64_t>(random());
    return detail::wrap(t, v);
  };
  for (int round = 0; round < 400; ++round) {
    recorder r;
    std::vector<std::int64_t> sizes;
    auto scalar = [&](op code, dtype t, std::initializer_list<std::int32_t> operands, std::initializer_list<std::int64_t> attributes) {
      return r.push(code, {t, node_kind::value, 0}, operands, attributes, site{});
    };
    for (int i = 0; i < 4; ++i) {
      dtype const t = types[pick(6)];
      int const n = scalar(op::param, t, {}, {r.params.size()});
      r.params.add() = {.kind = node_kind::value, .type = t, .node = n};
      sizes.push_back(small(t));
    }
    for (int i = 0; i < 5; ++i) {
      dtype const t = types[pick(6)];
      scalar(op::constant, t, {}, {small(t)});
    }
    int const loop_bound = scalar(op::constant, dtype::i32, {}, {5 + pick(40)}), from = scalar(op::constant, dtype::i32, {}, {pick(9) - 4});
    int const step = scalar(op::constant, dtype::i32, {}, {1 + pick(7)});
    int const loop = scalar(op::for_begin, dtype::i32, {from, loop_bound, step}, {-1});
    auto same_type = [&](dtype t) {
      for (int tries = 0; tries < 60; ++tries) {
        int const n = static_cast<int>(pick(r.nodes.size()));
        if (r.nodes[n].type == t) return n;
      }
      return scalar(op::constant, t, {}, {small(t)});
    };
    for (int i = 0; i < 40; ++i) {
      op const o = ops[pick(sizeof ops / sizeof *ops)];
      int const a = static_cast<int>(pick(r.nodes.size()));
      dtype const t = r.nodes[a].type;
      if (is_bool(t) && o != op::bit_and && o != op::bit_or && o != op::bit_xor && o != op::bit_not && o != op::cast && o != op::eq) continue;
      if (o == op::where) scalar(o, t, {same_type(dtype::b1), a, same_type(t)}, {});
      else if (o == op::cast) scalar(o, pick(8) ? types[pick(6)] : dtype::b1, {a}, {});
      else if (o == op::neg || o == op::abs || o == op::bit_not) scalar(o, t, {a}, {});
      else if (o == op::div || o == op::min || o == op::max) scalar(o, t, {a, same_type(t)}, {0});
      else scalar(o, o == op::lt || o == op::ge || o == op::eq ? dtype::b1 : t, {a, same_type(t)}, {});
    }
    r.push(op::for_end, {}, {}, {loop}, site{});
    r.attribute(loop, 0) = r.nodes.size() - 1;
    graph_view const g = r.view();
    known_sizes const known{sizes, {}};
    detail::ranges const general(g), special(g, &known);
    for (int sample = 0; sample < 20; ++sample) {
      std::vector<std::int64_t> v(static_cast<std::size_t>(g.size()));
      bool const given = sample % 2 == 0;
      for (int i = 0; i + 1 < g.size(); ++i) {
        node const& n = g[i];
        auto in = [&](int j) { return j < n.operand_count ? v[static_cast<std::size_t>(g.operand(i, j))] : 0; };
        std::int64_t& x = v[static_cast<std::size_t>(i)];
        if (n.code == op::param) x = given ? sizes[static_cast<std::size_t>(g.attribute(i, 0))] : small(n.type);
        else if (n.code == op::constant) x = detail::wrap(n.type, g.attribute(i, 0));
        else if (n.code == op::for_begin) x = in(0) + pick((in(1) - in(0) + in(2) - 1) / in(2)) * in(2);
        else x = detail::evaluate(n.code, g[g.operand(i, 0)].type, n.type, in(0), in(1), in(2));
        for (detail::ranges const* all : {&general, &special}) {
          if (all == &special && !given) continue;
          range const& q = (*all)[i];
          bool const inside = x >= q.lo && x <= q.hi && (q.divisor == 0 ? x == q.remainder : detail::modulo(x, q.divisor) == detail::modulo(q.remainder, q.divisor));
          ASSERT_TRUE(inside) << name_of(n.code) << " " << name_of(n.type) << " = " << x << " not in " << q.lo << ".." << q.hi << ", " << q.remainder << " mod "
                              << q.divisor << " (operands " << in(0) << " " << in(1) << " " << in(2) << ")";
        }
      }
    }
  }
}

/// A ring of copies: `distance` loads ahead, `pending` groups left open by the wait, load before or after the read.
struct ring {
  int slots, distance, pending, pass_size;
  bool load_first, guarded, drain, commit_always;
};

/// Executes the copies one by one. Whether a pass count shows a fault.
bool faulty(ring const& x, int passes) {
  std::vector<int> group(static_cast<std::size_t>(x.slots), -1); // -1: never written
  int committed = 0, complete = 0;
  bool open = false, bad = false;
  auto load = [&](int i) {
    if (!x.guarded || i < passes) {
      int& s = group[static_cast<std::size_t>(i % x.slots)];
      bad = bad || s > complete;
      s = committed + 1;
      open = true;
    }
    if (x.commit_always || !x.guarded || i < passes) {
      ++committed;
      open = false;
    }
  };
  auto read = [&](int i) {
    int const s = group[static_cast<std::size_t>(i % x.slots)];
    bad = bad || s < 0 || s > complete;
  };
  for (int i = 0; i < x.distance; ++i) load(i);
  for (int i = 0; i < passes; ++i) {
    if (x.load_first) load(i + x.distance);
    if (committed - x.pending > complete) complete = committed - x.pending;
    read(i);
    if (!x.load_first) load(i + x.distance);
  }
  if (x.drain) complete = committed;
  if (passes > 2)
    for (int s : group) bad = bad || s > complete;
  return bad || open;
}

TEST(validator, rings_are_judged_as_a_direct_execution_judges_them) {
  std::uint64_t const seed = kiln_test::seed();
  std::mt19937_64 random(seed);
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
  int good = 0, wrong = 0;
  for (int round = 0; round < 1500; ++round) {
    ring const x{1 + pick(6), pick(6), pick(6), 64, pick(2) == 0, pick(4) != 0, pick(4) != 0, pick(4) != 0};
    kiln_test::run_time_recording t;
    auto& k = t.k;
    auto p = t.pointer<const f32>();
    auto out = t.pointer<f32>();
    auto n = t.value<i32>();
    auto a = k.local_alloc<f32, 64>(x.slots, {.name = "a"});
    auto load = [&](auto i) {
      auto copy = [&] { k.async_load(p + i * 64 + k.arange<64>(), a[i % x.slots]); };
      auto commit = [&] { k.async_load_commit_group(); };
      if (!x.guarded) {
        copy();
        commit();
      } else if (x.commit_always) {
        k.when(i < n, copy);
        commit();
      } else {
        k.when(i < n, [&] {
          copy();
          commit();
        });
      }
    };
    for (int i = 0; i < x.distance; ++i) load(k.let(i));
    for (auto i : k.range(0, n)) {
      if (x.load_first) load(i + x.distance);
      k.async_load_wait_group(x.pending);
      store(out + i * 64 + k.arange<64>(), k.local_load(a[i % x.slots]));
      if (!x.load_first) load(i + x.distance);
    }
    if (x.drain) k.async_load_wait_group(0);
    ASSERT_TRUE(verify(t.graph()).ok());
    simulation const s = simulate(t.graph());
    ASSERT_TRUE(s.complete);
    // The direct execution goes further: to twice as many passes.
    bool expected = false;
    for (int passes : {1, 2, s.passes, s.passes + 1, 2 * s.passes, 2 * s.passes + 1}) expected = expected || faulty(x, passes);
    ASSERT_EQ(s.error.ok(), !expected) << s.error.text << " slots " << x.slots << " distance " << x.distance << " pending " << x.pending << " first " << x.load_first
                                       << " guarded " << x.guarded << " drain " << x.drain << " commit " << x.commit_always;
    ++(expected ? wrong : good);
  }
  EXPECT_GT(good, 50);
  EXPECT_GT(wrong, 200);
}

} // namespace
