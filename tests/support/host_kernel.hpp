// A kernel graph compiled for the host and run on the calling thread, without the runtime: for tests and benchmarks.
#pragma once
#include "jit/engine.hpp"
#include "jit/target/host/lower.hpp"

#include <kiln/graph/owned.hpp>
#include <kiln/kernel.hpp>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace kiln_test {

/// Failures and prints that a kernel reported.
struct host_events {
  std::vector<std::pair<int, int>> asserts; // text, line
  std::vector<std::string> prints;          // text index, program, then the values' bytes as hexadecimal
};

inline void note_assert(void* runtime, std::int32_t text, std::int32_t, std::int32_t line) {
  static_cast<host_events*>(runtime)->asserts.emplace_back(text, line);
}
inline void note_print(void* runtime, std::int32_t text, std::int64_t const* program, std::int32_t items,
                       kiln::jit::host::print_item const* item) {
  std::string line = std::to_string(text) + " @" + std::to_string(program[0]) + "," + std::to_string(program[1]) + "," +
                     std::to_string(program[2]);
  for (int i = 0; i < items; ++i) {
    line += std::string(" ") + name_of(item[i].type) + ":";
    auto const* bytes = static_cast<unsigned char const*>(item[i].data);
    for (std::int64_t k = 0; k < kiln::bytes_of(item[i].type, item[i].elements); ++k) {
      line += "0123456789abcdef"[bytes[k] >> 4];
      line += "0123456789abcdef"[bytes[k] & 15];
    }
  }
  static_cast<host_events*>(runtime)->prints.push_back(line);
}

/// The engine that the tests of one program share.
inline kiln::jit::engine& host_engine() {
  static kiln::jit::engine* e = [] {
    kiln::jit::engine_options o;
    o.symbols = {{kiln::jit::host::assert_hook, reinterpret_cast<void*>(&note_assert)},
                 {kiln::jit::host::print_hook, reinterpret_cast<void*>(&note_print)}};
    o.debugger = false;
    return new kiln::jit::engine(o); // lives to the end of the process
  }();
  return *e;
}

class host_kernel {
public:
  explicit host_kernel(kiln::graph_view g, kiln::specialisation facts, kiln::jit::codegen_options options = {})
      : facts_(std::move(facts)) {
    static int serial = 0;
    kiln::jit::request r;
    r.target = kiln::targets::host;
    r.symbol = "kernel";
    r.key = std::to_string(serial++);
    r.codegen = options;
    r.build = [&](kiln::jit::module_builder& out) { code_ = kiln::jit::host::lower_host(g, facts_, host_engine().cpu(), out); };
    compiled_ = host_engine().compile(r);
  }
  explicit host_kernel(kiln::graph_view g) : host_kernel(g, kiln::specialisation::generic(g)) {}
  host_kernel(host_kernel const&) = delete;
  ~host_kernel() {
    host_engine().remove(compiled_);
    std::free(arena_);
  }

  void run(std::vector<std::uint64_t> const& slots, kiln::dims grid, host_events* events = nullptr) const {
    const std::uint32_t extents[3]{static_cast<std::uint32_t>(grid.x), static_cast<std::uint32_t>(grid.y), static_cast<std::uint32_t>(grid.z)};
    entry()(slots.data(), extents, 0, grid.x * grid.y * grid.z, arena(), events);
  }
  kiln::jit::host::entry_function* entry() const { return compiled_.as<kiln::jit::host::entry_function>(); }
  /// Scratch for the entry, of this object: one thread at a time.
  void* arena() const {
    if (arena_ != nullptr) return arena_;
    const auto bytes = static_cast<std::size_t>(code_.arena_bytes + 4096);
    if (posix_memalign(&arena_, 4096, bytes) != 0) std::abort();
    return __builtin_memset(arena_, 0xa5, bytes); // nobody may rely on zeros
  }
  kiln::jit::host::host_code const& code() const { return code_; }
  kiln::jit::compiled const& image() const { return compiled_; }

private:
  kiln::specialisation facts_;
  kiln::jit::host::host_code code_;
  kiln::jit::compiled compiled_;
  mutable void* arena_ = nullptr;
};

} // namespace kiln_test
