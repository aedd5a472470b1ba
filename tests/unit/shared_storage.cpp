// Kernels whose buffers share storage: offsets in the graph, values on interpreter and host, what simulation and checker say.
#include "run_everywhere.hpp"

#include "src/graph/passes/dce.hpp"

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

std::vector<f32> numbers(std::size_t n) {
  std::vector<f32> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<f32>(static_cast<int>(i * 37 % 101) - 50);
  return v;
}

// Slots chosen at run time, with a group size: every slot of p is written through one formula and read through another.
TEST(shared_storage, runtime_slots_of_a_grouped_buffer) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    auto sp = k.storage_alias_spec({.name = "scratch"});
    auto q = k.local_alloc<f32, 32, 16>(2, {.reuse = &sp, .name = "q"});
    auto p = k.local_alloc<f32, 8, 16>(6, {.reuse = &sp, .name = "p"});
    auto l = k.local_alloc<f32, 16>(2, {.reuse = &sp, .name = "l"});
    sp.set_buffer_overlap(shared_group(q, distinct_group(subtile(p, 3), l)));
    auto at = k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>();
    auto row = k.arange<16>();
    for (auto i : k.range(0, 6)) k.local_store(p[i], load(x + i * 128 + at));
    for (auto i : k.range(0, 2)) k.local_store(l[i], load(x + 768 + i * 16 + row));
    for (int i = 0; i < 6; ++i) store(y + i * 128 + at, k.local_load(p[i]) + cast<f32>(n));
    for (auto i : k.range(0, 2)) store(y + 768 + i * 16 + row, k.local_load(l[1 - i]));
    // Then the storage is q's.
    auto whole = k.iota<0, 32, 16>() * 16 + k.iota<1, 32, 16>();
    for (auto i : k.range(0, 2)) k.local_store(q[i], load(x + i * 512 + whole));
    store(y + 800 + whole, k.local_load(q[1]));
  });
  EXPECT_EQ(g.buffers[2].place.at(4), 2048 + 512);
  EXPECT_EQ(g.buffers[3].place.at(1), 2048 + 1536);
  EXPECT_EQ(place_local(g).total(), 4096);
  auto const in = numbers(1024);
  auto const out = run_everywhere(g, in, 800 + 512, 3);
  for (std::size_t i = 0; i < 768; ++i) ASSERT_EQ(out[i], in[i] + 3) << i;
  for (std::size_t i = 0; i < 32; ++i) ASSERT_EQ(out[768 + i], in[768 + (i + 16) % 32]) << i;
  for (std::size_t i = 0; i < 512; ++i) ASSERT_EQ(out[800 + i], in[512 + i]) << i;
}

// Three levels of group sizes, and storage larger than needed.
TEST(shared_storage, nested_group_sizes) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    auto sp = k.storage_alias_spec({.buffer_size_bytes = 40960});
    auto a = k.local_alloc<f32, 64>(24, {.reuse = &sp, .name = "a"});
    auto b = k.local_alloc<f32, 128>(12, {.reuse = &sp, .name = "b"});
    sp.set_buffer_overlap(reuse_group(reuse::distinct, {.group_size = 2}, reuse_group(reuse::shared, {.group_size = 3}, subtile(a, 2), b)));
    for (auto i : k.range(0, 24)) k.local_store(a[i], load(x + i * 64 + k.arange<64>()) + cast<f32>(i));
    for (auto i : k.range(0, 24)) store(y + i * 64 + k.arange<64>(), k.local_load(a[23 - i]));
    for (auto i : k.range(0, 12)) k.local_store(b[i], load(x + i * 128 + k.arange<128>()));
    for (auto i : k.range(0, 12)) store(y + 1536 + i * 128 + k.arange<128>(), k.local_load(b[(i + n) % 12]));
  });
  EXPECT_EQ(place_local(g).total(), 40960);
  auto const in = numbers(1536);
  auto const out = run_everywhere(g, in, 3072, 5);
  for (std::size_t i = 0; i < 1536; ++i) ASSERT_EQ(out[i], in[(23 - i / 64) * 64 + i % 64] + static_cast<f32>(23 - i / 64)) << i;
  for (std::size_t i = 0; i < 1536; ++i) ASSERT_EQ(out[1536 + i], in[(i / 128 + 5) % 12 * 128 + i % 128]) << i;
}

// Without a tree all start at the beginning; an allocation may lie over another one, and over what lies over it.
TEST(shared_storage, no_tree_and_over_a_buffer) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32>) {
    auto sp = k.storage_alias_spec({});
    auto a = k.local_alloc<f32, 32>(2, {.reuse = &sp, .name = "a"});
    auto b = k.local_alloc<f32, 96>(1, {.reuse = &sp, .name = "b"});
    auto own = k.local_alloc<f32, 64>(1, {.name = "own"});
    auto over = k.local_alloc<f32, 16>(2, {.reuse = &own, .name = "over"});
    auto more = k.local_alloc<f32, 64>(1, {.reuse = &over, .name = "more"});
    k.local_store(a[1], load(x + k.arange<32>()));
    store(y + k.arange<32>(), k.local_load(a[1]));
    k.local_store(b[0], load(x + k.arange<96>()));
    k.local_store(own[0], load(x + 100 + k.arange<64>()));
    store(y + 32 + k.arange<64>(), k.local_load(own[0]));
    k.local_store(over[1], load(x + 200 + k.arange<16>()));
    store(y + 96 + k.arange<16>(), k.local_load(over[1]));
    k.local_store(more[0], load(x + 300 + k.arange<64>()));
    store(y + 112 + k.arange<64>(), k.local_load(more[0]));
  });
  EXPECT_EQ(place_local(g).total(), 384 + 256);
  EXPECT_EQ(graph_view(g).storage_of(5), 3); // what lies over a buffer that lies over another has the first one's storage
  auto const in = numbers(400);
  auto const out = run_everywhere(g, in, 176);
  for (std::size_t i = 0; i < 32; ++i) ASSERT_EQ(out[i], in[i]);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(out[32 + i], in[100 + i]);
  for (std::size_t i = 0; i < 16; ++i) ASSERT_EQ(out[96 + i], in[200 + i]);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(out[112 + i], in[300 + i]);
}

// A declared pun reads the other's bytes, on every target and after every pass.
TEST(shared_storage, a_declared_pun_reads_the_bytes) {
  auto g = record([](context& k, ptr<const i32> x, ptr<i32> y, kiln::val<i32>) {
    auto sp = k.storage_alias_spec({.allow_pun = true, .name = "bits"});
    auto f = k.local_alloc<f32, 64>(1, {.reuse = &sp, .name = "f"});
    auto w = k.local_alloc<i32, 2, 32>(1, {.reuse = &sp, .name = "w"});
    k.local_store(f[0], cast<f32>(load(x + k.arange<64>())));
    store(y + k.iota<0, 2, 32>() * 32 + k.iota<1, 2, 32>(), k.local_load(w[0]));
  });
  std::vector<i32> in(64);
  for (int i = 0; i < 64; ++i) in[static_cast<std::size_t>(i)] = i - 20;
  auto const all = run_everywhere<i32>(g, in, 64);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(all[i], std::bit_cast<i32>(static_cast<f32>(in[i])));
  graph const kept = remove_dead_code(g);
  EXPECT_EQ(kept.buffers.size(), 3u);
  auto const out = run_everywhere<i32>(kept, in, 64);
  EXPECT_EQ(out[63], std::bit_cast<i32>(43.f));
}

// A ring whose storage becomes the epilogue's: copies in flight, then plain stores over their bytes.
TEST(shared_storage, an_epilogue_over_the_ring) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    auto sp = k.storage_alias_spec({.name = "scratch"});
    auto ring = k.local_alloc<f32, 64>(3, {.reuse = &sp, .name = "ring"});
    auto out = k.local_alloc<f32, 128>(1, {.reuse = &sp, .name = "out"});
    auto sum = k.var(k.zeros<f32, 64>());
    auto fetch = [&](auto i) {
      k.when(i < n, [&] { k.async_load(x + i * 64 + k.arange<64>(), ring[i % 3]); });
      k.async_load_commit_group();
    };
    fetch(k.let(0));
    fetch(k.let(1));
    for (auto i : k.range(0, n)) {
      k.async_load_wait_group(1);
      sum = sum + k.local_load(ring[i % 3]);
      fetch(i + 2);
    }
    k.async_load_wait_group(0);
    k.local_store(k.local_slice<64>(out[0], {0}), k.let(sum));
    k.local_store(k.local_slice<64>(out[0], {64}), k.let(sum) * 2.f);
    store(y + k.arange<128>(), k.local_load(out[0]));
  });
  auto const in = numbers(640);
  auto const out = run_everywhere(g, in, 128, 7);
  for (std::size_t i = 0; i < 64; ++i) {
    f32 sum = 0;
    for (std::size_t j = 0; j < 7; ++j) sum += in[j * 64 + i];
    ASSERT_EQ(out[i], sum);
    ASSERT_EQ(out[64 + i], 2 * sum);
  }
}

// Worked examples as kernels, in constant expressions. Storage larger than it needs to be: nothing moves, the rest is slack.
constexpr auto sized = kernel<"sized">([](context& k, ptr<f32> y) {
  auto sp = k.storage_alias_spec({.buffer_size_bytes = 40960, .name = "sp"});
  auto a = k.local_alloc<f32, 64, 64>(2, {.reuse = &sp, .name = "a"});
  auto b = k.local_alloc<f16, 64, 64>(2, {.reuse = &sp, .name = "b"});
  sp.set_buffer_overlap(shared_group(a, b));
  k.local_store(a[1], k.zeros<f32, 64, 64>());
  store(y, reduce<sum>(k.local_load(a[1])));
  k.local_store(b[1], k.zeros<f16, 64, 64>());
});
static_assert([] {
  graph_view const g = sized.graph();
  local_form const a = local_form_of(g, 1), b = local_form_of(g, 2);
  return sized.ok && place_local(g).total() == 40960 && a.bytes == 16384 && b.bytes == 8192 && a.slots.at(0) == 0 && a.slots.at(1) == 16384 && b.slots.at(0) == 0 && b.slots.at(1) == 16384;
}());
// The scratch of attention with P in `Slices` column slices: columns of every buffer, and 256 in all.
template <int Slices>
constexpr auto attention = kernel<"attention">([](context& k) {
  auto sp = k.storage_alias_spec({.storage = storage::tmem, .name = "qk_alias"});
  auto qk = k.local_alloc<f32, 128, 128>(2, {.storage = storage::tmem, .reuse = &sp, .name = "qk"});
  auto p = k.local_alloc<f16, 128, 128 / Slices>(2 * Slices, {.storage = storage::tmem, .reuse = &sp, .name = "p"});
  auto al = k.local_alloc<f32, 128, 1>(2, {.storage = storage::tmem, .reuse = &sp, .name = "alpha"});
  auto l = k.local_alloc<f32, 128, 1>(2, {.storage = storage::tmem, .reuse = &sp, .name = "l"});
  auto m = k.local_alloc<f32, 128, 1>(2, {.storage = storage::tmem, .reuse = &sp, .name = "m"});
  sp.set_buffer_overlap(shared_group(qk, distinct_group(subtile(p, Slices), al, l, m)));
});
template <int Slices, std::size_t N>
constexpr bool has_columns(int buffer, std::int64_t const (&columns)[N]) {
  graph_view const g = attention<Slices>.graph();
  for (std::size_t i = 0; i < N; ++i)
    if (local_form_of(g, buffer).slots.at(static_cast<std::int64_t>(i)) != 4 * columns[i]) return false;
  return g.buffer(buffer).slots == static_cast<int>(N) && detail::storage_bytes(g, 0) == 4 * 256;
}
static_assert(has_columns<2>(1, {0, 128}) && has_columns<2>(2, {0, 32, 128, 160}) && has_columns<2>(3, {64, 192}) && has_columns<2>(4, {65, 193}) && has_columns<2>(5, {66, 194}));
static_assert(has_columns<4>(1, {0, 128}) && has_columns<4>(2, {0, 16, 32, 48, 128, 144, 160, 176}) && has_columns<4>(3, {64, 192}) && has_columns<4>(4, {65, 193}) && has_columns<4>(5, {66, 194}));

// Attention's scratch in tensor memory: rows are lanes, slots count columns; p in column slices over the scores.
TEST(shared_storage, tensor_memory) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    auto sp = k.storage_alias_spec({.storage = storage::tmem, .name = "qk_alias"});
    auto qk = k.local_alloc<f32, 128, 32>(2, {.storage = storage::tmem, .reuse = &sp, .name = "qk"});
    auto p = k.local_alloc<f16, 128, 16>(4, {.storage = storage::tmem, .reuse = &sp, .name = "p"});
    auto l = k.local_alloc<f32, 128, 1>(2, {.storage = storage::tmem, .reuse = &sp, .name = "l"});
    auto acc = k.local_alloc<f32, 2, 64, 8>(1, {.storage = storage::tmem, .name = "acc"});
    sp.set_buffer_overlap(shared_group(qk, distinct_group(subtile(p, 2), l)));
    auto at = k.iota<0, 128, 32>() * 32 + k.iota<1, 128, 32>();
    for (auto i : k.range(0, 2)) k.local_store(qk[i], load(x + i * 4096 + at));
    store(y + at, k.local_load(qk[1 - n]) + k.local_load(qk[n]));
    auto part = k.iota<0, 128, 16>() * 16 + k.iota<1, 128, 16>();
    auto row = k.iota<0, 128, 1>();
    for (auto i : k.range(0, 4)) k.local_store(p[i], cast<f16>(load(x + i * 2048 + part)));
    for (auto i : k.range(0, 2)) k.local_store(l[i], load(x + i * 128 + row));
    for (int i = 0; i < 4; ++i) store(y + 4096 + i * 2048 + part, cast<f32>(k.local_load(p[i])));
    for (auto i : k.range(0, 2)) store(y + 12288 + i * 128 + row, k.local_load(l[i]));
    auto lead = k.iota<0, 2, 64, 8>() * 512 + k.iota<1, 2, 64, 8>() * 8 + k.iota<2, 2, 64, 8>();
    k.local_store(acc[0], load(x + lead));
    auto half = k.iota<0, 2, 64, 4>() * 512 + k.iota<1, 2, 64, 4>() * 8 + k.iota<2, 2, 64, 4>();
    store(y + 12544 + half, k.local_load(k.subslice<4>(acc[0], 4)));
  });
  EXPECT_EQ(g.buffers[1].place.at(1), 32);
  EXPECT_EQ(g.buffers[2].place.at(1), 8);
  EXPECT_EQ(g.buffers[2].place.at(3), 40);
  EXPECT_EQ(g.buffers[3].place.at(1), 48);
  EXPECT_EQ(g.shapes[static_cast<std::size_t>(g.buffers[0].shape)].extent[1], 64); // columns of the spec
  EXPECT_EQ(place_local(g).total(), 0);
  auto const in = numbers(8192);
  auto const out = run_everywhere(g, in, 12544 + 1024, 1);
  for (std::size_t i = 0; i < 4096; ++i) ASSERT_EQ(out[i], in[i] + in[4096 + i]) << i;
  for (std::size_t i = 0; i < 8192; ++i) ASSERT_EQ(out[4096 + i], in[i]) << i;
  for (std::size_t i = 0; i < 256; ++i) ASSERT_EQ(out[12288 + i], in[i]) << i;
  for (std::size_t i = 0; i < 1024; i += 8)
    for (std::size_t j = i; j < i + 4; ++j) ASSERT_EQ(out[12544 + j], in[j + 4]) << j;
}

// Column slices of one buffer beside another's rows: overlap is by bytes, not by hulls.
TEST(shared_storage, columns_apart_do_not_conflict) {
  auto make = [](auto offset) {
    return record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32>) {
      constexpr int at = decltype(offset)::value;
      auto sp = k.storage_alias_spec({});
      auto a = k.local_alloc<f32, 8, 64>(1, {.reuse = &sp, .name = "a"});
      auto b = k.local_alloc<f32, 8, 64>(1, {.reuse = &sp, .name = "b"});
      auto c = k.iota<0, 8, 32>() * 32 + k.iota<1, 8, 32>();
      k.local_store(k.local_slice<8, 32>(a[0], {0, 0}), load(x + c));
      k.local_store(k.local_slice<8, 32>(b[0], {0, at}), load(x + 256 + c));
      store(y + c, k.local_load(k.local_slice<8, 32>(a[0], {0, 0})));
    });
  };
  auto const in = numbers(512);
  auto const out = run_everywhere(make(std::integral_constant<int, 32>{}), in, 256);
  for (std::size_t i = 0; i < 256; ++i) ASSERT_EQ(out[i], in[i]);
  simulation const s = simulate(make(std::integral_constant<int, 0>{}));
  EXPECT_NE(std::string(s.error.text).find("kiln[R-AL16] a part of a[0] (1024 B) is read"), std::string::npos) << s.error.text;
}

/// What the simulation and the checker say about a broken kernel.
void expect_both(graph_view g, std::string const& rule, std::initializer_list<char const*> words, kiln::i32 n = 0) {
  simulation const s = simulate(g);
  ASSERT_FALSE(s.error.ok()) << rule;
  EXPECT_EQ(std::string(s.error.text).find("kiln[" + rule + "] "), 0u) << s.error.text;
  for (char const* w : words) EXPECT_NE(std::string(s.error.text).find(w), std::string::npos) << w << " in " << s.error.text;
  for (auto policy : all_policies) {
    guarded<f32> x(numbers(4096)), y(4096);
    ip::report const r = ip::run(g, {1}, std::initializer_list<ip::host_argument>{x, y, kiln_test::val(n)}, {.policy = policy});
    ASSERT_FALSE(r.clean());
    EXPECT_TRUE(r.diagnostics[0].rule == rule || (rule == "R-AL17" && r.diagnostics[0].rule == std::string("R-HZ02"))) << r.diagnostics[0].text;
  }
}

TEST(shared_storage, a_read_through_the_wrong_buffer) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32>) {
    auto sp = k.storage_alias_spec({});
    auto a = k.local_alloc<f32, 64>(2, {.reuse = &sp, .name = "a"});
    auto b = k.local_alloc<f32, 32>(4, {.reuse = &sp, .name = "b"});
    sp.set_buffer_overlap(shared_group(a, subtile(b, 2)));
    k.local_store(a[1], load(x + k.arange<64>()));
    k.local_store(b[1], load(x + k.arange<32>())); // another group: fine
    store(y + k.arange<64>(), k.local_load(a[1]));
    k.local_store(b[3], load(x + k.arange<32>()));
    store(y + k.arange<64>(), k.local_load(a[1]));
  });
  expect_both(g, "R-AL16", {"a[1] (256 B) is read", "bytes 384..511", "b[3] (128 B)", ".allow_pun"});
}

// A window does not make bytes of another buffer its own: who shows what decides, not that somebody shows something.
TEST(shared_storage, a_read_through_a_window_of_the_wrong_buffer) {
  auto make = [](auto which) {
    return record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32>) {
      constexpr int mistake = decltype(which)::value;
      auto sp = k.storage_alias_spec({});
      auto a = k.local_alloc<f32, 64>(1, {.reuse = &sp, .name = "a"});
      auto b = k.local_alloc<f32, 64>(1, {.reuse = &sp, .name = "b"});
      auto at = k.arange<64>();
      auto bits = [&](auto& buffer) { return k.local_reinterpret<i32, 64>(buffer[0]); };
      k.local_store(a[0], load(x + at));
      if constexpr (mistake == 1) k.local_store(bits(b), k.zeros<i32, 64>()); // b's bytes, through a window
      if constexpr (mistake == 2) k.local_store(b[0], load(x + 64 + at));
      if constexpr (mistake == 3 || mistake == 4) { // half of what b overwrote comes back; all of it
        k.local_store(b[0], load(x + 64 + at));
        k.local_store(k.decl_buffer<f32, 32>({.data = a[0]}), load(x + k.arange<32>()));
        if constexpr (mistake == 4) k.local_store(k.decl_buffer<f32, 32>({.data = a[0], .elem_offset = 32}), load(x + 32 + k.arange<32>()));
      }
      if constexpr (mistake == 2)
        store(y + at, cast<f32>(k.local_load(bits(a))));
      else
        store(y + at, k.local_load(a[0]));
      if constexpr (mistake == 0) { // windows of one buffer may see each other's bytes
        k.local_store(bits(b), k.full<i32, 64>(1069547520)); // 1.5
        store(y + 64 + at, k.local_load(b[0]));
      }
    });
  };
  EXPECT_TRUE(simulate(make(std::integral_constant<int, 0>{})).error.ok());
  EXPECT_TRUE(simulate(make(std::integral_constant<int, 4>{})).error.ok());
  auto const in = numbers(128);
  auto const back = run_everywhere(make(std::integral_constant<int, 4>{}), in, 64);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(back[i], in[i]);
  auto const out = run_everywhere(make(std::integral_constant<int, 0>{}), in, 128);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_TRUE(out[i] == in[i] && out[64 + i] == 1.5f);
  expect_both(make(std::integral_constant<int, 1>{}), "R-AL16", {"a[0] (256 B) is read", "b[0] (256 B)"});
  expect_both(make(std::integral_constant<int, 2>{}), "R-AL16", {"a[0] (256 B) is read", "b[0] (256 B)"});
  // Which bytes a window brings back only the checker follows.
  graph const half = make(std::integral_constant<int, 3>{});
  EXPECT_TRUE(simulate(half).error.ok());
  guarded<f32> x(numbers(4096)), y(4096);
  ip::report const r = ip::run(half, {1}, std::initializer_list<ip::host_argument>{x, y, kiln_test::val(0)}, {});
  EXPECT_TRUE(r.has("R-AL16")) << r.text();
}

TEST(shared_storage, bytes_of_a_pool_handed_out_again_and_seen_through_a_window) { // R-PA15
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32>) {
    auto pool = k.smem_pool({.name = "pool"});
    auto a = pool.alloc<f32, 64>({.name = "a"});
    pool.move_base_to(0);
    auto b = pool.alloc<f32, 64>({.name = "b"});
    pool.commit();
    auto at = k.arange<64>();
    k.local_store(a, load(x + at));
    k.local_store(k.local_reinterpret<i32, 64>(b), k.zeros<i32, 64>());
    store(y + at, cast<f32>(k.local_load(k.local_reinterpret<i32, 64>(a))));
  });
  expect_both(g, "R-PA15", {"a (256 B) is read", "b (256 B)"});
  graph const back = parse_graphs(print(g)).at(0);
  EXPECT_EQ(semantic_hash(back), semantic_hash(g));
  expect_both(back, "R-PA15", {});
}

TEST(shared_storage, a_store_over_a_copy_in_flight) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32>) {
    auto sp = k.storage_alias_spec({});
    auto a = k.local_alloc<f32, 64>(1, {.reuse = &sp, .name = "a"});
    auto b = k.local_alloc<f32, 32>(1, {.reuse = &sp, .name = "b"});
    k.async_load(x + k.arange<64>(), a[0]);
    k.async_load_commit_group();
    k.local_store(b[0], load(x + k.arange<32>()));
    k.async_load_wait_group(0);
    store(y + k.arange<32>(), k.local_load(b[0]));
  });
  expect_both(g, "R-AL17", {"b[0] (128 B): the local_store", "bytes 0..127 of a[0] (256 B)", "may be in flight"});
}

// Two tasks take turns in one storage; the mistake is a read behind the arrival.
template <bool Good>
graph two_tasks() {
  return record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    auto sp = k.storage_alias_spec({});
    auto qk = k.local_alloc<f32, 64>(2, {.reuse = &sp, .name = "qk"});
    auto p = k.local_alloc<f32, 32>(4, {.reuse = &sp, .name = "p"});
    sp.set_buffer_overlap(shared_group(qk, subtile(p, 2)));
    auto full = k.alloc_barriers(2, {.name = "full"}), ready = k.alloc_barriers(2, {.name = "ready"});
    auto i64 = k.arange<64>();
    auto i32s = k.arange<32>();
    k.async_tasks(k.task_default({.name = "scores"}, [&] {
                    for (auto i : k.range(0, n)) {
                      auto s = i % 2;
                      k.local_store(qk[s], load(x + i * 64 + i64));
                      if constexpr (Good) store(y + i * 128 + i64, k.local_load(qk[s]));
                      k.barrier_arrive(full[s]);
                      if constexpr (!Good) store(y + i * 128 + i64, k.local_load(qk[s]));
                      k.barrier_wait(ready[s], i / 2 & 1);
                      store(y + i * 128 + 64 + i32s, k.local_load(p[2 * s]));
                      store(y + i * 128 + 96 + i32s, k.local_load(p[2 * s + 1]));
                    }
                  }),
                  k.task({.num_warps = 4, .name = "softmax"}, [&] {
                    for (auto i : k.range(0, n)) {
                      auto s = i % 2;
                      k.barrier_wait(full[s], i / 2 & 1);
                      auto low = k.local_load(k.local_slice<32>(qk[s], {0}));
                      auto high = k.local_load(k.local_slice<32>(qk[s], {32}));
                      k.local_store(p[2 * s], low + high);
                      k.local_store(p[2 * s + 1], low - high);
                      k.barrier_arrive(ready[s]);
                    }
                  }));
  });
}
TEST(shared_storage, tasks_take_turns) {
  graph const good = two_tasks<true>();
  ASSERT_TRUE(validate(good).ok()) << validate(good).text;
  auto const in = numbers(320);
  for (auto policy : all_policies) {
    guarded<f32> x(in), y(640);
    ip::report const r = ip::run(good, {1}, std::initializer_list<ip::host_argument>{x, y, kiln_test::val(5)}, {.policy = policy});
    ASSERT_TRUE(r.clean()) << r.diagnostics[0].text;
    for (std::size_t i = 0; i < 5; ++i)
      for (std::size_t c = 0; c < 32; ++c) {
        f32 const low = in[i * 64 + c], high = in[i * 64 + 32 + c];
        ASSERT_EQ(y[i * 128 + c], low);
        ASSERT_EQ(y[i * 128 + 64 + c], low + high);
        ASSERT_EQ(y[i * 128 + 96 + c], low - high);
      }
  }
  graph const bad = two_tasks<false>();
  std::string const said = validate(bad).text;
  EXPECT_EQ(said.find("kiln[R-AL17] "), 0u) << said;
  EXPECT_NE(said.find("in task softmax"), std::string::npos) << said;
  EXPECT_NE(said.find("in task scores uses, and nothing orders the two"), std::string::npos) << said;
  for (auto policy : all_policies) {
    guarded<f32> x(in), y(640);
    ip::report const r = ip::run(bad, {1}, std::initializer_list<ip::host_argument>{x, y, kiln_test::val(5)}, {.policy = policy});
    ASSERT_FALSE(r.clean());
    EXPECT_TRUE(r.diagnostics[0].rule == std::string("R-AL17") || r.diagnostics[0].rule == std::string("R-AL16")) << r.diagnostics[0].text;
  }
}

} // namespace
