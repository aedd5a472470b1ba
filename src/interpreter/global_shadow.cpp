// Last accesses to global memory, and order between CTAs.
#include "src/interpreter/global_shadow.hpp"

#include "src/interpreter/machine.hpp"

#include <algorithm>

namespace kiln::interpreter {

global_shadow::global_shadow(graph_view const& g, std::span<host_argument const> arguments, lanes const& l, bool several_ctas, bool check)
    : region_of_(arguments.size(), -1), lanes_(l) {
  if (!check || (!several_ctas && l.agents == 1 && !l.bulk)) return; // one program order
  auto bounds = [&](std::size_t i) {
    u64 const first = reinterpret_cast<std::uintptr_t>(arguments[i].allocation);
    return std::pair{first, first + static_cast<u64>(arguments[i].bytes)};
  };
  auto memory = [&](std::size_t i) { return g.params[i].kind != node_kind::value && arguments[i].bytes > 0; };
  // Memory that some parameter may write; what overlaps becomes one region.
  auto add = [&](std::size_t i) {
    auto [first, end] = bounds(i);
    auto granule = static_cast<u64>(bytes_of(g.params[i].type));
    for (std::size_t k = 0; k < regions_.size();) {
      region const& r = regions_[k];
      if (r.end <= first || end <= r.first) {
        ++k;
        continue;
      }
      first = std::min(first, r.first);
      end = std::max(end, r.end);
      granule = std::min(granule, r.granule);
      regions_.erase(regions_.begin() + static_cast<std::ptrdiff_t>(k));
      k = 0;
    }
    regions_.push_back({first, end, granule, {}});
  };
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (memory(i) && !g.params[i].is_const) add(i);
  auto overlaps = [&](std::size_t i, region const& r) {
    auto const [first, end] = bounds(i);
    return first < r.end && r.first < end;
  };
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (memory(i) && g.params[i].is_const && std::any_of(regions_.begin(), regions_.end(), [&](region const& r) { return overlaps(i, r); })) add(i);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    for (std::size_t k = 0; memory(i) && k < regions_.size(); ++k)
      if (overlaps(i, regions_[k])) region_of_[i] = static_cast<int>(k);
  for (region& r : regions_) r.pages.resize(static_cast<std::size_t>((r.end - r.first) / r.granule / page + 1));
}

global_shadow::element* global_shadow::find(int parameter, u64 address) {
  int const k = region_of_[static_cast<std::size_t>(parameter)];
  if (k < 0) return nullptr;
  region& r = regions_[static_cast<std::size_t>(k)];
  u64 const at = (address - r.first) / r.granule;
  std::unique_ptr<element[]>& p = r.pages[static_cast<std::size_t>(at / page)];
  if (!p) p = std::make_unique<element[]>(page);
  return &p[static_cast<std::size_t>(at % page)];
}

bool global_shadow::ordered(agent const& a, global_event const& e) const {
  if (e.node < 0) return true;
  if (e.cta == a.block.group.number) {
    if (a.now[e.lane] >= e.value) return true;
    if (e.lane < lanes_.agents && e.lane / lanes_.each == a.block.rank) return false;
    if (lanes_.ctas == 1) return false;
  }
  auto const known = published_.find(e.cta);
  if (known == published_.end()) return false;
  // The last that the CTA has acquired.
  auto const& all = known->second;
  auto const after = std::upper_bound(all.begin(), all.end(), a.block.acquired, [](u64 s, published const& p) { return s < p.sequence; });
  return after != all.begin() && std::prev(after)->behind[e.lane] >= e.value;
}

global_event global_shadow::stamp(agent& a, int node, bool bulk_store) const {
  ++a.block.accesses;
  int const lane = bulk_store ? lanes_.globals(a.id) : a.id;
  return {node, a.block.group.number, lane, bulk_store ? static_cast<u32>(a.copies.stores.size()) + 1 : a.now[a.id]};
}

void global_shadow::release(agent& a) {
  if (regions_.empty() || a.published == a.block.accesses) return;
  a.published = a.block.accesses;
  std::vector<published>& all = published_[a.block.group.number];
  all.push_back({++sequence_, a.now});
  if (lanes_.ctas > 1 && all.size() > 1) all.back().behind.join(all[all.size() - 2].behind); // CTAs of a cluster publish in turn
  ++a.now[a.id]; // what follows is not among it
}

void global_shadow::acquire(agent& a) const { a.block.acquired = sequence_; }

} // namespace kiln::interpreter
