// A bounded happens-before simulation of local memory, as ordinary constexpr code: it finds reads of data that may still be in
// flight, writes over pending copies, copies that nobody waits for, and reads of memory that nobody wrote, while the C++
// compiler runs.
//
// Clocks. Every agent (the kernel, or a replica of a task) has a lane that counts its own progress, and one for its completed
// groups of asynchronous loads; barriers have theirs (sim_barriers.hpp). A clock is one value per lane, 16 bits each, four to a
// word. A write leaves a stamp (lane, value) in its atoms; a later access is ordered after it when the accessing agent's clock
// has reached that value in that lane. A load in flight is stamped with the number that its group, or its barrier's phase,
// will have, so only a wait that covers it orders anything after it. Reads leave their clock, so that a write can tell whether
// every reader is done. One fair schedule is enough: synchronisation does not depend on data, and where an arrival could count
// for one phase or the next, that is reported itself (R-BR03).
//
// Worked example: a load in group 1, then groups 2 and 3 are committed. wait_group(2) raises the agent's group lane to
// 3 - 2 = 1, and the read that follows is ordered; wait_group(3) raises it to 0, and the read is R-HZ01.
//
// Runs. Loops with runtime bounds make 2 * (longest ring) + 1 passes (at most 33), and again 1 and 2 passes; conditions that stay
// unknown are taken both ways, at most 64 combinations; static loops run fully. What exceeds the budget is not an error but a
// note (R-VF01), and the checker's business.
#pragma once
#include <kiln/validate/sim_findings.hpp>

namespace kiln {

inline constexpr int simulation_budget = 12000;

namespace detail {

constexpr void simulator::run(simulation& out) {
  out_ = &out;
  for (int b = 0; b < static_cast<int>(g_.buffers.size()); ++b)
    if (unused_spec(g_, b)) {
      message m = remark(g_.buffer(b).node);
      m << "kiln[R-AL05] warning: ";
      put_buffer_name(m, g_, b);
      m << " is referenced by no allocation; name it in .reuse, or drop it";
    }
  if (!slices_.run()) return;
  if (p_.left_out >= 0) {
    out.complete = false;
    remark(p_.left_out) << "kiln[R-VF01] note: the place of this access within its buffer is not followed at compile time; kiln::check does";
  }
  find_peers(g_, p_, peers_);
  if (!peers_.complete) {
    out.complete = false;
    remark(0) << "kiln[R-VF01] note: buffers that share storage are cut into too many parts to compare them all at compile time; kiln::check does";
  }
  shares_ = peers_.any();
  if (shares_) {
    for (int k = 0; k < p_.boxes.size(); ++k)
      if (peers_.shared[p_.boxes[k].buffer]) p_.boxes[k].quick = false;
    first_peer_ = peers_.first.data();
    all_peers_ = peers_.atoms.data();
  }
  if (std::int64_t{p_.atoms} * (p_.agents.size() + p_.slot_alloc.size()) > most_stamps) {
    out.complete = false;
    message m = remark(0);
    m << "kiln[R-VF01] note: ";
    if (p_.ctas > 1) m << "in a cluster of " << p_.ctas << " CTAs ";
    m << p_.atoms << " parts of buffers are too many to follow at compile time; kiln::check does";
    return;
  }
  allocate();
  int const ring = 2 * p_.ring + 1;
  int const passes = g_.attrs.verify_trip > 0 ? g_.attrs.verify_trip : ring > 33 ? 33 : ring;
  out.passes = passes;
  for (int more = 0; more < 16 && out.error.ok() && out.complete && !finished_; ++more) explore(passes + more, true);
  if (!finished_ && out.error.ok() && out.complete) {
    out.complete = false;
    remark(0) << "kiln[R-VF01] note: no number of passes that was tried keeps the promises of k.assume(...); kiln::check does";
  }
  if (p_.loops.size() > 0 && g_.attrs.verify_trip == 0)
    for (int few = 1; few <= 2 && out.error.ok() && out.complete; ++few) explore(few, false);
  if (out.error.ok() && out.complete) unused_waits();
  out.events = events_;
}

// -- runs ----------------------------------------------------------------------------------------------------------------
constexpr void simulator::explore(int passes, bool full) {
  decisions_.clear();
  passes_ = passes;
  full_ = full;
  assign();
  if (unsolved_ >= 0) return unrelated(unsolved_);
  for (int combination = 0;; ++combination) {
    if (combination == 64) {
      out_->complete = false;
      remark(decisions_[0].node) << "kiln[R-VF01] note: 64 combinations of runtime conditions were verified, there are more; kiln::check covers what a launch does";
      return;
    }
    ++out_->runs;
    guessed_ = differing_ = -1;
    one();
    if (!out_->error.ok() && differing_ >= 0) return unrelated(differing_);
    if (!out_->error.ok() || !out_->complete) return;
    while (!decisions_.empty() && (decisions_.back().flipped || decisions_.back().fixed)) decisions_.pop();
    if (decisions_.empty()) return;
    decisions_.back().value = !decisions_.back().value;
    decisions_.back().flipped = true;
  }
}

constexpr void simulator::allocate() {
  allocate_agents();
  allocate_clusters();
  int const code = p_.code.size();
  boxes_ = p_.boxes.data();
  symbols_ = new std::int64_t[static_cast<unsigned>(p_.symbol_nodes.size()) + 1]{};
  read_at_ = new int[static_cast<unsigned>(p_.atoms * lanes_) + 1]{};
  useful_ = new bool[static_cast<unsigned>(code)]{};
  reached_ = new bool[static_cast<unsigned>(code)]{};
}

constexpr void simulator::release() {
  release_agents();
  delete[] symbols_;
  delete[] readers_;
  delete[] read_at_;
  delete[] atoms_;
  delete[] useful_;
  delete[] reached_;
  delete[] ready_;
  delete[] ready_lane_;
  delete[] touched_;
  delete[] touched_at_;
  delete[] touched_by_;
  delete[] met_;
  delete[] all_completed_;
}

constexpr void simulator::one() {
  int const agents = p_.agents.size();
  reset_agents();
  reset_clusters();
  cost_ += 20 * agents + 5 * p_.slot_alloc.size() + p_.atoms * (10 + width_) + 2 * register_count_ * p_.ctas;
  afresh(readers_, p_.atoms * words_ + 1);
  afresh(atoms_, p_.atoms + 1);
  loads_in_.clear();
  loads_in_.add() = 0;
  for (;;) {
    int const before = events_;
    bool live = false;
    for (int a = 0; a < agents; ++a) {
      if (!agents_[a].running) continue;
      live = true;
      enter(a);
      if (!advance()) return;
    }
    if (!live) break;
    if (events_ == before) return deadlock();
  }
  finished_ = true;
  at_exit();
}

/// Runs the present agent for as long as it can go on. False when the whole run ends here.
constexpr bool simulator::advance() {
  instruction const* const code = p_.code.data();
  std::int64_t* const r = registers_;
  // For reads, which are most of all.
  box const* const boxes = boxes_;
  clocks::word* const clock = clock_;
  clocks::word const mine = unit_ * 0x7fff;
  int const word = word_, atoms_from = cta_ * p_.cta_atoms;
  int alone = 0; // steps that met nobody, not counted yet
  int pc = me_->pc;
  instruction x;
  for (;;) {
    x = code[pc];
    sim_op const o = x.code;
    if (o >= sim_op::read) {
      if (o == sim_op::read) {
        box const& b = boxes[x.a];
        std::int64_t const s = b.quick ? r[b.slot] : -1;
        if (s >= 0 && s < b.slots) {
          int const k = atoms_from + b.first + static_cast<int>(s);
          atom const& m = atoms_[k];
          if (m.lane >= 0 && m.poison == 0 && (static_cast<int>(clock[m.lane / clocks::lanes] >> (m.lane % clocks::lanes * 16)) & 0x7fff) >= m.value) {
            clocks::word& lanes = readers_[k * words_ + word];
            lanes = (lanes & ~mine) | (clock[word] & mine);
            read_at_[k * lanes_ + who_] = pc;
            ++alone;
            ++pc;
            continue;
          }
        }
      }
      pc_ = pc;
      step const s = o <= sim_op::bulk_store ? access(x) : o == sim_op::barrier_wait ? barrier_wait(x) : o <= sim_op::barrier_expect ? arrive(x) : rarely(x);
      events_ += alone + (s != step::block);
      if (s == step::block) return me_->pc = pc, true;
      if ((cost_ += alone * cost_of_scalar + (o < sim_op::bulk_load ? access_cost_ : meeting_cost_)) > most_cost || events_ > budget_) return exhausted();
      if (s != step::next) return me_->pc = pc, s != step::stop;
      alone = 0;
      pc = pc_ + 1;
      continue;
    }
    if (++alone > most_alone) {
      events_ += alone;
      cost_ += alone * cost_of_scalar;
      alone = 0;
      if (cost_ > most_cost || events_ > budget_) {
        pc_ = pc;
        return exhausted();
      }
    }
    if (o <= sim_op::ring) {
      std::int64_t const v = r[x.b], y = r[x.c];
      if (o == sim_op::ring) {
        if (v >= 0 && y > 0) {
          r[x.a] = v % y;
          std::int64_t const q = v / y;
          r[x.d] = q;
          r[x.target] = q & 1;
        } else {
          ring(x);
        }
      } else if (v < 0 || y < 0) {
        scalar(x);
      } else {
        switch (static_cast<op>(x.d)) {
        case op::add:
          if ((v | y) < 0x40000000)
            r[x.a] = v + y;
          else
            scalar(x);
          break;
        case op::bit_xor: r[x.a] = v ^ y; break;
        case op::lt: r[x.a] = v < y; break;
        case op::eq: r[x.a] = v == y; break;
        case op::bit_and: r[x.a] = v & y; break;
        case op::rem:
          if (y > 0)
            r[x.a] = v % y;
          else
            scalar(x);
          break;
        case op::div:
          if (y > 0)
            r[x.a] = v / y;
          else
            scalar(x);
          break;
        default: scalar(x);
        }
      }
      ++pc;
    } else if (o == sim_op::next) {
      r[x.a] += r[x.a + 2];
      pc = --r[x.a + 1] > 0 ? x.target + 1 : pc + 1;
    } else if (o == sim_op::scalar) {
      scalar(x);
      ++pc;
    } else if (o <= sim_op::move) {
      r[x.a] = o == sim_op::move ? r[x.b] : symbols_[x.b];
      ++pc;
    } else if (o == sim_op::loop) {
      pc = start(x) ? pc + 1 : x.target;
    } else if (o <= sim_op::jump) {
      pc = o == sim_op::jump || !(r[x.a] == unknown ? truth(g_.operand(x.node, 0)) : r[x.a] != 0) ? x.target : pc + 1;
    } else if (o == sim_op::exit) {
      bool const stay = r[x.a] == unknown ? r[x.b] < passes_ : r[x.a] != 0;
      r[x.b] = stay ? r[x.b] + 1 : 0;
      pc = stay ? pc + 1 : x.target;
    } else if (o == sim_op::assume) {
      if (!promise(g_.operand(x.node, 0))) return false;
      ++pc;
    } else if (o <= sim_op::rank) {
      r[x.a] = o == sim_op::rank ? rank(x.b) : p_.agents[who_].replica;
      ++pc;
    } else { // skip
      pc = truth(x.b) ? pc + 1 : x.target;
    }
  }
}

constexpr bool simulator::exhausted() {
  out_->complete = false;
  int const at = p_.code[pc_].node;
  message m = remark(at);
  m << "kiln[R-VF01] note: verified " << events_ - 1 << " steps of the accesses to local memory, up to line " << (at >= 0 ? g_[at].line : 0)
    << "; beyond that only kiln::check";
  return false;
}

// -- instructions --------------------------------------------------------------------------------------------------------
constexpr void simulator::scalar(instruction const& x) {
  node const& n = g_[x.node];
  bool const quick = x.code == sim_op::quick;
  registers_[x.a] = evaluate(n.code, g_[g_.operand(x.node, 0)].type, n.type, registers_[x.b], registers_[x.c], quick ? 0 : registers_[x.d]);
}

constexpr void simulator::ring(instruction const& x) {
  dtype const from = g_[g_.operand(x.node, 0)].type, to = g_[x.node].type;
  std::int64_t* const r = registers_;
  r[x.a] = evaluate(op::rem, from, from, r[x.b], r[x.c], 0);
  r[x.d] = evaluate(op::div, from, from, r[x.b], r[x.c], 0);
  r[x.target] = evaluate(op::bit_and, from, to, r[x.d], 1, 0);
}

/// How often the loop runs now; what its bounds do not say, the run decides. False: not at all.
constexpr bool simulator::start(instruction const& x) {
  std::int64_t* const r = registers_;
  std::int64_t const lo = r[x.b] == unknown ? 0 : r[x.b], by = r[x.d] == unknown ? 1 : r[x.d], hi = r[x.c];
  std::int64_t passes = 0;
  if (hi == unknown) {
    guess(x.node);
    passes = by == 0 ? 0 : passes_;
  } else if (by > 0 && hi > lo) {
    passes = static_cast<std::int64_t>((static_cast<std::uint64_t>(hi) - static_cast<std::uint64_t>(lo) - 1) / static_cast<std::uint64_t>(by)) + 1;
  } else if (by < 0 && hi < lo) {
    passes = static_cast<std::int64_t>((static_cast<std::uint64_t>(lo) - static_cast<std::uint64_t>(hi) - 1) / (0 - static_cast<std::uint64_t>(by))) + 1;
  }
  r[x.a] = lo;
  r[x.a + 1] = passes;
  r[x.a + 2] = by;
  return passes > 0;
}

/// What is neither an access nor a barrier in memory.
constexpr simulator::step simulator::rarely(instruction const& x) {
  std::int64_t* const r = registers_;
  switch (x.code) {
  case sim_op::load_arrive: {
    step const s = load_arrive(x);
    while (loads_in_.size() <= me_->groups) loads_in_.add() = 0;
    return s;
  }
  case sim_op::named: return named(x);
  case sim_op::fork:
    if (!me_->forked) cost_ += (x.b - x.a) * (2 * register_count_ + 3 * width_);
    return fork(x);
  case sim_op::fence: return fence();
  case sim_op::commit:
    ++me_->groups;
    if (commits_) commits_[who_].add() = me_->groups;
    me_->open = false;
    if (loads_in_.size() <= me_->groups) loads_in_.add() = 0;
    r[x.a] = me_->groups;
    return step::next;
  case sim_op::wait: {
    reached_[pc_] = true;
    me_->waited_at = me_->groups;
    int const lane = me_->loads_lane, before = lane < 0 ? 0 : clocks::get(clock_, lane);
    if (lane < 0) return step::next;
    int covers = covered(x.b);
    for (int i = 0; i < x.d; ++i)
      if (std::int64_t const t = r[p_.token_registers[x.c + i]]; t != unknown && t > covers) covers = static_cast<int>(t);
    if (covers > before) {
      for (int i = before + 1; i <= covers; ++i)
        if (loads_in_[i] > 0) useful_[pc_] = true;
      clocks::set(clock_, lane, covers);
    }
    return step::next;
  }
  case sim_op::store_wait:
    if (me_->stores_lane >= 0) clocks::raise(clock_, me_->stores_lane, me_->stores - x.b);
    return step::next;
  case sim_op::remote_arrive: return arrive_remotely(x);
  case sim_op::remote_store: case sim_op::remote_async: case sim_op::remote_copy: return send(x);
  case sim_op::cluster: return meet_cluster();
  case sim_op::ready: return make_ready(x);
  default: me_->running = false; return step::end; // done; a remote_read is part of a copy
  }
}

constexpr simulator::step simulator::access(instruction const& x) {
  box const& b = boxes_[x.a];
  int k = b.first; // the atom
  if (b.slot >= 0) {
    std::int64_t s = registers_[b.slot];
    if ((s < 0 || s >= b.slots) && (s = unusual_slot(x, b)) < 0) return step::stop;
    k += static_cast<int>(s) * b.per_slot;
  }
  if (!alone_) k += (peer_ >= 0 ? peer_ : cta_) * p_.cta_atoms;
  if (x.code == sim_op::bulk_load) {
    if (!meets(x, x.b) || (p_.conditional && !same_condition(x, on_barrier_))) return step::stop;
    step const s = b.per_slot == 1 ? touch(x, k) : touch_cells(x, b, k);
    return s == step::next ? arrived(x) : s;
  }
  if (x.code == sim_op::bulk_store) ++me_->stores;
  return b.per_slot == 1 ? touch(x, k) : touch_cells(x, b, k);
}

/// A slot index that is not known, or out of range: the one to take, or -1 after saying so.
constexpr int simulator::unusual_slot(instruction const& x, box const& b) {
  std::int64_t s = registers_[b.slot];
  if (s == unknown) {
    s = likely(b.index);
    if (s == unknown || s < 0 || s >= b.slots) return left_out(x.node), -1;
    return static_cast<int>(s);
  }
  message m = broken(b.node);
  m << "kiln[R-BD01] ";
  buffer(m, b.buffer);
  m << ": index ";
  outside(m, b.index, s, b.slots);
  return circumstances(), -1;
}

/// A write to another CTA, or to this one by its rank.
constexpr simulator::step simulator::send(instruction const& x) {
  if (!reach(x, x.c, g_.operand(x.node, 2))) return step::stop;
  step s = step::stop;
  if (x.code == sim_op::remote_store) {
    if (is_there(x, who_, clocks::get(clock_, who_))) s = access(x);
  } else if (int const k = slot_of(p_.barriers[x.b]); k >= 0 && is_ready(x, k) && member(x, k) && same_condition(x, k)) {
    on_barrier_ = k;
    if (is_there(x, barrier_lane(k), barriers_[k].phase + 1)) s = x.code == sim_op::remote_copy ? read_source(x) : step::next;
    if (s == step::next) s = access(x);
    if (s == step::next) s = arrived(x);
  }
  peer_ = -1;
  return s;
}

constexpr simulator::step simulator::read_source(instruction const& x) {
  instruction from = x;
  from.code = sim_op::remote_read;
  from.a = x.target;
  int const to = peer_;
  peer_ = -1;
  step const s = access(from);
  peer_ = to;
  return s;
}

constexpr simulator::step simulator::touch_cells(instruction const& x, box const& b, int first) {
  if (b.whole) {
    for (int k = first; k < first + b.per_slot; ++k) {
      if (touch(x, k) == step::stop) return step::stop;
      ++events_;
      cost_ += access_cost_;
    }
    return step::next;
  }
  atom_grid const& a = p_.grids[b.buffer];
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
    ++events_;
    cost_ += access_cost_;
    int d = a.rank - 1;
    while (d >= 0 && ++at[d] == cells[d]) at[d--] = 0;
    if (d < 0) return step::next;
  }
}

constexpr simulator::step simulator::left_out(int node) {
  out_->complete = false;
  remark(node) << "kiln[R-VF01] note: which part of the buffer this access takes depends on data; only kiln::check can follow it";
  return step::stop;
}

constexpr simulator::step simulator::touch(instruction const& x, int k) {
  atom& m = atoms_[k];
  bool const ordered = m.lane < 0 || (static_cast<int>(clock_[m.lane / clocks::lanes] >> (m.lane % clocks::lanes * 16)) & 0x7fff) >= m.value;
  if (shares_) {
    int const own = alone_ ? k : k % p_.cta_atoms;
    if (first_peer_[own] != first_peer_[own + 1] && touch_peers(x, k) == step::stop) return step::stop;
  }
  sim_op const o = x.code;
  if (o == sim_op::read || o == sim_op::bulk_store || o == sim_op::remote_read) {
    if (m.lane < 0 && m.lost < 0) return uninitialised(x, k);
    if (!ordered) return unordered(x, m);
    if (m.poison && poisoned(x, m) == step::stop) return step::stop;
    if (o != sim_op::read) return read_later(m, x, k);
    clocks::word& lanes = readers_[k * words_ + word_];
    lanes = (lanes & ~(unit_ * 0x7fff)) | (clock_[word_] & (unit_ * 0x7fff));
    read_at_[k * lanes_ + who_] = pc_;
    return step::next;
  }
  if (!ordered) return unordered(x, m);
  if (!at_most(readers_ + k * words_, clock_)) return overtaken(x, k);
  if ((o == sim_op::bulk_load || o == sim_op::remote_copy) && m.lane >= 0 && unfenced(m)) return without_fence(x, m);
  if (o == sim_op::bulk_load || brings_bytes(o)) {
    m = {barrier_lanes_ + on_barrier_, barriers_[on_barrier_].phase + 1, pc_, who_, 0, -1};
  } else if (o == sim_op::async) {
    int const group = me_->groups + 1;
    m = {me_->loads_lane, group, pc_, who_, x.b > 0 ? x.b : 0, -1};
    me_->open = true;
    while (loads_in_.size() <= group) loads_in_.add() = 0;
    ++loads_in_[group];
  } else {
    m = {who_, static_cast<int>(clock_[word_] >> (who_ % clocks::lanes * 16)) & 0x7fff, pc_, who_, 0, -1};
  }
  return step::next;
}

constexpr simulator::step simulator::read_later(atom const& m, instruction const& x, int k) {
  if (unfenced(m)) return without_fence(x, m);
  bool const stores = x.code == sim_op::bulk_store; // else a copy to another CTA
  int const lane = stores ? me_->stores_lane : barrier_lane(on_barrier_);
  clocks::raise(readers_ + k * words_, lane, stores ? me_->stores : barriers_[on_barrier_].phase + 1);
  read_at_[k * lanes_ + lane] = pc_;
  return step::next;
}

/// Written by ordinary stores that no fence has shown to the engines of bulk copies.
constexpr bool simulator::unfenced(atom const& m) const {
  if (m.lane >= barrier_lanes_ || agents_[m.lane].fence_lane < 0) return false;
  return clocks::get(clock_, agents_[m.lane].fence_lane) < m.value;
}

/// The same bytes through other buffers: they must be done with, and what is read must have been written through this one.
constexpr simulator::step simulator::touch_peers(instruction const& x, int atom_number) {
  int const base = alone_ ? 0 : atom_number / p_.cta_atoms * p_.cta_atoms, k = atom_number - base;
  atom& m = atoms_[atom_number];
  sim_op const o = x.code;
  bool const reads = simulator::reads(o), engine = o == sim_op::bulk_store || o == sim_op::bulk_load || o == sim_op::remote_read || o == sim_op::remote_copy;
  int const from = first_peer_[k], to = first_peer_[k + 1];
  for (int i = from; i < to; ++i) {
    int const j = all_peers_[i] + base;
    atom& other = atoms_[j];
    if (other.lane >= 0) {
      if ((static_cast<int>(clock_[other.lane / clocks::lanes] >> (other.lane % clocks::lanes * 16)) & 0x7fff) < other.value)
        return shared_conflict(x, k, j - base, other.by, other.agent, pending_async(other));
      if (engine && unfenced(other)) return without_fence(x, other);
    }
    if (reads) continue;
    clocks::word const* const readers = readers_ + j * words_;
    if (!at_most(readers, clock_)) {
      int lane = 0;
      while (lane + 1 < lanes_ && clocks::get(readers, lane) <= clocks::get(clock_, lane)) ++lane;
      return shared_conflict(x, k, j - base, read_at_[j * lanes_ + lane], lane_agent_[lane], lane_kind_[lane] == lane_kind::stores);
    }
    other.lost = pc_; // where a window brings back a part, kiln::check knows which
  }
  events_ += (to - from) / 4;
  cost_ += (to - from) * (15 + 2 * width_);
  if (!reads)
    m.lost = -1;
  else if (m.lost >= 0 && !may_read(k, m.lost))
    return overwritten(x, k, base);
  return step::next;
}

/// R-HZ06: nothing asynchronous may be pending when the kernel ends. R-HZ11: nobody may reach a CTA that has ended.
constexpr void simulator::at_exit() {
  if (!nobody_left() || !full_) return; // a ring that prefetches more than there is does no harm
  enter(0);
  bool sends = p_.ctas > 1; // anything that is read later
  for (int a = 0; a < p_.agents.size(); ++a) sends = sends || agents_[a].stores_lane >= 0;
  for (int k = 0; k < p_.atoms; ++k) {
    if (p_.ctas > 1 && k % p_.cta_atoms == 0) enter(lane_of(k / p_.cta_atoms));
    atom const& m = atoms_[k];
    bool const done_with = !sends || at_most(readers_ + k * words_, clock_);
    for (int a = 0; a < p_.agents.size() && !done_with; ++a) {
      int const lane = agents_[a].stores_lane;
      if (lane >= 0 && clocks::get(readers_ + k * words_, lane) > clocks::get(clock_, lane))
        return left_pending(p_.code[read_at_[k * lanes_ + lane]], "add async_store_wait(0)");
    }
    if (p_.ctas > 1 && !done_with)
      for (int slot = 0; slot < p_.slot_alloc.size(); ++slot)
        if (int const lane = barrier_lane(slot); clocks::get(readers_ + k * words_, lane) > clocks::get(clock_, lane))
          return left_pending(p_.code[read_at_[k * lanes_ + lane]], "wait for an arrival of the CTA that it goes to");
    if (m.lane < 0 || !pending_async(m) || clocks::get(clock_, m.lane) >= m.value) continue;
    return left_pending(p_.code[m.by], on_barrier(m) ? "wait for its barrier" : m.value > agents_[lane_agent_[m.lane]].groups ? nullptr : "add async_load_wait_group(0)");
  }
}

constexpr void simulator::unused_waits() {
  for (int i = 0; i < p_.code.size(); ++i)
    if (p_.code[i].code == sim_op::wait && reached_[i] && !useful_[i]) {
      message t = remark(p_.code[i].node);
      t << "kiln[R-HZ16] warning: async_load_wait_group(" << p_.code[i].b << ") (";
      place(t, p_.code[i].node);
      t << ") never waits for anything; every group that it covers is empty or complete already";
    }
}

} // namespace detail

namespace detail {
/// Whether a graph has local memory or barriers at all.
constexpr bool has_simulated(graph_view const& g) {
  node const* const nodes = g.nodes.items;
  for (std::size_t i = 0; i < g.nodes.count; ++i)
    if (classes_of_nodes.of[static_cast<int>(nodes[i].code)] >= node_class::memory) return true;
  return false;
}
} // namespace detail

/// Simulates the accesses to local memory of a verified graph.
constexpr simulation simulate(graph_view const& g, int budget = simulation_budget) {
  simulation s;
  if (!detail::has_simulated(g)) return s;
  detail::simulator run(g, budget);
  run.run(s);
  run.flush();
  return s;
}

} // namespace kiln
