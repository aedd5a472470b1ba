// 128-bit hashes of graphs: XXH3 over a serialisation that does not depend on the compiler, the machine or the order of
// ops.def. Enumerators of dtype, node_kind and of the attributes count by value; operations by name.
#pragma once
#include <kiln/export.hpp>
#include <kiln/graph/graph.hpp>

#include <compare>
#include <string>

namespace kiln {

struct hash128 {
  std::uint64_t high = 0, low = 0;
  friend constexpr auto operator<=>(hash128 const&, hash128 const&) = default;
};

/// 32 hexadecimal digits, high half first.
KILN_API std::string to_string(hash128 h);

/// What a graph means: equal for graphs that compute the same by the same nodes. Names, lines, files and the texts of
/// asserts and prints are left out (texts count by their index: code refers to them so).
KILN_API hash128 semantic_hash(graph_view const& g);

/// The semantic hash with names, texts and the line table: what a cache entry with debug information depends on.
KILN_API hash128 debug_hash(graph_view const& g);

} // namespace kiln
