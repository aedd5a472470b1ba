// The arena, and the engine of asynchronous copies.
#include "src/interpreter/local_memory.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace kiln::interpreter {

arena_layout::arena_layout(graph_view const& g) {
  for (int b = 0; b < static_cast<int>(g.buffers.size()); ++b) {
    form.push_back(local_form_of(g, b));
    if (form.back().storage != b) {
      base.push_back(base[static_cast<std::size_t>(form.back().storage)]); // storage comes before what lies in it
      continue;
    }
    i64 const align = form.back().alignment;
    i64 const at = (bytes + align - 1) / align * align;
    base.push_back(at);
    bytes = at + detail::storage_bytes(g, b) * (g.buffer(b).where == storage::tmem ? detail::tensor_lanes : 1);
    if (bytes > i64{1} << 30)
      throw std::logic_error("kiln: the kernel's local memory exceeds 1 GiB; no target has that much");
  }
  by_hand.assign(g.buffers.size(), false);
  for (int i = 0; i < g.size(); ++i)
    if (g[i].code == op::tensor_alloc) by_hand[static_cast<std::size_t>(g.buffer_of(g.operand(i, 0)))] = true;
}

u64 local_memory::read(i32 offset, int width) const {
  u64 bits = 0;
  std::memcpy(&bits, bytes.data() + offset, static_cast<std::size_t>(width));
  return bits;
}

void local_memory::write(i32 offset, int width, u64 bits) {
  std::memcpy(bytes.data() + offset, &bits, static_cast<std::size_t>(width));
}

void local_memory::begin(async_copy const& c, int lane, u32 value) {
  for (i32 offset : c.offsets) std::memset(bytes.data() + offset, in_flight, static_cast<std::size_t>(c.element_bytes));
  if (shadow.empty()) return;
  for (std::size_t i = 0; i < c.offsets.size(); ++i)
    for (int b = 0; b < c.element_bytes; ++b) {
      byte_shadow& s = shadow[static_cast<std::size_t>(c.offsets[i] + b)];
      s.poison = c.what[i] == async_copy::part::poison;
      s.generic = false;
      s.leaf = static_cast<i16>(c.buffer);
      s.writer = c.node;
      s.lane = lane;
      s.value = value;
    }
}

void local_memory::deliver(async_copy& c) {
  if (c.delivered) return;
  for (std::size_t i = 0; i < c.offsets.size(); ++i) {
    auto const width = static_cast<std::size_t>(c.element_bytes);
    unsigned char* to = bytes.data() + c.offsets[i];
    if (c.what[i] == async_copy::part::copy)
      std::memcpy(to, reinterpret_cast<void const*>(static_cast<std::uintptr_t>(c.source[i])), width);
    else if (c.what[i] == async_copy::part::other)
      std::memcpy(to, &c.source[i], width);
  }
  c.delivered = true;
  if (c.traced && landed) landed(c.traced);
  c.offsets = {}; // long kernels issue many copies
  c.what = {};
  c.source = {};
}

void local_memory::deliver(bulk_store& s) {
  if (s.delivered) return;
  if (s.to) std::memcpy(s.to, bytes.data() + s.offset, static_cast<std::size_t>(s.bytes));
  s.delivered = true;
  if (s.traced && landed) landed(s.traced);
}

// -- copy_engine -----------------------------------------------------------------------------------------------------------

int copy_engine::issue(async_copy c, int lane) {
  int const id = static_cast<int>(copies.size());
  memory_.begin(c, lane, static_cast<u32>(id) + 1);
  copies.push_back(std::move(c));
  uncommitted.push_back(id);
  if (options_.policy == completion::early) memory_.deliver(copies.back());
  return id;
}

int copy_engine::commit(int node) {
  int const id = static_cast<int>(groups.size());
  for (int c : uncommitted) copies[static_cast<std::size_t>(c)].group = id;
  groups.push_back({node, static_cast<int>(copies.size()) - 1, uncommitted.empty()});
  uncommitted.clear();
  return id;
}

u32 copy_engine::wait(i64 pending, std::vector<int> const& named) {
  i64 through = static_cast<i64>(groups.size()) - pending; // groups below this number are to be complete
  for (int g : named) through = std::max<i64>(through, g + 1);
  if (through <= 0) return 0;
  auto const n = static_cast<u32>(groups[static_cast<std::size_t>(through) - 1].last + 1);
  deliver_copies(n);
  return n;
}

void copy_engine::deliver_copies(std::size_t n) {
  for (; delivered_ < n; ++delivered_) memory_.deliver(copies[delivered_]);
}

void copy_engine::add(bulk_store s) {
  stores.push_back(s);
  if (options_.policy == completion::early) memory_.deliver(stores.back());
}

void copy_engine::deliver_stores(std::size_t n) {
  for (; stored_ < n; ++stored_) memory_.deliver(stores[stored_]);
}

void copy_engine::advance() {
  if (options_.policy != completion::random) return;
  for (std::size_t c = delivered_; c < copies.size(); ++c)
    if (!copies[c].delivered && random_() % 4 == 0) memory_.deliver(copies[c]);
  for (std::size_t s = stored_; s < stores.size(); ++s)
    if (!stores[s].delivered && random_() % 4 == 0) memory_.deliver(stores[s]);
}

} // namespace kiln::interpreter
