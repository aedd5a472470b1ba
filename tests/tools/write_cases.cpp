// Writes what the differential tests run as folders, so that anything that runs machine code can be tested without kiln in it: a
// device elsewhere, a simulator, an emulator.
//
//   write_cases FOLDER [--set NAME]... [--seed N] [--random N] [--lanes N] [--only TEXT] [--list]
//   write_cases FOLDER --kernel FILE.kg [--grid X,Y,Z] [--arg I=VALUE|ELEMENTS|EXTENTxEXTENT]... [--holds small|moderate|values] [--ulps N]
//
// Sets: every (each operation on each type), order, storage, products, random (N graphs of each kind); all of them otherwise.
// Cases with layouts of registers are made for warps of --lanes threads: 32, or 64.
// With --kernel: each kernel of a file on arguments as `kiln check` takes them, in the set `given`. What a kernel may write to is
// an output. Small contents are whole numbers, of which sums are exact in any order.
// FOLDER/SET/CASE holds
//   graph.kg      the kernel, for `kiln compile graph.kg --target ... --emit obj`
//   case.txt      "grid X Y Z", "warps N", then one line an argument, in order:
//                   argument I value TYPE BITS
//                   argument I pointer TYPE ELEMENTS input|output
//                   argument I array TYPE ELEMENTS input|output RANK extents... strides...
//                 and for an output how it is compared: "exact", or "ulps N" for N representable numbers; see same_element
//   argI.bin      what buffer I holds before; an output that is never read holds a pattern that is no result by chance
//   expectI.bin   what output I must hold afterwards, by the interpreter; inputs stay as they were
// Machine code takes a value as 8 bytes, a pointer as an address, an array as an address, its extents and its strides, 8 bytes each.
#include "compare.hpp"
#include "order_graphs.hpp"
#include "product_graphs.hpp"
#include "storage_graphs.hpp"

#include <kiln/graph/text.hpp>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace kiln_test;
using kiln::dtype;
using kiln::node_kind;
using kiln::op;

struct options {
  std::filesystem::path folder;
  std::vector<std::string> sets;
  std::uint64_t seed = 1;
  int random = 20, lanes = 32;
  std::string only;
  bool list = false;
  std::string kernel;
  kiln::dims grid{1, 1, 1};
  std::vector<std::string> arguments;
  contents holds = contents::small;
  std::int64_t ulps = 0;
};

std::vector<std::string> const all_sets{"every", "order", "storage", "products", "random"};

void put(std::filesystem::path const& path, void const* data, std::size_t size) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<char const*>(data), static_cast<std::streamsize>(size));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

class writer {
public:
  explicit writer(options const& o) : o_(o) {}
  int written() const { return written_; }
  bool wants(std::string const& set) const { return std::find(o_.sets.begin(), o_.sets.end(), set) != o_.sets.end(); }

  /// `ulps` as in compare_options.
  void add(std::string const& set, std::string name, generated const& g, std::int64_t ulps) {
    std::replace_if(name.begin(), name.end(), [](char c) { return c == ' ' || c == ',' || c == '/'; }, '_');
    if (!o_.only.empty() && (set + "/" + name).find(o_.only) == std::string::npos) return;
    ++written_;
    if (o_.list) {
      std::printf("%s/%s\n", set.c_str(), name.c_str());
      return;
    }
    std::filesystem::path const to = o_.folder / set / name;
    std::filesystem::create_directories(to);
    arguments_image const before(g.arguments, g.seed);
    arguments_image after(before);
    interpreter_runner()(g.graph, g.grid, after);
    std::string const text = kiln::print(g.graph);
    put(to / "graph.kg", text.data(), text.size());
    std::string lines = "grid " + std::to_string(g.grid.x) + " " + std::to_string(g.grid.y) + " " + std::to_string(g.grid.z) + "\nwarps " +
                        std::to_string(g.graph.attrs.num_warps) + "\n";
    for (std::size_t i = 0; i < g.arguments.size(); ++i) {
      argument const& a = g.arguments[i];
      std::string const n = std::to_string(i);
      lines += "argument " + n;
      if (a.kind == node_kind::value) {
        char bits[24];
        std::snprintf(bits, sizeof bits, "0x%016" PRIx64, a.bits);
        lines += std::string(" value ") + kiln::name_of(a.type) + " " + bits + "\n";
        continue;
      }
      lines += std::string(a.kind == node_kind::array ? " array " : " pointer ") + kiln::name_of(a.type) + " " + std::to_string(a.elements) +
               (a.is_output ? " output" : " input");
      if (a.kind == node_kind::array) {
        lines += " " + std::to_string(a.rank);
        for (int d = 0; d < a.rank; ++d) lines += " " + std::to_string(a.extent[d]);
        for (int d = 0; d < a.rank; ++d) lines += " " + std::to_string(a.stride[d]);
      }
      std::vector<std::byte> const was = before.memory[i].copy(), is = after.memory[i].copy();
      put(to / ("arg" + n + ".bin"), was.data(), was.size());
      if (a.is_output) {
        put(to / ("expect" + n + ".bin"), is.data(), is.size());
        lines += a.approximate && ulps != 0 ? " ulps " + std::to_string(ulps) : " exact";
      } else if (is != was) {
        throw std::logic_error(to.string() + ": the interpreter wrote to input " + n);
      }
      lines += "\n";
    }
    put(to / "case.txt", lines.data(), lines.size());
  }

private:
  options const& o_;
  int written_ = 0;
};

void write(writer& w, options const& o) {
  constexpr std::int64_t ulps = 8; // as the differential tests allow
  if (w.wants("every"))
    for (int c = 0; c < kiln::op_count; ++c)
      for (int t = 0; t < kiln::dtype_count; ++t) {
        auto const what = static_cast<op>(c);
        auto const type = static_cast<dtype>(t);
        if (!accepts(what, type) || what == op::device_print) continue; // prints write no output
        w.add("every", std::string(name_of(what)) + "_" + name_of(type), single(what, type, o.seed), ulps);
      }
  if (w.wants("order")) {
    std::uint64_t i = 0;
    for (order_form const& f : order_forms()) {
      std::string number = std::to_string(i);
      w.add("order", std::string(3 - std::min<std::size_t>(3, number.size()), '0') + number + " " + f.text(), order_graph(f, o.seed + i), 0);
      ++i;
    }
  }
  if (w.wants("storage"))
    for (storage_case const& c : storage_cases(o.lanes)) w.add("storage", c.name, c.g, 0);
  if (w.wants("products"))
    for (product_form const& f : product_forms()) w.add("products", f.text(), product_graph(f, o.seed), 0);
  if (w.wants("random")) {
    struct kind {
      char const* name;
      generator_options options;
    };
    for (kind const& k : {kind{"short", {.steps = 6, .max_elements = 4096}}, kind{"powers_of_two", {.powers_of_two = true}},
                          kind{"straight_line", {.control = false, .local = false, .atomics = false}}, kind{"any", {}}})
      for (int i = 0; i < o.random; ++i) {
        std::uint64_t const seed = o.seed * 1000003 + static_cast<std::uint64_t>(i);
        w.add("random", std::string(k.name) + " " + std::to_string(seed), random_graph(seed, k.options), ulps);
      }
  }
}

std::vector<std::int64_t> numbers(std::string const& text, char between) {
  std::vector<std::int64_t> all;
  std::size_t at = 0;
  while (at <= text.size()) {
    std::size_t const end = std::min(text.find(between, at), text.size());
    std::size_t used = 0;
    all.push_back(std::stoll(text.substr(at, end - at), &used));
    if (used != end - at) throw std::invalid_argument("'" + text + "' is no number");
    at = end + 1;
  }
  return all;
}

/// The kernels of a file on the arguments of the command line. Errors: std::invalid_argument for an argument that is missing or wrong.
void write_given(writer& w, options const& o) {
  std::ifstream file(o.kernel, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + o.kernel);
  std::string const text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (kiln::graph& g : kiln::parse_graphs(text, o.kernel)) {
    generated c;
    c.grid = o.grid;
    c.seed = o.seed;
    for (std::size_t i = 0; i < g.params.size(); ++i) {
      kiln::param_info const& p = g.params[i];
      std::string const start = std::to_string(i) + "=";
      auto const given = std::find_if(o.arguments.begin(), o.arguments.end(), [&](std::string const& a) { return a.starts_with(start); });
      if (given == o.arguments.end()) throw std::invalid_argument("argument " + std::to_string(i) + " of " + g.name + " is missing");
      std::string const what = given->substr(start.size());
      argument a;
      a.kind = p.kind;
      a.type = p.type;
      if (p.kind == node_kind::value) {
        a.bits = (is_float(p.type) ? kiln::make_scalar(p.type, std::stod(what)) : kiln::make_scalar(p.type, static_cast<kiln::i64>(std::stoll(what)))).bits;
      } else {
        std::vector<std::int64_t> const extents = numbers(what, 'x');
        if (p.kind == node_kind::array && extents.size() != static_cast<std::size_t>(p.rank))
          throw std::invalid_argument("argument " + std::to_string(i) + " of " + g.name + " has " + std::to_string(p.rank) + " axes");
        a.elements = 1;
        a.rank = p.kind == node_kind::array ? static_cast<int>(extents.size()) : 0;
        for (int d = static_cast<int>(extents.size()) - 1; d >= 0; --d) {
          if (d < a.rank) a.extent[d] = extents[static_cast<std::size_t>(d)], a.stride[d] = a.elements;
          a.elements *= extents[static_cast<std::size_t>(d)];
        }
        a.is_output = !p.is_const;
        a.holds = a.is_output ? contents::zeros : o.holds;
        a.approximate = a.is_output && o.ulps != 0;
      }
      c.arguments.push_back(a);
    }
    std::string const name = g.name;
    c.graph = std::move(g);
    w.add("given", name, c, o.ulps);
  }
}

int usage(std::string const& why) {
  std::fprintf(stderr,
               "write_cases: %s\nusage: write_cases FOLDER [--set every|order|storage|products|random]... [--seed N] [--random N] [--lanes N] [--only TEXT] [--list]\n"
               "       write_cases FOLDER --kernel FILE.kg [--grid X,Y,Z] [--arg I=VALUE|ELEMENTS|EXTENTxEXTENT]... [--holds small|moderate|values] [--ulps N]\n",
               why.c_str());
  return 2;
}

void read_options(options& o, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string const a = argv[i];
    if (a == "--list") {
      o.list = true;
      continue;
    }
    if (!a.starts_with("--")) {
      o.folder = a;
      continue;
    }
    if (i + 1 == argc) throw std::invalid_argument(a + " needs a value");
    std::string const value = argv[++i];
    if (a == "--set" && std::find(all_sets.begin(), all_sets.end(), value) != all_sets.end()) o.sets.push_back(value);
    else if (a == "--seed") o.seed = std::stoull(value, nullptr, 0);
    else if (a == "--random") o.random = std::stoi(value);
    else if (a == "--lanes" && (value == "32" || value == "64")) o.lanes = std::stoi(value);
    else if (a == "--only") o.only = value;
    else if (a == "--kernel") o.kernel = value;
    else if (a == "--arg") o.arguments.push_back(value);
    else if (a == "--ulps") o.ulps = std::stoll(value);
    else if (a == "--holds" && (value == "small" || value == "moderate" || value == "values"))
      o.holds = value == "small" ? contents::small : value == "moderate" ? contents::moderate : contents::values;
    else if (a == "--grid") {
      std::vector<std::int64_t> g = numbers(value, ',');
      g.resize(3, 1);
      o.grid = {g[0], g[1], g[2]};
    } else throw std::invalid_argument(a + " " + value + " is not known");
  }
  if (o.folder.empty() && !o.list) throw std::invalid_argument("which folder?");
  if (o.sets.empty()) o.sets = all_sets;
}

} // namespace

int main(int argc, char** argv) {
  options o;
  try {
    read_options(o, argc, argv);
    writer w(o);
    if (o.kernel.empty()) write(w, o);
    else write_given(w, o);
    std::fprintf(stderr, "%d cases\n", w.written());
    return w.written() == 0 ? 1 : 0;
  } catch (std::invalid_argument const& e) {
    return usage(e.what());
  } catch (std::exception const& e) {
    std::fprintf(stderr, "write_cases: %s\n", e.what());
    return 1;
  }
}
