// From a linear map to instructions: an index is the XOR of a few masked and shifted hardware indices and a constant.
#pragma once

#include "kiln/layout/linear_layout.hpp"

namespace kiln {

/// ((x & mask) << shift), or >> -shift where shift is negative; x is the index of one input field.
struct index_term {
  f2_word mask = 0;
  int shift = 0;
  bool operator==(const index_term&) const = default;
};

/// The part of an output that one input field contributes: the XOR of the terms.
struct index_terms {
  std::array<index_term, 60> term{};
  int n = 0;
  bool disjoint = true; // no output bit comes from two terms: `or` and `add` do as well as XOR

  constexpr const index_term* begin() const { return term.data(); }
  constexpr const index_term* end() const { return term.data() + n; }
  constexpr f2_word operator()(f2_word x) const {
    f2_word r = 0;
    for (const index_term& t : *this) r ^= t.shift < 0 ? (x & t.mask) >> -t.shift : (x & t.mask) << t.shift;
    return r;
  }
};

/// The terms of field `from` of `l` as seen in output field `to`; none where they are not connected. Bits that move by
/// the same distance share a term, so a plain run of bits is one `and` and one shift.
constexpr index_terms terms_of(const linear_layout& l, layout_dim from, layout_dim to) {
  index_terms r;
  f2_word seen = 0;
  for (int i = 0; i < l.in.bits(from); ++i) {
    f2_word column = l.out.get(l.basis(from, i), to);
    if (column & seen) r.disjoint = false;
    seen |= column;
    for (; column; column &= column - 1) {
      int shift = std::countr_zero(column) - i, k = 0;
      while (k < r.n && r.term[std::size_t(k)].shift != shift) ++k;
      if (k == r.n) r.term[std::size_t(r.n++)].shift = shift;
      r.term[std::size_t(k)].mask |= f2_unit(i);
    }
  }
  return r;
}

/// Output bits of `to` that any of the given fields can set. A register constant whose bits are outside this mask may
/// be added instead of XORed, which makes it the immediate of an address.
constexpr f2_word reachable_bits(const linear_layout& l, std::initializer_list<layout_dim> fields, layout_dim to) {
  f2_word r = 0;
  for (f2_word c : l.columns(fields)) r |= l.out.get(c, to);
  return r;
}

} // namespace kiln
