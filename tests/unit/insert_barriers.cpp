// Barrier insertion on lists of accesses, without any code generation: what needs one, what does not, and where it
// goes.
#include "jit/passes/insert_barriers.hpp"

#include <algorithm>
#include <bit>
#include <gtest/gtest.h>
#include <random>
#include <string>

namespace {

using kiln::jit::byte_range;
using kiln::jit::bytes_of_box;
using kiln::jit::insert_barriers;
using kiln::jit::local_event;
using kiln::jit::overlap;
using kiln::jit::ring_slot;
using kind = local_event::kind;

local_event access(kind k, std::uint32_t begin, std::uint32_t end, ring_slot slot = {}) {
  local_event e{.what = k, .slot = slot};
  e.bytes = {{begin, end}};
  return e;
}
local_event read(std::uint32_t begin, std::uint32_t end) { return access(kind::read, begin, end); }
local_event write(std::uint32_t begin, std::uint32_t end) { return access(kind::write, begin, end); }
local_event mark(kind k) { return {.what = k}; }
local_event loop(int symbol = -1, int step = 0) {
  local_event e{.what = kind::loop_begin};
  e.symbol = symbol, e.step = step;
  return e;
}
local_event wait(bool all) {
  local_event e{.what = kind::async_wait};
  e.drains = all;
  return e;
}

/// The events that get a barrier, as a list of their numbers.
std::vector<int> barriers(std::vector<local_event> const& events) {
  std::vector<bool> const before = insert_barriers(events);
  std::vector<int> r;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i]) r.push_back(static_cast<int>(i));
  return r;
}
using list = std::vector<int>;

TEST(insert_barriers, orders_conflicting_accesses_and_no_others) {
  EXPECT_EQ(barriers({write(0, 64), read(0, 64)}), list({1}));
  EXPECT_EQ(barriers({read(0, 64), write(0, 64)}), list({1}));
  EXPECT_EQ(barriers({write(0, 64), write(32, 96)}), list({1}));
  EXPECT_EQ(barriers({read(0, 64), read(0, 64)}), list{});
  EXPECT_EQ(barriers({write(0, 64), read(64, 128)}), list{});
  EXPECT_EQ(barriers({write(0, 1), read(1, 9)}), list{}); // elements of different sizes side by side
  EXPECT_EQ(barriers({write(0, 4), read(3, 5)}), list({1}));
}

TEST(insert_barriers, one_barrier_serves_all_that_came_before) {
  EXPECT_EQ(barriers({write(0, 64), write(64, 128), read(0, 64), read(64, 128)}), list({2}));
  EXPECT_EQ(barriers({write(0, 64), read(0, 64), write(64, 128), read(64, 128), write(0, 64)}), list({1, 3}));
}

TEST(insert_barriers, the_author_s_barrier_counts) {
  EXPECT_EQ(barriers({write(0, 64), mark(kind::barrier), read(0, 64)}), list{});
  EXPECT_EQ(barriers({write(0, 64), mark(kind::barrier), read(0, 64), write(0, 64)}), list({3}));
}

TEST(insert_barriers, looks_around_back_edges) {
  // Read at the end of one pass, written at the start of the next.
  EXPECT_EQ(barriers({loop(), mark(kind::loop_exit), write(0, 64), read(0, 64), mark(kind::loop_end)}), list({2, 3}));
  // Only the back edge makes a conflict.
  EXPECT_EQ(
      barriers({loop(), mark(kind::loop_exit), read(0, 64), mark(kind::barrier), write(0, 64), mark(kind::loop_end)}),
      list({2}));
  // A store before the loop, a load in it: once is enough, but every pass has the barrier.
  EXPECT_EQ(barriers({write(0, 64), loop(), mark(kind::loop_exit), read(0, 64), mark(kind::loop_end)}), list({3}));
  // Nested: what the inner loop leaves behind meets the outer loop's next pass.
  EXPECT_EQ(barriers({loop(), mark(kind::loop_exit), write(0, 64), loop(), mark(kind::loop_exit), mark(kind::loop_end),
                      mark(kind::loop_end), read(0, 64)}),
            list({2, 7}));
}

TEST(insert_barriers, zero_trips_leave_what_came_before) {
  // The loop may not run, so the barrier inside it does not serve what follows.
  EXPECT_EQ(
      barriers({write(0, 64), loop(), mark(kind::loop_exit), mark(kind::barrier), mark(kind::loop_end), read(0, 64)}),
      list({5}));
  // The condition of a while loop runs at least once.
  EXPECT_EQ(
      barriers({write(0, 64), loop(), mark(kind::barrier), mark(kind::loop_exit), mark(kind::loop_end), read(0, 64)}),
      list{});
}

TEST(insert_barriers, joins_branches) {
  auto const b = mark(kind::branch_begin), e = mark(kind::branch_else), end = mark(kind::branch_end);
  EXPECT_EQ(barriers({b, write(0, 64), end, read(0, 64)}), list({3}));
  EXPECT_EQ(barriers({b, write(0, 64), e, write(64, 128), end, read(64, 128)}), list({5}));
  EXPECT_EQ(barriers({b, write(0, 64), e, read(0, 64), end}), list{}); // never both
  EXPECT_EQ(barriers({write(0, 64), b, mark(kind::barrier), e, end, read(0, 64)}), list({5}));
  EXPECT_EQ(barriers({write(0, 64), b, mark(kind::barrier), e, mark(kind::barrier), end, read(0, 64)}), list{});
  EXPECT_EQ(barriers({write(0, 64), b, read(0, 64), end}), list({2})); // inside the branch, not in front of it
}

TEST(insert_barriers, a_wait_is_followed_by_a_barrier_before_the_first_use) {
  auto const copy = access(kind::async_write, 0, 64);
  EXPECT_EQ(barriers({copy, wait(true), read(0, 64)}), list({2}));
  EXPECT_EQ(barriers({copy, mark(kind::barrier), wait(true), read(0, 64)}), list({3})); // too early
  EXPECT_EQ(barriers({copy, wait(true), read(64, 128)}), list{});
  EXPECT_EQ(barriers({read(0, 64), copy}), list({1})); // the copy may land at once
  EXPECT_EQ(barriers({copy, wait(true), mark(kind::barrier), read(0, 64), wait(true), read(0, 64)}), list{});
  // With groups still flying every wait counts again.
  EXPECT_EQ(barriers({copy, wait(false), mark(kind::barrier), read(0, 64), wait(false), read(0, 64)}), list({5}));
}

TEST(insert_barriers, a_ring_needs_one_barrier_a_pass) {
  // for i: wait; use slot i % 3; fetch slot (i + 2) % 3. The fetch fills what the pass before has read.
  ring_slot const used{.ring = 0, .symbol = 1, .modulus = 3, .offset = 0},
      filled{.ring = 0, .symbol = 1, .modulus = 3, .offset = 2};
  EXPECT_EQ(barriers({loop(1, 1), mark(kind::loop_exit), wait(false), access(kind::read, 0, 192, used),
                      access(kind::async_write, 0, 192, filled), mark(kind::loop_end)}),
            list({3}));
  // Fetching into the slot in use needs another.
  EXPECT_EQ(barriers({loop(1, 1), mark(kind::loop_exit), wait(false), access(kind::read, 0, 192, used),
                      access(kind::async_write, 0, 192, used), mark(kind::loop_end)})
                .size(),
            2u);
  // Without knowledge of slots too.
  EXPECT_EQ(barriers({loop(), mark(kind::loop_exit), wait(false), read(0, 192), access(kind::async_write, 0, 192),
                      mark(kind::loop_end)})
                .size(),
            2u);
}

TEST(insert_barriers, writes_to_other_ctas_count_as_writes_here) {
  auto remote = [] {
    local_event e = write(0, 64);
    e.remote = true;
    return e;
  };
  EXPECT_EQ(barriers({read(0, 64), remote()}), list({1}));
  EXPECT_EQ(barriers({remote(), read(32, 96)}), list({1}));
  EXPECT_EQ(barriers({remote(), remote()}), list({1})); // by other threads, maybe
  // The same again, to the next CTA: its elements are written by the threads that wrote them before.
  EXPECT_EQ(barriers({loop(), mark(kind::loop_exit), remote(), mark(kind::loop_end)}), list{});
  EXPECT_EQ(barriers({loop(), mark(kind::loop_exit), write(0, 64), mark(kind::loop_end)}), list({2}));
  EXPECT_EQ(barriers({loop(), mark(kind::loop_exit), remote(), mark(kind::release), mark(kind::loop_end)}), list({3}));
}

TEST(insert_barriers, bytes_of_boxes) {
  using boxes = std::vector<byte_range>;
  kiln::jit::byte_axis const rows[] = {{4, 64}, {8, 4}}; // 4 rows of 8 floats, 64 bytes apart
  EXPECT_EQ(bytes_of_box(16, 4, rows), boxes({{16, 48}, {80, 112}, {144, 176}, {208, 240}}));
  kiln::jit::byte_axis const whole[] = {{4, 32}, {8, 4}};
  EXPECT_EQ(bytes_of_box(0, 4, whole), boxes({{0, 128}}));
  kiln::jit::byte_axis const columns[] = {{2, 4}, {4, 64}}; // transposed: the order of axes does not matter
  EXPECT_EQ(bytes_of_box(0, 4, columns), boxes({{0, 8}, {64, 72}, {128, 136}, {192, 200}}));
  EXPECT_FALSE(overlap(bytes_of_box(0, 4, columns), bytes_of_box(8, 4, columns)));
  EXPECT_TRUE(overlap(bytes_of_box(0, 4, columns), bytes_of_box(4, 4, columns)));
}

// Straight programs against a search over all placements of barriers: enough, and as few as possible.
TEST(insert_barriers, is_minimal_on_straight_code) {
  std::mt19937 random(11);
  for (int round = 0; round < 400; ++round) {
    std::vector<local_event> events;
    for (int i = 0; i < 9; ++i) {
      auto const begin = static_cast<std::uint32_t>(random() % 4 * 16),
                 size = static_cast<std::uint32_t>(8 + random() % 3 * 16);
      events.push_back(access(random() % 2 ? kind::read : kind::write, begin, begin + size));
    }
    auto const sufficient = [&](unsigned mask) {
      for (unsigned j = 1; j < events.size(); ++j)
        for (unsigned i = 0; i < j; ++i) {
          bool const between = (mask >> (i + 1) & ((1u << (j - i)) - 1)) != 0;
          bool const clash = (events[i].what == kind::write || events[j].what == kind::write) &&
                             overlap(events[i].bytes, events[j].bytes);
          if (clash && !between) return false;
        }
      return true;
    };
    int fewest = 99;
    for (unsigned mask = 0; mask < 1u << events.size(); ++mask)
      if (std::popcount(mask) < fewest && sufficient(mask)) fewest = std::popcount(mask);
    unsigned chosen = 0;
    for (int i : barriers(events)) chosen |= 1u << i;
    EXPECT_TRUE(sufficient(chosen)) << "round " << round;
    EXPECT_EQ(std::popcount(chosen), fewest) << "round " << round;
  }
}

// One thread tells others what all have done: all must have done it.
TEST(insert_barriers, releases_follow_what_they_release) {
  EXPECT_EQ(barriers({mark(kind::release)}), list{});
  EXPECT_EQ(barriers({write(0, 64), mark(kind::release)}), list({1}));
  EXPECT_EQ(barriers({read(0, 64), mark(kind::release)}), list({1}));
  EXPECT_EQ(barriers({mark(kind::other), mark(kind::release), mark(kind::release)}), list({1}));
  EXPECT_EQ(barriers({write(0, 64), mark(kind::barrier), mark(kind::release)}), list{});
  EXPECT_EQ(barriers({wait(true), mark(kind::release)}), list({1}));
  // Around a loop: what the pass before did.
  EXPECT_EQ(barriers({loop(), mark(kind::loop_exit), mark(kind::release), read(0, 4), mark(kind::loop_end)}), list({2}));
  EXPECT_EQ(barriers({mark(kind::branch_begin), read(0, 4), mark(kind::branch_end), mark(kind::release)}), list({3}));
}

// Copies that one thread starts: fences of all before it; and the source of a copy out is free when all know that it was read.
TEST(insert_barriers, copies_that_one_thread_starts) {
  auto bulk = [](kind k, std::uint32_t begin, std::uint32_t end) {
    local_event e = access(k, begin, end);
    e.bulk = true;
    return e;
  };
  EXPECT_EQ(barriers({write(0, 64), mark(kind::fence), bulk(kind::async_read, 0, 64)}), list({2}));
  EXPECT_EQ(barriers({write(0, 64), mark(kind::barrier), mark(kind::fence), bulk(kind::async_read, 0, 64)}), list({3}));
  EXPECT_EQ(barriers({mark(kind::fence), mark(kind::barrier), bulk(kind::async_read, 0, 64)}), list{});
  EXPECT_EQ(barriers({bulk(kind::async_read, 0, 64), mark(kind::barrier), mark(kind::store_wait), write(0, 64)}), list({3}));
  EXPECT_EQ(barriers({bulk(kind::async_read, 0, 64), mark(kind::store_wait), read(0, 64)}), list{});
  EXPECT_EQ(barriers({read(0, 64), bulk(kind::async_write, 0, 64)}), list({1}));
  EXPECT_EQ(barriers({bulk(kind::async_write, 0, 64), read(0, 64)}), list{}); // a barrier in memory stands between
}

} // namespace
