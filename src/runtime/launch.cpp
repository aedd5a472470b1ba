// The launch path: checks, the code for the arguments (variants.hpp), slots, start. Where the code is there already,
// nothing is locked or allocated.
#include "kiln/runtime/launch.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "kiln/dtype/float16.hpp"
#include "kiln/dtype/float8.hpp"
#include "kiln/runtime/error.hpp"
#include "src/graph/passes/sequentialise.hpp"
#include "src/runtime/backend.hpp"
#include "src/runtime/compiler_interface.hpp"
#include "src/runtime/gpu_backend.hpp"
#include "src/runtime/host_launch.hpp"
#include "src/runtime/variants.hpp"
#include "src/runtime/workspace.hpp"

namespace kiln::detail {

namespace {

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

void check_pointers(kernel_entry& kernel, backend& where, std::span<argument const> arguments) {
  auto const& alignment = state_of(kernel).alignment;
  auto* gpu = where.record().kind == device_kind::host ? nullptr : static_cast<gpu_backend*>(&where);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
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
    if (i < alignment.size() && alignment[i] > size && a.bits % alignment[i])
      throw error(parameter_text(kernel, static_cast<int>(i)) + ": the address is not a multiple of " + std::to_string(alignment[i]) + " bytes, as the kernel promises (match_buffer with .align, or multiple_of)");
    if (!gpu || empty || a.bits == 0) continue;
    if (std::string why = gpu->refusal_of(reinterpret_cast<void const*>(a.bits)); !why.empty())
      throw error(parameter_text(kernel, static_cast<int>(i)) + ": " + why);
  }
}

bool in_clusters(kernel_entry const& kernel) { return kernel.graph.attrs.cluster != dims{}; }

void check_cluster(kernel_entry const& kernel, grid const& g) {
  if (!in_clusters(kernel)) return;
  dims const& cluster = kernel.graph.attrs.cluster;
  auto check = [&](char axis, i64 ctas, i64 step) {
    if (ctas % step)
      throw error("kernel '" + std::string(kernel.graph.name) + "': grid axis " + axis + " is " + std::to_string(ctas) +
                  " CTAs, not a multiple of the cluster's " + std::to_string(step) + "; grids count CTAs, not clusters");
  };
  check('x', g.x, cluster.x);
  check('y', g.y, cluster.y);
  check('z', g.z, cluster.z);
}

// HIP counts threads along an axis in 32 bits, not CTAs.
void check_hip_grid(kernel_entry const& kernel, grid const& g, std::uint32_t threads) {
  if (g.x * threads >= i64{1} << 32)
    throw error("kernel '" + std::string(kernel.graph.name) + "': grid axis x is " + std::to_string(g.x) + " CTAs of " + std::to_string(threads) +
                " threads; HIP takes less than 2^32 threads along an axis; spread the grid over y");
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
  // A text that the kernel does not have is the compiler's own.
  bool const own = text < static_cast<std::int32_t>(g.strings.size());
  std::string what = own ? g.string(text) : deadlock_text;
  r.failure = "kernel '" + std::string(g.name) + "': " + (own ? "device_assert failed" : "") + (what.empty() ? "" : own ? ": " + what : what) + " (" +
              g.files[static_cast<std::size_t>(file)] + ":" + std::to_string(line) + ")";
  r.failed = true;
}

std::string value_text(dtype t, std::uint64_t bits);

void print(void* runtime, std::int32_t text, std::int64_t const* program, std::int32_t items, printed const* item) {
  graph_view const& g = static_cast<running*>(runtime)->kernel->graph;
  // Code for a whole cluster says by the text's number which of its CTAs prints (sequentialise.hpp).
  auto const texts = static_cast<std::int32_t>(g.strings.size());
  dims const c = g.attrs.cluster;
  std::int64_t const rank = text < texts ? 0 : text / texts - 1;
  std::int64_t const x = program[0] * c.x + rank % c.x, y = program[1] * c.y + rank / c.x % c.y, z = program[2] * c.z + rank / (c.x * c.y);
  std::string line = "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ") " + g.string(text % texts);
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

/// Looks at the sizes of the first launch of each variant; a kernel is warned of once.
void look_at_sizes(kernel_entry& kernel, variant& v, grid const& g, std::span<argument const> arguments) {
  if (v.sizes_seen.load(std::memory_order_relaxed)) return;
  v.sizes_seen.store(true, std::memory_order_relaxed);
  kernel_state& s = state_of(kernel);
  if (s.warned_of_addresses.load(std::memory_order_relaxed)) return;
  std::uint64_t slots[max_slots];
  std::int64_t numbers[max_slots];
  int const n = pack_slots(kernel.graph, arguments, slots);
  std::copy(slots, slots + n, numbers);
  std::string const text = narrow_address_warning(kernel.graph, {g.x, g.y, g.z}, {numbers, static_cast<std::size_t>(n)});
  if (!text.empty() && !s.warned_of_addresses.exchange(true)) std::fprintf(stderr, "%s\n", text.c_str());
}

void launch_host(kernel_entry& kernel, stream_state& where, grid const& g, std::span<argument const> arguments) {
  register_hooks();
  check_cluster(kernel, g);
  variant& v = variant_for(kernel, *where.owner, arguments);
  look_at_sizes(kernel, v, g, arguments);
  std::uint64_t slots[max_slots];
  pack_slots(kernel.graph, arguments, slots);
  std::uint32_t ctas[3] = {static_cast<std::uint32_t>(g.x), static_cast<std::uint32_t>(g.y), static_cast<std::uint32_t>(g.z)};
  if (in_clusters(kernel)) { // the code runs whole ones
    dims const& c = kernel.graph.attrs.cluster;
    ctas[0] /= static_cast<std::uint32_t>(c.x), ctas[1] /= static_cast<std::uint32_t>(c.y), ctas[2] /= static_cast<std::uint32_t>(c.z);
  }
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
  check_cluster(kernel, g);
  variant& v = variant_for(kernel, gpu, arguments);
  look_at_sizes(kernel, v, g, arguments);
  if (gpu.record().kind == device_kind::hip) check_hip_grid(kernel, g, v.code.threads);
  std::uint64_t slots[max_slots];
  int n = pack_slots(kernel.graph, arguments, slots);
  gpu_launch shape;
  shape.grid[0] = static_cast<unsigned>(g.x), shape.grid[1] = static_cast<unsigned>(g.y), shape.grid[2] = static_cast<unsigned>(g.z);
  shape.threads = v.code.threads;
  shape.shared_bytes = v.code.shared_bytes;
  shape.set_cluster(kernel.graph.attrs.cluster);
  shape.kernel = kernel.graph.name;
  gpu.launch(v.function, shape, slots, static_cast<std::size_t>(n) * sizeof(std::uint64_t), where.native);
  if (v.faults) gpu.watch(*v.faults, where.native);
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
  stream_state& s = where.state();
  check_pointers(kernel, *s.owner, arguments);
  auto start = [&](std::span<argument const> all) {
    if (s.owner->record().kind == device_kind::host)
      launch_host(kernel, s, ctas, all);
    else
      launch_gpu(kernel, s, ctas, all);
  };
  if (arguments.size() == kernel.graph.params.size()) return start(arguments);
  full_arguments all(kernel, arguments);
  workspaces const held(kernel, s, ctas, all);
  start(all.span());
}

grid resident_grid(kernel_entry& kernel, stream const& where, std::span<argument const> arguments) {
  backend& device = *where.state().owner;
  i64 ctas = device.record().multiprocessors;
  dims const& cluster = kernel.graph.attrs.cluster;
  i64 const members = cluster.x * cluster.y * cluster.z;
  if (device.record().kind != device_kind::host) {
    auto& gpu = static_cast<gpu_backend&>(device);
    variant& v = variant_for(kernel, gpu, arguments);
    if (members > 1) {
      int const clusters = gpu.resident_clusters(v.function, gpu_launch::of_cluster(cluster, v.code.threads, v.code.shared_bytes));
      return grid(i64{clusters} * cluster.x, cluster.y, cluster.z);
    }
    ctas *= std::max(1, gpu.occupancy(v.function, static_cast<int>(v.code.threads), v.code.shared_bytes));
  } else if (members > 1) { // a thread runs a whole cluster
    return grid(ctas * cluster.x, cluster.y, cluster.z);
  }
  return grid(ctas);
}

void prepare(kernel_entry& kernel, stream const& where, std::span<argument const> arguments) {
  register_hooks();
  variant_for(kernel, *where.state().owner, arguments);
  if (arguments.size() == kernel.graph.params.size()) return;
  full_arguments all(kernel, arguments);
  workspaces(kernel, where.state(), grid(1), all);
}

void fail_argument(kernel_entry const& kernel, int parameter, char const* reason) {
  throw error(parameter_text(kernel, parameter) + ": " + reason);
}

} // namespace kiln::detail
