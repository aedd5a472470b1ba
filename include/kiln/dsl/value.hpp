// The values of a kernel: tiles, scalars, pointers and vars. A value is an immutable handle, a node index with a type that
// carries element type and shape; the graph itself is a value, not a type, which is what keeps compile times low.
#pragma once
#include <kiln/dtype/convert.hpp>
#include <kiln/dtype/promote.hpp>
#include <kiln/graph/recorder.hpp>
#include <kiln/meta/diagnose.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace kiln {

template <class T, int... D>
class tile;
template <class T, int... D>
class pointers;
template <class V>
class var;

/// A scalar of a kernel: a tile of rank 0.
template <class T>
using val = tile<T>;
/// A pointer into global memory. `ptr<const T>` is only read through.
template <class T>
using ptr = pointers<T>;

namespace detail {

template <class...>
inline constexpr bool never = false;

/// Extents at the level of types. rank -1: no such shape.
struct extents {
  int rank = 0;
  int extent[max_rank]{};
  friend constexpr bool operator==(extents const&, extents const&) = default;
};
template <int... D>
inline constexpr extents extents_of{sizeof...(D), {D...}};

constexpr kiln::shape to_shape(extents const& e) {
  kiln::shape s;
  s.rank = e.rank;
  for (int i = 0; i < e.rank; ++i) s.extent[i] = e.extent[i];
  return s;
}

/// NumPy's rule: align at the last axis; equal extents stay, an extent of 1 takes the other's.
constexpr extents broadcast(extents const& a, extents const& b) {
  extents r;
  r.rank = a.rank > b.rank ? a.rank : b.rank;
  for (int i = 0; i < r.rank; ++i) {
    int ai = i - (r.rank - a.rank), bi = i - (r.rank - b.rank);
    int x = ai < 0 ? 1 : a.extent[ai], y = bi < 0 ? 1 : b.extent[bi];
    if (x != y && x != 1 && y != 1) return {-1, {}};
    r.extent[i] = x == 1 ? y : x;
  }
  return r;
}

template <template <class, int...> class Handle, class T, extents E, class Axes>
struct shaped;
template <template <class, int...> class Handle, class T, extents E, std::size_t... I>
struct shaped<Handle, T, E, std::index_sequence<I...>> {
  using type = Handle<T, E.extent[I]...>;
};
// tile<T, extents...> for extents that were computed. Class templates, not aliases: g++ 12 crashes on an alias whose
// class-type argument depends on a template parameter.
template <class T, extents E>
struct tile_from : shaped<tile, T, E, std::make_index_sequence<E.rank>> {};
template <class T, extents E>
struct pointers_from : shaped<pointers, T, E, std::make_index_sequence<E.rank>> {};

template <class X>
struct handle_traits {
  static constexpr bool is_tile = false, is_pointer = false, is_var = false;
};
template <class T, int... D>
struct handle_traits<tile<T, D...>> {
  static constexpr bool is_tile = true, is_pointer = false, is_var = false;
};
template <class T, int... D>
struct handle_traits<pointers<T, D...>> {
  static constexpr bool is_tile = false, is_pointer = true, is_var = false;
};
template <class V>
struct handle_traits<var<V>> {
  static constexpr bool is_tile = false, is_pointer = false, is_var = true;
  using held = V;
};

template <class X>
struct read_type {
  using type = X;
};
template <class V>
struct read_type<var<V>> {
  using type = V;
};
/// What reading X gives: a var's content, anything else itself.
template <class X>
using read_t = typename read_type<X>::type;

template <class X>
concept tile_handle = handle_traits<X>::is_tile;
template <class X>
concept pointer_handle = handle_traits<X>::is_pointer;

} // namespace detail

/// A tile, scalar, or a var that holds one.
template <class X>
concept tile_like = detail::tile_handle<detail::read_t<std::remove_cvref_t<X>>>;
/// A pointer, a tile of pointers, or a var that holds one.
template <class X>
concept pointer_like = detail::pointer_handle<detail::read_t<std::remove_cvref_t<X>>>;
/// A plain C++ number written into a kernel. It adopts the type of the tile it meets.
template <class X>
concept literal = std::is_arithmetic_v<X>;
/// What may stand on either side of an operator.
template <class X>
concept operand = tile_like<X> || literal<std::remove_cvref_t<X>>;

namespace detail {

/// A total order of operand types, so that of two operands exactly one class provides == and !=.
template <class X>
constexpr int compare_key(int i) {
  using V = read_t<X>;
  if (i == 0) return handle_traits<X>::is_var;
  if (i == 1) return V::dims.rank;
  if (i == 2) return static_cast<int>(dtype_of<typename V::element_type>);
  return V::dims.extent[i - 3];
}
template <class X, class Y>
constexpr bool ordered_before() {
  for (int i = 0; i < 3 + max_rank; ++i)
    if (int x = compare_key<X>(i), y = compare_key<Y>(i); x != y) return x < y;
  return false;
}

/// The bit pattern of a C++ number converted to T, by the rules of docs/numerics.md.
template <class T, class S>
constexpr std::int64_t literal_bits(S s) {
  // The common cases by what the language does, which is the same: a compiler evaluates this for every number in a kernel.
  if constexpr (std::same_as<T, f32> && std::same_as<S, f32>) return static_cast<std::int64_t>(__builtin_bit_cast(std::uint32_t, s));
  if constexpr (std::same_as<T, f32> && std::is_integral_v<S>)
    if (s == S{0}) return 0;
  if constexpr (is_int(dtype_of<T>) && std::is_integral_v<S>) return static_cast<std::int64_t>(static_cast<T>(s));
  const scalar c = make_scalar(dtype_of<T>, s);
  return is_int(c.type) ? int_of(c) : static_cast<std::int64_t>(c.bits);
}
/// Reports a C++ number that would be another number as a T.
template <class T, class S>
constexpr void check_literal(recorder& r, S s) {
  if constexpr (std::same_as<T, S>) return;
  if constexpr (is_int(dtype_of<T>) && std::is_integral_v<S>)
    if (static_cast<S>(static_cast<T>(s)) == s && (static_cast<T>(s) < T{0}) == (s < S{0})) return;
  if (literal_fits(dtype_of<T>, s)) return;
  if constexpr (std::is_integral_v<S> && sizeof(S) <= 4)
    r.fail() << "kiln[T-04] the number " << static_cast<std::int64_t>(s) << " does not fit the element type "
             << name_of(dtype_of<T>) << "; cast the other operand to a wider type";
  else
    r.fail() << "kiln[T-04] a number does not fit the element type " << name_of(dtype_of<T>)
             << "; cast the other operand to a wider type";
}

constexpr site last_site(recorder const& r) {
  if (r.nodes.empty()) return {0, ""};
  node const& n = r.nodes[r.nodes.size() - 1];
  return {n.line, r.files[n.file]};
}

template <class X>
constexpr auto read(X const& x, site at);
template <op O, class A, class B>
constexpr auto binary(A const& a, B const& b, site at);
template <op O, class A>
constexpr auto unary(A const& a, site at);
template <class P, class I>
constexpr auto offset(P const& p, I const& i, bool negative, site at);

template <class X>
using element_of = typename read_t<std::remove_cvref_t<X>>::element_type;

template <class A, class B>
constexpr bool types_combine() {
  using X = std::remove_cvref_t<read_t<A>>;
  using Y = std::remove_cvref_t<read_t<B>>;
  if constexpr (literal<X>)
    return weak_promotable<typename Y::element_type, X>;
  else if constexpr (literal<Y>)
    return weak_promotable<typename X::element_type, Y>;
  else
    return promotable<typename X::element_type, typename Y::element_type>;
}
template <class A, class B>
constexpr bool shapes_combine() {
  using X = std::remove_cvref_t<read_t<A>>;
  using Y = std::remove_cvref_t<read_t<B>>;
  if constexpr (literal<X> || literal<Y>)
    return true;
  else
    return broadcast(X::dims, Y::dims).rank >= 0;
}
template <class A, class B>
struct common_element;
template <class A, class B>
  requires(!literal<A> && !literal<B>)
struct common_element<A, B> {
  using type = promote_t<typename A::element_type, typename B::element_type>;
};
template <class A, literal B>
struct common_element<A, B> {
  using type = weak_promote_t<typename A::element_type, B>;
};
template <literal A, class B>
struct common_element<A, B> {
  using type = weak_promote_t<typename B::element_type, A>;
};
/// The type two operands are converted to.
template <class A, class B>
using common_t = typename common_element<read_t<A>, read_t<B>>::type;

// What an operation accepts, by element type.
constexpr bool accepts(op o, dtype t) {
  switch (o) {
  case op::bit_and: case op::bit_or: case op::bit_xor: case op::bit_not: return is_bool(t) || is_int(t);
  case op::shl: case op::shr: case op::rem: return is_int(t);
  case op::eq: case op::ne: return !is_f8(t);
  case op::add: case op::sub: case op::mul: case op::div: case op::neg: case op::abs:
  case op::min: case op::max: case op::lt: case op::le: case op::gt: case op::ge: return is_arithmetic(t);
  default: return is_float(t) && !is_f8(t);
  }
}
template <op O, class A, class B>
constexpr bool operation_accepts() {
  if constexpr (types_combine<A, B>())
    return accepts(O, dtype_of<common_t<A, B>>);
  else
    return true; // reported as types that do not combine
}

template <op O, class A>
constexpr bool operand_accepts() {
  return accepts(O, dtype_of<typename read_t<A>::element_type>);
}
template <class A>
constexpr bool is_b1() {
  return is_bool(dtype_of<typename read_t<A>::element_type>);
}

// The checks belong to the operator itself, so that the user's line is the next one in the compiler's output.
#define KILN_DETAIL_TEXT_TYPES "kiln[T-04] the operands' element types do not combine; cast<T>(...) one of them"
#define KILN_DETAIL_TEXT_SHAPES "kiln[T-05] the operands' shapes do not broadcast: aligned at the last axis, extents must be equal or 1"
#define KILN_DETAIL_TEXT_ACCEPTS "kiln[T-06] this operation does not accept the element type; cast<T>(...) the operands first"
#define KILN_DETAIL_REFUSE_BINARY(A, B, code)                                                                          \
  KILN_DETAIL_REFUSE(KILN_DETAIL_TEXT_TYPES, detail::types_combine<A, B>())                                            \
  KILN_DETAIL_REFUSE(KILN_DETAIL_TEXT_SHAPES, detail::shapes_combine<A, B>())                                          \
  KILN_DETAIL_REFUSE(KILN_DETAIL_TEXT_ACCEPTS, detail::operation_accepts<op::code, A, B>())
#define KILN_DETAIL_CHECK_BINARY(A, B, code)                                                                           \
  KILN_DETAIL_CHECK(KILN_DETAIL_TEXT_TYPES, detail::types_combine<A, B>())                                             \
  KILN_DETAIL_CHECK(KILN_DETAIL_TEXT_SHAPES, detail::shapes_combine<A, B>())                                           \
  KILN_DETAIL_CHECK(KILN_DETAIL_TEXT_ACCEPTS, detail::operation_accepts<op::code, A, B>())

// The body of an operator, with the attribute in front of it.
#define KILN_DETAIL_BINARY_AS(symbol, code, L, R, l, r, at)                                                            \
  KILN_DETAIL_REFUSE_BINARY(L, R, code) {                                                                              \
    KILN_DETAIL_CHECK_BINARY(L, R, code)                                                                               \
    if constexpr (types_combine<L, R>() && shapes_combine<L, R>() && operation_accepts<op::code, L, R>())              \
      return binary<op::code>(l, r, at);                                                                               \
  }

#define KILN_DETAIL_BINARY(symbol, code)                                                                               \
  template <operand R>                                                                                                 \
  friend constexpr auto operator symbol(located<Self> l, R const& r)                                                   \
    KILN_DETAIL_BINARY_AS(symbol, code, Self, R, l.value, r, l.at)                                                     \
  template <literal L>                                                                                                 \
  friend constexpr auto operator symbol(L const& l, located<Self> r)                                                   \
    KILN_DETAIL_BINARY_AS(symbol, code, L, Self, l, r.value, r.at)
// == and != are looked up in both orders by the language, so a mixed pair must find exactly one class responsible.
#define KILN_DETAIL_EQUALITY(symbol, code)                                                                             \
  friend constexpr auto operator symbol(located<Self> l, located<Self> r) {                                            \
    auto const x = binary<op::code>(l.value, r.value, l.at);                                                           \
    if constexpr (!operation_accepts<op::code, Self, Self>()) x.recorder_->fail_at(x.node_) << KILN_DETAIL_TEXT_ACCEPTS; \
    return x;                                                                                                          \
  }                                                                                                                    \
  template <tile_like R>                                                                                               \
    requires(ordered_before<R, Self>())                                                                                \
  friend constexpr auto operator symbol(located<Self> l, R const& r)                                                   \
    KILN_DETAIL_BINARY_AS(symbol, code, Self, R, l.value, r, l.at)                                                     \
  template <tile_like L>                                                                                               \
    requires(ordered_before<L, Self>())                                                                                \
  friend constexpr auto operator symbol(L const& l, located<Self> r)                                                   \
    KILN_DETAIL_BINARY_AS(symbol, code, L, Self, l, r.value, r.at)                                                     \
  template <literal R>                                                                                                 \
  friend constexpr auto operator symbol(located<Self> l, R const& r)                                                   \
    KILN_DETAIL_BINARY_AS(symbol, code, Self, R, l.value, r, l.at)                                                     \
  template <literal L>                                                                                                 \
  friend constexpr auto operator symbol(L const& l, located<Self> r)                                                   \
    KILN_DETAIL_BINARY_AS(symbol, code, L, Self, l, r.value, r.at)
// `X` is Self; a template parameter, because Self is not complete where the friend is declared.
#define KILN_DETAIL_LOGICAL(symbol, code)                                                                              \
  template <operand R, class X = Self>                                                                                 \
  friend constexpr auto operator symbol(located<Self> l, R const& r)                                                   \
    KILN_DETAIL_REFUSE("kiln[T-03] && and || need b1 operands; compare first, or use & and | for bits", is_b1<X>())    \
    KILN_DETAIL_REFUSE_BINARY(X, R, code) {                                                                            \
    KILN_DETAIL_CHECK("kiln[T-03] && and || need b1 operands; compare first, or use & and | for bits", is_b1<X>())     \
    KILN_DETAIL_CHECK_BINARY(X, R, code)                                                                               \
    if constexpr (is_b1<X>() && types_combine<X, R>() && shapes_combine<X, R>() && operation_accepts<op::code, X, R>()) \
      return binary<op::code>(l.value, r, l.at);                                                                       \
  }
#define KILN_DETAIL_UNARY(symbol, code, text)                                                                          \
  template <class X = Self>                                                                                            \
  friend constexpr auto operator symbol(located<Self> x) KILN_DETAIL_REFUSE(text, operand_accepts<op::code, X>()) {    \
    KILN_DETAIL_CHECK(text, operand_accepts<op::code, X>())                                                            \
    return unary<op::code>(x.value, x.at);                                                                             \
  }

/// The arithmetic, comparison and logic operators of tiles and of vars that hold tiles.
template <class Self>
struct operators {
  KILN_DETAIL_BINARY(+, add)
  KILN_DETAIL_BINARY(-, sub)
  KILN_DETAIL_BINARY(*, mul)
  KILN_DETAIL_BINARY(/, div)
  KILN_DETAIL_BINARY(%, rem)
  KILN_DETAIL_BINARY(&, bit_and)
  KILN_DETAIL_BINARY(|, bit_or)
  KILN_DETAIL_BINARY(^, bit_xor)
  KILN_DETAIL_BINARY(<<, shl)
  KILN_DETAIL_BINARY(>>, shr)
  KILN_DETAIL_BINARY(<, lt)
  KILN_DETAIL_BINARY(<=, le)
  KILN_DETAIL_BINARY(>, gt)
  KILN_DETAIL_BINARY(>=, ge)
  KILN_DETAIL_EQUALITY(==, eq)
  KILN_DETAIL_EQUALITY(!=, ne)
  KILN_DETAIL_LOGICAL(&&, bit_and) // both sides are always evaluated
  KILN_DETAIL_LOGICAL(||, bit_or)
  KILN_DETAIL_UNARY(-, neg, "kiln[T-06] unary - needs an integer or floating type; cast<T>(...) first")
  KILN_DETAIL_UNARY(~, bit_not, "kiln[T-06] ~ needs an integer or b1 type; bitcast<T>(...) first")
  // An exact match, since conversion to located<Self> would be ambiguous with the explicit conversion to bool.
  template <std::same_as<Self> X>
  friend constexpr auto operator!(X const& x) {
    static_assert(is_bool(dtype_of<typename read_t<X>::element_type>), "kiln[T-03] ! needs a b1 operand; compare with 0 instead");
    return unary<op::bit_not>(x, last_site(*x.recorder_));
  }
};
#undef KILN_DETAIL_BINARY
#undef KILN_DETAIL_EQUALITY
#undef KILN_DETAIL_LOGICAL
#undef KILN_DETAIL_UNARY

} // namespace detail

/// An immutable tile of registers: `T` elements in the extents `D...`, without placement. Rank 0 is a scalar.
///
/// Made by `k.arange`, `k.full`, `load`, operators and functions; never by the user directly. It cannot be reassigned, and
/// has no C++ truth value.
template <class T, int... D>
class tile : public detail::operators<tile<T, D...>> {
public:
  using element_type = T;
  static constexpr int rank = sizeof...(D);
  static constexpr detail::extents dims = detail::extents_of<D...>;
  static_assert(element<T>, "kiln[T-01] not an element type: use bool, i8..i64, u8..u64, f16, bf16, f32, f64, f8e4m3 or f8e5m2");
  static_assert(rank <= max_rank, "kiln[T-02] a tile has at most 6 axes");
  static_assert(((D >= 1) && ...), "kiln[T-02] extents of a tile are at least 1");

  constexpr tile(recorder* r, int node) : recorder_(r), node_(node) {}
  constexpr tile(tile const&) = default;
  constexpr ~tile() {} // user-provided, so that an unused handle (a loop index) is no warning

  /// Extent of axis `i`; a C++ constant.
  static constexpr int extent(int i) { return dims.extent[i < 0 ? i + rank : i]; }

  constexpr tile& operator=(tile const&) {
    static_assert(detail::never<T>, "kiln[K-01] a value cannot be reassigned; make it k.var(...)");
    return *this;
  }
  template <class R>
  constexpr void operator=(R const&) {
    static_assert(detail::never<R>, "kiln[K-01] a value cannot be reassigned; make it k.var(...)");
  }
  template <class R>
  constexpr void operator+=(R const&) {
    static_assert(detail::never<R>, "kiln[K-01] a value cannot be reassigned; make it k.var(...)");
  }
  template <class R>
  constexpr void operator-=(R const&) {
    static_assert(detail::never<R>, "kiln[K-01] a value cannot be reassigned; make it k.var(...)");
  }
  template <class R>
  constexpr void operator*=(R const&) {
    static_assert(detail::never<R>, "kiln[K-01] a value cannot be reassigned; make it k.var(...)");
  }
  constexpr explicit operator bool() const {
    static_assert(detail::never<T>, "kiln[K-02] a recorded value has no C++ truth value; use k.when(condition, [&] {...}), "
                                    "where(condition, a, b), or && || !");
    return false;
  }

  recorder* recorder_; ///< for the library
  int node_;           ///< for the library
};

/// `float s = 0; s += x;`: a C++ variable cannot take a recorded value. Only here to say so.
#define KILN_DETAIL_PLAIN_TARGET(symbol)                                                                               \
  template <literal L, tile_like X>                                                                                    \
  constexpr void operator symbol(L&, X const&) KILN_DETAIL_REFUSE(KILN_DETAIL_TEXT_PLAIN_TARGET, detail::never<X>) {   \
    KILN_DETAIL_CHECK(KILN_DETAIL_TEXT_PLAIN_TARGET, detail::never<X>)                                                 \
  }
#define KILN_DETAIL_TEXT_PLAIN_TARGET "kiln[K-01] a C++ variable cannot take a recorded value; make it k.var(...)"
KILN_DETAIL_PLAIN_TARGET(+=)
KILN_DETAIL_PLAIN_TARGET(-=)
KILN_DETAIL_PLAIN_TARGET(*=)
#undef KILN_DETAIL_PLAIN_TARGET

namespace detail {
template <class I>
constexpr bool is_offset() {
  if constexpr (literal<I>)
    return std::is_integral_v<I> && !std::same_as<I, bool>;
  else
    return is_int(dtype_of<typename read_t<I>::element_type>);
}
} // namespace detail

#define KILN_DETAIL_TEXT_OFFSET_TYPE "kiln[T-07] a pointer moves by integers; cast<i32> or cast<i64> the offset"
#define KILN_DETAIL_TEXT_OFFSET_SHAPE                                                                                  \
  "kiln[T-05] the shapes of pointer and offset do not broadcast: aligned at the last axis, extents must be equal or 1"
#define KILN_DETAIL_OFFSET(P, l, r, negative, at)                                                                      \
  KILN_DETAIL_REFUSE(KILN_DETAIL_TEXT_OFFSET_TYPE, detail::is_offset<I>())                                             \
  KILN_DETAIL_REFUSE(KILN_DETAIL_TEXT_OFFSET_SHAPE, detail::shapes_combine<P, I>()) {                                  \
    KILN_DETAIL_CHECK(KILN_DETAIL_TEXT_OFFSET_TYPE, detail::is_offset<I>())                                            \
    KILN_DETAIL_CHECK(KILN_DETAIL_TEXT_OFFSET_SHAPE, detail::shapes_combine<P, I>())                                   \
    if constexpr (detail::is_offset<I>() && detail::shapes_combine<P, I>()) return detail::offset(l, r, negative, at); \
  }

/// A pointer, or a tile of pointers, to `T` in global memory. Made from a parameter by adding element offsets.
template <class T, int... D>
class pointers {
public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;
  static constexpr int rank = sizeof...(D);
  static constexpr detail::extents dims = detail::extents_of<D...>;
  static_assert(element<value_type>, "kiln[T-01] a pointer needs an element type: bool, i8..i64, u8..u64, f16, bf16, f32, f64, f8e4m3 or f8e5m2");

  constexpr pointers(recorder* r, int node) : recorder_(r), node_(node) {}
  constexpr pointers(pointers const&) = default;
  constexpr ~pointers() {}
  constexpr pointers& operator=(pointers const&) {
    static_assert(detail::never<T>, "kiln[K-01] a pointer cannot be reassigned; make it k.var(...)");
    return *this;
  }
  constexpr explicit operator bool() const {
    static_assert(detail::never<T>, "kiln[K-02] a recorded pointer has no C++ truth value; pass a flag as val<bool> instead");
    return false;
  }
  template <class I>
  constexpr auto operator[](I const&) const {
    static_assert(detail::never<I>, "kiln[T-17] a recorded pointer has no []; load(p + i) reads, store(p + i, x) writes");
    return tile<value_type, D...>{recorder_, node_};
  }
  template <class X = T>
  constexpr auto operator*() const {
    static_assert(detail::never<X>, "kiln[T-17] a recorded pointer has no *; load(p) reads, store(p, x) writes");
    return tile<value_type, D...>{recorder_, node_};
  }

  /// Moves by whole elements. Shapes: broadcast of both. An i32 offset is widened before it is scaled.
  template <operand I>
  friend constexpr auto operator+(located<pointers> p, I const& i) KILN_DETAIL_OFFSET(pointers, p.value, i, false, p.at)
  template <operand I>
  friend constexpr auto operator+(I const& i, located<pointers> p) KILN_DETAIL_OFFSET(pointers, p.value, i, false, p.at)
  template <operand I>
  friend constexpr auto operator-(located<pointers> p, I const& i) KILN_DETAIL_OFFSET(pointers, p.value, i, true, p.at)

  recorder* recorder_; ///< for the library
  int node_;           ///< for the library
};

template <class V>
struct located<var<V>> {
  var<V> const& value;
  site at;
  constexpr located(var<V> const& v, site w = {}) : value(v), at(w) {}
};

namespace detail {
/// What may be assigned to a var that holds V: V itself, a var of it, or a C++ number when V is a tile.
template <class V>
struct assigned {
  int node = -1;
  std::int64_t bits = 0; ///< of a C++ number, when node is -1
  site at;
  bool fits = true; ///< the number is one of the element type
  constexpr assigned(V const& v, site w = {}) : node(v.node_), at(w) {}
  constexpr assigned(var<V> const& v, site w = {}) : node(v.read(w).node_), at(w) {}
  /// An element of a buffer or array is read.
  template <class E>
    requires requires(E const& e, site s) { { e.read(s) } -> std::same_as<V>; }
  constexpr assigned(E const& e, site w = {}) : node(e.read(w).node_), at(w) {}
  template <literal S>
    requires(tile_handle<V>)
  constexpr assigned(S s, site w = {})
      : bits(literal_bits<typename V::element_type>(s)), at(w), fits(std::same_as<typename V::element_type, S> || literal_fits(dtype_of<typename V::element_type>, s)) {}
};
struct no_operators {};
/// A var that holds a pointer moves like the pointer: the operators read it.
template <class P>
struct pointer_operators {
  template <operand I>
  friend constexpr auto operator+(located<var<P>> p, I const& i) KILN_DETAIL_OFFSET(P, p.value.read(p.at), i, false, p.at)
  template <operand I>
  friend constexpr auto operator+(I const& i, located<var<P>> p) KILN_DETAIL_OFFSET(P, p.value.read(p.at), i, false, p.at)
  template <operand I>
  friend constexpr auto operator-(located<var<P>> p, I const& i) KILN_DETAIL_OFFSET(P, p.value.read(p.at), i, true, p.at)
  template <operand I>
  friend constexpr var<P> const& operator+=(located<var<P>> p, I const& i) {
    auto moved = p.value.read(p.at) + i;
    static_assert(std::same_as<decltype(moved), P>, "kiln[K-04] the var holds a pointer of another shape than the result; make the var hold the tile of pointers");
    if constexpr (std::same_as<decltype(moved), P>) p.value.set(moved.node_, p.at);
    return p.value;
  }
  template <operand I>
  friend constexpr var<P> const& operator-=(located<var<P>> p, I const& i) {
    auto moved = p.value.read(p.at) - i;
    static_assert(std::same_as<decltype(moved), P>, "kiln[K-04] the var holds a pointer of another shape than the result; make the var hold the tile of pointers");
    if constexpr (std::same_as<decltype(moved), P>) p.value.set(moved.node_, p.at);
    return p.value;
  }
};
#undef KILN_DETAIL_OFFSET
/// The operators of a var that holds V.
template <class V>
struct var_operators {
  using type = no_operators;
};
template <tile_handle V>
struct var_operators<V> {
  using type = operators<var<V>>;
};
template <pointer_handle V>
struct var_operators<V> {
  using type = pointer_operators<V>;
};
template <class A, class B>
constexpr extents common_extents();
} // namespace detail

namespace detail {
template <op O, class A, class B>
constexpr bool computes_binary() {
  return types_combine<A, B>() && shapes_combine<A, B>() && operation_accepts<O, A, B>();
}
/// `a op b` has a's type; true when it has none, which is reported as such.
template <op O, class A, class B>
constexpr bool keeps_type() {
  if constexpr (computes_binary<O, A, B>())
    return std::same_as<common_t<A, B>, typename read_t<A>::element_type> && common_extents<A, B>() == read_t<A>::dims;
  else
    return true;
}
} // namespace detail

#define KILN_DETAIL_TEXT_COMPOUND                                                                                      \
  "kiln[K-04] the var holds another element type or shape than the result; cast<T>(...) or reduce it"
#define KILN_DETAIL_COMPOUND(symbol, code)                                                                             \
  template <operand R>                                                                                                 \
    requires(detail::tile_handle<V>)                                                                                   \
  friend constexpr var const& operator symbol##=(located<var> l, R const& r) KILN_DETAIL_REFUSE_BINARY(var, R, code)   \
    KILN_DETAIL_REFUSE(KILN_DETAIL_TEXT_COMPOUND, detail::keeps_type<op::code, var, R>()) {                            \
    KILN_DETAIL_CHECK_BINARY(var, R, code)                                                                             \
    KILN_DETAIL_CHECK(KILN_DETAIL_TEXT_COMPOUND, detail::keeps_type<op::code, var, R>())                               \
    if constexpr (detail::computes_binary<op::code, var, R>() && detail::keeps_type<op::code, var, R>()) {             \
      auto v = detail::binary<op::code>(l.value, r, l.at);                                                             \
      l.value.set(v.node_, l.at);                                                                                      \
    }                                                                                                                  \
    return l.value;                                                                                                    \
  }

/// A mutable cell: assign to it inside loops and branches, read it like the value it holds.
///
/// `auto acc = k.var(k.zeros<f32, 64, 64>());  for (...) acc = acc + x;  store(p, cast<f16>(acc));`
template <class V>
class var : public detail::var_operators<V>::type {
public:
  using held_type = V;
  using element_type = typename V::element_type;
  static constexpr detail::extents dims = V::dims;

  constexpr var(recorder* r, int node) : recorder_(r), node_(node) {}
  constexpr ~var() {}
  constexpr var(var const& other) : recorder_(other.recorder_), node_(other.node_) {
    static_assert(detail::never<V>, "kiln[K-03] a var cannot be copied; read its value with k.let(v), or take it by reference");
  }

  constexpr var& operator=(detail::assigned<V> x) {
    if (!x.fits)
      recorder_->fail() << "kiln[T-04] a number does not fit the element type " << name_of(dtype_of<element_type>) << " of the var; make it a var of a wider type";
    set(x.node >= 0 ? x.node : constant(x.bits, x.at), x.at);
    return *this;
  }
  constexpr var& operator=(var const& x) {
    site at = detail::last_site(*recorder_);
    set(x.read(at).node_, at);
    return *this;
  }
  template <class R>
    requires(!std::convertible_to<R const&, detail::assigned<V>>)
  constexpr var& operator=(R const&) {
    static_assert(detail::never<R>, "kiln[K-04] the var holds another element type or shape; cast<T>(...) or broadcast the new value");
    return *this;
  }

  /// All elements become `x`.
  constexpr var& fill(detail::assigned<V> x) { return *this = x; }

  KILN_DETAIL_COMPOUND(+, add)
  KILN_DETAIL_COMPOUND(-, sub)
  KILN_DETAIL_COMPOUND(*, mul)
  KILN_DETAIL_COMPOUND(/, div)
  KILN_DETAIL_COMPOUND(%, rem)
  KILN_DETAIL_COMPOUND(&, bit_and)
  KILN_DETAIL_COMPOUND(|, bit_or)
  KILN_DETAIL_COMPOUND(^, bit_xor)
  KILN_DETAIL_COMPOUND(<<, shl)
  KILN_DETAIL_COMPOUND(>>, shr)

  /// The present content.
  constexpr V read(site at = {}) const {
    node const& n = recorder_->nodes[node_];
    return {recorder_, recorder_->push(op::var_get, {n.type, held_kind(), n.shape}, {node_}, {}, at)};
  }
  /// For the library: records an assignment.
  constexpr void set(int value, site at) const { recorder_->push(op::var_set, {}, {node_, value}, {}, at); }

  static constexpr node_kind held_kind() {
    return detail::tile_handle<V> ? node_kind::value : detail::pointer_handle<V> ? node_kind::pointer : node_kind::token;
  }

  recorder* recorder_; ///< for the library
  int node_;           ///< for the library

private:
  constexpr int constant(std::int64_t bits, site at) const {
    node const& n = recorder_->nodes[node_];
    return recorder_->push(op::constant, {n.type, node_kind::value, n.shape}, {}, {bits}, at);
  }
};
#undef KILN_DETAIL_COMPOUND

namespace detail {

template <extents E>
inline constexpr kiln::shape shape_of_dims = to_shape(E);
template <class V>
constexpr result_type type_of(recorder& r, node_kind kind = node_kind::value) {
  return {dtype_of<typename V::element_type>, kind, V::dims.rank ? r.intern(shape_of_dims<V::dims>) : 0};
}
template <class T>
constexpr tile<T> scalar_constant(recorder& r, std::int64_t bits, site at) {
  return {&r, r.push(op::constant, {dtype_of<T>, node_kind::value, 0}, {}, {bits}, at)};
}

/// The value of x: a var is read, a handle is itself.
template <class X>
constexpr auto read(X const& x, site at) {
  if constexpr (handle_traits<X>::is_var)
    return x.read(at);
  else
    return x;
}

/// x converted to element type T and to the extents E, with as few nodes as possible.
template <class T, extents E, class X>
constexpr typename tile_from<T, E>::type conform(recorder& r, X const& x, site at) {
  using R = typename tile_from<T, E>::type;
  if constexpr (literal<X>) {
    check_literal<T>(r, x);
    return {&r, r.push(op::constant, type_of<R>(r), {}, {literal_bits<T>(x)}, at)};
  } else {
    auto v = read(x, at);
    using V = decltype(v);
    int node = v.node_;
    if constexpr (!std::same_as<typename V::element_type, T>)
      node = r.push(op::cast, {dtype_of<T>, node_kind::value, r.nodes[node].shape}, {node}, {}, at);
    if constexpr (V::dims != E) node = r.push(op::broadcast, type_of<R>(r), {node}, {}, at);
    return {&r, node};
  }
}

template <class A, class B>
constexpr extents common_extents() {
  if constexpr (literal<A>)
    return read_t<B>::dims;
  else if constexpr (literal<B>)
    return read_t<A>::dims;
  else
    return broadcast(read_t<A>::dims, read_t<B>::dims);
}
template <class A, class B>
constexpr recorder& recorder_of(A const& a, B const& b) {
  if constexpr (literal<A>)
    return *b.recorder_;
  else
    return *a.recorder_;
}
constexpr bool is_comparison(op o) {
  return o == op::eq || o == op::ne || o == op::lt || o == op::le || o == op::gt || o == op::ge;
}

/// Records an operation on two operands that the caller has checked to combine. min and max have one attribute.
template <op O, class A, class B>
constexpr auto binary(A const& a, B const& b, site at) {
  using T = common_t<A, B>;
  constexpr extents E = common_extents<A, B>();
  recorder& r = recorder_of(a, b);
  int x = conform<T, E>(r, a, at).node_;
  int y = conform<T, E>(r, b, at).node_;
  using R = typename tile_from<std::conditional_t<is_comparison(O), bool, T>, E>::type;
  result_type type{dtype_of<typename R::element_type>, node_kind::value, r.nodes[x].shape};
  if constexpr (O == op::div)
    return R{&r, r.push(O, type, {x, y}, {0}, at)};
  else
    return R{&r, r.push(O, type, {x, y}, {}, at)};
}

/// Records an operation whose result has the operand's type. Functions with a fast form have one attribute.
template <op O, class A>
constexpr auto unary(A const& a, site at) {
  auto v = read(a, at);
  recorder& r = *v.recorder_;
  node const& n = r.nodes[v.node_];
  return decltype(v){&r, r.push(O, {n.type, n.kind, n.shape}, {v.node_}, {}, at)};
}

template <class P, class I>
constexpr auto offset(P const& p, I const& i, bool negative, site at) {
  recorder& r = *p.recorder_;
  constexpr extents E = common_extents<P, I>();
  using Index = typename decltype([] {
    if constexpr (literal<I>)
      return std::type_identity<i64>{};
    else
      return std::type_identity<typename read_t<I>::element_type>{};
  }())::type;
  int o = conform<Index, E>(r, i, at).node_;
  if (negative) o = r.push(op::neg, {dtype_of<Index>, node_kind::value, r.nodes[o].shape}, {o}, {}, at);
  result_type type{dtype_of<typename P::value_type>, node_kind::pointer, r.nodes[o].shape};
  int base = p.node_;
  if constexpr (P::dims != E) base = r.push(op::broadcast, type, {base}, {}, at);
  return typename pointers_from<typename P::element_type, E>::type{&r, r.push(op::ptr_add, type, {base, o}, {}, at)};
}

} // namespace detail
} // namespace kiln
