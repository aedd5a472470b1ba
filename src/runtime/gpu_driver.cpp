// Opens the GPU drivers and reports their errors.
#include "src/runtime/gpu_driver.hpp"

#include <dlfcn.h>

#include <type_traits>

#include "kiln/runtime/error.hpp"

namespace kiln::detail {

namespace {

gpu_driver_result open_driver(device_kind kind) {
  bool cuda = kind == device_kind::cuda;
  char const* file = cuda ? "libcuda.so.1" : "libamdhip64.so";
  void* library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  // Runtime packages of ROCm have the versioned names only.
  for (char const* other : {"libamdhip64.so.7", "libamdhip64.so.6"})
    if (library == nullptr && !cuda) library = ::dlopen(other, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return {nullptr, std::string(cuda ? "cuda: the NVIDIA driver is not installed (" : "hip: ROCm is not installed (") +
                         file + " not found)"};

  static gpu_driver drivers[2]; // filled once per kind; never closed
  gpu_driver& driver = drivers[cuda ? 0 : 1];
  driver.kind = kind;
  std::string missing;
  auto find = [&](auto& member, char const* cuda_symbol, char const* hip_symbol) {
    char const* symbol = cuda ? cuda_symbol : hip_symbol;
    if (symbol == nullptr) return;
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(::dlsym(library, symbol));
    if (member == nullptr && missing.empty()) missing = symbol;
  };
#define KILN_GPU_FUNCTION(member, cuda_symbol, hip_symbol, arguments) find(driver.member, cuda_symbol, hip_symbol);
#include "src/runtime/gpu_functions.def"
#undef KILN_GPU_FUNCTION
  if (!missing.empty())
    return {nullptr, cuda ? "cuda: the NVIDIA driver has no " + missing + "; kiln needs CUDA 12 (driver 525) or newer"
                          : "hip: the HIP runtime has no " + missing + "; kiln needs ROCm 6 or newer"};
  if (int code = driver.init(0); code != 0) {
    char const* text = nullptr;
    driver.error_string(code, &text);
    return {nullptr, std::string(cuda ? "cuda: " : "hip: ") +
                         "the driver does not start: " + (text != nullptr ? text : "error " + std::to_string(code))};
  }
  return {&driver, ""};
}

} // namespace

void gpu_driver::fail(int code, char const* call) const {
  char const* name = nullptr;
  char const* text = nullptr;
  error_name(code, &name);
  error_string(code, &text);
  throw driver_error(call, code, name != nullptr ? name : "unknown error", text != nullptr ? text : "no text");
}

gpu_driver_result const& find_gpu_driver(device_kind kind) {
  if (kind == device_kind::cuda) {
    static gpu_driver_result const cuda = open_driver(device_kind::cuda);
    return cuda;
  }
  static gpu_driver_result const hip = open_driver(device_kind::hip);
  return hip;
}

} // namespace kiln::detail
