// The version of kiln: of these headers (constants) and of the library that is loaded (a function).
#pragma once

#include "kiln/export.hpp"

namespace kiln {

inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;
inline constexpr int version_patch = 0;

/// The version of the loaded library as "major.minor.patch".
/// A program compares it with the constants above to see whether it was built against these headers.
KILN_API char const* version() noexcept;

} // namespace kiln
