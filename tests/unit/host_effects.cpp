// What the host lowering promises beyond values: order of memory, assertions, prints, long and large kernels.
#include "host_kernel.hpp"
#include "run_time_recording.hpp"

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>

using namespace kiln;
using kiln_test::host_events;
using kiln_test::host_kernel;

namespace {

std::uint64_t word(void const* p) { return reinterpret_cast<std::uintptr_t>(p); }

inline constexpr auto checked = kernel<"checked">([](context& k, ptr<const i32> x) {
  auto v = load(x + k.arange<70>());
  k.device_assert(v < 100, "small");
  k.device_assert(reduce<sum>(v) > -5, "sum");
});
inline constexpr auto printed = kernel<"printed">([](context& k, ptr<const i32> x) {
  k.device_print("v", load(x + k.arange<3>()) + 1, k.program_id(1));
});
// In place, shifted, and read again: every read sees what program order says.
inline constexpr auto ordered = kernel<"ordered">([](context& k, ptr<i32> p, ptr<i32> q) {
  auto i = k.arange<64>();
  auto before = load(p + i);
  store(p + i, before * 2);        // in place
  auto shifted = load(p + (63 - i)); // sees the store
  store(p + i, shifted + before);
  k.when(reduce<sum>(before) > 0, [&] { store(q + i, load(p + i)); });
});
inline constexpr auto stale_var = kernel<"stale_var">([](context& k, ptr<i32> p) {
  auto i = k.arange<40>();
  auto v = k.var(load(p + i));
  auto old = k.let(v);
  v = old + 1;
  v += old;
  store(p + i, v * 1000 + old);
});
inline constexpr auto pointer_var = kernel<"pointer_var">([](context& k, ptr<i32> p) {
  auto at = k.var(p + k.arange<16>() * 2);
  for (auto j : k.range(0, 3)) {
    store(at, j + load(at));
    at = at.read() + 1;
  }
});

// Additions to few counters are summed up by each CTA first; to many, or with old values that are used, they are not.
inline constexpr auto counted = kernel<"counted">([](context& k, ptr<const i32> x, ptr<i32> few, ptr<u64> some, ptr<i32> many, ptr<i32> old) {
  auto i = k.program_id(0) * 300 + k.arange<300>();
  auto v = load(x + i);
  atomic_add(few + (min(max(v, -3), 8) + 3), 1, {.mask = v != 5});
  atomic_add(some + (cast<i64>(v) & 31), cast<u64>(v));
  atomic_add(many + (v & 1023), v);
  store(old + i, atomic_add(few + (12 + (v & 1)), 1));
});
// A combine that is associative but not commutative: x -> a x + b, over axes that fill vectors, do not, and with lanes along
// another axis.
template <int N, bool Reverse>
inline constexpr auto composed = kernel<"composed">([](context& k, ptr<const i32> a, ptr<const i32> b, ptr<i32> out) {
  auto i = k.arange<N>();
  auto f = [](auto a0, auto b0, auto a1, auto b1) { return pair_of(a0 * a1, a1 * b0 + b1); };
  auto [p, q] = reduce<0>(load(a + i), load(b + i), f);
  store(out, p);
  store(out + 1, q);
  store(out + 2 + i, cumsum<0>(load(a + i), {.reverse = Reverse}));
});

TEST(host_effects, counters) {
  const host_kernel f(counted.graph());
  std::vector<int> x(900), few(14), many(1024), old(900), want_few(14), want_many(1024);
  std::vector<std::uint64_t> some(32), want_some(32);
  for (int i = 0; i < 900; ++i) x[static_cast<std::size_t>(i)] = (i * 7919) % 41 - 20;
  for (int v : x) {
    if (v != 5) ++want_few[static_cast<std::size_t>(std::min(std::max(v, -3), 8) + 3)];
    ++want_few[static_cast<std::size_t>(12 + (v & 1))];
    want_some[static_cast<std::size_t>(v & 31)] += static_cast<std::uint64_t>(v);
    want_many[static_cast<std::size_t>(v & 1023)] += v;
  }
  f.run({word(x.data()), word(few.data()), word(some.data()), word(many.data()), word(old.data())}, {3});
  EXPECT_EQ(few, want_few);
  EXPECT_EQ(some, want_some);
  EXPECT_EQ(many, want_many);
  std::vector<int> seen; // every old value once
  for (std::size_t i = 0; i < 900; ++i)
    if (x[i] & 1) seen.push_back(old[i]);
  std::sort(seen.begin(), seen.end());
  for (std::size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], static_cast<int>(i));
}

template <int N, bool Reverse> void check_composed() {
  const host_kernel f(composed<N, Reverse>.graph());
  std::vector<int> a(N), b(N), out(N + 2, -1);
  std::uint32_t p = 1, q = 0, sum = 0;
  for (int i = 0; i < N; ++i) {
    a[static_cast<std::size_t>(i)] = i * 37 % 11 - 5 + (i * 37 % 11 == 5), b[static_cast<std::size_t>(i)] = i * 29 % 17;
    p *= static_cast<std::uint32_t>(a[static_cast<std::size_t>(i)]);
    q = q * static_cast<std::uint32_t>(a[static_cast<std::size_t>(i)]) + static_cast<std::uint32_t>(b[static_cast<std::size_t>(i)]);
  }
  f.run({word(a.data()), word(b.data()), word(out.data())}, {1});
  EXPECT_EQ(static_cast<std::uint32_t>(out[0]), p) << N;
  EXPECT_EQ(static_cast<std::uint32_t>(out[1]), q) << N;
  for (int i = 0; i < N; ++i) {
    const int at = Reverse ? N - 1 - i : i;
    sum += static_cast<std::uint32_t>(a[static_cast<std::size_t>(at)]);
    ASSERT_EQ(static_cast<std::uint32_t>(out[static_cast<std::size_t>(2 + at)]), sum) << N << " " << at;
  }
}
TEST(host_effects, combines_keep_the_order_of_operands) {
  check_composed<1, false>();
  check_composed<2, true>();
  check_composed<16, false>();
  check_composed<17, true>();
  check_composed<48, false>();
  check_composed<100, true>();
  check_composed<1024, false>();
  check_composed<1021, true>();
}

TEST(host_effects, assertions) {
  const host_kernel f(checked.graph());
  std::vector<int> x(70, 1);
  host_events none, tile, both;
  f.run({word(x.data())}, {2}, &none);
  EXPECT_TRUE(none.asserts.empty());
  x[69] = 100;
  f.run({word(x.data())}, {2}, &tile);
  ASSERT_EQ(tile.asserts.size(), 2u); // once per CTA
  EXPECT_EQ(checked.graph().string(tile.asserts[0].first), std::string("small"));
  x[0] = -1000;
  f.run({word(x.data())}, {1}, &both);
  ASSERT_EQ(both.asserts.size(), 2u);
  EXPECT_EQ(both.asserts[1].second, both.asserts[0].second + 1); // the lines of the statements
}

TEST(host_effects, prints) {
  const host_kernel f(printed.graph());
  const int x[3]{1, 2, -1};
  host_events e;
  f.run({word(x)}, {1, 2}, &e);
  ASSERT_EQ(e.prints.size(), 2u);
  EXPECT_EQ(e.prints[1], "0 @0,1,0 i32:020000000300000000000000 i32:01000000");
}

TEST(host_effects, program_order) {
  const host_kernel f(ordered.graph());
  std::vector<int> p(64), q(64, -1);
  for (int i = 0; i < 64; ++i) p[static_cast<std::size_t>(i)] = i;
  f.run({word(p.data()), word(q.data())}, {1});
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(p[static_cast<std::size_t>(i)], 2 * (63 - i) + i);
    EXPECT_EQ(q[static_cast<std::size_t>(i)], p[static_cast<std::size_t>(i)]);
  }
}

TEST(host_effects, old_content_of_a_var) {
  const host_kernel f(stale_var.graph());
  std::vector<int> p(40);
  for (int i = 0; i < 40; ++i) p[static_cast<std::size_t>(i)] = i;
  f.run({word(p.data())}, {1});
  for (int i = 0; i < 40; ++i) EXPECT_EQ(p[static_cast<std::size_t>(i)], (2 * i + 1) * 1000 + i);
}

TEST(host_effects, vars_of_pointers) {
  const host_kernel f(pointer_var.graph());
  std::vector<int> p(64, 10);
  f.run({word(p.data())}, {1});
  for (int i = 0; i < 32; ++i) EXPECT_EQ(p[static_cast<std::size_t>(i)], i % 2 == 1 ? 11 : i == 0 ? 10 : 12) << i;
  EXPECT_EQ(p[32], 12);
  EXPECT_EQ(p[33], 10);
}

TEST(host_effects, ranges_of_ctas) {
  static constexpr auto where = kernel<"where">([](context& k, ptr<i32> p) {
    auto i = (k.program_id(2) * k.num_programs(1) + k.program_id(1)) * k.num_programs(0) + k.program_id(0);
    store(p + i, load(p + i) + k.program_id(0) + 10 * k.program_id(1) + 100 * k.program_id(2));
  });
  const host_kernel f(where.graph());
  std::vector<int> p(24, 1000);
  const std::uint64_t slots[]{word(p.data())};
  const std::uint32_t grid[]{2, 3, 4};
  for (std::int64_t first : {0, 5, 6, 23}) f.entry()(slots, grid, first, first == 0 ? 5 : first == 5 ? 6 : first == 6 ? 23 : 24, f.arena(), nullptr);
  f.entry()(slots, grid, 3, 3, f.arena(), nullptr); // an empty range
  for (int z = 0; z < 4; ++z)
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 2; ++x) EXPECT_EQ(p[static_cast<std::size_t>((z * 3 + y) * 2 + x)], 1000 + x + 10 * y + 100 * z);
}

// One lane of a constant mask, of a value that was narrowed: only that lane's bytes are written.
TEST(host_effects, constant_masks) {
  static constexpr auto narrow = kernel<"narrow">([](context& k, ptr<const i64> x, ptr<i32> y) {
    auto i = k.arange<2>();
    store(y + i, cast<i32>(load(x + i)), {.mask = k.arange<2>() < 1});
  });
  const host_kernel f(narrow.graph());
  const std::int64_t x[2]{(std::int64_t{7} << 32) | 5, 9};
  int y[3]{-1, -2, -3};
  f.run({word(x), word(y)}, {1});
  EXPECT_EQ(y[0], 5);
  EXPECT_EQ(y[1], -2);
  EXPECT_EQ(y[2], -3);
}

// Hundreds of unrolled steps: neither the planner nor the recursion of pulling grows out of hand.
TEST(host_effects, long_kernels) {
  static constexpr auto chain = [](context& k, ptr<f32> p) {
    auto i = k.arange<64>();
    auto v = k.var(load(p + i));
    for (int j : k.unrolled(400)) v = k.let(v) * 0.5f + static_cast<float>(j % 3);
    for (int j : k.unrolled(200)) {
      (void)j;
      v = exp(v - reduce<max>(v)) + v * 0.f;
    }
    store(p + i, k.let(v));
  };
  kiln::recorder r;
  kiln::detail::record_into<std::remove_const_t<decltype(chain)>>(r, {});
  const kiln::graph g("chain", r);
  const auto start = std::chrono::steady_clock::now();
  const host_kernel f(g);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(seconds, 60);
  std::vector<float> p(64, 1.f);
  f.run({word(p.data())}, {1});
  for (float x : p) EXPECT_EQ(x, 1.f); // exp(0) in every lane
}

} // namespace
