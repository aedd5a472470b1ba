// Random graphs on a GPU against the interpreter, and one small graph for every operation on every type. What the GPU
// lowering refuses with R-TG01 is counted, not compared.
#include "device_runner.hpp"
#include "order_graphs.hpp"
#include "product_graphs.hpp"
#include "storage_graphs.hpp"
#include "test_seed.hpp"

#include <kiln/graph/text.hpp>
#include <kiln/target/compile_error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace {

using namespace kiln_test;
using kiln::dtype;
using kiln::op;

constexpr std::int64_t ulps = 8; // exp, sin and their kin differ within their tolerance

int scaled(int count) {
  char const* factor = std::getenv("KILN_TEST_FACTOR");
  return factor ? static_cast<int>(count * std::atof(factor)) + 1 : count;
}

class GpuGraphs : public testing::Test {
protected:
  void SetUp() override {
    dev = kiln::device::best();
    if (dev.is_host()) GTEST_SKIP() << "no GPU here";
    setenv("KILN_CACHE", "off", 1);
  }
  /// Empty when all is well or the operation is refused.
  std::string differences(generated const& g, bool specialise) {
    try {
      ++ran;
      return compare(g, device_runner(dev, specialise), {.seed = g.seed, .ulps = ulps});
    } catch (kiln::compile_error const& e) {
      if (std::string(e.what()).find("R-TG01") == std::string::npos) return e.what();
      ++refused;
      return "";
    } catch (std::exception const& e) {
      return e.what();
    }
  }
  void agree(int graphs, std::uint64_t salt, generator_options const& options) {
    int bad = 0;
    for (int i = 0; i < graphs && bad < 5; ++i) {
      generated const g = random_graph(seed() * 1000003 + salt + static_cast<std::uint64_t>(i), options);
      std::string const d = differences(g, i % 2);
      bad += !d.empty();
      EXPECT_EQ(d, "") << "seed " << g.seed << "\n" << kiln::print(g.graph).substr(0, 6000);
    }
    std::printf("%d graphs, %d refused\n", ran, refused);
  }
  void products(dtype t) {
    for (product_form const& f : product_forms()) {
      if (f.type != t) continue;
      EXPECT_EQ(differences(product_graph(f, seed() + 1), ran % 3 != 0), "") << f.text();
    }
    std::printf("%d graphs, %d refused\n", ran, refused);
  }
  kiln::device dev;
  int ran = 0, refused = 0;
};

TEST_F(GpuGraphs, EveryOperationOnEveryType) {
  for (int o = 0; o < kiln::op_count; ++o)
    for (int t = 0; t < kiln::dtype_count; ++t) {
      if (!accepts(static_cast<op>(o), static_cast<dtype>(t)) || static_cast<op>(o) == op::device_print) continue;
      generated const g = single(static_cast<op>(o), static_cast<dtype>(t), seed() + 1);
      EXPECT_EQ(differences(g, o % 2), "") << name_of(static_cast<op>(o)) << " " << name_of(static_cast<dtype>(t)) << "\n" << kiln::print(g.graph).substr(0, 3000);
    }
  std::printf("%d graphs, %d refused\n", ran, refused);
}
TEST_F(GpuGraphs, Order) {
  std::vector<order_form> const forms = order_forms();
  auto const every = static_cast<std::size_t>(std::max(1, 100 / std::max(1, scaled(100)))); // fewer under a sanitizer
  for (std::size_t i = seed() % every; i < forms.size(); i += every)
    EXPECT_EQ(differences(order_graph(forms[i], seed() + i), ran % 3 != 0), "") << forms[i].text();
  std::printf("%d graphs, %d refused\n", ran, refused);
}
// Every one of these compiles: a refusal is a failure.
TEST_F(GpuGraphs, Storage) {
  for (storage_case const& c : storage_cases(dev.target().warp_size))
    for (bool specialise : {false, true}) EXPECT_EQ(differences(c.g, specialise), "") << c.name;
  EXPECT_EQ(refused, 0);
  std::printf("%d graphs, %d refused\n", ran, refused);
}
TEST_F(GpuGraphs, ProductsF16) { products(dtype::f16); }
TEST_F(GpuGraphs, ProductsBf16) { products(dtype::bf16); }
TEST_F(GpuGraphs, ProductsTf32) { products(dtype::f32); }
TEST_F(GpuGraphs, ProductsF64) { products(dtype::f64); }
TEST_F(GpuGraphs, ProductsI8) { products(dtype::i8); }
TEST_F(GpuGraphs, ProductsE4m3) { products(dtype::f8e4m3); }
TEST_F(GpuGraphs, ProductsE5m2) { products(dtype::f8e5m2); }
TEST_F(GpuGraphs, Short) { agree(scaled(60), 700000, {.steps = 6, .max_elements = 4096}); }
TEST_F(GpuGraphs, PowersOfTwo) { agree(scaled(40), 600000, {.powers_of_two = true}); }
TEST_F(GpuGraphs, StraightLine) { agree(scaled(40), 900000, {.control = false, .local = false, .atomics = false}); }
TEST_F(GpuGraphs, Any) { agree(scaled(60), 0, {}); }

} // namespace
