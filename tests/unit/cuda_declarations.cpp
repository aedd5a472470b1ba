// Our declarations of the CUDA driver against the toolkit's, where its headers are installed: sizes and places of what
// is shared, numbers of the enumerations, names of the entry points.
#include <gtest/gtest.h>

#include "src/runtime/gpu_driver.hpp"

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

// Older headers lack some of what kiln asks of the driver.
#if defined(CUDA_VERSION) && CUDA_VERSION >= 12000

#include <cstddef>
#include <type_traits>

using namespace kiln::detail;

static_assert(sizeof(gpu_pool_properties) == sizeof(CUmemPoolProps));
static_assert(offsetof(gpu_pool_properties, location) == offsetof(CUmemPoolProps, location));
static_assert(offsetof(gpu_pool_properties, max_bytes) == offsetof(CUmemPoolProps, maxSize));
static_assert(gpu_pool_properties{}.allocation_type == CU_MEM_ALLOCATION_TYPE_PINNED);
static_assert(gpu_pool_properties{}.location.type == CU_MEM_LOCATION_TYPE_DEVICE);

static_assert(sizeof(gpu_launch_attribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(gpu_launch_attribute, bytes) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(gpu_launch_config) == sizeof(CUlaunchConfig));
static_assert(offsetof(gpu_launch_config, block) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(gpu_launch_config, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(gpu_launch_config, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(gpu_launch_config, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(gpu_launch_config, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(CUdeviceptr) == sizeof(void*));

static_assert(gpu::pool_release_threshold == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
static_assert(gpu::function_max_threads == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
static_assert(gpu::function_static_shared == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
static_assert(gpu::function_local_bytes == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
static_assert(gpu::function_registers == CU_FUNC_ATTRIBUTE_NUM_REGS);
static_assert(gpu::function_max_dynamic_shared == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(gpu::function_non_portable_cluster == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
static_assert(gpu::pointer_memory_type == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(gpu::pointer_device_ordinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(gpu::pointer_range_start == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
static_assert(gpu::pointer_range_bytes == CU_POINTER_ATTRIBUTE_RANGE_SIZE);
static_assert(gpu::cuda_pointer_as_seen_here == CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
static_assert(gpu::host_portable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(gpu::capture_implicit == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
static_assert(gpu::cuda_max_threads_per_multiprocessor == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
static_assert(gpu::cuda_max_shared_per_cta == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(gpu::cuda_pageable_access == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
static_assert(gpu::memory_type_host == CU_MEMORYTYPE_HOST && gpu::memory_type_device == CU_MEMORYTYPE_DEVICE);
static_assert(gpu::stream_non_blocking == CU_STREAM_NON_BLOCKING);
static_assert(gpu::capture_relaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(gpu::launch_cluster_dimension == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
static_assert(gpu::not_ready == CUDA_ERROR_NOT_READY && gpu::out_of_memory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(gpu::cuda_multiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(gpu::cuda_l2_bytes == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
static_assert(gpu::cuda_major == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(gpu::cuda_minor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(gpu::cuda_pools_supported == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
static_assert(gpu::link_input_ptx == CU_JIT_INPUT_PTX);
static_assert(gpu::jit_info_log == CU_JIT_INFO_LOG_BUFFER &&
              gpu::jit_info_log_bytes == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
static_assert(gpu::jit_error_log == CU_JIT_ERROR_LOG_BUFFER &&
              gpu::jit_error_log_bytes == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(gpu::jit_target_from_context == CU_JIT_TARGET_FROM_CUCONTEXT);
static_assert(gpu::jit_log_verbose == CU_JIT_LOG_VERBOSE && gpu::jit_line_info == CU_JIT_GENERATE_LINE_INFO);

namespace {

// A parameter of ours matches the toolkit's when both travel the same way: integers, enumerations and addresses of one
// size.
template <class Ours, class Theirs>
constexpr bool travels_alike = sizeof(Ours) == sizeof(Theirs) && !std::is_floating_point_v<Ours> &&
                               !std::is_floating_point_v<Theirs>;

template <class... Ours, class... Theirs> constexpr bool same_call(int (*)(Ours...), CUresult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) return (travels_alike<Ours, Theirs> && ...);
  else return false;
}

} // namespace

// The toolkit's macros turn the plain names into the versions that its declarations stand for.
#define KILN_SAME(member, name)                                                                                        \
  static_assert(same_call(decltype(gpu_driver::member){nullptr}, decltype(&name){nullptr}), #name)
KILN_SAME(init, cuInit);
KILN_SAME(driver_version, cuDriverGetVersion);
KILN_SAME(error_name, cuGetErrorName);
KILN_SAME(error_string, cuGetErrorString);
KILN_SAME(device_count, cuDeviceGetCount);
KILN_SAME(device_get, cuDeviceGet);
KILN_SAME(device_name, cuDeviceGetName);
KILN_SAME(device_memory, cuDeviceTotalMem);
KILN_SAME(device_attribute, cuDeviceGetAttribute);
KILN_SAME(primary_context_retain, cuDevicePrimaryCtxRetain);
KILN_SAME(context_current, cuCtxGetCurrent);
KILN_SAME(context_push, cuCtxPushCurrent);
KILN_SAME(context_pop, cuCtxPopCurrent);
KILN_SAME(context_device, cuCtxGetDevice);
KILN_SAME(memory_info, cuMemGetInfo);
KILN_SAME(pool_create, cuMemPoolCreate);
KILN_SAME(pool_set_attribute, cuMemPoolSetAttribute);
KILN_SAME(allocate_from_pool, cuMemAllocFromPoolAsync);
KILN_SAME(free_async, cuMemFreeAsync);
KILN_SAME(allocate, cuMemAlloc);
KILN_SAME(free, cuMemFree);
KILN_SAME(pointer_attributes, cuPointerGetAttributes);
KILN_SAME(allocate_host, cuMemHostAlloc);
KILN_SAME(free_host, cuMemFreeHost);
KILN_SAME(module_global, cuModuleGetGlobal);
KILN_SAME(copy_in, cuMemcpyHtoDAsync);
KILN_SAME(copy_out, cuMemcpyDtoHAsync);
KILN_SAME(copy_within, cuMemcpyDtoDAsync);
KILN_SAME(set_8, cuMemsetD8Async);
KILN_SAME(set_16, cuMemsetD16Async);
KILN_SAME(set_32, cuMemsetD32Async);
KILN_SAME(stream_create, cuStreamCreate);
KILN_SAME(stream_destroy, cuStreamDestroy);
KILN_SAME(stream_synchronize, cuStreamSynchronize);
KILN_SAME(stream_wait_event, cuStreamWaitEvent);
KILN_SAME(exchange_capture_mode, cuThreadExchangeStreamCaptureMode);
KILN_SAME(stream_is_capturing, cuStreamIsCapturing);
KILN_SAME(event_create, cuEventCreate);
KILN_SAME(event_destroy, cuEventDestroy);
KILN_SAME(event_record, cuEventRecord);
KILN_SAME(event_query, cuEventQuery);
KILN_SAME(event_synchronize, cuEventSynchronize);
KILN_SAME(event_elapsed, cuEventElapsedTime);
KILN_SAME(module_load, cuModuleLoadDataEx);
KILN_SAME(module_unload, cuModuleUnload);
KILN_SAME(module_function, cuModuleGetFunction);
KILN_SAME(function_attribute, cuFuncGetAttribute);
KILN_SAME(function_set_attribute, cuFuncSetAttribute);
KILN_SAME(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor);
KILN_SAME(occupancy_of_clusters, cuOccupancyMaxActiveClusters);
KILN_SAME(launch, cuLaunchKernel);
KILN_SAME(launch_with_attributes, cuLaunchKernelEx);
KILN_SAME(link_create, cuLinkCreate);
KILN_SAME(link_add_data, cuLinkAddData);
KILN_SAME(link_complete, cuLinkComplete);
KILN_SAME(link_destroy, cuLinkDestroy);
#undef KILN_SAME

TEST(cuda_declarations, agree_with_the_toolkit) { SUCCEED() << "checked by the compiler"; }

#else

TEST(cuda_declarations, agree_with_the_toolkit) { GTEST_SKIP() << "no headers of CUDA Toolkit 12 or newer here"; }

#endif
