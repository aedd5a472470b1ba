// attention whose scores, weights and row factors take turns in one storage: the plan, step by step, with its memory map
// tour: --rows 128 --keys 256
#include "support/lesson.hpp"

using namespace kiln;

// o = softmax(q k^T / sqrt(64)) v for 64 rows of q in each CTA. One task makes the scores of 128 keys at a time, another turns them
// into weights and adds their part of v:
//
//   scores   qk[s] = q k^T                        f32 64 x 128, two slots
//   softmax  p[2s], p[2s+1] = exp(qk[s] - max)    f16 64 x 64, four slots: two for each of qk
//            l[s] = what older sums shrink by     f32 64 x 1, two slots
//
// Step 1, storage of its own for each: 65,536 + 32,768 + 512 bytes. Its map is docs/pictures/attention1.svg, which this draws:
//   kiln memory-map attention_memory -k attention1 --svg -o map.svg
// Left, bytes up: qk, and above it p and l. Right, both tasks, each in its own order: in task softmax green qk ends where red l and
// violet p begin, since the weights of a slot are written when its scores have been read. They can have the same bytes.
//
// Step 2, one storage. At each index qk takes turns with p and l together, and p and l are in use at the same time: that is
// shared_group(qk, distinct_group(p, l)), but qk has two slots and p four. See what kiln says, and to the mistake below:
//   g++ -std=c++20 -fsyntax-only -I include -I examples -DCASE_flat examples/14_attention_memory.cpp
//
// Step 3, two neighbours of p count as one: subtile(p, 2). A slot of scratch is what the larger side needs, 32,768 bytes; p and l lie
// in the same bytes as qk, side by side, and cost nothing. In the map, docs/pictures/attention3.svg, they stand beside qk at
// the same height; hatched is what is left over beside them. 65,536 bytes in place of 98,816.
//
// Step 4, the barriers. Bytes that take turns must be handed over: `scored` says that qk is written, `free` that everything in its
// bytes is done with, p, too. `kiln timeline attention_memory -k attention3 -o trace.json` shows the two tasks doing it.
constexpr int rows = 64, keys = 128, width = 64;

template <int Step>
constexpr void attention(context& k, array<const f16, 2> q, array<const f16, 2> key, array<const f16, 2> value, array<f32, 2> out) {
  auto row = k.program_id(0) * rows;
  auto scratch = k.storage_alias_spec({.name = "scratch"});
  auto plan = [&] { return Step == 1 ? static_cast<alias_spec const*>(nullptr) : &scratch; };
  auto qk = Step == 1 ? k.local_alloc<f32, rows, keys>(2, {.name = "qk"}) : k.local_alloc<f32, rows, keys>(2, {.reuse = plan(), .name = "qk"});
  auto p = Step == 1 ? k.local_alloc<f16, rows, width>(4, {.name = "p"}) : k.local_alloc<f16, rows, width>(4, {.reuse = plan(), .name = "p"});
  auto l = Step == 1 ? k.local_alloc<f32, rows, 1>(2, {.name = "l"}) : k.local_alloc<f32, rows, 1>(2, {.reuse = plan(), .name = "l"});
  if constexpr (Step == 3) {
    // case: flat
    // expect-error: kiln[R-AL11] scratch: qk has 2 logical groups (2 buffers / 1), p has 4 (4 / 1); all leaves need the same number
#ifdef CASE_flat
    scratch.set_buffer_overlap(shared_group(qk, distinct_group(p, l))); // expect-line
#else
    scratch.set_buffer_overlap(shared_group(qk, distinct_group(subtile(p, 2), l)));
#endif
  }

  auto scored = k.alloc_barriers(2, {.name = "scored"}), free = k.alloc_barriers(2, {.name = "free"});
  auto blocks = key.extent(0) / keys;
  k.async_tasks(k.task_default({.name = "scores"},
                               [&] {
                                 auto mine = load(q.region(at(row, 0), extent<rows, width>));
                                 for (auto i : k.range(0, blocks)) {
                                   auto [s, phase] = k.buf_phase(i, 2);
                                   auto block = load(key.region(at(i * keys, 0), extent<keys, width>));
                                   auto scores = k.dot(mine, trans(block)) * 0.125f;
                                   k.barrier_wait(free[s], phase ^ 1);
                                   // What is written here must not be needed any more by anybody else. Had `free` been signalled as soon as
                                   // qk is read, before p is done with:
                                   //
                                   // case: early
                                   // expect-error: kiln[R-AL17] qk[i0 % 2] (32768 B): the local_store (14_attention_memory.cpp:{line}) in task scores touches bytes 0..8191 of p[i0 % 2 * 2] (8192 B), which line {line+18} in task softmax uses, and nothing orders the two; signal a barrier after its last use, and wait for it here
                                   k.local_store(qk[s], scores); // expect-line
                                   k.barrier_arrive(scored[s]);
                                 }
                               }),
                k.task({.num_warps = 4, .name = "softmax"}, [&] {
                  auto acc = k.var(k.zeros<f32, rows, width>());
                  auto top = k.var(k.full<f32, rows, 1>(-1e30f)), sum_p = k.var(k.zeros<f32, rows, 1>());
                  for (auto i : k.range(0, blocks)) {
                    auto [s, phase] = k.buf_phase(i, 2);
                    k.barrier_wait(scored[s], phase);
                    auto left = k.local_load(k.local_slice<rows, width>(qk[s], {0, 0})), right = k.local_load(k.local_slice<rows, width>(qk[s], {0, width}));
                    auto m = max(top, max(reduce<max, 1, true>(left), reduce<max, 1, true>(right)));
#ifdef CASE_early
                    k.barrier_arrive(free[s]);
#endif
                    auto weights = [&](auto x) { return exp(x - broadcast<rows, width>(m)); };
                    auto e0 = weights(left), e1 = weights(right);
                    k.local_store(l[s], exp(top - m)); // the scores are in registers now: their bytes are free
                    k.local_store(p[s * 2], cast<f16>(e0));
                    k.local_store(p[s * 2 + 1], cast<f16>(e1));
                    auto shrink = k.local_load(l[s]);
                    sum_p = sum_p * shrink + reduce<sum, 1, true>(e0) + reduce<sum, 1, true>(e1);
                    auto v0 = load(value.region(at(i * keys, 0), extent<width, width>)), v1 = load(value.region(at(i * keys + width, 0), extent<width, width>));
                    acc = k.dot(p[s * 2 + 1], v1, k.dot(p[s * 2], v0, acc * broadcast<rows, width>(shrink)));
                    top = m;
#ifndef CASE_early
                    k.barrier_arrive(free[s]);
#endif
                  }
                  store(out.region(at(row, 0), extent<rows, width>), acc / broadcast<rows, width>(k.let(sum_p)));
                }));
}
inline constexpr auto attention1 = kernel<"attention1">([](context& k, array<const f16, 2> q, array<const f16, 2> key, array<const f16, 2> v, array<f32, 2> o) { attention<1>(k, q, key, v, o); });
inline constexpr auto attention3 = kernel<"attention3">([](context& k, array<const f16, 2> q, array<const f16, 2> key, array<const f16, 2> v, array<f32, 2> o) { attention<3>(k, q, key, v, o); });
#if defined(CASE_flat) || defined(CASE_early)
void use() { attention3.check(); }
#else
static_assert(place_local(attention1.graph()).total() == 65536 + 32768 + 512 + 4 * 8);
static_assert(place_local(attention3.graph()).total() == 65536 + 4 * 8);
#endif

int main(int argc, char** argv) {
  return lesson::guarded([&] {
    lesson::program prog(argc, argv, "attention memory", {{"rows", "N", "rows of q, a multiple of 64"}, {"keys", "N", "rows of k and v, a multiple of 128"}});
    i64 const n = ceil_div(prog.number("rows", 128, 1), rows) * rows, m = ceil_div(prog.number("keys", 512, 1), keys) * keys;
    auto const qv = lesson::random_values<f16>(n * width, 1), kv = lesson::random_values<f16>(m * width, 2), vv = lesson::random_values<f16>(m * width, 3);
    if (prog.device().target().is_amdgpu()) {
      prog.say("tasks are not compiled for AMD GPUs yet: the lesson runs on the host");
      prog.move_to(device::host());
    }
    device dev = prog.device();
    buffer<f16> q(dev, qv), key(dev, kv), v(dev, vv);
    buffer<f32> out(dev, n * width);
    auto const x = lesson::to_double(qv), y = lesson::to_double(kv), z = lesson::to_double(vv);
    std::vector<double> expected(static_cast<std::size_t>(n * width));
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      std::vector<double> s(static_cast<std::size_t>(m));
      double top = -1e300, total = 0;
      for (std::size_t j = 0; j < s.size(); ++j) {
        for (std::size_t d = 0; d < width; ++d) s[j] += x[i * width + d] * y[j * width + d] / 8;
        top = std::max(top, s[j]);
      }
      for (double& e : s) total += e = std::exp(e - top);
      for (std::size_t j = 0; j < s.size(); ++j)
        for (std::size_t d = 0; d < width; ++d) expected[i * width + d] += s[j] / total * z[j * width + d];
    }
    auto run = [&](auto const& kern, char const* name) {
      prog.say(std::string(name) + ": " + std::to_string(place_local(kern.graph()).total()) + " bytes of shared memory for each CTA");
      double const seconds = prog.time([&] {
        kern.launch(dev, grid(n / rows), q.view(n, width), key.view(m, width), v.view(m, width), out.view(n, width));
        dev.synchronize();
      });
      auto const got = out.to_vector();
      double error = 0;
      for (std::size_t i = 0; i < got.size(); ++i) error = std::max(error, lesson::difference(got[i], expected[i]));
      double const flops = 4.0 * static_cast<double>(n) * static_cast<double>(m) * width;
      prog.report(std::string(name) + " " + lesson::size_text({n, m, width}, dtype::f16), seconds, flops, "GFLOP/s", error, 4e-3);
    };
    run(attention1, "storage of its own");
    run(attention3, "one storage");
    return prog.finish();
  });
}
