// Key text and hash.
#include "cache_key.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kiln {

hash128 hash_bytes(std::string_view bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.high64, h.low64};
}

cache_key& cache_key::add(std::string_view field, std::string_view value) {
  bytes_ += std::to_string(field.size());
  bytes_ += ':';
  bytes_ += field;
  bytes_ += ' ';
  bytes_ += std::to_string(value.size());
  bytes_ += '=';
  bytes_ += value;
  bytes_ += '\n';
  return *this;
}

cache_key& cache_key::add(std::string_view field, std::int64_t value) { return add(field, std::to_string(value)); }

} // namespace kiln
