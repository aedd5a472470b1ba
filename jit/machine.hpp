// LLVM targets, brought up only when asked for, and a pool of TargetMachines: one per compile at a time, reused after.
#pragma once

#include "engine.hpp"

#include <llvm/Target/TargetMachine.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kiln::jit {

/// What a TargetMachine is made from.
struct machine_spec {
  std::string triple, cpu, features;
  int level = 1;
  auto operator<=>(const machine_spec&) const = default;
};

/// The specification that a request stands for. Errors: `std::invalid_argument` for options the target does not have.
machine_spec spec_of(const request& r, const host_cpu& cpu);

/// Registers every target that this LLVM has. lld does so on each link, without a lock; done once before the first, its
/// own rounds change nothing.
void start_all_targets();

class machine_pool {
public:
  /// A machine that belongs to the caller until it is put back; `give` it back only when it is in good order.
  std::unique_ptr<llvm::TargetMachine> take(const machine_spec& spec);
  void give(const machine_spec& spec, std::unique_ptr<llvm::TargetMachine> machine);

private:
  std::mutex mutex_;
  std::map<machine_spec, std::vector<std::unique_ptr<llvm::TargetMachine>>> idle_;
};

} // namespace kiln::jit
