// What compiling for the host costs: each kernel is compiled again and again in a warm process, and the medians of the
// thread's own time are printed by phase. `emit` contains the passes on the graph.
//
//   bench_host_jit [--rounds 25] [--only NAME] [--level 0..3] [--passes PIPELINE] [--asm FOLDER]
#include "bench/host_kernels.hpp"
#include "jit/compile.hpp"
#include "tests/support/host_kernel.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

using namespace kiln;

namespace {

template <class T>
inline constexpr auto matmul = kernel<"matmul">([](context& k, array<const T, 2> a, array<const T, 2> b, array<f32, 2> c) {
  auto [m, n] = k.program_tile(c.shape(), tile_size<128, 128>, {.group = 8});
  auto acc = k.var(k.zeros<f32, 128, 128>());
  for (auto kk : k.range(0, a.extent(1), 32))
    acc = k.dot(load(a.region(at(m, kk), extent<128, 32>)), load(b.region(at(kk, n), extent<32, 128>)), acc);
  store(c.region(at(m, n), extent<128, 128>), acc);
});

struct options {
  int rounds = 25;
  std::string only, assembly;
  jit::codegen_options codegen;
};

double cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}
double median(std::vector<double> v) {
  std::ranges::sort(v);
  return v[v.size() / 2];
}

void measure(char const* name, graph_view g, options const& o) {
  if (!o.only.empty() && o.only != name) return;
  const specialisation facts = kiln_bench::facts_of(g);
  std::vector<double> total, emit, passes, codegen, link;
  std::size_t bytes = 0;
  for (int i = 0; i <= o.rounds; ++i) {
    const double start = cpu_ms();
    const graph prepared = jit::prepare_graph(g, facts);
    const double graphs = cpu_ms() - start;
    const kiln_test::host_kernel f(prepared, facts, o.codegen);
    const double end = cpu_ms();
    if (i == 0) continue;
    total.push_back(end - start);
    emit.push_back(graphs + f.image().times().emit);
    passes.push_back(f.image().times().passes);
    codegen.push_back(f.image().times().codegen);
    link.push_back(f.image().times().link);
    bytes = f.image().image().size();
  }
  std::printf("%-16s cpu %6.2f ms (best %6.2f)  wall: emit %5.2f  passes %5.2f  codegen %6.2f  link %5.2f  object %zu bytes\n", name,
              median(total), std::ranges::min(total), median(emit), median(passes), median(codegen), median(link), bytes);
  std::fflush(stdout);
  if (o.assembly.empty()) return;
  jit::codegen_options all = o.codegen;
  all.keep_asm = all.keep_ir = true;
  const graph prepared = jit::prepare_graph(g, facts);
  const kiln_test::host_kernel f(prepared, facts, all);
  for (auto [ending, text] : {std::pair{".s", f.image().assembly()}, {".ll", f.image().ir()}})
    if (FILE* to = std::fopen((o.assembly + "/" + name + ending).c_str(), "w")) {
      std::fwrite(text.data(), 1, text.size(), to);
      std::fclose(to);
    }
}

} // namespace

int main(int argc, char** argv) {
  options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--rounds") o.rounds = std::max(1, std::atoi(argv[i + 1]));
    else if (option == "--only") o.only = argv[i + 1];
    else if (option == "--level") o.codegen.level = std::atoi(argv[i + 1]);
    else if (option == "--passes") o.codegen.passes = argv[i + 1];
    else if (option == "--asm") o.assembly = argv[i + 1];
    else {
      std::fprintf(stderr, "usage: %s [--rounds N] [--only NAME] [--level 0..3] [--passes PIPELINE] [--asm FOLDER]\n", argv[0]);
      return 2;
    }
  }
  measure("vadd", kiln_bench::vadd.graph(), o);
  measure("layernorm", kiln_bench::layernorm<f32>.graph(), o);
  measure("gather_rows", kiln_bench::gather_rows.graph(), o);
  measure("softmax", kiln_bench::softmax<f32>.graph(), o);
  measure("transpose", kiln_bench::transpose.graph(), o);
  measure("softmax_bf16", kiln_bench::softmax<bf16>.graph(), o);
  measure("layernorm_bf16", kiln_bench::layernorm<bf16>.graph(), o);
  measure("matmul_f32", matmul<f32>.graph(), o);
  measure("matmul_bf16", matmul<bf16>.graph(), o);
  return 0;
}
