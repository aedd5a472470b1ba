// Writes text graphs to files.
#include <kiln/graph/save.hpp>

#include <kiln/graph/hash.hpp>
#include <kiln/graph/text.hpp>

#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <unistd.h>

namespace kiln {

void save_graph(graph_view const& g, std::string_view path) {
  static std::atomic<unsigned> count{0}; // two threads may write the same graph
  std::string const name(path), text = print(g);
  std::string const temporary = name + "." + std::to_string(getpid()) + "." + std::to_string(count++) + ".tmp";
  auto fail = [&](char const* what) {
    std::string const reason = std::strerror(errno);
    std::remove(temporary.c_str());
    throw std::runtime_error(name + ": " + what + ": " + reason);
  };
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (!file) fail("cannot be written");
  bool const written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if ((std::fclose(file) != 0) | !written) fail("writing failed");
  if (std::rename(temporary.c_str(), name.c_str()) != 0) fail("cannot be replaced");
}

void dump_graph(graph_view const& g) {
  char const* directory = std::getenv("KILN_DUMP_GRAPHS");
  if (!directory || !*directory) return;
  std::string name(g.name);
  for (char& c : name)
    if (!(std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.')) c = '_';
  if (name.empty() || name[0] == '.') name = "_" + name;
  std::string const path = std::string(directory) + "/" + name + "-" + to_string(debug_hash(g)).substr(0, 16) + ".kg";
  // The name says what is in the file, so one that is there need not be written again.
  if (access(path.c_str(), F_OK) != 0) save_graph(g, path);
}

} // namespace kiln
