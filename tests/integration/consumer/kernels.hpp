// A kernel that two translation units record, each with its own compiler in one of the tests.
#pragma once
#include <kiln/kiln.hpp>

namespace consumer {
using namespace kiln;

template <int Block>
inline constexpr auto add = kernel<"add", Block>([](context& k, ptr<const f32> x, ptr<const f32> y, ptr<f32> z, val<i64> n) {
  auto i = k.program_id<i64>(0) * Block + k.arange<Block>();
  auto in = i < n;
  store(z + i, load(x + i, {.mask = in}) + load(y + i, {.mask = in}), {.mask = in});
});
static_assert(add<64>.ok);

} // namespace consumer
