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

} // namespace kiln::detail
