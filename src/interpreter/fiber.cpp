// Fibers: stacks with a guard page, switches, annotations for the address sanitizer.
#include "src/interpreter/fiber.hpp"

#include <boost/context/preallocated.hpp>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define KILN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KILN_ASAN 1
#endif
#endif
#ifdef KILN_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace kiln::interpreter {

namespace {

constexpr std::size_t stack_bytes = std::size_t{1} << 20; // mapped, not touched: most of it costs nothing

void leave([[maybe_unused]] void** fake, [[maybe_unused]] void const* bottom, [[maybe_unused]] std::size_t size) {
#ifdef KILN_ASAN
  __sanitizer_start_switch_fiber(fake, bottom, size);
#endif
}
void arrive([[maybe_unused]] void* fake, [[maybe_unused]] void const** bottom, [[maybe_unused]] std::size_t* size) {
#ifdef KILN_ASAN
  __sanitizer_finish_switch_fiber(fake, bottom, size);
#endif
}

// The stack belongs to the fiber object, which outlives what runs on it.
struct no_deallocation {
  void deallocate(boost::context::stack_context&) noexcept {}
};

} // namespace

fiber::stack::stack() {
  auto const page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  size = stack_bytes + page;
  mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mprotect(mapping, page, PROT_NONE); // stacks grow down, into this page
}

fiber::stack::~stack() {
#ifdef KILN_ASAN
  __asan_unpoison_memory_region(mapping, size); // the next mapping at this place starts clean
#endif
  munmap(mapping, size);
}

fiber::~fiber() {
  if (!started_ || done_) return;
  cancel_ = true;
  switch_in();
}

void fiber::start() {
  started_ = true;
  boost::context::stack_context context;
  context.size = stack_.size;
  context.sp = static_cast<char*>(stack_.mapping) + stack_.size;
  self_ = boost::context::fiber(
      std::allocator_arg, boost::context::preallocated(context.sp, context.size, context), no_deallocation{},
      [this](boost::context::fiber&& caller) {
        arrive(nullptr, &caller_bottom_, &caller_size_);
        caller_ = std::move(caller);
        try {
          body_();
        } catch (cancelled const&) {
        } catch (...) { error_ = std::current_exception(); }
        done_ = true;
        leave(nullptr, caller_bottom_, caller_size_);
        return std::move(caller_);
      });
}

void fiber::switch_in() {
  void* fake = nullptr;
  leave(&fake, stack_.mapping, stack_.size);
  self_ = std::move(self_).resume();
  arrive(fake, nullptr, nullptr);
}

void fiber::resume() {
  if (!started_) start();
  switch_in();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void fiber::yield() {
  void* fake = nullptr;
  leave(&fake, caller_bottom_, caller_size_);
  caller_ = std::move(caller_).resume();
  arrive(fake, &caller_bottom_, &caller_size_);
  if (cancel_) throw cancelled{};
}

} // namespace kiln::interpreter
