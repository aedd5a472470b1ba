// Device memory that frees itself. Allocation, copies and release are ordered by the buffer's stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "kiln/dtype/dtype.hpp"
#include "kiln/dtype/float8.hpp"
#include "kiln/export.hpp"
#include "kiln/meta/std_names.hpp"
#include "kiln/runtime/array_view.hpp"
#include "kiln/runtime/pinned.hpp"
#include "kiln/runtime/stream.hpp"

namespace kiln {

namespace detail {

// The untyped half of a buffer.
class KILN_API raw_buffer {
public:
  raw_buffer() = default;
  raw_buffer(stream const& where, i64 count, i64 element_bytes);
  raw_buffer(raw_buffer&& other) noexcept
      : stream_(std::move(other.stream_)), data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  raw_buffer& operator=(raw_buffer&& other) noexcept {
    std::swap(stream_, other.stream_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~raw_buffer();

  void* data() const { return data_; }
  i64 bytes() const { return bytes_; }
  /// Errors: kiln::error for an empty handle.
  stream get_stream() const;

  void upload(void const* source, i64 bytes);
  void download(void* target, i64 bytes) const;
  void start_upload(void const* source);
  void start_download(void* target) const;
  void copy(raw_buffer const& source);
  void fill(u64 pattern, int pattern_bytes);

private:
  handle<stream_state> stream_;
  void* data_ = nullptr;
  i64 bytes_ = 0;
};

[[noreturn]] KILN_API void fail_copy(char const* call, i64 have, i64 want);

/// std::vector, std::array, std::span, a C array, ... of T in host memory. Not a buffer, which has no begin().
template <class Range, class T>
concept contiguous_range_of = requires(Range const& values, T const*& first) {
  first = std::data(values);
  std::size(values);
  std::begin(values);
};

} // namespace detail

/// `n` elements of device memory, uninitialised. Move-only; released in stream order.
template <class T> class buffer {
  static_assert(element<T> && !std::is_const_v<T>, "kiln: a buffer holds an element type, such as buffer<f32>");

public:
  using element_type = T;

  /// An empty handle.
  buffer() = default;

  /// Units: elements. Errors: kiln::error for a negative or absurd size and where memory runs out, with both numbers.
  buffer(stream const& where, i64 n) : raw_(where, n, size_of<T>) {}
  buffer(device const& where, i64 n) : buffer(stream(where), n) {}

  /// Allocates for, and copies, any contiguous range of T.
  template <detail::contiguous_range_of<T> Range>
  buffer(stream const& where, Range const& values) : buffer(where, static_cast<i64>(std::size(values))) {
    copy_from(values);
  }
  template <detail::contiguous_range_of<T> Range>
  buffer(device const& where, Range const& values) : buffer(stream(where), values) {}

  T* data() { return static_cast<T*>(raw_.data()); }
  T const* data() const { return static_cast<T const*>(raw_.data()); }
  i64 size() const { return raw_.bytes() / size_of<T>; }
  i64 size_bytes() const { return raw_.bytes(); }
  stream get_stream() const { return raw_.get_stream(); }
  device get_device() const { return get_stream().get_device(); }

  /// Copies any contiguous range of T, which may be reused as soon as this returns.
  /// Shapes: as many elements as the buffer has. Errors: kiln::error with both sizes otherwise.
  template <detail::contiguous_range_of<T> Range> void copy_from(Range const& values) {
    auto n = static_cast<i64>(std::size(values));
    if (n != size()) detail::fail_copy("buffer::copy_from", n, size());
    raw_.upload(std::data(values), size_bytes());
  }

  /// Copies another buffer, from any device, after what is issued on both streams so far.
  void copy_from(buffer const& other) {
    if (other.size() != size()) detail::fail_copy("buffer::copy_from", other.size(), size());
    raw_.copy(other.raw_);
  }

  /// Starts a copy from pinned memory in stream order and returns; the source must stay as it is until the stream comes
  /// past (`event`, `stream::synchronize`). Inside a capture the graph reads the source anew whenever it runs.
  /// Shapes: as many elements as the buffer has.
  void start_copy_from(pinned<T> const& values) {
    if (values.size() != size()) detail::fail_copy("buffer::start_copy_from", values.size(), size());
    raw_.start_upload(values.data());
  }
  /// The way back; the values are there when the stream has come past.
  void start_copy_to(pinned<T>& values) const {
    if (values.size() != size()) detail::fail_copy("buffer::start_copy_to", values.size(), size());
    raw_.start_download(values.data());
  }

  /// Copies to host memory and waits for it. Errors: kiln::error with both sizes; those of `stream::synchronize`.
  void copy_to(std::span<T> values) const {
    if (static_cast<i64>(values.size()) != size())
      detail::fail_copy("buffer::copy_to", static_cast<i64>(values.size()), size());
    raw_.download(values.data(), size_bytes());
  }

  /// Sets every element.
  void fill(T value) {
    using bits =
        std::conditional_t<sizeof(T) == 1, u8,
                           std::conditional_t<sizeof(T) == 2, u16, std::conditional_t<sizeof(T) == 4, u32, u64>>>;
    raw_.fill(__builtin_bit_cast(bits, value), static_cast<int>(sizeof(T)));
  }

  /// The elements in host memory, a std::vector<T>; waits for them. Needs <vector>. Errors: those of `stream::synchronize`.
  auto to_vector() const {
    static_assert(detail::has_std_vector<T>, "kiln: to_vector makes a std::vector; #include <vector>");
    // std::vector<bool> is no array, so bytes stand in for it. (A type of T, or every file would pay for std::vector<u8>.)
    using element = std::conditional_t<std::is_same_v<T, bool>, u8, T>;
    detail::std_vector<element> values(static_cast<std::size_t>(size()));
    raw_.download(values.data(), size_bytes());
    if constexpr (std::is_same_v<T, bool>)
      return detail::std_vector<T>(values.begin(), values.end());
    else
      return values;
  }

  /// A row-major view, for an `array` parameter: `x.view(rows, cols)`.
  /// Errors: kiln::error for a negative extent, or if the buffer has fewer elements.
  template <class... Extents>
  requires(std::is_convertible_v<Extents, i64> && ...)
  auto view(Extents... extents) {
    return row_major(data(), {static_cast<i64>(extents)...});
  }
  template <class... Extents>
  requires(std::is_convertible_v<Extents, i64> && ...)
  auto view(Extents... extents) const {
    return row_major(data(), {static_cast<i64>(extents)...});
  }

private:
  template <class U, std::size_t Rank>
  array_view<U, static_cast<int>(Rank)> row_major(U* start, i64 const (&shape)[Rank]) const {
    array_view<U, static_cast<int>(Rank)> result{start, std::to_array(shape), {}};
    i64 stride = 1;
    for (std::size_t axis = Rank; axis-- > 0;) {
      result.strides[axis] = stride;
      if (shape[axis] > 0 && __builtin_mul_overflow(stride, shape[axis], &stride)) stride = INT64_MAX; // refused below
    }
    detail::check_view(shape, result.strides.data(), static_cast<int>(Rank), size(), "buffer::view");
    return result;
  }

  detail::raw_buffer raw_;
};

} // namespace kiln
