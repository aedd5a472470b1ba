// What the hazard simulation says about accesses that nothing orders, that come too early, or whose data is not there.
#pragma once
#include <kiln/validate/sim_trips.hpp>

namespace kiln::detail {

constexpr bool simulator::never_committed(atom const& m) const {
  return pending_async(m) && !on_barrier(m) && m.value > agents_[lane_agent_[m.lane]].groups;
}

/// A read or write that nothing orders after the last write.
constexpr simulator::step simulator::unordered(instruction const& x, atom const& m) {
  box const& b = p_.boxes[x.a];
  bool const reads = simulator::reads(x.code);
  if (!pending_async(m)) {
    message t = broken(x.node);
    t << "kiln[R-HZ13] ";
    access_name(t, b);
    t << ": the " << verb(x);
    where(t, x.node, who_);
    t << " is not ordered after the write of line " << line(m);
    in_task(t, m.agent);
    t << "; arrive at a barrier after the write and wait for it here";
    return circumstances(), step::stop;
  }
  if (reads && never_committed(m)) {
    message t = broken(p_.code[m.by].node);
    t << "kiln[R-HZ06] the async_load";
    where(t, p_.code[m.by].node, m.agent);
    t << " into ";
    access_name(t, p_.boxes[p_.code[m.by].a]);
    t << " is not committed when line " << g_[x.node].line << " reads it; call async_load_commit_group() after it, then wait";
    return circumstances(), step::stop;
  }
  message t = broken(x.node);
  t << (reads ? "kiln[R-HZ01] " : "kiln[R-HZ02] ");
  access_name(t, b);
  if (reads) {
    t << " is read";
    where(t, x.node, who_);
    t << " before the " << name_of(kind(m)) << " of line " << line(m);
    in_task(t, m.agent);
    t << " is known complete; ";
  } else {
    t << ": the " << verb(x);
    where(t, x.node, who_);
    t << " overlaps the " << name_of(kind(m)) << " of line " << line(m);
    in_task(t, m.agent);
    t << ", which may be in flight; ";
  }
  if (on_barrier(m)) {
    t << "wait for ";
    barrier_name(t, m.lane - p_.agents.size());
    t << " phase " << m.value - 1 << " first";
  } else if (m.agent != who_) {
    t << "its task must wait for the group, then arrive at a barrier that this task waits for";
  } else if (never_committed(m)) {
    t << "commit it and wait for it first";
  } else if (me_->waited_at >= m.value) {
    t << "wait for at most " << me_->waited_at - m.value << " pending groups";
  } else {
    t << "add async_load_wait_group(" << me_->groups - m.value << ") before it";
  }
  return circumstances(), step::stop;
}

/// A write while somebody may still read.
constexpr simulator::step simulator::overtaken(instruction const& x, int k) {
  clocks::word const* const readers = readers_ + k * words_;
  int lane = 0;
  while (lane + 1 < lanes_ && clocks::get(readers, lane) <= clocks::get(clock_, lane)) ++lane;
  instruction const& r = p_.code[read_at_[k * lanes_ + lane]];
  bool const stored = lane_kind_[lane] == lane_kind::stores, sent = lane_kind_[lane] == lane_kind::barrier;
  message t = broken(x.node);
  t << (stored || sent ? "kiln[R-HZ04] " : x.code == sim_op::write || x.code == sim_op::remote_store ? "kiln[R-HZ13] " : "kiln[R-HZ03] ");
  access_name(t, p_.boxes[x.a]);
  t << ": the " << verb(x);
  where(t, x.node, who_);
  if (stored) {
    t << " overwrites the source of the async_store_bulk of line " << g_[r.node].line;
    in_task(t, lane_agent_[lane]);
    t << ", which may still read it; async_store_wait(0) before it";
  } else if (sent) {
    t << " overwrites the source of the async_remote_copy of line " << g_[r.node].line << ", which may still read it; wait for an arrival of the CTA that it goes to, made after ";
    barrier_name(t, lane - p_.agents.size());
    t << " is complete";
  } else {
    t << " may overwrite data that is still read on line " << g_[r.node].line;
    in_task(t, lane_agent_[lane]);
    t << "; wait for a barrier that it signals after that read";
  }
  return circumstances(), step::stop;
}

constexpr simulator::step simulator::without_fence(instruction const& x, atom const& m) {
  message t = broken(x.node);
  t << "kiln[R-HZ05] ";
  access_name(t, p_.boxes[x.a]);
  t << ": the ordinary write of line " << line(m);
  in_task(t, m.agent);
  t << " reaches the " << verb(x);
  where(t, x.node, who_);
  t << " without a fence; k.fence(fence::async_shared) after the write";
  return circumstances(), step::stop;
}

constexpr simulator::step simulator::uninitialised(instruction const& x, int k) {
  atoms_[k].lane = who_; // say it once
  atoms_[k].value = 0;
  atoms_[k].by = pc_;
  atoms_[k].agent = who_;
  if (p_.left_out >= 0) return step::next; // a write that is not followed may have been it
  bool const certain = all_true();
  message t = certain ? broken(x.node) : remark(x.node);
  t << "kiln[R-HZ15] " << (certain ? "" : "warning: ");
  access_name(t, p_.boxes[x.a]);
  t << " is read";
  where(t, x.node, who_);
  t << " before anything is written to it";
  if (certain) return circumstances(), step::stop;
  return step::next;
}

constexpr simulator::step simulator::poisoned(instruction const& x, atom& m) {
  int const load = p_.code[m.by].node;
  // Only where a mask is known, and the slot is loaded and read whole, are unspecified elements surely read.
  bool const surely = m.poison == 2 && p_.boxes[x.a].whole && p_.boxes[p_.code[m.by].a].whole &&
                      g_[x.node].code != op::local_gather && all_true();
  m.poison = 0;
  message t = surely ? broken(load) : remark(load);
  t << "kiln[R-HZ12] " << (surely ? "" : "warning: ");
  access_name(t, p_.boxes[x.a]);
  t << " is read (line " << g_[x.node].line << "), but elements that the async_load (";
  place(t, load);
  t << ") masks off are unspecified; give it .other";
  if (surely) return circumstances(), step::stop;
  return step::next;
}

constexpr void simulator::left_pending(instruction const& x, char const* cure) {
  bool const out = x.code == sim_op::bulk_store || (x.code == sim_op::remote_copy && cure && cure[9] == 'a'); // its source
  bool const certain = all_true();
  message t = certain ? broken(x.node) : remark(x.node);
  t << "kiln[R-HZ06] " << (certain ? "" : "warning: ") << "the " << name_of(g_[x.node].code) << " (";
  place(t, x.node);
  t << (out ? ") from " : ") into ");
  access_name(t, p_.boxes[out && x.code == sim_op::remote_copy ? x.target : x.a]);
  if (!cure)
    t << " is never committed before the kernel ends; call async_load_commit_group(), then wait";
  else
    t << " is never waited for before the kernel ends; " << cure;
}

} // namespace kiln::detail
