// The cache directory: opening it safely, reading, writing aside and renaming, and keeping it within its size.
#include "disk_cache.hpp"

#include "entry_file.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {

namespace {

constexpr std::string_view suffix = ".kiln", temporary = ".tmp-";
constexpr std::uint64_t puts_between_sweeps = 64; // other processes write too, so what we know of the size ages
constexpr time_t stale_seconds = 3600;            // no writer takes an hour
constexpr time_t touch_seconds = 60;              // a finer order of use is not worth a write per hit

class file {
public:
  explicit file(int fd) : fd_(fd) {}
  ~file() {
    if (fd_ >= 0) ::close(fd_);
  }
  file(const file&) = delete;
  file& operator=(const file&) = delete;
  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  /// Closes now; false when the file system reports only here that it could not write.
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0 || errno == EINTR;
  }

private:
  int fd_;
};

// The whole file, or nothing: also when it is not a plain file or changes its size meanwhile.
std::optional<std::string> read_file(int dir, const std::string& name, struct stat& info, bool touch) {
  const file f(openat(dir, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!f || fstat(f.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::read(f.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    done += static_cast<std::size_t>(n);
  }
  if (touch && time(nullptr) - info.st_mtime > touch_seconds) (void)futimens(f.get(), nullptr);
  return bytes;
}

struct listed {
  std::string name;
  std::uint64_t bytes;
  struct timespec used;
};

bool is_entry(std::string_view name) { return name.ends_with(suffix) && !name.starts_with(temporary); }
bool is_temporary(std::string_view name) { return name.starts_with(temporary); }

template <typename Wanted> std::vector<listed> list(int dir, Wanted wanted) {
  std::vector<listed> files;
  const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); // an own position in the directory
  DIR* stream = fd >= 0 ? fdopendir(fd) : nullptr;
  if (stream == nullptr) {
    if (fd >= 0) ::close(fd);
    return files;
  }
  while (const dirent* d = readdir(stream)) {
    struct stat info = {};
    if (!wanted(d->d_name) || fstatat(dir, d->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode))
      continue;
    files.push_back({d->d_name, static_cast<std::uint64_t>(info.st_size), info.st_mtim});
  }
  closedir(stream);
  return files;
}

// Creates the path with directories that only we may enter.
int make_directories(const std::string& path) {
  for (std::size_t at = 0; at != path.npos;) {
    at = path.find('/', at + 1);
    if (mkdir(path.substr(0, at).c_str(), 0700) == 0 || errno == EEXIST) continue;
    const int error = errno;
    struct stat info = {}; // a parent that exists may still be in a place where nothing can be made
    if (stat(path.substr(0, at).c_str(), &info) != 0) return error;
  }
  return 0;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

void default_warn(const std::string& text) { std::fprintf(stderr, "kiln: %s\n", text.c_str()); }

} // namespace

struct disk_cache::directory {
  explicit directory(int fd) : handle(fd) {}
  file handle;
};

cache_options cache_options::from_environment(std::string kiln_version, std::string llvm_version,
                                              std::function<void(const std::string&)> warn) {
  cache_options o;
  o.kiln_version = std::move(kiln_version);
  o.llvm_version = std::move(llvm_version);
  o.warn = warn ? std::move(warn) : default_warn;
  const std::string mode = environment("KILN_CACHE");
  if (mode == "off" || mode == "0") o.enabled = false;
  else if (!mode.empty() && mode != "on" && mode != "1")
    o.warn("KILN_CACHE=" + mode + " is neither on nor off; the cache stays on");
  if (const std::string dir = environment("KILN_CACHE_DIR"); !dir.empty()) o.directory = dir;
  else if (const std::string xdg = environment("XDG_CACHE_HOME"); xdg.starts_with('/')) o.directory = xdg + "/kiln";
  else if (const std::string home = environment("HOME"); !home.empty()) o.directory = home + "/.cache/kiln";
  else if (o.enabled) {
    o.enabled = false;
    o.warn("no disk cache: neither KILN_CACHE_DIR nor HOME is set");
  }
  if (const std::string text = environment("KILN_CACHE_MAX_MB"); !text.empty()) {
    std::uint64_t megabytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), megabytes);
    if (error == std::errc() && end == text.data() + text.size() && megabytes <= (UINT64_MAX >> 20))
      o.max_bytes = megabytes << 20;
    else o.warn("KILN_CACHE_MAX_MB=" + text + " is no number of megabytes; the bound stays at 512");
  }
  return o;
}

disk_cache::disk_cache(cache_options options) : options_(std::move(options)) {
  if (!options_.warn) options_.warn = default_warn;
  while (options_.directory.size() > 1 && options_.directory.ends_with('/')) options_.directory.pop_back();
  if (options_.max_bytes == 0 || options_.directory.empty()) options_.enabled = false;
}

disk_cache::~disk_cache() = default;

void disk_cache::warn_once(warning kind, const std::string& text) {
  if ((warned_.fetch_or(kind) & kind) == 0) options_.warn(text);
}

// Without `create`, a directory that does not exist is no reason to make one.
std::shared_ptr<disk_cache::directory> disk_cache::open(bool create) {
  if (!options_.enabled) return nullptr;
  const std::lock_guard lock(mutex_);
  if (directory_ != nullptr || refused_) return directory_;
  const std::string& path = options_.directory;
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) {
    if (!create) return nullptr;
    if (const int error = make_directories(path); error != 0) errno = error;
    else fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  if (fd < 0) {
    refused_ = true;
    warn_once(unusable_directory, "no disk cache: cannot open '" + path + "': " + std::strerror(errno));
    return nullptr;
  }
  auto dir = std::make_shared<directory>(fd);
  struct stat info = {};
  // Whoever can write here can have code run in this process.
  if (fstat(fd, &info) != 0 || (info.st_uid != geteuid() && info.st_uid != 0) ||
      (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    refused_ = true;
    warn_once(unusable_directory, "no disk cache: others can write into '" + path + "'; make it private (chmod go-w '" +
                                      path + "') or set KILN_CACHE_DIR to a directory of your own");
    return nullptr;
  }
  return directory_ = std::move(dir);
}

bool disk_cache::enabled() {
  (void)open(false);
  const std::lock_guard lock(mutex_);
  return options_.enabled && !refused_;
}

std::string disk_cache::full_key(const cache_key& key) const {
  cache_key versions;
  versions.add("kiln", options_.kiln_version).add("llvm", options_.llvm_version);
  return std::string(versions.bytes()) + std::string(key.bytes());
}

std::optional<cache_entry> disk_cache::get(const cache_key& key) {
  const auto dir = open(false);
  if (dir == nullptr) return ++misses_, std::nullopt;
  const std::string wanted = full_key(key);
  struct stat info = {};
  const auto bytes = read_file(dir->handle.get(), to_string(hash_bytes(wanted)) + std::string(suffix), info, true);
  if (!bytes) return ++misses_, std::nullopt;
  std::string fault;
  const auto parts = detail::read_entry(*bytes, fault);
  if (!parts || parts->key != wanted) return ++rejected_, ++misses_, std::nullopt;
  ++hits_;
  return cache_entry{std::string(parts->meta), std::string(parts->image)};
}

// Aside first, then renamed: a reader sees the old file, the new one or none. No fsync: after a power failure a damaged
// entry is found by its checksum and made again.
bool disk_cache::write(directory& dir, const std::string& name, const std::string& bytes, int& error) {
  const int d = dir.handle.get();
  const std::string aside =
      std::string(temporary) + std::to_string(getpid()) + "-" + std::to_string(reinterpret_cast<std::uintptr_t>(this)) +
      "-" + std::to_string(++serial_) + "-" +
      to_string(hash_bytes(std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()))).substr(0, 8);
  file f(openat(d, aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!f) return error = errno, false;
  bool ok = true;
  for (std::size_t done = 0; ok && done < bytes.size();) {
    const ssize_t n = ::write(f.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    ok = n > 0;
    if (ok) done += static_cast<std::size_t>(n);
    else error = n == 0 ? ENOSPC : errno;
  }
  if (!f.close() && ok) ok = false, error = errno;
  if (ok && renameat(d, aside.c_str(), d, name.c_str()) != 0) ok = false, error = errno;
  if (!ok) unlinkat(d, aside.c_str(), 0);
  return ok;
}

bool disk_cache::put(const cache_key& key, std::string_view meta, std::string_view image) {
  auto dir = open(true);
  if (dir == nullptr) return false;
  const std::string wanted = full_key(key), name = to_string(hash_bytes(wanted)) + std::string(suffix);
  const std::string bytes = detail::write_entry({wanted, meta, image}, options_.kiln_version, options_.llvm_version);
  if (bytes.size() > options_.max_bytes) return false;
  int error = 0;
  bool ok = write(*dir, name, bytes, error);
  if (!ok && error == ENOENT) { // somebody removed the directory under us: once more, in a new one
    {
      const std::lock_guard lock(mutex_);
      if (directory_ == dir) directory_ = nullptr;
    }
    dir = open(true);
    if (dir == nullptr) return false;
    ok = write(*dir, name, bytes, error);
  }
  if (!ok) {
    warn_once(write_failed, "cannot write into the disk cache '" + options_.directory + "': " + std::strerror(error) +
                                "; going on without storing");
    return false;
  }
  ++stores_;
  const std::lock_guard lock(sweep_mutex_);
  bytes_known_ += bytes.size();
  if (!swept_ || bytes_known_ > options_.max_bytes || ++puts_since_sweep_ >= puts_between_sweeps) sweep(*dir);
  return true;
}

// Looks at what is there (others write too) and brings it back to 90% of the bound, oldest use first.
void disk_cache::sweep(directory& dir) {
  const int d = dir.handle.get();
  // One sweeper at a time among all processes; whoever comes second has nothing to do.
  const file lock(openat(d, ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock && flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;
  swept_ = true;
  puts_since_sweep_ = 0;
  const time_t now = time(nullptr);
  for (const listed& f : list(d, is_temporary)) // of writers that were killed
    if (now - f.used.tv_sec > stale_seconds) unlinkat(d, f.name.c_str(), 0);
  std::vector<listed> files = list(d, is_entry);
  std::uint64_t total = 0;
  for (const listed& f : files) total += f.bytes;
  if (total > options_.max_bytes) {
    std::sort(files.begin(), files.end(), [](const listed& a, const listed& b) {
      return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
    });
    for (const listed& f : files) {
      if (total <= options_.max_bytes / 10 * 9) break;
      if (unlinkat(d, f.name.c_str(), 0) == 0) ++evicted_;
      total -= f.bytes;
    }
  }
  bytes_known_ = total;
}

cache_stats disk_cache::stats() {
  cache_stats s;
  s.hits = hits_;
  s.misses = misses_;
  s.rejected = rejected_;
  s.stores = stores_;
  s.evicted = evicted_;
  if (const auto dir = open(false))
    for (const listed& f : list(dir->handle.get(), is_entry)) {
      ++s.entries;
      s.bytes += f.bytes;
    }
  return s;
}

std::vector<cache_entry_info> disk_cache::verify() {
  std::vector<cache_entry_info> all;
  const auto dir = open(false);
  if (dir == nullptr) return all;
  for (const listed& f : list(dir->handle.get(), is_entry)) {
    struct stat info = {};
    const auto bytes = read_file(dir->handle.get(), f.name, info, false);
    if (!bytes) continue; // gone meanwhile
    cache_entry_info e{
        f.name, f.bytes,
        std::chrono::system_clock::from_time_t(f.used.tv_sec) +
            std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::nanoseconds(f.used.tv_nsec)),
        "", ""};
    if (const auto parts = detail::read_entry(*bytes, e.fault)) {
      if (to_string(hash_bytes(parts->key)) + std::string(suffix) == f.name) e.key = parts->key;
      else e.fault = "the file's name does not belong to its key";
    }
    all.push_back(std::move(e));
  }
  return all;
}

std::uint64_t disk_cache::clear() {
  std::uint64_t removed = 0;
  const auto dir = open(false);
  if (dir == nullptr) return removed;
  for (const listed& f : list(dir->handle.get(), [](std::string_view n) { return is_entry(n) || is_temporary(n); }))
    if (unlinkat(dir->handle.get(), f.name.c_str(), 0) == 0) ++removed;
  const std::lock_guard lock(sweep_mutex_);
  bytes_known_ = 0;
  return removed;
}

} // namespace kiln
