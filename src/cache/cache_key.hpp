// What identifies an image: a list of named fields, compared in full, with a 128-bit hash that names the file.
#pragma once

#include <cstdint>
#include <kiln/export.hpp>
#include <kiln/graph/hash.hpp>
#include <string>
#include <string_view>

namespace kiln {

/// XXH3 of any bytes.
KILN_INTERNAL_API hash128 hash_bytes(std::string_view bytes);

/// Collects everything that decides an image. Order matters; values may hold any bytes, and no two different lists of
/// fields have the same `bytes()`.
class KILN_INTERNAL_API cache_key {
public:
  cache_key& add(std::string_view field, std::string_view value);
  cache_key& add(std::string_view field, std::int64_t value);

  /// The fields as lines "length:name length=value": readable where the values are.
  std::string_view bytes() const { return bytes_; }
  hash128 hash() const { return hash_bytes(bytes_); }

private:
  std::string bytes_;
};

} // namespace kiln
