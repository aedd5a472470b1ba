// Tasks: agents on fibers, their scheduler, deadlocks, and what is left over when a kernel ends.
#include "src/interpreter/bodies.hpp"

namespace kiln::interpreter {

// -- names -------------------------------------------------------------------------------------------------------------------

std::string cta::barrier_name(int slot) const {
  barrier_state const& b = meeting.barriers[static_cast<std::size_t>(slot)];
  std::string const given = run.graph.string(static_cast<int>(run.graph.attribute(b.node, 3)));
  return (given.empty() ? "the barriers of line " + std::to_string(run.graph[b.node].line) : given) + "[" + std::to_string(b.index) + "]" +
         (slot / std::max(run.clocks.slots_each, 1) == rank ? "" : " of CTA " + std::to_string(slot / run.clocks.slots_each));
}

// -- blocking ----------------------------------------------------------------------------------------------------------------

void agent::wait_until(int node, std::function<bool()> condition) {
  while (!condition()) {
    waits_at = node;
    if (own) {
      ready = condition;
      own->yield();
    } else if (!block.group.alone()) {
      ready = condition;
      block.thread.yield();
    } else if (!block.meeting.deliver_one(*this)) {
      block.deadlock();
    }
  }
  waits_at = -1;
  ready = nullptr;
}

void agent::pause() {
  copies.advance();
  block.meeting.advance(*this);
  // Run to the next wait, or take turns at every access: both find mistakes that the other does not.
  if (run.options.policy == completion::late) return;
  if (own ? run.random() % 4 == 0 : !block.group.alone() && run.random() % 4 == 0) yield();
}

void cta::deadlock() {
  graph_view const& g = run.graph;
  std::string text = "deadlock:";
  int first = -1, collective = -1;
  for (agent* a : agents) {
    if (!a || a->waits_at < 0) continue;
    if (first >= 0) text += ";";
    int const i = a->waits_at;
    text += " " + names[static_cast<std::size_t>(a->id)] + " (" + a->line_of(i) + ") waits for ";
    if (first < 0) first = i;
    if (g[i].code == op::cluster_barrier || g[i].code == op::tasks_begin) {
      text += std::string(g[i].code == op::cluster_barrier ? "the cluster_barrier" : "the end of the tasks in the whole cluster") + ", where " + std::to_string(meeting.all.present) + " of " +
              std::to_string(group.ctas.size()) + " CTAs are";
      if (g[i].code == op::cluster_barrier) collective = i;
      continue;
    }
    if (g[i].code == op::named_barrier_wait) {
      named_state const& s = meeting.named[static_cast<std::size_t>(a->block.rank * lanes::named_barriers + g.attribute(i, 0))];
      text += "named barrier " + std::to_string(g.attribute(i, 0)) + ", where " + std::to_string(s.present) + " of " + std::to_string(s.threads) + " threads are";
      continue;
    }
    auto const slot = static_cast<int>(a->in(i, 0).bits[0]);
    barrier_state const& b = meeting.barriers[static_cast<std::size_t>(slot)];
    text += a->block.barrier_name(slot) + " phase " + std::to_string(b.phase) + ", which has " + std::to_string(b.arrivals - b.pending) + " of " +
            std::to_string(b.arrivals) + " arrivals";
    if (b.expected != 0 || b.signalled != 0)
      text += " and " + std::to_string(b.signalled) + " of " + std::to_string(b.expected) + " B";
    text += b.last < 0 ? "" : ", the last by " + names[static_cast<std::size_t>(b.last_agent)] + " (" + a->line_of(b.last) + ")";
  }
  for (std::unique_ptr<cta> const& c : group.ctas)
    if (collective >= 0 && c->ended) { // a barrier that not every CTA comes to
      run.add_fault(collective, "R-BR09", "cluster_barrier: CTA " + std::to_string(c->rank) + " has ended without coming to it;" + text.substr(9), id);
      throw stop_run{};
    }
  run.add_fault(first < 0 ? 0 : first, "R-BR02", text, id);
  throw stop_run{};
}

// -- running tasks -------------------------------------------------------------------------------------------------------------

void cta::run_tasks(int begin) {
  graph_view const& g = run.graph;
  agent& self = *worker;
  struct one {
    std::unique_ptr<agent> who;
    std::unique_ptr<fiber> thread;
    bool is_default;
  };
  std::vector<one> all;
  int number = first_agent + 1;
  for (int i = 0; i < begin; ++i)
    if (g[i].code == op::task_begin) number += static_cast<int>(g.attribute(i, 2));
  auto const end = static_cast<int>(g.attribute(begin, 3));
  int last = number;
  for (int t = begin + 1; t < end; t = static_cast<int>(g.attribute(t, 5)) + 1)
    for (int r = 0; r < g.attribute(t, 2); ++r, ++last) {
      auto who = std::make_unique<agent>(*this, last);
      agent& a = *who;
      a.replica = r;
      a.threads = 32 * static_cast<int>(g.attribute(t, 0) == 0 ? g.attrs.num_warps : g.attribute(t, 0));
      u32 const own = a.now[last];
      a.now = self.now;
      a.now[last] = own;
      for (std::size_t n = 0; n < static_cast<std::size_t>(begin); ++n) a.contents[n] = self.contents[n]; // captured by value
      agents[static_cast<std::size_t>(last)] = &a;
      all.push_back({std::move(who), nullptr, g.attribute(t, 0) == 0});
      auto const stop = static_cast<int>(g.attribute(t, 5));
      all.back().thread = std::make_unique<fiber>([&a, t, stop] {
        if (a.tracing()) a.trace({.what = trace_event::kind::agent_begins, .node = t, .text = a.block.name_of(a.id)});
        a.execute(t + 1, stop);
        if (a.tracing()) a.trace({.what = trace_event::kind::agent_ends, .node = t});
      });
      a.own = all.back().thread.get();
    }
  ++self.now[self.id];
  // Whatever ends this early unwinds the fibers first; nobody may look for their agents then.
  struct leave {
    std::vector<agent*>& agents;
    int from, to;
    ~leave() {
      for (int k = from; k < to; ++k) agents[static_cast<std::size_t>(k)] = nullptr;
    }
  } const guard{agents, number, last};

  std::size_t turn = 0;
  std::vector<one*> ready;
  for (;;) {
    ready.clear();
    bool live = false;
    for (one& o : all) {
      if (o.thread->done()) continue;
      live = true;
      if (!o.who->ready || o.who->ready()) ready.push_back(&o);
    }
    if (!live) break;
    if (ready.empty()) {
      if (!group.alone()) {
        self.ready = [&all] {
          for (one& o : all)
            if (!o.thread->done() && (!o.who->ready || o.who->ready())) return true;
          return false;
        };
        thread.yield();
        self.ready = nullptr;
      } else if (!meeting.deliver_one(self)) {
        deadlock();
      }
      continue;
    }
    turn = run.options.seed == 1 && run.options.policy == completion::late ? 0 : run.random() % ready.size();
    ready[turn]->thread->resume();
    self.yield();
  }
  for (one& o : all) self.now.join(o.who->now);
  for (one& o : all) {
    o.who->now = self.now; // whoever waited for its copies has handed that on
    check_exit(*o.who);
    if (o.is_default && o.who->replica == 0) // its vars are the kernel's
      for (std::size_t n = 0; n < static_cast<std::size_t>(begin); ++n)
        if (g[static_cast<int>(n)].kind == node_kind::cell) self.contents[n] = std::move(o.who->contents[n]);
  }
  if (!group.alone() && joins_cluster(g, begin)) meeting.meet_cluster(self, begin);
  self.next = end + 1;
}

void body<op::tasks_begin>::run(agent& a, int i) { a.block.run_tasks(i); }
void body<op::tasks_end>::run(agent&, int) {}
void body<op::task_begin>::run(agent&, int) {}
void body<op::task_end>::run(agent&, int) {}
void body<op::replica_id>::run(agent& a, int i) { a.fresh(i).bits[0] = static_cast<u64>(a.replica); }

// -- the end -------------------------------------------------------------------------------------------------------------------

void check_exit(agent& a) {
  copy_engine const& c = a.copies;
  if (a.checking()) {
    for (int id : c.uncommitted)
      a.fault(c.copies[static_cast<std::size_t>(id)].node, "R-HZ06",
              "this async_load is never committed; async_load_commit_group() and a wait after it are missing");
    u32 const known = a.now[a.run.clocks.copies(a.id)];
    for (std::size_t k = 0; k < c.groups.size(); ++k)
      if (async_group const& g = c.groups[k]; !g.empty && known < static_cast<u32>(g.last) + 1)
        a.fault(g.node, "R-HZ06", "the group committed here is never waited for before the kernel ends; add async_load_wait_group(0)");
    u32 const stored = a.now[a.run.clocks.stores(a.id)];
    for (std::size_t k = stored; k < c.stores.size(); ++k)
      a.fault(c.stores[k].node, "R-HZ06", "this async_store_bulk is never waited for before the ", a.number == 0 ? "kernel" : "task",
              " ends; add async_store_wait(0)");
  }
  a.copies.deliver_stores(c.stores.size());
  if (a.number != 0) return;
  a.block.ended = true;
  a.block.at_end = a.now;
  if (a.checking()) check_copies_out(a);
  // Copies on barriers: whoever waits for the phase knows them, and hands that on when its task ends.
  for (int s = a.block.first_slot, end = s + a.run.clocks.slots_each; s < end && a.checking(); ++s) {
    barrier_state const& b = a.block.meeting.barriers[static_cast<std::size_t>(s)];
    if (b.engine_phase > b.phase && b.last >= 0)
      a.fault(b.last, "R-HZ06", "copies on ", a.block.barrier_name(s), " phase ", b.phase, " are never waited for before the kernel ends: ",
              b.signalled, " of ", b.expected, " B and ", b.arrivals - b.pending, " of ", b.arrivals, " arrivals came");
    else if (b.engine_phase > a.now[a.run.clocks.barrier(s)])
      a.fault(b.last, "R-HZ06", "nobody waits for the copies on ", a.block.barrier_name(s), " phase ", b.phase - 1, " before the kernel ends");
  }
  if (!a.block.group.alone()) {
    for (std::unique_ptr<cta> const& c : a.block.group.ctas)
      if (!c->ended) return;
    check_reached(a);
  }
  while (a.block.meeting.deliver_one(a)) {}
}

} // namespace kiln::interpreter
