// Records kernels while a test runs: many variants of one program without a C++ compile each.
#pragma once
#include <kiln/dsl/context.hpp>
#include <kiln/graph/owned.hpp>

namespace kiln_test {

/// `run_time_recording t; auto p = t.pointer<kiln::f32>(); ... kiln::context& k = t.k; ... t.graph()`.
class run_time_recording {
public:
  kiln::recorder r;
  kiln::context k{r};

  template <class T>
  kiln::ptr<T> pointer() {
    return {&r, parameter<T>(kiln::node_kind::pointer, 0)};
  }
  template <class T>
  kiln::val<T> value() {
    return {&r, parameter<T>(kiln::node_kind::value, 0)};
  }
  template <class T, int Rank>
  kiln::array<T, Rank> array() {
    return {&r, parameter<T>(kiln::node_kind::array, Rank)};
  }
  kiln::graph_view graph() const { return r.view(); }

private:
  template <class T>
  int parameter(kiln::node_kind kind, int rank) {
    constexpr kiln::dtype t = kiln::dtype_of<std::remove_const_t<T>>;
    kiln::param_info p{.kind = kind, .type = t, .is_const = std::is_const_v<T>, .rank = static_cast<std::uint8_t>(rank)};
    p.node = r.push(kiln::op::param, {t, kind, 0}, {}, {r.params.size()}, kiln::site{0, ""});
    r.params.add() = p;
    return p.node;
  }
};

} // namespace kiln_test
