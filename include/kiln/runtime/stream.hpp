// Streams order work on a device; events mark points in them. On the host a stream runs each launch when it is issued,
// and what would be an asynchronous failure on a GPU is still reported by `synchronize`, so that programs behave alike.
#pragma once

#include "kiln/export.hpp"
#include "kiln/runtime/device.hpp"
#include "kiln/runtime/handle.hpp"

// The drivers' own stream types, so that a program's streams can be passed as they are.
struct CUstream_st;
struct ihipStream_t;

namespace kiln {

class event;

/// A queue of work on one device. Copies of a handle are the same stream.
class KILN_API stream {
public:
  /// The default stream of a device: for CUDA and HIP their null stream in the device's primary context.
  stream(device const& where); // NOLINT: wherever a stream is wanted, a device means its default stream

  /// A new stream, not synchronised with the null stream; it ends with its last handle.
  static stream create(device const& where);
  /// A stream of the caller's: work runs in its own context. It stays the caller's, and must outlive what uses it.
  /// Errors: kiln::error if the driver is not there or does not know the stream.
  static stream borrow(CUstream_st* native);
  static stream borrow(ihipStream_t* native);

  device get_device() const;
  /// The driver's handle (CUstream, hipStream_t); null for a default stream.
  void* native() const;

  /// Waits until everything issued so far is done.
  /// Errors: assertion_error for a device_assert that failed; driver_error for any other failure on the device.
  void synchronize() const;
  /// Lets what is issued from now on wait for the event; does not wait itself.
  void wait(event const& mark) const;

  // For kiln's own code.
  explicit stream(detail::handle<detail::stream_state> const& state) : state_(state) {}
  detail::stream_state& state() const { return *state_; }
  detail::handle<detail::stream_state> const& shared_state() const { return state_; }

private:
  detail::handle<detail::stream_state> state_;
};

/// A point in a stream.
class KILN_API event {
public:
  explicit event(device const& where);

  /// Marks the end of what is issued on `s` so far; an earlier mark is forgotten. Errors: kiln::error if `s` is on
  /// another device.
  void record(stream const& s);
  /// True if all before the mark is done, or nothing was recorded.
  bool done() const;
  void synchronize() const;

  /// Time between two recorded marks of one device; waits for both. Units: seconds.
  friend KILN_API double seconds_between(event const& begin, event const& end);

private:
  friend class stream;
  detail::handle<detail::event_state> state_;
};

KILN_API double seconds_between(event const& begin, event const& end);

} // namespace kiln
