// Host memory that a device copies from and to on its own, while the program goes on.
#pragma once

#include <type_traits>
#include <utility>

#include "kiln/dtype/dtype.hpp"
#include "kiln/export.hpp"
#include "kiln/runtime/device.hpp"

namespace kiln {

namespace detail {

// The untyped half of pinned memory.
class KILN_API raw_pinned {
public:
  raw_pinned() = default;
  raw_pinned(device const& where, i64 count, i64 element_bytes);
  raw_pinned(raw_pinned&& other) noexcept
      : owner_(other.owner_), data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  raw_pinned& operator=(raw_pinned&& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~raw_pinned();

  void* data() const { return data_; }
  i64 bytes() const { return bytes_; }

private:
  backend* owner_ = nullptr;
  void* data_ = nullptr;
  i64 bytes_ = 0;
};

} // namespace detail

/// `n` elements of page-locked host memory, uninitialised: what `buffer::start_copy_from` and `start_copy_to` take, and
/// any place that takes a contiguous range. Kernels can read and write it, too (`data()`). Every device of the same kind
/// may use it. Move-only; it must outlive the copies that were started with it.
template <class T> class pinned {
  static_assert(element<T> && !std::is_const_v<T>, "kiln: pinned memory holds an element type, such as pinned<f32>");

public:
  using element_type = T;

  pinned() = default;
  /// Units: elements. Errors: kiln::error for a negative or absurd size and where memory runs out, with both numbers.
  pinned(device const& where, i64 n) : raw_(where, n, size_of<T>) {}

  T* data() { return static_cast<T*>(raw_.data()); }
  T const* data() const { return static_cast<T const*>(raw_.data()); }
  i64 size() const { return raw_.bytes() / size_of<T>; }
  T* begin() { return data(); }
  T* end() { return data() + size(); }
  T const* begin() const { return data(); }
  T const* end() const { return data() + size(); }
  T& operator[](i64 i) { return data()[i]; }
  T const& operator[](i64 i) const { return data()[i]; }

private:
  detail::raw_pinned raw_;
};

} // namespace kiln
