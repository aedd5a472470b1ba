// The list of graph passes, their standard order, and running them with a log.
#include "src/graph/passes/passes.hpp"

#include "src/graph/passes/cse.hpp"
#include "src/graph/passes/dce.hpp"
#include "src/graph/passes/decide.hpp"
#include "src/graph/passes/fold.hpp"
#include "src/graph/passes/specialise.hpp"
#include "src/graph/passes/strip_debug.hpp"

#include <kiln/graph/hash.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace kiln {

std::span<pass const> graph_passes() {
  static constexpr pass all[] = {
      {"cse", "equal pure nodes become one", [](graph_view const& g, pass_options const&) { return merge_equal_nodes(g); }},
      {"dce", "removes what no effect depends on", [](graph_view const& g, pass_options const&) { return remove_dead_code(g); }},
      {"decide", "comparisons and integers with one possible value become constants", [](graph_view const& g, pass_options const& o) { return decide(g, o); }},
      {"fold", "computes constants, drops operations that change nothing", [](graph_view const& g, pass_options const&) { return fold(g); }},
      {"specialise", "writes what is known of the arguments into the graph", [](graph_view const& g, pass_options const& o) { return specialise(g, o); }},
      {"strip-debug", "forgets names, texts and source positions", [](graph_view const& g, pass_options const&) { return strip_debug(g); }},
  };
  return all;
}

pass const& find_pass(std::string_view name) {
  std::string names;
  for (pass const& p : graph_passes()) {
    if (p.name == name) return p;
    names += (names.empty() ? "" : ", ") + std::string(p.name);
  }
  throw std::invalid_argument("no pass is called '" + std::string(name) + "'; there are " + names);
}

std::span<std::string_view const> standard_passes() {
  // Facts first, then what follows from them; deciding is dear and needs folded, merged nodes, so that it sees through
  // them; what it decides is folded again.
  static constexpr std::string_view order[] = {"specialise", "fold", "cse", "dce", "decide", "fold", "cse", "dce"};
  return order;
}

graph run_passes(graph_view const& g, std::span<std::string_view const> names, pass_options const& options, std::vector<pass_record>* records) {
  char const* log = std::getenv("KILN_LOG");
  bool const prints = log && std::string_view(log).find("passes") != std::string_view::npos;
  graph now(g);
  hash128 before = debug_hash(now);
  for (std::string_view name : names) {
    pass const& p = find_pass(name);
    auto const start = std::chrono::steady_clock::now();
    now = p.run(now, options);
    pass_record r{p.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), false, static_cast<int>(now.nodes.size())};
    hash128 const after = debug_hash(now);
    r.changed = after != before;
    before = after;
    if (prints)
      std::fprintf(stderr, "kiln: pass %-12.*s %8.3f ms  %s (%d nodes)\n", static_cast<int>(r.name.size()), r.name.data(), 1e3 * r.seconds,
                   r.changed ? "changed" : "unchanged", r.nodes);
    if (records) records->push_back(r);
  }
  return now;
}

} // namespace kiln
