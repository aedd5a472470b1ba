// kiln::check: runs a kernel on the interpreter with the arguments of a launch and reports what is wrong with it. Needs no
// device.
//
//   EXPECT_TRUE(check(add<1024>, grid(4), x, y, z, n).clean());
#pragma once
#include <kiln/interpreter/interpreter.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <functional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace kiln {

namespace detail {

template <class X>
concept sized_memory = requires(X& x) {
  { x.data() } -> std::convertible_to<void const*>;
  { x.size() } -> std::convertible_to<std::size_t>;
} && !std::is_same_v<std::remove_cvref_t<decltype(*std::declval<X&>().data())>, char>;
/// Knows its device (kiln::buffer): its memory may be elsewhere.
template <class X>
concept device_memory = sized_memory<X> && requires(X& x) { x.get_device().is_host(); };
/// kiln::array_view and what looks like it.
template <class X>
concept strided_memory = requires(X& x) {
  { *x.data };
  { x.shape[0] } -> std::convertible_to<i64>;
  { x.strides[0] } -> std::convertible_to<i64>;
  X::rank;
};
template <class X>
concept checked_number = std::is_arithmetic_v<X> || element<X>;
template <class X>
concept wrapped_number = requires(X& x) { requires checked_number<std::remove_cvref_t<decltype(x.value)>>; };

/// Collects the arguments of one check, and what is to be copied back to a device afterwards.
class checked_arguments {
public:
  explicit checked_arguments(graph_view g) : graph_(g) {}

  std::vector<interpreter::host_argument> list;

  void finish() {
    for (auto const& copy_back : after_) copy_back();
  }

  template <class X>
  void add(X& x) {
    if (list.size() >= static_cast<std::size_t>(argument_count(graph_.params))) {
      refuse("one argument per parameter is needed; there are more");
      return;
    }
    param_info const& p = graph_.params[list.size()];
    if constexpr (std::same_as<std::remove_cv_t<X>, interpreter::host_argument>) list.push_back(x);
    else if constexpr (checked_number<std::remove_cv_t<X>>) add_number(p, x);
    else if constexpr (wrapped_number<X>) add_number(p, x.value); // constant(n), generic(n)
    else if constexpr (device_memory<X>) add_buffer(p, x);
    else if constexpr (sized_memory<X>) add_memory(p, x.data(), static_cast<i64>(x.size()));
    else if constexpr (strided_memory<X>) add_view(p, x);
    else
      static_assert(!sizeof(X), "kiln: check takes vectors, spans, buffers, array views, numbers and "
                                "interpreter::host_argument; a bare pointer has no size: make it a span");
  }

private:
  [[noreturn]] void refuse(std::string const& why) const {
    throw std::invalid_argument("kiln: check(" + std::string(graph_.name) + "): argument " + std::to_string(list.size()) + ": " + why);
  }

  template <class N>
  void add_number(param_info const& p, N n) {
    if (p.kind != node_kind::value) refuse("a number where the parameter is memory");
    scalar s{};
    if constexpr (std::is_arithmetic_v<N>) {
      s = make_scalar(p.type, n);
      if constexpr (std::is_integral_v<N>)
        if (is_int(p.type) && (std::is_signed_v<N> ? make_scalar(dtype::i64, n) != convert(s, dtype::i64)
                                                   : make_scalar(dtype::u64, n) != convert(s, dtype::u64)))
          refuse(std::string("the number does not fit ") + name_of(p.type));
    } else {
      s = scalar_of(n);
    }
    if (s.type != p.type) refuse(std::string(name_of(s.type)) + " where the parameter is " + name_of(p.type));
    list.push_back(interpreter::value(s));
  }

  template <class T>
  void require_memory(param_info const& p) const {
    using E = std::remove_const_t<T>;
    static_assert(element<E>, "kiln: check: the memory holds no element type of kiln");
    if (p.kind == node_kind::value) refuse("memory where the parameter is a value");
    if (p.type != dtype_of<E>) refuse(std::string("memory of ") + name_of(dtype_of<E>) + " where the parameter has " + name_of(p.type));
    if (std::is_const_v<T> && !p.is_const) refuse("constant memory where the parameter is written through");
  }

  template <class T>
  void add_memory(param_info const& p, T* data, i64 count) {
    require_memory<T>(p);
    i64 const bytes = count * static_cast<i64>(sizeof(T));
    if (p.kind == node_kind::pointer) {
      list.push_back(interpreter::pointer(data, bytes));
    } else {
      if (p.rank != 1) refuse("an array of several axes needs a view: x.view(rows, columns)");
      list.push_back(interpreter::array(data, {count}, {1}, data, bytes));
    }
  }

  template <class X>
  void add_buffer(param_info const& p, X& x) {
    x.get_device().synchronize();
    if (x.get_device().is_host()) {
      add_memory(p, x.data(), static_cast<i64>(x.size()));
      return;
    }
    using T = std::remove_cvref_t<decltype(*x.data())>;
    auto const count = static_cast<std::size_t>(x.size());
    staged_.push_back(std::vector<std::byte>(count * sizeof(T)));
    T* const copy = reinterpret_cast<T*>(staged_.back().data());
    x.copy_to(std::span<T>(copy, count));
    add_memory(p, copy, static_cast<i64>(count));
    if constexpr (!std::is_const_v<X>)
      if (!p.is_const) after_.push_back([&x, copy, count] { x.copy_from(std::span<T const>(copy, count)); });
  }

  /// The allocation of a view is not known: what the view spans counts as such.
  template <class X>
  void add_view(param_info const& p, X& x) {
    using T = std::remove_reference_t<decltype(*x.data)>;
    require_memory<T>(p);
    if (p.kind != node_kind::array) refuse("a view where the parameter is a pointer; pass the buffer");
    if (p.rank != X::rank) refuse("a view of rank " + std::to_string(X::rank) + " where the parameter has " + std::to_string(p.rank));
    i64 low = 0, high = 0;
    bool empty = false;
    interpreter::host_argument a = interpreter::pointer(x.data, 0);
    a.kind = node_kind::array;
    a.rank = X::rank;
    for (int d = 0; d < X::rank; ++d) {
      auto const axis = static_cast<std::size_t>(d);
      a.extent[d] = x.shape[axis];
      a.stride[d] = x.strides[axis];
      empty = empty || a.extent[d] <= 0;
      (a.stride[d] < 0 ? low : high) += (a.extent[d] - 1) * a.stride[d];
    }
    if (!empty) {
      a.allocation = const_cast<std::remove_const_t<T>*>(x.data + low);
      a.bytes = (high - low + 1) * static_cast<i64>(sizeof(T));
    }
    list.push_back(a);
  }

  graph_view graph_;
  std::vector<std::vector<std::byte>> staged_;
  std::vector<std::function<void()>> after_;
};

template <class... A>
interpreter::report check_graph(graph_view g, dims grid, interpreter::run_options const& options, A&... arguments) {
  checked_arguments list(g);
  (list.add(arguments), ...);
  interpreter::report r = interpreter::run_all_policies(g, grid, list.list, options);
  list.finish();
  return r;
}

} // namespace detail

/// Runs a kernel with these arguments on the interpreter, under all three completion policies of asynchronous copies, and
/// reports races, missing waits, reads of what nobody wrote, accesses out of bounds, broken promises and failed assertions,
/// each with the user's line. Outputs are written, as by a launch.
///
/// Arguments: for ptr<T> any contiguous memory of T with a size (vector, span, std::array, buffer; what is on a device is
/// copied here and back); for array<T, Rank> a view of host memory, or for one axis what a pointer takes; for val<T> a
/// number. interpreter::host_argument stands for any of them and can say more (an allocation around a view).
/// Errors: std::invalid_argument where an argument does not fit its parameter.
template <class Kernel, class Grid, class... A>
  requires requires { Kernel::graph(); }
interpreter::report check(Kernel const&, Grid const& grid, A&&... arguments) {
  static_assert(sizeof...(A) == argument_count(Kernel::graph().params), "kiln[K-11] a check needs one argument per kernel parameter (the context is not one)");
  return detail::check_graph(Kernel::graph(), {grid.x, grid.y, grid.z}, {}, arguments...);
}
/// The same with options: precision, order and number of CTAs, where device_print goes. The policy is not used.
template <class Kernel, class Grid, class... A>
  requires requires { Kernel::graph(); }
interpreter::report check(interpreter::run_options const& options, Kernel const&, Grid const& grid, A&&... arguments) {
  static_assert(sizeof...(A) == argument_count(Kernel::graph().params), "kiln[K-11] a check needs one argument per kernel parameter (the context is not one)");
  return detail::check_graph(Kernel::graph(), {grid.x, grid.y, grid.z}, options, arguments...);
}

} // namespace kiln
