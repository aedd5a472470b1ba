// What the hazard simulation executes: a kernel graph with everything sliced away that neither touches local memory nor
// decides when and where local memory is touched. Scalar nodes become instructions on a register file, regions become
// jumps, views become boxes of atoms.
//
// An atom is the unit of memory that the simulation tracks: a whole slot of a buffer, or, where views cut a slot into parts, a
// cell of the grid that all cuts together make.
//
// Values that only a launch knows (parameters, extents, program_id) are symbols. Those that bound loops receive numbers, so
// that the loop runs as often as the simulation wants and a guard such as `i + 3 < steps` is decided exactly; conditions on
// the others are explored both ways.
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

enum class sim_op : std::uint8_t {
  scalar, ///< r[a] = node's operation on r[b], r[c], r[d]
  symbol, ///< r[a] = value of symbol b
  move,   ///< r[a] = r[b]
  loop,   ///< r[a] from r[b] to r[c] by r[d]; leaves to `target`
  next,   ///< back to the loop at `target`
  branch, ///< to `target` unless r[a]
  jump,   ///< to `target`
  again,  ///< back to the while loop at `target`
  exit,   ///< leaves a while loop to `target` unless r[a]
  assume, ///< this run cannot happen unless r[a]
  read,   ///< box a
  write,  ///< box a
  async,  ///< box a is written later; b: 1 when masked elements may stay unspecified, 2 when some surely do
  commit, ///< r[a] = the group's number
  wait,   ///< at most b groups pending; token registers c.. (d of them)
  done,
};

struct instruction {
  sim_op code{};
  std::int32_t a = -1, b = -1, c = -1, d = -1;
  std::int32_t target = -1;
  std::int32_t node = -1;
};

/// A view, in coordinates of its buffer.
struct box {
  std::int32_t buffer = 0;
  std::int32_t slot = -1;   ///< register; -1: slot 0
  std::int32_t node = -1;   ///< the view
  std::int32_t index = -1;  ///< the node that selects the slot, or -1
  int axes = 0;             ///< of the view
  int axis[max_rank]{};     ///< of the view's axis: the buffer's
  int start[max_rank]{};    ///< constant part, by buffer axis
  std::int32_t moving[max_rank]{}; ///< register added to start, or -1
  int extent[max_rank]{};
  bool whole = true;        ///< no axis is narrowed
  bool reshaped = false;    ///< axes no longer correspond
  bool exact = true;        ///< false: a part whose place cannot be expressed; it is left out of the simulation
};

/// How a buffer is cut into atoms.
struct atom_grid {
  std::int32_t first = 0;  ///< atom
  std::int32_t per_slot = 1;
  int rank = 0;
  int size[max_rank]{};    ///< elements of an atom along an axis
  int count[max_rank]{};   ///< atoms along an axis
};

/// A loop whose trip count a launch decides.
struct free_loop {
  std::int32_t node = -1;
  bool outer = false; ///< holds another loop and its index selects nothing: a few passes are enough
};

struct affine {
  std::int32_t root = -1; ///< node; -1: a constant
  std::int64_t scale = 0, offset = 0;
};

struct agent_range {
  std::int32_t begin = 0; ///< first instruction
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
  int atoms = 0;
  int ring = 1;      ///< the longest: slots, and divisors of slot indices
  bool async = false;
  int left_out = -1; ///< an access that is not simulated
};

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
  switch (o) {
  case op::add: case op::sub: case op::mul: case op::div: case op::rem: case op::bit_and: case op::bit_or: case op::bit_xor:
  case op::shl: case op::shr: case op::min: case op::max: case op::eq: case op::ne: case op::lt: case op::le: case op::gt:
  case op::ge: case op::where: case op::cast: case op::bit_not: case op::neg: case op::abs: case op::multiple_of: case op::max_contiguous:
    return true;
  default: return false;
  }
}
constexpr bool compares(op o) { return o >= op::eq && o <= op::ge; }

/// Makes the program of a verified graph. O(nodes).
class slicer {
public:
  constexpr slicer(graph_view const& g, sim_program& p) : g_(g), p_(p) {}

  /// False when the kernel has nothing to simulate.
  constexpr bool run() {
    if (!scan()) return false;
    mark();
    number();
    choose_symbols();
    emit();
    cut();
    return true;
  }

  // For the simulation's use after `run`.
  constexpr int parent(int i) const { return parent_[i]; }
  constexpr int value_number(int i) const { return number_[i]; }
  constexpr int register_of(int i) const { return register_[i]; }
  constexpr std::int64_t constant(int i) const { return folded_[i]; }
  constexpr bool varies(int i) const { return varies_[i]; }
  /// `scale * root + offset`, where root is no longer of that form.
  constexpr affine affine_of(int i) const {
    affine f{i, 1, 0};
    for (;;) {
      if (folded_[f.root] != unknown) return {-1, 0, f.scale * folded_[f.root] + f.offset};
      node const& n = g_[f.root];
      int const a = n.operand_count > 0 ? g_.operand(f.root, 0) : -1, b = n.operand_count > 1 ? g_.operand(f.root, 1) : -1;
      std::int64_t const ca = a >= 0 && needed_[a] ? folded_[a] : unknown, cb = b >= 0 && needed_[b] ? folded_[b] : unknown;
      switch (n.code) {
      case op::add:
        if (cb != unknown) {
          f.offset += f.scale * cb;
          f.root = a;
          continue;
        }
        if (ca != unknown) {
          f.offset += f.scale * ca;
          f.root = b;
          continue;
        }
        return f;
      case op::sub:
        if (cb != unknown) {
          f.offset -= f.scale * cb;
          f.root = a;
          continue;
        }
        if (ca != unknown) {
          f.offset += f.scale * ca;
          f.scale = -f.scale;
          f.root = b;
          continue;
        }
        return f;
      case op::mul:
        if (cb != unknown && cb != 0 && cb < 0x10000 && cb > -0x10000) {
          f.scale *= cb;
          f.root = a;
          continue;
        }
        if (ca != unknown && ca != 0 && ca < 0x10000 && ca > -0x10000) {
          f.scale *= ca;
          f.root = b;
          continue;
        }
        return f;
      case op::neg: f.scale = -f.scale; f.root = a; continue;
      case op::cast:
        if (!is_int(g_[a].type)) return f;
        f.root = a;
        continue;
      case op::multiple_of: case op::max_contiguous: f.root = a; continue;
      default: return f;
      }
    }
  }

private:
  static constexpr bool touches(op o) {
    return o == op::local_load || o == op::local_store || o == op::local_gather || o == op::local_scatter || o == op::async_load ||
           o == op::async_commit || o == op::async_wait;
  }
  constexpr bool is_event(int i) const {
    if (touches(g_[i].code)) return true;
    return g_[i].code == op::dot && (g_[g_.operand(i, 0)].kind == node_kind::view || g_[g_.operand(i, 1)].kind == node_kind::view);
  }

  /// Regions, assignments of each var, and whether there is anything to do.
  constexpr bool scan() {
    int const n = g_.size();
    parent_.resize(n, -1);
    next_set_.resize(n, -1);
    first_set_.resize(n, -1);
    needed_.resize(n, false);
    kept_.resize(n, false);
    int open = -1;
    bool any = false;
    for (int i = 0; i < n; ++i) {
      op const o = g_[i].code;
      if (o == op::for_end || o == op::if_end || o == op::while_end || o == op::combine_end) {
        parent_[i] = open;
        open = parent_[open];
        continue;
      }
      parent_[i] = open;
      if (o == op::for_begin || o == op::if_begin || o == op::while_begin || o == op::combine_begin)
        open = i;
      else if (o == op::var_set) {
        int const cell = g_.operand(i, 0);
        next_set_[i] = first_set_[cell];
        first_set_[cell] = i;
      } else if (is_event(i)) {
        any = true;
      }
    }
    return any;
  }

  /// What the accesses need: regions around them, slots, conditions, bounds, and so on backwards.
  constexpr void mark() {
    for (int i = 0; i < g_.size(); ++i) {
      op const o = g_[i].code;
      if (o == op::assume) { // a promise about launches; it must not bring in anything new but its operands
        assumes_.add() = i;
        continue;
      }
      if (!is_event(i)) continue;
      kept_[i] = true;
      keep_regions(parent_[i]);
      if (o == op::async_commit || o == op::async_wait) {
        if (o == op::async_wait)
          for (std::int32_t t : g_.operands(i))
            if (t >= 0) need(t);
        continue;
      }
      if (o == op::dot) {
        for (int j = 0; j < 2; ++j)
          if (g_[g_.operand(i, j)].kind == node_kind::view) need_view(g_.operand(i, j));
      } else {
        need_view(g_.operand(i, o == op::async_load ? 1 : 0));
      }
    }
    drain();
    for (int i = 0; i < assumes_.size(); ++i) {
      need(g_.operand(assumes_[i], 0));
      kept_[assumes_[i]] = true;
      keep_regions(parent_[assumes_[i]]);
    }
    drain();
  }
  constexpr void keep_regions(int r) {
    while (r >= 0 && !kept_[r]) {
      kept_[r] = true;
      node const& n = g_[r];
      if (n.code == op::while_begin)
        need(g_.operand(static_cast<int>(g_.attribute(r, 0)), 0));
      else
        for (std::int32_t o : g_.operands(r)) need(o);
      r = parent_[r];
    }
  }
  constexpr void need_view(int v) {
    while (g_[v].code != op::alloc) {
      for (int j = 1; j < g_[v].operand_count; ++j) need(g_.operand(v, j));
      v = g_.operand(v, 0);
    }
  }
  constexpr void need(int i) {
    if (needed_[i]) return;
    needed_[i] = true;
    work_.add() = i;
  }
  constexpr void drain() {
    while (!work_.empty()) {
      int const i = work_[work_.size() - 1];
      work_.pop();
      node const& n = g_[i];
      if (n.code == op::var_get || n.code == op::var) {
        int const cell = n.code == op::var ? i : g_.operand(i, 0);
        need(cell);
        if (n.code == op::var) {
          need(g_.operand(i, 0));
          for (int s = first_set_[cell]; s >= 0; s = next_set_[s]) {
            kept_[s] = true;
            need(g_.operand(s, 1));
            keep_regions(parent_[s]);
          }
        }
      } else if (is_root(i)) {
        continue;
      } else if (n.code == op::for_begin) {
        keep_regions(i);
      } else if (n.kind != node_kind::token) {
        for (std::int32_t o : g_.operands(i)) need(o);
      }
    }
  }
  /// A scalar that comes from outside the program: a parameter, memory, floating arithmetic.
  constexpr bool is_root(int i) const {
    node const& n = g_[i];
    if (n.kind == node_kind::token || n.code == op::constant || n.code == op::for_begin || n.code == op::var || n.code == op::var_get) return false;
    if (n.kind != node_kind::value || n.shape != 0 || !(is_int(n.type) || is_bool(n.type)) || !evaluates(n.code)) return true;
    for (std::int32_t o : g_.operands(i))
      if (g_[o].shape != 0 || !(is_int(g_[o].type) || is_bool(g_[o].type))) return true;
    return false;
  }
  /// Different at each execution, so that two mentions are two values.
  static constexpr bool fresh(op o) { return !has(o, trait::pure) || o == op::combine_arg || o == op::dot; }

  /// Value numbers (equal expressions have equal ones), constants, and what depends on a loop or a var.
  constexpr void number() {
    int const n = g_.size();
    number_.resize(n, -1);
    folded_.resize(n, unknown);
    varies_.resize(n, false);
    int buckets = 16;
    for (int i = 0; i < n; ++i)
      if (needed_[i]) ++buckets;
    bucket_.resize(buckets, -1);
    chain_.resize(n, -1);
    for (int i = 0; i < n; ++i) {
      if (!needed_[i]) continue;
      node const& x = g_[i];
      number_[i] = i;
      if (x.code == op::constant) {
        folded_[i] = wrap(x.type, g_.attribute(i, 0));
      } else if (x.code == op::for_begin || x.code == op::var || x.code == op::var_get || x.kind == node_kind::token) {
        varies_[i] = true;
        continue;
      } else if (is_root(i)) {
        if (fresh(x.code)) {
          varies_[i] = parent_[i] >= 0;
          continue;
        }
        for (std::int32_t o : g_.operands(i)) // a root of roots, a reduction say: equal only when it is the same node
          if (o >= 0 && g_[o].kind != node_kind::array) varies_[i] = true;
        if (varies_[i]) {
          varies_[i] = parent_[i] >= 0;
          continue;
        }
      } else {
        std::int64_t v[3]{0, 0, 0};
        for (int j = 0; j < x.operand_count && j < 3; ++j) {
          v[j] = folded_[g_.operand(i, j)];
          if (varies_[g_.operand(i, j)]) varies_[i] = true;
        }
        folded_[i] = evaluate(x.code, g_[g_.operand(i, 0)].type, x.type, v[0], v[1], v[2]);
        if (x.code == op::where && v[0] == unknown) folded_[i] = unknown;
      }
      std::uint32_t h = static_cast<std::uint32_t>(x.code) * 31u + static_cast<std::uint32_t>(x.type);
      int const attributes = attribute_count(x.code);
      for (int j = 0; j < attributes; ++j) h = h * 31u + static_cast<std::uint32_t>(g_.attribute(i, j));
      for (std::int32_t o : g_.operands(i)) h = h * 31u + static_cast<std::uint32_t>(operand_number(o));
      int& head = bucket_[static_cast<int>(h % static_cast<std::uint32_t>(buckets))];
      int same = head;
      while (same >= 0 && !equal(i, same, attributes)) same = chain_[same];
      if (same >= 0) {
        number_[i] = same;
      } else {
        chain_[i] = head;
        head = i;
      }
    }
  }
  constexpr int operand_number(int o) const { return o >= 0 && needed_[o] ? number_[o] : o; }
  constexpr bool equal(int a, int b, int attributes) const {
    node const &x = g_[a], &y = g_[b];
    if (x.code != y.code || x.type != y.type || x.operand_count != y.operand_count) return false;
    for (int j = 0; j < attributes; ++j)
      if (g_.attribute(a, j) != g_.attribute(b, j)) return false;
    for (int j = 0; j < x.operand_count; ++j)
      if (operand_number(g_.operand(a, j)) != operand_number(g_.operand(b, j))) return false;
    return true;
  }

  /// Loops with runtime bounds, and the symbols that decide them.
  constexpr void choose_symbols() {
    symbol_.resize(g_.size(), -1);
    for (int i = 0; i < g_.size(); ++i) {
      if (!kept_[i] || g_[i].code != op::for_begin) continue;
      bool fixed = true;
      for (int j = 0; j < 3; ++j) {
        affine const f = affine_of(g_.operand(i, j));
        if (f.root < 0) continue;
        fixed = false;
        if (!varies_[f.root]) add_symbol(f.root);
      }
      if (fixed) continue;
      free_loop& l = p_.loops.add();
      l.node = i;
      l.outer = false;
      if (!needed_[i])
        for (int e = i + 1, end = static_cast<int>(g_.attribute(i, 0)); e < end && !l.outer; ++e)
          l.outer = kept_[e] && (g_[e].code == op::for_begin || g_[e].code == op::while_begin);
    }
  }
  constexpr void add_symbol(int i) {
    int const v = number_[i];
    if (symbol_[v] >= 0) return;
    symbol_[v] = p_.symbol_nodes.size();
    p_.symbol_nodes.add() = v;
  }

public:
  /// Index of the symbol that stands for node i, or -1.
  constexpr int symbol_of(int i) const { return number_[i] < 0 ? -1 : symbol_[number_[i]]; }

private:
  constexpr int new_register(std::int64_t content) {
    p_.constants.add() = content;
    return p_.constants.size() - 1;
  }
  constexpr instruction& put(sim_op code, int node) {
    instruction& x = p_.code.add();
    x.code = code;
    x.node = node;
    return x;
  }

  constexpr void emit() {
    int const n = g_.size();
    register_.resize(n, -1);
    box_.resize(n, -1);
    start_.resize(n, -1);
    patch_.resize(n, -1);
    p_.agents.add();
    for (int i = 0; i < n; ++i) {
      node const& x = g_[i];
      if (needed_[i]) scalar(i);
      switch (x.code) {
      case op::for_begin:
        if (!kept_[i]) break;
        if (register_[i] < 0) register_[i] = new_register(unknown);
        start_[i] = p_.code.size();
        {
          instruction& c = put(sim_op::loop, i);
          c.a = register_[i];
          c.b = register_[g_.operand(i, 0)];
          c.c = register_[g_.operand(i, 1)];
          c.d = register_[g_.operand(i, 2)];
        }
        break;
      case op::for_end: close(i, sim_op::next, true); break;
      case op::while_begin: start_[i] = p_.code.size(); break;
      case op::while_test: {
        int const begin = static_cast<int>(g_.attribute(i, 0));
        if (!kept_[begin]) break;
        patch_[begin] = p_.code.size();
        put(sim_op::exit, i).a = register_[g_.operand(i, 0)];
        break;
      }
      case op::while_end: {
        int const begin = static_cast<int>(g_.attribute(i, 0));
        if (!kept_[begin]) break;
        put(sim_op::again, i).target = start_[begin];
        p_.code[patch_[begin]].target = p_.code.size();
        break;
      }
      case op::if_begin:
        if (!kept_[i]) break;
        patch_[i] = p_.code.size();
        put(sim_op::branch, i).a = register_[g_.operand(i, 0)];
        break;
      case op::if_else: {
        int const begin = static_cast<int>(g_.attribute(i, 0));
        if (!kept_[begin]) break;
        int const jump = p_.code.size();
        put(sim_op::jump, i);
        p_.code[patch_[begin]].target = p_.code.size();
        patch_[begin] = jump;
        break;
      }
      case op::if_end: {
        int const begin = static_cast<int>(g_.attribute(i, 0));
        if (kept_[begin]) p_.code[patch_[begin]].target = p_.code.size();
        break;
      }
      case op::var_set:
        if (!kept_[i]) break;
        {
          instruction& c = put(sim_op::move, i);
          c.a = register_[g_.operand(i, 0)];
          c.b = register_[g_.operand(i, 1)];
        }
        break;
      case op::assume:
        if (kept_[i]) put(sim_op::assume, i).a = register_[g_.operand(i, 0)];
        break;
      default:
        if (kept_[i]) event(i);
      }
    }
    put(sim_op::done, -1);
  }
  constexpr void close(int i, sim_op code, bool) {
    int const begin = static_cast<int>(g_.attribute(i, 0));
    if (!kept_[begin]) return;
    put(code, i).target = start_[begin];
    p_.code[start_[begin]].target = p_.code.size();
  }
  constexpr void scalar(int i) {
    node const& x = g_[i];
    if (x.kind == node_kind::token && x.code != op::var_get) { // a commit's register holds its group
      register_[i] = new_register(unknown);
      return;
    }
    if (x.code == op::for_begin) {
      register_[i] = new_register(unknown);
      return;
    }
    if (folded_[i] != unknown) {
      register_[i] = new_register(folded_[i]);
      return;
    }
    int const r = register_[i] = new_register(unknown);
    if (int const s = symbol_of(i); s >= 0) {
      instruction& c = put(sim_op::symbol, i);
      c.a = r;
      c.b = s;
    } else if (x.code == op::var || x.code == op::var_get) {
      instruction& c = put(sim_op::move, i);
      c.a = r;
      c.b = register_[g_.operand(i, 0)];
    } else if (!is_root(i)) {
      instruction& c = put(sim_op::scalar, i);
      c.a = r;
      c.b = register_[g_.operand(i, 0)];
      if (x.operand_count > 1) c.c = register_[g_.operand(i, 1)];
      if (x.operand_count > 2) c.d = register_[g_.operand(i, 2)];
      if (x.code == op::rem && folded_[g_.operand(i, 1)] > p_.ring && folded_[g_.operand(i, 1)] <= 16)
        p_.ring = static_cast<int>(folded_[g_.operand(i, 1)]);
    }
  }

  constexpr void event(int i) {
    node const& x = g_[i];
    switch (x.code) {
    case op::async_commit:
      if (register_[i] < 0) register_[i] = new_register(unknown);
      put(sim_op::commit, i).a = register_[i];
      return;
    case op::async_wait: {
      instruction& c = put(sim_op::wait, i);
      c.b = static_cast<std::int32_t>(g_.attribute(i, 0));
      c.c = p_.token_registers.size();
      for (std::int32_t t : g_.operands(i))
        if (t >= 0) p_.token_registers.add() = register_[t];
      c.d = p_.token_registers.size() - c.c;
      return;
    }
    case op::local_load: case op::local_gather: access(sim_op::read, i, g_.operand(i, 0)); return;
    case op::local_store: case op::local_scatter: access(sim_op::write, i, g_.operand(i, 0)); return;
    case op::dot:
      for (int j = 0; j < 2; ++j)
        if (g_[g_.operand(i, j)].kind == node_kind::view) access(sim_op::read, i, g_.operand(i, j));
      return;
    case op::async_load: {
      p_.async = true;
      bool const masked = g_.operand(i, 2) >= 0 || g_[g_.operand(i, 0)].kind == node_kind::region;
      if (access(sim_op::async, i, g_.operand(i, 1))) p_.code.back().b = masked && g_.operand(i, 3) < 0;
      return;
    }
    default: return;
    }
  }
  constexpr bool access(sim_op code, int i, int view) {
    int const b = box_of(view);
    if (!p_.boxes[b].exact) {
      if (p_.left_out < 0) p_.left_out = i;
      return false;
    }
    put(code, i).a = b;
    int const slots = g_.buffer(p_.boxes[b].buffer).slots;
    if (slots > p_.ring) p_.ring = slots;
    return true;
  }

  /// The box of a view, from the box of what it is a view of.
  constexpr int box_of(int v) {
    if (box_[v] >= 0) return box_[v];
    node const& x = g_[v];
    int const from = g_.operand(v, 0);
    box b;
    if (x.code == op::view_index && g_[from].kind == node_kind::buffers) {
      b.buffer = static_cast<std::int32_t>(g_.attribute(from, 0));
      buffer_info const& f = g_.buffer(b.buffer);
      shape const& s = g_.shapes[static_cast<std::size_t>(f.shape)];
      b.slot = register_[g_.operand(v, 1)];
      b.index = g_.operand(v, 1);
      b.axes = s.rank;
      for (int d = 0; d < s.rank; ++d) {
        b.axis[d] = d;
        b.extent[d] = s.extent[d];
        b.moving[d] = -1;
      }
    } else {
      int const base = box_of(from);
      box const& o = p_.boxes[base];
      b = o;
      shape const& s = g_.shape_of(v);
      switch (x.code) {
      case op::view_trans:
        if (!b.reshaped)
          for (int d = 0; d < s.rank; ++d) b.axis[d] = o.axis[g_.attribute(v, d)];
        break;
      case op::view_reshape: b.reshaped = true; break;
      case op::view_slice:
        for (int d = 0; d < s.rank; ++d) narrow(b, d, g_.operand(v, d + 1), s.extent[d], g_.shape_of(from).extent[d]);
        break;
      default: // view_index: the outermost axis
        narrow(b, 0, g_.operand(v, 1), 1, g_.shape_of(from).extent[0]);
        if (!b.reshaped && g_.shape_of(from).rank > 1) {
          --b.axes;
          for (int d = 0; d < b.axes; ++d) b.axis[d] = b.axis[d + 1];
        }
      }
    }
    b.node = v;
    p_.boxes.add() = b;
    return box_[v] = p_.boxes.size() - 1;
  }
  constexpr void narrow(box& b, int d, int offset, int extent, int from) {
    if (extent == from) return; // the offset is 0
    b.whole = false;
    if (b.reshaped) {
      b.exact = false;
      return;
    }
    int const axis = b.axis[d];
    b.extent[axis] = extent;
    if (folded_[offset] != unknown)
      b.start[axis] += static_cast<int>(folded_[offset]);
    else if (b.moving[axis] < 0)
      b.moving[axis] = register_[offset];
    else
      b.exact = false; // two moving offsets on one axis
  }

  /// Cuts every buffer into atoms along the borders of its boxes.
  constexpr void cut() {
    for (int k = 0; k < static_cast<int>(g_.buffers.size()); ++k) {
      shape const& s = g_.shapes[static_cast<std::size_t>(g_.buffer(k).shape)];
      atom_grid& a = p_.grids.add();
      a.rank = s.rank;
      for (int d = 0; d < s.rank; ++d) a.size[d] = s.extent[d];
    }
    auto gcd = [](int x, int y) {
      while (y) {
        int const t = x % y;
        x = y;
        y = t;
      }
      return x;
    };
    for (int k = 0; k < p_.boxes.size(); ++k) {
      box const& b = p_.boxes[k];
      if (b.whole || !b.exact) continue;
      atom_grid& a = p_.grids[b.buffer];
      for (int d = 0; d < a.rank; ++d) a.size[d] = gcd(gcd(a.size[d], b.extent[d]), b.start[d] < 0 ? -b.start[d] : b.start[d]);
    }
    for (int k = 0; k < p_.grids.size(); ++k) {
      atom_grid& a = p_.grids[k];
      std::int64_t per_slot = 1;
      for (int d = 0; d < a.rank; ++d) {
        a.count[d] = g_.shapes[static_cast<std::size_t>(g_.buffer(k).shape)].extent[d] / a.size[d];
        per_slot *= a.count[d];
      }
      if (per_slot > most_atoms) { // cut too finely: parts are left out, whole slots stay
        for (int d = 0; d < a.rank; ++d) {
          a.size[d] *= a.count[d];
          a.count[d] = 1;
        }
        per_slot = 1;
        for (int c = 0; c < p_.code.size(); ++c) {
          instruction& x = p_.code[c];
          if ((x.code == sim_op::read || x.code == sim_op::write || x.code == sim_op::async) && p_.boxes[x.a].buffer == k && !p_.boxes[x.a].whole) {
            if (p_.left_out < 0) p_.left_out = x.node;
            x.code = sim_op::jump;
            x.target = c + 1;
          }
        }
      }
      a.per_slot = static_cast<std::int32_t>(per_slot);
      a.first = p_.atoms;
      p_.atoms += a.per_slot * g_.buffer(k).slots;
    }
  }
  static constexpr int most_atoms = 256;

  graph_view const& g_;
  sim_program& p_;
  table<std::int32_t> parent_, next_set_, first_set_, number_, symbol_, register_, box_, start_, patch_;
  table<int> bucket_, chain_;
  table<std::int64_t> folded_;
  table<bool> needed_, kept_, varies_;
  vec<std::int32_t> work_, assumes_;
};

} // namespace kiln::detail
