// How the arguments of a launch reach the runtime: one record per kernel parameter, made on the caller's stack.
#pragma once

#include <cstdint>

#include "kiln/graph/graph.hpp"

namespace kiln {

/// A value that the compiler may bake in: this shape's own machine code. `constant(n)`.
template <class T>
struct constant_argument {
  T value;
};
template <class T>
constexpr constant_argument<T> constant(T value) {
  return {value};
}

/// An argument that no code may be specialised on: a launch never recompiles because of it. `generic(n)`.
template <class T>
struct generic_argument {
  T const& value;
};
template <class T>
constexpr generic_argument<T> generic(T const& value) {
  return {value};
}

namespace detail {

enum class argument_mode : std::uint8_t { specialise, constant, generic };

/// One argument. Only the fields that the parameter's kind needs are set.
struct argument {
  argument_mode mode = argument_mode::specialise;
  std::uint64_t bits = 0;      ///< a value's bits, zero-extended, or an address
  std::int64_t elements = -1;  ///< elements behind the address, where known
  std::int64_t shape[max_rank];
  std::int64_t strides[max_rank];
  argument() {} // NOLINT: extents and strides stay unset on purpose; a launch writes what it uses
};

} // namespace detail
} // namespace kiln
