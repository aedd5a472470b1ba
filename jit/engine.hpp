// The compile engine: one LLVM ORC session in which a kernel is a symbol, for every target. Looking a kernel up builds
// its IR, runs our passes, generates code and links it, once, however many threads ask; a cached image enters at the
// object layer and builds no IR. This header is the narrow door of jit/: it needs no LLVM header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <kiln/export.hpp>
#include <kiln/target/compile_error.hpp>
#include <kiln/target/target.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace kiln::jit {

/// CPU that host kernels are compiled for: the one that was detected, or KILN_HOST_CPU and KILN_HOST_FEATURES.
///
/// With KILN_HOST_CPU alone the features are those that the named CPU implies. `name` and `features` together say
/// everything that code generation knows of the machine: both belong into a cache key.
struct KILN_INTERNAL_API host_cpu {
  std::string name;                 ///< as LLVM spells it, for instance "znver4"
  std::string features;             ///< what differs from the name: "+avx512bf16,-sse4a", sorted; may be empty
  std::vector<std::string> enabled; ///< all features that are on, sorted
  int vector_bits = 0;              ///< widest vector registers
  /// Whether `feature` ("avx512f") is on.
  bool has(std::string_view feature) const;
};

/// Detected once per call; cheap (tens of microseconds). Errors: `std::invalid_argument` for a KILN_HOST_CPU that LLVM
/// does not know.
KILN_INTERNAL_API host_cpu detect_host_cpu();

/// What a kernel's builder gets: an empty module with triple and data layout set, ready to be filled.
struct module_builder {
  llvm::Module& module;
  const llvm::TargetMachine& machine;
  const kiln::target& target;
  /// The one function that must be defined, with external linkage. All other definitions become internal.
  std::string_view symbol;
  /// Attribute of internal functions that take no time when they run: their code need not be good, but soon there (x86 hosts).
  static constexpr const char* quick = "kiln-quick";
  /// CPU and feature string that code is generated for. The engine puts them on every function afterwards.
  std::string_view cpu, features;
};

struct codegen_options {
  /// LLVM textual pass pipeline, for instance "function(sroa,early-cse)"; "none" runs nothing; empty means the
  /// target's default (`default_passes`).
  std::string passes = {};
  /// Code generation level 0..3; negative means the target's default: 1 on the host, 2 on GPUs.
  int level = -1;
  /// Override of CPU and features. Empty means the target's own (for the host: those of `engine::cpu`).
  std::string cpu = {}, features = {};
  /// PTX ISA version, 83 for 8.3; 0 means the lowest that knows the architecture. Ask for the lowest that the kernel
  /// needs: an older driver then still accepts it.
  int ptx_version = 0;
  /// Host only: the prefer-vector-width of functions that do not set their own; 0 means the widest.
  int vector_width = 0;
  bool keep_ir_before = false, keep_ir = false, keep_asm = false;
};

/// A builder that takes the module from LLVM assembly (without triple and data layout): for tests and tools. Errors:
/// the builder throws `std::invalid_argument` with line, column and message.
KILN_INTERNAL_API std::function<void(module_builder&)> from_ir_text(std::string text);

/// Pass pipeline that an empty `codegen_options::passes` stands for.
KILN_INTERNAL_API std::string_view default_passes(target_family family);

enum class image_kind : std::uint8_t {
  host_object,   ///< relocatable ELF, linked into this process
  ptx,           ///< PTX text
  device_binary, ///< what `request::device_link` made of the PTX
  code_object,   ///< linked AMDGPU ELF
};
KILN_INTERNAL_API std::string_view to_string(image_kind kind);

/// Milliseconds of each phase; all zero but `link` for an image from a cache.
struct phase_times {
  double emit = 0, passes = 0, codegen = 0, link = 0;
  double total() const { return emit + passes + codegen + link; }
};

class compiled;

/// An image from a cache.
struct cached_image {
  std::string bytes = {};
  image_kind kind = image_kind::host_object;
};

/// One specialisation of one kernel.
struct request {
  kiln::target target = {};
  /// Device that the code is for: one JITDylib each. Empty means one device per target.
  std::string device = {};
  /// Name of the entry function, which `build` defines. On NVPTX it must be a PTX identifier.
  std::string symbol = {};
  /// Everything that decides the code: graph hash, specialisation, options. Equal keys on one device share one
  /// compile. `codegen` is not added by the engine: put what varies of it into the key.
  std::string key = {};
  /// Fills the module. Runs at most once per key, on the thread of one of the callers; what it throws reaches all.
  std::function<void(module_builder&)> build = {};
  codegen_options codegen = {};
  /// Asked before `build`: an image from a cache, or nothing. Runs at most once per key.
  std::function<std::optional<cached_image>()> cached = {};
  /// NVPTX only, optional: turns PTX into what the driver loads (and what is worth caching). Not asked for cached
  /// images. What it throws reaches the callers.
  std::function<std::string(std::string_view ptx)> device_link = {};
  /// Told once about a fresh (not cached) result, after it is ready: the place to write a cache entry.
  std::function<void(const compiled&)> store = {};
};

namespace detail {
struct job;
}

/// A finished specialisation; a cheap handle, valid as long as its engine.
class KILN_INTERNAL_API compiled {
public:
  compiled() = default;
  explicit operator bool() const { return job_ != nullptr; }

  /// Bytes of the image: relocatable object, PTX, driver binary or code object.
  std::string_view image() const;
  image_kind kind() const;
  /// Host: the entry point. GPUs: nullptr.
  void* address() const;
  template <typename Function> Function* as() const { return reinterpret_cast<Function*>(address()); }
  /// Name of the kernel entry inside the image.
  std::string_view entry() const;
  const phase_times& times() const;
  bool from_cache() const;
  /// Warnings and remarks of the compiler, one a line; usually empty.
  std::string_view notes() const;
  /// Kept texts; empty unless the request asked.
  std::string_view ir_before() const;
  std::string_view ir() const;
  std::string_view assembly() const;

private:
  friend class engine;
  explicit compiled(std::shared_ptr<detail::job> j) : job_(std::move(j)) {}
  std::shared_ptr<detail::job> job_;
};

enum class emit_kind : std::uint8_t {
  ir_before, ///< LLVM IR as the lowering wrote it
  ir,        ///< LLVM IR after our passes
  assembly,  ///< host assembler, PTX, AMDGPU ISA
  object,    ///< host relocatable object, PTX (the driver assembles it), AMDGPU code object
};
/// "ir-before", "ir", "asm" or "obj"; anything else throws `std::invalid_argument` with that list.
KILN_INTERNAL_API emit_kind parse_emit_kind(std::string_view name);

/// A function that host kernels may call.
struct host_symbol {
  std::string name;
  void* address;
};

struct engine_options {
  /// Callbacks of the runtime (printing, assertions, task switches) that host kernels call by name.
  std::vector<host_symbol> symbols = {};
  /// Tell an attached debugger about host kernels that carry debug information.
  bool debugger = true;
  /// Write a perf jitdump (into $JITDUMPDIR or the home directory); also on with KILN_PERF=1.
  bool perf = false;
};

struct engine_stats {
  std::uint64_t builds = 0;        ///< modules built
  std::uint64_t compiles = 0;      ///< code generations
  std::uint64_t links = 0;         ///< host, lld and device links
  std::uint64_t adopted = 0;       ///< images that came from a cache
  std::uint64_t live = 0;          ///< specialisations that can be looked up
  std::uint64_t images = 0;        ///< GPU images held by the object layers
  std::uint64_t debug_objects = 0; ///< kernels that an attached debugger would find
};

/// All functions may be called from any thread, at once. Several engines may live side by side.
class KILN_INTERNAL_API engine {
public:
  explicit engine(engine_options options = {});
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  /// The specialisation `r`: built and compiled now, or found. Callers that ask for the same key wait for one compile.
  ///
  /// Errors: `compile_error` with the kernel's name and LLVM's message; whatever `build`, `cached`, `device_link` or
  /// `store` throws. After a failure the same key may be tried again.
  compiled compile(const request& r);

  /// Takes a finished image for `r` (its `build` and `cached` are not used), for instance one that was read from disk.
  compiled adopt(const request& r, cached_image image);

  /// The text or bytes of one stage, compiled apart from everything else under exactly the name `r.symbol`.
  std::string emit(request r, emit_kind kind);

  /// Forgets a specialisation and frees its code; nobody may be running it. Other handles to it keep their image, and
  /// their `address` dangles. The next `compile` of the key starts anew.
  void remove(const compiled& c);

  /// Lets host kernels call `symbols` from now on. Errors: `std::invalid_argument` for a name that is already there.
  void define(const std::vector<host_symbol>& symbols);

  const host_cpu& cpu() const;
  engine_stats stats() const;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// "22.1.8": part of every cache key.
KILN_INTERNAL_API std::string_view llvm_version();

} // namespace kiln::jit
