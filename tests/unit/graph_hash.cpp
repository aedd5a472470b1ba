// Hashes of graphs: what they ignore, what changes them, and that both compilers and all builds agree on them.
#include "random_graph.hpp"
#include "sample_kernels.hpp"

#include <kiln/graph/hash.hpp>
#include <kiln/graph/text.hpp>

#include <gtest/gtest.h>

#include <set>

using namespace kiln;

namespace {

// The same constants whichever compiler recorded the kernels. They change with the kernels of sample_kernels.hpp and with
// the serialisation (whose version is to be raised then), and with nothing else.
TEST(graph_hash, is_the_same_on_every_compiler_and_build) {
  EXPECT_EQ(to_string(semantic_hash(kiln_test::scale.graph())), "61e81bcc60422a5b352c30b8b4fa47c6");
  EXPECT_EQ(to_string(semantic_hash(kiln_test::row_softmax.graph())), "fe17f2c52b71486d8b94ac5b36044e7a");
  EXPECT_EQ(to_string(semantic_hash(kiln_test::ring.graph())), "7f46f78fa40f5e15808ed610001406f6");
  EXPECT_EQ(to_string(semantic_hash(kiln_test::assorted.graph())), "a337eec794bbc779faed01ccd4db7804");
}

TEST(graph_hash, meaning_ignores_names_texts_and_positions_and_the_other_hash_does_not) {
  graph const g(kiln_test::assorted.graph());
  hash128 const meaning = semantic_hash(g), all = debug_hash(g);
  auto changed = [&](auto change) {
    graph h = g;
    change(h);
    EXPECT_EQ(semantic_hash(h), meaning);
    EXPECT_NE(debug_hash(h), all);
  };
  changed([](graph& h) { h.name = "another"; });
  changed([](graph& h) { h.nodes[9].line += 1; });
  changed([](graph& h) { h.set_string(0, "renamed"); });
  changed([](graph& h) {
    h.add_file("other.cpp");
    h.nodes[9].file = static_cast<std::uint8_t>(h.view().files.size() - 1);
  });
  // Neither sees how the tables are laid out.
  graph h = g;
  h.shapes.push_back({1, {77}});
  h.add_string("unused");
  EXPECT_EQ(semantic_hash(h), meaning);
  EXPECT_EQ(debug_hash(h), all);
}

TEST(graph_hash, every_part_of_a_graph_changes_it) {
  for (graph const& g : {graph(kiln_test::ring.graph()), graph(kiln_test::assorted.graph()), kiln_test::random_graph(3).graph}) {
    hash128 const before = semantic_hash(g);
    std::set<hash128> seen{before};
    int count = 0;
    auto differs = [&](auto change) {
      graph h = g;
      change(h);
      seen.insert(semantic_hash(h));
      ++count;
    };
    for (std::size_t i = 0; i < g.operand_pool.size(); ++i) differs([&](graph& h) { h.operand_pool[i] += 1000; });
    for (std::size_t i = 0; i < g.attribute_pool.size(); ++i) differs([&](graph& h) { h.attribute_pool[i] += 1000; });
    for (std::size_t i = 0; i < g.nodes.size(); ++i) {
      differs([&](graph& h) { h.nodes[i].type = static_cast<dtype>((static_cast<int>(h.nodes[i].type) + 1) % dtype_count); });
      differs([&](graph& h) { h.nodes[i].kind = static_cast<node_kind>((static_cast<int>(h.nodes[i].kind) + 1) % 9); });
      differs([&](graph& h) {
        h.shapes.push_back({1, {1000}});
        h.nodes[i].shape = static_cast<std::int32_t>(h.shapes.size()) - 1;
      });
    }
    for (std::size_t i = 0; i < g.params.size(); ++i) {
      differs([&](graph& h) { h.params[i].is_const = !h.params[i].is_const; });
      differs([&](graph& h) { h.params[i].rank += 1; });
      differs([&](graph& h) { h.params[i].type = static_cast<dtype>((static_cast<int>(h.params[i].type) + 1) % dtype_count); });
    }
    for (std::size_t i = 0; i < g.buffers.size(); ++i) {
      differs([&](graph& h) { h.buffers[i].slots += 1; });
      differs([&](graph& h) { h.buffers[i].alignment += 512; });
      differs([&](graph& h) { h.buffers[i].where = storage::tmem; });
      differs([&](graph& h) { h.buffers[i].placement = scope::local; });
      differs([&](graph& h) { h.buffers[i].has_slots = !h.buffers[i].has_slots; });
      differs([&](graph& h) { h.buffers[i].role = buffer_role::window; });
      differs([&](graph& h) { h.buffers[i].pun = !h.buffers[i].pun; });
      differs([&](graph& h) { h.buffers[i].phase += 1; });
      differs([&](graph& h) { h.buffers[i].place.offset += 128; });
      differs([&](graph& h) { h.buffers[i].place.stride += 128; });
      differs([&](graph& h) { h.buffers[i].place.radix[h.buffers[i].place.levels++] = {2, 128}; });
      differs([&](graph& h) { h.buffers[i].layout.mode[h.buffers[i].layout.modes++] = {4, 1}; });
      differs([&](graph& h) { h.buffers[i].layout.mode[h.buffers[i].layout.modes++] = {4, 2}; });
      differs([&](graph& h) { h.buffers[i].layout.bits = 2; });
      differs([&](graph& h) { h.buffers[i].layout.base = 2; });
      differs([&](graph& h) { h.buffers[i].layout.shift = 2; });
      differs([&](graph& h) { h.buffers[i].layout.padding[h.buffers[i].layout.paddings++] = {64, 8}; });
    }
    differs([](graph& h) { h.attrs.num_warps += 1; });
    differs([](graph& h) { h.attrs.cluster.y += 1; });
    differs([](graph& h) { h.attrs.persistent = !h.attrs.persistent; });
    differs([](graph& h) { h.attrs.no_alias = !h.attrs.no_alias; });
    differs([](graph& h) { h.attrs.contract = !h.attrs.contract; });
    differs([](graph& h) { h.attrs.fast_math = !h.attrs.fast_math; });
    differs([](graph& h) { h.attrs.verify_trip += 1; });
    EXPECT_EQ(static_cast<int>(seen.size()), count + 1) << g.name; // all differ from the graph and from each other
  }
}

TEST(graph_hash, text_keeps_both_hashes) {
  for (graph_view g : kiln_test::sample_graphs()) {
    graph const back = std::move(parse_graphs(print(g)).at(0));
    EXPECT_EQ(semantic_hash(back), semantic_hash(g));
    EXPECT_EQ(debug_hash(back), debug_hash(g));
  }
}

} // namespace
