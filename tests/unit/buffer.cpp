// Buffers on the host: ownership, copies both ways, fills, views and what they refuse. tests/unit/gpu_runtime.cpp has
// the same on GPUs.
#include "kiln/runtime/buffer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <span>

#include "kiln/runtime/error.hpp"
#include "src/runtime/backend.hpp"

using namespace kiln;

namespace {

std::string message_of(auto&& action) {
  try {
    action();
  } catch (error const& e) { return e.what(); }
  return "no error";
}

// Byte patterns, so that every element type is told apart from its neighbours.
template <class T> std::vector<T> pattern(std::size_t n) {
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    unsigned char bytes[sizeof(T)];
    for (std::size_t b = 0; b < sizeof(T); ++b) bytes[b] = static_cast<unsigned char>(i * 31 + b * 7);
    std::memcpy(static_cast<void*>(&values[i]), bytes, sizeof(T));
  }
  return values;
}

template <class T> bool same_bits(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class Buffer, class Range>
concept accepts = requires(Buffer b, Range r) {
  b.copy_from(r);
};

} // namespace

template <class T> class buffer_types : public testing::Test {};
using element_types = testing::Types<i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, f8e4m3, f8e5m2>;
TYPED_TEST_SUITE(buffer_types, element_types);

TYPED_TEST(buffer_types, copies_both_ways_and_fills) {
  using T = TypeParam;
  for (std::size_t n : {1u, 3u, 1000u, 700000u}) { // heap and huge pages
    auto values = pattern<T>(n);
    buffer<T> x(device::host(), values);
    EXPECT_EQ(x.size(), static_cast<i64>(n));
    EXPECT_EQ(x.size_bytes(), static_cast<i64>(n * sizeof(T)));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data()) % 256, 0u);
    EXPECT_TRUE(same_bits(x.to_vector(), values));
    buffer<T> y(device::host(), static_cast<i64>(n));
    y.copy_from(x);
    x.fill(values[n / 2]);
    EXPECT_TRUE(same_bits(x.to_vector(), std::vector<T>(n, values[n / 2])));
    EXPECT_TRUE(same_bits(y.to_vector(), values));
    std::vector<T> back(n);
    y.copy_to(back);
    EXPECT_TRUE(same_bits(back, values));
  }
}

TEST(buffer, of_bool_gives_a_vector_of_bool) {
  std::array<bool, 5> values{true, false, true, true, false};
  buffer<bool> x(device::host(), values);
  EXPECT_EQ(x.to_vector(), (std::vector<bool>{true, false, true, true, false}));
}

TEST(buffer, takes_any_contiguous_range) {
  buffer<i32> x(device::host(), 3);
  x.copy_from(std::vector<i32>{1, 2, 3});
  x.copy_from(std::array<i32, 3>{4, 5, 6});
  i32 raw[3] = {7, 8, 9};
  x.copy_from(raw);
  x.copy_from(std::span<i32 const>(raw));
  EXPECT_EQ(x.to_vector(), (std::vector<i32>{7, 8, 9}));
  static_assert(accepts<buffer<i32>, std::vector<i32>> && !accepts<buffer<i32>, std::vector<f32>>,
                "no silent conversion");
}

TEST(buffer, wrong_sizes_are_refused_with_both_numbers) {
  buffer<f32> x(device::host(), 4);
  EXPECT_EQ(message_of([&] { x.copy_from(std::vector<f32>(5)); }),
            "buffer::copy_from: the other side has 5 elements, the buffer 4");
  EXPECT_EQ(message_of([&] { x.copy_from(buffer<f32>(device::host(), 3)); }),
            "buffer::copy_from: the other side has 3 elements, the buffer 4");
  std::vector<f32> small(2);
  EXPECT_EQ(message_of([&] { x.copy_to(small); }), "buffer::copy_to: the other side has 2 elements, the buffer 4");
  EXPECT_EQ(message_of([] { buffer<f64> b(device::host(), -1); }), "buffer: -1 elements of 8 bytes cannot be had");
  EXPECT_EQ(message_of([] { buffer<f64> b(device::host(), INT64_MAX); }),
            "buffer: 9223372036854775807 elements of 8 bytes cannot be had");
  EXPECT_EQ(message_of([] { buffer<u8> b(device::host(), i64{1} << 60); }),
            "buffer: out of memory on host for 1152921504606846976 bytes");
}

TEST(buffer, moves_and_empty_handles) {
  buffer<i32> a(device::host(), std::vector<i32>{1, 2});
  i32* where = a.data();
  buffer<i32> b = std::move(a);
  EXPECT_EQ(b.data(), where);
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(a.size(), 0);
  a = std::move(b);
  EXPECT_EQ(a.to_vector(), (std::vector<i32>{1, 2}));
  static_assert(!std::is_copy_constructible_v<buffer<i32>>);
  buffer<i32> none;
  EXPECT_TRUE(none.to_vector().empty());
  EXPECT_EQ(message_of([&] { none.get_stream(); }), "buffer: an empty handle has no stream");
  buffer<i32> zero(device::host(), 0);
  zero.fill(3);
  zero.copy_from(std::vector<i32>{});
  EXPECT_TRUE(zero.to_vector().empty());
  EXPECT_EQ(zero.get_device(), device::host());
}

TEST(buffer, reading_reports_the_streams_failure) {
  auto s = stream::create(device::host());
  buffer<i32> x(s, 4);
  s.state().fail(std::make_exception_ptr(assertion_error("kernel said no")));
  EXPECT_EQ(message_of([&] { x.to_vector(); }), "kernel said no");
  EXPECT_EQ(x.to_vector().size(), 4u);
}

TEST(buffer, copies_between_streams) {
  auto s = stream::create(device::host()), t = stream::create(device::host());
  buffer<i32> x(s, std::vector<i32>{1, 2, 3}), y(t, 3);
  y.copy_from(x);
  EXPECT_EQ(y.to_vector(), (std::vector<i32>{1, 2, 3}));
}

TEST(view, is_row_major) {
  buffer<f32> x(device::host(), 24);
  auto v = x.view(2, 3, 4);
  static_assert(std::is_same_v<decltype(v), array_view<f32, 3>>);
  EXPECT_EQ(v.data, x.data());
  EXPECT_EQ(v.shape, (std::array<i64, 3>{2, 3, 4}));
  EXPECT_EQ(v.strides, (std::array<i64, 3>{12, 4, 1}));
  EXPECT_EQ(x.view(2, 12).stride(0), 12);
  auto const& read_only = x;
  static_assert(std::is_same_v<decltype(read_only.view(4, 6)), array_view<f32 const, 2>>);
  array_view<f32 const, 2> converted = x.view(4, 6);
  EXPECT_EQ(converted.extent(1), 6);
  EXPECT_EQ(x.view(0, 5).extent(0), 0);
  EXPECT_EQ(x.view(3).extent(0), 3) << "a part of the buffer is enough";
}

TEST(view, leaving_the_buffer_is_refused) {
  buffer<f32> x(device::host(), 24);
  EXPECT_EQ(message_of([&] { x.view(5, 5); }),
            "buffer::view: extents {5, 5} with strides {5, 1} touch elements 0 to 24, the buffer has 24");
  EXPECT_EQ(message_of([&] { x.view(-1, 5); }), "buffer::view: extent 0 of {-1, 5} is negative");
  i64 huge = i64{1} << 40;
  EXPECT_NE(message_of([&] { x.view(huge, huge, huge); }).find("reach beyond 64-bit offsets"), std::string::npos);
}

TEST(view, strided_views_are_checked_against_the_buffer) {
  buffer<i16> x(device::host(), 20);
  auto columns = strided(x, {4, 5}, {1, 4}); // column-major
  static_assert(std::is_same_v<decltype(columns), array_view<i16, 2>>);
  EXPECT_EQ(columns.strides, (std::array<i64, 2>{1, 4}));
  EXPECT_EQ(strided(x, {1000, 20}, {0, 1}).stride(0), 0) << "a repeated row";
  EXPECT_EQ(message_of([&] {
              strided(x, {4, 6}, {1, 4});
            }),
            "strided: extents {4, 6} with strides {1, 4} touch elements 0 to 23, the buffer has 20");
  EXPECT_EQ(message_of([&] {
              strided(x, {4, 5}, {-5, 1});
            }),
            "strided: extents {4, 5} with strides {-5, 1} touch elements -15 to 4, the buffer has 20");
  // Rows reversed, from a pointer into the middle: only the caller knows what is there.
  auto reversed = strided(x.data() + 15, {4, 5}, {-5, 1});
  EXPECT_EQ(reversed.data, x.data() + 15);
  EXPECT_EQ(strided(device_ptr(x.data()), {2, 2}, {i64{1} << 33, 1}).stride(0), i64{1} << 33);
  EXPECT_NE(message_of([&] {
              strided(x.data(), {i64{1} << 40, 2}, {i64{1} << 40, 1});
            }).find("beyond 64-bit offsets"),
            std::string::npos);
}

TEST(grid, is_plain_data) {
  grid g(3, 4);
  EXPECT_EQ(g.x, 3);
  EXPECT_EQ(g.y, 4);
  EXPECT_EQ(g.z, 1);
  EXPECT_EQ(grid(3, 4, 1), g);
  f32 value = 1;
  EXPECT_EQ(device_ptr<f32>::from_address(reinterpret_cast<u64>(&value)).pointer, &value);
}
