// KILN_LOG.
#include "src/runtime/log.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace kiln {

namespace {
unsigned topics() {
  static unsigned const bits = [] {
    char const* text = std::getenv("KILN_LOG");
    std::string_view rest = text ? text : "";
    unsigned b = 0;
    while (!rest.empty()) {
      auto comma = rest.find(',');
      auto word = rest.substr(0, comma);
      if (word == "compile") b |= 1u << static_cast<int>(log_topic::compile);
      if (word == "passes") b |= 1u << static_cast<int>(log_topic::passes);
      if (word == "tune") b |= 1u << static_cast<int>(log_topic::tune);
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    }
    return b;
  }();
  return bits;
}
} // namespace

bool log_enabled(log_topic topic) { return topics() >> static_cast<int>(topic) & 1; }

void log_line(log_topic topic, std::string_view text) {
  if (!log_enabled(topic) || text.empty()) return;
  std::string line = "kiln: " + std::string(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

} // namespace kiln
