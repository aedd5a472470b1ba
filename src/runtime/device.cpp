// Finds the devices of this machine, and the backend behind a handle.
#include "kiln/runtime/device.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "kiln/runtime/error.hpp"
#include "src/runtime/gpu_backend.hpp"

namespace kiln {

namespace detail {

namespace {

char const* kind_name(device_kind kind) {
  return kind == device_kind::host ? "host" : kind == device_kind::cuda ? "cuda" : "hip";
}

std::string id_of(device_kind kind, int index) {
  return kind == device_kind::host ? "host" : std::string(kind_name(kind)) + ":" + std::to_string(index);
}

// The code to make for a GPU: its own architecture where kiln has it, else the newest that its driver can carry over
// from PTX. Null where there is none; `why` then says so.
target const* cuda_target(int major, int minor, std::string& why) {
  if (major == 9 && minor == 0) return &targets::sm_90a;
  if (major == 10 && minor == 0) return &targets::sm_100a;
  if (major >= 8) return &targets::sm_80;
  why = "compute capability " + std::to_string(major) + "." + std::to_string(minor) + "; kiln needs 8.0 or newer";
  return nullptr;
}

target const* hip_target(std::string_view arch, std::string& why) {
  for (target const& t : targets::all)
    if (t.is_amdgpu() && t.name() == arch) return &t;
  why = "architecture " + (arch.empty() ? std::string("unknown") : std::string(arch)) + "; kiln knows";
  for (target const& t : targets::all)
    if (t.is_amdgpu()) why.append(" ").append(t.name());
  return nullptr;
}

// The architecture ("gfx942") stands in the driver's property record, whose other fields come and go between versions:
// it is the one text in there that starts with "gfx" and a digit, behind the device's name.
std::string hip_architecture(gpu_driver const& driver, int device) {
  std::vector<char> record(8192, '\0'); // the driver writes about 1.5 kB
  if (driver.device_properties(record.data(), device) != 0) return "";
  std::string_view text(record.data(), record.size() - 1);
  for (auto at = text.find("gfx", 256); at != std::string_view::npos; at = text.find("gfx", at + 1))
    if (text[at + 3] >= '0' && text[at + 3] <= '9') {
      auto end = text.find_first_not_of("0123456789abcdef", at + 3);
      return std::string(text.substr(at, end - at));
    }
  return "";
}

int attribute_of(gpu_driver const& driver, int attribute, int device) {
  int value = 0;
  return driver.device_attribute(&value, attribute, device) == 0 ? value : 0;
}

gpu_entry open_device(gpu_driver const& driver, int ordinal) {
  bool cuda = driver.kind == device_kind::cuda;
  int device = 0;
  char name[256] = {};
  std::size_t bytes = 0;
  device_record record;
  record.kind = driver.kind;
  record.index = ordinal;
  std::string why;
  try {
    driver.check(driver.device_get(&device, ordinal), cuda ? "cuDeviceGet" : "hipDeviceGet");
    driver.check(driver.device_name(name, sizeof name - 1, device), cuda ? "cuDeviceGetName" : "hipDeviceGetName");
    driver.check(driver.device_memory(&bytes, device), cuda ? "cuDeviceTotalMem" : "hipDeviceTotalMem");
  } catch (error const& e) { return {nullptr, id_of(driver.kind, ordinal) + ": " + e.what()}; }
  record.name = name;
  record.memory_bytes = static_cast<i64>(bytes);
  driver.driver_version(&record.driver_version);
  record.multiprocessors = attribute_of(driver, cuda ? gpu::cuda_multiprocessors : gpu::hip_multiprocessors, device);
  record.last_level_cache_bytes = attribute_of(driver, cuda ? gpu::cuda_l2_bytes : gpu::hip_l2_bytes, device);
  if (cuda) {
    record.threads_per_multiprocessor = attribute_of(driver, gpu::cuda_max_threads_per_multiprocessor, device);
    record.shared_bytes_per_cta = attribute_of(driver, gpu::cuda_max_shared_per_cta, device);
  }
  target const* arch = cuda ? cuda_target(attribute_of(driver, gpu::cuda_major, device),
                                          attribute_of(driver, gpu::cuda_minor, device), why)
                            : hip_target(hip_architecture(driver, device), why);
  if (arch == nullptr) return {nullptr, id_of(driver.kind, ordinal) + ": " + record.name + " has " + why};
  record.arch = *arch;
  return {new gpu_backend(driver, std::move(record), device, nullptr),
          ""}; // never destroyed, as the driver is not closed
}

std::vector<gpu_entry> open_devices(device_kind kind) {
  auto const& found = find_gpu_driver(kind);
  if (found.driver == nullptr) return {};
  int count = 0;
  if (int code = found.driver->device_count(&count); code != 0) count = 0; // "no device" is an error to some drivers
  std::vector<gpu_entry> entries;
  for (int ordinal = 0; ordinal < count; ++ordinal) entries.push_back(open_device(*found.driver, ordinal));
  return entries;
}

} // namespace

std::vector<gpu_entry> const& gpu_devices(device_kind kind) {
  if (kind == device_kind::cuda) {
    static auto const cuda = open_devices(device_kind::cuda);
    return cuda;
  }
  static auto const hip = open_devices(device_kind::hip);
  return hip;
}

backend& backend_of_stream(device_kind kind, void* native) {
  auto const& found = find_gpu_driver(kind);
  if (found.driver == nullptr) throw error("stream::borrow: " + found.why);
  gpu_driver const& driver = *found.driver;
  auto device_at = [&](int ordinal) -> gpu_backend& {
    auto const& devices = gpu_devices(kind);
    if (ordinal < 0 || ordinal >= static_cast<int>(devices.size()))
      throw error("stream::borrow: the stream is of device " + std::to_string(ordinal) +
                  ", which the driver does not list");
    if (devices[static_cast<std::size_t>(ordinal)].backend == nullptr)
      throw error("stream::borrow: " + devices[static_cast<std::size_t>(ordinal)].why);
    return *devices[static_cast<std::size_t>(ordinal)].backend;
  };
  if (kind == device_kind::hip) {
    int device = -1;
    driver.check(driver.stream_device(native, &device), "hipStreamGetDevice");
    return device_at(device);
  }

  void* context = nullptr;
  driver.check(driver.stream_context(native, &context), "cuStreamGetCtx");
  static std::mutex guard;
  static std::map<void*, gpu_backend*> contexts;
  std::lock_guard lock(guard);
  if (auto known = contexts.find(context); known != contexts.end()) return *known->second;
  int device = -1;
  driver.check(driver.context_push(context), "cuCtxPushCurrent");
  int code = driver.context_device(&device);
  void* ignored = nullptr;
  driver.context_pop(&ignored);
  driver.check(code, "cuCtxGetDevice");
  gpu_backend& primary = device_at(device);
  gpu_backend* made =
      primary.owns_context(context) ? &primary : new gpu_backend(driver, primary.record(), device, context);
  contexts.emplace(context, made);
  return *made;
}

} // namespace detail

device::device() : backend_(&detail::host_backend()) {}
device device::host() { return device(); }

device device::best() {
  if (char const* wanted = std::getenv("KILN_DEVICE"); wanted != nullptr && *wanted != '\0') {
    try {
      return parse(wanted);
    } catch (error const& e) { throw error(std::string("KILN_DEVICE: ") + e.what()); }
  }
  return all().front();
}

device device::parse(std::string_view text) {
  if (text == "host") return host();
  for (auto kind : {device_kind::cuda, device_kind::hip}) {
    std::string_view name = detail::kind_name(kind);
    if (!text.starts_with(name)) continue;
    auto rest = text.substr(name.size());
    int index = 0;
    if (!rest.empty()) {
      auto [end, code] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), index);
      if (rest.front() != ':' || rest.size() < 2 || code != std::errc() || end != rest.data() + rest.size() ||
          index < 0)
        break;
    }
    if (auto const& found = detail::find_gpu_driver(kind); found.driver == nullptr) throw error(found.why);
    auto const& devices = detail::gpu_devices(kind);
    if (index >= static_cast<int>(devices.size()))
      throw error(detail::id_of(kind, index) + ": the driver lists " + std::to_string(devices.size()) + " devices");
    auto const& entry = devices[static_cast<std::size_t>(index)];
    if (entry.backend == nullptr) throw error(entry.why);
    return device(*entry.backend);
  }
  throw error("device '" + std::string(text) + "': expected host, cuda, cuda:N, hip or hip:N");
}

std::vector<device> device::all() {
  std::vector<device> devices;
  for (auto kind : {device_kind::cuda, device_kind::hip})
    for (auto const& entry : detail::gpu_devices(kind))
      if (entry.backend != nullptr) devices.push_back(device(*entry.backend));
  devices.push_back(host());
  return devices;
}

std::vector<std::string> device::unusable() {
  std::vector<std::string> lines;
  for (auto kind : {device_kind::cuda, device_kind::hip}) {
    if (auto const& found = detail::find_gpu_driver(kind); found.driver == nullptr) lines.push_back(found.why);
    for (auto const& entry : detail::gpu_devices(kind))
      if (entry.backend == nullptr) lines.push_back(entry.why);
  }
  return lines;
}

device_kind device::kind() const { return backend_->record().kind; }
int device::index() const { return backend_->record().index; }
std::string device::id() const { return detail::id_of(kind(), index()); }
std::string device::name() const { return backend_->record().name; }
kiln::target const& device::target() const { return backend_->record().arch; }
i64 device::memory_bytes() const { return backend_->record().memory_bytes; }
i64 device::free_bytes() const { return backend_->free_bytes(); }
int device::multiprocessors() const { return backend_->record().multiprocessors; }
void device::synchronize() const { stream(*this).synchronize(); }

} // namespace kiln
