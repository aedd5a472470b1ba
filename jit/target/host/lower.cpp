// The generated function around the nests: arguments, the loop over CTAs, control flow, scalars, line tables.
#include "lower.hpp"

#include "dot_kernel.hpp"
#include "lowerings.hpp"
#include "writer.hpp"

#include <kiln/target/compile_error.hpp>

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/Target/TargetMachine.h>

namespace kiln::jit::host {

writer::writer(graph_view view, specialisation const& facts, host_cpu const& cpu, module_builder& builder)
    : g(view), facts_(facts), cpu_(cpu), out_(builder), plan_(make_plan(g)), c(builder.module.getContext()),
      b(c), e{b, emit::capabilities::host(builder.machine)} {
  scalar_.assign(g.nodes.size(), nullptr);
  cells_.assign(g.nodes.size(), nullptr);
}

void writer::refuse(int n, std::string const& why) const {
  throw compile_error(std::string(out_.symbol), "host", "lowering",
                      std::string(g.file(n)) + ":" + std::to_string(g[n].line) + ": " +
                          std::string(name_of(g[n].code)) + " " + why);
}

// -- line tables
// -------------------------------------------------------------------------------------------------------

void writer::locate(int n) {
  const node& d = g[n];
  if (!debug_function_ || d.file >= debug_scopes_.size()) return;
  if (d.line <= 0) return;
  b.SetCurrentDebugLocation(llvm::DILocation::get(c, static_cast<unsigned>(d.line), 0, debug_scopes_[d.file]));
}

// -- the function
// ------------------------------------------------------------------------------------------------------

llvm::AllocaInst* writer::cell(Type* t, const llvm::Twine& name) {
  llvm::IRBuilder<> at(entry_, entry_->begin());
  return at.CreateAlloca(t, nullptr, name);
}

Value* writer::constant_of(dtype t, std::int64_t bits) {
  const auto u = static_cast<std::uint64_t>(bits);
  if (is_bool(t)) return b.getInt1(bits != 0);
  const unsigned width = static_cast<unsigned>(bits_of(t));
  const llvm::APInt value(width, u, false, true);
  if (t == dtype::f32) return llvm::ConstantFP::get(c, llvm::APFloat(llvm::APFloat::IEEEsingle(), value));
  if (t == dtype::f64) return llvm::ConstantFP::get(c, llvm::APFloat(llvm::APFloat::IEEEdouble(), value));
  return llvm::ConstantInt::get(c, value);
}

Value* writer::slot(int index) { return slot_values_[static_cast<std::size_t>(index)]; }

llvm::Function* writer::make_entry() {
  Type *ptr = b.getPtrTy(), *i64 = b.getInt64Ty();
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {ptr, ptr, i64, i64, ptr, ptr}, false);
  return llvm::Function::Create(type, llvm::Function::ExternalLinkage, std::string(out_.symbol), out_.module);
}

// Arguments 0, 1, 4, 5 are the entry's: slots, grid, arena, runtime.
void writer::open_function(llvm::Function* f) {
  function_ = f;
  Type* i64 = b.getInt64Ty();
  for (unsigned i : {0u, 1u}) {
    function_->addParamAttr(i, llvm::Attribute::NoAlias);
    function_->addParamAttr(i, llvm::Attribute::ReadOnly);
  }
  function_->addParamAttr(4, llvm::Attribute::NoAlias);
  function_->addParamAttr(4, llvm::Attribute::getWithAlignment(c, llvm::Align(64)));
  slots_ = function_->getArg(0);
  arena_ = function_->getArg(4);
  runtime_ = function_->getArg(5);

  // The kernel's own place is that of its first statement; parameters have none.
  int first_statement = 0;
  while (first_statement < g.size() && g[first_statement].line <= 0) ++first_statement;
  if (first_statement < g.size()) {
    const std::size_t own_file = g[first_statement].file;
    out_.module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
    debug_ = std::make_unique<llvm::DIBuilder>(out_.module);
    std::vector<llvm::DIFile*> files;
    for (char const* f : g.files) {
      const std::string_view path = *f ? f : g.files[own_file];
      const auto cut = path.rfind('/');
      files.push_back(cut == std::string_view::npos
                          ? debug_->createFile(path, ".")
                          : debug_->createFile(std::string(path.substr(cut + 1)), std::string(path.substr(0, cut))));
    }
    auto* unit =
        debug_->createCompileUnit(llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C_plus_plus_14), files[own_file],
                                  "kiln", true, "", 0, "", llvm::DICompileUnit::LineTablesOnly);
    const int line = g[first_statement].line;
    const auto name = g.name.empty() ? std::string(out_.symbol) : std::string(g.name);
    debug_function_ = debug_->createFunction(
        unit, name, std::string(out_.symbol), files[own_file], static_cast<unsigned>(line),
        debug_->createSubroutineType(debug_->getOrCreateTypeArray({})), static_cast<unsigned>(line),
        llvm::DINode::FlagPrototyped, llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
    function_->setSubprogram(debug_function_);
    for (std::size_t i = 0; i < files.size(); ++i)
      debug_scopes_.push_back(i == own_file ? static_cast<llvm::DIScope*>(debug_function_)
                                            : debug_->createLexicalBlockFile(debug_function_, files[i]));
    b.SetCurrentDebugLocation(llvm::DILocation::get(c, static_cast<unsigned>(line), 0, debug_function_));
  }

  // Arguments are read once, in front of the loop over CTAs.
  entry_ = llvm::BasicBlock::Create(c, "entry", function_);
  b.SetInsertPoint(entry_);
  for (int i = 0; i < 3; ++i)
    grid_[i] = b.CreateZExt(b.CreateLoad(b.getInt32Ty(), b.CreateConstGEP1_64(b.getInt32Ty(), function_->getArg(1),
                                                                              static_cast<std::uint64_t>(i))),
                            i64);
  int next = 0;
  for (std::size_t p = 0; p < g.params.size(); ++p) {
    const param_info& info = g.params[p];
    const param_facts* facts = p < facts_.params.size() ? &facts_.params[p] : nullptr;
    auto read = [&](Type* t) {
      return b.CreateLoad(t, b.CreateConstGEP1_64(i64, slots_, static_cast<std::uint64_t>(next++)));
    };
    Value* v = nullptr;
    if (info.kind == node_kind::value) {
      if (facts && facts->scalar.constant) {
        v = constant_of(info.type, facts->scalar.value);
        slot_values_.push_back(v);
        ++next;
      } else {
        Value* bits = read(i64);
        slot_values_.push_back(bits);
        if (is_bool(info.type)) v = b.CreateICmpNE(b.CreateAnd(bits, b.getInt64(0xff)), b.getInt64(0));
        else
          v = b.CreateBitCast(b.CreateTrunc(bits, b.getIntNTy(static_cast<unsigned>(bits_of(info.type)))),
                              carrier(info.type));
      }
    } else {
      v = read(b.getPtrTy());
      slot_values_.push_back(v);
      for (int k = 0; k < 2 * info.rank && info.kind == node_kind::array; ++k) {
        const integer_fact* fact = !facts ? nullptr : k < info.rank ? &facts->extent[k] : &facts->stride[k - info.rank];
        if (fact && fact->constant) {
          slot_values_.push_back(b.getInt64(static_cast<std::uint64_t>(fact->value)));
          ++next;
        } else {
          slot_values_.push_back(read(i64));
        }
      }
    }
    if (info.node >= 0) scalar_[static_cast<std::size_t>(info.node)] = v;
  }
}

// Coordinates in the grid of CTA number `cta`.
void writer::set_program(Value* cta) {
  auto uses = [&](int axis) {
    return std::ranges::any_of(g.nodes, [&](node const& n) {
      return n.code == op::device_print ||
             (n.code == op::program_id && g.attribute_pool[static_cast<std::size_t>(n.attributes)] >= axis);
    });
  };
  program_[0] = cta;
  program_[1] = program_[2] = b.getInt64(0);
  // Without program_id(1) and (2) the grid may still have these axes: x is the remainder then.
  if (uses(0)) program_[0] = b.CreateURem(cta, grid_[0]);
  if (uses(1)) {
    Value* rest = b.CreateUDiv(cta, grid_[0]);
    program_[1] = b.CreateURem(rest, grid_[1]);
    program_[2] = b.CreateUDiv(rest, grid_[1]);
  }
}

void writer::open_ctas() {
  Type* i64 = b.getInt64Ty();
  auto* work = llvm::BasicBlock::Create(c, "ctas", function_);
  cta_exit_ = llvm::BasicBlock::Create(c, "done");
  b.CreateCondBr(b.CreateICmpSLT(function_->getArg(2), function_->getArg(3)), work, cta_exit_);
  b.SetInsertPoint(work);
  cta_ = b.CreatePHI(i64, 2, "cta");
  cta_->addIncoming(function_->getArg(2), entry_);
  set_program(cta_);
  begin_levels();
}

void writer::close_ctas() {
  auto* latch = b.GetInsertBlock();
  Value* next = b.CreateAdd(cta_, b.getInt64(1), "", true, true);
  cta_->addIncoming(next, latch);
  b.CreateCondBr(b.CreateICmpSLT(next, function_->getArg(3)), cta_->getParent(), cta_exit_);
  cta_exit_->insertInto(function_);
  b.SetInsertPoint(cta_exit_);
}

// Stores around the cache are ordered with nothing: whoever learns that we are done must see them.
void writer::fence_streams() {
  if (!any_streaming_) return;
  if (out_.machine.getTargetTriple().isX86())
    b.CreateCall(llvm::Intrinsic::getOrInsertDeclaration(&out_.module, llvm::Intrinsic::x86_sse_sfence));
  else b.CreateFence(llvm::AtomicOrdering::Release);
}

void writer::close_function() {
  b.CreateRetVoid();
  if (debug_) debug_->finalize();
}

void writer::walk() {
  for (const step& s : plan_.steps) {
    switch (s.what) {
    case step::scalar:
      locate(s.index);
      emit_scalar(s.index);
      break;
    case step::nest: emit_nest(plan_.nests[static_cast<std::size_t>(s.index)]); break;
    case step::structure:
      locate(s.index);
      emit_structure(s.index);
      break;
    }
  }
}

host_code writer::run() {
  open_function(make_entry());
  open_ctas();
  walk();
  close_ctas();
  fence_streams();
  close_function();
  return {plan_.arena_bytes, 0, any_streaming_};
}

// What is left of one CTA is a function of its own; the entry hands it, and the functions of the product, to the driver.
host_code writer::run_after(graph_view const& whole, dot_loop const& d, int buffer) {
  const dot_cpu cpu = dot_cpu_of(cpu_, e.caps);
  const dot_recipe recipe = choose_dot_recipe(whole, d, facts_, cpu);
  const std::int64_t slices = (plan_.arena_bytes + 4095) / 4096 * 4096;
  Type *ptr = b.getPtrTy(), *i64 = b.getInt64Ty();
  llvm::Function* entry = make_entry(); // the module's first function
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {ptr, ptr, i64, ptr, ptr, ptr}, false);
  auto* rest = llvm::Function::Create(type, llvm::Function::InternalLinkage, "rest", out_.module);
  open_function(rest);
  set_program(rest->getArg(2));
  filled_buffer_ = buffer;
  filled_ = rest->getArg(3);
  begin_levels();
  walk();
  close_function();

  b.SetCurrentDebugLocation({});
  emit_dot_kernel(whole, facts_, d, recipe, cpu, e, out_.module, entry, rest, slices);
  fence_streams();
  b.CreateRetVoid();
  return {slices + recipe.arena_bytes(d), recipe.group, any_streaming_};
}

// -- control
// -----------------------------------------------------------------------------------------------------------

void writer::emit_structure(int n) {
  const node& d = g[n];
  auto block = [&](char const* name) { return llvm::BasicBlock::Create(c, name, function_); };
  switch (d.code) {
  case op::fence:
    fence_streams();
    b.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
    break;
  case op::for_begin: {
    Value *low = scalar_value(g.operand(n, 0)), *high = scalar_value(g.operand(n, 1)),
          *step = scalar_value(g.operand(n, 2));
    Type *i64 = b.getInt64Ty(), *t = low->getType();
    const bool is_signed = is_signed_int(d.type);
    // Trips, without overflow in the index type: unsigned distances. A step of 0 makes none.
    auto wide = [&](Value* v) { return b.CreateZExt(v, i64); };
    auto less = [&](Value* p, Value* q) { return is_signed ? b.CreateICmpSLT(p, q) : b.CreateICmpULT(p, q); };
    Value *zero = llvm::ConstantInt::get(t, 0), *none = b.getInt64(0), *one = b.getInt64(1);
    auto trips = [&](Value* from, Value* to, Value* by) { // from < to, by > 0
      return b.CreateAdd(b.CreateUDiv(b.CreateSub(wide(b.CreateSub(to, from)), one),
                                      b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, wide(by), one)),
                         one);
    };
    Value* up = b.CreateAnd(less(zero, step), less(low, high));
    Value* trip = b.CreateSelect(up, trips(low, high, step), none);
    if (is_signed) {
      Value* down = b.CreateAnd(less(step, zero), less(high, low));
      trip = b.CreateSelect(down, trips(high, low, b.CreateNeg(step)), trip);
    }
    region_state r{};
    r.begin = n;
    r.body = block("for");
    r.exit = llvm::BasicBlock::Create(c, "rof");
    auto* before = b.GetInsertBlock();
    b.CreateCondBr(b.CreateICmpNE(trip, none), r.body, r.exit);
    b.SetInsertPoint(r.body);
    r.counter = b.CreatePHI(i64, 2, "trips_left");
    r.counter->addIncoming(trip, before);
    auto* index = b.CreatePHI(t, 2, "index");
    index->addIncoming(low, before);
    r.index = index;
    r.step = step;
    scalar_[static_cast<std::size_t>(n)] = index;
    open_.push_back(r);
    break;
  }
  case op::for_end: {
    region_state r = open_.back();
    open_.pop_back();
    Value* left = b.CreateSub(r.counter, b.getInt64(1));
    auto* index = llvm::cast<llvm::PHINode>(r.index);
    Value* next = b.CreateAdd(index, r.step);
    r.counter->addIncoming(left, b.GetInsertBlock());
    index->addIncoming(next, b.GetInsertBlock());
    b.CreateCondBr(b.CreateICmpNE(left, b.getInt64(0)), r.body, r.exit);
    r.exit->insertInto(function_);
    b.SetInsertPoint(r.exit);
    break;
  }
  case op::if_begin: {
    region_state r{};
    r.begin = n;
    r.body = block("then");
    r.exit = llvm::BasicBlock::Create(c, "fi");
    const bool has_else = g.attribute(n, 0) >= 0;
    r.other = has_else ? llvm::BasicBlock::Create(c, "else") : nullptr;
    b.CreateCondBr(scalar_value(g.operand(n, 0)), r.body, has_else ? r.other : r.exit);
    b.SetInsertPoint(r.body);
    open_.push_back(r);
    break;
  }
  case op::if_else: {
    region_state& r = open_.back();
    b.CreateBr(r.exit);
    r.other->insertInto(function_);
    b.SetInsertPoint(r.other);
    break;
  }
  case op::if_end: {
    region_state r = open_.back();
    open_.pop_back();
    b.CreateBr(r.exit);
    r.exit->insertInto(function_);
    b.SetInsertPoint(r.exit);
    break;
  }
  case op::while_begin: {
    region_state r{};
    r.begin = n;
    r.head = block("while");
    r.exit = llvm::BasicBlock::Create(c, "elihw");
    b.CreateBr(r.head);
    b.SetInsertPoint(r.head);
    open_.push_back(r);
    break;
  }
  case op::while_test: {
    region_state& r = open_.back();
    r.body = block("do");
    b.CreateCondBr(scalar_value(g.operand(n, 0)), r.body, r.exit);
    b.SetInsertPoint(r.body);
    break;
  }
  case op::while_end: {
    region_state r = open_.back();
    open_.pop_back();
    b.CreateBr(r.head);
    r.exit->insertInto(function_);
    b.SetInsertPoint(r.exit);
    break;
  }
  default: refuse(n, "is not part of a region that the host lowering knows");
  }
}

// -- scalars
// -----------------------------------------------------------------------------------------------------------

Value* writer::scalar_value(int n) {
  Value* v = scalar_[static_cast<std::size_t>(n)];
  if (!v && g[n].code == op::constant) return constant_of(g[n].type, g.attribute(n, 0));
  if (!v && g[n].code == op::unset) return constant_of(g[n].type, 0);
  if (!v) refuse(n, "is used before it has a value (a fault of the host lowering)");
  return v;
}

void writer::emit_scalar(int n) {
  const node& d = g[n];
  Value*& result = scalar_[static_cast<std::size_t>(n)];
  begin_levels();
  width_ = 1;
  switch (d.code) {
  case op::param: return; // read at the entry
  case op::constant: result = constant_of(d.type, g.attribute(n, 0)); return;
  case op::unset: result = constant_of(d.type, 0); return;
  case op::program_id:
  case op::num_programs: {
    Value* v = (d.code == op::program_id ? program_ : grid_)[g.attribute(n, 0)];
    result = b.CreateIntCast(v, carrier(d.type), false);
    return;
  }
  case op::extent:
  case op::stride: {
    const int index = static_cast<int>(g.attribute(g.operand(n, 0), 0));
    const int rank = g.params[static_cast<std::size_t>(index)].rank;
    result = slot(first_slot(g, index) + 1 + (d.code == op::stride ? rank : 0) + static_cast<int>(g.attribute(n, 0)));
    return;
  }
  case op::array_data: result = scalar_value(g.operand(n, 0)); return;
  case op::var: {
    Value* v = scalar_value(g.operand(n, 0));
    auto*& at = cells_[static_cast<std::size_t>(n)];
    at = cell(v->getType());
    b.CreateStore(v, at);
    return;
  }
  case op::var_get: {
    auto* at = cells_[static_cast<std::size_t>(g.operand(n, 0))];
    if (d.kind == node_kind::token) return;
    result = b.CreateLoad(at->getAllocatedType(), at);
    return;
  }
  case op::var_set:
    b.CreateStore(scalar_value(g.operand(n, 1)), cells_[static_cast<std::size_t>(g.operand(n, 0))]);
    return;
  case op::ptr_add: {
    const int o = g.operand(n, 1);
    Value* elements = scalar_value(o);
    elements =
        is_signed_int(g[o].type) ? b.CreateSExt(elements, b.getInt64Ty()) : b.CreateZExt(elements, b.getInt64Ty());
    result = b.CreateGEP(memory_type(d.type), scalar_value(g.operand(n, 0)), elements);
    return;
  }
  case op::load: {
    const guarded a = pull_access(g.operand(n, 0), g.operand(n, 1), {});
    lanes other;
    if (const int o = g.operand(n, 2); o >= 0) other = of(scalar_value(o), 0, false);
    result = scalar_of(read_guarded(a, d.type, other.v ? &other : nullptr, g.attribute(n, 2) != 0), carrier(d.type));
    return;
  }
  case op::store: {
    const guarded a = pull_access(g.operand(n, 0), g.operand(n, 2), {});
    write(a, g[g.operand(n, 0)].type, of(scalar_value(g.operand(n, 1)), 0, false));
    return;
  }
  case op::atomic_rmw:
  case op::atomic_cas: emit_atomic(n); return;
  case op::result: {
    const int s = g.operand(n, 0);
    const int k = static_cast<int>(g.attribute(n, 0));
    auto* at = k == 0 ? cells_[static_cast<std::size_t>(s)] : more_cells_.at(s * 8 + k);
    result = b.CreateLoad(at->getAllocatedType(), at);
    return;
  }
  case op::device_assert: {
    Value* bad = b.CreateNot(scalar_value(g.operand(n, 0)));
    emit::when(b, bad, [&] { call_assert(n); });
    return;
  }
  case op::broadcast: result = scalar_value(g.operand(n, 0)); return;
  case op::reshape:
  case op::split:
  case op::trans: result = scalar_of(pull_fresh(n, {}, false), carrier(d.type)); return;
  default: break;
  }
  if (has(d.code, trait::elementwise)) {
    llvm::SmallVector<Value*, 3> in;
    for (int o : g.operands(n)) in.push_back(scalar_value(o));
    result = apply(n, in);
    return;
  }
  refuse(n, "has no scalar form in the host lowering");
}

void writer::call_assert(int n) {
  Type *ptr = b.getPtrTy(), *i32 = b.getInt32Ty();
  auto hook =
      out_.module.getOrInsertFunction(assert_hook, llvm::FunctionType::get(b.getVoidTy(), {ptr, i32, i32, i32}, false));
  b.CreateCall(hook, {runtime_, b.getInt32(static_cast<std::uint32_t>(g.attribute(n, 0))), b.getInt32(g[n].file),
                      b.getInt32(static_cast<std::uint32_t>(g[n].line))});
}

host_code lower_host(graph_view g, specialisation const& facts, host_cpu const& cpu, module_builder& out) {
  for (int i = 0; i < g.size(); ++i)
    if (part_of(g[i].code) == part::refused)
      throw compile_error(std::string(out.symbol), "host", "lowering",
                          std::string(g.file(i)) + ":" + std::to_string(g[i].line) + ": kiln[R-TG01] " +
                              std::string(name_of(g[i].code)) +
                              ": one thread runs a CTA here, and this was left by the pass that makes one program of the tasks; compile through kiln::jit::emit or a launch");
  if (const dot_match m = match_dot_loop(g)) {
    const dot_rest r = without_dot_loop(g, m.found);
    return writer(r.rest, facts, cpu, out).run_after(g, m.found, r.buffer);
  }
  return writer(g, facts, cpu, out).run();
}

} // namespace kiln::jit::host
