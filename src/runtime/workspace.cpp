// Workspaces.
#include "src/runtime/workspace.hpp"

#include <algorithm>
#include <new>

#include "kiln/runtime/error.hpp"

namespace kiln::detail {

/// Memory for all workspaces of a kernel: on a GPU that of one stream, on the host that of one launch at a time. GPU memory
/// is never freed while the program runs: a captured graph may hold its address. It grows by doubling, so that what was
/// outgrown is no more than what is used.
struct workspace_memory {
  backend* where = nullptr;
  void* stream = nullptr;
  std::atomic<char*> memory{nullptr};
  std::atomic<i64> bytes{0};         // read before `memory`, written after it
  std::atomic<bool> in_use{false};   // host
  std::mutex zeroing;                // GPU: from the fill with zeros to the launch
  workspace_memory* next = nullptr;
};

namespace {

constexpr i64 alignment = 256;

// The bytes of every workspace, one behind the other. -1: too many for 64 bits.
i64 total_bytes(graph_view const& g, grid const& ctas, i64* offsets) {
  i64 count = 0, total = 0;
  if (__builtin_mul_overflow(ctas.x, ctas.y, &count) || __builtin_mul_overflow(count, ctas.z, &count)) return -1;
  for (int i = argument_count(g.params); i < static_cast<int>(g.params.size()); ++i) {
    param_info const& p = g.params[static_cast<std::size_t>(i)];
    i64 bytes;
    if (__builtin_mul_overflow(p.workspace, i64{bytes_of(p.type)}, &bytes) || (p.per_cta && __builtin_mul_overflow(bytes, count, &bytes)) ||
        bytes > (i64{1} << 60) - total)
      return -1;
    offsets[i] = total;
    total += (bytes + alignment - 1) / alignment * alignment;
  }
  return total;
}

workspace_memory& add(kernel_state& s, backend& where, void* stream) {
  auto* fresh = new workspace_memory; // NOLINT: lives as long as the kernel
  fresh->where = &where;
  fresh->stream = stream;
  fresh->next = s.workspaces.load(std::memory_order_relaxed);
  s.workspaces.store(fresh, std::memory_order_release);
  return *fresh;
}

void grow(kernel_entry const& kernel, workspace_memory& w, i64 bytes) {
  std::string const name = "kernel '" + std::string(kernel.graph.name) + "'";
  if (w.where->is_capturing(w.stream))
    throw error(name + ": its workspace of " + std::to_string(bytes) +
                " bytes is not there yet, and the stream is being captured into a graph; launch it once before the capture begins");
  bytes = std::max(bytes, 2 * w.bytes.load(std::memory_order_relaxed));
  try {
    char* memory = static_cast<char*>(w.where->allocate(static_cast<std::size_t>(bytes), w.stream));
    if (w.where->record().kind == device_kind::host && w.memory.load() != nullptr)
      w.where->release(w.memory.load(), static_cast<std::size_t>(w.bytes.load()), w.stream);
    w.memory.store(memory, std::memory_order_relaxed);
    w.bytes.store(bytes, std::memory_order_release);
  } catch (std::bad_alloc const&) {
    throw error(name + ": out of memory on " + device(*w.where).id() + " for a workspace of " + std::to_string(bytes) + " bytes");
  }
}

workspace_memory& of_stream(kernel_entry const& kernel, kernel_state& s, stream_state& where, i64 bytes) {
  auto find = [&]() -> workspace_memory* {
    for (workspace_memory* w = s.workspaces.load(std::memory_order_acquire); w; w = w->next)
      if (w->where == where.owner && w->stream == where.native) return w;
    return nullptr;
  };
  if (workspace_memory* w = find(); w && w->bytes.load(std::memory_order_acquire) >= bytes) return *w;
  std::lock_guard lock(s.workspaces_guard);
  workspace_memory* w = find();
  if (!w) w = &add(s, *where.owner, where.native);
  if (w->bytes.load(std::memory_order_relaxed) < bytes) grow(kernel, *w, bytes);
  where.owner->keep_stream_order(); // its handle may be given to a new stream, which then finds this memory
  return *w;
}

workspace_memory& take(kernel_entry const& kernel, kernel_state& s, stream_state& where, i64 bytes) {
  workspace_memory* mine = nullptr;
  for (workspace_memory* w = s.workspaces.load(std::memory_order_acquire); w && !mine; w = w->next)
    if (w->where == where.owner && !w->in_use.exchange(true, std::memory_order_acquire)) mine = w;
  if (!mine) {
    std::lock_guard lock(s.workspaces_guard);
    mine = &add(s, *where.owner, nullptr);
    mine->in_use = true;
  }
  if (mine->bytes.load(std::memory_order_relaxed) < bytes) {
    try {
      grow(kernel, *mine, bytes);
    } catch (...) {
      mine->in_use.store(false, std::memory_order_release);
      throw;
    }
  }
  return *mine;
}

} // namespace

full_arguments::full_arguments(kernel_entry const& kernel, std::span<argument const> given) {
  graph_view const& g = kernel.graph;
  auto const expected = static_cast<std::size_t>(argument_count(g.params));
  if (given.size() != expected)
    throw error("kernel '" + std::string(g.name) + "': " + std::to_string(given.size()) + " arguments for " + std::to_string(expected) + " parameters");
  if (g.params.size() > most)
    throw error("kernel '" + std::string(g.name) + "': more than " + std::to_string(most) + " parameters and workspaces");
  for (argument const& a : given) all_[count_++] = a;
  while (count_ < static_cast<int>(g.params.size())) all_[count_++].bits = alignment;
}

workspaces::workspaces(kernel_entry& kernel, stream_state& where, grid const& ctas, full_arguments& arguments) {
  graph_view const& g = kernel.graph;
  i64 offsets[max_slots] = {};
  i64 const bytes = total_bytes(g, ctas, offsets);
  if (bytes < 0) throw error("kernel '" + std::string(g.name) + "': its workspaces would take more than 2^60 bytes for this grid");
  kernel_state& s = state_of(kernel);
  bool const host = where.owner->record().kind == device_kind::host;
  workspace_memory& w = host ? take(kernel, s, where, bytes) : of_stream(kernel, s, where, bytes);
  if (host) taken_ = &w;
  char* const memory = w.memory.load(std::memory_order_relaxed);
  for (int i = argument_count(g.params); i < static_cast<int>(g.params.size()); ++i) {
    param_info const& p = g.params[static_cast<std::size_t>(i)];
    arguments[i].bits = reinterpret_cast<std::uint64_t>(memory + offsets[i]);
    if (!p.zero) continue;
    if (!host && !zeroed_) zeroed_ = std::unique_lock(w.zeroing);
    i64 const end = i + 1 < static_cast<int>(g.params.size()) ? offsets[i + 1] : bytes;
    where.owner->fill(memory + offsets[i], 0, 4, static_cast<std::size_t>((end - offsets[i]) / 4), where.native);
  }
}

workspaces::~workspaces() {
  if (taken_) taken_->in_use.store(false, std::memory_order_release);
}

} // namespace kiln::detail
