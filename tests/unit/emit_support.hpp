// What the tests of jit/emit share: the CPUs to compile for, vector widths, running over arrays, distances in ulp.
#pragma once

#include <jit/emit/probe.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace kiln::test {

/// One code path: an instruction set that this machine must be able to run.
struct path {
  const char* name;
  const char* cpu; // as LLVM names it
  bool (*runs)();
  unsigned f32_lanes;

  friend void PrintTo(const path& p, std::ostream* out) { *out << p.name; }
};

inline const std::vector<path>& paths() {
#if defined(__x86_64__)
  static const std::vector<path> all{
      {"baseline", "x86-64", [] { return true; }, 4},
      {"sse42", "nehalem", [] { return __builtin_cpu_supports("sse4.2") != 0; }, 4},
      {"avx2", "haswell", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }, 8},
      {"avx512", "skylake-avx512",
       [] { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"); }, 16},
      {"native", "", [] { return true; }, __builtin_cpu_supports("avx512f") ? 16u : 8u}};
#else
  static const std::vector<path> all{{"native", "", [] { return true; }, 4}};
#endif
  return all;
}

class each_path : public testing::TestWithParam<path> {
protected:
  void SetUp() override {
    if (!GetParam().runs()) GTEST_SKIP() << "this processor cannot run " << GetParam().name << " code";
    probe_ = std::make_unique<emit::probe>(GetParam().cpu);
  }
  unsigned lanes_of(dtype t) const { return GetParam().f32_lanes * 4 / (storage_bits_of(t) / 8); }
  /// Scalar, the natural width, twice that, and an odd one.
  std::vector<unsigned> widths(dtype t) const { return {0, lanes_of(t), 2 * lanes_of(t), 3}; }

  std::unique_ptr<emit::probe> probe_;
};

inline std::string path_name(const testing::TestParamInfo<path>& info) { return info.param.name; }

/// Runs f over n elements, the last few through a padded copy where n is not a multiple of the lanes.
template <class Out, class In>
std::vector<Out> apply(emit::probe::function f, unsigned lanes, std::vector<In> a, std::vector<In> b = {},
                       std::vector<In> c = {}) {
  const size_t n = a.size(), step = lanes == 0 ? 1 : lanes, padded = (n + step - 1) / step * step;
  for (auto* v : {&a, &b, &c}) v->resize(padded, In{1});
  std::vector<Out> out(padded);
  f(out.data(), a.data(), b.data(), c.data(), padded);
  out.resize(n);
  return out;
}

/// A small, fast generator; the sequence depends on the seed alone.
struct splitmix {
  uint64_t state;
  uint64_t operator()() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
};

inline uint64_t seed() { return static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed()) + 1; }

} // namespace kiln::test
