// Memory that a kernel asks for by alloc_global: it stands behind the arguments as pointers that the runtime fills in. On a
// GPU each stream has its own, kept between launches; host launches, which may overlap, take one and give it back.
#pragma once

#include <span>

#include "src/runtime/variants.hpp"

namespace kiln::detail {

/// The arguments of a launch with room for the kernel's workspaces behind them. Those are aligned places that do not exist
/// yet, which is all that a compile wants to know.
class full_arguments {
public:
  full_arguments(kernel_entry const& kernel, std::span<argument const> given);
  std::span<argument const> span() const { return {all_, static_cast<std::size_t>(count_)}; }
  argument& operator[](int i) { return all_[i]; }

private:
  static constexpr int most = 64; // as many parameters as a recording has room for
  argument all_[most];
  int count_ = 0;
};
inline full_arguments all_arguments(kernel_entry const& kernel, std::span<argument const> given) { return {kernel, given}; }

/// Fills in the workspaces of a launch and keeps them until it is issued (GPU) or done (host).
class workspaces {
public:
  /// Errors: kiln::error where memory runs out, and inside a capture where it is not there yet.
  workspaces(kernel_entry& kernel, stream_state& where, grid const& ctas, full_arguments& arguments);
  workspaces(workspaces const&) = delete;
  workspaces& operator=(workspaces const&) = delete;
  ~workspaces();

private:
  workspace_memory* taken_ = nullptr; // of a host launch
  std::unique_lock<std::mutex> zeroed_; // so that nobody launches on what was zeroed for us
};

} // namespace kiln::detail
