// Local memory of a CTA: the arena's bytes, what is known about each of them, and the engine that copies into it
// asynchronously.
//
// The shadow says for every byte whether it was written, whether what was written is specified, which buffer and which
// operation wrote and read it last, and which copy still has it to write. With one agent per CTA its program order orders
// everything but those copies; the writer and reader entries are where other agents' clocks will be compared.
#pragma once
#include <kiln/interpreter/interpreter.hpp>

#include <random>
#include <vector>

namespace kiln::interpreter {

/// Where the buffers of a graph lie. Slot i of buffer b starts at base[b] + i * slot_stride[b].
struct arena_layout {
  std::vector<i64> base, slot_stride;
  i64 bytes = 0;
  explicit arena_layout(graph_view const& g);
  arena_layout() = default;
};

/// What is known about one byte of local memory.
struct byte_shadow {
  bool initialised = false;
  bool poison = false;  ///< written, but with nothing that is specified: masked off without `.other`
  i16 leaf = -1;        ///< buffer through which it was written last
  i32 writer = -1;      ///< node that wrote it last
  i32 reader = -1;      ///< node that read it last
  i32 pending = -1;     ///< copy in flight that writes it, an index into `engine`
};

/// An asynchronous copy into local memory.
struct async_copy {
  enum class part : u8 { copy, other, poison };
  int node = -1;
  int group = -1;      ///< the group that it was committed to
  int buffer = -1;
  int element_bytes = 0;
  bool delivered = false; ///< the bytes are there
  bool complete = false;  ///< and a wait has said so
  std::vector<i32> offsets;
  std::vector<part> what;
  std::vector<u64> source; ///< address, or the bits of `other`
};

struct async_group {
  int node = -1;
  std::vector<int> copies;
  bool complete = false;
};

class local_memory {
public:
  local_memory(arena_layout const& layout, run_options const& options, std::mt19937_64& random)
      : bytes(static_cast<std::size_t>(layout.bytes), unwritten), shadow(options.check ? bytes.size() : 0),
        options_(options), random_(random) {}

  static constexpr unsigned char unwritten = 0xa5; ///< what local memory holds before anything is written
  static constexpr unsigned char in_flight = 0xfb; ///< what the destination of a copy holds until it is delivered

  std::vector<unsigned char> bytes;
  std::vector<byte_shadow> shadow; ///< empty when nothing is checked

  u64 read(i32 offset, int width) const;
  void write(i32 offset, int width, u64 bits);

  // -- the engine ----------------------------------------------------------------------------------------------------------
  std::vector<async_copy> copies;
  std::vector<async_group> groups;
  std::vector<int> uncommitted; ///< copies of no group yet

  /// Poisons the destination and, by policy, delivers at once.
  int issue(async_copy c);
  int commit(int node);
  /// Completes all groups but the last `pending`, and the given ones with all before them.
  void wait(i64 pending, std::vector<int> const& named);
  /// With policy random, some copies may arrive now.
  void advance();

private:
  void deliver(async_copy& c);
  void complete(async_group& g);
  run_options const& options_;
  std::mt19937_64& random_;
  std::size_t first_incomplete_ = 0;
};

} // namespace kiln::interpreter
