// The assembler's log.
#include "src/runtime/assembler_log.hpp"

#include <algorithm>
#include <charconv>

namespace kiln::detail {

namespace {

// The number in front of `words` ("16 bytes stack frame"), or -1.
i64 number_before(std::string_view line, std::string_view words) {
  auto at = line.find(words);
  if (at == std::string_view::npos || at == 0) return -1;
  auto end = at;
  while (end > 0 && line[end - 1] == ' ') --end;
  auto begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  i64 value = -1;
  std::from_chars(line.data() + begin, line.data() + end, value);
  return value;
}

bool contains(std::string_view line, std::string_view word) { return line.find(word) != std::string_view::npos; }

// Remarks that the assembler does not call warnings but that cost a kernel its speed: wgmma that is serialised, setmaxnreg that is ignored.
constexpr std::string_view costly[] = {"C7508", "C7510", "Potential Performance Loss"};

} // namespace

assembler_report read_assembler_log(std::string_view log) {
  assembler_report r;
  while (!log.empty()) {
    auto end = log.find('\n');
    std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r' || line.back() == '\0')) line.remove_suffix(1);

    if (i64 n = number_before(line, "registers"); n >= 0 && contains(line, "Used")) {
      r.known = true;
      r.registers = std::max(r.registers, static_cast<int>(n));
    }
    auto largest = [&](i64& to, std::string_view words) { to = std::max(to, number_before(line, words)); };
    largest(r.stack_bytes, "bytes stack frame");
    largest(r.spill_store_bytes, "bytes spill stores");
    largest(r.spill_load_bytes, "bytes spill loads");

    bool warn = contains(line, "warning") || contains(line, "Warning");
    for (std::string_view code : costly) warn |= contains(line, code);
    if (warn && std::find(r.warnings.begin(), r.warnings.end(), line) == r.warnings.end()) r.warnings.emplace_back(line);
  }
  if (r.spill_store_bytes + r.spill_load_bytes > 0)
    r.warnings.insert(r.warnings.begin(), "registers spill: " + std::to_string(r.spill_store_bytes) + " bytes stored and " +
                                              std::to_string(r.spill_load_bytes) +
                                              " loaded by each thread; use smaller tiles or more warps");
  return r;
}

} // namespace kiln::detail
