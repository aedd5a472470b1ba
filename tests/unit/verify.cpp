// The structure and type verifier on hand-made graphs, capacity, and the 32-bit products of addresses.
#include <kiln/kernel.hpp>

#include "run_time_recording.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

using namespace kiln;
using kiln_test::run_time_recording;

namespace {

std::string verdict(recorder const& r) {
  diagnostic const d = verify(r.view());
  return {d.text, static_cast<std::size_t>(d.length)};
}
bool starts(std::string const& text, std::string const& part) { return text.substr(0, part.size()) == part; }

/// A recorder with two f32 and two i32 scalars, nodes 0..3.
struct scalars : run_time_recording {
  scalars() {
    value<f32>();
    value<f32>();
    value<i32>();
    value<i32>();
  }
  int put(op code, dtype t, std::initializer_list<std::int32_t> operands, std::initializer_list<std::int64_t> attributes = {}, node_kind kind = node_kind::value) {
    return r.push(code, {t, kind, 0}, operands, attributes, site{});
  }
};

TEST(verify, a_correct_graph) {
  scalars s;
  s.put(op::add, dtype::f32, {0, 1});
  s.put(op::lt, dtype::b1, {2, 3});
  EXPECT_EQ(verdict(s.r), "");
}

TEST(verify, fields_outside_the_tables) {
  scalars s;
  s.r.nodes[s.put(op::add, dtype::f32, {0, 1})].shape = 99;
  EXPECT_TRUE(starts(verdict(s.r), "kiln[G-01] add: a field is outside")) << verdict(s.r);
}

TEST(verify, numbers_of_operands) {
  scalars s;
  s.put(op::add, dtype::f32, {0});
  EXPECT_EQ(verdict(s.r), "kiln[G-02] add: 1 operands where 2 are needed");
  scalars late;
  late.put(op::add, dtype::f32, {0, 7});
  EXPECT_EQ(verdict(late.r), "kiln[G-02] add: operand 1 is not an earlier node");
  scalars absent;
  absent.put(op::add, dtype::f32, {0, -1});
  EXPECT_EQ(verdict(absent.r), "kiln[G-02] add: operand 1 is absent");
}

TEST(verify, types_of_operands_and_results) {
  scalars s;
  s.put(op::add, dtype::f32, {0, 2});
  EXPECT_EQ(verdict(s.r), "kiln[G-03] add: operand 1 is i32, needed is the first operand's type");
  scalars result;
  result.put(op::lt, dtype::f32, {0, 1});
  EXPECT_EQ(verdict(result.r), "kiln[G-04] lt: the result is f32, needed is b1");
  scalars accepts;
  accepts.put(op::bit_and, dtype::f32, {0, 1});
  EXPECT_TRUE(starts(verdict(accepts.r), "kiln[G-03] bit_and: operand 0 is f32")) << verdict(accepts.r);
}

TEST(verify, regions) {
  scalars s;
  s.put(op::for_end, dtype::b1, {}, {0}, node_kind::none);
  EXPECT_TRUE(starts(verdict(s.r), "kiln[G-05] for_end")) << verdict(s.r);
  scalars open;
  open.put(op::while_begin, dtype::b1, {}, {5, 6}, node_kind::none);
  EXPECT_TRUE(starts(verdict(open.r), "kiln[G-05] while_begin")) << verdict(open.r);
  scalars crossed; // a loop that ends inside a conditional
  int const c = crossed.put(op::lt, dtype::b1, {2, 3});
  int const loop = crossed.put(op::for_begin, dtype::i32, {2, 3, 3}, {7});
  int const branch = crossed.put(op::if_begin, dtype::b1, {c}, {-1, 8}, node_kind::none);
  crossed.put(op::for_end, dtype::b1, {}, {loop}, node_kind::none);
  crossed.put(op::if_end, dtype::b1, {}, {branch}, node_kind::none);
  EXPECT_TRUE(starts(verdict(crossed.r), "kiln[G-05] for_end")) << verdict(crossed.r);
}

TEST(verify, attributes) {
  scalars s;
  s.put(op::program_id, dtype::i32, {}, {3});
  EXPECT_EQ(verdict(s.r), "kiln[G-06] program_id: attribute 0 is 3, valid 0..2");
  for (std::int64_t pin : {4, 5}) { // 4: as the third version of wmma reads it
    scalars t;
    auto const tile = t.k.zeros<f32, 16, 16>();
    t.r.push(op::require_layout, {dtype::f32, node_kind::value, t.r.nodes[tile.node_].shape}, {tile.node_}, {pin, 71421013, 50195}, site{});
    EXPECT_EQ(verdict(t.r), pin == 4 ? "" : "kiln[G-06] require_layout: attribute 0 is 5, valid 0..4");
  }
}

TEST(verify, values_of_one_branch_in_the_other) {
  run_time_recording t;
  auto n = t.value<i32>();
  int made = -1;
  t.k.when(
      n > 0, [&] { made = (n + 1).node_; },
      [&] { t.r.push(op::neg, {dtype::i32, node_kind::value, 0}, {made}, {}, site{}); });
  EXPECT_TRUE(starts(verdict(t.r), "kiln[K-10] a value made")) << verdict(t.r);
}

TEST(verify, the_condition_of_a_loop_is_seen_in_its_body) {
  run_time_recording t;
  auto n = t.value<i32>();
  auto v = t.k.var(n);
  int made = -1;
  t.k.loop_while(
      [&] {
        auto c = v > 0;
        made = c.node_;
        return c;
      },
      [&] {
        v -= 1;
        t.r.push(op::bit_not, {dtype::b1, node_kind::value, 0}, {made}, {}, site{});
      });
  EXPECT_EQ(verdict(t.r), "");
}

TEST(verify, an_index_that_varies) {
  run_time_recording t;
  auto a = t.k.local_alloc<f32, 64>(2);
  auto i = t.k.arange<64>();
  t.r.push(op::view_index, {dtype::f32, node_kind::view, t.r.nodes[a.node_].shape}, {a.node_, i.node_}, {}, site{});
  EXPECT_EQ(verdict(t.r), "kiln[R-UN01] view_index: the index varies within the CTA; it must be one integer for all");
}

TEST(verify, a_store_through_const_behind_arithmetic) {
  run_time_recording t;
  auto p = t.pointer<const f32>();
  auto q = p + t.k.arange<64>() + 5;
  auto x = load(q);
  t.r.push(op::store, {}, {q.node_, x.node_, -1}, {0, 0}, site{});
  EXPECT_TRUE(starts(verdict(t.r), "kiln[T-14] store")) << verdict(t.r);
}

TEST(capacity, placement_and_tensor_memory) {
  run_time_recording t;
  t.k.local_alloc<f16, 50>(3);                                                 // 100 bytes a slot, 128 apart
  t.k.local_alloc<f32, 8>(2, {.align = 512});                                  // from 512, 512 apart
  t.k.alloc_shared<f32, 16>({.scope = scope::shared_static});
  local_placement const p = place_local(t.graph());
  EXPECT_EQ(p.dynamic_bytes, 512 + 2 * 512);
  EXPECT_EQ(p.static_bytes, 128);
  EXPECT_TRUE(check_capacity(t.graph(), targets::gfx942).ok());
  t.k.local_alloc<f32, 128, 128>(1, {.storage = storage::tmem, .name = "acc"});
  for (char const* name : {"sm_80", "sm_90a", "gfx90a", "gfx942", "gfx950", "gfx1250"})
    EXPECT_EQ(std::string(check_capacity(t.graph(), target::parse(name)).text), std::string("kiln[R-CP05] acc: ") + name + " has no tensor memory; use storage::smem");
  EXPECT_TRUE(check_capacity(t.graph(), targets::sm_100a).ok());
}

TEST(narrow_addresses, products_of_32_bits) {
  run_time_recording t;
  auto p = t.pointer<f32>();
  auto rows = t.value<i32>(), columns = t.value<i32>();
  auto row = t.k.program_id(0);
  store(p + row * columns, 1.f);               // may exceed 32 bits
  store(p + cast<i64>(row) * columns, 1.f);    // cannot
  store(p + (row & 15) * 1000, 1.f);           // cannot
  auto elsewhere = rows * columns;             // is no address
  store(p, cast<f32>(elsewhere));
  auto found = [&](std::vector<std::int64_t> const& slots, dims grid) {
    std::vector<int> nodes;
    known_sizes const known{slots, grid};
    narrow_addresses(t.graph(), [&](narrow_address const& a) { nodes.push_back(a.node); }, slots.empty() ? nullptr : &known);
    return nodes;
  };
  ASSERT_EQ(found({}, {}).size(), 1u);
  EXPECT_EQ(t.graph()[found({}, {})[0]].code, op::mul);
  EXPECT_TRUE(found({0, 1000, 1000}, {1000, 1, 1}).empty());
  { // an index from memory counts as small when the sizes are known
    run_time_recording u;
    auto q = u.pointer<f32>();
    auto indices = u.pointer<const i32>();
    auto pitch = u.value<i32>();
    store(q + load(indices) * pitch, 1.f);
    int n = 0;
    std::vector<std::int64_t> const slots{0, 0, 1000};
    known_sizes const known{slots, {1, 1, 1}};
    narrow_addresses(u.graph(), [&](narrow_address const&) { ++n; }, &known);
    EXPECT_EQ(n, 0);
    narrow_addresses(u.graph(), [&](narrow_address const&) { ++n; });
    EXPECT_EQ(n, 1);
  }
  EXPECT_EQ(found({0, 100000, 100000}, {100000, 1, 1}).size(), 1u);
}

} // namespace
