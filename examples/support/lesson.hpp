// What every lesson shares: command line, the user's arrays, timing, the result line, and the check against a reference.
// Lessons include this, which includes kiln/kiln.hpp, and nothing else of the project.
#pragma once
#include <kiln/io/npy.hpp>
#include <kiln/kiln.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace lesson {

using kiln::i64;

/// A mistake of the user: printed as one line, exit code 2.
class usage_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

struct option {
  std::string name;    ///< without dashes
  std::string value;   ///< what follows it, for the help text; empty: a flag
  std::string summary;
};

/// The command line of one lesson, `--name value` or `--name=value`. `--help`, `--device D`, `--brief` and `--repeat N` are always there.
class program {
public:
  /// `what` stands at the front of result lines. Errors: usage_error for unknown or incomplete options and for a device
  /// that is not there. `--help` prints and exits.
  program(int argc, char** argv, std::string what, std::vector<option> options);

  kiln::device device() const { return *device_; }
  /// From here on the lesson is about `d`, which result lines then name.
  void move_to(kiln::device d) { device_ = d; }
  /// One line of results and nothing else.
  bool brief() const { return brief_; }
  bool has(std::string const& name) const { return text(name).has_value(); }
  std::optional<std::string> text(std::string const& name) const;
  /// The value of an option that another one makes necessary. Errors: usage_error where it is absent.
  std::string need(std::string const& name) const;
  /// Errors: usage_error where one of these options, which say how large random data are, stands beside a user's files.
  void only_without_files(std::initializer_list<char const*> names) const;
  /// Errors: usage_error unless it is a whole number from `least` to a thousand million.
  i64 number(std::string const& name, i64 otherwise, i64 least = 0) const;
  /// Prose between results; silent in brief mode.
  void say(std::string const& line) const;

  /// Median time of `run`, which must wait for its work. The first call, which compiles, is not counted. Units: seconds.
  double time(std::function<void()> const& run) const;

  /// Prints a line and remembers whether the error is within the bound. In brief mode only the first line of a lesson is
  /// printed, and those of wrong results. `amount` is what one run moves or computes, in `unit`: "GB/s" or "GFLOP/s"; 0:
  /// no rate.
  void report(std::string const& size, double seconds, double amount, std::string const& unit, double error, double bound);
  /// The exit code: 0, or 1 when a result was wrong.
  int finish() const { return wrong_ ? 1 : 0; }

private:
  std::string what_;
  std::vector<option> options_;
  std::vector<std::pair<std::string, std::string>> given_;
  std::optional<kiln::device> device_;
  i64 repeat_ = 0;
  int lines_ = 0;
  bool brief_ = false, wrong_ = false;
};

/// Runs a lesson's main part and turns exceptions into one line on stderr and exit code 2 (the user's mistake) or 1.
int guarded(std::function<int()> const& run);

// -- the user's arrays -------------------------------------------------------------------------------------------------------

/// Reads a .npy file and checks its rank. bf16 is u16 in a file. Errors: npy_error, usage_error; both name the file.
kiln::npy_array read(std::string const& file, int rank);
/// The element types that lessons compute with, as `by_float` tells them apart.
/// Errors: usage_error naming the file for a type that is not f16, bf16 (u16) or f32.
template <class F>
void by_float(std::string const& file, kiln::dtype t, F const& f) {
  switch (t) {
  case kiln::dtype::f16: return f(kiln::f16{});
  case kiln::dtype::u16: return f(kiln::bf16{});
  case kiln::dtype::f32: return f(kiln::f32{});
  default: throw usage_error(file + ": holds " + kiln::name_of(t) + "; this lesson takes f16, bf16 (saved as u16) and f32");
  }
}

/// A file's elements in device memory, in the file's own order.
template <class T>
kiln::buffer<T> upload(kiln::npy_array const& file, kiln::device const& dev) {
  return kiln::buffer<T>(dev, std::span(reinterpret_cast<T const*>(file.data()), static_cast<std::size_t>(file.size())));
}
/// A matrix as a kernel takes it: C or Fortran order is a matter of strides.
template <class T>
kiln::array_view<T, 2> matrix(kiln::buffer<T>& x, kiln::npy_array const& file) {
  std::vector<i64> s = file.strides();
  return strided(x, {file.shape()[0], file.shape()[1]}, {s[0], s[1]});
}
/// Element (row, column) of a matrix in host memory, as a double.
template <class T>
double at(kiln::npy_array const& file, i64 row, i64 column) {
  i64 const rows = file.shape()[0], columns = file.shape()[1];
  i64 const i = file.fortran_order() ? column * rows + row : row * columns + column;
  return static_cast<double>(reinterpret_cast<T const*>(file.data())[i]);
}

// -- numbers -------------------------------------------------------------------------------------------------------------------

/// Reproducible numbers in [-1, 1); an element type that cannot hold one just below 1 rounds it to 1.
std::vector<double> random_numbers(i64 n, std::uint64_t seed);
/// The same, rounded to an element type.
template <class T>
std::vector<T> random_values(i64 n, std::uint64_t seed) {
  std::vector<T> y;
  y.reserve(static_cast<std::size_t>(n));
  for (double v : random_numbers(n, seed)) y.push_back(static_cast<T>(v));
  return y;
}
template <class T>
std::vector<double> to_double(std::vector<T> const& x) {
  std::vector<double> y;
  y.reserve(x.size());
  for (T v : x) y.push_back(static_cast<double>(v));
  return y;
}

/// |got - want|; 0 for two infinities of one sign and for two NaNs, infinite for a NaN that should be a number.
double difference(double got, double want);
/// Half of the distance between neighbouring numbers of T at 1: what one rounding may be wrong by, relative.
template <class T>
constexpr double rounding() {
  if constexpr (std::is_same_v<T, kiln::bf16>) return 1.0 / 256;
  else if constexpr (std::is_same_v<T, kiln::f16>) return 1.0 / 2048;
  else if constexpr (std::is_same_v<T, kiln::f32>) return 1.0 / (1 << 24);
  else return 0;
}
/// The largest finite number of T.
template <class T>
constexpr double largest_finite() {
  if constexpr (std::is_same_v<T, kiln::f16>) return 65504;
  else if constexpr (std::is_same_v<T, kiln::bf16>) return 0x1.fep127;
  else return static_cast<double>(std::numeric_limits<T>::max());
}
/// "2048x1024 f32"
std::string size_text(std::vector<i64> const& extents, kiln::dtype t);

} // namespace lesson
