// What the runtime asks of a device's driver. One backend is one context: the host, a GPU's primary context, or a
// context that the program made itself and whose stream it lent. Backends live until the process ends. Streams and
// events are the driver's handles; a null stream is the default one.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "kiln/runtime/device.hpp"
#include "kiln/runtime/stream.hpp"

namespace kiln::detail {

struct device_record {
  device_kind kind = device_kind::host;
  int index = 0;
  std::string name;
  kiln::target arch;
  i64 memory_bytes = 0;
  int multiprocessors = 1;
  int threads_per_multiprocessor = 0; // resident at most; 0: not known
  i64 shared_bytes_per_cta = 0;       // at most; 0: not known
  i64 last_level_cache_bytes = 0;
  int driver_version = 0; // as the driver numbers it
};

struct stream_state;

class KILN_INTERNAL_API backend {
public:
  explicit backend(device_record record);
  backend(backend const&) = delete;
  backend& operator=(backend const&) = delete;
  virtual ~backend();

  device_record const& record() const { return record_; }
  handle<stream_state> const& default_stream() const { return default_stream_; }

  /// Stream-ordered memory, aligned to 256 bytes at least. `bytes` > 0. Errors: kiln::error with the size.
  virtual void* allocate(std::size_t bytes, void* stream) = 0;
  virtual void release(void* memory, std::size_t bytes, void* stream) noexcept = 0;

  /// Host to device; the source may be reused when this returns.
  virtual void upload(void* target, void const* source, std::size_t bytes, void* stream) = 0;
  /// Device to host; waits.
  virtual void download(void* target, void const* source, std::size_t bytes, void* stream) = 0;
  /// The same without waiting, from and to pinned memory.
  virtual void start_upload(void* target, void const* source, std::size_t bytes, void* stream) = 0;
  virtual void start_download(void* target, void const* source, std::size_t bytes, void* stream) = 0;
  /// Within the device.
  virtual void copy(void* target, void const* source, std::size_t bytes, void* stream) = 0;
  /// `count` copies of the low `pattern_bytes` (1, 2, 4 or 8) of `pattern`.
  virtual void fill(void* target, u64 pattern, int pattern_bytes, std::size_t count, void* stream) = 0;

  /// Memory that nobody uses now.
  virtual i64 free_bytes() = 0;

  /// Host memory that the device reads and writes directly. Errors: kiln::error with the size.
  virtual void* allocate_pinned(std::size_t bytes) = 0;
  virtual void release_pinned(void* memory) noexcept = 0;

  virtual void* create_stream() = 0;
  virtual void destroy_stream(void* stream) noexcept = 0;
  virtual void synchronize(void* stream) = 0;

  virtual void* create_event() = 0;
  virtual void destroy_event(void* event) noexcept = 0;
  virtual void record_event(void* event, void* stream) = 0;
  virtual void wait_event(void* stream, void* event) = 0;
  virtual bool event_done(void* event) = 0;
  virtual void synchronize_event(void* event) = 0;
  virtual double seconds_between(void* begin, void* end) = 0;

  /// Whether the program is recording this stream into a graph of its own.
  virtual bool is_capturing(void*) { return false; }
  /// From now on a stream that is destroyed has finished, so that whoever gets its handle next follows it.
  virtual void keep_stream_order() {}
  /// Throws what kernels on this stream left behind, such as a failed device_assert. After `synchronize`.
  virtual void throw_kernel_failure(void*) {}

private:
  device_record record_;
  handle<stream_state> default_stream_;
};

/// What the handles of a stream share.
struct KILN_INTERNAL_API stream_state {
  backend* owner;
  void* native;
  bool destroy; // made by us
  std::atomic<int> handles{0};

  stream_state(backend& b, void* n, bool d) : owner(&b), native(n), destroy(d) {}
  stream_state(stream_state const&) = delete;
  stream_state& operator=(stream_state const&) = delete;
  ~stream_state();

  /// Host streams: keeps the first failure of a launch until somebody waits. (A GPU's driver keeps its own.)
  void fail(std::exception_ptr failure) noexcept;
  /// Waits for the stream, then throws what `fail` kept; the stream is good again after that.
  void synchronize();
  /// The second half of `synchronize`.
  void throw_failure();

private:
  std::mutex guard_;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

struct event_state {
  backend* owner;
  void* native;
  bool recorded = false;
  std::atomic<int> handles{0};

  explicit event_state(backend& b) : owner(&b), native(b.create_event()) {}
  event_state(event_state const&) = delete;
  event_state& operator=(event_state const&) = delete;
  ~event_state() { owner->destroy_event(native); }
};

/// The host's backend.
KILN_INTERNAL_API backend& host_backend();

} // namespace kiln::detail
