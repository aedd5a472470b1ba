// The walk over the graph: kernel, parameters, control flow, vars, constants and checks.
#include "lowerings.hpp"

#include "jit/passes/advances.hpp"
#include "jit/passes/pipeline.hpp"

#include <kiln/layout/cute_text.hpp>
#include <algorithm>
#include <kiln/target/compile_error.hpp>
#include <llvm/IR/MDBuilder.h>

namespace kiln::jit::simt {

namespace {

using emit_function = registers (*)(lowerer&, int);

template <op O> consteval emit_function entry() {
  static_assert(
      requires { sizeof(lowering<O>); },
      "an operation without a SIMT lowering: write lowering<O>, or say in `unsupported` why not");
  return &lowering<O>::emit;
}

constexpr emit_function table[] = {
#define KILN_OP(name, least, most, traits, attributes, summary) entry<op::name>(),
#include <kiln/graph/ops.def>
};

} // namespace

lowerer::lowerer(graph_view const& graph, specialisation const& s, kiln::target const& t, module_builder& m)
    : g(graph), spec(s), target(t), mb(m), context(m.module.getContext()), b(context),
      hw(t.is_nvptx() ? make_nvptx(b, t) : make_amdgpu(b, t)), cta{t.warp_size, graph.attrs.num_warps, hw->has_vector_adds(), hw->has_matrix_unit()},
      facts(g, {.facts = s, .grid = {}}) {}

simt_code lowerer::run() {
  check_cluster();
  try {
    plan = assign_layouts(g, facts, cta);
  } catch (std::invalid_argument const& e) { fail(-1, std::string("kiln[R-TG01] ") + e.what()); }
  plan_tasks();
  make_function();
  place_buffers();
  int n = 0;
  for (int i = 0; i < g.size(); ++i) {
    commits[i] = n;
    n += g[i].code == op::async_commit;
  }
  make_barriers();
  push_scope();
  walk(0, g.size());
  pop_scope();
  if (b.GetInsertBlock()->getTerminator() == nullptr) {
    end_regions();
    b.CreateBr(leave);
  }
  if (workers) {
    b.SetInsertPoint(workers);
    b.CreateBr(leave);
  }
  b.SetInsertPoint(leave);
  b.CreateRetVoid();
  finish();
  inline_tasks();
  if (debug) debug->finalize();
  return std::move(result);
}

registers lowerer::emit_node(int i) {
  for (refusal const& r : unsupported)
    if (r.code == g[i].code && r.family == target.family)
      fail(i, "kiln[R-TG01] " + std::string(name_of(g[i].code)) + ": " + r.reason);
  debug_location(i);
  return table[static_cast<int>(g[i].code)](*this, i);
}

void lowerer::walk(int begin, int end) {
  for (int i = begin; i < end; ++i) {
    node const& x = g[i];
    if (x.code == op::task_begin && g.attribute(i, 0) != 0) { // other warps' task
      i = static_cast<int>(g.attribute(i, 5));
      continue;
    }
    bool const tile = x.shape != 0 && (x.kind == node_kind::value || x.kind == node_kind::pointer);
    if (tile && plan.placeless[static_cast<std::size_t>(i)]) continue;
    registers r = emit_node(i);
    if (!barrier_offset.empty() && (has(x.code, trait::reads) || has(x.code, trait::writes)) && !has(x.code, trait::async))
      structure({.what = local_event::kind::other}); // global memory, which arrivals release too
    if (x.code == op::combine_begin) i = static_cast<int>(g.attribute(i, 0));
    else if (!r.r.empty()) define(i, std::move(r));
  }
}

llvm::GlobalVariable* lowerer::shared_array(char const* name) {
  return new llvm::GlobalVariable(mb.module, llvm::ArrayType::get(b.getInt8Ty(), 0), false, llvm::GlobalValue::ExternalLinkage, nullptr, name,
                                  nullptr, llvm::GlobalValue::NotThreadLocal, 3);
}

void lowerer::make_function() {
  llvm::Type* global = b.getPtrTy(1);
  std::vector<llvm::Type*> types;
  for (param_info const& p : g.params) {
    types.push_back(p.kind == node_kind::value ? static_cast<llvm::Type*>(b.getInt64Ty()) : global);
    if (p.kind == node_kind::array) types.insert(types.end(), static_cast<std::size_t>(2 * p.rank), b.getInt64Ty());
  }
  int const all_threads = all_warps * cta.warp_size;
  function = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), types, false),
                                    parent ? llvm::GlobalValue::InternalLinkage : llvm::GlobalValue::ExternalLinkage,
                                    llvm::StringRef(mb.symbol.data(), mb.symbol.size()), mb.module);
  result.num_threads = all_threads;
  if (!parent) hw->prepare_kernel(*function, all_threads);
  if (!parent && cluster_ctas() > 1) hw->set_cluster(*function, g.attrs.cluster);
  if (!parent && launch_registers) hw->limit_registers(*function, launch_registers);
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    auto const slot = static_cast<unsigned>(first_slot_of(static_cast<int>(i)));
    if (g.params[i].kind == node_kind::value) continue;
    llvm::Argument* a = function->getArg(slot);
    if (int const align = spec.params[i].alignment; align > 1)
      a->addAttr(llvm::Attribute::getWithAlignment(context, llvm::Align(static_cast<std::uint64_t>(align))));
    if (g.params[i].is_const) a->addAttr(llvm::Attribute::ReadOnly);
    if (g.attrs.no_alias) a->addAttr(llvm::Attribute::NoAlias);
  }
  for (llvm::Argument& a : function->args()) slots.push_back(&a);

  // Line tables: profilers show the lambda's own lines.
  int first = 0;
  while (first < g.size() && g[first].line <= 0) ++first; // parameters have no place of their own
  if (first < g.size()) {
    if (!parent) {
      debug = std::make_shared<llvm::DIBuilder>(mb.module);
      for (char const* each : g.files) {
        char const* const f = *each ? each : g.files[g[first].file];
        std::string_view const path = f;
        auto const cut = path.rfind('/');
        debug_files.push_back(debug->createFile(llvm::StringRef(f + (cut == path.npos ? 0 : cut + 1)),
                                                cut == path.npos ? "." : llvm::StringRef(f, cut)));
      }
      // PTX takes line directives alone; full sections would turn the assembler's optimisations off.
      debug->createCompileUnit(
          llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C_plus_plus_20), debug_files[g[first].file], "kiln", true, "", 0, "",
          target.is_nvptx() ? llvm::DICompileUnit::DebugDirectivesOnly : llvm::DICompileUnit::LineTablesOnly);
      mb.module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
      if (!target.is_nvptx()) mb.module.addModuleFlag(llvm::Module::Warning, "Dwarf Version", 5);
    }
    llvm::DIFile* file = debug_files[g[first].file];
    auto const line = static_cast<unsigned>(g[parent ? self.task : first].line);
    llvm::DISubprogram* p = debug->createFunction(
        file, function->getName(), function->getName(), file, line,
        debug->createSubroutineType(debug->getOrCreateTypeArray({})), line, llvm::DINode::FlagPrototyped,
        llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
    function->setSubprogram(p);
  }

  llvm::BasicBlock *entry = block("entry"), *body = block("body");
  leave = llvm::BasicBlock::Create(context, "leave", function);
  b.SetInsertPoint(entry);
  debug_location(-1);
  thread = hw->thread_id(all_threads);
  int const lane_bits = std::countr_zero(static_cast<unsigned>(cta.warp_size));
  if (!parent && all_warps > cta.num_warps) {
    warp_of_cta = hw->warp_uniform(b.CreateLShr(thread, static_cast<std::uint64_t>(lane_bits)));
    workers = llvm::BasicBlock::Create(context, "workers", function);
    llvm::BasicBlock* own = block("own");
    b.CreateCondBr(b.CreateICmpULT(thread, i32(cta.threads())), own, workers);
    b.SetInsertPoint(own);
  }
  if (parent) {
    thread = b.CreateSub(thread, i32(self.first_warp * cta.warp_size));
    if (self.replicas > 1) {
      replica = hw->warp_uniform(b.CreateLShr(thread, static_cast<std::uint64_t>(std::countr_zero(static_cast<unsigned>(cta.threads())))));
      thread = b.CreateAnd(thread, i32(cta.threads() - 1));
    }
  }
  entry_end = b.CreateBr(body);
  b.SetInsertPoint(entry_end);
  barrier_id = replica ? b.CreateAdd(replica, i32(self.barrier)) : i32(self.barrier);
  lane = cta.num_warps == 1 ? thread : b.CreateAnd(thread, i32(cta.warp_size - 1));
  warp = cta.num_warps == 1 ? i32(0) : hw->warp_uniform(b.CreateLShr(thread, static_cast<std::uint64_t>(lane_bits)));
  marker_function = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), false),
                                           llvm::GlobalValue::ExternalLinkage, "kiln.touch", mb.module);
  if (!parent) {
    arena_variable = shared_array("kiln_smem");
    arena_variable->setAlignment(llvm::Align(1024));
  } else { // how much, and where, is known when all is lowered
    scratch_variable = shared_array("kiln_scratch");
    llvm::FunctionCallee const base = mb.module.getOrInsertFunction("kiln.scratch", llvm::FunctionType::get(b.getPtrTy(3), false));
    scratch_base = b.CreateCall(base);
  }
  b.SetInsertPoint(body);
}

void lowerer::debug_location(int node) {
  current = node;
  if (!debug) return;
  llvm::DISubprogram* p = function->getSubprogram();
  if (node < 0 || g[node].line <= 0) {
    b.SetCurrentDebugLocation(llvm::DILocation::get(context, p->getLine(), 0, p));
    return;
  }
  llvm::DIFile* file = debug_files[g[node].file];
  llvm::DIScope* scope = p;
  if (file != p->getFile()) scope = debug->createLexicalBlockFile(p, file);
  b.SetCurrentDebugLocation(llvm::DILocation::get(context, static_cast<unsigned>(g[node].line), 0, scope));
}

// ---- parameters, constants, identity
// ------------------------------------------------------------------------------------

registers lowering<op::param>::emit(lowerer& k, int node) {
  auto const index = static_cast<std::size_t>(k.g.attribute(node, 0));
  param_info const& p = k.g.params[index];
  Value* v = k.slots[static_cast<std::size_t>(k.first_slot_of(static_cast<int>(index)))];
  if (p.kind == node_kind::array) return {};
  if (p.kind == node_kind::pointer) return {{v}};
  if (integer_fact const& f = k.spec.params[index].scalar; f.constant) {
    if (is_bool(p.type)) return {{k.b.getInt1(f.value != 0)}};
    return {{k.from_memory(
        llvm::ConstantInt::get(
            k.memory_type(p.type),
            llvm::APInt(64, static_cast<std::uint64_t>(f.value)).trunc(static_cast<unsigned>(bits_of(p.type)))),
        p.type)}};
  }
  // The slot holds the value's bits, zero-extended.
  if (is_bool(p.type)) return {{k.b.CreateICmpNE(v, k.i64(0))}};
  llvm::Type* const type = k.carrier(p.type);
  Value* const bits = k.b.CreateTrunc(v, k.b.getIntNTy(static_cast<unsigned>(bits_of(p.type))));
  return {{k.b.CreateBitCast(bits, type)}};
}

namespace {
Value* array_integer(lowerer& k, int array, int axis, bool stride) {
  auto const index = static_cast<std::size_t>(k.g.attribute(array, 0));
  param_info const& p = k.g.params[index];
  param_facts const& facts = k.spec.params[index];
  integer_fact const& f = stride ? facts.stride[axis] : facts.extent[axis];
  if (f.constant) return k.i64(f.value);
  return k.slots[static_cast<std::size_t>(k.first_slot_of(static_cast<int>(index)) + 1 + axis + (stride ? p.rank : 0))];
}
} // namespace

registers lowering<op::extent>::emit(lowerer& k, int node) {
  return {{array_integer(k, k.g.operand(node, 0), static_cast<int>(k.g.attribute(node, 0)), false)}};
}
registers lowering<op::stride>::emit(lowerer& k, int node) {
  return {{array_integer(k, k.g.operand(node, 0), static_cast<int>(k.g.attribute(node, 0)), true)}};
}
registers lowering<op::array_data>::emit(lowerer& k, int node) {
  auto const index = static_cast<int>(k.g.attribute(k.g.operand(node, 0), 0));
  return {{k.slots[static_cast<std::size_t>(k.first_slot_of(index))]}};
}

registers lowering<op::constant>::emit(lowerer& k, int node) { return k.compute(node, k.plan.of(node)); }
// Here the threads are known: those of the agent that runs the statement.
registers lowering<op::require_layout>::emit(lowerer& k, int node) {
  std::string why;
  if (std::int64_t const version = k.g.attribute(node, 0) - 1; version >= 1) { // of AMD's wmma
    std::string const name(k.target.name());
    if (k.target.matrix != matrix_unit::wmma)
      k.fail(node, "kiln[R-TG01] require_amd_wmma_layout: " + name + " has no wmma instructions; require_layout takes the layouts of others (layout::mma_accumulator, wgmma_acc, mfma_acc)");
    int const has = k.target.arch == 0x1250 ? 3 : k.target.arch >= 0x1200 ? 2 : 1; // 2 and 3 put rows in the same lanes
    if ((version == 1) != (has == 1))
      k.fail(node, "kiln[R-TG01] require_amd_wmma_layout: version " + std::to_string(version) + " of wmma, " + name + " has version " + std::to_string(has) + "; give .version = " + std::to_string(has));
  }
  if (!named_layout(register_layout_of(k.g, node), k.g.shape_of(node), k.cta, why)) k.fail(node, why);
  return k.element_wise(node, k.plan.of(node));
}
registers lowering<op::assert_layout>::emit(lowerer& k, int node) {
  int const x = k.g.operand(node, 0), y = k.g.operand(node, 1);
  std::string why;
  shape const& s = k.g.shape_of(x);
  std::optional<linear_layout> named;
  if (y < 0) {
    named = named_layout(register_layout_of(k.g, node), s, k.cta, why);
    if (!named) k.fail(node, why);
  }
  auto placed = [&](int i) { return !k.plan.placeless[static_cast<std::size_t>(i)]; };
  if (!placed(x) || (y >= 0 && !placed(y))) return {}; // computed wherever it is used
  linear_layout const a = k.plan.of(x), b = named ? *named : k.plan.of(y);
  if (!same_map(a, b)) k.fail(node, "kiln[R-LY04] layouts differ: the tile is " + layout_text(a, s) + ", expected " + layout_text(b, s));
  return {};
}
registers lowering<op::dump_layout>::emit(lowerer& k, int node) {
  int const x = k.g.operand(node, 0);
  std::string text = "layout of " + std::string(k.g.string(static_cast<int>(k.g.attribute(node, 0)))) + " at line " + std::to_string(k.g[node].line) + " // cute: ";
  if (k.g[x].kind != node_kind::value) {
    int const b = k.g.buffer_of(x);
    layout_writer w;
    kiln::detail::put_slot_layout(w, k.buffer_layout(b), k.g.shapes[static_cast<std::size_t>(k.g.buffer(b).shape)]);
    text += w.text;
  } else if (k.plan.placeless[static_cast<std::size_t>(x)] && !k.is_scalar(x)) {
    text += "computed wherever it is used";
  } else {
    text += layout_text(k.plan.of(x), k.g.shape_of(x));
  }
  k.result.notes.push_back(std::move(text));
  return {};
}
registers lowering<op::tensor_alloc>::emit(lowerer& k, int node) {
  k.fail(node, "kiln[R-CP05] tensor memory: " + std::string(k.target.name()) + " lowering has none; use shared memory");
}
registers lowering<op::tensor_dealloc>::emit(lowerer& k, int node) {
  k.fail(node, "kiln[R-CP05] tensor memory: " + std::string(k.target.name()) + " lowering has none; use shared memory");
}
registers lowering<op::unset>::emit(lowerer& k, int node) { return k.compute(node, k.plan.of(node)); }
registers lowering<op::iota>::emit(lowerer& k, int node) { return k.compute(node, k.plan.of(node)); }

registers lowering<op::program_id>::emit(lowerer& k, int node) {
  return {{k.b.CreateZExtOrTrunc(k.hw->block_id(static_cast<int>(k.g.attribute(node, 0))), k.carrier(k.type(node)))}};
}
registers lowering<op::num_programs>::emit(lowerer& k, int node) {
  return {
      {k.b.CreateZExtOrTrunc(k.hw->grid_extent(static_cast<int>(k.g.attribute(node, 0))), k.carrier(k.type(node)))}};
}

registers lowering<op::result>::emit(lowerer& k, int node) {
  int const from = k.g.operand(node, 0), index = static_cast<int>(k.g.attribute(node, 0));
  return k.result_of(from, index);
}

// ---- control flow
// ---------------------------------------------------------------------------------------------------------

registers lowering<op::for_begin>::emit(lowerer& k, int node) {
  auto& b = k.b;
  Value *lo = k.scalar(k.g.operand(node, 0)), *hi = k.scalar(k.g.operand(node, 1)),
        *step = k.scalar(k.g.operand(node, 2));
  bool const is_signed = is_signed_int(k.type(node));
  llvm::Type* t = lo->getType();
  Value *zero = llvm::ConstantInt::get(t, 0), *one = llvm::ConstantInt::get(t, 1);
  // The number of passes, as an unsigned number: exact for every lo, hi and step, and nothing overflows on the way.
  auto passes_up = [&] {
    Value* some = is_signed ? b.CreateICmpSLT(lo, hi) : b.CreateICmpULT(lo, hi);
    Value* n = b.CreateAdd(b.CreateUDiv(b.CreateSub(b.CreateSub(hi, lo), one), step), one);
    return b.CreateSelect(some, n, zero);
  };
  auto passes_down = [&] {
    Value* n = b.CreateAdd(b.CreateUDiv(b.CreateSub(b.CreateSub(lo, hi), one), b.CreateNeg(step)), one);
    return b.CreateSelect(b.CreateICmpSGT(lo, hi), n, zero);
  };
  Value* passes;
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(step)) {
    if (c->isZero()) passes = zero;
    else passes = is_signed && c->isNegative() ? passes_down() : passes_up();
  } else {
    // A division by a step of 0 must not happen even where its result is dropped.
    Value *none = b.CreateICmpEQ(step, zero), *given = step;
    step = b.CreateSelect(none, one, step);
    Value* n = passes_up();
    if (is_signed) n = b.CreateSelect(b.CreateICmpSGT(given, zero), n, passes_down());
    passes = b.CreateSelect(none, zero, n);
    step = given;
  }
  lowerer::open_region r{.node = node, .head = k.block("for"), .exit = k.block("for.end")};
  llvm::BasicBlock *from = b.GetInsertBlock(), *body = k.block("for.body");
  b.CreateBr(r.head);
  b.SetInsertPoint(r.head);
  r.index = b.CreatePHI(t, 2, "i");
  r.remaining = b.CreatePHI(t, 2, "left");
  r.index->addIncoming(lo, from);
  r.remaining->addIncoming(passes, from);
  r.step = step;
  b.CreateCondBr(b.CreateICmpNE(r.remaining, zero), body, r.exit);
  b.SetInsertPoint(body);
  local_event e{.what = local_event::kind::loop_begin};
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(step); c && c->getBitWidth() <= 64 && c->getValue().isSignedIntN(31))
    e.symbol = node, e.step = static_cast<int>(c->getSExtValue());
  k.structure(e);
  k.structure({.what = local_event::kind::loop_exit});
  k.open.push_back(r);
  k.push_scope();
  k.define(node, {{r.index}});
  return {};
}
registers lowering<op::for_end>::emit(lowerer& k, int) {
  auto& b = k.b;
  lowerer::open_region const r = k.open.back();
  k.open.pop_back();
  k.pop_scope();
  llvm::Type* t = r.index->getType();
  Value *next = b.CreateAdd(r.index, r.step), *left = b.CreateSub(r.remaining, llvm::ConstantInt::get(t, 1), "", true);
  r.index->addIncoming(next, b.GetInsertBlock());
  r.remaining->addIncoming(left, b.GetInsertBlock());
  b.CreateBr(r.head);
  b.SetInsertPoint(r.exit);
  k.structure({.what = local_event::kind::loop_end});
  return {};
}

registers lowering<op::if_begin>::emit(lowerer& k, int node) {
  bool const has_else = k.g.attribute(node, 0) >= 0;
  lowerer::open_region r{.node = node, .exit = k.block("if.end"), .otherwise = has_else ? k.block("else") : nullptr};
  llvm::BasicBlock* then = k.block("then");
  k.b.CreateCondBr(k.scalar(k.g.operand(node, 0)), then, has_else ? r.otherwise : r.exit);
  k.b.SetInsertPoint(then);
  k.structure({.what = local_event::kind::branch_begin});
  k.open.push_back(r);
  k.push_scope();
  return {};
}
registers lowering<op::if_else>::emit(lowerer& k, int) {
  k.pop_scope();
  k.b.CreateBr(k.open.back().exit);
  k.b.SetInsertPoint(k.open.back().otherwise);
  k.structure({.what = local_event::kind::branch_else});
  k.push_scope();
  return {};
}
registers lowering<op::if_end>::emit(lowerer& k, int) {
  k.pop_scope();
  k.b.CreateBr(k.open.back().exit);
  k.b.SetInsertPoint(k.open.back().exit);
  k.structure({.what = local_event::kind::branch_end});
  k.open.pop_back();
  return {};
}

registers lowering<op::while_begin>::emit(lowerer& k, int node) {
  lowerer::open_region r{.node = node, .head = k.block("while"), .exit = k.block("while.end")};
  k.b.CreateBr(r.head);
  k.b.SetInsertPoint(r.head);
  k.structure({.what = local_event::kind::loop_begin});
  k.open.push_back(r);
  k.push_scope();
  return {};
}
registers lowering<op::while_test>::emit(lowerer& k, int node) {
  llvm::BasicBlock* body = k.block("while.body");
  k.structure({.what = local_event::kind::loop_exit});
  k.b.CreateCondBr(k.scalar(k.g.operand(node, 0)), body, k.open.back().exit);
  k.b.SetInsertPoint(body);
  return {};
}
registers lowering<op::while_end>::emit(lowerer& k, int) {
  k.pop_scope();
  k.b.CreateBr(k.open.back().head);
  k.b.SetInsertPoint(k.open.back().exit);
  k.structure({.what = local_event::kind::loop_end});
  k.open.pop_back();
  return {};
}

// ---- vars: one alloca per register, promoted to SSA by the pass pipeline
// ------------------------------------------------

namespace {
void write_cell(lowerer& k, int cell, int value) {
  if (k.g[value].kind == node_kind::token) return;
  registers const x = k.get(value, k.plan.of(cell));
  lowerer::cell& c = k.cells[cell];
  bool const pointer = k.g[value].kind == node_kind::pointer;
  for (std::size_t i = 0; i < x.r.size(); ++i) {
    Value* v = pointer ? k.pointer_of(x, k.type(cell), static_cast<int>(i)) : x.r[i];
    if (c.slot.size() <= i) c.slot.push_back(k.alloca_in_entry(v->getType()));
    k.b.CreateStore(v, c.slot[i]);
  }
}
} // namespace

registers lowering<op::var>::emit(lowerer& k, int node) {
  write_cell(k, node, k.g.operand(node, 0));
  return {};
}
registers lowering<op::var_set>::emit(lowerer& k, int node) {
  write_cell(k, k.g.operand(node, 0), k.g.operand(node, 1));
  return {};
}
registers lowering<op::var_get>::emit(lowerer& k, int node) {
  registers r;
  if (k.g[node].kind == node_kind::token) return r;
  if (int const cell = k.g.operand(node, 0); !k.cells.contains(cell)) return k.outer_cell(cell);
  for (llvm::AllocaInst* a : k.cells.at(k.g.operand(node, 0)).slot)
    r.r.push_back(k.b.CreateLoad(a->getAllocatedType(), a));
  return r;
}

registers lowering<op::combine_begin>::emit(lowerer&, int) { return {}; }
registers lowering<op::combine_arg>::emit(lowerer& k, int node) {
  k.fail(node, "internal: a combine body outside its reduction");
}
registers lowering<op::combine_end>::emit(lowerer& k, int node) {
  k.fail(node, "internal: a combine body outside its reduction");
}

// ---- checks and hints
// -------------------------------------------------------------------------------------------------------

registers lowering<op::assume>::emit(lowerer& k, int node) {
  k.b.CreateAssumption(k.scalar(k.g.operand(node, 0)));
  return {};
}

// A failed assertion leaves its text's index and line in a global variable and ends the CTA: no trap, which would take
// the whole context of the process with it. All threads of the CTA leave together, so that none waits at a barrier.
registers lowering<op::device_assert>::emit(lowerer& k, int node) {
  auto& b = k.b;
  int const condition = k.g.operand(node, 0);
  linear_layout const l = k.is_scalar(condition) ? scalar_layout(k.cta) : k.layout_of_use(condition);
  registers const x = k.get(condition, l);
  Value* good = b.getTrue();
  for (std::size_t i = 0; i < x.r.size(); ++i) {
    Value *v = x.r[i], *in = k.inside(l, k.g.shape_of(condition), static_cast<int>(i));
    good = b.CreateAnd(good, in ? b.CreateOr(v, b.CreateNot(in)) : v);
  }
  Value* bad = b.CreateNot(good);
  if (!k.is_scalar(condition)) bad = k.any_thread(bad);
  k.result.fault = std::string(k.mb.symbol) + "_fault";
  auto* words = llvm::ArrayType::get(b.getInt32Ty(), 4);
  llvm::GlobalVariable* fault = k.mb.module.getGlobalVariable(k.result.fault);
  if (!fault) {
    fault = new llvm::GlobalVariable(k.mb.module, words, false, llvm::GlobalValue::ExternalLinkage,
                                     llvm::ConstantAggregateZero::get(words), k.result.fault, nullptr,
                                     llvm::GlobalValue::NotThreadLocal, 1);
    fault->setVisibility(llvm::GlobalValue::ProtectedVisibility);
    fault->setAlignment(llvm::Align(16));
  }
  llvm::BasicBlock *report = k.block("assert.failed"), *first = k.block("assert.first"),
                   *won = k.block("assert.report"), *go_on = k.block("assert.held");
  b.CreateCondBr(bad, report, go_on, llvm::MDBuilder(k.context).createUnlikelyBranchWeights());
  // The others of a cluster still use this CTA's memory: it goes on.
  llvm::BasicBlock* const then = k.cluster_ctas() > 1 ? go_on : k.leave;
  b.SetInsertPoint(report);
  b.CreateCondBr(b.CreateICmpEQ(k.thread, k.i32(0)), first, then);
  b.SetInsertPoint(first);
  auto* swap = b.CreateAtomicCmpXchg(fault, k.i32(0), k.i32(1), llvm::Align(4), llvm::AtomicOrdering::Monotonic,
                                     llvm::AtomicOrdering::Monotonic,
                                     k.context.getOrInsertSyncScopeID(k.hw->scope_name(memory_scope::gpu)));
  b.CreateCondBr(b.CreateExtractValue(swap, 1), won, then);
  b.SetInsertPoint(won);
  Value* cta =
      b.CreateAdd(k.hw->block_id(0),
                  b.CreateMul(k.hw->grid_extent(0),
                              b.CreateAdd(k.hw->block_id(1), b.CreateMul(k.hw->grid_extent(1), k.hw->block_id(2)))));
  Value* const fields[] = {k.i32(k.g.attribute(node, 0) + 1), k.i32(k.g[node].line), cta};
  for (int i = 0; i < 3; ++i)
    b.CreateStore(fields[i], b.CreateConstInBoundsGEP1_64(b.getInt32Ty(), fault, static_cast<std::uint64_t>(i + 1)));
  b.CreateBr(then);
  b.SetInsertPoint(go_on);
  return {};
}

registers lowering<op::device_print>::emit(lowerer& k, int node) {
  // One thread prints; tiles travel to it through shared memory.
  auto& b = k.b;
  std::vector<view_value> tiles;
  lowerer::hold_scratch const all(k);
  for (int o : k.g.operands(node))
    if (!k.is_scalar(o)) {
      linear_layout const l = k.layout_of_use(o);
      tiles.push_back(k.stage(k.get(o, l), k.type(o), k.g.shape_of(o), l, "device_print"));
    }
  // Behind the last one: the barrier in front of an event must be in front of the reads, which come after all of them.
  for (view_value const& t : tiles) k.touch(local_event::kind::read, k.bytes_of_view(t));
  auto promoted = [&](Value* v, dtype t) -> std::pair<Value*, char const*> {
    if (is_bool(t)) return {b.CreateZExt(v, b.getInt32Ty()), "%d"};
    if (is_float(t)) return {k.convert_type(v, t, dtype::f64), "%g"};
    return {is_signed_int(t) ? b.CreateSExt(v, b.getInt64Ty()) : b.CreateZExt(v, b.getInt64Ty()),
            is_signed_int(t) ? "%lld" : "%llu"};
  };
  k.when(b.CreateICmpEQ(k.thread, k.i32(0)), [&] {
    std::string format = k.g.string(static_cast<int>(k.g.attribute(node, 0)));
    for (std::size_t at = 0; (at = format.find('%', at)) != std::string::npos; at += 2) format.insert(at, 1, '%');
    std::vector<Value*> values;
    std::size_t tile = 0;
    for (int o : k.g.operands(node)) {
      format += ' ';
      if (k.is_scalar(o)) {
        auto const [v, f] = promoted(k.scalar(o), k.type(o));
        values.push_back(v), format += f;
        continue;
      }
      // A tile is printed element by element, so what came before it goes out first.
      view_value const& v = tiles[tile++];
      k.hw->print(format + "[", values);
      values.clear();
      std::int64_t const n = v.extents.elements();
      llvm::BasicBlock *from = b.GetInsertBlock(), *head = k.block("print"), *after = k.block("printed");
      b.CreateBr(head);
      b.SetInsertPoint(head);
      llvm::PHINode* i = b.CreatePHI(b.getInt32Ty(), 2);
      i->addIncoming(k.i32(0), from);
      Value* address = b.CreateGEP(k.memory_type(v.type), v.pointer, i);
      auto const [x, f] = promoted(k.from_memory(b.CreateLoad(k.memory_type(v.type), address), v.type), v.type);
      k.hw->print(std::string(" ") + f, {x});
      Value* next = b.CreateAdd(i, k.i32(1));
      i->addIncoming(next, head);
      b.CreateCondBr(b.CreateICmpULT(next, k.i32(n)), head, after);
      b.SetInsertPoint(after);
      format = " ]";
    }
    k.hw->print(format + "\n", values);
  });
  return {};
}

namespace {
/// Plain loops over products, with their loads ahead of them, where the target copies asynchronously.
std::optional<graph> pipelined(graph_view const& g, specialisation const& s, kiln::target const& t) {
  bool products = false;
  for (node const& n : g.nodes) {
    products |= n.code == op::dot;
    if (is_of_tasks(n.code)) return {}; // the author's own pipeline
  }
  if (!products || !t.is_nvptx() || !t.has_cp_async || !std::has_single_bit(static_cast<unsigned>(g.attrs.num_warps))) return {};
  cta_shape const cta{.warp_size = t.warp_size, .num_warps = g.attrs.num_warps, .matrix_unit = true};
  graph_facts const facts(g, {.facts = s, .grid = {}});
  if (std::optional<graph> const counted = count_advances(g, facts)) {
    graph_view const v = *counted;
    return pipeline_products(v, graph_facts(v, {.facts = s, .grid = {}}), cta, t.shared_bytes);
  }
  return pipeline_products(g, facts, cta, t.shared_bytes);
}

void empty(llvm::Module& m) {
  m.dropAllReferences();
  while (!m.empty()) m.begin()->eraseFromParent();
  while (!m.global_empty()) m.global_begin()->eraseFromParent();
  while (!m.named_metadata_empty()) m.named_metadata_begin()->eraseFromParent();
}
} // namespace

} // namespace kiln::jit::simt

namespace kiln::jit {

simt_code lower_simt(graph_view const& g, specialisation const& s, kiln::target const& t, module_builder& builder) {
  if (t.is_host())
    throw compile_error(std::string(g.name), "host", "building IR", "kiln[R-TG01] the SIMT lowering is for GPUs");
  if (std::optional<graph> const ahead = simt::pipelined(g, s, t)) {
    try {
      graph_view const v = *ahead;
      return simt::lowerer(v, s, t, builder).run();
    } catch (compile_error const& e) { // what the rest of the kernel stages was not known before
      if (std::string_view(e.what()).find("R-CP01") == std::string_view::npos) throw;
      simt::empty(builder.module);
    }
  }
  return simt::lowerer(g, s, t, builder).run();
}

} // namespace kiln::jit
