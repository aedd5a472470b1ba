// Pools and views by address: memory handed out by a cursor that can be set back, and buffers declared over bytes that something
// else owns.
//
//   auto pool = k.smem_pool({.name = "pool"});
//   auto a = pool.alloc<f16, 64, 64>({.align = 1024, .name = "a"});
//   pool.move_base_to(0);                              // what follows lies over a
//   auto b = pool.alloc<f32, 64>({.name = "b"});
//   pool.commit();                                     // once, after all allocations
#pragma once
#include <kiln/dsl/allocator.hpp>

namespace kiln {

struct pool_alloc_options {
  int align = 0; ///< bytes, a power of two; 0: the element's size
  buffer_layout layout = layout::row_major; ///< dsl/layout.hpp
  char const* name = nullptr;
};
struct pool_alloc_mma_options {
  swz swizzle = swz::automatic; ///< automatic: 128 bytes
  int align = 1024;             ///< at least what the swizzle needs: 1024, 512, 256 or 16
  char const* name = nullptr;
};
struct pool_move_options {
  bool gap = false; ///< the cursor may leave a hole above everything that was handed out
};
struct pool_commit_options {
  std::int64_t size = 0; ///< at least what was handed out; 0: just that
};

namespace detail {

/// Where a view starts: a constant number of bytes into the storage of a buffer.
struct static_place {
  bool known = false;
  int buffer = -1;         ///< that the view is a part of
  std::int64_t offset = 0; ///< in its storage
};
constexpr static_place place_of_view(recorder const& r, int node) {
  static_place p;
  graph_view const g = r.view();
  p.buffer = g.buffer_of(node);
  local_form const f = local_form_of(g, p.buffer);
  bool const laid_out = !g.buffer(p.buffer).layout.plain();
  // The first element, followed down the chain of views: how far each axis of the present view has gone.
  std::int64_t at[max_rank]{};
  for (int i = node; g[i].code != op::alloc; i = g.operand(i, 0)) {
    int const from = g.operand(i, 0);
    auto constant = [&](int n) { return g[n].code == op::constant ? g.attribute(n, 0) : -1; };
    switch (g[i].code) {
    case op::view_index: {
      std::int64_t const k = constant(g.operand(i, 1));
      if (k < 0) return p;
      if (g[from].code == op::alloc) {
        if (k >= g.buffer(p.buffer).slots) return p;
        p.offset = f.slots.at(k);
        for (int d = 0; d < g.shape_of(i).rank; ++d) {
          p.offset += at[d] * f.stride[d];
          if (laid_out && at[d] != 0) return p; // only the start of a slot is the same place in every layout
        }
        p.known = true;
        return p;
      }
      if (g.shape_of(from).rank > 1)
        for (int d = g.shape_of(from).rank - 1; d > 0; --d) at[d] = at[d - 1];
      at[0] = k;
      break;
    }
    case op::view_trans: {
      std::int64_t before[max_rank]{};
      for (int d = 0; d < g.shape_of(i).rank; ++d) before[g.attribute(i, d)] = at[d];
      for (int d = 0; d < max_rank; ++d) at[d] = before[d];
      break;
    }
    case op::view_slice:
      for (int d = 0; d < g.shape_of(i).rank; ++d) {
        std::int64_t const o = constant(g.operand(i, d + 1));
        if (o < 0) return p;
        at[d] += o;
      }
      break;
    default: { // a reshape: the same number in row-major order
      std::int64_t flat = 0;
      shape const &to = g.shape_of(i), &s = g.shape_of(from);
      for (int d = 0; d < to.rank; ++d) flat = flat * to.extent[d] + at[d];
      for (int d = s.rank - 1; d >= 0; --d) {
        at[d] = flat % s.extent[d];
        flat /= s.extent[d];
      }
    }
    }
  }
  return p;
}
/// Another view of bytes that buffer `base` owns, as slots of one shape.
constexpr int add_window(recorder& r, result_type t, int base, slot_map const& m, int slots, bool has_slots, char const* name, site at) {
  buffer_info const owner = r.buffers[base];
  int const storage = r.view().storage_of(base);
  buffer_info b;
  b.type = t.type;
  b.where = owner.where;
  b.role = buffer_role::window;
  b.pun = owner.pun;
  b.phase = owner.phase;
  b.base = r.view().shown_by(base);
  b.has_slots = has_slots;
  b.slots = slots;
  b.shape = t.shape;
  b.place = m;
  b.name = name && *name ? r.add_string(name) : owner.name;
  t.kind = node_kind::buffers;
  b.node = r.push(op::alloc, t, {r.buffers[storage].node}, {r.buffers.size()}, at);
  for (int i = 0, n = r.limits.size(); i < n; ++i)
    if (r.limits[i].buffer == base) {
      access_limit const same = r.limits[i];
      r.limits.add() = {r.buffers.size(), same.line, same.read, same.write};
    }
  r.buffers.add() = b;
  return b.node;
}
constexpr int view_of_slot(recorder& r, result_type t, int alloc, site at) {
  int const zero = r.push(op::constant, {dtype::i32, node_kind::value, 0}, {}, {0}, at);
  return r.push(op::view_index, {t.type, node_kind::view, t.shape}, {alloc, zero}, {}, at);
}

/// Gives the latest window a layout, which may reach further than its elements do.
constexpr void lay_out_window(recorder& r, buffer_layout const& l, site at) {
  int const b = r.buffers.size() - 1;
  if (r.buffers[b].role != buffer_role::window) return; // refused
  lay_out(r, b, l, at);
  buffer_info const& f = r.buffers[b];
  std::int64_t const align = swizzle_alignment(f.layout, f.type), end = slots_end(r.view(), f), has = slots_end(r.view(), r.buffers[f.base]);
  r.buffers[b].alignment = 0;
  if (f.place.offset % align == 0 && end <= has) return;
  message m = r.fail(at);
  if (end > has)
    m << "kiln[R-BD07] a view of " << slot_bytes(r.view(), f) << " B, with its layout, at byte " << f.place.offset << " exceeds its storage ";
  else
    m << "kiln[R-BD08] a swizzled view at byte " << f.place.offset << " of ";
  put_buffer_name(m, r, f.base);
  if (end > has)
    m << ", which ends at byte " << has;
  else
    m << "; it needs a multiple of " << align;
}
/// Gives the latest window, which shows whole slots of buffer `b`, a layout that takes the same bytes.
constexpr void lay_out_again(recorder& r, int b, buffer_layout const& l, site at) {
  int const window = r.buffers.size() - 1;
  lay_out(r, window, l, at);
  std::int64_t const mine = slot_bytes(r.view(), r.buffers[window]), its = slot_bytes(r.view(), r.buffers[b]);
  r.buffers[window].alignment = 0;
  if (mine == its) return;
  message m = r.fail(at);
  m << "kiln[R-BD08] local_reinterpret of ";
  put_buffer_name(m, r, b);
  m << ": the layout takes " << mine << " B, a slot has " << its;
}
/// The next bytes of a pool, as a view of type t.
constexpr int pool_view(recorder& r, pool_state& s, result_type t, pool_alloc_options const& o, site at) {
  std::int64_t const natural = bytes_of(t.type);
  int const node = place_buffer(r, t, r.buffers[s.buffer].node, 0, buffer_role::pooled, -1, o.name, at);
  int const b = r.view().buffer_of(node);
  lay_out(r, b, o.layout, at);
  std::int64_t a = o.align > natural ? o.align : natural;
  if (r.buffers[b].alignment > a) a = r.buffers[b].alignment;
  std::int64_t const from = round_up(s.start + s.cursor, a > 0 ? a : 1);
  r.buffers[b].place.offset = static_cast<std::int32_t>(from);
  s.cursor = from - s.start + slot_bytes(r.view(), r.buffers[b]);
  if (s.cursor > s.high) s.high = s.cursor;
  if (s.room < 0) {
    if (!s.committed) resize_storage(r, s.buffer, s.high, a);
  } else if (s.cursor > s.room) {
    message m = r.fail(at);
    m << "kiln[R-BD07] ";
    put_buffer_name(m, r, b);
    m << " ends at byte " << s.cursor << " of its pool, whose .backing has " << s.room;
  } else if (r.buffers[s.buffer].where == storage::smem && a > r.buffers[s.buffer].alignment) {
    r.buffers[s.buffer].alignment = static_cast<std::int32_t>(a);
  }
  return node;
}

/// A window of `bytes` at `offset` bytes from where view `data` starts; its alloc node, or a harmless one after a mistake.
constexpr int declare(recorder& r, result_type t, int data, std::int64_t offset, char const* name, site at) {
  static_place const p = place_of_view(r, data);
  shape const s = r.shapes[t.shape];
  auto const refuse = [&] {
    int const a = make_arena(r, storage::smem, 1, 128, "", at);
    r.nodes[a].type = t.type;
    r.nodes[a].shape = t.shape;
    return a;
  };
  if (!p.known) {
    message m = r.fail(at);
    m << "kiln[R-BD08] decl_buffer over a part of ";
    put_buffer_name(m, r, p.buffer);
    m << (r.buffers[p.buffer].layout.plain() ? " at a runtime offset: #include <kiln/dsl/buffer.hpp>, and it must be known to be a multiple of its size; or declare it over the whole and slice or index the result" : ", whose elements are not row by row; declare it over the whole slot");
    return refuse();
  }
  buffer_info const& owner = r.buffers[p.buffer];
  std::int64_t const start = p.offset + offset, bytes = bytes_of(t.type, s.elements()), end = slots_end(r.view(), owner);
  if (owner.where != storage::smem) {
    message m = r.fail(at);
    m << "kiln[R-BD04] ";
    put_buffer_name(m, r, p.buffer);
    m << " lies in tensor memory, which has no addresses; local_alloc with .reuse instead";
    return refuse();
  }
  if (offset < 0 || start + bytes > end) {
    message m = r.fail(at);
    m << "kiln[R-BD07] a view of " << bytes << " B at byte " << offset << " exceeds its storage ";
    put_buffer_name(m, r, p.buffer);
    m << ", which has " << end - p.offset << " B from there";
    return refuse();
  }
  if (start % bytes_of(t.type) != 0) {
    message m = r.fail(at);
    m << "kiln[R-BD08] a view of " << name_of(t.type) << " at byte " << offset << " of ";
    put_buffer_name(m, r, p.buffer);
    m << ": not aligned for its elements of " << bytes_of(t.type) << " B";
    return refuse();
  }
  slot_map place;
  place.offset = static_cast<std::int32_t>(start);
  return add_window(r, t, p.buffer, place, 1, false, name, at);
}

} // namespace detail

/// Hands out shared memory from a cursor. From `k.smem_pool`. Rules: R-PA12 to R-PA15, R-CP06.
class smem_pool_handle {
public:
  constexpr smem_pool_handle(recorder* r, detail::pool_state* s) : recorder_(r), state_(s) {}

  /// The next bytes, as a view. From the first write to a view that lies over earlier ones, those are gone (R-PA15).
  /// Errors: R-PA12 after commit.
  template <element T, int... D>
  constexpr auto alloc(pool_alloc_options o = {}, site at = {}) {
    static_assert(sizeof...(D) >= 1 && sizeof...(D) <= 5, "kiln[T-02] a local buffer has 1 to 5 axes");
    static_assert(((D >= 1) && ...), "kiln[T-02] extents are at least 1");
    recorder& r = *recorder_;
    detail::pool_state& s = *state_;
    if (s.committed) fault(at, "kiln[R-PA12]") << "alloc" << (o.name ? " of " : "") << (o.name ? o.name : "") << " after commit; allocate before it";
    if (o.align < 0 || (o.align & (o.align - 1)) != 0) r.fail(at) << "kiln[R-BD08] " << (o.name ? o.name : "a view of a pool") << ": .align = " << o.align << " is not a power of two";
    if (o.align > 1024) r.fail(at) << "kiln[R-AL15] " << (o.name ? o.name : "a view of a pool") << " wants " << o.align << "-byte alignment, the arena guarantees 1024";
    return view<T, D...>{recorder_, detail::pool_view(r, s, detail::type_of<view<T, D...>>(r, node_kind::view), o, at)};
  }
  /// The same with the layout that matrix units read (layout::mma_shared): `pool.alloc_mma<f16, 128, 64>()`; leading extents are
  /// stages. Errors: R-PA18 rows that do not fill the swizzle.
  template <element T, int... D>
  constexpr auto alloc_mma(pool_alloc_mma_options o = {}, site at = {}) {
    static_assert(sizeof...(D) >= 1 && sizeof...(D) <= 5 && ((D >= 1) && ...), "kiln[T-02] a local buffer has 1 to 5 axes, each at least 1");
    swz const width = o.swizzle == swz::automatic ? swz::b128 : o.swizzle;
    int const needs = width == swz::none ? 16 : 8 * detail::width_of(width);
    if (o.align < needs)
      recorder_->fail(at) << "kiln[R-PA18] " << (o.name ? o.name : "a view of a pool") << ": .align = " << o.align << " is less than the " << needs << " that its swizzle needs";
    return alloc<T, D...>({.align = o.align < needs ? needs : o.align, .layout = layout::mma_shared(width), .name = o.name}, at);
  }
  /// Sets the cursor; what lies at or above it may be handed out again. Units: bytes. Errors: R-PA14 outside of what was handed
  /// out, R-PA12 after commit.
  constexpr void move_base_to(std::int64_t offset, pool_move_options o = {}, site at = {}) {
    detail::pool_state& s = *state_;
    if (s.committed) fault(at, "kiln[R-PA12]") << "move_base_to after commit";
    if (offset < 0 || (offset > s.high && !o.gap)) {
      fault(at, "kiln[R-PA14]") << "cursor " << offset << (offset < 0 ? " is negative; valid from 0, high-water " : " beyond high-water ") << s.high << (offset < 0 ? "" : "; pass .gap to leave a hole");
      return;
    }
    s.cursor = offset;
  }
  /// Fixes the pool's size. Once, after all allocations. Errors: R-PA12 twice, R-PA13 too small.
  constexpr void commit(pool_commit_options o = {}, site at = {}) {
    recorder& r = *recorder_;
    detail::pool_state& s = *state_;
    if (s.committed) fault(at, "kiln[R-PA12]") << "commit twice";
    if (o.size != 0 && o.size < s.high) fault(at, "kiln[R-PA13]") << "commit size " << o.size << " < high-water mark " << s.high;
    s.committed = true;
    if (s.room >= 0 && o.size > s.room) fault(at, "kiln[R-PA13]") << "commit size " << o.size << " > the " << s.room << " B of .backing";
    if (s.room < 0 && o.size > s.high) detail::resize_storage(r, s.buffer, o.size, 1);
  }
  /// The next byte to be handed out, and one past the highest that was.
  constexpr std::int64_t cursor() const { return state_->cursor; }
  constexpr std::int64_t high_water() const { return state_->high; }

private:
  constexpr detail::message fault(site at, char const* rule) {
    detail::message m = recorder_->fail(at);
    m << rule << " ";
    detail::put_buffer_name(m, *recorder_, state_->buffer);
    m << ": ";
    return m;
  }
  recorder* recorder_;
  detail::pool_state* state_;
};

constexpr smem_pool_handle context::smem_pool(smem_pool_options o, site at) {
  if (pools_used_ == most_pools) {
    r_->fail(at) << "kiln[R-PA12] more than " << most_pools << " pools";
    return {r_, &pools_[0]};
  }
  if (o.backing.node >= 0) {
    detail::pool_state& s = pools_[pools_used_++];
    detail::static_place const p = detail::place_of_view(*r_, o.backing.node);
    buffer_info const& f = r_->buffers[p.buffer];
    if (!p.known || f.where != storage::smem || f.pun) {
      auto m = r_->fail(at);
      m << "kiln[R-BD08] .backing of a pool is shared memory at a constant place; ";
      detail::put_buffer_name(m, *r_, p.buffer);
      m << " is none";
    }
    s.buffer = r_->view().storage_of(p.buffer);
    s.start = p.offset;
    s.room = kiln::bytes_of(r_->nodes[o.backing.node].type, r_->shapes[r_->nodes[o.backing.node].shape].elements());
    return {r_, &s};
  }
  for (int i = 0; i < pools_used_; ++i)
    if (pools_[i].room < 0)
      r_->fail(at) << "kiln[R-CP06] second dynamic arena at line " << at.line << "; one exists since line " << r_->nodes[r_->buffers[pools_[i].buffer].node].line
                   << ", allocate from it";
  detail::pool_state& s = pools_[pools_used_++];
  int const node = detail::make_arena(*r_, storage::smem, 1, 128, o.name ? o.name : "pool", at);
  s.buffer = static_cast<int>(r_->attribute(node, 0));
  return {r_, &s};
}
constexpr void context::finish() {
  if (r_->check_limits) r_->check_limits(*r_);
  if (tensor_pool_.buffer >= 0 && tensor_pool_.released < 0) {
    auto m = r_->fail_at(tensor_pool_.committed >= 0 ? tensor_pool_.committed : r_->buffers[tensor_pool_.buffer].node);
    m << "kiln[R-PA17] tensor memory of ";
    detail::put_buffer_name(m, *r_, tensor_pool_.buffer);
    if (tensor_pool_.committed >= 0)
      m << ", allocated at line " << r_->nodes[tensor_pool_.committed].line << ", is never given back; dealloc() the pool after its last use";
    else
      m << " is never allocated; commit() the pool before its first use";
  }
  if (tensor_pool_.released >= 0) tensor_pool_.check_uses(*r_, tensor_pool_);
  if (arena_ >= 0)
    for (int b = 0; b < r_->buffers.size(); ++b) {
      buffer_info const& f = r_->buffers[b];
      if (b == arena_ || f.where != storage::smem || f.placement != scope::shared_dyn || r_->view().storage_of(b) != b) continue;
      auto m = r_->fail_at(f.node);
      m << "kiln[R-CP06] ";
      detail::put_buffer_name(m, *r_, b);
      m << " has shared memory of its own beside the arena of line " << r_->nodes[r_->buffers[arena_].node].line << "; declare it over the arena, or allocate it from a pool with .backing";
      return;
    }
  for (int i = 0; i < pools_used_; ++i)
    if (!pools_[i].committed && pools_[i].room < 0) {
      auto m = r_->fail_at(r_->buffers[pools_[i].buffer].node);
      m << "kiln[R-PA12] ";
      detail::put_buffer_name(m, *r_, pools_[i].buffer);
      m << " was never committed; commit it after its last allocation";
    }
}

template <element T, int... D>
constexpr auto context::decl_buffer(decl_buffer_options o, site at) {
  static_assert(sizeof...(D) >= 1 && sizeof...(D) <= 5 && ((D >= 1) && ...), "kiln[T-02] a local buffer has 1 to 5 axes, each at least 1");
  if (o.scope == storage::tmem) {
    if constexpr (detail::included<detail::tensor_header<T>>) return make_tensor_window<T, D...>(o, at);
    r_->fail(at) << "kiln: buffers in tensor memory are in a header of their own; #include <kiln/dsl/tensor_pool.hpp>";
  }
  result_type const t = detail::type_of<view<T, D...>>(*r_, node_kind::view);
  if (o.elem_offset != 0 && o.byte_offset != 0) r_->fail(at) << "kiln[R-BD08] decl_buffer takes .elem_offset or .byte_offset, not both";
  if (o.data.node < 0) return alloc_shared<T, D...>({.layout = o.layout.memory, .name = o.name}, at); // a buffer of its own
  std::int64_t const offset = o.byte_offset + o.elem_offset * kiln::bytes_of(dtype_of<T>);
  if constexpr (detail::included<detail::buffer_header<T>>)
    if (!detail::place_of_view(*r_, o.data.node).known)
      if (int const part = declare_at(*r_, t, o.data.node, offset, o.name, at, detail::buffer_header<T>{}); part >= 0) return view<T, D...>{r_, part};
  int const node = detail::declare(*r_, t, o.data.node, offset, o.name, at);
  if (o.layout.memory.what != buffer_layout::kind::infer) detail::lay_out_window(*r_, o.layout.memory, at);
  return view<T, D...>{r_, detail::view_of_slot(*r_, t, node, at)};
}

template <element U, int... E, class T, int... D>
constexpr auto context::local_reinterpret(view<T, D...> const& v, local_reinterpret_options o, site at) {
  constexpr detail::extents to = sizeof...(E) > 0 ? detail::extents_of<E...> : detail::extents_of<D...>;
  using R = typename detail::view_from<U, to>::type;
  constexpr std::int64_t before = kiln::bytes_of(dtype_of<T>, detail::elements_of<D...>), after = kiln::bytes_of(dtype_of<U>, detail::count_of(to));
  if (before != after) about("kiln[R-BD08]", "local_reinterpret of ", v.node_, at) << before << " B as " << after << " B";
  recorder& r = *r_;
  result_type const t = detail::type_of<R>(r, node_kind::view);
  int const from = r.operand(v.node_, 0);
  if (r.nodes[v.node_].code == op::view_index && r.nodes[from].code == op::alloc) { // a whole slot, whatever its index
    int const b = static_cast<int>(r.attribute(from, 0));
    bool const seen = o.layout.what != buffer_layout::kind::infer;
    if (!seen && !r.buffers[b].layout.plain() && (kiln::bytes_of(dtype_of<U>) != kiln::bytes_of(dtype_of<T>) || r.intern(detail::to_shape(to)) != r.buffers[b].shape)) {
      detail::message m = r.fail(at);
      m << "kiln[R-BD08] local_reinterpret of ";
      detail::put_buffer_name(m, r, b);
      m << ", whose elements are not row by row: only as elements of the same size and shape";
    }
    if (r.buffers[b].where == storage::smem && r.buffers[b].place.offset % kiln::bytes_of(dtype_of<U>) == 0) {
      slot_map m = r.buffers[b].place;
      m.stride = static_cast<std::int32_t>(detail::slot_stride(r.view(), r.buffers[b]));
      int const window = detail::add_window(r, t, b, m, r.buffers[b].slots, r.buffers[b].has_slots, nullptr, at);
      if (seen)
        detail::lay_out_again(r, b, o.layout, at);
      else
        r.buffers.back().layout = r.buffers[b].layout;
      return R{r_, r.push(op::view_index, t, {window, r.operand(v.node_, 1)}, {}, at)};
    }
  }
  if constexpr (detail::included<detail::buffer_header<U>>)
    if (!detail::place_of_view(r, v.node_).known)
      if (int const part = declare_at(r, t, v.node_, 0, nullptr, at, detail::buffer_header<U>{}); part >= 0) return R{r_, part};
  int const node = detail::declare(r, t, v.node_, 0, nullptr, at);
  if (o.layout.what != buffer_layout::kind::infer) detail::lay_out_window(r, o.layout, at);
  return R{r_, detail::view_of_slot(r, t, node, at)};
}

} // namespace kiln
