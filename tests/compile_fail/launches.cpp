// Launches and grids that do not fit the kernel.
#include <kiln/kernel.hpp>
using namespace kiln;

inline constexpr auto fill = kernel<"fill">([](context& k, ptr<f32> p, val<f32> x) { store(p + k.arange<64>(), x); });
inline constexpr auto with_grid = kernel<"with_grid">([](context& k, ptr<f32> p) { store(p + k.program_id(0), 1.f); }, [](int n) { return grid(n); });

// case: arguments
// expect-error: kiln[K-11] a launch needs one argument per kernel parameter (the context is not one)
#if defined(TWIN) || defined(CASE_arguments)
void launch(stream const& s, float* p) {
#ifdef TWIN
  fill.launch(s, grid(1), p, 1.f);
#else
  fill.launch(s, grid(1), p); // expect-line
#endif
}
#endif

// case: no_grid
// expect-error: kiln[K-12] this kernel has no grid function
#if defined(TWIN) || defined(CASE_no_grid)
#ifdef TWIN
inline constexpr auto ctas = with_grid.grid(4);
#else
inline constexpr auto ctas = fill.grid(4); // expect-line
#endif
#endif
