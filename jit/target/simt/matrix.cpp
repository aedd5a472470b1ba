// Products on a matrix unit: operands from swizzled local memory by ldmatrix (bytes that lie across rows in pairs, words of 4 bytes that
// do in vectors, and one by one where nothing else fits), sums in the unit's own layout.
#include "lowerings.hpp"

#include "jit/passes/matrix_unit.hpp"

#include <algorithm>
#include <kiln/layout/index_terms.hpp>
#include <kiln/layout/matrix_plan.hpp>

namespace kiln::jit::simt {

using enum layout_dim;

namespace {

/// The words of one operand's fragments, read when they are first asked for.
class fragments {
public:
  fragments(lowerer& lowering, view_value const& view, linear_layout const& fragment, int elem)
      : k(lowering), v(view), elem_(elem), run_(2 - elem),
        map_(compose(fragment, memory_map(fragment.out, v.stride, v.layout))),
        words_(std::size_t{1} << (fragment.in.bits(reg) - run_)) {
    for (bool trans : {false, true})
      if (!plan_ && v.align >= 16) {
        plan_ = plan_matrix(map_, elem, trans);
        trans_ = trans;
      }
    if (!plan_ && elem == 0 && v.align >= 16)
      if (auto pairs = byte_pairs_of(map_))
        if ((plan_ = plan_matrix(pairs->pairs, 1, true))) {
          trans_ = true;
          column_ = pairs->column - run_;
          woven_.resize(words_.size());
        }
    if (!plan_) return;
    // Lane 8j+i of an instruction supplies row i of its matrix j.
    rows_ = zero_map({{reg, 0}, {lane, 5}, {warp, static_cast<std::uint8_t>(map_.in.bits(warp))}}, plan_->rows.out);
    for (int i = 0; i < 3; ++i) rows_.col[static_cast<std::size_t>(i)] = matrix_row(*plan_, trans_, 0, 1 << i);
    for (int i = 0; i < plan_->matrices; ++i)
      rows_.col[static_cast<std::size_t>(3 + i)] = matrix_row(*plan_, trans_, 1 << i, 0);
    for (int i = 0; i < map_.in.bits(warp); ++i) rows_.col[static_cast<std::size_t>(5 + i)] = plan_->rows.basis(warp, i);
  }

  Value* word(std::size_t w) {
    if (words_[w]) return words_[w];
    if (column_ >= 0) read_pairs(w);
    else if (plan_) read_matrices(w, words_, run_);
    else read_word(w);
    return words_[w];
  }

private:
  /// Which word matrix j of the plan is; each has 2^run elements.
  std::size_t word_of(int j, int run) const {
    int const low = trans_ ? 1 : run;
    return static_cast<std::size_t>(plan_->regs(static_cast<f2_word>(j) << low) >> run);
  }
  Value* place(linear_layout const& map, f2_word constant, int scale) {
    Value* thread = k.thread_part(map, offset);
    if (v.start) { // no bit of it is in the fragment's part
      if (!start_) start_ = k.place(v.start, v.layout);
      thread = k.b.CreateXor(thread, scale == elem_ ? start_ : k.b.CreateLShr(start_, static_cast<std::uint64_t>(scale - elem_)));
      Value* at = constant ? k.b.CreateXor(thread, k.i32(static_cast<std::int64_t>(constant))) : thread;
      return k.b.CreateInBoundsGEP(k.b.getInt8Ty(), v.pointer, k.b.CreateShl(at, static_cast<std::uint64_t>(scale)));
    }
    if (constant & reachable_bits(map, {lane, warp}, offset)) {
      Value* at = k.b.CreateXor(thread, k.i32(static_cast<std::int64_t>(constant)));
      return k.b.CreateInBoundsGEP(k.b.getInt8Ty(), v.pointer, k.b.CreateShl(at, static_cast<std::uint64_t>(scale)));
    }
    Value* p = k.b.CreateInBoundsGEP(k.b.getInt8Ty(), v.pointer, k.b.CreateShl(thread, static_cast<std::uint64_t>(scale)));
    return constant ? k.b.CreateInBoundsGEP(k.b.getInt8Ty(), p, k.i32(static_cast<std::int64_t>(constant << scale))) : p;
  }
  void read_matrices(std::size_t w, std::vector<Value*>& to, int run) {
    int const count = 1 << plan_->matrices;
    int first = 0;
    while (word_of(first, run) != w) ++first;
    first &= ~(count - 1);
    auto const words = k.hw->load_matrices(place(rows_, matrix_row(*plan_, trans_, first, 0), 4), count, trans_);
    for (int j = 0; j < count; ++j) to[word_of(first + j, run)] = words[static_cast<std::size_t>(j)];
  }
  /// Both columns of the pair that a word belongs to.
  void read_pairs(std::size_t w) {
    std::size_t const bit = std::size_t{1} << column_, others = (w & (bit - 1)) | (w >> 1 & ~(bit - 1));
    for (std::size_t i : {2 * others, 2 * others + 1})
      if (!woven_[i]) read_matrices(i, woven_, 1);
    for (std::size_t i : {0u, 1u}) words_[(w & ~bit) | (i ? bit : 0)] = k.hw->permute_bytes(woven_[2 * others], woven_[2 * others + 1], weave[i]);
  }
  /// Words of one element that are neighbours in memory, up to 16 bytes.
  bool read_vector(std::size_t w) {
    auto& b = k.b;
    if (run_ != 0) return false;
    int const registers = map_.in.bits(reg);
    std::vector<int> bits; // of the register, whose columns are the lowest bits of the offset
    f2_word others = 0;
    while (bits.size() < 2) {
      int found = -1;
      for (int i = 0; i < registers; ++i)
        if (map_.basis(reg, i) == f2_unit(static_cast<int>(bits.size()))) found = i;
      if (found < 0 || v.align < 8 << bits.size()) break;
      bits.push_back(found);
    }
    for (int i = 0; i < map_.in.total(); ++i)
      if (std::find(bits.begin(), bits.end(), i - map_.in.shift(reg)) == bits.end()) others |= map_.col[static_cast<std::size_t>(i)];
    while (!bits.empty() && others & f2_low_mask(static_cast<int>(bits.size()))) bits.pop_back();
    if (bits.empty()) return false;
    std::size_t base = w;
    for (int i : bits) base &= ~(std::size_t{1} << i);
    unsigned const count = 1u << bits.size();
    Value* all = b.CreateAlignedLoad(llvm::FixedVectorType::get(b.getInt32Ty(), count),
                                     place(map_, map_.out.get(map_(map_.in.put(reg, static_cast<f2_word>(base))), offset), elem_), llvm::Align(4 * count));
    for (unsigned i = 0; i < count; ++i) {
      std::size_t at = base;
      for (std::size_t j = 0; j < bits.size(); ++j) at |= static_cast<std::size_t>(i >> j & 1) << bits[j];
      words_[at] = b.CreateExtractElement(all, i);
    }
    return true;
  }
  /// Elements of a word that are neighbours in memory are read together.
  void read_word(std::size_t w) {
    if (read_vector(w)) return;
    auto& b = k.b;
    linear_layout const here = map_;
    int together = 0;
    f2_word others = 0;
    for (f2_word c : here.columns({lane, warp})) others |= c;
    while (together < run_ && here.basis(reg, together) == f2_unit(together) && !(others >> together & 1)) ++together;
    llvm::Type* part = b.getIntNTy(static_cast<unsigned>(8 << (elem_ + together)));
    Value* word = nullptr;
    for (int i = 0; i < 1 << run_; i += 1 << together) {
      auto const r = static_cast<f2_word>(w << run_) | static_cast<f2_word>(i);
      Value* p = place(here, here.out.get(here(here.in.put(reg, r)), offset), elem_);
      Value* x = b.CreateAlignedLoad(part, p, llvm::Align(std::uint64_t{1} << (elem_ + together)));
      x = b.CreateZExt(x, b.getInt32Ty());
      if (i) x = b.CreateShl(x, static_cast<std::uint64_t>(i * (8 << elem_)));
      word = word ? b.CreateOr(word, x) : x;
    }
    words_[w] = word;
  }

  lowerer& k;
  view_value const& v;
  int elem_, run_;
  linear_layout map_; ///< (reg, lane, warp) -> offset in elements
  std::optional<matrix_access> plan_;
  bool trans_ = false;
  int column_ = -1;            ///< bytes in pairs: the bit of a word's number that tells the columns apart
  std::vector<Value*> woven_;  ///< their words as ldmatrix gives them
  Value* start_ = nullptr; ///< where a view starts in a slot with a layout, in elements
  linear_layout rows_; ///< (lane, warp) -> 16-byte chunk
  std::vector<Value*> words_;
};

/// A word of four f8 as two of two f16.
std::array<Value*, 2> widen(lowerer& k, Value* word, dtype t) {
  auto& b = k.b;
  std::array<Value*, 2> r;
  for (std::size_t half = 0; half < 2; ++half) {
    Value* pair = b.CreateTrunc(half ? b.CreateLShr(word, 16) : word, b.getInt16Ty());
    r[half] = k.hw->widen_pair(pair, t);
    if (r[half]) continue;
    Value* both = nullptr;
    for (unsigned i = 0; i < 2; ++i) {
      Value* x = k.from_memory(b.CreateTrunc(i ? b.CreateLShr(pair, 8) : pair, b.getInt8Ty()), t);
      x = b.CreateZExt(k.to_memory(k.convert_type(x, t, dtype::f16), dtype::f16), b.getInt32Ty());
      both = i ? b.CreateOr(both, b.CreateShl(x, 16)) : x;
    }
    r[half] = both;
  }
  return r;
}

} // namespace

lowerer::spreading lowerer::spreads_over_banks(int buffer) const {
  buffer_info const& info = g.buffers[static_cast<std::size_t>(buffer)];
  shape const& s = g.shapes[static_cast<std::size_t>(info.shape)];
  if (s.rank != 2 || info.where != storage::smem || info.role != buffer_role::own || info.pun || !info.layout.plain()) return spreading::none;
  local_form const form = local_form_of(g, buffer);
  if (form.slots.levels != 0 || form.slots.stride % 128 != 0 || form.stride[1] != bytes_of(info.type) ||
      form.stride[0] != s.extent[1] * bytes_of(info.type))
    return spreading::none; // rows that are not packed, or slots that start anywhere
  for (int d = 0; d < 2; ++d)
    if (!std::has_single_bit(static_cast<unsigned>(s.extent[d]))) return spreading::none;
  // Only what names a whole slot and is accessed through kiln's own address arithmetic.
  std::vector<bool> inside(static_cast<std::size_t>(g.size()));
  spreading way = spreading::none;
  for (int i = 0; i < g.size(); ++i) {
    node const& n = g[i];
    if (n.code == op::alloc && g.attribute(i, 0) == buffer) {
      inside[static_cast<std::size_t>(i)] = true;
      continue;
    }
    bool touches = false;
    for (int o : g.operands(i)) touches |= o >= 0 && inside[static_cast<std::size_t>(o)];
    if (!touches) continue;
    switch (n.code) {
    case op::alloc: // others may lie over it as long as they do not read its bytes
      if (buffer_info const& other = g.buffers[static_cast<std::size_t>(g.attribute(i, 0))]; other.pun || other.role == buffer_role::window) return spreading::none;
      break;
    case op::view_index:
      if (g[g.operand(i, 0)].code != op::alloc) return spreading::none;
      inside[static_cast<std::size_t>(i)] = true;
      break;
    case op::view_trans: inside[static_cast<std::size_t>(i)] = true; break;
    case op::dot: {
      auto const p = matrix_product_of(g, facts, i, cta_at(i));
      if (!p) return spreading::none;
      for (int o : {0, 1})
        if (int const x = g.operand(i, o); inside[static_cast<std::size_t>(x)])
          way = std::max(way, (o == 0 ? p->spread_m : p->spread_n) ? spreading::across : spreading::rows);
      break;
    }
    case op::local_load:
    case op::local_store:
    case op::remote_store:
    case op::async_remote_store:
    case op::local_gather:
    case op::local_scatter:
    case op::async_load: break;
    default: return spreading::none;
    }
  }
  return way;
}

namespace {

/// An operand in local memory: the author's view, or a tile that is staged with its vectors along the rows. Elements that are not two
/// bytes long are staged with k along the rows, where ldmatrix finds their fragments, unless they come across (`across`).
view_value operand(lowerer& k, int o, int elem, int along_k, bool across, linear_layout const& fragment, char const* what) {
  linear_layout l;
  std::vector<Value*> x;
  shape const& s = k.g.shape_of(o);
  if (k.g[o].kind == node_kind::view) {
    view_value const v = k.view(o);
    if (v.layout.linear()) return v;
    // Padded, or strides that are no bits: fragments cannot be addressed there.
    l = normal_form(fragment, k.cta);
    x = k.read_view(v, l);
    k.result.notes.push_back(std::string(what) + " at line " + std::to_string(k.g[o].line) + " is copied: the layout of its buffer is not a matrix unit's");
  } else {
    l = k.layout_of_use(o);
    x = k.get(o, l).r;
  }
  int minor = across ? 1 - along_k : along_k;
  if (elem == 1) minor = vectorize(l, d0, elem).width > vectorize(l, d1, elem).width ? 0 : 1;
  view_value v;
  v.type = k.type(o);
  v.extents = s;
  v.stride[minor] = 1;
  v.stride[1 - minor] = s.extent[minor];
  v.align = 16;
  v.layout = layout_of_rows(std::countr_zero(static_cast<unsigned>(s.extent[minor])) + elem, elem, across);
  v.offset = k.scratch(bytes_of(v.type, s.elements()), what);
  v.pointer = k.arena(v.offset);
  k.write_view(v, l, x);
  return v;
}

} // namespace

registers matrix_dot(lowerer& k, int node, matrix_product const& p) {
  linear_layout const& l = k.plan.of(node);
  // The sums come first: to bring them into this layout can take barriers of its own, and none may stand between the
  // events of the reads below and the reads.
  int const acc = k.g.operand(node, 2);
  std::size_t const n = std::size_t{1} << l.in.bits(reg);
  registers sums;
  if (acc >= 0) sums.r = k.get(acc, l).r;
  else sums.r.assign(n, llvm::Constant::getNullValue(k.carrier(k.type(node))));
  if (sums.r.size() != n) sums.r.assign(n, sums.r[0]);

  lowerer::hold_scratch const both(k);
  view_value const x = operand(k, k.g.operand(node, 0), p.elem, 1, p.spread_m != 0, matrix_left(p, k.cta), "the left operand of dot"),
                   y = operand(k, k.g.operand(node, 1), p.elem, 0, p.spread_n != 0, matrix_right(p, k.cta), "the right operand of dot");
  k.touch(local_event::kind::read, k.bytes_of_view(x), x.slot);
  k.touch(local_event::kind::read, k.bytes_of_view(y), y.slot);
  fragments left(k, x, matrix_left(p, k.cta), p.elem), right(k, y, matrix_right(p, k.cta), p.elem);

  std::size_t const rows = std::size_t{1} << (p.m - 4 - p.warps_m), columns = std::size_t{1} << (p.n - 3 - p.warps_n);
  bool const narrow = is_f8(p.operand);
  dtype const multiplied = narrow ? dtype::f16 : p.operand;
  for (std::size_t step = 0; step < std::size_t{1} << (p.k - p.step()); ++step) {
    std::vector<std::array<Value*, 4>> a(rows);
    std::vector<std::array<Value*, 2>> c(columns);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < 4; ++j) a[i][j] = left.word(4 * (i + rows * step) + j);
    for (std::size_t i = 0; i < columns; ++i)
      for (std::size_t j = 0; j < 2; ++j) c[i][j] = right.word(2 * (i + columns * step) + j);
    auto const multiply = [&](auto const& part_a, auto const& part_b) {
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j) {
          std::size_t const at = 4 * (j + columns * i);
          k.hw->multiply(multiplied, part_a[i], part_b[j], llvm::MutableArrayRef(sums.r).slice(at, 4));
        }
    };
    if (!narrow) {
      if (p.operand == dtype::f32) {
        for (auto& w : a)
          for (Value*& e : w) e = k.hw->round_to_tf32(e);
        for (auto& w : c)
          for (Value*& e : w) e = k.hw->round_to_tf32(e);
      }
      multiply(a, c);
      continue;
    }
    // Both operands put the halves of their words into the k positions in the same order, which is all that matters.
    std::vector<std::array<Value*, 4>> wide_a[2];
    std::vector<std::array<Value*, 2>> wide_b[2];
    for (auto const& w : a) {
      std::array<std::array<Value*, 2>, 4> const f{widen(k, w[0], p.operand), widen(k, w[1], p.operand),
                                                   widen(k, w[2], p.operand), widen(k, w[3], p.operand)};
      for (std::size_t h : {0u, 1u}) wide_a[h].push_back({f[2 * h][0], f[2 * h + 1][0], f[2 * h][1], f[2 * h + 1][1]});
    }
    for (auto const& w : c)
      for (std::size_t h : {0u, 1u}) {
        auto const f = widen(k, w[h], p.operand);
        wide_b[h].push_back({f[0], f[1]});
      }
    for (std::size_t h : {0u, 1u}) multiply(wide_a[h], wide_b[h]);
  }
  return sums;
}

} // namespace kiln::jit::simt
