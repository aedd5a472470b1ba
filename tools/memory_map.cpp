// The drawing of memory_map.hpp. What a column or a bar means is decided in `collect`; the rest is geometry.
#include "memory_map.hpp"

#include "src/graph/drawing.hpp"

#include <kiln/graph/local_layout.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <optional>

namespace kiln::tool {

namespace {

std::string escaped(std::string_view s) {
  std::string e;
  for (char c : s) e += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  return e;
}
/// 16384 as "16,384".
std::string grouped(std::int64_t n) {
  std::string s = std::to_string(n);
  for (auto at = static_cast<int>(s.size()) - 3; at > 0; at -= 3) s.insert(static_cast<std::size_t>(at), ",");
  return s;
}

constexpr std::array dark = {"#a86a00", "#2b7a1f", "#5f3dc4", "#c2342b", "#0b7285", "#7d7000", "#a61e6e", "#55602b"};
char const* stroke_of(int b) { return dark[static_cast<std::size_t>(b) % dark.size()]; }

/// Something that happens to a buffer, or a barrier, at one statement.
struct column {
  int node = -1;
  int block = 0;            ///< the program that it belongs to: 0 the kernel's, then one for each task
  std::string label;
  struct touch {
    int buffer;
    int slot; ///< -1: which one is known when it runs
    char letter;
  };
  std::vector<touch> touches;
  char const* line = nullptr; ///< colour of a barrier's line
};
struct block {
  int task = -1; ///< task_begin; -1: the kernel's own program
  std::string name;
  int first = 0, last = -1; ///< columns
};
struct bracket {
  std::string name;
  int first, last, depth;
};
/// Bytes of a buffer's slot, or of barriers, in a picture.
struct span {
  std::int64_t lo, hi;
};
struct bar {
  int buffer, slot, first, last; ///< columns
};

class picture {
public:
  explicit picture(graph_view const& g) : g_(g) {}

  std::string run() {
    collect();
    place();
    bars();
    geometry();
    draw();
    return out_;
  }

private:
  // -- what there is to see ----------------------------------------------------------------------------------------------------

  std::string name_of_buffer(int b) const {
    diagnostic d;
    {
      detail::message m(d);
      detail::put_buffer_name(m, g_, b);
    }
    return std::string(d.view());
  }
  std::string name_of_barriers(int alloc) const {
    std::string const n = g_.string(static_cast<int>(g_.attribute(alloc, 3)));
    return n.empty() ? "barriers@" + std::to_string(g_[alloc].line) : n;
  }
  /// The value of a scalar that is constant, before any pass has folded it.
  std::optional<std::int64_t> constant(int i) const {
    node const& n = g_[i];
    if (n.code == op::constant) return g_.attribute(i, 0);
    if (n.code == op::cast || n.code == op::multiple_of || n.code == op::max_contiguous) return constant(g_.operand(i, 0));
    if (n.code != op::add && n.code != op::sub && n.code != op::mul && n.code != op::rem && n.code != op::div) return {};
    auto const x = constant(g_.operand(i, 0)), y = constant(g_.operand(i, 1));
    if (!x || !y || ((n.code == op::rem || n.code == op::div) && *y == 0)) return {};
    return n.code == op::add ? *x + *y : n.code == op::sub ? *x - *y : n.code == op::mul ? *x * *y : n.code == op::rem ? *x % *y : *x / *y;
  }
  std::string index_text(int i, int depth = 0) const {
    node const& n = g_[i];
    if (auto const c = constant(i)) return std::to_string(*c);
    if (n.code == op::cast || n.code == op::multiple_of || n.code == op::max_contiguous) return index_text(g_.operand(i, 0), depth);
    if (n.code == op::for_begin) return "i";
    if (n.code == op::replica_id) return "replica";
    if (n.code == op::cluster_rank) return "rank";
    if (n.code == op::var_get) return "n";
    char const* sign = n.code == op::add ? "+" : n.code == op::sub ? "-" : n.code == op::mul ? "*" : n.code == op::rem ? "%" : n.code == op::div ? "/" : nullptr;
    if (!sign || depth > 1) return "..";
    return index_text(g_.operand(i, 0), depth + 1) + sign + index_text(g_.operand(i, 1), depth + 1);
  }
  column::touch touch_of(int view, char letter, std::string* index = nullptr) const {
    int v = view;
    while (!(g_[v].code == op::view_index && g_[g_.operand(v, 0)].code == op::alloc)) v = g_.operand(v, 0);
    int const at = g_.operand(v, 1);
    auto const c = constant(at);
    if (index) *index = index_text(at);
    return {g_.shown_by(g_.buffer_of(view)), c ? static_cast<int>(*c) : -1, letter};
  }
  std::string barrier_text(int node) const {
    if (g_[node].code == op::remote_barrier) return barrier_text(g_.operand(node, 0)) + " of CTA " + index_text(g_.operand(node, 1));
    return name_of_barriers(g_.operand(node, 0)) + "[" + index_text(g_.operand(node, 1)) + "]";
  }

  void collect() {
    blocks_.push_back({-1, "the kernel", 0, -1});
    int open_block = 0;
    struct region {
      int node, first;
    };
    std::vector<region> open;
    for (int i = 0; i < g_.size(); ++i) {
      node const& n = g_[i];
      if (n.code == op::tasks_begin) continue;
      if (n.code == op::task_begin) {
        std::string const given = g_.string(static_cast<int>(g_.attribute(i, 4)));
        std::int64_t const warps = g_.attribute(i, 0) ? g_.attribute(i, 0) : g_.attrs.num_warps, replicas = g_.attribute(i, 2);
        std::string name = given.empty() ? (g_.attribute(i, 0) ? "a task" : "the default task") : "task " + given;
        name += ", " + std::string(replicas > 1 ? std::to_string(replicas) + " x " : "") + std::to_string(warps) + (warps == 1 ? " warp" : " warps");
        close_block();
        blocks_.push_back({i, name, static_cast<int>(columns_.size()), -1});
        open_block = static_cast<int>(blocks_.size()) - 1;
        continue;
      }
      if (n.code == op::task_end) {
        close_block();
        blocks_.push_back({-1, "after the tasks", static_cast<int>(columns_.size()), -1});
        open_block = static_cast<int>(blocks_.size()) - 1;
        continue;
      }
      if (has(n.code, trait::opens) && n.code != op::combine_begin) open.push_back({i, static_cast<int>(columns_.size())});
      if (has(n.code, trait::closes) && n.code != op::combine_end && n.code != op::tasks_end && !open.empty()) {
        region const r = open.back();
        open.pop_back();
        int const last = static_cast<int>(columns_.size()) - 1;
        if (last >= r.first) {
          bool const loop = g_[r.node].code != op::if_begin;
          brackets_.push_back({(loop ? "loop" : "if") + (g_[r.node].line > 0 ? ", line " + std::to_string(g_[r.node].line) : std::string()), r.first, last, static_cast<int>(open.size())});
          if (loop) loops_.push_back({r.first, last});
        }
      }
      column c;
      c.node = i;
      c.block = open_block;
      std::string index;
      auto touches = [&](int j, char letter, char const* word) {
        column::touch const t = touch_of(g_.operand(i, j), letter, &index);
        c.touches.push_back(t);
        bool const one = g_.buffer(t.buffer).slots == 1;
        c.label = std::string(word) + " " + name_of_buffer(t.buffer) + (one ? "" : "[" + index + "]");
      };
      switch (n.code) {
      case op::local_load: case op::local_gather: touches(0, 'R', "read"); break;
      case op::local_store: case op::local_scatter: touches(0, 'W', "write"); break;
      case op::async_load: case op::async_load_bulk: touches(1, 'C', "copy into"); break;
      case op::async_store_bulk: touches(1, 'S', "copy from"); break;
      case op::remote_store: case op::async_remote_store:
        touches(0, n.code == op::remote_store ? 'W' : 'C', "write");
        c.label += " of CTA " + index_text(g_.operand(i, 2));
        break;
      case op::async_remote_copy: {
        touches(0, 'C', "");
        std::string const to = c.label + " of CTA " + index_text(g_.operand(i, 2));
        touches(1, 'S', "copy from");
        c.label += " to" + to;
        break;
      }
      case op::dot: {
        std::string both;
        for (int j = 0; j < 2; ++j)
          if (g_[g_.operand(i, j)].kind == node_kind::view) {
            touches(j, 'R', "");
            both += (both.empty() ? "" : ",") + c.label;
          }
        if (c.touches.empty()) continue;
        c.label = "dot reads" + both;
        break;
      }
      case op::async_wait: c.label = "wait_group(" + std::to_string(g_.attribute(i, 0)) + ")", c.line = "#1c7ed6"; break;
      case op::async_store_wait: c.label = "store_wait(" + std::to_string(g_.attribute(i, 0)) + ")", c.line = "#1c7ed6"; break;
      case op::barrier_wait: c.label = "wait " + barrier_text(g_.operand(i, 0)), c.line = "#e8590c"; break;
      case op::barrier_arrive: c.label = "arrive " + barrier_text(g_.operand(i, 0)), c.line = "#2f9e44"; break;
      case op::async_arrive: c.label = "copies arrive " + barrier_text(g_.operand(i, 0)), c.line = "#2f9e44"; break;
      case op::barrier_expect_bytes: c.label = "expect " + grouped(g_.attribute(i, 0)) + " B " + barrier_text(g_.operand(i, 0)), c.line = "#2f9e44"; break;
      case op::named_barrier_wait: c.label = "wait barrier " + std::to_string(g_.attribute(i, 0)), c.line = "#e8590c"; break;
      case op::named_barrier_arrive: c.label = "arrive barrier " + std::to_string(g_.attribute(i, 0)), c.line = "#2f9e44"; break;
      case op::sync: c.label = "sync", c.line = "#c92a2a"; break;
      case op::agent_sync: c.label = "agent_sync", c.line = "#c92a2a"; break;
      case op::cluster_barrier: c.label = "cluster_barrier", c.line = "#c92a2a"; break;
      case op::fence: c.label = "fence", c.line = "#868e96"; break;
      case op::fence_barrier_init: c.label = "barriers ready", c.line = "#868e96"; break;
      default: continue;
      }
      if (n.line > 0) c.label += "  :" + std::to_string(n.line);
      columns_.push_back(std::move(c));
    }
    close_block();
    std::erase_if(blocks_, [](block const& b) { return b.last < b.first; });
  }
  void close_block() {
    blocks_.back().last = static_cast<int>(columns_.size()) - 1;
  }

  // -- bytes -------------------------------------------------------------------------------------------------------------------

  /// One kind of memory: a picture of its own.
  struct memory {
    storage where;
    char const* name;
    char const* unit;
    std::int64_t total = 0;
    std::vector<int> buffers{}; ///< that have a lane
    std::vector<int> owners{};
    std::vector<std::int64_t> edges{}; ///< every place where something begins or ends
    std::vector<double> height{};      ///< of the stretch above each edge
    double top = 0, tall = 0;
  };

  bool is_storage(int b) const { return g_.buffer(b).role == buffer_role::spec || g_.buffer(b).role == buffer_role::arena; }
  /// In bytes, or columns of tensor memory.
  span slot(int b, int i) const {
    local_form const f = local_form_of(g_, b);
    std::int64_t const unit = g_.buffer(b).where == storage::tmem ? 4 : 1, base = base_.at(g_.storage_of(b));
    std::int64_t const lo = base + f.slots.at(i) / unit;
    return {lo, lo + f.bytes / unit};
  }
  void place() {
    memories_ = {{storage::smem, "shared memory", "B"}, {storage::tmem, "tensor memory", "columns"}};
    for (memory& m : memories_) {
      std::int64_t const unit = m.where == storage::tmem ? 4 : 1;
      for (int b = 0; b < static_cast<int>(g_.buffers.size()); ++b) {
        buffer_info const& f = g_.buffer(b);
        if (f.where != m.where || f.base >= 0) continue;
        if (g_.storage_of(b) == b) {
          if (unit == 1) m.total = detail::round_up(m.total, detail::buffer_alignment(f));
          base_[b] = m.total;
          m.total += detail::storage_bytes(g_, b) / unit;
          m.owners.push_back(b);
        }
        if (!is_storage(b)) m.buffers.push_back(b);
      }
      if (m.where == storage::smem)
        for (int i = 0; i < g_.size(); ++i)
          if (g_[i].code == op::alloc_barriers) {
            m.total = detail::round_up(m.total, 8);
            barriers_.push_back({i, {m.total, m.total + 8 * g_.attribute(i, 0)}});
            m.total += 8 * g_.attribute(i, 0);
          }
      m.edges = {0, m.total};
      for (int b : m.buffers)
        for (int i = 0; i < g_.buffer(b).slots; ++i) m.edges.push_back(slot(b, i).lo), m.edges.push_back(slot(b, i).hi);
      for (int b : m.owners) m.edges.push_back(base_[b]), m.edges.push_back(base_[b] + detail::storage_bytes(g_, b) / unit);
      if (m.where == storage::smem)
        for (auto const& [node, s] : barriers_) m.edges.push_back(s.lo), m.edges.push_back(s.hi);
      std::sort(m.edges.begin(), m.edges.end());
      m.edges.erase(std::unique(m.edges.begin(), m.edges.end()), m.edges.end());
      // To scale, but nothing is too thin to see.
      for (std::size_t e = 0; e + 1 < m.edges.size(); ++e) {
        double const share = static_cast<double>(m.edges[e + 1] - m.edges[e]) / static_cast<double>(std::max<std::int64_t>(m.total, 1));
        m.height.push_back(std::max(16.0, 380 * share));
        m.tall += m.height.back();
      }
    }
    std::erase_if(memories_, [](memory const& m) { return m.total == 0; });
  }
  double y_of(memory const& m, std::int64_t byte) const {
    double y = m.top + m.tall;
    for (std::size_t e = 0; e + 1 < m.edges.size(); ++e) {
      if (byte >= m.edges[e + 1]) {
        y -= m.height[e];
        continue;
      }
      if (byte > m.edges[e]) y -= m.height[e] * static_cast<double>(byte - m.edges[e]) / static_cast<double>(m.edges[e + 1] - m.edges[e]);
      break;
    }
    return y;
  }

  // -- lives -------------------------------------------------------------------------------------------------------------------

  bool overlap(int a, int i, int b, int j) const {
    if (g_.storage_of(a) != g_.storage_of(b)) return false;
    span const x = slot(a, i), y = slot(b, j);
    return x.lo < y.hi && y.lo < x.hi;
  }
  /// The column of the wait which knows that the copy of column `c` is done, where it is one that counts groups; else `c`.
  int done_by(int c, int end) const {
    int const from = columns_[static_cast<std::size_t>(c)].node;
    op const copy = g_[from].code;
    int newer = copy == op::async_load ? -1 : 0; // groups after its own, which a commit closes
    for (int d = c + 1; d <= end && (copy == op::async_load || copy == op::async_store_bulk); ++d) {
      int const n = columns_[static_cast<std::size_t>(d)].node;
      for (int i = columns_[static_cast<std::size_t>(d - 1)].node + 1; i <= n; ++i) newer += g_[i].code == (copy == op::async_load ? op::async_commit : op::async_store_bulk);
      if (g_[n].code == (copy == op::async_load ? op::async_wait : op::async_store_wait) && newer >= g_.attribute(n, 0)) return d;
    }
    return c;
  }
  static bool writes(char letter) { return letter == 'W' || letter == 'C'; }
  void bars() {
    for (block const& k : blocks_)
      for (memory const& m : memories_)
        for (int b : m.buffers)
          for (int i = 0; i < g_.buffer(b).slots; ++i) {
            int first = -1, last = -1;
            auto finish = [&] {
              if (first >= 0) bars_.push_back({b, i, first, last});
              first = last = -1;
            };
            bool written = false;
            int const so_far = static_cast<int>(bars_.size());
            for (int c = k.first; c <= k.last; ++c)
              for (column::touch const& t : columns_[static_cast<std::size_t>(c)].touches) {
                if (t.buffer == b && (t.slot < 0 || t.slot == i)) {
                  if (first < 0) first = c;
                  last = std::max(last, t.letter == 'S' || t.letter == 'C' ? done_by(c, k.last) : c);
                  written = written || writes(t.letter);
                } else if (writes(t.letter) && t.buffer != b) {
                  bool taken = false;
                  for (int j = 0; j < g_.buffer(t.buffer).slots; ++j) taken = taken || ((t.slot < 0 || t.slot == j) && overlap(b, i, t.buffer, j));
                  if (taken) finish();
                }
              }
            finish();
            // What a pass of a loop reads before it is written was left by the pass before: the life goes around.
            for (std::size_t x = static_cast<std::size_t>(so_far); x < bars_.size(); ++x)
              for (auto const& [from, to] : loops_) {
                bar& it = bars_[x];
                if (it.last < from || it.first > to) continue;
                bool read_first = false, then_written = false;
                for (int c = from; c <= to; ++c)
                  for (column::touch const& t : columns_[static_cast<std::size_t>(c)].touches)
                    if (t.buffer == b && (t.slot < 0 || t.slot == i)) {
                      if (!writes(t.letter) && !then_written) read_first = true;
                      if (writes(t.letter)) then_written = true;
                    }
                if (read_first && then_written) it.first = std::min(it.first, from), it.last = std::max(it.last, to);
              }
            (void)written;
          }
  }

  // -- geometry ----------------------------------------------------------------------------------------------------------------

  static constexpr int axis = 84, lane = 86, step = 34, gap = 26;
  double x_of(int c) const { return column_x_[static_cast<std::size_t>(c)]; }
  void geometry() {
    std::size_t lanes = 1, words = 0;
    for (memory const& m : memories_) lanes = std::max(lanes, m.buffers.size() + (m.where == storage::smem && !barriers_.empty()));
    left_ = axis + static_cast<int>(lanes) * lane + 40;
    double x = left_;
    for (block const& k : blocks_) {
      for (int c = k.first; c <= k.last; ++c, x += step) column_x_.push_back(x + step / 2.0);
      if (blocks_.size() > 1) x = std::max(x, x_of(k.first) - step / 2.0 + 6.6 * static_cast<double>(k.name.size()) + 8);
      x += gap;
    }
    for (column const& c : columns_) words = std::max(words, c.label.size());
    width_ = std::max<int>(static_cast<int>(x) + static_cast<int>(static_cast<double>(words) * 3.6) + 20, 1000);
    labels_ = 108 + static_cast<int>(static_cast<double>(words) * 4.4);
    depth_ = 0;
    for (bracket const& b : brackets_) depth_ = std::max(depth_, b.depth + 1);
    double y = labels_;
    for (memory& m : memories_) {
      m.top = y + 34;
      y = m.top + m.tall + 30;
    }
    brackets_at_ = static_cast<int>(y) + 2;
    height_ = brackets_at_ + 18 * depth_ + 116;
  }

  // -- drawing -----------------------------------------------------------------------------------------------------------------

  template <class... A>
  void add(char const* format, A... a) {
    char buffer[512];
    std::snprintf(buffer, sizeof buffer, format, a...);
    out_ += buffer;
  }
  void text(double x, double y, std::string const& s, char const* style = "") {
    add("<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
    out_ += escaped(s) + "</text>\n";
  }
  void box(double x, double y, double w, double h, char const* fill, char const* stroke, char const* more = "") {
    add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" stroke=\"%s\" %s/>\n", x, y, w, h, fill, stroke, more);
  }

  void draw() {
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"11\">\n", width_, height_, width_, height_);
    out_ += "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
            "<rect width=\"6\" height=\"6\" fill=\"#f8f9fa\"/><path d=\"M0 0V6\" stroke=\"#adb5bd\" stroke-width=\"2\"/></pattern></defs>\n";
    add("<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", width_, height_);
    text(16, 26, "kernel " + std::string(g_.name) + ": local memory", "font-size=\"17\" font-weight=\"bold\"");
    std::string sizes;
    for (memory const& m : memories_) sizes += (sizes.empty() ? "" : ", ") + std::string(m.name) + " " + grouped(m.total) + " " + m.unit;
    text(16, 46, memories_.empty() ? "This kernel has no local memory." : sizes + " for each CTA", "fill=\"#495057\" font-size=\"12\"");
    if (memories_.empty()) {
      out_ += "</svg>\n";
      return;
    }
    text(axis, labels_ + 4, "where the buffers lie", "font-weight=\"bold\" font-size=\"12\"");
    text(left_, 66, "when they are used: statements in program order", "font-weight=\"bold\" font-size=\"12\"");
    for (memory const& m : memories_) lanes(m);
    for (memory const& m : memories_) uses(m);
    tops();
    legend();
    out_ += "</svg>\n";
  }

  void lanes(memory const& m) {
    text(16, m.top - 12, std::string(m.name) + ", " + m.unit, "fill=\"#495057\" font-weight=\"bold\"");
    double const right = left_ - 40;
    for (std::int64_t e : m.edges) {
      double const y = y_of(m, e);
      add("<path d=\"M%d %.1fH%.1f\" stroke=\"#e9ecef\"/>\n", axis - 4, y, right);
      text(axis - 8, y + 3.5, grouped(e), "text-anchor=\"end\" fill=\"#868e96\" font-size=\"9.5\"");
    }
    double x = axis;
    for (int b : m.buffers) {
      buffer_info const& f = g_.buffer(b);
      text(x + 2, m.top - 3, name_of_buffer(b), "font-weight=\"bold\"");
      growth(m, b, x);
      for (int i = 0; i < f.slots; ++i) {
        span const s = slot(b, i);
        double const hi = y_of(m, s.hi), lo = y_of(m, s.lo);
        box(x, hi + 1, lane - 12, lo - hi - 2, detail::buffer_colour(b), stroke_of(b), "rx=\"3\"");
        if (lo - hi >= 12) text(x + 4, (lo + hi) / 2 + 4, f.slots > 1 ? "[" + std::to_string(i) + "] " + grouped(s.hi - s.lo) : grouped(s.hi - s.lo), "font-size=\"10\"");
      }
      x += lane;
    }
    if (m.where == storage::smem && !barriers_.empty()) {
      for (auto const& [node, s] : barriers_) {
        double const hi = y_of(m, s.hi), lo = y_of(m, s.lo);
        box(x, hi + 1, lane - 12, lo - hi - 2, "#ffffff", "#495057", "rx=\"3\" stroke-dasharray=\"3 2\"");
        text(x + 4, (lo + hi) / 2 + 4, name_of_barriers(node) + " x " + std::to_string(g_.attribute(node, 0)), "font-size=\"10\" fill=\"#495057\"");
      }
      text(x + 2, m.top - 3, "barriers", "font-weight=\"bold\" fill=\"#495057\"");
    }
    // Storage that several buffers share: its outline, and what none of them uses.
    std::int64_t const unit = m.where == storage::tmem ? 4 : 1;
    for (int o : m.owners) {
      if (!is_storage(o)) continue;
      std::int64_t const from = base_.at(o), to = from + detail::storage_bytes(g_, o) / unit;
      std::int64_t used = from;
      int first = -1, last = -1;
      for (std::size_t k = 0; k < m.buffers.size(); ++k)
        if (g_.storage_of(m.buffers[k]) == o) {
          if (first < 0) first = static_cast<int>(k);
          last = static_cast<int>(k);
          for (int i = 0; i < g_.buffer(m.buffers[k]).slots; ++i) used = std::max(used, slot(m.buffers[k], i).hi);
        }
      if (first < 0 || to == from) continue;
      double const x0 = axis + first * lane - 5, w = (last - first + 1) * lane - 2, hi = y_of(m, to), lo = y_of(m, from);
      if (used < to) {
        double const y = y_of(m, used);
        box(x0 + 2, hi + 1, w - 4, y - hi - 2, "url(#hatch)", "none");
        text(x0 + 8, (hi + y) / 2 + 4, "slack " + grouped(to - used) + " " + m.unit, "font-size=\"10\" font-weight=\"bold\" fill=\"#495057\"");
      }
      box(x0, hi, w, lo - hi, "none", "#212529", "rx=\"4\" stroke-width=\"1.4\"");
      text(x0 + 2, lo + 13, name_of_buffer(o) + ": " + grouped(to - from) + " " + m.unit + " shared", "font-size=\"10.5\" font-weight=\"bold\"");
    }
  }
  /// Where others make the groups of slots wider than this buffer needs.
  void growth(memory const& m, int b, double x) {
    buffer_info const& f = g_.buffer(b);
    if (f.role != buffer_role::peer || f.place.stride == 0) return;
    int per_group = 1;
    for (int j = 0; j < f.place.levels; ++j) per_group *= f.place.radix[j].count;
    for (int i = 0; i + per_group <= f.slots; i += per_group) {
      std::int64_t const end = slot(b, i + per_group - 1).hi, next = slot(b, i).lo - f.place.offset + f.place.stride;
      if (next <= end) continue;
      // Bytes of a buffer that is in use at the same time are not growth but that buffer's.
      bool beside = false;
      for (int o : m.buffers) {
        if (o == b || g_.storage_of(o) != g_.storage_of(b)) continue;
        bool in_it = false, takes_turns = false;
        for (int j = 0; j < g_.buffer(o).slots; ++j) {
          span const s = slot(o, j);
          in_it = in_it || (s.lo < next && s.hi > end);
          for (int x = 0; x < f.slots; ++x) takes_turns = takes_turns || overlap(b, x, o, j);
        }
        beside = beside || (in_it && !takes_turns);
      }
      if (beside) continue;
      double const hi = y_of(m, next), lo = y_of(m, end);
      box(x, hi + 1, lane - 12, lo - hi - 2, "url(#hatch)", "#ced4da", "rx=\"3\"");
      if (lo - hi >= 12) text(x + 4, (lo + hi) / 2 + 4, "growth " + grouped(next - end), "font-size=\"9.5\" fill=\"#868e96\"");
    }
  }

  void uses(memory const& m) {
    for (block const& k : blocks_) {
      double const x0 = x_of(k.first) - step / 2.0, x1 = x_of(k.last) + step / 2.0;
      box(x0, m.top, x1 - x0, m.tall, "#fcfcfd", "#dee2e6");
      for (std::int64_t e : m.edges) add("<path d=\"M%.1f %.1fH%.1f\" stroke=\"#f1f3f5\"/>\n", x0, y_of(m, e), x1);
    }
    for (bar const& b : bars_) {
      if (std::find(m.buffers.begin(), m.buffers.end(), b.buffer) == m.buffers.end()) continue;
      span const s = slot(b.buffer, b.slot);
      double const hi = y_of(m, s.hi), lo = y_of(m, s.lo), x0 = x_of(b.first) - step / 2.0 + 3, x1 = x_of(b.last) + step / 2.0 - 3;
      // What a browser says of the bar under the pointer.
      out_ += "<g><title>" + escaped(name_of_buffer(b.buffer) + (g_.buffer(b.buffer).slots > 1 ? "[" + std::to_string(b.slot) + "]" : "") + ": in use from " + columns_[static_cast<std::size_t>(b.first)].label +
                                     " to " + columns_[static_cast<std::size_t>(b.last)].label) +
              "</title>\n";
      box(x0, hi + 1.5, x1 - x0, lo - hi - 3, detail::buffer_colour(b.buffer), stroke_of(b.buffer), "rx=\"4\" fill-opacity=\"0.75\"");
      out_ += "</g>\n";
    }
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      double const x = x_of(static_cast<int>(c));
      if (columns_[c].line) add("<path d=\"M%.1f %.1fV%.1f\" stroke=\"%s\" stroke-width=\"1.6\" stroke-dasharray=\"5 3\"/>\n", x, m.top, m.top + m.tall, columns_[c].line);
    }
    // Names on the bars, then the letters above everything.
    for (bar const& b : bars_) {
      if (std::find(m.buffers.begin(), m.buffers.end(), b.buffer) == m.buffers.end()) continue;
      span const s = slot(b.buffer, b.slot);
      double const hi = y_of(m, s.hi), lo = y_of(m, s.lo), x0 = x_of(b.first) - step / 2.0 + 3;
      std::string const name = name_of_buffer(b.buffer) + (g_.buffer(b.buffer).slots > 1 ? "[" + std::to_string(b.slot) + "]" : "");
      if (lo - hi >= 42 && static_cast<double>(name.size()) * 6.6 + 4 < (b.last - b.first + 1) * step) {
        add("<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\" font-weight=\"bold\" fill=\"%s\">", x0 + 4, hi + 12, stroke_of(b.buffer));
        out_ += escaped(name) + "</text>\n";
      }
    }
    for (std::size_t c = 0; c < columns_.size(); ++c)
      for (column::touch const& t : columns_[c].touches) {
        if (std::find(m.buffers.begin(), m.buffers.end(), t.buffer) == m.buffers.end()) continue;
        for (int i = 0; i < g_.buffer(t.buffer).slots; ++i) {
          if (t.slot >= 0 && t.slot != i) continue;
          span const s = slot(t.buffer, i);
          double const y = (y_of(m, s.hi) + y_of(m, s.lo)) / 2, x = x_of(static_cast<int>(c));
          bool const full = writes(t.letter);
          add("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6.5\" fill=\"%s\" stroke=\"%s\" stroke-width=\"1.3\"%s/>\n", x, y, full ? stroke_of(t.buffer) : "#ffffff", stroke_of(t.buffer),
              t.slot < 0 && g_.buffer(t.buffer).slots > 1 ? " fill-opacity=\"0.55\" stroke-dasharray=\"2 1.5\"" : "");
          add("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"9\" font-weight=\"bold\" fill=\"%s\">%c</text>\n", x, y + 3.2, full ? "#ffffff" : stroke_of(t.buffer), t.letter);
        }
      }
  }

  void tops() {
    for (block const& k : blocks_) {
      double const x0 = x_of(k.first) - step / 2.0, x1 = std::max(x_of(k.last) + step / 2.0, x0 + 6.6 * static_cast<double>(k.name.size()) + 8);
      if (blocks_.size() > 1) {
        box(x0, 76, x1 - x0, 16, "#e7f5ff", "#74c0fc", "rx=\"3\"");
        text(x0 + 4, 88, k.name, "font-size=\"10\" font-weight=\"bold\" fill=\"#1864ab\"");
      }
      for (int c = k.first; c <= k.last; ++c) {
        column const& it = columns_[static_cast<std::size_t>(c)];
        add("<text transform=\"translate(%.1f %.1f) rotate(-52)\" font-size=\"10.5\" fill=\"%s\">", x_of(c) + 2, memories_.front().top - 8.0, it.line ? it.line : "#212529");
        out_ += escaped(it.label) + "</text>\n";
      }
    }
    for (bracket const& b : brackets_) {
      double const x0 = x_of(b.first) - step / 2.0 + 2, x1 = x_of(b.last) + step / 2.0 - 2, y = brackets_at_ + 18 * (depth_ - 1 - b.depth);
      add("<path d=\"M%.1f %.1fv5H%.1fv-5\" fill=\"none\" stroke=\"#868e96\"/>\n", x0, y, x1);
      text(x0 + 4, y + 15, b.name, "font-size=\"10\" fill=\"#495057\"");
    }
  }

  void legend() {
    double x = 16;
    double const y = height_ - 74;
    box(8, y - 20, width_ - 16, 86, "#f8f9fa", "#dee2e6", "rx=\"4\"");
    auto letter = [&](char c, bool full, char const* what) {
      add("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6.5\" fill=\"%s\" stroke=\"#495057\" stroke-width=\"1.3\"/>\n", x + 7, y - 4, full ? "#495057" : "#ffffff");
      add("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"9\" font-weight=\"bold\" fill=\"%s\">%c</text>\n", x + 7, y - 0.8, full ? "#ffffff" : "#495057", c);
      text(x + 18, y, what);
      x += 26 + 5.7 * static_cast<double>(std::string_view(what).size());
    };
    letter('W', true, "written");
    letter('C', true, "a copy into it starts");
    letter('R', false, "read");
    letter('S', false, "a copy out of it starts");
    auto line = [&](char const* colour, char const* what) {
      add("<path d=\"M%.1f %.1fh16\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"5 3\"/>\n", x, y - 4, colour);
      text(x + 21, y, what);
      x += 30 + 5.7 * static_cast<double>(std::string_view(what).size());
    };
    line("#e8590c", "waits at a barrier");
    line("#2f9e44", "arrives");
    line("#1c7ed6", "waits for copies");
    line("#c92a2a", "sync");
    char const* const rest[] = {
        "Each buffer has a colour. A bar spans the statements from its first use to its last (of a copy, to its wait), or until another buffer takes over its bytes;",
        "bars of different colours at one height are buffers that take turns in the same bytes. Faint letters: one of these slots, which one depends on the pass.",
        "Hatched: bytes that a buffer does not use, because others in the same storage need more (growth), or because the author asked for them (slack).",
        "Tasks run at the same time, each in its own program order. Numbers behind a colon are source lines. Heights are to scale, but thin ones are enlarged."};
    double at = y + 16;
    for (char const* line : rest) {
      text(16, at, line, "fill=\"#495057\"");
      at += 14;
    }
  }

  graph_view const& g_;
  std::vector<column> columns_;
  std::vector<block> blocks_;
  std::vector<bracket> brackets_;
  std::vector<std::pair<int, int>> loops_;
  std::vector<std::pair<int, span>> barriers_;
  std::vector<memory> memories_;
  std::map<int, std::int64_t> base_;
  std::vector<bar> bars_;
  std::vector<double> column_x_;
  std::string out_;
  int left_ = 0, width_ = 0, height_ = 0, labels_ = 0, depth_ = 0, brackets_at_ = 0;
};

} // namespace

std::string memory_map(graph_view const& g) { return picture(g).run(); }

} // namespace kiln::tool
