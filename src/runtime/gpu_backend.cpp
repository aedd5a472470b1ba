// GPU contexts through the drivers' entry points: memory, copies, streams, events, modules, launches.
#include "src/runtime/gpu_backend.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "kiln/runtime/error.hpp"
#include "src/runtime/gpu_scope.hpp"

namespace kiln::detail {

namespace {

// Options of the JIT are two parallel arrays; values are integers or pointers in a void*.
struct jit_options {
  std::vector<int> names;
  std::vector<void*> values;

  void add(int name, std::uintptr_t value) {
    names.push_back(name);
    values.push_back(reinterpret_cast<void*>(value));
  }
  void add_log(int buffer, int size, std::string& log) {
    add(buffer, reinterpret_cast<std::uintptr_t>(log.data()));
    add(size, log.size());
  }
  unsigned count() const { return static_cast<unsigned>(names.size()); }
};

std::string trimmed(std::string log) {
  log.resize(std::strlen(log.c_str()));
  while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.pop_back();
  return log;
}

} // namespace

gpu_backend::gpu_backend(gpu_driver const& driver, device_record record, int device, void* context)
    : backend(std::move(record)), driver_(driver), device_(device), context_(context) {
  int supported = 0;
  int attribute = driver.kind == device_kind::cuda ? gpu::cuda_pools_supported : gpu::hip_pools_supported;
  if (driver.device_attribute(&supported, attribute, device) == 0) pools_supported_ = supported != 0;
  int const asks = driver.kind == device_kind::cuda ? gpu::cuda_pageable_access : gpu::hip_pageable_access;
  int pageable = 0;
  if (driver.device_attribute(&pageable, asks, device) == 0) reads_host_memory_ = pageable != 0;
}

void* gpu_backend::context() {
  std::call_once(context_once_, [&] {
    if (context_ != nullptr) return;
    relaxed_capture allow(driver_);
    driver_.check(driver_.primary_context_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
  });
  return context_;
}

void* gpu_backend::pool() {
  // A pool of our own: the device's default pool belongs to the program, and it gives memory back at every
  // synchronisation.
  std::call_once(pool_once_, [&] {
    relaxed_capture allow(driver_);
    gpu_pool_properties properties;
    properties.location.id = device_;
    driver_.check(driver_.pool_create(&pool_, &properties), "cuMemPoolCreate");
    std::uint64_t keep = UINT64_MAX;
    driver_.check(driver_.pool_set_attribute(pool_, gpu::pool_release_threshold, &keep), "cuMemPoolSetAttribute");
  });
  return pool_;
}

void* gpu_backend::allocate(std::size_t bytes, void* stream) {
  current_context here(*this);
  refuse_capture(stream, "buffer", "allocate before the capture begins");
  release_deferred(stream, false);
  void* memory = nullptr;
  int code =
      pools_supported_ ? driver_.allocate_from_pool(&memory, bytes, pool(), stream) : driver_.allocate(&memory, bytes);
  if (code == gpu::out_of_memory) throw std::bad_alloc();
  driver_.check(code, pools_supported_ ? "cuMemAllocFromPoolAsync" : "cuMemAlloc");
  return memory;
}

void gpu_backend::release(void* memory, std::size_t, void* stream) noexcept {
  try {
    current_context here(*this);
    release_deferred(stream, false);
    good_pointers_[slot_of(reinterpret_cast<std::uintptr_t>(memory))].store(0, std::memory_order_relaxed);
    if (is_capturing(stream)) { // the graph would keep a node that frees it, or the capture would fail
      std::lock_guard lock(deferred_guard_);
      deferred_.push_back({memory, stream});
      ++deferred_count_;
      return;
    }
    // A failure means that the context is dead or gone; its memory went with it.
    if (pools_supported_) driver_.free_async(memory, stream);
    else driver_.free(memory); // waits for the device, which is what stream order asks for at least
  } catch (error const&) {}
}

void gpu_backend::upload(void* target, void const* source, std::size_t bytes, void* stream) {
  current_context here(*this);
  refuse_capture(stream, "copy from host memory", "the graph would read the source again whenever it runs; copy before the capture begins");
  driver_.check(driver_.copy_in(target, source, bytes, stream), "cuMemcpyHtoDAsync");
  // Pageable memory was staged by the driver before it returned (CUDA); what the driver knows is read later.
  if (driver_.kind == device_kind::hip || place_of(source).known)
    driver_.check(driver_.stream_synchronize(stream), "cuStreamSynchronize");
}

void gpu_backend::download(void* target, void const* source, std::size_t bytes, void* stream) {
  current_context here(*this);
  refuse_capture(stream, "copy to host memory", "it waits for the stream; copy after the graph has run");
  driver_.check(driver_.copy_out(target, source, bytes, stream), "cuMemcpyDtoHAsync");
  driver_.check(driver_.stream_synchronize(stream), "cuStreamSynchronize");
}

void gpu_backend::start_upload(void* target, void const* source, std::size_t bytes, void* stream) {
  current_context here(*this);
  driver_.check(driver_.copy_in(target, source, bytes, stream), "cuMemcpyHtoDAsync");
}

void gpu_backend::start_download(void* target, void const* source, std::size_t bytes, void* stream) {
  current_context here(*this);
  driver_.check(driver_.copy_out(target, source, bytes, stream), "cuMemcpyDtoHAsync");
}

void gpu_backend::copy(void* target, void const* source, std::size_t bytes, void* stream) {
  current_context here(*this);
  driver_.check(driver_.copy_within(target, source, bytes, stream), "cuMemcpyDtoDAsync");
}

void gpu_backend::fill(void* target, u64 pattern, int pattern_bytes, std::size_t count, void* stream) {
  current_context here(*this);
  switch (pattern_bytes) {
  case 1:
    return driver_.check(driver_.set_8(target, static_cast<unsigned char>(pattern), count, stream), "cuMemsetD8Async");
  case 2:
    return driver_.check(driver_.set_16(target, static_cast<unsigned short>(pattern), count, stream),
                         "cuMemsetD16Async");
  case 4:
    return driver_.check(driver_.set_32(target, static_cast<unsigned>(pattern), count, stream), "cuMemsetD32Async");
  default: break;
  }
  auto low = static_cast<unsigned>(pattern), high = static_cast<unsigned>(pattern >> 32);
  if (low == high) return driver_.check(driver_.set_32(target, low, 2 * count, stream), "cuMemsetD32Async");
  // No driver sets 64 bits: one element is copied in, then what is there is doubled.
  upload(target, &pattern, sizeof pattern, stream);
  auto* bytes = static_cast<std::byte*>(target);
  for (std::size_t done = sizeof pattern, total = count * sizeof pattern; done < total; done *= 2)
    copy(bytes + done, bytes, std::min(done, total - done), stream);
}

i64 gpu_backend::free_bytes() {
  current_context here(*this);
  std::size_t free = 0, total = 0;
  driver_.check(driver_.memory_info(&free, &total), driver_.kind == device_kind::cuda ? "cuMemGetInfo" : "hipMemGetInfo");
  return static_cast<i64>(free);
}

void* gpu_backend::allocate_pinned(std::size_t bytes) {
  current_context here(*this);
  relaxed_capture allow(driver_);
  void* memory = nullptr;
  int code = driver_.allocate_host(&memory, bytes, gpu::host_portable);
  if (code == gpu::out_of_memory) throw std::bad_alloc();
  driver_.check(code, driver_.kind == device_kind::cuda ? "cuMemHostAlloc" : "hipHostMalloc");
  return memory;
}

void gpu_backend::release_pinned(void* memory) noexcept {
  try {
    current_context here(*this);
    relaxed_capture allow(driver_);
    driver_.free_host(memory);
  } catch (error const&) {}
}

// Calls that a capture does not survive are refused before the driver sees them.
void gpu_backend::refuse_capture(void* stream, char const* call, char const* instead) {
  if (is_capturing(stream))
    throw error(std::string(call) + ": " +
                (stream == nullptr ? "the default stream cannot be used while a capture runs" : "the stream is being captured into a graph") +
                "; " + instead);
}

void gpu_backend::release_deferred(void* stream, bool stream_ends) {
  if (deferred_count_.load(std::memory_order_relaxed) == 0 || (!stream_ends && is_capturing(stream))) return;
  std::lock_guard lock(deferred_guard_);
  std::erase_if(deferred_, [&](deferred const& d) {
    if (d.stream != stream) return false;
    if (pools_supported_) driver_.free_async(d.memory, stream);
    else driver_.free(d.memory);
    --deferred_count_;
    return true;
  });
}

void* gpu_backend::create_stream() {
  current_context here(*this);
  void* stream = nullptr;
  driver_.check(driver_.stream_create(&stream, gpu::stream_non_blocking), "cuStreamCreate");
  return stream;
}

void gpu_backend::destroy_stream(void* stream) noexcept {
  try {
    current_context here(*this);
    release_deferred(stream, true);
    auto each_watch = [&](auto what) {
      if (watched_count_.load(std::memory_order_relaxed) == 0) return;
      std::lock_guard lock(watched_guard_);
      for (watched& w : watched_)
        if (w.stream == stream && !w.any_stream) what(w);
    };
    // Whoever looks at a failed assert next waits for another stream, so what this one's kernels leave must be there.
    bool wait = streams_end_idle_.load(std::memory_order_relaxed);
    each_watch([&](watched&) { wait = true; });
    if (wait) driver_.stream_synchronize(stream);
    each_watch([&](watched& w) {
      w.any_stream = true;
      void* armed = stream; // the next stream may get the same handle
      w.record->armed_for.compare_exchange_strong(armed, w.record);
    });
    driver_.stream_destroy(stream);
  } catch (error const&) {}
}

void gpu_backend::synchronize(void* stream) {
  current_context here(*this);
  refuse_capture(stream, "stream::synchronize", "nothing runs before the graph does; wait after it was launched");
  driver_.check(driver_.stream_synchronize(stream), "cuStreamSynchronize");
}

void* gpu_backend::create_event() {
  current_context here(*this);
  void* event = nullptr;
  driver_.check(driver_.event_create(&event, 0), "cuEventCreate");
  return event;
}

void gpu_backend::destroy_event(void* event) noexcept {
  try {
    current_context here(*this);
    driver_.event_destroy(event);
  } catch (error const&) {}
}

void gpu_backend::record_event(void* event, void* stream) {
  current_context here(*this);
  driver_.check(driver_.event_record(event, stream), "cuEventRecord");
}

void gpu_backend::wait_event(void* stream, void* event) {
  current_context here(*this);
  driver_.check(driver_.stream_wait_event(stream, event, 0), "cuStreamWaitEvent");
}

bool gpu_backend::event_done(void* event) {
  current_context here(*this);
  int code = driver_.event_query(event);
  if (code == gpu::not_ready) return false;
  driver_.check(code, "cuEventQuery");
  return true;
}

void gpu_backend::synchronize_event(void* event) {
  current_context here(*this);
  driver_.check(driver_.event_synchronize(event), "cuEventSynchronize");
}

double gpu_backend::seconds_between(void* begin, void* end) {
  current_context here(*this);
  float milliseconds = 0;
  driver_.check(driver_.event_elapsed(&milliseconds, begin, end), "cuEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

void* gpu_backend::load_module(std::span<std::byte const> image) {
  current_context here(*this);
  relaxed_capture allow(driver_);
  void* module = nullptr;
  if (driver_.kind == device_kind::hip) {
    driver_.check(driver_.module_load(&module, image.data(), 0, nullptr, nullptr), "hipModuleLoadDataEx");
    return module;
  }
  std::string log(16384, '\0');
  jit_options options;
  options.add_log(gpu::jit_error_log, gpu::jit_error_log_bytes, log);
  int code = driver_.module_load(&module, image.data(), options.count(), options.names.data(), options.values.data());
  if (code != 0) {
    if (std::string text = trimmed(std::move(log)); !text.empty())
      throw error("cuModuleLoadDataEx: the driver refuses the module: " + text);
    driver_.fail(code, "cuModuleLoadDataEx");
  }
  return module;
}

void gpu_backend::unload_module(void* module) noexcept {
  try {
    current_context here(*this);
    relaxed_capture allow(driver_);
    driver_.module_unload(module);
  } catch (error const&) {}
}

void* gpu_backend::find_function(void* module, std::string const& name) {
  current_context here(*this);
  relaxed_capture allow(driver_);
  void* function = nullptr;
  driver_.check(driver_.module_function(&function, module, name.c_str()),
                ("cuModuleGetFunction(" + name + ")").c_str());
  return function;
}

void* gpu_backend::find_global(void* module, std::string const& name) {
  current_context here(*this);
  relaxed_capture allow(driver_);
  void* address = nullptr;
  std::size_t bytes = 0;
  driver_.check(driver_.module_global(&address, &bytes, module, name.c_str()), ("cuModuleGetGlobal(" + name + ")").c_str());
  return address;
}

gpu_function_info gpu_backend::describe(void* function) {
  current_context here(*this);
  relaxed_capture allow(driver_); // a function that is loaded lazily is loaded here
  auto get = [&](int attribute) {
    int value = 0;
    driver_.check(driver_.function_attribute(&value, attribute, function), "cuFuncGetAttribute");
    return value;
  };
  return {.registers = get(gpu::function_registers),
          .local_bytes = get(gpu::function_local_bytes),
          .static_shared_bytes = get(gpu::function_static_shared),
          .max_threads = get(gpu::function_max_threads)};
}

void gpu_backend::allow_shared(void* function, unsigned bytes) {
  if (driver_.function_set_attribute == nullptr) return; // HIP has no such limit
  current_context here(*this);
  relaxed_capture allow(driver_);
  driver_.check(driver_.function_set_attribute(function, gpu::function_max_dynamic_shared, static_cast<int>(bytes)),
                "cuFuncSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES)");
}

void gpu_backend::allow_large_clusters(void* function) {
  if (driver_.function_set_attribute == nullptr) return;
  current_context here(*this);
  relaxed_capture allow(driver_);
  driver_.check(driver_.function_set_attribute(function, gpu::function_non_portable_cluster, 1),
                "cuFuncSetAttribute(NON_PORTABLE_CLUSTER_SIZE_ALLOWED)");
}

int gpu_backend::occupancy(void* function, int threads, unsigned shared_bytes) {
  current_context here(*this);
  relaxed_capture allow(driver_);
  int blocks = 0;
  driver_.check(driver_.occupancy(&blocks, function, threads, shared_bytes),
                "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  return blocks;
}

namespace {
/// A launch in clusters, as the driver wants it described. Not to be moved: it points into itself.
struct cluster_launch {
  gpu_launch_attribute cluster;
  gpu_launch_config config;
  explicit cluster_launch(gpu_launch const& shape, void* stream) {
    cluster.id = gpu::launch_cluster_dimension;
    cluster.cluster = {shape.cluster[0], shape.cluster[1], shape.cluster[2]};
    std::copy_n(shape.grid, 3, config.grid);
    config.block[0] = shape.threads;
    config.block[1] = config.block[2] = 1;
    config.shared_bytes = shape.shared_bytes;
    config.stream = stream;
    config.attributes = &cluster;
    config.attribute_count = 1;
  }
  cluster_launch(cluster_launch const&) = delete;
};
} // namespace

int gpu_backend::resident_clusters(void* function, gpu_launch const& shape) {
  if (driver_.occupancy_of_clusters == nullptr) throw error("clusters of CTAs do not exist on " + record().name);
  current_context here(*this);
  relaxed_capture allow(driver_);
  cluster_launch const how(shape, nullptr);
  int clusters = 0;
  driver_.check(driver_.occupancy_of_clusters(&clusters, function, &how.config), "cuOccupancyMaxActiveClusters");
  return clusters;
}

void gpu_backend::launch(void* function, gpu_launch const& shape, void const* arguments, std::size_t argument_bytes,
                         void* stream) {
  current_context here(*this);
  // The buffer goes in as marker, value, marker, value, end; the end is 0 for CUDA and 3 for HIP.
  auto marker = [](std::uintptr_t value) { return reinterpret_cast<void*>(value); };
  void* extra[] = {marker(1), const_cast<void*>(arguments), marker(2), &argument_bytes,
                   marker(driver_.kind == device_kind::cuda ? 0 : 3)};
  void** buffer = argument_bytes > 0 ? extra : nullptr;
  auto const& c = shape.cluster;
  auto check = [&](int code, char const* call) {
    if (code != 0)
      driver_.fail(code, (shape.kernel.empty() ? call : "kernel '" + std::string(shape.kernel) + "': " + call).c_str());
  };
  if (c[0] == 1 && c[1] == 1 && c[2] == 1)
    return check(driver_.launch(function, shape.grid[0], shape.grid[1], shape.grid[2], shape.threads, 1, 1,
                                shape.shared_bytes, stream, nullptr, buffer),
                 driver_.kind == device_kind::cuda ? "cuLaunchKernel" : "hipModuleLaunchKernel");
  if (driver_.launch_with_attributes == nullptr) throw error("clusters of CTAs do not exist on " + record().name);
  cluster_launch const how(shape, stream);
  check(driver_.launch_with_attributes(&how.config, function, nullptr, buffer), "cuLaunchKernelEx");
}

bool gpu_backend::is_capturing(void* stream) {
  current_context here(*this);
  int status = 0;
  int code = driver_.stream_is_capturing(stream, &status);
  if (code == gpu::capture_implicit) return true;
  driver_.check(code, driver_.kind == device_kind::cuda ? "cuStreamIsCapturing" : "hipStreamIsCapturing");
  return status != 0;
}

gpu_backend::linked gpu_backend::link_ptx(std::string_view ptx, bool line_info) {
  if (driver_.link_create == nullptr)
    throw error("link_ptx: HIP has no PTX; AMD code objects are linked by the compiler");
  current_context here(*this);
  relaxed_capture allow(driver_);
  std::string errors(32768, '\0'), notes(32768, '\0');
  jit_options options;
  options.add(gpu::jit_target_from_context, 0);
  options.add_log(gpu::jit_error_log, gpu::jit_error_log_bytes, errors);
  options.add_log(gpu::jit_info_log, gpu::jit_info_log_bytes, notes);
  options.add(gpu::jit_log_verbose, 1);
  if (line_info) options.add(gpu::jit_line_info, 1);

  struct link_state {
    gpu_driver const& driver;
    void* handle = nullptr;
    ~link_state() {
      if (handle != nullptr) driver.link_destroy(handle);
    }
  } state{driver_};
  driver_.check(driver_.link_create(options.count(), options.names.data(), options.values.data(), &state.handle),
                "cuLinkCreate");
  std::string text(ptx); // null-terminated, and the length counts that
  void* image = nullptr;
  std::size_t bytes = 0;
  int code = driver_.link_add_data(state.handle, gpu::link_input_ptx, text.data(), text.size() + 1, "kernel", 0,
                                   nullptr, nullptr);
  if (code == 0) code = driver_.link_complete(state.handle, &image, &bytes);
  if (code != 0) {
    std::string log = trimmed(std::move(errors));
    if (!log.empty()) throw error("the driver's assembler refuses the PTX: " + log);
    driver_.fail(code, "cuLinkComplete");
  }
  auto* first = static_cast<std::byte const*>(image);
  return {{first, first + bytes}, trimmed(std::move(notes))};
}

} // namespace kiln::detail
