// `kiln check`: runs a kernel graph in the checker, with arguments that are made up where none are given.
#pragma once
#include "timeline.hpp"
#include "tool.hpp"

#include <kiln/interpreter/interpreter.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <random>

namespace kiln::tool {

struct check_command_options {
  std::string input, kernel;
  std::vector<std::string> arguments; ///< "2=64", "0=4096", "1=128x64"
  std::vector<std::int64_t> grid; ///< none: one cluster
  int seeds = 1;
  std::uint64_t seed = 1;
  int resident = 1;
};

inline constexpr char const* check_arguments_help =
    "an argument by number: a value (2=64, 3=0.5), elements of a pointer's memory (0=4096), extents of an array (1=128x64); "
    "without: values 8, 65536 elements, 256 along each axis. Memory holds numbers chosen by the seed";

/// The memory of one argument, and the argument.
struct made_argument {
  std::vector<unsigned char> memory;
  interpreter::host_argument argument;
};

inline std::vector<std::int64_t> extents_in(std::string const& text) {
  std::vector<std::int64_t> all;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t const end = std::min(text.find('x', at), text.size());
    std::int64_t n = 0;
    auto const [stop, error] = std::from_chars(text.data() + at, text.data() + end, n);
    if (error != std::errc{} || stop != text.data() + end || n < 0) throw bad_input("'" + text + "' is no number of elements; write 4096 or 128x64");
    all.push_back(n);
    at = end + 1;
  }
  return all;
}

inline scalar number_in(dtype t, std::string const& text) {
  try {
    std::size_t used = 0;
    scalar const s = is_float(t) ? make_scalar(t, std::stod(text, &used)) : make_scalar(t, static_cast<i64>(std::stoll(text, &used)));
    if (used == text.size()) return s;
  } catch (std::exception const&) {}
  throw bad_input("'" + text + "' is no " + std::string(name_of(t)));
}

inline made_argument make_argument(param_info const& p, std::string const* text, std::mt19937_64& random) {
  made_argument m;
  if (p.kind == node_kind::value) {
    m.argument = interpreter::value(text ? number_in(p.type, *text) : is_bool(p.type) ? make_scalar(p.type, 1) : make_scalar(p.type, 8));
    return m;
  }
  std::vector<std::int64_t> extents = text ? extents_in(*text) : std::vector<std::int64_t>(p.kind == node_kind::array ? p.rank : 1, p.kind == node_kind::array ? 256 : 65536);
  if (p.kind == node_kind::array && extents.size() != p.rank)
    throw bad_input("an array of " + std::to_string(p.rank) + " axes needs as many extents, not " + std::to_string(extents.size()));
  std::int64_t n = 1;
  constexpr std::int64_t most = std::int64_t{1} << 28;
  for (std::int64_t e : extents) {
    if (e > most || n * e > most) throw bad_input("an argument of more than 2^28 elements is too large for the checker");
    n *= e;
  }
  auto const width = static_cast<std::size_t>(bytes_of(p.type));
  m.memory.resize(static_cast<std::size_t>(n) * width + 1);
  for (std::int64_t i = 0; i < n; ++i) { // small numbers that every type holds, and no negative ones for indices
    u64 const bits = make_scalar(p.type, static_cast<i64>(random() % 5)).bits;
    std::memcpy(m.memory.data() + static_cast<std::size_t>(i) * width, &bits, width);
  }
  m.argument = interpreter::pointer(m.memory.data(), n * static_cast<std::int64_t>(width));
  m.argument.kind = p.kind;
  if (p.kind == node_kind::array) {
    m.argument.rank = p.rank;
    std::int64_t step = 1;
    for (int d = p.rank - 1; d >= 0; --d) {
      m.argument.extent[d] = extents[static_cast<std::size_t>(d)];
      m.argument.stride[d] = step;
      step *= m.argument.extent[d];
    }
  }
  return m;
}

/// A kernel of a file with arguments for it, made up where none are given.
struct made_launch {
  graph kernel;
  std::vector<made_argument> made;
  std::vector<interpreter::host_argument> arguments;
  dims grid;
};
inline made_launch make_launch(check_command_options const& o, std::vector<graph> const& all) {
  made_launch l;
  l.kernel = choose(all, o.kernel, o.input);
  graph const& g = l.kernel;
  check(g, o.input);
  auto const count = static_cast<std::size_t>(argument_count(graph_view(g).params));
  std::vector<std::string const*> given(count);
  std::vector<std::string> texts(count);
  for (std::string const& a : o.arguments) {
    std::size_t const equals = a.find('=');
    std::size_t k = count;
    if (equals != std::string::npos) std::from_chars(a.data(), a.data() + equals, k);
    if (k >= count) throw bad_input("'" + a + "': the kernel has " + std::to_string(count) + " parameters, numbered from 0; write NUMBER=VALUE");
    texts[k] = a.substr(equals + 1);
    given[k] = &texts[k];
  }
  std::mt19937_64 random(o.seed);
  for (std::size_t i = 0; i < count; ++i) l.made.push_back(make_argument(g.params[i], given[i], random));
  for (made_argument const& m : l.made) l.arguments.push_back(m.argument);
  l.grid = o.grid.empty() ? g.attrs.cluster : dims{o.grid[0], o.grid.size() > 1 ? o.grid[1] : 1, o.grid.size() > 2 ? o.grid[2] : 1};
  return l;
}

inline int check_one(check_command_options const& o, std::vector<graph> const& all) {
  made_launch const l = make_launch(o, all);
  graph const& g = l.kernel;
  dims const grid = l.grid;
  interpreter::run_options options{.order = interpreter::order::seeded, .seed = o.seed, .seeds = o.seeds, .resident_ctas = o.resident};
  options.print = [](std::string_view line) { std::printf("%.*s\n", static_cast<int>(line.size()), line.data()); };
  auto const start = std::chrono::steady_clock::now();
  interpreter::report const r = interpreter::run_all_policies(g, grid, l.arguments, options);
  double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::fputs(r.text().c_str(), stdout);
  std::printf("%s: %d run%s of %lld CTAs, %.2f s: %zu fault%s\n", quote_text(g.name).c_str(), r.runs, r.runs == 1 ? "" : "s",
              static_cast<long long>(grid.x * grid.y * grid.z), seconds, r.diagnostics.size(), r.diagnostics.size() == 1 ? "" : "s");
  return r.clean() ? 0 : 1;
}
/// The kernel that is named; without a name and arguments every one of the file.
inline int check_command(check_command_options const& o) {
  std::vector<graph> const all = read(o.input);
  if (all.empty() || !o.kernel.empty() || !o.arguments.empty()) return check_one(o, all);
  int status = 0;
  check_command_options each = o;
  for (graph const& g : all) {
    each.kernel = g.name;
    status = std::max(status, check_one(each, all));
  }
  return status;
}

struct timeline_command_options {
  check_command_options run;
  std::string output, policy = "random";
};

inline int timeline_command(timeline_command_options const& o) {
  made_launch const l = make_launch(o.run, read(o.run.input));
  timeline t(l.kernel);
  interpreter::run_options options{.order = interpreter::order::seeded, .seed = o.run.seed, .resident_ctas = o.run.resident};
  options.policy = o.policy == "early" ? interpreter::completion::early : o.policy == "late" ? interpreter::completion::late : interpreter::completion::random;
  options.trace = [&](interpreter::trace_event const& e) { t.add(e); };
  interpreter::report const r = interpreter::run(l.kernel, l.grid, l.arguments, options);
  write(o.output, t.json());
  std::fputs(r.text().c_str(), stderr);
  return r.clean() ? 0 : 1;
}

} // namespace kiln::tool
