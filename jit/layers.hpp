// The layers that a kernel passes on its way down, one stack per target: transform (checks and passes), compile (code
// generation), object (JITLink on the host; finishing and holding the image for GPUs).
#pragma once

#include "job.hpp"
#include "machine.hpp"

#include <llvm/ExecutionEngine/Orc/IRCompileLayer.h>
#include <llvm/ExecutionEngine/Orc/IRTransformLayer.h>
#include <llvm/ExecutionEngine/Orc/Layer.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/Orc/ObjectTransformLayer.h>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_set>
#include <vector>

namespace kiln::jit {

struct counters {
  std::atomic<std::uint64_t> builds = 0, compiles = 0, links = 0, adopted = 0, images = 0;
};

/// What the layers share: the engine's parts that outlive them.
struct layer_context {
  llvm::orc::ExecutionSession& session;
  const host_cpu& cpu;
  machine_pool& machines;
  counters& count;
};

/// Names that host objects may leave undefined.
class symbol_list {
public:
  bool contains(const std::string& name) const;
  /// False, and nothing added, if the name is there.
  bool add(const std::string& name);

private:
  mutable std::shared_mutex mutex_;
  std::unordered_set<std::string> names_;
};

/// The object layer of GPUs: finishes the image (lld, or the driver through the request) and resolves the symbol to
/// it. Images belong to the resource tracker of their specialisation.
class image_layer : public llvm::orc::ObjectLayer, private llvm::orc::ResourceManager {
public:
  explicit image_layer(layer_context context);
  ~image_layer() override;
  void emit(std::unique_ptr<llvm::orc::MaterializationResponsibility> r,
            std::unique_ptr<llvm::MemoryBuffer> image) override;

private:
  llvm::Error handleRemoveResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey key) override;
  void handleTransferResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey to, llvm::orc::ResourceKey from) override;

  layer_context context_;
  std::mutex mutex_;
  std::map<llvm::orc::ResourceKey, std::vector<std::unique_ptr<std::string>>> images_;
};

/// The layers of one target.
class layer_stack {
public:
  layer_stack(layer_context context, const target& t, llvm::orc::ObjectLinkingLayer& host_linker,
              const symbol_list& allowed);

  /// Where fresh IR enters.
  llvm::orc::IRLayer& ir() { return *transform_; }
  /// Where cached images enter.
  llvm::orc::ObjectLayer& object() { return *objects_; }

private:
  std::unique_ptr<llvm::orc::ObjectLayer> objects_;
  std::unique_ptr<llvm::orc::IRCompileLayer> compile_;
  std::unique_ptr<llvm::orc::IRTransformLayer> transform_;
};

/// Creates the module of a job, in a context of its own, and lets the request's builder fill it.
llvm::orc::ThreadSafeModule build_module(detail::job& j, layer_context& context);

} // namespace kiln::jit
