// Random valid graphs with arguments to run them on, for property and differential tests. No C++ compile per case: the
// recorder runs here at run time.
//
// What makes two implementations comparable bit for bit:
//   - sums, products, scans and dots of floating values get small whole numbers, so that every order gives one result;
//   - results of functions that docs/numerics.md does not fix to the bit (exp, sin, ...) are only moved, never computed
//     with: `output::approximate` says which outputs hold them;
//   - NaN may differ in sign and payload, and a zero may differ in sign after min and max: compare with `same_element`.
// Every CTA writes its own part of each output; nothing is read that was not written.
#pragma once
#include <kiln/dtype/convert.hpp>
#include <kiln/graph/owned.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kiln_test {

/// What a buffer holds before the launch.
enum class contents {
  zeros,
  values,    ///< anything: all magnitudes, zeros of both signs, subnormals, for integers all bit patterns; no NaN, no infinity
  special,   ///< the same with NaN and infinities
  moderate,  ///< floating values within +-16, integers within +-100 (unsigned: 0..100)
  small,     ///< whole numbers -4..4 (unsigned: 0..4)
};

/// One kernel argument, in the order of the parameters.
struct argument {
  kiln::node_kind kind{}; ///< value, pointer or array
  kiln::dtype type{};
  std::uint64_t bits = 0;    ///< of a value
  std::int64_t elements = 0; ///< of the buffer behind a pointer or array
  contents holds = contents::zeros;
  bool is_output = false;
  bool approximate = false; ///< of an output: holds results that are not fixed to the bit
  int rank = 0;             ///< of an array
  std::int64_t extent[kiln::max_rank]{}, stride[kiln::max_rank]{};
};

struct generated {
  kiln::graph graph;
  std::vector<argument> arguments;
  kiln::dims grid;
  std::uint64_t seed = 0;
};

struct generator_options {
  /// Whether an operation may be used on operands of a type; consulted for the operations that are tested, not for the
  /// few that every graph needs: param, constant, iota, add, mul, lt and broadcast of i32, ptr_add, load, store.
  std::function<bool(kiln::op, kiln::dtype)> allow = nullptr;
  int steps = 24;           ///< how many operations are chosen
  int max_elements = 1024;  ///< of a tile
  bool powers_of_two = false; ///< extents are powers of two only
  bool control = true;      ///< loops, conditionals, vars
  bool local = true;        ///< local memory
  bool asynchronous = true; ///< async_load and its groups
  bool atomics = true;
  bool arrays = true;       ///< array parameters and regions
  bool special = true;      ///< NaN and infinities in buffers and constants
  bool checks = true;       ///< device_assert (that holds) and assume (that is true)
  bool prints = false;      ///< device_print
};

/// A graph of about `options.steps` operations chosen by the seed.
generated random_graph(std::uint64_t seed, generator_options const& options = {});
/// What no random graph holds: barriers and tasks, which need programs that fit together (tests/property/mutation.cpp); layouts asked for,
/// tensor memory by hand and cells without a first value, which have kernels of their own (tests/differential/storage_graphs.hpp and
/// tests/unit/buffer_layouts.cpp, tests/unit/buffers.cpp).
bool not_random(kiln::op o);

/// Whether an operation takes operands (or, without operands, gives a result) of a type; see the table in the source.
bool accepts(kiln::op o, kiln::dtype t);

/// A small graph around one operation on one type: the test "per operation, per type that it accepts". Requires accepts.
generated single(kiln::op o, kiln::dtype t, std::uint64_t seed = 1, generator_options const& options = {});

/// The initial bytes of a buffer argument: elements * bytes_of(type).
std::vector<std::byte> fill(argument const& a, std::uint64_t seed);

/// Element i of a buffer's bytes.
kiln::scalar element_at(std::vector<std::byte> const& bytes, kiln::dtype t, std::int64_t i);

/// Equal bits, or both NaN, or both zero; with `ulps` > 0, floating values at most that many representable numbers apart.
bool same_element(kiln::scalar a, kiln::scalar b, std::int64_t ulps = 0);

} // namespace kiln_test
