// The driver that is none. One lock around everything: tests are about what kiln asks for, not about speed.
#include "fake_cuda.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>

#include "src/runtime/gpu_driver.hpp"

using kiln::detail::gpu_launch_config;
using kiln::detail::gpu_pool_properties;

namespace {

constexpr int ok = 0, invalid_value = 1, out_of_memory = 2, invalid_context = 201, invalid_image = 200, invalid_handle = 400,
              not_found = 500, capture_unsupported = 900, capture_implicit = 906;
constexpr int device_count = 2;

struct context {
  int device;
};
struct capture {
  std::vector<fake_cuda::launch> launches;
  bool broken = false;
};
struct stream {
  context* owner;
  std::unique_ptr<capture> recording;
};
struct event {
  context* owner;
};
struct module_image {
  context* owner;
  std::string text;
  std::map<std::string, std::vector<std::uint32_t>> globals;
  std::set<std::string> entries;
};
struct function {
  module_image* module;
  std::string name;
  int max_dynamic_shared = 48 * 1024;
};
struct allocation {
  std::size_t bytes;
  int device; // -1: pinned host memory
};
struct linker {
  std::string image;
  char* info = nullptr;
  char* errors = nullptr;
  std::size_t info_bytes = 0, error_bytes = 0;
};

struct state {
  std::recursive_mutex guard;
  context primary[device_count] = {{0}, {1}};
  std::set<void*> streams, events, functions, modules;
  std::map<std::uintptr_t, allocation> memory;
  std::map<std::string, int> calls, fail;
  std::function<void(fake_cuda::launch const&)> kernel;
  std::vector<fake_cuda::launch> launches;
  fake_cuda::answers answer;
  int captures = 0; // running ones
  int errors = 0;
};
state& s() {
  static auto* made = new state;
  return *made;
}
thread_local std::vector<context*> stack;
thread_local int capture_mode = 0; // global

// Every entry point: counted, and failed where the test wants that.
struct entered {
  std::lock_guard<std::recursive_mutex> lock{s().guard};
  int code = ok;
  explicit entered(char const* name) {
    ++s().calls[name];
    if (auto at = s().fail.find(name); at != s().fail.end()) {
      code = at->second;
      s().fail.erase(at);
    }
  }
};
int answered(int code) {
  if (code != ok) ++s().errors;
  return code;
}

context* here() { return stack.empty() ? nullptr : stack.back(); }
// Null streams belong to every context.
bool good(void* handle) {
  return here() && (!handle || (s().streams.count(handle) && static_cast<stream*>(handle)->owner == here()));
}
capture* recording(void* handle) { return handle ? static_cast<stream*>(handle)->recording.get() : nullptr; }

// What a capture in this thread's mode forbids ends the capture. Relaxed allows it.
bool forbidden() {
  if (s().captures == 0 || capture_mode == 2) return false;
  for (void* x : s().streams)
    if (auto* c = recording(x)) c->broken = true;
  return true;
}
// Waiting for a stream that is recorded, or for the default one beside it, ends the capture in every mode.
bool waits_for_capture(void* handle) {
  if (capture* c = recording(handle)) return c->broken = true;
  return false;
}

allocation const* find(void const* p, std::uintptr_t* start = nullptr) {
  auto at = s().memory.upper_bound(reinterpret_cast<std::uintptr_t>(p));
  if (at == s().memory.begin()) return nullptr;
  --at;
  if (reinterpret_cast<std::uintptr_t>(p) >= at->first + at->second.bytes) return nullptr;
  if (start) *start = at->first;
  return &at->second;
}

int allocate(void** memory, std::size_t bytes, int device) {
  if (bytes > std::size_t{1} << 34) return out_of_memory;
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*memory, 0xa5, bytes);
  s().memory[reinterpret_cast<std::uintptr_t>(*memory)] = {bytes, device};
  return ok;
}
int release(void* memory) {
  auto at = s().memory.find(reinterpret_cast<std::uintptr_t>(memory));
  if (at == s().memory.end()) return invalid_value;
  s().memory.erase(at);
  std::free(memory);
  return ok;
}

int start(void* f, unsigned const* grid, unsigned threads, unsigned shared, unsigned const* cluster, void* where, void** extra) {
  auto* fn = static_cast<function*>(f);
  if (!s().functions.count(f) || fn->module->owner != here() || !good(where)) return invalid_handle;
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || threads == 0 || static_cast<int>(threads) > s().answer.max_threads ||
      static_cast<int>(shared) > fn->max_dynamic_shared)
    return invalid_value;
  fake_cuda::launch l{fn->name, {grid[0], grid[1], grid[2]}, threads, shared, {cluster[0], cluster[1], cluster[2]}, {}, where, here()->device, {}};
  if (extra) {
    if (extra[0] != reinterpret_cast<void*>(1) || extra[2] != reinterpret_cast<void*>(2) || extra[4]) return invalid_value;
    l.arguments.resize(*static_cast<std::size_t*>(extra[3]) / 8);
    std::memcpy(l.arguments.data(), extra[1], l.arguments.size() * 8);
  }
  l.global = [m = fn->module](std::string const& name) -> void* {
    auto at = m->globals.find(name);
    return at == m->globals.end() ? nullptr : at->second.data();
  };
  if (capture* c = recording(where)) {
    c->launches.push_back(std::move(l));
    return ok;
  }
  s().launches.push_back(l);
  if (s().kernel) s().kernel(l);
  return ok;
}

// Names of entries, and global variables with their bytes, of PTX as LLVM writes it.
void read_ptx(module_image& m) {
  std::string_view text = m.text;
  auto word_after = [&](std::size_t at) {
    while (at < text.size() && text[at] == ' ') ++at;
    auto end = text.find_first_of(" ([;\n", at);
    return std::string(text.substr(at, end - at));
  };
  for (auto at = text.find(".entry "); at != text.npos; at = text.find(".entry ", at + 1)) m.entries.insert(word_after(at + 7));
  for (auto at = text.find(".global .align"); at != text.npos; at = text.find(".global .align", at + 1)) {
    auto line = text.substr(at, text.find('\n', at) - at);
    auto open = line.find('[');
    if (open == line.npos || line.find("ld.") != line.npos) continue;
    auto from = line.rfind(' ', open);
    m.globals[std::string(line.substr(from + 1, open - from - 1))].resize(64);
  }
}

template <class T> int set(void* target, T value, std::size_t count, void* where) {
  if (!good(where)) return invalid_handle;
  if (recording(where)) return ok;
  for (std::size_t i = 0; i < count; ++i) std::memcpy(static_cast<char*>(target) + i * sizeof(T), &value, sizeof(T));
  return ok;
}
int copy(void* target, void const* source, std::size_t bytes, void* where) {
  if (!good(where)) return invalid_handle;
  if (!recording(where)) std::memmove(target, source, bytes);
  return ok;
}

} // namespace

#define ENTRY(name, arguments)                                                                                         \
  static int impl_##name arguments;                                                                                    \
  extern "C" __attribute__((visibility("default"))) int name arguments
#define BODY(name, ...)                                                                                                \
  {                                                                                                                    \
    entered e(#name);                                                                                                  \
    return answered(e.code != ok ? e.code : impl_##name(__VA_ARGS__));                                                 \
  }

ENTRY(cuInit, (unsigned f)) BODY(cuInit, f) int impl_cuInit(unsigned) { return ok; }
ENTRY(cuDriverGetVersion, (int* v)) BODY(cuDriverGetVersion, v) int impl_cuDriverGetVersion(int* v) { return *v = 13000, ok; }
ENTRY(cuGetErrorName, (int c, char const** t)) BODY(cuGetErrorName, c, t) int impl_cuGetErrorName(int c, char const** t) {
  *t = c == out_of_memory ? "CUDA_ERROR_OUT_OF_MEMORY" : c == invalid_value ? "CUDA_ERROR_INVALID_VALUE" : c == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_FAKE";
  return ok;
}
ENTRY(cuGetErrorString, (int c, char const** t)) BODY(cuGetErrorString, c, t) int impl_cuGetErrorString(int, char const** t) {
  return *t = "the fake driver says no", ok;
}
ENTRY(cuDeviceGetCount, (int* n)) BODY(cuDeviceGetCount, n) int impl_cuDeviceGetCount(int* n) { return *n = device_count, ok; }
ENTRY(cuDeviceGet, (int* d, int i)) BODY(cuDeviceGet, d, i) int impl_cuDeviceGet(int* d, int i) { return *d = i, ok; }
ENTRY(cuDeviceGetName, (char* n, int z, int d)) BODY(cuDeviceGetName, n, z, d) int impl_cuDeviceGetName(char* n, int z, int d) {
  std::string name = "Fake " + std::to_string(d);
  return std::memcpy(n, name.c_str(), std::min<std::size_t>(name.size() + 1, static_cast<std::size_t>(z))), ok;
}
ENTRY(cuDeviceTotalMem_v2, (std::size_t* b, int d)) BODY(cuDeviceTotalMem_v2, b, d) int impl_cuDeviceTotalMem_v2(std::size_t* b, int) {
  return *b = std::size_t{1} << 34, ok;
}
ENTRY(cuDeviceGetAttribute, (int* v, int a, int d)) BODY(cuDeviceGetAttribute, v, a, d) int impl_cuDeviceGetAttribute(int* v, int a, int d) {
  *v = a == 75 ? (d == 0 ? 9 : 8) : a == 76 ? 0 : a == 16 ? 4 : a == 38 ? 1 << 20 : a == 39 ? 2048 : a == 97 ? s().answer.shared_bytes_per_cta : a == 115 ? 1 : 0;
  return ok;
}
ENTRY(cuDevicePrimaryCtxRetain, (void** c, int d)) BODY(cuDevicePrimaryCtxRetain, c, d) int impl_cuDevicePrimaryCtxRetain(void** c, int d) {
  if (forbidden()) return capture_unsupported;
  return *c = &s().primary[d], ok;
}
ENTRY(cuCtxGetCurrent, (void** c)) BODY(cuCtxGetCurrent, c) int impl_cuCtxGetCurrent(void** c) { return *c = here(), ok; }
ENTRY(cuCtxPushCurrent_v2, (void* c)) BODY(cuCtxPushCurrent_v2, c) int impl_cuCtxPushCurrent_v2(void* c) {
  return stack.push_back(static_cast<context*>(c)), ok;
}
ENTRY(cuCtxPopCurrent_v2, (void** c)) BODY(cuCtxPopCurrent_v2, c) int impl_cuCtxPopCurrent_v2(void** c) {
  if (stack.empty()) return invalid_context;
  return *c = stack.back(), stack.pop_back(), ok;
}
ENTRY(cuCtxGetDevice, (int* d)) BODY(cuCtxGetDevice, d) int impl_cuCtxGetDevice(int* d) { return here() ? (*d = here()->device, ok) : invalid_context; }
ENTRY(cuStreamGetCtx, (void* x, void** c)) BODY(cuStreamGetCtx, x, c) int impl_cuStreamGetCtx(void* x, void** c) {
  if (x && !s().streams.count(x)) return invalid_handle;
  return *c = x ? static_cast<stream*>(x)->owner : here(), *c ? ok : invalid_context;
}
ENTRY(cuMemGetInfo_v2, (std::size_t* f, std::size_t* t)) BODY(cuMemGetInfo_v2, f, t) int impl_cuMemGetInfo_v2(std::size_t* f, std::size_t* t) {
  return *t = std::size_t{1} << 34, *f = *t - fake_cuda::live_bytes(), here() ? ok : invalid_context;
}
ENTRY(cuMemPoolCreate, (void** p, gpu_pool_properties const* q)) BODY(cuMemPoolCreate, p, q) int impl_cuMemPoolCreate(void** p, gpu_pool_properties const* q) {
  if (forbidden()) return capture_unsupported;
  return *p = &s().primary[q->location.id], ok;
}
ENTRY(cuMemPoolSetAttribute, (void* p, int a, void* v)) BODY(cuMemPoolSetAttribute, p, a, v) int impl_cuMemPoolSetAttribute(void*, int, void*) { return ok; }
ENTRY(cuMemAllocFromPoolAsync, (void** m, std::size_t b, void* p, void* x)) BODY(cuMemAllocFromPoolAsync, m, b, p, x) int impl_cuMemAllocFromPoolAsync(void** m, std::size_t b, void* p, void* x) {
  return good(x) ? allocate(m, b, static_cast<context*>(p)->device) : invalid_handle;
}
ENTRY(cuMemFreeAsync, (void* m, void* x)) BODY(cuMemFreeAsync, m, x) int impl_cuMemFreeAsync(void* m, void* x) {
  if (!good(x)) return invalid_handle;
  if (capture* c = recording(x)) return c->broken = true, invalid_value;
  return release(m);
}
ENTRY(cuMemAlloc_v2, (void** m, std::size_t b)) BODY(cuMemAlloc_v2, m, b) int impl_cuMemAlloc_v2(void** m, std::size_t b) {
  return forbidden() ? capture_unsupported : here() ? allocate(m, b, here()->device) : invalid_context;
}
ENTRY(cuMemFree_v2, (void* m)) BODY(cuMemFree_v2, m) int impl_cuMemFree_v2(void* m) { return forbidden() ? capture_unsupported : release(m); }
ENTRY(cuMemHostAlloc, (void** m, std::size_t b, unsigned f)) BODY(cuMemHostAlloc, m, b, f) int impl_cuMemHostAlloc(void** m, std::size_t b, unsigned) {
  return forbidden() ? capture_unsupported : here() ? allocate(m, b, -1) : invalid_context;
}
ENTRY(cuMemFreeHost, (void* m)) BODY(cuMemFreeHost, m) int impl_cuMemFreeHost(void* m) { return forbidden() ? capture_unsupported : release(m); }
ENTRY(cuPointerGetAttributes, (unsigned n, int* a, void** v, void const* p)) BODY(cuPointerGetAttributes, n, a, v, p) int impl_cuPointerGetAttributes(unsigned n, int* names, void** values, void const* p) {
  if (!here()) return invalid_context;
  std::uintptr_t start = 0;
  allocation const* at = find(p, &start);
  for (unsigned i = 0; i < n; ++i) switch (names[i]) {
    case 2: *static_cast<unsigned*>(values[i]) = !at ? 0 : at->device < 0 ? 1 : 2; break;
    case 9: *static_cast<int*>(values[i]) = at ? at->device : -2; break;
    case 11: *static_cast<void**>(values[i]) = at ? reinterpret_cast<void*>(start) : nullptr; break;
    case 12: *static_cast<std::size_t*>(values[i]) = at ? at->bytes : 0; break;
    case 3: *static_cast<void const**>(values[i]) = at && (at->device < 0 || at->device == here()->device) ? p : nullptr; break;
    default: return invalid_value;
    }
  return ok;
}
ENTRY(cuMemcpyHtoDAsync_v2, (void* t, void const* f, std::size_t b, void* x)) BODY(cuMemcpyHtoDAsync_v2, t, f, b, x) int impl_cuMemcpyHtoDAsync_v2(void* t, void const* f, std::size_t b, void* x) { return copy(t, f, b, x); }
ENTRY(cuMemcpyDtoHAsync_v2, (void* t, void const* f, std::size_t b, void* x)) BODY(cuMemcpyDtoHAsync_v2, t, f, b, x) int impl_cuMemcpyDtoHAsync_v2(void* t, void const* f, std::size_t b, void* x) { return copy(t, f, b, x); }
ENTRY(cuMemcpyDtoDAsync_v2, (void* t, void const* f, std::size_t b, void* x)) BODY(cuMemcpyDtoDAsync_v2, t, f, b, x) int impl_cuMemcpyDtoDAsync_v2(void* t, void const* f, std::size_t b, void* x) { return copy(t, f, b, x); }
ENTRY(cuMemsetD8Async, (void* t, unsigned char v, std::size_t n, void* x)) BODY(cuMemsetD8Async, t, v, n, x) int impl_cuMemsetD8Async(void* t, unsigned char v, std::size_t n, void* x) { return set(t, v, n, x); }
ENTRY(cuMemsetD16Async, (void* t, unsigned short v, std::size_t n, void* x)) BODY(cuMemsetD16Async, t, v, n, x) int impl_cuMemsetD16Async(void* t, unsigned short v, std::size_t n, void* x) { return set(t, v, n, x); }
ENTRY(cuMemsetD32Async, (void* t, unsigned v, std::size_t n, void* x)) BODY(cuMemsetD32Async, t, v, n, x) int impl_cuMemsetD32Async(void* t, unsigned v, std::size_t n, void* x) { return set(t, v, n, x); }
ENTRY(cuStreamCreate, (void** x, unsigned f)) BODY(cuStreamCreate, x, f) int impl_cuStreamCreate(void** x, unsigned) {
  if (!here()) return invalid_context;
  return *x = new stream{here(), nullptr}, s().streams.insert(*x), ok;
}
ENTRY(cuStreamDestroy_v2, (void* x)) BODY(cuStreamDestroy_v2, x) int impl_cuStreamDestroy_v2(void* x) {
  if (!s().streams.erase(x)) return invalid_handle;
  return delete static_cast<stream*>(x), ok;
}
ENTRY(cuStreamSynchronize, (void* x)) BODY(cuStreamSynchronize, x) int impl_cuStreamSynchronize(void* x) {
  return !good(x) ? invalid_handle : waits_for_capture(x) ? capture_unsupported : ok;
}
ENTRY(cuStreamWaitEvent, (void* x, void* v, unsigned f)) BODY(cuStreamWaitEvent, x, v, f) int impl_cuStreamWaitEvent(void* x, void* v, unsigned) { return good(x) && s().events.count(v) ? ok : invalid_handle; }
ENTRY(cuThreadExchangeStreamCaptureMode, (int* m)) BODY(cuThreadExchangeStreamCaptureMode, m) int impl_cuThreadExchangeStreamCaptureMode(int* m) { return std::swap(*m, capture_mode), ok; }
ENTRY(cuStreamIsCapturing, (void* x, int* status)) BODY(cuStreamIsCapturing, x, status) int impl_cuStreamIsCapturing(void* x, int* status) {
  if (!good(x)) return invalid_handle;
  if (!x && s().captures > 0) return capture_implicit;
  capture const* c = recording(x);
  return *status = !c ? 0 : c->broken ? 2 : 1, ok;
}
ENTRY(cuEventCreate, (void** v, unsigned f)) BODY(cuEventCreate, v, f) int impl_cuEventCreate(void** v, unsigned) {
  if (!here()) return invalid_context;
  return *v = new event{here()}, s().events.insert(*v), ok;
}
ENTRY(cuEventDestroy_v2, (void* v)) BODY(cuEventDestroy_v2, v) int impl_cuEventDestroy_v2(void* v) {
  if (!s().events.erase(v)) return invalid_handle;
  return delete static_cast<event*>(v), ok;
}
ENTRY(cuEventRecord, (void* v, void* x)) BODY(cuEventRecord, v, x) int impl_cuEventRecord(void* v, void* x) { return good(x) && s().events.count(v) && static_cast<event*>(v)->owner == here() ? ok : invalid_handle; }
ENTRY(cuEventQuery, (void* v)) BODY(cuEventQuery, v) int impl_cuEventQuery(void*) { return ok; }
ENTRY(cuEventSynchronize, (void* v)) BODY(cuEventSynchronize, v) int impl_cuEventSynchronize(void*) { return ok; }
ENTRY(cuEventElapsedTime, (float* m, void* a, void* b)) BODY(cuEventElapsedTime, m, a, b) int impl_cuEventElapsedTime(float* m, void*, void*) { return *m = 1, ok; }
ENTRY(cuModuleLoadDataEx, (void** m, void const* i, unsigned n, int* o, void** v)) BODY(cuModuleLoadDataEx, m, i, n, o, v) int impl_cuModuleLoadDataEx(void** m, void const* image, unsigned, int*, void**) {
  if (forbidden()) return capture_unsupported;
  if (!here()) return invalid_context;
  auto* made = new module_image{here(), static_cast<char const*>(image), {}, {}};
  read_ptx(*made);
  if (made->entries.empty()) return delete made, invalid_image;
  return *m = made, s().modules.insert(made), ok;
}
// What programs call that use the driver themselves.
ENTRY(cuModuleLoadData, (void** m, void const* i)) BODY(cuModuleLoadData, m, i) int impl_cuModuleLoadData(void** m, void const* i) { return impl_cuModuleLoadDataEx(m, i, 0, nullptr, nullptr); }
ENTRY(cuMemcpyDtoH_v2, (void* t, void const* f, std::size_t b)) BODY(cuMemcpyDtoH_v2, t, f, b) int impl_cuMemcpyDtoH_v2(void* t, void const* f, std::size_t b) { return copy(t, f, b, nullptr); }
ENTRY(cuMemsetD32_v2, (void* t, unsigned v, std::size_t n)) BODY(cuMemsetD32_v2, t, v, n) int impl_cuMemsetD32_v2(void* t, unsigned v, std::size_t n) { return set(t, v, n, nullptr); }
ENTRY(cuModuleUnload, (void* m)) BODY(cuModuleUnload, m) int impl_cuModuleUnload(void* m) { return forbidden() ? capture_unsupported : s().modules.erase(m) ? ok : invalid_handle; }
ENTRY(cuModuleGetFunction, (void** f, void* m, char const* n)) BODY(cuModuleGetFunction, f, m, n) int impl_cuModuleGetFunction(void** f, void* m, char const* n) {
  auto* mod = static_cast<module_image*>(m);
  if (!mod->entries.count(n)) return not_found;
  return *f = new function{mod, n}, s().functions.insert(*f), ok;
}
ENTRY(cuModuleGetGlobal_v2, (void** a, std::size_t* b, void* m, char const* n)) BODY(cuModuleGetGlobal_v2, a, b, m, n) int impl_cuModuleGetGlobal_v2(void** a, std::size_t* b, void* m, char const* n) {
  auto& all = static_cast<module_image*>(m)->globals;
  auto at = all.find(n);
  if (at == all.end()) return not_found;
  return *a = at->second.data(), *b = 16, ok;
}
ENTRY(cuFuncGetAttribute, (int* v, int a, void* f)) BODY(cuFuncGetAttribute, v, a, f) int impl_cuFuncGetAttribute(int* v, int a, void*) {
  auto const& x = s().answer;
  return *v = a == 0 ? x.max_threads : a == 1 ? x.static_shared_bytes : a == 3 ? x.local_bytes : a == 4 ? x.registers : 0, ok;
}
ENTRY(cuFuncSetAttribute, (void* f, int a, int v)) BODY(cuFuncSetAttribute, f, a, v) int impl_cuFuncSetAttribute(void* f, int a, int v) {
  if (a == 8) {
    if (v > s().answer.shared_bytes_per_cta) return invalid_value;
    static_cast<function*>(f)->max_dynamic_shared = v;
  }
  return ok;
}
ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int* n, void* f, int t, std::size_t b)) BODY(cuOccupancyMaxActiveBlocksPerMultiprocessor, n, f, t, b) int impl_cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, void*, int, std::size_t) { return *n = 3, ok; }
ENTRY(cuOccupancyMaxActiveClusters, (int* n, void* f, gpu_launch_config const* c)) BODY(cuOccupancyMaxActiveClusters, n, f, c) int impl_cuOccupancyMaxActiveClusters(int* n, void*, gpu_launch_config const* c) {
  if (c->attribute_count != 1 || c->grid[0] != c->attributes[0].cluster.x || c->block[0] == 0) return invalid_value;
  return *n = c->shared_bytes > 200 * 1024 ? 0 : 5, ok;
}
ENTRY(cuLaunchKernel, (void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned sh, void* x, void** p, void** q)) BODY(cuLaunchKernel, f, gx, gy, gz, bx, by, bz, sh, x, p, q) int impl_cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned, unsigned, unsigned sh, void* x, void**, void** q) {
  unsigned grid[] = {gx, gy, gz}, cluster[] = {1, 1, 1};
  return start(f, grid, bx, sh, cluster, x, q);
}
ENTRY(cuLaunchKernelEx, (gpu_launch_config const* c, void* f, void** p, void** q)) BODY(cuLaunchKernelEx, c, f, p, q) int impl_cuLaunchKernelEx(gpu_launch_config const* c, void* f, void**, void** q) {
  unsigned cluster[] = {c->attributes[0].cluster.x, c->attributes[0].cluster.y, c->attributes[0].cluster.z};
  for (int i = 0; i < 3; ++i)
    if (c->grid[i] % cluster[i]) return invalid_value;
  return start(f, c->grid, c->block[0], c->shared_bytes, cluster, c->stream, q);
}
ENTRY(cuLinkCreate_v2, (unsigned n, int* o, void** v, void** l)) BODY(cuLinkCreate_v2, n, o, v, l) int impl_cuLinkCreate_v2(unsigned n, int* o, void** v, void** l) {
  if (!here()) return invalid_context;
  auto* made = new linker;
  for (unsigned i = 0; i < n; ++i) {
    if (o[i] == 3) made->info = static_cast<char*>(v[i]);
    if (o[i] == 4) made->info_bytes = reinterpret_cast<std::size_t>(v[i]);
  }
  return *l = made, ok;
}
ENTRY(cuLinkAddData_v2, (void* l, int t, void const* d, std::size_t b, char const* n, unsigned c, int* o, void** v)) BODY(cuLinkAddData_v2, l, t, d, b, n, c, o, v) int impl_cuLinkAddData_v2(void* l, int, void const* d, std::size_t b, char const*, unsigned, int*, void**) {
  return static_cast<linker*>(l)->image.assign(static_cast<char const*>(d), b), ok;
}
ENTRY(cuLinkComplete, (void* l, void** i, std::size_t* b)) BODY(cuLinkComplete, l, i, b) int impl_cuLinkComplete(void* l, void** i, std::size_t* b) {
  auto* x = static_cast<linker*>(l);
  if (x->info) std::strncpy(x->info, s().answer.assembler_log.c_str(), x->info_bytes - 1);
  return *i = x->image.data(), *b = x->image.size(), ok;
}
ENTRY(cuLinkDestroy, (void* l)) BODY(cuLinkDestroy, l) int impl_cuLinkDestroy(void* l) { return delete static_cast<linker*>(l), ok; }

namespace fake_cuda {

#define KILN_FAKE __attribute__((visibility("default")))
using lock = std::lock_guard<std::recursive_mutex>;

KILN_FAKE answers& answer() { return s().answer; }
KILN_FAKE void on_launch(std::function<void(launch const&)> kernel) { s().kernel = std::move(kernel); }
KILN_FAKE std::vector<launch> const& launches() { return s().launches; }
KILN_FAKE void* make_context(int device) { return new context{device}; }
KILN_FAKE void* make_stream(void* c, int device) {
  lock l(s().guard);
  void* x = new stream{c ? static_cast<context*>(c) : &s().primary[device], nullptr};
  return s().streams.insert(x), x;
}
KILN_FAKE void* current_context() { return here(); }
KILN_FAKE void begin_capture(void* x) {
  lock l(s().guard);
  static_cast<stream*>(x)->recording = std::make_unique<capture>();
  ++s().captures;
}
KILN_FAKE void* end_capture(void* x) {
  lock l(s().guard);
  --s().captures;
  auto done = std::move(static_cast<stream*>(x)->recording);
  return done->broken ? nullptr : done.release();
}
KILN_FAKE void replay(void* graph, void*) {
  lock l(s().guard);
  for (launch const& x : static_cast<capture*>(graph)->launches) {
    s().launches.push_back(x);
    if (s().kernel) s().kernel(x);
  }
}
KILN_FAKE std::size_t live_bytes() {
  lock l(s().guard);
  std::size_t n = 0;
  for (auto const& [at, a] : s().memory) n += a.bytes;
  return n;
}
KILN_FAKE std::size_t live_allocations() { return s().memory.size(); }
KILN_FAKE int calls(std::string const& name) {
  lock l(s().guard);
  return s().calls[name];
}
KILN_FAKE int errors() { return s().errors; }
KILN_FAKE void fail_next(std::string const& name, int code) { s().fail[name] = code; }

} // namespace fake_cuda
