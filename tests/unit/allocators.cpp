// Phase allocators as plain constants (offsets, sizes, barriers, what is refused) and inside kernels.
#include "phase_kernel.hpp"
#include "run_everywhere.hpp"

#include <kiln/dsl/pipeline.hpp>

#include <array>

namespace {

using namespace kiln;
using namespace kiln_test;
namespace ip = kiln::interpreter;

// {a, b} | {staging}: the longer phase decides.
static_assert([] {
  smem_allocation<> a{.name = "a", .size_bytes = 4096}, b{.name = "b", .size_bytes = 4096}, staging{.name = "staging", .size_bytes = 8192};
  smem_allocator al;
  al.add(a), al.add(b), al.add(staging);
  al.add_alias_group({{&a, &b}, {&staging}});
  al.compute_layout();
  return al.ok() && a.offset == 0 && b.offset == 4096 && staging.offset == 0 && al.total_smem_bytes() == 8192;
}());
// A group behind a single; the group's alignment is its members' largest, and a phase keeps its own order.
static_assert([] {
  smem_allocation<> x{.name = "x", .size_bytes = 100}, a{.name = "a", .size_bytes = 1000}, b{.name = "b", .size_bytes = 64},
      c{.name = "c", .size_bytes = 1500, .alignment = 256}, last{.name = "last", .size_bytes = 4, .alignment = 4};
  smem_allocator al;
  al.add(x), al.add(a), al.add(last), al.add(b), al.add(c); // `last` comes behind the group, which stands at a
  al.add_alias_group({{&a, &b}, {&c}});
  al.compute_layout();
  return al.ok() && x.offset == 0 && a.offset == 256 && b.offset == 1280 && c.offset == 256 && last.offset == 1756 && al.total_smem_bytes() == 1760 && al.barrier_base() == 1760;
}());
// Reordering: alignment first, then size.
static_assert([] {
  smem_allocation<> a{.name = "a", .size_bytes = 4, .alignment = 4}, b{.name = "b", .size_bytes = 512, .alignment = 1024}, c{.name = "c", .size_bytes = 1000, .alignment = 1024}, d{.name = "d", .size_bytes = 8, .alignment = 4};
  smem_allocator al;
  al.add(a), al.add(b), al.add(c), al.add(d);
  al.compute_layout({.reorder = true});
  return c.offset == 0 && b.offset == 1024 && d.offset == 1536 && a.offset == 1544 && al.total_smem_bytes() == 1548;
}());
// Sizes from element types, sub-byte sums rounded up; extents give the count.
static_assert([] {
  smem_allocation<f16> a{.name = "a", .count = 100};
  smem_allocation<f32, 4, 8> b{.name = "b"};
  smem_allocation<f32> c{.name = "c", .size_bytes = 64, .count = 4}; // a larger size wins
  smem_allocator al;
  al.add(a), al.add(b), al.add(c);
  al.compute_layout();
  return b.count == 32 && b.offset == 256 && c.offset == 384 && al.total_smem_bytes() == 448;
}());

// Barriers: 16 bytes a stage alone, (members + 1) * 8 a stage in a group.
struct staged {
  smem_allocation<f16, 64> data{.name = "data"};
  pipeline_config p;
  pipeline_group* g = nullptr;
  constexpr std::array<allocation_ref, 1> smem_requirements() { return {{&data}}; }
  constexpr pipeline_config& pipeline() { return p; }
  constexpr pipeline_group* group() { return g; }
};
static_assert([] {
  staged a{.p = {.num_stages = 4}}, b{.p = {.num_stages = 4}}, c{.p = {.num_stages = 2}};
  smem_allocator al;
  al.add_resource(a), al.add_resource(b), al.add_resource(c);
  al.compute_layout();
  return al.ok() && al.barrier_smem_bytes() == 160 && al.total_smem_bytes() == 384 && al.arena_bytes() == 544;
}());
static_assert([] {
  pipeline_group both{.name = "both"};
  staged a{.p = {.num_stages = 4}, .g = &both}, b{.p = {.num_stages = 4}, .g = &both}, c{.p = {.num_stages = 2}};
  both.add(a.p, "a"), both.add(b.p, "b");
  smem_allocator al;
  al.add_resource(a), al.add_resource(b), al.add_resource(c);
  al.add_pipeline_group(both);
  al.compute_layout();
  bool const merged = both.full(0, 3) == 24 && both.full(1, 0) == 32 && both.empty(0, 0) == 64 && both.empty(1, 0) == 64;
  both.kind = pipeline_group::form::fused_merge;
  return al.ok() && merged && both.barrier_bytes() == 64 && both.full(1, 0) == 0 && both.empty(1, 2) == 48;
}());
constexpr std::int64_t grouped_bytes(pipeline_group::form f) {
  pipeline_group both{.name = "both", .kind = f};
  pipeline_config a{.num_stages = 4}, b{.num_stages = 4};
  both.add(a, "a"), both.add(b, "b");
  return both.barrier_bytes();
}
static_assert(grouped_bytes(pipeline_group::form::merge) == 96 && grouped_bytes(pipeline_group::form::fork) == 96 && grouped_bytes(pipeline_group::form::fused_merge) == 64);
static_assert([] { // a fork shares the full side
  pipeline_group g{.name = "g", .kind = pipeline_group::form::fork};
  pipeline_config a{.num_stages = 2}, b{.num_stages = 2};
  g.add(a, "a"), g.add(b, "b");
  return g.full(1, 1) == 8 && g.empty(0, 0) == 16 && g.empty(1, 1) == 40;
}());

// What is refused, as data.
template <class F>
constexpr diagnostic verdict_of(F f) {
  smem_allocator al;
  f(al);
  return al.verdict();
}
constexpr diagnostic unregistered = verdict_of([](smem_allocator& al) {
  pipeline_group both{.name = "both"};
  staged a{.p = {.num_stages = 4}, .g = &both};
  al.add_resource(a);
  al.compute_layout();
});
static_assert(unregistered.view().starts_with("kiln[R-PA09] a resource belongs to pipeline group both"));
constexpr diagnostic consumers = verdict_of([](smem_allocator& al) {
  pipeline_group g{.name = "ab"};
  pipeline_config a{.kind = pipe::tma_mma, .num_stages = 2}, b{.kind = pipe::tma_async, .num_stages = 2};
  g.add(a, "a"), g.add(b, "b");
  al.add_pipeline_group(g);
});
static_assert(consumers.view() == "kiln[R-PA08] pipeline group ab: member b has another kind of consumer than member a");
constexpr diagnostic threads = verdict_of([](smem_allocator& al) {
  pipeline_group g{.name = "ab"};
  pipeline_config a{.num_stages = 2, .consumer_threads = 128}, b{.num_stages = 2, .consumer_threads = 256};
  g.add(a, "a"), g.add(b, "b");
  al.add_pipeline_group(g);
});
static_assert(threads.view() == "kiln[R-PA08] pipeline group ab: member b has 256 consumer threads, member a 128");
static_assert(verdict_of([](smem_allocator& al) { al.add_alias_group({}); }).view() == "kiln[R-PA11] alias group 0 has no phases");
static_assert(verdict_of([](smem_allocator& al) { (void)al.total_smem_bytes(); }).view() == "kiln[R-PA04] total_smem_bytes before compute_layout");
static_assert(verdict_of([](smem_allocator& al) { al.assign_barrier_ptrs(); }).view() == "kiln[R-PA10] assign_barrier_ptrs before allocate");
static_assert(verdict_of([](smem_allocator& al) {
                smem_allocation<u32, 1> slot{.name = "base", .alignment = 4}, second{.name = "second"};
                al.add_tmem_ptr(slot);
                al.add_tmem_ptr(second);
              }).view().starts_with("kiln[R-PA02] second: the allocator has a slot"));
static_assert(verdict_of([](smem_allocator& al) {
                smem_allocation<u16, 1> slot{.name = "base"};
                al.add_tmem_ptr(slot);
              }).view().starts_with("kiln[R-PA11] base: the slot"));

// Tensor memory: columns, no alignment, and what the hardware allocates.
static_assert([] {
  tmem_allocation a{.name = "a", .num_columns = 100}, b{.name = "b", .num_columns = 30}, c{.name = "c", .num_columns = 60};
  tmem_allocator al;
  al.add(a), al.add(b), al.add(c);
  al.add_alias_group({{&b}, {&c}});
  al.compute_layout();
  return al.ok() && b.offset == 100 && c.offset == 100 && al.total_tmem_columns() == 160 && al.hw_columns() == 256;
}());
static_assert([] {
  tmem_allocation a{.name = "a", .num_columns = 8};
  tmem_allocator al;
  al.add(a);
  al.compute_layout();
  return al.hw_columns() == 32;
}());
static_assert([] {
  tmem_allocation a{.name = "a", .num_columns = 300}, b{.name = "b", .num_columns = 300};
  tmem_allocator al;
  al.add(a), al.add(b);
  al.compute_layout();
  return al.message() == "kiln[R-CP03] tensor memory 600 columns > 512";
}());

// -- in kernels ----------------------------------------------------------------------------------------------------------------

// Nothing is declared after the layout is computed: a pipeline group would have no barriers.
static_assert([] {
  pipeline_config p{.num_stages = 2};
  pipeline_group group{.name = "ab"};
  group.members[0] = &p;
  group.member_names[0] = "a";
  group.count = 1;
  smem_allocator al;
  al.compute_layout();
  al.add_pipeline_group(group);
  return al.verdict().view() == "kiln[R-PA03] add_pipeline_group(ab) after compute_layout";
}());

TEST(allocators, phases_take_turns) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) { phases(k, x, y); });
  EXPECT_EQ(place_local(g).total(), 1152);
  std::vector<f32> in(800);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<f32>(i * 3 % 71);
  auto const y = run_everywhere(g, in, 1920);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t c = 0; c < 256; ++c) ASSERT_EQ(y[i * 640 + c], static_cast<f32>(c + i));
    for (std::size_t c = 0; c < 128; ++c) ASSERT_EQ(y[i * 640 + 256 + c], in[i * 256 + c] + in[i * 256 + 128 + c]);
    for (std::size_t c = 0; c < 16; ++c) ASSERT_EQ(y[i * 640 + 384 + c], in[i + c]);
    for (std::size_t c = 400; c < 512; ++c) ASSERT_EQ(y[i * 640 + c], -1);
    for (std::size_t c = 0; c < 128; ++c) ASSERT_EQ(y[i * 640 + 512 + c], static_cast<f32>(std::bit_cast<i32>(static_cast<f32>(c + i)) & 1));
  }
}

// -- pipelines -----------------------------------------------------------------------------------------------------------------

struct ring_resource {
  smem_allocation<f32, 3, 128> data{.name = "ring"};
  pipeline_config p;
  pipeline_group* g = nullptr;
  constexpr std::array<allocation_ref, 1> smem_requirements() { return {{&data}}; }
  constexpr pipeline_config& pipeline() { return p; }
  constexpr pipeline_group* group() { return g; }
};

/// Two resources whose pipelines form a group, and their memory.
constexpr void allocate_group(smem_allocator& al, context& k, pipeline_group& both, ring_resource& a, ring_resource& b) {
  both.add(a.p, "a"), both.add(b.p, "b");
  al.add_resource(a), al.add_resource(b);
  al.add_pipeline_group(both);
  al.compute_layout();
  al.allocate(k);
  al.assign_barrier_ptrs();
}

// Bulk copies fill three stages, another task empties them. `wrong` leaves one part out.
constexpr void copies_between_tasks(context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n, int wrong) {
  ring_resource r{.p = {.kind = pipe::tma_async, .num_stages = 3, .num_bytes = wrong == 1 ? 256 : 512}};
  smem_allocation<u32, 1> slot{.name = "slot", .alignment = 4};
  smem_allocator al(k);
  al.add_resource(r);
  al.add_tmem_ptr(slot);
  al.compute_layout();
  al.allocate(k);
  al.assign_barrier_ptrs();
  resource_context c(k, al);
  k.local_store(al.get(k, slot), k.full<u32, 1>(64));
  auto lanes = k.arange<128>();
  k.async_tasks(k.task_default({.name = "use"}, [&] {
                  pipeline_consumer in(k, r);
                  for (auto i : k.range(0, n)) {
                    auto s = in.wait();
                    store(y + i * 128 + lanes, k.local_load(c.get(r.data)[s]) * 2.f);
                    if (wrong != 2) in.release();
                  }
                }),
                k.task({.num_warps = 1, .name = "make"}, [&] {
                  pipeline_producer out(k, r);
                  for (auto i : k.range(0, n)) {
                    auto s = wrong == 3 ? out.stage() : out.acquire();
                    k.async_load_bulk(x + i * 128, c.get(r.data)[s], out.full());
                    out.commit();
                  }
                }));
  store(y + n * 128, cast<f32>(c.tmem_address(5)));
}
TEST(allocators, a_pipeline_of_copies) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) { copies_between_tasks(k, x, y, n, 0); });
  std::vector<f32> in(128 * 11);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<f32>(i % 97);
  for (i32 n : {1, 3, 11}) {
    auto const y = run_everywhere(g, in, static_cast<std::size_t>(n) * 128 + 1, n);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n) * 128; ++i) ASSERT_EQ(y[i], in[i] * 2) << i;
    EXPECT_EQ(y.back(), 69);
  }
  // 3 x 128 f32 and the slot, rounded up, and six barriers.
  EXPECT_EQ(place_local(g).total(), 1664 + 48);
}
TEST(allocators, a_pipeline_with_a_part_missing) {
  auto verdict = [](auto wrong) {
    auto g = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) { copies_between_tasks(k, x, y, n, decltype(wrong)::value); });
    return validate(g).text + std::string();
  };
  auto starts = [&](std::string const& text, char const* with) { return text.starts_with(with); };
  auto const bytes = verdict(std::integral_constant<int, 1>{}), release = verdict(std::integral_constant<int, 2>{}), acquire = verdict(std::integral_constant<int, 3>{});
  EXPECT_TRUE(starts(bytes, "kiln[R-BR01]")) << bytes;
  EXPECT_TRUE(starts(release, "kiln[R-BR02]")) << release;
  EXPECT_TRUE(starts(acquire, "kiln[R-BR03]") || starts(acquire, "kiln[R-HZ03]") || starts(acquire, "kiln[R-HZ02]")) << acquire;
}

// Two producers and one consumer; then one producer and two consumers. Arrivals of whole agents, and of all their threads.
TEST(allocators, groups_of_pipelines) {
  auto merge = [](auto form, auto threads) {
    return record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
      constexpr auto kind = decltype(form)::value;
      constexpr int of_threads = decltype(threads)::value;
      pipeline_group both{.name = "both", .kind = kind};
      ring_resource a{.data = {.name = "a"}, .p = {.num_stages = 3, .producer_threads = of_threads}, .g = &both};
      ring_resource b{.data = {.name = "b"}, .p = {.num_stages = 3, .producer_threads = of_threads}, .g = &both};
      smem_allocator al(k);
      allocate_group(al, k, both, a, b);
      auto lanes = k.arange<128>();
      auto fill = [&](ring_resource& r, int from) {
        return [&, from] {
          pipeline_producer out(k, r);
          for (auto i : k.range(0, n)) {
            auto s = out.acquire();
            k.local_store(al.get(k, r.data)[s], load(x + i * 128 + lanes + from));
            out.commit();
          }
        };
      };
      k.async_tasks(k.task_default({}, [&] {
                      pipeline_consumer in(k, both);
                      for (auto i : k.range(0, n)) {
                        auto s = in.wait();
                        store(y + i * 128 + lanes, k.local_load(al.get(k, a.data)[s]) - k.local_load(al.get(k, b.data)[s]));
                        in.release();
                      }
                    }),
                    k.task({.num_warps = 2}, fill(a, 1)), k.task({.num_warps = 2}, fill(b, 0)));
    });
  };
  auto fork = record([](context& k, ptr<const f32> x, ptr<f32> y, kiln::val<i32> n) {
    pipeline_group both{.name = "both", .kind = pipeline_group::form::fork};
    ring_resource a{.data = {.name = "a"}, .p = {.num_stages = 3}, .g = &both}, b{.data = {.name = "b"}, .p = {.num_stages = 3}, .g = &both};
    smem_allocator al(k);
    allocate_group(al, k, both, a, b);
    auto lanes = k.arange<128>();
    auto drain = [&](ring_resource& r, int where) {
      return [&, where] {
        pipeline_consumer in(k, r);
        for (auto i : k.range(0, n)) {
          auto s = in.wait();
          store(y + i * 256 + lanes + where, k.local_load(al.get(k, r.data)[s]));
          in.release();
        }
      };
    };
    k.async_tasks(k.task_default({}, [&] {
                    pipeline_producer out(k, both);
                    for (auto i : k.range(0, n)) {
                      auto s = out.acquire();
                      auto v = load(x + i * 128 + lanes);
                      k.local_store(al.get(k, a.data)[s], v);
                      k.local_store(al.get(k, b.data)[s], v + 1.f);
                      out.commit();
                    }
                  }),
                  k.task({.num_warps = 1}, drain(a, 0)), k.task({.num_warps = 1}, drain(b, 128)));
  });
  std::vector<f32> in(128 * 8 + 1);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<f32>(i * i % 89);
  using form = pipeline_group::form;
  std::vector<graph> merges;
  merges.push_back(merge(std::integral_constant<form, form::merge>{}, std::integral_constant<int, 1>{}));
  merges.push_back(merge(std::integral_constant<form, form::merge>{}, std::integral_constant<int, 64>{}));
  merges.push_back(merge(std::integral_constant<form, form::fused_merge>{}, std::integral_constant<int, 1>{}));
  for (graph const& g : merges) {
    auto const y = run_everywhere(g, in, 128 * 8, 8);
    for (std::size_t i = 0; i < 128 * 8; ++i) ASSERT_EQ(y[i], in[i + 1] - in[i]) << i;
  }
  auto const y = run_everywhere(fork, in, 256 * 8, 8);
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t c = 0; c < 128; ++c) {
      ASSERT_EQ(y[i * 256 + c], in[i * 128 + c]);
      ASSERT_EQ(y[i * 256 + 128 + c], in[i * 128 + c] + 1);
    }
}

TEST(allocators, a_mixed_up_phase_is_found_at_run_time_too) {
  auto g = record([](context& k, ptr<const f32> x, ptr<f32> y) {
    smem_allocation<f32, 64> a{.name = "a"}, b{.name = "b"};
    smem_allocator al(k);
    al.add(a), al.add(b);
    al.add_alias_group({{&a}, {&b}});
    al.compute_layout();
    al.allocate(k);
    k.local_store(al.get(k, a), load(x + k.arange<64>()));
    k.local_store(al.get(k, b), load(x + k.arange<64>()));
    store(y + k.arange<64>(), k.local_load(al.get(k, a)));
  });
  EXPECT_TRUE(validate(g).view().starts_with("kiln[R-PA07] a (256 B) is read")) << validate(g).text;
  guarded<f32> x(64), y(64);
  ip::report const r = ip::run(g, {1}, std::initializer_list<ip::host_argument>{x, y}, {});
  ASSERT_FALSE(r.clean());
  EXPECT_EQ(r.diagnostics[0].rule, std::string("R-PA07"));
}

} // namespace
