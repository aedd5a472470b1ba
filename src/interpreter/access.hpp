// Accesses to global memory: addresses of an access, and the checks before each element is touched.
#pragma once
#include "src/interpreter/bodies.hpp"

namespace kiln::interpreter {

/// The addresses behind a pointer tile or a region, element by element: which of them an access touches, and where.
class access {
public:
  /// Operand j of node i, masked by operand `mask` (which may be absent). `what` is the verb of messages.
  access(agent& a, int i, int j, int mask, char const* what);
  /// The contiguous row of `row` that begins at the pointer that is operand j.
  access(agent& a, int i, int j, shape const& row, char const* what);

  std::size_t size() const { return addresses_.size(); }
  /// Whether element e is to be touched: let through by mask and array bounds.
  bool enabled(std::size_t e) const { return enabled_[e] != 0; }
  /// Whether it may be touched; reports R-BD10 where not.
  bool allowed(std::size_t e);
  u64 address(std::size_t e) const { return addresses_[e]; }
  u64 read(std::size_t e) const;
  void write(std::size_t e, u64 bits) const;
  /// Reports R-HZ14 where the element is not ordered after its last writer, or, for a write that changes it, its last reader; and
  /// remembers this access. An atomic, or a volatile load, may meet others: `meets` reports ordinary writes only.
  void note_read(std::size_t e);
  void note_write(std::size_t e, u64 bits, bool bulk_store = false);
  void meets(std::size_t e);
  int width() const { return width_; }

private:
  void unordered(std::size_t e, global_event const& before, char const* was);
  agent& agent_;
  int node_, width_, origin_;
  char const* what_;
  shape const& shape_;
  std::vector<u64> addresses_;
  std::vector<u8> enabled_;
  std::vector<i32> wrapped_; // per element, or empty
};

} // namespace kiln::interpreter
