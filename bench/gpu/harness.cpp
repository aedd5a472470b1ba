// Timing and output of the GPU measurements.
#include "harness.hpp"

#include <algorithm>
#include <cstdio>

namespace kiln_bench {

session::session(device const& where, std::vector<std::string> only, int runs)
    : dev(where), on(stream::create(where)), repeat(runs), only_(std::move(only)), zeros_(on, i64{64} << 20) {}

bool session::wants(std::string const& job, std::string const& shape) const {
  if (only_.empty()) return true;
  return std::any_of(only_.begin(), only_.end(), [&](std::string const& w) {
    return job.find(w) != std::string::npos || shape.find(w) != std::string::npos;
  });
}

double session::median(std::function<void()> const& run, int runs, bool flush) {
  std::vector<event> begin, end;
  std::vector<double> seconds;
  // A few at a time: the device never waits for this thread, and the queue stays short.
  for (int done = 0; done < runs;) {
    int const some = std::min(8, runs - done);
    begin.clear(), end.clear();
    for (int i = 0; i < some; ++i) {
      begin.emplace_back(dev), end.emplace_back(dev);
      if (flush) zeros_.fill(0);
      begin.back().record(on);
      run();
      end.back().record(on);
    }
    for (int i = 0; i < some; ++i)
      seconds.push_back(seconds_between(begin[static_cast<std::size_t>(i)], end[static_cast<std::size_t>(i)]));
    done += some;
  }
  auto const middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}
double session::time(std::function<void()> const& run) { return median(run, repeat, true); }
double session::time_long(std::function<void()> const& run) { return median(run, std::max(5, repeat / 3), true); }

void session::job(result r, std::function<void()> const& run, std::function<double()> const& error) {
  best_of(std::move(r), {{"", run}}, error);
}

void session::best_of(result r, std::vector<candidate> const& all, std::function<double()> const& error) {
  std::string figures;
  for (candidate const& c : all) {
    try {
      c.run();
      r.error = std::max(r.error, error());
      if (std::isnan(r.error) || r.wrong()) {
        r.note = c.name;
        break;
      }
      c.run();
      double const seconds = median(c.run, 1, true) > 3e-3 ? time_long(c.run) : time(c.run);
      if (r.seconds == 0 || seconds < r.seconds) r.seconds = seconds;
      result each = r;
      each.seconds = seconds;
      char figure[32];
      std::snprintf(figure, sizeof figure, " %.2f", each.figure());
      figures += (figures.empty() ? "" : ", ") + c.name + figure;
    } catch (std::exception const& e) {
      r.note += (r.note.empty() ? "" : "; ") + (c.name.empty() ? "" : c.name + ": ") + std::string(e.what()).substr(0, 300);
    }
  }
  if (all.size() > 1 && !r.wrong()) r.note = "(" + figures + ") " + r.note;
  add(std::move(r));
}

void session::add(result r) {
  char line[256];
  if (r.wrong()) std::snprintf(line, sizeof line, "WRONG: the error is %.3g times what is allowed", r.error);
  else if (r.seconds > 0 && r.reach > 0)
    std::snprintf(line, sizeof line, "%8.2f %-8s reach %-7.2f %s", r.figure(), r.unit.c_str(), r.reach,
                  (r.unit == "us" || r.unit == "ms" ? r.figure() <= r.reach : r.figure() >= r.reach) ? "" : "BELOW");
  else if (r.seconds > 0) std::snprintf(line, sizeof line, "%8.2f %-8s", r.figure(), r.unit.c_str());
  else line[0] = 0;
  std::printf("%-28s %-34s %s %s\n", r.job.c_str(), r.shape.c_str(), line, r.note.c_str());
  std::fflush(stdout);
  results_.push_back(std::move(r));
}

bool session::any_wrong() const {
  return std::any_of(results_.begin(), results_.end(), [](result const& r) { return r.wrong(); });
}

namespace {
std::string quoted(std::string const& s) {
  std::string r = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') r += '\\';
    if (static_cast<unsigned char>(c) < 0x20) r += ' ';
    else r += c;
  }
  return r + "\"";
}
} // namespace

std::string session::json(std::string const& commit) const {
  std::string r = "{\"device\": " + quoted(dev.name()) + ", \"commit\": " + quoted(commit) + ", \"results\": [";
  for (std::size_t i = 0; i < results_.size(); ++i) {
    result const& x = results_[i];
    char numbers[256];
    std::snprintf(numbers, sizeof numbers, "\"microseconds\": %.4f, \"amount\": %.17g, \"figure\": %.5g, \"reach\": %.5g, \"error\": %.4g",
                  x.seconds * 1e6, x.amount, x.seconds > 0 ? x.figure() : 0.0, x.reach, std::isfinite(x.error) ? x.error : 1e300);
    r += std::string(i ? "," : "") + "\n  {\"job\": " + quoted(x.job) + ", \"shape\": " + quoted(x.shape) + ", \"unit\": " + quoted(x.unit) +
         ", " + numbers + ", \"note\": " + quoted(x.note) + "}";
  }
  return r + "\n]}\n";
}

std::vector<i64> shuffled(int bits) {
  std::vector<i64> r(std::size_t{1} << bits);
  u64 const mask = r.size() - 1;
  for (std::size_t i = 0; i < r.size(); ++i) {
    u64 x = i;
    for (u64 odd : {0x9E3779B97F4A7C15u, 0xBF58476D1CE4E5B9u, 0x94D049BB133111EBu}) {
      x = (x * odd) & mask;
      x ^= x >> ((bits + 1) / 2);
    }
    r[i] = static_cast<i64>(x);
  }
  return r;
}

} // namespace kiln_bench
