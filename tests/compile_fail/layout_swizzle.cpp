// A swizzle whose source and target bits overlap would not be its own inverse.
// expect-error: a swizzle<B, M, S> needs S >= B
#include "kiln/layout/swizzle.hpp"

#ifdef TWIN
inline constexpr auto layout = kiln::swizzle_layout(3, 3, 3, 10);
#else
inline constexpr auto layout = kiln::swizzle_layout(3, 3, 2, 10); // expect-line
#endif
