// Operations and their properties, generated from ops.def.
#pragma once
#include <cstdint>
#include <kiln/dtype/dtype.hpp>
#include <string_view>

namespace kiln {

/// An operation of the graph. The order is that of ops.def and part of no file format: text graphs use names.
enum class op : std::uint8_t {
#define KILN_OP(name, least, most, traits, attributes, summary) name,
#include <kiln/graph/ops.def>
};

/// What an analysis may assume about an operation. A bit set.
namespace trait {
enum : std::uint32_t {
  pure = 1,                    ///< no effect; equal operands give equal results
  elementwise = 2 | pure,      ///< one result element from the operand elements at the same coordinate
  commutative = 4,             ///< the first two operands may be exchanged
  reads = 8,                   ///< reads global memory
  writes = 16,                 ///< writes global memory
  reads_local = 32,            ///< reads local memory
  writes_local = 64,           ///< writes local memory
  reads_cell = 128,            ///< reads a var
  writes_cell = 256,           ///< writes a var
  cell = 512 | writes_cell,    ///< makes a var
  opens = 1024,                ///< opens a region of nodes
  middle = 2048,               ///< divides a region
  closes = 4096,               ///< closes a region
  local_alloc = 8192,          ///< makes a local buffer
  view = 16384 | pure,         ///< address arithmetic on local memory
  async = 32768,               ///< issues, groups or awaits asynchronous work
  barrier = 65536,             ///< synchronises agents, or makes what does
  effect = 131072,             ///< visible outside the kernel other than through memory
  hint = 262144,               ///< carries a promise; the value is that of the operand
};
}

struct op_info {
  std::string_view name;
  int least, most; ///< number of operands; most -1: any
  std::uint32_t traits;
  std::string_view attributes; ///< comma-separated names
  std::string_view summary;
};

namespace detail {
// A namespace of its own, in which the traits need no qualification.
namespace op_rows {
using namespace trait;
inline constexpr op_info op_table[] = {
// With the lengths at hand: every string_view of a literal would else be measured by the compiler, letter by letter.
#define KILN_TEXT(literal) {literal, sizeof(literal) - 1}
#define KILN_OP(name, least, most, traits, attributes, summary)                                                        \
  {KILN_TEXT(#name), least, most, traits, KILN_TEXT(attributes), KILN_TEXT(summary)},
#include <kiln/graph/ops.def>
#undef KILN_TEXT
};
} // namespace op_rows
using op_rows::op_table;
} // namespace detail

inline constexpr int op_count = static_cast<int>(sizeof(detail::op_table) / sizeof(op_info));

constexpr op_info const& info(op o) { return detail::op_table[static_cast<int>(o)]; }
constexpr std::string_view name_of(op o) { return info(o).name; }
constexpr bool has(op o, std::uint32_t t) { return (info(o).traits & t) == t; }

/// Tasks, barriers in memory, bulk copies and clusters: what a kernel of one agent never has.
constexpr bool is_of_tasks(op o) { return o >= op::alloc_barriers && o <= op::fence_barrier_init; }
/// What CTAs of a cluster do with each other.
constexpr bool is_of_clusters(op o) { return o >= op::cluster_rank && o <= op::fence_barrier_init; }

/// Number of attributes of an operation.
constexpr int attribute_count(op o) {
  std::string_view const& a = info(o).attributes;
  char const* const text = a.data();
  int const length = static_cast<int>(a.size());
  int n = length > 0;
  for (int i = 0; i < length; ++i) n += text[i] == ',';
  return n;
}

/// The operation called `text`; op_count when there is none.
constexpr int find_op(std::string_view text) {
  int i = 0;
  while (i < op_count && detail::op_table[i].name != text) ++i;
  return i;
}

namespace detail {
/// One answer per operation, for questions that are asked at every node while a compiler runs.
struct op_flags {
  bool of[op_count]{};
};
constexpr op_flags flags_where(bool (*holds)(op)) {
  op_flags t;
  for (int i = 0; i < op_count; ++i) t.of[i] = holds(static_cast<op>(i));
  return t;
}
} // namespace detail

/// Combines of reduce and scan; `custom` has a combine body in the graph.
enum class reduce_op : std::uint8_t { sum, prod, max, min, any, all, bit_xor, custom };
enum class atomic_op : std::uint8_t { add, min, max, bit_and, bit_or, bit_xor, xchg };
enum class memory_order : std::uint8_t { relaxed, acquire, release, acq_rel };
enum class memory_scope : std::uint8_t { cta, gpu, system };
enum class cache : std::uint8_t { none, ca, cg, cs, cv, wb, wt };
enum class cache_level : std::uint8_t { l2, l1 };
enum class evict : std::uint8_t { none, first, last };
enum class fence : std::uint8_t { gpu, sys, async_shared };

} // namespace kiln
