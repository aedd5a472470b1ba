// Devices are found, parsed and named; streams and events behave on the host as they do on a GPU.
#include "kiln/runtime/device.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "kiln/runtime/error.hpp"
#include "kiln/runtime/stream.hpp"
#include "src/runtime/backend.hpp"

using namespace kiln;

namespace {

std::string message_of(auto&& action) {
  try {
    action();
  } catch (error const& e) { return e.what(); }
  return "no error";
}

} // namespace

TEST(device, the_host_is_always_there_and_listed_last) {
  auto all = device::all();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back(), device::host());
  EXPECT_EQ(device(), device::host());
  auto host = device::host();
  EXPECT_EQ(host.kind(), device_kind::host);
  EXPECT_TRUE(host.is_host());
  EXPECT_EQ(host.id(), "host");
  EXPECT_EQ(host.target(), targets::host);
  EXPECT_FALSE(host.name().empty());
  EXPECT_GT(host.memory_bytes(), i64{1} << 20);
  EXPECT_GE(host.multiprocessors(), 1);
}

TEST(device, every_listed_device_parses_to_itself) {
  for (auto const& d : device::all()) {
    EXPECT_EQ(device::parse(d.id()), d) << d.id();
    EXPECT_FALSE(d.name().empty());
    EXPECT_GT(d.memory_bytes(), 0);
    EXPECT_GT(d.multiprocessors(), 0);
    EXPECT_EQ(d.is_host(), d.target().is_host());
  }
}

TEST(device, what_is_not_there_is_refused_with_the_reason) {
  for (auto bad :
       {"", "gpu", "cpu", "host:0", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda1", "hip:99999999999", "CUDA"})
    EXPECT_EQ(message_of([&] { device::parse(bad); }),
              std::string("device '") + bad + "': expected host, cuda, cuda:N, hip or hip:N");
  for (auto kind : {"cuda", "hip"}) {
    std::string far = std::string(kind) + ":4000";
    EXPECT_EQ(message_of([&] { device::parse(far); }).rfind(kind, 0), 0u) << "the message names the device or driver";
  }
}

TEST(device, each_kind_is_listed_or_explained) {
  for (auto kind : {device_kind::cuda, device_kind::hip}) {
    bool listed = false, explained = false;
    std::string name = kind == device_kind::cuda ? "cuda" : "hip";
    for (auto const& d : device::all()) listed |= d.kind() == kind;
    for (auto const& line : device::unusable()) explained |= line.starts_with(name + ":");
    // A driver without devices is neither: then parsing says how many there are.
    if (!listed && !explained) {
      EXPECT_NE(message_of([&] { device::parse(name); }).find("lists 0 devices"), std::string::npos);
    }
  }
}

TEST(device, best_follows_the_environment) {
  ::setenv("KILN_DEVICE", "host", 1);
  EXPECT_EQ(device::best(), device::host());
  ::setenv("KILN_DEVICE", "abacus", 1);
  EXPECT_EQ(message_of([] { device::best(); }),
            "KILN_DEVICE: device 'abacus': expected host, cuda, cuda:N, hip or hip:N");
  ::unsetenv("KILN_DEVICE");
  EXPECT_EQ(device::best(), device::all().front());
}

TEST(stream, default_and_created_streams) {
  stream first(device::host()), second(device::host());
  EXPECT_EQ(&first.state(), &second.state());
  EXPECT_EQ(first.native(), nullptr);
  auto mine = stream::create(device::host()), other = stream::create(device::host());
  EXPECT_NE(mine.native(), nullptr);
  EXPECT_NE(mine.native(), other.native());
  EXPECT_EQ(mine.get_device(), device::host());
  mine.synchronize();
  device::host().synchronize();
}

TEST(stream, a_failure_is_reported_once_where_somebody_waits) {
  auto s = stream::create(device::host());
  s.state().fail(std::make_exception_ptr(assertion_error("first")));
  s.state().fail(std::make_exception_ptr(assertion_error("second")));
  EXPECT_EQ(message_of([&] { s.synchronize(); }), "first");
  EXPECT_EQ(message_of([&] { s.synchronize(); }), "no error");
}

TEST(stream, borrowing_needs_a_driver) {
  if (auto d = device::all().front(); d.is_host()) {
    EXPECT_NE(message_of([] { stream::borrow(static_cast<CUstream_st*>(nullptr)); }).find("stream::borrow: cuda:"),
              std::string::npos);
    EXPECT_NE(message_of([] { stream::borrow(static_cast<ihipStream_t*>(nullptr)); }).find("stream::borrow: hip:"),
              std::string::npos);
  } else {
    GTEST_SKIP() << "a GPU is here; gpu_runtime covers borrowing";
  }
}

TEST(event, marks_time_on_a_stream) {
  auto s = stream::create(device::host());
  event begin(device::host()), end(device::host());
  EXPECT_TRUE(begin.done());
  EXPECT_EQ(message_of([&] { seconds_between(begin, end); }),
            "seconds_between: two recorded events of one device are needed");
  begin.record(s);
  end.record(s);
  s.wait(end);
  end.synchronize();
  EXPECT_TRUE(end.done());
  EXPECT_GE(seconds_between(begin, end), 0.0);
  EXPECT_LT(seconds_between(begin, end), 10.0);
}
