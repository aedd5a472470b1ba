// Recording: what the compiler records, that it equals a run-time recording, and that programs read as documented.
#include <kiln/kernel.hpp>

#include <gtest/gtest.h>

#include <string>

using namespace kiln;

namespace {

template <int Block>
inline constexpr auto add = kernel<"add", Block>([](context& k, ptr<const f32> x, ptr<const f32> y, ptr<f32> z, val<i64> n) {
  auto i = k.program_id<i64>(0) * Block + k.arange<Block>();
  auto in = i < n;
  store(z + i, load(x + i, {.mask = in}) + load(y + i, {.mask = in}), {.mask = in});
});

template <int Block>
inline constexpr auto softmax_long = kernel<"softmax_long", attributes{.num_warps = 8}, Block>([](context& k, array<const bf16, 2> x, array<bf16, 2> y) {
  auto row = k.program_id(0);
  auto top = k.var(k.full<f32>(-inf)), sum_e = k.var(k.full<f32>(0));
  for (auto c : k.range(0, x.extent(1), Block)) {
    auto v = cast<f32>(load(x.region(at(row, c), extent<1, Block>), {.other = -inf}));
    auto m = max(top, reduce<max>(v));
    sum_e = sum_e * exp(top - m) + reduce<sum>(exp(v - m));
    top = m;
  }
  for (auto c : k.range(0, x.extent(1), Block)) {
    auto v = cast<f32>(load(x.region(at(row, c), extent<1, Block>)));
    store(y.region(at(row, c), extent<1, Block>), cast<bf16>(exp(v - top) / sum_e));
  }
});

template <int BM, int BN, int BK, int S>
inline constexpr auto gemm_ring = kernel<"gemm_ring", attributes{.num_warps = 8}, BM, BN, BK, S>([](context& k, array<const f16, 2> a, array<const f16, 2> b, array<f16, 2> c) {
  auto [m, n] = k.program_tile(c.shape(), tile_size<BM, BN>, {.group = 8});
  auto as = k.local_alloc<f16, BM, BK>(S, {.name = "as"});
  auto bs = k.local_alloc<f16, BK, BN>(S, {.name = "bs"});
  auto acc = k.var(k.zeros<f32, BM, BN>());
  auto steps = ceil_div(a.extent(1), BK);
  auto fetch = [&](auto i) {
    k.when(i < steps, [&] {
      k.async_load(a.region(at(m, i * BK), extent<BM, BK>), as[i % S], {.other = 0});
      k.async_load(b.region(at(i * BK, n), extent<BK, BN>), bs[i % S], {.other = 0});
    });
    k.async_load_commit_group();
  };
  for (int i = 0; i < S - 1; ++i) fetch(k.let(i));
  for (auto i : k.range(0, steps)) {
    k.async_load_wait_group(S - 2);
    acc = k.dot(as[i % S], bs[i % S], acc);
    fetch(i + (S - 1));
  }
  store(c.region(at(m, n), extent<BM, BN>), cast<f16>(acc));
});

inline constexpr auto assorted = kernel<"assorted">([](context& k, ptr<f32> p, val<i32> n) {
  auto x = k.arange<32>();
  auto t = x == n;
  auto u = n == x;
  auto same = x == x;
  auto v = k.var(x);
  v += 1;
  v = v * 2;
  v += n;
  auto y = where((t && u) || !same, x, -x);
  k.when(n > 3, [&] { v = y; }, [&] { v = 7; });
  k.loop_while([&] { return reduce<sum>(v) < 100; }, [&] { v += 1; });
  auto [a, b] = split(join(x, y));
  auto r = reduce<0>(a, [](auto l, auto r) { return l * r; });
  auto best = reduce<0>(a, b, [](auto a0, auto a1, auto b0, auto b1) {
    auto left = a0 > b0;
    return pair_of{where(left, a0, b0), where(left, a1, b1)};
  });
  store(p + x, cast<f32>(v + r + best.second + cumsum(a) + argmax(b) + gather<0>(x, y)));
  atomic_add(p + x, 1.f);
  auto wide = k.full<f32, 16, 32>(1.f);
  auto d = k.dot(wide, trans(wide));
  store(p + k.iota<0, 16, 16>() * 16 + k.iota<1, 16, 16>(), exp(d) + reduce<max, 1, keep>(wide));
  for (auto i : k.range(10, 0, -1))
    for (auto j : k.range(0, n)) {
      (void)i;
      v += j;
    }
});

static_assert(add<1024>.ok && softmax_long<512>.ok && gemm_ring<64, 64, 32, 3>.ok && assorted.ok);

template <class Kernel>
struct recorded_again {
  template <class L, fixed_string Name, attributes Attrs, class Grid>
  static void record(recorder& r, kernel_t<L, Name, Attrs, Grid> const&) {
    detail::record_into<L>(r, Attrs);
  }
};

int count(graph_view const& g, op code) {
  int n = 0;
  for (int i = 0; i < g.size(); ++i) n += g[i].code == code;
  return n;
}

TEST(recording, vector_add_reads_like_its_source) {
  graph_view g = add<1024>.graph();
  EXPECT_EQ(g.name, "add");
  EXPECT_EQ(count(g, op::load), 2);
  EXPECT_EQ(count(g, op::store), 1);
  EXPECT_EQ(g.params.size(), 4u);
  EXPECT_TRUE(g.params[0].is_const);
  EXPECT_FALSE(g.params[2].is_const);
  EXPECT_EQ(g.params[3].type, dtype::i64);
}

TEST(recording, operands_come_before_their_uses) {
  for (graph_view g : {add<64>.graph(), softmax_long<64>.graph(), gemm_ring<64, 64, 32, 3>.graph(), assorted.graph()})
    for (int i = 0; i < g.size(); ++i) {
      EXPECT_GE(g[i].operand_count, info(g[i].code).least) << name_of(g[i].code);
      for (int o : g.operands(i)) EXPECT_LT(o, i) << name_of(g[i].code);
      if (i >= static_cast<int>(g.params.size())) {
        EXPECT_GT(g[i].line, 0) << name_of(g[i].code);
        EXPECT_NE(std::string(g.file(i)).find("recording.cpp"), std::string::npos);
      }
    }
}

TEST(recording, regions_of_nodes_are_matched) {
  graph_view g = assorted.graph();
  for (int i = 0; i < g.size(); ++i) {
    if (g[i].code == op::for_begin) {
      int end = static_cast<int>(g.attribute(i, 0));
      EXPECT_EQ(g[end].code, op::for_end);
      EXPECT_EQ(g.attribute(end, 0), i);
    }
    if (g[i].code == op::if_begin) {
      EXPECT_EQ(g[static_cast<int>(g.attribute(i, 0))].code, op::if_else);
      EXPECT_EQ(g[static_cast<int>(g.attribute(i, 1))].code, op::if_end);
    }
    if (g[i].code == op::while_begin) {
      EXPECT_EQ(g[static_cast<int>(g.attribute(i, 0))].code, op::while_test);
      EXPECT_EQ(g[static_cast<int>(g.attribute(i, 1))].code, op::while_end);
    }
  }
}

TEST(recording, unequal_types_and_shapes_meet_by_explicit_nodes) {
  for (graph_view g : {add<64>.graph(), softmax_long<64>.graph(), assorted.graph()})
    for (int i = 0; i < g.size(); ++i)
      if (has(g[i].code, trait::elementwise) && g[i].code != op::cast && g[i].code != op::where && g[i].code != op::ptr_add)
        for (int o : g.operands(i)) {
          EXPECT_EQ(g.shape_of(o), g.shape_of(i)) << name_of(g[i].code);
          EXPECT_EQ(g[o].type, g[g.operand(i, 0)].type) << name_of(g[i].code);
        }
}

TEST(recording, lines_are_those_of_the_statements) {
  graph_view g = softmax_long<64>.graph();
  int exponentials = 0, last = 0;
  for (int i = 0; i < g.size(); ++i) {
    exponentials += g[i].code == op::exp;
    if (g[i].line) {
      EXPECT_GE(g[i].line + 12, last);
      last = g[i].line;
    }
  }
  EXPECT_EQ(exponentials, 3);
}

TEST(recording, a_run_time_recording_is_valid_too) {
  recorder r;
  recorded_again<void>::record(r, gemm_ring<64, 64, 32, 3>);
  EXPECT_TRUE(r.error.ok()) << r.error.text;
  EXPECT_EQ(r.nodes.size(), (gemm_ring<64, 64, 32, 3>.graph().size()));
  EXPECT_EQ(r.buffers.size(), 2);
}

} // namespace
