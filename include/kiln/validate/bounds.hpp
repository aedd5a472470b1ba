// Rules that intervals decide: slots and slices within their buffers, steps that are not zero, indices that are never in
// range; and, as data, the 32-bit products in addresses that a large launch makes overflow.
//
// A rule here fires only when no launch could be right (an index that may be wrong for some n is the checker's: R-BD10); the
// simulation evaluates what depends on loop indices exactly.
#pragma once
#include <kiln/graph/cluster.hpp>
#include <kiln/validate/ranges.hpp>

namespace kiln {

/// A 32-bit addition or product that is part of a global address and can exceed its type.
struct narrow_address {
  int node = -1;
  range value{}; ///< of the unlimited result
};

namespace detail {

/// Operations with a rule here.
inline constexpr op_flags asked_bounds = flags_where([](op o) {
  return o == op::for_begin || o == op::multiple_of || o == op::view_index || o == op::view_slice || o == op::gather || o == op::local_gather || o == op::local_scatter ||
         o == op::remote_barrier || o == op::remote_store || o == op::async_remote_store || o == op::async_remote_copy;
});

class bounds_check {
public:
  constexpr bounds_check(graph_view const& g, ranges const& r) : g_(g), r_(r) {}

  constexpr diagnostic run() {
    for (int i = 0; i < g_.size() && error_.ok(); ++i) {
      if (!asked_bounds.of[static_cast<int>(g_.nodes.items[i].code)]) continue;
      switch (g_[i].code) {
      case op::for_begin:
        if (range const& s = r_[g_.operand(i, 2)]; s.constant() && s.lo == 0)
          at(i) << "kiln[K-06] a range with step 0 never ends; give a step of 1 or more, or -1 or less";
        break;
      case op::multiple_of: multiple(i); break;
      case op::view_index: index(i); break;
      case op::view_slice: slice(i); break;
      case op::barrier_index: barrier(i); break;
      case op::remote_barrier: rank(i, 1); break;
      case op::remote_store: case op::async_remote_store: case op::async_remote_copy: rank(i, 2); break;
      case op::gather: indices(i, 0, 1); break;
      case op::local_gather: indices(i, 0, 1); break;
      case op::local_scatter: indices(i, 0, 2); break;
      default: break;
      }
    }
    return error_;
  }

private:
  constexpr message at(int node) {
    error_.node = node;
    return message(error_);
  }
  constexpr void name(message& m, int view) const {
    buffer_info const& b = g_.buffer(g_.buffer_of(view));
    if (b.name >= 0)
      m << g_.string(b.name);
    else
      m << (b.has_slots ? "local_alloc@" : "alloc_shared@") << g_[b.node].line;
  }
  static constexpr void value(message& m, range const& r) {
    if (r.constant())
      m << r.lo;
    else
      m << "in " << r.lo << ".." << r.hi;
  }
  constexpr void index(int i) {
    int const from = g_.operand(i, 0);
    range const& x = r_[g_.operand(i, 1)];
    bool const slot = g_[from].kind == node_kind::buffers;
    std::int64_t const n = slot ? g_.buffer(g_.buffer_of(from)).slots : g_.shape_of(from).extent[0];
    if (x.lo < n && x.hi >= 0) return;
    message m = at(i);
    m << "kiln[R-BD01] ";
    name(m, from);
    m << (slot ? ": index " : ": index along axis 0 ");
    value(m, x);
    m << ", valid 0.." << n - 1;
  }
  constexpr void barrier(int i) {
    int const from = g_.operand(i, 0);
    range const& x = r_[g_.operand(i, 1)];
    std::int64_t const n = g_.attribute(from, 0);
    if (x.lo < n && x.hi >= 0) return;
    message m = at(i);
    m << "kiln[R-BD05] ";
    if (char const* const name = g_.string(static_cast<int>(g_.attribute(from, 3))); *name)
      m << name;
    else
      m << "barriers@" << g_[from].line;
    m << ": index ";
    value(m, x);
    m << ", valid 0.." << n - 1;
  }
  constexpr void rank(int i, int j) {
    range const& x = r_[g_.operand(i, j)];
    int const n = cluster_size(g_.attrs);
    if (x.lo < n && x.hi >= 0) return;
    message m = at(i);
    m << "kiln[R-BD01] " << name_of(g_[i].code) << ": rank ";
    value(m, x);
    m << ", valid 0.." << n - 1;
  }
  /// A promise that cannot be kept: vload and vstore make one, and a user may.
  constexpr void multiple(int i) {
    if (g_[i].kind != node_kind::value || g_[i].shape != 0) return;
    range const& x = r_[g_.operand(i, 0)];
    std::int64_t const n = g_.attribute(i, 0), common = gcd(x.divisor, n);
    if (modulo(x.remainder, common) == 0) return;
    message m = at(i);
    m << "kiln[R-BD06] an index of ";
    if (x.constant())
      m << x.lo;
    else
      m << x.remainder << " + a multiple of " << x.divisor;
    m << " where a multiple of " << n << " is promised, or needed by vload and vstore";
  }
  constexpr void slice(int i) {
    int const from = g_.operand(i, 0);
    shape const &s = g_.shape_of(from), &e = g_.shape_of(i);
    for (int d = 0; d < s.rank; ++d) {
      range const& x = r_[g_.operand(i, d + 1)];
      std::int64_t const last = s.extent[d] - e.extent[d];
      if (x.lo > last || x.hi < 0) {
        message m = at(i);
        m << "kiln[R-BD02] a slice of ";
        name(m, from);
        if (last == 0)
          m << ": offset " << (x.lo > 0 ? x.lo : x.hi) << " on axis " << d << ", which is not narrowed; it must be 0";
        else if (x.constant())
          m << ": elements " << x.lo << ".." << x.lo + e.extent[d] - 1 << " of " << s.extent[d] << " (axis " << d << ")";
        else
          m << ": offset in " << x.lo << ".." << x.hi << ", valid 0.." << last << " (axis " << d << ")";
        return;
      }
      if (last == 0) continue;
      if (slot_layout const& l = g_.buffer(g_.buffer_of(from)).layout; l.bits > 0 && d + 2 == s.rank) {
        // Rows of a swizzle repeat after so many: of a panel where the row is cut into panels.
        std::int64_t const row = l.modes > 0 ? l.mode[l.modes - 1].extent : s.extent[d + 1], atom = ((std::int64_t{1} << (l.base + l.shift + l.bits)) + row - 1) / row;
        if (e.extent[d] % atom != 0) {
          message m = at(i);
          m << "kiln[R-BD03] a slice of ";
          name(m, from);
          m << ": " << e.extent[d] << " rows cut the " << atom << "-row atom of its swizzle (axis " << d << ")";
          return;
        }
      }
      std::int64_t const common = gcd(x.divisor, e.extent[d]);
      if (modulo(x.remainder, common) == 0) continue;
      message m = at(i);
      m << "kiln[R-BD03] a slice of ";
      name(m, from);
      m << ": offset ";
      if (x.constant())
        m << x.lo;
      else
        m << x.remainder << " + a multiple of " << x.divisor;
      m << " is not a multiple of the extent of the slice, " << e.extent[d] << " (axis " << d << ")";
      return;
    }
  }
  constexpr void indices(int i, int from, int which) {
    shape const& s = g_.shape_of(g_.operand(i, from));
    int const axis = static_cast<int>(g_.attribute(i, 0));
    range const& x = r_[g_.operand(i, which)];
    if (x.lo < s.extent[axis] && x.hi >= 0) return;
    message m = at(i);
    m << "kiln[R-BD11] " << name_of(g_[i].code) << ": every index is ";
    value(m, x);
    m << ", valid 0.." << s.extent[axis] - 1 << " (axis " << axis << ")";
  }

  graph_view const& g_;
  ranges const& r_;
  diagnostic error_;
};

/// Finds the narrow arithmetic of addresses: backwards from pointer offsets and region starts through what computes them.
class address_check {
public:
  constexpr address_check(graph_view const& g, ranges const& r) : g_(g), r_(r) {
    int const n = g.size();
    flows_ = new bool[static_cast<unsigned>(n) + 1]{};
    for (int i = n - 1; i >= 0; --i) {
      node const& x = g[i];
      if (x.code == op::ptr_add) mark(g.operand(i, 1));
      if (x.code == op::region)
        for (int j = 1; j < x.operand_count; ++j) mark(g.operand(i, j));
      if (!flows_[i]) continue;
      switch (x.code) {
      case op::add: case op::sub: case op::mul: case op::neg: case op::shl: case op::min: case op::max: case op::join:
      case op::broadcast: case op::reshape: case op::trans: case op::split: case op::cast: case op::multiple_of: case op::max_contiguous:
        for (std::int32_t o : g.operands(i))
          if (g[o].kind == node_kind::value && is_int(g[o].type)) mark(o);
        break;
      case op::where:
        mark(g.operand(i, 1));
        mark(g.operand(i, 2));
        break;
      default: break;
      }
    }
  }
  address_check(address_check const&) = delete;
  constexpr ~address_check() { delete[] flows_; }
  /// Whether node i is arithmetic of 32 bits or less in an address, and may leave its type. `sizes_only`: because of what is
  /// known of its operands, not because one of them may be anything.
  constexpr bool suspect(int i, bool sizes_only = false) const {
    node const& x = g_[i];
    if (!flows_[i] || x.kind != node_kind::value || !is_int(x.type) || bits_of(x.type) > 32) return false;
    if ((x.code != op::mul && x.code != op::shl) || !r_.can_wrap(i)) return false;
    if (sizes_only)
      for (std::int32_t o : g_.operands(i)) {
        range const &r = r_[o], f = full_range(g_[o].type);
        if (r.hi == f.hi || (r.lo == f.lo && f.lo < 0)) return false;
      }
    return true;
  }

private:
  // An absent operand is -1.
  constexpr void mark(int node) {
    if (node >= 0) flows_[node] = true;
  }
  graph_view const& g_;
  ranges const& r_;
  bool* flows_ = nullptr;
};

} // namespace detail

namespace detail {
/// The nodes whose ranges the rules ask for, and what those are computed from. Most kernels ask about few of their nodes.
class wanted_ranges {
public:
  constexpr explicit wanted_ranges(graph_view const& g) {
    int const n = g.size();
    flags_ = new bool[static_cast<unsigned>(n) + 1]{};
    node const* const nodes = g.nodes.items;
    std::int32_t const* const operands = g.operand_pool.items;
    for (int i = n - 1; i >= 0; --i) {
      node const& x = nodes[i];
      if (!flags_[i] && !asked_bounds.of[static_cast<int>(x.code)]) continue;
      any_ = true;
      for (int j = 0; j < x.operand_count; ++j)
        if (std::int32_t const o = operands[x.operands + j]; o >= 0) flags_[o] = true;
    }
  }
  wanted_ranges(wanted_ranges const&) = delete;
  constexpr ~wanted_ranges() { delete[] flags_; }
  constexpr bool any() const { return any_; }
  constexpr bool const* flags() const { return flags_; }

private:
  bool* flags_ = nullptr;
  bool any_ = false;
};
} // namespace detail

/// Bounds and steps that are wrong for every launch.
constexpr diagnostic check_bounds(graph_view const& g) {
  detail::wanted_ranges const wanted(g);
  if (!wanted.any()) return {};
  detail::ranges const r(g, nullptr, wanted.flags());
  return detail::bounds_check(g, r).run();
}

/// Calls `found(narrow_address)` for every 32-bit product of an address that can exceed its type: with the sizes of a launch,
/// for those that exceed it there (a value that memory or a var gives counts as small); without, for all that might for some
/// launch. `cast<i64>` of an operand is the cure.
template <class F>
constexpr void narrow_addresses(graph_view const& g, F&& found, known_sizes const* known = nullptr) {
  detail::ranges const r(g, known);
  detail::address_check const c(g, r);
  for (int i = 0; i < g.size(); ++i)
    if (c.suspect(i, known != nullptr)) found(narrow_address{i, r.unwrapped(i)});
}

} // namespace kiln
