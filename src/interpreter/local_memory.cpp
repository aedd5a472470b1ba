// The arena and the engine of asynchronous copies.
#include "src/interpreter/local_memory.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace kiln::interpreter {

arena_layout::arena_layout(graph_view const& g) {
  auto round_up = [](i64 x, i64 to) { return (x + to - 1) / to * to; };
  for (buffer_info const& b : g.buffers) {
    if (b.where != storage::smem)
      throw std::logic_error("kiln: the interpreter has no tensor memory yet; allocate with storage::smem");
    i64 const align = std::max<i64>({128, b.alignment, bytes_of(b.type)});
    i64 const stride = round_up(bytes_of(b.type, g.shapes[static_cast<std::size_t>(b.shape)].elements()), align);
    i64 const at = round_up(bytes, align);
    base.push_back(at);
    slot_stride.push_back(stride);
    bytes = at + stride * b.slots;
    if (bytes > i64{1} << 30)
      throw std::logic_error("kiln: the kernel's local memory exceeds 1 GiB; no target has that much");
  }
}

u64 local_memory::read(i32 offset, int width) const {
  u64 bits = 0;
  std::memcpy(&bits, bytes.data() + offset, static_cast<std::size_t>(width));
  return bits;
}

void local_memory::write(i32 offset, int width, u64 bits) {
  std::memcpy(bytes.data() + offset, &bits, static_cast<std::size_t>(width));
}

int local_memory::issue(async_copy c) {
  int const id = static_cast<int>(copies.size());
  for (i32 offset : c.offsets) std::memset(bytes.data() + offset, in_flight, static_cast<std::size_t>(c.element_bytes));
  if (!shadow.empty())
    for (std::size_t i = 0; i < c.offsets.size(); ++i)
      for (int b = 0; b < c.element_bytes; ++b) {
        byte_shadow& s = shadow[static_cast<std::size_t>(c.offsets[i] + b)];
        s.pending = id;
        s.initialised = true;
        s.poison = c.what[i] == async_copy::part::poison;
        s.writer = c.node;
        s.leaf = static_cast<i16>(c.buffer);
      }
  copies.push_back(std::move(c));
  uncommitted.push_back(id);
  if (options_.policy == completion::early) deliver(copies.back());
  return id;
}

int local_memory::commit(int node) {
  int const id = static_cast<int>(groups.size());
  for (int c : uncommitted) copies[static_cast<std::size_t>(c)].group = id;
  groups.push_back({node, std::move(uncommitted), false});
  uncommitted.clear();
  return id;
}

void local_memory::wait(i64 pending, std::vector<int> const& named) {
  i64 through = static_cast<i64>(groups.size()) - pending; // groups below this number are to be complete
  for (int g : named) through = std::max<i64>(through, g + 1);
  for (; static_cast<i64>(first_incomplete_) < through; ++first_incomplete_) complete(groups[first_incomplete_]);
}

void local_memory::advance() {
  if (options_.policy != completion::random) return;
  auto try_one = [&](int c) {
    async_copy& copy = copies[static_cast<std::size_t>(c)];
    if (!copy.delivered && random_() % 4 == 0) deliver(copy);
  };
  for (std::size_t g = first_incomplete_; g < groups.size(); ++g)
    for (int c : groups[g].copies) try_one(c);
  for (int c : uncommitted) try_one(c);
}

void local_memory::deliver(async_copy& c) {
  for (std::size_t i = 0; i < c.offsets.size(); ++i) {
    auto const width = static_cast<std::size_t>(c.element_bytes);
    unsigned char* to = bytes.data() + c.offsets[i];
    if (c.what[i] == async_copy::part::copy)
      std::memcpy(to, reinterpret_cast<void const*>(static_cast<std::uintptr_t>(c.source[i])), width);
    else if (c.what[i] == async_copy::part::other)
      std::memcpy(to, &c.source[i], width);
  }
  c.delivered = true;
}

void local_memory::complete(async_group& g) {
  for (int id : g.copies) {
    async_copy& c = copies[static_cast<std::size_t>(id)];
    if (!c.delivered) deliver(c);
    c.complete = true;
    if (!shadow.empty())
      for (i32 offset : c.offsets)
        for (int b = 0; b < c.element_bytes; ++b) {
          byte_shadow& s = shadow[static_cast<std::size_t>(offset + b)];
          if (s.pending == id) s.pending = -1;
        }
    c.offsets = {}; // long kernels issue many copies
    c.what = {};
    c.source = {};
  }
  g.complete = true;
}

} // namespace kiln::interpreter
