// Pools, buffers declared over existing bytes, and reinterpreted views: places in the graph, values on interpreter and host.
#include "run_everywhere.hpp"

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
