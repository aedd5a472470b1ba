// Bodies of element-wise operations on two and three operands.
#include "src/interpreter/elementwise.hpp"

#include <functional>

namespace kiln::interpreter {

namespace {

__extension__ typedef __int128 i128;

/// Marks the elements of an integer result of less than 64 bits that are not what unbounded integers would have given.
/// As an address offset such a result is a mistake, which the access that uses it reports.
template <class Exact>
void mark_wrapped(agent& a, int i, bool unsigned_too, Exact exact) {
  dtype const t = a.at(i).type;
  if (!a.checking() || !is_int(t) || bits_of(t) > 32) return;
  data const& x = a.in(i, 0);
  data const& y = a.in(i, 1);
  data& d = a.out(i);
  if (is_signed_int(t) || unsigned_too)
    for (std::size_t e = 0; e < d.bits.size(); ++e)
      if (exact(static_cast<i128>(int_of(x.at(e))), y.at(e)) != int_of(d.at(e))) {
        if (d.wrapped.empty()) d.wrapped.assign(d.bits.size(), -1);
        d.wrapped[e] = i;
      }
  pass_wrapped(d, x);
  pass_wrapped(d, y);
}

} // namespace

// Integers are added as unsigned, so that wrapping is defined; scalar_ops does the same.
#define KILN_ARITHMETIC(name, symbol, unsigned_too)                                                                    \
  void body<op::name>::run(agent& a, int i) {                                                                          \
    map_two<numbers>(a, i, [](scalar x, scalar y) { return scalar_ops::name(x, y); },                                  \
                     []<class T>(T x, T y) -> T {                                                                      \
                       if constexpr (std::is_integral_v<T>)                                                            \
                         return static_cast<T>(static_cast<u64>(x) symbol static_cast<u64>(y));                       \
                       else                                                                                            \
                         return x symbol y;                                                                            \
                     });                                                                                               \
    mark_wrapped(a, i, unsigned_too, [](i128 x, scalar y) { return x symbol static_cast<i128>(int_of(y)); });          \
  }
KILN_ARITHMETIC(add, +, false)
KILN_ARITHMETIC(sub, -, false)
KILN_ARITHMETIC(mul, *, true)
#undef KILN_ARITHMETIC

void body<op::div>::run(agent& a, int i) {
  map_two<floats>(a, i, [](scalar x, scalar y) { return scalar_ops::div(x, y); }, std::divides<>{});
}
void body<op::rem>::run(agent& a, int i) {
  map_two(a, i, [](scalar x, scalar y) { return scalar_ops::rem(x, y); });
}
void body<op::bit_and>::run(agent& a, int i) {
  map_two(a, i, [](scalar x, scalar y) { return scalar_ops::bit_and(x, y); });
}
void body<op::bit_or>::run(agent& a, int i) {
  map_two(a, i, [](scalar x, scalar y) { return scalar_ops::bit_or(x, y); });
}
void body<op::bit_xor>::run(agent& a, int i) {
  map_two(a, i, [](scalar x, scalar y) { return scalar_ops::bit_xor(x, y); });
}
void body<op::shl>::run(agent& a, int i) {
  map_two(a, i, [](scalar x, scalar y) { return scalar_ops::shl(x, y); });
  mark_wrapped(a, i, true, [](i128 x, scalar count) { return count.bits < 64 ? x * (i128{1} << count.bits) : x == 0 ? 0 : -1; });
}
void body<op::shr>::run(agent& a, int i) {
  map_two(a, i, [](scalar x, scalar y) { return scalar_ops::shr(x, y); });
}

void body<op::min>::run(agent& a, int i) {
  auto const mode = static_cast<nan_mode>(a.graph.attribute(i, 0));
  map_two(a, i, [=](scalar x, scalar y) { return scalar_ops::min(x, y, mode); });
}
void body<op::max>::run(agent& a, int i) {
  auto const mode = static_cast<nan_mode>(a.graph.attribute(i, 0));
  map_two(a, i, [=](scalar x, scalar y) { return scalar_ops::max(x, y, mode); });
}

// Comparisons of any two values of one type, the f8 types too: a graph may hold what the language does not offer.
#define KILN_COMPARISON(name, symbol, verdict)                                                                         \
  void body<op::name>::run(agent& a, int i) {                                                                          \
    map_two<numbers>(                                                                                                  \
        a, i,                                                                                                          \
        [](scalar x, scalar y) {                                                                                       \
          int const order = kiln::detail::compare(x, y);                                                               \
          return scalar_of(verdict);                                                                                   \
        },                                                                                                             \
        [](auto x, auto y) { return x symbol y; });                                                                    \
  }
KILN_COMPARISON(eq, ==, order == 0)
KILN_COMPARISON(ne, !=, order != 0)
KILN_COMPARISON(lt, <, order == -1)
KILN_COMPARISON(le, <=, order == -1 || order == 0)
KILN_COMPARISON(gt, >, order == 1)
KILN_COMPARISON(ge, >=, order == 1 || order == 0)
#undef KILN_COMPARISON

void body<op::fma>::run(agent& a, int i) {
  data const &x = a.in(i, 0), &y = a.in(i, 1), &z = a.in(i, 2);
  data& d = a.fresh(i);
  for (std::size_t e = 0; e < d.bits.size(); ++e) d.bits[e] = scalar_ops::fma(x.at(e), y.at(e), z.at(e)).bits;
}

void body<op::where>::run(agent& a, int i) {
  data const &condition = a.in(i, 0), &x = a.in(i, 1), &y = a.in(i, 2);
  data& d = a.fresh(i);
  for (std::size_t e = 0; e < d.bits.size(); ++e) d.bits[e] = condition.bits[e] != 0 ? x.bits[e] : y.bits[e];
  if (x.wrapped.empty() && y.wrapped.empty()) return;
  d.wrapped.assign(d.bits.size(), -1);
  for (std::size_t e = 0; e < d.bits.size(); ++e) {
    data const& chosen = condition.bits[e] != 0 ? x : y;
    if (!chosen.wrapped.empty()) d.wrapped[e] = chosen.wrapped[e];
  }
}

} // namespace kiln::interpreter
