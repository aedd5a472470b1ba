// Reports the version of the library; the build passes it in, and the headers' constants must agree.
#include "kiln/version.hpp"

#define KILN_STRINGIFY_ARGUMENT(x) #x
#define KILN_STRINGIFY(x) KILN_STRINGIFY_ARGUMENT(x)

namespace kiln {

static_assert(version_major == KILN_VERSION_MAJOR && version_minor == KILN_VERSION_MINOR &&
                  version_patch == KILN_VERSION_PATCH,
              "include/kiln/version.hpp and the project's version in CMakeLists.txt differ");

char const* version() noexcept {
  return KILN_STRINGIFY(KILN_VERSION_MAJOR) "." KILN_STRINGIFY(KILN_VERSION_MINOR) "." KILN_STRINGIFY(
      KILN_VERSION_PATCH);
}

} // namespace kiln
