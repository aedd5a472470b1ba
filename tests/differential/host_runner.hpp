// Compiled host code as a runner of compare.hpp.
#pragma once
#include "compare.hpp"
#include "host_kernel.hpp"

#include <stdexcept>

namespace kiln_test {

/// Runs graphs through the host lowering, in ranges of `chunk` CTAs, with or without facts about the arguments.
inline runner host_runner(std::int64_t chunk = 3, bool with_facts = false) {
  return [=](kiln::graph_view g, kiln::dims grid, arguments_image& a) {
    std::vector<std::uint64_t> slots;
    kiln::specialisation facts = kiln::specialisation::generic(g);
    for (std::size_t i = 0; i < a.list.size(); ++i) {
      kiln::interpreter::host_argument const& x = a.list[i];
      kiln::param_facts& f = facts.params[i];
      if (x.kind == kiln::node_kind::value) {
        slots.push_back(x.bits.bits);
        f.scalar = {with_facts, static_cast<std::int64_t>(x.bits.bits), 1};
        continue;
      }
      slots.push_back(reinterpret_cast<std::uintptr_t>(x.data));
      for (int d = 0; d < x.rank; ++d) {
        slots.push_back(static_cast<std::uint64_t>(x.extent[d]));
        f.extent[d] = {with_facts, x.extent[d], 1};
      }
      for (int d = 0; d < x.rank; ++d) {
        slots.push_back(static_cast<std::uint64_t>(x.stride[d]));
        f.stride[d] = {with_facts, x.stride[d], 1};
      }
    }
    const host_kernel code(g, facts);
    const std::uint32_t extents[3]{static_cast<std::uint32_t>(grid.x), static_cast<std::uint32_t>(grid.y), static_cast<std::uint32_t>(grid.z)};
    host_events events;
    const std::int64_t ctas = grid.x * grid.y * grid.z;
    for (std::int64_t first = 0; first < ctas; first += chunk)
      code.entry()(slots.data(), extents, first, std::min(ctas, first + chunk), code.arena(), &events);
    if (!events.asserts.empty()) throw std::runtime_error("a device_assert failed");
  };
}

} // namespace kiln_test
