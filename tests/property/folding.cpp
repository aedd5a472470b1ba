// Folding computes what the interpreter computes, bit for bit: random expressions over constants, of every element type,
// folded to one constant, against the same expressions run operation by operation.
#include "interpret.hpp"
#include "test_seed.hpp"

#include <src/graph/passes/passes.hpp>

#include <random>

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

namespace {

constexpr dtype all_types[] = {dtype::b1,  dtype::i8,  dtype::i16,  dtype::i32, dtype::i64, dtype::u8,     dtype::u16,   dtype::u32,
                               dtype::u64, dtype::f16, dtype::bf16, dtype::f32, dtype::f64, dtype::f8e4m3, dtype::f8e5m2};

/// Makes scalar expressions whose every leaf is a constant.
class expressions {
public:
  expressions(recorder& r, std::mt19937_64& random) : r_(r), random_(random) {}

  int make(dtype t, int depth) {
    if (depth == 0 || below(8) == 0) return constant(t);
    if (below(5) == 0) return put(op::cast, t, {make(any(), depth - 1)});
    if (below(8) == 0 && !is_bool(t)) {
      dtype from = any();
      while (bits_of(from) != bits_of(t)) from = any();
      return put(op::bitcast, t, {make(from, depth - 1)});
    }
    if (below(6) == 0) return put(op::where, t, {make(dtype::b1, depth - 1), make(t, depth - 1), make(t, depth - 1)});
    if (is_bool(t)) return boolean(depth);
    if (is_f8(t)) return constant(t);
    auto one = [&](op o) { return put(o, t, {make(t, depth - 1)}); };
    auto two = [&](op o, std::initializer_list<std::int64_t> attributes = {}) { return put(o, t, {make(t, depth - 1), make(t, depth - 1)}, attributes); };
    if (is_int(t)) {
      switch (below(14)) {
      case 0: return two(op::add);
      case 1: return two(op::sub);
      case 2: return two(op::mul);
      case 3: case 4: return two(op::div, {0});
      case 5: case 6: return two(op::rem);
      case 7: return two(op::bit_and);
      case 8: return two(op::bit_or);
      case 9: return two(op::bit_xor);
      case 10: return put(below(2) ? op::shl : op::shr, t, {make(t, depth - 1), small(t)});
      case 11: return two(below(2) ? op::min : op::max, {0});
      case 12: return one(below(2) ? op::neg : op::abs);
      default: return one(op::bit_not);
      }
    }
    switch (below(11)) {
    case 0: return two(op::add);
    case 1: return two(op::sub);
    case 2: return two(op::mul);
    case 3: return two(op::div, {0});
    case 4: return two(below(2) ? op::min : op::max, {below(2)});
    case 5: return one(below(2) ? op::neg : op::abs);
    case 6: return one(op::floor);
    case 7: return one(op::ceil);
    case 8: return one(op::round);
    case 9: return put(op::sqrt, t, {make(t, depth - 1)}, {0});
    default: return put(op::fma, t, {make(t, depth - 1), make(t, depth - 1), make(t, depth - 1)});
    }
  }

private:
  std::int64_t below(int n) { return static_cast<std::int64_t>(random_() % static_cast<unsigned>(n)); }
  dtype any() { return all_types[below(dtype_count)]; }
  int put(op o, dtype t, std::initializer_list<std::int32_t> operands, std::initializer_list<std::int64_t> attributes = {}) {
    return r_.push(o, {t, node_kind::value, 0}, operands, attributes, {});
  }
  /// Any bit pattern, the corners more often than the rest.
  int constant(dtype t) {
    u64 bits = random_() >> below(64);
    if (is_float(t) && below(2) == 0) bits = convert(make_scalar(dtype::f64, static_cast<double>(below(2001) - 1000) / static_cast<double>(1 << below(12))), t).bits;
    if (!is_float(t) && below(3) == 0) bits = u64{1} << (bits_of(t) - 1); // the most negative, or the middle
    if (!is_float(t) && below(3) == 0) bits = static_cast<u64>(below(5) - 2);
    int const width = bits_of(t);
    if (width < 64) bits &= (u64{1} << width) - 1;
    scalar const s = scalar{t, bits};
    return put(op::constant, t, {}, {is_int(t) ? int_of(s) : static_cast<std::int64_t>(bits)});
  }
  int small(dtype t) { return put(op::constant, t, {}, {below(bits_of(t) < 64 ? bits_of(t) + 2 : 66)}); }
  int boolean(int depth) {
    dtype t = any();
    while (!is_arithmetic(t)) t = any();
    auto two = [&](op o, dtype from) { return put(o, dtype::b1, {make(from, depth - 1), make(from, depth - 1)}); };
    switch (below(11)) {
    case 0: return two(op::eq, t);
    case 1: return two(op::ne, t);
    case 2: return two(op::lt, t);
    case 3: return two(op::le, t);
    case 4: return two(op::gt, t);
    case 5: return two(op::ge, t);
    case 6: return two(op::bit_and, dtype::b1);
    case 7: return two(op::bit_or, dtype::b1);
    case 8: return two(op::bit_xor, dtype::b1);
    case 9: return put(op::bit_not, dtype::b1, {make(dtype::b1, depth - 1)});
    default:
      while (!is_float(t) || is_f8(t)) t = any();
      return put(op::isnan, dtype::b1, {make(t, depth - 1)});
    }
  }
  recorder& r_;
  std::mt19937_64& random_;
};

u64 run(graph_view const& g, dtype t) {
  guarded<u64> out(1, ~u64{0});
  std::vector<ip::host_argument> arguments{ip::pointer(out.data(), static_cast<i64>(bytes_of(t)))};
  ip::report const report = ip::run(g, {1}, arguments);
  EXPECT_TRUE(report.clean()) << report.text();
  return out[0];
}

TEST(folding, equals_the_interpreter_bit_for_bit) {
  std::mt19937_64 random(seed());
  std::string_view const fold[] = {"fold", "dce"};
  for (int round = 0; round < 400; ++round)
    for (dtype t : all_types) {
      recorder r;
      param_info p{.kind = node_kind::pointer, .type = t};
      p.node = r.push(op::param, {t, node_kind::pointer, 0}, {}, {0}, {});
      r.params.add() = p;
      int const value = expressions(r, random).make(t, 5);
      r.push(op::store, {}, {p.node, value, -1}, {0, 0}, {});
      ASSERT_TRUE(verify(r.view()).ok()) << verify(r.view()).text;
      graph const before("fold", r), after = run_passes(before, fold);
      // The pointer, one constant, the store: nothing is left to compute.
      ASSERT_EQ(after.view().size(), 3) << name_of(t) << ", round " << round;
      ASSERT_EQ(run(before, t), run(after, t)) << name_of(t) << ", round " << round;
    }
}

// What other systems lost or let overflow.
TEST(folding, divisions_at_the_ends) {
  auto folded = [](auto f) {
    graph const g = record(f);
    std::string_view const fold[] = {"fold", "dce"};
    graph const after = run_passes(g, fold);
    EXPECT_EQ(after.view().size(), 3);
    std::vector<i64> values;
    for (graph const& x : {g, after}) {
      guarded<i64> out(1);
      std::vector<ip::host_argument> arguments{out};
      EXPECT_TRUE(ip::run(x, {1}, arguments).clean());
      values.push_back(out[0]);
    }
    EXPECT_EQ(values[0], values[1]);
    return values[1];
  };
  EXPECT_EQ(folded([](context& k, ptr<i64> p) { store(p, cast<i64>(ceil_div(k.let(24), 10))); }), 3);
  EXPECT_EQ(folded([](context& k, ptr<i64> p) { store(p, cast<i64>(ceil_div(k.let(2147483647), 10))); }), 214748365);
  EXPECT_EQ(folded([](context& k, ptr<i64> p) { store(p, cast<i64>(ceil_div(k.let(-36), 5))); }), -7);
  EXPECT_EQ(folded([](context& k, ptr<i64> p) { store(p, cast<i64>(floor_div(k.let(-7), 3))); }), -3);
  EXPECT_EQ(folded([](context& k, ptr<i64> p) { store(p, k.let((i64{1} << 53) + 1) / 1); }), (i64{1} << 53) + 1);
}

} // namespace
