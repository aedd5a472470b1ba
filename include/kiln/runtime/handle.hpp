// A counted reference to something that only the library knows: std::shared_ptr without <memory>, since every program that
// launches a kernel includes this.
#pragma once

#include "kiln/export.hpp"

namespace kiln::detail {

struct stream_state;
struct event_state;

// Count up and down; the last one down destroys. Any thread.
KILN_API void retain(stream_state&) noexcept;
KILN_API void release(stream_state&) noexcept;
KILN_API void retain(event_state&) noexcept;
KILN_API void release(event_state&) noexcept;

/// Shares ownership of a State, or is empty. A State begins with a count of 0.
template <class State> class handle {
public:
  handle() = default;
  explicit handle(State* s) : state_(s) {
    if (state_ != nullptr) retain(*state_);
  }
  handle(handle const& other) : handle(other.state_) {}
  handle(handle&& other) noexcept : state_(other.state_) { other.state_ = nullptr; }
  handle& operator=(handle other) noexcept {
    State* mine = state_;
    state_ = other.state_;
    other.state_ = mine;
    return *this;
  }
  ~handle() {
    if (state_ != nullptr) release(*state_);
  }

  State& operator*() const { return *state_; }
  State* operator->() const { return state_; }
  explicit operator bool() const { return state_ != nullptr; }

private:
  State* state_ = nullptr;
};

} // namespace kiln::detail
