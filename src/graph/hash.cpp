// Hashes graphs; hash.hpp says what counts.
#include <kiln/graph/hash.hpp>

#include <kiln/graph/attribute_kind.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kiln {

namespace {

// Raised whenever the bytes below change their meaning.
constexpr std::uint8_t serialisation_version = 2;

/// Little-endian bytes, so that every machine hashes the same.
class serialiser {
public:
  serialiser() { XXH3_128bits_reset(&state_); }
  void number(std::int64_t x) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(static_cast<std::uint64_t>(x) >> (8 * i));
    XXH3_128bits_update(&state_, bytes, sizeof bytes);
  }
  template <class E>
    requires std::is_enum_v<E>
  void number(E e) {
    number(static_cast<std::int64_t>(e));
  }
  void text(std::string_view s) {
    number(static_cast<std::int64_t>(s.size()));
    XXH3_128bits_update(&state_, s.data(), s.size());
  }
  void extents(shape const& s) {
    number(s.rank);
    for (int i = 0; i < s.rank; ++i) number(s.extent[i]);
  }
  hash128 finish() const {
    XXH128_hash_t const h = XXH3_128bits_digest(&state_);
    return {h.high64, h.low64};
  }

private:
  XXH3_state_t state_;
};

void meaning(serialiser& out, graph_view const& g) {
  out.number(serialisation_version);
  // Structured bindings name every member: one that is added does not compile until it is hashed.
  auto const& [num_warps, cluster, cluster_nonportable, persistent, no_alias, contract, fast_math, verify_trip] = g.attrs;
  for (std::int64_t x : {std::int64_t{num_warps}, cluster.x, cluster.y, cluster.z, persistent + 2 * std::int64_t{cluster_nonportable}, std::int64_t{no_alias},
                         std::int64_t{contract}, std::int64_t{fast_math}, std::int64_t{verify_trip}})
    out.number(x);
  out.number(static_cast<std::int64_t>(g.params.size()));
  for (param_info const& p : g.params) {
    auto const& [kind, type, is_const, rank, node, workspace, per_cta, zero] = p;
    out.number(kind);
    out.number(type);
    out.number(is_const);
    out.number(rank);
    out.number(node);
    if (workspace == 0) continue;
    out.number(workspace);
    out.number(per_cta);
    out.number(zero);
  }
  out.number(static_cast<std::int64_t>(g.buffers.size()));
  for (buffer_info const& b : g.buffers) {
    auto const& [type, where, placement, has_slots, slots, form, alignment, role, pun, phase, base, place, layout, name, node] = b;
    (void)name;
    out.number(type);
    out.number(where);
    out.number(placement);
    out.number(has_slots);
    out.number(slots);
    out.extents(g.shapes[static_cast<std::size_t>(form)]);
    out.number(alignment);
    out.number(role);
    out.number(pun);
    out.number(phase);
    if (role == buffer_role::window) out.number(base);
    auto const& [offset, stride, levels, radix] = place;
    out.number(offset);
    out.number(stride);
    out.number(levels);
    for (int j = 0; j < levels; ++j) {
      out.number(radix[j].count);
      out.number(radix[j].pitch);
    }
    auto const& [modes, paddings, mode, bits, lowest, shift, origin, padding, bases, basis] = layout;
    out.number(origin == 0 ? modes : -modes);
    if (origin != 0) out.number(origin);
    for (int j = 0; j < bases; ++j) out.number(basis[j]);
    for (int j = 0; j < modes; ++j) {
      out.number(mode[j].extent);
      out.number(mode[j].stride);
    }
    out.number(bits);
    out.number(lowest);
    out.number(shift);
    out.number(paddings);
    for (int j = 0; j < paddings; ++j) {
      out.number(padding[j].interval);
      out.number(padding[j].pad);
    }
    out.number(node);
  }
  out.number(g.size());
  for (int i = 0; i < g.size(); ++i) {
    node const& n = g[i];
    out.text(name_of(n.code));
    out.number(n.type);
    out.number(n.kind);
    out.extents(g.shape_of(i));
    out.number(n.operand_count);
    for (std::int32_t o : g.operands(i)) out.number(o);
    for (std::int64_t a : g.attributes_of(i)) out.number(a);
  }
}

} // namespace

std::string to_string(hash128 h) {
  std::string s;
  for (std::uint64_t half : {h.high, h.low})
    for (int shift = 60; shift >= 0; shift -= 4) s += "0123456789abcdef"[half >> shift & 15];
  return s;
}

hash128 semantic_hash(graph_view const& g) {
  serialiser out;
  meaning(out, g);
  return out.finish();
}

hash128 debug_hash(graph_view const& g) {
  serialiser out;
  meaning(out, g);
  out.text(g.name);
  for (buffer_info const& b : g.buffers) out.text(b.name < 0 ? std::string_view() : g.string(b.name));
  for (int i = 0; i < g.size(); ++i) {
    out.text(g.file(i));
    out.number(g[i].line);
    for (int a = 0; a < attribute_count(g[i].code); ++a)
      if (kind_of_attribute(g[i].code, a) == attribute_kind::text) out.text(g.string(static_cast<int>(g.attribute(i, a))));
  }
  return out.finish();
}

} // namespace kiln
