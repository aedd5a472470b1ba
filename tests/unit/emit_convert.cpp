// Conversions of jit/emit against the constexpr bit arithmetic of kiln/dtype, a second implementation: f8, f16 and bf16
// exhaustively, f32 over a dense stride with every tie, integers at all their edges.
#include "emit_support.hpp"

#include <kiln/dtype/float_bits.hpp>

namespace kiln::test {
namespace {

using kiln::detail::convert_bits;
using kiln::detail::float_bits_to_int;
using kiln::detail::float_format;
using kiln::detail::format_of;

constexpr dtype floats[] = {dtype::f8e4m3, dtype::f8e5m2, dtype::f16, dtype::bf16, dtype::f32, dtype::f64};
constexpr dtype integers[] = {dtype::i8, dtype::i16, dtype::i32, dtype::i64,
                              dtype::u8, dtype::u16, dtype::u32, dtype::u64};

class emit_convert : public each_path {
protected:
  // Runs a conversion over patterns held in u64, whatever the types.
  std::vector<uint64_t> run(dtype from, dtype to, unsigned lanes, const std::vector<uint64_t>& in) {
    const size_t step = lanes == 0 ? 1 : lanes, n = (in.size() + step - 1) / step * step;
    const size_t from_bytes = bytes_of(from), to_bytes = bytes_of(to);
    std::vector<unsigned char> a(n * from_bytes), out(n * to_bytes);
    for (size_t i = 0; i < in.size(); ++i) std::memcpy(&a[i * from_bytes], &in[i], from_bytes);
    probe_->compile_conversion(from, to, lanes)(out.data(), a.data(), a.data(), a.data(), n);
    std::vector<uint64_t> result(in.size());
    for (size_t i = 0; i < in.size(); ++i) std::memcpy(&result[i], &out[i * to_bytes], to_bytes);
    return result;
  }
  unsigned natural(dtype from, dtype to) const { return std::min(lanes_of(from), lanes_of(to)) * 2; }
};

uint64_t mask_of(dtype t) { return bits_of(t) == 64 ? ~uint64_t{0} : (uint64_t{1} << bits_of(t)) - 1; }

// Patterns of a float type: all of them up to 16 bits, else every class and the neighbourhoods of everything that
// narrower formats round at.
std::vector<uint64_t> patterns(dtype t, uint64_t extra) {
  std::vector<uint64_t> in;
  if (bits_of(t) <= 16) {
    for (uint64_t i = 0; i <= mask_of(t); ++i) in.push_back(i);
    return in;
  }
  const float_format f = format_of(t);
  // Every 16-bit pattern as a number, with the half-way points above it and what lies beside them.
  for (dtype narrow : {dtype::f16, dtype::bf16, dtype::f8e4m3, dtype::f8e5m2}) {
    const uint64_t step = bits_of(narrow) == 16 ? 7 : 1;
    for (uint64_t i = 0; i <= mask_of(narrow); i += step) {
      const uint64_t lower = convert_bits(format_of(narrow), f, i), upper = convert_bits(format_of(narrow), f, i + 1);
      const uint64_t middle = lower / 2 + upper / 2 + (lower & upper & 1);
      for (uint64_t x : {lower, middle - 1, middle, middle + 1}) in.push_back(x);
    }
  }
  for (int width = 1; width <= 64; ++width) // the ends of the integer types
    for (int64_t d = -3; d <= 3; ++d) {
      const uint64_t x = kiln::detail::encode(f, std::ldexp(1.0, width)) + d;
      in.push_back(x), in.push_back(x | f.sign_bit());
    }
  splitmix random{seed()};
  for (uint64_t i = 0; i < extra; ++i) in.push_back(random() & mask_of(t));
  return in;
}

bool equal_floats(dtype t, uint64_t got, uint64_t expected, bool payload) {
  const float_format f = format_of(t);
  if (!payload && f.is_nan(got) && f.is_nan(expected)) return (got & f.sign_bit()) == (expected & f.sign_bit());
  return got == expected;
}

TEST_P(emit_convert, float_to_float) {
  for (dtype from : floats) {
    const auto in = patterns(from, 50000);
    for (dtype to : floats) {
      if (from == to) continue;
      const bool narrows = bits_of(to) < bits_of(from); // NaN payloads are promised for narrowing
      for (unsigned lanes : {0u, natural(from, to), 3u}) {
        const auto out = run(from, to, lanes, in);
        for (size_t i = 0; i < in.size(); ++i) {
          const uint64_t expected = convert_bits(format_of(from), format_of(to), in[i]);
          ASSERT_TRUE(equal_floats(to, out[i], expected, narrows))
              << name_of(from) << " to " << name_of(to) << ": " << std::hex << in[i] << " gave " << out[i] << " not "
              << expected << ", lanes " << lanes;
        }
      }
    }
  }
}

// f32 to the 16-bit and 8-bit formats: every 1021st of all 2^32 patterns (from a random start), and all ties of bf16.
TEST_P(emit_convert, f32_to_narrow_floats_densely) {
  constexpr uint64_t stride = 1021, chunk = 1 << 16;
  for (dtype to : {dtype::bf16, dtype::f16, dtype::f8e4m3, dtype::f8e5m2}) {
    const unsigned lanes = natural(dtype::f32, to);
    const auto f = probe_->compile_conversion(dtype::f32, to, lanes);
    const int bytes = bits_of(to) / 8;
    std::vector<uint32_t> in(chunk);
    std::vector<unsigned char> out(chunk * bytes);
    const auto verify = [&] {
      f(out.data(), in.data(), in.data(), in.data(), chunk);
      for (size_t i = 0; i < chunk; ++i) {
        uint32_t got = 0;
        std::memcpy(&got, &out[i * bytes], bytes);
        const uint64_t expected = convert_bits(format_of(dtype::f32), format_of(to), in[i]);
        ASSERT_EQ(got, expected) << name_of(to) << " from " << std::hex << in[i];
      }
    };
    uint64_t next = seed() % stride;
    while (next < uint64_t{1} << 32) {
      for (auto& x : in) x = static_cast<uint32_t>(std::min<uint64_t>(next, 0xffffffff)), next += stride;
      ASSERT_NO_FATAL_FAILURE(verify());
    }
    for (uint32_t low : {0x7fffu, 0x8000u, 0x8001u, 0x0000u}) {
      for (uint32_t i = 0; i < chunk; ++i) in[i] = i << 16 | low;
      ASSERT_NO_FATAL_FAILURE(verify());
    }
  }
}

TEST_P(emit_convert, float_to_int_saturates) {
  for (dtype from : floats) {
    const auto in = patterns(from, 20000);
    for (dtype to : integers)
      for (unsigned lanes : {0u, natural(from, to), 3u}) {
        const auto out = run(from, to, lanes, in);
        for (size_t i = 0; i < in.size(); ++i) {
          const uint64_t expected = float_bits_to_int(format_of(from), in[i], bits_of(to), is_signed_int(to));
          ASSERT_EQ(out[i], expected) << name_of(from) << " to " << name_of(to) << ": " << std::hex << in[i]
                                      << ", lanes " << lanes;
        }
      }
  }
}

uint64_t int_to_float_bits(dtype from, dtype to, uint64_t bits) {
  const int64_t wide = static_cast<int64_t>(bits << (64 - bits_of(from))) >> (64 - bits_of(from));
  return is_signed_int(from) ? kiln::detail::encode(format_of(to), wide) : kiln::detail::encode(format_of(to), bits);
}

std::vector<uint64_t> integer_patterns(dtype t) {
  std::vector<uint64_t> in;
  if (bits_of(t) <= 16) {
    for (uint64_t i = 0; i <= mask_of(t); ++i) in.push_back(i);
    return in;
  }
  for (int p = 0; p < bits_of(t); ++p) // around powers of two and their half-way points at every precision
    for (int q = 0; q <= p; ++q)
      for (int64_t d = -2; d <= 2; ++d) {
        const uint64_t x = (uint64_t{1} << p) + (uint64_t{1} << q) + static_cast<uint64_t>(d);
        in.push_back(x & mask_of(t)), in.push_back((0 - x) & mask_of(t));
      }
  splitmix random{seed()};
  for (int i = 0; i < 20000; ++i) in.push_back((random() >> (random() % bits_of(t))) & mask_of(t));
  return in;
}

TEST_P(emit_convert, int_to_float_rounds_once) {
  for (dtype from : integers) {
    const auto in = integer_patterns(from);
    for (dtype to : floats)
      for (unsigned lanes : {0u, natural(from, to), 3u}) {
        const auto out = run(from, to, lanes, in);
        for (size_t i = 0; i < in.size(); ++i)
          ASSERT_EQ(out[i], int_to_float_bits(from, to, in[i]))
              << name_of(from) << " to " << name_of(to) << ": " << std::hex << in[i] << ", lanes " << lanes;
      }
  }
}

TEST_P(emit_convert, int_to_int_wraps_and_extends) {
  for (dtype from : integers) {
    const auto in = integer_patterns(from);
    for (dtype to : integers) {
      const auto out = run(from, to, natural(from, to), in);
      for (size_t i = 0; i < in.size(); ++i) {
        const int spare = 64 - bits_of(from);
        const uint64_t wide =
            is_signed_int(from) ? static_cast<uint64_t>(static_cast<int64_t>(in[i] << spare) >> spare) : in[i];
        ASSERT_EQ(out[i], wide & mask_of(to)) << name_of(from) << " to " << name_of(to) << ": " << in[i];
      }
    }
  }
}

TEST_P(emit_convert, booleans) {
  for (dtype t : integers)
    EXPECT_EQ(run(t, dtype::b1, natural(t, dtype::b1), {0, 1, 2, mask_of(t)}), (std::vector<uint64_t>{0, 1, 1, 1}));
  for (dtype t : floats) {
    const float_format f = format_of(t);
    const uint64_t one = kiln::detail::encode(f, 1.0);
    EXPECT_EQ(run(t, dtype::b1, natural(t, dtype::b1), {0, f.sign_bit(), 1, one, f.quiet_nan()}),
              (std::vector<uint64_t>{0, 0, 1, 1, 1}))
        << name_of(t);
    EXPECT_EQ(run(dtype::b1, t, 3, {0, 1, 1}), (std::vector<uint64_t>{0, one, one})) << name_of(t);
  }
  for (dtype t : integers) EXPECT_EQ(run(dtype::b1, t, 16, {0, 1, 0, 1}), (std::vector<uint64_t>{0, 1, 0, 1}));
}

INSTANTIATE_TEST_SUITE_P(paths, emit_convert, testing::ValuesIn(paths()), path_name);

TEST(emit_convert_gpu, every_conversion_is_arithmetic) {
  std::vector<dtype> all{dtype::b1};
  all.insert(all.end(), std::begin(floats), std::end(floats));
  all.insert(all.end(), std::begin(integers), std::end(integers));
  for (dtype from : all)
    for (dtype to : all) {
      const std::string ptx = emit::probe::gpu_conversion_assembly(from, to, "nvptx64-nvidia-cuda", "sm_80");
      ASSERT_EQ(ptx.find(".extern"), std::string::npos) << name_of(from) << " to " << name_of(to);
      const std::string isa = emit::probe::gpu_conversion_assembly(from, to, "amdgcn-amd-amdhsa", "gfx1100");
      ASSERT_EQ(isa.find("@gotpcrel"), std::string::npos) << name_of(from) << " to " << name_of(to);
    }
}

} // namespace
} // namespace kiln::test
