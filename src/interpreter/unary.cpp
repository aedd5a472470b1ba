// Bodies of element-wise operations on one operand.
#include "src/interpreter/elementwise.hpp"

#include <cmath>
#include <numbers>

namespace kiln::interpreter {

namespace {

// Functions with a tolerance: computed with many more bits than the result has, then rounded once. f16, bf16 and f32 in
// double, f64 in long double.
template <class Double, class Extended>
void function(agent& a, int i, Double in_double, Extended in_extended) {
  map_one(a, i, [&](scalar x) -> scalar {
    if (is_nan(x)) return nan_of(x.type);
    if (x.type == dtype::f64) {
      auto const y = static_cast<f64>(in_extended(static_cast<long double>(value_of<f64>(x))));
      return {x.type, pack(y)};
    }
    f64 const y = in_double(value_of<f64>(x));
    return y == y ? convert(scalar_of(y), x.type) : nan_of(x.type);
  });
}

} // namespace

void pass_wrapped(data& to, data const& from) {
  if (from.wrapped.empty()) return;
  if (to.wrapped.empty()) {
    to.wrapped = from.wrapped;
    return;
  }
  for (std::size_t e = 0; e < to.wrapped.size(); ++e)
    if (to.wrapped[e] < 0) to.wrapped[e] = from.wrapped[e];
}

#define KILN_FUNCTION(name, expression)                                                                                \
  void body<op::name>::run(agent& a, int i) {                                                                          \
    auto const f = [](auto x) { return expression; };                                                                  \
    function(a, i, f, f);                                                                                              \
  }
KILN_FUNCTION(exp, std::exp(x))
KILN_FUNCTION(exp2, std::exp2(x))
KILN_FUNCTION(log, std::log(x))
KILN_FUNCTION(log2, std::log2(x))
KILN_FUNCTION(rsqrt, 1 / std::sqrt(x))
KILN_FUNCTION(sin, std::sin(x))
KILN_FUNCTION(cos, std::cos(x))
KILN_FUNCTION(tanh, std::tanh(x))
KILN_FUNCTION(erf, std::erf(x))
#undef KILN_FUNCTION

void body<op::sqrt>::run(agent& a, int i) {
  map_one<floats>(a, i, [](scalar x) { return scalar_ops::sqrt(x); }, [](auto x) { return std::sqrt(x); });
}

void body<op::neg>::run(agent& a, int i) {
  map_one(a, i, [](scalar x) { return scalar_ops::neg(x); }); // a NaN keeps its payload
  pass_wrapped(a.out(i), a.in(i, 0));
}
void body<op::bit_not>::run(agent& a, int i) {
  map_one(a, i, [](scalar x) { return scalar_ops::bit_not(x); });
}
void body<op::abs>::run(agent& a, int i) {
  map_one(a, i, [](scalar x) { return scalar_ops::abs(x); });
}
void body<op::floor>::run(agent& a, int i) {
  map_one(a, i, [](scalar x) { return scalar_ops::floor(x); });
}
void body<op::ceil>::run(agent& a, int i) {
  map_one(a, i, [](scalar x) { return scalar_ops::ceil(x); });
}
void body<op::round>::run(agent& a, int i) {
  map_one(a, i, [](scalar x) { return scalar_ops::round(x); });
}
void body<op::isnan>::run(agent& a, int i) {
  map_one(a, i, [](scalar x) { return scalar_of(is_nan(x)); });
}

namespace {

// f16 -> f32 for every pattern: tiles of products are converted often.
f32 const* f16_table() {
  static std::vector<f32> const table = [] {
    std::vector<f32> t(1 << 16);
    for (u32 b = 0; b < t.size(); ++b) t[b] = static_cast<f32>(f16::from_bits(static_cast<u16>(b)));
    return t;
  }();
  return table.data();
}

} // namespace

void body<op::cast>::run(agent& a, int i) {
  data const& x = a.in(i, 0);
  data& d = a.fresh(i);
  dtype const to = d.type; // carrier: in a doubled run, conversions among wide floating types do nothing
  if (a.run.options.typed_loops && x.type == dtype::f16 && to == dtype::f32) {
    f32 const* const table = f16_table();
    for (std::size_t e = 0; e < d.bits.size(); ++e) d.bits[e] = __builtin_bit_cast(u32, table[x.bits[e]]);
  } else {
    for (std::size_t e = 0; e < d.bits.size(); ++e) d.bits[e] = convert(x.at(e), to).bits;
  }
  if (is_int(to) && is_int(x.type)) pass_wrapped(d, x);
}

void body<op::bitcast>::run(agent& a, int i) {
  data const& x = a.in(i, 0);
  dtype const from = a.at(a.graph.operand(i, 0)).type, to = a.at(i).type;
  data& d = a.fresh(i);
  for (std::size_t e = 0; e < d.bits.size(); ++e)
    d.bits[e] = convert(scalar_from_bits(to, convert(x.at(e), from).bits), d.type).bits;
}

} // namespace kiln::interpreter
