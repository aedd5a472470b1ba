// The list that debuggers read, and the copies of objects in it.
#include "debugger_plugin.hpp"

#include "job.hpp"

#include <cstring>
#include <elf.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>

// Names and layout are the debugger's: it sets a breakpoint on the function and reads the descriptor when it is hit.
// The library has a list of its own (debuggers accept one per library), so no other JIT in the process gets in the way.
extern "C" {
struct kiln_jit_code_entry {
  kiln_jit_code_entry *next, *previous;
  const char* object;
  std::uint64_t bytes;
};
struct kiln_jit_descriptor {
  std::uint32_t version, action;
  kiln_jit_code_entry *relevant, *first;
};
// Weak: LLVM linked statically brings definitions of its own, and one of each serves both.
[[gnu::used, gnu::weak]] kiln_jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};
[[gnu::noinline, gnu::used, gnu::weak]] void __jit_debug_register_code() { asm volatile("" ::: "memory"); }
}

namespace kiln::jit {

namespace orc = llvm::orc;

namespace {

enum action : std::uint32_t { add = 1, remove = 2 };

std::mutex& list_mutex() {
  static std::mutex mutex;
  return mutex;
}

void tell(kiln_jit_code_entry* entry, action what) {
  __jit_debug_descriptor.relevant = entry;
  __jit_debug_descriptor.action = what;
  __jit_debug_register_code();
  __jit_debug_descriptor.action = 0;
}

} // namespace

// Takes itself out of the list when it ends.
struct debug_object {
  std::string bytes;
  kiln_jit_code_entry entry = {};
  bool listed = false;

  void list() {
    const std::lock_guard lock(list_mutex());
    entry = {__jit_debug_descriptor.first, nullptr, bytes.data(), bytes.size()};
    if (entry.next != nullptr) entry.next->previous = &entry;
    __jit_debug_descriptor.first = &entry;
    listed = true;
    tell(&entry, add);
  }

  ~debug_object() {
    if (!listed) return;
    const std::lock_guard lock(list_mutex());
    if (entry.previous != nullptr) entry.previous->next = entry.next;
    else __jit_debug_descriptor.first = entry.next;
    if (entry.next != nullptr) entry.next->previous = entry.previous;
    tell(&entry, remove);
  }

  // The debugger relocates the DWARF by itself; it has to know where each section went.
  void place(llvm::jitlink::LinkGraph& g) {
    Elf64_Ehdr header;
    if (bytes.size() < sizeof header) return;
    std::memcpy(&header, bytes.data(), sizeof header);
    const auto section_at = [&](std::size_t i) {
      Elf64_Shdr s;
      std::memcpy(&s, bytes.data() + header.e_shoff + i * sizeof s, sizeof s);
      return s;
    };
    const Elf64_Shdr names = section_at(header.e_shstrndx);
    for (std::size_t i = 1; i < header.e_shnum; ++i) {
      Elf64_Shdr s = section_at(i);
      if ((s.sh_flags & SHF_ALLOC) == 0) continue;
      auto* section = g.findSectionByName(bytes.data() + names.sh_offset + s.sh_name);
      if (section == nullptr || section->blocks().empty()) continue;
      s.sh_addr = llvm::jitlink::SectionRange(*section).getStart().getValue();
      std::memcpy(bytes.data() + header.e_shoff + i * sizeof s, &s, sizeof s);
    }
  }
};

debugger_plugin::debugger_plugin() = default;
debugger_plugin::~debugger_plugin() = default;

std::size_t debugger_plugin::count() const {
  const std::lock_guard lock(mutex_);
  std::size_t n = 0;
  for (const auto& [key, objects] : listed_) n += objects.size();
  return n;
}

void debugger_plugin::notifyMaterializing(orc::MaterializationResponsibility& r, llvm::jitlink::LinkGraph&,
                                          llvm::jitlink::JITLinkContext&, llvm::MemoryBufferRef object) {
  const detail::job* j = detail::current_job();
  if (j == nullptr || !j->has_debug_info) return;
  auto copy = std::make_unique<debug_object>();
  copy->bytes = object.getBuffer().str();
  const std::lock_guard lock(mutex_);
  pending_[&r] = std::move(copy);
}

void debugger_plugin::modifyPassConfig(orc::MaterializationResponsibility& r, llvm::jitlink::LinkGraph&,
                                       llvm::jitlink::PassConfiguration& passes) {
  const std::lock_guard lock(mutex_);
  const auto at = pending_.find(&r);
  if (at == pending_.end()) return;
  debug_object* object = at->second.get();
  passes.PostAllocationPasses.push_back([object](llvm::jitlink::LinkGraph& g) {
    object->place(g);
    return llvm::Error::success();
  });
}

llvm::Error debugger_plugin::notifyEmitted(orc::MaterializationResponsibility& r) {
  std::unique_ptr<debug_object> object;
  {
    const std::lock_guard lock(mutex_);
    const auto at = pending_.find(&r);
    if (at == pending_.end()) return llvm::Error::success();
    object = std::move(at->second);
    pending_.erase(at);
  }
  object->list();
  return r.withResourceKeyDo([&](orc::ResourceKey key) {
    const std::lock_guard lock(mutex_);
    listed_[key].push_back(std::move(object));
  });
}

llvm::Error debugger_plugin::notifyFailed(orc::MaterializationResponsibility& r) {
  const std::lock_guard lock(mutex_);
  pending_.erase(&r);
  return llvm::Error::success();
}

llvm::Error debugger_plugin::notifyRemovingResources(orc::JITDylib&, orc::ResourceKey key) {
  const std::lock_guard lock(mutex_);
  listed_.erase(key);
  return llvm::Error::success();
}

void debugger_plugin::notifyTransferringResources(orc::JITDylib&, orc::ResourceKey to, orc::ResourceKey from) {
  const std::lock_guard lock(mutex_);
  const auto at = listed_.find(from);
  if (at == listed_.end()) return;
  auto moved = std::move(at->second);
  listed_.erase(at);
  auto& list = listed_[to];
  for (auto& object : moved) list.push_back(std::move(object));
}

} // namespace kiln::jit
