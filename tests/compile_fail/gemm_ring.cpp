// expect-error: kiln[R-HZ01] as[i0 % 4] (4096 B) is read (gemm_ring.cpp:{line}) before the async_load of line {line-12} is known complete; wait for at most 2 pending groups
#include <kiln/kernel.hpp>
using namespace kiln;

template <int BM, int BN, int BK, int S>
inline constexpr auto gemm_ring = kernel<"gemm_ring", attributes{.num_warps = 8}, BM, BN, BK, S>([](context& k, array<const f16, 2> a,
                                                                                                    array<const f16, 2> b, array<f16, 2> c) {
  auto [m, n] = k.program_tile(c.shape(), tile_size<BM, BN>, {.group = 8});
  auto as = k.local_alloc<f16, BM, BK>(S, {.name = "as"});
  auto bs = k.local_alloc<f16, BK, BN>(S, {.name = "bs"});
  auto acc = k.var(k.zeros<f32, BM, BN>());
  auto steps = ceil_div(a.extent(1), BK);
  int const pending = S - 2;
  auto fetch = [&](auto i) {
    k.when(i < steps, [&] {
      k.async_load(a.region(at(m, i * BK), extent<BM, BK>), as[i % S], {.other = 0});
      k.async_load(b.region(at(i * BK, n), extent<BK, BN>), bs[i % S], {.other = 0});
    });
    k.async_load_commit_group();
  };
  for (int i = 0; i < S - 1; ++i) fetch(k.let(i));
  for (auto i : k.range(0, steps)) {
#ifdef TWIN
    k.async_load_wait_group(pending);
    acc = k.dot(as[i % S], bs[i % S], acc);
#else
    k.async_load_wait_group(pending + 1);
    acc = k.dot(as[i % S], bs[i % S], acc); // expect-line
#endif
    fetch(i + (S - 1));
  }
  store(c.region(at(m, n), extent<BM, BN>), cast<f16>(acc));
});
void use() { gemm_ring<64, 64, 32, 4>.check(); }
#ifdef TWIN
static_assert(gemm_ring<64, 64, 32, 4>.verified && gemm_ring<64, 64, 32, 4>.notes().empty());
#endif
