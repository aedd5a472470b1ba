// The capability records: limits, parsing, and use in constant expressions.
#include <kiln/target/target.hpp>

#include <gtest/gtest.h>
#include <set>
#include <string>

namespace {

using kiln::target;
namespace targets = kiln::targets;

template <target T> constexpr std::uint32_t shared_of = T.shared_bytes; // a target can be a template argument

static_assert(target::parse("gfx942") == targets::gfx942);
static_assert(target::parse("sm_90a").has_wgmma() && !target::parse("sm_80").has_wgmma());
static_assert(shared_of<targets::sm_80> == 166912 && shared_of<targets::sm_90a> == 232448);
static_assert(shared_of<targets::gfx950> == 163840 && shared_of<targets::gfx1250> == 327680);
static_assert(targets::sm_100a.tensor_columns == 512 && targets::sm_90a.tensor_columns == 0);
static_assert(targets::gfx90a.warp_size == 64 && targets::gfx1100.warp_size == 32 && targets::gfx1250.warp_size == 32);
static_assert(targets::sm_80.has_cp_async && !targets::sm_80.has_bulk_copy && !targets::sm_80.has_clusters());
static_assert(targets::gfx942.has_direct_to_lds && !targets::gfx1100.has_direct_to_lds);

TEST(target, every_name_parses_to_itself_and_names_are_distinct) {
  std::set<std::string> names;
  for (const target& t : targets::all) {
    EXPECT_EQ(target::parse(t.name()), t);
    EXPECT_TRUE(names.insert(std::string(t.name())).second) << t.name();
    EXPECT_LE(t.static_shared_bytes, t.shared_bytes) << t.name();
    EXPECT_TRUE(t.warp_size == 32 || t.warp_size == 64) << t.name();
    EXPECT_EQ(t.max_threads, 1024) << t.name();
    EXPECT_LE(t.cluster_max, t.cluster_max_opt_in) << t.name();
  }
  EXPECT_EQ(names.size(), 10u);
}

TEST(target, an_unknown_name_lists_the_known_ones) {
  try {
    (void)target::parse("sm_75");
    FAIL() << "sm_75 was accepted";
  } catch (const std::invalid_argument& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("'sm_75'"), std::string::npos) << text;
    for (const target& t : targets::all) EXPECT_NE(text.find(t.name()), std::string::npos) << text;
  }
  EXPECT_THROW((void)target::parse(""), std::invalid_argument);
  EXPECT_THROW((void)target::parse("gfx94"), std::invalid_argument);
  EXPECT_THROW((void)target::parse("gfx9420"), std::invalid_argument);
}

} // namespace
