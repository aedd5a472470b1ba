// A forward analysis over structured control flow. The state is what has been accessed since the last barrier; a
// conflicting access gets a barrier, which empties it. Late placement leaves the fewest barriers in straight code;
// around loops a second look removes those that a later one made superfluous.
#include "insert_barriers.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace kiln::jit {

namespace {

using kind = local_event::kind;

struct pending {
  int event;
  int shift; ///< how far the ring symbol has moved on since; -1: its loop was left, and offsets compare with nothing
  auto operator<=>(pending const&) const = default;
};
using pending_set = std::set<pending>;

struct state {
  pending_set reads, writes; ///< since the last barrier
  pending_set flying;        ///< copies not known to have landed
  pending_set leaving;       ///< copies out of local memory that are not waited for
  bool active = false;       ///< since the last barrier some thread did what a release must follow
  bool fenced = false;       ///< since the last barrier threads made fences
  bool reachable = true;
  friend bool operator==(state const&, state const&) = default;
};

void join(state& a, state const& b) {
  if (!b.reachable) return;
  if (!a.reachable) {
    a = b;
    return;
  }
  a.reads.insert(b.reads.begin(), b.reads.end());
  a.writes.insert(b.writes.begin(), b.writes.end());
  a.flying.insert(b.flying.begin(), b.flying.end());
  a.leaving.insert(b.leaving.begin(), b.leaving.end());
  a.active |= b.active;
  a.fenced |= b.fenced;
}

class analysis {
public:
  explicit analysis(std::span<local_event const> events) : events_(events), before_(events.size()) {
    std::vector<std::size_t> open;
    match_.resize(events.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
      kind const k = events[i].what;
      if (k == kind::loop_begin || k == kind::branch_begin) open.push_back(i);
      if (k == kind::branch_else) match_[open.back()] = i, open.back() = i;
      if (k == kind::loop_end || k == kind::branch_end) match_[open.back()] = i, open.pop_back();
    }
  }

  std::vector<bool> run() {
    insert_ = true;
    do changed_ = false, walk_all();
    while (changed_);
    insert_ = false;
    for (std::size_t i = events_.size(); i-- > 0;) {
      if (!before_[i]) continue;
      before_[i] = false;
      changed_ = false;
      walk_all();
      before_[i] = changed_;
    }
    return before_;
  }

private:
  void walk_all() {
    state s;
    walk(0, events_.size(), s, nullptr);
  }

  bool clash(pending const& earlier, std::size_t now) {
    local_event const &a = events_[static_cast<std::size_t>(earlier.event)], &b = events_[now];
    if (b.remote && earlier.event == static_cast<int>(now)) return false;
    ring_slot const &x = a.slot, &y = b.slot;
    if (earlier.shift >= 0 && x.ring >= 0 && x.ring == y.ring && x.symbol == y.symbol && x.modulus == y.modulus) {
      // The earlier access named its slot before the index moved on: seen from now its offset is less by the shift.
      int const apart = (x.offset - earlier.shift - y.offset) % x.modulus;
      if (apart != 0) return false;
    }
    std::pair<std::size_t, std::size_t> const key = std::minmax(static_cast<std::size_t>(earlier.event), now);
    auto const [at, fresh] = overlaps_.try_emplace(key, false);
    if (fresh) at->second = overlap(a.bytes, b.bytes);
    return at->second;
  }
  bool clash(pending_set const& earlier, std::size_t now) {
    return std::any_of(earlier.begin(), earlier.end(), [&](pending const& p) { return clash(p, now); });
  }
  static void clear(state& s) { s.reads.clear(), s.writes.clear(), s.active = s.fenced = false; }
  void need(std::size_t i, state& s) {
    changed_ = true;
    if (insert_) before_[i] = true;
    clear(s);
  }

  void access(std::size_t i, state& s) {
    if (before_[i]) clear(s);
    kind const what = events_[i].what;
    bool const reads = what == kind::read || what == kind::async_read;
    if (clash(s.writes, i) || (!reads && clash(s.reads, i)) || (events_[i].bulk && s.fenced)) need(i, s);
    pending const p{static_cast<int>(i), 0};
    s.active = true;
    if (what == kind::async_write) s.flying.insert(p);
    else (reads ? s.reads : s.writes).insert(p);
    if (what == kind::async_read) s.leaving.insert(p);
  }

  /// What the next pass of a loop sees of the last one.
  pending_set shifted(pending_set const& from, local_event const& loop) const {
    if (loop.symbol < 0) return from;
    pending_set r;
    for (pending p : from) {
      ring_slot const& slot = events_[static_cast<std::size_t>(p.event)].slot;
      if (slot.symbol == loop.symbol && p.shift >= 0)
        p.shift = ((p.shift + loop.step) % slot.modulus + slot.modulus) % slot.modulus;
      r.insert(p);
    }
    return r;
  }

  void walk(std::size_t begin, std::size_t end, state& s, state* exit) {
    for (std::size_t i = begin; i < end && s.reachable; ++i) {
      switch (events_[i].what) {
      case kind::read:
      case kind::write:
      case kind::async_write:
      case kind::async_read: access(i, s); break;
      case kind::async_wait:
        s.writes.insert(s.flying.begin(), s.flying.end());
        if (events_[i].drains) s.flying.clear();
        s.active = true;
        break;
      case kind::store_wait:
        s.reads.insert(s.leaving.begin(), s.leaving.end());
        if (events_[i].drains) s.leaving.clear();
        s.active = true;
        break;
      case kind::other: s.active = true; break;
      case kind::fence:
        if (before_[i]) clear(s);
        s.fenced = s.active = true;
        break;
      case kind::release:
        if (before_[i]) clear(s);
        if (s.active) need(i, s);
        break;
      case kind::barrier: clear(s); break;
      case kind::loop_exit: join(*exit, s); break;
      case kind::loop_begin: {
        std::size_t const last = match_[i];
        state head = s, left;
        for (;;) {
          left = state{};
          left.reachable = false;
          state body = head;
          walk(i + 1, last, body, &left);
          state again = head;
          if (body.reachable) {
            body.reads = shifted(body.reads, events_[i]);
            body.writes = shifted(body.writes, events_[i]);
            body.flying = shifted(body.flying, events_[i]);
            body.leaving = shifted(body.leaving, events_[i]);
            join(again, body);
          }
          if (again == head) break;
          head = std::move(again);
        }
        s = forgotten(std::move(left), events_[i].symbol);
        i = last;
        break;
      }
      case kind::branch_begin: {
        std::size_t const middle = match_[i];
        state other = s;
        walk(i + 1, middle, s, exit);
        if (events_[middle].what == kind::branch_else) {
          walk(middle + 1, match_[middle], other, exit);
          i = match_[middle];
        } else {
          i = middle;
        }
        join(s, other);
        break;
      }
      case kind::loop_end:
      case kind::branch_else:
      case kind::branch_end: break;
      }
    }
  }

  /// Behind its loop a ring symbol means nothing any more: when the loop is entered again it starts anew.
  state forgotten(state s, int symbol) const {
    if (symbol < 0) return s;
    for (pending_set* set : {&s.reads, &s.writes, &s.flying, &s.leaving}) {
      pending_set r;
      for (pending p : *set) {
        if (events_[static_cast<std::size_t>(p.event)].slot.symbol == symbol) p.shift = -1;
        r.insert(p);
      }
      *set = std::move(r);
    }
    return s;
  }

  std::span<local_event const> events_;
  std::vector<bool> before_;
  std::vector<std::size_t> match_;
  std::map<std::pair<std::size_t, std::size_t>, bool> overlaps_;
  bool insert_ = true, changed_ = false;
};

} // namespace

std::vector<bool> insert_barriers(std::span<local_event const> events) { return analysis(events).run(); }

std::vector<byte_range> bytes_of_box(std::int64_t base, std::int64_t size, std::span<byte_axis const> axes) {
  std::vector<byte_axis> order(axes.begin(), axes.end());
  for (byte_axis& a : order)
    if (a.stride < 0) base += (a.extent - 1) * a.stride, a.stride = -a.stride;
  std::erase_if(order, [](byte_axis const& a) { return a.extent <= 1 || a.stride == 0; });
  std::sort(order.begin(), order.end(), [](byte_axis const& a, byte_axis const& b) { return a.stride < b.stride; });
  // Axes that continue the run so far lengthen it; the others repeat it.
  std::vector<byte_axis> outer;
  for (byte_axis const& a : order)
    if (outer.empty() && a.stride <= size) size += (a.extent - 1) * a.stride;
    else outer.push_back(a);
  std::vector<byte_range> r;
  std::vector<std::int64_t> index(outer.size());
  for (;;) {
    std::int64_t at = base;
    for (std::size_t d = 0; d < outer.size(); ++d) at += index[d] * outer[d].stride;
    r.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + size)});
    std::size_t d = 0;
    while (d < outer.size() && ++index[d] == outer[d].extent) index[d++] = 0;
    if (d == outer.size()) break;
  }
  std::sort(r.begin(), r.end(), [](byte_range const& a, byte_range const& b) { return a.begin < b.begin; });
  std::size_t n = 0;
  for (byte_range const& x : r)
    if (n && x.begin <= r[n - 1].end) r[n - 1].end = std::max(r[n - 1].end, x.end);
    else r[n++] = x;
  r.resize(n);
  return r;
}

bool overlap(std::span<byte_range const> a, std::span<byte_range const> b) {
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].begin < b[j].end && b[j].begin < a[i].end) return true;
    if (a[i].end <= b[j].end) ++i;
    else ++j;
  }
  return false;
}

} // namespace kiln::jit
