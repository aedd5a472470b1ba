// CTAs of a cluster: running them together, reaching each other's memory and barriers, and what is wrong with that.
#include "src/interpreter/bodies.hpp"
#include "src/interpreter/local_access.hpp"

#include <algorithm>

namespace kiln::interpreter {

// -- running -----------------------------------------------------------------------------------------------------------------

cluster::cluster(launch& l, i32 the_number, dims id)
    : run(l), number(the_number), meeting(l.graph, l.clocks), agents(static_cast<std::size_t>(l.clocks.agents)) {
  agent_names();
  dims const c = l.clocks.ctas > 1 ? l.graph.attrs.cluster : dims{};
  for (int r = 0; r < l.clocks.ctas; ++r)
    ctas.push_back(std::make_unique<cta>(*this, r, dims{id.x + r % c.x, id.y + r / c.x % c.y, id.z + r / (c.x * c.y)}));
}
cluster::~cluster() = default;

bool cluster::done() const {
  return std::all_of(ctas.begin(), ctas.end(), [](std::unique_ptr<cta> const& c) { return c->thread.done(); });
}

void cluster::resume() {
  if (alone()) return ctas[0]->thread.resume();
  std::vector<cta*> ready;
  for (std::unique_ptr<cta> const& c : ctas)
    if (!c->thread.done() && (!c->worker->ready || c->worker->ready())) ready.push_back(c.get());
  if (ready.empty()) {
    if (!meeting.deliver_one(*ctas[0]->worker)) ctas[0]->deadlock();
    return;
  }
  turn_ = run.options.seed == 1 && run.options.policy == completion::late ? turn_ + 1 : run.random();
  ready[turn_ % ready.size()]->thread.resume();
}

void cluster::agent_names() {
  graph_view const& g = run.graph;
  for (int r = 0; r < run.clocks.ctas; ++r) {
    std::string const of = run.clocks.ctas == 1 ? "" : " of CTA " + std::to_string(r);
    names.push_back(of.empty() ? "the kernel" : "CTA " + std::to_string(r));
    int task = 0;
    for (int i = 0; i < g.size(); ++i) {
      if (g[i].code == op::tasks_begin) task = 0;
      if (g[i].code != op::task_begin) continue;
      std::string const given = g.string(static_cast<int>(g.attribute(i, 4)));
      std::string const name = !given.empty() ? "task " + given : g.attribute(i, 0) == 0 ? "the default task" : "task " + std::to_string(task);
      ++task;
      for (int k = 0; k < g.attribute(i, 2); ++k) names.push_back((g.attribute(i, 2) > 1 ? name + " replica " + std::to_string(k) : name) + of);
    }
  }
}

cta::cta(cluster& c, int r, dims i)
    : run(c.run), group(c), id(i), rank(r), first_agent(r * c.run.clocks.each), first_slot(r * c.run.clocks.slots_each),
      local(c.run.arena, c.run.clocks, c.run.options), meeting(c.meeting), agents(c.agents), names(c.names),
      worker(std::make_unique<agent>(*this, first_agent)), thread([this] { worker->run_kernel(); }) {
  agents[static_cast<std::size_t>(first_agent)] = worker.get();
}
cta::~cta() = default;

// -- what is known of each other -----------------------------------------------------------------------------------------------

namespace {

std::string cta_text(int rank) { return "CTA " + std::to_string(rank); }

/// The CTA that operand j names; out of range: reported, and CTA 0.
cta& target_of(agent& a, int i, int j) {
  i64 rank = int_of(a.in(i, j).at(0));
  i64 const n = a.run.clocks.ctas;
  if (rank < 0 || rank >= n) {
    a.fault(i, "R-BD01", name_of(a.at(i).code), ": rank ", rank, ", valid 0..", n - 1);
    rank = 0;
  }
  return *a.block.group.ctas[static_cast<std::size_t>(rank)];
}

/// A barrier of this CTA, in another.
int slot_in(agent const& a, int slot, cta const& target) { return slot - a.block.first_slot + target.first_slot; }

} // namespace

void cta::touch(agent& by, int node, int lane, u32 value) {
  if (&by.block == this || !by.checking()) return;
  if (by.now[first_agent] == 0 && by.news(node, "R-HZ11"))
    by.fault(node, "R-HZ11", kiln::name_of(by.at(node).code), " to ", cta_text(rank), ": no cluster_barrier or arrival orders it after the start of ", cta_text(rank));
  if (ended && by.news(node, "R-HZ11"))
    by.fault(node, "R-HZ11", kiln::name_of(by.at(node).code), " to ", cta_text(rank), ", which has ended; a cluster_barrier, or an arrival that it waits for, must follow");
  if (touched.empty()) touched.resize(static_cast<std::size_t>(run.clocks.count));
  int const at = lane < 0 ? by.id : lane;
  touched[static_cast<std::size_t>(at)] = {lane < 0 ? by.now[by.id] : value, node, by.id};
}

void check_reached(agent& a) {
  if (!a.checking()) return;
  for (std::unique_ptr<cta> const& c : a.block.group.ctas)
    for (std::size_t lane = 0; lane < c->touched.size(); ++lane) {
      remote_touch const& t = c->touched[lane];
      if (t.node < 0 || t.value <= c->at_end[static_cast<int>(lane)] || !a.news(t.node, "R-HZ11")) continue;
      a.fault(t.node, "R-HZ11", name_of(a.at(t.node).code), " to ", cta_text(c->rank), " (by ", a.block.name_of(t.agent), "): no cluster_barrier or arrival orders it before the exit of ",
              cta_text(c->rank));
    }
}

void check_copies_out(agent& a) {
  lanes const& l = a.run.clocks;
  local_memory& local = a.block.local;
  if (l.readers <= 2 * l.each) return;
  for (std::size_t byte = 0; byte < local.shadow.size(); ++byte)
    for (int k = 2 * l.each; k < l.readers; ++k)
      if (byte_read const& r = local.reads_of(static_cast<i32>(byte))[k]; r.node >= 0 && r.value > a.now[r.lane] && a.news(r.node, "R-HZ06"))
        a.fault(r.node, "R-HZ06", "this async_remote_copy may still read the memory of the CTA when it ends; learn first, by an arrival from the CTA that it goes to, that it is complete");
}

void check_remote_barrier(agent& a, int node, int slot) {
  cta& target = *a.block.group.ctas[static_cast<std::size_t>(slot / a.run.clocks.slots_each)];
  if (&target == &a.block || !a.checking()) return;
  barrier_state const& b = a.block.meeting.barriers[static_cast<std::size_t>(slot)];
  if ((b.ready == 0 || a.now[b.ready_by] < b.ready) && a.news(node, "R-BR07"))
    a.fault(node, "R-BR07", a.block.barrier_name(slot), " is used from another CTA, but nothing orders this after its fence_mbarrier_init_cluster; a cluster_barrier must follow that");
  target.touch(a, node);
}

// -- bodies --------------------------------------------------------------------------------------------------------------------

void body<op::cluster_rank>::run(agent& a, int i) { a.fresh(i).bits[0] = static_cast<u64>(a.block.rank); }

void body<op::remote_barrier>::run(agent& a, int i) {
  a.out(i).bits.assign(1, static_cast<u64>(slot_in(a, static_cast<int>(a.in(i, 0).bits[0]), target_of(a, i, 1))));
}

void body<op::fence_barrier_init>::run(agent& a, int i) {
  ++a.now[a.id];
  for (int s = 0; s < a.run.clocks.slots_each; ++s)
    if (barrier_state& b = a.block.meeting.barriers[static_cast<std::size_t>(a.block.first_slot + s)]; b.node < i && b.ready == 0) {
      b.ready = a.now[a.id];
      b.ready_by = a.id;
    }
}

void body<op::cluster_barrier>::run(agent& a, int i) {
  a.pause();
  a.block.meeting.meet_cluster(a, i);
}

void body<op::remote_store>::run(agent& a, int i) {
  data const &view = a.in(i, 0), &v = a.in(i, 1);
  cta& target = target_of(a, i, 2);
  local_access x(a, i, view, local_access::engine::none, &target);
  target.touch(a, i);
  dtype const t = a.at(a.graph.operand(i, 0)).type;
  for (std::size_t e = 0; e < v.bits.size(); ++e) x.write(view.offsets[e], convert(v.at(e), t).bits);
}

namespace {

/// Issues a write to another CTA whose bytes count on a barrier there.
void send(agent& a, int i, cta& target, engine_event e, i32 width) {
  data const& view = a.in(i, 0);
  int const slot = slot_in(a, static_cast<int>(a.in(i, 3).bits[0]), target);
  check_remote_barrier(a, i, slot);
  u32 const phase = a.block.meeting.barriers[static_cast<std::size_t>(slot)].phase + 1;
  target.touch(a, i, a.run.clocks.barrier(slot), phase);
  e.slot = slot;
  e.node = i;
  e.bytes = static_cast<i64>(view.offsets.size()) * width;
  e.cta = target.rank;
  e.copy.node = i;
  e.copy.buffer = view.buffer;
  e.copy.element_bytes = width;
  e.copy.offsets = view.offsets;
  e.copy.traced = a.trace_copy(i, a.graph.operand(i, 0), e.bytes, "copy into", " of " + cta_text(target.rank));
  target.local.begin(e.copy, a.run.clocks.barrier(slot), phase);
  a.block.meeting.issue(a, std::move(e));
}

} // namespace

void body<op::async_remote_store>::run(agent& a, int i) {
  data const &view = a.in(i, 0), &v = a.in(i, 1);
  cta& target = target_of(a, i, 2);
  local_access x(a, i, view, local_access::engine::copy, &target);
  dtype const t = a.at(a.graph.operand(i, 0)).type;
  engine_event e;
  for (std::size_t k = 0; k < view.offsets.size(); ++k) {
    x.claim(view.offsets[k]);
    e.copy.what.push_back(async_copy::part::other);
    e.copy.source.push_back(convert(v.at(k), t).bits);
  }
  send(a, i, target, std::move(e), x.width());
}

void body<op::async_remote_copy>::run(agent& a, int i) {
  data const &view = a.in(i, 0), &from = a.in(i, 1);
  cta& target = target_of(a, i, 2);
  int const slot = slot_in(a, static_cast<int>(a.in(i, 3).bits[0]), target);
  u32 const phase = a.block.meeting.barriers[static_cast<std::size_t>(slot)].phase + 1;
  local_access to(a, i, view, local_access::engine::bulk, &target), source(a, i, from, local_access::engine::bulk);
  engine_event e;
  for (std::size_t k = 0; k < view.offsets.size(); ++k) {
    to.claim(view.offsets[k]);
    if (a.checking()) source.note_read(from.offsets[k], target.rank, slot, phase);
    e.copy.what.push_back(async_copy::part::copy);
    e.copy.source.push_back(reinterpret_cast<std::uintptr_t>(a.block.local.bytes.data() + from.offsets[k]));
  }
  send(a, i, target, std::move(e), to.width());
}

} // namespace kiln::interpreter
