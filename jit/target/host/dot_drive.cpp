// The driver of the blocked product. For each group of CTAs: which operands they have (CTAs with equal keys share a
// panel), then K block by K block pack every panel once and run the micro-kernel over all pairs of panels that a CTA
// asks for, at last the rest of each CTA.
//
// Nothing but speed depends on how CTAs are grouped: what a panel holds is evaluated from the program id of the first
// CTA that needs it, and another CTA takes it only if all scalars that decide its contents are equal.
#include "dot_drive.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace kiln::jit::host {

namespace {

using i64 = std::int64_t;
using u64 = std::uint64_t;

// A kernel's numbers may be anything, and wrap around as its own arithmetic does.
i64 add(i64 x, i64 y) { return static_cast<i64>(static_cast<u64>(x) + static_cast<u64>(y)); }
i64 sub(i64 x, i64 y) { return static_cast<i64>(static_cast<u64>(x) - static_cast<u64>(y)); }
i64 mul(i64 x, i64 y) { return static_cast<i64>(static_cast<u64>(x) * static_cast<u64>(y)); }

// A row of what can be added to any sum without changing it, as wide as any micro-kernel: by 0 for integers, -0. for floats
// of 4 and of 8 bytes (+0. would change -0.).
struct alignas(64) nothing {
  std::uint32_t word[widest_strip / 4]{};
  constexpr nothing(std::uint32_t even, std::uint32_t odd) {
    for (int i = 0; i < widest_strip / 4; ++i) word[i] = i % 2 ? odd : even;
  }
};
constexpr nothing nothings[]{{0, 0}, {0x80000000u, 0x80000000u}, {0, 0x80000000u}};

char* bytes(void* p, i64 offset) { return static_cast<char*>(p) + offset; }

class driver {
public:
  driver(dot_plan const& plan, u64 const* slots, std::uint32_t const* grid, i64 last, void* arena, void* runtime)
      : p(plan), n(plan.numbers), slots_(slots), grid_(grid), last_(last), arena_(arena), runtime_(runtime) {
    auto* const scratch = bytes(arena, n.scratch);
    auto* next = reinterpret_cast<i64*>(scratch);
    const auto column = [&](i64 length) { return std::exchange(next, next + length); };
    ctas_ = column(n.group), rows_ = column(n.group), columns_ = column(n.group);
    for (side* s : {&a_, &b_}) {
      s->plan = s == &a_ ? &n.a : &n.b;
      s->pack = s == &a_ ? p.pack_a : p.pack_b;
      s->owners = column(n.group), s->chosen = column(n.group);
      s->keys = column(n.group * s->plan->keys);
    }
    here_ = column(n.numbers), there_ = column(n.numbers);
    a_.panels = scratch + n.table_bytes;
    b_.panels = a_.panels + n.group * n.a.panel_bytes;
    accumulators_ = b_.panels + n.group * n.b.panel_bytes;
  }

  void run(i64 first) {
    if (first < last_) number(first);
    while (first < last_) {
      const i64 count = gather(first);
      product(count);
      for (i64 i = 0; i < count; ++i) p.rest(slots_, grid_, ctas_[i], accumulators(i), arena_, runtime_);
      first += count;
    }
  }

private:
  struct side {
    dot_side_plan const* plan;
    dot_pack_function* pack;
    char* panels;
    i64 *owners;  // by panel: a CTA that has it
    i64 *chosen;  // by CTA of the group: its panel
    i64 *keys;    // by panel, `plan->keys` of each
    i64 count;    // panels
  };

  i64 const* place(i64 cta, i64 index, i64* to) {
    p.place(slots_, grid_, cta, index, to);
    return to;
  }
  char* accumulators(i64 i) { return accumulators_ + i * n.accumulator_bytes; }

  // How tiles are numbered: the first CTA says it for all.
  void number(i64 cta) {
    if (!n.numbered || n.group == 1) return;
    i64 const* v = place(cta, 0, here_);
    const i64 total = i64{grid_[0]} * grid_[1] * grid_[2];
    wide_ = (n.columns_known ? v[columns_of_tiles] : i64{grid_[0]}) / n.walked;
    const bool usable = wide_ > 0;
    wide_ = usable ? wide_ : 1;
    high_ = n.rows_known ? v[rows_of_tiles] : total / wide_;
    if (!usable || high_ < 0 || high_ > total / wide_) high_ = 0;
  }

  // The CTA that number i of the launch stands for. Tiles are taken in bands of rows, column by column, and within whole
  // blocks of `group` tiles quarter by quarter, so that any aligned part of a block is about square too. This is a
  // permutation of the tiles whatever high_ and wide_ are, as long as there are that many CTAs; the rest stay.
  i64 renumbered(i64 i) const {
    if (i >= high_ * wide_) return i;
    const i64 band = n.band, wide = std::max<i64>(1, n.group / band), in_band = wide_ * band;
    const i64 first = i / in_band * band, within = i % in_band;
    const i64 height = std::max<i64>(std::min(high_ - first, band), 1);
    i64 row = within % height, column = within / height;
    if (const i64 left = within / (band * wide) * wide; std::has_single_bit(static_cast<u64>(band)) && std::has_single_bit(static_cast<u64>(wide)) && height == band && left + wide <= wide_) {
      i64 bits = within;
      row = column = 0;
      for (i64 x = 1; x < std::max(band, wide); x *= 2) {
        if (x < band) row |= (bits & 1) * x, bits >>= 1;
        if (x < wide) column |= (bits & 1) * x, bits >>= 1;
      }
      column += left;
    }
    row += first;
    if (n.walked == 1) return row * wide_ + column;
    const i64 top = row / n.walked * n.walked, rows = std::max<i64>(std::min(high_ - top, n.walked), 1);
    return top * wide_ + column * rows + row - top;
  }

  // Fills the tables for the CTAs from number `base` on; returns how many there are: all with the same loop bounds.
  i64 gather(i64 base) {
    i64 limit = std::min(last_ - base, n.group);
    if (high_ > 0) limit = std::min(limit, wide_ * n.band - base % (wide_ * n.band)); // not into the next band: its rows are others
    a_.count = b_.count = 0;
    i64 count = 0;
    for (; count < limit; ++count) {
      const i64 cta = renumbered(base + count);
      i64 const* v = place(cta, 0, here_);
      if (count == 0) std::copy_n(v + loop_low, 3, bounds_);
      else if (!std::equal(bounds_, bounds_ + 3, v + loop_low)) break;
      ctas_[count] = cta;
      rows_[count] = v[rows_that_count];
      columns_[count] = v[columns_that_count] * n.element_bytes;
      choose(a_, count, cta, v + n.a.first_key);
      choose(b_, count, cta, v + n.b.first_key);
    }
    return count;
  }

  // The panel with these keys, a new one if there is none.
  void choose(side& s, i64 i, i64 cta, i64 const* keys) {
    const i64 length = s.plan->keys;
    i64 found = 0;
    while (found < s.count && !std::equal(keys, keys + length, s.keys + found * length)) ++found;
    s.chosen[i] = found;
    if (found < s.count) return;
    s.owners[found] = cta;
    std::copy_n(keys, length, s.keys + found * length);
    ++s.count;
  }

  // How often the loop runs.
  i64 trips() const {
    const auto [low, high, step] = bounds_;
    // ceil((to - from) / by) of non-negative numbers.
    const auto steps = [](i64 from, i64 to, i64 by) {
      return static_cast<i64>((static_cast<u64>(to) - static_cast<u64>(from) + static_cast<u64>(by) - 1) / static_cast<u64>(by));
    };
    if (step > 0 && (n.is_signed ? low < high : static_cast<u64>(low) < static_cast<u64>(high))) return steps(low, high, step);
    if (n.is_signed && step < 0 && low > high) return steps(high, low, sub(0, step));
    return 0;
  }

  // Packs iterations [t0, t1) of one panel. Iterations whose boxes lie side by side along k are one box.
  void pack(side& s, i64 panel, i64 t0, i64 t1) {
    dot_side_plan const& d = *s.plan;
    const auto box_of = [&](i64 t, i64* to) {
      return place(s.owners[panel], add(bounds_[0], mul(sub(t, d.lead), bounds_[2])), to) + d.starts;
    };
    const i64 starts = d.pointers ? 1 + d.row_limits + d.k_limits : d.rank;
    for (i64 t = t0, length = 0; t < t1; t += length) {
      i64 const* box = box_of(t, here_);
      const i64 k_step = d.pointers ? box[starts + 1] : 0;
      // What start i is n iterations later if the boxes lie side by side.
      const auto expected = [&](i64 i, i64 iterations) {
        const i64 k = mul(iterations, n.k);
        if (!d.pointers) return i == d.k_axis ? add(box[i], k) : box[i];
        if (i == 0) return add(box[i], mul(k, k_step));
        return i <= d.row_limits ? box[i] : sub(box[i], k);
      };
      length = d.adjacent ? t1 - t : 1;
      for (; t + length < t1; ++length) {
        i64 const* next = box_of(t + length, there_);
        i64 same = 0;
        while (same < starts && next[same] == expected(same, length)) ++same;
        if (same < starts) break;
      }
      pack_box(s, box, length * n.k, s.panels + panel * d.panel_bytes + (t - t0) * n.k_tile * d.k_bytes);
    }
  }

  void pack_box(side& s, i64 const* box, i64 k, char* to) {
    dot_side_plan const& d = *s.plan;
    const auto slot = [&](i64 i) { return static_cast<i64>(slots_[d.slot + i]); };
    const i64 size[2]{d.rows, k};
    i64 low[2]{}, high[2]{d.rows, k}, step[2]{}, offset = 0;
    if (d.pointers) {
      offset = box[0];
      i64 const* limit = box + 1;
      for (i64 i = 0; i < d.row_limits; ++i) high[0] = std::min(high[0], std::max<i64>(*limit++, 0));
      for (i64 i = 0; i < d.k_limits; ++i) high[1] = std::min(high[1], std::max<i64>(*limit++, 0));
      step[0] = limit[0], step[1] = limit[1];
    } else {
      // What of the box is in bounds: [low, high) on both axes, nothing if another axis is out of bounds.
      bool inside = true;
      for (i64 axis = 0; axis < d.rank; ++axis) {
        const i64 extent = slot(1 + axis), stride = slot(1 + d.rank + axis), start = box[axis];
        offset = add(offset, mul(start, stride));
        if (axis != d.row_axis && axis != d.k_axis) {
          inside = inside && start >= 0 && start < extent;
          continue;
        }
        const int side_of = axis == d.k_axis;
        step[side_of] = stride;
        low[side_of] = std::min(std::max<i64>(sub(0, start), 0), size[side_of]);
        high[side_of] = std::max(std::min(sub(extent, start), size[side_of]), low[side_of]);
      }
      if (!inside) high[0] = low[0];
    }
    // The address of the box may lie outside the array where a part of it does.
    const u64 source = static_cast<u64>(slot(0)) + static_cast<u64>(mul(offset, d.element_bytes));
    s.pack(to, reinterpret_cast<void const*>(source), step[0], step[1], low[0], high[0], low[1], high[1], k);
  }

  void product(i64 count) {
    const i64 trips = this->trips();
    if (trips == 0) std::memset(accumulators_, 0, static_cast<std::size_t>(count * n.accumulator_bytes));
    for (i64 t0 = 0; t0 < trips; t0 += n.steps) {
      const i64 t1 = std::min(t0 + n.steps, trips), units = (t1 - t0) * n.k_tile;
      for (side* s : {&a_, &b_})
        for (i64 i = 0; i < s->count; ++i) pack(*s, i, t0, t1);
      for (i64 panel = 0; panel < b_.count; ++panel)
        for (i64 strip = 0; strip < n.strips + n.last_strip; ++strip) strip_of_b(count, panel, strip, units, t0 == 0);
    }
  }

  // One strip of b's columns against every a that a CTA multiplies it with.
  void strip_of_b(i64 count, i64 panel, i64 strip, i64 units, bool first) {
    char const* const from = b_.panels + panel * n.b.panel_bytes + strip * n.strip_bytes;
    const i64 column = strip * n.strip_columns;
    const int last = strip == n.strips;
    void const* const none = nothings[!n.is_float ? 0 : n.element_bytes == 4 ? 1 : 2].word;
    const i64 old_row_bytes = first ? 0 : n.row_bytes;
    for (i64 i = 0; i < count; ++i) {
      if (b_.chosen[i] != panel || column >= columns_[i]) continue;
      char const* const a = a_.panels + a_.chosen[i] * n.a.panel_bytes;
      char* const acc = accumulators(i) + column;
      const auto block = [&](dot_micro_function* f, i64 row) {
        char* const to = acc + row * n.row_bytes;
        f(a + row * n.a_row_bytes, from, to, units, first ? none : to, old_row_bytes);
      };
      for (i64 row = 0, whole = std::min(rows_[i], n.whole); row < whole; row += n.mr) block(p.micro[0][last], row);
      if (rows_[i] > n.whole) block(p.micro[1][last], n.whole);
    }
  }

  dot_plan const& p;
  dot_numbers const& n;
  u64 const* slots_;
  std::uint32_t const* grid_;
  i64 last_;
  void *arena_, *runtime_;
  side a_{}, b_{};
  i64 *ctas_, *rows_, *columns_, *here_, *there_;
  char* accumulators_;
  i64 bounds_[3]{};         // low, high, step
  i64 wide_ = 1, high_ = 0; // tiles in a row, and rows, as far as they are numbered in a known way
};

} // namespace

void drive_dot(dot_plan const* plan, u64 const* slots, std::uint32_t const* grid, i64 first, i64 last, void* arena, void* runtime) {
  driver(*plan, slots, grid, last, arena, runtime).run(first);
}

} // namespace kiln::jit::host
