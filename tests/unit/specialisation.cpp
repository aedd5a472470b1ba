// What code is made for: facts about arguments, constant and generic ones, the limit, and what KILN_LOG says about it. And
// what is read from the log of NVIDIA's assembler.
#include <kiln/kiln.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "jit/compile.hpp"
#include "src/runtime/assembler_log.hpp"
#include "temporary_directory.hpp"

using namespace kiln;

namespace {

// Read once, at the first compile.
[[maybe_unused]] int const log_on = setenv("KILN_LOG", "compile", 1);
[[maybe_unused]] int const no_cache = setenv("KILN_CACHE", "off", 1);

// A kernel of its own for each test, since what was compiled stays.
template <int Test> inline constexpr auto fill_to = kernel<"fill_to", Test>([](context& k, ptr<f32> x, val<i64> n, val<f32> v) {
  auto i = k.program_id<i64>(0) * 64 + k.arange<64>();
  store(x + i, k.full<f32, 64>(Test) + v, {.mask = i < n});
});
inline constexpr auto rows = kernel<"rows">([](context& k, array<const f32, 2> x, array<f32, 2> y) {
  store(y.region(at(k.program_id(0), 0), extent<1, 64>), load(x.region(at(k.program_id(0), 0), extent<1, 64>)));
});

std::string told(auto&& launch) {
  testing::internal::CaptureStderr();
  launch();
  std::fflush(stderr);
  return testing::internal::GetCapturedStderr();
}
bool says(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }

} // namespace

TEST(specialisation, equal_facts_share_code_and_the_log_names_what_differs) {
  device dev = device::host();
  buffer<f32> x(dev, 4096);
  auto launch = [&](auto&& p, auto n, auto v) {
    return told([&] { fill_to<1>.launch(dev, grid(64), p, n, v); });
  };
  EXPECT_TRUE(says(launch(x, 1000, 1.f), "kernel 'fill_to' on host: compiled in "));
  EXPECT_EQ(launch(x, 1001, 2.f), "") << "the same facts";
  EXPECT_TRUE(says(launch(x, 1008, 1.f), ", because argument 1 (val<i64>) is divisible by 16, was not divisible by 16\n"));
  EXPECT_EQ(launch(x, 4096, 1.f), "");
  EXPECT_TRUE(says(launch(x, 1, 1.f), "argument 1 (val<i64>) is 1, was "));
  EXPECT_TRUE(says(launch(x.data() + 1, 1001, 1.f), ", because argument 0 (ptr<f32>) is not 16-byte aligned, was 16-byte aligned\n"));
  EXPECT_TRUE(says(launch(x, constant(i64{77}), 1.f), "argument 1 (val<i64>) is constant 77, was "));
  EXPECT_TRUE(says(launch(x, 1001, constant(2.5f)), "argument 2 (val<f32>) is constant bits 1075838976, was any value\n"));
  EXPECT_TRUE(says(launch(x, generic(i64{5}), 1.f), "argument 1 (val<i64>) is any value, was "));
  EXPECT_EQ(fill_to<1>.info(dev).variants, 7);
  for (i64 n : {i64{1}, i64{16}, i64{17}, i64{4096}, i64{0}}) EXPECT_EQ(launch(x, generic(n), 1.f), "") << n;
  EXPECT_EQ(fill_to<1>.info(dev, x, 1000, 1.f).variants, 7);
  x.fill(0);
  launch(x, constant(i64{77}), 1.f);
  auto v = x.to_vector();
  EXPECT_EQ(v[76], 2.f);
  EXPECT_EQ(v[77], 0.f);
}

TEST(specialisation, extents_and_strides_are_named) {
  device dev = device::host();
  buffer<f32> x(dev, 64 * 64), y(dev, 64 * 64);
  auto launch = [&](auto const& a, auto const& b) {
    return told([&] { rows.launch(dev, grid(3), a, b); });
  };
  launch(x.view(64, 64), y.view(64, 64));
  EXPECT_TRUE(says(launch(x.view(63, 64), y.view(64, 64)),
                   "argument 0 (array<const f32, 2>) is 16-byte aligned, extents {not divisible by 16, divisible by 16}, strides {divisible by "
                   "16, 1}, was 16-byte aligned, extents {divisible by 16, divisible by 16}, strides {divisible by 16, 1}\n"));
  EXPECT_TRUE(says(launch(strided(x, {64, 64}, {0, 1}), y.view(64, 64)), "strides {0, 1}, was"));
  EXPECT_EQ(launch(generic(x.view(10, 3)), generic(y.view(10, 3))).empty(), false);
  EXPECT_EQ(launch(generic(x.view(16, 16)), generic(y.view(5, 7))), "");
  EXPECT_TRUE(says(launch(constant(x.view(3, 64)), y.view(64, 64)), "extents {3, 64}, strides {64, 1}, was"));
}

TEST(specialisation, too_many_variants_end_specialising_with_a_warning) {
  device dev = device::host();
  buffer<f32> x(dev, 4096);
  std::string warnings;
  for (i64 n = 2; n < 80; ++n) {
    std::string const text = told([&] { fill_to<2>.launch(dev, grid(2), x, constant(n), 0.f); });
    if (auto at = text.find("kiln: warning"); at != std::string::npos) warnings += text.substr(at);
  }
  EXPECT_EQ(warnings, "kiln: warning: kernel 'fill_to' has been compiled for 64 different sets of arguments on host; from now on integers are not "
                      "specialised on. Pass those that vary as generic(x); KILN_LOG=compile names them\n");
  int const before = fill_to<2>.info(dev).variants;
  EXPECT_EQ(before, 78) << "constants were asked for";
  for (i64 n : {i64{5}, i64{16}, i64{1}, i64{0}, i64{1000}}) {
    x.fill(0);
    told([&] { fill_to<2>.launch(dev, grid(64), x, n, 0.f); });
    auto v = x.to_vector();
    for (i64 i = 0; i < 1008; ++i) ASSERT_EQ(v[static_cast<std::size_t>(i)], i < n ? 2.f : 0.f) << n << " " << i;
  }
  EXPECT_EQ(fill_to<2>.info(dev).variants, before + 1) << "one for all integers";
  EXPECT_TRUE(says(told([&] { fill_to<2>.launch(dev, grid(1), x.data() + 1, 7, 0.f); }), "not 16-byte aligned"));
  EXPECT_EQ(fill_to<2>.info(dev).variants, before + 2) << "what is known of addresses stays";
}

TEST(specialisation, info_needs_code) {
  static constexpr auto never = kernel<"never">([](context& k, ptr<f32> x) { store(x + k.arange<64>(), k.full<f32, 64>(1)); });
  try {
    never.info(device::host());
    FAIL();
  } catch (error const& e) {
    EXPECT_STREQ(e.what(), "kernel 'never' has no code for host yet: launch or prepare it first, or ask info(device, arguments...)");
  }
}

TEST(assembler_log, figures_and_warnings) {
  auto r = detail::read_assembler_log("ptxas info    : 11 bytes gmem\n"
                                      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
                                      "ptxas info    : Function properties for k\n"
                                      "    104 bytes stack frame, 92 bytes spill stores, 96 bytes spill loads\n"
                                      "ptxas info    : Used 168 registers, used 2 barriers, 104 bytes cumulative stack size\n"
                                      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to x\n"
                                      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum registers\n"
                                      "ptxas /tmp/x.ptx, line 9; warning : something else\n");
  EXPECT_TRUE(r.known);
  EXPECT_EQ(r.registers, 168);
  EXPECT_EQ(r.stack_bytes, 104);
  EXPECT_EQ(r.spill_store_bytes, 92);
  EXPECT_EQ(r.spill_load_bytes, 96);
  ASSERT_EQ(r.warnings.size(), 4u);
  EXPECT_EQ(r.warnings[0], "registers spill: 92 bytes stored and 96 loaded by each thread; use smaller tiles or more warps");
  EXPECT_TRUE(says(r.warnings[1], "C7510"));
  EXPECT_TRUE(says(r.warnings[2], "C7508"));
  auto none = detail::read_assembler_log("");
  EXPECT_FALSE(none.known);
  EXPECT_TRUE(none.warnings.empty());
  auto quiet = detail::read_assembler_log("ptxas info    : Used 10 registers\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads");
  EXPECT_TRUE(quiet.known);
  EXPECT_TRUE(quiet.warnings.empty());
}

// The words of the assembler that is installed, so that a new version's do not go unread.
TEST(assembler_log, reads_this_machines_assembler) {
  std::string const ptxas = std::system("ptxas --version >/dev/null 2>&1") == 0               ? "ptxas"
                            : std::system("/usr/local/cuda/bin/ptxas --version >/dev/null 2>&1") == 0 ? "/usr/local/cuda/bin/ptxas"
                                                                                              : "";
  if (ptxas.empty()) GTEST_SKIP() << "no ptxas here";
  test::temporary_directory folder;
  graph_view const g = fill_to<1>.graph();
  std::ofstream(folder / "k.ptx") << jit::emit(g, specialisation::generic(g), targets::sm_90a, jit::emit_kind::object);
  std::string const command = ptxas + " -v -arch=sm_90a " + (folder / "k.ptx") + " -o " + (folder / "k.cubin") + " 2>&1";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string log;
  for (char buffer[512]; std::fgets(buffer, sizeof buffer, pipe.get()) != nullptr;) log += buffer;
  auto r = detail::read_assembler_log(log);
  EXPECT_TRUE(r.known) << log;
  EXPECT_GT(r.registers, 0) << log;
  EXPECT_LT(r.registers, 64) << log;
  EXPECT_EQ(r.spill_store_bytes, 0) << log;
  EXPECT_TRUE(r.warnings.empty()) << log;
}
