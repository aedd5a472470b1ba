// The untyped half of buffers, and the checks of views.
#include "kiln/runtime/buffer.hpp"

#include <new>
#include <string>
#include <vector>

#include "kiln/runtime/error.hpp"
#include "src/runtime/backend.hpp"

namespace kiln::detail {

raw_buffer::raw_buffer(stream const& where, i64 count, i64 element_bytes) {
  i64 bytes;
  if (count < 0 || __builtin_mul_overflow(count, element_bytes, &bytes))
    throw error("buffer: " + std::to_string(count) + " elements of " + std::to_string(element_bytes) +
                " bytes cannot be had");
  stream_ = where.shared_state();
  if (bytes > 0) {
    try {
      data_ = stream_->owner->allocate(static_cast<std::size_t>(bytes), stream_->native);
    } catch (std::bad_alloc const&) {
      throw error("buffer: out of memory on " + where.get_device().id() + " for " + std::to_string(bytes) + " bytes");
    }
  }
  bytes_ = bytes;
}

raw_buffer::~raw_buffer() {
  if (data_ != nullptr) stream_->owner->release(data_, static_cast<std::size_t>(bytes_), stream_->native);
}

stream raw_buffer::get_stream() const {
  if (!stream_) throw error("buffer: an empty handle has no stream");
  return stream(stream_);
}

void raw_buffer::upload(void const* source, i64 bytes) {
  if (bytes > 0) stream_->owner->upload(data_, source, static_cast<std::size_t>(bytes), stream_->native);
}

void raw_buffer::download(void* target, i64 bytes) const {
  if (!stream_) return;
  if (bytes > 0) stream_->owner->download(target, data_, static_cast<std::size_t>(bytes), stream_->native);
  stream_->throw_failure();
}

void raw_buffer::start_upload(void const* source) {
  if (bytes_ > 0) stream_->owner->start_upload(data_, source, static_cast<std::size_t>(bytes_), stream_->native);
}

void raw_buffer::start_download(void* target) const {
  if (bytes_ > 0) stream_->owner->start_download(target, data_, static_cast<std::size_t>(bytes_), stream_->native);
}

void raw_buffer::fill(u64 pattern, int pattern_bytes) {
  if (bytes_ > 0)
    stream_->owner->fill(data_, pattern, pattern_bytes, static_cast<std::size_t>(bytes_ / pattern_bytes),
                         stream_->native);
}

void raw_buffer::copy(raw_buffer const& source) {
  if (bytes_ == 0 || data_ == source.data_) return;
  auto size = static_cast<std::size_t>(bytes_);
  auto& from = *source.stream_;
  auto& to = *stream_;
  if (from.owner == to.owner) {
    if (from.native != to.native) { // the source is ready when its own stream has come here
      event ready{device(*from.owner)};
      ready.record(source.get_stream());
      get_stream().wait(ready);
    }
    to.owner->copy(data_, source.data_, size, to.native);
    if (from.native != to.native) { // and may be overwritten or freed there only after the copy
      event copied{device(*to.owner)};
      copied.record(get_stream());
      source.get_stream().wait(copied);
    }
  } else if (from.owner->record().kind == device_kind::host) {
    to.owner->upload(data_, source.data_, size, to.native);
  } else if (to.owner->record().kind == device_kind::host) {
    from.owner->download(data_, source.data_, size, from.native);
  } else {
    std::vector<std::byte> staging(size);
    from.owner->download(staging.data(), source.data_, size, from.native);
    to.owner->upload(data_, staging.data(), size, to.native);
  }
}

raw_pinned::raw_pinned(device const& where, i64 count, i64 element_bytes) : owner_(&where.get_backend()) {
  i64 bytes;
  if (count < 0 || __builtin_mul_overflow(count, element_bytes, &bytes))
    throw error("pinned: " + std::to_string(count) + " elements of " + std::to_string(element_bytes) + " bytes cannot be had");
  if (bytes > 0) {
    try {
      data_ = owner_->allocate_pinned(static_cast<std::size_t>(bytes));
    } catch (std::bad_alloc const&) {
      throw error("pinned: out of memory for " + std::to_string(bytes) + " bytes");
    }
  }
  bytes_ = bytes;
}

raw_pinned::~raw_pinned() {
  if (data_ != nullptr) owner_->release_pinned(data_);
}

void fail_copy(char const* call, i64 have, i64 want) {
  throw error(std::string(call) + ": the other side has " + std::to_string(have) + " elements, the buffer " +
              std::to_string(want));
}

offset_range touched_offsets(i64 const* shape, i64 const* strides, int rank) noexcept {
  offset_range range;
  for (int axis = 0; axis < rank; ++axis) {
    if (shape[axis] <= 0) range.empty = true;
    i64 reach;
    if (__builtin_mul_overflow(shape[axis] - 1, strides[axis], &reach) ||
        __builtin_add_overflow(reach < 0 ? range.lowest : range.highest, reach,
                               reach < 0 ? &range.lowest : &range.highest))
      range.overflow = true;
  }
  if (range.empty) return {0, 0, true, false};
  return range;
}

void check_view(i64 const* shape, i64 const* strides, int rank, i64 elements, char const* what) {
  auto text = [&](i64 const* values) {
    std::string list = "{";
    for (int axis = 0; axis < rank; ++axis) {
      if (axis > 0) list += ", ";
      list += std::to_string(values[axis]);
    }
    return list + "}";
  };
  for (int axis = 0; axis < rank; ++axis)
    if (shape[axis] < 0)
      throw error(std::string(what) + ": extent " + std::to_string(axis) + " of " + text(shape) + " is negative");
  auto range = touched_offsets(shape, strides, rank);
  if (range.empty) return;
  if (range.overflow)
    throw error(std::string(what) + ": extents " + text(shape) + " with strides " + text(strides) +
                " reach beyond 64-bit offsets");
  if (elements < 0) return;
  if (range.lowest < 0 || range.highest >= elements)
    throw error(std::string(what) + ": extents " + text(shape) + " with strides " + text(strides) + " touch elements " +
                std::to_string(range.lowest) + " to " + std::to_string(range.highest) + ", the buffer has " +
                std::to_string(elements));
}

} // namespace kiln::detail
