// Streams and events: handles around what a backend makes.
#include "kiln/runtime/stream.hpp"

#include <utility>

#include "kiln/runtime/error.hpp"
#include "src/runtime/backend.hpp"
#include "src/runtime/gpu_backend.hpp"

namespace kiln {

namespace detail {

backend::backend(device_record record)
    : record_(std::move(record)), default_stream_(new stream_state(*this, nullptr, false)) {}
backend::~backend() = default;

namespace {
// Whoever counts to 0 has to see what the others did before they counted.
template <class State> void count_down(State& s) noexcept {
  if (s.handles.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &s;
}
} // namespace
void retain(stream_state& s) noexcept { s.handles.fetch_add(1, std::memory_order_relaxed); }
void retain(event_state& s) noexcept { s.handles.fetch_add(1, std::memory_order_relaxed); }
void release(stream_state& s) noexcept { count_down(s); }
void release(event_state& s) noexcept { count_down(s); }

stream_state::~stream_state() {
  if (destroy) owner->destroy_stream(native);
}

void stream_state::fail(std::exception_ptr failure) noexcept {
  std::lock_guard lock(guard_);
  if (!failure_) failure_ = std::move(failure);
  failed_.store(true, std::memory_order_release);
}

void stream_state::throw_failure() {
  owner->throw_kernel_failure(native);
  if (!failed_.load(std::memory_order_acquire)) return;
  std::exception_ptr failure;
  {
    std::lock_guard lock(guard_);
    failure = std::exchange(failure_, nullptr);
    failed_.store(false, std::memory_order_relaxed);
  }
  if (failure) std::rethrow_exception(failure);
}

void stream_state::synchronize() {
  owner->synchronize(native);
  throw_failure();
}

} // namespace detail

stream::stream(device const& where) : state_(where.get_backend().default_stream()) {}

stream stream::create(device const& where) {
  auto& b = where.get_backend();
  return stream(detail::handle(new detail::stream_state(b, b.create_stream(), true)));
}

namespace {

/// One handle for a stream of each host thread: nothing can be kept for it.
void refuse_per_thread_stream(void const* native) {
  if (reinterpret_cast<std::uintptr_t>(native) == 2)
    throw error("stream::borrow: the per-thread default stream is another one in each host thread; make one with stream::create");
}

} // namespace

stream stream::borrow(CUstream_st* native) {
  refuse_per_thread_stream(native);
  return stream(
      detail::handle(new detail::stream_state(detail::backend_of_stream(device_kind::cuda, native), native, false)));
}

stream stream::borrow(ihipStream_t* native) {
  refuse_per_thread_stream(native);
  return stream(
      detail::handle(new detail::stream_state(detail::backend_of_stream(device_kind::hip, native), native, false)));
}

device stream::get_device() const { return device(*state_->owner); }
void* stream::native() const { return state_->native; }
void stream::synchronize() const { state_->synchronize(); }

void stream::wait(event const& mark) const {
  if (mark.state_->owner->record().kind != state_->owner->record().kind)
    throw error("stream::wait: the event is of " + device(*mark.state_->owner).id() + ", the stream of " +
                get_device().id());
  if (mark.state_->recorded) state_->owner->wait_event(state_->native, mark.state_->native);
}

event::event(device const& where) : state_(new detail::event_state(where.get_backend())) {}

void event::record(stream const& s) {
  if (s.state().owner != state_->owner)
    throw error("event::record: the event is of " + device(*state_->owner).id() + ", the stream of " +
                s.get_device().id());
  state_->owner->record_event(state_->native, s.native());
  state_->recorded = true;
}

bool event::done() const { return !state_->recorded || state_->owner->event_done(state_->native); }

void event::synchronize() const {
  if (state_->recorded) state_->owner->synchronize_event(state_->native);
}

double seconds_between(event const& begin, event const& end) {
  if (begin.state_->owner != end.state_->owner || !begin.state_->recorded || !end.state_->recorded)
    throw error("seconds_between: two recorded events of one device are needed");
  end.synchronize();
  return begin.state_->owner->seconds_between(begin.state_->native, end.state_->native);
}

} // namespace kiln
