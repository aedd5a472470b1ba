/* A kernel in clusters of two CTAs, on the host: grids are whole clusters. */
#include "pairs.h"

#include <stdio.h>

int main(void) {
  static int32_t y[6 * 128];
  const char* why = "";
  int failures = 0;
  if (pairs_in_pairs_host(6, 1, 1, &why, y) != 0) ++failures, printf("FAILED: it runs\n");
  for (int i = 0; i < 6 * 128; ++i)
    if (y[i] != (i / 128 ^ 1)) {
      ++failures, printf("FAILED: element %d is %d\n", i, (int)y[i]);
      break;
    }
  if (pairs_in_pairs_host(5, 1, 1, &why, y) != 1) ++failures, printf("FAILED: half a cluster\n");
  return failures != 0;
}
