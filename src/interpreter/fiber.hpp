// A coroutine with a stack of its own: an agent of a CTA runs on one. Boost.Context switches; this class owns the stack and
// tells the address sanitizer about every switch.
#pragma once
#include <boost/context/fiber.hpp>

#include <cstddef>
#include <exception>
#include <functional>

namespace kiln::interpreter {

class fiber {
public:
  explicit fiber(std::function<void()> body) : body_(std::move(body)) {}
  fiber(fiber const&) = delete;
  fiber& operator=(fiber const&) = delete;
  /// Unwinds the body first where it is suspended: its `yield` throws.
  ~fiber();

  /// Runs the body until it yields or ends. Rethrows what the body threw.
  void resume();
  bool done() const { return done_; }

  /// In the body: gives control back to whoever resumed it.
  void yield();

private:
  struct cancelled {};
  struct stack {
    void* mapping = nullptr;
    std::size_t size = 0;
    stack();
    ~stack();
    stack(stack const&) = delete;
    stack& operator=(stack const&) = delete;
  };
  void start();
  void switch_in();

  std::function<void()> body_;
  stack stack_;
  boost::context::fiber self_, caller_;
  std::exception_ptr error_;
  void const* caller_bottom_ = nullptr; // the sanitizer's idea of the resumer's stack
  std::size_t caller_size_ = 0;
  bool started_ = false, done_ = false, cancel_ = false;
};

} // namespace kiln::interpreter
