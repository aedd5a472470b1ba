// What the calls of a context take beside their operands: `k.local_alloc<f32, 64>(2, {.align = 256})`.
#pragma once
#include <kiln/dsl/alias.hpp>
#include <kiln/dsl/control.hpp>
#include <kiln/dsl/layout.hpp>
#include <kiln/dsl/local.hpp>
#include <kiln/dsl/memory.hpp>
#include <kiln/dsl/tasks.hpp>

namespace kiln {

namespace detail {
/// A view of any element type, as an option.
struct view_ref {
  int node = -1;
  constexpr view_ref() = default;
  template <class T, int... D>
  constexpr view_ref(view<T, D...> const& v) : node(v.node_) {}
  template <class T>
  constexpr view_ref(local_pointer<T> const& p) : node(p.node_) {}
  template <class B>
    requires(std::same_as<B, mbars> || std::same_as<B, mbar>)
  constexpr view_ref(B const&) {
    static_assert(!sizeof(B), KILN_OPAQUE_BARRIERS);
  }
};
} // namespace detail

struct local_alloc_options {
  kiln::storage storage = kiln::storage::smem;
  detail::reuse_target reuse{}; ///< `&spec` or `&buffer`: shares its storage
  detail::view_ref backing{};   ///< the arena of `k.alloc_buffer`, whose next bytes it takes; none: memory of its own
  buffer_layout layout{};       ///< of each slot (dsl/layout.hpp); infer: row by row, spread over banks where nobody can tell
  int align = 0; ///< bytes, a power of two; 0: 128, or the element's size where that is more
  char const* name = nullptr;
};
struct alloc_shared_options {
  kiln::scope scope = kiln::scope::shared_dyn;
  detail::view_ref backing{}; ///< as in local_alloc
  int align = 0; ///< bytes, a power of two; 0: 128
  buffer_layout layout = layout::row_major; ///< dsl/layout.hpp
  char const* name = nullptr;
};
struct alloc_buffer_options {
  int align = 0; ///< of shared memory: bytes, a power of two; 0: 128
  buffer_layout layout = layout::row_major; ///< of shared memory
  char const* name = nullptr;
};
/// Whether a workspace is one for all CTAs of a launch or one for each.
enum class per : std::uint8_t { grid, cta };
struct alloc_global_options {
  kiln::per per = kiln::per::grid;
  bool zero = false; ///< zeros before each launch; otherwise whatever is there
};
namespace layout {
struct register_map; // dsl/layout_tools.hpp
}
namespace detail {
/// A layout of registers as an option: which one, and how a tile is put in it.
struct register_pin {
  layout::register_map const* map = nullptr;
  int (*pin)(recorder&, int tile, layout::register_map const&, site) = nullptr;
  constexpr int apply(recorder& r, int tile, site at) const { return pin ? pin(r, tile, *map, at) : tile; }
};
} // namespace detail
struct local_load_options {
  token wait{};                  ///< makes the load depend on this wait
  detail::register_pin layout{}; ///< of the tile, as k.require_layout: layout::registers(...) (dsl/layout_tools.hpp); none: what its uses decide
  bool relaxed = false;          ///< promises that a preceding wait already orders the load
  bool remat = false;            ///< a hint about the lifetime of addresses, or
  int remat_group = -1;          ///< that loads of one group share theirs; without effect on the present targets
};
struct local_reinterpret_options {
  buffer_layout layout{}; ///< see the bytes through this one, which takes as many; none: as they lie
};
struct alloc_fragment_options {
  detail::register_pin layout{}; ///< of every value that it holds; none: what its uses decide
};
struct alloc_local_options {
  char const* name = nullptr;
};
struct smem_pool_options {
  detail::view_ref backing{}; ///< shared memory that it hands out, at a constant place; none: memory of its own
  char const* name = nullptr;
};
class smem_pool_handle; // dsl/pool.hpp
struct tmem_pool_options {
  int total_cols = 512;        ///< what commit takes: a power of two, 32..512
  int cta_group = 1;           ///< CTAs that share the allocation, 1 or 2
  int alloc_warp = 0;          ///< the warp that allocates, and
  int dealloc_warp = -1;       ///< that gives back; -1: the same
  bool sync_after_alloc = true; ///< the allocating warp waits for its lanes; simulated warps have none that could be late
  detail::view_ref tmem_addr{}; ///< where the address is kept: one u32; none: the pool's next 4 bytes
  char const* name = nullptr;
};
class tmem_pool_handle; // dsl/tensor_pool.hpp
struct require_layout_options {
  bool pin = true;                   ///< false: a wish, which the compiler follows where nothing speaks against it
  bool late_address_compute = false; ///< a hint for AMD address lifetimes
};
namespace detail {
/// A pool while it is recorded.
struct pool_state {
  std::int32_t buffer = -1; ///< its storage
  std::int64_t cursor = 0, high = 0;
  std::int64_t start = 0, room = -1; ///< where it begins in the storage, and its bytes; -1: as many as are needed
  bool committed = false;
};
/// A pool in tensor memory while it is recorded. Units: columns.
struct tensor_pool_state {
  std::int32_t buffer = -1, total = 0, cursor = 0, high = 0, warp = 0, group = 1;
  std::int32_t committed = -1, released = -1; ///< nodes
  std::int32_t region = -1;                   ///< where commit stands
  void (*check_uses)(recorder&, tensor_pool_state const&) = nullptr;
};
constexpr std::int64_t count_of(extents const& e) {
  std::int64_t n = 1;
  for (int d = 0; d < e.rank; ++d) n *= e.extent[d];
  return n;
}
} // namespace detail
namespace detail {
/// A layout of shared memory, or the datapath of tensor memory.
struct window_layout {
  buffer_layout memory{};
  datapath tensor = datapath::automatic;
  constexpr window_layout() = default;
  constexpr window_layout(buffer_layout const& l) : memory(l) {}
  constexpr window_layout(datapath d) : tensor(d) {}
};
} // namespace detail
struct decl_buffer_options {
  detail::view_ref data{};      ///< where it starts: a view whose place is constant, or known to be a multiple of the new one's size
  std::int64_t elem_offset = 0; ///< from there, in elements of the new type; or
  std::int64_t byte_offset = 0; ///< in bytes
  kiln::storage scope = kiln::storage::smem; ///< tmem: columns of the pool of tensor memory (dsl/tensor_pool.hpp)
  detail::any_value allocated_addr{};        ///< the first of them: a number, or what the pool's slot holds plus a number
  detail::window_layout layout{};            ///< of the elements (dsl/layout.hpp), row by row when absent; a datapath in tensor memory
  char const* name = nullptr;
};
namespace detail {
/// `{16, 1}`: strides, one for each axis.
struct stride_list {
  int count = 0; ///< may exceed max_rank: then it is no buffer's
  any_value of[max_rank]{};
  constexpr stride_list() = default;
  constexpr stride_list(std::initializer_list<any_value> strides) {
    for (any_value const& s : strides)
      if (++count <= max_rank) of[count - 1] = s;
  }
};
} // namespace detail
struct match_buffer_options {
  detail::stride_list strides{}; ///< elements, one for each axis: `{.strides = {16, 1}}`; row-major when absent
  std::int64_t elem_offset = 0;  ///< where element 0 is, from the pointer
  std::int64_t byte_offset = 0;  ///< the same in bytes: a multiple of the element's
  int align = 0;                 ///< bytes, a power of two: a promise about the pointer; 0: the element's size
};

template <int Axis = 0>
inline constexpr int axis = Axis;
struct local_gather_options {
  int axis = 0;
  token wait{};
};
struct local_scatter_options {
  int axis = 0;
  bool unique = true; ///< false: several values may go to one element, one of them stays
};
struct async_load_options {
  detail::any_value mask{};
  detail::any_value other{};
  kiln::cache cache = kiln::cache::none; ///< none, ca or cg
  kiln::evict evict = kiln::evict::none;
  bool is_volatile = false;
  bool require_async = false; ///< refuse the synchronous fallback
};
struct program_tile_options {
  int group = 1; ///< rows of tiles that are walked together, for reuse in the cache
};
struct dot_options {
  bool fast = false; ///< allow the target's faster, less exact products (tf32, bf16 pairs that flush denormals)
};

} // namespace kiln
