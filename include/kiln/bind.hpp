// Matches the arguments of a launch with the parameters of a kernel, by type.
#pragma once
#include <kiln/dsl/memory.hpp>
#include <kiln/runtime/array_view.hpp>
#include <kiln/runtime/launch.hpp>

namespace kiln::detail {

template <class X>
inline constexpr bool is_array_view = false;
template <class T, int Rank>
inline constexpr bool is_array_view<array_view<T, Rank>> = true;
template <class X>
concept buffer_like = requires(X const& x) {
  x.data();
  x.size();
  x.get_stream();
  typename X::element_type;
};

/// A parameter of `P` may be given a pointer to `U`: the same element type, and const only where the kernel only reads.
template <class P, class U>
inline constexpr bool pointee_ok =
    std::same_as<std::remove_const_t<U>, std::remove_const_t<P>> && (std::is_const_v<P> || !std::is_const_v<U>);

/// What `constant(x)` and `generic(x)` hold; anything else itself. A reference is left out, const stays.
template <class A>
struct unwrapped {
  using type = std::remove_reference_t<A>;
};
template <class A>
  requires(!buffer_like<std::remove_cvref_t<A>>) && requires(std::remove_cvref_t<A>& a) { a.value; } && (!element<std::remove_cvref_t<A>>)
struct unwrapped<A> {
  using type = std::remove_reference_t<decltype((std::declval<std::remove_reference_t<A>&>().value))>;
};
template <class A>
using unwrapped_t = typename unwrapped<A>::type;

/// `takes<A>`: whether an argument of that type will do. `bind` is called only then.
template <class P>
struct parameter;

template <class T>
struct parameter<tile<T>> {
  template <class A, class X = std::remove_cv_t<unwrapped_t<A>>>
  static constexpr bool takes = std::same_as<X, T> || (std::is_arithmetic_v<X> && (std::is_integral_v<X> || !std::is_integral_v<T>));

  template <class A>
  static void bind(argument& to, A const& a, kernel_entry const& k, int index) {
    if constexpr (requires { a.value; } && !std::same_as<A, T>) {
      to.mode = std::same_as<A, constant_argument<std::remove_cvref_t<decltype(a.value)>>> ? argument_mode::constant : argument_mode::generic;
      bind_value(to, a.value, k, index);
    } else {
      bind_value(to, a, k, index);
    }
  }

private:
  template <class A>
  static void bind_value(argument& to, A const& a, kernel_entry const& k, int index) {
    if constexpr (std::same_as<A, T> || !std::is_integral_v<A>) {
      to.bits = bits_of_value(static_cast<T>(a));
    } else if constexpr (std::is_integral_v<T> && !std::same_as<T, bool>) {
      if (!std::in_range<T>(+a)) fail_argument(k, index, "the number does not fit the parameter's type; declare a wider one, such as val<i64>");
      to.bits = bits_of_value(static_cast<T>(a));
    } else {
      to.bits = bits_of_value(T(a));
    }
  }
  static std::uint64_t bits_of_value(T v) {
    if constexpr (std::same_as<T, bool>)
      return v;
    else if constexpr (sizeof(T) == 1)
      return __builtin_bit_cast(std::uint8_t, v);
    else if constexpr (sizeof(T) == 2)
      return __builtin_bit_cast(std::uint16_t, v);
    else if constexpr (sizeof(T) == 4)
      return __builtin_bit_cast(std::uint32_t, v);
    else
      return __builtin_bit_cast(std::uint64_t, v);
  }
};

template <class T>
struct parameter<pointers<T>> {
  template <class A>
  static constexpr bool takes = [] {
    using X = unwrapped_t<A>;
    if constexpr (buffer_like<std::remove_cv_t<X>>)
      return pointee_ok<T, std::remove_pointer_t<decltype(std::declval<X&>().data())>>;
    else if constexpr (requires(X& x) { x.pointer; })
      return pointee_ok<T, typename X::element_type>;
    else if constexpr (std::is_pointer_v<X>)
      return pointee_ok<T, std::remove_pointer_t<X>>;
    else
      return false;
  }();

  template <class A>
  static void bind(argument& to, A& a, kernel_entry const&, int) {
    using X = std::remove_const_t<A>;
    if constexpr (requires { a.value; } && !buffer_like<X>) {
      to.mode = argument_mode::generic;
      bind_pointer(to, a.value);
    } else {
      bind_pointer(to, a);
    }
  }

private:
  template <class A>
  static void bind_pointer(argument& to, A& a) {
    using X = std::remove_const_t<A>;
    if constexpr (buffer_like<X>) {
      set(to, a.data(), a.size());
    } else if constexpr (requires { a.pointer; }) {
      set(to, a.pointer, -1);
    } else {
      set(to, a, -1);
    }
  }
  static void set(argument& to, void const* p, std::int64_t elements) {
    to.bits = reinterpret_cast<std::uint64_t>(p);
    to.elements = elements;
  }
};

template <class T, int Rank>
struct parameter<array<T, Rank>> {
  template <class A>
  static constexpr bool takes = [] {
    using X = unwrapped_t<A>;
    if constexpr (is_array_view<std::remove_cv_t<X>>)
      return X::rank == Rank && pointee_ok<T, typename X::element_type>;
    else if constexpr (buffer_like<std::remove_cv_t<X>> && Rank == 1)
      return pointee_ok<T, std::remove_pointer_t<decltype(std::declval<X&>().data())>>;
    else
      return false;
  }();

  template <class A>
  static void bind(argument& to, A& a, kernel_entry const& k, int index) {
    using X = std::remove_const_t<A>;
    if constexpr (requires { a.value; } && !buffer_like<X>) {
      to.mode = std::same_as<X, constant_argument<std::remove_cvref_t<decltype(a.value)>>> ? argument_mode::constant : argument_mode::generic;
      bind_array(to, a.value, k, index);
    } else {
      bind_array(to, a, k, index);
    }
  }

private:
  template <class A>
  static void bind_array(argument& to, A& a, kernel_entry const&, int) {
    using X = std::remove_const_t<A>;
    if constexpr (is_array_view<X>) {
      to.bits = reinterpret_cast<std::uint64_t>(a.data);
      for (int d = 0; d < Rank; ++d) {
        to.shape[d] = a.extent(d);
        to.strides[d] = a.stride(d);
      }
    } else {
      to.bits = reinterpret_cast<std::uint64_t>(a.data());
      to.elements = a.size();
      to.shape[0] = a.size();
      to.strides[0] = 1;
    }
  }
};

template <class P>
inline constexpr node_kind parameter_kind = node_kind::value;
template <class T>
inline constexpr node_kind parameter_kind<pointers<T>> = node_kind::pointer;
template <class T, int Rank>
inline constexpr node_kind parameter_kind<array<T, Rank>> = node_kind::array;

/// The parameter types of a kernel lambda.
template <class F>
struct parameters_of;
template <class L, class K, class... P>
struct parameters_of<void (L::*)(K, P...) const> {
  static constexpr int count = sizeof...(P);
  /// The kind of the first parameter that does not take its argument; node_kind::none when all do.
  template <class... A>
  static constexpr node_kind refuses() {
    node_kind first = node_kind::none;
    if constexpr (sizeof...(A) == sizeof...(P))
      ((first = first != node_kind::none || parameter<std::remove_cvref_t<P>>::template takes<A> ? first : parameter_kind<std::remove_cvref_t<P>>), ...);
    return first;
  }
  template <class... A>
  static void bind(argument* to, kernel_entry const& k, A&... a) {
    int i = 0;
    ((parameter<std::remove_cvref_t<P>>::bind(to[i], a, k, i), ++i), ...);
  }
};

} // namespace kiln::detail
