// The drawing of memory_map.hpp: geometry only. What there is to see is decided in memory_map_model.hpp.
#include "memory_map.hpp"

#include "memory_map_model.hpp"

#include "src/graph/drawing.hpp"

#include <kiln/target/target.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

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
/// Characters as one sees them.
std::size_t length(std::string_view s) {
  return static_cast<std::size_t>(std::count_if(s.begin(), s.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}
/// Names are ASCII: cut to `most` characters.
std::string shortened(std::string const& s, std::size_t most) { return s.size() <= most ? s : s.substr(0, most - 2) + ".."; }

constexpr std::array dark = {"#a86a00", "#2b7a1f", "#5f3dc4", "#c2342b", "#0b7285", "#7d7000", "#a61e6e", "#55602b"};
char const* stroke_of(int b) { return dark[static_cast<std::size_t>(b) % dark.size()]; }

char const* colour_of(map_column::kind k) {
  switch (k) {
  case map_column::kind::wait: return "#d9480f";
  case map_column::kind::arrive: return "#2b8a3e";
  case map_column::kind::copies: return "#1971c2";
  case map_column::kind::sync: return "#c92a2a";
  case map_column::kind::fence: return "#868e96";
  case map_column::kind::access: break;
  }
  return nullptr;
}

class picture {
public:
  explicit picture(graph_view const& g) : g_(g), m_(g) {}

  std::string run() {
    geometry();
    draw();
    return out_;
  }

private:
  // -- geometry ----------------------------------------------------------------------------------------------------------------

  static constexpr int axis = 84, step = 34;
  static constexpr double letter_width = 6.3; ///< of the labels, on average
  static constexpr std::string_view heading = "when they are used: statements in program order, from left to right";
  /// Where a kind of memory is drawn. Heights are to scale, but nothing is too thin to see.
  struct panel {
    double top = 0, tall = 0;
    std::vector<double> height{}; ///< of the stretch above each edge
  };

  double x_of(int c) const { return column_x_[static_cast<std::size_t>(c)]; }
  double y_of(std::size_t p, std::int64_t byte) const {
    map_memory const& m = m_.memories[p];
    double y = panels_[p].top + panels_[p].tall;
    for (std::size_t e = 0; e + 1 < m.edges.size() && byte >= m.edges[e + 1]; ++e) y -= panels_[p].height[e];
    return y; // every place that is asked for is an edge
  }
  std::string box_text(map_memory const& m, int b, int slot) const {
    byte_span const s = m_.slot(b, slot);
    return shortened(m_.buffer_name(b), 30) + (g_.buffer(b).slots > 1 ? "[" + std::to_string(slot) + "]" : "") + "  " + grouped(s.hi - s.lo) + unit(m);
  }
  static std::string unit(map_memory const& m) { return m.where == storage::tmem ? " col" : " B"; }
  /// "f16 64 x 128".
  std::string type_text(int b) const {
    shape const& e = g_.shapes[static_cast<std::size_t>(g_.buffer(b).shape)];
    std::string s(name_of(g_.buffer(b).type));
    for (int d = 0; d < e.rank; ++d) s += (d ? " x " : " ") + std::to_string(e.extent[d]);
    return s;
  }
  std::string barrier_text(int alloc) const {
    std::int64_t const n = g_.attribute(alloc, 0);
    return shortened(m_.barriers_name(alloc), 24) + ": " + std::to_string(n) + (n == 1 ? " barrier  " : " barriers  ") + grouped(8 * n) + " B";
  }
  std::vector<std::string> caption(map_memory const& m, map_storage const& s) const {
    std::string names;
    for (std::size_t i = 0; i < s.buffers.size() && i < 5; ++i) {
      bool const last = i + 1 == s.buffers.size();
      names += (i == 0 ? "" : last ? " and " : ", ") + (i == 4 && !last ? std::to_string(s.buffers.size() - 4) + " more" : shortened(m_.buffer_name(s.buffers[i]), 24));
    }
    buffer_info const& owner = g_.buffer(s.owner);
    bool const unnamed = owner.role == buffer_role::arena && owner.name < 0;
    std::vector<std::string> lines = {unnamed ? "allocator, line " + std::to_string(g_[owner.node].line) : shortened(m_.buffer_name(s.owner), 30),
                                      grouped(s.bytes.hi - s.bytes.lo) + " " + m.unit + (s.lanes > 1 ? ", shared by" : ", divided among")};
    for (std::size_t at = 0; at < names.size();) { // about 26 characters a line
      std::size_t end = names.size();
      if (end - at > 26) {
        end = names.rfind(' ', at + 26);
        if (end == names.npos || end <= at) end = std::min(names.find(' ', at), names.size());
      }
      lines.push_back(names.substr(at, end - at));
      at = end + (end < names.size());
    }
    std::int64_t const room = s.bytes.hi - s.bytes.lo;
    if (s.apart > room) lines.push_back("apart they would need " + grouped(s.apart));
    return lines;
  }

  void geometry() {
    std::size_t widest = 10, lanes = 1, captions = 0, words = 0;
    for (map_memory const& m : m_.memories) {
      for (map_storage const& s : m.storages) {
        lanes = std::max(lanes, static_cast<std::size_t>(s.lanes));
        for (int b : s.buffers) widest = std::max(widest, box_text(m, b, g_.buffer(b).slots - 1).size());
        if (s.shared)
          for (std::string const& l : caption(m, s)) captions = std::max(captions, l.size());
      }
      for (auto const& [alloc, bytes] : m.barriers) widest = std::max(widest, barrier_text(alloc).size());
      panel p;
      for (std::size_t e = 0; e + 1 < m.edges.size(); ++e) {
        double const share = static_cast<double>(m.edges[e + 1] - m.edges[e]) / static_cast<double>(std::max<std::int64_t>(m.total, 1));
        p.height.push_back(std::max(16.0, 380 * share));
        p.tall += p.height.back();
      }
      panels_.push_back(std::move(p));
    }
    lane_ = static_cast<int>(static_cast<double>(widest) * 5.9) + 18;
    left_end_ = axis + static_cast<int>(lanes) * lane_ + static_cast<int>(static_cast<double>(captions) * 6.1);
    left_ = std::max(left_end_ + 64, axis + 230);
    for (map_column const& c : m_.columns) words = std::max(words, length(c.label));
    wide_ = m_.columns.size() > 30;
    double x = left_;
    for (map_block const& k : m_.blocks) {
      for (int c = k.first; c <= k.last; ++c, x += step) column_x_.push_back(x + step / 2.0);
      if (m_.blocks.size() > 1) x = std::max(x, x_of(k.first) - step / 2.0 + 6.8 * static_cast<double>(k.title.size()) + 8);
      x += wide_ ? 76 : 26;
    }
    double right = std::max(x, left_ + 7.4 * static_cast<double>(heading.size()));
    for (std::size_t c = 0; c < m_.columns.size(); ++c) right = std::max(right, column_x_[c] + 0.63 * letter_width * static_cast<double>(length(m_.columns[c].label)) + 16);
    width_ = std::max<int>(static_cast<int>(right) + 8, m_.memories.empty() ? 520 : 1000);
    labels_ = 92 + static_cast<int>(0.8 * letter_width * static_cast<double>(words)) + (m_.blocks.size() > 1 ? 16 : 0);
    for (map_bracket const& b : m_.brackets) depth_ = std::max(depth_, b.depth + 1);
    double y = labels_;
    for (panel& p : panels_) {
      p.top = y + 34;
      y = p.top + p.tall + 18;
    }
    brackets_at_ = static_cast<int>(y) + 2;
    height_ = brackets_at_ + 18 * depth_ + 16;
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
  /// Text that stays readable over lines and hatching.
  void text_over(double x, double y, std::string const& s, std::string const& style, char const* around) {
    std::string const halo = style + " stroke=\"" + around + "\" stroke-width=\"3.5\" stroke-linejoin=\"round\" aria-hidden=\"true\"";
    text(x, y, s, halo.c_str());
    text(x, y, s, style.c_str());
  }
  void box(double x, double y, double w, double h, char const* fill, char const* stroke, char const* more = "") {
    add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" stroke=\"%s\" %s/>\n", x, y, w, h, fill, stroke, more);
  }
  void hatch(double x, double hi, double w, double lo, std::string const& what) {
    box(x, hi + 1, w, lo - hi - 2, "url(#hatch)", "#ced4da", "rx=\"3\"");
    text_over(x + 5, (hi + lo) / 2 + 3.8, what, "font-size=\"10\" fill=\"#495057\"", "#f8f9fa");
  }

  void draw() {
    std::size_t const start = out_.size();
    out_ += "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
            "<rect width=\"6\" height=\"6\" fill=\"#f8f9fa\"/><path d=\"M0 0V6\" stroke=\"#ced4da\" stroke-width=\"2\"/></pattern></defs>\n"
            "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    text(16, 26, "kernel " + std::string(g_.name) + ": local memory", "font-size=\"17\" font-weight=\"bold\"");
    text(16, 46, m_.memories.empty() ? "This kernel has no local memory." : sizes(), "fill=\"#495057\" font-size=\"12\"");
    if (m_.memories.empty()) {
      height_ = 64;
    } else {
      bool shared = false;
      for (map_memory const& m : m_.memories)
        for (map_storage const& s : m.storages) shared = shared || s.lanes > 1;
      text(16, 76, "where the buffers lie: bytes up", "font-weight=\"bold\" font-size=\"12\"");
      if (shared) text(16, 91, "(side by side: in the same bytes)", "fill=\"#495057\" font-size=\"11\"");
      text(left_, 76, m_.columns.empty() ? "nothing uses them" : std::string(heading), "font-weight=\"bold\" font-size=\"12\"");
      for (std::size_t p = 0; p < panels_.size(); ++p) lanes(p);
      for (std::size_t p = 0; p < panels_.size(); ++p) uses(p);
      tops();
      legend();
    }
    char head[256];
    std::snprintf(head, sizeof head, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"11\">\n", width_, height_,
                  width_, height_);
    out_.insert(start, head);
    out_ += "</svg>\n";
  }
  /// "shared memory 65,568 B for each CTA; too much for gfx90a".
  std::string sizes() const {
    std::string s, without;
    for (map_memory const& m : m_.memories) s += (s.empty() ? "" : ", ") + std::string(m.name) + " " + grouped(m.total) + " " + m.unit;
    s += " for each CTA";
    bool const tensor = m_.memories.back().where == storage::tmem;
    int fitting = 0;
    for (target const& t : targets::all) {
      bool fits = true;
      for (map_memory const& m : m_.memories) fits = fits && (m.where == storage::tmem ? t.has_tensor_memory() || t.is_host() : m.total <= t.shared_bytes);
      fitting += fits;
      if (!fits && !tensor) without += (without.empty() ? "" : ", ") + std::string(t.name());
    }
    if (tensor) return s + "; only sm_100a and the host have tensor memory";
    if (without.empty()) return s + "; fits every target";
    return s + (fitting ? "; too much for " + without : "; too much for every target");
  }

  void ticks(std::size_t p, double x) {
    for (std::int64_t e : m_.memories[p].edges) text(x, y_of(p, e) + 3.5, grouped(e), "text-anchor=\"end\" fill=\"#868e96\" font-size=\"9.5\"");
  }

  void lanes(std::size_t p) {
    map_memory const& m = m_.memories[p];
    double const top = panels_[p].top, width = lane_ - 8;
    text(16, top - 12, std::string(m.name) + ", in " + (m.where == storage::tmem ? "columns of 4 bytes" : "bytes"), "fill=\"#495057\" font-weight=\"bold\"");
    for (std::int64_t e : m.edges) add("<path d=\"M%d %.1fH%.1f\" stroke=\"#e9ecef\"/>\n", axis - 4, y_of(p, e), axis + width);
    ticks(p, axis - 8);
    for (byte_span s : m.padding) {
      double const hi = y_of(p, s.hi), lo = y_of(p, s.lo);
      box(axis, hi + 1, width, lo - hi - 2, "none", "#dee2e6", "rx=\"3\" stroke-dasharray=\"2 3\"");
      text(axis + 5, (hi + lo) / 2 + 3.8, "padding  " + grouped(s.hi - s.lo) + unit(m), "font-size=\"10\" fill=\"#868e96\"");
    }
    for (map_storage const& s : m.storages) {
      double const hi = y_of(p, s.bytes.hi), lo = y_of(p, s.bytes.lo), all = s.lanes * lane_ - 8.0;
      if (s.slack > 0) hatch(axis, hi, all, y_of(p, s.bytes.hi - s.slack), "slack  " + grouped(s.slack) + unit(m));
      for (int b : s.buffers)
        for (int i = 0; i < g_.buffer(b).slots; ++i) {
          byte_span const at = m_.slot(b, i);
          double const x = axis + m_.lane_of[static_cast<std::size_t>(b)] * lane_, upper = y_of(p, at.hi), lower = y_of(p, at.lo);
          out_ += "<g><title>" + escaped(m_.slot_name(b, i) + ": " + type_text(b) + ", " + (m.where == storage::tmem ? "columns " : "bytes ") + grouped(at.lo) + " to " + grouped(at.hi - 1)) + "</title>\n";
          box(x, upper + 1, width, lower - upper - 2, detail::buffer_colour(b), stroke_of(b), "rx=\"3\"");
          std::string const label = box_text(m, b, i);
          std::size_t const split = label.rfind("  ");
          add("<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\"><tspan font-weight=\"bold\" fill=\"%s\">", x + 5, (upper + lower) / 2 + 3.8, stroke_of(b));
          out_ += escaped(label.substr(0, split)) + "</tspan> " + label.substr(split + 2) + "</text>\n";
          if (lower - upper >= 34) text(x + 5, (upper + lower) / 2 + 15, shortened(type_text(b), static_cast<std::size_t>(width / 5.4)), "font-size=\"9\" fill=\"#495057\"");
          out_ += "</g>\n";
        }
      if (!s.shared) continue;
      box(axis - 4, hi, all + 8, lo - hi, "none", "#212529", "rx=\"4\" stroke-width=\"1.5\"");
      std::vector<std::string> const lines = caption(m, s);
      auto const fit = std::clamp<std::size_t>(static_cast<std::size_t>((lo - hi) / 13), 1, lines.size());
      double y = (hi + lo) / 2 - 6.5 * static_cast<double>(fit) + 10;
      for (std::size_t i = 0; i < fit; ++i, y += 13) text(axis + all + 10, y, lines[i], i == 0 ? "font-size=\"10.5\" font-weight=\"bold\"" : "font-size=\"10\" fill=\"#495057\"");
    }
    for (auto const& [b, s] : m.growth) hatch(axis + m_.lane_of[static_cast<std::size_t>(b)] * lane_, y_of(p, s.hi), width, y_of(p, s.lo), "growth  " + grouped(s.hi - s.lo) + unit(m));
    for (auto const& [alloc, s] : m.barriers) {
      double const hi = y_of(p, s.hi), lo = y_of(p, s.lo);
      box(axis, hi + 1, width, lo - hi - 2, "#ffffff", "#495057", "rx=\"3\" stroke-dasharray=\"3 2\"");
      text(axis + 5, (lo + hi) / 2 + 3.8, barrier_text(alloc), "font-size=\"10\" fill=\"#495057\"");
    }
  }

  struct drawn_bar {
    map_bar const* bar;
    double x0, x1, hi, lo;
  };
  /// Room for a name beside letters: in the bar, else behind it. Below 0: there is none.
  double room(drawn_bar const& b, std::vector<drawn_bar> const& all, double width) const {
    if (b.lo - b.hi >= 48 && width + 6 < b.x1 - b.x0) return b.x0 + 4; // above the letters
    double from = b.x0 + 5;
    for (int c = b.bar->first; c <= b.bar->last; ++c) {
      bool busy = false;
      for (map_column::touch const& t : m_.columns[static_cast<std::size_t>(c)].touches) busy = busy || (t.buffer == b.bar->buffer && t.may(b.bar->slot));
      if (!busy) continue;
      if (x_of(c) - 10 - from >= width) return from;
      from = x_of(c) + 12;
    }
    if (b.x1 - 2 - from >= width) return from;
    double end = 0;
    for (map_block const& k : m_.blocks)
      if (k.first <= b.bar->last && b.bar->last <= k.last) end = x_of(k.last) + step / 2.0;
    if (b.x1 + 2 + width > end) return -1;
    for (drawn_bar const& o : all)
      if (o.bar != b.bar && o.hi < b.lo && b.hi < o.lo && o.x0 < b.x1 + 2 + width && o.x1 > b.x1) return -1;
    return b.x1 + 2;
  }

  void uses(std::size_t p) {
    map_memory const& m = m_.memories[p];
    double const top = panels_[p].top, tall = panels_[p].tall;
    for (map_block const& k : m_.blocks) {
      double const x0 = x_of(k.first) - step / 2.0, x1 = x_of(k.last) + step / 2.0;
      box(x0, top, x1 - x0, tall, "#fcfcfd", "#ced4da");
      for (std::int64_t e : m.edges) add("<path d=\"M%.1f %.1fH%.1f\" stroke=\"#f1f3f5\"/>\n", x0, y_of(p, e), x1);
      if (wide_ || &k == &m_.blocks.front()) ticks(p, x0 - 6); // the axis is far away
    }
    std::vector<drawn_bar> drawn;
    for (map_bar const& b : m_.bars) {
      if (g_.buffer(b.buffer).where != m.where) continue;
      byte_span const s = m_.slot(b.buffer, b.slot);
      drawn.push_back({&b, x_of(b.first) - step / 2.0 + 3, x_of(b.last) + step / 2.0 - 3, y_of(p, s.hi), y_of(p, s.lo)});
    }
    auto label = [&](int c) { return m_.columns[static_cast<std::size_t>(c)].label; };
    for (drawn_bar const& d : drawn) { // the title is what a browser says of the bar under the pointer
      int const b = d.bar->buffer;
      out_ += "<g><title>" + escaped(m_.slot_name(b, d.bar->slot) + ": in use from " + label(d.bar->first) + " to " + label(d.bar->last)) + "</title>\n";
      box(d.x0, d.hi + 1.5, d.x1 - d.x0, d.lo - d.hi - 3, detail::buffer_colour(b), stroke_of(b), "rx=\"4\" fill-opacity=\"0.75\"");
      out_ += "</g>\n";
    }
    for (std::size_t c = 0; c < m_.columns.size(); ++c)
      if (char const* const colour = colour_of(m_.columns[c].what)) add("<path d=\"M%.1f %.1fv%.1f\" stroke=\"%s\" stroke-width=\"1.6\" stroke-dasharray=\"5 3\"/>\n", x_of(static_cast<int>(c)), top, tall, colour);
    // Names on the bars, then the letters above everything.
    for (drawn_bar const& d : drawn) {
      std::string name = m_.slot_name(d.bar->buffer, d.bar->slot);
      auto const place = [&] { return room(d, drawn, 6.6 * static_cast<double>(name.size())); };
      double x = place();
      if (std::string const whole = m_.buffer_name(d.bar->buffer); x < 0 && whole.size() > 9) name = shortened(whole, 9) + name.substr(whole.size()), x = place();
      if (x < 0) continue;
      bool const above = d.lo - d.hi >= 48 && x == d.x0 + 4;
      text_over(x, above ? d.hi + 12 : (d.hi + d.lo) / 2 + 3.8, name, std::string("font-size=\"10\" font-weight=\"bold\" fill=\"") + stroke_of(d.bar->buffer) + "\"",
                x > d.x1 ? "#fcfcfd" : detail::buffer_colour(d.bar->buffer));
    }
    for (std::size_t c = 0; c < m_.columns.size(); ++c)
      for (map_column::touch const& t : m_.columns[c].touches) {
        if (g_.buffer(t.buffer).where != m.where) continue;
        for (int i : t.slots) {
          byte_span const s = m_.slot(t.buffer, i);
          double const hi = y_of(p, s.hi), lo = y_of(p, s.lo);
          letter(x_of(static_cast<int>(c)), (hi + lo) / 2, t.letter, t.writes(), t.slots.size() > 1, stroke_of(t.buffer));
        }
      }
  }
  void letter(double x, double y, char c, bool full, bool one_of_several, char const* colour) {
    if (one_of_several) add("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"8\" fill=\"none\" stroke=\"%s\" stroke-dasharray=\"2.2 1.9\"/>\n", x, y, colour);
    add("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"%s\" stroke=\"%s\" stroke-width=\"1.3\"/>\n", x, y, full ? colour : "#ffffff", colour);
    add("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"9\" font-weight=\"bold\" fill=\"%s\">%c</text>\n", x, y + 3.2, full ? "#ffffff" : colour, c);
  }

  void tops() {
    for (map_block const& k : m_.blocks) {
      double const x0 = x_of(k.first) - step / 2.0, x1 = std::max(x_of(k.last) + step / 2.0, x0 + 6.8 * static_cast<double>(k.title.size()) + 8);
      if (m_.blocks.size() > 1) {
        bool const task = k.task >= 0;
        box(x0, 84, x1 - x0, 17, task ? "#e7f5ff" : "#f1f3f5", task ? "#74c0fc" : "#ced4da", "rx=\"3\"");
        text(x0 + 5, 96.5, k.title, task ? "font-size=\"10\" font-weight=\"bold\" fill=\"#1864ab\"" : "font-size=\"10\" font-weight=\"bold\" fill=\"#495057\"");
      }
      for (int c = k.first; c <= k.last; ++c) {
        map_column const& it = m_.columns[static_cast<std::size_t>(c)];
        char const* const colour = colour_of(it.what);
        add("<text transform=\"translate(%.1f %.1f) rotate(-52)\" font-size=\"10.5\" fill=\"%s\">", x_of(c) + 2, panels_.front().top - 8.0, colour ? colour : "#212529");
        out_ += escaped(it.label) + "</text>\n";
      }
    }
    for (map_bracket const& b : m_.brackets) {
      double const x0 = x_of(b.first) - step / 2.0 + 2, x1 = x_of(b.last) + step / 2.0 - 2, y = brackets_at_ + 18 * (depth_ - 1 - b.depth);
      add("<path d=\"M%.1f %.1fv5H%.1fv-5\" fill=\"none\" stroke=\"#868e96\"/>\n", x0, y, x1);
      text(x0 + 4, y + 15, b.name, "font-size=\"10\" fill=\"#495057\"");
    }
  }

  // -- legend ------------------------------------------------------------------------------------------------------------------

  /// One line of the legend for each thing that is in the picture.
  void legend() {
    std::set<char> letters;
    std::set<map_column::kind> kinds;
    bool several = false, tasks = false, lines = false, growth = false, slack = false, padding = false, turns = false, bars = !m_.bars.empty();
    for (map_column const& c : m_.columns) {
      kinds.insert(c.what);
      lines = lines || g_[c.node].line > 0;
      for (map_column::touch const& t : c.touches) letters.insert(t.letter), several = several || t.slots.size() > 1;
    }
    for (map_block const& k : m_.blocks) tasks = tasks || k.task >= 0;
    for (map_memory const& m : m_.memories) {
      growth = growth || !m.growth.empty();
      padding = padding || !m.padding.empty();
      for (map_storage const& s : m.storages) slack = slack || s.slack > 0, turns = turns || s.lanes > 1;
    }
    double const top = height_;
    std::size_t const at = out_.size();
    double x = 18, y = top + 20;
    auto mark = [&](double width, std::string const& what, auto draw_it) {
      if (x > 18 && x + width + 5.75 * static_cast<double>(length(what)) > width_ - 20) x = 18, y += 19;
      draw_it();
      text(x + width, y, what);
      x += width + 14 + 5.75 * static_cast<double>(length(what));
    };
    auto circle = [&](char c, bool full, char const* what) {
      if (letters.contains(c)) mark(18, what, [&] { letter(x + 7, y - 4, c, full, false, "#495057"); });
    };
    circle('W', true, "written");
    circle('C', true, "a copy into it starts");
    circle('R', false, "read");
    circle('S', false, "a copy out of it starts");
    if (several) mark(20, "one of these slots: which one, the pass decides", [&] { add("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"8\" fill=\"none\" stroke=\"#495057\" stroke-dasharray=\"2.2 1.9\"/>\n", x + 8, y - 4); });
    auto line = [&](map_column::kind k, char const* what) {
      if (kinds.contains(k)) mark(22, what, [&] { add("<path d=\"M%.1f %.1fh16\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"5 3\"/>\n", x, y - 4, colour_of(k)); });
    };
    line(map_column::kind::wait, tasks ? "waits at a barrier (\u2190 for whom)" : "waits at a barrier");
    line(map_column::kind::arrive, tasks ? "signals a barrier (\u2192 who waits there)" : "signals a barrier");
    line(map_column::kind::copies, "waits for copies");
    line(map_column::kind::sync, "sync: everybody meets");
    line(map_column::kind::fence, "fence");
    auto row = [&] {
      if (x > 18) x = 18, y += 19;
    };
    row();
    auto swatch = [&](char const* fill, char const* stroke, double shift) { box(x + shift, y - 10, 14, 12, fill, stroke, "rx=\"3\""); };
    if (bars) mark(22, "a buffer in use: from first to last statement (of a copy, to its wait), or until another takes its bytes", [&] { swatch(detail::buffer_colour(0), stroke_of(0), 0); });
    if (turns)
      mark(36, "two colours at one height take turns in the same bytes", [&] {
        swatch(detail::buffer_colour(1), stroke_of(1), 0);
        swatch(detail::buffer_colour(2), stroke_of(2), 15);
      });
    if (growth) mark(22, "growth: the buffers beside it need more", [&] { swatch("url(#hatch)", "#ced4da", 0); });
    if (slack) mark(22, "slack: more than they need, as the author asked", [&] { swatch("url(#hatch)", "#ced4da", 0); });
    row();
    auto say = [&](bool when, char const* what) {
      if (when) mark(0, what, [] {});
    };
    say(tasks, "Tasks run at the same time, each in its own order; what one leaves in a buffer, another finds behind a barrier.");
    say(lines, "Behind a colon: source lines.");
    say(padding, "Padding: the next thing is aligned.");
    say(true, "Heights are to scale, but thin ones are enlarged.");
    std::string const entries = out_.substr(at);
    out_.resize(at);
    box(8, top, width_ - 16, y + 10 - top, "#f8f9fa", "#dee2e6", "rx=\"4\"");
    out_ += entries;
    height_ = static_cast<int>(y) + 18;
  }

  graph_view const& g_;
  map_model m_;
  std::vector<panel> panels_;
  std::vector<double> column_x_;
  std::string out_;
  int lane_ = 0, left_ = 0, left_end_ = 0, width_ = 0, height_ = 0, labels_ = 0, depth_ = 0, brackets_at_ = 0;
  bool wide_ = false;
};

} // namespace

std::string memory_map(graph_view const& g) { return picture(g).run(); }

} // namespace kiln::tool
