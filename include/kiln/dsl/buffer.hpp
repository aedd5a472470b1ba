// Buffers by element: `k.match_buffer` gives a pointer parameter a shape and strides; views of local memory are read and written one
// element, or one short vector, at a time; arrays and scalars of a thread.
//
//   auto A = k.match_buffer(a, {m, n});                    // row-major, runtime extents
//   A(i, j) = A(i, j) + 1.f;                               // one element
//   store(A.region(at(i, 0), extent<16, 64>), x);          // a box, masked by the extents
//   auto r = k.alloc_local<f32, 4>();  r[0] = A(i, j);
#pragma once
#include <kiln/dsl/element.hpp>
#include <kiln/dsl/pool.hpp>

namespace kiln {

namespace detail {

template <class>
struct buffer_header {};

/// An extent or a stride: a C++ number or a recorded i64.
struct dimension {
  std::int32_t node = -1;
  std::int64_t number = 0;
  constexpr int resolve(recorder& r, site at) const {
    return node >= 0 ? node : r.push(op::constant, {dtype::i64, node_kind::value, 0}, {}, {number}, at);
  }
};
constexpr dimension dimension_of(recorder& r, any_value const& x, char const* what, site at) {
  if (x.is_integer_literal()) return {-1, x.integer()};
  return {x.resolve_index(r, dtype::i64, what, at), 0};
}
/// x * y, or x + y, of i64 nodes of one shape.
constexpr int push_i64(recorder& r, op o, int x, int y, site at) { return r.push(o, {dtype::i64, node_kind::value, r.nodes[x].shape}, {x, y}, {}, at); }
/// A node as i64 of shape `s`.
constexpr int as_i64(recorder& r, int x, std::int32_t s, site at) {
  if (r.nodes[x].type != dtype::i64) x = r.push(op::cast, {dtype::i64, node_kind::value, r.nodes[x].shape}, {x}, {}, at);
  if (r.nodes[x].shape != s) x = r.push(op::broadcast, {dtype::i64, node_kind::value, s}, {x}, {}, at);
  return x;
}
/// `x`, with the promise (which the checker verifies) that it is a multiple of n.
constexpr int promise_multiple(recorder& r, int x, int n, site at) {
  node const v = r.nodes[x];
  return n < 2 ? x : r.push(op::multiple_of, {v.type, v.kind, v.shape}, {x}, {n}, at);
}

/// A matched buffer while it is recorded.
struct matched {
  std::int32_t pointer = -1; ///< to element 0
  int rank = 0;
  dimension extent[max_rank]{}, stride[max_rank]{};
};
constexpr matched match(recorder& r, int pointer, any_value const* extents, int rank, match_buffer_options const& o, site at) {
  matched m;
  m.rank = rank;
  dtype const t = r.nodes[pointer].type;
  std::int64_t const size = bytes_of(t);
  if (o.elem_offset != 0 && o.byte_offset != 0) r.fail(at) << "kiln[R-BD08] match_buffer takes .elem_offset or .byte_offset, not both";
  if (o.byte_offset % size != 0) r.fail(at) << "kiln[R-BD08] .byte_offset = " << o.byte_offset << " is not a multiple of the " << size << " B of an element " << name_of(t);
  if (o.align < 0 || (o.align & (o.align - 1)) != 0) r.fail(at) << "kiln[R-BD08] .align = " << o.align << " is not a power of two";
  if (o.strides.count != 0 && o.strides.count != rank) r.fail(at) << "kiln[R-LY01] " << o.strides.count << " strides for " << rank << " axes";
  if (o.align > size) pointer = promise_multiple(r, pointer, o.align, at);
  std::int64_t const offset = o.elem_offset + o.byte_offset / size;
  m.pointer = offset == 0 ? pointer : r.push(op::ptr_add, {t, node_kind::pointer, 0}, {pointer, dimension{-1, offset}.resolve(r, at)}, {}, at);
  for (int d = 0; d < rank; ++d) {
    m.extent[d] = dimension_of(r, extents[d], "an extent of match_buffer", at);
    if (m.extent[d].node < 0 && m.extent[d].number < 1) r.fail(at) << "kiln[R-LY01] extent " << m.extent[d].number << " of axis " << d << "; at least 1 is needed";
  }
  dimension step{-1, 1};
  for (int d = rank - 1; d >= 0; --d) {
    if (o.strides.count == rank) {
      m.stride[d] = dimension_of(r, o.strides.of[d], "a stride of match_buffer", at);
      continue;
    }
    m.stride[d] = step;
    if (d == 0) break;
    if (step.node < 0 && m.extent[d].node < 0)
      step.number *= m.extent[d].number;
    else if (step.node < 0 && step.number == 1)
      step = m.extent[d];
    else
      step = {push_i64(r, op::mul, step.resolve(r, at), m.extent[d].resolve(r, at), at), 0};
  }
  return m;
}
/// pointer + sum of i_d * stride_d, for indices that are i64 nodes of shape `s`.
constexpr int matched_address(recorder& r, matched const& m, std::int32_t const* index, std::int32_t s, site at) {
  int sum = -1;
  for (int d = 0; d < m.rank; ++d) {
    int x = index[d];
    if (m.stride[d].node >= 0 || m.stride[d].number != 1) x = push_i64(r, op::mul, x, as_i64(r, m.stride[d].resolve(r, at), s, at), at);
    sum = sum < 0 ? x : push_i64(r, op::add, sum, x, at);
  }
  result_type const t{r.nodes[m.pointer].type, node_kind::pointer, s};
  int const base = s == 0 ? m.pointer : r.push(op::broadcast, t, {m.pointer}, {}, at);
  return r.push(op::ptr_add, t, {base, sum}, {}, at);
}
/// The element at constant or runtime indices; along the last axis `vector` neighbours are meant.
constexpr int matched_element(recorder& r, matched const& m, located_index const* index, int vector, site at) {
  std::int32_t at_axis[max_rank]{};
  for (int d = 0; d < m.rank; ++d) {
    int const reach = d == m.rank - 1 ? vector : 1;
    bool const fixed = m.extent[d].node < 0;
    if (index[d].node < 0 && (index[d].number < 0 || (fixed && index[d].number + reach > m.extent[d].number))) {
      message e = r.fail(at);
      e << (vector > 1 ? "kiln[R-BD06] " : "kiln[R-BD01] ") << "index " << index[d].number << " along axis " << d << " of a matched buffer, valid 0..";
      if (fixed)
        e << m.extent[d].number - reach;
      else
        e << "its extent - " << reach;
    }
    at_axis[d] = as_i64(r, index[d].resolve(r), 0, at);
    if (reach > 1) at_axis[d] = promise_multiple(r, at_axis[d], reach, at);
  }
  return matched_address(r, m, at_axis, 0, at);
}
/// Pointers to `count` elements that follow each other.
constexpr int vector_of_pointers(recorder& r, int pointer, int count, site at) {
  std::int32_t const s = r.intern({1, {count}});
  result_type const t{r.nodes[pointer].type, node_kind::pointer, s};
  int const steps = r.push(op::iota, {dtype::i32, node_kind::value, s}, {}, {0, 0}, at);
  return r.push(op::ptr_add, t, {r.push(op::broadcast, t, {pointer}, {}, at), steps}, {}, at);
}
struct pointer_box {
  int pointers, mask;
};
/// A box of a matched buffer: pointers, and which of them lie inside its extents (-1: all).
constexpr pointer_box matched_box(recorder& r, matched const& m, any_value const* start, kiln::shape const& size, site at) {
  std::int32_t const s = r.intern(size);
  std::int32_t index[max_rank]{};
  int mask = -1;
  for (int d = 0; d < m.rank; ++d) {
    dimension const lo = dimension_of(r, start[d], "the start of a region", at);
    bool const fixed = lo.node < 0 && m.extent[d].node < 0;
    if (fixed && (lo.number < 0 || lo.number >= m.extent[d].number))
      r.fail(at) << "kiln[R-BD02] a region that starts at " << lo.number << " of " << m.extent[d].number << " elements (axis " << d << ")";
    int const steps = r.push(op::iota, {dtype::i64, node_kind::value, s}, {}, {d, 0}, at);
    index[d] = lo.node < 0 && lo.number == 0 ? steps : push_i64(r, op::add, as_i64(r, lo.resolve(r, at), s, at), steps, at);
    if (fixed && lo.number + size.extent[d] <= m.extent[d].number) continue;
    result_type const b{dtype::b1, node_kind::value, s};
    int in = r.push(op::lt, b, {index[d], as_i64(r, m.extent[d].resolve(r, at), s, at)}, {}, at);
    if (lo.node >= 0) { // a start below 0 is masked too, as in a region of an array
      int const zero = r.push(op::constant, {dtype::i64, node_kind::value, s}, {}, {0}, at);
      in = r.push(op::bit_and, b, {in, r.push(op::ge, b, {index[d], zero}, {}, at)}, {}, at);
    }
    mask = mask < 0 ? in : r.push(op::bit_and, b, {mask, in}, {}, at);
  }
  return {matched_address(r, m, index, s, at), mask};
}
/// A view of type t of what view `data` shows, from `offset` bytes on, where an index on the way to it is no constant: a part of a
/// window over whole slots. -1 where the part does not lie in one run, or is not known to start at a multiple of its size.
template <class T>
constexpr int declare_at(recorder& r, result_type t, int data, std::int64_t offset, char const* name, site at, buffer_header<T>) {
  constexpr int most = 24;
  int chain[most]{}, links = 0;
  for (int i = data; r.nodes[i].code != op::alloc; i = r.operand(i, 0)) {
    if (links == most) return -1;
    chain[links++] = i;
  }
  int const b = r.view().buffer_of(data);
  buffer_info const f = r.buffers[b];
  if (f.where != storage::smem || !f.layout.plain()) return -1;
  // Strides of the present view, and the number of its first element in the slot: a node, and what divides it.
  std::int64_t stride[max_rank]{}, divisor = 0;
  int number = -1;
  auto row_major = [&](kiln::shape const& s) {
    std::int64_t step = 1;
    for (int d = s.rank - 1; d >= 0; --d) {
      stride[d] = step;
      step *= s.extent[d];
    }
  };
  auto runs_on = [&](kiln::shape const& s) {
    std::int64_t step = 1;
    for (int d = s.rank - 1; d >= 0; --d) {
      if (s.extent[d] != 1 && stride[d] != step) return false;
      step *= s.extent[d];
    }
    return true;
  };
  auto divide = [&](std::int64_t by) {
    std::int64_t a = divisor < 0 ? -divisor : divisor, c = by < 0 ? -by : by;
    while (c != 0) {
      std::int64_t const rest = a % c;
      a = c;
      c = rest;
    }
    divisor = a;
  };
  auto push_number = [&](op o, int x, std::int64_t y) {
    return r.push(o, {dtype::i32, node_kind::value, 0}, {x, r.push(op::constant, {dtype::i32, node_kind::value, 0}, {}, {y}, at)}, {}, at);
  };
  auto advance = [&](int index, std::int64_t step, std::int64_t granule) {
    if (r.nodes[index].code == op::constant) granule = r.attribute(index, 0);
    if (granule == 0) return;
    divide(step * granule);
    int x = r.nodes[index].type == dtype::i32 ? index : r.push(op::cast, {dtype::i32, node_kind::value, 0}, {index}, {}, at);
    if (step != 1) x = push_number(op::mul, x, step);
    number = number < 0 ? x : r.push(op::add, {dtype::i32, node_kind::value, 0}, {number, x}, {}, at);
  };
  row_major(r.shapes[f.shape]);
  for (int c = links - 2; c >= 0; --c) {
    int const i = chain[c];
    kiln::shape const from = r.shapes[r.nodes[r.operand(i, 0)].shape], to = r.shapes[r.nodes[i].shape];
    switch (r.nodes[i].code) {
    case op::view_index:
      advance(r.operand(i, 1), stride[0], 1);
      for (int d = 0; from.rank > 1 && d < to.rank; ++d) stride[d] = stride[d + 1];
      break;
    case op::view_slice:
      for (int d = 0; d < to.rank; ++d) advance(r.operand(i, d + 1), stride[d], to.extent[d]); // a multiple, by the contract of slices
      break;
    case op::view_trans: {
      std::int64_t before[max_rank]{};
      for (int d = 0; d < to.rank; ++d) before[d] = stride[r.attribute(i, d)];
      for (int d = 0; d < to.rank; ++d) stride[d] = before[d];
      break;
    }
    default:
      if (!runs_on(from)) return -1;
      row_major(to);
    }
  }
  std::int64_t const mine = bytes_of(t.type), its = bytes_of(f.type), count = r.shapes[t.shape].elements(), whole = bytes_of(f.type, r.shapes[f.shape].elements());
  std::int64_t const present = bytes_of(f.type, r.shapes[r.nodes[data].shape].elements());
  if (!runs_on(r.shapes[r.nodes[data].shape]) || offset < 0 || offset + count * mine > present) return -1;
  if ((count & (count - 1)) != 0 || whole % (count * mine) != 0 || divisor * its % (count * mine) != 0 || offset % (count * mine) != 0) return -1;
  if (f.place.offset % mine != 0 || slot_stride(r.view(), f) % mine != 0 || count > 0x7fffffff) return -1;
  slot_map m = f.place;
  m.stride = static_cast<std::int32_t>(slot_stride(r.view(), f));
  result_type line{t.type, node_kind::view, r.intern({1, {static_cast<int>(whole / mine)}})};
  int const slots = add_window(r, line, b, m, f.slots, f.has_slots, name, at);
  int const slot = r.push(op::view_index, line, {slots, r.operand(chain[links - 1], 1)}, {}, at);
  if (number < 0) number = r.push(op::constant, {dtype::i32, node_kind::value, 0}, {}, {0}, at);
  if (its > mine) number = push_number(op::mul, number, its / mine);
  if (mine > its) number = push_number(op::div, number, mine / its);
  if (offset > 0) number = push_number(op::add, number, offset / mine);
  int const part = r.push(op::view_slice, {t.type, node_kind::view, r.intern({1, {static_cast<int>(count)}})}, {slot, number}, {}, at);
  return r.shapes[t.shape].rank == 1 ? part : r.push(op::view_reshape, t, {part}, {}, at);
}

/// Accesses that an access_ptr did not declare.
constexpr void check_limits(recorder& r) {
  for (int l = 0; l < r.limits.size(); ++l) {
    access_limit const& limit = r.limits[l];
    if (limit.read && limit.write) continue;
    for (int i = 0; i < r.nodes.size(); ++i) {
      op const o = r.nodes[i].code;
      if (has(o, trait::view) || o == op::dump_layout) continue;
      bool const writes = has(o, trait::writes_local) || o == op::async_load || o == op::async_load_bulk;
      for (int j = 0; j < r.nodes[i].operand_count; ++j) {
        int const v = r.operand(i, j);
        if (v < 0 || r.nodes[v].kind != node_kind::view || r.view().buffer_of(v) != limit.buffer || (writes ? limit.write : limit.read)) continue;
        auto m = r.fail_at(i);
        m << "kiln[R-BD07] ";
        put_buffer_name(m, r, limit.buffer);
        m << (writes ? " is written" : " is read") << " through an access_ptr that line " << limit.line << " declares for " << (writes ? "reading" : "writing") << " only";
        return;
      }
    }
  }
}
/// What access_ptr was given; `count` elements, -1: as many as the launch says.
constexpr void check_range(recorder& r, access a, access_ptr_options const& o, std::int64_t count, site at, int view = -1) {
  if (a == access::none) r.fail(at) << "kiln[R-BD07] access_ptr for no access; say access::r, access::w or access::rw";
  std::int64_t const end = o.extent < 0 ? o.offset + 1 : o.offset + o.extent;
  if (o.offset >= 0 && o.extent != 0 && (count < 0 || end <= count)) return;
  message m = r.fail(at);
  m << "kiln[R-BD07] access_ptr to elements " << o.offset << ".." << end - 1 << " of ";
  if (count < 0)
    m << "a buffer; it needs one at least, from 0 on";
  else if (view < 0)
    m << count;
  else
    put_buffer_name(m, r, r.view().buffer_of(view));
  if (view >= 0) m << ", valid 0.." << count - 1;
}
/// A recorded mask and one of a user.
constexpr int joint_mask(recorder& r, int mine, any_value const& other, std::int32_t s, site at) {
  int const o = other.resolve(r, dtype::b1, s, ".mask", at);
  if (mine < 0 || o < 0) return mine < 0 ? o : mine;
  return r.push(op::bit_and, {dtype::b1, node_kind::value, s}, {mine, o}, {}, at);
}

} // namespace detail

/// A box of a matched buffer, from `buffer.region(at(...), extent<...>)`. Loads and stores through it never leave the buffer.
template <class T, int... D>
class buffer_region {
public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;
  static constexpr detail::extents dims = detail::extents_of<D...>;
  constexpr buffer_region(recorder* r, detail::pointer_box b) : recorder_(r), box_(b) {}
  recorder* recorder_;      ///< for the library
  detail::pointer_box box_; ///< for the library
};

/// Reads a box of a matched buffer; what lies outside gives `.other`, or 0.
template <class T, int... D>
constexpr auto load(buffer_region<T, D...> const& from, load_options o = {}, site at = {}) {
  recorder& r = *from.recorder_;
  using R = tile<std::remove_const_t<T>, D...>;
  result_type const t = detail::type_of<R>(r);
  int const mask = detail::joint_mask(r, from.box_.mask, o.mask, t.shape, at);
  int other = o.other.resolve(r, t.type, t.shape, ".other", at);
  if (mask < 0) other = -1; // nothing is outside
  return R{&r, r.push(op::load, t, {from.box_.pointers, mask, other}, {static_cast<int>(o.cache), static_cast<int>(o.evict), o.is_volatile}, at)};
}
/// Writes a box of a matched buffer; what lies outside is not written. Errors: T-04, T-05, T-14.
template <class T, int... D, operand V>
constexpr auto store(buffer_region<T, D...> const& to, V const& value, store_options o = {}, site at = {}) {
  static_assert(!std::is_const_v<T>, "kiln[T-14] store through a buffer over const memory; declare the parameter ptr<T>");
  recorder& r = *to.recorder_;
  std::int32_t const s = r.nodes[to.box_.pointers].shape;
  int const mask = detail::joint_mask(r, to.box_.mask, o.mask, s, at);
  using P = pointers<T, D...>;
  store_options masked = o;
  if (mask >= 0) masked.mask = tile<bool, D...>{&r, mask};
  store(P{&r, to.box_.pointers}, value, masked, at);
}

/// A pointer with a shape and strides, from `k.match_buffer`. `A(i, j)` is an element; indices are integers of any type, the same in
/// the whole CTA. Rules: the element of index (i, ..) is at pointer + offset + sum of index * stride, in elements.
template <class T, int Rank>
class matched_buffer : public detail::indexed_by<matched_buffer<T, Rank>, std::make_index_sequence<Rank>> {
public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;
  static constexpr int rank = Rank;
  constexpr matched_buffer(recorder* r, detail::matched const& m) : recorder_(r), m_(m) {}

  /// Pointer to element 0.
  constexpr ptr<T> data() const { return {recorder_, m_.pointer}; }
  constexpr val<i64> extent(int axis, site at = {}) const { return number(axis, m_.extent, at); }
  constexpr val<i64> stride(int axis, site at = {}) const { return number(axis, m_.stride, at); }
  /// A pointer to element `.offset` in the order of memory, of a range of `.extent` elements that lies in the buffer. Errors: R-BD07.
  constexpr ptr<T> access_ptr(access a, access_ptr_options o = {}, site at = {}) const {
    recorder& r = *recorder_;
    if (std::is_const_v<T> && (a == access::w || a == access::rw)) r.fail(at) << "kiln[T-14] access_ptr to write a buffer over const memory; declare the parameter ptr<T>";
    detail::check_range(r, a, o, count(m_), at);
    if (o.offset == 0) return data();
    return {recorder_, r.push(op::ptr_add, {dtype_of<value_type>, node_kind::pointer, 0}, {m_.pointer, detail::dimension{-1, o.offset}.resolve(r, at)}, {}, at)};
  }
  /// The box of `size` that starts at `start`: `A.region(at(m, 0), extent<16, 64>)`. Errors: R-BD02 outside for constant numbers.
  template <int... D>
  constexpr auto region(detail::coordinates<sizeof...(D)> start, detail::extent_list<D...>, site at = {}) const {
    static_assert(sizeof...(D) == Rank, "kiln[T-05] a region needs one start and one extent per axis of the buffer");
    return buffer_region<T, D...>{recorder_, detail::matched_box(*recorder_, m_, start.at, detail::to_shape(detail::extents_of<D...>), at)};
  }
  /// Axes permuted: extent d of the result is extent P[d]; strides follow. No data moves. Errors: R-BD09.
  template <int... P>
  constexpr auto permute() const {
    constexpr detail::extents p = detail::extents_of<P...>;
    static_assert(sizeof...(P) == Rank && detail::is_permutation(p), "kiln[R-BD09] permute needs each axis exactly once");
    detail::matched m = m_;
    for (int d = 0; d < Rank; ++d) {
      m.extent[d] = m_.extent[p.extent[d]];
      m.stride[d] = m_.stride[p.extent[d]];
    }
    return matched_buffer{recorder_, m};
  }
  /// The same elements in row-major order as another shape. The buffer must be row-major, and where all numbers are constant their
  /// products must be equal. Errors: R-BD08.
  template <std::size_t N>
  constexpr auto view(detail::any_value const (&extents)[N], site at = {}) const {
    recorder& r = *recorder_;
    if (!row_major()) r.fail(at) << "kiln[R-BD08] view of a buffer that is not row-major; match_buffer the pointer again with the strides that are meant";
    matched_buffer<T, static_cast<int>(N)> const v{recorder_, detail::match(r, m_.pointer, extents, static_cast<int>(N), {}, at)};
    std::int64_t const before = count(m_), after = count(v.m_);
    if (before >= 0 && after >= 0 && before != after) r.fail(at) << "kiln[R-BD08] view of " << before << " elements as " << after;
    return v;
  }

  // For the library, see detail::indexed_by.
  constexpr element_ref<value_type> element(detail::located_index const* i) const {
    int const p = detail::matched_element(*recorder_, m_, i, 1, i[0].at);
    return {recorder_, {detail::element_place::kind::global, p}, !std::is_const_v<T>, i[0].at};
  }
  constexpr ptr<T> pointer(detail::located_index const* i) const { return {recorder_, detail::matched_element(*recorder_, m_, i, 1, i[0].at)}; }
  template <int V>
  constexpr auto load_vector(detail::located_index const* i) const {
    return load(vector<V>(i), {}, i[0].at);
  }
  template <int V, class X>
  constexpr auto store_vector(detail::located_index const* i, X const& x) const {
    store(vector<V>(i), x, {}, i[0].at);
  }

  recorder* recorder_; ///< for the library
  detail::matched m_;  ///< for the library

private:
  template <int V>
  constexpr auto vector(detail::located_index const* i) const {
    static_assert(V >= 1 && (V & (V - 1)) == 0 && kiln::bytes_of(dtype_of<value_type>, V) <= 16, "kiln[R-BD06] vload and vstore move 1, 2, 4, 8 or 16 elements, at most 16 bytes");
    detail::dimension const& s = m_.stride[Rank - 1];
    if (s.node >= 0 || s.number != 1) recorder_->fail(i[0].at) << "kiln[R-BD06] vload<" << V << "> along the last axis of a buffer whose elements do not follow each other there";
    for (int d = 0; d + 1 < Rank; ++d)
      if (m_.stride[d].node < 0 && m_.stride[d].number % V != 0)
        recorder_->fail(i[0].at) << "kiln[R-BD06] vload<" << V << "> of rows that are " << m_.stride[d].number << " elements apart: they do not all start at a multiple of " << V;
    int const p = detail::matched_element(*recorder_, m_, i, V, i[0].at);
    return pointers<T, V>{recorder_, detail::vector_of_pointers(*recorder_, detail::promise_multiple(*recorder_, p, static_cast<int>(kiln::bytes_of(dtype_of<value_type>, V)), i[0].at), V, i[0].at)};
  }
  constexpr val<i64> number(int axis, detail::dimension const* of, site at) const {
    if (axis < 0 || axis >= Rank) {
      recorder_->fail(at) << "kiln[R-BD01] axis " << axis << " of a buffer of rank " << Rank << ", valid 0.." << Rank - 1;
      axis = 0;
    }
    return {recorder_, of[axis].resolve(*recorder_, at)};
  }
  constexpr bool row_major() const {
    std::int64_t step = 1;
    for (int d = Rank - 1; d >= 0; --d) {
      if (m_.stride[d].node < 0 && step >= 0 && m_.stride[d].number != step) return false;
      step = m_.extent[d].node >= 0 || step < 0 ? -1 : step * m_.extent[d].number;
    }
    return true;
  }
  static constexpr std::int64_t count(detail::matched const& m) {
    std::int64_t n = 1;
    for (int d = 0; d < m.rank; ++d) {
      if (m.extent[d].node >= 0) return -1;
      n *= m.extent[d].number;
    }
    return n;
  }
};

template <class P, std::size_t N>
constexpr auto context::make_matched(P const& pointer, detail::any_value const (&extents)[N], match_buffer_options const& o, site at) {
  static_assert(pointer_like<P>, "kiln[T-07] match_buffer takes a pointer parameter");
  static_assert(N >= 1 && N <= max_rank, "kiln[T-02] a buffer has 1 to 6 axes");
  auto p = detail::read(pointer, at);
  static_assert(decltype(p)::dims.rank == 0, "kiln[T-05] match_buffer takes one pointer, not a tile of them");
  return matched_buffer<typename decltype(p)::element_type, static_cast<int>(N)>{r_, detail::match(*r_, p.node_, extents, static_cast<int>(N), o, at)};
}

// -- views of local memory ---------------------------------------------------------------------------------------------------

namespace detail {
/// The view of one element.
constexpr int element_of_view(recorder& r, int view, int rank, located_index const* index) {
  graph_view const g = r.view();
  if (int const b = g.buffer_of(view); g.buffer(b).where == storage::tmem) {
    message m = r.fail(index[0].at);
    m << "kiln[R-BD04] ";
    put_buffer_name(m, r, b);
    m << " lies in tensor memory, which has no single elements; local_load it first";
    return view;
  }
  for (int d = 0; d < rank; ++d) {
    kiln::shape const& from = r.shapes[r.nodes[view].shape];
    kiln::shape to{1, {1}};
    if (from.rank > 1) {
      to.rank = from.rank - 1;
      for (int i = 0; i < to.rank; ++i) to.extent[i] = from.extent[i + 1];
    }
    int const x = index[d].resolve(r);
    view = r.push(op::view_index, {r.nodes[view].type, node_kind::view, r.intern(to)}, {view, x}, {}, index[d].at);
  }
  return view;
}
/// Whether elements along the last axis of a view follow each other in memory.
constexpr bool last_axis_is_dense(graph_view const& g, int view) {
  int axis = g.shape_of(view).rank - 1;
  for (int i = view; g[i].code != op::alloc; i = g.operand(i, 0)) {
    if (g[i].code == op::view_trans) axis = static_cast<int>(g.attribute(i, axis));
    if (g[i].code == op::view_index && g[g.operand(i, 0)].code != op::alloc) axis = g.shape_of(g.operand(i, 0)).rank - 1 - (g.shape_of(i).rank - 1 - axis);
    if (g[i].code == op::view_reshape && axis != g.shape_of(i).rank - 1) return false;
    if (g[i].code == op::view_reshape) axis = g.shape_of(g.operand(i, 0)).rank - 1;
  }
  return axis == g.shapes.items[g.buffer(g.buffer_of(view)).shape].rank - 1;
}
/// The view of `count` elements along the last axis from an index that is a multiple of `count`.
constexpr int vector_of_view(recorder& r, int view, int rank, located_index const* index, int count) {
  site const at = index[0].at;
  if (!last_axis_is_dense(r.view(), view)) {
    message m = r.fail(at);
    m << "kiln[R-BD06] vload<" << count << "> of ";
    put_buffer_name(m, r, r.view().buffer_of(view));
    m << " along an axis whose elements do not follow each other in memory; permute it last";
    return view;
  }
  if (rank > 1) view = element_of_view(r, view, rank - 1, index);
  dtype const t = r.nodes[view].type;
  std::int64_t const extent = r.shapes[r.nodes[view].shape].extent[0];
  located_index const& last = index[rank - 1];
  if (last.node < 0 && (last.number < 0 || last.number + count > extent || last.number % count != 0)) {
    message m = r.fail(at);
    m << "kiln[R-BD06] vload<" << count << "> " << name_of(t) << " of ";
    put_buffer_name(m, r, r.view().buffer_of(view));
    m << " at element " << last.number << " of " << extent << ": it needs a multiple of " << count << ", at most " << extent - count;
    return view;
  }
  int x = last.resolve(r);
  if (r.nodes[x].type != dtype::i32) x = r.push(op::cast, {dtype::i32, node_kind::value, 0}, {x}, {}, at);
  if (last.node >= 0) x = promise_multiple(r, x, count, at);
  return r.push(op::view_slice, {t, node_kind::view, r.intern({1, {count}})}, {view, x}, {}, at);
}
constexpr void refuse_vector(recorder& r, int view, int count, site at) {
  kiln::shape const s = r.shapes[r.nodes[view].shape];
  message m = r.fail(at);
  m << "kiln[R-BD06] " << count << " elements of " << name_of(r.nodes[view].type) << " at a time along the last axis of ";
  put_buffer_name(m, r, r.view().buffer_of(view));
  m << ", which has " << s.extent[s.rank - 1] << "; vload and vstore move 1, 2, 4, 8 or 16 that divide it, at most 16 bytes";
}
template <class T, int V, int N>
constexpr bool vector_fits() {
  return V >= 1 && (V & (V - 1)) == 0 && kiln::bytes_of(dtype_of<T>, V) <= 16 && N % V == 0;
}
} // namespace detail

template <class T, int... D>
constexpr auto view<T, D...>::element(detail::located_index const* i) const {
  return element_ref<T>{recorder_, {detail::element_place::kind::local, detail::element_of_view(*recorder_, node_, rank, i)}, true, i[0].at};
}
template <class T, int... D>
constexpr auto view<T, D...>::pointer(detail::located_index const* i) const {
  return local_pointer<T>{recorder_, detail::element_of_view(*recorder_, node_, rank, i)};
}
template <class T, int... D>
template <int V>
constexpr auto view<T, D...>::load_vector(detail::located_index const* i) const {
  recorder& r = *recorder_;
  if (!detail::vector_fits<T, V, dims.extent[rank - 1]>()) detail::refuse_vector(r, node_, V, i[0].at);
  int const v = detail::vector_of_view(r, node_, rank, i, V);
  return tile<T, V>{&r, r.push(op::local_load, detail::type_of<tile<T, V>>(r), {v, -1}, {0}, i[0].at)};
}
template <class T, int... D>
template <int V, class X>
constexpr auto view<T, D...>::store_vector(detail::located_index const* i, X const& x) const {
  if (!detail::vector_fits<T, V, dims.extent[rank - 1]>()) detail::refuse_vector(*recorder_, node_, V, i[0].at);
  static_assert(tile_like<X> && std::same_as<T, detail::element_of<X>> && detail::read_t<X>::dims == detail::extents_of<V>, "kiln[T-04] vstore<V> needs a tile of V elements of the buffer's type");
  recorder& r = *recorder_;
  int const value = detail::read(x, i[0].at).node_;
  r.push(op::local_store, {}, {detail::vector_of_view(r, node_, rank, i, V), value}, {}, i[0].at);
}
template <class T, int... D>
constexpr auto view<T, D...>::limited(access a, access_ptr_options const& o, site at) const {
  recorder& r = *recorder_;
  std::int64_t const count = r.shapes[r.nodes[node_].shape].elements(), extent = o.extent < 0 ? count - o.offset : o.extent;
  detail::check_range(r, a, o, count, at, node_);
  if (!r.error.ok()) return local_pointer<T>{recorder_, node_};
  result_type const t{dtype_of<T>, node_kind::view, r.intern({1, {static_cast<int>(extent)}})};
  int const before = r.buffers.size();
  int part = detail::place_of_view(r, node_).known ? -1 : detail::declare_at(r, t, node_, o.offset * kiln::bytes_of(dtype_of<T>), nullptr, at, detail::buffer_header<T>{});
  if (part < 0) part = detail::view_of_slot(r, t, detail::declare(r, t, node_, o.offset * kiln::bytes_of(dtype_of<T>), nullptr, at), at);
  r.check_limits = &detail::check_limits;
  if (r.buffers.size() > before) r.limits.add() = {r.buffers.size() - 1, at.line, a != access::w, a != access::r};
  return local_pointer<T>{recorder_, part};
}
template <class T, int... D>
template <int... P>
constexpr auto view<T, D...>::permuted(site at) const {
  return context(*recorder_).template local_trans<P...>(*this, at);
}
template <class T, int... D>
template <int... E>
constexpr auto view<T, D...>::box(detail::coordinates<sizeof...(D)> const& start, site at) const {
  return context(*recorder_).template local_slice<E...>(*this, start, at);
}

// -- arrays and scalars of a thread -------------------------------------------------------------------------------------------

template <element T, int... D>
constexpr auto context::make_local(char const* name, site at) {
  static_assert(sizeof...(D) >= 1 && sizeof...(D) <= max_rank && ((D >= 1) && ...), "kiln[T-02] a local array has 1 to 6 axes, each at least 1");
  static_assert(detail::elements_of<D...> <= 256, "kiln[T-02] a local array has at most 256 elements: they are registers of every thread; use alloc_shared or alloc_fragment");
  recorder& r = *r_;
  int const nothing = r.push(op::unset, {dtype_of<T>, node_kind::value, 0}, {}, {}, at);
  int const first = nothing + 1;
  for (std::int64_t i = 0; i < detail::elements_of<D...>; ++i) r.push(op::var, {dtype_of<T>, node_kind::cell, 0}, {nothing}, {}, at);
  return local_array<T, D...>{r_, first, name};
}
template <element T>
constexpr auto context::make_shared_scalar(alloc_shared_options const& o, site at) {
  return shared_element<T>{r_, alloc_shared<T, 1>(o, at), at};
}
/// A scalar where `scope` says: local is `k.alloc_var`, shared_dyn and shared_static `k.shared_scalar`, global one element of
/// `k.alloc_global` for each CTA.
template <element T, scope Scope>
constexpr auto context::make_scalar(site at) {
  if constexpr (Scope == scope::local)
    return alloc_var<T>(at);
  else if constexpr (Scope == scope::global)
    return element_ref<T>{r_, {detail::element_place::kind::global, alloc_global<T, 1>({.per = per::cta}, at).node_}, true, at};
  else
    return shared_scalar<T>({.scope = Scope}, at);
}

} // namespace kiln
