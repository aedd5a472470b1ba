// An access to local memory by one operation: looks the shadow up, reports what is not ordered, brings it up to date.
#pragma once
#include "src/interpreter/machine.hpp"

namespace kiln::interpreter {

class local_access {
public:
  /// Who makes the access: the agent itself, or an engine for it. Bulk copies go another way to memory and need fences.
  enum class engine : u8 { none, copy, bulk };
  /// `target`: the CTA whose memory it is; null: the agent's.
  local_access(agent& a, int i, data const& view, engine who = engine::none, cta* target = nullptr);

  u64 read(i32 offset);
  void write(i32 offset, u64 bits);
  /// Checks that an engine may write here; the stamp follows when the copy is issued.
  void claim(i32 offset);
  /// Checks that an engine may read here, and notes that it does.
  void note_read(i32 offset);
  /// The same for a copy to CTA `rank` of the cluster that completes with phase `phase` of a barrier.
  void note_read(i32 offset, int rank, int slot, u32 phase);
  int width() const { return width_; }

private:
  template <class... Parts>
  void fault(char const* rule, i32 offset, Parts const&... parts);
  void hazard_of_read(byte_shadow const& s, i32 offset);
  void hazard_of_write(byte_shadow const& s, i32 offset);
  void overtakes(int reader, int node, i32 offset);
  void unfenced(byte_shadow const& s, i32 offset);
  /// Bytes that were written through another buffer: whether reading them is meant, and what breaks when it is not.
  bool may_read_of(int writer) const;
  char const* rule_of_sharing(bool race) const;
  /// Reports an access that nothing orders after a write through another buffer. False: the write was through this one.
  bool shared_hazard(byte_shadow const& s, i32 offset);
  /// The buffer of this one's storage through which a node reads; this one where that is not another.
  int read_through(int node) const;
  /// The agent behind an ordinary write.
  static int writer_of(byte_shadow const& s) { return s.lane; }

  void check_read(i32 offset);
  /// The agent that a kind of read belongs to, and its lane.
  int agent_of(int reader) const;
  int lane_of(int reader, byte_read const& r) const;

  agent& agent_;
  cta& target_;
  int node_, buffer_, width_;
  engine who_;
};

/// The name that the user gave a buffer, or its line.
std::string buffer_name(agent const& a, int b);

} // namespace kiln::interpreter
