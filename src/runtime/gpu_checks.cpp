// What a launch asks of pointers before the driver sees them, and what kernels leave behind when an assertion fails.
#include <chrono>
#include <thread>

#include "kiln/runtime/error.hpp"
#include "src/runtime/gpu_scope.hpp"

namespace kiln::detail {

// The plural call: for memory that the driver has never seen it answers with zeros. The singular one answers with an
// error, which debugging tools report.
gpu_backend::pointer_place gpu_backend::place_of(void const* pointer) {
  current_context here(*this);
  pointer_place place;
  std::uint64_t type = 0, as_seen_here = 0; // wider than any driver's answer
  int device = -1;
  int names[] = {gpu::pointer_memory_type, gpu::pointer_device_ordinal, gpu::pointer_range_start,
                 gpu::pointer_range_bytes, gpu::cuda_pointer_as_seen_here};
  void* values[] = {&type, &device, &place.start, &place.bytes, &as_seen_here};
  bool cuda = driver_.kind == device_kind::cuda;
  if (driver_.pointer_attributes(cuda ? 5 : 4, names, values, pointer) != 0) return {};
  place.answered = true;
  place.known = type != 0;
  if (!place.known) return place;
  place.on_device = type != gpu::memory_type_host;
  place.device = device;
  place.accessible = !place.on_device || device == device_;
  if (place.accessible) return place;
  // CUDA has an address for kernels of this context only where they have access, be it by a pool's or by a peer's leave; its
  // access flags are those of the owner. HIP gives an address anyhow, but tells which devices could be given access to each other.
  int peer = 0;
  if (cuda) place.accessible = as_seen_here != 0;
  else place.accessible = type == gpu::hip_memory_type_managed || (driver_.can_access_peer(&peer, device_, device) == 0 && peer != 0);
  return place;
}

std::string gpu_backend::examine(std::uintptr_t address) {
  auto place = place_of(reinterpret_cast<void const*>(address));
  if (!place.answered) return ""; // an old driver that does not know an attribute
  if (!place.known && !reads_host_memory_)
    return "the address is not memory of this device (host memory, or freed); pass a buffer of " +
           kiln::device(*this).id();
  if (place.known && !place.accessible)
    return "the memory is on " + std::string(driver_.kind == device_kind::cuda ? "cuda:" : "hip:") + std::to_string(place.device) + ", the launch on " + kiln::device(*this).id() +
           ", which has no access to it; copy it there";
  good_pointers_[slot_of(address)].store(address, std::memory_order_relaxed);
  return "";
}

void gpu_backend::watch(gpu_fault_record& record, void* stream) {
  bool captured = is_capturing(stream);
  // The launch came before this look, a wait disarms before it looks at the record: one of the two sees the other.
  if (!captured && record.armed_for.load() == stream) return;
  std::lock_guard lock(watched_guard_);
  record.armed_for.store(captured ? &record : stream);
  for (watched& w : watched_)
    if (w.record == &record && (w.any_stream ? w.forever : !captured && w.stream == stream)) return;
  watched_.push_back({&record, stream, captured, captured});
  watched_count_.store(static_cast<int>(watched_.size()), std::memory_order_relaxed);
}

void gpu_backend::throw_kernel_failure(void* stream) {
  if (watched_count_.load(std::memory_order_relaxed) == 0) return;
  std::vector<gpu_fault_record*> records;
  {
    std::lock_guard lock(watched_guard_);
    std::erase_if(watched_, [&](watched const& w) {
      if (!w.any_stream && w.stream != stream) return false;
      records.push_back(w.record);
      w.record->armed_for.store(w.record);
      return !w.forever;
    });
    watched_count_.store(static_cast<int>(watched_.size()), std::memory_order_relaxed);
  }
  if (records.empty()) return;

  current_context here(*this);
  auto wait = [&] { driver_.check(driver_.stream_synchronize(stream), "cuStreamSynchronize"); };
  wait(); // for launches between the caller's wait and our look at the list
  std::string first;
  for (gpu_fault_record* r : records) {
    std::uint32_t words[4] = {};
    auto read = [&] {
      driver_.check(driver_.copy_out(words, r->address, sizeof words, stream), "cuMemcpyDtoHAsync");
      wait();
    };
    read();
    if (words[0] == 0) continue;
    // A kernel on another stream may be in the middle of writing the record: the text's number comes before the rest.
    for (int i = 0; i < 1000 && (words[1] == 0 || words[2] == 0); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      read();
    }
    driver_.check(driver_.set_32(r->address, 0, 4, stream), "cuMemsetD32Async");
    if (first.empty()) first = r->describe(words);
  }
  if (!first.empty()) throw assertion_error(first);
}

} // namespace kiln::detail
