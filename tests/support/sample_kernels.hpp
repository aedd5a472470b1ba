// Recorded kernels that between them use every part of the text form. Tests that compare hashes with constants rely on
// them: a change here changes those constants.
#pragma once
#include <kiln/kernel.hpp>

#include <array>

namespace kiln_test {
using namespace kiln;

inline constexpr auto scale = kernel<"scale">([](context& k, ptr<const f32> x, ptr<f32> y, val<i32> n) {
  auto i = k.arange<64>();
  store(y + i, load(x + i, {.mask = i < n}) * 2.f, {.mask = i < n});
});

inline constexpr auto row_softmax = kernel<"row_softmax", attributes{.num_warps = 8, .contract = true}>([](context& k, array<const bf16, 2> x, array<bf16, 2> y) {
  auto row = k.program_id(0);
  auto top = k.var(k.full<f32>(-inf)), sum_e = k.var(k.full<f32>(0));
  for (auto c : k.range(0, x.extent(1), 128)) {
    auto v = cast<f32>(load(x.region(at(row, c), extent<1, 128>), {.other = -inf, .evict = evict::last}));
    auto m = max(top, reduce<max>(v, {.nan = nan_mode::propagate}));
    sum_e = sum_e * exp(top - m, {.fast = true}) + reduce<sum>(exp(v - m));
    top = m;
  }
  for (auto c : k.range(0, x.extent(1), 128)) {
    auto v = cast<f32>(load(x.region(at(row, c), extent<1, 128>)));
    store(y.region(at(row, c), extent<1, 128>), cast<bf16>(exp(v - top) / sum_e), {.cache = cache::wb});
  }
});

inline constexpr auto ring = kernel<"ring", attributes{.num_warps = 8, .cluster = {2, 1, 1}, .no_alias = true}>([](context& k, array<const f16, 2> a, array<const f16, 2> b, array<f16, 2> c) {
  auto [m, n] = k.program_tile(c.shape(), tile_size<64, 32>, {.group = 8});
  auto as = k.local_alloc<f16, 64, 32>(3, {.align = 256, .name = "as"});
  auto bs = k.local_alloc<f16, 32, 32>(3, {.name = "b\"s\\"});
  auto acc = k.var(k.zeros<f32, 64, 32>());
  auto steps = ceil_div(a.extent(1), 32);
  auto fetch = [&](auto i) {
    k.when(i < steps, [&] {
      k.async_load(a.region(at(m, i * 32), extent<64, 32>), as[i % 3], {.other = 0, .cache = cache::cg});
      k.async_load(b.region(at(i * 32, n), extent<32, 32>), bs[i % 3], {.other = 0});
    });
    k.async_load_commit_group();
  };
  for (int i = 0; i < 2; ++i) fetch(k.let(i));
  for (auto i : k.range(0, steps)) {
    auto ready = k.async_load_wait_group(1);
    acc = k.dot(k.local_load(as[i % 3], {.wait = ready}), bs[i % 3], acc);
    fetch(i + 2);
  }
  store(c.region(at(m, n), extent<64, 32>), cast<f16>(acc));
});

inline constexpr auto assorted = kernel<"assorted \"ops\"\n">([](context& k, ptr<f32> p, ptr<u64> counts, val<i32> n, val<bool> flag) {
  auto x = k.arange<32>();
  auto v = k.var(x);
  v += n;
  auto y = where((x == n) || !(x == x), x, -x);
  k.when(n > 3, [&] { v = y; }, [&] { v = 7; });
  k.when(flag, [&] { v = x; });
  k.loop_while([&] { return reduce<sum>(v) < 100; }, [&] { v += 1; });
  auto [a, b] = split(join(x, y));
  auto r = reduce<0>(a, [](auto l, auto r) { return l * r; });
  auto best = reduce<0>(a, b, [](auto a0, auto a1, auto b0, auto b1) {
    auto left = a0 > b0;
    return pair_of{where(left, a0, b0), where(left, a1, b1)};
  });
  store(p + x, cast<f32>(v + r + best.second + cumsum(a, {.reverse = true}) + argmax(b) + gather<0>(x, y)));
  atomic_add(p + x, 1.f, {.order = memory_order::acq_rel, .scope = memory_scope::system});
  atomic_max(counts + x, 1, {.mask = x > 4});
  atomic_cas(counts, 1, 2);
  auto wide = k.full<f32, 16, 32>(0.1f);
  auto d = k.dot(wide, trans(wide));
  store(p + k.iota<0, 16, 16>() * 16 + k.iota<1, 16, 16>(), exp(d) + reduce<max, 1, keep>(wide));
  auto s = k.alloc_shared<i16, 4, 8>({.scope = scope::shared_static, .name = "s"});
  k.local_store(s, cast<i16>(k.iota<1, 4, 8>()));
  k.sync();
  auto t = k.local_slice<8, 2>(k.local_trans(s), {0, 2});
  k.local_scatter(t, cast<i16>(k.iota<0, 8, 2>()), k.iota<0, 8, 2>(), {.axis = 0, .unique = false});
  k.device_print("s\tis", k.local_load(k.local_reshape<16>(k.local_slice<8, 2>(k.local_trans(s), {0, 2}))), n);
  k.device_assert(x < multiple_of<4>(max_contiguous<8>(x)) + 5, "never \"mind\"");
  k.assume(n > 0);
  auto f = k.full<f8e4m3, 2>(1.75f);
  auto e = k.full<f16, 3>(-65504.f);
  auto c64 = k.full<f64>(1.0 / 3), c32 = k.full<f64>(-0.0);
  auto u = k.full<u64>(~0ull);
  k.device_print("", cast<f32>(f), e, c64 + c32, u, bitcast<f32>(k.full<u32>(0x7fc00001u)), k.full<f32>(inf), k.full<bool>(true));
});

static_assert(scale.ok && row_softmax.ok && ring.ok && assorted.ok);

/// All of them.
inline auto sample_graphs() { return std::array{scale.graph(), row_softmax.graph(), ring.graph(), assorted.graph()}; }

} // namespace kiln_test
