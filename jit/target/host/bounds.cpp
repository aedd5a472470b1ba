// When is the fast version of a nest right? Where every mask is true over the whole tile and regions lie inside their
// arrays with neighbouring elements side by side. Masks are understood as conjunctions of comparisons between integers
// whose extremes over the tile can be computed in front of the nest; what is not understood stays a mask.
#include "writer.hpp"

#include <unistd.h>

namespace kiln::jit::host {

// From here on a launch's output does not stay in the caches: half of the last level, but of a level that many cores
// share no more than 16 times what one core has below it.
std::int64_t writer::streaming_bytes() {
  static const std::int64_t bytes = [] {
    const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    std::int64_t share = l3 > 0 ? l3 / 2 : std::int64_t{16} << 20;
    if (l2 > 0) share = std::min<std::int64_t>(share, 16 * l2);
    return share;
  }();
  return bytes;
}

// x + y in i64; where it leaves the type t (in which it would wrap), `valid` becomes false.
Value* writer::checked_add(Value* x, Value* y, dtype t, Value*& valid) {
  if (bits_of(t) == 64) {
    Value* r = b.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_with_overflow, x, y);
    valid = and_of(valid, b.CreateNot(b.CreateExtractValue(r, 1)));
    return b.CreateExtractValue(r, 0);
  }
  Value* r = b.CreateAdd(x, y);
  Value* narrow = b.CreateTrunc(r, carrier(t));
  Value* back = is_signed_int(t) ? b.CreateSExt(narrow, b.getInt64Ty()) : b.CreateZExt(narrow, b.getInt64Ty());
  valid = and_of(valid, b.CreateICmpEQ(r, back));
  return r;
}

bool writer::bounds(int n, interval& out) {
  const node& d = g[n];
  if (!is_int(d.type) || d.type == dtype::u64) return false;
  auto number64 = [&](std::int64_t k) { return b.getInt64(static_cast<std::uint64_t>(k)); };
  if (g.shape_of(n).rank == 0 || d.code == op::constant) {
    Value* v = d.code == op::constant ? constant_of(d.type, g.attribute(n, 0)) : scalar_value(n);
    v = is_signed_int(d.type) ? b.CreateSExt(v, b.getInt64Ty()) : b.CreateZExt(v, b.getInt64Ty());
    out = {v, v, nullptr};
    return true;
  }
  if (plan_.kept[static_cast<std::size_t>(n)]) return false;
  const int s = d.operand_count > 0 ? g.operand(n, 0) : -1;
  switch (d.code) {
  case op::iota: {
    const std::int64_t low = g.attribute(n, 1);
    std::int64_t high = 0;
    if (llvm::AddOverflow<std::int64_t>(low, g.shape_of(n).extent[g.attribute(n, 0)] - 1, high)) return false;
    const int bits = bits_of(d.type);
    if (bits < 64) {
      const std::int64_t least = is_signed_int(d.type) ? -(std::int64_t{1} << (bits - 1)) : 0;
      const std::int64_t most = (std::int64_t{1} << (is_signed_int(d.type) ? bits - 1 : bits)) - 1;
      if (low < least || high > most) return false;
    }
    out = {number64(low), number64(high), nullptr};
    return true;
  }
  case op::broadcast:
  case op::reshape:
  case op::trans:
  case op::multiple_of:
  case op::require_layout:
  case op::release_layout:
  case op::max_contiguous: return bounds(s, out);
  case op::cast: {
    if (!is_int(g[s].type) || !bounds(s, out)) return false;
    if (bits_of(d.type) > bits_of(g[s].type) && (is_signed_int(d.type) || is_unsigned_int(g[s].type))) return true;
    if (d.type == g[s].type) return true;
    out.low = checked_add(out.low, number64(0), d.type, out.valid);
    out.high = checked_add(out.high, number64(0), d.type, out.valid);
    return bits_of(d.type) < 64;
  }
  case op::add:
  case op::sub: {
    interval x, y;
    if (!bounds(s, x) || !bounds(g.operand(n, 1), y)) return false;
    if (d.code == op::sub) {
      if (bits_of(d.type) == 64) return false;
      std::swap(y.low, y.high);
      y.low = b.CreateNeg(y.low);
      y.high = b.CreateNeg(y.high);
    }
    out.valid = and_of(x.valid, y.valid);
    out.low = checked_add(x.low, y.low, d.type, out.valid);
    out.high = checked_add(x.high, y.high, d.type, out.valid);
    return true;
  }
  case op::mul: {
    interval x, y;
    if (bits_of(d.type) == 64 || !bounds(s, x) || !bounds(g.operand(n, 1), y)) return false;
    if (llvm::isa<llvm::ConstantInt>(x.low) && x.low == x.high) std::swap(x, y);
    auto* k = llvm::dyn_cast<llvm::ConstantInt>(y.low);
    if (!k || y.low != y.high || k->isNegative()) return false;
    // Both factors fit in 32 bits, so that the product is exact in 64.
    out.valid = and_of(x.valid, y.valid);
    out.low = checked_add(b.CreateMul(x.low, k), number64(0), d.type, out.valid);
    out.high = checked_add(b.CreateMul(x.high, k), number64(0), d.type, out.valid);
    return true;
  }
  default: return false;
  }
}

Value* writer::all_true(int n, bool& known) {
  const node& d = g[n];
  if (d.code == op::constant) return b.getInt1(g.attribute(n, 0) != 0);
  if (g.shape_of(n).rank == 0) return scalar_value(n);
  known = known && !plan_.kept[static_cast<std::size_t>(n)];
  if (!known) return b.getFalse();
  switch (d.code) {
  case op::broadcast:
  case op::reshape:
  case op::trans: return all_true(g.operand(n, 0), known);
  case op::bit_and: {
    Value* x = all_true(g.operand(n, 0), known);
    return known ? b.CreateAnd(x, all_true(g.operand(n, 1), known)) : x;
  }
  case op::lt:
  case op::le:
  case op::gt:
  case op::ge: {
    interval x, y;
    if (!is_int(g[g.operand(n, 0)].type) || !bounds(g.operand(n, 0), x) || !bounds(g.operand(n, 1), y)) break;
    Value* ok = d.code == op::lt   ? b.CreateICmpSLT(x.high, y.low)
                : d.code == op::le ? b.CreateICmpSLE(x.high, y.low)
                : d.code == op::gt ? b.CreateICmpSGT(x.low, y.high)
                                   : b.CreateICmpSGE(x.low, y.high);
    return and_of(and_of(ok, x.valid), y.valid);
  }
  default: break;
  }
  known = false;
  return b.getFalse();
}

// Appends what must hold for the access to be plain, and records the mask and the region as assumed.
void writer::conditions_of(int address_node, int mask_node, std::vector<Value*>& all) {
  if (g[address_node].kind == node_kind::region && !assumed_.contains(address_node)) {
    assumed_.insert(address_node);
    const int array = g.operand(address_node, 0), index = static_cast<int>(g.attribute(array, 0));
    const int first = first_slot(g, index), rank = g.params[static_cast<std::size_t>(index)].rank;
    const shape& s = g.shape_of(address_node);
    for (int d = 0; d < rank; ++d) {
      const int start_node = g.operand(address_node, 1 + d);
      Value* start = scalar_value(start_node);
      start =
          is_signed_int(g[start_node].type) ? b.CreateSExt(start, b.getInt64Ty()) : b.CreateZExt(start, b.getInt64Ty());
      Value *extent = slot(first + 1 + d), *stride = slot(first + 1 + rank + d);
      // 0 <= start and start + size <= extent, without overflow: extents are not negative.
      Value* room = b.CreateSub(extent, b.getInt64(static_cast<std::uint64_t>(s.extent[d])));
      all.push_back(b.CreateAnd(b.CreateICmpSGE(start, b.getInt64(0)), b.CreateICmpSLE(start, room)));
      if (d == lane_axis_of(s) && s.extent[d] > 1 && !llvm::isa<llvm::ConstantInt>(stride))
        all.push_back(b.CreateICmpEQ(stride, b.getInt64(1)));
    }
  }
  if (mask_node >= 0 && !assumed_.contains(mask_node)) {
    bool known = true;
    Value* ok = all_true(mask_node, known);
    if (known) {
      assumed_.insert(mask_node);
      all.push_back(ok);
    }
  }
}

Value* writer::conjunction(std::vector<Value*> const& all) {
  Value* r = nullptr;
  for (Value* v : all) r = and_of(r, v);
  return r ? r : b.getTrue();
}

// Whether a tile of integers or pointers is linear in its coordinates.
bool writer::is_affine(int n) const {
  const node& d = g[n];
  if (g.shape_of(n).rank == 0 || d.code == op::constant || d.code == op::iota) return true;
  if (plan_.kept[static_cast<std::size_t>(n)]) return false;
  switch (d.code) {
  case op::broadcast:
  case op::cast:
  case op::neg:
  case op::multiple_of:
  case op::require_layout:
  case op::release_layout:
  case op::max_contiguous: return is_affine(g.operand(n, 0));
  case op::add:
  case op::sub:
  case op::ptr_add: return is_affine(g.operand(n, 0)) && is_affine(g.operand(n, 1));
  case op::mul: {
    auto uniform = [&](int x) {
      while (g[x].code == op::broadcast) x = g.operand(x, 0);
      return g.shape_of(x).rank == 0 || g[x].code == op::constant;
    };
    return (uniform(g.operand(n, 0)) && is_affine(g.operand(n, 1))) || (uniform(g.operand(n, 1)) && is_affine(g.operand(n, 0)));
  }
  default: return false;
  }
}

// When the stores of the nest should go around the cache: they are whole aligned lines of an output that the kernel does
// not read, and the launch writes more than the caches would keep. Null: never.
Value* writer::streaming_condition(nest const& it) {
  if (streaming_bytes() <= 0) return nullptr;
  Value* ok = nullptr;
  bool any = false;
  for (const root& t : it.roots) {
    if (t.what == role::var_set || t.what == role::local_store || t.what == role::keep) continue;
    if (t.what != role::store) return nullptr;
    any = true;
    const int where = g.operand(t.node, 0);
    const shape& s = g.shape_of(where);
    const int parameter = memory_root(g, where), lane = it.lane_axis;
    const std::int64_t size = bytes_of(g[where].type);
    const std::int64_t line = size * lanes_for(it.bits, s.extent[lane]);
    if (parameter < 0 || it.across >= 0 || line < 16 || s.extent[lane] * size % line != 0) return nullptr;
    for (int i = 0; i < g.size(); ++i)
      if ((g[i].code == op::load || g[i].code == op::async_load || g[i].code == op::atomic_rmw || g[i].code == op::atomic_cas) &&
          memory_root(g, g.operand(i, 0)) == parameter)
        return nullptr;
    const bool region = g[where].kind == node_kind::region;
    if (!region && !is_affine(where)) return nullptr;
    // How much the launch writes there.
    Value* written;
    if (region) {
      written = b.getInt64(static_cast<std::uint64_t>(size));
      const int first = first_slot(g, parameter);
      for (int d = 0; d < g.params[static_cast<std::size_t>(parameter)].rank; ++d) written = b.CreateMul(written, slot(first + 1 + d));
    } else {
      written = b.getInt64(static_cast<std::uint64_t>(size * s.elements()));
      for (Value* extent : grid_) written = b.CreateMul(written, extent);
    }
    ok = and_of(ok, b.CreateICmpUGT(written, b.getInt64(static_cast<std::uint64_t>(streaming_bytes()))));
    // Alignment of the first element of each row: address at the origin, and how far it moves along each axis.
    const unsigned was = std::exchange(width_, 1u);
    auto address_at = [&](int axis) {
      coordinates x(static_cast<std::size_t>(s.rank), number(0));
      if (axis >= 0) x[static_cast<std::size_t>(axis)] = number(1);
      const guarded a = region ? pull_region(where, x) : guarded{pull_address(where, x), false, {}};
      return b.CreatePtrToInt(pointer_of(a.where), b.getInt64Ty());
    };
    Value* origin = address_at(-1);
    Value* stray = origin;
    for (int d = 0; d < s.rank; ++d)
      if (d != lane && s.extent[d] > 1) stray = b.CreateOr(stray, b.CreateSub(address_at(d), origin));
    width_ = was;
    ok = and_of(ok, b.CreateICmpEQ(b.CreateAnd(stray, b.getInt64(63)), b.getInt64(0)));
  }
  return any ? ok : nullptr;
}

// Every global access that the nest makes: (address or region, mask or -1).
void writer::collect_accesses(nest const& it, std::vector<std::pair<int, int>>& out) {
  std::vector<char> seen(g.nodes.size());
  std::function<void(int, bool)> visit = [&](int n, bool itself) {
    if (n < 0 || (!itself && seen[static_cast<std::size_t>(n)])) return;
    seen[static_cast<std::size_t>(n)] = 1;
    if (g[n].kind == node_kind::value && g.shape_of(n).rank == 0 && !itself) return;
    if (!itself && plan_.kept[static_cast<std::size_t>(n)]) return;
    const op o = g[n].code;
    if (o == op::result || o == op::var_get || has(o, trait::view) || g[n].kind == node_kind::array) return;
    if (o == op::load) out.emplace_back(g.operand(n, 0), g.operand(n, 1));
    if (o == op::store) out.emplace_back(g.operand(n, 0), g.operand(n, 2));
    if (o == op::async_load) out.emplace_back(g.operand(n, 0), g.operand(n, 2));
    for (int x : g.operands(n)) visit(x, false);
  };
  for (const root& t : it.roots) visit(t.node, true);
}

} // namespace kiln::jit::host
