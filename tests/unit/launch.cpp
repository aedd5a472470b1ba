// Launches on the host: argument facts, results, errors, asserts, in-place calls, many threads.
#include <kiln/kiln.hpp>
#include <kiln/dsl/buffer.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <random>
#include <string>
#include <thread>

using namespace kiln;

namespace {

template <int Block>
inline constexpr auto add_vectors = kernel<"add", Block>(
    [](context& k, ptr<const f32> x, ptr<const f32> y, ptr<f32> z, val<i64> n) {
      auto i = k.program_id<i64>(0) * Block + k.arange<Block>();
      auto in = i < n;
      store(z + i, load(x + i, {.mask = in}) + load(y + i, {.mask = in}), {.mask = in});
    },
    [](i64 n) { return grid(ceil_div(n, i64{Block})); });

inline constexpr auto matched = kernel<"matched">([](context& k, ptr<f32> x) {
  auto A = k.match_buffer(x, {4, 4}, {.align = 32});
  A(1, 2) = A(1, 2) + 1.f;
});

template <int Block>
inline constexpr auto softmax_long = kernel<"softmax_long", attributes{.num_warps = 8}, Block>([](context& k, array<const f32, 2> x, array<f32, 2> y) {
  auto row = k.program_id(0);
  auto top = k.var(k.full<f32>(-inf)), sum_e = k.var(k.full<f32>(0));
  for (auto c : k.range(0, x.extent(1), Block)) {
    auto v = load(x.region(at(row, c), extent<1, Block>), {.other = -inf});
    auto m = max(top, reduce<max>(v));
    sum_e = sum_e * exp(top - m) + reduce<sum>(exp(v - m));
    top = m;
  }
  for (auto c : k.range(0, x.extent(1), Block)) {
    auto v = load(x.region(at(row, c), extent<1, Block>));
    store(y.region(at(row, c), extent<1, Block>), exp(v - top) / sum_e);
  }
});

inline constexpr auto scale = kernel<"scale">([](context& k, ptr<f32> x, val<i32> n, val<f32> factor, val<bool> negate) {
  auto i = k.program_id(0) * 64 + k.arange<64>();
  auto v = load(x + i, {.mask = i < n}) * factor;
  store(x + i, where(negate, -v, v), {.mask = i < n});
});

inline constexpr auto positive = kernel<"positive">([](context& k, ptr<const i32> x) {
  auto v = load(x + k.program_id(0) * 16 + k.arange<16>());
  k.device_assert(v > 0, "all must be positive");
});

std::vector<f32> numbers(i64 n, unsigned seed) {
  std::mt19937 r(seed);
  std::uniform_real_distribution<f32> u(-1, 1);
  std::vector<f32> v(static_cast<std::size_t>(n));
  for (f32& x : v) x = u(r);
  return v;
}

TEST(launch, adds_vectors_of_any_length) {
  device dev = device::host();
  for (i64 n : {1, 15, 16, 1023, 1024, 1025, 100000}) {
    auto a = numbers(n, 1), b = numbers(n, 2);
    buffer<f32> x(dev, a), y(dev, b), z(dev, n);
    z.fill(std::nanf(""));
    add_vectors<1024>.launch(dev, add_vectors<1024>.grid(n), x, y, z, n);
    auto c = z.to_vector();
    for (std::size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], a[i] + b[i]) << n << " " << i;
    z.fill(std::nanf(""));
    add_vectors<1024>.launch(dev, add_vectors<1024>.grid(n), x, y, z, constant(n));
    EXPECT_EQ(z.to_vector(), c);
    // Raw pointers, an argument that nothing is specialised on, and in place.
    add_vectors<1024>.launch(dev, add_vectors<1024>.grid(n), x.data(), device_ptr(y.data()), x, generic(n));
    EXPECT_EQ(x.to_vector(), c);
  }
}

TEST(launch, normalises_rows) {
  device dev = device::host();
  for (i64 columns : {1, 100, 512, 700, 2048}) {
    i64 rows = 7;
    auto a = numbers(rows * columns, 3);
    buffer<f32> x(dev, a), y(dev, rows * columns);
    y.fill(std::nanf(""));
    softmax_long<512>.launch(dev, grid(rows), x.view(rows, columns), y.view(rows, columns));
    auto b = y.to_vector();
    for (i64 r = 0; r < rows; ++r) {
      double top = -INFINITY, sum = 0;
      for (i64 c = 0; c < columns; ++c) top = std::max(top, double(a[std::size_t(r * columns + c)]));
      for (i64 c = 0; c < columns; ++c) sum += std::exp(a[std::size_t(r * columns + c)] - top);
      for (i64 c = 0; c < columns; ++c) {
        std::size_t i = std::size_t(r * columns + c);
        ASSERT_NEAR(b[i], std::exp(a[i] - top) / sum, 1e-6) << columns << " " << r << " " << c;
      }
    }
  }
}

TEST(launch, takes_values_of_every_kind) {
  device dev = device::host();
  auto a = numbers(100, 4);
  buffer<f32> x(dev, a);
  scale.launch(dev, grid(2), x, 100, 2, true);
  auto b = x.to_vector();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(b[i], -2 * a[i]);
}

// A kernel that says so takes the grid of the device: every element is written whatever that is.
TEST(launch, persistent_kernels_need_no_grid) {
  static constexpr auto fill = kernel<"fill_all", attributes{.persistent = true}>([](context& k, ptr<i32> x, val<i32> n) {
    for (auto tile : k.range(k.program_id(0), ceil_div(n, 64), k.num_programs(0))) {
      auto i = tile * 64 + k.arange<64>();
      store(x + i, k.num_programs(0), {.mask = i < n});
    }
  });
  device dev = device::host();
  buffer<i32> x(dev, std::vector<i32>(1000, -1));
  fill.launch(dev, x, 1000);
  for (i32 v : x.to_vector()) EXPECT_EQ(v, dev.multiprocessors());
  fill.launch(dev, grid(3), x, 1000);
  for (i32 v : x.to_vector()) EXPECT_EQ(v, 3);
}

// Once, with the line, and only when the sizes of a launch make it happen.
TEST(launch, warns_of_32_bit_products_in_addresses) {
  static constexpr auto row_sums = kernel<"row_starts">([](context& k, ptr<const f32> x, ptr<f32> y, val<i32> pitch, val<i32> n) {
    auto row = k.program_id(0);
    store(y + row * 0, load(x + row * pitch, {.mask = row < n}));
  });
  device dev = device::host();
  buffer<f32> x(dev, 64), y(dev, 1);
  auto warning = [&](auto&& f) {
    testing::internal::CaptureStderr();
    f();
    return testing::internal::GetCapturedStderr();
  };
  // No row is read: n is 0.
  EXPECT_EQ(warning([&] { row_sums.launch(dev, grid(50), x, y, 1000, 0); }), "");
  row_sums.prepare(dev, x, y, constant(1 << 24), 0);
  std::string const text = warning([&] { row_sums.launch(dev, grid(200), x, y, constant(1 << 24), 0); });
  EXPECT_NE(text.find("kiln: warning: kernel 'row_starts' ("), std::string::npos) << text;
  EXPECT_NE(text.find("launch.cpp:"), std::string::npos) << text;
  EXPECT_NE(text.find("a product in an address reaches 3338665984 in this launch, which i32 does not hold; cast<i64>(...) one of its operands"), std::string::npos) << text;
  EXPECT_EQ(warning([&] { row_sums.launch(dev, grid(200), x, y, constant(1 << 25), 0); }), "") << "a kernel is warned of once";
}

TEST(launch, refuses_what_cannot_be) {
  device dev = device::host();
  buffer<f32> x(dev, 64);
  auto message = [](auto&& f) {
    try {
      f();
    } catch (error const& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  auto says = [](std::string const& text, char const* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(says(message([&] { scale.launch(dev, grid(-1), x, 1, 1.f, false); }), "grid axis x is -1"));
  EXPECT_TRUE(says(message([&] { scale.launch(dev, grid(1, 70000), x, 1, 1.f, false); }), "grid axis y is 70000; valid are 0..65535"));
  EXPECT_TRUE(says(message([&] { scale.launch(dev, grid(1), static_cast<f32*>(nullptr), 1, 1.f, false); }), "argument 0 (ptr<f32>): null pointer"));
  EXPECT_TRUE(says(message([&] { scale.launch(dev, grid(1), x, i64{1} << 40, 1.f, false); }), "argument 1 (val<i32>): the number does not fit"));
  auto* odd = reinterpret_cast<f32*>(reinterpret_cast<char*>(x.data()) + 2);
  EXPECT_TRUE(says(message([&] { scale.launch(dev, grid(1), odd, 1, 1.f, false); }), "not a multiple of the element's 4 bytes"));
  auto* shifted = reinterpret_cast<f32*>((reinterpret_cast<std::uintptr_t>(x.data()) + 31) / 32 * 32) + 4; // 16 bytes off
  EXPECT_TRUE(says(message([&] { matched.launch(dev, grid(1), shifted); }), "kernel 'matched', argument 0 (ptr<f32>): the address is not a multiple of 32 bytes, as the kernel promises"));
  EXPECT_EQ(message([&] { matched.launch(dev, grid(1), shifted + 4); }), "no error");
  scale.launch(dev, grid(0), static_cast<f32*>(nullptr), 1, 1.f, false); // an empty grid is a launch of nothing
}

TEST(launch, a_failed_assert_is_thrown_where_the_stream_is_waited_for) {
  device dev = device::host();
  std::vector<i32> v(64, 1);
  buffer<i32> x(dev, v);
  positive.launch(dev, grid(4), x);
  dev.synchronize();
  v[40] = -1;
  x.copy_from(v);
  positive.launch(dev, grid(4), x);
  try {
    dev.synchronize();
    FAIL() << "no error";
  } catch (assertion_error const& e) {
    std::string what = e.what();
    EXPECT_NE(what.find("kernel 'positive': device_assert failed: all must be positive ("), std::string::npos) << what;
    EXPECT_NE(what.find("launch.cpp:55)"), std::string::npos) << what;
  }
  dev.synchronize(); // reported once
}

TEST(launch, many_threads_share_a_cold_kernel) {
  device dev = device::host();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      i64 n = 1000 + t;
      auto a = numbers(n, unsigned(t)), b = numbers(n, unsigned(t + 100));
      buffer<f32> x(dev, a), y(dev, b), z(dev, n);
      for (int i = 0; i < 20; ++i) {
        add_vectors<256>.launch(dev, add_vectors<256>.grid(n), x, y, z, n);
        auto c = z.to_vector();
        for (std::size_t j = 0; j < c.size(); ++j) wrong += c[j] != a[j] + b[j];
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

} // namespace
