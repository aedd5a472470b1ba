// Choices, with what was measured for them in bench/NOTES.md.
#include "dot_recipe.hpp"

#include "dot_drive.hpp"

#include <algorithm>
#include <cstdlib>

namespace kiln::jit::host {

namespace {

std::int64_t round_up(std::int64_t x, std::int64_t to) { return (x + to - 1) / to * to; }

struct shape_of_kernel {
  int mr, nv;
};

// Rows and vectors of the micro-kernel whose work for an m x n tile is least. Accumulators, one row of b and (without
// memory operands) one broadcast and one product must fit the registers.
shape_of_kernel choose_kernel(int m, int n, int lanes, dot_cpu const& cpu) {
  const int vectors = (n + lanes - 1) / lanes;
  shape_of_kernel best{1, 1};
  double least = 1e30;
  for (int nv = 1; nv <= std::min(most_strip_vectors, vectors); ++nv) {
    const int spare = cpu.fma ? 1 : 2;
    for (int mr = 1; mr <= std::min(14, m); ++mr) {
      const int accumulators = mr * nv;
      if (accumulators + nv + spare > cpu.registers) break;
      // Cycles per k: two fused multiply-adds, two loads a cycle; four cycles until a sum can be used again. The last term
      // is what was measured beyond that: loads are not free even where they are not the bound.
      const auto cycles = [](int rows, int columns) {
        const double products = rows * columns / 2.0, loads = (rows + columns) / 2.0;
        return std::max({products, loads, 4.0}) + 0.25 * (rows + columns);
      };
      const int rows = m % mr, columns = vectors % nv;
      double cost = (m / mr) * (vectors / nv) * cycles(mr, nv);
      if (rows) cost += (vectors / nv) * cycles(rows, nv);
      if (columns) cost += (m / mr) * cycles(mr, columns);
      if (rows && columns) cost += cycles(rows, columns);
      if (cost < least - 1e-9) {
        least = cost;
        best = {mr, nv};
      }
    }
  }
  return best;
}

// The axis along which an operand's memory is dense, as far as is known; k_axis unless the facts say otherwise.
int unit_axis(graph_view const& g, dot_source const& s, specialisation const& facts) {
  if (s.pointers.base >= 0) {
    if (s.unit_step(s.k_axis)) return s.k_axis;
    return s.unit_step(s.row_axis) ? s.row_axis : std::max(s.row_axis, s.k_axis);
  }
  const int param = static_cast<int>(g.attribute(g.operand(s.address, 0), 0));
  const auto& f = facts.params[static_cast<std::size_t>(param)];
  const auto unit = [&](int axis) { return f.stride[axis].constant && f.stride[axis].value == 1; };
  const auto not_unit = [&](int axis) { return f.stride[axis].constant && f.stride[axis].value != 1; };
  const int last = std::max(s.row_axis, s.k_axis), first = std::min(s.row_axis, s.k_axis);
  return unit(first) || (not_unit(last) && !unit(last)) ? first : last;
}

} // namespace

std::int64_t dot_recipe::a_stride(dot_loop const& d) const {
  // A little more than a power of two: rows of a micro-kernel must not meet in the same set of the first-level cache.
  const std::int64_t line = 64 / element_bytes;
  return (a_by_k ? round_up(d.m, line) : round_up(k_block, line)) + line;
}
std::int64_t dot_recipe::a_bytes(dot_loop const& d) const {
  return round_up((a_by_k ? k_block : d.m) * a_stride(d) * element_bytes, 4096) + 64;
}
std::int64_t dot_recipe::b_bytes(dot_loop const& d) const {
  return round_up(static_cast<std::int64_t>(strips(d.n)) * nr() * k_block * element_bytes, 4096) + 64;
}
std::int64_t dot_recipe::accumulator_bytes(dot_loop const& d) const {
  return round_up(static_cast<std::int64_t>(d.m) * d.n * element_bytes, 64);
}
std::int64_t dot_recipe::table_bytes(dot_loop const& d) const {
  const auto keys = static_cast<std::int64_t>(d.a.keys.size() + d.b.keys.size());
  std::int64_t numbers = first_dot_key + keys;
  for (dot_source const* s : {&d.a, &d.b})
    numbers += s->pointers.base < 0 ? max_rank : static_cast<std::int64_t>(3 + s->pointers.limits[0].size() + s->pointers.limits[1].size());
  // CTA, its a, its b, its rows and columns; per panel: CTA, keys; numbers of two places.
  return round_up(8 * (group * (5 + 2 + keys) + 2 * numbers), 4096);
}
std::int64_t dot_recipe::arena_bytes(dot_loop const& d) const {
  return table_bytes(d) + group * (a_bytes(d) + b_bytes(d) + accumulator_bytes(d));
}

dot_recipe choose_dot_recipe(graph_view const& g, dot_loop const& d, specialisation const& facts, dot_cpu const& cpu) {
  dot_recipe r;
  r.compute = d.accumulator;
  r.element_bytes = static_cast<int>(bytes_of(r.compute));
  r.pairs = d.type == dtype::i8 && d.k % 2 == 0 && cpu.pairs;
  r.lanes = std::max(1, cpu.vector_bits / 8 / r.element_bytes);
  const shape_of_kernel k = choose_kernel(d.m, d.n, r.lanes, cpu);
  r.mr = k.mr;
  r.nv = k.nv;
  r.k_tile = r.pairs ? d.k / 2 : d.k;
  r.unroll = r.k_tile % 2 == 0 ? 2 : 1;
  const int k_bytes = 1024; // of a panel row
  r.steps = std::max(1, k_bytes / r.element_bytes / r.k_tile);
  r.k_block = r.steps * r.k_tile;
  r.a_unit_k = unit_axis(g, d.a, facts) == d.a.k_axis;
  r.a_by_k = !r.a_unit_k;
  r.b_unit_n = unit_axis(g, d.b, facts) == d.b.row_axis;
  // About 512 x 512 outputs of 4 bytes.
  r.group = static_cast<int>(std::clamp<std::int64_t>((std::int64_t{1} << 20) / r.element_bytes / (std::int64_t{d.m} * d.n), 1, 256));
  const std::int64_t most = (std::int64_t{16} << 20) / (r.a_bytes(d) + r.b_bytes(d)); // panels of 16 MB at most
  r.group = static_cast<int>(std::clamp<std::int64_t>(most, 1, r.group));
  r.band = std::clamp(512 / d.m, 1, r.group);
  return r;
}

} // namespace kiln::jit::host
