// The CUDA and HIP drivers, opened with dlopen when they are first asked for. The declarations are our own, so nothing
// of a GPU toolkit is needed to build or to run; where a toolkit's headers are installed, a test compares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kiln/runtime/device.hpp"

namespace kiln::detail {

// Layouts shared with the drivers.
struct gpu_pool_properties {
  int allocation_type = 1; // pinned, the only one
  int handle_types = 0;
  struct {
    int type = 1; // a device
    int id = 0;
  } location;
  void* win32_security = nullptr;
  std::size_t max_bytes = 0;
  unsigned char reserved[56] = {};
};

struct gpu_launch_attribute {
  int id = 0;
  char padding[4] = {};
  union {
    char bytes[64] = {};
    struct {
      unsigned x, y, z;
    } cluster;
  };
};

struct gpu_launch_config {
  unsigned grid[3] = {};
  unsigned block[3] = {};
  unsigned shared_bytes = 0;
  void* stream = nullptr;
  gpu_launch_attribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

// Numbers of the drivers' enumerations. The two drivers agree where only one name is given.
namespace gpu {
inline constexpr int pool_release_threshold = 4;
inline constexpr int function_max_threads = 0, function_static_shared = 1, function_local_bytes = 3,
                     function_registers = 4, function_max_dynamic_shared = 8, function_non_portable_cluster = 14;
inline constexpr int pointer_memory_type = 2, cuda_pointer_as_seen_here = 3, pointer_device_ordinal = 9,
                     pointer_range_start = 11, pointer_range_bytes = 12;
inline constexpr int memory_type_host = 1, memory_type_device = 2, hip_memory_type_managed = 3;
inline constexpr int stream_non_blocking = 1;
inline constexpr int capture_relaxed = 2;
inline constexpr int launch_cluster_dimension = 4;
inline constexpr int not_ready = 600, out_of_memory = 2, capture_implicit = 906;
inline constexpr int host_portable = 1; // pinned for every context
inline constexpr int cuda_multiprocessors = 16, cuda_l2_bytes = 38, cuda_major = 75, cuda_minor = 76,
                     cuda_pools_supported = 115, cuda_max_threads_per_multiprocessor = 39,
                     cuda_max_shared_per_cta = 97, cuda_pageable_access = 88;
inline constexpr int hip_multiprocessors = 63, hip_l2_bytes = 19, hip_pools_supported = 88,
                     hip_pageable_access = 65;
inline constexpr int link_input_ptx = 1;
inline constexpr int jit_info_log = 3, jit_info_log_bytes = 4, jit_error_log = 5, jit_error_log_bytes = 6,
                     jit_target_from_context = 8, jit_log_verbose = 12, jit_line_info = 13;
} // namespace gpu

/// A driver's entry points. Members that the driver does not need to have are null.
struct gpu_driver {
  device_kind kind;
#define KILN_GPU_FUNCTION(member, cuda_symbol, hip_symbol, arguments) int(*member) arguments = nullptr;
#include "src/runtime/gpu_functions.def"
#undef KILN_GPU_FUNCTION

  /// Errors: driver_error with the call's name and the driver's text where `code` is not 0.
  void check(int code, char const* call) const {
    if (code != 0) fail(code, call);
  }
  [[noreturn]] void fail(int code, char const* call) const;

  char const* api() const { return kind == device_kind::cuda ? "CUDA" : "HIP"; }
};

/// The driver of a kind, or null where it is not there; `why` then says what is missing.
struct gpu_driver_result {
  gpu_driver const* driver = nullptr;
  std::string why;
};
gpu_driver_result const& find_gpu_driver(device_kind kind);

} // namespace kiln::detail
