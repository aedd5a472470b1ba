// Writes the blocked matrix product of a recognised K loop: what of it depends on the kernel, except for what each CTA
// does with its accumulators.
#pragma once
#include "dot_recipe.hpp"
#include "dot_scalar.hpp"

#include "jit/engine.hpp"

#include <llvm/IR/Module.h>

namespace kiln::jit::host {

/// What a CPU offers to the product.
dot_cpu dot_cpu_of(host_cpu const& cpu, emit::capabilities caps);

/// Fills `entry` (an entry_function, still without a block) with the call of the driver (dot_drive.hpp), and emits what that
/// calls but `rest`, a dot_rest_function: its accumulators are [m][n], row-major, 64-byte aligned. `scratch`: where
/// recipe.arena_bytes begin in the arena, 64-byte aligned. Leaves the builder behind the call.
void emit_dot_kernel(graph_view const& g, specialisation const& facts, dot_loop const& d, dot_recipe const& r,
                     dot_cpu const& cpu, emit::emitter& e, llvm::Module& module, llvm::Function* entry, llvm::Function* rest,
                     std::int64_t scratch);

/// acc[rows][vectors] = old + a panel x b panel: `void (a, b, acc, i64 elements along k, old, i64 bytes from row to row of
/// old)`, internal. `old` is `acc`, or a row of what changes no sum. `row_elements`: the accumulators' row stride; `tail`:
/// valid lanes of the last vector, all of them when 0.
llvm::Function* emit_micro_kernel(dot_recipe const& r, dot_cpu const& cpu, llvm::Module& module, emit::capabilities caps,
                                  std::int64_t a_stride, std::int64_t row_elements, int rows, int vectors, int tail);

/// Copies a box of memory into a panel, converted: `void (panel, source, i64 row stride, i64 k stride, i64 row_low,
/// i64 row_high, i64 k_low, i64 k_high, i64 k)`, internal. Strides are in elements; rows [row_low, row_high) and k [k_low,
/// k_high) are read, the rest of the static rows and of `k` is filled with the source's `other`.
struct dot_pack {
  dot_source const* source;
  int rows;              ///< of the box
  bool by_k;             ///< panel [strip][k][width], else [row][k]
  std::int64_t width;    ///< by_k: of a strip
  std::int64_t strip;    ///< by_k: panel elements from strip to strip; else: from row to row
  bool unit_k;           ///< memory is expected to be dense along k, else along rows
  bool other_is_dense;   ///< ... and known to be: no other code is needed
};
llvm::Function* emit_dot_pack(dot_pack const& p, dot_recipe const& r, llvm::Module& module, emit::capabilities caps,
                              llvm::StringRef name);

} // namespace kiln::jit::host
