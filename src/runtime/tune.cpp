// Measures the points of a configuration space and remembers the fastest.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <unistd.h>

#include "kiln/graph/hash.hpp"
#include "kiln/runtime/buffer.hpp"
#include "kiln/runtime/error.hpp"
#include "kiln/runtime/tune.hpp"
#include "kiln/target/compile_error.hpp"
#include "src/cache/disk_cache.hpp"
#include "src/runtime/backend.hpp"
#include "src/runtime/compiler_interface.hpp"
#include "src/runtime/log.hpp"

namespace kiln::detail {

namespace {

// Of each point: so long, flushes included, within these numbers of runs. A point that is this much slower than the best
// is left early.
constexpr double seconds_per_point = 0.1, hopeless = 2;
constexpr int fewest_runs = 5, most_runs = 100;

cache_key key_of(stream const& where, std::string const& key, std::span<tuning_point const> points) {
  device const d = where.get_device();
  cache_key k;
  k.add("what", "autotune 1").add("device", d.name()).add("units", d.multiprocessors()).add("driver", where.state().owner->record().driver_version);
  k.add("target", d.target().name()).add("key", key);
  for (tuning_point const& p : points) k.add(p.text, to_string(semantic_hash(p.graph)));
  return k;
}

/// Makes the next run find nothing in the device's last cache: a fill of more than it holds.
class flusher {
public:
  explicit flusher(stream const& where) {
    device_record const& d = where.state().owner->record();
    // A host says how much cache all its cores have; what one kernel's data can lie in is less.
    i64 const most = d.kind == device_kind::host ? i64{1} << 26 : i64{1} << 29;
    memory_ = buffer<u8>(where, std::clamp(2 * d.last_level_cache_bytes, i64{1} << 22, most));
  }
  void flush() { memory_.fill(0); }

private:
  buffer<u8> memory_;
};

/// Seconds of a run: the median, or the first one where that is hopeless.
double measure(stream const& where, flusher& cold, tuning_point const& p, void* context, double best) {
  device const d = where.get_device();
  event begin(d), end(d);
  auto once = [&] {
    cold.flush();
    begin.record(where);
    p.run(context);
    end.record(where);
    return seconds_between(begin, end);
  };
  double const first = std::min(once(), once());
  if (best > 0 && first > hopeless * best) return first;
  std::vector<double> seconds;
  auto const start = std::chrono::steady_clock::now();
  for (int i = 0; i < most_runs; ++i) {
    if (i >= fewest_runs && std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds_per_point) break;
    seconds.push_back(once());
  }
  auto const middle = seconds.begin() + std::ssize(seconds) / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

std::string microseconds(double s) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f us", s * 1e6);
  return text;
}

struct progress {
  std::string title;
  bool terminal = isatty(STDERR_FILENO) != 0 && !log_enabled(log_topic::tune);

  void show(std::string const& what) const {
    if (terminal) std::fprintf(stderr, "\r\033[Kkiln: %s: %s", title.c_str(), what.c_str());
    log_line(log_topic::tune, title + ": " + what);
  }
  ~progress() {
    if (terminal) std::fputs("\r\033[K", stderr);
  }
};

tuning_choice measure_all(stream const& where, std::string const& key, std::span<tuning_point const> points, void* context) {
  device const d = where.get_device();
  progress bar;
  bar.title = "tuning '" + std::string(points[0].graph.name) + "' (" + key + ") on " + d.id();
  flusher cold(where);
  tuning_choice best{-1, 0, false}, best_spilling{-1, 0, false};
  std::string reason;
  for (std::size_t i = 0; i < points.size(); ++i) {
    tuning_point const& p = points[i];
    std::string const at = std::to_string(i + 1) + " of " + std::to_string(points.size()) + " " + p.text + ": ";
    if (!p.fits) {
      reason = p.text + " does not fit " + std::string(d.target().name());
      bar.show(at + "does not fit");
      continue;
    }
    try {
      p.run(context); // compiles
      where.synchronize();
      bool const spills = p.info(where).spill_bytes > 0;
      if (spills && best.point >= 0) {
        bar.show(at + "spills registers, not measured");
        continue;
      }
      tuning_choice& among = spills ? best_spilling : best;
      double const seconds = measure(where, cold, p, context, among.seconds);
      where.synchronize();
      if (among.point < 0 || seconds < among.seconds) among = {static_cast<int>(i), seconds, false};
      bar.show(at + microseconds(seconds) + (spills ? " (spills registers)" : "") + ", best " +
               points[static_cast<std::size_t>(among.point)].text + " " + microseconds(among.seconds));
    } catch (compile_error const& e) {
      reason = e.what();
      bar.show(at + "left out: " + reason);
    } catch (driver_error const&) {
      throw; // the device may be lost
    } catch (error const& e) {
      reason = e.what();
      bar.show(at + "left out: " + reason);
    }
  }
  if (best.point < 0) best = best_spilling;
  if (best.point < 0) throw error("autotune: no configuration of '" + std::string(points[0].graph.name) + "' runs on " + d.id() + ": " + reason);
  bar.show("chose " + points[static_cast<std::size_t>(best.point)].text + ", " + microseconds(best.seconds));
  return best;
}

// A space on a device with a key, while the process lives. The lock is held while it is measured: others wait for that.
struct known {
  std::mutex guard;
  bool there = false;
  tuning_choice choice;
};
struct all_known {
  std::mutex guard;
  std::map<std::string, std::unique_ptr<known>, std::less<>> by_key;
};
known& known_of(std::string const& key) {
  static auto* all = new all_known; // never destroyed
  std::lock_guard lock(all->guard);
  auto& k = all->by_key[key];
  if (!k) k = std::make_unique<known>();
  return *k;
}

std::string text_of(tuning_choice const& c) {
  char text[64];
  std::snprintf(text, sizeof text, "%d %.9g", c.point, c.seconds);
  return text;
}
bool parse(std::string_view text, std::size_t points, tuning_choice& c) {
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), c.point);
  if (failed != std::errc() || end == text.data() + text.size() || c.point < 0 || static_cast<std::size_t>(c.point) >= points) return false;
  return std::from_chars(end + 1, text.data() + text.size(), c.seconds).ec == std::errc();
}

} // namespace

tuning_choice tune(stream const& where, std::string const& key, std::span<tuning_point const> points, void* context) {
  cache_key const full = key_of(where, key, points);
  known& k = known_of(where.get_device().id() + " " + std::string(full.bytes()));
  std::lock_guard lock(k.guard);
  auto remembered = [&] {
    tuning_choice c = k.choice;
    c.remembered = true;
    return c;
  };
  if (k.there) return remembered();
  if (auto entry = process_cache().get(full); entry && parse(entry->meta, points.size(), k.choice) &&
                                              points[static_cast<std::size_t>(k.choice.point)].fits) {
    k.there = true;
    return remembered();
  }
  if (where.state().owner->is_capturing(where.native()))
    throw error("autotune: '" + std::string(points[0].graph.name) + "' has not been tuned for (" + key + ") on " + where.get_device().id() +
                ", and the stream is being captured into a graph, where nothing can be measured; call autotune before the capture begins");
  k.choice = measure_all(where, key, points, context);
  k.there = true;
  process_cache().put(full, text_of(k.choice), {});
  return k.choice;
}

} // namespace kiln::detail
