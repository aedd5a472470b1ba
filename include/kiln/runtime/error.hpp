// What the runtime throws. Every message is one line that names the call or the argument and, where there is one, the
// remedy.
#pragma once

#include <exception>
#include <string_view>

#include "kiln/export.hpp"

namespace kiln {

/// Base of the runtime's errors: a wrong argument, a device that is not there, a failed launch.
///
/// A std::exception with its own text, since <stdexcept> would cost every file that includes kiln more than kiln's errors do.
class KILN_API error : public std::exception {
public:
  explicit error(std::string_view message);
  error(error const& other) noexcept;
  error& operator=(error const& other) noexcept;
  ~error() override;

  char const* what() const noexcept override;

private:
  struct text;
  text* text_; ///< shared by copies, which must not throw
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
  explicit assertion_error(std::string_view message) : error(message) {}
  ~assertion_error() override;
};

} // namespace kiln
