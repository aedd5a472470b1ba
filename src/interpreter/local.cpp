// Bodies of local memory: views, synchronous accesses, asynchronous copies, and the hazards that they can have.
#include "src/interpreter/access.hpp"
#include "src/interpreter/bodies.hpp"
#include "src/interpreter/local_access.hpp"

#include <algorithm>

namespace kiln::interpreter {

namespace {

/// Byte `offset` of the arena as the user would call it: "as[2]".
std::string place(agent const& a, int b, i32 offset) {
  buffer_info const& info = a.graph.buffer(b);
  auto const k = static_cast<std::size_t>(b);
  if (!info.has_slots) return buffer_name(a, b);
  // The slot that starts last at or before the byte; in tensor memory, counted within the lane.
  local_form const& f = a.run.arena.form[k];
  i64 within = offset - a.run.arena.base[k];
  if (info.where == storage::tmem) within %= detail::storage_bytes(a.graph, f.storage);
  int slot = 0;
  for (int i = 1; i < info.slots; ++i)
    if (f.slots.at(i) <= within && f.slots.at(i) > f.slots.at(slot)) slot = i;
  return buffer_name(a, b) + "[" + std::to_string(slot) + "]";
}

} // namespace

std::string buffer_name(agent const& a, int b) {
  buffer_info const& info = a.graph.buffer(b);
  if (info.name >= 0) return a.graph.string(info.name);
  return "the buffer of " + a.line_of(info.node);
}

// -- one access ----------------------------------------------------------------------------------------------------------------

local_access::local_access(agent& a, int i, data const& view, engine who, cta* target)
    : agent_(a), target_(target ? *target : a.block), node_(i), buffer_(view.buffer), width_(static_cast<int>(bytes_of(a.graph.buffer(view.buffer).type))), who_(who) {
  a.pause();
  int const storage = a.run.arena.form[static_cast<std::size_t>(buffer_)].storage;
  if (!a.checking() || !a.run.arena.by_hand[static_cast<std::size_t>(storage)]) return;
  int const now = a.block.local.exists[static_cast<std::size_t>(storage)];
  if (now != 1 && a.news(i, "R-PA17"))
    a.fault(i, "R-PA17", buffer_name(a, buffer_), " is touched ", now == 0 ? "before its pool is committed" : "after " + a.line_of(-1 - now) + " gave its columns back");
}

u64 local_access::read(i32 offset) {
  local_memory& local = target_.local;
  if (!local.shadow.empty()) note_read(offset);
  return local.read(offset, width_);
}

void local_access::note_read(i32 offset) {
  lanes const& l = agent_.run.clocks;
  bool const stores = who_ != engine::none;
  u32 const now = stores ? static_cast<u32>(agent_.copies.stores.size()) + 1 : agent_.now[agent_.id];
  if (l.readers > 0)
    for (int b = 0; b < width_; ++b) target_.local.reads_of(offset + b)[agent_.number + (stores ? l.each : 0)] = {now, node_, -1};
  check_read(offset);
}

void local_access::note_read(i32 offset, int rank, int slot, u32 phase) {
  lanes const& l = agent_.run.clocks;
  for (int b = 0; b < width_; ++b) target_.local.reads_of(offset + b)[2 * l.each + rank * l.each + agent_.number] = {phase, node_, l.barrier(slot)};
  check_read(offset);
}

int local_access::agent_of(int reader) const { return target_.first_agent + reader % agent_.run.clocks.each; }
int local_access::lane_of(int reader, byte_read const& r) const {
  lanes const& l = agent_.run.clocks;
  return r.lane >= 0 ? r.lane : reader < l.each ? agent_of(reader) : l.stores(agent_of(reader));
}

void local_access::check_read(i32 offset) {
  local_memory& local = target_.local;
  lanes const& l = agent_.run.clocks;
  for (int b = 0; b < width_; ++b) {
    byte_shadow const& s = local.shadow[static_cast<std::size_t>(offset + b)];
    if (s.lane < 0) {
      if (agent_.news(node_, "R-HZ15")) fault("R-HZ15", offset, " is read before any write");
      return;
    }
    if (agent_.now[s.lane] < s.value) return hazard_of_read(s, offset);
    if (s.leaf != buffer_ && !may_read_of(s.leaf)) {
      char const* const rule = rule_of_sharing(false);
      if (agent_.news(node_, rule))
        fault(rule, offset, " is read, but its bytes were last written through ", place(agent_, s.leaf, offset), " (",
              agent_.line_of(s.writer), "); write it first", std::string_view(rule) == "R-AL16" ? ", or declare the pun with .allow_pun" : "");
      return;
    }
    if (s.poison) {
      if (agent_.news(node_, "R-HZ12"))
        fault("R-HZ12", offset, " is read where the async_load of ", agent_.line_of(s.writer),
              " masked elements off without .other; their contents are unspecified");
      return;
    }
    if (who_ != engine::none && s.generic && agent_.now[l.fences(writer_of(s))] < s.value) return unfenced(s, offset);
  }
}

bool local_access::may_read_of(int writer) const {
  return agent_.graph.may_read(buffer_, writer);
}

char const* local_access::rule_of_sharing(bool race) const {
  buffer_role const r = agent_.graph.buffer(agent_.graph.shown_by(buffer_)).role;
  return r == buffer_role::phase ? "R-PA07" : r == buffer_role::pooled ? "R-PA15" : race ? "R-AL17" : "R-AL16";
}

int local_access::read_through(int node) const {
  graph_view const& g = agent_.graph;
  int found = buffer_;
  for (int o : g.operands(node)) {
    if (o < 0 || g[o].kind != node_kind::view) continue;
    int const b = g.buffer_of(o);
    if (b == buffer_) return b;
    if (g.storage_of(b) == g.storage_of(buffer_)) found = b;
  }
  return found;
}

bool local_access::shared_hazard(byte_shadow const& s, i32 offset) {
  if (s.leaf == buffer_ || s.leaf < 0) return false;
  char const* const rule = rule_of_sharing(true);
  lanes const& l = agent_.run.clocks;
  if (!agent_.news(node_, rule)) return true;
  if (l.is_agent(s.lane))
    fault(rule, offset, " is touched, but nothing orders this after the write of the same bytes through ", place(agent_, s.leaf, offset), " (",
          agent_.line_of(s.writer), " in ", agent_.block.name_of(s.lane), "); signal a barrier after that write, and wait for it here");
  else
    fault(rule, offset, " is touched while the copy of ", agent_.line_of(s.writer), " into the same bytes of ", place(agent_, s.leaf, offset),
          " may be in flight; wait for it first");
  return true;
}

void local_access::write(i32 offset, u64 bits) {
  local_memory& local = target_.local;
  if (!local.shadow.empty()) {
    claim(offset);
    for (int b = 0; b < width_; ++b) {
      byte_shadow& s = local.shadow[static_cast<std::size_t>(offset + b)];
      s.poison = false;
      s.generic = true;
      s.leaf = static_cast<i16>(buffer_);
      s.writer = node_;
      s.lane = agent_.id;
      s.value = agent_.now[agent_.id];
    }
  }
  local.write(offset, width_, bits);
}

void local_access::claim(i32 offset) {
  local_memory& local = target_.local;
  if (local.shadow.empty()) return;
  lanes const& l = agent_.run.clocks;
  for (int b = 0; b < width_; ++b) {
    byte_shadow const& s = local.shadow[static_cast<std::size_t>(offset + b)];
    if (s.lane >= 0 && agent_.now[s.lane] < s.value) return hazard_of_write(s, offset);
    if (l.readers > 0) {
      byte_read const* const r = local.reads_of(offset + b);
      for (int k = 0; k < l.readers; ++k) {
        if (r[k].value > agent_.now[lane_of(k, r[k])]) return overtakes(k, r[k].node, offset);
      }
    }
    if (who_ == engine::bulk && s.lane >= 0 && s.generic && agent_.now[l.fences(writer_of(s))] < s.value) return unfenced(s, offset);
  }
}

template <class... Parts>
void local_access::fault(char const* rule, i32 offset, Parts const&... parts) {
  std::string const where = &target_ == &agent_.block ? "" : " of CTA " + std::to_string(target_.rank);
  agent_.fault(node_, rule, place(agent_, buffer_, offset), where, parts...);
}

namespace {

/// The copy behind a stamp in an agent's lane of copies.
async_copy const* copy_of(agent const& a, byte_shadow const& s) {
  lanes const& l = a.run.clocks;
  for (agent const* x : a.block.agents)
    if (x && s.lane == l.copies(x->id)) return &x->copies.copies[s.value - 1];
  return nullptr;
}

} // namespace

void local_access::hazard_of_read(byte_shadow const& s, i32 offset) {
  if (shared_hazard(s, offset)) return;
  lanes const& l = agent_.run.clocks;
  if (l.is_agent(s.lane)) {
    if (agent_.news(node_, "R-HZ13"))
      fault("R-HZ13", offset, " is read, but nothing orders this after the write of ", agent_.line_of(s.writer), " in ",
            agent_.block.name_of(s.lane), "; signal a barrier after the write, and wait for it here");
  } else if (l.is_barrier(s.lane)) {
    if (agent_.news(node_, "R-HZ01"))
      fault("R-HZ01", offset, " is read while the ", name_of(agent_.at(s.writer).code), " of ", agent_.line_of(s.writer), " may be in flight; wait for ",
            agent_.block.barrier_name(s.lane - l.agents), " phase ", s.value - 1, " first");
  } else if (async_copy const* const c = copy_of(agent_, s); c && c->group < 0) {
    // what is missing stands behind the load, so that is the statement to show
    agent_.fault(c->node, "R-HZ06", "the async_load into ", place(agent_, c->buffer, offset), " is not committed when ",
                 agent_.line_of(node_), " reads it; call async_load_commit_group() after it, then wait");
  } else if (agent_.news(node_, "R-HZ01")) {
    fault("R-HZ01", offset, " is read while the async_load of ", agent_.line_of(s.writer),
          " may be in flight; async_load_wait_group must cover it first");
  }
}

void local_access::hazard_of_write(byte_shadow const& s, i32 offset) {
  if (shared_hazard(s, offset)) return;
  lanes const& l = agent_.run.clocks;
  if (l.is_agent(s.lane)) {
    if (agent_.news(node_, "R-HZ13"))
      fault("R-HZ13", offset, " is written, but nothing orders this after the write of ", agent_.line_of(s.writer), " in ",
            agent_.block.name_of(s.lane), "; signal a barrier after that write, and wait for it here");
    return;
  }
  if (agent_.news(node_, "R-HZ02"))
    fault("R-HZ02", offset, " is written over the ", name_of(agent_.at(s.writer).code), " of ",
          agent_.line_of(s.writer), ", which may be in flight; wait for it first");
}

void local_access::overtakes(int reader, int node, i32 offset) {
  lanes const& l = agent_.run.clocks;
  if (reader >= 2 * l.each) {
    if (agent_.news(node_, "R-HZ04"))
      fault("R-HZ04", offset, " is written while the async_remote_copy of ", agent_.line_of(node), " may still read it; learn first, by an arrival from the CTA that it goes to, that it is complete");
    return;
  }
  if (reader >= l.each) {
    if (agent_.news(node_, "R-HZ04"))
      fault("R-HZ04", offset, " is written while the async_store_bulk of ", agent_.line_of(node), " may still read it; async_store_wait(0) first");
    return;
  }
  if (int const leaf = read_through(node); leaf != buffer_) {
    char const* const shared = rule_of_sharing(true);
    if (agent_.news(node_, shared))
      fault(shared, offset, " is written, but nothing orders this after the read of the same bytes through ", place(agent_, leaf, offset), " (",
            agent_.line_of(node), " in ", agent_.block.name_of(agent_of(reader)), "); wait for a barrier that it signals after that read");
    return;
  }
  char const* const rule = who_ == engine::none ? "R-HZ13" : "R-HZ03";
  if (agent_.news(node_, rule))
    fault(rule, offset, " is written, but nothing orders this after the read of ", agent_.line_of(node), " in ",
          agent_.block.name_of(agent_of(reader)), "; wait for a barrier that it signals after that read");
}

void local_access::unfenced(byte_shadow const& s, i32 offset) {
  if (agent_.news(node_, "R-HZ05"))
    fault("R-HZ05", offset, " is reached by a bulk copy after the ordinary write of ", agent_.line_of(s.writer),
          " without fence(fence::async_shared) between them");
}

namespace {

/// An index into `extent` things, from a runtime value: reported and brought into range.
i64 checked_index(agent& a, int i, int buffer, char const* what, data const& index, i64 extent) {
  i64 const k = int_of(index.at(0));
  if (k >= 0 && k < extent) return k;
  a.fault(i, "R-BD10", buffer_name(a, buffer), ": runtime ", what, " ", k, ", valid 0..", extent - 1);
  return 0;
}

} // namespace

// -- views ---------------------------------------------------------------------------------------------------------------------

void body<op::alloc>::run(agent& a, int i) { a.out(i).buffer = static_cast<int>(a.graph.attribute(i, 0)); }

namespace {
void set_existing(agent& a, int i, bool begins) {
  a.pause();
  int const b = a.in(i, 0).buffer;
  int& now = a.block.local.exists[static_cast<std::size_t>(b)];
  if (a.checking() && begins && now == 1 && a.news(i, "R-PA17"))
    a.fault(i, "R-PA17", buffer_name(a, b), " is allocated in tensor memory a second time; dealloc it first");
  if (a.checking() && !begins && now != 1 && a.news(i, "R-PA17"))
    a.fault(i, "R-PA17", buffer_name(a, b), " is given back, but it is not allocated", now < 0 ? " any more (" + a.line_of(-1 - now) + " gave it back)" : std::string(" yet"));
  now = begins ? 1 : -1 - i;
}
} // namespace
void body<op::tensor_alloc>::run(agent& a, int i) { set_existing(a, i, true); }
void body<op::tensor_dealloc>::run(agent& a, int i) { set_existing(a, i, false); }

void body<op::view_index>::run(agent& a, int i) {
  int const from = a.graph.operand(i, 0);
  data const& source = a.in(i, 0);
  data& d = a.out(i);
  d.buffer = source.buffer;
  auto const n = static_cast<std::size_t>(a.shape_of(i).elements());
  if (a.at(from).kind == node_kind::buffers) {
    buffer_info const& info = a.graph.buffer(source.buffer);
    auto const b = static_cast<std::size_t>(source.buffer);
    i64 const slot = checked_index(a, i, source.buffer, "index", a.in(i, 1), info.slots);
    local_form const& f = a.run.arena.form[b];
    i64 const base = a.run.arena.base[b] + f.slots.at(slot);
    d.offsets.resize(n);
    odometer c(a.shape_of(i));
    for (std::size_t e = 0; e < n; ++e, c.next()) {
      i64 at = 0;
      for (int axis = 0; axis < a.shape_of(i).rank; ++axis) at += c[axis] * f.stride[axis];
      d.offsets[e] = static_cast<i32>(base + place_in_slot(f, info.type, at));
    }
    return;
  }
  auto const k = static_cast<std::size_t>(checked_index(a, i, source.buffer, "index", a.in(i, 1), a.shape_of(from).extent[0]));
  auto const first = source.offsets.begin() + static_cast<std::ptrdiff_t>(k * n);
  d.offsets.assign(first, first + static_cast<std::ptrdiff_t>(n));
}

void body<op::view_trans>::run(agent& a, int i) {
  shape const& from = a.shape_of(a.graph.operand(i, 0));
  strides const step(from);
  auto const axes = a.graph.attributes_of(i);
  data const& source = a.in(i, 0);
  data& d = a.out(i);
  d.buffer = source.buffer;
  d.offsets.resize(source.offsets.size());
  odometer c(a.shape_of(i));
  for (std::size_t e = 0; e < d.offsets.size(); ++e, c.next()) {
    i64 k = 0;
    for (int axis = 0; axis < from.rank; ++axis) k += c[axis] * step.of[axes[static_cast<std::size_t>(axis)]];
    d.offsets[e] = source.offsets[static_cast<std::size_t>(k)];
  }
}

void body<op::view_slice>::run(agent& a, int i) {
  shape const& from = a.shape_of(a.graph.operand(i, 0));
  shape const& to = a.shape_of(i);
  data const& source = a.in(i, 0);
  i64 offset[max_rank]{};
  for (int axis = 0; axis < from.rank; ++axis) {
    i64& o = offset[axis];
    o = int_of(a.in(i, axis + 1).at(0));
    int const e = to.extent[axis], whole = from.extent[axis];
    if (o < 0 || o > whole - e) {
      a.fault(i, "R-BD10", buffer_name(a, source.buffer), ": runtime slice offset ", o, " on axis ", axis, ", valid 0..", whole - e);
      o = 0;
    } else if (o % e != 0) {
      a.fault(i, "R-BD10", buffer_name(a, source.buffer), ": runtime slice offset ", o, " on axis ", axis,
              " is not a multiple of the slice's extent ", e);
    }
  }
  strides const step(from);
  data& d = a.out(i);
  d.buffer = source.buffer;
  d.offsets.resize(static_cast<std::size_t>(to.elements()));
  odometer c(to);
  for (std::size_t e = 0; e < d.offsets.size(); ++e, c.next()) {
    i64 k = 0;
    for (int axis = 0; axis < from.rank; ++axis) k += (offset[axis] + c[axis]) * step.of[axis];
    d.offsets[e] = source.offsets[static_cast<std::size_t>(k)];
  }
}

void body<op::view_reshape>::run(agent& a, int i) {
  data& d = a.out(i);
  d.buffer = a.in(i, 0).buffer;
  d.offsets = a.in(i, 0).offsets;
}

// -- synchronous accesses ------------------------------------------------------------------------------------------------------------

void read_view(agent& a, int i, data const& view, std::vector<u64>& bits) {
  local_access x(a, i, view);
  dtype const t = a.graph.buffer(view.buffer).type, to = a.run.carrier(t);
  bits.resize(view.offsets.size());
  for (std::size_t e = 0; e < bits.size(); ++e) {
    u64 const b = x.read(view.offsets[e]);
    bits[e] = t == to ? b : convert(scalar{t, b}, to).bits;
  }
}

void body<op::local_load>::run(agent& a, int i) { read_view(a, i, a.in(i, 0), a.fresh(i).bits); }

void body<op::local_store>::run(agent& a, int i) {
  data const &view = a.in(i, 0), &v = a.in(i, 1);
  local_access x(a, i, view);
  dtype const t = a.at(a.graph.operand(i, 0)).type;
  for (std::size_t e = 0; e < v.bits.size(); ++e) x.write(view.offsets[e], convert(v.at(e), t).bits);
}

namespace {

/// The view's element that coordinate c of the index tile names: c with c[axis] := index. Reports R-BD11; -1 then.
i64 indexed(agent& a, int i, char const* what, data const& view, shape const& from, data const& index, shape const& to,
            int axis, std::size_t e, odometer const& c, strides const& step) {
  i64 const k = int_of(index.at(e));
  if (k < 0 || k >= from.extent[axis]) {
    if (a.news(i, "R-BD11"))
      a.fault(i, "R-BD11", what, buffer_name(a, view.buffer), ": index ", k, " at ", agent::coordinates(to, e),
              ", valid 0..", from.extent[axis] - 1);
    return -1;
  }
  i64 at = k * step.of[axis];
  for (int d = 0; d < from.rank; ++d)
    if (d != axis) at += c[d] * step.of[d];
  return at;
}

} // namespace

void body<op::local_gather>::run(agent& a, int i) {
  data const &view = a.in(i, 0), &index = a.in(i, 1);
  shape const& from = a.shape_of(a.graph.operand(i, 0));
  strides const step(from);
  data& d = a.fresh(i);
  local_access x(a, i, view);
  odometer c(a.shape_of(i));
  for (std::size_t e = 0; e < d.bits.size(); ++e, c.next()) {
    i64 const at = indexed(a, i, "local_gather from ", view, from, index, a.shape_of(i),
                           static_cast<int>(a.graph.attribute(i, 0)), e, c, step);
    d.bits[e] = at < 0 ? 0 : convert(scalar{a.at(i).type, x.read(view.offsets[static_cast<std::size_t>(at)])}, d.type).bits;
  }
}

void body<op::local_scatter>::run(agent& a, int i) {
  data const &view = a.in(i, 0), &v = a.in(i, 1), &index = a.in(i, 2);
  shape const& to = a.shape_of(a.graph.operand(i, 0));
  shape const& values = a.shape_of(a.graph.operand(i, 1));
  bool const unique = a.graph.attribute(i, 1) != 0;
  dtype const t = a.at(a.graph.operand(i, 0)).type;
  strides const step(to);
  local_access x(a, i, view);
  std::vector<i64> written(view.offsets.size(), -1); // which value went there
  odometer c(values);
  for (std::size_t e = 0; e < v.bits.size(); ++e, c.next()) {
    i64 const at = indexed(a, i, "local_scatter to ", view, to, index, values, static_cast<int>(a.graph.attribute(i, 0)), e, c, step);
    if (at < 0) continue;
    u64 const bits = convert(v.at(e), t).bits;
    i64& before = written[static_cast<std::size_t>(at)];
    if (before >= 0 && unique && a.checking() && convert(v.at(static_cast<std::size_t>(before)), t).bits != bits &&
        a.news(i, "R-HZ13"))
      a.fault(i, "R-HZ13", "local_scatter to ", buffer_name(a, view.buffer), ": values ",
              agent::coordinates(values, static_cast<std::size_t>(before)), " and ", agent::coordinates(values, e),
              " differ and go to one element ", agent::coordinates(to, static_cast<std::size_t>(at)),
              "; say .unique = false if either will do");
    before = static_cast<i64>(e);
    x.write(view.offsets[static_cast<std::size_t>(at)], bits);
  }
}

// -- asynchronous copies ---------------------------------------------------------------------------------------------------------------

void body<op::async_load>::run(agent& a, int i) {
  using part = async_copy::part;
  access from(a, i, 0, 2, "async_load");
  data const& view = a.in(i, 1);
  data const* const other = a.optional(i, 3);
  dtype const t = a.at(a.graph.operand(i, 1)).type;
  local_access to(a, i, view, local_access::engine::copy);
  async_copy c;
  c.node = i;
  c.buffer = view.buffer;
  c.element_bytes = to.width();
  c.offsets = view.offsets;
  c.what.resize(from.size());
  c.source.resize(from.size());
  for (std::size_t e = 0; e < from.size(); ++e) {
    to.claim(view.offsets[e]);
    if (from.enabled(e)) {
      bool const allowed = from.allowed(e);
      if (allowed) from.note_read(e);
      c.what[e] = allowed ? part::copy : part::poison;
      c.source[e] = from.address(e);
    } else if (other) {
      c.what[e] = part::other;
      c.source[e] = convert(other->at(e), t).bits;
    } else {
      c.what[e] = part::poison;
    }
  }
  c.traced = a.trace_copy(i, a.graph.operand(i, 1), static_cast<i64>(from.size()) * to.width(), "copy into");
  data& d = a.out(i);
  d.bits.assign(1, static_cast<u64>(a.copies.issue(std::move(c), a.run.clocks.copies(a.id))));
  d.origin = i;
}

void body<op::async_commit>::run(agent& a, int i) {
  a.pause();
  for (int j = 0; j < a.at(i).operand_count; ++j) {
    data const* const token = a.optional(i, j);
    if (!token || a.at(token->origin).code != op::async_load) {
      if (token) a.fault(i, "R-HZ07", "the token of ", name_of(a.at(token->origin).code), " (", a.line_of(token->origin), ") is given where a load's is needed");
      continue;
    }
    if (a.copies.copies[static_cast<std::size_t>(token->bits[0])].group >= 0)
      a.fault(i, "R-HZ07", "the async_load of ", a.line_of(token->origin), " is in an earlier group already");
  }
  data& d = a.out(i);
  d.bits.assign(1, static_cast<u64>(a.copies.commit(i)));
  d.origin = i;
}

void body<op::async_wait>::run(agent& a, int i) {
  std::vector<int> named;
  for (int j = 0; j < a.at(i).operand_count; ++j) {
    data const* const token = a.optional(i, j);
    if (!token) continue;
    if (a.at(token->origin).code == op::async_commit) named.push_back(static_cast<int>(token->bits[0]));
    else a.fault(i, "R-HZ07", "the token of ", name_of(a.at(token->origin).code), " (", a.line_of(token->origin), ") is given where a group's is needed");
  }
  u32 const covered = a.copies.wait(a.graph.attribute(i, 0), named);
  if (covered > 0) a.released.copy = a.copies.copies[covered - 1].traced;
  a.now.raise(a.run.clocks.copies(a.id), covered);
  data& d = a.out(i);
  d.bits.assign(1, 0);
  d.origin = i;
}

} // namespace kiln::interpreter
