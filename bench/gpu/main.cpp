// Times kiln's kernels on a GPU and prints the table; `peers.py` beside this file runs it and puts the peers next to it.
#include "harness.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace {

int usage(int code) {
  std::puts("bench_gpu [--device cuda:0] [--repeat 24] [--json FILE] [--commit TEXT] [--save FOLDER] [WORD ...]\n"
            "Measures the jobs whose name or shape has one of the words; without words all of them. Medians of --repeat runs, the\n"
            "L2 flushed by a fill of 256 MiB of zeros before each. --save writes the kernels' graphs for `kiln compile` and measures nothing.");
  return code;
}

void save_graphs(std::string const& folder) {
  using namespace kiln_bench;
  auto save = [&](auto const& k, char const* name) { k.save(folder + "/" + name + ".kg"); };
  save(copy<f32, 512, 4>, "copy");
  save(vector_add<f32, 512, 4>, "vector_add");
  save(softmax<bf16, 1024, 2>, "softmax_1024");
  save(softmax<bf16, 4096, 4>, "softmax_4096");
  save(softmax<bf16, 8192, 16>, "softmax_8192");
  save(softmax_twice<bf16, 32768, 16>, "softmax_32768");
  save(rmsnorm<bf16, 1024, 4>, "rmsnorm_1024");
  save(rmsnorm<bf16, 8192, 16>, "rmsnorm_8192");
  save(rmsnorm<bf16, 32768, 16>, "rmsnorm_32768");
  save(layernorm<bf16, 8192, 16>, "layernorm_8192");
  save(layernorm<bf16, 32768, 16>, "layernorm_32768");
  save(layernorm<bf16, 1024, 1>, "layernorm_1024");
  save(layernorm_rows<bf16, 1024, 4, 4>, "layernorm_rows_1024");
  save(gather_rows<bf16, i64, 64, 64, 64, 8>, "gather_64");
  save(gather_rows<bf16, i64, 4096, 1, 1024, 2>, "gather_4096");
  save(scatter_add_rows<bf16, i64, 64, 64, 64, 8, true>, "scatter_add_64");
  save(scatter_add_rows<f32, i64, 128, 16, 128, 8, true>, "scatter_add_128_f32");
  save(transpose<f32, 64, 8>, "transpose");
  save(row_cumsum<f32, 16384, 8>, "row_cumsum");
  save(sum_all<f32, 16384, 16>, "sum_all");
  save(argmax_rows<bf16, 32768, 32>, "argmax_rows");
  save(matmul<bf16, bf16, 128, 128, 32, 8>, "matmul");
  save(matmul_ring<bf16, bf16, 128, 128, 32, 4, 8>, "matmul_ring");
}

} // namespace

int main(int argc, char** argv) {
  std::string device = "cuda:0", json, commit, folder, first;
  int repeat = 24;
  std::vector<std::string> only;
  for (int i = 1; i < argc; ++i) {
    std::string const a = argv[i];
    if (a == "--help" || a == "-h") return usage(0);
    if (!a.starts_with("--")) {
      only.push_back(a);
      continue;
    }
    if (i + 1 == argc) return usage(2);
    std::string const v = argv[++i];
    if (a == "--device") device = v;
    else if (a == "--json") json = v;
    else if (a == "--commit") commit = v;
    else if (a == "--save") folder = v;
    else if (a == "--first-launch") first = v;
    else if (a == "--repeat") repeat = std::max(1, std::atoi(v.c_str()));
    else return usage(2);
  }
  try {
    if (!folder.empty()) {
      save_graphs(folder);
      return 0;
    }
    if (!first.empty()) { // a child of launches.cpp
      std::printf("%.6f\n", kiln_bench::first_launch_milliseconds(device, first));
      return 0;
    }
    // Compiles are to be cold: neither our cache nor the driver's.
    ::setenv("KILN_CACHE", "off", 1);
    ::setenv("CUDA_CACHE_DISABLE", "1", 1);
    kiln_bench::session s(kiln::device::parse(device), only, repeat);
    std::printf("%s, medians of %d runs\n", s.dev.name().c_str(), repeat);
    kiln_bench::launch_jobs(s);
    kiln_bench::stream_jobs(s);
    kiln_bench::row_jobs(s);
    kiln_bench::index_jobs(s);
    kiln_bench::tile_jobs(s);
    kiln_bench::product_jobs(s);
    if (!json.empty()) {
      std::ofstream file(json);
      file << s.json(commit);
      if (!file.flush()) {
        std::fprintf(stderr, "bench_gpu: cannot write %s\n", json.c_str());
        return 2;
      }
    }
    return s.any_wrong() ? 1 : 0;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "bench_gpu: %s\n", e.what());
    return 2;
  }
}
