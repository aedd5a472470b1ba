// buffers that share storage: the epilogue of a product takes over the bytes of the ring that fed it
// tour: --size 256
#include "support/lesson.hpp"

using namespace kiln;

// c = (a b)^T. The operands stream through a ring of S slots; when the product is complete, the tile is turned by a trip through
// local memory, which needs BM x BN floats more. The ring is idle by then, so both lie in one storage:
//
//   spec "scratch"      slot 0     slot 1     slot 2
//   as, bs  (distinct)  [as0 bs0]  [as1 bs1]  [as2 bs2]      in use at the same time, so side by side
//   turned  (shared)    [turned................      ]      one buffer against all slots of the ring
//
// `subtile(x, S)` says that S neighbouring slots of x count as one of what stands beside it: as and bs have S slots, turned has one.
// Where everything lies follows from the tree alone, while the compiler runs; `plan` below reads it from the kernel.
//
// Bytes of one buffer must not be used through another before everybody is done with them, and what is read must have been
// written through the buffer that reads it. Both are checked while the compiler runs. Fetch one step too many, with the guard
// `i < steps + 1` below, and the file does not compile:
//   kiln[R-AL17] turned[0] (16384 B): the local_store (12_shared_storage.cpp:47) touches bytes 8192..12287 of as[(i0 + 2) % 3]
//   (4096 B), where the async_load of line 36 may be in flight; wait for it first
// Load from as[0] behind that store, and kiln says whose bytes it would get (R-AL16).
template <int BM, int BN, int BK, int S>
inline constexpr auto product_transposed = kernel<"product_transposed", attributes{.num_warps = 8}, BM, BN, BK, S>([](context& k, array<const f16, 2> a, array<const f16, 2> b, array<f32, 2> c) {
  auto [n, m] = k.program_tile(c.shape(), tile_size<BN, BM>);
  auto scratch = k.storage_alias_spec({.name = "scratch"});
  auto as = k.local_alloc<f16, BM, BK>(S, {.reuse = &scratch, .name = "as"});
  auto bs = k.local_alloc<f16, BK, BN>(S, {.reuse = &scratch, .name = "bs"});
  auto turned = k.local_alloc<f32, BM, BN>(1, {.reuse = &scratch, .name = "turned"});
  scratch.set_buffer_overlap(shared_group(turned, subtile(distinct_group(as, bs), S)));

  auto acc = k.var(k.zeros<f32, BM, BN>());
  auto steps = ceil_div(a.extent(1), BK);
  auto fetch = [&](auto i) {
    k.when(i < steps, [&] {
      k.async_load(a.region(at(m, i * BK), extent<BM, BK>), as[i % S], {.other = 0});
      k.async_load(b.region(at(i * BK, n), extent<BK, BN>), bs[i % S], {.other = 0});
    });
    k.async_load_commit_group();
  };
  for (int i = 0; i < S - 1; ++i) fetch(k.let(i));
  for (auto i : k.range(0, steps)) {
    k.async_load_wait_group(S - 2);
    acc = k.dot(as[i % S], bs[i % S], acc);
    fetch(i + (S - 1));
  }
  k.local_store(turned[0], k.let(acc));
  store(c.region(at(n, m), extent<BN, BM>), k.local_load(k.local_trans(turned[0])));
});

constexpr int block = 64, depth = 32, slots = 3;
constexpr auto const& shared = product_transposed<block, block, depth, slots>;
// Three rings' slots of 4096 + 4096 bytes: `turned` needs nothing of its own.
static_assert(place_local(shared.graph()).total() == slots * 2 * 4096);

int main(int argc, char** argv) {
  return lesson::guarded([&] {
    lesson::program p(argc, argv, "shared storage", {{"size", "N", "rows and columns of the three matrices"}});
    i64 const n = p.number("size", 300, 1);
    auto const plan = shared.graph();
    for (int b = 1; b < static_cast<int>(plan.buffers.size()); ++b) {
      buffer_info const& f = plan.buffer(b);
      std::string line = std::string(plan.string(f.name)) + " lies at byte";
      for (int slot = 0; slot < f.slots; ++slot) line += " " + std::to_string(f.place.at(slot));
      p.say(line);
    }
    auto const av = lesson::random_values<f16>(n * n, 1), bv = lesson::random_values<f16>(n * n, 2);
    device dev = p.device();
    buffer<f16> a(dev, av), b(dev, bv);
    buffer<f32> c(dev, n * n);
    double const seconds = p.time([&] {
      shared.launch(dev, grid(ceil_div(n, block) * ceil_div(n, block)), a.view(n, n), b.view(n, n), c.view(n, n));
      dev.synchronize();
    });
    auto const got = c.to_vector();
    auto const x = lesson::to_double(av), y = lesson::to_double(bv);
    double error = 0, largest = 0;
    auto const size = static_cast<std::size_t>(n);
    std::vector<double> row(size);
    for (std::size_t i = 0; i < size; ++i) {
      std::ranges::fill(row, 0.0);
      for (std::size_t q = 0; q < size; ++q)
        for (std::size_t j = 0; j < size; ++j) row[j] += x[i * size + q] * y[q * size + j];
      for (std::size_t j = 0; j < size; ++j) {
        error = std::max(error, lesson::difference(got[j * size + i], row[j]));
        largest = std::max(largest, std::abs(row[j]));
      }
    }
    double const flops = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    p.report(lesson::size_text({n, n, n}, dtype::f16), seconds, flops, "GFLOP/s", error, largest * 1e-4 + 1e-4);
    return p.finish();
  });
}
