// The compile entry of the runtime and the tools. One engine and one disk cache serve the process.
#include "jit/compile.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <concepts>
#include <map>
#include <mutex>
#include <utility>

#include "jit/target/host/lower.hpp"
#include "jit/target/simt/lower.hpp"
#include "kiln/graph/cluster.hpp"
#include "kiln/graph/hash.hpp"
#include "kiln/graph/save.hpp"
#include "kiln/validate/capacity.hpp"
#include "kiln/version.hpp"
#include "src/cache/disk_cache.hpp"
#include "src/graph/passes/passes.hpp"
#include "src/graph/passes/sequentialise.hpp"
#include "src/runtime/compiler_interface.hpp"

namespace kiln {

namespace {

/// Counts changes of the code that lowerings write, so that entries of an older emitter are never used.
constexpr int emitter_version = 25;

detail::host_hooks hooks;

void failed_assert(void* runtime, std::int32_t text, std::int32_t file, std::int32_t line) {
  hooks.failed_assert(runtime, text, file, line);
}
void print(void* runtime, std::int32_t text, std::int64_t const* program, std::int32_t items, jit::host::print_item const* item) {
  std::vector<detail::printed> all;
  for (std::int32_t i = 0; i < items; ++i) all.push_back({item[i].type, item[i].rank, item[i].elements, item[i].data});
  hooks.print(runtime, text, program, items, all.data());
}
static_assert(std::same_as<decltype(failed_assert), jit::host::assert_function> && std::same_as<decltype(print), jit::host::print_function>);

// Never destroyed: kernels may run while static objects go away.
jit::engine& the_engine() {
  static auto* e = new jit::engine({.symbols = {{jit::host::assert_hook, reinterpret_cast<void*>(failed_assert)},
                                                {jit::host::print_hook, reinterpret_cast<void*>(print)}}});
  return *e;
}
disk_cache& the_cache() {
  static auto* c = new disk_cache(cache_options::from_environment(version(), std::string(jit::llvm_version())));
  return *c;
}

/// A symbol that every assembler takes: letters, digits and underscores.
std::string symbol_of(graph_view const& g) {
  std::string s = "kiln_";
  for (char c : g.name) s += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
  return s;
}

std::string text_of(jit::code_info const& i) {
  return std::to_string(i.arena_bytes) + " " + std::to_string(i.chunk) + " " + std::to_string(i.shared_bytes) + " " +
         std::to_string(i.threads) + " " + std::to_string(i.fault.size()) + " " + std::to_string(i.assembler_log.size()) + "\n" + i.fault +
         i.assembler_log + i.notes;
}
bool parse_info(std::string_view text, jit::code_info& i) {
  auto number = [&](auto& to) {
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), to);
    if (failed != std::errc() || end == text.data() + text.size()) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return true;
  };
  std::size_t fault = 0, log = 0;
  if (!number(i.arena_bytes) || !number(i.chunk) || !number(i.shared_bytes) || !number(i.threads) || !number(fault) || !number(log)) return false;
  if (fault > text.size() || log > text.size() - fault) return false;
  i.fault = text.substr(0, fault);
  i.assembler_log = text.substr(fault, log);
  i.notes = text.substr(fault + log);
  return true;
}

cache_key key_of(graph_view const& g, specialisation const& facts, target const& t, std::string const& device, jit::host_cpu const& cpu) {
  cache_key key;
  key.add("emitter", emitter_version);
  key.add("graph", to_string(debug_hash(g)));
  key.add("target", t.name());
  if (t.family == target_family::host) key.add("cpu", cpu.name).add("features", cpu.features);
  if (t.family == target_family::nvptx) key.add("device", device);
  for (param_facts const& p : facts.params) {
    key.add("alignment", p.alignment);
    auto fact = [&](integer_fact const& f) { key.add(f.constant ? "is" : "divisor", f.constant ? f.value : f.divisor); };
    fact(p.scalar);
    for (integer_fact const& f : p.extent) fact(f);
    for (integer_fact const& f : p.stride) fact(f);
  }
  return key;
}

void fill(jit::module_builder& m, graph_view const& prepared, specialisation const& facts, jit::host_cpu const& cpu, jit::code_info& info) {
  if (m.target.family == target_family::host) {
    // What fits here fits a GPU: the host has limits, although its memory has not.
    if (diagnostic const d = check_capacity(prepared, targets::host); !d.ok())
      throw compile_error(std::string(prepared.name.empty() ? m.symbol : prepared.name), "host", "placing local memory",
                          (prepared.nodes[d.node].line > 0 ? std::string(prepared.file(d.node)) + ":" + std::to_string(prepared.nodes[d.node].line) + ": " : std::string()) + std::string(d.view()));
    // One thread runs a CTA, or a cluster of them: tasks become one program.
    bool const tasks = cluster_size(prepared.attrs) > 1 || std::any_of(prepared.nodes.begin(), prepared.nodes.end(), [](node const& n) { return is_of_tasks(n.code); });
    graph one;
    if (tasks) {
      try {
        one = sequentialise_tasks(prepared);
      } catch (std::invalid_argument const& e) { throw compile_error(std::string(m.symbol), "host", "lowering", std::string("kiln[R-TG01] ") + e.what()); }
      one = run_passes(one, standard_passes(), {.facts = {}, .grid = {}});
    }
    auto code = jit::host::lower_host(tasks ? graph_view(one) : prepared, facts, cpu, m);
    info.arena_bytes = code.arena_bytes;
    info.chunk = code.chunk;
  } else {
    auto code = jit::lower_simt(prepared, facts, m.target, m);
    info.shared_bytes = code.shared_bytes;
    info.threads = static_cast<std::uint32_t>(code.num_threads);
    info.fault = code.fault;
    for (std::string const& note : code.notes) info.notes += (info.notes.empty() ? "" : "\n") + note;
  }
}

/// What is known of finished specialisations beside their code, by engine key.
struct known_infos {
  std::mutex guard;
  std::map<std::string, jit::code_info, std::less<>> by_key;
};
known_infos& infos() {
  static auto* i = new known_infos;
  return *i;
}

} // namespace

namespace jit {

graph prepare_graph(graph_view const& g, specialisation const& facts) {
  return run_passes(g, standard_passes(), {.facts = facts, .grid = {}});
}

std::string emit(graph_view const& g, specialisation const& facts, target const& t, emit_kind kind, code_info* info) {
  host_cpu cpu = the_engine().cpu();
  code_info local;
  request r{.target = t, .device = {}, .symbol = symbol_of(g), .key = "emit", .build = {}, .codegen = {}, .cached = {}, .device_link = {}, .store = {}};
  r.build = [&](module_builder& m) {
    graph prepared = prepare_graph(g, facts);
    fill(m, prepared, facts, cpu, local);
  };
  std::string text = the_engine().emit(r, kind);
  if (info) *info = local;
  return text;
}

} // namespace jit

namespace detail {

namespace {

/// What the disk cache has of a key, and what belongs to it.
std::optional<jit::cached_image> on_disk(cache_key const& key, jit::code_info& info) {
  auto entry = the_cache().get(key);
  if (!entry) return std::nullopt;
  std::size_t line = entry->meta.find('\n');
  int kind = 0;
  auto [end, failed] = std::from_chars(entry->meta.data(), entry->meta.data() + entry->meta.size(), kind);
  if (failed != std::errc() || line == std::string::npos || !parse_info(std::string_view(entry->meta).substr(line + 1), info)) return std::nullopt;
  return jit::cached_image{std::move(entry->image), static_cast<jit::image_kind>(kind)};
}

void put_info(device_code& d, jit::code_info const& info) {
  d.arena_bytes = info.arena_bytes;
  d.chunk = info.chunk;
  d.shared_bytes = info.shared_bytes;
  d.threads = info.threads;
  d.fault = info.fault;
  d.assembler_log = info.assembler_log;
  d.notes = info.notes;
}

} // namespace

device_code get_code(code_request const& q) {
  auto start = std::chrono::steady_clock::now();
  auto const milliseconds = [&] { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count(); };
  bool const host = q.target.family == target_family::host;
  jit::code_info info;
  cache_key const key = key_of(q.graph, q.facts, q.target, q.device, host ? the_engine().cpu() : jit::host_cpu{});
  std::string engine_key(key.bytes());
  bool const new_here = [&] {
    std::lock_guard lock(infos().guard);
    return !infos().by_key.contains(engine_key);
  }();
  // What a driver loads needs no engine; a process that finds all its code on disk never starts one.
  bool const looked = !host && new_here;
  if (looked)
    if (auto image = on_disk(key, info)) {
      device_code d;
      auto bytes = std::make_shared<std::string>(std::move(image->bytes));
      d.image = *bytes;
      d.entry = symbol_of(q.graph);
      put_info(d, info);
      d.from_cache = true;
      d.owner = std::move(bytes);
      d.milliseconds = milliseconds();
      return d;
    }

  jit::engine& e = the_engine();
  double graph_milliseconds = 0;
  jit::request r{.target = q.target, .device = q.device, .symbol = symbol_of(q.graph), .key = engine_key, .build = {}, .codegen = {}, .cached = {}, .device_link = {}, .store = {}};
  auto remember = [&] {
    std::lock_guard lock(infos().guard);
    infos().by_key[engine_key] = info;
  };
  r.cached = [&]() -> std::optional<jit::cached_image> {
    if (looked) return std::nullopt;
    auto image = on_disk(key, info);
    if (image) remember();
    return image;
  };
  r.build = [&](jit::module_builder& m) {
    dump_graph(q.graph);
    auto const passes = std::chrono::steady_clock::now();
    graph prepared = jit::prepare_graph(q.graph, q.facts);
    graph_milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - passes).count();
    fill(m, prepared, q.facts, e.cpu(), info);
    remember();
  };
  if (q.device_link)
    r.device_link = [&](std::string_view ptx) {
      std::string image = q.device_link(ptx, info.assembler_log);
      remember();
      return image;
    };
  r.store = [&](jit::compiled const& c) {
    the_cache().put(key, std::to_string(static_cast<int>(c.kind())) + "\n" + text_of(info), c.image());
  };
  auto code = std::make_shared<jit::compiled>(e.compile(r));

  {
    std::lock_guard lock(infos().guard);
    info = infos().by_key[engine_key];
  }
  device_code d;
  d.image = code->image();
  d.entry = code->entry();
  d.call = code->as<host_entry>();
  put_info(d, info);
  d.from_cache = code->from_cache();
  if (!code->notes().empty()) d.notes += (d.notes.empty() ? "" : "\n") + std::string(code->notes());
  jit::phase_times const& t = code->times();
  d.phases = {graph_milliseconds, std::max(0., t.emit - graph_milliseconds), t.passes, t.codegen, t.link};
  d.owner = std::move(code);
  d.milliseconds = milliseconds();
  return d;
}

disk_cache& process_cache() { return the_cache(); }

void set_host_hooks(host_hooks h) { hooks = h; }

} // namespace detail
} // namespace kiln
