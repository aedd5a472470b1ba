// Barriers, bulk copies, and the rules of both.
#include "src/interpreter/rendezvous.hpp"

#include "src/interpreter/access.hpp"
#include "src/interpreter/bodies.hpp"
#include "src/interpreter/local_access.hpp"

namespace kiln::interpreter {

rendezvous::rendezvous(graph_view const& g, lanes const& l) {
  all.arrived = all.completed = clock(l.count);
  for (int i = 0; i < g.size(); ++i) {
    if (g[i].code == op::named_barrier_wait || g[i].code == op::named_barrier_arrive) {
      if (named.empty()) {
        named.resize(static_cast<std::size_t>(l.ctas * lanes::named_barriers));
        for (named_state& s : named) {
          s.arrived = s.completed = clock(l.count);
          s.here.assign(static_cast<std::size_t>(l.agents), false);
        }
      }
    }
    if (g[i].code != op::alloc_barriers) continue;
    for (int k = 0; k < g.attribute(i, 0); ++k) {
      barrier_state b;
      b.node = i;
      b.index = k;
      b.arrivals = b.pending = g.attribute(i, 1);
      b.per_thread = g.attribute(i, 2) != 0;
      b.arrived = b.completed = clock(l.count);
      b.waited.assign(static_cast<std::size_t>(l.agents), 0);
      barriers.push_back(std::move(b));
    }
  }
  for (int more = (l.ctas - 1) * l.slots_each, k = 0; k < more; ++k) barriers.push_back(barriers[static_cast<std::size_t>(k)]); // of the other CTAs
}

void rendezvous::member(agent& a, int node, int slot) {
  barrier_state const& b = barriers[static_cast<std::size_t>(slot)];
  if (!a.checking() || a.now[a.run.clocks.barrier(slot)] >= b.phase) return;
  if (a.news(node, "R-BR03"))
    a.fault(node, "R-BR03", a.block.barrier_name(slot), ": this arrival may belong to phase ", b.phase - 1, " or ", b.phase,
            "; nothing orders it after the completion of phase ", b.phase - 1, " (last arrival at ", a.line_of(b.last), " in ",
            a.block.name_of(b.last_agent), ")");
}

void rendezvous::complete(agent& a, int node, int slot) {
  barrier_state& b = barriers[static_cast<std::size_t>(slot)];
  if (b.pending > 0 || b.signalled < b.expected) return;
  int const lane = a.run.clocks.barrier(slot);
  if (b.pending < 0 && a.checking() && a.news(node, "R-BR03"))
    a.fault(node, "R-BR03", a.block.barrier_name(slot), " phase ", b.phase, ": ", b.arrivals - b.pending, " arrivals for a count of ",
            b.arrivals, "; which phase they belong to depends on timing");
  if (b.issued > b.expected && a.checking() && a.news(node, "R-BR01"))
    a.fault(node, "R-BR01", a.block.barrier_name(slot), " phase ", b.phase, ": ", b.expected, " B expected, ", b.issued,
            " B signalled; waits would pass early");
  if (a.checking())
    for (std::size_t k = 0; k < b.waited.size(); ++k)
      if (b.waited[k] > b.arrived[static_cast<int>(k)]) {
        if (a.news(node, "R-BR04"))
          a.fault(node, "R-BR04", a.block.barrier_name(slot), ": a wait in ", a.block.name_of(static_cast<int>(k)),
                  " is not ordered before phase ", b.phase, " completes here, and may see the phase after it");
        break;
      }
  b.arrived[lane] = ++b.phase;
  b.completed = b.arrived;
  b.completed_by = b.cause;
  b.pending = b.arrivals;
  b.expected = b.signalled = b.issued = 0;
}

void rendezvous::arrive(agent& a, int node, int slot, i64 count) {
  barrier_state& b = barriers[static_cast<std::size_t>(slot)];
  member(a, node, slot);
  a.begun();
  b.cause = a.began;
  b.arrived.join(a.now);
  ++a.now[a.id];
  b.pending -= count;
  b.last = node;
  b.last_agent = a.id;
  complete(a, node, slot);
}

void rendezvous::expect(agent& a, int node, int slot, i64 bytes) {
  barriers[static_cast<std::size_t>(slot)].expected += bytes;
  arrive(a, node, slot, 1);
}

void rendezvous::wait(agent& a, int node, int slot, bool parity) {
  barrier_state& b = barriers[static_cast<std::size_t>(slot)];
  a.wait_until(node, [&b, parity] { return ((b.phase & 1) != 0) != parity; });
  u32 const n = b.phase;
  a.released.cause = b.completed_by;
  a.released.phase = static_cast<i64>(n) - 1;
  if (n > 0 && a.checking() && a.now[a.run.clocks.barrier(slot)] + 1 < n && a.news(node, "R-BR04"))
    a.fault(node, "R-BR04", a.block.barrier_name(slot), ": this wait cannot tell phase ", n - 1, " from phase ", static_cast<i64>(n) - 3,
            "; flip its parity each round");
  if (n > 0) a.now.join(b.completed);
  b.waited[static_cast<std::size_t>(a.id)] = a.now[a.id];
}

void rendezvous::meet_cluster(agent& a, int node) {
  all.arrived.join(a.now);
  ++a.now[a.id];
  all.last = node;
  u32 const mine = all.generation;
  if (++all.present == a.run.clocks.ctas) {
    all.present = 0;
    ++all.generation;
    all.completed = all.arrived;
    all.completed_by = a.began;
  }
  a.wait_until(node, [this, mine] { return all.generation != mine; });
  a.released.cause = all.completed_by;
  a.now.join(all.completed);
}

void rendezvous::meet(agent& a, int node, int id, i64 threads, bool wait) {
  int const which = a.block.rank * lanes::named_barriers + id;
  named_state& s = named[static_cast<std::size_t>(which)];
  int const lane = a.run.clocks.named(which);
  auto const me = static_cast<std::size_t>(a.id);
  auto refuse = [&](auto const&... why) {
    if (a.checking() && a.news(node, "R-BR08")) a.fault(node, "R-BR08", "named barrier ", id, why...);
  };
  if (s.present > 0 && s.threads != threads) refuse(": counts ", s.threads, " (", a.line_of(s.last), ") and ", threads, " differ");
  if (a.now[lane] < s.generation) refuse(": nothing orders this after generation ", s.generation - 1, ", which ended at ", a.line_of(s.last));
  if (s.here[me]) refuse(": ", a.block.name_of(a.id), " arrives twice in one generation");
  s.here[me] = true;
  s.threads = threads;
  s.present += a.threads;
  s.last = node;
  s.arrived.join(a.now);
  ++a.now[a.id];
  u32 const mine = s.generation;
  if (s.present > threads) refuse(": ", s.present, " threads arrive at a barrier for ", threads);
  if (s.present >= threads) {
    s.present = 0;
    s.here.assign(s.here.size(), false);
    s.arrived[lane] = ++s.generation;
    s.completed = s.arrived;
    a.begun();
    s.completed_by = a.began;
  }
  if (!wait) return;
  a.wait_until(node, [&s, mine] { return s.generation != mine; });
  a.released.cause = s.completed_by;
  a.now.join(s.completed);
}

// -- engines -----------------------------------------------------------------------------------------------------------------

void rendezvous::issue(agent& a, engine_event e) {
  barrier_state& b = barriers[static_cast<std::size_t>(e.slot)];
  member(a, e.node, e.slot);
  a.begun();
  b.issued += e.bytes;
  b.engine_phase = b.phase + 1;
  b.last = e.node;
  b.last_agent = a.id;
  e.by = a.id;
  e.cause = a.began;
  e.known = a.now;
  b.arrived.join(a.now);
  ++a.now[a.id];
  if (a.run.options.policy == completion::early) land(a, std::move(e));
  else events.push_back(std::move(e));
}

void rendezvous::land(agent& a, engine_event e) {
  barrier_state& b = barriers[static_cast<std::size_t>(e.slot)];
  b.cause = e.cause;
  if (e.arrivals > 0) {
    if (agent* const owner = a.block.agents[static_cast<std::size_t>(e.by)]) owner->copies.deliver_copies(e.copies);
    e.known.raise(a.run.clocks.copies(e.by), e.copies);
    b.arrived.join(e.known);
    b.pending -= e.arrivals;
  } else {
    a.block.group.ctas[static_cast<std::size_t>(e.cta)]->local.deliver(e.copy);
    b.signalled += e.bytes;
  }
  complete(a, e.node, e.slot);
}

bool rendezvous::deliver_one(agent& a) {
  if (events.empty()) return false;
  auto const k = static_cast<std::ptrdiff_t>(a.run.random() % events.size());
  engine_event e = std::move(events[static_cast<std::size_t>(k)]);
  events.erase(events.begin() + k);
  land(a, std::move(e));
  return true;
}

void rendezvous::advance(agent& a) {
  if (a.run.options.policy != completion::random) return;
  while (!events.empty() && a.run.random() % 4 == 0) deliver_one(a);
}

// -- bodies ------------------------------------------------------------------------------------------------------------------

void body<op::alloc_barriers>::run(agent& a, int i) {
  a.out(i).bits.assign(1, static_cast<u64>(a.block.first_slot + a.run.clocks.first_slot[static_cast<std::size_t>(i)]));
}

void body<op::barrier_index>::run(agent& a, int i) {
  int const from = a.graph.operand(i, 0);
  auto const first = static_cast<int>(a.in(i, 0).bits[0]);
  i64 const n = a.graph.attribute(from, 0);
  i64 k = int_of(a.in(i, 1).at(0));
  if (k < 0 || k >= n) {
    std::string const name = a.block.barrier_name(first);
    a.fault(i, "R-BD05", name.substr(0, name.rfind('[')), ": index ", k, ", valid 0..", n - 1);
    k = 0;
  }
  a.out(i).bits.assign(1, static_cast<u64>(first + k));
}

namespace {
int slot_of(agent& a, int i, int j) { return static_cast<int>(a.in(i, j).bits[0]); }
bool refused(agent& a, int i, int j) {
  data const* const p = a.optional(i, j);
  return p && p->bits[0] == 0;
}
} // namespace

void body<op::barrier_wait>::run(agent& a, int i) {
  if (refused(a, i, 2)) return;
  a.pause();
  a.block.meeting.wait(a, i, slot_of(a, i, 0), (a.in(i, 1).bits[0] & 1) != 0);
}

void body<op::barrier_arrive>::run(agent& a, int i) {
  if (refused(a, i, 1)) return;
  a.pause();
  int const slot = slot_of(a, i, 0);
  if (a.at(a.graph.operand(i, 0)).code == op::remote_barrier) check_remote_barrier(a, i, slot);
  i64 const each = a.block.meeting.barriers[static_cast<std::size_t>(slot)].per_thread ? a.threads : 1;
  a.block.meeting.arrive(a, i, slot, each * a.graph.attribute(i, 0));
}

void body<op::barrier_expect_bytes>::run(agent& a, int i) {
  if (refused(a, i, 1)) return;
  a.pause();
  a.block.meeting.expect(a, i, slot_of(a, i, 0), a.graph.attribute(i, 0));
}

void body<op::named_barrier_wait>::run(agent& a, int i) {
  a.pause();
  a.block.meeting.meet(a, i, static_cast<int>(a.graph.attribute(i, 0)), a.graph.attribute(i, 1), true);
}

void body<op::named_barrier_arrive>::run(agent& a, int i) {
  a.pause();
  a.block.meeting.meet(a, i, static_cast<int>(a.graph.attribute(i, 0)), a.graph.attribute(i, 1), false);
}

void body<op::agent_sync>::run(agent& a, int) { a.pause(); }

void body<op::fence>::run(agent& a, int i) {
  if (static_cast<fence>(a.graph.attribute(i, 0)) != fence::async_shared) { // between CTAs
    a.run.global.release(a);
    a.run.global.acquire(a);
    return;
  }
  lanes const& l = a.run.clocks;
  for (int k = 0; k < l.agents; ++k) a.now.raise(l.fences(k), a.now[k]);
  ++a.now[a.id];
}

void body<op::async_arrive>::run(agent& a, int i) {
  a.pause();
  engine_event e;
  e.slot = slot_of(a, i, 0);
  e.node = i;
  e.arrivals = a.threads;
  e.copies = static_cast<u32>(a.copies.copies.size());
  for (int c : a.copies.uncommitted) a.copies.copies[static_cast<std::size_t>(c)].group = async_copy::on_barrier;
  a.copies.uncommitted.clear();
  a.block.meeting.issue(a, std::move(e));
}

void body<op::async_load_bulk>::run(agent& a, int i) {
  if (refused(a, i, 3)) return;
  using part = async_copy::part;
  data const& view = a.in(i, 1);
  local_access to(a, i, view, local_access::engine::bulk);
  access from(a, i, 0, a.shape_of(a.graph.operand(i, 1)), "async_load_bulk");
  int const slot = slot_of(a, i, 2);
  engine_event e;
  e.slot = slot;
  e.node = i;
  e.bytes = static_cast<i64>(from.size()) * to.width();
  e.cta = a.block.rank;
  e.copy.node = i;
  e.copy.buffer = view.buffer;
  e.copy.element_bytes = to.width();
  e.copy.offsets = view.offsets;
  for (std::size_t k = 0; k < from.size(); ++k) {
    to.claim(view.offsets[k]);
    bool const allowed = from.allowed(k);
    if (allowed) from.note_read(k);
    e.copy.what.push_back(allowed ? part::copy : part::poison);
    e.copy.source.push_back(from.address(k));
  }
  e.copy.traced = a.trace_copy(i, a.graph.operand(i, 1), e.bytes, "copy into");
  a.block.local.begin(e.copy, a.run.clocks.barrier(slot), a.block.meeting.barriers[static_cast<std::size_t>(slot)].phase + 1);
  a.block.meeting.issue(a, std::move(e));
}

void body<op::async_store_bulk>::run(agent& a, int i) {
  data const& view = a.in(i, 1);
  local_access source(a, i, view, local_access::engine::bulk);
  access to(a, i, 0, a.shape_of(a.graph.operand(i, 1)), "async_store_bulk");
  bool allowed = true;
  for (std::size_t k = 0; k < to.size(); ++k) {
    bool const this_one = to.allowed(k);
    if (this_one) to.note_write(k, a.block.local.read(view.offsets[k], source.width()), true);
    allowed = this_one && allowed;
    if (a.checking()) source.note_read(view.offsets[k]);
  }
  bulk_store s;
  s.node = i;
  s.offset = view.offsets[0];
  s.bytes = static_cast<i64>(to.size()) * source.width();
  s.traced = a.trace_copy(i, a.graph.operand(i, 1), s.bytes, "copy from");
  if (allowed) s.to = reinterpret_cast<void*>(static_cast<std::uintptr_t>(to.address(0)));
  a.copies.add(s);
}

void body<op::async_store_wait>::run(agent& a, int i) {
  a.pause();
  i64 const n = static_cast<i64>(a.copies.stores.size()) - a.graph.attribute(i, 0);
  if (n <= 0) return;
  a.copies.deliver_stores(static_cast<std::size_t>(n));
  a.released.copy = a.copies.stores[static_cast<std::size_t>(n) - 1].traced;
  a.now.raise(a.run.clocks.stores(a.id), static_cast<u32>(n));
  if (a.graph.attribute(i, 1) == 0) a.now.raise(a.run.clocks.globals(a.id), static_cast<u32>(n));
}

} // namespace kiln::interpreter
