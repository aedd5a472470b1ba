// Matrix products in every form that a matrix unit may take: types, extents, numbers of warps, and where the operands are.
// The operands hold small whole numbers, so that sums are exact in any order and results can be compared bit for bit.
#pragma once
#include "random_graph.hpp"

#include <kiln/graph/text.hpp>

#include <string>
#include <vector>

namespace kiln_test {

/// Where the operands of a product lie.
enum class operand_place {
  tiles,         ///< loaded where the product needs them
  transposed,    ///< the same, the right one loaded as [n, k] and transposed
  views,         ///< in local memory
  view_of_trans, ///< in local memory, the right one as [n, k], seen transposed
  ring,          ///< copied asynchronously into slots of local memory, the right one as [n, k]
  sliced,        ///< in local memory, the left one as the middle of rows three times as long
  added,         ///< tiles, without a loop: c + a * b twice, with c from memory
  across,        ///< tiles, the left one loaded as [k, m] and transposed
  across_views,  ///< in local memory, the left one as [k, m], seen transposed
};

struct product_form {
  kiln::dtype type{};
  int m = 16, n = 16, k = 16, warps = 4;
  operand_place place{};
  std::string text() const {
    char const* const places[] = {"tiles", "transposed", "views", "view_of_trans", "ring", "sliced", "added", "across", "across_views"};
    return std::string(kiln::name_of(type)) + " " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " " +
           std::to_string(warps) + " warps, " + places[static_cast<int>(place)];
  }
};

/// c = 3 * a * b, by three passes of a loop that adds to one tile of sums; or c + 2 * a * b without one.
inline generated product_graph(product_form const& f, std::uint64_t seed) {
  using kiln::dtype;
  std::string const t = kiln::name_of(f.type);
  dtype const sum = f.type == dtype::i8 ? dtype::i32 : f.type == dtype::f64 ? dtype::f64 : dtype::f32;
  std::string const s = kiln::name_of(sum);
  bool const turned = f.place == operand_place::transposed || f.place == operand_place::view_of_trans || f.place == operand_place::ring;
  bool const added = f.place == operand_place::added, sliced = f.place == operand_place::sliced;
  bool const across = f.place == operand_place::across || f.place == operand_place::across_views;
  bool const local = f.place != operand_place::tiles && f.place != operand_place::transposed && f.place != operand_place::across && !added;
  auto shape = [](int r, int c) { return "[" + std::to_string(r) + "," + std::to_string(c) + "]"; };
  std::string const a = shape(f.m, f.k), held = across ? shape(f.k, f.m) : shape(f.m, sliced ? 3 * f.k : f.k), b = turned ? shape(f.n, f.k) : shape(f.k, f.n), right = shape(f.k, f.n), c = shape(f.m, f.n);
  std::string g = "kernel \"product\" num_warps=" + std::to_string(f.warps) + " {\n  param 0 : ptr<const " + t + ">\n  param 1 : ptr<const " + t +
                  ">\n  param 2 : ptr<" + s + ">\n";
  std::string const slots = f.place == operand_place::ring ? " slots=3\n" : " slots=1\n";
  if (local) g += "  buffer 0 \"a\" : " + t + held + slots + "  buffer 1 \"b\" : " + t + b + slots;
  auto line = [&](std::string const& x) { g += "  " + x + "\n"; };
  // The addresses of a row-major matrix of `columns`.
  auto address = [&](std::string const& n, std::string const& type, std::string const& e, int columns) {
    line("%" + n + "1 = iota {axis=0} : i32" + e);
    line("%" + n + "2 = constant {bits=" + std::to_string(columns) + "} : i32" + e);
    line("%" + n + "3 = mul %" + n + "1, %" + n + "2 : i32" + e);
    line("%" + n + "4 = iota {axis=1} : i32" + e);
    line("%" + n + "5 = add %" + n + "3, %" + n + "4 : i32" + e);
    line("%" + n + "6 = broadcast %" + n + "0 : ptr<" + type + ">" + e);
    line("%" + n + " = ptr_add %" + n + "6, %" + n + "5 : ptr<" + type + ">" + e);
  };
  line("%pa0 = param {index=0} : ptr<" + t + ">");
  line("%pb0 = param {index=1} : ptr<" + t + ">");
  line("%pc0 = param {index=2} : ptr<" + s + ">");
  address("pa", t, across ? held : a, across ? f.m : f.k);
  address("pb", t, b, turned ? f.k : f.n);
  address("pc", s, c, f.n);
  line("%lo = constant {bits=0} : i32");
  line("%hi = constant {bits=3} : i32");
  line("%st = constant {bits=1} : i32");
  line("%zero = constant {bits=0} : " + s + c);
  if (added) line("%before = load %pc, _, _ : " + s + c);
  line("%sums = var " + std::string(added ? "%before" : "%zero") + " : cell<" + s + ">" + c);
  if (local) {
    line("%la = alloc {buffer=0} : buffers<" + t + ">" + held);
    line("%lb = alloc {buffer=1} : buffers<" + t + ">" + b);
  }
  if (f.place == operand_place::ring)
    for (int i = 0; i < 2; ++i) {
      std::string const n = std::to_string(i);
      line("%n" + n + " = constant {bits=" + n + "} : i32");
      line("%fa" + n + " = view_index %la, %n" + n + " : view<" + t + ">" + a);
      line("%fb" + n + " = view_index %lb, %n" + n + " : view<" + t + ">" + b);
      line("%ta" + n + " = async_load %pa, %fa" + n + ", _, _ : token");
      line("%tb" + n + " = async_load %pb, %fb" + n + ", _, _ : token");
      line("%tc" + n + " = async_commit : token");
    }
  if (!added) line("%i = for_begin %lo, %hi, %st : i32");
  if (f.place == operand_place::ring) {
    line("%wait = async_wait {pending=1} : token");
    line("%slot = rem %i, %hi : i32");
    line("%xa = view_index %la, %slot : view<" + t + ">" + a);
    line("%xb = view_index %lb, %slot : view<" + t + ">" + b);
  } else {
    line((across ? "%ua" : "%va") + std::string(" = load %pa, _, _ : ") + t + (across ? held : a));
    if (across && !local) line("%va = trans %ua {dims=[1,0]} : " + t + a);
    line("%vb = load %pb, _, _ : " + t + b);
    if (local) {
      line((sliced || across ? "%whole" : "%xa") + std::string(" = view_index %la, %lo : view<") + t + ">" + held);
      if (across) line("%xa = view_trans %whole {dims=[1,0]} : view<" + t + ">" + a);
      if (sliced) {
        line("%third = constant {bits=" + std::to_string(f.k) + "} : i32");
        line("%xa = view_slice %whole, %lo, %third : view<" + t + ">" + a);
      }
      line("%xb = view_index %lb, %lo : view<" + t + ">" + b);
      line(across ? "local_store %whole, %ua" : "local_store %xa, %va");
      line("local_store %xb, %vb");
    }
  }
  if (turned && local) line("%xc = view_trans %xb {dims=[1,0]} : view<" + t + ">" + right);
  if (turned && !local) line("%vc = trans %vb {dims=[1,0]} : " + t + right);
  line("%old = var_get %sums : " + s + c);
  line("%new = dot " + std::string(local ? "%xa" : "%va") + ", " + (local ? (turned ? "%xc" : "%xb") : (turned ? "%vc" : "%vb")) + ", %old" +
       (f.type == dtype::f32 ? " {fast=true}" : "") + " : " + s + c);
  if (added) {
    line("%twice = dot %va, %vb, %new" + std::string(f.type == dtype::f32 ? " {fast=true}" : "") + " : " + s + c);
    line("store %pc, %twice, _");
  } else {
    line("var_set %sums, %new");
  }
  if (f.place == operand_place::ring) {
    line("%two = constant {bits=2} : i32");
    line("%next = add %i, %two : i32");
    line("%nslot = rem %next, %hi : i32");
    line("%na = view_index %la, %nslot : view<" + t + ">" + a);
    line("%nb = view_index %lb, %nslot : view<" + t + ">" + b);
    line("%tna = async_load %pa, %na, _, _ : token");
    line("%tnb = async_load %pb, %nb, _, _ : token");
    line("%tnc = async_commit : token");
  }
  if (!added) line("for_end");
  if (f.place == operand_place::ring) line("%end = async_wait {pending=0} : token");
  if (!added) {
    line("%out = var_get %sums : " + s + c);
    line("store %pc, %out, _");
  }
  g += "}\n";

  generated r;
  r.graph = kiln::parse_graphs(g, "product").at(0);
  r.arguments.resize(3);
  for (argument& x : r.arguments) x.kind = kiln::node_kind::pointer, x.type = f.type, x.holds = contents::small;
  r.arguments[0].elements = f.m * f.k;
  r.arguments[1].elements = f.n * f.k;
  r.arguments[2].type = sum;
  r.arguments[2].holds = added ? contents::small : contents::zeros;
  r.arguments[2].elements = f.m * f.n;
  r.arguments[2].is_output = true;
  r.grid = {1, 1, 1};
  r.seed = seed;
  return r;
}

/// What is worth a test: every type in every place, with extents and warps that vary.
inline std::vector<product_form> product_forms() {
  using kiln::dtype;
  struct size {
    int m, n, k, warps;
  };
  std::vector<product_form> r;
  for (dtype t : {dtype::f16, dtype::bf16, dtype::f32, dtype::i8, dtype::f8e4m3, dtype::f8e5m2, dtype::f64})
    for (size s : {size{16, 8, 32, 1}, {16, 16, 64, 4}, {64, 64, 64, 4}, {32, 64, 32, 2}, {64, 32, 64, 4}, {128, 64, 32, 8}, {64, 128, 64, 8}, {16, 128, 32, 4}, {8, 16, 32, 4}, {48, 40, 32, 4}})
      for (operand_place p : {operand_place::tiles, operand_place::transposed, operand_place::views, operand_place::view_of_trans, operand_place::ring, operand_place::sliced, operand_place::added, operand_place::across, operand_place::across_views})
        if ((s.m * s.k * (p == operand_place::sliced ? 3 : 1) + s.n * s.k) * static_cast<int>(kiln::bytes_of(t)) * (p == operand_place::ring ? 3 : 1) <= 128 * 1024) r.push_back({t, s.m, s.n, s.k, s.warps, p});
  return r;
}

} // namespace kiln_test
