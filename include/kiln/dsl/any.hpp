// Type-erased operands for option aggregates: `{.mask = m, .other = 0}` cannot deduce types, so the check of element type
// and shape happens while recording and is reported at the statement.
#pragma once
#include <kiln/dsl/value.hpp>

namespace kiln::detail {

/// A mask, an `.other`, a start coordinate or an index: any tile, var or C++ number, or nothing.
class any_value {
  enum class state : std::uint8_t { absent, recorded, integer, floating };
  std::int32_t node_ = -1;
  std::int64_t integer_ = 0;
  double number_ = 0;
  state state_ = state::absent;
  bool above_i64_ = false; ///< integer_ stands for a u64
  static constexpr bool broadcasts_to(kiln::shape const& from, kiln::shape const& to) {
    if (from.rank > to.rank) return false;
    for (int i = 0; i < from.rank; ++i) {
      int e = from.extent[i];
      if (e != 1 && e != to.extent[to.rank - from.rank + i]) return false;
    }
    return true;
  }
  template <class S>
  static constexpr std::int64_t number_bits(dtype t, S s) {
    switch (t) {
    case dtype::b1: return literal_bits<bool>(s);
    case dtype::i8: return literal_bits<i8>(s);
    case dtype::i16: return literal_bits<i16>(s);
    case dtype::i32: return literal_bits<i32>(s);
    case dtype::i64: return literal_bits<i64>(s);
    case dtype::u8: return literal_bits<u8>(s);
    case dtype::u16: return literal_bits<u16>(s);
    case dtype::u32: return literal_bits<u32>(s);
    case dtype::u64: return literal_bits<u64>(s);
    case dtype::f16: return literal_bits<f16>(s);
    case dtype::bf16: return literal_bits<bf16>(s);
    case dtype::f32: return literal_bits<f32>(s);
    case dtype::f64: return literal_bits<f64>(s);
    case dtype::f8e4m3: return literal_bits<f8e4m3>(s);
    case dtype::f8e5m2: return literal_bits<f8e5m2>(s);
    }
    return 0;
  }

  constexpr std::int64_t bits(dtype t) const {
    return state_ == state::integer ? number_bits(t, integer_) : number_bits(t, number_);
  }
  /// Whether the number is one of element type t: finite numbers stay finite, integers are the same.
  constexpr bool fits(dtype t) const {
    if (state_ == state::integer) {
      if (above_i64_) return literal_fits(t, static_cast<std::uint64_t>(integer_));
      return (integer_ >= 0 && integer_ <= 1) || literal_fits(t, integer_);
    }
    // The usual ones without a conversion: a compiler does it step by step.
    if ((t == dtype::f32 || t == dtype::f64 || t == dtype::bf16) && ((number_ > -1e38 && number_ < 1e38) || number_ == inf_ || number_ == -inf_)) return true;
    return literal_fits(t, number_);
  }
  static constexpr double inf_ = __builtin_huge_val();

public:
  constexpr any_value() = default;
  template <tile_handle X>
  constexpr any_value(X const& x) : node_(x.node_), state_(state::recorded) {}
  template <tile_handle V>
  constexpr any_value(var<V> const& x) : node_(x.read(last_site(*x.recorder_)).node_), state_(state::recorded) {}
  template <literal S>
  constexpr any_value(S s) : state_(std::is_floating_point_v<S> ? state::floating : state::integer) {
    if constexpr (std::is_floating_point_v<S>)
      number_ = static_cast<double>(s);
    else
      integer_ = static_cast<std::int64_t>(s), above_i64_ = s > S{0} && integer_ < 0;
  }

  constexpr bool present() const { return state_ != state::absent; }
  constexpr bool is_literal() const { return state_ == state::integer || state_ == state::floating; }
  constexpr int recorded_node() const { return node_; } ///< -1: a number, or nothing
  constexpr bool is_integer_literal() const { return state_ == state::integer; }
  constexpr std::int64_t integer() const { return integer_; }

  /// Records the operand as element type `t` and shape `s` (an index into the shape table): -1 when absent. Numbers and
  /// scalars are repeated; a tile must broadcast to the shape and have the type, or one that promotes to it.
  /// `what` names the option in the message.
  constexpr int resolve(recorder& r, dtype t, std::int32_t s, char const* what, site at) const {
    if (!present()) return -1;
    result_type type{t, node_kind::value, s};
    if (is_literal()) {
      if (state_ == state::floating && !is_float(t)) {
        r.fail() << "kiln[T-04] " << what << " is a floating number where " << name_of(t) << " is needed";
        return -1;
      }
      if (!fits(t)) {
        message m = r.fail();
        m << "kiln[T-04] " << what << " = ";
        if (state_ == state::integer && !above_i64_)
          m << integer_;
        else
          m << "a number that";
        m << " does not fit the element type " << name_of(t);
        return -1;
      }
      return r.push(op::constant, type, {}, {bits(t)}, at);
    }
    node const n = r.nodes[node_];
    int x = node_;
    if (n.type != t) {
      dtype common{};
      if (!promote(n.type, t, common) || common != t || is_bool(t)) {
        r.fail() << "kiln[T-04] " << what << " has element type " << name_of(n.type) << " where " << name_of(t)
                 << " is needed; cast it";
        return -1;
      }
      x = r.push(op::cast, {t, node_kind::value, n.shape}, {x}, {}, at);
    }
    if (n.shape != s) {
      if (!broadcasts_to(r.shapes[n.shape], r.shapes[s])) {
        (r.fail() << "kiln[T-05] " << what << " of shape ").type(n.type, r.shapes[n.shape])
            << " does not broadcast to the accessed shape";
        return -1;
      }
      x = r.push(op::broadcast, type, {x}, {}, at);
    }
    return x;
  }

  /// Records an integer scalar: its own type when recorded, `t` for a number. -1 after a failure.
  constexpr int resolve_index(recorder& r, dtype t, char const* what, site at) const {
    if (is_literal()) {
      if (state_ == state::floating)
        r.fail() << "kiln[T-07] " << what << " must be an integer";
      else if (!fits(t))
        r.fail() << "kiln[T-04] " << what << " does not fit " << name_of(t);
      return r.push(op::constant, {t, node_kind::value, 0}, {}, {integer_}, at);
    }
    node const n = r.nodes[node_];
    if (!is_int(n.type) || n.shape != 0) {
      (r.fail() << "kiln[T-07] " << what << " must be an integer scalar, not ").type(n.type, r.shapes[n.shape]);
      return -1;
    }
    if (n.type == t) return node_;
    return r.push(op::cast, {t, node_kind::value, 0}, {node_}, {}, at);
  }
};

#define KILN_DETAIL_TEXT_INDEX "kiln[T-07] an index must be an integer scalar or a C++ integer"
/// The place of an index of type I. The check stands in the type of a defaulted parameter, which g++ looks at where the index
/// is written; it would look at one in a constructor's body only when the recording runs.
template <class I>
struct index_site : site {
  constexpr index_site(int l = __builtin_LINE(), char const* f = __builtin_FILE()) : site(l, f) {}
  static constexpr bool is_index() {
    if constexpr (literal<I>)
      return std::is_integral_v<I>;
    else
      return read_t<I>::dims.rank == 0 && is_int(dtype_of<typename read_t<I>::element_type>);
  }
  KILN_DETAIL_CHECK(KILN_DETAIL_TEXT_INDEX, is_index())
};

/// An index in brackets, with the place where it was written: any integer scalar, var of one, or C++ integer.
struct located_index {
  std::int32_t node = -1; ///< -1: a C++ integer
  std::int64_t number = 0;
  site at;
  template <literal I>
  constexpr located_index(I i, index_site<I> w = {})
      KILN_DETAIL_REFUSE(KILN_DETAIL_TEXT_INDEX, index_site<I>::is_index()) : number(static_cast<std::int64_t>(i)), at(w) {}
  template <tile_like X>
  constexpr located_index(X const& x, index_site<X> w = {})
      KILN_DETAIL_REFUSE(KILN_DETAIL_TEXT_INDEX, index_site<X>::is_index()) : node(read(x, w).node_), at(w) {}
  /// The index as a node: recorded integers keep their type.
  constexpr int resolve(recorder& r) const {
    return node >= 0 ? node : r.push(op::constant, {dtype::i32, node_kind::value, 0}, {}, {number}, at);
  }
};

template <std::size_t>
using index_of_axis = located_index;
/// Declared here, and defined in headers that kiln.hpp does not include: a use without the header can say which one it needs.
template <class>
struct buffer_header; // dsl/buffer.hpp
template <class>
struct layout_header; // dsl/layout_tools.hpp
template <class>
struct tensor_header; // dsl/tensor_pool.hpp
template <class Header>
concept included = requires { sizeof(Header); };

/// `x(i, j)`, `x.ptr_to(i, j)`, `x.vload<4>(i, j)`, `x.vstore<4>(i, j, v)`: one index for each axis. A base, since only parameters that
/// are no templates learn where they were written. Self has element(), pointer(), load_vector<V>() and store_vector<V>().
template <class Self, class Axes>
class indexed_by;
template <class Self, std::size_t... Axis>
class indexed_by<Self, std::index_sequence<Axis...>> {
public:
  /// The element, to be read or assigned. Errors: R-BD01.
  constexpr auto operator()(index_of_axis<Axis>... i) const {
    static_assert(included<buffer_header<Self>>, "kiln: this is in a header of its own; #include <kiln/dsl/buffer.hpp>");
    located_index const index[]{i...};
    if constexpr (included<buffer_header<Self>>) return static_cast<Self const*>(this)->element(index);
  }
  /// A pointer to the element. Errors: R-BD01.
  constexpr auto ptr_to(index_of_axis<Axis>... i) const {
    static_assert(included<buffer_header<Self>>, "kiln: this is in a header of its own; #include <kiln/dsl/buffer.hpp>");
    located_index const index[]{i...};
    if constexpr (included<buffer_header<Self>>) return static_cast<Self const*>(this)->pointer(index);
  }
  /// `V` elements from there on along the last axis, in one access. Errors: R-BD06.
  template <int V>
  constexpr auto vload(index_of_axis<Axis>... i) const {
    static_assert(included<buffer_header<Self>>, "kiln: this is in a header of its own; #include <kiln/dsl/buffer.hpp>");
    located_index const index[]{i...};
    if constexpr (included<buffer_header<Self>>) return static_cast<Self const*>(this)->template load_vector<V>(index);
  }
  template <int V, class X>
  constexpr auto vstore(index_of_axis<Axis>... i, X const& x) const {
    static_assert(included<buffer_header<Self>>, "kiln: this is in a header of its own; #include <kiln/dsl/buffer.hpp>");
    located_index const index[]{i...};
    if constexpr (included<buffer_header<Self>>) static_cast<Self const*>(this)->template store_vector<V>(index, x);
  }
};

/// `{m, kk}`: one start or offset per axis.
template <int N>
struct coordinates {
  any_value at[N];
};
template <class... X>
coordinates(X...) -> coordinates<sizeof...(X)>;

} // namespace kiln::detail
