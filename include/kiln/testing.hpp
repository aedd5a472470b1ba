// For the tests of programs that use kiln: expectations about `kiln::check` in GoogleTest. With another framework:
// `check(...).throw_if_faulty()`.
//
//   EXPECT_CLEAN(kiln::check(my_kernel, grid(4), x, y, z, n));
//   EXPECT_CLEAN(kiln::check({.seeds = 1000}, my_kernel, grid(4), x, y, z, n));
//
// A failure prints every fault with its line, and the seed and policy that show it again.
#pragma once
#include <kiln/interpreter/check.hpp>

/// Expects a report without faults; may be followed by `<< "more words"`.
#define EXPECT_CLEAN(...)                                                                                              \
  switch (0)                                                                                                           \
  case 0:                                                                                                              \
  default:                                                                                                             \
    if (::kiln::interpreter::report const kiln_report = (__VA_ARGS__); kiln_report.clean()) {                           \
    } else                                                                                                             \
      ADD_FAILURE() << kiln_report.text()

/// The same, and the test ends.
#define ASSERT_CLEAN(...)                                                                                              \
  switch (0)                                                                                                           \
  case 0:                                                                                                              \
  default:                                                                                                             \
    if (::kiln::interpreter::report const kiln_report = (__VA_ARGS__); kiln_report.clean()) {                           \
    } else                                                                                                             \
      FAIL() << kiln_report.text()
