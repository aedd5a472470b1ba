// The floating-point modes that kernels run under on the host: round to nearest even, nothing trapped, denormals kept
// (or, for a kernel that asks, flushed). The user's own modes are back when the guard ends.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kiln::detail {

class float_environment {
public:
#if defined(__x86_64__)
  explicit float_environment(bool flush_denormals = false) : saved_(_mm_getcsr()) {
    // All exceptions masked; bit 15 flushes results, bit 6 takes denormal operands as zero.
    _mm_setcsr(flush_denormals ? 0x1f80u | 0x8000u | 0x0040u : 0x1f80u);
  }
  ~float_environment() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
  explicit float_environment(bool flush_denormals = false) {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    std::uint64_t wanted = flush_denormals ? std::uint64_t{1} << 24 : 0;
    asm volatile("msr fpcr, %0" ::"r"(wanted));
  }
  ~float_environment() { asm volatile("msr fpcr, %0" ::"r"(saved_)); }
#else
#error "kiln's host target knows x86-64 and AArch64"
#endif
  float_environment(float_environment const&) = delete;
  float_environment& operator=(float_environment const&) = delete;

private:
#if defined(__x86_64__)
  std::uint32_t saved_;
#else
  std::uint64_t saved_ = 0;
#endif
};

/// Makes earlier non-temporal stores visible before anything that follows: compiled code does not fence on its own.
inline void fence_streaming_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#elif defined(__aarch64__)
  asm volatile("dmb ishst" ::: "memory");
#endif
}

/// One step of a spinning loop.
inline void spin_pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

} // namespace kiln::detail
