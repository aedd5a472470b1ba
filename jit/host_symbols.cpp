// The allow-list of host library calls, with the conversions that compiler run-time libraries may lack.
#include "host_symbols.hpp"

#include "jit/target/host/dot_drive.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace kiln::jit {

namespace {

// Code generation passes f16 and bf16 in the low half of a vector register; returning a float whose low 16 bits are the
// result is that convention, without asking this file's compiler to have the types.
float in_register(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits}); }
std::uint16_t low_half(float reg) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(reg)); }

// To nearest, ties to even; NaN stays NaN and becomes quiet.
std::uint16_t bf16_bits(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(u >> 16 | 0x40u);
  return static_cast<std::uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

// Rounded to odd, a double goes through a float into anything at least two bits narrower with a single rounding.
float odd_float(double x) {
  const auto f = static_cast<float>(x);
  if (std::isnan(x) || static_cast<double>(f) == x) return f;
  auto u = std::bit_cast<std::uint32_t>(f);
  if (std::isinf(f)) u -= 1;                                         // overflow: the largest finite, which is odd
  else if (std::fabs(static_cast<double>(f)) > std::fabs(x)) u -= 1; // towards zero first
  return std::bit_cast<float>(u | 1u);
}

std::uint16_t f16_bits(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>(u >> 16 & 0x8000u);
  const std::uint32_t m = u & 0x7fffffffu;
  if (m > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | (m >> 13 & 0x3ffu));
  if (m >= 0x47800000u) return sign | 0x7c00u;            // 65536 and up
  if (m < 0x38800000u) {                                  // denormal: let the adder round
    const float shifted = std::bit_cast<float>(m) + 0.5f; // ulp of 0.5 is 2^-24, the denormal step
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  return static_cast<std::uint16_t>(sign | ((m - 0x38000000u + 0xfffu + (m >> 13 & 1u)) >> 13)); // may carry to inf
}

float f16_value(std::uint16_t h) {
  const std::uint32_t sign = std::uint32_t{h & 0x8000u} << 16, e = h >> 10 & 31u, m = h & 0x3ffu;
  if (e == 31) return std::bit_cast<float>(sign | 0x7f800000u | m << 13 | (m != 0 ? 0x400000u : 0u));
  if (e == 0) return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(m) * 0x1p-24f));
  return std::bit_cast<float>(sign | (e + 112) << 23 | m << 13);
}

float truncsfbf2(float x) { return in_register(bf16_bits(x)); }
float truncdfbf2(double x) { return in_register(bf16_bits(odd_float(x))); }
float truncsfhf2(float x) { return in_register(f16_bits(x)); }
float truncdfhf2(double x) { return in_register(f16_bits(odd_float(x))); }
float extendhfsf2(float h) { return f16_value(low_half(h)); }
double extendhfdf2(float h) { return f16_value(low_half(h)); }

__extension__ using i128 = __int128;
__extension__ using u128 = unsigned __int128;
i128 divti3(i128 a, i128 b) { return a / b; }
i128 modti3(i128 a, i128 b) { return a % b; }
u128 udivti3(u128 a, u128 b) { return a / b; }
u128 umodti3(u128 a, u128 b) { return a % b; }

using f32_unary = float (*)(float);
using f64_unary = double (*)(double);
using f32_binary = float (*)(float, float);
using f64_binary = double (*)(double, double);
using f32_ternary = float (*)(float, float, float);
using f64_ternary = double (*)(double, double, double);

template <typename F> host_symbol symbol(const char* name, F* f) { return {name, reinterpret_cast<void*>(f)}; }

} // namespace

std::vector<host_symbol> exact_library() {
  return {
      symbol("memcpy", &std::memcpy),
      symbol("memmove", &std::memmove),
      symbol("memset", &std::memset),
      symbol("__divti3", &divti3),
      symbol("__modti3", &modti3),
      symbol("__udivti3", &udivti3),
      symbol("__umodti3", &umodti3),
      symbol("__truncsfbf2", &truncsfbf2),
      symbol("__truncdfbf2", &truncdfbf2),
      symbol("__truncsfhf2", &truncsfhf2),
      symbol("__truncdfhf2", &truncdfhf2),
      symbol("__extendhfsf2", &extendhfsf2),
      symbol("__extendhfdf2", &extendhfdf2),
      symbol("fmodf", static_cast<f32_binary>(&::fmodf)),
      symbol("fmod", static_cast<f64_binary>(&::fmod)),
      symbol("fmaf", static_cast<f32_ternary>(&::fmaf)),
      symbol("fma", static_cast<f64_ternary>(&::fma)),
      symbol("floorf", static_cast<f32_unary>(&::floorf)),
      symbol("floor", static_cast<f64_unary>(&::floor)),
      symbol("ceilf", static_cast<f32_unary>(&::ceilf)),
      symbol("ceil", static_cast<f64_unary>(&::ceil)),
      symbol("truncf", static_cast<f32_unary>(&::truncf)),
      symbol("trunc", static_cast<f64_unary>(&::trunc)),
      symbol("rintf", static_cast<f32_unary>(&::rintf)),
      symbol("rint", static_cast<f64_unary>(&::rint)),
      symbol("nearbyintf", static_cast<f32_unary>(&::nearbyintf)),
      symbol("nearbyint", static_cast<f64_unary>(&::nearbyint)),
      symbol("roundf", static_cast<f32_unary>(&::roundf)),
      symbol("round", static_cast<f64_unary>(&::round)),
      symbol("roundevenf", static_cast<f32_unary>(&::roundevenf)),
      symbol("roundeven", static_cast<f64_unary>(&::roundeven)),
      symbol(host::dot_driver, &host::drive_dot),
  };
}

std::string why_not(std::string_view name) {
  return "code generation wants to call '" + std::string(name) +
         "', which kiln does not provide to host kernels; the lowering must write the operation out (kiln has its own "
         "polynomials for transcendental functions), or the runtime must define the symbol in the engine";
}

} // namespace kiln::jit
