// What a compile may assume about the arguments of a launch. Two launches with equal specialisations share machine code.
// Also fixes how arguments reach the compiled kernel.
//
// Argument slots. A kernel's parameters become a flat list of 8-byte slots, in parameter order: a value is one slot (its
// bits, zero-extended), a pointer is one slot, an array of rank R is 1 + 2R slots: data, R extents, R strides (i64, in
// elements). Host code receives a pointer to the slots. A GPU kernel has one 64-bit parameter per slot, so that the same
// block of slots is its parameter buffer: a global pointer for data, an i64 for everything else.
#pragma once
#include <kiln/graph/graph.hpp>

#include <cstdint>
#include <vector>

namespace kiln {

/// What is known about one integer (a value parameter, an extent, a stride) or about a value's bits.
struct integer_fact {
  bool constant = false;   ///< always `value`
  std::int64_t value = 0;  ///< the bits of a value parameter; extents and strides as they are
  std::int32_t divisor = 1; ///< a power of two that divides it
  friend bool operator==(integer_fact const&, integer_fact const&) = default;
};

/// What is known about one parameter.
struct param_facts {
  integer_fact scalar{};           ///< of a value parameter
  std::int32_t alignment = 1;      ///< bytes, of a pointer's or array's address
  integer_fact extent[max_rank]{}; ///< of an array
  integer_fact stride[max_rank]{};
  friend bool operator==(param_facts const&, param_facts const&) = default;
};

/// Facts for every parameter of a kernel, in order.
struct specialisation {
  std::vector<param_facts> params;
  friend bool operator==(specialisation const&, specialisation const&) = default;

  /// Knows nothing beyond what types say: the most general code.
  static specialisation generic(graph_view const& g) {
    specialisation s;
    s.params.resize(g.params.size());
    for (std::size_t i = 0; i < g.params.size(); ++i)
      s.params[i].alignment = static_cast<std::int32_t>(bytes_of(g.params[i].type));
    return s;
  }
};

/// Number of slots of one parameter.
constexpr int slot_count(param_info const& p) { return p.kind == node_kind::array ? 1 + 2 * p.rank : 1; }
/// First slot of parameter `index`.
constexpr int first_slot(graph_view const& g, int index) {
  int n = 0;
  for (int i = 0; i < index; ++i) n += slot_count(g.params[static_cast<std::size_t>(i)]);
  return n;
}
/// Slots of all parameters together.
constexpr int slot_count(graph_view const& g) { return first_slot(g, static_cast<int>(g.params.size())); }

} // namespace kiln
