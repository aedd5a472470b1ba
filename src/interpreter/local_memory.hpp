// Local memory of a CTA: the arena's bytes and what is known about each of them; and the copies of one agent.
//
// The shadow says for every byte whether it was written, whether what was written is specified, which buffer and which
// operation wrote it last, and with what stamp (clocks.hpp): an access is ordered after the write when the accessing agent's
// clock has reached the stamp. Reads leave theirs where another agent, or an engine, could overwrite.
#pragma once
#include <kiln/graph/local_layout.hpp>
#include <kiln/interpreter/interpreter.hpp>

#include "src/interpreter/clocks.hpp"

#include <functional>
#include <random>
#include <vector>

namespace kiln::interpreter {

/// Where the buffers of a graph lie. Slot i of buffer b starts at base[b] + form[b].slots.at(i). Tensor memory is part of it: each
/// storage is a block of 128 lanes.
struct arena_layout {
  std::vector<i64> base; ///< of the buffer's storage
  std::vector<local_form> form;
  i64 bytes = 0;
  std::vector<bool> by_hand; ///< buffers in tensor memory that tensor_alloc and tensor_dealloc bring and take away
  explicit arena_layout(graph_view const& g);
  arena_layout() = default;
};

/// What is known about one byte of local memory.
struct byte_shadow {
  bool poison = false;  ///< written, but with nothing that is specified: masked off without `.other`
  bool generic = false; ///< written by ordinary stores, which bulk copies see after a fence only
  i16 leaf = -1;        ///< buffer through which it was written last
  i32 writer = -1;      ///< node that wrote it last
  i32 lane = -1;        ///< stamp of that write; -1: nobody wrote it
  u32 value = 0;
};

/// The last read of a byte by one agent or engine.
struct byte_read {
  u32 value = 0;
  i32 node = -1;
  i32 lane = -1; ///< of a copy to another CTA: the barrier on which it completes
};

/// An asynchronous copy into local memory.
struct async_copy {
  enum class part : u8 { copy, other, poison };
  int node = -1;
  static constexpr int on_barrier = 1 << 30;
  int group = -1;      ///< the group that it was committed to; on_barrier: a barrier stands for it
  int buffer = -1;
  int element_bytes = 0;
  bool delivered = false; ///< the bytes are there
  u64 traced = 0;         ///< its number in traces
  std::vector<i32> offsets;
  std::vector<part> what;
  std::vector<u64> source; ///< address, or the bits of `other`
};

struct async_group {
  int node = -1;
  int last = -1; ///< copies up to this one are complete when the group is
  bool empty = true;
};

/// A bulk copy out of local memory.
struct bulk_store {
  int node = -1;
  bool delivered = false;
  u64 traced = 0;
  i32 offset = 0;
  i64 bytes = 0;
  void* to = nullptr; ///< null: outside its argument, and not made
};

class local_memory {
public:
  local_memory(arena_layout const& layout, lanes const& l, run_options const& options)
      : bytes(static_cast<std::size_t>(layout.bytes), unwritten), shadow(options.check ? bytes.size() : 0),
        reads(shadow.size() * static_cast<std::size_t>(l.readers)), exists(layout.by_hand.size()), readers_(static_cast<std::size_t>(l.readers)) {}

  static constexpr unsigned char unwritten = 0xa5; ///< what local memory holds before anything is written
  static constexpr unsigned char in_flight = 0xfb; ///< what the destination of a copy holds until it is delivered

  std::vector<unsigned char> bytes;
  std::vector<byte_shadow> shadow; ///< empty when nothing is checked
  std::vector<byte_read> reads;    ///< `readers` a byte
  std::function<void(u64)> landed; ///< told of copies that traces know
  std::vector<int> exists;         ///< of buffers that are allocated by hand: 0 not yet, 1 now, else -1 - the node that ended it

  u64 read(i32 offset, int width) const;
  void write(i32 offset, int width, u64 bits);
  byte_read* reads_of(i32 byte) { return reads.data() + static_cast<std::size_t>(byte) * readers_; }

  /// Poisons a copy's destination and stamps it.
  void begin(async_copy const& c, int lane, u32 value);
  void deliver(async_copy& c);
  void deliver(bulk_store& s);

private:
  std::size_t readers_;
};

/// The copies that one agent has issued. Copy n has stamp n + 1 in the agent's lane of copies; stores likewise.
class copy_engine {
public:
  copy_engine(local_memory& memory, run_options const& options, std::mt19937_64& random)
      : memory_(memory), options_(options), random_(random) {}

  std::vector<async_copy> copies;
  std::vector<async_group> groups;
  std::vector<int> uncommitted; ///< copies of no group yet
  std::vector<bulk_store> stores;

  /// Poisons the destination and, by policy, delivers at once.
  int issue(async_copy c, int lane);
  int commit(int node);
  /// Delivers all groups but the last `pending`, and the given ones with all before them. The number of copies that are complete.
  u32 wait(i64 pending, std::vector<int> const& named);
  /// Delivers the first `n` copies.
  void deliver_copies(std::size_t n);
  void add(bulk_store s);
  void deliver_stores(std::size_t n);
  /// With policy random, some copies may arrive now.
  void advance();

private:
  local_memory& memory_;
  run_options const& options_;
  std::mt19937_64& random_;
  std::size_t delivered_ = 0, stored_ = 0; ///< all before these are
};

} // namespace kiln::interpreter
