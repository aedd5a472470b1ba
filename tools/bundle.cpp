// `kiln bundle`: compiles, and writes the C around the images. The generated header is the user's documentation, so it
// says what each function does; its functions are inline and depend on the driver's own header alone.
#include "bundle.hpp"

#include "facts.hpp"
#include "tool.hpp"

#include <jit/compile.hpp>
#include <kiln/target/target.hpp>
#include <kiln/version.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include <spawn.h>
#include <sys/wait.h>

extern char** environ;

namespace kiln::tool {

namespace {

struct image {
  target arch;
  std::string file; ///< within the folder
  std::string bytes;
  std::string symbol; ///< C array that holds it; empty for host objects
  jit::code_info info;
};

struct bundled {
  graph code;
  specialisation facts;
  std::string c_name;
  std::vector<image> images;
};

std::string identifier(std::string_view text) {
  std::string s;
  for (char c : text) s += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0]))) s = "k_" + s;
  return s;
}

std::string c_type(dtype t) {
  if (t == dtype::f32) return "float";
  if (t == dtype::f64) return "double";
  std::string const bits = std::to_string(t == dtype::b1 ? 8 : bits_of(t));
  return (is_signed_int(t) ? "int" : "uint") + bits + "_t"; // f16, bf16 and the 8-bit floats as their bits
}

std::string c_string(std::string_view text) {
  std::string s = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') s += '\\';
    if (c == '\n') s += "\\n";
    else s += c;
  }
  return s + "\"";
}

/// ", const float* a0, int64_t a1, const int64_t* a1_extents, ..."
std::string parameters(graph const& g) {
  std::string s;
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    param_info const& p = g.params[i];
    std::string const a = "a" + std::to_string(i);
    if (p.kind == node_kind::value) {
      s += ", " + c_type(p.type) + " " + a;
      continue;
    }
    s += ", " + std::string(p.is_const ? "const " : "") + c_type(p.type) + "* " + a;
    if (p.kind == node_kind::array)
      s += ", const int64_t " + a + "_extents[" + std::to_string(p.rank) + "], const int64_t " + a + "_strides[" + std::to_string(p.rank) + "]";
  }
  return s;
}

std::string arguments(graph const& g) {
  std::string s;
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    std::string const a = "a" + std::to_string(i);
    s += ", " + a;
    if (g.params[i].kind == node_kind::array) s += ", " + a + "_extents, " + a + "_strides";
  }
  return s;
}

/// The checks of what was baked in, and the slots: a function that fills `slots` or says no.
std::string pack_function(std::string const& prefix, bundled const& k) {
  graph const& g = k.code;
  std::string checks, body, remarks;
  int slot = 0;
  auto check = [&](std::string const& value, integer_fact const& f) {
    if (f.constant) {
      checks += "  if (" + value + " != " + std::to_string(f.value) + ") return 0;\n";
      remarks += " *   " + value + " is " + std::to_string(f.value) + "\n";
    } else if (f.divisor > 1) {
      checks += "  if (" + value + " % " + std::to_string(f.divisor) + " != 0) return 0;\n";
      remarks += " *   " + value + " is a multiple of " + std::to_string(f.divisor) + "\n";
    }
  };
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    param_info const& p = g.params[i];
    param_facts const& f = k.facts.params[i];
    std::string const a = "a" + std::to_string(i);
    auto to = [&] { return "slots[" + std::to_string(slot++) + "]"; };
    if (p.kind == node_kind::value) {
      if (f.scalar.constant && is_float(p.type)) {
        checks += "  { uint64_t bits = 0; memcpy(&bits, &" + a + ", sizeof " + a + "); if (bits != UINT64_C(" +
                  std::to_string(static_cast<std::uint64_t>(f.scalar.value)) + ")) return 0; }\n";
        remarks += " *   " + a + " has the bits " + std::to_string(static_cast<std::uint64_t>(f.scalar.value)) + "\n";
      } else {
        check(a, f.scalar);
      }
      std::string const s = to();
      body += "  " + s + " = 0;\n  memcpy(&" + s + ", &" + a + ", sizeof " + a + ");\n";
      continue;
    }
    if (p.workspace > 0)
      remarks += " *   " + a + " is memory of " + std::to_string(p.workspace) + " elements" + (p.per_cta ? " for each CTA" : "") +
                 (p.zero ? ", all zero" : "") + "; one launch at a time may use it\n";
    if (f.alignment > 1) {
      checks += "  if ((uintptr_t)" + a + " % " + std::to_string(f.alignment) + " != 0) return 0;\n";
      if (f.alignment > bytes_of(p.type)) remarks += " *   " + a + " is aligned to " + std::to_string(f.alignment) + " bytes\n";
    }
    body += "  " + to() + " = (uint64_t)(uintptr_t)" + a + ";\n";
    if (p.kind != node_kind::array) continue;
    for (int d = 0; d < p.rank; ++d) {
      std::string const e = a + "_extents[" + std::to_string(d) + "]";
      check(e, f.extent[d]);
      body += "  " + to() + " = (uint64_t)" + e + ";\n";
    }
    for (int d = 0; d < p.rank; ++d) {
      std::string const e = a + "_strides[" + std::to_string(d) + "]";
      check(e, f.stride[d]);
      body += "  " + to() + " = (uint64_t)" + e + ";\n";
    }
  }
  std::string s;
  if (!remarks.empty()) s += "/* The code holds for arguments of which this is true; launches check it:\n" + remarks + " */\n";
  s += "static inline int " + prefix + "_pack(uint64_t* slots" + parameters(g) + ") {\n  (void)slots;\n" + checks + body + "  return 1;\n}\n";
  return s;
}

/// C text that names a failed device_assert by its text's number and line.
std::string assert_function(std::string const& prefix, graph const& g) {
  std::string s = "static inline const char* " + prefix + "_assert_text(int text, int line) {\n";
  std::set<std::pair<std::int64_t, int>> seen;
  graph_view const v = g;
  for (int n = 0; n < v.size(); ++n)
    if (v[n].code == op::device_assert && seen.insert({v.attribute(n, 0), v[n].line}).second)
      s += "  if (text == " + std::to_string(v.attribute(n, 0)) + " && line == " + std::to_string(v[n].line) + ") return " +
           c_string("kernel '" + g.name + "': device_assert failed: " + std::string(v.string(static_cast<int>(v.attribute(n, 0)))) + " (" + v.file(n) + ":" +
                  std::to_string(v[n].line) + ")") +
           ";\n";
  return s + "  (void)text, (void)line;\n  return " + c_string("kernel '" + g.name + "': device_assert failed") + ";\n}\n";
}

bool contains(graph const& g, op code) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [&](node const& n) { return n.code == code; });
}

/// "gx % 2 != 0 || ...", or nothing: whether the grid is not made of whole clusters.
std::string broken_clusters(graph const& g) {
  dims const& c = g.attrs.cluster;
  std::string s;
  auto axis = [&](char const* extent, std::int64_t step) {
    if (step > 1) s += (s.empty() ? "" : " || ") + std::string(extent) + " % " + std::to_string(step) + " != 0";
  };
  axis("gx", c.x), axis("gy", c.y), axis("gz", c.z);
  return s;
}

std::string host_functions(std::string const& prefix, bundled const& k, image const& i) {
  std::string const entry = "kiln_" + identifier(k.code.name);
  int const slots = std::max(1, slot_count(graph_view(k.code)));
  dims const& c = k.code.attrs.cluster;
  std::string const broken = broken_clusters(k.code), what = broken.empty() ? "CTAs" : "clusters";
  auto clusters = [](char const* extent, std::int64_t step) { return std::string(extent) + (step > 1 ? " / " + std::to_string(step) : ""); };
  std::string s = "\n/* On this CPU: link " + i.file + " and -lm. " + prefix + "_host runs the whole grid on the calling thread; " + prefix +
                  "_host_part runs the\n * " + what + " first..last-1 (x fastest), for threads of your own, each with " + prefix +
                  "_host_arena_bytes of scratch aligned to 64. 0: done;\n * 1: an argument is not what the code was made for; 2: a device_assert failed "
                  "(its text is in *why); 3: no memory. */\n";
  s += "void " + entry + "(const uint64_t* slots, const uint32_t* grid, int64_t first, int64_t last, void* arena, void* runtime);\n";
  s += "enum { " + prefix + "_host_arena_bytes = " + std::to_string(std::max<std::int64_t>(i.info.arena_bytes, 64)) + " };\n";
  s += "static inline int " + prefix + "_host_part(uint32_t gx, uint32_t gy, uint32_t gz, int64_t first, int64_t last, void* arena, const char** why" +
       parameters(k.code) + ") {\n  uint64_t slots[" + std::to_string(slots) + "];\n  const uint32_t grid[3] = {" + clusters("gx", c.x) + ", " + clusters("gy", c.y) + ", " + clusters("gz", c.z) +
       "};\n  int32_t failure[3] = {0, 0, 0};\n" + (broken.empty() ? "" : "  if (" + broken + ") return 1; /* whole clusters */\n") + "  if (!" + prefix + "_pack(slots" + arguments(k.code) + ")) return 1;\n  " + entry + "(slots, grid, first, last, arena, failure);\n  if (failure[0] == 0) return 0;\n" +
       "  if (why) *why = " + prefix + "_assert_text(failure[1], failure[2]);\n  return 2;\n}\n";
  s += "static inline int " + prefix + "_host(uint32_t gx, uint32_t gy, uint32_t gz, const char** why" + parameters(k.code) + ") {\n  void* arena = aligned_alloc(64, (" +
       prefix + "_host_arena_bytes + 63) / 64 * 64);\n  if (!arena) return 3;\n  int const code = " + prefix +
       "_host_part(gx, gy, gz, 0, (int64_t)gx * gy * gz" + (broken.empty() ? "" : " / " + std::to_string(c.x * c.y * c.z)) + ", arena, why" + arguments(k.code) + ");\n  free(arena);\n  return code;\n}\n";
  return s;
}

/// Loading and launching through one of the two drivers, whose calls differ in their names.
std::string gpu_functions(std::string const& prefix, bundled const& k, bool cuda) {
  std::vector<image const*> images;
  for (image const& i : k.images)
    if (cuda ? i.arch.is_nvptx() : i.arch.is_amdgpu()) images.push_back(&i);
  if (images.empty()) return "";
  std::string const api = cuda ? "cuda" : "hip", result = cuda ? "CUresult" : "hipError_t", module = cuda ? "CUmodule" : "hipModule_t",
                    function = cuda ? "CUfunction" : "hipFunction_t", stream = cuda ? "CUstream" : "hipStream_t",
                    success = cuda ? "CUDA_SUCCESS" : "hipSuccess", wrong = cuda ? "CUDA_ERROR_INVALID_VALUE" : "hipErrorInvalidValue",
                    none = cuda ? "CUDA_ERROR_NO_BINARY_FOR_GPU" : "hipErrorNoBinaryForGpu";
  std::string const entry = "kiln_" + identifier(k.code.name);
  int const slots = slot_count(graph_view(k.code));
  std::string s;
  for (image const* i : images) s += "extern const unsigned char " + i->symbol + "[];\n";
  s += "\n/* Loads the code for the current " + std::string(cuda ? "context's device" : "device") + "; the module is the caller's to unload. */\n";
  s += "typedef struct { " + module + " module; " + function + " function; unsigned threads, shared_bytes; } " + prefix + "_" + api + "_kernel;\n";
  s += "static inline " + result + " " + prefix + "_" + api + "_load(" + prefix + "_" + api + "_kernel* k) {\n  const unsigned char* image = 0;\n";
  if (cuda) {
    s += "  int major = 0, minor = 0;\n  CUdevice device;\n  CUresult code = cuCtxGetDevice(&device);\n  if (code == CUDA_SUCCESS) code = "
         "cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);\n  if (code == CUDA_SUCCESS) code = "
         "cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);\n  if (code != CUDA_SUCCESS) return code;\n";
    // The plain architecture first, as the fallback; exact ones override it.
    std::vector<image const*> sorted = images;
    std::sort(sorted.begin(), sorted.end(), [](image const* a, image const* b) { return a->arch.arch < b->arch.arch; });
    for (image const* i : sorted) {
      std::string const name(i->arch.name());
      int const major = static_cast<int>(i->arch.arch / 10), minor = static_cast<int>(i->arch.arch % 10);
      bool const exact = name.back() == 'a' || i->file.ends_with(".cubin");
      bool const same_major = exact && name.back() != 'a'; // cubins run on later minor versions
      s += "  if (" + (same_major ? "major == " + std::to_string(major) + " && minor >= " + std::to_string(minor)
                       : exact    ? "major == " + std::to_string(major) + " && minor == " + std::to_string(minor)
                                  : "major * 10 + minor >= " + std::to_string(i->arch.arch)) +
           ") { image = " + i->symbol + "; k->threads = " + std::to_string(i->info.threads) + "; k->shared_bytes = " + std::to_string(i->info.shared_bytes) +
           "; } /* " + name + " */\n";
    }
  } else {
    s += "  hipDeviceProp_t properties;\n  int device = 0;\n  hipError_t code = hipGetDevice(&device);\n  if (code == hipSuccess) code = "
         "hipGetDeviceProperties(&properties, device);\n  if (code != hipSuccess) return code;\n";
    for (image const* i : images) {
      std::string const name(i->arch.name());
      s += "  if (strncmp(properties.gcnArchName, " + c_string(name) + ", " + std::to_string(name.size()) + ") == 0 && (properties.gcnArchName[" +
           std::to_string(name.size()) + "] == 0 || properties.gcnArchName[" + std::to_string(name.size()) + "] == ':')) { image = " + i->symbol +
           "; k->threads = " + std::to_string(i->info.threads) + "; k->shared_bytes = " + std::to_string(i->info.shared_bytes) + "; }\n";
    }
  }
  s += "  if (!image) return " + none + ";\n  code = " + (cuda ? "cu" : "hip") + "ModuleLoadData(&k->module, image);\n  if (code == " + success + ") code = " +
       (cuda ? "cu" : "hip") + "ModuleGetFunction(&k->function, k->module, " + c_string(entry) + ");\n";
  if (cuda)
    s += "  if (code == CUDA_SUCCESS && k->shared_bytes > 48 * 1024) code = cuFuncSetAttribute(k->function, "
         "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)k->shared_bytes);\n";
  if (dims const& c = k.code.attrs.cluster; cuda && c.x * c.y * c.z > 8)
    s += "  if (code == CUDA_SUCCESS) code = cuFuncSetAttribute(k->function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);\n";
  s += "  return code;\n}\n";
  s += "/* Starts the kernel; an empty grid is a launch of nothing. " + wrong + " for an argument that the code was not made for. */\n";
  s += "static inline " + result + " " + prefix + "_" + api + "_launch(const " + prefix + "_" + api + "_kernel* k, " + stream +
       " stream, uint32_t gx, uint32_t gy, uint32_t gz" + parameters(k.code) + ") {\n  uint64_t slots[" + std::to_string(std::max(1, slots)) + "];\n  size_t bytes = " +
       std::to_string(slots * 8) + ";\n";
  s += cuda ? "  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, slots, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};\n"
            : "  void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, slots, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END};\n";
  s += "  if (gx == 0 || gy == 0 || gz == 0) return " + success + ";\n";
  // The clusters' shape is in the code.
  if (std::string const broken = broken_clusters(k.code); !broken.empty()) s += "  if (" + broken + ") return " + wrong + "; /* whole clusters */\n";
  s += "  if (!" + prefix + "_pack(slots" + arguments(k.code) + ")) return " + wrong + ";\n  return " +
       (cuda ? "cuLaunchKernel" : "hipModuleLaunchKernel") + "(k->function, gx, gy, gz, k->threads, 1, 1, k->shared_bytes, stream, 0, bytes ? extra : 0);\n}\n";
  std::string const fault = images.front()->info.fault;
  if (!fault.empty()) {
    s += "/* After the stream was waited for: 1 if a device_assert failed since the last call, with its text in *why. Blocks. */\n";
    s += "static inline " + result + " " + prefix + "_" + api + "_failed(const " + prefix + "_" + api + "_kernel* k, int* failed, const char** why) {\n  " +
         (cuda ? "CUdeviceptr" : "hipDeviceptr_t") + " record;\n  size_t bytes;\n  uint32_t words[4] = {0, 0, 0, 0};\n  " + result + " code = " +
         (cuda ? "cuModuleGetGlobal" : "hipModuleGetGlobal") + "(&record, &bytes, k->module, " + c_string(fault) + ");\n  if (code == " + success + ") code = " +
         (cuda ? "cuMemcpyDtoH" : "hipMemcpyDtoH") + "(words, record, sizeof words);\n  *failed = code == " + success + " && words[0] != 0;\n  if (!*failed) return code;\n" +
         "  if (why) *why = " + prefix + "_assert_text((int)words[1] - 1, (int)words[2]);\n  return " +
         (cuda ? "cuMemsetD32(record, 0, 4)" : "hipMemsetD32(record, 0, 4)") + ";\n}\n";
  }
  std::string const guard = cuda ? "#ifdef CUDA_VERSION /* include <cuda.h> first */\n"
                                 : "#ifdef HIP_INCLUDE_HIP_HIP_RUNTIME_API_H /* include <hip/hip_runtime_api.h> first */\n";
  return guard + s + "#endif\n";
}

/// PTX through the assembler's program. Errors: std::runtime_error with its words.
std::string assemble(std::string const& ptxas, std::filesystem::path const& ptx, std::string const& arch) {
  std::filesystem::path const out = std::filesystem::path(ptx).replace_extension(".cubin");
  std::string const arch_option = "-arch=" + arch, in = ptx.string(), to = out.string();
  char const* arguments[] = {ptxas.c_str(), arch_option.c_str(), "-O3", in.c_str(), "-o", to.c_str(), nullptr};
  pid_t id = 0;
  if (int code = posix_spawnp(&id, ptxas.c_str(), nullptr, nullptr, const_cast<char**>(arguments), environ); code != 0)
    throw bad_input("--ptxas " + ptxas + " cannot be started: " + std::strerror(code));
  int status = 0;
  while (waitpid(id, &status, 0) < 0 && errno == EINTR) {}
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error(ptxas + " refuses " + in);
  std::ifstream file(out, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string array_of(std::string const& symbol, std::string const& bytes) {
  std::string s = "const unsigned char " + symbol + "[] __attribute__((aligned(64))) = {";
  char text[8];
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % 24 == 0) s += "\n  ";
    std::snprintf(text, sizeof text, "%u,", static_cast<unsigned>(static_cast<unsigned char>(bytes[i])));
    s += text;
  }
  return s + "0\n};\n"; // the 0 ends PTX text
}

// What an object may call that no library of every system has: the hook of device_assert, and conversions to bf16, whose
// result travels in the low half of a float's register.
constexpr char host_support[] = R"(
__attribute__((weak, visibility("hidden"))) void kiln_host_assert(void* runtime, int32_t text, int32_t file, int32_t line) {
  int32_t* failure = (int32_t*)runtime;
  (void)file;
  if (failure[0]) return;
  failure[0] = 1, failure[1] = text, failure[2] = line;
}
static float kiln_low_half(uint32_t bits) { float f; memcpy(&f, &bits, 4); return f; }
__attribute__((weak, visibility("hidden"))) float kiln_truncsfbf2(float x) __asm__("__truncsfbf2");
float kiln_truncsfbf2(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  if ((u & 0x7fffffffu) > 0x7f800000u) return kiln_low_half(u >> 16 | 0x40u);
  return kiln_low_half(((u + 0x7fffu + (u >> 16 & 1u)) >> 16) & 0xffffu);
}
__attribute__((weak, visibility("hidden"))) float kiln_truncdfbf2(double x) __asm__("__truncdfbf2");
float kiln_truncdfbf2(double x) {
  float f = (float)x;
  if (f == f && (double)f != x) { /* to odd first, so that two roundings are one */
    uint32_t u;
    memcpy(&u, &f, 4);
    if ((u & 0x7fffffffu) == 0x7f800000u || (f < 0 ? -(double)f : (double)f) > (x < 0 ? -x : x)) u -= 1;
    u |= 1u;
    memcpy(&f, &u, 4);
  }
  return kiln_truncsfbf2(f);
}
)";

std::string signature_of(graph const& g) {
  std::string s;
  for (param_info const& p : g.params) {
    std::string const t = std::string(p.is_const ? "const " : "") + std::string(name_of(p.type));
    s += (s.empty() ? "" : ", ") + (p.kind == node_kind::value     ? "val<" + t + ">"
                                    : p.kind == node_kind::pointer ? "ptr<" + t + ">"
                                                                   : "array<" + t + ", " + std::to_string(p.rank) + ">");
  }
  return "(" + s + ")";
}

} // namespace

int bundle(bundle_options const& o) {
  std::filesystem::path const folder = o.folder;
  std::string const name = identifier(o.name.empty() ? std::filesystem::absolute(folder / "x").parent_path().filename().string() : o.name);
  std::vector<bundled> kernels;
  std::map<std::string, std::string> names;
  for (std::string const& input : o.inputs)
    for (graph& g : read(input)) {
      check(g, input);
      std::string const c = identifier(g.name);
      if (auto [at, fresh] = names.emplace(c, input); !fresh)
        throw bad_input(input + ": kernel " + quote_text(g.name) + " has the name of another in " + at->second + "; a bundle needs different names");
      if (contains(g, op::device_print))
        throw bad_input(input + ": kernel " + quote_text(g.name) + " has a device_print, which needs the library; remove it with kiln-opt -p strip_debug");
      specialisation facts = specialisation::generic(g);
      kernels.push_back({std::move(g), std::move(facts), c, {}});
    }
  if (kernels.empty()) throw bad_input("no kernels to bundle");
  for (std::string const& fact : o.facts) {
    auto const colon = fact.find(':');
    std::string const kernel = colon == std::string::npos ? "" : fact.substr(0, colon);
    if (kernel.empty() && kernels.size() > 1) throw bad_input("fact '" + fact + "': several kernels; say KERNEL:FACT");
    bundled* found = nullptr;
    for (bundled& k : kernels)
      if (kernel.empty() || k.code.name == kernel) found = &k;
    if (!found) throw bad_input("fact '" + fact + "': no kernel is called " + quote_text(kernel));
    add_fact(found->facts, found->code, colon == std::string::npos ? fact : fact.substr(colon + 1));
  }

  std::filesystem::create_directories(folder);
  auto put = [&](std::string const& file, std::string const& content) {
    write((folder / file).string(), content);
    std::printf("%s\n", (folder / file).string().c_str());
  };
  std::string data = "// Images of the bundle " + name + "; see " + name + ".h.\n#include <stdint.h>\n#include <string.h>\n";
  bool host = false;
  for (bundled& k : kernels)
    for (std::string const& t : o.targets) {
      image i{target::parse(t), {}, {}, {}, {}};
      i.bytes = jit::emit(k.code, k.facts, i.arch, jit::emit_kind::object, &i.info);
      std::string const stem = k.c_name + "." + std::string(i.arch.name());
      i.file = stem + (i.arch.is_host() ? ".o" : i.arch.is_nvptx() ? ".ptx" : ".hsaco");
      put(i.file, i.bytes);
      if (i.arch.is_nvptx() && !o.ptxas.empty()) {
        i.bytes = assemble(o.ptxas, folder / i.file, std::string(i.arch.name()));
        i.file = stem + ".cubin";
        std::printf("%s\n", (folder / i.file).string().c_str());
      }
      if (i.arch.is_host()) {
        host = true;
      } else {
        i.symbol = name + "_" + k.c_name + "_" + std::string(i.arch.name());
        data += "\nextern const unsigned char " + i.symbol + "[];\n" + array_of(i.symbol, i.bytes);
      }
      k.images.push_back(std::move(i));
    }
  if (host) data += host_support;

  std::string guard = name + "_h";
  std::transform(guard.begin(), guard.end(), guard.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string header = "/* Kernels compiled by kiln " + std::string(version()) + ", for C and C++. Compile " + name + ".c with your program" +
                       (host ? " and link the .o files" : "") + ";\n * neither kiln nor LLVM is needed. Include the driver's own header first for its launches. Grids are in CTAs. */\n#ifndef " +
                       guard + "\n#define " + guard + "\n#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  for (bundled const& k : kernels) {
    std::string const prefix = name + "_" + k.c_name;
    header += "\n/* ---- kernel " + k.code.name + signature_of(k.code) + " ---- */\n" + pack_function(prefix, k) + assert_function(prefix, k.code);
    for (image const& i : k.images)
      if (i.arch.is_host()) header += host_functions(prefix, k, i);
    header += gpu_functions(prefix, k, true) + gpu_functions(prefix, k, false);
  }
  header += "\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
  put(name + ".h", header);
  put(name + ".c", data);
  return 0;
}

} // namespace kiln::tool
