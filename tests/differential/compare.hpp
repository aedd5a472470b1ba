// One call that compares two implementations of a graph: the same memory, filled the same way, with sentinels around
// every buffer and poison in every output; each runs on its own copy, and every element must agree as docs/numerics.md says.
#pragma once
#include <kiln/interpreter/interpreter.hpp>

#include "random_graph.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace kiln_test {

/// The memory behind one argument: `size` bytes of elements from `offset` on, sentinels before and behind.
struct memory_image {
  std::vector<std::byte> storage;
  std::size_t offset = 0, size = 0;

  std::byte* data() { return storage.data() + offset; }
  std::span<std::byte> elements() { return {data(), size}; }
  std::vector<std::byte> copy() const {
    auto const first = storage.begin() + static_cast<std::ptrdiff_t>(offset);
    return {first, first + static_cast<std::ptrdiff_t>(size)};
  }
};

/// Arguments of a launch that own their memory.
struct arguments_image {
  std::vector<argument> kinds;
  std::vector<memory_image> memory; ///< of each argument; empty for values
  std::vector<kiln::interpreter::host_argument> list;

  arguments_image(std::vector<argument> const& arguments, std::uint64_t seed);
  arguments_image(arguments_image const& other);
  arguments_image& operator=(arguments_image const&) = delete;

  /// The first argument with damaged sentinels, or an empty text.
  std::string damage() const;

private:
  void point();
};

/// Runs a graph on the arguments. `list` points into `memory`; code for a device copies the whole of each memory image
/// there and back, sentinels included, so that stray writes show.
using runner = std::function<void(kiln::graph_view graph, kiln::dims grid, arguments_image& arguments)>;

/// The interpreter as a runner; throws when it reports anything.
runner interpreter_runner(kiln::interpreter::run_options options = {});

struct compare_options {
  std::uint64_t seed = 1;     ///< of the buffers' contents
  std::int64_t ulps = 0;      ///< allowed distance in outputs that are marked approximate
  bool check_report = true;   ///< the reference run must be clean
};

/// Runs the interpreter and `tested` on equal memory and compares all outputs; inputs and sentinels must stay as they were.
/// Returns what differs, one line per output (at most the first difference of each), with the seed; empty when all is well.
/// Exact outputs agree bit for bit, except that any two NaNs and any two zeros are equal.
std::string compare(generated const& g, runner const& tested, compare_options const& options = {});

/// How far floating results may be from those of a doubled run (interpreter.hpp), for kernels whose results are not fixed to
/// the bit: at most `ulps` of the output's type, plus `factor` times the largest error that the interpreter's own f32 run has
/// anywhere in that output. Sums in another order, fused products and other functions within docs/numerics.md stay inside;
/// a lost element or a wrong index does not. Integers and b1 must agree with the typed run.
struct closeness {
  double ulps = 4;
  double factor = 16;
};

/// Compares with a doubled run instead of bit for bit. `arguments` says what the buffers hold: moderate contents are wise.
std::string compare_close(kiln::graph_view graph, kiln::dims grid, std::vector<argument> const& arguments, runner const& tested,
                          closeness close = {}, std::uint64_t seed = 1);

/// The same with two runners.
std::string compare(generated const& g, runner const& reference, runner const& tested, compare_options const& options);

} // namespace kiln_test
