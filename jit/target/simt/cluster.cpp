// Clusters: the CTAs of one run together and write into each other's shared memory, where everything has the same offset. What
// orders such writes is the author's: barriers of the cluster, arrivals and bytes at barriers of the CTA that is written to.
#include "lowerings.hpp"

#include <algorithm>
#include <kiln/graph/cluster.hpp>
#include <kiln/layout/blocked.hpp>

namespace kiln::jit::simt {

namespace {

/// Without an engine for bytes that arrive by themselves there is nothing to count.
void need_clusters(lowerer& k, int node) {
  if (!k.hw->has_clusters())
    k.fail(node, "kiln[R-TG01] " + std::string(name_of(k.g[node].code)) + " is not available on " + std::string(k.target.name()) +
                     " (no bytes arrive at a barrier there); use local_store and barrier_arrive");
}

view_value there(lowerer& k, view_value v, Value* rank) {
  v.pointer = k.hw->remote(v.pointer, rank);
  return v;
}

} // namespace

void lowerer::check_cluster() {
  std::int64_t const ctas = cluster_ctas(), most = g.attrs.cluster_nonportable ? target.cluster_max_opt_in : target.cluster_max;
  if (ctas == 1) return;
  std::string const what = std::string(target.name()) + ": a cluster of " + std::to_string(ctas) + " CTAs; ";
  if (!target.has_clusters()) fail(-1, "kiln[R-CP11] " + what + "this target has no clusters and takes {1, 1, 1} only");
  if (!hw->has_clusters()) fail(-1, "kiln[R-TG01] " + what + "kiln runs clusters on NVIDIA GPUs from sm_90a on and on the host; use {1, 1, 1} here");
  if (ctas > most)
    fail(-1, "kiln[R-CP11] " + what + "at most " + std::to_string(most) +
                 (most < target.cluster_max_opt_in ? ", or " + std::to_string(target.cluster_max_opt_in) + " with .cluster_nonportable" : ""));
  hw->waits_for_cluster = has_remote_traffic(g);
}

void lowerer::cluster_barrier() {
  if (cluster_ctas() == 1) return agent_barrier(true); // never inside a task, see plan_tasks
  if (!workers) return hw->cluster_barrier();
  // The barrier counts every thread of the CTA: those of tasks come from where they stand.
  if (!nested_regions) {
    hw->cluster_barrier();
    llvm::IRBuilder<>::InsertPointGuard guard(b);
    b.SetInsertPoint(workers);
    debug_location(-1);
    return hw->cluster_barrier();
  }
  when(b.CreateICmpEQ(thread, i32(0)), [&] { b.CreateStore(i32(meet_cluster), arena(command_at)); });
  meet_all();
  hw->cluster_barrier();
  if (cluster_case) return;
  llvm::SwitchInst* const commands = dispatch();
  cluster_case = block("cluster");
  commands->addCase(b.getInt32(static_cast<std::uint32_t>(meet_cluster)), cluster_case);
  llvm::IRBuilder<>::InsertPointGuard guard(b);
  b.SetInsertPoint(cluster_case);
  debug_location(-1);
  hw->cluster_barrier();
  b.CreateBr(commands->getParent());
}

registers lowering<op::cluster_rank>::emit(lowerer& k, int) {
  auto const ctas = static_cast<int>(k.cluster_ctas());
  return {{ctas == 1 ? k.i32(0) : k.hw->cluster_rank(ctas)}};
}

registers lowering<op::cluster_barrier>::emit(lowerer& k, int) {
  k.cluster_barrier();
  k.structure({.what = local_event::kind::barrier});
  return {};
}

registers lowering<op::fence_barrier_init>::emit(lowerer& k, int) {
  // Its order counts for the thread that makes it: the one that made the barriers.
  k.when(k.b.CreateICmpEQ(k.thread, k.i32(0)), [&] { k.hw->fence_barrier_init(); });
  return {};
}

registers lowering<op::remote_barrier>::emit(lowerer&, int) { return {}; } // an address, made where it is used

registers lowering<op::remote_store>::emit(lowerer& k, int node) {
  linear_layout const& l = k.plan.of(node);
  registers const x = k.get(k.g.operand(node, 1), l);
  view_value const v = k.view(k.g.operand(node, 0));
  if (k.cluster_ctas() == 1) {
    k.write_view(v, l, x.r);
    return {};
  }
  Value* const rank = k.scalar(k.g.operand(node, 2));
  // The other CTA may be this one.
  local_event e{.what = local_event::kind::write, .bytes = k.bytes_of_view(v), .slot = v.slot};
  e.remote = true;
  k.touch(std::move(e));
  k.each_vector(there(k, v, rank), l, x.r, nullptr,
                [&](Value* pointer, llvm::ArrayRef<Value*> words, llvm::Align align) { k.store_words(pointer, words, align); });
  return {};
}

registers lowering<op::async_remote_store>::emit(lowerer& k, int node) {
  need_clusters(k, node);
  int const value = k.g.operand(node, 1);
  view_value const v = k.view(k.g.operand(node, 0));
  // At least 4 bytes of a thread go together. Where the tile does not lie so, it is moved: fewer threads with more elements each.
  constexpr int least = 4;
  linear_layout l = k.plan.of(node);
  int fast = -1;
  for (int d = 0; d < v.extents.rank; ++d)
    if (v.stride[d] == 1 && v.extents.extent[d] > 1) fast = d;
  std::vector<std::int64_t> extents;
  std::vector<int> order{fast};
  for (int d = 0; d < v.extents.rank; ++d) extents.push_back(v.extents.extent[d]);
  for (int d = v.extents.rank; d-- > 0;)
    if (d != fast) order.push_back(d);
  for (int threads = k.cta.threads(); fast >= 0 && threads > 0 && k.vector_bytes(v, l) < least; threads /= 2)
    l = normal_form(default_blocked_layout(extents, {.element_bits = storage_bits_of(v.type),
                                                     .num_warps = std::max(1, threads / k.cta.warp_size),
                                                     .warp_size = std::min(threads, k.cta.warp_size),
                                                     .order = order}),
                    k.cta);
  if (k.vector_bytes(v, l) < least)
    k.fail(node, "kiln[R-TG02] async_remote_store moves 4, 8 or 16 bytes that lie side by side; elements of " + std::string(name_of(v.type)) + " in this view do so by " +
                     std::to_string(k.vector_bytes(v, l)) + "; use remote_shmem_store and a remote arrive, or a view whose last axis is a multiple of 4 bytes");
  registers const x = k.get(value, l);
  Value *const rank = k.scalar(k.g.operand(node, 2)), *const at = k.hw->remote(barrier_address(k, k.g.operand(node, 3)), rank);
  k.touch({.what = local_event::kind::async_write, .bytes = k.bytes_of_view(v), .slot = v.slot});
  k.each_vector(there(k, v, rank), l, x.r, nullptr,
                [&](Value* pointer, llvm::ArrayRef<Value*> words, llvm::Align) { k.hw->remote_store(pointer, words, at); });
  return {};
}

registers lowering<op::async_remote_copy>::emit(lowerer& k, int node) {
  need_clusters(k, node);
  int const target = k.g.operand(node, 0);
  view_value const to = k.view(target), from = k.view(k.g.operand(node, 1));
  Value *const rank = k.scalar(k.g.operand(node, 2)), *const at = k.hw->remote(barrier_address(k, k.g.operand(node, 3)), rank);
  k.touch({.what = local_event::kind::async_read, .bytes = k.bytes_of_view(from), .slot = from.slot, .bulk = true});
  k.touch({.what = local_event::kind::async_write, .bytes = k.bytes_of_view(to), .slot = to.slot});
  k.when(k.b.CreateICmpEQ(k.thread, k.i32(0)), [&] {
    k.hw->remote_copy(k.hw->remote(to.pointer, rank), from.pointer, bytes_of(to.type, k.g.shape_of(target).elements()), at);
  });
  return {};
}

} // namespace kiln::jit::simt
