// Elementary functions of jit/emit against the C library in a wider type: dense sweeps, special values, every code
// path.
#include "emit_support.hpp"

#include <map>
#include <utility>

namespace kiln::test {
namespace {

using real = long double;

struct function_case {
  const char* name;
  real (*reference)(real);
  double (*reference64)(double); // enough for f32, and far quicker
  double bound;                  // ulp
};

real rsqrt_of(real x) { return 1 / std::sqrt(x); }
double rsqrt_of(double x) { return 1 / std::sqrt(x); }

const function_case functions[] = {
    {"exp", [](real x) { return std::exp(x); }, [](double x) { return std::exp(x); }, 2},
    {"exp2", [](real x) { return std::exp2(x); }, [](double x) { return std::exp2(x); }, 2},
    {"log", [](real x) { return std::log(x); }, [](double x) { return std::log(x); }, 2},
    {"log2", [](real x) { return std::log2(x); }, [](double x) { return std::log2(x); }, 2},
    {"sin", [](real x) { return std::sin(x); }, [](double x) { return std::sin(x); }, 4},
    {"cos", [](real x) { return std::cos(x); }, [](double x) { return std::cos(x); }, 4},
    {"tanh", [](real x) { return std::tanh(x); }, [](double x) { return std::tanh(x); }, 4},
    {"erf", [](real x) { return std::erf(x); }, [](double x) { return std::erf(x); }, 4},
    {"sqrt", [](real x) { return std::sqrt(x); }, [](double x) { return std::sqrt(x); }, 0.5001},
    {"rsqrt", [](real x) { return rsqrt_of(x); }, [](double x) { return rsqrt_of(x); }, 2},
};

// The distance from `got` to the exact value in units of its last place; enormous where class or sign is wrong.
template <class T, class Exact> double ulp_error(T got, Exact exact) {
  constexpr int digits = std::numeric_limits<T>::digits, low = std::numeric_limits<T>::min_exponent - digits;
  constexpr double wrong = 1e30;
  if (std::isnan(exact)) return std::isnan(got) ? 0 : wrong;
  const T rounded = static_cast<T>(exact);
  if (std::isnan(got)) return wrong;
  if (std::isinf(got) || std::isinf(rounded)) {
    if (got == rounded) return 0;
    // One side may round to infinity where the other stops at the largest number.
    const T largest = std::numeric_limits<T>::max();
    return (std::isinf(got) ? std::fabs(rounded) : std::fabs(got)) == largest &&
                   std::signbit(got) == std::signbit(exact)
               ? 1
               : wrong;
  }
  if (std::signbit(got) != std::signbit(exact)) return wrong;
  int exponent = 0;
  std::frexp(exact, &exponent);
  const int last = std::max(exponent - digits, low);
  return static_cast<double>(std::ldexp(std::fabs(static_cast<Exact>(got) - exact), -last));
}

class emit_math : public each_path {};

// Functions whose results never leave [-1, 1], whatever their tolerance.
bool bounded_by_one(const std::string& name) {
  return name == "sin" || name == "cos" || name == "tanh" || name == "erf";
}

struct worst_case {
  double ulp = 0;
  double at = 0;
  void add(double error, double x) {
    if (error > ulp) {
      ulp = error;
      at = x;
    }
  }
};

// A stride through all f32 patterns, signs, denormals, infinities and NaN included, denser for this machine's own code.
TEST_P(emit_math, f32_functions_stay_within_their_bounds_over_all_magnitudes) {
  constexpr uint32_t chunk = 1u << 14;
  const uint32_t stride = *GetParam().cpu == 0 ? 256 : 1024;
  const auto offset = static_cast<uint32_t>(seed() * 7 % stride);
  const unsigned lanes = lanes_of(dtype::f32);
  for (const auto& f : functions) {
    const auto run = probe_->compile(f.name, dtype::f32, lanes);
    const bool circular = std::string(f.name) == "sin" || std::string(f.name) == "cos";
    worst_case worst, beyond;
    const bool limited = bounded_by_one(f.name);
    std::vector<float> in(chunk), out(chunk);
    for (uint64_t base = 0; base < uint64_t{1} << 32; base += uint64_t{chunk} * stride) {
      for (uint32_t i = 0; i < chunk; ++i)
        in[i] = std::bit_cast<float>(static_cast<uint32_t>(base + uint64_t{i} * stride + offset));
      run(out.data(), in.data(), in.data(), in.data(), chunk);
      for (float y : out) ASSERT_FALSE(limited && std::fabs(y) > 1) << f.name << " gave " << std::hexfloat << y;
      for (uint32_t i = 0; i < chunk; i += circular ? 3 : 1) {
        const double error = ulp_error(out[i], f.reference64(in[i]));
        (circular && std::fabs(in[i]) > 65536 ? beyond : worst).add(error, in[i]);
      }
    }
    std::printf("f32 %-6s %-9s largest error %.3f ulp at %a", f.name, GetParam().name, worst.ulp, worst.at);
    if (circular) std::printf("; beyond 2^16: %.3f ulp", beyond.ulp);
    std::printf("\n");
    EXPECT_LE(worst.ulp, f.bound) << f.name << " at " << std::hexfloat << worst.at;
    EXPECT_LE(beyond.ulp, f.bound) << f.name << " at " << std::hexfloat << beyond.at;
  }
}

// Random f64 patterns over all exponents and over the range where the function does something, against 64-bit
// significands.
TEST_P(emit_math, f64_functions_stay_within_their_bounds) {
  const unsigned lanes = lanes_of(dtype::f64);
  splitmix random{seed()};
  constexpr size_t count = 1 << 16;
  std::vector<double> in;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t r = random();
    const double unit = static_cast<double>(r >> 11) * 0x1p-53;
    const double sign = (r & 1) ? -1 : 1;
    switch (i % 8) {
    case 0: in.push_back(std::bit_cast<double>(r)); break;
    case 1: in.push_back(sign * unit * 750); break;
    case 2: in.push_back(sign * unit); break;
    case 3: in.push_back(sign * unit * 8); break;
    case 4: in.push_back(1 + sign * unit * 0.5); break;
    case 5: in.push_back(sign * std::ldexp(1 + unit, static_cast<int>(random() % 40) - 20)); break;
    case 6: in.push_back(sign * std::ldexp(unit, -1020 - static_cast<int>(random() % 55))); break;
    default: // next to multiples of pi/2
      in.push_back(static_cast<double>((random() % 41000)) * 1.5707963267948966 *
                   (1 + static_cast<double>(random() % 8) * 0x1p-52));
    }
  }
  for (const auto& f : functions) {
    const auto out = apply<double>(probe_->compile(f.name, dtype::f64, lanes), lanes, in);
    worst_case worst;
    const bool limited = bounded_by_one(f.name);
    for (double y : out) ASSERT_FALSE(limited && std::fabs(y) > 1) << f.name << " gave " << std::hexfloat << y;
    for (size_t i = 0; i < count; ++i) worst.add(ulp_error(out[i], f.reference(in[i])), in[i]);
    std::printf("f64 %-6s %-9s largest error %.3f ulp at %a\n", f.name, GetParam().name, worst.ulp, worst.at);
    EXPECT_LE(worst.ulp, f.bound) << f.name << " at " << std::hexfloat << worst.at;
  }
}

// The vector width changes nothing, and the special values give the same in a vector with ordinary lanes beside them.
TEST_P(emit_math, every_width_gives_the_same_bits) {
  const auto check = [&]<class T, class Bits>(dtype type, T, Bits) {
    std::vector<T> in{T(0),
                      T(-0.0),
                      T(1),
                      T(-1),
                      T(0.5),
                      T(1e-30),
                      T(3.7),
                      T(-88.5),
                      T(70000.5),
                      T(-1e9),
                      T(1e30),
                      std::numeric_limits<T>::infinity(),
                      -std::numeric_limits<T>::infinity(),
                      std::numeric_limits<T>::quiet_NaN(),
                      std::numeric_limits<T>::denorm_min(),
                      -std::numeric_limits<T>::denorm_min(),
                      std::numeric_limits<T>::max(),
                      std::numeric_limits<T>::min()};
    splitmix random{seed()};
    for (int i = 0; i < 500; ++i) in.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
    for (const auto& f : functions) {
      const auto scalar = apply<T>(probe_->compile(f.name, type, 0), 0, in);
      for (unsigned lanes : widths(type)) {
        const auto out = apply<T>(probe_->compile(f.name, type, lanes), lanes, in);
        for (size_t i = 0; i < in.size(); ++i)
          ASSERT_TRUE(std::bit_cast<Bits>(out[i]) == std::bit_cast<Bits>(scalar[i]) ||
                      (std::isnan(out[i]) && std::isnan(scalar[i])))
              << f.name << " of " << std::hexfloat << in[i] << ", " << lanes << " lanes";
      }
    }
  };
  check(dtype::f32, float{}, uint32_t{});
  check(dtype::f64, double{}, uint64_t{});
}

TEST_P(emit_math, signs_of_zero_and_exact_results) {
  std::map<std::pair<std::string, dtype>, emit::probe::function> compiled;
  const auto scalar = [&](const char* name, dtype type) {
    auto& f = compiled[{name, type}];
    return f ? f : f = probe_->compile(name, type, 0);
  };
  const auto at = [&](const char* name, double x) {
    const double wide = apply<double>(scalar(name, dtype::f64), 0, std::vector<double>{x})[0];
    const float narrow = apply<float>(scalar(name, dtype::f32), 0, std::vector<float>{static_cast<float>(x)})[0];
    EXPECT_EQ(static_cast<float>(wide), narrow) << name << " of " << x;
    EXPECT_EQ(std::signbit(wide), std::signbit(narrow)) << name << " of " << x;
    return wide;
  };
  for (const char* odd : {"sin", "tanh", "erf", "sqrt"}) EXPECT_TRUE(std::signbit(at(odd, -0.0))) << odd;
  EXPECT_EQ(at("exp", 0), 1);
  EXPECT_EQ(at("cos", 0), 1);
  EXPECT_FALSE(std::signbit(at("log", 1)));
  EXPECT_EQ(at("rsqrt", -0.0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(at("tanh", 40), 1);
  EXPECT_EQ(at("erf", -40), -1);
  for (int n = -149; n < 128; ++n) {
    EXPECT_EQ(at("log2", std::ldexp(1.0, n)), n);
    EXPECT_EQ(at("exp2", n), std::ldexp(1.0, n));
  }
}

// Payne-Hanek reduction where cancellation is worst, and at the ends of its range.
TEST_P(emit_math, huge_arguments_are_reduced_exactly) {
  std::vector<double> in{6381956970095103.0 * 0x1p797,
                         5.319372648326541e255,
                         1.7976931348623157e308,
                         65536.0,
                         65537.0,
                         0x1.0000000000001p16,
                         0x1p53,
                         0x1p120,
                         0x1p1023,
                         1e22,
                         39794.0,
                         2.0e5,
                         -3.0e5};
  splitmix random{seed()};
  for (int i = 0; i < 4000; ++i)
    in.push_back(std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52, 16 + static_cast<int>(random() % 1008)));
  const unsigned lanes = lanes_of(dtype::f64);
  for (const char* name : {"sin", "cos"}) {
    const auto out = apply<double>(probe_->compile(name, dtype::f64, lanes), lanes, in);
    for (size_t i = 0; i < in.size(); ++i) {
      const real exact = name[0] == 's' ? std::sin(static_cast<real>(in[i])) : std::cos(static_cast<real>(in[i]));
      EXPECT_LE(ulp_error(out[i], exact), 2) << name << " of " << std::hexfloat << in[i];
    }
  }
}

TEST_P(emit_math, rounding_to_integers_matches_the_library) {
  const auto check = [&]<class T, class Bits>(dtype type, T, Bits) {
    struct pair {
      const char* name;
      T (*reference)(T);
    };
    const pair all[] = {{"floor", [](T x) { return std::floor(x); }},
                        {"ceil", [](T x) { return std::ceil(x); }},
                        {"trunc", [](T x) { return std::trunc(x); }},
                        {"round", [](T x) { return std::round(x); }},
                        {"round_even", [](T x) { return std::nearbyint(x); }}};
    std::vector<T> in{std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                      std::numeric_limits<T>::quiet_NaN()};
    for (int i = -40; i <= 40; ++i)
      for (T d : {T(0), T(0.25), T(0.5), T(0.75)}) {
        const T x = T(i) + d;
        for (T y : {x, std::nextafter(x, T(1e9)), std::nextafter(x, T(-1e9)), T(-x)}) in.push_back(y);
      }
    const int digits = std::numeric_limits<T>::digits;
    for (int p = digits - 4; p <= digits + 1; ++p)
      for (int d = -8; d <= 8; ++d) in.push_back(std::ldexp(T(1), p) + T(d) / 4), in.push_back(-in.back());
    splitmix random{seed()};
    for (int i = 0; i < 20000; ++i) in.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
    for (const auto& f : all)
      for (unsigned lanes : widths(type)) {
        const auto out = apply<T>(probe_->compile(f.name, type, lanes), lanes, in);
        for (size_t i = 0; i < in.size(); ++i)
          ASSERT_TRUE(std::isnan(in[i]) ? std::isnan(out[i])
                                        : std::bit_cast<Bits>(out[i]) == std::bit_cast<Bits>(f.reference(in[i])))
              << f.name << " of " << in[i];
      }
  };
  check(dtype::f32, float{}, uint32_t{});
  check(dtype::f64, double{}, uint64_t{});
}

TEST_P(emit_math, fma_rounds_once) {
  const auto check = [&]<class T, class Bits>(dtype type, T, Bits) {
    std::vector<T> a, b, c;
    const T special[] = {T(0),
                         T(-0.0),
                         T(1),
                         T(-1),
                         std::numeric_limits<T>::infinity(),
                         -std::numeric_limits<T>::infinity(),
                         std::numeric_limits<T>::quiet_NaN(),
                         std::numeric_limits<T>::denorm_min(),
                         std::numeric_limits<T>::max(),
                         -std::numeric_limits<T>::max(),
                         std::numeric_limits<T>::min(),
                         -std::numeric_limits<T>::denorm_min(),
                         std::numeric_limits<T>::epsilon() / 2};
    for (T x : special)
      for (T y : special)
        for (T z : special) a.push_back(x), b.push_back(y), c.push_back(z);
    splitmix random{seed()};
    constexpr int digits = std::numeric_limits<T>::digits, span = std::numeric_limits<T>::max_exponent;
    const auto number = [&](int spread) {
      const T unit =
          std::bit_cast<T>(static_cast<Bits>((random() & ((Bits{1} << (digits - 1)) - 1)) | std::bit_cast<Bits>(T(1))));
      return std::ldexp((random() & 1) ? unit : -unit, static_cast<int>(random() % (2 * spread)) - spread);
    };
    for (int i = 0; i < 100000; ++i) {
      const int kind = i % 4;
      a.push_back(number(kind == 0 ? span - 2 : 4)), b.push_back(number(kind == 0 ? span - 2 : 4));
      const T product = a.back() * b.back();
      if (kind == 0) c.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
      else if (kind == 1) c.push_back(number(digits + 10));
      else if (kind == 2) c.push_back(-product); // what the product lost
      else c.push_back(std::ldexp(product, digits * ((random() & 1) ? 1 : -1)) * T(random() % 3 + 1)); // ties
      if (kind == 3 && i % 8 == 3) { // denormal results
        const int down = std::numeric_limits<T>::min_exponent - static_cast<int>(random() % digits);
        a.back() = std::ldexp(a.back(), down / 2), b.back() = std::ldexp(b.back(), down - down / 2);
        c.back() = std::ldexp(c.back(), down);
      }
    }
    for (unsigned lanes : widths(type)) {
      const auto out = apply<T>(probe_->compile("fma", type, lanes), lanes, a, b, c);
      for (size_t i = 0; i < a.size(); ++i) {
        const T exact = std::fma(a[i], b[i], c[i]);
        ASSERT_TRUE(std::isnan(exact) ? std::isnan(out[i]) : std::bit_cast<Bits>(out[i]) == std::bit_cast<Bits>(exact))
            << std::hexfloat << a[i] << " * " << b[i] << " + " << c[i] << " gave " << out[i] << " not " << exact;
      }
    }
  };
  check(dtype::f32, float{}, uint32_t{});
  check(dtype::f64, double{}, uint64_t{});
}

INSTANTIATE_TEST_SUITE_P(paths, emit_math, testing::ValuesIn(paths()), path_name);

// GPU code of every helper is arithmetic too: no call to a function that the module does not define.
TEST(emit_math_gpu, no_calls_to_libraries) {
  for (const auto& f : functions)
    for (dtype type : {dtype::f32, dtype::f64}) {
      const std::string ptx = emit::probe::gpu_assembly(f.name, type, "nvptx64-nvidia-cuda", "sm_80");
      EXPECT_NE(ptx.find("probe("), std::string::npos) << f.name;
      EXPECT_EQ(ptx.find(".extern"), std::string::npos) << f.name << ptx;
      // What the module itself defines is reached relative to the program counter, everything else through the table.
      const std::string isa = emit::probe::gpu_assembly(f.name, type, "amdgcn-amd-amdhsa", "gfx942");
      EXPECT_NE(isa.find("probe:"), std::string::npos) << f.name;
      EXPECT_EQ(isa.find("@gotpcrel"), std::string::npos) << f.name << isa;
    }
}

} // namespace
} // namespace kiln::test
