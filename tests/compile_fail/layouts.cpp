// Layouts of buffers and registers, pools with swizzles, tensor memory by hand: what is refused, with a twin that is not.
#include <kiln/dsl/matrix_layouts.hpp>
#include <kiln/dsl/register_view.hpp>
#include <kiln/dsl/tensor_pool.hpp>
#include <kiln/kernel.hpp>
using namespace kiln;

// case: layout_of_other_elements
// expect-error: kiln[R-LY01] s: the layout covers 16 elements, the shape 4x8 has 32
#if defined(TWIN) || defined(CASE_layout_of_other_elements)
inline constexpr auto layout_of_other_elements = kernel<"layout_of_other_elements">([](context& k) {
#ifdef TWIN
  auto s = k.alloc_shared<f32, 4, 8>({.layout = layout::strided<4, 8>({8, 1}), .name = "s"});
#else
  auto s = k.alloc_shared<f32, 4, 8>({.layout = layout::strided<4, 4>({4, 1}), .name = "s"}); // expect-line
#endif
  k.local_store(s, k.zeros<f32, 4, 8>());
});
void use_layout_of_other_elements() { layout_of_other_elements.check(); }
#endif

// case: two_at_one_place
// expect-error: kiln[R-LY01] s: the layout puts two elements at one place; each stride must step over all that is inside it
#if defined(TWIN) || defined(CASE_two_at_one_place)
inline constexpr auto two_at_one_place = kernel<"two_at_one_place">([](context& k) {
#ifdef TWIN
  auto s = k.alloc_shared<f32, 4, 8>({.layout = layout::strided<4, 8>({8, 1}), .name = "s"});
#else
  auto s = k.alloc_shared<f32, 4, 8>({.layout = layout::strided<4, 8>({7, 1}), .name = "s"}); // expect-line
#endif
  k.local_store(s, k.zeros<f32, 4, 8>());
});
void use_two_at_one_place() { two_at_one_place.check(); }
#endif

// case: shift_below_bits
// expect-error: kiln[R-LY02] s: swizzle<3,3,2>: shift 2 is smaller than bits 3
#if defined(TWIN) || defined(CASE_shift_below_bits)
inline constexpr auto shift_below_bits = kernel<"shift_below_bits">([](context& k) {
#ifdef TWIN
  auto s = k.alloc_shared<f16, 8, 64>({.layout = layout::swizzled<3, 3, 3>(), .name = "s"});
#else
  auto s = k.alloc_shared<f16, 8, 64>({.layout = layout::swizzled<3, 3, 2>(), .name = "s"}); // expect-line
#endif
  k.local_store(s, k.zeros<f16, 8, 64>());
});
void use_shift_below_bits() { shift_below_bits.check(); }
#endif

// case: swizzle_inside_a_row
// expect-error: kiln[R-LY02] s: swizzle<1,1,1>: 2^(shift+base) = 4 is not a multiple of the contiguous extent 64
#if defined(TWIN) || defined(CASE_swizzle_inside_a_row)
inline constexpr auto swizzle_inside_a_row = kernel<"swizzle_inside_a_row">([](context& k) {
#ifdef TWIN
  auto s = k.alloc_shared<f16, 8, 64>({.layout = layout::swizzled<1, 1, 5>(), .name = "s"});
#else
  auto s = k.alloc_shared<f16, 8, 64>({.layout = layout::swizzled<1, 1, 1>(), .name = "s"}); // expect-line
#endif
  k.local_store(s, k.zeros<f16, 8, 64>());
});
void use_swizzle_inside_a_row() { swizzle_inside_a_row.check(); }
#endif

// case: odd_interval
// expect-error: kiln[R-LY06] s: padding interval 48 must be a power of two, at least 1
#if defined(TWIN) || defined(CASE_odd_interval)
inline constexpr auto odd_interval = kernel<"odd_interval">([](context& k) {
#ifdef TWIN
  auto s = k.alloc_shared<f16, 8, 64>({.layout = layout::padded<64>({8}), .name = "s"});
#else
  auto s = k.alloc_shared<f16, 8, 64>({.layout = layout::padded<48>({8}), .name = "s"}); // expect-line
#endif
  k.local_store(s, k.zeros<f16, 8, 64>());
});
void use_odd_interval() { odd_interval.check(); }
#endif

// case: narrow_rows
// expect-error: kiln[R-PA18] a: rows of 64 B do not fill the 128 B swizzle; use swz::b64 or 64 columns
#if defined(TWIN) || defined(CASE_narrow_rows)
inline constexpr auto narrow_rows = kernel<"narrow_rows">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
#ifdef TWIN
  auto a = pool.alloc_mma<f16, 64, 32>({.swizzle = swz::b64, .name = "a"});
#else
  auto a = pool.alloc_mma<f16, 64, 32>({.name = "a"}); // expect-line
#endif
  pool.commit();
  k.local_store(a, k.zeros<f16, 64, 32>());
});
void use_narrow_rows() { narrow_rows.check(); }
#endif

// case: few_rows
// expect-error: kiln[R-PA18] a: 12 rows are not a multiple of the 8 of a swizzle
#if defined(TWIN) || defined(CASE_few_rows)
inline constexpr auto few_rows = kernel<"few_rows">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
#ifdef TWIN
  constexpr int rows = 16;
  auto a = pool.alloc_mma<f16, 16, 64>({.name = "a"});
#else
  constexpr int rows = 12;
  auto a = pool.alloc_mma<f16, 12, 64>({.name = "a"}); // expect-line
#endif
  pool.commit();
  k.local_store(a, k.zeros<f16, rows, 64>());
});
void use_few_rows() { few_rows.check(); }
#endif

// case: weak_alignment
// expect-error: kiln[R-PA18] a: .align = 512 is less than the 1024 that its swizzle needs
#if defined(TWIN) || defined(CASE_weak_alignment)
inline constexpr auto weak_alignment = kernel<"weak_alignment">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
#ifdef TWIN
  auto a = pool.alloc_mma<f16, 16, 64>({.align = 1024, .name = "a"});
#else
  auto a = pool.alloc_mma<f16, 16, 64>({.align = 512, .name = "a"}); // expect-line
#endif
  pool.commit();
  k.local_store(a, k.zeros<f16, 16, 64>());
});
void use_weak_alignment() { weak_alignment.check(); }
#endif

// case: slice_of_an_atom
// expect-error: kiln[R-BD03] a slice of a: 4 rows cut the 8-row atom of its swizzle (axis 0)
#if defined(TWIN) || defined(CASE_slice_of_an_atom)
inline constexpr auto slice_of_an_atom = kernel<"slice_of_an_atom">([](context& k) {
#ifdef TWIN
  auto a = k.local_alloc<f16, 64, 64>(1, {.layout = layout::row_major, .name = "a"});
#else
  auto a = k.local_alloc<f16, 64, 64>(1, {.layout = layout::mma_shared(), .name = "a"});
#endif
  auto part = k.local_slice<4, 64>(a[0], {8, 0}); // expect-line
  k.local_store(part, k.zeros<f16, 4, 64>());
});
void use_slice_of_an_atom() { slice_of_an_atom.check(); }
#endif

// case: window_into_a_swizzle
// expect-error: kiln[R-BD08] decl_buffer over a part of a, whose elements are not row by row; declare it over the whole slot
#if defined(TWIN) || defined(CASE_window_into_a_swizzle)
inline constexpr auto window_into_a_swizzle = kernel<"window_into_a_swizzle">([](context& k) {
  auto a = k.alloc_shared<f16, 64, 64>({.layout = layout::mma_shared(), .name = "a"});
#ifdef TWIN
  auto w = k.decl_buffer<u8, 64>({.data = a});
#else
  auto w = k.decl_buffer<u8, 64>({.data = a[8]}); // expect-line
#endif
  k.local_store(w, k.zeros<u8, 64>());
});
void use_window_into_a_swizzle() { window_into_a_swizzle.check(); }
#endif

// case: layouts_differ
// expect-error: kiln[R-LY04] layouts differ: a is Swizzle<3,3,3> o (_64,_64):(_64,_1), expected (_64,_64):(_64,_1)
#if defined(TWIN) || defined(CASE_layouts_differ)
inline constexpr auto layouts_differ = kernel<"layouts_differ">([](context& k) {
  auto a = k.alloc_shared<f16, 64, 64>({.layout = layout::mma_shared(), .name = "a"});
  auto b = k.alloc_shared<f16, 64, 64>({.layout = layout::swizzled<3, 3, 3>(), .name = "b"});
  k.assert_same_layout(a, b); // two spellings of one map
#ifdef TWIN
  k.assert_same_layout(a, layout::swizzled<3, 3, 3>());
#else
  k.assert_same_layout(a, layout::row_major); // expect-line
#endif
  k.local_store(a, k.zeros<f16, 64, 64>());
  k.local_store(b, k.zeros<f16, 64, 64>());
});
void use_layouts_differ() { layouts_differ.check(); }
#endif

// case: annotated_late
// expect-error: kiln[R-LY03] annotate_layout of a after its first use at line
#if defined(TWIN) || defined(CASE_annotated_late)
inline constexpr auto annotated_late = kernel<"annotated_late">([](context& k) {
  auto a = k.alloc_shared<f16, 64, 64>({.name = "a"});
#ifndef TWIN
  k.local_store(a, k.zeros<f16, 64, 64>());
#endif
  k.annotate_layout(a, layout::mma_shared()); // expect-line
  k.local_store(a, k.zeros<f16, 64, 64>());
});
void use_annotated_late() { annotated_late.check(); }
#endif

// case: odd_threads
// expect-error: kiln[R-LY05] layout extent 24 is not a power of two
#if defined(TWIN) || defined(CASE_odd_threads)
inline constexpr auto odd_threads = kernel<"odd_threads">([](context& k, ptr<f32> y) {
#ifdef TWIN
  auto t = k.require_layout(k.zeros<f32, 128>(), layout::registers(layout::threads<32, 4>({1, 32}), layout::values<1>({0})));
#else
  auto t = k.require_layout(k.zeros<f32, 128>(), layout::registers(layout::threads<24, 4>({1, 32}), layout::values<1>({0}))); // expect-line
#endif
  store(y + k.arange<128>(), t);
});
void use_odd_threads() { odd_threads.check(); }
#endif

// case: threads_of_another_kernel
// expect-error: kiln[R-LY07] layout addresses 128 threads, the kernel has 256 (8 warps of 32)
#if defined(TWIN) || defined(CASE_threads_of_another_kernel)
#ifdef TWIN
inline constexpr auto threads_of_another_kernel = kernel<"threads_of_another_kernel", attributes{.num_warps = 4}>([](context& k, ptr<f32> y) {
#else
inline constexpr auto threads_of_another_kernel = kernel<"threads_of_another_kernel", attributes{.num_warps = 8}>([](context& k, ptr<f32> y) {
#endif
  auto t = k.require_layout(k.zeros<f32, 32>(), layout::registers(layout::threads<32, 4>({0, 8}), layout::values<8>({1}))); // expect-line
  store(y + k.arange<32>(), t);
});
void use_threads_of_another_kernel() { threads_of_another_kernel.check(); }
#endif

// case: elements_left_out
// expect-error: kiln[R-LY07] layout ((_32,_4),_2):((_1,_32),_128) does not reach all 512 elements of the tile
#if defined(TWIN) || defined(CASE_elements_left_out)
inline constexpr auto elements_left_out = kernel<"elements_left_out">([](context& k, ptr<f32> y) {
#ifdef TWIN
  auto t = k.require_layout(k.zeros<f32, 512>(), layout::registers(layout::threads<32, 4>({1, 32}), layout::values<4>({128})));
#else
  auto t = k.require_layout(k.zeros<f32, 512>(), layout::registers(layout::threads<32, 4>({1, 32}), layout::values<2>({128}))); // expect-line
#endif
  store(y + k.arange<512>(), t);
});
void use_elements_left_out() { elements_left_out.check(); }
#endif

// case: another_register_layout
// expect-error: kiln[R-LY04] layouts differ: the tile is ((_32,_4),_1):((_1,_32),_0), expected ((_32,_4),_1):((_4,_1),_0)
#if defined(TWIN) || defined(CASE_another_register_layout)
inline constexpr auto another_register_layout = kernel<"another_register_layout">([](context& k, ptr<f32> y) {
  auto t = k.require_layout(k.zeros<f32, 128>(), layout::registers(layout::threads<32, 4>({1, 32}), layout::values<1>({0})));
  auto u = t + 1.f;
#ifdef TWIN
  k.assert_same_layout(u, layout::registers(layout::threads<128>({1}), layout::values<1>({0})));
#else
  k.assert_same_layout(u, layout::registers(layout::threads<32, 4>({4, 1}), layout::values<1>({0}))); // expect-line
#endif
  store(y + k.arange<128>(), u);
});
void use_another_register_layout() { another_register_layout.check(); }
#endif

// case: nothing_to_release
// expect-error: kiln[R-LY03] release_layout of a tile of which no layout was required; drop it
#if defined(TWIN) || defined(CASE_nothing_to_release)
inline constexpr auto nothing_to_release = kernel<"nothing_to_release">([](context& k, ptr<const f32> x, ptr<f32> y) {
  auto t = load(x + k.arange<128>());
#ifdef TWIN
  auto u = k.require_layout(t, layout::registers(layout::threads<128>({1}), layout::values<1>({0})));
#else
  auto u = t;
#endif
  store(y + k.arange<128>(), k.release_layout(u)); // expect-line
});
void use_nothing_to_release() { nothing_to_release.check(); }
#endif

// case: odd_columns
// expect-error: kiln[R-CP04] tmem_pool: 96 columns: must be a power of two in 32..512; use 128
#if defined(TWIN) || defined(CASE_odd_columns)
inline constexpr auto odd_columns = kernel<"odd_columns">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
#ifdef TWIN
  auto tp = k.tmem_pool(pool, {.total_cols = 128});
#else
  auto tp = k.tmem_pool(pool, {.total_cols = 96}); // expect-line
#endif
  auto a = tp.alloc<f32, 128, 64>({.name = "a"});
  pool.commit();
  tp.commit();
  k.local_store(a, k.zeros<f32, 128, 64>());
  tp.dealloc();
});
void use_odd_columns() { odd_columns.check(); }
#endif

// case: too_many_columns
// expect-error: kiln[R-PA16] c: columns 512..767 exceed total_cols 512
#if defined(TWIN) || defined(CASE_too_many_columns)
inline constexpr auto too_many_columns = kernel<"too_many_columns">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
  auto tp = k.tmem_pool(pool, {.total_cols = 512});
  auto a = tp.alloc<f32, 128, 256>({.name = "a"});
  auto b = tp.alloc<f32, 128, 256>({.name = "b"});
#ifndef TWIN
  auto c = tp.alloc<f32, 128, 256>({.name = "c"}); // expect-line
#endif
  pool.commit();
  tp.commit();
  k.local_store(a, k.zeros<f32, 128, 256>());
  k.local_store(b, k.zeros<f32, 128, 256>());
  tp.dealloc();
});
void use_too_many_columns() { too_many_columns.check(); }
#endif

// case: never_given_back
// expect-error: kiln[R-PA17] tensor memory of tp, allocated at line {line}, is never given back; dealloc() the pool after its last use
#if defined(TWIN) || defined(CASE_never_given_back)
inline constexpr auto never_given_back = kernel<"never_given_back">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
  auto tp = k.tmem_pool(pool, {.total_cols = 64, .name = "tp"});
  auto a = tp.alloc<f32, 128, 64>({.name = "a"});
  pool.commit();
  tp.commit(); // expect-line
  k.local_store(a, k.zeros<f32, 128, 64>());
#ifdef TWIN
  tp.dealloc();
#endif
});
void use_never_given_back() { never_given_back.check(); }
#endif

// case: given_back_sometimes
// expect-error: kiln[R-PA17] tp: 64 columns of line {line-6} are not released on every path; dealloc outside of the condition or loop
#if defined(TWIN) || defined(CASE_given_back_sometimes)
inline constexpr auto given_back_sometimes = kernel<"given_back_sometimes">([](context& k, val<i32> n) {
  auto pool = k.smem_pool({.name = "pool"});
  auto tp = k.tmem_pool(pool, {.total_cols = 64, .name = "tp"});
  auto a = tp.alloc<f32, 128, 64>({.name = "a"});
  pool.commit();
  tp.commit();
  k.local_store(a, k.zeros<f32, 128, 64>());
#ifdef TWIN
  k.when(n > 0, [&] { k.local_store(a, k.zeros<f32, 128, 64>()); });
  tp.dealloc();
#else
  k.when(n > 0, [&] { tp.dealloc(); }); // expect-line
#endif
});
void use_given_back_sometimes() { given_back_sometimes.check(); }
#endif

// case: given_back_early
// expect-error: kiln[R-PA17] tp: dealloc before commit; there is nothing to give back
#if defined(TWIN) || defined(CASE_given_back_early)
inline constexpr auto given_back_early = kernel<"given_back_early">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
  auto tp = k.tmem_pool(pool, {.total_cols = 64, .name = "tp"});
  auto a = tp.alloc<f32, 128, 64>({.name = "a"});
  pool.commit();
#ifdef TWIN
  tp.commit();
  k.local_store(a, k.zeros<f32, 128, 64>());
#endif
  tp.dealloc(); // expect-line
});
void use_given_back_early() { given_back_early.check(); }
#endif

// case: used_before_commit
// expect-error: kiln[R-PA17] a (64 columns) is used before line {line+2} commits its pool
#if defined(TWIN) || defined(CASE_used_before_commit)
inline constexpr auto used_before_commit = kernel<"used_before_commit">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
  auto tp = k.tmem_pool(pool, {.total_cols = 64, .name = "tp"});
  auto a = tp.alloc<f32, 128, 64>({.name = "a"});
  pool.commit();
#ifndef TWIN
  k.local_store(a, k.zeros<f32, 128, 64>()); // expect-line
#endif
  tp.commit();
  k.local_store(a, k.zeros<f32, 128, 64>());
  tp.dealloc();
});
void use_used_before_commit() { used_before_commit.check(); }
#endif

// case: used_when_given_back
// expect-error: kiln[R-PA17] a (64 columns) is used after line {line-2} gave its columns back
#if defined(TWIN) || defined(CASE_used_when_given_back)
inline constexpr auto used_when_given_back = kernel<"used_when_given_back">([](context& k, ptr<f32> y) {
  auto pool = k.smem_pool({.name = "pool"});
  auto tp = k.tmem_pool(pool, {.total_cols = 64, .name = "tp"});
  auto a = tp.alloc<f32, 128, 64>({.name = "a"});
  pool.commit();
  tp.commit();
  k.local_store(a, k.zeros<f32, 128, 64>());
#ifdef TWIN
  auto last = k.local_load(a);
  tp.dealloc();
#else
  tp.dealloc();
  auto body = [&] {
    auto last = k.local_load(a); // expect-line
    store(y, reduce<max>(last));
  };
  k.async_tasks(k.task_default({}, body));
  auto last = k.zeros<f32, 128, 64>();
#endif
  store(y, reduce<max>(last));
});
void use_used_when_given_back() { used_when_given_back.check(); }
#endif

// case: half_a_column
// expect-error: kiln[R-PA16] a: 33 x f16 in a row do not fill whole 32-bit columns
#if defined(TWIN) || defined(CASE_half_a_column)
inline constexpr auto half_a_column = kernel<"half_a_column">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
  auto tp = k.tmem_pool(pool, {.total_cols = 64, .name = "tp"});
#ifdef TWIN
  auto a = tp.alloc<f16, 128, 34>({.name = "a"});
#else
  auto a = tp.alloc<f16, 128, 33>({.name = "a"}); // expect-line
#endif
  pool.commit();
  tp.commit();
  (void)a;
  tp.dealloc();
});
void use_half_a_column() { half_a_column.check(); }
#endif

// case: loaded_for_other_threads
// expect-error: kiln[R-LY07] layout addresses 128 threads, the kernel has 256 (8 warps of 32)
#if defined(TWIN) || defined(CASE_loaded_for_other_threads)
inline constexpr auto loaded_for_other_threads = kernel<"loaded_for_other_threads", attributes{.num_warps = 8}>([](context& k, ptr<f32> y) {
  auto s = k.alloc_shared<f32, 256>({.name = "s"});
  k.local_store(s, k.zeros<f32, 256>());
#ifdef TWIN
  auto x = k.local_load(s, {.layout = layout::registers(layout::threads<32, 8>({1, 32}), layout::values<1>({0}))});
#else
  auto x = k.local_load(s, {.layout = layout::registers(layout::threads<32, 4>({1, 32}), layout::values<2>({128}))}); // expect-line
#endif
  store(y + k.arange<256>(), x);
});
void use_loaded_for_other_threads() { loaded_for_other_threads.check(); }
#endif

// case: fragment_left_out
// expect-error: kiln[R-LY07] layout ((_32,_4),_1):((_1,_32),_0) does not reach all 256 elements of the tile
#if defined(TWIN) || defined(CASE_fragment_left_out)
inline constexpr auto fragment_left_out = kernel<"fragment_left_out">([](context& k, ptr<f32> y) {
#ifdef TWIN
  auto f = k.alloc_fragment<f32, 256>({.layout = layout::registers(layout::threads<32, 4>({1, 32}), layout::values<2>({128}))});
#else
  auto f = k.alloc_fragment<f32, 256>({.layout = layout::registers(layout::threads<32, 4>({1, 32}), layout::values<1>({0}))}); // expect-line
#endif
  f.fill(1.f);
  store(y + k.arange<256>(), f);
});
void use_fragment_left_out() { fragment_left_out.check(); }
#endif

// case: columns_beyond
// expect-error: kiln[R-PA14] tp: cursor 96 beyond high-water 64
#if defined(TWIN) || defined(CASE_columns_beyond)
inline constexpr auto columns_beyond = kernel<"columns_beyond">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
  auto tp = k.tmem_pool(pool, {.total_cols = 128, .name = "tp"});
  auto a = tp.alloc<f32, 128, 64>({.name = "a"});
#ifdef TWIN
  tp.move_base_to(32);
#else
  tp.move_base_to(96); // expect-line
#endif
  pool.commit();
  tp.commit();
  k.local_store(a, k.zeros<f32, 128, 64>());
  tp.dealloc();
});
void use_columns_beyond() { columns_beyond.check(); }
#endif

// case: bulk_copy_into_padding
// expect-error: its buffer has a layout in which elements do not follow each other; use layout::row_major
#if defined(TWIN) || defined(CASE_bulk_copy_into_padding)
inline constexpr auto bulk_copy_into_padding = kernel<"bulk_copy_into_padding">([](context& k, ptr<const f32> x, ptr<f32> y) {
#ifdef TWIN
  auto s = k.alloc_shared<f32, 4, 64>({.layout = layout::row_major, .name = "s"});
#else
  auto s = k.alloc_shared<f32, 4, 64>({.layout = layout::padded<32>({4}), .name = "s"});
#endif
  auto full = k.alloc_barriers(1, {.name = "full"});
  k.barrier_expect_bytes(full[0], 256);
  k.async_load_bulk(x, s[1], full[0]); // expect-line
  k.barrier_wait(full[0], 0);
  store(y + k.arange<64>(), k.local_load(s[1]));
});
void use_bulk_copy_into_padding() { bulk_copy_into_padding.check(); }
#endif

// case: accumulator_of_a_pair
// expect-error: kiln[R-MM06] d: an accumulator of a pair of CTAs needs a pool of .cta_group = 2 and an even cluster x size, got 1 and 1
#if defined(TWIN) || defined(CASE_accumulator_of_a_pair)
inline constexpr auto accumulator_of_a_pair = kernel<"accumulator_of_a_pair">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
  auto tp = k.tmem_pool(pool, {.total_cols = 64, .name = "tp"});
#ifdef TWIN
  auto d = tp.alloc_mma_d<f32, 128, 64>({.m = 128, .name = "d"});
#else
  auto d = tp.alloc_mma_d<f32, 128, 64>({.m = 256, .cta_group = 2, .name = "d"}); // expect-line
#endif
  pool.commit();
  tp.commit();
  k.local_store(d, k.zeros<f32, 128, 64>());
  tp.dealloc();
});
void use_accumulator_of_a_pair() { accumulator_of_a_pair.check(); }
#endif

// case: factors_in_slots
// expect-error: kiln[R-AL19] s: 2 buffers of 8-bit scale factors; they cannot be multi-buffered, give one a leading extent
#if defined(TWIN) || defined(CASE_factors_in_slots)
inline constexpr auto factors_in_slots = kernel<"factors_in_slots">([](context& k, ptr<i32> y) {
#ifdef TWIN
  auto s = k.local_alloc<u8, 2, 128, 4>(1, {.storage = storage::tmem, .name = "s"});
#else
  auto s = k.local_alloc<u8, 2, 128, 4>(2, {.storage = storage::tmem, .name = "s"}); // expect-line
#endif
  k.local_store(s[0], k.zeros<u8, 2, 128, 4>());
  store(y, reduce<sum>(cast<i32>(k.local_load(s[0]))));
});
void use_factors_in_slots() { factors_in_slots.check(); }
#endif

// case: no_such_instruction
// expect-error: kiln[R-MM01] d: M = 96 of 1 CTAs: an instruction has 64 or 128 rows, of a pair 128 or 256
#if defined(TWIN) || defined(CASE_no_such_instruction)
inline constexpr auto no_such_instruction = kernel<"no_such_instruction">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
  auto tp = k.tmem_pool(pool, {.total_cols = 64, .name = "tp"});
#ifdef TWIN
  auto d = tp.alloc_mma_d<f32, 64, 64>({.m = 64, .name = "d"});
#else
  auto d = tp.alloc_mma_d<f32, 64, 64>({.m = 96, .name = "d"}); // expect-line
#endif
  pool.commit();
  tp.commit();
  k.local_store(d, k.zeros<f32, 64, 64>());
  tp.dealloc();
});
void use_no_such_instruction() { no_such_instruction.check(); }
#endif

// case: rows_of_a_datapath
// expect-error: kiln[R-AL19] d: 128 rows in datapath F, which has 64
#if defined(TWIN) || defined(CASE_rows_of_a_datapath)
inline constexpr auto rows_of_a_datapath = kernel<"rows_of_a_datapath">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
  auto tp = k.tmem_pool(pool, {.total_cols = 64, .name = "tp"});
#ifdef TWIN
  auto d = tp.alloc<f32, 128, 64>({.layout = datapath::D, .name = "d"});
#else
  auto d = tp.alloc<f32, 128, 64>({.layout = datapath::F, .name = "d"}); // expect-line
#endif
  pool.commit();
  tp.commit();
  k.local_store(d, k.zeros<f32, 128, 64>());
  tp.dealloc();
});
void use_rows_of_a_datapath() { rows_of_a_datapath.check(); }
#endif

// case: factors_that_do_not_fit
// expect-error: kiln[R-MM07] s: 6 columns of factors are not a multiple of .per_mma * .reuse = 4 * 1
#if defined(TWIN) || defined(CASE_factors_that_do_not_fit)
inline constexpr auto factors_that_do_not_fit = kernel<"factors_that_do_not_fit">([](context& k) {
  auto pool = k.smem_pool({.name = "pool"});
  auto tp = k.tmem_pool(pool, {.total_cols = 64, .name = "tp"});
#ifdef TWIN
  auto s = tp.alloc_scale<u8, 128, 6>({.per_mma = 2, .name = "s"});
#else
  auto s = tp.alloc_scale<u8, 128, 6>({.per_mma = 4, .name = "s"}); // expect-line
#endif
  pool.commit();
  tp.commit();
  k.local_store(s, k.zeros<u8, 128, 6>());
  tp.dealloc();
});
void use_factors_that_do_not_fit() { factors_that_do_not_fit.check(); }
#endif

// case: a_part_of_folded_columns
// expect-error: kiln[R-BD04] d: its datapath does not lay columns one after the other; load and store it whole
#if defined(TWIN) || defined(CASE_a_part_of_folded_columns)
inline constexpr auto a_part_of_folded_columns = kernel<"a_part_of_folded_columns">([](context& k, ptr<f32> y) {
  auto pool = k.smem_pool({.name = "pool"});
  auto tp = k.tmem_pool(pool, {.total_cols = 64, .name = "tp"});
#ifdef TWIN
  auto d = tp.alloc<f32, 64, 64>({.layout = datapath::F, .name = "d"});
#else
  auto d = tp.alloc<f32, 64, 64>({.layout = datapath::B, .name = "d"});
#endif
  pool.commit();
  tp.commit();
  k.local_store(d, k.zeros<f32, 64, 64>());
  store(y, reduce<sum>(k.local_load(k.subslice<32>(d, 32)))); // expect-line
  tp.dealloc();
});
void use_a_part_of_folded_columns() { a_part_of_folded_columns.check(); }
#endif

// case: column_outside_of_the_pool
// expect-error: kiln[R-BD07] a view of columns 56..71 exceeds the 64 of its pool
#if defined(TWIN) || defined(CASE_column_outside_of_the_pool)
inline constexpr auto column_outside_of_the_pool = kernel<"column_outside_of_the_pool">([](context& k, ptr<f32> y) {
  auto pool = k.smem_pool({.name = "pool"});
  auto tp = k.tmem_pool(pool, {.total_cols = 64, .name = "tp"});
  auto a = tp.alloc<f32, 128, 64>({.name = "a"});
  pool.commit();
  tp.commit();
  k.local_store(a, k.zeros<f32, 128, 64>());
#ifdef TWIN
  auto v = k.decl_buffer<f32, 128, 16>({.scope = storage::tmem, .allocated_addr = 48});
#else
  auto v = k.decl_buffer<f32, 128, 16>({.scope = storage::tmem, .allocated_addr = 56}); // expect-line
#endif
  store(y, reduce<sum>(k.local_load(v)));
  tp.dealloc();
});
void use_column_outside_of_the_pool() { column_outside_of_the_pool.check(); }
#endif

// case: axes_with_a_hole
// expect-error: kiln[R-LY07] a layout of axes that does not say which element every lane, warp and register has; give copies a replica, and leave offsets and other axes out
#if defined(TWIN) || defined(CASE_axes_with_a_hole)
inline constexpr auto axes_with_a_hole = kernel<"axes_with_a_hole">([](context& k, ptr<f32> y) {
  using layout::axis;
#ifdef TWIN
  constexpr auto L = layout::S<4, 16>({1, axis::warp}, {1, axis::lane}) + layout::R<2>({16, axis::lane});
#else
  constexpr auto L = layout::S<4, 16>({1, axis::warp}, {1, axis::lane});
#endif
  auto x = k.require_layout(k.zeros<f32, 64>(), layout::registers(L)); // expect-line
  store(y + k.arange<64>(), x);
});
void use_axes_with_a_hole() { axes_with_a_hole.check(); }
#endif

// case: bases_that_repeat
// expect-error: kiln[R-LY01] s: the bases do not give every element an offset of its own; as many of them as the elements have bits, none the XOR of others
#if defined(TWIN) || defined(CASE_bases_that_repeat)
inline constexpr auto bases_that_repeat = kernel<"bases_that_repeat">([](context& k, ptr<f32> y) {
#ifdef TWIN
  auto s = k.alloc_shared<f32, 4, 4>({.layout = layout::shared_linear<4, 4>({{1, 0}, {2, 0}, {0, 1}, {0, 2}}), .name = "s"});
#else
  auto s = k.alloc_shared<f32, 4, 4>({.layout = layout::shared_linear<4, 4>({{1, 0}, {2, 0}, {3, 0}, {0, 2}}), .name = "s"}); // expect-line
#endif
  k.local_store(s, k.zeros<f32, 4, 4>());
  store(y, reduce<sum>(k.local_load(s)));
});
void use_bases_that_repeat() { bases_that_repeat.check(); }
#endif

// case: local_of_other_registers
// expect-error: kiln[R-BD08] the extents of a local view multiply to the registers that the layout gives a thread
#if defined(TWIN) || defined(CASE_local_of_other_registers)
inline constexpr auto local_of_other_registers = kernel<"local_of_other_registers">([](context& k, ptr<f32> y) {
#ifdef TWIN
  auto mine = local<layout::mma_accumulator<64, 64>(4), 4, 8>(k.zeros<f32, 64, 64>());
#else
  auto mine = local<layout::mma_accumulator<64, 64>(4), 4, 4>(k.zeros<f32, 64, 64>()); // expect-line
#endif
  store(y, reduce<sum>(mine));
});
void use_local_of_other_registers() { local_of_other_registers.check(); }
#endif

// case: a_tile_from_copies
// expect-error: kiln[R-LY07] from_local takes a layout without copies: of several registers with one element, none is the one
#if defined(TWIN) || defined(CASE_a_tile_from_copies)
inline constexpr auto a_tile_from_copies = kernel<"a_tile_from_copies">([](context& k, ptr<f32> y) {
#ifdef TWIN
  auto t = from_local<layout::registers(layout::threads<32, 4>({2, 64}), layout::values<2>({1})), 256>(k.zeros<f32, 128, 2>());
#else
  auto t = from_local<layout::registers(layout::threads<32, 4>({0, 2}), layout::values<2>({1})), 8>(k.zeros<f32, 128, 2>()); // expect-line
#endif
  store(y, reduce<sum>(t));
});
void use_a_tile_from_copies() { a_tile_from_copies.check(); }
#endif

// case: a_register_layout_dealt_out_twice
// expect-error: kiln[R-LY05] a layout with two registers for one element, by strides that are not 0, has no local view
#if defined(TWIN) || defined(CASE_a_register_layout_dealt_out_twice)
inline constexpr auto a_register_layout_dealt_out_twice = kernel<"a_register_layout_dealt_out_twice">([](context& k, ptr<f32> y) {
#ifdef TWIN
  auto mine = local<layout::registers(layout::threads<32, 4>({1, 32}), layout::values<2>({128}))>(k.zeros<f32, 256>());
#else
  auto mine = local<layout::registers(layout::threads<32, 4>({1, 32}), layout::values<2, 2>({128, 64}))>(k.zeros<f32, 256>()); // expect-line
#endif
  store(y, reduce<sum>(mine));
});
void use_a_register_layout_dealt_out_twice() { a_register_layout_dealt_out_twice.check(); }
#endif
