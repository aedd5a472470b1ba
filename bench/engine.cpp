// What the compile engine costs: start, first and later compiles of a small vector kernel, linking, adopting a cached
// image, a hit on disk, a warm look-up. The cold figures are of this process's first calls and are printed as they
// fall.
#include "jit/engine.hpp"
#include "src/cache/disk_cache.hpp"

#include <atomic>
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <unistd.h>

namespace {

using namespace kiln::jit;
namespace targets = kiln::targets;

// y = a * x + y over n floats, n a multiple of 16.
const char* const host_ir = R"(
define void @axpy(ptr noalias %x, ptr noalias %y, i64 %n, float %a) {
entry:
  %one = insertelement <16 x float> poison, float %a, i64 0
  %as = shufflevector <16 x float> %one, <16 x float> poison, <16 x i32> zeroinitializer
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %px = getelementptr float, ptr %x, i64 %i
  %py = getelementptr float, ptr %y, i64 %i
  %vx = load <16 x float>, ptr %px, align 4
  %vy = load <16 x float>, ptr %py, align 4
  %m = fmul <16 x float> %vx, %as
  %s = fadd <16 x float> %m, %vy
  store <16 x float> %s, ptr %py, align 4
  %next = add nuw nsw i64 %i, 16
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
)";

std::string gpu_ir(const char* convention, const char* thread) {
  return "declare i32 @" + std::string(thread) + "()\ndefine " + convention +
         " void @axpy(ptr addrspace(1) %x, ptr addrspace(1) %y, float %a) {\n"
         "  %t = call i32 @" +
         thread + R"(()
  %px = getelementptr <4 x float>, ptr addrspace(1) %x, i32 %t
  %py = getelementptr <4 x float>, ptr addrspace(1) %y, i32 %t
  %one = insertelement <4 x float> poison, float %a, i64 0
  %as = shufflevector <4 x float> %one, <4 x float> poison, <4 x i32> zeroinitializer
  %vx = load <4 x float>, ptr addrspace(1) %px, align 16
  %vy = load <4 x float>, ptr addrspace(1) %py, align 16
  %m = fmul <4 x float> %vx, %as
  %s = fadd <4 x float> %m, %vy
  store <4 x float> %s, ptr addrspace(1) %py, align 16
  ret void
})";
}

request make(const kiln::target& t, std::string key) {
  request r;
  r.target = t;
  r.symbol = "axpy";
  r.key = std::move(key);
  r.build = from_ir_text(t.is_host()    ? host_ir
                         : t.is_nvptx() ? gpu_ir("ptx_kernel", "llvm.nvvm.read.ptx.sreg.tid.x")
                                        : gpu_ir("amdgpu_kernel", "llvm.amdgcn.workitem.id.x"));
  return r;
}

std::string fresh_key() {
  static std::atomic<int> n = 0;
  return std::to_string(++n);
}

double ms_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t).count();
}

void print(const char* what, double ms, const compiled& c) {
  const phase_times& t = c.times();
  std::printf("%-32s %7.2f ms  (emit %.2f, passes %.2f, codegen %.2f, link %.2f; %zu bytes)\n", what, ms, t.emit,
              t.passes, t.codegen, t.link, c.image().size());
}

engine& warm_engine() {
  static engine e;
  return e;
}

void cold_figures() {
  auto start = std::chrono::steady_clock::now();
  engine& e = warm_engine();
  std::printf("%-32s %7.2f ms\n", "engine start", ms_since(start));
  for (const auto& t : {targets::host, targets::sm_90a, targets::gfx942})
    for (const char* which : {"first", "second"}) {
      start = std::chrono::steady_clock::now();
      const compiled c = e.compile(make(t, fresh_key()));
      print((std::string(t.name()) + ", " + which + " compile").c_str(), ms_since(start), c);
    }
}

void engine_start(benchmark::State& state) {
  for (auto _ : state) {
    engine e;
    benchmark::DoNotOptimize(&e);
  }
}

void compile(benchmark::State& state, const kiln::target& t) {
  engine& e = warm_engine();
  for (auto _ : state) {
    const compiled c = e.compile(make(t, fresh_key()));
    state.PauseTiming();
    e.remove(c);
    state.ResumeTiming();
  }
}

void adopt(benchmark::State& state, const kiln::target& t) {
  engine& e = warm_engine();
  const std::string key = fresh_key();
  const compiled first = e.compile(make(t, key));
  const std::string image(first.image());
  const image_kind kind = first.kind();
  e.remove(first);
  for (auto _ : state) {
    const compiled c = e.adopt(make(t, key), {image, kind});
    state.PauseTiming();
    e.remove(c);
    state.ResumeTiming();
  }
}

void warm_look_up(benchmark::State& state) {
  engine& e = warm_engine();
  const request r = make(targets::host, fresh_key());
  (void)e.compile(r);
  for (auto _ : state) benchmark::DoNotOptimize(e.compile(r).address());
}

void disk_hit(benchmark::State& state) {
  kiln::cache_options o;
  o.directory = (std::filesystem::temp_directory_path() / ("kiln-bench-" + std::to_string(getpid()))).string();
  o.kiln_version = o.llvm_version = "bench";
  kiln::disk_cache cache(o);
  const kiln::cache_key key = kiln::cache_key().add("graph", std::string(500, 'g'));
  if (!cache.put(key, "meta", std::string(20'000, 'i')))
    state.SkipWithError("the temporary directory cannot be written");
  for (auto _ : state) benchmark::DoNotOptimize(cache.get(key));
  std::error_code ignored;
  std::filesystem::remove_all(o.directory, ignored);
}

} // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  cold_figures();
  benchmark::RegisterBenchmark("engine_start", engine_start)->Unit(benchmark::kMicrosecond);
  for (const auto& t : {targets::host, targets::sm_90a, targets::gfx942}) {
    benchmark::RegisterBenchmark(("compile/" + std::string(t.name())).c_str(), compile, t)
        ->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark(("adopt/" + std::string(t.name())).c_str(), adopt, t)->Unit(benchmark::kMicrosecond);
  }
  benchmark::RegisterBenchmark("warm_look_up", warm_look_up)->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("disk_hit_20kB", disk_hit)->Unit(benchmark::kMicrosecond);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
