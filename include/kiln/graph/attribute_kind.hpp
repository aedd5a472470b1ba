// What each attribute of an operation means: a number, a flag, an enumerator, or a reference into one of the graph's
// tables. Printer, parser, hash and every pass that renumbers nodes ask here, so that none of them lists operations.
#pragma once
#include <kiln/graph/graph.hpp>

#include <array>
#include <string_view>

namespace kiln {

enum class attribute_kind : std::uint8_t {
  integer,
  flag,      ///< 0 or 1
  bits,      ///< a bit pattern of the node's dtype: signed integers sign-extended, everything else zero-extended
  structure, ///< the other end of a region, a node index; follows from the order of the nodes
  combine,   ///< the combine_begin node of a custom combine, or -1
  buffer,    ///< index into the buffer table
  text,      ///< index into the string table
  reduce,    ///< reduce_op
  atomic,    ///< atomic_op
  order,     ///< memory_order
  scope,     ///< memory_scope
  cache,     ///< kiln::cache
  evict,     ///< kiln::evict
  nan,       ///< nan_mode
  fence,     ///< kiln::fence
  level,     ///< cache_level
};

/// Name of attribute `i` of an operation.
constexpr std::string_view attribute_name(op o, int i) {
  std::string_view rest = info(o).attributes;
  for (; i > 0; --i) rest.remove_prefix(rest.find(',') + 1);
  return rest.substr(0, rest.find(','));
}

namespace detail {
struct named_kind {
  std::string_view name;
  attribute_kind kind;
};
// The meaning goes with the name; only `op` differs between operations. A name that is not here is an integer.
inline constexpr named_kind kinds_by_name[] = {
    {"begin", attribute_kind::structure}, {"end", attribute_kind::structure},   {"else", attribute_kind::structure},
    {"test", attribute_kind::structure},  {"combine", attribute_kind::combine}, {"bits", attribute_kind::bits},
    {"buffer", attribute_kind::buffer},   {"text", attribute_kind::text},       {"nan", attribute_kind::nan},
    {"cache", attribute_kind::cache},     {"evict", attribute_kind::evict},     {"order", attribute_kind::order},
    {"scope", attribute_kind::scope},     {"fast", attribute_kind::flag},       {"volatile", attribute_kind::flag},
    {"keep", attribute_kind::flag},       {"reverse", attribute_kind::flag},    {"relaxed", attribute_kind::flag},
    {"require", attribute_kind::flag},    {"unique", attribute_kind::flag},     {"per_thread", attribute_kind::flag},
    {"exclusive", attribute_kind::flag},  {"no_ending_sync", attribute_kind::flag}, {"read_only", attribute_kind::flag},
    {"fence", attribute_kind::fence},     {"descending", attribute_kind::flag}, {"largest", attribute_kind::flag},
    {"level", attribute_kind::level},
};
constexpr attribute_kind find_attribute_kind(op o, int i) {
  std::string_view name = attribute_name(o, i);
  if (name == "op") return o == op::atomic_rmw ? attribute_kind::atomic : attribute_kind::reduce;
  for (named_kind const& k : kinds_by_name)
    if (k.name == name) return k.kind;
  return attribute_kind::integer;
}

inline constexpr int most_attributes = 8;
inline constexpr auto attribute_kinds = [] {
  std::array<std::array<attribute_kind, most_attributes>, op_count> table{};
  for (int o = 0; o < op_count; ++o)
    for (int i = 0; i < attribute_count(static_cast<op>(o)); ++i)
      table[static_cast<std::size_t>(o)][static_cast<std::size_t>(i)] = find_attribute_kind(static_cast<op>(o), i);
  return table;
}();
} // namespace detail

/// Meaning of attribute `i` of an operation.
constexpr attribute_kind kind_of_attribute(op o, int i) {
  return detail::attribute_kinds[static_cast<std::size_t>(o)][static_cast<std::size_t>(i)];
}

namespace detail {
inline constexpr std::string_view reduce_names[] = {"sum", "prod", "max", "min", "any", "all", "bit_xor", "custom"};
inline constexpr std::string_view atomic_names[] = {"add", "min", "max", "and", "or", "xor", "xchg"};
inline constexpr std::string_view order_names[] = {"relaxed", "acquire", "release", "acq_rel"};
inline constexpr std::string_view scope_names[] = {"cta", "gpu", "system"};
inline constexpr std::string_view cache_names[] = {"none", "ca", "cg", "cs", "cv", "wb", "wt"};
inline constexpr std::string_view evict_names[] = {"none", "first", "last"};
inline constexpr std::string_view nan_names[] = {"ignore", "propagate"};
inline constexpr std::string_view level_names[] = {"l2", "l1"};
inline constexpr std::string_view fence_names[] = {"gpu", "sys", "async_shared"};
static_assert(std::size(reduce_names) == static_cast<int>(reduce_op::custom) + 1);
static_assert(std::size(atomic_names) == static_cast<int>(atomic_op::xchg) + 1);
static_assert(std::size(order_names) == static_cast<int>(memory_order::acq_rel) + 1);
static_assert(std::size(scope_names) == static_cast<int>(memory_scope::system) + 1);
static_assert(std::size(cache_names) == static_cast<int>(cache::wt) + 1);
static_assert(std::size(evict_names) == static_cast<int>(evict::last) + 1);
static_assert(std::size(level_names) == static_cast<int>(cache_level::l1) + 1);
static_assert(std::size(fence_names) == static_cast<int>(fence::async_shared) + 1);
} // namespace detail

/// Names of buffer_role in text graphs.
inline constexpr std::string_view buffer_role_names[] = {"own", "spec", "arena", "peer", "over", "phase", "pooled", "window"};
static_assert(std::size(buffer_role_names) == static_cast<int>(buffer_role::window) + 1);

/// The names of an attribute's enumerators, in order; empty when it is no enumeration.
constexpr std::span<std::string_view const> enumerators_of(attribute_kind k) {
  switch (k) {
  case attribute_kind::reduce: return detail::reduce_names;
  case attribute_kind::atomic: return detail::atomic_names;
  case attribute_kind::order: return detail::order_names;
  case attribute_kind::scope: return detail::scope_names;
  case attribute_kind::cache: return detail::cache_names;
  case attribute_kind::evict: return detail::evict_names;
  case attribute_kind::nan: return detail::nan_names;
  case attribute_kind::fence: return detail::fence_names;
  case attribute_kind::level: return detail::level_names;
  default: return {};
  }
}

/// What an attribute is when a text graph does not give it, and what the printer therefore leaves out.
/// `has_default` is false where the text must always give it.
struct attribute_default {
  bool has_default = false;
  std::int64_t value = 0;
};
constexpr attribute_default default_of_attribute(op o, int i) {
  std::string_view name = attribute_name(o, i);
  switch (kind_of_attribute(o, i)) {
  case attribute_kind::flag:
  case attribute_kind::cache:
  case attribute_kind::evict:
  case attribute_kind::level:
  case attribute_kind::nan:
  case attribute_kind::structure: return {true, 0};
  case attribute_kind::combine: return {true, -1};
  default: return {name == "start", 0};
  }
}

} // namespace kiln
