// The text form: what it looks like, that it reads back exactly, and what the parser says about mistakes.
#include "graph_equal.hpp"
#include "sample_kernels.hpp"

#include <kiln/dtype/scalar.hpp>
#include <kiln/graph/save.hpp>
#include <kiln/graph/text.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace kiln;
using kiln_test::difference;
using kiln_test::sample_graphs;

namespace {

TEST(text_form, recorded_kernels_read_back_exactly) {
  for (graph_view g : sample_graphs()) {
    std::string const text = print(g);
    auto const back = parse_graphs(text, "sample.kg");
    ASSERT_EQ(back.size(), 1u);
    EXPECT_EQ(difference(g, back[0]), "") << text;
    EXPECT_EQ(print(back[0]), text);
  }
}

TEST(text_form, reads_like_the_example) {
  std::string const text = print(kiln_test::scale.graph());
  auto has = [&](std::string_view part) { EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text; };
  has("kernel \"scale\" num_warps=4 {\n");
  has("  param 0 : ptr<const f32>\n");
  has("  param 2 : val<i32>\n");
  has("%0 = param {index=0} : ptr<f32>");
  has("%3 = iota {axis=0} : i32[64]");
  has(" = constant {bits=2.0} : f32[64]");
  has("@sample_kernels.hpp:");
  has("file sample_kernels.hpp = \"");
  has("_ : f32[64]");
}

TEST(text_form, several_kernels_in_one_text) {
  std::string all;
  for (graph_view g : sample_graphs()) all += print(g) + "\n// between\n";
  auto const back = parse_graphs(all);
  ASSERT_EQ(back.size(), sample_graphs().size());
  for (std::size_t i = 0; i < back.size(); ++i) EXPECT_EQ(difference(sample_graphs()[i], back[i]), "");
  EXPECT_TRUE(parse_graphs("  // nothing\n\n").empty());
}

TEST(text_form, constants_are_readable_and_exact) {
  EXPECT_EQ(constant_text(dtype::f32, 0x40000000), "2.0");
  EXPECT_EQ(constant_text(dtype::f32, 0x3dcccccd), "0.1");
  EXPECT_EQ(constant_text(dtype::f32, 0xff800000), "-inf");
  EXPECT_EQ(constant_text(dtype::f32, 0x7fc00000), "nan");
  EXPECT_EQ(constant_text(dtype::f32, 0x7fc00001), "0x7fc00001");
  EXPECT_EQ(constant_text(dtype::f32, 1), "1e-45");
  EXPECT_EQ(constant_text(dtype::f16, 0x8000), "-0.0");
  EXPECT_EQ(constant_text(dtype::f64, 0x3fd5555555555555), "0.3333333333333333");
  EXPECT_EQ(constant_text(dtype::i8, -128), "-128");
  EXPECT_EQ(constant_text(dtype::i8, 128), "0x80"); // not how an i8 is kept, and therefore as it is
  EXPECT_EQ(constant_text(dtype::u64, -1), "18446744073709551615");
  EXPECT_EQ(constant_text(dtype::b1, 1), "true");
}

TEST(text_form, every_bit_pattern_of_the_small_types_reads_back) {
  for (dtype t : {dtype::b1, dtype::i8, dtype::u8, dtype::i16, dtype::u16, dtype::f8e4m3, dtype::f8e5m2, dtype::f16, dtype::bf16})
    for (std::int64_t raw = 0; raw < std::int64_t{1} << bits_of(t); ++raw) {
      scalar const s = scalar_from_bits(t, static_cast<u64>(raw));
      std::int64_t const bits = is_signed_int(t) ? int_of(s) : static_cast<std::int64_t>(s.bits);
      std::string const text = std::string("kernel \"c\" {\n%0 = constant {bits=") + constant_text(t, bits) + "} : " + name_of(t) + "\n}\n";
      auto const back = parse_graphs(text);
      ASSERT_EQ(back.at(0).attribute_pool.at(0), bits) << text;
    }
}

TEST(text_form, strings_keep_their_index) {
  // String 1 is used before string 0, string 2 not at all.
  std::string const text = "kernel \"s\" num_warps=4 {\n"
                           "  %0 = constant {bits=true} : b1\n"
                           "  device_assert %0 {text=#1 \"one\"}\n"
                           "  device_assert %0 {text=#0 \"zero\"}\n"
                           "  device_assert %0 {text=\"two\"}\n"
                           "}\n";
  auto const g = parse_graphs(text);
  EXPECT_EQ(g.at(0).attribute_pool, (std::vector<std::int64_t>{1, 1, 0, 2}));
  EXPECT_EQ(difference(parse_graphs(print(g[0])).at(0), g[0]), "");
}

TEST(text_form, labels_are_free_and_regions_close_by_nesting) {
  auto const g = parse_graphs("kernel \"l\" {\n"
                              "  %lo = constant {bits=0} : i32\n"
                              "  %hi = constant {bits=10} : i32   // ten\n"
                              "  %one = constant {bits=1} : i32\n"
                              "  %i = for_begin %lo, %hi, %one : i32\n"
                              "    %c = lt %i, %hi : b1\n"
                              "    if_begin %c\n"
                              "    if_else\n"
                              "    if_end\n"
                              "  for_end @\"a b.cpp\":7\n"
                              "}\n");
  graph_view v = g.at(0);
  EXPECT_EQ(v.attribute(3, 0), 8);
  EXPECT_EQ(v.attribute(8, 0), 3);
  EXPECT_EQ(v.attribute(5, 0), 6);
  EXPECT_EQ(v.attribute(5, 1), 7);
  EXPECT_EQ(v.attribute(6, 0), 5);
  EXPECT_STREQ(v.file(8), "a b.cpp");
  EXPECT_EQ(v[8].line, 7);
  EXPECT_EQ(difference(parse_graphs(print(v)).at(0), v), "");
}

TEST(text_form, a_file_name_that_two_folders_share_stays_two_files) {
  auto const g = parse_graphs("kernel \"f\" {\n  sync @\"a/k.cpp\":1\n  sync @\"b/k.cpp\":2\n  sync @\"k.cpp\":3\n}\n");
  std::string const text = print(g.at(0));
  EXPECT_NE(text.find("file k.cpp.2 = \"b/k.cpp\""), std::string::npos) << text;
  EXPECT_EQ(difference(parse_graphs(text).at(0), g[0]), "") << text;
}

TEST(text_form, comments_and_positions_are_options) {
  print_options o;
  o.positions = false;
  o.comment = [](int i) { return i == 3 ? std::string("a remark") : std::string(); };
  std::string const text = print(kiln_test::scale.graph(), o);
  EXPECT_EQ(text.find('@'), std::string::npos);
  EXPECT_NE(text.find("// a remark"), std::string::npos);
  EXPECT_EQ(parse_graphs(text).at(0).nodes.size(), kiln_test::scale.graph().nodes.size());
}

struct mistake {
  char const* text;
  char const* message;
};

TEST(text_form, mistakes_are_told_with_their_place_and_what_was_expected) {
  for (mistake m : {
           mistake{"kernal", "m.kg:1:1: expected 'kernel', found \"kernal\""},
           mistake{"kernel add", "m.kg:1:8: expected the kernel's name in quotes, found \"add\""},
           mistake{"kernel \"a\" warps=2 {", "m.kg:1:12: expected num_warps, cluster, cluster_nonportable, persistent, no_alias, contract, fast_math, verify_trip or '{', found \"warps\""},
           mistake{"kernel \"a\" num_warps=0 {", "m.kg:1:22: num_warps must be between 1 and 64"},
           mistake{"kernel \"a\" {\n", "m.kg:2:1: expected a node or '}' to close kernel \"a\", found the end of the text"},
           mistake{"kernel \"a\" {\n  %0 = plus\n}", "m.kg:2:8: expected the name of an operation, found \"plus\""},
           mistake{"kernel \"a\" {\n  %0 = neg %1 : f32\n}", "m.kg:2:12: %1 is not defined above"},
           mistake{"kernel \"a\" {\n  %0 = add : f32\n}", "m.kg:2:8: add takes 2 operands, not 0"},
           mistake{"kernel \"a\" {\n  %0 = neg _ : f32\n}", "m.kg:2:8: operand 0 of neg cannot be absent"},
           mistake{"kernel \"a\" {\n  %0 = iota : i32[4]\n}", "m.kg:2:13: iota needs the attribute axis"},
           mistake{"kernel \"a\" {\n  %0 = iota {axis=0, size=4} : i32[4]\n}", "m.kg:2:27: iota has no attribute size"},
           mistake{"kernel \"a\" {\n  %0 = iota {axis=0, axis=1} : i32[4]\n}", "m.kg:2:22: attribute axis is given twice"},
           mistake{"kernel \"a\" {\n  %0 = constant {bits=300} : u8\n}", "m.kg:2:23: expected a number of type u8, found \"300\""},
           mistake{"kernel \"a\" {\n  %0 = constant {bits=1e39} : f32\n}", "m.kg:2:23: expected a number that f32 can hold, found \"1e39\""},
           mistake{"kernel \"a\" {\n  %0 = constant {bits=60000.0} : f8e5m2\n}", "m.kg:2:23: expected a number that f8e5m2 can hold, found \"60000.0\""},
           mistake{"kernel \"a\" {\n  %0 = constant {bits=inf} : f8e4m3\n}", "m.kg:2:23: expected a finite number (f8e4m3 has no infinity), found \"inf\""},
           mistake{"kernel \"a\" {\n  %0 = constant {bits=1} : f99\n}", "m.kg:2:28: expected a type: an element type, ptr<T>, array<T>, region<T>, buffers<T>, view<T>, cell<T>, token, barriers or barrier, found \"f99\""},
           mistake{"kernel \"a\" {\n  %0 = constant {bits=1} : i32[0]\n}", "m.kg:2:32: an extent must be between 1 and 2147483647"},
           mistake{"kernel \"a\" {\n  %0 = constant {bits=1} : i32[2147483647,1024]\n}", "m.kg:2:31: a shape of more than 2^40 elements"},
           mistake{"kernel \"a\" {\n  %0 = constant {bits=1} : i32\n  %0 = constant {bits=1} : i32\n}", "m.kg:3:3: a second node with label %0"},
           mistake{"kernel \"a\" {\n  for_end\n}", "m.kg:2:3: for_end without for_begin"},
           mistake{"kernel \"a\" {\n  while_begin\n  while_end\n}", "m.kg:3:3: while_end: the loop has no while_test"},
           mistake{"kernel \"a\" {\n  while_begin\n}", "m.kg:2:3: while_begin is not closed by while_end"},
           mistake{"kernel \"a\" {\n  while_begin\n  if_end\n}", "m.kg:3:3: if_end inside the region of while_begin, which is not closed yet"},
           mistake{"kernel \"a\" {\n  param 1 : val<i32>\n}", "m.kg:2:9: parameters are numbered in order; this one is 0"},
           mistake{"kernel \"a\" {\n  param 0 : val<i32>\n}", "m.kg:1:1: no node `param {index=0}` for parameter 0"},
           mistake{"kernel \"a\" {\n  %0 = param {index=0} : i32\n}", "m.kg:2:3: parameter 0 is not declared; there are 0"},
           mistake{"kernel \"a\" {\n  buffer 0 \"x : f32[4]\n}", "m.kg:2:12: the string is not closed on its line"},
           mistake{"kernel \"a\" {\n  sync sync\n}", "m.kg:2:8: expected the end of the line after the node, found \"sync\""},
           mistake{"kernel \"a\" {\n  sync @x\n}", "m.kg:2:10: expected ':' and a line after the file, found the end of the line"},
           mistake{"kernel \"a\" {\n}\n}", "m.kg:3:1: expected 'kernel', found \"}\""},
       }) {
    try {
      parse_graphs(m.text, "m.kg");
      ADD_FAILURE() << "accepted: " << m.text;
    } catch (text_error const& e) {
      EXPECT_STREQ(e.what(), m.message) << m.text;
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    }
  }
}

struct in_a_folder : testing::Test {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("kiln_text_" + std::to_string(getpid()));
  void SetUp() override { std::filesystem::create_directory(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
};

TEST_F(in_a_folder, graphs_are_saved_whole_and_load_again) {
  std::string const path = folder / "x.kg";
  kiln_test::ring.save(path);
  save_graph(kiln_test::assorted.graph(), path); // replaces
  auto const back = load_graphs(path);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(difference(back[0], kiln_test::assorted.graph()), "");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "something else was left";
  EXPECT_THROW(save_graph(back[0], (folder / "no" / "x.kg").string()), std::runtime_error);
  EXPECT_THROW(load_graphs((folder / "none.kg").string()), std::runtime_error);
}

TEST_F(in_a_folder, graphs_are_dumped_where_the_environment_says) {
  dump_graph(kiln_test::ring.graph());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  setenv("KILN_DUMP_GRAPHS", folder.c_str(), 1);
  dump_graph(kiln_test::ring.graph());
  dump_graph(kiln_test::ring.graph());
  dump_graph(kiln_test::assorted.graph()); // has a name that is no file name
  unsetenv("KILN_DUMP_GRAPHS");
  int files = 0;
  for (auto const& entry : std::filesystem::directory_iterator(folder)) {
    ++files;
    EXPECT_EQ(entry.path().extension(), ".kg");
    EXPECT_EQ(load_graphs(entry.path()).size(), 1u);
  }
  EXPECT_EQ(files, 2);
}

} // namespace
