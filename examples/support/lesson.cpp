// See lesson.hpp.
#include "support/lesson.hpp"

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>

namespace lesson {

namespace {

void print_help(std::string const& what, std::vector<option> const& options) {
  std::printf("%s\n\nOptions:\n", what.c_str());
  for (option const& o : options)
    std::printf("  %-22s %s\n", ("--" + o.name + (o.value.empty() ? "" : " " + o.value)).c_str(), o.summary.c_str());
}

std::string time_text(double seconds) {
  char text[32];
  if (seconds < 1e-3) std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  else if (seconds < 1) std::snprintf(text, sizeof text, "%.2f ms", seconds * 1e3);
  else std::snprintf(text, sizeof text, "%.2f s", seconds);
  return text;
}

} // namespace

program::program(int argc, char** argv, std::string what, std::vector<option> options)
    : what_(std::move(what)), options_(std::move(options)) {
  options_.push_back({"device", "DEVICE", "host, cuda, cuda:1, hip, ...; default: the best one here"});
  options_.push_back({"brief", "", "one line of results and nothing else"});
  options_.push_back({"repeat", "N", "runs to time; default: enough for a tenth of a second"});
  options_.push_back({"help", "", "this text"});
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "-h") name = "--help";
    std::size_t const equals = name.starts_with("--") ? name.find('=') : std::string::npos;
    std::optional<std::string> joined; // --name=value
    if (equals != std::string::npos) joined = name.substr(equals + 1), name.resize(equals);
    auto known = std::ranges::find_if(options_, [&](option const& o) { return name == "--" + o.name; });
    if (known == options_.end()) throw usage_error("unknown option '" + name + "'; --help shows them");
    std::string value;
    if (known->value.empty()) {
      if (joined) throw usage_error(name + " takes no value");
    } else if (joined) {
      value = *joined;
    } else {
      if (i + 1 == argc) throw usage_error(name + " needs a value: " + name + " " + known->value);
      value = argv[++i];
    }
    if (has(known->name)) throw usage_error(name + " is given twice");
    given_.emplace_back(known->name, value);
  }
  if (has("help")) {
    print_help(what_, options_);
    std::exit(0);
  }
  brief_ = has("brief");
  repeat_ = number("repeat", 0, 1);
  try {
    device_ = has("device") ? kiln::device::parse(*text("device")) : kiln::device::best();
  } catch (kiln::error const& e) {
    throw usage_error(e.what());
  }
}

std::optional<std::string> program::text(std::string const& name) const {
  for (auto const& [key, value] : given_)
    if (key == name) return value;
  return std::nullopt;
}

std::string program::need(std::string const& name) const {
  auto value = text(name);
  if (!value) throw usage_error("--" + name + " is missing; --help shows the options");
  return *value;
}

void program::only_without_files(std::initializer_list<char const*> names) const {
  for (char const* name : names)
    if (has(name)) throw usage_error(std::string("--") + name + " is for random numbers; leave it out where files are given");
}

i64 program::number(std::string const& name, i64 otherwise, i64 least) const {
  auto value = text(name);
  if (!value) return otherwise;
  i64 n = 0;
  auto [end, failed] = std::from_chars(value->data(), value->data() + value->size(), n);
  if (failed != std::errc() || end != value->data() + value->size() || n < least || n > 1'000'000'000)
    throw usage_error("--" + name + " takes a whole number from " + std::to_string(least) + " to 1000000000, not '" + *value + "'");
  return n;
}

void program::say(std::string const& line) const {
  if (brief_) return;
  std::printf("%s\n", line.c_str());
  std::fflush(stdout); // in order with what the library logs on stderr
}

double program::time(std::function<void()> const& run) const {
  using clock = std::chrono::steady_clock;
  auto seconds = [&] {
    auto start = clock::now();
    run();
    return std::chrono::duration<double>(clock::now() - start).count();
  };
  run();
  std::vector<double> all;
  double sum = 0;
  i64 const least = repeat_ ? repeat_ : 3, most = repeat_ ? repeat_ : 1000;
  while (static_cast<i64>(all.size()) < least || (sum < 0.1 && static_cast<i64>(all.size()) < most)) {
    all.push_back(seconds());
    sum += all.back();
  }
  auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::ranges::nth_element(all, middle);
  return *middle;
}

void program::report(std::string const& size, double seconds, double amount, std::string const& unit, double error, double bound) {
  bool const wrong = !(error <= bound);
  wrong_ = wrong_ || wrong;
  if (brief_ && lines_++ > 0 && !wrong) return;
  char rate[32] = "";
  if (amount > 0) std::snprintf(rate, sizeof rate, "%.1f %s", amount / seconds * 1e-9, unit.c_str());
  std::printf("%-16s %-7s %-22s %10s %14s   max error %-8.2g %s\n", what_.c_str(), device().id().c_str(), size.c_str(),
              time_text(seconds).c_str(), rate, error, wrong ? "WRONG" : "ok");
  if (wrong) std::fprintf(stderr, "error: the result is wrong: an error of at most %.2g was expected\n", bound);
  std::fflush(stdout);
}

int guarded(std::function<int()> const& run) {
  auto complain = [](char const* what, int code) {
    std::fprintf(stderr, "error: %s\n", what);
    return code;
  };
  try {
    int code = run();
    return std::fflush(stdout) == 0 ? code : complain("standard output cannot be written", 1);
  } catch (usage_error const& e) {
    return complain(e.what(), 2);
  } catch (kiln::npy_error const& e) {
    return complain(e.what(), 2);
  } catch (std::bad_alloc const&) {
    return complain("there is not enough memory for this size", 1);
  } catch (std::exception const& e) {
    return complain(e.what(), 1);
  }
}

kiln::npy_array read(std::string const& file, int rank) {
  kiln::npy_array a = kiln::read_npy(file);
  if (a.rank() != rank)
    throw usage_error(file + ": has " + std::to_string(a.rank()) + (a.rank() == 1 ? " axis" : " axes") + "; expected " +
                      (rank == 1 ? "a vector (1 axis)" : "a matrix (2 axes)"));
  return a;
}

std::vector<double> random_numbers(i64 n, std::uint64_t seed) {
  std::vector<double> x(static_cast<std::size_t>(n));
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 0x243f6a8885a308d3u;
  for (double& v : x) { // splitmix64. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    v = static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
  }
  return x;
}

double difference(double got, double want) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
  if (std::isnan(got) || std::isnan(want)) return std::numeric_limits<double>::infinity();
  return std::abs(got - want);
}

std::string size_text(std::vector<i64> const& extents, kiln::dtype t) {
  std::string s;
  for (i64 e : extents) s += (s.empty() ? "" : "x") + std::to_string(e);
  return s + " " + kiln::name_of(t);
}

} // namespace lesson
