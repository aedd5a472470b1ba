// Builds a loop around one helper, compiles it and loads it.
#include "probe.hpp"

#include "convert.hpp"
#include "integer.hpp"
#include "loop.hpp"
#include "math.hpp"
#include "minmax.hpp"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <functional>
#include <map>
#include <stdexcept>

namespace kiln::emit {

using llvm::Value;

namespace {

template <class T> T check(llvm::Expected<T> value) {
  if (!value) throw std::runtime_error(llvm::toString(value.takeError()));
  return static_cast<T&&>(*value);
}

void check(llvm::Error error) {
  if (error) throw std::runtime_error(llvm::toString(std::move(error)));
}

using helper = std::function<Value*(emitter&, dtype, Value*, Value*, Value*)>;

const std::map<std::string, helper, std::less<>>& helpers() {
  const auto unary = [](Value* (*f)(emitter&, Value*)) -> helper {
    return [f](emitter& e, dtype, Value* a, Value*, Value*) { return f(e, a); };
  };
  const auto order = [](extremum which, nan_mode mode) -> helper {
    return [=](emitter& e, dtype t, Value* a, Value* b, Value*) {
      return is_float(t) ? float_extremum(e, which, mode, a, b) : int_extremum(e, which, is_signed_int(t), a, b);
    };
  };
  static const std::map<std::string, helper, std::less<>> table{
      {"exp", unary(exp)},
      {"exp2", unary(exp2)},
      {"log", unary(log)},
      {"log2", unary(log2)},
      {"sin", unary(sin)},
      {"cos", unary(cos)},
      {"tanh", unary(tanh)},
      {"erf", unary(erf)},
      {"sqrt", unary(sqrt)},
      {"rsqrt", unary(rsqrt)},
      {"floor", unary(floor)},
      {"ceil", unary(ceil)},
      {"trunc", unary(trunc)},
      {"round", unary(round)},
      {"round_even", unary(round_even)},
      {"fma", [](emitter& e, dtype, Value* a, Value* b, Value* c) { return fma(e, a, b, c); }},
      {"min", order(extremum::minimum, nan_mode::ignore)},
      {"max", order(extremum::maximum, nan_mode::ignore)},
      {"min_propagate", order(extremum::minimum, nan_mode::propagate)},
      {"max_propagate", order(extremum::maximum, nan_mode::propagate)},
      {"accumulate_max",
       [](emitter& e, dtype, Value* a, Value* b, Value*) { return accumulate_extremum(e, extremum::maximum, a, b); }},
      {"divide", [](emitter& e, dtype t, Value* a, Value* b, Value*) { return divide(e, a, b, is_signed_int(t)); }},
      {"remainder",
       [](emitter& e, dtype t, Value* a, Value* b, Value*) { return remainder(e, a, b, is_signed_int(t)); }},
      {"floor_divide",
       [](emitter& e, dtype t, Value* a, Value* b, Value*) { return floor_divide(e, a, b, is_signed_int(t)); }},
      {"ceil_divide",
       [](emitter& e, dtype t, Value* a, Value* b, Value*) { return ceil_divide(e, a, b, is_signed_int(t)); }},
      {"divide_by_7", [](emitter& e, dtype t, Value* a, Value*,
                         Value*) { return divide(e, a, e.integer(a->getType(), 7), is_signed_int(t)); }},
      {"remainder_by_minus_1",
       [](emitter& e, dtype t, Value* a, Value*, Value*) {
         return remainder(e, a, llvm::Constant::getAllOnesValue(a->getType()), is_signed_int(t));
       }},
      {"divide_by_0", [](emitter& e, dtype t, Value* a, Value*,
                         Value*) { return divide(e, a, e.integer(a->getType(), 0), is_signed_int(t)); }},
      {"shift_left", [](emitter& e, dtype, Value* a, Value* b, Value*) { return shift_left(e, a, b); }},
      {"shift_right",
       [](emitter& e, dtype t, Value* a, Value* b, Value*) { return shift_right(e, a, b, is_signed_int(t)); }},
      {"absolute", [](emitter& e, dtype, Value* a, Value*, Value*) { return absolute(e, a); }},
  };
  return table;
}

const helper& find(std::string_view name) {
  const auto found = helpers().find(name);
  if (found == helpers().end()) throw std::runtime_error("no helper is called " + std::string(name));
  return found->second;
}

// void probe(ptr out, ptr a, ptr b, ptr c, i64 n), internal storage of b1: a byte.
std::unique_ptr<llvm::Module> build(llvm::LLVMContext& context, const llvm::TargetMachine& machine, capabilities caps,
                                    const helper& body, dtype from, dtype to, unsigned lanes) {
  auto module = std::make_unique<llvm::Module>("probe", context);
  module->setDataLayout(machine.createDataLayout());
  module->setTargetTriple(machine.getTargetTriple());
  llvm::IRBuilder<> b(context);
  llvm::Type* pointer = b.getPtrTy(machine.getTargetTriple().isAMDGPU() ? 1 : 0);
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer, pointer, b.getInt64Ty()}, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "probe", *module);
  function->addFnAttr("target-cpu", machine.getTargetCPU());
  function->addFnAttr("target-features", machine.getTargetFeatureString());
  function->addFnAttr("prefer-vector-width", "512");
  function->addFnAttr(llvm::Attribute::NoUnwind);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "", function));
  emitter e{b, caps};
  auto storage = [&](dtype t) {
    auto* carried = carrier(context, t, lanes);
    return is_bool(t) ? emitter::shaped(b.getInt8Ty(), carried) : carried;
  };
  auto address = [&](Value* base, dtype t, Value* i) {
    return b.CreateInBoundsGEP(storage(t)->getScalarType(), base, i);
  };
  loop(b, b.getInt64(0), function->getArg(4), b.getInt64(lanes == 0 ? 1 : lanes), [&](Value* i) {
    Value* in[3];
    for (unsigned k = 0; k < 3; ++k) {
      in[k] = b.CreateAlignedLoad(storage(from), address(function->getArg(k + 1), from, i), llvm::Align(1));
      if (is_bool(from)) in[k] = b.CreateICmpNE(in[k], llvm::Constant::getNullValue(storage(from)));
    }
    Value* out = body(e, from, in[0], in[1], in[2]);
    if (is_bool(to)) out = b.CreateZExt(out, storage(to));
    b.CreateAlignedStore(out, address(function->getArg(0), to, i), llvm::Align(1));
  });
  b.CreateRetVoid();
  std::string faults;
  llvm::raw_string_ostream stream(faults);
  if (llvm::verifyModule(*module, &stream)) throw std::runtime_error("invalid IR: " + faults);
  return module;
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);
  llvm::ModulePassManager passes;
  check(builder.parsePassPipeline(passes, "function(early-cse,instcombine<no-verify-fixpoint>,loop-mssa(licm))"));
  passes.run(module, mam);
}

llvm::SmallVector<char, 0> generate(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType kind) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, kind)) throw std::runtime_error("cannot emit code");
  passes.run(module);
  return bytes;
}

std::string gpu(const helper& body, dtype from, dtype to, std::string_view triple, std::string_view cpu) {
  llvm::InitializeAllTargetInfos();
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  llvm::InitializeAllAsmPrinters();
  std::string error;
  const llvm::Triple t{llvm::StringRef(triple)};
  const auto* target = llvm::TargetRegistry::lookupTarget(t, error);
  if (!target) throw std::runtime_error(error);
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(t, cpu, "", llvm::TargetOptions{}, llvm::Reloc::PIC_));
  llvm::LLVMContext context;
  auto module = build(context, *machine, capabilities::gpu(), body, from, to, 0);
  optimise(*module, *machine);
  const auto text = generate(*module, *machine, llvm::CodeGenFileType::AssemblyFile);
  return {text.begin(), text.end()};
}

helper conversion(dtype to) {
  return [to](emitter& e, dtype from, Value* a, Value*, Value*) { return convert(e, a, from, to); };
}

} // namespace

struct probe::state {
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  capabilities caps;
  unsigned count = 0;

  function compile(const helper& body, dtype from, dtype to, unsigned lanes) {
    llvm::LLVMContext context;
    auto module = build(context, *machine, caps, body, from, to, lanes);
    optimise(*module, *machine);
    auto object = std::make_unique<llvm::SmallVectorMemoryBuffer>(
        generate(*module, *machine, llvm::CodeGenFileType::ObjectFile), "probe", false);
    auto file = check(llvm::object::ObjectFile::createObjectFile(object->getMemBufferRef()));
    for (const auto& symbol : file->symbols()) {
      const auto name = check(symbol.getName());
      if (!name.empty() && (check(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined))
        throw std::runtime_error("the code calls " + name.str());
    }
    auto& library = check(jit->createJITDylib("probe" + std::to_string(count++)));
    check(jit->addObjectFile(library, std::move(object)));
    return check(jit->lookup(library, "probe")).toPtr<function>();
  }
};

probe::probe(std::string cpu) : state_(std::make_unique<state>()) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto builder = check(llvm::orc::JITTargetMachineBuilder::detectHost());
  if (!cpu.empty()) {
    builder.setCPU(cpu);
    builder.getFeatures() = llvm::SubtargetFeatures();
  }
  state_->machine = check(builder.createTargetMachine());
  state_->caps = capabilities::host(*state_->machine);
  state_->jit = check(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(builder).create());
}

probe::~probe() = default;

probe::function probe::compile(std::string_view name, dtype type, unsigned lanes) {
  return state_->compile(find(name), type, type, lanes);
}

probe::function probe::compile_conversion(dtype from, dtype to, unsigned lanes) {
  return state_->compile(conversion(to), from, to, lanes);
}

std::string probe::gpu_assembly(std::string_view name, dtype type, std::string_view triple, std::string_view cpu) {
  return gpu(find(name), type, type, triple, cpu);
}

std::string probe::gpu_conversion_assembly(dtype from, dtype to, std::string_view triple, std::string_view cpu) {
  return gpu(conversion(to), from, to, triple, cpu);
}

} // namespace kiln::emit
