// Rounding divisions of plain C++ integers, for grid sizes and host-side index arithmetic. Same results, bit for bit,
// as the operations of these names have in a kernel.
#pragma once

#include <concepts>
#include <type_traits>

namespace kiln {

namespace detail {

template <class T> struct int_quotient {
  T div;
  T rem;
};

// Truncating division that is defined for every pair: x / 0 is -1 (all bits set) and leaves x; the lowest value over -1
// wraps.
template <class T> constexpr int_quotient<T> divide_any(T a, T b) {
  using U = std::make_unsigned_t<T>;
  if (b == 0) return {static_cast<T>(~U{0}), a};
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return {static_cast<T>(U{0} - static_cast<U>(a)), 0};
  return {static_cast<T>(a / b), static_cast<T>(a % b)};
}

template <class T>
concept divisible = std::integral<T> && !std::same_as<std::remove_cv_t<T>, bool>;

} // namespace detail

/// Quotient rounded toward positive infinity: how many pieces of `b` cover `a`. Does not overflow on the way.
template <detail::divisible A, detail::divisible B> constexpr std::common_type_t<A, B> ceil_div(A a, B b) {
  using T = std::common_type_t<A, B>;
  auto [div, rem] = detail::divide_any<T>(static_cast<T>(a), static_cast<T>(b));
  bool up = rem != 0 && (std::is_unsigned_v<T> || (rem < 0) == (static_cast<T>(b) < 0));
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(div) + up);
}

/// Quotient rounded toward negative infinity.
template <detail::divisible A, detail::divisible B> constexpr std::common_type_t<A, B> floor_div(A a, B b) {
  using T = std::common_type_t<A, B>;
  auto [div, rem] = detail::divide_any<T>(static_cast<T>(a), static_cast<T>(b));
  bool down = std::is_signed_v<T> && rem != 0 && (rem < 0) != (static_cast<T>(b) < 0);
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(div) - down);
}

} // namespace kiln
