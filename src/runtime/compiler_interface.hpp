// The one door from the runtime to the compiler, implemented in jit/compile.cpp. The runtime hands over a graph, what is
// known of the arguments and where the code is to run; it gets bytes, an entry and a launch signature.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kiln/dtype/dtype.hpp"
#include "kiln/export.hpp"
#include "kiln/graph/specialisation.hpp"
#include "kiln/target/target.hpp"

namespace kiln {
class disk_cache;
}

namespace kiln::detail {

/// The process's disk cache: machine code, and what was measured of it.
KILN_INTERNAL_API disk_cache& process_cache();

struct code_request {
  graph_view graph;
  specialisation facts;
  kiln::target target;
  std::string device; ///< "host", "cuda:0"; code is kept apart per device
  /// CUDA: PTX to the device's machine code, which is what the cache keeps. Absent: PTX is the result.
  /// `log` receives the assembler's words.
  std::function<std::string(std::string_view ptx, std::string& log)> device_link;
};

/// A host kernel's entry: runs the CTAs with linear index [first, last), x fastest. `runtime` is handed to the hooks.
using host_entry = void(std::uint64_t const* slots, std::uint32_t const* grid, std::int64_t first, std::int64_t last,
                        void* arena, void* runtime);

/// Code for one specialisation.
struct device_code {
  std::shared_ptr<void> owner;    ///< keeps image and entry alive
  std::string_view image;         ///< what a GPU's driver loads
  std::string entry;              ///< name of the function in the image
  host_entry* call = nullptr;     ///< host only
  std::int64_t arena_bytes = 0;   ///< host: scratch of one worker
  std::int64_t chunk = 0;         ///< host: CTAs that are best run together; 0: no preference
  std::uint32_t shared_bytes = 0; ///< GPU: dynamic shared memory
  std::uint32_t threads = 0;      ///< GPU: of a CTA
  std::string fault;              ///< GPU: variable of four u32 that a failed device_assert writes (simt/lower.hpp); may be empty
  bool from_cache = false;
  double milliseconds = 0; ///< of this compile
  /// Its parts: passes over the graph, LLVM's IR, passes over that, assembly or object, and the driver's assembler or the link.
  struct {
    double graph = 0, emit = 0, passes = 0, codegen = 0, link = 0;
  } phases;
  std::string notes;       ///< what the compiler had to say, one remark a line
  std::string assembler_log; ///< of NVIDIA's assembler; kept with a cached image, too
};

/// Compiles, or finds in memory or on disk. Any thread, at once; equal requests share one compile.
/// Errors: kiln::compile_error (kernel, target, reason).
KILN_INTERNAL_API device_code get_code(code_request const& request);

/// One line per 32-bit product in an address that leaves its type with the sizes of a launch (its argument slots, its grid);
/// empty when none does. What comes from memory or from a var counts as small: nobody knows it before the launch.
KILN_INTERNAL_API std::string narrow_address_warning(graph_view const& g, dims const& ctas, std::span<std::int64_t const> slots);

/// One operand of a device_print: `elements` values of `type` side by side, row-major.
struct printed {
  dtype type;
  int rank;
  std::int32_t elements;
  void const* data;
};

/// What host code calls when a device_assert fails (once per CTA that sees it) or a device_print is reached; texts and
/// files are indices into the graph's tables. Set once, before the first host compile.
struct host_hooks {
  void (*failed_assert)(void* runtime, std::int32_t text, std::int32_t file, std::int32_t line);
  void (*print)(void* runtime, std::int32_t text, std::int64_t const* program, std::int32_t items, printed const* item);
};
KILN_INTERNAL_API void set_host_hooks(host_hooks hooks);

} // namespace kiln::detail
