// The session: JITDylibs per device, one tracker per specialisation, and the table that makes equal keys meet.
#include "engine.hpp"

#include "debugger_plugin.hpp"
#include "host_symbols.hpp"
#include "layers.hpp"

#include <cctype>
#include <cstdlib>
#include <llvm/ExecutionEngine/Orc/AbsoluteSymbols.h>
#include <llvm/ExecutionEngine/Orc/Debugging/PerfSupportPlugin.h>
#include <llvm/ExecutionEngine/Orc/EHFrameRegistrationPlugin.h>
#include <llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderPerf.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Support/xxhash.h>
#include <unordered_map>

namespace kiln::jit {

namespace orc = llvm::orc;
using detail::current_job;
using detail::job;
using detail::job_scope;
using detail::ms_since;

job*& detail::current_job() {
  static thread_local job* current = nullptr;
  return current;
}

namespace {

void check(llvm::Error e) {
  if (e) throw std::runtime_error("compile engine: " + llvm::toString(std::move(e)));
}

template <typename T> T check(llvm::Expected<T> value) {
  check(value.takeError());
  return std::move(*value);
}

std::string hex(std::uint64_t v) {
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, v >>= 4) text[static_cast<std::size_t>(i)] = "0123456789abcdef"[v & 15];
  return text;
}

void require_ptx_identifier(const std::string& name) {
  bool ok = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  for (const char c : name) ok &= std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
  if (!ok) throw std::invalid_argument("'" + name + "' is no PTX identifier: use letters, digits, _ and $");
}

// A specialisation that nobody has compiled yet: ORC asks for it when the first thread looks it up.
class specialisation : public orc::MaterializationUnit {
public:
  specialisation(orc::ExecutionSession& session, std::shared_ptr<job> j, layer_stack& layers, layer_context context)
      : MaterializationUnit(
            Interface({{session.intern(j->link_name), llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable}},
                      nullptr)),
        job_(std::move(j)), layers_(layers), context_(context) {}

  llvm::StringRef getName() const override { return job_->link_name; }

private:
  void materialize(std::unique_ptr<orc::MaterializationResponsibility> r) override {
    const std::shared_ptr<job> keep = job_;
    job& j = *keep;
    const job_scope scope(j);
    try {
      if (j.wanted.cached) {
        if (std::optional<cached_image> image = j.wanted.cached()) {
          j.from_cache = true;
          j.image = std::move(image->bytes);
          j.kind = image->kind;
          ++context_.count.adopted;
        }
      }
      if (j.from_cache) {
        j.link_start = std::chrono::steady_clock::now();
        auto bytes = llvm::MemoryBuffer::getMemBuffer(j.image, j.link_name, false); // the job outlives the link
        layers_.object().emit(std::move(r), std::move(bytes));
      } else {
        if (!j.wanted.build)
          throw std::invalid_argument("kernel '" + j.wanted.symbol + "': the request has no builder");
        orc::ThreadSafeModule module = build_module(j, context_);
        j.store_pending = true;
        layers_.ir().emit(std::move(r), std::move(module));
      }
      if (j.failure == nullptr) j.times.link = ms_since(j.link_start);
    } catch (...) {
      // Only what runs before the layers take over throws; they report through the job.
      j.fail(std::current_exception());
      r->failMaterialization();
    }
  }

  void discard(const orc::JITDylib&, const orc::SymbolStringPtr&) override {}

  std::shared_ptr<job> job_;
  layer_stack& layers_;
  layer_context context_;
};

} // namespace

struct engine::impl {
  explicit impl(const engine_options& options)
      : cpu(detect_host_cpu()),
        session(
            check(orc::SelfExecutorProcessControl::Create(nullptr, std::make_unique<orc::InPlaceTaskDispatcher>()))),
        context{session, cpu, machines, count}, linker(session) {
    session.setErrorReporter([](llvm::Error e) {
      std::string text = llvm::toString(std::move(e));
      if (job* j = current_job()) j->fail("linking", std::move(text));
      else llvm::errs() << "kiln: compile engine: " << text << '\n';
    });
    runtime = &session.createBareJITDylib("kiln.runtime");
    define(exact_library());
    define(options.symbols);
    linker.addPlugin(check(orc::EHFrameRegistrationPlugin::Create(session)));
    if (options.debugger) {
      debugger = std::make_shared<debugger_plugin>();
      linker.addPlugin(debugger);
    }
    const char* perf = std::getenv("KILN_PERF");
    if (options.perf || (perf != nullptr && std::string_view(perf) == "1")) add_perf();
  }

  ~impl() {
    jobs.clear();
    if (llvm::Error e = session.endSession()) session.reportError(std::move(e));
  }

  void add_perf() {
    auto& dylib = session.createBareJITDylib("kiln.perf");
    const auto symbol = [](auto* f) {
      return orc::ExecutorSymbolDef(orc::ExecutorAddr::fromPtr(f), llvm::JITSymbolFlags::Exported);
    };
    check(dylib.define(orc::absoluteSymbols(
        {{session.intern("llvm_orc_registerJITLoaderPerfStart"), symbol(&llvm_orc_registerJITLoaderPerfStart)},
         {session.intern("llvm_orc_registerJITLoaderPerfEnd"), symbol(&llvm_orc_registerJITLoaderPerfEnd)},
         {session.intern("llvm_orc_registerJITLoaderPerfImpl"), symbol(&llvm_orc_registerJITLoaderPerfImpl)}})));
    // No unwind records: LLVM announces each on stderr.
    linker.addPlugin(
        check(orc::PerfSupportPlugin::Create(session.getExecutorProcessControl(), dylib, /*EmitDebugInfo=*/true,
                                             /*EmitUnwindInfo=*/false)));
  }

  void define(const std::vector<host_symbol>& symbols) {
    if (symbols.empty()) return;
    orc::SymbolMap map;
    for (const host_symbol& s : symbols) {
      if (s.address == nullptr) throw std::invalid_argument("host symbol '" + s.name + "' has no address");
      if (!allowed.add(s.name)) throw std::invalid_argument("host symbol '" + s.name + "' is already defined");
      map[session.intern(s.name)] = {orc::ExecutorAddr::fromPtr(s.address),
                                     llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    }
    check(runtime->define(orc::absoluteSymbols(std::move(map))));
  }

  layer_stack& layers_of(const target& t) { // under the mutex
    auto& stack = stacks[std::string(t.name())];
    if (stack == nullptr) stack = std::make_unique<layer_stack>(context, t, linker, allowed);
    return *stack;
  }

  orc::JITDylib& new_dylib(const std::string& name, const target& t) {
    orc::JITDylib& dylib = session.createBareJITDylib(name);
    if (t.is_host()) dylib.addToLinkOrder(*runtime);
    return dylib;
  }

  // Registers a job with the session; nothing runs yet. Under the mutex.
  void define_job(const std::shared_ptr<job>& j, orc::JITDylib& dylib) {
    j->dylib = &dylib;
    j->tracker = dylib.createResourceTracker();
    check(dylib.define(std::make_unique<specialisation>(session, j, layers_of(j->wanted.target), context), j->tracker));
  }

  static std::shared_ptr<job> new_job(const request& r) {
    if (r.symbol.empty()) throw std::invalid_argument("a compile request needs the name of its entry function");
    if (r.target.is_nvptx()) require_ptx_identifier(r.symbol);
    if (r.device_link && !r.target.is_nvptx())
      throw std::invalid_argument("device_link is for NVPTX targets, not for " + std::string(r.target.name()));
    auto j = std::make_shared<job>();
    j->wanted = r;
    j->entry = r.symbol;
    return j;
  }

  std::shared_ptr<job> find_or_add(const request& r) {
    std::string device = r.device.empty() ? std::string(r.target.name()) : r.device;
    std::string map_key = device + '\0' + std::string(r.target.name()) + '\0' + r.symbol + '\0' + r.key;
    const std::lock_guard lock(mutex);
    if (const auto at = jobs.find(map_key); at != jobs.end()) return at->second;
    auto j = new_job(r);
    // 64 bits name a symbol, not an identity: two keys with one hash are a duplicate definition, which ORC reports.
    j->link_name = r.symbol + "." + hex(llvm::xxh3_64bits(map_key));
    if (r.target.is_host()) j->entry = j->link_name;
    j->map_key = map_key;
    orc::JITDylib*& dylib = dylibs[device + '\0' + std::string(r.target.name())];
    if (dylib == nullptr) dylib = &new_dylib("device:" + device + ":" + std::string(r.target.name()), r.target);
    define_job(j, *dylib);
    jobs.emplace(std::move(map_key), j);
    return j;
  }

  void forget(const std::shared_ptr<job>& j) {
    {
      const std::lock_guard lock(mutex);
      const auto at = jobs.find(j->map_key);
      if (at == jobs.end() || at->second != j) return; // somebody else did it
      // The symbol must be free again before another thread may define it anew.
      check(j->tracker->remove());
      jobs.erase(at);
    }
  }

  void look_up(const std::shared_ptr<job>& j) {
    for (const job* outer = current_job(); outer != nullptr; outer = outer->outer)
      if (outer == j.get())
        throw std::logic_error("kernel '" + j->wanted.symbol + "': its builder asks for the kernel itself");
    auto found = session.lookup({j->dylib}, session.intern(j->link_name));
    // The session may wake us before the thread that materialises has written its last results.
    if (found || j->started) j->settled.wait(false, std::memory_order_acquire);
    if (found) {
      const std::lock_guard lock(mutex);
      if (j->ready) return;
      if (j->wanted.target.is_host()) j->address = found->getAddress().toPtr<void*>();
      j->ready.store(true, std::memory_order_release);
      return;
    }
    std::string text = llvm::toString(found.takeError());
    forget(j);
    if (j->failure != nullptr) std::rethrow_exception(j->failure);
    throw compile_error(j->wanted.symbol, std::string(j->wanted.target.name()), "linking", text);
  }

  host_cpu cpu;
  machine_pool machines;
  counters count;
  orc::ExecutionSession session;
  layer_context context;
  orc::ObjectLinkingLayer linker;
  symbol_list allowed;
  std::shared_ptr<debugger_plugin> debugger;
  orc::JITDylib* runtime = nullptr;
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<layer_stack>> stacks;
  std::map<std::string, orc::JITDylib*> dylibs;
  std::unordered_map<std::string, std::shared_ptr<job>> jobs;
  std::atomic<std::uint64_t> emits = 0;
};

engine::engine(engine_options options) : impl_(std::make_unique<impl>(options)) {}
engine::~engine() = default;

compiled engine::compile(const request& r) {
  auto j = impl_->find_or_add(r);
  if (!j->ready.load(std::memory_order_acquire)) impl_->look_up(j);
  compiled result(j);
  if (j->store_pending.load(std::memory_order_relaxed) && j->store_pending.exchange(false) && j->wanted.store)
    j->wanted.store(result);
  return result;
}

compiled engine::adopt(const request& r, cached_image image) {
  request with_image = r;
  with_image.cached = [&image]() -> std::optional<cached_image> { return std::move(image); };
  return compile(with_image);
}

std::string engine::emit(request r, emit_kind kind) {
  r.codegen.keep_ir_before = kind == emit_kind::ir_before;
  r.codegen.keep_ir = kind == emit_kind::ir;
  r.codegen.keep_asm = kind == emit_kind::assembly;
  r.cached = nullptr;
  r.device_link = nullptr;
  auto j = impl::new_job(r);
  j->link_name = r.symbol;
  orc::JITDylib* dylib = nullptr;
  {
    const std::lock_guard lock(impl_->mutex);
    dylib = &impl_->new_dylib("emit:" + std::to_string(++impl_->emits), r.target);
    impl_->define_job(j, *dylib);
  }
  auto found = impl_->session.lookup({dylib}, impl_->session.intern(j->link_name));
  std::string text = found ? std::string() : llvm::toString(found.takeError());
  j->tracker = nullptr;
  check(impl_->session.removeJITDylib(*dylib));
  if (j->failure != nullptr) std::rethrow_exception(j->failure);
  if (!text.empty()) throw compile_error(r.symbol, std::string(r.target.name()), "linking", text);
  switch (kind) {
  case emit_kind::ir_before: return std::move(j->ir_before);
  case emit_kind::ir: return std::move(j->ir);
  case emit_kind::assembly: return std::move(j->assembly);
  case emit_kind::object: return std::move(j->image);
  }
  throw std::invalid_argument("unknown emit kind");
}

void engine::remove(const compiled& c) {
  if (c) impl_->forget(c.job_);
}

void engine::define(const std::vector<host_symbol>& symbols) { impl_->define(symbols); }
const host_cpu& engine::cpu() const { return impl_->cpu; }

engine_stats engine::stats() const {
  const counters& c = impl_->count;
  const std::lock_guard lock(impl_->mutex);
  return {c.builds,
          c.compiles,
          c.links,
          c.adopted,
          impl_->jobs.size(),
          c.images,
          impl_->debugger != nullptr ? impl_->debugger->count() : 0};
}

std::string_view compiled::image() const { return job_->image; }
image_kind compiled::kind() const { return job_->kind; }
void* compiled::address() const { return job_->address; }
std::string_view compiled::entry() const { return job_->entry; }
const phase_times& compiled::times() const { return job_->times; }
bool compiled::from_cache() const { return job_->from_cache; }
std::string_view compiled::notes() const { return job_->notes; }
std::string_view compiled::ir_before() const { return job_->ir_before; }
std::string_view compiled::ir() const { return job_->ir; }
std::string_view compiled::assembly() const { return job_->assembly; }

std::string_view to_string(image_kind kind) {
  switch (kind) {
  case image_kind::host_object: return "host object";
  case image_kind::ptx: return "PTX";
  case image_kind::device_binary: return "device binary";
  case image_kind::code_object: return "code object";
  }
  return "?";
}

emit_kind parse_emit_kind(std::string_view name) {
  if (name == "ir-before") return emit_kind::ir_before;
  if (name == "ir") return emit_kind::ir;
  if (name == "asm") return emit_kind::assembly;
  if (name == "obj") return emit_kind::object;
  throw std::invalid_argument("'" + std::string(name) + "' is nothing to emit; use graph, ir-before, ir, asm or obj");
}

} // namespace kiln::jit
