// The disk cache under compiles: many processes and threads at once, damage, other programs' litter. Each child process is
// this program again, with a folder to share.
#include <kiln/kiln.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cache/disk_cache.hpp"
#include "src/runtime/compiler_interface.hpp"
#include "temporary_directory.hpp"
#include "test_seed.hpp"

using namespace kiln;
namespace fs = std::filesystem;

namespace {

template <int V> inline constexpr auto add_number = kernel<"add_number", V>([](context& k, ptr<i32> x, val<i32> n) {
  auto i = k.program_id(0) * 32 + k.arange<32>();
  store(x + i, load(x + i, {.mask = i < n}) + V, {.mask = i < n});
});
constexpr int kernels = 4, lengths = 2; // so many different images

/// Launches every kernel with every constant, in an order of the thread's own. False when a result is wrong.
bool all_right(unsigned order) {
  device dev = device::host();
  bool good = true;
  auto one = [&]<int V>(std::integral_constant<int, V>, i32 n) {
    std::vector<i32> values(64, 5);
    buffer<i32> x(dev, values);
    add_number<V>.launch(dev, grid(2), x, constant(n));
    auto result = x.to_vector();
    for (i32 i = 0; i < 64; ++i) good &= result[static_cast<std::size_t>(i)] == (i < n ? 5 + V : 5);
  };
  for (unsigned i = 0; i < kernels * lengths; ++i) {
    unsigned const which = (i + order) % (kernels * lengths);
    i32 const n = which / kernels ? 37 : 11;
    switch (which % kernels) {
    case 0: one(std::integral_constant<int, 0>{}, n); break;
    case 1: one(std::integral_constant<int, 1>{}, n); break;
    case 2: one(std::integral_constant<int, 2>{}, n); break;
    default: one(std::integral_constant<int, 3>{}, n);
    }
  }
  return good;
}

pid_t start_child(std::string const& folder, std::string const& expect) {
  pid_t const id = fork();
  if (id != 0) return id;
  setenv("KILN_CACHE", "on", 1);
  setenv("KILN_CACHE_DIR", folder.c_str(), 1);
  setenv("KILN_TEST_EXPECT", expect.c_str(), 1);
  if (!std::freopen("/dev/null", "w", stdout)) _exit(101);
  execl("/proc/self/exe", "test_shared_cache", "--gtest_also_run_disabled_tests", "--gtest_filter=shared_cache.DISABLED_child", nullptr);
  _exit(100);
}
int wait_for(pid_t id) {
  int status = 0;
  waitpid(id, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
std::vector<fs::path> entries(std::string const& folder) {
  std::vector<fs::path> all;
  for (auto const& e : fs::directory_iterator(folder))
    if (e.path().extension() == ".kiln") all.push_back(e.path());
  return all;
}
std::size_t litter(std::string const& folder) {
  std::size_t n = 0;
  for (auto const& e : fs::directory_iterator(folder)) n += e.path().filename().string().starts_with(".tmp-");
  return n;
}

} // namespace

// Expectations: "right" results only; "warm": nothing is compiled; "cold": everything is.
TEST(shared_cache, DISABLED_child) {
  std::string const expect = std::getenv("KILN_TEST_EXPECT");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 16; ++t) threads.emplace_back([&, t] { wrong += !all_right(t + static_cast<unsigned>(getpid())); });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  cache_stats const s = detail::process_cache().stats();
  if (expect == "warm") {
    EXPECT_EQ(s.hits, static_cast<std::uint64_t>(kernels * lengths));
    EXPECT_EQ(s.stores, 0u);
  }
  if (expect == "cold") {
    EXPECT_EQ(s.hits, 0u);
    EXPECT_EQ(s.stores, static_cast<std::uint64_t>(kernels * lengths)) << "threads share one compile of each";
  }
}

TEST(shared_cache, sixteen_processes_of_sixteen_threads) {
  test::temporary_directory folder;
  std::vector<pid_t> children;
  for (int i = 0; i < 16; ++i) children.push_back(start_child(folder / "cache", "right"));
  for (pid_t id : children) EXPECT_EQ(wait_for(id), 0);
  EXPECT_EQ(entries(folder / "cache").size(), static_cast<std::size_t>(kernels * lengths)) << "equal kernels have equal keys in every process";
  EXPECT_EQ(litter(folder / "cache"), 0u);
  EXPECT_EQ(wait_for(start_child(folder / "cache", "warm")), 0);
  EXPECT_EQ(entries(folder / "cache").size(), static_cast<std::size_t>(kernels * lengths));
}

TEST(shared_cache, damaged_entries_are_compiled_again_and_replaced) {
  test::temporary_directory folder;
  std::string const cache = folder / "cache";
  EXPECT_EQ(wait_for(start_child(cache, "cold")), 0);
  EXPECT_EQ(wait_for(start_child(cache, "warm")), 0);
  auto rewrite = [&](auto&& change) {
    for (fs::path const& p : entries(cache)) {
      std::ifstream in(p, std::ios::binary);
      std::string bytes(std::istreambuf_iterator<char>(in), {});
      change(bytes);
      std::ofstream(p, std::ios::binary) << bytes;
    }
    EXPECT_EQ(wait_for(start_child(cache, "cold")), 0);
    EXPECT_EQ(wait_for(start_child(cache, "warm")), 0) << "they were replaced";
  };
  std::mt19937 random(static_cast<unsigned>(kiln_test::seed()));
  rewrite([](std::string& b) { b.resize(b.size() / 2); });
  rewrite([](std::string& b) { b.clear(); });
  rewrite([&](std::string& b) { b[random() % b.size()] ^= static_cast<char>(1 << random() % 8); });
  rewrite([](std::string& b) { b = "somebody else's file"; });
  // Another kernel's entry under this name: complete and sound, but not what was asked for.
  auto all = entries(cache);
  std::string first, second;
  {
    std::ifstream a(all[0], std::ios::binary), b(all[1], std::ios::binary);
    first.assign(std::istreambuf_iterator<char>(a), {});
    second.assign(std::istreambuf_iterator<char>(b), {});
  }
  std::ofstream(all[0], std::ios::binary) << second;
  std::ofstream(all[1], std::ios::binary) << first;
  EXPECT_EQ(wait_for(start_child(cache, "right")), 0);
  EXPECT_EQ(wait_for(start_child(cache, "warm")), 0);
}

TEST(shared_cache, killed_processes_and_a_folder_that_is_emptied_do_no_harm) {
  test::temporary_directory folder;
  std::string const cache = folder / "cache";
  std::mt19937 random(static_cast<unsigned>(kiln_test::seed()));
  for (int round = 0; round < 6; ++round) {
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) children.push_back(start_child(cache, "right"));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 120));
    kill(children[0], SIGKILL);
    if (round % 2 && fs::exists(cache))
      for (fs::path const& p : entries(cache)) {
        std::error_code gone;
        fs::remove(p, gone);
      }
    int const first = wait_for(children[0]);
    EXPECT_TRUE(first == 0 || first == -SIGKILL) << first;
    for (int i = 1; i < 4; ++i) EXPECT_EQ(wait_for(children[static_cast<std::size_t>(i)]), 0);
  }
}
