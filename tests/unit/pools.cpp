// Pools, buffers declared over existing bytes, and reinterpreted views: places in the graph, values on interpreter and host.
#include "run_everywhere.hpp"

#include <kiln/dsl/buffer.hpp>
#include <kiln/dsl/tensor_pool.hpp>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

std::vector<f32> numbers(std::size_t n) {
  std::vector<f32> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<f32>(static_cast<int>(i * 37 % 101) - 50);
  return v;
}

TEST(pools, a_cursor_that_is_set_back) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) {
    auto pool = k.smem_pool({.name = "pool"});
    auto byte = pool.alloc<i8, 3>({.name = "byte"});
    auto a = pool.alloc<f32, 4, 16>({.name = "a"}); // its own alignment: byte 4
    std::int64_t const mark = pool.cursor();
    auto b = pool.alloc<f32, 64>({.align = 256, .name = "b"});
    auto at = k.iota<0, 4, 16>() * 16 + k.iota<1, 4, 16>();
    k.local_store(byte, cast<i8>(load(x + k.arange<3>())));
    k.local_store(a, load(x + at));
    k.local_store(b, load(x + 64 + k.arange<64>()));
    store(y + k.arange<64>(), k.local_load(b));
    pool.move_base_to(mark);
    auto c = pool.alloc<f32, 100>({.name = "c"}); // over b
    k.local_store(c, load(x + 200 + k.arange<100>()));
    store(y + 64 + k.arange<100>(), k.local_load(c));
    store(y + 164 + at, k.local_load(a)); // untouched
    store(y + 228 + k.arange<3>(), cast<f32>(k.local_load(byte)));
    pool.commit({.size = 1024});
  });
  EXPECT_EQ(g.buffers[1].place.offset, 0);
  EXPECT_EQ(g.buffers[2].place.offset, 4);
  EXPECT_EQ(g.buffers[3].place.offset, 512);
  EXPECT_EQ(g.buffers[4].place.offset, 260);
  EXPECT_EQ(place_local(g).total(), 1024);
  auto const in = numbers(300);
  auto const out = run_everywhere(g, in, 231);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(out[i], in[64 + i]);
  for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(out[64 + i], in[200 + i]);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(out[164 + i], in[i]);
  for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(out[228 + i], in[i]);
}

TEST(pools, buffers_over_existing_bytes) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) {
    auto base = k.alloc_shared<f32, 8, 32>({.name = "base"});
    auto ring = k.local_alloc<f32, 16>(4, {.name = "ring"});
    auto at = k.iota<0, 8, 32>() * 32 + k.iota<1, 8, 32>();
    k.local_store(base, load(x + at));
    auto flat = k.decl_buffer<f32, 64>({.data = base, .elem_offset = 96, .name = "flat"}); // rows 3 and 4
    store(y + k.arange<64>(), k.local_load(flat));
    auto part = k.decl_buffer<i32, 8>({.data = k.local_slice<2, 8>(base, {2, 16}), .byte_offset = 4}); // from row 2, column 17
    store(y + 64 + k.arange<8>(), cast<f32>(k.local_load(part)));
    k.local_store(flat, k.full<f32, 64>(7.f)); // through the window, read through the base
    store(y + 72 + at, k.local_load(base));
    for (auto i : k.range(0, 4)) k.local_store(ring[i], load(x + i * 16 + k.arange<16>()));
    auto last = k.decl_buffer<f32, 16>({.data = ring[3]});
    store(y + 328 + k.arange<16>(), k.local_load(last));
    for (auto i : k.range(0, 4)) {
      auto bits = k.local_reinterpret<i32, 4, 4>(ring[3 - i]);
      k.local_store(bits, k.local_load(bits) ^ k.full<i32, 4, 4>(-2147483648)); // the sign
    }
    for (auto i : k.range(0, 4)) store(y + 344 + i * 16 + k.arange<16>(), k.local_load(ring[i]));
  });
  auto in = numbers(300);
  auto const out = run_everywhere(g, in, 408);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(out[i], in[96 + i]);
  for (std::size_t i = 0; i < 8; ++i) ASSERT_EQ(out[64 + i], static_cast<f32>(std::bit_cast<i32>(in[64 + 17 + i])));
  for (std::size_t i = 0; i < 256; ++i) ASSERT_EQ(out[72 + i], i >= 96 && i < 160 ? 7.f : in[i]);
  for (std::size_t i = 0; i < 16; ++i) ASSERT_EQ(out[328 + i], in[48 + i]);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(out[344 + i], -in[i]);
}

// Windows whose place only the launch knows: parts of slots, at multiples of their size.
TEST(pools, windows_at_runtime_places) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    auto ring = k.local_alloc<f32, 8, 32>(3, {.name = "ring"});
    auto at = k.iota<0, 8, 32>() * 32 + k.iota<1, 8, 32>();
    for (auto i : k.range(0, 3)) k.local_store(ring[i], load(x + i * 256 + at));
    auto slot = ring[n % 3];
    for (auto i : k.range(0, 8)) {
      auto sign = k.local_reinterpret<i32, 4, 8>(slot[i]);
      k.local_store(sign, k.local_load(sign) ^ k.full<i32, 4, 8>(-2147483647 - 1));
    }
    auto rows = k.local_slice<2, 32>(slot, {n & 6, 0});
    auto halves = k.local_reinterpret<i16, 128>(rows); // low and high halves
    store(y + k.arange<128>(), cast<f32>(k.local_load(halves)));
    auto quarter = k.decl_buffer<f32, 2, 4>({.data = slot[n + 1], .elem_offset = 16});
    store(y + 128 + k.iota<0, 2, 4>() * 4 + k.iota<1, 2, 4>(), k.local_load(quarter));
    auto turned = k.local_trans(k.local_slice<8, 1>(slot, {0, n})); // a column does not follow itself, one element does
    auto one = k.local_reinterpret<i32, 1>(turned[0][n - 1]);
    store(y + 136 + k.arange<1>(), cast<f32>(k.local_load(one) & 1));
    store(y + 144 + at, k.local_load(slot));
  });
  auto const in = numbers(768);
  for (i32 n : {2, 5}) {
    auto const out = run_everywhere(g, in, 400, n);
    auto const base = static_cast<std::size_t>(n % 3) * 256, rows = static_cast<std::size_t>(n & 6) * 32;
    for (std::size_t i = 0; i < 256; ++i) ASSERT_EQ(out[144 + i], -in[base + i]);
    for (std::size_t i = 0; i < 64; ++i) {
      auto const bits = std::bit_cast<std::uint32_t>(-in[base + rows + i]);
      ASSERT_EQ(out[2 * i], static_cast<f32>(static_cast<std::int16_t>(bits & 0xffff)));
      ASSERT_EQ(out[2 * i + 1], static_cast<f32>(static_cast<std::int16_t>(bits >> 16)));
    }
    for (std::size_t i = 0; i < 8; ++i) ASSERT_EQ(out[128 + i], -in[base + (static_cast<std::size_t>(n) + 1) * 32 + 16 + i]);
  }
}

// The one dynamic arena, views of it, and a pool that hands out a part of it.
TEST(pools, an_arena_claimed_by_hand) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) {
    auto arena = k.alloc_buffer<f32, scope::shared_dyn, 128>({.name = "arena"});
    auto a = k.decl_buffer<f32, 64>({.data = arena, .name = "a"});
    auto rest = k.decl_buffer<f32, 64>({.data = arena, .elem_offset = 64, .name = "rest"});
    auto pool = k.smem_pool({.backing = rest, .name = "pool"});
    auto b = pool.alloc<f16, 3>({.name = "b"});
    auto c = pool.alloc<f32, 32>({.align = 16, .name = "c"});
    k.local_store(a, load(x + k.arange<64>()));
    k.local_store(b, cast<f16>(load(x + k.arange<3>())));
    k.local_store(c, load(x + 64 + k.arange<32>()));
    store(y + k.arange<64>(), k.local_load(a));
    store(y + 64 + k.arange<3>(), cast<f32>(k.local_load(b)));
    store(y + 67 + k.arange<32>(), k.local_load(c));
    k.local_store(k.decl_buffer<f32, 128>({.data = arena}), k.full<f32, 128>(5.f));
    store(y + 99 + k.arange<64>(), k.local_load(a)); // views of one storage may read what another wrote
    auto fixed = k.alloc_buffer<i32, scope::shared_static, 8>();
    k.local_store(fixed, k.arange<8>());
    store(y + 163 + k.arange<8>(), cast<f32>(k.local_load(fixed)));
    auto own = k.alloc_buffer<f32, scope::local, 2>();
    own[0] = 3.f;
    store(y + 171, k.let(own[0]));
  });
  EXPECT_EQ(place_local(g).dynamic_bytes, 512); // what a launch asks for
  EXPECT_EQ(g.buffers[3].place.offset, 256);
  EXPECT_EQ(g.buffers[4].place.offset, 272);
  auto const in = numbers(96);
  auto const out = run_everywhere(g, in, 172);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(out[i], in[i]);
  for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(out[64 + i], in[i]);
  for (std::size_t i = 0; i < 32; ++i) ASSERT_EQ(out[67 + i], in[64 + i]);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(out[99 + i], 5);
  for (std::size_t i = 0; i < 8; ++i) ASSERT_EQ(out[163 + i], static_cast<f32>(i));
  EXPECT_EQ(out[171], 3);
}

// Windows with layouts, at runtime places too when they are rows, and a declared buffer of its own.
TEST(pools, windows_with_layouts) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) {
    auto bytes = k.decl_buffer<u8, 4096>({.name = "bytes"});
    auto turned = k.decl_buffer<f32, 4, 8>({.data = bytes, .layout = layout::strided<4, 8>({1, 4}), .name = "turned"});
    auto plain = k.decl_buffer<f32, 32>({.data = bytes});
    auto swizzled = k.decl_buffer<f32, 8, 32>({.data = bytes, .byte_offset = 1024, .layout = layout::mma_shared(), .name = "swizzled"});
    auto rows = k.decl_buffer<f32, 256>({.data = bytes, .byte_offset = 1024});
    auto at = k.iota<0, 4, 8>() * 8 + k.iota<1, 4, 8>();
    k.local_store(turned, load(x + at));
    store(y + k.arange<32>(), k.local_load(plain));
    auto all = k.iota<0, 8, 32>() * 32 + k.iota<1, 8, 32>();
    k.local_store(swizzled, load(x + all));
    store(y + 32 + k.arange<256>(), k.local_load(rows));
    store(y + 288 + all, k.local_load(swizzled));
  });
  auto const in = numbers(256);
  auto const out = run_everywhere(g, in, 544);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 8; ++j) ASSERT_EQ(out[i + 4 * j], in[8 * i + j]);
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t j = 0; j < 32; ++j) {
      ASSERT_EQ(out[32 + 32 * i + 4 * ((j / 4) ^ i) + j % 4], in[32 * i + j]);
      ASSERT_EQ(out[288 + 32 * i + j], in[32 * i + j]);
    }
}

// Allocations of the usual kind in an arena: one after the other.
TEST(pools, allocations_in_an_arena) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    auto arena = k.alloc_buffer<u8, scope::shared_dyn, 2048>({.name = "arena"});
    auto ring = k.local_alloc<f32, 40>(3, {.backing = arena, .name = "ring"}); // 160 bytes each, 256 apart
    auto s = k.alloc_shared<f32, 8, 32>({.backing = arena, .layout = layout::mma_shared(), .name = "s"});
    for (auto i : k.range(0, 3)) k.local_store(ring[i], load(x + i * 40 + k.arange<40>()));
    auto at = k.iota<0, 8, 32>() * 32 + k.iota<1, 8, 32>();
    k.local_store(s, load(x + at));
    store(y + k.arange<40>(), k.local_load(ring[n]));
    store(y + 40 + at, k.local_load(s));
  });
  EXPECT_EQ(place_local(g).dynamic_bytes, 2048);
  EXPECT_EQ(g.buffers[1].place.offset, 0);
  EXPECT_EQ(g.buffers[2].place.offset, 1024);
  auto const in = numbers(256);
  auto const out = run_everywhere(g, in, 296, 2);
  for (std::size_t i = 0; i < 40; ++i) ASSERT_EQ(out[i], in[80 + i]);
  for (std::size_t i = 0; i < 256; ++i) ASSERT_EQ(out[40 + i], in[i]);
}

// Columns of tensor memory by number, and by what the pool's slot holds.
TEST(pools, columns_by_address) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) {
    auto pool = k.smem_pool({.name = "pool"});
    auto tp = k.tmem_pool(pool, {.total_cols = 64, .name = "tp"});
    auto a = tp.alloc<f32, 128, 16>({.name = "a"});
    auto b = tp.alloc<f32, 64, 16>({.layout = datapath::F, .name = "b"});
    pool.commit();
    tp.commit();
    auto at = k.iota<0, 128, 16>() * 16 + k.iota<1, 128, 16>();
    k.local_store(a, load(x + at));
    auto half = k.decl_buffer<f32, 128, 8>({.scope = storage::tmem, .allocated_addr = 8, .layout = datapath::D});
    auto eight = k.iota<0, 128, 8>() * 16 + k.iota<1, 128, 8>();
    store(y + eight, k.local_load(half));
    auto base = k.let(tp.address()(0));
    auto same = k.decl_buffer<f32, 64, 16>({.scope = storage::tmem, .allocated_addr = base + 16, .layout = datapath::F});
    auto rows = k.iota<0, 64, 16>() * 16 + k.iota<1, 64, 16>();
    k.local_store(same, load(x + rows) + 1.f);
    store(y + 2048 + rows, k.local_load(b));
    store(y + 3072, cast<f32>(base));
    tp.dealloc();
  });
  auto const in = numbers(2048);
  auto const out = run_everywhere(g, in, 3073);
  for (std::size_t r = 0; r < 128; ++r)
    for (std::size_t c = 0; c < 8; ++c) ASSERT_EQ(out[r * 16 + c], in[r * 16 + 8 + c]);
  for (std::size_t i = 0; i < 1024; ++i) ASSERT_EQ(out[2048 + i], in[i] + 1);
  EXPECT_EQ(out[3072], 0);
}

// Pointers to declared ranges.
TEST(pools, ranges_with_a_purpose) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    auto s = k.local_alloc<f32, 64>(2, {.name = "s"});
    for (auto i : k.range(0, 2)) k.local_store(s[i], load(x + i * 64 + k.arange<64>()));
    auto in = k.decl_buffer<f32, 16>({.data = s[0].access_ptr(access::r, {.offset = 16, .extent = 16})});
    auto out = k.decl_buffer<f32, 16>({.data = s[n & 1].access_ptr(access::w, {.offset = 32, .extent = 16})});
    k.local_store(out, k.local_load(in) * 2.f);
    store(y + k.arange<64>(), k.local_load(s[n & 1]));
    auto A = k.match_buffer(x, {4, 32});
    store(y + 64, load(A.access_ptr(access::r, {.offset = 33, .extent = 2})));
  });
  auto const in = numbers(128);
  auto const out = run_everywhere(g, in, 65, 3);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(out[i], i >= 32 && i < 48 ? in[i - 16] * 2 : in[64 + i]) << i;
  EXPECT_EQ(out[64], in[33]);
}

TEST(pools, variables_and_fragments) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) {
    auto sum = k.alloc_fragment<f32, 32>();
    sum = k.zeros<f32, 32>();
    auto count = k.alloc_var<i32>();
    count = 0;
    auto scale = k.alloc_var<f32>(k.let<f32>(2));
    for (auto i : k.range(0, 3)) {
      sum += load(x + i * 32 + k.arange<32>());
      count += 1;
      scale *= 2.f;
    }
    store(y + k.arange<32>(), sum * scale + cast<f32>(count));
  });
  auto const in = numbers(96);
  auto const out = run_everywhere(g, in, 32);
  for (std::size_t i = 0; i < 32; ++i) ASSERT_EQ(out[i], (in[i] + in[32 + i] + in[64 + i]) * 16 + 3);
}

TEST(pools, a_region_that_was_handed_out_again) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) {
    auto pool = k.smem_pool();
    auto a = pool.alloc<f32, 64>({.name = "a"});
    pool.move_base_to(128);
    auto b = pool.alloc<f32, 64>({.name = "b"});
    pool.commit();
    k.local_store(a, load(x + k.arange<64>()));
    k.local_store(b, load(x + k.arange<64>()));
    store(y + k.arange<64>(), k.local_load(a));
  });
  EXPECT_TRUE(validate(g).view().starts_with("kiln[R-PA15] a (256 B) is read")) << validate(g).text;
  EXPECT_NE(validate(g).view().find("bytes 128..255 were last written through b (256 B)"), std::string_view::npos);
  guarded<f32> x(64), y(64);
  ip::report const r = ip::run(g, {1}, std::initializer_list<ip::host_argument>{x, y}, {});
  ASSERT_FALSE(r.clean());
  EXPECT_EQ(r.diagnostics[0].rule, std::string("R-PA15"));
}

} // namespace
