// Transform, compile and object layers. Errors are stored in the job (with the kernel's name and the phase) before ORC
// learns of them, because what ORC tells the waiters is only that something failed.
#include "layers.hpp"

#include "code_object.hpp"
#include "host_symbols.hpp"
#include "passes.hpp"
#include "pipeline.hpp"

#include <algorithm>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace kiln::jit {

namespace orc = llvm::orc;
using detail::current_job;
using detail::job;
using detail::ms_since;
using clock = std::chrono::steady_clock;

namespace {

llvm::Error failed(job& j) {
  return llvm::createStringError("kernel '" + j.wanted.symbol + "' failed"); // the job has the real story
}

// LLVM ends the process for what it cannot generate code for. While this thread generates code, that becomes an
// exception; LLVM is built without exceptions but with unwind tables, so its frames are left behind undestroyed, and
// whatever they were working on must be abandoned, not reused.
struct fatal_error {
  std::string text;
};

bool& fatal_throws() {
  static thread_local bool throws = false;
  return throws;
}

class fatal_scope {
public:
  fatal_scope() : outer_(fatal_throws()) {
    static std::once_flag once;
    std::call_once(once, [] {
      llvm::install_fatal_error_handler([](void*, const char* reason, bool) {
        if (fatal_throws()) throw fatal_error{reason};
      });
    });
    fatal_throws() = true;
  }
  ~fatal_scope() { fatal_throws() = outer_; }
  fatal_scope(const fatal_scope&) = delete;
  fatal_scope& operator=(const fatal_scope&) = delete;

private:
  bool outer_;
};

// Where abandoned objects stay, for ever: they cannot be taken apart, and leak checkers should know that it is meant.
void abandon(void* object) {
  static std::mutex mutex;
  static auto* const all = new std::vector<void*>;
  const std::lock_guard lock(mutex);
  all->push_back(object);
}

// Collects what LLVM says about a module, instead of its printing to stderr and exiting.
class diagnostics : public llvm::DiagnosticHandler {
public:
  explicit diagnostics(job& j) : job_(j) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::DiagnosticPrinterRawOStream printer(os);
    info.print(printer);
    if (info.getSeverity() == llvm::DS_Error) job_.fail("code generation", text);
    else if (info.getSeverity() == llvm::DS_Warning) job_.notes += "warning: " + text + "\n";
    return true;
  }

private:
  job& job_;
};

// Leaves every optimisation of code generation out for some functions, and selects their instructions fast rather than
// well, the way `optnone` does, without what else that attribute does.
class quick_gate : public llvm::OptPassGate {
public:
  bool isEnabled() const override { return current_job() != nullptr && !current_job()->quick.empty(); }
  bool shouldRunPass(llvm::StringRef, llvm::StringRef what) const override {
    const auto& quick = current_job()->quick;
    return std::ranges::none_of(quick, [&](const std::string& name) { return what == "function (" + name + ")"; });
  }
  static quick_gate& get() {
    static auto* const gate = new quick_gate;
    return *gate;
  }
};

std::unique_ptr<llvm::SmallVectorMemoryBuffer> generate(llvm::Module& m, llvm::TargetMachine& machine,
                                                        llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  {
    llvm::raw_svector_ostream os(bytes);
    auto passes = std::make_unique<llvm::legacy::PassManager>();
    passes->add(new llvm::TargetLibraryInfoWrapperPass(library_info(m.getTargetTriple())));
    if (!add_codegen(*passes, machine, os, type))
      throw std::runtime_error("the target does not emit this kind of file");
    try {
      passes->run(m);
    } catch (const fatal_error&) {
      abandon(passes.release()); // it was left in pieces
      throw;
    }
  }
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(bytes), m.getModuleIdentifier(), false);
}

class compiler : public orc::IRCompileLayer::IRCompiler {
public:
  explicit compiler(layer_context context) : IRCompiler(orc::IRSymbolMapper::ManglingOptions()), context_(context) {}

  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> operator()(llvm::Module& m) override {
    job& j = *current_job();
    try {
      const machine_spec spec = spec_of(j.wanted, context_.cpu);
      const bool ptx = j.wanted.target.is_nvptx();
      if (j.wanted.codegen.keep_asm && !ptx) {
        const auto copy = llvm::CloneModule(m); // code generation rewrites what it is given
        const auto text = guarded(*copy, spec, llvm::CodeGenFileType::AssemblyFile);
        if (j.failure == nullptr) j.assembly = text->getBuffer().str();
      }
      const auto start = clock::now();
      auto bytes = guarded(m, spec, ptx ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile);
      j.times.codegen = ms_since(start);
      ++context_.count.compiles;
      if (j.failure != nullptr) return failed(j);
      if (ptx && j.wanted.codegen.keep_asm) j.assembly = bytes->getBuffer().str();
      j.link_start = clock::now();
      return bytes;
    } catch (const fatal_error& e) { j.fail("code generation", e.text); } catch (const std::exception& e) {
      j.fail("code generation", e.what());
    }
    return failed(j);
  }

private:
  // A machine goes back to the pool only from an orderly end.
  std::unique_ptr<llvm::MemoryBuffer> guarded(llvm::Module& m, const machine_spec& spec, llvm::CodeGenFileType type) {
    auto machine = context_.machines.take(spec);
    const fatal_scope fatal;
    try {
      auto bytes = generate(m, *machine, type);
      context_.machines.give(spec, std::move(machine));
      return bytes;
    } catch (const fatal_error&) {
      abandon(machine.release());
      throw;
    }
  }

  layer_context context_;
};

orc::IRTransformLayer::TransformFunction transform(layer_context context) {
  return [context](orc::ThreadSafeModule m,
                   orc::MaterializationResponsibility&) mutable -> llvm::Expected<orc::ThreadSafeModule> {
    job& j = *current_job();
    const char* phase = "checking IR";
    try {
      const auto start = clock::now();
      const machine_spec spec = spec_of(j.wanted, context.cpu);
      auto machine = context.machines.take(spec);
      m.withModuleDo([&](llvm::Module& module) {
        const module_passes passes{j.wanted, *machine};
        passes.prepare(module);
        if (j.wanted.codegen.keep_ir_before) j.ir_before = text_of(module);
        phase = "passes";
        const fatal_scope fatal;
        passes.run(module);
        if (j.wanted.codegen.keep_ir) j.ir = text_of(module);
        // The entry's name in the session is unique, so that specialisations of one kernel live side by side. A GPU
        // image is a world of its own and keeps the plain name.
        if (j.wanted.target.is_host()) module.getFunction(j.wanted.symbol)->setName(j.link_name);
      });
      context.machines.give(spec, std::move(machine));
      j.times.passes = ms_since(start);
      if (j.failure == nullptr) return m;
    } catch (const fatal_error& e) { j.fail(phase, e.text); } catch (const std::exception& e) {
      j.fail(phase, e.what());
    }
    return failed(j);
  };
}

// Keeps the host object's bytes and refuses what it must not call, before JITLink sees it.
orc::ObjectTransformLayer::TransformFunction check_host_object(layer_context context, const symbol_list& allowed) {
  return [context,
          &allowed](std::unique_ptr<llvm::MemoryBuffer> bytes) -> llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> {
    job& j = *current_job();
    auto object = llvm::object::ObjectFile::createObjectFile(bytes->getMemBufferRef());
    if (!object) {
      j.fail("linking", llvm::toString(object.takeError()));
      return failed(j);
    }
    for (const llvm::object::SectionRef& s : (*object)->sections())
      if (auto name = s.getName()) j.has_debug_info |= name->starts_with(".debug_");
      else llvm::consumeError(name.takeError());
    bool defined = false;
    for (const llvm::object::SymbolRef& s : (*object)->symbols()) {
      auto flags = s.getFlags();
      auto name = s.getName();
      if (!flags || !name) {
        j.fail("linking", llvm::toString(llvm::joinErrors(flags.takeError(), name.takeError())));
        return failed(j);
      }
      if (*flags & llvm::object::SymbolRef::SF_Undefined) {
        if (!name->empty() && !allowed.contains(name->str())) {
          j.fail("linking", why_not(name->str()));
          return failed(j);
        }
      } else {
        defined |= *name == j.link_name;
      }
    }
    if (!defined) {
      j.fail("linking", "the image does not define '" + j.link_name + "': it belongs to another kernel");
      return failed(j);
    }
    if (!j.from_cache) j.image = bytes->getBuffer().str();
    j.kind = image_kind::host_object;
    ++context.count.links;
    return bytes;
  };
}

} // namespace

bool symbol_list::contains(const std::string& name) const {
  const std::shared_lock lock(mutex_);
  return names_.contains(name);
}

bool symbol_list::add(const std::string& name) {
  const std::unique_lock lock(mutex_);
  return names_.insert(name).second;
}

image_layer::image_layer(layer_context context) : ObjectLayer(context.session), context_(context) {
  context_.session.registerResourceManager(*this);
}

image_layer::~image_layer() { context_.session.deregisterResourceManager(*this); }

void image_layer::emit(std::unique_ptr<orc::MaterializationResponsibility> r,
                       std::unique_ptr<llvm::MemoryBuffer> bytes) {
  job& j = *current_job();
  try {
    if (!j.from_cache) {
      const std::string_view fresh(bytes->getBufferStart(), bytes->getBufferSize());
      if (j.wanted.target.is_amdgpu()) {
        j.kind = image_kind::code_object;
        j.image = link_code_object(fresh);
        ++context_.count.links;
      } else if (j.wanted.device_link) {
        j.kind = image_kind::device_binary;
        j.image = j.wanted.device_link(fresh);
        ++context_.count.links;
      } else {
        j.kind = image_kind::ptx;
        j.image = fresh;
      }
    }
    bytes.reset();
    auto held = std::make_unique<std::string>(j.entry);
    orc::SymbolMap resolved;
    for (const auto& [name, flags] : r->getSymbols()) resolved[name] = {orc::ExecutorAddr::fromPtr(held.get()), flags};
    llvm::Error e = r->notifyResolved(resolved);
    if (!e)
      e = r->withResourceKeyDo([&](orc::ResourceKey key) {
        const std::lock_guard lock(mutex_);
        images_[key].push_back(std::move(held));
        ++context_.count.images;
      });
    if (!e) e = r->notifyEmitted({});
    if (!e) return;
    j.fail("linking", llvm::toString(std::move(e)));
  } catch (const compile_error&) { j.fail(std::current_exception()); } catch (const std::runtime_error& e) {
    if (j.wanted.target.is_amdgpu()) j.fail("linking", e.what());
    else j.fail(std::current_exception());
  } catch (...) { j.fail(std::current_exception()); }
  r->failMaterialization();
}

llvm::Error image_layer::handleRemoveResources(orc::JITDylib&, orc::ResourceKey key) {
  const std::lock_guard lock(mutex_);
  if (const auto at = images_.find(key); at != images_.end()) {
    context_.count.images -= at->second.size();
    images_.erase(at);
  }
  return llvm::Error::success();
}

void image_layer::handleTransferResources(orc::JITDylib&, orc::ResourceKey to, orc::ResourceKey from) {
  const std::lock_guard lock(mutex_);
  const auto at = images_.find(from);
  if (at == images_.end()) return;
  auto moved = std::move(at->second);
  images_.erase(at);
  auto& list = images_[to];
  for (auto& image : moved) list.push_back(std::move(image));
}

layer_stack::layer_stack(layer_context context, const target& t, orc::ObjectLinkingLayer& host_linker,
                         const symbol_list& allowed) {
  if (t.is_host())
    objects_ =
        std::make_unique<orc::ObjectTransformLayer>(context.session, host_linker, check_host_object(context, allowed));
  else objects_ = std::make_unique<image_layer>(context);
  compile_ = std::make_unique<orc::IRCompileLayer>(context.session, *objects_, std::make_unique<compiler>(context));
  transform_ = std::make_unique<orc::IRTransformLayer>(context.session, *compile_, transform(context));
}

orc::ThreadSafeModule build_module(job& j, layer_context& context) {
  const auto start = clock::now();
  auto llvm_context = std::make_unique<llvm::LLVMContext>();
  llvm_context->setOptPassGate(quick_gate::get());
  llvm_context->setDiagnosticHandler(std::make_unique<diagnostics>(j));
  auto module = std::make_unique<llvm::Module>(j.link_name, *llvm_context);
  const machine_spec spec = spec_of(j.wanted, context.cpu);
  auto machine = context.machines.take(spec);
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  if (j.wanted.target.is_amdgpu()) module->addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", 500);
  module_builder builder{*module, *machine, j.wanted.target, j.wanted.symbol, spec.cpu, spec.features};
  j.wanted.build(builder);
  for (const llvm::Function& f : *module)
    if (f.hasFnAttribute(module_builder::quick)) j.quick.push_back(f.getName().str());
  context.machines.give(spec, std::move(machine));
  ++context.count.builds;
  j.times.emit = ms_since(start);
  return {std::move(module), std::move(llvm_context)};
}

} // namespace kiln::jit
