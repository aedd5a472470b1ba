// Loops over elements: the general one, through scalar_ops.hpp for every type, and typed ones for the types that most
// kernels use. Tests hold the two together (run_options::typed_loops).
#pragma once
#include <kiln/dtype/scalar_ops.hpp>

#include "src/interpreter/bodies.hpp"

namespace kiln::interpreter {

template <class T>
T unpack(u64 bits) {
  if constexpr (std::is_same_v<T, f32>) return __builtin_bit_cast(f32, static_cast<u32>(bits));
  else if constexpr (std::is_same_v<T, f64>) return __builtin_bit_cast(f64, bits);
  else return static_cast<T>(bits);
}

/// The bits of a result. A NaN that arithmetic made becomes the one NaN of docs/numerics.md.
template <class T>
u64 pack(T x) {
  if constexpr (std::is_same_v<T, f32>) return x == x ? __builtin_bit_cast(u32, x) : nan_of(dtype::f32).bits;
  else if constexpr (std::is_same_v<T, f64>) return x == x ? __builtin_bit_cast(u64, x) : nan_of(dtype::f64).bits;
  else if constexpr (std::is_same_v<T, bool>) return x;
  else return scalar_of(x).bits;
}

/// Which typed loops an operation has: bit sets.
enum loop_types : unsigned { none = 0, floats = 1, integers = 2, numbers = 3 };

/// Calls f<T>() when there is a typed loop for `t`.
template <unsigned Types, class F>
bool typed(agent const& a, dtype t, F f) {
  if (!a.run.options.typed_loops) return false;
  if constexpr ((Types & floats) != 0) {
    if (t == dtype::f32) return f.template operator()<f32>(), true;
    if (t == dtype::f64) return f.template operator()<f64>(), true;
  }
  if constexpr ((Types & integers) != 0) {
    if (t == dtype::i32) return f.template operator()<i32>(), true;
    if (t == dtype::i64) return f.template operator()<i64>(), true;
    if (t == dtype::u32) return f.template operator()<u32>(), true;
  }
  return false;
}

/// out[e] = general(x[e]); out's type is what `general` returns.
template <unsigned Types = none, class General, class Typed = int>
void map_one(agent& a, int i, General general, Typed fast = {}) {
  data const& x = a.in(i, 0);
  data& d = a.fresh(i);
  if constexpr (Types != none)
    if (typed<Types>(a, x.type, [&]<class T> {
          for (std::size_t e = 0; e < d.bits.size(); ++e) d.bits[e] = pack(fast(unpack<T>(x.bits[e])));
        }))
      return;
  for (std::size_t e = 0; e < d.bits.size(); ++e) d.bits[e] = general(x.at(e)).bits;
}

/// out[e] = general(x[e], y[e]).
template <unsigned Types = none, class General, class Typed = int>
void map_two(agent& a, int i, General general, Typed fast = {}) {
  data const& x = a.in(i, 0);
  data const& y = a.in(i, 1);
  data& d = a.fresh(i);
  if constexpr (Types != none)
    if (typed<Types>(a, x.type, [&]<class T> {
          for (std::size_t e = 0; e < d.bits.size(); ++e)
            d.bits[e] = pack(fast(unpack<T>(x.bits[e]), unpack<T>(y.bits[e])));
        }))
      return;
  for (std::size_t e = 0; e < d.bits.size(); ++e) d.bits[e] = general(x.at(e), y.at(e)).bits;
}

/// Integer offsets remember where they overflowed: an operand's mark passes to the result.
void pass_wrapped(data& to, data const& from);

} // namespace kiln::interpreter
