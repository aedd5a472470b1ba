// Element types: the `dtype` enumeration, what is known about each of its members, and the map between a dtype and the
// C++ type that holds it. Everything else in kiln includes this file, so it includes next to nothing itself.
#pragma once

#include <cstdint>
#include <type_traits>

namespace kiln {

// Element types are spelled the same in a kernel and in host code. `bool` is the host type of b1.
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using f32 = float;
using f64 = double;
struct f16;    // float16.hpp
struct bf16;   // float16.hpp
struct f8e4m3; // float8.hpp
struct f8e5m2; // float8.hpp

static_assert(sizeof(f32) == 4 && sizeof(f64) == 8 && sizeof(bool) == 1);

/// The type of one element. The order is fixed: it is part of the text form and of graph hashes.
enum class dtype : u8 { b1, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, f8e4m3, f8e5m2 };

inline constexpr int dtype_count = 15;

/// What min and max do with a NaN operand: ignore it (the number wins, NaN only from NaNs alone), or give NaN.
enum class nan_mode : u8 { ignore, propagate };

/// What sort of number a dtype is.
enum class dtype_kind : u8 { boolean, signed_int, unsigned_int, floating };

namespace detail {

struct dtype_info {
  char name[7];
  u8 bits;
  dtype_kind kind;
  // Floating types only; the sign bit is not counted.
  u8 exponent_bits;
  u8 mantissa_bits;
};

// Indexed by dtype.
inline constexpr dtype_info dtype_table[dtype_count] = {
    {"b1", 1, dtype_kind::boolean, 0, 0},        {"i8", 8, dtype_kind::signed_int, 0, 0},
    {"i16", 16, dtype_kind::signed_int, 0, 0},   {"i32", 32, dtype_kind::signed_int, 0, 0},
    {"i64", 64, dtype_kind::signed_int, 0, 0},   {"u8", 8, dtype_kind::unsigned_int, 0, 0},
    {"u16", 16, dtype_kind::unsigned_int, 0, 0}, {"u32", 32, dtype_kind::unsigned_int, 0, 0},
    {"u64", 64, dtype_kind::unsigned_int, 0, 0}, {"f16", 16, dtype_kind::floating, 5, 10},
    {"bf16", 16, dtype_kind::floating, 8, 7},    {"f32", 32, dtype_kind::floating, 8, 23},
    {"f64", 64, dtype_kind::floating, 11, 52},   {"f8e4m3", 8, dtype_kind::floating, 4, 3},
    {"f8e5m2", 8, dtype_kind::floating, 5, 2},
};

constexpr const dtype_info& info(dtype t) { return dtype_table[static_cast<int>(t)]; }

} // namespace detail

/// The name as it stands in text graphs and messages: "b1", "i32", "f8e4m3", ... Null terminated, static storage.
constexpr const char* name_of(dtype t) { return detail::info(t).name; }

/// Width of one value in bits; 1 for b1.
constexpr int bits_of(dtype t) { return detail::info(t).bits; }

/// Width of one element in memory in bits. Differs from `bits_of` for b1 only, which occupies a byte holding 0 or 1.
constexpr int storage_bits_of(dtype t) { return t == dtype::b1 ? 8 : bits_of(t); }

/// Bytes that `n` consecutive elements occupy in memory, rounded up. Never write `n * bits / 8` by hand.
constexpr i64 bytes_of(dtype t, i64 n = 1) { return (n * storage_bits_of(t) + 7) / 8; }

constexpr dtype_kind kind_of(dtype t) { return detail::info(t).kind; }

constexpr bool is_bool(dtype t) { return t == dtype::b1; }
// By the order of dtype, not through the table: a compiler asks these thousands of times for one kernel, and pays for
// every call.
constexpr bool is_float(dtype t) { return t >= dtype::f16; }
/// Signed or unsigned integer; b1 is neither.
constexpr bool is_int(dtype t) { return t >= dtype::i8 && t <= dtype::u64; }
constexpr bool is_signed_int(dtype t) { return t >= dtype::i8 && t <= dtype::i64; }
constexpr bool is_unsigned_int(dtype t) { return t >= dtype::u8 && t <= dtype::u64; }
static_assert([] {
  for (int i = 0; i < dtype_count; ++i) {
    dtype const t = static_cast<dtype>(i);
    if (is_float(t) != (kind_of(t) == dtype_kind::floating) || is_signed_int(t) != (kind_of(t) == dtype_kind::signed_int) ||
        is_unsigned_int(t) != (kind_of(t) == dtype_kind::unsigned_int) || is_int(t) != (is_signed_int(t) || is_unsigned_int(t)))
      return false;
  }
  return true;
}());
/// Has negative values: signed integers and every floating type.
constexpr bool is_signed(dtype t) { return is_signed_int(t) || is_float(t); }
/// The 8-bit floating types: storage, conversion and bitcast only.
constexpr bool is_f8(dtype t) { return t == dtype::f8e4m3 || t == dtype::f8e5m2; }
/// Takes part in + - * / and comparisons: integers and floating types of 16 bits or more.
constexpr bool is_arithmetic(dtype t) { return is_int(t) || (is_float(t) && !is_f8(t)); }
/// f8e4m3 is the one floating type whose largest exponent holds ordinary numbers.
constexpr bool has_infinity(dtype t) { return is_float(t) && t != dtype::f8e4m3; }
/// Stored mantissa bits of a floating type, without the implicit leading one.
constexpr int mantissa_bits_of(dtype t) { return detail::info(t).mantissa_bits; }
constexpr int exponent_bits_of(dtype t) { return detail::info(t).exponent_bits; }

/// Finds the dtype called `text`, a `std::string_view` or anything else with `data()` and `size()`.
/// Errors: returns false, and leaves `out` alone, when no dtype has that name.
template <class Text> constexpr bool parse_dtype(const Text& text, dtype& out) {
  for (int i = 0; i < dtype_count; ++i) {
    const char* name = detail::dtype_table[i].name;
    decltype(text.size()) n = 0;
    while (n < text.size() && name[n] != '\0' && name[n] == text.data()[n]) ++n;
    if (n == text.size() && name[n] == '\0') {
      out = static_cast<dtype>(i);
      return true;
    }
  }
  return false;
}

namespace detail {

template <dtype D> struct host;
template <> struct host<dtype::b1> { using type = bool; };
template <> struct host<dtype::i8> { using type = kiln::i8; };
template <> struct host<dtype::i16> { using type = kiln::i16; };
template <> struct host<dtype::i32> { using type = kiln::i32; };
template <> struct host<dtype::i64> { using type = kiln::i64; };
template <> struct host<dtype::u8> { using type = kiln::u8; };
template <> struct host<dtype::u16> { using type = kiln::u16; };
template <> struct host<dtype::u32> { using type = kiln::u32; };
template <> struct host<dtype::u64> { using type = kiln::u64; };
template <> struct host<dtype::f16> { using type = kiln::f16; };
template <> struct host<dtype::bf16> { using type = kiln::bf16; };
template <> struct host<dtype::f32> { using type = kiln::f32; };
template <> struct host<dtype::f64> { using type = kiln::f64; };
template <> struct host<dtype::f8e4m3> { using type = kiln::f8e4m3; };
template <> struct host<dtype::f8e5m2> { using type = kiln::f8e5m2; };

// -1 where T is no element type; a handle (tile, val, ptr, ...) answers through its nested `element_type`.
template <class T>
inline constexpr int dtype_index = [] {
  if constexpr (requires { typename T::element_type; }) return dtype_index<std::remove_cv_t<typename T::element_type>>;
  else return -1;
}();
template <> inline constexpr int dtype_index<bool> = static_cast<int>(dtype::b1);
template <> inline constexpr int dtype_index<i8> = static_cast<int>(dtype::i8);
template <> inline constexpr int dtype_index<i16> = static_cast<int>(dtype::i16);
template <> inline constexpr int dtype_index<i32> = static_cast<int>(dtype::i32);
template <> inline constexpr int dtype_index<i64> = static_cast<int>(dtype::i64);
template <> inline constexpr int dtype_index<u8> = static_cast<int>(dtype::u8);
template <> inline constexpr int dtype_index<u16> = static_cast<int>(dtype::u16);
template <> inline constexpr int dtype_index<u32> = static_cast<int>(dtype::u32);
template <> inline constexpr int dtype_index<u64> = static_cast<int>(dtype::u64);
template <> inline constexpr int dtype_index<f16> = static_cast<int>(dtype::f16);
template <> inline constexpr int dtype_index<bf16> = static_cast<int>(dtype::bf16);
template <> inline constexpr int dtype_index<f32> = static_cast<int>(dtype::f32);
template <> inline constexpr int dtype_index<f64> = static_cast<int>(dtype::f64);
template <> inline constexpr int dtype_index<f8e4m3> = static_cast<int>(dtype::f8e4m3);
template <> inline constexpr int dtype_index<f8e5m2> = static_cast<int>(dtype::f8e5m2);

template <class T> constexpr dtype checked_dtype() {
  static_assert(dtype_index<T> >= 0, "kiln: not an element type: use bool, i8 i16 i32 i64, u8 u16 u32 u64, f16, bf16, "
                                     "f32 (float), f64 (double), f8e4m3 or f8e5m2 (for long long write i64)");
  return dtype_index<T> >= 0 ? static_cast<dtype>(dtype_index<T>) : dtype::b1;
}

} // namespace detail

/// The C++ type that holds one element in host memory: `host_type<dtype::f16>` is `f16`, of b1 it is `bool`.
template <dtype D> using host_type = typename detail::host<D>::type;

/// One of the fifteen element types, without const or volatile.
template <class T>
concept element = detail::dtype_index<T>
>= 0 && !requires { typename T::element_type; };

/// Element type of T: T itself, const or not, or the element of a tile, value, pointer or array handle.
template <class T> inline constexpr dtype dtype_of = detail::checked_dtype<std::remove_cv_t<T>>();

/// Bytes of one element in memory.
template <class T> inline constexpr i64 size_of = bytes_of(dtype_of<T>);

template <class T>
concept integer_element = element<T> && is_int(dtype_of<T>);
template <class T>
concept float_element = element<T> && is_float(dtype_of<T>);
template <class T>
concept arithmetic_element = element<T> && is_arithmetic(dtype_of<T>);

/// Which 8-bit floating format T is: "e4m3" or "e5m2".
template <class T>
requires(element<T>&& is_f8(dtype_of<T>)) inline constexpr const
    char* fp8_format = dtype_of<T> == dtype::f8e4m3 ? "e4m3" : "e5m2";

} // namespace kiln
