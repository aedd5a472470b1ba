// The text form of graphs (.kg): what bug reports, golden tests and the tools use. Printing and parsing are inverse to
// each other, bit for bit.
//
// Worked example, the kernel of graph.hpp:
//
//   kernel "scale" num_warps=4 {
//     param 0 : ptr<const f32>
//     param 1 : ptr<f32>
//
//     %0 = param {index=0} : ptr<f32>
//     %1 = param {index=1} : ptr<f32>
//     %2 = iota {axis=0} : i32[64]                @scale.cpp:7
//     %3 = broadcast %0 : ptr<f32>[64]            @scale.cpp:8
//     %4 = ptr_add %3, %2 : ptr<f32>[64]          @scale.cpp:8
//     %5 = load %4, _, _ : f32[64]                @scale.cpp:8
//     ...
//   }
//
// A file holds any number of kernels. Each line is one statement; `//` starts a comment. Before the nodes stand
//   file NAME = "path"             a short name for the positions; not needed where it equals the path
//   param I : val<T> | ptr<T> | array<T, rank>          T is `const T` where the kernel only reads
//   buffer I "name" : T[extents] slots=N align=BYTES storage=smem|tmem scope=shared_dyn|shared_static|local|global single
// and a node is
//   %label = operation operands {attribute=value, ...} : type @file:line
// Labels are free; the printer uses the node's index. `_` is an absent operand. What closes a region (for_end, ...) finds
// its partner by nesting. Attributes that are left out are false, `none`, `ignore` or 0. A type is T[extents], or
// ptr<T>[..], array<T>, region<T>[..], buffers<T>[..], view<T>[..], cell<T>[..], token. `bits` of a constant is a value of
// its type, or a bit pattern when it is written in hexadecimal. A string may be preceded by #I, its index in the table of
// strings; without, it takes the next one.
#pragma once
#include <kiln/export.hpp>
#include <kiln/graph/owned.hpp>

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct print_options {
  bool positions = true;                             ///< print @file:line
  std::function<std::string(int)> comment = nullptr; ///< what to append to a node as a comment; empty: nothing
};

/// The text form of a graph.
KILN_API std::string print(graph_view const& g, print_options const& options = {});
/// The type of a node as it is printed: "f32[64,32]", "ptr<bf16>", "token"; empty for a node without a result.
KILN_API std::string type_text(graph_view const& g, int node);
/// A constant as it is printed. Floating values are decimal, or hexadecimal bits where no decimal gives the same bits.
KILN_API std::string constant_text(dtype t, std::int64_t bits);
/// Attribute `i` of a node as it is printed: a number, an enumerator, a quoted string.
KILN_API std::string attribute_text(graph_view const& g, int node, int i);
/// `s` in double quotes, with \" \\ \n \t \r and \xHH escapes.
KILN_API std::string quote_text(std::string_view s);

/// What is wrong with a text graph. `what()` is one line: "file:line:column: what was expected, and what was found".
class KILN_API text_error : public std::runtime_error {
public:
  text_error(std::string file, int line, int column, std::string const& message)
      : std::runtime_error(file + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " + message),
        file(std::move(file)), line(line), column(column) {}
  std::string file;
  int line, column; ///< from 1; columns count bytes
};

/// Parses every kernel of a text. `file` is for messages only.
/// What comes out is well formed: operands precede their uses and are as many as the operation takes, regions nest,
/// attributes are in range. Types are not checked here; that is the validator's job.
/// Errors: text_error.
KILN_API std::vector<graph> parse_graphs(std::string_view text, std::string file = "<text>");
/// Parses the file at `path`. Errors: text_error; std::runtime_error where it cannot be read.
KILN_API std::vector<graph> load_graphs(std::string const& path);

} // namespace kiln
