// Facts about arguments as they are typed on a command line: "0=64", "1%16", "2@16", "3.extent0=1000", "3.stride1%16".
#pragma once
#include "tool.hpp"

#include <kiln/dtype/convert.hpp>
#include <kiln/graph/specialisation.hpp>

#include <charconv>

namespace kiln::tool {

inline constexpr char const* facts_help = "what is known of argument N: N=VALUE, N%DIVISOR, N@ALIGNMENT (bytes), N.extentD=VALUE, N.strideD%DIVISOR, ...";

/// Adds one fact. Errors: bad_input that says what is wrong with it.
inline void add_fact(specialisation& s, graph_view const& g, std::string const& text) {
  auto bad = [&](std::string const& why) -> bad_input { return bad_input("fact '" + text + "': " + why); };
  std::size_t const mark = text.find_first_of("=%@");
  if (mark == std::string::npos) throw bad("expected N=VALUE, N%DIVISOR or N@ALIGNMENT");
  std::string what = text.substr(0, mark), value = text.substr(mark + 1);
  auto number = [&](std::string const& t, char const* name) {
    std::int64_t x = 0;
    auto const [end, error] = std::from_chars(t.data(), t.data() + t.size(), x);
    if (t.empty() || end != t.data() + t.size() || error != std::errc{}) throw bad("'" + t + "' is not " + name);
    return x;
  };
  std::size_t const dot = what.find('.');
  std::int64_t const index = number(what.substr(0, dot), "the number of an argument");
  if (index < 0 || index >= static_cast<std::int64_t>(g.params.size()))
    throw bad("the kernel has arguments 0 to " + std::to_string(g.params.size() - 1));
  param_info const& p = g.params[static_cast<std::size_t>(index)];
  param_facts& f = s.params[static_cast<std::size_t>(index)];
  auto power_of_two = [&](char const* name) {
    std::int64_t const x = number(value, "a number");
    if (x < 1 || x > (1 << 30) || (x & (x - 1)) != 0) throw bad(std::string(name) + " is a power of two");
    return static_cast<std::int32_t>(x);
  };
  if (text[mark] == '@') {
    if (p.kind == node_kind::value || dot != std::string::npos) throw bad("alignment is for pointers and arrays");
    f.alignment = power_of_two("an alignment");
    return;
  }
  integer_fact* fact = &f.scalar;
  if (dot != std::string::npos) {
    std::string const part = what.substr(dot + 1);
    bool const extent = part.starts_with("extent"), stride = part.starts_with("stride");
    if (!extent && !stride) throw bad("expected extentD or strideD after the dot");
    if (p.kind != node_kind::array) throw bad("argument " + std::to_string(index) + " is not an array");
    std::int64_t const axis = number(part.substr(6), "an axis");
    if (axis < 0 || axis >= p.rank) throw bad("the array has " + std::to_string(p.rank) + " axes");
    fact = (extent ? f.extent : f.stride) + axis;
  } else if (p.kind != node_kind::value) {
    throw bad("argument " + std::to_string(index) + " is not a value; say @ALIGNMENT, .extentD or .strideD");
  }
  if (text[mark] == '%') {
    if (p.kind == node_kind::value && !is_int(p.type)) throw bad(std::string("only integers are divisible; the argument is ") + name_of(p.type));
    fact->divisor = power_of_two("a divisor");
    return;
  }
  fact->constant = true;
  if (p.kind != node_kind::value || !is_float(p.type)) {
    std::int64_t const x = number(value, "a whole number");
    fact->value = p.kind == node_kind::value ? static_cast<std::int64_t>(make_scalar(p.type, x).bits) : x;
    return;
  }
  double x = 0;
  auto const [end, error] = std::from_chars(value.data(), value.data() + value.size(), x);
  if (end != value.data() + value.size() || error != std::errc{}) throw bad("'" + value + "' is not a number");
  fact->value = static_cast<std::int64_t>(make_scalar(p.type, x).bits);
}

inline specialisation facts_from(graph_view const& g, std::vector<std::string> const& texts) {
  specialisation s = specialisation::generic(g);
  for (std::string const& t : texts) add_fact(s, g, t);
  return s;
}

} // namespace kiln::tool
