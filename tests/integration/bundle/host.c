/* A C program with kernels in it and nothing of kiln: softmax of rows, and a kernel with an assertion. */
#include "demo.h"

#include <math.h>
#include <stdio.h>

static int failures = 0;
static void expect(int good, const char* what) {
  if (good) return;
  printf("FAILED: %s\n", what);
  ++failures;
}

int main(void) {
  enum { rows = 5, columns = 700 };
  static float x[rows * columns], y[rows * columns];
  const int64_t extents[2] = {rows, columns}, strides[2] = {columns, 1}, wrong[2] = {columns, 2};
  const char* why = "";
  for (int i = 0; i < rows * columns; ++i) x[i] = sinf((float)i), y[i] = -1;
  expect(demo_row_softmax_host(rows, 1, 1, &why, x, extents, strides, y, extents, strides) == 0, "softmax runs");
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int c = 0; c < columns; ++c) sum += exp(x[r * columns + c]);
    for (int c = 0; c < columns; ++c)
      if (fabs(y[r * columns + c] - exp(x[r * columns + c]) / sum) > 1e-6) {
        expect(0, "softmax");
        break;
      }
  }
  expect(demo_row_softmax_host(rows, 1, 1, &why, x, extents, wrong, y, extents, strides) == 1, "a baked stride is checked");
  expect(demo_row_softmax_host(0, 1, 1, &why, x, extents, strides, y, extents, strides) == 0, "an empty grid");

  static float in[128];
  static uint16_t out[128];
  for (int i = 0; i < 128; ++i) in[i] = (float)i, out[i] = 7;
  expect(demo_below_limit_host(1, 1, 1, &why, in, out, -3, 500.f, 100) == 0, "below");
  for (int i = 0; i < 128; ++i) {
    uint32_t bits = (uint32_t)out[i] << 16;
    float value;
    memcpy(&value, &bits, 4);
    if (i < 100 ? fabsf(value + 3.f * (float)i) > (float)i * 3 / 200 : out[i] != 7) {
      printf("%d: %g\n", i, (double)value);
      expect(0, "bf16 results, and what lies behind them");
      break;
    }
  }
  expect(demo_below_limit_host(1, 1, 1, &why, in, out, -3, 50.f, 100) == 2, "a failed assertion is told");
  expect(strcmp(why, "kernel 'below limit': device_assert failed: must be below the limit (limit.cpp:7)") == 0, why);
  if (failures == 0) printf("bundle on the host: good\n");
  return failures != 0;
}
