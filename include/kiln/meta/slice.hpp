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
  constexpr slice(T const* data, std::size_t size) : items(data), count(size) {}
  template <class R>
    requires requires(R const& r, T const*& p, std::size_t& n) {
      p = r.data();
      n = r.size();
    }
  constexpr slice(R const& range) : items(range.data()), count(range.size()) {} // NOLINT: as std::span does

  constexpr T const* data() const { return items; }
  constexpr std::size_t size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr T const* begin() const { return items; }
  constexpr T const* end() const { return items + count; }
  constexpr T const& operator[](std::size_t i) const { return items[i]; }
  constexpr T const& front() const { return items[0]; }
  constexpr T const& back() const { return items[count - 1]; }
  constexpr slice subspan(std::size_t first, std::size_t n) const { return {items + first, n}; }

  // Public for code that runs while a compiler runs: there, each call of an accessor costs.
  T const* items = nullptr;
  std::size_t count = 0;
};

} // namespace kiln
