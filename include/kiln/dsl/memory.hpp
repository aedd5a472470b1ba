// Global memory: arrays and their regions, loads, stores, atomics.
#pragma once
#include <kiln/dsl/any.hpp>

namespace kiln {

namespace detail {
template <int... D>
struct extent_list {
  static constexpr extents dims = extents_of<D...>;
  static_assert(((D >= 1) && ...), "kiln[T-02] extents are at least 1");
};
} // namespace detail

/// `extent<BM, BK>`: the static size of a region.
template <int... D>
inline constexpr detail::extent_list<D...> extent{};
/// `tile_size<BM, BN>`: the part of an output that one CTA makes.
template <int... D>
inline constexpr detail::extent_list<D...> tile_size{};

/// `at(m, kk)`: where a region starts, one integer per axis.
template <class... X>
constexpr detail::coordinates<sizeof...(X)> at(X const&... x) {
  return {{detail::any_value(x)...}};
}

/// A box of an array: a runtime start and a static size. It carries its own bounds mask, so that no access through it
/// leaves the array.
template <class T, int... D>
class region {
public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;
  static constexpr detail::extents dims = detail::extents_of<D...>;
  constexpr region(recorder* r, int node) : recorder_(r), node_(node) {}
  recorder* recorder_; ///< for the library
  int node_;           ///< for the library
};

/// Runtime extents of an array, from `array::shape()`.
template <int Rank>
struct runtime_shape {
  recorder* recorder_;
  int node_; ///< of the array
};

/// A kernel parameter that bundles pointer, extents and strides (both i64, in elements).
template <class T, int Rank>
class array {
public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;
  static constexpr int rank = Rank;
  static_assert(Rank >= 1 && Rank <= max_rank, "kiln[T-02] an array has 1 to 6 axes");

  constexpr array(recorder* r, int node) : recorder_(r), node_(node) {}

  /// Number of elements along `axis`.
  constexpr val<i64> extent(int axis, site at = {}) const { return query(op::extent, axis, at); }
  /// Elements between neighbours along `axis`; may be 0 or negative.
  constexpr val<i64> stride(int axis, site at = {}) const { return query(op::stride, axis, at); }
  /// All extents, for `k.program_tile` and `k.tiles`.
  constexpr runtime_shape<Rank> shape() const { return {recorder_, node_}; }
  /// Pointer to the element at the origin.
  constexpr ptr<T> data(site at = {}) const {
    return {recorder_, recorder_->push(op::array_data, {dtype_of<value_type>, node_kind::pointer, 0}, {node_}, {}, at)};
  }

  /// The box of `size` that starts at `start`: `a.region(at(m, kk), extent<BM, BK>)`. Starts are integers of any type.
  template <int... D>
  constexpr auto region(detail::coordinates<sizeof...(D)> start, detail::extent_list<D...>, site at = {}) const {
    static_assert(sizeof...(D) == Rank, "kiln[T-05] a region needs one start and one extent per axis of the array");
    std::int32_t starts[sizeof...(D)]{};
    for (int i = 0; i < static_cast<int>(sizeof...(D)); ++i)
      starts[i] = start.at[i].resolve_index(*recorder_, dtype::i64, "the start of a region", at);
    std::int32_t s = recorder_->intern(detail::to_shape(detail::extents_of<D...>));
    int n = recorder_->begin_node(op::region, {dtype_of<value_type>, node_kind::region, s}, at);
    recorder_->add_operand(node_);
    for (std::int32_t x : starts) recorder_->add_operand(x);
    return kiln::region<T, D...>{recorder_, n};
  }

  template <int N, int... D>
    requires(N != sizeof...(D))
  constexpr auto region(detail::coordinates<N> const&, detail::extent_list<D...>) const {
    static_assert(N == sizeof...(D), "kiln[T-05] a region needs one start and one extent per axis of the array");
    return kiln::region<T, D...>{recorder_, node_};
  }

  recorder* recorder_; ///< for the library
  int node_;           ///< for the library

private:
  constexpr val<i64> query(op code, int axis, site at) const {
    if (axis < 0 || axis >= Rank)
      recorder_->fail() << "kiln[R-BD01] axis " << axis << " of an array of rank " << Rank << ", valid 0.." << Rank - 1;
    return {recorder_, recorder_->push(code, {dtype::i64, node_kind::value, 0}, {node_}, {axis}, at)};
  }
};

/// What loads and stores accept: a pointer, a tile of pointers, or a region.
namespace detail {
template <class X>
inline constexpr bool is_region = false;
template <class T, int... D>
inline constexpr bool is_region<region<T, D...>> = true;
} // namespace detail
template <class X>
concept address_like = pointer_like<X> || detail::is_region<X>;

struct load_options {
  detail::any_value mask{};  ///< b1, of the accessed shape or broadcast to it; false elements are not read
  detail::any_value other{}; ///< what masked-off elements give; 0 when absent. Needs a mask (or a region)
  kiln::cache cache = kiln::cache::none;
  kiln::evict evict = kiln::evict::none;
  bool is_volatile = false;
};
struct store_options {
  detail::any_value mask{}; ///< b1; false elements are not written
  kiln::cache cache = kiln::cache::none;
  kiln::evict evict = kiln::evict::none;
};

struct prefetch_options {
  detail::any_value mask{}; ///< b1; false elements are not asked for
  cache_level level = cache_level::l2;
};

namespace detail {
template <class A>
constexpr auto read_address(A const& a, site at) {
  if constexpr (is_region<A>)
    return a;
  else
    return read(a, at);
}
struct resolved_access {
  int mask, other;
};
/// Records mask and other of an access of node `n`'s shape.
constexpr resolved_access resolve_access(recorder& r, int n, bool is_region, any_value const& mask, any_value const& other, site at) {
  node const a = r.nodes[n];
  if (other.present() && !mask.present() && !is_region)
    r.fail() << "kiln[T-13] .other without .mask: nothing would be masked off; give .mask, or access a region of an array";
  resolved_access x{};
  x.mask = mask.resolve(r, dtype::b1, a.shape, ".mask", at);
  x.other = other.resolve(r, a.type, a.shape, ".other", at);
  return x;
}
template <class A>
constexpr int address_dtype_index = static_cast<int>(dtype_of<std::remove_const_t<typename A::element_type>>);
} // namespace detail

/// Reads global memory: a tile of the address's shape. `load(x + i, {.mask = i < n, .other = -inf})`.
/// Masked-off elements give `.other`, or 0; a region masks what lies outside its array.
/// Errors: T-13 `.other` without a mask; T-04, T-05 mask or other of a wrong type or shape.
template <address_like A>
constexpr auto load(A const& address, load_options o = {}, site at = {}) {
  auto p = detail::read_address(address, at);
  recorder& r = *p.recorder_;
  auto x = detail::resolve_access(r, p.node_, detail::is_region<A>, o.mask, o.other, at);
  node const n = r.nodes[p.node_];
  using R = typename detail::tile_from<typename decltype(p)::value_type, decltype(p)::dims>::type;
  return R{&r, r.push(op::load, {n.type, node_kind::value, n.shape}, {p.node_, x.mask, x.other},
                      {static_cast<int>(o.cache), static_cast<int>(o.evict), o.is_volatile}, at)};
}

template <class T, int Rank>
constexpr auto load(array<T, Rank> const& a, load_options = {}) {
  static_assert(detail::never<T>, "kiln[T-17] load takes a part of an array, a.region(at(...), extent<...>), or pointers, a.data() + i");
  return tile<std::remove_const_t<T>>{a.recorder_, a.node_};
}

/// Writes global memory. The value's shape broadcasts to the address's; its element type must be the pointer's.
template <address_like A, operand V>
constexpr auto store(A const& address, V const& value, store_options o = {}, site at = {}) {
  using P = decltype(detail::read_address(address, at));
  using T = typename P::value_type;
  static_assert(!std::is_const_v<typename P::element_type>, "kiln[T-14] store through a pointer to const; declare the parameter ptr<T> or array<T, Rank>");
  constexpr bool type_ok = [] {
    if constexpr (literal<V>)
      return weak_promotable<T, V> || std::same_as<T, V>;
    else
      return std::same_as<T, detail::element_of<V>>;
  }();
  static_assert(type_ok, "kiln[T-04] the stored element type differs from the pointer's; cast<T>(...) the value");
  constexpr bool shape_ok = [] {
    if constexpr (literal<V>)
      return true;
    else
      return detail::broadcast(detail::read_t<V>::dims, P::dims) == P::dims;
  }();
  static_assert(shape_ok, "kiln[T-05] the stored shape does not broadcast to the address's shape");
  if constexpr (type_ok && shape_ok) {
    auto p = detail::read_address(address, at);
    recorder& r = *p.recorder_;
    int v = detail::conform<T, P::dims>(r, value, at).node_;
    int mask = o.mask.resolve(r, dtype::b1, r.nodes[p.node_].shape, ".mask", at);
    r.push(op::store, {}, {p.node_, v, mask}, {static_cast<int>(o.cache), static_cast<int>(o.evict)}, at);
  }
}

template <class T, int Rank, class V>
constexpr void store(array<T, Rank> const&, V const&, store_options = {}) {
  static_assert(detail::never<T>, "kiln[T-17] store takes a part of an array, a.region(at(...), extent<...>), or pointers, a.data() + i");
}

struct atomic_options {
  detail::any_value mask{};
  memory_order order = memory_order::relaxed;
  memory_scope scope = memory_scope::gpu;
};

namespace detail {
constexpr bool atomic_accepts(atomic_op o, dtype t) {
  bool word = bits_of(t) == 32 || bits_of(t) == 64;
  switch (o) {
  case atomic_op::add: return (is_int(t) && word) || t == dtype::f16 || t == dtype::bf16 || t == dtype::f32 || t == dtype::f64;
  case atomic_op::min:
  case atomic_op::max: return (is_int(t) && word) || t == dtype::f32 || t == dtype::f64;
  case atomic_op::xchg: return word && !is_bool(t);
  default: return is_int(t) && word;
  }
}
/// Records an atomic; returns the old values. Masked-off elements are not touched and give 0.
template <atomic_op O, class A, class V>
constexpr auto atomic(A const& address, V const& value, atomic_options const& o, site at) {
  auto p = read(address, at);
  using P = decltype(p);
  recorder& r = *p.recorder_;
  int v = conform<typename P::value_type, P::dims>(r, value, at).node_;
  int mask = o.mask.resolve(r, dtype::b1, r.nodes[p.node_].shape, ".mask", at);
  node const n = r.nodes[p.node_];
  return typename tile_from<typename P::value_type, P::dims>::type{
      &r, r.push(op::atomic_rmw, {n.type, node_kind::value, n.shape}, {p.node_, v, mask},
                 {static_cast<int>(O), static_cast<int>(o.order), static_cast<int>(o.scope)}, at)};
}
template <class A, class V>
constexpr bool atomic_value_ok() {
  using P = read_t<A>;
  if constexpr (literal<V>)
    return weak_promotable<typename P::value_type, V>;
  else
    return std::same_as<typename P::value_type, element_of<V>> && broadcast(read_t<V>::dims, P::dims) == P::dims;
}
template <class A>
inline constexpr bool to_const = std::is_const_v<typename read_t<A>::element_type>;
template <atomic_op O, class A>
inline constexpr bool atomic_type_ok = atomic_accepts(O, dtype_of<typename read_t<A>::value_type>);
} // namespace detail

#define KILN_DETAIL_ATOMIC(name, code)                                                                                 \
  template <pointer_like A, operand V>                                                                                 \
  constexpr auto name(A const& address, V const& value, atomic_options o = {}, site at = {})                           \
    KILN_DETAIL_REFUSE("kiln[T-14] " #name " through a pointer to const; declare the parameter ptr<T>", !detail::to_const<A>) \
    KILN_DETAIL_REFUSE("kiln[T-06] " #name " does not accept the element type; see the table of atomics in docs/operations.md", detail::atomic_type_ok<atomic_op::code, A>) \
    KILN_DETAIL_REFUSE("kiln[T-04] the operand's element type or shape differs from the pointer's; cast<T>(...) or broadcast it", detail::atomic_value_ok<A, V>()) { \
    KILN_DETAIL_CHECK("kiln[T-14] " #name " through a pointer to const; declare the parameter ptr<T>", !detail::to_const<A>) \
    KILN_DETAIL_CHECK("kiln[T-06] " #name " does not accept the element type; see the table of atomics in docs/operations.md", detail::atomic_type_ok<atomic_op::code, A>) \
    KILN_DETAIL_CHECK("kiln[T-04] the operand's element type or shape differs from the pointer's; cast<T>(...) or broadcast it", detail::atomic_value_ok<A, V>()) \
    if constexpr (detail::atomic_value_ok<A, V>()) return detail::atomic<atomic_op::code>(address, value, o, at);      \
  }
/// Atomic read-modify-write of every addressed element; the old values. Element types: add: 32- and 64-bit integers, f16,
/// bf16, f32, f64; min, max: the same without 16-bit floats; and, or, xor: 32- and 64-bit integers; xchg: any 32- or
/// 64-bit type. Float additions round once per update; their order is unspecified.
KILN_DETAIL_ATOMIC(atomic_add, add)
KILN_DETAIL_ATOMIC(atomic_min, min)
KILN_DETAIL_ATOMIC(atomic_max, max)
KILN_DETAIL_ATOMIC(atomic_and, bit_and)
KILN_DETAIL_ATOMIC(atomic_or, bit_or)
KILN_DETAIL_ATOMIC(atomic_xor, bit_xor)
KILN_DETAIL_ATOMIC(atomic_xchg, xchg)
#undef KILN_DETAIL_ATOMIC

/// Atomic compare-and-swap: where an element equals `expected` (bit for bit) it becomes `desired`; the old values.
/// Element types: 32- and 64-bit integers.
template <pointer_like A, operand E, operand V>
constexpr auto atomic_cas(A const& address, E const& expected, V const& desired, atomic_options o = {}, site at = {}) {
  using P = detail::read_t<A>;
  static_assert(!std::is_const_v<typename P::element_type>, "kiln[T-14] atomic_cas through a pointer to const; declare the parameter ptr<T>");
  static_assert(detail::atomic_accepts(atomic_op::bit_and, dtype_of<typename P::value_type>), "kiln[T-06] atomic_cas needs 32- or 64-bit integers; bitcast floats");
  static_assert(detail::atomic_value_ok<A, E>() && detail::atomic_value_ok<A, V>(),
                "kiln[T-04] an operand's element type or shape differs from the pointer's; cast<T>(...) or broadcast it");
  auto p = detail::read(address, at);
  recorder& r = *p.recorder_;
  int e = detail::conform<typename P::value_type, P::dims>(r, expected, at).node_;
  int v = detail::conform<typename P::value_type, P::dims>(r, desired, at).node_;
  int mask = o.mask.resolve(r, dtype::b1, r.nodes[p.node_].shape, ".mask", at);
  node const n = r.nodes[p.node_];
  return typename detail::tile_from<typename P::value_type, P::dims>::type{
      &r, r.push(op::atomic_cas, {n.type, node_kind::value, n.shape}, {p.node_, e, v, mask},
                 {static_cast<int>(o.order), static_cast<int>(o.scope)}, at)};
}

} // namespace kiln
