// Rounding divisions of plain integers agree with those of kernels.
#include "kiln/dtype/integer_math.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "kiln/dtype/scalar_ops.hpp"

using namespace kiln;

TEST(integer_math, agrees_with_the_kernels_operations_on_all_bytes) {
  for (int a = -128; a < 128; ++a)
    for (int b = -128; b < 128; ++b) {
      auto x = static_cast<i8>(a), y = static_cast<i8>(b);
      ASSERT_EQ(scalar_of(static_cast<i8>(ceil_div(x, y))), scalar_ops::ceil_div(scalar_of(x), scalar_of(y)))
          << a << " / " << b;
      ASSERT_EQ(scalar_of(static_cast<i8>(floor_div(x, y))), scalar_ops::floor_div(scalar_of(x), scalar_of(y)));
      auto u = static_cast<u8>(a), v = static_cast<u8>(b);
      ASSERT_EQ(scalar_of(static_cast<u8>(ceil_div(u, v))), scalar_ops::ceil_div(scalar_of(u), scalar_of(v)));
      ASSERT_EQ(scalar_of(static_cast<u8>(floor_div(u, v))), scalar_ops::floor_div(scalar_of(u), scalar_of(v)));
    }
}

TEST(integer_math, named_cases) {
  static_assert(ceil_div(24, 10) == 3 && ceil_div(0, 1024) == 0 && ceil_div(-36, 5) == -7 && floor_div(-7, 3) == -3);
  static_assert(ceil_div(2147483647, 10) == 214748365);
  static_assert(ceil_div((i64{1} << 53) + 1, i64{1}) == (i64{1} << 53) + 1);
  static_assert(ceil_div(INT64_MAX, 2) == (i64{1} << 62));
  static_assert(std::is_same_v<decltype(ceil_div(i64{5}, 1024)), i64>);
  EXPECT_EQ(ceil_div(INT32_MIN, -1), INT32_MIN) << "wraps, as in a kernel";
}
