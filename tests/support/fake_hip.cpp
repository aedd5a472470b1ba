// The HIP runtime that is none. Handles are allocated and remembered, so that a wrong one is an error; what no test asks for yet
// (captures) is answered and no more.
#include "fake_hip.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "src/runtime/gpu_driver.hpp"

using kiln::detail::gpu_pool_properties;

namespace {

constexpr int ok = 0, invalid_value = 1, out_of_memory = 2, invalid_device = 101, invalid_handle = 400;
constexpr int device_count = 2, in_host = -1, managed = -2;

struct allocation {
  std::size_t bytes;
  int device; // in_host: pinned
};
struct function {
  std::string name;
  int device;
};
struct state {
  std::recursive_mutex guard;
  std::map<std::uintptr_t, allocation> memory;
  std::map<void*, int> handles; // streams, events, modules: their device
  std::map<std::string, int> calls;
  std::vector<fake_hip::launch> launches;
  bool peers = false;
  int errors = 0;
};
state& s() {
  static auto* made = new state;
  return *made;
}
thread_local int device = 0, capture_mode = 0;

int answered(int code) {
  if (code != ok) ++s().errors;
  return code;
}
int make(void** handle) { return *handle = new int(0), s().handles[*handle] = device, ok; }
int drop(void* handle) { return s().handles.erase(handle) ? (delete static_cast<int*>(handle), ok) : invalid_handle; }
/// Null streams are every device's own.
bool good(void* handle) {
  auto const at = s().handles.find(handle);
  return !handle || (at != s().handles.end() && at->second == device);
}
int allocate(void** memory, std::size_t bytes, int where) {
  if (bytes > std::size_t{1} << 34) return out_of_memory;
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*memory, 0xa5, bytes);
  s().memory[reinterpret_cast<std::uintptr_t>(*memory)] = {bytes, where};
  return ok;
}
int release(void* memory) {
  if (!s().memory.erase(reinterpret_cast<std::uintptr_t>(memory))) return invalid_value;
  return std::free(memory), ok;
}
int copy(void* to, void const* from, std::size_t bytes, void* stream) { return good(stream) ? (std::memmove(to, from, bytes), ok) : invalid_handle; }
template <class T> int set(void* to, T value, std::size_t count, void* stream) {
  if (!good(stream)) return invalid_handle;
  for (std::size_t i = 0; i < count; ++i) std::memcpy(static_cast<char*>(to) + i * sizeof(T), &value, sizeof(T));
  return ok;
}
int attributes(unsigned count, int const* names, void* const* values, void const* pointer) {
  auto at = s().memory.upper_bound(reinterpret_cast<std::uintptr_t>(pointer));
  bool known = at != s().memory.begin();
  if (known) known = reinterpret_cast<std::uintptr_t>(pointer) < (--at)->first + at->second.bytes;
  int const where = known ? at->second.device : 0;
  for (unsigned i = 0; i < count; ++i) switch (names[i]) {
    case 2: *static_cast<unsigned*>(values[i]) = !known ? 0 : where == in_host ? 1 : where == managed ? 3 : 2; break;
    case 9: *static_cast<int*>(values[i]) = known ? std::max(where, 0) : -2; break;
    case 11: *static_cast<void**>(values[i]) = known ? reinterpret_cast<void*>(at->first) : nullptr; break;
    case 12: *static_cast<std::size_t*>(values[i]) = known ? at->second.bytes : 0; break;
    default: return invalid_value;
    }
  return ok;
}
int start(void* f, unsigned const* grid, unsigned threads, void* stream, void** extra) {
  auto const* fun = static_cast<function*>(f);
  if (fun->device != device || !good(stream)) return invalid_handle;
  fake_hip::launch l{fun->name, {grid[0], grid[1], grid[2]}, threads, {}, device};
  if (extra) {
    if (extra[0] != reinterpret_cast<void*>(1) || extra[2] != reinterpret_cast<void*>(2) || extra[4] != reinterpret_cast<void*>(3)) return invalid_value;
    std::size_t const bytes = *static_cast<std::size_t*>(extra[3]);
    l.arguments.resize(bytes / 8);
    std::memcpy(l.arguments.data(), extra[1], bytes / 8 * 8);
  }
  return s().launches.push_back(std::move(l)), ok;
}

} // namespace

// Every entry point: counted, under one lock.
#define HIP(name, arguments, ...)                                                                                      \
  extern "C" __attribute__((visibility("default"))) int name arguments {                                               \
    std::lock_guard<std::recursive_mutex> lock(s().guard);                                                             \
    ++s().calls[#name];                                                                                                \
    return answered([&]() -> int { return __VA_ARGS__; }());                                                           \
  }

HIP(hipInit, (unsigned), ok)
HIP(hipDriverGetVersion, (int* v), (*v = 60443483, ok))
HIP(hipDrvGetErrorName, (int, char const** t), (*t = "hipErrorFake", ok))
HIP(hipDrvGetErrorString, (int, char const** t), (*t = "the fake runtime says no", ok))
HIP(hipGetDeviceCount, (int* n), (*n = device_count, ok))
HIP(hipDeviceGet, (int* d, int i), i < device_count ? (*d = i, ok) : invalid_device)
HIP(hipDeviceGetName, (char* t, int n, int d), (std::strncpy(t, d ? "Fake MI 1" : "Fake MI 0", static_cast<std::size_t>(n)), ok))
HIP(hipDeviceTotalMem, (std::size_t* b, int), (*b = std::size_t{1} << 34, ok))
HIP(hipDeviceGetAttribute, (int* v, int a, int), (*v = a == 63 ? 304 : a == 19 ? 4 << 20 : a == 88, ok))
HIP(hipGetDevice, (int* d), (*d = device, ok))
HIP(hipSetDevice, (int d), d >= 0 && d < device_count ? (device = d, ok) : invalid_device)
HIP(hipStreamGetDevice, (void* x, int* d), s().handles.count(x) ? (*d = s().handles[x], ok) : invalid_handle)
HIP(hipDeviceCanAccessPeer, (int* can, int, int), (*can = s().peers, ok))
HIP(hipGetDevicePropertiesR0600, (void* p, int), (std::memset(p, 0, 1472), std::strcpy(static_cast<char*>(p) + 1160, "gfx942:sramecc+:xnack-"), ok))
HIP(hipMemGetInfo, (std::size_t* f, std::size_t* t), (*f = *t = std::size_t{1} << 34, ok))
HIP(hipMemPoolCreate, (void** p, gpu_pool_properties const* q), (*p = new int(q->location.id), ok))
HIP(hipMemPoolSetAttribute, (void*, int, void*), ok)
HIP(hipMallocFromPoolAsync, (void** m, std::size_t b, void* p, void* x), good(x) ? allocate(m, b, *static_cast<int*>(p)) : invalid_handle)
HIP(hipFreeAsync, (void* m, void* x), good(x) ? release(m) : invalid_handle)
HIP(hipMalloc, (void** m, std::size_t b), allocate(m, b, device))
HIP(hipFree, (void* m), release(m))
HIP(hipDrvPointerGetAttributes, (unsigned n, int* a, void** v, void const* p), attributes(n, a, v, p))
HIP(hipHostMalloc, (void** m, std::size_t b, unsigned), allocate(m, b, in_host))
HIP(hipHostFree, (void* m), release(m))
HIP(hipMemcpyHtoDAsync, (void* t, void const* f, std::size_t b, void* x), copy(t, f, b, x))
HIP(hipMemcpyDtoHAsync, (void* t, void const* f, std::size_t b, void* x), copy(t, f, b, x))
HIP(hipMemcpyDtoDAsync, (void* t, void const* f, std::size_t b, void* x), copy(t, f, b, x))
HIP(hipMemsetD8Async, (void* t, unsigned char v, std::size_t n, void* x), set(t, v, n, x))
HIP(hipMemsetD16Async, (void* t, unsigned short v, std::size_t n, void* x), set(t, v, n, x))
HIP(hipMemsetD32Async, (void* t, unsigned v, std::size_t n, void* x), set(t, v, n, x))
HIP(hipStreamCreateWithFlags, (void** x, unsigned), make(x))
HIP(hipStreamDestroy, (void* x), drop(x))
HIP(hipStreamSynchronize, (void* x), good(x) ? ok : invalid_handle)
HIP(hipStreamWaitEvent, (void* x, void*, unsigned), good(x) ? ok : invalid_handle)
HIP(hipThreadExchangeStreamCaptureMode, (int* m), (std::swap(*m, capture_mode), ok))
HIP(hipStreamIsCapturing, (void* x, int* status), good(x) ? (*status = 0, ok) : invalid_handle)
HIP(hipEventCreateWithFlags, (void** v, unsigned), make(v))
HIP(hipEventDestroy, (void* v), drop(v))
HIP(hipEventRecord, (void* v, void* x), good(v) && good(x) ? ok : invalid_handle)
HIP(hipEventQuery, (void*), ok)
HIP(hipEventSynchronize, (void*), ok)
HIP(hipEventElapsedTime, (float* m, void*, void*), (*m = 1, ok))
HIP(hipModuleLoadDataEx, (void** m, void const* image, unsigned, int*, void**), std::memcmp(image, "\177ELF", 4) ? invalid_value : make(m))
HIP(hipModuleUnload, (void* m), drop(m))
HIP(hipModuleGetFunction, (void** f, void* m, char const* n), good(m) ? (*f = new function{n, device}, ok) : invalid_handle)
HIP(hipModuleGetGlobal, (void**, std::size_t*, void*, char const*), invalid_value)
HIP(hipFuncGetAttribute, (int* v, int a, void*), (*v = a == 0 ? 1024 : a == 4 ? 64 : 0, ok))
HIP(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor, (int* n, void*, int, std::size_t), (*n = 8, ok))
HIP(hipModuleLaunchKernel, (void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned, unsigned, unsigned, void* x, void**, void** extra),
    [&] {
      unsigned const grid[] = {gx, gy, gz};
      return start(f, grid, bx, x, extra);
    }())

namespace fake_hip {

#define KILN_FAKE __attribute__((visibility("default")))
using lock = std::lock_guard<std::recursive_mutex>;

KILN_FAKE std::vector<launch> const& launches() { return s().launches; }
KILN_FAKE void set_peers(bool reachable) { s().peers = reachable; }
KILN_FAKE void* managed_memory(std::size_t bytes) {
  lock l(s().guard);
  void* memory = nullptr;
  allocate(&memory, bytes, managed);
  return memory;
}
KILN_FAKE int current_device() { return device; }
KILN_FAKE int calls(std::string const& name) {
  lock l(s().guard);
  return s().calls[name];
}
KILN_FAKE int errors() { return s().errors; }

} // namespace fake_hip
