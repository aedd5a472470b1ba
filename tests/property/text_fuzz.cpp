// The parser on damaged text: it answers with a graph or a text_error, and what it accepts prints and reads back.
#include "graph_equal.hpp"
#include "sample_kernels.hpp"
#include "test_seed.hpp"

#include <kiln/graph/hash.hpp>
#include <kiln/graph/text.hpp>
#include <kiln/validate/verify.hpp>

#include <gtest/gtest.h>

using namespace kiln;

namespace {

class mutator {
public:
  explicit mutator(std::uint64_t seed) : random_(seed) {
    for (graph_view g : kiln_test::sample_graphs()) texts_.push_back(print(g));
  }

  std::string next() {
    std::string s = texts_[below(texts_.size())];
    for (std::size_t n = 1 + below(4); n > 0; --n) change(s);
    return s;
  }

private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % (n ? n : 1)); }
  std::string piece() {
    std::string const& s = texts_[below(texts_.size())];
    return s.substr(below(s.size()), below(40));
  }
  void change(std::string& s) {
    static constexpr char const* words[] = {
        "%", "_", "{", "}", "[", "]", "\"", "\\", "\n", "@", ":", "#", "=", ",", "0x", "-", "-1", "0", "1e999", "nan", "-inf",
        "99999999999999999999", "2147483647", "-9223372036854775808", "[2,2,2,2,2,2,2]", "ptr<", "token", "for_begin", "for_end\n",
        "while_test %0\n", "combine=%1", "text=#60000 \"x\"", "text=#0 \"x\"", "dims=[5,5,5,5,5,5]", "kernel \"k\" {\n", "}\n",
        "// ", "param 0 : val<b1>\n", "buffer 0 : f32[4]\n", "\xff", "\\x0", "constant {bits=true} : b1\n"};
    std::size_t const at = below(s.size());
    switch (below(7)) {
    case 0: s.insert(at, words[below(std::size(words))]); break;
    case 1: s.erase(at, 1 + below(12)); break;
    case 2: if (!s.empty()) s[at] = static_cast<char>(random_()); break;
    case 3: s.insert(at, piece()); break;
    case 4: s.resize(at); break;
    case 5: s.replace(at, below(20), words[below(std::size(words))]); break;
    default: { // a whole line moves
      std::size_t const begin = s.rfind('\n', at) + 1, end = std::min(s.find('\n', at), s.size() - 1) + 1;
      std::string const line = s.substr(begin, end - begin);
      if (below(2)) s.erase(begin, end - begin);
      std::size_t const target = s.find('\n', below(s.size() + 1));
      if (target != std::string::npos) s.insert(target + 1, line);
    }
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> texts_;
};

TEST(text_fuzz, damaged_text_is_refused_or_reads_back) {
  mutator texts(kiln_test::seed());
  int accepted = 0, refused = 0, valid = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string const text = texts.next();
    std::vector<graph> all;
    try {
      all = parse_graphs(text, "fuzz.kg");
    } catch (text_error const& e) {
      ++refused;
      ASSERT_EQ(std::string_view(e.what()).find('\n'), std::string_view::npos) << text;
      ASSERT_GE(e.line, 1);
      ASSERT_GE(e.column, 1);
      continue;
    }
    ++accepted;
    for (graph const& g : all) {
      valid += verify(g).ok(); // whatever it says, it says so
      std::string const printed = print(g);
      std::vector<graph> back;
      ASSERT_NO_THROW(back = parse_graphs(printed)) << printed;
      ASSERT_EQ(back.size(), 1u) << text;
      ASSERT_EQ(kiln_test::difference(g, back[0]), "") << printed;
      ASSERT_EQ(print(back[0]), printed);
      ASSERT_EQ(debug_hash(back[0]), debug_hash(g));
    }
  }
  // Both happen, or the mutations are too tame or too wild to test anything.
  EXPECT_GT(accepted, 300);
  EXPECT_GT(refused, 300);
  EXPECT_GT(valid, 100);
}

} // namespace
