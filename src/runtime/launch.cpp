// The launch path. Cold: facts about the arguments become a specialisation, which is compiled, found in a cache, or loaded.
// Warm: the facts are packed into a few words and looked up in a list that is only ever added to; nothing is locked or
// allocated.
#include "kiln/runtime/launch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "kiln/dtype/float16.hpp"
#include "kiln/dtype/float8.hpp"
#include "kiln/runtime/error.hpp"
#include "src/runtime/backend.hpp"
#include "src/runtime/compiler_interface.hpp"
#include "src/runtime/gpu_backend.hpp"
#include "src/runtime/host_launch.hpp"
#include "src/runtime/log.hpp"

namespace kiln::detail {

namespace {

constexpr int max_slots = 256;

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

std::uint64_t integer_bits(std::int64_t v) {
  return v == 1 ? is_one : v == 0 ? is_zero | divisible : (v & 15) == 0 ? divisible : 0;
}

/// Sign-extends a value parameter's bits to the number they stand for; floats have no facts.
std::int64_t integer_value(param_info const& p, std::uint64_t bits) {
  int width = bits_of(p.type);
  if (width >= 64 || !is_signed_int(p.type)) return static_cast<std::int64_t>(bits);
  return static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width);
}

void pack(param_info const& p, argument const& a, fact_key& key) {
  std::uint64_t mode = static_cast<std::uint64_t>(a.mode);
  if (p.kind == node_kind::value) {
    bool specialise = a.mode == argument_mode::specialise && is_int(p.type);
    key.add(mode | (specialise ? integer_bits(integer_value(p, a.bits)) << 2 : 0));
    if (a.mode == argument_mode::constant) key.add(a.bits);
    return;
  }
  std::uint64_t word = mode;
  int at = 2;
  if (a.mode != argument_mode::generic) word |= static_cast<std::uint64_t>((a.bits & 15) == 0) << at;
  ++at;
  if (p.kind == node_kind::array && a.mode != argument_mode::generic)
    for (int d = 0; d < p.rank; ++d) {
      word |= integer_bits(a.shape[d]) << at;
      word |= integer_bits(a.strides[d]) << (at + bits_per_fact);
      at += 2 * bits_per_fact;
    }
  key.add(word);
  if (p.kind == node_kind::array && a.mode == argument_mode::constant)
    for (int d = 0; d < p.rank; ++d) {
      key.add(static_cast<std::uint64_t>(a.shape[d]));
      key.add(static_cast<std::uint64_t>(a.strides[d]));
    }
}

integer_fact fact_of(std::int64_t v, argument_mode mode) {
  if (mode == argument_mode::constant || (mode == argument_mode::specialise && v == 1)) return {true, v, 1};
  if (mode == argument_mode::specialise && (v & 15) == 0) return {false, 0, 16};
  return {};
}

/// The same facts as a specialisation, for the compiler. Extents and strides of 0 are kept apart from other multiples of
/// 16 by the key only for strides of 0 (broadcasts), which become constants.
specialisation facts_of(graph_view const& g, std::span<argument const> arguments) {
  specialisation s = specialisation::generic(g);
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    param_info const& p = g.params[i];
    argument const& a = arguments[i];
    param_facts& f = s.params[i];
    if (p.kind == node_kind::value) {
      if (a.mode == argument_mode::constant)
        f.scalar = {true, is_float(p.type) ? static_cast<std::int64_t>(a.bits) : integer_value(p, a.bits), 1};
      else if (is_int(p.type))
        f.scalar = fact_of(integer_value(p, a.bits), a.mode);
      continue;
    }
    if (a.mode != argument_mode::generic && (a.bits & 15) == 0) f.alignment = 16;
    if (p.kind != node_kind::array) continue;
    for (int d = 0; d < p.rank; ++d) {
      f.extent[d] = fact_of(a.shape[d], a.mode);
      f.stride[d] = a.strides[d] == 0 && a.mode == argument_mode::specialise ? integer_fact{true, 0, 1} : fact_of(a.strides[d], a.mode);
    }
  }
  return s;
}

/// Code for one set of facts on one device.
struct variant {
  backend const* where = nullptr;
  std::vector<std::uint64_t> key;
  device_code code;
  void* function = nullptr; // GPU
  host_speed speed;         // host
  variant* next = nullptr;
};

std::string parameter_text(kernel_entry const& k, int i) {
  param_info const& p = k.graph.params[static_cast<std::size_t>(i)];
  std::string type = name_of(p.type);
  if (p.is_const) type = "const " + type;
  std::string kind = p.kind == node_kind::value ? "val<" + type + ">"
                     : p.kind == node_kind::pointer ? "ptr<" + type + ">"
                                                    : "array<" + type + ", " + std::to_string(p.rank) + ">";
  return "kernel '" + std::string(k.graph.name) + "', argument " + std::to_string(i) + " (" + kind + ")";
}

} // namespace

/// What the runtime keeps for a kernel; lives until the process ends, as kernels do.
struct kernel_state {
  std::mutex compiling;
  std::atomic<variant*> first{nullptr};
  int count = 0;
};

namespace {

kernel_state& state_of(kernel_entry& kernel) {
  std::atomic_ref<kernel_state*> state(kernel.state);
  if (kernel_state* s = state.load(std::memory_order_acquire)) return *s;
  auto* fresh = new kernel_state; // NOLINT: see kernel_state
  kernel_state* expected = nullptr;
  if (state.compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *expected;
}

variant* find(kernel_state const& s, backend const& where, fact_key const& key) {
  for (variant* v = s.first.load(std::memory_order_acquire); v; v = v->next)
    if (v->where == &where && key.matches(v->key)) return v;
  return nullptr;
}

/// Which argument differs from the variant that is closest: for KILN_LOG=compile.
std::string cause_of(kernel_entry const& kernel, kernel_state const& s, backend const& where, std::span<argument const> arguments) {
  variant* last = s.first.load(std::memory_order_acquire);
  while (last && last->where != &where) last = last->next;
  if (!last) return "first launch";
  std::size_t at = 0;
  for (std::size_t i = 0; i < kernel.graph.params.size(); ++i) {
    fact_key one;
    pack(kernel.graph.params[i], arguments[i], one);
    for (int w = 0; w < one.size; ++w, ++at)
      if (at >= last->key.size() || last->key[at] != one.words[static_cast<std::size_t>(w)])
        return "because of " + parameter_text(kernel, static_cast<int>(i));
  }
  return "another combination of facts";
}

/// More variants than this of one kernel look like an argument that should not be specialised on.
constexpr int many_variants = 64;

variant& make_variant(kernel_entry& kernel, kernel_state& s, backend& where, fact_key const& key, std::span<argument const> arguments) {
  std::lock_guard lock(s.compiling);
  if (variant* v = find(s, where, key)) return *v;
  auto fresh = std::make_unique<variant>();
  fresh->where = &where;
  fresh->key.assign(key.words.begin(), key.words.begin() + key.size);
  code_request request{kernel.graph, facts_of(kernel.graph, arguments), where.record().arch, {}, {}};
  auto* gpu = dynamic_cast<gpu_backend*>(&where);
  request.device = device(where).id();
  if (gpu && where.record().kind == device_kind::cuda)
    request.device_link = [gpu](std::string_view ptx) {
      auto linked = gpu->link_ptx(ptx, false);
      log_line(log_topic::compile, linked.log);
      return std::string(reinterpret_cast<char const*>(linked.image.data()), linked.image.size());
    };
  std::string cause = log_enabled(log_topic::compile) ? cause_of(kernel, s, where, arguments) : std::string();
  fresh->code = get_code(request);
  if (gpu) {
    device_code const& c = fresh->code;
    void* module = gpu->load_module({reinterpret_cast<std::byte const*>(c.image.data()), c.image.size()});
    fresh->function = gpu->find_function(module, c.entry);
    if (c.shared_bytes > 48 * 1024) gpu->allow_shared(fresh->function, c.shared_bytes);
  }
  if (log_enabled(log_topic::compile)) {
    char time[32];
    std::snprintf(time, sizeof time, "%.2f ms", fresh->code.milliseconds);
    log_line(log_topic::compile, "kernel '" + std::string(kernel.graph.name) + "' on " + request.device + ": " +
                                     (fresh->code.from_cache ? "found in the cache in " : "compiled in ") + time + ", " + cause +
                                     (fresh->code.notes.empty() ? "" : "\n" + fresh->code.notes));
  }
  if (++s.count == many_variants)
    std::fprintf(stderr, "kiln: warning: kernel '%s' has been compiled for %d different sets of arguments; pass those that vary as generic(x)\n",
                 std::string(kernel.graph.name).c_str(), many_variants);
  fresh->next = s.first.load(std::memory_order_relaxed);
  s.first.store(fresh.get(), std::memory_order_release);
  return *fresh.release();
}

variant& variant_for(kernel_entry& kernel, backend& where, std::span<argument const> arguments) {
  if (slot_count(kernel.graph) > max_slots)
    throw error("kernel '" + std::string(kernel.graph.name) + "' has more than " + std::to_string(max_slots) + " argument slots; bundle values in an array");
  fact_key key;
  for (std::size_t i = 0; i < kernel.graph.params.size(); ++i) pack(kernel.graph.params[i], arguments[i], key);
  kernel_state& s = state_of(kernel);
  if (variant* v = find(s, where, key)) return *v;
  return make_variant(kernel, s, where, key, arguments);
}

int pack_slots(graph_view const& g, std::span<argument const> arguments, std::uint64_t* slots) {
  int n = 0;
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    argument const& a = arguments[i];
    slots[n++] = a.bits;
    if (g.params[i].kind != node_kind::array) continue;
    int rank = g.params[i].rank;
    for (int d = 0; d < rank; ++d) slots[n++] = static_cast<std::uint64_t>(a.shape[d]);
    for (int d = 0; d < rank; ++d) slots[n++] = static_cast<std::uint64_t>(a.strides[d]);
  }
  return n;
}

void check_grid(kernel_entry const& kernel, grid const& g) {
  auto check = [&](char axis, i64 value, i64 limit) {
    if (value < 0 || value > limit)
      throw error("kernel '" + std::string(kernel.graph.name) + "': grid axis " + axis + " is " + std::to_string(value) + "; valid are 0.." + std::to_string(limit));
  };
  check('x', g.x, largest_grid.x);
  check('y', g.y, largest_grid.y);
  check('z', g.z, largest_grid.z);
}

void check_pointers(kernel_entry const& kernel, std::span<argument const> arguments) {
  for (std::size_t i = 0; i < kernel.graph.params.size(); ++i) {
    param_info const& p = kernel.graph.params[i];
    if (p.kind == node_kind::value) continue;
    argument const& a = arguments[i];
    bool empty = a.elements == 0;
    if (p.kind == node_kind::array)
      for (int d = 0; d < p.rank; ++d) empty |= a.shape[d] == 0;
    if (a.bits == 0 && !empty) throw error(parameter_text(kernel, static_cast<int>(i)) + ": null pointer");
    auto size = static_cast<std::uint64_t>(bytes_of(p.type));
    if (a.bits % size)
      throw error(parameter_text(kernel, static_cast<int>(i)) + ": the address is not a multiple of the element's " + std::to_string(size) + " bytes");
  }
}

// What the hooks of host code find again.
struct running {
  kernel_entry const* kernel = nullptr;
  std::atomic<bool> failed{false};
  std::mutex guard;
  std::string failure; // of the first assert
};

void failed_assert(void* runtime, std::int32_t text, std::int32_t file, std::int32_t line) {
  auto& r = *static_cast<running*>(runtime);
  std::lock_guard lock(r.guard);
  if (r.failed) return;
  graph_view const& g = r.kernel->graph;
  std::string what = g.string(text);
  r.failure = "kernel '" + std::string(g.name) + "': device_assert failed" + (what.empty() ? "" : ": " + what) + " (" +
              g.files[static_cast<std::size_t>(file)] + ":" + std::to_string(line) + ")";
  r.failed = true;
}

std::string value_text(dtype t, std::uint64_t bits);

void print(void* runtime, std::int32_t text, std::int64_t const* program, std::int32_t items, printed const* item) {
  graph_view const& g = static_cast<running*>(runtime)->kernel->graph;
  std::string line = "(" + std::to_string(program[0]) + "," + std::to_string(program[1]) + "," + std::to_string(program[2]) + ") " +
                     g.string(text);
  for (std::int32_t i = 0; i < items; ++i) {
    printed const& p = item[i];
    auto width = static_cast<std::size_t>(bytes_of(p.type));
    line += p.rank ? " [" : " ";
    for (std::int32_t e = 0; e < p.elements; ++e) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, static_cast<char const*>(p.data) + static_cast<std::size_t>(e) * width, width);
      line += (e ? " " : "") + value_text(p.type, bits);
    }
    if (p.rank) line += "]";
  }
  line += "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
}

void register_hooks() {
  static bool once = (set_host_hooks({failed_assert, print}), true);
  (void)once;
}

void launch_host(kernel_entry& kernel, stream_state& where, grid const& g, std::span<argument const> arguments) {
  register_hooks();
  variant& v = variant_for(kernel, *where.owner, arguments);
  std::uint64_t slots[max_slots];
  pack_slots(kernel.graph, arguments, slots);
  std::uint32_t ctas[3] = {static_cast<std::uint32_t>(g.x), static_cast<std::uint32_t>(g.y), static_cast<std::uint32_t>(g.z)};
  running context;
  context.kernel = &kernel;
  host_work work;
  work.entry = v.code.call;
  work.slots = slots;
  std::copy(ctas, ctas + 3, work.grid);
  work.arena_bytes = v.code.arena_bytes;
  work.group = v.code.chunk;
  work.runtime = &context;
  work.stop = &context.failed;
  run_on_host(work, v.speed);
  if (context.failed) where.fail(std::make_exception_ptr(assertion_error(context.failure)));
}

void launch_gpu(kernel_entry& kernel, stream_state& where, grid const& g, std::span<argument const> arguments) {
  auto& gpu = static_cast<gpu_backend&>(*where.owner);
  variant& v = variant_for(kernel, gpu, arguments);
  std::uint64_t slots[max_slots];
  int n = pack_slots(kernel.graph, arguments, slots);
  dims const& cluster = kernel.graph.attrs.cluster;
  gpu_launch shape;
  shape.grid[0] = static_cast<unsigned>(g.x), shape.grid[1] = static_cast<unsigned>(g.y), shape.grid[2] = static_cast<unsigned>(g.z);
  shape.threads = v.code.threads;
  shape.shared_bytes = v.code.shared_bytes;
  shape.cluster[0] = static_cast<unsigned>(cluster.x), shape.cluster[1] = static_cast<unsigned>(cluster.y), shape.cluster[2] = static_cast<unsigned>(cluster.z);
  gpu.launch(v.function, shape, slots, static_cast<std::size_t>(n) * sizeof(std::uint64_t), where.native);
}

std::string value_text(dtype t, std::uint64_t bits) {
  char text[40];
  if (t == dtype::b1) return bits & 1 ? "true" : "false";
  if (is_float(t)) {
    double x = t == dtype::f64   ? std::bit_cast<double>(bits)
               : t == dtype::f32 ? std::bit_cast<float>(static_cast<std::uint32_t>(bits))
               : t == dtype::f16 ? static_cast<double>(f16::from_bits(static_cast<std::uint16_t>(bits)))
               : t == dtype::bf16 ? static_cast<double>(bf16::from_bits(static_cast<std::uint16_t>(bits)))
               : t == dtype::f8e4m3 ? static_cast<double>(f8e4m3::from_bits(static_cast<std::uint8_t>(bits)))
                                    : static_cast<double>(f8e5m2::from_bits(static_cast<std::uint8_t>(bits)));
    std::snprintf(text, sizeof text, "%.9g", x);
  } else if (is_signed_int(t)) {
    std::snprintf(text, sizeof text, "%lld", static_cast<long long>(integer_value({node_kind::value, t}, bits)));
  } else {
    std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(bits));
  }
  return text;
}

} // namespace

void launch(kernel_entry& kernel, stream const& where, grid const& ctas, std::span<argument const> arguments) {
  check_grid(kernel, ctas);
  if (ctas.x == 0 || ctas.y == 0 || ctas.z == 0) return;
  check_pointers(kernel, arguments);
  stream_state& s = where.state();
  if (s.owner->record().kind == device_kind::host)
    launch_host(kernel, s, ctas, arguments);
  else
    launch_gpu(kernel, s, ctas, arguments);
}

void prepare(kernel_entry& kernel, stream const& where, std::span<argument const> arguments) {
  register_hooks();
  variant_for(kernel, *where.state().owner, arguments);
}

void fail_argument(kernel_entry const& kernel, int parameter, char const* reason) {
  throw error(parameter_text(kernel, parameter) + ": " + reason);
}

} // namespace kiln::detail
