// Choosing among configurations of a kernel by measuring them: a product of value lists, filtered by what obeys the rules
// while the C++ compiler runs and by what fits the device, timed on the device, remembered on disk. Included on its own.
#pragma once
#include <kiln/kernel.hpp>
#include <kiln/runtime/tune.hpp>

#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>

#include <string>
#include <type_traits>
#include <utility>

namespace kiln {

/// One list of a configuration space: `values<64, 128, 256>`. Numbers, bools, enumerators or `attributes{...}`.
template <auto... V> struct values {};

namespace detail {

template <auto V> struct tuning_value {};
template <class... Values> struct tuning_values;
template <auto... V> struct tuning_values<tuning_value<V>...> {
  static std::string text() {
    std::string s = "<";
    int n = 0;
    (((s += n++ ? ", " : "") += text_of_value<V>()), ...);
    return s + ">";
  }
  /// The kernel of this point. `Make` is a lambda with template parameters only.
  template <class Make> static decltype(auto) kernel_of(Make const& make) { return make.template operator()<V...>(); }
  template <class Make> using kernel_type = std::remove_cvref_t<decltype(std::declval<Make const&>().template operator()<V...>())>;

private:
  template <auto W> static std::string text_of_value() {
    if constexpr (std::is_same_v<decltype(W), bool const> || std::is_same_v<decltype(W), bool>) return W ? "true" : "false";
    else if constexpr (std::is_arithmetic_v<decltype(W)> || std::is_enum_v<decltype(W)>) return std::to_string(+W);
    else if constexpr (requires { W.num_warps; }) return "num_warps " + std::to_string(W.num_warps);
    else return "..";
  }
};

template <class List> struct tuning_list;
template <auto... V> struct tuning_list<values<V...>> {
  using type = boost::mp11::mp_list<tuning_value<V>...>;
};

template <class Make> struct obeys_the_rules {
  template <class Point> using fn = std::bool_constant<Point::template kernel_type<Make>::ok>;
};

inline std::string key_text(std::string const& s) { return s; }
inline std::string key_text(char const* s) { return s; }
inline std::string key_text(bool b) { return b ? "true" : "false"; }
inline std::string key_text(dtype t) { return std::string(name_of(t)); }
template <class T> requires std::is_arithmetic_v<T> std::string key_text(T v) { return std::to_string(v); }

} // namespace detail

/// The space of all combinations of its lists: `configurations<values<64, 128>, values<32, 64>>`.
template <class... Lists> struct configurations {
  static_assert(sizeof...(Lists) > 0, "kiln: a configuration space is a product of values<...>");
  /// Every point, as a list of types.
  using points = boost::mp11::mp_product<detail::tuning_values, typename detail::tuning_list<Lists>::type...>;
};

/// What a choice depends on beside device and kernels: sizes, element types, words. `key(M, N, K)`.
struct tuning_key {
  std::string text;
};
template <class... Parts> tuning_key key(Parts const&... parts) {
  std::string text;
  int n = 0;
  (((text += n++ ? ", " : "") += detail::key_text(parts)), ...);
  return {text};
}

/// The choice of an `autotune`.
template <class Points, class Make> class tuned {
public:
  tuned(Make const& make, detail::tuning_choice choice, std::string text) : make_(make), choice_(choice), text_(std::move(text)) {}

  /// Calls `use` with the chosen kernel: `best([&](auto const& kern) { kern.launch(...); })`.
  template <class Use> void operator()(Use&& use) const {
    [&]<class... P>(boost::mp11::mp_list<P...>) {
      int i = 0;
      (void)((i++ == choice_.point && (use(P::kernel_of(make_)), true)) || ...);
    }(Points{});
  }
  /// The chosen values, "<128, 64>".
  std::string const& text() const { return text_; }
  /// The measured time of one run; also of a choice that was remembered.
  double seconds() const { return choice_.seconds; }
  /// Nothing was measured now.
  bool remembered() const { return choice_.remembered; }

private:
  Make make_;
  detail::tuning_choice choice_;
  std::string text_;
};

/// Measures a kernel's configurations on a device or stream and chooses the fastest for this key:
///
///     using tiles = configurations<values<64, 128, 256>, values<32, 64>>;
///     auto best = autotune(tiles{}, dev, key(M, N, K), []<auto... V>() -> auto& { return gemm<V...>; },
///                          [&](auto const& kern) { kern.launch(dev, kern.grid(M, N), a, b, c, M, N, K); });
///     best([&](auto const& kern) { kern.launch(dev, kern.grid(M, N), a, b, c, M, N, K); });
///
/// `run` launches its argument on that device or stream; it is called many times, with every kernel that obeys the rules
/// (`ok`) and fits (`fits`), so it must not mind. Kernels that spill registers are left out unless all do. Before each
/// timed run the device's last cache is flushed. The choice is kept in memory and in the disk cache, per device, key,
/// and the kernels themselves: a changed kernel is measured anew. Any thread: equal calls share one tuning.
/// KILN_LOG=tune tells each measurement; on a terminal one line shows the progress.
/// Errors: kiln::error if no configuration runs, with the last reason, and inside a graph capture where nothing is
/// remembered; it does not compile when no configuration obeys the rules.
template <class... Lists, class Make, class Run>
auto autotune(configurations<Lists...>, stream const& where, tuning_key const& key, Make const& make, Run&& run) {
  using all = typename configurations<Lists...>::points;
  using points = boost::mp11::mp_copy_if_q<all, detail::obeys_the_rules<Make>>;
  static_assert(!boost::mp11::mp_empty<points>::value, "kiln: autotune: no configuration obeys the rules; see message() of one of the kernels");
  struct both {
    Make const& make;
    std::remove_reference_t<Run>& run;
  } context{make, run};
  return [&]<class... P>(boost::mp11::mp_list<P...>) {
    target const& t = where.get_device().target();
    detail::tuning_point const list[] = {{P::text(), P::template kernel_type<Make>::graph(), P::template kernel_type<Make>::fits(t),
                                          [](void* c) {
                                            auto& b = *static_cast<both*>(c);
                                            b.run(P::kernel_of(b.make));
                                          },
                                          [](stream const& s) { return P::template kernel_type<Make>::made(s.get_device()); }}...};
    detail::tuning_choice const choice = detail::tune(where, key.text, list, &context);
    return tuned<points, Make>(make, choice, list[choice.point].text);
  }(points{});
}

} // namespace kiln
