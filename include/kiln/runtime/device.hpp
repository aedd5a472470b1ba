// The devices that kernels run on: CUDA and HIP GPUs, whose drivers are opened when they are first asked for, and this
// CPU.
#pragma once

#include <string_view>

#include "kiln/dtype/dtype.hpp"
#include "kiln/export.hpp"
#include "kiln/meta/std_names.hpp"
#include "kiln/target/target.hpp"

namespace kiln {

namespace detail {
class backend;
}

enum class device_kind : u8 { host, cuda, hip };

/// A device, as a handle that is cheap to copy. Handles of one device compare equal. Nothing is allocated on it until
/// it is used.
class KILN_API device {
public:
  /// The host.
  device();

  /// CUDA, else HIP, else the host; KILN_DEVICE (as `parse` reads it) decides where it is set.
  static device best();
  /// The CPU of this process.
  static device host();
  /// "host", "cuda", "cuda:1", "hip", "hip:0".
  /// Errors: kiln::error for another spelling, and for a device that is not there or not usable, with the reason.
  static device parse(std::string_view text);
  /// Every usable device, the host last. Needs <vector>.
  static detail::std_vector<device> all();
  /// One line for each device or driver that is not usable: what, and why. Needs <string> and <vector>.
  static detail::std_vector<std::string> unusable();

  device_kind kind() const;
  bool is_host() const { return kind() == device_kind::host; }
  /// Number among the devices of its kind.
  int index() const;
  /// As `parse` reads it: "host", "cuda:0". Needs <string>.
  std::string id() const;
  /// The maker's name for it. Needs <string>.
  std::string name() const;
  /// What code for it is compiled for.
  kiln::target const& target() const;
  /// Units: bytes.
  i64 memory_bytes() const;
  /// Of it, what nobody uses now, as the driver says. What kiln has freed itself stays reserved for its next buffers.
  i64 free_bytes() const;
  /// SMs, compute units, or the worker threads of the host.
  int multiprocessors() const;

  /// Waits for everything on its default stream. Errors: as `stream::synchronize`.
  void synchronize() const;

  friend bool operator==(device const& a, device const& b) { return a.backend_ == b.backend_; }

  /// For kiln's own code.
  explicit device(detail::backend& b) : backend_(&b) {}
  detail::backend& get_backend() const { return *backend_; }

private:
  detail::backend* backend_;
};

} // namespace kiln
