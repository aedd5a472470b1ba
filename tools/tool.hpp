// What the command line tools share: reading text graphs, writing results, and turning errors into one line and a code.
// Exit codes: 0 done, 1 the answer is no (a check failed), 2 the input or the call is wrong.
#pragma once
#include "lessons.hpp"

#include <kiln/graph/text.hpp>
#include <kiln/validate/validate.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::tool {

/// What was typed is wrong; `what()` says so in one line.
class bad_input : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The kernels of a .kg file, of standard input (-), or of a lesson, in order.
inline std::vector<graph> read(std::string const& input) {
  if (input == "-") return parse_graphs(std::string(std::istreambuf_iterator<char>(std::cin), {}), "<stdin>");
  bool const is_name = input.find_first_of("/.") == std::string::npos && !std::filesystem::exists(input);
  if (!is_name) return load_graphs(input);
  std::filesystem::path const lesson = find_lesson(input);
  if (lesson.empty()) throw bad_input("'" + input + "' is neither a file nor a lesson in " + lessons_folder().string());
  scratch_folder const folder;
  run_lesson(lesson, folder.path);
  std::vector<std::filesystem::path> files;
  for (auto const& entry : std::filesystem::directory_iterator(folder.path))
    if (entry.path().extension() == ".kg") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<graph> all;
  for (auto const& f : files)
    for (graph& g : load_graphs(f)) all.push_back(std::move(g));
  return all;
}

/// Refuses a graph that breaks a rule, with the place in the user's source if it is known.
inline void check(graph_view const& g, std::string const& where) {
  diagnostic const d = validate(g);
  if (d.ok()) return;
  std::string at = where + ": kernel " + quote_text(g.name) + ", node %" + std::to_string(d.node);
  if (d.node < g.size() && g[d.node].line > 0) at += std::string(" (") + g.file(d.node) + ":" + std::to_string(g[d.node].line) + ")";
  throw bad_input(at + ": " + std::string(d.text, static_cast<std::size_t>(d.length)));
}

/// The kernel called `name`, or the only one.
inline graph const& choose(std::vector<graph> const& all, std::string const& name, std::string const& path) {
  std::string names;
  for (graph const& g : all) {
    if (g.name == name) return g;
    names += (names.empty() ? "" : ", ") + quote_text(g.name);
  }
  if (all.empty()) throw bad_input(path + ": no kernel in this file");
  if (name.empty() && all.size() == 1) return all[0];
  if (name.empty()) throw bad_input(path + ": several kernels; choose one with --kernel: " + names);
  throw bad_input(path + ": no kernel is called " + quote_text(name) + "; there are " + names);
}

/// To a file, or to standard output where there is no path.
inline void write(std::string const& path, std::string const& content) {
  if (path.empty() || path == "-") {
    std::cout << content << std::flush;
    if (!std::cout) throw std::runtime_error("standard output cannot be written");
    return;
  }
  std::ofstream out(path, std::ios::binary);
  out << content;
  out.close();
  if (!out) throw std::runtime_error(path + ": cannot be written");
}

/// Runs `body`, which returns the exit code.
template <class Body>
int guarded(char const* program, Body body) {
  try {
    return body();
  } catch (text_error const& e) {
    std::fprintf(stderr, "%s\n", e.what()); // file:line:column first, for editors
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s: %s\n", program, e.what());
  }
  return 2;
}

} // namespace kiln::tool
