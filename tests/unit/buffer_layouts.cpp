// Layouts of local buffers: the places that they give elements, byte by byte, and that every access finds its elements again whatever
// the layout; pools with layouts; tensor memory by hand.
#include "run_everywhere.hpp"

#include <kiln/dsl/matrix_layouts.hpp>
#include <kiln/dsl/register_view.hpp>
#include <kiln/dsl/tensor_pool.hpp>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

std::vector<i32> numbers(std::size_t n) {
  std::vector<i32> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<i32>(i) + 1;
  return v;
}

// -- the maps, in constant expressions -------------------------------------------------------------------------------------------

constexpr slot_layout resolved(dtype t, kiln::shape const& s, int width) { return detail::mma_layout(t, s, width); }

// f16 with 128 bytes: x'(i, j) = 64 i + 8 ((j / 8) ^ i) + j % 8.
constexpr bool f16_atom() {
  slot_layout const l = resolved(dtype::f16, {2, {8, 64}}, 128);
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 64; ++j)
      if (l(i * 64 + j) != 64 * i + 8 * ((j / 8) ^ i) + j % 8) return false;
  return l.bits == 3 && l.base == 3 && l.shift == 3;
}
static_assert(f16_atom());

// All widths and element sizes: panels of W bytes, and address bits [4..] ^= bits [7..].
constexpr bool panels(dtype t, int width, int rows, int columns) {
  slot_layout const l = resolved(t, {2, {rows, columns}}, width);
  std::int64_t const size = bytes_of(t), wide = width / size;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; c += 3) {
      std::int64_t const panel = c / wide, in_row = c % wide * size;
      std::int64_t const chunk = in_row / 16, turned = chunk ^ (width == 128 ? r % 8 : width == 64 ? r / 2 % 4 : r / 4 % 2);
      std::int64_t const byte = panel * rows * width + r * width + turned * 16 + in_row % 16;
      if (l(static_cast<std::int64_t>(r) * columns + c) * size != byte) return false;
    }
  return l.cosize(rows * columns) == rows * columns;
}
static_assert(panels(dtype::i8, 128, 16, 256) && panels(dtype::i8, 64, 16, 128) && panels(dtype::i8, 32, 16, 32));
static_assert(panels(dtype::f16, 128, 16, 128) && panels(dtype::f16, 64, 8, 32) && panels(dtype::f16, 32, 24, 48));
static_assert(panels(dtype::f32, 128, 8, 64) && panels(dtype::f32, 64, 8, 16) && panels(dtype::f32, 32, 8, 8));
static_assert(panels(dtype::f64, 128, 8, 32) && panels(dtype::f64, 64, 8, 8) && panels(dtype::f64, 32, 8, 4));
static_assert(detail::swizzle_alignment(resolved(dtype::f16, {2, {8, 64}}, 128), dtype::f16) == 1024);
static_assert(detail::swizzle_alignment(resolved(dtype::f32, {2, {8, 16}}, 64), dtype::f32) == 512);
static_assert(detail::swizzle_alignment(resolved(dtype::i8, {2, {8, 32}}, 32), dtype::i8) == 256);
static_assert(detail::widest_swizzle(128, 8) == 128 && detail::widest_swizzle(192, 8) == 64 && detail::widest_swizzle(96, 8) == 32);
static_assert(detail::widest_swizzle(16, 8) == 0 && detail::widest_swizzle(128, 4) == 0);

// Padding: x + (x / interval) * pad for each pair; cosize is the image of the last element + 1.
constexpr slot_layout two_pads = layout::padded<8, 64>({1, 4}).slot;
static_assert(two_pads(0) == 0 && two_pads(7) == 7 && two_pads(8) == 9 && two_pads(64) == 64 + 8 + 4 && two_pads.cosize(128) == 127 + 15 + 4 + 1);
static_assert(two_pads.run_log2() == 0 && layout::padded<64>({8}).slot.run_log2() == 3);
static_assert(layout::strided<4, 8>({1, 4}).slot(8 * 3 + 5) == 3 + 20);
static_assert(detail::places_collide(layout::strided<4, 8>({1, 2}).slot) && !detail::places_collide(layout::strided<4, 8>({9, 1}).slot));

// -- values -----------------------------------------------------------------------------------------------------------------------

/// Writes a tile to a buffer of layout L and copies its bytes, as they lie, to y: where element e was put. Behind them, the tile read
/// back whole, transposed, and by rows.
template <class L, class T, int R, int C>
std::vector<T> round_trip(std::size_t cosize) {
  static constexpr L layout{};
  auto g = [] {
    recorder r;
    context k(r);
    ptr<const T> const x{&r, r.push(op::param, {dtype_of<T>, node_kind::pointer, 0}, {}, {0}, {})};
    ptr<T> const y{&r, r.push(op::param, {dtype_of<T>, node_kind::pointer, 0}, {}, {1}, {})};
    for (int p = 0; p < 2; ++p) r.params.add() = {.kind = node_kind::pointer, .type = dtype_of<T>, .is_const = p == 0, .node = p};
    auto s = k.local_alloc<T, R, C>(2, {.layout = layout(), .name = "s"});
    auto at = k.iota<0, R, C>() * C + k.iota<1, R, C>();
    k.local_store(s[1], load(x + at));
    for (auto i : k.range(0, 2)) {
      k.when(i == 0, [&] { k.local_store(s[i], load(x + at) + k.full<T, R, C>(1)); });
    }
    store(y + at, k.local_load(s[1]));
    auto back = k.iota<0, C, R>() + k.iota<1, C, R>() * C;
    store(y + R * C + back, k.local_load(k.local_trans(s[1])));
    for (auto i : k.range(0, R)) store(y + i * C + 2 * R * C + k.arange<C>(), k.local_load(s[1][i]));
    for (auto i : k.range(0, R / 8)) {
      auto part = k.local_slice<8, C>(s[1], {i * 8, 0});
      auto rows = k.iota<0, 8, C>() * C + k.iota<1, 8, C>();
      store(y + i * 8 * C + 3 * R * C + rows, k.local_load(part));
    }
    auto flat = k.local_gather(s[1], k.iota<0, R, C>() ^ k.full<i32, R, C>(1), {.axis = 0}); // rows 1 0 3 2 ..
    store(y + 4 * R * C + at, flat);
    k.finish();
    EXPECT_TRUE(r.error.ok()) << r.error.text;
    return graph("test", r);
  }();
  (void)cosize;
  auto const in = [] {
    std::vector<T> v(R * C);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<T>(static_cast<int>(i) % 251 + 1);
    return v;
  }();
  auto const out = run_everywhere(g, in, 5 * R * C);
  for (std::size_t i = 0; i < R * C; ++i) {
    EXPECT_EQ(out[i], in[i]) << i;
    EXPECT_EQ(out[R * C + i], in[i]) << i; // read transposed, stored transposed
    EXPECT_EQ(out[2 * R * C + i], in[i]) << i;
    EXPECT_EQ(out[3 * R * C + i], in[i]) << i;
    EXPECT_EQ(out[4 * R * C + i], in[(i / C ^ 1) * C + i % C]) << i;
    if (::testing::Test::HasFailure()) break;
  }
  return out;
}
template <swz W>
struct mma {
  constexpr buffer_layout operator()() const { return layout::mma_shared(W); }
};
struct swizzled_rows {
  constexpr buffer_layout operator()() const { return layout::swizzled<2, 2, 3>(); }
};
struct padded_rows {
  constexpr buffer_layout operator()() const { return layout::padded<32>({4}); }
};
struct padded_twice {
  constexpr buffer_layout operator()() const { return layout::padded<8, 32>({1, 3}); }
};
struct columns_first {
  constexpr buffer_layout operator()() const { return layout::strided<16, 32>({1, 16}); }
};
struct odd_rows {
  constexpr buffer_layout operator()() const { return layout::strided<24, 12>({13, 1}); }
};
struct crossed_rows {
  constexpr buffer_layout operator()() const { return layout::shared_linear<16, 16>({{0, 1}, {0, 2}, {0, 4}, {0, 8}, {1, 2}, {2, 4}, {4, 8}, {8, 9}}); }
};
TEST(buffer_layouts, every_access_finds_its_elements) {
  round_trip<crossed_rows, i32, 16, 16>(0);
  round_trip<mma<swz::b128>, i32, 16, 64>(0);
  round_trip<mma<swz::b64>, i32, 16, 32>(0);
  round_trip<mma<swz::b32>, i16, 8, 16>(0);
  round_trip<swizzled_rows, i32, 16, 32>(0);
  round_trip<padded_rows, i32, 16, 32>(0);
  round_trip<padded_twice, i32, 16, 32>(0);
  round_trip<columns_first, i32, 16, 32>(0);
  round_trip<odd_rows, i32, 24, 12>(0);
}

// What lies where, seen through a window over the whole slot.
TEST(buffer_layouts, bytes_lie_where_the_formula_says) {
  auto g = record([](context& k, ptr<const i32> x, ptr<i32> y) {
    auto s = k.alloc_shared<i32, 8, 64>({.layout = layout::mma_shared(), .name = "s"});
    auto p = k.alloc_shared<i32, 4, 32>({.layout = layout::padded<32>({4}), .name = "p"});
    k.local_store(s, load(x + k.iota<0, 8, 64>() * 64 + k.iota<1, 8, 64>()));
    auto raw = k.decl_buffer<i32, 512>({.data = s, .name = "raw"});
    store(y + k.arange<512>(), k.local_load(raw));
    auto padded = k.decl_buffer<i32, 140>({.data = p, .name = "padded"});
    k.local_store(padded, k.zeros<i32, 140>());
    k.local_store(p, load(x + k.iota<0, 4, 32>() * 32 + k.iota<1, 4, 32>()));
    store(y + 512 + k.arange<140>(), k.local_load(padded));
  });
  EXPECT_EQ(g.buffers[0].alignment, 1024);
  auto const in = numbers(512);
  auto const out = run_everywhere(g, in, 652);
  slot_layout const l = detail::mma_layout(dtype::i32, {2, {8, 64}}, 128);
  for (std::size_t e = 0; e < 512; ++e) ASSERT_EQ(out[static_cast<std::size_t>(l(static_cast<std::int64_t>(e)))], in[e]) << e;
  for (std::size_t e = 0; e < 140; ++e) ASSERT_EQ(out[512 + e], e % 36 < 32 ? in[e / 36 * 32 + e % 36] : 0) << e;
}

TEST(buffer_layouts, pools_hand_out_swizzled_buffers) {
  auto g = record([](context& k, ptr<const i32> x, ptr<i32> y) {
    auto pool = k.smem_pool({.name = "pool"});
    auto head = pool.alloc<i32, 5>({.name = "head"});
    auto ring = pool.alloc_mma<i32, 2, 8, 64>({.name = "ring"});
    auto narrow = pool.alloc_mma<i32, 8, 16>({.swizzle = swz::b64, .align = 512, .name = "narrow"});
    pool.commit();
    k.local_store(head, k.zeros<i32, 5>());
    auto at = k.iota<0, 8, 64>() * 64 + k.iota<1, 8, 64>();
    for (auto i : k.range(0, 2)) k.local_store(ring[i], load(x + i * 512 + at));
    for (auto i : k.range(0, 2)) store(y + i * 512 + at, k.local_load(ring[i]));
    auto n = k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>();
    k.local_store(narrow, load(x + n));
    store(y + 1024 + n, k.local_load(narrow));
  });
  EXPECT_EQ(g.buffers[2].place.offset, 1024);
  EXPECT_EQ(g.buffers[3].place.offset, 1024 + 4096);
  auto const in = numbers(1024);
  auto const out = run_everywhere(g, in, 1152);
  for (std::size_t i = 0; i < 1024; ++i) ASSERT_EQ(out[i], in[i]);
  for (std::size_t i = 0; i < 128; ++i) ASSERT_EQ(out[1024 + i], in[i]);
}

// -- texts ------------------------------------------------------------------------------------------------------------------------

TEST(buffer_layouts, as_shape_and_stride) {
  auto g = record([](context& k, ptr<i32> y) {
    auto plain = k.alloc_shared<f32, 64>({.name = "plain"});
    auto swizzled = k.alloc_shared<f16, 8, 64>({.layout = layout::mma_shared(), .name = "swizzled"});
    auto padded = k.alloc_shared<f16, 8, 64>({.layout = layout::padded<64>({8}), .name = "padded"});
    auto late = k.alloc_shared<f32, 8, 32>({.name = "late"});
    k.annotate_layout(late, layout::swizzled<3, 2, 3>());
    k.assert_same_layout(late, layout::mma_shared()); // another spelling of the same map
    (void)plain;
    (void)swizzled;
    (void)padded;
    store(y, k.let(0));
  });
  EXPECT_EQ(layout_of(g, "plain").view(), "_64:_1");
  EXPECT_EQ(layout_of(g, "swizzled").view(), "Swizzle<3,3,3> o (_8,_64):(_64,_1)");
  EXPECT_EQ(layout_of(g, "padded").view(), "(_8,_64):(_64,_1) + 8 after every 64");
  EXPECT_EQ(layout_of(g, "nobody").view(), "");
  diagnostic d;
  detail::message m(d);
  detail::put_register_layout(m, {layout::threads<32, 4>({1, 32}).modes.list, layout::values<1>({0}).modes.list});
  EXPECT_EQ(d.view(), "((_32,_4),_1):((_1,_32),_0)");
}

// -- layouts on axes, and of matrix units ---------------------------------------------------------------------------------------------

using layout::axis;
// A tile on named axes, with a replica and an offset.
constexpr axis_layout worked = layout::S<8, 2, 4, 2>({4, axis::lane}, {1, axis::warp}, {1, axis::lane}, 1) + layout::R<2>({4, axis::warp}) + layout::O{axis::warp, 5};
static_assert([] {
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 16; ++j)
      for (int c = 0; c < 2; ++c) {
        axis_layout::place const p = worked.apply(i * 16 + j, c);
        if (p[axis::lane] != 4 * i + j / 2 % 4 || p[axis::warp] != j / 8 + 5 + 4 * c || p[axis::m] != j % 2) return false;
      }
  return worked.apply(127)[axis::lane] == 31 && worked.apply(127)[axis::warp] == 6 && worked.apply(127, 1)[axis::warp] == 10 && worked.copies() == 2 && worked.size() == 128;
}());
static_assert(layout::S<4, 8>(1, 4).apply(3 * 8 + 5)[axis::m] == 23 && layout::S<4, 8>(1, 4).cosize() == 32);
static_assert(layout::S<32>(1) == layout::S<4, 8>(8, 1) && !(layout::S<4, 8>(1, 4) == layout::S<4, 8>(8, 1)));
static_assert(layout::S<4, 8>(8, 1).permute<1, 0>() == layout::S<8, 4>(1, 8));

// The inverse by its definition: the number of the place of every element leads back to it.
constexpr bool leads_back(axis_layout const& l) {
  axis_layout const back = l.inverse();
  for (std::int64_t e = 0; e < l.size(); ++e) {
    std::int64_t number = 0, inner = 1;
    for (int a = 0; a < axis_layout::axes; ++a) {
      number += l.apply(e).of[a] * inner;
      inner *= l.span(static_cast<axis>(a));
    }
    if (back.apply(number)[axis::m] != e) return false;
  }
  return back.size() == l.size();
}
static_assert(layout::S<4, 8>(1, 4).inverse() == layout::S<8, 4>(1, 8) && leads_back(layout::S<4, 8>(1, 4)));
static_assert(leads_back(layout::S<3, 5, 7>(5, 1, 15)) && leads_back(layout::S<2, 1, 6>(6, 1, 1)));
static_assert(leads_back(layout::S<8, 2, 4, 2>({4, axis::lane}, {1, axis::warp}, {1, axis::lane}, 1)));
constexpr bool composes(axis_layout const& a, axis_layout const& b) {
  axis_layout const c = a.compose(b);
  for (std::int64_t e = 0; e < b.size(); ++e)
    for (std::int64_t copy = 0; copy < a.copies(); ++copy)
      if (!(c.apply(e, copy) == a.apply(b.apply(e)[axis::m], copy))) return false;
  return c.size() == b.size() && c.copies() == a.copies();
}
static_assert(layout::S<8, 4>({1, axis::lane}, 1).compose(layout::S<4, 8>(1, 4)) == layout::S<4, 8>(1, {1, axis::lane}));
static_assert(composes(worked, layout::S<16, 8>(1, 16)) && composes(worked, layout::S<8, 4>(16, 2)) && composes(worked, layout::S<2, 3>(0, 16)));
static_assert(composes(layout::S<6, 10>({1, axis::warp}, 3), layout::S<3, 2, 5>(20, 10, 2)));
static_assert(layout::S<4, 8>(1, 4).compose(layout::S<4, 8>(1, 4).inverse()) == layout::S<32>(1));
TEST(buffer_layouts, layouts_without_inverse_or_composition) {
  auto inverts = [](axis_layout const& l) {
    try {
      return l.inverse().size() > 0;
    } catch (char const* why) {
      EXPECT_NE(std::string_view(why).find("R-LY01"), std::string_view::npos);
      return false;
    }
  };
  EXPECT_TRUE(inverts(layout::S<4, 8>(1, 4)));
  EXPECT_FALSE(inverts(layout::S<4, 8>(1, 5)));   // a gap
  EXPECT_FALSE(inverts(layout::S<4, 8>(1, 2)));   // two elements at a place
  EXPECT_FALSE(inverts(layout::S<4>(0)));
  EXPECT_FALSE(inverts(worked));
  EXPECT_FALSE(inverts(layout::S<4>(1) + layout::O{axis::m, 1}));
  auto fits = [](axis_layout const& a, axis_layout const& b) {
    try {
      return a.compose(b).size() > 0;
    } catch (char const* why) {
      EXPECT_NE(std::string_view(why).find("R-LY01"), std::string_view::npos);
      return false;
    }
  };
  EXPECT_TRUE(fits(layout::S<4, 8>(1, 4), layout::S<2, 8>(16, 1)));
  EXPECT_FALSE(fits(layout::S<4, 8>(1, 4), layout::S<12>(1)));             // 8 + 4: through the border of two digits
  EXPECT_FALSE(fits(layout::S<4, 8>(1, 4), layout::S<8>(8)));              // beyond its 32 elements
  EXPECT_FALSE(fits(layout::S<4, 8>(1, 4), layout::S<4, 2>(2, 4)));        // 6 + 4 would carry
  EXPECT_FALSE(fits(layout::S<4, 8>(1, 4), layout::S<4>({1, axis::lane}))); // places that are no elements
  EXPECT_FALSE(fits(layout::S<32>(1), worked));
}

/// Where thread t's register v of a register layout comes from.
constexpr int element(layout::register_map const& l, int t, int v) {
  int x = 0;
  for (int i = 0; i < register_layout::count(l.threads.list); ++i)
    if (t >> i & 1) x |= register_layout::bit(l.threads.list, i) < 0 ? 0 : 1 << register_layout::bit(l.threads.list, i);
  for (int i = 0; i < register_layout::count(l.values.list); ++i)
    if (v >> i & 1) x |= register_layout::bit(l.values.list, i) < 0 ? 0 : 1 << register_layout::bit(l.values.list, i);
  return x;
}
// On axes: the same as by hand.
static_assert([] {
  auto a = layout::registers(layout::S<4, 8>({1, axis::warp}, 1) + layout::R<32>({1, axis::lane}));
  auto b = layout::registers(layout::threads<32, 4>({0, 8}), layout::values<8>({1}));
  return a.threads.list == b.threads.list && a.values.list == b.values.list && !a.threads.incomplete;
}());
static_assert(layout::registers(layout::S<16, 4>({1, axis::lane}, 1)).threads.incomplete); // half of the lanes
static_assert(layout::registers(worked).threads.incomplete);                               // an offset
// Row-major; columns first; a XOR of row and column.
constexpr bool linear_map_is(buffer_layout const& l, auto place) {
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 16; ++j)
      if (l.slot(i * 16 + j) != place(i, j)) return false;
  return l.slot.bases == 7 && l.slot.cosize(128) == 128;
}
static_assert(linear_map_is(layout::shared_linear<8, 16>({{0, 1}, {0, 2}, {0, 4}, {0, 8}, {1, 0}, {2, 0}, {4, 0}}), [](int i, int j) { return i * 16 + j; }));
static_assert(linear_map_is(layout::shared_linear<8, 16>({{1, 0}, {2, 0}, {4, 0}, {0, 1}, {0, 2}, {0, 4}, {0, 8}}), [](int i, int j) { return j * 8 + i; }));
// Rows move the columns, too: offset bit 4 is row 1 and column 2, and so on: place (i, j) = 16 i + (j ^ 2 i).
constexpr auto crossed = layout::shared_linear<8, 16>({{0, 1}, {0, 2}, {0, 4}, {0, 8}, {1, 2}, {2, 4}, {4, 8}});
static_assert(linear_map_is(crossed, [](int i, int j) { return 16 * i + (j ^ 2 * i); }) && crossed.slot.run_log2() == 1);
static_assert(layout::shared_linear<8, 16>({{0, 1}, {0, 2}, {0, 4}, {0, 8}, {1, 0}, {2, 0}, {3, 0}}).slot.bases < 0); // rows 1, 2 and 3
static_assert(layout::shared_linear<8, 16>({{0, 1}, {0, 2}}).slot.bases < 0);
// wgmma: row 16 w + 8 (v / 2 % 2) + l / 4, column 8 (v / 4) + 2 (l % 4) + v % 2.
static_assert([] {
  constexpr auto l = layout::wgmma_acc<64>();
  for (int t = 0; t < 128; ++t)
    for (int v = 0; v < 32; ++v)
      if (element(l, t, v) != (16 * (t / 32) + 8 * (v / 2 % 2) + t % 32 / 4) * 64 + 8 * (v / 4) + 2 * (t % 4) + v % 2) return false;
  return true;
}());
// mfma 32x32: column l % 32, row 8 (v / 4) + 4 (l / 32) + v % 4; 16x16: row 4 (l / 16) + v.
static_assert([] {
  constexpr auto big = layout::mfma_acc<32, 32, 8>();
  constexpr auto small = layout::mfma_acc<16, 16, 16>();
  constexpr auto wide = layout::mfma_acc<4, 64, 4>();
  constexpr auto tall = layout::mfma_acc<64, 4, 4>();
  for (int l = 0; l < 64; ++l) {
    for (int v = 0; v < 16; ++v)
      if (element(big, l, v) != (8 * (v / 4) + 4 * (l / 32) + v % 4) * 32 + l % 32) return false;
    for (int v = 0; v < 4; ++v)
      if (element(small, l, v) != (4 * (l / 16) + v) * 16 + l % 16 || element(wide, l, v) != v * 64 + l || element(tall, l, v) != l * 4 + v) return false;
  }
  return register_layout::count(big.threads.list) == 6 && register_layout::count(big.values.list) == 4 && register_layout::count(wide.values.list) == 2;
}());
// wmma: version 1 alternates rows between the halves of a wave, 2 and 3 give each half eight.
static_assert([] {
  constexpr auto one = layout::wmma_acc<1>(), two = layout::wmma_acc<2>(), turned = layout::wmma_acc<3, 16, 16, true>();
  for (int l = 0; l < 32; ++l)
    for (int v = 0; v < 8; ++v)
      if (element(one, l, v) != (2 * v + l / 16) * 16 + l % 16 || element(two, l, v) != (8 * (l / 16) + v) * 16 + l % 16 || element(turned, l, v) != (l % 16) * 16 + 8 * (l / 16) + v) return false;
  return true;
}());
// The same one by one: two warps along the columns, every second instruction, then two along the rows.
static_assert([] {
  constexpr auto l = layout::amd_wmma<64, 64>({.version = 3, .transposed = false, .warp_bases = {{0, 2}, {2, 0}}, .reg_bases = {{0, 1}, {1, 0}}});
  for (int t = 0; t < 128; ++t)
    for (int v = 0; v < 32; ++v) {
      int const row = 8 * (t % 32 / 16) + v % 8 + 16 * (v / 16) + 32 * (t / 64), column = t % 16 + 16 * (v / 8 % 2) + 32 * (t / 32 % 2);
      if (element(l, t, v) != row * 64 + column) return false;
    }
  return layout::amd_wmma<16, 16>({.transposed = false}).values.list == layout::wmma_acc<3>().values.list && layout::amd_wmma<16, 16>({.version = 1}).threads.list == layout::wmma_acc<1, 16, 16, true>().threads.list;
}());
static_assert(layout::amd_wmma<64, 64>({.warp_bases = {{1, 1}}}).threads.bad_stride > 0);
// mma.sync m16n8k16, 16-bit: a: row l / 4 + 8 (v / 2 % 2), k 2 (l % 4) + v % 2 + 8 (v / 4); b: k 2 (l % 4) + v % 2 + 8 (v / 2), column l / 4.
static_assert([] {
  constexpr auto a = layout::dot_operand<0, layout::unit::mma, 2, 16, 16>();
  constexpr auto b = layout::dot_operand<1, layout::unit::mma, 2, 16, 8>();
  for (int l = 0; l < 32; ++l) {
    for (int v = 0; v < 8; ++v)
      if (element(a, l, v) != (l / 4 + 8 * (v / 2 % 2)) * 16 + 2 * (l % 4) + v % 2 + 8 * (v / 4)) return false;
    for (int v = 0; v < 4; ++v)
      if (element(b, l, v) != (2 * (l % 4) + v % 2 + 8 * (v / 2)) * 8 + l / 4) return false;
  }
  constexpr auto shared = layout::dot_operand<1, layout::unit::mma, 2, 16, 8>(4); // the same in four warps
  return element(shared, 37, 1) == element(b, 5, 1) && register_layout::count(shared.threads.list) == 7;
}());
// mfma 32x32x8, four along k: row l % 32, k 4 (l / 32) + v.
static_assert([] {
  constexpr auto a = layout::dot_operand<0, layout::unit::mfma32, 4, 32, 8>();
  for (int l = 0; l < 64; ++l)
    for (int v = 0; v < 4; ++v)
      if (element(a, l, v) != (l % 32) * 8 + 4 * (l / 32) + v) return false;
  return true;
}());

// -- what a thread holds ----------------------------------------------------------------------------------------------------------

// Row t of the view is what thread t holds, and the tile comes back from it.
template <layout::register_map L, int Rows, int Columns>
void expect_local_view() {
  static constexpr int threads = detail::threads_of<L>, registers = detail::registers_of<L>, elements = Rows * Columns;
  auto const g = record([](context& k, ptr<const i32> x, ptr<i32> y) {
    auto at = k.iota<0, Rows, Columns>() * Columns + k.iota<1, Rows, Columns>();
    auto v = load(x + at);
    auto mine = local<L>(v);
    static_assert(std::same_as<decltype(mine), tile<i32, threads, registers>>);
    auto place = k.iota<0, threads, registers>() * registers + k.iota<1, threads, registers>();
    store(y + place, mine);
    if constexpr (threads * registers == elements) {
      auto doubled = local<L, registers / 2, 2>(v) * 2 + expand_dims<1>(expand_dims<1>(k.arange<threads>()));
      store(y + threads * registers + at, from_local<L, Rows, Columns>(doubled));
    }
  });
  auto const in = numbers(elements);
  auto const out = run_everywhere(g, in, threads * registers == elements ? 2 * elements : threads * registers);
  for (int t = 0; t < threads; ++t)
    for (int v = 0; v < registers; ++v) {
      auto const from = static_cast<std::size_t>(element(L, t, v));
      ASSERT_EQ(out[static_cast<std::size_t>(t * registers + v)], in[from]) << t << " " << v;
      if (threads * registers == elements) {
        ASSERT_EQ(out[static_cast<std::size_t>(elements) + from], in[from] * 2 + t) << t << " " << v;
      }
    }
}
// The graph says of which version a layout is, for targets to refuse; there are three.
TEST(buffer_layouts, wmma_layouts_are_marked) {
  for (int version : {0, 1, 3, 4}) {
    recorder r;
    r.attrs.num_warps = 1;
    context k(r);
    auto x = require_amd_wmma_layout(k, k.zeros<f32, 16, 16>(), {.version = version});
    if (version == 1 || version == 3) {
      ASSERT_TRUE(r.error.ok()) << r.error.text;
      EXPECT_EQ(r.view().attribute(x.node_, 0), 1 + version);
    } else {
      EXPECT_EQ(std::string(r.error.text), "kiln[R-LY01] wmma layouts have the versions 1 to 3 (got " + std::to_string(version) + ")");
    }
  }
}

TEST(buffer_layouts, what_a_thread_holds) {
  expect_local_view<layout::mma_accumulator<64, 64>(4), 64, 64>();
  expect_local_view<layout::registers(layout::threads<32, 4>({128, 1}), layout::values<16, 2>({4, 64})), 64, 64>();
  expect_local_view<layout::registers(layout::threads<32, 4>({8, 256}), layout::values<8>({1})), 4, 256>();
  expect_local_view<layout::dot_operand<1, layout::unit::mma, 2, 16, 8>(4), 16, 8>();                                     // the same in four warps
  expect_local_view<layout::registers(layout::threads<32, 4>({0, 8}), layout::values<8>({1})), 2, 16>();                  // the same in all lanes
  expect_local_view<layout::registers(layout::threads<8, 4, 4>({1, 0, 16}), layout::values<2, 2>({0, 8})), 4, 16>(); // and some registers twice
}

// -- tensor memory by hand --------------------------------------------------------------------------------------------------------

TEST(buffer_layouts, a_pool_of_tensor_memory) {
  auto g = record([](context& k, ptr<const i32> x, ptr<i32> y) {
    auto pool = k.smem_pool({.name = "pool"});
    auto tp = k.tmem_pool(pool, {.total_cols = 128, .name = "tp"});
    auto a = tp.alloc<i32, 128, 32>({.name = "a"});
    auto h = tp.alloc<i16, 64, 64>({.name = "h"}); // 32 columns
    int const mark = tp.cursor();
    auto d = tp.alloc_mma_d<i32, 128, 64>({.name = "d"});
    pool.commit();
    tp.commit();
    auto at = k.iota<0, 128, 32>() * 32 + k.iota<1, 128, 32>();
    k.local_store(a, load(x + at));
    k.local_store(d, k.full<i32, 128, 64>(5));
    store(y + at, k.local_load(a));
    k.local_store(h, k.full<i16, 64, 64>(3));
    store(y + 4096, reduce<sum>(k.local_load(d)) + reduce<sum>(cast<i32>(k.local_load(h))));
    tp.dealloc();
    k.let(mark);
  });
  EXPECT_EQ(g.buffers[3].place.offset, 0);
  EXPECT_EQ(g.buffers[4].place.offset, 32);
  EXPECT_EQ(g.buffers[5].place.offset, 64);
  auto const in = numbers(4096);
  auto const out = run_everywhere(g, in, 4097);
  for (std::size_t i = 0; i < 4096; ++i) ASSERT_EQ(out[i], in[i]);
  EXPECT_EQ(out[4096], 128 * 64 * 5 + 64 * 64 * 3);
}
// Where a datapath puts row and column.
static_assert(place_in_tensor_memory(datapath::D, 128, 64, 127, 5) == tensor_place{127, 5});
static_assert(place_in_tensor_memory(datapath::F, 64, 32, 17, 3) == tensor_place{33, 3});
static_assert(place_in_tensor_memory(datapath::F, 64, 32, 0, 3, 1) == tensor_place{16, 3} && place_in_tensor_memory(datapath::F, 64, 32, 63, 31, 1) == tensor_place{127, 31});
static_assert(place_in_tensor_memory(datapath::B, 64, 32, 5, 3) == tensor_place{5, 3} && place_in_tensor_memory(datapath::B, 64, 32, 5, 20) == tensor_place{69, 4});
static_assert(place_in_tensor_memory(datapath::scale, 128, 8, 33, 5) == tensor_place{1, 4 + 16 + 1});
// Columns of factors: 128 rows of 8, four to a column; of 6, which do not fill their columns; reused ones take none.
static_assert(detail::columns_reached(detail::scale_layout(1, 128, 8)) == 32 && detail::columns_reached(detail::scale_layout(1, 128, 6)) == 8 * 3 + 6);
static_assert(detail::columns_reached(detail::scale_layout(1, 128, 8, 1, 4)) == 14 && detail::columns_reached(detail::scale_layout(2, 64, 8, 4, 1)) == 32);
static_assert([] { // every element has a place of its own
  for (datapath d : {datapath::F, datapath::B, datapath::scale}) {
    bool used[128 * 32]{};
    for (int r = 0; r < 64; ++r)
      for (int c = 0; c < 8; ++c) {
        tensor_place const p = place_in_tensor_memory(d, 64, 8, r, c);
        if (used[p.lane * 32 + p.column]) return false;
        used[p.lane * 32 + p.column] = true;
      }
  }
  return true;
}());

// Two halves of the lanes in the same columns; halves of the columns in two halves of the lanes; factors.
constexpr auto datapaths = [](context& k, ptr<const i32> x, ptr<i32> y, int slab) {
  auto pool = k.smem_pool({.name = "pool"});
  auto tp = k.tmem_pool(pool, {.total_cols = 128, .name = "tp"});
  auto low = tp.alloc_mma_d<i32, 64, 32>({.m = 64, .name = "low"});
  tp.move_base_to(0);
  auto high = tp.alloc<i32, 64, 32>({.layout = datapath::F, .sub_slab = slab, .name = "high"});
  auto folded = tp.alloc_mma_d<i32, 64, 32>({.m = 64, .weight_stationary = true, .name = "folded"}); // 16 columns
  int const mark = tp.cursor();
  auto factors = tp.alloc_scale<u8, 2, 64, 8>({.per_mma = 2, .name = "factors"}); // 8 columns
  auto operand = tp.alloc_mma_a<i16, 64, 32>({.m = 64, .name = "operand"});
  pool.commit();
  tp.commit();
  auto at = k.iota<0, 64, 32>() * 32 + k.iota<1, 64, 32>();
  k.local_store(low, load(x + at));
  k.local_store(high, load(x + at) + 1);
  k.local_store(folded, load(x + at) + 2);
  auto of_factors = k.iota<0, 2, 64, 8>() * 512 + k.iota<1, 2, 64, 8>() * 8 + k.iota<2, 2, 64, 8>();
  k.local_store(factors, cast<u8>(of_factors & 255));
  k.local_store(operand, cast<i16>(at));
  store(y + at, k.local_load(low));
  store(y + 2048 + at, k.local_load(high));
  store(y + 4096 + at, k.local_load(folded));
  store(y + 6144 + of_factors, cast<i32>(k.local_load(factors)));
  auto part = k.iota<0, 64, 8>() * 8 + k.iota<1, 64, 8>();
  store(y + 7168 + part, k.local_load(k.subslice<8>(low, 16))); // columns of F follow each other
  store(y + 7680 + part, cast<i32>(k.local_load(k.subslice<8>(operand, 8))));
  tp.dealloc();
  k.let(mark);
};
TEST(buffer_layouts, datapaths_of_tensor_memory) {
  auto g = record([](context& k, ptr<const i32> x, ptr<i32> y) { datapaths(k, x, y, 1); });
  EXPECT_EQ(g.buffers[5].place.offset, 32); // folded, behind the shared columns
  EXPECT_EQ(g.buffers[6].place.offset, 48);
  EXPECT_EQ(g.buffers[7].place.offset, 56);
  auto const in = numbers(2048);
  auto const out = run_everywhere(g, in, 8192);
  for (std::size_t i = 0; i < 2048; ++i) {
    ASSERT_EQ(out[i], in[i]);
    ASSERT_EQ(out[2048 + i], in[i] + 1);
    ASSERT_EQ(out[4096 + i], in[i] + 2);
  }
  for (std::size_t i = 0; i < 1024; ++i) ASSERT_EQ(out[6144 + i], static_cast<i32>(i & 255));
  for (std::size_t r = 0; r < 64; ++r)
    for (std::size_t c = 0; c < 8; ++c) {
      ASSERT_EQ(out[7168 + r * 8 + c], in[r * 32 + 16 + c]);
      ASSERT_EQ(out[7680 + r * 8 + c], static_cast<i32>(r * 32 + 8 + c));
    }
  // The same half twice is one buffer over the other.
  auto over = record([](context& k, ptr<const i32> x, ptr<i32> y) { datapaths(k, x, y, 0); });
  EXPECT_TRUE(validate(over).view().starts_with("kiln[R-PA15] low (64 B) is read") || validate(over).view().starts_with("kiln[R-PA15] low (")) << validate(over).text;
}
// 8-bit integers in tensor memory are scale factors: four to a column, 32 rows beside each other.
TEST(buffer_layouts, scale_factors_of_local_alloc) {
  auto g = record([](context& k, ptr<const i32> x, ptr<i32> y) {
    auto s = k.local_alloc<u8, 96, 6>(1, {.storage = storage::tmem, .name = "s"});
    auto two = k.local_alloc<i8, 2, 32, 4>(1, {.storage = storage::tmem, .name = "two"});
    auto at = k.iota<0, 96, 6>() * 6 + k.iota<1, 96, 6>();
    auto of_two = k.iota<0, 2, 32, 4>() * 128 + k.iota<1, 2, 32, 4>() * 4 + k.iota<2, 2, 32, 4>();
    k.local_store(s[0], cast<u8>(load(x + at)));
    k.local_store(two[0], cast<i8>(load(x + of_two)));
    store(y + at, cast<i32>(k.local_load(s[0])));
    store(y + 576 + of_two, cast<i32>(k.local_load(two[0])));
  });
  graph_view const v = g;
  EXPECT_EQ(detail::storage_bytes(v, 0), 4 * 3 * 2); // ceil(96 / 32) * ceil(6 / 4) columns
  EXPECT_EQ(detail::storage_bytes(v, 1), 4 * 2);
  std::vector<i32> in(576);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<i32>(i * 7 % 120);
  auto const out = run_everywhere(g, in, 832);
  for (std::size_t i = 0; i < 576; ++i) ASSERT_EQ(out[i], in[i]);
  for (std::size_t i = 0; i < 256; ++i) ASSERT_EQ(out[576 + i], in[i]);
}
// Within one agent the order of the text decides, and the kernel is refused (compile_fail/layouts.cpp); of tasks a run shows it.
TEST(buffer_layouts, tensor_memory_outside_of_its_life) {
  auto faults = [](graph_view g) {
    EXPECT_TRUE(validate(g).ok()) << validate(g).text;
    guarded<i32> y(1);
    ip::report const r = ip::run_all_policies(g, {1}, std::vector<ip::host_argument>{y}, {.seeds = 20});
    EXPECT_TRUE(r.has("R-PA17"));
    return r.text();
  };
  auto early = record([](context& k, ptr<i32> y) {
    auto pool = k.smem_pool();
    auto tp = k.tmem_pool(pool, {.total_cols = 32});
    auto a = tp.alloc<i32, 128, 32>({.name = "a"});
    pool.commit();
    auto done = k.alloc_barriers(1, {.name = "done"});
    k.async_tasks(k.task_default({},
                                 [&] {
                                   k.local_store(a, k.zeros<i32, 128, 32>());
                                   store(y, reduce<sum>(k.local_load(a)));
                                   k.barrier_arrive(done[0]);
                                 }),
                  k.task({.num_warps = 4}, [&] {
                    tp.commit();
                    k.barrier_wait(done[0], 0);
                    tp.dealloc();
                  }));
  });
  EXPECT_NE(faults(early).find("a is touched before its pool is committed"), std::string::npos) << faults(early);
  auto late = record([](context& k, ptr<i32> y) {
    auto pool = k.smem_pool();
    auto tp = k.tmem_pool(pool, {.total_cols = 32});
    auto a = tp.alloc<i32, 128, 32>({.name = "a"});
    pool.commit();
    auto ready = k.alloc_barriers(1, {.name = "ready"});
    k.async_tasks(k.task_default({},
                                 [&] {
                                   tp.commit();
                                   k.barrier_arrive(ready[0]);
                                   tp.dealloc(); // before the other has done with it
                                 }),
                  k.task({.num_warps = 4}, [&] {
                    k.barrier_wait(ready[0], 0);
                    k.local_store(a, k.zeros<i32, 128, 32>());
                    store(y, reduce<sum>(k.local_load(a)));
                  }));
  });
  EXPECT_NE(faults(late).find("gave its columns back"), std::string::npos) << faults(late);
}

} // namespace
