// Linear algebra over F2 on machine words: a vector is a word, addition is XOR. Elimination with tags answers every
// question that layouts ask: rank, membership, solutions, intersections and common complements of subspaces.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <optional>

namespace kiln {

using f2_word = std::uint64_t;

/// Thrown where a layout is asked for something it cannot be. In a constant expression the throw itself is the compile
/// error, and the compiler shows the text.
struct layout_error : std::exception {
  const char* text;
  explicit layout_error(const char* message) : text(message) {}
  const char* what() const noexcept override { return text; }
};

namespace detail {
constexpr void layout_require(bool condition, const char* message) {
  if (!condition) throw layout_error(message);
}
} // namespace detail

constexpr f2_word f2_unit(int bit) { return f2_word{1} << bit; }
/// The lowest `bits` bits set; `bits` up to 63.
constexpr f2_word f2_low_mask(int bits) { return f2_unit(bits) - 1; }

/// Generators of a subspace, in a stated order; they need not be independent. At most 64.
struct f2_vectors {
  std::array<f2_word, 64> v{};
  int n = 0;

  constexpr f2_vectors() = default;
  constexpr f2_vectors(std::initializer_list<f2_word> list) {
    for (f2_word x : list) push(x);
  }
  constexpr void push(f2_word x) {
    detail::layout_require(n < 64, "an F2 vector list holds at most 64 vectors");
    v[n++] = x;
  }
  constexpr const f2_word* begin() const { return v.data(); }
  constexpr const f2_word* end() const { return v.data() + n; }
  constexpr f2_word operator[](int i) const { return v[i]; }
  /// The first `count` generators, or all where there are fewer.
  constexpr f2_vectors head(int count) const {
    f2_vectors r = *this;
    if (r.n > count) r.n = count < 0 ? 0 : count;
    return r;
  }
  constexpr f2_vectors operator+(const f2_vectors& other) const {
    f2_vectors r = *this;
    for (f2_word x : other) r.push(x);
    return r;
  }
};

/// Incremental Gaussian elimination. Each row remembers in `tag` which inputs were XORed to make `v`; a solution is the
/// XOR of the tags that were needed, so it uses the vectors that were added earliest.
struct f2_solver {
  struct row {
    f2_word v = 0, tag = 0;
  };
  std::array<row, 64> rows{};
  int n = 0;

  /// What is left of `r` modulo the rows. Every row is reduced by the ones before it, so one pass is enough.
  constexpr row reduce(row r) const {
    for (int i = 0; i < n; ++i)
      if (r.v & rows[i].v & -rows[i].v) r.v ^= rows[i].v, r.tag ^= rows[i].tag;
    return r;
  }
  /// Adds a vector; false: it was already in the span, nothing changed.
  constexpr bool add(f2_word v, f2_word tag = 0) {
    row r = reduce({v, tag});
    if (r.v) rows[n++] = r;
    return r.v != 0;
  }
  constexpr bool contains(f2_word v) const { return reduce({v, 0}).v == 0; }
  /// The combination of tags that makes `v`, or nothing if `v` is outside the span. Linear in `v` on the span.
  constexpr std::optional<f2_word> solve(f2_word v) const {
    row r = reduce({v, 0});
    if (r.v) return {};
    return r.tag;
  }
};

constexpr f2_solver f2_span(const f2_vectors& generators) {
  f2_solver s;
  for (f2_word x : generators) s.add(x);
  return s;
}

constexpr int f2_rank(const f2_vectors& generators) { return f2_span(generators).n; }

/// A basis of span(x) ∩ span(y): eliminate y against x; every vector that vanishes is one combination of both.
constexpr f2_vectors f2_intersect(const f2_vectors& x, const f2_vectors& y) {
  f2_solver joint, independent;
  f2_vectors basis;
  for (f2_word a : x) joint.add(a, a);
  for (f2_word b : y) {
    f2_solver::row rest = joint.reduce({b, 0});
    if (rest.v) joint.rows[joint.n++] = rest;
    else if (independent.add(rest.tag)) basis.push(rest.tag);
  }
  return basis;
}

/// A largest subspace of span(all) that meets span(x) and span(y) only in 0; `all` must span both.
///
/// Construction: extend a basis of X∩Y by x_i to X, by y_i to Y, and X+Y by c_i to everything. The answer is {c_i} and
/// the pairs {x_i ^ y_i}, as many as the shorter list allows. Proof: a combination that lies in X has no c_i, because
/// those are independent of X+Y; its y part then lies in X and in Y, hence in X∩Y, hence is empty, and with it the
/// combination. The same for Y. The dimension is dim(all) - max(dim X, dim Y), and more cannot be had.
/// This one construction yields bank-conflict-free swizzles and the rounds of a shuffle.
constexpr f2_vectors common_complement(const f2_vectors& x, const f2_vectors& y, const f2_vectors& all) {
  f2_solver in_x = f2_span(f2_intersect(x, y)), in_y = in_x, in_all = f2_span(x + y);
  f2_vectors only_x, only_y, r;
  for (f2_word a : x)
    if (in_x.add(a)) only_x.push(a);
  for (f2_word b : y)
    if (in_y.add(b)) only_y.push(b);
  for (f2_word c : all)
    if (in_all.add(c)) r.push(c);
  for (int i = 0; i < only_x.n && i < only_y.n; ++i) r.push(only_x[i] ^ only_y[i]);
  return r;
}

} // namespace kiln
