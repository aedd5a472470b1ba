// Buffers that share storage: specs, reuse groups, and what `.reuse` accepts.
//
//   auto sp = k.storage_alias_spec({.name = "scratch"});
//   auto qk = k.local_alloc<f32, 64, 128>(2, {.reuse = &sp, .name = "qk"});
//   auto p  = k.local_alloc<f16, 64, 64>(4, {.reuse = &sp, .name = "p"});
//   sp.set_buffer_overlap(shared_group(qk, subtile(p, 2)));
#pragma once
#include <kiln/dsl/local.hpp>
#include <kiln/graph/local_layout.hpp>

namespace kiln {

#define KILN_OPAQUE_BARRIERS "kiln[R-BR12] memory barriers are opaque: their bytes are no buffer's, to be shared, viewed or copied; make a buffer of its own"

struct storage_alias_options {
  kiln::storage storage = kiln::storage::smem;
  std::int64_t buffer_size_bytes = 0; ///< 0: what the buffers need. More leaves slack at the end and moves nothing
  bool allow_pun = false;             ///< buffers may read what others wrote to their bytes
  char const* name = nullptr;
};
struct reuse_group_options {
  int group_size = 1; ///< so many neighbouring slots of everything inside count as one outside
};

/// An overlap tree: which buffers of a spec may share bytes. Only a description; `set_buffer_overlap` gives it effect.
struct alias_group {
  recorder* recorder_;
  alias_tree tree_;
};

class mbars; // dsl/tasks.hpp

namespace detail {

template <class X>
inline constexpr bool is_bufs = false;
template <class T, int... D>
inline constexpr bool is_bufs<bufs<T, D...>> = true;

constexpr void append(alias_tree& t, alias_group const& g) { t.append(g.tree_); }
template <class T, int... D>
constexpr void append(alias_tree& t, bufs<T, D...> const& b) {
  t.add_leaf(static_cast<int>(b.recorder_->attribute(b.node_, 0)));
}
template <class First, class... More>
constexpr recorder* first_recorder(First const& first, More const&...) {
  return first.recorder_;
}

/// A mistake in local memory: the message, and the buffer's name in it.
constexpr void put_buffer_name(message& m, recorder const& r, int b) {
  buffer_info const& f = r.buffers[b];
  put_buffer_name(m, f, f.name < 0 ? "" : r.strings[f.name], r.nodes[f.node].line);
}

} // namespace detail

/// What a reuse group may hold: allocations and further groups.
template <class X>
concept alias_element = detail::is_bufs<X> || std::same_as<X, alias_group>;

namespace detail {
template <class... E>
constexpr auto make_group(located<reuse> kind, int group_size, E const&... elements) {
  alias_group g{first_recorder(elements...), {}};
  if (group_size < 1)
    g.recorder_->fail(kind.at) << "kiln[R-AL09] reuse_group needs at least one element and a group_size of at least 1 (got "
                               << static_cast<int>(sizeof...(E)) << (sizeof...(E) == 1 ? " element" : " elements") << ", size " << group_size << ")";
  int const at = g.tree_.open(kind.value, group_size);
  (append(g.tree_, elements), ...);
  g.tree_.close(at);
  return g;
}
} // namespace detail

/// Elements of a group, `reuse::shared` (at one place at each index, never in use together) or `reuse::distinct` (in use
/// together, side by side). Errors: R-AL09 no element, `.group_size` below 1.
template <alias_element... E>
constexpr auto reuse_group(located<reuse> kind, reuse_group_options o, E const&... elements) {
  static_assert(sizeof...(E) >= 1, "kiln[R-AL09] reuse_group needs at least one element and a group_size of at least 1");
  if constexpr (sizeof...(E) >= 1) return detail::make_group(kind, o.group_size, elements...);
}
/// The elements take turns: the same bytes at each index.
template <alias_element... E>
constexpr auto shared_group(E const&... elements) {
  static_assert(sizeof...(E) >= 1, "kiln[R-AL09] shared_group needs at least one element");
  if constexpr (sizeof...(E) >= 1) return detail::make_group(reuse::shared, 1, elements...);
}
/// The elements are in use at the same time: bytes of their own.
template <alias_element... E>
constexpr auto distinct_group(E const&... elements) {
  static_assert(sizeof...(E) >= 1, "kiln[R-AL09] distinct_group needs at least one element");
  if constexpr (sizeof...(E) >= 1) return detail::make_group(reuse::distinct, 1, elements...);
}
template <class... E>
  requires(std::same_as<E, mbars> || ...)
constexpr auto shared_group(E const&...) {
  static_assert(!sizeof...(E), KILN_OPAQUE_BARRIERS);
}
template <class... E>
  requires(std::same_as<E, mbars> || ...)
constexpr auto distinct_group(E const&...) {
  static_assert(!sizeof...(E), KILN_OPAQUE_BARRIERS);
}
/// `n` neighbouring slots of one element count as one.
template <alias_element E>
constexpr auto subtile(E const& element, int n, site at = {}) {
  return detail::make_group(located<reuse>(reuse::shared, at), n, element);
}

/// Storage for several allocations, from `k.storage_alias_spec`. It cannot be indexed; allocations name it in `.reuse`.
class alias_spec {
public:
  constexpr alias_spec(recorder* r, int node, int state) : recorder_(r), node_(node), state_(state) {}

  /// Fixes where the spec's allocations lie: each is a leaf of `group`, once. Without this call all of them start at the
  /// beginning and keep their own strides. Errors: R-AL04, 06, 07, 08, 10, 11, 12.
  constexpr void set_buffer_overlap(alias_group const& group, site at = {}) const;

  recorder* recorder_; ///< for the library
  int node_;           ///< for the library
  int state_;          ///< for the library
};

namespace detail {

/// What `.reuse` names: a spec or another allocation.
struct reuse_target {
  int node = -1;
  int state = -1; ///< of a spec
  constexpr reuse_target() = default;
  constexpr reuse_target(std::nullptr_t) {}
  constexpr reuse_target(alias_spec const* s) : node(s->node_), state(s->state_) {}
  template <class T, int... D>
  constexpr reuse_target(bufs<T, D...> const* b) : node(b->node_) {}
  template <std::same_as<mbars> B>
  constexpr reuse_target(B const*) {
    static_assert(!sizeof(B*), KILN_OPAQUE_BARRIERS);
  }
};

/// Gives the storage of a spec its size, in bytes or columns.
constexpr void resize_storage(recorder& r, int b, std::int64_t size, std::int64_t alignment) {
  buffer_info& f = r.buffers[b];
  shape s;
  if (f.where == storage::tmem)
    s = {2, {tensor_lanes, static_cast<int>(size)}};
  else
    s = {1, {static_cast<int>(size)}};
  f.shape = r.intern(s);
  r.nodes[f.node].shape = f.shape;
  if (f.where == storage::smem && alignment > f.alignment) f.alignment = static_cast<std::int32_t>(alignment);
}
/// Bytes that the author's size counts for one unit of the layout: of a column, those of the rows that the buffers use.
constexpr std::int64_t alias_unit(recorder const& r, alias_state const& s) {
  return r.buffers[s.buffer].where != storage::tmem ? 1 : s.all_lanes ? 4 * tensor_lanes : 4 * tensor_lanes / 2;
}

/// R-AL04: the size that the author gave is too small.
constexpr bool fits_given(recorder& r, alias_state const& s, std::int64_t needed, std::int64_t slot, int groups, int largest, site at) {
  std::int64_t const unit = alias_unit(r, s);
  if (s.given == 0 || s.given >= needed * unit) return true;
  message m = r.fail(at);
  m << "kiln[R-AL04] ";
  put_buffer_name(m, r, s.buffer);
  m << ": " << s.given << " bytes given, " << needed * unit << " needed";
  m << " (slot " << slot * unit << " x " << groups << ")";
  if (largest >= 0) {
    m << "; largest: ";
    put_buffer_name(m, r, largest);
    m << " " << r.buffers[largest].slots << " x " << slot_bytes(r.view(), r.buffers[largest]) * (unit > 1 ? unit / 4 : 1);
  }
  return false;
}

/// Places an allocation that shares storage; `b` is in the table. False: refused.
constexpr bool share_storage(recorder& r, int b, reuse_target const& to, site at) {
  buffer_info& f = r.buffers[b];
  graph_view const g = r.view();
  int const owner = static_cast<int>(r.attribute(to.node, 0));
  if (r.buffers[owner].where != f.where) {
    message m = r.fail(at);
    m << (to.state >= 0 ? "kiln[R-AL03] " : "kiln[R-AL14] ");
    put_buffer_name(m, r, b);
    m << " is in " << (f.where == storage::tmem ? "tmem" : "smem") << " but ";
    put_buffer_name(m, r, owner);
    m << " is in " << (r.buffers[owner].where == storage::tmem ? "tmem" : "smem") << "; both must agree";
    return false;
  }
  std::int64_t const unit = f.where == storage::tmem ? 4 : 1;
  if (to.state >= 0) {
    alias_state& s = r.specs[to.state];
    if (s.tree_line > 0) {
      message m = r.fail(at);
      m << "kiln[R-AL13] ";
      put_buffer_name(m, r, b);
      m << " is allocated from ";
      put_buffer_name(m, r, s.buffer);
      m << " after its overlap tree was fixed at line " << s.tree_line << "; allocate it before";
      return false;
    }
    f.role = buffer_role::peer;
    f.pun = s.pun;
    shape const& extents = r.shapes[f.shape];
    if (!f.layout.plain() || (extents.rank >= 2 && extents.extent[extents.rank - 2] > tensor_lanes / 2)) s.all_lanes = true;
    std::int64_t const total = f.slots * slot_stride(g, f) / unit;
    if (total > s.needed) s.needed = total;
    if (!fits_given(r, s, s.needed, slot_stride(g, f) / unit, f.slots, b, at)) return false;
    std::int64_t const given = s.given / alias_unit(r, s);
    resize_storage(r, s.buffer, given > s.needed ? given : s.needed, buffer_alignment(f));
    return true;
  }
  buffer_info const& o = r.buffers[owner];
  if (o.role == buffer_role::peer) {
    message m = r.fail(at);
    m << "kiln[R-AL14] ";
    put_buffer_name(m, r, owner);
    m << " has no storage of its own but lies in that of a storage_alias_spec; name the spec in .reuse";
    return false;
  }
  if (std::int64_t const has = buffer_alignment(r.buffers[g.storage_of(owner)]); buffer_alignment(f) > has) {
    message m = r.fail(at);
    m << "kiln[R-AL14] ";
    put_buffer_name(m, r, b);
    m << " wants " << buffer_alignment(f) << "-byte alignment, its owner ";
    put_buffer_name(m, r, owner);
    m << " has " << has << "; give the owner the .align";
    return false;
  }
  f.role = buffer_role::over;
  f.place.offset = o.place.offset;
  std::int64_t const mine = f.slots * slot_stride(g, f), its = o.slots * slot_stride(g, o);
  std::int64_t const lanes = unit > 1 ? tensor_lanes : 1;
  if (mine <= its) return true;
  message m = r.fail(at);
  m << "kiln[R-AL14] ";
  put_buffer_name(m, r, b);
  m << " needs " << mine * lanes << " bytes, its owner ";
  put_buffer_name(m, r, owner);
  m << " has " << its * lanes << "; enlarge ";
  put_buffer_name(m, r, owner);
  m << " or use a storage_alias_spec";
  return false;
}

/// " (paths 0 and 1.0)": where the first two leaves of a buffer stand in a tree, counted from 0 in each group.
constexpr void put_paths(message& m, alias_tree const& t, int leaf) {
  int seen = 0;
  for (int i = 0; i < t.count && seen < 2; ++i) {
    if (t.items[i].leaf != leaf) continue;
    m << (seen++ == 0 ? " (paths " : " and ");
    int child = 0;
    for (int e = 1; e <= i;) {
      int const end = e + t.items[e].span;
      if (i >= end) {
        ++child;
        e = end;
        continue;
      }
      m << child;
      if (e++ < i) m << ".";
      child = 0;
    }
  }
  m << ")";
}

constexpr void set_overlap(recorder& r, alias_state& s, alias_tree const& tree, site at) {
  auto name = [&](message& m, int b) { put_buffer_name(m, r, b); };
  int const owner = s.buffer;
  if (s.tree_line > 0) {
    message m = r.fail(at);
    m << "kiln[R-AL08] ";
    name(m, owner);
    m << " already has an overlap tree, set at line " << s.tree_line;
    return;
  }
  s.tree_line = at.line;
  graph_view const g = r.view();
  int const buffers = r.buffers.size();
  for (int i = 0; i < tree.count && i < alias_tree::room; ++i) {
    int const b = tree.items[i].leaf;
    if (b < 0 || (g.storage_of(b) == owner && r.buffers[b].role == buffer_role::peer)) continue;
    message m = r.fail(at);
    m << "kiln[R-AL06] ";
    name(m, b);
    m << " is a leaf of the overlap tree of ";
    name(m, owner);
    m << " but was not allocated from ";
    name(m, owner);
    m << "; give it .reuse";
    return;
  }
  alias_leaf leaves[64]{};
  for (int b = 0; b < buffers && b < 64; ++b) {
    buffer_info const& f = r.buffers[b];
    if (f.where == storage::tmem)
      leaves[b] = {slot_bytes(g, f) / 4, slot_bytes(g, f) / 4, f.slots};
    else
      leaves[b] = {slot_bytes(g, f), buffer_alignment(f), f.slots};
  }
  alias_plan const p = plan_aliases(tree, leaves);
  using fault = alias_plan::fault;
  if (!p.ok()) {
    message m = r.fail(at);
    switch (p.why) {
    case fault::repeated:
      m << "kiln[R-AL07] ";
      name(m, p.leaf);
      m << " appears twice in the overlap tree of ";
      name(m, owner);
      put_paths(m, tree, p.leaf);
      break;
    case fault::uneven:
      m << "kiln[R-AL10] ";
      name(m, p.leaf);
      m << ": " << r.buffers[p.leaf].slots << " buffers are not a multiple of " << p.product << " (product of group sizes on its path)";
      break;
    case fault::groups_differ:
      m << "kiln[R-AL11] ";
      name(m, owner);
      m << ": ";
      name(m, p.leaf);
      m << " has " << p.groups << " logical groups (" << r.buffers[p.leaf].slots << " buffers / " << p.product << "), ";
      name(m, p.other);
      m << " has " << p.other_groups << " (" << r.buffers[p.other].slots << " / " << p.other_product << "); all leaves need the same number";
      break;
    case fault::too_deep:
      m << "kiln[R-AL09] ";
      name(m, owner);
      m << ": more than " << slot_map::most_levels << " group sizes above 1 on one path; multiply neighbouring ones";
      break;
    default:
      m << "kiln[R-AL09] ";
      name(m, owner);
      m << ": an overlap tree has at most " << alias_tree::room << " elements and groups, each group at least one";
    }
    return;
  }
  if (int x = 0, y = 0; !keeps_apart(tree, p, leaves, x, y)) {
    message m = r.fail(at);
    m << "kiln[R-AL18] internal: distinct leaves ";
    name(m, x);
    m << " and ";
    name(m, y);
    m << " overlap; please report";
    return;
  }
  for (int b = 0; b < buffers; ++b) {
    if (b == owner || g.storage_of(b) != owner) continue;
    bool is_leaf = false;
    for (int i = 0; i < p.leaves; ++i) is_leaf = is_leaf || p.leaf_number[i] == b;
    if (is_leaf) continue;
    message m = r.fail(at);
    m << "kiln[R-AL12] ";
    name(m, b);
    m << " is allocated from ";
    name(m, owner);
    m << " but missing from its overlap tree";
    return;
  }
  int largest = p.leaf_number[0];
  for (int i = 0; i < p.leaves; ++i) {
    r.buffers[p.leaf_number[i]].place = p.place[i];
    if (leaves[p.leaf_number[i]].size > leaves[largest].size) largest = p.leaf_number[i];
  }
  if (!fits_given(r, s, p.total, p.slot, p.groups, largest, at)) return;
  std::int64_t const given = s.given / alias_unit(r, s);
  r.buffers[owner].alignment = 0; // of the leaves that are; without a tree it was collected
  resize_storage(r, owner, given > p.total ? given : p.total, r.buffers[owner].where == storage::smem ? p.alignment : 0);
}

} // namespace detail

constexpr void alias_spec::set_buffer_overlap(alias_group const& group, site at) const {
  detail::set_overlap(*recorder_, recorder_->specs[state_], group.tree_, at);
}

} // namespace kiln
