// Elementary functions on NVPTX are one statement of inline assembly an element. Here a reader of a few lines runs the statement's text
// on the host, so that its results can be compared without a GPU.
#include "jit/compile.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <kiln/graph/text.hpp>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace kiln;

std::string ptx_of(std::string const& function, std::string const& type) {
  std::string const tile = " : " + type + "[1024]\n";
  std::vector<graph> const graphs =
      parse_graphs("kernel \"f\" num_warps=4 {\n  param 0 : ptr<const " + type + ">\n  param 1 : ptr<" + type + ">\n  %0 = param {index=0} : ptr<" + type +
                   ">\n  %1 = param {index=1} : ptr<" + type + ">\n  %2 = iota {axis=0} : i32[1024]\n  %3 = broadcast %0 : ptr<" + type +
                   ">[1024]\n  %4 = ptr_add %3, %2 : ptr<" + type + ">[1024]\n  %5 = load %4, _, _" + tile + "  %6 = " + function + " %5" + tile +
                   "  %7 = broadcast %1 : ptr<" + type + ">[1024]\n  %8 = ptr_add %7, %2 : ptr<" + type + ">[1024]\n  store %8, %6, _\n}\n");
  return jit::emit(graphs.at(0), specialisation::generic(graphs.at(0)), targets::sm_90a, jit::emit_kind::assembly);
}

/// The lines between the braces of the first statement, `$0` and `$1` for what LLVM put in their place.
std::vector<std::string> statement_of(std::string const& ptx) {
  std::istringstream in(ptx);
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line == "\t{") inside = true; // the kernel's own brace begins its line
    else if (line == "\t}" && inside) return lines;
    else if (inside) lines.push_back(line);
  }
  return {};
}

template <class T> struct machine {
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::map<std::string, std::uint64_t> registers;

  std::uint64_t read(std::string const& name, T x) const {
    if (name.starts_with("%")) return std::bit_cast<bits>(x); // the only thing from outside that is read
    if (name.starts_with("0f") || name.starts_with("0d")) return std::stoull(name.substr(2), nullptr, 16);
    if (auto at = registers.find(name); at != registers.end()) return at->second;
    return static_cast<bits>(std::stoll(name));
  }

  T run(std::vector<std::string> const& lines, T x) {
    for (std::string const& text : lines) {
      std::string spaced;
      for (char c : text) spaced += c == ',' || c == ';' || c == '\t' ? ' ' : c;
      std::istringstream in(spaced);
      std::string operation, to;
      in >> operation;
      if (operation == ".reg") continue;
      in >> to;
      std::vector<std::uint64_t> v;
      for (std::string operand; in >> operand;) v.push_back(read(operand, x));
      auto const f = [&](std::size_t i) { return std::bit_cast<T>(static_cast<bits>(v.at(i))); };
      auto const number = [&](T r) { registers[to] = std::bit_cast<bits>(r); };
      auto const integer = [&](bits r) { registers[to] = r; };
      std::string const name = operation.substr(0, operation.rfind('.')); // without the type
      bool const fp = operation.ends_with(".f32") || operation.ends_with(".f64");
      constexpr bits sign = bits{1} << (8 * sizeof(T) - 1);
      if (name == "mov") {
        if (to.starts_with("%")) return f(0);
        integer(static_cast<bits>(v[0]));
      } else if (name == "add.rn") number(f(0) + f(1));
      else if (name == "sub.rn") number(f(0) - f(1));
      else if (name == "mul.rn") number(f(0) * f(1));
      else if (name == "div.rn") number(f(0) / f(1));
      else if (name == "fma.rn") number(std::fma(f(0), f(1), f(2)));
      else if (name == "neg") number(-f(0));
      else if (name == "abs") number(std::fabs(f(0)));
      else if (name == "copysign") integer((std::bit_cast<bits>(f(0)) & sign) | (std::bit_cast<bits>(f(1)) & ~sign));
      else if (name == "selp") integer(static_cast<bits>(v.at(2) ? v[0] : v[1]));
      else if (name == "add") integer(static_cast<bits>(v[0] + v.at(1)));
      else if (name == "sub") integer(static_cast<bits>(v[0] - v.at(1)));
      else if (name == "and") integer(static_cast<bits>(v[0] & v.at(1)));
      else if (name == "or") integer(static_cast<bits>(v[0] | v.at(1)));
      else if (name == "shl") integer(static_cast<bits>(static_cast<bits>(v[0]) << v.at(1)));
      else if (name == "shr" && operation.find(".u") != std::string::npos) integer(static_cast<bits>(v[0]) >> v.at(1));
      else if (name.starts_with("setp.") && fp) {
        std::string const relation = name.substr(5);
        bool const unordered = std::isnan(f(0)) || std::isnan(f(1));
        registers[to] = relation == "lt"    ? f(0) < f(1)
                        : relation == "gt"  ? f(0) > f(1)
                        : relation == "le"  ? f(0) <= f(1)
                        : relation == "ge"  ? f(0) >= f(1)
                        : relation == "eq"  ? f(0) == f(1)
                        : relation == "ltu" ? unordered || f(0) < f(1)
                        : relation == "nan" ? unordered
                                            : throw std::runtime_error("no relation " + relation);
      } else throw std::runtime_error("no operation " + operation);
    }
    throw std::runtime_error("no result");
  }
};

/// Units in the last place between a result and the exact one; class and sign have to be right.
template <class T> double distance(T got, long double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e30;
  auto const want = static_cast<T>(exact);
  if (got == want) return std::signbit(got) == std::signbit(want) ? 0 : 1e30;
  if (!std::isfinite(got) || !std::isfinite(want)) return 1e30;
  int exponent = 0;
  std::frexp(want, &exponent);
  int const last = std::max(exponent - std::numeric_limits<T>::digits, std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) / std::ldexp(1.0L, last));
}

template <class T> void check(std::string const& type) {
  struct function {
    char const* name;
    long double (*exact)(long double);
    double ulp;
  };
  using real = long double;
  for (function const& f : std::initializer_list<function>{{"exp", [](real x) { return std::exp(x); }, 2},
                                                           {"exp2", [](real x) { return std::exp2(x); }, 2},
                                                           {"log", [](real x) { return std::log(x); }, 2},
                                                           {"log2", [](real x) { return std::log2(x); }, 2},
                                                           {"tanh", [](real x) { return std::tanh(x); }, 4},
                                                           {"erf", [](real x) { return std::erf(x); }, 4}}) {
    std::string const ptx = ptx_of(f.name, type);
    std::vector<std::string> const lines = statement_of(ptx);
    ASSERT_GT(lines.size(), 12u) << f.name << "\n" << ptx;
    machine<T> m;
    T const infinity = std::numeric_limits<T>::infinity();
    std::vector<T> inputs = {T(0), T(-0.0), T(1), T(-1), infinity, -infinity, std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::denorm_min(),
                             std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest(), std::numeric_limits<T>::min()};
    using bits = typename machine<T>::bits;
    for (std::uint64_t i = 1; i <= 500; ++i) {
      auto const mixed = static_cast<bits>((i * 0x9e3779b97f4a7c15u) >> (64 - 8 * sizeof(T)));
      inputs.push_back(std::bit_cast<T>(mixed));
      inputs.push_back(static_cast<T>(static_cast<double>(i) * 0.45 - 120));
    }
    for (T x : inputs) {
      T const got = m.run(lines, x);
      ASSERT_LE(distance(got, f.exact(x)), f.ulp) << type << " " << f.name << "(" << x << ") is " << got;
    }
  }
}

TEST(ptx_statements, functions_of_f32_are_exact_enough) { check<float>("f32"); }
TEST(ptx_statements, functions_of_f64_are_exact_enough) { check<double>("f64"); }

TEST(ptx_statements, each_element_is_one_and_a_function_with_a_branch_is_none) {
  auto const count = [](std::string const& text, std::string const& part) {
    int n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count(ptx_of("exp", "f32"), "\t{\n"), 8);
  EXPECT_EQ(count(ptx_of("sin", "f32"), "\t{\n"), 0);
}

} // namespace
