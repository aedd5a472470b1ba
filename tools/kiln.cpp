// kiln: looks at devices, targets, the cache and kernel graphs, and compiles graphs stage by stage.
#include "bundle.hpp"
#include "check_command.hpp"
#include "facts.hpp"
#include "memory_map.hpp"
#include "timeline.hpp"
#include "tool.hpp"

#include <kiln/graph/draw.hpp>
#include <kiln/graph/hash.hpp>
#include <kiln/runtime/device.hpp>
#include <kiln/runtime/error.hpp>
#include <kiln/target/target.hpp>
#include <kiln/version.hpp>
#include <jit/compile.hpp>
#include <src/cache/disk_cache.hpp>


#include <CLI/CLI.hpp>

#include <cinttypes>
#include <ctime>
#include <unistd.h>

using namespace kiln;

namespace {

int devices() {
  for (device const& d : device::all())
    std::printf("%-8s %-10s %6.1f GiB  %4d %s  %s\n", d.id().c_str(), std::string(d.target().name()).c_str(), static_cast<double>(d.memory_bytes()) / (1 << 30),
                d.multiprocessors(), d.is_host() ? "threads" : "units  ", d.name().c_str());
  for (std::string const& why : device::unusable()) std::printf("not usable: %s\n", why.c_str());
  return 0;
}

int list_targets() {
  for (target const& t : targets::all)
    std::printf("%-8.*s %-7.*s shared %6u bytes  warp %2d%s%s%s%s%s\n", static_cast<int>(t.name().size()), t.name().data(),
                static_cast<int>(to_string(t.family).size()), to_string(t.family).data(), t.shared_bytes, t.is_host() ? 1 : t.warp_size,
                t.has_cp_async ? "  cp.async" : "", t.has_bulk_copy ? "  bulk copies" : "", t.has_tdm ? "  tensor data mover" : "",
                t.has_tensor_memory() ? "  tensor memory" : "", t.has_clusters() ? "  clusters" : "");
  return 0;
}

disk_cache open_cache() { return disk_cache(cache_options::from_environment(version(), std::string(jit::llvm_version()))); }

int cache_stats_command() {
  disk_cache cache = open_cache();
  cache_stats const s = cache.stats();
  std::printf("directory  %s%s\n", cache.options().directory.empty() ? "none" : cache.options().directory.c_str(), cache.options().enabled ? "" : "  (not used)");
  std::printf("entries    %" PRIu64 "\nsize       %.1f MiB of %.0f MiB\n", s.entries, static_cast<double>(s.bytes) / (1 << 20),
              static_cast<double>(cache.options().max_bytes) / (1 << 20));
  return 0;
}

int cache_clear() {
  disk_cache cache = open_cache();
  std::printf("removed %" PRIu64 " files\n", cache.clear());
  return 0;
}

int cache_verify(bool all) {
  disk_cache cache = open_cache();
  int bad = 0, count = 0;
  for (cache_entry_info const& e : cache.verify()) {
    ++count;
    bad += !e.fault.empty();
    if (e.fault.empty() && !all) continue;
    std::time_t const used = std::chrono::system_clock::to_time_t(e.last_used);
    char when[32];
    std::strftime(when, sizeof when, "%Y-%m-%d %H:%M", std::localtime(&used));
    std::printf("%s  %10" PRIu64 " bytes  used %s  %s\n", e.file.c_str(), e.bytes, when, e.fault.empty() ? "good" : e.fault.c_str());
  }
  std::printf("%d entries, %d bad\n", count, bad);
  return bad ? 1 : 0;
}

struct graph_options {
  std::string input, kernel, output;
  bool svg = false, dot = false, text = false, hash = false, list = false;
};

int graph_command(graph_options const& o) {
  std::vector<graph> const all = tool::read(o.input);
  for (graph const& g : all) tool::check(g, o.input);
  if (o.list) {
    for (graph const& g : all)
      std::printf("%s  %zu nodes  %zu parameters  %zu local buffers\n", quote_text(g.name).c_str(), g.nodes.size(), g.params.size(), g.buffers.size());
    return 0;
  }
  if (o.hash) {
    for (graph const& g : all)
      if (o.kernel.empty() || g.name == o.kernel) std::printf("%s  %s\n", to_string(semantic_hash(g)).c_str(), quote_text(g.name).c_str());
    return 0;
  }
  graph const& g = tool::choose(all, o.kernel, o.input);
  tool::write(o.output, o.svg ? to_svg(g) : o.dot ? to_dot(g) : print(g));
  return 0;
}

int memory_map_command(graph_options const& o) {
  std::vector<graph> const all = tool::read(o.input);
  graph const& g = tool::choose(all, o.kernel, o.input);
  tool::check(g, o.input);
  tool::write(o.output, tool::memory_map(g));
  return 0;
}

struct compile_options {
  std::string input, kernel, output, target = "host", stage = "asm";
  std::vector<std::string> facts;
};

int compile_command(compile_options const& o) {
  std::vector<graph> const all = tool::read(o.input);
  graph const& g = tool::choose(all, o.kernel, o.input);
  tool::check(g, o.input);
  target const t = target::parse(o.target);
  specialisation const facts = tool::facts_from(g, o.facts);
  if (o.stage == "graph") {
    tool::write(o.output, print(jit::prepare_graph(g, facts)));
    return 0;
  }
  jit::emit_kind const kind = jit::parse_emit_kind(o.stage);
  bool const binary = kind == jit::emit_kind::object && !t.is_nvptx();
  if (binary && (o.output.empty() || o.output == "-") && isatty(STDOUT_FILENO))
    throw tool::bad_input("an object is not for a terminal; give a file with -o");
  try {
    jit::code_info info;
    tool::write(o.output, jit::emit(g, facts, t, kind, &info));
    if (!info.notes.empty()) std::fprintf(stderr, "%s\n", info.notes.c_str());
  } catch (compile_error const& e) {
    std::fprintf(stderr, "kiln: %s\n", e.what());
    return 1;
  }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app("Looks at kiln's devices, targets, cache and kernel graphs, and compiles them stage by stage.\n"
               "Programs write their graphs with KILN_DUMP_GRAPHS=directory or kernel.save(\"file.kg\").",
               "kiln");
  app.require_subcommand(1);
  std::function<int()> chosen;
  auto command = [&](CLI::App& parent, char const* name, char const* about, std::function<int()> run) {
    CLI::App* c = parent.add_subcommand(name, about);
    if (run) c->callback([&chosen, run] { chosen = run; });
    return c;
  };
  command(app, "version", "the versions of kiln and LLVM", [] {
    std::printf("kiln %s, LLVM %s\n", version(), std::string(jit::llvm_version()).c_str());
    return 0;
  });
  command(app, "devices", "the devices of this machine, and why others are not usable", devices);
  command(app, "targets", "what kernels can be compiled for", list_targets);

  CLI::App* cache = command(app, "cache", "the machine code that earlier compiles left on disk", nullptr);
  cache->require_subcommand(1);
  command(*cache, "stats", "directory, entries, size", cache_stats_command);
  command(*cache, "clear", "removes all entries", cache_clear);
  bool all_entries = false;
  command(*cache, "verify", "reads and checks every entry; exit code 1 when one is bad", [&] { return cache_verify(all_entries); })
      ->add_flag("-a,--all", all_entries, "list good entries, too");

  graph_options g;
  CLI::App* graph = command(app, "graph", "prints or draws a kernel graph", [&] { return graph_command(g); });
  graph->add_option("input", g.input, "a .kg file, a lesson's name, or - for standard input")->required();
  graph->add_option("-k,--kernel", g.kernel, "which kernel of the file");
  graph->add_option("-o,--output", g.output, "a file; standard output otherwise");
  auto* form = graph->add_option_group("form", "what to print (default: text)");
  form->add_flag("--svg", g.svg, "a drawing");
  form->add_flag("--dot", g.dot, "for Graphviz");
  form->add_flag("--text", g.text, "the text form, verified and with labels in order");
  form->add_flag("--hash", g.hash, "what identifies the meaning of each kernel");
  form->add_flag("--list", g.list, "names and sizes of the kernels");
  form->require_option(0, 1);

  compile_options c;
  CLI::App* compile = command(app, "compile", "compiles a kernel graph and prints one stage of it", [&] { return compile_command(c); });
  compile->add_option("input", c.input, "a .kg file, a lesson's name, or - for standard input")->required();
  compile->add_option("-k,--kernel", c.kernel, "which kernel of the file");
  compile->add_option("-t,--target", c.target, "what for; see `kiln targets`")->capture_default_str();
  compile->add_option("-e,--emit", c.stage, "graph (after kiln's passes), ir-before (LLVM's passes), ir, asm or obj")->capture_default_str();
  compile->add_option("-f,--fact", c.facts, tool::facts_help);
  compile->add_option("-o,--output", c.output, "a file; standard output otherwise");

  tool::bundle_options b;
  CLI::App* bundle = command(app, "bundle", "compiles kernels ahead of time, with a C header to load and launch them without kiln or LLVM", [&] {
    try {
      return tool::bundle(b);
    } catch (compile_error const& e) {
      std::fprintf(stderr, "kiln: %s\n", e.what());
      return 1;
    }
  });
  bundle->add_option("input", b.inputs, ".kg files or lessons' names")->required();
  bundle->add_option("-t,--target", b.targets, "what for, several times; see `kiln targets`")->required();
  bundle->add_option("-o,--output", b.folder, "the folder for NAME.h, NAME.c and the images")->required();
  bundle->add_option("-n,--name", b.name, "the bundle's name; the folder's otherwise");
  bundle->add_option("-f,--fact", b.facts, "KERNEL:FACT; " + std::string(tool::facts_help));
  bundle->add_option("--ptxas", b.ptxas, "NVIDIA's assembler, for cubins in place of PTX");
  tool::check_command_options k;
  CLI::App* check = command(app, "check", "runs a kernel in the checker: races, deadlocks, missing waits, bounds; exit code 1 when there are faults",
                            [&] { return tool::check_command(k); });
  check->add_option("input", k.input, "a .kg file, a lesson's name, or - for standard input")->required();
  check->add_option("-k,--kernel", k.kernel, "which kernel of the file");
  check->add_option("-g,--grid", k.grid, "CTAs along x, y, z; one cluster if not said")->expected(1, 3)->check(CLI::Range(0, 1 << 20));
  check->add_option("-a,--arg", k.arguments, tool::check_arguments_help);
  check->add_option("-s,--seeds", k.seeds, "schedules to try under each policy of asynchronous copies")->check(CLI::Range(1, 1 << 24));
  check->add_option("--seed", k.seed, "the first; with --seeds 1 it shows a reported fault again");
  check->add_option("--resident", k.resident, "CTAs that run at the same time")->check(CLI::Range(1, 4096));

  graph_options m;
  CLI::App* map = command(app, "memory-map", "draws a kernel's local memory: which buffer has which bytes, and when it is used", [&] { return memory_map_command(m); });
  map->add_option("input", m.input, "a .kg file, a lesson's name, or - for standard input")->required();
  map->add_option("-k,--kernel", m.kernel, "which kernel of the file");
  map->add_option("-o,--output", m.output, "a file; standard output otherwise");
  map->add_flag("--svg", m.svg, "as SVG, which is the only form");

  tool::timeline_command_options t;
  CLI::App* line = command(app, "timeline", "runs a kernel in the checker and writes what its tasks, waits and copies do, as a trace for ui.perfetto.dev", [&] { return tool::timeline_command(t); });
  line->add_option("input", t.run.input, "a .kg file, a lesson's name, or - for standard input")->required();
  line->add_option("-k,--kernel", t.run.kernel, "which kernel of the file");
  line->add_option("-o,--output", t.output, "a file; standard output otherwise");
  line->add_option("-g,--grid", t.run.grid, "CTAs along x, y, z; one cluster if not said")->expected(1, 3)->check(CLI::Range(0, 1 << 20));
  line->add_option("-a,--arg", t.run.arguments, tool::check_arguments_help);
  line->add_option("--seed", t.run.seed, "of the schedule");
  line->add_option("--policy", t.policy, "when copies land: early, late or random")->check(CLI::IsMember({"early", "late", "random"}))->capture_default_str();
  line->add_option("--resident", t.run.resident, "CTAs that run at the same time")->check(CLI::Range(1, 4096));

  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  return tool::guarded("kiln", [&] { return chosen(); });
}
