// The exception of run-time compilation: which kernel, for which target, in which phase, and what the tool said.
#pragma once

#include <kiln/export.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace kiln {

/// A kernel could not be turned into code.
///
/// `what()` is one readable text; the parts are there for tools. `detail()` is the unabridged message of the compiler,
/// the linker or the driver.
class KILN_API compile_error : public std::runtime_error {
public:
  compile_error(std::string kernel, std::string target, std::string phase, std::string detail)
      : std::runtime_error("kernel '" + kernel + "' for " + target + ": " + phase + ": " + detail),
        kernel_(std::move(kernel)), target_(std::move(target)), phase_(std::move(phase)), detail_(std::move(detail)) {}

  const std::string& kernel() const noexcept { return kernel_; }
  const std::string& target() const noexcept { return target_; }
  /// "building IR", "checking IR", "passes", "code generation" or "linking".
  const std::string& phase() const noexcept { return phase_; }
  const std::string& detail() const noexcept { return detail_; }

private:
  std::string kernel_, target_, phase_, detail_;
};

} // namespace kiln
