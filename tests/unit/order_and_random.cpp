// Histograms, sorting, topk and random numbers: their values in the interpreter, and the same kernels compiled for the host.
#include "element_types.hpp"

#include <kiln/kiln.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace {

using namespace kiln;
using namespace kiln_test;

/// Any bit pattern: NaN of all kinds, infinities, both zeros.
template <class T>
guarded<T> equal_and_any(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  guarded<T> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    // Every fourth is one of few, so that there are equal ones; the others are anything.
    u64 const few[] = {0, u64{1} << (bits_of(dtype_of<T>) - 1), ~u64{0}, 1};
    scalar const s = scalar_from_bits(dtype_of<T>, i % 4 ? random() : few[random() % 4]);
    std::memcpy(&x[i], &s.bits, sizeof(T));
  }
  return x;
}
template <class T>
u64 bits(T x) {
  return scalar_of(x).bits;
}
template <class T>
f64 number(T x) {
  return static_cast<f64>(x);
}
template <class T>
bool before(T x, T y, bool descending) { // the order of docs/numerics.md, written down once more
  if constexpr (is_float(dtype_of<T>)) {
    f64 const p = number(x), q = number(y);
    if (std::isnan(p) || std::isnan(q)) return !std::isnan(p) && std::isnan(q);
    return descending ? p > q : p < q;
  } else {
    return descending ? x > y : x < y;
  }
}
/// The same of places, the first of equals first.
template <class T>
bool comes_first(T const* row, i32 p, i32 q, bool descending) {
  return before(row[p], row[q], descending) || (!before(row[q], row[p], descending) && p < q);
}
template <class T>
u64 plain_bits(T x) {
  if constexpr (is_float(dtype_of<T>)) {
    if (std::isnan(number(x))) return nan_of(dtype_of<T>).bits;
    if (number(x) == 0) return 0;
  }
  return bits(x);
}

// -- histogram -----------------------------------------------------------------------------------------------------------------

TEST(Histogram, CountsWhatIsInsideTheBins) {
  for_each(integers{}, []<class T> {
    auto g = record([](context& k, ptr<const T> x, ptr<i32> y) {
      auto v = load(x + k.iota<0, 5, 37>() * 37 + k.iota<1, 5, 37>());
      store(y + k.arange<100>(), histogram<100>(v));
      store(y + 100 + k.arange<300>(), histogram<300>(v, v >= 3));
    });
    guarded<T> x(185);
    std::mt19937_64 random(3);
    for (std::size_t i = 0; i < 185; ++i) x[i] = static_cast<T>(random() % 7 == 0 ? random() : random() % 120);
    guarded<i32> y(400);
    run_clean(g, {1}, {x, y});
    std::vector<i32> want(400);
    for (std::size_t i = 0; i < 185; ++i) {
      T const v = x[i];
      if (!(v < T{}) && static_cast<u64>(v) < 100) ++want[static_cast<std::size_t>(v)];
      if (v >= 3 && static_cast<u64>(v) < 300) ++want[100 + static_cast<std::size_t>(v)];
    }
    for (std::size_t i = 0; i < 400; ++i) ASSERT_EQ(y[i], want[i]) << i;
  });
}

inline constexpr auto count_bytes = kernel<"count_bytes">([](context& k, ptr<const i32> x, ptr<i32> counts, kiln::val<i64> n) {
  auto i = k.program_id<i64>(0) * 1000 + k.arange<1000>();
  atomic_add(counts + k.arange<256>(), histogram<256>(load(x + i, {.mask = i < n}), i < n));
});
TEST(Histogram, OfALaunchOnTheHost) {
  stream s(device::host());
  for (int kind : {0, 1, 2}) {
    constexpr i64 n = 12345;
    std::vector<i32> x(n), want(256);
    std::mt19937 random(7);
    for (i32& v : x) v = kind == 0 ? static_cast<i32>(random() % 256) : kind == 1 && random() % 10 == 0 ? static_cast<i32>(random()) : 9;
    for (i32 v : x)
      if (v >= 0 && v < 256) ++want[static_cast<std::size_t>(v)];
    buffer<i32> in(s, x), counts(s, std::vector<i32>(256));
    count_bytes.launch(s, grid(ceil_div(n, 1000)), in, counts, n);
    EXPECT_EQ(counts.to_vector(), want) << kind;
  }
}

// -- sort and topk ----------------------------------------------------------------------------------------------------------------

TEST(Sort, EveryTypeBothWaysAlongAnyAxis) {
  for_each(numbers{}, []<class T> {
    auto g = record([](context& k, ptr<const T> x, ptr<T> y) {
      auto i = k.iota<0, 6, 23>() * 23 + k.iota<1, 6, 23>();
      auto v = load(x + i);
      store(y + i, sort(v));
      store(y + 138 + i, sort<0>(v, {.descending = true}));
    });
    guarded<T> x = equal_and_any<T>(138, 5), y(276);
    run_clean(g, {1}, {x, y});
    for (std::size_t r = 0; r < 6; ++r) {
      std::vector<T> row(&x[r * 23], &x[r * 23] + 23);
      std::sort(row.begin(), row.end(), [](T p, T q) { return before(p, q, false); });
      for (std::size_t c = 0; c < 23; ++c) ASSERT_EQ(bits(y[r * 23 + c]), plain_bits(row[c])) << r << " " << c;
    }
    for (std::size_t c = 0; c < 23; ++c) {
      std::vector<T> column;
      for (std::size_t r = 0; r < 6; ++r) column.push_back(x[r * 23 + c]);
      std::sort(column.begin(), column.end(), [](T p, T q) { return before(p, q, true); });
      for (std::size_t r = 0; r < 6; ++r) ASSERT_EQ(bits(y[138 + r * 23 + c]), plain_bits(column[r])) << r << " " << c;
    }
  });
}

TEST(TopK, FirstOfEqualsAndNanLast) {
  for_each(numbers{}, []<class T> {
    auto g = record([](context& k, ptr<const T> x, ptr<T> y, ptr<i32> at) {
      auto v = load(x + k.iota<0, 3, 40>() * 40 + k.iota<1, 3, 40>());
      auto i = k.iota<0, 3, 5>() * 5 + k.iota<1, 3, 5>();
      auto [most, where_most] = topk<5>(v);
      auto [least, where_least] = topk<5, 1>(v, {.largest = false});
      store(y + i, most);
      store(y + 15 + i, least);
      store(at + i, where_most);
      store(at + 15 + i, where_least);
      auto all = topk<40>(v); // a stable sort with indices
      store(at + 30 + (k.iota<0, 3, 40>() * 40 + k.iota<1, 3, 40>()), all.second);
    });
    guarded<T> x = equal_and_any<T>(120, 6), y(30);
    guarded<i32> at(150);
    run_clean(g, {1}, {x, y, at});
    for (std::size_t r = 0; r < 3; ++r)
      for (bool largest : {true, false}) {
        std::vector<i32> places(40);
        std::iota(places.begin(), places.end(), 0);
        T const* row = &x[r * 40];
        std::sort(places.begin(), places.end(), [&](i32 p, i32 q) { return comes_first(row, p, q, largest); });
        for (std::size_t c = 0; c < 5; ++c) {
          std::size_t const e = (largest ? 0 : 15) + r * 5 + c;
          ASSERT_EQ(at[e], places[c]) << r << " " << c;
          ASSERT_EQ(bits(y[e]), plain_bits(row[places[c]])) << r << " " << c;
        }
        for (std::size_t c = 0; largest && c < 40; ++c) ASSERT_EQ(at[30 + r * 40 + c], places[c]);
      }
  });
}

// The index of the best of one is what argmax gives.
TEST(TopK, OfOneIsArgmax) {
  auto g = record([](context& k, ptr<const f32> x, ptr<i32> at) {
    auto v = load(x + k.iota<0, 16, 8>() * 8 + k.iota<1, 16, 8>());
    auto i = k.arange<16>();
    store(at + i, argmax<1>(v));
    store(at + 16 + i, reshape<16>(topk<1>(v).second));
    store(at + 32 + i, argmin<1>(v));
    store(at + 48 + i, reshape<16>(topk<1>(v, {.largest = false}).second));
  });
  guarded<f32> x = equal_and_any<f32>(128, 11);
  for (std::size_t c = 0; c < 8; ++c) x[c] = std::numeric_limits<f32>::quiet_NaN(); // a row of NaN alone
  guarded<i32> at(64);
  run_clean(g, {1}, {x, at});
  for (std::size_t r = 0; r < 16; ++r) {
    EXPECT_EQ(at[r], at[16 + r]);
    EXPECT_EQ(at[32 + r], at[48 + r]);
  }
}

// Long rows, in blocks on the host: random, all equal, ascending, of NaN.
template <class T>
inline constexpr auto best_of_row = kernel<"best_of_row">([](context& k, ptr<const T> x, ptr<T> y, ptr<i32> at) {
  auto row = k.program_id<i64>(0);
  auto [best, where_best] = topk<8, 0>(load(x + row * 5000 + k.arange<5000>()));
  store(y + row * 8 + k.arange<8>(), best);
  store(at + row * 8 + k.arange<8>(), where_best);
});
template <class T>
void long_rows() {
  stream s(device::host());
  std::vector<T> x(4 * 5000);
  std::mt19937 random(2);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = i < 5000 ? T(static_cast<int>(random() % 60000) - 30000) : i < 10000 ? T(3) : i < 15000 ? T(static_cast<int>(i - 10000)) : T(-1);
  if constexpr (is_float(dtype_of<T>))
    for (std::size_t i = 15003; i < 20000; ++i) x[i] = T(std::numeric_limits<f32>::quiet_NaN());
  buffer<T> in(s, x), best(s, 32);
  buffer<i32> at(s, 32);
  best_of_row<T>.launch(s, grid(4), in, best, at);
  std::vector<T> const values = best.to_vector();
  std::vector<i32> const where = at.to_vector();
  for (std::size_t r = 0; r < 4; ++r) {
    std::vector<i32> places(5000);
    std::iota(places.begin(), places.end(), 0);
    T const* row = &x[r * 5000];
    std::sort(places.begin(), places.end(), [&](i32 p, i32 q) { return comes_first(row, p, q, true); });
    for (std::size_t c = 0; c < 8; ++c) {
      EXPECT_EQ(where[r * 8 + c], places[c]) << r << " " << c;
      EXPECT_EQ(bits(values[r * 8 + c]), plain_bits(row[places[c]])) << r << " " << c;
    }
  }
}
TEST(TopK, LongRowsOnTheHost) {
  long_rows<f32>();
  long_rows<bf16>();
  long_rows<i64>();
  long_rows<i16>();
}

// -- random numbers -------------------------------------------------------------------------------------------------------------------

inline constexpr auto philox_words_of = kernel<"philox_words_of">([](context& k, ptr<const u64> in, ptr<u32> out) {
  auto i = k.arange<3>();
  auto [a, b, c, d] = philox(load(in + i), load(in + 3 + i), load(in + 6 + i));
  store(out + i * 4, a);
  store(out + i * 4 + 1, b);
  store(out + i * 4 + 2, c);
  store(out + i * 4 + 3, d);
});
// The vectors that are published with Random123 for philox4x32 with 10 rounds.
TEST(Philox, PublishedVectors) {
  std::vector<u64> const values = {0, ~u64{0}, 0x299f31d0a4093822, 0, ~u64{0}, 0x85a308d3243f6a88, 0, ~u64{0}, 0x0370734413198a2e};
  guarded<u64> in(values);
  u32 const want[12] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8, 0x408f276d, 0x41c83b0e,
                        0xa20bc7c6, 0x6d5451fd, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
  guarded<u32> out(12);
  run_clean(philox_words_of.graph(), {1}, {in, out});
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(out[i], want[i]) << i;
  stream s(device::host());
  buffer<u64> a(s, values);
  buffer<u32> b(s, 12);
  philox_words_of.launch(s, grid(1), a, b);
  EXPECT_EQ(b.to_vector(), std::vector<u32>(want, want + 12));
}

inline constexpr auto uniforms = kernel<"uniforms">([](context& k, ptr<f32> x, ptr<u32> words, kiln::val<i64> seed) {
  auto i = k.program_id<i64>(0) * 1024 + k.arange<1024>();
  store(x + i, uniform(seed, i));
  store(words + i, philox(seed, i).first);
});
TEST(Philox, UniformIsTheUpper24Bits) {
  stream s(device::host());
  constexpr std::size_t n = 1 << 16;
  buffer<f32> x(s, n);
  buffer<u32> words(s, n);
  uniforms.launch(s, grid(n / 1024), x, words, i64{-5});
  auto const u = x.to_vector();
  auto const w = words.to_vector();
  f64 sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_EQ(u[i], static_cast<f32>(w[i] >> 8) * 0x1p-24f);
    ASSERT_TRUE(u[i] >= 0 && u[i] < 1);
    sum += static_cast<f64>(u[i]);
  }
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
}

} // namespace
