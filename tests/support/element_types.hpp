// Tests that are the same for many element types: `for_each(numbers{}, []<class T> { ... })`.
#pragma once
#include "interpret.hpp"

#include <random>

namespace kiln_test {

template <class... T>
struct types {};
using integers = types<kiln::i8, kiln::i16, kiln::i32, kiln::i64, kiln::u8, kiln::u16, kiln::u32, kiln::u64>;
using numbers = types<kiln::i8, kiln::i16, kiln::i32, kiln::i64, kiln::u8, kiln::u16, kiln::u32, kiln::u64, kiln::f16, kiln::bf16, kiln::f32, kiln::f64>;
using all_types = types<bool, kiln::i8, kiln::i16, kiln::i32, kiln::i64, kiln::u8, kiln::u16, kiln::u32, kiln::u64, kiln::f16, kiln::bf16, kiln::f32, kiln::f64,
                        kiln::f8e4m3, kiln::f8e5m2>;

/// Calls f<T>() for every type, with its name in messages.
template <class... T, class F>
void for_each(types<T...>, F f) {
  ([&] {
    SCOPED_TRACE(name_of(kiln::dtype_of<T>));
    f.template operator()<T>();
  }(), ...);
}

/// Any bit pattern.
template <class T>
guarded<T> patterns(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  guarded<T> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    kiln::scalar const s = scalar_from_bits(kiln::dtype_of<T>, random());
    std::memcpy(&x[i], &s.bits, sizeof(T));
  }
  return x;
}

} // namespace kiln_test
