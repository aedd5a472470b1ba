// Which parts of different buffers have bytes in common: what the hazard simulation needs where buffers share storage. It knows
// atoms (see program.hpp); here an atom is a box of bytes, and two atoms are peers when a byte belongs to both.
#pragma once
#include <kiln/graph/local_layout.hpp>
#include <kiln/validate/program.hpp>

namespace kiln::detail {

/// Bytes of an atom: `run` bytes at every point of a grid. Contiguous axes are part of the run.
struct byte_box {
  std::int64_t base, run;
  int axes; ///< outermost first
  std::int64_t extent[max_rank], stride[max_rank];

  /// An axis outside of those that are there.
  constexpr void add_axis(std::int64_t count, std::int64_t step) {
    for (int j = axes; j > 0; --j) {
      extent[j] = extent[j - 1];
      stride[j] = stride[j - 1];
    }
    extent[0] = count;
    stride[0] = step;
    ++axes;
  }
  constexpr std::int64_t end() const {
    std::int64_t e = base + run;
    for (int d = 0; d < axes; ++d) e += (extent[d] - 1) * stride[d];
    return e;
  }
  constexpr std::int64_t runs() const {
    std::int64_t n = 1;
    for (int d = 0; d < axes; ++d) n *= extent[d];
    return n;
  }
  /// Whether a byte of [lo, hi) is in the box; looks only at indices whose bytes can be.
  constexpr bool meets(std::int64_t lo, std::int64_t hi, int level = 0, std::int64_t at = 0) const {
    if (level == 0) at = base;
    if (level >= axes || level >= max_rank) return at < hi && at + run > lo;
    std::int64_t inner = run;
    for (int d = level + 1; d < axes; ++d) inner += (extent[d] - 1) * stride[d];
    std::int64_t const before = lo - inner - at; // the last start whose bytes all lie below lo
    std::int64_t first = before < 0 ? 0 : before / stride[level] + 1, last = hi - 1 - at;
    if (last < 0) return false;
    last /= stride[level];
    if (last >= extent[level]) last = extent[level] - 1;
    for (; first <= last; ++first)
      if (meets(lo, hi, level + 1, at + first * stride[level])) return true;
    return false;
  }
};

constexpr bool overlap(byte_box const& a, byte_box const& b, int level = 0, std::int64_t at = 0) {
  if (level == 0) at = a.base;
  if (level >= a.axes || level >= max_rank) return b.meets(at, at + a.run);
  for (std::int64_t i = 0; i < a.extent[level]; ++i)
    if (overlap(a, b, level + 1, at + i * a.stride[level])) return true;
  return false;
}

/// The bytes of atom k of buffer b, within its storage.
constexpr byte_box bytes_of_atom(graph_view const& g, local_form const& f, atom_grid const& grid, int b, int k) {
  int cell = (k - grid.first) % grid.per_slot;
  byte_box r{};
  if (slot_layout const& l = f.layout; !l.plain()) {
    r.base = f.slots.at((k - grid.first) / grid.per_slot);
    r.run = f.bytes;
    if (l.bits > 0 || l.paddings > 0 || l.bases > 0) return r; // its bytes may lie anywhere in the slot
    std::int64_t const size = bytes_of(g.buffer(b).type);
    r.base += l.offset * size;
    r.run = size;
    bool done[slot_layout::most_modes]{};
    for (int n = 0; n < l.modes; ++n) { // the whole slot, the smallest stride first
      int least = -1;
      for (int i = 0; i < l.modes; ++i)
        if (!done[i] && (least < 0 || l.mode[i].stride < l.mode[least].stride)) least = i;
      done[least] = true;
      std::int64_t const step = l.mode[least].stride * size;
      if (step == 0 || l.mode[least].extent == 1) continue;
      if (r.axes == 0 && step <= r.run)
        r.run += (l.mode[least].extent - 1) * step;
      else
        r.add_axis(l.mode[least].extent, step);
    }
    return r;
  }
  r.base = f.slots.at((k - grid.first) / grid.per_slot);
  if (grid.per_slot == 1) { // the whole slot
    bool packed = true;
    std::int64_t size = bytes_of(g.buffer(b).type);
    for (int d = grid.rank - 1; d >= 0; size *= grid.size[d--]) packed = packed && (f.stride[d] == size || grid.size[d] == 1);
    if (packed) {
      r.run = size;
      return r;
    }
  }
  r.run = bytes_of(g.buffer(b).type);
  std::int64_t start[max_rank]{};
  for (int d = grid.rank - 1; d >= 0; --d) {
    start[d] = static_cast<std::int64_t>(cell % grid.count[d]) * grid.size[d];
    cell /= grid.count[d];
    r.base += start[d] * f.stride[d];
  }
  for (int d = grid.rank - 1; d >= 0; --d) {
    if (grid.size[d] == 1) continue;
    if (r.axes == 0 && f.stride[d] <= r.run) {
      r.run += (grid.size[d] - 1) * f.stride[d];
      continue;
    }
    r.add_axis(grid.size[d], f.stride[d]);
  }
  return r;
}

/// Peers of every atom. Empty where no two buffers share storage.
struct atom_peers {
  vec<std::int32_t> first; ///< of an atom: index into `atoms`; one more than there are atoms
  vec<std::int32_t> atoms;
  vec<bool> shared;        ///< of a buffer: it may have peers
  bool complete = true;    ///< false: too many to compare; kiln::check sees every byte
  constexpr bool any() const { return !atoms.empty(); }
};

constexpr int buffer_of_atom(sim_program const& p, int k) {
  int b = p.grids.size() - 1;
  while (b > 0 && p.grids[b].first > k) --b;
  return b;
}

constexpr void find_peers(graph_view const& g, sim_program const& p, atom_peers& out) {
  int const buffers = static_cast<int>(g.buffers.size());
  bool shares = false;
  for (int b = 0; b < buffers; ++b) shares = shares || g.storage_of(b) != b;
  if (!shares) return;
  vec<bool> used;
  for (int b = 0; b < buffers; ++b) used.add() = out.shared.add() = false;
  for (int i = 0; i < p.boxes.size(); ++i)
    if (p.boxes[i].used) used[p.boxes[i].buffer] = true;
  for (int a = 0; a < buffers; ++a)
    for (int b = 0; b < a && used[a]; ++b)
      if (used[b] && g.storage_of(a) == g.storage_of(b)) out.shared[a] = out.shared[b] = true;
  // Boxes of the atoms that matter.
  vec<byte_box> boxes;
  boxes.reserve(p.cta_atoms);
  boxes.add_some(p.cta_atoms);
  for (int b = 0; b < buffers; ++b) {
    if (!out.shared[b]) continue;
    local_form const f = local_form_of(g, b);
    for (int k = p.grids[b].first, n = p.grids[b].per_slot * g.buffer(b).slots; n > 0; --n, ++k) boxes[k] = bytes_of_atom(g, f, p.grids[b], b, k);
  }
  constexpr int most = 12000; // comparisons
  int compared = 0;
  for (int a = 0; a < buffers; ++a) {
    atom_grid const& x = p.grids[a];
    int const cells = x.per_slot * g.buffer(a).slots;
    if (!out.shared[a]) {
      for (std::int32_t *first = out.first.add_some(cells), *end = first + cells; first != end; ++first) *first = out.atoms.size();
      continue;
    }
    for (int k = x.first, n = cells; n > 0; --n, ++k) {
      out.first.add() = out.atoms.size();
      for (int b = 0; b < buffers; ++b) {
        if (b == a || !out.shared[b] || g.storage_of(a) != g.storage_of(b)) continue;
        atom_grid const& y = p.grids[b];
        for (int j = y.first, m = y.per_slot * g.buffer(b).slots; m > 0; --m, ++j) {
          byte_box const &s = boxes[k], &t = boxes[j];
          if (++compared > most) {
            out.complete = false;
            while (out.first.size() <= p.cta_atoms) out.first.add() = out.atoms.size();
            return;
          }
          if (s.axes + t.axes == 0) {
            if (s.base < t.base + t.run && t.base < s.base + s.run) out.atoms.add() = j;
            continue;
          }
          if (s.base >= t.end() || t.base >= s.end()) continue;
          bool const swap = s.runs() > t.runs();
          compared += static_cast<int>(swap ? t.runs() : s.runs());
          if (overlap(swap ? t : s, swap ? s : t)) out.atoms.add() = j;
        }
      }
    }
  }
  out.first.add() = out.atoms.size();
}

} // namespace kiln::detail
