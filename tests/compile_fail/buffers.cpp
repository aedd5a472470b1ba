// Matched buffers, elements and vectors, arrays and scalars of a thread: what is refused, with a twin that is not.
#include <kiln/dsl/buffer.hpp>
#include <kiln/kernel.hpp>
using namespace kiln;

// case: strides_of_another_rank
// expect-error: kiln[R-LY01] 1 strides for 2 axes
#if defined(TWIN) || defined(CASE_strides_of_another_rank)
inline constexpr auto strides_of_another_rank = kernel<"strides_of_another_rank">([](context& k, ptr<const f32> x, ptr<f32> y) {
#ifdef TWIN
  auto A = k.match_buffer(x, {4, 8}, {.strides = {16, 1}});
#else
  auto A = k.match_buffer(x, {4, 8}, {.strides = {16}}); // expect-line
#endif
  store(y, k.let(A(0, 0)));
});
void use_strides_of_another_rank() { strides_of_another_rank.check(); }
#endif

// case: half_an_element
// expect-error: kiln[R-BD08] .byte_offset = 6 is not a multiple of the 4 B of an element f32
#if defined(TWIN) || defined(CASE_half_an_element)
inline constexpr auto half_an_element = kernel<"half_an_element">([](context& k, ptr<const f32> x, ptr<f32> y) {
#ifdef TWIN
  auto A = k.match_buffer(x, {4, 8}, {.byte_offset = 8});
#else
  auto A = k.match_buffer(x, {4, 8}, {.byte_offset = 6}); // expect-line
#endif
  store(y, k.let(A(0, 0)));
});
void use_half_an_element() { half_an_element.check(); }
#endif

// case: element_outside
// expect-error: kiln[R-BD01] index 8 along axis 1 of a matched buffer, valid 0..7
#if defined(TWIN) || defined(CASE_element_outside)
inline constexpr auto element_outside = kernel<"element_outside">([](context& k, ptr<const f32> x, ptr<f32> y) {
  auto A = k.match_buffer(x, {4, 8});
#ifdef TWIN
  store(y, k.let(A(3, 7)));
#else
  store(y, k.let(A(3, 8))); // expect-line
#endif
});
void use_element_outside() { element_outside.check(); }
#endif

// case: local_element_outside
// expect-error: kiln[R-BD01] s: index along axis 0 8, valid 0..7
#if defined(TWIN) || defined(CASE_local_element_outside)
inline constexpr auto local_element_outside = kernel<"local_element_outside">([](context& k, ptr<f32> y) {
  auto s = k.alloc_shared<f32, 4, 8>({.name = "s"});
  k.local_store(s, k.zeros<f32, 4, 8>());
#ifdef TWIN
  store(y, k.let(s(3, 7)));
#else
  store(y, k.let(s(3, 8))); // expect-line
#endif
});
void use_local_element_outside() { local_element_outside.check(); }
#endif

// case: write_through_const
// expect-error: kiln[T-14] an element of a buffer over const memory is assigned; declare the parameter ptr<T>
#if defined(TWIN) || defined(CASE_write_through_const)
#ifdef TWIN
inline constexpr auto write_through_const = kernel<"write_through_const">([](context& k, ptr<f32> x) {
#else
inline constexpr auto write_through_const = kernel<"write_through_const">([](context& k, ptr<const f32> x) {
#endif
  auto A = k.match_buffer(x, {4, 8});
  A(0, 0) = 1.f; // expect-line
});
void use_write_through_const() { write_through_const.check(); }
#endif

// case: region_outside
// expect-error: kiln[R-BD02] a region that starts at 64 of 64 elements (axis 0)
#if defined(TWIN) || defined(CASE_region_outside)
inline constexpr auto region_outside = kernel<"region_outside">([](context& k, ptr<const f32> x, ptr<f32> y) {
  auto A = k.match_buffer(x, {64, 32});
#ifdef TWIN
  auto t = load(A.region(at(60, 0), extent<8, 32>)); // masked
#else
  auto t = load(A.region(at(64, 0), extent<8, 32>)); // expect-line
#endif
  store(y, reduce<sum>(t));
});
void use_region_outside() { region_outside.check(); }
#endif

// case: misaligned_vector
// expect-error: kiln[R-BD06] vload<4> f32 of s at element 6 of 64: it needs a multiple of 4, at most 60
#if defined(TWIN) || defined(CASE_misaligned_vector)
inline constexpr auto misaligned_vector = kernel<"misaligned_vector">([](context& k, ptr<f32> y) {
  auto s = k.alloc_shared<f32, 64>({.name = "s"});
  k.local_store(s, k.zeros<f32, 64>());
#ifdef TWIN
  store(y, reduce<sum>(s.vload<4>(8)));
#else
  store(y, reduce<sum>(s.vload<4>(6))); // expect-line
#endif
});
void use_misaligned_vector() { misaligned_vector.check(); }
#endif

// case: misaligned_runtime_vector
// expect-error: kiln[R-BD06] an index of 2 + a multiple of 4 where a multiple of 4 is promised, or needed by vload and vstore
#if defined(TWIN) || defined(CASE_misaligned_runtime_vector)
inline constexpr auto misaligned_runtime_vector = kernel<"misaligned_runtime_vector">([](context& k, ptr<const f32> x, ptr<f32> y, val<i32> n) {
  auto A = k.match_buffer(x, {4096});
#ifdef TWIN
  auto i = k.let(n * 4);
#else
  auto i = k.let(n * 4 + 2);
#endif
  store(y, reduce<sum>(A.vload<4>(i))); // expect-line
});
void use_misaligned_runtime_vector() { misaligned_runtime_vector.check(); }
#endif

// case: vector_across_rows
// expect-error: kiln[R-BD06] vload<4> of s along an axis whose elements do not follow each other in memory; permute it last
#if defined(TWIN) || defined(CASE_vector_across_rows)
inline constexpr auto vector_across_rows = kernel<"vector_across_rows">([](context& k, ptr<f32> y) {
  auto s = k.alloc_shared<f32, 16, 64>({.name = "s"});
  k.local_store(s, k.zeros<f32, 16, 64>());
#ifdef TWIN
  store(y, reduce<sum>(s.vload<4>(0, 8)));
#else
  store(y, reduce<sum>(s.permute<1, 0>().vload<4>(0, 8))); // expect-line
#endif
});
void use_vector_across_rows() { vector_across_rows.check(); }
#endif

// case: view_of_another_size
// expect-error: kiln[R-BD08] view of 256 elements as 255
#if defined(TWIN) || defined(CASE_view_of_another_size)
inline constexpr auto view_of_another_size = kernel<"view_of_another_size">([](context& k, ptr<const f32> x, ptr<f32> y) {
  auto A = k.match_buffer(x, {256});
#ifdef TWIN
  auto V = A.view({64, 4});
#else
  auto V = A.view({51, 5}); // expect-line
#endif
  store(y, k.let(V(1, 1)));
});
void use_view_of_another_size() { view_of_another_size.check(); }
#endif

// case: element_of_tensor_memory
// expect-error: kiln[R-BD04] t lies in tensor memory, which has no single elements; local_load it first
#if defined(TWIN) || defined(CASE_element_of_tensor_memory)
inline constexpr auto element_of_tensor_memory = kernel<"element_of_tensor_memory">([](context& k, ptr<f32> y) {
#ifdef TWIN
  auto t = k.local_alloc<f32, 128, 32>(1, {.storage = storage::smem, .name = "t"});
#else
  auto t = k.local_alloc<f32, 128, 32>(1, {.storage = storage::tmem, .name = "t"});
#endif
  k.local_store(t[0], k.zeros<f32, 128, 32>());
  store(y, k.let(t[0](1, 2))); // expect-line
});
void use_element_of_tensor_memory() { element_of_tensor_memory.check(); }
#endif

// case: variable_read_first
// expect-error: is read before its first assignment; give it a value where it is made
#if defined(TWIN) || defined(CASE_variable_read_first)
inline constexpr auto variable_read_first = kernel<"variable_read_first">([](context& k, ptr<f32> y) {
  auto v = k.alloc_var<f32>();
#ifdef TWIN
  v = 1.f;
#endif
  for (auto i : k.range(0, 4)) v += cast<f32>(i); // expect-line
  store(y, v);
});
void use_variable_read_first() { variable_read_first.check(); }
#endif

// case: fragment_read_first
// expect-error: is read before its first assignment; give it a value where it is made
#if defined(TWIN) || defined(CASE_fragment_read_first)
inline constexpr auto fragment_read_first = kernel<"fragment_read_first">([](context& k, ptr<f32> y) {
  auto sum = k.alloc_fragment<f32, 64>();
#ifdef TWIN
  sum = k.zeros<f32, 64>();
#endif
  sum += k.full<f32, 64>(1.f); // expect-line
  store(y + k.arange<64>(), sum);
});
void use_fragment_read_first() { fragment_read_first.check(); }
#endif

// case: array_index_outside
// expect-error: kiln[R-BD01] index 3 along axis 1 of r, valid 0..2
#if defined(TWIN) || defined(CASE_array_index_outside)
inline constexpr auto array_index_outside = kernel<"array_index_outside">([](context& k, ptr<f32> y) {
  auto r = k.alloc_local<f32, 2, 3>({.name = "r"});
#ifdef TWIN
  r(1, 2) = 1.f;
#else
  r(1, 3) = 1.f; // expect-line
#endif
  store(y, 1.f);
});
void use_array_index_outside() { array_index_outside.check(); }
#endif

// case: shared_scalar_read_first
// expect-error: kiln[R-HZ15]
#if defined(TWIN) || defined(CASE_shared_scalar_read_first)
inline constexpr auto shared_scalar_read_first = kernel<"shared_scalar_read_first">([](context& k, ptr<i32> y) {
  auto s = k.shared_scalar<i32>({.name = "s"});
#ifdef TWIN
  s = 1;
#endif
  store(y, k.let(s)); // expect-line
});
void use_shared_scalar_read_first() { shared_scalar_read_first.check(); }
#endif

// case: range_outside
// expect-error: kiln[R-BD07] access_ptr to elements 32..79 of s, valid 0..63
#if defined(TWIN) || defined(CASE_range_outside)
inline constexpr auto range_outside = kernel<"range_outside">([](context& k, ptr<f32> y) {
  auto s = k.alloc_shared<f32, 64>({.name = "s"});
  k.local_store(s, k.zeros<f32, 64>());
#ifdef TWIN
  auto p = s.access_ptr(access::r, {.offset = 32, .extent = 32});
#else
  auto p = s.access_ptr(access::r, {.offset = 32, .extent = 48}); // expect-line
#endif
  store(y + k.arange<32>(), k.local_load(k.decl_buffer<f32, 32>({.data = p})));
});
void use_range_outside() { range_outside.check(); }
#endif

// case: view_beyond_a_range
// expect-error: kiln[R-BD07] a view of 128 B at byte 0 exceeds its storage s, which has 64 B from there
#if defined(TWIN) || defined(CASE_view_beyond_a_range)
inline constexpr auto view_beyond_a_range = kernel<"view_beyond_a_range">([](context& k, ptr<f32> y) {
  auto s = k.alloc_shared<f32, 64>({.name = "s"});
  k.local_store(s, k.zeros<f32, 64>());
  auto p = s.access_ptr(access::r, {.offset = 16, .extent = 16});
#ifdef TWIN
  auto v = k.decl_buffer<f32, 16>({.data = p});
#else
  auto v = k.decl_buffer<f32, 32>({.data = p}); // expect-line
#endif
  store(y, reduce<sum>(k.local_load(v)));
});
void use_view_beyond_a_range() { view_beyond_a_range.check(); }
#endif

// case: written_through_a_reader
// expect-error: kiln[R-BD07] s is written through an access_ptr that line {line-5} declares for reading only
#if defined(TWIN) || defined(CASE_written_through_a_reader)
inline constexpr auto written_through_a_reader = kernel<"written_through_a_reader">([](context& k, ptr<f32> y) {
  auto s = k.alloc_shared<f32, 64>({.name = "s"});
  k.local_store(s, k.zeros<f32, 64>());
  auto v = k.decl_buffer<f32, 16>({.data = s.access_ptr(access::r, {.extent = 16})});
#ifdef TWIN
  store(y, reduce<sum>(k.local_load(v)));
#else
  // what was declared for reading is written
  k.local_store(v, k.zeros<f32, 16>()); // expect-line
#endif
  store(y + 1 + k.arange<64>(), k.local_load(s));
});
void use_written_through_a_reader() { written_through_a_reader.check(); }
#endif

// case: access_to_nothing
// expect-error: kiln[R-BD07] access_ptr for no access; say access::r, access::w or access::rw
#if defined(TWIN) || defined(CASE_access_to_nothing)
inline constexpr auto access_to_nothing = kernel<"access_to_nothing">([](context& k, ptr<f32> y) {
  auto A = k.match_buffer(y, {8});
#ifdef TWIN
  store(A.access_ptr(access::w, {.offset = 4}), k.full<f32>(1));
#else
  store(A.access_ptr(access::none), k.full<f32>(1)); // expect-line
#endif
});
void use_access_to_nothing() { access_to_nothing.check(); }
#endif
