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
  int cols = 0; ///< columns to reserve; 0: what the shape needs
  char const* name = nullptr;
};
struct tmem_mma_options {
  int m = 128;       ///< rows of the instruction: 64 or 128
  int cta_group = 1;
  char const* name = nullptr;
};

/// From `k.tmem_pool`. Rules: R-AL19 rows, R-CP04 columns, R-PA14 the cursor, R-PA15 columns that were handed out again, R-PA16 more
/// than there are, R-PA17 commit and dealloc.
class tmem_pool_handle {
public:
  constexpr tmem_pool_handle(recorder* r, detail::tensor_pool_state* s, view<u32, 1> const& slot) : recorder_(r), state_(s), slot_(slot) {}

  /// The next columns, as a view of R rows (64 or 128) by C columns of elements. Errors: R-AL19, R-PA16, R-PA17 after commit.
  template <element T, int R, int C>
  constexpr auto alloc(tmem_alloc_options o = {}, site at = {}) {
    static_assert(R == 64 || R == 128, "kiln[R-AL19] rows in tensor memory must be 64 or 128");
    static_assert(C >= 1, "kiln[T-02] extents are at least 1");
    static_assert(C * bits_of(dtype_of<T>) % 32 == 0, "kiln[R-PA16] the elements of a row must fill whole 32-bit columns of tensor memory");
    return view<T, R, C>{recorder_, place(detail::type_of<view<T, R, C>>(*recorder_, node_kind::view), C * bits_of(dtype_of<T>) / 32, o, at)};
  }
  /// The accumulator of a matrix instruction of `.m` rows. Errors: as alloc; R-MM06 for pairs of CTAs, R-AL19 rows that are not `.m`.
  template <element T, int R, int C>
  constexpr auto alloc_mma_d(tmem_mma_options o = {}, site at = {}) {
    check_mma(R, o, at);
    return alloc<T, R, C>({.name = o.name}, at);
  }
  /// An operand of a matrix instruction that lies in tensor memory.
  template <element T, int R, int C>
  constexpr auto alloc_mma_a(tmem_mma_options o = {}, site at = {}) {
    check_mma(R, o, at);
    return alloc<T, R, C>({.name = o.name}, at);
  }
  /// Sets the cursor; columns at or above it may be handed out again. Units: columns. Errors: R-PA14, R-PA17 after commit.
  constexpr void move_base_to(int column, site at = {}) {
    recorder& r = *recorder_;
    if (state_->committed >= 0) r.fail(at) << "kiln[R-PA17] move_base_to after commit";
    if (column < 0 || column > state_->high) {
      r.fail(at) << "kiln[R-PA14] cursor " << column << (column < 0 ? " is negative; valid from 0, high-water " : " beyond high-water ") << state_->high;
      return;
    }
    state_->cursor = column;
  }
  /// One warp allocates `.total_cols` columns. Before the first use, once. Errors: R-PA17.
  constexpr void commit(site at = {}) {
    recorder& r = *recorder_;
    if (state_->committed >= 0) {
      r.fail(at) << "kiln[R-PA17] the pool was committed at line " << r.nodes[state_->committed].line << "; once is enough";
      return;
    }
    state_->region = r.innermost();
    state_->committed = r.push(op::tensor_alloc, {}, {r.buffers[state_->buffer].node}, {state_->warp & 255, state_->group}, at);
  }
  /// One warp gives the columns back. After commit, once, on every path, after the last use. Errors: R-PA17.
  constexpr void dealloc(site at = {}) {
    recorder& r = *recorder_;
    if (state_->committed < 0 || state_->released >= 0) {
      auto m = r.fail(at);
      if (state_->committed < 0)
        m << "kiln[R-PA17] dealloc before commit; there is nothing to give back";
      else
        m << "kiln[R-PA17] the pool was given back at line " << r.nodes[state_->released].line << "; once is enough";
      return;
    }
    if (r.innermost() != state_->region) {
      r.fail(at) << "kiln[R-PA17] tensor memory allocated at line " << r.nodes[state_->committed].line << " is not released on every path; dealloc outside of the condition or loop";
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
  constexpr void check_mma(int rows, tmem_mma_options const& o, site at) {
    if (o.cta_group != 1)
      recorder_->fail(at) << "kiln[R-MM06] an accumulator of a pair of CTAs: matrix instructions of pairs are not there yet; use .cta_group = 1";
    else if (o.m != rows)
      recorder_->fail(at) << "kiln[R-AL19] " << rows << " rows for an instruction of " << o.m << "; they must be equal, 64 or 128";
  }
  constexpr int place(result_type t, int columns, tmem_alloc_options const& o, site at) {
    recorder& r = *recorder_;
    int const take = o.cols > columns ? o.cols : columns;
    if (state_->committed >= 0) r.fail(at) << "kiln[R-PA17] alloc after commit; allocate before it";
    if (o.cols != 0 && o.cols < columns) r.fail(at) << "kiln[R-PA16] .cols = " << o.cols << " is less than the " << columns << " columns of the shape";
    int from = state_->cursor;
    if (from + take > state_->total) {
      auto m = r.fail(at);
      m << "kiln[R-PA16] " << (o.name ? o.name : "tmem pool") << ": columns " << from << ".." << from + take - 1 << " exceed total_cols " << state_->total;
      from = 0;
    }
    state_->cursor = from + take;
    if (state_->cursor > state_->high) state_->high = state_->cursor;
    return detail::place_buffer(r, t, r.buffers[state_->buffer].node, from, buffer_role::pooled, -1, o.name, at);
  }
  recorder* recorder_;
  detail::tensor_pool_state* state_;
  view<u32, 1> slot_;
};

template <class Pool>
constexpr auto context::tmem_pool(Pool& pool, tmem_pool_options o, site at) {
  recorder& r = *r_;
  bool const columns = o.total_cols >= 32 && o.total_cols <= 512 && (o.total_cols & (o.total_cols - 1)) == 0;
  if (!columns) {
    int next = 32;
    while (next < 512 && next < o.total_cols) next *= 2;
    r.fail(at) << "kiln[R-CP04] " << o.total_cols << " columns: must be a power of two in 32..512; use " << next;
  }
  if (o.cta_group != 1 && o.cta_group != 2) r.fail(at) << "kiln[R-CP04] .cta_group = " << o.cta_group << "; valid are 1 and 2";
  if (tensor_pool_.buffer >= 0) r.fail(at) << "kiln[R-PA17] a second pool in tensor memory; one exists since line " << r.nodes[r.buffers[tensor_pool_.buffer].node].line << ", allocate from it";
  auto slot = pool.template alloc<u32, 1>({.name = "tmem_addr"}, at);
  int const node = detail::make_arena(r, storage::tmem, columns ? o.total_cols : 512, 0, o.name ? o.name : "tmem_pool", at);
  tensor_pool_.buffer = static_cast<std::int32_t>(r.attribute(node, 0));
  tensor_pool_.total = columns ? o.total_cols : 512;
  tensor_pool_.group = o.cta_group;
  tensor_pool_.warp = o.alloc_warp | (o.dealloc_warp < 0 ? o.alloc_warp : o.dealloc_warp) << 8;
  return tmem_pool_handle{r_, &tensor_pool_, slot};
}

} // namespace kiln
