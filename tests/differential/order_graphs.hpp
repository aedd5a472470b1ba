// sort, topk, argmax and histogram of tiles of all sizes: rows in registers, lanes and warps, long rows of which few are wanted,
// many equal elements.
#pragma once
#include "random_graph.hpp"

#include <kiln/graph/text.hpp>

#include <string>
#include <vector>

namespace kiln_test {

/// What a row is made of the memory that it comes from.
enum class row_content { itself, first_element, few_and_nan, in_order };

struct order_form {
  kiln::op what{};
  kiln::dtype type{};
  int rows = 1, columns = 1; ///< rows 1: a tile with one axis
  int axis = 0;
  int count = 1; ///< of topk; bins of a histogram
  int warps = 4;
  contents holds = contents::values;
  bool other_way = false; ///< descending, the least, the smallest
  row_content row = row_content::itself; ///< of a tile with one axis
  std::string text() const {
    return std::string(kiln::name_of(what)) + " " + kiln::name_of(type) + " " + std::to_string(rows) + "x" + std::to_string(columns) + " axis " +
           std::to_string(axis) + " " + std::to_string(count) + " " + std::to_string(warps) + " warps, contents " +
           std::to_string(static_cast<int>(holds)) + (other_way ? ", the other way" : "") + ", row " +
           std::to_string(static_cast<int>(row));
  }
};

inline generated order_graph(order_form const& f, std::uint64_t seed) {
  using kiln::op;
  std::string const t = kiln::name_of(f.type);
  bool const two = f.what == op::topk, one_axis = f.rows == 1;
  auto shape = [&](int r, int c) { return one_axis ? "[" + std::to_string(c) + "]" : "[" + std::to_string(r) + "," + std::to_string(c) + "]"; };
  std::string g = "kernel \"order\" num_warps=" + std::to_string(f.warps) + " {\n  param 0 : ptr<const " + t + ">\n";
  auto line = [&](std::string const& x) { g += "  " + x + "\n"; };
  int rows = f.rows, columns = f.columns;
  if (f.what == op::topk || f.what == op::arg_reduce) (f.axis == 0 && !one_axis ? rows : columns) = f.what == op::topk ? f.count : 1;
  std::string const from = shape(f.rows, f.columns);
  std::string const to = f.what == op::histogram ? "[" + std::to_string(f.count) + "]" : shape(rows, columns);
  std::string const first = f.what == op::sort || two ? t : "i32";
  line("param 1 : ptr<" + first + ">");
  if (two) line("param 2 : ptr<i32>");
  line("%px0 = param {index=0} : ptr<" + t + ">");
  line("%py0 = param {index=1} : ptr<" + first + ">");
  if (two) line("%pi0 = param {index=2} : ptr<i32>");
  auto address = [&](std::string const& n, std::string const& type, std::string const& e, int width, bool flat) {
    line("%" + n + "4 = iota {axis=" + std::string(flat ? "0" : "1") + "} : i32" + e);
    std::string index = "%" + n + "4";
    if (!flat) {
      line("%" + n + "1 = iota {axis=0} : i32" + e);
      line("%" + n + "2 = constant {bits=" + std::to_string(width) + "} : i32" + e);
      line("%" + n + "3 = mul %" + n + "1, %" + n + "2 : i32" + e);
      index = "%" + n + "5";
      line(index + " = add %" + n + "3, %" + n + "4 : i32" + e);
    }
    line("%" + n + "6 = broadcast %" + n + "0 : ptr<" + type + ">" + e);
    line("%" + n + " = ptr_add %" + n + "6, " + index + " : ptr<" + type + ">" + e);
  };
  address("px", t, from, f.columns, one_axis);
  switch (f.row) {
  case row_content::itself: line("%x = load %px, _, _ : " + t + from); break;
  case row_content::first_element: line("%x = load %px6, _, _ : " + t + from); break;
  case row_content::in_order:
    line("%x0 = load %px, _, _ : " + t + from);
    line("%x = sort %x0 {axis=0, descending=" + std::string(f.other_way ? "true" : "false") + "} : " + t + from);
    break;
  case row_content::few_and_nan:
    line("%x0 = load %px, _, _ : " + t + from);
    line("%nan = constant {bits=nan} : " + t + from);
    line("%five = constant {bits=5} : i32" + from);
    line("%front = lt %px4, %five : b1" + from);
    line("%x = where %front, %x0, %nan : " + t + from);
    break;
  }
  std::string const way = f.other_way ? "true" : "false";
  std::string const axis = "axis=" + std::to_string(one_axis ? 0 : f.axis);
  switch (f.what) {
  case op::sort: line("%r = sort %x {" + axis + ", descending=" + way + "} : " + t + to); break;
  case op::topk:
    line("%both = topk %x {" + axis + ", largest=" + (f.other_way ? "false" : "true") + "} : " + t + to);
    line("%r = result %both {index=0} : " + t + to);
    line("%i = result %both {index=1} : i32" + to);
    break;
  case op::arg_reduce: line("%r = arg_reduce %x {op=" + std::string(f.other_way ? "min" : "max") + ", " + axis + ", keep=true} : i32" + to); break;
  default: line("%r = histogram %x : i32" + to); break;
  }
  address("py", first, to, columns, one_axis || f.what == op::histogram);
  line("store %py, %r, _");
  if (two) {
    address("pi", "i32", to, columns, one_axis);
    line("store %pi, %i, _");
  }
  g += "}\n";

  generated r;
  r.graph = kiln::parse_graphs(g, "order").at(0);
  r.arguments.resize(two ? 3 : 2);
  for (argument& x : r.arguments) x.kind = kiln::node_kind::pointer, x.type = kiln::dtype::i32, x.is_output = true;
  r.arguments[0].type = f.type;
  r.arguments[0].elements = std::int64_t{f.rows} * f.columns;
  r.arguments[0].holds = f.holds;
  r.arguments[0].is_output = false;
  if (first == t) r.arguments[1].type = f.type;
  for (std::size_t i = 1; i < r.arguments.size(); ++i) r.arguments[i].elements = f.what == op::histogram ? f.count : std::int64_t{rows} * columns;
  r.grid = {1, 1, 1};
  r.seed = seed;
  return r;
}

inline std::vector<order_form> order_forms() {
  using kiln::dtype;
  using kiln::op;
  std::vector<order_form> r;
  bool way = false;
  auto add = [&](order_form f) {
    f.other_way = way = !way;
    r.push_back(f);
  };
  for (dtype t : {dtype::i8, dtype::u16, dtype::i32, dtype::u64, dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
    contents const any = is_float(t) ? contents::special : contents::values;
    for (contents c : {any, contents::small}) {
      // Rows that threads, warps, the CTA have for themselves, whole and with padding.
      add({op::sort, t, 16, 32, 1, 0, 4, c});
      add({op::sort, t, 50, 6, 0, 0, 4, c});
      add({op::sort, t, 1, 1000, 0, 0, 8, c});
      add({op::sort, t, 1, 2048, 0, 0, 2, c});
      add({op::topk, t, 8, 60, 1, 6, 4, c});
      add({op::topk, t, 33, 7, 0, 33, 4, c});
      // One long row.
      add({op::topk, t, 1, 4096, 0, 8, 4, c});
      add({op::topk, t, 1, 4000, 0, 32, 2, c});
      add({op::topk, t, 1, 8192, 0, 1, 8, c});
      if (c == any && bits_of(t) >= 16 && t != dtype::u64) // more that are as good as the bound than there is room for
        for (row_content row : {row_content::first_element, row_content::in_order, row_content::few_and_nan})
          if (is_float(t) || row != row_content::few_and_nan) add({op::topk, t, 1, 4096, 0, 8, 4, c, false, row});
      add({op::arg_reduce, t, 1, 4096, 0, 0, 4, c});
      add({op::arg_reduce, t, 40, 100, 1, 0, 4, c});
      add({op::arg_reduce, t, 100, 12, 0, 0, 8, c});
      if (!is_int(t)) continue;
      add({op::histogram, t, 1, 5000, 0, 256, 4, c});
      add({op::histogram, t, 30, 70, 0, 3, 8, c});
      add({op::histogram, t, 1, 2048, 0, 5000, 1, c});
    }
    add({op::topk, t, 1, 8192, 0, 16, 4, contents::zeros}); // all equal
  }
  return r;
}

} // namespace kiln_test
