// The runtime's exceptions. Their destructors live here, so that type information exists once and they can be caught
// across the library's border.
#include "kiln/runtime/error.hpp"

#include <atomic>
#include <string>
#include <utility>

namespace kiln {

struct error::text {
  std::string message;
  std::atomic<int> owners{1};
};

error::error(std::string_view message) : text_(new text{std::string(message)}) {}
error::error(error const& other) noexcept : std::exception(other), text_(other.text_) {
  text_->owners.fetch_add(1, std::memory_order_relaxed);
}
error& error::operator=(error const& other) noexcept {
  error copy(other);
  std::swap(text_, copy.text_);
  return *this;
}
error::~error() {
  if (text_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete text_;
}
char const* error::what() const noexcept { return text_->message.c_str(); }

driver_error::~driver_error() = default;
assertion_error::~assertion_error() = default;

driver_error::driver_error(std::string_view call, int code, std::string_view name, std::string_view text)
    : error(std::string(call) + ": " + std::string(name) + " (" + std::to_string(code) + "): " + std::string(text)),
      code_(code) {}

} // namespace kiln
