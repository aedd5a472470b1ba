// Kernels of kinds that compilers of this sort are known to get wrong, with the results that they must have: in the interpreter under
// every completion policy, through the text form, and as compiled host code.
#include "run_everywhere.hpp"

#include <kiln/kiln.hpp>

#include <algorithm>
#include <numeric>
#include <random>

namespace {

using namespace kiln;
using namespace kiln_test;

std::vector<f32> numbers(std::size_t n, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<f32> x(n);
  for (f32& v : x) v = static_cast<f32>(static_cast<int>(random() % 41) - 20);
  return x;
}
std::vector<f32> ones(std::size_t n) { return std::vector<f32>(n, 1.f); }

// -- local memory and its barriers -----------------------------------------------------------------------------------------------

template <int N>
void reversed(int warps) {
  auto g = record(
      [](context& k, ptr<const f32> x, ptr<f32> y) {
        auto b = k.local_alloc<f32, N>();
        k.local_store(b[0], load(x + k.arange<N>()));
        store(y + k.arange<N>(), k.local_gather(b[0], N - 1 - k.arange<N>()));
      },
      {.num_warps = warps});
  auto const x = numbers(N);
  auto want = x;
  std::ranges::reverse(want);
  EXPECT_EQ(run_everywhere(g, x, N), want) << N;
}
TEST(KnownFaults, TilesThatAreNoMultipleOfAWarp) {
  reversed<48>(2);
  reversed<33>(2);
  reversed<1>(2);
  reversed<95>(4);
}

TEST(KnownFaults, BarriersInsideConditionalLoops) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    auto i = k.arange<33>();
    auto b = k.local_alloc<f32, 33>();
    auto v = k.var(load(x + i));
    k.when(load(x + 40) > 0, [&] {
      for (auto trip : k.range(0, n)) {
        (void)trip;
        k.local_store(b[0], v);
        v = k.local_gather(b[0], 32 - i) + 1;
      }
    });
    store(y + i, v);
  });
  for (int flag : {0, 1})
    for (int n : {0, 1, 2, 7}) {
      auto x = numbers(41);
      x[40] = static_cast<f32>(flag);
      std::vector<f32> want(x.begin(), x.begin() + 33);
      for (int trip = 0; flag && trip < n; ++trip) {
        std::ranges::reverse(want);
        for (f32& v : want) v += 1;
      }
      EXPECT_EQ(run_everywhere(g, x, 33, n), want) << flag << " " << n;
    }
}

TEST(KnownFaults, BarriersInsideNestedLoops) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) {
    auto i = k.arange<5>();
    auto b = k.local_alloc<f32, 5>();
    k.local_store(b[0], load(x + i) * 10);
    auto twice = k.var(k.zeros<f32, 5>()), sum = k.var(k.zeros<f32, 5>());
    for (auto a : k.range(0, 2)) {
      (void)a;
      twice = k.local_load(b[0]);
      k.sync();
    }
    for (auto a : k.range(0, 3)) {
      (void)a;
      for (auto c : k.range(0, 4)) {
        (void)c;
        sum += k.local_load(b[0]);
        k.sync();
      }
    }
    store(y + i, twice);
    store(y + 5 + i, sum);
  });
  EXPECT_EQ(run_everywhere<f32>(g, {0, 1, 2, 3, 4}, 10), (std::vector<f32>{0, 10, 20, 30, 40, 0, 120, 240, 360, 480}));
}

// A slice is not packed: what lies beside it stays, and every operation on it takes the buffer's own pitch.
TEST(KnownFaults, SlicesOfWiderTiles) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) {
    auto whole = k.iota<0, 16, 64>() * 64 + k.iota<1, 16, 64>();
    auto part = k.iota<0, 16, 32>() * 32 + k.iota<1, 16, 32>();
    auto b = k.local_alloc<f32, 16, 64>();
    k.local_store(b[0], load(x + whole));
    auto s = k.local_slice<16, 32>(b[0], {0, 32});
    store(y + 1024 + k.arange<16>(), reduce<sum, 1>(k.local_load(s)));
    store(y + 1040 + part, k.local_gather(s, 31 - k.iota<1, 16, 32>(), {.axis = 1}));
    store(y + 1552 + k.iota<0, 32, 16>() * 16 + k.iota<1, 32, 16>(), k.local_load(k.local_trans(s)));
    store(y + 2064 + k.iota<0, 16, 16>() * 16 + k.iota<1, 16, 16>(), k.dot(s, k.local_trans(s)));
    k.local_store(s, cumsum<1>(k.full<f32, 16, 32>(1)));
    store(y + whole, k.local_load(b[0]));
  });
  auto const x = numbers(1024);
  auto at = [&](std::size_t r, std::size_t c) { return x[r * 64 + 32 + c]; };
  std::vector<f32> want(x);
  for (std::size_t r = 0; r < 16; ++r)
    for (std::size_t c = 0; c < 32; ++c) want[r * 64 + 32 + c] = static_cast<f32>(c + 1);
  for (std::size_t r = 0; r < 16; ++r) want.push_back(std::accumulate(&x[r * 64 + 32], &x[r * 64] + 64, 0.f));
  for (std::size_t r = 0; r < 16; ++r)
    for (std::size_t c = 0; c < 32; ++c) want.push_back(at(r, 31 - c));
  for (std::size_t c = 0; c < 32; ++c)
    for (std::size_t r = 0; r < 16; ++r) want.push_back(at(r, c));
  for (std::size_t r = 0; r < 16; ++r)
    for (std::size_t q = 0; q < 16; ++q) {
      f32 dot = 0;
      for (std::size_t c = 0; c < 32; ++c) dot += at(r, c) * at(q, c);
      want.push_back(dot);
    }
  EXPECT_EQ(run_everywhere(g, x, want.size()), want);
}

// Halves of a tile as operands of a product: their panels are the whole tile's.
template <int K>
void halves() {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) {
    auto a = k.local_alloc<f32, 128, K>();
    k.local_store(a[0], load(x + k.iota<0, 128, K>() * K + k.iota<1, 128, K>()));
    auto b = load(x + 128 * K + k.iota<0, K, 16>() * 16 + k.iota<1, K, 16>());
    auto to = k.iota<0, 64, 16>() * 16 + k.iota<1, 64, 16>();
    for (int half : {0, 1}) store(y + half * 1024 + to, k.dot(k.local_load(k.local_slice<64, K>(a[0], {half * 64, 0})), b));
  });
  auto const x = numbers(128 * K + K * 16);
  std::vector<f32> want(2048);
  for (std::size_t r = 0; r < 128; ++r)
    for (std::size_t c = 0; c < 16; ++c)
      for (std::size_t q = 0; q < K; ++q) want[r * 16 + c] += x[r * K + q] * x[128 * K + q * 16 + c];
  EXPECT_EQ(run_everywhere(g, x, 2048), want) << K;
}
TEST(KnownFaults, HalvesOfOperands) {
  halves<64>();
  halves<128>();
}

// Copies that hardware cannot do asynchronously: single bytes, from odd addresses, with gaps.
TEST(KnownFaults, NarrowAsynchronousCopies) {
  auto copies = []<class T>(std::type_identity<T>, auto offset, auto stride) {
    auto g = record([](context& k, ptr<const T> x, ptr<T> y) {
      auto b = k.local_alloc<T, 64>();
      k.async_load(x + decltype(offset)::value + k.arange<64>() * decltype(stride)::value, b[0]);
      k.async_load_commit_group();
      k.async_load_wait_group(0);
      store(y + k.arange<64>(), k.local_load(b[0]));
    });
    std::vector<T> x(256), want;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(static_cast<f32>(i % 100));
    for (std::size_t i = 0; i < 64; ++i) want.push_back(x[decltype(offset)::value + i * decltype(stride)::value]);
    EXPECT_EQ(run_everywhere(g, x, 64), want);
  };
  copies(std::type_identity<i8>{}, std::integral_constant<int, 1>{}, std::integral_constant<int, 1>{});
  copies(std::type_identity<f16>{}, std::integral_constant<int, 0>{}, std::integral_constant<int, 3>{});
  copies(std::type_identity<f16>{}, std::integral_constant<int, 1>{}, std::integral_constant<int, 1>{});
}

// -- shapes, offsets and strides -------------------------------------------------------------------------------------------------

template <int N>
void few_elements(int warps) {
  auto g = record(
      [](context& k, ptr<const f32> x, ptr<f32> y) {
        auto v = load(x + k.arange<N>());
        store(y, reduce<min>(v));
        store(y + 1, reduce<max>(v));
        store(y + 2, cast<f32>(argmin<0>(v)));
        store(y + 3, reduce<sum>(v));
      },
      {.num_warps = warps});
  for (f32 v : {3.5f, -2.f})
    EXPECT_EQ(run_everywhere(g, std::vector<f32>(N, v), 4), (std::vector<f32>{v, v, 0, v * N})) << N;
}
TEST(KnownFaults, FewerElementsThanThreads) {
  few_elements<1>(8);
  few_elements<2>(1);
  few_elements<9>(2);
  few_elements<31>(1);
  few_elements<33>(8);
}

// Rows whose pitch is no multiple of a vector, though the first one is aligned.
TEST(KnownFaults, PitchesThatAreNoMultipleOfAVector) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> pitch) {
    auto r = k.iota<0, 3, 1024>(), c = k.iota<1, 3, 1024>();
    auto in = c < 977;
    store(y + r * 977 + c, load(x + r * pitch + c, {.mask = in}) + load(x + r * 1185 + c, {.mask = in}), {.mask = in});
  });
  auto const x = numbers(3 * 1185);
  std::vector<f32> want;
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 977; ++c) want.push_back(2 * x[r * 1185 + c]);
  EXPECT_EQ(run_everywhere(g, x, want.size(), 1185), want);
}

// An array has up to six axes, and its regions too; strides may be anything.
TEST(KnownFaults, SixAxes) {
  auto g = record([](context& k, array<const f32, 6> a, ptr<f32> y) {
    auto v = load(a.region(at(0, 1, -1, 0, 0, 2), extent<2, 2, 3, 2, 1, 4>), {.other = -1});
    store(y + k.arange<96>(), reshape<96>(v));
  });
  EXPECT_TRUE(validate(g).ok()) << validate(g).text;
  kiln::graph const again = std::move(parse_graphs(print(g), "test.kg").at(0));
  EXPECT_EQ(to_string(semantic_hash(again)), to_string(semantic_hash(g)));
  i64 const extents[6]{2, 3, 2, 2, 1, 5}, strides[6]{-60, 0, 10, -5, 7, 1};
  guarded<f32> x(numbers(96)), y(96), host(96);
  f32* const origin = x.data() + 65; // the first element's place: 60 + 5 behind the lowest
  std::vector<f32> want;
  i64 const starts[6]{0, 1, -1, 0, 0, 2}, size[6]{2, 2, 3, 2, 1, 4};
  for (i64 n = 0; n < 96; ++n) {
    i64 rest = n, offset = 0;
    bool inside = true;
    for (int d = 5; d >= 0; --d) {
      i64 const c = starts[d] + rest % size[d];
      rest /= size[d];
      inside = inside && c >= 0 && c < extents[d];
      offset += c * strides[d];
    }
    want.push_back(inside ? origin[offset] : -1.f);
  }
  interpreter::host_argument a = interpreter::array(origin, {2, 3, 2, 2, 1, 5}, {}, x.data(), x.bytes());
  std::copy(strides, strides + 6, a.stride);
  run_clean(g, {1}, {a, y});
  std::vector<std::uint64_t> words{word(origin)};
  for (i64 e : extents) words.push_back(static_cast<std::uint64_t>(e));
  for (i64 s : strides) words.push_back(static_cast<std::uint64_t>(s));
  words.push_back(word(host.data()));
  host_kernel(again).run(words, {1});
  for (std::size_t i = 0; i < 96; ++i) {
    EXPECT_EQ(y[i], want[i]) << i;
    EXPECT_EQ(host[i], want[i]) << i;
  }
}

// -- across elements -------------------------------------------------------------------------------------------------------------

TEST(KnownFaults, RepeatedIndicesOfAtomics) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) {
    store(y + k.arange<8>(), 0.f);
    k.sync();
    atomic_add(y + cast<i32>(load(x + k.arange<6>())), 1.f);
    atomic_add(y + 3, reduce<sum>(load(x + k.arange<6>()))); // one element: added once, whatever the number of threads
  });
  EXPECT_EQ(run_everywhere<f32>(g, {0, 1, 2, 2, 1, 0}, 8), (std::vector<f32>{2, 2, 2, 6, 0, 0, 0, 0}));
}

template <int Source, int Indices>
void gathered() {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) {
    auto rows = load(x + k.arange<Source>());
    store(y + k.arange<Indices>(), gather<0>(rows, k.arange<Indices>() % Source));
    auto columns = gather<1>(reshape<1, Source>(rows), reshape<1, Indices>(k.arange<Indices>() % Source));
    store(y + Indices + k.arange<Indices>(), reshape<Indices>(columns));
  });
  auto const x = numbers(Source);
  std::vector<f32> want;
  for (std::size_t i = 0; i < 2 * Indices; ++i) want.push_back(x[i % Indices % Source]);
  EXPECT_EQ(run_everywhere(g, x, want.size()), want) << Source << " " << Indices;
}
TEST(KnownFaults, GatherOfMoreThanThereIs) {
  gathered<2, 2>();
  gathered<2, 32>();
  gathered<4, 8>();
  gathered<8, 4096>();
}

TEST(KnownFaults, TiesAndUnsignedCompares) {
  auto g = record([](context& k, ptr<const i32> x, ptr<i32> y) {
    auto equal = k.full<i32, 1024>(7);
    store(y, argmax<0>(equal));
    store(y + 1, argmin<0>(equal));
    auto v = load(x + k.arange<4>());
    store(y + 2, argmax<0>(v));
    store(y + 3, argmax<0>(bitcast<u32>(load(x + 4 + k.arange<2>()))));
    auto square = join(v, v); // 4 x 2: the same along the last axis
    store(y + 4 + k.arange<4>(), argmax<1>(square));
    store(y + 8 + k.arange<2>(), argmin<0>(square));
  });
  i32 const least = std::numeric_limits<i32>::min();
  EXPECT_EQ(run_everywhere<i32>(g, {3, 9, 9, 1, 1, least}, 10), (std::vector<i32>{0, 0, 1, 1, 0, 0, 0, 0, 3, 3}));
}

// -- what loops carry -------------------------------------------------------------------------------------------------------------

// Facts about a var that a loop changes must allow for every trip.
TEST(KnownFaults, RangesOfWhatLoopsCarry) {
  auto g = record([](context& k, ptr<const i32> x, ptr<i32> y, kiln::val<i32> n) {
    auto m = load(x);
    auto s = k.var(k.let(3));
    for (auto a : k.range(0, n)) {
      (void)a;
      for (auto b : k.range(0, m)) {
        (void)b;
        s += 7;
      }
    }
    store(y, where(k.let(s) > 500, k.full<i32>(1), 0));
    k.when(s > 500, [&] { store(y + 1, s); }, [&] { store(y + 1, -s.read()); });
  });
  for (int n : {0, 1, 8, 10, 100})
    for (int m : {0, 1, 8, 10, 100}) {
      i32 const s = 3 + 7 * n * m;
      EXPECT_EQ(run_everywhere<i32>(g, {m}, 2, n), (std::vector<i32>{s > 500, s > 500 ? s : -s})) << n << " " << m;
    }
}

TEST(KnownFaults, NarrowTypesStayNarrowInLoops) {
  auto g = record([](context& k, ptr<const f16> x, ptr<f16> y, kiln::val<i32> n) {
    auto sum = k.var(k.full<f16>(0)), late = k.var(k.full<f16>(0));
    for (auto i : k.range(0, n)) {
      (void)i;
      sum = cast<f16>(cast<f32>(sum) + cast<f32>(load(x)));
      late = late * 2 + sum; // matters from the second trip on
    }
    store(y, sum);
    store(y + 1, late);
  });
  auto const y = run_everywhere<f16>(g, {f16(1.f)}, 2, 32);
  EXPECT_EQ(static_cast<f32>(y[0]), 32.f);
  f16 late(0.f);
  for (int i = 1; i <= 32; ++i) late = f16(static_cast<f32>(f16(static_cast<f32>(late) * 2)) + static_cast<f32>(i));
  EXPECT_EQ(static_cast<f32>(y[1]), static_cast<f32>(late));
}

// -- identity ----------------------------------------------------------------------------------------------------------------------

// Kernels of one name in one scope, launched in turns: each is itself, in memory and on disk.
TEST(KnownFaults, KernelsOfOneNameInOneScope) {
  constexpr auto plus = kernel<"step">([](context& k, ptr<const f32> x, ptr<f32> y) { store(y + k.arange<8>(), load(x + k.arange<8>()) + 1); });
  constexpr auto more = kernel<"step">([](context& k, ptr<const f32> x, ptr<f32> y) { store(y + k.arange<8>(), load(x + k.arange<8>()) + 2); });
  constexpr auto minus = kernel<"step">([](context& k, ptr<const f32> x, ptr<f32> y) { store(y + k.arange<8>(), load(x + k.arange<8>()) - 1); });
  device const d = device::host();
  auto const in = ones(8);
  buffer<f32> x(d, in), y(d, 8);
  for (int turn = 0; turn < 3; ++turn) {
    plus.launch(d, grid(1), x, y);
    EXPECT_EQ(y.to_vector(), std::vector<f32>(8, 2.f));
    more.launch(d, grid(1), x, y);
    EXPECT_EQ(y.to_vector(), std::vector<f32>(8, 3.f));
    minus.launch(d, grid(1), x, y);
    EXPECT_EQ(y.to_vector(), std::vector<f32>(8, 0.f));
  }
}

} // namespace
