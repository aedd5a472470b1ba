// Clusters in the hazard simulation: all CTAs of one cluster run, each with agents, barriers and atoms of its own, and clocks go
// through all of them. Here is what they do with each other, and what must be known of a CTA before and after.
//
// Every CTA is known to have started by whoever has its own agent's lane behind itself, its barriers to be ready by whoever has its
// fence behind. What others do to a CTA leaves a stamp with it; when it ends, all of them must be behind it.
#pragma once
#include <kiln/validate/sim_barriers.hpp>

namespace kiln::detail {

constexpr void simulator::allocate_clusters() {
  if (p_.ctas == 1) return;
  ready_ = new int[static_cast<unsigned>(p_.slot_alloc.size()) + 1]{};
  ready_lane_ = new int[static_cast<unsigned>(p_.slot_alloc.size()) + 1]{};
  touched_ = new clocks::word[static_cast<unsigned>(p_.ctas * words_)]{};
  touched_at_ = new int[static_cast<unsigned>(p_.ctas * lanes_)]{};
  touched_by_ = new int[static_cast<unsigned>(p_.ctas * lanes_)]{};
  met_ = new clocks::word[static_cast<unsigned>(words_)]{};
  all_completed_ = new clocks::word[static_cast<unsigned>(words_)]{};
}

constexpr void simulator::reset_clusters() {
  peer_ = -1;
  all_ = {};
  if (p_.ctas == 1) return;
  for (int i = 0; i < p_.slot_alloc.size(); ++i) ready_[i] = 0;
  for (int i = 0; i < p_.ctas * words_; ++i) touched_[i] = 0;
  for (int i = 0; i < words_; ++i) met_[i] = all_completed_[i] = 0;
}

/// Coordinate of the CTA that runs along an axis of the cluster; -1: its rank.
constexpr std::int64_t simulator::rank(int axis) const {
  dims const& c = g_.attrs.cluster;
  return axis < 0 ? cta_ : axis == 0 ? cta_ % c.x : axis == 1 ? cta_ / c.x % c.y : cta_ / (c.x * c.y);
}

/// From here on the agent reaches the CTA of rank r[c]. False after a finding.
constexpr bool simulator::reach(instruction const& x, int c, int rank_node) {
  std::int64_t r = registers_[c];
  if (r == unknown) r = likely(rank_node);
  if (r == unknown) {
    out_->complete = false;
    remark(x.node) << "kiln[R-VF01] note: which CTA this reaches depends on data; only kiln::check can follow it";
    return false;
  }
  if (r < 0 || r >= p_.ctas) {
    message m = broken(x.node);
    m << "kiln[R-BD01] " << name_of(g_[x.node].code) << " (";
    place(m, x.node);
    m << "): rank ";
    outside(m, rank_node, r, p_.ctas);
    return circumstances(), false;
  }
  peer_ = static_cast<int>(r);
  return true;
}

/// Its barrier k must be ready for others.
constexpr bool simulator::is_ready(instruction const& x, int k) {
  if (peer_ == cta_ || (ready_[k] > 0 && clocks::get(clock_, ready_lane_[k]) >= ready_[k])) return true;
  message m = broken(x.node);
  m << "kiln[R-BR07] ";
  barrier_name(m, k);
  m << " is used across the cluster";
  where(m, x.node, who_);
  m << " before fence_mbarrier_init_cluster() and a cluster_barrier() after it";
  return circumstances(), false;
}

/// It must have started, and must not end before (lane, value) is behind it.
constexpr bool simulator::is_there(instruction const& x, int lane, int value) {
  if (peer_ == cta_) return true;
  if (clocks::get(clock_, lane_of(peer_)) == 0) {
    message m = broken(x.node);
    reaching(m, x, peer_, who_);
    m << "no cluster_barrier or remote arrive orders it after the start of CTA " << peer_ << "; call k.cluster_barrier() first";
    return circumstances(), false;
  }
  clocks::raise(touched_ + peer_ * words_, lane, value);
  touched_at_[peer_ * lanes_ + lane] = pc_;
  touched_by_[peer_ * lanes_ + lane] = who_;
  return true;
}

constexpr void simulator::reaching(message& m, instruction const& x, int cta, int agent) {
  m << "kiln[R-HZ11] " << name_of(g_[x.node].code);
  where(m, x.node, agent);
  m << " to CTA " << cta << ": ";
}

/// The end of every CTA: false after a finding.
constexpr bool simulator::nobody_left() {
  for (int c = 0; c < p_.ctas && p_.ctas > 1; ++c) {
    clocks::word const *end = clocks_ + lane_of(c) * words_, *t = touched_ + c * words_;
    if (at_most(t, end)) continue;
    int lane = 0;
    while (lane + 1 < lanes_ && clocks::get(t, lane) <= clocks::get(end, lane)) ++lane;
    instruction const& x = p_.code[touched_at_[c * lanes_ + lane]];
    message m = broken(x.node);
    reaching(m, x, c, touched_by_[c * lanes_ + lane]);
    m << "no cluster_barrier or remote arrive orders it before the exit of CTA " << c << "; call k.cluster_barrier() at the end";
    return circumstances(), false;
  }
  return true;
}

// -- instructions --------------------------------------------------------------------------------------------------------
constexpr simulator::step simulator::arrive_remotely(instruction const& x) {
  barrier_reference const& r = p_.barriers[x.a];
  if (!reach(x, r.rank, g_.operand(g_.operand(x.node, 0), 1))) return step::stop;
  int const k = slot_of(r);
  if (k < 0 || !is_ready(x, k) || !is_there(x, who_, clocks::get(clock_, who_))) return step::stop;
  step const s = arrive(x);
  peer_ = -1;
  return s;
}

constexpr simulator::step simulator::make_ready(instruction const& x) {
  if (p_.ctas == 1) return step::next;
  tick();
  for (int k = cta_ * p_.cta_slots, end = k + p_.cta_slots; k < end; ++k) {
    if (ready_[k] > 0 || p_.slot_alloc[k] > x.node) continue;
    ready_[k] = clocks::get(clock_, who_);
    ready_lane_[k] = who_;
  }
  return step::next;
}

constexpr simulator::step simulator::meet_cluster() {
  if (p_.ctas == 1) return step::next;
  if (me_->generation >= 0) { // it has arrived, and waits
    if (all_.generation == me_->generation) return step::block;
    me_->generation = -1;
    join(clock_, all_completed_);
    return step::next;
  }
  join(met_, clock_);
  tick();
  int const mine = all_.generation;
  if (++all_.present < p_.ctas) {
    me_->generation = mine;
    return step::rest;
  }
  all_.present = 0;
  ++all_.generation;
  for (int i = 0; i < words_; ++i) all_completed_[i] = met_[i];
  join(clock_, all_completed_);
  return step::next;
}

} // namespace kiln::detail
