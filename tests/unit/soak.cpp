// Launches for a long time: random kernels with random arguments from eight threads on their own streams, results looked at
// on the way, memory flat. A million launches on a GPU, fewer on the host; KILN_SOAK_LAUNCHES says another number.
#include <kiln/kiln.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "test_seed.hpp"

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

// One thread's work: buffers made and dropped, copies both ways, every kernel, asserts looked at.
class worker {
public:
  worker(device const& d, unsigned seed) : where_(stream::create(d)), random_(seed) {}

  /// About `launches` launches. Returns how many results were wrong.
  int run(i64 launches) {
    int wrong = 0;
    while (launches > 0) {
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
  stream where_;
  std::mt19937 random_;
};

void soak(device const& d, i64 launches) {
  if (char const* text = std::getenv("KILN_SOAK_LAUNCHES")) launches = std::atoll(text);
  std::atomic<int> wrong{0};
  auto seed = static_cast<unsigned>(kiln_test::seed());
  auto all_threads = [&](i64 count) {
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        try {
          wrong += worker(d, seed + t).run(count / 8);
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
  all_threads(launches);
  d.synchronize();
  EXPECT_EQ(wrong, 0);
  EXPECT_LT(resident_bytes() - host_before, i64{24} << 20) << "host memory grew over " << launches << " launches";
  if (!d.is_host()) {
    EXPECT_LT(device_before - d.free_bytes(), i64{64} << 20) << "device memory grew over " << launches << " launches";
  }
}

} // namespace

TEST(soak, host) { soak(device::host(), 200'000); }

TEST(soak, gpus) {
  int gpus = 0;
  for (device const& d : device::all())
    if (!d.is_host()) ++gpus, soak(d, 1'000'000);
  if (gpus == 0) GTEST_SKIP() << "no GPU here";
}
