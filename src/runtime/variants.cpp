// From arguments to code. Cold: facts about the arguments become a specialisation, which is compiled, found in a cache,
// or loaded. Warm: the facts are packed into a few words and looked up.
#include "src/runtime/variants.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "kiln/runtime/error.hpp"
#include "src/runtime/assembler_log.hpp"
#include "src/runtime/log.hpp"
#include "src/runtime/workspace.hpp"

namespace kiln::detail {

namespace {

// Bits of a packed fact: what the code may assume.
constexpr std::uint64_t is_one = 1, divisible = 2, is_zero = 4;
constexpr int bits_per_fact = 3;

/// The facts of a launch, packed: one word per parameter, and one more per baked-in value.
struct fact_key {
  std::array<std::uint64_t, 2 * max_slots> words;
  int size = 0;
  void add(std::uint64_t w) { words[static_cast<std::size_t>(size++)] = w; }
  bool matches(std::vector<std::uint64_t> const& other) const {
    return other.size() == static_cast<std::size_t>(size) &&
           std::memcmp(other.data(), words.data(), other.size() * sizeof(std::uint64_t)) == 0;
  }
};

/// Whether integers are specialised on that nobody said anything about.
enum class integers : bool { specialised, general };

argument_mode mode_of(argument const& a, integers how) {
  return how == integers::general && a.mode == argument_mode::specialise ? argument_mode::generic : a.mode;
}

std::uint64_t integer_bits(std::int64_t v) {
  return v == 1 ? is_one : v == 0 ? is_zero | divisible : (v & 15) == 0 ? divisible : 0;
}

void pack(param_info const& p, argument const& a, integers how, fact_key& key) {
  argument_mode const mode = mode_of(a, how);
  if (p.kind == node_kind::value) {
    bool specialise = mode == argument_mode::specialise && is_int(p.type);
    key.add(static_cast<std::uint64_t>(mode) | (specialise ? integer_bits(integer_value(p, a.bits)) << 2 : 0));
    if (mode == argument_mode::constant) key.add(a.bits);
    return;
  }
  std::uint64_t word = static_cast<std::uint64_t>(mode);
  int at = 2;
  if (a.mode != argument_mode::generic) word |= static_cast<std::uint64_t>((a.bits & 15) == 0) << at;
  ++at;
  if (p.kind == node_kind::array && mode != argument_mode::generic)
    for (int d = 0; d < p.rank; ++d) {
      word |= integer_bits(a.shape[d]) << at;
      word |= integer_bits(a.strides[d]) << (at + bits_per_fact);
      at += 2 * bits_per_fact;
    }
  key.add(word);
  if (p.kind == node_kind::array && mode == argument_mode::constant)
    for (int d = 0; d < p.rank; ++d) {
      key.add(static_cast<std::uint64_t>(a.shape[d]));
      key.add(static_cast<std::uint64_t>(a.strides[d]));
    }
}

/// Words that `pack` wrote for a parameter, from the first of them.
std::size_t words_of(param_info const& p, std::uint64_t first) {
  if (static_cast<argument_mode>(first & 3) != argument_mode::constant || p.kind == node_kind::pointer) return 1;
  return p.kind == node_kind::value ? 2 : 1 + 2 * static_cast<std::size_t>(p.rank);
}

integer_fact fact_of(std::int64_t v, argument_mode mode) {
  if (mode == argument_mode::constant || (mode == argument_mode::specialise && v == 1)) return {true, v, 1};
  if (mode == argument_mode::specialise && (v & 15) == 0) return {false, 0, 16};
  return {};
}

/// The same facts as a specialisation, for the compiler. Extents and strides of 0 are kept apart from other multiples of
/// 16 by the key only for strides of 0 (broadcasts), which become constants.
specialisation facts_of(graph_view const& g, std::span<argument const> arguments, integers how) {
  specialisation s = specialisation::generic(g);
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    param_info const& p = g.params[i];
    argument const& a = arguments[i];
    argument_mode const mode = mode_of(a, how);
    param_facts& f = s.params[i];
    if (p.kind == node_kind::value) {
      if (mode == argument_mode::constant)
        f.scalar = {true, is_float(p.type) ? static_cast<std::int64_t>(a.bits) : integer_value(p, a.bits), 1};
      else if (is_int(p.type))
        f.scalar = fact_of(integer_value(p, a.bits), mode);
      continue;
    }
    if (a.mode != argument_mode::generic && (a.bits & 15) == 0) f.alignment = 16;
    if (p.kind != node_kind::array) continue;
    for (int d = 0; d < p.rank; ++d) {
      f.extent[d] = fact_of(a.shape[d], mode);
      f.stride[d] = a.strides[d] == 0 && mode == argument_mode::specialise ? integer_fact{true, 0, 1} : fact_of(a.strides[d], mode);
    }
  }
  return s;
}

/// What the packed words of a parameter say, for people.
std::string facts_text(param_info const& p, std::uint64_t const* words) {
  auto const mode = static_cast<argument_mode>(words[0] & 3);
  auto integer = [](std::uint64_t bits) -> std::string {
    return bits & is_one ? "1" : bits & is_zero ? "0" : bits & divisible ? "divisible by 16" : "not divisible by 16";
  };
  if (p.kind == node_kind::value) {
    if (mode == argument_mode::constant)
      return "constant " + (is_float(p.type) ? "bits " + std::to_string(words[1]) : std::to_string(integer_value(p, words[1])));
    return mode == argument_mode::generic || !is_int(p.type) ? "any value" : integer(words[0] >> 2);
  }
  std::string text = words[0] >> 2 & 1 ? "16-byte aligned" : "not 16-byte aligned";
  if (p.kind == node_kind::pointer) return text;
  for (int what = 0; what < 2; ++what) {
    text += what ? "}, strides {" : ", extents {";
    for (int d = 0; d < p.rank; ++d) {
      text += d ? ", " : "";
      if (mode == argument_mode::constant) text += std::to_string(static_cast<std::int64_t>(words[1 + 2 * d + what]));
      else if (mode == argument_mode::generic) text += "any";
      else text += integer(words[0] >> (3 + bits_per_fact * (2 * d + what)));
    }
  }
  return text + "}";
}

variant* find(kernel_state const& s, backend const& where, fact_key const& key) {
  for (variant* v = s.first.load(std::memory_order_acquire); v; v = v->next)
    if (v->where == &where && key.matches(v->key)) return v;
  return nullptr;
}

int count_on(kernel_state const& s, backend const& where) {
  int n = 0;
  for (variant* v = s.first.load(std::memory_order_acquire); v; v = v->next) n += v->where == &where;
  return n;
}

/// Which arguments differ from the variant that is closest, and how: for KILN_LOG=compile.
std::string cause_of(graph_view const& g, kernel_state const& s, backend const& where, fact_key const& key) {
  std::string best;
  int fewest = -1;
  for (variant* v = s.first.load(std::memory_order_acquire); v; v = v->next) {
    if (v->where != &where) continue;
    std::string text;
    int different = 0;
    std::uint64_t const *now = key.words.data(), *before = v->key.data();
    for (std::size_t i = 0; i < g.params.size(); ++i) {
      param_info const& p = g.params[i];
      std::size_t const n = words_of(p, *now), m = words_of(p, *before);
      if (n != m || std::memcmp(now, before, n * sizeof *now) != 0) {
        text += std::string(different ? "; " : "") + argument_text(g, static_cast<int>(i)) + " is " + facts_text(p, now) + ", was " +
                facts_text(p, before);
        ++different;
      }
      now += n;
      before += m;
    }
    if (fewest >= 0 && different >= fewest) continue;
    fewest = different;
    best = text;
  }
  return fewest < 0 ? "first launch there" : "because " + best;
}

/// Loads an image and checks what only the driver knows of it.
void load(kernel_entry const& kernel, gpu_backend& gpu, variant& v) {
  device_code const& c = v.code;
  std::string const name = "kernel '" + std::string(kernel.graph.name) + "'";
  std::string const place = device(gpu).id() + " (" + gpu.record().name + ")";
  void* module = gpu.load_module({reinterpret_cast<std::byte const*>(c.image.data()), c.image.size()});
  struct unloading { // what is refused below is not kept
    gpu_backend& gpu;
    void* module;
    ~unloading() {
      if (module) gpu.unload_module(module);
    }
  } refused{gpu, module};
  v.function = gpu.find_function(module, c.entry);
  gpu_function_info const info = gpu.describe(v.function);
  if (static_cast<int>(c.threads) > info.max_threads)
    throw error(name + ": a CTA has " + std::to_string(c.threads) + " threads, " + place + " can run " + std::to_string(info.max_threads) +
                " of this code, which takes " + std::to_string(info.registers) +
                " registers a thread; use fewer warps (attributes{.num_warps = n}) or smaller tiles");
  i64 const shared = i64{c.shared_bytes} + info.static_shared_bytes, most = gpu.record().shared_bytes_per_cta;
  if (most > 0 && shared > most)
    throw error(name + ": a CTA needs " + std::to_string(shared) + " bytes of shared memory, " + place + " has " + std::to_string(most) +
                "; use smaller tiles or fewer stages");
  if (shared > 48 * 1024) gpu.allow_shared(v.function, c.shared_bytes);
  dims const& cluster = kernel.graph.attrs.cluster;
  i64 const members = cluster.x * cluster.y * cluster.z;
  if (members > 8) gpu.allow_large_clusters(v.function);
  if (members > 1 && gpu.resident_clusters(v.function, gpu_launch::of_cluster(cluster, c.threads, c.shared_bytes)) < 1)
    throw error(name + ": no cluster of " + std::to_string(members) + " CTAs of " + std::to_string(c.threads) + " threads and " + std::to_string(shared) +
                " bytes of shared memory fits " + place + "; use smaller clusters (attributes{.cluster}) or smaller CTAs");
  void* const fault = c.fault.empty() ? nullptr : gpu.find_global(module, c.fault);
  refused.module = nullptr;
  if (c.fault.empty()) return;
  v.faults = new gpu_fault_record; // NOLINT: as long as the variant
  v.faults->address = fault;
  v.faults->describe = [&g = kernel.graph](std::uint32_t const* words) {
    int const text = static_cast<int>(words[1]) - 1, line = static_cast<int>(words[2]);
    std::string what, where = "line " + std::to_string(line);
    for (int n = 0; n < g.size(); ++n)
      if (g[n].code == op::device_assert && g.attribute(n, 0) == text && g[n].line == line) {
        what = g.string(text);
        where = std::string(g.file(n)) + ":" + std::to_string(line);
      }
    return "kernel '" + std::string(g.name) + "': device_assert failed" + (what.empty() ? "" : ": " + what) + " (" + where + ") in CTA " +
           std::to_string(words[3]);
  };
}

void tell(graph_view const& g, device_code const& c, std::string const& where, std::string const& cause) {
  char time[160];
  if (c.from_cache) std::snprintf(time, sizeof time, "%.2f ms", c.milliseconds);
  else
    std::snprintf(time, sizeof time, "%.2f ms (graph %.2f, IR %.2f, its passes %.2f, code %.2f, assembler or link %.2f)", c.milliseconds, c.phases.graph,
                  c.phases.emit, c.phases.passes, c.phases.codegen, c.phases.link);
  log_line(log_topic::compile, "kernel '" + std::string(g.name) + "' on " + where + ": " +
                                   (c.from_cache ? "found in the cache in " : "compiled in ") + time + ", " + cause +
                                   (c.notes.empty() ? "" : "\n" + c.notes) + (c.assembler_log.empty() ? "" : "\n" + c.assembler_log));
  for (std::string const& w : read_assembler_log(c.assembler_log).warnings)
    log_line(log_topic::compile, "warning: kernel '" + std::string(g.name) + "' on " + where + ": " + w);
}

variant& make_variant(kernel_entry& kernel, kernel_state& s, backend& where, fact_key const& key, std::span<argument const> arguments,
                      integers how) {
  std::lock_guard lock(s.compiling);
  if (variant* v = find(s, where, key)) return *v;
  auto fresh = std::make_unique<variant>();
  fresh->where = &where;
  fresh->key.assign(key.words.begin(), key.words.begin() + key.size);
  code_request request{kernel.graph, facts_of(kernel.graph, arguments, how), where.record().arch, {}, {}};
  auto* gpu = dynamic_cast<gpu_backend*>(&where);
  request.device = device(where).id();
  if (gpu && where.record().kind == device_kind::cuda)
    request.device_link = [gpu](std::string_view ptx, std::string& log) {
      auto linked = gpu->link_ptx(ptx, true);
      log = linked.log;
      return std::string(reinterpret_cast<char const*>(linked.image.data()), linked.image.size());
    };
  std::string cause = log_enabled(log_topic::compile) ? cause_of(kernel.graph, s, where, key) : std::string();
  fresh->code = get_code(request);
  if (log_enabled(log_topic::compile)) tell(kernel.graph, fresh->code, request.device, cause);
  if (gpu) load(kernel, *gpu, *fresh);
  // Constants go on making code after the limit, since they were asked for; at each doubling somebody should hear of it.
  int const count = count_on(s, where) + 1;
  if (count >= many_variants && (count & (count - 1)) == 0)
    std::fprintf(stderr,
                 "kiln: warning: kernel '%s' has been compiled for %d different sets of arguments on %s; from now on integers are not "
                 "specialised on. Pass those that vary as generic(x); KILN_LOG=compile names them\n",
                 std::string(kernel.graph.name).c_str(), count, request.device.c_str());
  fresh->next = s.first.load(std::memory_order_relaxed);
  s.first.store(fresh.get(), std::memory_order_release);
  return *fresh.release();
}

// Remarks that a `kernel_info` names. A kernel's code has few different ones, and kernels live until the process ends.
std::string_view kept(std::string text) {
  static std::mutex guard;
  static auto* const all = new std::set<std::string>; // NOLINT: named by what may outlive every static object
  std::scoped_lock const lock(guard);
  return *all->insert(std::move(text)).first;
}

kernel_info info_of(kernel_state const& s, variant const& v) {
  device_code const& c = v.code;
  kernel_info i;
  i.variants = count_on(s, *v.where);
  i.compile_milliseconds = c.milliseconds;
  i.from_cache = c.from_cache;
  i.notes = kept(c.notes);
  i.arena_bytes = c.arena_bytes;
  i.threads = static_cast<int>(c.threads);
  if (v.where->record().kind == device_kind::host) return i;
  auto& gpu = static_cast<gpu_backend&>(const_cast<backend&>(*v.where));
  gpu_function_info const f = gpu.describe(v.function);
  assembler_report const report = read_assembler_log(c.assembler_log);
  i.registers = f.registers;
  i.stack_bytes = f.local_bytes;
  i.spill_bytes = report.known ? report.spill_store_bytes + report.spill_load_bytes : -1;
  i.shared_bytes = i64{c.shared_bytes} + f.static_shared_bytes;
  i.ctas_per_multiprocessor = gpu.occupancy(v.function, i.threads, c.shared_bytes);
  if (int const most = gpu.record().threads_per_multiprocessor; most > 0)
    i.occupancy = static_cast<double>(i.ctas_per_multiprocessor) * i.threads / most;
  if (!report.warnings.empty()) {
    std::string notes = c.notes;
    for (std::string const& w : report.warnings) notes += (notes.empty() ? "" : "\n") + w;
    i.notes = kept(std::move(notes));
  }
  return i;
}

} // namespace

namespace {
/// What `match_buffer` with .align, and `multiple_of` of a parameter, promise about addresses, wherever the kernel goes.
std::vector<std::uint64_t> promised_alignment(graph_view const& g) {
  std::vector<std::uint64_t> found;
  int depth = 0;
  for (int i = 0; i < g.size(); ++i) {
    depth += has(g[i].code, trait::opens) - has(g[i].code, trait::closes);
    if (depth != 0 || g[i].code != op::multiple_of) continue;
    node const& of = g[g.operand(i, 0)];
    if (of.code != op::param || of.kind != node_kind::pointer) continue;
    found.resize(g.params.size());
    auto& known = found[static_cast<std::size_t>(g.attribute(g.operand(i, 0), 0))];
    known = std::max(known, static_cast<std::uint64_t>(g.attribute(i, 0)));
  }
  return found;
}
} // namespace

kernel_state& state_of(kernel_entry& kernel) {
  std::atomic_ref<kernel_state*> state(kernel.state);
  if (kernel_state* s = state.load(std::memory_order_acquire)) return *s;
  auto* fresh = new kernel_state; // NOLINT: lives until the process ends, as kernels do
  fresh->alignment = promised_alignment(kernel.graph);
  kernel_state* expected = nullptr;
  if (state.compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *expected;
}

std::int64_t integer_value(param_info const& p, std::uint64_t bits) {
  int width = bits_of(p.type);
  if (width >= 64 || !is_signed_int(p.type)) return static_cast<std::int64_t>(bits);
  return static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width);
}

std::string argument_text(graph_view const& g, int i) {
  param_info const& p = g.params[static_cast<std::size_t>(i)];
  std::string type = name_of(p.type);
  if (p.is_const) type = "const " + type;
  std::string kind = p.kind == node_kind::value     ? "val<" + type + ">"
                     : p.kind == node_kind::pointer ? "ptr<" + type + ">"
                                                    : "array<" + type + ", " + std::to_string(p.rank) + ">";
  return "argument " + std::to_string(i) + " (" + kind + ")";
}

std::string parameter_text(kernel_entry const& k, int i) {
  return "kernel '" + std::string(k.graph.name) + "', " + argument_text(k.graph, i);
}

variant& variant_for(kernel_entry& kernel, backend& where, std::span<argument const> arguments) {
  graph_view const& g = kernel.graph;
  if (arguments.size() < g.params.size()) return variant_for(kernel, where, all_arguments(kernel, arguments).span());
  if (slot_count(g) > max_slots)
    throw error("kernel '" + std::string(g.name) + "' has more than " + std::to_string(max_slots) + " argument slots; bundle values in an array");
  auto packed = [&](integers how) {
    fact_key key;
    for (std::size_t i = 0; i < g.params.size(); ++i) pack(g.params[i], arguments[i], how, key);
    return key;
  };
  kernel_state& s = state_of(kernel);
  fact_key key;
  for (std::size_t i = 0; i < g.params.size(); ++i) pack(g.params[i], arguments[i], integers::specialised, key);
  if (variant* v = find(s, where, key)) return *v;
  if (count_on(s, where) < many_variants) return make_variant(kernel, s, where, key, arguments, integers::specialised);
  fact_key const general = packed(integers::general);
  if (variant* v = find(s, where, general)) return *v;
  return make_variant(kernel, s, where, general, arguments, integers::general);
}

kernel_info info(kernel_entry& kernel, device const& where) {
  kernel_state& s = state_of(kernel);
  for (variant* v = s.first.load(std::memory_order_acquire); v; v = v->next)
    if (v->where == &where.get_backend()) return info_of(s, *v);
  throw error("kernel '" + std::string(kernel.graph.name) + "' has no code for " + where.id() +
              " yet: launch or prepare it first, or ask info(device, arguments...)");
}

kernel_info info(kernel_entry& kernel, stream const& where, std::span<argument const> arguments) {
  variant& v = variant_for(kernel, *where.state().owner, arguments);
  return info_of(state_of(kernel), v);
}

} // namespace kiln::detail
