// Operations on whole tiles: shapes, reductions, scans, gathers, matrix products, for every type that they take.
#include "element_types.hpp"

#include <bit>
#include <cmath>
#include <numeric>
#include <random>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

/// Small whole numbers: sums and products of a few are exact in every type.
template <class T>
guarded<T> small(std::size_t n, unsigned seed, int low, int high) {
  std::mt19937_64 random(seed);
  guarded<T> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = T(static_cast<int>(random() % static_cast<u64>(high - low + 1)) + low);
  return x;
}
template <class T>
u64 bits(T x) {
  return scalar_of(x).bits;
}

// -- shapes ------------------------------------------------------------------------------------------------------------------------

TEST(InterpreterShapes, ElementsMoveUnchanged) {
  for_each(all_types{}, []<class T> {
    auto g = record([](context& k, ptr<const T> x, ptr<T> y) {
      auto i = k.iota<0, 2, 3, 4>() * 12 + k.iota<1, 2, 3, 4>() * 4 + k.iota<2, 2, 3, 4>();
      auto v = load(x + i);
      store(y + k.arange<24>(), reshape<24>(v));
      store(y + 24 + k.arange<24>(), reshape<24>(trans<2, 0, 1>(v)));
      store(y + 48 + k.arange<24>(), reshape<24>(trans(v)));
      auto [even, odd] = split(reshape<12, 2>(v));
      store(y + 72 + k.arange<12>(), even);
      store(y + 84 + k.arange<12>(), odd);
      store(y + 96 + k.arange<24>(), reshape<24>(join(odd, even)));
      auto row = load(x + k.arange<3>());
      store(y + 120 + k.arange<24>(), reshape<24>(broadcast<2, 3, 4>(reshape<3, 1>(row))));
      store(y + 144 + k.arange<6>(), reshape<6>(broadcast<2, 3>(expand_dims<0>(row))));
    });
    guarded<T> x = patterns<T>(24, 5), y(150);
    run_clean(g, {1}, {x, y});
    for (std::size_t a = 0; a < 2; ++a)
      for (std::size_t b = 0; b < 3; ++b)
        for (std::size_t c = 0; c < 4; ++c) {
          u64 const v = bits(x[a * 12 + b * 4 + c]);
          EXPECT_EQ(bits(y[a * 12 + b * 4 + c]), v);
          EXPECT_EQ(bits(y[24 + c * 6 + a * 3 + b]), v); // axis d of the result is axis P[d]: [4, 2, 3]
          EXPECT_EQ(bits(y[48 + a * 12 + c * 3 + b]), v);
          EXPECT_EQ(bits(y[120 + a * 12 + b * 4 + c]), bits(x[b]));
        }
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_EQ(bits(y[72 + i]), bits(x[2 * i]));
      EXPECT_EQ(bits(y[84 + i]), bits(x[2 * i + 1]));
      EXPECT_EQ(bits(y[96 + 2 * i]), bits(x[2 * i + 1]));
      EXPECT_EQ(bits(y[96 + 2 * i + 1]), bits(x[2 * i]));
    }
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(bits(y[144 + i]), bits(x[i % 3]));
    EXPECT_TRUE(y.intact());
  });
}

TEST(InterpreterShapes, ConstantsAndIota) {
  for_each(numbers{}, []<class T> {
    auto g = record([](context& k, ptr<T> y) {
      store(y + k.arange<8>(), k.full<T, 8>(3));
      store(y + 8 + k.arange<8>(), cast<T>(k.arange<8>(5)));
      store(y + 16 + k.arange<6>(), reshape<6>(cast<T>(k.iota<1, 2, 3>())));
    });
    guarded<T> y(22);
    run_clean(g, {1}, {y});
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(bits(y[i]), bits(T(3)));
      EXPECT_EQ(bits(y[8 + i]), bits(T(5 + static_cast<int>(i))));
    }
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(bits(y[16 + i]), bits(T(static_cast<int>(i % 3))));
  });
  for_each(integers{}, []<class T> { // wraps in its own type
    auto g = record([](context& k, ptr<T> y) { store(y + k.arange<300>(), k.arange<300, T>(-3)); });
    guarded<T> y(300);
    run_clean(g, {1}, {y});
    for (std::size_t i = 0; i < 300; ++i) EXPECT_EQ(y[i], static_cast<T>(static_cast<i64>(i) - 3));
  });
}

TEST(InterpreterShapes, GridIndices) {
  auto g = record([](context& k, ptr<i64> y) {
    auto id = k.program_id<i64>(0) + k.num_programs<i64>(0) * (k.program_id<i64>(1) + k.num_programs<i64>(1) * k.program_id<i64>(2));
    store(y + id, k.program_id<i64>(0) + 10 * k.program_id<i64>(1) + 100 * cast<i64>(k.program_id(2)));
  });
  guarded<i64> y(24, -1);
  run_clean(g, {2, 3, 4}, {y});
  for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(y[i], static_cast<i64>(i % 2 + 10 * (i / 2 % 3) + 100 * (i / 6)));
  run_clean(g, {0, 3, 4}, {y});
  EXPECT_TRUE(y.intact());
}

// -- reductions ---------------------------------------------------------------------------------------------------------------------

template <class T>
f64 number(T x) {
  return static_cast<f64>(x);
}

TEST(InterpreterReductions, EveryTypeAndAxis) {
  for_each(numbers{}, []<class T> {
    auto g = record([](context& k, ptr<const T> x, ptr<T> y) {
      auto v = load(x + k.iota<0, 5, 7>() * 7 + k.iota<1, 5, 7>());
      store(y, reduce<sum>(v));
      store(y + 1, reduce<max>(v));
      store(y + 2, reduce<min>(v));
      store(y + 8 + k.arange<5>(), reduce<sum, 1>(v));
      store(y + 16 + k.arange<7>(), reduce<sum, 0>(v));
      store(y + 24 + k.arange<7>(), reshape<7>(reduce<max, 0, keep>(v)));
      store(y + 32 + k.arange<5>(), reduce<min, -1>(v));
      store(y + 40 + k.arange<7>(), reduce<prod, 0>(v));
    });
    bool const negative = is_signed(dtype_of<T>);
    guarded<T> x = small<T>(35, 11, negative ? -2 : 0, 2), y(48);
    run_clean(g, {1}, {x, y});
    f64 all = 0, low = 9, high = -9;
    for (std::size_t i = 0; i < 35; ++i) all += number(x[i]), low = std::min(low, number(x[i])), high = std::max(high, number(x[i]));
    EXPECT_EQ(bits(y[0]), bits(T(all)));
    EXPECT_EQ(number(y[1]), high);
    EXPECT_EQ(number(y[2]), low);
    for (std::size_t r = 0; r < 5; ++r) {
      f64 s = 0, least = 9;
      for (std::size_t c = 0; c < 7; ++c) s += number(x[r * 7 + c]), least = std::min(least, number(x[r * 7 + c]));
      EXPECT_EQ(number(y[8 + r]), s);
      EXPECT_EQ(number(y[32 + r]), least);
    }
    for (std::size_t c = 0; c < 7; ++c) {
      f64 s = 0, p = 1, most = -9;
      for (std::size_t r = 0; r < 5; ++r) s += number(x[r * 7 + c]), p *= number(x[r * 7 + c]), most = std::max(most, number(x[r * 7 + c]));
      EXPECT_EQ(number(y[16 + c]), s);
      EXPECT_EQ(number(y[24 + c]), most);
      EXPECT_EQ(number(y[40 + c]), p);
    }
  });
}

TEST(InterpreterReductions, SmallIntegersWrapInTheirType) {
  auto g = record([](context& k, ptr<u8> y) { store(y, reduce<sum>(k.full<u8, 100>(200))); });
  guarded<u8> y(1);
  run_clean(g, {1}, {y});
  EXPECT_EQ(y[0], static_cast<u8>(100 * 200));
}

TEST(InterpreterReductions, SixteenBitSumsAccumulateInF32) {
  // 2048 + 1 + 1 .. never grows in f16.
  auto g = record([](context& k, ptr<f16> y) {
    auto i = k.arange<1001>();
    auto v = where(i == 0, k.full<f16, 1001>(2048.f), k.full<f16, 1001>(1.f));
    store(y, reduce<sum>(v));
    store(y + i, cumsum(v), {.mask = i > 0});
  });
  guarded<f16> y(1001);
  run_clean(g, {1}, {y});
  EXPECT_EQ(f32(y[0]), 3048.f);
  EXPECT_EQ(f32(y[1000]), 3048.f);
}

TEST(InterpreterReductions, Booleans) {
  auto g = record([](context& k, ptr<const bool> x, ptr<bool> y) {
    auto v = load(x + k.iota<0, 3, 4>() * 4 + k.iota<1, 3, 4>());
    store(y + k.arange<3>(), reduce<any, 1>(v));
    store(y + 3 + k.arange<3>(), reduce<all, 1>(v));
    store(y + 6 + k.arange<3>(), reduce<bit_xor, 1>(v));
  });
  guarded<bool> x(12), y(9);
  x[4] = x[6] = x[7] = true;
  for (std::size_t i = 8; i < 12; ++i) x[i] = true;
  run_clean(g, {1}, {x, y});
  bool const expected[]{false, true, true, false, false, true, false, true, false};
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(y[i], expected[i]) << i;
}

TEST(InterpreterReductions, XorOfIntegers) {
  for_each(integers{}, []<class T> {
    auto g = record([](context& k, ptr<const T> x, ptr<T> y) { store(y, reduce<bit_xor>(load(x + k.arange<9>()))); });
    guarded<T> x = patterns<T>(9, 3), y(1);
    run_clean(g, {1}, {x, y});
    T expected = 0;
    for (std::size_t i = 0; i < 9; ++i) expected = static_cast<T>(expected ^ x[i]);
    EXPECT_EQ(y[0], expected);
  });
}

// Few equal elements, all of one sign: nothing may leak in from lanes or identities that do not exist.
template <int N>
void idle_lanes() {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, ptr<i32> at) {
    auto v = load(x + k.arange<N>());
    store(y, reduce<max>(v)), store(y + 1, reduce<min>(v)), store(y + 2, reduce<sum>(v));
    store(at, argmax(v)), store(at + 1, argmin(v));
  });
  for (f32 value : {3.5f, -3.5f}) {
    guarded<f32> x(N, value), y(3);
    guarded<i32> at(2, -1);
    run_clean(g, {1}, {x, y, at});
    EXPECT_EQ(y[0], value);
    EXPECT_EQ(y[1], value);
    EXPECT_EQ(y[2], value * N);
    EXPECT_EQ(at[0], 0);
    EXPECT_EQ(at[1], 0);
  }
}
TEST(InterpreterReductions, NothingFromIdleLanes) {
  idle_lanes<1>(), idle_lanes<2>(), idle_lanes<9>(), idle_lanes<31>(), idle_lanes<33>();
}

TEST(InterpreterReductions, NanModes) {
  for_each(types<f16, bf16, f32, f64>{}, []<class T> {
    auto g = record([](context& k, ptr<const T> x, ptr<T> y) {
      auto v = load(x + k.arange<3>());
      store(y, reduce<max>(v)), store(y + 1, reduce<min>(v));
      store(y + 2, reduce<max>(v, {.nan = nan_mode::propagate})), store(y + 3, reduce<min>(v, {.nan = nan_mode::propagate}));
    });
    guarded<T> x(3), y(4);
    x[0] = T(1), x[1] = T(std::nanf("")), x[2] = T(3);
    run_clean(g, {1}, {x, y});
    EXPECT_EQ(number(y[0]), 3);
    EXPECT_EQ(number(y[1]), 1);
    EXPECT_TRUE(std::isnan(number(y[2])) && std::isnan(number(y[3])));
    x[0] = x[2] = x[1];
    run_clean(g, {1}, {x, y});
    EXPECT_TRUE(std::isnan(number(y[0])) && std::isnan(number(y[1])));
    x[0] = x[1] = x[2] = T(-std::numeric_limits<f32>::infinity());
    run_clean(g, {1}, {x, y});
    EXPECT_EQ(number(y[0]), -std::numeric_limits<f64>::infinity());
    EXPECT_EQ(number(y[2]), -std::numeric_limits<f64>::infinity());
  });
  auto g = record([](context& k, ptr<i32> y) { store(y, reduce<max>(k.full<i32, 5>(-2147483648))); });
  guarded<i32> y(1);
  run_clean(g, {1}, {y});
  EXPECT_EQ(y[0], std::numeric_limits<i32>::min());
}

TEST(InterpreterReductions, FirstAmongEquals) {
  for_each(numbers{}, []<class T> {
    auto g = record([](context& k, ptr<const T> x, ptr<i32> y) {
      auto v = load(x + k.iota<0, 4, 6>() * 6 + k.iota<1, 4, 6>());
      store(y + k.arange<4>(), argmax<1>(v));
      store(y + 4 + k.arange<6>(), argmin<0>(v));
      store(y + 10 + k.arange<4>(), reshape<4>(argmin<1, keep>(v)));
    });
    guarded<T> x = small<T>(24, 23, 0, 3);
    guarded<i32> y(14);
    run_clean(g, {1}, {x, y});
    for (std::size_t r = 0; r < 4; ++r) {
      std::size_t most = 0, least = 0;
      for (std::size_t c = 1; c < 6; ++c) {
        if (number(x[r * 6 + c]) > number(x[r * 6 + most])) most = c;
        if (number(x[r * 6 + c]) < number(x[r * 6 + least])) least = c;
      }
      EXPECT_EQ(y[r], static_cast<i32>(most));
      EXPECT_EQ(y[10 + r], static_cast<i32>(least));
    }
    for (std::size_t c = 0; c < 6; ++c) {
      std::size_t least = 0;
      for (std::size_t r = 1; r < 4; ++r)
        if (number(x[r * 6 + c]) < number(x[least * 6 + c])) least = r;
      EXPECT_EQ(y[4 + c], static_cast<i32>(least));
    }
  });
  auto ties = record([](context& k, ptr<i32> y, ptr<const u32> u, ptr<const f32> f) {
    store(y, argmax(k.full<i32, 1024>(7)));
    store(y + 1, argmax(load(u + k.arange<2>())));
    store(y + 2, argmax(load(f + k.arange<3>())));
    store(y + 3, argmax(load(f + 3 + k.arange<3>())));
  });
  guarded<i32> y(4, -1);
  guarded<u32> u(2, 1);
  u[1] = 0x80000000u;
  guarded<f32> f(6, std::nanf(""));
  f[1] = -1, f[2] = -5;
  run_clean(ties, {1}, {y, u, f});
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 1);
  EXPECT_EQ(y[2], 1); // NaN never wins
  EXPECT_EQ(y[3], 0); // all NaN
}

TEST(InterpreterReductions, CustomCombinesKeepOrder) {
  // (a1, b1) o (a2, b2) = (a1 a2, a2 b1 + b2): h = 0.5 h + i.
  auto g = record([](context& k, ptr<f32> y, ptr<i32> last) {
    auto i = k.arange<256>();
    auto h = reduce<0>(k.full<f32, 256>(0.5f), cast<f32>(i), [](auto a1, auto b1, auto a2, auto b2) {
      return pair_of{a1 * a2, a2 * b1 + b2};
    });
    store(y, h.second);
    store(last, reduce<0>(i, [](auto, auto right) { return right; })); // not commutative at all
    store(last + 1 + k.arange<4>(), reduce<1>(k.iota<1, 4, 9>() + k.iota<0, 4, 9>(), [](auto left, auto) { return left; }));
  });
  guarded<f32> y(1);
  guarded<i32> last(5, -1);
  run_clean(g, {1}, {y, last});
  f32 h = 0;
  for (int i = 0; i < 256; ++i) h = 0.5f * h + static_cast<f32>(i);
  EXPECT_EQ(y[0], h);
  EXPECT_EQ(last[0], 255);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(last[1 + i], static_cast<i32>(i));
}

TEST(InterpreterReductions, CustomCombineOverPairsPicksTheIndex) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, ptr<i32> at) {
    auto v = load(x + k.iota<0, 3, 8>() * 8 + k.iota<1, 3, 8>());
    auto best = reduce<1>(v, k.iota<1, 3, 8>(), [](auto a, auto i, auto b, auto j) {
      auto left = a >= b;
      return pair_of{where(left, a, b), where(left, i, j)};
    });
    store(y + k.arange<3>(), best.first);
    store(at + k.arange<3>(), best.second);
  });
  guarded<f32> x = small<f32>(24, 5, -3, 3), y(3);
  guarded<i32> at(3);
  run_clean(g, {1}, {x, y, at});
  for (std::size_t r = 0; r < 3; ++r) {
    std::size_t const e = static_cast<std::size_t>(std::max_element(&x[r * 8], &x[r * 8] + 8) - &x[r * 8]);
    EXPECT_EQ(at[r], static_cast<i32>(e));
    EXPECT_EQ(y[r], x[r * 8 + e]);
  }
}

// -- scans ---------------------------------------------------------------------------------------------------------------------------

TEST(InterpreterScans, EveryTypeBothWays) {
  for_each(numbers{}, []<class T> {
    auto g = record([](context& k, ptr<const T> x, ptr<T> y) {
      auto i = k.iota<0, 4, 9>() * 9 + k.iota<1, 4, 9>();
      auto v = load(x + i);
      store(y + i, cumsum<1>(v));
      store(y + 36 + i, cumsum<0>(v, {.reverse = true}));
      store(y + 72 + i, scan<max, 1>(v));
    });
    guarded<T> x = small<T>(36, 9, is_signed(dtype_of<T>) ? -3 : 0, 3), y(108);
    run_clean(g, {1}, {x, y});
    for (std::size_t r = 0; r < 4; ++r) {
      f64 s = 0, most = -9;
      for (std::size_t c = 0; c < 9; ++c) {
        s += number(x[r * 9 + c]), most = std::max(most, number(x[r * 9 + c]));
        EXPECT_EQ(number(y[r * 9 + c]), s);
        EXPECT_EQ(number(y[72 + r * 9 + c]), most);
        f64 up = 0;
        for (std::size_t below = r; below < 4; ++below) up += number(x[below * 9 + c]);
        EXPECT_EQ(number(y[36 + r * 9 + c]), up);
      }
    }
  });
}

// a * x + b from the left: associative, not commutative.
TEST(InterpreterScans, PairsInOrderBothWays) {
  auto g = record([](context& k, ptr<const i32> a, ptr<const i32> b, ptr<i32> y) {
    auto i = k.iota<0, 3, 7>() * 7 + k.iota<1, 3, 7>();
    auto after = [](auto a0, auto b0, auto a1, auto b1) { return pair_of{a0 * a1, a1 * b0 + b1}; };
    auto p = load(a + i), q = load(b + i);
    auto there = scan<1>(p, q, after);
    auto back = scan<1>(p, q, after, {.reverse = true});
    store(y + i, there.first);
    store(y + 21 + i, there.second);
    store(y + 42 + i, back.first);
    store(y + 63 + i, back.second);
    store(y + 84 + i, scan<0>(p, [](auto l, auto r) { return l * 2 - l + (r - r) + (l - l); }));
  });
  guarded<i32> a = small<i32>(21, 5, -3, 3), b = small<i32>(21, 6, -9, 9), y(105);
  run_clean(g, {1}, {a, b, y});
  for (std::size_t r = 0; r < 3; ++r) {
    i32 m = 1, c = 0;
    for (std::size_t j = 0; j < 7; ++j) {
      std::size_t const e = r * 7 + j;
      c = a[e] * c + b[e], m *= a[e];
      EXPECT_EQ(y[e], m);
      EXPECT_EQ(y[21 + e], c);
      EXPECT_EQ(y[84 + e], a[j]); // "the first" of a column
    }
    m = 1, c = 0;
    for (std::size_t j = 7; j-- > 0;) {
      std::size_t const e = r * 7 + j;
      c = a[e] * c + b[e], m *= a[e];
      EXPECT_EQ(y[42 + e], m);
      EXPECT_EQ(y[63 + e], c);
    }
  }
}

template <int N>
void ones() {
  auto g = record([](context& k, ptr<i32> y) {
    auto v = k.full<i32, N>(1);
    store(y + k.arange<N>(), cumsum(v));
    for (auto i : k.range(0, 3)) store(y + N + i * N + k.arange<N>(), cumsum<0>(v));
  });
  guarded<i32> y(4 * N);
  run_clean(g, {1}, {y});
  for (int i = 0; i < 4 * N; ++i) ASSERT_EQ(y[static_cast<std::size_t>(i)], i % N + 1);
}
TEST(InterpreterScans, OnesOfAnyLength) { ones<2>(), ones<8>(), ones<32>(), ones<64>(), ones<1024>(); }

// -- gather --------------------------------------------------------------------------------------------------------------------------

TEST(InterpreterGather, EveryTypeAndIndexType) {
  for_each(all_types{}, []<class T> {
    auto g = record([](context& k, ptr<const T> x, ptr<const i32> idx, ptr<T> y) {
      auto v = load(x + k.iota<0, 4, 6>() * 6 + k.iota<1, 4, 6>());
      auto rows = load(idx + k.iota<0, 9, 6>() * 6 + k.iota<1, 9, 6>());
      store(y + k.arange<54>(), reshape<54>(gather<0>(v, rows)));
      store(y + 54 + k.arange<6>(), reshape<6>(gather<1>(v, cast<u8>(load(idx + k.iota<0, 2, 3>() * 3 + k.iota<1, 2, 3>())))));
    });
    guarded<T> x = patterns<T>(24, 4), y(60);
    guarded<i32> idx = small<i32>(54, 8, 0, 3);
    run_clean(g, {1}, {x, idx, y});
    for (std::size_t r = 0; r < 9; ++r)
      for (std::size_t c = 0; c < 6; ++c)
        EXPECT_EQ(bits(y[r * 6 + c]), bits(x[static_cast<std::size_t>(idx[r * 6 + c]) * 6 + c]));
    for (std::size_t r = 0; r < 2; ++r)
      for (std::size_t c = 0; c < 3; ++c)
        EXPECT_EQ(bits(y[54 + r * 3 + c]), bits(x[r * 6 + static_cast<std::size_t>(idx[r * 3 + c])]));
  });
}

TEST(InterpreterGather, IndexLongerThanTheSource) {
  auto g = record([](context& k, ptr<i32> y) { store(y + k.arange<4096>(), gather<0>(k.arange<2>() * 5, k.arange<4096>() % 2)); });
  guarded<i32> y(4096);
  run_clean(g, {1}, {y});
  for (std::size_t i = 0; i < 4096; ++i) ASSERT_EQ(y[i], static_cast<i32>(i % 2 * 5));
}

// -- dot ---------------------------------------------------------------------------------------------------------------------------

TEST(InterpreterDot, EveryTypeFromTilesAndViews) {
  for_each(types<i8, f16, bf16, f32, f64, f8e4m3, f8e5m2>{}, []<class T> {
    using Acc = std::conditional_t<std::is_same_v<T, f64>, f64, std::conditional_t<std::is_same_v<T, i8>, i32, f32>>;
    auto g = record([](context& k, ptr<const T> a, ptr<const T> b, ptr<Acc> c) {
      auto x = load(a + k.iota<0, 5, 7>() * 7 + k.iota<1, 5, 7>());
      auto y = load(b + k.iota<0, 7, 6>() * 6 + k.iota<1, 7, 6>());
      auto i = k.iota<0, 5, 6>() * 6 + k.iota<1, 5, 6>();
      store(c + i, k.dot(x, y));
      auto as = k.local_alloc<T, 7, 5>();
      auto bs = k.local_alloc<T, 7, 6>();
      k.local_store(as[0], trans(x));
      k.local_store(bs[0], y);
      store(c + 30 + i, k.dot(k.local_trans(as[0]), bs[0], k.full<Acc, 5, 6>(100)));
      store(c + 60 + i, k.dot(x, bs[0]));
    });
    guarded<T> a = small<T>(35, 1, -3, 3), b = small<T>(42, 2, -3, 3);
    guarded<Acc> c(90);
    for (auto precision : {ip::precision::typed, ip::precision::doubled}) {
      run_clean(g, {1}, {a, b, c}, {.precision = precision});
      for (std::size_t r = 0; r < 5; ++r)
        for (std::size_t q = 0; q < 6; ++q) {
          f64 s = 0;
          for (std::size_t p = 0; p < 7; ++p) s += static_cast<f64>(a[r * 7 + p]) * static_cast<f64>(b[p * 6 + q]);
          EXPECT_EQ(static_cast<f64>(c[r * 6 + q]), s);
          EXPECT_EQ(static_cast<f64>(c[30 + r * 6 + q]), s + 100);
          EXPECT_EQ(static_cast<f64>(c[60 + r * 6 + q]), s);
        }
    }
  });
}

TEST(InterpreterDot, SumsOfI8Wrap) {
  auto g = record([](context& k, ptr<i32> c) {
    auto i = k.iota<0, 1, 1>();
    store(c + i, k.dot(k.full<i8, 1, 2>(-128), k.full<i8, 2, 1>(-128), k.full<i32, 1, 1>(2147483647)));
  });
  guarded<i32> c(1);
  run_clean(g, {1}, {c});
  EXPECT_EQ(c[0], std::numeric_limits<i32>::min() + 2 * 128 * 128 - 1);
}

TEST(InterpreterDot, TrueErrorOfAnF32Product) {
  auto g = record([](context& k, ptr<const f32> a, ptr<const f32> b, ptr<f32> c) {
    auto i = k.iota<0, 1, 1>();
    store(c + i, k.dot(load(a + k.iota<1, 1, 512>()), load(b + k.iota<0, 512, 1>())));
  });
  std::mt19937 random(4);
  std::normal_distribution<f32> normal;
  guarded<f32> a(512), b(512), c(1);
  f64 exact = 0, magnitude = 0;
  for (std::size_t i = 0; i < 512; ++i) {
    a[i] = normal(random), b[i] = normal(random);
    exact += static_cast<f64>(a[i]) * static_cast<f64>(b[i]), magnitude += std::abs(static_cast<f64>(a[i]) * static_cast<f64>(b[i]));
  }
  run_clean(g, {1}, {a, b, c}, {.precision = ip::precision::doubled});
  EXPECT_EQ(c[0], static_cast<f32>(exact));
  run_clean(g, {1}, {a, b, c});
  EXPECT_NEAR(static_cast<f64>(c[0]), exact, 2 * 512 * 0x1p-24 * magnitude);
}

} // namespace
