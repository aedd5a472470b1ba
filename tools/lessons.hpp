// Lessons by name: the tools run the lesson's program on the host and read the graphs that it compiles.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern char** environ;

namespace kiln::tool {

/// Where the lessons' programs lie: KILN_LESSONS_DIR, else ../examples beside this program's folder.
inline std::filesystem::path lessons_folder() {
  if (char const* folder = std::getenv("KILN_LESSONS_DIR")) return folder;
  std::error_code error;
  std::filesystem::path const self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : self.parent_path().parent_path() / "examples";
}

/// The program of a lesson called "07_matmul", "matmul" or "07"; empty when there is none.
inline std::filesystem::path find_lesson(std::string_view name) {
  std::error_code error;
  std::vector<std::filesystem::path> found;
  for (auto const& entry : std::filesystem::directory_iterator(lessons_folder(), error)) {
    std::string const file = entry.path().filename();
    if (!file.starts_with("lesson_") || access(entry.path().c_str(), X_OK) != 0 || entry.is_directory()) continue;
    std::string const full = file.substr(7), number = full.substr(0, full.find('_')), rest = full.substr(std::min(full.size(), number.size() + 1));
    if (full == name || number == name || rest == name) found.push_back(entry.path());
  }
  return found.size() == 1 ? found[0] : std::filesystem::path();
}

/// A folder that goes away.
struct scratch_folder {
  std::filesystem::path path;
  scratch_folder() {
    std::string name = std::filesystem::temp_directory_path() / "kiln-lesson-XXXXXX";
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a temporary folder: " + name);
    path = name;
  }
  scratch_folder(scratch_folder const&) = delete;
  ~scratch_folder() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
  }
};

/// Runs a lesson so that it leaves its graphs in `folder`. Errors: std::runtime_error with what it said last.
inline void run_lesson(std::filesystem::path const& program, std::filesystem::path const& folder) {
  std::string dump = "KILN_DUMP_GRAPHS=" + folder.string(), cache = "KILN_CACHE=off";
  std::vector<char*> environment;
  for (char** e = environ; *e; ++e)
    if (!std::string_view(*e).starts_with("KILN_DUMP_GRAPHS=") && !std::string_view(*e).starts_with("KILN_CACHE=")) environment.push_back(*e);
  environment.insert(environment.end(), {dump.data(), cache.data(), nullptr});
  std::string name = program, device = "--device", host = "host", brief = "--brief";
  char* arguments[] = {name.data(), brief.data(), device.data(), host.data(), nullptr};

  std::string const log = folder / "log";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  int const failed = posix_spawn(&child, name.c_str(), &actions, nullptr, arguments, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failed || waitpid(child, &status, 0) != child) throw std::runtime_error(name + ": cannot be started");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::string text, line;
    std::ifstream in(log);
    while (std::getline(in, line)) text = line;
    throw std::runtime_error("lesson " + program.filename().string() + " failed: " + text);
  }
}

} // namespace kiln::tool
