// Huge-page mappings: mapped with slack, trimmed to the alignment.
#include "src/runtime/huge_pages.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <limits>
#include <new>

namespace kiln::detail {

namespace {

std::size_t rounded(std::size_t bytes) { return (bytes + huge_page_bytes - 1) & ~(huge_page_bytes - 1); }

} // namespace

void* map_huge(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) throw std::bad_alloc();
  std::size_t size = rounded(bytes == 0 ? 1 : bytes);
  std::size_t mapped = size + huge_page_bytes;
  void* raw = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) throw std::bad_alloc();
  auto begin = reinterpret_cast<std::uintptr_t>(raw);
  auto start = (begin + huge_page_bytes - 1) & ~(std::uintptr_t{huge_page_bytes} - 1);
  if (start != begin) ::munmap(raw, start - begin);
  if (std::size_t tail = begin + mapped - (start + size)) ::munmap(reinterpret_cast<void*>(start + size), tail);
  // Advice only: without huge pages the memory is as good, just slower.
  ::madvise(reinterpret_cast<void*>(start), size, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(start);
}

void unmap_huge(void* start, std::size_t bytes) noexcept {
  if (start != nullptr) ::munmap(start, rounded(bytes == 0 ? 1 : bytes));
}

host_arena::~host_arena() { unmap_huge(start_, size_); }

void* host_arena::reserve(std::size_t bytes) {
  if (bytes > size_) {
    void* grown = map_huge(bytes);
    unmap_huge(start_, size_);
    start_ = grown;
    size_ = rounded(bytes);
  }
  return bytes == 0 ? nullptr : start_;
}

host_arena& host_arena::of_this_thread() {
  thread_local host_arena arena;
  return arena;
}

} // namespace kiln::detail
