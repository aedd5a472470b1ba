// Tensor memory from a cursor of columns, allocated and given back by hand.
//
//   auto pool = k.smem_pool();
//   auto tp = k.tmem_pool(pool, {.total_cols = 256});
//   auto acc = tp.alloc<f32, 128, 64>({.name = "acc"});     // 64 columns
//   tp.commit();                                             // one warp allocates
//   ...
//   tp.dealloc();                                            // and gives back, on every path
//   pool.commit();
#pragma once
#include <kiln/dsl/pool.hpp>

namespace kiln {


struct tmem_alloc_options {
  datapath layout = datapath::automatic; ///< layout/datapath.hpp; automatic: row r in lane r
  int sub_slab = 0;                      ///< of datapath::F: 0 the lower, 1 the upper half of each quarter of the lanes
  int cols = 0;                          ///< columns to reserve; 0: what the shape needs
  char const* name = nullptr;
};
struct tmem_mma_options {
  int m = 128;       ///< rows of the instruction, of both CTAs of a pair: 64, 128 or 256
  int cta_group = 1; ///< CTAs that share the instruction
  bool weight_stationary = false; ///< the .ws form of 64 rows
  char const* name = nullptr;
};
struct tmem_scale_options {
  int per_mma = 1; ///< factors of a row that one instruction reads: 1, 2 or 4
  int reuse = 1;   ///< neighbouring logical columns that share one factor
  char const* name = nullptr;
};

namespace detail {

template <class>
struct tensor_header {};

constexpr message refuse_tensor(recorder& r, char const* rule, char const* name, site at) {
  message m = r.fail(at);
  m << rule << " " << (name ? name : "a view of a tmem_pool") << ": ";
  return m;
}
/// Uses of a pool's columns before they are allocated or after they were given back, by the agent that does so or by one that it forks.
constexpr void check_tensor_uses(recorder& r, tensor_pool_state const& s) {
  auto task_of = [&](int node) {
    for (int i = node; i >= 0; --i) {
      if (r.nodes[i].code == op::task_end || r.nodes[i].code == op::tasks_end) return -1;
      if (r.nodes[i].code == op::task_begin) return i;
    }
    return -1;
  };
  int const home = task_of(s.committed);
  graph_view const g = r.view();
  for (int i = 0; i < r.nodes.size(); ++i) {
    if ((i > s.committed && i < s.released) || has(r.nodes[i].code, trait::view) || r.nodes[i].code == op::dump_layout) continue;
    for (int j = 0; j < r.nodes[i].operand_count; ++j) {
      int const v = r.operand(i, j);
      if (v < 0 || r.nodes[v].kind != node_kind::view || g.storage_of(g.buffer_of(v)) != s.buffer) continue;
      if (int const task = task_of(i); task >= 0 && home >= 0 && task != home) continue; // what orders tasks, a run shows
      auto m = r.fail_at(i);
      m << "kiln[R-PA17] ";
      put_buffer_name(m, r, g.buffer_of(v));
      m << " (" << slot_bytes(g, r.buffers[g.buffer_of(v)]) / 4 << " columns) is used ";
      if (i < s.committed)
        m << "before line " << r.nodes[s.committed].line << " commits its pool";
      else
        m << "after line " << r.nodes[s.released].line << " gave its columns back";
      return;
    }
  }
}
/// The layout of a buffer in a pool; plain: row r in lane r.
constexpr slot_layout pool_datapath(recorder& r, dtype t, int rows, int columns, tmem_alloc_options const& o, site at) {
  datapath const d = o.layout;
  bool const half = d == datapath::F || d == datapath::B;
  if (o.sub_slab != 0 && (o.sub_slab != 1 || d != datapath::F)) {
    refuse_tensor(r, "kiln[R-AL19]", o.name, at) << ".sub_slab = " << o.sub_slab << "; 0, or 1 with datapath::F";
  } else if (d == datapath::scale) {
    refuse_tensor(r, "kiln[R-MM07]", o.name, at) << "factors are allocated by alloc_scale";
  } else if ((half && rows != 64) || (d == datapath::D && rows != 128)) {
    refuse_tensor(r, "kiln[R-AL19]", o.name, at) << rows << " rows in datapath " << (d == datapath::F ? "F" : d == datapath::B ? "B" : "D") << ", which has " << (half ? 64 : 128);
  } else if (d == datapath::B && columns * bits_of(t) % 64 != 0) {
    refuse_tensor(r, "kiln[R-AL19]", o.name, at) << columns << " columns do not split into two halves of whole 32-bit columns, as datapath B needs";
  } else if (half) {
    return datapath_layout(d, rows, columns, o.sub_slab);
  }
  return {};
}
/// The datapath of an instruction of `.m` rows, of which `rows` are this CTA's.
constexpr datapath mma_datapath(recorder& r, int group, int rows, tmem_mma_options const& o, site at) {
  bool const one = o.cta_group == 1 && (o.m == 64 || o.m == 128), two = o.cta_group == 2 && (o.m == 128 || o.m == 256);
  if (!one && !two)
    refuse_tensor(r, "kiln[R-MM01]", o.name, at) << "M = " << o.m << " of " << o.cta_group << " CTAs: an instruction has 64 or 128 rows, of a pair 128 or 256";
  else if (o.weight_stationary && (o.m != 64 || o.cta_group != 1))
    refuse_tensor(r, "kiln[R-MM01]", o.name, at) << ".weight_stationary with M = " << o.m << " of " << o.cta_group << " CTAs; it has 64 rows of one";
  else if (two && (group != 2 || r.attrs.cluster.x % 2 != 0))
    refuse_tensor(r, "kiln[R-MM06]", o.name, at) << "an accumulator of a pair of CTAs needs a pool of .cta_group = 2 and an even cluster x size, got " << group << " and " << r.attrs.cluster.x;
  else if (rows * o.cta_group != o.m)
    refuse_tensor(r, "kiln[R-AL19]", o.name, at) << rows << " rows of this CTA for an instruction of " << o.m << "; " << o.m / o.cta_group << " are needed";
  else if (rows == 64)
    return two || o.weight_stationary ? datapath::B : datapath::F;
  return datapath::automatic;
}
constexpr slot_layout pool_scale(recorder& r, kiln::shape const& s, tmem_scale_options const& o, site at) {
  int const rows = s.extent[s.rank - 2], columns = s.extent[s.rank - 1], lead = s.rank == 3 ? s.extent[0] : 1;
  int const m = o.per_mma, reuse = o.reuse;
  if (m != 1 && m != 2 && m != 4)
    refuse_tensor(r, "kiln[R-MM07]", o.name, at) << ".per_mma = " << m << "; an instruction reads 1, 2 or 4 factors of a row";
  else if (rows % 32 != 0)
    refuse_tensor(r, "kiln[R-MM07]", o.name, at) << "factors of " << rows << " rows; they lie in chunks of 32";
  else if (reuse < 1 || columns % (m * reuse) != 0)
    refuse_tensor(r, "kiln[R-MM07]", o.name, at) << columns << " columns of factors are not a multiple of .per_mma * .reuse = " << m << " * " << reuse;
  else
    return scale_layout(lead, rows, columns, m, reuse);
  return scale_layout(1, 32, 1, 1, 1);
}

} // namespace detail

/// From `k.tmem_pool`. Rules: R-AL19 rows, R-CP04 columns, R-PA14 the cursor, R-PA15 columns that were handed out again, R-PA16 more
/// than there are, R-PA17 commit and dealloc.
class tmem_pool_handle {
public:
  constexpr tmem_pool_handle(recorder* r, detail::tensor_pool_state* s, view<u32, 1> const& slot) : recorder_(r), state_(s), slot_(slot) {}

  /// The next columns, as a view of R rows (64 or 128) by C columns of elements. Errors: R-AL19, R-PA16, R-PA17 after commit.
  template <element T, int R, int C>
  constexpr auto alloc(tmem_alloc_options o = {}, site at = {}) {
    static_assert(C >= 1 && R >= 1, "kiln[T-02] extents are at least 1");
    if (R != 64 && R != 128) detail::refuse_tensor(*recorder_, "kiln[R-AL19]", o.name, at) << R << " rows in tensor memory; rows must be 64 or 128";
    if (C * bits_of(dtype_of<T>) % 32 != 0)
      detail::refuse_tensor(*recorder_, "kiln[R-PA16]", o.name, at) << C << " x " << name_of(dtype_of<T>) << " in a row do not fill whole 32-bit columns";
    return view<T, R, C>{recorder_, place(detail::type_of<view<T, R, C>>(*recorder_, node_kind::view), detail::pool_datapath(*recorder_, dtype_of<T>, R, C, o, at), o, at)};
  }
  /// The accumulator of a matrix instruction of `.m` rows, in the datapath that it writes: D for 128 rows of one CTA (and of 256 of a
  /// pair), F for 64, B for 64 of a pair or weight-stationary. Errors: as alloc; R-MM01 no such instruction, R-MM06 a pair in a kernel
  /// without clusters of pairs, R-AL19 rows that are not those of the CTA.
  template <element T, int R, int C>
  constexpr auto alloc_mma_d(tmem_mma_options o = {}, site at = {}) {
    return alloc<T, R, C>({.layout = detail::mma_datapath(*recorder_, state_->group, R, o, at), .name = o.name}, at);
  }
  /// An operand of a matrix instruction that lies in tensor memory: its rows in the first lanes. Errors: as alloc_mma_d.
  template <element T, int R, int C>
  constexpr auto alloc_mma_a(tmem_mma_options o = {}, site at = {}) {
    (void)detail::mma_datapath(*recorder_, state_->group, R, o, at);
    return alloc<T, R, C>({.name = o.name}, at);
  }
  /// Factors of a block-scaled operand: `alloc_scale<u8, R, K>`, or `<u8, Stages, R, K>`. K counts reused ones again. Errors: R-MM07
  /// rows that are no multiple of 32, K that is no multiple of `.per_mma * .reuse`; R-PA16, R-PA17.
  template <element T, int... D>
  constexpr auto alloc_scale(tmem_scale_options o = {}, site at = {}) {
    static_assert(sizeof...(D) == 2 || sizeof...(D) == 3, "kiln[R-MM07] factors have rows and columns, with stages in front or without");
    static_assert(kiln::bits_of(dtype_of<T>) == 8, "kiln[R-MM07] factors are 8-bit elements");
    static_assert(((D >= 1) && ...), "kiln[T-02] extents are at least 1");
    slot_layout const l = detail::pool_scale(*recorder_, detail::to_shape(detail::extents_of<D...>), o, at);
    return view<T, D...>{recorder_, place(detail::type_of<view<T, D...>>(*recorder_, node_kind::view), l, {.name = o.name}, at)};
  }
  /// Sets the cursor; columns at or above it may be handed out again. Units: columns. Errors: R-PA14, R-PA17 after commit.
  constexpr void move_base_to(int column, site at = {}) {
    if (state_->committed >= 0) about(at) << "move_base_to after commit";
    if (column < 0 || column > state_->high) {
      about(at, "kiln[R-PA14]") << "cursor " << column << (column < 0 ? " is negative; valid from 0, high-water " : " beyond high-water ") << state_->high;
      return;
    }
    state_->cursor = column;
  }
  /// One warp allocates `.total_cols` columns. Before the first use, once. Errors: R-PA17.
  constexpr void commit(site at = {}) {
    recorder& r = *recorder_;
    if (state_->committed >= 0) {
      about(at) << "it was committed at line " << r.nodes[state_->committed].line << "; once is enough";
      return;
    }
    state_->region = r.innermost();
    // Where the columns begin; simulated memory counts each allocation from 0.
    int const base = r.push(op::constant, {dtype::u32, node_kind::value, r.intern({1, {1}})}, {}, {0}, at);
    r.push(op::local_store, {}, {slot_.node_, base}, {}, at);
    state_->committed = r.push(op::tensor_alloc, {}, {r.buffers[state_->buffer].node}, {state_->warp & 255, state_->group}, at);
  }
  /// One warp gives the columns back. After commit, once, on every path, after the last use. Errors: R-PA17.
  constexpr void dealloc(site at = {}) {
    recorder& r = *recorder_;
    if (state_->committed < 0 || state_->released >= 0) {
      auto m = about(at);
      if (state_->committed < 0)
        m << "dealloc before commit; there is nothing to give back";
      else
        m << "it was given back at line " << r.nodes[state_->released].line << "; once is enough";
      return;
    }
    if (r.innermost() != state_->region) {
      about(at) << state_->total << " columns of line " << r.nodes[state_->committed].line << " are not released on every path; dealloc outside of the condition or loop";
      return;
    }
    state_->released = r.push(op::tensor_dealloc, {}, {r.buffers[state_->buffer].node}, {state_->warp >> 8}, at);
  }
  /// The next column to be handed out, and one past the highest that was.
  constexpr int cursor() const { return state_->cursor; }
  constexpr int high_water() const { return state_->high; }
  /// Where the address of the columns is kept.
  constexpr view<u32, 1> const& address() const { return slot_; }

private:
  constexpr detail::message about(site at, char const* rule = "kiln[R-PA17]") {
    detail::message m = recorder_->fail(at);
    m << rule << " ";
    detail::put_buffer_name(m, *recorder_, state_->buffer);
    m << ": ";
    return m;
  }
  constexpr int place(result_type t, slot_layout const& l, tmem_alloc_options const& o, site at) {
    recorder& r = *recorder_;
    buffer_info like; // for its columns
    like.type = t.type;
    like.layout = l;
    int const columns = static_cast<int>(detail::tensor_columns(like, r.shapes[t.shape]));
    int const take = o.cols > columns ? o.cols : columns;
    if (state_->committed >= 0) about(at) << "alloc" << (o.name ? " of " : "") << (o.name ? o.name : "") << " after commit; allocate before it";
    if (o.cols != 0 && o.cols < columns) r.fail(at) << "kiln[R-PA16] .cols = " << o.cols << " is less than the " << columns << " columns of the shape";
    int from = state_->cursor;
    if (from + take > state_->total) {
      auto m = r.fail(at);
      m << "kiln[R-PA16] " << (o.name ? o.name : "tmem pool") << ": columns " << from << ".." << from + take - 1 << " exceed total_cols " << state_->total;
      from = 0;
    }
    state_->cursor = from + take;
    if (state_->cursor > state_->high) state_->high = state_->cursor;
    int const node = detail::place_buffer(r, t, r.buffers[state_->buffer].node, from, buffer_role::pooled, -1, o.name, at);
    r.buffers.back().layout = l;
    return node;
  }
  recorder* recorder_;
  detail::tensor_pool_state* state_;
  view<u32, 1> slot_;
};

template <class Pool>
constexpr auto context::make_tensor_pool(Pool& pool, tmem_pool_options const& o, site at) {
  recorder& r = *r_;
  bool const columns = o.total_cols >= 32 && o.total_cols <= 512 && (o.total_cols & (o.total_cols - 1)) == 0;
  if (!columns) {
    int next = 32;
    while (next < 512 && next < o.total_cols) next *= 2;
    r.fail(at) << "kiln[R-CP04] " << (o.name ? o.name : "tmem_pool") << ": " << o.total_cols << " columns: must be a power of two in 32..512; use " << next;
  }
  if (o.cta_group != 1 && o.cta_group != 2) r.fail(at) << "kiln[R-CP04] .cta_group = " << o.cta_group << "; valid are 1 and 2";
  if (tensor_pool_.buffer >= 0) r.fail(at) << "kiln[R-PA17] a second pool in tensor memory; one exists since line " << r.nodes[r.buffers[tensor_pool_.buffer].node].line << ", allocate from it";
  (void)pool;
  view<u32, 1> slot{r_, o.tmem_addr.node};
  if (o.tmem_addr.node < 0)
    slot = pool.template alloc<u32, 1>({.name = "tmem_addr"}, at);
  else if (r.nodes[slot.node_].type != dtype::u32 || r.shapes[r.nodes[slot.node_].shape].elements() != 1)
    r.fail(at) << "kiln[R-CP04] .tmem_addr is where one u32 goes";
  int const node = detail::make_arena(r, storage::tmem, columns ? o.total_cols : 512, 0, o.name ? o.name : "tmem_pool", at);
  tensor_pool_.buffer = static_cast<std::int32_t>(r.attribute(node, 0));
  tensor_pool_.total = columns ? o.total_cols : 512;
  tensor_pool_.group = o.cta_group;
  tensor_pool_.check_uses = &detail::check_tensor_uses;
  tensor_pool_.warp = o.alloc_warp | (o.dealloc_warp < 0 ? o.alloc_warp : o.dealloc_warp) << 8;
  return tmem_pool_handle{r_, &tensor_pool_, slot};
}

namespace detail {

/// A column as a number: a constant, or what a slot of 4 bytes holds plus constants. Below 0: neither.
constexpr std::int64_t column_of(recorder& r, any_value const& x, site at) {
  if (x.is_integer_literal()) return x.integer();
  int i = x.resolve_index(r, dtype::u32, ".allocated_addr", at);
  std::int64_t sum = 0;
  for (int steps = 0; steps < 16; ++steps) {
    op const o = r.nodes[i].code;
    if (o == op::constant) return sum + r.attribute(i, 0);
    if (o == op::local_load) return sum;
    if (o == op::add) {
      int const a = r.operand(i, 0), b = r.operand(i, 1);
      bool const second = r.nodes[b].code == op::constant;
      if (!second && r.nodes[a].code != op::constant) return -1;
      sum += r.attribute(second ? b : a, 0);
      i = second ? a : b;
    } else if (o == op::cast || o == op::reshape) {
      i = r.operand(i, 0);
    } else {
      return -1;
    }
  }
  return -1;
}

} // namespace detail

template <element T, int... D>
constexpr auto context::make_tensor_window(decl_buffer_options const& o, site at) {
  recorder& r = *r_;
  kiln::shape const s = detail::to_shape(detail::extents_of<D...>);
  result_type const t = detail::type_of<view<T, D...>>(r, node_kind::view);
  auto nothing = [&] { return view<T, D...>{r_, r.push(op::constant, t, {}, {0}, at)}; };
  if (tensor_pool_.buffer < 0 || !o.allocated_addr.present()) {
    r.fail(at) << "kiln[R-BD07] decl_buffer in tensor memory needs " << (tensor_pool_.buffer < 0 ? "an allocation around it: make a tmem_pool" : ".allocated_addr, the first of its columns");
    return nothing();
  }
  std::int64_t const first = detail::column_of(r, o.allocated_addr, at);
  bool const factors = o.layout.tensor == datapath::scale;
  slot_layout const l = s.rank != 2 ? slot_layout{}
                        : factors   ? detail::scale_layout(1, s.extent[0], s.extent[1])
                                    : detail::pool_datapath(r, t.type, s.extent[0], s.extent[1], {.layout = o.layout.tensor}, at);
  buffer_info like;
  like.type = t.type;
  like.layout = l;
  std::int64_t const columns = detail::tensor_columns(like, s);
  if (s.rank != 2 || columns == 0 || (factors && s.extent[0] % 32 != 0)) {
    r.fail(at) << "kiln[R-AL19] decl_buffer in tensor memory has rows and columns: 64 or 128 rows (scale factors: a multiple of 32)";
    return nothing();
  }
  if (first < 0 || first + columns > tensor_pool_.total) {
    auto m = r.fail(at);
    if (first < 0)
      m << "kiln[R-BD07] .allocated_addr is a column from 0 on: a number, or what the pool's slot holds plus a number";
    else
      m << "kiln[R-BD07] a view of columns " << first << ".." << first + columns - 1 << " exceeds the " << tensor_pool_.total << " of its pool";
    return nothing();
  }
  // It shows the buffer that has those columns, where one has.
  int base = tensor_pool_.buffer;
  for (int b = 0; b < r.buffers.size(); ++b) {
    buffer_info const& f = r.buffers[b];
    if (f.where != storage::tmem || f.role != buffer_role::pooled || r.view().storage_of(b) != tensor_pool_.buffer) continue;
    if (f.place.offset <= first && first + columns <= f.place.offset + detail::slot_bytes(r.view(), f) / 4) base = b;
  }
  slot_map place;
  place.offset = static_cast<std::int32_t>(first);
  int const node = detail::add_window(r, t, base, place, 1, false, o.name, at);
  r.buffers.back().layout = l;
  r.buffers.back().pun = true;
  return view<T, D...>{r_, detail::view_of_slot(r, t, node, at)};
}

} // namespace kiln
