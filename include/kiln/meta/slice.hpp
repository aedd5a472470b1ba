// A read-only view of consecutive elements: what std::span<T const> is, without the checks of iterator concepts that
// std::span's constructors instantiate for every element type. These cost every program that includes kiln.hpp about a
// quarter of its compile time.
#pragma once
#include <cstddef>

namespace kiln {

/// Converts from and to std::span<T const>, and from whatever has data() and size().
template <class T>
class slice {
public:
  using value_type = T;
  constexpr slice() = default;
  constexpr slice(T const* data, std::size_t size) : data_(data), size_(size) {}
  template <class R>
    requires requires(R const& r, T const*& p, std::size_t& n) {
      p = r.data();
      n = r.size();
    }
  constexpr slice(R const& range) : data_(range.data()), size_(range.size()) {} // NOLINT: as std::span does

  constexpr T const* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T const* begin() const { return data_; }
  constexpr T const* end() const { return data_ + size_; }
  constexpr T const& operator[](std::size_t i) const { return data_[i]; }
  constexpr T const& front() const { return data_[0]; }
  constexpr T const& back() const { return data_[size_ - 1]; }
  constexpr slice subspan(std::size_t first, std::size_t count) const { return {data_ + first, count}; }

private:
  T const* data_ = nullptr;
  std::size_t size_ = 0;
};

} // namespace kiln
