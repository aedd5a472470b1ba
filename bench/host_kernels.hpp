// The row kernels that the benchmarks of the host share, and what a launch of them knows.
#pragma once
#include <kiln/graph/specialisation.hpp>
#include <kiln/kiln.hpp>

namespace kiln_bench {

using namespace kiln;

inline constexpr int n = 4096;

inline constexpr auto vadd = kernel<"vadd">([](context& k, ptr<const f32> x, ptr<const f32> y, ptr<f32> z, val<i64> size) {
  auto i = k.program_id<i64>(0) * n + k.arange<n>();
  auto in = i < size;
  store(z + i, load(x + i, {.mask = in}) + load(y + i, {.mask = in}), {.mask = in});
});
template <class T>
inline constexpr auto softmax = kernel<"softmax">([](context& k, array<const T, 2> x, array<T, 2> y) {
  auto row = k.program_id(0);
  auto v = cast<f32>(load(x.region(at(row, 0), extent<1, n>)));
  auto e = exp(v - reduce<max>(v));
  store(y.region(at(row, 0), extent<1, n>), cast<T>(e / reduce<sum>(e)));
});
template <class T>
inline constexpr auto layernorm = kernel<"layernorm">([](context& k, array<const T, 2> x, array<T, 2> y) {
  auto row = k.program_id(0);
  auto v = cast<f32>(load(x.region(at(row, 0), extent<1, n>)));
  auto mean = reduce<sum>(v) / static_cast<float>(n);
  auto d = v - mean;
  auto scale = rsqrt(reduce<sum>(d * d) / static_cast<float>(n) + 1e-5f);
  store(y.region(at(row, 0), extent<1, n>), cast<T>(d * scale));
});
inline constexpr auto gather_rows = kernel<"gather_rows">([](context& k, ptr<const f32> table, ptr<const i64> index, ptr<f32> y, val<i64> columns) {
  auto row = k.program_id<i64>(0);
  auto from = load(index + row);
  auto i = k.arange<n>();
  auto in = i < columns;
  store(y + row * columns + i, load(table + from * columns + i, {.mask = in}), {.mask = in});
});
inline constexpr auto transpose = kernel<"transpose">([](context& k, array<const f32, 2> x, array<f32, 2> y) {
  auto r = k.program_id(1) * 64, c = k.program_id(0) * 64;
  store(y.region(at(c, r), extent<64, 64>), trans(load(x.region(at(r, c), extent<64, 64>))));
});

/// What a launch knows: row-major arrays of multiples of 16, with 64-byte aligned pointers.
inline specialisation facts_of(graph_view g) {
  specialisation s = specialisation::generic(g);
  for (auto& p : s.params) {
    p.alignment = 64;
    p.stride[1] = {true, 1, 1};
  }
  return s;
}

} // namespace kiln_bench
