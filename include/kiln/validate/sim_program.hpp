// The program that the hazard simulation executes, and the evaluation of its scalars.
#pragma once
#include <kiln/graph/recorder.hpp>

namespace kiln::detail {

/// An array with one element per node, made when the number of nodes is known.
template <class T>
struct table {
  T* items = nullptr;
  constexpr table() = default;
  table(table const&) = delete;
  constexpr ~table() { delete[] items; }
  constexpr void resize(int n, T value) {
    delete[] items;
    items = new T[static_cast<unsigned>(n) + 1]{};
    if (value != T{})
      for (int i = 0; i < n; ++i) items[i] = value;
  }
  constexpr T& operator[](int i) { return items[i]; }
  constexpr T const& operator[](int i) const { return items[i]; }
};

/// A register whose content is not known.
inline constexpr std::int64_t unknown = -0x7fffffffffffffff - 1;

/// In groups, the most frequent first: what is executed is found by comparing, not by a switch, which compilers walk from its top.
enum class sim_op : std::uint8_t {
  quick,  ///< r[a] = r[b] `operation d` r[c], where neither is negative; else as scalar
  ring,   ///< r[a] = r[b] % r[c], r[d] = r[b] / r[c], r[target] = r[d] & 1; node: the last of the three
  next,   ///< r[a] += r[a + 2]; back to the loop at `target` while --r[a + 1] > 0
  scalar, ///< r[a] = node's operation on r[b], r[c], r[d]
  symbol, ///< r[a] = value of symbol b
  move,   ///< r[a] = r[b]
  loop,   ///< r[a] from r[b] to r[c] by r[d]; leaves to `target`. r[a + 1] counts passes, r[a + 2] is the step
  branch, ///< to `target` unless r[a]
  jump,   ///< to `target`
  exit,   ///< leaves a while loop to `target` unless r[a]; r[b] counts passes
  assume, ///< this run cannot happen unless r[a]
  replica, ///< r[a] = the agent's replica
  rank,   ///< r[a] = the CTA's rank; b: its coordinate along that axis of the cluster
  skip,   ///< to `target` when r[a] is known to be false
  read,   ///< box a
  write,  ///< box a
  async,  ///< box a is written later; b: 1 when masked elements may stay unspecified, 2 when some surely do
  bulk_load,  ///< box a is written later, by c bytes on barrier b; d: the predicate, a node
  bulk_store, ///< box a is read later
  barrier_wait,   ///< barrier a, parity r[b]
  barrier_arrive, ///< barrier a, b arrivals
  barrier_expect, ///< barrier a, b bytes; d: the predicate, a node
  load_arrive, ///< barrier a, once the agent's loads have landed
  named,      ///< barrier a, b threads; c: waits
  fork,   ///< starts agents a..b-1, waits for all, then to `target`
  fence,
  commit, ///< r[a] = the group's number
  wait,   ///< at most b groups pending; token registers c.. (d of them)
  store_wait, ///< at most b bulk stores pending
  remote_arrive, ///< as barrier_arrive, at a barrier of another CTA
  remote_store, ///< box a of CTA r[c] is written
  remote_async, ///< the same, later, by bytes on its barrier b
  remote_copy,  ///< the same, from box `target` of this CTA
  remote_read,  ///< what that does to its source
  cluster,      ///< barrier of the cluster
  ready,        ///< barriers made before node are ready for other CTAs
  done,
};
/// Accesses to box a.
constexpr bool touches_box(sim_op o) { return (o >= sim_op::read && o <= sim_op::bulk_store) || (o >= sim_op::remote_store && o <= sim_op::remote_copy); }

// Records of the program have no default values: compilers make arrays of zeros at once, and any others element by element.

struct instruction {
  sim_op code;
  std::int32_t a, b, c, d;
  std::int32_t target;
  std::int32_t node;
};

/// A view, in coordinates of its buffer.
struct box {
  std::int32_t buffer;
  std::int32_t slot; ///< register; -1: slot 0
  std::int32_t node; ///< the view
  std::int32_t index; ///< the node that selects the slot, or -1
  std::int32_t slots, first, per_slot; ///< of the buffer: its slots; its first atom, and how many a slot has
  int axes; ///< of the view; 0: a slot that no part was taken of, whose arrays below are not filled
  int axis[max_rank]; ///< of the view's axis: the buffer's
  int start[max_rank]; ///< constant part, by buffer axis
  std::int32_t moving[max_rank]; ///< register added to start, or -1
  int extent[max_rank];
  bool whole; ///< no axis is narrowed
  bool reshaped; ///< axes no longer correspond
  bool used; ///< something accesses it
  bool quick; ///< one atom, which has no peers, in a slot that a register selects
  bool exact; ///< false: a part whose place cannot be expressed; it is left out of the simulation
};

/// How a buffer is cut into atoms.
struct atom_grid {
  std::int32_t first; ///< atom
  std::int32_t per_slot;
  int rank;
  int size[max_rank]; ///< elements of an atom along an axis
  int count[max_rank]; ///< atoms along an axis
};

struct affine {
  std::int32_t root; ///< node; -1: a constant
  std::int64_t scale, offset;
};

/// A loop whose trip count a launch decides.
struct free_loop {
  std::int32_t node;
  affine lo, hi, by; ///< its bounds and step
  bool outer; ///< holds another loop and its index selects nothing: a few passes are enough
};

/// What runs one program: the kernel, or a replica of a task.
struct agent_range {
  std::int32_t begin; ///< first instruction
  std::int32_t task; ///< task_begin; -1: the kernel's own
  std::int32_t replica;
  std::int32_t threads;
  bool loads, stores, writes; ///< cp.async loads; bulk stores; ordinary stores
  std::int32_t cta; ///< rank in the cluster
  bool own_registers; ///< it starts with a copy of the kernel's; else it uses those
};

/// A barrier as it is named somewhere: one of an allocation.
struct barrier_reference {
  std::int32_t node; ///< alloc_barriers
  std::int32_t first; ///< slot of its barrier 0, over all allocations
  std::int32_t count;
  std::int32_t index; ///< node
  std::int32_t slot; ///< register
  std::int32_t at; ///< barrier_index
  std::int32_t rank; ///< register: in which CTA; -1: in this one
};

struct sim_program {
  vec<instruction> code;
  vec<box> boxes;
  vec<atom_grid> grids;
  vec<free_loop> loops;
  vec<std::int32_t> symbol_nodes;  ///< of a symbol: a node with its value number
  vec<std::int32_t> token_registers;
  vec<std::int64_t> constants;     ///< initial content of each register
  vec<agent_range> agents;
  vec<barrier_reference> barriers;
  vec<std::int32_t> slot_alloc;    ///< of every barrier: its alloc_barriers
  int atoms = 0;
  int ring = 1; ///< the longest: slots, and divisors of slot indices
  /// CTAs that are simulated together, and of each of them: agents, barriers and atoms, which are numbered through.
  int ctas = 1, cta_agents = 0, cta_slots = 0, cta_atoms = 0;
  bool arrives = false; ///< loads that arrive at a barrier by themselves
  bool conditional = false; ///< predicates of bytes and copies
  bool bulk = false; ///< copies that reach memory another way than stores do
  std::uint32_t named = 0; ///< hardware barriers that are used, a bit each
  int left_out = -1; ///< an access that is not simulated
};

constexpr bool compares(op o) { return o >= op::eq && o <= op::ge; }

/// Wraps x to an integer or b1 type.
constexpr std::int64_t wrap(dtype t, std::int64_t x) {
  switch (t) {
  case dtype::b1: return x != 0;
  case dtype::i8: return static_cast<std::int8_t>(x);
  case dtype::i16: return static_cast<std::int16_t>(x);
  case dtype::i32: return static_cast<std::int32_t>(x);
  case dtype::u8: return static_cast<std::uint8_t>(x);
  case dtype::u16: return static_cast<std::uint16_t>(x);
  case dtype::u32: return static_cast<std::uint32_t>(x);
  default: return x;
  }
}

/// One scalar operation on what is known; 0 & x and 0 * x are known whatever x is.
constexpr std::int64_t evaluate(op o, dtype from, dtype to, std::int64_t x, std::int64_t y, std::int64_t z) {
  bool const ux = x == unknown, uy = y == unknown;
  if (x >= 0 && y >= 0 && compares(o)) return o == op::eq ? x == y : o == op::ne ? x != y : o == op::lt ? x < y : o == op::le ? x <= y : o == op::gt ? x > y : x >= y;
  switch (o) {
  case op::mul:
    if (x == 0 || y == 0) return 0;
    break;
  case op::bit_and:
    if (x == 0 || y == 0) return 0;
    break;
  case op::bit_or:
    if (is_bool(to) && (x == 1 || y == 1)) return 1;
    break;
  case op::rem:
    if (x == 0) return 0;
    break;
  case op::where:
    return ux ? (y == z ? y : unknown) : x ? y : z;
  case op::cast:
    if (is_float(from) || is_float(to)) return unknown;
    return ux ? unknown : to == dtype::b1 ? x != 0 : wrap(to, x);
  case op::bit_not: return ux ? unknown : is_bool(to) ? !x : wrap(to, ~x);
  case op::neg: return ux ? unknown : wrap(to, static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(x)));
  case op::abs: return ux ? unknown : wrap(to, x < 0 ? static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(x)) : x);
  case op::multiple_of: case op::max_contiguous: return x;
  default: break;
  }
  if (ux || uy) return unknown;
  // u64 above the range of i64 would compare and divide differently.
  if (from == dtype::u64 && (x < 0 || y < 0)) return unknown;
  auto const ax = static_cast<std::uint64_t>(x), ay = static_cast<std::uint64_t>(y);
  switch (o) {
  case op::add: return wrap(to, static_cast<std::int64_t>(ax + ay));
  case op::sub: return wrap(to, static_cast<std::int64_t>(ax - ay));
  case op::mul: return wrap(to, static_cast<std::int64_t>(ax * ay));
  case op::div: return y == 0 ? wrap(to, -1) : y == -1 ? wrap(to, static_cast<std::int64_t>(0 - ax)) : wrap(to, x / y);
  case op::rem: return y == 0 ? x : y == -1 ? 0 : wrap(to, x % y);
  case op::bit_and: return x & y;
  case op::bit_or: return x | y;
  case op::bit_xor: return x ^ y;
  case op::shl: return y < 0 || y >= bits_of(to) ? 0 : wrap(to, static_cast<std::int64_t>(ax << y));
  case op::shr: return y < 0 || y >= bits_of(to) ? (x < 0 ? -1 : 0) : x >> y;
  case op::min: return x < y ? x : y;
  case op::max: return x < y ? y : x;
  case op::eq: return x == y;
  case op::ne: return x != y;
  case op::lt: return x < y;
  case op::le: return x <= y;
  case op::gt: return x > y;
  case op::ge: return x >= y;
  default: return unknown;
  }
}

/// An operation that `evaluate` knows, on rank-0 integers and b1.
constexpr bool evaluates(op o) {
  return (o >= op::add && o <= op::ge) || o == op::where || o == op::cast || (o >= op::neg && o <= op::abs) || o == op::multiple_of || o == op::max_contiguous;
}
static_assert(static_cast<int>(op::ge) - static_cast<int>(op::add) == 17 && static_cast<int>(op::abs) - static_cast<int>(op::neg) == 2);

} // namespace kiln::detail
