// The run over a grid: arguments, scheduling of CTAs, the loop over nodes, faults.
#include "src/interpreter/machine.hpp"

#include "src/interpreter/bodies.hpp"

#include <algorithm>
#include <numeric>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace kiln::interpreter {

namespace {

using body_function = void (*)(agent&, int);
constexpr body_function bodies[] = {
#define KILN_OP(name, least, most, traits, attributes, summary) &body<op::name>::run,
#include <kiln/graph/ops.def>
};

// Denormals are values (docs/numerics.md): the flush modes that somebody may have set in this thread are off meanwhile.
class denormals_on {
public:
#if defined(__SSE2__)
  denormals_on() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ & ~0x8040u); }
  ~denormals_on() { _mm_setcsr(saved_); }
  denormals_on(denormals_on const&) = delete;

private:
  unsigned saved_;
#endif
};

std::string base_name(char const* file) {
  std::string_view f = file;
  std::size_t const slash = f.rfind('/');
  return std::string(slash == f.npos ? f : f.substr(slash + 1));
}

} // namespace

// -- report --------------------------------------------------------------------------------------------------------------

std::string report::text() const {
  std::string all;
  for (fault const& f : diagnostics) {
    all += f.text;
    if (f.count > 1) all += " [" + std::to_string(f.count) + " times]";
    if (runs > 1) {
      constexpr char const* names[] = {"early", "late", "random"};
      all += std::string(" [again with .policy = completion::") + names[static_cast<int>(f.policy)] + ", .seed = " + std::to_string(f.seed) + "]";
    }
    all += "\n";
  }
  return all;
}

void report::throw_if_faulty() const {
  if (!clean()) throw checker_error(*this);
}

checker_error::checker_error(report r) : std::runtime_error(r.text()), report_(std::move(r)) {}
checker_error::~checker_error() = default;

// -- launch --------------------------------------------------------------------------------------------------------------

launch::launch(graph_view g, dims the_grid, std::span<host_argument const> a, run_options const& o)
    : graph(g), grid(the_grid), arguments(a), options(o), random(o.seed), arena(g), clocks(g),
      global(g, a, clocks, the_grid.x > 1 || the_grid.y > 1 || the_grid.z > 1, o.check) {
  check_arguments();
}

void launch::check_arguments() const {
  auto refuse = [](std::string const& what) { throw std::invalid_argument("kiln: interpreter: " + what); };
  if (grid.x < 0 || grid.y < 0 || grid.z < 0) refuse("the grid has a negative extent");
  if (options.resident_ctas < 1) refuse("resident_ctas is less than 1");
  dims const& c = graph.attrs.cluster;
  if (grid.x % c.x != 0 || grid.y % c.y != 0 || grid.z % c.z != 0) refuse("the grid is not a multiple of the cluster");
  if (arguments.size() != graph.params.size())
    refuse(std::to_string(arguments.size()) + " arguments for " + std::to_string(argument_count(graph.params)) + " parameters");
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    host_argument const& x = arguments[i];
    param_info const& p = graph.params[i];
    std::string const which = "argument " + std::to_string(i) + ": ";
    if (x.kind != p.kind) refuse(which + "a value, pointer or array where the parameter is another kind");
    if (p.kind == node_kind::value && x.bits.type != p.type)
      refuse(which + name_of(x.bits.type) + " where the parameter is " + name_of(p.type));
    if (p.kind == node_kind::array && x.rank != p.rank)
      refuse(which + "rank " + std::to_string(x.rank) + " where the parameter has " + std::to_string(p.rank));
    if (p.kind != node_kind::value && x.bytes < 0) refuse(which + "a negative number of bytes");
  }
}

report launch::run() {
  i64 count = 0;
  if (__builtin_mul_overflow(grid.x, grid.y, &count) || __builtin_mul_overflow(count, grid.z, &count) || count > 1 << 30)
    throw std::invalid_argument("kiln: interpreter: more than 2^30 CTAs; check a part of the grid");
  dims const c = clocks.ctas > 1 ? graph.attrs.cluster : dims{}, clusters{grid.x / c.x, grid.y / c.y, grid.z / c.z};
  std::vector<i64> waiting(static_cast<std::size_t>(count / clocks.ctas)); // linear ids of clusters, the next at the back
  std::iota(waiting.rbegin(), waiting.rend(), i64{0});
  if (options.order == order::seeded) std::shuffle(waiting.begin(), waiting.end(), random);

  std::vector<std::unique_ptr<cluster>> resident;
  std::size_t turn = 0;
  try {
    while (!waiting.empty() || !resident.empty()) {
      while (!waiting.empty() && resident.size() < static_cast<std::size_t>(options.resident_ctas)) {
        i64 const id = waiting.back();
        waiting.pop_back();
        dims const at{id % clusters.x * c.x, id / clusters.x % clusters.y * c.y, id / (clusters.x * clusters.y) * c.z};
        resident.push_back(std::make_unique<cluster>(*this, static_cast<i32>(id), at));
      }
      turn = options.order == order::seeded ? random() % resident.size() : (turn + 1) % resident.size();
      resident[turn]->resume();
      if (resident[turn]->done()) resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(turn));
    }
  } catch (stop_run const&) { result.stopped = true; }
  return std::move(result);
}

bool launch::knows(int node, char const* rule) { return known_.contains({node, rule}); }

void launch::add_fault(int node, char const* rule, std::string const& what, dims id, std::string const& who) {
  auto const [known, is_new] = known_.try_emplace({node, rule}, result.diagnostics.size());
  if (!is_new) {
    ++result.diagnostics[known->second].count;
    return;
  }
  fault f;
  f.rule = rule;
  f.node = node;
  f.cta = id;
  f.policy = options.policy;
  f.seed = options.seed;
  f.file = graph.file(node);
  f.line = graph[node].line;
  std::ostringstream s;
  s << "kiln[" << rule << "] " << what << " (" << base_name(graph.file(node)) << ":" << f.line << ", cta " << id.x << ","
    << id.y << "," << id.z;
  if (!who.empty()) s << ", " << who;
  s << ")";
  f.text = s.str();
  result.diagnostics.push_back(std::move(f));
}

// -- agent -------------------------------------------------------------------------------------------------------------------

agent::agent(cta& c, int the_id)
    : block(c), run(c.run), graph(c.run.graph), id(the_id), number(the_id - c.first_agent), threads(32 * graph.attrs.num_warps), now(c.run.clocks.count),
      copies(c.local, c.run.options, c.run.random), contents(static_cast<std::size_t>(graph.size())) {
  now[id] = 1;
}

void agent::run_kernel() {
  if (tracing()) {
    block.local.landed = [this](u64 copy) { trace({.what = trace_event::kind::copy_lands, .copy = copy}); };
    trace({.what = trace_event::kind::agent_begins, .text = block.name_of(id)});
  }
  execute(0, graph.size());
  if (tracing()) trace({.what = trace_event::kind::agent_ends});
  check_exit(*this);
}

void agent::execute(int from, int to) {
  for (int i = from; i < to; i = next) {
    if (++run.steps > run.options.step_limit) {
      fault(i, "R-VF01", "given up after ", run.options.step_limit, " operations; does a loop never end?");
      throw stop_run{};
    }
    next = i + 1;
    ++run.time;
    if (tracing())
      if (std::string name = trace_text(i); !name.empty()) {
        run_traced(i, std::move(name));
        continue;
      }
    bodies[static_cast<int>(graph[i].code)](*this, i);
  }
}

void agent::run_traced(int i, std::string name) {
  op const o = graph[i].code;
  to_tell = std::move(name);
  telling = i;
  released = {};
  if (o == op::barrier_wait || o == op::named_barrier_wait || o == op::async_wait || o == op::async_store_wait || o == op::cluster_barrier) begun();
  bodies[static_cast<int>(o)](*this, i);
  begun();
  trace({.what = trace_event::kind::ends, .node = i, .copy = released.copy, .cause = released.cause, .phase = released.phase});
}

std::string agent::view_text(int v) const {
  if (graph[v].kind == node_kind::barrier) return block.barrier_name(static_cast<int>(contents[static_cast<std::size_t>(v)].bits[0]));
  while (!(graph[v].code == op::view_index && graph[graph.operand(v, 0)].code == op::alloc)) v = graph.operand(v, 0);
  int const b = graph.buffer_of(v);
  buffer_info const& f = graph.buffer(b);
  std::string name = f.name < 0 ? "the buffer of line " + std::to_string(graph[f.node].line) : graph.string(f.name);
  if (f.slots > 1) name += "[" + std::to_string(int_of(in(v, 1).at(0))) + "]";
  return name;
}

std::string agent::trace_text(int i) const {
  auto of = [&](char const* word, int j) { return word + (" " + view_text(graph.operand(i, j))); };
  auto there = [&] { return " of CTA " + std::to_string(int_of(in(i, 2).at(0))); };
  auto pending = [&] {
    i64 const n = graph.attribute(i, 0);
    return n == 0 ? std::string("all") : "all but " + std::to_string(n);
  };
  switch (graph[i].code) {
  case op::local_load: case op::local_gather: return of("read", 0);
  case op::local_store: case op::local_scatter: return of("write", 0);
  case op::dot: {
    std::string s;
    for (int j = 0; j < 2; ++j)
      if (graph[graph.operand(i, j)].kind == node_kind::view) s += (s.empty() ? "dot of " : ", ") + view_text(graph.operand(i, j));
    return s.empty() ? "dot" : s;
  }
  case op::async_load: return of("start copy into", 1);
  case op::async_load_bulk: return of("start copy into", 1);
  case op::async_store_bulk: return of("start copy from", 1);
  case op::remote_store: return of("write", 0) + there();
  case op::async_remote_store: return of("start write of", 0) + there();
  case op::async_remote_copy: return of("start copy from", 1) + " to " + view_text(graph.operand(i, 0)) + there();
  case op::async_commit: return "commit a group of copies";
  case op::async_wait: return "wait for " + pending() + (graph.attribute(i, 0) ? " groups of copies" : " copies");
  case op::async_store_wait: return "wait for " + pending() + " bulk stores";
  case op::barrier_wait: return of("wait", 0);
  case op::barrier_arrive: return of("arrive", 0);
  case op::barrier_expect_bytes: return of(("expect " + std::to_string(graph.attribute(i, 0)) + " B at").c_str(), 0);
  case op::async_arrive: return of("copies arrive", 0);
  case op::named_barrier_wait: return "wait named barrier " + std::to_string(graph.attribute(i, 0));
  case op::named_barrier_arrive: return "arrive named barrier " + std::to_string(graph.attribute(i, 0));
  case op::fence: case op::sync: case op::agent_sync: case op::cluster_barrier: case op::fence_barrier_init: return std::string(name_of(graph[i].code));
  default: return {};
  }
}

data& agent::fresh(int i) {
  data& d = out(i);
  d.type = run.carrier(at(i).type);
  d.bits.resize(static_cast<std::size_t>(shape_of(i).elements()));
  d.wrapped.clear();
  return d;
}

std::string agent::coordinates(shape const& s, std::size_t i) {
  if (s.rank == 0) return "";
  std::string text = "]";
  auto rest = static_cast<i64>(i);
  for (int d = s.rank - 1; d >= 0; --d) {
    text = std::to_string(rest % s.extent[d]) + (text == "]" ? "" : ",") + text;
    rest /= s.extent[d];
  }
  return "[" + text;
}

std::string agent::line_of(int node) const {
  if (node < 0) return "nowhere";
  return base_name(graph.file(node)) + ":" + std::to_string(graph[node].line);
}

report run(graph_view graph, dims grid, std::span<host_argument const> arguments, run_options const& options) {
  denormals_on const guard;
  auto const given = static_cast<std::size_t>(argument_count(graph.params));
  if (given == arguments.size() && given < graph.params.size()) { // workspaces: fresh, and NaN where nothing was written
    std::vector<host_argument> all(arguments.begin(), arguments.end());
    std::vector<std::vector<std::byte>> memory;
    for (std::size_t i = given; i < graph.params.size(); ++i) {
      param_info const& p = graph.params[i];
      i64 bytes = p.workspace, ctas = 1;
      for (i64 n : {grid.x, grid.y, grid.z})
        if (__builtin_mul_overflow(ctas, n, &ctas)) ctas = INT64_MAX;
      if (__builtin_mul_overflow(bytes, i64{bytes_of(p.type)}, &bytes) || (p.per_cta && __builtin_mul_overflow(bytes, ctas, &bytes)) ||
          bytes > i64{1} << 40)
        throw std::invalid_argument("kiln: interpreter: the workspaces are too large; check a part of the grid");
      memory.emplace_back(static_cast<std::size_t>(bytes), p.zero ? std::byte{0} : std::byte{0xff});
      all.push_back(pointer(memory.back().data(), bytes));
    }
    return launch(graph, grid, all, options).run();
  }
  return launch(graph, grid, arguments, options).run();
}

report run_all_policies(graph_view graph, dims grid, std::span<host_argument const> arguments, run_options options) {
  options.policy = completion::late;
  bool const clusters = cluster_size(graph.attrs) > 1;
  bool const asynchronous =
      std::any_of(graph.nodes.begin(), graph.nodes.end(), [clusters](node const& n) {
        return (clusters && is_of_clusters(n.code)) || n.code == op::async_remote_store || n.code == op::async_remote_copy || n.code == op::async_load || n.code == op::async_load_bulk || n.code == op::async_store_bulk || n.code == op::tasks_begin;
      });
  bool const seeded = asynchronous || options.order == order::seeded;
  u64 const first = options.seed;
  int const seeds = seeded ? std::max(options.seeds, 1) : 1;
  if (!asynchronous && seeds == 1) return run(graph, grid, arguments, options);

  std::vector<std::vector<unsigned char>> before;
  for (host_argument const& a : arguments) {
    auto const* const data = static_cast<unsigned char const*>(a.allocation);
    before.emplace_back(data, data + (data ? a.bytes : 0));
  }
  report all;
  all.runs = 0;
  std::vector<completion> policies{completion::late};
  if (asynchronous) policies = {completion::late, completion::random, completion::early};
  for (completion policy : policies)
    for (int k = 0; k < seeds; ++k) {
      if (all.runs++ > 0)
        for (std::size_t i = 0; i < before.size(); ++i)
          // Memory that is only read through its parameter may be constant.
          if (!graph.params[i].is_const) std::copy(before[i].begin(), before[i].end(), static_cast<unsigned char*>(arguments[i].allocation));
      options.policy = policy;
      options.seed = first + static_cast<u64>(k);
      report r = run(graph, grid, arguments, options);
      all.stopped = all.stopped || r.stopped;
      for (fault& f : r.diagnostics)
        if (std::none_of(all.diagnostics.begin(), all.diagnostics.end(),
                         [&](fault const& g) { return g.node == f.node && g.rule == f.rule; }))
          all.diagnostics.push_back(std::move(f));
    }
  return all;
}

} // namespace kiln::interpreter
