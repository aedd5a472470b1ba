// The structure and type verifier: is this a graph at all? It knows every operation's operands and result, that regions
// nest, and that no value is used outside the region it was made in. Graphs come from the recorder, from text, from passes
// and from random generators; whatever accepts a graph may rely on what is checked here. One pass, O(nodes + operands).
//
// Rules: G-01 tables, G-02 operand counts, G-03 operand types, G-04 result types, G-05 regions, G-06 attributes;
// K-10 a value outside its region, K-14 what a combine body may hold; T-14 writing through const; R-HZ07 tokens,
// R-UN01 an index that is not a scalar, R-BD02 and R-BD09 static views.
#pragma once
#include <kiln/graph/local_layout.hpp>
#include <kiln/graph/recorder.hpp>
#include <kiln/validate/op_facts.hpp>
#include <kiln/validate/verify_tasks.hpp>

namespace kiln {

namespace detail {

class verifier {
public:
  constexpr verifier(graph_view const& g, bool recorded) : g_(g), recorded_(recorded) {}
  verifier(verifier const&) = delete;
  constexpr ~verifier() {
    delete[] region_of_;
    delete[] origin_;
  }

  constexpr diagnostic run() {
    if (!tables() || (g_.attrs.cluster != dims{} && !verify_cluster_size(g_, error_))) return error_;
    if ((g_.attrs.num_warps < 1 || g_.attrs.num_warps > 64) && !verify_warps(g_, error_)) return error_;
    int const n = g_.size();
    nodes_ = g_.nodes.items;
    pool_ = g_.operand_pool.items;
    for (i_ = 0; i_ < n; ++i_) {
      n_ = &nodes_[i_];
      if (recorded_ && in_combine_ == 0 && !among_tasks_ && op_facts_by_code.of[static_cast<int>(n_->code)].typed) {
        if (!uses_of_typed()) break;
        continue;
      }
      if (!record() || !operands() || !structure() || !types()) break;
    }
    if (error_.ok() && !open_.empty()) at(open_.back().node) << "kiln[G-05] " << name_of(g_[open_.back().node].code) << " is never closed";
    return error_;
  }

private:
  template <class T>
  static constexpr int count(slice<T> const& s) {
    return static_cast<int>(s.count);
  }
  /// One region: the nodes between an opening node and its middle or end.
  struct region {
    int node = 0;    ///< the opening node
    int id = 0;
    bool middle = false; ///< past if_else or while_test
  };

  // -- messages ----------------------------------------------------------------------------------------------------------
  constexpr message at(int node) {
    error_.node = node;
    return message(error_);
  }
  constexpr message bad(char const* rule) {
    message m = at(i_);
    m << "kiln[" << rule << "] " << name_of(n_->code) << ": ";
    return m;
  }
  constexpr bool bad_operand(int j, char const* needed) {
    message m = bad("G-03");
    m << "operand " << j << " is ";
    int o = operand(j);
    if (o < 0)
      m << "absent";
    else
      describe(m, o);
    m << ", needed is " << needed;
    return false;
  }
  constexpr bool bad_result(char const* needed) {
    message m = bad("G-04");
    m << "the result is ";
    describe(m, i_);
    m << ", needed is " << needed;
    return false;
  }
  constexpr void describe(message& m, int i) {
    node const& n = g_[i];
    switch (n.kind) {
    case node_kind::none: m << "nothing"; return;
    case node_kind::token: m << "a token"; return;
    case node_kind::barriers: m << "barriers"; return;
    case node_kind::barrier: m << "a barrier"; return;
    case node_kind::pointer: m << "pointer to "; break;
    case node_kind::array: m << "array of "; break;
    case node_kind::region: m << "region of "; break;
    case node_kind::buffers: m << "buffers of "; break;
    case node_kind::view: m << "view of "; break;
    case node_kind::cell: m << "cell of "; break;
    case node_kind::value: break;
    }
    m.type(n.type, g_.shape_of(i));
  }

  // -- tables ------------------------------------------------------------------------------------------------------------
  constexpr bool tables() {
    auto fail = [&](char const* what) {
      at(0) << "kiln[G-01] " << what;
      return false;
    };
    if (g_.shapes.empty() || g_.shapes[0].rank != 0) return g_.size() == 0 ? true : fail("shape 0 must be the scalar");
    for (shape const& s : g_.shapes) {
      if (s.rank < 0 || s.rank > max_rank) return fail("a shape has more than 6 axes");
      std::int64_t elements = 1;
      for (int d = 0; d < s.rank; ++d) {
        if (s.extent[d] < 1) return fail("a shape has an extent below 1");
        elements *= s.extent[d];
        if (elements > 0x7fffffff) return fail("a shape has more than 2^31 - 1 elements");
      }
    }
    for (buffer_info const& b : g_.buffers) {
      if (b.shape < 0 || b.shape >= count(g_.shapes) || b.slots < 1 || b.name < -1 || b.name >= count(g_.strings))
        return fail("a buffer's shape, name or number of slots is out of range");
      if (b.alignment < 0 || (b.alignment & (b.alignment - 1)) != 0) return fail("a buffer's alignment is not a power of two");
      if (b.node < 0 || b.node >= g_.size() || g_[b.node].code != op::alloc) return fail("a buffer does not know its alloc node");
      if (!placed(b.place)) return fail("a buffer's place in its storage is out of range");
      if (b.base >= count(g_.buffers) || (b.base >= 0 && g_.buffer(b.base).base >= 0)) return fail("the buffer that a window shows is out of range or a window itself");
      if (!b.layout.plain() && !laid_out(b.layout, g_.shapes[static_cast<std::size_t>(b.shape)], b)) return fail("a buffer's layout does not fit its shape, or it is no shared memory");
    }
    for (param_info const& p : g_.params)
      if (p.node < 0 || p.node >= g_.size() || g_[p.node].code != op::param) return fail("a parameter does not know its node");
    region_of_ = new std::int32_t[g_.nodes.count + 1]{};
    origin_ = new std::int32_t[g_.nodes.count + 1]{};
    return true;
  }
  static constexpr bool placed(slot_map const& p) {
    if (p.offset < 0 || p.stride < 0 || p.levels < 0 || p.levels > slot_map::most_levels) return false;
    for (int j = 0; j < p.levels; ++j)
      if (p.radix[j].count < 1 || p.radix[j].pitch < 0) return false;
    return p.levels == 0 || p.stride > 0;
  }

  static constexpr bool laid_out(slot_layout const& l, shape const& s, buffer_info const& b) {
    if (b.where == storage::smem_cluster || l.modes < 0 || l.modes > slot_layout::most_modes || l.paddings < 0 || l.paddings > slot_layout::most_paddings) return false;
    std::int64_t elements = 1;
    for (int i = 0; i < l.modes; ++i) {
      if (l.mode[i].extent < 1 || l.mode[i].stride < 0) return false;
      elements *= l.mode[i].extent;
      if (elements > s.elements()) return false;
    }
    if (l.modes > 0 && elements != s.elements()) return false;
    if (l.bases < 0 || l.bases > slot_layout::most_bases || (l.bases > 0 && (l.modes > 0 || l.bits > 0 || l.paddings > 0 || std::int64_t{1} << l.bases != s.elements()))) return false;
    for (int i = 0; i < l.bases; ++i)
      if (l.basis[i] < 1) return false;
    for (int i = 0; i < l.paddings; ++i)
      if (l.padding[i].interval < 1 || (l.padding[i].interval & (l.padding[i].interval - 1)) != 0 || l.padding[i].pad < 0) return false;
    if (l.bits < 0 || l.base < 0 || l.shift < l.bits || l.base + l.shift + l.bits > 30 || (l.bits > 0 && l.paddings > 0)) return l.bits == 0 && l.base == 0 && l.shift == 0;
    if (b.where == storage::tmem)
      return l.modes > 0 && l.bits == 0 && l.paddings == 0 && bits_of(b.type) <= 32 && l.offset >= 0 && detail::last_lane(l) < detail::tensor_lanes && detail::columns_reached(l) < detail::lane_step;
    return l.offset == 0 && l.cosize(s.elements()) < 0x7fffffff;
  }

  /// The node's own fields lie in the tables.
  constexpr bool record() {
    node const& n = *n_;
    int const code = static_cast<int>(n.code);
    if (code < 0 || code >= op_count) {
      at(i_) << "kiln[G-01] unknown operation";
      return false;
    }
    facts_ = &op_facts_by_code.of[code];
    attributes_ = facts_->attributes;
    if (static_cast<std::size_t>(n.shape) >= g_.shapes.count || n.operand_count < 0 || n.operands < 0 ||
        n.operands + n.operand_count > static_cast<int>(g_.operand_pool.count) || n.attributes < 0 ||
        n.attributes + attributes_ > static_cast<int>(g_.attribute_pool.count) || n.file >= g_.files.count) {
      bad("G-01") << "a field is outside the graph's tables";
      return false;
    }
    return true;
  }

  constexpr int operand(int j) const {
    return j < n_->operand_count ? g_.operand_pool.items[n_->operands + j] : -1;
  }
  constexpr std::int64_t attribute(int j) const { return g_.attribute_pool.items[n_->attributes + j]; }

  /// Of a node whose operands have the right types: they are in a region that is still open.
  constexpr bool uses_of_typed() {
    int const here = here_, c = n_->operand_count;
    std::int32_t const* const list = pool_ + n_->operands;
    region_of_[i_] = here;
    for (int j = 0; j < c; ++j)
      if (int const home = region_of_[list[j]]; home != 0 && home != here && !region_open_[home]) return outside(list[j], home);
    return true;
  }
  /// Counts; every operand is an earlier node in a region that is still open.
  constexpr bool operands() {
    op_facts const& f = *facts_;
    int const c = n_->operand_count;
    int const i = i_, here = here_;
    std::int32_t const* const list = pool_ + n_->operands;
    if (c < f.least || (f.most >= 0 && c > f.most)) {
      message m = bad("G-02");
      m << c << " operands where " << static_cast<int>(f.least);
      if (f.most < 0) m << " or more";
      if (f.most > f.least) m << " to " << static_cast<int>(f.most);
      m << " are needed";
      return false;
    }
    for (int j = 0; j < c; ++j) {
      int const o = list[j];
      if (o == -1) {
        if (optional(n_->code, j)) continue;
        bad("G-02") << "operand " << j << " is absent";
        return false;
      }
      if (o < -1 || o >= i) {
        bad("G-02") << "operand " << j << " is not an earlier node";
        return false;
      }
      int const home = region_of_[o];
      if (home != 0 && home != here && !region_open_[home]) return outside(o, home);
      if (nodes_[o].kind == node_kind::none && nodes_[o].code != op::combine_begin) {
        bad("G-03") << "operand " << j << " is " << name_of(g_[o].code) << ", which has no result";
        return false;
      }
    }
    return true;
  }
  constexpr bool outside(int o, int home) {
    int const begin = opener_[home];
    message m = at(i_);
    m << "kiln[K-10] ";
    char const* what = g_[o].kind == node_kind::cell ? "a var" : g_[o].kind == node_kind::view ? "a view" : g_[o].kind == node_kind::buffers ? "a buffer" : "a value";
    m << what << " made ";
    if (g_[o].line > 0) m << "on line " << g_[o].line << " ";
    op const home_of = g_[begin].code;
    m << "inside the " << (home_of == op::if_begin ? "branch" : home_of == op::combine_begin ? "combine" : home_of == op::task_begin ? "task" : "loop") << " of line "
      << g_[begin].line << " is used outside it; ";
    if (g_[o].kind == node_kind::value || g_[o].kind == node_kind::pointer || g_[o].kind == node_kind::token)
      m << "carry it in a k.var(...)";
    else
      m << "make it before";
    return false;
  }

  static constexpr bool optional(op o, int j) {
    switch (o) {
    case op::load: return j >= 1;
    case op::store: case op::atomic_rmw: case op::dot: case op::local_gather: return j == 2;
    case op::atomic_cas: return j == 3;
    case op::local_load: case op::barrier_arrive: case op::barrier_expect_bytes: case op::prefetch: return j == 1;
    case op::barrier_wait: return j == 2;
    case op::async_load_bulk: return j == 3;
    case op::async_load: return j >= 2;
    case op::async_commit: case op::async_wait: return true;
    default: return false;
    }
  }

  // -- regions -----------------------------------------------------------------------------------------------------------
  constexpr bool structure() {
    if (among_tasks_ != (n_->code == op::task_begin) && n_->code != op::tasks_end) {
      bad("R-TK06") << (among_tasks_ ? "only tasks are allowed inside async_tasks" : "a task outside async_tasks");
      return false;
    }
    if (!facts_->structural) {
      region_of_[i_] = here_;
      if (in_combine_ > 0 && !has(n_->code, trait::pure)) {
        bad("K-14") << "a combine body may only compute with scalars; read vars and memory before it";
        return false;
      }
      bool const across = !has(n_->code, trait::elementwise) && n_->code != op::constant && n_->code != op::combine_arg;
      if (in_combine_ > 0 && (n_->shape != 0 || across)) {
        bad("K-14") << "a combine body may only compute with scalars, one by one; do this before the reduction";
        return false;
      }
      if (n_->code == op::param && (open_.size() > 0 || i_ >= count(g_.params)) && !workspace()) return false;
      return true;
    }
    if (in_combine_ > 0 && n_->code != op::combine_end) {
      bad("K-14") << "a combine body cannot hold loops or branches; use where(...)";
      return false;
    }
    if (has(n_->code, trait::opens)) {
      std::int64_t const end = attribute(attributes_ - 1); // `end` is the last attribute of all that open
      if (end <= i_ || end >= g_.size()) return unmatched();
      if (n_->code == op::combine_begin) ++in_combine_;
      enter();
      return true;
    }
    if (open_.empty()) return unmatched();
    region& r = open_.back();
    int const begin = r.node;
    if (attribute(0) != begin) return unmatched();
    region_open_[r.id] = false;
    op const from = g_[begin].code;
    bool good = false;
    switch (n_->code) {
    case op::if_else:
      good = from == op::if_begin && !r.middle && g_.attribute(begin, 0) == i_;
      break;
    case op::while_test:
      good = from == op::while_begin && !r.middle && g_.attribute(begin, 0) == i_;
      break;
    case op::if_end: good = from == op::if_begin && g_.attribute(begin, 1) == i_ && (r.middle || g_.attribute(begin, 0) == -1); break;
    case op::while_end: good = from == op::while_begin && g_.attribute(begin, 1) == i_ && r.middle; break;
    case op::for_end: good = from == op::for_begin && g_.attribute(begin, 0) == i_; break;
    case op::combine_end: good = from == op::combine_begin && g_.attribute(begin, 0) == i_; break;
    case op::tasks_end: good = from == op::tasks_begin && g_.attribute(begin, 3) == i_; break;
    case op::task_end: good = from == op::task_begin && g_.attribute(begin, 5) == i_; break;
    default: break;
    }
    if (!good) return unmatched();
    if (n_->code == op::if_else) { // values of the first branch end here
      r.middle = true;
      r.id = here_ = new_region(begin);
    } else if (n_->code == op::while_test) { // the body sees the condition's values
      r.middle = true;
      region_open_[r.id] = true;
    } else {
      if (n_->code == op::combine_end) --in_combine_;
      open_.pop();
      here_ = open_.empty() ? 0 : open_.back().id;
      among_tasks_ = !open_.empty() && g_[open_.back().node].code == op::tasks_begin;
    }
    region_of_[i_] = here_;
    return true;
  }
  constexpr int new_region(int begin) {
    if (opener_.empty()) { // region 0: the kernel
      opener_.add() = -1;
      region_open_.add() = true;
    }
    opener_.add() = begin;
    region_open_.add() = true;
    return opener_.size() - 1;
  }
  constexpr void enter() {
    int const id = new_region(i_);
    region& r = open_.add();
    r.node = i_;
    r.id = id;
    r.middle = false;
    among_tasks_ = n_->code == op::tasks_begin;
    region_of_[i_] = here_ = id; // a loop's index belongs to its body
  }
  constexpr bool unmatched() {
    bad("G-05") << "does not match the region around it";
    return false;
  }

  // -- types -------------------------------------------------------------------------------------------------------------
  constexpr node const& in(int j) const { return nodes_[pool_[n_->operands + j]]; }
  constexpr shape const& shape_in(int j) const { return g_.shapes.items[in(j).shape]; }
  constexpr bool is_value(int j) const { return in(j).kind == node_kind::value; }
  constexpr bool is_scalar_int(int j) const { return is_value(j) && in(j).shape == 0 && is_int(in(j).type); }
  constexpr bool same_shape(int a, int b) const { return a == b || g_.shapes.items[a] == g_.shapes.items[b]; }
  constexpr bool like(int j, dtype t, int s) const { return is_value(j) && in(j).type == t && same_shape(in(j).shape, s); }
  constexpr bool result_is(node_kind k, dtype t, int s) const { return n_->kind == k && n_->type == t && same_shape(n_->shape, s); }
  constexpr bool no_result() { return n_->kind == node_kind::none || bad_result("nothing"); }
  constexpr bool attribute_in(int j, std::int64_t lo, std::int64_t hi) {
    if (attribute(j) >= lo && attribute(j) <= hi) return true;
    bad("G-06") << "attribute " << j << " is " << attribute(j) << ", valid " << lo << ".." << hi;
    return false;
  }
  static constexpr bool computes_float(dtype t) { return is_float(t) && !is_f8(t); }

  constexpr bool types() {
    op_facts::group const where = facts_->where;
    if (where == op_facts::elementwise) return elementwise();
    if (where == op_facts::across) return across();
    if (where == op_facts::global) return global_memory();
    if (where == op_facts::local) return local_memory();
    if (where == op_facts::tasks) return verify_task_operation(g_, i_, error_);
    node const& n = *n_;
    switch (n.code) { // the frequent ones first: a compiler tries the cases one by one
    case op::ptr_add:
      if (in(0).kind != node_kind::pointer) return bad_operand(0, "a pointer");
      if (!is_value(1) || !is_int(in(1).type) || !same_shape(in(1).shape, in(0).shape)) return bad_operand(1, "integers of the pointer's shape");
      origin_[i_] = origin_[operand(0)];
      return result_is(node_kind::pointer, in(0).type, in(0).shape) || bad_result("the pointer's type");
    case op::constant:
      if (n.kind != node_kind::value) return bad_result("a value");
      return n.type != dtype::b1 || attribute_in(0, 0, 1);
    case op::var_get:
      if (in(0).kind != node_kind::cell) return bad_operand(0, "a var");
      return result_is(content(operand(0)), in(0).type, in(0).shape) || bad_result("the var's content");
    case op::var_set:
      if (in(0).kind != node_kind::cell) return bad_operand(0, "a var");
      if (in(1).kind != content(operand(0)) || in(1).type != in(0).type || !same_shape(in(1).shape, in(0).shape))
        return bad_operand(1, "what the var holds");
      return no_result();
    case op::param: return param();
    case op::for_begin:
      for (int j = 0; j < 3; ++j)
        if (!is_scalar_int(j) || in(j).type != n.type) return bad_operand(j, "an integer scalar of the index's type");
      return result_is(node_kind::value, in(0).type, 0) || bad_result("the bounds' type");
    case op::if_begin: case op::while_test: case op::assume:
      if (!like(0, dtype::b1, 0)) return bad_operand(0, "a b1 scalar");
      return no_result();
    case op::var: return var();
    case op::combine_begin: case op::for_end: case op::if_else: case op::if_end: case op::while_begin: case op::while_end: case op::sync:
      return no_result();
    case op::combine_arg:
      if (in(0).code != op::combine_begin || open_.empty() || open_.back().node != operand(0)) return bad_operand(0, "the combine around it");
      if (!attribute_in(0, 0, 7)) return false;
      return (n.kind == node_kind::value && n.shape == 0) || bad_result("a scalar");
    case op::combine_end:
      for (int j = 0; j < n.operand_count; ++j)
        if (!is_value(j) || in(j).shape != 0) return bad_operand(j, "a scalar");
      return no_result();
    case op::result: {
      int const from = operand(0);
      if (g_[from].code == op::topk) {
        if (!attribute_in(0, 0, 1)) return false;
        return result_is(node_kind::value, attribute(0) == 0 ? g_[from].type : dtype::i32, g_[from].shape) || bad_result("that of topk's values, or i32 for its indices");
      }
      if (g_[from].code != op::reduce && g_[from].code != op::scan) return bad_operand(0, "a reduction over several tiles");
      if (!attribute_in(0, 0, g_[from].operand_count - 1)) return false;
      return result_is(node_kind::value, g_[g_.operand(from, static_cast<int>(attribute(0)))].type, g_[from].shape) || bad_result("that of the reduced tile");
    }
    case op::unset: return n.kind == node_kind::value || bad_result("a value");
    case op::iota:
      if (n.kind != node_kind::value || !is_int(n.type) || g_.shape_of(i_).rank < 1) return bad_result("an integer tile");
      return attribute_in(0, 0, g_.shape_of(i_).rank - 1);
    case op::program_id: case op::num_programs:
      if (n.kind != node_kind::value || !is_int(n.type) || n.shape != 0) return bad_result("an integer scalar");
      return attribute_in(0, 0, 2);
    case op::require_layout: case op::release_layout:
      if (!is_value(0) || in(0).shape == 0) return bad_operand(0, "a tile");
      if (n.code == op::require_layout && !attribute_in(0, 0, 4)) return false;
      return result_is(node_kind::value, in(0).type, in(0).shape) || bad_result("the tile's type");
    case op::assert_layout:
      if (!is_value(0) || in(0).shape == 0) return bad_operand(0, "a tile");
      if (operand(1) >= 0 && (!is_value(1) || in(1).shape != in(0).shape)) return bad_operand(1, "a tile of the same shape");
      return no_result();
    case op::dump_layout:
      if (in(0).kind != node_kind::value && in(0).kind != node_kind::view && in(0).kind != node_kind::buffers) return bad_operand(0, "a tile or a view");
      return no_result();
    case op::tensor_alloc: case op::tensor_dealloc:
      if (in(0).kind != node_kind::buffers || g_.buffer(g_.buffer_of(operand(0))).where != storage::tmem) return bad_operand(0, "an allocation in tensor memory");
      return no_result();
    case op::multiple_of: case op::max_contiguous: {
      if (in(0).kind != node_kind::value && in(0).kind != node_kind::pointer) return bad_operand(0, "a value or pointer");
      std::int64_t const m = attribute(0);
      if (m < 1 || (m & (m - 1)) != 0) {
        bad("G-06") << m << " is not a power of two";
        return false;
      }
      origin_[i_] = origin_[operand(0)];
      return result_is(in(0).kind, in(0).type, in(0).shape) || bad_result("the operand's type");
    }
    default: break;
    }
    return effects();
  }

  /// A parameter where others may not stand is a workspace, outside of everything.
  constexpr bool workspace() {
    std::int64_t const p = attribute(0);
    bool const is = p >= 0 && p < count(g_.params) && g_.params[static_cast<std::size_t>(p)].workspace > 0;
    if (is && open_.size() == 0) return true;
    bad("G-05") << (is ? "alloc_global stands outside loops, branches and tasks" : "parameters come first");
    return false;
  }

  constexpr bool param() {
    std::int64_t const p = attribute(0);
    if (p < 0 || p >= count(g_.params) || g_.params[static_cast<std::size_t>(p)].node != i_) {
      bad("G-01") << "is not the node of parameter " << p;
      return false;
    }
    param_info const& f = g_.params[static_cast<std::size_t>(p)];
    if (f.kind != node_kind::value && f.kind != node_kind::pointer && f.kind != node_kind::array) {
      bad("G-01") << "a parameter is a value, a pointer or an array";
      return false;
    }
    if (f.workspace != 0 && (f.workspace < 0 || f.kind != node_kind::pointer || f.is_const)) {
      bad("G-01") << "a workspace is a pointer to at least one element";
      return false;
    }
    if (f.workspace == 0 && p > 0 && g_.params[static_cast<std::size_t>(p - 1)].workspace > 0) {
      bad("G-05") << "workspaces come after the parameters that arguments stand for";
      return false;
    }
    if (f.kind == node_kind::array && (f.rank < 1 || f.rank > max_rank)) {
      bad("G-01") << "an array has 1 to 6 axes";
      return false;
    }
    origin_[i_] = static_cast<std::int32_t>(p) + 1;
    return result_is(f.kind, f.type, 0) || bad_result("that of the parameter table");
  }

  constexpr bool var() {
    node_kind const k = in(0).kind;
    if (k != node_kind::value && k != node_kind::pointer && k != node_kind::token) return bad_operand(0, "a value, pointer or token");
    return result_is(node_kind::cell, in(0).type, in(0).shape) || bad_result("a cell of the first content's type");
  }
  /// What a cell holds.
  constexpr node_kind content(int cell) const { return g_[g_.operand(cell, 0)].kind; }

  constexpr bool elementwise() {
    // Straight-line and without calls: most nodes of most kernels come here.
    node const& n = *n_;
    std::int32_t const* const list = pool_ + n.operands;
    dtype const t = nodes_[list[0]].type;
    unsigned const accepts = facts_->accepts;
    bool const alike = accepts != 0; // all operands of one type
    for (int j = 0; j < n.operand_count; ++j) {
      node const& x = nodes_[list[j]];
      if (x.kind != node_kind::value || (x.shape != n.shape && !same_shape(x.shape, n.shape))) return bad_operand(j, "a value of the result's shape");
      if (alike && x.type != t) return bad_operand(j, "the first operand's type");
    }
    if (n.kind != node_kind::value) return bad_result("a value");
    if (!alike) return conversion();
    if ((accepts >> static_cast<int>(t) & 1) == 0) return bad_operand(0, "an element type that the operation accepts");
    if ((n.code == op::min || n.code == op::max) && !attribute_in(0, 0, 1)) return false;
    if (n.type == (facts_->compares ? dtype::b1 : t)) return true;
    return bad_result(facts_->compares ? "b1" : "the operands' type");
  }
  /// Element-wise operations whose operands may differ in type.
  constexpr bool conversion() {
    node const& n = *n_;
    dtype const t = in(0).type;
    switch (n.code) {
    case op::cast: return true;
    case op::where:
      if (t != dtype::b1) return bad_operand(0, "b1");
      for (int j = 1; j < 3; ++j)
        if (in(j).type != n.type) return bad_operand(j, "the result's type");
      return true;
    case op::bitcast:
      if (bits_of(t) != bits_of(n.type) || is_bool(t) || is_bool(n.type)) return bad_operand(0, "a type of the result's width, not b1");
      return true;
    case op::philox:
      for (int j = 0; j < 3; ++j)
        if (in(j).type != dtype::u64) return bad_operand(j, "u64");
      return attribute_in(0, 0, 3) && (n.type == dtype::u32 || bad_result("u32"));
    default: // isnan
      if (!computes_float(t)) return bad_operand(0, "a floating value of 16 bits or more");
      return n.type == dtype::b1 || bad_result("b1");
    }
  }

  static constexpr bool broadcasts_to(shape const& from, shape const& to) {
    if (from.rank > to.rank) return false;
    for (int i = 0; i < from.rank; ++i)
      if (from.extent[i] != 1 && from.extent[i] != to.extent[to.rank - from.rank + i]) return false;
    return true;
  }
  constexpr bool permutes(shape const& from, shape const& to) const {
    if (from.rank != to.rank) return false;
    int seen = 0;
    for (int d = 0; d < from.rank; ++d) {
      std::int64_t const p = attribute(d);
      if (p < 0 || p >= from.rank || (seen & (1 << p)) || to.extent[d] != from.extent[p]) return false;
      seen |= 1 << p;
    }
    return true;
  }
  static constexpr bool reduces(shape const& from, shape const& to, std::int64_t axis, bool keep) {
    shape r = from;
    if (axis < 0) {
      r = shape{};
      if (keep) {
        r.rank = from.rank;
        for (int d = 0; d < r.rank; ++d) r.extent[d] = 1;
      }
      return r == to;
    }
    if (keep) {
      r.extent[axis] = 1;
      return r == to;
    }
    for (std::int64_t d = axis; d + 1 < from.rank; ++d) r.extent[d] = from.extent[d + 1];
    --r.rank;
    return r == to;
  }
  static constexpr bool reduction_accepts(std::int64_t o, dtype t) {
    switch (static_cast<reduce_op>(o)) {
    case reduce_op::any: case reduce_op::all: return is_bool(t);
    case reduce_op::bit_xor: return is_int(t) || is_bool(t);
    case reduce_op::custom: return true;
    default: return is_arithmetic(t);
    }
  }
  /// The combine body named by the last attribute of a reduce or scan.
  constexpr bool combine_matches() {
    node const& n = *n_;
    std::int64_t const body = attribute(attributes_ - 1);
    if (static_cast<reduce_op>(attribute(0)) != reduce_op::custom) {
      if (body != -1 || n.operand_count != 1) {
        bad("G-06") << "only a custom reduction has a combine and several operands";
        return false;
      }
      return true;
    }
    if (body < 0 || body >= i_ || g_[static_cast<int>(body)].code != op::combine_begin ||
        g_.attribute(static_cast<int>(body), 0) >= i_ || region_of_[static_cast<int>(g_.attribute(static_cast<int>(body), 0))] != region_of_[i_]) {
      bad("G-06") << "its combine is not a closed combine body before it in the same region";
      return false;
    }
    int const end = static_cast<int>(g_.attribute(static_cast<int>(body), 0));
    if (g_[end].operand_count != n.operand_count) {
      bad("G-03") << "the combine returns " << g_[end].operand_count << " values for " << n.operand_count << " operands";
      return false;
    }
    for (int j = 0; j < n.operand_count; ++j)
      if (g_[g_.operand(end, j)].type != in(j).type) return bad_operand(j, "the type that the combine returns");
    for (int b = static_cast<int>(body) + 1; b < end && g_[b].code == op::combine_arg; ++b) {
      std::int64_t const k = g_.attribute(b, 0);
      if (k >= 2 * n.operand_count || g_[b].type != in(static_cast<int>(k % n.operand_count)).type) {
        bad("G-03") << "argument " << k << " of its combine does not fit the reduced tiles";
        return false;
      }
    }
    return true;
  }

  constexpr bool across() {
    node const& n = *n_;
    shape const& to = g_.shape_of(i_);
    if (n.code == op::broadcast && in(0).kind == node_kind::pointer) {
      if (!broadcasts_to(shape_in(0), to)) return bad_operand(0, "a shape that broadcasts to the result's");
      origin_[i_] = origin_[operand(0)];
      return result_is(node_kind::pointer, in(0).type, n.shape) || bad_result("the operand's type");
    }
    if (n.code == op::dot) return dot();
    for (int j = 0; j < n.operand_count; ++j)
      if (!is_value(j)) return bad_operand(j, "a value");
    if (n.kind != node_kind::value) return bad_result("a value");
    shape const& from = shape_in(0);
    dtype const t = in(0).type;
    if (n.code != op::arg_reduce && n.code != op::histogram && n.type != t) return bad_result("the operand's element type");
    switch (n.code) {
    case op::broadcast: return broadcasts_to(from, to) || bad_operand(0, "a shape that broadcasts to the result's");
    case op::reshape: return from.elements() == to.elements() || bad_operand(0, "as many elements as the result");
    case op::trans: return permutes(from, to) || bad_result("the operand's axes permuted");
    case op::join:
    case op::split: {
      shape const& part = n.code == op::join ? from : to;
      shape const& whole = n.code == op::join ? to : from;
      bool good = whole.rank == part.rank + 1 && whole.extent[part.rank] == 2;
      for (int d = 0; d < part.rank; ++d) good = good && part.extent[d] == whole.extent[d];
      if (!good) return bad_result("the halves of a last axis of extent 2");
      if (n.code == op::split) return attribute_in(0, 0, 1);
      return (in(1).type == t && same_shape(in(0).shape, in(1).shape)) || bad_operand(1, "the first operand's type");
    }
    case op::reduce:
      if (!attribute_in(0, 0, static_cast<int>(reduce_op::custom)) || !attribute_in(1, -1, from.rank - 1) || !attribute_in(2, 0, 1) || !attribute_in(3, 0, 1)) return false;
      if (!reduction_accepts(attribute(0), t)) return bad_operand(0, "an element type that the reduction accepts");
      for (int j = 1; j < n.operand_count; ++j)
        if (!same_shape(in(j).shape, in(0).shape)) return bad_operand(j, "the first operand's shape");
      if (!reduces(from, to, attribute(1), attribute(2) != 0)) return bad_result("the operand's shape without the reduced axis");
      return combine_matches();
    case op::arg_reduce:
      if (static_cast<reduce_op>(attribute(0)) != reduce_op::max && static_cast<reduce_op>(attribute(0)) != reduce_op::min) {
        bad("G-06") << "needs max or min";
        return false;
      }
      if (!attribute_in(1, 0, from.rank - 1) || !attribute_in(2, 0, 1)) return false;
      if (!is_arithmetic(t)) return bad_operand(0, "numbers");
      if (n.type != dtype::i32) return bad_result("i32");
      return reduces(from, to, attribute(1), attribute(2) != 0) || bad_result("the operand's shape without the reduced axis");
    case op::scan:
      if (!attribute_in(0, 0, static_cast<int>(reduce_op::custom)) || !attribute_in(1, 0, from.rank - 1) || !attribute_in(2, 0, 1)) return false;
      if (!reduction_accepts(attribute(0), t)) return bad_operand(0, "an element type that the scan accepts");
      for (int j = 0; j < n.operand_count; ++j)
        if (!same_shape(in(j).shape, n.shape)) return bad_operand(j, "the result's shape");
      return combine_matches();
    case op::gather:
      if (!indexed(from, shape_in(1), attribute(0))) return bad_operand(1, "indices of the source's rank, not larger beside the axis");
      if (!is_int(in(1).type)) return bad_operand(1, "integers");
      return same_shape(n.shape, in(1).shape) || bad_result("the indices' shape");
    case op::histogram:
      if (!is_int(t) || from.rank < 1) return bad_operand(0, "a tile of integers");
      if (n.operand_count == 2 && !like(1, dtype::b1, in(0).shape)) return bad_operand(1, "b1 of the first operand's shape");
      return (n.type == dtype::i32 && to.rank == 1) || bad_result("an i32 tile with one axis");
    case op::sort:
      if (!attribute_in(0, 0, from.rank - 1) || !attribute_in(1, 0, 1)) return false;
      if (!is_arithmetic(t)) return bad_operand(0, "numbers");
      return same_shape(n.shape, in(0).shape) || bad_result("the operand's shape");
    case op::topk: {
      if (!attribute_in(0, 0, from.rank - 1) || !attribute_in(1, 0, 1)) return false;
      if (!is_arithmetic(t)) return bad_operand(0, "numbers");
      shape all = to; // but for the axis, whose extent says how many
      int const axis = static_cast<int>(attribute(0));
      if (to.rank == from.rank && to.extent[axis] <= from.extent[axis]) all.extent[axis] = from.extent[axis];
      return all == from || bad_result("the operand's shape, at most as long along the axis");
    }
    default: return true;
    }
  }
  static constexpr bool indexed(shape const& from, shape const& index, std::int64_t axis) {
    if (from.rank != index.rank || axis < 0 || axis >= from.rank) return false;
    for (int d = 0; d < from.rank; ++d)
      if (d != axis && index.extent[d] > from.extent[d]) return false;
    return true;
  }

  constexpr bool dot() {
    for (int j = 0; j < 2; ++j)
      if ((in(j).kind != node_kind::value && in(j).kind != node_kind::view) || shape_in(j).rank != 2) return bad_operand(j, "a tile or view with two axes");
    dtype const t = in(0).type;
    if (!is_float(t) && t != dtype::i8) return bad_operand(0, "floating elements or i8");
    if (in(1).type != t || shape_in(1).extent[0] != shape_in(0).extent[1]) return bad_operand(1, "the first operand's type, and as many rows as it has columns");
    dtype const acc = t == dtype::f64 ? dtype::f64 : t == dtype::i8 ? dtype::i32 : dtype::f32;
    shape to;
    to.rank = 2;
    to.extent[0] = shape_in(0).extent[0];
    to.extent[1] = shape_in(1).extent[1];
    if (n_->kind != node_kind::value || n_->type != acc || !(g_.shape_of(i_) == to)) return bad_result("[m,n] of f32 (f64 for f64, i32 for i8)");
    if (operand(2) >= 0 && !like(2, acc, n_->shape)) return bad_operand(2, "an accumulator of the result's type");
    return true;
  }

  constexpr int array_rank(int array) const { return g_.params[static_cast<std::size_t>(g_.attribute(array, 0))].rank; }
  constexpr bool writable(int address) {
    int const p = origin_[address] - 1;
    if (p < 0 || !g_.params[static_cast<std::size_t>(p)].is_const) return true;
    bad("T-14") << "writes through parameter " << p << ", a pointer or array of const";
    return false;
  }
  static constexpr bool atomic_accepts(std::int64_t o, dtype t) {
    bool const word = bits_of(t) == 32 || bits_of(t) == 64;
    switch (static_cast<atomic_op>(o)) {
    case atomic_op::add: return (is_int(t) && word) || computes_float(t);
    case atomic_op::min: case atomic_op::max: return (is_int(t) && word) || t == dtype::f32 || t == dtype::f64;
    case atomic_op::xchg: return word;
    default: return is_int(t) && word;
    }
  }
  constexpr bool is_address(int j, bool region_too) const {
    return in(j).kind == node_kind::pointer || (region_too && in(j).kind == node_kind::region);
  }
  constexpr bool mask_fits(int j, int address_shape) { return operand(j) < 0 || like(j, dtype::b1, address_shape) || bad_operand(j, "b1 of the address's shape"); }

  constexpr bool global_memory() {
    node const& n = *n_;
    int const s = in(0).shape;
    dtype const t = in(0).type;
    switch (n.code) {
    case op::extent: case op::stride:
      if (in(0).kind != node_kind::array) return bad_operand(0, "an array");
      if (!attribute_in(0, 0, array_rank(operand(0)) - 1)) return false;
      return result_is(node_kind::value, dtype::i64, 0) || bad_result("an i64 scalar");
    case op::array_data:
      if (in(0).kind != node_kind::array) return bad_operand(0, "an array");
      origin_[i_] = origin_[operand(0)];
      return result_is(node_kind::pointer, t, 0) || bad_result("a pointer to the array's elements");
    case op::region:
      if (in(0).kind != node_kind::array) return bad_operand(0, "an array");
      if (n.operand_count != array_rank(operand(0)) + 1 || g_.shape_of(i_).rank != n.operand_count - 1) {
        bad("G-02") << "needs one start and one extent per axis of the array";
        return false;
      }
      for (int j = 1; j < n.operand_count; ++j)
        if (!like(j, dtype::i64, 0)) return bad_operand(j, "an i64 scalar");
      origin_[i_] = origin_[operand(0)];
      return (n.kind == node_kind::region && n.type == t) || bad_result("a region of the array's elements");
    case op::load:
      if (!is_address(0, true)) return bad_operand(0, "pointers or a region");
      if (!mask_fits(1, s)) return false;
      if (operand(2) >= 0 && !like(2, t, s)) return bad_operand(2, "the address's element type and shape");
      if (operand(2) >= 0 && operand(1) < 0 && in(0).kind != node_kind::region) {
        bad("T-13") << "other without a mask";
        return false;
      }
      return result_is(node_kind::value, t, s) || bad_result("the address's element type and shape");
    case op::store:
      if (!is_address(0, true)) return bad_operand(0, "pointers or a region");
      if (!like(1, t, s)) return bad_operand(1, "the address's element type and shape");
      return mask_fits(2, s) && writable(operand(0)) && no_result();
    case op::atomic_rmw:
      if (!is_address(0, false)) return bad_operand(0, "pointers");
      if (!attribute_in(0, 0, static_cast<int>(atomic_op::xchg)) || !attribute_in(1, 0, 3) || !attribute_in(2, 0, 2)) return false;
      if (!atomic_accepts(attribute(0), t)) return bad_operand(0, "an element type that the atomic accepts");
      if (!like(1, t, s)) return bad_operand(1, "the pointers' element type and shape");
      if (!mask_fits(2, s) || !writable(operand(0))) return false;
      return result_is(node_kind::value, t, s) || bad_result("the pointers' element type and shape");
    case op::prefetch:
      if (!is_address(0, true)) return bad_operand(0, "pointers or a region");
      return attribute_in(0, 0, static_cast<int>(cache_level::l1)) && mask_fits(1, s) && no_result();
    default: // atomic_cas
      if (!is_address(0, false)) return bad_operand(0, "pointers");
      if (!attribute_in(0, 0, 3) || !attribute_in(1, 0, 2)) return false;
      if (!atomic_accepts(static_cast<int>(atomic_op::bit_and), t)) return bad_operand(0, "32- or 64-bit integers");
      for (int j = 1; j < 3; ++j)
        if (!like(j, t, s)) return bad_operand(j, "the pointers' element type and shape");
      if (!mask_fits(3, s) || !writable(operand(0))) return false;
      return result_is(node_kind::value, t, s) || bad_result("the pointers' element type and shape");
    }
  }

  /// No load that this commit names is in an earlier group: every commit closes all loads before it.
  constexpr bool first_commit() {
    for (int j = 0; j < n_->operand_count; ++j) {
      int const load = operand(j);
      if (load < 0 || g_[load].code != op::async_load) continue;
      int closed = 0; // regions between the two that may not have run
      for (int i = i_ - 1; i > load; --i) {
        op const o = g_[i].code;
        if (has(o, trait::closes)) ++closed;
        else if (has(o, trait::opens) && closed > 0) --closed;
        else if (o == op::if_else && closed == 0) i = static_cast<int>(g_.attribute(i, 0)); // the other branch
        else if (o == op::async_commit && closed == 0) {
          message m = bad("R-HZ07");
          m << "the async_load of line " << g_[load].line << " is in the group of line " << g_[i].line << " already; commit it once";
          return false;
        }
      }
    }
    return true;
  }
  constexpr bool token_from(int j, op from, char const* needed) {
    int const o = operand(j);
    if (o < 0) return true;
    if (in(j).kind != node_kind::token) return bad_operand(j, "a token");
    op const made = in(j).code;
    if (made == from || made == op::var_get) return true;
    message m = bad("R-HZ07");
    m << "the token of " << name_of(made);
    if (in(j).line > 0) m << " (line " << in(j).line << ")";
    m << " is given where " << needed << " is needed";
    return false;
  }

  constexpr bool local_memory() {
    node const& n = *n_;
    if (n.code == op::alloc) {
      std::int64_t const b = attribute(0);
      if (b < 0 || b >= count(g_.buffers) || g_.buffer(static_cast<int>(b)).node != i_) {
        bad("G-01") << "is not the node of buffer " << b;
        return false;
      }
      buffer_info const& f = g_.buffer(static_cast<int>(b));
      if (operand(0) >= 0 && in(0).code != op::alloc) return bad_operand(0, "an alloc");
      return result_is(node_kind::buffers, f.type, f.shape) || bad_result("that of the buffer table");
    }
    if (n.code == op::async_commit || n.code == op::async_wait) {
      for (int j = 0; j < n.operand_count; ++j)
        if (!(n.code == op::async_commit ? token_from(j, op::async_load, "that of an async_load")
                                         : token_from(j, op::async_commit, "that of an async_load_commit_group")))
          return false;
      if (n.code == op::async_commit && !first_commit()) return false;
      if (n.code == op::async_wait && !attribute_in(0, 0, 0x7fffffff)) return false;
      return result_is(node_kind::token, dtype::b1, 0) || bad_result("a token");
    }
    if (n.code == op::async_load) {
      if (!is_address(0, true)) return bad_operand(0, "pointers or a region");
      if (in(1).kind != node_kind::view || in(1).type != in(0).type || !same_shape(in(1).shape, in(0).shape)) return bad_operand(1, "a view of the source's type and shape");
      if (!mask_fits(2, in(0).shape)) return false;
      if (operand(3) >= 0 && !like(3, in(0).type, in(0).shape)) return bad_operand(3, "the source's type and shape");
      if (operand(3) >= 0 && operand(2) < 0 && in(0).kind != node_kind::region) {
        bad("T-13") << "other without a mask";
        return false;
      }
      return result_is(node_kind::token, dtype::b1, 0) || bad_result("a token");
    }
    if (n.code == op::view_index && in(0).kind == node_kind::buffers) {
      if (!index()) return false;
      return result_is(node_kind::view, in(0).type, in(0).shape) || bad_result("a view of one slot");
    }
    if (in(0).kind != node_kind::view) return bad_operand(0, n.code == op::view_index ? "a buffer or view" : "a view");
    shape const& from = shape_in(0);
    shape const& to = g_.shape_of(i_);
    dtype const t = in(0).type;
    if (n.code <= op::view_reshape && (n.kind != node_kind::view || n.type != t)) return bad_result("a view of the same elements");
    switch (n.code) {
    case op::view_index: {
      if (!index()) return false;
      shape r = from;
      if (from.rank == 1) {
        r.extent[0] = 1;
      } else {
        for (int d = 0; d + 1 < from.rank; ++d) r.extent[d] = from.extent[d + 1];
        --r.rank;
      }
      return r == to || bad_result("the view without its outermost axis");
    }
    case op::view_trans:
      if (permutes(from, to)) return true;
      bad("R-BD09") << "its axes are not a permutation of the view's";
      return false;
    case op::view_slice: {
      if (from.rank != to.rank || n.operand_count != from.rank + 1) {
        bad("R-BD02") << "needs one offset and one extent per axis of the view";
        return false;
      }
      for (int d = 0; d < from.rank; ++d) {
        if (!is_scalar_int(d + 1)) return bad_operand(d + 1, "an integer scalar");
        if (to.extent[d] > from.extent[d]) {
          bad("R-BD02") << "extent " << to.extent[d] << " of a view with " << from.extent[d] << " on axis " << d;
          return false;
        }
      }
      return true;
    }
    case op::view_reshape:
      if (from.elements() == to.elements()) return true;
      bad("R-BD08") << "reshape of " << from.elements() << " elements to " << to.elements();
      return false;
    case op::local_load:
      if (!token_from(1, op::async_wait, "that of an async_load_wait_group")) return false;
      return result_is(node_kind::value, t, in(0).shape) || bad_result("the view's type and shape");
    case op::local_store:
      if (!like(1, t, in(0).shape)) return bad_operand(1, "the view's type and shape");
      return no_result();
    case op::local_gather:
      if (!token_from(2, op::async_wait, "that of an async_load_wait_group")) return false;
      if (!is_value(1) || !is_int(in(1).type) || !indexed(from, shape_in(1), attribute(0))) return bad_operand(1, "integers of the view's rank, not larger beside the axis");
      return result_is(node_kind::value, t, in(1).shape) || bad_result("the view's type in the indices' shape");
    default: // local_scatter
      if (!is_value(2) || !is_int(in(2).type) || !indexed(from, shape_in(2), attribute(0))) return bad_operand(2, "integers of the view's rank, not larger beside the axis");
      if (!like(1, t, in(2).shape)) return bad_operand(1, "the view's type in the indices' shape");
      return no_result();
    }
  }
  constexpr bool index() {
    if (is_scalar_int(1)) return true;
    if (is_value(1) && is_int(in(1).type)) {
      bad("R-UN01") << "the index varies within the CTA; it must be one integer for all";
      return false;
    }
    return bad_operand(1, "an integer scalar");
  }

  constexpr bool effects() {
    node const& n = *n_;
    for (int j = 0; j < n.operand_count; ++j)
      if (!is_value(j)) return bad_operand(j, "a value");
    if (n.code == op::device_assert || n.code == op::device_print) {
      if (!attribute_in(0, 0, count(g_.strings) - 1)) return false;
      if (n.code == op::device_assert && in(0).type != dtype::b1) return bad_operand(0, "b1");
    }
    return no_result();
  }

  graph_view const& g_;
  bool const recorded_;
  diagnostic error_;
  int i_ = 0;
  node const* n_ = nullptr;
  node const* nodes_ = nullptr;
  std::int32_t const* pool_ = nullptr;
  op_facts const* facts_ = nullptr; ///< of node i_'s operation
  int attributes_ = 0; ///< of node i_
  int in_combine_ = 0;
  int here_ = 0; ///< the innermost region
  bool among_tasks_ = false; ///< directly inside tasks_begin
  vec<region> open_;
  vec<std::int32_t> opener_;     ///< of a region: its opening node
  vec<bool> region_open_;
  std::int32_t* region_of_ = nullptr; ///< of a node: the region that it was made in; 0: the kernel
  std::int32_t* origin_ = nullptr;    ///< of an address: 1 + the parameter that it comes from, or 0
};

} // namespace detail

/// Checks structure and types. The diagnostic names the first faulty node. `recorded`: the graph comes from a kernel's lambda, and
/// what the C++ types of its values have made sure of need not be looked at again.
constexpr diagnostic verify(graph_view const& g, bool recorded = false) { return detail::verifier(g, recorded).run(); }

} // namespace kiln
