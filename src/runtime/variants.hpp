// What the runtime keeps for a kernel: code for each set of facts about its arguments that was launched so far, in a
// list that is only ever added to, so that looking one up takes no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "kiln/runtime/launch.hpp"
#include "src/runtime/backend.hpp"
#include "src/runtime/compiler_interface.hpp"
#include "src/runtime/gpu_backend.hpp"
#include "src/runtime/host_launch.hpp"

namespace kiln::detail {

/// A launch has no more argument slots than this.
inline constexpr int max_slots = 256;

/// More variants than this of one kernel on one device look like arguments that should not be specialised on: from then
/// on integers are not, unless they are constant(x).
inline constexpr int many_variants = 64;

/// Code for one set of facts on one device.
struct variant {
  backend const* where = nullptr;
  std::vector<std::uint64_t> key; // the facts, packed
  device_code code;
  void* function = nullptr;            // GPU
  gpu_fault_record* faults = nullptr;  // GPU, of kernels with assertions
  host_speed speed;                    // host
  std::atomic<bool> sizes_seen{false}; // a launch's sizes were checked for addresses that wrap
  variant* next = nullptr;
};

struct workspace_memory;

struct kernel_state {
  std::mutex compiling;
  std::atomic<bool> warned_of_addresses{false};
  std::atomic<variant*> first{nullptr}; // the newest
  std::mutex workspaces_guard;          // growing one
  std::atomic<workspace_memory*> workspaces{nullptr};
  std::vector<std::uint64_t> alignment; // that each argument's address must have; empty: the element's size everywhere
};

/// The state of a kernel, made when it is first asked for.
kernel_state& state_of(kernel_entry& kernel);

/// The code for a launch with these arguments: found, or compiled now.
/// Errors: kiln::error for more than `max_slots` slots and for what the device cannot run; compile_error.
variant& variant_for(kernel_entry& kernel, backend& where, std::span<argument const> arguments);

/// What the runtime keeps for a kernel.
kernel_state& state_of(kernel_entry& kernel);

/// "argument 2 (val<i64>)"
std::string argument_text(graph_view const& g, int i);
/// "kernel 'add', argument 2 (val<i64>)"
std::string parameter_text(kernel_entry const& k, int i);

/// Sign-extends a value parameter's bits to the number they stand for; floats have no facts.
std::int64_t integer_value(param_info const& p, std::uint64_t bits);

} // namespace kiln::detail
