// How often loops run in the hazard simulation: numbers for the launch values that bound them, so that each makes the passes
// that are wanted, and what is not known about that.
//
// Worked example. A producer runs `n` times, a consumer `n / 2` times two rounds. n is the one symbol; with 5 passes wanted it
// becomes 10, in steps of 2, and both loops fit. Bounds without a common scalar get numbers of their own.
#pragma once
#include <kiln/validate/sim_sharing.hpp>

namespace kiln::detail {

/// How often loops run in relation to each other is not known: what such a run finds may be no mistake.
constexpr void simulator::unrelated(int loop) {
  out_->error = diagnostic{};
  out_->complete = false;
  remark(loop) << "kiln[R-VF01] note: how often this loop runs in relation to others is not followed at compile time; kiln::check does";
}

/// A loop whose bounds the run does not know makes the usual passes. Two such loops of different form need not agree.
constexpr void simulator::guess(int loop) {
  int const bound = g_.operand(loop, 1);
  if (guessed_ < 0)
    guessed_ = bound;
  else if (!same_form(guessed_, bound))
    differing_ = loop;
}

constexpr bool simulator::same_form(int a, int b, int depth) const {
  if (a == b || depth == 10) return true;
  node const &x = g_[a], &y = g_[b];
  if (x.code != y.code || x.operand_count != y.operand_count || x.type != y.type) return false;
  for (int j = 0; j < attribute_count(x.code); ++j)
    if (!has(x.code, trait::opens) && g_.attribute(a, j) != g_.attribute(b, j)) return false;
  for (int j = 0; j < x.operand_count; ++j) {
    int const p = g_.operand(a, j), q = g_.operand(b, j);
    if ((p < 0) != (q < 0) || (p >= 0 && !same_form(p, q, depth + 1))) return false;
  }
  return true;
}

/// Numbers for the symbols that bound loops, so that each runs `passes_` times.
constexpr void simulator::assign() {
  for (int i = 0; i < p_.symbol_nodes.size(); ++i) symbols_[i] = unknown;
  unsolved_ = -1;
  choose_common();
  for (int i = 0; i < p_.loops.size(); ++i) {
    std::int64_t const passes = p_.loops[i].outer && passes_ > 3 ? 3 : passes_;
    affine const &lo = p_.loops[i].lo, &hi = p_.loops[i].hi, &by = p_.loops[i].by;
    if (!settled(by)) symbols_[slices_.symbol_of(by.root)] = 1;
    std::int64_t const step = value_of(by);
    if (step == unknown || step == 0) continue;
    if (!settled(lo)) {
      if (settled(hi) && value_of(hi) != unknown)
        solve(lo, value_of(hi) - passes * step, step < 0);
      else { // start at 0, or count down to it; launch values are not negative
        solve(lo, step > 0 ? 0 : (1 - passes) * step, true);
        std::int64_t& chosen = symbols_[slices_.symbol_of(lo.root)];
        if (chosen < 0) chosen = 0;
      }
    }
    if (!settled(hi) && value_of(lo) != unknown) solve(hi, value_of(lo) + passes * step, step > 0);
  }
}

/// Symbols that several bounds are made of. They grow until every loop makes its passes, in steps of all that the bounds divide
/// by: a kernel whose loops fit each other for every n is one whose loops fit for those.
constexpr void simulator::choose_common() {
  std::int64_t step = 1;
  bool any = false;
  auto bound = [&](int loop, int j) { return j == 0 ? p_.loops[loop].lo.root : p_.loops[loop].hi.root; };
  for (int i = 0; i < p_.loops.size(); ++i)
    for (int j = 0; j < 2; ++j)
      if (int const r = bound(i, j); r >= 0 && slices_.symbol_of(r) < 0 && slices_.made_of_symbols(r)) {
        any = true;
        slices_.open_symbol(r, symbols_, step);
      }
  if (!any) return;
  for (int i = 0; i < p_.loops.size(); ++i)
    for (int j = 0; j < 2; ++j) {
      int const r = bound(i, j);
      if (r < 0 || slices_.symbol_of(r) >= 0 || !slices_.made_of_symbols(r)) continue;
      std::int64_t ignored = 1;
      for (int s = slices_.open_symbol(r, symbols_, ignored); s >= 0; s = slices_.open_symbol(r, symbols_, ignored)) symbols_[s] = step;
    }
  for (int i = 0; i < p_.loops.size(); ++i) {
    std::int64_t const wanted = p_.loops[i].outer && passes_ > 3 ? 3 : passes_;
    bool made = false;
    if (trips(i) == unknown) continue; // a bound of its own is chosen later, or only the run knows it
    for (int j = 0; j < 2 && !made; ++j) made = bound(i, j) >= 0 && slices_.symbol_of(bound(i, j)) < 0 && slices_.made_of_symbols(bound(i, j));
    if (!made) continue;
    for (int s = 0; s < p_.symbol_nodes.size() && trips(i) < wanted; ++s) {
      if (symbols_[s] == unknown) continue;
      std::int64_t const before = symbols_[s];
      for (int tries = 0; tries < 40 && symbols_[s] < 1 << 20 && trips(i) < wanted; ++tries) symbols_[s] *= 2;
      std::int64_t lo = symbols_[s] / 2, hi = symbols_[s]; // halving: the fewest steps that are enough
      if (trips(i) < wanted) {
        symbols_[s] = before;
        continue;
      }
      while (hi - lo > step) {
        symbols_[s] = (lo + hi) / 2 / step * step;
        (trips(i) < wanted ? lo : hi) = symbols_[s];
      }
      symbols_[s] = hi;
    }
    if (trips(i) < wanted) unsolved_ = p_.loops[i].node;
  }
}

constexpr std::int64_t simulator::trips(int loop) const {
  int const n = p_.loops[loop].node;
  std::int64_t const lo = slices_.value_of(g_.operand(n, 0), symbols_), hi = slices_.value_of(g_.operand(n, 1), symbols_), by = slices_.value_of(g_.operand(n, 2), symbols_);
  if (lo == unknown || hi == unknown || by == unknown || by == 0) return unknown;
  return by > 0 ? (hi - lo + by - 1) / by : (hi - lo + by + 1) / by;
}

/// Nothing is left to choose: a constant, a symbol with a number, or something that only the run itself can tell.
constexpr bool simulator::settled(affine const& f) const {
  if (f.root < 0) return true;
  int const s = slices_.symbol_of(f.root);
  return s < 0 || symbols_[s] != unknown;
}

constexpr std::int64_t simulator::value_of(affine const& f) const {
  if (f.root < 0) return f.offset;
  std::int64_t const x = slices_.value_of(f.root, symbols_);
  return x == unknown ? unknown : f.scale * x + f.offset;
}

/// Chooses f's symbol so that f is `target`, or just beyond it where its scale does not divide.
constexpr void simulator::solve(affine const& f, std::int64_t target, bool upwards) {
  std::int64_t const d = target - f.offset;
  std::int64_t q = d / f.scale;
  if (q * f.scale != d && ((q * f.scale < d) == upwards)) q += f.scale > 0 ? (upwards ? 1 : -1) : (upwards ? -1 : 1);
  symbols_[slices_.symbol_of(f.root)] = q;
}

} // namespace kiln::detail
