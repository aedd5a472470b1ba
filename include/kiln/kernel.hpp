// kernel<"name", Args...>(lambda): records the lambda while the C++ compiler runs, keeps the graph as a constant of the
// exact size, checks it, and launches it.
#pragma once
#include <kiln/dsl/context.hpp>
#include <kiln/meta/fixed_string.hpp>
#include <kiln/validate/validate.hpp>

namespace kiln {

namespace detail {

template <class F>
struct signature {
  static constexpr bool known = false;
};
template <class L, class... P>
struct signature<void (L::*)(context&, P...) const> {
  static constexpr bool known = true;
  static constexpr int parameters = sizeof...(P);
  template <class X>
  static constexpr X make(recorder& r) {
    return parameter(std::type_identity<X>{}, r);
  }
  template <class F>
  static constexpr void run(F const& f, context& k, recorder& r) {
    run_in_order<F, std::remove_cvref_t<P>...>(f, k, r);
  }

private:
  static constexpr int add(recorder& r, param_info p, result_type t) {
    p.node = r.push(op::param, t, {}, {r.params.size()}, site{0, ""});
    r.params.add() = p;
    return p.node;
  }
  template <class T>
  static constexpr tile<T> parameter(std::type_identity<tile<T>>, recorder& r) {
    return {&r, add(r, {.kind = node_kind::value, .type = dtype_of<T>}, {dtype_of<T>, node_kind::value, 0})};
  }
  template <class T>
  static constexpr ptr<T> parameter(std::type_identity<ptr<T>>, recorder& r) {
    constexpr dtype t = dtype_of<std::remove_const_t<T>>;
    return {&r, add(r, {.kind = node_kind::pointer, .type = t, .is_const = std::is_const_v<T>}, {t, node_kind::pointer, 0})};
  }
  template <class T, int Rank>
  static constexpr array<T, Rank> parameter(std::type_identity<array<T, Rank>>, recorder& r) {
    constexpr dtype t = dtype_of<std::remove_const_t<T>>;
    return {&r, add(r, {.kind = node_kind::array, .type = t, .is_const = std::is_const_v<T>, .rank = Rank}, {t, node_kind::array, 0})};
  }
  template <class X>
  static constexpr X parameter(std::type_identity<X>, recorder& r) {
    static_assert(never<X>, "kiln[K-07] a kernel parameter must be ptr<T>, val<T> or array<T, Rank>");
    return *static_cast<X*>(static_cast<void*>(&r));
  }
  // Parameters are made left to right on every compiler: a braced list, not call arguments, fixes the order.
  template <class F, class... X>
  static constexpr void run_in_order(F const& f, context& k, recorder& r) {
    struct held {
      int node;
    } nodes[sizeof...(X) + 1]{held{make<X>(r).node_}...};
    call<F, X...>(f, k, r, nodes, std::make_index_sequence<sizeof...(X)>{});
  }
  template <class F, class... X, class Held, std::size_t... I>
  static constexpr void call(F const& f, context& k, recorder& r, Held const* nodes, std::index_sequence<I...>) {
    f(k, X{&r, nodes[I].node}...);
  }
};

/// Runs a kernel lambda into a recorder, at compile time or at run time.
template <class L>
constexpr void record_into(recorder& r, attributes const& attrs) {
  r.attrs = attrs;
  context k(r);
  L f{};
  signature<decltype(&L::operator())>::run(f, k, r);
}

/// Room for a recording whose size is not known yet.
template <int Cap>
struct scratch {
  node nodes[Cap]{};
  std::int32_t operands[3 * Cap]{};
  std::int64_t attribute_pool[2 * Cap]{};
  shape shapes[256]{};
  buffer_info buffers[64]{};
  param_info params[64]{};
  char const* strings[128]{};
  char const* files[16]{};
  int counts[8]{};
  diagnostic error{};
  bool fits = false;
};

template <class L, attributes Attrs, int Cap>
consteval auto record() {
  scratch<Cap> s;
  recorder r;
  record_into<L>(r, Attrs);
  s.error = r.error.ok() ? validate(r.view()) : r.error;
  int const counts[8]{r.nodes.size(), r.operand_pool.size(), r.attribute_pool.size(), r.shapes.size(),
                      r.buffers.size(), r.params.size(), r.strings.size(), r.files.size()};
  for (int i = 0; i < 8; ++i) s.counts[i] = counts[i];
  s.fits = counts[0] <= Cap && counts[1] <= 3 * Cap && counts[2] <= 2 * Cap;
  if (!s.fits) return s;
  auto copy = [](auto const& from, auto* to) {
    for (int i = 0; i < from.size(); ++i) to[i] = from[i];
  };
  copy(r.nodes, s.nodes);
  copy(r.operand_pool, s.operands);
  copy(r.attribute_pool, s.attribute_pool);
  copy(r.shapes, s.shapes);
  copy(r.buffers, s.buffers);
  copy(r.params, s.params);
  copy(r.strings, s.strings);
  copy(r.files, s.files);
  return s;
}

// A static member, not a local: clang evaluates a constexpr local again at each use.
template <class L, attributes Attrs, int Cap>
struct recorded {
  static constexpr auto value = record<L, Attrs, Cap>();
};

template <class L, attributes Attrs, int Cap>
consteval auto shrink() {
  constexpr auto const& s = recorded<L, Attrs, Cap>::value;
  if constexpr (!s.fits) {
    constexpr int most = s.counts[0] > (s.counts[1] + 2) / 3 ? s.counts[0] : (s.counts[1] + 2) / 3;
    constexpr int attributes_need = (s.counts[2] + 1) / 2;
    return shrink<L, Attrs, (most > attributes_need ? most : attributes_need)>();
  } else {
    static_graph<s.counts[0], s.counts[1], s.counts[2], s.counts[3], s.counts[4], s.counts[5], s.counts[6], s.counts[7]> g;
    auto copy = [](auto const& from, auto& to, int n) {
      for (int i = 0; i < n; ++i) to.items[i] = from[i];
    };
    g.attrs = Attrs;
    copy(s.nodes, g.nodes, s.counts[0]);
    copy(s.operands, g.operands, s.counts[1]);
    copy(s.attribute_pool, g.attribute_pool, s.counts[2]);
    copy(s.shapes, g.shapes, s.counts[3]);
    copy(s.buffers, g.buffers, s.counts[4]);
    copy(s.params, g.params, s.counts[5]);
    copy(s.strings, g.strings, s.counts[6]);
    copy(s.files, g.files, s.counts[7]);
    return g;
  }
}

template <class L, attributes Attrs, int Cap>
consteval diagnostic recording_error() {
  return recorded<L, Attrs, Cap>::value.error;
}

/// A message as a template argument, at its exact length.
template <int N>
struct message_text {
  char text[N + 1]{};
  constexpr std::size_t size() const { return N; }
  constexpr char const* data() const { return text; }
};
template <auto const& Error>
consteval auto text_of() {
  message_text<Error.length> t;
  for (int i = 0; i < Error.length; ++i) t.text[i] = Error.text[i];
  return t;
}
template <auto Text>
constexpr void kernel_rejected() = delete; // GCC prints Text inside the error's line

template <class... A>
consteval attributes attributes_of() {
  return {};
}

/// The attributes among the template arguments of kernel<...>: the first one, when it is of that type.
template <auto First, auto...>
consteval attributes first_attributes() {
  if constexpr (std::same_as<std::remove_const_t<decltype(First)>, attributes>)
    return First;
  else
    return {};
}
template <auto... Args>
consteval attributes attributes_in() {
  if constexpr (sizeof...(Args) == 0)
    return {};
  else
    return first_attributes<Args...>();
}

} // namespace detail

/// A recorded kernel. Made by `kernel<...>(lambda)`; use it as `inline constexpr auto name = kernel<"name">(...)`.
template <class L, fixed_string Name, attributes Attrs, class Grid>
class kernel_t {
  static constexpr int capacity = 1024;
  static constexpr auto graph_ = [] {
    auto g = detail::shrink<L, Attrs, capacity>();
    g.name = Name.view();
    return g;
  }();
  static constexpr diagnostic error_ = detail::recording_error<L, Attrs, capacity>();

public:
  static constexpr std::string_view name = Name.view();
  static constexpr kiln::attributes attributes = Attrs;
  /// No rule is broken. For filtering configurations, and `static_assert(my_kernel.ok)`.
  static constexpr bool ok = error_.ok();
  /// The broken rule's message; empty when ok.
  static constexpr std::string_view message() { return {error_.text, static_cast<std::size_t>(error_.length)}; }
  /// The recorded graph.
  static constexpr graph_view graph() { return graph_.view(); }

  /// The hard answer: does not compile when a rule is broken, with the rule's message and the user's statement.
  static constexpr void check() {
    if constexpr (!ok) {
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc++26-extensions"
      static_assert(ok, detail::text_of<error_>());
#pragma clang diagnostic pop
#else
      detail::kernel_rejected<detail::text_of<error_>()>();
#endif
      constexpr int replay = [] {
        recorder r;
        r.replay = true;
        r.stop_at = error_.node;
        detail::record_into<L>(r, Attrs);
        return 0;
      }();
      (void)replay;
    }
  }
};

namespace detail {
struct no_grid {};
template <fixed_string Name, auto... Args, class L, class Grid>
constexpr auto make_kernel(L, Grid) {
  static_assert(std::is_empty_v<L> && std::is_default_constructible_v<L>,
                "kiln[K-08] a kernel lambda cannot capture; pass values as parameters (val<T>) or template arguments");
  static_assert(requires { &L::operator(); }, "kiln[K-09] a kernel lambda needs concrete parameter types: context&, then ptr<T>, val<T>, array<T, Rank>");
  if constexpr (requires { &L::operator(); }) {
    static_assert(signature<decltype(&L::operator())>::known,
                  "kiln[K-09] a kernel lambda is void (context& k, ptr<T>..., val<T>..., array<T, Rank>...), not mutable");
  }
  return kernel_t<L, Name, attributes_in<Args...>(), Grid>{};
}
} // namespace detail

/// Makes a kernel from a lambda without captures. `Args`: optionally `attributes{...}` first, then the values that the
/// kernel's code depends on (tile sizes); they are part of its type.
template <fixed_string Name, auto... Args, class L>
constexpr auto kernel(L f) {
  return detail::make_kernel<Name, Args...>(f, detail::no_grid{});
}
/// The same with a function from problem sizes to the grid, for `my_kernel.grid(m, n)`.
template <fixed_string Name, auto... Args, class L, class Grid>
constexpr auto kernel(L f, Grid g) {
  return detail::make_kernel<Name, Args...>(f, g);
}

} // namespace kiln
