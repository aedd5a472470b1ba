// Allocators that know lifetimes: allocations are declared, grouped into phases that take turns, laid out, and only then made.
// As plain constexpr values they answer questions about sizes; inside a kernel they also make the buffers.
//
//   smem_allocation<f16, 64, 64> a{.name = "a"}, b{.name = "b"};
//   smem_allocation<f32, 64, 64> staging{.name = "staging"};
//   smem_allocator al;
//   al.add(a), al.add(b), al.add(staging);
//   al.add_alias_group({{&a, &b}, {&staging}});      // one after the other: a and b, or staging
//   al.compute_layout();                             // a.offset 0, b.offset 8192, staging.offset 0
//   al.allocate(k);
//   k.local_store(al.get(k, a), x);
//
// Within a phase the order is that of adding.
#pragma once
#include <kiln/dsl/context.hpp>
#include <kiln/layout/phase_layout.hpp>

namespace kiln {

/// A named region of shared memory. With an element type and no size, the size is that of `count` elements; extents give the
/// count and the shape of the view that `get` returns. Units: bytes.
template <class T = void, int... D>
struct smem_allocation {
  static constexpr bool typed = !std::is_void_v<T>;
  char const* name = "";
  std::int64_t size_bytes = 0;
  int alignment = 128;
  int count = static_cast<int>((std::int64_t{1} * ... * D));
  std::int64_t offset = -1; ///< from the start of the allocator's memory, after compute_layout
};

/// Columns of tensor memory.
struct tmem_allocation {
  char const* name = "";
  int num_columns = 0;
  std::int64_t offset = -1; ///< in columns, after compute_layout
};

/// An allocation of any element type, as lists of them hold it.
struct allocation_ref {
  char const* name;
  std::int64_t size, needed; ///< given, and what its elements take
  int alignment;
  std::int64_t* offset;
  dtype type{};
  bool typed = false;
  template <class T, int... D>
  constexpr allocation_ref(smem_allocation<T, D...>* a)
      : name(a->name), size(a->size_bytes), needed(0), alignment(a->alignment), offset(&a->offset) {
    if constexpr (!std::is_void_v<T>) {
      type = dtype_of<T>;
      typed = true;
      needed = kiln::bytes_of(type, a->count);
    }
  }
  constexpr allocation_ref(tmem_allocation* a) : name(a->name), size(a->num_columns), needed(0), alignment(1), offset(&a->offset) {}
};

/// What a pipeline synchronises with, per stage: one barrier that says full and one that says empty.
struct pipeline_config {
  enum class pipe : std::uint8_t { tma_async, tma_mma, mma_async, async_async, async_mma, mma_mma, clc_async };
  pipe kind = pipe::async_async;
  int num_stages = 1;
  std::int64_t num_bytes = 0;
  int producer_threads = 1, consumer_threads = 1; ///< arrivals: fewer than 32 of agents, whole warps of every thread by itself
  std::int64_t barrier_ptr = -1; ///< byte offset of its barriers in the allocator's memory; below 0: the allocator places them
  std::int32_t full_node = -1, empty_node = -1; ///< for the library: its barriers in a kernel
};
using pipe = pipeline_config::pipe;

/// Pipelines that share one side: members on the many side have barriers of their own, the other side is shared.
/// Order of the barriers, `num_stages` each: merge: full of every member, then the shared empty; fork: the shared full, then empty
/// of every member; fused_merge: one shared full, one shared empty.
struct pipeline_group {
  enum class form : std::uint8_t { merge, fork, fused_merge };
  static constexpr int most_members = 16;
  char const* name = "";
  form kind = form::merge;
  pipeline_config* members[most_members]{};
  char const* member_names[most_members]{};
  int count = 0;
  std::int64_t barrier_ptr = -1;
  constexpr void add(pipeline_config& p, char const* member) {
    if (count < most_members) {
      members[count] = &p;
      member_names[count] = member;
    }
    ++count;
  }
  constexpr std::int64_t barrier_bytes() const {
    std::int64_t const sets = kind == form::fused_merge ? 2 : count + 1;
    return count > 0 ? sets * members[0]->num_stages * 8 : 0;
  }
  /// Offset of a barrier from `barrier_ptr`.
  constexpr std::int64_t full(int member, int stage) const { return 8 * ((kind == form::merge ? member : 0) * members[0]->num_stages + stage); }
  constexpr std::int64_t empty(int member, int stage) const {
    int const set = kind == form::merge ? count : kind == form::fork ? 1 + member : 1;
    return 8 * (set * members[0]->num_stages + stage);
  }
};

struct compute_layout_options {
  bool reorder = false; ///< larger alignments first, then larger sizes; else the order of adding
};

namespace detail {

template <class>
struct pipeline_tools; // dsl/pipeline.hpp

/// Who produces and who consumes, by the names of the kinds: 0 copies that bring bytes.
constexpr int producer_of(pipe p) {
  switch (p) {
  case pipe::tma_async: case pipe::tma_mma: return 0;
  case pipe::mma_async: case pipe::mma_mma: return 1;
  case pipe::clc_async: return 3;
  default: return 2;
  }
}
constexpr bool consumer_of(pipe p) { return p == pipe::tma_mma || p == pipe::async_mma || p == pipe::mma_mma; }

/// Whether the loops, branches and tasks around node n are still open.
constexpr bool still_visible(recorder const& r, int n) {
  int depth = 0;
  for (int i = n; i < r.nodes.size(); ++i) {
    if (has(r.nodes[i].code, trait::opens)) ++depth;
    if (has(r.nodes[i].code, trait::closes) && --depth < 0) return false;
    if (depth == 0 && r.nodes[i].code == op::if_else) return false;
  }
  return true;
}

/// Makes storage whose size follows, and buffers in it.
constexpr int make_arena(recorder& r, storage where, std::int64_t size, std::int64_t alignment, char const* name, site at) {
  shape const s = where == storage::tmem ? shape{2, {tensor_lanes, static_cast<int>(size)}} : shape{1, {static_cast<int>(size)}};
  result_type const t{where == storage::tmem ? dtype::i32 : dtype::u8, node_kind::buffers, r.intern(s)};
  buffer_info b;
  b.type = t.type;
  b.where = where;
  b.role = buffer_role::arena;
  b.has_slots = false;
  b.shape = t.shape;
  b.alignment = where == storage::tmem ? 0 : static_cast<std::int32_t>(alignment);
  b.name = name && *name ? r.add_string(name) : -1;
  b.node = r.push(op::alloc, t, {}, {r.buffers.size()}, at);
  r.buffers.add() = b;
  return b.node;
}
/// A buffer without slots at `offset` of storage; the node of its view.
constexpr int place_buffer(recorder& r, result_type t, int storage, std::int64_t offset, buffer_role role, int phase, char const* name, site at) {
  buffer_info b;
  b.type = t.type;
  b.where = r.buffers[static_cast<int>(r.attribute(storage, 0))].where;
  b.role = role;
  b.phase = phase;
  b.has_slots = false;
  b.shape = t.shape;
  b.place.offset = static_cast<std::int32_t>(offset);
  b.name = name && *name ? r.add_string(name) : -1;
  t.kind = node_kind::buffers;
  b.node = r.push(op::alloc, t, {storage}, {r.buffers.size()}, at);
  r.buffers.add() = b;
  int const zero = r.push(op::constant, {dtype::i32, node_kind::value, 0}, {}, {0}, at);
  return r.push(op::view_index, {t.type, node_kind::view, t.shape}, {b.node, zero}, {}, at);
}

/// What the two allocators share: declared allocations, phases, the layout, and the first mistake.
class layout_allocator {
public:
  constexpr layout_allocator() = default;
  layout_allocator(layout_allocator const&) = delete;
  /// No rule is broken so far. In a kernel a broken rule is the kernel's.
  constexpr bool ok() const { return error_.ok(); }
  /// The first broken rule; empty when ok.
  constexpr std::string_view message() const { return error_.view(); }
  /// The same as a value that outlives the allocator; its `node` is the line of the statement.
  constexpr diagnostic verdict() const { return error_; }

  /// Phases that take turns in one region: allocations of one phase lie side by side, every phase starts at the region's start. What
  /// a phase held is gone when another one begins; phases may come back. Errors: R-PA01, R-PA02, R-PA03, R-PA11.
  constexpr void add_alias_group(std::initializer_list<std::initializer_list<allocation_ref>> phases, site at = {}) {
    if (layout_.done) return void(fail(at) << "kiln[R-PA03] add_alias_group after compute_layout");
    int const group = layout_.groups;
    if (group == phase_layout::most_groups) return void(fail(at) << "kiln[R-PA11] more than " << phase_layout::most_groups << " alias groups");
    if (phases.size() == 0) return void(fail(at) << "kiln[R-PA11] alias group " << group << " has no phases");
    int phase = 0;
    for (auto const& members : phases) {
      if (members.size() == 0) return void(fail(at) << "kiln[R-PA11] phase " << phase << " of alias group " << group << " is empty");
      for (allocation_ref const& a : members) {
        int const i = layout_.find(a.offset);
        if (i < 0) return void(fail(at) << "kiln[R-PA01] " << a.name << " is in an alias group but was never added; add(" << a.name << ") first");
        phase_layout::item& x = layout_.items[i];
        if (x.group >= 0) return void(fail(at) << "kiln[R-PA02] " << a.name << " is already in phase " << x.phase << " of group " << x.group);
        x.group = group;
        x.phase = phase;
      }
      ++phase;
    }
    ++layout_.groups;
  }

protected:
  constexpr kiln::detail::message fail(site at) {
    if (recorder_) {
      if (error_.ok()) error_.node = 0;
      return recorder_->fail(at);
    }
    if (!error_.ok()) return kiln::detail::message(ignored_);
    error_.node = at.line;
    return kiln::detail::message(error_);
  }
  constexpr bool add_item(allocation_ref const& a, site at) {
    std::int64_t const size = a.size > 0 ? a.size : a.needed;
    if (layout_.done) return fail(at) << "kiln[R-PA03] add(" << a.name << ") after compute_layout", false;
    if (layout_.find(a.offset) >= 0) return fail(at) << "kiln[R-PA02] " << a.name << " is already added", false;
    if (size < 1) return fail(at) << "kiln[R-PA11] " << a.name << ": size 0; give a size, or an element type and a count", false;
    if (a.size > 0 && a.size < a.needed) return fail(at) << "kiln[R-PA11] " << a.name << ": " << a.size << " B given, its elements take " << a.needed << " B", false;
    if (a.alignment < 1 || (a.alignment & (a.alignment - 1)) != 0) return fail(at) << "kiln[R-PA11] " << a.name << ": alignment " << a.alignment << " is not a power of two", false;
    if (a.alignment > 1024) return fail(at) << "kiln[R-AL15] " << a.name << " wants " << a.alignment << "-byte alignment, the arena guarantees 1024", false;
    if (layout_.count == phase_layout::most_items) return fail(at) << "kiln[R-PA11] more than " << phase_layout::most_items << " allocations", false;
    phase_layout::item& x = layout_.items[layout_.count++];
    x.name = a.name;
    x.size = size;
    x.alignment = a.alignment;
    x.result = a.offset;
    return true;
  }
  constexpr bool lay_out(compute_layout_options o, site at) {
    if (layout_.done) return fail(at) << "kiln[R-PA03] layout already computed", false;
    layout_.compute(o.reorder);
    return true;
  }

  phase_layout layout_;
  recorder* recorder_ = nullptr; ///< of the kernel
  diagnostic error_, ignored_;
};

} // namespace detail

/// Lays out shared memory. Rules: R-PA01 to R-PA06, R-PA08 to R-PA11; R-PA07 where a kernel mixes up the phases.
class smem_allocator : public detail::layout_allocator {
public:
  static constexpr int most_pipelines = 32;

  constexpr smem_allocator() = default;
  /// In a kernel: a mistake is reported where it is made. Without it, at `allocate`.
  constexpr explicit smem_allocator(context& k) { recorder_ = k.recorder_for_library(); }

  /// Declares an allocation; the order of adding is the order in memory. Errors: R-PA02, R-PA03, R-PA11.
  template <class T, int... D>
  constexpr smem_allocation<T, D...>& add(smem_allocation<T, D...>& a, site at = {}) {
    add_item(&a, at);
    return a;
  }
  /// Adds all that `r.smem_requirements()` lists, and counts the barriers of `r.pipeline()`, if it has one that has none yet and
  /// `r.group()` names no group.
  template <class R>
  constexpr void add_resource(R& r, site at = {}) {
    for (allocation_ref a : r.smem_requirements()) add_item(a, at);
    if constexpr (requires { r.pipeline(); }) {
      pipeline_group const* group = nullptr;
      if constexpr (requires { r.group(); }) group = r.group();
      pipeline_config& p = r.pipeline();
      if (p.barrier_ptr >= 0 && !group) return;
      if (layout_.done) return void(fail(at) << "kiln[R-PA03] add_resource after compute_layout");
      if (p.num_stages < 1) return void(fail(at) << "kiln[R-PA08] a pipeline of " << p.num_stages << " stages; at least 1 is needed");
      if (pipelines_ == most_pipelines) return void(fail(at) << "kiln[R-PA11] more than " << most_pipelines << " pipelines");
      pipeline_[pipelines_] = &p;
      group_of_[pipelines_++] = group;
    }
  }
  /// Counts the barriers of a group of pipelines. Errors: R-PA03; R-PA08 members that do not fit each other.
  constexpr void add_pipeline_group(pipeline_group& g, site at = {}) {
    if (layout_.done) return void(fail(at) << "kiln[R-PA03] add_pipeline_group(" << g.name << ") after compute_layout");
    if (g.count < 1 || g.count > pipeline_group::most_members) return void(fail(at) << "kiln[R-PA08] pipeline group " << g.name << " has " << g.count << " members, valid 1.." << pipeline_group::most_members);
    using form = pipeline_group::form;
    pipeline_config const& first = *g.members[0];
    bool const fork = g.kind == form::fork;
    for (int i = 1; i < g.count; ++i) {
      pipeline_config const& p = *g.members[i];
      if (p.num_stages != first.num_stages)
        return void(fail(at) << "kiln[R-PA08] pipeline group " << g.name << ": member " << g.member_names[i] << " has " << p.num_stages << " stages, member " << g.member_names[0] << " " << first.num_stages);
      if (fork ? detail::producer_of(p.kind) != detail::producer_of(first.kind) : detail::consumer_of(p.kind) != detail::consumer_of(first.kind))
        return void(fail(at) << "kiln[R-PA08] pipeline group " << g.name << ": member " << g.member_names[i] << " has another kind of " << (fork ? "producer" : "consumer") << " than member " << g.member_names[0]);
      int const mine = fork ? p.producer_threads : p.consumer_threads, its = fork ? first.producer_threads : first.consumer_threads;
      if (mine != its)
        return void(fail(at) << "kiln[R-PA08] pipeline group " << g.name << ": member " << g.member_names[i] << " has " << mine << (fork ? " producer" : " consumer") << " threads, member " << g.member_names[0] << " " << its);
    }
    if (groups_ == most_pipelines) return void(fail(at) << "kiln[R-PA11] more than " << most_pipelines << " pipeline groups");
    group_[groups_++] = &g;
  }
  /// Declares the slot that receives the base of tensor memory: 4 bytes. Errors: R-PA02 a second one; R-PA11.
  template <class T, int... D>
  constexpr smem_allocation<T, D...>& add_tmem_ptr(smem_allocation<T, D...>& a, site at = {}) {
    allocation_ref const r(&a);
    if (tmem_ptr_) return fail(at) << "kiln[R-PA02] " << a.name << ": the allocator has a slot for the base of tensor memory already", a;
    if ((r.size > 0 ? r.size : r.needed) < 4 || a.alignment < 4) return fail(at) << "kiln[R-PA11] " << a.name << ": the slot for the base of tensor memory needs 4 bytes, aligned to 4", a;
    if (add_item(r, at)) tmem_ptr_ = &a.offset;
    return a;
  }
  /// Offset of that slot; null when there is none.
  constexpr std::int64_t const* tmem_ptr_alloc() const { return tmem_ptr_; }

  /// Fixes all offsets. Once, after everything is declared. Errors: R-PA03, R-PA09.
  constexpr void compute_layout(compute_layout_options o = {}, site at = {}) {
    for (int i = 0; i < pipelines_; ++i) {
      bool known = !group_of_[i];
      for (int j = 0; j < groups_; ++j) known = known || group_[j] == group_of_[i];
      if (!known) return void(fail(at) << "kiln[R-PA09] a resource belongs to pipeline group " << group_of_[i]->name << ", which is not registered; its barriers have no storage; add_pipeline_group(" << group_of_[i]->name << ")");
    }
    lay_out(o, at);
  }
  /// Bytes of barriers: 16 a stage for pipelines of their own, (members + 1) * 8 a stage for groups (fused: 16).
  constexpr std::int64_t barrier_smem_bytes() const {
    std::int64_t n = 0;
    for (int i = 0; i < pipelines_; ++i)
      if (!group_of_[i]) n += pipeline_[i]->num_stages * 16;
    for (int i = 0; i < groups_; ++i) n += group_[i]->barrier_bytes();
    return n;
  }
  /// Bytes of data, without barriers. Errors: R-PA04 before compute_layout.
  constexpr std::int64_t total_smem_bytes(site at = {}) {
    if (!layout_.done) fail(at) << "kiln[R-PA04] total_smem_bytes before compute_layout";
    return layout_.bytes;
  }
  /// Where the barriers start, and how much a launch needs in all.
  constexpr std::int64_t barrier_base() const { return detail::round_up(layout_.bytes, 16); }
  constexpr std::int64_t arena_bytes() const { return barrier_base() + barrier_smem_bytes(); }

  /// Makes the one block of the kernel. Once, after compute_layout. Errors: R-PA03, R-PA04, and what was wrong before.
  constexpr void allocate(context& k, site at = {}) {
    recorder& r = *k.recorder_for_library();
    if (!error_.ok() && !recorder_) return void(r.fail(at) << message());
    recorder_ = &r;
    if (!layout_.done) return void(fail(at) << "kiln[R-PA03] allocate before compute_layout");
    if (arena_ >= 0) return void(fail(at) << "kiln[R-PA03] allocate twice; the block exists already");
    arena_ = detail::make_arena(r, storage::smem, arena_bytes() > 0 ? arena_bytes() : 1, layout_.alignment, "", at);
  }
  /// Gives every pipeline and group its place behind the data, in the order of adding, and (with dsl/pipeline.hpp) makes the barriers
  /// with the numbers of arrivals that the pipelines say. Outside of tasks. Errors: R-PA10 before allocate, or twice; R-PA08 arrivals
  /// that no barrier can count.
  template <class Kernel = context>
  constexpr void assign_barrier_ptrs(site at = {}) {
    if (arena_ < 0) return void(fail(at) << "kiln[R-PA10] assign_barrier_ptrs before allocate");
    if (assigned_) return void(fail(at) << "kiln[R-PA10] assign_barrier_ptrs twice; the barriers exist already");
    assigned_ = true;
    std::int64_t next = barrier_base();
    for (int i = 0; i < pipelines_; ++i) {
      if (group_of_[i] || pipeline_[i]->barrier_ptr >= 0) continue;
      pipeline_[i]->barrier_ptr = next;
      next += pipeline_[i]->num_stages * 16;
    }
    for (int i = 0; i < groups_; ++i) {
      group_[i]->barrier_ptr = next;
      next += group_[i]->barrier_bytes();
    }
    if constexpr (detail::included<detail::pipeline_tools<Kernel>>) detail::pipeline_tools<Kernel>(*this).make(at);
  }

  /// The allocation as a view of its extents, or of `E...`, which hold as many elements. Errors: R-PA04 before allocate, R-PA05
  /// no element type, R-PA06 too large.
  template <int... E, class T, int... D>
  constexpr auto get(context& k, smem_allocation<T, D...> const& a, site at = {}) {
    static_assert(!std::is_void_v<T>, "kiln[R-PA05] the allocation has no element type; use get_as_type");
    static_assert(sizeof...(D) + sizeof...(E) > 0, "kiln[R-PA05] a view needs extents: smem_allocation<T, 64, 64>, or get<64, 64>(k, a)");
    if constexpr (!std::is_void_v<T> && sizeof...(E) > 0)
      return view_of<T, E...>(k, &a.offset, a.name, "get", at);
    else if constexpr (!std::is_void_v<T> && sizeof...(D) > 0)
      return view_of<T, D...>(k, &a.offset, a.name, "get", at);
  }
  /// The same bytes as elements of another type. Errors: R-PA04, R-PA06 more than there is, or not aligned for U.
  template <element U, int... E, class T, int... D>
  constexpr auto get_as_type(context& k, smem_allocation<T, D...> const& a, site at = {}) {
    static_assert(sizeof...(E) > 0, "kiln[R-PA05] a view needs extents: get_as_type<f32, 64>(k, a)");
    if constexpr (sizeof...(E) > 0) return view_of<U, E...>(k, &a.offset, a.name, "get_as_type", at);
  }
  template <element U, int... E, class T, int... D>
  [[deprecated("use get or get_as_type")]] constexpr auto get_typed_ptr(context& k, smem_allocation<T, D...> const& a, site at = {}) {
    return get_as_type<U, E...>(k, a, at);
  }

private:
  template <class>
  friend struct detail::pipeline_tools;
  template <class U, int... E>
  constexpr view<U, E...> view_of(context& k, std::int64_t const* identity, char const* name, char const* what, site at) {
    recorder& r = *k.recorder_for_library();
    result_type const t = detail::type_of<view<U, E...>>(r, node_kind::view);
    int const i = layout_.find(identity);
    auto refused = [&] { return view<U, E...>{&r, r.push(op::constant, t, {}, {0}, at)}; };
    if (arena_ < 0) {
      r.fail(at) << "kiln[R-PA04] " << what << "(" << name << ") before allocate";
      return refused();
    }
    if (i < 0) {
      r.fail(at) << "kiln[R-PA01] " << name << " was never added to this allocator";
      return refused();
    }
    phase_item const& x = layout_.items[i];
    std::int64_t const bytes = kiln::bytes_of(dtype_of<U>, detail::elements_of<E...>);
    if (bytes > x.size) {
      r.fail(at) << "kiln[R-PA06] " << name << ": " << static_cast<std::int64_t>(detail::elements_of<E...>) << " x " << name_of(dtype_of<U>) << " = " << bytes << " B > " << x.size << " B";
      return refused();
    }
    if (x.offset % kiln::bytes_of(dtype_of<U>) != 0) {
      r.fail(at) << "kiln[R-PA06] " << name << ": its offset " << x.offset << " is not aligned for " << name_of(dtype_of<U>);
      return refused();
    }
    // One buffer for all uses of one allocation by one type and shape: its bytes are its own then.
    for (int b = 0; b < r.buffers.size(); ++b)
      if (made_[i] == b + 1 && r.buffers[b].type == t.type && r.buffers[b].shape == t.shape && detail::still_visible(r, r.buffers[b].node)) {
        int const zero = r.push(op::constant, {dtype::i32, node_kind::value, 0}, {}, {0}, at);
        return {&r, r.push(op::view_index, t, {r.buffers[b].node, zero}, {}, at)};
      }
    buffer_role const role = made_[i] ? buffer_role::window : buffer_role::phase;
    int const node = detail::place_buffer(r, t, arena_, x.offset, role, x.group < 0 ? -1 : 256 * x.group + x.phase, name, at);
    if (made_[i]) r.buffers[r.buffers.size() - 1].base = made_[i] - 1;
    if (!made_[i]) made_[i] = r.buffers.size();
    return {&r, node};
  }
  using phase_item = detail::phase_layout::item;

  pipeline_config* pipeline_[most_pipelines]{};
  pipeline_group const* group_of_[most_pipelines]{};
  pipeline_group* group_[most_pipelines]{};
  int pipelines_ = 0, groups_ = 0;
  std::int64_t const* tmem_ptr_ = nullptr;
  int arena_ = -1; ///< its alloc node
  bool assigned_ = false;
  std::int32_t made_[detail::phase_layout::most_items]{}; ///< 1 + buffer of an item's first view
};

/// Lays out columns of tensor memory. Offsets only: what a kernel allocates is `hw_columns()`.
class tmem_allocator : public detail::layout_allocator {
public:
  constexpr tmem_allocation& add(tmem_allocation& a, site at = {}) {
    if (a.num_columns < 1)
      fail(at) << "kiln[R-PA11] " << a.name << ": " << a.num_columns << " columns; at least 1 is needed";
    else
      add_item(&a, at);
    return a;
  }
  /// Adds all that `r.tmem_requirements()` lists.
  template <class R>
  constexpr void add_resource(R& r, site at = {}) {
    for (tmem_allocation* a : r.tmem_requirements()) add(*a, at);
  }
  /// Errors: R-PA03; R-CP03 more than 512 columns.
  constexpr void compute_layout(compute_layout_options o = {}, site at = {}) {
    if (lay_out(o, at) && layout_.bytes > 512) fail(at) << "kiln[R-CP03] tensor memory " << layout_.bytes << " columns > 512";
  }
  constexpr std::int64_t total_tmem_columns(site at = {}) {
    if (!layout_.done) fail(at) << "kiln[R-PA04] total_tmem_columns before compute_layout";
    return layout_.bytes;
  }
  /// What the hardware allocates: the next power of two, at least 32.
  constexpr int hw_columns() const {
    int n = 32;
    while (n < layout_.bytes) n *= 2;
    return n;
  }
};

} // namespace kiln
