// GPU contexts through the drivers' entry points: memory, copies, streams, events, modules, launches.
#include "src/runtime/gpu_backend.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "kiln/runtime/error.hpp"

namespace kiln::detail {

// CUDA has a stack of contexts per thread, HIP a current device. Either way the caller finds its own again.
class gpu_backend::current {
public:
  explicit current(gpu_backend& b) : driver_(b.driver_) {
    if (driver_.kind == device_kind::cuda) {
      void* wanted = b.context();
      void* now = nullptr;
      driver_.check(driver_.context_current(&now), "cuCtxGetCurrent");
      if (now == wanted) return;
      driver_.check(driver_.context_push(wanted), "cuCtxPushCurrent");
      pushed_ = true;
    } else {
      int now = -1;
      driver_.check(driver_.current_device(&now), "hipGetDevice");
      if (now == b.device_) return;
      driver_.check(driver_.set_device(b.device_), "hipSetDevice");
      previous_ = now;
    }
  }
  current(current const&) = delete;
  current& operator=(current const&) = delete;
  ~current() {
    void* ignored = nullptr;
    if (pushed_) driver_.context_pop(&ignored);
    if (previous_ >= 0) driver_.set_device(previous_);
  }

private:
  gpu_driver const& driver_;
  bool pushed_ = false;
  int previous_ = -1;
};

namespace {

// Some driver calls would spoil a capture in another thread's mode; kiln's own are harmless to it.
class relaxed_capture {
public:
  explicit relaxed_capture(gpu_driver const& driver) : driver_(driver) { driver_.exchange_capture_mode(&mode_); }
  relaxed_capture(relaxed_capture const&) = delete;
  relaxed_capture& operator=(relaxed_capture const&) = delete;
  ~relaxed_capture() { driver_.exchange_capture_mode(&mode_); }

private:
  gpu_driver const& driver_;
  int mode_ = gpu::capture_relaxed;
};

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
  current here(*this);
  void* memory = nullptr;
  int code =
      pools_supported_ ? driver_.allocate_from_pool(&memory, bytes, pool(), stream) : driver_.allocate(&memory, bytes);
  if (code == gpu::out_of_memory) throw std::bad_alloc();
  driver_.check(code, pools_supported_ ? "cuMemAllocFromPoolAsync" : "cuMemAlloc");
  return memory;
}

void gpu_backend::release(void* memory, std::size_t, void* stream) noexcept {
  try {
    current here(*this);
    // A failure means that the context is dead or gone; its memory went with it.
    if (pools_supported_) driver_.free_async(memory, stream);
    else driver_.free(memory); // waits for the device, which is what stream order asks for at least
  } catch (error const&) {}
}

void gpu_backend::upload(void* target, void const* source, std::size_t bytes, void* stream) {
  current here(*this);
  driver_.check(driver_.copy_in(target, source, bytes, stream), "cuMemcpyHtoDAsync");
  // Pageable memory was staged by the driver before it returned (CUDA); pinned memory is read later.
  int type = 0;
  bool pinned =
      driver_.pointer_attribute(&type, gpu::pointer_memory_type, source) == 0 && type == gpu::memory_type_host;
  if (pinned || driver_.kind == device_kind::hip)
    driver_.check(driver_.stream_synchronize(stream), "cuStreamSynchronize");
}

void gpu_backend::download(void* target, void const* source, std::size_t bytes, void* stream) {
  current here(*this);
  driver_.check(driver_.copy_out(target, source, bytes, stream), "cuMemcpyDtoHAsync");
  driver_.check(driver_.stream_synchronize(stream), "cuStreamSynchronize");
}

void gpu_backend::copy(void* target, void const* source, std::size_t bytes, void* stream) {
  current here(*this);
  driver_.check(driver_.copy_within(target, source, bytes, stream), "cuMemcpyDtoDAsync");
}

void gpu_backend::fill(void* target, u64 pattern, int pattern_bytes, std::size_t count, void* stream) {
  current here(*this);
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

void* gpu_backend::create_stream() {
  current here(*this);
  void* stream = nullptr;
  driver_.check(driver_.stream_create(&stream, gpu::stream_non_blocking), "cuStreamCreate");
  return stream;
}

void gpu_backend::destroy_stream(void* stream) noexcept {
  try {
    current here(*this);
    driver_.stream_destroy(stream);
  } catch (error const&) {}
}

void gpu_backend::synchronize(void* stream) {
  current here(*this);
  driver_.check(driver_.stream_synchronize(stream), "cuStreamSynchronize");
}

void* gpu_backend::create_event() {
  current here(*this);
  void* event = nullptr;
  driver_.check(driver_.event_create(&event, 0), "cuEventCreate");
  return event;
}

void gpu_backend::destroy_event(void* event) noexcept {
  try {
    current here(*this);
    driver_.event_destroy(event);
  } catch (error const&) {}
}

void gpu_backend::record_event(void* event, void* stream) {
  current here(*this);
  driver_.check(driver_.event_record(event, stream), "cuEventRecord");
}

void gpu_backend::wait_event(void* stream, void* event) {
  current here(*this);
  driver_.check(driver_.stream_wait_event(stream, event, 0), "cuStreamWaitEvent");
}

bool gpu_backend::event_done(void* event) {
  current here(*this);
  int code = driver_.event_query(event);
  if (code == gpu::not_ready) return false;
  driver_.check(code, "cuEventQuery");
  return true;
}

void gpu_backend::synchronize_event(void* event) {
  current here(*this);
  driver_.check(driver_.event_synchronize(event), "cuEventSynchronize");
}

double gpu_backend::seconds_between(void* begin, void* end) {
  current here(*this);
  float milliseconds = 0;
  driver_.check(driver_.event_elapsed(&milliseconds, begin, end), "cuEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

void* gpu_backend::load_module(std::span<std::byte const> image) {
  current here(*this);
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
    current here(*this);
    relaxed_capture allow(driver_);
    driver_.module_unload(module);
  } catch (error const&) {}
}

void* gpu_backend::find_function(void* module, std::string const& name) {
  current here(*this);
  relaxed_capture allow(driver_);
  void* function = nullptr;
  driver_.check(driver_.module_function(&function, module, name.c_str()),
                ("cuModuleGetFunction(" + name + ")").c_str());
  return function;
}

gpu_function_info gpu_backend::describe(void* function) {
  current here(*this);
  auto get = [&](int attribute) {
    int value = 0;
    driver_.check(driver_.function_attribute(&value, attribute, function), "cuFuncGetAttribute");
    return value;
  };
  return {.registers = get(gpu::function_registers),
          .spill_bytes = get(gpu::function_local_bytes),
          .static_shared_bytes = get(gpu::function_static_shared),
          .max_threads = get(gpu::function_max_threads)};
}

void gpu_backend::allow_shared(void* function, unsigned bytes) {
  if (driver_.function_set_attribute == nullptr) return; // HIP has no such limit
  current here(*this);
  driver_.check(driver_.function_set_attribute(function, gpu::function_max_dynamic_shared, static_cast<int>(bytes)),
                "cuFuncSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES)");
}

void gpu_backend::allow_large_clusters(void* function) {
  if (driver_.function_set_attribute == nullptr) return;
  current here(*this);
  driver_.check(driver_.function_set_attribute(function, gpu::function_non_portable_cluster, 1),
                "cuFuncSetAttribute(NON_PORTABLE_CLUSTER_SIZE_ALLOWED)");
}

int gpu_backend::occupancy(void* function, int threads, unsigned shared_bytes) {
  current here(*this);
  int blocks = 0;
  driver_.check(driver_.occupancy(&blocks, function, threads, shared_bytes),
                "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  return blocks;
}

void gpu_backend::launch(void* function, gpu_launch const& shape, void const* arguments, std::size_t argument_bytes,
                         void* stream) {
  current here(*this);
  // The buffer goes in as marker, value, marker, value, end; the end is 0 for CUDA and 3 for HIP.
  auto marker = [](std::uintptr_t value) { return reinterpret_cast<void*>(value); };
  void* extra[] = {marker(1), const_cast<void*>(arguments), marker(2), &argument_bytes,
                   marker(driver_.kind == device_kind::cuda ? 0 : 3)};
  void** buffer = argument_bytes > 0 ? extra : nullptr;
  auto const& c = shape.cluster;
  if (c[0] == 1 && c[1] == 1 && c[2] == 1)
    return driver_.check(driver_.launch(function, shape.grid[0], shape.grid[1], shape.grid[2], shape.threads, 1, 1,
                                        shape.shared_bytes, stream, nullptr, buffer),
                         driver_.kind == device_kind::cuda ? "cuLaunchKernel" : "hipModuleLaunchKernel");
  if (driver_.launch_with_attributes == nullptr) throw error("clusters of CTAs do not exist on " + record().name);
  gpu_launch_attribute cluster;
  cluster.id = gpu::launch_cluster_dimension;
  cluster.cluster = {c[0], c[1], c[2]};
  gpu_launch_config config;
  std::copy_n(shape.grid, 3, config.grid);
  config.block[0] = shape.threads;
  config.block[1] = config.block[2] = 1;
  config.shared_bytes = shape.shared_bytes;
  config.stream = stream;
  config.attributes = &cluster;
  config.attribute_count = 1;
  driver_.check(driver_.launch_with_attributes(&config, function, nullptr, buffer), "cuLaunchKernelEx");
}

bool gpu_backend::is_capturing(void* stream) {
  current here(*this);
  int status = 0;
  driver_.check(driver_.stream_is_capturing(stream, &status), "cuStreamIsCapturing");
  return status != 0;
}

gpu_backend::linked gpu_backend::link_ptx(std::string_view ptx, bool line_info) {
  if (driver_.link_create == nullptr)
    throw error("link_ptx: HIP has no PTX; AMD code objects are linked by the compiler");
  current here(*this);
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

gpu_backend::pointer_place gpu_backend::place_of(void const* pointer) {
  current here(*this);
  pointer_place place;
  int type = 0;
  // The driver answers "invalid value" for memory that it has never seen.
  if (driver_.pointer_attribute(&type, gpu::pointer_memory_type, pointer) != 0 || type == 0) return place;
  place.known = true;
  place.on_device = type == gpu::memory_type_device;
  driver_.pointer_attribute(&place.device, gpu::pointer_device_ordinal, pointer);
  driver_.pointer_attribute(&place.start, gpu::pointer_range_start, pointer);
  driver_.pointer_attribute(&place.bytes, gpu::pointer_range_bytes, pointer);
  return place;
}

} // namespace kiln::detail
