// Loops, branches, vars, assertions and printing.
#include "interpret.hpp"

#include <string>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

TEST(InterpreterControl, RangesOfEveryKind) {
  auto g = record([](context& k, ptr<i32> y, kiln::val<i32> lo, kiln::val<i32> hi, kiln::val<i32> step) {
    auto n = k.var(k.let(0)), last = k.var(k.let(-999));
    for (auto i : k.range(lo, hi, step)) {
      n += 1;
      last = i;
    }
    store(y, n);
    store(y + 1, last);
  });
  for (i32 lo : {-5, 0, 3})
    for (i32 hi : {-6, -5, 0, 4, 10})
      for (i32 step : {-7, -2, -1, 1, 2, 7}) {
        guarded<i32> y(2);
        run_clean(g, {1}, {y, kiln_test::val(lo), kiln_test::val(hi), kiln_test::val(step)});
        i32 n = 0, last = -999;
        for (i32 i = lo; step > 0 ? i < hi : i > hi; i += step) ++n, last = i;
        EXPECT_EQ(y[0], n) << lo << " " << hi << " " << step;
        EXPECT_EQ(y[1], last);
      }
}

// The index never overflows on its way past the end.
TEST(InterpreterControl, RangesThatEndAtTheLimitOfTheType) {
  auto g = record([](context& k, ptr<i32> y, kiln::val<i32> lo, kiln::val<i32> hi, kiln::val<i32> step) {
    auto n = k.var(k.let(0));
    for (auto i : k.range(lo, hi, step)) n += cast<i32>(i == i);
    store(y, n);
  });
  guarded<i32> y(1);
  i32 const top = std::numeric_limits<i32>::max(), bottom = std::numeric_limits<i32>::min();
  run_clean(g, {1}, {y, kiln_test::val(top - 10), kiln_test::val(top), kiln_test::val(4)});
  EXPECT_EQ(y[0], 3);
  run_clean(g, {1}, {y, kiln_test::val(bottom), kiln_test::val(top), kiln_test::val(top)});
  EXPECT_EQ(y[0], 3);
  run_clean(g, {1}, {y, kiln_test::val(bottom + 1), kiln_test::val(bottom), kiln_test::val(-3)});
  EXPECT_EQ(y[0], 1);
}

TEST(InterpreterControl, IndexTypes) {
  auto g = record([](context& k, ptr<i64> y, kiln::val<u8> n, kiln::val<i64> big, kiln::val<u32> u) {
    auto s = k.var(k.let<i64>(0)), t = k.var(k.let<i64>(0)), w = k.var(k.let<i64>(0));
    for (auto i : k.range(n)) s += cast<i64>(i);
    for (auto i : k.range(big, big + 3)) t += i - big;
    for (auto i : k.range(u, u + 2u)) w += cast<i64>(i);
    store(y, s), store(y + 1, t), store(y + 2, w);
  });
  guarded<i64> y(3);
  run_clean(g, {1}, {y, kiln_test::val(u8{200}), kiln_test::val(i64{1} << 40), kiln_test::val(u32{0xfffffff0u})});
  EXPECT_EQ(y[0], 199 * 200 / 2);
  EXPECT_EQ(y[1], 3);
  EXPECT_EQ(y[2], 2 * 0xfffffff0ll + 1);
}

TEST(InterpreterControl, NestedLoopsWithInnerBoundsThatChange) {
  auto g = record([](context& k, ptr<i32> y, kiln::val<i32> n) {
    auto total = k.var(k.let(0));
    for (auto i : k.range(0, n)) {
      auto row = k.var(k.let(0));
      for (auto j : k.range(i, n))
        for (auto m : k.range(j, 0, -1)) row += m;
      store(y + 1 + i, row);
      total += row;
    }
    store(y, total);
  });
  for (i32 n : {0, 1, 2, 5}) {
    guarded<i32> y(static_cast<std::size_t>(n) + 1, -1);
    run_clean(g, {1}, {y, kiln_test::val(n)});
    i32 total = 0;
    for (i32 i = 0; i < n; ++i) {
      i32 row = 0;
      for (i32 j = i; j < n; ++j)
        for (i32 m = j; m > 0; --m) row += m;
      EXPECT_EQ(y[static_cast<std::size_t>(i) + 1], row);
      total += row;
    }
    EXPECT_EQ(y[0], total);
    EXPECT_TRUE(y.intact());
  }
}

TEST(InterpreterControl, BranchesNestAndAlternate) {
  auto g = record([](context& k, ptr<i32> y, kiln::val<i32> n) {
    auto v = k.var(k.let(0));
    k.when(n > 0, [&] {
      v += 1;
      k.when(n > 10, [&] { v += 10; }, [&] { v += 100; });
    }, [&] {
      k.when(n == 0, [&] { v += 1000; });
      v += 10000;
    });
    store(y, v);
  });
  for (auto [n, expected] : {std::pair{-1, 10000}, {0, 11000}, {1, 101}, {11, 11}}) {
    guarded<i32> y(1);
    run_clean(g, {1}, {y, kiln_test::val(n)});
    EXPECT_EQ(y[0], expected);
  }
}

TEST(InterpreterControl, WhileLoops) {
  auto g = record([](context& k, ptr<i32> y, kiln::val<i32> n) {
    auto x = k.var(n), steps = k.var(k.let(0));
    k.loop_while([&] { return x != 1; }, [&] {
      k.when(x % 2 == 0, [&] { x = x / 2; }, [&] { x = x * 3 + 1; });
      steps += 1;
    });
    store(y, steps);
  });
  for (i32 n : {1, 2, 3, 27}) {
    guarded<i32> y(1);
    run_clean(g, {1}, {y, kiln_test::val(n)});
    i32 steps = 0;
    for (i64 x = n; x != 1; ++steps) x = x % 2 == 0 ? x / 2 : 3 * x + 1;
    EXPECT_EQ(y[0], steps);
  }
}

TEST(InterpreterControl, VarsKeepTypesAndStartAgain) {
  auto g = record([](context& k, ptr<f16> h, ptr<i32> y, ptr<i32> z) {
    auto acc = k.var(k.full<f16>(0.f));
    for (auto i : k.range(0, 32)) acc = acc + cast<f16>(k.full<f32>(1.f) + cast<f32>(i) * 0.f);
    store(h, acc);
    for (auto i : k.range(0, 3)) { // a var made in a loop starts anew in every pass
      auto v = k.var(k.let(5));
      v += i;
      store(y + i, v);
    }
    auto p = k.var(z);
    for (auto i : k.range(0, 4)) {
      store(p, i * i);
      p = p.read() + 1;
    }
    // Worth something from the second pass on only.
    auto before = k.var(k.let(0)), now = k.var(k.let(1));
    for (auto i : k.range(0, 10)) {
      auto next = before + now + cast<i32>(i < 0);
      before = now;
      now = next;
    }
    store(y + 3, now);
  });
  guarded<f16> h(1);
  guarded<i32> y(4), z(4);
  run_clean(g, {1}, {h, y, z});
  EXPECT_EQ(f32(h[0]), 32.f);
  for (i32 i = 0; i < 3; ++i) EXPECT_EQ(y[static_cast<std::size_t>(i)], 5 + i);
  for (i32 i = 0; i < 4; ++i) EXPECT_EQ(z[static_cast<std::size_t>(i)], i * i);
  EXPECT_EQ(y[3], 89);
}

TEST(InterpreterControl, UnrolledLoopsAreRecordedTimesOver) {
  auto g = record([](context& k, ptr<i32> y) {
    for (int i : k.unrolled(4)) store(y + i, k.let(i * 3));
  });
  guarded<i32> y(4);
  run_clean(g, {1}, {y});
  for (i32 i = 0; i < 4; ++i) EXPECT_EQ(y[static_cast<std::size_t>(i)], 3 * i);
}

TEST(InterpreterControl, PersistentTilesCoverTheOutputOnce) {
  auto g = record([](context& k, kiln::array<i32, 2> c) {
    for (auto t : k.tiles(c.shape(), tile_size<4, 8>, {.group = 2})) {
      auto box = c.region(at(t.m, t.n), kiln::extent<4, 8>);
      store(box, load(box) + 1);
    }
  });
  for (auto [rows, columns] : {std::pair<i64, i64>{1, 1}, {4, 8}, {13, 50}, {0, 3}})
    for (i64 ctas : {1, 3, 40}) {
      guarded<i32> c(static_cast<std::size_t>(rows * columns), 0);
      run_clean(g, {ctas}, {c.array({rows, columns})});
      for (std::size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], 1) << i;
      EXPECT_TRUE(c.intact());
    }
}

TEST(InterpreterControl, CtasThatWaitForEachOther) {
  // CTA 0 waits until all others have added to a counter: needs them to run meanwhile.
  auto g = record([](context& k, ptr<i32> counter, ptr<i32> seen) {
    auto id = k.program_id(0), all = k.num_programs(0);
    k.when(id == 0, [&] {
      k.loop_while([&] { return load(counter, {.is_volatile = true}) < all - 1; }, [&] { k.sync(); });
      store(seen, load(counter));
    }, [&] { atomic_add(counter, 1); });
  });
  for (auto order : {ip::order::ascending, ip::order::seeded}) {
    guarded<i32> counter(1, 0), seen(1, 0);
    run_clean(g, {5}, {counter, seen}, {.order = order, .resident_ctas = 5});
    EXPECT_EQ(seen[0], 4);
  }
  guarded<i32> counter(1, 0), seen(1, 0);
  ip::report const r = ip::run(g, {5}, {counter, seen}, {.step_limit = 10000});
  EXPECT_TRUE(r.has("R-VF01") && r.stopped) << r.text();
}

TEST(InterpreterControl, DeviceAssert) {
  auto g = record([](context& k, ptr<i32> y, kiln::val<i32> n) {
    k.device_assert(k.arange<4>() < n, "few enough");
    store(y + k.program_id(0), 1);
  });
  guarded<i32> y(3, 0);
  run_clean(g, {3}, {y, kiln_test::val(4)});
  EXPECT_EQ(y[2], 1);
  guarded<i32> z(3, 0);
  ip::report const r = ip::run(g, {3}, {z, kiln_test::val(2)});
  ASSERT_EQ(r.diagnostics.size(), 1u);
  EXPECT_TRUE(r.stopped);
  EXPECT_EQ(r.diagnostics[0].rule, "R-VF03");
  EXPECT_NE(r.text().find("few enough"), std::string::npos) << r.text();
  EXPECT_NE(r.text().find("[2]"), std::string::npos) << r.text();
  EXPECT_NE(r.text().find("interpreter_control.cpp:"), std::string::npos) << r.text();
  EXPECT_EQ(z[0] + z[1] + z[2], 0);
  EXPECT_THROW(r.throw_if_faulty(), ip::checker_error);
}

TEST(InterpreterControl, DevicePrint) {
  auto g = record([](context& k, kiln::val<f16> h) {
    k.device_print("cta", k.program_id(0), k.iota<1, 2, 2>(), h, k.full<f32, 1>(0.1f), k.full<bool>(true), k.full<f64>(0.1));
    k.device_print("only text");
  });
  std::vector<std::string> lines;
  ip::run_options options;
  options.print = [&](std::string_view line) { lines.emplace_back(line); };
  run_clean(g, {2}, {kiln_test::val(f16(1.5f))}, options);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "cta 0 [[0, 1], [0, 1]] 1.5 [0.1] true 0.1");
  EXPECT_EQ(lines[1], "only text");
  EXPECT_EQ(lines[2].substr(0, 5), "cta 1");
  options.precision = ip::precision::doubled; // prints what the type would hold
  lines.clear();
  run_clean(g, {1}, {kiln_test::val(f16(1.5f))}, options);
  EXPECT_EQ(lines[0], "cta 0 [[0, 1], [0, 1]] 1.5 [0.1] true 0.1");
}

TEST(InterpreterControl, WrongArgumentsAreRefused) {
  auto g = record([](context& k, ptr<i32> y, kiln::val<i32> n, kiln::array<f32, 2> a) { store(y, n + cast<i32>(a.extent(0)) + k.let(0)); });
  guarded<i32> y(1);
  guarded<f32> a(6);
  run_clean(g, {1}, {y, kiln_test::val(1), a.array({2, 3})});
  EXPECT_EQ(y[0], 3);
  EXPECT_THROW(ip::run(g, {1}, {y, kiln_test::val(1)}), std::invalid_argument);
  EXPECT_THROW(ip::run(g, {1}, {y, kiln_test::val(i64{1}), a.array({2, 3})}), std::invalid_argument);
  EXPECT_THROW(ip::run(g, {1}, {y, kiln_test::val(1), a.array({6})}), std::invalid_argument);
  EXPECT_THROW(ip::run(g, {1}, {kiln_test::val(1), kiln_test::val(1), a.array({2, 3})}), std::invalid_argument);
  EXPECT_THROW(ip::run(g, {-1}, {y, kiln_test::val(1), a.array({2, 3})}), std::invalid_argument);
}

// Signs crossed, zero divisors, the least integer: nothing kills the process, and floor_div and ceil_div are what C++ lacks.
TEST(InterpreterControl, DivisionBySign) {
  auto g = record([](context&, ptr<i32> y, kiln::val<i32> a, kiln::val<i32> b) {
    store(y, a / b), store(y + 1, a % b), store(y + 2, floor_div(a, b)), store(y + 3, ceil_div(a, b));
  });
  auto divide = [&](i32 a, i32 b) {
    guarded<i32> y(4);
    run_clean(g, {1}, {y, kiln_test::val(a), kiln_test::val(b)});
    return std::array{y[0], y[1], y[2], y[3]};
  };
  for (i32 a : {36, 7, 1, 0, -36, -7, -1})
    for (i32 b : {5, 3, -5, -3}) {
      i32 const down = a / b - (a % b != 0 && (a < 0) != (b < 0)), up = a / b + (a % b != 0 && (a < 0) == (b < 0));
      EXPECT_EQ(divide(a, b), (std::array{a / b, a % b, down, up})) << a << " " << b;
    }
  i32 const least = std::numeric_limits<i32>::min();
  EXPECT_EQ(divide(least, -1), (std::array{least, 0, least, least}));
  EXPECT_EQ(divide(7, 0)[0], -1);
  EXPECT_EQ(divide(7, 0)[1], 7);
  EXPECT_EQ(divide(-7, 3)[2], -3);
  EXPECT_EQ(divide(-36, 5)[3], -7);
}

} // namespace
