// Local (shared) memory: allocations, their slots, and views. All of it is address arithmetic; nothing moves here.
#pragma once
#include <kiln/dsl/any.hpp>
#include <kiln/dsl/shape.hpp>

namespace kiln {

namespace detail {
template <int... D>
struct extent_list; // dsl/memory.hpp
}

/// What a pointer to a part of a buffer is for, from `access_ptr`.
enum class access : std::uint8_t { none, r, w, rw };
struct access_ptr_options {
  std::int64_t offset = 0;  ///< of the first element
  std::int64_t extent = -1; ///< elements; -1: all from there on
};

/// Where an element of local memory is: what `decl_buffer` takes as `.data`.
template <class T>
class local_pointer {
public:
  using element_type = T;
  constexpr local_pointer(recorder* r, int node) : recorder_(r), node_(node) {}
  recorder* recorder_; ///< for the library
  int node_;           ///< for the library: a view that begins there
};

/// One slot of a local allocation, or a part of one. Never owns storage.
template <class T, int... D>
class view : public detail::indexed_by<view<T, D...>, std::make_index_sequence<sizeof...(D)>> {
public:
  using element_type = T;
  using value_type = T;
  static constexpr int rank = sizeof...(D);
  static constexpr detail::extents dims = detail::extents_of<D...>;
  constexpr view(recorder* r, int node) : recorder_(r), node_(node) {}
  constexpr ~view() {}
  /// The view without its outermost axis, at index `i`; of a one-axis view, one element.
  constexpr auto operator[](detail::located_index i) const;
  /// Where it begins.
  constexpr local_pointer<T> data() const { return {recorder_, node_}; }
  /// Axes permuted: extent d of the result is extent P[d]. Errors: R-BD09.
  template <int... P>
  constexpr auto permute(site at = {}) const {
    static_assert(detail::included<detail::buffer_header<view>>, "kiln: permute is in a header of its own; #include <kiln/dsl/buffer.hpp>");
    if constexpr (detail::included<detail::buffer_header<view>>) return permuted<P...>(at);
  }
  /// The box of `size` that starts at `start`: `v.region(at(m, 0), extent<16, 64>)`, under the contract of `k.local_slice`.
  template <int... E>
  constexpr auto region(detail::coordinates<sizeof...(D)> start, detail::extent_list<E...>, site at = {}) const {
    static_assert(detail::included<detail::buffer_header<view>>, "kiln: region is in a header of its own; #include <kiln/dsl/buffer.hpp>");
    if constexpr (detail::included<detail::buffer_header<view>>) return box<E...>(start, at);
  }

  /// A pointer to `.extent` elements from `.offset` on, for `decl_buffer`: what is declared over it stays inside, and only reads or
  /// writes as said. Errors: R-BD07 outside, no access at all, or another one later.
  constexpr auto access_ptr(access a, access_ptr_options o = {}, site at = {}) const {
    static_assert(detail::included<detail::buffer_header<view>>, "kiln: access_ptr is in a header of its own; #include <kiln/dsl/buffer.hpp>");
    if constexpr (detail::included<detail::buffer_header<view>>) return limited(a, o, at);
  }

  // For the library, see detail::indexed_by.
  constexpr auto element(detail::located_index const* index) const;
  constexpr auto pointer(detail::located_index const* index) const;
  template <int V>
  constexpr auto load_vector(detail::located_index const* index) const;
  template <int V, class X>
  constexpr auto store_vector(detail::located_index const* index, X const& x) const;

  constexpr auto limited(access a, access_ptr_options const& o, site at) const;
  template <int... P>
  constexpr auto permuted(site at) const;
  template <int... E>
  constexpr auto box(detail::coordinates<sizeof...(D)> const& start, site at) const;

  recorder* recorder_; ///< for the library
  int node_;           ///< for the library
};

/// A local allocation of one or more slots, from `k.local_alloc<T, D...>(num)`. `b[i]` is slot i.
template <class T, int... D>
class bufs {
public:
  using element_type = T;
  static constexpr detail::extents dims = detail::extents_of<D...>;
  constexpr bufs(recorder* r, int node) : recorder_(r), node_(node) {}
  constexpr ~bufs() {}
  /// Slot `i`: a constant, or an integer that is the same in the whole CTA. Errors: R-BD01 out of range.
  constexpr view<T, D...> operator[](detail::located_index i) const;
  recorder* recorder_; ///< for the library
  int node_;           ///< for the library
};

/// The result of an asynchronous operation.
class token {
public:
  using element_type = bool;
  static constexpr detail::extents dims{};
  constexpr token() = default;
  constexpr token(recorder* r, int node) : recorder_(r), node_(node) {}
  /// The token that a var holds now, where a token is wanted.
  constexpr token(var<token> const& v, site at = {});
  constexpr ~token() {}
  recorder* recorder_ = nullptr; ///< for the library
  int node_ = -1;                ///< for the library
};

constexpr token::token(var<token> const& v, site at) : token(v.read(at)) {}

namespace detail {
template <class X>
inline constexpr bool is_view = false;
template <class T, int... D>
inline constexpr bool is_view<view<T, D...>> = true;

template <class T, extents E>
struct view_from : shaped<view, T, E, std::make_index_sequence<E.rank>> {};
} // namespace detail

template <class T, int... D>
constexpr view<T, D...> bufs<T, D...>::operator[](detail::located_index i) const {
  recorder& r = *recorder_;
  std::int32_t shape = r.nodes[node_].shape;
  int x = i.resolve(r);
  return {&r, r.push(op::view_index, {dtype_of<T>, node_kind::view, shape}, {node_, x}, {}, i.at)};
}

template <class T, int... D>
constexpr auto view<T, D...>::operator[](detail::located_index i) const {
  static_assert(rank >= 1, "kiln[T-11] a view of one element has no axis to index");
  constexpr detail::extents e = rank == 1 ? detail::all_ones(1) : detail::without_axis(dims, 0, false);
  using R = typename detail::view_from<T, e>::type;
  recorder& r = *recorder_;
  int x = i.resolve(r);
  return R{&r, r.push(op::view_index, detail::type_of<R>(r, node_kind::view), {node_, x}, {}, i.at)};
}

/// Bytes of one slot's elements: what a copy of it moves. A C++ constant.
template <class T, int... D>
constexpr int bytes_of(view<T, D...> const&) {
  return static_cast<int>(kiln::bytes_of(dtype_of<T>, detail::elements_of<D...>));
}

} // namespace kiln
