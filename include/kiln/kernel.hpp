// kernel<"name", Args...>(lambda): records the lambda while the C++ compiler runs, keeps the graph as a constant of the
// exact size, checks it, and launches it.
//
// The headers that hold a kernel's own words are included here one by one, in the order of their dependencies: a compiler
// prints one "In file included from" line per level, and the user's line has to be among the first six.
#pragma once
#include <kiln/meta/diagnose.hpp>
#include <kiln/meta/fixed_string.hpp>
#include <kiln/meta/site.hpp>
#include <kiln/meta/vec.hpp>
#include <kiln/dtype/dtype.hpp>
#include <kiln/dtype/float16.hpp>
#include <kiln/dtype/float8.hpp>
#include <kiln/dtype/promote.hpp>
#include <kiln/graph/graph.hpp>
#include <kiln/graph/recorder.hpp>
#include <kiln/graph/local_layout.hpp>
#include <kiln/graph/save.hpp>
#include <kiln/dsl/value.hpp>
#include <kiln/dsl/any.hpp>
#include <kiln/dsl/math.hpp>
#include <kiln/dsl/shape.hpp>
#include <kiln/dsl/order.hpp>
#include <kiln/dsl/random.hpp>
#include <kiln/dsl/local.hpp>
#include <kiln/dsl/alias.hpp>
#include <kiln/dsl/memory.hpp>
#include <kiln/dsl/control.hpp>
#include <kiln/dsl/tasks.hpp>
#include <kiln/bind.hpp>
#include <kiln/dsl/task_calls.hpp>
#include <kiln/dsl/cluster_calls.hpp>
#include <kiln/dsl/context.hpp>
#include <kiln/dsl/allocator.hpp>
#include <kiln/dsl/pool.hpp>
#include <kiln/validate/op_facts.hpp>
#include <kiln/validate/verify_cluster.hpp>
#include <kiln/validate/verify_tasks.hpp>
#include <kiln/validate/verify.hpp>
#include <kiln/validate/tasks.hpp>
#include <kiln/validate/ranges.hpp>
#include <kiln/validate/bounds.hpp>
#include <kiln/validate/capacity.hpp>
#include <kiln/validate/sim_program.hpp>
#include <kiln/validate/slicer.hpp>
#include <kiln/validate/sim_nodes.hpp>
#include <kiln/validate/sim_boxes.hpp>
#include <kiln/validate/static_mask.hpp>
#include <kiln/validate/program.hpp>
#include <kiln/validate/overlap.hpp>
#include <kiln/validate/simulator.hpp>
#include <kiln/validate/sim_report.hpp>
#include <kiln/validate/sim_barriers.hpp>
#include <kiln/validate/sim_cluster.hpp>
#include <kiln/validate/sim_sharing.hpp>
#include <kiln/validate/sim_trips.hpp>
#include <kiln/validate/sim_findings.hpp>
#include <kiln/validate/simulate.hpp>
#include <kiln/validate/storage.hpp>
#include <kiln/validate/validate.hpp>

namespace kiln {

namespace detail {

/// What a kernel may take after its context.
template <class X>
inline constexpr bool is_parameter = false;
template <class T>
inline constexpr bool is_parameter<tile<T>> = true;
template <class T>
inline constexpr bool is_parameter<ptr<T>> = true;
template <class T, int Rank>
inline constexpr bool is_parameter<array<T, Rank>> = true;
template <class X>
inline constexpr bool is_parameter<X const&> = is_parameter<X>;
template <class X>
inline constexpr bool is_parameter<X const> = is_parameter<X>;

template <class F>
struct signature {
  static constexpr bool known = false, parameters_known = true;
};
template <class L, class... P>
struct signature<void (L::*)(context&, P...) const> {
  static constexpr bool known = true;
  static constexpr bool parameters_known = (is_parameter<P> && ...);
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
  // Parameters are made left to right on every compiler: a braced list, not call arguments, fixes the order.
  template <class F, class... X>
  static constexpr void run_in_order(F const& f, context& k, recorder& r) {
    struct held {
      int node;
    } nodes[sizeof...(X) + 1]{held{make<X>(r).node_}...};
    call<F, X...>(f, k, r, nodes, std::make_index_sequence<sizeof...(X)>{});
  }
  template <class F, class... X, class Held, std::size_t... I>
  static constexpr void call(F const& f, context& k, [[maybe_unused]] recorder& r, [[maybe_unused]] Held const* nodes, std::index_sequence<I...>) {
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
  k.finish();
}

/// A line of the user's source.
struct place {
  int line = 0;
  char const* file = "";
};
/// Where node i was written, or, for a mistake found after the last node, that one.
constexpr place place_of(graph_view const& g, int i) {
  if (i >= g.size()) i = g.size() - 1;
  if (i < 0) return {};
  return {g[i].line, g.file(i)};
}

/// Room for a recording whose size is not known yet.
template <int Cap>
struct scratch {
  static constexpr int most_shapes = 256, most_buffers = 64, most_params = 64, most_strings = 128, most_files = 16;
  node nodes[Cap]{};
  std::int32_t operands[3 * Cap]{};
  std::int64_t attribute_pool[2 * Cap]{};
  shape shapes[most_shapes]{};
  buffer_info buffers[most_buffers]{};
  param_info params[most_params]{};
  char const* strings[most_strings]{};
  char const* files[most_files]{};
  int counts[8]{};
  diagnostic error{};
  place where{};
  bool fits = false;

  /// Errors: K-13 more of something than there is room for.
  static constexpr void check_capacity(recorder const& r, diagnostic& error) {
    auto fail = [&](int node, int n, char const* what, int most, char const* instead) {
      error.node = node;
      message(error) << "kiln[K-13] " << n << what << "; a kernel has room for " << most << ": " << instead;
    };
    int const n = r.nodes.size();
    auto first = [&](auto holds) {
      int i = 0;
      while (i + 1 < n && !holds(r.nodes[i])) ++i;
      return i;
    };
    if (r.params.size() > most_params)
      fail(r.params[most_params].node, r.params.size(), " parameters", most_params, "pass a ptr to a table of the rest");
    else if (r.buffers.size() > most_buffers)
      fail(r.buffers[most_buffers].node, r.buffers.size(), " local buffers", most_buffers, "give one local_alloc several slots");
    else if (r.strings.size() > most_strings)
      fail(first([&](node const& x) {
             return (x.code == op::device_assert || x.code == op::device_print) && r.attribute_pool[x.attributes] >= most_strings;
           }),
           r.strings.size(), " names and texts", most_strings, "leave out some asserts, prints or buffer names");
    else if (r.files.size() > most_files)
      fail(first([](node const& x) { return x.file >= most_files; }), r.files.size(), " source files", most_files,
           "define the device functions of one kernel in fewer files");
    else if (r.shapes.size() > most_shapes)
      fail(first([](node const& x) { return x.shape >= most_shapes; }), r.shapes.size(), " different tile shapes", most_shapes,
           "split the kernel");
  }
};

template <class L, attributes Attrs, int Cap>
consteval auto record() {
  scratch<Cap> s;
  recorder r;
  record_into<L>(r, Attrs);
  s.error = r.error;
  if (s.error.ok()) scratch<Cap>::check_capacity(r, s.error);
  s.where = place_of(r.view(), s.error.node);
  if (!s.error.ok()) { // nobody reads the graph
    s.counts[3] = 1;
    s.fits = true;
    return s;
  }
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

/// What is wrong with a kernel, and where.
struct verdict {
  diagnostic error{};
  place where{};
};

/// A message as a template argument, at its exact length.
template <int N>
struct message_text {
  char text[N + 1]{};
  constexpr std::size_t size() const { return N; }
  constexpr char const* data() const { return text; }
};
/// "file.cpp:12: kiln[...] ...": the place stands in the text, since a compiler's own mention of the statement comes only
/// in the backtrace of the replay, further down.
template <auto const& Verdict>
consteval auto text_of() {
  constexpr auto digits = [] {
    diagnostic d;
    if (Verdict.where.line > 0) message(d) << ":" << Verdict.where.line << ": ";
    return d;
  }();
  constexpr int path = Verdict.where.line > 0 ? static_cast<int>(std::string_view(Verdict.where.file).size()) : 0;
  message_text<path + digits.length + Verdict.error.length> t;
  int n = 0;
  for (int i = 0; i < path; ++i) t.text[n++] = Verdict.where.file[i];
  for (int i = 0; i < digits.length; ++i) t.text[n++] = digits.text[i];
  for (int i = 0; i < Verdict.error.length; ++i) t.text[n++] = Verdict.error.text[i];
  return t;
}
template <auto Text>
constexpr void kernel_rejected() = delete; // GCC prints Text inside the error's line

/// Stands for the absent grid function of a kernel.
struct no_grid {};
/// A launch's arguments that do not start with a grid.
template <class... A>
inline constexpr bool no_grid_first = true;
template <class First, class... A>
inline constexpr bool no_grid_first<First, A...> = !std::same_as<std::remove_cvref_t<First>, kiln::grid>;

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
  static inline constinit detail::kernel_entry entry_{graph_.view(), nullptr};
  // Each stage of checking is a member of its own, and so has a compiler's whole step limit for itself.
  static constexpr detail::verdict recording_{detail::recorded<L, Attrs, capacity>::value.error, detail::recorded<L, Attrs, capacity>::value.where};
  static constexpr diagnostic static_rules_ = recording_.error.ok() ? check_static_rules(graph_.view(), true) : recording_.error;
  static constexpr simulation simulation_ = static_rules_.ok() ? simulate(graph_.view()) : simulation{};
  static constexpr detail::verdict verdict_ = [] {
    if (!recording_.error.ok()) return recording_;
    diagnostic const& d = static_rules_.ok() ? simulation_.error : static_rules_;
    return detail::verdict{d, detail::place_of(graph_.view(), d.node)};
  }();

  static constexpr int arguments_needed = detail::parameters_of<decltype(&L::operator())>::count;
  template <class... A>
  static constexpr node_kind refused = detail::parameters_of<decltype(&L::operator())>::template refuses<A...>();
  /// A launch's arguments, as the runtime takes them.
  struct bound_arguments {
    detail::argument list[arguments_needed + 1];
    template <class... A>
    explicit bound_arguments(A&... a) {
      detail::parameters_of<decltype(&L::operator())>::bind(list, entry_, a...);
    }
    std::span<detail::argument const> view() const { return {list, static_cast<std::size_t>(arguments_needed)}; }
  };

public:
  static constexpr std::string_view name = Name.view();
  static constexpr kiln::attributes attributes = Attrs;
  /// No rule is broken. For filtering configurations, and `static_assert(my_kernel.ok)`.
  static constexpr bool ok = verdict_.error.ok();
  /// The broken rule's message; empty when ok.
  static constexpr std::string_view message() { return {verdict_.error.text, static_cast<std::size_t>(verdict_.error.length)}; }
  /// Whether the simulation of local memory saw all that it is meant to see; false where its budget ended. `notes()` says why.
  static constexpr bool verified = simulation_.complete;
  /// Warnings and remarks: R-VF01, R-HZ12, R-HZ16, ... Never compiler diagnostics.
  static constexpr slice<note> notes() { return simulation_.notes.view(); }
  /// Whether `t` has the local memory, threads and clusters for this kernel. Bytes as in `place_local`; a layout that the
  /// target's matrix unit asks for can need more, which the launch then says.
  static constexpr bool fits(target const& t) { return ok && check_capacity(graph_.view(), t).ok(); }
  /// The recorded graph.
  static constexpr graph_view graph() { return graph_.view(); }
  /// Writes the graph's text form, for the tools: `my_kernel.save("my_kernel.kg")`. Errors: those of save_graph.
  static void save(std::string_view path) { save_graph(graph(), path); }

  // The four functions below repeat their assertions: in a helper or a macro the compilers would show the user's own line
  // further down.

  /// Starts the kernel on a device's default stream or a stream: `add<1024>.launch(dev, grid(n), x, y, z, n)`.
  /// Arguments: a buffer, device_ptr or pointer for ptr<T>; a number, `constant(n)` or `generic(n)` for val<T>; a view for
  /// array<T, Rank>. Compiles when the arguments' facts are new. A zero grid is a launch of nothing.
  /// Errors: kiln::error naming kernel and argument, compile_error. Does not compile when a rule is broken.
  template <class... A>
  void launch(stream const& where, kiln::grid const& ctas, A&&... a) const {
    check();
    static_assert(sizeof...(A) == arguments_needed, "kiln[K-11] a launch needs one argument per kernel parameter (the context is not one)");
    static_assert(refused<A...> != node_kind::value, "kiln[K-15] a val<T> parameter takes a number of T's kind; convert it: an integer parameter takes no floating number");
    static_assert(refused<A...> != node_kind::pointer, "kiln[K-15] a ptr<T> parameter takes a buffer<T>, a device_ptr<T> or a T*; const ones need ptr<const T>");
    static_assert(refused<A...> != node_kind::array, "kiln[K-15] an array<T, Rank> parameter takes x.view(...) of Rank extents of a buffer<T>, or strided(...); const ones need array<const T, Rank>");
    if constexpr (sizeof...(A) == arguments_needed && refused<A...> == node_kind::none) {
      bound_arguments const b(a...);
      detail::launch(entry_, where, ctas, b.view());
    }
  }
  /// The launch of a kernel with attributes::persistent: as many CTAs as run on the device at once.
  template <class... A>
    requires detail::no_grid_first<A...>
  void launch(stream const& where, A&&... a) const {
    static_assert(Attrs.persistent, "kiln[K-12] a launch needs a grid: launch(device, grid(n), ...); only attributes{.persistent = true} takes the device's size");
    if constexpr (Attrs.persistent) {
      check();
      static_assert(sizeof...(A) == arguments_needed, "kiln[K-11] a launch needs one argument per kernel parameter (the context is not one)");
      static_assert(refused<A...> != node_kind::value, "kiln[K-15] a val<T> parameter takes a number of T's kind; convert it: an integer parameter takes no floating number");
      static_assert(refused<A...> != node_kind::pointer, "kiln[K-15] a ptr<T> parameter takes a buffer<T>, a device_ptr<T> or a T*; const ones need ptr<const T>");
      static_assert(refused<A...> != node_kind::array, "kiln[K-15] an array<T, Rank> parameter takes x.view(...) of Rank extents of a buffer<T>, or strided(...); const ones need array<const T, Rank>");
      if constexpr (sizeof...(A) == arguments_needed && refused<A...> == node_kind::none) {
        bound_arguments const b(a...);
        detail::launch(entry_, where, detail::resident_grid(entry_, where, b.view()), b.view());
      }
    }
  }
  /// Compiles (or finds) the code of such a launch, so that the launch itself is warm.
  template <class... A>
  void prepare(stream const& where, A&&... a) const {
    check();
    static_assert(sizeof...(A) == arguments_needed, "kiln[K-11] a launch needs one argument per kernel parameter (the context is not one)");
    static_assert(refused<A...> != node_kind::value, "kiln[K-15] a val<T> parameter takes a number of T's kind; convert it: an integer parameter takes no floating number");
    static_assert(refused<A...> != node_kind::pointer, "kiln[K-15] a ptr<T> parameter takes a buffer<T>, a device_ptr<T> or a T*; const ones need ptr<const T>");
    static_assert(refused<A...> != node_kind::array, "kiln[K-15] an array<T, Rank> parameter takes x.view(...) of Rank extents of a buffer<T>, or strided(...); const ones need array<const T, Rank>");
    if constexpr (sizeof...(A) == arguments_needed && refused<A...> == node_kind::none) {
      bound_arguments const b(a...);
      detail::prepare(entry_, where, b.view());
    }
  }
  /// What the code of such a launch takes of the device: registers, spills, shared memory, occupancy. Compiles it if it
  /// is not there. Without arguments: of the code that was made last. Errors: those of `launch`; kiln::error without
  /// arguments where nothing was compiled for the device.
  template <class... A>
  kernel_info info(stream const& where, A&&... a) const {
    check();
    if constexpr (sizeof...(A) == 0 && arguments_needed != 0) {
      return made(where.get_device());
    } else {
      static_assert(sizeof...(A) == arguments_needed, "kiln[K-11] info takes one argument per kernel parameter, or none");
      static_assert(refused<A...> != node_kind::value, "kiln[K-15] a val<T> parameter takes a number of T's kind; convert it: an integer parameter takes no floating number");
      static_assert(refused<A...> != node_kind::pointer, "kiln[K-15] a ptr<T> parameter takes a buffer<T>, a device_ptr<T> or a T*; const ones need ptr<const T>");
      static_assert(refused<A...> != node_kind::array, "kiln[K-15] an array<T, Rank> parameter takes x.view(...) of Rank extents of a buffer<T>, or strided(...); const ones need array<const T, Rank>");
      if constexpr (sizeof...(A) == arguments_needed && refused<A...> == node_kind::none) {
        bound_arguments const b(a...);
        return detail::info(entry_, where, b.view());
      } else {
        return {};
      }
    }
  }
  /// What the code that was made last for a device takes of it. Errors: kiln::error if there is none.
  static kernel_info made(device const& where) { return detail::info(entry_, where); }
  /// The grid for a problem, by the function given to kernel<...>(lambda, grid_function).
  template <class... Sizes>
  static constexpr kiln::grid grid(Sizes... sizes) {
    static_assert(!std::same_as<Grid, detail::no_grid>, "kiln[K-12] this kernel has no grid function: kernel<...>(lambda, [](auto... sizes) { return kiln::grid(...); })");
    if constexpr (std::same_as<Grid, detail::no_grid>)
      return kiln::grid();
    else
      return Grid{}(sizes...);
  }

  /// The hard answer: does not compile when a rule is broken, with the rule's message and the user's statement.
  static constexpr void check() {
    if constexpr (!ok) {
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc++26-extensions"
      static_assert(ok, detail::text_of<verdict_>());
#pragma clang diagnostic pop
#else
      detail::kernel_rejected<detail::text_of<verdict_>()>();
#endif
      constexpr int replay = [] {
        recorder r;
        r.replay = true;
        r.stop_at = verdict_.error.node;
        detail::record_into<L>(r, Attrs);
        return 0;
      }();
      (void)replay;
    }
  }
  /// The hard answer for a fixed target: does not compile when a rule is broken or the kernel does not fit T.
  template <target T>
  static constexpr void check_for() {
    check();
    if constexpr (ok && !capacity_<T>.error.ok()) {
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc++26-extensions"
      static_assert(capacity_<T>.error.ok(), detail::text_of<capacity_<T>>());
#pragma clang diagnostic pop
#else
      detail::kernel_rejected<detail::text_of<capacity_<T>>()>();
#endif
    }
  }

private:
  template <target T>
  static constexpr detail::verdict capacity_ = [] {
    diagnostic d = check_capacity(graph_.view(), T);
    return detail::verdict{d, detail::place_of(graph_.view(), d.node)};
  }();
};

namespace detail {
/// Stands for a kernel whose lambda was refused.
struct no_kernel {
  static constexpr bool ok = false;
  static constexpr void check() {}
};
template <class L>
inline constexpr bool captures = !(std::is_empty_v<L> && std::is_default_constructible_v<L>);
template <class L>
constexpr bool has_signature() {
  if constexpr (requires { &L::operator(); })
    return signature<decltype(&L::operator())>::known;
  else
    return false;
}
template <class L>
constexpr bool has_parameters() {
  if constexpr (has_signature<L>())
    return signature<decltype(&L::operator())>::parameters_known;
  else
    return true;
}
template <class L>
inline constexpr bool is_kernel_lambda = !captures<L> && has_signature<L>() && has_parameters<L>();
} // namespace detail

/// Makes a kernel from a lambda without captures. `Args`: optionally `attributes{...}` first, then the values that the
/// kernel's code depends on (tile sizes); they are part of its type.
/// Errors: K-07 a parameter's type, K-08 captures, K-09 the lambda's signature.
// The checks stand here, not in a function below, so that the user's line is the next one in a compiler's output.
template <fixed_string Name, auto... Args, class L>
constexpr auto kernel(L) {
  static_assert(!detail::captures<L>, "kiln[K-08] a kernel lambda cannot capture; pass values as parameters (val<T>) or template arguments");
  static_assert(detail::has_signature<L>(), "kiln[K-09] a kernel lambda is void (context& k, ptr<T>, val<T>, array<T, Rank>...): concrete parameter types, no result, not mutable");
  static_assert(detail::has_parameters<L>(), "kiln[K-07] a kernel parameter must be ptr<T>, val<T> or array<T, Rank>");
  if constexpr (detail::is_kernel_lambda<L>)
    return kernel_t<L, Name, detail::attributes_in<Args...>(), detail::no_grid>{};
  else
    return detail::no_kernel{};
}
template <class L>
constexpr auto kernel(L) {
  static_assert(detail::never<L>, "kiln[K-09] a kernel has a name: kernel<\"add\">([](context& k, ...) {...})");
  return detail::no_kernel{};
}
/// The same with a function from problem sizes to the grid, for `my_kernel.grid(m, n)`.
template <fixed_string Name, auto... Args, class L, class Grid>
constexpr auto kernel(L, Grid) {
  static_assert(!detail::captures<L>, "kiln[K-08] a kernel lambda cannot capture; pass values as parameters (val<T>) or template arguments");
  static_assert(detail::has_signature<L>(), "kiln[K-09] a kernel lambda is void (context& k, ptr<T>, val<T>, array<T, Rank>...): concrete parameter types, no result, not mutable");
  static_assert(detail::has_parameters<L>(), "kiln[K-07] a kernel parameter must be ptr<T>, val<T> or array<T, Rank>");
  if constexpr (detail::is_kernel_lambda<L>)
    return kernel_t<L, Name, detail::attributes_in<Args...>(), Grid>{};
  else
    return detail::no_kernel{};
}

} // namespace kiln
