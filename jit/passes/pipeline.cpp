// The rewriting of pipeline.hpp: prologue of slots - 1 rounds, then in each pass wait, start the round that is slots - 1
// ahead, multiply.
#include "pipeline.hpp"

#include "matrix_unit.hpp"

#include <algorithm>
#include <bit>
#include <kiln/dtype/convert.hpp>
#include <src/graph/rewrite.hpp>
#include <vector>

namespace kiln::jit {

namespace {

using detail::node_type;
using detail::rewriter;

struct operand_load {
  int load;
  bool by_value = false;     ///< products have it after a cast, so that it is read from its slot into registers
  std::vector<int> cone; ///< nodes of the loop that its addresses are computed by, in order
};

struct loop {
  int begin, end;
  std::vector<operand_load> loads;
  int slots;
};

class finder {
public:
  finder(graph_view const& graph, graph_facts const& f, cta_shape c, std::int64_t bytes)
      : g(graph), facts(f), cta(c), shared_bytes(bytes), users(static_cast<std::size_t>(g.size())) {
    for (int i = 0; i < g.size(); ++i)
      for (int o : g.operands(i))
        if (o >= 0) users[static_cast<std::size_t>(o)].push_back(i);
  }

  std::vector<loop> run() {
    std::vector<loop> r;
    std::int64_t used = 0;
    for (buffer_info const& b : g.buffers)
      used += b.slots * bytes_of(b.type, g.shapes[static_cast<std::size_t>(b.shape)].elements());
    for (int i = 0; i < g.size(); ++i)
      if (g[i].code == op::for_begin)
        if (auto l = study(i, used)) r.push_back(std::move(*l));
    return r;
  }

private:
  std::optional<loop> study(int begin, std::int64_t& used) {
    loop l{begin, static_cast<int>(g.attribute(begin, 0)), {}, 0};
    if (g[begin].type != dtype::i32 && g[begin].type != dtype::i64) return {};
    auto const step = constant_of(facts, g.operand(begin, 2));
    if (!step || *step <= 0 || *step > 1 << 30) return {};
    std::int64_t sums = 0;
    for (int i = begin + 1; i < l.end; ++i) {
      op const c = g[i].code;
      bool const plain = has(c, trait::pure) || has(c, trait::elementwise) || c == op::load || c == op::var_get || c == op::var_set;
      if (!plain || c == op::combine_begin) return {};
      if (c == op::dot && matrix_product_of(g, facts, i, cta)) sums = std::max<std::int64_t>(sums, g.shape_of(i).elements() * 4);
    }
    if (sums == 0) return {};
    std::int64_t bytes = 0;
    for (int i = begin + 1; i < l.end; ++i) {
      if (g[i].code != op::load || !copies(i)) continue;
      bool const direct = feeds_products(i, l);
      operand_load o{i, !direct, {}};
      if (!(direct || feeds_cast(i, l)) || !cone_of(i, l, o.cone)) continue;
      bytes += (bytes_of(g[i].type, g.shape_of(i).elements()) + 127) / 128 * 128;
      l.loads.push_back(std::move(o));
    }
    if (l.loads.empty()) return {};
    // Four rounds hide what memory takes; more CTAs on a multiprocessor are worth more than more rounds. What follows the
    // loop may need room to bring the sums into the order of memory.
    std::int64_t const room = shared_bytes - used - sums - 2048;
    for (int slots : {4, 3, 2})
      if (slots * bytes <= std::min<std::int64_t>(room, slots == 4 ? 100 * 1024 : room)) {
        l.slots = slots;
        used += slots * bytes;
        return l;
      }
    return {};
  }

  bool inside(int i, loop const& l) const { return i > l.begin && i < l.end; }

  bool is_product_operand(int value, int user) const {
    return g[user].code == op::dot && matrix_product_of(g, facts, user, cta) && g.operand(user, 2) != value;
  }
  /// Whole rows of 4 bytes or more at a time.
  bool copies(int load) const {
    shape const& s = g.shape_of(load);
    if (s.rank != 2 || g.attribute(load, 2) != 0 || users[static_cast<std::size_t>(load)].empty()) return false;
    for (int d = 0; d < 2; ++d)
      if (!std::has_single_bit(static_cast<unsigned>(s.extent[d]))) return false;
    int const elem = std::countr_zero(static_cast<unsigned>(bytes_of(g[load].type)));
    access_shape const a = shape_of_access(g, facts, load);
    return a.axis == 1 && a.vector(elem) + elem >= 2; // slots hold rows
  }
  /// Narrow elements that only a cast wants, for products.
  bool feeds_cast(int load, loop const& l) const {
    for (int u : users[static_cast<std::size_t>(load)])
      if (!inside(u, l) || g[u].code != op::cast || !feeds_products(u, l)) return false;
    return true;
  }
  /// Products inside the loop want the value, transposed or not, and nothing else does.
  bool feeds_products(int load, loop const& l) const {
    for (int u : users[static_cast<std::size_t>(load)]) {
      if (!inside(u, l)) return false;
      if (g[u].code == op::trans) {
        for (int v : users[static_cast<std::size_t>(u)])
          if (!inside(v, l) || !is_product_operand(u, v)) return false;
      } else if (!is_product_operand(load, u)) {
        return false;
      }
    }
    return true;
  }
  bool cone_of(int load, loop const& l, std::vector<int>& cone) const {
    std::vector<int> open;
    auto const visit = [&](int i) {
      if (inside(i, l) && std::find(cone.begin(), cone.end(), i) == cone.end()) cone.push_back(i), open.push_back(i);
    };
    for (int o : g.operands(load)) visit(o);
    while (!open.empty()) {
      int const i = open.back();
      open.pop_back();
      if (has(g[i].code, trait::reads) || !(has(g[i].code, trait::pure) || has(g[i].code, trait::elementwise))) return false;
      for (int o : g.operands(i)) visit(o);
    }
    std::sort(cone.begin(), cone.end());
    return true;
  }

  graph_view const& g;
  graph_facts const& facts;
  cta_shape cta;
  std::int64_t shared_bytes;
  std::vector<std::vector<int>> users;
};

class writer {
public:
  writer(graph_view const& graph, std::vector<loop> const& all) : g(graph), loops(all), w(graph) {}

  graph run() {
    for (int i = 0; i < g.size(); ++i) {
      auto const l = std::find_if(loops.begin(), loops.end(), [&](loop const& x) { return x.begin == i; });
      if (l == loops.end()) w.copy(i);
      else body(*l), i = l->end;
    }
    return w.finish();
  }

private:
  int constant(std::int64_t v, dtype t) { return w.add_constant(make_scalar(t, v), {}, at); }
  int scalar(op code, dtype t, std::initializer_list<std::int32_t> operands) {
    return w.add(code, {t, node_kind::value, {}}, operands, {}, at);
  }
  int widened(int i, dtype from) { return from == dtype::i64 ? i : scalar(op::cast, dtype::i64, {i}); }

  /// Starts the copies of one round, whose index is `index`, into slot `slot`.
  void fetch(loop const& l, int index, int slot) {
    for (std::size_t n = 0; n < l.loads.size(); ++n) {
      operand_load const& o = l.loads[n];
      at = o.load;
      // The addresses once more, with another index.
      std::vector<std::pair<int, int>> before;
      auto const put = [&](int i, int with) { before.emplace_back(i, w.mapped(i)), w.replace(i, with); };
      put(l.begin, index);
      for (int i : o.cone) {
        int const old = w.mapped(i);
        w.copy(i);
        before.emplace_back(i, old);
      }
      shape const& s = g.shape_of(o.load);
      int const address = w.operand(o.load, 0), mask = w.operand(o.load, 1);
      int other = w.operand(o.load, 2);
      if (other < 0 && (mask >= 0 || g[g.operand(o.load, 0)].kind == node_kind::region))
        other = w.add_constant({g[o.load].type, 0}, s, at);
      int const view = w.add(op::view_index, {g[o.load].type, node_kind::view, s}, {buffers[n], slot}, {}, at);
      w.add(op::async_load, {dtype::b1, node_kind::token, {}}, {address, view, mask, other},
            {g.attribute(o.load, 0), g.attribute(o.load, 1), 0, 0}, at);
      while (!before.empty()) w.replace(before.back().first, before.back().second), before.pop_back();
    }
  }
  void commit() { w.add(op::async_commit, {dtype::b1, node_kind::token, {}}, {}, {}, at); }
  void when(int condition) { w.add(op::if_begin, {dtype{}, node_kind::none, {}}, {condition}, {-1, 0}, at); }
  void end_when() { w.add(op::if_end, {dtype{}, node_kind::none, {}}, {}, {0}, at); }

  void body(loop const& l) {
    dtype const t = g[l.begin].type;
    at = l.begin;
    buffers.clear();
    for (operand_load const& o : l.loads) buffers.push_back(w.add_buffer(g[o.load].type, g.shape_of(o.load), l.slots, o.load));
    // How many passes: (hi - lo + step - 1) / step, which is not positive where there is none.
    int const lo = w.operand(l.begin, 0), step = w.operand(l.begin, 2), step64 = widened(step, t);
    int const span = scalar(op::sub, dtype::i64, {widened(w.operand(l.begin, 1), t), widened(lo, t)});
    int const up = scalar(op::add, dtype::i64, {span, scalar(op::sub, dtype::i64, {step64, constant(1, dtype::i64)})});
    int passes = scalar(op::div, dtype::i64, {up, step64}, 1);
    if (t != dtype::i64) passes = scalar(op::cast, t, {passes});
    auto const index_of = [&](int pass) { return scalar(op::add, t, {lo, scalar(op::mul, t, {pass, step})}); };

    for (int s = 0; s + 1 < l.slots; ++s) {
      int const pass = constant(s, t);
      when(scalar(op::lt, dtype::b1, {pass, passes}));
      fetch(l, index_of(pass), pass);
      end_when();
      commit();
    }
    at = l.begin;
    int const pass = w.add(op::for_begin, {t, node_kind::value, {}}, {constant(0, t), passes, constant(1, t)}, {0}, at);
    w.add(op::async_wait, {dtype::b1, node_kind::token, {}}, {}, {l.slots - 2}, at);
    // One barrier a pass: what has landed is there for all, and the slot of the last pass may be written again.
    w.add(op::sync, {dtype{}, node_kind::none, {}}, {}, {}, at);
    int const slots = constant(l.slots, t);
    int const ahead = scalar(op::add, t, {pass, constant(l.slots - 1, t)});
    when(scalar(op::lt, dtype::b1, {ahead, passes}));
    fetch(l, index_of(ahead), scalar(op::rem, t, {ahead, slots}));
    end_when();
    commit();
    at = l.begin;
    w.replace(l.begin, index_of(pass));
    int const slot = scalar(op::rem, t, {pass, slots});
    for (int i = l.begin + 1; i < l.end; ++i) {
      at = i;
      auto const o = std::find_if(l.loads.begin(), l.loads.end(), [&](operand_load const& x) { return x.load == i; });
      if (o != l.loads.end()) {
        int const buffer = buffers[static_cast<std::size_t>(o - l.loads.begin())];
        int const view = w.add(op::view_index, {g[i].type, node_kind::view, g.shape_of(i)}, {buffer, slot}, {}, i);
        w.replace(i, o->by_value ? w.add(op::local_load, {g[i].type, node_kind::value, g.shape_of(i)}, {view, -1}, {0}, i) : view);
      } else if (g[i].code == op::trans && w.made(w.operand(i, 0)).kind == node_kind::view) {
        std::vector<std::int32_t> const operands{w.operand(i, 0)};
        auto const dims = g.attributes_of(i);
        w.replace(i, w.add(op::view_trans, {g[i].type, node_kind::view, g.shape_of(i)}, operands,
                           std::span<std::int64_t const>(dims.begin(), dims.end()), i));
      } else {
        w.copy(i);
      }
    }
    w.copy(l.end);
  }
  int scalar(op code, dtype t, std::initializer_list<std::int32_t> operands, int attributes) {
    std::vector<std::int64_t> const none(static_cast<std::size_t>(attributes));
    return w.add(code, {t, node_kind::value, {}}, std::span(operands.begin(), operands.size()), none, at);
  }

  graph_view const& g;
  std::vector<loop> const& loops;
  rewriter w;
  int at = 0; ///< whose source position new nodes get
  std::vector<int> buffers;
};

} // namespace

std::optional<graph> pipeline_products(graph_view const& g, graph_facts const& facts, cta_shape cta,
                                       std::int64_t shared_bytes) {
  if (!cta.matrix_unit) return {};
  auto const loops = finder(g, facts, cta, shared_bytes).run();
  if (loops.empty()) return {};
  return writer(g, loops).run();
}

} // namespace kiln::jit
