// A CUDA driver without a GPU, for tests: a shared library with libcuda's name and the entry points that kiln asks for.
// A program that links it is served by it when kiln opens "libcuda.so.1". Memory is host memory, work is done when it is
// issued, and kernels are what the test says they do. It is stricter than the real one: calls that need a current context,
// handles of another context, and what a running capture forbids are errors here, always.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fake_cuda {

struct launch {
  std::string function;
  unsigned grid[3];
  unsigned threads;
  unsigned shared_bytes;
  unsigned cluster[3];
  std::vector<std::uint64_t> arguments;
  void* stream;
  int device;
  /// Address of a global variable of the kernel's module, or null.
  std::function<void*(std::string const&)> global;
};

/// What the driver says of every function and device from now on.
struct answers {
  int registers = 40, local_bytes = 0, static_shared_bytes = 0, max_threads = 1024;
  int shared_bytes_per_cta = 232448;
  std::string assembler_log = "ptxas info    : 0 bytes gmem\nptxas info    : Used 40 registers, used 1 barriers";
};
answers& answer();

/// Runs at every launch and at every replay of a captured one.
void on_launch(std::function<void(launch const&)> kernel);
/// Launches so far, in order; captured ones are not counted until they are replayed.
std::vector<launch> const& launches();

/// A context of the program's own on a device, and a stream in it (or, with null, in the device's primary context).
void* make_context(int device);
void* make_stream(void* context, int device);
/// The current context of this thread, or null.
void* current_context();

void begin_capture(void* stream);
/// The graph of what was captured, or null if a forbidden call ended the capture.
void* end_capture(void* stream);
/// Runs a graph's launches.
void replay(void* graph, void* stream);

/// Bytes and allocations that nobody has freed, pinned memory included.
std::size_t live_bytes();
std::size_t live_allocations();
/// How often an entry point was called ("cuModuleLoadDataEx").
int calls(std::string const& name);
/// How often one of them has answered with an error.
int errors();
/// The next call of `name` fails with `code`.
void fail_next(std::string const& name, int code);

} // namespace fake_cuda
