// The disk cache under 16 threads, under 16 processes, and with writers killed at any moment.
#include "src/cache/disk_cache.hpp"
#include "temporary_directory.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace kiln;
using kiln::test::temporary_directory;

constexpr int keys = 12;

cache_options options(const temporary_directory& top, std::uint64_t max_bytes = 1 << 20) {
  cache_options o;
  o.directory = top / "cache";
  o.kiln_version = "1";
  o.llvm_version = "2";
  o.max_bytes = max_bytes;
  o.warn = [](const std::string& text) {
    std::fprintf(stderr, "unexpected warning: %s\n", text.c_str());
    std::abort();
  };
  return o;
}

cache_key key_of(int i) { return cache_key().add("i", i); }

// An image tells which key it is of, and is all of one piece: any mixture is found out.
std::string image_of(int i, int variant) {
  return std::to_string(i) + ":" +
         std::string(static_cast<std::size_t>(variant) * 997 % 60'000, static_cast<char>('a' + variant % 26));
}
bool plausible(const std::string& image, int i) {
  const std::string prefix = std::to_string(i) + ":";
  return image.starts_with(prefix) &&
         (image.size() == prefix.size() || image.find_first_not_of(image.back(), prefix.size()) == image.npos);
}

// Random reads and writes; false at the first wrong answer.
bool exercise(disk_cache& c, unsigned seed, std::chrono::milliseconds time) {
  std::mt19937 random(seed);
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    const int i = static_cast<int>(random() % keys);
    if (random() % 3 == 0) (void)c.put(key_of(i), "m", image_of(i, static_cast<int>(random() % 1000)));
    else if (const auto e = c.get(key_of(i)); e && (e->meta != "m" || !plausible(e->image, i))) return false;
  }
  return true;
}

void expect_sound(const temporary_directory& top) {
  disk_cache c(options(top));
  for (const auto& e : c.verify()) EXPECT_EQ(e.fault, "") << e.file;
  ASSERT_TRUE(c.put(key_of(1), "m", image_of(1, 1)));
  ASSERT_TRUE(c.get(key_of(1)));
}

TEST(disk_cache_stress, sixteen_threads_on_one_cache_and_on_caches_of_their_own) {
  temporary_directory top;
  disk_cache shared(options(top, 300'000)); // small: eviction runs all the time
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      if (t % 2 == 0) {
        wrong += !exercise(shared, t, std::chrono::milliseconds(400));
      } else {
        disk_cache own(options(top, 300'000));
        wrong += !exercise(own, t, std::chrono::milliseconds(400));
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(shared.stats().rejected, 0u);
  EXPECT_GT(shared.stats().hits, 0u);
  expect_sound(top);
}

TEST(disk_cache_stress, sixteen_processes) {
  temporary_directory top;
  std::vector<pid_t> children;
  for (unsigned p = 0; p < 16; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      disk_cache c(options(top, 300'000));
      _exit(exercise(c, p, std::chrono::milliseconds(400)) && c.stats().rejected == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  expect_sound(top);
}

TEST(disk_cache_stress, writers_that_are_killed_leave_nothing_broken) {
  temporary_directory top;
  std::mt19937 random(20'240);
  for (int round = 0; round < 40; ++round) {
    std::vector<pid_t> children;
    for (unsigned p = 0; p < 4; ++p) {
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        disk_cache c(options(top, 300'000));
        (void)exercise(c, p + 100 * static_cast<unsigned>(round), std::chrono::seconds(20));
        _exit(0);
      }
      children.push_back(child);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 15'000));
    for (const pid_t child : children) kill(child, SIGKILL);
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFSIGNALED(status)) << "a child ended by itself";
    }
  }
  expect_sound(top);
}

} // namespace
