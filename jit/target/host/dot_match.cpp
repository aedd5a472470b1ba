// The matcher. It is a list of conditions, each with a reason for refusing: a loop that fails one is lowered like any
// other, so a condition may be stricter than it has to be, never looser.
#include "dot_match.hpp"

#include <kiln/graph/attribute_kind.hpp>
#include <kiln/graph/structure.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace kiln::jit::host {

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

bool is_scalar(graph_view const& g, int n) { return g.shape_of(n).rank == 0; }

// The same pure expression. Program ids and parameters are what they are; nothing here reads memory or cells.
bool same(graph_view const& g, int a, int b) {
  if (a == b) return true;
  if (a < 0 || b < 0) return false;
  node const &x = g[a], &y = g[b];
  if (x.code != y.code || x.type != y.type || x.kind != y.kind || x.operand_count != y.operand_count) return false;
  if (!has(x.code, trait::pure) || has(x.code, trait::reads) || x.code == op::result || x.code == op::combine_arg)
    return false;
  if (!(g.shape_of(a) == g.shape_of(b)) || !std::ranges::equal(g.attributes_of(a), g.attributes_of(b))) return false;
  for (int i = 0; i < x.operand_count; ++i)
    if (!same(g, g.operand(a, i), g.operand(b, i))) return false;
  return true;
}

int through_widening(graph_view const& g, int n) {
  while (g[n].code == op::cast && is_int(g[n].type) && is_int(g[g.operand(n, 0)].type) &&
         is_signed(g[n].type) && is_signed(g[g.operand(n, 0)].type) &&
         bits_of(g[n].type) >= bits_of(g[g.operand(n, 0)].type))
    n = g.operand(n, 0);
  return n;
}

std::int64_t wrapped(std::int64_t x, dtype t) {
  const int unused = 64 - bits_of(t);
  if (unused <= 0) return x;
  const auto up = static_cast<std::uint64_t>(x) << unused;
  return is_signed(t) ? static_cast<std::int64_t>(up) >> unused : static_cast<std::int64_t>(up >> unused);
}

// A scalar as an unknown number (a node; -1: none) plus a known one.
struct partly_known {
  int leaf = -1;
  std::int64_t known = 0;
};

class matcher {
public:
  explicit matcher(graph_view const& view) : g(view) {}

  dot_match run() {
    dot_match m;
    if (!find()) m.why = why_;
    m.found = std::move(d);
    return m;
  }

private:
  bool no(char const* why) {
    if (why_.empty()) why_ = why;
    return false;
  }

  bool find() {
    int dots = 0;
    for (int i = 0; i < g.size(); ++i)
      if (g[i].code == op::dot) {
        ++dots;
        d.dot = i;
      }
    if (dots != 1) return no(dots == 0 ? "no dot" : "several dots");
    std::vector<int> open;
    for (int i = 0; i < d.dot; ++i) {
      if (has(g[i].code, trait::opens)) open.push_back(i);
      if (has(g[i].code, trait::closes)) open.pop_back();
    }
    if (open.size() != 1 || g[open[0]].code != op::for_begin) return no("the dot is not directly in a top-level loop");
    d.loop = open[0];
    end_ = static_cast<int>(g.attribute(d.loop, 0));
    d.drop.assign(at(g.size()), 0);
    for (int i = d.loop; i <= end_; ++i) d.drop[at(i)] = 1;

    const shape &sa = g.shape_of(g.operand(d.dot, 0)), &sb = g.shape_of(g.operand(d.dot, 1));
    d.m = sa.extent[0], d.k = sa.extent[1], d.n = sb.extent[1];
    d.type = g[g.operand(d.dot, 0)].type;
    d.accumulator = g[d.dot].type;
    for (int i = 0; i < 3; ++i) {
      const int bound = g.operand(d.loop, i);
      if (!is_index_arithmetic(g, bound, -1)) return no("the loop's bounds are not index arithmetic");
      collect_keys(bound, d.bound_keys);
    }
    if (!accumulates()) return false;
    if (!source(g.operand(d.dot, 0), d.a) || !source(g.operand(d.dot, 1), d.b)) return false;
    if (!only_effect() || !pure_before() || !nothing_escapes()) return false;
    find_numbering();
    if (!find_outputs()) d.outputs.clear();
    return true;
  }

  // var acc = 0 before; in the loop one read, one dot, one write of it.
  bool accumulates() {
    int sets = 0, set = -1;
    for (int i = d.loop; i < end_; ++i)
      if (g[i].code == op::var_set) {
        ++sets;
        set = i;
      }
    if (sets != 1) return no("the loop does not write exactly one var");
    d.cell = g.operand(set, 0);
    for (int i = 0; i < d.loop; ++i)
      if (g[i].code == op::var_set && g.operand(i, 0) == d.cell) return no("the accumulator is written before the loop");
    if (d.cell > d.loop) return no("the accumulator is made in the loop");
    for (int i = 0, depth = 0; i < d.cell; ++i) {
      depth += has(g[i].code, trait::opens) - has(g[i].code, trait::closes);
      if (i == d.cell - 1 && depth != 0) return no("the accumulator is made in a region");
    }
    int zero = g.operand(d.cell, 0);
    while (g[zero].code == op::broadcast || g[zero].code == op::reshape) zero = g.operand(zero, 0);
    if (g[zero].code != op::constant || g.attribute(zero, 0) != 0) return no("the accumulator does not start as zeros");

    const int value = g.operand(set, 1);
    int get = g.operand(d.dot, 2);
    if (value != d.dot) { // acc = acc + dot
      if (get >= 0 || g[value].code != op::add) return no("the var's new content is not the dot");
      const int x = g.operand(value, 0), y = g.operand(value, 1);
      if (x != d.dot && y != d.dot) return no("the var's new content is not the dot");
      get = x == d.dot ? y : x;
      if (!used_only_by(d.dot, value) || !used_only_by(value, set)) return no("the dot has another use");
    } else if (!used_only_by(d.dot, set)) {
      return no("the dot has another use");
    }
    if (get < 0 || g[get].code != op::var_get || g.operand(get, 0) != d.cell || get < d.loop)
      return no("the dot does not add to the var that it is written to");
    if (!used_only_by(get, value == d.dot ? d.dot : value)) return no("the accumulator has another use in the loop");
    for (int i = d.loop; i < end_; ++i)
      if (g[i].code == op::var_get && i != get && g.operand(i, 0) == d.cell) return no("the accumulator is read in the loop");
    return true;
  }

  bool used_only_by(int n, int user) const {
    for (int i = 0; i < g.size(); ++i)
      for (int x : g.operands(i))
        if (x == n && i != user) return false;
    return true;
  }

  // -- operands --------------------------------------------------------------------------------------------------------

  bool source(int n, dot_source& s) {
    std::vector<dtype> types{g[n].type}; // from the dot backwards
    bool swapped = false;
    for (;;) {
      const int inner = g.operand(n, 0);
      if (g[n].code == op::cast) types.push_back(g[inner].type);
      else if (g[n].code == op::trans || g[n].code == op::view_trans) swapped = !swapped; // of two axes: an exchange, or
      else if (g[n].code != op::reshape) break;                                           // nothing (checked below)
      if (g[n].code == op::trans || g[n].code == op::view_trans) {
        if (g.shape_of(inner).rank != 2) return no("an operand is a transposition of more than two axes");
        if (g.attribute(n, 0) == 0) swapped = !swapped;
      }
      if (g[n].code == op::reshape && !squeezes(g.shape_of(inner), g.shape_of(n)))
        return no("an operand is reshaped in a way that mixes its axes");
      n = inner;
    }
    std::ranges::reverse(types);
    s.types = types;
    int address = -1;
    if (g[n].code == op::load) {
      s.load = n;
      if (g.attribute(n, 2) != 0) return no("an operand is a volatile load");
      if (!constant_bits(g.operand(n, 2), s.other)) return no("an operand's .other is not a constant");
      if (n > end_) return no("an operand is loaded after the loop");
      if (!top_level_or_in_loop(n)) return no("an operand is loaded in a region of its own");
      address = g.operand(n, 0);
      if (g[address].kind == node_kind::pointer) return pointers(n, swapped, s);
      if (g.operand(n, 1) >= 0) return no("an operand's load has a mask");
    } else if (g[n].code == op::local_load || g[n].code == op::view_index) {
      if (!ring(g[n].code == op::local_load ? g.operand(n, 0) : n, s)) return false;
      address = g.operand(s.load, 0);
    } else {
      return no("an operand is neither a load nor a view");
    }
    return region(address, swapped, s);
  }

  bool pointers(int load, bool swapped, dot_source& s) {
    s.address = g.operand(load, 0);
    if (!match_dot_pointers(g, s.address, g.operand(load, 1), d.loop, s.pointers))
      return no("an operand's pointers or mask are not linear");
    s.row_axis = 0, s.k_axis = 1;
    if ((&s == &d.b) != swapped) std::swap(s.row_axis, s.k_axis);
    const auto collect = [&](dot_sum const& sum) {
      for (dot_product_of const& p : sum)
        for (int n : p.scalars) collect_keys(n, s.keys);
    };
    collect(s.pointers.origin);
    for (int i = 0; i < 2; ++i) {
      collect(s.pointers.step[i]);
      for (dot_sum const& l : s.pointers.limits[i]) collect(l);
    }
    return true;
  }

  bool region(int address, bool swapped, dot_source& s) {
    if (g[address].code != op::region) return no("an operand is neither a region's nor a pointer tile's");
    s.address = address;
    const shape& box = g.shape_of(address);
    int axes[max_rank], n = 0;
    for (int i = 0; i < box.rank; ++i)
      if (box.extent[i] > 1) axes[n++] = i;
    if (box.rank == 2) {
      axes[0] = 0, axes[1] = 1;
    } else if (n != 2) {
      return no("an operand's region does not have two axes");
    }
    s.row_axis = axes[0], s.k_axis = axes[1];
    if ((&s == &d.b) != swapped) std::swap(s.row_axis, s.k_axis);
    if (g[g.operand(address, 0)].code != op::param) return no("an operand's array is not a parameter");
    for (int i = 1; i <= box.rank; ++i) {
      const int start = g.operand(address, i);
      if (!is_index_arithmetic(g, start, d.loop)) return no("a region's start is not index arithmetic");
      collect_keys(start, s.keys);
    }
    return true;
  }

  static bool squeezes(shape const& from, shape const& to) {
    std::vector<int> x, y;
    for (int i = 0; i < from.rank; ++i)
      if (from.extent[i] > 1) x.push_back(from.extent[i]);
    for (int i = 0; i < to.rank; ++i)
      if (to.extent[i] > 1) y.push_back(to.extent[i]);
    return x == y && x.size() == 2;
  }

  bool constant_bits(int n, std::uint64_t& bits) const {
    bits = 0;
    if (n < 0) return true;
    while (g[n].code == op::broadcast || g[n].code == op::reshape) n = g.operand(n, 0);
    if (g[n].code != op::constant) return false;
    bits = static_cast<std::uint64_t>(g.attribute(n, 0));
    return true;
  }

  // Maximal subexpressions that do not change in the loop but from CTA to CTA.
  void collect_keys(int n, std::vector<int>& keys) const {
    if (!depends_on_program(g, n)) return;
    if (!depends_on(g, n, d.loop)) {
      for (int k : keys)
        if (same(g, k, n)) return;
      keys.push_back(n);
      return;
    }
    for (int x : g.operands(n))
      if (x >= 0) collect_keys(x, keys);
  }

  bool in_loop(int n) const { return n > d.loop && n < end_; }
  // The innermost region around n; -1: none.
  int region_of(int n) const {
    std::vector<int> open;
    for (int i = 0; i < n; ++i) {
      if (has(g[i].code, trait::opens)) open.push_back(i);
      if (has(g[i].code, trait::closes)) open.pop_back();
    }
    return open.empty() ? -1 : open.back();
  }
  bool top_level_or_in_loop(int n) const {
    const int r = region_of(n);
    return r == -1 || r == d.loop;
  }

  // -- rings -----------------------------------------------------------------------------------------------------------

  // index + P, with P constant: gives P.
  std::optional<std::int64_t> beyond_index(int n) const {
    n = through_widening(g, n);
    if (n == d.loop) return 0;
    if (g[n].code != op::add) return {};
    for (int i = 0; i < 2; ++i) {
      const auto p = beyond_index(g.operand(n, i));
      const auto c = evaluate(g.operand(n, 1 - i), 0);
      if (p && c && c->leaf < 0 && !depends_on(g, g.operand(n, 1 - i), d.loop)) {
        std::int64_t sum = 0;
        if (__builtin_add_overflow(*p, c->known, &sum)) return {};
        return sum;
      }
    }
    return {};
  }

  // A scalar with `index` for the loop's index.
  std::optional<partly_known> evaluate(int n, std::int64_t index) const {
    if (n == d.loop) return partly_known{-1, index};
    node const& x = g[n];
    if (!is_scalar(g, n) || x.kind != node_kind::value || !is_int(x.type)) return {};
    if (x.code == op::constant) return partly_known{-1, wrapped(g.attribute(n, 0), x.type)};
    if (!depends_on(g, n, d.loop)) {
      bool constant = true;
      for (int i = 0; i < x.operand_count; ++i) {
        const auto v = g.operand(n, i) >= 0 ? evaluate(g.operand(n, i), index) : std::nullopt;
        constant = constant && v && v->leaf < 0;
      }
      if (!constant || x.operand_count == 0) return partly_known{n, 0};
    }
    std::optional<partly_known> v[2];
    for (int i = 0; i < x.operand_count && i < 2; ++i) v[i] = evaluate(g.operand(n, i), index);
    if (!v[0] || (x.operand_count == 2 && !v[1])) return {};
    const bool known = v[0]->leaf < 0 && (x.operand_count < 2 || v[1]->leaf < 0);
    const auto add = [&](std::int64_t p, std::int64_t q) {
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(p) + static_cast<std::uint64_t>(q));
    };
    switch (x.code) {
    case op::cast:
      if (!is_int(g[g.operand(n, 0)].type) || !known) return {};
      return partly_known{-1, wrapped(v[0]->known, x.type)};
    case op::add:
      if (v[0]->leaf >= 0 && v[1]->leaf >= 0) return {};
      return partly_known{std::max(v[0]->leaf, v[1]->leaf), wrapped(add(v[0]->known, v[1]->known), x.type)};
    case op::sub:
      if (!known) return {};
      return partly_known{-1, wrapped(static_cast<std::int64_t>(static_cast<std::uint64_t>(v[0]->known) -
                                                                static_cast<std::uint64_t>(v[1]->known)),
                                      x.type)};
    case op::mul:
      if (!known) return {};
      return partly_known{-1, wrapped(static_cast<std::int64_t>(static_cast<std::uint64_t>(v[0]->known) *
                                                                static_cast<std::uint64_t>(v[1]->known)),
                                      x.type)};
    case op::rem:
      if (!known || v[0]->known < 0 || v[1]->known <= 0) return {};
      return partly_known{-1, v[0]->known % v[1]->known};
    case op::div:
      if (!known || v[0]->known < 0 || v[1]->known <= 0) return {};
      return partly_known{-1, v[0]->known / v[1]->known};
    default: return {};
    }
  }

  bool equal_at(int in_loop, std::int64_t index, int before) const {
    const auto x = evaluate(in_loop, index), y = evaluate(before, 0);
    if (!x || !y || x->known != y->known) return false;
    return x->leaf == y->leaf || (x->leaf >= 0 && y->leaf >= 0 && same(g, x->leaf, y->leaf));
  }

  // Slot number of a view as index % S; S = 1 for a buffer with one slot. False: something else.
  bool slot_of(int view, int slots, int& number) const {
    number = g.operand(view, 1);
    while (g[number].code == op::cast && is_int(g[g.operand(number, 0)].type)) number = g.operand(number, 0);
    if (slots == 1) {
      const auto c = evaluate(number, 0);
      return c && c->leaf < 0 && c->known == 0 && !depends_on(g, number, d.loop);
    }
    return true;
  }
  bool is_remainder(int n, int slots, int& of) const {
    if (g[n].code != op::rem) return false;
    const auto s = evaluate(g.operand(n, 1), 0);
    of = g.operand(n, 0);
    return s && s->leaf < 0 && s->known == slots;
  }

  bool ring(int view, dot_source& s) {
    if (g[view].code != op::view_index || g[g.operand(view, 0)].code != op::alloc)
      return no("an operand is a part of a local buffer");
    const int alloc = g.operand(view, 0), buffer = g.buffer_of(view);
    for (int i = 0; i < static_cast<int>(g.buffers.size()); ++i)
      if (i != buffer && g.storage_of(i) == g.storage_of(buffer)) return no("the ring shares its storage with other buffers");
    const int slots = g.buffer(buffer).slots;
    int number = -1, of = -1;
    if (!slot_of(view, slots, number)) return no("the slot that the dot reads is not index % slots");
    if (slots > 1 && (!is_remainder(number, slots, of) || beyond_index(of) != 0))
      return no("the slot that the dot reads is not index % slots");
    const auto lo = evaluate(g.operand(d.loop, 0), 0), step = evaluate(g.operand(d.loop, 2), 0);
    if (!lo || lo->leaf >= 0 || lo->known != 0 || !step || step->leaf >= 0 || step->known != 1)
      return no("a ring needs a loop from 0 in steps of 1");

    // Everything that touches the buffer.
    std::vector<int> before;
    int inside = -1;
    for (int i = 0; i < g.size(); ++i) {
      if (i == alloc) continue;
      for (int j = 0; j < g[i].operand_count; ++j) {
        const int x = g.operand(i, j);
        if (x < 0 || (g[x].kind != node_kind::view && g[x].kind != node_kind::buffers) || g.buffer_of(x) != buffer) continue;
        if (has(g[i].code, trait::view)) {
          if (g[i].code == op::view_trans && in_loop(i)) continue;
          if (g[i].code != op::view_index || x != alloc) return no("a part of the ring is viewed");
          continue;
        }
        if (i == d.dot || (g[i].code == op::local_load && in_loop(i))) continue;
        if (g[i].code != op::async_load || j != 1) return no("the ring has another use");
        if (i > end_) return no("the ring is filled after the loop");
        if (g[x].code != op::view_index) return no("the ring is filled through a view of a slot");
        if (i < d.loop) before.push_back(i);
        else if (inside >= 0) return no("the ring is filled twice in the loop");
        else inside = i;
      }
    }
    // What reads the ring in the loop is this operand only.
    for (int i = d.loop; i < end_; ++i)
      if ((g[i].code == op::local_load || g[i].code == op::dot || g[i].code == op::view_trans))
        for (int j = 0; j < std::min(2, static_cast<int>(g[i].operand_count)); ++j) {
          const int x = g.operand(i, j);
          if (x >= 0 && g[x].kind == node_kind::view && g.buffer_of(x) == buffer && x != view && g[x].code == op::view_index)
            return no("the loop reads two slots of the ring");
        }
    if (inside < 0) return no("the ring is not filled in the loop");
    s.load = inside;
    if (g.operand(inside, 2) >= 0) return no("a ring's load has a mask");
    if (g.attribute(inside, 2) != 0) return no("an operand is a volatile load");
    if (!constant_bits(g.operand(inside, 3), s.other)) return no("a ring's .other is not a constant");

    // The load in the loop fills slot (index + lead) % S with what iteration index + lead reads.
    const int slot = g.operand(inside, 1);
    if (!slot_of(slot, slots, number)) return no("the slot that is filled is not (index + constant) % slots");
    if (slots > 1) {
      if (!is_remainder(number, slots, of)) return no("the slot that is filled is not (index + constant) % slots");
      const auto p = beyond_index(of);
      if (!p || *p < 0) return no("the slot that is filled is not (index + constant) % slots");
      s.lead = *p;
    } else {
      s.lead = inside < d.dot ? 0 : 1;
    }
    const bool first = inside < d.dot;
    if (s.lead > (first ? slots - 1 : slots) || (s.lead == 0 && !first))
      return no("the ring is filled too late, or over a slot that is still to be read");
    if (!guard_ok(inside, s.lead, -1)) return no("a ring's load is conditional on something else than being in the loop");
    if (static_cast<std::int64_t>(before.size()) != s.lead) return no("the loads before the loop do not fill what it reads first");
    for (int j = 0; j < static_cast<int>(before.size()); ++j) {
      const int load = before[at(j)];
      std::uint64_t other = 0;
      int n = -1;
      if (g.operand(load, 2) >= 0 || g.attribute(load, 2) != 0 || !constant_bits(g.operand(load, 3), other) || other != s.other)
        return no("a load before the loop differs from the loop's");
      if (!slot_of(g.operand(load, 1), slots, n)) return no("a load before the loop fills an unknown slot");
      const auto where = evaluate(n, 0);
      if (!where || where->leaf >= 0 || where->known != j % slots) return no("a load before the loop fills another slot");
      const int x = g.operand(load, 0), y = g.operand(inside, 0);
      if (g[x].code != op::region || g[y].code != op::region || g.operand(x, 0) != g.operand(y, 0) ||
          !(g.shape_of(x) == g.shape_of(y)))
        return no("a load before the loop reads something else");
      for (int i = 1; i < g[x].operand_count; ++i)
        if (!equal_at(g.operand(y, i), j - s.lead, g.operand(x, i)))
          return no("a load before the loop reads another place than the loop's would");
      if (!guard_ok(load, s.lead, j)) return no("a ring's load is conditional on something else than being in the loop");
    }
    d.drop[at(alloc)] = 1;
    for (int load : before) d.drop[at(load)] = 1;
    for (int i = 0; i < g.size(); ++i)
      if (has(g[i].code, trait::view) && g.buffer_of(i) == buffer) d.drop[at(i)] = 1;
    return true;
  }

  // A load stands free (in the loop's body, or at the top level), or under `number < hi` alone, where number is the
  // iteration that it is for.
  bool guard_ok(int load, std::int64_t lead, std::int64_t before) const {
    const int outer = before >= 0 ? -1 : d.loop;
    const int region = region_of(load);
    if (region == outer) return true;
    if (region < 0 || g[region].code != op::if_begin || region_of(region) != outer) return false;
    if (g.attribute(region, 0) >= 0) return false; // with else
    const int condition = g.operand(region, 0);
    int number = -1, bound = -1;
    if (g[condition].code == op::lt) number = g.operand(condition, 0), bound = g.operand(condition, 1);
    else if (g[condition].code == op::gt) number = g.operand(condition, 1), bound = g.operand(condition, 0);
    else return false;
    if (!is_signed(g[number].type)) return false;
    if (!same(g, through_widening(g, bound), through_widening(g, g.operand(d.loop, 1)))) return false;
    if (before < 0) return beyond_index(number) == lead;
    const auto n = evaluate(number, 0);
    return n && n->leaf < 0 && n->known == before;
  }

  // -- what else happens -------------------------------------------------------------------------------------------------

  static bool harmless(op o) {
    return has(o, trait::pure) || has(o, trait::hint) || o == op::load || o == op::async_commit || o == op::async_wait;
  }

  bool only_effect() {
    for (int i = d.loop + 1; i < end_; ++i) {
      const op o = g[i].code;
      if (harmless(o) || o == op::var_get || o == op::var_set || o == op::local_load) {
        if (o == op::load && g.attribute(i, 2) != 0) return no("a volatile load in the loop");
        continue;
      }
      if (o == op::sync) continue; // orders accesses to the ring, which is gone
      if (o == op::async_load && (i == d.a.load || i == d.b.load)) continue;
      if ((o == op::if_begin || o == op::if_end) && only_ring_inside(o == op::if_begin ? i : static_cast<int>(g.attribute(i, 0))))
        continue;
      return no("the loop has another effect than the product");
    }
    return true;
  }
  bool only_ring_inside(int begin) const {
    if (g.attribute(begin, 0) >= 0) return false;
    for (int i = begin + 1; i < g.attribute(begin, 1); ++i) {
      const bool ring_load = g[i].code == op::async_load && (i == d.a.load || i == d.b.load || d.drop[at(i)]);
      if (!ring_load && !(harmless(g[i].code) && g[i].code != op::load)) return false;
    }
    return true;
  }

  bool pure_before() {
    for (int i = 0; i < d.loop; ++i) {
      const op o = g[i].code;
      if (has(o, trait::view) || o == op::alloc || o == op::var || o == op::var_get) continue;
      if (harmless(o)) {
        if (o == op::load && g.attribute(i, 2) != 0) return no("a volatile load before the loop");
        if (o == op::async_commit || o == op::async_wait) d.drop[at(i)] = 1;
        continue;
      }
      if (o == op::combine_begin || o == op::combine_end) continue;
      if (o == op::async_load && d.drop[at(i)]) continue;
      if (o == op::if_begin && only_ring_inside(i)) {
        for (int j = i; j <= g.attribute(i, 1); ++j) d.drop[at(j)] = 1;
        i = static_cast<int>(g.attribute(i, 1));
        continue;
      }
      return no("the kernel has an effect before the loop");
    }
    // Commits and waits after the loop have nothing left to do either.
    bool other_async = false;
    for (int i = 0; i < g.size(); ++i) other_async |= g[i].code == op::async_load && !d.drop[at(i)];
    if (other_async) return no("the kernel has other asynchronous loads");
    for (int i = end_; i < g.size(); ++i)
      if (g[i].code == op::async_commit || g[i].code == op::async_wait) d.drop[at(i)] = 1;
    return true;
  }

  // No value of what is left out is used by the rest.
  bool nothing_escapes() {
    for (int i = 0; i < g.size(); ++i) {
      if (d.drop[at(i)]) continue;
      for (int x : g.operands(i))
        if (x >= 0 && d.drop[at(x)]) return no("a value of the loop is used outside of it");
    }
    return true;
  }

  // Where the sums go, if they go nowhere but into stores to regions, each to its own element.
  bool find_outputs() {
    std::vector<std::uint8_t> from(at(g.size()), 0); // made of the sums, in their places
    for (int i = end_ + 1; i < g.size(); ++i) {
      if (g[i].code == op::var_get && g.operand(i, 0) == d.cell) {
        from[at(i)] = 1;
        continue;
      }
      if (g[i].code == op::var_set && g.operand(i, 0) == d.cell) continue; // what is read there later is treated as made of sums
      if (std::ranges::none_of(g.operands(i), [&](int x) { return x >= 0 && from[at(x)]; })) continue;
      if (g[i].code == op::store) {
        const int where = g.operand(i, 0), mask = g.operand(i, 2);
        if ((mask >= 0 && from[at(mask)]) || !output(where)) return false;
        continue;
      }
      const bool in_place = has(g[i].code, trait::elementwise) ||
                            (g[i].code == op::reshape && squeezes(g.shape_of(g.operand(i, 0)), g.shape_of(i)));
      if (!in_place || (g[i].code != op::reshape && !(g.shape_of(i) == g.shape_of(d.dot)) && !squeezes(g.shape_of(d.dot), g.shape_of(i))))
        return false;
      from[at(i)] = 1;
    }
    return true;
  }
  bool output(int address) {
    if (g[address].code != op::region || g[g.operand(address, 0)].code != op::param) return false;
    const shape& box = g.shape_of(address);
    int axes[max_rank], n = 0;
    for (int i = 0; i < box.rank; ++i) {
      if (box.extent[i] > 1) axes[n++] = i;
      if (!is_index_arithmetic(g, g.operand(address, i + 1), -1)) return false;
    }
    if (box.rank == 2) axes[0] = 0, axes[1] = 1;
    else if (n != 2) return false;
    if (box.extent[axes[0]] != d.m || box.extent[axes[1]] != d.n) return false;
    d.outputs.push_back({address, axes[0], axes[1]});
    return true;
  }

  // Only speed depends on this: in which order consecutive CTAs share operands.
  void find_numbering() {
    bool x = false, y = false;
    for (int i = 0; i < d.loop; ++i)
      if (g[i].code == op::program_id) (g.attribute(i, 0) == 0 ? x : y) = true;
    if (x && y) {
      d.columns = -1;
      return;
    }
    int divisor = -1;
    for (int i = 0; i < d.loop; ++i) {
      if (g[i].code != op::rem || !is_scalar(g, i) || g[through_widening(g, g.operand(i, 0))].code != op::program_id) continue;
      const int columns = g.operand(i, 1);
      if (depends_on_program(g, columns) || !is_index_arithmetic(g, columns, -1)) continue;
      divisor = divisor < 0 || same(g, divisor, columns) ? columns : -2;
      if (divisor == -2) return;
    }
    if (divisor < 0) return;
    // program_tile with a group: columns * group is what divides, and within a group tiles are numbered by a second
    // division, by min(rows - first, group).
    bool nested = false;
    for (int i = 0; i < d.loop; ++i)
      if ((g[i].code == op::rem || g[i].code == op::div) && is_scalar(g, i)) {
        const int of = g.operand(i, 0);
        nested |= g[of].code == op::rem && same(g, g.operand(of, 1), divisor) && depends_on_program(g, of);
      }
    for (int i = 0; i < d.loop && nested; ++i) {
      if (g[i].code != op::min || !is_scalar(g, i)) continue;
      for (int j = 0; j < 2; ++j) {
        const auto group = evaluate(g.operand(i, j), 0);
        const int height = g.operand(i, 1 - j);
        if (!group || group->leaf >= 0 || group->known < 1 || g[height].code != op::sub) continue;
        const int rows = g.operand(height, 0);
        if (depends_on_program(g, rows) || !is_index_arithmetic(g, rows, -1)) continue;
        d.rows = rows, d.columns = divisor, d.walked = group->known;
        return;
      }
    }
    if (nested) return; // an order of its own, which is left as it is
    d.columns = divisor;
  }

  graph_view const& g;
  dot_loop d;
  int end_ = -1;
  std::string why_;
};

} // namespace

bool is_index_arithmetic(graph_view const& g, int n, int loop) {
  if (n < 0 || !is_scalar(g, n) || g[n].kind != node_kind::value) return false;
  if (n == loop) return true;
  if (!is_int(g[n].type) && !is_bool(g[n].type)) return false;
  switch (g[n].code) {
  case op::constant:
  case op::param:
  case op::program_id:
  case op::num_programs: return true;
  case op::extent:
  case op::stride: return g[g.operand(n, 0)].code == op::param;
  case op::neg:
  case op::bit_not:
  case op::abs:
  case op::cast:
  case op::add:
  case op::sub:
  case op::mul:
  case op::div:
  case op::rem:
  case op::bit_and:
  case op::bit_or:
  case op::bit_xor:
  case op::shl:
  case op::shr:
  case op::min:
  case op::max:
  case op::eq:
  case op::ne:
  case op::lt:
  case op::le:
  case op::gt:
  case op::ge:
  case op::where:
  case op::multiple_of:
  case op::require_layout:
  case op::release_layout:
  case op::max_contiguous: break;
  default: return false;
  }
  return std::ranges::all_of(g.operands(n), [&](int x) { return is_index_arithmetic(g, x, loop); });
}

namespace {

// Whether n, or anything that it is computed from, satisfies `is`. A loop's index counts as computed from nothing.
template <class Is> bool any_source(graph_view const& g, int n, Is is) {
  std::vector<std::uint8_t> seen(at(n + 1), 0);
  seen[at(n)] = 1;
  for (int i = n; i >= 0; --i) { // operands lie before their users
    if (!seen[at(i)]) continue;
    if (is(i)) return true;
    if (g[i].code == op::for_begin) continue;
    for (int x : g.operands(i))
      if (x >= 0) seen[at(x)] = 1;
  }
  return false;
}

} // namespace

bool depends_on(graph_view const& g, int n, int other) {
  return any_source(g, n, [&](int i) { return i == other; });
}
bool depends_on_program(graph_view const& g, int n) {
  return any_source(g, n, [&](int i) { return g[i].code == op::program_id; });
}

dot_match match_dot_loop(graph_view const& g) { return matcher(g).run(); }

dot_rest without_dot_loop(graph_view const& g, dot_loop const& d) {
  dot_rest r;
  graph& out = r.rest;
  out.name = std::string(g.name);
  out.attrs = g.attrs;
  out.shapes.assign(g.shapes.begin(), g.shapes.end());
  out.params.assign(g.params.begin(), g.params.end());
  for (char const* s : g.strings) out.add_string(s);
  for (char const* f : g.files) out.add_file(f);

  bool written = false; // after the loop
  for (int i = d.loop; i < g.size(); ++i)
    written |= g[i].code == op::var_set && g.operand(i, 0) == d.cell && !d.drop[at(i)];

  std::vector<int> number(at(g.size()), -1), buffer(g.buffers.size(), -1);
  const auto push = [&](node like, std::vector<std::int32_t> operands, std::vector<std::int64_t> attributes) {
    like.operands = static_cast<std::int32_t>(out.operand_pool.size());
    like.attributes = static_cast<std::int32_t>(out.attribute_pool.size());
    like.operand_count = static_cast<std::int32_t>(operands.size());
    out.operand_pool.insert(out.operand_pool.end(), operands.begin(), operands.end());
    out.attribute_pool.insert(out.attribute_pool.end(), attributes.begin(), attributes.end());
    out.nodes.push_back(like);
    return static_cast<int>(out.nodes.size()) - 1;
  };
  const auto made = [&](op code, dtype t, node_kind k, std::int32_t shape) {
    node n{};
    n.code = code, n.type = t, n.kind = k, n.shape = shape, n.file = g[d.loop].file, n.line = g[d.loop].line;
    return n;
  };

  int accumulators = -1; // the local_load
  for (int i = 0; i < g.size(); ++i) {
    if (d.drop[at(i)]) continue;
    if (i == d.cell) {
      const std::int32_t box = g[d.cell].shape;
      buffer_info b;
      b.type = d.accumulator;
      b.has_slots = false;
      b.shape = box;
      b.name = out.add_string("accumulators");
      r.buffer = static_cast<int>(out.buffers.size());
      b.node = push(made(op::alloc, d.accumulator, node_kind::buffers, box), {}, {r.buffer});
      out.buffers.push_back(b);
      const int zero = push(made(op::constant, dtype::i32, node_kind::value, intern_shape(out, {})), {}, {0});
      const int view = push(made(op::view_index, d.accumulator, node_kind::view, box), {b.node, zero}, {});
      accumulators = push(made(op::local_load, d.accumulator, node_kind::value, box), {view, -1}, {1});
      if (!written) continue;
      number[at(i)] = push(g[i], {accumulators}, {});
      continue;
    }
    if (!written && g[i].code == op::var_get && g.operand(i, 0) == d.cell) {
      number[at(i)] = accumulators;
      continue;
    }
    std::vector<std::int32_t> operands(g.operands(i).begin(), g.operands(i).end());
    for (auto& x : operands)
      if (x >= 0) x = number[at(x)];
    std::vector<std::int64_t> attributes(g.attributes_of(i).begin(), g.attributes_of(i).end());
    for (int a = 0; a < static_cast<int>(attributes.size()); ++a)
      if (kind_of_attribute(g[i].code, a) == attribute_kind::combine && attributes[at(a)] >= 0)
        attributes[at(a)] = number[static_cast<std::size_t>(attributes[at(a)])];
    if (g[i].code == op::alloc) {
      buffer_info b = g.buffer(static_cast<int>(attributes[0]));
      attributes[0] = static_cast<std::int64_t>(out.buffers.size());
      b.node = static_cast<int>(out.nodes.size());
      out.buffers.push_back(b);
    }
    number[at(i)] = push(g[i], std::move(operands), std::move(attributes));
  }
  for (auto& p : out.params) p.node = number[at(p.node)];
  link_regions(out);
  return r;
}

} // namespace kiln::jit::host
