// Writing and checking of cache files. Numbers are in the machine's own byte order: a file from a machine of the other
// order has a format number that does not match, and the machine code in it would be of no use anyway.
#include "entry_file.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace kiln::detail {

namespace {

constexpr char magic[8] = {'K', 'I', 'L', 'N', 'I', 'M', 'G', '\n'};
constexpr std::uint32_t format = 1;

struct header {
  char magic[8];
  std::uint32_t format;
  std::uint32_t header_bytes;
  char kiln_version[24];
  char llvm_version[24];
  std::uint64_t key_bytes, meta_bytes, image_bytes;
};
static_assert(sizeof(header) == 88, "the header is written as it lies in memory, so it has no padding");

struct checksum {
  std::uint64_t high, low;
};

void copy_text(char (&to)[24], std::string_view from) {
  std::memset(to, 0, sizeof to);
  std::memcpy(to, from.data(), std::min(from.size(), sizeof to - 1));
}

template <typename T> void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

} // namespace

std::string write_entry(const entry_parts& parts, std::string_view kiln_version, std::string_view llvm_version) {
  header h = {};
  std::memcpy(h.magic, magic, sizeof magic);
  h.format = format;
  h.header_bytes = sizeof h;
  copy_text(h.kiln_version, kiln_version);
  copy_text(h.llvm_version, llvm_version);
  h.key_bytes = parts.key.size();
  h.meta_bytes = parts.meta.size();
  h.image_bytes = parts.image.size();
  std::string bytes;
  bytes.reserve(sizeof h + parts.key.size() + parts.meta.size() + parts.image.size() + sizeof(checksum));
  append(bytes, h);
  bytes += parts.key;
  bytes += parts.meta;
  bytes += parts.image;
  const hash128 sum = hash_bytes(bytes);
  append(bytes, checksum{sum.high, sum.low});
  return bytes;
}

std::optional<entry_parts> read_entry(std::string_view bytes, std::string& fault) {
  header h;
  if (bytes.size() < sizeof h + sizeof(checksum)) return fault = "truncated", std::nullopt;
  std::memcpy(&h, bytes.data(), sizeof h);
  if (std::memcmp(h.magic, magic, sizeof magic) != 0) return fault = "not a kiln cache entry", std::nullopt;
  if (h.format != format || h.header_bytes != sizeof h) return fault = "written by another version", std::nullopt;
  // Each length alone first, so that the sum cannot wrap.
  const std::uint64_t rest = bytes.size() - sizeof h - sizeof(checksum);
  if (h.key_bytes > rest || h.meta_bytes > rest || h.image_bytes > rest ||
      h.key_bytes + h.meta_bytes + h.image_bytes != rest)
    return fault = "truncated", std::nullopt;
  checksum stored;
  std::memcpy(&stored, bytes.data() + bytes.size() - sizeof stored, sizeof stored);
  const hash128 sum = hash_bytes(bytes.substr(0, bytes.size() - sizeof stored));
  if (sum != hash128{stored.high, stored.low}) return fault = "checksum differs", std::nullopt;
  entry_parts parts;
  parts.key = bytes.substr(sizeof h, h.key_bytes);
  parts.meta = bytes.substr(sizeof h + h.key_bytes, h.meta_bytes);
  parts.image = bytes.substr(sizeof h + h.key_bytes + h.meta_bytes, h.image_bytes);
  return parts;
}

} // namespace kiln::detail
