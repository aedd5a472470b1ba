// The statements, places and lives of memory_map_model.hpp.
#include "memory_map_model.hpp"

#include <kiln/validate/sim_program.hpp>

#include <algorithm>

namespace kiln::tool {

namespace {

std::string grouped(std::int64_t n) {
  std::string s = std::to_string(n);
  for (auto at = static_cast<int>(s.size()) - 3; at > 0; at -= 3) s.insert(static_cast<std::size_t>(at), ",");
  return s;
}
bool is_storage(buffer_info const& b) { return b.role == buffer_role::spec || b.role == buffer_role::arena; }
std::int64_t unit_of(storage where) { return where == storage::tmem ? 4 : 1; }
/// What the simulation makes of two whole numbers; nothing where it divides by 0.
std::optional<std::int64_t> computed(op o, std::int64_t x, std::int64_t y) {
  if ((o == op::rem || o == op::div) && y == 0) return {};
  return detail::evaluate(o, dtype::i64, dtype::i64, x, y, 0);
}
bool passes_through(op o) { return o == op::cast || o == op::multiple_of || o == op::max_contiguous; }

} // namespace

bool map_column::touch::may(int slot) const { return std::find(slots.begin(), slots.end(), slot) != slots.end(); }

map_model::map_model(graph_view const& graph) : g(graph) {
  collect_partners();
  collect();
  place();
  lives();
}

// -- names -----------------------------------------------------------------------------------------------------------------------

std::string map_model::buffer_name(int b) const {
  diagnostic d;
  {
    detail::message m(d);
    detail::put_buffer_name(m, g, b);
  }
  return std::string(d.view());
}
std::string map_model::slot_name(int b, int slot) const { return buffer_name(b) + (g.buffer(b).slots > 1 ? "[" + std::to_string(slot) + "]" : ""); }
std::string map_model::barriers_name(int alloc) const {
  std::string const n = g.string(static_cast<int>(g.attribute(alloc, 3)));
  return n.empty() ? "barriers@" + std::to_string(g[alloc].line) : n;
}

/// The value of a scalar that is constant, before any pass has folded it.
std::optional<std::int64_t> map_model::constant(int i) const {
  node const& n = g[i];
  if (n.code == op::constant) return g.attribute(i, 0);
  if (passes_through(n.code)) return constant(g.operand(i, 0));
  if (n.code != op::add && n.code != op::sub && n.code != op::mul && n.code != op::rem && n.code != op::div) return {};
  auto const x = constant(g.operand(i, 0)), y = constant(g.operand(i, 1));
  if (!x || !y) return {};
  return computed(n.code, *x, *y);
}

/// What a scalar can be, as far as its expression says; nothing: more than a few values.
std::optional<std::set<std::int64_t>> map_model::possible(int i) const {
  constexpr std::size_t most = 64;
  node const& n = g[i];
  if (auto const c = constant(i)) return std::set{*c};
  if (passes_through(n.code)) return possible(g.operand(i, 0));
  std::int64_t below = n.code == op::cluster_rank ? g.attrs.cluster.x * g.attrs.cluster.y * g.attrs.cluster.z : 0;
  if (auto const r = replicas_.find(i); r != replicas_.end()) below = r->second;
  if (n.code == op::for_begin) {
    auto const lo = constant(g.operand(i, 0)), hi = constant(g.operand(i, 1)), step = constant(g.operand(i, 2));
    if (!lo || !hi || !step || *step <= 0) return {};
    std::set<std::int64_t> all;
    for (std::int64_t x = *lo; x < *hi && all.size() <= most; x += *step) all.insert(x);
    if (all.empty() || all.size() > most) return {};
    return all;
  }
  bool const two = n.code == op::add || n.code == op::sub || n.code == op::mul || n.code == op::rem || n.code == op::div || n.code == op::bit_and || n.code == op::bit_xor;
  if (two) {
    auto const x = possible(g.operand(i, 0)), y = possible(g.operand(i, 1));
    if (!x && y && y->size() == 1 && *y->begin() > 0) {
      if (n.code == op::rem) below = *y->begin();
      if (n.code == op::bit_and) below = *y->begin() + 1;
    }
    if (x && y) {
      std::set<std::int64_t> all;
      for (std::int64_t a : *x)
        for (std::int64_t b : *y)
          if (auto const v = computed(n.code, a, b)) all.insert(*v);
      if (all.empty() || all.size() > most) return {};
      return all;
    }
  }
  if (below <= 0 || below > static_cast<std::int64_t>(most)) return {};
  std::set<std::int64_t> all;
  for (std::int64_t x = 0; x < below; ++x) all.insert(x);
  return all;
}

/// An expression, and how strongly its outermost sign binds: 1 sums, 2 products, 3 a name.
std::pair<std::string, int> map_model::index_text(int i) const {
  node const& n = g[i];
  if (auto const c = constant(i)) return {std::to_string(*c), *c < 0 ? 1 : 3};
  if (passes_through(n.code)) return index_text(g.operand(i, 0));
  if (n.code == op::for_begin) {
    auto const name = loop_names_.find(i);
    return {name == loop_names_.end() ? "i" : name->second, 3};
  }
  if (n.code == op::replica_id) return {"replica", 3};
  if (n.code == op::cluster_rank) return {"rank", 3};
  if (n.code == op::var_get) return {"n", 3};
  if (n.code == op::param) return {"arg" + std::to_string(g.attribute(i, 0)), 3};
  char const* const sign = n.code == op::add ? "+" : n.code == op::sub ? "-" : n.code == op::mul ? "*" : n.code == op::rem ? "%" : n.code == op::div ? "/" : nullptr;
  if (!sign) return {"..", 3};
  int const strength = n.code == op::add || n.code == op::sub ? 1 : 2;
  auto side = [&](int j) {
    auto const [text, binds] = index_text(g.operand(i, j));
    return binds < strength + (j == 1 && n.code != op::add) ? "(" + text + ")" : text;
  };
  return {side(0) + sign + side(1), strength};
}
std::string map_model::index(int i) const {
  std::string const s = index_text(i).first;
  return s.size() > 20 ? ".." : s;
}
std::string map_model::barrier_text(int node) const {
  if (g[node].code == op::remote_barrier) return barrier_text(g.operand(node, 0)) + " of CTA " + index(g.operand(node, 1));
  return barriers_name(g.operand(node, 0)) + (g.attribute(g.operand(node, 0), 0) == 1 ? "" : "[" + index(g.operand(node, 1)) + "]");
}

map_column::touch map_model::touch_of(int view, char letter, std::string* where) const {
  int v = view;
  while (!(g[v].code == op::view_index && g[g.operand(v, 0)].code == op::alloc)) v = g.operand(v, 0);
  int const at = g.operand(v, 1);
  map_column::touch t{g.shown_by(g.buffer_of(view)), {}, letter};
  int const slots = g.buffer(t.buffer).slots;
  auto const may = g.shown_by(g.buffer_of(view)) == g.buffer_of(view) ? possible(at) : std::nullopt;
  if (may)
    for (std::int64_t x : *may)
      if (x >= 0 && x < slots) t.slots.push_back(static_cast<int>(x));
  if (t.slots.empty())
    for (int s = 0; s < slots; ++s) t.slots.push_back(s);
  if (where) *where = buffer_name(t.buffer) + (slots == 1 ? "" : "[" + index(at) + "]");
  return t;
}

// -- who waits for whom ----------------------------------------------------------------------------------------------------------

/// The barriers of an operand, as waiters_ and signallers_ know them.
static int barriers_of(graph_view const& g, int node) {
  while (g[node].code != op::alloc_barriers) node = g.operand(node, 0);
  return node;
}

void map_model::collect_partners() {
  std::string task;
  int count = 0, replicas = 1;
  for (int i = 0; i < g.size(); ++i) {
    node const& n = g[i];
    if (n.code == op::tasks_begin) count = 0;
    if (n.code == op::task_begin) {
      std::string const given = g.string(static_cast<int>(g.attribute(i, 4)));
      replicas = static_cast<int>(g.attribute(i, 2));
      task = !given.empty() ? given : g.attribute(i, 0) ? "task " + std::to_string(count) : "default task";
      ++count;
    }
    if (n.code == op::task_end) task.clear(), replicas = 1;
    if (n.code == op::replica_id) replicas_[i] = replicas;
    if (task.empty()) continue;
    task_of_[i] = task;
    if (n.code == op::named_barrier_wait) waiters_[static_cast<int>(-1 - g.attribute(i, 0))].insert(task);
    if (n.code == op::named_barrier_arrive) signallers_[static_cast<int>(-1 - g.attribute(i, 0))].insert(task);
    if (n.code == op::remote_barrier || n.code == op::barrier_index || n.code == op::barrier_expect_bytes) continue;
    for (int o : g.operands(i))
      if (o >= 0 && g[o].kind == node_kind::barrier) (n.code == op::barrier_wait ? waiters_ : signallers_)[barriers_of(g, o)].insert(task);
  }
}

/// " ← load": the other tasks that signal what is waited for, or " → mma": that wait for what is signalled.
std::string map_model::partners(int node, bool waiting, int key) const {
  auto const mine = task_of_.find(node);
  auto const& all = waiting ? signallers_ : waiters_;
  auto const found = all.find(key);
  if (mine == task_of_.end() || found == all.end()) return "";
  std::string s;
  int others = 0;
  for (std::string const& t : found->second)
    if (t != mine->second) s += (others++ ? ", " : "") + t;
  if (others > 2) s = std::to_string(others) + " tasks";
  return others ? (waiting ? " \u2190 " : " \u2192 ") + s : "";
}

// -- statements ------------------------------------------------------------------------------------------------------------------

void map_model::describe(int i, map_column& c, bool& shown) const {
  using kind = map_column::kind;
  node const& n = g[i];
  std::string where;
  auto touches = [&](int j, char letter, std::string const& word) {
    c.touches.push_back(touch_of(g.operand(i, j), letter, &where));
    c.label = word + " " + where;
  };
  auto at_barrier = [&](kind what, std::string const& word, bool waiting) {
    int const b = g.operand(i, 0);
    c.what = what;
    c.label = word + " " + barrier_text(b) + partners(i, waiting, barriers_of(g, b));
  };
  auto named = [&](kind what, char const* word, bool waiting) {
    c.what = what;
    c.label = word + std::string(" named barrier ") + std::to_string(g.attribute(i, 0)) + partners(i, waiting, static_cast<int>(-1 - g.attribute(i, 0)));
  };
  auto line = [&](kind what, std::string const& label) { c.what = what, c.label = label; };
  switch (n.code) {
  case op::local_load: case op::local_gather: touches(0, 'R', "read"); break;
  case op::local_store: case op::local_scatter: touches(0, 'W', "write"); break;
  case op::async_load: case op::async_load_bulk: touches(1, 'C', "copy into"); break;
  case op::async_store_bulk: touches(1, 'S', "copy from"); break;
  case op::remote_store: case op::async_remote_store:
    touches(0, n.code == op::remote_store ? 'W' : 'C', "write");
    c.label += " of CTA " + index(g.operand(i, 2));
    break;
  case op::async_remote_copy: {
    touches(0, 'C', "");
    std::string const to = where + " of CTA " + index(g.operand(i, 2));
    touches(1, 'S', "copy");
    c.label += " to " + to;
    break;
  }
  case op::dot: {
    std::string both;
    for (int j = 0; j < 2; ++j)
      if (g[g.operand(i, j)].kind == node_kind::view) {
        touches(j, 'R', "");
        both += (both.empty() ? " " : ", ") + where;
      }
    shown = !c.touches.empty();
    c.label = "dot reads" + both;
    break;
  }
  case op::async_wait: line(kind::copies, "wait_group(" + std::to_string(g.attribute(i, 0)) + ")"); break;
  case op::async_store_wait: line(kind::copies, "store_wait(" + std::to_string(g.attribute(i, 0)) + ")"); break;
  case op::barrier_wait: at_barrier(kind::wait, "wait", true); break;
  case op::barrier_arrive: at_barrier(kind::arrive, "arrive", false); break;
  case op::async_arrive: at_barrier(kind::arrive, "copies arrive", false); break;
  case op::barrier_expect_bytes: at_barrier(kind::arrive, "expect " + grouped(g.attribute(i, 0)) + " B at", false); break;
  case op::named_barrier_wait: named(kind::wait, "wait", true); break;
  case op::named_barrier_arrive: named(kind::arrive, "arrive", false); break;
  case op::sync: line(kind::sync, "sync"); break;
  case op::agent_sync: line(kind::sync, "agent_sync"); break;
  case op::cluster_barrier: line(kind::sync, "cluster_barrier"); break;
  case op::fence: line(kind::fence, "fence"); break;
  case op::fence_barrier_init: line(kind::fence, "barriers ready"); break;
  default: shown = false; break;
  }
  if (n.line > 0) c.label += "  :" + std::to_string(n.line);
}

void map_model::collect() {
  struct region {
    int node, first;
  };
  std::vector<region> open;
  int stage = 0, loops = 0;
  auto begin = [&](int task, std::string title, std::string name) {
    if (!blocks.empty()) blocks.back().last = static_cast<int>(columns.size()) - 1;
    blocks.push_back({task, stage, std::move(title), std::move(name), static_cast<int>(columns.size()), -1});
  };
  begin(-1, "before the tasks", "");
  for (int i = 0; i < g.size(); ++i) {
    node const& n = g[i];
    if (n.code == op::tasks_begin || n.code == op::tasks_end) {
      ++stage;
      if (n.code == op::tasks_end) begin(-1, "after the tasks", "");
      continue;
    }
    if (n.code == op::task_begin) {
      std::string const given = g.string(static_cast<int>(g.attribute(i, 4)));
      std::int64_t const warps = g.attribute(i, 0) ? g.attribute(i, 0) : g.attrs.num_warps, replicas = g.attribute(i, 2);
      std::string title = given.empty() ? task_of_.at(i) : "task " + given;
      title += ", " + (replicas > 1 ? std::to_string(replicas) + " replicas of " : std::string()) + std::to_string(warps) + (warps == 1 ? " warp" : " warps");
      begin(i, title, given);
      continue;
    }
    if (n.code == op::task_end) continue;
    if (n.code == op::for_begin) loop_names_[i] = std::string(1, "ijkm"[std::min(loops, 3)]);
    if (has(n.code, trait::opens) && n.code != op::combine_begin) {
      open.push_back({i, static_cast<int>(columns.size())});
      loops += n.code == op::for_begin;
    }
    if (has(n.code, trait::closes) && n.code != op::combine_end && !open.empty()) {
      region const r = open.back();
      open.pop_back();
      loops -= g[r.node].code == op::for_begin;
      if (int const last = static_cast<int>(columns.size()) - 1; last >= r.first) {
        bool const loop = g[r.node].code != op::if_begin;
        std::string const index = g[r.node].code == op::for_begin ? " " + loop_names_[r.node] : std::string();
        brackets.push_back({(loop ? "loop" + index : "if") + (g[r.node].line > 0 ? ", line " + std::to_string(g[r.node].line) : std::string()), r.first, last, static_cast<int>(open.size())});
        if (loop) loops_.push_back({r.first, last});
      }
    }
    map_column c;
    c.node = i;
    bool shown = true;
    describe(i, c, shown);
    if (shown) columns.push_back(std::move(c));
  }
  blocks.back().last = static_cast<int>(columns.size()) - 1;
  std::erase_if(blocks, [](map_block const& b) { return b.last < b.first; });
  if (blocks.size() == 1 && blocks[0].task < 0) blocks[0].title = "the kernel";
}

// -- bytes -----------------------------------------------------------------------------------------------------------------------

byte_span map_model::slot(int b, int i) const {
  local_form const f = local_form_of(g, b);
  std::int64_t const unit = unit_of(g.buffer(b).where), lo = base_.at(g.storage_of(b)) + f.slots.at(i) / unit;
  return {lo, lo + f.bytes / unit};
}

/// Buffers that share bytes get lanes beside each other.
void map_model::fill_lanes(map_memory& m, map_storage& s) {
  std::vector<std::vector<byte_span>> lanes;
  std::int64_t used = s.bytes.lo;
  for (int b : s.buffers) {
    std::vector<byte_span> mine;
    for (int i = 0; i < g.buffer(b).slots; ++i) mine.push_back(slot(b, i));
    auto const fits = [&](std::vector<byte_span> const& lane) {
      return std::none_of(mine.begin(), mine.end(), [&](byte_span x) { return std::any_of(lane.begin(), lane.end(), [&](byte_span y) { return x.meets(y); }); });
    };
    std::size_t lane = 0;
    while (lane < lanes.size() && !fits(lanes[lane])) ++lane;
    if (lane == lanes.size()) lanes.emplace_back();
    lanes[lane].insert(lanes[lane].end(), mine.begin(), mine.end());
    lane_of[static_cast<std::size_t>(b)] = static_cast<int>(lane);
    for (byte_span x : mine) used = std::max(used, x.hi);
    s.apart += g.buffer(b).slots * detail::slot_bytes(g, g.buffer(b)) / unit_of(m.where);
  }
  s.lanes = std::max(1, static_cast<int>(lanes.size()));
  s.shared = lanes.size() > 1 || (is_storage(g.buffer(s.owner)) && !s.buffers.empty());
  if (is_storage(g.buffer(s.owner)) && !s.buffers.empty()) s.slack = s.bytes.hi - used;
}

/// Where others make the groups of slots of a buffer wider than it needs, or other phases of a group of an allocator its phase.
void map_model::find_growth(map_memory& m, map_storage const& s) {
  std::map<int, std::int64_t> group_end;
  std::map<int, std::pair<std::int64_t, int>> phase_end; // and the buffer there
  for (int b : s.buffers) {
    int const phase = g.buffer(b).phase;
    if (phase < 0) continue;
    std::int64_t const end = slot(b, g.buffer(b).slots - 1).hi;
    group_end[phase / 256] = std::max(group_end[phase / 256], end);
    if (end > phase_end[phase].first) phase_end[phase] = {end, b};
  }
  for (auto const& [phase, end] : phase_end)
    if (end.first < group_end[phase / 256]) m.growth.push_back({end.second, {end.first, group_end[phase / 256]}});
  for (int b : s.buffers) {
    buffer_info const& f = g.buffer(b);
    if (f.role != buffer_role::peer || f.place.stride == 0) continue;
    int per_group = 1;
    for (int j = 0; j < f.place.levels; ++j) per_group *= f.place.radix[j].count;
    for (int i = 0; i + per_group <= f.slots; i += per_group) {
      std::int64_t const end = slot(b, i + per_group - 1).hi, next = slot(b, i).lo - f.place.offset + f.place.stride;
      if (next <= end) continue;
      // Bytes of a buffer that is in use at the same time are not growth but that buffer's.
      bool beside = false;
      for (int o : s.buffers) {
        if (o == b) continue;
        bool in_it = false, takes_turns = false;
        for (int j = 0; j < g.buffer(o).slots; ++j) {
          byte_span const x = slot(o, j);
          in_it = in_it || (x.lo < next && x.hi > end);
          for (int k = 0; k < f.slots; ++k) takes_turns = takes_turns || slot(b, k).meets(x);
        }
        beside = beside || (in_it && !takes_turns);
      }
      if (!beside) m.growth.push_back({b, {end, next}});
    }
  }
}

void map_model::place() {
  lane_of.assign(g.buffers.size(), 0);
  memories = {{storage::smem, "shared memory", "B"}, {storage::tmem, "tensor memory", "columns"}};
  for (map_memory& m : memories) {
    std::int64_t const unit = unit_of(m.where);
    for (int b = 0; b < static_cast<int>(g.buffers.size()); ++b) {
      buffer_info const& f = g.buffer(b);
      if (f.where != m.where || f.base >= 0 || g.storage_of(b) != b || detail::unused_spec(g, b)) continue;
      if (unit == 1) m.total = detail::round_up(m.total, detail::buffer_alignment(f));
      base_[b] = m.total;
      map_storage s{b, {m.total, m.total + detail::storage_bytes(g, b) / unit}};
      m.total = s.bytes.hi;
      for (int o = 0; o < static_cast<int>(g.buffers.size()); ++o)
        if (g.storage_of(o) == b && g.buffer(o).base < 0 && !is_storage(g.buffer(o))) s.buffers.push_back(o);
      fill_lanes(m, s);
      find_growth(m, s);
      m.storages.push_back(std::move(s));
    }
    if (m.where == storage::smem)
      for (int i = 0; i < g.size(); ++i)
        if (g[i].code == op::alloc_barriers) {
          m.total = detail::round_up(m.total, 8);
          m.barriers.push_back({i, {m.total, m.total + 8 * g.attribute(i, 0)}});
          m.total += 8 * g.attribute(i, 0);
        }
    std::vector<byte_span> known;
    for (map_storage const& s : m.storages) {
      if (s.slack > 0) known.push_back({s.bytes.hi - s.slack, s.bytes.hi});
      for (int b : s.buffers)
        for (int i = 0; i < g.buffer(b).slots; ++i) known.push_back(slot(b, i));
    }
    for (auto const& [what, x] : m.barriers) known.push_back(x);
    for (auto const& [what, x] : m.growth) known.push_back(x);
    m.edges = {0, m.total};
    for (byte_span x : known) m.edges.push_back(x.lo), m.edges.push_back(x.hi);
    for (map_storage const& s : m.storages) m.edges.push_back(s.bytes.lo), m.edges.push_back(s.bytes.hi);
    std::sort(m.edges.begin(), m.edges.end());
    m.edges.erase(std::unique(m.edges.begin(), m.edges.end()), m.edges.end());
    for (std::size_t e = 0; e + 1 < m.edges.size(); ++e) {
      byte_span const x{m.edges[e], m.edges[e + 1]};
      if (std::none_of(known.begin(), known.end(), [&](byte_span k) { return k.meets(x); })) m.padding.push_back(x);
    }
  }
  std::erase_if(memories, [](map_memory const& m) { return m.total == 0; });
}

// -- lives -----------------------------------------------------------------------------------------------------------------------

/// The column of the wait which knows that the copy of column `c` is done, where it is one that counts groups; else `c`.
int map_model::done_by(int c, int end) const {
  int const from = columns[static_cast<std::size_t>(c)].node;
  op const copy = g[from].code;
  int newer = copy == op::async_load ? -1 : 0; // groups after its own, which a commit closes
  for (int d = c + 1; d <= end && (copy == op::async_load || copy == op::async_store_bulk); ++d) {
    int const n = columns[static_cast<std::size_t>(d)].node;
    for (int i = columns[static_cast<std::size_t>(d - 1)].node + 1; i <= n; ++i) newer += g[i].code == (copy == op::async_load ? op::async_commit : op::async_store_bulk);
    if (g[n].code == (copy == op::async_load ? op::async_wait : op::async_store_wait) && newer >= g.attribute(n, 0)) return d;
  }
  return c;
}

/// Whether another buffer is written over a slot in these columns.
bool map_model::taken_over(int b, int slot_of_b, int first, int last) const {
  for (int c = first; c <= last; ++c)
    for (map_column::touch const& t : columns[static_cast<std::size_t>(c)].touches)
      if (t.writes() && t.buffer != b && g.storage_of(t.buffer) == g.storage_of(b))
        for (int j : t.slots)
          if (slot(b, slot_of_b).meets(slot(t.buffer, j))) return true;
  return false;
}

void map_model::lives() {
  for (map_memory const& m : memories)
    for (map_storage const& s : m.storages)
      for (int b : s.buffers)
        for (int i = 0; i < g.buffer(b).slots; ++i) lives_of(b, i);
}

void map_model::lives_of(int b, int i) {
  struct life {
    std::vector<map_bar> bars;
    bool touched = false, written = false, written_in_loop = false, reads_first = false;
  };
  std::vector<life> in(blocks.size());
  // In each program: from the first use to the last, or until another buffer takes over.
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    int first = -1, last = -1;
    auto finish = [&] {
      if (first >= 0) in[k].bars.push_back({b, i, first, last});
      first = last = -1;
    };
    for (int c = blocks[k].first; c <= blocks[k].last; ++c) {
      for (map_column::touch const& t : columns[static_cast<std::size_t>(c)].touches)
        if (t.buffer == b && t.may(i)) {
          if (!in[k].touched) in[k].reads_first = !t.writes();
          in[k].touched = true;
          in[k].written = in[k].written || t.writes();
          for (auto const& [from, to] : loops_) in[k].written_in_loop = in[k].written_in_loop || (t.writes() && from <= c && c <= to);
          if (first < 0) first = c;
          last = std::max(last, t.letter == 'S' || t.letter == 'C' ? done_by(c, blocks[k].last) : c);
        }
      if (taken_over(b, i, c, c)) finish();
    }
    finish();
  }
  auto others_write = [&](std::size_t k, bool again_and_again) {
    for (std::size_t o = 0; o < blocks.size(); ++o)
      if (o != k && blocks[o].stage == blocks[k].stage && (again_and_again ? in[o].written_in_loop : in[o].written)) return true;
    return false;
  };
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    map_block const& block = blocks[k];
    // What a program reads first, and no other that runs beside it writes, was there before: it lived all the way from its write.
    if (in[k].reads_first && !others_write(k, false)) {
      int from = -1;
      for (std::size_t o = 0; o < blocks.size(); ++o)
        if (blocks[o].stage < block.stage && in[o].written) from = std::max(from, blocks[o].stage);
      if (from >= 0 && !taken_over(b, i, block.first, in[k].bars.front().first)) {
        in[k].bars.front().first = block.first;
        for (std::size_t o = 0; o < blocks.size(); ++o) {
          if (blocks[o].stage < from || blocks[o].stage >= block.stage) continue;
          if (in[o].bars.empty()) {
            if (blocks[o].stage > from && !taken_over(b, i, blocks[o].first, blocks[o].last)) in[o].bars.push_back({b, i, blocks[o].first, blocks[o].last});
          } else if (!taken_over(b, i, in[o].bars.back().last, blocks[o].last)) {
            in[o].bars.back().last = blocks[o].last;
          }
        }
      }
    }
    // What a pass of a loop reads before it is written was left by the pass before, and is read again by the next: the life goes
    // around. Where another task writes in a loop, each pass brings its own.
    if (others_write(k, true)) continue;
    for (map_bar& it : in[k].bars)
      for (auto const& [from, to] : loops_) {
        int const lo = std::max(from, block.first), hi = std::min(to, block.last);
        if (it.last < lo || it.first > hi) continue;
        bool read_first = false, written = false;
        for (int c = lo; c <= hi; ++c)
          for (map_column::touch const& t : columns[static_cast<std::size_t>(c)].touches)
            if (t.buffer == b && t.may(i)) {
              read_first = read_first || (!t.writes() && !written);
              written = written || t.writes();
            }
        if (!read_first || taken_over(b, i, lo, hi)) continue;
        it.first = std::min(it.first, lo), it.last = std::max(it.last, hi);
      }
  }
  for (life& l : in) {
    std::vector<map_bar> merged; // what goes around a loop may have met its neighbour
    for (map_bar const& x : l.bars)
      if (!merged.empty() && x.first <= merged.back().last) merged.back().last = std::max(merged.back().last, x.last);
      else merged.push_back(x);
    bars.insert(bars.end(), merged.begin(), merged.end());
  }
}

} // namespace kiln::tool
