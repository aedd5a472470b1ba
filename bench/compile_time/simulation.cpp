// The pipelines whose simulation is measured (simulation.py), as constants: -DCOPIES=n times -DKERNEL=name, recorded only, or
// with -DVALIDATED recorded and validated. As a program, without these: what the simulation of each did.
#include <kiln/kernel.hpp>

#include "tests/support/pipelines.hpp"
#include "tests/support/suspicious_kernels.hpp"

#include <cstdio>

using namespace kiln;

template <int>
inline constexpr auto matrix_product = kernel<"matrix_product">([](context& k, ptr<const f16> x, ptr<f16> y, val<i32> n) { kiln_test::pipelines::matrix_product(k, x, y, n); });
template <int>
inline constexpr auto ping_pong = kernel<"ping_pong">([](context& k, ptr<const f16> x, ptr<f16> y, val<i32> n) { kiln_test::pipelines::ping_pong(k, x, y, n); });
template <int>
inline constexpr auto attention = kernel<"attention">([](context& k, ptr<const f16> x, ptr<f16> y, val<i32> n) { kiln_test::pipelines::attention(k, x, y, n); });
template <int>
inline constexpr auto cp_async = kernel<"cp_async">([](context& k, ptr<const f16> x, ptr<f16> y, val<i32> n) { kiln_test::pipelines::cp_async(k, x, y, n); });
/// Loads under conditions: `i + 3 < n`.
template <int>
inline constexpr auto cp_ring = kernel<"cp_ring">([](context& k, ptr<const f32> x, ptr<f32> y, val<i32> n) { kiln_test::suspicious::cp_ring(k, x, y, n); });
/// Eight tasks, twelve buffers.
template <int>
inline constexpr auto many_readers = kernel<"many_readers">([](context& k, ptr<const f16> x, ptr<f16> y, val<i32> n) { kiln_test::pipelines::many_readers<12>(k, x, y, n); });

#ifdef KERNEL
template <int... I>
constexpr bool each_of(std::integer_sequence<int, I...>) {
#ifdef VALIDATED
  return ((KERNEL<I>.ok && KERNEL<I>.verified) && ...);
#else
  return ((KERNEL<I>.graph().size() > 0) && ...);
#endif
}
static_assert(each_of(std::make_integer_sequence<int, COPIES>{}));
#else
template <class Kernel>
void report(char const* name, Kernel const& k) {
  simulation const s = simulate(k.graph());
  std::printf("%s %d %d %d %d%s\n", name, k.graph().size(), s.events, s.runs, s.passes, s.complete ? "" : " incomplete");
}
int main() {
  report("matrix_product", matrix_product<0>);
  report("ping_pong", ping_pong<0>);
  report("attention", attention<0>);
  report("cp_async", cp_async<0>);
  report("cp_ring", cp_ring<0>);
  report("many_readers", many_readers<0>);
}
#endif
