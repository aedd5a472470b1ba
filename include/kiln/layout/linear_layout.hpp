// Linear layouts: the one object that says where a tile's elements live. Read this header as a tutorial.
//
// 1. What the map means
// ---------------------
// A *distributed layout* says which element a register holds: its input bits are (register, lane, warp, cta), its
// output bits are the coordinates of the tile (d0 = row, d1 = column). A *shared layout* says which element an offset
// holds: its input bits are the offset in elements. Each input *bit* has a *column*, the coordinate it contributes. To
// evaluate, XOR the columns of the bits that are set. That is the whole definition; everything else is linear algebra
// with XOR as addition.
//
// Worked example: a 4x4 tile on 2 warps of 4 lanes with 2 registers each. Columns as (row, col):
//
//   register bit 0 -> (0,1)    lane bit 0 -> (1,1)    lane bit 1 -> (0,2)    warp bit 0 -> (2,0)
//
//   as packed words row1 row0 col1 col0:   register 0001   lane bits 0101, 0010   warp 1000
//
//           col 0  col 1  col 2  col 3        warp 1, lane 3, register 1:
//   row 0   L0 r0  L0 r1  L2 r0  L2 r1          1000 ^ (0101 ^ 0010) ^ 0001 = 1110 = row 3, col 2
//   row 1   L1 r1  L1 r0  L3 r1  L3 r0        element (1,0) = 0100 = 0101 ^ 0001: lane 1, register 1
//   row 2 and row 3: the same in warp 1
//
// Written in code:
//
//   constexpr auto toy = layout_from_bases(tile_space(2, 2), {{layout_dim::reg, {{0, 1}}},
//                                                             {layout_dim::lane, {{1, 1}, {0, 2}}},
//                                                             {layout_dim::warp, {{2, 0}}}});
//   static_assert(toy(0b1'11'1) == 0b11'10);
//
// Why hardware -> coordinate and not the reverse: a lane always holds exactly one element per register, while an
// element may live in several places (a zero or dependent column means copies). The forward map is always a function;
// its inverse exists only after choosing owners (ownership.hpp).
//
// 2. Packing
// ----------
// The last axis sits in the lowest bits of a packed coordinate, so the packed word *is* the row-major element index.
// Reshape is then free and "contiguous" always means "low output bits". One register holds one element, whatever its
// size; packing small elements into 32 bits is decided when code is emitted.
//
// 3. What is free
// ---------------
// Register indices are known at compile time, so any invertible map of register bits costs nothing. Treat registers as
// a *subspace*, not as a list of bits: test membership in the span of the register columns. Lane and warp bits are not
// free: a register index that depends on the lane costs selects.
//
// 4. The algebra (below)
// ----------------------
//   a * b               direct sum: b uses the bits above a's, in each shared input and output dimension
//   compose(a, b)       x -> b(a(x))
//   invert(a)           elimination; where copies exist, the solution that uses the earliest columns
//   divide_left(a, t)   c with t * c == a, or nothing: "does this layout start with that hardware tile?"
//   sublayout, fit      pick fields; grow by registers, or wrap to copies
//   same_map(a, b)      equality whatever the order of the fields: compare layouts with this, never by spelling
//
// Tiles whose extents are not powers of two are rounded up: the layout covers the padded tile and masks cut it.
// Constants are affine, not linear (5 + 4 carries): keep them beside a layout.
#pragma once

#include "kiln/layout/f2.hpp"

#include <bit>

namespace kiln {

/// Names of bit fields: hardware places, the offset in a memory (in elements), and the axes of a tile.
enum class layout_dim : std::uint8_t { none, reg, lane, warp, cta, offset, d0, d1, d2, d3, d4, d5, d6, d7 };

/// The name of axis `i` of a tile, 0 <= i < 8.
constexpr layout_dim axis_dim(int i) {
  detail::layout_require(i >= 0 && i < 8, "a tile has at most 8 axes");
  return layout_dim(int(layout_dim::d0) + i);
}
constexpr bool is_axis(layout_dim d) { return d >= layout_dim::d0; }
constexpr int axis_index(layout_dim d) { return int(d) - int(layout_dim::d0); }

struct layout_field {
  layout_dim name = layout_dim::none;
  std::uint8_t bits = 0;
  bool operator==(const layout_field&) const = default;
};

/// An ordered list of bit fields; the first occupies the lowest bits of a packed word. A tile lists its *last* axis
/// first. At most 8 fields and 60 bits.
struct bit_space {
  std::array<layout_field, 8> fields{};
  int rank = 0;

  constexpr bit_space() = default;
  constexpr bit_space(std::initializer_list<layout_field> list) {
    for (layout_field f : list) append(f.name, f.bits);
  }

  constexpr int find(layout_dim d) const {
    for (int i = 0; i < rank; ++i)
      if (fields[i].name == d) return i;
    return -1;
  }
  constexpr bool has(layout_dim d) const { return find(d) >= 0; }
  constexpr int bits(layout_dim d) const {
    int i = find(d);
    return i < 0 ? 0 : fields[i].bits;
  }
  constexpr int total() const {
    int n = 0;
    for (int i = 0; i < rank; ++i) n += fields[i].bits;
    return n;
  }
  /// The position of the lowest bit of field `d`; `total()` where there is no such field.
  constexpr int shift(layout_dim d) const {
    int n = 0;
    for (int i = 0; i < rank && fields[i].name != d; ++i) n += fields[i].bits;
    return n;
  }
  constexpr f2_word mask(layout_dim d) const { return f2_low_mask(bits(d)) << shift(d); }
  constexpr f2_word get(f2_word w, layout_dim d) const { return (w & mask(d)) >> shift(d); }
  constexpr f2_word put(layout_dim d, f2_word value) const { return value << shift(d); }
  /// A word packed by `from`, packed by this space instead: fields move by name, and what does not fit is dropped.
  constexpr f2_word repack(f2_word w, const bit_space& from) const {
    f2_word r = 0;
    for (int i = 0; i < rank; ++i) r |= put(fields[i].name, from.get(w, fields[i].name)) & mask(fields[i].name);
    return r;
  }
  /// This space with field `d` of `n` bits: resized where it exists, else appended above the others.
  constexpr bit_space with(layout_dim d, int n) const {
    bit_space s = *this;
    if (int i = find(d); i >= 0) {
      s.fields[i].bits = std::uint8_t(n);
      detail::layout_require(n >= 0 && s.total() <= 60, "a bit space holds at most 60 bits");
    } else {
      s.append(d, n);
    }
    return s;
  }
  bool operator==(const bit_space&) const = default;

private:
  constexpr void append(layout_dim d, int n) {
    detail::layout_require(rank < 8, "a bit space holds at most 8 fields");
    detail::layout_require(!has(d), "a bit space names each field once");
    fields[rank++] = {d, std::uint8_t(n)};
    detail::layout_require(n >= 0 && total() <= 60, "a bit space holds at most 60 bits");
  }
};

/// The space of a rank-2 tile of 2^m rows and 2^n columns.
constexpr bit_space tile_space(int m, int n) {
  return {{layout_dim::d1, std::uint8_t(n)}, {layout_dim::d0, std::uint8_t(m)}};
}

/// True where both spaces have the same fields with the same widths, in any order.
constexpr bool same_fields(const bit_space& a, const bit_space& b) {
  for (const bit_space* s : {&a, &b})
    for (int i = 0; i < s->rank; ++i)
      if (a.bits(s->fields[i].name) != b.bits(s->fields[i].name)) return false;
  return true;
}

/// A linear map between bit spaces. Structural, so it can be a template argument. At most 32 input bits.
struct linear_layout {
  bit_space in, out;
  std::array<f2_word, 32> col{}; // the image of each input bit, packed by `out`

  constexpr f2_word operator()(f2_word x) const {
    f2_word r = 0;
    for (; x; x &= x - 1) r ^= col[std::countr_zero(x)];
    return r;
  }
  /// Column `i` of field `d`; 0 where the layout has no such bit.
  constexpr f2_word basis(layout_dim d, int i) const { return i < in.bits(d) ? col[in.shift(d) + i] : 0; }
  constexpr f2_vectors columns(std::initializer_list<layout_dim> dims) const {
    f2_vectors r;
    for (layout_dim d : dims)
      for (int i = 0; i < in.bits(d); ++i) r.push(basis(d, i));
    return r;
  }
  constexpr f2_vectors columns() const {
    f2_vectors r;
    for (int i = 0; i < in.total(); ++i) r.push(col[i]);
    return r;
  }
  constexpr bool injective() const { return f2_rank(columns()) == in.total(); }
  constexpr bool surjective() const { return f2_rank(columns()) == out.total(); }
  bool operator==(const linear_layout&) const = default;
};

using layout_opt = std::optional<linear_layout>;

/// An all-zero map between the given spaces, to be filled in.
/// Errors: more than 32 input bits.
constexpr linear_layout zero_map(const bit_space& in, const bit_space& out) {
  detail::layout_require(in.total() <= 32, "a layout has at most 32 input bits");
  return {in, out, {}};
}

// ---- constructors ---------------------------------------------------------------------------------------------------

/// x -> x << shift, from `bits` bits of `in` to `out_bits` bits of `out`.
constexpr linear_layout strided_layout(layout_dim in, int bits, layout_dim out, int shift, int out_bits) {
  linear_layout l = zero_map({{in, std::uint8_t(bits)}}, {{out, std::uint8_t(out_bits)}});
  for (int i = 0; i < bits; ++i) l.col[i] = f2_unit(i + shift);
  return l;
}
constexpr linear_layout identity_layout(layout_dim in, layout_dim out, int bits) {
  return strided_layout(in, bits, out, 0, bits);
}
/// x -> 0: every value of `in` holds a copy.
constexpr linear_layout copies_layout(layout_dim in, int bits, layout_dim out) {
  return zero_map({{in, std::uint8_t(bits)}}, {{out, 0}});
}

/// One input field of `layout_from_bases`: the {row, column} of each of its bits, lowest first.
struct field_bases {
  layout_dim in;
  std::initializer_list<std::array<int, 2>> v;
};
/// A rank-2 layout from written-out columns.
constexpr linear_layout layout_from_bases(const bit_space& out, std::initializer_list<field_bases> list) {
  bit_space in;
  for (const field_bases& b : list) in = in.with(b.in, int(b.v.size()));
  linear_layout r = zero_map(in, out);
  int n = 0;
  for (const field_bases& b : list)
    for (auto [row, column] : b.v)
      r.col[n++] = out.put(layout_dim::d0, f2_word(row)) | out.put(layout_dim::d1, f2_word(column));
  return r;
}

// ---- algebra --------------------------------------------------------------------------------------------------------

/// Direct sum: `b` takes the bits above those of `a`, in every shared input and output dimension. Builds tiles from
/// atoms; the order of the factors is the order of nesting.
constexpr linear_layout operator*(const linear_layout& a, const linear_layout& b) {
  bit_space in = a.in, out = a.out;
  for (int i = 0; i < b.in.rank; ++i)
    in = in.with(b.in.fields[i].name, a.in.bits(b.in.fields[i].name) + b.in.fields[i].bits);
  for (int i = 0; i < b.out.rank; ++i)
    out = out.with(b.out.fields[i].name, a.out.bits(b.out.fields[i].name) + b.out.fields[i].bits);
  linear_layout r = zero_map(in, out);
  for (int k = 0; k < in.rank; ++k) {
    layout_dim d = in.fields[k].name;
    int from_a = a.in.bits(d), base = in.shift(d);
    for (int i = 0; i < from_a; ++i) r.col[base + i] = out.repack(a.basis(d, i), a.out);
    for (int i = 0; i < b.in.bits(d); ++i)
      for (int o = 0; o < b.out.rank; ++o) {
        layout_dim e = b.out.fields[o].name;
        r.col[base + from_a + i] |= out.put(e, b.out.get(b.basis(d, i), e) << a.out.bits(e));
      }
  }
  return r;
}

/// x -> b(a(x)). Fields pass from a's output to b's input by name; what `b` does not take is dropped.
constexpr linear_layout compose(const linear_layout& a, const linear_layout& b) {
  linear_layout r = zero_map(a.in, b.out);
  for (int i = 0; i < a.in.total(); ++i) r.col[i] = b(b.in.repack(a.col[i], a.out));
  return r;
}

/// Right inverse on the image: y -> the solution that uses the earliest columns; the exact inverse where `a` is
/// bijective. Outputs outside the image map to 0: check `surjective()` where that matters. At most 32 output bits.
constexpr linear_layout invert(const linear_layout& a) {
  f2_solver s;
  for (int i = 0; i < a.in.total(); ++i) s.add(a.col[i], f2_unit(i));
  linear_layout r = zero_map(a.out, a.in);
  for (int i = 0; i < a.out.total(); ++i) r.col[i] = s.solve(f2_unit(i)).value_or(0);
  return r;
}

/// The named fields of `a`, cut to the given widths.
constexpr linear_layout sublayout(const linear_layout& a, const bit_space& in, const bit_space& out) {
  linear_layout r = zero_map(in, out);
  for (int k = 0; k < in.rank; ++k)
    for (int i = 0; i < in.fields[k].bits; ++i)
      r.col[in.shift(in.fields[k].name) + i] = out.repack(a.basis(in.fields[k].name, i), a.out);
  return r;
}

/// The same map packed by other spaces: every field of both layouts must have the same width by name.
constexpr bool same_map(const linear_layout& a, const linear_layout& b) {
  if (!same_fields(a.out, b.out)) return false;
  for (const bit_space* s : {&a.in, &b.in})
    for (int k = 0; k < s->rank; ++k) {
      layout_dim d = s->fields[k].name;
      for (int i = 0; i < s->fields[k].bits; ++i)
        if (a.basis(d, i) != a.out.repack(b.basis(d, i), b.out)) return false;
    }
  return true;
}

/// c with t * c == a, if there is one.
constexpr layout_opt divide_left(const linear_layout& a, const linear_layout& t) {
  for (int k = 0; k < t.in.rank; ++k)
    if (t.in.fields[k].bits > a.in.bits(t.in.fields[k].name)) return {};
  for (int k = 0; k < t.out.rank; ++k)
    if (t.out.fields[k].bits > a.out.bits(t.out.fields[k].name)) return {};
  bit_space in, out;
  for (int k = 0; k < a.in.rank; ++k)
    in = in.with(a.in.fields[k].name, a.in.fields[k].bits - t.in.bits(a.in.fields[k].name));
  for (int k = 0; k < a.out.rank; ++k)
    out = out.with(a.out.fields[k].name, a.out.fields[k].bits - t.out.bits(a.out.fields[k].name));
  linear_layout c = zero_map(in, out);
  for (int k = 0; k < a.in.rank; ++k) {
    layout_dim d = a.in.fields[k].name;
    for (int i = t.in.bits(d); i < a.in.fields[k].bits; ++i)
      for (int o = 0; o < a.out.rank; ++o) {
        layout_dim e = a.out.fields[o].name;
        c.col[in.shift(d) + i - t.in.bits(d)] |= out.put(e, a.out.get(a.basis(d, i), e) >> t.out.bits(e));
      }
  }
  linear_layout back = t * c; // the quotient was read off; now see whether it was one
  for (int k = 0; k < a.in.rank; ++k)
    for (int i = 0; i < a.in.fields[k].bits; ++i) {
      layout_dim d = a.in.fields[k].name;
      if (a.out.repack(back.basis(d, i), back.out) != a.basis(d, i)) return {};
    }
  return c;
}

/// Makes the tile exactly `t`: repeats in registers where the layout is smaller, wraps (copies) where it is larger.
/// Register copies are dropped, since they are pointless; lane, warp and cta copies are kept, since they are facts.
constexpr linear_layout fit(linear_layout l, const bit_space& t) {
  for (int k = 0; k < t.rank; ++k) {
    layout_dim d = t.fields[k].name;
    int have = l.out.bits(d), want = t.fields[k].bits;
    if (want > have) l = l * identity_layout(layout_dim::reg, d, want - have);
    else if (!l.out.has(d)) l.out = l.out.with(d, 0);
  }
  bit_space in;
  std::array<f2_word, 32> kept{};
  int n = 0;
  for (int k = 0; k < l.in.rank; ++k) {
    layout_dim d = l.in.fields[k].name;
    int start = n;
    for (int i = 0; i < l.in.fields[k].bits; ++i) {
      f2_word c = t.repack(l.basis(d, i), l.out);
      if (c == 0 && d == layout_dim::reg) continue;
      kept[n++] = c;
    }
    in = in.with(d, n - start);
  }
  linear_layout r = zero_map(in, t);
  r.col = kept;
  return r;
}

/// The same layout with its output packed in another order of fields; missing fields are dropped.
constexpr linear_layout reorder_out(const linear_layout& l, const bit_space& order) {
  linear_layout r = zero_map(l.in, order);
  for (int i = 0; i < l.in.total(); ++i) r.col[i] = order.repack(l.col[i], l.out);
  return r;
}

} // namespace kiln
