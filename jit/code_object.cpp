// lld as a library. Objects come from a memory file and go into a pipe, since lld knows only paths.
#include "code_object.hpp"

#include "machine.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <lld/Common/CommonLinkerContext.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <mutex>
#include <stdexcept>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

namespace kiln::jit {

namespace {

std::runtime_error system_error(const char* what) {
  return std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

class descriptor {
public:
  explicit descriptor(int fd) : fd_(fd) {}
  ~descriptor() { close(); }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
  int fd_;
};

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw system_error("write to a memory file");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string read_to_end(int fd) {
  std::string bytes;
  char chunk[65536];
  for (;;) {
    const ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return bytes; // a short image does not parse, so an error here does not stay hidden
    bytes.append(chunk, static_cast<std::size_t>(n));
  }
}

} // namespace

std::string link_code_object(std::string_view object) {
  start_all_targets();
  const descriptor in(memfd_create("kiln-object", MFD_CLOEXEC));
  if (in.get() < 0) throw system_error("memfd_create");
  write_all(in.get(), object);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw system_error("pipe2");
  const descriptor from(ends[0]);
  descriptor to(ends[1]);
  const std::string in_path = in.path(), out_path = to.path();
  // lld replaces a regular output file by another one, but writes a pipe in place. --threads=1: no pool for small work.
  const char* const args[] = {"ld.lld",          "-shared", "--no-undefined", "--threads=1",
                              "--build-id=none", "-o",      out_path.c_str(), in_path.c_str()};
  std::string image;
  std::thread reader([&] { image = read_to_end(from.get()); });
  std::string messages;
  bool ok = false;
  {
    static std::mutex turn;
    const std::lock_guard lock(turn);
    llvm::raw_string_ostream os(messages);
    ok = lld::elf::link(args, os, os, /*exitEarly=*/false, /*disableOutput=*/false);
    lld::CommonLinkerContext::destroy();
  }
  to.close(); // the reader sees the end
  reader.join();
  if (!ok) throw std::runtime_error(messages.empty() ? "lld failed without a message" : messages);
  if (image.empty()) throw std::runtime_error("lld wrote no code object");
  return image;
}

} // namespace kiln::jit
