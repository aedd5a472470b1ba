// Recording at run time, host memory with sentinels, and short calls of the interpreter, for tests.
#pragma once
#include <kiln/graph/owned.hpp>
#include <kiln/interpreter/interpreter.hpp>
#include <kiln/kernel.hpp>

#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace kiln_test {

/// Compiled with optimisation and without sanitizers.
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool full_speed = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool full_speed = false;
#else
inline constexpr bool full_speed = true;
#endif
#else
inline constexpr bool full_speed = true;
#endif

/// The graph of a kernel lambda, recorded now: no compile-time cost, so that tests can have many.
template <class L>
kiln::graph record(L, kiln::attributes const& attributes = {}) {
  kiln::recorder r;
  kiln::detail::record_into<L>(r, attributes);
  EXPECT_TRUE(r.error.ok()) << r.error.text;
  return kiln::graph("test", r);
}

/// Elements between two stretches of sentinels. Starts at a multiple of 64 bytes.
template <class T>
class guarded {
public:
  static constexpr unsigned char sentinel = 0x5c;
  static constexpr std::size_t margin = 256;

  explicit guarded(std::size_t n, T value = T{}) : size_(n), storage_(room(n), sentinel) {
    auto const at = reinterpret_cast<std::uintptr_t>(storage_.data()) + margin;
    offset_ = margin + (64 - at % 64) % 64;
    for (std::size_t i = 0; i < n; ++i) std::memcpy(storage_.data() + offset_ + i * sizeof(T), &value, sizeof(T));
  }
  guarded(std::vector<T> const& values) : guarded(values.size()) {
    for (std::size_t i = 0; i < values.size(); ++i) (*this)[i] = values[i];
  }

  std::size_t size() const { return size_; }
  T* data() { return reinterpret_cast<T*>(storage_.data() + offset_); }
  T const* data() const { return reinterpret_cast<T const*>(storage_.data() + offset_); }
  T& operator[](std::size_t i) { return data()[i]; }
  T const& operator[](std::size_t i) const { return data()[i]; }
  kiln::i64 bytes() const { return static_cast<kiln::i64>(size_ * sizeof(T)); }

  /// Whether nothing was written around the elements.
  bool intact() const {
    for (std::size_t i = 0; i < storage_.size(); ++i)
      if ((i < offset_ || i >= offset_ + size_ * sizeof(T)) && storage_[i] != sentinel) return false;
    return true;
  }
  kiln::scalar at(std::size_t i) const { return kiln::scalar_of((*this)[i]); }

  operator kiln::interpreter::host_argument() const { return kiln::interpreter::pointer(data(), bytes()); }
  /// A row-major array over all elements.
  kiln::interpreter::host_argument array(std::initializer_list<kiln::i64> extents) const {
    kiln::i64 strides[kiln::max_rank]{}, n = 1;
    for (std::size_t d = extents.size(); d-- > 0;) {
      strides[d] = n;
      n *= extents.begin()[d];
    }
    kiln::interpreter::host_argument a = kiln::interpreter::array(data(), extents, {}, data(), bytes());
    for (std::size_t d = 0; d < extents.size(); ++d) a.stride[d] = strides[d];
    return a;
  }

private:
  static std::size_t room(std::size_t n) {
    if (n > std::size_t{1} << 32) throw std::length_error("guarded: too many elements");
    return n * sizeof(T) + 2 * margin + 64;
  }
  std::size_t size_;
  std::vector<unsigned char> storage_;
  std::size_t offset_;
};

template <class T>
kiln::interpreter::host_argument val(T x) {
  return kiln::interpreter::value(kiln::scalar_of(x));
}

/// Every completion policy, for tests that must not depend on it.
inline constexpr kiln::interpreter::completion all_policies[] = {
    kiln::interpreter::completion::early, kiln::interpreter::completion::late, kiln::interpreter::completion::random};

/// Expects a run without faults.
inline void run_clean(kiln::graph_view g, kiln::dims grid, std::initializer_list<kiln::interpreter::host_argument> arguments,
                      kiln::interpreter::run_options const& options = {}) {
  kiln::interpreter::report const r = kiln::interpreter::run(g, grid, arguments, options);
  EXPECT_TRUE(r.clean()) << r.text();
}

} // namespace kiln_test
