// The typed kernel graph: a flat list of nodes in program order, with tables beside it. It is a literal type, made while
// the C++ compiler runs, and read by the validator (then), and by the interpreter, the passes and the lowerings (at run
// time) through `graph_view`.
//
// Worked example. `store(y + i, load(x + i) * 2.f)` with i = k.arange<64>() records
//
//   %0 = param {index=0} : ptr<f32>            x
//   %1 = param {index=1} : ptr<f32>            y
//   %2 = iota {axis=0, start=0} : i32[64]
//   %3 = broadcast %0 : ptr<f32>[64]
//   %4 = ptr_add %3, %2 : ptr<f32>[64]
//   %5 = load %4, _, _ : f32[64]
//   %6 = constant {bits=2.0} : f32[64]
//   %7 = mul %5, %6 : f32[64]
//   %8 = broadcast %1 : ptr<f32>[64]
//   %9 = ptr_add %8, %2 : ptr<f32>[64]
//        store %9, %7, _
//
// Structure is in the list too: for_begin .. for_end, if_begin .. [if_else ..] if_end, while_begin .. while_test ..
// while_end, combine_begin .. combine_end, tasks_begin (task_begin .. task_end).. tasks_end; each end of such a pair knows the
// other by index.
#pragma once
#include <kiln/dtype/dtype.hpp>
#include <kiln/graph/op.hpp>
#include <kiln/layout/slot_layout.hpp>
#include <kiln/layout/storage_alias.hpp>
#include <kiln/meta/slice.hpp>

#include <cstdint>
#include <span>

namespace kiln {

inline constexpr int max_rank = 6;

/// Extents of a tile, view or region; rank 0 is a scalar.
struct shape {
  int rank = 0;
  int extent[max_rank]{};
  constexpr std::int64_t elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= extent[i];
    return n;
  }
  friend constexpr bool operator==(shape const& a, shape const& b) {
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; ++i)
      if (a.extent[i] != b.extent[i]) return false;
    return true;
  }
};

/// What a node's result is.
enum class node_kind : std::uint8_t {
  none,    ///< no result
  value,   ///< scalar or tile of `type`
  pointer, ///< scalar or tile of pointers to `type` in global memory
  array,   ///< pointer with runtime extents and strides; the shape's rank is the array's
  region,  ///< a box of an array
  buffers, ///< a local allocation: slots of one shape
  view,    ///< one slot or a part of one
  cell,    ///< a var
  token,   ///< asynchronous work
  barriers, ///< an allocation of memory barriers
  barrier, ///< one of them
};

/// One operation. Operands and attributes lie in the graph's pools.
struct node {
  op code{};
  dtype type{};
  node_kind kind{};
  std::uint8_t file = 0;         ///< index into graph_view::files
  std::int32_t line = 0;         ///< line of the user's statement
  std::int32_t shape = 0;        ///< index into graph_view::shapes
  std::int32_t operands = 0;     ///< first of operand_count
  std::int32_t attributes = 0;   ///< first of attribute_count(code)
  std::int32_t operand_count = 0;
};

/// Where a local buffer lives.
enum class storage : std::uint8_t { smem, tmem, smem_cluster };
enum class scope : std::uint8_t { shared_dyn, shared_static, local, global };

/// How a local buffer comes by its storage.
enum class buffer_role : std::uint8_t {
  own,    ///< has storage of its own
  spec,   ///< storage of a storage_alias_spec: no element of it is ever named
  arena,  ///< storage that an allocator or pool hands out
  peer,   ///< lies in the storage of a spec, where others may overlap it
  over,   ///< `reuse = &buffer`: lies over another buffer
  phase,  ///< lies in an allocator's arena
  pooled, ///< lies in a pool
  window, ///< another view of bytes that something else owns
};

/// One local allocation: `slots` buffers of one shape. Its alloc node's operand, when there is one, is the alloc node of the
/// storage in which it lies.
struct buffer_info {
  dtype type{};
  storage where = storage::smem;
  scope placement = scope::shared_dyn;
  bool has_slots = true;      ///< false for alloc_shared: the handle is the buffer itself
  std::int32_t slots = 1;
  std::int32_t shape = 0;
  std::int32_t alignment = 0; ///< bytes, a power of two; 0: the default rule
  buffer_role role = buffer_role::own;
  bool pun = false;           ///< reading what others wrote to its bytes is meant
  std::int32_t phase = -1;    ///< of an alias group: 256 * group + phase; -1: in none
  std::int32_t base = -1;     ///< of a window: the buffer whose bytes it shows, no window itself
  slot_map place{};           ///< in its storage; a stride of 0 is that of the default rule
  slot_layout layout{};       ///< of the elements of a slot
  std::int32_t name = -1;     ///< index into graph_view::strings, or -1
  std::int32_t node = -1;     ///< its alloc node
};

/// One kernel parameter.
struct param_info {
  node_kind kind{}; ///< value, pointer or array
  dtype type{};
  bool is_const = false; ///< only read through
  std::uint8_t rank = 0; ///< of an array
  std::int32_t node = -1;
  // Of a pointer that no argument stands for: the launch brings memory of this many elements.
  std::int64_t workspace = 0; ///< 0: an ordinary parameter
  bool per_cta = false;       ///< so many for each CTA of the grid
  bool zero = false;          ///< zeros before each launch
};

/// How many arguments a launch takes: workspaces come last and are not counted.
constexpr int argument_count(slice<param_info> params) {
  int n = static_cast<int>(params.size());
  while (n > 0 && params[static_cast<std::size_t>(n - 1)].workspace > 0) --n;
  return n;
}

/// Extent of a launch or of a cluster.
struct dims {
  std::int64_t x = 1, y = 1, z = 1;
  friend constexpr bool operator==(dims const&, dims const&) = default;
};

/// Properties of a kernel that change its code. Structural, so that it can be a template argument.
struct attributes {
  int num_warps = 4;          ///< warps of a CTA; the host ignores it
  dims cluster{1, 1, 1};      ///< CTAs that share distributed local memory
  bool cluster_nonportable = false; ///< more than 8 CTAs in a cluster are meant, at most 16
  bool persistent = false;    ///< the grid is the device's size, not the problem's
  bool no_alias = false;      ///< pointer arguments do not overlap
  bool contract = false;      ///< a*b+c may be fused
  bool fast_math = false;     ///< every operation that has a fast form uses it
  int verify_trip = 0;        ///< iterations of runtime loops to simulate; 0: the rule of the validator
  friend constexpr bool operator==(attributes const&, attributes const&) = default;
};

/// Why a graph is refused. The text is complete and one line: `kiln[RULE] what: objects with sizes; what to change`.
struct diagnostic {
  int node = -1; ///< the offending node; -1: nothing is wrong
  int length = 0;
  char text[600]{};
  constexpr bool ok() const { return node < 0; }
  constexpr std::string_view view() const { return {text, static_cast<std::size_t>(length)}; }
};

/// A kernel graph owned by somebody else.
struct graph_view {
  std::string_view name{};
  attributes attrs{};
  slice<node> nodes{};
  slice<std::int32_t> operand_pool{};
  slice<std::int64_t> attribute_pool{};
  slice<shape> shapes{};
  slice<buffer_info> buffers{};
  slice<param_info> params{};
  slice<char const*> strings{}; ///< buffer names, assert and print texts
  slice<char const*> files{};

  constexpr int size() const { return static_cast<int>(nodes.count); }
  constexpr node const& operator[](int i) const { return nodes.items[i]; }
  constexpr slice<std::int32_t> operands(int i) const {
    node const& n = nodes.items[i];
    return {operand_pool.items + n.operands, static_cast<std::size_t>(n.operand_count)};
  }
  /// Operand `j` of node i; -1 when absent.
  constexpr int operand(int i, int j) const {
    node const& n = nodes.items[i];
    return j < n.operand_count ? operand_pool.items[n.operands + j] : -1;
  }
  constexpr slice<std::int64_t> attributes_of(int i) const {
    node const& n = nodes.items[i];
    return {attribute_pool.items + n.attributes, static_cast<std::size_t>(attribute_count(n.code))};
  }
  constexpr std::int64_t attribute(int i, int j) const {
    return attribute_pool.items[nodes.items[i].attributes + j];
  }
  constexpr shape const& shape_of(int i) const { return shapes.items[nodes.items[i].shape]; }
  constexpr buffer_info const& buffer(int b) const { return buffers.items[b]; }
  constexpr char const* string(int s) const { return s < 0 ? "" : strings.items[s]; }
  constexpr char const* file(int i) const { return files.items[nodes.items[i].file]; }

  /// The buffer that a buffers or view node refers to, through any chain of views.
  constexpr int buffer_of(int i) const {
    while ((*this)[i].code != op::alloc) i = operand(i, 0);
    return static_cast<int>(attribute(i, 0));
  }
  /// Buffer b; of a window the buffer that it shows.
  constexpr int shown_by(int b) const { return buffers.items[b].base < 0 ? b : buffers.items[b].base; }
  /// Whether a read through b may see what was written through `writer`: both show the same buffer, or it was declared.
  constexpr bool may_read(int b, int writer) const { return buffers.items[b].pun || shown_by(b) == shown_by(writer); }
  /// The buffer in whose storage buffer b lies; b itself where it has its own. Storage has no storage: one step is all.
  constexpr int storage_of(int b) const {
    int const n = operand(buffers.items[b].node, 0);
    return n < 0 ? b : static_cast<int>(attribute(n, 0));
  }
};

namespace detail {

/// Exact-size storage of a graph recorded by the compiler.
template <int Nodes, int Operands, int Attributes, int Shapes, int Buffers, int Params, int Strings, int Files>
struct static_graph {
  template <class T, int N>
  struct table {
    T items[N ? N : 1]{};
    constexpr slice<T> view() const { return {items, static_cast<std::size_t>(N)}; }
  };
  std::string_view name{};
  attributes attrs{};
  table<node, Nodes> nodes{};
  table<std::int32_t, Operands> operands{};
  table<std::int64_t, Attributes> attribute_pool{};
  table<shape, Shapes> shapes{};
  table<buffer_info, Buffers> buffers{};
  table<param_info, Params> params{};
  table<char const*, Strings> strings{};
  table<char const*, Files> files{};

  constexpr graph_view view() const {
    return {name,          attrs,          nodes.view(),  operands.view(), attribute_pool.view(),
            shapes.view(), buffers.view(), params.view(), strings.view(),  files.view()};
  }
};

} // namespace detail
} // namespace kiln
