// One element of something that holds many: reads as its value, is assigned to write. What `A(i, j)` of a matched buffer, of a
// view of local memory and of a thread's array gives.
#pragma once
#include <kiln/dsl/local.hpp>

namespace kiln {

template <class T>
class element_ref;

namespace detail {

/// Where an element is. A cell of an array with a runtime index is chosen among `count` neighbouring cells.
struct element_place {
  enum class kind : std::uint8_t { global, local, cell } what = kind::global;
  std::int32_t node = -1;  ///< a pointer, a view of one element, or the first cell
  std::int32_t count = 1;  ///< cells
  std::int32_t index = -1; ///< which of them, a node; -1: the first
};

template <class T>
struct handle_traits<element_ref<T>> {
  static constexpr bool is_tile = false, is_pointer = false, is_var = true;
  using held = tile<T>;
};
template <class T>
struct read_type<element_ref<T>> {
  using type = tile<T>;
};

/// Runs `then(k)` where cell k is the one that the index names.
template <class F>
constexpr void choose_cell(recorder& r, element_place const& p, site at, F&& then) {
  for (int k = 0; k < p.count; ++k) {
    dtype const t = r.nodes[p.index].type;
    int const number = r.push(op::constant, {t, node_kind::value, 0}, {}, {k}, at);
    int const same = r.push(op::eq, {dtype::b1, node_kind::value, 0}, {p.index, number}, {}, at);
    int const begin = r.push(op::if_begin, {}, {same}, {-1, -1}, at);
    r.open(begin);
    then(k);
    int const end = r.push(op::if_end, {}, {}, {begin}, at);
    r.close();
    r.attribute(begin, 1) = end;
  }
}
/// A cell of element type t that nothing has been assigned to.
constexpr int unset_cell(recorder& r, result_type t, site at) {
  int const nothing = r.push(op::unset, {t.type, node_kind::value, t.shape}, {}, {}, at);
  return r.push(op::var, {t.type, node_kind::cell, t.shape}, {nothing}, {}, at);
}

constexpr int read_element(recorder& r, dtype t, element_place const& p, site at) {
  result_type const scalar{t, node_kind::value, 0};
  switch (p.what) {
  case element_place::kind::global: return r.push(op::load, scalar, {p.node, -1, -1}, {0, 0, 0}, at);
  case element_place::kind::local: {
    int const one = r.push(op::local_load, {t, node_kind::value, r.nodes[p.node].shape}, {p.node, -1}, {0}, at);
    return r.push(op::reshape, scalar, {one}, {}, at);
  }
  default: break;
  }
  if (p.index < 0) return r.push(op::var_get, scalar, {p.node}, {}, at);
  int const chosen = unset_cell(r, scalar, at);
  choose_cell(r, p, at, [&](int k) {
    int const x = r.push(op::var_get, scalar, {p.node + k}, {}, at);
    r.push(op::var_set, {}, {chosen, x}, {}, at);
  });
  return r.push(op::var_get, scalar, {chosen}, {}, at);
}
constexpr void write_element(recorder& r, dtype t, element_place const& p, int value, site at) {
  switch (p.what) {
  case element_place::kind::global: r.push(op::store, {}, {p.node, value, -1}, {0, 0}, at); return;
  case element_place::kind::local: {
    int const one = r.push(op::broadcast, {t, node_kind::value, r.nodes[p.node].shape}, {value}, {}, at);
    r.push(op::local_store, {}, {p.node, one}, {}, at);
    return;
  }
  default: break;
  }
  if (p.index < 0)
    r.push(op::var_set, {}, {p.node, value}, {}, at);
  else
    choose_cell(r, p, at, [&](int k) { r.push(op::var_set, {}, {p.node + k, value}, {}, at); });
}

} // namespace detail

/// A reference to one element, of element type T. Reads happen where the value is used, and see the latest assignment;
/// `k.let(A(i, j))` keeps what is there now.
template <class T>
class element_ref : public detail::operators<element_ref<T>> {
public:
  using element_type = T;
  static constexpr detail::extents dims{};
  constexpr element_ref(recorder* r, detail::element_place p, bool writable, site at) : recorder_(r), place_(p), writable_(writable), at_(at) {}
  constexpr element_ref(element_ref const&) = default;
  constexpr ~element_ref() {}

  constexpr operator tile<T>() const { return read(at_); }
  /// Errors: T-14 through a pointer to const; K-04 another element type.
  constexpr element_ref const& operator=(element_ref const& x) const {
    write(x.read(at_).node_, at_);
    return *this;
  }
  template <operand X>
  constexpr auto operator=(X const& x) const {
    constexpr bool fits = [] {
      if constexpr (literal<X>)
        return weak_promotable<T, X> || std::same_as<T, X>;
      else
        return std::same_as<detail::element_of<X>, T> && detail::read_t<X>::dims.rank == 0;
    }();
    static_assert(fits, "kiln[K-04] the element has another element type than the new value, or the value is a tile; cast<T>(...) or reduce it");
    if constexpr (fits) write(detail::conform<T, detail::extents{}>(*recorder_, x, at_).node_, at_);
  }
  template <operand R>
  constexpr auto operator+=(R const& r) const { return update<op::add>(r); }
  template <operand R>
  constexpr auto operator-=(R const& r) const { return update<op::sub>(r); }
  template <operand R>
  constexpr auto operator*=(R const& r) const { return update<op::mul>(r); }
  template <operand R>
  constexpr auto operator/=(R const& r) const { return update<op::div>(r); }

  /// The present content.
  constexpr tile<T> read(site at = {}) const { return {recorder_, detail::read_element(*recorder_, dtype_of<T>, place_, at)}; }
  /// For the library: records an assignment.
  constexpr void write(int value, site at) const {
    if (!writable_) recorder_->fail(at) << "kiln[T-14] an element of a buffer over const memory is assigned; declare the parameter ptr<T>";
    detail::write_element(*recorder_, dtype_of<T>, place_, value, at);
  }

  recorder* recorder_; ///< for the library

private:
  template <op O, class R>
  constexpr auto update(R const& r) const {
    static_assert(detail::types_combine<element_ref, R>() && detail::shapes_combine<element_ref, R>(), "kiln[T-04] the operand's element type does not combine with the element's; cast<T>(...) it");
    static_assert(detail::keeps_type<O, element_ref, R>(), "kiln[K-04] the element has another element type than the result; cast<T>(...) it");
    if constexpr (detail::computes_binary<O, element_ref, R>() && detail::keeps_type<O, element_ref, R>()) write(detail::binary<O>(*this, r, at_).node_, at_);
  }
  detail::element_place place_;
  bool writable_;
  site at_;
};

/// A thread's own array, from `k.alloc_local<T, D...>()`: kept in registers, one variable an element. Nothing may be read before
/// its first assignment. A constant index names a variable; a runtime index chooses among all of them.
template <class T, int... D>
class local_array : public detail::indexed_by<local_array<T, D...>, std::make_index_sequence<sizeof...(D)>> {
public:
  using element_type = T;
  static constexpr detail::extents dims = detail::extents_of<D...>;
  constexpr local_array(recorder* r, int first, char const* name) : recorder_(r), first_(first), name_(name ? name : "a local array") {}
  constexpr ~local_array() {}
  constexpr element_ref<T> operator[](detail::located_index i) const
    requires(sizeof...(D) == 1)
  {
    return element(&i);
  }
  constexpr element_ref<T> element(detail::located_index const* index) const { // for the library
    recorder& r = *recorder_;
    site const where = index[0].at;
    std::int64_t number = 0;
    bool constant = true;
    for (int d = 0; d < dims.rank; ++d) {
      if (index[d].node < 0 && (index[d].number < 0 || index[d].number >= dims.extent[d]))
        r.fail(where) << "kiln[R-BD01] index " << index[d].number << " along axis " << d << " of " << name_ << ", valid 0.." << dims.extent[d] - 1;
      constant = constant && index[d].node < 0;
      number = number * dims.extent[d] + index[d].number;
    }
    detail::element_place p{detail::element_place::kind::cell, first_};
    if (constant) {
      if (r.error.ok()) p.node += static_cast<std::int32_t>(number);
      return {recorder_, p, true, where};
    }
    // Row-major: ((i0 * e1) + i1) * e2 + ..
    tile<i32> flat{recorder_, -1};
    for (int d = 0; d < dims.rank; ++d) {
      tile<i32> x{recorder_, index[d].resolve(r)};
      if (r.nodes[x.node_].type != dtype::i32) x.node_ = r.push(op::cast, {dtype::i32, node_kind::value, 0}, {x.node_}, {}, where);
      flat.node_ = d == 0 ? x.node_ : detail::binary<op::add>(detail::binary<op::mul>(flat, dims.extent[d], where), x, where).node_;
    }
    p.count = static_cast<std::int32_t>(detail::elements_of<D...>);
    p.index = flat.node_;
    return {recorder_, p, true, where};
  }

private:
  recorder* recorder_;
  int first_;
  char const* name_;
};

/// One element of shared memory for each CTA, from `k.shared_scalar<T>()`: assigned and read like a variable, with the ordering
/// rules of shared memory.
template <class T>
class shared_element : public element_ref<T> {
public:
  constexpr shared_element(recorder* r, view<T, 1> const& v, site at)
      : element_ref<T>(r, {detail::element_place::kind::local, v.node_}, true, at), storage(v) {}
  using element_ref<T>::operator=;
  view<T, 1> storage; ///< as a view, for decl_buffer and the like
};
namespace detail {
template <class T>
struct handle_traits<shared_element<T>> : handle_traits<element_ref<T>> {};
template <class T>
struct read_type<shared_element<T>> : read_type<element_ref<T>> {};
} // namespace detail

} // namespace kiln
