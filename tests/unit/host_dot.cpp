// Matrix products on the host: which loops are recognised, and that what is made of them is right, on several CPUs, for
// ragged sizes, strides, types and numberings of CTAs.
#include "jit/engine.hpp"
#include "jit/target/host/dot_match.hpp"
#include "jit/target/host/dot_recipe.hpp"
#include "jit/target/host/lower.hpp"

#include <kiln/kernel.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test_seed.hpp"

namespace {

using namespace kiln;
using jit::host::match_dot_loop;

// -- kernels -----------------------------------------------------------------------------------------------------------

template <class T> using sum_of = std::conditional_t<std::same_as<T, f64>, f64, std::conditional_t<std::same_as<T, i8>, i32, f32>>;

template <class T, class Out, int BM, int BN, int BK, int Group>
inline constexpr auto product = kernel<"product">([](context& k, array<const T, 2> a, array<const T, 2> b, array<Out, 2> c) {
  auto [m, n] = k.program_tile(c.shape(), tile_size<BM, BN>, {.group = Group});
  auto acc = k.var(k.zeros<sum_of<T>, BM, BN>());
  for (auto kk : k.range(0, a.extent(1), BK))
    acc = k.dot(load(a.region(at(m, kk), extent<BM, BK>)), load(b.region(at(kk, n), extent<BK, BN>)), acc);
  store(c.region(at(m, n), extent<BM, BN>), cast<Out>(acc));
});

// The same, but the host cannot know that it starts from zeros.
template <class T, int BM, int BN, int BK>
inline constexpr auto plain_product = kernel<"plain_product">([](context& k, array<const T, 2> a, array<const T, 2> b, array<sum_of<T>, 2> c) {
  auto [m, n] = k.program_tile(c.shape(), tile_size<BM, BN>);
  auto acc = k.var(broadcast<BM, BN>(cast<sum_of<T>>(k.program_id(1))));
  for (auto kk : k.range(0, a.extent(1), BK))
    acc = k.dot(load(a.region(at(m, kk), extent<BM, BK>)), load(b.region(at(kk, n), extent<BK, BN>)), acc);
  store(c.region(at(m, n), extent<BM, BN>), acc);
});

// c = a^T b^T, from arrays [k, m] and [n, k].
template <class T, int BM, int BN, int BK>
inline constexpr auto transposed_product = kernel<"transposed_product">([](context& k, array<const T, 2> a, array<const T, 2> b, array<sum_of<T>, 2> c) {
  auto [m, n] = k.program_tile(c.shape(), tile_size<BM, BN>, {.group = 2});
  auto acc = k.var(k.zeros<sum_of<T>, BM, BN>());
  for (auto kk : k.range(0, a.extent(0), BK))
    acc = k.dot(trans(load(a.region(at(kk, m), extent<BK, BM>))), trans(load(b.region(at(n, kk), extent<BN, BK>))), acc);
  store(c.region(at(m, n), extent<BM, BN>), acc);
});

// A grid of two dimensions, rows along y; bf16 operands multiplied as f32; a bias and a clamp at the end.
inline constexpr auto biased = kernel<"biased">([](context& k, array<const bf16, 2> a, array<const bf16, 2> b, array<const f32, 1> bias, array<f32, 2> c) {
  auto m = k.program_id(1) * 32, n = k.program_id(0) * 48;
  auto acc = k.var(k.zeros<f32, 32, 48>());
  for (auto i : k.range(0, ceil_div(a.extent(1), 16))) {
    auto x = cast<f32>(load(a.region(at(m, i * 16), extent<32, 16>)));
    auto y = cast<f32>(load(b.region(at(i * 16, n), extent<16, 48>)));
    acc += k.dot(x, y);
  }
  acc += expand_dims<0>(load(bias.region(at(n), extent<48>)));
  store(c.region(at(m, n), extent<32, 48>), max(acc, 0.f));
});

// K walked backwards and split over the grid's second axis: one slab of partial sums for each part.
inline constexpr auto split_k = kernel<"split_k">([](context& k, array<const f32, 2> a, array<const f32, 2> b, array<f32, 3> c, val<i32> part) {
  auto n = k.program_id(0) * 32;
  auto s = k.program_id(1);
  auto low = s * part;
  auto acc = k.var(k.zeros<f32, 16, 32>());
  for (auto kk : k.range(low + part - 8, low - 8, -8))
    acc = k.dot(load(a.region(at(0, kk), extent<16, 8>)), load(b.region(at(kk, n), extent<8, 32>)), acc);
  store(c.region(at(s, 0, n), extent<1, 16, 32>), reshape<1, 16, 32>(acc));
});

template <class T, int BM, int BN, int BK, int S>
inline constexpr auto ring = kernel<"ring">([](context& k, array<const T, 2> a, array<const T, 2> b, array<sum_of<T>, 2> c) {
  auto [m, n] = k.program_tile(c.shape(), tile_size<BM, BN>, {.group = 8});
  auto as = k.local_alloc<T, BM, BK>(S, {.name = "as"});
  auto bs = k.local_alloc<T, BK, BN>(S, {.name = "bs"});
  auto acc = k.var(k.zeros<sum_of<T>, BM, BN>());
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
  store(c.region(at(m, n), extent<BM, BN>), acc);
});

// By pointers and masks. Ahead: k's part of the mask compares from the other side; without it K must be a multiple of 16.
template <class T, bool Masked>
inline constexpr auto pointer_product = kernel<"pointer_product", Masked>([](context& k, ptr<const T> a, ptr<const T> b, array<f32, 2> c, val<i32> m, val<i32> n,
                                                                    val<i32> depth, val<i64> a_row, val<i64> a_k, val<i64> b_k, val<i64> b_n) {
  auto rows = k.program_id(1) * 32 + k.arange<32>();
  auto columns = k.program_id(0) * 48 + k.arange<48>();
  auto acc = k.var(k.zeros<f32, 32, 48>());
  for (auto kk : k.range(0, depth, 16)) {
    auto j = kk + k.arange<16>();
    auto x = a + (expand_dims<1>(rows) * a_row + expand_dims<0>(j) * a_k);
    auto y = b + expand_dims<1>(j) * b_k + expand_dims<0>(columns) * b_n;
    if constexpr (Masked) {
      auto u = load(x, {.mask = (expand_dims<1>(rows) < m) & (expand_dims<0>(j) < depth), .other = 0});
      auto v = load(y, {.mask = (expand_dims<1>(j) <= depth - 1) & (n > expand_dims<0>(columns)), .other = 0});
      acc = k.dot(u, v, acc);
    } else {
      auto u = load(x, {.mask = expand_dims<1>(rows) < m, .other = 0});
      auto v = load(y, {.mask = expand_dims<0>(columns) < n, .other = 0});
      acc = k.dot(u, v, acc);
    }
  }
  store(c.region(at(k.program_id(1) * 32, k.program_id(0) * 48), extent<32, 48>), acc);
});
// Rows one after the other, whole tiles, no mask, no strides.
inline constexpr auto dense_pointers = kernel<"dense_pointers">([](context& k, ptr<const f32> a, ptr<const f32> b, array<f32, 2> c, val<i64> depth) {
  auto rows = k.program_id<i64>(1) * 32 + k.arange<32>(), columns = k.program_id<i64>(0) * 32 + k.arange<32>();
  auto acc = k.var(k.zeros<f32, 32, 32>());
  for (auto kk : k.range(0, depth, 16)) {
    auto j = kk + k.arange<16>();
    acc = k.dot(load(a + (expand_dims<1>(rows) * depth + expand_dims<0>(j))), load(b + (expand_dims<1>(j) * 64 + expand_dims<0>(columns))), acc);
  }
  store(c.region(at(k.program_id(1) * 32, k.program_id(0) * 32), extent<32, 32>), acc);
});

// Sums out of bounds of a and b (they are 0) decide about what is stored.
inline constexpr auto row_max = kernel<"row_max">([](context& k, array<const f32, 2> a, array<const f32, 2> b, array<f32, 1> c) {
  auto m = k.program_id(0) * 32;
  auto acc = k.var(k.zeros<f32, 32, 64>());
  for (auto kk : k.range(0, a.extent(1), 16))
    acc = k.dot(load(a.region(at(m, kk), extent<32, 16>)), load(b.region(at(kk, 0), extent<16, 64>)), acc);
  store(c.region(at(m), extent<32>), reduce<max, 1>(acc));
});

// -- recognition -------------------------------------------------------------------------------------------------------

std::string why_not(graph_view const& g) { return match_dot_loop(g).why; }

TEST(dot_match, finds_products) {
  EXPECT_EQ(why_not(product<f32, f32, 64, 64, 32, 1>.graph()), "");
  EXPECT_EQ(why_not(product<bf16, bf16, 64, 64, 32, 8>.graph()), "");
  EXPECT_EQ(why_not(transposed_product<f32, 64, 64, 32>.graph()), "");
  EXPECT_EQ(why_not(biased.graph()), "");
  EXPECT_EQ(why_not(split_k.graph()), "");
  EXPECT_EQ(why_not(ring<f16, 64, 64, 32, 3>.graph()), "");
  EXPECT_EQ(why_not(plain_product<f32, 32, 32, 32>.graph()), "the accumulator does not start as zeros");
}

TEST(dot_match, knows_what_operands_depend_on) {
  const auto m = match_dot_loop(product<f32, f32, 64, 128, 32, 8>.graph());
  ASSERT_TRUE(m);
  EXPECT_EQ(m.found.m, 64);
  EXPECT_EQ(m.found.n, 128);
  EXPECT_EQ(m.found.k, 32);
  EXPECT_EQ(m.found.a.keys.size(), 1u);
  EXPECT_EQ(m.found.b.keys.size(), 1u);
  EXPECT_NE(m.found.a.keys[0], m.found.b.keys[0]);
  EXPECT_EQ(m.found.a.row_axis, 0);
  EXPECT_EQ(m.found.b.k_axis, 0);
  EXPECT_EQ(m.found.bound_keys.size(), 0u);

  const auto t = match_dot_loop(transposed_product<f32, 64, 64, 32>.graph());
  EXPECT_EQ(t.found.a.k_axis, 0);
  EXPECT_EQ(t.found.b.k_axis, 1);
  EXPECT_EQ(match_dot_loop(biased.graph()).found.columns, -1);
  EXPECT_GE(match_dot_loop(product<f32, f32, 64, 64, 32, 1>.graph()).found.columns, 0);
  EXPECT_EQ(m.found.walked, 8);
  EXPECT_GE(m.found.rows, 0);
  EXPECT_EQ(match_dot_loop(split_k.graph()).found.bound_keys.size(), 2u);
  EXPECT_EQ(match_dot_loop(ring<f16, 64, 64, 32, 3>.graph()).found.a.lead, 2);
}

TEST(dot_match, reads_pointers_and_masks) {
  EXPECT_EQ(why_not(pointer_product<bf16, true>.graph()), "");
  EXPECT_EQ(why_not(pointer_product<f32, false>.graph()), "");
  const auto m = match_dot_loop(pointer_product<f32, true>.graph());
  ASSERT_TRUE(m);
  EXPECT_EQ(m.found.a.pointers.limits[0].size(), 1u);
  EXPECT_EQ(m.found.a.pointers.limits[1].size(), 1u);
  EXPECT_EQ(m.found.a.keys.size(), 1u);
  EXPECT_EQ(m.found.b.keys.size(), 1u);
  EXPECT_FALSE(m.found.a.unit_step(1));
  const auto dense = match_dot_loop(dense_pointers.graph());
  ASSERT_TRUE(dense) << dense.why;
  EXPECT_TRUE(dense.found.a.unit_step(1));
  EXPECT_FALSE(dense.found.a.unit_step(0));
  EXPECT_TRUE(dense.found.b.unit_step(dense.found.b.row_axis));
}

TEST(dot_match, knows_which_sums_count) {
  EXPECT_EQ(match_dot_loop(product<f32, bf16, 64, 128, 32, 8>.graph()).found.outputs.size(), 1u);
  EXPECT_EQ(match_dot_loop(biased.graph()).found.outputs.size(), 1u);
  const auto slab = match_dot_loop(split_k.graph()).found.outputs;
  ASSERT_EQ(slab.size(), 1u);
  EXPECT_EQ(slab[0].row_axis, 1);
  EXPECT_EQ(slab[0].column_axis, 2);
  const auto reduced = match_dot_loop(row_max.graph());
  EXPECT_TRUE(reduced);
  EXPECT_TRUE(reduced.found.outputs.empty());
}

template <class F> std::string why_not_of(F) {
  recorder r;
  detail::record_into<F>(r, attributes{});
  EXPECT_TRUE(r.error.ok()) << r.error.text;
  return why_not(r.view());
}

TEST(dot_match, refuses_what_is_not_only_a_product) {
  EXPECT_EQ(why_not_of([](context& k, array<const f32, 2> a, array<f32, 2> c) { // reads acc in the loop
              auto acc = k.var(k.zeros<f32, 16, 16>()), seen = k.var(k.zeros<f32, 16, 16>());
              for (auto kk : k.range(0, a.extent(1), 16)) {
                auto x = load(a.region(at(0, kk), extent<16, 16>));
                acc = k.dot(x, x, acc);
                seen = acc;
              }
              store(c.region(at(0, 0), extent<16, 16>), acc + seen);
            }),
            "the loop does not write exactly one var");
  EXPECT_EQ(why_not_of([](context& k, array<const f32, 2> a, array<f32, 2> c) { // operand made from acc
              auto acc = k.var(k.zeros<f32, 16, 16>());
              for (auto kk : k.range(0, a.extent(1), 16))
                acc = k.dot(load(a.region(at(0, kk), extent<16, 16>)), acc, acc);
              store(c.region(at(0, 0), extent<16, 16>), acc);
            }),
            "the accumulator is read in the loop");
  EXPECT_EQ(why_not_of([](context& k, array<const f32, 2> a, array<f32, 2> c) { // scaled between
              auto acc = k.var(k.zeros<f32, 16, 16>());
              for (auto kk : k.range(0, a.extent(1), 16)) {
                auto x = load(a.region(at(0, kk), extent<16, 16>));
                acc = k.dot(x, x, acc * 0.5f);
              }
              store(c.region(at(0, 0), extent<16, 16>), acc);
            }),
            "the dot does not add to the var that it is written to");
  EXPECT_EQ(why_not_of([](context& k, array<f32, 2> a, array<f32, 2> c) { // writes what it reads
              auto acc = k.var(k.zeros<f32, 16, 16>());
              for (auto kk : k.range(0, a.extent(1), 16)) {
                auto x = load(a.region(at(0, kk), extent<16, 16>));
                acc = k.dot(x, x, acc);
                store(a.region(at(0, kk + 16), extent<16, 16>), x);
              }
              store(c.region(at(0, 0), extent<16, 16>), acc);
            }),
            "the loop has another effect than the product");
  EXPECT_EQ(why_not_of([](context& k, array<f32, 2> a, array<f32, 2> c) { // writes before
              auto acc = k.var(k.zeros<f32, 16, 16>());
              store(a.region(at(0, 0), extent<16, 16>), acc);
              for (auto kk : k.range(0, a.extent(1), 16)) {
                auto x = load(a.region(at(0, kk), extent<16, 16>));
                acc = k.dot(x, x, acc);
              }
              store(c.region(at(0, 0), extent<16, 16>), acc);
            }),
            "the kernel has an effect before the loop");
  EXPECT_EQ(why_not_of([](context& k, array<const f32, 2> a, array<f32, 2> c) { // arithmetic on an operand
              auto acc = k.var(k.zeros<f32, 16, 16>());
              for (auto kk : k.range(0, a.extent(1), 16)) {
                auto x = load(a.region(at(0, kk), extent<16, 16>));
                acc = k.dot(x * 2.f, x, acc);
              }
              store(c.region(at(0, 0), extent<16, 16>), acc);
            }),
            "an operand is neither a load nor a view");
  EXPECT_EQ(why_not_of([](context& k, array<const f32, 2> a, array<f32, 2> c) { // the dot's result is used twice
              auto acc = k.var(k.zeros<f32, 16, 16>());
              for (auto kk : k.range(0, a.extent(1), 16)) {
                auto x = load(a.region(at(0, kk), extent<16, 16>));
                auto d = k.dot(x, x, acc);
                acc = d;
                k.device_assert(d >= 0.f, "negative");
              }
              store(c.region(at(0, 0), extent<16, 16>), acc);
            }),
            "the dot has another use");
  EXPECT_EQ(why_not_of([](context& k, array<const f32, 2> a, ptr<const i32> where, array<f32, 2> c) { // start from memory
              auto acc = k.var(k.zeros<f32, 16, 16>());
              for (auto i : k.range(0, 4)) {
                auto x = load(a.region(at(0, load(where + i)), extent<16, 16>));
                acc = k.dot(x, x, acc);
              }
              store(c.region(at(0, 0), extent<16, 16>), acc);
            }),
            "a region's start is not index arithmetic");
}

// Rings: one thing different from the right one at a time.
template <int Lead, int FirstSlot, int Times, int ReadAhead, bool Two>
constexpr void odd_ring(context& k, array<const f32, 2> a, array<f32, 2> c) {
  constexpr int S = 3;
  auto as = k.local_alloc<f32, 16, 16>(S, {.name = "as"});
  auto acc = k.var(k.zeros<f32, 16, 16>());
  auto steps = ceil_div(a.extent(1), 16);
  for (int i = 0; i < 2; ++i) k.async_load(a.region(at(0, k.let(i) * Times), extent<16, 16>), as[k.let(i + FirstSlot) % S], {.other = 0});
  auto other = load(a.region(at(0, 0), extent<16, 16>));
  for (auto i : k.range(0, steps)) {
    acc = k.dot(as[(i + ReadAhead) % S], other, acc);
    k.async_load(a.region(at(0, (i + Lead) * 16), extent<16, 16>), as[(i + 2) % S], {.other = 0});
    if (Two) k.async_load(a.region(at(0, (i + Lead) * 16), extent<16, 16>), as[(i + 2) % S], {.other = 0});
  }
  store(c.region(at(0, 0), extent<16, 16>), acc);
}

TEST(dot_match, refuses_rings_that_hold_something_else) {
  EXPECT_EQ(why_not_of([](context& k, array<const f32, 2> a, array<f32, 2> c) { odd_ring<2, 0, 16, 0, false>(k, a, c); }), "");
  EXPECT_EQ(why_not_of([](context& k, array<const f32, 2> a, array<f32, 2> c) { odd_ring<3, 0, 16, 0, false>(k, a, c); }),
            "a load before the loop reads another place than the loop's would");
  EXPECT_EQ(why_not_of([](context& k, array<const f32, 2> a, array<f32, 2> c) { odd_ring<2, 1, 16, 0, false>(k, a, c); }),
            "a load before the loop fills another slot");
  EXPECT_EQ(why_not_of([](context& k, array<const f32, 2> a, array<f32, 2> c) { odd_ring<2, 0, 8, 0, false>(k, a, c); }),
            "a load before the loop reads another place than the loop's would");
  EXPECT_EQ(why_not_of([](context& k, array<const f32, 2> a, array<f32, 2> c) { odd_ring<2, 0, 16, 1, false>(k, a, c); }),
            "the slot that the dot reads is not index % slots");
  EXPECT_EQ(why_not_of([](context& k, array<const f32, 2> a, array<f32, 2> c) { odd_ring<2, 0, 16, 0, true>(k, a, c); }),
            "the ring is filled twice in the loop");
}

TEST(dot_match, leaves_a_valid_rest) {
  for (graph_view const& g : {product<f32, f16, 64, 64, 32, 8>.graph(), biased.graph(), graph_view(ring<f16, 64, 64, 32, 3>.graph())}) {
    const auto m = match_dot_loop(g);
    ASSERT_TRUE(m);
    const auto r = jit::host::without_dot_loop(g, m.found);
    for (auto const& n : r.rest.nodes) {
      EXPECT_NE(n.code, op::dot);
      EXPECT_NE(n.code, op::for_begin);
      EXPECT_NE(n.code, op::async_load);
    }
    const diagnostic d = validate(r.rest); // all is well but that nothing in this graph fills the buffer
    EXPECT_NE(std::string(d.text).find("kiln[R-HZ15] accumulators ("), std::string::npos) << d.text;
    ASSERT_GE(r.buffer, 0);
    EXPECT_EQ(r.rest.view().buffer(r.buffer).type, m.found.accumulator);
  }
}

TEST(dot_recipe, takes_the_blocks_that_were_measured_to_be_best) {
  auto g = product<f32, f32, 128, 128, 32, 1>.graph();
  const auto d = match_dot_loop(g).found;
  const auto facts = specialisation::generic(g);
  const auto wide = choose_dot_recipe(g, d, facts, {512, 32, true, true, true, true});
  EXPECT_EQ(wide.mr, 6);
  EXPECT_EQ(wide.nr(), 64);
  EXPECT_EQ(wide.group, 16);
  EXPECT_EQ(wide.band, 4);
  EXPECT_EQ(wide.k_block, 256);
  const auto narrow = choose_dot_recipe(g, d, facts, {256, 16, true, true, false, false});
  EXPECT_EQ(narrow.mr, 6);
  EXPECT_EQ(narrow.nr(), 16);
}

TEST(dot_recipe, fits_registers_and_covers_the_tile) {
  auto g = product<f32, f32, 128, 128, 32, 1>.graph();
  auto d = match_dot_loop(g).found;
  auto facts = specialisation::generic(g);
  for (jit::host::dot_cpu cpu : {jit::host::dot_cpu{512, 32, true, true, true, true}, {256, 16, true, true, false, false}, {128, 16, false, true, false, false}})
    for (int m : {1, 3, 16, 32, 100, 128, 256})
      for (int n : {1, 8, 16, 40, 64, 128, 200})
        for (int k : {1, 2, 8, 24, 32, 300, 512}) {
          d.m = m, d.n = n, d.k = k;
          const auto r = choose_dot_recipe(g, d, facts, cpu);
          EXPECT_LE(r.mr * r.nv + r.nv + 1, cpu.registers);
          EXPECT_GE(r.steps, 1);
          EXPECT_EQ(r.k_block % r.k_tile, 0);
          EXPECT_EQ(r.k_tile % r.unroll, 0);
          EXPECT_GE(r.group, 1);
          EXPECT_LE(r.arena_bytes(d), std::int64_t{64} << 20);
        }
}

// -- running -----------------------------------------------------------------------------------------------------------

const std::vector<std::string>& cpus() {
#if defined(__x86_64__)
  static const std::vector<std::string> all = [] {
    std::vector<std::string> v{"", "x86-64"};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) v.push_back("haswell");
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) v.push_back("skylake-avx512");
    return v;
  }();
#else
  static const std::vector<std::string> all{""};
#endif
  return all;
}

jit::engine& engine_for(std::string const& cpu) {
  static std::map<std::string, std::unique_ptr<jit::engine>> all;
  auto& e = all[cpu];
  if (!e) {
    const char* before = std::getenv("KILN_HOST_CPU");
    const std::string saved = before ? before : "";
    if (!cpu.empty()) setenv("KILN_HOST_CPU", cpu.c_str(), 1);
    e = std::make_unique<jit::engine>(jit::engine_options{.debugger = false});
    if (before) setenv("KILN_HOST_CPU", saved.c_str(), 1);
    else unsetenv("KILN_HOST_CPU");
  }
  return *e;
}

struct code {
  jit::compiled image;
  jit::host::host_code info;
};

code compile(graph_view g, specialisation const& facts, std::string const& cpu) {
  static int serial = 0;
  jit::engine& e = engine_for(cpu);
  code out;
  jit::request r;
  r.target = targets::host;
  r.symbol = "kernel";
  r.key = std::to_string(serial++);
  r.build = [&](jit::module_builder& m) { out.info = jit::host::lower_host(g, facts, e.cpu(), m); };
  out.image = e.compile(r);
  return out;
}

/// Runs a whole grid in calls of `chunk` CTAs (0: what the code asks for).
void run(code const& c, std::vector<std::uint64_t> const& slots, dims grid, std::int64_t chunk = 0) {
  void* arena = nullptr;
  const auto bytes = static_cast<std::size_t>(c.info.arena_bytes);
  ASSERT_EQ(posix_memalign(&arena, 4096, bytes + 4096), 0);
  std::memset(arena, 0xff, bytes + 4096); // NaN everywhere
  const std::uint32_t extents[3]{static_cast<std::uint32_t>(grid.x), static_cast<std::uint32_t>(grid.y), static_cast<std::uint32_t>(grid.z)};
  const std::int64_t total = grid.x * grid.y * grid.z;
  if (chunk == 0) chunk = std::max<std::int64_t>(c.info.chunk, 1);
  for (std::int64_t i = 0; i < total; i += chunk)
    c.image.as<jit::host::entry_function>()(slots.data(), extents, i, std::min(i + chunk, total), arena, nullptr);
  auto const* behind = static_cast<unsigned char const*>(arena) + bytes;
  for (int i = 0; i < 4096; ++i) ASSERT_EQ(behind[i], 0xff) << "the arena was overrun at " << i;
  std::free(arena);
}

template <class T> T made(double x) {
  if constexpr (std::same_as<T, i8>) return static_cast<i8>(std::lround(x * 100));
  else return T(static_cast<float>(x));
}
template <class T> double number(T x) { return static_cast<double>(x); }

/// A matrix with strides and room around it, which must stay as it is.
template <class T> struct matrix {
  std::int64_t rows, columns, row_stride, column_stride;
  std::vector<T> all;
  matrix(std::int64_t r, std::int64_t c, bool by_column = false, std::int64_t pad = 0)
      : rows(r), columns(c), row_stride(by_column ? 1 : c + pad), column_stride(by_column ? r + pad : 1),
        all(static_cast<std::size_t>(64 + (by_column ? (r + pad) * c : r * (c + pad)) + 64), made<T>(-1)) {}
  T& operator()(std::int64_t i, std::int64_t j) { return all[static_cast<std::size_t>(32 + i * row_stride + j * column_stride)]; }
  void fill(std::mt19937_64& random) {
    std::uniform_real_distribution<double> any(-1, 1);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) (*this)(i, j) = made<T>(any(random));
  }
  void slots(std::vector<std::uint64_t>& to) {
    to.push_back(std::bit_cast<std::uint64_t>(&(*this)(0, 0)));
    for (std::int64_t x : {rows, columns, row_stride, column_stride}) to.push_back(static_cast<std::uint64_t>(x));
  }
};

/// c against a b in double. `a_by_k`, `b_by_n`: the arrays are transposed.
template <class T, class Out>
void check(matrix<T>& a, matrix<T>& b, matrix<Out>& c, std::int64_t depth, bool transposed, std::string const& what) {
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.columns; ++j) {
      double sum = 0, magnitude = 0;
      for (std::int64_t k = 0; k < depth; ++k) {
        const double p = transposed ? number(a(k, i)) * number(b(j, k)) : number(a(i, k)) * number(b(k, j));
        sum += p;
        magnitude += std::fabs(p);
      }
      const double got = number(c(i, j));
      const double unit = std::same_as<Out, f64> ? 0x1p-53 : 0x1p-24;
      double tolerance = std::same_as<Out, i32> ? 0 : 2 * static_cast<double>(depth) * unit * magnitude;
      if constexpr (bits_of(dtype_of<Out>) == 16) tolerance += std::fabs(sum) * 0x1p-8 + 0x1p-24;
      ASSERT_LE(std::fabs(got - sum), tolerance) << what << ": c[" << i << "][" << j << "] = " << got << ", expected " << sum;
    }
}

std::int64_t tiles(std::int64_t n, int by) { return (n + by - 1) / by; }

struct size {
  std::int64_t m, n, k;
};

template <class T, class Out, int BM, int BN, int BK, int Group>
void check_sizes(std::initializer_list<size> sizes) {
  std::mt19937_64 random(kiln_test::seed());
  for (std::string const& cpu : cpus()) {
    const graph_view g = product<T, Out, BM, BN, BK, Group>.graph();
    const code c = compile(g, specialisation::generic(g), cpu);
    EXPECT_GE(c.info.chunk, 1);
    for (size s : sizes) {
      matrix<T> a(s.m, s.k), b(s.k, s.n);
      matrix<Out> out(s.m, s.n);
      a.fill(random), b.fill(random);
      std::vector<std::uint64_t> slots;
      a.slots(slots), b.slots(slots), out.slots(slots);
      run(c, slots, {tiles(s.m, BM) * tiles(s.n, BN), 1, 1});
      check(a, b, out, s.k, false, cpu + " " + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

constexpr std::initializer_list<size> ragged{{64, 64, 64}, {1, 1, 1}, {130, 70, 33}, {65, 129, 100}, {3, 200, 7}, {200, 5, 500}, {64, 64, 0}};

TEST(host_dot, f32) { check_sizes<f32, f32, 64, 64, 32, 1>(ragged); }
TEST(host_dot, f32_grouped_numbering) { check_sizes<f32, f32, 32, 64, 16, 4>(ragged); }
TEST(host_dot, f64) { check_sizes<f64, f64, 64, 32, 16, 2>(ragged); }
TEST(host_dot, f16) { check_sizes<f16, f32, 64, 64, 32, 1>(ragged); }
TEST(host_dot, f16_out) { check_sizes<f16, f16, 64, 64, 32, 1>(ragged); }
TEST(host_dot, bf16) { check_sizes<bf16, bf16, 32, 64, 32, 8>(ragged); }
TEST(host_dot, f8e4m3) { check_sizes<f8e4m3, f32, 32, 32, 32, 1>({{33, 40, 50}}); }
TEST(host_dot, f8e5m2) { check_sizes<f8e5m2, f32, 32, 32, 32, 1>({{33, 40, 50}}); }
TEST(host_dot, i8) { check_sizes<i8, i32, 64, 64, 32, 1>(ragged); }
TEST(host_dot, i8_odd_k) { check_sizes<i8, i32, 16, 24, 5, 1>({{17, 30, 23}, {16, 24, 300}}); }
TEST(host_dot, odd_tiles) {
  check_sizes<f32, f32, 7, 20, 3, 1>({{20, 50, 10}, {7, 20, 400}});
  check_sizes<f32, f32, 100, 36, 8, 2>({{150, 90, 300}});
  check_sizes<f64, f64, 5, 3, 1, 1>({{12, 8, 9}});
  check_sizes<f32, f32, 1, 1, 1, 1>({{3, 4, 5}});
}
TEST(host_dot, k_longer_than_a_panel) { check_sizes<f32, f32, 32, 32, 512, 1>({{40, 40, 1300}}); }

TEST(host_dot, strides) {
  std::mt19937_64 random(kiln_test::seed());
  for (std::string const& cpu : cpus())
    for (bool known : {false, true})
      for (int way = 0; way < 8; ++way) {
        if (known && !cpu.empty()) continue;
        matrix<f32> a(70, 90, way & 1, 3), b(90, 50, way & 2, 5), out(70, 50, way & 4, 1);
        a.fill(random), b.fill(random);
        const graph_view g = product<f32, f32, 32, 32, 16, 1>.graph();
        auto facts = specialisation::generic(g);
        if (known) {
          const matrix<f32>* all[]{&a, &b, &out};
          for (std::size_t p = 0; p < 3; ++p) {
            facts.params[p].stride[0] = {all[p]->row_stride == 1, all[p]->row_stride == 1 ? 1 : 0, 1};
            facts.params[p].stride[1] = {all[p]->column_stride == 1, all[p]->column_stride == 1 ? 1 : 0, 1};
          }
        }
        std::vector<std::uint64_t> slots;
        a.slots(slots), b.slots(slots), out.slots(slots);
        run(compile(g, facts, cpu), slots, {tiles(70, 32) * tiles(50, 32), 1, 1});
        check(a, b, out, 90, false, cpu + " way " + std::to_string(way));
        if (testing::Test::HasFatalFailure()) return;
      }
}

template <class T> void check_transposed() {
  std::mt19937_64 random(kiln_test::seed());
  for (std::string const& cpu : cpus()) {
    const graph_view g = transposed_product<T, 64, 32, 32>.graph();
    const code c = compile(g, specialisation::generic(g), cpu);
    for (size s : {size{64, 64, 64}, {70, 90, 100}, {5, 6, 7}, {128, 128, 310}}) {
      matrix<T> a(s.k, s.m), b(s.n, s.k);
      matrix<sum_of<T>> out(s.m, s.n);
      a.fill(random), b.fill(random);
      std::vector<std::uint64_t> slots;
      a.slots(slots), b.slots(slots), out.slots(slots);
      run(c, slots, {tiles(s.m, 64) * tiles(s.n, 32), 1, 1});
      check(a, b, out, s.k, true, cpu);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}
TEST(host_dot, transposed_f32) { check_transposed<f32>(); }
TEST(host_dot, transposed_bf16) { check_transposed<bf16>(); }
TEST(host_dot, transposed_f64) { check_transposed<f64>(); }
TEST(host_dot, transposed_i8) { check_transposed<i8>(); }

TEST(host_dot, two_dimensional_grid_and_epilogue) {
  std::mt19937_64 random(kiln_test::seed());
  for (std::string const& cpu : cpus()) {
    const graph_view g = biased.graph();
    const code c = compile(g, specialisation::generic(g), cpu);
    matrix<bf16> a(100, 77), b(77, 130);
    matrix<f32> out(100, 130);
    std::vector<f32> bias(130);
    a.fill(random), b.fill(random);
    for (auto& x : bias) x = std::uniform_real_distribution<float>(-1, 1)(random);
    std::vector<std::uint64_t> slots;
    a.slots(slots), b.slots(slots);
    slots.insert(slots.end(), {std::bit_cast<std::uint64_t>(bias.data()), 130, 1});
    out.slots(slots);
    run(c, slots, {tiles(130, 48), tiles(100, 32), 1});
    for (int i = 0; i < 100; ++i)
      for (int j = 0; j < 130; ++j) {
        double sum = bias[static_cast<std::size_t>(j)];
        for (int k = 0; k < 77; ++k) sum += number(a(i, k)) * number(b(k, j));
        ASSERT_NEAR(out(i, j), std::max(sum, 0.), 1e-4) << cpu;
      }
  }
}

template <class T, bool Masked> void check_pointers() {
  std::mt19937_64 random(kiln_test::seed());
  for (std::string const& cpu : cpus()) {
    const graph_view g = pointer_product<T, Masked>.graph();
    const code c = compile(g, specialisation::generic(g), cpu);
    EXPECT_GE(c.info.chunk, 1);
    for (size s : {size{100, 130, 77}, {32, 48, 16}, {1, 1, 1}, {33, 50, 300}, {64, 96, 0}, {7, 200, 512}})
      for (bool by_column : {false, true}) {
        if (!Masked) s.k = s.k / 16 * 16;
        matrix<T> a(s.m, s.k, by_column, 3), b(s.k, s.n, by_column, 5);
        matrix<f32> out(s.m, s.n);
        a.fill(random), b.fill(random);
        std::vector<std::uint64_t> slots{std::bit_cast<std::uint64_t>(&a(0, 0)), std::bit_cast<std::uint64_t>(&b(0, 0))};
        out.slots(slots);
        for (std::int64_t x : {s.m, s.n, s.k, a.row_stride, a.column_stride, b.row_stride, b.column_stride}) slots.push_back(static_cast<std::uint64_t>(x));
        run(c, slots, {tiles(s.n, 48), tiles(s.m, 32), 1});
        check(a, b, out, s.k, false, cpu + " " + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k));
        if (testing::Test::HasFatalFailure()) return;
      }
  }
}
TEST(host_dot, pointers_and_masks_f32) { check_pointers<f32, true>(); }
TEST(host_dot, pointers_and_masks_bf16) { check_pointers<bf16, true>(); }
TEST(host_dot, pointers_without_a_mask_along_k) { check_pointers<f32, false>(); }
TEST(host_dot, dense_pointers) {
  std::mt19937_64 random(kiln_test::seed());
  for (std::string const& cpu : cpus()) {
    const graph_view g = dense_pointers.graph();
    const code c = compile(g, specialisation::generic(g), cpu);
    matrix<f32> a(96, 400), b(400, 64), out(96, 64);
    a.fill(random), b.fill(random);
    std::vector<std::uint64_t> slots{std::bit_cast<std::uint64_t>(&a(0, 0)), std::bit_cast<std::uint64_t>(&b(0, 0))};
    out.slots(slots);
    slots.push_back(400);
    run(c, slots, {2, 3, 1});
    check(a, b, out, 400, false, cpu);
  }
}

TEST(host_dot, sums_out_of_bounds_count_where_they_are_used) {
  for (std::string const& cpu : cpus()) {
    const graph_view g = row_max.graph();
    const code c = compile(g, specialisation::generic(g), cpu);
    matrix<f32> a(40, 20), b(20, 50), out(1, 40);
    for (auto& x : a.all) x = 1;
    for (auto& x : b.all) x = -1;
    std::vector<std::uint64_t> slots;
    a.slots(slots), b.slots(slots);
    slots.insert(slots.end(), {std::bit_cast<std::uint64_t>(&out(0, 0)), 40, 1});
    run(c, slots, {2, 1, 1});
    for (int i = 0; i < 40; ++i) ASSERT_EQ(out(0, i), 0) << cpu;
    // An output that is larger than the product gets the zeros that lie beyond it.
    const graph_view p = product<f32, f32, 32, 64, 16, 4>.graph();
    const code larger = compile(p, specialisation::generic(p), cpu);
    matrix<f32> all(75, 130);
    for (auto& x : all.all) x = 7;
    slots.clear();
    a.slots(slots), b.slots(slots), all.slots(slots);
    run(larger, slots, {tiles(75, 32) * tiles(130, 64), 1, 1});
    for (int i = 0; i < 75; ++i)
      for (int j = 0; j < 130; ++j) ASSERT_EQ(all(i, j), i < 40 && j < 50 ? -20 : 0) << cpu << " " << i << " " << j;
  }
}

TEST(host_dot, bounds_that_differ_between_ctas_and_run_backwards) {
  std::mt19937_64 random(kiln_test::seed());
  for (std::string const& cpu : cpus()) {
    const graph_view g = split_k.graph();
    const code c = compile(g, specialisation::generic(g), cpu);
    matrix<f32> a(16, 96), b(96, 100);
    a.fill(random), b.fill(random);
    std::vector<f32> out(3 * 16 * 100, -1);
    std::vector<std::uint64_t> slots;
    a.slots(slots), b.slots(slots);
    slots.insert(slots.end(), {std::bit_cast<std::uint64_t>(out.data()), 3, 16, 100, 1600, 100, 1, 32});
    run(c, slots, {4, 3, 1}, 5); // calls that begin and end inside a row of the grid
    for (int s = 0; s < 3; ++s)
      for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 100; ++j) {
          double sum = 0;
          for (int k = 32 * s; k < 32 * s + 32; ++k) sum += number(a(i, k)) * number(b(k, j));
          ASSERT_NEAR(out[static_cast<std::size_t>(s * 1600 + i * 100 + j)], sum, 1e-4) << cpu << " " << s << " " << i << " " << j;
        }
  }
}

TEST(host_dot, rings_equal_direct_loads) {
  std::mt19937_64 random(kiln_test::seed());
  for (std::string const& cpu : cpus()) {
    const graph_view g = ring<f16, 32, 64, 16, 4>.graph(), direct = product<f16, f32, 32, 64, 16, 8>.graph();
    const code x = compile(g, specialisation::generic(g), cpu), y = compile(direct, specialisation::generic(direct), cpu);
    EXPECT_EQ(x.info.chunk, y.info.chunk);
    for (size s : {size{40, 70, 100}, {100, 200, 16}, {64, 64, 300}, {32, 64, 0}, {7, 9, 40}}) {
      matrix<f16> a(s.m, s.k), b(s.k, s.n);
      matrix<f32> c(s.m, s.n), d(s.m, s.n);
      a.fill(random), b.fill(random);
      for (auto const& [code, out] : {std::pair{&x, &c}, std::pair{&y, &d}}) {
        std::vector<std::uint64_t> slots;
        a.slots(slots), b.slots(slots), out->slots(slots);
        run(*code, slots, {tiles(s.m, 32) * tiles(s.n, 64), 1, 1});
      }
      check(a, b, c, s.k, false, cpu);
      EXPECT_EQ(c.all, d.all);
    }
  }
}

TEST(host_dot, general_path_agrees) {
  std::mt19937_64 random(kiln_test::seed());
  for (std::string const& cpu : cpus()) {
    const graph_view g = plain_product<f32, 32, 32, 16>.graph();
    const code c = compile(g, specialisation::generic(g), cpu);
    EXPECT_EQ(c.info.chunk, 0);
    matrix<f32> a(50, 40), b(40, 70), out(50, 70);
    a.fill(random), b.fill(random);
    std::vector<std::uint64_t> slots;
    a.slots(slots), b.slots(slots), out.slots(slots);
    run(c, slots, {tiles(50, 32) * tiles(70, 32), 1, 1});
    check(a, b, out, 40, false, cpu);
  }
}

// Every way to cut a launch into calls gives the same bits: sums do not depend on who computes them.
TEST(host_dot, any_cut_of_the_launch) {
  std::mt19937_64 random(kiln_test::seed());
  const graph_view g = product<f32, f32, 16, 32, 8, 1>.graph();
  const code c = compile(g, specialisation::generic(g), "");
  for (int round = 0; round < 20; ++round) {
    std::uniform_int_distribution<int> any(1, 150);
    const size s{any(random), any(random), any(random)};
    matrix<f32> a(s.m, s.k), b(s.k, s.n), one(s.m, s.n), other(s.m, s.n);
    a.fill(random), b.fill(random);
    const std::int64_t ctas = tiles(s.m, 16) * tiles(s.n, 32);
    for (auto const& [out, chunk] : {std::pair{&one, std::int64_t{0}}, std::pair{&other, 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(ctas))}}) {
      std::vector<std::uint64_t> slots;
      a.slots(slots), b.slots(slots), out->slots(slots);
      run(c, slots, {ctas + any(random) % 3, 1, 1}, chunk); // a grid larger than needed is harmless
    }
    check(a, b, one, s.k, false, "round " + std::to_string(round));
    EXPECT_EQ(one.all, other.all);
  }
}

} // namespace
