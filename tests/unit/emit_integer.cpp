// Integer helpers and min/max of jit/emit against plain C++ on wider types: every edge, random operands, every path.
#include "emit_support.hpp"

#include <type_traits>

namespace kiln::test {
namespace {

class emit_integer : public each_path {};

template <class T> T expected_divide(T x, T y) {
  if (y == 0) return static_cast<T>(~T{0});
  if (std::is_signed_v<T> && y == static_cast<T>(-1))
    return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));
  return static_cast<T>(x / y);
}
template <class T> T expected_remainder(T x, T y) {
  if (y == 0) return x;
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return 0;
  return static_cast<T>(x % y);
}
template <class T> T expected_floor(T x, T y) {
  const T q = expected_divide(x, y), r = expected_remainder(x, y);
  return static_cast<T>(static_cast<uint64_t>(q) - (std::is_signed_v<T> && r != 0 && (r < 0) != (y < 0)));
}
template <class T> T expected_ceil(T x, T y) {
  const T q = expected_divide(x, y), r = expected_remainder(x, y);
  return static_cast<T>(static_cast<uint64_t>(q) + (r != 0 && (!std::is_signed_v<T> || (r < 0) == (y < 0))));
}
template <class T> constexpr int width_of = std::numeric_limits<std::make_unsigned_t<T>>::digits;
template <class T> T expected_left(T x, T count) {
  using U = std::make_unsigned_t<T>;
  return static_cast<U>(count) >= static_cast<U>(width_of<T>) ? T{0} : static_cast<T>(static_cast<U>(x) << count);
}
template <class T> T expected_right(T x, T count) {
  using U = std::make_unsigned_t<T>;
  if (static_cast<U>(count) >= static_cast<U>(width_of<T>))
    return std::is_signed_v<T> && x < 0 ? static_cast<T>(-1) : T{0};
  return static_cast<T>(x >> count);
}

template <class T> void fill(std::vector<T>& a, std::vector<T>& b) {
  if constexpr (sizeof(T) == 1) { // all pairs
    for (int i = 0; i < 256; ++i)
      for (int j = 0; j < 256; ++j) a.push_back(static_cast<T>(i)), b.push_back(static_cast<T>(j));
    return;
  }
  std::vector<T> edges;
  for (T base : {std::numeric_limits<T>::min(), T{0}, std::numeric_limits<T>::max(), static_cast<T>(width_of<T>),
                 static_cast<T>(std::numeric_limits<T>::max() / 2)})
    for (int d = -3; d <= 3; ++d)
      edges.push_back(static_cast<T>(static_cast<uint64_t>(base) + static_cast<uint64_t>(d)));
  for (T x : edges)
    for (T y : edges) a.push_back(x), b.push_back(y);
  splitmix random{seed()};
  for (int i = 0; i < 100000; ++i) {
    const T y = static_cast<T>(random() >> (random() % width_of<T>)),
            q = static_cast<T>(random() >> (random() % width_of<T>));
    const auto near = static_cast<uint64_t>(y) * static_cast<uint64_t>(q) + random() % 3 - 1; // next to exact multiples
    a.push_back(static_cast<T>(i % 2 ? near : random() >> (random() % width_of<T>))), b.push_back(y);
  }
}

template <class T> struct operation {
  const char* name;
  T (*expected)(T, T);
};

template <class T> void check_all(emit::probe& probe, dtype type, const std::vector<unsigned>& widths) {
  const operation<T> all[] = {
      {"divide", expected_divide<T>},
      {"remainder", expected_remainder<T>},
      {"floor_divide", expected_floor<T>},
      {"ceil_divide", expected_ceil<T>},
      {"shift_left", expected_left<T>},
      {"shift_right", expected_right<T>},
      {"divide_by_7", [](T x, T) { return static_cast<T>(x / 7); }},
      {"divide_by_0", [](T, T) { return static_cast<T>(~T{0}); }},
      {"remainder_by_minus_1", [](T x, T) { return expected_remainder<T>(x, static_cast<T>(~T{0})); }},
      {"min", [](T x, T y) { return std::min(x, y); }},
      {"max", [](T x, T y) { return std::max(x, y); }},
      {"absolute",
       [](T x, T) { return static_cast<T>(std::is_signed_v<T> && x < 0 ? 0 - static_cast<uint64_t>(x) : x); }},
  };
  std::vector<T> a, b;
  fill(a, b);
  for (const auto& op : all) {
    if (!std::is_signed_v<T> && std::string(op.name) == "absolute") continue;
    for (unsigned lanes : widths) {
      const auto out = apply<T>(probe.compile(op.name, type, lanes), lanes, a, b);
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_EQ(+out[i], +op.expected(a[i], b[i]))
            << op.name << " " << name_of(type) << ": " << +a[i] << ", " << +b[i] << ", lanes " << lanes;
    }
  }
}

TEST_P(emit_integer, defined_everywhere) {
  check_all<int8_t>(*probe_, dtype::i8, widths(dtype::i8));
  check_all<int16_t>(*probe_, dtype::i16, widths(dtype::i16));
  check_all<int32_t>(*probe_, dtype::i32, widths(dtype::i32));
  check_all<int64_t>(*probe_, dtype::i64, widths(dtype::i64));
  check_all<uint8_t>(*probe_, dtype::u8, widths(dtype::u8));
  check_all<uint16_t>(*probe_, dtype::u16, widths(dtype::u16));
  check_all<uint32_t>(*probe_, dtype::u32, widths(dtype::u32));
  check_all<uint64_t>(*probe_, dtype::u64, widths(dtype::u64));
}

template <class T> void check_extrema(emit::probe& probe, dtype type, const std::vector<unsigned>& widths) {
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  std::vector<T> a, b;
  for (T x : {T(1), T(-2), T(0), T(-0.0), inf, -inf, nan, std::numeric_limits<T>::denorm_min()})
    for (T y : {T(1), T(-2), T(0), T(-0.0), inf, -inf, nan, std::numeric_limits<T>::denorm_min()})
      a.push_back(x), b.push_back(y);
  for (const std::string name : {"min", "max", "min_propagate", "max_propagate", "accumulate_max"})
    for (unsigned lanes : widths) {
      const auto out = apply<T>(probe.compile(name, type, lanes), lanes, a, b);
      for (size_t i = 0; i < a.size(); ++i) {
        const bool propagate = name.ends_with("propagate"), lower = name.starts_with("min");
        if (name == "accumulate_max" && std::isnan(b[i])) continue; // an accumulator is never NaN
        if (std::isnan(a[i]) || std::isnan(b[i])) {
          const T expected = propagate ? nan : std::isnan(a[i]) ? b[i] : a[i];
          ASSERT_TRUE(std::isnan(expected) ? std::isnan(out[i]) : out[i] == expected)
              << name << " of " << a[i] << ", " << b[i];
        } else {
          ASSERT_EQ(out[i], lower ? std::min(a[i], b[i]) : std::max(a[i], b[i])) << name;
        }
      }
    }
}

TEST_P(emit_integer, extrema_of_floats_follow_their_nan_rule) {
  check_extrema<float>(*probe_, dtype::f32, widths(dtype::f32));
  check_extrema<double>(*probe_, dtype::f64, widths(dtype::f64));
}

INSTANTIATE_TEST_SUITE_P(paths, emit_integer, testing::ValuesIn(paths()), path_name);

} // namespace
} // namespace kiln::test
