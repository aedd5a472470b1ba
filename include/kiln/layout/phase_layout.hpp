// Where an allocator that knows lifetimes puts its allocations: one after the other in the order in which they were added, and
// those of different phases of an alias group at one place. Plain constexpr values; the kernel side is dsl/allocator.hpp.
//
//   single a : offset = up(cursor, alignment);  cursor = offset + size
//   group    : base = up(cursor, largest alignment of its members); every phase starts at base; cursor = the longest phase's end
//
// A group stands where the first of its members was added. Worked example: a 100 byte single, then {a 1000 at 128, b 64 at
// 128} | {c 1500 at 256}: base 256; a 256, b 1280; c 256; end 1756.
#pragma once
#include <kiln/layout/storage_alias.hpp>

namespace kiln::detail {

struct phase_layout {
  static constexpr int most_items = 64, most_groups = 16;
  struct item {
    char const* name = "";
    std::int64_t size = 0, alignment = 1;
    std::int64_t* result = nullptr; ///< the allocation's own offset; also its identity
    std::int64_t offset = -1;
    std::int32_t group = -1, phase = 0;
  };
  item items[most_items]{};
  int count = 0, groups = 0;
  std::int64_t bytes = 0, alignment = 1;
  bool done = false;

  constexpr int find(std::int64_t const* identity) const {
    for (int i = 0; i < count; ++i)
      if (items[i].result == identity) return i;
    return -1;
  }

  /// `reorder`: larger alignments first, then larger sizes, else the order of adding.
  constexpr void compute(bool reorder) {
    std::int32_t order[most_items]{}; // first members of groups, and singles
    int n = 0;
    for (int i = 0; i < count; ++i) {
      bool first = true;
      for (int j = 0; j < i && items[i].group >= 0; ++j) first = first && items[j].group != items[i].group;
      if (first) order[n++] = i;
    }
    if (reorder)
      for (int i = 1; i < n; ++i)
        for (int j = i; j > 0 && before(order[j], order[j - 1]); --j) {
          std::int32_t const t = order[j];
          order[j] = order[j - 1];
          order[j - 1] = t;
        }
    for (int i = 0; i < n; ++i) {
      int const x = order[i];
      bytes = round_up(bytes, alignment_of(x));
      bytes = place(x, bytes, true);
      if (alignment_of(x) > alignment) alignment = alignment_of(x);
    }
    for (int i = 0; i < count; ++i) *items[i].result = items[i].offset;
    done = true;
  }

private:
  constexpr bool before(int a, int b) const {
    if (alignment_of(a) != alignment_of(b)) return alignment_of(a) > alignment_of(b);
    phase_layout scratch = *this; // sizes of groups
    return scratch.place(a, 0, false) > scratch.place(b, 0, false);
  }
  constexpr std::int64_t alignment_of(int x) const {
    std::int64_t a = items[x].alignment;
    for (int i = 0; i < count && items[x].group >= 0; ++i)
      if (items[i].group == items[x].group && items[i].alignment > a) a = items[i].alignment;
    return a;
  }
  /// Places x, or its whole group, from `base` on; the end.
  constexpr std::int64_t place(int x, std::int64_t base, bool keep) {
    if (items[x].group < 0) {
      if (keep) items[x].offset = base;
      return base + items[x].size;
    }
    std::int64_t end = base;
    int phases = 0;
    for (int i = 0; i < count; ++i)
      if (items[i].group == items[x].group && items[i].phase >= phases) phases = items[i].phase + 1;
    for (int p = 0; p < phases; ++p) {
      std::int64_t at = base;
      for (int i = 0; i < count; ++i) {
        if (items[i].group != items[x].group || items[i].phase != p) continue;
        at = round_up(at, items[i].alignment);
        if (keep) items[i].offset = at;
        at += items[i].size;
      }
      if (at > end) end = at;
    }
    return end;
  }
};

} // namespace kiln::detail
