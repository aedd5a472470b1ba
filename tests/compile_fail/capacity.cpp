// Kernels that do not fit the target that they are checked for.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: shared
// expect-error: kiln[R-CP01] sm_90a: shared memory 262144 B > 232448 B: x 4 x 65536
#if defined(TWIN) || defined(CASE_shared)
#ifdef TWIN
constexpr int slots = 3;
#else
constexpr int slots = 4;
#endif
template <int Slots>
inline constexpr auto shared = kernel<"shared", Slots>([](context& k, ptr<f32> p) {
  auto x = k.local_alloc<f32, 128, 128>(Slots, {.name = "x"}); // expect-line
  k.local_store(x[0], k.zeros<f32, 128, 128>());
  store(p + k.iota<0, 128, 128>() * 128 + k.iota<1, 128, 128>(), k.local_load(x[0]));
});
void use_shared() { shared<slots>.check_for<targets::sm_90a>(); }
static_assert(shared<4>.ok && !shared<4>.fits(targets::sm_90a) && shared<3>.fits(targets::sm_90a) && !shared<3>.fits(targets::gfx942));
#endif

// case: static_memory
// expect-error: kiln[R-CP02] sm_80: static shared memory 65536 B > 49152 B; use scope::shared_dyn: alloc_shared@{line} 1 x 65536
#if defined(TWIN) || defined(CASE_static_memory)
inline constexpr auto static_memory = kernel<"static_memory">([](context& k, ptr<f32> p) {
#ifdef TWIN
  auto x = k.alloc_shared<f32, 128, 128>();
#else
  auto x = k.alloc_shared<f32, 128, 128>({.scope = scope::shared_static}); // expect-line
#endif
  k.local_store(x, k.zeros<f32, 128, 128>());
  store(p + k.iota<0, 128, 128>() * 128 + k.iota<1, 128, 128>(), k.local_load(x));
});
void use_static_memory() { static_memory.check_for<targets::sm_80>(); }
#endif

// case: threads
// expect-error: kiln[R-CP08] gfx942: 32 warps = 2048 threads, valid 1..1024; change attributes{.num_warps}
#if defined(TWIN) || defined(CASE_threads)
#ifdef TWIN
constexpr attributes warps{.num_warps = 16};
#else
constexpr attributes warps{.num_warps = 32};
#endif
inline constexpr auto threads = kernel<"threads", warps>([](context& k, ptr<f32> p) {
  store(p + k.arange<64>(), 1.f);
});
void use_threads() { threads.check_for<targets::gfx942>(); } // expect-line
#endif

// case: cluster
// expect-error: kiln[R-CP11] sm_80: a cluster of 2 CTAs; this target has no clusters
#if defined(TWIN) || defined(CASE_cluster)
inline constexpr auto cluster = kernel<"cluster", attributes{.cluster = {2, 1, 1}}>([](context& k, ptr<f32> p) {
  store(p + k.arange<64>(), 1.f);
});
#ifdef TWIN
void use_cluster() { cluster.check_for<targets::sm_90a>(); }
#else
void use_cluster() { cluster.check_for<targets::sm_80>(); } // expect-line
#endif
#endif

// case: tensor_memory
// expect-error: kiln[R-CP05] acc: gfx942 has no tensor memory; use storage::smem
#if defined(TWIN) || defined(CASE_tensor_memory)
inline constexpr auto tensor_memory = kernel<"tensor_memory">([](context& k, ptr<f32> p) {
#ifdef TWIN
  auto acc = k.local_alloc<f32, 128, 32>(1, {.name = "acc"});
#else
  auto acc = k.local_alloc<f32, 128, 32>(1, {.storage = storage::tmem, .name = "acc"}); // expect-line
#endif
  k.local_store(acc[0], k.zeros<f32, 128, 32>());
  store(p + k.iota<0, 128, 32>() * 32 + k.iota<1, 128, 32>(), k.local_load(acc[0]));
});
void use_tensor_memory() { tensor_memory.check_for<targets::gfx942>(); }
#endif
