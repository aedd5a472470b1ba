// Drawings: well formed, complete, and safe for any text in names.
#include "random_graph.hpp"
#include "sample_kernels.hpp"

#include <kiln/graph/draw.hpp>
#include <kiln/graph/text.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

using namespace kiln;

namespace {

int count(std::string const& s, std::string const& part) {
  int n = 0;
  for (std::size_t at = s.find(part); at != std::string::npos; at = s.find(part, at + part.size())) ++n;
  return n;
}

/// Elements nest and attribute values are quoted: enough XML for a renderer to accept it.
std::string xml_fault(std::string const& s) {
  std::vector<std::string> open;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '&' && s.substr(i, 4) != "&lt;" && s.substr(i, 4) != "&gt;" && s.substr(i, 5) != "&amp;" && s.substr(i, 6) != "&quot;") return "a bare & at " + std::to_string(i);
    if (s[i] != '<') continue;
    std::size_t const end = s.find('>', i);
    if (end == std::string::npos) return "an element is not closed";
    std::string const tag = s.substr(i + 1, end - i - 1);
    if (tag.find('<') != std::string::npos || count(tag, "\"") % 2) return "bad element " + tag;
    std::string const name = tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != name) return "unexpected end of " + name;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    i = end;
  }
  return open.empty() ? "" : open.back() + " is not closed";
}

void check(graph_view const& g) {
  std::string const svg = to_svg(g), dot = to_dot(g);
  EXPECT_EQ(xml_fault(svg), "") << svg.substr(0, 400);
  int rows = 0, regions = 0;
  for (int i = 0; i < g.size(); ++i) {
    rows += g[i].code != op::constant && g[i].code != op::param;
    regions += has(g[i].code, trait::opens);
  }
  // A bold name per operation and one in the title.
  EXPECT_EQ(count(svg, "font-weight=\"bold\""), rows + 1);
  EXPECT_EQ(count(svg, "stroke=\"#adb5bd\""), regions);
  EXPECT_EQ(count(dot, "subgraph cluster_"), regions);
  EXPECT_EQ(count(dot, "{\n"), count(dot, "}\n"));
}

TEST(drawing, samples) {
  for (graph_view g : kiln_test::sample_graphs()) check(g);
  std::string const svg = to_svg(kiln_test::ring.graph());
  EXPECT_NE(svg.find("as : f16[64,32] x 3, 12288 bytes"), std::string::npos);
  EXPECT_NE(svg.find("line "), std::string::npos);
}

TEST(drawing, random_graphs_and_hostile_names) {
  for (std::uint64_t i = 0; i < 50; ++i) {
    graph g = std::move(kiln_test::random_graph(i).graph);
    g.name = "a<b>&\"c\"\n\x01";
    check(g);
  }
  check(parse_graphs("kernel \"nothing\" {\n}\n").at(0));
}

} // namespace
