// The host as a device: memory from the kernel or the heap, work done when it is issued.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <new>
#include <string>

#include <unistd.h>

#include "src/runtime/backend.hpp"
#include "src/runtime/huge_pages.hpp"
#include "src/runtime/thread_pool.hpp"

namespace kiln::detail {

namespace {

constexpr std::size_t huge_from = std::size_t{1} << 20; // smaller buffers come from the heap
constexpr std::align_val_t heap_alignment{256};

using clock = std::chrono::steady_clock;

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      if (auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "CPU";
}

device_record host_record() {
  long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGE_SIZE);
  long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return {.kind = device_kind::host,
          .index = 0,
          .name = cpu_name(),
          .arch = targets::host,
          .memory_bytes = pages > 0 && page_bytes > 0 ? i64{pages} * page_bytes : 0,
          .multiprocessors = thread_pool::shared().size(),
          .last_level_cache_bytes = cache > 0 ? cache : 0};
}

template <class T> void fill_with(void* target, u64 pattern, std::size_t count) {
  std::fill_n(static_cast<T*>(target), count, static_cast<T>(pattern));
}

class host_device final : public backend {
public:
  host_device() : backend(host_record()) {}

  void* allocate(std::size_t bytes, void*) override {
    return bytes >= huge_from ? map_huge(bytes) : ::operator new(bytes, heap_alignment);
  }
  void release(void* memory, std::size_t bytes, void*) noexcept override {
    if (bytes >= huge_from) unmap_huge(memory, bytes);
    else ::operator delete(memory, heap_alignment);
  }

  void upload(void* target, void const* source, std::size_t bytes, void*) override {
    std::memcpy(target, source, bytes);
  }
  void download(void* target, void const* source, std::size_t bytes, void*) override {
    std::memcpy(target, source, bytes);
  }
  void start_upload(void* target, void const* source, std::size_t bytes, void*) override {
    std::memcpy(target, source, bytes);
  }
  void start_download(void* target, void const* source, std::size_t bytes, void*) override {
    std::memcpy(target, source, bytes);
  }
  void copy(void* target, void const* source, std::size_t bytes, void*) override {
    std::memmove(target, source, bytes);
  }
  void fill(void* target, u64 pattern, int pattern_bytes, std::size_t count, void*) override {
    switch (pattern_bytes) {
    case 1: return fill_with<u8>(target, pattern, count);
    case 2: return fill_with<u16>(target, pattern, count);
    case 4: return fill_with<u32>(target, pattern, count);
    default: return fill_with<u64>(target, pattern, count);
    }
  }

  i64 free_bytes() override {
    long pages = ::sysconf(_SC_AVPHYS_PAGES), page_bytes = ::sysconf(_SC_PAGE_SIZE);
    return pages > 0 && page_bytes > 0 ? i64{pages} * page_bytes : 0;
  }
  void* allocate_pinned(std::size_t bytes) override { return ::operator new(bytes, heap_alignment); }
  void release_pinned(void* memory) noexcept override { ::operator delete(memory, heap_alignment); }

  // A stream needs no state here; the handle only has to be its own.
  void* create_stream() override { return ::operator new(1); }
  void destroy_stream(void* stream) noexcept override { ::operator delete(stream); }
  void synchronize(void*) override {}

  void* create_event() override { return new clock::time_point(); }
  void destroy_event(void* event) noexcept override { delete static_cast<clock::time_point*>(event); }
  void record_event(void* event, void*) override { time_of(event) = clock::now(); }
  void wait_event(void*, void*) override {}
  bool event_done(void*) override { return true; }
  void synchronize_event(void*) override {}
  double seconds_between(void* begin, void* end) override {
    return std::chrono::duration<double>(time_of(end) - time_of(begin)).count();
  }

private:
  static clock::time_point& time_of(void* event) { return *static_cast<clock::time_point*>(event); }
};

} // namespace

backend& host_backend() {
  static backend* const made = new host_device(); // never destroyed: buffers may be static objects
  return *made;
}

} // namespace kiln::detail
