// The agents of a simulated kernel, their clocks, and the barriers where they meet: phases, bytes, named barriers, forks and
// joins, and what is wrong when nobody can go on.
//
// Lanes of a clock: one for each agent; one for each barrier slot, counting completed phases; one for each named barrier; and,
// where an agent uses them, its groups of asynchronous loads, its bulk stores, and the ordinary writes that a fence has shown
// to bulk copies.
//
// Worked example, a ring of one slot. The producer waits for parity 1 (passes: nothing has happened), expects 256 B and
// issues a bulk copy: its writes have stamp (lane of full[0], 1), and the producer's clock is joined into the barrier's.
// The copy lands, phase 0 of full[0] completes: the barrier's clock, with 1 in its own lane, is what the consumer's wait joins;
// its read is then ordered after the copy. The next copy into the slot asks whether the readers' lanes are covered, and they
// are only if the producer has waited for an arrival that the consumer made after its read.
#pragma once
#include <kiln/validate/sim_report.hpp>

namespace kiln::detail {

constexpr void simulator::allocate_agents() {
  int const n = p_.agents.size();
  int lanes = n + p_.slot_alloc.size();
  if (p_.named)
    for (int i = 0; i < 16; ++i) named_lane_[i] = p_.named >> i & 1 ? lanes++ : -1;
  named_count_ = lanes - n - p_.slot_alloc.size();
  lanes += named_count_ * (p_.ctas - 1); // of the other CTAs
  agents_ = new agent[static_cast<unsigned>(n)]{};
  lane_agent_ = new int[static_cast<unsigned>(lanes + 3 * n)]{};
  lane_kind_ = new lane_kind[static_cast<unsigned>(lanes + 3 * n)]{};
  for (int i = 0; i < lanes; ++i) {
    lane_agent_[i] = i;
    lane_kind_[i] = i < n ? lane_kind::agent : lane_kind::barrier;
  }
  auto add = [&](int a, lane_kind k) {
    lane_agent_[lanes] = a;
    lane_kind_[lanes] = k;
    return lanes++;
  };
  for (int i = 0; i < n; ++i) {
    agent_range const& r = p_.agents[i];
    if (r.loads) agents_[i].loads_lane = add(i, lane_kind::loads);
    if (r.stores) agents_[i].stores_lane = add(i, lane_kind::stores);
    if (p_.bulk && r.writes) agents_[i].fence_lane = add(i, lane_kind::fence);
  }
  lanes_ = lanes;
  words_ = (lanes + clocks::lanes - 1) / clocks::lanes;
  width_ = (lanes + 7) / 8 * 2;
  access_cost_ = 50 + 4 * width_;
  meeting_cost_ = 100 + 8 * width_;
  barrier_lanes_ = n;
  register_count_ = p_.constants.size();
  references_ = p_.barriers.data();
  alone_ = p_.ctas == 1;
  // Registers get their first content once for all runs: what a run reads it has written before, but for what nobody writes. What
  // agents have of their own is a copy, made at the fork.
  int own = p_.ctas - 1;
  for (int i = 0; i < n; ++i) own += p_.agents[i].own_registers;
  files_ = new std::int64_t[static_cast<unsigned>(own * register_count_) + 1]{};
  std::int64_t *next = files_, *kernels = p_.constants.data();
  for (int i = 0; i < n; ++i) {
    agents_[i].cta = p_.agents[i].cta;
    if (p_.agents[i].own_registers || (i > 0 && i % p_.cta_agents == 0)) {
      agents_[i].file = next;
      next += register_count_;
    }
    if (i > 0 && i % p_.cta_agents == 0) {
      kernels = agents_[i].file;
      for (int k = 0; k < register_count_; ++k) kernels[k] = p_.constants[k];
    }
    if (!agents_[i].file) agents_[i].file = kernels;
  }
  if (p_.arrives) commits_ = new vec<int>[static_cast<unsigned>(n)];
}

constexpr void simulator::release_agents() {
  delete[] agents_;
  delete[] lane_agent_;
  delete[] lane_kind_;
  delete[] commits_;
  delete[] files_;
  delete[] clocks_;
  delete[] barriers_;
  delete[] arrived_;
  delete[] completed_;
  delete[] waited_;
  delete[] named_;
  delete[] named_arrived_;
  delete[] named_completed_;
}

constexpr void simulator::reset_agents() {
  int const n = p_.agents.size(), slots = p_.slot_alloc.size();
  afresh(clocks_, n * words_);
  for (int i = 0; i < n; ++i) {
    agent a;
    a.pc = p_.agents[i].begin;
    a.running = p_.agents[i].task < 0;
    a.loads_lane = agents_[i].loads_lane;
    a.stores_lane = agents_[i].stores_lane;
    a.fence_lane = agents_[i].fence_lane;
    a.file = agents_[i].file;
    a.cta = agents_[i].cta;
    agents_[i] = a;
    if (commits_) commits_[i].clear();
    clocks_[i * words_ + i / clocks::lanes] = clocks::unit(i);
  }
  if (slots > 0) {
    afresh(arrived_, slots * words_);
    afresh(completed_, slots * words_);
    afresh(waited_, slots * words_);
    afresh(barriers_, slots);
    for (int i = 0; i < slots; ++i) barriers_[i].pending = barriers_[i].arrivals = static_cast<int>(g_.attribute(p_.slot_alloc[i], 1));
  }
  if (!p_.named) return;
  afresh(named_arrived_, 16 * p_.ctas * words_);
  afresh(named_completed_, 16 * p_.ctas * words_);
  afresh(named_, 16 * p_.ctas);
}

constexpr void simulator::enter(int who) {
  who_ = who;
  me_ = agents_ + who;
  cta_ = me_->cta;
  clock_ = clocks_ + who * words_;
  word_ = who / clocks::lanes;
  unit_ = clocks::unit(who);
  registers_ = me_->file;
}

// -- tasks -----------------------------------------------------------------------------------------------------------------
constexpr simulator::step simulator::fork(instruction const& x) {
  int const from = x.a + cta_ * p_.cta_agents, to = x.b + cta_ * p_.cta_agents;
  if (!me_->forked) {
    me_->forked = true;
    for (int t = from; t < to; ++t) {
      clocks::word* const c = clocks_ + t * words_;
      for (int i = 0; i < words_; ++i) c[i] = clock_[i];
      c[t / clocks::lanes] += clocks::unit(t);
      if (p_.agents[t].own_registers) {
        std::int64_t* const f = agents_[t].file;
        for (int i = 0; i < register_count_; ++i) f[i] = registers_[i];
      }
      agents_[t].pc = p_.agents[t].begin;
      agents_[t].running = true;
    }
    tick();
    return step::rest;
  }
  for (int t = from; t < to; ++t)
    if (agents_[t].running) return step::block;
  for (int t = from; t < to; ++t) {
    join(clock_, clocks_ + t * words_);
    if (p_.agents[t].own_registers && p_.agents[t].replica == 0 && g_.attribute(p_.agents[t].task, 0) == 0) // the default task's vars are the kernel's
      for (int i = 0; i < register_count_; ++i) registers_[i] = agents_[t].file[i];
  }
  me_->forked = false;
  pc_ = x.target - 1;
  return step::next;
}

// -- memory barriers -------------------------------------------------------------------------------------------------------
/// The slot that a reference means now; -1 after a finding.
constexpr int simulator::slot_of(barrier_reference const& r) {
  std::int64_t s = registers_[r.slot];
  if (s >= 0 && s < r.count && p_.ctas == 1) return r.first + static_cast<int>(s);
  if (s == unknown) s = likely(r.index);
  if (s == unknown) {
    out_->complete = false;
    remark(r.at) << "kiln[R-VF01] note: which barrier this is depends on data; only kiln::check can follow it";
    return -1;
  }
  if (s < 0 || s >= r.count) {
    message m = broken(r.at);
    m << "kiln[R-BD05] ";
    barriers_name(m, r.node);
    m << ": index ";
    outside(m, r.index, s, r.count);
    circumstances();
    return -1;
  }
  return r.first + static_cast<int>(s) + (peer_ >= 0 ? peer_ : cta_) * p_.cta_slots;
}

/// An arrival, or bytes, must know that the phase before is complete: which phase it counts for would depend on timing.
constexpr bool simulator::member(instruction const& x, int k) {
  barrier const& b = barriers_[k];
  if (clocks::get(clock_, barrier_lane(k)) >= b.phase) return true;
  if (me_->again >= 0) { // it came here too early
    instruction const& wait = p_.code[me_->again];
    message m = broken(wait.node);
    m << "kiln[R-BR04] wait on ";
    barrier_name(m, me_->again_at);
    where(m, wait.node, who_);
    m << ": parity " << static_cast<int>(registers_[wait.b] & 1) << " sees phase " << barriers_[me_->again_at].phase - 1 << " once more, and the " << name_of(g_[x.node].code) << " of line "
      << g_[x.node].line << " comes a round too early; flip the parity each round";
    circumstances();
    return false;
  }
  message m = broken(x.node);
  if (brings_bytes(x.code) && b.by == who_ && b.last > 0 && brings_bytes(p_.code[b.last - 1].code) && (x.code == sim_op::bulk_load || b.last - 1 != pc_)) {
    // It was this agent's own copy that completed the phase: too few bytes were expected for all of them.
    m << "kiln[R-BR01] ";
    barrier_name(m, k);
    m << " phase " << b.phase - 1 << ": the " << b.before << " B expected are there before the " << name_of(g_[x.node].code);
    where(m, x.node, who_);
    m << " brings more; expect the bytes of all copies of the phase";
    circumstances();
    return false;
  }
  m << "kiln[R-BR03] ";
  barrier_name(m, k);
  m << ": the " << name_of(g_[x.node].code);
  where(m, x.node, who_);
  m << " may count for phase " << b.phase - 1 << " or " << b.phase << ": nothing orders it after phase " << b.phase - 1
    << " is complete";
  if (b.last > 0) {
    m << " (last arrival: line " << g_[p_.code[b.last - 1].node].line;
    in_task(m, b.by);
    m << ")";
  }
  if (g_[x.node].code == op::barrier_arrive)
    m << "; arrivals beyond the count of " << arrivals(k) << "?";
  else
    m << "; wait first for the barrier that releases what it fills, and expect all bytes of a phase at once";
  circumstances();
  return false;
}

/// Nothing is pending any more.
constexpr bool simulator::complete(instruction const& x, int k) {
  barrier& b = barriers_[k];
  if (b.pending < 0) {
    message m = broken(x.node);
    m << "kiln[R-BR03] ";
    barrier_name(m, k);
    m << " phase " << b.phase << ": " << arrivals(k) - b.pending << " arrivals for a count of " << arrivals(k) << " (";
    place(m, x.node);
    in_task(m, who_);
    m << "); which phase they belong to depends on timing";
    return circumstances(), false;
  }
  if (b.got > b.expected) return bytes_differ(k, x.node, "waits would pass early"), false;
  clocks::word *a = arrived_ + k * words_, *w = waited_ + k * words_;
  if (!at_most(w, a)) {
    int waiter = 0;
    while (waiter + 1 < p_.agents.size() && clocks::get(w, waiter) <= clocks::get(a, waiter)) ++waiter;
    message m = broken(x.node);
    m << "kiln[R-BR04] ";
    barrier_name(m, k);
    m << ": phase " << b.phase << " completes";
    where(m, x.node, who_);
    m << ", but an earlier wait on it";
    in_task(m, waiter);
    m << " may still be under way, and would then miss that; order the wait before this arrival";
    return circumstances(), false;
  }
  clocks::set(a, barrier_lane(k), ++b.phase);
  for (int i = 0; i < words_; ++i) completed_[k * words_ + i] = a[i];
  b.pending = b.arrivals;
  b.before = b.expected;
  b.expected = b.got = 0;
  b.expects_if = b.loads_if = none;
  return true;
}

constexpr void simulator::bytes_differ(int k, int node, char const* consequence) {
  barrier const& b = barriers_[k];
  message m = broken(node);
  m << "kiln[R-BR01] ";
  barrier_name(m, k);
  m << " phase " << b.phase << ": " << b.expected << " B expected, " << b.got << " B signalled (";
  place(m, node);
  m << "); " << consequence;
  circumstances();
}

/// Finds the barrier of a reference, and whether the agent may count for its present phase, as far as it knows; see `member`.
constexpr bool simulator::meets(instruction const& x, int reference) {
  barrier_reference const& r = references_[reference];
  std::int64_t const s = registers_[r.slot];
  int const k = s >= 0 && s < r.count && alone_ ? r.first + static_cast<int>(s) : slot_of(r);
  if (k < 0) return false;
  on_barrier_ = k;
  return (static_cast<int>(clock_[(barrier_lanes_ + k) / clocks::lanes] >> ((barrier_lanes_ + k) % clocks::lanes * 16)) & 0x7fff) >= barriers_[k].phase || member(x, k);
}

/// What instruction x brings to the present barrier.
constexpr simulator::step simulator::arrived(instruction const& x) {
  barrier& b = barriers_[on_barrier_];
  join(arrived_ + on_barrier_ * words_, clock_);
  clock_[word_] += unit_; // tick
  b.last = pc_ + 1;
  b.by = who_;
  switch (x.code) {
  case sim_op::bulk_load: b.got += x.c; break;
  case sim_op::barrier_arrive: case sim_op::remote_arrive: b.pending -= x.b; break;
  case sim_op::barrier_expect:
    --b.pending;
    b.expected += x.b;
    break;
  case sim_op::load_arrive: b.pending -= p_.agents[who_].threads; break;
  default: { // from another CTA
    box const& v = boxes_[x.a];
    b.got += static_cast<int>(bytes_of(g_[v.node].type, g_.shape_of(v.node).elements()));
  }
  }
  return b.pending > 0 || b.got < b.expected || complete(x, on_barrier_) ? step::next : step::stop;
}

/// Bytes and copies of a phase must depend on the same condition: R-BR10.
constexpr bool simulator::same_condition(instruction const& x, int k) {
  barrier& b = barriers_[k];
  // What is known is decided already: the operation does happen.
  int const when = x.d < 0 || registers_[slices_.register_of(x.d)] != unknown ? always : predicates + slices_.value_number(x.d);
  int& mine = brings_bytes(x.code) ? b.loads_if : b.expects_if;
  int const other = brings_bytes(x.code) ? b.expects_if : b.loads_if;
  if (mine == none) mine = when;
  if (mine == when && (other == none || other == when)) return true;
  message m = broken(x.node);
  m << "kiln[R-BR10] ";
  barrier_name(m, k);
  m << " phase " << b.phase << ": the " << name_of(g_[x.node].code);
  where(m, x.node, who_);
  m << (when == always ? " is unconditional" : " has a predicate") << ", but its "
    << (brings_bytes(x.code) && other != none && other != when ? "bytes are expected" : other != none && other != when ? "copies are made" : "like are made")
    << (when == always ? " under one" : " without it") << "; give both the same .pred";
  return circumstances(), false;
}

constexpr simulator::step simulator::arrive(instruction const& x) {
  return meets(x, x.a) && (!p_.conditional || x.code != sim_op::barrier_expect || same_condition(x, on_barrier_)) ? arrived(x) : step::stop;
}

/// The last group that a wait for all but `pending` covers.
constexpr int simulator::covered(int pending) const {
  if (!commits_) return me_->groups - pending;
  int const k = commits_[who_].size() - pending;
  return k > 0 ? commits_[who_][k - 1] : 0;
}

/// Arrives once the agent's loads have landed: as late as possible is when the phase is waited for, so here is enough.
constexpr simulator::step simulator::load_arrive(instruction const& x) {
  if (!meets(x, x.a)) return step::stop;
  clocks::raise(arrived_ + on_barrier_ * words_, me_->loads_lane, me_->groups + 1);
  ++me_->groups; // what is uncommitted forms a group that the barrier stands for
  me_->open = false;
  return arrived(x);
}

constexpr simulator::step simulator::barrier_wait(instruction const& x) {
  barrier_reference const& r = references_[x.a];
  std::int64_t const s = registers_[r.slot];
  int const k = s >= 0 && s < r.count && alone_ ? r.first + static_cast<int>(s) : slot_of(r);
  if (k < 0) return step::stop;
  std::int64_t const parity = registers_[x.b];
  if (parity == unknown) {
    out_->complete = false;
    remark(x.node) << "kiln[R-VF01] note: the parity of this wait depends on data; only kiln::check can follow it";
    return step::stop;
  }
  barrier const& b = barriers_[k];
  if ((b.phase & 1) == (parity & 1)) return step::block;
  if (b.phase > 0) {
    int const seen = static_cast<int>(clock_[(barrier_lanes_ + k) / clocks::lanes] >> ((barrier_lanes_ + k) % clocks::lanes * 16)) & 0x7fff;
    if (seen < b.phase - 1) {
      message m = broken(x.node);
      m << "kiln[R-BR04] wait on ";
      barrier_name(m, k);
      where(m, x.node, who_);
      m << " cannot tell phase " << b.phase - 1;
      if (b.phase >= 3) m << " from " << b.phase - 3;
      m << ": nothing orders it after phase " << b.phase - 2 << " is complete; flip the parity each round";
      return circumstances(), step::stop;
    }
    me_->again = -1;
    if (seen >= b.phase && clocks::get(waited_ + k * words_, who_) > 0) {
      me_->again = pc_;
      me_->again_at = k;
    }
    join(clock_, completed_ + k * words_);
  }
  clocks::word& lanes = waited_[k * words_ + word_];
  lanes = (lanes & ~(unit_ * 0x7fff)) | (clock_[word_] & (unit_ * 0x7fff));
  return step::next;
}

constexpr simulator::step simulator::fence() {
  for (int t = 0; t < p_.agents.size(); ++t)
    if (int const lane = agents_[t].fence_lane; lane >= 0) clocks::raise(clock_, lane, clocks::get(clock_, t));
  tick();
  return step::next;
}

// -- named barriers ----------------------------------------------------------------------------------------------------------
constexpr simulator::step simulator::named(instruction const& x) {
  int const id = x.a & 15, at = id + 16 * cta_, lane = named_lane_[id] + named_count_ * cta_, bit = who_ - cta_ * p_.cta_agents;
  named_barrier& b = named_[at];
  clocks::word *a = named_arrived_ + at * words_, *d = named_completed_ + at * words_;
  if (me_->generation >= 0) { // it has arrived, and waits
    if (b.generation == me_->generation) return step::block;
    me_->generation = -1;
    join(clock_, d);
    return step::next;
  }
  auto refuse = [&] {
    message m = broken(x.node);
    m << "kiln[R-BR08] named barrier " << id;
    where(m, x.node, who_);
    return m;
  };
  if (clocks::get(clock_, lane) < b.generation) {
    refuse() << ": nothing orders it after generation " << b.generation - 1 << " is complete (line " << g_[p_.code[b.last].node].line << ")";
    return circumstances(), step::stop;
  }
  if (b.present > 0 && b.threads != x.b) {
    refuse() << ": counts " << b.threads << " (line " << g_[p_.code[b.last].node].line << ") and " << x.b << " differ";
    return circumstances(), step::stop;
  }
  if (b.here >> bit & 1) {
    refuse() << ": the same agent arrives twice in generation " << b.generation;
    return circumstances(), step::stop;
  }
  join(a, clock_);
  tick();
  b.here |= 1u << bit;
  b.present += p_.agents[who_].threads;
  b.threads = x.b;
  b.last = pc_;
  int const mine = b.generation;
  if (b.present > x.b) {
    refuse() << ": " << b.present << " threads arrive at a barrier for " << x.b;
    return circumstances(), step::stop;
  }
  if (b.present == x.b) {
    b.present = 0;
    b.here = 0;
    clocks::set(a, named_lane_[id], ++b.generation);
    for (int i = 0; i < words_; ++i) d[i] = a[i];
    if (x.c) join(clock_, d);
    return step::next;
  }
  if (!x.c) return step::next;
  me_->generation = mine;
  return step::rest;
}

// -- deadlocks -----------------------------------------------------------------------------------------------------------------
/// Nobody can go on: the cause first, then everybody who waits.
constexpr void simulator::deadlock() {
  int first = -1, culprit = -1, meets = -1, gone = -1;
  for (int t = 0; t < p_.agents.size(); ++t) {
    if (!agents_[t].running && p_.agents[t].task < 0 && gone < 0) gone = p_.agents[t].cta;
    if (!agents_[t].running || p_.code[agents_[t].pc].code == sim_op::fork) continue;
    if (first < 0) first = t;
    instruction const& x = p_.code[agents_[t].pc];
    if (x.code == sim_op::cluster && meets < 0) meets = t;
    if (x.code != sim_op::barrier_wait || culprit >= 0) continue;
    enter(t);
    int const k = slot_of(p_.barriers.data()[x.a]);
    if (k >= 0 && barriers_[k].pending == 0 && barriers_[k].got != barriers_[k].expected) culprit = t;
  }
  if (first < 0 || p_.left_out >= 0) return;
  if (culprit >= 0) {
    enter(culprit);
    instruction const& x = p_.code[me_->pc];
    bytes_differ(slot_of(p_.barriers[x.a]), x.node, "the wait would hang");
    return;
  }
  if (meets >= 0 && gone >= 0) {
    enter(meets);
    int const node = p_.code[me_->pc].node;
    message m = broken(node);
    m << "kiln[R-BR09] " << meeting_name(node) << " (";
    place(m, node);
    m << ") is reached by CTA " << cta_ << " of the cluster, but CTA " << gone << " ends without coming to it; put it where every CTA passes";
    circumstances();
    return;
  }
  int const at = p_.code[agents_[first].pc].node;
  message m = broken(at);
  m << "kiln[R-BR02] deadlock: ";
  for (int t = first, said = 0; t < p_.agents.size() && said < 4; ++t) {
    if (!agents_[t].running || p_.code[agents_[t].pc].code == sim_op::fork) continue;
    enter(t);
    instruction const& x = p_.code[me_->pc];
    m << (said++ ? "; " : "");
    task_name(m, t);
    m << " waits (";
    place(m, x.node);
    m << ") for ";
    if (x.code == sim_op::cluster) {
      m << meeting_name(x.node) << ": " << all_.present << " of " << p_.ctas << " CTAs";
      continue;
    }
    if (x.code == sim_op::named) {
      m << "named barrier " << x.a << ": " << named_[(x.a & 15) + 16 * cta_].present << " of " << x.b << " threads";
      continue;
    }
    int const k = static_cast<int>(registers_[p_.barriers[x.a].slot]) + p_.barriers[x.a].first + cta_ * p_.cta_slots;
    barrier const& b = barriers_[k];
    barrier_name(m, k);
    m << " phase " << b.phase << ": " << arrivals(k) - b.pending << " of " << arrivals(k) << " arrivals";
    if (b.expected > 0 || b.got > 0) m << ", " << b.got << " of " << b.expected << " B";
  }
  circumstances();
}

} // namespace kiln::detail
