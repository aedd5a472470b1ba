// The compile engine on the host target: compile and call, libcalls, errors, caching, removal.
#include "jit/engine.hpp"
#include "temporary_directory.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <execinfo.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace kiln::jit;
using kiln::compile_error;

request host_request(std::string symbol, std::string ir, std::string key = "k") {
  request r;
  r.target = kiln::targets::host;
  r.symbol = std::move(symbol);
  r.key = std::move(key);
  r.build = from_ir_text(std::move(ir));
  return r;
}

std::string message_of(engine& e, const request& r) {
  try {
    (void)e.compile(r);
  } catch (const std::exception& x) { return x.what(); }
  return "(compiled)";
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::size_t mapped_bytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t pages = 0;
  in >> pages;
  return pages * 4096;
}

const char* const twice = "define i32 @twice(i32 %x) { %y = add i32 %x, %x ret i32 %y }";

TEST(engine_host, compiles_and_calls) {
  engine e;
  const compiled c = e.compile(host_request("twice", twice));
  ASSERT_NE(c.address(), nullptr);
  EXPECT_EQ(c.as<int(int)>()(21), 42);
  EXPECT_EQ(c.kind(), image_kind::host_object);
  EXPECT_EQ(c.image().substr(0, 4), "\x7f"
                                    "ELF");
  EXPECT_TRUE(c.entry().starts_with("twice."));
  EXPECT_FALSE(c.from_cache());
  EXPECT_GT(c.times().codegen, 0);
  EXPECT_GT(c.times().link, 0);
  EXPECT_EQ(e.stats().compiles, 1u);
  EXPECT_EQ(e.compile(host_request("twice", twice)).address(), c.address());
  EXPECT_EQ(e.stats().compiles, 1u);
}

TEST(engine_host, specialisations_of_one_name_live_side_by_side) {
  engine e;
  std::vector<compiled> all;
  for (int i = 0; i < 5; ++i) {
    const std::string n = std::to_string(i);
    // A helper and a global of the same name in each: they must not meet.
    all.push_back(
        e.compile(host_request("f",
                               "@g = global i32 " + n +
                                   "\ndefine i32 @helper() noinline { %v = load volatile i32, ptr @g ret i32 %v }\n"
                                   "define i32 @f() { %v = call i32 @helper() ret i32 %v }",
                               n)));
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].as<int()>()(), i);
}

TEST(engine_host, functions_carry_cpu_features_and_vector_width) {
  engine e;
  const std::string ir = e.emit(host_request("twice", twice), emit_kind::ir);
  EXPECT_TRUE(contains(ir, "\"target-cpu\"=\"" + e.cpu().name + "\"")) << ir;
  if (!e.cpu().features.empty()) {
    EXPECT_TRUE(contains(ir, "\"target-features\"=\"" + e.cpu().features + "\"")) << ir;
  }
#if defined(__x86_64__)
  EXPECT_TRUE(contains(ir, "\"prefer-vector-width\"=\"" + std::to_string(std::max(e.cpu().vector_bits, 256)) + "\""))
      << ir;
  request narrow = host_request("twice", twice);
  narrow.codegen.vector_width = 128;
  EXPECT_TRUE(contains(e.emit(narrow, emit_kind::ir), "\"prefer-vector-width\"=\"128\""));
#endif
}

TEST(engine_host, cpu_and_features_can_be_overridden) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "names x86-64 CPUs";
#endif
  setenv("KILN_HOST_CPU", "haswell", 1);
  const host_cpu haswell = detect_host_cpu();
  EXPECT_EQ(haswell.name, "haswell");
  EXPECT_EQ(haswell.features, "");
  EXPECT_EQ(haswell.vector_bits, 256);
  EXPECT_TRUE(haswell.has("avx2") && haswell.has("fma") && !haswell.has("avx512f") && !haswell.has("avx2x"));
  setenv("KILN_HOST_FEATURES", "-avx,+adx", 1);
  const host_cpu trimmed = detect_host_cpu();
  EXPECT_TRUE(!trimmed.has("avx") && !trimmed.has("avx2") && trimmed.has("adx"));
  EXPECT_EQ(trimmed.vector_bits, 128);
  EXPECT_TRUE(contains(trimmed.features, "-avx2") && contains(trimmed.features, "+adx")) << trimmed.features;
  setenv("KILN_HOST_CPU", "haswel", 1);
  try {
    (void)detect_host_cpu();
    ADD_FAILURE() << "an unknown CPU was accepted";
  } catch (const std::invalid_argument& x) { EXPECT_TRUE(contains(x.what(), "'haswel'")) << x.what(); }
  unsetenv("KILN_HOST_CPU");
  unsetenv("KILN_HOST_FEATURES");
  const host_cpu native = detect_host_cpu();
  EXPECT_FALSE(native.name.empty());
  EXPECT_TRUE(native.has("sse2"));
}

TEST(engine_host, emits_every_stage) {
  engine e;
  const request r = host_request(
      "f", "define i32 @f(i32 %x) { %p = alloca i32 store i32 %x, ptr %p %v = load i32, ptr %p ret i32 %v }");
  EXPECT_TRUE(contains(e.emit(r, emit_kind::ir_before), "alloca"));
  const std::string after = e.emit(r, emit_kind::ir);
  EXPECT_FALSE(contains(after, "alloca"));
  EXPECT_TRUE(contains(after, "@f(")); // its own name, not a made-up one
  EXPECT_TRUE(contains(e.emit(r, emit_kind::assembly), "f:"));
  EXPECT_EQ(e.emit(r, emit_kind::object).substr(1, 3), "ELF");
  EXPECT_EQ(e.stats().live, 0u);
  EXPECT_EQ(parse_emit_kind("ir-before"), emit_kind::ir_before);
  EXPECT_EQ(parse_emit_kind("asm"), emit_kind::assembly);
  EXPECT_THROW((void)parse_emit_kind("ptx"), std::invalid_argument);
}

TEST(engine_host, custom_pipelines_run_and_wrong_ones_are_reported) {
  engine e;
  request r = host_request(
      "f", "define i32 @f(i32 %x) { %p = alloca i32 store i32 %x, ptr %p %v = load i32, ptr %p ret i32 %v }");
  r.codegen.passes = "none";
  EXPECT_TRUE(contains(e.emit(r, emit_kind::ir), "alloca"));
  r.codegen.passes = "function(mem2reg)";
  EXPECT_FALSE(contains(e.emit(r, emit_kind::ir), "alloca"));
  r.codegen.passes = "function(no-such-pass)";
  const std::string text = message_of(e, r);
  EXPECT_TRUE(contains(text, "kernel 'f' for host: passes") && contains(text, "no-such-pass")) << text;
  r.codegen.passes = "";
  r.codegen.level = 4;
  EXPECT_TRUE(contains(message_of(e, r), "level 4"));
}

TEST(engine_host, undefined_library_calls_are_refused_by_name) {
  engine e;
  const std::string text = message_of(
      e, host_request("f", "declare float @llvm.exp.f32(float)\n"
                           "define float @f(float %x) { %y = call float @llvm.exp.f32(float %x) ret float %y }"));
  EXPECT_TRUE(contains(text, "kernel 'f' for host: linking") && contains(text, "'expf'")) << text;
  const std::string own =
      message_of(e, host_request("g", "declare i32 @system(ptr)\n"
                                      "define i32 @g() { %y = call i32 @system(ptr null) ret i32 %y }"));
  EXPECT_TRUE(contains(own, "'system'")) << own;
}

TEST(engine_host, exact_library_calls_work) {
  engine e;
  const auto rem =
      e.compile(host_request("f", "define float @f(float %a, float %b) { %y = frem float %a, %b ret float %y }"));
  EXPECT_EQ(rem.as<float(float, float)>()(7.5f, 2.0f), 1.5f);
  const auto div = e.compile(host_request(
      "d", "define i64 @d(i64 %a, i64 %b) { %x = zext i64 %a to i128 %s = shl i128 %x, 64 %y = zext i64 %b to i128 "
           "%q = udiv i128 %s, %y %r = trunc i128 %q to i64 ret i64 %r }"));
  EXPECT_EQ(div.as<std::uint64_t(std::uint64_t, std::uint64_t)>()(1, 3), 0x5555555555555555u);
  const auto copy = e.compile(host_request("c", "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
                                                "define void @c(ptr %d, ptr %s, i64 %n) { call void "
                                                "@llvm.memcpy.p0.p0.i64(ptr %d, ptr %s, i64 %n, i1 false) ret void }"));
  std::string from(1000, 'x'), to(1000, ' ');
  copy.as<void(char*, const char*, std::size_t)>()(to.data(), from.data(), from.size());
  EXPECT_EQ(to, from);
}

// On a CPU without the instructions, the conversions are our own functions: compare them with a second way to round.
TEST(engine_host, narrow_float_conversions_are_exact) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "names an x86-64 CPU";
#endif
  setenv("KILN_HOST_CPU", "x86-64", 1);
  engine e;
  unsetenv("KILN_HOST_CPU");
  const auto define = [&](const char* name, const char* from, const char* to) {
    const std::string n = name;
    return e.compile(host_request(n, "define i16 @" + n + "(" + from + " %x) { %y = fptrunc " + from + " %x to " + to +
                                         " %z = bitcast " + to + " %y to i16 ret i16 %z }"));
  };
  auto* f32_f16 = define("a", "float", "half").as<std::uint16_t(float)>();
  auto* f64_f16 = define("b", "double", "half").as<std::uint16_t(double)>();
  auto* f32_bf16 = define("c", "float", "bfloat").as<std::uint16_t(float)>();
  auto* f64_bf16 = define("d", "double", "bfloat").as<std::uint16_t(double)>();
  auto* f16_f32 =
      e
          .compile(host_request(
              "w", "define float @w(i16 %x) { %h = bitcast i16 %x to half %y = fpext half %h to float ret float %y }"))
          .as<float(std::uint16_t)>();
  // Every finite f16 and the points around the middle between neighbours.
  for (std::uint32_t h = 0; h < 0x7c00; ++h) {
    const double v = std::ldexp(h < 0x400 ? h : 0x400 + (h & 0x3ff), h < 0x400 ? -24 : static_cast<int>(h >> 10) - 25);
    ASSERT_EQ(f16_f32(static_cast<std::uint16_t>(h)), v) << h;
    ASSERT_EQ(f16_f32(static_cast<std::uint16_t>(h | 0x8000)), -v) << h;
    ASSERT_EQ(f32_f16(static_cast<float>(v)), h);
    ASSERT_EQ(f64_f16(-v), h | 0x8000);
    const double step = std::ldexp(1.0, h < 0x400 ? -24 : static_cast<int>(h >> 10) - 25), mid = v + step / 2;
    const std::uint32_t even = h + (h & 1);
    ASSERT_EQ(f32_f16(static_cast<float>(mid)), even) << h;
    ASSERT_EQ(f64_f16(mid), even) << h;
    ASSERT_EQ(f64_f16(std::nextafter(mid, 0.0)), h) << h; // double rounding would give `even`
    ASSERT_EQ(f64_f16(std::nextafter(mid, 1e9)), h + 1) << h;
  }
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(f32_f16(inf), 0x7c00);
  EXPECT_EQ(f32_f16(1e9f), 0x7c00);
  EXPECT_EQ(f64_f16(-1e300), 0xfc00);
  EXPECT_GT(f32_f16(nan) & 0x7fff, 0x7c00);
  EXPECT_GT(f64_f16(static_cast<double>(nan)) & 0x7fff, 0x7c00);
  EXPECT_TRUE(std::isnan(f16_f32(0x7c01)));
  for (std::uint32_t b = 0; b < 0x7f80; b += 3) {
    const float v = std::bit_cast<float>(b << 16);
    const std::uint32_t even = b + (b & 1);
    const float mid = std::bit_cast<float>(b << 16 | 0x8000u);
    ASSERT_EQ(f32_bf16(v), b);
    ASSERT_EQ(f32_bf16(mid), even) << b;
    ASSERT_EQ(f32_bf16(std::bit_cast<float>(b << 16 | 0x8001u)), b + 1) << b;
    ASSERT_EQ(f64_bf16(mid), even) << b;
    ASSERT_EQ(f64_bf16(std::nextafter(static_cast<double>(mid), 0.0)), b) << b;
  }
  EXPECT_EQ(f64_bf16(1e300), 0x7f80);
  EXPECT_GT(f32_bf16(nan) & 0x7fff, 0x7f80);
}

TEST(engine_host, multiplication_and_addition_stay_apart_unless_asked) {
  engine e;
  const auto body = [](const char* flag) {
    return "define float @f(float %a, float %b, float %c) { %m = fmul " + std::string(flag) +
           " float %a, %b %s = fadd " + flag + " float %m, %c ret float %s }";
  };
  const float a = 1 + 0x1p-12f, c = -1 - 0x1p-11f;
  EXPECT_EQ(e.compile(host_request("f", body(""), "plain")).as<float(float, float, float)>()(a, a, c), 0.0f);
  if (e.cpu().has("fma")) {
    EXPECT_EQ(e.compile(host_request("f", body("contract"), "fused")).as<float(float, float, float)>()(a, a, c),
              0x1p-24f);
  }
}

int answer() { return 42; }
int deepest_backtrace = 0;
[[gnu::noinline]] void measure_backtrace() {
  void* frames[64];
  deepest_backtrace = backtrace(frames, 64);
}

TEST(engine_host, runtime_callbacks) {
  engine e({.symbols = {{"kiln_answer", reinterpret_cast<void*>(&answer)}}});
  const char* const ir = "declare i32 @kiln_answer()\ndefine i32 @f() { %x = call i32 @kiln_answer() ret i32 %x }";
  EXPECT_EQ(e.compile(host_request("f", ir)).as<int()>()(), 42);
  e.define({{"kiln_later", reinterpret_cast<void*>(&answer)}});
  EXPECT_EQ(e.compile(host_request(
                          "g", "declare i32 @kiln_later()\ndefine i32 @g() { %x = call i32 @kiln_later() ret i32 %x }"))
                .as<int()>()(),
            42);
  EXPECT_THROW(e.define({{"kiln_later", reinterpret_cast<void*>(&answer)}}), std::invalid_argument);
  EXPECT_THROW(e.define({{"kiln_null", nullptr}}), std::invalid_argument);
}

TEST(engine_host, backtraces_pass_through_kernels) {
  engine e({.symbols = {{"kiln_trace", reinterpret_cast<void*>(&measure_backtrace)}}});
  const auto c = e.compile(
      host_request("f", "declare void @kiln_trace()\n"
                        "define void @f() { %a = alloca [100 x i64] call void @use(ptr %a) call void @kiln_trace() "
                        "call void @use(ptr %a) ret void }\n"
                        "define internal void @use(ptr %a) noinline { store volatile i64 1, ptr %a ret void }"));
  measure_backtrace();
  const int outside = deepest_backtrace;
  c.as<void()>()();
  EXPECT_EQ(deepest_backtrace, outside + 1); // the kernel's frame, and everything above it
}

// With a line of source in it, as the lowering writes it for the user's own file.
const char* const with_lines = R"(
define i32 @twice(i32 %x) !dbg !3 {
  %y = add i32 %x, %x, !dbg !6
  ret i32 %y, !dbg !6
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus_14, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "user.cpp", directory: "/src")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = distinct !DISubprogram(name: "twice", scope: !1, file: !1, line: 7, type: !4, unit: !0, spFlags: DISPFlagDefinition)
!4 = !DISubroutineType(types: !5)
!5 = !{}
!6 = !DILocation(line: 8, scope: !3)
)";

TEST(engine_host, debuggers_learn_of_kernels_with_lines_until_they_are_removed) {
  engine e;
  const compiled plain = e.compile(host_request("plain", "define i32 @plain() { ret i32 0 }"));
  EXPECT_EQ(e.stats().debug_objects, 0u);
  const compiled c = e.compile(host_request("twice", with_lines));
  EXPECT_EQ(c.as<int(int)>()(3), 6);
  EXPECT_EQ(e.stats().debug_objects, 1u);
  e.remove(c);
  EXPECT_EQ(e.stats().debug_objects, 0u);
  engine silent({.debugger = false});
  (void)silent.compile(host_request("twice", with_lines));
  EXPECT_EQ(silent.stats().debug_objects, 0u);
}

TEST(engine_host, perf_learns_of_kernels_when_asked) {
  const kiln::test::temporary_directory dir;
  setenv("JITDUMPDIR", dir.path().c_str(), 1);
  {
    engine e({.perf = true});
    EXPECT_EQ(e.compile(host_request("twice", with_lines)).as<int(int)>()(3), 6);
  }
  unsetenv("JITDUMPDIR");
  std::string dump;
  for (const auto& f : std::filesystem::recursive_directory_iterator(dir.path()))
    if (f.path().extension() == ".dump") {
      std::ifstream in(f.path(), std::ios::binary);
      dump.assign(std::istreambuf_iterator<char>(in), {});
    }
  EXPECT_TRUE(contains(dump, "twice.")) << "no jitdump names the kernel";
}

TEST(engine_host, cached_images_are_adopted_without_building) {
  std::string image;
  {
    engine e;
    request r = host_request("twice", twice);
    int stored = 0;
    r.store = [&](const compiled& c) {
      ++stored;
      image = c.image();
    };
    (void)e.compile(r);
    (void)e.compile(r);
    EXPECT_EQ(stored, 1);
  }
  engine e;
  request r = host_request("twice", twice);
  r.build = [](module_builder&) { FAIL() << "built although there is an image"; };
  r.store = [](const compiled&) { FAIL() << "a cached image was stored again"; };
  const compiled c = e.adopt(r, {image, image_kind::host_object});
  EXPECT_EQ(c.as<int(int)>()(4), 8);
  EXPECT_TRUE(c.from_cache());
  EXPECT_EQ(c.image(), image);
  EXPECT_EQ(e.stats().builds, 0u);
  EXPECT_EQ(e.stats().compiles, 0u);
  EXPECT_EQ(e.stats().adopted, 1u);

  // An image of another kernel, and one that is no image, are errors, and the key stays usable.
  engine other;
  EXPECT_THROW((void)other.adopt(host_request("f", twice, "k2"), {image, image_kind::host_object}), compile_error);
  EXPECT_THROW((void)other.adopt(host_request("twice", twice), {"not an object", image_kind::host_object}),
               compile_error);
  EXPECT_EQ(other.compile(host_request("twice", twice)).as<int(int)>()(1), 2);
  EXPECT_EQ(other.stats().live, 1u);
}

TEST(engine_host, errors_name_the_kernel_and_leave_the_key_usable) {
  engine e;
  request r = host_request("f", "define i32 @g() { ret i32 0 }");
  EXPECT_TRUE(contains(message_of(e, r), "did not define the entry function 'f'"));
  r.build = from_ir_text("define i32 @f() { ret i32 oops }");
  EXPECT_TRUE(contains(message_of(e, r), "expected value token")) << message_of(e, r);
  r.build = from_ir_text("define internal i32 @f() { ret i32 0 }");
  EXPECT_TRUE(contains(message_of(e, r), "not external"));
  r.build = from_ir_text(
      "define i32 @f(i1 %c) { br i1 %c, label %a, label %b a: %y = add i32 1, 2 br label %b b: ret i32 %y }");
  const std::string broken = message_of(e, r);
  EXPECT_TRUE(contains(broken, "kernel 'f' for host: checking IR") && contains(broken, "dominate")) << broken;
  struct own_error : std::runtime_error {
    using runtime_error::runtime_error;
  };
  r.build = [](module_builder&) { throw own_error("no such op"); };
  EXPECT_THROW((void)e.compile(r), own_error);
  r.build = nullptr;
  EXPECT_TRUE(contains(message_of(e, r), "no builder"));
  r.build = from_ir_text("define i32 @f() { ret i32 5 }");
  EXPECT_EQ(e.compile(r).as<int()>()(), 5);
  EXPECT_EQ(e.stats().live, 1u);
  r.symbol = "";
  EXPECT_THROW((void)e.compile(r), std::invalid_argument);
}

TEST(engine_host, a_builder_may_compile_another_kernel) {
  engine e;
  request r = host_request("f", "");
  r.build = [&](module_builder& b) {
    EXPECT_EQ(e.compile(host_request("twice", twice)).as<int(int)>()(3), 6);
    from_ir_text("define i32 @f() { ret i32 7 }")(b);
  };
  EXPECT_EQ(e.compile(r).as<int()>()(), 7);
}

TEST(engine_host, a_builder_that_asks_for_its_own_kernel_is_an_error) {
  engine e;
  request r = host_request("f", "");
  r.build = [&](module_builder&) { (void)e.compile(r); };
  EXPECT_TRUE(contains(message_of(e, r), "'f': its builder asks for the kernel itself"));
}

TEST(engine_host, removal_frees_the_code) {
  engine e;
  std::string image;
  {
    const compiled first = e.compile(host_request("twice", twice));
    image = first.image();
    e.remove(first);
    EXPECT_EQ(e.stats().live, 0u);
    e.remove(first); // a second time is harmless
    const compiled again = e.compile(host_request("twice", twice));
    EXPECT_EQ(again.as<int(int)>()(2), 4);
    EXPECT_EQ(e.stats().compiles, 2u);
    e.remove(first); // an old handle does not touch the new code
    EXPECT_EQ(e.stats().live, 1u);
    e.remove(again);
  }
  const auto cycle = [&](int n) {
    for (int i = 0; i < n; ++i) e.remove(e.adopt(host_request("twice", twice), {image, image_kind::host_object}));
  };
  cycle(50);
  const std::size_t before = mapped_bytes();
  cycle(500);
  EXPECT_LT(mapped_bytes(), before + 500 * 4096); // each linked object takes at least a page
}

TEST(engine_host, two_engines_coexist) {
  engine a, b;
  const auto of = [](int v) { return "define i32 @f() { ret i32 " + std::to_string(v) + " }"; };
  const auto fa = a.compile(host_request("f", of(1)));
  const auto fb = b.compile(host_request("f", of(2)));
  EXPECT_EQ(fa.as<int()>()(), 1);
  EXPECT_EQ(fb.as<int()>()(), 2);
  { engine c; }
  EXPECT_EQ(fa.as<int()>()(), 1);
}

} // namespace
