// Bodies of assertions, printing and promises.
#include "src/interpreter/bodies.hpp"

#include <algorithm>
#include <charconv>

namespace kiln::interpreter {

namespace {

std::string number(scalar s, dtype t) {
  s = convert(s, t);
  if (is_bool(t)) return s.bits != 0 ? "true" : "false";
  if (is_float(t)) {
    char text[40];
    std::to_chars_result end{};
    if (t == dtype::f64) end = std::to_chars(text, text + sizeof text, value_of<f64>(s));
    else end = std::to_chars(text, text + sizeof text, value_of<f32>(s));
    return {text, end.ptr};
  }
  return is_signed_int(t) ? std::to_string(int_of(s)) : std::to_string(s.bits);
}

/// 3, [1, 2], [[1, 2], [3, 4]].
std::string all_numbers(data const& d, dtype t, shape const& s) {
  std::string text;
  for (std::size_t e = 0; e < d.bits.size(); ++e) {
    i64 inner = 1;
    int opens = 0;
    for (int axis = s.rank - 1; axis >= 0; --axis) {
      inner *= s.extent[axis];
      opens += static_cast<i64>(e) % inner == 0;
    }
    if (e != 0) text += ", ";
    text.append(static_cast<std::size_t>(opens), '[');
    text += number(d.at(e), t);
    inner = 1;
    for (int axis = s.rank - 1; axis >= 0; --axis) {
      inner *= s.extent[axis];
      if ((static_cast<i64>(e) + 1) % inner == 0) text += ']';
    }
  }
  return text;
}

/// Copies the operand, marks included.
void identity(agent& a, int i) { a.out(i) = a.in(i, 0); }

/// An element as an integer: an address, or the value.
i64 integer_at(agent& a, int i, data const& d, std::size_t e) {
  return a.at(i).kind == node_kind::pointer ? static_cast<i64>(d.bits[e]) : int_of(d.at(e));
}

} // namespace

void body<op::device_assert>::run(agent& a, int i) {
  data const& condition = a.in(i, 0);
  auto const first = std::find(condition.bits.begin(), condition.bits.end(), u64{0});
  if (first == condition.bits.end()) return;
  auto const e = static_cast<std::size_t>(first - condition.bits.begin());
  char const* const text = a.graph.string(static_cast<int>(a.graph.attribute(i, 0)));
  std::string const where = agent::coordinates(a.shape_of(a.graph.operand(i, 0)), e);
  a.fault(i, "R-VF03", "device_assert failed", where.empty() ? "" : " at " + where, *text ? ": " : "", text);
  throw stop_run{};
}

void body<op::device_print>::run(agent& a, int i) {
  if (!a.run.options.print) return;
  std::string line = a.graph.string(static_cast<int>(a.graph.attribute(i, 0)));
  for (int j = 0; j < a.at(i).operand_count; ++j) {
    int const o = a.graph.operand(i, j);
    line += (line.empty() ? "" : " ") + all_numbers(a.in(i, j), a.at(o).type, a.shape_of(o));
  }
  a.run.options.print(line);
}

void body<op::assume>::run(agent& a, int i) {
  if (a.checking() && a.in(i, 0).bits[0] == 0) a.fault(i, "R-VF02", "assume: the promised condition is false");
}

// Registers have no threads here; what layouts say is checked when the graph is validated, and where they are chosen.
void body<op::require_layout>::run(agent& a, int i) { identity(a, i); }
void body<op::release_layout>::run(agent& a, int i) { identity(a, i); }
void body<op::assert_layout>::run(agent&, int) {}
void body<op::dump_layout>::run(agent&, int) {}

void body<op::multiple_of>::run(agent& a, int i) {
  identity(a, i);
  if (!a.checking()) return;
  data const& d = a.out(i);
  i64 const n = a.graph.attribute(i, 0);
  for (std::size_t e = 0; e < d.bits.size(); ++e)
    if (!is_float(a.at(i).type) || a.at(i).kind == node_kind::pointer) {
      i64 const x = integer_at(a, i, d, e);
      if (x % n == 0) continue;
      bool const pointer = a.at(i).kind == node_kind::pointer;
      if (a.news(i, "R-VF02"))
        a.fault(i, "R-VF02", "multiple_of<", n, ">: ", pointer ? "an address is a multiple of " : "",
                pointer ? std::to_string(x & -x) + " bytes only" : std::to_string(x) + " is no multiple", " ",
                agent::coordinates(a.shape_of(i), e));
    }
}

void body<op::max_contiguous>::run(agent& a, int i) {
  identity(a, i);
  shape const& s = a.shape_of(i);
  if (!a.checking() || s.rank == 0) return;
  bool const pointer = a.at(i).kind == node_kind::pointer;
  if (is_float(a.at(i).type) && !pointer) return;
  data const& d = a.out(i);
  i64 const n = a.graph.attribute(i, 0), step = pointer ? bytes_of(a.at(i).type) : 1;
  auto const row = static_cast<std::size_t>(s.extent[s.rank - 1]);
  for (std::size_t e = 1; e < d.bits.size(); ++e) {
    if (e % row % static_cast<std::size_t>(n) == 0) continue; // a run starts here
    u64 const difference = static_cast<u64>(integer_at(a, i, d, e)) - static_cast<u64>(integer_at(a, i, d, e - 1));
    if (difference != static_cast<u64>(step) && a.news(i, "R-VF02"))
      a.fault(i, "R-VF02", "max_contiguous<", n, ">: element ", agent::coordinates(s, e), " does not follow the one before it");
  }
}

} // namespace kiln::interpreter
