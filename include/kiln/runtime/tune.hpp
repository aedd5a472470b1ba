// Measuring kernels against each other: the part of autotuning that is not a template (kiln/autotune.hpp).
#pragma once

#include <span>
#include <string>

#include "kiln/export.hpp"
#include "kiln/graph/graph.hpp"
#include "kiln/runtime/launch.hpp"
#include "kiln/runtime/stream.hpp"

namespace kiln::detail {

/// A kernel among others, as the runtime sees it.
struct tuning_point {
  std::string text; ///< "<128, 64>"
  graph_view graph;
  bool fits;
  void (*run)(void* context);
  kernel_info (*info)(stream const& where);
};
struct tuning_choice {
  int point = 0;
  double seconds = 0;
  bool remembered = false;
};
/// Finds the fastest point, or remembers it. Errors: see `autotune`.
KILN_API tuning_choice tune(stream const& where, std::string const& key, std::span<tuning_point const> points, void* context);

} // namespace kiln::detail
