// Every element-wise operation on every type that it takes, against a reference that shares no code with kiln: integers in
// 128 bits, floats in long double, rounded by the processor or by table search (float_reference.hpp).
#include "float_reference.hpp"
#include "interpret.hpp"

#include <bit>
#include <cmath>
#include <functional>
#include <optional>
#include <random>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;
__extension__ typedef __int128 i128;

constexpr dtype all_types[] = {dtype::b1,  dtype::i8,  dtype::i16, dtype::i32,  dtype::i64, dtype::u8,     dtype::u16,   dtype::u32,
                               dtype::u64, dtype::f16, dtype::bf16, dtype::f32, dtype::f64, dtype::f8e4m3, dtype::f8e5m2};

// -- numbers, independently of kiln ------------------------------------------------------------------------------------------

float_reference const* table_of(dtype t) {
  switch (t) {
  case dtype::f16: return &reference_f16();
  case dtype::bf16: return &reference_bf16();
  case dtype::f8e4m3: return &reference_f8e4m3();
  case dtype::f8e5m2: return &reference_f8e5m2();
  default: return nullptr;
  }
}
long double real(scalar s) {
  if (float_reference const* r = table_of(s.type)) return r->decode(static_cast<unsigned>(s.bits));
  if (s.type == dtype::f32) return std::bit_cast<float>(static_cast<u32>(s.bits));
  return std::bit_cast<double>(s.bits);
}
scalar rounded(dtype t, long double x) {
  bool const none = x != x;
  if (float_reference const* r = table_of(t)) return {t, none ? (t == dtype::f8e4m3 ? 0x7fu : t == dtype::f16 ? 0x7e00u : t == dtype::bf16 ? 0x7fc0u : 0x7eu) : r->encode(x)};
  if (t == dtype::f32) return {t, std::bit_cast<u32>(static_cast<float>(x))};
  return {t, std::bit_cast<u64>(static_cast<double>(x))};
}
int width(dtype t) { return t == dtype::b1 ? 1 : static_cast<int>(storage_bits_of(t)); }
bool is_signed_type(dtype t) { return t == dtype::i8 || t == dtype::i16 || t == dtype::i32 || t == dtype::i64; }
i128 whole(scalar s) {
  i128 const x = s.bits;
  return is_signed_type(s.type) && (s.bits >> (width(s.type) - 1)) != 0 ? x - (i128{1} << width(s.type)) : x;
}
scalar wrapped(dtype t, i128 x) { return {t, static_cast<u64>(x) & (width(t) == 64 ? ~u64{0} : (u64{1} << width(t)) - 1)}; }
bool same(scalar a, scalar b) {
  if (a.type != b.type) return false;
  if (is_float(a.type) && real(a) != real(a)) return real(b) != real(b);
  return a.bits == b.bits;
}

// -- operands ----------------------------------------------------------------------------------------------------------------------

constexpr std::size_t count = 512;

std::vector<scalar> operands(dtype t, unsigned seed) {
  std::mt19937_64 random(seed * 31 + static_cast<unsigned>(t));
  std::vector<scalar> v;
  if (is_float(t)) {
    long double const top = t == dtype::f8e4m3 ? 448 : t == dtype::f8e5m2 || t == dtype::f16 ? 57344 : 1e30L;
    for (long double x : {0.0L, -0.0L, 1.0L, -1.0L, 0.5L, -0.5L, 1.5L, 2.5L, -2.5L, 0.25L, 3.0L, 100.0L, -7.75L, 1e-4L, top, -top})
      v.push_back(rounded(t, x));
    long double const huge = std::numeric_limits<long double>::infinity();
    if (t != dtype::f8e4m3 && t != dtype::f8e5m2) v.push_back(rounded(t, huge)), v.push_back(rounded(t, -huge));
    v.push_back(rounded(t, std::nanl("")));
    v.push_back({t, 1}); // the smallest denormal
  } else {
    for (int x : {0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 100, -1, -2, -7}) v.push_back(wrapped(t, x));
    v.push_back(wrapped(t, i128{1} << (width(t) - 1)));
    v.push_back(wrapped(t, (i128{1} << (width(t) - 1)) - 1));
  }
  while (v.size() < count) {
    if (!is_float(t)) v.push_back(wrapped(t, static_cast<i128>(random() >> (random() % 64))));
    else v.push_back(rounded(t, (static_cast<long double>(random() % 2000001) - 1000000) / (1L << (random() % 24))));
  }
  if (seed != 0) std::shuffle(v.begin(), v.end(), random);
  v.resize(count);
  return v;
}

// -- running one operation ---------------------------------------------------------------------------------------------------------

/// out[e] = op(inputs[e]...) for `count` elements.
std::vector<scalar> run_op(op o, dtype result, std::vector<std::vector<scalar>> const& inputs, std::initializer_list<i64> attributes,
                           ip::run_options const& options = {}) {
  recorder r;
  shape line;
  line.rank = 1;
  line.extent[0] = count;
  std::int32_t const s = r.intern(line);
  std::vector<dtype> types;
  for (auto const& v : inputs) types.push_back(v[0].type);
  types.push_back(result);
  std::vector<int> params, loaded;
  for (std::size_t j = 0; j < types.size(); ++j) {
    param_info p{.kind = node_kind::pointer, .type = types[j]};
    p.node = r.push(op::param, {types[j], node_kind::pointer, 0}, {}, {static_cast<i64>(j)}, {});
    r.params.add() = p;
    params.push_back(p.node);
  }
  int const index = r.push(op::iota, {dtype::i32, node_kind::value, s}, {}, {0, 0}, {});
  auto address = [&](std::size_t j) {
    int const b = r.push(op::broadcast, {types[j], node_kind::pointer, s}, {params[j]}, {}, {});
    return r.push(op::ptr_add, {types[j], node_kind::pointer, s}, {b, index}, {}, {});
  };
  for (std::size_t j = 0; j < inputs.size(); ++j)
    loaded.push_back(r.push(op::load, {types[j], node_kind::value, s}, {address(j), -1, -1}, {0, 0, 0}, {}));
  int const n = r.begin_node(o, {result, node_kind::value, s}, {});
  for (int x : loaded) r.add_operand(x);
  for (i64 x : attributes) r.add_attribute(x);
  r.push(op::store, {}, {address(inputs.size()), n, -1}, {0, 0}, {});

  std::vector<std::vector<unsigned char>> memory;
  std::vector<ip::host_argument> arguments;
  for (std::size_t j = 0; j < types.size(); ++j) {
    auto const w = static_cast<std::size_t>(bytes_of(types[j]));
    memory.emplace_back(w * count, 0xee);
    for (std::size_t e = 0; j < inputs.size() && e < count; ++e) std::memcpy(memory[j].data() + e * w, &inputs[j][e].bits, w);
  }
  for (auto& m : memory) arguments.push_back(ip::pointer(m.data(), static_cast<i64>(m.size())));
  ip::report const report = ip::run(r.view(), {1}, arguments, options);
  EXPECT_TRUE(report.clean()) << report.text();
  std::vector<scalar> out(count);
  auto const w = static_cast<std::size_t>(bytes_of(result));
  for (std::size_t e = 0; e < count; ++e) {
    out[e].type = result;
    std::memcpy(&out[e].bits, memory.back().data() + e * w, w);
  }
  return out;
}

using reference = std::function<scalar(std::vector<scalar> const&)>;

void expect_all(op o, dtype in, dtype result, int arity, std::initializer_list<i64> attributes, reference const& f, double ulps = 0) {
  SCOPED_TRACE(std::string(name_of(o)) + " of " + name_of(in) + " to " + name_of(result));
  std::vector<std::vector<scalar>> inputs;
  for (int j = 0; j < arity; ++j) inputs.push_back(operands(in, static_cast<unsigned>(j)));
  for (bool typed_loops : {true, false}) {
    std::vector<scalar> const got = run_op(o, result, inputs, attributes, {.typed_loops = typed_loops});
    for (std::size_t e = 0; e < count; ++e) {
      std::vector<scalar> x;
      for (auto const& v : inputs) x.push_back(v[e]);
      scalar const expected = f(x);
      bool good = same(got[e], expected);
      if (!good && ulps > 0 && real(got[e]) == real(got[e]) && real(expected) == real(expected)) {
        // Neighbours of one sign have neighbouring patterns.
        good = std::abs(static_cast<double>(static_cast<i64>(got[e].bits) - static_cast<i64>(expected.bits))) <= ulps;
      }
      ASSERT_TRUE(good) << "element " << e << ": 0x" << std::hex << x[0].bits << (arity > 1 ? " with 0x" : "")
                        << (arity > 1 ? x[1].bits : 0) << " gives 0x" << got[e].bits << ", expected 0x" << expected.bits;
    }
  }
}

bool computes(dtype t) { return is_float(t) && t != dtype::f8e4m3 && t != dtype::f8e5m2; }
bool is_integer(dtype t) { return !is_float(t) && t != dtype::b1; }

// -- arithmetic ------------------------------------------------------------------------------------------------------------------

// f16 and bf16 are computed as kiln documents it, in float with one rounding more, which is the correctly rounded result;
// long double gives the same. f32 and f64 use the processor.
scalar arithmetic(op o, scalar a, scalar b) {
  dtype const t = a.type;
  if (is_integer(t)) {
    i128 const x = whole(a), y = whole(b);
    switch (o) {
    case op::add: return wrapped(t, x + y);
    case op::sub: return wrapped(t, x - y);
    case op::mul: return wrapped(t, static_cast<i128>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y)));
    default: return wrapped(t, y == 0 ? -1 : x / y);
    }
  }
  auto apply = [&](auto x, auto y) -> decltype(x) { return o == op::add ? x + y : o == op::sub ? x - y : o == op::mul ? x * y : x / y; };
  if (t == dtype::f64) return rounded(t, apply(static_cast<double>(real(a)), static_cast<double>(real(b))));
  return rounded(t, apply(static_cast<float>(real(a)), static_cast<float>(real(b))));
}

TEST(InterpreterElementwise, Arithmetic) {
  for (dtype t : all_types) {
    if (!is_integer(t) && !computes(t)) continue;
    for (op o : {op::add, op::sub, op::mul})
      expect_all(o, t, t, 2, {}, [=](auto const& x) { return arithmetic(o, x[0], x[1]); });
    expect_all(op::div, t, t, 2, {0}, [=](auto const& x) { return arithmetic(op::div, x[0], x[1]); });
  }
}

TEST(InterpreterElementwise, RemainderAndSigns) {
  for (dtype t : all_types) {
    if (is_integer(t))
      expect_all(op::rem, t, t, 2, {}, [=](auto const& x) {
        return whole(x[1]) == 0 ? x[0] : wrapped(t, whole(x[0]) % whole(x[1]));
      });
    if (!is_integer(t) && !computes(t)) continue;
    u64 const sign = u64{1} << (width(t) - 1);
    expect_all(op::neg, t, t, 1, {}, [=](auto const& x) { return is_float(t) ? scalar{t, x[0].bits ^ sign} : wrapped(t, -whole(x[0])); });
    expect_all(op::abs, t, t, 1, {}, [=](auto const& x) {
      return is_float(t) ? scalar{t, x[0].bits & ~sign} : wrapped(t, whole(x[0]) < 0 ? -whole(x[0]) : whole(x[0]));
    });
  }
}

TEST(InterpreterElementwise, Bits) {
  for (dtype t : all_types) {
    if (is_float(t)) continue;
    expect_all(op::bit_and, t, t, 2, {}, [=](auto const& x) { return scalar{t, x[0].bits & x[1].bits}; });
    expect_all(op::bit_or, t, t, 2, {}, [=](auto const& x) { return scalar{t, x[0].bits | x[1].bits}; });
    expect_all(op::bit_xor, t, t, 2, {}, [=](auto const& x) { return scalar{t, x[0].bits ^ x[1].bits}; });
    expect_all(op::bit_not, t, t, 1, {}, [=](auto const& x) { return wrapped(t, ~static_cast<i128>(x[0].bits)); });
    if (t == dtype::b1) continue;
    expect_all(op::shl, t, t, 2, {}, [=](auto const& x) {
      return x[1].bits >= static_cast<u64>(width(t)) ? wrapped(t, 0) : wrapped(t, static_cast<i128>(x[0].bits) << x[1].bits);
    });
    expect_all(op::shr, t, t, 2, {}, [=](auto const& x) {
      u64 const n = x[1].bits;
      if (n >= static_cast<u64>(width(t))) return wrapped(t, whole(x[0]) < 0 ? -1 : 0);
      return wrapped(t, whole(x[0]) >> n);
    });
  }
}

TEST(InterpreterElementwise, MinMaxByNanMode) {
  for (dtype t : all_types) {
    if (!is_integer(t) && !computes(t)) continue;
    for (i64 mode : {0, 1})
      for (op o : {op::min, op::max}) {
        SCOPED_TRACE(name_of(t));
        std::vector<scalar> const x = operands(t, 0), y = operands(t, 1);
        std::vector<scalar> const got = run_op(o, t, {x, y}, {mode});
        for (std::size_t e = 0; e < count; ++e) {
          if (is_integer(t)) {
            i128 const a = whole(x[e]), b = whole(y[e]);
            ASSERT_EQ(whole(got[e]), o == op::min ? (a < b ? a : b) : (a > b ? a : b));
            continue;
          }
          long double const a = real(x[e]), b = real(y[e]), g = real(got[e]);
          if (a != a || b != b) {
            long double const number = a == a ? a : b;
            if (mode == 1 || number != number) ASSERT_NE(g, g);
            else ASSERT_EQ(g, number);
          } else {
            ASSERT_EQ(g, o == op::min ? std::fmin(a, b) : std::fmax(a, b)); // zeros of either sign are equal here
          }
        }
      }
  }
}

TEST(InterpreterElementwise, Comparisons) {
  struct {
    op o;
    bool (*holds)(long double, long double);
    bool (*holds_whole)(i128, i128);
  } const comparisons[] = {
      {op::eq, [](long double a, long double b) { return a == b; }, [](i128 a, i128 b) { return a == b; }},
      {op::ne, [](long double a, long double b) { return a != b; }, [](i128 a, i128 b) { return a != b; }},
      {op::lt, [](long double a, long double b) { return a < b; }, [](i128 a, i128 b) { return a < b; }},
      {op::le, [](long double a, long double b) { return a <= b; }, [](i128 a, i128 b) { return a <= b; }},
      {op::gt, [](long double a, long double b) { return a > b; }, [](i128 a, i128 b) { return a > b; }},
      {op::ge, [](long double a, long double b) { return a >= b; }, [](i128 a, i128 b) { return a >= b; }},
  };
  for (dtype t : all_types)
    for (auto const& c : comparisons) {
      if (t == dtype::b1 && c.o != op::eq && c.o != op::ne) continue;
      if (is_float(t) && !computes(t)) continue;
      expect_all(c.o, t, dtype::b1, 2, {}, [&](auto const& x) {
        return scalar{dtype::b1, is_float(t) ? c.holds(real(x[0]), real(x[1])) : c.holds_whole(whole(x[0]), whole(x[1]))};
      });
    }
}

TEST(InterpreterElementwise, Where) {
  for (dtype t : all_types) {
    std::vector<scalar> const c = operands(dtype::b1, 2), x = operands(t, 0), y = operands(t, 1);
    std::vector<scalar> const got = run_op(op::where, t, {c, x, y}, {});
    for (std::size_t e = 0; e < count; ++e) ASSERT_EQ(got[e].bits, (c[e].bits != 0 ? x : y)[e].bits) << name_of(t) << e;
  }
}

TEST(InterpreterElementwise, FusedMultiplyAdd) {
  for (dtype t : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64})
    expect_all(op::fma, t, t, 3, {}, [=](auto const& x) {
      if (t == dtype::f64) return rounded(t, std::fma(static_cast<double>(real(x[0])), static_cast<double>(real(x[1])), static_cast<double>(real(x[2]))));
      return rounded(t, std::fma(static_cast<float>(real(x[0])), static_cast<float>(real(x[1])), static_cast<float>(real(x[2]))));
    });
}

TEST(InterpreterElementwise, RoundingToIntegers) {
  for (dtype t : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
    expect_all(op::floor, t, t, 1, {}, [=](auto const& x) { return rounded(t, std::floor(real(x[0]))); });
    expect_all(op::ceil, t, t, 1, {}, [=](auto const& x) { return rounded(t, std::ceil(real(x[0]))); });
    expect_all(op::round, t, t, 1, {}, [=](auto const& x) { return rounded(t, std::round(real(x[0]))); });
  }
  for (dtype t : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64})
    expect_all(op::isnan, t, dtype::b1, 1, {}, [](auto const& x) { return scalar{dtype::b1, real(x[0]) != real(x[0])}; });
}

TEST(InterpreterElementwise, Functions) {
  struct {
    op o;
    long double (*f)(long double);
  } const functions[] = {
      {op::exp, [](long double x) { return std::exp(x); }},    {op::exp2, [](long double x) { return std::exp2(x); }},
      {op::log, [](long double x) { return std::log(x); }},    {op::log2, [](long double x) { return std::log2(x); }},
      {op::sqrt, [](long double x) { return std::sqrt(x); }},  {op::rsqrt, [](long double x) { return 1 / std::sqrt(x); }},
      {op::sin, [](long double x) { return std::sin(x); }},    {op::cos, [](long double x) { return std::cos(x); }},
      {op::tanh, [](long double x) { return std::tanh(x); }},  {op::erf, [](long double x) { return std::erf(x); }},
  };
  for (dtype t : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64})
    for (auto const& f : functions)
      expect_all(f.o, t, t, 1, {0}, [&](auto const& x) { return rounded(t, f.f(real(x[0]))); }, f.o == op::sqrt && t != dtype::f64 ? 0 : 1);
}

// -- conversions -------------------------------------------------------------------------------------------------------------------

scalar converted(scalar s, dtype to) {
  if (is_float(s.type)) {
    long double const x = real(s);
    if (to == dtype::b1) return {to, x != 0}; // NaN is true
    if (is_float(to)) return rounded(to, x);
    if (x != x) return {to, 0};
    i128 const low = is_signed_type(to) ? -(i128{1} << (width(to) - 1)) : 0;
    i128 const high = is_signed_type(to) ? (i128{1} << (width(to) - 1)) - 1 : (i128{1} << width(to)) - 1;
    if (x <= static_cast<long double>(low)) return wrapped(to, low);
    if (x >= static_cast<long double>(high)) return wrapped(to, high);
    return wrapped(to, static_cast<i128>(x));
  }
  i128 const x = whole(s);
  if (to == dtype::b1) return {to, x != 0};
  if (!is_float(to)) return wrapped(to, x);
  if (to == dtype::f32) return {to, std::bit_cast<u32>(is_signed_type(s.type) ? static_cast<float>(static_cast<i64>(x)) : static_cast<float>(static_cast<u64>(x)))};
  return rounded(to, static_cast<long double>(x)); // 64 bits are exact in long double
}

TEST(InterpreterElementwise, CastsBetweenAllTypes) {
  for (dtype from : all_types)
    for (dtype to : all_types)
      if (from != to) expect_all(op::cast, from, to, 1, {}, [=](auto const& x) { return converted(x[0], to); });
}

TEST(InterpreterElementwise, BitcastsKeepBits) {
  for (dtype from : all_types)
    for (dtype to : all_types)
      if (from != to && from != dtype::b1 && to != dtype::b1 && width(from) == width(to)) {
        std::vector<scalar> const x = operands(from, 0), got = run_op(op::bitcast, to, {x}, {});
        for (std::size_t e = 0; e < count; ++e) ASSERT_EQ(got[e].bits, x[e].bits) << name_of(from) << name_of(to);
      }
}

// -- the doubled run -----------------------------------------------------------------------------------------------------------------

TEST(InterpreterElementwise, DoubledRunsRoundAtTheEndOnly) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, ptr<f16> h, ptr<i32> b) {
    auto i = k.arange<4>();
    auto v = load(x + i);
    auto w = (v + 1.f) - 1.f; // f32 loses the small part
    store(y + i, w);
    store(h + i, cast<f16>(cast<f16>(v + 2048.f) - cast<f16>(k.full<f32, 4>(2048.f))));
    store(b + i, bitcast<i32>(w));
  });
  guarded<f32> x(4, 1e-9f), y(4);
  guarded<f16> h(4);
  guarded<i32> b(4);
  x[1] = 0.5f;
  run_clean(g, {1}, {x, y, h, b});
  EXPECT_EQ(y[0], 0.f);
  EXPECT_EQ(f32(h[1]), 0.f); // 2048.5 is no f16
  EXPECT_EQ(b[0], 0);
  run_clean(g, {1}, {x, y, h, b}, {.precision = ip::precision::doubled});
  EXPECT_NEAR(y[0], 1e-9f, 1e-15f);
  EXPECT_EQ(f32(h[1]), 0.5f);
  EXPECT_EQ(b[0], std::bit_cast<i32>(y[0]));
}

TEST(InterpreterElementwise, DoubledRunsStillRoundToF8) {
  auto g = record([](context& k, ptr<f32> y) { store(y + k.arange<1>(), cast<f32>(cast<f8e4m3>(k.full<f32, 1>(1.0624f)))); });
  guarded<f32> y(1);
  run_clean(g, {1}, {y}, {.precision = ip::precision::doubled});
  EXPECT_EQ(y[0], 1.f);
}

} // namespace
