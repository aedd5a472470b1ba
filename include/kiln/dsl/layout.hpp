// Layouts as options: where the elements of a local buffer lie, and which registers hold a tile.
//
//   auto a = k.local_alloc<f16, 64, 64>(3, {.layout = layout::mma_shared()});       // swizzled for a matrix unit
//   auto b = k.alloc_shared<f32, 8, 64>({.layout = layout::padded<64>({4})});       // 4 unused elements after every 64
//   auto c = k.alloc_shared<f32, 4, 8>({.layout = layout::strided<4, 8>({1, 4})});  // column-major
//   auto t = k.require_layout(x, layout::registers(layout::threads<32, 4>({0, 8}), layout::values<8>({1})));
//
// Rules: R-LY01 a layout of another number of elements, or one that puts two of them at one place; R-LY02 swizzles; R-LY05, R-LY07
// registers; R-LY06 padding; R-PA18 rows that do not fill a swizzle.
#pragma once
#include <kiln/dsl/local.hpp>
#include <kiln/graph/local_layout.hpp>
#include <kiln/graph/register_layout.hpp>

namespace kiln {

/// Widths of the swizzle that a matrix unit reads: the widest that fits, or bytes.
enum class swz : std::uint8_t { automatic, none, b32, b64, b128 };

/// The layout of a buffer's slots, from the functions in `kiln::layout`. Given to an allocation, it is resolved for its shape.
struct buffer_layout {
  enum class kind : std::uint8_t { infer, row_major, given, swizzled, mma } what = kind::infer;
  swz width = swz::automatic;
  slot_layout slot{};
  bool faulty = false; ///< padding intervals and pads that do not fit together
};

namespace layout {
/// Row by row; the compiler may still spread rows over banks where it sees all accesses.
inline constexpr buffer_layout infer{};
/// Row by row, and nothing else.
inline constexpr buffer_layout row_major{buffer_layout::kind::row_major};
/// The row-major number of an element, taken apart into digits of these extents (the last one fastest): digit d moves by stride d.
template <int... E>
constexpr buffer_layout strided(std::int32_t const (&strides)[sizeof...(E)]) {
  static_assert(sizeof...(E) <= slot_layout::most_modes, "kiln[R-LY01] a layout has at most 6 modes");
  buffer_layout l{buffer_layout::kind::given};
  constexpr std::int32_t extents[]{E...};
  for (std::size_t i = 0; i < sizeof...(E); ++i) l.slot.mode[l.slot.modes++] = {extents[i], strides[i]};
  return l;
}
/// swizzle<B, M, S> of the row-major number, in elements: bits [M, M+B) are XORed with those S higher (CuTe's order of arguments).
template <int B, int M, int S>
constexpr buffer_layout swizzled() {
  buffer_layout l{buffer_layout::kind::swizzled};
  l.slot.bits = B;
  l.slot.base = M;
  l.slot.shift = S;
  return l;
}
/// The layout that matrix units read: column panels of 128, 64 or 32 bytes, 16-byte pieces XORed with the row.
constexpr buffer_layout mma_shared(swz width = swz::automatic) { return {buffer_layout::kind::mma, width}; }
/// After every `I` elements of the row-major order, so many unused ones.
template <int... I>
constexpr buffer_layout padded(std::int32_t const (&pads)[sizeof...(I)]) {
  static_assert(sizeof...(I) <= slot_layout::most_paddings, "kiln[R-LY06] a layout has at most 2 padding intervals");
  buffer_layout l{buffer_layout::kind::given};
  constexpr std::int32_t intervals[]{I...};
  for (std::size_t i = 0; i < sizeof...(I); ++i) l.slot.padding[l.slot.paddings++] = {intervals[i], pads[i]};
  return l;
}
} // namespace layout

namespace detail {

/// Bytes of a swizzle's rows; 0: none.
constexpr int width_of(swz s) { return s == swz::b128 ? 128 : s == swz::b64 ? 64 : s == swz::b32 ? 32 : 0; }
constexpr int log2_of_power(std::int64_t n) {
  int r = 0;
  while (r < 40 && (std::int64_t{1} << r) < n) ++r;
  return r;
}
/// The widest swizzle whose rows divide rows of `bytes`.
constexpr int widest_swizzle(std::int64_t bytes, std::int64_t rows) {
  if (rows < 8 || rows % 8 != 0) return 0;
  for (int w : {128, 64, 32})
    if (bytes >= w && bytes % w == 0) return w;
  return 0;
}
/// The layout of LAY-05 for a shape [.., R, C] and a swizzle of `width` bytes (0: row-major).
constexpr slot_layout mma_layout(dtype t, kiln::shape const& s, int width) {
  slot_layout l;
  if (width == 0) return l;
  std::int64_t const size = bytes_of(t), columns = s.extent[s.rank - 1], rows = s.extent[s.rank - 2], wide = width / size;
  std::int64_t lead = 1;
  for (int d = 0; d + 2 < s.rank; ++d) lead *= s.extent[d];
  if (columns != wide) { // panels, one after the other
    if (lead > 1) l.mode[l.modes++] = {static_cast<std::int32_t>(lead), static_cast<std::int32_t>(rows * columns)};
    l.mode[l.modes++] = {static_cast<std::int32_t>(rows), static_cast<std::int32_t>(wide)};
    l.mode[l.modes++] = {static_cast<std::int32_t>(columns / wide), static_cast<std::int32_t>(rows * wide)};
    l.mode[l.modes++] = {static_cast<std::int32_t>(wide), 1};
  }
  l.bits = width == 128 ? 3 : width == 64 ? 2 : 1;
  l.base = 4 - log2_of_power(size);
  l.shift = 3;
  return l;
}
/// What a slot must start at for the XOR of its addresses to be that of its places. Units: bytes.
constexpr int swizzle_alignment(slot_layout const& l, dtype t) {
  return l.bits == 0 ? 1 : static_cast<int>((std::int64_t{1} << (l.base + l.shift + l.bits)) * bytes_of(t));
}

/// Whether two elements may lie at one place: strides that do not step over what is inside them.
constexpr bool places_collide(slot_layout const& l) {
  bool used[slot_layout::most_modes]{};
  std::int64_t reach = 1;
  for (int n = 0; n < l.modes; ++n) {
    int least = -1;
    for (int i = 0; i < l.modes; ++i)
      if (!used[i] && (least < 0 || l.mode[i].stride < l.mode[least].stride)) least = i;
    used[least] = true;
    if (l.mode[least].extent == 1) continue;
    if (l.mode[least].stride < reach) return true;
    reach = (l.mode[least].extent - 1) * static_cast<std::int64_t>(l.mode[least].stride) + reach;
  }
  return false;
}

/// The layout of buffer b's slots as its option says; raises the buffer's alignment where that is needed. After a mistake: row-major.
constexpr void lay_out(recorder& r, int b, buffer_layout const& o, site at) {
  using kind = buffer_layout::kind;
  if (o.what == kind::infer) return;
  buffer_info& f = r.buffers[b];
  kiln::shape const s = r.shapes[f.shape];
  auto fault = [&](char const* rule) {
    message m = r.fail(at);
    m << rule;
    put_buffer_name(m, r.view(), b);
    return m;
  };
  if (f.where != storage::smem) {
    fault("kiln[R-LY03] ") << " lies in tensor memory, whose layout is that of its datapath; leave .layout out";
    return;
  }
  slot_layout l = o.slot;
  for (int i = 0; i < l.paddings; ++i) {
    std::int32_t const n = l.padding[i].interval;
    if (n < 1 || (n & (n - 1)) != 0) {
      fault("kiln[R-LY06] ") << ": padding interval " << n << " must be a power of two, at least 1";
      return;
    }
    if (l.padding[i].pad < 1) {
      fault("kiln[R-LY06] ") << ": a padding of " << l.padding[i].pad << " elements; at least 1 is needed";
      return;
    }
  }
  if (l.bases < 0) {
    fault("kiln[R-LY01] ") << ": the bases do not give every element an offset of its own; as many of them as the elements have bits, none the XOR of others";
    return;
  }
  if (l.modes > 0 || l.bases > 0) {
    std::int64_t elements = std::int64_t{1} << l.bases;
    for (int i = 0; i < l.modes; ++i) elements *= l.mode[i].extent;
    if (elements != s.elements()) {
      message m = fault("kiln[R-LY01] ");
      m << ": the layout covers " << elements << " elements, the shape ";
      for (int d = 0; d < s.rank; ++d) m << (d ? "x" : "") << s.extent[d];
      m << " has " << s.elements();
      return;
    }
    for (int i = 0; i < l.modes; ++i)
      if (l.mode[i].stride < 0) {
        fault("kiln[R-LY01] ") << ": stride " << l.mode[i].stride << " of the layout; elements before the start of a slot have no place";
        return;
      }
    if (places_collide(l)) {
      fault("kiln[R-LY01] ") << ": the layout puts two elements at one place; each stride must step over all that is inside it";
      return;
    }
  }
  if (o.what == kind::swizzled) {
    if (l.bits < 0 || l.base < 0 || l.shift < l.bits) {
      fault("kiln[R-LY02] ") << ": swizzle<" << l.bits << "," << l.base << "," << l.shift << ">: shift " << l.shift << " is smaller than bits " << l.bits;
      return;
    }
    std::int64_t const row = s.extent[s.rank - 1], step = std::int64_t{1} << (l.shift + l.base);
    if (l.bits > 0 && step % row != 0) {
      fault("kiln[R-LY02] ") << ": swizzle<" << l.bits << "," << l.base << "," << l.shift << ">: 2^(shift+base) = " << step << " is not a multiple of the contiguous extent " << row;
      return;
    }
    if (l.bits == 0) l = {};
  }
  if (o.what == kind::mma) {
    std::int64_t const bytes = bytes_of(f.type, s.extent[s.rank - 1]);
    int const fits = s.rank < 2 ? 0 : widest_swizzle(bytes, s.extent[s.rank - 2]);
    int const width = o.width == swz::automatic ? fits : width_of(o.width);
    if (width > 0 && (s.rank < 2 || s.extent[s.rank - 2] % 8 != 0 || bytes % width != 0)) {
      message m = fault("kiln[R-PA18] ");
      if (s.rank < 2)
        m << " has one axis; a swizzle of " << width << " B needs rows and columns";
      else if (s.extent[s.rank - 2] % 8 != 0)
        m << ": " << s.extent[s.rank - 2] << " rows are not a multiple of the 8 of a swizzle";
      else
        m << ": rows of " << bytes << " B do not fill the " << width << " B swizzle; use ";
      if (s.rank >= 2 && s.extent[s.rank - 2] % 8 == 0) {
        m << (fits == 64 ? "swz::b64" : fits == 32 ? "swz::b32" : "swz::none") << " or " << (bytes / width + 1) * width / bytes_of(f.type) << " columns";
      }
      return;
    }
    l = mma_layout(f.type, s, width);
  }
  if (int const a = swizzle_alignment(l, f.type); a > f.alignment && a > 128) f.alignment = a;
  f.layout = l;
}

} // namespace detail
} // namespace kiln
