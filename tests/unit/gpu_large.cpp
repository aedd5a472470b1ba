// Tensors of three billion elements on a real GPU: offsets that no 32 bits hold, through pointers, arrays and indices. Skipped
// with a reason where there is no GPU or not enough memory.
#include <kiln/kiln.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

using namespace kiln;

namespace {

constexpr i64 rows = 60'000, columns = 50'000, elements = rows * columns; // of two bytes
constexpr int block = 2048;

/// Elements that lie 2^31 or 2^32 apart, in elements or bytes, differ.
constexpr auto value_at(auto const& i) {
  auto h = cast<u32>(i) * 2654435761u + cast<u32>(i >> 31) * 40503u * 65536u;
  return cast<u16>(h >> 16u);
}
u16 host_value_at(i64 i) {
  u32 const h = static_cast<u32>(i) * 2654435761u + static_cast<u32>(i >> 31) * (40503u * 65536u);
  return static_cast<u16>(h >> 16);
}

inline constexpr auto number = kernel<"number">([](context& k, ptr<u16> x, val<i64> n) {
  auto i = k.program_id<i64>(0) * block + k.arange<block>();
  store(x + i, value_at(i), {.mask = i < n});
});
inline constexpr auto count_wrong = kernel<"count_wrong">([](context& k, ptr<const u16> x, ptr<i32> wrong, val<i64> n) {
  auto i = k.program_id<i64>(0) * block + k.arange<block>();
  auto in = i < n;
  atomic_add(wrong + k.arange<1>(), reduce<sum>(cast<i32>((load(x + i, {.mask = in}) != value_at(i)) & in)));
});
// The same through an array: row and column are small, their offset is not.
inline constexpr auto count_wrong_in_boxes = kernel<"count_wrong_in_boxes">([](context& k, array<const u16, 2> x, ptr<i32> wrong) {
  auto r = k.program_id<i64>(1) * 16, c = k.program_id<i64>(0) * 256;
  auto at_row = expand_dims<1>(r + k.arange<16>());
  auto at_column = expand_dims<0>(c + k.arange<256>());
  auto in = (at_row < x.extent(0)) & (at_column < x.extent(1));
  auto got = load(x.region(at(r, c), extent<16, 256>));
  atomic_add(wrong + k.arange<1>(), reduce<sum>(cast<i32>((got != value_at(at_row * columns + at_column)) & in)));
});
inline constexpr auto write_box = kernel<"write_box">([](context& k, array<u16, 2> x, val<i64> row, val<i64> column) {
  store(x.region(at(row, column), extent<4, 64>), k.zeros<u16, 4, 64>() + u16{7});
});
inline constexpr auto take = kernel<"take">([](context& k, ptr<const u16> x, ptr<const i64> index, ptr<u16> y) {
  auto i = k.arange<64>();
  k.prefetch(x + load(index + i));
  store(y + i, load(x + load(index + i)));
});

class gpu_large : public testing::Test {
protected:
  void SetUp() override {
    for (auto const& d : device::all())
      if (!d.is_host()) gpus.push_back(d);
    if (gpus.empty()) GTEST_SKIP() << "no GPU here";
    i64 const free = gpus[0].free_bytes();
    if (free < elements * 2 + (i64{512} << 20)) GTEST_SKIP() << gpus[0].name() << " has " << (free >> 20) << " MiB free; the tensor takes " << (elements * 2 >> 20);
  }
  std::vector<device> gpus;
};

} // namespace

TEST_F(gpu_large, ThreeBillionElements) {
  stream const s = stream::create(gpus[0]);
  buffer<u16> x(s, elements);
  buffer<i32> wrong(s, 1);
  wrong.fill(0);
  number.launch(s, grid(ceil_div(elements, i64{block})), x, elements);

  count_wrong.launch(s, grid(ceil_div(elements, i64{block})), x, wrong, elements);
  EXPECT_EQ(wrong.to_vector()[0], 0) << "elements read through pointers";
  auto const all = x.view(rows, columns);
  count_wrong_in_boxes.launch(s, grid(ceil_div(columns, i64{256}), ceil_div(rows, i64{16})), all, wrong);
  EXPECT_EQ(wrong.to_vector()[0], 0) << "elements read through an array";

  // Against values that the host computed, on both sides of every border of 31 and 32 bits.
  std::vector<i64> places;
  for (i64 border : {i64{1} << 30, i64{1} << 31, i64{1} << 31 | i64{1} << 29, elements - 8})
    for (i64 d = -8; d < 8; ++d) places.push_back(border + d);
  buffer<i64> index(s, places);
  buffer<u16> got(s, 64);
  take.launch(s, grid(1), x, index, got);
  std::vector<u16> const values = got.to_vector();
  for (std::size_t i = 0; i < places.size(); ++i) EXPECT_EQ(values[i], host_value_at(places[i])) << "element " << places[i];

  // A box that hangs over the last row and column: writes land there and nowhere else.
  write_box.launch(s, grid(1), all, rows - 2, columns - 32);
  count_wrong.launch(s, grid(ceil_div(elements, i64{block})), x, wrong, elements);
  int expected = 0;
  for (i64 r = rows - 2; r < rows; ++r)
    for (i64 c = columns - 32; c < columns; ++c) expected += host_value_at(r * columns + c) != 7;
  EXPECT_EQ(wrong.to_vector()[0], expected);
}
