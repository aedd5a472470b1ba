// Tells an attached debugger about host kernels that carry debug information, for as long as they exist.
#pragma once

#include <atomic>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kiln::jit {

struct debug_object;

/// A plugin of the host's link layer. For each object with DWARF it keeps a copy whose section headers say where the
/// sections lie, in the list that debuggers read (the "GDB JIT interface", which lldb knows as well). LLVM's own plugin
/// never takes entries out of that list, so removed kernels would leave dangling ones.
class debugger_plugin : public llvm::orc::ObjectLinkingLayer::Plugin {
public:
  debugger_plugin();
  ~debugger_plugin() override;

  /// Objects in the list now.
  std::size_t count() const;

  void notifyMaterializing(llvm::orc::MaterializationResponsibility& r, llvm::jitlink::LinkGraph& g,
                           llvm::jitlink::JITLinkContext& c, llvm::MemoryBufferRef object) override;
  void modifyPassConfig(llvm::orc::MaterializationResponsibility& r, llvm::jitlink::LinkGraph& g,
                        llvm::jitlink::PassConfiguration& passes) override;
  llvm::Error notifyEmitted(llvm::orc::MaterializationResponsibility& r) override;
  llvm::Error notifyFailed(llvm::orc::MaterializationResponsibility& r) override;
  llvm::Error notifyRemovingResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey key) override;
  void notifyTransferringResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey to,
                                   llvm::orc::ResourceKey from) override;

private:
  mutable std::mutex mutex_;
  std::map<const llvm::orc::MaterializationResponsibility*, std::unique_ptr<debug_object>> pending_;
  std::map<llvm::orc::ResourceKey, std::vector<std::unique_ptr<debug_object>>> listed_;
};

} // namespace kiln::jit
