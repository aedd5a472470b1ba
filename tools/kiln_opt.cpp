// kiln-opt: reads text graphs, runs named passes on each of them, prints. What bug reports and golden tests are made of.
#include "facts.hpp"
#include "tool.hpp"

#include <src/graph/axis_facts.hpp>
#include <src/graph/passes/passes.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

using namespace kiln;

namespace {

struct options {
  std::string input = "-", output, kernel;
  std::vector<std::string> passes, facts;
  std::vector<std::int64_t> grid;
  bool standard = false, show_facts = false, no_positions = false, list = false, time = false;
};

std::string optimised(graph const& g, options const& o) {
  tool::check(g, o.input);
  pass_options p;
  if (!o.facts.empty()) p.facts = tool::facts_from(g, o.facts);
  if (!o.grid.empty()) {
    p.grid = dims{o.grid[0], o.grid.size() > 1 ? o.grid[1] : 1, o.grid.size() > 2 ? o.grid[2] : 1};
  }
  std::vector<std::string_view> names(o.passes.begin(), o.passes.end());
  if (o.standard) names.insert(names.begin(), standard_passes().begin(), standard_passes().end());
  std::vector<pass_record> records;
  graph const after = run_passes(g, names, p, &records);
  tool::check(after, "after the passes");
  if (o.time)
    for (pass_record const& r : records)
      std::fprintf(stderr, "%-12.*s %9.3f ms  %s  %d nodes\n", static_cast<int>(r.name.size()), r.name.data(), 1e3 * r.seconds,
                   r.changed ? "changed  " : "unchanged", r.nodes);
  print_options form{.positions = !o.no_positions, .comment = nullptr};
  if (!o.show_facts) return print(after, form);
  graph_facts const facts(after, p);
  form.comment = [&](int i) { return facts.text(i); };
  return print(after, form);
}

int run(options const& o) {
  if (o.list) {
    for (pass const& p : graph_passes()) std::printf("%-12.*s %.*s\n", static_cast<int>(p.name.size()), p.name.data(), static_cast<int>(p.summary.size()), p.summary.data());
    std::printf("standard order:");
    for (std::string_view name : standard_passes()) std::printf(" %.*s", static_cast<int>(name.size()), name.data());
    std::printf("\n");
    return 0;
  }
  std::vector<graph> const all = tool::read(o.input);
  std::string out;
  if (!o.kernel.empty() || all.empty())
    out = optimised(tool::choose(all, o.kernel, o.input), o);
  else
    for (graph const& g : all) out += (out.empty() ? "" : "\n") + optimised(g, o);
  tool::write(o.output, out);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  options o;
  CLI::App app("Runs passes on kernel graphs in text form (.kg) and prints the result.\n"
               "Graphs are verified before and after. Programs write theirs with KILN_DUMP_GRAPHS=directory or kernel.save(path).",
               "kiln-opt");
  app.add_option("input", o.input, "a .kg file, a lesson's name, or - for standard input")->capture_default_str();
  app.add_option("-p,--passes", o.passes, "passes in order, separated by commas; see --list")->delimiter(',');
  app.add_flag("-s,--standard", o.standard, "run the standard passes first");
  app.add_option("-f,--fact", o.facts, tool::facts_help);
  app.add_option("--grid", o.grid, "extents of the grid: X,Y,Z")->delimiter(',')->expected(1, 3)->check(CLI::Range(std::int64_t{0}, std::int64_t{2147483647}));
  app.add_option("-k,--kernel", o.kernel, "only this kernel of the file");
  app.add_option("-o,--output", o.output, "a file; standard output otherwise");
  app.add_flag("--facts", o.show_facts, "print ranges, divisors, runs and constancy as comments");
  app.add_flag("--no-positions", o.no_positions, "leave out source positions");
  app.add_flag("--time", o.time, "print each pass's time and whether it changed the graph");
  app.add_flag("--list", o.list, "list the passes");
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  return tool::guarded("kiln-opt", [&] { return run(o); });
}
