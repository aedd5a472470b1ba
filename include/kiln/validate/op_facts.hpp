// What the verifier asks of an operation at every node, by operation.
#pragma once
#include <kiln/graph/op.hpp>

namespace kiln::detail {

/// What the verifier asks of an operation at every node. A constant each, since a compiler pays for a long switch at every
/// evaluation as if it read all of it.
struct op_facts {
  enum group : std::uint8_t { other, elementwise, across, global, local, tasks };
  group where = other;
  bool structural = false;     ///< opens, divides or closes a region
  bool compares = false;       ///< gives b1
  bool typed = false;          ///< takes and gives what the DSL's own types already say
  std::uint8_t attributes = 0; ///< their number
  std::uint8_t least = 0;      ///< operands
  std::int8_t most = 0;        ///< operands; -1: any number
  std::uint16_t accepts = 0;   ///< one bit per dtype; elementwise operations whose operands and result have one type, or b1
};
/// One bit per dtype.
constexpr std::uint16_t types_where(bool (*holds)(dtype)) {
  unsigned bits = 0;
  for (int i = 0; i < dtype_count; ++i) bits |= static_cast<unsigned>(holds(static_cast<dtype>(i))) << i;
  return static_cast<std::uint16_t>(bits);
}
// Not in the function: clang would evaluate them again at each use.
inline constexpr std::uint16_t bits_of_bool = types_where(is_bool), bits_of_ints = types_where(is_int), bits_of_numbers = types_where(is_arithmetic);
constexpr op_facts facts_of(op o) {
  op_facts f;
  op_info const& row = info(o);
  std::uint32_t const t = row.traits;
  f.structural = (t & (trait::opens | trait::middle | trait::closes)) != 0;
  f.attributes = static_cast<std::uint8_t>(attribute_count(o));
  f.least = static_cast<std::uint8_t>(row.least);
  f.most = static_cast<std::int8_t>(row.most);
  f.compares = o >= op::eq && o <= op::ge;
  bool const promise = o == op::multiple_of || o == op::max_contiguous || o == op::require_layout || o == op::release_layout;
  if ((t & trait::elementwise) == trait::elementwise && !promise && o != op::ptr_add && o != op::constant && o != op::iota)
    f.where = op_facts::elementwise;
  else if (o >= op::broadcast && o <= op::topk && o != op::result)
    f.where = op_facts::across;
  else if ((o >= op::extent && o <= op::atomic_cas && o != op::ptr_add) || o == op::prefetch)
    f.where = op_facts::global;
  else if (o >= op::alloc && o <= op::async_wait)
    f.where = op_facts::local;
  else if (is_of_tasks(o))
    f.where = op_facts::tasks;
  f.typed = f.where == op_facts::elementwise || o == op::constant || o == op::iota;
  if (f.where != op_facts::elementwise || o == op::cast || o == op::bitcast || o == op::isnan || o == op::where || o == op::philox) return f;
  switch (o) {
  case op::bit_and: case op::bit_or: case op::bit_xor: case op::bit_not: f.accepts = bits_of_ints | bits_of_bool; break;
  case op::shl: case op::shr: case op::rem: f.accepts = bits_of_ints; break;
  case op::eq: case op::ne: f.accepts = bits_of_numbers | bits_of_bool; break;
  case op::add: case op::sub: case op::mul: case op::div: case op::neg: case op::abs: case op::min: case op::max:
  case op::lt: case op::le: case op::gt: case op::ge: f.accepts = bits_of_numbers; break;
  default: f.accepts = bits_of_numbers & ~bits_of_ints; break;
  }
  return f;
}
struct op_facts_table {
  op_facts of[op_count]{};
};
inline constexpr op_facts_table op_facts_by_code = [] {
  op_facts_table t;
  for (int i = 0; i < op_count; ++i) t.of[i] = facts_of(static_cast<op>(i));
  return t;
}();

} // namespace kiln::detail
