// Random tests: a fresh seed each run, printed, and replayed with KILN_TEST_SEED=number.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace kiln_test {

/// The seed of this program's random tests; printed once.
inline std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const char* text = std::getenv("KILN_TEST_SEED");
    std::uint64_t s = text ? std::strtoull(text, nullptr, 0) : std::uint64_t(std::random_device{}());
    std::printf("random seed %llu (KILN_TEST_SEED=%llu replays it)\n", static_cast<unsigned long long>(s),
                static_cast<unsigned long long>(s));
    std::fflush(stdout);
    return s;
  }();
  return value;
}

} // namespace kiln_test
