// Our own drawing. Rows from top to bottom in program order; the right margin has one vertical line per value that is used
// further down than the next row, from where it is made to its last use, with a dot at every use. Lines take the leftmost
// free lane; a value that would need a lane beyond the last one is only named by its number.
#include <kiln/graph/draw.hpp>

#include "src/graph/drawing.hpp"

#include <algorithm>
#include <cstdio>

namespace kiln {

namespace {

constexpr int row_height = 22, left = 16, indent = 18, lane_width = 9, most_lanes = 26;
constexpr double letter = 7.25; // of the 12 px monospace font
constexpr char const* line_colours[] = {"#1c7ed6", "#2f9e44", "#e8590c", "#9c36b5", "#0c8599", "#c2255c", "#5f3dc4", "#846358"};

std::string escaped(std::string_view s) {
  std::string e;
  for (char c : s) {
    if (c == '&') e += "&amp;";
    else if (c == '<') e += "&lt;";
    else if (c == '>') e += "&gt;";
    else if (c == '"') e += "&quot;";
    else if (static_cast<unsigned char>(c) < 32) e += ' ';
    else e += c;
  }
  return e;
}

struct row {
  int node;
  int depth;
  std::string head, name, tail, type, place;
  double width() const {
    return letter * static_cast<double>(head.size() + name.size() + tail.size() + (type.empty() ? 0 : type.size() + 3) + (place.empty() ? 0 : place.size() + 3)) + 24;
  }
};
struct box {
  int first, last, depth; ///< rows
};
struct lane_line {
  int value, from, to, lane;
};

class drawing {
public:
  explicit drawing(graph_view const& g) : g_(g), row_of_(g.nodes.size(), -1) {}

  std::string run() {
    collect();
    assign_lanes();
    header_height_ = 40 + 18 * static_cast<int>(std::max(g_.params.size(), g_.buffers.size()) + 1);
    for (row const& r : rows_) width_ = std::max(width_, left + indent * r.depth + static_cast<int>(r.width()));
    lanes_at_ = width_ + 14;
    int lanes = 0;
    for (lane_line const& l : lines_) lanes = std::max(lanes, l.lane + 1);
    int const total = std::max(lanes_at_ + lanes * lane_width + 20, 640), height = top(static_cast<int>(rows_.size())) + 20;
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"monospace\" font-size=\"12\">\n", total, height, total, height);
    add("<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", total, height);
    header();
    for (box const& b : boxes_) draw(b);
    for (std::size_t i = 0; i < rows_.size(); ++i) draw(static_cast<int>(i));
    for (lane_line const& l : lines_) draw(l);
    return out_ + "</svg>\n";
  }

private:
  template <class... A>
  void add(char const* format, A... a) {
    char buffer[1024];
    std::snprintf(buffer, sizeof buffer, format, a...);
    out_ += buffer;
  }
  void text(double x, double y, std::string const& s, char const* style = "") {
    add("<text x=\"%.1f\" y=\"%.1f\" xml:space=\"preserve\" %s>", x, y, style);
    out_ += escaped(s) + "</text>\n";
  }
  int top(int r) const { return header_height_ + 14 + r * row_height; }

  static std::string shortened(std::string s, std::size_t most) {
    if (s.size() > most) s = s.substr(0, most - 3) + "...";
    return s;
  }

  void collect() {
    int depth = 0;
    std::vector<int> open;
    for (int i = 0; i < g_.size(); ++i) {
      op const o = g_[i].code;
      if (detail::written_in_place(g_, i)) continue;
      bool const opens = has(o, trait::opens), divides = has(o, trait::middle), closes = has(o, trait::closes);
      row_of_[static_cast<std::size_t>(i)] = static_cast<int>(rows_.size());
      row r{i, depth - (divides || closes), {}, std::string(name_of(o)), {}, type_text(g_, i), {}};
      if (g_[i].kind != node_kind::none || o == op::combine_begin) r.head = "%" + std::to_string(i) + " ";
      for (int x : g_.operands(i)) r.tail += (r.tail.empty() ? " " : ", ") + shortened(detail::operand_text(g_, x), 24);
      if (std::string const a = detail::attributes_text(g_, i); !a.empty()) r.tail += "  {" + shortened(a, 60) + "}";
      if (g_[i].line > 0) r.place = "line " + std::to_string(g_[i].line);
      rows_.push_back(r);
      if (closes && !open.empty()) {
        boxes_.push_back({open.back(), static_cast<int>(rows_.size()) - 1, depth - 1});
        open.pop_back();
        --depth;
      }
      if (opens) {
        open.push_back(static_cast<int>(rows_.size()) - 1);
        ++depth;
      }
    }
    std::sort(boxes_.begin(), boxes_.end(), [](box const& a, box const& b) { return a.depth < b.depth; });
  }

  void assign_lanes() {
    std::vector<int> last(g_.nodes.size(), -1);
    for (row const& r : rows_)
      for (int x : g_.operands(r.node))
        if (x >= 0) last[static_cast<std::size_t>(x)] = row_of_[static_cast<std::size_t>(r.node)];
    std::vector<int> busy; // of each lane: the last row that it is taken
    for (row const& r : rows_) {
      int const from = row_of_[static_cast<std::size_t>(r.node)], to = last[static_cast<std::size_t>(r.node)];
      if (to < 0) continue;
      std::size_t lane = 0;
      while (lane < busy.size() && busy[lane] >= from) ++lane;
      if (lane == most_lanes) continue;
      if (lane == busy.size()) busy.push_back(0);
      busy[lane] = to;
      lines_.push_back({r.node, from, to, static_cast<int>(lane)});
    }
  }

  void header() {
    text(left, 24, "kernel " + std::string(g_.name), "font-size=\"16\" font-weight=\"bold\"");
    std::string about = std::to_string(g_.attrs.num_warps) + " warps, " + std::to_string(g_.size()) + " nodes";
    text(left + 10 * static_cast<double>(g_.name.size()) + 110, 24, about, "fill=\"#868e96\"");
    int y = 46;
    for (std::size_t i = 0; i < g_.params.size(); ++i, y += 18) {
      param_info const& p = g_.params[i];
      std::string const element = std::string(p.is_const ? "const " : "") + name_of(p.type);
      std::string const type = p.kind == node_kind::pointer ? "ptr<" + element + ">" : p.kind == node_kind::array ? "array<" + element + ", " + std::to_string(p.rank) + ">" : "val<" + element + ">";
      text(left, y, "arg" + std::to_string(i) + " : " + type, "fill=\"#495057\"");
    }
    y = 46;
    for (std::size_t i = 0; i < g_.buffers.size(); ++i, y += 18) {
      buffer_info const& b = g_.buffers[i];
      shape const& s = g_.shapes[static_cast<std::size_t>(b.shape)];
      std::string extents;
      for (int d = 0; d < s.rank; ++d) extents += (d ? "," : "") + std::to_string(s.extent[d]);
      std::string const bytes = std::to_string(b.slots * bytes_of(b.type, s.elements()));
      add("<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" rx=\"2\" fill=\"%s\" stroke=\"#868e96\"/>\n", left + 260, y - 11, detail::buffer_colour(static_cast<int>(i)));
      text(left + 278, y, std::string(b.name < 0 ? "buffer " + std::to_string(i) : g_.string(b.name)) + " : " + name_of(b.type) + "[" + extents + "] x " + std::to_string(b.slots) + ", " + bytes + " bytes", "fill=\"#495057\"");
    }
  }

  void draw(box const& b) {
    int const x = left + indent * b.depth - 6;
    add("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"%s\" stroke=\"#adb5bd\"/>\n", x, top(b.first) - 1, width_ - x + 2 - 4 * b.depth, (b.last - b.first + 1) * row_height, b.depth % 2 ? "#ffffff" : "#f4f6f8");
  }

  void draw(int i) {
    row const& r = rows_[static_cast<std::size_t>(i)];
    double const x = left + indent * r.depth, y = top(i);
    add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"4\" fill=\"%s\" stroke=\"#ced4da\"/>\n", x, y + 1, r.width() - 4, row_height - 4, detail::colour_of(g_, r.node));
    double at = x + 7;
    double const base = y + 15;
    auto part = [&](std::string const& s, char const* style) {
      if (!s.empty()) text(at, base, s, style);
      at += letter * static_cast<double>(s.size());
    };
    part(r.head, "fill=\"#868e96\"");
    part(r.name, "font-weight=\"bold\"");
    part(r.tail, "");
    if (!r.type.empty()) part("   " + r.type, "fill=\"#1864ab\"");
    if (!r.place.empty()) part("   " + r.place, "fill=\"#adb5bd\"");
  }

  double right_of(int i) const {
    row const& r = rows_[static_cast<std::size_t>(i)];
    return left + indent * r.depth + r.width() - 4;
  }

  void draw(lane_line const& l) {
    char const* colour = line_colours[static_cast<std::size_t>(l.value) % std::size(line_colours)];
    double const x = lanes_at_ + l.lane * lane_width, from = top(l.from) + row_height / 2.0 - 1, to = top(l.to) + row_height / 2.0 - 4;
    add("<path d=\"M%.1f %.1fH%.1fV%.1f\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.3\"/>\n", right_of(l.from), from, x, to, colour);
    for (int i = l.from + 1; i <= l.to; ++i) {
      auto const operands = g_.operands(rows_[static_cast<std::size_t>(i)].node);
      if (std::find(operands.begin(), operands.end(), l.value) == operands.end()) continue;
      double const y = top(i) + row_height / 2.0 - 4;
      add("<path d=\"M%.1f %.1fH%.1f\" fill=\"none\" stroke=\"%s\" stroke-width=\"1\" stroke-dasharray=\"2 2\"/>\n", x, y, right_of(i), colour);
      add("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.4\" fill=\"%s\"/>\n", x, y, colour);
    }
  }

  graph_view const& g_;
  std::string out_;
  std::vector<row> rows_;
  std::vector<box> boxes_;
  std::vector<lane_line> lines_;
  std::vector<int> row_of_;
  int width_ = 0, lanes_at_ = 0, header_height_ = 0;
};

} // namespace

std::string to_svg(graph_view const& g) { return drawing(g).run(); }

} // namespace kiln
