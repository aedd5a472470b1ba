// The bytes of one cache file: header, key, meta, image, checksum over all that.
#pragma once

#include "cache_key.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace kiln::detail {

struct entry_parts {
  std::string_view key, meta, image;
};

KILN_INTERNAL_API std::string write_entry(const entry_parts& parts, std::string_view kiln_version,
                                          std::string_view llvm_version);

/// The parts, pointing into `bytes`; or nothing, and `fault` says why.
KILN_INTERNAL_API std::optional<entry_parts> read_entry(std::string_view bytes, std::string& fault);

} // namespace kiln::detail
