// Matched buffers, elements and short vectors of them, arrays and scalars of a thread: values on interpreter and host, and what the
// checker says where nothing was assigned.
#include "run_everywhere.hpp"

#include <kiln/dsl/buffer.hpp>
#include <kiln/graph/hash.hpp>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

std::vector<f32> numbers(std::size_t n) {
  std::vector<f32> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<f32>(static_cast<int>(i * 37 % 101) - 50);
  return v;
}

// The six maps of the address rule: what element (3, 5), or (t, j), of each is.
TEST(buffers, the_address_rule) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32>) {
    k.let(y);
    auto out = k.match_buffer(y, {8});
    out(0) = k.match_buffer(x, {4, 8})(3, 5);                             // 8i + j
    out(1) = k.match_buffer(x, {4, 8}, {.strides = {1, 4}})(3, 5);        // i + 4j
    out(2) = k.match_buffer(x, {4, 8}, {.elem_offset = 64})(3, 5);        // 8i + j + 64
    out(3) = k.match_buffer(x, {4, 8}, {.strides = {16, 1}})(3, 5);       // 16i + j
    out(4) = k.match_buffer(x, {256}).view({64, 4})(7, 2);                // 4t + j
    out(5) = k.match_buffer(x, {256}).view({64, 4}).permute<1, 0>()(2, 7); // 4j + i
    out(6) = k.match_buffer(x, {4, 8}, {.byte_offset = 256})(0, 0);
  });
  std::vector<f32> in(256);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<f32>(i);
  auto const out = run_everywhere(g, in, 8, 0);
  EXPECT_EQ(out, (std::vector<f32>{29, 23, 93, 53, 30, 30, 64, -1}));
}

TEST(buffers, runtime_extents_and_boxes) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    auto A = k.match_buffer(x, {n, 24});
    auto B = k.match_buffer(y, {n, 24});
    for (auto i : k.range(0, ceil_div(n, 4)))
      store(B.region(at(i * 4, 0), extent<4, 32>), load(A.region(at(i * 4, 0), extent<4, 32>), {.other = 9.f}) * 2.f);
    B(n - 1, 23) = A(n - 1, 23) + cast<f32>(A.extent(0));
    B(0, 0) += A(0, 1);
    auto outside = load(A.region(at(n - 2, 8), extent<4, 4>), {.other = 9.f}); // two rows inside
    store(y + n * 24, reduce<sum>(outside));
    store(y + n * 24 + 1, cast<f32>(A.stride(0)));
  });
  auto const in = numbers(7 * 24);
  auto const out = run_everywhere(g, in, 7 * 24 + 2, 7);
  for (std::size_t i = 1; i + 1 < in.size(); ++i) ASSERT_EQ(out[i], in[i] * 2);
  EXPECT_EQ(out[0], in[0] * 2 + in[1]);
  EXPECT_EQ(out[7 * 24 - 1], in[7 * 24 - 1] + 7);
  f32 sum = 8 * 9;
  for (std::size_t r = 5; r < 7; ++r)
    for (std::size_t c = 8; c < 12; ++c) sum += in[r * 24 + c];
  EXPECT_EQ(out[7 * 24], sum);
  EXPECT_EQ(out[7 * 24 + 1], 24);
}

TEST(buffers, elements_and_vectors_of_local_memory) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    auto A = k.match_buffer(x, {8, 16}, {.align = 16});
    auto s = k.alloc_shared<f32, 8, 16>({.name = "s"});
    k.local_store(s, k.zeros<f32, 8, 16>());
    s(1, 2) = A(0, 3);
    s(n, n + 1) = s(1, 2) * 2.f;
    s(n, n + 1) -= 1.f;
    s.vstore<4>(7, 4, A.vload<4>(2, 8));
    s.vstore<2>(6, n * 2, A.vload<2>(n, 0)); // n * 2 is a multiple of 2
    auto slot = k.local_alloc<f32, 16>(2, {.name = "slot"});
    slot[1](3) = 5.f;
    slot[n - 2](4) = slot[1](3) + 1.f;
    auto row = s.region(at(4, 0), extent<2, 16>); // rows 4 and 5
    row(1, 0) = 11.f;
    s.permute<1, 0>()(15, 0) = 13.f;
    for (auto i : k.range(0, 8)) store(y + i * 16 + k.arange<16>(), k.local_load(s[i]));
    store(y + 128, k.let(slot[1](4)));
    auto window = k.decl_buffer<f32, 4>({.data = s.ptr_to(7, 4)});
    store(y + 129 + k.arange<4>(), k.local_load(window));
    auto all = k.decl_buffer<i32, 2>({.data = s.data(), .elem_offset = 2});
    store(y + 133 + k.arange<2>(), cast<f32>(k.local_load(all)));
  });
  auto const in = numbers(128);
  auto const out = run_everywhere(g, in, 135, 3);
  std::vector<f32> s(128, 0.f);
  s[16 + 2] = in[3];
  s[3 * 16 + 4] = in[3] * 2 - 1;
  for (std::size_t i = 0; i < 4; ++i) s[7 * 16 + 4 + i] = in[2 * 16 + 8 + i];
  for (std::size_t i = 0; i < 2; ++i) s[6 * 16 + 6 + i] = in[3 * 16 + i];
  s[5 * 16] = 11;
  s[15] = 13;
  for (std::size_t i = 0; i < 128; ++i) ASSERT_EQ(out[i], s[i]) << i;
  EXPECT_EQ(out[128], 6);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(out[129 + i], s[7 * 16 + 4 + i]);
}

TEST(buffers, arrays_and_scalars_of_a_thread) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    auto r = k.alloc_local<f32, 2, 3>();
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 3; ++j) r(i, j) = load(x + (i * 3 + j));
    r(1, 2) *= 2.f;
    r(n - 2, n - 1) += 100.f; // (1, 2)
    store(y, r(n - 2, n - 1) + r(0, 0));
    auto ring = k.alloc_local<i32, 4>();
    for (auto i : k.range(0, 4)) ring[i] = i * i;
    store(y + 1, cast<f32>(k.let(ring[n])));
    auto count = k.scalar<i32>();
    count = ring[0]; // an element is read
    for (auto i : k.range(0, n)) count += i;
    store(y + 2, cast<f32>(count));
    auto shared = k.shared_scalar<f32>({.name = "shared"});
    shared = load(x + 5);
    shared += 1.f;
    store(y + 3, k.let(shared));
    auto of_grid = k.alloc_scalar<f32, scope::global>();
    of_grid = 3.f;
    of_grid *= cast<f32>(n);
    store(y + 4, k.let(of_grid));
    auto fixed = k.alloc_scalar<i32, scope::shared_static>();
    fixed = n;
    store(y + 5, cast<f32>(k.let(fixed)));
    auto s = k.alloc_scalar<f32, scope::local>(); // nothing is read where the condition does not hold
    k.when(n == 3, [&] { s = 7.f; });
    k.when(n == 3, [&] { store(y + 6, s); });
  });
  // A workspace: the launch brings it.
  ASSERT_EQ(argument_count(graph_view(g).params), 3);
  auto const in = numbers(8);
  EXPECT_TRUE(validate(g).ok()) << validate(g).text;
  std::vector<f32> host(7 + 64), work(4);
  host_kernel const f(g);
  f.run({word(in.data()), word(host.data()), 3, word(work.data())}, {1});
  host.resize(7);
  EXPECT_EQ(host, (std::vector<f32>{in[5] * 2 + 100 + in[0], 9, 3, in[5] + 1, 9, 3, 7}));
  for (auto policy : all_policies) {
    guarded<f32> x(in), y(7), w(1);
    ip::report const r = ip::run(g, {1}, std::initializer_list<ip::host_argument>{x, y, kiln_test::val(3), w}, {.policy = policy});
    EXPECT_TRUE(r.clean()) << (r.clean() ? "" : r.diagnostics[0].text);
    EXPECT_EQ(std::vector<f32>(y.data(), y.data() + 7), host);
  }
}

// Both spellings of a scalar are the same graph.
TEST(buffers, a_scalar_is_an_array_of_one) {
  auto a = record([](context& k, ptr<f32> y) {
    auto s = k.scalar<f32>();
    s = 1.f;
    s += 2.f;
    store(y, s);
  });
  auto b = record([](context& k, ptr<f32> y) {
    auto r = k.alloc_local<f32, 1>();
    r[0] = 1.f;
    r[0] += 2.f;
    store(y, k.let(r[0]));
  });
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    EXPECT_EQ(a.nodes[i].code, b.nodes[i].code) << i;
    EXPECT_EQ(a.nodes[i].type, b.nodes[i].type) << i;
  }
  EXPECT_EQ(a.operand_pool, b.operand_pool);
  EXPECT_EQ(a.attribute_pool, b.attribute_pool);
}

// The form that names a scope is the same graph as the short one.
TEST(buffers, a_scalar_of_a_scope_is_the_short_form) {
  auto hash = []<class F>(F) {
    return to_string(semantic_hash(record([](context& k, ptr<f32> y) {
      auto s = F{}(k);
      s = 1.f;
      s += 2.f;
      store(y, k.let(s));
    })));
  };
  EXPECT_EQ(hash([](context& k) { return k.alloc_scalar<f32, scope::local>(); }), hash([](context& k) { return k.scalar<f32>(); }));
  EXPECT_EQ(hash([](context& k) { return k.alloc_scalar<f32, scope::shared_dyn>(); }), hash([](context& k) { return k.shared_scalar<f32>(); }));
  EXPECT_EQ(hash([](context& k) { return k.alloc_scalar<f32, scope::shared_static>(); }), hash([](context& k) { return k.shared_scalar<f32>({.scope = scope::shared_static}); }));
}

TEST(buffers, what_was_never_assigned) {
  auto first_fault = [](graph_view g, i32 n) {
    EXPECT_TRUE(validate(g).ok()) << validate(g).text;
    guarded<f32> y(4);
    ip::report const r = ip::run(g, {1}, std::initializer_list<ip::host_argument>{y, kiln_test::val(n)}, {});
    return r.clean() ? std::string() : std::string(r.diagnostics[0].text);
  };
  auto conditional = record([](context& k, ptr<f32> y, kiln::val<i32> n) {
    auto v = k.alloc_var<f32>();
    k.when(n > 0, [&] { v = 1.f; });
    store(y, v);
  });
  EXPECT_EQ(first_fault(conditional, 1), "");
  EXPECT_NE(first_fault(conditional, 0).find("R-HZ15"), std::string::npos) << first_fault(conditional, 0);
  EXPECT_NE(first_fault(conditional, 0).find("is read before its first assignment"), std::string::npos);
  auto indexed = record([](context& k, ptr<f32> y, kiln::val<i32> n) {
    auto r = k.alloc_local<f32, 4>();
    r[1] = 1.f;
    r[2] = 2.f;
    store(y, k.let(r[n]));
  });
  EXPECT_EQ(first_fault(indexed, 2), "");
  EXPECT_NE(first_fault(indexed, 3).find("R-HZ15"), std::string::npos);
  auto misaligned = record([](context& k, ptr<f32> y, kiln::val<i32> n) {
    auto Y = k.match_buffer(y, {4});
    Y.vstore<2>(n, k.zeros<f32, 2>());
  });
  EXPECT_EQ(first_fault(misaligned, 2), "");
  EXPECT_NE(first_fault(misaligned, 1).find("multiple_of<2>"), std::string::npos) << first_fault(misaligned, 1);
}

} // namespace
