// A bounded happens-before simulation of local memory, as ordinary constexpr code: it finds reads of data that may still be in
// flight, writes over pending copies, copies that nobody waits for, and reads of memory that nobody wrote, while the C++
// compiler runs.
//
// Clocks. Every agent has a lane that counts its own progress, and a lane that counts its completed groups of asynchronous
// loads; a clock is one value per lane, 16 bits each, four to a word. A write leaves a stamp (lane, value) in its atoms; a later
// access is ordered after it when the accessing agent's clock has reached that value in that lane. A load in flight is
// stamped with the number that its group will have, so only a wait that covers the group orders anything after it. Reads leave
// their clock, so that a write can tell whether every reader is done.
//
// Worked example: a load in group 1, then groups 2 and 3 are committed. wait_group(2) raises the agent's group lane to
// 3 - 2 = 1, and the read that follows is ordered; wait_group(3) raises it to 0, and the read is R-HZ01.
//
// Runs. Loops with runtime bounds make 2 * (longest ring) + 1 passes (at most 33), and again 1 and 2 passes; conditions that stay
// unknown are taken both ways, at most 64 combinations; static loops run fully. What exceeds the budget is not an error but a
// note (R-VF01), and the checker's business.
#pragma once
#include <kiln/validate/program.hpp>

namespace kiln {

/// A warning or a remark. Data, never a compiler diagnostic.
struct note {
  int node = -1;
  int length = 0;
  char text[260]{};
  constexpr std::string_view view() const { return {text, static_cast<std::size_t>(length)}; }
};

/// Notes about one kernel; the first ones, when there are very many.
struct note_list {
  static constexpr int most = 12;
  int count = 0;
  note items[most]{};
  constexpr slice<note> view() const { return {items, static_cast<std::size_t>(count)}; }
};

/// What the simulation found.
struct simulation {
  diagnostic error{};
  bool complete = true; ///< false: the budget ended, or an access could not be followed (note R-VF01)
  int events = 0;       ///< instructions executed, all runs together
  int runs = 0;
  int passes = 0;       ///< of loops with runtime bounds in the main runs
  note_list notes{};
};

inline constexpr int simulation_budget = 12000;

namespace detail {

/// Lane-parallel vector clocks.
struct clocks {
  static constexpr std::uint64_t high = 0x8000800080008000ull;
  static constexpr int get(std::uint64_t const* x, int lane) { return static_cast<int>(x[lane >> 2] >> ((lane & 3) * 16)) & 0x7fff; }
  static constexpr void set(std::uint64_t* x, int lane, int value) {
    int const s = (lane & 3) * 16;
    x[lane >> 2] = (x[lane >> 2] & ~(0x7fffull << s)) | (static_cast<std::uint64_t>(value) << s);
  }
  /// x has reached y nowhere further than y: every lane of x is at most y's.
  static constexpr bool at_most(std::uint64_t const* x, std::uint64_t const* y, int words) {
    for (int i = 0; i < words; ++i)
      if ((((y[i] | high) - x[i]) & high) != high) return false;
    return true;
  }
};

class simulator {
public:
  constexpr simulator(graph_view const& g, int budget) : g_(g), slices_(g, p_), budget_(budget) {}
  simulator(simulator const&) = delete;
  constexpr ~simulator() { release(); }

  constexpr void run(simulation& out) {
    out_ = &out;
    if (!slices_.run()) return;
    if (p_.left_out >= 0) {
      out.complete = false;
      remark(p_.left_out) << "kiln[R-VF01] note: the place of this access within its buffer is not followed at compile time; kiln::check does";
    }
    allocate();
    int const ring = 2 * p_.ring + 1;
    int const passes = g_.attrs.verify_trip > 0 ? g_.attrs.verify_trip : ring > 33 ? 33 : ring;
    out.passes = passes;
    explore(passes, true);
    if (p_.loops.size() > 0 && g_.attrs.verify_trip == 0)
      for (int few = 1; few <= 2 && out.error.ok() && out.complete; ++few) explore(few, false);
    if (out.error.ok() && out.complete) unused_waits();
  }

private:
  struct decision {
    op code{};          ///< lt, eq, or another operation for a value that is simply unknown
    std::int32_t a = -1, b = -1;
    std::int32_t node = -1;
    bool value = true;  ///< of the canonical form
    bool flipped = false; ///< decided the second way
    bool fixed = false;   ///< by an assume
  };
  struct agent {
    int pc = 0;
    int groups = 0;      ///< committed
    int waited_at = -1;  ///< groups committed when the last wait was executed
    bool open = false;   ///< a load since the last commit
    bool done = false;
  };
  enum class step { next, stop, end };

  // -- runs ----------------------------------------------------------------------------------------------------------------
  constexpr void explore(int passes, bool full) {
    decisions_.clear();
    passes_ = passes;
    full_ = full;
    assign();
    for (int combination = 0;; ++combination) {
      if (combination == 64) {
        out_->complete = false;
        remark(decisions_[0].node) << "kiln[R-VF01] note: 64 combinations of runtime conditions were verified, there are more; kiln::check covers what a launch does";
        return;
      }
      ++out_->runs;
      one();
      if (!out_->error.ok() || !out_->complete) return;
      while (!decisions_.empty() && (decisions_.back().flipped || decisions_.back().fixed)) decisions_.pop();
      if (decisions_.empty()) return;
      decisions_.back().value = !decisions_.back().value;
      decisions_.back().flipped = true;
    }
  }

  /// Numbers for the symbols that bound loops, so that each runs `passes_` times.
  constexpr void assign() {
    for (int i = 0; i < p_.symbol_nodes.size(); ++i) symbols_[i] = unknown;
    for (int i = 0; i < p_.loops.size(); ++i) {
      int const n = p_.loops[i].node;
      std::int64_t const passes = p_.loops[i].outer && passes_ > 3 ? 3 : passes_;
      affine const lo = slices_.affine_of(g_.operand(n, 0)), hi = slices_.affine_of(g_.operand(n, 1)), by = slices_.affine_of(g_.operand(n, 2));
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
  /// Nothing is left to choose: a constant, a symbol with a number, or something that only the run itself can tell.
  constexpr bool settled(affine const& f) const {
    if (f.root < 0) return true;
    int const s = slices_.symbol_of(f.root);
    return s < 0 || symbols_[s] != unknown;
  }
  constexpr std::int64_t value_of(affine const& f) const {
    if (f.root < 0) return f.offset;
    int const s = slices_.symbol_of(f.root);
    return s < 0 || symbols_[s] == unknown ? unknown : f.scale * symbols_[s] + f.offset;
  }
  /// Chooses f's symbol so that f is `target`, or just beyond it where its scale does not divide.
  constexpr void solve(affine const& f, std::int64_t target, bool upwards) {
    std::int64_t const d = target - f.offset;
    std::int64_t q = d / f.scale;
    if (q * f.scale != d && ((q * f.scale < d) == upwards)) q += f.scale > 0 ? (upwards ? 1 : -1) : (upwards ? -1 : 1);
    symbols_[slices_.symbol_of(f.root)] = q;
  }

  constexpr void allocate() {
    int const agents = p_.agents.size();
    words_ = (2 * agents + 3) / 4;
    int const code = p_.code.size();
    registers_ = new std::int64_t[static_cast<unsigned>(p_.constants.size()) + 1]{};
    symbols_ = new std::int64_t[static_cast<unsigned>(p_.symbol_nodes.size()) + 1]{};
    clocks_ = new std::uint64_t[static_cast<unsigned>(agents * words_)]{};
    readers_ = new std::uint64_t[static_cast<unsigned>(p_.atoms * words_) + 1]{};
    atoms_ = new atom[static_cast<unsigned>(p_.atoms) + 1]{};
    counters_ = new int[static_cast<unsigned>(code)]{};
    useful_ = new bool[static_cast<unsigned>(code)]{};
    reached_ = new bool[static_cast<unsigned>(code)]{};
    agents_ = new agent[static_cast<unsigned>(agents)]{};
  }
  constexpr void release() {
    delete[] registers_;
    delete[] symbols_;
    delete[] clocks_;
    delete[] readers_;
    delete[] atoms_;
    delete[] counters_;
    delete[] useful_;
    delete[] reached_;
    delete[] agents_;
  }

  constexpr void one() {
    int const agents = p_.agents.size();
    for (int i = 0; i < p_.constants.size(); ++i) registers_[i] = p_.constants[i];
    for (int i = 0; i < p_.atoms * words_; ++i) readers_[i] = 0;
    for (int i = 0; i < p_.atoms; ++i) atoms_[i] = atom{};
    for (int i = 0; i < agents * words_; ++i) clocks_[i] = 0;
    for (int i = 0; i < p_.code.size(); ++i) counters_[i] = 0;
    loads_in_.clear();
    loads_in_.add() = 0;
    for (int i = 0; i < agents; ++i) {
      agents_[i] = agent{};
      agents_[i].pc = p_.agents[i].begin;
      clocks::set(clocks_ + i * words_, i, 1);
    }
    // One fair schedule is enough: synchronisation does not depend on data.
    for (int live = agents; live > 0;) {
      live = 0;
      for (who_ = 0; who_ < agents; ++who_) {
        if (agents_[who_].done) continue;
        ++live;
        me_ = &agents_[who_];
        clock_ = clocks_ + who_ * words_;
        for (;;) {
          step const s = execute();
          if (++out_->events > budget_) {
            out_->complete = false;
            int const at = p_.code[me_->pc].node;
            message m = remark(at);
            m << "kiln[R-VF01] note: verified " << budget_ << " steps of the accesses to local memory, up to line " << (at >= 0 ? g_[at].line : 0)
              << "; beyond that only kiln::check";
            return;
          }
          if (s == step::stop) return;
          if (s == step::end) break;
          ++me_->pc;
        }
        me_->done = true;
      }
    }
    at_exit();
  }

  // -- instructions --------------------------------------------------------------------------------------------------------
  constexpr step execute() {
    instruction const& x = p_.code[me_->pc];
    std::int64_t* const r = registers_;
    switch (x.code) {
    case sim_op::scalar: {
      node const& n = g_[x.node];
      r[x.a] = evaluate(n.code, g_[g_.operand(x.node, 0)].type, n.type, r[x.b], x.c < 0 ? 0 : r[x.c], x.d < 0 ? 0 : r[x.d]);
      return step::next;
    }
    case sim_op::move: r[x.a] = r[x.b]; return step::next;
    case sim_op::symbol: r[x.a] = symbols_[x.b]; return step::next;
    case sim_op::loop: {
      r[x.a] = r[x.b] == unknown ? 0 : r[x.b];
      if (!inside(x)) me_->pc = x.target - 1;
      return step::next;
    }
    case sim_op::next: {
      instruction const& l = p_.code[x.target];
      r[l.a] += r[l.d] == unknown ? 1 : r[l.d];
      if (inside(l)) me_->pc = x.target;
      return step::next;
    }
    case sim_op::branch:
      if (!truth(g_.operand(x.node, 0))) me_->pc = x.target - 1;
      return step::next;
    case sim_op::jump: me_->pc = x.target - 1; return step::next;
    case sim_op::again: me_->pc = x.target - 1; return step::next;
    case sim_op::exit: {
      bool const stay = r[x.a] == unknown ? counters_[me_->pc] < passes_ : r[x.a] != 0;
      if (stay) {
        ++counters_[me_->pc];
      } else {
        counters_[me_->pc] = 0;
        me_->pc = x.target - 1;
      }
      return step::next;
    }
    case sim_op::assume: return promise(g_.operand(x.node, 0)) ? step::next : step::stop;
    case sim_op::read: case sim_op::write: case sim_op::async: return access(x);
    case sim_op::commit:
      ++me_->groups;
      me_->open = false;
      if (loads_in_.size() <= me_->groups) loads_in_.add() = 0;
      r[x.a] = me_->groups;
      return step::next;
    case sim_op::wait: {
      int const lane = async_lane(who_), before = clocks::get(clock_, lane);
      int covers = me_->groups - x.b;
      for (int i = 0; i < x.d; ++i)
        if (std::int64_t const t = r[p_.token_registers[x.c + i]]; t != unknown && t > covers) covers = static_cast<int>(t);
      reached_[me_->pc] = true;
      me_->waited_at = me_->groups;
      if (covers > before) {
        for (int i = before + 1; i <= covers; ++i)
          if (loads_in_[i] > 0) useful_[me_->pc] = true;
        clocks::set(clock_, lane, covers);
      }
      return step::next;
    }
    case sim_op::done: return step::end;
    }
    return step::end;
  }
  constexpr bool inside(instruction const& l) const {
    std::int64_t const* const r = registers_;
    std::int64_t const step = r[l.d] == unknown ? 1 : r[l.d];
    std::int64_t const lo = r[l.b] == unknown ? 0 : r[l.b];
    std::int64_t const hi = r[l.c] == unknown ? lo + passes_ * step : r[l.c];
    return step > 0 ? r[l.a] < hi : step < 0 && r[l.a] > hi;
  }
  constexpr int async_lane(int agent) const { return p_.agents.size() + agent; }

  // -- conditions ----------------------------------------------------------------------------------------------------------
  constexpr std::int64_t content(int node) const {
    int const r = slices_.register_of(node);
    return r < 0 ? unknown : registers_[r];
  }
  /// The value of a condition; what stays unknown is decided, and the other decision is another run.
  constexpr bool truth(int i) {
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
  constexpr decision canonical(int i, bool& negated) const {
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
  constexpr bool promise(int i) {
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

  // -- accesses ------------------------------------------------------------------------------------------------------------
  struct atom {
    std::int32_t lane = -1, value = 0; ///< stamp of the last write
    std::int32_t by = -1;              ///< instruction of it
    std::int32_t reader = -1;          ///< instruction of the last read
    std::int32_t poison = 0;           ///< as instruction::b of an async load
  };

  constexpr step access(instruction const& x) {
    box const& b = p_.boxes[x.a];
    int slot = 0;
    if (b.slot >= 0) {
      std::int64_t s = registers_[b.slot];
      if (s == unknown) {
        s = likely(b.index);
        if (s == unknown || s < 0 || s >= g_.buffer(b.buffer).slots) return left_out(x.node);
      }
      if (s < 0 || s >= g_.buffer(b.buffer).slots) {
        message m = broken(b.node);
        m << "kiln[R-BD01] ";
        buffer(m, b.buffer);
        m << ": index ";
        expression(m, b.index, 0);
        if (slices_.constant(b.index) == unknown) m << " becomes " << s;
        m << ", valid 0.." << g_.buffer(b.buffer).slots - 1;
        return circumstances(), step::stop;
      }
      slot = static_cast<int>(s);
    }
    atom_grid const& a = p_.grids[b.buffer];
    int const first = a.first + slot * a.per_slot;
    if (a.per_slot == 1) return touch(x, first);
    // All cells of the box, the last axis fastest.
    int from[max_rank]{}, at[max_rank]{}, cells[max_rank]{};
    for (int d = 0; d < a.rank; ++d) {
      std::int64_t start = b.start[d];
      if (b.moving[d] >= 0) {
        std::int64_t const m = registers_[b.moving[d]];
        if (m == unknown) return left_out(x.node);
        if (m % b.extent[d] != 0) {
          message t = broken(b.node);
          t << "kiln[R-BD03] a slice of ";
          buffer(t, b.buffer);
          t << ": its offset becomes " << m << ", not a multiple of the extent of the slice, " << b.extent[d] << " (axis " << d << ")";
          return circumstances(), step::stop;
        }
        start += m;
      }
      if (start < 0 || start + b.extent[d] > a.size[d] * a.count[d]) {
        message t = broken(b.node);
        t << "kiln[R-BD02] a slice of ";
        buffer(t, b.buffer);
        t << ": elements " << start << ".." << start + b.extent[d] - 1 << " of " << a.size[d] * a.count[d] << " (axis " << d << ")";
        return circumstances(), step::stop;
      }
      from[d] = static_cast<int>(start) / a.size[d];
      cells[d] = b.extent[d] / a.size[d];
      at[d] = 0;
    }
    for (;;) {
      int cell = 0;
      for (int d = 0; d < a.rank; ++d) cell = cell * a.count[d] + from[d] + at[d];
      if (touch(x, first + cell) == step::stop) return step::stop;
      ++out_->events;
      int d = a.rank - 1;
      while (d >= 0 && ++at[d] == cells[d]) at[d--] = 0;
      if (d < 0) return step::next;
    }
  }
  /// A slot index made of launch values only: any consistent numbers will do, so all symbols are 0.
  constexpr std::int64_t likely(int i) const {
    if (std::int64_t const v = content(i); v != unknown) return v;
    node const& n = g_[i];
    if (n.code == op::param || n.code == op::extent || n.code == op::stride || n.code == op::program_id) return 0;
    if (n.code == op::num_programs) return 1;
    if (!evaluates(n.code) || n.shape != 0 || !is_int(n.type)) return unknown;
    std::int64_t v[3]{0, 0, 0};
    for (int j = 0; j < n.operand_count; ++j) {
      int const o = g_.operand(i, j);
      if (slices_.register_of(o) < 0 || (v[j] = likely(o)) == unknown) return unknown;
    }
    return evaluate(n.code, g_[g_.operand(i, 0)].type, n.type, v[0], v[1], v[2]);
  }
  constexpr step left_out(int node) {
    out_->complete = false;
    remark(node) << "kiln[R-VF01] note: which part of the buffer this access takes depends on data; only kiln::check can follow it";
    return step::stop;
  }

  constexpr step touch(instruction const& x, int k) {
    atom& m = atoms_[k];
    std::uint64_t* const readers = readers_ + k * words_;
    bool const ordered = m.lane < 0 || clocks::get(clock_, m.lane) >= m.value;
    if (x.code == sim_op::read) {
      if (m.lane < 0) return uninitialised(x, k);
      if (!ordered) return unordered(x, m);
      if (m.poison) poisoned(x, m);
      int const now = clocks::get(clock_, who_);
      if (clocks::get(readers, who_) < now) clocks::set(readers, who_, now);
      m.reader = me_->pc;
      return step::next;
    }
    if (!ordered) return unordered(x, m);
    if (!clocks::at_most(readers, clock_, words_)) return overtaken(x, m);
    m.by = me_->pc;
    if (x.code == sim_op::async) {
      m.lane = async_lane(who_);
      m.value = me_->groups + 1;
      m.poison = x.b > 0 ? x.b : 0;
      me_->open = true;
      while (loads_in_.size() <= m.value) loads_in_.add() = 0;
      ++loads_in_[m.value];
    } else {
      m.lane = who_;
      m.value = clocks::get(clock_, who_);
      m.poison = 0;
    }
    return step::next;
  }

  // -- findings ------------------------------------------------------------------------------------------------------------
  constexpr bool pending_async(atom const& m) const { return m.lane >= p_.agents.size(); }
  constexpr bool never_committed(atom const& m) const { return pending_async(m) && m.value > agents_[m.lane - p_.agents.size()].groups; }
  constexpr int line(atom const& m) const { return g_[p_.code[m.by].node].line; }

  /// A read or write that nothing orders after the last write.
  constexpr step unordered(instruction const& x, atom const& m) {
    box const& b = p_.boxes[x.a];
    if (!pending_async(m)) {
      message t = broken(x.node);
      t << "kiln[R-HZ13] ";
      access_name(t, b);
      t << ": the " << verb(x) << " (";
      place(t, x.node);
      t << ") is not ordered after the write of line " << line(m) << " in another task";
    } else if (x.code == sim_op::read && never_committed(m)) {
      message t = broken(p_.code[m.by].node);
      t << "kiln[R-HZ06] the async_load into ";
      access_name(t, p_.boxes[p_.code[m.by].a]);
      t << " (";
      place(t, p_.code[m.by].node);
      t << ") is not committed when line " << g_[x.node].line << " reads it; call async_load_commit_group() after it, then wait";
    } else {
      message t = broken(x.node);
      t << (x.code == sim_op::read ? "kiln[R-HZ01] " : "kiln[R-HZ02] ");
      access_name(t, b);
      if (x.code == sim_op::read) {
        t << " is read (";
        place(t, x.node);
        t << ") before the async_load of line " << line(m) << " is known complete; ";
      } else {
        t << ": the " << verb(x) << " (";
        place(t, x.node);
        t << ") overlaps the async_load of line " << line(m) << ", which may be in flight; ";
      }
      if (never_committed(m))
        t << "commit it and wait for it first";
      else if (me_->waited_at >= m.value)
        t << "wait for at most " << me_->waited_at - m.value << " pending groups";
      else
        t << "add async_load_wait_group(" << me_->groups - m.value << ") before it";
    }
    return circumstances(), step::stop;
  }
  /// A write while somebody may still read.
  constexpr step overtaken(instruction const& x, atom const& m) {
    message t = broken(x.node);
    t << (x.code == sim_op::async ? "kiln[R-HZ03] " : "kiln[R-HZ13] ");
    access_name(t, p_.boxes[x.a]);
    t << ": the " << verb(x) << " (";
    place(t, x.node);
    t << ") may overwrite data that is still read on line " << g_[p_.code[m.reader].node].line << "; order it after that read first";
    return circumstances(), step::stop;
  }
  constexpr step uninitialised(instruction const& x, int k) {
    atoms_[k].lane = who_; // say it once
    atoms_[k].value = 0;
    atoms_[k].by = me_->pc;
    bool const certain = all_true();
    message t = certain ? broken(x.node) : remark(x.node);
    t << "kiln[R-HZ15] " << (certain ? "" : "warning: ");
    access_name(t, p_.boxes[x.a]);
    t << " is read (";
    place(t, x.node);
    t << ") before anything is written to it";
    if (certain) return circumstances(), step::stop;
    return step::next;
  }
  constexpr void poisoned(instruction const& x, atom& m) {
    int const load = p_.code[m.by].node;
    m.poison = 0;
    message t = remark(load);
    t << "kiln[R-HZ12] warning: ";
    access_name(t, p_.boxes[x.a]);
    t << " is read (line " << g_[x.node].line << "), but elements that the async_load (";
    place(t, load);
    t << ") masks off are unspecified; give it .other";
  }
  /// R-HZ06: nothing asynchronous may be pending when the kernel ends.
  constexpr void at_exit() {
    if (!full_) return; // a ring that prefetches more than there is does no harm
    for (int k = 0; k < p_.atoms; ++k) {
      atom const& m = atoms_[k];
      if (!pending_async(m)) continue;
      int const owner = m.lane - p_.agents.size();
      if (clocks::get(clocks_ + owner * words_, m.lane) >= m.value) continue;
      int const load = p_.code[m.by].node;
      bool const certain = all_true();
      message t = certain ? broken(load) : remark(load);
      t << "kiln[R-HZ06] " << (certain ? "" : "warning: ") << "the async_load into ";
      access_name(t, p_.boxes[p_.code[m.by].a]);
      t << " (";
      place(t, load);
      if (m.value > agents_[owner].groups)
        t << ") is never committed before the kernel ends; call async_load_commit_group(), then wait";
      else
        t << ") is never waited for before the kernel ends; add async_load_wait_group(0)";
      return;
    }
  }
  constexpr void unused_waits() {
    for (int i = 0; i < p_.code.size(); ++i)
      if (p_.code[i].code == sim_op::wait && reached_[i] && !useful_[i]) {
        message t = remark(p_.code[i].node);
        t << "kiln[R-HZ16] warning: async_load_wait_group(" << p_.code[i].b << ") (";
        place(t, p_.code[i].node);
        t << ") never waits for anything; every group that it covers is empty or complete already";
      }
  }

  // -- messages ------------------------------------------------------------------------------------------------------------
  constexpr message broken(int node) {
    out_->error.node = node;
    return message(out_->error);
  }
  /// A new note about `node`; a second one with the same rule and node replaces the first.
  constexpr message remark(int node) {
    flush();
    spare_.node = node < 0 ? 0 : node;
    return message(spare_);
  }
public:
  /// Moves the last remark into the list.
  constexpr void flush() {
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
private:
  static constexpr bool same_rule(char const* a, char const* b) {
    for (; *a && *a != ']'; ++a, ++b)
      if (*a != *b) return false;
    return true;
  }
  /// What the run assumed beyond the usual.
  constexpr void circumstances() {
    for (int i = 0; i < decisions_.size(); ++i)
      if (decisions_[i].flipped) {
        append_text() << " (when the condition of line " << g_[decisions_[i].node].line << " is decided otherwise)";
        break;
      }
    if (!full_ && p_.loops.size() > 0)
      append_text() << " (when the loop of line " << g_[p_.loops[0].node].line << " runs " << (passes_ == 1 ? "once" : "twice")
                    << "; k.assume(...) excludes it)";
  }
  struct appender {
    diagnostic& d;
    constexpr appender& operator<<(std::string_view s) {
      for (char c : s)
        if (d.length < static_cast<int>(sizeof d.text) - 1) d.text[d.length++] = c;
      return *this;
    }
    constexpr appender& operator<<(int v) {
      diagnostic number;
      message(number) << v;
      return *this << number.view();
    }
  };
  constexpr appender append_text() { return {out_->error}; }
  constexpr bool all_true() const {
    for (int i = 0; i < decisions_.size(); ++i)
      if (decisions_[i].flipped) return false;
    return true;
  }
  constexpr char const* verb(instruction const& x) const {
    op const o = g_[x.node].code;
    return o == op::async_load ? "async_load" : o == op::local_store ? "local_store" : o == op::local_scatter ? "local_scatter" : "read";
  }
  constexpr void place(message& m, int node) const {
    char const* f = g_.file(node);
    char const* base = f;
    for (char const* c = f; *c; ++c)
      if (*c == '/') base = c + 1;
    m << base << ":" << g_[node].line;
  }
  constexpr void buffer(message& m, int b) const {
    buffer_info const& f = g_.buffer(b);
    if (f.name >= 0)
      m << g_.string(f.name);
    else
      m << (f.has_slots ? "local_alloc@" : "alloc_shared@") << g_[f.node].line;
  }
  constexpr void access_name(message& m, box const& b) const {
    if (!b.whole) m << "a part of ";
    buffer(m, b.buffer);
    if (!g_.buffer(b.buffer).has_slots) return;
    m << "[";
    expression(m, b.index, 0);
    m << "]";
  }
  /// A slot index as the user might write it: loop variables are i0, i1 by depth.
  constexpr void expression(message& m, int i, int precedence) const {
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
    case op::program_id: m << "program_id(" << g_.attribute(i, 0) << ")"; return;
    default: m << name_of(n.code) << "@" << n.line; return;
    }
    if (mine <= precedence && precedence > 0) m << "(";
    expression(m, g_.operand(i, 0), mine - 1);
    m << sign;
    expression(m, g_.operand(i, 1), mine);
    if (mine <= precedence && precedence > 0) m << ")";
  }

  graph_view const& g_;
  sim_program p_;
  slicer slices_;
  int budget_;
  simulation* out_ = nullptr;
  diagnostic spare_;
  int passes_ = 1, words_ = 1, who_ = 0;
  bool full_ = true;
  agent* me_ = nullptr;
  std::uint64_t* clock_ = nullptr;
  std::int64_t *registers_ = nullptr, *symbols_ = nullptr;
  std::uint64_t *clocks_ = nullptr, *readers_ = nullptr;
  atom* atoms_ = nullptr;
  int* counters_ = nullptr;
  bool *useful_ = nullptr, *reached_ = nullptr;
  agent* agents_ = nullptr;
  vec<int> loads_in_; ///< of a group: its loads
  vec<decision> decisions_;
};

} // namespace detail

/// Simulates the accesses to local memory of a verified graph.
constexpr simulation simulate(graph_view const& g, int budget = simulation_budget) {
  simulation s;
  detail::simulator run(g, budget);
  run.run(s);
  run.flush();
  return s;
}

} // namespace kiln
