// A layout is made of bits, so the number of warps has to be a power of two.
// expect-error: a layout needs a power of two of warps
#include "kiln/layout/blocked.hpp"

#ifdef TWIN
inline constexpr auto layout = kiln::default_blocked_layout({64, 64}, {.num_warps = 4});
#else
inline constexpr auto layout = kiln::default_blocked_layout({64, 64}, {.num_warps = 3}); // expect-line
#endif
