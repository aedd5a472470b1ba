// What host kernels and the runtime say to each other: the entry point's type, what lowering returns, and the functions
// that generated code calls. No LLVM here.
#pragma once
#include <kiln/dtype/dtype.hpp>

#include <cstdint>

namespace kiln::jit::host {

/// The generated entry: runs the CTAs of linear index first..last-1, x fastest, one after the other on the calling
/// thread. `arena` is the worker's block of at least `host_code::arena_bytes`, aligned to 64 bytes (2 MiB is better).
/// `runtime` is handed back to the hooks below. The caller has cleared FTZ and DAZ.
using entry_function = void(std::uint64_t const* slots, std::uint32_t const* grid, std::int64_t first_cta,
                            std::int64_t last_cta, void* arena, void* runtime);

/// What the runtime needs to know of a lowered kernel.
struct host_code {
  std::int64_t arena_bytes = 0; ///< scratch of one worker
  std::int64_t chunk = 0;       ///< CTAs that share work when one call runs them, from a multiple of it on; 0: none do
  bool streams = false;         ///< may store around the cache (and fences before it returns)
};

/// One operand of device_print: `elements` values of `type` side by side, row-major.
struct print_item {
  dtype type;
  std::uint8_t rank;
  std::int32_t elements;
  void const* data;
};

/// A device_assert failed: at least one element was false. `text` indexes graph_view::strings, `file`
/// graph_view::files. Called at most once per execution of the statement in a CTA; the CTA goes on afterwards.
inline constexpr char assert_hook[] = "kiln_host_assert";
using assert_function = void(void* runtime, std::int32_t text, std::int32_t file, std::int32_t line);

/// device_print: the text and the operands of one CTA, whose index along x, y, z is `program`.
inline constexpr char print_hook[] = "kiln_host_print";
using print_function = void(void* runtime, std::int32_t text, std::int64_t const* program, std::int32_t items,
                            print_item const* item);

} // namespace kiln::jit::host
