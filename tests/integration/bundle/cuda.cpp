// A C++ program that loads and launches a bundle's kernels through the CUDA driver, here one that only pretends.
#include <cuda.h>

#include "demo.h"
#include "fake_cuda.hpp"

#include <cstdio>
#include <cstring>

namespace {
int failures = 0;
void expect(bool good, char const* what) {
  if (good) return;
  std::printf("FAILED: %s\n", what);
  ++failures;
}
} // namespace

int main() {
  CUcontext context;
  cuInit(0);
  expect(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS && cuCtxPushCurrent(context) == CUDA_SUCCESS, "a context");
  demo_row_softmax_cuda_kernel softmax;
  demo_below_limit_cuda_kernel below;
  expect(demo_row_softmax_cuda_load(&softmax) == CUDA_SUCCESS, "load");
  expect(demo_below_limit_cuda_load(&below) == CUDA_SUCCESS, "load");
  expect(softmax.threads == 128, "threads");
  float x[8];
  std::uint16_t y[8];
  std::int64_t const extents[2] = {2, 4}, strides[2] = {4, 1}, wrong[2] = {4, 2};
  expect(demo_row_softmax_cuda_launch(&softmax, nullptr, 2, 1, 1, x, extents, strides, x, extents, strides) == CUDA_SUCCESS, "launch");
  expect(demo_row_softmax_cuda_launch(&softmax, nullptr, 2, 1, 1, x, extents, wrong, x, extents, strides) == CUDA_ERROR_INVALID_VALUE, "facts");
  expect(demo_row_softmax_cuda_launch(&softmax, nullptr, 2, 0, 1, x, extents, strides, x, extents, strides) == CUDA_SUCCESS, "an empty grid");
  expect(fake_cuda::launches().size() == 1, "one launch so far");
  auto const& l = fake_cuda::launches().back();
  expect(l.function == "kiln_row_softmax" && l.arguments.size() == 10 && l.arguments[1] == 2 && l.arguments[4] == 1, "slots");
  fake_cuda::on_launch([](fake_cuda::launch const& k) {
    auto* words = static_cast<unsigned*>(k.global("kiln_below_limit_fault"));
    words[0] = 1, words[1] = 1, words[2] = 7, words[3] = 0;
  });
  int failed = 1;
  char const* why = "";
  expect(demo_below_limit_cuda_failed(&below, &failed, &why) == CUDA_SUCCESS && failed == 0, "nothing failed yet");
  expect(demo_below_limit_cuda_launch(&below, nullptr, 1, 1, 1, x, y, -3, 5.f, 8) == CUDA_SUCCESS, "launch");
  expect(fake_cuda::launches().back().arguments[2] == 0xfd, "a value is extended with zeros");
  expect(demo_below_limit_cuda_failed(&below, &failed, &why) == CUDA_SUCCESS && failed == 1, "the assertion is told");
  expect(std::strstr(why, "must be below the limit (limit.cpp:7)") != nullptr, why);
  expect(demo_below_limit_cuda_failed(&below, &failed, &why) == CUDA_SUCCESS && failed == 0, "once");
  if (failures == 0) std::printf("bundle on CUDA: good\n");
  return failures != 0;
}
