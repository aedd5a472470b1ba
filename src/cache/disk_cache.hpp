// Images on disk: one file per entry in a private directory, shared by any number of threads and processes. A file is
// complete or absent (written aside, then renamed), carries its whole key and a checksum, and is believed only if all
// of that is right. Nothing here can fail a program: what cannot be read is a miss, what cannot be written is one
// warning.
#pragma once

#include "cache_key.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <kiln/export.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct KILN_INTERNAL_API cache_options {
  bool enabled = true;
  std::string directory;
  /// Bound on the sum of all files; past it the entries that were used longest ago go.
  std::uint64_t max_bytes = std::uint64_t{512} << 20;
  /// Versions of the code generators. Part of every key, so that versions live side by side.
  std::string kiln_version, llvm_version;
  /// Receives each warning, at most one of a kind in the life of a cache; by default it goes to stderr.
  std::function<void(const std::string&)> warn;

  /// KILN_CACHE (on or off), KILN_CACHE_DIR (else $XDG_CACHE_HOME/kiln, else ~/.cache/kiln) and KILN_CACHE_MAX_MB.
  static cache_options from_environment(std::string kiln_version, std::string llvm_version,
                                        std::function<void(const std::string&)> warn = {});
};

struct cache_entry {
  std::string meta; ///< whatever the writer wants to know again: image kind, what the assembler said
  std::string image;
};

struct cache_stats {
  std::uint64_t entries = 0, bytes = 0;             ///< in the directory, now
  std::uint64_t hits = 0, misses = 0, rejected = 0; ///< of this object; rejected entries count as misses too
  std::uint64_t stores = 0, evicted = 0;            ///< of this object
};

struct cache_entry_info {
  std::string file;
  std::uint64_t bytes = 0;
  std::chrono::system_clock::time_point last_used;
  std::string key;   ///< the full key; empty for a bad entry
  std::string fault; ///< why the entry is bad, or empty
};

/// All functions may be called from any thread.
class KILN_INTERNAL_API disk_cache {
public:
  explicit disk_cache(cache_options options);
  ~disk_cache();
  disk_cache(const disk_cache&) = delete;
  disk_cache& operator=(const disk_cache&) = delete;

  /// The entry of exactly this key. A truncated, corrupt or foreign file is a miss; the next `put` replaces it.
  std::optional<cache_entry> get(const cache_key& key);

  /// Stores an entry, replacing what is there. False when it was not stored.
  bool put(const cache_key& key, std::string_view meta, std::string_view image);

  /// Whether entries can be read and written at all: enabled, and the directory, if there is one, is private.
  bool enabled();
  const cache_options& options() const { return options_; }

  cache_stats stats();
  /// Reads and checks every entry of every version.
  std::vector<cache_entry_info> verify();
  /// Removes all entries and left-over temporary files; returns how many.
  std::uint64_t clear();

private:
  struct directory;
  enum warning : unsigned { unusable_directory = 1, write_failed = 2 };

  std::shared_ptr<directory> open(bool create);
  std::string full_key(const cache_key& key) const;
  bool write(directory& dir, const std::string& name, const std::string& bytes, int& error);
  void sweep(directory& dir);
  void warn_once(warning kind, const std::string& text);

  cache_options options_;
  std::mutex mutex_; // the directory handle
  std::shared_ptr<directory> directory_;
  bool refused_ = false;
  std::mutex sweep_mutex_;
  std::uint64_t bytes_known_ = 0, puts_since_sweep_ = 0;
  bool swept_ = false;
  std::atomic<unsigned> warned_ = 0;
  std::atomic<std::uint64_t> hits_ = 0, misses_ = 0, rejected_ = 0, stores_ = 0, evicted_ = 0, serial_ = 0;
};

} // namespace kiln
