// softmax of rows that are too long for one CTA's registers: a cluster of CTAs shares a row, and they tell each other what they found.
// tour: --rows 512 --columns 16000
#include "support/lesson.hpp"

using namespace kiln;

// CTAs of a cluster run at the same time and write into each other's local memory. Here each of four reads a quarter of a row, once,
// and keeps it. What it knows of its quarter, the largest element and the sum of exp(v - largest), goes to all four: the same slot of the
// same buffer, in the CTA that the rank names. After they have met, every CTA has all four pairs, and finishes its quarter without
// reading anything again (lesson 3 reads long rows twice).
//
// A CTA may be written to once it is known to have started, so they meet before, too. While the C++ compiler runs, kiln runs the whole
// cluster with clocks that go through all CTAs. Try it:
//   leave out the first cluster_barrier:  kiln[R-HZ11] remote_store (..) in CTA 0 to CTA 1: .. after the start of CTA 1; ..
//   leave out the second:                 kiln[R-HZ15] or R-HZ13, which name the slot and both lines
//   write to rank Ctas:                   kiln[R-BD01] remote_shmem_store: rank 4, valid 0..3
template <int Ctas, int Block>
inline constexpr auto softmax_cluster = kernel<"softmax_cluster", attributes{.num_warps = 8, .cluster = {Ctas, 1, 1}}, Ctas, Block>([](context& k, array<const f32, 2> x, array<f32, 2> y) {
  auto row = k.program_id(0) / Ctas;
  auto rank = k.cluster_cta_rank();
  auto found = k.local_alloc<f32, 2>(Ctas, {.name = "found"}); // of each quarter: its largest element, and its sum
  auto v = load(x.region(at(row, rank * Block), extent<1, Block>), {.other = -inf});
  auto top = max(reduce<max>(v), -1e30f); // a quarter beyond the end of the row has nothing, and a sum of 0
  auto e = exp(v - top);
  auto mine = join(top, reduce<sum>(e));
  k.cluster_barrier();
  for (int to : k.unrolled(Ctas)) k.remote_shmem_store(found[rank], mine, to);
  k.cluster_barrier();
  auto highest = k.var(top), total = k.var(k.full<f32>(0));
  for (int from : k.unrolled(Ctas)) highest = max(highest, split(k.local_load(found[from])).first);
  for (int from : k.unrolled(Ctas)) {
    auto [high, part] = split(k.local_load(found[from]));
    total = total + part * exp(high - highest);
  }
  store(y.region(at(row, rank * Block), extent<1, Block>), e * (exp(top - highest) / total));
});

int main(int argc, char** argv) {
  return lesson::guarded([&] {
    lesson::program p(argc, argv, "cluster softmax", {{"rows", "N", "of the matrix"}, {"columns", "N", "of the matrix, at most 16384"}});
    constexpr int ctas = 4, block = 4096;
    i64 const rows = p.number("rows", 64, 1), columns = p.number("columns", 16000, 1);
    if (columns > ctas * block) throw std::invalid_argument("--columns is more than 16384, what a cluster of this lesson keeps");
    if (!p.device().target().is_host() && !p.device().target().has_clusters()) {
      p.say("this device has no clusters: the lesson runs on the host");
      p.move_to(device::host());
    }
    device dev = p.device();
    auto const xv = lesson::random_values<f32>(rows * columns, 1);
    buffer<f32> x(dev, xv), y(dev, rows * columns);
    double seconds = p.time([&] {
      softmax_cluster<ctas, block>.launch(dev, grid(rows * ctas), x.view(rows, columns), y.view(rows, columns)); // the grid counts CTAs
      dev.synchronize();
    });
    std::vector<f32> const got = y.to_vector();

    double error = 0;
    for (i64 r = 0; r < rows; ++r) {
      auto const in = [&](i64 c) { return static_cast<double>(xv[static_cast<std::size_t>(r * columns + c)]); };
      double top = -INFINITY, total = 0;
      for (i64 c = 0; c < columns; ++c) top = std::fmax(top, in(c));
      for (i64 c = 0; c < columns; ++c) total += std::exp(in(c) - top);
      for (i64 c = 0; c < columns; ++c)
        error = std::max(error, lesson::difference(static_cast<double>(got[static_cast<std::size_t>(r * columns + c)]), std::exp(in(c) - top) / total));
    }
    p.report(lesson::size_text({rows, columns}, dtype::f32), seconds, 8.0 * static_cast<double>(rows * columns), "GB/s", error, lesson::rounding<f32>() + 4e-6);
    return p.finish();
  });
}
