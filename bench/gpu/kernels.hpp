// The kernels that are timed on a GPU: tile programs as a user would write them, each with the number of warps and the
// tile that suits its shape.
#pragma once
#include <kiln/kiln.hpp>

#include <utility>

namespace kiln_bench {

using namespace kiln;

// -- streams: one piece a CTA, in the order of memory
// -----------------------------------------------------------------

template <class T, int Block, int Warps>
inline constexpr auto copy = kernel<"copy", attributes{.num_warps = Warps}, Block>(
    [](context& k, ptr<const T> x, ptr<T> y, val<i64> n) {
      auto i = k.program_id<i64>(0) * Block + k.arange<Block>();
      store(y + i, load(x + i, {.mask = i < n}), {.mask = i < n});
    });

template <class T, int Block, int Warps>
inline constexpr auto fill = kernel<"fill", attributes{.num_warps = Warps}, Block>(
    [](context& k, ptr<T> y, val<T> value, val<i64> n) {
      auto i = k.program_id<i64>(0) * Block + k.arange<Block>();
      store(y + i, value, {.mask = i < n});
    });

template <class T, int Block, int Warps>
inline constexpr auto vector_add = kernel<"vector_add", attributes{.num_warps = Warps}, Block>(
    [](context& k, ptr<const T> x, ptr<const T> y, ptr<T> z, val<i64> n) {
      auto i = k.program_id<i64>(0) * Block + k.arange<Block>();
      auto in = i < n;
      store(z + i, load(x + i, {.mask = in}) + load(y + i, {.mask = in}), {.mask = in});
    });

// -- rows: one CTA a row, the row in registers
// -----------------------------------------------------------------

template <class T, int Columns, int Warps>
inline constexpr auto softmax = kernel<"softmax", attributes{.num_warps = Warps, .fast_math = true}, Columns>(
    [](context& k, ptr<const T> x, ptr<T> y) {
      auto i = k.program_id<i64>(0) * Columns + k.arange<Columns>();
      auto v = cast<f32>(load(x + i));
      auto e = exp(v - reduce<max>(v));
      store(y + i, cast<T>(e / reduce<sum>(e)));
    });

// Long rows: nothing but the row itself is kept across the reductions; the exponentials are computed twice.
template <class T, int Columns, int Warps>
inline constexpr auto softmax_twice = kernel<"softmax_twice", attributes{.num_warps = Warps, .fast_math = true}, Columns>(
    [](context& k, ptr<const T> x, ptr<T> y) {
      auto i = k.program_id<i64>(0) * Columns + k.arange<Columns>();
      auto v = cast<f32>(load(x + i));
      constexpr float log2_e = 1.44269504f;
      auto top = reduce<max>(v) * log2_e;
      auto low = top + log2(reduce<sum>(exp2(fma(v, log2_e, -top))));
      store(y + i, cast<T>(exp2(fma(v, log2_e, -low))));
    });

template <class T, int Columns, int Warps>
inline constexpr auto rmsnorm = kernel<"rmsnorm", attributes{.num_warps = Warps, .no_alias = true}, Columns>(
    [](context& k, ptr<const T> x, ptr<const T> weight, ptr<T> y, val<f32> eps) {
      auto c = k.arange<Columns>();
      auto i = k.program_id<i64>(0) * Columns + c;
      auto v = cast<f32>(load(x + i));
      auto scale = rsqrt(reduce<sum>(v * v) / static_cast<float>(Columns) + eps, {.fast = true});
      store(y + i, cast<T>(v * scale * cast<f32>(load(weight + c))));
    });

template <class T, int Columns, int Warps>
inline constexpr auto layernorm = kernel<"layernorm", attributes{.num_warps = Warps, .no_alias = true}, Columns>(
    [](context& k, ptr<const T> x, ptr<const T> weight, ptr<const T> bias, ptr<T> y, val<f32> eps) {
      auto c = k.arange<Columns>();
      auto i = k.program_id<i64>(0) * Columns + c;
      auto v = cast<f32>(load(x + i));
      auto mean = reduce<sum>(v) / static_cast<float>(Columns);
      auto off = v - mean;
      auto scale = rsqrt(reduce<sum>(off * off) / static_cast<float>(Columns) + eps, {.fast = true});
      store(y + i, cast<T>(fma(off * scale, cast<f32>(load(weight + c)), cast<f32>(load(bias + c)))));
    });

// The same with weights that are on their way while the sums are made: what is loaded before a reduction starts before it. They take
// registers from other rows.
template <class T, int Columns, int Warps>
inline constexpr auto layernorm_ahead = kernel<"layernorm_ahead", attributes{.num_warps = Warps, .no_alias = true}, Columns>(
    [](context& k, ptr<const T> x, ptr<const T> weight, ptr<const T> bias, ptr<T> y, val<f32> eps) {
      auto c = k.arange<Columns>();
      auto i = k.program_id<i64>(0) * Columns + c;
      auto row = load(x + i), w = load(weight + c), b = load(bias + c);
      auto v = cast<f32>(row);
      auto off = v - reduce<sum>(v) / static_cast<float>(Columns);
      auto scale = rsqrt(reduce<sum>(off * off) / static_cast<float>(Columns) + eps, {.fast = true});
      store(y + i, cast<T>(fma(off * scale, cast<f32>(w), cast<f32>(b))));
    });

// -- several rows a CTA: weights are read once for all of them
// -----------------------------------------------------------------

template <class T, int Columns, int Rows, int Warps>
inline constexpr auto softmax_rows = kernel<"softmax_rows", attributes{.num_warps = Warps, .fast_math = true}, Columns, Rows>(
    [](context& k, ptr<const T> x, ptr<T> y) {
      auto r = k.program_id<i64>(0) * Rows + k.arange<Rows>();
      auto i = expand_dims<1>(r) * Columns + expand_dims<0>(k.arange<Columns>());
      auto v = cast<f32>(load(x + i));
      auto e = exp(v - expand_dims<1>(reduce<max, 1>(v)));
      store(y + i, cast<T>(e * expand_dims<1>(1.f / reduce<sum, 1>(e))));
    });

template <class T, int Columns, int Rows, int Warps>
inline constexpr auto rmsnorm_rows = kernel<"rmsnorm_rows", attributes{.num_warps = Warps, .no_alias = true}, Columns, Rows>(
    [](context& k, ptr<const T> x, ptr<const T> weight, ptr<T> y, val<f32> eps) {
      auto r = k.program_id<i64>(0) * Rows + k.arange<Rows>();
      auto c = k.arange<Columns>();
      auto i = expand_dims<1>(r) * Columns + expand_dims<0>(c);
      auto v = cast<f32>(load(x + i));
      auto scale = rsqrt(reduce<sum, 1>(v * v) / static_cast<float>(Columns) + eps, {.fast = true});
      store(y + i, cast<T>(v * expand_dims<1>(scale) * expand_dims<0>(cast<f32>(load(weight + c)))));
    });

template <class T, int Columns, int Rows, int Warps>
inline constexpr auto layernorm_rows = kernel<"layernorm_rows", attributes{.num_warps = Warps, .no_alias = true}, Columns, Rows>(
    [](context& k, ptr<const T> x, ptr<const T> weight, ptr<const T> bias, ptr<T> y, val<f32> eps) {
      auto r = k.program_id<i64>(0) * Rows + k.arange<Rows>();
      auto c = k.arange<Columns>();
      auto i = expand_dims<1>(r) * Columns + expand_dims<0>(c);
      auto v = cast<f32>(load(x + i));
      auto off = v - expand_dims<1>(reduce<sum, 1>(v) / static_cast<float>(Columns));
      auto scale = rsqrt(reduce<sum, 1>(off * off) / static_cast<float>(Columns) + eps, {.fast = true});
      auto w = expand_dims<0>(cast<f32>(load(weight + c))), b = expand_dims<0>(cast<f32>(load(bias + c)));
      store(y + i, cast<T>(fma(off * expand_dims<1>(scale), broadcast<Rows, Columns>(w), broadcast<Rows, Columns>(b))));
    });

template <class T, int Columns, int Rows, int Warps>
inline constexpr auto layernorm_rows_ahead = kernel<"layernorm_rows_ahead", attributes{.num_warps = Warps, .no_alias = true}, Columns, Rows>(
    [](context& k, ptr<const T> x, ptr<const T> weight, ptr<const T> bias, ptr<T> y, val<f32> eps) {
      auto r = k.program_id<i64>(0) * Rows + k.arange<Rows>();
      auto c = k.arange<Columns>();
      auto i = expand_dims<1>(r) * Columns + expand_dims<0>(c);
      auto rows = load(x + i);
      auto w = load(weight + c), b = load(bias + c);
      auto v = cast<f32>(rows);
      auto off = v - expand_dims<1>(reduce<sum, 1>(v) / static_cast<float>(Columns));
      auto scale = rsqrt(reduce<sum, 1>(off * off) / static_cast<float>(Columns) + eps, {.fast = true});
      auto wide = [](auto v) { return broadcast<Rows, Columns>(expand_dims<0>(cast<f32>(v))); };
      store(y + i, cast<T>(fma(off * expand_dims<1>(scale), wide(w), wide(b))));
    });

// -- rows by index: Rows rows of Piece columns a CTA, the pieces of a row one after the other
// -----------------------------------------------------------------

/// The block of rows and the piece of their columns that this CTA works on.
template <int Pieces> constexpr auto place_of(context& k) {
  auto p = k.program_id<i64>(0);
  return std::pair(p / Pieces, p % Pieces);
}

template <class T, class Index, int Columns, int Rows, int Piece, int Warps>
inline constexpr auto gather_rows = kernel<"gather_rows", attributes{.num_warps = Warps}, Columns, Rows, Piece>(
    [](context& k, ptr<const T> table, ptr<const Index> index, ptr<T> out) {
      auto [block, piece] = place_of<Columns / Piece>(k);
      auto r = block * Rows + k.arange<Rows>();
      auto c = piece * Piece + k.arange<Piece>();
      auto from = cast<i64>(load(index + r));
      store(out + (expand_dims<1>(r) * Columns + expand_dims<0>(c)),
            load(table + (expand_dims<1>(from) * Columns + expand_dims<0>(c))));
    });

// Rows of a target that no cache holds are asked for as soon as their numbers are known; where all of it lies in L2, that
// would cost a tenth.
template <class T, class Index, int Columns, int Rows, int Piece, int Warps, bool Cold>
inline constexpr auto scatter_add_rows = kernel<"scatter_add_rows", attributes{.num_warps = Warps}, Columns, Rows, Piece, Cold>(
    [](context& k, ptr<const T> source, ptr<const Index> index, ptr<T> target) {
      auto [block, piece] = place_of<Columns / Piece>(k);
      auto r = block * Rows + k.arange<Rows>();
      auto c = piece * Piece + k.arange<Piece>();
      auto to = cast<i64>(load(index + r));
      auto v = load(source + (expand_dims<1>(r) * Columns + expand_dims<0>(c)));
      auto rows = target + (expand_dims<1>(to) * Columns + expand_dims<0>(c));
      if constexpr (Cold) k.prefetch(rows);
      atomic_add(rows, v);
    });

// -- transposition, scan, reductions
// -----------------------------------------------------------------

// Neighbouring CTAs write neighbouring pieces of the output.
template <class T, int Tile, int Warps>
inline constexpr auto transpose = kernel<"transpose", attributes{.num_warps = Warps}, Tile>(
    [](context& k, array<const T, 2> x, array<T, 2> y) {
      auto r = k.program_id(0) * Tile, c = k.program_id(1) * Tile;
      store(y.region(at(c, r), extent<Tile, Tile>), trans(load(x.region(at(r, c), extent<Tile, Tile>))));
    });

template <class T, int Columns, int Warps>
inline constexpr auto row_cumsum = kernel<"row_cumsum", attributes{.num_warps = Warps}, Columns>(
    [](context& k, ptr<const T> x, ptr<T> y) {
      auto i = k.program_id<i64>(0) * Columns + k.arange<Columns>();
      store(y + i, cumsum<0>(load(x + i)));
    });

// One number a CTA, each CTA many pieces; the partial sums are added by atomics.
template <class T, int Block, int Warps>
inline constexpr auto sum_all = kernel<"sum_all", attributes{.num_warps = Warps}, Block>(
    [](context& k, ptr<const T> x, ptr<f32> out, val<i64> n) {
      auto acc = k.var(k.zeros<f32, Block>());
      for (auto i : k.range(k.program_id<i64>(0) * Block, n, k.num_programs<i64>(0) * Block))
        acc += cast<f32>(load(x + (i + k.arange<Block>())));
      atomic_add(out + k.arange<1>(), reduce<sum>(acc));
    });

template <class T, int Columns, int Warps>
inline constexpr auto argmax_rows = kernel<"argmax_rows", attributes{.num_warps = Warps}, Columns>(
    [](context& k, ptr<const T> x, ptr<i32> index) {
      auto row = k.program_id<i64>(0);
      store(index + row + k.arange<1>(), argmax<0>(load(x + (row * Columns + k.arange<Columns>()))));
    });

template <class T, int Columns, int K, int Warps>
inline constexpr auto topk_rows = kernel<"topk_rows", attributes{.num_warps = Warps}, Columns, K>(
    [](context& k, ptr<const T> x, ptr<T> best, ptr<i32> index) {
      auto row = k.program_id<i64>(0);
      auto [values, where_values] = topk<K>(load(x + (row * Columns + k.arange<Columns>())));
      store(best + (row * K + k.arange<K>()), values);
      store(index + (row * K + k.arange<K>()), where_values);
    });

template <int Bins, int Block, int Warps>
inline constexpr auto histogram_all = kernel<"histogram_all", attributes{.num_warps = Warps}, Bins, Block>(
    [](context& k, ptr<const i32> x, ptr<i32> counts) {
      auto i = k.program_id<i64>(0) * Block + k.arange<Block>();
      atomic_add(counts + k.arange<Bins>(), histogram<Bins>(load(x + i)));
    });

// Each CTA many pieces, whose counts it adds up before it gives them to the others.
template <int Bins, int Block, int Warps>
inline constexpr auto histogram_loop = kernel<"histogram_loop", attributes{.num_warps = Warps}, Bins, Block>(
    [](context& k, ptr<const i32> x, ptr<i32> counts, val<i64> n) {
      auto sum = k.var(k.zeros<i32, Bins>());
      for (auto i : k.range(k.program_id<i64>(0) * Block, n, k.num_programs<i64>(0) * Block))
        sum += histogram<Bins>(load(x + (i + k.arange<Block>())));
      atomic_add(counts + k.arange<Bins>(), sum);
    });

// -- products
// -----------------------------------------------------------------

// Tiles of a and of b, which is stored transposed, are loaded where dot needs them.
template <class T, class Out, int BM, int BN, int BK, int Warps>
inline constexpr auto matmul = kernel<"matmul", attributes{.num_warps = Warps}, BM, BN, BK>(
    [](context& k, array<const T, 2> a, array<const T, 2> b, array<Out, 2> c) {
      auto [m, n] = k.program_tile(c.shape(), tile_size<BM, BN>, {.group = 8});
      auto acc = k.var(k.zeros<f32, BM, BN>());
      for (auto i : k.range(0, a.extent(1), BK))
        acc = k.dot(load(a.region(at(m, i), extent<BM, BK>)), trans(load(b.region(at(n, i), extent<BN, BK>))), acc);
      store(c.region(at(m, n), extent<BM, BN>), cast<Out>(acc));
    });

// Other types; b stored transposed, or as it is multiplied, so that its rows lie across k.
template <class T, class Sum, int BM, int BN, int BK, int Warps, bool Across>
inline constexpr auto matmul_of_types = kernel<"matmul_of_types", attributes{.num_warps = Warps}, BM, BN, BK, Across>(
    [](context& k, array<const T, 2> a, array<const T, 2> b, array<Sum, 2> c) {
      auto [m, n] = k.program_tile(c.shape(), tile_size<BM, BN>, {.group = 8});
      auto acc = k.var(k.zeros<Sum, BM, BN>());
      for (auto i : k.range(0, a.extent(1), BK)) {
        auto x = load(a.region(at(m, i), extent<BM, BK>));
        if constexpr (Across) acc = k.dot(x, load(b.region(at(i, n), extent<BK, BN>)), acc, {.fast = true});
        else acc = k.dot(x, trans(load(b.region(at(n, i), extent<BN, BK>))), acc, {.fast = true});
      }
      store(c.region(at(m, n), extent<BM, BN>), acc);
    });

// The same with local memory by hand: a ring of slots that asynchronous copies fill ahead of their use.
template <class T, class Out, int BM, int BN, int BK, int Slots, int Warps>
inline constexpr auto matmul_ring = kernel<"matmul_ring", attributes{.num_warps = Warps}, BM, BN, BK, Slots>(
    [](context& k, array<const T, 2> a, array<const T, 2> b, array<Out, 2> c) {
      auto [m, n] = k.program_tile(c.shape(), tile_size<BM, BN>, {.group = 8});
      auto as = k.local_alloc<T, BM, BK>(Slots, {.name = "as"});
      auto bs = k.local_alloc<T, BN, BK>(Slots, {.name = "bs"});
      auto acc = k.var(k.zeros<f32, BM, BN>());
      auto steps = ceil_div(a.extent(1), BK);
      auto fetch = [&](auto i) {
        k.when(i < steps, [&] {
          k.async_load(a.region(at(m, i * BK), extent<BM, BK>), as[i % Slots], {.other = 0});
          k.async_load(b.region(at(n, i * BK), extent<BN, BK>), bs[i % Slots], {.other = 0});
        });
        k.async_load_commit_group();
      };
      for (int i = 0; i < Slots - 1; ++i) fetch(k.let(i));
      for (auto i : k.range(0, steps)) {
        k.async_load_wait_group(Slots - 2);
        acc = k.dot(as[i % Slots], k.local_trans(bs[i % Slots]), acc);
        fetch(i + (Slots - 1));
      }
      store(c.region(at(m, n), extent<BM, BN>), cast<Out>(acc));
    });

} // namespace kiln_bench
