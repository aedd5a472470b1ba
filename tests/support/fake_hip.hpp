// A HIP runtime without a GPU, for tests, as fake_cuda.hpp is a CUDA driver without one: two devices (gfx942) whose memory is host
// memory, work is done when it is issued, kernels do nothing. A program that links it is served by it when kiln opens
// "libamdhip64.so".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fake_hip {

struct launch {
  std::string function;
  unsigned grid[3];
  unsigned threads;
  std::vector<std::uint64_t> arguments;
  int device;
};
/// Launches so far, in order.
std::vector<launch> const& launches();

/// Whether the devices could be given access to each other's memory.
void set_peers(bool reachable);
/// Memory that both devices and the host reach; never freed.
void* managed_memory(std::size_t bytes);
/// The current device of this thread.
int current_device();
/// How often an entry point was called ("hipDrvPointerGetAttributes").
int calls(std::string const& name);
/// How often one of them has answered with an error.
int errors();

} // namespace fake_hip
