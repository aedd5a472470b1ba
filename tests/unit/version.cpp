// The library that is loaded is the one whose headers were compiled.
#include "kiln/version.hpp"

#include <gtest/gtest.h>

#include <string>

TEST(version, library_agrees_with_headers) {
  auto expected = std::to_string(kiln::version_major) + "." + std::to_string(kiln::version_minor) + "." +
                  std::to_string(kiln::version_patch);
  EXPECT_EQ(kiln::version(), expected);
}
