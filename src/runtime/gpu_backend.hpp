// A GPU context as a backend: memory, streams and events as backend.hpp has them, and what only GPUs need: modules,
// functions, launches, and CUDA's linker from PTX to machine code.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/graph/graph.hpp"
#include "src/runtime/backend.hpp"
#include "src/runtime/gpu_driver.hpp"

namespace kiln::detail {

/// How a function is launched. Units: CTAs, threads, bytes.
struct gpu_launch {
  unsigned grid[3] = {1, 1, 1};
  unsigned threads = 128;
  unsigned cluster[3] = {1, 1, 1}; // CUDA only
  unsigned shared_bytes = 0;       // dynamic
  std::string_view kernel = {};    // for errors

  void set_cluster(dims const& c) { cluster[0] = static_cast<unsigned>(c.x), cluster[1] = static_cast<unsigned>(c.y), cluster[2] = static_cast<unsigned>(c.z); }
  /// One cluster of them.
  static gpu_launch of_cluster(dims const& c, unsigned threads, unsigned shared_bytes) {
    gpu_launch one;
    one.threads = threads;
    one.shared_bytes = shared_bytes;
    one.set_cluster(c);
    std::copy(one.cluster, one.cluster + 3, one.grid);
    return one;
  }
};

/// What the driver says about a loaded function.
struct gpu_function_info {
  int registers = 0;
  int local_bytes = 0; // stack and spills of one thread
  int static_shared_bytes = 0;
  int max_threads = 0;
};

/// Four words of device memory where a kernel leaves its first failed device_assert: {1, text + 1, line, CTA}; and how to
/// tell it. Lives as long as the process, as loaded kernels do.
struct gpu_fault_record {
  void* address = nullptr;
  std::function<std::string(std::uint32_t const* words)> describe;
  /// The stream that will look at the record when it is next waited for; this record's own address for none.
  std::atomic<void*> armed_for{this};
};

class KILN_INTERNAL_API gpu_backend final : public backend {
public:
  /// `context` is null for the device's primary context (CUDA), which is then retained when it is first needed.
  gpu_backend(gpu_driver const& driver, device_record record, int device, void* context);

  gpu_driver const& driver() const { return driver_; }
  /// True if `candidate` is this backend's context.
  bool owns_context(void* candidate) { return context() == candidate; }

  void* allocate(std::size_t bytes, void* stream) override;
  void release(void* memory, std::size_t bytes, void* stream) noexcept override;
  void upload(void* target, void const* source, std::size_t bytes, void* stream) override;
  void download(void* target, void const* source, std::size_t bytes, void* stream) override;
  void start_upload(void* target, void const* source, std::size_t bytes, void* stream) override;
  void start_download(void* target, void const* source, std::size_t bytes, void* stream) override;
  void copy(void* target, void const* source, std::size_t bytes, void* stream) override;
  void fill(void* target, u64 pattern, int pattern_bytes, std::size_t count, void* stream) override;
  i64 free_bytes() override;
  void* allocate_pinned(std::size_t bytes) override;
  void release_pinned(void* memory) noexcept override;
  void* create_stream() override;
  void destroy_stream(void* stream) noexcept override;
  void synchronize(void* stream) override;
  void* create_event() override;
  void destroy_event(void* event) noexcept override;
  void record_event(void* event, void* stream) override;
  void wait_event(void* stream, void* event) override;
  bool event_done(void* event) override;
  void synchronize_event(void* event) override;
  double seconds_between(void* begin, void* end) override;
  /// True as well for a default stream that a capture on another stream of the program has taken hostage.
  bool is_capturing(void* stream) override;
  void throw_kernel_failure(void* stream) override;
  void keep_stream_order() override { streams_end_idle_.store(true, std::memory_order_relaxed); }

  /// Loads a cubin, PTX text (null-terminated) or an AMD code object. Works while a stream is captured.
  /// Errors: driver_error; for images that the driver has to compile, with the compiler's log.
  void* load_module(std::span<std::byte const> image);
  void unload_module(void* module) noexcept;
  /// Errors: driver_error if the module has no such function.
  void* find_function(void* module, std::string const& name);
  /// Address of a global variable of a module. Errors: driver_error.
  void* find_global(void* module, std::string const& name);
  gpu_function_info describe(void* function);
  /// Allows more dynamic shared memory than the driver's default. Errors: driver_error over the device's limit.
  void allow_shared(void* function, unsigned bytes);
  /// Allows clusters of more than 8 CTAs.
  void allow_large_clusters(void* function);
  /// CTAs of this size that fit one multiprocessor.
  int occupancy(void* function, int threads, unsigned shared_bytes);
  /// Clusters of this launch that run on the device at once.
  int resident_clusters(void* function, gpu_launch const& shape);

  /// Has the next wait for `stream` look at the record; to be called after the launch. Costs no lock when it is so
  /// already. A launch that is captured into a graph is looked at by every wait from then on: its graph may run anywhere.
  void watch(gpu_fault_record& record, void* stream);

  /// Starts `function` with `arguments`, its parameter buffer. Allocates nothing, takes no lock. Errors: driver_error.
  void launch(void* function, gpu_launch const& shape, void const* arguments, std::size_t argument_bytes, void* stream);

  struct linked {
    std::vector<std::byte> image;
    std::string log; // registers, spills and warnings, as the assembler words them
  };
  /// PTX to the machine code of this device, through the driver (CUDA only). Errors: kiln::error with the assembler's
  /// log.
  linked link_ptx(std::string_view ptx, bool line_info);

  /// Where a pointer points, as far as the driver knows it.
  struct pointer_place {
    bool answered = false; // by the driver
    bool known = false;    // to it
    bool on_device = false;
    bool accessible = false; // from this context
    int device = -1;       // ordinal
    void* start = nullptr; // of the allocation
    std::size_t bytes = 0;
  };
  pointer_place place_of(void const* pointer);
  /// Why kernels of this context cannot use the address, or empty. What was found good is remembered, so that asking
  /// again costs a few instructions; memory that was freed since may pass.
  std::string refusal_of(void const* pointer) {
    auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return good_pointers_[slot_of(address)].load(std::memory_order_relaxed) == address ? std::string() : examine(address);
  }

private:
  friend class current_context;

  void* context();
  void* pool();
  void refuse_capture(void* stream, char const* call, char const* instead);
  void release_deferred(void* stream, bool stream_ends);
  std::string examine(std::uintptr_t address);

  static constexpr std::size_t pointer_slots = 1024;
  // Allocations are apart by 256 bytes at least, windows of one buffer often by 16.
  static std::size_t slot_of(std::uintptr_t a) { return ((a >> 4) ^ (a >> 12) ^ (a >> 21)) % pointer_slots; }

  gpu_driver const& driver_;
  int const device_;
  void* context_;
  std::once_flag context_once_;
  bool pools_supported_ = false;
  void* pool_ = nullptr;
  std::once_flag pool_once_;
  bool reads_host_memory_ = false; // any of the process's
  std::atomic<bool> streams_end_idle_{false};
  std::atomic<std::uintptr_t> good_pointers_[pointer_slots] = {};

  // Freed while their stream was captured, when nothing may be freed.
  struct deferred {
    void* memory;
    void* stream;
  };
  std::mutex deferred_guard_;
  std::vector<deferred> deferred_;
  std::atomic<int> deferred_count_{0};

  struct watched {
    gpu_fault_record* record;
    void* stream;
    bool any_stream; // the stream is gone, or the launch is part of a graph
    bool forever;
  };
  std::mutex watched_guard_;
  std::vector<watched> watched_;
  std::atomic<int> watched_count_{0};
};

/// The devices of a kind in the driver's order. A device that kiln has no target for has no backend but a reason.
struct gpu_entry {
  gpu_backend* backend = nullptr;
  std::string why;
};
std::vector<gpu_entry> const& gpu_devices(device_kind kind);

/// The backend of the context that a stream of the program's belongs to. Errors: kiln::error.
backend& backend_of_stream(device_kind kind, void* native);

} // namespace kiln::detail
