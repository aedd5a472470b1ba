// Kernels whose buffers share storage, lie in pools and arenas, are seen through windows, or have layouts, and values in register
// layouts: for every lowering against the interpreter. Whole small numbers, so that every order of summation gives one result.
#pragma once
#include "phase_kernel.hpp"
#include "random_graph.hpp"
#include "run_time_recording.hpp"

#include <kiln/dsl/buffer.hpp>
#include <kiln/dsl/matrix_layouts.hpp>
#include <kiln/dsl/pool.hpp>
#include <kiln/dsl/register_view.hpp>
#include <kiln/validate/validate.hpp>

#include <stdexcept>

namespace kiln_test {

struct storage_case {
  std::string name;
  generated g;
};

/// Records `body(k, x, y)`, where x has `in` elements of T and y `out` of U.
template <class T, class U, class Body>
storage_case make_storage_case(char const* name, std::int64_t in, std::int64_t out, Body&& body, int warps = 4) {
  run_time_recording t;
  t.r.attrs.num_warps = warps;
  auto x = t.template pointer<T const>();
  auto y = t.template pointer<U>();
  body(t.k, x, y);
  t.k.finish();
  if (!t.r.error.ok()) throw std::logic_error(std::string(name) + ": " + std::string(t.r.error.view()));
  if (kiln::diagnostic const d = kiln::validate(t.graph()); !d.ok()) throw std::logic_error(std::string(name) + ": " + std::string(d.view()));
  storage_case c;
  c.name = name;
  c.g.graph = kiln::graph(name, t.r);
  c.g.arguments.resize(2);
  for (argument& a : c.g.arguments) a.kind = kiln::node_kind::pointer;
  c.g.arguments[0].type = kiln::dtype_of<T>;
  c.g.arguments[0].holds = contents::small;
  c.g.arguments[0].elements = in;
  c.g.arguments[1].type = kiln::dtype_of<U>;
  c.g.arguments[1].elements = out;
  c.g.arguments[1].is_output = true;
  c.g.grid = {1, 1, 1};
  c.g.seed = 1;
  return c;
}

/// What a buffer of layout L goes through: written whole and by parts, read whole, transposed, by rows and by gather.
template <class T, int R, int C>
storage_case layout_case(char const* name, kiln::buffer_layout const& l, int part) {
  using namespace kiln;
  return make_storage_case<T, T>(name, 2 * R * C, 6 * R * C, [&](context& k, auto x, auto y) {
    auto s = k.local_alloc<T, R, C>(2, {.layout = l, .name = "s"});
    auto at = k.iota<0, R, C>() * C + k.iota<1, R, C>();
    for (auto i : k.range(0, 2)) k.local_store(s[i], load(x + i * (R * C) + at));
    for (auto i : k.range(0, 2)) store(y + i * (R * C) + at, k.local_load(s[1 - i]));
    auto back = k.iota<0, C, R>() + k.iota<1, C, R>() * C;
    store(y + 2 * R * C + back, k.local_load(k.local_trans(s[1])));
    auto turned = k.iota<0, R, C>() ^ k.full<i32, R, C>(1);
    store(y + 3 * R * C + at, k.local_gather(s[0], turned, {.axis = 0}));
    k.local_scatter(s[1], load(x + at), turned, {.axis = 0});
    for (auto i : k.range(0, R)) store(y + 4 * R * C + i * C + k.arange<C>(), k.local_load(s[1][i]));
    auto rows = k.iota<0, 8, C>() * C + k.iota<1, 8, C>();
    if (part == 8)
      for (auto i : k.range(0, R / 8)) k.local_store(k.local_slice<8, C>(s[0], {i * 8, 0}), load(x + R * C + i * 8 * C + rows));
    if constexpr ((C & (C - 1)) == 0) {
      auto half = k.iota<0, R, C / 2>() * C + k.iota<1, R, C / 2>();
      for (auto i : k.range(0, 2)) store(y + 5 * R * C + i * (C / 2) + half, k.local_load(k.local_slice<R, C / 2>(s[0], {0, i * (C / 2)})));
    }
  });
}

/// A product of M x 64 and 64 x 64 whose operands lie in buffers of layouts, copied there by async_load and cut along k.
template <class T, int M = 64>
storage_case product_case(char const* name, kiln::buffer_layout const& a, kiln::buffer_layout const& b, bool turned) {
  using namespace kiln;
  using Sum = std::conditional_t<std::same_as<T, i8>, i32, f32>;
  return make_storage_case<T, Sum>(name, 2 * 64 * 64, M * 64, [&](context& k, auto x, auto y) {
    auto as = k.local_alloc<T, M, 64>(2, {.layout = a, .name = "as"});
    auto bs = k.local_alloc<T, 64, 64>(2, {.layout = b, .name = "bs"});
    auto at = k.iota<0, 64, 64>() * 64 + k.iota<1, 64, 64>();
    auto left_at = k.iota<0, M, 64>() * 64 + k.iota<1, M, 64>();
    auto acc = k.var(k.zeros<Sum, M, 64>());
    for (auto i : k.range(0, 2)) {
      k.async_load(multiple_of<16>(x) + left_at, as[i]);
      k.async_load(multiple_of<16>(x) + 4096 + at, bs[1 - i]);
      k.async_load_commit_group();
      k.async_load_wait_group(0);
      auto right = bs[1 - i];
      for (auto part : k.range(0, 64, 32)) {
        auto left = k.local_slice<M, 32>(as[i], {0, part});
        if (turned)
          acc = k.dot(left, k.local_trans(k.local_slice<64, 32>(right, {0, part})), acc);
        else
          acc = k.dot(left, k.local_slice<32, 64>(right, {part, 0}), acc);
      }
    }
    store(y + left_at, acc);
  });
}

/// `lanes`: how many threads of a warp; layouts of registers are for 128 threads.
inline std::vector<storage_case> storage_cases(int lanes = 32) {
  using namespace kiln;
  std::vector<storage_case> r;
  // -- storage that is shared ------------------------------------------------------------------------------------------------
  r.push_back(make_storage_case<f32, f32>("alias_tree", 4096, 4096, [](context& k, auto x, auto y) {
    auto sp = k.storage_alias_spec({.name = "scratch"});
    auto qk = k.local_alloc<f32, 32, 32>(2, {.reuse = &sp, .name = "qk"});
    auto p = k.local_alloc<f16, 32, 16>(4, {.reuse = &sp, .name = "p"});
    auto l = k.local_alloc<f32, 32, 1>(2, {.reuse = &sp, .name = "l"});
    sp.set_buffer_overlap(shared_group(qk, distinct_group(subtile(p, 2), l)));
    auto at = k.iota<0, 32, 32>() * 32 + k.iota<1, 32, 32>();
    auto half = k.iota<0, 32, 16>() * 32 + k.iota<1, 32, 16>();
    for (auto g : k.range(0, 2)) {
      k.local_store(qk[g], load(x + g * 1024 + at));
      auto t = k.local_load(qk[g]);
      store(y + g * 1024 + at, t);
      for (auto h : k.range(0, 2)) k.local_store(p[g * 2 + h], cast<f16>(load(x + g * 1024 + h * 16 + half)));
      k.local_store(l[g], reduce<sum, 1, keep>(t));
      for (auto h : k.range(0, 2)) store(y + 2048 + g * 1024 + h * 16 + half, cast<f32>(k.local_load(p[g * 2 + h])) + k.local_load(l[g]));
    }
  }));
  r.push_back(make_storage_case<f32, f32>("reuse_of_a_buffer", 1024, 1024, [](context& k, auto x, auto y) {
    auto owner = k.local_alloc<f32, 256>(2, {.name = "owner"});
    auto guest = k.local_alloc<i32, 128>(4, {.reuse = &owner, .name = "guest"});
    for (auto i : k.range(0, 2)) {
      k.local_store(owner[i], load(x + i * 256 + k.arange<256>()));
      store(y + i * 256 + k.arange<256>(), k.local_load(owner[i]));
    }
    for (auto i : k.range(0, 4)) k.local_store(guest[3 - i], cast<i32>(load(x + i * 128 + k.arange<128>())));
    for (auto i : k.range(0, 4)) store(y + 512 + i * 128 + k.arange<128>(), cast<f32>(k.local_load(guest[i])));
  }));
  r.push_back(make_storage_case<f32, f32>("pool_that_is_rewound", 1024, 1024, [](context& k, auto x, auto y) {
    auto pool = k.smem_pool({.name = "pool"});
    auto head = pool.template alloc<i8, 3>({.name = "head"});
    auto kept = pool.template alloc<f32, 4, 16>({.name = "kept"});
    std::int64_t const mark = pool.cursor();
    auto first = pool.template alloc<f32, 256>({.align = 256, .name = "first"});
    pool.move_base_to(mark);
    auto second = pool.template alloc<f16, 512>({.name = "second"});
    pool.commit();
    auto at = k.iota<0, 4, 16>() * 16 + k.iota<1, 4, 16>();
    k.local_store(head, cast<i8>(load(x + k.arange<3>())));
    k.local_store(kept, load(x + at));
    for (auto i : k.range(0, 2)) {
      k.local_store(first, load(x + i * 256 + k.arange<256>()));
      store(y + i * 64 + k.arange<64>(), reduce<sum, 1>(reshape<64, 4>(k.local_load(first))));
      k.local_store(second, cast<f16>(load(x + k.arange<512>())));
      store(y + 128 + i * 128 + k.arange<128>(), cast<f32>(reduce<max, 1>(reshape<128, 4>(k.local_load(second)))));
    }
    store(y + 384 + at, k.local_load(kept));
    store(y + 448 + k.arange<3>(), cast<f32>(k.local_load(head)));
  }));
  r.push_back(make_storage_case<f32, f32>("windows_and_reinterpretation", 1024, 1024, [](context& k, auto x, auto y) {
    auto base = k.template alloc_shared<f32, 8, 32>({.name = "base"});
    auto ring = k.template local_alloc<f32, 16>(4, {.name = "ring"});
    auto at = k.iota<0, 8, 32>() * 32 + k.iota<1, 8, 32>();
    k.local_store(base, load(x + at));
    auto flat = k.template decl_buffer<f32, 64>({.data = base, .elem_offset = 96, .name = "flat"});
    store(y + k.arange<64>(), k.local_load(flat));
    k.local_store(flat, k.template full<f32, 64>(7.f));
    store(y + 64 + at, k.local_load(base));
    auto bits = k.template decl_buffer<i32, 8>({.data = k.template local_slice<2, 8>(base, {2, 16}), .byte_offset = 4});
    store(y + 320 + k.arange<8>(), cast<f32>(k.local_load(bits) & 1));
    for (auto i : k.range(0, 4)) k.local_store(ring[i], load(x + i * 16 + k.arange<16>()));
    for (auto i : k.range(0, 4)) {
      auto sign = k.template local_reinterpret<i32, 4, 4>(ring[3 - i]);
      k.local_store(sign, k.local_load(sign) ^ k.template full<i32, 4, 4>(-2147483647 - 1));
    }
    for (auto i : k.range(0, 4)) store(y + 328 + i * 16 + k.arange<16>(), k.local_load(ring[i]));
  }));
  r.push_back(make_storage_case<f32, f32>("phases_of_an_allocator", 1024, 1920, [](context& k, auto x, auto y) { phases(k, x, y); }));
  // -- layouts -----------------------------------------------------------------------------------------------------------------
  r.push_back(layout_case<f32, 16, 64>("swizzle_128", layout::mma_shared(swz::b128), 8));
  r.push_back(layout_case<f16, 16, 64>("swizzle_128_f16", layout::mma_shared(swz::b128), 8));
  r.push_back(layout_case<f32, 16, 16>("swizzle_64", layout::mma_shared(swz::b64), 8));
  r.push_back(layout_case<i16, 16, 16>("swizzle_32", layout::mma_shared(swz::b32), 8));
  r.push_back(layout_case<f32, 16, 32>("swizzle_by_hand", layout::swizzled<2, 2, 3>(), 8));
  r.push_back(layout_case<f32, 16, 32>("padded", layout::padded<32>({4}), 8));
  r.push_back(layout_case<f16, 32, 32>("padded_twice", layout::padded<8, 32>({1, 3}), 8));
  r.push_back(layout_case<f32, 16, 32>("columns_first", layout::strided<16, 32>({1, 16}), 8));
  r.push_back(layout_case<f32, 16, 16>("linear_bases", layout::shared_linear<16, 16>({{0, 1}, {0, 2}, {0, 4}, {0, 8}, {1, 4}, {2, 8}, {4, 12}, {8, 9}}), 8));
  r.push_back(layout_case<f32, 24, 12>("odd_rows", layout::strided<24, 12>({13, 1}), 8));
  for (bool turned : {false, true}) {
    r.push_back(product_case<f16>(turned ? "product_swizzled_turned" : "product_swizzled", layout::mma_shared(), layout::mma_shared(), turned));
    r.push_back(product_case<i8>(turned ? "product_i8_turned" : "product_i8", layout::mma_shared(), layout::mma_shared(), turned));
    r.push_back(product_case<bf16>(turned ? "product_padded_turned" : "product_padded", layout::padded<64>({8}), layout::padded<64>({8}), turned));
    r.push_back(product_case<f16>(turned ? "product_columns_turned" : "product_columns", layout::strided<64, 64>({1, 64}), layout::mma_shared(), turned));
    r.push_back(product_case<f32, 32>(turned ? "product_without_unit_turned" : "product_without_unit", layout::padded<64>({4}), layout::mma_shared(), turned));
  }
  // -- elements and threads ------------------------------------------------------------------------------------------------------
  r.push_back(make_storage_case<f32, f32>("elements_and_vectors", 256, 256, [](context& k, auto x, auto y) {
    auto A = k.match_buffer(x, {16, 16}, {.align = 16});
    auto B = k.match_buffer(y, {16, 16});
    auto s = k.template alloc_shared<f32, 8, 16>({.layout = layout::mma_shared(), .name = "s"});
    k.local_store(s, k.template zeros<f32, 8, 16>());
    auto r4 = k.template alloc_local<f32, 4>();
    for (int i = 0; i < 4; ++i) r4[i] = A(i, i);
    auto count = k.template shared_scalar<i32>({.name = "count"});
    count = 0;
    for (auto i : k.range(0, 4)) {
      s.template vstore<4>(i, i * 4, A.template vload<4>(i, 8));
      s(i + 4, i) = r4[i] + A(i, 15);
      count += i;
    }
    for (auto i : k.range(0, 8)) B.template vstore<4>(i, 4, s.template vload<4>(i, 8));
    B(9, 9) = s(5, 1) + cast<f32>(k.let(count));
    store(B.region(at(12, 12), extent<8, 8>), load(A.region(at(12, 12), extent<8, 8>), {.other = 1.f}) + 1.f);
  }));
  r.push_back(make_storage_case<f32, f32>("register_layouts", 4096, 4096, [](context& k, auto x, auto y) {
    auto at = k.iota<0, 64, 64>() * 64 + k.iota<1, 64, 64>();
    auto a = k.require_layout(load(x + at), layout::mma_accumulator<64, 64>(4));
    auto b = a * 2.f + 1.f;
    k.assert_same_layout(b, layout::mma_accumulator<64, 64>(4));
    auto by_rows = layout::registers(layout::threads<32, 4>({128, 1}), layout::values<16, 2>({4, 64}));
    auto c = k.require_layout(b, by_rows);
    k.assert_same_layout(c, by_rows);
    auto s = k.template alloc_shared<f32, 64, 64>({.layout = layout::padded<64>({4}), .name = "s"});
    k.local_store(s, c);
    auto d = k.local_load(s, {.layout = layout::registers(layout::threads<32, 4>({2, 64}), layout::values<2, 16>({1, 256}))});
    auto sums = k.template alloc_fragment<f32, 64, 64>({.layout = by_rows});
    sums.fill(0.5f);
    for (auto i : k.range(0, 3)) {
      sums = sums + d * cast<f32>(i);
      k.assert_same_layout(k.let(sums), by_rows);
    }
    store(y + at, k.release_layout(d) + b + sums);
  }, 128 / lanes));
  r.push_back(make_storage_case<f32, f32>("seen_through_another_layout", 1024, 2048, [](context& k, auto x, auto y) {
    auto at = k.template iota<0, 16, 32>() * 32 + k.template iota<1, 16, 32>();
    auto ring = k.template local_alloc<f32, 16, 32>(2, {.layout = layout::swizzled<2, 2, 3>(), .name = "ring"});
    for (auto i : k.range(0, 2)) {
      k.local_store(k.local_view(ring, i), load(x + i * 512 + at));
      store(y + i * 1024 + at, k.local_load(k.template local_reinterpret<f32, 16, 32>(ring[i], {.layout = layout::row_major})));
      auto columns = k.template local_reinterpret<i32, 32, 16>(ring[i], {.layout = layout::strided<32, 16>({1, 32})});
      store(y + i * 1024 + 512 + at, cast<f32>(trans(k.local_load(columns)) & 0xffff));
    }
  }));
  r.push_back(make_storage_case<f32, f32>("layouts_of_matrix_units", 4096, 4096, [](context& k, auto x, auto y) {
    auto at = k.iota<0, 64, 64>() * 64 + k.iota<1, 64, 64>();
    auto a = k.require_layout(load(x + at), layout::wgmma_acc<64>());
    k.assert_same_layout(a + 1.f, layout::mma_acc<64, 64>(4));
    using layout::axis;
    auto by_axes = layout::registers(layout::S<4, 16, 32, 2>({1, axis::warp}, {2, axis::m}, {1, axis::lane}, {1, axis::m}));
    store(y + at, k.require_layout(a * 3.f, by_axes));
  }, 128 / lanes));
  r.push_back(make_storage_case<f32, f32>("views_of_a_threads_registers", 4096, 8192, [](context& k, auto x, auto y) {
    auto at = k.iota<0, 64, 64>() * 64 + k.iota<1, 64, 64>();
    constexpr auto sums = layout::mma_accumulator<64, 64>(4);
    auto mine = local<sums>(load(x + at));
    auto of_thread = reduce<sum, 1>(mine); // each thread adds its own 32
    store(y + k.arange<128>(), of_thread);
    store(y + 4096 + at, from_local<sums, 64, 64>(mine * 2.f + expand_dims<1>(of_thread)));
    constexpr auto copies = layout::registers(layout::threads<32, 4>({0, 8}), layout::values<8>({1}));
    auto all = local<copies, 4, 2>(load(x + k.arange<32>()));
    store(y + 1024 + k.iota<0, 128, 4, 2>() * 8 + k.iota<1, 128, 4, 2>() * 2 + k.iota<2, 128, 4, 2>(), all);
  }, 128 / lanes));
  r.push_back(make_storage_case<f32, f32>("layouts_by_hand", 1024, 2048, [](context& k, auto x, auto y) {
    auto pool = k.smem_pool({.name = "pool"});
    auto wide = pool.template alloc_mma<f32, 8, 64>({.name = "wide"});
    auto narrow = pool.template alloc_mma<f32, 8, 16>({.swizzle = swz::b64, .align = 512, .name = "narrow"});
    auto bits = pool.template alloc<f32, 16, 16>({.layout = layout::shared_linear<16, 16>({{0, 1}, {0, 2}, {0, 4}, {0, 8}, {1, 2}, {2, 4}, {4, 8}, {8, 9}}), .name = "bits"});
    auto late = k.template alloc_shared<f32, 16, 32>({.name = "late"});
    k.annotate_layout(late, layout::swizzled<3, 2, 3>());
    pool.commit();
    auto a8 = k.template iota<0, 8, 64>() * 64 + k.template iota<1, 8, 64>();
    auto n8 = k.template iota<0, 8, 16>() * 16 + k.template iota<1, 8, 16>();
    auto b16 = k.template iota<0, 16, 16>() * 16 + k.template iota<1, 16, 16>();
    auto l16 = k.template iota<0, 16, 32>() * 32 + k.template iota<1, 16, 32>();
    k.local_store(wide, load(x + a8));
    k.local_store(narrow, load(x + 100 + n8));
    k.local_store(bits, load(x + 200 + b16));
    k.local_store(late, load(x + 300 + l16));
    auto w = k.local_load(wide);
    k.dump_layout(w, "w");
    store(y + a8, w);
    store(y + 512 + n8, k.local_load(narrow));
    for (auto i : k.range(0, 16)) store(y + 640 + i * 16 + k.template arange<16>(), k.local_load(bits[i]));
    for (auto i : k.range(0, 16)) store(y + 896 + i * 32 + k.template arange<32>(), k.local_load(late[15 - i]));
  }));
  r.push_back(make_storage_case<f32, f32>("an_arena_by_hand", 256, 512, [](context& k, auto x, auto y) {
    auto arena = k.template alloc_buffer<f32, scope::shared_dyn, 512>({.name = "arena"});
    auto a = k.template decl_buffer<f32, 64>({.data = arena, .name = "a"});
    auto rest = k.template decl_buffer<f32, 256>({.data = arena, .elem_offset = 256, .name = "rest"});
    auto pool = k.smem_pool({.backing = rest, .name = "pool"});
    auto b = pool.template alloc<f16, 3>({.name = "b"});
    auto c = pool.template alloc<f32, 32>({.align = 16, .name = "c"});
    k.local_store(a, load(x + k.template arange<64>()));
    k.local_store(b, cast<f16>(load(x + k.template arange<3>())));
    k.local_store(c, load(x + 64 + k.template arange<32>()));
    store(y + k.template arange<64>(), k.local_load(a));
    store(y + 64 + k.template arange<3>(), cast<f32>(k.local_load(b)));
    store(y + 67 + k.template arange<32>(), k.local_load(c));
    k.local_store(k.template decl_buffer<f32, 128>({.data = arena}), load(x + 128 + k.template arange<128>()));
    store(y + 99 + k.template arange<64>(), k.local_load(a));
    auto fixed = k.template alloc_buffer<i32, scope::shared_static, 8>();
    k.local_store(fixed, k.template arange<8>());
    store(y + 163 + k.template arange<8>(), cast<f32>(k.local_load(fixed)));
  }));
  r.push_back(make_storage_case<f32, f32>("registers_by_name", 256, 256, [](context& k, auto x, auto y) {
    auto A = k.match_buffer(x, {256});
    auto B = k.match_buffer(y, {256});
    auto total = k.template alloc_fragment<f32, 64>();
    auto count = k.template alloc_var<i32>(k.let(i32{0}));
    auto last = k.template scalar<f32>();
    auto fixed = k.template alloc_scalar<i32, scope::shared_static>();
    auto own = k.template alloc_scalar<f32, scope::local>();
    total = k.template zeros<f32, 64>();
    fixed = 3;
    last = 0.f;
    own = 1.f;
    for (auto i : k.range(0, 4)) {
      total = total + load(x + i * 64 + k.template arange<64>());
      count += 1;
      last = A.view({64, 4})(i, 2);
      own += A.view({64, 4}).template permute<1, 0>()(2, i);
    }
    store(y + k.template arange<64>(), total * cast<f32>(k.let(count)));
    B(64) = k.let(last);
    B(65) = k.let(own) + cast<f32>(k.let(fixed));
    auto s = k.template alloc_shared<f32, 16, 4>({.name = "s"});
    k.local_store(s, load(x + k.template iota<0, 16, 4>() * 4 + k.template iota<1, 16, 4>()));
    s.template permute<1, 0>()(3, 0) = 13.f;
    store(y + 128 + k.template iota<0, 16, 4>() * 4 + k.template iota<1, 16, 4>(), k.local_load(s));
  }));
  // -- windows, ranges and pipelines ---------------------------------------------------------------------------------------------
  r.push_back(make_storage_case<f32, f32>("windows_at_runtime", 1024, 1024, [](context& k, auto x, auto y) {
    auto ring = k.template local_alloc<f32, 8, 32>(3, {.name = "ring"});
    auto at = k.iota<0, 8, 32>() * 32 + k.iota<1, 8, 32>();
    for (auto i : k.range(0, 3)) k.local_store(ring[i], load(x + i * 256 + at));
    for (auto s : k.range(0, 3))
      for (auto i : k.range(0, 8)) {
        auto sign = k.template local_reinterpret<i32, 4, 8>(ring[s][i]);
        k.local_store(sign, k.local_load(sign) ^ k.template full<i32, 4, 8>(-2147483647 - 1));
        auto part = k.template decl_buffer<f32, 8>({.data = ring[s][7 - i].access_ptr(access::rw, {.offset = 16, .extent = 16}), .elem_offset = 8});
        k.local_store(part, k.local_load(part) + 1.f);
      }
    for (auto i : k.range(0, 3)) store(y + i * 256 + at, k.local_load(ring[i]));
  }));
  return r;
}

} // namespace kiln_test
