// Reads and writes NumPy's .npy format: magic, version, length-prefixed header (a Python dict literal padded to 64
// bytes), data. Source: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays".
#include "kiln/io/npy.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace kiln {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view magic{"\x93NUMPY", 6};
constexpr std::size_t header_limit = 1 << 20; // a header is a few hundred bytes; more is a damaged length

std::string system_text() { return std::strerror(errno); }

// Number of elements, or nothing where the product, in bytes too, does not fit i64.
std::optional<i64> element_count(dtype type, std::span<i64 const> shape) {
  i64 count = 1;
  for (i64 extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) return 0; // whatever the other extents are
  }
  for (i64 extent : shape)
    if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  i64 bits;
  if (__builtin_mul_overflow(count, i64{storage_bits_of(type)}, &bits)) return std::nullopt;
  return count;
}

std::string shape_text(std::span<i64 const> shape) {
  std::string text = "(";
  for (i64 extent : shape) {
    text += std::to_string(extent);
    text += ", ";
  }
  if (shape.size() > 1) text.resize(text.size() - 2);
  else if (shape.size() == 1) text.pop_back();
  return text + ")";
}

struct header {
  std::string descr;
  bool fortran_order = false;
  std::vector<i64> shape;
};

// Parses the dict literal of the header. Only what NumPy itself writes is accepted: three known keys in any order.
class header_parser {
public:
  header_parser(fs::path const& file, std::string_view text) : file_(file), rest_(text) {}

  header parse() {
    header result;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      std::string key = string();
      expect(':');
      if (key == "descr") {
        if (peek() == '[') throw npy_error(file_, "holds records (a structured dtype); save one plain array per file");
        result.descr = string();
        has_descr = true;
      } else if (key == "fortran_order") {
        result.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape") {
        result.shape = shape();
        has_shape = true;
      } else {
        throw npy_error(file_, "has the unknown key '" + key + "' in its header");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!has_descr || !has_order || !has_shape)
      throw npy_error(file_, "has an incomplete header: descr, fortran_order and shape are needed");
    skip_blanks();
    if (!rest_.empty()) malformed();
    return result;
  }

private:
  [[noreturn]] void malformed() const { throw npy_error(file_, "has a malformed header"); }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }

  char peek() {
    skip_blanks();
    return rest_.empty() ? '\0' : rest_.front();
  }

  bool accept(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!accept(c)) malformed();
  }

  std::string string() {
    char quote = peek();
    if (quote != '\'' && quote != '"') malformed();
    auto end = rest_.find(quote, 1);
    if (end == std::string_view::npos) malformed();
    std::string result(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return result;
  }

  bool boolean() {
    skip_blanks();
    for (bool value : {false, true}) {
      std::string_view name = value ? "True" : "False";
      if (rest_.starts_with(name)) {
        rest_.remove_prefix(name.size());
        return value;
      }
    }
    malformed();
  }

  std::vector<i64> shape() {
    std::vector<i64> result;
    expect('(');
    while (!accept(')')) {
      skip_blanks();
      i64 value = 0;
      std::size_t digits = 0;
      while (digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9') {
        if (__builtin_mul_overflow(value, i64{10}, &value) ||
            __builtin_add_overflow(value, i64{rest_[digits] - '0'}, &value))
          throw npy_error(file_, "has an extent that does not fit 64 bits");
        ++digits;
      }
      if (digits == 0) malformed();
      rest_.remove_prefix(digits);
      result.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }

  fs::path const& file_;
  std::string_view rest_;
};

struct type_name {
  std::string_view descr;
  dtype type;
};

// The first entry of a dtype is what is written. 'V' is what NumPy calls a type that it does not know.
constexpr std::array type_names{
    type_name{"|b1", dtype::b1},     type_name{"|i1", dtype::i8},     type_name{"<i2", dtype::i16},
    type_name{"<i4", dtype::i32},    type_name{"<i8", dtype::i64},    type_name{"|u1", dtype::u8},
    type_name{"<u2", dtype::u16},    type_name{"<u4", dtype::u32},    type_name{"<u8", dtype::u64},
    type_name{"<f2", dtype::f16},    type_name{"<f4", dtype::f32},    type_name{"<f8", dtype::f64},
    type_name{"<u2", dtype::bf16},   type_name{"|u1", dtype::f8e4m3}, type_name{"|u1", dtype::f8e5m2},
    type_name{"<V2", dtype::bf16},   type_name{"|V2", dtype::bf16},   type_name{"|V1", dtype::f8e4m3},
    type_name{"|V1", dtype::f8e5m2}, type_name{"<V1", dtype::f8e4m3}, type_name{"<V1", dtype::f8e5m2},
    type_name{"<i1", dtype::i8},     type_name{"<u1", dtype::u8},     type_name{"<b1", dtype::b1},
};

bool serves(std::string_view descr, dtype wanted) {
  return std::ranges::any_of(type_names, [&](type_name n) { return n.descr == descr && n.type == wanted; });
}

dtype choose_type(fs::path const& file, std::string_view descr, dtype const* expected) {
  if (descr.starts_with('>'))
    throw npy_error(file,
                    "is big-endian (" + std::string(descr) + "); save it with a.astype(a.dtype.newbyteorder('<'))");
  if (expected != nullptr && serves(descr, *expected)) return *expected;
  auto found = std::ranges::find(type_names, descr, &type_name::descr);
  std::string wanted;
  if (expected != nullptr) {
    wanted = name_of(*expected);
    if (*expected == dtype::bf16) wanted += " (saved as u16)";
    if (is_f8(*expected)) wanted += " (saved as u8)";
  }
  if (found == type_names.end())
    throw npy_error(file, "has the element type '" + std::string(descr) + "', which kiln does not have" +
                              (expected != nullptr ? "; expected " + wanted : ""));
  if (expected != nullptr) throw npy_error(file, std::string("holds ") + name_of(found->type) + ", expected " + wanted);
  return found->type;
}

// A file descriptor that closes itself.
class descriptor {
public:
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(descriptor const&) = delete;
  descriptor& operator=(descriptor const&) = delete;
  ~descriptor() { close(); }

  int get() const { return fd_; }
  bool close() {
    int fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0;
  }

private:
  int fd_;
};

// Reads exactly `size` bytes; less than that is left in the file: returns what there was.
std::size_t read_up_to(fs::path const& file, int fd, std::byte* into, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    ssize_t n = ::read(fd, into + done, std::min(size - done, std::size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw npy_error(file, "cannot be read: " + system_text());
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

npy_array read(fs::path const& file, dtype const* expected) {
  descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) throw npy_error(file, "cannot be opened: " + system_text());

  std::array<std::byte, 12> prefix{};
  std::size_t have = read_up_to(file, fd.get(), prefix.data(), 10);
  if (have < magic.size() || std::memcmp(prefix.data(), magic.data(), magic.size()) != 0)
    throw npy_error(file, "is not a .npy file (np.save writes one; .npz and .txt files are something else)");
  if (have < 10) throw npy_error(file, "is truncated: it ends inside the header");
  auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(prefix[i]); };
  std::size_t version = byte(6);
  if (version < 1 || version > 3 || byte(7) != 0)
    throw npy_error(file, "has format version " + std::to_string(version) + "." + std::to_string(byte(7)) + "; versions 1.0, 2.0 and 3.0 are known");
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) {
    if (read_up_to(file, fd.get(), prefix.data() + 10, 2) < 2)
      throw npy_error(file, "is truncated: it ends inside the header");
    length |= byte(10) << 16 | byte(11) << 24;
  }
  if (length > header_limit) throw npy_error(file, "has a malformed header: its length is " + std::to_string(length));
  std::string text(length, '\0');
  if (read_up_to(file, fd.get(), reinterpret_cast<std::byte*>(text.data()), length) < length)
    throw npy_error(file, "is truncated: it ends inside the header");

  header head = header_parser(file, text).parse();
  dtype type = choose_type(file, head.descr, expected);
  auto count = element_count(type, head.shape);
  if (!count) throw npy_error(file, "has the shape " + shape_text(head.shape) + ", which does not fit 64 bits");

  // The size is compared before memory is asked for: a damaged shape must not look like lack of memory.
  i64 wanted = bytes_of(type, *count);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) throw npy_error(file, "cannot be read: " + system_text());
  if (S_ISREG(info.st_mode)) {
    i64 available = static_cast<i64>(info.st_size) - static_cast<i64>(length + (version > 1 ? 12 : 10));
    if (available < wanted)
      throw npy_error(file, "is truncated: shape " + shape_text(head.shape) + " of " + name_of(type) + " needs " +
                                std::to_string(wanted) + " bytes of data, the file has " + std::to_string(available));
    if (available > wanted)
      throw npy_error(file, "has " + std::to_string(available - wanted) + " bytes after the data of shape " +
                                shape_text(head.shape));
  }
  npy_array array(type, std::move(head.shape), head.fortran_order);
  std::size_t got = read_up_to(file, fd.get(), array.data(), static_cast<std::size_t>(wanted));
  if (got < static_cast<std::size_t>(wanted))
    throw npy_error(file, "is truncated: " + std::to_string(wanted) + " bytes of data expected, " +
                              std::to_string(got) + " read");
  return array;
}

// Removes the temporary file unless it was renamed.
struct temporary_file {
  fs::path path;
  bool keep = false;
  ~temporary_file() {
    if (!keep) ::unlink(path.c_str());
  }
};

void write_all(fs::path const& file, int fd, std::span<std::byte const> bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), std::min(bytes.size(), std::size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw npy_error(file, "cannot be written: " + system_text());
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

} // namespace

npy_error::npy_error(fs::path const& file, std::string const& problem)
    : std::runtime_error(file.string() + ": " + problem) {}

npy_array::npy_array(dtype type, std::vector<i64> shape, bool fortran_order)
    : type_(type), fortran_order_(fortran_order), shape_(std::move(shape)) {
  auto count = element_count(type_, shape_);
  if (!count) throw std::invalid_argument("npy_array: the shape " + shape_text(shape_) + " is negative or too large");
  size_ = *count;
  data_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(size_bytes()));
}

std::vector<i64> npy_array::strides() const {
  std::vector<i64> result(shape_.size());
  i64 stride = 1;
  for (std::size_t i = 0; i < shape_.size(); ++i) {
    std::size_t axis = fortran_order_ ? i : shape_.size() - 1 - i;
    result[axis] = stride;
    stride *= std::max<i64>(shape_[axis], 1);
  }
  return result;
}

void npy_array::make_row_major() {
  if (fortran_order_ && rank() > 1 && size_ > 0) {
    auto element_bytes = static_cast<std::size_t>(bytes_of(type_));
    auto from = strides();
    auto reordered = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(size_bytes()));
    std::vector<i64> index(shape_.size(), 0);
    std::byte* out = reordered.get();
    i64 offset = 0;
    for (i64 done = 0; done < size_; ++done, out += element_bytes) {
      std::memcpy(out, data_.get() + static_cast<std::size_t>(offset) * element_bytes, element_bytes);
      for (int axis = rank() - 1; axis >= 0; --axis) { // odometer, last axis fastest
        auto a = static_cast<std::size_t>(axis);
        offset += from[a];
        if (++index[a] < shape_[a]) break;
        offset -= from[a] * shape_[a];
        index[a] = 0;
      }
    }
    data_ = std::move(reordered);
  }
  fortran_order_ = false;
}

void npy_array::require_type(dtype wanted) const {
  if (wanted != type_)
    throw std::invalid_argument(std::string("npy_array::as: the array holds ") + name_of(type_) + ", not " +
                                name_of(wanted));
}

npy_array read_npy(fs::path const& file) { return read(file, nullptr); }
npy_array read_npy(fs::path const& file, dtype expected) { return read(file, &expected); }

void write_npy(fs::path const& file, dtype type, std::span<i64 const> shape, std::span<std::byte const> data,
               bool fortran_order) {
  auto count = element_count(type, shape);
  if (!count || bytes_of(type, *count) != static_cast<i64>(data.size()))
    throw npy_error(file, "cannot be written: shape " + shape_text(shape) + " of " + name_of(type) +
                              " does not match " + std::to_string(data.size()) + " bytes of data");

  std::string text = "{'descr': '" + std::string(std::ranges::find(type_names, type, &type_name::type)->descr) +
                     "', 'fortran_order': " + (fortran_order ? "True" : "False") + ", 'shape': " + shape_text(shape) +
                     ", }";
  // Version 1 unless the header is too long for it. Data starts at a multiple of 64 bytes; a newline ends the header.
  std::size_t fixed = text.size() + 1 + 10 <= std::numeric_limits<u16>::max() ? 10 : 12;
  std::size_t total = (fixed + text.size() + 1 + 63) / 64 * 64;
  std::size_t length = total - fixed;
  text.append(length - text.size() - 1, ' ').push_back('\n');
  std::string prefix(magic);
  prefix.push_back(fixed == 10 ? 1 : 2);
  prefix.push_back(0);
  for (std::size_t i = 0; i < fixed - 8; ++i) prefix.push_back(static_cast<char>(length >> (8 * i) & 0xff));

  // A link keeps pointing where it did; the file behind it is replaced.
  std::error_code ignored;
  fs::path target = fs::is_symlink(file, ignored) ? fs::weakly_canonical(file, ignored) : file;
  if (fs::exists(target, ignored) && !fs::is_regular_file(target, ignored))
    throw npy_error(file, "cannot be written: it is not a regular file");

  static std::atomic<unsigned> serial{0};
  temporary_file temporary{target.parent_path() / ("." + target.filename().string() + "." + std::to_string(::getpid()) +
                                                   "-" + std::to_string(serial++) + ".tmp")};
  descriptor fd(::open(temporary.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (fd.get() < 0) {
    std::string text_of_error = system_text();
    temporary.keep = true; // not ours
    throw npy_error(file, "cannot be written: " + text_of_error);
  }
  write_all(file, fd.get(), std::as_bytes(std::span(prefix)));
  write_all(file, fd.get(), std::as_bytes(std::span(text)));
  write_all(file, fd.get(), data);
  if (!fd.close() || ::rename(temporary.path.c_str(), target.c_str()) != 0)
    throw npy_error(file, "cannot be written: " + system_text());
  temporary.keep = true;
}

} // namespace kiln
