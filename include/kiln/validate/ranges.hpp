// Intervals and divisibility of integers: for every integer node, between which values it lies and what it is a multiple of,
// for all elements and all launches. The rules for slots, slices and steps are decided by it, and it finds the 32-bit
// products in addresses that some launch makes overflow. One pass, O(nodes).
//
// Worked example. `for (auto i : k.range(0, 64, 16)) ... a[i % 24]` gives i: 0..48, 0 mod 16, and i % 24: 0..23, 0 mod 8.
#pragma once
#include <kiln/graph/cluster.hpp>
#include <kiln/graph/recorder.hpp>

namespace kiln {

/// Every value v satisfies lo <= v <= hi and v = remainder (mod divisor).
struct range {
  std::int64_t lo = 0, hi = 0;
  std::int64_t divisor = 1, remainder = 0; ///< a constant: divisor 0, remainder its value
  constexpr bool constant() const { return lo == hi; }
  friend constexpr bool operator==(range const&, range const&) = default;
};

/// Numbers that a launch fixes: an argument slot each (graph/specialisation.hpp), and the grid.
struct known_sizes {
  slice<std::int64_t> slots{};
  dims grid{0, 0, 0}; ///< 0: not known
};

namespace detail {

inline constexpr std::int64_t most = 0x7fffffffffffffff, least = -most - 1;
/// No array has more elements along an axis: an address has 48 bits.
inline constexpr std::int64_t most_elements = std::int64_t{1} << 48;

constexpr std::int64_t gcd(std::int64_t a, std::int64_t b) {
  std::uint64_t x = a < 0 ? 0 - static_cast<std::uint64_t>(a) : static_cast<std::uint64_t>(a);
  std::uint64_t y = b < 0 ? 0 - static_cast<std::uint64_t>(b) : static_cast<std::uint64_t>(b);
  while (y) {
    std::uint64_t const t = x % y;
    x = y;
    y = t;
  }
  return x > static_cast<std::uint64_t>(most) ? 1 : static_cast<std::int64_t>(x);
}
constexpr std::int64_t modulo(std::int64_t a, std::int64_t m) {
  if (m == 0) return a;
  std::int64_t const r = a % m;
  return r < 0 ? r + m : r;
}

// Sums and products that stop at the ends.
constexpr std::int64_t add_to(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  return __builtin_add_overflow(a, b, &r) ? (b > 0 ? most : least) : r;
}
constexpr std::int64_t negate(std::int64_t a) { return a == least ? most : -a; }
constexpr std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? ((a < 0) == (b < 0) ? most : least) : r;
}

constexpr range full_range(dtype t) {
  switch (t) {
  case dtype::b1: return {0, 1, 1, 0};
  case dtype::u64: return {0, most, 1, 0}; // what lies above counts as wrapped
  case dtype::i64: return {least, most, 1, 0};
  default: break;
  }
  int const bits = bits_of(t);
  if (is_signed_int(t)) return {-(std::int64_t{1} << (bits - 1)), (std::int64_t{1} << (bits - 1)) - 1, 1, 0};
  return {0, (std::int64_t{1} << bits) - 1, 1, 0};
}
constexpr range constant_range(std::int64_t v) { return {v, v, 0, v}; }

class ranges {
public:
  /// `wanted`: one flag per node, closed over operands; the others are left out. None: all.
  constexpr explicit ranges(graph_view const& g, known_sizes const* known = nullptr, bool const* wanted = nullptr) : g_(g), known_(known) {
    int const n = g.size();
    ranges_ = new range[static_cast<unsigned>(n) + 1]{};
    exact_ = new range[static_cast<unsigned>(n) + 1]{};
    for (int i = 0; i < n; ++i) {
      if (wanted && !wanted[i]) continue;
      node const& x = g.nodes.items[i];
      if (x.kind == node_kind::value && (is_int(x.type) || is_bool(x.type))) compute(i);
    }
  }
  ranges(ranges const&) = delete;
  constexpr ~ranges() {
    delete[] ranges_;
    delete[] exact_;
  }
  /// Of node i, an integer or b1 value.
  constexpr range const& operator[](int i) const { return ranges_[i]; }
  /// The result of node i's operation had it unlimited width: what lies outside the type has wrapped around.
  constexpr range const& unwrapped(int i) const { return exact_[i]; }
  constexpr bool can_wrap(int i) const {
    range const f = full_range(g_[i].type);
    return exact_[i].lo < f.lo || exact_[i].hi > f.hi || (f.hi == most && exact_[i].hi == most) || (f.lo == least && exact_[i].lo == least);
  }

private:
  constexpr range const& in(int i, int j) const { return ranges_[g_.operand(i, j)]; }
  constexpr bool integer(int o) const { return is_int(g_[o].type) || is_bool(g_[o].type); }

  /// Sets the unlimited result of node i, and what is left of it in the node's type.
  constexpr void set(int i, range r) {
    // A sum or product that reached the ends of 64 bits may lie beyond them.
    op const o = g_[i].code;
    bool const beyond = (o == op::add || o == op::sub || o == op::mul || o == op::neg || o == op::shl || o == op::abs || o == op::div) &&
                        (r.lo == least || r.hi == most || r.lo == most || r.hi == least);
    if (r.lo == r.hi && !beyond) r = constant_range(r.lo);
    else if (r.divisor == 0 || r.divisor > (std::int64_t{1} << 40)) r.divisor = 1, r.remainder = 0; // nobody needs it
    exact_[i] = r;
    range const f = full_range(g_[i].type);
    if (r.lo >= f.lo && r.hi <= f.hi && !beyond) {
      ranges_[i] = r;
      return;
    }
    range w = f; // a power of two that divides survives wrapping
    std::int64_t const two = r.divisor == 0 ? 1 : r.divisor & -r.divisor;
    if (two > 1 && (bits_of(g_[i].type) == 64 || two <= (std::int64_t{1} << (bits_of(g_[i].type) - 1)))) {
      w.divisor = two;
      w.remainder = modulo(r.remainder, two);
    }
    ranges_[i] = w;
  }
  constexpr void anything(int i) { set(i, full_range(g_[i].type)); }
  static constexpr range join(range const& a, range const& b) {
    range r;
    r.lo = a.lo < b.lo ? a.lo : b.lo;
    r.hi = a.hi > b.hi ? a.hi : b.hi;
    std::int64_t d = 0; // of the difference of the remainders, without overflow
    if (__builtin_sub_overflow(a.remainder, b.remainder, &d)) d = 1;
    r.divisor = gcd(gcd(a.divisor, b.divisor), d);
    r.remainder = modulo(a.remainder, r.divisor);
    return r;
  }
  static constexpr range sum(range const& a, range const& b) {
    range r;
    r.lo = add_to(a.lo, b.lo);
    r.hi = add_to(a.hi, b.hi);
    r.divisor = gcd(a.divisor, b.divisor);
    r.remainder = modulo(add_to(modulo(a.remainder, r.divisor), modulo(b.remainder, r.divisor)), r.divisor);
    return r;
  }
  static constexpr range negative(range const& a) {
    range r = a;
    r.lo = negate(a.hi);
    r.hi = negate(a.lo);
    r.remainder = a.divisor == 0 ? negate(a.remainder) : modulo(negate(a.remainder), a.divisor);
    return r;
  }
  static constexpr range product(range const& a, range const& b) {
    std::int64_t const c[4]{multiply(a.lo, b.lo), multiply(a.lo, b.hi), multiply(a.hi, b.lo), multiply(a.hi, b.hi)};
    range r;
    r.lo = r.hi = c[0];
    for (std::int64_t x : c) {
      if (x < r.lo) r.lo = x;
      if (x > r.hi) r.hi = x;
    }
    // (d k + r) * c = d c k + r c; of two unknowns only their common divisors are kept.
    if (a.divisor == 0 || b.divisor == 0) {
      range const& x = a.divisor == 0 ? b : a;
      std::int64_t const c0 = a.divisor == 0 ? a.remainder : b.remainder;
      std::int64_t const d = multiply(x.divisor, c0), m = multiply(x.remainder, c0);
      if (d != most && d != least && m != most && m != least) {
        r.divisor = d < 0 ? -d : d;
        r.remainder = modulo(m, r.divisor);
      }
    } else {
      std::int64_t const d = multiply(gcd(a.divisor, a.remainder), gcd(b.divisor, b.remainder));
      r.divisor = d == most || d < 1 ? 1 : d;
      r.remainder = 0;
    }
    return r;
  }
  static constexpr range quotient(range const& a, range const& b) {
    range r = a;
    r.divisor = 1;
    r.remainder = 0;
    if (b.lo < 1) { // by something negative, or by zero
      std::int64_t const far = a.lo == least ? most : (a.hi > -a.lo ? a.hi : -a.lo);
      r.lo = negate(far) < -1 ? negate(far) : -1;
      r.hi = far;
      return r;
    }
    std::int64_t const c[4]{a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi};
    r.lo = r.hi = c[0];
    for (std::int64_t x : c) {
      if (x < r.lo) r.lo = x;
      if (x > r.hi) r.hi = x;
    }
    if (b.constant() && a.divisor > 0 && a.divisor % b.lo == 0 && a.remainder % b.lo == 0) {
      r.divisor = a.divisor / b.lo;
      r.remainder = modulo(a.remainder / b.lo, r.divisor);
    }
    return r;
  }
  static constexpr range remainder(range const& a, range const& b) {
    if (!b.constant() || b.lo == 0 || b.lo == least) { // between -|a| and |a|, and smaller than b where b is positive
      range r{a.lo < 0 ? a.lo : 0, a.hi > 0 ? a.hi : 0, 1, 0};
      if (b.lo > 0 && r.hi > b.hi - 1) r.hi = b.hi - 1;
      if (b.lo > 0 && r.lo < 1 - b.hi) r.lo = 1 - b.hi;
      return r;
    }
    std::int64_t const m = b.lo < 0 ? -b.lo : b.lo;
    range r;
    if (a.lo >= 0 && a.lo / m == a.hi / m) { // one period: nothing wraps
      r.lo = a.lo % m;
      r.hi = a.hi % m;
    } else {
      r.lo = a.lo < 0 ? (a.lo > -m ? a.lo : 1 - m) : 0;
      r.hi = a.hi > 0 ? (a.hi < m ? a.hi : m - 1) : 0;
    }
    r.divisor = gcd(a.divisor, m);
    r.remainder = modulo(a.remainder, r.divisor);
    return r;
  }

  /// The number that the launch has in slot `offset` of parameter p.
  constexpr bool launch_value(int p, int offset, std::int64_t& v) const {
    if (!known_ || known_->slots.empty()) return false;
    std::size_t s = static_cast<std::size_t>(offset);
    for (int q = 0; q < p; ++q) {
      param_info const& f = g_.params[static_cast<std::size_t>(q)];
      s += f.kind == node_kind::array ? 1 + 2 * static_cast<std::size_t>(f.rank) : 1;
    }
    if (s >= known_->slots.size()) return false;
    v = known_->slots[s];
    return true;
  }
  constexpr std::int64_t grid_extent(std::int64_t axis) const {
    if (!known_) return 0;
    return axis == 0 ? known_->grid.x : axis == 1 ? known_->grid.y : known_->grid.z;
  }

  constexpr void compute(int i) {
    node const& n = g_[i];
    std::int64_t known = 0;
    switch (n.code) {
    case op::constant: set(i, constant_range(is_unsigned_int(n.type) && bits_of(n.type) < 64 ? g_.attribute(i, 0) & ((std::int64_t{1} << bits_of(n.type)) - 1) : g_.attribute(i, 0))); return;
    case op::iota: {
      std::int64_t const start = g_.attribute(i, 1);
      set(i, {start, add_to(start, g_.shape_of(i).extent[g_.attribute(i, 0)] - 1), 1, 0});
      return;
    }
    case op::param:
      if (launch_value(static_cast<int>(g_.attribute(i, 0)), 0, known)) set(i, constant_range(narrow(n.type, known)));
      else anything(i);
      return;
    case op::extent: case op::stride: {
      int const array = g_.operand(i, 0), axis = static_cast<int>(g_.attribute(i, 0));
      int const p = static_cast<int>(g_.attribute(array, 0)), rank = g_.params[static_cast<std::size_t>(p)].rank;
      if (launch_value(p, 1 + axis + (n.code == op::stride ? rank : 0), known)) set(i, constant_range(known));
      else if (n.code == op::extent) set(i, {0, most_elements, 1, 0});
      else anything(i);
      return;
    }
    case op::cluster_rank: set(i, {0, cluster_size(g_.attrs) - 1, 1, 0}); return;
    case op::program_id: {
      std::int64_t const e = grid_extent(g_.attribute(i, 0));
      set(i, {0, e > 0 ? e - 1 : 0x7ffffffe, 1, 0});
      return;
    }
    case op::num_programs: {
      std::int64_t const e = grid_extent(g_.attribute(i, 0));
      set(i, e > 0 ? constant_range(e) : range{1, 0x7fffffff, 1, 0});
      return;
    }
    case op::for_begin: loop(i); return;
    case op::histogram: set(i, {0, g_.shape_of(g_.operand(i, 0)).elements(), 1, 0}); return;
    case op::arg_reduce: {
      shape const& s = g_.shape_of(g_.operand(i, 0));
      set(i, {0, s.extent[g_.attribute(i, 1)] - 1, 1, 0});
      return;
    }
    default: break;
    }
    for (int j = 0; j < n.operand_count; ++j) {
      int const o = g_.operand(i, j);
      if (o < 0 || g_[o].kind != node_kind::value || !integer(o)) return anything(i);
    }
    switch (n.code) {
    case op::add: set(i, sum(in(i, 0), in(i, 1))); return;
    case op::sub: set(i, sum(in(i, 0), negative(in(i, 1)))); return;
    case op::neg: set(i, negative(in(i, 0))); return;
    case op::mul: set(i, product(in(i, 0), in(i, 1))); return;
    case op::div: set(i, quotient(in(i, 0), in(i, 1))); return;
    case op::rem: set(i, remainder(in(i, 0), in(i, 1))); return;
    case op::shl:
      if (in(i, 1).constant() && in(i, 1).lo >= 0 && in(i, 1).lo < bits_of(n.type) - 1) set(i, product(in(i, 0), constant_range(std::int64_t{1} << in(i, 1).lo)));
      else anything(i);
      return;
    case op::shr:
      if (in(i, 1).constant() && in(i, 1).lo >= 0 && in(i, 1).lo < bits_of(n.type)) set(i, {in(i, 0).lo >> in(i, 1).lo, in(i, 0).hi >> in(i, 1).lo, 1, 0});
      else anything(i);
      return;
    case op::bit_and: {
      range const &a = in(i, 0), &b = in(i, 1);
      if (a.constant() && b.constant()) set(i, constant_range(a.lo & b.lo));
      else if (a.lo >= 0 || b.lo >= 0) set(i, {0, a.lo < 0 ? b.hi : b.lo < 0 ? a.hi : a.hi < b.hi ? a.hi : b.hi, 1, 0});
      else anything(i);
      return;
    }
    case op::bit_or: case op::bit_xor: {
      range const &a = in(i, 0), &b = in(i, 1);
      if (a.constant() && b.constant()) {
        set(i, constant_range(n.code == op::bit_or ? a.lo | b.lo : a.lo ^ b.lo));
      } else if (a.lo >= 0 && b.lo >= 0) {
        std::int64_t bits = a.hi | b.hi;
        for (int s = 1; s < 64; s *= 2) bits |= bits >> s;
        set(i, {0, bits, 1, 0});
      } else {
        anything(i);
      }
      return;
    }
    case op::bit_not:
      if (is_bool(n.type)) set(i, {1 - in(i, 0).hi, 1 - in(i, 0).lo, 1, 0});
      else if (is_signed_int(n.type)) set(i, {-1 - in(i, 0).hi, -1 - in(i, 0).lo, 1, 0});
      else anything(i);
      return;
    case op::abs: {
      range const& a = in(i, 0);
      if (a.lo >= 0) set(i, a);
      else set(i, {a.hi < 0 ? negate(a.hi) : 0, negate(a.lo) > a.hi ? negate(a.lo) : a.hi, 1, 0});
      return;
    }
    case op::min: case op::max: {
      range const &a = in(i, 0), &b = in(i, 1);
      range r = join(a, b);
      if (n.code == op::min) r.hi = a.hi < b.hi ? a.hi : b.hi;
      else r.lo = a.lo > b.lo ? a.lo : b.lo;
      set(i, r);
      return;
    }
    case op::where: set(i, in(i, 0).constant() ? in(i, in(i, 0).lo ? 1 : 2) : join(in(i, 1), in(i, 2))); return;
    case op::cast:
      if (is_bool(n.type)) set(i, {in(i, 0).lo > 0 || in(i, 0).hi < 0, !(in(i, 0).lo == 0 && in(i, 0).hi == 0), 1, 0});
      else set(i, in(i, 0));
      return;
    case op::multiple_of: {
      range r = in(i, 0);
      if (r.divisor != 0 && r.divisor % g_.attribute(i, 0) != 0) {
        r.divisor = g_.attribute(i, 0);
        r.remainder = 0;
      }
      set(i, r);
      return;
    }
    case op::broadcast: case op::reshape: case op::trans: case op::split: case op::max_contiguous: case op::require_layout: case op::release_layout: set(i, in(i, 0)); return;
    case op::gather: case op::sort: case op::topk: set(i, in(i, 0)); return;
    case op::join: set(i, join(in(i, 0), in(i, 1))); return;
    case op::eq: case op::ne: case op::lt: case op::le: case op::gt: case op::ge: comparison(i); return;
    default: anything(i); return;
    }
  }
  static constexpr std::int64_t narrow(dtype t, std::int64_t v) {
    switch (t) {
    case dtype::i8: return static_cast<std::int8_t>(v);
    case dtype::i16: return static_cast<std::int16_t>(v);
    case dtype::i32: return static_cast<std::int32_t>(v);
    default: return v;
    }
  }
  constexpr void comparison(int i) {
    range const &a = in(i, 0), &b = in(i, 1);
    bool always = false, never = false;
    switch (g_[i].code) {
    case op::lt: always = a.hi < b.lo; never = a.lo >= b.hi; break;
    case op::le: always = a.hi <= b.lo; never = a.lo > b.hi; break;
    case op::gt: always = a.lo > b.hi; never = a.hi <= b.lo; break;
    case op::ge: always = a.lo >= b.hi; never = a.hi < b.lo; break;
    case op::eq: always = a.constant() && b.constant() && a.lo == b.lo; never = a.hi < b.lo || b.hi < a.lo; break;
    default: never = a.constant() && b.constant() && a.lo == b.lo; always = a.hi < b.lo || b.hi < a.lo; break;
    }
    if (g_[g_.operand(i, 0)].type == dtype::u64 && (a.hi == most || b.hi == most)) always = never = false;
    set(i, always ? constant_range(1) : never ? constant_range(0) : range{0, 1, 1, 0});
  }
  constexpr void loop(int i) {
    range const &lo = in(i, 0), &hi = in(i, 1), &by = in(i, 2);
    range r = lo;
    r.divisor = by.divisor == 0 ? gcd(lo.divisor, by.remainder) : gcd(lo.divisor, gcd(by.divisor, by.remainder));
    r.remainder = modulo(lo.remainder, r.divisor);
    if (by.lo > 0) {
      r.hi = hi.hi == least || hi.hi - 1 < lo.lo ? lo.lo : hi.hi - 1;
      if (r.divisor > 1 && r.hi != most) r.hi = add_to(r.hi, -modulo(modulo(r.hi, r.divisor) - modulo(r.remainder, r.divisor), r.divisor)); // the last pass
      if (r.hi < lo.lo) r.hi = lo.lo;
    } else if (by.hi < 0) {
      r.lo = hi.lo == most || hi.lo + 1 > lo.hi ? lo.hi : hi.lo + 1;
      if (r.divisor > 1 && r.lo != least) r.lo = add_to(r.lo, modulo(modulo(r.remainder, r.divisor) - modulo(r.lo, r.divisor), r.divisor));
      if (r.lo > lo.hi) r.lo = lo.hi;
    } else {
      r.lo = lo.lo < hi.lo ? lo.lo : hi.lo;
      r.hi = lo.hi > hi.hi ? lo.hi : hi.hi;
    }
    set(i, r);
  }

  graph_view const& g_;
  known_sizes const* known_;
  range* ranges_ = nullptr;
  range* exact_ = nullptr;
};

} // namespace detail
} // namespace kiln
