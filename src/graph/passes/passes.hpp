// The graph passes that need no code generator: free functions graph -> graph, each correct alone and in any order.
#pragma once
#include <kiln/export.hpp>
#include <kiln/graph/owned.hpp>
#include <kiln/graph/specialisation.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// What passes may be told beside the graph.
struct pass_options {
  std::optional<specialisation> facts; ///< for specialise, and for what it lets others conclude
  std::optional<dims> grid;            ///< the grid of the launch, where it is known
};

struct pass {
  std::string_view name;
  std::string_view summary; ///< one line
  graph (*run)(graph_view const&, pass_options const&);
};

/// All passes of this folder, by name.
KILN_INTERNAL_API std::span<pass const> graph_passes();
/// The pass called `name`. Errors: std::invalid_argument with the list of names.
KILN_INTERNAL_API pass const& find_pass(std::string_view name);
/// The order in which a compile runs them before it lowers.
KILN_INTERNAL_API std::span<std::string_view const> standard_passes();

/// What one step of a pipeline did.
struct pass_record {
  std::string_view name;
  double seconds = 0;
  bool changed = false;
  int nodes = 0; ///< afterwards
};

/// Runs passes in order. With KILN_LOG containing `passes`, prints one line per pass to stderr.
KILN_INTERNAL_API graph run_passes(graph_view const& g, std::span<std::string_view const> names, pass_options const& options = {},
                                   std::vector<pass_record>* records = nullptr);

} // namespace kiln
