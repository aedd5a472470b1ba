// Global memory, atomics and local memory: values, for every type; under every completion policy where copies are asynchronous.
#include "element_types.hpp"

#include <cmath>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

template <class T>
u64 bits(T x) {
  return scalar_of(x).bits;
}

// -- loads and stores --------------------------------------------------------------------------------------------------------------

TEST(InterpreterGlobal, MasksAndOther) {
  for_each(all_types{}, []<class T> {
    auto g = record([](context& k, ptr<const T> x, ptr<T> y, kiln::val<i32> n) {
      auto i = k.arange<16>();
      auto in = i < n;
      store(y + i, load(x + i, {.mask = in}));
      store(y + 16 + i, load(x + i, {.mask = in, .other = cast<T>(k.full<i32, 1>(1))}));
      store(y + 32 + i, load(x + (i + 2) - 2, {.mask = in}), {.mask = i % 2 == 0 && in});
    });
    guarded<T> x = patterns<T>(11, 3), y(48, T(1));
    run_clean(g, {1}, {x, y, kiln_test::val(11)});
    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(bits(y[i]), i < 11 ? bits(x[i]) : 0);
      EXPECT_EQ(bits(y[16 + i]), i < 11 ? bits(x[i]) : bits(T(1)));
      EXPECT_EQ(bits(y[32 + i]), i < 11 && i % 2 == 0 ? bits(x[i]) : bits(T(1)));
    }
    EXPECT_TRUE(x.intact() && y.intact());
  });
}

TEST(InterpreterGlobal, RegionsMaskThemselves) {
  for_each(types<u8, f16, f32, f64>{}, []<class T> {
    auto g = record([](context& k, kiln::array<const T, 2> x, kiln::array<T, 2> y, kiln::array<T, 2> z, kiln::val<i32> r, kiln::val<i64> c) {
      auto v = load(x.region(at(r, c), kiln::extent<4, 8>), {.other = 7});
      store(y.region(at(0, 0), kiln::extent<4, 8>), v);
      store(z.region(at(r, c), kiln::extent<4, 8>), v, {.mask = k.iota<1, 4, 8>() != 1});
      store(z.data(), load(x.data() + x.stride(0)));
    });
    for (auto [r, c] : {std::pair<i32, i64>{0, 0}, {-2, -3}, {3, 6}, {100, 0}, {0, i64{1} << 62}, {-2147483648 + 10, 0}}) {
      i64 const rows = 6, columns = 9, pitch = 11;
      guarded<T> x(static_cast<std::size_t>(rows * pitch)), y(32), z(x.size(), T(2));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(static_cast<int>(i));
      auto view = [&](guarded<T> const& m) { return ip::array(m.data(), {rows, columns}, {pitch, 1}, m.data(), m.bytes()); };
      run_clean(g, {1}, {view(x), y.array({4, 8}), view(z), kiln_test::val(r), kiln_test::val(c)});
      for (i64 i = 0; i < 4; ++i)
        for (i64 j = 0; j < 8; ++j) {
          bool const in = r + i >= 0 && r + i < rows && c + j >= 0 && c + j < columns;
          u64 const expected = in ? bits(x[static_cast<std::size_t>((r + i) * pitch + c + j)]) : bits(T(7));
          EXPECT_EQ(bits(y[static_cast<std::size_t>(i * 8 + j)]), expected) << i << "," << j;
        }
      for (i64 i = 0; i < rows * pitch; ++i) {
        i64 const row = i / pitch - r, column = i % pitch - c;
        bool const written = row >= 0 && row < 4 && column >= 0 && column < 8 && column != 1 && i % pitch < columns;
        u64 const expected = i == 0 ? bits(x[static_cast<std::size_t>(pitch)]) : written ? bits(x[static_cast<std::size_t>(i)]) : bits(T(2));
        EXPECT_EQ(bits(z[static_cast<std::size_t>(i)]), expected) << i;
      }
      EXPECT_TRUE(x.intact() && y.intact() && z.intact());
    }
  });
}

TEST(InterpreterGlobal, StridesMayBeZeroNegativeAndHuge) {
  auto g = record([](context& k, kiln::array<const i32, 2> x, ptr<i32> y) {
    store(y + k.iota<0, 3, 4>() * 4 + k.iota<1, 3, 4>(), load(x.region(at(0, 0), kiln::extent<3, 4>), {.other = -1}));
    store(y + 12, cast<i32>(x.stride(0)));
    store(y + 13, cast<i32>(x.extent(1)));
  });
  guarded<i32> x(12), y(14);
  for (int i = 0; i < 12; ++i) x[static_cast<std::size_t>(i)] = i;
  // Rows reversed: the origin is the last row.
  run_clean(g, {1}, {ip::array(x.data() + 8, {3, 4}, {-4, 1}, x.data(), x.bytes()), y});
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(y[i], static_cast<i32>((2 - i / 4) * 4 + i % 4));
  EXPECT_EQ(y[12], -4);
  // One row for all.
  run_clean(g, {1}, {ip::array(x.data(), {3, 4}, {0, 1}, x.data(), x.bytes()), y});
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(y[i], static_cast<i32>(i % 4));
  // The stride of an axis of one element is never used.
  run_clean(g, {1}, {ip::array(x.data(), {1, 4}, {(i64{1} << 31) + 16, 1}, x.data(), x.bytes()), y});
  EXPECT_EQ(y[3], 3);
  EXPECT_EQ(y[4], -1);
  // Nothing at all: no element is in bounds, no memory is needed.
  run_clean(g, {1}, {ip::array(nullptr, {0, 4}, {4, 1}, nullptr, 0), y});
  EXPECT_EQ(y[0], -1);
}

// Offsets are scaled in 64 bits: 319 * 7864320 elements lie beyond 2^31.
TEST(InterpreterGlobal, OffsetsAreScaledIn64Bits) {
  auto g = record([](context&, ptr<const u8> x, ptr<i64> y, kiln::val<i32> a, kiln::val<i64> b, ptr<f64> z) {
    store(y, cast<i64>(load(x + (cast<i64>(a) * b))));
    store(z + a, 1.0); // the i32 offset is widened before it is scaled by 8
  });
  // An allocation that is not there: only the byte that is read is mapped.
  guarded<u8> last(1, 42);
  guarded<i64> y(1);
  guarded<f64> z(1);
  i64 const far = i64{319} * 7864320;
  ip::host_argument x = ip::pointer(last.data() - far, last.data(), 1);
  ip::host_argument target = ip::pointer(reinterpret_cast<char*>(z.data()) - i64{319} * 8, z.data(), 8);
  run_clean(g, {1}, {x, y, kiln_test::val(319), kiln_test::val(i64{7864320}), target});
  EXPECT_EQ(y[0], 42);
  EXPECT_EQ(z[0], 1.0);
}

// -- atomics -----------------------------------------------------------------------------------------------------------------------

template <class T>
T as(f64 x) {
  return static_cast<T>(x);
}

TEST(InterpreterAtomics, Additions) {
  for_each(types<i32, u32, i64, u64, f16, bf16, f32, f64>{}, []<class T> {
    auto g = record([](context& k, ptr<T> x, ptr<const i32> where_to, ptr<T> old) {
      auto i = k.arange<6>();
      auto was = atomic_add(x + load(where_to + i), 1, {.mask = i < 5});
      store(old + i, was);
    });
    guarded<T> x(3, T(0)), old(6, T(9));
    guarded<i32> at(std::vector<i32>{0, 1, 2, 2, 1, 0});
    run_clean(g, {1}, {x, at, old});
    EXPECT_EQ(static_cast<f64>(x[0]), 1);
    EXPECT_EQ(static_cast<f64>(x[1]), 2);
    EXPECT_EQ(static_cast<f64>(x[2]), 2);
    f64 const was[]{0, 0, 0, 1, 1, 0};
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(static_cast<f64>(old[i]), was[i]);
  });
}

TEST(InterpreterAtomics, WorkAcrossCtasInAnyOrder) {
  auto g = record([](context& k, ptr<i32> total, ptr<f64> sum, ptr<i32> most) {
    auto i = k.arange<32>();
    atomic_add(total + k.zeros<i32, 32>(), i + k.program_id(0));
    atomic_add(sum, cast<f64>(k.program_id(0)));
    atomic_max(most, k.program_id(0));
  });
  for (auto order : {ip::order::ascending, ip::order::seeded})
    for (int resident : {1, 4}) {
      guarded<i32> total(1, 0), most(1, -1);
      guarded<f64> sum(1, 0);
      run_clean(g, {10}, {total, sum, most}, {.order = order, .resident_ctas = resident});
      EXPECT_EQ(total[0], 10 * (31 * 32 / 2) + 32 * 45);
      EXPECT_EQ(sum[0], 45);
      EXPECT_EQ(most[0], 9);
    }
}

TEST(InterpreterAtomics, EveryKindOnWords) {
  for_each(types<i32, u32, i64, u64>{}, []<class T> {
    auto g = record([](context&, ptr<T> x, ptr<T> old) {
      store(old, atomic_min(x, 5)), store(old + 1, atomic_max(x + 1, 5)), store(old + 2, atomic_and(x + 2, 6));
      store(old + 3, atomic_or(x + 3, 6)), store(old + 4, atomic_xor(x + 4, 6)), store(old + 5, atomic_xchg(x + 5, 6));
      store(old + 6, atomic_cas(x + 6, 3, 9)), store(old + 7, atomic_cas(x + 7, 4, 9));
    });
    guarded<T> x(8, T(3)), old(8, T(0));
    x[0] = static_cast<T>(-2); // the largest of the unsigned types, less one
    run_clean(g, {1}, {x, old});
    T const expected[]{std::is_signed_v<T> ? static_cast<T>(-2) : T(5), 5, 2, 7, 5, 6, 9, 3};
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(x[i], expected[i]) << i;
      EXPECT_EQ(old[i], i == 0 ? static_cast<T>(-2) : T(3));
    }
  });
}

TEST(InterpreterAtomics, FloatsIgnoreNan) {
  for_each(types<f32, f64>{}, []<class T> {
    auto g = record([](context&, ptr<T> x) {
      atomic_min(x, -1.5f), atomic_max(x + 1, 8.f), atomic_min(x + 2, 4.f), atomic_xchg(x + 3, -0.f);
    });
    guarded<T> x(4, T(2));
    x[2] = std::numeric_limits<T>::quiet_NaN();
    run_clean(g, {1}, {x});
    EXPECT_EQ(x[0], T(-1.5));
    EXPECT_EQ(x[1], T(8));
    EXPECT_EQ(x[2], T(4));
    EXPECT_EQ(bits(x[3]), bits(T(-0.0)));
  });
}

// -- local memory --------------------------------------------------------------------------------------------------------------------

TEST(InterpreterLocal, SlotsViewsAndSlices) {
  for_each(all_types{}, []<class T> {
    auto g = record([](context& k, ptr<const T> x, ptr<T> y, kiln::val<i32> slot) {
      auto i = k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>();
      auto b = k.local_alloc<T, 8, 16>(3, {.name = "b"});
      k.local_store(b[slot], load(x + i));
      k.local_store(b[(slot + 1) % 3], k.zeros<T, 8, 16>());
      store(y + i, k.local_load(b[slot]));
      store(y + 128 + k.iota<0, 16, 8>() * 8 + k.iota<1, 16, 8>(), k.local_load(k.local_trans(b[slot])));
      auto box = k.local_slice<4, 8>(b[slot], {4, 8});
      store(y + 256 + k.iota<0, 4, 8>() * 8 + k.iota<1, 4, 8>(), k.local_load(box));
      store(y + 288 + k.arange<128>(), k.local_load(k.local_reshape<128>(b[slot])));
      store(y + 416 + k.arange<16>(), k.local_load(b[slot][5]));
      store(y + 432 + k.arange<1>(), k.local_load(b[slot][5][slot]));
      // A write through a part leaves the rest alone.
      k.local_store(k.local_trans(k.local_slice<2, 4>(b[slot], {2, 4})), k.zeros<T, 4, 2>());
      store(y + 448 + i, k.local_load(b[slot]));
    });
    guarded<T> x = patterns<T>(128, 6), y(448 + 128);
    for (i32 slot : {0, 2}) {
      run_clean(g, {1}, {x, y, kiln_test::val(slot)});
      for (std::size_t r = 0; r < 8; ++r)
        for (std::size_t c = 0; c < 16; ++c) {
          u64 const v = bits(x[r * 16 + c]);
          EXPECT_EQ(bits(y[r * 16 + c]), v);
          EXPECT_EQ(bits(y[128 + c * 8 + r]), v);
          if (r >= 4 && c >= 8) { EXPECT_EQ(bits(y[256 + (r - 4) * 8 + c - 8]), v); }
          EXPECT_EQ(bits(y[288 + r * 16 + c]), v);
          EXPECT_EQ(bits(y[448 + r * 16 + c]), r / 2 == 1 && c / 4 == 1 ? 0 : v);
        }
      for (std::size_t c = 0; c < 16; ++c) EXPECT_EQ(bits(y[416 + c]), bits(x[5 * 16 + c]));
      EXPECT_EQ(bits(y[432]), bits(x[5 * 16 + static_cast<std::size_t>(slot)]));
    }
  });
}

// Operations on a slice of a wide buffer work on the slice: sums along a row, reductions, products.
TEST(InterpreterLocal, SlicesAreNotPacked) {
  auto g = record([](context& k, ptr<f32> y) {
    auto s = k.alloc_shared<f32, 16, 64>();
    k.local_store(s, k.full<f32, 16, 64>(1.f));
    auto part = k.local_slice<16, 16>(s, {0, 32});
    k.local_store(part, cumsum<1>(k.local_load(part)));
    auto i = k.iota<0, 16, 64>() * 64 + k.iota<1, 16, 64>();
    store(y + i, k.local_load(s));
    store(y + 1024 + k.iota<0, 16, 16>() * 16 + k.iota<1, 16, 16>(), k.dot(part, k.local_slice<16, 16>(s, {0, 0})));
  });
  guarded<f32> y(1280);
  run_clean(g, {1}, {y});
  for (std::size_t r = 0; r < 16; ++r) {
    for (std::size_t c = 0; c < 64; ++c) EXPECT_EQ(y[r * 64 + c], c / 16 == 2 ? static_cast<f32>(c - 31) : 1.f);
    for (std::size_t c = 0; c < 16; ++c) EXPECT_EQ(y[1024 + r * 16 + c], 16.f * 17.f / 2.f);
  }
}

TEST(InterpreterLocal, GatherAndScatter) {
  for_each(all_types{}, []<class T> {
    auto g = record([](context& k, ptr<const T> x, ptr<const i32> idx, ptr<T> y) {
      auto i = k.arange<48>();
      auto b = k.local_alloc<T, 48>();
      auto to = load(idx + i);
      k.local_scatter(b[0], load(x + i), to);
      store(y + i, k.local_load(b[0]));
      store(y + 48 + i, k.local_gather(b[0], to));
      auto rows = k.local_alloc<T, 6, 4>();
      k.local_store(rows[0], load(x + k.iota<0, 6, 4>() * 4 + k.iota<1, 6, 4>()));
      store(y + 96 + k.iota<0, 6, 4>() * 4 + k.iota<1, 6, 4>(), k.local_gather(rows[0], 3 - k.iota<1, 6, 4>(), {.axis = 1}));
    });
    guarded<T> x = patterns<T>(48, 8), y(120);
    std::vector<i32> order(48);
    for (std::size_t i = 0; i < 48; ++i) order[i] = static_cast<i32>(i * 11 % 48);
    guarded<i32> idx(order);
    run_clean(g, {1}, {x, idx, y});
    for (std::size_t i = 0; i < 48; ++i) {
      EXPECT_EQ(bits(y[static_cast<std::size_t>(order[i])]), bits(x[i]));
      EXPECT_EQ(bits(y[48 + i]), bits(x[i]));
    }
    for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(bits(y[96 + i]), bits(x[i / 4 * 4 + 3 - i % 4]));
  });
}

// Store, then gather reversed, seven times under a runtime condition; other CTAs stay untouched.
TEST(InterpreterLocal, ReversedUnderACondition) {
  auto g = record([](context& k, ptr<f32> x, kiln::val<i32> trips) {
    auto i = k.arange<33>();
    auto at = x + k.program_id(0) * 33 + i;
    auto b = k.alloc_shared<f32, 33>();
    k.when(k.program_id(0) % 2 == 0, [&] {
      for (auto t : k.range(trips)) {
        k.local_store(b, load(at));
        store(at, k.local_gather(b, 32 - i) + cast<f32>(t - t + 1));
      }
    });
  });
  for (i32 trips : {0, 1, 2, 7}) {
    guarded<f32> x(33 * 4);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<f32>(i);
    run_clean(g, {4}, {x, kiln_test::val(trips)});
    for (std::size_t c = 0; c < 4; ++c)
      for (std::size_t i = 0; i < 33; ++i) {
        std::size_t const from = c % 2 == 0 && trips % 2 == 1 ? 32 - i : i;
        EXPECT_EQ(x[c * 33 + i], static_cast<f32>(c * 33 + from) + (c % 2 == 0 ? static_cast<f32>(trips) : 0.f));
      }
  }
}

// -- asynchronous copies ---------------------------------------------------------------------------------------------------------------

TEST(InterpreterAsync, EveryTypeWithMaskAndFill) {
  for_each(all_types{}, []<class T> {
    auto g = record([](context& k, ptr<const T> x, ptr<T> y, kiln::val<i32> n) {
      auto i = k.arange<128>();
      auto b = k.local_alloc<T, 128>(2);
      k.local_store(b[0], cast<T>(k.full<i32, 128>(1)));
      auto t = k.async_load(x + i, b[0], {.mask = i < n, .other = 0});
      auto u = k.async_load(x + i, b[1]);
      auto both = k.async_load_commit_group({t, u});
      k.async_load_wait_group(0, {both});
      store(y + i, k.local_load(b[0]));
      store(y + 128 + i, k.local_load(b[1]));
    });
    for (auto policy : all_policies) {
      guarded<T> x = patterns<T>(128, 2), y(256);
      run_clean(g, {1}, {x, y, kiln_test::val(100)}, {.policy = policy});
      for (std::size_t i = 0; i < 128; ++i) {
        EXPECT_EQ(bits(y[i]), i < 100 ? bits(x[i]) : 0);
        EXPECT_EQ(bits(y[128 + i]), bits(x[i]));
      }
    }
  });
}

TEST(InterpreterAsync, FillsAreExact) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) {
    auto i = k.arange<8>();
    auto b = k.local_alloc<f32, 8>(3);
    k.async_load(x + i, b[0], {.mask = i < 3, .other = -inf});
    k.async_load(x + i, b[1], {.mask = i < 3, .other = cast<f32>(i) * 2.f}); // a tile
    k.async_load(x + i, b[2], {.mask = i < 3, .other = 0.5f});
    k.async_load_commit_group();
    k.async_load_wait_group(0);
    for (int s = 0; s < 3; ++s) store(y + s * 8 + i, k.local_load(b[s]));
  });
  for (auto policy : all_policies) {
    guarded<f32> x(3, 9.f), y(24);
    run_clean(g, {1}, {x, y}, {.policy = policy});
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(y[i], i < 3 ? 9.f : -std::numeric_limits<f32>::infinity());
      EXPECT_EQ(y[8 + i], i < 3 ? 9.f : 2.f * static_cast<f32>(i));
      EXPECT_EQ(y[16 + i], i < 3 ? 9.f : 0.5f);
    }
  }
}

// The sum over all tiles and the last tile, for trip counts around the depth of the pipeline; zero trips too.
template <int Stages>
void pipeline() {
  auto g = record([](context& k, ptr<const i32> x, ptr<i32> y, kiln::val<i32> n) {
    auto i = k.arange<16>();
    auto b = k.local_alloc<i32, 16>(Stages);
    auto sum = k.var(k.zeros<i32, 16>()), last = k.var(k.full<i32, 16>(-1));
    auto fetch = [&](auto t) {
      k.when(t < n, [&] { k.async_load(x + t * 16 + i, b[t % Stages]); });
      k.async_load_commit_group();
    };
    for (int s = 0; s < Stages - 1; ++s) fetch(k.let(s));
    for (auto t : k.range(n)) {
      k.async_load_wait_group(Stages - 2);
      auto v = k.local_load(b[t % Stages]);
      sum += v;
      last = v;
      fetch(t + (Stages - 1));
    }
    store(y + i, sum);
    store(y + 16 + i, last);
  });
  for (auto policy : all_policies)
    for (u64 seed = 1; seed < 5; ++seed)
      for (i32 n = 0; n < 7; ++n) {
        guarded<i32> x(static_cast<std::size_t>(n) * 16), y(32);
        for (std::size_t e = 0; e < x.size(); ++e) x[e] = static_cast<i32>(e * e % 97);
        run_clean(g, {1}, {x, y, kiln_test::val(n)}, {.policy = policy, .seed = seed});
        for (std::size_t e = 0; e < 16; ++e) {
          i32 sum = 0, last = -1;
          for (std::size_t t = 0; t < static_cast<std::size_t>(n); ++t) last = x[t * 16 + e], sum += last;
          EXPECT_EQ(y[e], sum);
          EXPECT_EQ(y[16 + e], last);
        }
      }
}
TEST(InterpreterAsync, PipelinesOfAnyDepth) { pipeline<2>(), pipeline<3>(), pipeline<4>(); }

// A slot is read, then refilled: every pass sees what it was filled with, never what comes next.
TEST(InterpreterAsync, ReadThenRefill) {
  auto g = record([](context& k, ptr<const i32> x, ptr<i32> y, kiln::val<i32> n) {
    auto i = k.arange<8>();
    auto b = k.alloc_shared<i32, 8>();
    k.local_store(b, k.full<i32, 8>(100));
    auto sum = k.var(k.zeros<i32, 8>());
    for (auto t : k.range(n)) {
      sum += k.local_load(b);
      auto group = k.async_load_commit_group({k.async_load(x + t * 8 + i, b)});
      k.async_load_wait_group(5, {group}); // named: complete although five may be pending
    }
    store(y + i, sum);
  });
  for (auto policy : all_policies) {
    guarded<i32> x(32), y(8);
    for (std::size_t e = 0; e < 32; ++e) x[e] = static_cast<i32>(e);
    run_clean(g, {1}, {x, y, kiln_test::val(4)}, {.policy = policy});
    for (i32 e = 0; e < 8; ++e) EXPECT_EQ(y[static_cast<std::size_t>(e)], 100 + e + (8 + e) + (16 + e));
  }
}

TEST(InterpreterAsync, TokensInVars) {
  auto g = record([](context& k, ptr<const i32> x, ptr<i32> y) {
    auto i = k.arange<8>();
    auto b = k.local_alloc<i32, 8>(2);
    auto group = k.var(k.async_load_commit_group({k.async_load(x + i, b[0])}));
    for (auto t : k.range(1, 5)) {
      k.async_load_wait_group(0, {group.read()});
      store(y + (t - 1) * 8 + i, k.local_load(b[(t + 1) % 2]));
      group = k.async_load_commit_group({k.async_load(x + t * 8 + i, b[t % 2])});
    }
    k.async_load_wait_group(0);
  });
  for (auto policy : all_policies) {
    guarded<i32> x(40), y(32);
    for (std::size_t e = 0; e < 40; ++e) x[e] = static_cast<i32>(3 * e);
    run_clean(g, {1}, {x, y}, {.policy = policy});
    for (std::size_t e = 0; e < 32; ++e) EXPECT_EQ(y[e], static_cast<i32>(3 * e));
  }
}

// What a copy moves is what stood there when it moved: late copies see later stores of global memory.
TEST(InterpreterAsync, PoliciesAreWhatTheySay) {
  auto g = record([](context& k, ptr<i32> x, ptr<i32> y) {
    auto i = k.arange<4>();
    auto b = k.alloc_shared<i32, 4>();
    k.async_load(x + i, b);
    k.async_load_commit_group();
    store(x + i, k.full<i32, 4>(7));
    k.async_load_wait_group(0);
    store(y + i, k.local_load(b));
  });
  guarded<i32> y(4);
  guarded<i32> early(4, 1), late(4, 1);
  run_clean(g, {1}, {early, y}, {.policy = ip::completion::early});
  EXPECT_EQ(y[0], 1);
  run_clean(g, {1}, {late, y}, {.policy = ip::completion::late});
  EXPECT_EQ(y[0], 7);
}

} // namespace
