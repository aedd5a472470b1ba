// look inside: a kernel's graph, its file for the tools, and a run on the checking interpreter
#include "support/lesson.hpp"

#include <kiln/graph/hash.hpp>
#include <kiln/graph/text.hpp>
#include <kiln/interpreter/check.hpp>

#include <cstdio>

using namespace kiln;

inline constexpr auto saxpy = kernel<"saxpy">([](context& k, ptr<const f32> x, ptr<f32> y, val<f32> a, val<i32> n) {
  auto i = k.program_id(0) * 256 + k.arange<256>();
  auto in = i < n;
  store(y + i, a * load(x + i, {.mask = in}) + load(y + i, {.mask = in}), {.mask = in});
});

// The same without a mask. It compiles, since nothing proves that n is no multiple of 256; the run below shows what happens.
inline constexpr auto careless = kernel<"careless">([](context& k, ptr<const f32> x, ptr<f32> y, val<f32> a, val<i32> n) {
  auto i = k.program_id(0) * 256 + k.arange<256>();
  k.device_assert(n > 0, "n is positive");
  store(y + i, a * load(x + i) + load(y + i));
});

int main(int argc, char** argv) {
  return lesson::guarded([&] {
    lesson::program p(argc, argv, "saxpy", {{"save", "F.kg", "write the graph's text form, which the tool kiln reads"}});

    // The graph is a constant of this program: its size could be an array's extent.
    static_assert(saxpy.ok && saxpy.graph().size() > 10);
    p.say("The graph of saxpy, as the tools print and parse it:\n");
    p.say(print(saxpy.graph()));
    p.say("Its hash, equal on every compiler: " + to_string(semantic_hash(saxpy.graph())) + "\n");
    if (auto file = p.text("save")) {
      saxpy.save(*file);
      p.say("wrote " + *file + "; next: kiln compile " + *file + " --target sm_90a --emit asm\n");
    }

    // kiln::check takes a launch's arguments and runs it operation by operation: races in local memory, accesses out of
    // bounds, failed assertions, broken promises. No device takes part. Vectors know their size, so nothing goes unseen.
    std::vector<f32> const x = lesson::random_values<f32>(1000, 1);
    std::vector<f32> y(1000, 1.f);
    auto const good = check(saxpy, grid(4), x, y, 2.f, 1000);
    p.say("check(saxpy):    " + std::string(good.clean() ? "clean" : good.text()));
    std::vector<f32> z(1000, 1.f);
    auto const bad = check(careless, grid(4), x, z, 2.f, 1000);
    p.say("check(careless): " + (bad.clean() ? "clean" : bad.text()));

    // And the real thing.
    device dev = p.device();
    buffer<f32> dx(dev, x), dy(dev, std::vector<f32>(1000, 1.f));
    saxpy.launch(dev, grid(4), dx, dy, 2.f, 1000);
    std::vector<f32> const got = dy.to_vector();
    double error = 0;
    for (std::size_t i = 0; i < got.size(); ++i) error = std::max(error, lesson::difference(static_cast<double>(got[i]), static_cast<double>(y[i])));
    if (!good.clean() || bad.clean()) error = 1;
    double const seconds = p.time([&] {
      saxpy.launch(dev, grid(4), dx, dy, 2.f, 1000);
      dev.synchronize();
    });
    p.report("1000 f32", seconds, 0, "", error, 0); // interpreter and machine code agree bit for bit
    return p.finish();
  });
}
