// Buffers that share storage: specs, overlap trees, buffers over buffers, and reads and writes of each other's bytes.
#include <kiln/kernel.hpp>
using namespace kiln;

// case: spec_storage
// expect-error: kiln[R-AL01] sp: storage smem_cluster cannot be aliased; use smem or tmem
#if defined(TWIN) || defined(CASE_spec_storage)
inline constexpr auto spec_storage = kernel<"spec_storage">([](context& k, ptr<f16> p) {
#ifdef TWIN
  auto sp = k.storage_alias_spec({.storage = storage::smem, .name = "sp"});
#else
  auto sp = k.storage_alias_spec({.storage = storage::smem_cluster, .name = "sp"}); // expect-line
#endif
  auto a = k.local_alloc<f16, 64, 64>(1, {.reuse = &sp, .name = "A"});
  k.local_store(a[0], k.zeros<f16, 64, 64>());
  store(p, reduce<max>(k.local_load(a[0])));
});
void use_spec_storage() { spec_storage.check(); }
#endif

// case: spec_size
// expect-error: kiln[R-AL02] sp: buffer_size_bytes is -1; give a positive size or 0 for computed
#if defined(TWIN) || defined(CASE_spec_size)
inline constexpr auto spec_size = kernel<"spec_size">([](context& k, ptr<f16> p) {
#ifdef TWIN
  auto sp = k.storage_alias_spec({.buffer_size_bytes = 8192, .name = "sp"});
#else
  auto sp = k.storage_alias_spec({.buffer_size_bytes = -1, .name = "sp"}); // expect-line
#endif
  auto a = k.local_alloc<f16, 64, 64>(1, {.reuse = &sp, .name = "A"});
  k.local_store(a[0], k.zeros<f16, 64, 64>());
  store(p, reduce<max>(k.local_load(a[0])));
});
void use_spec_size() { spec_size.check(); }
#endif

// case: wrong_kind
// expect-error: kiln[R-AL03] A is in smem but sp is in tmem; both must agree
#if defined(TWIN) || defined(CASE_wrong_kind)
inline constexpr auto wrong_kind = kernel<"wrong_kind">([](context& k, ptr<f16> p) {
  auto sp = k.storage_alias_spec({.storage = storage::tmem, .name = "sp"});
#ifdef TWIN
  auto a = k.local_alloc<f16, 64, 64>(2, {.storage = storage::tmem, .reuse = &sp, .name = "A"});
#else
  auto a = k.local_alloc<f16, 64, 64>(2, {.reuse = &sp, .name = "A"}); // expect-line
#endif
  k.local_store(a[0], k.zeros<f16, 64, 64>());
  store(p, reduce<max>(k.local_load(a[0])));
});
void use_wrong_kind() { wrong_kind.check(); }
#endif

// case: spec_too_small
// expect-error: kiln[R-AL04] sp: 16384 bytes given, 32768 needed (slot 16384 x 2); largest: F 2 x 16384
#if defined(TWIN) || defined(CASE_spec_too_small)
inline constexpr auto spec_too_small = kernel<"spec_too_small">([](context& k) {
#ifdef TWIN
  auto sp = k.storage_alias_spec({.buffer_size_bytes = 32768, .name = "sp"});
#else
  auto sp = k.storage_alias_spec({.buffer_size_bytes = 16384, .name = "sp"});
#endif
  auto f = k.local_alloc<f32, 64, 64>(2, {.reuse = &sp, .name = "F"}); // expect-line
  sp.set_buffer_overlap(shared_group(f));
  k.local_store(f[0], k.zeros<f32, 64, 64>());
});
void use_spec_too_small() { spec_too_small.check(); }
#endif

// case: tree_too_large
// expect-error: kiln[R-AL04] sp: 32768 bytes given, 49152 needed (slot 24576 x 2); largest: F 2 x 16384
#if defined(TWIN) || defined(CASE_tree_too_large)
inline constexpr auto tree_too_large = kernel<"tree_too_large">([](context& k) {
  auto sp = k.storage_alias_spec({.buffer_size_bytes = 32768, .name = "sp"});
  auto a = k.local_alloc<f16, 64, 64>(2, {.reuse = &sp, .name = "A"});
  auto f = k.local_alloc<f32, 64, 64>(2, {.reuse = &sp, .name = "F"});
#ifdef TWIN
  sp.set_buffer_overlap(shared_group(a, f));
#else
  sp.set_buffer_overlap(distinct_group(a, f)); // expect-line
#endif
  k.local_store(f[0], k.zeros<f32, 64, 64>());
});
void use_tree_too_large() { tree_too_large.check(); }
#endif

// case: foreign_leaf
// expect-error: kiln[R-AL06] B is a leaf of the overlap tree of sp but was not allocated from sp; give it .reuse
#if defined(TWIN) || defined(CASE_foreign_leaf)
inline constexpr auto foreign_leaf = kernel<"foreign_leaf">([](context& k, ptr<f16> p) {
  auto sp = k.storage_alias_spec({.name = "sp"});
  auto a = k.local_alloc<f16, 64, 64>(2, {.reuse = &sp, .name = "A"});
  auto f = k.local_alloc<f32, 64, 64>(2, {.reuse = &sp, .name = "F"});
  auto b = k.local_alloc<f16, 64, 64>(2, {.name = "B"});
  (void)b;
#ifdef TWIN
  sp.set_buffer_overlap(shared_group(a, f));
#else
  sp.set_buffer_overlap(shared_group(a, f, b)); // expect-line
#endif
  k.local_store(a[0], k.zeros<f16, 64, 64>());
  store(p, reduce<max>(k.local_load(a[0])));
});
void use_foreign_leaf() { foreign_leaf.check(); }
#endif

// case: leaf_twice
// expect-error: kiln[R-AL07] A appears twice in the overlap tree of sp (paths 0 and 1.0)
#if defined(TWIN) || defined(CASE_leaf_twice)
inline constexpr auto leaf_twice = kernel<"leaf_twice">([](context& k, ptr<f16> p) {
  auto sp = k.storage_alias_spec({.name = "sp"});
  auto a = k.local_alloc<f16, 64, 64>(2, {.reuse = &sp, .name = "A"});
  auto f = k.local_alloc<f32, 64, 64>(2, {.reuse = &sp, .name = "F"});
#ifdef TWIN
  sp.set_buffer_overlap(distinct_group(a, shared_group(f)));
#else
  sp.set_buffer_overlap(distinct_group(a, shared_group(a, f))); // expect-line
#endif
  k.local_store(a[0], k.zeros<f16, 64, 64>());
  store(p, reduce<max>(k.local_load(a[0])));
});
void use_leaf_twice() { leaf_twice.check(); }
#endif

// case: second_tree
// expect-error: kiln[R-AL08] sp already has an overlap tree, set at line {line-2}
#if defined(TWIN) || defined(CASE_second_tree)
inline constexpr auto second_tree = kernel<"second_tree">([](context& k, ptr<f16> p) {
  auto sp = k.storage_alias_spec({.name = "sp"});
  auto a = k.local_alloc<f16, 64, 64>(2, {.reuse = &sp, .name = "A"});
  auto f = k.local_alloc<f32, 64, 64>(2, {.reuse = &sp, .name = "F"});
  sp.set_buffer_overlap(shared_group(a, f));
#ifndef TWIN
  sp.set_buffer_overlap(shared_group(f, a)); // expect-line
#endif
  k.local_store(a[0], k.zeros<f16, 64, 64>());
  store(p, reduce<max>(k.local_load(a[0])));
});
void use_second_tree() { second_tree.check(); }
#endif

// case: group_size
// expect-error: kiln[R-AL09] reuse_group needs at least one element and a group_size of at least 1 (got 1 element, size 0)
#if defined(TWIN) || defined(CASE_group_size)
inline constexpr auto group_size = kernel<"group_size">([](context& k, ptr<f16> p) {
  auto sp = k.storage_alias_spec({.name = "sp"});
  auto a = k.local_alloc<f16, 64, 64>(2, {.reuse = &sp, .name = "A"});
  auto f = k.local_alloc<f32, 64, 64>(2, {.reuse = &sp, .name = "F"});
#ifdef TWIN
  sp.set_buffer_overlap(shared_group(f, subtile(a, 1)));
#else
  sp.set_buffer_overlap(shared_group(f, subtile(a, 0))); // expect-line
#endif
  k.local_store(a[0], k.zeros<f16, 64, 64>());
  store(p, reduce<max>(k.local_load(a[0])));
});
void use_group_size() { group_size.check(); }
#endif

// case: empty_group
// expect-error: kiln[R-AL09] shared_group needs at least one element
#if defined(TWIN) || defined(CASE_empty_group)
inline constexpr auto empty_group = kernel<"empty_group">([](context& k, ptr<f16> p) {
  auto sp = k.storage_alias_spec({.name = "sp"});
  auto a = k.local_alloc<f16, 64, 64>(2, {.reuse = &sp, .name = "A"});
  auto f = k.local_alloc<f32, 64, 64>(2, {.reuse = &sp, .name = "F"});
#ifdef TWIN
  sp.set_buffer_overlap(shared_group(f, a));
#else
  sp.set_buffer_overlap(shared_group()); // expect-line
#endif
  k.local_store(a[0], k.zeros<f16, 64, 64>());
  store(p, reduce<max>(k.local_load(a[0])));
});
#endif

// case: uneven_slots
// expect-error: kiln[R-AL10] P: 5 buffers are not a multiple of 2 (product of group sizes on its path)
#if defined(TWIN) || defined(CASE_uneven_slots)
inline constexpr auto uneven_slots = kernel<"uneven_slots">([](context& k, ptr<f16> p) {
  auto sp = k.storage_alias_spec({.name = "sp"});
  auto a = k.local_alloc<f16, 64, 64>(2, {.reuse = &sp, .name = "A"});
  auto f = k.local_alloc<f32, 64, 64>(2, {.reuse = &sp, .name = "F"});
#ifdef TWIN
  auto q = k.local_alloc<f16, 64, 64>(4, {.reuse = &sp, .name = "P"});
#else
  auto q = k.local_alloc<f16, 64, 64>(5, {.reuse = &sp, .name = "P"});
#endif
  sp.set_buffer_overlap(shared_group(f, a, subtile(q, 2))); // expect-line
  k.local_store(a[0], k.zeros<f16, 64, 64>());
  store(p, reduce<max>(k.local_load(a[0])));
});
void use_uneven_slots() { uneven_slots.check(); }
#endif

// case: unequal_groups
// expect-error: kiln[R-AL11] sp: F has 2 logical groups (2 buffers / 1), P has 3 (6 / 2); all leaves need the same number
#if defined(TWIN) || defined(CASE_unequal_groups)
inline constexpr auto unequal_groups = kernel<"unequal_groups">([](context& k, ptr<f16> p) {
  auto sp = k.storage_alias_spec({.name = "sp"});
  auto a = k.local_alloc<f16, 64, 64>(2, {.reuse = &sp, .name = "A"});
  auto f = k.local_alloc<f32, 64, 64>(2, {.reuse = &sp, .name = "F"});
#ifdef TWIN
  auto q = k.local_alloc<f16, 64, 64>(4, {.reuse = &sp, .name = "P"});
#else
  auto q = k.local_alloc<f16, 64, 64>(6, {.reuse = &sp, .name = "P"});
#endif
  sp.set_buffer_overlap(shared_group(f, a, subtile(q, 2))); // expect-line
  k.local_store(a[0], k.zeros<f16, 64, 64>());
  store(p, reduce<max>(k.local_load(a[0])));
});
void use_unequal_groups() { unequal_groups.check(); }
#endif

// case: missing_leaf
// expect-error: kiln[R-AL12] A is allocated from sp but missing from its overlap tree
#if defined(TWIN) || defined(CASE_missing_leaf)
inline constexpr auto missing_leaf = kernel<"missing_leaf">([](context& k, ptr<f16> p) {
  auto sp = k.storage_alias_spec({.name = "sp"});
  auto a = k.local_alloc<f16, 64, 64>(2, {.reuse = &sp, .name = "A"});
  auto f = k.local_alloc<f32, 64, 64>(2, {.reuse = &sp, .name = "F"});
#ifdef TWIN
  sp.set_buffer_overlap(shared_group(f, a));
#else
  sp.set_buffer_overlap(shared_group(f)); // expect-line
#endif
  k.local_store(a[0], k.zeros<f16, 64, 64>());
  store(p, reduce<max>(k.local_load(a[0])));
});
void use_missing_leaf() { missing_leaf.check(); }
#endif

// case: late_leaf
// expect-error: kiln[R-AL13] L is allocated from sp after its overlap tree was fixed at line {line-2}; allocate it before
#if defined(TWIN) || defined(CASE_late_leaf)
inline constexpr auto late_leaf = kernel<"late_leaf">([](context& k, ptr<f16> p) {
  auto sp = k.storage_alias_spec({.name = "sp"});
  auto a = k.local_alloc<f16, 64, 64>(2, {.reuse = &sp, .name = "A"});
  auto f = k.local_alloc<f32, 64, 64>(2, {.reuse = &sp, .name = "F"});
  sp.set_buffer_overlap(shared_group(f, a));
#ifndef TWIN
  auto l = k.local_alloc<f32, 64>(2, {.reuse = &sp, .name = "L"}); // expect-line
#endif
#ifndef TWIN
  (void)l;
#endif
  k.local_store(a[0], k.zeros<f16, 64, 64>());
  store(p, reduce<max>(k.local_load(a[0])));
});
void use_late_leaf() { late_leaf.check(); }
#endif

// case: over_too_large
// expect-error: kiln[R-AL14] X needs 65536 bytes, its owner A has 16384; enlarge A or use a storage_alias_spec
#if defined(TWIN) || defined(CASE_over_too_large)
inline constexpr auto over_too_large = kernel<"over_too_large">([](context& k, ptr<f16> p) {
  auto a = k.local_alloc<f16, 64, 64>(2, {.name = "A"});
#ifdef TWIN
  auto x = k.local_alloc<f32, 64, 64>(1, {.reuse = &a, .name = "X"});
#else
  auto x = k.local_alloc<f32, 64, 64>(4, {.reuse = &a, .name = "X"}); // expect-line
#endif
  (void)x;
  k.local_store(a[0], k.zeros<f16, 64, 64>());
  store(p, reduce<max>(k.local_load(a[0])));
});
void use_over_too_large() { over_too_large.check(); }
#endif

// case: over_a_peer
// expect-error: kiln[R-AL14] A has no storage of its own but lies in that of a storage_alias_spec; name the spec in .reuse
#if defined(TWIN) || defined(CASE_over_a_peer)
inline constexpr auto over_a_peer = kernel<"over_a_peer">([](context& k, ptr<f16> p) {
  auto sp = k.storage_alias_spec({.name = "sp"});
  auto a = k.local_alloc<f16, 64, 64>(2, {.reuse = &sp, .name = "A"});
  auto f = k.local_alloc<f32, 64, 64>(2, {.reuse = &sp, .name = "F"});
#ifdef TWIN
  auto x = k.local_alloc<f32, 64>(1, {.reuse = &sp, .name = "X"});
#else
  auto x = k.local_alloc<f32, 64>(1, {.reuse = &a, .name = "X"}); // expect-line
#endif
  (void)x;
  k.local_store(a[0], k.zeros<f16, 64, 64>());
  store(p, reduce<max>(k.local_load(a[0])));
});
void use_over_a_peer() { over_a_peer.check(); }
#endif

// case: alignment
// expect-error: kiln[R-AL15] A wants 4096-byte alignment, the arena guarantees 1024
#if defined(TWIN) || defined(CASE_alignment)
inline constexpr auto alignment = kernel<"alignment">([](context& k, ptr<f16> p) {
#ifdef TWIN
  auto a = k.local_alloc<f16, 64, 64>(2, {.align = 1024, .name = "A"});
#else
  auto a = k.local_alloc<f16, 64, 64>(2, {.align = 4096, .name = "A"}); // expect-line
#endif
  k.local_store(a[0], k.zeros<f16, 64, 64>());
  store(p, reduce<max>(k.local_load(a[0])));
});
void use_alignment() { alignment.check(); }
#endif

// case: read_through_peer
// expect-error: kiln[R-AL16] A[0] (8192 B) is read (alias.cpp:{line}), but bytes 0..8191 were last written through F[0] (16384 B) on line {line-4}; write A[0] first, or declare the pun with .allow_pun
#if defined(TWIN) || defined(CASE_read_through_peer)
inline constexpr auto read_through_peer = kernel<"read_through_peer">([](context& k, ptr<f16> p) {
  auto sp = k.storage_alias_spec({.name = "sp"});
  auto a = k.local_alloc<f16, 64, 64>(2, {.reuse = &sp, .name = "A"});
  auto f = k.local_alloc<f32, 64, 64>(2, {.reuse = &sp, .name = "F"});
  sp.set_buffer_overlap(shared_group(f, a));
  k.local_store(f[0], k.zeros<f32, 64, 64>());
#ifdef TWIN
  k.local_store(a[0], k.zeros<f16, 64, 64>());
#endif
  store(p, reduce<max>(k.local_load(a[0]))); // expect-line
});
void use_read_through_peer() { read_through_peer.check(); }
#endif

// case: write_over_flight
// expect-error: kiln[R-AL17] A[1] (8192 B): the local_store (alias.cpp:{line}) touches bytes 16384..24575 of F[1] (16384 B), where the async_load of line {line-5} may be in flight; wait for it first
#if defined(TWIN) || defined(CASE_write_over_flight)
inline constexpr auto write_over_flight = kernel<"write_over_flight">([](context& k, ptr<f16>, ptr<const f32> w) {
  auto sp = k.storage_alias_spec({.name = "sp"});
  auto a = k.local_alloc<f16, 64, 64>(2, {.reuse = &sp, .name = "A"});
  auto f = k.local_alloc<f32, 64, 64>(2, {.reuse = &sp, .name = "F"});
  sp.set_buffer_overlap(shared_group(f, a));
  k.async_load(w + k.iota<1, 64, 64>(), f[1]);
  k.async_load_commit_group();
#ifdef TWIN
  k.async_load_wait_group(0);
#endif
  k.local_store(a[1], k.zeros<f16, 64, 64>()); // expect-line
  k.async_load_wait_group(0);
});
void use_write_over_flight() { write_over_flight.check(); }
#endif

// case: tensor_rows
// expect-error: kiln[R-AL19] X: 96 rows in tensor memory; rows must be 64 or 128 (8-bit scale factors: a multiple of 32)
#if defined(TWIN) || defined(CASE_tensor_rows)
inline constexpr auto tensor_rows = kernel<"tensor_rows">([](context& k) {
#ifdef TWIN
  auto x = k.local_alloc<f32, 128, 32>(1, {.storage = storage::tmem, .name = "X"});
#else
  auto x = k.local_alloc<f32, 96, 32>(1, {.storage = storage::tmem, .name = "X"}); // expect-line
#endif
  (void)x;
});
void use_tensor_rows() { tensor_rows.check(); }
#endif

// case: tensor_spec_of_64_rows
// expect-error: kiln[R-AL04] sp: 16384 bytes given, 32768 needed (slot 16384 x 2); largest: X 2 x 16384
#if defined(TWIN) || defined(CASE_tensor_spec_of_64_rows)
inline constexpr auto tensor_spec_of_64_rows = kernel<"tensor_spec_of_64_rows">([](context& k, ptr<f32> p) {
#ifdef TWIN
  auto sp = k.storage_alias_spec({.storage = storage::tmem, .buffer_size_bytes = 32768, .name = "sp"}); // 128 columns of 64 rows
#else
  auto sp = k.storage_alias_spec({.storage = storage::tmem, .buffer_size_bytes = 16384, .name = "sp"});
#endif
  auto x = k.local_alloc<f32, 64, 64>(2, {.storage = storage::tmem, .reuse = &sp, .name = "X"}); // expect-line
  k.local_store(x[1], k.zeros<f32, 64, 64>());
  store(p, reduce<max>(k.local_load(x[1])));
});
void use_tensor_spec_of_64_rows() { tensor_spec_of_64_rows.check(); }
#endif

// case: tensor_operand
// expect-error: kiln[R-BD04] X: dot does not reach tensor memory; local_load it first
#if defined(TWIN) || defined(CASE_tensor_operand)
inline constexpr auto tensor_operand = kernel<"tensor_operand">([](context& k, ptr<f32> p) {
  auto x = k.local_alloc<f32, 64, 64>(1, {.storage = storage::tmem, .name = "X"});
  k.local_store(x[0], k.zeros<f32, 64, 64>());
#ifdef TWIN
  auto c = k.dot(k.zeros<f32, 64, 64>(), k.local_load(x[0]));
#else
  auto c = k.dot(k.zeros<f32, 64, 64>(), x[0]); // expect-line
#endif
  store(p, reduce<max>(c));
});
void use_tensor_operand() { tensor_operand.check(); }
#endif

// case: tensor_columns
// expect-error: kiln[R-CP03] tensor memory 768 columns > 512: X 256, Y 256, Z 256
#if defined(TWIN) || defined(CASE_tensor_columns)
inline constexpr auto tensor_columns = kernel<"tensor_columns">([](context& k) {
  auto x = k.local_alloc<f32, 128, 256>(1, {.storage = storage::tmem, .name = "X"});
  auto y = k.local_alloc<f32, 128, 256>(1, {.storage = storage::tmem, .name = "Y"});
#ifdef TWIN
  auto z = k.local_alloc<f16, 64, 512>(1, {.storage = storage::tmem, .reuse = &y, .name = "Z"});
#else
  auto z = k.local_alloc<f32, 128, 256>(1, {.storage = storage::tmem, .name = "Z"}); // expect-line
#endif
  (void)x, (void)z;
});
void use_tensor_columns() { tensor_columns.check(); }
#endif

// case: tensor_slice
// expect-error: kiln[R-BD04] X: tensor memory can only be sliced in columns, at constant offsets of whole 4-byte columns (row offset 64)
#if defined(TWIN) || defined(CASE_tensor_slice)
inline constexpr auto tensor_slice = kernel<"tensor_slice">([](context& k) {
  auto x = k.local_alloc<f32, 128, 32>(1, {.storage = storage::tmem, .name = "X"});
#ifdef TWIN
  auto v = k.local_slice<128, 16>(x[0], {0, 16});
  k.local_store(v, k.zeros<f32, 128, 16>());
#else
  auto v = k.local_slice<64, 32>(x[0], {64, 0}); // expect-line
  k.local_store(v, k.zeros<f32, 64, 32>());
#endif
});
void use_tensor_slice() { tensor_slice.check(); }
#endif

// case: tensor_gather
// expect-error: kiln[R-BD04] X: local_gather does not reach tensor memory; local_load it first
#if defined(TWIN) || defined(CASE_tensor_gather)
inline constexpr auto tensor_gather = kernel<"tensor_gather">([](context& k, ptr<f32> p) {
  auto x = k.local_alloc<f32, 128, 32>(1, {.storage = storage::tmem, .name = "X"});
  k.local_store(x[0], k.zeros<f32, 128, 32>());
#ifdef TWIN
  store(p, reduce<max>(gather<0>(k.local_load(x[0]), k.iota<1, 128, 32>())));
#else
  store(p, reduce<max>(k.local_gather(x[0], k.iota<1, 128, 32>()))); // expect-line
#endif
});
void use_tensor_gather() { tensor_gather.check(); }
#endif

// Two tasks hand a buffer to and fro; what lies over it may be written when nobody needs the scores any more.
// case: task_still_reads
// expect-error: kiln[R-AL17] P[0] (8192 B): the local_store (alias.cpp:{line}) in task softmax touches bytes 0..8191 of QK[0] (16384 B), which line {line-8} in task scores uses, and nothing orders the two; signal a barrier after its last use, and wait for it here
#if defined(TWIN) || defined(CASE_task_still_reads)
inline constexpr auto task_still_reads = kernel<"task_still_reads">([](context& k, ptr<f32> y) {
  auto sp = k.storage_alias_spec({.name = "sp"});
  auto qk = k.local_alloc<f32, 64, 64>(1, {.reuse = &sp, .name = "QK"});
  auto p = k.local_alloc<f16, 64, 64>(1, {.reuse = &sp, .name = "P"});
  sp.set_buffer_overlap(shared_group(qk, p));
  auto full = k.alloc_barriers(1, {.name = "full"}), ready = k.alloc_barriers(1, {.name = "ready"});
  k.async_tasks(k.task_default({.name = "scores"}, [&] {
                  k.local_store(qk[0], k.zeros<f32, 64, 64>());
#ifdef TWIN
                  store(y, reduce<max>(k.local_load(qk[0])));
                  k.barrier_arrive(full[0]);
#else
                  k.barrier_arrive(full[0]);
                  store(y, reduce<max>(k.local_load(qk[0])));
#endif
                  k.barrier_wait(ready[0], 0);
                  store(y + 1, cast<f32>(reduce<max>(k.local_load(p[0]))));
                }),
                k.task({.num_warps = 4, .name = "softmax"}, [&] {
                  k.barrier_wait(full[0], 0);
                  auto x = k.local_load(qk[0]);
                  k.local_store(p[0], cast<f16>(x)); // expect-line
                  k.barrier_arrive(ready[0]);
                }));
});
void use_task_still_reads() { task_still_reads.check(); }
#endif

// case: wrong_buffer_of_task
// expect-error: kiln[R-AL16] QK[0] (16384 B) is read (alias.cpp:{line}), but bytes 0..8191 were last written through P[0] (8192 B) on line {line+7}; write QK[0] first, or declare the pun with .allow_pun
#if defined(TWIN) || defined(CASE_wrong_buffer_of_task)
inline constexpr auto wrong_buffer_of_task = kernel<"wrong_buffer_of_task">([](context& k, ptr<f32> y) {
  auto sp = k.storage_alias_spec({.name = "sp"});
  auto qk = k.local_alloc<f32, 64, 64>(1, {.reuse = &sp, .name = "QK"});
  auto p = k.local_alloc<f16, 64, 64>(1, {.reuse = &sp, .name = "P"});
  auto ready = k.alloc_barriers(1, {.name = "ready"});
  k.async_tasks(k.task_default({.name = "scores"}, [&] {
                  k.barrier_wait(ready[0], 0);
#ifdef TWIN
                  store(y, cast<f32>(reduce<max>(k.local_load(p[0]))));
#else
                  store(y, reduce<max>(k.local_load(qk[0]))); // expect-line
#endif
                }),
                k.task({.num_warps = 4, .name = "softmax"}, [&] {
                  k.local_store(qk[0], k.zeros<f32, 64, 64>());
                  auto x = k.local_load(qk[0]);
                  (void)x;
                  k.local_store(p[0], k.zeros<f16, 64, 64>());
                  k.barrier_arrive(ready[0]);
                }));
});
void use_wrong_buffer_of_task() { wrong_buffer_of_task.check(); }
#endif
