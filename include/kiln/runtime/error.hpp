// What the runtime throws. Every message is one line that names the call or the argument and, where there is one, the
// remedy.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "kiln/export.hpp"

namespace kiln {

/// Base of the runtime's errors: a wrong argument, a device that is not there, a failed launch.
class KILN_API error : public std::runtime_error {
public:
  explicit error(std::string const& message) : std::runtime_error(message) {}
  ~error() override;
};

/// A GPU driver refused a call. `what()` has the call, the driver's name for the error and its text.
class KILN_API driver_error : public error {
public:
  driver_error(std::string_view call, int code, std::string_view name, std::string_view text);
  ~driver_error() override;

  /// The driver's number for the error (a CUresult or a hipError_t).
  int code() const { return code_; }

private:
  int code_;
};

/// A device_assert failed in a kernel. Reported where the program next waits for the stream.
class KILN_API assertion_error : public error {
public:
  explicit assertion_error(std::string const& message) : error(message) {}
  ~assertion_error() override;
};

} // namespace kiln
