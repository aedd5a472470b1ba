// Launches for a long time: random kernels with random arguments from eight threads on their own streams, results compared with the
// interpreter's on the way, memory flat. A million launches on a GPU, fewer on the host; KILN_SOAK_LAUNCHES and KILN_SOAK_THREADS say
// other numbers.
#include <kiln/kiln.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "device_runner.hpp"
#include "test_seed.hpp"

#include <kiln/target/compile_error.hpp>

using namespace kiln;

namespace {

template <int Block> inline constexpr auto scale_add = kernel<"scale_add", Block>([](context& k, ptr<const i32> x, ptr<i32> y, val<i64> n, val<i32> factor) {
  auto i = k.program_id<i64>(0) * Block + k.arange<Block>();
  store(y + i, load(x + i, {.mask = i < n}) * factor + load(y + i, {.mask = i < n}), {.mask = i < n});
});
inline constexpr auto row_sums = kernel<"row_sums">([](context& k, array<const i32, 2> x, ptr<i32> sums) {
  auto row = k.program_id(0);
  auto total = k.var(k.full<i32>(0));
  for (auto c : k.range(0, x.extent(1), 256)) total = total + reduce<sum>(load(x.region(at(row, c), extent<1, 256>), {.other = 0}));
  store(sums + row, total);
});
inline constexpr auto never_negative = kernel<"never_negative">([](context& k, ptr<const i32> x, val<i64> n) {
  auto i = k.program_id<i64>(0) * 256 + k.arange<256>();
  k.device_assert(load(x + i, {.mask = i < n, .other = 0}) >= 0, "negative");
});

i64 resident_bytes() {
  std::ifstream in("/proc/self/statm");
  i64 size = 0, resident = 0;
  in >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

constexpr i64 largest = 5000;
constexpr int random_kernels = 40, launches_between_looks = 250;

// Random graphs that the device has code for, shared by all threads as a program's kernels are.
struct zoo {
  struct kind {
    kiln_test::generated made;
    detail::kernel_entry entry;
  };
  std::vector<std::unique_ptr<kind>> all;
  int refused = 0;

  zoo(device const& d, std::uint64_t seed) {
    // Without atomics: a launch that is repeated leaves what one launch leaves.
    kiln_test::generator_options const forms[] = {{.steps = 6, .max_elements = 4096, .atomics = false}, {.steps = 12, .atomics = false},
                                                  {.steps = 12, .powers_of_two = true, .atomics = false}, {.steps = 16, .control = false, .atomics = false}};
    for (std::uint64_t i = 0; all.size() < random_kernels; ++i) {
      auto k = std::make_unique<kind>(kind{kiln_test::random_graph(seed * 1000003 + i, forms[i % std::size(forms)]), {}});
      k->entry.graph = k->made.graph;
      try {
        kiln_test::arguments_image image(k->made.arguments, k->made.seed);
        detail::prepare(k->entry, d, kiln_test::placed_arguments(d, image).list);
      } catch (compile_error const& e) {
        if (std::string(e.what()).find("R-TG01") == std::string::npos || ++refused > random_kernels) throw;
        continue;
      }
      all.push_back(std::move(k));
    }
  }
};

// One thread's work: buffers made and dropped, copies both ways, every kernel, asserts looked at.
class worker {
public:
  worker(device const& d, zoo& kernels, unsigned seed) : where_(stream::create(d)), zoo_(kernels), random_(seed) {
    for (auto const& k : zoo_.all) {
      kiln_test::arguments_image image(k->made.arguments, k->made.seed);
      placed_.emplace_back(where_, image);
    }
  }

  /// Random kernels of the zoo over memory that stays; each time one of them on new contents, against the interpreter.
  i64 run_zoo() {
    for (int i = 0; i < launches_between_looks; ++i) {
      auto const n = random_() % zoo_.all.size();
      launch(*zoo_.all[n], placed_[n]);
    }
    zoo::kind& k = *zoo_.all[random_() % zoo_.all.size()];
    auto const run = [&](graph_view, dims, kiln_test::arguments_image& a) {
      kiln_test::placed_arguments there(where_, a);
      launch(k, there);
      there.fetch(a);
    };
    std::string const different = kiln_test::compare(k.made, run, {.seed = random_(), .ulps = 8});
    EXPECT_EQ(different, "");
    ++looks;
    return launches_between_looks + 1;
  }
  i64 looks = 0;

  /// About `launches` launches. Returns how many results were wrong.
  int run(i64 launches) {
    int wrong = 0;
    while (launches > 0) {
      launches -= run_zoo();
      i64 const n = 1 + static_cast<i64>(random_() % largest);
      std::vector<i32> values(static_cast<std::size_t>(n));
      for (i32& v : values) v = static_cast<i32>(random_() % 100);
      buffer<i32> x(where_, values), y(where_, n), sums(where_, 1);
      y.fill(1);
      i32 expected_factor = 0;
      for (int i = 0; i < 40; ++i, --launches) {
        auto const factor = static_cast<i32>(random_() % 3);
        expected_factor += factor;
        switch (random_() % 4) {
        case 0: scale_add<128>.launch(where_, grid(ceil_div(n, 128)), x, y, n, factor); break;
        case 1: scale_add<1024>.launch(where_, grid(ceil_div(n, 1024)), x, y, n, factor); break;
        case 2: scale_add<256>.launch(where_, grid(ceil_div(n, 256)), x, y, generic(n), generic(factor)); break;
        default:
          scale_add<256>.launch(where_, grid(ceil_div(n, 256)), x, y, n, factor);
          never_negative.launch(where_, grid(ceil_div(n, 256)), y, n);
          --launches;
        }
      }
      row_sums.launch(where_, grid(1), y.view(1, n), sums);
      --launches;
      i32 sum = 0;
      for (i32 v : values) sum += 1 + v * expected_factor;
      wrong += sums.to_vector()[0] != sum;
    }
    return wrong;
  }

private:
  void launch(zoo::kind& k, kiln_test::placed_arguments const& a) {
    detail::launch(k.entry, where_, grid(k.made.grid.x, k.made.grid.y, k.made.grid.z), a.list);
  }
  stream where_;
  zoo& zoo_;
  std::vector<kiln_test::placed_arguments> placed_;
  std::mt19937 random_;
};

i64 number_of(char const* variable, i64 otherwise) {
  char const* text = std::getenv(variable);
  return text ? std::atoll(text) : otherwise;
}

void soak(device const& d, i64 launches) {
  launches = number_of("KILN_SOAK_LAUNCHES", launches);
  i64 const workers = number_of("KILN_SOAK_THREADS", 8);
  zoo kernels(d, kiln_test::seed());
  std::atomic<i64> looks{0};
  std::atomic<int> wrong{0};
  auto seed = static_cast<unsigned>(kiln_test::seed());
  auto all_threads = [&](i64 count) {
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < workers; ++t)
      threads.emplace_back([&, t] {
        try {
          worker w(d, kernels, seed + t);
          wrong += w.run(count / workers);
          looks += w.looks;
        } catch (std::exception const& e) {
          ADD_FAILURE() << e.what();
        }
      });
    for (auto& t : threads) t.join();
  };
  all_threads(launches / 10); // all code is there, all pools have grown
  d.synchronize();
  i64 const host_before = resident_bytes(), device_before = d.is_host() ? 0 : d.free_bytes();
  seed += 1000;
  auto const start = std::chrono::steady_clock::now();
  all_threads(launches);
  d.synchronize();
  std::printf("%s: %lld launches of %d random kernels and 5 more on %lld threads in %.1f s, %lld results compared; host memory %+.1f MB, device memory %+.1f MB\n",
              d.id().c_str(), static_cast<long long>(launches), random_kernels, static_cast<long long>(workers),
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), static_cast<long long>(looks),
              static_cast<double>(resident_bytes() - host_before) / 1e6, d.is_host() ? 0. : static_cast<double>(device_before - d.free_bytes()) / 1e6);
  EXPECT_EQ(wrong, 0);
  EXPECT_LT(resident_bytes() - host_before, i64{24} << 20) << "host memory grew over " << launches << " launches";
  if (!d.is_host()) {
    EXPECT_LT(device_before - d.free_bytes(), i64{64} << 20) << "device memory grew over " << launches << " launches";
  }
}

} // namespace

TEST(soak, host) { soak(device::host(), 40'000); }

TEST(soak, gpus) {
  int gpus = 0;
  for (device const& d : device::all())
    if (!d.is_host()) ++gpus, soak(d, 1'000'000);
  if (gpus == 0) GTEST_SKIP() << "no GPU here";
}
