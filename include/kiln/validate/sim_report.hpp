// What the hazard simulation's parts share: the wording of findings, and decisions about conditions that only a launch knows.
#pragma once
#include <kiln/validate/simulator.hpp>

namespace kiln::detail {

constexpr std::int64_t simulator::content(int node) const {
  int const r = slices_.register_of(node);
  return r == 0 ? unknown : registers_[r];
}

/// The value of a condition; what stays unknown is decided, and the other decision is another run.
constexpr bool simulator::truth(int i) {
  if (std::int64_t const v = content(i); v != unknown) return v != 0;
  node const& n = g_[i];
  if (n.operand_count > 0 && is_bool(n.type) && is_bool(g_[g_.operand(i, 0)].type) && g_[i].shape == 0) {
    int const a = g_.operand(i, 0);
    switch (n.code) {
    case op::bit_not: return !truth(a);
    case op::bit_and: return truth(a) && truth(g_.operand(i, 1));
    case op::bit_or: return truth(a) || truth(g_.operand(i, 1));
    case op::bit_xor: case op::ne: return truth(a) != truth(g_.operand(i, 1));
    case op::eq: return truth(a) == truth(g_.operand(i, 1));
    case op::where: return truth(a) ? truth(g_.operand(i, 1)) : truth(g_.operand(i, 2));
    case op::cast: return truth(a);
    default: break;
    }
  }
  bool negated = false;
  decision d = canonical(i, negated);
  for (int k = 0; k < decisions_.size(); ++k)
    if (decisions_[k].code == d.code && decisions_[k].a == d.a && decisions_[k].b == d.b) return decisions_[k].value != negated;
  d.value = !negated; // the condition itself is true first
  decisions_.add() = d;
  return true;
}

/// One of a < b and a == b for all six comparisons, so that a condition and its opposite are one decision.
constexpr simulator::decision simulator::canonical(int i, bool& negated) {
  node const& n = g_[i];
  decision d;
  d.node = i;
  if (!compares(n.code)) {
    d.code = op::constant;
    d.a = slices_.value_number(i);
    return d;
  }
  int const a = slices_.value_number(g_.operand(i, 0)), b = slices_.value_number(g_.operand(i, 1));
  bool const equality = n.code == op::eq || n.code == op::ne;
  bool const swap = equality ? a > b : n.code == op::gt || n.code == op::le;
  negated = n.code == op::ne || n.code == op::ge || n.code == op::le;
  d.code = equality ? op::eq : op::lt;
  d.a = swap ? b : a;
  d.b = swap ? a : b;
  if (a < 0 || b < 0) { // over floats or tiles
    d.code = op::constant;
    d.a = slices_.value_number(i);
    d.b = -1;
    negated = false;
  }
  return d;
}

/// False when this run contradicts the promise. A plain condition that is unknown becomes true for good.
constexpr bool simulator::promise(int i) {
  std::int64_t const v = content(i);
  if (v != unknown) return v != 0;
  node const& n = g_[i];
  if (n.code == op::bit_and && is_bool(n.type)) return promise(g_.operand(i, 0)) && promise(g_.operand(i, 1));
  if (n.code == op::bit_or || n.code == op::bit_not || n.code == op::bit_xor || n.code == op::where) return true;
  bool negated = false;
  decision d = canonical(i, negated);
  for (int k = 0; k < decisions_.size(); ++k)
    if (decisions_[k].code == d.code && decisions_[k].a == d.a && decisions_[k].b == d.b) return decisions_[k].value != negated;
  d.value = !negated;
  d.fixed = true;
  decisions_.add() = d;
  return true;
}

/// A slot index made of launch values only: any consistent numbers will do, so all symbols are 0.
constexpr std::int64_t simulator::likely(int i) const {
  if (std::int64_t const v = content(i); v != unknown) return v;
  node const& n = g_[i];
  if (n.code == op::param || n.code == op::extent || n.code == op::stride || n.code == op::program_id) return 0;
  if (n.code == op::num_programs) return 1;
  if (!evaluates(n.code) || n.shape != 0 || !is_int(n.type)) return unknown;
  std::int64_t v[3]{0, 0, 0};
  for (int j = 0; j < n.operand_count; ++j) {
    int const o = g_.operand(i, j);
    if (slices_.register_of(o) == 0 || (v[j] = likely(o)) == unknown) return unknown;
  }
  return evaluate(n.code, g_[g_.operand(i, 0)].type, n.type, v[0], v[1], v[2]);
}

// -- messages ------------------------------------------------------------------------------------------------------------
constexpr message simulator::broken(int node) {
  out_->error.node = node;
  return message(out_->error);
}

/// A new note about `node`; a second one with the same rule and node replaces the first.
constexpr message simulator::remark(int node) {
  flush();
  spare_.node = node < 0 ? 0 : node;
  return message(spare_);
}

/// Moves the last remark into the list.
constexpr void simulator::flush() {
  if (spare_.node < 0) return;
  note_list& n = out_->notes;
  bool known = n.count == note_list::most;
  for (int i = 0; i < n.count; ++i) known = known || (n.items[i].node == spare_.node && same_rule(n.items[i].text, spare_.text));
  if (!known) {
    note& x = n.items[n.count++];
    x.node = spare_.node;
    for (int i = 0; i < spare_.length && i + 1 < static_cast<int>(sizeof x.text); ++i) x.text[x.length++] = spare_.text[i];
  }
  spare_.node = -1;
}

constexpr bool simulator::same_rule(char const* a, char const* b) {
  for (; *a && *a != ']'; ++a, ++b)
    if (*a != *b) return false;
  return true;
}

/// What the run assumed beyond the usual.
constexpr void simulator::circumstances() {
  for (int i = 0; i < decisions_.size(); ++i)
    if (decisions_[i].flipped) {
      append_text() << " (when the condition of line " << g_[decisions_[i].node].line << " is decided otherwise)";
      break;
    }
  if (!full_ && p_.loops.size() > 0)
    append_text() << " (when the loop of line " << g_[p_.loops[0].node].line << " runs " << (passes_ == 1 ? "once" : "twice")
                  << "; k.assume(...) excludes it)";
}

constexpr bool simulator::all_true() const {
  for (int i = 0; i < decisions_.size(); ++i)
    if (decisions_[i].flipped) return false;
  return true;
}

constexpr std::string_view simulator::verb(instruction const& x) const {
  op const o = g_[x.node].code;
  return o == op::async_load || o == op::async_load_bulk || o == op::async_store_bulk || o == op::local_store || o == op::local_scatter || (o >= op::remote_store && o <= op::async_remote_copy) ? name_of(o) : "read";
}

/// ` in task load`, where there are tasks.
constexpr void simulator::in_task(message& m, int agent) const {
  if (p_.agents.size() == 1) return;
  m << " in ";
  task_name(m, agent);
}

/// ` (file:line)`, and in which task.
constexpr void simulator::where(message& m, int node, int agent) const {
  m << " (";
  place(m, node);
  m << ")";
  in_task(m, agent);
}

constexpr void simulator::task_name(message& m, int agent) const {
  agent_range const& a = p_.agents[agent];
  if (a.task < 0) {
    if (p_.ctas == 1)
      m << "the kernel";
    else
      m << "CTA " << a.cta;
    return;
  }
  if (char const* const name = g_.string(static_cast<int>(g_.attribute(a.task, 4))); *name)
    m << "task " << name;
  else if (g_.attribute(a.task, 0) == 0)
    m << "the default task";
  else {
    int number = 0;
    for (int i = a.task - 1; g_[i].code != op::tasks_begin; --i) number += g_[i].code == op::task_begin;
    m << "task " << number;
  }
  if (g_.attribute(a.task, 2) > 1) m << " replica " << a.replica;
  if (p_.ctas > 1) m << " of CTA " << a.cta;
}

constexpr void simulator::barriers_name(message& m, int alloc) const {
  if (char const* const name = g_.string(static_cast<int>(g_.attribute(alloc, 3))); *name)
    m << name;
  else
    m << "barriers@" << g_[alloc].line;
}

/// "full[2]".
constexpr void simulator::barrier_name(message& m, int slot) const {
  int const cta = p_.ctas == 1 ? 0 : slot / p_.cta_slots;
  slot -= cta * p_.cta_slots;
  int const alloc = p_.slot_alloc[slot];
  int first = slot;
  while (first > 0 && p_.slot_alloc[first - 1] == alloc) --first;
  barriers_name(m, alloc);
  m << "[" << slot - first << "]";
  if (cta != cta_) m << " of CTA " << cta;
}

constexpr void simulator::place(message& m, int node) const {
  char const* f = g_.file(node);
  char const* base = f;
  for (char const* c = f; *c; ++c)
    if (*c == '/') base = c + 1;
  m << base << ":" << g_[node].line;
}
constexpr void simulator::buffer(message& m, int b) const {
  put_buffer_name(m, g_, b);
}

constexpr void simulator::bare_name(message& m, box const& b) const {
  if (!b.whole) m << "a part of ";
  buffer(m, b.buffer);
  if (!g_.buffer(b.buffer).has_slots) return;
  m << "[";
  expression(m, b.index, 0);
  m << "]";
}

/// "a[i0 % 4] (8192 B)".
constexpr void simulator::access_name(message& m, box const& b) const {
  bare_name(m, b);
  if (peer_ >= 0 && peer_ != cta_) m << " of CTA " << peer_;
  m << " (" << kiln::bytes_of(g_[b.node].type, g_.shape_of(b.node).elements()) << " B)";
}

/// An index or rank beyond its range: how it is written, what it comes to, what is valid.
constexpr void simulator::outside(message& m, int node, std::int64_t value, int count) const {
  expression(m, node, 0);
  if (slices_.constant(node) == unknown) m << " becomes " << value;
  m << ", valid 0.." << count - 1;
}

/// A slot index as the user might write it: loop variables are i0, i1 by depth.
constexpr void simulator::expression(message& m, int i, int precedence) const {
  if (slices_.constant(i) != unknown) {
    m << slices_.constant(i);
    return;
  }
  node const& n = g_[i];
  char const* sign = nullptr;
  int mine = 2;
  switch (n.code) {
  case op::for_begin: {
    int depth = 0;
    for (int p = slices_.parent(i); p >= 0; p = slices_.parent(p)) depth += g_[p].code == op::for_begin;
    m << "i" << depth;
    return;
  }
  case op::add: sign = " + "; mine = 1; break;
  case op::sub: sign = " - "; mine = 1; break;
  case op::mul: sign = " * "; break;
  case op::div: sign = " / "; break;
  case op::rem: sign = " % "; break;
  case op::cast: case op::multiple_of: case op::max_contiguous: expression(m, g_.operand(i, 0), precedence); return;
  case op::var_get: m << "var@" << g_[g_.operand(i, 0)].line; return;
  case op::param: m << "p" << g_.attribute(i, 0); return;
  case op::replica_id: m << "replica_id()"; return;
  case op::cluster_rank: m << "cluster_cta_rank()"; return;
  case op::program_id: m << "program_id(" << g_.attribute(i, 0) << ")"; return;
  default: m << name_of(n.code) << "@" << n.line; return;
  }
  if (mine <= precedence && precedence > 0) m << "(";
  expression(m, g_.operand(i, 0), mine - 1);
  m << sign;
  expression(m, g_.operand(i, 1), mine);
  if (mine <= precedence && precedence > 0) m << ")";
}

} // namespace kiln::detail
