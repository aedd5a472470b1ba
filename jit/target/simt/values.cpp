// Values of a lowering: look-up, placeless values, coordinates, and the finish that places barriers.
#include "lowerer.hpp"

#include "jit/emit/integer.hpp"
#include "jit/passes/depth_first.hpp"

#include <kiln/layout/blocked.hpp>
#include <kiln/layout/index_terms.hpp>
#include <kiln/target/compile_error.hpp>
#include <llvm/IR/PatternMatch.h>

namespace kiln::jit::simt {

using enum layout_dim;

void lowerer::fail(int node, std::string const& text) const {
  std::string where;
  if (node < 0) node = current;
  if (node >= 0 && g[node].line > 0) where = std::string(g.file(node)) + ":" + std::to_string(g[node].line) + ": ";
  throw compile_error(std::string(g.name.empty() ? mb.symbol : g.name), std::string(target.name()), "building IR",
                      where + text);
}

int lowerer::layout_id(linear_layout const& l) {
  for (std::size_t i = 0; i < layouts.size(); ++i)
    if (layouts[i] == l) return static_cast<int>(i);
  layouts.push_back(l);
  return static_cast<int>(layouts.size()) - 1;
}

registers const* lowerer::look_up(int node, int layout) const {
  for (auto s = scopes.rbegin(); s != scopes.rend(); ++s)
    if (auto const at = s->find({node, layout}); at != s->end()) return &at->second;
  return nullptr;
}

void lowerer::define(int node, registers r, int index) {
  r.phase = phase;
  scopes.back()[{node + index * g.size(), is_scalar(node) ? -1 : layout_id(plan.of(node))}] = std::move(r);
}

registers lowerer::result_of(int node, int index) {
  registers const* r = look_up(node + index * g.size(), is_scalar(node) ? -1 : layout_id(plan.of(node)));
  if (!r) fail(node, "internal: a result that was not made");
  return *r;
}

linear_layout lowerer::layout_of_use(int node) {
  if (!plan.placeless[static_cast<std::size_t>(node)]) return plan.of(node);
  for (int o : g.operands(node)) // a broadcast along what its source has, or an element-wise chain
    if (o >= 0 && g[o].shape == g[node].shape) return layout_of_use(o);
  auto const& e = g.shape_of(node);
  std::vector<std::int64_t> const extents(e.extent, e.extent + e.rank);
  return normal_form(default_blocked_layout(extents, {.num_warps = cta.num_warps, .warp_size = cta.warp_size}), cta);
}

registers lowerer::get(int node, linear_layout const& want) {
  if (is_scalar(node)) {
    if (registers const* r = look_up(node, -1)) return *r;
    if (is_outer(node)) return capture(node);
    fail(node, "internal: " + std::string(name_of(g[node].code)) + " has no value yet");
  }
  int const id = layout_id(want);
  if (registers const* r = look_up(node, id)) {
    if (r->phase != phase && g[node].code == op::load)
      carried_words[node] = static_cast<int>(r->r.size()) * static_cast<int>(storage_bits_of(type(node))) / 32;
    if (r->phase == phase || !keeps_narrow(node, want)) return *r;
    return scopes.back()[{node, id}] = compute_again(node, want);
  }
  registers r;
  if (plan.placeless[static_cast<std::size_t>(node)]) {
    r = compute(node, want);
  } else {
    registers const* have = look_up(node, layout_id(plan.of(node)));
    registers outer;
    if (!have && is_outer(node)) {
      outer = outer_tile(node);
      have = &outer;
    }
    if (!have) fail(node, "internal: " + std::string(name_of(g[node].code)) + " has no value yet");
    r.base = have->base;
    r.r = convert(have->r, plan.of(node), want);
  }
  r.phase = phase;
  scopes.back()[{node, id}] = r;
  return r;
}

bool lowerer::keeps_narrow(int node, linear_layout const& want, int depth) {
  if (!hw->can_hide() || depth > 2 || want.in.bits(reg) < 5 || g[node].kind != node_kind::value) return false;
  switch (g[node].code) {
  case op::cast: {
    int const from = g.operand(node, 0);
    return !is_bool(type(from)) && bits_of(type(from)) <= 16 && bits_of(type(node)) == 32 && !is_scalar(from) &&
           !plan.placeless[static_cast<std::size_t>(from)] && plan.of(from) == want;
  }
  case op::add:
  case op::sub:
  case op::mul:
  case op::fma:
  case op::neg:
  case op::abs: break;
  default: return false;
  }
  bool narrow = false;
  for (int o : g.operands(node)) {
    if (is_scalar(o) || plan.placeless[static_cast<std::size_t>(o)]) continue;
    if (!keeps_narrow(o, want, depth + 1)) return false;
    narrow = true;
  }
  return narrow;
}

registers lowerer::compute_again(int node, linear_layout const& want) {
  if (g[node].code == op::cast) {
    // The words that hold the elements, seen by the assembler as new ones: else it keeps what it made of the old ones.
    int const from = g.operand(node, 0);
    registers narrow = get(from, want);
    if (narrow.phase != phase) {
      dtype const t = type(from);
      auto const per = static_cast<std::size_t>(32 / storage_bits_of(t));
      for (std::size_t i = 0; i < narrow.r.size(); i += per) {
        Value* word = hw->hide(pack(llvm::ArrayRef(narrow.r).slice(i, per), t, b.getInt32Ty()));
        unpack(word, t, llvm::MutableArrayRef(narrow.r).slice(i, per));
      }
      narrow.phase = phase;
      scopes.back()[{from, layout_id(want)}] = narrow;
      narrow_words = std::max(narrow_words, static_cast<int>(narrow.r.size() / per));
    }
  }
  registers r = element_wise(node, want);
  r.phase = phase;
  return r;
}

std::vector<Value*> lowerer::made_here(llvm::ArrayRef<Value*> x, dtype t) {
  std::vector<Value*> r(x.begin(), x.end());
  int const bits = storage_bits_of(t);
  if (bits > 32 || x.size() * static_cast<std::size_t>(bits) % 32 != 0) return r;
  auto const per = static_cast<std::size_t>(32 / bits);
  for (std::size_t i = 0; i < r.size(); i += per)
    unpack(hw->made_here(pack(llvm::ArrayRef(r).slice(i, per), t, b.getInt32Ty())), t, llvm::MutableArrayRef(r).slice(i, per));
  return r;
}

// Several CTAs on each multiprocessor hide each other's reductions and waits. Where that takes no more registers than a kernel
// needs, the assembler is told, since it would use all that there are: rows that are kept narrow should fill half of the
// registers, so that half of all registers hold bytes that are on their way, and what else was loaded ahead comes on top; of products
// two CTAs run together.
void lowerer::bound_registers() {
  constexpr int others = 32, all = 65536;
  int products = 0;
  for (int i = 0; i < g.size(); ++i)
    if (g[i].code == op::dot) {
      auto const p = matrix_product_of(g, facts, i, cta);
      if (!p) return;
      int const rows = 1 << (p->m - p->warps_m), columns = 1 << (p->n - p->warps_n); // of a warp
      products = std::max(products, rows * columns / 32 + rows / 4 + columns / 4);
    }
  if (products == 0 && narrow_words == 0) return;
  if (products == 0) function->addFnAttr(depth_first_attribute);
  int ahead = -narrow_words;
  for (auto const& [load, words] : carried_words) ahead += words;
  int const each = products != 0 ? products + narrow_words + others : narrow_words + std::max(narrow_words, others) + std::max(ahead, 0);
  int const ctas = std::min({all / (each * cta.threads()), 2048 / cta.threads(), products != 0 ? 2 : 32});
  if (ctas >= 2) hw->run_together(*function, ctas);
}

registers lowerer::compute(int node, linear_layout const& want) {
  std::size_t const n = std::size_t{1} << want.in.bits(reg);
  registers r;
  switch (g[node].code) {
  case op::unset:
  case op::constant: {
    dtype const t = type(node);
    auto const bits = g[node].code == op::unset ? 0 : static_cast<std::uint64_t>(g.attribute(node, 0));
    Value* v = is_bool(t)
                   ? b.getInt1(bits != 0)
                   : from_memory(llvm::ConstantInt::get(memory_type(t),
                                                        llvm::APInt(64, bits).trunc(static_cast<unsigned>(bits_of(t)))),
                                 t);
    r.r.assign(n, v);
    return r;
  }
  case op::iota: {
    int const axis = static_cast<int>(g.attribute(node, 0));
    llvm::Type* t = carrier(type(node));
    Value* start = llvm::ConstantInt::get(t, static_cast<std::uint64_t>(g.attribute(node, 1)));
    for (std::size_t i = 0; i < n; ++i)
      r.r.push_back(b.CreateAdd(b.CreateZExtOrTrunc(coordinate(want, axis, static_cast<int>(i)), t), start));
    return r;
  }
  case op::broadcast: {
    int const from = g.operand(node, 0);
    if (is_scalar(from)) {
      registers const x = get(from, want);
      if (g[node].kind == node_kind::pointer) {
        r.base = x.scalar();
        r.r.assign(n, i64(0));
      } else {
        r.r.assign(n, x.scalar());
      }
      return r;
    }
    linear_layout const l = operand_layout(g, node, want, cta);
    registers const x = get(from, l);
    r.base = x.base;
    // The elements of the result, seen as elements of the source.
    linear_layout seen = zero_map(want.in, l.out);
    shape const &a = g.shape_of(from), &c = g.shape_of(node);
    for (int i = 0; i < want.in.total(); ++i)
      for (int d = 0; d < a.rank; ++d)
        if (a.extent[d] != 1)
          seen.col[static_cast<std::size_t>(i)] |= l.out.put(
              axis_dim(d), want.out.get(want.col[static_cast<std::size_t>(i)], axis_dim(d + c.rank - a.rank)));
    for (int i : register_map(seen, l)) r.r.push_back(x.r[static_cast<std::size_t>(i)]);
    return r;
  }
  case op::reshape:
  case op::trans:
    if (g[g.operand(node, 0)].shape == 0) { // a scalar as a tile of one element
      r.r.assign(n, scalar(g.operand(node, 0)));
      return r;
    }
    return get(g.operand(node, 0), operand_layout(g, node, want, cta));
  default: return element_wise(node, want);
  }
}

registers lowerer::element_wise(int node, linear_layout const& l) {
  registers r;
  std::vector<registers> x;
  for (int o : g.operands(node)) x.push_back(get(o, l));
  std::size_t const n = is_scalar(node) ? 1 : std::size_t{1} << l.in.bits(reg);
  if (g[node].kind == node_kind::pointer) {
    if (g[node].code != op::ptr_add) return x[0]; // a hint
    dtype const index = type(g.operand(node, 1));
    registers const& p = x[0];
    r.base = p.base;
    llvm::Type* element_type = memory_type(type(node));
    for (std::size_t i = 0; i < n; ++i) {
      Value* o = x[1].r[i];
      o = is_signed_int(index) ? b.CreateSExt(o, b.getInt64Ty()) : b.CreateZExt(o, b.getInt64Ty());
      r.r.push_back(p.base ? b.CreateAdd(p.r[i], o) : b.CreateGEP(element_type, p.r[i], o));
    }
    return r;
  }
  for (std::size_t i = 0; i < n; ++i) {
    llvm::SmallVector<Value*, 3> e;
    for (registers const& v : x) e.push_back(v.r[i]);
    r.r.push_back(element(node, e));
  }
  return r;
}

std::vector<Value*> lowerer::combine(int begin, llvm::ArrayRef<Value*> arguments) {
  push_scope();
  int const end = static_cast<int>(g.attribute(begin, 0));
  for (int i = begin + 1; i < end; ++i) {
    debug_location(i);
    if (g[i].code == op::combine_arg) {
      define(i, {{arguments[static_cast<std::size_t>(g.attribute(i, 0))]}});
    } else if (g[i].code == op::constant || g[i].code == op::iota) {
      define(i, compute(i, plan.of(i)));
    } else if (has(g[i].code, trait::elementwise) && is_scalar(i)) {
      define(i, element_wise(i, plan.of(i)));
    } else {
      fail(i, "kiln[R-TG01] " + std::string(name_of(g[i].code)) +
                  " inside a combine: only element-wise operations on scalars are possible there; compute it before "
                  "the reduction");
    }
  }
  std::vector<Value*> results;
  for (int o : g.operands(end)) results.push_back(scalar(o));
  pop_scope();
  return results;
}

// ---- coordinates
// ------------------------------------------------------------------------------------------------------

Value* lowerer::thread_part(linear_layout const& l, layout_dim to) {
  auto const [at, fresh] = thread_parts.try_emplace({layout_id(l), to}, nullptr);
  if (!fresh) return at->second;
  // Lane and warp are known at the top, so that every part stands there and serves the whole kernel.
  llvm::IRBuilder<>::InsertPointGuard guard(b);
  b.SetInsertPoint(entry_end);
  Value* sum = nullptr;
  for (auto [field, index] : {std::pair{layout_dim::lane, lane}, {layout_dim::warp, warp}}) {
    index_terms const terms = terms_of(l, field, to);
    for (index_term const& t : terms) {
      Value* x = index;
      if (t.mask != f2_low_mask(l.in.bits(field))) x = b.CreateAnd(x, i32(static_cast<std::int64_t>(t.mask)));
      if (t.shift > 0) x = b.CreateShl(x, static_cast<std::uint64_t>(t.shift), "", true, true);
      if (t.shift < 0) x = b.CreateLShr(x, static_cast<std::uint64_t>(-t.shift));
      sum = sum ? b.CreateXor(sum, x) : x;
    }
  }
  return thread_parts[{layout_id(l), to}] = sum ? sum : i32(0);
}

bool lowerer::additive(linear_layout const& l, layout_dim to) {
  return !(reachable_bits(l, {layout_dim::lane, layout_dim::warp}, to) & reachable_bits(l, {reg}, to));
}

Value* lowerer::coordinate(linear_layout const& l, int axis, int r) {
  layout_dim const to = axis_dim(axis);
  Value* t = thread_part(l, to);
  auto const own = static_cast<std::int64_t>(l.out.get(l(l.in.put(reg, static_cast<f2_word>(r))), to));
  if (own == 0) return t;
  if (reachable_bits(l, {layout_dim::lane, layout_dim::warp}, to) & static_cast<f2_word>(own))
    return b.CreateXor(t, i32(own));
  return b.CreateOr(t, i32(own), "", /*IsDisjoint=*/true);
}

Value* lowerer::inside(linear_layout const& l, shape const& s, int r) {
  Value* all = nullptr;
  for (int d = 0; d < s.rank; ++d) {
    auto const extent = static_cast<std::uint64_t>(s.extent[d]);
    f2_word const reach = reachable_bits(l, {layout_dim::lane, layout_dim::warp}, axis_dim(d));
    f2_word const own = l.out.get(l(l.in.put(reg, static_cast<f2_word>(r))), axis_dim(d));
    if ((own | reach) < extent) continue; // whatever the thread adds
    if ((own & ~reach) >= extent) return b.getFalse();
    all = all_of(all, b.CreateICmpULT(coordinate(l, d, r), i32(s.extent[d])));
  }
  return all;
}

Value* lowerer::is_owner(linear_layout const& l) {
  auto const [at, fresh] = owners_.try_emplace(layout_id(l), nullptr);
  if (!fresh) return at->second;
  owner_masks const m = owners(l);
  llvm::IRBuilder<>::InsertPointGuard guard(b);
  b.SetInsertPoint(entry_end);
  Value* all = nullptr;
  for (auto [index, mask] : {std::pair{lane, m.lane}, {warp, m.warp}})
    if (mask) all = all_of(all, b.CreateICmpEQ(b.CreateAnd(index, i32(static_cast<std::int64_t>(mask))), i32(0)));
  return at->second = all;
}

Value* lowerer::bit_parity(Value* index, f2_word mask) {
  Value* bits = b.CreateAnd(index, i32(static_cast<std::int64_t>(mask)));
  if (std::has_single_bit(mask)) return b.CreateICmpNE(bits, i32(0));
  return b.CreateTrunc(b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits), b.getInt1Ty());
}

void lowerer::when(Value* condition, std::function<void()> const& body) {
  if (!condition) return body();
  llvm::BasicBlock *yes = block("owner"), *after = block("after");
  b.CreateCondBr(condition, yes, after);
  b.SetInsertPoint(yes);
  body();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

llvm::AllocaInst* lowerer::alloca_in_entry(llvm::Type* t) {
  llvm::IRBuilder<>::InsertPointGuard guard(b);
  b.SetInsertPoint(&function->getEntryBlock(), function->getEntryBlock().begin());
  return b.CreateAlloca(t, mb.module.getDataLayout().getAllocaAddrSpace());
}

// ---- local memory: places and barriers
// ----------------------------------------------------------------------------------

std::uint32_t lowerer::scratch(std::int64_t bytes, char const* what) {
  // Uses follow each other in a small ring, so that most need no barrier against the one before.
  constexpr std::int64_t ring = 4096;
  std::int64_t at = (scratch_at + 15) / 16 * 16;
  if (!scratch_held && at + bytes > std::max(ring, scratch_bytes)) at = 0;
  scratch_at = at + bytes;
  scratch_bytes = std::max(scratch_bytes, scratch_at);
  if (data_bytes + scratch_bytes > static_cast<std::int64_t>(target.shared_bytes))
    fail(-1, "kiln[R-CP01] shared memory: " + std::string(what) + " needs " + std::to_string(bytes) + " bytes beside " +
                 std::to_string(data_bytes) + " of local buffers, " + std::string(target.name()) + " has " +
                 std::to_string(target.shared_bytes) + "; use smaller tiles or fewer buffers");
  return static_cast<std::uint32_t>(data_bytes + at);
}

Value* lowerer::arena(std::int64_t offset) {
  if (offset == 0) return arena_variable;
  if (parent && offset >= data_bytes) return b.CreateInBoundsGEP(b.getInt8Ty(), scratch_base, i32(offset - data_bytes));
  return b.CreateInBoundsGEP(b.getInt8Ty(), arena_variable, i32(offset));
}

void lowerer::touch(local_event::kind what, std::vector<byte_range> bytes, ring_slot slot) {
  local_event e;
  e.what = what;
  e.bytes = std::move(bytes);
  e.slot = slot;
  touch(std::move(e));
}
void lowerer::touch(local_event e) { events.push_back({std::move(e), b.CreateCall(marker_function)}); }
void lowerer::touch(local_event::kind what, std::int64_t offset, std::int64_t bytes) {
  touch(what, {byte_range{static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(offset + bytes)}});
}

void lowerer::place_buffers() {
  auto name_of_buffer = [&](int i) {
    diagnostic d;
    {
      kiln::detail::message m(d);
      kiln::detail::put_buffer_name(m, g, i);
    }
    return std::string(d.view());
  };
  auto up = [](std::int64_t v, std::int64_t a) { return (v + a - 1) / a * a; };
  std::int64_t static_at = static_base, most = 0;
  int largest = -1;
  std::string table;
  for (std::size_t i = 0; i < g.buffers.size(); ++i) {
    buffer_info const& info = g.buffers[i];
    if (info.where == storage::tmem)
      fail(info.node, "kiln[R-CP05] " + name_of_buffer(static_cast<int>(i)) + ": " + std::string(target.name()) +
                          (target.has_tensor_memory() ? " has tensor memory, but kiln does not compile for it yet; run the kernel on the host, or use storage::smem"
                                                      : " has no tensor memory; use storage::smem"));
    buffer_swizzled.push_back(spreads_over_banks(static_cast<int>(i)));
    int const owner = g.storage_of(static_cast<int>(i));
    if (owner != static_cast<int>(i)) { // its storage came before it
      buffer_offset.push_back(buffer_offset[static_cast<std::size_t>(owner)] + info.place.offset);
      continue;
    }
    std::int64_t const align = kiln::detail::buffer_alignment(info), total = kiln::detail::slots_end(g, info);
    bool const apart = info.placement == scope::shared_static;
    if (align > 1024 && !apart)
      fail(info.node, "kiln[R-BD08] .align = " + std::to_string(align) +
                          ": the arena starts at a multiple of 1024; use 1024 or less");
    std::int64_t& at = apart ? static_at : data_bytes;
    at = up(at, align);
    buffer_offset.push_back(at);
    if (apart) {
      auto* array = new llvm::GlobalVariable(
          mb.module, llvm::ArrayType::get(b.getInt8Ty(), static_cast<std::uint64_t>(total)), false,
          llvm::GlobalValue::InternalLinkage,
          llvm::PoisonValue::get(llvm::ArrayType::get(b.getInt8Ty(), static_cast<std::uint64_t>(total))), "kiln_static",
          nullptr, llvm::GlobalValue::NotThreadLocal, 3);
      array->setAlignment(llvm::Align(static_cast<std::uint64_t>(align)));
      static_arrays[static_cast<int>(i)] = array;
    }
    at += total;
    if (total > most) most = total, largest = info.node;
    table += (table.empty() ? "" : ", ") + name_of_buffer(owner) + " " +
             (info.slots > 1 ? std::to_string(info.slots) + " x " + std::to_string(kiln::detail::slot_stride(g, info)) : std::to_string(total));
  }
  std::int64_t const fixed = static_at - static_base;
  if (fixed > static_cast<std::int64_t>(target.static_shared_bytes))
    fail(-1, "kiln[R-CP02] static shared memory: " + std::to_string(fixed) + " bytes, " + std::string(target.name()) +
                 " allows " + std::to_string(target.static_shared_bytes) + "; use scope::shared_dyn");
  for (int i = 0; i < g.size(); ++i) // barriers behind the buffers
    if (g[i].code == op::alloc_barriers) {
      data_bytes = up(data_bytes, 8);
      barrier_offset[i] = data_bytes;
      data_bytes += 8 * g.attribute(i, 0);
      std::string const name = g.string(static_cast<int>(g.attribute(i, 3)));
      table += (table.empty() ? "" : ", ") + (name.empty() ? "barriers" : name) + " " + std::to_string(8 * g.attribute(i, 0));
    }
  if (!agents.empty()) { // room for every scalar that a task may take over
    std::vector<bool> seen(static_cast<std::size_t>(g.size()));
    captures_at = data_bytes = up(data_bytes, 8);
    for (agent const& a : agents)
      for (int i = a.task; i < g.attribute(a.task, 5); ++i)
        for (int o : g.operands(i))
          if (o >= 0 && o < a.task) seen[static_cast<std::size_t>(o)] = true;
    // What those are computed from counts, too.
    for (int i = g.size(); i-- > 0;)
      if (seen[static_cast<std::size_t>(i)])
        for (int o : g.operands(i))
          if (o >= 0) seen[static_cast<std::size_t>(o)] = true;
    data_bytes += 8 * std::count(seen.begin(), seen.end(), true);
    command_at = data_bytes;
    if (nested_regions) data_bytes += 8;
  }
  data_bytes = (data_bytes + 127) / 128 * 128; // scratch memory behind the buffers starts aligned for any access
  if (data_bytes + fixed > static_cast<std::int64_t>(target.shared_bytes))
    fail(largest, "kiln[R-CP01] shared memory: " + std::to_string(data_bytes + fixed) + " bytes (" + table + "), " +
                 std::string(target.name()) + " has " + std::to_string(target.shared_bytes) +
                 "; use smaller tiles or fewer slots");
  result.static_shared_bytes = static_cast<std::uint32_t>(fixed);
}

void lowerer::finish() {
  if (agents.empty() && !parent) bound_registers();
  std::vector<local_event> plain;
  for (recorded_event const& e : events) plain.push_back(e.event);
  std::vector<bool> const before = insert_barriers(plain);
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!events[i].marker) continue;
    if (before[i]) {
      b.SetInsertPoint(events[i].marker);
      b.SetCurrentDebugLocation(events[i].marker->getDebugLoc());
      agent_barrier(false);
      ++result.barriers;
    }
    events[i].marker->eraseFromParent();
  }
  marker_function->eraseFromParent();

  if (parent) {
    b.SetInsertPoint(scratch_base);
    b.SetCurrentDebugLocation(scratch_base->getDebugLoc());
    Value* mine = scratch_variable;
    if (replica) mine = b.CreateInBoundsGEP(b.getInt8Ty(), mine, b.CreateMul(replica, i32((scratch_bytes + 127) / 128 * 128)));
    scratch_base->replaceAllUsesWith(mine);
    scratch_base->eraseFromParent();
    return;
  }
  std::int64_t bytes = data_bytes + scratch_bytes;
  for (auto const& [variable, room] : scratch_of_tasks) {
    bytes = (bytes + 127) / 128 * 128;
    variable->replaceAllUsesWith(llvm::ConstantExpr::getInBoundsGetElementPtr(b.getInt8Ty(), arena_variable, b.getInt64(static_cast<std::uint64_t>(bytes))));
    variable->eraseFromParent();
    bytes += room;
  }
  if (bytes > static_cast<std::int64_t>(target.shared_bytes))
    fail(-1, "kiln[R-CP01] shared memory: " + std::to_string(bytes) + " bytes with what the tasks need to move values between their threads, " +
                 std::string(target.name()) + " has " + std::to_string(target.shared_bytes) + "; use smaller tiles or fewer slots");
  if (hw->dynamic_shared()) {
    result.shared_bytes = static_cast<std::uint32_t>(bytes);
  } else if (bytes) {
    auto* sized = llvm::ArrayType::get(b.getInt8Ty(), static_cast<std::uint64_t>(bytes));
    auto* real =
        new llvm::GlobalVariable(mb.module, sized, false, llvm::GlobalValue::InternalLinkage,
                                 llvm::PoisonValue::get(sized), "", nullptr, llvm::GlobalValue::NotThreadLocal, 3);
    real->setAlignment(llvm::Align(1024));
    real->takeName(arena_variable);
    arena_variable->replaceAllUsesWith(real);
    arena_variable->eraseFromParent();
    arena_variable = real;
    result.static_shared_bytes += static_cast<std::uint32_t>(bytes);
  }
  if (arena_variable->use_empty()) arena_variable->eraseFromParent();
}

// ---- memory representation
// ------------------------------------------------------------------------------------------------

Value* lowerer::to_memory(Value* x, dtype t) {
  if (is_bool(t)) return b.CreateZExt(x, b.getInt8Ty());
  return b.CreateBitCast(x, memory_type(t));
}
Value* lowerer::from_memory(Value* x, dtype t) {
  if (is_bool(t)) return b.CreateICmpNE(x, llvm::ConstantInt::get(x->getType(), 0));
  return b.CreateBitCast(x, carrier(t));
}

llvm::Type* lowerer::word_type(dtype t, int elements) const {
  // 32 bits where that is possible: wider words only for wider elements.
  return llvm::IntegerType::get(
      context, static_cast<unsigned>(std::max(storage_bits_of(t), std::min(32, elements * storage_bits_of(t)))));
}

lowerer::half lowerer::half_of(Value* x) {
  using namespace llvm::PatternMatch;
  Value* w = nullptr;
  if (!x->getType()->isIntegerTy(16) || !match(x, m_Trunc(m_Value(w))) || !w->getType()->isIntegerTy(32)) return {};
  Value* whole = nullptr;
  if (match(w, m_LShr(m_Value(whole), m_SpecificInt(16)))) return {whole, true};
  return {w, false};
}

Value* lowerer::pack(llvm::ArrayRef<Value*> elements, dtype t, llvm::Type* word) {
  auto const width = static_cast<unsigned>(storage_bits_of(t));
  if (elements.size() == 2 && width == 16 && word->isIntegerTy(32)) {
    using namespace llvm::PatternMatch;
    half const low = half_of(elements[0]), high = half_of(elements[1]);
    if (low.word && low.word == high.word && !low.high && high.high) return low.word;
    Value *x = nullptr, *y = nullptr;
    if (match(elements[0], m_BitCast(m_FPTrunc(m_Value(x)))) && match(elements[1], m_BitCast(m_FPTrunc(m_Value(y)))) &&
        x->getType()->isFloatTy() && y->getType()->isFloatTy())
      if (Value* both = hw->narrow_pair(x, y, t)) return both;
  }
  Value* r = nullptr;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    Value* x = b.CreateZExt(to_memory(elements[i], t), word);
    if (i) x = b.CreateShl(x, static_cast<std::uint64_t>(i) * width);
    r = r ? b.CreateOr(r, x) : x;
  }
  return r;
}

void lowerer::unpack(llvm::ArrayRef<Value*> words, dtype t, llvm::MutableArrayRef<Value*> elements) {
  auto const width = static_cast<unsigned>(storage_bits_of(t)),
             bits = static_cast<unsigned>(words[0]->getType()->getIntegerBitWidth());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    unsigned const per = bits / width;
    Value* x = words[i / per];
    if (i % per) x = b.CreateLShr(x, static_cast<std::uint64_t>(i % per) * width);
    x = b.CreateTrunc(x, b.getIntNTy(width));
    elements[i] = from_memory(x, t);
  }
}

} // namespace kiln::jit::simt
