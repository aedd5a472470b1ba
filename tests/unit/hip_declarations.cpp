// Our declarations of the HIP runtime against its own headers, where they are installed: what is shared in memory, numbers
// of the enumerations, names and arguments of the entry points. Headers before ROCm 6 (Debian's) lack a few of these.
#include <gtest/gtest.h>

#include "src/runtime/gpu_driver.hpp"

#if __has_include(<hip/hip_runtime_api.h>)
#define __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_HCC__
#if defined(__clang__)
#pragma clang diagnostic ignored "-Weverything"
#else
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wunused-result"
#endif
#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <type_traits>

using namespace kiln::detail;

static_assert(sizeof(gpu_pool_properties) == sizeof(hipMemPoolProps));
static_assert(offsetof(gpu_pool_properties, location) == offsetof(hipMemPoolProps, location));
static_assert(offsetof(gpu_pool_properties, win32_security) == offsetof(hipMemPoolProps, win32SecurityAttributes));
static_assert(gpu_pool_properties{}.allocation_type == hipMemAllocationTypePinned);
static_assert(gpu_pool_properties{}.location.type == hipMemLocationTypeDevice);

static_assert(gpu::pool_release_threshold == hipMemPoolAttrReleaseThreshold);
static_assert(gpu::function_max_threads == HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
static_assert(gpu::function_static_shared == HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
static_assert(gpu::function_local_bytes == HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
static_assert(gpu::function_registers == HIP_FUNC_ATTRIBUTE_NUM_REGS);
static_assert(gpu::pointer_memory_type == HIP_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(gpu::pointer_device_ordinal == HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(gpu::pointer_range_start == HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR);
static_assert(gpu::pointer_range_bytes == HIP_POINTER_ATTRIBUTE_RANGE_SIZE);
static_assert(gpu::stream_non_blocking == hipStreamNonBlocking);
static_assert(gpu::capture_relaxed == hipStreamCaptureModeRelaxed);
static_assert(gpu::host_portable == hipHostMallocPortable);
static_assert(gpu::not_ready == hipErrorNotReady && gpu::out_of_memory == hipErrorOutOfMemory);
static_assert(gpu::capture_implicit == hipErrorStreamCaptureImplicit);
static_assert(gpu::hip_multiprocessors == hipDeviceAttributeMultiprocessorCount);
static_assert(gpu::hip_l2_bytes == hipDeviceAttributeL2CacheSize);
static_assert(gpu::hip_pageable_access == hipDeviceAttributePageableMemoryAccess);
static_assert(gpu::hip_pools_supported == hipDeviceAttributeMemoryPoolsSupported);
#if HIP_VERSION_MAJOR >= 6
static_assert(gpu::memory_type_host == hipMemoryTypeHost && gpu::memory_type_device == hipMemoryTypeDevice);
static_assert(gpu::hip_memory_type_managed == hipMemoryTypeManaged);
#endif

namespace {

template <class Ours, class Theirs>
constexpr bool travels_alike = sizeof(Ours) == sizeof(Theirs) && !std::is_floating_point_v<Ours> &&
                               !std::is_floating_point_v<Theirs>;

template <class... Ours, class... Theirs> constexpr bool same_call(int (*)(Ours...), hipError_t (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) return (travels_alike<Ours, Theirs> && ...);
  else return false;
}

} // namespace

#define KILN_SAME(member, name)                                                                                        \
  static_assert(same_call(decltype(gpu_driver::member){nullptr}, decltype(&::name){nullptr}), #name)
KILN_SAME(init, hipInit);
KILN_SAME(driver_version, hipDriverGetVersion);
KILN_SAME(device_count, hipGetDeviceCount);
KILN_SAME(device_get, hipDeviceGet);
KILN_SAME(device_name, hipDeviceGetName);
KILN_SAME(device_memory, hipDeviceTotalMem);
KILN_SAME(device_attribute, hipDeviceGetAttribute);
KILN_SAME(current_device, hipGetDevice);
KILN_SAME(set_device, hipSetDevice);
KILN_SAME(can_access_peer, hipDeviceCanAccessPeer);
KILN_SAME(memory_info, hipMemGetInfo);
KILN_SAME(pool_create, hipMemPoolCreate);
KILN_SAME(pool_set_attribute, hipMemPoolSetAttribute);
KILN_SAME(free_async, hipFreeAsync);
KILN_SAME(free, hipFree);
KILN_SAME(pointer_attributes, hipDrvPointerGetAttributes);
KILN_SAME(free_host, hipHostFree);
KILN_SAME(copy_in, hipMemcpyHtoDAsync);
KILN_SAME(copy_out, hipMemcpyDtoHAsync);
KILN_SAME(copy_within, hipMemcpyDtoDAsync);
KILN_SAME(set_8, hipMemsetD8Async);
KILN_SAME(set_16, hipMemsetD16Async);
KILN_SAME(set_32, hipMemsetD32Async);
KILN_SAME(stream_create, hipStreamCreateWithFlags);
KILN_SAME(stream_destroy, hipStreamDestroy);
KILN_SAME(stream_synchronize, hipStreamSynchronize);
KILN_SAME(stream_wait_event, hipStreamWaitEvent);
KILN_SAME(exchange_capture_mode, hipThreadExchangeStreamCaptureMode);
KILN_SAME(stream_is_capturing, hipStreamIsCapturing);
KILN_SAME(event_create, hipEventCreateWithFlags);
KILN_SAME(event_destroy, hipEventDestroy);
KILN_SAME(event_record, hipEventRecord);
KILN_SAME(event_query, hipEventQuery);
KILN_SAME(event_synchronize, hipEventSynchronize);
KILN_SAME(event_elapsed, hipEventElapsedTime);
KILN_SAME(module_load, hipModuleLoadDataEx);
KILN_SAME(module_unload, hipModuleUnload);
KILN_SAME(module_function, hipModuleGetFunction);
KILN_SAME(module_global, hipModuleGetGlobal);
KILN_SAME(function_attribute, hipFuncGetAttribute);
KILN_SAME(launch, hipModuleLaunchKernel);
// These are overloaded for C++; the one of C is meant.
static_assert(same_call(decltype(gpu_driver::allocate){nullptr}, static_cast<hipError_t (*)(void**, std::size_t)>(&::hipMalloc)));
static_assert(same_call(decltype(gpu_driver::allocate_host){nullptr}, static_cast<hipError_t (*)(void**, std::size_t, unsigned)>(&::hipHostMalloc)));
static_assert(same_call(decltype(gpu_driver::allocate_from_pool){nullptr},
                        static_cast<hipError_t (*)(void**, std::size_t, hipMemPool_t, hipStream_t)>(&::hipMallocFromPoolAsync)));
#if HIP_VERSION_MAJOR >= 6
KILN_SAME(stream_device, hipStreamGetDevice);
#endif
#undef KILN_SAME

TEST(hip_declarations, agree_with_the_headers) { SUCCEED() << "checked by the compiler"; }

#else

TEST(hip_declarations, agree_with_the_headers) { GTEST_SKIP() << "no headers of the HIP runtime here (libamdhip64-dev)"; }

#endif
