// One specialisation on its way through the layers: its request, what came of it, and where its time went.
#pragma once

#include "engine.hpp"

#include <atomic>
#include <chrono>
#include <exception>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <string>
#include <vector>

namespace kiln::jit::detail {

struct job {
  request wanted;
  std::string link_name; ///< its symbol in the session: unique per JITDylib
  std::string map_key;
  llvm::orc::JITDylib* dylib = nullptr;
  llvm::orc::ResourceTrackerSP tracker;

  // Written by the thread that materialises, until `settled`.
  std::exception_ptr failure;
  std::string image, entry, notes, ir_before, ir, assembly;
  image_kind kind = image_kind::host_object;
  phase_times times;
  void* address = nullptr;
  bool from_cache = false;
  bool has_debug_info = false; ///< host: the object carries DWARF
  std::vector<std::string> quick; ///< host: functions whose code is generated fast rather than well

  std::atomic<bool> started = false; ///< materialisation began, so it will settle
  std::atomic<bool> settled = false; ///< materialisation is over; its results may be read
  std::atomic<bool> ready = false;   ///< `address` is there as well: the warm path needs nothing else
  job* outer = nullptr;              ///< the job whose builder asked for this one, on the same thread
  std::atomic<bool> store_pending = false;
  std::chrono::steady_clock::time_point link_start;

  /// Remembers the first failure only: what follows it is consequence.
  void fail(std::exception_ptr e) {
    if (failure == nullptr) failure = std::move(e);
  }
  void fail(const char* phase, std::string detail) {
    while (!detail.empty() && detail.back() == '\n') detail.pop_back();
    fail(std::make_exception_ptr(
        compile_error(wanted.symbol, std::string(wanted.target.name()), phase, std::move(detail))));
  }
};

/// The job that this thread materialises, or nullptr. Materialisation runs on the thread of a caller, start to end.
job*& current_job();

/// Makes `j` current until its materialisation is over; nests, since a builder may compile another kernel.
class job_scope {
public:
  explicit job_scope(job& j) {
    j.outer = current_job();
    j.started = true;
    current_job() = &j;
  }
  ~job_scope() {
    job& j = *current_job();
    current_job() = j.outer;
    j.outer = nullptr;
    j.settled.store(true, std::memory_order_release);
    j.settled.notify_all();
  }
  job_scope(const job_scope&) = delete;
  job_scope& operator=(const job_scope&) = delete;
};

inline double ms_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t).count();
}

} // namespace kiln::jit::detail
