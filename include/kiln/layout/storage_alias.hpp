// Several buffers in one storage: where each of them lies. An overlap tree says which buffers may share bytes (shared) and
// which are needed at the same time (distinct); group sizes say how many neighbouring slots of a buffer stand against one
// slot of another. From tree and sizes follow the offsets, by this rule alone; units are bytes, in tensor memory columns.
//
//   leaf:  size and alignment of one slot
//   group: alignment = the largest of its children
//          inner     = shared: the largest child;  distinct: the children one after the other, each aligned
//          pitch     = inner, aligned;  size = pitch * (group_size - 1) + inner
//   root:  slot = size, aligned;  total = slot * n, where every leaf has n * (product of group sizes on its path) slots
//
// Worked example: shared(Q 16384 x 2, distinct(P 8192 x 2, a 256 x 2)). The distinct group is 8448 long, the root 16384,
// aligned to 128: slot 16384. Q 0, 16384; P 0, 16384; a 8192, 24576; total 32768.
#pragma once
#include <cstdint>

namespace kiln {

/// What a group of an overlap tree promises about its elements.
enum class reuse : std::uint8_t {
  shared,   ///< they occupy the same storage at each index and are not in use at the same time
  distinct, ///< they are in use at the same time and lie apart
};

/// `count` neighbours, `pitch` from one to the next.
struct slot_radix {
  std::int32_t count = 1, pitch = 0;
  friend constexpr bool operator==(slot_radix const&, slot_radix const&) = default;
};

/// Where slot i of a buffer lies in its storage: a number in mixed radix, each digit with its own pitch.
struct slot_map {
  static constexpr int most_levels = 3;
  std::int32_t offset = 0; ///< of slot 0
  std::int32_t stride = 0; ///< between logical groups; without levels from slot to slot
  std::int32_t levels = 0;
  slot_radix radix[most_levels]{}; ///< outermost first
  constexpr std::int64_t at(std::int64_t i) const {
    std::int64_t a = offset;
    for (int j = levels - 1; j >= 0; --j) {
      a += i % radix[j].count * radix[j].pitch;
      i /= radix[j].count;
    }
    return a + i * stride;
  }
  friend constexpr bool operator==(slot_map const&, slot_map const&) = default;
};

/// One buffer of an overlap tree.
struct alias_leaf {
  std::int64_t size = 0; ///< of one slot
  std::int64_t alignment = 1;
  int slots = 1;
};

/// An overlap tree in preorder. Leaves are numbers; what they stand for is the caller's.
struct alias_tree {
  static constexpr int room = 48;
  struct entry {
    std::int32_t leaf = -1; ///< -1: a group
    reuse kind = reuse::shared;
    std::int32_t group_size = 1;
    std::int32_t span = 1; ///< entries of the subtree, itself included
  };
  int count = 0; ///< may exceed `room`: then the tree is too large, and only its beginning is here
  entry items[room]{};

  constexpr void add_leaf(int leaf) { put({leaf, reuse::shared, 1, 1}); }
  /// Opens a group; everything added until `close` is inside.
  constexpr int open(reuse kind, int group_size) {
    put({-1, kind, group_size, 1});
    return count - 1;
  }
  constexpr void close(int group) {
    if (group < room) items[group].span = count - group;
  }
  constexpr void append(alias_tree const& t) {
    for (int i = 0; i < t.count && i < room; ++i) put(t.items[i]);
  }

private:
  constexpr void put(entry e) {
    if (count < room) items[count] = e;
    ++count;
  }
};

/// Offsets of a tree's leaves, or why there are none.
struct alias_plan {
  enum class fault : std::uint8_t {
    none,
    too_large,    ///< more entries than `alias_tree::room`
    empty_group,  ///< a group without elements
    group_size,   ///< below 1
    repeated,     ///< `leaf` stands in the tree twice
    uneven,       ///< the slots of `leaf` are not a multiple of `product`
    groups_differ,///< `leaf` has `groups` logical groups, `other` has `other_groups`
    too_deep,     ///< more group sizes above 1 on one path than `slot_map::most_levels`
  };
  fault why = fault::none;
  int leaf = -1, other = -1;
  int product = 1;       ///< of the group sizes on the path of `leaf`
  int groups = 0;        ///< logical groups
  int other_product = 1, other_groups = 0;
  std::int64_t slot = 0, total = 0;
  std::int64_t alignment = 1;
  std::int64_t growth = 0; ///< by how much the slot exceeds the largest shared element at the root
  int leaves = 0;
  std::int32_t leaf_number[alias_tree::room]{};
  slot_map place[alias_tree::room]{}; ///< of leaf_number[i]
  constexpr bool ok() const { return why == fault::none; }
  /// The place of a leaf by its number; the tree contains it.
  constexpr slot_map const& of(int number) const {
    int i = 0;
    while (i + 1 < leaves && leaf_number[i] != number) ++i;
    return place[i];
  }
};

namespace detail {

constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

class alias_planner {
public:
  constexpr alias_planner(alias_tree const& t, alias_leaf const* leaves, alias_plan& out) : t_(t), leaves_(leaves), out_(out) {}

  constexpr void run() {
    if (t_.count > alias_tree::room) return fail(alias_plan::fault::too_large, -1);
    if (t_.count == 0) return fail(alias_plan::fault::empty_group, -1);
    count(0, 1, 0);
    if (!out_.ok()) return;
    measure(0);
    out_.alignment = alignment_[0];
    out_.slot = round_up(size_[0], alignment_[0]);
    out_.total = out_.slot * out_.groups;
    if (t_.items[0].leaf < 0 && t_.items[0].kind == reuse::shared) {
      std::int64_t first = size_[1];
      if (t_.items[0].group_size == 1 && first < out_.slot) out_.growth = out_.slot - first;
    }
    slot_map m;
    m.stride = static_cast<std::int32_t>(out_.slot);
    place(0, 0, m);
  }

private:
  constexpr void fail(alias_plan::fault f, int leaf) {
    if (!out_.ok()) return;
    out_.why = f;
    out_.leaf = leaf;
  }
  constexpr void count(int e, int product, int levels) {
    alias_tree::entry const& x = t_.items[e];
    if (x.leaf >= 0) {
      for (int i = 0; i < out_.leaves; ++i)
        if (out_.leaf_number[i] == x.leaf) return fail(alias_plan::fault::repeated, x.leaf);
      int const slots = leaves_[x.leaf].slots, groups = slots / product;
      if (groups * product != slots) {
        fail(alias_plan::fault::uneven, x.leaf);
        out_.product = product;
        return;
      }
      if (out_.leaves > 0 && groups != out_.groups) {
        fail(alias_plan::fault::groups_differ, out_.leaf_number[0]);
        out_.product = first_product_;
        out_.other = x.leaf;
        out_.other_product = product;
        out_.other_groups = groups;
        return;
      }
      if (out_.leaves == 0) first_product_ = product;
      out_.groups = groups;
      out_.leaf_number[out_.leaves++] = x.leaf;
      return;
    }
    if (x.span < 2) return fail(alias_plan::fault::empty_group, -1);
    if (x.group_size < 1) return fail(alias_plan::fault::group_size, -1);
    if (x.group_size > 1 && ++levels > slot_map::most_levels) return fail(alias_plan::fault::too_deep, -1);
    for (int c = e + 1; c < e + x.span && out_.ok(); c += t_.items[c].span) count(c, product * x.group_size, levels);
  }
  constexpr void measure(int e) {
    alias_tree::entry const& x = t_.items[e];
    if (x.leaf >= 0) {
      size_[e] = leaves_[x.leaf].size;
      alignment_[e] = leaves_[x.leaf].alignment;
      return;
    }
    std::int64_t inner = 0, a = 1;
    for (int c = e + 1; c < e + x.span; c += t_.items[c].span) {
      measure(c);
      if (alignment_[c] > a) a = alignment_[c];
      if (x.kind == reuse::distinct)
        inner = round_up(inner, alignment_[c]) + size_[c];
      else if (size_[c] > inner)
        inner = size_[c];
    }
    alignment_[e] = a;
    pitch_[e] = round_up(inner, a);
    size_[e] = pitch_[e] * (x.group_size - 1) + inner;
  }
  constexpr void place(int e, std::int64_t offset, slot_map m) {
    alias_tree::entry const& x = t_.items[e];
    if (x.leaf >= 0) {
      m.offset = static_cast<std::int32_t>(offset);
      int i = 0;
      while (out_.leaf_number[i] != x.leaf) ++i;
      out_.place[i] = m;
      return;
    }
    if (x.group_size > 1) m.radix[m.levels++] = {x.group_size, static_cast<std::int32_t>(pitch_[e])};
    for (int c = e + 1; c < e + x.span; c += t_.items[c].span) {
      if (x.kind == reuse::distinct) offset = round_up(offset, alignment_[c]);
      place(c, offset, m);
      if (x.kind == reuse::distinct) offset += size_[c];
    }
  }

  alias_tree const& t_;
  alias_leaf const* leaves_;
  alias_plan& out_;
  int first_product_ = 1;
  std::int64_t size_[alias_tree::room]{}, alignment_[alias_tree::room]{}, pitch_[alias_tree::room]{};
};

} // namespace detail

/// Offsets of a tree. `leaves` is indexed by the tree's leaf numbers.
///
/// Guaranteed: slots of different logical groups never overlap; within one group, leaves whose lowest common group is
/// distinct never overlap, those whose lowest common group is shared start at one offset, and the slots of one leaf lie apart.
/// Errors: alias_plan::fault.
constexpr alias_plan plan_aliases(alias_tree const& tree, alias_leaf const* leaves) {
  alias_plan p;
  detail::alias_planner(tree, leaves, p).run();
  return p;
}

/// Whether a plan keeps what it guarantees of distinct leaves: that no byte belongs to two. If not, `a` and `b` are their numbers.
constexpr bool keeps_apart(alias_tree const& tree, alias_plan const& p, alias_leaf const* leaves, int& a, int& b) {
  for (int i = 0; i < tree.count; ++i)
    for (int j = i + 1; j < tree.count && tree.items[i].leaf >= 0; ++j) {
      if (tree.items[j].leaf < 0) continue;
      int common = i;
      while (common + tree.items[common].span <= j) --common; // the innermost group with both
      if (tree.items[common].kind != reuse::distinct) continue;
      a = tree.items[i].leaf;
      b = tree.items[j].leaf;
      slot_map const &x = p.of(a), &y = p.of(b);
      for (int s = 0; s < leaves[a].slots; ++s)
        for (int t = 0; t < leaves[b].slots; ++t)
          if (x.at(s) < y.at(t) + leaves[b].size && y.at(t) < x.at(s) + leaves[a].size) return false;
    }
  return true;
}

} // namespace kiln
