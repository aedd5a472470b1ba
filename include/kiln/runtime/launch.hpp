// Launches: from a kernel's graph and its arguments to running code.
#pragma once

#include <span>
#include <string_view>

#include "kiln/export.hpp"
#include "kiln/graph/graph.hpp"
#include "kiln/runtime/argument.hpp"
#include "kiln/runtime/grid.hpp"
#include "kiln/runtime/stream.hpp"

namespace kiln {

/// What a kernel's code takes on a device. Fields that a device has no word for are 0.
struct kernel_info {
  int variants = 0;                ///< sets of facts about arguments that have code for this device
  int threads = 0;                 ///< of a CTA
  int registers = 0;               ///< of a thread
  i64 spill_bytes = 0;             ///< that a thread stores and loads because registers ran out; -1: nobody says
  i64 stack_bytes = 0;             ///< of a thread, spills included
  i64 shared_bytes = 0;            ///< of a CTA
  int ctas_per_multiprocessor = 0; ///< resident at once
  double occupancy = 0;            ///< resident threads as a part of what the device can hold, 0 to 1
  i64 arena_bytes = 0;             ///< host: scratch of one worker
  double compile_milliseconds = 0; ///< or of finding it in the cache
  bool from_cache = false;
  std::string_view notes;          ///< remarks of compiler and assembler, one a line; kept until the program ends
};

namespace detail {

struct kernel_state;

/// One per kernel, with static storage: the graph, and what the runtime knows of it so far.
struct kernel_entry {
  graph_view graph;
  kernel_state* state = nullptr; ///< the runtime reads and writes it as an atomic (<atomic> is dear to include)
};

/// Starts a kernel on a stream; returns when it is issued (GPU) or done (host). Compiles at the first launch with new
/// facts about the arguments. Errors: kiln::error naming kernel and argument for a wrong grid or pointer; compile_error.
KILN_API void launch(kernel_entry& kernel, stream const& where, grid const& ctas, std::span<argument const> arguments);

/// The grid of a kernel with attributes::persistent: as many CTAs as are resident on the device at once, in whole
/// clusters (host: one CTA or cluster per worker thread). Compiles the code if it is not there, to ask how many fit.
KILN_API grid resident_grid(kernel_entry& kernel, stream const& where, std::span<argument const> arguments);

/// Compiles (or finds) the code for such a launch without starting it.
KILN_API void prepare(kernel_entry& kernel, stream const& where, std::span<argument const> arguments);

/// What the code for such a launch takes; compiles it if it is not there.
KILN_API kernel_info info(kernel_entry& kernel, stream const& where, std::span<argument const> arguments);
/// The same of the code that was made last. Errors: kiln::error if there is none for this device.
KILN_API kernel_info info(kernel_entry& kernel, device const& where);

/// Reports a C++ number that does not fit a value parameter.
[[noreturn]] KILN_API void fail_argument(kernel_entry const& kernel, int parameter, char const* reason);

} // namespace detail
} // namespace kiln
