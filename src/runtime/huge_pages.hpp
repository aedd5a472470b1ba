// Memory from the kernel in 2 MiB steps, aligned to 2 MiB and advised to use huge pages: worker arenas and large host
// buffers.
#pragma once

#include <cstddef>

#include "kiln/export.hpp"

namespace kiln::detail {

inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

/// Zeroed memory of at least `bytes`, aligned to 2 MiB. Errors: std::bad_alloc.
KILN_INTERNAL_API void* map_huge(std::size_t bytes);

/// Gives back what `map_huge(bytes)` returned.
KILN_INTERNAL_API void unmap_huge(void* start, std::size_t bytes) noexcept;

/// Scratch memory of one thread that grows to the largest size asked for and is then kept: a launch on the warm path
/// takes it for nothing. Contents are what the last user left.
class KILN_INTERNAL_API host_arena {
public:
  host_arena() = default;
  host_arena(host_arena const&) = delete;
  host_arena& operator=(host_arena const&) = delete;
  ~host_arena();

  /// At least `bytes`, aligned to 2 MiB; null for 0. Earlier results become invalid when it grows. Errors:
  /// std::bad_alloc.
  void* reserve(std::size_t bytes);

  /// The arena of the calling thread.
  static host_arena& of_this_thread();

private:
  void* start_ = nullptr;
  std::size_t size_ = 0;
};

} // namespace kiln::detail
