// A kernel whose allocations take turns in phases that come back: x has 800 elements, y 1920.
#pragma once
#include <kiln/kernel.hpp>

namespace kiln_test {

template <class Source, class Target>
constexpr void phases(kiln::context& k, Source x, Target y) {
  using namespace kiln;
  smem_allocation<f32, 8, 16> a{.name = "a"}, b{.name = "b"};
  smem_allocation<f32, 256> out{.name = "out"};
  smem_allocation<f32> tail{.name = "tail", .count = 16};
  smem_allocator al(k);
  al.add(a), al.add(b), al.add(out), al.add(tail);
  al.add_alias_group({{&a, &b}, {&out}});
  al.compute_layout();
  al.allocate(k);
  auto at = k.iota<0, 8, 16>() * 16 + k.iota<1, 8, 16>();
  auto line = k.arange<256>();
  for (auto i : k.range(0, 3)) { // phases come back
    k.local_store(al.get(k, a), load(x + i * 256 + at));
    k.local_store(al.get(k, b), load(x + i * 256 + 128 + at));
    k.local_store(al.template get<16>(k, tail), load(x + i + k.arange<16>()));
    auto sum = k.local_load(al.get(k, a)) + k.local_load(al.get(k, b));
    k.local_store(al.get(k, out), cast<f32>(line) + cast<f32>(i));
    store(y + i * 640 + line, k.local_load(al.get(k, out)));
    store(y + i * 640 + 256 + at, sum);
    store(y + i * 640 + 384 + k.arange<16>(), k.local_load(al.template get<16>(k, tail)));
    store(y + i * 640 + 512 + at, cast<f32>(k.local_load(al.template get_as_type<i32, 8, 16>(k, out)) & 1));
  }
}

} // namespace kiln_test
