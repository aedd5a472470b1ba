// The promotion table, against the rules written a second time as prose-like code, over all pairs of types.
#include <kiln/dtype/promote.hpp>

#include <gtest/gtest.h>
#include <limits>

namespace {

using namespace kiln;

// Independent of the table: follows the sentences of docs/numerics.md one by one.
constexpr bool meets_in(dtype a, dtype b, dtype& out) {
  if (a == b) return out = a, true;
  if (is_f8(a) || is_f8(b)) return false;
  if (is_bool(a)) return out = b, true;
  if (is_bool(b)) return out = a, true;
  if (is_float(a) != is_float(b)) return out = is_float(a) ? a : b, true;
  if (is_float(a)) {
    const bool both_16 = bits_of(a) == 16 && bits_of(b) == 16;
    return out = both_16 ? dtype::f32 : bits_of(a) > bits_of(b) ? a : b, true;
  }
  if (bits_of(a) != bits_of(b)) return out = bits_of(a) > bits_of(b) ? a : b, true;
  return out = is_unsigned_int(a) ? a : b, true;
}

constexpr bool table_follows_the_rules() {
  for (int i = 0; i < dtype_count; ++i)
    for (int j = 0; j < dtype_count; ++j) {
      dtype want = dtype::b1, got = dtype::b1;
      const dtype a = static_cast<dtype>(i), b = static_cast<dtype>(j);
      if (meets_in(a, b, want) != promote(a, b, got) || want != got) return false;
    }
  return true;
}
static_assert(table_follows_the_rules());

template <class A, class B, class Result>
constexpr bool meet = std::is_same_v<promote_t<A, B>, Result>&& std::is_same_v<promote_t<B, A>, Result>;
static_assert(meet<i8, i8, i8> && meet<bool, bool, bool> && meet<f16, f16, f16> && meet<f8e4m3, f8e4m3, f8e4m3>);
static_assert(meet<i32, i64, i64> && meet<i8, u8, u8> && meet<i32, u32, u32> && meet<u8, i16, i16> &&
              meet<u32, i64, i64>);
static_assert(meet<i8, u16, u16> && meet<i64, u64, u64> && meet<u8, u64, u64> && meet<bool, i8, i8> &&
              meet<bool, f64, f64>);
static_assert(meet<i64, f16, f16> && meet<u64, bf16, bf16> && meet<i8, f32, f32> && meet<u16, f64, f64>);
static_assert(meet<f16, bf16, f32> && meet<f16, f32, f32> && meet<bf16, f32, f32> && meet<f32, f64, f64> &&
              meet<bf16, f64, f64>);

static_assert(promotable<i32, f16> && promotable<f8e5m2, f8e5m2>);
static_assert(!promotable<f8e4m3, f8e5m2> && !promotable<f8e4m3, f32> && !promotable<f8e5m2, i8> &&
              !promotable<bool, f8e4m3>);
static_assert(!promotable<int, long long> && !promotable<void, int>); // not element types: false, not an error
static_assert(arithmetic_promotable<bool, i8> && !arithmetic_promotable<bool, bool> &&
              !arithmetic_promotable<f8e4m3, f8e4m3>);

// Literals: bool < integers < floats; a literal never changes the other operand's type.
static_assert(std::is_same_v<weak_promote_t<f16, int>, f16> && std::is_same_v<weak_promote_t<i8, long long>, i8>);
static_assert(std::is_same_v<weak_promote_t<bf16, double>, bf16> && std::is_same_v<weak_promote_t<f64, float>, f64>);
static_assert(std::is_same_v<weak_promote_t<u32, bool>, u32> && std::is_same_v<weak_promote_t<bool, bool>, bool>);
static_assert(!weak_promotable<i32, double> && !weak_promotable<u8, float> && !weak_promotable<bool, int>);
static_assert(!weak_promotable<f8e4m3, float> && !weak_promotable<f32, f16> && !weak_promotable<f32, long double>);

static_assert(literal_fits(dtype::i8, 127) && !literal_fits(dtype::i8, 128) && literal_fits(dtype::i8, -128) &&
              !literal_fits(dtype::i8, -129));
static_assert(literal_fits(dtype::u8, 255) && !literal_fits(dtype::u8, 256) && !literal_fits(dtype::u8, -1));
static_assert(literal_fits(dtype::i32, 0x7fffffffu) && !literal_fits(dtype::i32, 0x80000000u) &&
              literal_fits(dtype::u32, 0xffffffffu));
static_assert(literal_fits(dtype::u64, ~0ull) && !literal_fits(dtype::i64, ~0ull) &&
              literal_fits(dtype::i64, std::numeric_limits<i64>::min()));
static_assert(literal_fits(dtype::b1, true) && literal_fits(dtype::i8, true) && literal_fits(dtype::f32, true));
static_assert(literal_fits(dtype::f16, 65519) && !literal_fits(dtype::f16, 65520) && !literal_fits(dtype::f16, -1e10) &&
              literal_fits(dtype::f16, 0.1));
static_assert(literal_fits(dtype::f32, 16777217) && literal_fits(dtype::bf16, ~0ull) &&
              !literal_fits(dtype::f32, 1e39));
static_assert(literal_fits(dtype::f16, std::numeric_limits<f64>::infinity()) &&
              literal_fits(dtype::f16, std::numeric_limits<f32>::quiet_NaN()));
static_assert(literal_fits(dtype::f8e4m3, 448.0) && !literal_fits(dtype::f8e4m3, 480.0) &&
              !literal_fits(dtype::f8e5m2, std::numeric_limits<f64>::infinity()));

TEST(Promote, TellsTheToolsTheSame) {
  dtype out = dtype::u8;
  EXPECT_TRUE(promote(dtype::f16, dtype::bf16, out));
  EXPECT_EQ(out, dtype::f32);
  EXPECT_FALSE(promote(dtype::f8e4m3, dtype::f32, out));
  EXPECT_EQ(out, dtype::f32); // untouched
}

} // namespace
