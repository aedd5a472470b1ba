// The runtime's exceptions. Their destructors live here, so that type information exists once and they can be caught
// across the library's border.
#include "kiln/runtime/error.hpp"

namespace kiln {

error::~error() = default;
driver_error::~driver_error() = default;
assertion_error::~assertion_error() = default;

driver_error::driver_error(std::string_view call, int code, std::string_view name, std::string_view text)
    : error(std::string(call) + ": " + std::string(name) + " (" + std::to_string(code) + "): " + std::string(text)),
      code_(code) {}

} // namespace kiln
