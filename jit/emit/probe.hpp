// One helper of jit/emit as a callable function, for tests: compiled for a named CPU, any vector width, with the passes
// that precede code generation. No LLVM here, so that tests stay free of its headers.
#pragma once

#include <kiln/dtype/dtype.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace kiln::emit {

class probe {
public:
  /// out[i] = helper(a[i], b[i], c[i]) for i < n, where n is a multiple of the lanes compiled for.
  using function = void (*)(void* out, const void* a, const void* b, const void* c, std::size_t n);

  /// `cpu` as LLVM names it; empty is this machine. Functions live as long as the probe.
  explicit probe(std::string cpu);
  ~probe();

  /// The helper called `name` on elements of `type`; lanes = 0 is scalar code.
  /// Errors: std::runtime_error if the compiled code refers to any symbol that it does not define, naming it.
  function compile(std::string_view name, dtype type, unsigned lanes);
  /// The conversion from one type to another.
  function compile_conversion(dtype from, dtype to, unsigned lanes);

  /// The helper as scalar code for NVPTX (PTX text) and AMDGPU (assembly).
  static std::string gpu_assembly(std::string_view name, dtype type, std::string_view triple, std::string_view cpu);
  static std::string gpu_conversion_assembly(dtype from, dtype to, std::string_view triple, std::string_view cpu);

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace kiln::emit
