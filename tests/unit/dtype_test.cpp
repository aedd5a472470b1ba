// What is known about each dtype: names, widths, kinds, host types, concepts. The facts are compile-time facts.
#include <kiln/dtype/dtype.hpp>

#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace {

using namespace kiln;

// Text graphs and hashes store these numbers.
static_assert(static_cast<int>(dtype::b1) == 0 && static_cast<int>(dtype::i8) == 1 &&
              static_cast<int>(dtype::i64) == 4 && static_cast<int>(dtype::u8) == 5 &&
              static_cast<int>(dtype::u64) == 8 && static_cast<int>(dtype::f16) == 9 &&
              static_cast<int>(dtype::bf16) == 10 && static_cast<int>(dtype::f64) == 12 &&
              static_cast<int>(dtype::f8e5m2) == 14);
static_assert(dtype_count == static_cast<int>(dtype::f8e5m2) + 1);

static_assert(bits_of(dtype::b1) == 1 && storage_bits_of(dtype::b1) == 8 && bytes_of(dtype::b1, 5) == 5);
static_assert(bits_of(dtype::bf16) == 16 && bytes_of(dtype::f64) == 8 && bytes_of(dtype::f8e4m3, 3) == 3);
static_assert(bytes_of(dtype::i32, i64{1} << 31) == i64{1} << 33);
static_assert(size_of<bool> == 1 && size_of<f16> == 2 && size_of<const f32> == 4);

static_assert(is_bool(dtype::b1) && !is_int(dtype::b1) && !is_float(dtype::b1) && !is_arithmetic(dtype::b1));
static_assert(is_int(dtype::u8) && is_unsigned_int(dtype::u8) && !is_signed(dtype::u8) && is_arithmetic(dtype::u8));
static_assert(is_int(dtype::i64) && is_signed_int(dtype::i64) && is_signed(dtype::i64));
static_assert(is_float(dtype::bf16) && is_signed(dtype::bf16) && !is_signed_int(dtype::bf16) &&
              is_arithmetic(dtype::bf16));
static_assert(is_f8(dtype::f8e5m2) && is_float(dtype::f8e5m2) && !is_arithmetic(dtype::f8e5m2) && !is_f8(dtype::f16));
static_assert(has_infinity(dtype::f8e5m2) && !has_infinity(dtype::f8e4m3) && !has_infinity(dtype::i32));

template <dtype D> constexpr bool round_trips = dtype_of<host_type<D>> == D&& element<host_type<D>>;
static_assert(round_trips<dtype::b1> && round_trips<dtype::i8> && round_trips<dtype::i16> && round_trips<dtype::i32> &&
              round_trips<dtype::i64> && round_trips<dtype::u8> && round_trips<dtype::u16> && round_trips<dtype::u32> &&
              round_trips<dtype::u64> && round_trips<dtype::f16> && round_trips<dtype::bf16> &&
              round_trips<dtype::f32> && round_trips<dtype::f64> && round_trips<dtype::f8e4m3> &&
              round_trips<dtype::f8e5m2>);
static_assert(std::is_same_v<host_type<dtype::b1>, bool> && std::is_same_v<f32, float> && std::is_same_v<i32, int>);

struct handle {
  using element_type = const bf16;
};
static_assert(dtype_of<handle> == dtype::bf16 && dtype_of<const handle> == dtype::bf16 && size_of<handle> == 2);
static_assert(!element<handle> && !element<const f32> && !element<f32&> && !element<char> && !element<void*>);
static_assert(integer_element<u64> && !integer_element<bool> && float_element<f8e4m3> && !arithmetic_element<f8e4m3>);
static_assert(std::string_view(fp8_format<f8e4m3>) == "e4m3" && std::string_view(fp8_format<f8e5m2>) == "e5m2");

TEST(Dtype, NamesParseBack) {
  for (int i = 0; i < dtype_count; ++i) {
    const dtype t = static_cast<dtype>(i);
    dtype parsed = t == dtype::b1 ? dtype::f64 : dtype::b1;
    EXPECT_TRUE(parse_dtype(std::string_view(name_of(t)), parsed)) << name_of(t);
    EXPECT_EQ(parsed, t);
    for (const std::string& wrong :
         {std::string(name_of(t)) + "x", std::string(name_of(t)).substr(0, std::string(name_of(t)).size() - 1),
          " " + std::string(name_of(t))}) {
      dtype untouched = dtype::u16;
      EXPECT_FALSE(parse_dtype(wrong, untouched)) << wrong;
      EXPECT_EQ(untouched, dtype::u16);
    }
  }
  dtype untouched = dtype::u16;
  EXPECT_FALSE(parse_dtype(std::string_view(), untouched));
  EXPECT_FALSE(parse_dtype(std::string_view("f8"), untouched)); // a prefix of two names
  EXPECT_FALSE(parse_dtype(std::string_view("f16\0", 4), untouched));
}

TEST(Dtype, HostTypesHaveTheirWidth) {
  EXPECT_EQ(size_of<bool>, static_cast<i64>(sizeof(bool)));
  EXPECT_EQ(size_of<i16>, static_cast<i64>(sizeof(i16)));
  EXPECT_EQ(size_of<f64>, static_cast<i64>(sizeof(f64)));
}

} // namespace
