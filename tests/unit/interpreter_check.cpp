// kiln::check with the arguments that people have: vectors, spans, buffers, views, numbers.
#include <kiln/interpreter/check.hpp>
#include <kiln/kernel.hpp>
#include <kiln/runtime/buffer.hpp>
#include <kiln/runtime/grid.hpp>

#include <array>
#include <gtest/gtest.h>
#include <span>
#include <stdexcept>
#include <vector>

namespace {

using namespace kiln;

template <int Block>
inline constexpr auto add = kernel<"add", Block>([](context& k, ptr<const f32> x, ptr<const f32> y, ptr<f32> z, val<i64> n) {
  auto i = k.program_id<i64>(0) * Block + k.arange<Block>();
  auto in = i < n;
  store(z + i, load(x + i, {.mask = in}) + load(y + i, {.mask = in}), {.mask = in});
});

inline constexpr auto scale_rows = kernel<"scale_rows">([](context& k, kiln::array<const f32, 2> x, kiln::array<const f32, 1> factor, kiln::array<f32, 2> y) {
  auto row = k.program_id(0);
  auto f = load(factor.region(at(row), extent<1>));
  for (auto c : k.range(0, x.extent(1), 8)) store(y.region(at(row, c), extent<1, 8>), load(x.region(at(row, c), extent<1, 8>)) * reshape<1, 1>(f));
});

inline constexpr auto copy_through_local = kernel<"copy_through_local">([](context& k, ptr<i32> x, val<bool> wait, val<f16> h) {
  auto b = k.alloc_shared<i32, 4>({.name = "b"});
  k.async_load(x + k.arange<4>(), b);
  k.async_load_commit_group();
  k.when(wait, [&] { k.async_load_wait_group(0); });
  store(x + k.arange<4>(), k.local_load(b) + cast<i32>(h));
  k.async_load_wait_group(0);
});

TEST(Check, VectorsSpansArraysAndBuffers) {
  std::vector<f32> const x(250, 1.5f);
  std::array<f32, 250> y{};
  y.fill(2);
  std::vector<f32> z(250);
  EXPECT_TRUE(check(add<64>, grid(4), x, y, z, 250).clean());
  EXPECT_EQ(z[249], 3.5f);
  EXPECT_TRUE(check(add<64>, grid(4), std::span(x), std::span<f32 const>(y), std::span(z), z.size()).clean());

  device const host = device::host();
  buffer<f32> const a(host, x);
  buffer<f32> b(host, z), c(host, 250);
  EXPECT_TRUE(check(add<64>, grid(4), a, b, c, c.size()).clean());
  EXPECT_EQ(c.to_vector()[0], 5.f);
}

TEST(Check, FindsWhatIsWrong) {
  std::vector<f32> x(250), y(250), z(249);
  interpreter::report const r = check(add<64>, grid(4), x, y, z, 250);
  ASSERT_EQ(r.diagnostics.size(), 1u) << r.text();
  EXPECT_TRUE(r.has("R-BD10"));
  EXPECT_NE(r.text().find("parameter 2"), std::string::npos);
}

TEST(Check, Views) {
  buffer<f32> x(device::host(), 3 * 10), y(device::host(), 3 * 10);
  std::vector<f32> factor{1, 2, 3};
  for (int i = 0; i < 30; ++i) x.data()[i] = static_cast<f32>(i);
  EXPECT_TRUE(check(scale_rows, grid(3), x.view(3, 10), factor, y.view(3, 10)).clean());
  for (int i = 0; i < 30; ++i) EXPECT_EQ(y.data()[i], static_cast<f32>(i * (i / 10 + 1)));
  // Rows of the output back to front.
  EXPECT_TRUE(check(scale_rows, grid(3), x.view(3, 10), factor, strided(y.data() + 20, {3, 10}, {-10, 1})).clean());
  EXPECT_EQ(y.data()[0], 60.f);
  EXPECT_THROW(check(scale_rows, grid(3), x.view(30), factor, y.view(3, 10)), std::invalid_argument);
  EXPECT_THROW(check(scale_rows, grid(3), x, factor, y.view(3, 10)), std::invalid_argument);
}

TEST(Check, AllPoliciesFromTheSameMemory) {
  std::vector<i32> x{1, 2, 3, 4};
  EXPECT_TRUE(check(copy_through_local, grid(1), x, true, f16(10)).clean());
  EXPECT_EQ(x, (std::vector<i32>{11, 12, 13, 14})); // once, not three times
  interpreter::report const r = check(copy_through_local, grid(1), x, false, f16(10));
  ASSERT_EQ(r.diagnostics.size(), 1u) << r.text();
  EXPECT_TRUE(r.has("R-HZ01"));
}

TEST(Check, ArgumentsThatDoNotFit) {
  std::vector<f32> x(8), z(8);
  std::vector<f32> const constant_memory(8);
  std::vector<i32> wrong(8);
  EXPECT_THROW(check(add<64>, grid(1), x, wrong, z, 8), std::invalid_argument);
  EXPECT_THROW(check(add<64>, grid(1), x, x, constant_memory, 8), std::invalid_argument);
  EXPECT_THROW(check(add<64>, grid(1), x, x, 3, 8), std::invalid_argument);
  EXPECT_THROW(check(add<64>, grid(1), x, x, z, z), std::invalid_argument);
  EXPECT_THROW(check(copy_through_local, grid(1), wrong, true, bf16(2)), std::invalid_argument);
  EXPECT_TRUE(check(copy_through_local, grid(1), wrong, true, 2).clean()); // a number is converted, as by a launch
}

TEST(Check, Options) {
  std::vector<f32> x(64, 1e-9f), y(64, 1.f), z(64);
  EXPECT_TRUE(check({.order = interpreter::order::seeded, .seed = 4}, add<16>, grid(4), x, y, z, 64).clean());
  EXPECT_EQ(z[63], 1.f);
}

TEST(Check, ConstantAndGenericNumbers) {
  std::vector<f32> x(64, 1.f), z(64);
  EXPECT_TRUE(check(add<16>, grid(4), x, x, z, constant(64)).clean());
  i64 const n = 64;
  EXPECT_TRUE(check(add<16>, grid(4), x, x, z, generic(n)).clean());
  EXPECT_EQ(z[63], 2.f);
}

} // namespace
