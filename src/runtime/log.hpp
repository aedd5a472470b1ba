// KILN_LOG=compile,passes,tune: what is worth telling about, on stderr, one line at a time.
#pragma once

#include <string_view>

#include "kiln/export.hpp"

namespace kiln {

enum class log_topic { compile, passes, tune };

/// Whether KILN_LOG names the topic (a comma-separated list, read once).
KILN_INTERNAL_API bool log_enabled(log_topic topic);

/// Writes "kiln: text" and a line end, whole, if the topic is on and the text is not empty.
KILN_INTERNAL_API void log_line(log_topic topic, std::string_view text);

} // namespace kiln
