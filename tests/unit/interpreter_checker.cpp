// The checker: every rule has a kernel that breaks it, which is reported with rule, line and numbers under all three
// completion policies, and a twin that differs in that one point and is clean.
#include "interpret.hpp"

#include <initializer_list>
#include <string>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

/// Runs under every policy; expects the rule, alone, at line `line`, with every word in the text.
void expect_fault(graph_view g, std::initializer_list<ip::host_argument> arguments, std::string const& rule, int line,
                  std::initializer_list<char const*> words, dims grid = {1}) {
  for (auto policy : all_policies) {
    ip::report const r = ip::run(g, grid, arguments, {.policy = policy});
    ASSERT_FALSE(r.clean()) << rule << " was not reported";
    for (ip::fault const& f : r.diagnostics) EXPECT_EQ(f.rule, rule) << f.text;
    ip::fault const& f = r.diagnostics[0];
    EXPECT_EQ(f.line, line) << f.text;
    EXPECT_NE(f.file.find("interpreter_checker.cpp"), std::string::npos);
    EXPECT_EQ(f.text.find("kiln[" + rule + "] "), 0u) << f.text;
    EXPECT_NE(f.text.find("interpreter_checker.cpp:" + std::to_string(line)), std::string::npos) << f.text;
    EXPECT_EQ(f.text.find('\n'), std::string::npos);
    for (char const* w : words) EXPECT_NE(f.text.find(w), std::string::npos) << "'" << w << "' is missing in: " << f.text;
  }
}
void expect_clean(graph_view g, std::initializer_list<ip::host_argument> arguments, dims grid = {1}) {
  for (auto policy : all_policies) run_clean(g, grid, arguments, {.policy = policy});
}

// -- R-BD10: outside of memory, runtime indices -------------------------------------------------------------------------------------

TEST(InterpreterChecker, LoadOutsideItsAllocation) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    auto i = k.program_id(0) * 16 + k.arange<16>();
    store(y + i, load(x + i, {.mask = i < n}));
  });
  int const line = __LINE__ - 2;
  guarded<f32> x(30), y(32);
  expect_clean(g, {x, y, kiln_test::val(30)}, {2});
  expect_fault(g, {x, y, kiln_test::val(32)}, "R-BD10", line, {"load", "parameter 0", "[14]", "byte 120", "120 B", "cta 1,0,0"}, {2});
}

TEST(InterpreterChecker, StoreOutsideItsAllocationIsNotMade) {
  auto g = record([](context& k, ptr<f32> y, kiln::val<i32> n) { store(y + k.arange<16>() - 1, 1.f, {.mask = k.arange<16>() < n && k.arange<16>() > 0}); });
  int const line = __LINE__ - 1;
  guarded<f32> y(8);
  expect_clean(g, {y, kiln_test::val(9)});
  expect_fault(g, {y, kiln_test::val(10)}, "R-BD10", line, {"store", "[9]", "byte 32"});
  EXPECT_TRUE(y.intact());
  ip::report const r = ip::run(g, {1}, {y, kiln_test::val(16)}, {.check = false}); // reported in any case
  ASSERT_EQ(r.diagnostics.size(), 1u);
  EXPECT_EQ(r.diagnostics[0].count, 7);
  EXPECT_TRUE(y.intact());
}

TEST(InterpreterChecker, EachArgumentHasItsOwnAllocation) {
  // x + 8 is y's first element; but it was reached through x.
  auto g = record([](context&, ptr<const f32> x, ptr<const f32>, ptr<f32> z, kiln::val<i64> i) { store(z, load(x + i)); });
  int const line = __LINE__ - 1;
  guarded<f32> both(16), z(1);
  ip::host_argument x = ip::pointer(both.data(), 32), y = ip::pointer(both.data() + 8, 32);
  expect_clean(g, {x, y, z, kiln_test::val(i64{7})});
  expect_fault(g, {x, y, z, kiln_test::val(i64{8})}, "R-BD10", line, {"parameter 0", "byte 32"});
  // Pointer arithmetic may leave and come back.
  auto back = record([](context&, ptr<const f32> a, ptr<f32> b) { store(b, load((a + 1000000) - 999999)); });
  expect_clean(back, {x, z});
}

TEST(InterpreterChecker, ArraysThatPromiseMoreThanTheyHave) {
  auto g = record([](context&, kiln::array<const f32, 2> x, ptr<f32> y) { store(y, reduce<sum>(load(x.region(at(0, 0), kiln::extent<4, 4>)))); });
  int const line = __LINE__ - 1;
  guarded<f32> x(16), y(1);
  expect_clean(g, {x.array({4, 4}), y});
  expect_fault(g, {ip::array(x.data(), {4, 4}, {5, 1}, x.data(), x.bytes()), y}, "R-BD10", line, {"[3,1]", "byte 64"});
  expect_fault(g, {ip::array(x.data(), {4, 4}, {-4, 1}, x.data(), x.bytes()), y}, "R-BD10", line, {"byte -16"});
}

TEST(InterpreterChecker, MisalignedAccess) {
  auto g = record([](context&, ptr<const f32> x, ptr<f32> y) { store(y, load(x)); });
  int const line = __LINE__ - 1;
  guarded<f32> x(4), y(1);
  expect_clean(g, {x, y});
  expect_fault(g, {ip::pointer(reinterpret_cast<char*>(x.data()) + 2, 8), y}, "R-BD10", line, {"misaligned"});
}

TEST(InterpreterChecker, AtomicOutsideItsAllocation) {
  auto g = record([](context&, ptr<i32> x, kiln::val<i32> i) { atomic_add(x + i, 1); });
  int const line = __LINE__ - 1;
  guarded<i32> x(4);
  expect_clean(g, {x, kiln_test::val(3)});
  expect_fault(g, {x, kiln_test::val(4)}, "R-BD10", line, {"atomic", "byte 16"});
}

TEST(InterpreterChecker, PrefetchOutsideItsAllocation) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    auto i = k.arange<8>();
    k.prefetch(x + i, {.mask = i < n});
    store(y + i, load(x + i, {.mask = i < 4}));
  });
  int const line = __LINE__ - 3;
  guarded<f32> x(4), y(8);
  expect_clean(g, {x, y, kiln_test::val(4)});
  expect_fault(g, {x, y, kiln_test::val(5)}, "R-BD10", line, {"prefetch", "parameter 0", "[4]", "byte 16"});
}

TEST(InterpreterChecker, AsyncLoadOutsideItsAllocation) {
  auto g = record([](context& k, ptr<const i32> x, ptr<i32> y, kiln::val<i32> n) {
    auto i = k.arange<8>();
    auto b = k.alloc_shared<i32, 8>();
    k.async_load(x + i, b, {.mask = i < n, .other = 0});
    k.async_load_commit_group();
    k.async_load_wait_group(0);
    store(y + i, k.local_load(b), {.mask = i < n - 1});
  });
  int const line = __LINE__ - 5;
  guarded<i32> x(4), y(8);
  expect_clean(g, {x, y, kiln_test::val(4)});
  for (auto policy : all_policies) {
    ip::report const r = ip::run(g, {1}, {x, y, kiln_test::val(5)}, {.policy = policy});
    ASSERT_TRUE(r.has("R-BD10")) << r.text();
    EXPECT_EQ(r.diagnostics[0].line, line);
  }
}

TEST(InterpreterChecker, RuntimeSlotIndex) {
  auto g = record([](context& k, ptr<i32> y, kiln::val<i32> n) {
    auto b = k.local_alloc<i32, 4>(2, {.name = "ring"});
    k.local_store(b[0], k.arange<4>());
    k.local_store(b[1], k.arange<4>());
    store(y + k.arange<4>(), k.local_load(b[n]));
  });
  int const line = __LINE__ - 2;
  guarded<i32> y(4);
  expect_clean(g, {y, kiln_test::val(1)});
  expect_fault(g, {y, kiln_test::val(5)}, "R-BD10", line, {"ring", "index 5", "valid 0..1"});
  expect_fault(g, {y, kiln_test::val(-1)}, "R-BD10", line, {"ring", "index -1"});
}

TEST(InterpreterChecker, RuntimeRowIndex) {
  auto g = record([](context& k, ptr<i32> y, kiln::val<u8> n) {
    auto b = k.alloc_shared<i32, 3, 4>();
    k.local_store(b, k.iota<1, 3, 4>());
    store(y + k.arange<4>(), k.local_load(b[n]));
  });
  int const line = __LINE__ - 2;
  guarded<i32> y(4);
  expect_clean(g, {y, kiln_test::val(u8{2})});
  expect_fault(g, {y, kiln_test::val(u8{255})}, "R-BD10", line, {"index 255", "valid 0..2"});
}

TEST(InterpreterChecker, RuntimeSlice) {
  auto g = record([](context& k, ptr<i32> y, kiln::val<i32> row) {
    auto b = k.local_alloc<i32, 8, 4>(1, {.name = "box"});
    k.local_store(b[0], k.iota<1, 8, 4>());
    store(y + k.iota<1, 2, 4>(), k.local_load(k.local_slice<2, 4>(b[0], {row, 0})));
  });
  int const line = __LINE__ - 2;
  guarded<i32> y(4);
  expect_clean(g, {y, kiln_test::val(6)});
  expect_fault(g, {y, kiln_test::val(8)}, "R-BD10", line, {"box", "offset 8", "axis 0", "valid 0..6"});
  expect_fault(g, {y, kiln_test::val(3)}, "R-BD10", line, {"box", "offset 3", "not a multiple", "2"});
}

TEST(InterpreterChecker, OffsetFromAProductThatWrapped) {
  auto g = record([](context&, ptr<const u8> x, ptr<u8> y, kiln::val<i32> row, kiln::val<i32> pitch) {
    auto offset = row * pitch;
    store(y, load(x + offset));
  });
  int const line = __LINE__ - 2;
  auto wide = record([](context&, ptr<const u8> x, ptr<u8> y, kiln::val<i32> row, kiln::val<i32> pitch) {
    store(y, load(x + cast<i64>(row) * pitch));
  });
  guarded<u8> x(1), y(1);
  // 65536 * 65536 is 0 in i32: inside the allocation, and still wrong.
  expect_clean(g, {x, y, kiln_test::val(0), kiln_test::val(1 << 16)});
  expect_fault(g, {x, y, kiln_test::val(1 << 16), kiln_test::val(1 << 16)}, "R-BD10", line, {"i32 mul", "overflowed", "i64"});
  ip::host_argument far = ip::pointer(x.data() - (i64{1} << 32), x.data(), 1);
  expect_clean(wide, {far, y, kiln_test::val(1 << 16), kiln_test::val(1 << 16)});
}

TEST(InterpreterChecker, WrappingThatIsNoOffsetIsFine) {
  // A hash wraps as it should; what is used as an offset is its remainder.
  auto g = record([](context&, ptr<const u8> x, ptr<u8> y, kiln::val<i32> a) {
    auto hash = a * 1664525 + 1013904223;
    store(y, load(x + (hash & 15)));
    store(y, load(x + abs(hash % 16)));
  });
  guarded<u8> x(16), y(1);
  expect_clean(g, {x, y, kiln_test::val(123456789)});
  // A masked-off element may be anything.
  auto masked = record([](context&, ptr<const u8> x, ptr<u8> y, kiln::val<i32> a) { store(y, load(x + a * a, {.mask = a < 4})); });
  expect_clean(masked, {x, y, kiln_test::val(1 << 16)});
}

TEST(InterpreterChecker, RegionStartThatWrapped) {
  auto g = record([](context&, kiln::array<const f32, 1> x, ptr<f32> y, kiln::val<i32> tile) {
    store(y, reduce<sum>(load(x.region(at(tile * 4096), kiln::extent<4>))));
  });
  int const line = __LINE__ - 2;
  auto wide = record([](context&, kiln::array<const f32, 1> x, ptr<f32> y, kiln::val<i32> tile) {
    store(y, reduce<sum>(load(x.region(at(cast<i64>(tile) * 4096), kiln::extent<4>))));
  });
  guarded<f32> x(4), y(1);
  expect_fault(g, {x.array({4}), y, kiln_test::val(1 << 20)}, "R-BD10", line, {"overflowed"});
  expect_clean(wide, {x.array({4}), y, kiln_test::val(1 << 20)});
}

// -- R-BD11: gather and scatter --------------------------------------------------------------------------------------------------------

TEST(InterpreterChecker, GatherIndices) {
  auto g = record([](context& k, ptr<i32> y, kiln::val<i32> add) { store(y + k.arange<4>(), gather<0>(k.arange<8>(), k.arange<4>() + add)); });
  int const line = __LINE__ - 1;
  guarded<i32> y(4);
  expect_clean(g, {y, kiln_test::val(4)});
  expect_fault(g, {y, kiln_test::val(5)}, "R-BD11", line, {"gather", "index 8", "[3]", "valid 0..7"});
  expect_fault(g, {y, kiln_test::val(-1)}, "R-BD11", line, {"index -1", "[0]"});
}

TEST(InterpreterChecker, LocalGatherAndScatterIndices) {
  auto g = record([](context& k, ptr<i32> y, kiln::val<i32> add) {
    auto b = k.local_alloc<i32, 4, 2>(1, {.name = "table"});
    k.local_store(b[0], k.iota<1, 4, 2>());
    store(y + k.iota<1, 4, 2>(), k.local_gather(b[0], k.iota<0, 4, 2>() + add));
  });
  int const line = __LINE__ - 2;
  guarded<i32> y(4);
  expect_clean(g, {y, kiln_test::val(0)});
  expect_fault(g, {y, kiln_test::val(1)}, "R-BD11", line, {"local_gather", "table", "index 4", "[3,0]", "valid 0..3"});
  auto s = record([](context& k, ptr<i32> y, kiln::val<i32> add) {
    auto b = k.local_alloc<i32, 4>(1, {.name = "bins"});
    k.local_store(b[0], k.arange<4>());
    k.local_scatter(b[0], k.arange<4>(), k.arange<4>() + add);
    store(y + k.arange<4>(), k.local_load(b[0]));
  });
  int const scatter = __LINE__ - 3;
  expect_clean(s, {y, kiln_test::val(0)});
  expect_fault(s, {y, kiln_test::val(1)}, "R-BD11", scatter, {"local_scatter", "bins", "index 4"});
}

// -- hazards of local memory --------------------------------------------------------------------------------------------------------------

TEST(InterpreterChecker, ReadBeforeTheWait) {
  auto bad = record([](context& k, ptr<const i32> x, ptr<i32> y) {
    auto i = k.arange<8>();
    auto b = k.local_alloc<i32, 8>(2, {.name = "A"});
    k.async_load(x + i, b[1]);
    k.async_load_commit_group();
    store(y + i, k.local_load(b[1]));
    k.async_load_wait_group(0);
  });
  int const line = __LINE__ - 3;
  auto good = record([](context& k, ptr<const i32> x, ptr<i32> y) {
    auto i = k.arange<8>();
    auto b = k.local_alloc<i32, 8>(2, {.name = "A"});
    k.async_load(x + i, b[1]);
    k.async_load_commit_group();
    k.async_load_wait_group(0);
    store(y + i, k.local_load(b[1]));
  });
  guarded<i32> x(8), y(8);
  expect_fault(bad, {x, y}, "R-HZ01", line, {"A[1]", ("interpreter_checker.cpp:" + std::to_string(line - 2)).c_str(), "wait_group"});
  expect_clean(good, {x, y});
}

template <int Pending>
constexpr auto ring_with_wait = [](context& k, ptr<const f16> x, ptr<f32> y, kiln::val<i32> n) {
  auto b = k.local_alloc<f16, 8, 8>(3, {.name = "as"});
  auto acc = k.var(k.zeros<f32, 8, 8>());
  auto i = k.iota<0, 8, 8>() * 8 + k.iota<1, 8, 8>();
  for (int s = 0; s < 2; ++s) {
    k.async_load(x + i + s * 64, b[s]);
    k.async_load_commit_group();
  }
  for (auto t : k.range(n)) {
    k.async_load_wait_group(Pending);
    acc = k.dot(b[t % 3], b[t % 3], acc);
    k.when(t + 2 < n, [&] { k.async_load(x + i + (t + 2) * 64, b[(t + 2) % 3]); });
    k.async_load_commit_group();
  }
  k.async_load_wait_group(0);
  store(y + i, acc);
};
constexpr int dot_line = __LINE__ - 7;

TEST(InterpreterChecker, WaitForTooFewGroups) {
  guarded<f16> x(64 * 5);
  guarded<f32> y(64);
  expect_clean(record(ring_with_wait<1>), {x, y, kiln_test::val(5)});
  expect_clean(record(ring_with_wait<0>), {x, y, kiln_test::val(5)});
  expect_fault(record(ring_with_wait<2>), {x, y, kiln_test::val(5)}, "R-HZ01", dot_line, {"as[0]"});
}

TEST(InterpreterChecker, WriteOverACopyInFlight) {
  auto bad = record([](context& k, ptr<const i32> x, ptr<i32> y) {
    auto i = k.arange<8>();
    auto b = k.alloc_shared<i32, 8>({.name = "tile"});
    k.async_load(x + i, b);
    k.async_load_commit_group();
    k.local_store(b, i);
    k.async_load_wait_group(0);
    store(y + i, k.local_load(b));
  });
  int const line = __LINE__ - 4;
  guarded<i32> x(8), y(8);
  expect_fault(bad, {x, y}, "R-HZ02", line, {"tile", "in flight"});
  auto twice = record([](context& k, ptr<const i32> x, ptr<i32> y) {
    auto i = k.arange<8>();
    auto b = k.alloc_shared<i32, 8>({.name = "tile"});
    k.async_load(x + i, b);
    k.async_load(x + i, b);
    k.async_load_commit_group();
    k.async_load_wait_group(0);
    store(y + i, k.local_load(b));
  });
  expect_fault(twice, {x, y}, "R-HZ02", __LINE__ - 5, {"tile"});
  auto scatter = record([](context& k, ptr<const i32> x, ptr<i32> y) {
    auto i = k.arange<8>();
    auto b = k.alloc_shared<i32, 8>({.name = "tile"});
    k.async_load(x + i, b);
    k.async_load_commit_group();
    k.local_scatter(b, k.arange<2>(), k.arange<2>());
    k.async_load_wait_group(0);
    store(y + i, k.local_load(b));
  });
  expect_fault(scatter, {x, y}, "R-HZ02", __LINE__ - 4, {"tile"});
  // Another slot, and another part of the same buffer, are no business of the copy.
  auto good = record([](context& k, ptr<const i32> x, ptr<i32> y) {
    auto i = k.arange<8>();
    auto b = k.local_alloc<i32, 16>(2);
    k.async_load(x + i, k.local_slice<8>(b[0], {0}));
    k.async_load_commit_group();
    k.local_store(k.local_slice<8>(b[0], {8}), i);
    k.local_store(b[1], k.arange<16>());
    store(y + i, k.local_load(k.local_slice<8>(b[0], {8})));
    k.async_load_wait_group(0);
    k.local_store(k.local_slice<8>(b[0], {0}), i);
  });
  expect_clean(good, {x, y});
}

TEST(InterpreterChecker, NeverCommittedOrNeverWaitedFor) {
  guarded<i32> x(8), y(8);
  auto uncommitted = record([](context& k, ptr<const i32> x, ptr<i32> y) {
    auto i = k.arange<8>();
    auto b = k.alloc_shared<i32, 8>();
    k.async_load(x + i, b);
    k.async_load_wait_group(0);
    store(y + i, k.local_load(b));
  });
  expect_fault(uncommitted, {x, y}, "R-HZ06", __LINE__ - 4, {"not committed", "commit_group"});
  auto unread = record([](context& k, ptr<const i32> x) { k.async_load(x + k.arange<8>(), k.alloc_shared<i32, 8>()); });
  expect_fault(unread, {x}, "R-HZ06", __LINE__ - 1, {"never committed"});
  auto unwaited = record([](context& k, ptr<const i32> x) {
    k.async_load(x + k.arange<8>(), k.alloc_shared<i32, 8>());
    k.async_load_commit_group();
  });
  expect_fault(unwaited, {x}, "R-HZ06", __LINE__ - 2, {"never waited"});
  auto good = record([](context& k, ptr<const i32> x) {
    k.async_load(x + k.arange<8>(), k.alloc_shared<i32, 8>());
    k.async_load_commit_group();
    k.async_load_wait_group(0);
    k.async_load_commit_group(); // an empty group needs no wait
  });
  expect_clean(good, {x});
}

TEST(InterpreterChecker, MaskedElementsWithoutOther) {
  constexpr auto kernel = []<bool Fill, bool ReadAll>(std::bool_constant<Fill>, std::bool_constant<ReadAll>) {
    return record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
      auto i = k.arange<128>();
      auto b = k.alloc_shared<f32, 128>({.name = "A"});
      k.local_store(b, k.full<f32, 128>(7.f));
      if constexpr (Fill) k.async_load(x + i, b, {.mask = i < n, .other = 0});
      else k.async_load(x + i, b, {.mask = i < n});
      k.async_load_commit_group();
      k.async_load_wait_group(0);
      if constexpr (ReadAll) store(y + i, k.local_load(b));
      else store(y + k.arange<64>(), k.local_load(k.local_slice<64>(b, {0})));
    });
  };
  int const line = __LINE__ - 4;
  guarded<f32> x(100), y(128);
  expect_fault(kernel(std::false_type{}, std::true_type{}), {x, y, kiln_test::val(100)}, "R-HZ12", line, {"A", ".other"});
  expect_clean(kernel(std::true_type{}, std::true_type{}), {x, y, kiln_test::val(100)});
  expect_clean(kernel(std::false_type{}, std::false_type{}), {x, y, kiln_test::val(100)}); // the unspecified part is not read
  guarded<f32> whole(128);
  expect_clean(kernel(std::false_type{}, std::true_type{}), {whole, y, kiln_test::val(128)}); // nothing is masked off
}

TEST(InterpreterChecker, RegionsWithoutOtherArePoisonOutOfBounds) {
  auto g = record([](context& k, kiln::array<const f32, 1> x, ptr<f32> y) {
    auto b = k.alloc_shared<f32, 16>({.name = "A"});
    k.async_load(x.region(at(0), kiln::extent<16>), b);
    k.async_load_commit_group();
    k.async_load_wait_group(0);
    store(y + k.arange<16>(), k.local_load(b));
  });
  int const line = __LINE__ - 2;
  guarded<f32> x(16), y(16);
  expect_clean(g, {x.array({16}), y});
  expect_fault(g, {x.array({15}), y}, "R-HZ12", line, {"A"});
}

TEST(InterpreterChecker, ReadBeforeAnyWrite) {
  auto g = record([](context& k, ptr<i32> y, kiln::val<i32> slot) {
    auto b = k.local_alloc<i32, 8>(2, {.name = "scratch"});
    k.local_store(b[1], k.arange<8>());
    store(y + k.arange<8>(), k.local_load(b[slot]));
  });
  int const line = __LINE__ - 2;
  guarded<i32> y(8);
  expect_clean(g, {y, kiln_test::val(1)});
  expect_fault(g, {y, kiln_test::val(0)}, "R-HZ15", line, {"scratch[0]", "before any write"});
  // Half of it was written: the gather that stays there is clean.
  auto half = record([](context& k, ptr<i32> y, kiln::val<i32> top) {
    auto b = k.alloc_shared<i32, 8>();
    k.local_store(k.local_slice<4>(b, {4}), k.arange<4>());
    store(y + k.arange<4>(), k.local_gather(b, top - k.arange<4>()));
  });
  expect_clean(half, {y, kiln_test::val(7)});
  expect_fault(half, {y, kiln_test::val(6)}, "R-HZ15", __LINE__ - 3, {"before any write"});
  // Each CTA has its own local memory.
  auto first_writes = record([](context& k, ptr<i32> y) {
    auto b = k.alloc_shared<i32, 1>();
    k.when(k.program_id(0) == 0, [&] { k.local_store(b, k.arange<1>()); });
    store(y + k.program_id(0) + k.arange<1>(), k.local_load(b));
  });
  expect_clean(first_writes, {y}, {1});
  expect_fault(first_writes, {y}, "R-HZ15", __LINE__ - 3, {"cta 1,0,0"}, {2});
}

TEST(InterpreterChecker, GlobalMemoryBetweenCtas) { // R-HZ14
  // A CTA reads what its neighbour writes: whatever comes first.
  auto neighbour = record([](context& k, ptr<f32> y, ptr<f32> z) {
    auto b = k.program_id(0), n = k.num_programs(0);
    auto i = k.arange<16>();
    store(y + b * 16 + i, cast<f32>(i));
    store(z + b * 16 + i, load(y + (b + n - 1) % n * 16 + i));
  });
  int const line = __LINE__ - 2;
  guarded<f32> y(64), z(64);
  expect_fault(neighbour, {y, z}, "R-HZ14", line, {"load through parameter 0: nothing orders element [0] (bytes 0..3) after the store of interpreter_checker.cpp:", "in cta 0,0,0, which writes it", "any order"}, {4});
  expect_clean(neighbour, {y, z}, {1});
  // A write over what another CTA has read, and one over its write; equal values do no harm.
  auto in_place = record([](context& k, ptr<f32> y, ptr<f32> z) {
    auto b = k.program_id(0);
    store(z + b, load(y + b) + load(y + b + 1));
    store(y + b, load(y + b + 1) + 1.f);
  });
  expect_fault(in_place, {y, z}, "R-HZ14", __LINE__ - 2, {"which reads it"}, {4});
  auto one_cell = record([](context& k, ptr<f32> y, kiln::val<i32> differ) { store(y, cast<f32>(k.program_id(0) * differ)); });
  expect_fault(one_cell, {y, kiln_test::val(1)}, "R-HZ14", __LINE__ - 1, {"store through parameter 0", "which writes it"}, {2});
  expect_clean(one_cell, {y, kiln_test::val(0)}, {2});
  // The last CTA to arrive at a counter may read what all others wrote before they did; without the counter it may not.
  auto last_sums = record([](context& k, ptr<f32> part, ptr<i32> count, ptr<f32> sum, kiln::val<i32> announce) {
    auto b = k.program_id(0), n = k.num_programs(0);
    store(part + b, cast<f32>(b + 1));
    auto before = k.var(k.let(0));
    k.when(announce != 0, [&] { before = atomic_add(count, 1); }, [&] { before = b; });
    k.when(before == n - 1, [&] {
      auto total = k.var(k.full<f32>(0));
      for (auto i : k.range(0, n)) total = total + load(part + i);
      store(sum, total);
    });
  });
  guarded<i32> count(1);
  count[0] = 0;
  run_clean(last_sums, {4}, {y, count, z, kiln_test::val(1)});
  EXPECT_EQ(z[0], 10.f);
  expect_fault(last_sums, {y, count, z, kiln_test::val(0)}, "R-HZ14", __LINE__ - 8, {"load through parameter 0", "in cta 0,0,0"}, {4});
  // Two parameters for one memory: the one that is only read is followed, too.
  auto shift = record([](context& k, ptr<const f32> x, ptr<f32> y) { store(y + k.program_id(0) + 1, load(x + k.program_id(0)) + 1.f); });
  ip::report const r = ip::run(shift, {4}, {ip::pointer(y.data(), 64), y});
  EXPECT_TRUE(r.has("R-HZ14")) << r.text();
  expect_clean(shift, {z, y}, {4});
}

TEST(InterpreterChecker, DuplicateScatter) {
  constexpr auto kernel = []<bool Unique>(std::bool_constant<Unique>) {
    return record([](context& k, ptr<i32> y, kiln::val<i32> modulus, kiln::val<i32> factor) {
      auto b = k.alloc_shared<i32, 8>({.name = "bins"});
      k.local_store(b, k.zeros<i32, 8>());
      k.local_scatter(b, k.arange<8>() * factor, k.arange<8>() % modulus, {.unique = Unique});
      store(y + k.arange<8>(), k.local_load(b));
    });
  };
  int const line = __LINE__ - 4;
  guarded<i32> y(8);
  expect_fault(kernel(std::true_type{}), {y, kiln_test::val(5), kiln_test::val(1)}, "R-HZ13", line, {"bins", "[0]", "[5]", ".unique"});
  expect_clean(kernel(std::true_type{}), {y, kiln_test::val(8), kiln_test::val(1)});
  expect_clean(kernel(std::true_type{}), {y, kiln_test::val(5), kiln_test::val(0)}); // equal values: no matter which stays
  expect_clean(kernel(std::false_type{}), {y, kiln_test::val(5), kiln_test::val(1)});
}

TEST(InterpreterChecker, TokensOfTheWrongKindInVars) {
  auto g = record([](context& k, ptr<const i32> x, kiln::val<i32> n) {
    auto t = k.var(k.async_load(x + k.arange<8>(), k.alloc_shared<i32, 8>()));
    k.when(n > 0, [&] { t = k.async_load_commit_group(); }, [&] { k.async_load_commit_group(); });
    k.async_load_wait_group(1, {t.read()});
    k.async_load_wait_group(0);
  });
  int const line = __LINE__ - 3;
  guarded<i32> x(8);
  expect_clean(g, {x, kiln_test::val(1)});
  expect_fault(g, {x, kiln_test::val(0)}, "R-HZ07", line, {"async_load"});
}

// -- promises --------------------------------------------------------------------------------------------------------------------------------

TEST(InterpreterChecker, Promises) {
  guarded<i32> y(16);
  auto assumed = record([](context& k, ptr<i32> y, kiln::val<i32> n) {
    k.assume(n % 4 == 0);
    store(y, n);
  });
  expect_clean(assumed, {y, kiln_test::val(8)});
  expect_fault(assumed, {y, kiln_test::val(7)}, "R-VF02", __LINE__ - 4, {"assume"});
  auto multiple = record([](context&, ptr<i32> y, kiln::val<i32> n) { store(y, multiple_of<16>(n)); });
  expect_clean(multiple, {y, kiln_test::val(-32)});
  expect_fault(multiple, {y, kiln_test::val(24)}, "R-VF02", __LINE__ - 2, {"multiple_of<16>", "24"});
  auto aligned = record([](context&, ptr<i32> y) { store(multiple_of<16>(y), 1); });
  expect_clean(aligned, {y});
  expect_fault(aligned, {ip::pointer(y.data() + 2, 16)}, "R-VF02", __LINE__ - 2, {"multiple_of<16>", "8 bytes"});
  auto runs = record([](context& k, ptr<i32> y, kiln::val<i32> period) { store(y + k.arange<16>(), max_contiguous<4>(k.arange<16>() % period)); });
  expect_clean(runs, {y, kiln_test::val(8)});
  expect_fault(runs, {y, kiln_test::val(6)}, "R-VF02", __LINE__ - 2, {"max_contiguous<4>", "[6]"});
}

TEST(InterpreterChecker, StepOfZero) {
  auto g = record([](context& k, ptr<i32> y, kiln::val<i32> step) {
    auto n = k.var(k.let(0));
    for (auto i : k.range(0, 4, step)) n += i - i + 1;
    store(y, n);
  });
  int const line = __LINE__ - 3;
  guarded<i32> y(1, -1);
  expect_clean(g, {y, kiln_test::val(2)});
  expect_fault(g, {y, kiln_test::val(0)}, "K-06", line, {"step", "0"});
  EXPECT_EQ(y[0], 0);
}

// -- the report ------------------------------------------------------------------------------------------------------------------------------

TEST(InterpreterChecker, RepetitionsAreCounted) {
  auto g = record([](context& k, ptr<i32> y, kiln::val<i32> n) {
    for (auto i : k.range(n)) store(y + i, 1);
  });
  guarded<i32> y(2);
  ip::report const r = ip::run(g, {3}, {y, kiln_test::val(5)});
  ASSERT_EQ(r.diagnostics.size(), 1u);
  EXPECT_EQ(r.diagnostics[0].count, 9);
  EXPECT_NE(r.text().find("9 times"), std::string::npos);
  EXPECT_FALSE(r.has("R-HZ01"));
  try {
    r.throw_if_faulty();
    FAIL();
  } catch (ip::checker_error const& e) {
    EXPECT_EQ(e.what(), r.text());
    EXPECT_EQ(e.faults().diagnostics.size(), 1u);
  }
  EXPECT_TRUE(y.intact());
}

// Tensor memory is a storage of its own beside shared memory: 128 lanes, here 32 and 16 columns of them.
TEST(InterpreterChecker, TensorMemoryHoldsWhatWasStored) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) {
    auto at = k.iota<0, 128, 32>() * 32 + k.iota<1, 128, 32>();
    auto acc = k.local_alloc<f32, 128, 32>(1, {.storage = storage::tmem, .name = "acc"});
    auto beside = k.local_alloc<f32, 128, 16>(1, {.storage = storage::tmem, .name = "beside"});
    k.local_store(acc[0], load(x + at));
    k.local_store(beside[0], k.full<f32, 128, 16>(-1.f));
    store(y + at, k.local_load(acc[0]) * 2.f);
  });
  guarded<f32> x(128 * 32), y(128 * 32);
  for (int i = 0; i < 128 * 32; ++i) x[i] = static_cast<f32>(i % 1009) - 500.f;
  expect_clean(g, {x, y});
  for (int i = 0; i < 128 * 32; ++i) ASSERT_EQ(y[i], 2 * x[i]) << i;
  EXPECT_TRUE(y.intact());
}

} // namespace
