// What the GPU measurements share: timing with a flushed L2, random data made on the device, windows of results for the
// checks, and the table that is printed and written as JSON.
#pragma once
#include "kernels.hpp"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace kiln_bench {

/// A way to do a job, and what to call it.
struct candidate {
  std::string name;
  std::function<void()> run;
};

/// One line of the table. `amount` is what one run moves or computes.
struct result {
  std::string job, shape;
  double seconds = 0, amount = 0;
  std::string unit;     ///< TB/s, TFLOP/s, us, ms
  double reach = 0;     ///< the figure to reach, in `unit`; 0: none
  double error = 0;     ///< the largest of the check, as a part of what is allowed
  std::string note{};   ///< why there is no figure, or what differs from the job's description

  /// In `unit`.
  double figure() const {
    if (unit == "us") return seconds * 1e6;
    if (unit == "ms") return seconds * 1e3;
    return amount / seconds / 1e12;
  }
  bool wrong() const { return !(error <= 1); }
};

class session {
public:
  /// `only`: words of which one must occur in a job's name or shape; none: all jobs.
  session(device const& where, std::vector<std::string> only, int repeat);

  device dev;
  stream on;
  int repeat;

  bool wants(std::string const& job, std::string const& shape) const;
  /// Median time of `run` on the device, the L2 flushed by zeros before each. Units: seconds.
  double time(std::function<void()> const& run);
  /// The same for work too long to care about the L2; fewer runs.
  double time_long(std::function<void()> const& run);
  /// Checks, measures, prints a line. What throws becomes a line with the reason.
  void job(result r, std::function<void()> const& run, std::function<double()> const& error);
  /// The same for several ways, of which the fastest counts; each is checked.
  void best_of(result r, std::vector<candidate> const& all, std::function<double()> const& error);
  void add(result r);

  std::vector<result> const& results() const { return results_; }
  bool any_wrong() const;
  std::string json(std::string const& commit) const;

private:
  double median(std::function<void()> const& run, int runs, bool flush);
  std::vector<std::string> only_;
  buffer<u32> zeros_;
  std::vector<result> results_;
};

/// Numbers like normal ones from the element's index: the sum of four random bytes, less its mean, over its deviation.
template <class T>
inline constexpr auto scramble = kernel<"scramble">([](context& k, ptr<T> x, val<i64> n, val<u32> seed) {
  auto i = k.program_id<i64>(0) * 1024 + k.arange<1024>();
  auto a = (cast<u32>(i) ^ seed) * 2654435761u;
  auto b = (a ^ (a >> 15u)) * 2246822519u;
  auto c = (b ^ (b >> 13u)) * 3266489917u;
  auto h = c ^ (c >> 16u);
  auto sum = (h & 255u) + ((h >> 8u) & 255u) + ((h >> 16u) & 255u) + (h >> 24u);
  store(x + i, cast<T>((cast<f32>(sum) - 510.f) * (1.f / 148.f)), {.mask = i < n});
});

template <class T> buffer<T> random_buffer(session& s, i64 n, u32 seed) {
  buffer<T> x(s.on, n);
  scramble<T>.launch(s.on, grid(ceil_div(n, 1024)), x, n, seed);
  return x;
}

/// `n` elements from `first` on.
template <class T> std::vector<double> window(session& s, buffer<T>& x, i64 first, i64 n) {
  buffer<T> part(s.on, n);
  copy<T, 1024, 4>.launch(s.on, grid(ceil_div(n, 1024)), device_ptr<T const>(x.data() + first), part, n);
  std::vector<T> const values = part.to_vector();
  std::vector<double> r(values.size());
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = static_cast<double>(values[i]);
  return r;
}

/// A permutation of 0 .. 2^bits - 1 without visible order; the Python side has the same.
std::vector<i64> shuffled(int bits);

// The jobs, by file.
void launch_jobs(session& s);
void stream_jobs(session& s);
void row_jobs(session& s);
void index_jobs(session& s);
void tile_jobs(session& s);
void product_jobs(session& s);

/// In a process of its own: from the launch to its result, everything else being up.
double first_launch_milliseconds(std::string const& device, std::string const& job);

} // namespace kiln_bench
