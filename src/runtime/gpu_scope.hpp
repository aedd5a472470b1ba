// Scopes around driver calls: whose context is current, and what a capture on this thread allows.
#pragma once

#include "src/runtime/gpu_backend.hpp"

namespace kiln::detail {

// CUDA has a stack of contexts per thread, HIP a current device. Either way the caller finds its own again.
class current_context {
public:
  explicit current_context(gpu_backend& b) : driver_(b.driver_) {
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
  current_context(current_context const&) = delete;
  current_context& operator=(current_context const&) = delete;
  ~current_context() {
    void* ignored = nullptr;
    if (pushed_) driver_.context_pop(&ignored);
    if (previous_ >= 0) driver_.set_device(previous_);
  }

private:
  gpu_driver const& driver_;
  bool pushed_ = false;
  int previous_ = -1;
};

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

} // namespace kiln::detail
