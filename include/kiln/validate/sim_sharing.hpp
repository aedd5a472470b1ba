// What the hazard simulation says about buffers that share storage.
#pragma once
#include <kiln/validate/sim_cluster.hpp>

namespace kiln::detail {

constexpr char const* simulator::rule_of_sharing(int b, bool race) const {
  buffer_role const r = g_.buffer(g_.shown_by(b)).role;
  return r == buffer_role::phase ? "R-PA07" : r == buffer_role::pooled ? "R-PA15" : race ? "R-AL17" : "R-AL16";
}

/// Bytes of the storage that two atoms have in common, at most.
constexpr void simulator::common_bytes(message& t, int k, int j) const {
  int const a = buffer_of_atom(p_, k), b = buffer_of_atom(p_, j);
  byte_box const s = bytes_of_atom(g_, local_form_of(g_, a), p_.grids[a], a, k), u = bytes_of_atom(g_, local_form_of(g_, b), p_.grids[b], b, j);
  bool const tensor = g_.buffer(a).where == storage::tmem;
  std::int64_t lo = s.base > u.base ? s.base : u.base, hi = s.end() < u.end() ? s.end() : u.end();
  if (tensor) {
    std::int64_t const lane = storage_bytes(g_, g_.storage_of(a));
    lo = lo % lane / 4;
    hi = (hi - 1) % lane / 4 + 1;
  }
  t << (tensor ? "columns " : "bytes ") << lo << ".." << hi - 1;
}

constexpr simulator::step simulator::shared_conflict(instruction const& x, int k, int j, int by, int agent, bool flying) {
  box const &b = p_.boxes[x.a], &o = p_.boxes[p_.code[by].a];
  message t = broken(x.node);
  t << "kiln[" << rule_of_sharing(b.buffer, true) << "] ";
  access_name(t, b);
  t << ": the " << verb(x);
  where(t, x.node, who_);
  t << " touches ";
  common_bytes(t, k, j);
  t << " of ";
  access_name(t, o);
  t << (flying ? ", where the " : ", which line ");
  if (flying) t << name_of(g_[p_.code[by].node].code) << " of line ";
  t << g_[p_.code[by].node].line;
  in_task(t, agent);
  t << (flying ? " may be in flight; wait for it first" : " uses, and nothing orders the two; signal a barrier after its last use, and wait for it here");
  return circumstances(), step::stop;
}

constexpr simulator::step simulator::overwritten(instruction const& x, int k, int base) {
  atom const& m = atoms_[k + base];
  box const &b = p_.boxes[x.a], &o = p_.boxes[p_.code[m.lost].a];
  int j = -1;
  for (int i = peers_.first[k]; i < peers_.first[k + 1] && j < 0; ++i)
    if (atoms_[peers_.atoms[i] + base].by == m.lost) j = peers_.atoms[i]; // written then, and not since
  message t = broken(x.node);
  t << "kiln[" << rule_of_sharing(b.buffer, false) << "] ";
  access_name(t, b);
  t << " is read (";
  place(t, x.node);
  t << "), but ";
  if (j >= 0) common_bytes(t, k, j);
  t << " were last written through ";
  access_name(t, o);
  t << " on line " << g_[p_.code[m.lost].node].line << "; write ";
  bare_name(t, b);
  t << " first" << (g_.buffer(b.buffer).role == buffer_role::peer ? ", or declare the pun with .allow_pun" : "");
  return circumstances(), step::stop;
}

} // namespace kiln::detail
