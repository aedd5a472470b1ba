// Runs a kernel graph on host memory, one operation after the other, by docs/numerics.md: the reference that compiled
// code is compared with, and the checker that finds what only a run can show.
//
// Worked example: `z[i] = x[i] + y[i]`, recorded as `add<64>`, on four CTAs.
//
//   interpreter::report r = interpreter::run(add<64>.graph(), {4}, {
//       interpreter::pointer(x.data(), bytes), interpreter::pointer(y.data(), bytes),
//       interpreter::pointer(z.data(), bytes), interpreter::value(scalar_of(i64{250}))});
//   if (!r.clean()) std::puts(r.text().c_str());
//
// `kiln::check` (check.hpp) makes the arguments from vectors, spans and buffers.
#pragma once
#include <kiln/dtype/convert.hpp>
#include <kiln/export.hpp>
#include <kiln/graph/graph.hpp>

#include <functional>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::interpreter {

/// How floating values are kept between operations.
enum class precision : u8 {
  typed, ///< every result is rounded to its type, as docs/numerics.md says
  /// Floating tiles and scalars (the f8 types apart) are carried as f64, and all their arithmetic is f64. Values are
  /// exact when they come in (constants, loads, parameters), conversions between floating types round to f8 only, and
  /// results are rounded to their type where bits leave: store, atomics, local_store, local_scatter, bitcast,
  /// device_print. What a kernel of f32 operations then differs by is its own rounding error, except where it compares
  /// or truncates values within that error.
  doubled,
};

/// When an asynchronous copy moves its data, within what the kernel's commits and waits allow.
enum class completion : u8 {
  early,  ///< when it is issued
  late,   ///< when a wait needs it
  random, ///< in between, by `run_options::seed`
};

/// Which CTA runs next.
enum class order : u8 {
  ascending, ///< 0, 1, 2, ..; x fastest
  seeded,    ///< any, by `run_options::seed`
};

/// One kernel argument. Memory is host memory.
struct host_argument {
  node_kind kind{};            ///< value, pointer or array
  scalar bits{};               ///< of a value; converted to nothing: its type must be the parameter's
  void* data = nullptr;        ///< of a pointer its value, of an array the element at the origin
  void* allocation = nullptr;  ///< first byte that may be accessed through it
  i64 bytes = 0;               ///< of the allocation
  int rank = 0;                ///< of an array
  i64 extent[max_rank]{};      ///< elements
  i64 stride[max_rank]{};      ///< elements; may be 0 or negative
};

/// A value argument. Its type must be the parameter's.
constexpr host_argument value(scalar s) {
  host_argument a;
  a.kind = node_kind::value;
  a.bits = s;
  return a;
}
/// A pointer to the first of `bytes` accessible bytes.
inline host_argument pointer(void const* data, i64 bytes) {
  host_argument a;
  a.kind = node_kind::pointer;
  a.data = a.allocation = const_cast<void*>(data); // graphs never write through a parameter of const
  a.bytes = bytes;
  return a;
}
/// A pointer into an allocation.
inline host_argument pointer(void const* data, void const* allocation, i64 bytes) {
  host_argument a = pointer(data, bytes);
  a.allocation = const_cast<void*>(allocation);
  return a;
}
/// An array: the element at the origin, extents and strides in elements, and the allocation around them.
inline host_argument array(void const* data, std::initializer_list<i64> extents, std::initializer_list<i64> strides,
                           void const* allocation, i64 bytes) {
  host_argument a = pointer(data, allocation, bytes);
  a.kind = node_kind::array;
  for (i64 e : extents)
    if (a.rank < max_rank) a.extent[a.rank++] = e;
  int d = 0;
  for (i64 s : strides)
    if (d < max_rank) a.stride[d++] = s;
  return a;
}

/// Something that an agent (the kernel, or a replica of a task) or a copy does, for `run_options::trace`.
struct trace_event {
  enum class kind : std::uint8_t {
    agent_begins, ///< text: its name
    agent_ends,
    begins, ///< an operation on local memory or at a barrier; text: "wait full[1]". A wait begins before it blocks, others when they happen
    ends,
    copy_starts, ///< an asynchronous copy, issued by the agent; text: "copy into a[2]"
    copy_lands,
  };
  kind what{};
  i64 time = 0; ///< operations so far, of all agents together; never goes back
  dims cta{0, 0, 0};
  int agent = 0; ///< 0: the kernel's own
  int node = -1;
  u64 copy = 0; ///< which one; of a wait for copies that ends: the newest that it covers, 0 none
  std::string text{};
  i64 bytes = 0;  ///< of a copy that starts
  i64 cause = 0;  ///< of a wait that ends: the time of the `begins` of what completed it; 0 nothing, it passes at once
  i64 phase = -1; ///< of a wait at a memory barrier that ends: the last phase that is complete; -1 none is
};

struct run_options {
  interpreter::precision precision = interpreter::precision::typed;
  completion policy = completion::late;
  interpreter::order order = interpreter::order::ascending;
  u64 seed = 1;
  /// How many seeds `run_all_policies` and `kiln::check` try under each policy: seed, seed + 1, .. They decide which task
  /// runs next, which copy lands next, and the order of CTAs (order::seeded).
  int seeds = 1;
  /// CTAs that run at the same time and take turns at atomics, barriers and passes of while loops. Kernels whose CTAs
  /// wait for each other need as many as wait.
  int resident_ctas = 1;
  /// Off: hazards in local memory, promises and duplicate scatters are not looked for. Accesses outside the arguments'
  /// memory are never made, and always reported.
  bool check = true;
  /// Operations after which a run is given up (R-VF01).
  i64 step_limit = i64{1} << 32;
  /// Off: every element takes the general path through scalar_ops.hpp. For tests of the loops over one element type.
  bool typed_loops = true;
  /// Receives each line that device_print makes; nothing: they are dropped.
  std::function<void(std::string_view)> print{};
  /// Receives what agents and copies do, in order, from the thread that runs; nothing: it is not recorded.
  std::function<void(trace_event const&)> trace{};
};

/// One thing that went wrong, at one statement. Repetitions are counted, not listed.
struct fault {
  std::string rule;    ///< "R-BD10"
  std::string text;    ///< one line: `kiln[RULE] what (file:line, cta x,y,z)`
  std::string file;    ///< of the user's statement
  int line = 0;
  int node = -1;       ///< in the graph
  dims cta{0, 0, 0};   ///< where it happened first
  i64 count = 1;       ///< how often it happened in that run
  completion policy = completion::late; ///< of the run: `run` with these two shows it again
  u64 seed = 1;
};

/// A run's faults, in the order in which they were found.
struct report {
  std::vector<fault> diagnostics;
  bool stopped = false; ///< the run ended early: a device_assert, a deadlock, or the step limit
  int runs = 1;         ///< policies times seeds

  bool clean() const { return diagnostics.empty(); }
  /// Whether a rule was broken.
  bool has(std::string_view rule) const {
    for (fault const& f : diagnostics)
      if (f.rule == rule) return true;
    return false;
  }
  /// All lines, each with a line break; empty when clean. A line ends with what shows the fault again.
  KILN_API std::string text() const;
  /// Throws checker_error unless clean.
  KILN_API void throw_if_faulty() const;
};

/// What `report::throw_if_faulty` throws: `what()` is the report's text.
class KILN_API checker_error : public std::runtime_error {
public:
  explicit checker_error(report r);
  ~checker_error() override;
  report const& faults() const { return report_; }

private:
  report report_;
};

/// Runs every CTA of the grid. Floating results, local memory and outputs are what the graph says; hazards, accesses out
/// of bounds, broken promises and failed assertions are in the report.
///
/// Units: dims in CTAs; zero on any axis runs nothing. Errors: std::invalid_argument when the arguments do not fit the
/// parameters or the grid is negative, naming the parameter; std::logic_error for a graph that uses what does not exist yet
/// (tensor memory). The graph must be valid: see kiln/validate/.
KILN_API report run(graph_view graph, dims grid, std::span<host_argument const> arguments,
                    run_options const& options = {});
inline report run(graph_view graph, dims grid, std::initializer_list<host_argument> arguments,
                  run_options const& options = {}) {
  return run(graph, grid, std::span<host_argument const>(arguments.begin(), arguments.size()), options);
}

/// Runs under each completion policy in turn, with `options.seeds` seeds each, from the same memory, and gives all faults
/// together. Graphs without asynchronous copies and tasks run once a seed, and with CTAs in ascending order once. Memory ends as
/// the last run left it. `options.policy` is not used.
/// Errors: as `run`.
KILN_API report run_all_policies(graph_view graph, dims grid, std::span<host_argument const> arguments,
                                 run_options options = {});

} // namespace kiln::interpreter
