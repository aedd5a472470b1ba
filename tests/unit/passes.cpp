// Graph passes by example: text in, pass, text out. Labels and positions do not count.
#include "sample_kernels.hpp"

#include <kiln/graph/hash.hpp>
#include <kiln/graph/text.hpp>
#include <kiln/validate/verify.hpp>
#include <src/graph/passes/dce.hpp>
#include <src/graph/passes/fold.hpp>
#include <src/graph/passes/passes.hpp>
#include <src/graph/passes/strip_debug.hpp>

#include <gtest/gtest.h>

using namespace kiln;

namespace {

// Parameters that the examples use: %x, %y integers, %f a float, %b a b1, %p a pointer, %t a tile of i32, %u one of u32.
constexpr char const* head = "kernel \"k\" num_warps=4 {\n"
                             "  param 0 : val<i32>\n  param 1 : val<i32>\n  param 2 : val<f32>\n  param 3 : val<b1>\n"
                             "  param 4 : ptr<i32>\n  param 5 : ptr<f32>\n  param 6 : ptr<u32>\n  param 7 : array<i32, 1>\n"
                             "  %x = param {index=0} : i32\n  %y = param {index=1} : i32\n  %f = param {index=2} : f32\n  %b = param {index=3} : b1\n"
                             "  %p = param {index=4} : ptr<i32>\n  %q = param {index=5} : ptr<f32>\n  %r = param {index=6} : ptr<u32>\n  %a = param {index=7} : array<i32>\n";

graph parse(std::string const& body) {
  graph g = std::move(parse_graphs(head + body + "}\n", "example").at(0));
  diagnostic const d = verify(g);
  EXPECT_TRUE(d.ok()) << d.text << "\n" << body;
  return g;
}

std::string run(std::string const& body, std::vector<std::string_view> names, pass_options const& options = {}) {
  graph const g = run_passes(parse(body), names, options);
  diagnostic const d = verify(g);
  EXPECT_TRUE(d.ok()) << d.text << "\n" << print(g);
  return print(g);
}
std::string plain(std::string const& body) { return print(parse(body)); }

/// fold, cse and dce turn one body into another.
void becomes(std::string const& before, std::string const& after) {
  EXPECT_EQ(run(before, {"fold", "cse", "dce"}), plain(after)) << before;
}
void stays(std::string const& body) { becomes(body, body); }

/// A store of %v, so that it is used.
std::string stored(std::string const& lines, char const* pointer = "%p") { return lines + "  store " + pointer + ", %v, _\n"; }

TEST(fold, integer_constants) {
  becomes(stored("  %1 = constant {bits=2} : i32\n  %2 = constant {bits=3} : i32\n  %v = mul %1, %2 : i32\n"), stored("  %v = constant {bits=6} : i32\n"));
  becomes(stored("  %1 = constant {bits=-7} : i32\n  %2 = constant {bits=2} : i32\n  %v = div %1, %2 : i32\n"), stored("  %v = constant {bits=-3} : i32\n"));
  becomes(stored("  %1 = constant {bits=2147483647} : i32\n  %2 = constant {bits=1} : i32\n  %v = add %1, %2 : i32\n"), stored("  %v = constant {bits=-2147483648} : i32\n"));
  becomes(stored("  %1 = constant {bits=5} : i32\n  %2 = constant {bits=0} : i32\n  %v = div %1, %2 : i32\n"), stored("  %v = constant {bits=-1} : i32\n"));
  becomes(stored("  %1 = constant {bits=1} : i32\n  %2 = constant {bits=40} : i32\n  %v = shl %1, %2 : i32\n"), stored("  %v = constant {bits=0} : i32\n"));
}

TEST(fold, floats_where_the_bits_are_fixed_and_only_there) {
  becomes(stored("  %1 = constant {bits=0.1} : f32\n  %2 = constant {bits=0.2} : f32\n  %v = add %1, %2 : f32\n", "%q"), stored("  %v = constant {bits=0.3} : f32\n", "%q"));
  becomes(stored("  %1 = constant {bits=2.0} : f32\n  %v = sqrt %1 : f32\n", "%q"), stored("  %v = constant {bits=1.4142135} : f32\n", "%q"));
  stays(stored("  %1 = constant {bits=0.0} : f32\n  %v = exp %1 : f32\n", "%q"));
  stays(stored("  %1 = constant {bits=1.0} : f32\n  %v = mul %f, %1 : f32\n", "%q"));
  stays(stored("  %1 = constant {bits=0.0} : f32\n  %v = add %f, %1 : f32\n", "%q"));
  stays(stored("  %v = sub %f, %f : f32\n", "%q"));
  stays(stored("  %1 = constant {bits=0.0} : f32\n  %v = mul %f, %1 : f32\n", "%q"));
  becomes(stored("  %1 = neg %f : f32\n  %v = neg %1 : f32\n", "%q"), "  store %q, %f, _\n");
  // A constant goes to the right.
  becomes(stored("  %1 = constant {bits=2.0} : f32\n  %v = mul %1, %f : f32\n", "%q"), stored("  %1 = constant {bits=2.0} : f32\n  %v = mul %f, %1 : f32\n", "%q"));
}

TEST(fold, identities_of_integers) {
  auto gives_x = [](char const* op, char const* k) {
    becomes(stored(std::string("  %1 = constant {bits=") + k + "} : i32\n  %v = " + op + " %x, %1 : i32\n"), "  store %p, %x, _\n");
  };
  gives_x("add", "0"); gives_x("sub", "0"); gives_x("mul", "1"); gives_x("div", "1"); gives_x("bit_or", "0"); gives_x("bit_xor", "0");
  gives_x("bit_and", "-1"); gives_x("shl", "0"); gives_x("shr", "0");
  becomes(stored("  %1 = constant {bits=0} : i32\n  %v = mul %1, %x : i32\n"), stored("  %v = constant {bits=0} : i32\n"));
  becomes(stored("  %v = sub %x, %x : i32\n"), stored("  %v = constant {bits=0} : i32\n"));
  becomes(stored("  %1 = constant {bits=3} : i32\n  %2 = constant {bits=4} : i32\n  %3 = add %x, %1 : i32\n  %v = add %2, %3 : i32\n"),
          stored("  %1 = constant {bits=7} : i32\n  %v = add %x, %1 : i32\n"));
  becomes(stored("  %1 = constant {bits=8} : u32\n  %2 = cast %x : u32\n  %v = div %2, %1 : u32\n", "%r"),
          stored("  %2 = cast %x : u32\n  %1 = constant {bits=3} : u32\n  %v = shr %2, %1 : u32\n", "%r"));
  stays(stored("  %1 = constant {bits=8} : i32\n  %v = div %x, %1 : i32\n")); // of a negative number it rounds up
  becomes(stored("  %1 = cast %x : i64\n  %v = cast %1 : i32\n"), "  store %p, %x, _\n");
  stays(stored("  %1 = cast %x : i16\n  %v = cast %1 : i32\n"));
}

TEST(fold, choices_and_shapes) {
  becomes(stored("  %v = where %b, %x, %x : i32\n"), "  store %p, %x, _\n");
  becomes(stored("  %1 = constant {bits=true} : b1\n  %v = where %1, %x, %y : i32\n"), "  store %p, %x, _\n");
  becomes(stored("  %1 = bit_not %b : b1\n  %v = where %1, %x, %y : i32\n"), stored("  %v = where %b, %y, %x : i32\n"));
  std::string const wide = "  %1 = broadcast %p : ptr<i32>[4,8]\n  store %1, %v, _\n";
  becomes("  %0 = broadcast %x : i32[8]\n  %v = broadcast %0 : i32[4,8]\n" + wide, "  %v = broadcast %x : i32[4,8]\n" + wide);
  becomes("  %0 = iota {axis=0} : i32[4,8]\n  %2 = trans %0 {dims=[1,0]} : i32[8,4]\n  %v = trans %2 {dims=[1,0]} : i32[4,8]\n" + wide, "  %v = iota {axis=0} : i32[4,8]\n" + wide);
  becomes("  %0 = constant {bits=3} : i32\n  %v = broadcast %0 : i32[4,8]\n" + wide, "  %v = constant {bits=3} : i32[4,8]\n" + wide);
  becomes(stored("  %0 = join %x, %y : i32[2]\n  %v = split %0 {index=1} : i32\n"), "  store %p, %y, _\n");
  becomes(stored("  %0 = constant {bits=3} : i32[5,2]\n  %v = reduce %0 {op=sum, axis=-1} : i32\n"), stored("  %v = constant {bits=30} : i32\n"));
}

TEST(fold, masks_that_are_constant) {
  std::string const yes = "  %m = constant {bits=true} : b1\n", no = "  %m = constant {bits=false} : b1\n";
  becomes(stored(yes + "  %v = load %p, %m, %x : i32\n"), stored("  %v = load %p, _, _ : i32\n"));
  becomes(stored(no + "  %v = load %p, %m, %x : i32\n"), "  store %p, %x, _\n");
  becomes(stored(no + "  %v = load %p, %m, _ : i32\n"), stored("  %v = constant {bits=0} : i32\n"));
  becomes(yes + "  store %p, %x, %m\n", "  store %p, %x, _\n");
  becomes(no + "  store %p, %x, %m\n", "");
  becomes(no + "  %v = atomic_rmw %p, %x, %m {op=add, order=relaxed, scope=gpu} : i32\n  store %p, %v, _\n", stored("  %v = constant {bits=0} : i32\n"));
  becomes(yes + "  device_assert %m {text=\"holds\"}\n", "");
}

TEST(fold, branches_and_loops_that_are_decided) {
  std::string const yes = "  %m = constant {bits=true} : b1\n", no = "  %m = constant {bits=false} : b1\n";
  std::string const both = "  if_begin %m\n    store %p, %x, _\n  if_else\n    store %p, %y, _\n  if_end\n", one = "  if_begin %m\n    store %p, %x, _\n  if_end\n";
  becomes(yes + both, "  store %p, %x, _\n");
  becomes(no + both, "  store %p, %y, _\n");
  becomes(yes + one, "  store %p, %x, _\n");
  becomes(no + one, "");
  auto loop = [](char const* lo, char const* hi, char const* step) {
    return std::string("  %l = constant {bits=") + lo + "} : i32\n  %h = constant {bits=" + hi + "} : i32\n  %s = constant {bits=" + step +
           "} : i32\n  %i = for_begin %l, %h, %s : i32\n    store %p, %i, _\n  for_end\n";
  };
  becomes(loop("4", "4", "1"), "");
  becomes(loop("5", "4", "1"), "");
  becomes(loop("4", "5", "-1"), "");
  becomes(loop("4", "5", "1"), "  %l = constant {bits=4} : i32\n  store %p, %l, _\n");
  becomes(loop("4", "3", "-3"), "  %l = constant {bits=4} : i32\n  store %p, %l, _\n");
  becomes(loop("4", "8", "4"), "  %l = constant {bits=4} : i32\n  store %p, %l, _\n");
  stays(loop("4", "9", "3"));
}

TEST(cse, equal_nodes_in_scope) {
  becomes("  %0 = add %x, %y : i32\n  %1 = add %y, %x : i32\n  store %p, %0, _\n  store %p, %1, _\n",
          "  %0 = add %x, %y : i32\n  store %p, %0, _\n  store %p, %0, _\n");
  stays("  %0 = sub %x, %y : i32\n  %1 = sub %y, %x : i32\n  store %p, %0, _\n  store %p, %1, _\n");
  stays("  %0 = load %p, _, _ : i32\n  store %p, %x, _\n  %1 = load %p, _, _ : i32\n  store %p, %0, _\n  store %p, %1, _\n");
  // Branches do not see each other; both see what stands before.
  stays("  if_begin %b\n    %0 = add %x, %y : i32\n    store %p, %0, _\n  if_else\n    %1 = add %x, %y : i32\n    store %p, %1, _\n  if_end\n");
  becomes("  %z = add %x, %y : i32\n  store %p, %z, _\n  if_begin %b\n    %0 = add %x, %y : i32\n    store %p, %0, _\n  if_end\n",
          "  %z = add %x, %y : i32\n  store %p, %z, _\n  if_begin %b\n    store %p, %z, _\n  if_end\n");
}

TEST(dce, keeps_effects_and_what_they_need) {
  becomes("  %0 = add %x, %y : i32\n  %1 = load %p, _, _ : i32\n", "");
  stays("  %1 = load %p, _, _ {volatile=true} : i32\n");
  stays("  sync\n  assume %b\n  device_print %x {text=\"x\"}\n");
  // A var that nobody reads, with what is written to it.
  becomes("  %v = var %x : cell<i32>\n  var_set %v, %y\n", "");
  stays("  %v = var %x : cell<i32>\n  var_set %v, %y\n  %0 = var_get %v : i32\n  store %p, %0, _\n");
  // A loop with nothing left in it; one that counts.
  std::string const bounds = "  %l = constant {bits=0} : i32\n  %s = constant {bits=1} : i32\n";
  becomes(bounds + "  %i = for_begin %l, %x, %s : i32\n    %0 = add %i, %y : i32\n  for_end\n", "");
  stays(bounds + "  %v = var %l : cell<i32>\n  %i = for_begin %l, %x, %s : i32\n    %0 = var_get %v : i32\n    %1 = add %0, %y : i32\n    var_set %v, %1\n  for_end\n  %2 = var_get %v : i32\n  store %p, %2, _\n");
}

TEST(dce, local_buffers_that_nobody_reads) {
  std::string const text = "kernel \"k\" num_warps=4 {\n  param 0 : ptr<i32>\n  buffer 0 \"dead\" : i32[4] slots=1\n  buffer 1 \"live\" : i32[4] slots=1\n"
                           "  %p = param {index=0} : ptr<i32>\n  %d = alloc {buffer=0} : buffers<i32>[4]\n  %l = alloc {buffer=1} : buffers<i32>[4]\n"
                           "  %z = constant {bits=0} : i32\n  %i = iota {axis=0} : i32[4]\n"
                           "  %a = view_index %d, %z : view<i32>[4]\n  %b = view_index %l, %z : view<i32>[4]\n"
                           "  local_store %a, %i\n  local_store %b, %i\n  %v = local_load %b : i32[4]\n"
                           "  %q = broadcast %p : ptr<i32>[4]\n  %r = ptr_add %q, %i : ptr<i32>[4]\n  store %r, %v, _\n}\n";
  graph const g = remove_dead_code(parse_graphs(text).at(0));
  ASSERT_EQ(g.buffers.size(), 1u);
  graph_view const v = g;
  EXPECT_STREQ(v.string(v.buffer(0).name), "live");
  EXPECT_EQ(v[v.buffer(0).node].code, op::alloc);
  EXPECT_TRUE(verify(g).ok()) << verify(g).text;
  int stores = 0;
  for (node const& n : g.nodes) stores += n.code == op::local_store;
  EXPECT_EQ(stores, 1);
}

TEST(specialise, facts_become_constants_and_promises) {
  pass_options o;
  o.facts = specialisation::generic(parse(""));
  o.facts->params[0].scalar = {true, 64, 1};
  o.facts->params[1].scalar.divisor = 16;
  o.facts->params[4].alignment = 16;
  o.facts->params[7].extent[0] = {true, 1000, 1};
  o.facts->params[7].stride[0] = {true, 1, 1};
  o.grid = dims{1, 7, 1};
  std::string const body = "  %0 = add %x, %y : i32\n  store %p, %0, _\n  %e = extent %a {axis=0} : i64\n  %s = stride %a {axis=0} : i64\n  %g = num_programs {axis=1} : i64\n"
                           "  %w = program_id {axis=0} : i64\n  %1 = add %e, %s : i64\n  %2 = add %1, %g : i64\n  %4 = add %2, %w : i64\n  %3 = cast %4 : i32\n  store %p, %3, _\n";
  EXPECT_EQ(run(body, {standard_passes().begin(), standard_passes().end()}, o),
            plain("  %k = constant {bits=64} : i32\n  %m = multiple_of %y {value=16} : i32\n  %c = multiple_of %p {value=16} : ptr<i32>\n"
                  "  %0 = add %m, %k : i32\n  store %c, %0, _\n  %3 = constant {bits=1008} : i32\n  store %c, %3, _\n"));
  pass_options wrong;
  wrong.facts = specialisation{};
  EXPECT_THROW(run(body, {"specialise"}, wrong), std::invalid_argument);
}

TEST(decide, masks_that_are_always_true) {
  pass_options o;
  o.facts = specialisation::generic(parse(""));
  o.facts->params[0].scalar = {true, 64, 1};
  std::vector<std::string_view> const all(standard_passes().begin(), standard_passes().end());
  std::string const before = "  %i = iota {axis=0} : i32[64]\n  %n = broadcast %x : i32[64]\n  %m = lt %i, %n : b1[64]\n"
                             "  %q0 = broadcast %p : ptr<i32>[64]\n  %q1 = ptr_add %q0, %i : ptr<i32>[64]\n  store %q1, %i, %m\n";
  EXPECT_EQ(run(before, all, o), plain("  %i = iota {axis=0} : i32[64]\n  %q0 = broadcast %p : ptr<i32>[64]\n  %q1 = ptr_add %q0, %i : ptr<i32>[64]\n  store %q1, %i, _\n"));
  o.facts->params[0].scalar.value = 63;
  EXPECT_NE(run(before, all, o).find("lt "), std::string::npos);
}

TEST(decide, promises_are_used_and_kept) {
  std::string const body = "  %z = constant {bits=10} : i32\n  %c = gt %x, %z : b1\n  assume %c\n  %d = ge %x, %z : b1\n  store %p, %x, _\n"
                           "  if_begin %d\n    store %p, %y, _\n  if_end\n";
  EXPECT_EQ(run(body, {"decide", "fold", "dce"}), plain("  %z = constant {bits=10} : i32\n  %c = gt %x, %z : b1\n  assume %c\n  store %p, %x, _\n  store %p, %y, _\n"));
  // A promise inside a branch says nothing outside it.
  std::string const inside = "  %z = constant {bits=10} : i32\n  if_begin %b\n    %c = gt %x, %z : b1\n    assume %c\n  if_end\n  %d = ge %x, %z : b1\n"
                             "  if_begin %d\n    store %p, %y, _\n  if_end\n";
  EXPECT_EQ(run(inside, {"decide", "fold", "dce"}), plain(inside));
}

TEST(strip_debug, leaves_what_a_graph_means) {
  for (graph_view g : kiln_test::sample_graphs()) {
    graph const bare = strip_debug(g);
    EXPECT_EQ(semantic_hash(bare), semantic_hash(g));
    EXPECT_NE(debug_hash(bare), debug_hash(g));
    std::string const text = print(bare);
    EXPECT_EQ(text.find('@'), std::string::npos);
    EXPECT_EQ(text.find("sample"), std::string::npos);
    EXPECT_EQ(text.find("never"), std::string::npos);
  }
}

TEST(passes, are_found_by_name_and_run_in_order) {
  EXPECT_THROW(find_pass("optimise"), std::invalid_argument);
  std::vector<pass_record> records;
  graph const g = run_passes(kiln_test::assorted.graph(), standard_passes(), {}, &records);
  ASSERT_EQ(records.size(), standard_passes().size());
  EXPECT_FALSE(records[0].changed); // specialise has no facts
  EXPECT_TRUE(records[1].changed || records[2].changed);
  EXPECT_TRUE(verify(g).ok()) << verify(g).text;
  EXPECT_LT(g.nodes.size(), kiln_test::assorted.graph().nodes.size());
}

TEST(passes, samples_stay_valid_and_settle) {
  for (graph_view sample : kiln_test::sample_graphs()) {
    graph g = run_passes(sample, standard_passes());
    g = run_passes(g, standard_passes());
    EXPECT_TRUE(verify(g).ok()) << verify(g).text;
    EXPECT_EQ(print(run_passes(g, standard_passes())), print(g));
  }
}

} // namespace
